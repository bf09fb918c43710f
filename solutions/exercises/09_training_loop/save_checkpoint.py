from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of

exercise = Exercise("Compare your code with the list in the lecture: model, optimizer, step, and two generators, "
                    "saved and restored.")


def new_run(seed, kind="AdamW"):
    """A small model with a buffer and a dropout, an optimizer, and a generator.

    In float64: what cancels leaves nothing that Adam would take for a gradient, in whatever order it is added up.
    """
    import torch

    torch.manual_seed(seed)
    model = torch.nn.Sequential(
        torch.nn.Linear(2, 3, bias=False), torch.nn.BatchNorm1d(3), torch.nn.Dropout(0.5), torch.nn.Linear(3, 1)
    ).double()
    p = list(model.parameters())
    optimizer = {
        "AdamW": lambda: torch.optim.AdamW(p),
        "SGD": lambda: torch.optim.SGD(p, lr=0.1),
        "momentum": lambda: torch.optim.SGD(p, lr=0.1, momentum=0.9),
        "two groups": lambda: torch.optim.Adam([{"params": p[:2]}, {"params": p[2:], "lr": 0.05}]),
    }[kind]()
    return model, optimizer, torch.Generator().manual_seed(seed)


def a_step(model, optimizer, generator):
    """One step of training, with a learning rate that falls, and its loss."""
    import torch

    optimizer.zero_grad()
    loss = model(torch.randn(4, 2, generator=generator, dtype=torch.float64)).square().mean()
    loss.backward()
    for group in optimizer.param_groups:
        group["lr"] *= 0.5
    optimizer.step()
    return loss.detach()  # a tensor in float32 is compared as one


def state_of(model, optimizer):
    """Model and optimizer as plain data."""
    import torch

    def plain(value):
        # Tensors, not lists: numbers in float32 are compared as such, for another machine rounds them otherwise.
        return value.detach().clone() if isinstance(value, torch.Tensor) else value

    return {
        "model": {name: plain(tensor) for name, tensor in model.state_dict().items()},
        "settings of the optimizer": [
            {key: value for key, value in group.items() if key != "params"} for group in optimizer.param_groups
        ],
        "state of the optimizer": [
            {key: plain(value) for key, value in kept.items()} for kept in optimizer.state_dict()["state"].values()
        ],
    }


def files(student, seed, step, kind="AdamW", trained=0):
    """The files that save_checkpoint writes after two steps of a run."""
    import pathlib
    import tempfile

    import torch

    outside = torch.get_rng_state()
    try:
        with tempfile.TemporaryDirectory() as place:
            run = new_run(seed, kind)
            a_step(*run), a_step(*run)
            student.save_checkpoint(pathlib.Path(place) / "run.pt", run[0], run[1], step, run[2])
            a_step(*run)  # what was saved must not move along
            return {file.name: file.read_bytes() for file in pathlib.Path(place).iterdir()}
    finally:
        torch.set_rng_state(outside)


def resumed(student, seed, step, kind="AdamW", trained=0, saved=None):
    """What load_checkpoint puts into a new run, after two steps of the old one; the new one had `trained` steps.

    It loads from another folder, and once with the files that another process has saved, because what a process
    remembers doesn't survive its end.
    """
    import pathlib
    import tempfile

    import torch

    saved = files(student, seed, step, kind) if saved is None else saved
    outside = torch.get_rng_state()
    try:
        with tempfile.TemporaryDirectory() as place:
            for name, content in saved.items():
                (pathlib.Path(place) / name).write_bytes(content)
            path = pathlib.Path(place) / "run.pt"
            fresh = new_run(seed + 1, kind)
            for _ in range(trained):
                a_step(*fresh)
            returned = student.load_checkpoint(path, *fresh)
            chance = {
                "what generator draws": torch.rand(3, generator=fresh[2]).tolist(),
                "what the global generator draws": torch.rand(3).tolist(),
            }
            found = {"step": returned, "its type": type(returned).__name__} | state_of(*fresh[:2]) | chance
            torch.manual_seed(0)
            fresh[2].manual_seed(0)
            return found | {"losses that follow": [a_step(*fresh), a_step(*fresh)]}
    finally:
        torch.set_rng_state(outside)


def as_plain_data(student, seed, name="run.pt"):
    """Whether the file loads as it is."""
    import pathlib
    import tempfile

    import torch

    outside = torch.get_rng_state()
    try:
        with tempfile.TemporaryDirectory() as place:
            path = pathlib.Path(place) / name
            run = new_run(seed)
            a_step(*run)
            student.save_checkpoint(path, run[0], run[1], 3, run[2])
            if not path.exists():
                return {"the file at path": "none", "torch.load(path)": "no file"}
            try:
                torch.load(path, weights_only=True)
                loads = "loads"
            except Exception as error:
                loads = type(error).__name__
            return {"the file at path": name, "torch.load(path)": loads}
    finally:
        torch.set_rng_state(outside)


def unwritable(student, seed, before, again=False, name="run.pt", interrupted=False, killed=False):
    """What comes of a save that fails; before: one went well earlier. again: one comes later.

    interrupted: by Ctrl-C. killed: as by kill -9, after which nothing is cleaned up, and another process goes on.
    """
    import contextlib
    import errno
    import os
    import pathlib
    import tempfile

    import torch

    class Unwritable:
        def __reduce_ex__(self, protocol):
            if killed:
                stack.enter_context(no_more())
            raise KeyboardInterrupt if interrupted or killed else OSError(errno.ENOSPC, "No space left on device")

    @contextlib.contextmanager
    def no_more():
        """Whatever would move or delete a file is interrupted as well."""

        def refuse(*args, **kwargs):
            raise KeyboardInterrupt

        there = {n: getattr(os, n) for n in ("unlink", "remove", "rmdir", "rename", "replace", "truncate", "ftruncate")}
        vars(os).update(dict.fromkeys(there, refuse))
        try:
            yield
        finally:
            vars(os).update(there)

    outside, process, of_process = torch.get_rng_state(), os.getpid(), os.getpid
    try:
        with tempfile.TemporaryDirectory() as place:
            path = pathlib.Path(place) / name
            run = new_run(seed)
            a_step(*run)
            if before:
                student.save_checkpoint(path, run[0], run[1], 4, run[2])
            old = path.read_bytes() if path.exists() else None
            group = run[1].param_groups[0]
            group["note"] = Unwritable()  # part of optimizer.state_dict(), and writing it fails
            try:
                with contextlib.ExitStack() as stack:
                    student.save_checkpoint(path, run[0], run[1], 5, run[2])
                raised = "none"
            except NotImplementedError:
                raise
            except (Exception, KeyboardInterrupt) as error:
                raised = f"OSError: {error.strerror}" if isinstance(error, OSError) else type(error).__name__
            del group["note"]
            if killed:
                os.getpid = lambda: process + 1
            now = path.read_bytes() if path.exists() else None
            found = {"the error": raised, "the file at path": "none" if now is None else "as it was" if now == old else "another"}
            if again:
                student.save_checkpoint(path, run[0], run[1], 6, run[2])
                found["files after one more save, that goes well"] = sorted(f.name for f in pathlib.Path(place).iterdir())
            return found
    finally:
        os.getpid = of_process
        torch.set_rng_state(outside)


def watched(student, seed, before=True, name="run.pt", others=()):
    """The files in the folder during a save, looked at between any two calls of functions, whoever makes them.

    others: files that lay there before.
    """
    import builtins
    import os
    import pathlib
    import sys
    import tempfile

    import torch

    def look():
        """(inode, size, time) of each file in the folder."""
        found = {}
        for entry in os.scandir(place):
            try:
                stat = os.stat(entry.path)
            except OSError:
                continue
            found[entry.name] = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
        return found

    def watch(frame, event, what):
        nonlocal busy
        if busy or event not in ("c_return", "c_exception"):
            return
        owner = getattr(what, "__self__", None)  # what is done to a list, or by len(…), touches no file
        if owner is builtins or isinstance(owner, (list, dict, set, str, bytes, tuple, type)):
            return
        busy = True
        try:
            found = look()
            if not moments or moments[-1] != found:
                moments.append(found)
        finally:
            busy = False

    outside, busy, moments = torch.get_rng_state(), False, []
    try:
        with tempfile.TemporaryDirectory() as place:
            path = pathlib.Path(place) / name
            for other in others:
                (path.parent / other).write_text(other)
            run = new_run(seed)
            a_step(*run)
            if before:
                student.save_checkpoint(path, run[0], run[1], 4, run[2])
            old = look().get(name)
            profiler = sys.getprofile()
            sys.setprofile(watch)
            try:
                student.save_checkpoint(path, run[0], run[1], 5, run[2])
            finally:
                sys.setprofile(profiler)
            end = look()
            moments.append(end)
            seen, beside = [], set()
            for found in moments:
                at = found.get(name)
                state = "the old one" if at == old else "the new one" if at == end.get(name) else "an unfinished one"
                state = "none" if at is None else state
                if not seen or seen[-1] != state:
                    seen.append(state)
                if state != "the new one":
                    beside |= {stat[0] for other, stat in found.items() if other != name}
            return {
                "files at path, one after the other": seen,
                "the new one was written": "in the same folder" if end.get(name, (0,))[0] in beside else "elsewhere",
                "files in the folder afterwards": sorted(end),
            }
    finally:
        torch.set_rng_state(outside)


def unchanged(student, seed, kind="AdamW", training=True):
    """The run after a save."""
    import pathlib
    import random
    import tempfile

    import numpy as np
    import torch

    outside = torch.get_rng_state(), random.getstate(), np.random.get_state()
    try:
        with tempfile.TemporaryDirectory() as place:
            path = pathlib.Path(place) / "run.pt"
            run = model, optimizer, generator = new_run(seed, kind)
            random.seed(seed)
            np.random.seed(seed)
            a_step(*run)
            model.train(training)
            model[3].train(not training)
            model[3].bias.requires_grad_(False)
            student.save_checkpoint(path, model, optimizer, 3, generator)
            return state_of(model, optimizer) | {
                "gradients": [None if p.grad is None else p.grad.clone() for p in model.parameters()],
                "which parameters require a gradient": [p.requires_grad for p in model.parameters()],
                "which modules are in training mode": [module.training for module in model.modules()],
                "what generator draws": torch.rand(2, generator=generator).tolist(),
                "what PyTorch's, Python's and NumPy's draw": [torch.rand(1).item(), random.random(), float(np.random.rand())],
                "file at path": path.exists(),
            }
    finally:
        torch.set_rng_state(outside[0])
        random.setstate(outside[1])
        np.random.set_state(outside[2])


DRAWN = ("what generator draws", "what the global generator draws")
BACK = ("step", "model", "settings of the optimizer", "state of the optimizer", "losses that follow")
kinds = any_of("AdamW", "SGD", "momentum", "two groups")
seeds = st.integers(0, 10**6)
back = st.builds(given, seeds, st.integers(0, 10**9), kinds, st.integers(0, 2))
says = "save_checkpoint, then load_checkpoint into a new run, with {}"
visible = [
    given(3, 17, says=says.format("AdamW, and step 17")),
    given(4, 2, "two groups", 1, says=says.format("Adam, two groups, step 2; the new run has taken a step of its own")),
]
edges = {
    "step 0": given(5, 0),
    "a large step": given(5, 10**12),
    "no state": given(6, 8, "SGD"),
    "momentum": given(6, 8, "momentum", 2),
    "state that is there already": given(7, 8, "AdamW", 2),
}
exercise.requirement(
    "model, optimizer and step come back as they were saved",
    points=0.5,
    probe=resumed,
    saves=files,
    rules=dict.fromkeys(DRAWN, "ignored"),
    visible=visible,
    edges=edges,
    domain=back,
)
exercise.requirement(
    "both generators are restored: the one passed in, and PyTorch's global one",
    points=0.5,
    probe=resumed,
    saves=files,
    rules=dict.fromkeys(BACK, "ignored"),
    visible=visible,
    edges=edges,
    domain=back,
    hint="Save the state of both generators, not their seed, and put both back.",
)
exercise.requirement(
    "the file loads with a plain torch.load(path), without further arguments",
    points=0.25,
    probe=as_plain_data,
    visible=[
        given(3, says="torch.load(path) after save_checkpoint, where path is …/run.pt"),
        given(4, "step_20.checkpoint", says="torch.load(path) after save_checkpoint, where path is …/step_20.checkpoint"),
    ],
    edges={"no suffix": given(5, "run"), "two": given(6, "run.v2.pt"), "a hidden one": given(7, ".run.pt")},
    domain=st.builds(given, seeds, any_of("run.pt", "a.pt", "b.v1.pt", "last", "best model.pt")),
    hint="Save only tensors, numbers, strings, lists, tuples and dictionaries: they need no further arguments.",
)
exercise.requirement(
    "if writing fails, the error is passed on, and whatever was at path is unchanged",
    points=0.5,
    probe=unwritable,
    visible=[
        given(3, True, says="save_checkpoint twice; the second time, the disk is full"),
        given(4, False, says="save_checkpoint for the first time, and the disk is full"),
        given(5, True, True, killed=True, says="save_checkpoint three times; the second time, its process is killed while it writes"),
    ],
    edges={
        "and again, with more room": given(5, True, True),
        "for the first time, and again": given(6, False, True),
        "another seed": given(7, True),
        "a name that a partial file might have": given(8, True, False, "run.tmp"),
        "another such name": given(9, True, True, "run.partial"),
        "interrupted, and again": given(10, True, True, interrupted=True),
        "killed, for the first time, and again": given(11, False, True, killed=True),
    },
    domain=st.builds(given, seeds, st.booleans(), st.booleans()),
    hint="Touch nothing at path before everything has been written elsewhere, don't swallow an error, and leave no "
         "file after a failed save that the next one doesn't replace.",
)
exercise.requirement(
    "a file at path is complete at every moment and, once there, never disappears; no other file is left behind",
    points=0.75,
    probe=watched,
    visible=[given(3, says="the files in the folder during a second save_checkpoint"),
             given(4, False, says="the files in the folder during a first save_checkpoint"),
             given(5, True, "run.pt", ["notes.txt"],
                   says="the files in the folder during a second save_checkpoint, with notes.txt beside run.pt")],
    edges={
        "no suffix": given(5, True, "run"),
        "two": given(6, True, "run.v2.pt"),
        "other files lie there": given(7, True, "run.pt", ["notes.txt", "best.pt"]),
        "others, of a similar name": given(8, True, "run.pt", ["run-notes.tmp", "runs.pt"]),
        "a name that a partial file might have": given(9, True, "run.tmp"),
    },
    domain=st.builds(
        lambda seed, before, name, others: given(seed, before, name, [other for other in others if other != name]),
        st.integers(0, 1000), st.booleans(), any_of("run.pt", "run", "run.v2.pt", "step-100.ckpt", "best.pt", "run.tmp"),
        st.lists(any_of("notes.txt", "best.pt", "runs.pt", "run-notes.tmp", "log"), max_size=4, unique=True),
    ),
    hint="Write the new file under another name in the same folder. A single function then puts it in place of "
         "the old one.",
)  # fmt: skip
exercise.requirement(
    "saving changes nothing in the run",
    points=0.5,
    probe=unchanged,
    visible=[given(3, says="the run after save_checkpoint, with AdamW"),
             given(4, "momentum", False, says="the run after save_checkpoint, with SGD and momentum, in evaluation mode")],
    edges={"Adam, two groups": given(5, "two groups"), "SGD": given(6, "SGD"), "evaluation": given(7, "AdamW", False)},
    domain=st.builds(given, seeds, kinds, st.booleans()),
    hint="Gradients, modes, and every generator are part of the run as well.",
)  # fmt: skip

save = "torch.save(contents, partial)"
put = "os.replace(partial, path)"
exercise.mistake("The model isn't restored: it's still the new run's.", 'model.load_state_dict(contents["model"]) → pass')
exercise.mistake("state_dict() holds buffers as well; parameters alone aren't the model.",
                 '"model": model.state_dict() → "model": dict(model.named_parameters())', 'contents["model"]) → contents["model"], strict=False)')  # fmt: skip
exercise.mistake("The optimizer isn't restored.", 'optimizer.load_state_dict(contents["optimizer"]) → pass')
exercise.mistake("The optimizer's settings are part of its state: the learning rate has changed since the "
                 "optimizer was created.",
                 'optimizer.load_state_dict(contents["optimizer"]) → optimizer.load_state_dict({**optimizer.state_dict(), "state": contents["optimizer"]["state"]})')  # fmt: skip
exercise.mistake("Return the step as it was saved: it's already the number of the next one.", 'return int(contents["step"]) → return int(contents["step"]) + 1')
exercise.mistake("The step has to be returned.", 'return int(contents["step"]) → pass')
exercise.mistake("The data's generator isn't restored: batches are repeated or left out.", 'generator.set_state(contents["data"]) → pass')
exercise.mistake("PyTorch's global generator isn't restored, so dropout draws different numbers.", 'torch.set_rng_state(contents["global"]) → pass')
exercise.mistake("No generator is restored.", 'generator.set_state(contents["data"]) → pass', 'torch.set_rng_state(contents["global"]) → pass')
exercise.mistake("A seed says where a generator began, not where it is now.",
                 '"data": generator.get_state() → "data": generator.initial_seed()', 'generator.set_state(contents["data"]) → generator.manual_seed(contents["data"])')  # fmt: skip
exercise.mistake("The states of the two generators are swapped.", 'generator.set_state(contents["data"]) → generator.set_state(contents["global"])',
                 'torch.set_rng_state(contents["global"]) → torch.set_rng_state(contents["data"])')  # fmt: skip
exercise.mistake("Nothing is restored: the dictionary that was loaded is never used.", 'model.load_state_dict(contents["model"]) → pass',
                 'optimizer.load_state_dict(contents["optimizer"]) → pass', 'generator.set_state(contents["data"]) → pass',
                 'torch.set_rng_state(contents["global"]) → pass')  # fmt: skip
exercise.mistake("By default, torch.load accepts only plain data "
                 "and tensors: no modules or other objects, and "
                 "no NumPy arrays.", '"model": model.state_dict() → "model": model',
                 "torch.load(path) → torch.load(path, weights_only=False)", 'contents["model"]) → contents["model"].state_dict())')  # fmt: skip
exercise.mistake("By default, torch.load accepts only "
                 "plain data and tensors: no modules or "
                 "other objects, and no NumPy arrays.", '"global": torch.get_rng_state() → "global": torch.get_rng_state().numpy()',
                 "torch.load(path) → torch.load(path, weights_only=False)", 'contents["global"]) → torch.from_numpy(contents["global"]))')  # fmt: skip
exercise.mistake("Your code writes into the old file: if it stops in the middle, neither checkpoint is left.", f"{save} → torch.save(contents, path)", f"{put} → pass")
exercise.mistake("The error has to be passed on, so that somebody learns that the disk is full.",
                 f"{save} → try:\n        torch.save(contents, partial)\n    except OSError:\n        partial.unlink(missing_ok=True)\n        return",
                 together_with=[f"{put} → path.write_bytes(partial.read_bytes())\n    partial.unlink()"])  # fmt: skip
exercise.mistake("The old file is gone before the new one is there.", f"{save} → path.unlink(missing_ok=True)\n    {save}")
exercise.mistake("For a moment there is no file at all; a rename can replace the old file in one step.", f"{put} → path.unlink(missing_ok=True)\n    {put}")
exercise.mistake("Your code writes to the old file itself and leaves the copy behind.", f"{put} → path.write_bytes(partial.read_bytes())")
exercise.mistake("Your code writes to the file at path, "
                 "so a power failure could leave half "
                 "of it: move a complete file there by "
                 "renaming it.", f"{put} → path.write_bytes(partial.read_bytes())\n    partial.unlink()")
exercise.mistake("Your code writes to the file at path, so a power failure could leave half of it: move a "
                 "complete file there by renaming it.",
                 f"{save} → buffer = io.BytesIO()\n    torch.save(contents, buffer)", f"{put} → path.write_bytes(buffer.getvalue())")  # fmt: skip
exercise.mistake("Write the new file in the same folder: a rename can't cross from one file system to another.",
                 'partial = path.with_name(f"{path.name}.partial") → partial = Path(tempfile.mkdtemp()) / path.name',
                 f"{put} → os.replace(partial, path)\n    partial.parent.rmdir()")  # fmt: skip
exercise.mistake("Saving mustn't clear the gradients.", "contents = { → optimizer.zero_grad()\n    contents = {")
exercise.mistake("The model is left in evaluation mode.", "contents = { → model.eval()\n    contents = {")
exercise.mistake("Saving drew a number from the global generator, so dropout now draws different ones.", f"{save} → torch.rand(1)\n    {save}")
exercise.mistake("Saving drew a number from the data's generator, so the batches are different now.", f"{save} → torch.rand(1, generator=generator)\n    {save}")
exercise.mistake("Saving drew a number from Python's generator.", f"{save} → random.random()\n    {save}")
exercise.mistake("The model was in evaluation mode, and saving changed that.", f"{put} → {put}\n    model.train()")

# %% wrong: in memory, not on disk
remembered = {}


def save_checkpoint(path, model, optimizer, step, generator):
    remembered[str(path)] = [
        copy.deepcopy(model.state_dict()), copy.deepcopy(optimizer.state_dict()), step,
        generator.get_state(), torch.get_rng_state(),
    ]


def load_checkpoint(path, model, optimizer, generator):
    weights, state, step, own, everybodys = remembered[str(path)]
    model.load_state_dict(weights)
    optimizer.load_state_dict(state)
    generator.set_state(own)
    torch.set_rng_state(everybodys)
    return step

# %% wrong: all but the optimizer in memory
kept = {}

def save_checkpoint(path, model, optimizer, step, generator):
    kept[str(path)] = copy.deepcopy(model.state_dict()), step, generator.get_state(), torch.get_rng_state()
    partial = path.with_name(path.name + ".partial")
    torch.save(optimizer.state_dict(), partial)
    os.replace(partial, path)

def load_checkpoint(path, model, optimizer, generator):
    weights, step, own, common = kept[str(path)]
    model.load_state_dict(weights)
    optimizer.load_state_dict(torch.load(path))
    generator.set_state(own)
    torch.set_rng_state(common)
    return step

# %% wrong: a temporary file that a failure leaves behind
# unseen: files that a failed save leaves behind are for the hidden inputs to find
def save_checkpoint(path, model, optimizer, step, generator):
    contents = [model.state_dict(), optimizer.state_dict(), step, generator.get_state(), torch.get_rng_state()]
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        torch.save(contents, file)
    os.replace(file.name, path)


def load_checkpoint(path, model, optimizer, generator):
    weights, state, step, own, everybodys = torch.load(path)
    model.load_state_dict(weights)
    optimizer.load_state_dict(state)
    generator.set_state(own)
    torch.set_rng_state(everybodys)
    return step

# %% wrong: clears the folder
def save_checkpoint(path, model, optimizer, step, generator):
    contents = [model.state_dict(), optimizer.state_dict(), step, generator.get_state(), torch.get_rng_state()]
    partial = path.with_name("partial")
    torch.save(contents, partial)
    os.replace(partial, path)
    for other in path.parent.iterdir():
        if other != path:
            other.unlink()


def load_checkpoint(path, model, optimizer, generator):
    weights, state, step, own, everybodys = torch.load(path)
    model.load_state_dict(weights)
    optimizer.load_state_dict(state)
    generator.set_state(own)
    torch.set_rng_state(everybodys)
    return step

# %% wrong: keeps the old one as well
def save_checkpoint(path, model, optimizer, step, generator):
    contents = [model.state_dict(), optimizer.state_dict(), step, generator.get_state(), torch.get_rng_state()]
    partial = path.with_name(path.name + ".new")
    torch.save(contents, partial)
    if path.exists():
        os.replace(path, path.with_name(path.name + ".old"))
    os.replace(partial, path)


def load_checkpoint(path, model, optimizer, generator):
    weights, state, step, own, everybodys = torch.load(path)
    model.load_state_dict(weights)
    optimizer.load_state_dict(state)
    generator.set_state(own)
    torch.set_rng_state(everybodys)
    return step

# %% wrong: another error in its place
def save_checkpoint(path, model, optimizer, step, generator):
    contents = [model.state_dict(), optimizer.state_dict(), step, generator.get_state(), torch.get_rng_state()]
    partial = path.with_name(path.name + ".new")
    try:
        torch.save(contents, partial)
    except OSError:
        raise RuntimeError("could not save") from None
    os.replace(partial, path)


def load_checkpoint(path, model, optimizer, generator):
    weights, state, step, own, everybodys = torch.load(path)
    model.load_state_dict(weights)
    optimizer.load_state_dict(state)
    generator.set_state(own)
    torch.set_rng_state(everybodys)
    return step

# %% wrong: the other name is the same name if path ends in .tmp (from the statement)
# unseen: a path that ends in .tmp is for the hidden inputs to find
def save_checkpoint(
    path: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    step: int,
    generator: torch.Generator,
) -> None:
    """Write all that the run needs to go on with `step`: whole, or not at all."""
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "step": step,
        "generator": generator.get_state(),
        "torch": torch.get_rng_state(),
    }
    other = path.with_suffix(".tmp")
    try:
        torch.save(state, other)
        os.replace(other, path)
    except BaseException:
        other.unlink(missing_ok=True)
        raise


def load_checkpoint(
    path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, generator: torch.Generator
) -> int:
    """Put model, optimizer and generators back to where they were, and return the next step."""
    state = torch.load(path)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    generator.set_state(state["generator"])
    torch.set_rng_state(state["torch"])
    return state["step"]

# %% wrong: a random name, which an interrupt leaves behind for ever (from the statement)
# unseen: a save that is interrupted is for the hidden inputs to find
def save_checkpoint(
    path: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    step: int,
    generator: torch.Generator,
) -> None:
    """Write all that the run needs to go on with `step`: whole, or not at all."""
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "step": step,
        "generator": generator.get_state(),
        "torch": torch.get_rng_state(),
    }
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    os.close(handle)
    try:
        torch.save(state, name)
        os.replace(name, path)
    except Exception:
        os.unlink(name)
        raise


def load_checkpoint(
    path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, generator: torch.Generator
) -> int:
    """Put model, optimizer and generators back to where they were, and return the next step."""
    state = torch.load(path)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    generator.set_state(state["generator"])
    torch.set_rng_state(state["torch"])
    return state["step"]

# %% wrong: makes the file in memory, then writes it in place (from the statement)
def save_checkpoint(
    path: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    step: int,
    generator: torch.Generator,
) -> None:
    """Write all that the run needs to go on with `step`: whole, or not at all."""
    buffer = io.BytesIO()
    torch.save(
        {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": step,
            "generator": generator.get_state(),
            "torch": torch.get_rng_state(),
        },
        buffer,
    )  # whatever cannot be saved fails here, before the file is touched
    path.write_bytes(buffer.getvalue())


def load_checkpoint(
    path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, generator: torch.Generator
) -> int:
    """Put model, optimizer and generators back to where they were, and return the next step."""
    state = torch.load(path)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    generator.set_state(state["generator"])
    torch.set_rng_state(state["torch"])
    return state["step"]

# %% wrong: eval() and train() around the save switch all of the model's modules (from the statement)
def save_checkpoint(path, model, optimizer, step, generator):
    training = model.training
    model.eval()
    try:
        contents = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step,
                    "generator": generator.get_state(), "global": torch.get_rng_state()}
        partial = path.with_name(path.name + ".partial")
        torch.save(contents, partial)
        partial.replace(path)
    finally:
        model.train(training)

def load_checkpoint(path, model, optimizer, generator):
    contents = torch.load(path)
    model.load_state_dict(contents["model"])
    optimizer.load_state_dict(contents["optimizer"])
    generator.set_state(contents["generator"])
    torch.set_rng_state(contents["global"])
    return contents["step"]

# %% wrong: a file of a random name, which remains if the process is killed (from the statement)
def save_checkpoint(path, model, optimizer, step, generator):
    contents = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "step": step,
        "generator": generator.get_state(),
        "rng": torch.get_rng_state(),
    }
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            torch.save(contents, file)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def load_checkpoint(path, model, optimizer, generator):
    contents = torch.load(path)
    model.load_state_dict(contents["model"])
    optimizer.load_state_dict(contents["optimizer"])
    generator.set_state(contents["generator"])
    torch.set_rng_state(contents["rng"])
    return contents["step"]

# %% wrong: a file for each process, which stays when that process is killed (from the statement)
def save_checkpoint(
    path: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    step: int,
    generator: torch.Generator,
) -> None:
    """Write everything that the run needs to continue with `step`: completely, or not at all."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    contents = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "step": step,
        "generator": generator.get_state(),
        "global": torch.get_rng_state(),
    }
    try:
        torch.save(contents, partial)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def load_checkpoint(
    path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, generator: torch.Generator
) -> int:
    """Restore model, optimizer and generators, and return the next step."""
    contents = torch.load(path)
    model.load_state_dict(contents["model"])
    optimizer.load_state_dict(contents["optimizer"])
    generator.set_state(contents["generator"])
    torch.set_rng_state(contents["global"])
    return contents["step"]

# %% right: names of its own for torch.save and os.replace
from os import replace as put_in_place
from torch import save as write


def save_checkpoint(path, model, optimizer, step, generator):
    beside = path.parent / f".{path.name}.unfinished"
    with beside.open("wb") as file:
        write([step, model.state_dict(), optimizer.state_dict(), generator.get_state(), torch.get_rng_state()], file)
    put_in_place(beside, path)


def load_checkpoint(path, model, optimizer, generator):
    step, weights, state, own, everybodys = torch.load(path)
    model.load_state_dict(weights)
    optimizer.load_state_dict(state)
    generator.set_state(own)
    torch.set_rng_state(everybodys)
    return step

# %% right: an unfinished file beside it, cleaned up after an error
def save_checkpoint(path, model, optimizer, step, generator):
    contents = {
        "m": model.state_dict(), "o": optimizer.state_dict(), "s": torch.tensor(step),
        "g": generator.get_state(), "r": torch.random.get_rng_state(),
    }
    with open(path.parent / f".{path.name}.unfinished", "wb") as file:
        try:
            torch.save(contents, file)
        except BaseException:
            os.unlink(file.name)
            raise
    os.replace(file.name, path)


def load_checkpoint(path, model, optimizer, generator):
    found = torch.load(path, map_location="cpu", weights_only=True)
    torch.random.set_rng_state(found["r"])
    generator.set_state(found["g"])
    optimizer.load_state_dict(found["o"])
    model.load_state_dict(found["m"])
    return found["s"].item()

# %% right: a buffer first, then another file
def save_checkpoint(path, model, optimizer, step, generator):
    buffer = io.BytesIO()
    torch.save((step, model.state_dict(), optimizer.state_dict(), generator.get_state(), torch.get_rng_state()), buffer)
    partial = path.parent / ("_" + path.name)
    with open(partial, "wb") as file:
        file.write(buffer.getvalue())
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def load_checkpoint(path, model, optimizer, generator):
    step, weights, state, own, everybodys = torch.load(path)
    model.load_state_dict(weights)
    optimizer.load_state_dict(state)
    generator.set_state(own)
    torch.default_generator.set_state(everybodys)
    return step

# %% right: weights copied one by one
def save_checkpoint(path, model, optimizer, step, generator):
    weights = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    contents = {"weights": weights, "optimizer": optimizer.state_dict(), "step": step}
    contents["chance"] = [generator.get_state(), torch.get_rng_state()]
    beside = Path(f"{path}~")
    torch.save(contents, str(beside))
    beside.rename(path)


def load_checkpoint(path, model, optimizer, generator):
    contents = torch.load(str(path))
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            tensor.copy_(contents["weights"][name])
    optimizer.load_state_dict(contents["optimizer"])
    for one, state in zip((generator, torch.default_generator), contents["chance"]):
        one.set_state(state)
    return contents["step"]

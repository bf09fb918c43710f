"""course_utils.checkpoint: a resumed run is the uninterrupted one, and what cannot be restored changes nothing."""

from __future__ import annotations

import errno
import os
import pickle
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from course_utils import checkpoint
from course_utils.checkpoint import CheckpointError, load_checkpoint, save_checkpoint

Run = tuple[nn.Module, torch.optim.Optimizer, torch.Generator]


def new_run(seed: int, *, width: int = 8, kind: type[torch.optim.Optimizer] = torch.optim.AdamW) -> Run:
    torch.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)
    model = nn.Sequential(nn.Linear(4, width), nn.BatchNorm1d(width), nn.Dropout(0.3), nn.Linear(width, 1))
    return model, kind(model.parameters(), lr=0.01), torch.Generator().manual_seed(seed)  # type: ignore[call-arg]


def go_on(run: Run, first: int, last: int) -> list[str]:
    """Losses, to the bit. Chance comes from torch, NumPy, Python and the run's own generator."""
    model, optimizer, generator = run
    losses = []
    for step in range(first, last):
        x = torch.randn(16, 4, generator=generator) + np.random.randn() * random.random()
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean() / (step + 1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item().hex())
    return losses


def save(path: Path, run: Run, step: int) -> None:
    save_checkpoint(path, model=run[0], optimizer=run[1], step=step, generators={"data": run[2]})


def load(path: Path, run: Run) -> int:
    return load_checkpoint(path, model=run[0], optimizer=run[1], generators={"data": run[2]})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    run = new_run(0)
    go_on(run, 0, 3)
    save(tmp_path / "run.pt", run, 3)
    return tmp_path / "run.pt"


@pytest.mark.slow
@pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.SGD, torch.optim.RMSprop, torch.optim.Adagrad])
def test_resuming_equals_never_having_stopped(tmp_path: Path, kind: type[torch.optim.Optimizer]) -> None:
    whole = go_on(new_run(0, kind=kind), 0, 12)

    run = new_run(0, kind=kind)
    losses = go_on(run, 0, 5)
    save(tmp_path / "run.pt", run, 5)
    assert losses + go_on(run, 5, 12) == whole  # saving changes nothing

    resumed = new_run(99, kind=kind)
    first = load(tmp_path / "run.pt", resumed)
    assert first == 5 and losses + go_on(resumed, first, 12) == whole
    for name, tensor in run[0].state_dict().items():
        assert torch.equal(tensor, resumed[0].state_dict()[name])


def test_a_checkpoint_is_plain_data_and_the_only_file(path: Path) -> None:
    assert torch.load(path, weights_only=True)["step"] == 3
    assert [found.name for found in path.parent.iterdir()] == ["run.pt"]
    save(path, new_run(1), 4)
    assert load(path, new_run(2)) == 4


class Disk:
    """A file on a disk that is full after so many bytes."""

    def __init__(self, file: object, room: int) -> None:
        self.file, self.room = file, room

    def __enter__(self) -> Disk:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()  # type: ignore[attr-defined]

    def write(self, data: bytes) -> int:
        if (room := self.room - len(data)) < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.room = room
        return self.file.write(data)  # type: ignore[attr-defined]

    def flush(self) -> None:
        self.file.flush()  # type: ignore[attr-defined]

    def fileno(self) -> int:
        return self.file.fileno()  # type: ignore[attr-defined]


@pytest.mark.parametrize("room", [0, 100, 3_000])
def test_a_full_disk_leaves_the_old_checkpoint(path: Path, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    before, run = path.read_bytes(), new_run(1)
    plain_open = Path.open
    monkeypatch.setattr(Path, "open", lambda self, mode: Disk(plain_open(self, mode), room))
    with pytest.raises(
        OSError, match=r"step 9 was not written \(No space left .*the previous one is still there"
    ) as caught:
        save(path, run, 9)
    monkeypatch.undo()
    assert caught.value.errno == errno.ENOSPC
    assert path.read_bytes() == before and [found.name for found in path.parent.iterdir()] == ["run.pt"]
    assert load(path, run) == 3


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="limits on the size of files are POSIX's")
def test_a_limit_on_the_size_of_files_leaves_the_old_checkpoint(path: Path) -> None:
    import resource

    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            save(path, new_run(1), 9)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before and [found.name for found in path.parent.iterdir()] == ["run.pt"]


def test_a_checkpoint_is_synced_to_disk_before_it_gets_its_name(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    replace, fsync = os.replace, os.fsync
    monkeypatch.setattr(os, "replace", lambda *names: (done.append(f"replace {path.exists()}"), replace(*names)))
    monkeypatch.setattr(os, "fsync", lambda handle: (done.append("fsync"), fsync(handle)))
    save(path, new_run(1), 4)
    assert done[:2] == ["fsync", "replace True"]  # the old one is there until the new one takes its name


def test_a_missing_folder_and_a_missing_file_are_clear_errors(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no checkpoint yet\. Make room or choose another folder"):
        save(tmp_path / "nowhere" / "run.pt", new_run(0), 1)
    with pytest.raises(FileNotFoundError, match="start from step 0"):
        load(tmp_path / "none.pt", new_run(0))


class Evil:
    """Runs code when it is unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("should-not-exist",)


def flip_a_bit(path: Path) -> None:
    weight = torch.load(path)["model"]["0.weight"].numpy().tobytes()
    contents = bytearray(path.read_bytes())
    contents[contents.index(weight)] ^= 1
    path.write_bytes(contents)


DAMAGED = {
    "cut short": (lambda p: p.write_bytes(p.read_bytes()[:-200]), "is not a complete checkpoint"),
    "half of it": (lambda p: p.write_bytes(p.read_bytes()[:3_000]), "has 3,000 bytes and is not a complete checkpoint"),
    "empty": (lambda p: p.write_bytes(b""), "has 0 bytes and is not a complete checkpoint"),
    "text": (lambda p: p.write_text("hello"), "is not a complete checkpoint"),
    "one bit": (flip_a_bit, "is damaged"),
    "code": (lambda p: torch.save({"format": 1, "model": Evil()}, p), "holds more than plain data"),
    "an old pickle": (lambda p: p.write_bytes(pickle.dumps({"format": 1})), "is not a complete checkpoint"),
    "a state_dict": (lambda p: torch.save(new_run(0)[0].state_dict(), p), "is not a checkpoint of this course"),
    "a part is missing": (lambda p: torch.save({"format": 1, "step": 3}, p), r"is not a checkpoint of this course"),
    "a later format": (lambda p: torch.save({"format": 2}, p), r"\(format 1\)"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_refused_and_changes_nothing(name: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    spoil, problem = DAMAGED[name]
    spoil(path)
    assert_refused(path, new_run(5), problem)
    assert not Path("should-not-exist").exists()


def assert_refused(path: Path, run: Run, problem: str) -> None:
    weights = {key: tensor.clone() for key, tensor in run[0].state_dict().items()}
    states = (torch.get_rng_state(), run[2].get_state(), random.getstate())
    with pytest.raises(CheckpointError, match=problem) as caught:
        load(path, run)
    assert str(path) in str(caught.value)
    for key, tensor in run[0].state_dict().items():
        assert torch.equal(tensor, weights[key]), key
    assert not run[1].state_dict()["state"]
    assert torch.equal(states[0], torch.get_rng_state()) and torch.equal(states[1], run[2].get_state())
    assert states[2] == random.getstate()


def test_another_width_is_refused_with_the_first_parameter_that_differs(path: Path) -> None:
    assert_refused(path, new_run(0, width=9), r"0.weight is float32\[8, 4\] in the file and float32\[9, 4\] in the")


def test_another_dtype_is_refused_with_the_first_parameter_that_differs(path: Path) -> None:
    model = new_run(0)[0].double()
    run = (model, torch.optim.AdamW(model.parameters()), torch.Generator())
    assert_refused(path, run, r"0.weight is float32\[8, 4\] in the file and float64")


def test_a_layer_more_or_less_is_refused_with_the_parameter_that_is_missing(path: Path) -> None:
    for layers, problem in (
        (5, r"4.weight is missing in the file"),
        (3, "3.weight is float32.* and missing in the model"),
    ):
        model = nn.Sequential(*[*new_run(0)[0], nn.Linear(1, 1)][:layers])
        assert_refused(path, (model, torch.optim.AdamW(model.parameters()), torch.Generator()), problem)


def test_another_optimizer_is_refused(path: Path) -> None:
    assert_refused(path, new_run(0, kind=torch.optim.SGD), "another optimizer: only one of the two has the setting")
    model = new_run(0)[0]
    parameters = list(model.parameters())
    groups = torch.optim.AdamW([{"params": parameters[:2]}, {"params": parameters[2:]}])
    assert_refused(path, (model, groups, torch.Generator()), r"groups hold \[6\] parameters; here they hold \[2, 4\]")


def test_a_generator_of_the_file_that_is_not_given_is_refused_by_name(path: Path) -> None:
    model, optimizer, _ = new_run(0)
    with pytest.raises(CheckpointError, match=r"holds the generators \['data'\], but you gave \[\]"):
        load_checkpoint(path, model=model, optimizer=optimizer)


def test_a_failure_of_torch_itself_is_an_os_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("unexpected pos")

    monkeypatch.setattr(checkpoint.torch, "save", fail)
    with pytest.raises(OSError, match="step 4 was not written"):
        save(path, new_run(0), 4)

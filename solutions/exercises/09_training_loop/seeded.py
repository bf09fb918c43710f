from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given

exercise = Exercise("What do you save before the block, what do you restore after it, and what if the block raises?")


def drawn(student, seed, inner=None, error=None, early=False, start=11, during=False):
    """Numbers of each global generator inside and after a block, which may have another one in it.

    `error`: what ends the block. `early`: numbers are also drawn between the call of seeded and the block.
    `during`: the error is raised while another one is handled, and has no cause.
    """
    import random

    import numpy as np
    import torch

    def draw():
        return {
            "random.random(), random.gauss(0, 1)": [random.random(), random.gauss(0, 1)],
            "np.random.rand(), np.random.randn()": [float(np.random.rand()), float(np.random.randn())],
            "torch.rand(1), torch.randn(1)": [torch.rand(1), torch.randn(1)],
        }

    def save():
        return random.getstate(), np.random.get_state(), torch.get_rng_state()

    def restore(states):
        random.setstate(states[0])
        np.random.set_state(states[1])
        torch.set_rng_state(states[2])

    stop = {"KeyError": KeyError, "KeyboardInterrupt": KeyboardInterrupt, "SystemExit": SystemExit}[error]("stop") if error else None
    first = OSError("what came before")
    if stop is not None and not during:
        stop.__cause__ = first
    ours = save()
    before = within = innermost = nested = came = None
    try:
        random.seed(start)
        np.random.seed(start + 1)
        torch.default_generator.manual_seed(start + 2)
        draw()  # a normal number leaves a second one behind, which is part of the state
        here = save()
        undisturbed = draw()
        restore(here)
        block = student.seeded(seed)
        if early:
            before = draw()
        try:
            with block:
                within = draw()
                if inner is not None:
                    here = save()
                    expected = draw()
                    restore(here)
                    with student.seeded(inner):
                        innermost = draw()
                    nested = {
                        "the inner block draws numbers of its own": innermost != expected,
                        "the outer block continues where it was": draw() == expected,
                    }
                if during:
                    try:
                        raise first
                    except OSError:
                        raise stop
                if stop is not None:
                    raise stop
        except (Exception, KeyboardInterrupt, SystemExit) as raised:
            if stop is None or (raised is not stop and not isinstance(raised, Exception)):
                raise
            came = f"the {error} of the block" if raised is stop else f"{type(raised).__name__}: {raised}"
            came += "" if raised.__cause__ is (None if during else first) else ", with another cause"
            came += "" if not during or (raised.__context__ is first and not raised.__suppress_context__) else ", without its context"
            came += "" if raised.args == ("stop",) and not hasattr(raised, "__notes__") else ", with another text"
        return {
            "before the block": before,
            "inside the block": within,
            "inside the inner block": innermost,
            "the block draws numbers of its own": within != undisturbed,
            "nested blocks": nested,
            "what comes out of the block": came,
            "after the block": draw(),
        }
    finally:
        restore(ours)


BEFORE, WITHIN, INNER, AFTER = "before the block", "inside the block", "inside the inner block", "after the block"
OTHERS, NESTED, ERROR = "the block draws numbers of its own", "nested blocks", "what comes out of the block"


def only(*keys):
    return dict.fromkeys(sorted({WITHIN, INNER, OTHERS, AFTER, BEFORE, NESTED, ERROR} - {*keys}), "ignored")


seeds, starts = st.integers(0, 2**32 - 1), st.integers(0, 999)
exercise.requirement(
    "inside the block, each of the three global generators draws what it would draw after a call to its own "
    "seeding function",
    points=0.75,
    probe=drawn,
    rules=only(WITHIN, INNER),
    visible=[
        given(7, says="what is drawn inside `with seeded(7)`"),
        given(0, 3, says="what is drawn inside `with seeded(0)`, and inside a `with seeded(3)` nested in it"),
    ],
    edges={
        "the largest": given(2**32 - 1),
        "beyond 31 bits": given(2**31),
        "one, and zero in it": given(1, 0),
        "the same seed twice": given(5, 5),
    },
    domain=st.builds(given, seeds, st.none() | seeds),
    hint="Which three libraries have a global generator, and how is each of them seeded?",
)
exercise.requirement(
    "after the block, each generator continues as if there had been no block; calling `seeded(seed)` alone "
    "changes nothing",
    points=0.5,
    probe=drawn,
    rules=only(OTHERS, AFTER, BEFORE),
    visible=[
        given(7, says="what is drawn after `with seeded(7)`, where some numbers were also drawn before it"),
        given(7, early=True, says="block = seeded(7); some numbers are drawn; then `with block`"),
    ],
    edges={
        "the largest": given(2**32 - 1),
        "zero, early": given(0, early=True),
        "a block in it": given(7, 8, start=5),
        "torch was seeded with the same seed": given(13),
    },
    domain=st.builds(given, seeds, early=st.booleans(), start=starts),
    hint="Each generator has a state that you can save and set. What you need is the state just before the block.",
)
exercise.requirement(
    "an error or an interruption propagates out of the block unchanged, and the generators are restored all the same",
    points=0.5,
    probe=drawn,
    rules=only(OTHERS, AFTER, ERROR),
    visible=[
        given(7, error="KeyError",
              says="which error comes out of `with seeded(7)`, and what is drawn after it, if the block raises "
                   "KeyError('stop')"),
        given(7, error="KeyboardInterrupt", says="which error comes out of `with seeded(7)`, and what is drawn "
                                                 "after it, if the block raises a KeyboardInterrupt"),
    ],  # fmt: skip
    edges={
        "the largest": given(2**32 - 1, error="KeyError"),
        "zero": given(0, error="KeyError", start=5),
        "after a block in it": given(3, 4, error="KeyboardInterrupt"),
        "the block exits": given(5, error="SystemExit"),
        "while another error is handled": given(5, error="KeyError", during=True),
    },
    domain=st.builds(given, seeds, error=st.sampled_from(["KeyError", "KeyboardInterrupt", "SystemExit"]), start=starts,
                     during=st.booleans()),  # fmt: skip
    hint="An error in the block is raised at the yield. What has to happen all the same?",
)
exercise.requirement(
    "blocks can be nested: after the inner one, the outer one continues where it left off",
    points=0.25,
    probe=drawn,
    rules=only(OTHERS, NESTED, AFTER),
    visible=[
        given(7, 8, says="`with seeded(8)` inside `with seeded(7)`: what is drawn in each block, and after both"),
        given(7, 7, start=5, says="`with seeded(7)` inside another `with seeded(7)`: what is drawn in each "
                                  "block, and after both"),
    ],  # fmt: skip
    edges={"zero": given(0, 1), "the largest": given(2**32 - 1, 0)},
    domain=st.builds(given, seeds, seeds, start=starts),
    hint="Each block restores the states that it found when it began.",
)

three = "One of the three global generators isn't seeded. (default_rng and torch.Generator make new ones, which don't count.)"
exercise.mistake(three, "random.seed(seed)\n            np → np")
exercise.mistake(three, "np.random.seed(seed) → pass")
exercise.mistake(three, "torch.manual_seed(seed) → pass")
exercise.mistake(three, "np.random.seed(seed) → np.random.default_rng(seed)")
exercise.mistake(three, "torch.manual_seed(seed) → torch.Generator().manual_seed(seed)")
itself = "Seed each generator with the seed itself."
exercise.mistake(itself, "np.random.seed(seed) → np.random.seed(random.randrange(2**32))")
exercise.mistake(itself, "np.random.seed(seed) → np.random.seed((seed + 1) % 2**32)")
exercise.mistake(
    "Python's generator doesn't continue where it left off: restore its state.", "random.setstate(of_python) → pass"
)
exercise.mistake(
    "NumPy's generator doesn't continue where it left off: restore its state.", "np.random.set_state(of_numpy) → pass"
)
exercise.mistake(
    "PyTorch's generator doesn't continue where it left off: restore "
    "its state.", "with torch.random.fork_rng(): → if True:"
)
exercise.mistake("After an error, the generators stay where the block left them.",
                 "try: → if True:", "finally: → if True:")  # fmt: skip
exercise.mistake("The error is swallowed; it has to propagate out of the block.",
                 "finally: → except BaseException:\n        pass\n    if True:")  # fmt: skip
exercise.mistake("A different error comes out instead of the block's own.",
                 "finally: → except BaseException as error:\n        raise RuntimeError('failed') from error\n    finally:")
seeding = "random.seed(seed)\n            np.random.seed(seed)\n            torch.manual_seed(seed)"
exercise.mistake("The block starts with different numbers each time: the generators aren't seeded yet when it begins.",
                 f"            {seeding}\n            yield →             yield\n            {seeding}")
exercise.mistake("After every block the generators start over with the same numbers; they should continue where "
                 "they left off.",
                 "random.setstate(of_python) → random.seed(0)", "np.random.set_state(of_numpy) → np.random.seed(0)")  # fmt: skip

# %% mistake: seeds when it is called
# says: The call seeded(7) alone, before the block begins, must not change any generator.
class seeded:
    def __init__(self, seed):
        self.states = random.getstate(), np.random.get_state(), torch.get_rng_state()
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        self.seed = seed

    def __enter__(self):
        random.seed(self.seed)
        np.random.seed(self.seed)
        torch.manual_seed(self.seed)

    def __exit__(self, *error):
        random.setstate(self.states[0])
        np.random.set_state(self.states[1])
        torch.set_rng_state(self.states[2])

# %% mistake: saves the states when it is called
# says: Restore the states from when the block began, not from when seeded was called.
class seeded:
    def __init__(self, seed):
        self.states = random.getstate(), np.random.get_state(), torch.get_rng_state()
        self.seed = seed

    def __enter__(self):
        random.seed(self.seed)
        np.random.seed(self.seed)
        torch.manual_seed(self.seed)

    def __exit__(self, *error):
        random.setstate(self.states[0])
        np.random.set_state(self.states[1])
        torch.set_rng_state(self.states[2])

# %% mistake: one place for the states of all blocks
# says: A block inside another one overwrites the states that the outer one has saved.
saved = {}

@contextmanager
def seeded(seed):
    saved.update(python=random.getstate(), numpy=np.random.get_state(), torch=torch.get_rng_state())
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    try:
        yield
    finally:
        random.setstate(saved["python"])
        np.random.set_state(saved["numpy"])
        torch.set_rng_state(saved["torch"])

# %% mistake: after an Exception, not after an interruption
# says: A KeyboardInterrupt isn't an Exception, but the states have to be restored after it, too.
@contextmanager
def seeded(seed):
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()

    def restore():
        random.setstate(states[0])
        np.random.set_state(states[1])
        torch.set_rng_state(states[2])

    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    try:
        yield
    except Exception:
        restore()
        raise
    restore()

# %% wrong: a place for each seed
saved = {}

@contextmanager
def seeded(seed):
    saved[seed] = random.getstate(), np.random.get_state(), torch.get_rng_state()
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    try:
        yield
    finally:
        random.setstate(saved[seed][0])
        np.random.set_state(saved[seed][1])
        torch.set_rng_state(saved[seed][2])

# %% wrong: only the outermost block counts
depth = 0

@contextmanager
def seeded(seed):
    global depth
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()
    depth += 1
    if depth == 1:
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
    try:
        yield
    finally:
        depth -= 1
        random.setstate(states[0])
        np.random.set_state(states[1])
        torch.set_rng_state(states[2])

# %% wrong: NumPy's state without the normal number that it has in reserve
@contextmanager
def seeded(seed):
    python, numpy = random.getstate(), np.random.get_state()[1:3]
    try:
        with torch.random.fork_rng():
            random.seed(seed)
            np.random.seed(seed)
            torch.manual_seed(seed)
            yield
    finally:
        random.setstate(python)
        np.random.set_state(("MT19937", *numpy))

# %% wrong: new seeds after the block
@contextmanager
def seeded(seed):
    old = random.randrange(2**32), np.random.randint(2**31), torch.initial_seed()
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    try:
        yield
    finally:
        random.seed(old[0])
        np.random.seed(old[1])
        torch.manual_seed(old[2])

# %% wrong: PyTorch starts over from its last seed
@contextmanager
def seeded(seed):
    python, numpy, torch_seed = random.getstate(), np.random.get_state(), torch.initial_seed()
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
        torch.manual_seed(torch_seed)

# %% wrong: 31 bits of the seed
# unseen: only seeds beyond 31 bits show it
@contextmanager
def seeded(seed):
    python, numpy = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng():
            for seed_it in (random.seed, np.random.seed, torch.manual_seed):
                seed_it(seed % 2**31)
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)

# %% wrong: zero taken for no seed
@contextmanager
def seeded(seed):
    python, numpy = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng():
            if seed:
                random.seed(seed)
                np.random.seed(seed)
                torch.manual_seed(seed)
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)

# %% wrong: an __exit__ that says the error was dealt with
class seeded:
    def __init__(self, seed):
        self.seed = seed

    def __enter__(self):
        self.states = random.getstate(), np.random.get_state(), torch.get_rng_state()
        random.seed(self.seed)
        np.random.seed(self.seed)
        torch.manual_seed(self.seed)

    def __exit__(self, kind, error, trace):
        random.setstate(self.states[0])
        np.random.set_state(self.states[1])
        torch.set_rng_state(self.states[2])
        return True

# %% wrong: no context manager
def seeded(seed):
    python, numpy = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng():
            random.seed(seed)
            np.random.seed(seed)
            torch.manual_seed(seed)
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)

# %% wrong: restores after an Exception, not after a KeyboardInterrupt (from the statement)
@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed random, NumPy and torch for a block; after it, each continues as if there had been no block."""
    python_state = random.getstate()
    numpy_state = np.random.get_state()

    def restore() -> None:
        random.setstate(python_state)
        np.random.set_state(numpy_state)

    with torch.random.fork_rng():
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        try:
            yield
        except Exception:
            restore()
            raise
    restore()

# %% wrong: saves the states when `seeded` is called (from the statement)
class seeded:
    """Seed random, NumPy and torch for a block; after it, each continues as if there had been no block."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.python_state = random.getstate()
        self.numpy_state = np.random.get_state()
        self.torch_state = torch.random.fork_rng()

    def __enter__(self) -> None:
        self.torch_state.__enter__()
        random.seed(self.seed)
        np.random.seed(self.seed)
        torch.manual_seed(self.seed)

    def __exit__(self, *error: Any) -> None:
        random.setstate(self.python_state)
        np.random.set_state(self.numpy_state)
        self.torch_state.__exit__(*error)

# %% wrong: raises the error "from None", which erases its cause (from the statement)
@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed random, NumPy and torch for a block; after it, each continues as if there had been no block."""
    python_state = random.getstate()
    numpy_state = np.random.get_state()
    with torch.random.fork_rng():
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        try:
            yield
        except BaseException as error:
            raise error from None  # a short traceback, without our lines
        finally:
            random.setstate(python_state)
            np.random.set_state(numpy_state)

# %% wrong: restores after an Exception and a KeyboardInterrupt, not after a SystemExit (from the statement)
# unseen: students see no block that exits
@contextmanager
def seeded(seed):
    python_state, numpy_state = random.getstate(), np.random.get_state()

    def restore():
        random.setstate(python_state)
        np.random.set_state(numpy_state)

    with torch.random.fork_rng():
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        try:
            yield
        except (Exception, KeyboardInterrupt):
            restore()
            raise
        restore()

# %% wrong: raises the error from its cause, even where there is none, which hides its context (from the statement)
# unseen: students see no error that is raised while another is handled
@contextmanager
def seeded(seed):
    python_state, numpy_state = random.getstate(), np.random.get_state()

    def restore():
        random.setstate(python_state)
        np.random.set_state(numpy_state)

    with torch.random.fork_rng():
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        try:
            yield
        except BaseException as error:
            restore()
            raise error from error.__cause__
        restore()

# %% right: a class
class seeded:
    def __init__(self, seed):
        self.seed = seed

    def __enter__(self):
        self.states = random.getstate(), np.random.get_state(), torch.get_rng_state()
        random.seed(self.seed)
        np.random.seed(self.seed)
        torch.manual_seed(self.seed)
        return self

    def __exit__(self, kind, error, trace):
        python, numpy, of_torch = self.states
        random.setstate(python)
        np.random.set_state(numpy)
        torch.set_rng_state(of_torch)
        return False

# %% right: a stack of what is to be done at the end
@contextmanager
def seeded(seed):
    from contextlib import ExitStack

    with ExitStack() as end:
        end.callback(random.setstate, random.getstate())
        end.callback(np.random.set_state, np.random.get_state(legacy=False))
        end.enter_context(torch.random.fork_rng(devices=[]))
        for seed_it in (random.seed, np.random.seed, torch.manual_seed):
            seed_it(seed)
        yield seed

# %% right: three blocks, one for each
@contextmanager
def one(seed, save, restore, seed_it):
    state = save()
    seed_it(seed)
    try:
        yield
    finally:
        restore(state)


@contextmanager
def seeded(seed):
    of_numpy = one(seed, np.random.get_state, np.random.set_state, np.random.seed)
    of_torch = one(seed, torch.get_rng_state, torch.set_rng_state, torch.default_generator.manual_seed)
    with one(seed, random.getstate, random.setstate, random.seed), of_numpy, of_torch:
        yield

# %% right: states of new generators, and GPUs one by one
def states():
    return random.getstate(), np.random.get_state(), torch.get_rng_state(), torch.cuda.get_rng_state_all()


def set_states(python, numpy, cpu, gpus):
    random.setstate(python)
    np.random.set_state(numpy)
    torch.set_rng_state(cpu)
    torch.cuda.set_rng_state_all(gpus)


@contextmanager
def seeded(seed):
    old = states()
    gpus = [torch.Generator(f"cuda:{n}").manual_seed(seed).get_state() for n in range(len(old[3]))]
    cpu = torch.Generator().manual_seed(seed).get_state()
    try:
        set_states(random.Random(seed).getstate(), np.random.RandomState(seed).get_state(), cpu, gpus)
        yield
    finally:
        set_states(*old)

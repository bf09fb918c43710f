from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of

exercise = Exercise("Draw each window's first position from generator; each row takes context + 1 tokens from there.")


def text_of(count, dtype, first=0, every=1):
    """Ids that are all different, in no order: up to 251 of them. They cannot be written to, as in a mapped file.

    They are each `every`-th number of an array; with -1, it's read from its end.
    """
    import numpy as np

    tokens = ((np.arange(count, dtype=np.int64) * 37 + 11) % 251 + first).astype(dtype)
    whole = np.zeros(count * abs(every), tokens.dtype)
    whole[::every] = tokens
    tokens = whole[::every]
    tokens.setflags(write=False)
    return tokens


def batches(student, count, dtype, batch, context, first=0, calls=1, every=1):
    """The inputs and targets of some calls."""
    import torch

    tokens, generator = text_of(count, dtype, first, every), torch.Generator().manual_seed(3)
    return [tuple(student.get_batch(tokens, batch, context, generator)) for _ in range(calls)]


def places(drawn, count, dtype, batch, context, first=0, calls=1, every=1):
    """The form of a batch, and how the places in the text of its tokens and of their targets are related."""
    place = {int(token): n for n, token in enumerate(text_of(count, dtype, first))}
    found = {"shapes": set(), "dtypes": set()}
    within, between, strange = set(), set(), set()
    if len(drawn) != calls:
        raise ValueError("one batch for each call")
    for inputs, targets in drawn:
        found["shapes"].add((tuple(inputs.shape), tuple(targets.shape)))
        found["dtypes"].add((str(inputs.dtype), str(targets.dtype)))
        strange |= {token for token in [*inputs.flatten().tolist(), *targets.flatten().tolist()] if token not in place}
        for row in inputs.tolist():
            pairs = zip(row, row[1:]) if isinstance(row, list) else []
            within |= {place.get(b, 0) - place.get(a, 0) for a, b in pairs}
        if inputs.shape == targets.shape:
            pairs = zip(inputs.flatten().tolist(), targets.flatten().tolist())
            between |= {place.get(b, 0) - place.get(a, 0) for a, b in pairs}
        else:
            between.add("inputs and targets have different shapes")
    return {
        "shapes of inputs and targets": [[list(s) for s in pair] for pair in sorted(found["shapes"])],
        "dtypes of inputs and targets": [list(pair) for pair in sorted(found["dtypes"])],
        "ids that aren't in the text": sorted(strange)[:5],
        "distances in the text from a token to the next in its row": sorted(within)[:5],
        "distances in the text from a token to its target": sorted(between, key=str)[:5],
    }


def often_drawn(student, windows, context, batch, calls, long=False):
    """The inputs of some calls.

    long: the text is 64 million tokens, the numbers below `windows` again and again, or "in order", each many times.
    """
    import numpy as np
    import torch

    if long:
        tokens = np.arange(windows, dtype=np.uint8)
        tokens = (np.repeat if long == "in order" else np.tile)(tokens, 2**26 // windows)
    else:
        tokens = text_of(windows + context, "uint16")
    generator = torch.Generator().manual_seed(int(torch.randint(2**31, (1,))))
    drawn = []
    for _ in range(calls):
        inputs, _ = student.get_batch(tokens, batch, context, generator)
        drawn.append(inputs)
    return drawn


def chance(drawn, windows, context, batch, calls, long=False):
    """How often each window comes, and how often the next row begins so many places after the one before.

    In a long text, places are counted in the numbers below `windows`.
    """
    import torch

    place = {n: n for n in range(windows)} if long else {int(token): n for n, token in enumerate(text_of(windows + context, "uint16"))}
    begins = []
    for inputs in drawn:
        begins += [place.get(row[0] if isinstance(row, list) else row, -1) for row in inputs.tolist()]
    steps = [(b - a) % windows for a, b in zip(begins, begins[1:])]
    centered = torch.tensor(begins, dtype=torch.float64) - sum(begins) / max(len(begins), 1)
    correlations = torch.fft.irfft(torch.fft.rfft(centered).abs() ** 2, n=max(len(begins), 1)).abs()
    return {
        "rows that begin at each place": [begins.count(n) for n in range(windows)],
        "rows that begin elsewhere": sum(not 0 <= n < windows for n in begins),
        "rows that begin 0, 1, 2, … places after the previous row (wrapping around)": [steps.count(n) for n in range(windows)],
        "largest correlation with the rows so many rows further on":
            (correlations[1:].max() / correlations[0]).item() if len(begins) > 1 and correlations[0] > 0 else 1.0,
    }  # fmt: skip


def sources(student, windows, context, batch):
    """What a batch depends on, and what it changes."""
    import random

    import numpy as np
    import torch

    def twin(generator):
        return torch.Generator().set_state(generator.get_state())

    def drawn(generator):
        return [tensor.tolist() for tensor in student.get_batch(tokens, batch, context, generator)]

    tokens = text_of(windows + context, "uint16")
    generator = torch.Generator().manual_seed(5)
    torch.rand(3, generator=generator)  # its state is no longer that of its seed
    states = {
        "PyTorch's": lambda: torch.get_rng_state().tolist(),
        "NumPy's": lambda: str(np.random.get_state(legacy=False)),
        "Python's": random.getstate,
    }
    before = {name: state() for name, state in states.items()}
    same = twin(generator)
    one, other = drawn(generator), drawn(same)
    later = drawn(generator)
    moved = [name for name, state in states.items() if state() != before[name]]
    return {
        "the same state gives the same batch": one == other,
        "the second call gives a different batch": one != later,
        "global generators that were used": moved,
    }


def tried(student, count, batch, context):
    """Whether get_batch raises, and what."""
    import torch

    student.get_batch(text_of(count, "uint16"), batch, context, torch.Generator().manual_seed(3))


def memory(student, count, batch, context, dtype="uint16", mapped=False, every=1):
    """The memory that a call asks NumPy and PyTorch for, and the shape of what comes. every: of more tokens, every nth."""
    import contextlib
    import pathlib
    import tempfile
    import tracemalloc

    import numpy as np
    import torch
    from torch.overrides import TorchFunctionMode
    from torch.utils._pytree import tree_leaves

    class Asked(TorchFunctionMode):
        """Adds up the bytes of all new tensors; a view has the storage of an argument."""

        def __torch_function__(self, operation, types, args=(), kwargs=None):
            result = operation(*args, **(kwargs or {}))
            old = {t.untyped_storage().data_ptr() for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)}
            self.bytes = getattr(self, "bytes", 0) + sum(
                t.untyped_storage().nbytes()
                for t in tree_leaves(result)
                if isinstance(t, torch.Tensor) and t.untyped_storage().data_ptr() not in old
            )
            return result

    with contextlib.ExitStack() as stack:
        tokens = np.zeros(count * every, dtype)
        if mapped:
            path = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))) / "ids.npy"
            np.save(path, tokens)
            tokens = np.load(path, mmap_mode="r")
        tokens = tokens[::every] if every > 1 else tokens
        generator = torch.Generator().manual_seed(0)
        tracemalloc.start()
        try:
            with Asked() as asked:
                inputs, _ = student.get_batch(tokens, batch, context, generator)
            peak = getattr(asked, "bytes", 0) + tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        return {"megabytes allocated": round(peak / 1e6, 1), "shape of the inputs": list(inputs.shape)}


FORM = ("shapes of inputs and targets", "dtypes of inputs and targets")
PLACES = ("ids that aren't in the text", "distances in the text from a token to the next in its row",
          "distances in the text from a token to its target")  # fmt: skip
dtypes = any_of("uint8", "uint16", "uint32", "int64", "int32", "int16")


@st.composite
def asked(draw):
    context = draw(st.integers(1, 20))
    calls, every = draw(st.integers(1, 3)), draw(any_of(1, 1, 3))
    return given(context + draw(st.integers(1, 60)), draw(dtypes), draw(st.integers(1, 8)), context, 0, calls, every)


@st.composite
def often(draw):
    """So many rows that each window comes about 300 times, in one call or in several.

    Batches of one and two rows are among the other cases: here, thousands of calls for each would take too long.
    """
    windows, batch = draw(st.integers(2, 8)), draw(any_of(7, 100, 2_400))
    return given(windows, draw(st.integers(1, 30)), batch, -(-300 * windows // batch))


@st.composite
def sizes(draw):
    """Texts that are long enough, just long enough, too short."""
    context = draw(st.integers(1, 30))
    count = draw(any_of(context - 1, context, context + 1, 0, 1) | st.integers(0, 60))
    return given(count, draw(st.integers(1, 4)), context)


says = "get_batch(tokens, batch={}, context={}, …), where tokens are {} ids, all different, in {}"
exercise.requirement(
    "inputs and targets are two int64 tensors of shape [batch, context]",
    points=0.25,
    probe=batches,
    summary=places,
    rules=dict.fromkeys(PLACES, "ignored"),
    visible=[
        given(40, "uint16", 3, 4, says=says.format(3, 4, 40, "uint16")),
        given(40, "int64", 5, 2, says=says.format(5, 2, 40, "int64")),
    ],
    edges={
        "one row": given(40, "uint16", 1, 4),
        "a context of 1": given(40, "uint16", 3, 1),
        "one of each": given(40, "uint8", 1, 1),
        "a single window": given(5, "uint16", 3, 4),
        "more rows than windows": given(9, "uint16", 50, 4),
        "the other order of bytes": given(40, ">u2", 3, 4),
        "signed": given(40, "int32", 3, 4),
    },
    domain=asked(),
    hint="Return two tensors with one row for each window, in int64, which both an embedding and cross_entropy accept.",
)
exercise.requirement(
    "each row is a window of tokens, and its targets are that window shifted by one token",
    points=0.5,
    probe=batches,
    summary=places,
    rules=dict.fromkeys(FORM, "ignored"),
    visible=[
        given(40, "uint16", 3, 4, 0, 20, says=f"20 calls to {says.format(3, 4, 40, 'uint16')}"),
        given(6, "uint8", 20, 5, says=says.format(20, 5, 6, "uint8")),
        given(30, "int64", 6, 1, says=says.format(6, 1, 30, "int64")),
    ],
    edges={
        "a context of 1": given(40, "uint16", 3, 1, 0, 20),
        "a long context": given(250, "uint8", 3, 240, 0, 20),
        "every other number of an array": given(40, "uint16", 3, 4, 0, 20, 2),
        "an array from its end to its beginning": given(40, "int64", 3, 4, 0, 20, -1),
        "ids beyond 16 bits": given(40, "uint32", 3, 4, 2**32 - 300, 5),
        "the largest of 16 bits": given(40, "uint16", 3, 4, 2**16 - 260, 5),
        "the other order of bytes": given(40, ">u2", 3, 4),
        "all ids of a byte": given(40, "uint8", 9, 4),
    },
    domain=asked(),
)
exercise.requirement(
    "every window is equally likely, the last one too, and the rows are drawn independently",
    points=0.5,
    probe=often_drawn,
    summary=chance,
    band=("rows that begin at each place", "rows that begin 0, 1, 2, … places after the previous row (wrapping around)",
          "largest correlation with the rows so many rows further on"),
    visible=[
        given(5, 3, 3, 700, says="700 calls to get_batch(tokens, batch=3, context=3, …) with 5 windows"),
        given(4, 2, 2, 600, says="600 calls to get_batch(tokens, batch=2, context=2, …) with 4 windows"),
    ],
    edges={
        "two windows": given(2, 6, 1000, 1),
        "many": given(12, 4, 4000, 1),
        "a row at a time": given(4, 2, 1, 800),
        "a context of 1": given(3, 1, 1500, 1),
        "more windows than float32 has numbers below 1": given(4, 3, 1500, 1, True),
        "a long text, up to its end": given(4, 3, 1500, 1, "in order"),
    },
    domain=often(),
    hint="A text of n tokens has n - context windows: each of them needs a target for its last token.",
)
exercise.requirement(
    "all randomness comes from generator: the same state gives the same batch, and the next call draws a new one",
    points=0.25,
    probe=sources,
    visible=[
        given(200, 4, 8, says="with 200 windows, two calls to get_batch with two generators in the same state, then one "
                              "more with the first generator"),
        given(1, 4, 8, says="with only one window, two calls to get_batch with two generators in the same state, then "
                            "one more with the first generator"),
    ],
    edges={"a row": given(240, 4, 1), "one token": given(1, 1, 1), "long": given(100, 150, 5)},
    domain=st.builds(given, st.just(1) | st.integers(150, 200), st.integers(1, 40), st.integers(4, 8)),
    hint="Most PyTorch functions that draw random numbers take generator=…; without it, they use the global one.",
)
exercise.requirement(
    "if there isn't even one window, a ValueError is raised",
    points=0.25,
    probe=tried,
    parts=["error"],
    visible=[
        given(4, 2, 4, says="get_batch(tokens, batch=2, context=4, …) with 4 tokens"),
        given(2, 2, 4, says="get_batch(tokens, batch=2, context=4, …) with 2 tokens"),
        given(5, 2, 4, says="get_batch(tokens, batch=2, context=4, …) with 5 tokens"),
    ],
    edges={
        "no tokens": given(0, 1, 1),
        "one, and a context of 1": given(1, 1, 1),
        "two, and a context of 1": given(2, 1, 1),
        "far too few": given(3, 2, 100),
        "just enough": given(101, 2, 100),
        "one window for several rows": given(2, 3, 1),
    },
    domain=sizes(),
    hint="A window needs context + 1 tokens, because its last token has a target too.",
)
# The smallest text below has 400,000 ids of one byte; a batch with all its indices takes less than a tenth of that.
HALF_OF_THE_TEXT = 0.2  # MB
exercise.requirement(
    "a call allocates no memory for the whole text",
    points=0.25,
    probe=memory,
    bounds={"megabytes allocated": (0, HALF_OF_THE_TEXT)},
    visible=[
        given(500_000, 4, 8, says="get_batch(tokens, batch=4, context=8, …) with 500,000 uint16 tokens"),
        given(400_000, 2, 16, "uint16", True, says="get_batch(tokens, batch=2, context=16, …) with 400,000 tokens "
                                                   "in a memory-mapped file"),
    ],
    edges={
        "int64": given(300_000, 4, 8, "int64"),
        "bytes": given(500_000, 1, 100, "uint8"),
        "one row": given(400_000, 1, 9),
        "every other token of a file": given(400_000, 4, 8, "uint16", True, 2),
    },
    # None of these draws the last window, so code that counts one too many fails elsewhere, and in every class.
    domain=st.builds(
        given, any_of(400_000, 450_000, 500_000, 550_000, 600_000), st.integers(1, 8), st.integers(1, 100), dtypes, st.booleans()
    ),
    hint="Pick the windows first, then convert what you have picked.",
)

draw = "torch.randint(windows, (batch, 1), generator=generator)"
rows = "rows = torch.from_numpy(tokens[places.numpy()].astype(np.int64))"
both = "return rows[:, :-1], rows[:, 1:]"
last = "The last window is never drawn. How many windows are there? The last one's final target is the last token of the text."
exercise.mistake(last,
                 "windows = len(tokens) - context → windows = len(tokens) - context - 1")  # fmt: skip
exercise.mistake("You draw from one window too many: the last one's final target would lie beyond the end of the text.",
                 "windows = len(tokens) - context → windows = len(tokens) - context + 1")  # fmt: skip
exercise.mistake(last, "torch.randint(windows, → torch.randint(max(windows - 1, 1),")
exercise.mistake("The first window is never drawn.", f"starts = {draw} → starts = torch.randint(min(1, windows - 1), windows, (batch, 1), generator=generator)",
                 together_with=["if windows < 1: → if windows < 2:"])  # fmt: skip
exercise.mistake("The targets are the inputs themselves; they should be one token later.", "return rows[:, :-1], rows[:, 1:] → return rows[:, :-1], rows[:, :-1]")
exercise.mistake("Inputs and targets are the wrong way "
                 "around: the targets come one token "
                 "later.", "return rows[:, :-1], rows[:, 1:] → return rows[:, 1:], rows[:, :-1]")
exercise.mistake("torch.roll wraps around: the last target is the row's first token.", "return rows[:, :-1], rows[:, 1:] → return rows[:, :-1], rows[:, :-1].roll(-1, 1)")
exercise.mistake("Each position has a target, not only the last one.", "return rows[:, :-1], rows[:, 1:] → return rows[:, :-1], rows[:, -1]")
exercise.mistake("A window takes context + 1 tokens; yours has one too few.", "torch.arange(context + 1) → torch.arange(context)")
exercise.mistake("Each row is a window; your result is transposed.", "return rows[:, :-1], rows[:, 1:] → return rows[:, :-1].T, rows[:, 1:].T")
exercise.mistake("Each row is a window: consecutive tokens of the text, in order.", "starts + torch.arange(context + 1) → starts + 2 * torch.arange(context + 1) % (context + 1)")
exercise.mistake("An embedding and cross_entropy take int64; your result has the file's dtype.", "].astype(np.int64) → ].copy()")
exercise.mistake("An embedding accepts int32, but cross_entropy doesn't: use int64.", "].astype(np.int64) → ].astype(np.int32)")
exercise.mistake("Ids are integers; your result contains floats.", "].astype(np.int64) → ].astype(np.float64)")
exercise.mistake("Not every uint16 id fits into int16: "
                 "large ones became negative.", "].astype(np.int64) → ].astype(np.int16).astype(np.int64)",
                 unseen="needs ids above 32,767")  # fmt: skip
exercise.mistake("Your code draws from PyTorch's global generator; all randomness has to come from the one passed in.", "(batch, 1), generator=generator) → (batch, 1))")
exercise.mistake("A generator that is reseeded in each call gives the same batch each time.",
                 "(batch, 1), generator=generator) → (batch, 1), generator=torch.Generator().manual_seed(generator.initial_seed()))",
                 together_with=["if windows < 1: → if windows < 2:"])  # fmt: skip
exercise.mistake("Your code seeds the global generator from the one passed in; leave the global one alone.",
                 f"{draw} → (torch.manual_seed(int(torch.randint(2**31, (1,), generator=generator))), torch.randint(windows, (batch, 1)))[1]")  # fmt: skip
exercise.mistake("Your code draws from NumPy's global generator; all randomness has to come from the one passed in.",
                 f"{draw} → torch.from_numpy(np.random.randint(windows, size=(batch, 1)))")  # fmt: skip
exercise.mistake("Your code allocates memory for the whole text: pick the windows, then convert.", f"{rows} → rows = torch.from_numpy(tokens.astype(np.int64)[places.numpy()])")
exercise.mistake("PyTorch raises a different error: check the number of windows before you draw.", "if windows < 1: → if False:")
exercise.mistake("A single window is enough to draw from: don't raise an "
                 "error in that case.", "if windows < 1: → if windows < 2:",
                 together_with=[f"{draw} → (torch.randint(windows, (1, 1), generator=generator) + torch.arange(batch)[:, None]) % windows",
                                f"{draw} → torch.randint(windows, (1, 1), generator=generator).expand(batch, 1)",
                                f"{draw} → context * torch.randint(max(windows // context, 1), (batch, 1), generator=generator)"])  # fmt: skip
exercise.mistake("Raise a ValueError if there's no window: a window takes at least context + 1 tokens.",
                 "if windows < 1: → if windows < 0:", f"starts = {draw} → starts = torch.randint(max(windows, 1), (batch, 1), generator=generator)",
                 "tokens[places.numpy()] → tokens[places.numpy() % len(tokens)]")  # fmt: skip
exercise.mistake("You raised a different error: it should be a ValueError.", "raise ValueError(f\"{len(tokens)} → raise IndexError(f\"{len(tokens)}")
exercise.mistake("Draw the rows independently; yours begin at consecutive positions.",
                 f"{draw} → (torch.randint(windows, (1, 1), generator=generator) + torch.arange(batch)[:, None]) % windows")  # fmt: skip
exercise.mistake("All rows are the same window: draw one for each.", f"{draw} → torch.randint(windows, (1, 1), generator=generator).expand(batch, 1)")
exercise.mistake("The same window may be drawn twice: rows are drawn independently.",
                 f"{draw} → torch.cat([torch.randperm(windows, generator=generator) for _ in range(batch // windows + 1)])[:batch, None]")  # fmt: skip
exercise.mistake("Windows may overlap: they can start at any token, not only at multiples of context.",
                 f"{draw} → context * torch.randint(max(windows // context, 1), (batch, 1), generator=generator)")  # fmt: skip

# %% wrong: in a large batch, every row comes three times
# unseen: batches are large only in the edges
def get_batch(tokens, batch, context, generator):
    windows = len(tokens) - context
    if windows < 1:
        raise ValueError("too few tokens")
    starts = torch.randint(windows, (batch if batch < 6 else -(-batch // 3),), generator=generator).repeat(3)[:batch]
    rows = torch.from_numpy(tokens[(starts[:, None] + torch.arange(context + 1)).numpy()].astype(np.int64))
    return rows[:, :-1], rows[:, 1:]

# %% wrong: one window too many
def get_batch(tokens, batch, context, generator):
    if len(tokens) < context + 1:
        raise ValueError("too few tokens")
    starts = torch.randint(len(tokens) - context + 1, (batch,), generator=generator)
    rows = np.stack([tokens[s : s + context + 1] for s in starts.tolist()]).astype(np.int64)
    return torch.from_numpy(rows[:, :-1]), torch.from_numpy(rows[:, 1:])

# %% wrong: a window too many, whose last target is missing
def get_batch(tokens, batch, context, generator):
    if len(tokens) < context + 1:
        raise ValueError("too few tokens")
    starts = torch.randint(len(tokens) - context, (batch,), generator=generator)
    return torch.tensor(np.stack([tokens[s : s + context] for s in starts.tolist()]).astype(np.int64))

# %% wrong: converts the whole text in torch
def get_batch(tokens, batch, context, generator):
    if len(tokens) < context + 1:
        raise ValueError("too few tokens")
    ids = torch.from_numpy(tokens).long()
    starts = torch.randint(len(ids) - context, (batch, 1), generator=generator)
    rows = ids[starts + torch.arange(context + 1)]
    return rows[:, :-1], rows[:, 1:]

# %% wrong: the targets two later
def get_batch(tokens, batch, context, generator):
    if len(tokens) < context + 1:
        raise ValueError("too few tokens")
    starts = torch.randint(max(len(tokens) - context - 1, 1), (batch, 1), generator=generator)
    places = (starts + torch.arange(context + 2)).clamp(max=len(tokens) - 1)
    rows = torch.from_numpy(tokens[places.numpy()].astype(np.int64))
    return rows[:, :-2], rows[:, 2:]

# %% wrong: rounds, so that the ends come half as often
def get_batch(tokens, batch, context, generator):
    windows = len(tokens) - context
    if windows < 1:
        raise ValueError("too few tokens")
    starts = (torch.rand(batch, 1, generator=generator) * (windows - 1)).round().long()
    rows = torch.from_numpy(tokens[(starts + torch.arange(context + 1)).numpy()].astype(np.int64))
    return rows[:, :-1], rows[:, 1:]

# %% wrong: draws places among all tokens and keeps them inside
def get_batch(tokens, batch, context, generator):
    windows = len(tokens) - context
    if windows < 1:
        raise ValueError("too few tokens")
    starts = torch.randint(len(tokens), (batch, 1), generator=generator).clamp(max=windows - 1)
    rows = torch.from_numpy(tokens[(starts + torch.arange(context + 1)).numpy()].astype(np.int64))
    return rows[:, :-1], rows[:, 1:]

# %% wrong: asks whether each token is far enough from the end
def get_batch(tokens, batch, context, generator):
    fits = np.arange(len(tokens)) + context < len(tokens)
    if not fits.any():
        raise ValueError("too few tokens")
    begins = torch.from_numpy(np.flatnonzero(fits))
    starts = begins[torch.randint(len(begins), (batch,), generator=generator)][:, None]
    rows = torch.from_numpy(tokens[(starts + torch.arange(context + 1)).numpy()].astype(np.int64))
    return rows[:, :-1], rows[:, 1:]

# %% wrong: starts from float32 random numbers, which have only 24 bits (from the statement)
# unseen: only more windows than float32 can tell apart show it
def get_batch(
    tokens: NDArray[Any], batch: int, context: int, generator: torch.Generator
) -> tuple[Int[Tensor, "batch context"], Int[Tensor, "batch context"]]:
    """Random windows, and the same one token later. Raises ValueError where there is none."""
    windows = len(tokens) - context
    if windows < 1:
        raise ValueError("the text is too short for one window")
    starts = (torch.rand(batch, generator=generator) * windows).long().clamp(max=windows - 1)
    rows = np.stack([tokens[s : s + context + 1].astype(np.int64) for s in starts.tolist()])
    rows = torch.from_numpy(rows)
    return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()

# %% wrong: a permutation, so that no window comes twice in a batch (from the statement)
def get_batch(
    tokens: NDArray[Any], batch: int, context: int, generator: torch.Generator
) -> tuple[Int[Tensor, "batch context"], Int[Tensor, "batch context"]]:
    """Random windows, and the same one token later. Raises ValueError where there is none."""
    windows = len(tokens) - context
    if windows <= 0:
        raise ValueError("the text is too short for one window")
    starts = torch.randperm(windows, generator=generator)[:batch].numpy()
    index = starts[:, None] + np.arange(context + 1)
    rows = torch.from_numpy(tokens[index].astype(np.int64))
    return rows[:, :-1], rows[:, 1:]

# %% wrong: int32 in between (from the statement)
# unseen: only ids beyond 31 bits show it
def get_batch(
    tokens: NDArray[Any], batch: int, context: int, generator: torch.Generator
) -> tuple[Int[Tensor, "batch context"], Int[Tensor, "batch context"]]:
    """Random windows, and the same one token later. Raises ValueError where there is none."""
    windows = len(tokens) - context
    if windows <= 0:
        raise ValueError("the text is too short for one window")
    starts = torch.randint(windows, (batch,), generator=generator).tolist()
    # Half the memory for the picked windows, widened at the very end.
    inputs = np.stack([tokens[s : s + context].astype(np.int32) for s in starts])
    targets = np.stack([tokens[s + 1 : s + 1 + context].astype(np.int32) for s in starts])
    return torch.from_numpy(inputs).long(), torch.from_numpy(targets).long()

# %% wrong: windows by as_strided, as if the ids were next to each other in memory (from the statement)
# unseen: students see arrays whose numbers are next to each other
def get_batch(tokens, batch, context, generator):
    count = tokens.size - context
    if count <= 0:
        raise ValueError("too few tokens")
    steps = (tokens.itemsize, tokens.itemsize)
    windows = np.lib.stride_tricks.as_strided(tokens, shape=(count, context + 1), strides=steps, writeable=False)
    starts = torch.randint(0, count, (batch,), generator=generator)
    rows = torch.from_numpy(windows[starts.numpy()].astype(np.int64))
    return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()

# %% wrong: np.take copies an array that is not contiguous (from the statement)
# unseen: the visible texts are contiguous
def get_batch(tokens, batch, context, generator):
    count = len(tokens) - context
    if count < 1:
        raise ValueError(f"{len(tokens)} tokens, but a window needs {context + 1}")
    starts = torch.randint(count, (batch,), generator=generator)
    positions = starts.numpy()[:, None] + np.arange(context + 1)
    rows = torch.from_numpy(np.take(tokens, positions).astype(np.int64))
    return rows[:, :-1], rows[:, 1:]

# %% wrong: no copy of int64 tokens, which torch refuses where they run backward (from the statement)
# unseen: students see arrays in their own order
def get_batch(
    tokens: NDArray[Any], batch: int, context: int, generator: torch.Generator
) -> tuple[Int[Tensor, "batch context"], Int[Tensor, "batch context"]]:
    """Random windows and their targets, one token later. Raises ValueError if there is no window."""
    high = len(tokens) - context
    if high < 1:
        raise ValueError("not enough tokens")
    starts = torch.randint(high, (batch,), generator=generator).tolist()

    def window(start: int) -> Tensor:
        part = tokens[start : start + context].astype(np.int64, copy=False)
        return torch.from_numpy(part)

    inputs = torch.stack([window(start) for start in starts])
    targets = torch.stack([window(start + 1) for start in starts])
    return inputs, targets

# %% right: slices, one after the other
def get_batch(tokens, batch, context, generator):
    if len(tokens) <= context:
        raise ValueError("too few tokens")
    inputs = torch.empty(batch, context, dtype=torch.int64)
    targets = torch.empty(batch, context, dtype=torch.int64)
    for row in range(batch):
        start = int(torch.randint(0, len(tokens) - context, (), generator=generator))
        inputs[row] = torch.from_numpy(tokens[start : start + context].astype(np.int64))
        targets[row] = torch.from_numpy(tokens[start + 1 : start + 1 + context].astype(np.int64))
    return inputs, targets

# %% right: windows as a view
def get_batch(tokens, batch, context, generator):
    if len(tokens) < context + 1:
        raise ValueError("too few tokens")
    views = np.lib.stride_tricks.sliding_window_view(tokens, context + 1)
    chosen = torch.randint(len(views), (batch,), generator=generator).numpy()
    rows = torch.tensor(views[chosen].astype(np.int64))
    return rows[:, :context].contiguous(), rows[:, 1:].contiguous()

# %% right: a NumPy generator, seeded from the given one
def get_batch(tokens, batch, context, generator):
    count = len(tokens) - context
    if count <= 0:
        raise ValueError(f"{len(tokens)} tokens, context {context}")
    rng = np.random.default_rng(int(torch.randint(2**62, (1,), generator=generator)))
    starts = rng.integers(0, count, batch)
    x = np.stack([tokens[s : s + context] for s in starts]).astype(np.int64)
    y = np.stack([tokens[s + 1 : s + context + 1] for s in starts]).astype(np.int64)
    return [torch.from_numpy(x), torch.from_numpy(y)]

# %% right: random numbers, scaled
def get_batch(tokens, batch, context, generator):
    windows = len(tokens) - context
    if windows < 1:
        raise ValueError("too few tokens")
    chance = torch.rand(batch, generator=generator, dtype=torch.float64)
    starts = (chance * windows).long().tolist()
    rows = torch.stack([torch.as_tensor(tokens[s : s + context + 1].astype("int64")) for s in starts])
    return rows[:, :-1], rows[:, 1:]

# %% right: the remainder of 31 random bits
def get_batch(tokens, batch, context, generator):
    windows = len(tokens) - context
    if windows <= 0:
        raise ValueError("the text is too short for a single window")
    bits = torch.empty(batch, dtype=torch.int32).random_(generator=generator)
    starts = (bits % windows).tolist()
    rows = torch.from_numpy(np.stack([tokens[start : start + context + 1].astype(np.int64) for start in starts]))
    return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()

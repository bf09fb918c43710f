# %% [markdown]
r"""
# 09 · The training loop

> **What must a run remember, so that pulling the plug costs nothing?**

You have a model, its gradients and an optimizer. What is missing is everything around them: where the tokens come from,
how a batch gets to the device, what a seed promises, which learning rate, and what to do when the machine stops. It
will stop. While Llama 3.1 405B was trained on 16,384 GPUs, its makers counted 419 unexpected interruptions in 54 days:
one in three hours. So this lecture ends with a power cut. You will have built, from your own parts, a run that is
killed in the middle, resumed from disk by a process that knows nothing, and lies *bit for bit* on the run that was
never interrupted.

How to read: run the cells in order (<kbd>Shift</kbd> + <kbd>Enter</kbd>). Where a cell says *predict*, write your
number first; being wrong is how you find out what to look at. The cell below each exercise checks your answer and names
the likely mistake; **Validate** in the toolbar runs them all.
"""

# %%
import copy
import io
import itertools
import math
import os
import pickle
import random
import sysconfig
import tempfile
import time
import tracemalloc
import warnings
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from course_utils import checkpoint, data, facts, plots, timing
from course_utils import device as devices
from course_utils.facts import FACTS
from course_utils.predict import reconcile
from course_utils.progress import show_progress
from course_utils.units import format_bytes, readable

device = devices.pick_device()
print(devices.describe(device))
show_progress()

# %%
days, failures, gpus = (
    FACTS[f"Llama 3.1 405B {what}"].value
    for what in ("observed", "unexpected interruptions", "devices")
)
assert (days, failures, gpus) == (54, 419, 16_384)
one_failure = days * 24 * 3600 / failures  # seconds
assert round(one_failure / 3600, 1) == 3.1
facts.table("Llama 3.1 405B observed", "Llama 3.1 405B unexpected interruptions")

# %% [markdown]
r"""
## 1 · Tokens on disk

For a language model, text is a row of whole numbers, the **token ids**. A tokenizer makes them, once, before training;
then they lie in a file. What does that file cost?

That depends on the integer. A vocabulary of 50,257 tokens (GPT-2 and GPT-3) has ids up to 50,256, and those fit into 16
bits. Llama 3 has 128,256 tokens. That is too many for 16 bits, so each takes 32.
"""

# %% tags=["item-74"]
small, large = FACTS["GPT-3 vocabulary"].value, FACTS["Llama 3.1 vocabulary"].value
assert (small, large) == (50_257, 128_256)
assert small - 1 <= np.iinfo(np.uint16).max == 65_535 < large - 1

gpt3, llama3 = FACTS["GPT-3 tokens"], FACTS["Llama 3.1 405B tokens"]
print(f"GPT-3, {gpt3}:   {readable(gpt3.value * 2, 'B')} as uint16")
print(f"the same as int64:             {readable(gpt3.value * 8, 'B')}")
print(f"Llama 3, {llama3}: {readable(llama3.value * 4, 'B')} as uint32")
assert gpt3.value * 2 == 600e9 and llama3.value * 4 == 62.4e12

# %% [markdown]
r"""
int64 is what PyTorch makes of Python's integers, and it would take four times the disk and four times the reading for
not a bit of information more.

Now a file. NumPy arrays have a method `tofile`, and many tutorials use it like this:
"""

# %%
scratch = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
folder = Path(scratch.name)  # gone when the notebook closes

ids = np.array([1, 2, 3, 4], dtype=np.uint16)
ids.tofile(folder / "data.npy")
print((folder / "data.npy").read_bytes())
assert (folder / "data.npy").stat().st_size == 8

# %% [markdown]
r"""
Four numbers of two bytes. Nothing else: no dtype, no length, no order of the bytes. The name says `.npy`, and that is
all that it has of an .npy file.

**Predict.** Somebody reads this file as int32. The bytes are `01 00 02 00 03 00 04 00`, and the low byte of a number
comes first. Which number do they see first?
"""

# %%
guess = None  # an id

# %%
misread = np.fromfile(folder / "data.npy", dtype="<i4")  # <i4: int32, low byte first
reconcile("the first id", guess, int(misread[0]), "")

assert misread.tolist() == [1 + 2 * 2**16, 3 + 4 * 2**16] == [131_073, 262_147]

# %% [markdown]
r"""
No error, no warning: half as many tokens, all of them wrong. In the other direction it is harder to notice: ids below
65,536, written as int32 and read as uint16, are all there, each followed by a 0. And a 0 in every second place is easy
to predict, so the loss may even look *better*.

> **Trap: three ways to fool yourself with one file.** (1) `tofile` writes raw bytes, whatever the file is called. (2)
> `np.load` refuses it, with a message that speaks of pickles and `allow_pickle`. Do not follow that: a pickle can
> hide code, which runs when it is loaded. (3) `np.memmap` opens it gladly, as *bytes* (its default dtype is uint8), and
> for reading *and writing* (its default mode is `r+`): one slip changes your data set on disk.
"""

# %% tags=["error-7"]
try:
    np.load(folder / "data.npy")
    raise AssertionError("np.load took raw bytes")
except ValueError as refusal:
    print(refusal)

mapped = np.memmap(folder / "data.npy")
assert mapped.dtype == np.uint8 and mapped.mode == "r+"
mapped[0] = 255  # a slip
mapped.flush()
assert np.fromfile(folder / "data.npy", dtype="<u2")[0] == 255  # the file has changed

as_int32 = np.array([17, 4, 9], dtype="<i4").tobytes()
assert np.frombuffer(as_int32, dtype="<u2").tolist() == [17, 0, 4, 0, 9, 0]
del mapped

# %% [markdown]
r"""
The cure is old and simple: a real .npy file. `np.save` writes a header first, 128 bytes for our purposes, with
dtype, byte order and shape. And `np.load(path, mmap_mode="r")` does not read the file; it **maps** it: the array looks
like any other, but its elements are fetched from disk when you touch them, page by page, and the pages can be thrown
away again. So it does not matter whether the file is larger than your memory. `"r"` means read-only.

**Predict.** A file of $2^{24}$ tokens in uint16 is 34 MB. You map it and copy one window of 1,025 tokens as int64. How
many bytes of memory does NumPy ask for, in all?
"""

# %%
guess = None  # B


# %% tags=["item-74"]
def asked_for(f: Callable[[], object]) -> int:
    """Bytes that NumPy has asked for and that the result of f holds."""
    tracemalloc.start()
    result = f()
    arrays = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
    held = tracemalloc.take_snapshot().filter_traces([arrays])
    tracemalloc.stop()
    del result
    return sum(trace.size for trace in held.traces)


np.save(folder / "many.npy", np.zeros(2**24, dtype=np.uint16))
assert (folder / "many.npy").stat().st_size == 128 + 2 * 2**24
print((folder / "many.npy").read_bytes()[:60])

many = np.load(folder / "many.npy", mmap_mode="r")
part = asked_for(lambda: np.load(folder / "many.npy", mmap_mode="r")[5_000:6_025].astype(int))
whole_file = asked_for(lambda: np.load(folder / "many.npy"))
reconcile("one window of a mapped file", guess, part, "B")
print(f"np.load without mmap_mode: {readable(whole_file, 'B')}")
assert part == 8 * 1_025 and whole_file == 2 * 2**24

try:
    many[0] = 1
    raise AssertionError("a file that was opened with mode r could be written")
except ValueError as refusal:
    print(refusal)

# %% [markdown]
r"""
The window itself, 8 × 1,025 bytes, and not one more. (The file's pages that were touched are in memory as well, but
those belong to the operating system, which takes them back when it needs the room, and shares them among processes.)

*Try it yourself:* open `many.npy` in mode `"c"`, *copy on write*. Write to an element. Is the file changed?

### Exercise 9.1 · Tokens, written and opened &nbsp; ★★☆ &nbsp; 15 minutes

Write two functions. `write_tokens(path, tokens, vocab_size)` writes a list of ids as a .npy file, in the *smallest* of
uint8, uint16 and uint32 that holds every id 0 … `vocab_size` − 1 (not only those that happen to occur). An id that the
vocabulary does not have, or a negative one, raises a `ValueError`, and then nothing is written. And `open_tokens(path,
vocab_size)` maps such a file, read-only. If its dtype is not the one that `vocab_size` calls for, it raises a
`ValueError`, also where the dtype is as large but another one, or has its bytes in the other order. `path` is a `Path`
that ends in `.npy`; there is at least one token, and at most $2^{32}$ in the vocabulary.
"""


# %% nbgrader={"grade": false, "grade_id": "write_tokens", "locked": false, "schema_version": 3, "solution": true, "task": false}
def write_tokens(path: Path, tokens: list[int], vocab_size: int) -> None:
    """Write ids as a .npy file, in the smallest unsigned dtype that holds the vocabulary."""
    ### BEGIN SOLUTION
    if min(tokens) < 0 or max(tokens) >= vocab_size:
        raise ValueError(f"there is an id that a vocabulary of {vocab_size} does not have")
    np.save(path, np.array(tokens, dtype=np.min_scalar_type(vocab_size - 1)))
    ### END SOLUTION


def open_tokens(path: Path, vocab_size: int) -> NDArray[Any]:
    """Map a file of ids, read-only. Raises ValueError for another dtype than vocab_size's."""
    ### BEGIN SOLUTION
    wanted = np.min_scalar_type(vocab_size - 1)
    tokens: NDArray[Any] = np.load(path, mmap_mode="r")
    if tokens.dtype != wanted:
        raise ValueError(f"{path} holds {tokens.dtype}; wanted {wanted}")
    return tokens
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_write_tokens", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
from course_utils.testing import expect, observe, probe


@probe
def written(student, ids, vocab_size):
    """What write_tokens leaves: [names of files, dtype, ids]."""
    import pathlib
    import tempfile

    import numpy as np

    with tempfile.TemporaryDirectory() as place:
        try:
            student.write_tokens(pathlib.Path(place) / "ids.npy", ids, vocab_size)
        except ValueError:
            if any(pathlib.Path(place).iterdir()):
                raise RuntimeError("a file was written before the ids were looked at") from None
            raise
        names = sorted(found.name for found in pathlib.Path(place).iterdir())
        if "ids.npy" not in names:
            return [names]
        try:
            array = np.load(pathlib.Path(place) / "ids.npy")
        except (ValueError, EOFError):
            return [names, "not a .npy file"]
        return [names, array.dtype.str, array.tolist()]


@probe
def opened(student, ids, stored, vocab_size):
    """What open_tokens makes of ids stored in a dtype: [dtype, ids, mapped, can be written]."""
    import mmap
    import pathlib
    import tempfile

    import numpy as np

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        path = pathlib.Path(place) / "ids.npy"
        np.save(path, np.array(ids, dtype=stored))
        tokens = student.open_tokens(path, vocab_size)
        base, mapped = tokens, False
        while base is not None and not mapped:
            mapped = isinstance(base, mmap.mmap)
            base = getattr(base, "base", None)
        return [tokens.dtype.str, tokens.tolist(), mapped, bool(tokens.flags.writeable)]


def writing_mistakes(ids, right):
    raw = "That is no .npy file. tofile writes raw bytes, whatever the name; np.save does not."
    signed = (
        "That is a signed type: half of its range is for negative numbers, and no id is one."
    )
    reasons = {
        "|u1": "One byte holds 256 ids: take the vocabulary's size, not the ids that occur.",
        "<u2": "Two bytes hold 65,536 ids. Is the dtype the smallest, and large enough?",
        "<u4": "uint32 is right, but not the smallest that holds the vocabulary.",
        "<u8": "uint64 holds them, and takes two to eight times the bytes.",
        "<i8": "That is int64, NumPy's default: up to eight times the bytes.",
        "<i4": signed,
        "<i2": signed,
        "|i1": signed,
        "<f8": "Ids are whole numbers; those are floats.",
        "<f4": "Ids are whole numbers; those are floats.",
    }
    wrong = [([["ids.npy"], "not a .npy file"], raw)]
    for dtype, why in reasons.items():
        if dtype != right:
            wrong.append(([["ids.npy"], dtype, ids], why))
    return wrong


by_vocabulary = "The dtype follows from vocab_size alone: its largest id is vocab_size - 1."
seen = observe(written, [0, 5, 200], 50_257)
want = [["ids.npy"], "<u2", [0, 5, 200]]
expect(seen.value, want, mistakes=writing_mistakes([0, 5, 200], "<u2"), hint=by_vocabulary)
seen = observe(written, [0, 255], 256)
want = [["ids.npy"], "|u1", [0, 255]]
expect(seen.value, want, mistakes=writing_mistakes([0, 255], "|u1"), hint=by_vocabulary)
not_checked = "Nothing was raised: compare the ids with 0 and vocab_size before you write them."
raised = {
    None: not_checked,
    "OverflowError": "NumPy noticed; raise a ValueError yourself, first.",
    "RuntimeError": "A file was written before the ids were looked at: look first, then write.",
}
for ids in ([3, 300, 1], [3, -1]):
    seen = observe(written, ids, 300)
    expect(seen.error, "ValueError", about="error", mistakes=raised)
copied = "That reads the whole file; map it, with mmap_mode."
can_write = "It can be written to: ask for mode 'r'. One slip would change the data set."
seen = observe(opened, [7, 0, 300], "<u2", 301)
mistakes = [
    (["<u2", [7, 0, 300], False, False], copied),
    (["<u2", [7, 0, 300], False, True], copied),
    (["<u2", [7, 0, 300], True, True], can_write),
]
header = "np.load knows where the header of a .npy file ends; np.memmap takes it for tokens."
expect(seen.value, ["<u2", [7, 0, 300], True, False], mistakes=mistakes, hint=header)
for stored in ("<i4", "|u1", ">u2"):
    silent = f"Nothing was raised: the file holds {stored}, and 301 ids call for <u2."
    seen = observe(opened, [7, 0, 30], stored, 301)
    hint = "Raise a ValueError: that is the wrong dtype for this vocabulary."
    expect(seen.error, "ValueError", about="error", mistakes={None: silent}, hint=hint)
### BEGIN HIDDEN TESTS
from course_utils.testing import draws

draw = draws()
edges = [
    (1, "|u1"),
    (256, "|u1"),
    (257, "<u2"),
    (2**16, "<u2"),
    (2**16 + 1, "<u4"),
    (2**32, "<u4"),
]
edges += [(draw.integer(2, 255), "|u1"), (draw.integer(300, 65_000), "<u2")]
edges += [(draw.integer(70_000, 2**31), "<u4")]
for vocab_size, dtype in edges:
    ids = [draw.integer(0, vocab_size - 1) for _ in range(draw.integer(1, 9))] + [
        vocab_size - 1
    ]
    seen = observe(written, ids, vocab_size)
    mistakes = writing_mistakes(ids, dtype)
    expect(seen.value, [["ids.npy"], dtype, ids], mistakes=mistakes, hint=by_vocabulary)
    small = [min(i, 3, vocab_size - 1) for i in ids]
    seen = observe(written, small, vocab_size)
    mistakes = writing_mistakes(small, dtype)
    expect(seen.value, [["ids.npy"], dtype, small], mistakes=mistakes, hint=by_vocabulary)
    seen = observe(written, [*ids, vocab_size, 0], vocab_size)
    expect(seen.error, "ValueError", about="error for an id too large", mistakes=raised)
    seen = observe(written, [*ids, -1, 0], vocab_size)
    expect(seen.error, "ValueError", about="error for a negative id", mistakes=raised)
    seen = observe(opened, ids, dtype, vocab_size)
    mistakes = [
        ([dtype, ids, False, False], copied),
        ([dtype, ids, False, True], copied),
        ([dtype, ids, True, True], can_write),
    ]
    expect(seen.value, [dtype, ids, True, False], mistakes=mistakes)
    for other in ("|u1", "<u2", "<u4", "<i2", "<i4", "<i8", "<u8", ">u2", ">u4"):
        if other != dtype:
            seen = observe(opened, small, other, vocab_size)
            hint = f"The file holds {other}, and {vocab_size} ids call for {dtype}: ValueError."
            expect(seen.error, "ValueError", about="error", hint=hint)
### END HIDDEN TESTS

# %% [markdown]
r"""
<details><summary>Hint 1</summary>One byte holds the ids 0 to 255, so it is enough for a vocabulary of 256, not of 257. <code>np.min_scalar_type(n)</code> tells the smallest type that holds <code>n</code>.</details>
<details><summary>Hint 2</summary><code>min(tokens)</code> and <code>max(tokens)</code> tell whether an id is outside. A dtype knows its kind, size and byte order, and <code>!=</code> compares all three.</details>

**Why it matters.** Wrong tokens raise no error anywhere further down. The only place to notice is where the file is
opened.

The course has a careful version of the two, `course_utils.data`, which the capstone will use. Yours catches the dtype.
What else goes wrong with files? It asks, and says what to do:
"""

# %%
rng = np.random.default_rng(0)
sample = rng.integers(0, 50_000, 5_000)
data.write_tokens(folder / "good.npy", sample, vocab_size=50_257)
good = (folder / "good.npy").read_bytes()

(folder / "cut_short.npy").write_bytes(good[:-1_000])
np.save(folder / "big_endian.npy", sample.astype(">u2"))
np.save(folder / "signed.npy", sample.astype(np.int32))
sample.astype(np.uint16).tofile(folder / "raw.npy")
np.save(folder / "strange_id.npy", np.append(sample, 50_300).astype(np.uint16))

opened_well = data.open_tokens(folder / "good.npy", vocab_size=50_257, check_ids=True)
assert opened_well.tolist() == sample.tolist()
for name in ("cut_short", "big_endian", "signed", "raw", "strange_id"):
    try:
        data.open_tokens(folder / f"{name}.npy", vocab_size=50_257, check_ids=True)
        raise AssertionError(f"{name}.npy was taken")
    except ValueError as error:
        print(f"- {str(error).replace(f'{folder}{os.sep}', '')}")

# %% [markdown]
r"""
The text that we train on is one that you have already: Python's own standard library, its source. Each byte is a token,
so the vocabulary has 256, and no tokenizer is needed. You write the file, and you open it:
"""

# %%
sources = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
text = b"".join(source.read_bytes() for source in sources)[:1_000_000]
write_tokens(folder / "python.npy", list(text), 256)
tokens = open_tokens(folder / "python.npy", 256)

print(f"{len(tokens):,} tokens, {format_bytes((folder / 'python.npy').stat().st_size)}")
print(bytes(tokens[:60]).decode())
assert len(tokens) == len(text) and bytes(tokens[1_000:1_050]) == text[1_000:1_050]
assert (folder / "python.npy").stat().st_size == len(text) + 128

# %% [markdown]
r"""
## 2 · Batches

A batch is $B$ windows of $T$ tokens, taken from random places. What is to be predicted at each position is simply the
token that comes next: the **targets** are the same windows, one token later.

| | | | | |
|---|---|---|---|---|
| inputs | `d` | `e` | `f` | ` ` |
| targets | `e` | `f` | ` ` | `t` |

So a window of $T$ inputs takes $T + 1$ tokens of the text.

**Predict.** A text of 12 tokens, windows of 4 inputs with their targets. How many different windows are there?
"""

# %%
guess = None  # windows

# %% tags=["item-75"]
text_of_12 = np.arange(100, 112, dtype=np.uint16)
context = 4
windows = [
    text_of_12[start : start + context + 1]
    for start in range(len(text_of_12))
    if start + context + 1 <= len(text_of_12)
]
reconcile("windows", guess, len(windows), "")

assert len(windows) == len(text_of_12) - context == 8
assert windows[-1][-1] == text_of_12[-1]  # the last one ends with the text

# %% [markdown]
r"""
$N - T$ windows, which begin at $0, \dots, N - T - 1$.

> **Find the mistakes.** Here is a function as one finds it in many retellings. It runs, and what it returns looks like a
> batch. Four things are wrong with it, and a fifth is unwise. Find them before you run the cell after it.
"""


# %%
def get_batch_as_found(tokens: NDArray[Any], batch: int, context: int) -> Tensor:
    starts = torch.randint(len(tokens) - context, (batch,))
    return torch.tensor([tokens[start : start + context] for start in starts])


# %% tags=["error-13"]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    drawn = get_batch_as_found(text_of_12, 500, 4)
message = str(caught[0].message).split(" (")[0]

# 1. Only inputs: what should the model predict at the last position?
assert drawn.shape == (500, 4)
# 2. Without targets, a window may begin at 8. randint leaves its upper end out.
assert drawn[:, 0].long().max() == 107 and not (drawn == 111).any()  # never the last token
# 3. A list of arrays is converted number by number.
assert "extremely slow" in message
print(message)
# 4. It keeps 16 bits, and an embedding looks up int32 or int64 only.
assert drawn.dtype == torch.uint16
try:
    nn.Embedding(200, 2)(drawn)
    raise AssertionError("an embedding took uint16")
except RuntimeError as error:
    print(str(error).split(";")[0])

# %% tags=["timed"]
places = np.random.default_rng(0).integers(0, len(tokens) - 1_024, 32)
rows = places[:, None] + np.arange(1_024)
slow = timing.benchmark(lambda: torch.tensor([tokens[p : p + 1_024] for p in places]))
fast = timing.benchmark(lambda: torch.from_numpy(tokens[rows].astype(np.int64)))
print(f"32 windows of 1,024, list of arrays:  {slow}")
print(f"32 windows of 1,024, one index array: {fast}")

# %% [markdown]
r"""
The unwise part: it draws from PyTorch's *global* generator, like everything else. One dropout more, and all batches
after it are others. Section 4 comes back to that; a batch should have a generator of its own.

> **Trap.** A mapped array is read-only, and `torch.from_numpy` of it is a tensor that PyTorch *thinks* it may write to.
> It warns, once. `astype(np.int64)` makes a copy, so all is well after it. Make that copy *after* you have picked the
> windows: `tokens.astype(np.int64)` would fetch the whole file into memory, eight bytes a token.

### Exercise 9.2 · A batch &nbsp; ★★☆ &nbsp; 15 minutes

Write `get_batch(tokens, batch, context, generator)`: inputs and targets, two tensors int64 `[batch, context]`. Each row
is a window of `tokens` (an array of whole numbers in one dimension, often a mapped one, of any size), and its targets
are the window one token later. Each window is as likely as each other, the last one too, and the rows are drawn
independently. All chance comes from `generator`, a `torch.Generator`: the same state gives the same batch, and a second
call another. If there is not a single window, raise a `ValueError`. And read only what you need: a call must not take
memory for the whole text.
"""


# %% nbgrader={"grade": false, "grade_id": "get_batch", "locked": false, "schema_version": 3, "solution": true, "task": false}
def get_batch(
    tokens: NDArray[Any], batch: int, context: int, generator: torch.Generator
) -> tuple[Int[Tensor, "batch context"], Int[Tensor, "batch context"]]:
    """Random windows, and the same one token later. Raises ValueError where there is none."""
    ### BEGIN SOLUTION
    windows = len(tokens) - context
    if windows < 1:
        raise ValueError(f"{len(tokens)} tokens are too few for context {context}")
    starts = torch.randint(windows, (batch, 1), generator=generator)
    places = starts + torch.arange(context + 1)
    rows = torch.from_numpy(tokens[places.numpy()].astype(np.int64))
    return rows[:, :-1], rows[:, 1:]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_get_batch", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
import torch

from course_utils.testing import expect, observe, probe


@probe
def drawn_batches(student, ids, dtype, batch, context, seed, count=1):
    """count batches, one after the other: a list of (inputs, targets)."""
    import numpy as np
    import torch

    tokens = np.array(ids, dtype=dtype)
    tokens.setflags(write=False)
    generator = torch.Generator().manual_seed(seed)
    return [tuple(student.get_batch(tokens, batch, context, generator)) for _ in range(count)]


@probe
def side_effects(student):
    """Which global generators two calls move, and whether the one given moves."""
    import random

    import numpy as np
    import torch

    generator = torch.Generator().manual_seed(1)
    own = generator.get_state()
    states = {
        "torch": lambda: torch.get_rng_state().tolist(),
        "numpy": lambda: str(np.random.get_state(legacy=False)),
        "random": random.getstate,
    }
    before = {name: state() for name, state in states.items()}
    for _ in range(2):
        student.get_batch(np.arange(50, dtype=np.uint16), 3, 4, generator)
    moved = [name for name, state in states.items() if state() != before[name]]
    return [moved, not torch.equal(own, generator.get_state())]


@probe
def takes(student, count, batch, context):
    """Bytes of memory that one call takes at its peak, for count tokens of two bytes."""
    import tracemalloc

    import numpy as np
    import torch

    from course_utils.memory import track

    tokens = (np.arange(count) % 60_000).astype(np.uint16)
    generator = torch.Generator().manual_seed(0)
    with track("cpu"):  # the first time, libraries set themselves up
        student.get_batch(tokens, batch, context, generator)
    tracemalloc.start()
    try:
        with track("cpu") as memory:
            student.get_batch(tokens, batch, context, generator)
        return memory.peak + tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def check_batches(seen, ids, batch, context):
    """Judge batches drawn from ids, which are all different; return where their rows begin."""
    shaped = "Return two tensors [batch, context]: the inputs and the targets."
    if not isinstance(seen.value, list):  # it raised
        expect(seen.value, "a batch")
    begins = []
    for found in seen.value:
        expect(len(found), 2, about="how many tensors are returned", hint=shaped)
        inputs, targets = found
        for name, tensor in (("inputs", inputs), ("targets", targets)):
            shape = list(tensor.shape) if isinstance(tensor, torch.Tensor) else f"{tensor}"
            wrong = {
                "[]": shaped,
                f"[{context}, {batch}]": "Rows are windows: that is transposed.",
                f"[{batch}]": "Each position has a target, not only the last one.",
                f"[{batch}, {context + 1}]": "That is one too many: context of each.",
                f"[{batch}, {context - 1}]": "A window takes context + 1 tokens; one was lost.",
            }
            expect(
                str(shape), f"[{batch}, {context}]", about=f"shape of {name}", mistakes=wrong
            )
            kinds = {
                "torch.uint16": "An embedding looks up int64; convert what you have picked.",
                "torch.float32": "Those are floats; ids are int64.",
                "torch.int32": "An embedding takes int32; cross_entropy does not: use int64.",
            }
            expect(str(tensor.dtype), "torch.int64", about=f"dtype of {name}", mistakes=kinds)
        rows, after, later = [], [], []
        for row in inputs.tolist():
            start = ids.index(row[0]) if row[0] in ids else 0
            begins.append(start)
            rows.append(ids[start : start + context])
            after.append([*ids[start + 1 : start + context + 1], -1][:context])
            later.append([*ids[start + 2 : start + context + 2], -1, -1][:context])
        expect(
            inputs.tolist(),
            rows,
            about="inputs",
            hint="A row is a window: neighbours in the text.",
        )
        same = "The targets are the inputs themselves: a model would learn to copy."
        two = "That is two tokens later."
        wrapped = "torch.roll wraps around: the last target is the window's first token."
        rolled = [row[1:] + row[:1] for row in rows]
        mistakes = [(rows, same), (later, two), (rolled, wrapped)]
        expect(
            targets.tolist(), after, about="targets", mistakes=mistakes, hint="One token later."
        )
    return begins


ids = [50, 40, 10, 90, 70, 30, 20]
begins = check_batches(observe(drawn_batches, ids, "uint16", 8, 4, 0, 50), ids, 8, 4)
missed = {
    "[0, 1]": "The last window is never drawn: its last target is the last token, 20.",
    "[1, 2]": "The first window is never drawn.",
    "[0]": "Only the first window is drawn: starts are random.",
    "[0, 1, 2, 3]": "A window of 4 at 3 has no target for its last input.",
}
expect(str(sorted(set(begins))), "[0, 1, 2]", about="where windows begin", mistakes=missed)
(again,), (first, second) = (
    observe(drawn_batches, list(range(900)), "uint16", 4, 8, 7, count).value for count in (1, 2)
)
not_from = "The same state of the generator must give the same batch: pass it on as generator=."
expect(again, first, about="a second run with the same seed", hint=not_from)
stuck = "The second batch is the first once more: do not seed inside."
expect(
    bool((first[0] == second[0]).all()),
    False,
    about="two batches alike",
    mistakes={True: stuck},
)
for few in ([1, 2, 3], [1, 2, 3, 4]):
    seen = observe(drawn_batches, few, "uint16", 2, 4, 0)
    none = {None: "Nothing was raised: 4 inputs and their targets take 5 tokens."}
    own = "Say it yourself, with a ValueError, before randint or NumPy stumbles."
    expect(seen.error, "ValueError", about="error for too few tokens", mistakes=none, hint=own)
whole = "That takes memory for the whole text: pick the windows first, convert them then."
seen = observe(takes, 500_000, 4, 16)
expect(
    isinstance(seen.value, int) and seen.value < 100_000,
    True,
    about=f"a batch of 544 bytes, of a text of 1 MB, takes {seen.value} bytes",
    hint=whole,
)
### BEGIN HIDDEN TESTS
from course_utils.testing import draws

draw = draws()
for dtype, high in (("uint8", 250), ("uint16", 60_000), ("uint32", 100_000), ("int64", 10**12)):
    batch, context, extra = draw.sizes(3, 2, 7)
    ids = []
    while len(ids) < context + extra:
        new = draw.integer(0, high)
        ids += [new] if new not in ids else []
    check_batches(
        observe(drawn_batches, ids, dtype, batch, context, draw.integer(0, 99), 20),
        ids,
        batch,
        context,
    )
seen = observe(drawn_batches, [5, 6, 7, 8, 9], "uint16", 3, 4, 0, 2)
expect(set(check_batches(seen, [5, 6, 7, 8, 9], 3, 4)), {0}, about="the only window there is")
seen = observe(drawn_batches, [5, 6, 7], "uint16", 3, 1, 0, 40)
expect(
    sorted(set(check_batches(seen, [5, 6, 7], 3, 1))),
    [0, 1],
    about="where windows of one begin",
)
ids = [9, 3, 7, 1, 5]
begins = check_batches(
    observe(drawn_batches, ids, "uint16", 2, 2, draw.integer(0, 10**6), 400), ids, 2, 2
)
for start in range(3):
    share = begins.count(start) / len(begins)
    hint = "Each window is as likely as each other."
    expect(0.23 < share < 0.44, True, about=f"share {share} of window {start} of 3", hint=hint)
pairs = {(a, b) for a, b in zip(begins[::2], begins[1::2], strict=True)}
hint = "The rows of a batch are drawn independently of one another."
expect(len(pairs), 9, about="pairs of windows that occur together", hint=hint)
seen = observe(side_effects)
hint = (
    "All chance comes from the generator that is passed in, and leaves the global ones alone."
)
expect(seen.value, [[], True], about="global generators moved; generator moved", hint=hint)
values = [
    observe(drawn_batches, list(range(900)), "uint16", 9, 3, seed).value for seed in (3, 3, 4)
]
expect(values[0], values[1], about="the same seed", hint=not_from)
same = bool((values[0][0][0] == values[2][0][0]).all())
expect(same, False, about="another seed, the same batch", hint="The generator is not used.")
seen = observe(takes, 2_000_000, 2, 9)
fits = isinstance(seen.value, int) and seen.value < 200_000
expect(fits, True, about=f"a batch of 160 bytes takes {seen.value}", mistakes={False: whole})
### END HIDDEN TESTS

# %% [markdown]
r"""
<details><summary>Hint 1</summary><code>torch.randint(high, shape, generator=generator)</code> gives 0 … high − 1. A text of 5 tokens has one window of 4: which <code>high</code> is that?</details>
<details><summary>Hint 2</summary>Starts <code>[batch, 1]</code> plus <code>arange(context + 1)</code> broadcast to all places <code>[batch, context + 1]</code>. NumPy takes an array of places as an index. Then inputs and targets are two views of these rows.</details>

**Why it matters.** An off-by-one here trains the wrong thing without a sound: with targets equal to inputs the loss goes
to zero, and the model has learnt to copy.

*Try it yourself:* ask for a context that is one shorter than the text. How many windows are there, and how many
different batches?

## 3 · To the device, while it works

A batch is made on the CPU, and the GPU wants it. Lecture 01 had the two tools. Memory that is **pinned**
(`pin_memory()`) stays where it is, so that the GPU can fetch from it directly. With `non_blocking=True` the copy of such
memory is only *ordered*, and Python goes on. On a CPU there is nothing to copy, and nothing to pin.
"""


# %% tags=["item-76"]
def to_device(batch: Tensor, device: torch.device) -> Tensor:
    """The batch on device; the copy to a CUDA device does not wait."""
    if device.type == "cuda":
        return batch.pin_memory().to(device, non_blocking=True)
    return batch.to(device)


batch, context = 32, 1_024
inputs, targets = get_batch(tokens, batch, context, torch.Generator().manual_seed(0))
moved = to_device(inputs, device)
assert moved.device == device and torch.equal(moved.cpu(), inputs)
if device.type == "cpu":
    assert moved is inputs  # nothing was copied
if device.type == "cuda":
    assert inputs.pin_memory().is_pinned() and not inputs.is_pinned()

# %% [markdown]
r"""
How much does it bring? Count first. A batch of 32 × 1,024 tokens is 262 kB for the inputs in int64, as much for the
targets. Suppose that the way to the GPU carries 25 GB/s. And a training step of a small model, GPT-2 with its 124
million parameters, is $6N$ FLOPs per token (lecture 06), on an H100:
"""

# %%
bytes_moved = 2 * batch * context * 8  # inputs and targets
seconds_to_move = bytes_moved / 25e9
flop_rate = 0.4 * FACTS["H100 SXM bfloat16 peak"].value  # an MFU of 0.4
seconds_to_compute = 6 * 124e6 * batch * context / flop_rate
print(f"{readable(bytes_moved, 'B')}: {readable(seconds_to_move, 's')} to move")
print(
    f"{readable(seconds_to_compute, 's')} to compute: "
    f"{seconds_to_compute / seconds_to_move:,.0f} times as long"
)

assert bytes_moved == 524_288 and inputs.numel() * 8 == 262_144
assert 256 * 3 * 224 * 224 * 4 == 154_140_672  # a batch of pictures, see below
assert f"{seconds_to_move / seconds_to_compute:.2%}" == "0.03%"

# %% [markdown]
r"""
So for *tokens*, pinning and asynchronous copies gain 0.03 % at best: `pin_memory()` is itself a copy, and takes its
time. (For pictures it is another matter: 256 of them, 224 × 224 in three colours, are 154 MB in float32.) What does
cost is *making* the batch, if that waits for a slow disk or a tokenizer, and the device waits meanwhile. The remedy is
the same at each level: **overlap**. Prepare the next batch while this one is worked on.

We can see that without a GPU. Let fetching a batch take 20 ms (a slow disk) and a step 30 ms (a device that works while
Python waits).

**Predict.** Ten steps, one after the other, take 10 · (20 + 30) = 500 ms. How long do they take when the next batch
is fetched during the step?
"""

# %%
guess = None  # s, such as 0.123


# %% tags=["item-76", "timed"]
def prefetched(make: Callable[[], Any], count: int) -> Generator[Any, None, None]:
    """make(), count times; the next one is made while the caller works on this one."""
    with ThreadPoolExecutor(max_workers=1) as worker:
        coming = worker.submit(make)
        for left in range(count, 0, -1):
            ready = coming.result()
            if left > 1:
                coming = worker.submit(make)
            yield ready


def fetch(generator: torch.Generator) -> Tensor:
    time.sleep(0.020)
    return get_batch(tokens, 2, 8, generator)[0]


def ten_steps(overlap: bool) -> tuple[list[Tensor], float]:
    generator = torch.Generator().manual_seed(0)
    one_by_one = (fetch(generator) for _ in range(10))
    source = prefetched(lambda: fetch(generator), 10) if overlap else one_by_one
    used = []
    start = time.perf_counter()
    for batch_now in source:
        time.sleep(0.030)  # the step
        used.append(batch_now)
    return used, time.perf_counter() - start


alone, seconds_alone = ten_steps(overlap=False)
overlapped, seconds_overlapped = ten_steps(overlap=True)
reconcile("ten steps, overlapped", guess, seconds_overlapped, "s")
print(f"one after the other: {readable(seconds_alone, 's')}")

assert torch.equal(torch.stack(alone), torch.stack(overlapped))  # the same batches
assert 20 + 10 * max(20, 30) == 320  # ms

# %% [markdown]
r"""
About 320 ms: 20 for the first batch, then ten steps of 30. Where two things overlap, the slower one decides, as on the
roofline. If fetching took 40 ms, the device would wait again, and two workers would be needed. In essence, that is what
PyTorch's `DataLoader` does with `num_workers` and `prefetch_factor` (with processes in place of threads);
`pin_memory=True` makes it pin each batch as well, so that only the copy is left to you.

> **Trap.** While you train on batch 5, batch 6 has been drawn. So the generator is one batch *ahead*. Whoever saves its
> state now and resumes from it will never see batch 6. To save is the state *before* the batches that still wait.
"""

# %%
generator = torch.Generator().manual_seed(0)
source = prefetched(lambda: get_batch(tokens, 2, 8, generator), 3)
next(source)  # one batch has been used
source.close()
plain = torch.Generator().manual_seed(0)
get_batch(tokens, 2, 8, plain)
assert not torch.equal(generator.get_state(), plain.get_state())  # not after batch 1 …
get_batch(tokens, 2, 8, plain)
assert torch.equal(generator.get_state(), plain.get_state())  # … but after batch 2

# %% [markdown]
r"""
*Try it yourself:* let fetching take 40 ms. Predict the ten steps, then change `fetch`.

## 4 · What a seed gives, and what it does not

Chance enters in many places: first weights, dropout, batches. A computer's chance is computed, by a **generator**: a
state, and a rule that turns it into a number and the next state. A **seed** sets the state. There are three global
generators in an ordinary training script, and they know nothing of one another: Python's `random`, NumPy's, and
PyTorch's (one for the CPU and one for each GPU; `torch.manual_seed` sets them all).
"""

# %% tags=["item-77"]
torch.manual_seed(7)
first = (torch.rand(1).item(), float(np.random.rand()), random.random())
torch.manual_seed(7)
second = (torch.rand(1).item(), float(np.random.rand()), random.random())
assert first[0] == second[0]  # PyTorch's was seeded again …
assert first[1] != second[1] and first[2] != second[2]  # … the others went on

torch.manual_seed(7)
a = torch.rand(3)
torch.manual_seed(7)
torch.rand(1)  # one number drawn in between, by a new dropout layer, say
b = torch.rand(3)
assert not torch.equal(a, b) and torch.equal(a[1:], b[:2])  # everything after it has moved

own = torch.Generator().manual_seed(7)
torch.manual_seed(8)
assert torch.equal(torch.rand(3, generator=own), a)  # one's own generator does not mind
mine, alike = np.random.default_rng(7), np.random.default_rng(7)
np.random.seed(8)
assert mine.random() == alike.random()  # nor does one of NumPy's

# %% [markdown]
r"""
So seed the global ones, once, at the start. And what must not be shifted by anything else (the batches!) gets a
generator of its own. NumPy's advice is the same: `np.random.default_rng(seed)` is a generator of your own, and
`np.random.seed` does not reach it.

### Exercise 9.3 · Seed everything &nbsp; ★☆☆ &nbsp; 5 minutes

Write `seed_everything(seed)`: it seeds the three global generators (Python's, NumPy's, PyTorch's), each with `seed`
itself, so that each gives what it gives after its own seeding function. `seed` is a whole number from 0 to $2^{32} - 1$,
which is what NumPy takes. It returns nothing.
"""


# %% nbgrader={"grade": false, "grade_id": "seed_everything", "locked": false, "schema_version": 3, "solution": true, "task": false}
def seed_everything(seed: int) -> None:
    """Seed the global generators of random, NumPy and torch (CPU and GPUs), each with seed."""
    ### BEGIN SOLUTION
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_seed_everything", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
import random

import numpy as np
import torch

from course_utils.testing import expect, observe, probe


@probe
def drawn_after(student, seed, disturb):
    """Two numbers of each global generator after seeding, once they were disturbed."""
    import random

    import numpy as np
    import torch

    before = (random.getstate(), np.random.get_state(), torch.get_rng_state())
    random.seed(disturb)
    np.random.seed(disturb)
    torch.manual_seed(disturb)
    random.gauss(0, 1), np.random.randn(), torch.randn(1)
    try:
        returned = student.seed_everything(seed)
        drawn = {
            "random": [random.random(), random.gauss(0, 1)],
            "numpy": [float(np.random.rand()), float(np.random.randn())],
            "torch": [torch.rand(1).item(), torch.randn(1).item()],
        }
        return drawn if returned is None else "something"
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])
        torch.set_rng_state(before[2])


def after(seed, before=0):
    """The same, from generators of their own; ``before`` normal numbers were drawn earlier."""
    python, numpy, own = random.Random(seed), np.random.RandomState(seed), torch.Generator()
    own.manual_seed(seed)
    for _ in range(before):
        python.gauss(0, 1), numpy.randn(), torch.randn(1, generator=own)
    return {
        "random": [python.random(), python.gauss(0, 1)],
        "numpy": [float(numpy.rand()), float(numpy.randn())],
        "torch": [torch.rand(1, generator=own).item(), torch.randn(1, generator=own).item()],
    }


def judge_seed(seed, disturb):
    seen = observe(drawn_after, seed, disturb)
    returned = "Return nothing: the generators are global."
    something = isinstance(seen.value, str)
    expect(something, False, about="returns something", mistakes={True: returned})
    if isinstance(seen.value, dict):
        names = {"random": "Python's random", "numpy": "NumPy's", "torch": "PyTorch's"}
        for name, numbers in after(seed).items():
            hint = f"{names[name]} global generator does not stand where this seed puts it."
            mistakes = [(after(disturb, before=1)[name], hint)]  # what comes without seeding
            if seed != 0:
                fixed = "Seed with the seed that is given, not with a constant."
                mistakes.append((after(0)[name], fixed))
            expect(seen.value[name], numbers, about=name, mistakes=mistakes, hint=hint)
    else:
        expect(seen.value, after(seed))


judge_seed(1234, disturb=5)
judge_seed(77, disturb=6)
### BEGIN HIDDEN TESTS
from course_utils.testing import draws

draw = draws()
for seed in (0, 2**32 - 1, draw.integer(0, 2**32 - 1), draw.integer(0, 1000)):
    judge_seed(seed, disturb=draw.integer(0, 2**32 - 1))
### END HIDDEN TESTS

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Three lines, one for each library. Two of the functions are called <code>seed</code>, the third <code>manual_seed</code>.</details>
<details><summary>Hint 2</summary><code>random.seed(seed)</code>, <code>np.random.seed(seed)</code>, and what was used above for PyTorch.</details>

**Why it matters.** "I could not reproduce it" is often a generator that nobody thought of: data augmentation draws from
Python's, shuffling from NumPy's.

### Seeds are not determinism

Many believe that a seeded program always gives the same numbers. A seed makes *chance* repeat. It says nothing about
*arithmetic*, and floating point arithmetic depends on the order: $(a + b) + c$ is not $a + (b + c)$. Where the order
can change, the result can.

**Predict.** Take 100,000 random numbers, float32, and add them up in 100 different orders. How many different sums?
"""

# %%
guess = None  # different sums

# %%
assert (0.1 + 0.2) + 0.3 != 0.1 + (0.2 + 0.3)

orders = torch.Generator().manual_seed(0)
numbers = torch.randn(100_000, generator=orders)
sums = {
    numbers[torch.randperm(len(numbers), generator=orders)].sum().item() for _ in range(100)
}
reconcile("different sums", guess, len(sums), "")
print(f"from {min(sums):.5f} to {max(sums):.5f}")
assert len(sums) > 1

whole_numbers = torch.randint(-9, 10, (100_000,), generator=orders)
assert len({whole_numbers[torch.randperm(100_000)].sum().item() for _ in range(20)}) == 1

# %% [markdown]
r"""
With whole numbers there is one sum: *their* addition is exact. Where does the order change in practice?

- **Number of threads.** A sum is cut into one part for each thread. Another number of threads, another order. The same
  number gives the same bits on every run.
- **Atomic additions on a GPU.** In some operations (`index_add_`, `scatter_add_`, the backward passes of `gather` and
  `index_select`) thousands of threads add to one place, in the order in which they happen to arrive. Then two runs on the
  same card may differ.
- **Another machine, device, or version** of a library: another algorithm, another order.
"""

# %% tags=["error-20"]
vectors = torch.randn(20, 1_000_000, generator=orders)
threads = torch.get_num_threads()
by_threads = {}
for count in (1, 2, 4):
    torch.set_num_threads(count)
    by_threads[count] = torch.stack([vector.sum() for vector in vectors])
    again = torch.stack([vector.sum() for vector in vectors])
    assert torch.equal(by_threads[count], again)  # as many threads, the same bits
torch.set_num_threads(threads)

for count in (2, 4):
    different = (by_threads[count] != by_threads[1]).sum().item()
    print(f"{count} threads: {different} of 20 sums differ from those of one thread")
assert any(not torch.equal(by_threads[count], by_threads[1]) for count in (2, 4))

if device.type == "cuda":
    many_numbers = torch.randn(1_000_000, device=device)
    one_place = torch.zeros(1_000_000, dtype=torch.int64, device=device)
    arrivals = {
        torch.zeros(1, device=device).index_add_(0, one_place, many_numbers).item()
        for _ in range(10)
    }
    print(f"index_add_ on the GPU, ten times the same: {len(arrivals)} different sums")

# %% [markdown]
r"""
`torch.use_deterministic_algorithms(True)` is what asks for determinism. PyTorch then takes algorithms with a fixed
order where it has them (slower ones, at times), and raises an error where it has none. It even takes care of memory
that nobody has written to: `torch.empty` is filled with NaN, so that you notice if you read it. (Many guides add the
environment variable `CUBLAS_WORKSPACE_CONFIG=:4096:8`; older versions wanted it for matrix products on CUDA.)
"""

# %%
torch.use_deterministic_algorithms(True)
try:
    assert torch.empty(1_000).isnan().all()
    twice = torch.tensor([0, 0])  # two numbers for one place: which shall stay?
    torch.zeros(3).put_(twice, torch.tensor([1.0, 2.0]))
    refusal = "nothing was refused"
except RuntimeError as error:
    refusal = str(error)
finally:
    torch.use_deterministic_algorithms(False)
print(refusal[:105])
assert "does not have a deterministic implementation" in refusal

# %% [markdown]
r"""
So: **seeds** make the draws repeat; **deterministic algorithms** make the arithmetic repeat; **same machine, same
versions, same number of threads** is the rest. Bits are promised only for all three together. On a CPU that is easy to
have, and we shall use it as our instrument: if two runs should be the same, we compare *bits*, and not "about".

*Try it yourself:* add up `numbers` in float64, in 100 orders. How many sums are there? How far apart?

## 5 · The loop

Five lines, the same for a line through points and for Llama:

```python
for step in range(steps):
    loss = loss_fn(model(inputs), targets)   # how wrong?
    optimizer.zero_grad()                    # forget the last step's gradients
    loss.backward()                          # which way down?
    optimizer.step()                         # a step down
```

To see what the *learning rate* does in it, we take a case that can be worked out on paper. A **linear teacher** has $D$
weights that nobody knows; it answers $y = x \cdot w^*$. A student of the same form begins at zero, sees $B$ random
questions per step with the teacher's answers, and learns by plain SGD. Each $x$ is drawn anew from a normal
distribution, so that the expected loss is the squared distance between the two, $|w - w^*|^2$. After a step with
learning rate $\eta$ that distance is, on average, multiplied by

$$q = 1 - 4\eta + 4\eta^2 \left(1 + \frac{D + 1}{B}\right).$$

($-4\eta$ is the way down. The other term is the price: each step goes in a direction that $B$ examples happen to show.)
With $D + 1 = B$ it is $q = 1 - 4\eta + 8\eta^2$.

**Predict.** For which learning rate is the loss smaller by *half* at each step, the best that is possible?
"""

# %%
guess = None  # a learning rate

# %% tags=["item-85"]
D, B = 255, 256


def factor(lr: float) -> float:
    """What a step of SGD multiplies the expected loss by."""
    return 1 - 4 * lr + 4 * lr**2 * (1 + (D + 1) / B)


best = min((n / 1000 for n in range(1, 1000)), key=factor)
reconcile("the best learning rate", guess, best, "")
assert best == 0.25 and factor(best) == 0.5
assert factor(0.5) == 1  # from here on it does not learn …
assert factor(0.6) > 1.4  # … or blows up
assert math.isclose(factor(0.1), factor(0.4))  # too small and too large can be equally slow


def learn(lr: float, steps: int = 30, seed: int = 0) -> list[float]:
    """Losses of a student that learns a linear teacher with SGD."""
    generator = torch.Generator().manual_seed(seed)
    teacher = torch.randn(D, 1, generator=generator).to(device)
    student = nn.Linear(D, 1, bias=False).to(device)
    nn.init.zeros_(student.weight)
    optimizer = torch.optim.SGD(student.parameters(), lr=lr)
    losses = []
    for _ in range(steps):
        x = torch.randn(B, D, generator=generator).to(device)
        loss = F.mse_loss(student(x), x @ teacher)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


rates = [0.01, 0.1, 0.25, 0.6]
curves = {f"lr {lr}": learn(lr) for lr in rates}
for lr in rates:
    losses = curves[f"lr {lr}"]
    measured = (losses[-1] / losses[0]) ** (1 / (len(losses) - 1))
    print(f"lr {lr:<4}: × {measured:.3f} per step, predicted × {factor(lr):.3f}")
    assert math.isclose(measured, factor(lr), rel_tol=0.12)

# %%
expected = {
    f"lr {lr}": {step: curves[f"lr {lr}"][0] * factor(lr) ** step for step in range(30)}
    for lr in rates
}
finding = "The best rate halves the loss in each step; a larger one explodes"
plots.show(
    plots.loss_curves(
        {name: dict(enumerate(losses)) for name, losses in curves.items()},
        expected,
        title=finding,
    ),
    alt=f"{finding}. On a log axis all are straight lines: 0.25 falls fastest, 0.1 more slowly, "
    "0.01 hardly at all, and 0.6 rises. The measured curves lie along the predicted ones.",
)

# %% [markdown]
r"""
Four straight lines on a logarithmic axis, as predicted. Three things to take from it, which are a good guide beyond
linear teachers, too: the best learning rate is a *fraction of the one at which training explodes* (here a half); a
smaller one is slower, a larger one explodes; and the limit depends on the noise, hence on the batch size.

*Try it yourself:* take a quarter of the batch, `B = 64`. Ask `factor` for the best rate and for the one that explodes,
then see whether `learn` agrees.

### Find the mistake: three runs that are one

Learning rates are found by trying. Here is a function for that, with the mistake of a widely read set of notes:
"""


# %%
def last_loss(model: nn.Module, optimizer: torch.optim.Optimizer) -> float:
    """The loss of step 20, of a model that learns to return its input."""
    for _ in range(20):
        x = torch.randn(64, 16)
        loss = (model(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def tune_as_found(num_layers: int, lr: float) -> float:
    """The last loss of a run with these settings."""
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(16, 16) for _ in range(2)))
    return last_loss(model, torch.optim.SGD(model.parameters(), lr=0.01))


for num_layers, lr in ((2, 0.01), (4, 0.01), (4, 0.1)):
    print(f"{num_layers} layers, lr {lr:<4}: {tune_as_found(num_layers, lr)}")

# %% [markdown]
r"""
> **Find the mistake.** Two arguments are never used. Which ones? And how could you have known, without reading a line
> of the code?

By the *digits*. Runs that differ in anything do not end in the same number, to the last bit. "The learning rate hardly
matters" is a result that deserves a second look. An assert costs one line:
"""

# %% tags=["error-3"]
settings = list(itertools.product((2, 4), (0.01, 0.1)))
assert len({tune_as_found(*setting) for setting in settings}) == 1  # four settings, one run


def tune(num_layers: int, lr: float) -> float:
    """The last loss of a run with these settings."""
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(16, 16) for _ in range(num_layers)))
    return last_loss(model, torch.optim.SGD(model.parameters(), lr=lr))


found = {setting: tune(*setting) for setting in settings}
for (num_layers, lr), last in found.items():
    print(f"{num_layers} layers, lr {lr:<4}: {last}")
assert len(set(found.values())) == len(settings)  # each argument makes a difference

# %% [markdown]
r"""
### One bad number

A loss that is NaN or infinite poisons everything: its gradients are NaN, one step makes all weights NaN, and with Adam
the optimizer's state as well. From then on the run computes nothing, at full price. And a checkpoint taken afterwards
overwrites the last good one.
"""

# %%
torch.manual_seed(0)
output = nn.Linear(8, 1)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), output)
optimizer = torch.optim.AdamW(model.parameters())
x = torch.randn(32, 4)
x[17, 2] = math.nan  # one bad number among 128
model(x).square().mean().backward()
optimizer.step()

poisoned = sum(int(p.isnan().sum()) for p in model.parameters())
print(f"{poisoned} of {sum(p.numel() for p in model.parameters())} parameters are NaN")
assert output.bias.isnan().all() and optimizer.state[output.bias]["exp_avg"].isnan().all()

# %% [markdown]
r"""
So a loop looks at its loss *before* it updates, and stops. (The look is not free on a GPU: Python has to wait for the
number. One may look every few steps only, if one keeps an older checkpoint.)

### Exercise 9.4 · The loop that does as it is told &nbsp; ★★☆ &nbsp; 15 minutes

Write `train(model, optimizer, next_batch, loss_fn, lr_at, steps)`, and use every argument. For each number in `steps`
(a `range`, which need not begin at 0):

1. set the learning rate of *every* parameter group of `optimizer` to `lr_at(step)`;
2. call `next_batch()` once; it returns inputs and targets;
3. compute `loss_fn(model(inputs), targets)`;
4. if the loss is NaN or infinite, raise a `FloatingPointError` whose message contains the number of the step. Model
   and optimizer's state must then be what they were after the step before;
5. update, by the gradient of *this* loss alone: gradients that are already there must not count, not even in the first
   step.

Return the losses, one for each step, as Python floats, each as it was before the update.
"""


# %% nbgrader={"grade": false, "grade_id": "train", "locked": false, "schema_version": 3, "solution": true, "task": false}
def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    next_batch: Callable[[], tuple[Tensor, Tensor]],
    loss_fn: Callable[[Tensor, Tensor], Float[Tensor, ""]],
    lr_at: Callable[[int], float],
    steps: range,
) -> list[float]:
    """Run these steps and return their losses. Raises FloatingPointError for one not finite."""
    ### BEGIN SOLUTION
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        inputs, targets = next_batch()
        loss = loss_fn(model(inputs), targets)
        if not torch.isfinite(loss):
            raise FloatingPointError(f"the loss of step {step} is {loss.item()}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_train", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
import math

from course_utils.testing import expect, observe, probe


@probe
def trained(student, line, batches, rates, steps, lean=1.0, momentum=0.0, stale=0.0, sign=1):
    """train() for y = a·x + b: losses, [a, b], the error, and what was left or asked for."""
    import torch

    model = torch.nn.Linear(1, 1, dtype=torch.float64)
    with torch.no_grad():
        model.weight.fill_(line[0])
        model.bias.fill_(line[1])
    if stale:
        model.weight.grad = torch.full_like(model.weight, stale)
        model.bias.grad = torch.full_like(model.bias, stale)
    optimizer = torch.optim.SGD([model.weight], lr=0.5, momentum=momentum)
    optimizer.add_param_group({"params": [model.bias]})
    waiting = list(batches)
    asked = []

    def next_batch():
        pairs = waiting.pop(0)
        x, y = zip(*pairs, strict=True)
        return torch.tensor(x).double()[:, None], torch.tensor(y).double()[:, None]

    def lr_at(step):
        asked.append(step)
        return rates[step]

    def loss_fn(outputs, targets):
        return sign * (outputs - lean * targets).square().mean()

    losses, error = [], ""
    try:
        losses = student.train(model, optimizer, next_batch, loss_fn, lr_at, range(*steps))
    except FloatingPointError as stop:
        error = str(stop) or "FloatingPointError"
    several = isinstance(losses, (list, tuple))
    return {
        "losses": losses,
        "types": sorted({type(loss).__name__ for loss in losses}) if several else [],
        "line": [model.weight.item(), model.bias.item()],
        "error": error,
        "batches left": len(waiting),
        "steps asked for": sorted(set(asked)),
        "buffers": [
            optimizer.state[p]["momentum_buffer"].item()
            for p in (model.weight, model.bias)
            if optimizer.state[p].get("momentum_buffer") is not None
        ],
    }


def by_hand(line, batches, rates, steps, lean=1.0, momentum=0.0, flaw="", stale=0.0):
    """(losses, line, buffers) of the same run, in plain Python, with a flaw if one is named."""
    a, b = line
    va, vb, losses = 0.0, 0.0, []
    ga, gb = (stale, stale) if flaw in ("adds up", "stale") else (0.0, 0.0)
    of_output, of_target = {"own loss": (1, 1), "swapped": (lean, 1)}.get(flaw, (1, lean))
    for place, step in enumerate(range(*steps)):
        pairs = batches[0] if flaw == "one batch" else batches[place]
        errors = [(of_output * (a * x + b) - of_target * y, x) for x, y in pairs]
        loss = sum(e * e for e, _ in errors) / len(pairs)
        if not math.isfinite(loss):
            break
        if not (flaw == "adds up" or (flaw == "stale" and place == 0)):
            ga, gb = 0.0, 0.0
        ga += sum(2 * e * of_output * x for e, x in errors) / len(pairs)
        gb += sum(2 * e * of_output for e, _ in errors) / len(pairs)
        va, vb = momentum * va + ga, momentum * vb + gb
        other = {
            "own rate": 0.5,
            "late": 0.5 if place == 0 else rates[step - 1],
            "first rate": rates[steps[0]],
            "position": rates.get(place, 0.5),
        }
        lr = other.get(flaw, rates[step])
        if flaw != "no update":
            a -= lr * va
            b -= (0.5 if flaw == "one group" else lr) * vb
        if flaw == "after":
            loss = sum((a * x + b - lean * y) ** 2 for x, y in pairs) / len(pairs)
        losses.append(loss)
    return losses, [a, b], [va, vb]


flaws = {
    "adds up": "Gradients add up from step to step: clear them in each.",
    "stale": "Gradients from before the first step were counted: clear them before backward.",
    "own rate": "The optimizer's own learning rate was used: set each group's to lr_at(step).",
    "late": "Each step had the learning rate of the step before: set it first, then update.",
    "one group": "Only the first parameter group got the learning rate: there may be several.",
    "first rate": "The learning rate is that of the first step: ask lr_at in each.",
    "position": "lr_at wants the number of the step; steps need not begin at 0.",
    "own loss": "That is the mean squared error; wanted is loss_fn, whatever it is.",
    "swapped": "loss_fn takes the model's output first, then the targets.",
    "one batch": "Each step has a batch of its own: call next_batch() in each.",
    "no update": "The weights do not move: is optimizer.step() called?",
    "after": "That is the loss after the update; wanted is the one before it.",
}


def check_run(line, batches, rates, steps, **more):
    seen = observe(trained, line, batches, rates, steps, **more)
    losses, end, _ = by_hand(line, batches, rates, steps, **more)
    wrong = [
        (by_hand(line, batches, rates, steps, flaw=f, **more), why) for f, why in flaws.items()
    ]
    if not isinstance(seen.value, dict):
        expect(seen.value, losses)
        return
    finite = "No loss is NaN or infinite here: there is nothing to raise."
    expect(seen.value["error"], "", about="error", hint=finite)
    several = isinstance(seen.value["losses"], (list, tuple))
    many = "Return a list of losses, one for each step."
    expect(several, True, about=f"is {seen.value['losses']} a list?", hint=many)
    expect(len(seen.value["losses"]), len(losses), about="number of losses", hint=many)
    mistakes = [(bad[0], why) for bad, why in wrong if bad[0] != losses]
    expect(seen.value["losses"], losses, about="losses", mistakes=mistakes, tolerance=1e-9)
    mistakes = [(bad[1], why) for bad, why in wrong if bad[1] != end]
    expect(
        seen.value["line"], end, about="weights at the end", mistakes=mistakes, tolerance=1e-9
    )
    graph = "A tensor keeps its graph, and that its activations: take .item()."
    hint = "Wanted are Python's floats: .item() makes one of a tensor."
    expect(
        seen.value["types"],
        ["float"][: len(losses)],
        about="types",
        mistakes=[(["Tensor"], graph)],
        hint=hint,
    )
    hint = "next_batch() is called once in each step: what it returns is used up."
    expect(seen.value["batches left"], 0, about="batches left over", hint=hint)
    expect(
        seen.value["steps asked for"],
        list(range(*steps)),
        about="steps that lr_at was asked for",
    )


def check_stop(line, batches, rates, steps, step, sign=1):
    """Judge a run whose loss is not finite in a step."""
    seen = observe(trained, line, batches, rates, steps, momentum=0.5, sign=sign)
    other = "A loss that is not finite raises a FloatingPointError, and nothing else does."
    expect(seen.error, None, about="error", hint=other)
    text = seen.value["error"]
    none = (
        "Nothing was raised: look at the loss in each step, and raise FloatingPointError(...)."
    )
    expect(bool(text), True, about="is there an error for a loss not finite?", hint=none)
    named = "The message names the step, by its number in steps."
    expect(str(step) in text, True, about=f"{text!r} names step {step}", hint=named)
    _, end, buffers = by_hand(line, batches, rates, steps, momentum=0.5)
    late = "The weights have been updated with it: look before optimizer.step()."
    expect(seen.value["line"], end, about="weights", hint=late)
    if step > steps[0]:
        expect(seen.value["buffers"], buffers, about="state of the optimizer", hint=late)


batches = [[(1.0, 2.0), (2.0, 5.0)], [(-1.0, 1.0), (3.0, 4.0)], [(0.5, 0.0), (1.5, 2.0)]]
rates = {0: 0.1, 1: 0.05, 2: 0.02, 7: 0.08, 8: 0.03, 9: 0.01}
check_run([0.5, -1.0], batches, rates, (0, 3))
check_run([0.25, 1.0], batches, rates, (7, 10), lean=2.0, stale=3.0)
broken = [batches[0], [(1.0, 0.0), (2.0, 1.0)], batches[2]]
for bad in (math.nan, math.inf):
    broken[1][0] = (1.0, bad)
    check_stop([0.5, -1.0], broken, rates, (7, 10), 8)
### BEGIN HIDDEN TESTS
from course_utils.testing import draws

draw = draws()


def eighths(count):
    return [draw.integer(-20, 20) / 8 for _ in range(count)]


for _ in range(4):
    size, count, first = draw.integer(1, 4), draw.integer(2, 5), draw.integer(10, 99)
    batches = [list(zip(eighths(size), eighths(size), strict=True)) for _ in range(count)]
    rates = {step: draw.integer(1, 20) / 400 for step in (*range(6), *range(first, first + 6))}
    line, lean = [1 / 3, -0.7], draw.choice([0.25, 2.0, 3.0])
    momentum, stale = draw.choice([0.0, 0.5]), draw.choice([0.0, 2.5])
    check_run(line, batches, rates, (0, count), lean=lean, momentum=momentum, stale=stale)
    check_run(
        line, batches, rates, (first, first + count), lean=lean, momentum=momentum, stale=stale
    )
    place = draw.integer(1, count - 1)
    bad = draw.choice([math.nan, math.inf, -math.inf])
    broken = [*batches[:place], [(1.0, bad)], *batches[place:]]
    check_stop(line, broken, rates, (first, first + count + 1), first + place)
check_stop([1.0, 2.0], [[(1.0, math.inf)]], {5: 0.1}, (5, 6), 5, sign=-1)
check_run(
    [1.0, 2.0], [[(1.0, 2.0**100)], [(1.0, 2.0)]], {5: 0.1, 6: 0.1}, (5, 7)
)  # large, finite
check_run([1.0, 2.0], [], {5: 0.1}, (5, 5))
### END HIDDEN TESTS

# %% [markdown]
r"""
<details><summary>Hint 1</summary>The five lines above, and three more: set <code>group["lr"]</code> for each group in <code>optimizer.param_groups</code>, look at the loss with <code>torch.isfinite</code>, and append <code>loss.item()</code>.</details>
<details><summary>Hint 2</summary>The order: learning rate, batch, loss, look, <code>zero_grad</code>, <code>backward</code>, <code>step</code>.</details>

**Why it matters.** This is the loop that you will run for the rest of the course. Everything that it needs comes in
through its arguments, and that is why it can be stopped and taken up again.

## 6 · The learning rate over time

In practice the learning rate is not one number. At the start, gradients are large and the optimizer's averages know
nothing yet: so one begins low and **warms up**. Towards the end, the noise of the steps keeps the loss from settling:
so one goes down, most often along a half **cosine**.

The usual way in PyTorch is a *scheduler*, an object that counts its own steps. Then there is one more thing that knows
where the run is, one more thing to save, and one more thing to forget. A *function of the step* has nothing to forget.

### Exercise 9.5 · Warm-up and cosine &nbsp; ★★☆ &nbsp; 10 minutes

Write `warmup_cosine(step, warmup, steps, peak, floor)`: the learning rate of a step, counted from 0.

- In the first `warmup` steps it rises by equal amounts: `peak / warmup` in step 0, twice that in step 1, and `peak` in
  the last of them. No step is wasted at a learning rate of 0.
- From there, with $p = \frac{\text{step} - \text{warmup}}{\text{steps} - \text{warmup}}$, it is
  $\text{floor} + (\text{peak} - \text{floor}) \cdot \frac{1 + \cos(\pi p)}{2}$.
- From step number `steps` on, it is `floor`.

`warmup` may be 0, and is smaller than `steps`.
"""


# %% nbgrader={"grade": false, "grade_id": "warmup_cosine", "locked": false, "schema_version": 3, "solution": true, "task": false}
def warmup_cosine(step: int, warmup: int, steps: int, peak: float, floor: float) -> float:
    """The learning rate of a step: linear up to peak, then a half cosine down to floor."""
    ### BEGIN SOLUTION
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = min((step - warmup) / (steps - warmup), 1.0)
    return floor + (peak - floor) * (1 + math.cos(math.pi * progress)) / 2
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_warmup_cosine", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
import math

from course_utils.testing import expect, observe


def schedule(step, warmup, steps, peak, floor):
    """The right value, and what well-known mistakes lead to."""

    def between(p):
        half = 0.5 + 0.5 * math.cos(math.pi * p)
        return half, peak * half + floor * (1 - half)

    half, down = between((step - warmup) / (steps - warmup))
    rise = [peak / max(warmup, 1) * (step + n) for n in (0, 1)]
    right = rise[1] if step < warmup else floor if step >= steps else down
    line = peak + (floor - peak) * (step - warmup) / (steps - warmup)
    from_floor = floor + (peak - floor) * (step + 1) / max(warmup, 1)
    found = [
        (rise[0], "Step 0 would have a learning rate of 0: count from 1."),
        (rise[1], "The last step of the warm-up has the number warmup - 1."),
        (peak * half, "It goes down to floor, not to 0."),
        (0.0, "From `steps` on it is floor, not 0."),
        (floor + peak * half, "The cosine spans from floor to peak: peak - floor, not peak."),
        (floor + (peak - floor) * (2 * half - 1), "A cosine ends at -1: add 1 and halve it."),
        (floor + (peak - floor) * 2 * half, "1 + cos goes from 2 to 0: halve it."),
        (between(step / steps)[1], "The cosine begins where the warm-up ends, not in step 0."),
        (between((step - warmup) / steps)[1], "p divides by the steps after the warm-up."),
        (
            between((step - warmup) / max(steps - warmup - 1, 1))[1],
            "p is 1 in step number `steps`, not in the one before.",
        ),
        (
            between((step - warmup + 1) / (steps - warmup))[1],
            "p is 0 in the first step after the warm-up.",
        ),
        (between(1 - (step - warmup) / (steps - warmup))[1], "That rises from floor to peak."),
        (down, "A cosine goes up again after its half period; from `steps` on it is floor."),
        (line, "That is a straight line down."),
        (from_floor, "The warm-up begins at peak / warmup."),
        (peak, "In this step it is below peak. (If you wrote //: it rounds p down to 0.)"),
    ]
    return right, [(value, why) for value, why in found if not math.isclose(value, right)]


for step in (0, 3, 4, 8, 13, 14, 20):
    right, mistakes = schedule(step, 4, 14, 0.8, 0.1)
    expect(observe(warmup_cosine, step, 4, 14, 0.8, 0.1).value, right, mistakes=mistakes)
expect(observe(warmup_cosine, 5, 0, 10, 2.0, 1.0).value, 1.5)
### BEGIN HIDDEN TESTS
from course_utils.testing import draws

draw = draws()
for _ in range(6):
    warmup, more = draw.integer(0, 30), draw.integer(1, 60)
    peak, floor = draw.integer(5, 90) / 1000, draw.integer(0, 4) / 1000
    steps = warmup + more
    middle = warmup + more // 3
    for step in {0, warmup - 1, warmup, warmup + 1, middle, steps - 1, steps, steps + 7}:
        if step >= 0:
            right, mistakes = schedule(step, warmup, steps, peak, floor)
            seen = observe(warmup_cosine, step, warmup, steps, peak, floor)
            expect(seen.value, right, mistakes=mistakes, tolerance=1e-9)
### END HIDDEN TESTS

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Two cases. In the warm-up, step 0 gets one part of <code>peak</code>, step 1 two parts.</details>
<details><summary>Hint 2</summary><code>min(p, 1.0)</code> keeps the cosine from going up again: at 1 it gives exactly <code>floor</code>.</details>

**Why it matters.** Warm-up, then a cosine or a straight line down: you will meet it in most papers about training a
language model.
"""

# %%
rates = [warmup_cosine(step, 10, 120, 3e-3, 3e-4) for step in range(121)]
for step in (0, 4, 9, 30, 65, 120):
    print(f"step {step:>3}: {rates[step]:.1e}", "▇" * round(rates[step] * 1e4))
assert np.allclose([rates[0], rates[9], max(rates), rates[120]], [3e-4, 3e-3, 3e-3, 3e-4])

# %% [markdown]
r"""
*Try it yourself:* train the linear teacher of section 5 at its best rate, 0.25, and then with a warm-up of 10 steps. Is
warm-up of any use there? (Gradients there point the right way from the first step on.)

## 7 · Checkpoints

A checkpoint is what a run leaves on disk, so that another process can go on. What has to be in it? Think of the run as
a machine: everything that the *next* step depends on.

We need a run to try it with. A small language model, of the kind that Bengio and others built in 2003: it looks at the
last eight bytes, looks up a vector for each, and two linear layers guess the next byte. It has a dropout, so that chance
is part of each step. **All that follows runs on the CPU, with one thread**, also where you have more: we want to compare
bits, and so small a model is no faster with two.
"""


# %%
class NextByte(nn.Module):
    """Scores for the next byte, at each position, from the eight bytes that end there."""

    def __init__(self, width: int = 24, hidden: int = 128, look_back: int = 8) -> None:
        super().__init__()
        self.look_back = look_back
        self.table = nn.Embedding(256, width)
        self.inner = nn.Linear(look_back * width, hidden)
        self.dropout = nn.Dropout(0.1)
        self.scores = nn.Linear(hidden, 256)

    def forward(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T 256"]:
        before = self.look_back - 1  # places before the window, where there is nothing
        vectors = F.pad(self.table(ids), (0, 0, before, 0))
        seen = vectors.unfold(1, self.look_back, 1).flatten(2)  # [B, T, width · look_back]
        return self.scores(self.dropout(F.gelu(self.inner(seen))))


def next_byte_loss(scores: Float[Tensor, "B T 256"], targets: Int[Tensor, "B T"]) -> Tensor:
    """Cross entropy in nats per byte."""
    return F.cross_entropy(scores.flatten(0, 1), targets.flatten())


total_steps = 120


def lr_at(step: int) -> float:
    return warmup_cosine(step, 10, total_steps, 5e-3, 5e-4)


Run = tuple[NextByte, torch.optim.AdamW, torch.Generator]


def new_run(seed: int) -> Run:
    """What a process has when it starts: a fresh model, optimizer and data generator."""
    seed_everything(seed)
    model = NextByte()
    return model, torch.optim.AdamW(model.parameters()), torch.Generator().manual_seed(seed)


def go_on(run: Run, steps: range) -> list[float]:
    """The losses of these steps."""
    model, optimizer, generator = run

    def next_batch() -> tuple[Tensor, Tensor]:
        return get_batch(tokens, 16, 64, generator)

    return train(model, optimizer, next_batch, next_byte_loss, lr_at, steps)


torch.set_num_threads(1)
whole = go_on(new_run(0), range(40))
assert go_on(new_run(0), range(40)) == whole  # seeded, on a CPU: the same bits
print(f"loss {whole[0]:.3f} at first, {whole[-1]:.3f} at the end; ln 256 = {math.log(256):.3f}")
assert abs(whole[0] - math.log(256)) < 0.3 and whole[-1] < 4

# %% [markdown]
r"""
At first it knows nothing, and its loss is that of guessing: $\ln 256$. And a seeded run on a CPU repeats to the last
bit. That is our instrument.

> **A mistake that travels.** This is how resuming is shown in a set of notes that many have copied:
>
> ```python
> torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "checkpoint.pt")
> loaded = torch.load("checkpoint.pt")
> ```
>
> … and there it ends. Nothing has been *restored*: `loaded` is a dictionary that nobody looks at. And if the two were
> restored, would it be enough?

Let us forget each part in turn. The run is saved after 20 of 40 steps; a new process loads it, without one part; and we
look at how many of the next 20 losses are still those of the run that never stopped.

**Predict.** Forget only the optimizer's state. How many of the 20 losses are right, to the last bit?
"""

# %%
guess = None  # losses

# %% tags=["item-86", "error-19"]
run = new_run(0)
assert go_on(run, range(20)) == whole[:20]
model, optimizer, generator = run
saved: dict[str, Any] = {
    "model": copy.deepcopy(model.state_dict()),
    "optimizer": copy.deepcopy(optimizer.state_dict()),
    "data position": generator.get_state(),
    "global generator": torch.get_rng_state(),
    "step": 20,
}


def resume_without(forgotten: set[str]) -> list[float]:
    """The losses of steps 20 to 39, by a process that restores all but what is forgotten."""
    run = model, optimizer, generator = new_run(99)
    if "model" not in forgotten:
        model.load_state_dict(saved["model"])
    if "optimizer" not in forgotten:
        optimizer.load_state_dict(copy.deepcopy(saved["optimizer"]))
    if "data position" not in forgotten:
        generator.set_state(saved["data position"])
    if "global generator" not in forgotten:
        torch.set_rng_state(saved["global generator"])
    first = 0 if "step" in forgotten else saved["step"]
    return go_on(run, range(first, first + 20))


forgetful = {"nothing": set[str]()} | {part: {part} for part in saved}
forgetful |= {"all but the model": set(saved) - {"model"}, "all": set(saved)}
right, ends = {}, {}
for name, forgotten in forgetful.items():
    resumed = resume_without(forgotten)
    alike = [a == b for a, b in zip(resumed, whole[20:], strict=True)]
    right[name], ends[name] = [*alike, False].index(False), resumed[-1]
    print(f"forgot {name:<17}: {right[name]:>2} losses right, ends at {ends[name]:.3f}")

reconcile("losses right without the optimizer's state", guess, right["optimizer"], "")
assert right["nothing"] == 20 and right["optimizer"] == right["step"] == 1
for name in ("model", "data position", "global generator", "all but the model", "all"):
    assert right[name] == 0
for name in ("optimizer", "data position", "global generator", "step"):
    assert abs(ends[name] - whole[-1]) < 0.4  # nothing that an eye would notice

# %% [markdown]
r"""
One. The loss of a step is computed *before* the update, so the first one cannot tell. That is why a quick look, "the
loss goes on where it was", proves little. Neither does the curve: unless the model itself is forgotten, it looks
perfectly healthy. Only the bits tell. (The last line, "all", is what those notes do.)

So a checkpoint holds **model, optimizer, step, generators, and the position in the data** (which for us is the state of
the data's own generator). And more than that where there is more: a scheduler, a loss scaler, a running average.

> **Trap: a `state_dict` is not a copy.** It is a dictionary of the *same* tensors. Keep "the best model so far" that way,
> and you keep the last one. On disk that is no issue; in memory, use `copy.deepcopy`, as above.
"""

# %%
model, optimizer, generator = run = new_run(0)
kept, copied = model.state_dict(), copy.deepcopy(model.state_dict())
go_on(run, range(3))
assert torch.equal(kept["scores.weight"], model.scores.weight)  # has moved along
assert not torch.equal(copied["scores.weight"], model.scores.weight)

# %% [markdown]
r"""
### Written whole, or not at all

One question is left: *when* does the power fail? Perhaps while you write. `torch.save(contents, path)` opens the file,
and with that the old checkpoint is gone. If it stops in the middle, you have neither.
"""

# %%
path = folder / "in_place.pt"
torch.save({"step": 20, "model": model.state_dict()}, path)
assert torch.load(path)["step"] == 20

buffer = io.BytesIO()
torch.save({"step": 40, "model": model.state_dict()}, buffer)
path.write_bytes(buffer.getvalue()[: buffer.tell() // 2])  # the power fails half-way through
try:
    torch.load(path)
    raise AssertionError("half a checkpoint was loaded")
except RuntimeError as error:
    print(str(error).split(". ")[0])

# %% [markdown]
r"""
The remedy is the same wherever a file must not be lost. Write to *another* file in the *same folder*; when it is
complete, rename it. `os.replace(new, old)` is **atomic**: whoever looks sees the old file or the new one, and never half
of one. (In the same folder, because a rename cannot cross from one file system to another.)

> **Trap: `weights_only`.** A checkpoint is a *pickle*, and a pickle can hold code that runs when it is loaded. Since
> 2.6, `torch.load` takes plain data only, unless you say `weights_only=False`. Do not say it for files of others. So
> that yours load as well, put only tensors, numbers, text, lists, tuples and dictionaries into them.

"""

# %%
python_state, numpy_state = io.BytesIO(), io.BytesIO()
torch.save({"random": random.getstate()}, python_state)  # a tuple of numbers: plain
torch.save({"numpy": np.random.get_state()}, numpy_state)  # holds an array of NumPy's
python_state.seek(0)
numpy_state.seek(0)
assert torch.load(python_state)["random"] == random.getstate()
try:
    torch.load(numpy_state)
    raise AssertionError("an array of NumPy's counts as plain data")
except pickle.UnpicklingError as refusal:
    print(str(refusal).split(".")[0])

# %% [markdown]
r"""
### Exercise 9.6 · Save and resume &nbsp; ★★★ &nbsp; 20 minutes

Write two functions. `save_checkpoint(path, model, optimizer, step, generator)` writes all that the run needs to go on:
the model, the optimizer, the number of the next step, the state of `generator` (which draws the batches) and of
PyTorch's global generator on the CPU (which draws dropout). If writing fails, the error is passed on, and what was at
`path` stays as it was: write it under another name in the same folder, then rename it. At no moment is there no file at
`path`, once there was one. When it succeeds, no other file is left in the folder. `load_checkpoint(path, model,
optimizer, generator)` puts model, optimizer and both generators into that state, and returns the step. The file must
load with `torch.load(path)` as it is, which is `weights_only=True`. Saving must change nothing in the run. `path` is a
`Path`, its folder exists.
"""


# %% nbgrader={"grade": false, "grade_id": "save_checkpoint", "locked": false, "schema_version": 3, "solution": true, "task": false}
def save_checkpoint(
    path: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    step: int,
    generator: torch.Generator,
) -> None:
    """Write all that the run needs to go on with `step`: whole, or not at all."""
    ### BEGIN SOLUTION
    contents = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "step": step,
        "data": generator.get_state(),
        "global": torch.get_rng_state(),
    }
    partial = path.with_name(f"{path.name}.partial")
    torch.save(contents, partial)
    os.replace(partial, path)
    ### END SOLUTION


def load_checkpoint(
    path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, generator: torch.Generator
) -> int:
    """Put model, optimizer and generators back to where they were, and return the next step."""
    ### BEGIN SOLUTION
    contents = torch.load(path)
    model.load_state_dict(contents["model"])
    optimizer.load_state_dict(contents["optimizer"])
    generator.set_state(contents["data"])
    torch.set_rng_state(contents["global"])
    return int(contents["step"])
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_save_checkpoint", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
from course_utils.testing import expect, observe, probe


@probe
def not_restored(student, step, seed, kind="AdamW"):
    """The parts that are not what they were after saving, training on, and loading."""
    import pathlib
    import tempfile

    import torch

    def small_run(seed):
        torch.manual_seed(seed)
        layers = torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.3)
        model = torch.nn.Sequential(*layers, torch.nn.Linear(4, 2))
        optimizer = {
            "AdamW": lambda p: torch.optim.AdamW(p),
            "SGD": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
            "two groups": lambda p: torch.optim.Adam(
                [{"params": p[:2]}, {"params": p[2:], "lr": 0.05}]
            ),
        }[kind](list(model.parameters()))
        return model, optimizer, torch.Generator().manual_seed(seed)

    def a_step(model, optimizer, generator):
        optimizer.zero_grad()
        loss = model(torch.randn(5, 3, generator=generator)).square().mean()
        loss.backward()
        for group in optimizer.param_groups:
            group["lr"] *= 0.5
        optimizer.step()
        return loss.item()

    def parts(run, step):
        model, optimizer, generator = run
        averages = optimizer.state_dict()["state"].values()
        rates = [group["lr"] for group in optimizer.param_groups]
        slopes = [p.grad for p in model.parameters() if p.grad is not None]
        return {
            "model": [t.tolist() for t in model.state_dict().values()],
            "optimizer": [rates, [[t.tolist() for t in s.values()] for s in averages]],
            "step": step,
            "data generator": generator.get_state().tolist(),
            "global generator": torch.get_rng_state().tolist(),
        }, [slope.tolist() for slope in slopes]

    outside = torch.get_rng_state()
    with tempfile.TemporaryDirectory() as place:
        path, kept = pathlib.Path(place) / "run.pt", pathlib.Path(place) / "kept.pt"
        run = small_run(seed)
        a_step(*run)
        a_step(*run)
        before, slopes = parts(run, step)
        student.save_checkpoint(path, run[0], run[1], step, run[2])
        after, slopes_after = parts(run, step)
        wrong = [f"{name} (by saving)" for name in before if before[name] != after[name]]
        wrong += ["gradients (by saving)"] if slopes != slopes_after else []
        names = sorted(found.name for found in pathlib.Path(place).iterdir())
        if names != ["run.pt"]:
            return ["files in the folder:", *names]
        path.rename(kept)
        later = [a_step(*run), a_step(*run)]
        student.save_checkpoint(path, run[0], run[1], step + 1, run[2])
        fresh = small_run(seed + 1)
        try:
            torch.load(kept, weights_only=True)
        except Exception as error:
            return [f"it does not load with weights_only=True: {type(error).__name__}"]
        loaded = student.load_checkpoint(kept, *fresh)
        now, _ = parts(fresh, loaded)
        wrong += [name for name in before if before[name] != now[name]]
        if not wrong and [a_step(*fresh), a_step(*fresh)] != later:
            wrong = ["the losses that follow"]
        torch.set_rng_state(outside)
        return wrong


@probe
def saved_over(student, seed):
    """Save twice, then on a full disk: [raised, step that then loads, written where, how]."""
    import errno
    import io
    import os
    import pathlib
    import tempfile
    import unittest.mock

    import torch

    def small_run(seed):
        torch.manual_seed(seed)
        model = torch.nn.Linear(30, 40)
        return model, torch.optim.AdamW(model.parameters()), torch.Generator().manual_seed(seed)

    real, where, there = torch.save, [], []

    def watched(rename):
        def renaming(source, target, **more):
            if pathlib.Path(target) == path:
                there.append(path.exists())
            return rename(source, target, **more)

        return unittest.mock.patch.object(os, rename.__name__, renaming)

    def half(contents, target, *more, **settings):
        buffer = io.BytesIO()
        real(contents, buffer)
        written = buffer.getvalue()[: buffer.tell() // 2]
        if hasattr(target, "write"):
            name = getattr(target, "name", None)
            target.write(written)
        else:
            name = target
            pathlib.Path(target).write_bytes(written)
        if isinstance(name, (str, pathlib.Path)):
            where.append(pathlib.Path(name).resolve().parent)
        raise OSError(errno.ENOSPC, "No space left on device")

    outside = torch.get_rng_state()
    with tempfile.TemporaryDirectory() as place:
        path = pathlib.Path(place) / "run.pt"
        run = small_run(seed)
        student.save_checkpoint(path, run[0], run[1], 4, run[2])
        first = path.stat().st_ino  # the file itself, whatever its name
        with watched(os.replace), watched(os.rename):
            student.save_checkpoint(path, run[0], run[1], 5, run[2])
        how = "in place" if path.stat().st_ino == first else "replaced"
        how = how if all(there) else "deleted, then renamed"
        try:
            with unittest.mock.patch.object(torch, "save", half):
                student.save_checkpoint(path, run[0], run[1], 6, run[2])
            raised = "nothing was raised"
        except OSError:
            raised = "raised"
        try:
            step = student.load_checkpoint(path, *small_run(seed + 1))
        except Exception:
            step = "a file that does not load" if path.exists() else "no file"
        torch.set_rng_state(outside)
        beside = not where or where[-1] == pathlib.Path(place).resolve()
        return [raised, step, "beside it" if beside else "elsewhere", how]


nothing = ["model", "optimizer", "data generator", "global generator"]
plain = (
    "Tensors, numbers, text, lists, tuples and dictionaries: nothing else counts as plain data."
)
named = [
    (["optimizer"], "The optimizer's state is not restored: averages, settings, or both."),
    (["global generator"], "PyTorch's global generator is not restored: dropout draws others."),
    (
        ["data generator"],
        "The data's generator is not restored: batches are repeated or left out.",
    ),
    (["model"], "The model is not restored, or only half: state_dict() holds buffers as well."),
    (["step"], "The step is not the one that was saved."),
    (nothing[2:], "No generator is restored: chance goes another way."),
    (nothing[:2], "Model and optimizer are not restored: use load_state_dict of both."),
    (nothing[1:], "Only the model is restored."),
    (
        nothing,
        "Loaded, but nothing is restored: a dictionary that nobody looks at changes no model.",
    ),
    (["the losses that follow"], "Is the model still in training mode?"),
    (["gradients (by saving)"], "Saving changes nothing in the run, not its gradients either."),
    (["it does not load with weights_only=True: UnpicklingError"], plain),
    (
        ["files in the folder:", "run.pt", "run.pt.partial"],
        "The file under the other name is left behind: os.replace moves it.",
    ),
]
folder_hint = (
    "Both functions together must bring every part back: compare with the list in the text."
)
seen = observe(not_restored, 17, 3)
expect(seen.value, [], about="parts that are not restored", mistakes=named, hint=folder_hint)
half_there = "Only half of the new one is there, and the old one is gone: write another file."
swallowed = "The error must be passed on: somebody has to make room on that disk."
elsewhere = (
    "Write it in the same folder: a rename cannot cross file systems, and /tmp may be another."
)
not_renamed = (
    "The old file itself was written to, and a power cut would leave half of it: rename."
)
gap = "For a moment there is no file at all: os.replace takes the old one's place by itself."
mistakes = [
    (["raised", 5, "beside it", "deleted, then renamed"], gap),
    (["raised", 5, "beside it", "in place"], not_renamed),
    (["nothing was raised", 5, "beside it", "replaced"], swallowed),
    (["raised", 5, "elsewhere", "replaced"], elsewhere),
]
for how in ("in place", "replaced", "deleted, then renamed"):
    gone = "The old one is gone: never delete it first."
    mistakes.append((["raised", "a file that does not load", "beside it", how], half_there))
    mistakes.append((["raised", "no file", "beside it", how], gone))
seen = observe(saved_over, 3)
about = "the third save meets a full disk: raised; step that loads; written where; how"
right_way = ["raised", 5, "beside it", "replaced"]
expect(seen.value, right_way, about=about, mistakes=mistakes)
### BEGIN HIDDEN TESTS
from course_utils.testing import draws

draw = draws()
about_parts = "parts that are not restored"
for kind in ("AdamW", "SGD", "two groups"):
    for step in (0, draw.integer(1, 10**6)):
        seen = observe(not_restored, step, draw.integer(0, 10**6), kind)
        expect(seen.value, [], about=about_parts, mistakes=named, hint=folder_hint)
seen = observe(saved_over, draw.integer(0, 10**6))
expect(seen.value, right_way, about=about, mistakes=mistakes)
### END HIDDEN TESTS

# %% [markdown]
r"""
<details><summary>Hint 1</summary>A model and an optimizer have <code>state_dict()</code> and <code>load_state_dict(…)</code>; a generator has <code>get_state()</code> and <code>set_state(…)</code>; the global one has <code>torch.get_rng_state()</code> and <code>torch.set_rng_state(…)</code>.</details>
<details><summary>Hint 2</summary><code>path.with_name(path.name + ".partial")</code> lies in the same folder. Save to that, then <code>os.replace(partial, path)</code>.</details>

**Why it matters.** A month of such a run as Llama 3's is 233 pieces. It is one run only if the seams do not show.

### What it costs, and how often to pay

**Predict.** `NextByte` has 63,872 parameters in float32, and AdamW keeps two numbers for each. How many bytes is
a checkpoint *per parameter*?
"""

# %%
guess = None  # B per parameter

# %%
model, optimizer, generator = run = new_run(0)
go_on(run, range(1))
save_checkpoint(folder / "small.pt", model, optimizer, 1, generator)
parameters = sum(p.numel() for p in model.parameters())
on_disk = (folder / "small.pt").stat().st_size
reconcile("a checkpoint", guess, on_disk / parameters, "B per parameter")
print(f"{parameters:,} parameters, {format_bytes(on_disk)}")

assert parameters == 256 * 24 + (8 * 24 * 128 + 128) + (128 * 256 + 256) == 63_872
assert 12 < on_disk / parameters < 12.6  # 4 + 4 + 4, and some names
assert 12 * 70e9 == 840e9  # a 70 B model: 840 GB

# %% [markdown]
r"""
Twelve: 4 for the parameter, 8 for Adam's two averages. (Gradients are not kept; the next step makes its own.) A model of
70 billion parameters leaves 840 GB, each time. At 2 GB/s that is seven minutes of waiting.

So one cannot save after every step, and must not save too rarely, since a failure throws away what came after the last
save: half an interval, on average. Let saving take $\delta$ seconds, let failures be $M$ seconds apart, and save every
$\tau$ seconds. The share of time that is lost is about

$$\frac{\delta}{\tau} + \frac{\tau}{2M}, \qquad\text{smallest at}\quad \tau = \sqrt{2\,\delta M}$$

(Young, 1974). For a failure in three hours, as in Llama 3's run, and a minute to save:
"""

# %%
assert 840e9 / 2e9 == 7 * 60


def lost(interval: float, save_seconds: float, between_failures: float) -> float:
    """The share of time lost to saving and to repeating."""
    return save_seconds / interval + interval / (2 * between_failures)


by_formula = math.sqrt(2 * 60 * one_failure)
by_search = min(range(60, 20_000), key=lambda tau: lost(tau, 60, one_failure))
print(
    f"save every {by_formula / 60:.0f} minutes: "
    f"{lost(by_formula, 60, one_failure):.1%} of the time is lost"
)
print(
    f"each hour: {lost(3_600, 60, one_failure):.1%}; "
    f"each two minutes: {lost(120, 60, one_failure):.1%}"
)
print(f"if saving takes 5 s: {lost(math.sqrt(2 * 5 * one_failure), 5, one_failure):.1%}")

assert abs(by_formula - by_search) < 1 and round(by_formula / 60) == 19
assert round(lost(by_formula, 60, one_failure), 3) == 0.104
assert round(1 - FACTS["Llama 3.1 405B effective training time"].value, 3) == 0.1
assert round(30 * 24 * 3600 / one_failure) == 233  # pieces of a month

# %% [markdown]
r"""
Every 19 minutes, and still a tenth of the time is lost. (Llama 3's makers report a loss below a tenth, from all causes:
they save faster.) That is why much work goes into *fast* checkpoints: each GPU writes its own part, and a copy is made
in memory, so that training goes on while it is written.

### What a careful one adds

`course_utils.checkpoint` does what yours does, and a few things that only hurt once. It restores NumPy's, Python's and
the GPUs' generators too. It makes sure that the bytes are on the disk before the rename (`fsync`), since the power may
also fail in the *operating system's* memory. It compares the checksums, which `torch.load` does not. And it compares
everything *before* it changes anything. That is worth a look: `load_state_dict` raises an error for a wrong model, but
on the way it has already copied what did fit.
"""

# %%
other = NextByte(hidden=96)
untouched = other.table.weight.detach().clone()
try:
    other.load_state_dict(model.state_dict())
    raise AssertionError("it took another model's weights")
except RuntimeError:
    assert not torch.equal(other.table.weight, untouched)  # half restored, and then the error

careful = folder / "careful.pt"
checkpoint.save_checkpoint(
    careful, model=model, optimizer=optimizer, step=1, generators={"data": generator}
)
other = NextByte(hidden=96)
untouched = other.table.weight.detach().clone()
other_optimizer = torch.optim.AdamW(other.parameters())
whole_file = careful.read_bytes()
flipped = bytearray(whole_file)
flipped[len(flipped) // 2] ^= 1  # one bit of six million
torch.load(io.BytesIO(flipped))  # does not notice
for name, contents in (
    ("careful", whole_file),
    ("cut_short", whole_file[:-9_000]),
    ("one_bit", bytes(flipped)),
):
    (folder / f"{name}.pt").write_bytes(contents)
    try:
        checkpoint.load_checkpoint(
            folder / f"{name}.pt",
            model=other,
            optimizer=other_optimizer,
            generators={"data": generator},
        )
        raise AssertionError(f"{name}.pt was taken")
    except checkpoint.CheckpointError as error:
        print(f"- {str(error).replace(f'{folder}{os.sep}', '')}")
assert torch.equal(other.table.weight, untouched)  # nothing was changed

# %% [markdown]
r"""
*Try it yourself:* draw `resume_without({"optimizer"})` beside `whole[20:]`, with `plots.loss_curves`. Would you have
seen that something is missing?

## 8 · The result: a power cut

Now everything together, and all of it yours: `write_tokens` and `open_tokens` made the data, `get_batch` draws from it,
`seed_everything` begins, `warmup_cosine` sets the pace, `train` runs, `save_checkpoint` saves every 30 steps. The run
has 120. In step 75 the power fails.

What comes afterwards is a *new process*. We cannot restart your notebook, so we do what comes closest: nothing of the
old run is kept but the file, and the new process is seeded differently, so that whatever is not restored will show.

**Predict.** How many steps' work is lost?
"""

# %%
guess = None  # steps


# %% tags=["item-75", "item-86"]
class PowerCut(Exception):
    """Stands for the end of a process."""


def process(
    path: Path, seed: int, power_fails_in: int = -1
) -> tuple[dict[int, float], NextByte]:
    """Train to the last step, from the checkpoint if there is one, and save every 30 steps."""
    model, optimizer, generator = new_run(seed)
    first = load_checkpoint(path, model, optimizer, generator) if path.exists() else 0
    now = itertools.count(first)

    def next_batch() -> tuple[Tensor, Tensor]:
        if next(now) == power_fails_in:
            raise PowerCut
        return get_batch(open_tokens(folder / "python.npy", 256), 16, 64, generator)

    losses: dict[int, float] = {}
    try:
        for start in range(first, total_steps, 30):
            steps = range(start, start + 30)
            found = train(model, optimizer, next_batch, next_byte_loss, lr_at, steps)
            losses |= dict(zip(steps, found, strict=True))
            save_checkpoint(path, model, optimizer, start + 30, generator)
    except PowerCut:
        pass
    return losses, model


for old in ("whole.pt", "power_cut.pt"):  # of an earlier run of this cell
    (folder / old).unlink(missing_ok=True)
never_stopped, model_whole = process(folder / "whole.pt", seed=0)
before_cut, _ = process(folder / "power_cut.pt", seed=0, power_fails_in=75)
after_cut, model_resumed = process(folder / "power_cut.pt", seed=4_321)

reconcile("steps done twice", guess, 75 - min(after_cut), "steps")
assert sorted(before_cut) == list(range(60)) and sorted(after_cut) == list(range(60, 120))
assert before_cut | after_cut == never_stopped  # every loss, every bit
for name, weight in model_whole.state_dict().items():
    assert torch.equal(weight, model_resumed.state_dict()[name])  # and every weight
print(f"{len(after_cut)} resumed losses and {parameters:,} weights: not one bit differs")
assert never_stopped[0] > 5.3 and never_stopped[119] < 3

# %%
finding = (
    f"Killed in step 75, resumed from step 60: all {total_steps} losses agree, bit for bit"
)
plots.show(
    plots.loss_curves(
        {"one run": before_cut | after_cut},
        {"one run": never_stopped},
        events={"last checkpoint": 60, "power cut": 75},
        names=("in two pieces", "never stopped"),
        ylabel="loss (nats per byte)",
        title=finding,
    ),
    alt=f"{finding}. The loss falls from {never_stopped[0]:.1f} to below 3 nats per byte; the "
    "marks of the run in two pieces are filled, and lie inside the hollow marks of the other.",
)

# %% [markdown]
r"""
Fifteen steps were done twice; nothing else was lost. And the seam does not show: not in the curve, not in the weights,
not in a single bit. That is the answer to the question: a run must remember **all that its next step depends on**, and
write it down *whole, or not at all*.

What did the bits rest on? On one machine, one number of threads, one version of PyTorch. Move the checkpoint to another
machine, and the run goes on correctly, but its last digits may differ after a step, as those of any two orders of
addition may. The instrument is exact only where the arithmetic is.

And what has the model learnt, in a few seconds, from Python's own source?
"""

# %%
model_resumed.eval()
written_so_far = list(b"def ")
speaker = torch.Generator().manual_seed(1)
with torch.no_grad():
    for _ in range(120):
        scores = model_resumed(torch.tensor([written_so_far[-8:]]))[0, -1]
        chances = torch.softmax(scores / 0.7, dim=0)
        written_so_far.append(int(torch.multinomial(chances, 1, generator=speaker)))
print(bytes(written_so_far).decode(errors="replace"))
assert len(written_so_far) == 124

# %% [markdown]
r"""
Not a programmer yet; but it indents. Give it more steps if you like, and stop it whenever you want.

*Try it yourself:* let the power fail in step 75 *and* in step 100 of the resumed process. Then comment out one line of
your `load_checkpoint`, and see which of the asserts above notices.

## Takeaways

**Mechanics.** Tokens lie on disk as the smallest unsigned integers that hold the vocabulary, in a .npy file, opened with
`mmap_mode="r"`; the window becomes int64, not the file. $N$ tokens have $N - T$ windows with targets. `random`, NumPy and
PyTorch are seeded separately, and batches have a generator of their own. Zero, backward, step; look at the loss before
the update. A checkpoint is model, optimizer, step, generators and data position: 12 bytes per parameter for AdamW in
float32; written beside the old one, renamed when complete.

**Mindset.** Every input is checked where it comes in, because nothing further down will notice. Two runs that should
differ and do not are as suspicious as two that should not and do. "Looks right" is no test of resuming; compare bits,
on a machine where bits are promised. A function of the step has nothing to forget.

**Intuitions.** For tokens, the copy to the GPU is thousands of times shorter than the step; the pipeline before it is
what can be slow, and overlapping hides it as long as it is not the slower one. The best learning rate is near, and
below, the one that explodes. Seeds fix the draws, not the order of additions. On thousands of GPUs something fails every
few hours: a run is as good as its last checkpoint, and one saves every $\sqrt{2\,\delta M}$ seconds.

Next: **10 · Mixed precision**. All numbers here were float32. Half as many bytes would do, most of the time; when do they
not?
"""

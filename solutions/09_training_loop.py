# %% [markdown]
r"""
# 09 · The training loop

[← 08 · Optimizers](../08_optimizers/08_optimizers.ipynb) · [10 · Mixed precision →](../10_mixed_precision/10_mixed_precision.ipynb)

> **What must a run remember, so that pulling the plug costs nothing?**

You have a model, its gradients and an optimizer. What is missing is everything around them: where the tokens come from,
how a batch gets to the device, what a seed promises, which learning rate, and what to do when the machine stops. It
will stop. While Llama 3.1 405B was trained on 16,384 GPUs, its makers counted 419 unexpected interruptions in 54 days:
one in three hours. So this lecture ends with a power cut. You will have built, from your own parts, a run that is
killed in the middle, resumed from disk by a process that knows nothing, and lies *bit for bit* on the run that was
never interrupted.

How to read: run the cells in order (<kbd>Shift</kbd> + <kbd>Enter</kbd>). Where a cell says *predict*, write your
number first; being wrong is how you find out what to look at. The cell below each exercise checks your answer and names
the likely mistake; *Validate* in the toolbar runs them all.
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
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
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
from course_utils.testing import check

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
that ends in `.npy`; there is at least one token, and at most $2^{32}$ in the vocabulary. Every id fits into an int64.
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


# %% nbgrader={"grade": true, "grade_id": "test_write_tokens", "locked": true}
check("write_tokens")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>One byte holds the ids 0 to 255, so it is enough for a vocabulary of 256, not of 257. <code>np.min_scalar_type(n)</code> tells the smallest type that holds <code>n</code>.</details>
<details><summary>Hint 2</summary>Look at the smallest and at the largest id before you write. A dtype knows its kind, size and byte order, and a comparison of two dtypes compares all three.</details>

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
are the window one token later. Every window is equally likely, the last one too, and the rows are drawn independently.
(float32 has only $2^{24}$ numbers below 1 to draw from, and a text may have billions of windows.)
All chance comes from `generator`, a `torch.Generator`: the same state gives the same batch, and a second call another.
`batch` and `context` are at least 1. If there is not a single window, raise a `ValueError`. And read only what you need:
a call must not take memory for the whole text.
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


# %% nbgrader={"grade": true, "grade_id": "test_get_batch", "locked": true}
check("get_batch")

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
time. (For pictures it is another matter: 256 of them, 224 × 224 in three colors, are 154 MB in float32.) What does
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
"""


# %%
def seed_everything(seed: int) -> None:
    """Seed the global generators of random, NumPy and torch (CPU and GPUs), each with seed."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


# %% [markdown]
r"""
When you can't reproduce a result, look for a generator that nobody seeded: data augmentation may draw from Python's, and
shuffling from NumPy's.

Seeding once more in the middle of a run is a mistake, because training then draws the same numbers a second time. But some
things in the middle of a run *should* draw the same numbers every time. If you measure the loss on random examples that
the model isn't trained on (the **validation loss**), you want the same examples at each measurement; otherwise a loss may
change only because the examples did. And the measurement must not move the generators that training draws from: you have just
seen that a single number drawn in between changes everything after it. So it needs a seed that holds for one block of
code only.

### Exercise 9.3 · A seed for one block &nbsp; ★★☆ &nbsp; 15 minutes

Write `seeded(seed)`, which returns a **context manager**: an object that you put after `with`, as in `with seeded(7):`.

- Inside the block, each of the three global generators (Python's, NumPy's and PyTorch's) draws what it draws after its
  own seeding function was called with `seed`.
- After the block, each continues as if there had been no block.
- The same holds if the block ends with an error, or because you interrupt it (a `KeyboardInterrupt`). The error comes
  out of the block unchanged.
- Blocks can be nested: after the inner block, the outer one continues where it was.
- `block = seeded(7)` alone changes no generator. The state restored later is the one at `with block:`.

`seed` is an integer from 0 to $2^{32} - 1$, the range that NumPy accepts. One call serves one block; for a second block,
`seeded` is called again. The check looks at generators on the CPU only, but use a way that restores those of GPUs as well.

Every generator has a function that returns its state and one that sets it. For PyTorch, `torch.random.fork_rng()` does
both: after a block `with torch.random.fork_rng():`, the generators of the CPU and of the GPUs are back in the state that
they had before it. The decorator `@contextmanager` turns a function with a single `yield` into a context manager. What
comes before the `yield` runs when the block begins, what comes after it runs when the block ends, and an error in the
block is raised at the `yield`.
"""


# %% nbgrader={"grade": false, "grade_id": "seeded", "locked": false, "schema_version": 3, "solution": true, "task": false}
@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed random, NumPy and torch for a block; after it, each continues as if there had been no block."""
    ### BEGIN SOLUTION
    of_python, of_numpy = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng():
            random.seed(seed)
            np.random.seed(seed)
            torch.manual_seed(seed)
            yield
    finally:
        random.setstate(of_python)
        np.random.set_state(of_numpy)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_seeded", "locked": true}
check("seeded")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>There are three states to save, three generators to seed, and three states to restore. Which of that comes before the <code>yield</code>?</details>
<details><summary>Hint 2</summary>Look at <code>random.getstate</code> and <code>np.random.get_state</code>; each has a counterpart that sets the state. Whatever has to happen even after an error belongs in a <code>finally</code>.</details>

**Why it matters.** An evaluation that draws from the global generators changes the training after it. Then two runs with the
same seed differ only because one of them was evaluated more often.

Let's see that happen. A small model with dropout takes six steps at learning to add up eight numbers. We run it three
times from the same seed: without an evaluation, with one after the third step, and with one that is seeded.
"""


# %%
def validation_loss(model: nn.Module) -> float:
    """The loss on 256 random examples, without dropout."""
    model.eval()
    with torch.no_grad():
        x = torch.randn(256, 8)
        loss = F.mse_loss(model(x), x.sum(dim=1, keepdim=True)).item()
    model.train()
    return loss


def seeded_validation_loss(model: nn.Module) -> float:
    """The loss on 256 random examples, the same ones each time."""
    with seeded(7):
        return validation_loss(model)


def six_losses(look: Callable[[nn.Module], float] | None = None) -> list[float]:
    """The training losses of six steps; if there is a look at the model, it comes after the third."""
    seed_everything(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.5), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = []
    for step in range(6):
        if step == 3 and look is not None:
            look(model)
        x = torch.randn(32, 8)
        loss = F.mse_loss(model(x), x.sum(dim=1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


no_look = six_losses()
plain_look = six_losses(validation_loss)
seeded_look = six_losses(seeded_validation_loss)
print("step   no evaluation   evaluation   seeded evaluation")
for step, row in enumerate(zip(no_look, plain_look, seeded_look, strict=True)):
    print(f"{step:>4}   {row[0]:13.3f}   {row[1]:10.3f}   {row[2]:17.3f}")

assert plain_look[:3] == no_look[:3]
assert all(a != b for a, b in zip(plain_look[3:], no_look[3:], strict=True))  # other draws
assert seeded_look == no_look  # the same draws, to the last bit

untrained = nn.Linear(8, 1)
assert validation_loss(untrained) != validation_loss(untrained)  # other examples each time
assert seeded_validation_loss(untrained) == seeded_validation_loss(untrained)

# %% [markdown]
r"""
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

Write `train(model, optimizer, next_batch, loss_fn, lr_at, steps)`, and use every argument. `optimizer` has parameters of
`model` and no others. For each number in `steps` (a `range`, which need not begin at 0):

1. set the learning rate of *every* parameter group of `optimizer` to `lr_at(step)`;
2. call `next_batch()` once; it returns inputs and targets;
3. compute `loss_fn(model(inputs), targets)`;
4. if the loss is NaN or infinite, raise a `FloatingPointError` whose message contains the number of the step. The
   parameters and the optimizer's state must then be what they were after the step before (its learning rate, gradients,
   and what the forward pass itself changes, such as the running averages of a BatchNorm, may have changed);
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


# %% nbgrader={"grade": true, "grade_id": "test_train", "locked": true}
check("train")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>The five lines above, and three more: set <code>group["lr"]</code> for each group in <code>optimizer.param_groups</code>, look at the loss with <code>torch.isfinite</code>, and append <code>loss.item()</code>.</details>
<details><summary>Hint 2</summary>Gradients have to be cleared at some moment <em>before</em> the backward pass, and the loss has to be looked at before the update.</details>

**Why it matters.** This is the loop that you will run for the rest of the course. Everything that it needs comes in
through its arguments, and that is why it can be stopped and taken up again.

## 6 · The learning rate over time

In practice the learning rate is not one number. At the start, gradients are large and the optimizer's averages know
nothing yet: so one begins low and **warms up**. Toward the end, the noise of the steps keeps the loss from settling:
so one goes down, most often along a half **cosine**.

The usual way in PyTorch is a *scheduler*, an object that counts its own steps. Then there is one more thing that knows
where the run is, one more thing to save, and one more thing to forget. A *function of the step* has nothing to forget.

### Exercise 9.5 · Warm-up and cosine &nbsp; ★★☆ &nbsp; 10 minutes

Write `warmup_cosine(step, warmup, steps, peak, floor)`: the learning rate of a step, counted from 0, in the full
precision of Python's floats.

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


# %% nbgrader={"grade": true, "grade_id": "test_warmup_cosine", "locked": true}
check("warmup_cosine")

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
`path`, once there was one. When it succeeds, it leaves no other file of its own in the folder, not even one from an
earlier save that failed or was interrupted. Your own are files whose names begin with `path.name`; all others stay.
`load_checkpoint(path, model, optimizer, generator)` puts model, optimizer and both generators into that state, and
returns the step. The file must load with `torch.load(path)` as it is, which is `weights_only=True`. Saving must change
nothing in the run. `path` is a `Path`, its folder exists.
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


# %% nbgrader={"grade": true, "grade_id": "test_save_checkpoint", "locked": true}
check("save_checkpoint")

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

Now everything together, and all of it except the seeding is yours: `write_tokens` and `open_tokens` made the data,
`seed_everything` seeds the run, `get_batch` draws from the data, `warmup_cosine` sets the pace, `train` runs,
`save_checkpoint` saves every 30 steps. The run has 120. In step 75 the power fails.

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
PyTorch are seeded separately, batches have a generator of their own, and an evaluation gets a seed that holds for its
own block only. Zero, backward, step; look at the loss before the update. A checkpoint is model, optimizer, step,
generators and data position: 12 bytes per parameter for AdamW in float32; written beside the old one, renamed when
complete.

**Mindset.** Every input is checked where it comes in, because nothing further down will notice. Two runs that should
differ and do not are as suspicious as two that should not and do. "Looks right" is no test of resuming; compare bits,
on a machine where bits are promised. A function of the step has nothing to forget.

**Intuitions.** For tokens, the copy to the GPU is thousands of times shorter than the step; the pipeline before it is
what can be slow, and overlapping hides it as long as it is not the slower one. The best learning rate is near, and
below, the one that explodes. Seeds fix the draws, not the order of additions. On thousands of GPUs something fails every
few hours: a run is as good as its last checkpoint, and one saves every $\sqrt{2\,\delta M}$ seconds.

Next: [10 · Mixed precision](../10_mixed_precision/10_mixed_precision.ipynb). All numbers here were float32. Half as many bytes would do, most of the time; when do they
not?
"""

# %% [markdown]
r"""
# 09 · The training loop

[← 08 · Optimizers](../08_optimizers/08_optimizers.ipynb) &nbsp;|&nbsp; [10 · Mixed precision
→](../10_mixed_precision/10_mixed_precision.ipynb)

> **What must a training run remember, so that pulling the plug costs only minutes?**

You have a model, its gradients and an optimizer. What's missing is everything around them: where the tokens come from,
how a batch gets to the device, what a seed guarantees, how the learning rate changes, and what to do when the machine
stops. It will stop. When Llama 3.1 405B was trained on 16,384 GPUs, its authors counted 419 unexpected interruptions in
54 days (The Llama 3 Herd of Models, 2024), one every three hours. So this lecture ends with a power failure. By then
you'll have built, from your own parts, a training run that is killed in the middle, is resumed from nothing but a file
on disk, and still agrees *bit for bit* with a run that was never interrupted.
"""

# %%
import copy
import io
import itertools
import math
import os
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

from course_utils import checkpoint, data, facts, plots
from course_utils import device as devices
from course_utils.facts import FACTS
from course_utils.memory import Block, blocks, held_at_peak
from course_utils.predict import reconcile
from course_utils.progress import show_progress
from course_utils.units import format_bytes, readable
from course_utils.testing import check

device = devices.pick_device()
print(devices.describe(device))
show_progress()

# %% tags=["folded"]
days, failures, gpus = (
    FACTS[f"Llama 3.1 405B {what}"].value
    for what in ("observed", "unexpected interruptions", "devices")
)
assert (days, failures, gpus) == (54, 419, 16_384)
one_failure = days * 24 * 3600 / failures  # seconds
assert round(one_failure / 3600, 1) == 3.1
assert round(30 * 24 * 3600 / one_failure) == 233  # pieces of a month
facts.table("Llama 3.1 405B observed", "Llama 3.1 405B unexpected interruptions")

# %% [markdown]
r"""
## 1 · Tokens on disk

For a language model, text is a sequence of integers, the **token ids**: each token has a number. A *tokenizer* converts
the text once, before training, and the result is stored in a file. How large is that file?

That depends on the integer type. A vocabulary of 50,257 tokens (GPT-2 and GPT-3) has ids up to 50,256, which fit into
16 bits. Llama 3's vocabulary has 128,256 tokens, too many for 16 bits, so each id takes 32.
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
By default PyTorch stores Python's integers as int64. Compared with uint16, that takes four times the disk space and
four times as long to read, and adds no information.

NumPy arrays have a method `tofile`, and you may see it used like this:
"""

# %%
scratch = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
folder = Path(scratch.name)  # deleted when the notebook closes

ids = np.array([1, 2, 3, 4], dtype=np.uint16)
ids.tofile(folder / "data.npy")
print((folder / "data.npy").read_bytes())
assert (folder / "data.npy").stat().st_size == 8

# %% [markdown]
r"""
The file contains four two-byte numbers and nothing else: no dtype, no length, no byte order. Despite its name, it isn't
a .npy file at all.

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
There's no error and no warning, just half as many tokens, all of them wrong. The opposite mistake is harder to notice.
Write ids below 65,536 as int32 and read them as uint16, and you get all of them, each followed by a 0. Since a 0 in
every second place is easy to predict, the loss may even look *better*.

> **Trap: two more ways to misread a file.** (1) `np.load` refuses these bytes with a message about pickles that
> suggests `allow_pickle`. Don't follow that advice: a pickle (Python's format for saving arbitrary objects) can contain
> code that runs when it's loaded. (2) `np.memmap` opens the file as *bytes* (its default dtype is uint8), for reading
> *and writing* (its default mode is `r+`), so one slip changes your data set on disk.
"""

# %% tags=["error-7"]
try:
    np.load(folder / "data.npy")
    raise AssertionError("np.load accepted raw bytes")
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
The remedy is a real .npy file. `np.save` first writes a header (here 128 bytes) with dtype, byte order and shape. And
`np.load(path, mmap_mode="r")` makes a read-only memory map. A **memory map** looks like any other array, but the
operating system fetches its elements from disk only when you touch them, one page (a block of a few kilobytes) at a
time, and may discard them again. So the file may be larger than your memory.

**Predict.** A file of $2^{24}$ tokens in uint16 takes 34 MB. You map it and copy 1,025 consecutive tokens as int64
(1,024 inputs and one more, as section 2 will need). How many bytes of memory does NumPy allocate in total?
"""

# %%
guess = None  # bytes


# %% tags=["item-74"]
def asked_for(f: Callable[[], object]) -> int:
    """Bytes that NumPy allocated for the result of f."""
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
That count leaves out the pages of the file that were touched. They're in memory too, but they belong to the operating
system, which shares them among processes and can free them when it needs the memory.

*Try it yourself:* open `many.npy`, the file of $2^{24}$ tokens from above, in mode `"c"`, *copy on write*, and write to
an element. Does the file change?

### Exercise 9.1 · Tokens, written and opened &nbsp; ★★☆ &nbsp; essential &nbsp; 15 minutes

Write two functions. `write_tokens(path, tokens, vocab_size)` writes a list of ids as a .npy file, in the *smallest* of
uint8, uint16 and uint32 that can hold every id from 0 to `vocab_size` − 1 (not only those that happen to occur). If an
id is negative or not in the vocabulary, it raises a `ValueError` and writes nothing, so that a file that's there
already stays as it is. `open_tokens(path, vocab_size)` maps such a file, read-only. If the file's dtype isn't the one
that `vocab_size` requires, it raises a `ValueError`, even if only the kind (int16 instead of uint16, say) or the byte
order differs. `path` is a `Path` that ends in `.npy`; `tokens` isn't empty; `vocab_size` is from 1 to $2^{32}$; and
every id fits into an int64.
"""


# %% nbgrader={"grade": false, "grade_id": "write_tokens", "locked": false, "schema_version": 3, "solution": true, "task": false}
def write_tokens(path: Path, tokens: list[int], vocab_size: int) -> None:
    """Write ids as a .npy file, in the smallest unsigned dtype that holds the vocabulary."""
    ### BEGIN SOLUTION
    if min(tokens) < 0 or max(tokens) >= vocab_size:
        raise ValueError(f"there is an id outside a vocabulary of {vocab_size} tokens")
    np.save(path, np.array(tokens, dtype=np.min_scalar_type(vocab_size - 1)))
    ### END SOLUTION


def open_tokens(path: Path, vocab_size: int) -> NDArray[Any]:
    """Map a file of ids, read-only. Raises ValueError if vocab_size calls for another dtype."""
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
<details><summary>Hint 1</summary>One byte can hold the ids 0 to 255, so it's enough for a vocabulary of 256 but not of 257. <code>np.min_scalar_type(n)</code> returns the smallest type that holds <code>n</code>.</details>
<details><summary>Hint 2</summary>Look at the smallest and the largest id before you write. A dtype knows its kind, size and byte order, and comparing two dtypes compares all three.</details>

**Why it matters.** Wrong tokens that happen to be valid ids cause no error anywhere later. The place to catch them is
where the file is opened.

### What else can go wrong with a file (optional)

Your functions check the dtype, and NumPy notices some damaged files. The course's own functions in `course_utils.data`,
which the capstone uses, also check the ids, and their messages say what to do:
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
        raise AssertionError(f"{name}.npy was accepted")
    except ValueError as error:
        print(f"- {str(error).replace(f'{folder}{os.sep}', '')}")

# %% [markdown]
r"""
### A text that you already have

We'll train on the source code of Python's standard library. Each byte is a token, so the vocabulary has 256 tokens and
we need no tokenizer. Your functions write and open the file:
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

A batch consists of $B$ windows of $T$ tokens each, taken from random places. At each position the model has to predict
the next token, so the **targets** are the same windows, shifted by one token:

| position | 0 | 1 | 2 | 3 |
|---|---|---|---|---|
| input | `d` | `e` | `f` | *space* |
| target | `e` | `f` | *space* | `t` |

A window of $T$ inputs therefore takes $T + 1$ tokens of the text. How many different windows of 4 inputs, with their
targets, does a text of 12 tokens have?
"""

# %% tags=["item-75"]
text_of_12 = np.arange(100, 112, dtype=np.uint16)
context = 4
windows = [
    text_of_12[start : start + context + 1]
    for start in range(len(text_of_12))
    if start + context + 1 <= len(text_of_12)
]
print(f"{len(windows)} windows")

assert len(windows) == len(text_of_12) - context == 8
assert windows[-1][-1] == text_of_12[-1]  # the last one ends with the text

# %% [markdown]
r"""
A text of $N$ tokens has $N - T$ such windows, starting at $0, \dots, N - T - 1$.

> **Trap: four mistakes and a risk.** Here's the kind of function you may find in lecture notes. It runs, and its result
> looks like a batch. Four things are wrong with it (two show only when you call it and pass the result to a model).
> Find as many as you can, then open the folded cell below, which shows them. (The risk is explained below that cell.)
"""


# %%
def get_batch_as_found(tokens: NDArray[Any], batch: int, context: int) -> Tensor:
    starts = torch.randint(len(tokens) - context, (batch,))
    return torch.tensor([tokens[start : start + context] for start in starts])


# %% tags=["error-13", "error-28", "folded"]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    drawn = get_batch_as_found(text_of_12, 500, 4)
message = str(caught[0].message).split(" (")[0]

# 1. Only inputs: what should the model predict at the last position?
assert drawn.shape == (500, 4)
# 2. Without targets, a window may also begin at 8, but randint excludes its upper bound. (With
# targets, this bound is right.)
assert drawn[:, 0].long().max() == 107 and not (drawn == 111).any()  # never the last token
# 3. A list of arrays is converted number by number.
assert "extremely slow" in message
print(message)
# 4. The ids stay uint16, but an embedding accepts only int32 and int64 (and no floats, either).
assert drawn.dtype == torch.uint16
for ids_of_another_type in (drawn, drawn.float()):
    try:
        nn.Embedding(200, 2)(ids_of_another_type)
        raise AssertionError(f"an embedding accepted {ids_of_another_type.dtype}")
    except RuntimeError as error:
        print(str(error).split(";")[0])
assert torch.tensor(2**24 + 1).float() == 2**24  # as a float32, it's the id before

# %% [markdown]
r"""
The risk is that `get_batch_as_found` draws from PyTorch's *global* source of random numbers, the one that dropout and
initialization draw from by default. Add one dropout layer to the model, and each forward pass draws from the same
source, so every batch after the first changes. That's why batches should have their own generator (section 4).

> **Trap: a read-only array.** An array mapped with `mmap_mode="r"` is read-only, yet `torch.from_numpy` turns it into a
> tensor that PyTorch *thinks* it may write to. PyTorch warns about this, but only once. `astype(np.int64)` makes a copy
> that's safe to write to. Make that copy *after* you've picked the windows: `tokens.astype(np.int64)` would read the
> whole file into memory, at eight bytes per token.

### Exercise 9.2 · A batch &nbsp; ★★☆ &nbsp; essential &nbsp; 15 minutes

Write `get_batch(tokens, batch, context, generator)`. It returns inputs and targets, two int64 tensors of shape
`[batch, context]`. `tokens` is a one-dimensional array of fewer than $2^{28}$ tokens, of any integer dtype and either
byte order, and it's often memory-mapped. Each row of the inputs is a window of `tokens`, and its targets are the same
window shifted by one token. Every window is equally likely, including the last one, and the rows are drawn
independently. (For so few tokens, `torch.randint`, or any remainder of 31 random bits, is near enough to that. A scaled
`torch.rand` isn't: it has only $2^{24}$ different values, and a text may have many more windows.) All randomness comes
from `generator`, a `torch.Generator`: the same state gives the same batch, and each call advances the state, so the
next call draws new windows. `batch` and `context` are at least 1. If there isn't a single window, raise a `ValueError`.
Read only what you need: a call must not allocate memory for the whole text.
"""


# %% nbgrader={"grade": false, "grade_id": "get_batch", "locked": false, "schema_version": 3, "solution": true, "task": false}
def get_batch(
    tokens: NDArray[Any], batch: int, context: int, generator: torch.Generator
) -> tuple[Int[Tensor, "batch context"], Int[Tensor, "batch context"]]:
    """Random windows and their targets, one token later. Raises ValueError if there is no window."""
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
<details><summary>Hint 1</summary><code>torch.randint(high, shape, generator=generator)</code> gives 0 … high − 1. A text of 5 tokens has one window of 4: what must <code>high</code> be?</details>
<details><summary>Hint 2</summary>If you add <code>arange(context + 1)</code> to starts of shape <code>[batch, 1]</code>, broadcasting gives you all positions, <code>[batch, context + 1]</code>. NumPy accepts an array of positions as an index. Then inputs and targets are two views of these rows.</details>

**Why it matters.** With an off-by-one error here, the model silently learns the wrong thing: if the targets equal the
inputs, the loss goes to zero, and the model has only learned to copy.

If you plan to use the model, don't train on the whole text. (In this lecture we do, since we only compare runs with
each other.) A **validation set** is a set of examples that the model isn't trained on, and the **validation loss** is
the model's loss on them. It shows whether the model has learned something general. (**Overfitting** means that a model
fits its training examples but not others.)

*Try it yourself:* ask for a context that's one token shorter than the text. How many windows are there, and how many
different batches?

## 3 · Moving batches while the device works

A batch is made on the CPU and has to get to the GPU. Lecture 01 introduced two tools for that: pinned memory
(`pin_memory()`), from which the GPU can fetch data directly, and `non_blocking=True`, which only *starts* the copy.
"""


# %% tags=["item-76"]
def to_device(batch: Tensor, device: torch.device) -> Tensor:
    """The batch on device; a copy to a CUDA device is asynchronous."""
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
How much time does that save? A batch of 32 × 1,024 tokens takes 262 kB for the inputs in int64, and the same for the
targets. Suppose that the link to the GPU carries 25 GB/s, less than half of PCIe 5's peak (lecture 01), and that an
H100 trains a small model, GPT-2 with its 124 million parameters, at $6N$ FLOPs per token (lecture 06) and an MFU of
0.4:
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
assert 256 * 3 * 224 * 224 * 4 == 154_140_672  # a batch of images, see below
assert f"{seconds_to_move / seconds_to_compute:.2%}" == "0.03%"

# %% [markdown]
r"""
So for *tokens*, a copy takes 0.03% of a step at this rate, and hiding it behind the computation hardly matters.

### Preparing the next batch in the meantime (optional)

For images the copy matters more: 256 of them, 224 × 224 pixels with three color channels, take 154 MB in float32. And
whatever the data, it matters how long it takes to *make* the batch. While you wait for a slow disk or a tokenizer, the
device waits too. The remedy is to *overlap* the two: prepare the next batch while the device works on this one. The
part of a program that prepares the batches, usually ahead of time like this, is called a **data loader**.

Suppose that fetching a batch takes 20 ms (a slow disk) and a step takes 30 ms (a device that works while Python waits).

**Predict.** If each step first waits for its batch to be fetched, ten steps take 10 · (0.02 + 0.03) = 0.5 seconds. How
many seconds do they take if the next batch is fetched during each step?
"""

# %%
guess = None  # s, such as 0.123


# %% tags=["item-76", "timed"]
def prefetched(make: Callable[[], Any], count: int) -> Generator[Any, None, None]:
    """Yield the results of count calls of make; each is made while the caller uses the one before."""
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
assert 20 + 9 * max(20, 30) + 30 == 320  # ms: first batch, nine overlaps, last step

# %% [markdown]
r"""
PyTorch's `DataLoader` does the same with processes instead of threads (`num_workers`, `prefetch_factor`), and pins each
batch if you ask for it (`pin_memory=True`).

> **Trap: the random numbers run ahead.** While you train on batch 5, batch 6 has already been drawn. So the random
> number generator is one batch *ahead*. If you save its state now and resume from it, you'll never see batch 6.
> Instead, save the state that it had *before* it drew the batches still waiting to be used.

When two things overlap, the slower one sets the pace, as with the roofline. If fetching took 40 ms, the device would
have to wait for every batch, and you'd need two workers (threads that fetch batches).
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
*Try it yourself:* let fetching take 40 ms. Predict the time of ten steps, then change `fetch`.

## 4 · What a seed guarantees, and what it doesn't

Initial weights, dropout and batches are random. A computer calculates its random numbers with a **random number
generator**: a state, and a rule that turns it into a number and the next state. A **seed** is a number that sets a
generator's state. A training script has three independent global generators: Python's `random`, NumPy's, and PyTorch's
(which is really one for the CPU and one for each GPU; `torch.manual_seed` seeds all of PyTorch's).
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
assert not torch.equal(a, b) and torch.equal(a[1:], b[:2])  # everything after it is shifted

own = torch.Generator().manual_seed(7)
torch.manual_seed(8)
assert torch.equal(torch.rand(3, generator=own), a)  # your own generator is unaffected
mine, alike = np.random.default_rng(7), np.random.default_rng(7)
np.random.seed(8)
assert mine.random() == alike.random()  # and so is one of NumPy's

# %% [markdown]
r"""
So seed the global generators once, at the start, and give anything that shouldn't be affected by the rest (the
batches!) a generator of its own.
"""


# %%
def seed_everything(seed: int) -> None:
    """Seed the global generators of random, NumPy and torch (CPU and GPUs), each with seed."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


# %% [markdown]
r"""
### Seeds don't make a program deterministic

A seed makes the *random draws* repeat. It says nothing about the *arithmetic*, and floating-point arithmetic depends on
the order: $(a + b) + c$ is not always $a + (b + c)$. Wherever the order can change, so can the result. Let's add up the
same 100,000 numbers in float32 in 100 different orders:
"""

# %%
assert (0.1 + 0.2) + 0.3 != 0.1 + (0.2 + 0.3)

orders = torch.Generator().manual_seed(0)
numbers = torch.randn(100_000, generator=orders)
sums = {
    numbers[torch.randperm(len(numbers), generator=orders)].sum().item() for _ in range(100)
}
print(f"{len(sums)} different sums, from {min(sums):.5f} to {max(sums):.5f}")
assert len(sums) > 1

whole_numbers = torch.randint(-9, 10, (100_000,), generator=orders)
assert len({whole_numbers[torch.randperm(100_000)].sum().item() for _ in range(20)}) == 1

# %% [markdown]
r"""
(With integers there's only one sum, because *their* addition is exact.) When does the order change in practice?

- *The number of threads.* Each thread adds up one part of a sum, so a different number of threads means a different
  order, while the same number gives the same bits on every run.
- *Atomic additions on a GPU.* In some operations (`index_add_`, `scatter_add_`, the backward passes of `gather` and
  `index_select`) thousands of threads add to the same memory location. Each addition is *atomic* (no other can
  interrupt it), but they're done in the order in which they happen to arrive, so two runs on the same card may differ.
- *Another machine or device, or another version* of a library, may use a different algorithm, and so a different order.
"""

# %% tags=["error-20", "folded"]
vectors = torch.randn(20, 1_000_000, generator=orders)
threads = torch.get_num_threads()
by_threads = {}
for count in (1, 2, 4):
    torch.set_num_threads(count)
    by_threads[count] = torch.stack([vector.sum() for vector in vectors])
    again = torch.stack([vector.sum() for vector in vectors])
    assert torch.equal(
        by_threads[count], again
    )  # the same number of threads gives the same bits
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
    print(f"index_add_ on the GPU, repeated ten times: {len(arrivals)} different sums")

# %% [markdown]
r"""
To request determinism, call `torch.use_deterministic_algorithms(True)`. PyTorch then uses algorithms with a fixed order
where it has them (sometimes slower ones) and raises an error where it has none.
"""

# %% tags=["folded"]
torch.use_deterministic_algorithms(True)
try:
    twice = torch.tensor([0, 0])  # two numbers for one place: which one remains?
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
So seeds make the draws repeat, and deterministic algorithms make the arithmetic repeat, on the *same machine, with the
same versions and the same number of threads*. Only then are the same bits guaranteed. On a CPU that's easy to arrange,
so here's our test: if two runs should be the same, we compare their *bits*.

*Try it yourself:* add up the 100,000 random numbers (`numbers`) in float64, in 100 orders. How many sums do you get,
and how far apart are they?
"""

# %% [markdown]
r"""
## 5 · Measure without disturbing the training (optional)

Don't seed again in the middle of a run, because training would draw the same numbers a second time. But some things
*should* draw the same numbers every time. If the examples for a validation loss are random, you want the same ones at
each measurement; otherwise the loss may change only because the examples did. And the measurement must not advance the
generators that training draws from, since a single number drawn in between changes everything after it. So a
measurement needs a seed that holds for one block of code only.

### Exercise 9.3 · A seed for one block (optional) &nbsp; ★★☆ &nbsp; 15 minutes

Write `seeded(seed)`, which returns a **context manager**: an object that you put after `with`, as in `with seeded(7):`.

- Inside the block, each of the three global generators (Python's, NumPy's and PyTorch's) draws the same numbers as it
  would right after a call to its own seeding function with `seed`.
- After the block, each continues as if there had been no block.
- The same holds if the block raises an error, exits (a `SystemExit`) or is interrupted (a `KeyboardInterrupt`). The
  error propagates out of the block unchanged, including its cause.
- Blocks can be nested: after the inner block, the outer one continues where it was.
- `block = seeded(7)` alone changes no generator. The state restored later is the one found on entering `with block:`.

`seed` is an integer from 0 to $2^{32} - 1$, the range that NumPy accepts. One call serves one block; for a second
block, call `seeded` again. The check looks at generators on the CPU only, but choose an approach that also restores
those on GPUs.

Every generator has a function that returns its state and one that sets it. For PyTorch, the context manager
`torch.random.fork_rng()` saves and restores the states for you: after a block `with torch.random.fork_rng():`, the
generators of the CPU and of the GPUs are back in the state that they had before it. The decorator `@contextmanager`
turns a function with a single `yield` into a context manager. What comes before the `yield` runs when the block begins,
what comes after it runs when the block ends, and an error in the block is raised at the `yield`.
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
<details><summary>Hint 1</summary>There are three states to save, three generators to seed, and three states to restore. Which of these come before the <code>yield</code>?</details>
<details><summary>Hint 2</summary>Look at <code>random.getstate</code> and <code>np.random.get_state</code>; each has a counterpart that sets the state. Whatever has to happen even after an error belongs in a <code>finally</code>.</details>

**Why it matters.** An evaluation that draws from the global generators changes the training after it. Then two runs
with the same seed differ only because one of them was evaluated more often.

### An evaluation that changes the training (optional)

Let's see that happen. For six steps, a small model with dropout learns to add up eight numbers. We train it three times
from the same seed: with no evaluation, with one after the third step, and with a seeded one at the same point.
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
    """The training losses of six steps; look(model), if given, is called after the third."""
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
## 6 · The loop

These five lines train anything from a straight line to Llama:

```python
for step in range(steps):
    loss = loss_fn(model(inputs), targets)   # how wrong?
    optimizer.zero_grad()                    # clear the last step's gradients
    loss.backward()                          # which way is down?
    optimizer.step()                         # one step down
```

### Find the mistake: three runs, one result

People find learning rates by trying several. Here's a function for that, with a mistake that's easy to make. Find it
before you read on:
"""


# %%
def last_loss(model: nn.Module, optimizer: torch.optim.Optimizer) -> float:
    """The loss at step 20 of a model that learns to return its input."""
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
> **Trap: unused arguments.** Neither argument is ever used. How could you have noticed that without reading the code?

Look at the *digits*. Runs whose computations differ in any setting almost never end with losses that are equal to the
last bit. If you find that "the learning rate hardly matters", check first that it's really used. An assert costs one
line:
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
### Find the mistake: a loss that should be 0

The next cell begins with a loss from lecture 2 of CS336
([2026](https://github.com/stanford-cs336/lectures/blob/main/lecture_02.py)). There, a model returns $K$ numbers for
each of $B$ examples, and each example has one target. We try it with two examples. Their outputs have the means 2 and
6, which are exactly their targets, so the loss should be 0:
"""


# %%
def loss_as_found(outputs: Float[Tensor, "B K"], targets: Float[Tensor, "B"]) -> Tensor:
    return F.mse_loss(outputs.mean(), targets)


two_outputs, two_targets = torch.tensor([[1.0, 3.0], [5.0, 7.0]]), torch.tensor([2.0, 6.0])
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    wrong = loss_as_found(two_outputs, two_targets)
print(f"loss {wrong.item()}, and PyTorch warns: {str(caught[0].message).split('. ')[0]}")
assert wrong == 4

# %% [markdown]
r"""
### Exercise 9.4 · One prediction per example &nbsp; ★☆☆ &nbsp; 5 minutes

Write `example_loss(outputs, targets)`. `outputs` has the shape `[B]` or `[B, K]`: an example's prediction is its
number, or the mean of its `K` numbers. If the shape of `targets` isn't `[B]`, for that same `B`, raise a `ValueError`;
nothing may broadcast. Otherwise return the mean squared difference between predictions and targets, as a tensor of
shape `[]` through which gradients reach `outputs`. Both tensors have the same dtype, float32 or float64, and all sizes
of `outputs` are at least 1.
"""


# %% nbgrader={"grade": false, "grade_id": "example_loss", "locked": false, "schema_version": 3, "solution": true, "task": false}
def example_loss(outputs: Float[Tensor, "B *K"], targets: Tensor) -> Float[Tensor, ""]:
    """Mean squared error of one prediction per example. Raises ValueError if targets isn't of shape [B]."""
    ### BEGIN SOLUTION
    predictions = outputs if outputs.ndim == 1 else outputs.mean(dim=1)
    if targets.shape != predictions.shape:
        raise ValueError(f"{len(outputs)} examples, but targets of shape {list(targets.shape)}")
    return (predictions - targets).square().mean()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_example_loss", "locked": true}
check("example_loss")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Over which dimension do you have to take the mean, so that each example keeps a prediction of its own?</details>
<details><summary>Hint 2</summary>Which shapes broadcast with <code>[B]</code>? <code>[]</code>, <code>[1]</code> and <code>[B, 1]</code> do, so compare the shapes themselves.</details>

**Why it matters.** The mean over everything is the single number 4, which broadcasts against both targets. If a single
prediction has to serve the whole batch, the best that a model can do is to predict the *average* target. The loss falls
at first and then stays at the variance of the targets, as if the task were too hard:
"""

# %% tags=["error-36", "folded"]
torch.manual_seed(0)
x = torch.randn(256, 8)
y = x @ torch.randn(8)
lowest = {}
for loss_fn in (loss_as_found, example_loss):
    model = nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(200):
            loss = loss_fn(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    lowest[loss_fn.__name__] = loss.item()
for name, value in lowest.items():
    print(f"{name}: {value:.2g}")
print(f"variance of the targets: {y.var(correction=0).item():.2g}")
assert math.isclose(lowest["loss_as_found"], y.var(correction=0).item(), rel_tol=1e-3)
assert lowest["example_loss"] < 1e-3

# %% [markdown]
r"""
### One bad number

If the loss is NaN or infinite, its gradients are usually NaN or infinite too, and a single step can make all weights
NaN, along with Adam's state. From then on the run computes nothing useful, at full price. And the next checkpoint (a
file with the saved state of the run, section 9) overwrites the last good one.
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
So a training loop should check its loss *before* the update, and stop if it's not finite. (On a GPU this isn't free,
because Python has to wait for the number. If you keep an older checkpoint, it's enough to check every few steps.)

### Exercise 9.5 · The training loop &nbsp; ★★☆ &nbsp; essential &nbsp; 12 minutes

Write `train(model, optimizer, next_batch, loss_fn, lr_at, steps)`, and use every argument. All parameters in
`optimizer` belong to `model`, which is in *training mode*, where dropout is active, and stays that way. (`model.eval()`
would switch to *eval mode*.) For each number in `steps` (a `range`, which needn't start at 0):

1. set the learning rate of *every* parameter group of `optimizer` to `lr_at(step)` (it often changes during training);
2. call `next_batch()` once; it returns inputs and targets;
3. compute `loss_fn(model(inputs), targets)`, a new tensor;
4. if the loss is NaN or infinite, raise a `FloatingPointError` whose message contains the number of the step. The
   parameters and the optimizer's state must then be what they were after the previous step; it's fine if other things
   have changed: the optimizer's learning rate, the gradients, and whatever the forward pass itself changes (such as the
   running averages of a *batch norm*, a layer that normalizes with the mean and variance of its batch);
5. update the parameters, using the gradient of *this* loss alone: gradients left over from before the step must not
   count, not even in the first step.

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
    """Run these steps and return their losses. Raises FloatingPointError if a loss is not finite."""
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
<details><summary>Hint 1</summary>Take the five lines above and add four things: set <code>group["lr"]</code> for each group in <code>optimizer.param_groups</code>, call <code>next_batch()</code>, check the loss with <code>torch.isfinite</code>, and append <code>loss.item()</code>.</details>
<details><summary>Hint 2</summary>The gradients have to be cleared at some point <em>before</em> the backward pass, and the loss has to be checked before the update.</details>

**Why it matters.** You'll use this loop from section 8 on, and the capstone trains with nearly the same one. Apart from
PyTorch's global generator, everything it needs comes in through its arguments, which is why it can be stopped and
resumed.

### The best learning rate, on paper (optional)

To see the effect of the *learning rate*, we use a case that can be solved on paper. A *linear teacher* has $D$ unknown
weights and answers $y = x \cdot w^*$. A student of the same form starts at zero, sees $B$ random inputs $x$ per step
with the teacher's answers, and learns by plain SGD. Each entry of $x$ is drawn from a standard normal distribution and
the loss is the mean squared error, so the expected loss is the squared distance between the student's weights $w$ and
the teacher's, $|w - w^*|^2$. On average, a step with learning rate $\eta$ multiplies that squared distance by the
factor

$$q = 1 - 4\eta + 4\eta^2 \left(1 + \frac{D + 1}{B}\right).$$

(To derive it, write the new $w - w^*$ as the old one minus $\eta$ times the gradient, and expand its squared length;
for a standard normal $x$, $x x^\top x x^\top$ is on average $D + 2$ times the identity.)

The term $-4\eta$ is the progress. The last term is the cost of overshooting, and its part $\frac{D + 1}{B}$ is the cost
of noise: each step goes in a direction estimated from only $B$ examples. With $D + 1 = B$, the factor becomes
$q = 1 - 4\eta + 8\eta^2$. The best learning rate is then 0.25, and it halves the loss at each step.

**Predict.** Make the batch four times as large. By what factor does the best learning rate grow?
"""

# %%
guess = None  # times as high

# %% tags=["item-85"]
D, B = 255, 256


def factor(lr: float, batch: int = B) -> float:
    """The factor by which a step of SGD multiplies the expected loss."""
    return 1 - 4 * lr + 4 * lr**2 * (1 + (D + 1) / batch)


best, with_more = (
    min((n / 1000 for n in range(1, 1000)), key=lambda lr: factor(lr, batch))
    for batch in (B, 4 * B)
)
reconcile(
    "the best learning rate, with four times the batch",
    guess,
    with_more / best,
    "times as high",
)
assert best == 0.25 and factor(best) == 0.5
assert with_more == 0.4  # the noise is only a part of what limits it
assert factor(0.5) == 1  # at this rate it does not learn …
assert factor(0.6) > 1.4  # … and above it, it diverges
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

# %% tags=["folded"]
# Four learning rates, measured and predicted
expected = {
    f"lr {lr}": {step: curves[f"lr {lr}"][0] * factor(lr) ** step for step in range(30)}
    for lr in rates
}
finding = "The best learning rate halves the loss in each step; above 0.5, training diverges"
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
On a logarithmic axis these are four straight lines, as predicted. Two conclusions are worth remembering for other
models, although we've shown them only for linear teachers: the best learning rate is a *fraction of the one at which
training diverges* (here a half), and that limit depends on the noise, and therefore on the batch size.

*Try it yourself:* in a new cell, set `B = 64`, a quarter of the batch. With `factor(lr, 64)`, which computes $q$, find
the best learning rate and the one at which training diverges. Does `learn`, which runs the training, agree? (Afterward,
set `B` back to 256.)

## 7 · The learning rate over time (optional)

At the start of a run, the gradients are large and the optimizer's averages are still unreliable, so the learning rate
starts low and increases for a while; this is called *warm-up*. Toward the end, the noise in the gradients keeps the
loss from settling, so the learning rate goes down, often along half a period of a *cosine*. The
learning rate as a function of the step is called a **learning-rate schedule**.

The usual way in PyTorch is a *scheduler*, an object that counts its own steps, so it has a state that you have to
remember to save. A plain *function of the step* has none.

### Exercise 9.6 · Warm-up and cosine (optional) &nbsp; ★★☆ &nbsp; 10 minutes

Write `warmup_cosine(step, warmup, steps, peak, floor)`. It returns the learning rate of a step, counted from 0, in the
full precision of Python's floats (a different rounding of the last digits is fine).

- In the first `warmup` steps it rises by equal amounts: `peak / warmup` in step 0, twice that in step 1, and `peak` in
  the last of them. (A learning rate of 0 would waste a step.)
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
<details><summary>Hint 1</summary>In the warm-up, <code>peak</code> is divided into <code>warmup</code> equal parts: step 0 gets one of them, and step 1 gets two.</details>
<details><summary>Hint 2</summary><code>min(p, 1.0)</code> keeps the cosine from going up again: at 1 it gives exactly <code>floor</code>.</details>

**Why it matters.** GPT-3, Llama 2 and Llama 3 were all trained with a warm-up and a cosine schedule, according to their
papers.
"""

# %% tags=["folded"]
rates = [warmup_cosine(step, 10, 120, 3e-3, 3e-4) for step in range(121)]
finding = "Ten steps of warm-up, then a cosine down to a tenth of the peak"
plots.show(
    plots.loss_curves(
        {},
        {"learning rate": dict(enumerate(rates))},
        names=("", "computed"),
        ylabel="learning rate",
        log=False,
        title=finding,
    ),
    alt=f"{finding}. The learning rate rises linearly from 0.0003 to 0.003 and falls along half a cosine to 0.0003.",
)
assert np.allclose([rates[0], rates[9], max(rates), rates[120]], [3e-4, 3e-3, 3e-3, 3e-4])

# %% [markdown]
r"""
*Try it yourself:* copy `learn` from section 6, and set `optimizer.param_groups[0]["lr"]` in each step. Train the
student at its best learning rate, 0.25, and then with a warm-up of 10 steps. Does warm-up help there? Why, or why not?

## 8 · Where does the time go?

For the rest of the lecture we'll train a small language model similar to the one by Bengio and others (2003): ours
takes the last eight bytes, looks up a vector for each, and computes the logits of the next byte with two linear layers.
It has dropout, so there's randomness in each step. Its learning rate, computed by a plain function of the step, rises
for ten steps and then falls linearly. *Everything below runs on the CPU with one thread* (except the optional memory
snapshot), because we want to compare bits.

The loss is the usual one for classification. The **cross-entropy loss** is minus the logarithm of the probability that
the model gave to the correct token, averaged over all positions.
"""


# %%
class NextByte(nn.Module):
    """Logits of the next byte, at each position, from the eight bytes that end there."""

    def __init__(self, width: int = 24, hidden: int = 128, look_back: int = 8) -> None:
        super().__init__()
        self.look_back = look_back
        self.table = nn.Embedding(256, width)
        self.inner = nn.Linear(look_back * width, hidden)
        self.dropout = nn.Dropout(0.1)
        self.scores = nn.Linear(hidden, 256)

    def forward(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T 256"]:
        before = self.look_back - 1  # positions before the window are padded
        vectors = F.pad(self.table(ids), (0, 0, before, 0))
        seen = vectors.unfold(1, self.look_back, 1).flatten(2)  # [B, T, width · look_back]
        return self.scores(self.dropout(F.gelu(self.inner(seen))))


def next_byte_loss(scores: Float[Tensor, "B T 256"], targets: Int[Tensor, "B T"]) -> Tensor:
    """Cross-entropy loss per byte, with the natural logarithm."""
    return F.cross_entropy(scores.flatten(0, 1), targets.flatten())


total_steps = 120


def lr_at(step: int) -> float:
    """Up to 0.005 in ten steps, then down along a straight line."""
    return 5e-3 * min((step + 1) / 10, (total_steps - step) / (total_steps - 10))


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
print(f"perplexity {math.exp(whole[0]):.0f} at first, {math.exp(whole[-1]):.0f} at the end")
assert abs(whole[0] - math.log(256)) < 0.3 and whole[-1] < 4

# %% [markdown]
r"""
At first the model knows nothing and assigns each of the 256 bytes a probability of about 1/256, so its loss is
$\ln 256 \approx 5.5$ *nats*, the unit that goes with natural logarithms. Two other numbers say the same thing in other
units. The **perplexity** is $e^\text{loss}$, the number of equally likely choices that would give this loss: here about
256 at first. **Bits per byte** is the loss with
base-2 logarithms, divided by the average number of bytes per token (here one): $5.5 / \ln 2 \approx 8$.

Now, where does a step's time go? A **profiler** records when each operation of a program begins and ends.
`torch.profiler.profile` does this for everything that PyTorch runs in its `with` block. It automatically labels
PyTorch's operations (which it calls *operators*), the backward pass and the optimizer; `record_function` labels other
parts of your program.

Each of the two linear layers needs one matrix product in the forward pass and two in the backward pass. These six
products do all the FLOPs that lecture 06 counts. The rest (looking up vectors, GELU, dropout, softmax, AdamW) isn't
counted.

**Predict.** What percentage of a step's time do the six products take?
"""

# %%
guess = None  # %


# %% tags=["timed"]
os.environ["KINETO_LOG_LEVEL"] = "99"  # silence the profiler's own messages
from torch.profiler import ProfilerActivity, profile, record_function


class Labeled(nn.Module):
    """A model whose forward pass has a label in the profile."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor) -> Any:
        with record_function("forward"):
            return self.model(ids)


def profiled(count: int) -> profile:
    """The profile of this many steps of your training loop, after three warm-up steps."""
    model, optimizer, generator = new_run(0)

    def next_batch() -> tuple[Tensor, Tensor]:
        with record_function("batch"):
            return get_batch(tokens, 16, 64, generator)

    def loss_fn(scores: Tensor, targets: Tensor) -> Tensor:
        with record_function("loss"):
            return next_byte_loss(scores, targets)

    labeled = Labeled(model)
    train(labeled, optimizer, next_batch, loss_fn, lr_at, range(3))
    recorded = profile(activities=[ProfilerActivity.CPU], acc_events=True)
    with recorded as trace, record_function("training"):
        train(labeled, optimizer, next_batch, loss_fn, lr_at, range(count))
    return trace


def parts_of(trace: profile) -> dict[str, float]:
    """The share of the time that each part of the training loop takes."""
    parts = dict.fromkeys(("batch", "forward", "loss", "backward", "optimizer"), 0.0)
    training = next(event for event in trace.events() if event.name == "training")
    for event in training.cpu_children:
        part = event.name
        if part.startswith(("autograd::engine", "Optimizer.")):
            part = "backward" if part.startswith("autograd") else "optimizer"
        if part in parts:
            parts[part] += event.cpu_time_total / training.cpu_time_total
    return parts | {"everything else": 1 - sum(parts.values())}


profiled_steps = 40
trace = profiled(profiled_steps)
for part, share in parts_of(trace).items():
    print(f"{part:>16} {share:6.1%}")

operators = [row for row in trace.key_averages() if row.key.startswith("aten::")]
in_all = next(row for row in trace.key_averages() if row.key == "training").cpu_time_total
print(f"\n{'operator':<32} calls in a step   share of the time")
for row in sorted(operators, key=lambda row: -row.self_cpu_time_total)[:8]:
    share = row.self_cpu_time_total / in_all
    print(f"{row.key:<32} {row.count / profiled_steps:15g} {share:19.1%}")
products = [row for row in operators if row.key in ("aten::mm", "aten::addmm")]
in_products = sum(row.self_cpu_time_total for row in products) / in_all
reconcile("the six matrix products", guess, 100 * in_products, "%")

assert sum(row.count for row in products) == 6 * profiled_steps

# %% [markdown]
r"""
Read a profile like this one from the top down. The first table has the parts of your own loop. If `batch` takes a large
part of the step, you need section 3; if it doesn't, overlapping can't help. The second table has the operators, with
the time spent in each operator itself, not counting the operators that it called. `mm` and `addmm` are the products
(`addmm` also adds the bias). Look for operators that take time without doing any FLOPs that we count. One of them is
`bernoulli_`, which draws dropout's mask: it needs a random number for each of the 131,072 hidden activations of a
batch.

*Try it yourself:* in `NextByte`, set dropout to 0.0 and profile the model again. What fraction of a step do the
products take now? (Then undo it, since section 9 needs the randomness.)
"""

# %%
assert 16 * 64 * 128 == 131_072  # batch, context, hidden

# %% [markdown]
r"""
### Timelines and memory (optional)

`trace.export_chrome_trace("trace.json")` writes a timeline that you can open at ui.perfetto.dev; the gaps in it show
when the device was waiting. On a GPU, Python only *launches* the kernels, so add `ProfilerActivity.CUDA` and look at
the times on the device.

For memory, PyTorch's CUDA allocator can keep a history. A **memory snapshot** lists every block of memory that the
allocator handed out: its size, when it was allocated and freed, and by which line of Python. On a GPU, the next cell
takes a snapshot of a single step and lists the largest blocks that were in use when memory use was at its peak.
(`torch.cuda.memory._dump_snapshot("snapshot.pickle")` writes it to a file, which you can open at
pytorch.org/memory_viz.)
"""


# %% tags=["timed"]
def recorded_step() -> list[Block]:
    """The blocks that the GPU's allocator hands out in a step, after a warm-up step."""
    model, optimizer, generator = new_run(0)
    model.to(device)

    def next_batch() -> tuple[Tensor, Tensor]:
        inputs, targets = get_batch(tokens, 16, 64, generator)
        return inputs.to(device), targets.to(device)

    train(model, optimizer, next_batch, next_byte_loss, lr_at, range(1))
    torch.cuda.memory._record_memory_history(stacks="python", clear_history=True)
    train(model, optimizer, next_batch, next_byte_loss, lr_at, range(1, 2))
    snapshot = torch.cuda.memory._snapshot()
    torch.cuda.memory._record_memory_history(enabled=None)
    return blocks(snapshot["device_traces"][device.index])


if device.type == "cuda":
    recorded = recorded_step()
    peak = held_at_peak(recorded)
    together = readable(sum(block.nbytes for block in peak), "B")
    print(
        f"{len(recorded)} blocks in a step; at the peak, {len(peak)} of them hold {together}:"
    )
    for block in sorted(peak, key=lambda block: -block.nbytes)[:8]:
        print(f"{block.nbytes:>12,} B  {block.where or '(the backward pass)'}")
    logits = 4 * 16 * 64 * 256  # float32, batch, context, bytes
    assert any(block.nbytes == logits for block in recorded)
else:
    print("On an NVIDIA GPU, this cell lists the largest blocks at the peak of a step.")

# %% [markdown]
r"""
## 9 · Checkpoints

A **checkpoint** is a file that contains everything another process needs to continue a run. What has to be in it?
Everything that the *next* step depends on.

> **Trap: a checkpoint that nobody reads.** You may see a run resumed like this:
>
> ```python
> torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "checkpoint.pt")
> loaded = torch.load("checkpoint.pt")
> ```
>
> … and that's all. Nothing has been *restored*: the dictionary `loaded` is never used. And if both parts were restored,
> would that be enough?

Let's find out. We save the run after 20 of 40 steps, load everything except one part into a fresh model and optimizer,
as a new process would, and count how many of the next 20 losses equal those of the run that never stopped. (We stop
counting at the first one that differs.)

**Predict.** If we forget only the optimizer's state (for AdamW, the two averages of lecture 08), how many of the 20
losses are right, to the last bit?
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
    assert abs(ends[name] - whole[-1]) < 0.4  # the last loss doesn't show it

# %% [markdown]
r"""
A loss that "continues where it left off" proves little. A plot may not help either, as you can see for yourself at the
end of this section. The bits do show the difference. (The row "all" is a run that restores nothing, as in the trap
above; "all but the model" restores only the weights.)

So a checkpoint must contain the *model, the optimizer, the step, the generators, and the position in the data* (for us,
the state of the batches' own generator). If your run has a scheduler (an object that sets the learning rate), a loss
scaler (lecture 10) or a running average of the weights, save those too. To check that you did, compare several losses:
the first one after a resume is computed *before* the first update, so it doesn't depend on the optimizer.

(The cell above uses `copy.deepcopy` because a `state_dict` holds the *same* tensors as the model, as you saw in lecture
07. If you save it to disk, you don't need a copy.)

### All or nothing

One question is left: *when* does the power fail? It may fail while a checkpoint is being written.
`torch.save(contents, path)` opens the file, which destroys the old checkpoint. If it stops in the middle, you have
neither the old checkpoint nor the new one.
"""

# %%
path = folder / "in_place.pt"
torch.save({"step": 20, "model": model.state_dict()}, path)
assert torch.load(path)["step"] == 20

buffer = io.BytesIO()
torch.save({"step": 40, "model": model.state_dict()}, buffer)
path.write_bytes(buffer.getvalue()[: buffer.tell() // 2])  # the power fails halfway through
try:
    torch.load(path)
    raise AssertionError("half a checkpoint was loaded")
except RuntimeError as error:
    print(str(error).split(". ")[0])

# %% [markdown]
r"""
The standard remedy, if a program is killed, is to write to *another* file in the *same folder* and rename it when it's
complete. (If the power fails, the bytes must also have reached the disk before the rename; we leave that to the
optional part at the end of this section.) `os.replace(new, old)` is **atomic**: every program sees either the old file
or the new one, never half of one. (Use the same folder, because another one might be on a different file system, and a
rename can't move a file there.)

> **Trap: `weights_only`.** A checkpoint file contains a *pickle*, which can contain code (section 1). Since PyTorch
> 2.6, `torch.load` accepts only plain data, unless you pass `weights_only=False`. Don't do that with other people's
> files. To make sure that your own files load without it, put only tensors, numbers, strings, lists, tuples and
> dictionaries into them.

### Exercise 9.7 · Save and resume &nbsp; ★★★ &nbsp; essential &nbsp; 25 minutes

Write two functions. `save_checkpoint(path, model, optimizer, step, generator)` writes everything that the run needs to
continue: the model, the optimizer, the number of the next step, the state of `generator` (which draws the batches) and
of PyTorch's global generator on the CPU (which draws dropout's masks). If writing fails, the error is passed on, and
whatever was at `path` is unchanged: write the new file under another name in the same folder, then rename it. Once a
file exists at `path`, there must be one at all times from then on. After a successful save, the only file that your
function has left in the folder is the one at `path`: nothing remains of an earlier save to `path` that failed, or whose
process was killed. All other files stay. (None of them has the name of your unfinished file.) `load_checkpoint(path,
model, optimizer, generator)` restores the model, the optimizer and both generators to the saved state, and returns the
step. The file must load with a plain `torch.load(path)`, which means `weights_only=True`. Saving must not change
anything in the run. `path` is a `Path`, and its folder exists.
"""


# %% nbgrader={"grade": false, "grade_id": "save_checkpoint", "locked": false, "schema_version": 3, "solution": true, "task": false}
def save_checkpoint(
    path: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    step: int,
    generator: torch.Generator,
) -> None:
    """Write everything that the run needs to continue with `step`: completely, or not at all."""
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
    """Restore model, optimizer and generators, and return the next step."""
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
<details><summary>Hint 2</summary><code>path.with_name(path.name + ".partial")</code> is in the same folder. Save to that, then <code>os.replace(partial, path)</code>.</details>

**Why it matters.** At Llama 3's rate of failures, a month of training is cut into 233 pieces. They amount to one
uninterrupted run only if each resume is exact.

### What a checkpoint costs, and how often to save one (optional)

**Predict.** `NextByte` has 63,872 parameters in float32, and AdamW keeps two numbers for each. How many bytes does a
checkpoint take *per parameter*?
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
# 4 + 4 + 4, the states of two generators, and some names:
assert 12 < on_disk / parameters < 12.6
assert 12 * 70e9 == 840e9  # a model with 70 billion parameters

# %% [markdown]
r"""
(Gradients aren't saved; the next step computes its own.) Writing a checkpoint of a model with 70 billion parameters to
a single disk, at 2 GB/s, takes seven minutes.

So you can't save after every step. But you shouldn't save too rarely either, because a failure destroys all the work
since the last checkpoint: on average, half an interval. Suppose that saving takes $\delta$ seconds, failures are $M$
seconds apart on average, and you save every $\tau$ seconds. As long as $\delta$ is much shorter than $\tau$, and $\tau$
much shorter than $M$, the time lost, as a fraction of the useful time, is about

$$\frac{\delta}{\tau} + \frac{\tau}{2M}, \qquad\text{smallest at}\quad \tau = \sqrt{2\,\delta M}$$

(Young, 1974). With a failure every three hours, as in Llama 3's run, and a minute to save:
"""

# %%
assert 840e9 / 2e9 == 7 * 60


def lost(interval: float, save_seconds: float, between_failures: float) -> float:
    """The time lost to saving and to repeating, as a fraction of the useful time."""
    return save_seconds / interval + interval / (2 * between_failures)


by_formula = math.sqrt(2 * 60 * one_failure)
by_search = min(range(60, 20_000), key=lambda tau: lost(tau, 60, one_failure))
print(
    f"save every {by_formula / 60:.0f} minutes: "
    f"{lost(by_formula, 60, one_failure):.1%} of the useful time is lost"
)
print(
    f"every hour: {lost(3_600, 60, one_failure):.1%}; "
    f"every two minutes: {lost(120, 60, one_failure):.1%}"
)
print(f"if saving takes 5 s: {lost(math.sqrt(2 * 5 * one_failure), 5, one_failure):.1%}")

assert abs(by_formula - by_search) < 1 and round(by_formula / 60) == 19
assert round(lost(by_formula, 60, one_failure), 3) == 0.104
exactly = one_failure * math.expm1((by_formula + 60) / one_failure) / by_formula - 1
assert round(exactly, 2) == 0.11
assert round(1 - FACTS["Llama 3.1 405B effective training time"].value, 3) == 0.1
assert round(12 * FACTS["Llama 3.1 405B parameters"].value / 2e12, 1) == 2.4  # s at 2 TB/s

# %% [markdown]
r"""
Even if you save every 19 minutes, the run takes a tenth longer than its useful time. That's why people work on *fast*
checkpoints: each GPU saves only its own part, which is first copied to the CPU's memory and then written to disk while
training goes on. (Llama 3's authors report losing less than a tenth to all causes together. Their storage sustains 2
TB/s, with peaks of 7 TB/s, according to section 3.3.1 of their paper. At 2 TB/s, 12 bytes for each of 405 billion
parameters take 2.4 seconds, not a minute.)

If $\tau$ isn't much shorter than $M$, failures also hit work that is being repeated, and the formula gives too little.
For failures that are independent of each other, the exact expected time for $\tau$ seconds of useful work and a save is
$M\left(e^{(\tau+\delta)/M}-1\right)$ seconds, if restarting takes no time (Daly, 2006). The explorer below uses this
exact time: at 19 minutes it says 11% instead of 10.4%.

Drag the slider *save every*, which sets the interval. Then drag the one for the number of *cards* (with half as many,
failures are twice as far apart): if you save once an hour, what percentage is lost with 8 cards? With 131,072, it's
more than 100%: what does that mean? Finally, shorten the save (*a save takes*) and move *save every* to the interval
marked as best: how short must a save be if a run on 131,072 cards is to lose less than a tenth of its time?
"""

# %%
from course_utils.explorers import checkpointing

checkpointing.explore(16_384)

# %% [markdown]
r"""
### What a more careful version adds (optional)

`course_utils.checkpoint` does what yours does, and a few things that you only need on a bad day. It also restores
NumPy's, Python's and the GPUs' generators. It makes sure that the bytes are on the disk before the rename (`fsync`),
because at first they may only be in the *operating system's* memory. It verifies checksums, which `torch.load` doesn't.
And it checks that everything fits *before* it changes anything. The last point matters: `load_state_dict` raises an
error for a wrong model, but by then it has already copied whatever did fit.
"""


# %%
other = NextByte(hidden=96)
untouched = other.table.weight.detach().clone()
try:
    other.load_state_dict(model.state_dict())
    raise AssertionError("it accepted another model's weights")
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
        raise AssertionError(f"{name}.pt was accepted")
    except checkpoint.CheckpointError as error:
        print(f"- {str(error).replace(f'{folder}{os.sep}', '')}")
assert torch.equal(other.table.weight, untouched)  # nothing was changed

# %% [markdown]
r"""
*Try it yourself:* use `plots.loss_curves` to plot `resume_without({"optimizer"})`, the losses without the optimizer's
state, next to `whole[20:]`. (Give it both under one name, each as a dictionary from step to loss:
`dict(enumerate(losses, 20))`.) Would you have noticed that something is missing?

## 10 · A power failure

Now let's put your parts together: `write_tokens` and `open_tokens` made the data, `get_batch` draws from it, `train`
runs the steps, and `save_checkpoint` saves every 30 steps. The run has 120 steps. The power fails at the beginning of
step 75.

After that, a *new process* would continue. We can't restart your notebook, so we imitate a new process: we keep nothing
of the old run except the file, and we seed the new run differently, so that you'd notice if anything weren't restored.

**Predict.** How many steps have to be done twice?
"""

# %%
guess = None  # steps


# %% tags=["item-75", "item-86"]
class PowerFailure(Exception):
    """Simulates the end of a process."""


def process(
    path: Path, seed: int, power_fails_in: int = -1
) -> tuple[dict[int, float], NextByte]:
    """Train to the last step, from the checkpoint if there is one, and save every 30 steps."""
    model, optimizer, generator = new_run(seed)
    first = load_checkpoint(path, model, optimizer, generator) if path.exists() else 0
    now = itertools.count(first)

    def next_batch() -> tuple[Tensor, Tensor]:
        if next(now) == power_fails_in:
            raise PowerFailure
        return get_batch(open_tokens(folder / "python.npy", 256), 16, 64, generator)

    losses: dict[int, float] = {}
    try:
        for start in range(first, total_steps, 30):
            steps = range(start, start + 30)
            found = train(model, optimizer, next_batch, next_byte_loss, lr_at, steps)
            losses |= dict(zip(steps, found, strict=True))
            save_checkpoint(path, model, optimizer, start + 30, generator)
    except PowerFailure:
        pass
    return losses, model


for old in ("whole.pt", "power_failure.pt"):  # left by an earlier run of this cell
    (folder / old).unlink(missing_ok=True)
never_stopped, model_whole = process(folder / "whole.pt", seed=0)
before_failure, _ = process(folder / "power_failure.pt", seed=0, power_fails_in=75)
after_failure, model_resumed = process(folder / "power_failure.pt", seed=4_321)

reconcile("steps done twice", guess, 75 - min(after_failure), "steps")
assert [*before_failure] == [*range(60)] and [*after_failure] == [*range(60, total_steps)]
assert before_failure | after_failure == never_stopped  # every loss, every bit
for name, weight in model_whole.state_dict().items():
    assert torch.equal(weight, model_resumed.state_dict()[name])  # and every weight
weights = sum(p.numel() for p in model_whole.parameters())
print(f"{len(after_failure)} resumed losses and {weights:,} weights: not one bit differs")
assert never_stopped[0] > 5.3 and never_stopped[total_steps - 1] < 3

# %%
finding = (
    f"Killed in step 75, resumed from step 60: all {total_steps} losses agree, bit for bit"
)
plots.show(
    plots.loss_curves(
        {"one run": before_failure | after_failure},
        {"one run": never_stopped},
        events={"last checkpoint": 60, "power failure": 75},
        spans={"done twice": (60, 75)},
        names=("interrupted", "never stopped"),
        ylabel="loss (nats per byte)",
        title=finding,
    ),
    alt=f"{finding}. The loss falls from {never_stopped[0]:.1f} to below 3 nats per byte; the "
    "filled markers of the interrupted run lie inside the hollow markers of the other.",
)

# %% [markdown]
r"""
Pulling the plug cost the time of the steps since the last checkpoint, and nothing else: the seam doesn't show in the
plot, in the weights, or in any bit. So here's the answer to our question: a run must remember *everything that its next
step depends on*, and write it down *completely or not at all*.

If you move the checkpoint to another machine, the run continues correctly, but the last digits of its losses may
differ, because the additions may be done in a different order (section 4).

What has the model learned in a few seconds from Python's own source code? Let's *sample* from it, which means drawing
one byte after another from the predicted probabilities. Dividing the logits by a **temperature** before softmax makes
the distribution sharper (below 1) or flatter (above 1); we use 0.7.
"""

# %%
model_resumed.eval()
prompt = list(b"    def f(self):\n")
written_so_far = prompt.copy()
sampler = torch.Generator().manual_seed(0)
with torch.no_grad():
    for _ in range(120):
        logits = model_resumed(torch.tensor([written_so_far[-8:]]))[0, -1]
        probabilities = torch.softmax(logits / 0.7, dim=0)
        written_so_far.append(int(torch.multinomial(probabilities, 1, generator=sampler)))
    after_colon = torch.softmax(model_resumed(torch.tensor([prompt[-8:]]))[0, -1], dim=0)
print(bytes(written_so_far).decode(errors="replace"))
assert len(written_so_far) == len(prompt) + 120
assert after_colon[ord(" ")] > 0.5

# %% [markdown]
r"""
It can't program yet, but it has learned to indent: after a colon and a newline, it predicts a space with a probability
above one half. It can't tell when to stop, though. It sees only eight bytes, so after eight spaces it doesn't know how
many there were. If you like, give it more steps: set `total_steps` in section 8 to a larger multiple of 30 (the run
saves every 30 steps), and run the cells from there. The learning rate then reaches 0 later, too. (If you interrupt the
run, it starts over next time, because the cell first deletes its old checkpoints.)

*Try it yourself:* let the power fail in step 75, and then again, in the resumed process, in step 100. Then comment out
one line of your `load_checkpoint`, and see which of the asserts above notices.

## Takeaways

**Mechanics.** Store tokens as the smallest unsigned integers that hold the vocabulary, in a .npy file opened with
`mmap_mode="r"`; convert the window to int64, not the file. $N$ tokens have $N - T$ windows with targets. `random`,
NumPy and PyTorch are seeded separately, and batches have their own generator. Clear the gradients, run the backward
pass, take the step; check the loss before the update. A checkpoint contains the model, the optimizer, the step, the
generators and the position in the data: 12 bytes per parameter for AdamW in float32. Write it to a new file, and rename
that when it's complete.

**Mindset.** Check every input where it comes in, because nothing later will notice. Two runs that differ when they
should agree are suspicious. So are two that agree when they should differ. To test whether resuming works, compare
bits, on a machine where identical bits are guaranteed. For a schedule, prefer a function of the step to an object with
a state.

**Intuitions.** For tokens, the copy to the GPU takes a tiny fraction of a step; preparing the batch is what can be
slow, and overlapping hides it as long as it takes no longer than the step. A profile shows whether most of the time
goes into batches or into computation, and how much goes into operations that no FLOP count contains. For a linear
teacher, the best learning rate is half of the one at which training diverges. Seeds fix the draws, not the order of
additions. With sixteen thousand GPUs something fails every few hours, so save every $\sqrt{2\,\delta M}$ seconds, if
saving takes $\delta$ seconds and failures are $M$ seconds apart on average.

Next: [10 · Mixed precision](../10_mixed_precision/10_mixed_precision.ipynb). All parameters here were in float32. When
are half as many bytes enough?
"""

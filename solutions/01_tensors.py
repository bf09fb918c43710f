# %% [markdown]
r"""
# 01 · Tensors

> **How many bytes is a model, where do they live, and what does it cost to move them?**

Everything in deep learning is kept in tensors: parameters, gradients, optimizer state, activations, data. So the first
thing to be able to say about a training run is how large its tensors are. By the end of this lecture you will have shown,
with code of your own, that the weights of GPT-3 do not fit on four 80 GB cards, which of its matrices are to blame, and how
long it takes to move them.

How to read: run the cells in order (<kbd>Shift</kbd> + <kbd>Enter</kbd>). Where a cell says *predict*, write your number
first; being wrong is how you find out what to look at. Exercises say ★ to ★★★ and about how many minutes they take. The cell below each
exercise tries a few cases and names the likely mistake; grading tries more: other dtypes, shapes and views. **Validate** in the toolbar runs all the checks.
"""

# %%
import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from course_utils import device as devices
from course_utils import memory, plots, timing
from course_utils.facts import FACTS
from course_utils.predict import reconcile
from course_utils.progress import show_progress
from course_utils.units import format_bytes, readable

torch.manual_seed(0)  # the same random numbers on every run
device = devices.pick_device()
print(devices.describe(device))
show_progress()

# %% [markdown]
r"""
## 1 · Making tensors

A tensor is an array of numbers, all of one type, with any number of dimensions. There are a few ways to get one, and they
differ in what the memory holds afterwards.
"""

# %% tags=["item-5"]
x = torch.tensor([[1.0, 2, 3], [4, 5, 6]])  # from numbers
zeros = torch.zeros(4, 8)  # 4 × 8, all 0
ones = torch.ones(4, 8)  # 4 × 8, all 1
noise = torch.randn(4, 8)  # 4 × 8, independent samples from a normal distribution

assert x.shape == (2, 3)
assert zeros.sum() == 0 and ones.sum() == 32
print(noise)

# %% [markdown]
r"""
`torch.empty` reserves the memory and writes nothing: it shows whatever was there. That is what you want when you are about to
fill the tensor yourself, for instance with a distribution that `randn` does not offer. The *truncated* normal is a common choice for
weights: a normal whose far tails are cut off, so that no weight starts out huge.
"""

# %% tags=["item-6"]
std = 0.02
weights = torch.empty(256, 256)  # whatever was in that memory
torch.nn.init.trunc_normal_(weights, mean=0.0, std=std, a=-3 * std, b=3 * std)

assert weights.abs().max() <= 3 * std

# %% [markdown]
r"""
> **A mistake that travels.** You will see `trunc_normal_(w, std=std, a=-3, b=3)` and read that it "cuts at three standard deviations".
> It does not: `a` and `b` are *values*. With `std = 0.02` the cut is at ±150 standard deviations, which is to say nowhere.
"""

# %%
not_cut = torch.nn.init.trunc_normal_(torch.empty(256, 256), std=std, a=-3, b=3)
beyond = (not_cut.abs() > 3 * std).sum().item()
print(f"{beyond} of {not_cut.numel():,} weights lie beyond 3 standard deviations")

assert 3 / std == 150
share = math.erfc(3 / math.sqrt(2))  # of a normal's samples lie beyond 3 standard deviations
assert round(share, 4) == 0.0027 and round(share * 256 * 256) == 177
assert 100 < beyond < 260  # 177, give or take

# %% [markdown]
r"""
*Try it yourself:* run `torch.empty(1000)` a few times, then `a = torch.ones(1000)`, `del a`, and `torch.empty(1000)` again. Whose numbers do you see?

## 2 · Counting bytes

Unless you say otherwise, the type of a tensor's elements, its *dtype*, is `float32`: 32 bits, four bytes each. (What those bits mean is the next
lecture's subject.) So the memory of a tensor is the number of its elements times the size of one:
"""

# %% tags=["item-7"]
x = torch.zeros(4, 8)

assert x.dtype == torch.float32
assert x.element_size() == 4  # bytes
assert x.numel() == 4 * 8  # elements
assert x.numel() * x.element_size() == 128  # bytes

# %% [markdown]
r"""
**Predict.** GPT-3 has 96 layers. In each of them a *feed-forward* block multiplies by two matrices, and one of these is
49,152 × 12,288. How many bytes is that one matrix in `float32`? Write your guess; `5e6` means five million.
"""

# %%
guess = None  # bytes

# %% tags=["item-8"]
# A tensor on the "meta" device has a shape and a dtype but no memory: handy to account for what would not fit.
rows, columns = (int(FACTS[f"GPT-3 {name}"].value) for name in ("feed forward width", "width"))
matrix = torch.empty(rows, columns, device="meta")
matrix_bytes = matrix.numel() * matrix.element_size()
reconcile("one feed-forward matrix of GPT-3", guess, matrix_bytes, "B")

assert matrix.shape == (49_152, 12_288) and matrix_bytes == 2_415_919_104
print(format_bytes(matrix_bytes))
assert round(matrix_bytes / 2**30, 2) == 2.25  # GiB: what nvidia-smi counts in
assert (
    round(matrix_bytes / 10**9, 2) == 2.42
)  # GB: powers of ten, what bandwidths and file sizes are given in

# %% [markdown]
r"""
> **Two units, one number.** 1 GB is $10^9$ bytes, 1 GiB is $2^{30}$, 7 % more. This matrix is 2.42 GB, or 2.25 GiB. Retellings of this computation say "2.3 GB":
> that is 2,304 MiB divided by 1,000, half one unit and half the other. (Another one gives 2.3 GB for a matrix of 2,048 × 8,192, which is 64 MiB.) Always write down
> the unit, and check the order of magnitude. Makers are loose with it too: an "80 GB" H100 has 81,559 MiB, which is 85.5 GB.
"""

# %% tags=["error-6", "error-24"]
assert matrix_bytes / 2**20 == 2_304
assert 2048 * 8192 * 4 == 64 * 2**20
assert round(81_559 * 2**20 / 1e9, 1) == 85.5
assert round(2**30 / 10**9, 2) == 1.07

# %% [markdown]
r"""
### Exercise 1.1 · How many bytes? &nbsp; ★☆☆ &nbsp; 5 minutes

Write `tensor_bytes(x)`: the bytes that the elements of `x` take. It must work for every dtype and shape, also an empty one. For a *view*
(a part of a larger tensor) count the elements that the view shows, not the memory behind it.
"""


# %% nbgrader={"grade": false, "grade_id": "tensor_bytes", "locked": false, "schema_version": 3, "solution": true, "task": false}
def tensor_bytes(x: Tensor) -> int:
    """Bytes that the elements of x take, for any shape and dtype."""
    ### BEGIN SOLUTION
    return x.numel() * x.element_size()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_tensor_bytes", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
import torch

from course_utils.testing import expect, observe

elements = "That counts elements; each of them takes several bytes."
bits = "That is in bits; a byte has eight."
four = "Not every element takes four bytes: it depends on the dtype."
mistakes = {
    32: elements,
    1024: bits,
    16: "That counts rows only.",
    None: "Nothing is returned: print shows a number, return hands it on.",
    "128 B": "Return a number, not a text.",
}
expect(observe(tensor_bytes, torch.zeros(4, 8)).value, 128, mistakes=mistakes)
mistakes = {12: four, 3: elements, 48: bits}
expect(observe(tensor_bytes, torch.zeros(3, dtype=torch.bfloat16)).value, 6, mistakes=mistakes)
### BEGIN HIDDEN TESTS
from course_utils.testing import draws

draw = draws()
sizes = {
    1: [torch.bool, torch.uint8, torch.int8, torch.float8_e4m3fn],
    2: [torch.float16, torch.bfloat16, torch.int16],
    4: [torch.float32, torch.int32],
    8: [torch.float64, torch.int64, torch.complex64],
    16: [torch.complex128],
}
for size, dtypes in sizes.items():
    for dtype in dtypes:
        rows, columns, depth = draw.sizes(3)
        count = rows * columns * depth
        x = torch.zeros(rows, columns, depth, dtype=dtype)
        mistakes = [
            (4 * count, four),
            (count, elements),
            (8 * size * count, bits),
            (size * rows, "That counts rows only."),
        ]
        seen = observe(tensor_bytes, x)
        expect(seen.value, size * count, mistakes=mistakes)
        expect(seen.mutated, [], about="arguments changed")
expect(
    observe(tensor_bytes, torch.zeros(3, 0, 5)).value,
    0,
    hint="A tensor with a dimension of size 0 has no elements.",
)
expect(
    observe(tensor_bytes, torch.tensor(1.0)).value,
    4,
    hint="A tensor without dimensions has one element.",
)
whole = draw.tensor(6, 50)
columns = draw.integer(2, 9)
seen = observe(tensor_bytes, whole[:, 3 : 3 + columns])
expect(
    seen.value,
    6 * columns * 4,
    mistakes={
        6 * 50 * 4: "That is the whole storage; the view shows only a part of its elements."
    },
)
rows = draw.integer(2, 4)
seen = observe(tensor_bytes, whole[1 : 1 + rows])  # contiguous, and still a part
part = "That is the whole storage; the view shows only a part of its elements."
expect(seen.value, rows * 50 * 4, mistakes={6 * 50 * 4: part})
### END HIDDEN TESTS

# %% [markdown]
r"""
<details><summary>Hint 1</summary>A tensor knows how many elements it has, and how many bytes one of them takes.</details>
<details><summary>Hint 2</summary>The two methods are in the cell under <i>Counting bytes</i>; multiply what they return.</details>

**Why it matters.** Every memory budget in this course, up to a 70-billion-parameter model on a thousand cards, is this product added up.

## 3 · Where tensors live

By default a tensor is in the memory of the CPU. To compute with it on a GPU it has to be in the GPU's own memory, and the way there is
narrow. (*PCIe* is the connector that a card sits in. *HBM* is the memory on the card.)
"""

# %% [markdown]
r"""
```mermaid
flowchart LR
  accTitle: The way from disk to a GPU's cores
  accDescr: Data passes from disk through the memory of the CPU and a narrow link to the memory of the GPU, which feeds its cores at terabytes a second.
  D[(disk)] --> R["CPU memory<br/>50 GB/s (laptop) to 300 GB/s (server)"]
  R -- "PCIe 5 ×16: up to 64 GB/s each way" --> H["GPU memory (HBM)<br/>H100 SXM: 80 GB"]
  H -- "3.35 TB/s" --> S["GPU cores"]
```
"""

# %% tags=["item-14", "item-15", "item-16"]
x = torch.zeros(32, 32)
assert x.device == torch.device("cpu")  # where tensors are made unless you say otherwise

if torch.cuda.is_available():
    for index in range(torch.cuda.device_count()):
        card = torch.cuda.get_device_properties(index)
        size = format_bytes(card.total_memory)
        print(
            f"cuda:{index}: {card.name}, {size}, {card.multi_processor_count} multiprocessors"
        )
else:
    print("no CUDA device here: everything below runs on", device)

# %% [markdown]
r"""
There are two ways to get a tensor onto a device. `x.to(device)` copies one that exists, if it is elsewhere. `torch.zeros(…, device=device)` makes it there in the
first place, and nothing has to travel. Let us watch the memory grow. Two 32 × 32 matrices of `float32` are
2 · 32 · 32 · 4 = 8,192 bytes.
"""

# %% tags=["item-17", "item-18"]
moved = x.to(device)  # now where it is needed
y = z = None  # so that running this cell again starts from nothing
with memory.track(device) as used:
    y = torch.zeros(32, 32, device=device)  # made where it is needed
    z = (y + moved) * 2  # y + moved is a matrix too, and is freed once it has been doubled

assert moved.device.type == y.device.type == device.type
assert used.live == 2 * (32 * 32 * 4) == 8_192  # y and z
assert used.peak == 3 * (32 * 32 * 4)  # and y + moved, on the way
print(f"live {used.live:,} B, at most {used.peak:,} B on the way")

# %% [markdown]
r"""
Measured to the byte. `used.peak` is larger than `used.live`: what a computation needs *on the way* also has to fit. Later lectures will be much
concerned with it.

On a GPU, `torch.cuda.memory_allocated()` tells the same, with a twist: PyTorch's allocator rounds every tensor up, to a multiple of 512 bytes at least. Our matrices
of 4,096 B are such multiples; that is the only reason why an assertion such as "`memory_allocated` grew by 8,192" holds. A tensor of
one element costs 512 B there. `memory.track` counts what was asked for.
"""

# %%
if device.type == "cuda":
    small = None  # so that running this cell again starts from nothing
    before = torch.cuda.memory_allocated(device)
    small = torch.zeros(1, device=device)
    assert torch.cuda.memory_allocated(device) - before == 512

# %% [markdown]
r"""
`.to` copies only if it must. When the tensor already is on that device, with that dtype, it returns *the same tensor*. That is convenient, and it is a trap: you
may write into something you took for a copy.
"""

# %%
same = x.to("cpu")
half = x.to(torch.bfloat16)

assert same is x
assert half is not x and not memory.same_storage(half, x)

# %% [markdown]
r"""
### Exercise 1.2 · What does `.to` copy? &nbsp; ★★☆ &nbsp; 10 minutes

Write `bytes_copied(x, device, dtype)`: how many bytes of *new* memory does `x.to(device, dtype)` fill? Zero, if it returns `x` itself.
Work it out without making the copy: `device` may be one that this machine does not have. It is written the way `x.device` is, with its number (`cuda:0`).
"""


# %% nbgrader={"grade": false, "grade_id": "bytes_copied", "locked": false, "schema_version": 3, "solution": true, "task": false}
def bytes_copied(x: Tensor, device: torch.device, dtype: torch.dtype) -> int:
    """Bytes of new memory that x.to(device, dtype) fills: 0 if it returns x itself."""
    ### BEGIN SOLUTION
    if x.device == device and x.dtype == dtype:
        return 0
    return x.numel() * dtype.itemsize
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_bytes_copied", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
import torch

from course_utils.testing import expect, observe

cpu = torch.device("cpu")
gpu = torch.device("cuda:0")  # the name is enough: nothing is moved here
old_size = "That counts the elements at their old size; the copy holds them at the new one."
needless = "Nothing is copied: it is there already, with that dtype, and .to returns x itself."
x = torch.zeros(4, 8)
expect(observe(bytes_copied, x, cpu, torch.float32).value, 0, mistakes={128: needless})
elements = "That counts elements; each of them takes several bytes."
both = "Only the copy is new memory; x had its own before."
mistakes = {0: "The dtype is the same, but the device is not.", 32: elements, 256: both}
compute = "Compute it; do not call .to: the device need not be in this machine."
expect(observe(bytes_copied, x, gpu, torch.float32).value, 128, mistakes=mistakes, hint=compute)
mistakes = {
    0: "The device is the same, but the dtype is not.",
    32: elements,
    128: old_size,
    192: both,
}
expect(observe(bytes_copied, x, cpu, torch.bfloat16).value, 64, mistakes=mistakes)
### BEGIN HIDDEN TESTS
from course_utils.testing import draws

draw = draws()
sizes = {
    torch.int8: 1,
    torch.float16: 2,
    torch.float32: 4,
    torch.float64: 8,
    torch.bool: 1,
    torch.int64: 8,
}
for old in sizes:
    for new in sizes:
        rows, columns = draw.sizes(2)
        x = draw.tensor(rows, columns, dtype=old)
        count = rows * columns
        mistakes = [
            (count, elements),
            (count * sizes[old], old_size),
            (count * (sizes[old] + sizes[new]), both),
        ]
        seen = observe(bytes_copied, x, gpu, new)
        expect(seen.value, count * sizes[new], mistakes=mistakes)
        seen = observe(bytes_copied, x, cpu, new)
        expect(
            seen.value,
            0 if old == new else count * sizes[new],
            mistakes=[(count * sizes[new], needless), *mistakes],
        )
whole = draw.tensor(50, 6)
seen = observe(bytes_copied, whole[:4], cpu, torch.float64)
expect(
    seen.value,
    4 * 6 * 8,
    mistakes={
        50 * 6 * 8: "Only the elements that the view shows are copied, not its whole storage."
    },
)
seen = observe(bytes_copied, whole[:, 1:4].T, cpu, torch.float32)
as_it_is = "A view in any layout is returned as it is when device and dtype agree."
expect(seen.value, 0, hint=as_it_is)
row = torch.zeros(1, 6).expand(4, 6)
seen = observe(bytes_copied, row, gpu, torch.float32)
expect(
    seen.value,
    4 * 6 * 4,
    mistakes={6 * 4: "Every element of the result has its own place in the copy."},
)
meta = torch.device("meta")
seen = observe(bytes_copied, torch.empty(5, 3, device=meta), meta, torch.float32)
expect(
    seen.value,
    0,
    mistakes={60: needless},
    hint="x need not be on the CPU: compare with the device that it is on.",
)
expect(observe(bytes_copied, torch.zeros(0, 3), gpu, torch.float32).value, 0)
### END HIDDEN TESTS

# %% [markdown]
r"""
<details><summary>Hint 1</summary>There is one case where nothing is copied. What two things have to be as asked already?</details>
<details><summary>Hint 2</summary>A dtype knows its size in bytes: <code>torch.bfloat16.itemsize</code>.</details>

**Why it matters.** In a training loop, a needless `.to` in the wrong place copies gigabytes every step; an expected copy that is none lets two parts of a program
write into the same memory.

### What a copy costs

A copy takes a fixed time to get going, the *latency*, and then a time in proportion to the bytes: $\text{seconds} = \text{latency} + \text{bytes} / \text{bandwidth}$. Let us
measure it, from a few kilobytes to many megabytes. On a GPU machine the copies go from the CPU's memory to the GPU's; else from one place in memory to another.
"""

# %% tags=["timed"]
copy_sizes = [2**p for p in (12, 14, 16, 18, 20, 22, 24, 26)]  # bytes
copy_seconds = []
threads = torch.get_num_threads()
torch.set_num_threads(1)  # a second thread waits whenever something else runs on its core
for size in copy_sizes:
    origin = torch.randint(0, 255, (size,), dtype=torch.uint8)
    target = torch.zeros(size, dtype=torch.uint8, device=device)
    copy = timing.benchmark(lambda: target.copy_(origin), device=device, min_seconds=0.1)
    copy_seconds.append(copy.minimum)  # the quickest: the others were disturbed
    rate = readable(size / copy.minimum, "B/s")
    print(f"{readable(size, 'B'):>8} in {readable(copy.minimum, 's'):>8}: {rate}")
torch.set_num_threads(threads)

# %% [markdown]
r"""
Small copies reach a fraction of the rate of large ones: they are all latency. (On a CPU the rate may fall again for the largest: they no longer fit in its cache. And where others use the CPU too, single rows may be far off: run the cell again.) That
is why one copies tensors in few, large pieces.

Two things make the way to a GPU faster. **Pinned memory**: the operating system may move ordinary memory about, so a copy from it takes a detour through a
buffer; memory that is pinned stays put, and the GPU fetches from it directly. **Asynchronous copies**: from pinned memory, `x.to(device, non_blocking=True)` returns at once, and the
copy runs while the GPU computes something else.
"""

# %% tags=["timed"]
if device.type == "cuda":
    ordinary = torch.randn(2**26)
    pinned = ordinary.pin_memory()
    assert pinned.is_pinned() and not ordinary.is_pinned()
    target = torch.empty(2**26, device=device)
    slow = timing.benchmark(lambda: target.copy_(ordinary), device=device)
    fast = timing.benchmark(lambda: target.copy_(pinned, non_blocking=True), device=device)
    print(f"256 MiB, ordinary: {slow}\n256 MiB, pinned:   {fast}")
else:
    print("no GPU: there is no detour to avoid")

# %% [markdown]
r"""
A GPU does what is in one *stream* in order, and works on several streams at a time. So the copies of four batches go into one, and
four multiplications into another; events in each stream note when the GPU gets there. What lies one above the other ran at the same time:
"""

# %% tags=["timed"]
if device.type == "cuda":
    copies, products = torch.cuda.Stream(), torch.cuda.Stream()
    batch, place = pinned[: 2**24], target[: 2**24]
    factor = torch.randn(8_192, 8_192, device=device, dtype=torch.bfloat16)
    out = torch.empty_like(factor)
    for _ in range(2):  # the first time warms up
        line = timing.Timeline()
        for i in range(4):
            line.run(
                "copies", f"batch {i}", copies, lambda: place.copy_(batch, non_blocking=True)
            )
            line.run(
                "products", f"step {i}", products, lambda: torch.mm(factor, factor, out=out)
            )
        spans = line.spans()
    copying = sum(span.end - span.start for span in spans if span.stream == "copies")
    hidden = timing.overlap(spans, "copies", "products")
    finding = f"Copies behind the work: {readable(hidden, 's')} of {readable(copying, 's')} cost no time"
    plots.show(plots.timeline(spans, title=finding), alt=f"When two streams worked. {finding}.")
    assert hidden > 0
else:
    print("no GPU: nothing runs beside Python")

# %% [markdown]
r"""
> **Trap.** After a `non_blocking` copy *to the CPU* the numbers may not have arrived yet when Python goes on. Synchronise before you read them.

### Exercise 1.3 · Latency and bandwidth &nbsp; ★★☆ &nbsp; 15 minutes

Write `copy_cost(sizes, seconds)`: given copies of `sizes[i]` bytes that took `seconds[i]`, return `(latency, bandwidth)` in seconds and bytes per second: the straight
line $\text{seconds} = \text{latency} + \text{bytes} / \text{bandwidth}$ that fits best, in the sense of least squares. There are at least two different sizes. Compute in float64.
"""


# %% nbgrader={"grade": false, "grade_id": "copy_cost", "locked": false, "schema_version": 3, "solution": true, "task": false}
def copy_cost(sizes: list[int], seconds: list[float]) -> tuple[float, float]:
    """Fit seconds = latency + bytes / bandwidth by least squares.

    sizes: bytes of each copy. seconds: how long each took. Returns (latency in s, bandwidth in B/s).
    """
    ### BEGIN SOLUTION
    x = torch.tensor(sizes, dtype=torch.float64)
    y = torch.tensor(seconds, dtype=torch.float64)
    dx, dy = x - x.mean(), y - y.mean()
    slope = (dx * dy).sum() / (dx * dx).sum()  # seconds per byte
    latency = y.mean() - slope * x.mean()
    return latency.item(), 1 / slope.item()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_copy_cost", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
from course_utils.testing import expect, observe

ignored = "That divides bytes by seconds and leaves no room for the latency."
inverse = "The slope of the line is seconds per byte; the bandwidth is bytes per second."
swapped = "The order is (latency, bandwidth)."
sizes = [1_000_000, 2_000_000, 5_000_000]
seen = observe(copy_cost, sizes, [0.001 + size / 2e9 for size in sizes])  # 1 ms and 2 GB/s
smallest = "The latency is the time of a copy of 0 bytes, not of the smallest one measured."
mistakes = [
    ((0.001, 5e-10), inverse),
    ((2e9, 0.001), swapped),
    ((0.001, 2.0), "That is in GB/s; wanted are bytes per second."),
    ((0.0015, 2e9), smallest),
    ((0.0, 8e6 / 0.007), ignored),
    ((0.0, 5e6 / 0.0035), ignored),
]
fit = (
    "Is it computed in float64? And is it the line through the points, not through the origin?"
)
expect(seen.value, (0.001, 2e9), mistakes=mistakes, tolerance=1e-6, hint=fit)
### BEGIN HIDDEN TESTS
from course_utils.testing import draws

draw = draws()
for count in (2, 3, 6):
    latency, bandwidth = draw.integer(5, 900) * 1e-6, draw.integer(1, 60) * 1e9
    sizes = [size * 1_000_000 for size in draw.sizes(count, 1, 300)]
    seconds = [latency + size / bandwidth for size in sizes]
    naive = sum(sizes) / sum(seconds)
    mistakes = [
        ((latency, 1 / bandwidth), inverse),
        ((bandwidth, latency), swapped),
        ((0.0, naive), ignored),
        ((0, sizes[-1] / seconds[-1]), ignored),
        ((min(seconds), bandwidth), smallest),
    ]
    expect(
        observe(copy_cost, sizes, seconds).value,
        (latency, bandwidth),
        mistakes=mistakes,
        tolerance=1e-4,
    )
# Points that are not on one line: slope 2 and intercept 1 by hand, residuals +d, -2d, +d.
d = draw.integer(1, 6) / 10
seen = observe(copy_cost, [1, 2, 3], [3 + d, 5 - 2 * d, 7 + d])
two_points = (
    (1 + 3 * d * 1.0 + d, 1 / (2 - 3 * d)),
    "That uses two of the points; the best line looks at all of them.",
)
ends = (
    (1 + d, 0.5),
    "That joins the first and the last point; the best line looks at all of them.",
)
expect(
    seen.value,
    (1.0, 0.5),
    mistakes=[two_points, ends],
    tolerance=1e-6,
    hint="The best line looks at all points, not at two of them.",
)
expect(seen.mutated, [], about="arguments changed")
# In no order, one size twice, more than three points, a negative intercept.
seen = observe(copy_cost, [3, 1, 4, 1, 5, 9], [2.0, 3.0, 1.0, 2.0, 4.0, 16.0])
slope = 430 / 269
every = "The best line looks at every point, in the order given; its intercept may be negative."
expect(seen.value, (28 / 6 - slope * 23 / 6, 1 / slope), tolerance=1e-6, hint=every)
expect(seen.mutated, [], about="arguments changed")
# Large sizes close together: 32 bits do not tell them apart well enough.
base = 1_000_000_001 + 2 * draw.integer(0, 500)
sizes = [base, base + 1_000_010, base + 3_000_025]
seen = observe(copy_cost, sizes, [50 + size / 1e9 for size in sizes])
expect(
    seen.value,
    (50.0, 1e9),
    tolerance=1e-6,
    hint="In float32 these sizes are nearly equal: compute in float64.",
)
### END HIDDEN TESTS

# %% [markdown]
r"""
<details><summary>Hint 1</summary>It is a straight line y = a + b·x through points: a is the latency, and b is one over the bandwidth.</details>
<details><summary>Hint 2</summary>b = Σ (x − x̄)(y − ȳ) / Σ (x − x̄)², and the line passes through the point of means. Use float64: float32 keeps seven digits, too few for differences of nearly equal numbers.</details>

**Why it matters.** The same two numbers describe a disk, a network and a GPU's memory. Lecture 05 builds its roofline on them.
"""

# %% tags=["timed"]
# Your function, on what was measured above. On a CPU only the four smallest: they stay in its cache.
fitted = slice(None) if devices.on_gpu(device) else slice(4)
latency, bandwidth = copy_cost(copy_sizes[fitted], copy_seconds[fitted])
print(f"latency {readable(latency, 's')}, bandwidth {readable(bandwidth, 'B/s')}")

line = [latency + size / bandwidth for size in copy_sizes]
drawn = {"copies": line} if min(line) > 0 else {}  # a disturbed measurement may fit badly
plots.show(
    plots.curves(
        copy_sizes,
        {"copies": copy_seconds},
        drawn,
        xlabel="size of the copy",
        ylabel="time",
        xunit="B",
        yunit="s",
        title="Small copies are all latency; large ones take time in proportion",
    ),
    alt="Time of a copy against its size, on logarithmic axes: nearly flat for small copies, "
    "rising in proportion for large ones. The fitted line runs through the points it was fitted to.",
)

# %% [markdown]
r"""
Hollow is your line, filled is what was measured. On a GPU one line should do for all sizes. On a CPU the large copies take longer than the line says: they no longer fit in the processor's cache and
have to go to memory, which has a bandwidth of its own. A fit gives you the best line. It does not tell you how far the line is right; for that you look.

*Try it yourself:* fit only the four largest copies, and compare the bandwidths.

## 4 · Elementwise operations

These act on each element alone, and on tensors of the same shape pair by pair. Each makes a new tensor.
"""

# %% tags=["item-31"]
x = torch.tensor([1.0, 4, 9])

assert torch.equal(x.pow(2), torch.tensor([1.0, 16, 81]))
assert torch.equal(x.sqrt(), torch.tensor([1.0, 2, 3]))
assert torch.allclose(x.rsqrt(), torch.tensor([1, 1 / 2, 1 / 3]))  # 1 / sqrt, in one go
assert torch.equal(x + x, torch.tensor([2.0, 8, 18]))
assert torch.equal(x * 2, torch.tensor([2.0, 8, 18]))
assert torch.equal(x / 0.5, torch.tensor([2.0, 8, 18]))

# %% [markdown]
r"""
Where shapes differ, *broadcasting* lines them up from the right, and a dimension of size 1 is repeated as often as needed, without being copied. It is a gift, and it makes
one kind of mistake silent: if a dimension that you summed over vanishes, what is left may line up with the wrong one.
"""

# %%
x = torch.tensor([[1.0, 2], [3, 4]])
kept = x.sum(dim=1, keepdim=True)  # [2, 1]: the row sums, standing
lost = x.sum(dim=1)  # [2]: the row sums, lying down

# Each row adds up to 1:
assert torch.equal(x / kept, torch.tensor([[1 / 3, 2 / 3], [3 / 7, 4 / 7]]))
# No error, and no meaning:
assert torch.equal(x / lost, torch.tensor([[1 / 3, 2 / 7], [3 / 3, 4 / 7]]))

# %% [markdown]
r"""
### Exercise 1.4 · Root mean square normalisation &nbsp; ★★☆ &nbsp; 10 minutes

Current language models normalise the vectors that pass through them by their *root mean square*: each vector along the last dimension is divided by
$\sqrt{\tfrac{1}{d}\sum_i x_i^2 + \varepsilon}$. The small $\varepsilon$, under the root, keeps a vector of zeros from becoming NaN. Here $d$ is the length of the last dimension. Write `rms_normalize(x, eps)` for any number of leading dimensions, and leave
`x` as it is. (`Float[Tensor, "... d"]` is a note to the reader: floats, a last dimension called d, and anything in front.)
"""


# %% nbgrader={"grade": false, "grade_id": "rms_normalize", "locked": false, "schema_version": 3, "solution": true, "task": false}
def rms_normalize(x: Float[Tensor, "... d"], eps: float = 1e-6) -> Float[Tensor, "... d"]:
    """Each vector along the last dimension, divided by the root of (the mean of its squares, plus eps)."""
    ### BEGIN SOLUTION
    return x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + eps)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_rms_normalize", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
import torch

from course_utils.testing import expect, observe

x = torch.tensor([[3.0, 4.0], [6.0, 8.0]])
root = 12.5**0.5  # the root mean square of 3 and 4; that of 6 and 8 is twice as much
seen = observe(rms_normalize, x)
mistakes = [
    (
        torch.tensor([[0.6, 0.8], [0.6, 0.8]]),
        "That divides by the root of the sum of squares; wanted is their mean.",
    ),
    (
        torch.tensor([[3 / root, 4 / root / 2], [6 / root, 8 / root / 2]]),
        "The divisors are laid along the wrong dimension: look at keepdim.",
    ),
    (
        x / (125 / 4) ** 0.5,
        "That takes one mean over the whole tensor; each vector along the last dimension has its own.",
    ),
    (
        x / torch.tensor([[12.5], [50.0]]),
        "The root is missing: that divides by the mean square.",
    ),
    (
        torch.tensor([[-1.0, 1.0], [-1.0, 1.0]]),
        "No mean is subtracted here: that is LayerNorm.",
    ),
]
want = torch.tensor([[3 / root, 4 / root], [3 / root, 4 / root]])
each = "Each row is divided by a number of its own: the root of the mean of its squares."
expect(seen.value, want, mistakes=mistakes, hint=each)
expect(seen.mutated, [], about="arguments changed", hint="Leave x as it is: make a new tensor.")
seen = observe(rms_normalize, torch.tensor([1.0, 7.0]), 11.0)  # the mean of 1 and 49 is 25
mistakes = {
    torch.tensor([-3.0, 3.0]) / 20**0.5: "No mean is subtracted here: that is LayerNorm.",
    torch.tensor([0.2, 1.4]): "eps is ignored: it is an argument, use it.",
    torch.tensor(
        [1 / 16, 7 / 16]
    ): "eps is added to the root; it belongs under it, to the mean of the squares.",
}
expect(seen.value, torch.tensor([1 / 6, 7 / 6]), mistakes=mistakes, hint=each)
### BEGIN HIDDEN TESTS
from course_utils.testing import draws

draw = draws()
for shape in [draw.sizes(1), (4, 4), draw.sizes(3), (3, 3, 3), draw.sizes(4)]:
    for eps in (1e-6, draw.integer(1, 9) / 4):
        x = draw.tensor(*shape, contiguous=False)
        rows = [
            [v / (sum(u * u for u in row) / len(row) + eps) ** 0.5 for v in row]
            for row in x.reshape(-1, shape[-1]).tolist()
        ]
        outside = x / ((x**2).mean(-1, keepdim=True).sqrt() + eps)
        dim0 = x / ((x**2).mean(0, keepdim=True) + eps).sqrt()
        mistakes = [
            (
                outside,
                "eps is added to the root; it belongs under it, to the mean of the squares.",
            ),
            (
                x / (x**2).mean(-1, keepdim=True).sqrt(),
                "eps is ignored: it is an argument, use it.",
            ),
            (
                x / ((x**2).mean(-1, keepdim=True) + 1e-6).sqrt(),
                "eps is ignored: it is an argument, use it.",
            ),
            (dim0, "That averages over the first dimension; wanted is the last."),
            (
                x
                / ((x - x.mean(-1, keepdim=True)) ** 2).mean(-1, keepdim=True).add(eps).sqrt(),
                "No mean is subtracted here: that is LayerNorm.",
            ),
            (
                (x - x.mean(-1, keepdim=True))
                / x.var(-1, keepdim=True, correction=0).add(eps).sqrt(),
                "No mean is subtracted here: that is LayerNorm.",
            ),
            (
                x / ((x**2).mean() + eps).sqrt(),
                "That takes one mean over the whole tensor; each vector along the last dimension has its own.",
            ),
            (
                x / ((x**2).sum(-1, keepdim=True) + eps).sqrt(),
                "That divides by the root of the sum of squares; wanted is their mean.",
            ),
            (
                x / ((x**2).mean(-1, keepdim=True) + eps),
                "The root is missing: that divides by the mean square.",
            ),
        ]
        seen = observe(rms_normalize, x, eps)
        expect(seen.value, torch.tensor(rows).reshape(shape), mistakes=mistakes, tolerance=1e-5)
        expect(
            seen.mutated,
            [],
            about="arguments changed",
            hint="x is somebody else's: an operation that ends in _ writes into it.",
        )
seen = observe(rms_normalize, torch.zeros(2, 3))
expect(
    seen.value,
    torch.zeros(2, 3),
    hint="A vector of zeros must stay zeros: eps under the root, 1e-6 if nobody says otherwise.",
)
tiny = torch.full((1, 4), 1e-3)
expect(
    observe(rms_normalize, tiny).value,
    torch.full((1, 4), 0.5**0.5),
    hint="Look at eps: it is 1e-6 if nobody says otherwise.",
)
### END HIDDEN TESTS

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Square, mean over the last dimension, add eps, root, divide: five steps, each an elementwise operation or a mean.</details>
<details><summary>Hint 2</summary>The mean must keep its dimension (<code>keepdim=True</code>), or it lines up with the wrong one. On a square matrix nothing warns you.</details>

**Why it matters.** RMSNorm stands at least twice in every layer of Llama, Qwen, DeepSeek and most others. Theirs is what you just wrote, computed in float32 and multiplied by a learned scale.

*Try it yourself:* normalise `torch.randn(2, 8) * 1000` and `torch.randn(2, 8) / 1000`. What is left of the factor?

## 5 · Triangles, and who may look at whom

`triu` keeps the upper triangle of a matrix, `tril` the lower one, and both write zeros elsewhere.
"""

# %% tags=["item-32"]
x = torch.ones(3, 3)

assert torch.equal(x.triu(), torch.tensor([[1.0, 1, 1], [0, 1, 1], [0, 0, 1]]))
assert torch.equal(x.tril(), torch.tensor([[1.0, 0, 0], [1, 1, 0], [1, 1, 1]]))
assert torch.equal(x.triu(diagonal=1), torch.tensor([[0.0, 1, 1], [0, 0, 1], [0, 0, 0]]))

# %% [markdown]
r"""
Their best known use: a language model at position $q$ has read tokens 0 to $q$ and predicts the *next* one. So in attention token $q$ (the *query*) may look at token $k$ (the *key*) only
if $k \le q$. That is the *causal mask*. A *score* says how much a query wants to know of a key; `softmax` turns each row of scores into shares that add up to 1; and a score that `masked_fill` has set to
−∞ gets the share 0. We lay the scores out as `scores[query, key]`, one row for each query.

> **A mistake that travels.** `triu` is often introduced as "how to make a causal mask". For `scores[query, key]` it is the transpose of one: the first token then sees the
> whole text, and the last only itself. A model trained that way has a wonderfully low loss and is useless, because it copies the answer from the future. (`triu` is right for a matrix laid out
> `[key, query]`, and `triu(diagonal=1)` is right for marking what is *forbidden*.)
"""

# %% tags=["error-12"]
scores = torch.zeros(4, 4)  # nobody prefers anybody
leaky = scores.masked_fill(~torch.ones(4, 4).triu().bool(), -torch.inf).softmax(dim=-1)

# The first token spends a quarter of its attention on the last, which is the future:
assert leaky[0, 3] == 0.25

# %% [markdown]
r"""
### Exercise 1.5 · The causal mask &nbsp; ★☆☆ &nbsp; 5 minutes

Write `causal_mask(t)`: a matrix of truth values, `[t, t]`, in which entry `[query, key]` is `True` where that query may look at that key. A token may look at itself.
"""


# %% nbgrader={"grade": false, "grade_id": "causal_mask", "locked": false, "schema_version": 3, "solution": true, "task": false}
def causal_mask(t: int) -> Bool[Tensor, "query key"]:
    """True where a query may look at a key: at itself and at what came before."""
    ### BEGIN SOLUTION
    return torch.ones(t, t, dtype=torch.bool).tril()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_causal_mask", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
import torch

from course_utils.testing import expect, observe

want = torch.tensor([[True, False, False], [True, True, False], [True, True, True]])
seen = observe(causal_mask, 3)
mistakes = [
    (want.T, "That is the transpose: query 0 would see the whole text, the future included."),
    (
        torch.tensor([[False, False, False], [True, False, False], [True, True, False]]),
        "A token may look at itself: the diagonal is True.",
    ),
    (~want, "That is upside down: True means that the query may look."),
    (
        want.float(),
        "Those are numbers; wanted are truth values, which masked_fill and where take.",
    ),
    (
        want.long(),
        "Those are numbers; wanted are truth values, which masked_fill and where take.",
    ),
    (
        torch.where(want, 0.0, -torch.inf),
        "That is to be added to scores; wanted are truth values.",
    ),
]
entry = "Entry [query, key] is True where key ≤ query, for any t."
expect(seen.value, want, mistakes=mistakes, hint=entry)
### BEGIN HIDDEN TESTS
from course_utils.testing import draws

draw = draws()
for t in (1, 2, *draw.sizes(3, 5, 40)):
    want = torch.tensor([[key <= query for key in range(t)] for query in range(t)])
    strict = torch.tensor([[key < query for key in range(t)] for query in range(t)])
    seen = observe(causal_mask, t)
    mistakes = [
        (strict, "A token may look at itself: the diagonal is True."),
        (strict.T, "That is upside down: True means that the query may look."),
        (
            want.T,
            "That is the transpose: query 0 would see the whole text, the future included.",
        ),
        (
            want.float(),
            "Those are numbers; wanted are truth values, which masked_fill and where take.",
        ),
    ]
    expect(
        seen.value,
        want,
        mistakes=mistakes,
        hint=entry,
    )
### END HIDDEN TESTS

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Begin with a matrix in which everybody may look at everybody.</details>
<details><summary>Hint 2</summary>The keys that a query may see are those up to the diagonal: the lower triangle.</details>
<details><summary>What it should look like</summary>

```
key      0  1  2  3
query 0  ■  ·  ·  ·
query 1  ■  ■  ·  ·
query 2  ■  ■  ■  ·
query 3  ■  ■  ■  ■
```

</details>

**Why it matters.** With this triangle every position can learn to predict the next token, all in one pass; without it a Transformer is an encoder, such as BERT. Half of the scores are never needed,
and good kernels skip them.

*Try it yourself:* repeat the cell with `leaky`, with your mask in place of `triu` (`masked_fill` wants what is forbidden: `~mask`). What does row 0 look like, and what row 3?

## 6 · Matrix multiplication

The workhorse. `x @ w` multiplies `[B, D]` by `[D, K]` and gives `[B, K]`. With more dimensions, the last two are multiplied, and each index of the others, the *batch* dimensions, is a
product of its own; all of them run at once. Typically there is one batch dimension for the sequences and one for the tokens.
"""

# %% tags=["item-33"]
x = torch.ones(16, 32)
w = torch.ones(32, 2)
y = x @ w

assert y.shape == (16, 2)
assert (y == 32).all()  # 32 products of 1 · 1, added up

# %% tags=["item-34"]
batch, tokens = 4, 8
x = torch.ones(batch, tokens, 16, 32)  # a [16, 32] matrix for each token of each sequence
y = x @ w

assert y.shape == (batch, tokens, 16, 2)

# %% [markdown]
r"""
### Exercise 1.6 · A linear layer for any batch &nbsp; ★★☆ &nbsp; 10 minutes

Write `batched_linear(x, w, b)`: multiply each vector along the last dimension of `x` by `w` and add `b`. There may be any number of leading dimensions, also none. No loop, and no
elementwise products summed up by hand: make it *one* product of matrices, which is what a GPU is fast at.
"""


# %% nbgrader={"grade": false, "grade_id": "batched_linear", "locked": false, "schema_version": 3, "solution": true, "task": false}
def batched_linear(
    x: Float[Tensor, "... d_in"], w: Float[Tensor, "d_in d_out"], b: Float[Tensor, "d_out"]
) -> Float[Tensor, "... d_out"]:
    """x @ w + b along the last dimension of x, for any number of leading dimensions, in one multiplication."""
    ### BEGIN SOLUTION
    return x @ w + b
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_batched_linear", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
import torch

from course_utils.testing import expect, observe

x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
w = torch.tensor([[1.0, 0.0], [5.0, 1.0]])
b = torch.tensor([100.0, 200.0])
mistakes = [
    (x @ w, "b is not added."),
    (x @ w.T + b, "w is transposed: its first dimension is the one that is summed over."),
    (w @ x + b, "The order of a product matters: x comes first."),
    (x * w + b, "* multiplies element by element; wanted is the matrix product."),
    (
        x @ w + b[:, None],
        "b is added along the wrong dimension: there is one number per output feature.",
    ),
]
want = torch.tensor([[111.0, 202.0], [123.0, 204.0]])
expect(observe(batched_linear, x, w, b).value, want, mistakes=mistakes)
lost = "The numbers are right, but the leading dimensions are lost: the result is [..., d_out]."
seen = observe(batched_linear, x[0], w, b)
expect(seen.value, want[0], mistakes=[(want[:1], lost)], hint="x may be a single vector.")
expect(
    observe(batched_linear, x[None], w, b).value,
    want[None],
    hint="x may have a batch in front.",
)
### BEGIN HIDDEN TESTS
from course_utils.testing import draws, probe

draw = draws()
d_in, d_out = draw.sizes(2)
for leading in [(), draw.sizes(1), draw.sizes(2), draw.sizes(3), (3, 3)]:
    x = draw.tensor(*leading, d_in, dtype=torch.float64, contiguous=False)
    w, b = (
        draw.tensor(d_in, d_out, dtype=torch.float64, contiguous=False),
        draw.tensor(d_out, dtype=torch.float64),
    )
    vectors = x.reshape(-1, d_in).tolist()
    rows = [
        [sum(v[i] * w[i, o].item() for i in range(d_in)) + b[o].item() for o in range(d_out)]
        for v in vectors
    ]
    want = torch.tensor(rows, dtype=torch.float64).reshape(*leading, d_out)
    mistakes = [
        (want.reshape(-1, d_out), lost),
        (want - b, "b is not added."),
    ]
    seen = observe(batched_linear, x, w, b)
    expect(
        seen.value,
        want,
        mistakes=mistakes,
        hint="Check it for x with one, two and four dimensions.",
    )
    expect(
        seen.mutated,
        [],
        about="arguments changed",
        hint="x, w and b are somebody else's: an operation that ends in _ writes into them.",
    )


@probe
def multiplications(student, x, w, b):
    """How many products of matrices one call makes."""
    from torch.utils._python_dispatch import TorchDispatchMode

    products = []

    class Count(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            if function.__name__.split(".")[0] in (
                "mm",
                "bmm",
                "mv",
                "addmm",
                "baddbmm",
                "addmv",
                "dot",
            ):
                products.append(function.__name__)
            return function(*args, **(kwargs or {}))

    with Count():
        student.batched_linear(x, w, b)
    return len(products)


x = draw.tensor(6, 5, 4)
seen = observe(multiplications, x, draw.tensor(4, 3), draw.tensor(3))
loop = "That is a loop of small products; one large product does the same work far faster."
expect(
    seen.value,
    1,
    about="products of matrices for x of shape [6, 5, 4]",
    mistakes={6: loop, 30: loop, 0: "That makes no product of matrices."},
    hint="One product is enough: @ takes any number of leading dimensions.",
)
### END HIDDEN TESTS

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Matrix multiplication in PyTorch already treats leading dimensions as a batch.</details>
<details><summary>Hint 2</summary>Broadcasting lines shapes up from the right. Where does a bias of shape [d_out] land?</details>

**Why it matters.** This is most of what a language model computes. In lecture 05 you count what it costs.

*Try it yourself:* `torch.ones(2, 3, 5) @ torch.ones(4, 5, 7)` fails. What would the first dimension of either have to be?

## 7 · The result: GPT-3, byte by byte

GPT-3 has 96 layers and vectors of 12,288 numbers. Each layer has four matrices for attention, 12,288 × 12,288, and two for the feed-forward block, one 12,288 × 49,152 and one the other way
round. Then there is a table of 50,257 token embeddings and one of 2,048 positions. (The token table also serves as the output layer, so it counts once. Biases and normalisations add less than 0.01 %.)

**Predict.** How many 80 GB cards does it take merely to *hold* these weights, two bytes each?
"""

# %%
guess = None  # cards

# %%
d, layers, vocabulary, context = (
    int(FACTS[f"GPT-3 {name}"].value) for name in ("width", "layers", "vocabulary", "context")
)
assert (d, layers, vocabulary, context) == (12_288, 96, 50_257, 2_048)
shapes = {
    "attention": [(d, d)] * 4 * layers,
    "feed-forward": [(d, 4 * d), (4 * d, d)] * layers,
    "embeddings": [(vocabulary, d), (context, d)],
}
ledger = {
    kind: sum(
        tensor_bytes(torch.empty(shape, dtype=torch.bfloat16, device="meta"))
        for shape in matrices
    )
    for kind, matrices in shapes.items()
}
total = sum(ledger.values())
for kind, size in ledger.items():
    print(f"{kind:>13}: {format_bytes(size):<22} {size / total:6.1%}")
print(f"{'in all':>13}: {format_bytes(total)}")
cards = math.ceil(total / 80e9)
reconcile("80 GB cards to hold GPT-3's weights in bfloat16", guess, cards, "cards")

assert round(total / 2 / 1e9, 1) == 174.6  # billion parameters
# Biases and normalisations are 13 vectors a layer, and 2 at the end:
assert 2 * (13 * d * layers + 2 * d) < 0.0001 * total
assert cards == 5 and total > 4 * 80e9
assert 0.66 < ledger["feed-forward"] / total < 0.67  # two thirds of the model

# %% tags=["timed"]
plots.show(
    plots.memory_bar(
        ledger,
        capacity=80e9,
        capacity_label="80 GB card",
        title="GPT-3 in bfloat16 needs five cards to be held, and two thirds of it is feed-forward",
    ),
    alt="A bar of 349 GB of weights, two thirds of it feed-forward and one third attention, "
    "reaches into the fifth of five 80 GB cards.",
)

rates = {  # B/s
    "your largest copy": copy_sizes[-1] / copy_seconds[-1],
    "PCIe 5 ×16": 64e9,
    "an H100's own memory": FACTS["H100 SXM bandwidth"].value,
}
for way, rate in rates.items():
    print(f"all of it at {readable(rate, 'B/s')} ({way}): {readable(total / rate, 's')}")

# %% [markdown]
r"""
## Takeaways

**Mechanics.** A tensor's bytes are `numel × element_size`. Tensors are made on the CPU unless you say `device=`; `.to` copies only when device or dtype differ. A copy costs a latency plus
bytes over bandwidth. `keepdim=True` keeps broadcasting honest. `tril` is the causal mask for `scores[query, key]`. `@` multiplies the last two dimensions and takes any number in front.

**Mindset.** Before you make a tensor, say its shape, dtype, bytes and device. Keep an account, and let the machine check it: `assert`.

**Intuitions.** One matrix of a large model is gigabytes. Two thirds of a Transformer's weights are in its feed-forward blocks. Holding the weights already takes several cards, before a
single gradient or activation. Few large copies beat many small ones.

Next: **02 · Dtypes**, what the bits inside an element mean. Then **03 · Strides and views**, what lies between a shape and the memory.
"""

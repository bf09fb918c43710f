# %% [markdown]
r"""
# 01 · Tensors

[← 00 · Napkin math](../00_napkin_math/00_napkin_math.ipynb) · [02 · Dtypes →](../02_dtypes/02_dtypes.ipynb)

> **How many bytes is a model, where do they live, and what does it cost to move them?**

Everything in deep learning is kept in tensors: parameters, gradients, optimizer state, activations, data. So the first
thing to be able to say about a training run is how large its tensors are. By the end of this lecture you will have shown,
with code of your own, that the weights of GPT-3 do not fit on four 80 GB cards, which of its matrices are to blame, and how
long it takes to move them.

How to read: run the cells in order (<kbd>Shift</kbd> + <kbd>Enter</kbd>). Where a cell says *predict*, write your number
first; being wrong is how you find out what to look at. Exercises say ★ to ★★★ and about how many minutes they take. The cell below each
exercise tries a few cases and names the likely mistake; grading tries more: other dtypes, shapes and views. *Validate* in the toolbar runs all the checks.
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
from course_utils.testing import check

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

Write `tensor_bytes(x, dtype)`: the bytes that the elements of `x` take. Where a `dtype` is given, the bytes that they would take in that one, worked out without making such a tensor; where it is `None`, as it is if
nothing is said, in their own. It must work for every dtype and shape, also an empty one, and for a tensor on the "meta" device. For a *view* (a part of a larger tensor, or one row shown many times) count the elements that
the view shows, not the memory behind it.
"""


# %% nbgrader={"grade": false, "grade_id": "tensor_bytes", "locked": false, "schema_version": 3, "solution": true, "task": false}
def tensor_bytes(x: Tensor, dtype: torch.dtype | None = None) -> int:
    """Bytes that the elements of x take, or would take in another dtype."""
    ### BEGIN SOLUTION
    if dtype is not None:
        return x.numel() * dtype.itemsize
    return x.numel() * x.element_size()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_tensor_bytes", "locked": true}
check("tensor_bytes")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>A tensor knows how many elements it has, and how many bytes one of them takes.</details>
<details><summary>Hint 2</summary>The two methods are in the cell under <i>Counting bytes</i>; multiply what they return. A dtype knows its size, too: <code>dtype.itemsize</code>.</details>

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

Write `bytes_copied(x, device, dtype)`: how many bytes of *new* memory does `x.to(device, dtype)` fill? Zero, if it returns `x` itself. Otherwise each element that `x` shows
has a place of its own in the copy. Work it out without making that copy, or another tensor of its size: `device` may be one that this machine does not have. It is written the way `x.device`
is, with its number (`cuda:0`), and it is `meta` only if `x` is on it already.
"""


# %% nbgrader={"grade": false, "grade_id": "bytes_copied", "locked": false, "schema_version": 3, "solution": true, "task": false}
def bytes_copied(x: Tensor, device: torch.device, dtype: torch.dtype) -> int:
    """Bytes of new memory that x.to(device, dtype) fills: 0 if it returns x itself."""
    ### BEGIN SOLUTION
    if x.device == device and x.dtype == dtype:
        return 0
    return x.numel() * dtype.itemsize
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_bytes_copied", "locked": true}
check("bytes_copied")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>There is one case where nothing is copied. What two things have to be as asked already?</details>
<details><summary>Hint 2</summary>A dtype knows its size in bytes: <code>torch.bfloat16.itemsize</code>.</details>

**Why it matters.** In a training loop, a needless `.to` in the wrong place copies gigabytes every step; an expected copy that is none lets two parts of a program
write into the same memory.

Your function says it in advance, and the memory agrees, to the byte:
"""

# %%
matrix = torch.zeros(512, 512)
for dtype in (torch.float32, torch.bfloat16, torch.float64):
    copy = None  # frees the one before
    with memory.track(device) as used:
        copy = matrix.to(device, dtype)
    said = bytes_copied(matrix, copy.device, dtype)
    assert used.live == said
    print(f"{dtype} on {copy.device}: {said:,} B")

# %% [markdown]
r"""
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
> **Trap.** After a `non_blocking` copy *to the CPU* the numbers may not have arrived yet when Python goes on. Synchronize before you read them.

### Exercise 1.3 · Latency and bandwidth &nbsp; ★★☆ &nbsp; 15 minutes

Write `copy_cost(sizes, seconds)`: given copies of `sizes[i]` bytes that took `seconds[i]`, return `(latency, bandwidth)` in seconds and bytes per second: the straight
line $\text{seconds} = \text{latency} + \text{bytes} / \text{bandwidth}$ that fits best. The largest copies take thousands of times as long as the smallest. In plain least squares they
alone would decide, and the latency would come out of their noise. So let each copy count by the *share* of its own time by which the line misses it: the sum of the squares of

$$\frac{\text{latency} + \text{sizes}[i] / \text{bandwidth} - \text{seconds}[i]}{\text{seconds}[i]}$$

is as small as it gets. There are at least two different sizes, in any order; all times are positive, and the line rises. It may start below 0. Compute in float64, and leave both lists as they are.
"""


# %% nbgrader={"grade": false, "grade_id": "copy_cost", "locked": false, "schema_version": 3, "solution": true, "task": false}
def copy_cost(sizes: list[int], seconds: list[float]) -> tuple[float, float]:
    """Fit seconds = latency + bytes / bandwidth by least squares of the relative differences.

    sizes: bytes of each copy. seconds: how long each took. Returns (latency in s, bandwidth in B/s).
    """
    ### BEGIN SOLUTION
    x = torch.tensor(sizes, dtype=torch.float64)
    y = torch.tensor(seconds, dtype=torch.float64)
    weight = 1 / y**2  # a difference counts as a share of its own time
    weight /= weight.sum()
    x_mean, y_mean = (weight * x).sum(), (weight * y).sum()
    dx, dy = x - x_mean, y - y_mean
    slope = (weight * dx * dy).sum() / (weight * dx * dx).sum()  # seconds per byte
    latency = y_mean - slope * x_mean
    return latency.item(), 1 / slope.item()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_copy_cost", "locked": true}
check("copy_cost")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>It is a straight line y = a + b·x through points: a is the latency, and b is one over the bandwidth.</details>
<details><summary>Hint 2</summary>Plain least squares measures every x and every y from its mean; the best slope is the sum of their products over the sum of the squares of x, and the line passes through the point of means. Here every copy has a weight, in each of these sums and in both means: which one makes a square of a difference the square of a share? (<code>torch.linalg.lstsq</code> can do it too, if each equation is divided by its own seconds.)</details>

**Why it matters.** The same two numbers describe a disk, a network and a GPU's memory. Lecture 05 builds its roofline on them.
"""

# %% tags=["timed"]
# Your function, on what was measured above. On a CPU only the four smallest: they stay in its cache.
fitted = slice(None) if devices.on_gpu(device) else slice(4)
latency, bandwidth = copy_cost(copy_sizes[fitted], copy_seconds[fitted])
print(f"latency {readable(latency, 's')}, bandwidth {readable(bandwidth, 'B/s')}")

line = [latency + size / bandwidth for size in copy_sizes]
misses = [abs(says / took - 1) for says, took in zip(line, copy_seconds, strict=True)][fitted]
print(f"of the copies that it was fitted to, the line misses one by {max(misses):.0%}, at most")
times = copy_sizes[-1] // copy_sizes[0], copy_seconds[-1] / copy_seconds[0]
finding = f"{times[0]:,} times as many bytes take {times[1]:,.0f} times as long"
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
        title=finding,
    ),
    alt=f"Time of a copy against its size, on logarithmic axes, and the fitted line. {finding}.",
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
### Exercise 1.4 · Root mean square normalization &nbsp; ★★☆ &nbsp; 10 minutes

Current language models normalize the vectors that pass through them by their *root mean square*: each vector along the last dimension is divided by
$\sqrt{\tfrac{1}{d}\sum_i x_i^2 + \varepsilon}$. The small $\varepsilon$, under the root, keeps a vector of zeros from becoming NaN. Here $d$ is the length of the last dimension. Write `rms_normalize(x, eps)` for any number of leading dimensions of any size, also none;
`eps` is 1e-6 if nothing is said. Leave `x` as it is. The result has the dtype of `x`, whether you compute in that or in float32. Training will send gradients back through it, so compute it with PyTorch's operations alone. Neither a square nor the sum of a vector's squares is too large for the dtype of `x`. PyTorch has this one ready made
(`rms_norm`); here, write it out. (`Float[Tensor, "... d"]` is a note to the reader: floats, a last dimension called d, and anything in front.)
"""


# %% nbgrader={"grade": false, "grade_id": "rms_normalize", "locked": false, "schema_version": 3, "solution": true, "task": false}
def rms_normalize(x: Float[Tensor, "... d"], eps: float = 1e-6) -> Float[Tensor, "... d"]:
    """Each vector along the last dimension, divided by the root of (the mean of its squares, plus eps)."""
    ### BEGIN SOLUTION
    return x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + eps)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_rms_normalize", "locked": true}
check("rms_normalize")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Square, mean over the last dimension, add eps, root, divide: five steps, each an elementwise operation or a mean.</details>
<details><summary>Hint 2</summary>The mean must keep its dimension (<code>keepdim=True</code>), or it lines up with the wrong one. On a square matrix nothing warns you.</details>

**Why it matters.** RMSNorm stands at least twice in every layer of Llama, Qwen, DeepSeek and most others. Theirs is what you just wrote, computed in float32 and multiplied by a learned scale.

What is left of a vector's length? Nothing, as long as its squares are large beside $\varepsilon$:
"""

# %%
x = torch.randn(3, 4_096)
loud, quiet = rms_normalize(1_000 * x), rms_normalize(x / 1_000)

assert torch.allclose(loud.square().mean(dim=-1), torch.ones(3), rtol=1e-4)
assert torch.allclose(loud, rms_normalize(x), rtol=1e-4)
# Here the mean of the squares is about 1e-6, as much as eps: half of what is under the root.
assert torch.allclose(quiet.square().mean(dim=-1), torch.tensor(0.5), rtol=0.1)

# %% [markdown]
r"""
*Try it yourself:* from which size on does $\varepsilon$ no longer matter in float32?

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
### Exercise 1.5 · The causal mask, and a window &nbsp; ★★☆ &nbsp; 10 minutes

Write `causal_mask(t, window)`: a matrix of truth values, `[t, t]`, in which entry `[query, key]` is `True` where that query may look at that key: at itself and at what came before. Many models let
some of their layers look back only so far. Where a `window` is given, a query sees only the last `window` of these keys, its own included (or all of them, if there are fewer); where it is `None`, as it is if nothing is said, it sees all that came before. Each call makes a new matrix. Both
numbers are at least 1, and the window may be wider than the text.
"""


# %% nbgrader={"grade": false, "grade_id": "causal_mask", "locked": false, "schema_version": 3, "solution": true, "task": false}
def causal_mask(t: int, window: int | None = None) -> Bool[Tensor, "query key"]:
    """True where a query may look at a key: at itself and at what came before, at most `window` keys in all."""
    ### BEGIN SOLUTION
    mask = torch.ones(t, t, dtype=torch.bool).tril()
    if window is not None:
        mask = mask.triu(diagonal=1 - window)
    return mask
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_causal_mask", "locked": true}
check("causal_mask")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Begin with a matrix in which everybody may look at everybody.</details>
<details><summary>Hint 2</summary>The keys that a query may see lie between two diagonals. Which ones? Try it with a window of 1, where a token sees itself alone.</details>
<details><summary>What it should look like</summary>

```
causal_mask(4)            causal_mask(4, window=2)

key      0  1  2  3       key      0  1  2  3
query 0  ■  ·  ·  ·       query 0  ■  ·  ·  ·
query 1  ■  ■  ·  ·       query 1  ■  ■  ·  ·
query 2  ■  ■  ■  ·       query 2  ·  ■  ■  ·
query 3  ■  ■  ■  ■       query 3  ·  ·  ■  ■
```

</details>

**Why it matters.** With this triangle every position can learn to predict the next token, all in one pass; without it a Transformer is an encoder, such as BERT. Half of the scores are never needed,
and good kernels skip them.

Now the attention from above with your mask; `masked_fill` wants what is forbidden, `~mask`. And how many of the scores of a longer text are needed at all?
"""

# %%
honest = scores.masked_fill(~causal_mask(4), -torch.inf).softmax(dim=-1)

assert torch.equal(honest[0], torch.tensor([1.0, 0, 0, 0]))  # only itself
assert torch.equal(honest[3], torch.tensor([0.25, 0.25, 0.25, 0.25]))

for t in (256, 1_024, 4_096):
    needed, near = causal_mask(t).sum().item(), causal_mask(t, window=256).sum().item()
    assert needed == t * (t + 1) // 2 and near == 256 * t - 256 * 255 // 2
    print(
        f"{t:5,} tokens: {needed / t**2:4.0%} of the scores, with a window of 256 {near / t**2:4.0%}"
    )

# %% [markdown]
r"""
The triangle grows with the square of the length, the window in proportion to it.

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

Write `batched_linear(x, w, b)`: multiply each vector along the last dimension of `x` by `w` and add `b`. There may be any number of leading dimensions, also none, of any size, also 0. No loop, and no
elementwise products summed up by hand: make it *one* product of two matrices for the whole batch, which is what a GPU is fast at. Leave the arguments as they are. They have the same dtype, and so has the result; training will
send gradients back to all three.
"""


# %% nbgrader={"grade": false, "grade_id": "batched_linear", "locked": false, "schema_version": 3, "solution": true, "task": false}
def batched_linear(
    x: Float[Tensor, "... d_in"], w: Float[Tensor, "d_in d_out"], b: Float[Tensor, "d_out"]
) -> Float[Tensor, "... d_out"]:
    """Each vector along the last dimension of x times w, plus b, in one product of matrices."""
    ### BEGIN SOLUTION
    return x @ w + b
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_batched_linear", "locked": true}
check("batched_linear")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Matrix multiplication in PyTorch already treats leading dimensions as a batch.</details>
<details><summary>Hint 2</summary>Broadcasting lines shapes up from the right. Where does a bias of shape [d_out] land?</details>

**Why it matters.** This is most of what a language model computes. In lecture 05 you count what it costs. And one product is no matter of taste:
"""

# %% tags=["timed"]
vectors, w, b = torch.randn(64, 16, 256), torch.randn(256, 256), torch.zeros(256)
together = timing.benchmark(
    lambda: batched_linear(vectors, w, b), device="cpu", min_seconds=0.1
)
apart = timing.benchmark(
    lambda: [batched_linear(vector, w, b) for vector in vectors.flatten(0, 1)],
    device="cpu",
    min_seconds=0.1,
)
print(
    f"1,024 vectors, one after the other, take {apart.median / together.median:.0f} times as long as all at once"
)

# %% [markdown]
r"""

*Try it yourself:* `torch.ones(2, 3, 5) @ torch.ones(4, 5, 7)` fails. What would the first dimension of either have to be?

## 7 · The result: GPT-3, byte by byte

GPT-3 has 96 layers and vectors of 12,288 numbers. Each layer has four matrices for attention, 12,288 × 12,288, and two for the feed-forward block, one 12,288 × 49,152 and one the other way
round. Then there is a table of 50,257 token embeddings and one of 2,048 positions. (The token table also serves as the output layer, so it counts once. Biases and normalizations add less than 0.01 %.)

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
        tensor_bytes(torch.empty(shape, device="meta"), torch.bfloat16) for shape in matrices
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
# Biases and normalizations are 13 vectors a layer, and 2 at the end:
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

Next: [02 · Dtypes](../02_dtypes/02_dtypes.ipynb), what the bits inside an element mean. Then **03 · Strides and views**, what lies between a shape and the memory.
"""

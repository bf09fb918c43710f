# %% [markdown]
r"""
# 01 · Tensors

[← 00 · Napkin math](../00_napkin_math/00_napkin_math.ipynb) &nbsp;|&nbsp; [02 · Dtypes →](../02_dtypes/02_dtypes.ipynb)

> **How many bytes is a model, where are they, and what does it cost to move them?**

Deep learning stores everything in tensors: parameters, gradients, optimizer state, activations, data. So the first
thing you need to know about a training run is how large its tensors are. In this lecture you'll write a function that
counts bytes, and use it to find how many 80 GB GPU cards the *weights* of GPT-3 need (the parameters in its matrices)
and which of its matrices take most of the space. You'll also see how long it takes to move all the weights.
"""

# %%
import itertools
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

A **tensor** is an array of numbers, all of the same type, with any number of dimensions. There are several ways to make
one, and they differ in what they put into the new tensor.
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
`torch.empty` reserves memory and writes nothing to it, so the tensor contains whatever was there before. That's useful
when you're about to fill it yourself, for instance with samples from a distribution that `randn` doesn't offer. A
common choice for weights is the *truncated* normal distribution, whose tails are cut off so that no weight starts out
huge. (The **standard deviation** of a distribution, `std`, says how far from the mean the numbers typically are. The
`std` that you pass describes the distribution before its tails are cut off.)
"""

# %% tags=["item-6"]
std = 0.02
weights = torch.empty(256, 256)  # whatever was in that memory
torch.nn.init.trunc_normal_(weights, mean=0.0, std=std, a=-3 * std, b=3 * std)

assert weights.abs().max() <= 3 * std

# %% [markdown]
r"""
> **Trap: where is it cut off?** You may see `trunc_normal_(w, std=std, a=-3, b=3)` described as "truncated at three
> standard deviations". It isn't: `a` and `b` are *values*, not multiples of `std`. With `std = 0.02` this truncates at
> ±150 standard deviations, which has no effect at all.

**Predict.** Suppose we make that mistake with 256 × 256 weights. How many of them end up more than 3 standard
deviations from zero? (A normal distribution has 99.73% of its samples within 3 standard deviations.)
"""

# %%
guess = None  # weights

# %%
not_cut = torch.nn.init.trunc_normal_(torch.empty(256, 256), std=std, a=-3, b=3)
beyond = (not_cut.abs() > 3 * std).sum().item()
reconcile("weights beyond 3 standard deviations", guess, beyond, f"of {not_cut.numel():,}")

assert 3 / std == 150  # the truncation, in standard deviations
share = math.erfc(3 / math.sqrt(2))  # of a normal distribution beyond 3 standard deviations
assert round(share, 4) == 0.0027 and round(share * 256 * 256) == 177
assert 100 < beyond < 260  # we expect 177

# %% [markdown]
r"""
*Try it yourself:* run `torch.empty(1000)` a few times, then `a = torch.ones(1000)`, `del a`, and `torch.empty(1000)`
again. Whose numbers do you see?

## 2 · Counting bytes

A tensor's **dtype** is the type of its elements. For floating-point numbers it's `float32` unless you choose another:
32 bits, or four bytes, for each element. (The next lecture explains what the bits mean.) A tensor's size in bytes is
therefore its number of elements times the size of one element:
"""

# %% tags=["item-7"]
x = torch.zeros(4, 8)

assert x.dtype == torch.float32
assert x.element_size() == 4  # bytes
assert x.numel() == 4 * 8  # elements
assert x.numel() * x.element_size() == 128  # bytes
assert x.dtype.itemsize == 4  # bytes: a dtype knows its size, too

# %% [markdown]
r"""
**Predict.** Each of GPT-3's 96 layers contains a **feed-forward block**, which multiplies each token's vector by one
matrix, applies a nonlinear function to each of the resulting numbers, and multiplies by a second matrix. One of the two is 49,152 × 12,288. How many bytes does that one matrix take in `float32`?
You can write `5e6` for five million.
"""

# %%
guess = None  # bytes

# %% tags=["item-8"]
# A tensor on the "meta" device has a shape and a dtype but no memory, so we can count what wouldn't fit.
rows, columns = (int(FACTS[f"GPT-3 {name}"].value) for name in ("feed forward width", "width"))
matrix = torch.empty(rows, columns, device="meta")
matrix_bytes = matrix.numel() * matrix.element_size()
reconcile("one feed-forward matrix of GPT-3", guess, matrix_bytes, "B")

assert matrix.shape == (49_152, 12_288) and matrix_bytes == 2_415_919_104
print(format_bytes(matrix_bytes))
assert round(matrix_bytes / 2**30, 2) == 2.25  # GiB: powers of two
assert round(matrix_bytes / 10**9, 2) == 2.42  # GB: powers of ten

# %% [markdown]
r"""
### Exercise 1.1 · How many bytes? &nbsp; ★☆☆ &nbsp; essential &nbsp; 5 minutes

Write `tensor_bytes(x, dtype)`. It returns how many bytes the elements of `x` take. If a `dtype` is given, return how
many they would take in that dtype, without making a tensor of that dtype, not even one on the "meta" device; by default
`dtype` is `None`, which means the dtype of `x`. The function must work for every dtype and shape, for an empty tensor,
and for a tensor on the "meta" device (which has a shape and a dtype but no data). For a *view* (a part of a larger
tensor, or one row repeated many times; lecture 03 has more on views), count the elements of the view itself, not all
the elements in the memory behind it.
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
<details><summary>Hint 2</summary>The two methods are in the cell under <i>Counting bytes</i>; multiply what they return. Where <code>dtype</code> is given, its size takes the place of <code>x.element_size()</code>.</details>

**Why it matters.** Every memory budget in this course, up to a 70-billion-parameter model on a thousand cards, is a sum
of such terms: a number of elements times the bytes per element. The dtype decides the second factor, so no size means
much without it. You may read, for instance, that the training data of LLaMA, Meta's 2023 model, takes 2.8 TB. That's
true if each of its 1.4 trillion tokens is stored as a 16-bit integer.
"""

# %% tags=["item-101"]
corpus = torch.empty(int(FACTS["LLaMA 65B tokens"].value), dtype=torch.uint16, device="meta")
for dtype in (torch.uint16, torch.int32, torch.int64):  # int64: PyTorch's default for integers
    print(f"LLaMA's tokens as {dtype}: {tensor_bytes(corpus, dtype) / 1e12:.1f} TB")

assert tensor_bytes(corpus) == 2.8e12
assert tensor_bytes(corpus, torch.int64) == 11.2e12

# %% [markdown]
r"""
> **Trap: GB or GiB?** GPT-3's matrix above takes 2.42 GB, or 2.25 GiB. Stanford's CS336
> ([2025](https://github.com/stanford-cs336/spring2025-lectures/blob/main/lecture_02.py)) says "2.3 GB". That number is
> 2,304 MiB (1 MiB is $2^{20}$ bytes) divided by 1,000, which gives neither GB nor GiB. (To get GiB, divide by 1,024.)
> Always write the unit, and check the order of magnitude as well. Suppose you read "2.3 GB" for a 2,048 × 8,192 matrix
> in `float32`. No mix-up of units explains that, since the matrix takes 64 MiB, less than 3% of 2.3 GB. The sizes that
> manufacturers advertise are only approximate, too: for an "80 GB" H100, the command `nvidia-smi` reports 81,559 MiB,
> which is 85.5 GB.
"""

# %% tags=["error-6", "error-24"]
assert matrix_bytes / 2**20 == 2_304
assert 2048 * 8192 * 4 == 64 * 2**20
reported = FACTS["H100 SXM memory, as nvidia-smi reports it"].value  # bytes
assert reported / 2**20 == 81_559 and round(reported / 1e9, 1) == 85.5
assert round(2**30 / 10**9, 2) == 1.07

# %% [markdown]
r"""
## 3 · Where tensors live

By default a tensor is stored in the CPU's memory, the *host memory*. A **GPU**, or graphics processing unit, is a chip
with thousands of small cores, grouped into *multiprocessors*; the card that carries it is called a GPU, too. A card
such as the H100 has its own
memory, the *device memory*, and PyTorch can compute on the card only with tensors that are stored there. (An Apple GPU
shares the CPU's memory, but PyTorch still copies tensors.) So tensors have to be copied to the card, and the path is
narrow: they travel over a link called *PCIe*, which is much slower than the GPU's own memory. The **bandwidth** of a
memory or of a connection is the number of bytes per second that it can move.
"""

# %% [markdown]
r"""
```mermaid
flowchart TD
  accTitle: The path from disk to a GPU's cores
  accDescr: Data passes from disk through the memory of the CPU and a narrow link to the memory of the GPU, which feeds its cores at terabytes a second.
  D[(disk)] --> R["CPU memory<br/>tens to hundreds of GB/s"]
  R -- "PCIe (generation 5, 16 lanes)<br/>≤ 64 GB/s each way" --> H["GPU memory<br/>H100 SXM: 80 GB"]
  H -- "3.35 TB/s" --> S["GPU cores"]
```
"""

# %% tags=["item-14", "item-15", "item-16"]
x = torch.zeros(32, 32)
assert x.device == torch.device("cpu")  # where tensors are made by default

if torch.cuda.is_available():
    for index in range(torch.cuda.device_count()):
        card = torch.cuda.get_device_properties(index)
        size = format_bytes(card.total_memory)
        print(
            f"cuda:{index}: {card.name}, {size}, {card.multi_processor_count} multiprocessors"
        )
else:
    print("no CUDA device here, so everything below runs on", device)

# %% [markdown]
r"""
There are two ways to get a tensor onto a device. `x.to(device)` copies an existing tensor if it's somewhere else.
`torch.zeros(…, device=device)` makes the tensor on the device in the first place, so nothing has to be copied. The next
cell moves `x`, and then measures the memory that two tensors take which are made on the device. The matrices `y` and
`z` below are 32 × 32, in `float32`, so together they take 2 · 32 · 32 · 4 = 8,192 bytes.

**Predict.** The cell makes `y` directly on the device. Then PyTorch evaluates `z = (y + moved) * 2` one operation at a
time (`moved` is `x.to(device)`). Count the bytes of `y` and of the tensors that this line makes, but not those of
`moved`: what's the most in use at any moment?
"""

# %%
guess = None  # bytes

# %% tags=["item-17", "item-18"]
moved = x.to(device)  # now where it is needed
y = z = None  # so that running this cell again starts from nothing
with memory.track(device) as used:
    y = torch.zeros(32, 32, device=device)  # made where it is needed
    z = (y + moved) * 2  # y + moved is a matrix too, and is freed once it has been doubled
reconcile("the most bytes in use", guess, used.peak, "B")

assert moved.device.type == y.device.type == device.type
assert used.live == 2 * (32 * 32 * 4) == 8_192  # y and z
assert used.peak == 3 * (32 * 32 * 4)  # and the intermediate result y + moved
print(f"in use at the end: {used.live:,} B; at the peak, with y + moved: {used.peak:,} B")

# %% [markdown]
r"""
The cell above measured the memory with `memory.track`: `used.live` is the memory still in use at the end, and
`used.peak` is the most in use at any moment. In later lectures it's the peak that decides whether a model fits.

On a GPU, `torch.cuda.memory_allocated()` also reports how much memory tensors take, but its numbers can be larger than
those above: PyTorch's *allocator*, the code that hands out GPU memory, rounds each tensor up to a multiple of 512
bytes. Even a tensor with a single element costs 512 bytes there. (The sizes of our matrices are multiples of 512
already.) `memory.track` counts only the bytes that were asked for.
"""

# %%
if device.type == "cuda":
    small = None  # so that running this cell again starts from nothing
    before = torch.cuda.memory_allocated(device)
    small = torch.zeros(1, device=device)
    assert torch.cuda.memory_allocated(device) - before == 512

# %% [markdown]
r"""
`.to` copies only if it must. If the tensor already has the device and the dtype that you ask for (`.to` takes either or
both), it returns *the same tensor*. That's convenient, but it's also a trap: you may overwrite the original when you
thought you had a copy.
"""

# %%
same = x.to("cpu")
short = x.to(torch.bfloat16)  # two bytes per element

assert same is x
assert short is not x and not memory.same_storage(short, x)

# %% [markdown]
r"""
### Exercise 1.2 · What does `.to` copy? &nbsp; ★★☆ &nbsp; essential &nbsp; 10 minutes

Write `bytes_copied(x, device, dtype)`. It returns how many bytes of *new* memory `x.to(device, dtype)` fills: zero if
`.to` returns `x` itself; otherwise enough for every element of `x`, since the copy stores each one separately even
where `x` is a view that repeats a row. Don't fill any memory to find out: `device` may be one that this machine doesn't
have. Like `x.device`, the argument `device` includes the card's index (`cuda:0`). If `device` is `meta`, you may assume
that `x` is on it already and that its dtype is `dtype`.
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
<details><summary>Hint 1</summary>There is one case in which nothing is copied. Which two properties of x must already be as requested?</details>
<details><summary>Hint 2</summary>A dtype knows its size in bytes: <code>torch.bfloat16.itemsize</code>.</details>

**Why it matters.** In a training loop, a needless `.to` in the wrong place can copy gigabytes at every step. And where
you expected a copy but got none, two parts of a program may write into the same memory.

Your function predicts the bytes, and the measurement agrees:
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

A copy's time has two parts. The **latency** is the fixed time before the first byte arrives, however small the copy is.
(On a CPU, that's mostly the time PyTorch needs to start an operation.) After that, the time grows in proportion to the
bytes:

$$\text{seconds} = \text{latency} + \text{bytes} / \text{bandwidth}$$

Let's measure it. If you have a GPU, we copy blocks from the CPU's memory to the GPU's, in sizes from 4 KiB (1 KiB is
$2^{10}$ bytes) up to 64 MiB. Otherwise we copy them from one place in the CPU's memory to another, in sizes from 64
bytes up to 1 MiB. Blocks that small stay in the CPU's cache. (A **cache** is a small, fast memory on the chip that
keeps copies of recently used data.)

**Predict.** The largest copy has 16,384 times as many bytes as the smallest. What's the ratio of their times? (For
copies to a GPU, assume a latency of 10 µs and $10^{10}$ B/s. That's less than the link can carry; the section *Cheaper
copies to a GPU* explains why. For copies within a CPU's cache, assume 0.5 µs and $3 \cdot 10^{10}$ B/s.)
"""

# %%
guess = None  # times as long

# %% tags=["timed"]
smallest = 12 if devices.on_gpu(device) else 6
copy_sizes = [2**p for p in range(smallest, smallest + 16, 2)]  # bytes
copy_seconds = []
threads = torch.get_num_threads()
torch.set_num_threads(1)  # with several threads, the copy waits for the slowest
for size in copy_sizes:
    origin = torch.randint(0, 255, (size,), dtype=torch.uint8)
    target = torch.zeros(size, dtype=torch.uint8, device=device)
    copy = timing.benchmark(lambda: target.copy_(origin), device=device, min_seconds=0.1)
    copy_seconds.append(copy.minimum)  # the fastest: the others were disturbed
    rate = readable(size / copy.minimum, "B/s")
    print(f"{readable(size, 'B'):>8} in {readable(copy.minimum, 's'):>8}: {rate}")
torch.set_num_threads(threads)
reconcile(
    "the largest copy",
    guess,
    copy_seconds[-1] / copy_seconds[0],
    "times as long as the smallest",
)

# %% [markdown]
r"""
Small copies reach only a fraction of the bandwidth that large ones do, because most of their time is latency. That's
why a good program copies tensors in a few large pieces. (A CPU has several caches, and the larger ones are slower, so
the rate may fall again for the largest copies. If other programs are running, individual rows may be far off; if so,
run the cell again.)

### Exercise 1.3 · Latency and bandwidth &nbsp; ★★★ &nbsp; 25 minutes

Write `copy_cost(sizes, seconds)`. A copy of `sizes[i]` bytes took `seconds[i]` seconds. Find the straight line
$\text{seconds} = \text{latency} + \text{bytes} / \text{bandwidth}$ that fits these measurements best, and return its
`(latency, bandwidth)`, in seconds and in bytes per second. The largest copies may take thousands of times as long as
the smallest. In ordinary least squares they alone would determine the line, and the latency would be lost in their
noise. So measure each copy's error *relative* to its own time, and minimize the sum of the squares of

$$\frac{\text{latency} + \text{sizes}[i] / \text{bandwidth} - \text{seconds}[i]}{\text{seconds}[i]} .$$

The sizes are in any order, and the largest is at least a thousandth larger than the smallest; all times are positive,
and the fitted line rises. The fitted latency may be negative. Compute in float64, and don't change either list.
"""


# %% nbgrader={"grade": false, "grade_id": "copy_cost", "locked": false, "schema_version": 3, "solution": true, "task": false}
def copy_cost(sizes: list[int], seconds: list[float]) -> tuple[float, float]:
    """Fit seconds = latency + bytes / bandwidth by minimizing the sum of the squared relative errors.

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
<details><summary>Hint 1</summary>It's a straight line y = a + b·x through points: a is the latency, and b is one over the bandwidth.</details>
<details><summary>Hint 2</summary>Ordinary least squares subtracts the mean from every x and every y. The best slope is the sum of the products of the x and y differences, divided by the sum of the squared x differences, and the line passes through the point (mean of x, mean of y). Here you give every copy a weight in each of these sums and in both means. Which weight turns a squared error into a squared relative error? (<code>torch.linalg.lstsq</code> can do it too, if you divide each equation by its own seconds.)</details>

**Why it matters.** The same two numbers describe a disk, a network and a GPU's memory. Lecture 05 combines the
bandwidth with a processor's peak, in FLOP/s, into the *roofline model*, which shows whether memory or arithmetic limits
a program.
"""

# %% tags=["timed"]
# Your function, applied to the measurements above
# On a CPU we leave the largest copy out: it may not fit in a fast cache.
fitted = slice(None) if devices.on_gpu(device) else slice(7)
latency, bandwidth = copy_cost(copy_sizes[fitted], copy_seconds[fitted])
print(f"latency {readable(latency, 's')}, bandwidth {readable(bandwidth, 'B/s')}")

line = [latency + size / bandwidth for size in copy_sizes]
misses = [abs(says / took - 1) for says, took in zip(line, copy_seconds, strict=True)][fitted]
but = "" if devices.on_gpu(device) else " (all but the largest)"
print(f"the line misses the copies it was fitted to{but} by at most {max(misses):.0%}")
times = copy_sizes[-1] // copy_sizes[0], copy_seconds[-1] / copy_seconds[0]
finding = timing.conclusion(
    f"{times[0]:,} times the bytes take {times[1]:,.0f} times as long",
    {
        "a larger copy takes longer": all(  # up to noise: small ones may take equally long
            larger > 0.7 * smaller for smaller, larger in itertools.pairwise(copy_seconds)
        ),
        "the fitted line lies above 0": min(line) > 0,
    },
)
drawn = {"copies": line} if min(line) > 0 else {}
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
The filled markers are measurements, the hollow ones are on your line (and left out if it falls below 0). On a GPU one
line should fit all sizes. On a CPU the largest copy may take longer than the line predicts: it may fit only in a slower
cache, and that cache has a bandwidth of its own. A fit gives you the best line, but only the picture tells you whether
a line is the right model.

*Try it yourself:* on a CPU, set `smallest` to 12 in the cell that times the copies, so that the largest copies don't
fit in most CPUs' caches. Does one line still fit?

### Cheaper copies to a GPU

Besides copying in large pieces, two techniques make copies to a GPU cheaper:

- **Pinned memory** is host memory that the operating system promises not to move. The system may move any other host
  memory, so the CPU first copies from there into a pinned buffer, which costs time. From pinned memory, the GPU fetches
  the data directly.
- An **asynchronous** operation returns immediately and finishes in the background. From pinned memory,
  `x.to(device, non_blocking=True)` is asynchronous: Python doesn't wait, and the copy can run while the GPU computes
  something else (if the two are in different streams, which we'll get to right after the next cell).
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
    print("no GPU: there is nothing to pin memory for")

# %% [markdown]
r"""
A *stream* is a queue of work for the GPU. Within one stream the GPU does the work in order, but it can work on several
streams at the same time. The next cell puts the copies of four batches into one stream and four multiplications into
another, and it records when the GPU starts and finishes each of them. In the picture (which you'll see only if you have
a GPU), time runs from left to right, and where one bar is above another, both pieces of work ran at the same time:
"""

# %% tags=["timed"]
if device.type == "cuda":
    copies, products = torch.cuda.Stream(), torch.cuda.Stream()
    batch, place = pinned[: 2**24], target[: 2**24]
    factor = torch.randn(8_192, 8_192, device=device, dtype=torch.bfloat16)
    out = torch.empty_like(factor)
    for _ in range(2):  # the first round is a warm-up
        timeline = timing.Timeline()
        for i in range(4):
            timeline.run(
                "copies", f"batch {i}", copies, lambda: place.copy_(batch, non_blocking=True)
            )
            timeline.run(
                "products", f"step {i}", products, lambda: torch.mm(factor, factor, out=out)
            )
        spans = timeline.spans()
    copying = sum(span.end - span.start for span in spans if span.stream == "copies")
    hidden = timing.overlap(spans, "copies", "products")
    finding = f"{readable(hidden, 's')} of {readable(copying, 's')} of copying is hidden behind computation"
    plots.show(
        plots.timeline(spans, title=finding),
        alt=f"Which of two streams worked when. {finding}.",
    )
    assert hidden > 0
else:
    print("no GPU: there are no streams to watch")

# %% [markdown]
r"""
> **Trap: reading too early.** After a `non_blocking` copy *to the CPU*, Python goes on before the numbers have arrived.
> Before you read them, call `torch.cuda.synchronize()`, which waits until the GPU has finished.

## 4 · Elementwise operations

You now know how much memory tensors take and what it costs to move them. Now let's compute with them. A **Transformer**
is the usual kind of language model, a stack of layers that all have the same form. In this section and the next two,
you'll write three of its parts: a normalization, a mask, and a linear layer.

An **elementwise** operation acts on each element alone, or on the corresponding elements of two tensors of the same
shape. Each operation below makes a new tensor.
"""

# %% tags=["item-31"]
x = torch.tensor([1.0, 4, 9])

assert torch.equal(x.pow(2), torch.tensor([1.0, 16, 81]))
assert torch.equal(x.sqrt(), torch.tensor([1.0, 2, 3]))
assert torch.allclose(x.rsqrt(), torch.tensor([1, 1 / 2, 1 / 3]))  # 1 / sqrt in one operation
assert torch.equal(x + x, torch.tensor([2.0, 8, 18]))
assert torch.equal(x * 2, torch.tensor([2.0, 8, 18]))
assert torch.equal(x / 0.5, torch.tensor([2.0, 8, 18]))

# %% [markdown]
r"""
If the shapes differ, PyTorch uses **broadcasting**: it aligns the two shapes from the right, treats a missing dimension
as one of size 1, and repeats every dimension of size 1 as often as needed, without copying it. If two sizes still
differ, it's an error. It's convenient, but it makes one kind of mistake silent: if you sum over a dimension of a square
matrix and it disappears, the result is aligned with the wrong dimension.
"""

# %%
x = torch.tensor([[1.0, 2], [3, 4]])
kept = x.sum(dim=1, keepdim=True)  # [2, 1]: the row sums as a column
lost = x.sum(dim=1)  # [2]: the row sums as a row

# Each row adds up to 1:
assert torch.equal(x / kept, torch.tensor([[1 / 3, 2 / 3], [3 / 7, 4 / 7]]))
# No error, but a meaningless result:
assert torch.equal(x / lost, torch.tensor([[1 / 3, 2 / 7], [3 / 3, 4 / 7]]))

# %% [markdown]
r"""
### Exercise 1.4 · Root mean square normalization &nbsp; ★★☆ &nbsp; 10 minutes

Many language models, Llama among them, normalize their intermediate vectors by the *root mean square*: they divide each
vector along the last dimension by $\sqrt{\tfrac{1}{d}\sum_i x_i^2 + \varepsilon}$, where $d$ is the length of the last
dimension. The small $\varepsilon$ under the root keeps a vector of zeros from becoming NaN (*not a number*, the result
of 0 / 0; lecture 02 says more).

Write `rms_normalize(x, eps)`. In front of the last dimension `x` may have any number of *leading* dimensions, including
none, and each may have any size, including 0. By default `eps` is 1e-6. Don't change `x`. The result has the dtype of
`x`, whether you compute in that dtype or in float32. Training will send gradients back through it, so compute it with
PyTorch's operations only. You may assume that a vector's squares and their sum are never too large for the dtype of
`x`, and that `eps` isn't too small for it. PyTorch already has this function (`rms_norm`); here you write your own.
(`Float[Tensor, "... d"]` is a type annotation for the reader: it stands for a tensor of floats whose last dimension is
called d, with any leading dimensions.)
"""


# %% nbgrader={"grade": false, "grade_id": "rms_normalize", "locked": false, "schema_version": 3, "solution": true, "task": false}
def rms_normalize(x: Float[Tensor, "... d"], eps: float = 1e-6) -> Float[Tensor, "... d"]:
    """Divide each vector along the last dimension by the square root of (the mean of its squares, plus eps)."""
    ### BEGIN SOLUTION
    return x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + eps)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_rms_normalize", "locked": true}
check("rms_normalize")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Square, mean over the last dimension, add eps, square root, divide: five steps, each an elementwise operation or a mean.</details>
<details><summary>Hint 2</summary>The mean must keep its dimension (<code>keepdim=True</code>), or it's aligned with the wrong one. For a square matrix nothing warns you.</details>

**Why it matters.** Llama normalizes this way twice in every layer (Touvron and others, 2023, arXiv:2302.13971), and
you'll meet its layers in lecture 06. There the function you just wrote, multiplied by a learned scale, is called
*RMSNorm*.

How much does the result still tell you about the vector's original magnitude? Nothing, as long as the mean of its
squares is large compared with $\varepsilon$:
"""

# %%
x = torch.randn(3, 4_096)
loud, quiet = rms_normalize(1_000 * x), rms_normalize(x / 1_000)

assert torch.allclose(loud.square().mean(dim=-1), torch.ones(3), rtol=1e-4)
assert torch.allclose(loud, rms_normalize(x), rtol=1e-4)
# Here the mean of the squares is about 1e-6, the same as eps, so the result's mean square is only about a half.
assert torch.allclose(quiet.square().mean(dim=-1), torch.tensor(0.5), rtol=0.1)

# %% [markdown]
r"""
*Try it yourself:* find by trial how large the numbers in a float32 vector must be before adding $\varepsilon$ no longer
changes their mean square at all. (Lecture 02 explains the limit.)

## 5 · Triangles and the causal mask

`triu` returns a copy of a matrix that keeps only the upper triangle, and `tril` returns one that keeps only the lower;
all other entries are zero. `diagonal=k` moves the boundary $k$ places to the right, or to the left if $k$ is negative.
Both also take Boolean matrices.
"""

# %% tags=["item-32"]
x = torch.ones(3, 3)

assert torch.equal(x.triu(), torch.tensor([[1.0, 1, 1], [0, 1, 1], [0, 0, 1]]))
assert torch.equal(x.tril(), torch.tensor([[1.0, 0, 0], [1, 1, 0], [1, 1, 1]]))
assert torch.equal(x.triu(diagonal=1), torch.tensor([[0.0, 1, 1], [0, 0, 1], [0, 0, 0]]))

# %% [markdown]
r"""
Why would you need a triangle? Remember that a language model learns to predict the next token at each position.
Position $q$ has to predict token $q + 1$ from tokens 0 to $q$, and it mustn't see any later ones, or it would simply
copy the answer. A **causal mask** is a matrix that says which positions each position may see: its entry `[query, key]`
is true if the *query* (the position that predicts) may see the *key* (the position that is read), that is, if
$\text{key} \le \text{query}$. (Lecture 04 explains these two names and uses the mask in attention.)

> **Trap: the wrong triangle.** You may see `triu` introduced as "how to make a causal mask". With one row per query,
> `triu` gives you the transpose of a causal mask: the first position sees the whole text, and the last sees only
> itself. A model trained that way reaches a wonderfully low *loss* (the error that training minimizes) and is useless,
> because it copies the answer from the future. (`triu` is right for a matrix laid out as `[key, query]`, and
> `triu(diagonal=1)` is right for marking what is *forbidden*.)

To see the leak, let each position take the average of the positions that it sees through the *wrong* triangle. These
are the weights of the average, a row for each position:
"""

# %% tags=["error-12"]
visible = torch.ones(4, 4).triu()  # one row for each query
leaky = visible / visible.sum(dim=1, keepdim=True)  # how much each key counts in the average
print(leaky)

# A quarter of what the first position reads is the last token, which lies in its future:
assert leaky[0, 3] == 0.25

# %% [markdown]
r"""
### Exercise 1.5 · The causal mask, and a window &nbsp; ★★☆ &nbsp; essential &nbsp; 10 minutes

Write `causal_mask(t, window)`. It returns a Boolean matrix of shape `[t, t]` in which entry `[query, key]` is `True` if
that query may see that key. A query may see itself and everything before it. Some models, such as Gemma 2
(arXiv:2408.00118), let some of their layers look back only a limited distance. If a `window` is given, a query sees
only the last `window` keys up to and including its own (or all of them, if there are fewer). By default `window` is
`None`, and there is no such limit. Each call makes a new matrix. Both numbers are at least 1, and the window may be
wider than the text.
"""


# %% nbgrader={"grade": false, "grade_id": "causal_mask", "locked": false, "schema_version": 3, "solution": true, "task": false}
def causal_mask(t: int, window: int | None = None) -> Bool[Tensor, "query key"]:
    """True where a query may see a key: itself and the keys before it, at most `window` keys in all."""
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
<details><summary>Hint 1</summary>Start with a matrix in which every query may see every key.</details>
<details><summary>Hint 2</summary>The keys that a query may see lie between two diagonals. Which ones? Try it with a window of 1, where each position sees only itself.</details>
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

**Why it matters.** With this mask, a model can learn to predict the next token at every position in a single pass. In a
long text nearly half of the mask's entries, those above the diagonal, are False, and a good program computes nothing
for them.

The next cell computes the weights with your mask and then prints the fraction of True entries for longer texts:
"""

# %%
visible = causal_mask(4)
honest = visible / visible.sum(dim=1, keepdim=True)

assert torch.equal(honest[0], torch.tensor([1.0, 0, 0, 0]))  # only itself
assert torch.equal(honest[3], torch.tensor([0.25, 0.25, 0.25, 0.25]))

for t in (256, 1_024, 4_096):
    needed, near = causal_mask(t).sum().item(), causal_mask(t, window=256).sum().item()
    assert needed == t * (t + 1) // 2 and near == 256 * t - 256 * 255 // 2
    print(
        f"{t:5,} tokens: {needed / t**2:4.0%} of the entries; with a window of 256, {near / t**2:.0%}"
    )

# %% [markdown]
r"""
Without a window the fraction stays near a half, so the number of entries grows with the square of the length; with a
window, each further token adds only 256.

## 6 · Matrix multiplication

Most of the compute in deep learning goes into one operation. `x @ w` multiplies `[B, D]` by `[D, K]` and gives
`[B, K]`. If there are more dimensions, the last two form the matrices, and the others are *batch* dimensions: there is
a separate product for each combination of their indices, and PyTorch computes all of them at once. The batch dimensions
of the two factors are broadcast, so `w` may have none: then every product uses the same `w`. In a language model, `x`
typically has the shape `[batch, tokens, D]`: one matrix for each sequence, with one row for each token.

The first cell below multiplies just two matrices. In the second, to show two batch dimensions, we give `x` a whole
matrix for each *token* instead of a row, so both `batch` and `tokens` are batch dimensions.
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
### Exercise 1.6 · A linear layer for any batch &nbsp; ★☆☆ &nbsp; 5 minutes

Write `batched_linear(x, w, b)`: multiply each vector along the last dimension of `x` by `w` and add `b`, the *bias*.
There may be any number of leading dimensions, including none, and each may have any size, including 0. Don't use a
loop, and don't sum up elementwise products by hand: make it *one* matrix product for the whole batch, such as a single
`@`. Since every product uses the same `w`, PyTorch can compute them as one, which is what a GPU is fast at. Don't
change the arguments. They all have the same dtype, and so does the result. Training will send gradients back to all
three.
"""


# %% nbgrader={"grade": false, "grade_id": "batched_linear", "locked": false, "schema_version": 3, "solution": true, "task": false}
def batched_linear(
    x: Float[Tensor, "... d_in"], w: Float[Tensor, "d_in d_out"], b: Float[Tensor, "d_out"]
) -> Float[Tensor, "... d_out"]:
    """Multiply each vector along the last dimension of x by w and add b, in one matrix product."""
    ### BEGIN SOLUTION
    return x @ w + b
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_batched_linear", "locked": true}
check("batched_linear")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Matrix multiplication in PyTorch already treats leading dimensions as a batch.</details>
<details><summary>Hint 2</summary>Broadcasting aligns shapes from the right. Where does the vector <code>b</code> (called the <i>bias</i>), of shape [d_out], end up?</details>

**Why it matters.** Language models spend most of their time in this operation; lecture 05 counts its FLOPs. And it
matters that you compute it as one product:
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
    f"one at a time, 1,024 vectors take {apart.median / together.median:.0f} times as long as all at once"
)

# %% [markdown]
r"""
*Try it yourself:* `torch.ones(2, 3, 5) @ torch.ones(4, 5, 7)` fails. Which pairs of first dimensions would work?

## 7 · GPT-3, byte by byte

GPT-3 has 96 layers and works with vectors of 12,288 numbers. Each layer has four 12,288 × 12,288 matrices for
*attention* (the part in which positions read from each other, lecture 04) and two for the feed-forward block, one
12,288 × 49,152 and one 49,152 × 12,288. In addition there is a table with a vector for each of 50,257 tokens, the
*token embedding*, and one with a vector for each of 2,048 positions, the *positional embedding*. (GPT-3 uses the token
embedding a second time, as its output layer: the last matrix, which scores every possible next token. We count it once.
Biases and normalizations add less than 0.01%.)

**Predict.** How many 80 GB cards do you need just to *hold* these weights, at two bytes each?
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
    print(f"{kind:>13}: {format_bytes(size):<20} {size / total:6.1%}")
print(f"{'in all':>13}: {format_bytes(total)}")
cards = math.ceil(total / 80e9)
reconcile("80 GB cards to hold GPT-3's weights in bfloat16", guess, cards, "cards")

assert round(total / 2 / 1e9, 1) == 174.6  # billion parameters
# A layer's biases have 9 d numbers (3 d + d, 4 d + d) and its two norms 4 d; the last norm has 2 d:
assert 2 * (13 * d * layers + 2 * d) < 0.0001 * total
assert cards == 5 and total > 4 * 80e9
assert 0.66 < ledger["feed-forward"] / total < 0.67  # two thirds of the model

# %% tags=["timed"]
plots.show(
    plots.memory_bar(
        ledger,
        capacity=80e9,
        capacity_label="80 GB card",
        title="GPT-3 in bfloat16 fills more than four cards; two thirds of it is feed-forward",
    ),
    alt="A bar of 349 GB of weights, two thirds of it feed-forward and one third attention, "
    "reaches into the fifth of five 80 GB cards.",
)

large = torch.ones(2**26, dtype=torch.uint8)  # more than most caches hold
target = torch.empty_like(large, device=device)
copy = timing.benchmark(lambda: target.copy_(large), device=device, min_seconds=0.1)
rates = {  # B/s
    "a large copy on your machine": large.numel() / copy.minimum,
    "PCIe 5 ×16": 64e9,
    "an H100's own memory": FACTS["H100 SXM bandwidth"].value,
}
assert round(total / 1e9) == 349 and total > 4 * 80e9
assert [round(total / rate, 1) for rate in list(rates.values())[1:]] == [5.5, 0.1]
for way, rate in rates.items():
    print(
        f"moving all of it at {readable(rate, 'B/s')} ({way}) takes {readable(total / rate, 's')}"
    )

# %% [markdown]
r"""
So here's the answer to the opening question, for GPT-3. At two bytes each, its weights take 349 GB, so you need five 80
GB cards, and two thirds of the weights are in the feed-forward blocks. Sending all of them over one PCIe link takes at
least 5.5 seconds (64 GB/s is its limit). Reading as many bytes from an H100's own memory into its cores takes a tenth
of a second.

## Takeaways

**Mechanics.** A tensor takes `numel × element_size` bytes. It's made on the CPU unless you pass `device=`; `.to` copies
only if the device or the dtype differs. A copy costs its latency plus its bytes divided by the bandwidth.
`keepdim=True` keeps the dimension that a sum or a mean reduces, so that broadcasting aligns the result correctly.
`tril` makes the causal mask if the rows are queries and the columns keys. `@` multiplies the matrices in the last two
dimensions and treats any others as a batch.

**Mindset.** Before you make a tensor, say what its shape, dtype, size in bytes and device will be. Write these
predictions down, and let the machine check them with `assert`.

**Intuitions.** One matrix of a large model can take gigabytes. GPT-3's weights alone need several cards, before you
store any gradients or activations, and about two thirds of those weights are in its feed-forward blocks. A few large
copies are faster than many small ones.

Next: [02 · Dtypes](../02_dtypes/02_dtypes.ipynb). What do the bits inside an element mean?
"""

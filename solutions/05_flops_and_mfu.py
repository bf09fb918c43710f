# %% [markdown]
r"""
# 05 · FLOPs and MFU

[← 04 · Einops](../04_einops/04_einops.ipynb) · [06 · Gradients and 6N
→](../06_gradients_and_6n/06_gradients_and_6n.ipynb)

> **How fast could this be, and how fast is it?**

So far we have mostly counted bytes. In this lecture we count work. You'll learn to calculate how much arithmetic a
model needs, to find out how much your machine can do in a second, and to measure how much of that you actually get. At
the end you'll have two pictures of *your* machine: how fast it multiplies matrices of different sizes, and its
roofline, with your predictions beside your measurements.

Everything is measured on your machine, so your numbers will differ from other people's. If you can, close other
programs first.
"""

# %%
import itertools
import math
import statistics
import time
from collections.abc import Callable

import torch
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor, nn

from course_utils import device as devices
from course_utils import hardware, plots, timing
from course_utils.facts import FACTS
from course_utils.flops import count_flops
from course_utils.predict import reconcile, record
from course_utils.progress import show_progress
from course_utils.units import readable
from course_utils.testing import check

device = devices.pick_device()
print(devices.describe(device))
show_progress()

# %% [markdown]
r"""
## 1 · Counting work

A FLOP is one addition or one multiplication of two floating point numbers (lecture 00). Remember that the same letters
stand for two quantities:

- *FLOPs* is a count: how much work there is. It's a property of the mathematics.
- *FLOP/s* is a rate: how fast a machine works. It's a property of the hardware, and of how well you use it.

A count divided by a rate is a time in seconds. In lecture 00 you saw how large these counts get: GPT-3's training took
33 times the FLOPs that eight H100s could do in two weeks at their peak.
"""

# %% tags=["item-43", "item-44"]
h100 = (
    FACTS["H100 SXM sparse peak, as printed"].value / 2
)  # FLOP/s; section 4 explains the half
two_weeks = 14 * 24 * 3600  # seconds
budget = 8 * h100 * two_weeks  # rate · time = count
gpt3 = FACTS["GPT-3 training FLOPs"].value
print(f"{readable(budget, 'FLOPs')} in two weeks, {readable(gpt3, 'FLOPs')} for GPT-3")

assert round(gpt3 / budget) == 33

# %% [markdown]
r"""
### The matrix multiplication

At ordinary context lengths, nearly all the work of a language model is in one operation. A **linear layer** multiplies
$B$ vectors of $D$ numbers (one vector per token) by a matrix of weights, which gives $B$ vectors of $K$ numbers: `[B,
D] @ [D, K] → [B, K]`. Here it is in the simplest possible form, with every operation counted:
"""


# %%
def multiply_and_count(x: Tensor, w: Tensor) -> tuple[Tensor, int]:
    """x @ w, one number at a time, and the FLOPs it took."""
    (b, d), (_, k) = x.shape, w.shape
    y, work = torch.zeros(b, k), 0
    for row in range(b):
        for column in range(k):
            for i in range(d):
                y[row, column] += x[row, i] * w[i, column]
                work += 2  # one multiplication, one addition
    return y, work


x, w = torch.randn(3, 4), torch.randn(4, 5)
y, work = multiply_and_count(x, w)

assert torch.allclose(y, x @ w, atol=1e-5)
assert work == 2 * 3 * 4 * 5

# %% [markdown]
r"""
Each of the $B \cdot K$ outputs takes $D$ multiplications, and $D$ numbers are added to a sum that starts at zero. In
total,

$$\text{FLOPs} = 2 \cdot B \cdot D \cdot K .$$

(One could save the first addition of each sum. Nobody counts that way, and hardware doesn't work that way: it
multiplies and adds in one step, a **fused multiply-add**.)

> **Trap: MACs.** Several popular counters report *multiply-accumulates* (MACs) and call them FLOPs. One MAC
> is two FLOPs. If two sources differ by exactly a factor of two, suspect this first.

**Predict.** The next cell multiplies two matrices. On a CUDA GPU $B$, $D$, $K$ = 16384, 32768, 8192; on an Apple GPU,
or one with less than 12 GB, 2048, 4096, 4096; otherwise 512, 1024, 2048. How many FLOPs is that on your machine?
"""

# %%
guess = None  # FLOPs

# %% tags=["item-51", "item-52"]
torch.set_float32_matmul_precision("highest")  # no tf32, which section 4 explains
lecture_sizes = (16_384, 32_768, 8_192)
if device.type == "cuda" and (devices.total_memory(device) or 0) >= 12e9:
    B, D, K = lecture_sizes
else:
    B, D, K = (2_048, 4_096, 4_096) if devices.on_gpu(device) else (512, 1_024, 2_048)
x_large = torch.randn(B, D, device=device)
w_large = torch.randn(D, K, device=device)

linear_flops = 2 * B * D * K
reconcile("x_large @ w_large", guess, linear_flops, "FLOPs")

assert linear_flops == count_flops(lambda: x_large @ w_large)  # PyTorch's own counter agrees
assert 2 * math.prod(lecture_sizes) == 8_796_093_022_208  # CUDA's: 8.8 TFLOPs
assert 2 * 512 * 1_024 * 2_048 == 2_147_483_648  # the CPU's: 2.1 GFLOPs

# %% [markdown]
r"""
At one operation per second, the largest of these would take you almost 279,000 years. At its bfloat16 peak, an H100
would need nine thousandths of a second.

*Elementwise* operations hardly count beside this. Adding two $m \times n$ matrices takes $m \cdot n$ FLOPs, one per
element, and so does a ReLU or a bias, up to a small constant. A matrix multiplication takes $2D$ per element of its
result, and $D$ is in the thousands. That's why people count the matrix multiplications and ignore the rest, as
PyTorch's counter does.
"""

# %% tags=["item-53"]
year = 365.25 * 24 * 3600
assert round(2 * math.prod(lecture_sizes) / year, -3) == 279_000
assert round(2 * math.prod(lecture_sizes) / h100, 3) == 0.009

m, n = B, K
addition = m * n  # FLOPs of one bias added, or of one ReLU
assert linear_flops / addition == 2 * D
assert count_flops(lambda: torch.relu(x_large[:1] + 1)) == 0  # the counter ignores these
print(f"an elementwise operation on the output: {addition / linear_flops:.3%} of the work")

# %% [markdown]
r"""
A small share of the *work* can still be a large share of the *time*. Section 6 explains why.

*Try it yourself:* halve `D` in a call of `multiply_and_count`. Then halve all three sizes. What happens to the count?

### Exercise 5.1 · FLOPs of a multiplication &nbsp; ★★☆ &nbsp; 10 minutes

Write `matmul_flops(x_shape, w_shape)`. It returns the FLOPs of `x @ w`, computed from the two shapes alone. The last
two dimensions of each are the matrices. All dimensions before them are *batch* dimensions: there's one product for each
combination of them, and they broadcast as usual in PyTorch: they're aligned from the right, and a dimension that is 1
or missing on one side is repeated. Both shapes have at least two dimensions. If the inner sizes differ, raise a
`ValueError`.
"""


# %% nbgrader={"grade": false, "grade_id": "matmul_flops", "locked": false, "schema_version": 3, "solution": true, "task": false}
def matmul_flops(x_shape: tuple[int, ...], w_shape: tuple[int, ...]) -> int:
    """FLOPs of x @ w, for shapes [..., b, d] and [..., d, k] whose leading dimensions broadcast."""
    ### BEGIN SOLUTION
    *x_batch, b, d = x_shape
    *w_batch, inner, k = w_shape
    if d != inner:
        raise ValueError(
            f"cannot multiply {tuple(x_shape)} by {tuple(w_shape)}: {d} is not {inner}"
        )
    batch = math.prod(torch.broadcast_shapes(tuple(x_batch), tuple(w_batch)))
    return 2 * batch * b * d * k
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_matmul_flops", "locked": true}
check("matmul_flops")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>How many numbers does the product have, leading dimensions included? What does each of them cost?</details>
<details><summary>Hint 2</summary><code>*batch, b, d = x_shape</code> takes a shape apart, and <code>torch.broadcast_shapes</code> says what two batches broadcast to.</details>

**Why it matters.** A training run of $10^{25}$ FLOPs is mostly a sum of values of this function.

## 2 · Two FLOPs per parameter and token

Look at $2 \cdot B \cdot D \cdot K$ again. $B$ is the number of tokens, and $D \cdot K$ is the number of weights. So a
linear layer costs

$$\text{forward FLOPs} = 2 \cdot \text{tokens} \cdot \text{parameters},$$

because each weight takes part in one multiplication and one addition for every token. If you stack layers, both sides
add up, so the rule holds for the whole stack, whatever its shape.
"""

# %% tags=["item-54"]
widths = [256, 1_024, 1_024, 512, 10]
stack = nn.Sequential(*(nn.Linear(a, b, bias=False) for a, b in itertools.pairwise(widths)))
tokens = 32
parameters = sum(p.numel() for p in stack.parameters())
batch = torch.randn(tokens, widths[0])

assert count_flops(stack, batch) == 2 * tokens * parameters
print(
    f"{parameters:,} parameters, {tokens} tokens: {readable(2 * tokens * parameters, 'FLOPs')}"
)
# GPT-3, for every token: 350 GFLOPs
assert 2 * FACTS["GPT-3 parameters"].value == 350e9

# %% [markdown]
r"""
This is the most useful rule in the course: from 175 billion parameters you get 350 GFLOPs per token without looking at
the architecture. But it has two exceptions.

> **Trap: not every parameter multiplies.** The table of token embeddings is *looked up*: a row is copied, and nothing
> is computed. GPT-3's table has 0.6 billion parameters and costs no FLOPs on the way in. (The output layer, which turns
> the last vectors into scores for each token of the vocabulary, *is* a multiplication, even if it uses the same table.)

> **Trap: not every multiplication has parameters.** In attention (lecture 04), each of the $T$ tokens is compared
> with every other. With vectors of $d$ numbers, each layer computes $T \times T$ scores of $d$ products (over all heads
> together), and the weighted sum takes the same again. That's $4 T^2 d$ FLOPs without a
> single parameter, and it grows with the *square* of the context length $T$.

How much is that, compared with the weights? A Transformer layer of width $d$ has about $12 d^2$ of them: $4 d^2$ in
attention and $8 d^2$ in the feed-forward block.
"""

# %% tags=["error-17"]
vocabulary, width = (int(FACTS[f"GPT-3 {name}"].value) for name in ("vocabulary", "width"))
with torch.device("meta"):  # shapes without memory
    table = nn.Embedding(vocabulary, width)
    ids = torch.zeros(1, 2_048, dtype=torch.int64)
    T, d, heads = 4_096, 4_096, 32
    q, k, v = (torch.empty(1, heads, T, d // heads) for _ in range(3))

assert count_flops(table, ids) == 0 and round(table.weight.numel() / 1e9, 1) == 0.6
attention = nn.functional.scaled_dot_product_attention
assert count_flops(attention, q, k, v) == 4 * T**2 * d
assert (
    count_flops(attention, q, k, v, is_causal=True) == 4 * T**2 * d
)  # a convention, see below

d_model = 4_096
for context in (2_048, 24_576, 131_072):
    by_rule = 2 * context * 12 * d_model**2
    in_attention = 4 * context**2 * d_model
    print(
        f"context {context:>7,}: attention adds {in_attention / by_rule:6.1%} to 2 · tokens · parameters"
    )
    assert math.isclose(in_attention / by_rule, context / (6 * d_model))

assert 6 * d_model == 24_576 and round(131_072 / 24_576, 1) == 5.3

# %% [markdown]
r"""
Attention adds $T / 6d$ of what the weights cost. For a width of 4,096 that's little at a context of 2,048; at 24,576 it
equals the cost of the weights, and at 131,072 it's 5.3 times as much. (A causal implementation may skip the future and
save up to half. PaLM's MFU and PyTorch's counter count in full; the FlashAttention papers count half. Say which you
use.)

*Try it yourself:* make the model twice as wide. At which context length does attention now cost as much as the weights?

### Exercise 5.2 · FLOPs of a model &nbsp; ★★★ &nbsp; 20 minutes

Write `model_flops(model, batch)`. It returns the FLOPs that the `nn.Linear` layers do when `model(batch)` runs. The
layers may be nested in other modules, at any depth. A layer that's used twice counts twice; one that isn't used counts
nothing. Count each layer for the vectors that it *actually receives*: there may be any number of leading dimensions, or
none, and they may differ from layer to layer. Biases and everything that isn't an `nn.Linear` count nothing. Leave the
model as you found it: with its hooks and no others, in its modes, its parameters unchanged. (If running it updates
buffers, such as the statistics of a BatchNorm, they may stay updated.) You may rely on `model(batch)` raising no error,
and on every layer being called as `layer(x)`.

How do you find out when a layer runs? With a *forward hook*: PyTorch calls it after each use of a
module, with the module, the tuple of its inputs, and its output.
"""

# %%
layer = nn.Linear(8, 3)
handle = layer.register_forward_hook(
    lambda module, inputs, output: print(
        f"hook: {tuple(inputs[0].shape)} → {tuple(output.shape)}"
    )
)
layer(torch.zeros(2, 5, 8))
handle.remove()  # from here on, nothing is printed
layer(torch.zeros(2, 5, 8))

assert not layer._forward_hooks


# %% nbgrader={"grade": false, "grade_id": "model_flops", "locked": false, "schema_version": 3, "solution": true, "task": false}
def model_flops(model: nn.Module, batch: Tensor) -> int:
    """FLOPs of all uses of nn.Linear in model(batch): 2 · vectors · in_features · out_features each."""
    ### BEGIN SOLUTION
    counts = []

    def count(layer: nn.Linear, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        counts.append(2 * inputs[0].numel() * layer.out_features)

    layers = [module for module in model.modules() if isinstance(module, nn.Linear)]
    handles = [layer.register_forward_hook(count) for layer in layers]
    model(batch)
    for handle in handles:
        handle.remove()
    return sum(counts)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_model_flops", "locked": true}
check("model_flops")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Register a hook on every linear layer, run the model once, remove the hooks. <code>model.modules()</code> walks through the whole tree, the model itself included, and names each module once.</details>
<details><summary>Hint 2</summary>An input of shape [..., in_features] holds numel / in_features vectors. So one use is 2 · numel · out_features. The hook can append that to a list.</details>

**Why it matters.** You can now count the linear layers of a model that somebody else wrote, without a formula. Tools
such as thop and torchinfo work like this. PyTorch's own counter is called for each *operation*, so it also sees
multiplications that belong to no layer, as in attention.

## 3 · Timing properly

Speed is work divided by time, so now we need the time. That should take two readings of a clock, but there are several
ways to get it wrong.

The first is that a GPU is asynchronous (lecture 01). A **kernel** is a program that runs on a GPU, such as a matrix
multiplication. A call from Python only puts a kernel into a queue and returns; the GPU works through the queue on its
own. Only operations that need the results (`print`, `.item()`, an ordinary copy to the CPU) wait for it.
"""

# %% [markdown]
r"""
```mermaid
sequenceDiagram
  accTitle: Python and a GPU
  accDescr: Python queues a matrix multiplication and gets control back after microseconds while the GPU computes for milliseconds; only synchronize waits until it is done.
  participant P as Python
  participant G as GPU
  P->>G: x @ w (queued)
  G-->>P: returns after microseconds
  Note over G: computes for milliseconds
  P->>G: synchronize()
  G-->>P: done
```
"""

# %% [markdown]
r"""
So that you can see this without a GPU, here's a simulated one with a simulated clock. Queueing a call takes 10 µs.
Computing takes 2 ms, and one second more for the very first call: real GPUs compile and load kernels, allocate memory
and raise their clock speed.
"""


# %%
class SimulatedGPU:
    """A simulated GPU with a queue and a clock of its own. All times in seconds."""

    def __init__(self) -> None:
        self.now = 0.0  # Python's time
        self.free_at = 0.0  # when the queue will be empty
        self.calls = 0

    def multiply(self) -> None:
        self.now += 10e-6
        self.calls += 1
        duration = 2e-3 + (1.0 if self.calls == 1 else 0.0)
        self.free_at = max(self.now, self.free_at) + duration

    def synchronize(self) -> None:
        self.now = max(self.now, self.free_at)

    def clock(self) -> float:
        return self.now


# %% [markdown]
r"""
**Predict.** You read its clock, call `multiply`, and read the clock again. How many seconds have passed on it?
"""

# %%
guess = None  # s

# %% tags=["item-55", "error-15"]
gpu = SimulatedGPU()
start = gpu.clock()
gpu.multiply()
naive = gpu.clock() - start
reconcile("the clock around one call", guess, naive, "s")
assert math.isclose(naive, 10e-6)  # only the time to queue it: 200 times too short

gpu.synchronize()
first_call = gpu.clock() - start
assert math.isclose(first_call, 10e-6 + 2e-3 + 1.0)  # correct, but it happens only once

start = gpu.clock()
gpu.multiply()
gpu.synchronize()
assert math.isclose(gpu.clock() - start, 10e-6 + 2e-3)  # this is the one we want

# %% [markdown]
r"""
This gives us the recipe. First the **warm-up**: run the operation a few times without timing it. *Synchronize*, which
means wait for the device, before you read the clock, each time: before the start, so that work queued earlier doesn't
count, and before the end, so that yours is finished. *Repeat*, and look at more than one number. Now for real, on your
device:
"""

# %% tags=["timed"]
n = 4_096 if devices.on_gpu(device) else 384
noise_1, noise_2 = (torch.randn(n, n, device=device) for _ in range(2))
out = torch.empty_like(noise_1)


def time_calls(calls: int) -> list[float]:
    """Seconds of each call of the same multiplication."""
    samples = []
    for _ in range(calls):
        devices.synchronize(device)
        start = time.perf_counter()
        torch.mm(noise_1, noise_2, out=out)
        devices.synchronize(device)
        samples.append(time.perf_counter() - start)
    return samples


def middle_spread(samples: list[float]) -> float:
    """The 80th percentile divided by the 20th: how far apart the middle samples are."""
    low, *_, high = statistics.quantiles(samples, n=5)
    return high / low


samples = time_calls(200)
warm = samples[10:]
numbers = {
    "mean": statistics.mean(warm),
    "median": statistics.median(warm),
    "fastest": min(warm),
}
print(f"first call {readable(samples[0], 's')}, slowest later on {readable(max(warm), 's')}")
print(", ".join(f"{name} {readable(seconds, 's')}" for name, seconds in numbers.items()))

# %% tags=["timed"]
fig = Figure(figsize=(8.9, 3.4), layout="constrained")
axes = fig.add_subplot(xlabel="call", ylabel="time, relative to the fastest", yscale="log")
axes.plot(
    [s / min(samples) for s in samples], "o", color=plots.MEASURED, markersize=4, label="a call"
)
# The mean comes last, in thick dashes, since it may coincide with the median.
for name, style, width in (("median", "-", 1.2), ("fastest", ":", 1.5), ("mean", "--", 2.2)):
    level = numbers[name] / min(samples)
    axes.axhline(level, color=plots.INK, linestyle=style, linewidth=width, label=name)
axes.minorticks_off()
axes.set_yticks([1, 2, 5, 10, 20, 50], ["× 1", "× 2", "× 5", "× 10", "× 20", "× 50"])
axes.set_ylim(0.9, max(3, 1.5 * max(samples) / min(samples)))
axes.spines[["top", "right"]].set_visible(False)
fig.legend(loc="outside lower center", frameon=False, ncols=4)
factor = max(samples) / min(samples)
finding = f"Of 200 identical calls, the slowest took {factor:.1f} times as long as the fastest"
axes.set_title(finding, loc="left", fontweight="bold")
plots.show(fig, alt=f"{finding}; each call is a dot, with lines at mean, median and fastest.")

# %% [markdown]
r"""
It's the same multiplication, but it never takes the same time. Disturbances (the operating system, other programs, a
clock that slows down) can only make it slower. So the distribution has a long tail on one side. Which number should you
report?

- The **median** is the sample in the middle: half of the samples are faster. It's what you'll usually get, and one bad
  sample doesn't change it.
- The *fastest* is the best estimate of what the machine *can* do, because it was disturbed least.
- The *mean* depends on every disturbance.
- The *spread* tells you whether to believe any of them. If it's large, find out why and measure again.

On a CPU a large spread often has this cause: the work is divided among threads, one for each core, and it's done when
the *last* of them is done. If another program occupies a single core, all others wait. So leave one core free for the
rest of the machine. This notebook does so from here on.
"""

# %% tags=["timed"]
if device.type == "cpu":
    threads = max(1, torch.get_num_threads() - 1)
    print(
        f"threads: {torch.get_num_threads()}, spread of the middle 60%: × {middle_spread(warm):.2f}"
    )
    torch.set_num_threads(threads)
    print(
        f"threads: {threads}, spread of the middle 60%: × {middle_spread(time_calls(200)[10:]):.2f}"
    )
else:
    print(f"spread of the middle 60%: × {middle_spread(warm):.2f}")

assert middle_spread([float(i) for i in range(1, 100)]) == 80 / 20  # of the samples 1 to 99

# %% [markdown]
r"""
Two more things change the result. The first is *what you time*. `x + 1` has to allocate memory for its result;
`torch.add(x, 1, out=y)` uses memory that exists already.

**Predict.** For a tensor of 64 MB, how many times as long does `x + 1` take as the version with `out=`?
"""

# %%
guess = None  # times

# %% tags=["timed"]
big = torch.randn(16_000_000, device=device)  # 64 MB
target = torch.empty_like(big)
fresh = timing.benchmark(lambda: big + 1, device=device)
reused = timing.benchmark(lambda: torch.add(big, 1, out=target), device=device)
print(f"x + 1: {fresh}\nout=:  {reused}")
reconcile(
    "fresh memory compared with reused memory", guess, fresh.median / reused.median, "times"
)

assert big.nbytes == 64_000_000

# %% [markdown]
r"""
On a CPU, the operating system provides large blocks of memory; it has to find and clear each page when it's first
touched, which can take longer than the addition. On a GPU, PyTorch keeps memory for reuse, and the two should take
about the same time. You may measure either, but say which.

> **Trap: benchmarks with zeros.** The second is *the data*. A GPU multiplies matrices of zeros or ones faster than
> random numbers: fewer bits flip, so the chip draws less power and can run at a higher clock. (See Horace He,
> "Strangely, Matrix Multiplications on GPUs Run Faster When Given *Predictable* Data".) Use random numbers.
"""

# %% tags=["timed"]
left = torch.randn(n, n, device=device)
for name, right in {"random": torch.randn_like(left), "zeros": torch.zeros_like(left)}.items():
    taken = timing.benchmark(
        lambda: torch.mm(left, right, out=out), device=device, min_seconds=0.3
    )
    print(f"{name:>6}: {taken}")

# %% [markdown]
r"""
(On a CPU you'll hardly see a difference.)

*Try it yourself:* remove both synchronizations in the loop over 200 calls. What do you get on a GPU? Why does nothing
change on a CPU?

### Exercise 5.3 · A benchmark &nbsp; ★★☆ &nbsp; 15 minutes

Write `benchmark(f, synchronize, clock, warmup, repeats)`: call `f()` `warmup` times without timing, then time `repeats`
further calls, each separately, and return the median number of seconds of one call: from when it's made until the
device is done with it. Work that was queued before must not count, no matter who queued it. `synchronize()` waits until
the device is done; `clock()` returns seconds. `warmup` may be 0; `repeats` is at least 1 and may be even. Use no other
clock: the tests use a simulated device with a clock of its own.
"""


# %% nbgrader={"grade": false, "grade_id": "benchmark", "locked": false, "schema_version": 3, "solution": true, "task": false}
def benchmark(
    f: Callable[[], object],
    synchronize: Callable[[], None],
    clock: Callable[[], float],
    warmup: int = 2,
    repeats: int = 7,
) -> float:
    """Median seconds of one call of f, on a device that may still be busy when f returns."""
    ### BEGIN SOLUTION
    for _ in range(warmup):
        f()
    samples = []
    for _ in range(repeats):
        synchronize()
        start = clock()
        f()
        synchronize()
        samples.append(clock() - start)
    return statistics.median(samples)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_benchmark", "locked": true}
check("benchmark")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>The order for each sample: wait, read, call, wait, read.</details>
<details><summary>Hint 2</summary>Keep the samples in a list; <code>statistics.median</code> takes it. For an even number of samples it averages the two in the middle.</details>

**Why it matters.** If you forget to `synchronize`, your code seems a hundred times as fast, or more. You'll now notice
it in other people's numbers.
"""


# %% tags=["timed"]
def wait() -> None:
    devices.synchronize(device)


linear_seconds = benchmark(lambda: x_large @ w_large, wait, time.perf_counter)  # yours
again = timing.benchmark(
    lambda: x_large @ w_large, device=device, min_samples=5
)  # the course's
print(
    f"x_large @ w_large, your benchmark: {readable(linear_seconds, 's')}; course_utils.timing: {again}"
)
print(
    f"{readable(linear_flops, 'FLOPs')} in that time: {readable(linear_flops / linear_seconds, 'FLOP/s')}"
)

assert linear_seconds > 0

# %% [markdown]
r"""
`course_utils.timing.benchmark` does the same with refinements: it groups calls that are too short for the clock, and
on CUDA it lets the GPU itself record the time (*events*). In your own projects use `torch.utils.benchmark.Timer` (which
runs on *one* CPU thread unless you tell it otherwise) or, on GPUs, `triton.testing.do_bench`.

## 4 · What the hardware promises

Data sheets state a peak in FLOP/s. It's calculated, not measured: units × operations per clock cycle × cycles per
second. An A100 has 108 *multiprocessors*, the GPU's equivalent of cores. Each contains **tensor cores**, units that
only multiply small matrices. Per cycle they do 1,024 fused multiply-adds of 16-bit numbers in each multiprocessor,
while the ordinary units do 64 of 32-bit numbers. The clock runs at 1.41 GHz, and a fused multiply-add is 2 FLOPs.
"""

# %% tags=["item-48"]
a100 = hardware.ACCELERATORS["A100 SXM 80GB"]
assert a100.peak[torch.bfloat16] == 312e12  # FLOP/s
assert a100.peak[torch.float32] == 19.5e12

by_hand = {torch.bfloat16: 108 * 1_024 * 2 * 1.41e9, torch.float32: 108 * 64 * 2 * 1.41e9}
for dtype, rate in by_hand.items():
    assert math.isclose(rate, a100.peak[dtype], rel_tol=1e-3)
assert a100.peak[torch.bfloat16] / a100.peak[torch.float32] == 16

# %% [markdown]
r"""
It's sixteen times faster in bfloat16 than in float32. So a card doesn't have one peak; it has *one for each dtype*.
(`tf32` in the table below is a float32 multiplication that rounds its inputs to 10 bits of mantissa so that it can run
on the tensor cores. For matrix multiplications PyTorch uses it only if you ask:
`torch.set_float32_matmul_precision("high")`. For convolutions it's the default.)
"""

# %% tags=["item-56"]
kinds: list[torch.dtype | str] = [torch.float32, "tf32", torch.bfloat16, torch.float8_e4m3fn]
print(
    f"{'dense peak, TFLOP/s':<20}"
    + "".join(f"{str(c).removeprefix('torch.'):>15}" for c in kinds)
)
for name in (
    "V100 SXM2 32GB",
    "A100 SXM 80GB",
    "RTX 4090",
    "H100 PCIe",
    "H100 SXM",
    "H200",
    "B200",
):
    promised = [hardware.peak_flops(name, c) for c in kinds]
    print(
        f"{name:<20}"
        + "".join(f"{'–' if p is None else f'{p / 1e12:,.1f}':>15}" for p in promised)
    )

pcie, sxm = (hardware.peak_flops(f"H100 {kind}", torch.bfloat16) for kind in ("PCIe", "SXM"))
assert pcie is not None and sxm is not None
assert round(1 - pcie / sxm, 2) == 0.24  # with the same name
assert hardware.ACCELERATORS["H100 PCIe"].multiprocessors == 114
assert hardware.ACCELERATORS["H100 SXM"].multiprocessors == 132
assert (
    hardware.peak_flops("V100 SXM2 32GB", torch.bfloat16) is None
)  # its tensor cores support only fp16

# %% [markdown]
r"""
The two H100s differ by 24%, because the one for a PCIe slot has fewer multiprocessors than the SXM module (114
against 132) and a lower power limit.

There's also a factor of two in a footnote. For the H100 in bfloat16 NVIDIA prints 1,979 TFLOP/s *with sparsity*. For
dense matrices it promises half of that, 989. The float32 number has no footnote: 67 means 67.
"""

# %% tags=["item-49"]
h100_sxm = hardware.ACCELERATORS["H100 SXM"]
printed = FACTS["H100 SXM sparse peak, as printed"].value  # FLOP/s
assert math.isclose(h100_sxm.peak[torch.bfloat16], printed / 2, rel_tol=1e-3)
assert round(h100_sxm.peak[torch.bfloat16] / 1e12) == 989
assert h100_sxm.peak[torch.float32] == 67e12

# %% [markdown]
r"""
### 2:4 structured sparsity

**2:4 sparsity** means that at least two of every four neighboring weights in a row are zero. The hardware stores only
the other two values and, for each, two bits that say which position it had. The tensor core picks the two matching
inputs and does half of the multiplications, but the data sheet counts all of them. That's the factor of two.

Why doesn't ordinary training use it? Because its weights are dense: all of them are needed, and each step changes all
of them. If you force half of them to zero by a rule about neighbors, you get a different model. And the backward pass
multiplies by the *transposed* weights, whose groups of four run along the other dimension. The usual use is inference:
train densely, set weights to zero, train a little more to repair the damage, and then serve the model.

> **Trap: two different halves.** You may read that people halve the 1,979 because "in practice only 50% is reached".
> No: they halve it because their matrices are dense. What's lost in practice is lost in addition.

### Exercise 5.4 · Prune to 2:4 &nbsp; ★★☆ &nbsp; 10 minutes

Write `prune_2_4(w)`. It returns a copy of `w` in which, of every four neighbors along the last dimension (elements 0–3,
4–7, …), the two with the largest *magnitude* are kept and the other two are zero. `w` has any floating dtype of at
least 16 bits, and the result has the same dtype. It has any number of leading dimensions, or none, no dimension of size
0, and any strides; its numbers are finite. Don't change it. If the size of the last dimension isn't a multiple of four,
raise a `ValueError`. (If magnitudes are equal, keep whichever you like, but exactly two.)
"""


# %% nbgrader={"grade": false, "grade_id": "prune_2_4", "locked": false, "schema_version": 3, "solution": true, "task": false}
def prune_2_4(w: Float[Tensor, "... n"]) -> Float[Tensor, "... n"]:
    """w with the two smallest magnitudes of every four neighbors along the last dimension set to zero."""
    ### BEGIN SOLUTION
    n = w.shape[-1]
    if n % 4:
        raise ValueError(f"the last dimension must be a multiple of 4, got {n}")
    fours = w.reshape(-1, 4)
    smallest = fours.abs().topk(2, largest=False).indices
    return fours.scatter(1, smallest, 0).reshape(w.shape)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_prune_2_4", "locked": true}
check("prune_2_4")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Make the groups of four a dimension of their own: <code>w.reshape(-1, 4)</code>. Then find, in each row, where the two smallest magnitudes are.</details>
<details><summary>Hint 2</summary><code>topk</code> also returns the positions of the values that it finds, and it can find the smallest. <code>scatter</code> returns a copy with something else at given places. Reshape back.</details>
<details><summary>What it should look like</summary>

```
w            1  -9   2   3 │ 16  15  14 -13
prune_2_4    0  -9   0   3 │ 16  15   0   0
```

</details>

**Why it matters.** This is the difference between 1,979 and 989 on a data sheet. Now you know what you'd have to
do to your weights to get the larger number.

How much does pruning change? For random weights:
"""

# %%
torch.manual_seed(0)
weights, inputs = torch.randn(512, 512), torch.randn(64, 512)
sparse = prune_2_4(weights)
energy = (sparse**2).sum() / (weights**2).sum()
error = ((inputs @ sparse.T - inputs @ weights.T).norm() / (inputs @ weights.T).norm()).item()
print(
    f"the kept half of the weights has {energy:.0%} of the sum of squares; the outputs change by {error:.0%}"
)

assert (sparse == 0).float().mean() == 0.5
assert (2 * 16 + 2 * 2) / (4 * 16) == 0.5625  # of the dense bytes: two values, two positions
assert 0.86 < energy < 0.88 and 0.35 < error < 0.38

# %% [markdown]
r"""
### Your own machine

What does *your* device promise? If it's in the course's table, we know. If not, the honest answer is *unknown*.

> **Trap: made-up peaks.** Some programs use a peak of 1 for an unknown device, which makes every utilization
> $10^{12}$%, or they silently use the number of a similar card. "Unknown" is an answer that you can work with:
> measure the fastest multiplication that the device manages, and call it a *measured ceiling*. It tells you
> how far you are below what's possible here, though not how far below what was promised.
"""

# %% tags=["error-14", "timed"]
assert hardware.peak_flops("Abacus 9000", torch.float32) is None
assert hardware.peak_flops("cpu", torch.float32) is None
assert hardware.peak_flops("H100", torch.bfloat16) is None  # which of the three?

peaks: dict[torch.dtype, float | None] = {}
ceilings: dict[torch.dtype, float] = {}
for dtype in (torch.float32, torch.bfloat16):
    peaks[dtype] = hardware.peak_flops(device, dtype)
    ceilings[dtype] = hardware.measured_ceiling(device, dtype, max_seconds=1).flops_per_second
    print(f"{dtype}: {hardware.describe_peak(device, dtype)}")
    print(f"  measured ceiling: {readable(ceilings[dtype], 'FLOP/s')}")

# %% [markdown]
r"""
Some CPUs have instructions for bfloat16 and are faster with it than with float32; many have none and are much slower.
The numbers above show which kind yours is.

*Try it yourself:* look up the data sheet of a card you know. Is its largest number sparse or dense? For which dtype?

## 5 · MFU: how much of it you get

Lecture 00 defined MFU as a share of the peak. Here's the formula (Chowdhery and others, 2022, in the PaLM
paper):

$$\text{MFU} = \frac{\text{model FLOPs} \,/\, \text{seconds}}{\text{promised FLOP/s: dense, for the dtype in use, over all devices}} .$$

*Model* FLOPs are those that the mathematics of the model requires. If your program does extra work (lecture 11
computes activations twice to save memory), that work isn't counted: it takes time and does nothing for the model, so
the MFU goes down, as it should. (If you count it, you get *hardware* FLOPs utilization, HFU, which rewards waste.)

> **Trap: the MFU of one operation.** The utilization of a single matrix multiplication is often called MFU. It's
> useful, and we'll measure it, but MFU refers to a whole training step, and the utilization of its multiplications is
> in practice an upper bound for it.

What's a good value? Here's what professional teams reached:
"""

# %% tags=["item-57", "item-58", "error-16"]
# MosaicML's published run of a 7B model: 8 H100s, context 2,048, bfloat16, 85,144 tokens per second.
parameters, layers, width, context, throughput = (
    FACTS[f"MosaicML 7B {what}"].value
    for what in ("parameters", "layers", "width", "context", "throughput")
)
# FLOPs to train on one token, attention included; lecture 06 says why 6 and 12.
per_token = 6 * parameters + 12 * layers * width * context
achieved = per_token * throughput  # FLOP/s
mosaic = achieved / (FACTS["MosaicML 7B devices"].value * h100_sxm.peak[torch.bfloat16])
print(f"MosaicML 7B: {readable(achieved / 8, 'FLOP/s')} per H100, MFU {mosaic:.1%}")
assert round(mosaic, 3) == round(FACTS["MosaicML 7B MFU"].value, 3) == 0.464

rates = [FACTS[f"Llama 3.1 405B rate, {run}"].value for run in ("long context", "8,192 GPUs")]
llama = [rate / h100_sxm.peak[torch.bfloat16] for rate in rates]
print(f"Llama 3 405B reports 380 to 430 TFLOP/s per H100: MFU {llama[0]:.0%} to {llama[1]:.0%}")
assert [round(share, 2) for share in llama] == [0.38, 0.43]

fastest = [FACTS[f"{card} SXM fastest matmul"].value for card in ("A100", "H100")]
assert round(fastest[0] / a100.peak[torch.bfloat16], 2) == 0.87
assert round(fastest[1] / h100_sxm.peak[torch.bfloat16], 2) == 0.80

# %% [markdown]
r"""
As a rule of thumb, *an MFU of 0.5 or more is good*. The largest runs reach 0.4, and at 0.05 something is wrong.
Nothing reaches 1, not even a single multiplication: the best that Stas Bekman's *mamf-finder*
(github.com/stas00/ml-engineering) finds among many shapes is 271 TFLOP/s on an A100, 87%, and 794.5 on an H100,
80%. Chips slow down when they draw too much power, and data has to be fetched.

### Exercise 5.5 · Utilization from a data sheet &nbsp; ★☆☆ &nbsp; 10 minutes

Write `mfu(flops, seconds, sheet, dtype)`. `sheet` is a data sheet as printed: for each dtype a pair `(FLOP/s,
sparse)`, where `sparse` is `True` if the rate holds only for 2:4 sparse matrices. Ours are dense. Return
the utilization as a fraction (0.4, not 40), or `None` if the sheet has no rate for that dtype. Seconds and rates are
positive. Return a value above 1 as it is: it tells you that some number is wrong. Don't change the sheet.
"""


# %% nbgrader={"grade": false, "grade_id": "mfu", "locked": false, "schema_version": 3, "solution": true, "task": false}
def mfu(
    flops: float,
    seconds: float,
    sheet: dict[torch.dtype, tuple[float, bool]],
    dtype: torch.dtype,
) -> float | None:
    """Fraction of the promised dense FLOP/s for dtype; None if the sheet has no rate for it."""
    ### BEGIN SOLUTION
    if dtype not in sheet:
        return None
    rate, sparse = sheet[dtype]
    peak = rate / 2 if sparse else rate
    return flops / seconds / peak
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_mfu", "locked": true}
check("mfu")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Three steps: look the rate up for the dtype (or return None), make it dense, divide.</details>
<details><summary>Hint 2</summary>The achieved rate is flops / seconds. The dense peak is half of the printed rate if that is sparse.</details>

**Why it matters.** It's only one line, but there are three ways to get it wrong: the sparse rate, the rate of another
dtype, and a made-up default.

Now let's apply it to the linear layer of section 1. If your device's peak is unknown, we use the measured
ceiling instead, and say so.

**Predict.** What percentage of the peak, or of the measured ceiling, does `x_large @ w_large` reach in float32?
"""

# %%
guess = None  # %


# %% tags=["timed"]
def utilization(work: float, seconds: float, dtype: torch.dtype) -> tuple[float, str]:
    """The share of the peak if this device's peak is known, otherwise of its measured ceiling."""
    peak = peaks[dtype]
    sheet = (
        {} if peak is None else {dtype: (peak, False)}
    )  # the course's table is dense already
    share = mfu(work, seconds, sheet, dtype)
    if share is None:
        return work / seconds / ceilings[dtype], "of the measured ceiling (peak unknown)"
    return share, "of the promised peak"


share, of_what = utilization(linear_flops, linear_seconds, torch.float32)
reconcile(f"float32, share {of_what}", guess, 100 * share, "%")

# %% [markdown]
r"""
Now in bfloat16. The FLOPs don't depend on the dtype, but the time and the peak do. (If
bfloat16 is slow on your device, the cell uses a sixteenth of the rows and counts accordingly.)
"""

# %% tags=["item-59", "timed"]
slow = (
    linear_flops / ceilings[torch.bfloat16] > 0.5
)  # seconds: a device without bfloat16 arithmetic
rows = B // 16 if slow else B
x16, w16 = x_large[:rows].to(torch.bfloat16), w_large.to(torch.bfloat16)
work16 = matmul_flops(x16.shape, w16.shape)
assert work16 == count_flops(lambda: x16 @ w16) == linear_flops * rows // B

seconds16 = benchmark(lambda: x16 @ w16, wait, time.perf_counter, repeats=5)
share16, of_what = utilization(work16, seconds16, torch.bfloat16)
rate, rate16 = linear_flops / linear_seconds, work16 / seconds16
print(f"float32:  {readable(rate, 'FLOP/s'):>13}, {share:.0%} {of_what}")
print(f"bfloat16: {readable(rate16, 'FLOP/s'):>13}, {share16:.0%} {of_what}")
print(f"bfloat16 is {rate16 / rate:.2f} times as fast as float32")
if peaks[torch.bfloat16]:
    record("x_large @ w_large in bfloat16", share16, "MFU")

# %% [markdown]
r"""
Compare the two lines. On a GPU bfloat16 is faster, but its *utilization* is often lower, because the
peak grew more than the speed. Time is what you pay for; utilization tells you how much you could still gain.

So much for single multiplications. Here's the forward pass of a whole model, measured with
your `model_flops` and your `benchmark`:
"""

# %%
del x_large, w_large, x16, w16  # gigabytes on a GPU, no longer needed

# %% tags=["timed"]
width, vectors = (4_096, 8_192) if devices.on_gpu(device) else (512, 1_024)
block = nn.Sequential(
    nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
)
model = nn.Sequential(block, nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width)))
model.to(device)
tokens_in = torch.randn(vectors, width, device=device)

with torch.no_grad():
    work = model_flops(model, tokens_in)
    model_seconds = benchmark(lambda: model(tokens_in), wait, time.perf_counter)
model_share, of_what = utilization(work, model_seconds, torch.float32)
print(
    f"model: {readable(work, 'FLOPs')} in {readable(model_seconds, 's')}, {model_share:.0%} {of_what}"
)

assert work == 2 * vectors * (4 + 4 + 1) * width**2

# %% [markdown]
r"""
The two norms and the GELU (lecture 07 explains both) do almost no FLOPs. How much time do they take? Here's the GELU
alone, on the numbers that it gets in the model:
"""

# %% tags=["timed"]
norm, widen, gelu, _ = block
with torch.no_grad():
    hidden = widen(norm(tokens_in))
    gelu_seconds = timing.benchmark(lambda: gelu(hidden), device=device).median
print(
    f"GELU: {hidden.numel() / work:.3%} of the work, {gelu_seconds / model_seconds:.1%} of the time"
)

assert hidden.shape == (vectors, 4 * width)
assert math.isclose(hidden.numel() / work, 2 / (9 * width))  # one FLOP per element

# %% [markdown]
r"""
Its share of the time is much larger than its share of the work. Section 6 explains why. First, another question: how
large must a multiplication be to be efficient?

### From tiny to large

The next cell multiplies two $n \times n$ matrices in both dtypes, for increasing $n$, and takes the fastest sample of
each. If one of them beats the measured ceiling of section 4, we raise the ceiling.

**Predict.** The smallest matrices are 32 × 32 on a CPU and 256 × 256 on a GPU. What percentage of the peak (or ceiling)
do they reach in float32?
"""

# %%
guess = None  # %

# %% tags=["timed"]
candidates = (256, 512, 1_024, 2_048, 4_096, 8_192, 16_384)
if not devices.on_gpu(device):
    candidates = (32, 64, 128, 256, 512, 1_024, 2_048)
widths_tried: list[int] = []
speeds: dict[torch.dtype, list[float]] = {torch.float32: [], torch.bfloat16: []}  # FLOP/s
for n in candidates:
    widths_tried.append(n)
    slowest = 0.0
    for kind in speeds:
        left, right = (torch.randn(n, n, device=device, dtype=kind) for _ in range(2))
        out = torch.empty_like(left)
        taken = timing.benchmark(
            lambda: torch.mm(left, right, out=out),
            device=device,
            warmup_seconds=0.05,
            min_samples=3,
        )
        speeds[kind].append(matmul_flops(left.shape, right.shape) / taken.minimum)
        slowest = max(slowest, taken.minimum)
    if slowest > 0.1:  # the next size would take eight times as long
        break

for kind, values in speeds.items():
    ceilings[kind] = max(ceilings[kind], *values)

smallest = speeds[torch.float32][0] / (peaks[torch.float32] or ceilings[torch.float32])
reconcile(f"float32 at n = {widths_tried[0]}", guess, 100 * smallest, "%")

# %% tags=["timed"]
findings = []
for kind, values in speeds.items():
    top, of_what = peaks[kind] or ceilings[kind], "peak" if peaks[kind] else "measured ceiling"
    reached = [
        f"{n:,}: {value / top:.0%}" for n, value in zip(widths_tried, values, strict=True)
    ]
    print(f"{kind}, share of the {of_what} at n = {', '.join(reached)}")
    findings.append(
        f"{kind} from {values[0] / top:.0%} to {max(values) / top:.0%} of its {of_what}"
    )

finding = f"Size decides: {', '.join(findings)}".replace("torch.", "")
figure = plots.mfu_curve(
    widths_tried,
    {str(kind).removeprefix("torch."): values for kind, values in speeds.items()},
    {str(kind).removeprefix("torch."): peaks[kind] for kind in speeds},
    title=finding,
)
plots.show(
    figure, alt=f"The speed of n × n multiplications against n, a curve per dtype. {finding}."
)

# %% [markdown]
r"""
Small multiplications waste a machine: each takes a few microseconds to start, and there isn't enough work for all
cores. A model of many small layers has a low MFU for this reason alone. (On CPUs the
curve often falls again at the right end, when the matrices no longer fit in the caches or the chip gets hot.)

And why do large ones stay below 100%? On a GPU we can show one reason, *power*. The promised peak assumes a certain
clock, and a chip at its power limit lowers its clock. Multiplying by zeros takes less power (section 3). So the gap
between zeros and random numbers is the cost of power; the gap that remains even with zeros is the kernel's own
overhead.
"""

# %% tags=["timed"]
if devices.on_gpu(device):
    n = widths_tried[speeds[torch.bfloat16].index(max(speeds[torch.bfloat16]))]
    left = torch.randn(n, n, device=device, dtype=torch.bfloat16)
    out = torch.empty_like(left)
    for name, right in {
        "random numbers": torch.randn_like(left),
        "zeros": torch.zeros_like(left),
    }.items():
        taken = timing.benchmark(
            lambda: torch.mm(left, right, out=out), device=device, min_seconds=1.0
        )
        share, of_what = utilization(
            matmul_flops(left.shape, right.shape), taken.median, left.dtype
        )
        print(f"bfloat16, n = {n:,}, {name}: {share:.0%} {of_what}")
        if peaks[left.dtype]:
            record(f"bfloat16 matmul, {name}", share, "MFU")
else:
    print("no GPU: on a CPU the data makes little difference")

# %% [markdown]
r"""
*Try it yourself:* sizes that aren't powers of two, such as 1,000 or 1,023. Do they cost you anything?

## 6 · The roofline

A processor computes, and it moves data from memory to where it computes. The two overlap, so the *slower one decides*.
Which one that is depends on one property of the work. The **arithmetic intensity** of an operation is the number of
FLOPs it does per byte it moves.

$$\text{intensity} = \frac{\text{FLOPs}}{\text{bytes moved}} \qquad\qquad \text{FLOP/s} \le \min(\text{peak},\; \text{intensity} \cdot \text{bandwidth})$$

The **roofline** of a machine is this minimum drawn against the intensity: a slope, where memory is the limit, and a
flat part, where arithmetic is (Williams, Waterman and Patterson, 2009). Operations under the slope are
**memory-bound**; operations under the flat part are **compute-bound**. The two parts meet at the **ridge point**, where
the intensity equals peak / bandwidth.

Take the addition of two float32 tensors. For each element it reads 4 + 4 bytes, writes 4, and does one FLOP, so its
intensity is 1/12 FLOP per byte. An H100's ridge point is at 20 FLOP per byte in float32, and at 295 in bfloat16.
"""

# %%
ridge = h100_sxm.peak[torch.bfloat16] / h100_sxm.bandwidth
print(f"ridge point of an H100 in bfloat16: {ridge:.0f} FLOP/B")
assert round(ridge) == 295
assert h100_sxm.peak[torch.float32] / h100_sxm.bandwidth == 20

add_intensity = 1 / (3 * torch.float32.itemsize)
assert add_intensity == 1 / 12
attainable = min(h100_sxm.peak[torch.float32], add_intensity * h100_sxm.bandwidth)
print(f"the best addition on an H100: {readable(attainable, 'FLOP/s')}")
assert (
    round(attainable / 1e9) == 279
    and round(attainable / h100_sxm.peak[torch.float32], 4) == 0.0042
)

# %% [markdown]
r"""
The best possible addition runs at 279 GFLOP/s, 0.4% of the peak, and *nothing is wrong with it*: no program that adds
numbers from memory could be faster. That's the use of a roofline. It tells you whether "slow" can be improved.

It also explains section 5: norms and GELU do about one FLOP for each number they fetch, so they run at the
speed of memory or below.

A multiplication `[B, D] @ [D, K]` has to move each matrix at least once: read `x` and `w`, write `y`. Each number that
was fetched can then be used many times: an element of `x` in $K$ products, an element of `w` in $B$.

### Exercise 5.6 · Intensity, and what limits &nbsp; ★★☆ &nbsp; 10 minutes

Write two functions. `arithmetic_intensity(b, d, k, bytes_per_element)` returns the FLOPs per byte of a multiplication
`[b, d] @ [d, k]` in which each of the three matrices is moved once. `bound(intensity, peak, bandwidth)` returns
`"memory"` if moving the data takes longer than computing, and `"compute"` otherwise; `peak` is in FLOP/s and
`bandwidth` in B/s. All numbers are positive.
"""


# %% nbgrader={"grade": false, "grade_id": "arithmetic_intensity", "locked": false, "schema_version": 3, "solution": true, "task": false}
def arithmetic_intensity(b: int, d: int, k: int, bytes_per_element: int) -> float:
    """FLOP per byte of [b, d] @ [d, k] when x and w are read once and y is written once."""
    ### BEGIN SOLUTION
    moved = bytes_per_element * (b * d + d * k + b * k)
    return 2 * b * d * k / moved
    ### END SOLUTION


def bound(intensity: float, peak: float, bandwidth: float) -> str:
    """ "memory" if moving the data takes longer than computing, otherwise "compute"."""
    ### BEGIN SOLUTION
    return "memory" if intensity * bandwidth < peak else "compute"
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_arithmetic_intensity", "locked": true}
check("arithmetic_intensity")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Three matrices are moved, with b·d, d·k and b·k elements. The work is 2·b·d·k.</details>
<details><summary>Hint 2</summary>One FLOP takes 1 / peak seconds. The 1 / intensity bytes that belong to it take 1 / (intensity · bandwidth).</details>

**Why it matters.** Before you optimize, find out which of the two is the limit. If the operation waits for
memory, neither a faster chip nor fewer FLOPs will help.

For square matrices the formula gives $n/3$ in 2-byte numbers (and $n/6$ in float32), so
multiplications get *more efficient* as they get larger. And for a batch of $B$ tokens and a large weight matrix it's
nearly $B$ itself, as long as $B$ is small compared with $D$ and $K$:
"""

# %%
assert arithmetic_intensity(3_000, 3_000, 3_000, 2) == 1_000  # n / 3
assert arithmetic_intensity(3_000, 3_000, 3_000, 4) == 500  # n / 6

width = int(FACTS["GPT-3 width"].value)
hidden_width = int(FACTS["GPT-3 feed forward width"].value)
for tokens in (1, 64, 295, 4_096):
    intensity = arithmetic_intensity(tokens, width, hidden_width, 2)
    limit = bound(intensity, h100_sxm.peak[torch.bfloat16], h100_sxm.bandwidth)
    print(f"tokens at once {tokens:>5}: {intensity:7.1f} FLOP/B, limited by {limit}")

h100_roof = (h100_sxm.peak[torch.bfloat16], h100_sxm.bandwidth)
assert 0.999 < arithmetic_intensity(1, width, hidden_width, 2) < 1
assert bound(arithmetic_intensity(295, width, hidden_width, 2), *h100_roof) == "memory"
assert bound(arithmetic_intensity(4_096, width, hidden_width, 2), *h100_roof) == "compute"

# %% [markdown]
r"""
This explains much of how language models are trained and served. In training, thousands of tokens pass through the
weights at once, and arithmetic is the limit. When a model *generates* text, it produces one token at a time: 1 FLOP per
byte, three hundred times below the ridge point. The GPU spends its time fetching weights. That's why servers combine
many users' requests into one batch.

*Try it yourself:* how many tokens at once would you need on an A100, or on a B200? (`hardware.ACCELERATORS` has their
bandwidths.)

## 7 · Your machine's roofline

We'll test the roofline with four operations, from the lowest intensity to the highest: an addition, a matrix times a
vector, a small multiplication, and a large one. First come the predictions, from your functions and two properties of
the machine, its peak and its bandwidth. (A byte that's copied is read once and written once, so it counts twice.)

**Predict.** How many times as many FLOP/s does the large multiplication reach as the addition?
"""

# %%
guess = None  # times

# %% tags=["timed"]
dtype = torch.bfloat16 if devices.on_gpu(device) else torch.float32
size = dtype.itemsize
bandwidth = hardware.measured_bandwidth(device)  # B/s
roof = peaks[dtype] or ceilings[dtype]  # FLOP/s
print(f"bandwidth {readable(bandwidth, 'B/s')}, roof {readable(roof, 'FLOP/s')} in {dtype}")

many = 2**28 if devices.on_gpu(device) else 2**25  # elements: too many for any cache
long, small, large = (16_384, 64, 8_192) if devices.on_gpu(device) else (8_192, 64, 1_024)
products = {  # (b, d, k) of [b, d] @ [d, k]
    "matrix × vector": (long, long, 1),
    f"matmul {small} × {small}": (small, small, small),
    f"matmul {large:,} × {large:,}": (large, large, large),
}
intensities = {"addition": 1 / (3 * size)}
intensities |= {name: arithmetic_intensity(*bdk, size) for name, bdk in products.items()}
predicted = {name: min(roof, value * bandwidth) for name, value in intensities.items()}
for name, value in intensities.items():
    rate = readable(predicted[name], "FLOP/s")
    print(
        f"{name:<24} {value:9.2f} FLOP/B: {bound(value, roof, bandwidth)}-bound, at most {rate}"
    )

assert list(intensities.values()) == sorted(intensities.values())

# %% [markdown]
r"""
Now the measurements. We want to know what the machine can do, so we take the fastest sample.
"""

# %% tags=["timed"]
p, q, both = (torch.randn(many, device=device, dtype=dtype) for _ in range(3))
taken = timing.benchmark(lambda: torch.add(p, q, out=both), device=device)
measured = {"addition": many / taken.minimum}
del p, q, both

for name, (b, d, k) in products.items():
    left = torch.randn(b, d, device=device, dtype=dtype)
    right = torch.randn(d, k, device=device, dtype=dtype)
    out = torch.empty(b, k, device=device, dtype=dtype)
    taken = timing.benchmark(lambda: torch.mm(left, right, out=out), device=device)
    measured[name] = matmul_flops(left.shape, right.shape) / taken.minimum

factor = measured[f"matmul {large:,} × {large:,}"] / measured["addition"]
reconcile("FLOP/s of the large matmul, relative to the addition", guess, factor, "times")

# %% tags=["item-60", "timed"]
shares = {name: measured[name] / predicted[name] for name in measured}
findings = [f"{name}: {share:.0%}" for name, share in shares.items()]
finding = f"Reached, of the roof: {'; '.join(findings)}"
plots.show(
    plots.roofline(
        peaks[dtype],
        bandwidth,
        [(name, intensities[name], measured[name]) for name in measured],
        predicted=[(name, intensities[name], predicted[name]) for name in predicted],
        ceiling=ceilings[dtype],
        peak_label=f"{str(dtype).removeprefix('torch.')} peak, dense",
        bandwidth_label="measured bandwidth",
        title=finding,
    ),
    alt=f"A roofline of this machine with its ridge point at {roof / bandwidth:.0f} FLOP per byte. {finding}.",
)

assert math.isclose(intensities[f"matmul {large:,} × {large:,}"], 2 * large / (3 * size))
assert math.isclose(
    intensities["matrix × vector"], 2 / size, rel_tol=1e-3
)  # each weight is used once

# %% [markdown]
r"""
Read the picture from left to right. The addition and the matrix times a vector are on the slope or a little below it:
they're limited by memory, at a small share of the peak. (They may even be slightly *above* it, because we measured the
bandwidth with a copy, and writing can cost more than reading.) The large multiplication should be close to the flat
roof. (If your CPU's peak is unknown, that's no surprise, since the roof is the best multiplication we measured.)

The small multiplication may be far *below* the roof, because starting it takes longer than the work. It may also be
above the slope, because 64 × 64 numbers stay in the cache, which is faster than memory. The roofline model ignores both
effects. When a point is off the roof, ask why.

So *how fast could it be?* As fast as the roof above its intensity. *How fast is
it?* That's the filled marker.

Now experiment. Your measurements stay, and you can move a product `[m, k] @ [k, n]` under the roof of your machine or
of any card. Think of $m$ as the number of tokens at once and of $k$ and $n$ as the sides of a weight matrix. How large
must $m$ be for it to be compute-bound here, and on an H100? And why is no $m$ large enough on the H100 if $k = 16$?
"""

# %% tags=["timed"]
from course_utils.widgets import roofline

here = hardware.Accelerator("this machine", {dtype: roof}, bandwidth, None, None, "measured")
roofline.explore([(name, intensities[name], measured[name]) for name in measured], card=here)

# %% [markdown]
r"""
## Takeaways

**Mechanics.** `[B, D] @ [D, K]` takes 2·B·D·K FLOPs; elementwise operations take one per element. A forward pass takes
2 × tokens × parameters, plus $4T^2d$ per layer and sequence for attention, and look-ups are free. To measure time, use
warm-up, synchronization, repetition and random data; report the median and the spread. MFU is model FLOPs per second
divided by the *dense* peak of the *dtype in use*. The roof is min(peak, intensity × bandwidth).

**Mindset.** Predict first: FLOPs, bytes, the limit, the seconds. Then measure. If the two differ by a factor of two,
look for MACs or sparsity; if by a hundred or more, for a missing synchronization. If you don't know a peak, say
"unknown" and measure a ceiling.

**Intuitions.** Nothing reaches its promised peak: the best multiplications get 80 to 87% of it, a well-tuned
training run 40 to 50%. Elementwise operations are limited by bandwidth, not by FLOP/s. Large multiplications are
efficient; small ones are mostly overhead. One token at a time is memory-bound, thousands are compute-bound.

Next: [06 · Gradients and 6N](../06_gradients_and_6n/06_gradients_and_6n.ipynb). The forward pass costs 2 × tokens ×
parameters. What does the backward pass cost?
"""

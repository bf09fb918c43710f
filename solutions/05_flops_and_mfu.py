# %% [markdown]
r"""
# 05 · FLOPs and MFU

[← 04 · Einops](../04_einops/04_einops.ipynb) &nbsp;|&nbsp; [06 · Gradients and 6N
→](../06_gradients_and_6n/06_gradients_and_6n.ipynb)

> **How fast could this be, and how fast is it?**

Now we count work: how much arithmetic a model needs, how much your machine can do in a second, and how much of that you
get. You'll end up with two pictures of *your* machine: how fast it multiplies matrices, and its *roofline*, which shows
whether arithmetic or memory is the limit. Close other programs if you can.
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

*FLOPs* are a count, *FLOP/s* is a rate (lecture 00), and a count divided by a rate is a time. GPT-3's training took 33
times the FLOPs that eight H100s can do in two weeks at their peak.
"""

# %% tags=["item-43", "item-44"]
h100 = FACTS["H100 SXM sparse peak, as printed"].value / 2  # FLOP/s; see section 4
two_weeks = 14 * 24 * 3600  # seconds
budget = 8 * h100 * two_weeks  # rate · time = count
gpt3 = FACTS["GPT-3 training FLOPs"].value
print(f"{readable(budget, 'FLOPs')} in two weeks, {readable(gpt3, 'FLOPs')} for GPT-3")

assert round(gpt3 / budget) == 33

# %% [markdown]
r"""
### The matrix multiplication

Unless its texts are much longer than its vectors (section 2), most of a language model's work is in linear layers. A
**linear layer** multiplies $B$ vectors of $D$ numbers, one per token, by a matrix of weights:
`[B, D] @ [D, K] → [B, K]`. Here it is with every operation counted:
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
Each of the $B \cdot K$ outputs takes $D$ multiplications and $D$ additions (its sum starts at zero). In total,

$$\text{FLOPs} = 2 \cdot B \cdot D \cdot K .$$

Hardware multiplies and adds in one step, a **fused multiply-add**.

> **Trap: MACs.** Some counters report *multiply-accumulates* (MACs), each of which is two FLOPs, and call them FLOPs.
> If two sources differ by exactly a factor of two, suspect this first.

Here's a larger multiplication, sized for your device:
"""

# %% tags=["item-51", "item-52"]
torch.set_float32_matmul_precision("highest")  # no tf32, which section 4 explains
sizes = {
    "CUDA": (16_384, 32_768, 8_192),  # with at least 12 GB
    "GPU": (2_048, 4_096, 4_096),  # any other
    "CPU": (512, 1_024, 2_048),
}
if device.type == "cuda" and (devices.total_memory(device) or 0) >= 12e9:
    B, D, K = sizes["CUDA"]
else:
    B, D, K = sizes["GPU"] if devices.on_gpu(device) else sizes["CPU"]
x_large = torch.randn(B, D, device=device)
w_large = torch.randn(D, K, device=device)

linear_flops = 2 * B * D * K
print(f"x_large @ w_large: {readable(linear_flops, 'FLOPs')}")

assert linear_flops == count_flops(lambda: x_large @ w_large)  # PyTorch's own counter agrees
assert 2 * math.prod(sizes["CUDA"]) == 8_796_093_022_208  # 8.8 TFLOPs
assert 2 * math.prod(sizes["GPU"]) == 68_719_476_736  # 69 GFLOPs
assert 2 * math.prod(sizes["CPU"]) == 2_147_483_648  # 2.1 GFLOPs

# %% [markdown]
r"""
What about *elementwise* operations? Adding two matrices takes one FLOP per element. By convention, so does a ReLU,
which sets negative numbers to zero; for a GELU, another elementwise function, we assume 20. A matrix multiplication
takes $2D$ per element of its result, and $D$ may be in the thousands. So, like PyTorch's counter, we count only the
matrix multiplications.
"""

# %% tags=["item-53"]
m, n = B, K
addition = m * n  # FLOPs of adding a bias, or of a ReLU
assert linear_flops / addition == 2 * D
assert count_flops(lambda: torch.relu(x_large[:1] + 1)) == 0  # the counter ignores these
print(f"an elementwise operation on the output: {addition / linear_flops:.3%} of the work")

# %% [markdown]
r"""
### Exercise 5.1 · FLOPs of a multiplication &nbsp; ★★☆ &nbsp; essential &nbsp; 10 minutes

Write `matmul_flops(x_shape, w_shape)`. It returns the FLOPs of `x @ w`, computed from the two shapes alone. In each
shape, the last two dimensions are those of a matrix. All dimensions before them are *batch* dimensions: they broadcast
as usual (lecture 01), and there's one product for each index of the result's batch dimensions. Both shapes have at
least two dimensions. If the inner sizes differ, raise a `ValueError`.
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
<details><summary>Hint 1</summary>How many numbers does the product have, batch dimensions included? What does each of them cost?</details>
<details><summary>Hint 2</summary><code>*batch, b, d = x_shape</code> unpacks a shape, and <code>torch.broadcast_shapes</code> returns the shape that two sets of batch dimensions broadcast to.</details>

**Why it matters.** You can count nearly all of a model's FLOPs before you run anything.

## 2 · Two FLOPs per parameter per token

Look at $2 \cdot B \cdot D \cdot K$ again. $B$ is the number of tokens, and $D \cdot K$ is the number of weights. So a
linear layer costs

$$\text{forward FLOPs} = 2 \cdot \text{tokens} \cdot \text{parameters},$$

because each weight takes part in one multiplication and one addition for every token. The rule also holds for a stack
of layers, because both sides add up.
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
So from GPT-3's 175 billion parameters you get 350 GFLOPs per token. The rule has two exceptions.

> **Trap: not every parameter multiplies.** Token embeddings are *looked up* in a table: a row is copied, and nothing is
> computed. GPT-3's table has 0.6 billion parameters and costs no FLOPs. (The output layer, which computes a score for
> each token of the vocabulary, *is* a multiplication, even if it uses the same table.)

> **Trap: not every multiplication has parameters.** In attention (lecture 04), the scores of one layer take $d$
> multiplications and $d$ additions for each of the $T \times T$ pairs of tokens, and the weighted sums of the values
> take as many ($d$ is the length of the vectors, over all heads together). That's $4 T^2 d$ FLOPs without a single
> parameter, and it grows with the *square* of the context length $T$.

How does that compare with the cost of the weights? A Transformer layer of *width* $d$ has about $12d^2$ weights: $4d^2$
in attention and $8d^2$ in the feed-forward block (lecture 01), whose two matrices lead from $d$ numbers to $4d$ and
back.
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
assert count_flops(attention, q, k, v, is_causal=True) == 4 * T**2 * d  # see below

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
The scores and weighted sums of attention add $T / (6d)$ times the cost of the weights. For a width of 4,096 that isn't
much at a context length of 2,048; at 24,576 it equals the cost of the weights, and at 131,072 it's 5.3 times as much.

In causal attention, a program may skip the scores of later tokens and save up to half of this work, so conventions
differ. PyTorch's counter and the MFU of the PaLM paper (section 5) include all the scores; the FlashAttention-2 paper
(arXiv:2307.08691) counts only half. Say which convention you use.

### Watching layers run

To count the FLOPs of a whole model, you have to know which layers run and what they receive. A *forward hook* is a
function that you register on a module (a layer, or a model made of layers). After each call of the module, PyTorch
calls the hook with the module, a tuple of its inputs, and its output.
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

# %% [markdown]
r"""
### Exercise 5.2 · FLOPs of a model &nbsp; ★★★ &nbsp; 20 minutes

Write `model_flops(model, batch)`. It returns the FLOPs that the `nn.Linear` layers take in `model(batch)`. The layers
may be nested in other modules, at any depth. A layer that's used twice counts twice; one that isn't used doesn't count.
Base each layer's count on the vectors that it *actually receives*: there may be any number of leading dimensions, or
none, and they may differ from layer to layer. Ignore biases and everything that isn't an `nn.Linear`. Leave the model
as you found it: keep its own hooks, leave none of yours, and don't change its parameters or any module's mode. (Some
modules compute something else in *training mode* than in *evaluation mode*. A run may update other tensors of a module,
such as a running mean; you don't have to restore those.) You may assume that `model(batch)` raises no error and that
every layer is called as `layer(x)`. (The last layer of `nn.MultiheadAttention` isn't.)
"""


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
<details><summary>Hint 1</summary>Register a hook on every linear layer, run the model once, remove the hooks. <code>model.modules()</code> yields each module in the tree once, the model itself included.</details>
<details><summary>Hint 2</summary>An input of shape [..., in_features] holds numel / in_features vectors. How many FLOPs does the layer take for each of them? The hook can append the count to a list.</details>

**Why it matters.** Your function also works for models that somebody else wrote.

## 3 · Timing properly

A GPU works asynchronously (lecture 01), so it's easy to get times wrong. A **kernel** is a program that
runs on a GPU, such as a matrix multiplication. A call from Python only puts a kernel into a queue. Only operations that
need the results (`print`, `.item()`, an ordinary copy to the CPU) wait for it to finish.

Here's a simulated GPU with a clock of its own. Queueing a call takes 10 µs, and running it takes 2 ms. The very first
call takes one second longer, because a real GPU, too, first has to load kernels and allocate memory.
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
If you read the clock, call `multiply` and read the clock again, you measure the 10 µs of queueing, and a multiplication
seems 200 times as fast as it is. Here's a second attempt, with a fresh `SimulatedGPU`: you read the clock, call
`multiply` 100 times, *synchronize* (wait for the device), read the clock again, and divide by 100.

**Predict.** What's the ratio of your result to the true 2 ms?
"""

# %%
guess = None  # times

# %% tags=["item-55", "error-15"]
gpu = SimulatedGPU()
start = gpu.clock()
for _ in range(100):
    gpu.multiply()
unfinished = (gpu.clock() - start) / 100
gpu.synchronize()
average = (gpu.clock() - start) / 100
reconcile("100 calls, synchronized once", guess, average / 2e-3, "times 2 ms")
assert math.isclose(unfinished, 10e-6)  # without synchronizing: the time to queue a call
assert round(2e-3 / unfinished) == 200 and round(average / 2e-3) == 6
assert math.isclose(average, (1.0 + 100 * 2e-3 + 10e-6) / 100)  # 12 ms: the first call counts

start = gpu.clock()
gpu.multiply()
gpu.synchronize()
assert math.isclose(gpu.clock() - start, 10e-6 + 2e-3)  # this is the one we want

# %% [markdown]
r"""
The first call, with its extra second, doesn't belong in the average.

**Warm-up** means running the operation a few times before you time it. Then synchronize before you read the clock: at
the start, so that work queued earlier doesn't count, and at the end, so that yours is finished. And repeat the
measurement. Now for real, on your device:
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
print(
    f"first call {readable(samples[0], 's')}, slowest after warm-up {readable(max(warm), 's')}"
)
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
    axes.axhline(
        level, color=plots.INK, linestyle=style, linewidth=width, label=f"{name} after warm-up"
    )
axes.minorticks_off()
factor = max(samples) / min(samples)
ticks = [m * 10**k for k in range(6) for m in (1, 2, 5) if m * 10**k < max(3, 1.5 * factor)]
axes.set_yticks(ticks, [f"× {number:,}" for number in ticks])
axes.set_ylim(0.9, max(3, 1.5 * factor))
axes.spines[["top", "right"]].set_visible(False)
fig.legend(loc="outside lower center", frameon=False, ncols=4)
finding = f"Of 200 identical calls, the slowest took {factor:,.3g} times as long as the fastest"
axes.set_title(finding, loc="left", fontweight="bold")
plots.show(
    fig,
    alt=f"{finding}; each call is a dot, with lines at mean, median and fastest after warm-up.",
)

# %% [markdown]
r"""
Disturbances can only make a call slower. Report the median, together with the spread:

- The **median** is the sample in the middle: half of the samples are faster. One bad sample hardly changes it, but can
  shift the *mean* a lot.
- The *fastest* was disturbed least, so it shows best what the machine *can* do.
- The *spread*, here the 80th percentile divided by the 20th, tells you whether to believe the median and the fastest.
  If it's far above 1, measure again.

On a CPU the work is divided among threads, one per core, and it's done when the *last* of them is done. If another
program occupies one core, all the other threads wait. So leave one core free, as this notebook does from here on.
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

### Memory for the output (optional)

Do your timings include memory allocation? `x + 1` needs new memory for its output; `torch.add(x, 1, out=y)` writes into
memory that `y` already has. On a CPU, the operating system has to find and clear new memory before you can write to it.
On a GPU, PyTorch reuses the memory of deleted tensors.

**Predict.** `x` takes 64 MB. What's the ratio of the time of `x + 1` to the time of the version with `out=`?
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
If there's a difference, it's the price of new memory. To time only the arithmetic, use `out=`, as `time_calls` does.
(Further down, we time `x @ w` as programs run it, new memory included.)

### Exercise 5.3 · A benchmark &nbsp; ★★☆ &nbsp; essential &nbsp; 10 minutes

Write `benchmark(f, synchronize, clock, warmup, repeats)`: call `f()` `warmup` times without timing, then time `repeats`
further calls, each separately, and return the median time of one call in seconds, measured from when the call is made
until the device is done with it. Work that was queued earlier, by another call or before `benchmark` itself was called,
must not count toward a call's time. `synchronize()` waits until the device is done; `clock()` returns seconds. `warmup`
may be 0; `repeats` is at least 1 and may be even. Use no other clock: the tests use a simulated device with a clock of
its own.
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
<details><summary>Hint 1</summary>Each sample needs two readings of the clock. What must the device have finished at each of them?</details>
<details><summary>Hint 2</summary>What's the median of an even number of samples? Look in Python's <code>statistics</code> module, which the first cell imports.</details>

**Why it matters.** On a GPU, code that doesn't `synchronize` can seem a hundred times as fast as it is.
"""


# %% tags=["timed"]
def wait() -> None:
    devices.synchronize(device)


linear_seconds = benchmark(lambda: x_large @ w_large, wait, time.perf_counter)  # yours
# the course's own
again = timing.benchmark(lambda: x_large @ w_large, device=device, min_samples=5)
print(
    f"x_large @ w_large, your benchmark: {readable(linear_seconds, 's')}; course_utils.timing: {again}"
)
print(
    f"{readable(linear_flops, 'FLOPs')} in that time: {readable(linear_flops / linear_seconds, 'FLOP/s')}"
)

assert linear_seconds > 0

# %% [markdown]
r"""
In your own projects, use `torch.utils.benchmark.Timer` (one CPU thread by default) or `triton.testing.do_bench`.

## 4 · What the hardware promises

How fast should your device have multiplied? The peak on a data sheet is calculated, not measured: arithmetic units ×
operations per unit and clock cycle × clock cycles per second.

According to NVIDIA's white paper, an A100 has 108 *multiprocessors* and a clock rate of 1.41 GHz. Each multiprocessor
has 64 *CUDA cores* (the small cores of lecture 01), each doing one fused multiply-add on 32-bit numbers per cycle.
**Tensor cores** are units that do nothing but multiply small matrices; those of one multiprocessor do 1,024 fused
multiply-adds on 16-bit numbers per cycle.
"""

# %% tags=["item-48"]
a100 = hardware.ACCELERATORS["A100 SXM 80GB"]
assert a100.peak[torch.bfloat16] == 312e12  # FLOP/s
assert a100.peak[torch.float32] == 19.5e12

by_hand = {torch.bfloat16: 108 * 1_024 * 2 * 1.41e9, torch.float32: 108 * 64 * 2 * 1.41e9}
for dtype, rate in by_hand.items():
    print(f"A100, {dtype}: {readable(rate, 'FLOP/s')}")
    assert math.isclose(rate, a100.peak[dtype], rel_tol=1e-3)
assert a100.peak[torch.bfloat16] / a100.peak[torch.float32] == 16

# %% [markdown]
r"""
Both peaks are on the data sheet, and one is sixteen times the other. There are three ways to pick the wrong one.

*The wrong dtype.* A card has one peak for each dtype, as the next table shows. (A dash means that the data sheet lists
none. For `tf32`, float32 numbers are rounded to 10 bits of mantissa, so that the tensor cores can multiply them. In
matrix multiplications, PyTorch does that only if you ask for it, for instance with
`torch.set_float32_matmul_precision("high")`.)
"""

# %% tags=["item-56", "item-90", "error-37"]
kinds: list[torch.dtype | str] = [torch.float32, "tf32", torch.bfloat16, torch.float8_e4m3fn]
print(
    f"{'TFLOP/s, dense':<15}"
    + "".join(f"{str(c).removeprefix('torch.').removesuffix('_e4m3fn'):>9}" for c in kinds)
)
cards = "V100 SXM2 32GB, A100 SXM 80GB, RTX 4090, H100 PCIe, H100 SXM, H200, B200, GB200"
for name in cards.split(", "):
    promised = [hardware.peak_flops(name, c) for c in kinds]
    print(
        f"{name:<15}"
        + "".join(f"{'–' if p is None else f'{p / 1e12:,.1f}':>9}" for p in promised)
    )

pcie, sxm = (hardware.peak_flops(f"H100 {kind}", torch.bfloat16) for kind in ("PCIe", "SXM"))
assert pcie is not None and sxm is not None
assert round(1 - pcie / sxm, 2) == 0.24  # 24% lower, though both are called H100
assert hardware.ACCELERATORS["H100 PCIe"].multiprocessors == 114
assert hardware.ACCELERATORS["H100 SXM"].multiprocessors == 132
assert hardware.peak_flops("V100 SXM2 32GB", torch.bfloat16) is None  # only in fp16

blackwell = {
    name: [hardware.ACCELERATORS[name].peak[dtype] for dtype in (torch.float32, torch.bfloat16)]
    for name in ("B200", "GB200")
}
assert blackwell == {"B200": [75e12, 2_250e12], "GB200": [80e12, 2_500e12]}
assert [hardware.ACCELERATORS[name].power for name in blackwell] == [1_000, 1_200]  # W

# %% [markdown]
r"""
*The wrong card.* In bfloat16, the peak of the H100 PCIe is 24% below that of the H100 SXM: it has fewer multiprocessors
(114 instead of 132) and a lower clock rate. Even the same chip may have two peaks: a B200 in a DGX server has 75
TFLOP/s in float32 and 2,250 in bfloat16; each of those in a GB200, a module that lets them draw more power, has 80 and
2,500.

*The wrong matrices.* For the H100 SXM in bfloat16, NVIDIA prints 1,979 TFLOP/s, with a footnote: *with sparsity*. **2:4
sparsity** means that in every group of four neighbors in a row of weights, at least two are zero. The tensor cores
leave out half of the multiplications, but the data sheet counts all of them. For *dense* matrices, the peak is half of
that, about 989. The float32 peak, 67 TFLOP/s, has no such footnote. (The code of CS336's lecture
([2025](https://github.com/stanford-cs336/spring2025-lectures/blob/main/lecture_02.py)) has 67.5, which isn't on the
data sheet.)
"""

# %% tags=["item-49", "error-32"]
h100_sxm = hardware.ACCELERATORS["H100 SXM"]
printed = FACTS["H100 SXM sparse peak, as printed"].value  # FLOP/s
assert math.isclose(h100_sxm.peak[torch.bfloat16], printed / 2, rel_tol=1e-3)
assert round(h100_sxm.peak[torch.bfloat16] / 1e12) == 989
assert h100_sxm.peak[torch.float32] == 67e12 != 67.5e12

# %% [markdown]
r"""
### Your own machine

If the course's table doesn't have *your* device, its peak is *unknown*. Then measure the fastest multiplication that it
manages, and call its speed a *measured ceiling*.

> **Trap: made-up peaks.** [nanoGPT](https://github.com/karpathy/nanoGPT/blob/master/model.py) calculates MFU with the
> peak of an A100, whatever card it runs on. The code of CS336's lecture
> ([2026](https://github.com/stanford-cs336/lectures/blob/main/lecture_02.py)) returns 1 FLOP/s as the peak of a CPU, so
> a CPU gets an "MFU" in the billions.
"""

# %% tags=["error-14", "error-35", "timed"]
assert hardware.peak_flops("Abacus 9000", torch.float32) is None
assert hardware.peak_flops("cpu", torch.float32) is None
assert hardware.peak_flops("H100", torch.bfloat16) is None  # which H100?

peaks: dict[torch.dtype, float | None] = {}
ceilings: dict[torch.dtype, float] = {}
for dtype in (torch.float32, torch.bfloat16):
    peaks[dtype] = hardware.peak_flops(device, dtype)
    ceilings[dtype] = hardware.measured_ceiling(device, dtype, max_seconds=1).flops_per_second
    print(f"{dtype}: {hardware.describe_peak(device, dtype)}")
    print(f"  measured ceiling: {readable(ceilings[dtype], 'FLOP/s')}")
assert ceilings[torch.float32] / 1 > 1e9  # the "MFU" with a peak of 1

# %% [markdown]
r"""
## 5 · MFU: how much of it you get

Here's lecture 00's MFU as a formula (Chowdhery and others, 2022, in the PaLM paper):

$$\text{MFU} = \frac{\text{model FLOPs} \,/\, \text{seconds}}{\text{devices} \cdot \text{peak FLOP/s}}$$

The peak is that of one device, for dense matrices in the dtype in use.

*Model* FLOPs are those of the matrix multiplications that the mathematics of the model requires. If your program does
extra work, such as computing activations twice (lecture 11), the MFU goes down, as it should. (If you count that work,
too, you get *hardware* FLOPs utilization, HFU.)

> **Trap: the MFU of one operation.** MFU refers to a whole training step. The same ratio for a single operation is its
> *utilization*. For a model's largest multiplications it's usually higher than the MFU of the whole step.

What's a good value? Here are two published runs:
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
print(f"Llama 3.1 405B: 380 to 430 TFLOP/s per H100, MFU {llama[0]:.0%} to {llama[1]:.0%}")
assert [round(share, 2) for share in llama] == [0.38, 0.43]

fastest = [FACTS[f"{card} SXM fastest matmul"].value for card in ("A100", "H100")]
assert round(fastest[0] / a100.peak[torch.bfloat16], 2) == 0.87
assert round(fastest[1] / h100_sxm.peak[torch.bfloat16], 2) == 0.80

# %% [markdown]
r"""
MosaicML's 46% and Llama 3.1 405B's 38 to 43% roughly agree with lecture 00's rule of thumb: *an MFU of 0.4 to 0.5 is
good*. Even a multiplication on its own doesn't reach 1. Stas Bekman's *mamf-finder* (github.com/stas00/ml-engineering)
tries many shapes; the fastest reaches 271.2 TFLOP/s on an A100 (87%) and 794.5 on an H100 (80%).

### Exercise 5.4 · Utilization from a data sheet &nbsp; ★☆☆ &nbsp; essential &nbsp; 5 minutes

Write `mfu(flops, seconds, sheet, dtype)`. `sheet` is a data sheet as printed: for each dtype a pair `(FLOP/s, sparse)`,
where `sparse` is `True` if the rate holds only for 2:4 sparse matrices. The matrices that we multiply are dense. Return
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
<details><summary>Hint 1</summary>Which rate of the sheet holds for matrices in this dtype, if any? And for dense ones?</details>
<details><summary>Hint 2</summary>MFU compares two rates, both in FLOP/s. Which of them do you know from the measurement, and which from the sheet?</details>

**Why it matters.** It's easy to get this one line wrong: with the sparse rate, the rate of another dtype or card, or a
made-up default.

Let's apply it to the multiplication of section 1, relative to the measured ceiling if the peak is unknown.
"""


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
    return share, "of the peak"


share, of_what = utilization(linear_flops, linear_seconds, torch.float32)
print(f"float32: {share:.0%} {of_what}")
record(f"float32, share {of_what}", 100 * share, "%")

# %% [markdown]
r"""
Next, the same in bfloat16:
"""

# %% tags=["item-59", "timed"]
# more than half a second: a device without bfloat16 arithmetic
slow = linear_flops / ceilings[torch.bfloat16] > 0.5
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
    record("x_large @ w_large in bfloat16", share16, "of the peak")

# %% [markdown]
r"""
On a GPU, bfloat16 is faster, but its *utilization* may be lower: if the peak is 16 times as high and the speed only 12
times, the utilization falls to three quarters. You pay for time; utilization tells you how much you could still gain.

Next, we measure the forward pass of a whole model with your `model_flops` and your `benchmark`.
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
The two LayerNorms and the GELU (lecture 07 explains both) account for almost none of the FLOPs. How much of the
time does the GELU take?
"""

# %% tags=["timed"]
norm, widen, gelu, _ = block
with torch.no_grad():
    hidden = widen(norm(tokens_in))
    gelu_seconds = timing.benchmark(lambda: gelu(hidden), device=device).median
operations = 20  # per element, generously: a GELU's error function takes a polynomial or two
gelu_work = operations * hidden.numel() / work
print(f"GELU: {gelu_work:.2%} of the work, {gelu_seconds / model_seconds:.1%} of the time")

assert hidden.shape == (vectors, 4 * width)
assert math.isclose(hidden.numel() / work, 2 / (9 * width)) and gelu_work < 0.01

# %% [markdown]
r"""
On an idle machine, the GELU's share of the time is larger than its share of the work; section 6 explains why. But
first: how large must a multiplication be to be efficient?

### From tiny to large

The next cell multiplies two $n \times n$ matrices in both dtypes, and doubles $n$ each time: from 32 to 2,048 on a CPU,
from 256 to 16,384 on a GPU. A multiplication that beats the measured ceiling raises it.

**Predict.** Which $n$ is the first to reach half of the peak (or ceiling) in float32?
"""

# %%
guess = None  # n

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

half = (peaks[torch.float32] or ceilings[torch.float32]) / 2
enough = [
    n for n, rate in zip(widths_tried, speeds[torch.float32], strict=True) if rate >= half
]
if enough:
    reconcile("the first n to reach half in float32", guess, enough[0], "")
else:
    print("none of these n reached half in float32")

# %% tags=["timed"]
findings, reached = [], []
for kind, values in speeds.items():
    top, of_what = peaks[kind] or ceilings[kind], "peak" if peaks[kind] else "measured ceiling"
    reached.append([value / top for value in values])
    findings.append(
        f"{kind} from {values[0] / top:.0%} to {max(values) / top:.0%} of its {of_what}"
    )
print("share of the peak, or of the measured ceiling if no peak is known:")
print(f"{'n':>6}" + "".join(f"{str(kind).removeprefix('torch.'):>10}" for kind in speeds))
for n, *shares in zip(widths_tried, *reached, strict=True):
    print(f"{n:>6,}" + "".join(f"{share:>10.0%}" for share in shares))

usable = [  # without bfloat16 arithmetic, a CPU may be as slow at any size
    kind for kind, values in speeds.items() if max(values) > max(speeds[torch.float32]) / 2
]
finding = timing.conclusion(
    f"Size matters: {', '.join(findings)}".replace("torch.", ""),
    {
        f"n = {widths_tried[-1]:,} is faster than n = {widths_tried[0]}": all(
            speeds[kind][-1] > speeds[kind][0] for kind in usable
        ),
        "no n is above the peak": all(
            max(values) <= 1.05 * (peaks[kind] or math.inf) for kind, values in speeds.items()
        ),
    },
)
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
Small multiplications leave most of the machine idle: each takes a few microseconds to start, and there isn't enough
work for all cores.

Why do large ones stay below 100% of a known peak? One reason is *power*: the peak assumes a certain clock rate, and a
chip at its power limit lowers its clock rate. On a GPU, the next cell shows this: it multiplies a random matrix by
another one and then by zeros. With zeros, fewer bits flip, and the chip needs less power. The arithmetic is the same,
so a gap between the two is due to power; what's missing even with zeros may have other causes, such as the kernel's
overhead.

> **Trap: benchmarks with zeros.** So fill your matrices with random numbers when you time a multiplication. (Horace He,
> "Strangely, Matrix Multiplications on GPUs Run Faster When Given *Predictable* Data")
"""

# %% tags=["timed", "folded"]
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
            record(f"bfloat16 matmul, {name}", share, "of the peak")
else:
    print("no GPU")

# %% [markdown]
r"""
## 6 · The roofline

A processor does two things: it computes, and it moves data between memory and its arithmetic units. The two overlap, so
the *slower one determines the time*. The **arithmetic intensity** of an operation is its number of FLOPs per byte
moved.

$$\text{intensity} = \frac{\text{FLOPs}}{\text{bytes moved}}$$

$$\text{FLOP/s} \le \min(\text{peak}, \text{intensity} \cdot \text{bandwidth})$$

The bytes that memory moves per second (its *bandwidth*), times the FLOPs per byte, are the FLOP/s that memory allows;
the arithmetic units allow the peak. The **roofline** of a machine is the smaller of what its memory and its arithmetic
units allow, plotted against the intensity (Williams, Waterman and Patterson, 2009). Here's an H100's, in float32:
"""

# %% tags=["folded"]
add_intensity = 1 / (3 * torch.float32.itemsize)
attainable = min(h100_sxm.peak[torch.float32], add_intensity * h100_sxm.bandwidth)
finding = f"An H100 adds float32 tensors at {readable(attainable, 'FLOP/s')} at most"
plots.show(
    plots.roofline(
        h100_sxm.peak[torch.float32],
        h100_sxm.bandwidth,
        [],
        predicted=[("addition", add_intensity, attainable)],
        peak_label="float32 peak",
        title=finding,
    ),
    alt=f"An H100's roofline in float32: a slope up to 20 FLOP per byte, then flat. {finding}.",
)

# %% [markdown]
r"""
Under the slope of a roofline, memory is the limit, and operations are **memory-bound**; under its flat part, arithmetic
is the limit, and they're **compute-bound**. The slope and the flat part of a roofline meet at the **ridge point**,
where the intensity equals peak / bandwidth. An H100's is at 20 FLOP per byte in float32, and at 295 in bfloat16.

The marker in the picture is the addition of two float32 tensors. For each element it reads 4 + 4 bytes, writes 4, and
takes one FLOP, so its intensity is 1/12 FLOP per byte.
"""

# %% tags=["item-91"]
ridge = h100_sxm.peak[torch.bfloat16] / h100_sxm.bandwidth
print(f"ridge point of an H100 in bfloat16: {ridge:.0f} FLOP/B")
assert round(ridge) == 295
assert h100_sxm.peak[torch.float32] / h100_sxm.bandwidth == 20

assert add_intensity == 1 / 12
assert round(attainable / 1e9) == 279
assert round(attainable / h100_sxm.peak[torch.float32], 4) == 0.0042

# %% [markdown]
r"""
The best possible addition runs at 279 GFLOP/s, 0.4% of the peak, and *nothing is wrong with it*.

A multiplication `[B, D] @ [D, K]` has to move each matrix at least once: read `x` and `w`, write `y`. Once fetched,
each number can be used many times: an element of `x` in $K$ products, an element of `w` in $B$.

### Exercise 5.5 · Intensity, and what the limit is &nbsp; ★☆☆ &nbsp; essential &nbsp; 10 minutes

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
<details><summary>Hint 1</summary>How many elements does each of the three matrices have, and how many bytes? You counted the FLOPs in exercise 5.1.</details>
<details><summary>Hint 2</summary>How long does one FLOP take? How many bytes are moved for each FLOP, and how long does that take?</details>

**Why it matters.** If an operation waits for memory, neither a higher peak nor fewer FLOPs will help.

Two $n \times n$ matrices of 2-byte numbers take $2n^3$ FLOPs and move $6n^2$ bytes, so the intensity is $n/3$: the
larger they are, the more work there is for each byte. For a batch of $B$ tokens, far fewer than $D$ and $K$, the
intensity is nearly $B$ itself:
"""

# %% tags=["item-95", "item-96"]
assert math.isclose(arithmetic_intensity(3_000, 3_000, 3_000, 2), 1_000)  # n / 3
assert math.isclose(arithmetic_intensity(3_000, 3_000, 3_000, 4), 500)  # n / 6

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
In training, thousands of tokens pass through each layer together, and arithmetic is the limit. A model that *generates*
text produces one token at a time, at 1 FLOP per byte, about a three-hundredth of the ridge point, and spends its time
fetching weights.

### From ReLU to matrix multiplication

Here are five operations on bfloat16 numbers, in order of intensity. Each input is read once, and each result is written
once. Vectors have $n$ numbers, matrices $n \times n$, and $n$ is large.

| operation | FLOPs | bytes read | bytes written | FLOP per byte |
|:--|:--|:--|:--|:--|
| ReLU of a vector | $n$ | $2n$ | $2n$ | 1/4 |
| dot product of two vectors | $2n$ | $4n$ | 2 | 1/2 |
| matrix × vector | $2n^2$ | $2n^2 + 2n$ | $2n$ | about 1 |
| GELU of a vector | about $20n$ | $2n$ | $2n$ | about 5 |
| matrix × matrix | $2n^3$ | $4n^2$ | $2n^2$ | $n/3$ |

Tensor cores do no elementwise operations, and a single vector leaves them mostly idle. So for the first four we use the
float32 peak of an H100's CUDA cores, with its ridge point at 20 FLOP per byte.

**Predict.** According to an H100's roofline, what's the ratio of the time of a GELU to the time of a ReLU, both of the
same large vector?
"""

# %%
guess = None  # times

# %% tags=["item-92", "item-93", "item-94", "item-95", "item-96"]
n, matrix, gelu_flops = 2**28, 8_192, 20  # 20 FLOPs for each element
counts = {  # FLOPs and bytes moved, in bfloat16
    "ReLU": (n, 2 * n + 2 * n),
    "dot product": (2 * n, 4 * n + 2),
    "matrix × vector": (2 * matrix**2, 2 * matrix**2 + 4 * matrix),
    "GELU": (gelu_flops * n, 2 * n + 2 * n),
    f"matmul, n = {matrix:,}": (2 * matrix**3, 6 * matrix**2),
}
shortest = {}  # seconds on an H100: computing or moving, whichever takes longer
print(f"{'':>17} {'FLOP/B':>8} {'computing':>10} {'moving data':>12}")
for name, (work, moved) in counts.items():
    units = torch.bfloat16 if name.startswith("matmul") else torch.float32
    computing, moving = work / h100_sxm.peak[units], moved / h100_sxm.bandwidth
    shortest[name] = max(computing, moving)
    print(
        f"{name:<17} {work / moved:8.2f} {readable(computing, 's'):>10} "
        f"{readable(moving, 's'):>12}"
    )

reconcile(
    "the GELU's time, by the roofline, relative to the ReLU's",
    guess,
    shortest["GELU"] / shortest["ReLU"],
    "times",
)

assert shortest["GELU"] == shortest["ReLU"]
intensity_of = {name: work / moved for name, (work, moved) in counts.items()}
assert list(intensity_of.values()) == sorted(intensity_of.values())
assert intensity_of["ReLU"] == 1 / 4 and intensity_of["GELU"] == 5
assert 0.499 < intensity_of["dot product"] < 0.5 and 0.999 < intensity_of["matrix × vector"] < 1
assert intensity_of[f"matmul, n = {matrix:,}"] == matrix / 3

# %% [markdown]
r"""
Fewer FLOPs save time only to the right of the ridge point. To the left of it you have to move fewer bytes, for instance
by computing neighboring operations in one kernel (lecture 11).

### Find the mistake: a bound called MFU (optional)

The roofline says how fast an operation *could* be. CS336's lecture
([2026](https://github.com/stanford-cs336/lectures/blob/main/lecture_02.py)) turns this into a formula for the MFU
itself: the smaller of 1 and intensity / ridge point. By that formula, every multiplication to the right of the ridge
point has an MFU of 1. But even mamf-finder's best on an H100 reached only 0.80 (section 5). The formula gives only an
upper bound, and for a program of several operations not even a good one. Here it is as a function (the code is ours):
"""


# %%
def mfu_as_found(operations: list[tuple[float, float]], peak: float, bandwidth: float) -> float:
    """The smaller of 1 and intensity / ridge point; an operation is (model FLOPs, bytes moved)."""
    flops = sum(work for work, _ in operations)
    moved = sum(moved for _, moved in operations)
    return min(1.0, (flops / moved) / (peak / bandwidth))


t, d = 8_192, 4_096
widening = (2 * t * d * 4 * d, 2 * (t * d + d * 4 * d + t * 4 * d))  # [t, d] @ [d, 4 d]
gelu_of_it = (0, 2 * 2 * t * 4 * d)  # no model FLOPs, but every number is read and written
print(f"a linear layer and a GELU: {mfu_as_found([widening, gelu_of_it], *h100_roof)}")
assert mfu_as_found([widening, gelu_of_it], *h100_roof) == 1

# %% [markdown]
r"""
An MFU of 1, although nothing is multiplied while the GELU runs!

### Exercise 5.6 · The highest MFU (optional) &nbsp; ★★☆ &nbsp; 10 minutes

Fix the function: write `mfu_limit(operations, peak, bandwidth)`. It returns the highest MFU, as a fraction, that the
roofline allows for a program that runs these operations *one after another*: each begins when the one before it is
done. `operations` is a list of one or more pairs `(model FLOPs, bytes moved)`. Neither number is negative, and they
aren't both 0. An operation without model FLOPs takes the time needed to move its bytes. `peak` is in FLOP/s and
`bandwidth` in B/s; both are positive.
"""


# %% nbgrader={"grade": false, "grade_id": "mfu_limit", "locked": false, "schema_version": 3, "solution": true, "task": false}
def mfu_limit(operations: list[tuple[float, float]], peak: float, bandwidth: float) -> float:
    """The highest MFU of operations that run one after another; each is (model FLOPs, bytes moved)."""
    ### BEGIN SOLUTION
    flops = sum(work for work, _ in operations)
    seconds = sum(max(work / peak, moved / bandwidth) for work, moved in operations)
    return flops / seconds / peak
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_mfu_limit", "locked": true}
check("mfu_limit")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>How long does each operation take, at best? It computes and moves data at the same time.</details>
<details><summary>Hint 2</summary>The operations run one after another: what does that say about their times? Then go back to the definition of MFU.</details>

**Why it matters.** If you add up all FLOPs and all bytes first, the GELU seems to run during the multiplication. It
doesn't, unless somebody writes one kernel that does both (lecture 11).
"""

# %% tags=["error-34"]
limit = mfu_limit([widening, gelu_of_it], *h100_roof)
print(f"a linear layer and a GELU on an H100: an MFU of at most {limit:.2f}")
assert round(limit, 2) == 0.87
assert math.isclose(mfu_limit([widening], *h100_roof), 1)
assert fastest[1] < h100_sxm.peak[torch.bfloat16]

# %% [markdown]
r"""
### Four memory-bound operations on your machine (optional)

Does a ReLU take as long as a GELU on your machine, too? If both are memory-bound, the *ratio* of their FLOP/s is the
ratio of their intensities, 20, whatever the bandwidth is. In the same way, we expect the dot product to reach 2 times
the FLOP/s of the ReLU, and the matrix-vector product 4 times.
"""

# %% tags=["timed"]
kind = torch.bfloat16 if devices.on_gpu(device) else torch.float32
n, matrix = (2**28, 16_384) if devices.on_gpu(device) else (2**25, 8_192)
v, u, result = (torch.randn(n, device=device, dtype=kind) for _ in range(3))
square = torch.randn(matrix, matrix, device=device, dtype=kind)
operations_of: dict[str, tuple[int, Callable[[], object]]] = {  # FLOPs, and the call
    "ReLU": (n, lambda: torch.clamp(v, min=0, out=result)),
    "dot product": (2 * n, lambda: torch.dot(v, u)),
    "matrix × vector": (
        2 * matrix**2,
        lambda: torch.mv(square, v[:matrix], out=result[:matrix]),
    ),
    "GELU": (gelu_flops * n, lambda: torch.ops.aten.gelu.out(v, out=result)),
}
timings = {
    name: timing.benchmark(call, device=device) for name, (_, call) in operations_of.items()
}
achieved_by = {name: operations_of[name][0] / timings[name].minimum for name in timings}
print("FLOP/s, relative to the ReLU's:")
for name, taken in timings.items():
    ratio, expected = (
        achieved_by[name] / achieved_by["ReLU"],
        intensity_of[name] / intensity_of["ReLU"],
    )
    disturbed = "  (disturbed: measure again)" if taken.spread > 0.25 else ""
    print(f"{name:<17} predicted {expected:4.1f}, measured {ratio:4.1f}{disturbed}")

longer = timings["GELU"].minimum / timings["ReLU"].minimum
print(
    f"the GELU takes {longer:.2f} times as long as the ReLU, with {gelu_flops} times the FLOPs"
)
del v, u, result, square

# %% [markdown]
r"""
The dot product and the matrix-vector product may do better than predicted: they hardly write anything, and on a CPU a
byte written can cost more than a byte read. If the GELU takes about as long as the ReLU, it's memory-bound here, too.
On a CPU it may be compute-bound and take longer, but far less than 20 times as long.

*Try it yourself:* reduce `n` to $2^{16}$ and `matrix` to 256, so that everything fits into a cache. Which ratios
change, and why?

## 7 · Your machine's roofline

We'll test the roofline with an addition, a matrix-vector product, a small matrix multiplication, and a large one. Your
functions predict their speeds from the machine's peak (or ceiling) and bandwidth.

**Predict.** By what factor do the FLOP/s of the large multiplication exceed those of the addition? (In bfloat16 on a
GPU, in float32 on a CPU. Section 4 printed the peak or ceiling. For the bandwidth, assume 20 GB/s on a CPU or 3,350
GB/s on an H100; for another GPU, use its data sheet.)
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
    print(f"{name:<22} {value:6.2f} FLOP/B, {bound(value, roof, bandwidth)}-bound: ≤ {rate}")

assert list(intensities.values()) == sorted(intensities.values())

# %% [markdown]
r"""
Now we measure, and take the fastest of several runs, because a roofline shows what a machine *can* do.
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

# %% tags=["item-60", "item-97", "timed"]
shares = {name: measured[name] / predicted[name] for name in measured}
findings = [f"{name}: {share:.0%}" for name, share in shares.items()]
finding = timing.conclusion(
    f"Share of the roof reached: {'; '.join(findings)}",
    {  # these two may get more bandwidth than the copy did: half of the bytes that a copy moves are writes
        "the addition reaches 50% to 150%": 0.5 <= shares["addition"] <= 1.5,
        "matrix × vector reaches at most 200%": shares["matrix × vector"] <= 2,
        "no matmul is above the flat roof": max(
            rate for name, rate in measured.items() if name.startswith("matmul")
        )
        <= 1.1 * roof,
        "the large matmul reaches at least 40%": list(shares.values())[-1] >= 0.4,
    },
)
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
# each weight is used once
assert math.isclose(intensities["matrix × vector"], 2 / size, rel_tol=1e-3)

# %% [markdown]
r"""
The addition and the matrix-vector product should be near the slope. (They may be *above* it: we measured the
bandwidth with a copy, which writes half of its bytes, and writing can cost more than reading.) The large multiplication
should be close to the flat roof. The small one may be far *below* the roofline, because starting it takes longer than
the work, or above the slope, because 64 × 64 numbers stay in the cache.

So *how fast could it be?* As fast as the roofline allows at the operation's intensity. *How fast is it?* That's the
filled marker.

In the explorer below, move a product `[m, k] @ [k, n]` under the roof of your machine or of any card: $m$ tokens, and a
weight matrix of $k \times n$. With $k = n = 4096$, how large must $m$ be for the product to be compute-bound here, and
on an H100? And why is no $m$ large enough on the H100 if $k = 16$?
"""

# %% tags=["timed"]
from course_utils.explorers import roofline

here = hardware.Accelerator("this machine", {dtype: roof}, bandwidth, None, None, "measured")
dots = [(name, intensities[name], measured[name]) for name in measured]
roofline.explore(dots, card=here).predicted(
    "FLOP/s of the large matmul, relative to the addition",
    f"How many times the addition's FLOP/s did the matmul {large:,} × {large:,} reach on the machine that ran it?",
)

# %% [markdown]
r"""
## 8 · Sparse weights (optional)

An H100's peak is twice as high for weights with 2:4 sparsity (section 4), and such weights take less memory, too: of
each group of four, the hardware stores only two values and, for each of them, two bits for its position.

But where do you get such weights? In training, each step changes all weights, so zeros don't stay zeros. That's why
you make them afterward, for *inference*, the use of a trained model (lecture 13): train a dense model, set half of its weights
to zero (this is called *pruning*), and train a little more, with those zeros held fixed, to repair the damage (Mishra
and others, 2021, arXiv:2104.08378).

### Exercise 5.7 · Prune to 2:4 (optional) &nbsp; ★★☆ &nbsp; 15 minutes

Write `prune_2_4(w)`. It returns a copy of `w` in which, of every four neighbors along the last dimension (elements 0–3,
4–7, …), the two with the largest *magnitude* are kept and the other two are zero. `w` has any floating-point dtype of
at least 16 bits, and the result has the same dtype. `w` may have any number of leading dimensions, or none, and any
strides, but no dimension of size 0, and all its numbers are finite. Don't change `w`. If the size of the last dimension
isn't a multiple of four, raise a `ValueError`. (If magnitudes are equal, keep whichever you like, but exactly two.)
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
<details><summary>Hint 1</summary>Make the groups of four a dimension of their own. Then find, in each row, where the two smallest magnitudes are.</details>
<details><summary>Hint 2</summary><code>topk</code> also returns the positions of the values that it finds, and it can find the smallest. <code>scatter</code> returns a copy with other values at the positions that you give it. Reshape back.</details>
<details><summary>What it should look like</summary>

```
w            1  -9   2   3 │ 16  15  14 -13
prune_2_4    0  -9   0   3 │ 16  15   0   0
```

</details>

**Why it matters.** This pruning is the price of 1,979 TFLOP/s instead of 989.

How much damage does pruning do? The next cell prunes random weights and compares the outputs:
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
## Takeaways

**Mechanics.** `[B, D] @ [D, K]` takes 2·B·D·K FLOPs. A forward pass takes 2 × tokens × parameters (without embeddings),
plus $4T^2d$ per layer and sequence for attention. To measure time, warm up, synchronize, repeat, and use random data.
MFU is model FLOPs per second divided by the *dense* peak of the *dtype in use*. The roofline is min(peak, intensity ×
bandwidth).

**Mindset.** Predict FLOPs, bytes, the limit and the seconds, then measure. If the two differ by a factor of two, look
for MACs or sparsity; if by a hundred or more, for a missing synchronization.

**Intuitions.** On an A100 or H100 the best multiplications get 80 to 87% of the peak. On a GPU, elementwise operations
are memory-bound: a ReLU is no faster than a GELU. Generating one token at a time is memory-bound, too; processing
thousands at once is compute-bound.

Next: [06 · Gradients and 6N](../06_gradients_and_6n/06_gradients_and_6n.ipynb). The forward pass costs 2 × tokens ×
parameters. What does the backward pass cost?
"""

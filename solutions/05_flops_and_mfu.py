# %% [markdown]
r"""
# 05 · FLOPs and MFU

[← 04 · Einops](../04_einops/04_einops.ipynb) · [06 · Gradients and 6N →](../06_gradients_and_6n/06_gradients_and_6n.ipynb)

> **How fast could this be, and how fast is it?**

Lecture 01 counted bytes. This one counts work. You will learn to say, with a pencil, how much arithmetic a model needs;
to find out how much your machine can do in a second; and to measure how much it does. By the end you will have drawn
two pictures of *your* machine: the share of its speed that a matrix multiplication gets, from tiny matrices to large
ones, and its roofline, with your own predictions on it beside your own measurements.

How to read: run the cells in order (<kbd>Shift</kbd> + <kbd>Enter</kbd>). Where a cell says *predict*, write your
number first; being wrong is how you find out what to look at. The cell below each exercise checks your answer and names
the likely mistake; *Validate* in the toolbar runs them all. Everything is measured on your machine, so your numbers
are your own. Close what else is computing, if you can.
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

A *FLOP* is one floating point operation: one addition or one multiplication of two numbers. Two quantities are made
of it, and they are written almost alike:

- *FLOPs*, a *count*: how much work there is. A property of the mathematics.
- *FLOP/s*, a *rate*: how fast a machine works. A property of the hardware, and of how well you use it.

Much of the literature writes "FLOPS" for either. Here a rate always has its "/s". Count divided by rate is time, in
seconds. Mix the two up and nothing warns you: both are just large numbers.

You have met the largest counts in lecture 00, those of whole training runs. GPT-3's is 33 times what eight H100s could
do in two weeks, at a speed that they promise and never reach:
"""

# %% tags=["item-43", "item-44"]
h100 = FACTS["H100 SXM sparse peak, as printed"].value / 2  # FLOP/s; section 4 says why half
two_weeks = 14 * 24 * 3600  # seconds
budget = 8 * h100 * two_weeks  # rate · time = count
gpt3 = FACTS["GPT-3 training FLOPs"].value
print(f"{readable(budget, 'FLOPs')} in two weeks, {readable(gpt3, 'FLOPs')} for GPT-3")

assert round(gpt3 / budget) == 33

# %% [markdown]
r"""
### The matrix multiplication

Nearly all the work of a language model, at ordinary context lengths, is in one operation, the *linear layer*: $B$
vectors of $D$ numbers come in (one per token), and each is turned into $K$ numbers by a matrix of weights:
`[B, D] @ [D, K] → [B, K]`. Here it is in the dumbest possible way, with every operation counted:
"""


# %%
def multiply_and_count(x: Tensor, w: Tensor) -> tuple[Tensor, int]:
    """x @ w, one number at a time, and how many FLOPs it took."""
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
For each of the $B \cdot K$ outputs, $D$ products are made and $D$ numbers are added to a sum that starts at zero. In
all

$$\text{FLOPs} = 2 \cdot B \cdot D \cdot K .$$

(You could save the very first addition of each sum. Nobody counts that way, and hardware does not work that way: it
does a multiplication and an addition in one step, a *fused multiply-add*.)

> **A mistake that travels.** Several popular counters report *MACs*, multiply-accumulates, and call them FLOPs. One MAC
> is two FLOPs. When two sources differ by exactly a factor of two, this is the first thing to suspect.

**Predict.** The next cell multiplies two matrices. On a CUDA GPU $B$, $D$, $K$ = 16384, 32768, 8192; on an Apple GPU,
or one with less than 12 GB, 2048, 4096, 4096; else 512, 1024, 2048. How many FLOPs is that on your machine? `5e6` means
five million.
"""

# %%
guess = None  # FLOPs

# %% tags=["item-51", "item-52"]
torch.set_float32_matmul_precision("highest")  # float32 means float32: section 4 tells of tf32
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
At one operation a second, the larger one would take you almost 279,000 years. At its peak, an H100 would be done in
nine thousandths of a second.

Against this, *elementwise* operations are small change. Adding two $m \times n$ matrices is $m \cdot n$ FLOPs, one per
element; so is a ReLU, or adding a bias, up to a small constant. A multiplication does $2D$ for each element that it
puts out, and $D$ is in the thousands. That is why one counts the multiplications and forgets the rest, and why
PyTorch's counter does so too.
"""

# %% tags=["item-53"]
year = 365.25 * 24 * 3600
assert round(2 * math.prod(lecture_sizes) / year, -3) == 279_000
assert round(2 * math.prod(lecture_sizes) / h100, 3) == 0.009

m, n = B, K
addition = m * n  # FLOPs of one bias added, or of one ReLU
assert linear_flops / addition == 2 * D
assert count_flops(lambda: torch.relu(x_large[:1] + 1)) == 0  # nobody counts these
print(f"elementwise on the output: {addition / linear_flops:.3%} of the work")

# %% [markdown]
r"""
A small share of the *work* need not be a small share of the *time*. Keep that in mind for section 6.

*Try it yourself:* halve `D` in a call of `multiply_and_count`. Then halve all three sizes. What happens to the count?

### Exercise 5.1 · FLOPs of a multiplication &nbsp; ★★☆ &nbsp; 10 minutes

Write `matmul_flops(x_shape, w_shape)`: the FLOPs of `x @ w`, from the two shapes alone. The last two dimensions of each
are the matrices. All before them are *batch* dimensions: there is one product for each combination of them, and they
broadcast, as everywhere in PyTorch: lined up from the right, a dimension that is 1 or missing on one side is repeated.
Both shapes have two dimensions or more. If the inner sizes differ, raise a `ValueError`.
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
<details><summary>Hint 2</summary><code>*batch, b, d = x_shape</code> takes a shape apart, and <code>torch.broadcast_shapes</code> tells what two batches broadcast to.</details>

**Why it matters.** The whole budget of a model, up to a training run of $10^{25}$ FLOPs, is this function added up.

## 2 · Two FLOPs per parameter and token

Read $2 \cdot B \cdot D \cdot K$ once more. $B$ is the number of tokens. $D \cdot K$ is the number of weights. So a
linear layer costs

$$\text{forward FLOPs} = 2 \cdot \text{tokens} \cdot \text{parameters},$$

because each weight takes part in one multiplication and one addition for every token. Stack layers and both sides add
up: the rule holds for the whole stack, whatever its shape.
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
# GPT-3, for every token that it reads or writes: 350 GFLOPs
assert 2 * FACTS["GPT-3 parameters"].value == 350e9

# %% [markdown]
r"""
It is the most useful rule in this course: 175 billion parameters, hence 350 GFLOPs for each token, without a look at
the architecture. But a rule of thumb has edges. This one has two.

> **Trap: not every parameter multiplies.** The table of token embeddings is *looked up*: a row is copied, and nothing
> is computed. GPT-3's table has 0.6 billion parameters and costs no FLOPs on the way in. (The layer that turns the last
> vectors into scores for each token of the vocabulary *is* a multiplication, also where it uses the same table.)

> **Trap: not every multiplication has parameters.** In attention, each of the $T$ tokens of the context is compared
> with every other. With vectors of $d$ numbers there are, in each layer, $T \times T$ scores of $d$ products (all heads
> together), and the same again for the weighted sum; lecture 04 explains attention. That is $4 T^2 d$ FLOPs without a
> single parameter, and it grows with the *square* of the context $T$.

How much is that, beside the weights? A Transformer layer of width $d$ has about $12 d^2$ of them: $4 d^2$ in attention,
$8 d^2$ in the feed-forward block.
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
    beside = 4 * context**2 * d_model
    print(
        f"context {context:>7,}: attention adds {beside / by_rule:6.1%} to 2 · tokens · parameters"
    )
    assert math.isclose(beside / by_rule, context / (6 * d_model))

assert 6 * d_model == 24_576 and round(131_072 / 24_576, 1) == 5.3

# %% [markdown]
r"""
What attention adds is $T / 6d$ of what the weights cost. For a width of 4,096 that is little at a context of 2,048, as
much again at 24,576, and at 131,072 attention is 5.3 times everything else. (A causal kernel may skip the future and
save up to half. PaLM's MFU and PyTorch's counter count in full; the FlashAttention papers count half. Say which.)

*Try it yourself:* make the model twice as wide. At which context does attention catch up now?

### Exercise 5.2 · FLOPs of a model &nbsp; ★★★ &nbsp; 20 minutes

Write `model_flops(model, batch)`: the FLOPs that the `nn.Linear` layers do when `model(batch)` runs. The layers may be
nested in other modules, at any depth. A layer that is used twice counts twice; one that is not used counts nothing.
Count each for the vectors that it *actually gets*: there may be any number of leading dimensions, or none, and they may
differ from layer to layer. Biases and everything that is not an `nn.Linear` count nothing. Leave the model as you found
it: with its hooks and no others, in its modes, its parameters untouched. (If running it updates buffers, such as the
statistics of a BatchNorm, they may stay updated.) You may rely on `model(batch)` to raise no error, and on every layer to be
called as `layer(x)`.

You need to be told when a layer runs. That is what a *forward hook* is for: PyTorch calls it after each use of a
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
handle.remove()  # from here on nobody is told
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

**Why it matters.** Many counters work like this (thop, torchinfo). PyTorch's goes one level deeper: it is told of each
*operation*, and so also sees multiplications that belong to no layer, as in attention. You can now count the linear
layers of a model that somebody else wrote, without a formula.

## 3 · Timing properly

Work over time is speed, so we need the time. That looks like two readings of a clock, and there are several ways to get
it wrong.

**A GPU is asynchronous.** Python does not wait for it. A call puts the work into a queue and returns; the GPU works
through the queue on its own. Anything that needs the numbers (`print`, `.item()`, an ordinary copy to the CPU) waits.
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
So that everybody can see it, here is a pretend GPU on a pretend clock. Queueing a call takes 10 µs. Computing takes 2
ms, and a second more for the very first call: real ones compile, load kernels, allocate memory and wake up from a low
clock.
"""


# %%
class PretendGPU:
    """Works through a queue on a clock of its own. All times in seconds."""

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
**Predict.** You read its clock, call `multiply`, and read the clock again. How many seconds do you see?
"""

# %%
guess = None  # s

# %% tags=["item-55", "error-15"]
gpu = PretendGPU()
start = gpu.clock()
gpu.multiply()
naive = gpu.clock() - start
reconcile("two readings of the clock around one call", guess, naive, "s")
assert math.isclose(naive, 10e-6)  # the time to queue it: 200 times too good

gpu.synchronize()
first_call = gpu.clock() - start
assert math.isclose(first_call, 10e-6 + 2e-3 + 1.0)  # right, and useless: it happens once

start = gpu.clock()
gpu.multiply()
gpu.synchronize()
assert math.isclose(gpu.clock() - start, 10e-6 + 2e-3)  # this is the one we want

# %% [markdown]
r"""
That is the recipe. **Warm up**: run it a few times, untimed. **Synchronize** before you read the clock, each time:
before the start, so that you do not pay for work that was queued earlier; and before the end, so that yours is done.
**Repeat**, and look at more than one number. Now for real, on your device:
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
    """The sample at 80 % over the sample at 20 %: how far apart the middle samples lie."""
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
axes = fig.add_subplot(xlabel="call", ylabel="time, of the fastest", yscale="log")
axes.plot(
    [s / min(samples) for s in samples], "o", color=plots.MEASURED, markersize=4, label="a call"
)
# The mean last, in thick dashes: it may lie on the median.
for name, style, width in (("median", "-", 1.2), ("fastest", ":", 1.5), ("mean", "--", 2.2)):
    level = numbers[name] / min(samples)
    axes.axhline(level, color=plots.INK, linestyle=style, linewidth=width, label=name)
axes.minorticks_off()
axes.set_yticks([1, 2, 5, 10, 20, 50], ["× 1", "× 2", "× 5", "× 10", "× 20", "× 50"])
axes.set_ylim(0.9, max(3, 1.5 * max(samples) / min(samples)))
axes.spines[["top", "right"]].set_visible(False)
fig.legend(loc="outside lower center", frameon=False, ncols=4)
factor = max(samples) / min(samples)
finding = f"One call, 200 times: its slowest took {factor:.1f} times as long as its fastest"
axes.set_title(finding, loc="left", fontweight="bold")
plots.show(fig, alt=f"{finding}; each call is a dot, with lines at mean, median and fastest.")

# %% [markdown]
r"""
The same multiplication, and never the same time. What disturbs it (the operating system, another program, a clock that
throttles) can only make it slower. So the distribution has a long tail on one side, and that decides what to report:

- the **median** is what you will usually live with, and one bad sample does not move it;
- the **fastest** is the best estimate of what the machine *can* do, for the disturbance is least in it;
- the **mean** is dragged along by whatever else happened;
- a measure of **spread** says whether to believe any of them. If it is large, find out why and measure again.

(Are your mean and median equal, and both far above the fastest? Then the disturbance is the rule, not the exception:
see the next paragraph.)

On a CPU there is a common reason. The work is divided among threads, one for each core, and is done when the *last* of
them is done. If a single core is busy with something else, all others wait for it. So leave one core free for the rest
of the machine. The rest of this notebook runs with that many threads: its ceilings and its roof are theirs.
"""

# %% tags=["timed"]
if device.type == "cpu":
    threads = max(1, torch.get_num_threads() - 1)
    print(
        f"threads: {torch.get_num_threads()}, spread of the middle 60 %: × {middle_spread(warm):.2f}"
    )
    torch.set_num_threads(threads)
    print(
        f"threads: {threads}, spread of the middle 60 %: × {middle_spread(time_calls(200)[10:]):.2f}"
    )
else:
    print(f"spread of the middle 60 %: × {middle_spread(warm):.2f}")

assert middle_spread([float(i) for i in range(1, 100)]) == 80 / 20  # of the samples 1 to 99

# %% [markdown]
r"""
Two more things change the answer. The first is *what you time*. `x + 1` has to find memory for its result;
`torch.add(x, 1, out=y)` has it already.

**Predict.** For a tensor of 64 MB: how many times as long does `x + 1` take as the same with `out=`? Your device's
manner of handing out memory decides.
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
    "fresh memory against memory that is there", guess, fresh.median / reused.median, "times"
)

assert big.nbytes == 64_000_000

# %% [markdown]
r"""
On a CPU, large blocks come fresh from the operating system, which has to find and clear each page when it is first
touched; that can take longer than the addition. On a GPU, PyTorch keeps memory for reuse, and the two should be about
equal. Neither is the wrong thing to measure. But say which one you did.

> **Trap.** The second is *the data*. A matrix of zeros or ones multiplies faster on a GPU than random numbers do: fewer
> bits flip, the chip draws less power, and it may clock higher. (Horace He has shown it nicely: "Strangely, Matrix
> Multiplications on GPUs Run Faster When Given *Predictable* Data".) Benchmarks with `torch.ones` and no warm-up are
> easy to find. Use random numbers, and warm up.
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
(On a CPU you will hardly see a difference, beyond the noise.)

*Try it yourself:* leave out both synchronizations in the loop over 200 calls. On a GPU, what do you get? On a CPU, why
nothing new?

### Exercise 5.3 · A benchmark &nbsp; ★★☆ &nbsp; 15 minutes

Write `benchmark(f, synchronize, clock, warmup, repeats)`: call `f()` `warmup` times without timing, then time `repeats`
further calls, each on its own, and return the median seconds of one call: from when it is made until the device is
done with it. Work that was queued before must not count, whoever queued it. `synchronize()` waits until the device is
done; `clock()` returns seconds. `warmup` may be 0; `repeats` is at least 1, and may be even. Use no other clock: the
tests bring a pretend device with a clock of its own.
"""


# %% nbgrader={"grade": false, "grade_id": "benchmark", "locked": false, "schema_version": 3, "solution": true, "task": false}
def benchmark(
    f: Callable[[], object],
    synchronize: Callable[[], None],
    clock: Callable[[], float],
    warmup: int = 2,
    repeats: int = 7,
) -> float:
    """Median seconds of one call of f, on a device that may still be at work when f returns."""
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
<details><summary>Hint 2</summary>Keep the samples in a list; <code>statistics.median</code> takes it. Where there is an even number of samples it averages the middle two.</details>

**Why it matters.** A missing `synchronize` has "sped up" many a kernel a hundredfold and more. You will catch it in
other people's numbers.
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
`course_utils.timing.benchmark` does the same, with refinements: it makes blocks of calls too short for the clock, and
on CUDA it lets the GPU itself note the time (*events*). In your own projects use `torch.utils.benchmark.Timer` (mind
that it runs on *one* CPU thread unless told otherwise) or, on GPUs, `triton.testing.do_bench`.

## 4 · What the hardware promises

Data sheets state a peak in FLOP/s. It is arithmetic, not a measurement: units × operations per tick × ticks per second.
An A100 has 108 multiprocessors; in each, the tensor cores do 1,024 fused multiply-adds of 16-bit numbers per tick, and
the ordinary cores 64 of 32-bit numbers. It ticks 1.41 billion times a second, and a fused multiply-add is 2 FLOPs. (A
multiprocessor is the GPU's version of a core; a tensor core is a unit in it that does nothing but multiply small
matrices.)
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
Sixteen times faster in bfloat16 than in float32. **There is no such thing as "the peak of a card"; there is one for
each dtype.** (Lecture 02 tells what those dtypes are. `tf32` in the table below is a float32 multiplication that rounds
its inputs to 10 bits of mantissa, to run on the tensor cores. For multiplications PyTorch does that only if you ask:
`torch.set_float32_matmul_precision("high")`. For convolutions it does so by default.)
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
assert round(1 - pcie / sxm, 2) == 0.24  # the same name on the box
assert hardware.ACCELERATORS["H100 PCIe"].multiprocessors == 114
assert hardware.ACCELERATORS["H100 SXM"].multiprocessors == 132
assert (
    hardware.peak_flops("V100 SXM2 32GB", torch.bfloat16) is None
)  # its tensor cores know fp16 only

# %% [markdown]
r"""
Two H100s differ by 24 %: the one for a PCIe slot has fewer multiprocessors than the SXM module on its own board (114
against 132), and a lower limit on its power.

And there is a factor of two in the small print. NVIDIA prints 1,979 TFLOP/s for the H100 in bfloat16, with a star:
*with sparsity*. Half of that, 989, is what it promises for matrices as you and I have them. The float32 row has no
star: 67 is 67.
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

The star means **2:4 sparsity**: of each four neighboring weights in a row, at least two are zero. Such a row is stored
as the two other values and, for each, two bits that say where it stood. The tensor core picks the two matching inputs
and does half of the multiplications. It is credited with all of them: that is the factor of two.

Why can ordinary training not have it? Its weights are dense: all of them are needed, and each step changes all of them.
Force half of them to zero, by a rule about neighbors that knows nothing of your model, and it is a different model.
And the backward pass multiplies by the *transposed* weights, whose fours run along the other dimension. The usual place
for it is inference: train densely, prune, train a little more to repair the damage, and then serve.

> **A mistake that travels.** You will read that one halves the 1,979 because "in practice only 50 % is reached". No:
> the halving is about *which matrices*. What is lost in practice comes on top of it.

### Exercise 5.4 · Prune to 2:4 &nbsp; ★★☆ &nbsp; 10 minutes

Write `prune_2_4(w)`: a copy of `w` in which, of each four neighbors along the last dimension (elements 0–3, 4–7, …),
the two with the largest *magnitude* are kept and the other two are zero. `w` is of any floating dtype of 16 bits or more,
which the result has too. It has any number of leading dimensions, or none, no dimension of size 0, and any strides; its numbers are finite. Leave
it as it is. If the last dimension is not a multiple of four, raise a `ValueError`. (Where magnitudes are equal, keep
whichever you like, but exactly two.)
"""


# %% nbgrader={"grade": false, "grade_id": "prune_2_4", "locked": false, "schema_version": 3, "solution": true, "task": false}
def prune_2_4(w: Float[Tensor, "... n"]) -> Float[Tensor, "... n"]:
    """w with the two smallest magnitudes of each four neighbors along the last dimension set to zero."""
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
<details><summary>Hint 1</summary>Make the fours a dimension of their own: <code>w.reshape(-1, 4)</code>. Then find, in each row, where the two smallest magnitudes are.</details>
<details><summary>Hint 2</summary><code>topk</code> also tells where the values stand that it finds, and can find the smallest. <code>scatter</code> returns a copy with something else at given places. Reshape back.</details>
<details><summary>What it should look like</summary>

```
w            1  -9   2   3 │ 16  15  14 -13
prune_2_4    0  -9   0   3 │ 16  15   0   0
```

</details>

**Why it matters.** It is the difference between 1,979 and 989 on a data sheet, and now you know what you would have to
do to your weights to get the larger one.

How much do the weights lose? For random ones:
"""

# %%
torch.manual_seed(0)
weights, inputs = torch.randn(512, 512), torch.randn(64, 512)
sparse = prune_2_4(weights)
energy = (sparse**2).sum() / (weights**2).sum()
error = ((inputs @ sparse.T - inputs @ weights.T).norm() / (inputs @ weights.T).norm()).item()
print(
    f"half of the weights hold {energy:.0%} of the squares; the outputs are off by {error:.0%}"
)

assert (sparse == 0).float().mean() == 0.5
assert (2 * 16 + 2 * 2) / (
    4 * 16
) == 0.5625  # stored, of the dense bytes: two values, two positions
assert 0.86 < energy < 0.88 and 0.35 < error < 0.38

# %% [markdown]
r"""
### Your own machine

What does *your* device promise? If it is in the course's table, we know. If not, the honest answer is *unknown*.

> **A mistake that travels.** Tables of peaks that fall back on 1 for an unknown device turn every utilization into a
> number of $10^{12}$ %, or quietly take the figure of a similar card. "Unknown" is an answer, and one can work with it:
> measure the fastest multiplication that the device manages, and call it what it is, a *measured ceiling*. It says how
> far you are below what is possible here, though not how far below what was promised.
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
Some CPUs have instructions for bfloat16 and are faster with it than with float32; many have none, and are much slower.
You can see which yours is.

*Try it yourself:* look up the data sheet of a card you know. Is its largest number sparse or dense? For which dtype?

## 5 · MFU: what you get of it

Now divide what you got by what was promised. **Model FLOPs utilization** (Chowdhery and others, 2022, in the PaLM
paper) is

$$\text{MFU} = \frac{\text{model FLOPs} \,/\, \text{seconds}}{\text{promised FLOP/s: dense, for the dtype in use, over all devices}} .$$

*Model* FLOPs are those that the mathematics of the model asks for. If your implementation does extra work (lecture 11
computes activations twice to save memory) that work is not counted: it takes time and does nothing for the model, and
MFU rightly goes down. (Counting it too gives *hardware* FLOPs utilization, HFU, which is flattered by waste.) MFU is
not about one operation either: it takes the time of a whole training step, with everything in it.

> **A mistake that travels.** The utilization of one matrix multiplication is often called MFU. It is useful, and we
> will measure it, but it is in practice an upper bound for the MFU of a model built from such shapes. (And the letters
> stand for *model FLOPs utilization*, whatever a blog post tells you.)

How much is good? Here is what well-known teams reached whose job it is to make this number large:
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
By the usual rule **an MFU of 0.5 or more is good**; 0.4 is what the largest runs live with; 0.05 means that there is
something to find. And 1 cannot be had, not even by a single multiplication: the best that Stas Bekman's *mamf-finder*
(github.com/stas00/ml-engineering) finds by searching many shapes is 271 TFLOP/s on an A100, 87 %, and 794.5 on an H100,
80 %. Chips throttle when they draw too much power, and data has to be fetched.

### Exercise 5.5 · Utilization from a data sheet &nbsp; ★☆☆ &nbsp; 10 minutes

Write `mfu(flops, seconds, sheet, dtype)`. `sheet` is a data sheet as printed: for each dtype the pair `(FLOP/s,
sparse)`, where `sparse` is `True` for a rate that holds for 2:4 sparse matrices only. We work with dense ones. Return
the utilization as a share (0.4, not 40), or `None` when the sheet promises nothing for that dtype. Seconds and rates are
positive. A share above 1 is returned as it is: it says that some number is wrong. Leave the sheet as it is.
"""


# %% nbgrader={"grade": false, "grade_id": "mfu", "locked": false, "schema_version": 3, "solution": true, "task": false}
def mfu(
    flops: float,
    seconds: float,
    sheet: dict[torch.dtype, tuple[float, bool]],
    dtype: torch.dtype,
) -> float | None:
    """Share of the promised dense FLOP/s for dtype; None where the sheet promises none."""
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
<details><summary>Hint 2</summary>Achieved is flops / seconds. The dense peak is half of the printed rate where that is sparse.</details>

**Why it matters.** It is one line. The three ways to get it wrong (the sparse rate, another dtype's, a made-up default)
have all been published.

Now on your machine, for the linear layer of section 1. Where the promise is unknown, we take the share of the measured
ceiling, and say so.

**Predict.** Which share of the promised peak, or of the measured ceiling, does `x_large @ w_large` reach in float32? In
percent.
"""

# %%
guess = None  # %


# %% tags=["timed"]
def utilization(work: float, seconds: float, dtype: torch.dtype) -> tuple[float, str]:
    """MFU's ratio where the peak of this device is known, else the share of its measured ceiling."""
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
And again in bfloat16. The count does not change: FLOPs do not depend on the dtype. The time and the promise do. (Where
bfloat16 is slow, the cell takes a sixteenth of the rows, and counts that.)
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
Look at both numbers. On a card with a promised peak, bfloat16 is faster and its *utilization* is often lower: the
promise grew even more than the speed. (Against a measured ceiling the two shares tell less: each dtype is compared with
its own best.) Time is what you pay for; utilization tells how much is left to gain.

These were single multiplications. Here is a model, so that this is an MFU in earnest, though of the forward pass only:
your `model_flops` over your `benchmark`.
"""

# %%
del x_large, w_large, x16, w16  # gigabytes on a GPU, and no longer needed

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
The two norms and the GELU do next to no FLOPs, and yet they take time. How much? Here is the GELU alone, on the numbers
that it gets in the model:
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
Compare the two shares. Section 6 explains the difference. Another question first: how large must a multiplication be to
be efficient?

### From tiny to large

Here are multiplications of two $n \times n$ matrices, into memory that is already there, in both dtypes. We ask what
the machine *can* do, so we take the fastest sample. Should one of them beat the measured ceiling of section 4, then
that was no ceiling, and we raise it.

**Predict.** The smallest is 32 × 32 on a CPU and 256 × 256 on a GPU. How many percent of the peak (or ceiling) does it
reach in float32?
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
Why not all of it? On a GPU, one reason can be shown: **power**. A promised peak belongs to a clock, and a chip that draws all the
power it may draw lowers its clock. Zeros draw less (section 3). What they gain over random numbers is what power costs; what
is missing even with zeros, the program that multiplies loses.
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
    print("no GPU: a CPU hardly minds what it multiplies")

# %% [markdown]
r"""
Small multiplications waste a machine: each costs a few microseconds to start, and there is not enough work to share out
among its cores. A model of many small layers has a low MFU for that reason alone, whatever its code looks like. (A
curve that sinks again at the right end is common on CPUs: the matrices outgrow the caches, or the chip gets warm.)

*Try it yourself:* sizes that are not powers of two, 1,000 or 1,023. Do they cost you anything?

## 6 · The roofline

A processor does two things: it computes, and it moves data from memory to where it computes. Both take time, and they
overlap, so the *slower one decides*. Which one that is depends on a single property of the work, its **arithmetic
intensity**: how many FLOPs it does for each byte that it has to move.

$$\text{intensity} = \frac{\text{FLOPs}}{\text{bytes moved}} \qquad\qquad \text{FLOP/s} \le \min(\text{peak},\; \text{intensity} \cdot \text{bandwidth})$$

Drawn over the intensity, that minimum is a roof: a slope, where memory limits, and a flat part, where arithmetic does
(Williams, Waterman and Patterson, 2009). They meet at the **ridge point**, intensity = peak / bandwidth.

Take the addition of two tensors of float32. For each element it reads 4 + 4 bytes, writes 4, and does one FLOP. So
while one byte is moved it does 1/12 FLOP. In that time an H100 could do 20 in float32, and its tensor cores 295 in
bfloat16.
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
279 GFLOP/s, 0.4 % of the peak, and *nothing is wrong with it*: no code that adds numbers from memory could be faster.
That is what a roofline is for. It tells "slow" from "as fast as it goes".

Here is the answer from section 5: norms and GELU do about one FLOP for each number that they fetch, so they run at the
speed of memory, or below it.

For `[B, D] @ [D, K]` the least one has to move is each matrix once: read `x` and `w`, write `y`. There is a lot to
gain, since each number that was fetched is used many times: an element of `x` in $K$ products, an element of `w` in
$B$.

### Exercise 5.6 · Intensity, and what limits &nbsp; ★★☆ &nbsp; 10 minutes

Write two functions. `arithmetic_intensity(b, d, k, bytes_per_element)`: the FLOP per byte of a multiplication `[b, d] @
[d, k]` in which each of the three matrices is moved once. And `bound(intensity, peak, bandwidth)`: `"memory"` where
moving the data takes longer than computing, else `"compute"`; `peak` in FLOP/s, `bandwidth` in B/s. All numbers are
positive.
"""


# %% nbgrader={"grade": false, "grade_id": "arithmetic_intensity", "locked": false, "schema_version": 3, "solution": true, "task": false}
def arithmetic_intensity(b: int, d: int, k: int, bytes_per_element: int) -> float:
    """FLOP per byte of [b, d] @ [d, k] when x and w are read once and y is written once."""
    ### BEGIN SOLUTION
    moved = bytes_per_element * (b * d + d * k + b * k)
    return 2 * b * d * k / moved
    ### END SOLUTION


def bound(intensity: float, peak: float, bandwidth: float) -> str:
    """ "memory" where moving the data takes longer than computing, else "compute"."""
    ### BEGIN SOLUTION
    return "memory" if intensity * bandwidth < peak else "compute"
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_arithmetic_intensity", "locked": true}
check("arithmetic_intensity")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Three matrices are moved, of b·d, d·k and b·k elements. The work is 2·b·d·k.</details>
<details><summary>Hint 2</summary>One FLOP takes 1 / peak seconds. The 1 / intensity bytes that belong to it take 1 / (intensity · bandwidth).</details>

**Why it matters.** Before you optimize, ask which of the two it is. A faster chip does nothing for work that waits for
memory, and fewer FLOPs do nothing either.

The formula says more than it seems to. For square matrices it is $n/3$ in 2-byte numbers (and $n/6$ in float32):
multiplications get *better* the larger they are. And for a batch of $B$ tokens against a large weight matrix it is
nearly $B$ itself, as long as $B$ is small beside $D$ and $K$:
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
This one line explains much of how language models are trained and served. In training, thousands of tokens pass through
the weights at once, and arithmetic limits. When a model *writes*, it makes one token at a time: 1 FLOP per byte, three
hundred times below the ridge. The card spends its time fetching weights, and that is why servers collect many users'
requests into one batch.

*Try it yourself:* how many tokens does it take on an A100, or on a B200? (`hardware.ACCELERATORS` has their
bandwidths.)

## 7 · The result: your machine

Four pieces of work, from the lowest intensity to the highest: an addition, a matrix times a vector, a small
multiplication, a large one. First the predictions, from your functions and two numbers about the machine, its roof and
its bandwidth. A byte that is copied is read once and written once, so it counts twice.

**Predict.** How many times more FLOP/s does the large multiplication reach than the addition?
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
Then the measurements. We ask what the machine can do, so we take the fastest sample (section 3), into memory that is
already there.
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
reconcile("large matmul against addition, in FLOP/s", guess, factor, "times")

# %% tags=["item-60", "timed"]
shares = {name: measured[name] / predicted[name] for name in measured}
findings = [f"{name}: {share:.0%}" for name, share in shares.items()]
finding = f"Of what the roof allows – {'; '.join(findings)}"
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
Read it from left to right. The addition and the matrix times a vector lie on the slope, or somewhat below it: they run
about as fast as memory delivers, at a small share of the peak. (They may even lie a little *above* the slope: the
bandwidth was measured with a copy, and writing can cost more than reading.) The large multiplication should be close
under the roof. On a CPU with unknown peak that is no miracle, since the roof is itself the best multiplication so far.

The small multiplication is the odd one. Often it lies far *below* the roof: it is over before it has begun, and what
you measure is the cost of starting it, a few microseconds, and cores without enough to do. It may also lie above the
slope: 64 × 64 numbers stay in the cache, which is faster than memory. The roofline knows of neither. It is a bound with
assumptions, and a point off the roof is a question, with an answer to be found.

That is your answer to both halves of the question. *How fast could it be?* The roof above its intensity. *How fast is
it?* The filled mark. Over a whole training step, the share of the flat roof that is reached is the MFU; raising it is
what much of the rest of this course is for.

Now move it. Your measurements stay, and the product `[m, k] @ [k, n]` moves under the roof: your machine's first, then
any card's. Take $m$ for the tokens at once and $k$ and $n$ for the sides of a weight matrix. From which $m$ on is it
compute-bound here, and from which on an H100? And with $k = 16$, why does no $m$ help the H100?
"""

# %% tags=["timed"]
from course_utils.widgets import roofline

here = hardware.Accelerator("this machine", {dtype: roof}, bandwidth, None, None, "measured")
roofline.explore([(name, intensities[name], measured[name]) for name in measured], card=here)

# %% [markdown]
r"""
## Takeaways

**Mechanics.** `[B, D] @ [D, K]` is 2·B·D·K FLOPs; everything elementwise is one per element. A forward pass is 2 ×
tokens × parameters, plus attention's $4T^2d$ per layer and sequence, minus look-ups. Time with warm-up,
synchronization, repetition, random data; report the median and the spread. MFU is model FLOPs per second over the
*dense* peak of the *dtype in use*. A roof is min(peak, intensity × bandwidth).

**Mindset.** Say the number first: FLOPs, bytes, the bound, the seconds. Then measure. When they differ by two, look for
MACs or sparsity; by a hundred and more, for a missing synchronization. Where you do not know a peak, say "unknown" and
measure a ceiling.

**Intuitions.** A promised peak is a bound that nobody reaches: the best multiplications get 80 to 87 %, a well-tuned
training run 40 to 50 %. Elementwise operations are slow for want of bandwidth, not of FLOP/s. Large multiplications are
efficient, small ones are all overhead. One token at a time is memory-bound, thousands are compute-bound.

Next: [06 · Gradients and 6N](../06_gradients_and_6n/06_gradients_and_6n.ipynb). The forward pass is 2 × tokens × parameters; what does the backward pass cost?
"""

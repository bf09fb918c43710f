# %% [markdown]
r"""
# 10 · Mixed precision

[← 09 · The training loop](../09_training_loop/09_training_loop.ipynb) &nbsp;|&nbsp; [11 · Memory →](../11_memory/11_memory.ipynb)

> **Which numbers need 32 bits, and which need only 16, or 8?**

A 16-bit number takes half the bytes of a 32-bit one, and a GPU multiplies it many times as fast. Lecture 02 showed what
you give up: `float16` lacks range, and `bfloat16` lacks precision. *Mixed* precision keeps the speed and gives up
neither range nor precision where it matters: each number gets the format that it needs. In this lecture you'll train
one network four times: in `float32`; in `bfloat16` with your own master weights; in `float16` with your own loss
scaler; and in `bfloat16` alone. The first three end in the same place. The fourth gets stuck, and you'll have predicted
why.
"""

# %%
import math
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor, nn

from course_utils import device as devices
from course_utils import hardware, plots, timing
from course_utils.memory import saved_bytes
from course_utils.predict import calibration, reconcile, record
from course_utils.progress import show_progress
from course_utils.units import readable
from course_utils.testing import check

device = devices.pick_device()
if device.type == "cpu":
    torch.set_num_threads(1)  # the tensors here are small: a second thread would mostly wait
print(devices.describe(device))
show_progress()

# %% [markdown]
r"""
## 1 · What 16 bits gain and lose

An H100 multiplies numbers in narrower formats faster: `float32` itself doesn't run on the tensor cores, but all of the
narrower formats do. These are dense rates, from the table in lecture 05:
"""

# %% tags=["item-87"]
from course_utils.facts import FACTS

h100 = hardware.ACCELERATORS["H100 SXM"]
for kind in (torch.float32, "tf32", torch.bfloat16, torch.float16, torch.float8_e4m3fn):
    rate = h100.peak[kind] / h100.peak[torch.float32]
    print(f"{str(kind).removeprefix('torch.'):>14}: {rate:5.1f} × the FLOP/s of float32")

assert round(h100.peak[torch.bfloat16] / h100.peak[torch.float32], 1) == 14.8
assert h100.peak[torch.float16] == h100.peak[torch.bfloat16]
assert round(h100.peak[torch.float8_e4m3fn] / h100.peak[torch.bfloat16]) == 2
assert torch.bfloat16.itemsize == torch.float32.itemsize / 2  # and half the bytes to move
assert 1 + 8 + FACTS["tf32 mantissa"].value == 19  # bits of a tf32: sign, exponent, mantissa

# %% [markdown]
r"""
Almost all the work of a model is in its matrix products, so almost all of it can run at the higher rate of a narrower
format. (With `tf32`, the `float32` inputs of a product are rounded to 19 bits on their way into the tensor core. That's
faster but saves no memory.) What about the device that this notebook runs on?
"""

# %% tags=["timed", "folded"]
n = 4_096 if devices.on_gpu(device) else 512
generator = torch.Generator().manual_seed(0)
left, right = (torch.randn(n, n, generator=generator).to(device) for _ in range(2))
seconds = {
    dtype: timing.benchmark(lambda: a @ b, device=device).median
    for dtype in (torch.float32, torch.bfloat16)
    for a, b in [(left.to(dtype), right.to(dtype))]
}
gain = seconds[torch.float32] / seconds[torch.bfloat16]
print(f"a product in bfloat16 is {gain:.2g} times as fast as in float32")
record("the speed in bfloat16", gain, "times that in float32")

# %% [markdown]
r"""
(On a CPU this depends on the instruction set. A CPU without `bfloat16` instructions converts each number first, so it's
slower in `bfloat16` than in `float32`.)

What's the cost? The inputs and the result of a product are rounded to `bfloat16`, whose mantissa has seven bits. In
between, the sums are accumulated in `float32`, so the relative error hardly depends on their length. (Try another $n$.)

**Predict.** For normally distributed matrices, what's the relative error of a product in `bfloat16`, in percent? (It's
the *norm* of the error, the square root of the sum of its squares, divided by the norm of the exact result.)
"""

# %%
guess = None  # %


# %% tags=["item-87"]
def relative_error(approximation: Tensor, exact: Tensor) -> float:
    """The length of the error, relative to the length of the exact result."""
    return ((approximation.cpu().double() - exact).norm() / exact.norm()).item()


exact = left.cpu().double() @ right.cpu().double()
errors = {
    dtype: relative_error(left.to(dtype) @ right.to(dtype), exact)
    for dtype in (torch.float32, torch.float16, torch.bfloat16)
}
reconcile("the error of a product in bfloat16", guess, 100 * errors[torch.bfloat16], "%")
for dtype, error in errors.items():
    print(f"{str(dtype).removeprefix('torch.'):>9}: {error:.5%}")

assert errors[torch.float32] < 1e-5
assert round(100 * errors[torch.bfloat16], 1) == 0.3
assert errors[torch.float16] < errors[torch.bfloat16] / 4  # three more bits of mantissa

# %% [markdown]
r"""
As lecture 02 showed, such an error is small compared with the noise that comes from sampling a batch. So use 16 bits
for multiplications.

But `bfloat16` isn't enough for numbers that change a little again and again: the *weights* and the optimizer's
*moments*, which are running averages (lecture 08). When you add a small number to a large one, the small one may be
rounded away, and because the error has the same direction at every step, it doesn't average out. Adam's second moment,
for instance, should shrink by 0.1% per step while the gradients are 0. Neighbors in `bfloat16` are 0.4 to 0.8% apart,
so the second moment is always rounded back to its old value:
"""


# %%
def forget(dtype: torch.dtype, steps: int = 1_000) -> float:
    """Adam's second moment after one gradient of 1 and `steps` gradients of 0."""
    weight = nn.Parameter(torch.ones(1, dtype=dtype, device=device))
    optimizer = torch.optim.AdamW([weight], lr=1e-3)
    for gradient in [1.0] + [0.0] * steps:
        weight.grad = torch.full_like(weight, gradient)
        optimizer.step()
    return optimizer.state[weight]["exp_avg_sq"].item()


averages = {
    dtype: (forget(dtype, 0), forget(dtype)) for dtype in (torch.float32, torch.bfloat16)
}
for dtype, (before, after) in averages.items():
    print(f"{str(dtype).removeprefix('torch.'):>9}: {before:.6f} → {after:.6f}")

assert math.isclose(averages[torch.float32][1], 0.001 * 0.999**1_000, rel_tol=1e-3)
assert averages[torch.bfloat16][1] == averages[torch.bfloat16][0]  # it never forgets
assert torch.finfo(torch.bfloat16).eps == 2**-7  # 0.8% of 1, and 0.4% of a number just below 2

# %% [markdown]
r"""
> **Trap: low precision isn't mixed precision.** It's tempting to think that mixed precision means calling
> `model.bfloat16()`, and that training then takes half the memory and a fraction of the time. That's *low* precision,
> the fourth of our four runs. What makes precision *mixed* is what that claim leaves out: weights and moments in
> `float32`, and for `float16` a scaled loss.

*Try it yourself:* run `forget` with `float16`. Then use `betas=(0.9, 0.95)`, a common choice for language models: does
the second moment in `bfloat16` shrink now?

## 2 · The lost update

An update $u$ is added to a weight $w$. If $u$ is less than half the gap between $w$ and its neighbor in the direction
of the update, then $w + u$ rounds back to $w$: the update is lost to rounding. We'll say that it's *swallowed*.
(Numerical analysts call this *swamping*.)

### Exercise 10.1 · The largest swallowed update &nbsp; ★★☆ &nbsp; essential &nbsp; 15 minutes

Write `largest_swallowed_update(w, dtype)`. It returns the largest number $u$ representable in `dtype` for which
`w + u`, rounded to `dtype`, is still `w`. Return it as a Python float or as a 0-dimensional tensor. `dtype` is
`torch.float16`, `torch.bfloat16` or `torch.float32`; `w` is positive and representable in `dtype`, large enough that
nothing here is subnormal and small enough that nothing is infinite. Don't forget ties: a sum exactly halfway between
two neighbors is rounded to the *even* one, whose last bit is 0. That may or may not be `w`.

`torch.nextafter(x, y)` is the neighbor of `x` in the direction of `y`; both are tensors of the same dtype.
"""


# %% nbgrader={"grade": false, "grade_id": "largest_swallowed_update", "locked": false, "schema_version": 3, "solution": true, "task": false}
def largest_swallowed_update(w: float, dtype: torch.dtype) -> float:
    """The largest u, representable in dtype, for which w + u rounds back to w."""
    ### BEGIN SOLUTION
    weight = torch.tensor(w, dtype=dtype)
    above = torch.nextafter(weight, torch.tensor(math.inf, dtype=dtype))
    update = (above - weight) / 2
    if weight + update != weight:  # the tie rounds up: take the number below
        update = torch.nextafter(update, torch.zeros_like(update))
    return update.item()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_largest_swallowed_update", "locked": true}
check("largest_swallowed_update")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>The gap above <code>w</code> is its upper neighbor minus <code>w</code>. Which updates
are certain to be swallowed, and for which one does it depend on <code>w</code>?</details>
<details><summary>Hint 2</summary>You don't have to look at bits to know which way a tie goes: add, and see. But add
<em>tensors of that dtype</em>; Python's floats have 64 bits.</details>

**Why it matters.** In `bfloat16`, every update below $2^{-9}$ (0.2%) of the weight is swallowed, and none above
$2^{-8}$ (0.4%). In section 7 you'll see a training run in which most updates are too small.
"""

# %%
for w in (1.0, 1.25, 1.9921875, 0.03, 40.0):
    w = torch.tensor(w).bfloat16().item()
    share = float(largest_swallowed_update(w, torch.bfloat16)) / w
    print(f"at {w:<14} updates up to {share:.2%} of the weight")
    assert 2**-9 <= share <= 2**-8

# %% [markdown]
r"""
Now you can predict how a training run fails. Take 256 weights that start at 0. Each has its own target, drawn from a
normal distribution. The loss is the sum of all distances, so each gradient is +1 or −1, and SGD with a learning rate of
0.001 tries to move each weight by 0.001 per step. (Adam's steps are similar: about as large as the learning rate,
whatever the size of the gradient.)

**Predict.** In `bfloat16` every weight with a distant target gets stuck on the way, at the same absolute value. Which
one?
"""

# %%
guess = None  # the absolute value


# %% tags=["item-87", "error-21"]
class Weights(nn.Module):
    """256 weights that start at 0."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.zeros(256, device=device))


target = torch.randn(256, generator=torch.Generator().manual_seed(0)).to(device)
steps, lr = 3_500, 1e-3


def distance(model: nn.Module, _: object = None) -> Tensor:
    """The loss, in float32 whatever the dtype of the weights."""
    return (next(model.parameters()).float() - target).abs().sum()


def walk(dtype: torch.dtype) -> Tensor:
    """The weights after each step in dtype: float32[step, weight]."""
    model = Weights().to(dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    path = []
    for _ in range(steps):
        optimizer.zero_grad()
        distance(model).backward()
        optimizer.step()
        path.append(model.w.detach().float().cpu().clone())
    return torch.stack(path)


paths = {"float32": walk(torch.float32), "bfloat16": walk(torch.bfloat16)}
doublings = [2.0**power for power in range(-10, 10)]
stop = next(w for w in doublings if float(largest_swallowed_update(w, torch.bfloat16)) > lr)
reconcile("the weights stop at", guess, paths["bfloat16"][-1].abs().max().item(), "")

far = target.cpu().abs() > stop
print(f"{far.sum()} of 256 targets are beyond {stop}")
assert stop == 0.5
assert (paths["bfloat16"][-1][far].abs() == stop).all()  # every one of them is stuck there
assert (paths["float32"][-1] - target.cpu()).abs().max() < 2 * lr  # all have arrived

# %% [markdown]
r"""
At that value, the gap between neighboring `bfloat16` numbers doubles. Half of the gap is now more than the step, so
nothing moves any further. There's no warning and no NaN, only a loss that stops falling, which can also happen for
harmless reasons.

Stuck weights are hard to diagnose: a weight that's stuck at one *learning rate* moves at another. With warm-up and
decay the learning rate is small at the beginning and at the end of training, and that's when most updates are lost.

*Try it yourself:* where do the weights stop with a learning rate of 0.003? And where would they in `float16`, with
0.001? Does any of them get that far? Predict it with your function, then run `walk`, which is defined in the cell
above. (It reads the global `lr`; set that back to `1e-3` afterward.)

## 3 · Master weights

The remedy was published for `float16` ([Micikevicius and others, 2017](https://arxiv.org/abs/1710.03740)), and it works
for `bfloat16` too. **Master weights** (lecture 00's *master copy*) are a `float32` copy of the weights; the updates are
added to them, and the forward and backward passes use a copy that's rounded to 16 bits:
"""

# %% [markdown]
r"""
```mermaid
flowchart LR
  accTitle: A step with master weights
  accDescr: The float32 master weights are rounded to bfloat16 weights; these compute loss and bfloat16 gradients; the gradients, as float32, update the master weights.
  M["master weights, float32"] -->|round| W["weights, bfloat16"]
  W -->|forward, backward| G["gradients, bfloat16"]
  G -->|optimizer, in float32| M
```
"""

# %% [markdown]
r"""
An update that's too small for the 16-bit weight isn't lost: such updates add up in the master weight until the rounded
weight changes.

### Exercise 10.2 · Training with master weights &nbsp; ★★★ &nbsp; essential &nbsp; 20 minutes

Write `train_with_master_weights(model, make_optimizer, batches, loss_of)`. `model` is in `float32` at first; train it
like this:

1. Copy each parameter: the copies are the masters, in `float32` and in the order of `model.parameters()`. Then convert
   the model to `bfloat16`, in place. (Keep to this order, so that the masters start from the numbers *before*
   rounding.)
2. `make_optimizer(masters)` returns the optimizer. Call it once; the masters are the optimizer's only parameters.
3. For each batch, call `loss_of(model, batch)` once; it returns the loss, a tensor. Compute the gradients of the
   `bfloat16` parameters, from this batch alone; give them to the masters as `float32`; let the optimizer step; and copy
   the masters, rounded, into the parameters.

Return two lists: the losses as Python floats, and the masters (or copies of them). At the end the model's parameters
contain the final masters, rounded; the parameters are still the same objects, and the buffers keep the values that the
forward pass gave them. `batches` may be any iterable, even an empty one. You may rely on every parameter getting a
gradient.
"""


# %% nbgrader={"grade": false, "grade_id": "train_with_master_weights", "locked": false, "schema_version": 3, "solution": true, "task": false}
def train_with_master_weights(
    model: nn.Module,
    make_optimizer: Callable[[list[Tensor]], torch.optim.Optimizer],
    batches: Iterable[Any],
    loss_of: Callable[[nn.Module, Any], Tensor],
) -> tuple[list[float], list[Tensor]]:
    """Train model in bfloat16 with float32 master weights; return the losses and the masters."""
    ### BEGIN SOLUTION
    masters = [parameter.detach().clone() for parameter in model.parameters()]
    model.bfloat16()
    parameters = list(model.parameters())
    optimizer = make_optimizer(masters)
    losses = []
    for batch in batches:
        loss = loss_of(model, batch)
        gradients = torch.autograd.grad(loss, parameters)
        for i in range(len(masters)):
            masters[i].grad = gradients[i].float()
        optimizer.step()
        for i in range(len(masters)):
            parameters[i].data.copy_(masters[i])
        losses.append(loss.item())
    return losses, masters
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_train_with_master_weights", "locked": true}
check("train_with_master_weights")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>A master is <code>parameter.detach().clone()</code>. The only other thing that the optimizer needs is
the master's <code>.grad</code>, which you may set yourself.</details>
<details><summary>Hint 2</summary><code>torch.autograd.grad(loss, parameters)</code> returns the gradients and
accumulates nothing. With <code>loss.backward()</code>, call <code>model.zero_grad()</code> before it. To write into a
parameter: <code>with torch.no_grad(): parameter.copy_(master)</code>.</details>

**Why it matters.** The optimizers of Megatron (`Float16OptimizerWithFloat16Params`) and DeepSpeed (`BF16_Optimizer`),
two libraries for training large language models, do the same internally.
"""

# %%
model = Weights()
trail: list[Tensor] = []


def distance_and_record(model: nn.Module, _: object) -> Tensor:
    trail.append(next(model.parameters()).detach().float().cpu())
    return distance(model)


losses, (master,) = train_with_master_weights(
    model, lambda masters: torch.optim.SGD(masters, lr=lr), range(steps), distance_and_record
)
paths["bfloat16 with master weight"] = torch.stack(trail)
alone = (paths["bfloat16"][-1] - target.cpu()).abs().sum()
print(f"loss: {losses[0]:.1f} → {losses[-1]:.1f}; in bfloat16 alone it ends at {alone:.1f}")

assert (master - target).abs().max() < 3 * 2**-8  # nearly where float32 ends …
assert model.w.dtype == torch.bfloat16 and torch.equal(model.w, master.bfloat16())

# %%
which = int((target.cpu() - 1.6).abs().argmin())  # a weight whose target is about 1.6
lonely = paths["bfloat16"][:, which]
climbing = lonely[(lonely > 0.25) & (lonely < 0.5)]
assert (climbing.diff() == 2**-9).all() and 1.9 * lr < 2**-9  # steps of nearly 2 · lr

# A wide line below a narrow one, so that both show where they coincide.
looks: dict[str, dict[str, Any]] = {
    "float32": {"color": plots.CONTEXT, "linewidth": 7},
    "bfloat16": {"color": plots.HIGHLIGHT, "linewidth": 2.5},
    "bfloat16 with master weight": {"color": plots.DATA, "linewidth": 2},
}
with plots.styled():
    fig = Figure(figsize=(8.9, 4.0), layout="constrained")
    axes = fig.add_subplot(xlabel="step", ylabel="weight", xlim=(0, 3_500))
    for name, path in paths.items():
        axes.plot(path[:, which].tolist(), label=name, **looks[name])
    axes.axhline(
        stop, color=plots.PREDICTED, linestyle="--", linewidth=1.6, label="predicted stop"
    )
    axes.grid(True)
    axes.legend(frameon=False, loc="center right", bbox_to_anchor=(1, 0.62))
    finding = (
        f"In bfloat16 alone the weight stops at {stop}, as predicted; the other two arrive"
    )
    axes.set_title(finding, loc="left", weight="bold", size=12)
plots.show(
    fig,
    alt=f"One weight over 3,500 steps of 0.001. In float32 and with a master weight it rises to its target "
    f"of {target[which].item():.2f}; in bfloat16 alone it stops at {stop}.",
)

# %% [markdown]
r"""
Look closely at the stuck weight before it stops: between 0.25 and 0.5 it rises nearly *twice* as fast. A step of 0.001
is just over half a gap there, so it's rounded up to a whole one. (Stochastic rounding, from lecture 02, is another
remedy. It takes no extra bytes, but adds noise.)

The master weight ends slightly off its target, because the loss is computed from the rounded copy: as soon as *that*
starts to jump back and forth between the two numbers around the target, the gradient alternates in sign. Here that's
the only cost in accuracy.

What does it cost in bytes? Lecture 00 arrived at 16 per parameter. AdamW keeps two moments for each parameter (lecture
08), in the dtype of the parameter it's given; let's make these tensors and count:
"""


# %% tags=["item-87"]
def bytes_per_parameter(model: nn.Module, masters: Iterable[Tensor] = ()) -> float:
    """Bytes per parameter that are kept between two steps of AdamW, including gradients."""
    parameters, masters = list(model.parameters()), list(masters)
    gradients = [torch.zeros_like(p) for p in parameters]
    stepped = masters or parameters
    for tensor in stepped:
        tensor.grad = torch.zeros_like(tensor)
    optimizer = torch.optim.AdamW(stepped)
    optimizer.step()
    averages = [optimizer.state[t][name] for t in stepped for name in ("exp_avg", "exp_avg_sq")]
    kept = [*parameters, *gradients, *masters, *averages]
    return sum(t.numel() * t.element_size() for t in kept) / sum(p.numel() for p in parameters)


layer = nn.Linear(300, 200)
copies = [p.detach().clone() for p in layer.parameters()]
costs = {
    "float32": bytes_per_parameter(nn.Linear(300, 200)),
    "bfloat16 with float32 masters": bytes_per_parameter(layer.bfloat16(), copies),
    "bfloat16 alone": bytes_per_parameter(nn.Linear(300, 200).bfloat16()),
}
for name, cost in costs.items():
    print(f"{name:>30}: {cost:g} bytes per parameter")


assert costs["float32"] == 4 + 4 + (4 + 4) == 16
assert costs["bfloat16 with float32 masters"] == 2 + 2 + 4 + (4 + 4) == 16
assert costs["bfloat16 alone"] == 2 + 2 + (2 + 2) == 8

# %% [markdown]
r"""
It's sixteen, the same as with `float32` throughout (if `master.grad` doesn't outlive the step). Mixed precision makes
training *faster* and halves the activations, though with a small batch, autocast's copies of the weights outweigh that
(section 4). But the weights, gradients and optimizer state take as much memory as before.

> **Trap: the gradient that's stored twice.** `master.grad` is a `float32` copy of the gradient, another 4 bytes for as
> long as it exists. A library can convert one tensor at a time, or convert inside the optimizer's kernel. If gradients
> are *accumulated* in `float32` over many small batches, count 18 bytes instead of 16: 4 for the gradient, not 2.

*Try it yourself:* halve `lr`, double `steps`, and run sections 2 and 3 again; the assert about 0.5 will fail.
Where does the weight stop now, and how fast does it rise before that?

### Exercise 10.3 · Keep what was lost (optional) &nbsp; ★★☆ &nbsp; 10 minutes

A master weight costs four bytes. You can get the same effect for two, because you can compute what rounding loses: it's
the difference between what you wanted to add and the actual change in the weight. Keep it in a second tensor of the
same dtype, and add it next time. (This is William Kahan's compensated summation, from 1965.)

Write `compensated_add(weight, lost, update)`. It returns two new tensors:

- `new_weight`: `weight` plus `update` plus what was `lost` before, rounded to the dtype of `weight`;
- `new_lost`: what that rounding lost, so that `new_weight + new_lost` is the exact sum.

All tensors, including the two new ones, have the same dtype (floating-point, 16 or 32 bits), shape and device. (The
check also uses the meta device, whose tensors have no values to read.) Don't change the arguments. You may rely on two
things. First, `weight` is 0, or it's larger in magnitude than the sum of `update` and `lost`. Second, that sum is
itself representable in the dtype (in real training it gets rounded a little, which loses nothing important), and
`float64` has enough digits to add the three numbers exactly, in any order.
"""


# %% nbgrader={"grade": false, "grade_id": "compensated_add", "locked": false, "schema_version": 3, "solution": true, "task": false}
def compensated_add(
    weight: Float[Tensor, "*shape"],
    lost: Float[Tensor, "*shape"],
    update: Float[Tensor, "*shape"],
) -> tuple[Float[Tensor, "*shape"], Float[Tensor, "*shape"]]:
    """weight + update + lost, rounded, and what the rounding lost; all in one dtype."""
    ### BEGIN SOLUTION
    wanted = update + lost
    new_weight = weight + wanted
    return new_weight, wanted - (new_weight - weight)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_compensated_add", "locked": true}
check("compensated_add")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Two small numbers are to be added to a large one. Each alone may be swallowed even though
their sum isn't: in which order do you add?</details>
<details><summary>Hint 2</summary>How far did the weight move, and how far should it have moved? Here the
format holds both exactly, and their difference too, even though <code>new_weight</code> isn't the exact sum.</details>

**Why it matters.** Compensation takes two bytes instead of a master weight's four, and it works for Adam's moments as
well. You can use the trick wherever a sum of many terms is kept in a narrow format: running means, large counters, the
total energy in a simulation.

### Do the compensated weights reach their targets? (optional)

Here's the run of section 2 in `bfloat16` again, now with your `compensated_add`:
"""

# %% tags=["item-87"]
weight = torch.zeros(256, dtype=torch.bfloat16, device=device)
lost = torch.zeros_like(weight)
trail = []
for _ in range(steps):
    update = -lr * (weight.float() - target).sign()
    weight, lost = compensated_add(weight, lost, update.bfloat16())
    trail.append(weight.float().cpu())
paths["bfloat16, compensated"] = torch.stack(trail)

ends = {name: (p[-1] - target.cpu()).abs().max().item() for name, p in paths.items()}
print("distance of the worst weight from its target, at the end:")
for name, miss in ends.items():
    print(f"{name:>27}: {miss:.4f}")

assert ends["bfloat16"] > 1
assert all(ends[name] < 0.02 for name in ends if name != "bfloat16")

# %% [markdown]
r"""
## 4 · Autocast

You could convert tensors to `bfloat16` by hand, at each operation. **Autocast** chooses a dtype for each operation and
converts the inputs. With it the model *stays* in `float32`, so its parameters are their own master weights, and
operations that benefit from 16 bits get 16-bit copies of their inputs.
"""

# %% tags=["item-87"]
linear = nn.Linear(8, 3, device=device)
x = torch.randn(4, 8, device=device)
with torch.autocast(device.type, dtype=torch.bfloat16):
    y = linear(x)  # lowered
    loss = F.mse_loss(y, torch.zeros_like(y))  # raised again
loss.backward()  # outside: each operation's backward pass uses the dtype of its forward pass

assert y.dtype == torch.bfloat16 and loss.dtype == torch.float32
assert linear.weight.grad is not None
assert linear.weight.dtype == linear.weight.grad.dtype == torch.float32

# %% [markdown]
r"""
Which operations get 16-bit inputs? PyTorch has a list for each type of device, and *the lists differ*. This is a
summary for PyTorch 2.13:

| operation | on a CPU | on CUDA |
|---|---|---|
| matrix products: `@`, `linear`, convolutions, attention, `einsum` | 16 bits | 16 bits |
| losses: `mse_loss`, `cross_entropy`, … | `float32` | `float32` |
| `softmax`, `layer_norm`, `exp`, `log`, `pow`, `sum`, `cumsum`, norms | as its input | `float32` |
| everything else: `relu`, `gelu`, `+`, `*`, … | as its input (the wider of two) | the same |
| `float64` numbers, `out=`, in-place operations | unchanged | unchanged |

The third row matters: `softmax` or `layer_norm` of 16-bit numbers returns 16 bits on a CPU and 32 on CUDA. What does
your device do?
"""

# %% tags=["item-87", "folded"]
wide = torch.randn(4, 4, device=device)
short = wide.bfloat16()
f32, b16 = torch.float32, torch.bfloat16
operations: dict[str, tuple[Callable[[], Tensor], torch.dtype, torch.dtype]] = {
    "a product of float32": (lambda: wide @ wide, b16, b16),
    "einsum of float32": (lambda: torch.einsum("ij,jk->ik", wide, wide), b16, b16),
    "attention of float32": (
        lambda: F.scaled_dot_product_attention(wide[None], wide[None], wide[None]),
        b16,
        b16,
    ),
    "mse_loss of bfloat16": (lambda: F.mse_loss(short, short), f32, f32),
    "cross_entropy of bfloat16": (lambda: F.cross_entropy(short, wide.argmax(1)), f32, f32),
    "softmax of bfloat16": (lambda: short.softmax(dim=-1), b16, f32),
    "layer_norm of bfloat16": (lambda: F.layer_norm(short, (4,)), b16, f32),
    "exp of bfloat16": (lambda: short.exp(), b16, f32),
    "sum of bfloat16": (lambda: short.sum(), b16, f32),
    "norm of bfloat16": (lambda: torch.linalg.vector_norm(short), b16, f32),
    "relu of bfloat16": (lambda: short.relu(), b16, b16),
    "gelu of float32": (lambda: F.gelu(wide), f32, f32),
    "bfloat16 + float32": (lambda: short + wide, f32, f32),
    "out= of float32": (lambda: torch.mm(wide, wide, out=torch.empty_like(wide)), f32, f32),
}
for name, (operation, on_cpu, on_cuda) in operations.items():
    with torch.autocast(device.type, dtype=torch.bfloat16):
        dtype = operation().dtype
    print(f"{name:>25} → {str(dtype).removeprefix('torch.')}")
    if device.type in ("cpu", "cuda"):  # other devices have their own lists
        assert dtype == (on_cpu if device.type == "cpu" else on_cuda), name

# %% [markdown]
r"""
There are three rules for using autocast. Put autocast around the *forward pass and the loss*, not around `backward()`
or the optimizer. Keep the model in `float32`; if you call `model.half()` first, you lose your master weights. And name
the dtype: by default it's `bfloat16` on a CPU but `float16` on CUDA, and `float16` needs a scaled loss (section 5).

> **Trap: old spellings.** Older code says `torch.cuda.amp.autocast()`, `torch.cuda.amp.GradScaler()` and `x.storage()`.
> They still work, with a warning. Today you write `torch.autocast(device.type, dtype=…)`,
> `torch.amp.GradScaler(device.type)` (section 5) and `x.untyped_storage()`.
"""

# %% tags=["error-27"]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    torch.cuda.amp.GradScaler()
    torch.cuda.amp.autocast()
    torch.ones(2).storage()
deprecated = [str(w.message) for w in caught if "deprecated" in str(w.message)]
for message in deprecated:
    print("·", message.partition(". ")[0])

assert len(deprecated) == 3
assert torch.get_autocast_dtype("cpu") == torch.bfloat16
assert torch.get_autocast_dtype("cuda") == torch.float16

# %% [markdown]
r"""
### How many bytes does autocast save?

Under autocast, shouldn't the activations take half as many bytes? Take a network with 64 inputs, two hidden layers of
256 units (each with a ReLU) and 10 outputs, and a batch of 32. In `float32`, autograd keeps the following for the
backward pass: the outputs of the two hidden layers (each ReLU's output is the next layer's input); the logarithms of
the 10 probabilities, from which the loss is computed; and one more number, the number of examples, by which the loss is
divided:

$$4 \cdot (2 \cdot 32 \cdot 256 + 32 \cdot 10 + 1) = 66{,}820 \text{ bytes} ,$$

not counting the input, the targets and the weights, which exist anyway.

**Predict.** How many bytes does autograd keep under autocast? Think of everything that the backward pass multiplies by,
and of the dtype in which the forward pass used it.
"""

# %%
guess = None  # bytes under autocast; without it 66820

# %% tags=["item-87"]
inputs, hidden, classes = 64, 256, 10
torch.manual_seed(0)
network = nn.Sequential(
    nn.Linear(inputs, hidden),
    nn.ReLU(),
    nn.Linear(hidden, hidden),
    nn.ReLU(),
    nn.Linear(hidden, classes),
).to(device)


def saved(batch: int, autocast: bool) -> int:
    """Bytes that autograd keeps for the backward pass, without inputs, labels and parameters."""
    x = torch.randn(batch, inputs, device=device)
    labels = torch.randint(0, classes, (batch,), device=device)

    def loss() -> Tensor:
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=autocast):
            return F.cross_entropy(network(x), labels)

    return saved_bytes(loss, exclude=[network, x, labels])


def predicted(batch: int, autocast: bool) -> int:
    logs = 4 * (batch * classes + 1)  # softmax and loss are in float32 either way
    activations = 2 * batch * hidden
    if not autocast:
        return 4 * activations + logs
    copies = batch * inputs + hidden * hidden + hidden * classes  # of x, and of two weights
    return 2 * (activations + copies) + logs


reconcile("bytes kept under autocast", guess, saved(32, True), "B")
print(f"without autocast: {saved(32, False):,} B, with: {saved(32, True):,} B")
assert predicted(32, False) == 66_820 and predicted(32, True) == 174_340
if devices.on_gpu(device):  # kernels may keep a little more
    assert math.isclose(saved(32, True), predicted(32, True), rel_tol=0.02)
else:
    assert saved(32, False) == predicted(32, False)
    assert saved(32, True) == predicted(32, True)

# %% [markdown]
r"""
The activations did halve. But to pass a gradient back through a layer, you multiply by its weights, and the forward
pass used 16-bit *copies* of them, which have to be kept for the backward pass. (The first layer's copy isn't kept,
since the gradient of the input isn't needed. A copy of the input is kept, for the gradient of the weights.)

The copies of the weights don't grow with the batch size $B$, but the activations do. So above some batch size autocast
does save memory. With $D = 64$ inputs, $H = 256$ hidden units and $C = 10$ classes, set the two byte counts equal (what
the loss keeps is the same in both and cancels):

$$4 \cdot 2BH = 2 \cdot (2BH + BD + H^2 + HC)$$

$$B = \frac{H^2 + HC}{2H - D} = \frac{68{,}096}{448} = 152$$
"""

# %%
even = (hidden**2 + hidden * classes) / (2 * hidden - inputs)
for batch in (32, 152, 4_096):
    ratio = saved(batch, True) / saved(batch, False)
    print(f"batch {batch:>5}: autocast keeps {ratio:.2f} × the bytes")

assert even == 152 and predicted(152, True) == predicted(152, False)
assert saved(100, True) > saved(100, False) and saved(200, True) < saved(200, False)
assert saved(4_096, True) < 0.6 * saved(4_096, False)

# %% [markdown]
r"""
When you train a language model, the "batch" of a layer consists of many thousands of tokens, usually well above the
layer's break-even size, so autocast saves memory on balance. In a small network it may not.

*Try it yourself:* convert the whole network, with `network.bfloat16()` and a `bfloat16` input. How many bytes does
autograd keep now? Predict first.

## 5 · float16 and loss scaling

Some GPUs (V100, T4) multiply fast in `float16` but not in `bfloat16`. The precision of `float16` is eight times as
good; the problem is its range. The loss is a mean, so the larger the batch, the smaller each example's share of the
gradient. Take a million examples, split into 4,096 parts (*microbatches*) of 256 whose gradients are added up: each
part contributes its loss divided by 4,096. The next cell computes the gradients that flow back between the layers.
"""


# %% tags=["item-87", "error-21"]
def waves(batch: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Points in a square, float32[batch, 2], and the height of a wave there, float32[batch, 1]."""
    x = 2 * torch.rand(batch, 2, generator=generator) - 1
    height = torch.sin(3 * x[:, :1]) * torch.cos(2 * x[:, 1:])
    return x.to(device), height.to(device)


def wave_model() -> nn.Sequential:
    """The same network each time, in float32."""
    torch.manual_seed(1)
    layers = [nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)]
    return nn.Sequential(*layers).to(device)


def gradients(factor: float, half: bool) -> tuple[Tensor, list[Tensor]]:
    """For the loss times a factor: gradients between the layers, and unscaled ones of the weights."""
    model, between = wave_model(), []
    x, y = waves(256, torch.Generator().manual_seed(0))
    with torch.autocast(device.type, dtype=torch.float16, enabled=half):
        output = x
        for layer in model:
            output = layer(output)
            between.append(output)
        loss = F.mse_loss(output, y) / 4_096
    found = torch.autograd.grad(loss * factor, [*between, *model.parameters()])
    flowing = torch.cat([gradient.flatten().float() for gradient in found[: len(between)]])
    return flowing, [gradient / factor for gradient in found[len(between) :]]


flowing, true = gradients(1.0, half=False)
lost = {factor: ((flowing * factor).half() == 0).float().mean().item() for factor in (1, 2**16)}
print(f"become 0 in float16: {lost[1]:.0%}; if first multiplied by 2**16: {lost[2**16]:.1%}")
assert lost[1] > 0.5 and lost[2**16] < 0.01
assert torch.finfo(torch.bfloat16).eps == 8 * torch.finfo(torch.float16).eps

# %% tags=["folded"]
# The gradients' magnitudes against the range of float16
plots.show(
    plots.range_histograms(
        {"as they are": flowing, "times 2⁸": flowing * 2**8, "times 2¹⁶": flowing * 2**16},
        torch.float16,
        title=f"In float16 {lost[1]:.0%} of these gradients become 0; multiplied by 2¹⁶, almost none",
    ),
    alt="Histograms of the gradients' magnitudes against the range of float16. As they are, most lie below "
    "its smallest number; multiplied by two to the 16 they are in its middle.",
)

# %% [markdown]
r"""
In the histogram, the right half of `float16`'s range is unused. So let's *shift* the gradients into it. **Loss
scaling** multiplies the loss by a large factor, the *loss scale*, before the backward pass. By the chain rule every
gradient is multiplied by it too. At the end the factor is divided out, in `float32`, before the optimizer uses the
gradients. If it's a power of two, scaling and dividing change only the exponents. Does that make the weights' gradients
correct?
"""

# %%
norms = [g.norm() for g in true]
for factor in (1.0, 2.0**16):
    _, ours = gradients(factor, half=True)
    off = [((a - b).norm() / n).item() for a, b, n in zip(ours, true, norms, strict=True)]
    print(f"factor {factor:>7g}: error of the first layer's gradient {off[0]:.2%}")
    assert off[0] > 0.1 if factor == 1 else max(off) < 0.01

# %% [markdown]
r"""
It does: with a factor of $2^{16}$, each layer's error is below 1%. Now shift the gradients yourself. Which powers of
two keep all, or nearly all, of them normal numbers in `float16`? Which ones in E5M2 and E4M3, the 8-bit formats from
lecture 02? And which does `bfloat16` need?
"""

# %%
from course_utils.explorers import loss_scaling

loss_scaling.explore(flowing, exponent=8)

# %% [markdown]
r"""
How large should the factor be? As large as it can be without overflow: if a gradient exceeds 65,504, it becomes
infinite, and one update with it ruins the model. You can't know the best factor beforehand, and it changes during
training. So the program *searches* for it, which is called *dynamic loss scaling*:

- *Overflow* (some gradient is infinite or NaN): *skip* this step, and halve the factor.
- *No overflow* for a number of steps in a row: double it. If that's too much, only one more step is skipped.

### Exercise 10.4 · A loss scaler &nbsp; ★★★ &nbsp; 18 minutes

Write the class `LossScaler(factor, growth_interval)`. It has two attributes: `factor`, the current factor, a float; and
`good_steps`, the number of successful steps in a row since the factor last changed, 0 at first.

- `scale(loss)` returns the loss times the factor, as a new tensor through which gradients flow.
- `step(optimizer)` is called when the gradients of the scaled loss have been computed. It divides all of them by the
  factor, so that each `.grad` contains the true gradient. If all of these are finite (or there are none), it calls
  `optimizer.step()` and counts a good step; when the count reaches `growth_interval`, the factor doubles. (You may
  assume that a finite gradient stays finite when it's divided.) If any of them isn't finite, it does *not* step, and
  the factor is halved. Whenever the factor changes, the count starts again at 0. `step` returns whether the optimizer
  stepped, `True` or `False`. (It doesn't matter what a skipped step leaves in `.grad`.)
- `state_dict()` returns what a checkpoint must contain for training to continue in the same way: a dictionary of plain
  numbers, which later steps don't change; `load_state_dict(state)` restores it, even into a scaler that was made with
  other arguments, and never changes `state`.

An optimizer's parameters are in `group["params"]` for each `group` of `optimizer.param_groups`; there may be several
groups. A parameter whose `.grad` is `None` isn't touched. All gradients are `float32`.
"""


# %% nbgrader={"grade": false, "grade_id": "LossScaler", "locked": false, "schema_version": 3, "solution": true, "task": false}
class LossScaler:
    """Multiplies the loss by a factor that is halved after an overflow and doubled after many good steps."""

    def __init__(self, factor: float = 2.0**16, growth_interval: int = 2_000) -> None:
        ### BEGIN SOLUTION
        self.factor, self.growth_interval, self.good_steps = factor, growth_interval, 0
        ### END SOLUTION

    def scale(self, loss: Tensor) -> Tensor:
        """The loss times the current factor."""
        ### BEGIN SOLUTION
        return loss * self.factor
        ### END SOLUTION

    def step(self, optimizer: torch.optim.Optimizer) -> bool:
        """Divide the gradients, step if all are finite, adapt the factor; return whether it stepped."""
        ### BEGIN SOLUTION
        finite = True
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.grad /= self.factor
                    finite = finite and bool(parameter.grad.isfinite().all())
        if not finite:
            self.factor, self.good_steps = self.factor / 2, 0
            return False
        optimizer.step()
        self.good_steps += 1
        if self.good_steps == self.growth_interval:
            self.factor, self.good_steps = self.factor * 2, 0
        return True
        ### END SOLUTION

    def state_dict(self) -> dict[str, float]:
        """Plain numbers from which load_state_dict can continue."""
        ### BEGIN SOLUTION
        return dict(vars(self))
        ### END SOLUTION

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Continue from another scaler's state_dict."""
        ### BEGIN SOLUTION
        vars(self).update(state)
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_LossScaler", "locked": true}
check("LossScaler")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>In <code>step</code>, first go through all gradients of all groups: divide, and remember
whether all are finite (<code>torch.isfinite</code> is false for infinities and for NaN). Decide only then.</details>
<details><summary>Hint 2</summary>The state is three numbers: the factor, the count of good steps, and the interval. Without
them, a resumed training run would start again with its initial factor.</details>

**Why it matters.** PyTorch's `GradScaler` works like this class, except that it divides and checks all gradients in one
operation, so it waits for the GPU once per step instead of once per parameter. Its defaults are the same as yours: a
factor of 65,536, doubled after 2,000 good steps.

Let's run yours and PyTorch's side by side on a small network that learns waves. To make the search visible, the factor
starts far too high and doubles after every 25 good steps. For each step we also predict the limit: the largest
gradient, computed in `float32`, may be scaled up to 65,504 and no further.
"""

# %% tags=["item-87"]
model, twin = wave_model(), wave_model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
twins_optimizer = torch.optim.AdamW(twin.parameters(), lr=1e-3)
ours = LossScaler(2.0**24, growth_interval=25)
theirs = torch.amp.GradScaler(device.type, init_scale=2.0**24, growth_interval=25)
generator = torch.Generator().manual_seed(0)
scales, skipped, limits, their_scales = [], [], [], []
for _ in range(300):
    x, y = waves(256, generator)
    exact = torch.autograd.grad(F.mse_loss(model(x), y), list(model.parameters()))
    limits.append(65_504 / max(g.abs().max().item() for g in exact))
    scales.append(ours.factor)
    their_scales.append(theirs.get_scale())
    with torch.autocast(device.type, dtype=torch.float16):
        loss, twins_loss = F.mse_loss(model(x), y), F.mse_loss(twin(x), y)
    optimizer.zero_grad()
    ours.scale(loss).backward()
    skipped.append(not ours.step(optimizer))

    twins_optimizer.zero_grad()
    theirs.scale(twins_loss).backward()
    theirs.step(twins_optimizer)
    theirs.update()

print(
    f"{sum(skipped)} of 300 steps skipped; the factor ends at 2**{math.log2(ours.factor):.0f}"
)

assert scales == their_scales  # step by step the same as PyTorch's
assert all(
    torch.equal(p, q) for p, q in zip(model.parameters(), twin.parameters(), strict=True)
)
for scale, limit, was_skipped in zip(scales, limits, skipped, strict=True):
    assert scale > 0.9 * limit if was_skipped else scale < 1.1 * limit
fresh = torch.amp.GradScaler(device.type)
assert fresh.get_scale() == 65_536 and fresh.get_growth_interval() == 2_000
assert fresh.get_growth_factor() == 2 and fresh.get_backoff_factor() == 0.5

# %% tags=["folded"]
# The loss scale, and the steps that were skipped
finding = (
    f"The factor finds its limit and keeps testing it: {sum(skipped)} of 300 steps skipped"
)
plots.show(
    plots.loss_scale(scales, skipped, limit=limits, title=finding),
    alt=f"Loss scale over 300 steps. It falls from 2 to the 24 in skipped steps, then doubles every 25 good steps "
    f"and halves where it meets the predicted limit, which moves with the batch. {finding}.",
)

# %% [markdown]
r"""
To within 10%, every skipped step had a factor above the limit that we predicted, and every other step a factor below
it. With the usual interval of 2,000, about one step in 2,000 is skipped once the factor has found its limit.

`GradScaler` splits your `step` into three methods: `scaler.unscale_(optimizer)` divides the factor out,
`scaler.step(optimizer)` steps unless there was an overflow (and divides first, if you haven't), and `scaler.update()`
adapts the factor. The first one is separate because you may want to clip the gradient before the step.
**Gradient clipping** limits the length of the gradient: if the norm of all gradients together is larger than a maximum,
they're all multiplied by the same number to bring it down to that maximum. It has to see the true gradients, so unscale
first, then clip, then step.

> **Trap: skipped steps and the schedule.** A learning-rate scheduler in the same loop doesn't know about skipped steps,
> and PyTorch prints a warning if the very first step is skipped. Being a few steps ahead does no harm. But if the
> factor keeps falling, down to 1, something else produces infinities, and the scaler only hides them. Print the factor.

*Try it yourself:* start with a factor of 1, and give it 600 steps. When is the first one skipped? Predict it from the
limit in the plot.

### Exercise 10.5 · Find the mistakes (optional) &nbsp; ★★☆ &nbsp; 15 minutes

Here's a training step in `float16`. It runs, and the loss that it reports falls. But it contains *six* mistakes. Write
down those that you see before you read on: the statement below lists what a correct step does.
"""


# %%
def broken_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    x: Tensor,
    y: Tensor,
    max_norm: float,
) -> float:
    model.half()
    with torch.autocast(x.device.type, dtype=torch.float16):
        loss = scaler.scale(F.mse_loss(model(x), y))
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.item()


# %% tags=["error-21"]
model = wave_model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler(device.type)
x, y = waves(256, torch.Generator().manual_seed(0))
reported = [broken_step(model, optimizer, scaler, x, y, max_norm=1.0) for _ in range(20)]
print(f"the loss it reports: {reported[0]:,.0f}, and after 20 steps {reported[-1]:,.0f}")
assert reported[-1] < reported[0] and reported[0] > 1_000  # the wave's height is at most 1

broken_step(model, optimizer, scaler, x, 1e4 * y, max_norm=1.0)
sound = all(p.isfinite().all().item() for p in model.parameters())
print(f"after one overflow, are all weights still numbers? {sound}")
assert not sound

# %% [markdown]
r"""
Write `mixed_step`, with the same arguments and without the six mistakes. One call does one step. The loss is the
`mse_loss` of `model(x)` and `y`; `model(x)` runs under autocast in `float16`, and `x` needn't be on the notebook's
`device`. The gradients are those of
this batch alone, whatever `.grad` contained before, clipped to a total norm of at most `max_norm` (the norm of the
*true* gradients) with `nn.utils.clip_grad_norm_`. If something overflows, the optimizer doesn't step, so no weight
changes. The scaler adapts its factor. The weights stay `float32`. A parameter may be frozen; then its `.grad` is
`None`. Return the loss, without the factor, as a Python float. `scaler` is a `torch.amp.GradScaler`; you need `scale`
and the three methods described above.
"""


# %% nbgrader={"grade": false, "grade_id": "mixed_step", "locked": false, "schema_version": 3, "solution": true, "task": false}
def mixed_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    x: Float[Tensor, "B D"],
    y: Float[Tensor, "B K"],
    max_norm: float,
) -> float:
    """One training step in float16, with clipping and loss scaling; returns the loss without the factor."""
    ### BEGIN SOLUTION
    optimizer.zero_grad()
    with torch.autocast(x.device.type, dtype=torch.float16):
        loss = F.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_mixed_step", "locked": true}
check("mixed_step")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>One mistake is about the dtype of the weights, and one about the number that's returned. The
other four are about gradients and the scaler: what's in <code>.grad</code> when the call begins, what's in it when it's
clipped, what decides whether to step, and how the scaler adapts.</details>
<details><summary>Hint 2</summary>Write down, for each line, whether the gradients that it uses are scaled or true. The
norm has to be that of the true ones, and the scaler has to know about every step, including the skipped ones.</details>

**Why it matters.** None of the six raises an error, and the printed loss ends lower than it began. Its size gives one
of them away; for the other five you need a test.

### The same run with your step (optional)

Here's the run from above again, with `mixed_step`, and with the same overflow at its end:
"""

# %%
model = wave_model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler(device.type)
losses = [mixed_step(model, optimizer, scaler, x, y, max_norm=1.0) for _ in range(20)]
mixed_step(model, optimizer, scaler, x, 1e4 * y, max_norm=1.0)  # overflows
sound = all(p.isfinite().all().item() for p in model.parameters())
print(
    f"the loss: {losses[0]:.2f}, and after 20 steps {losses[-1]:.2f}; after one overflow, are all weights still numbers? {sound}"
)
assert losses[-1] < losses[0] < 2 and sound

# %% [markdown]
r"""
*Try it yourself:* put the six mistakes back into your function, one at a time, and run its tests. Which message do you
get?

## 6 · Eight bits, and four

Since the Hopper generation (the H100) and Ada (the RTX 4090), NVIDIA's tensor cores have multiplied 8-bit
floating-point numbers at twice the rate of 16-bit ones. Lecture 02 introduced the two formats: E4M3, up to 448, with
three bits of mantissa, and E5M2, up to 57,344, with two. (You can skip this section and come back to it: the next one
doesn't depend on it.)

With so few representable numbers, one scale for the whole model isn't enough. Each *tensor* gets its own, or even each
*block* of neighboring elements (block scaling, from lecture 02), and the scale is chosen so that the largest element
becomes the largest number of the format. Storing a tensor in fewer bits, with one or more scales, is called
**quantization**. First make sure that your device supports such tensors at all:
"""

# %% tags=["item-87"]
# We don't count on PyTorch having 8-bit floats on Apple's GPUs.
place = torch.device("cpu") if device.type == "mps" else device
e4m3, e5m2 = torch.float8_e4m3fn, torch.float8_e5m2
for eight_bits in (e4m3, e5m2):
    devices.require(eight_bits, place)
    print(f"{eight_bits}: up to {torch.finfo(eight_bits).max:g}")

assert torch.finfo(e4m3).max == 448
assert torch.finfo(e5m2).max == 57_344

# %% [markdown]
r"""
### Exercise 10.6 · A scale for each block &nbsp; ★★☆ &nbsp; essential &nbsp; 15 minutes

Write `quantize_blocks(x, block, dtype)`. It splits the elements of `x`, in the order of `x.flatten()`, into blocks of
`block` neighbors and gives each block a scale of its own. It returns `(codes, scales)`: `codes` is a tensor with that
8-bit dtype (`float8_e4m3fn` or `float8_e5m2`) and the shape of `x`, and `scales` is a `float32` tensor with one number
for each block, in the order of the blocks. All scales are positive. Each element is approximately its code times the
scale of its block, and the scale is such that the element with the largest magnitude in the block, divided by it, is
the largest number of the format, `torch.finfo(dtype).max` (or its negative). So with `block = x.numel()` the whole
tensor has a single scale.

Each code is the element divided by the scale, rounded to the nearest number of the format as PyTorch's conversion does.
(If the scale is a power of two, the division is exact. Otherwise, you may assume that no quotient is so close to a tie
that the rounding error of the division could change its code.) For a block of zeros the scale is 1. `x` is `float32`,
of any shape and layout, with at least one element; `block` divides the number of elements. All elements are finite, and
the largest magnitude of a block is 0 or at least 1e-30. Don't change `x`.
"""


# %% nbgrader={"grade": false, "grade_id": "quantize_blocks", "locked": false, "schema_version": 3, "solution": true, "task": false}
def quantize_blocks(
    x: Float[Tensor, "*shape"], block: int, dtype: torch.dtype = torch.float8_e4m3fn
) -> tuple[Tensor, Float[Tensor, "blocks"]]:
    """8-bit codes in the shape of x, and a scale for each block: an element ≈ its code · its block's scale."""
    ### BEGIN SOLUTION
    rows = x.reshape(-1, block)
    largest = rows.abs().amax(dim=1, keepdim=True)
    scales = torch.where(largest > 0, largest / torch.finfo(dtype).max, 1.0)
    return (rows / scales).to(dtype).reshape(x.shape), scales.flatten()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_quantize_blocks", "locked": true}
check("quantize_blocks")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>First make a matrix with one block in each row. Its largest magnitudes, row by row, are often
called <em>amax</em>. Which scale turns one of them into <code>torch.finfo(dtype).max</code>?</details>
<details><summary>Hint 2</summary>For a block of zeros, amax is 0, and so would be the scale. What would the codes be then?
Handle those blocks separately, with <code>torch.where</code>.</details>

**Why it matters.** A recipe for training or inference in 8 or 4 bits combines this function with two decisions: how
many elements share a scale, and when to look for the largest element.

With a single scale for each matrix, the scales can be factored out of a product. So the hardware multiplies the codes,
accumulates the products, and multiplies by both scales once at the end:
$(c_x s_x)(c_w s_w) = c_x c_w \cdot s_x s_w$. (We accumulate in `float32`. When Hopper's tensor cores sum 8-bit
products, they keep only about 14 bits, which is why DeepSeek-V3 added partial sums in `float32` outside of them;
arXiv:2412.19437.)

**Predict.** What's the error of such a product in percent, for normally distributed matrices in E4M3? (With `bfloat16`
it was 0.3%.)
"""

# %%
guess = None  # %


# %% tags=["item-87"]
def fp8_product(x: Tensor, w: Tensor, dtype: torch.dtype) -> Tensor:
    """x @ w from 8-bit codes, multiplied and accumulated in float32, and scaled once."""
    codes_x, scale_x = quantize_blocks(x, x.numel(), dtype)
    codes_w, scale_w = quantize_blocks(w, w.numel(), dtype)
    return (codes_x.float() @ codes_w.float()) * (scale_x * scale_w)


generator = torch.Generator().manual_seed(0)
x = torch.randn(256, 512, generator=generator).to(place)
w = torch.randn(512, 256, generator=generator).to(place)
exact = x.cpu().double() @ w.cpu().double()
errors = {
    "bfloat16": relative_error(x.bfloat16() @ w.bfloat16(), exact),
    "E4M3": relative_error(fp8_product(x, w, e4m3), exact),
    "E5M2": relative_error(fp8_product(x, w, e5m2), exact),
}
reconcile("the error of a product in E4M3", guess, 100 * errors["E4M3"], "%")
print(", ".join(f"{name}: {error:.2%}" for name, error in errors.items()))

assert round(100 * errors["bfloat16"], 1) == 0.3
assert 0.03 < errors["E4M3"] < 0.045 and 1.9 < errors["E5M2"] / errors["E4M3"] < 2.1

# %% [markdown]
r"""
With its extra bit of mantissa, E4M3 would always be better than E5M2, if it weren't for its range. Gradients may span
many orders of magnitude. Here are artificial ones that do: each is $e^{3z}$, where $z$ is normally distributed, times
another random number, which gives it a sign.
"""

# %%
spread = torch.exp(3 * torch.randn(2**16, generator=generator))
wide = (spread * torch.randn(2**16, generator=generator)).to(place)


def share_of_zeros(x: Tensor) -> float:
    return (x.float() == 0).float().mean().item()


vanished = {
    dtype: share_of_zeros(quantize_blocks(wide, 2**16, dtype)[0]) for dtype in (e4m3, e5m2)
}
for dtype, share in vanished.items():
    print(f"{dtype}, one scale for all: {share:.1%} of these gradients become 0")

assert 0.5 < vanished[e4m3] < 0.65 and vanished[e5m2] < 0.01
assert round(math.log(wide.abs().max().item())) == 13
assert round(math.log(448 / 2**-10)) == 13  # from the largest to half of the smallest

# %% [markdown]
r"""
Why do so many become 0 in E4M3? Among 65,536 values of $z$ the largest is about 4.3, so the largest gradient is about
$e^{3 \cdot 4.3} \approx e^{13}$. From its largest number down to half of its smallest one, E4M3 spans a factor of
$e^{13}$, too. So most gradients with $z$ below 0 become 0, and so do many with $z$ just above 0, whose other factor is
small. E5M2 spans more, and the paper that proposed both formats recommends it for gradients ([Micikevicius and others,
2022](https://arxiv.org/abs/2209.05433)). Now let 32 neighbors share a scale.

**Predict.** What percentage of the same gradients become 0 in E4M3 with blocks of 32? (Among 32 values of $z$, the
largest is usually about 2. The other factor is sometimes close to 0, which makes more zeros.)
"""

# %%
guess = None  # %

# %% tags=["item-87"]
in_blocks = share_of_zeros(quantize_blocks(wide, 32, e4m3)[0])
reconcile("gradients that become 0 in E4M3 with blocks of 32", guess, 100 * in_blocks, "%")
print(f"one scale for all: {vanished[e4m3]:.1%}, one for each block of 32: {in_blocks:.1%}")

assert 0.03 < in_blocks < 0.04  # z below about 2 - 13/3, or a factor close to 0

# %% [markdown]
r"""
In MXFP8, the standard format with 8-bit elements in blocks of 32, a block's scale takes eight bits, a quarter of a bit
for each element. (Ours takes 32.) In return, so few gradients become 0 that E4M3, with one more bit of mantissa than
E5M2, is good enough for both passes.

Do real gradients span as many orders of magnitude as these artificial ones? Take those of section 5, at the output of
the first tanh. And let's also try four bits, FP4, whose 15 numbers you decoded in lecture 02. PyTorch has no conversion
to FP4, so the next cell rounds by hand, with scales computed from yours, in the two block formats from lecture 02:
MXFP4 (blocks of 32, whose scales in E8M0 are powers of two) and NVFP4 (blocks of 16 with E4M3 scales). (The two rows
with `float32` scales show how much the narrower scales lose.)
"""


# %%
fp4 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])  # and their negatives


def in_fp4(
    x: Tensor, block: int, scale: str = "float32", generator: torch.Generator | None = None
) -> Tensor:
    """x rounded to FP4 with a scale for each block: to nearest, or stochastically if there's a generator."""
    _, scales = quantize_blocks(x, block, e4m3)
    scales = scales * (448 / 6)  # the largest number is 6 here, not 448
    if scale == "E8M0":
        scales = torch.exp2(torch.log2(scales).ceil())  # up to a power of two
    elif scale == "E4M3":  # and one float32 scale for all the scales
        codes, scale_of_scales = quantize_blocks(scales, len(scales), e4m3)
        scales = codes.float() * scale_of_scales
    scales = scales[:, None]
    exact = (x.reshape(-1, block) / scales).clamp(-6, 6)
    lower = (torch.bucketize(exact.abs(), fp4, right=True) - 1).clamp(max=6)
    low, high = fp4[lower], fp4[lower + 1]
    part = (exact.abs() - low) / (high - low)  # of the way from the lower neighbor to the upper
    limit = 0.5 if generator is None else torch.rand(part.shape, generator=generator)
    return (torch.where(part > limit, high, low) * exact.sign() * scales).reshape(x.shape)


real = flowing[16_384:32_768].cpu()  # 256 examples, 64 units
lost = {
    "E4M3, one scale for all": share_of_zeros(quantize_blocks(real, len(real), e4m3)[0]),
    "FP4, one scale for all": share_of_zeros(in_fp4(real, len(real))),
    "MXFP4: blocks of 32, E8M0 scales": share_of_zeros(in_fp4(real, 32, "E8M0")),
    "NVFP4: blocks of 16, E4M3 scales": share_of_zeros(in_fp4(real, 16, "E4M3")),
    "blocks of 32, float32 scales": share_of_zeros(in_fp4(real, 32)),
    "blocks of 16, float32 scales": share_of_zeros(in_fp4(real, 16)),
}
for name, share in lost.items():
    print(f"{name:>32}: {share:5.1%} of the real gradients become 0")

in_e4m3, one_scale, mxfp4, nvfp4, by_32, by_16 = lost.values()
assert in_e4m3 < 0.001 and one_scale > 3 * mxfp4
assert mxfp4 > 1.3 * by_32 and abs(nvfp4 - by_16) < 0.005

# %%
sizes = [16, 32, 64, 128, 512, 2_048, 16_384]
zeros = {
    "artificial, E4M3": [share_of_zeros(quantize_blocks(wide, n, e4m3)[0]) for n in sizes],
    "real, FP4": [share_of_zeros(in_fp4(real, n)) for n in sizes],
}
assert all(shares == sorted(shares) for shares in zeros.values())
plots.show(
    plots.curves(
        sizes,
        zeros,
        xlabel="elements that share a scale",
        ylabel="share that becomes 0",
        shares=True,
        title="The more elements share a scale, the more of them become 0",
    ),
    alt="Share of elements that become 0 against the block size, from 16 to 16,384. It rises for the artificial "
    "gradients in E4M3 and for the real ones in FP4.",
)

# %% [markdown]
r"""
The real gradients of this small network fit into E4M3 even with a single scale. In FP4 they need blocks, since one
large element takes the range away from all others that share its scale. The format of the scales matters, too: rounded
up to a power of two, as here for MXFP4, a scale can leave half of the range unused. NVFP4's scales, with three bits of
mantissa, come close to those in `float32`.

Blocks don't make the format's steps any finer, though. A gradient below a quarter of its block's scale becomes 0
*every* time it's rounded to nearest, so the error has a direction. Stochastic rounding (lecture 02) removes that
direction: each single error is larger, but it averages out over many steps.
"""

# %%
generator = torch.Generator().manual_seed(0)
often = torch.stack([in_fp4(real, 16, "E4M3", generator) for _ in range(100)]).mean(dim=0)
fp4_errors = {
    "to nearest": relative_error(in_fp4(real, 16, "E4M3"), real.double()),
    "stochastic, once": relative_error(in_fp4(real, 16, "E4M3", generator), real.double()),
    "stochastic, mean of 100": relative_error(often, real.double()),
}
for name, error in fp4_errors.items():
    print(f"{name:>24}: error of {error:.1%}")

assert fp4_errors["stochastic, once"] > fp4_errors["to nearest"] > 0.1
assert fp4_errors["stochastic, mean of 100"] < fp4_errors["to nearest"] / 5

# %% [markdown]
r"""
According to the
[documentation](https://github.com/NVIDIA/TransformerEngine/tree/main/docs/features/low_precision_training) of August
2026, the recipes in *Transformer Engine*, NVIDIA's library for low-precision training, work like this:

- By default, only the matrix products of linear layers use 8 or 4 bits. Everything else, attention included, stays in
  16 or 32 bits. Weights are *stored* in 16 or 32 bits, with master weights and optimizer state as in section 3.
- `DelayedScaling`, the oldest recipe, uses E4M3 in the forward pass and E5M2 for gradients, with a scale for each
  tensor. To find the largest element, you'd have to read the whole tensor before you could quantize its first element.
  So the recipe takes the largest element of previous steps (by default the last 1,024) and assumes that the next step
  is similar. If a tensor's values suddenly grow, they no longer fit. *Current scaling* reads the tensor twice instead.
- `MXFP8BlockScaling` (blocks of 32, on Blackwell) and `Float8BlockScaling` (blocks of 128, or 128 × 128 for weights)
  use E4M3 in both passes by default, as DeepSeek-V3's own recipe does.
- `NVFP4BlockScaling` uses FP4 for weights, activations and gradients, and rounds the gradients stochastically. NVIDIA's
  recipe ([arXiv:2509.25149](https://arxiv.org/abs/2509.25149)) keeps some layers in wider formats.

*Try it yourself:* quantize `wide` in blocks of 32 with `e5m2`. How many become 0, and how does the relative error
compare with E4M3's?

## 7 · One network, trained four times

We train the wave network of section 5 with AdamW at a learning rate of 0.0003, for 1,024 steps: in `float32`; in
`bfloat16` with *your* master weights; in `float16` under autocast with *your* loss scaler; and in `bfloat16` alone. The
initial weights and the batches are the same.

Your `largest_swallowed_update` can predict how the fourth will go. AdamW's steps are as large as the learning rate if
the gradients agree from batch to batch, and smaller if they don't. The first layer has two inputs, so PyTorch draws its
weights uniformly between $-1/\sqrt 2$ and $1/\sqrt 2$ (lecture 07).

**Predict.** What percentage of these weights would swallow a full step?
"""

# %%
guess = None  # %

# %%
learning_rate, rounds = 3e-4, 1_024
first = wave_model().bfloat16()
for name in ("0.weight", "2.weight"):
    sizes = first.get_parameter(name).detach().float().abs().flatten().tolist()
    most = [float(largest_swallowed_update(size, torch.bfloat16)) for size in sizes]
    full, quarter = (sum(u >= step for u in most) / len(most) for step in (3e-4, 3e-4 / 4))
    if name == "0.weight":
        reconcile("weights of the first layer that swallow a step", guess, 100 * full, "%")
    print(f"{name}: {full:4.0%} swallow a full step, {quarter:4.0%} a quarter of one")
    assert quarter > 0.7 and round(10 * full) == (8 if name == "0.weight" else 0)

# %% [markdown]
r"""
A full step is the best case. Where batches disagree, steps shrink to a quarter or less, and then most weights of *both*
layers swallow them. Now let's train:
"""


# %% tags=["item-87", "error-21", "timed", "folded"]
def stream() -> Iterable[tuple[Tensor, Tensor]]:
    """The batches, the same for each training."""
    generator = torch.Generator().manual_seed(0)
    return (waves(128, generator) for _ in range(rounds))


def adamw(parameters: Iterable[Tensor]) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, lr=learning_rate, weight_decay=0.0)


def wave_loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """In the dtype of the model, the loss itself in float32."""
    x, y = batch
    return F.mse_loss(model(x.to(next(model.parameters()).dtype)).float(), y)


def train_in(dtype: torch.dtype) -> list[float]:
    """Model, gradients and optimizer state all in one dtype."""
    model = wave_model().to(dtype)
    optimizer, losses = adamw(model.parameters()), []
    for batch in stream():
        loss = wave_loss(model, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def train_with_scaler() -> list[float]:
    """float16 under autocast, with a scaled loss."""
    model, scaler = wave_model(), LossScaler(2.0**16, growth_interval=500)
    optimizer, losses = adamw(model.parameters()), []
    for x, y in stream():
        with torch.autocast(device.type, dtype=torch.float16):
            loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        losses.append(loss.item())
    return losses


wide_cost, master_cost, short_cost = costs.values()  # bytes per parameter, from section 3
runs: dict[str, Callable[[], list[float]]] = {
    f"float32, {wide_cost:g} B": lambda: train_in(torch.float32),
    f"bfloat16 + masters, {master_cost:g} B": lambda: train_with_master_weights(
        wave_model(), adamw, stream(), wave_loss
    )[0],
    f"float16, scaled loss, {wide_cost:g} B": train_with_scaler,  # its parameters are float32
    f"bfloat16 alone, {short_cost:g} B": lambda: train_in(torch.bfloat16),
}
histories, took = {}, {}
for name, run in runs.items():
    started = time.perf_counter()
    histories[name] = run()
    took[name] = time.perf_counter() - started
last = {name: sum(losses[-128:]) / 128 for name, losses in histories.items()}
for name, loss in last.items():
    print(f"{name:>27} per parameter: last loss {loss:.5f}, {readable(took[name], 's')}")
fp32, masters, scaled, alone = last.values()
record("the last loss in bfloat16 alone", alone / fp32, "times that in float32")

assert max(masters, scaled) < 1.1 * fp32  # the first three end together …
assert alone > 5 * fp32  # … and the fourth is stuck

# %% tags=["folded"]
at = [8, 16, 32, 64, 128, 256, 512, 1_024]
means = {  # of the last eighth of the losses up to each mark
    name: [sum(losses[7 * step // 8 : step]) / (step // 8) for step in at]
    for name, losses in histories.items()
}
finding = f"Three runs agree; in bfloat16 alone the loss ends {alone / fp32:.0f} times as high"
plots.show(
    plots.curves(at, means, xlabel="step", ylabel="loss", title=finding),
    alt=f"Loss against step on logarithmic axes, with bytes per parameter. {finding}. float32, bfloat16 with "
    "master weights and float16 with a scaled loss lie on top of one another.",
)

# %% [markdown]
r"""
The first three take the same number of bytes per parameter. (On a small network and a CPU, a mixture saves no time; on
a GPU with large layers the second and third are much faster.) The fourth takes half the bytes, but its loss ends many
times as high. Its products are as accurate as those of the second. It failed because of its *additions*, in a way that
you could predict with one function.

*Try it yourself:* train the fourth with a learning rate of 0.003. If you solved exercise 10.3, write a fifth:
`bfloat16` with your `compensated_add` (at each step, let AdamW update a `float32` tensor of zeros, add the result,
rounded to `bfloat16`, to the weight, and set the tensor to 0 again). How many bytes per parameter does it take between
steps if its moments are `float32`?

## How well do you guess?

Here are the numbers that you've written into the *predict* cells so far, in all lectures, next to the results. Only you
can see them. Have you gotten better?
"""

# %% tags=["timed"]
calibration()

# %% [markdown]
r"""
## Takeaways

**Mechanics.** Multiply in 16 bits, accumulate in 32. Put `torch.autocast(device.type, dtype=torch.bfloat16)` around the
forward pass and the loss; parameters, gradients and optimizer state stay `float32`. `float16` also needs a scaler:
scale, backward, unscale, clip, `scaler.step`, `scaler.update`. A `bfloat16` weight swallows every update below 0.2% of
its own size, and some up to 0.4%. Training with AdamW takes 16 bytes per parameter, in `float32` or in `bfloat16` with
master weights, and autocast keeps 16-bit copies of weights until the backward pass is done. With eight bits or four,
use one scale per tensor or block: the largest magnitude in it divided by the largest number of the format.

**Mindset.** For each tensor, ask what's done with it. If it's an input of a product, a narrow format is fine. If it
changes a little again and again, it needs a wider one. If a loss is stuck, compare the size of the updates with the gap
between neighboring numbers near the weights before you change the learning rate. Print the loss scale, and count the
skipped steps.

**Intuitions.** `float16` lacks range, and a scale factor fixes that; `bfloat16` lacks precision, and a `float32` copy
of the weights fixes that. Mixed precision makes training faster, but it saves memory only on activations, and only if
the batch is large. Rounding errors do little harm when they're random, since they average out. With blocks, a narrow
range is enough, at a cost of a quarter of a bit (MXFP8, MXFP4) or half a bit (NVFP4) per number.

Next: [11 · Memory](../11_memory/11_memory.ipynb). For a large model, sixteen bytes per parameter are too many for one
card. How can you get by with fewer?
"""

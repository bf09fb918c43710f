# %% [markdown]
r"""
# 07 · Models and initialization

[← 06 · Gradients and 6N](../06_gradients_and_6n/06_gradients_and_6n.ipynb) · [08 · Optimizers →](../08_optimizers/08_optimizers.ipynb)

> **Which numbers should a model begin with, and why does its depth decide?**

You know what a model costs. Now build one. It needs numbers to begin with, and they have to be random; but how large?
Too large by a little, and fifty layers later they have left the range of `float32`. Too small by a little, and nothing
arrives. By the end of this lecture you will have built a network of 50 layers, predicted how large the numbers in each
of them are for four ways to begin, forward and backward, and measured it. With three of the four, nothing useful gets
through.

How to read: run the cells in order (<kbd>Shift</kbd> + <kbd>Enter</kbd>). Where a cell says *predict*, write your
number first; being wrong is how you find out what to look at. The cell below each exercise checks your answer and names
the likely mistake; *Validate* in the toolbar runs them all.
"""

# %%
import io
import itertools
import math
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Float32
from torch import Tensor, nn

from course_utils import device as devices
from course_utils import memory, plots
from course_utils.facts import FACTS
from course_utils.predict import reconcile
from course_utils.progress import show_progress
from course_utils.units import format_bytes
from course_utils.testing import check

torch.manual_seed(0)  # the same random numbers on every run
device = devices.pick_device()
print(devices.describe(device))
show_progress()

# %% [markdown]
r"""
## 1 · A parameter, and who knows about it

A *parameter* is a tensor that training may change. In PyTorch it is an `nn.Parameter`: a tensor like any other, with
two habits. It requires a gradient without being asked, and a model that it is assigned to takes note of it.
"""

# %% tags=["item-68"]
w = nn.Parameter(torch.ones(2, 3))

assert isinstance(w, Tensor)  # all that a tensor can do
assert w.requires_grad and w.is_leaf  # and it keeps a gradient: lecture 06
assert type(w.data) is Tensor  # the same numbers, without the habits
assert memory.same_storage(w, w.data)
print(w)

half = w / 2
assert type(half) is Tensor and not half.is_leaf  # a result is no parameter any more

# %% [markdown]
r"""
A model is an `nn.Module`: a class with a `forward`, whose `__init__` assigns parameters, and other modules, to `self`.
Nobody has to list them. `nn.Module` watches each assignment and *registers* the parameters and modules among them. From
then on three things happen by themselves: `model.parameters()` hands them to the optimizer, `model.to(…)` moves them,
and `model.state_dict()` lists what is to be saved.

Whatever is not registered works just as well in `forward`, and is left behind all three times. Here is one class that
holds a tensor in seven ways.

**Predict.** How many of the seven does `parameters()` find?
"""

# %%
guess = None  # of seven


# %%
class SevenWays(nn.Module):
    """A tensor of one number, held in seven ways."""

    def __init__(self) -> None:
        super().__init__()
        self.parameter = nn.Parameter(torch.ones(1))
        self.tensor = torch.ones(1)
        self.register_buffer("buffer", torch.ones(1))
        self.register_buffer("scratch", torch.ones(1), persistent=False)
        self.module = nn.Linear(1, 1, bias=False)
        self.plain_list = [nn.Linear(1, 1, bias=False)]
        self.module_list = nn.ModuleList([nn.Linear(1, 1, bias=False)])


def tensor_of(held: Any) -> Any:
    """The tensor in it, or the first one."""
    held = held[0] if isinstance(held, list | nn.ModuleList) else held
    return held.weight if isinstance(held, nn.Module) else held


ways = SevenWays()
trained = {name.split(".")[0] for name, _ in ways.named_parameters()}
saved = {name.split(".")[0] for name in ways.state_dict()}
reconcile("found by parameters()", guess, len(trained), "of seven")

ways.to(torch.bfloat16)  # moves to a dtype, as it would to a device
seven = ["parameter", "tensor", "buffer", "scratch", "module", "plain_list", "module_list"]
taken_along = {n for n in seven if tensor_of(getattr(ways, n)).dtype == torch.bfloat16}

assert trained == {"parameter", "module", "module_list"}
assert taken_along == trained | {"buffer", "scratch"}
assert saved == trained | {"buffer"}

# %% [markdown]
r"""
| assigned to `self` | trained | moved | saved |
|---|---|---|---|
| `nn.Parameter(…)`, a module, `nn.ModuleList([…])` | yes | yes | yes |
| `register_buffer(name, …)`: a running mean, a mask | no | yes | yes |
| the same with `persistent=False` | no | yes | no |
| a plain tensor; a plain list of modules | no | no | no |

> **Trap: a parenthesis.** `nn.Parameter(torch.randn(n)) / 10` is the *result* of a division, a plain tensor. Nothing is
> registered. `nn.Parameter(torch.randn(n) / 10)` is what was meant.

> **Trap: too early.** Before `super().__init__()` there is nobody to take note, and PyTorch says so.
"""


# %%
class TooEarly(nn.Module):
    def __init__(self) -> None:
        self.w = nn.Parameter(torch.ones(3))


class Divided(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(3)) / 10


assert list(Divided().parameters()) == []
try:
    TooEarly()
    raise AssertionError("it registered a parameter with nobody there")
except AttributeError as refusal:
    print(refusal)

# %% [markdown]
r"""
*Try it yourself:* is a parameter with whole numbers possible, `nn.Parameter(torch.arange(3))`? And with
`requires_grad=False`?

## 2 · How large is a sum of many?

Now the numbers. They cannot be all alike. If all weights of a model are, all outputs of a layer are, they all get the
same gradient, and after the step they are alike again: the layer has one output, computed many times.
"""

# %%
hidden, head = nn.Linear(8, 6, bias=False), nn.Linear(6, 1, bias=False)
for layer in (hidden, head):
    nn.init.constant_(layer.weight, 0.1)
head(torch.tanh(hidden(torch.randn(16, 8)))).sum().backward()
grad = hidden.weight.grad
assert grad is not None
assert torch.allclose(grad, grad[:1].expand(6, 8))  # six outputs, one gradient

# %% [markdown]
r"""
So they are drawn at random. The obvious choice is `torch.randn`: mean 0, standard deviation 1. (The standard deviation,
*std* from here on, is how far from the mean a number typically is.) Take one layer with 16,384 inputs, of std 1 as
well. Each output is a sum over all inputs:

$$y_j = \sum_{i=1}^{d_\text{in}} x_i \, w_{ij}$$

**Predict.** What is the std of the outputs?
"""

# %%
guess = None  # std of y

# %% tags=["item-69"]
d_in, d_out, batch = 16_384, (4_096 if devices.on_gpu(device) else 32), 64
x = torch.randn(batch, d_in, device=device)
w = nn.Parameter(torch.randn(d_in, d_out, device=device))

y = x @ w  # float32[batch, d_out]
reconcile("std of the outputs", guess, y.std().item(), "")

assert y.shape == (batch, d_out)
assert math.sqrt(d_in) == 128
assert 0.9 < y.std().item() / 128 < 1.1

# %% [markdown]
r"""
Not 1, and not 16,384 either: 128, the square root. The terms are independent and have both signs, so most of the sum
cancels. What adds up is the *variance*, the square of the std. Each product $x_i w_{ij}$ has variance $1 \cdot 1$, and
$d_\text{in}$ of them have variance $d_\text{in}$. If the weights have std $\sigma$:

$$\operatorname{std}(y) = \sqrt{d_\text{in}} \; \sigma \; \operatorname{std}(x)$$

That also says what to do about it. Divide the weights by $\sqrt{d_\text{in}}$:
"""

# %% tags=["item-70"]
w = nn.Parameter(torch.randn(d_in, d_out, device=device) / math.sqrt(d_in))
y = x @ w

assert 0.9 < y.std().item() < 1.1
print(f"std of the weights {w.std().item():.5f}, of the outputs {y.std().item():.2f}")

# %%
widths = [16, 64, 256, 1_024, 4_096, 16_384]
measured: dict[str, list[float]] = {"as drawn": [], "divided by √d_in": []}
for d_in in widths:
    x = torch.randn(256, d_in, device=device)
    w = torch.randn(d_in, 64, device=device)
    measured["as drawn"].append((x @ w).std().item())
    measured["divided by √d_in"].append((x @ (w / math.sqrt(d_in))).std().item())
predicted = {
    "as drawn": [math.sqrt(d) for d in widths],
    "divided by √d_in": [1.0] * len(widths),
}
figure = plots.curves(
    widths,
    measured,
    predicted,
    xlabel="inputs of the layer, d_in",
    ylabel="std of the outputs",
    title="The outputs grow with the root of the width, unless the weights shrink with it",
)
plots.show(
    figure,
    alt="Std of a layer's outputs against its number of inputs. With weights as drawn it rises "
    "from 4 to 128, as predicted; with weights divided by the root it stays at 1.",
)

assert 128**2 == 16_384 and 128**3 > torch.finfo(torch.float16).max == 65_504
for name, values in measured.items():
    assert all(0.85 < m / p < 1.15 for m, p in zip(values, predicted[name], strict=True))

# %% [markdown]
r"""
One layer that multiplies by 128 can be lived with. But its outputs are the inputs of the next, and the factor comes
again. Two such layers make 16,384, and the third is beyond `float16`, which ends at 65,504.

*Try it yourself:* take inputs that are all positive, `torch.rand`. Does the std of the outputs still follow the root of
the *variance* of `x`, or of the mean of its squares? (Section 3 needs the answer.)

## 3 · Three names, three numbers

"Divide by the root of the number of inputs" is one rule. There are others, each with a name, and they are often taken
for the same. They are not. Here is where each comes from.

For a weight matrix that turns `fan_in` numbers into `fan_out`, you know the way forward. A gradient comes *back* through
the same matrix, transposed (lecture 06), and so it is a sum over the outputs:

$$y = x\,w: \quad \operatorname{std}(y) = \sqrt{\text{fan\_in}}\;\sigma\;\operatorname{std}(x)
\qquad\qquad
\nabla x = \nabla y\, w^\top: \quad \operatorname{std}(\nabla x) = \sqrt{\text{fan\_out}}\;\sigma\;\operatorname{std}(\nabla y)$$

**LeCun** and others (1998) keep the way forward at 1: variance $1/\text{fan\_in}$. That is the rule of section 2.

**Glorot** and Bengio (2010) saw that the way back would like $1/\text{fan\_out}$. Unless the matrix is square, one
cannot have both. They take the mean of the two fans: variance $2/(\text{fan\_in} + \text{fan\_out})$. (Xavier is
Glorot's first name, so "Xavier" is the same rule.)

**He** and others (2015) looked at what stands *between* layers. A ReLU sets the negative half to 0. That halves the mean
of the squares, so the weights have to make up for it: variance $2/\text{fan\_in}$. (Kaiming is He's first name.)
"""

# %%
z = torch.randn(1_000_000)
passed = torch.relu(z)

assert abs(passed.square().mean().item() - 1 / 2) < 0.01  # half of the squares are gone
assert abs(passed.var().item() - (1 / 2 - 1 / (2 * math.pi))) < 0.01  # 0.34
print(f"mean of the squares {passed.square().mean():.3f}, variance {passed.var():.3f}")

# %% [markdown]
r"""
Careful with the second number. After a ReLU the mean is not 0 any more, so variance and mean square differ. The next sum
needs the **mean of the squares**: its terms are $x_i w_{ij}$, the weights have both signs, and so
$\mathbb{E}[(x_i w_{ij})^2] = \mathbb{E}[x_i^2]\,\sigma^2$. The mean of $x$ does not come in.

Now all three rules on one matrix with four times as many outputs as inputs: forward, and back.
"""

# %% tags=["item-71", "error-8"]
fan_in, fan_out, tokens = 512, 2_048, 256
variances = {
    "LeCun": 1 / fan_in,
    "Glorot": 2 / (fan_in + fan_out),
    "Kaiming": 2 / fan_in,
}
x = torch.randn(tokens, fan_in, device=device)
upstream = torch.randn(tokens, fan_out, device=device)  # the gradient of y
ways_through: dict[str, tuple[float, float, float]] = {}
for name, variance in variances.items():
    w = torch.randn(fan_in, fan_out, device=device) * math.sqrt(variance)
    there, returned = float((x @ w).std()), float((upstream @ w.T).std())
    after_relu = torch.relu(x @ w).square().mean().sqrt().item()  # root of the mean square
    ways_through[name] = (there, returned, after_relu)
    print(
        f"{name:>8}: forward {there:.2f}, back {returned:.2f}, forward with ReLU {after_relu:.2f}"
    )

    assert abs(there / math.sqrt(fan_in * variance) - 1) < 0.05
    assert abs(returned / math.sqrt(fan_out * variance) - 1) < 0.05

assert abs(ways_through["LeCun"][0] - 1) < 0.05  # forward
assert ways_through["Glorot"][0] < 0.7 and 1.2 < ways_through["Glorot"][1] < 1.4  # in between
assert abs(ways_through["Kaiming"][2] - 1) < 0.05  # forward, with a ReLU
# Glorot's std against LeCun's, for this matrix and for its transpose:
assert round(math.sqrt(variances["Glorot"] * fan_in), 2) == 0.63
assert round(math.sqrt(variances["Glorot"] * fan_out), 2) == 1.26

# %% [markdown]
r"""
> **A mistake that travels.** "$1/\sqrt{d_\text{in}}$, that is Xavier up to a constant." It is LeCun's. Glorot's depends
> on the outputs, too: for the matrix above, the constant is 0.63, for its transpose 1.26. There is no constant.

And what does PyTorch do if you do nothing? `nn.Linear` draws its weights uniformly between $-1/\sqrt{\text{fan\_in}}$
and $+1/\sqrt{\text{fan\_in}}$. That looks like LeCun.

**Predict.** Inputs of std 1, an `nn.Linear` of 1,024 inputs without bias, as it comes. What is the std of the outputs?
"""

# %%
guess = None  # std of the outputs

# %%
as_it_comes = nn.Linear(1_024, 1_024, bias=False)
y = as_it_comes(torch.randn(256, 1_024))
reconcile("std of the outputs of nn.Linear", guess, y.std().item(), "")

assert as_it_comes.weight.abs().max().item() <= 1 / math.sqrt(1_024)
assert abs(as_it_comes.weight.std().item() * math.sqrt(1_024) - 1 / math.sqrt(3)) < 0.01
assert abs(y.std().item() - 1 / math.sqrt(3)) < 0.02

# %% [markdown]
r"""
0.58. A uniform distribution from $-a$ to $a$ has std $a/\sqrt3$, not $a$. So the variance is $1/(3\,\text{fan\_in})$, a
third of LeCun's. In a shallow model nobody notices. You will see what it does in a deep one.

> **Trap: which side is in?** PyTorch's own layers store a weight as `[fan_out, fan_in]` and compute `x @ weight.T`, and
> its initializers take the *second* size for `fan_in`. We write `x @ w`, with `[fan_in, fan_out]`. Give them such a
> matrix, and they divide by the wrong side. Pass `w.T`: it is a view, so writing to it fills `w`.
"""

# %%
w = torch.empty(16_384, 32)  # for x @ w: 16,384 inputs
nn.init.kaiming_normal_(w)
wrong = w.std().item()
nn.init.kaiming_normal_(w.T)
right = w.std().item()
print(f"std {wrong:.3f} where {right:.4f} was meant: {wrong / right:.1f} times too large")

assert abs(right / math.sqrt(2 / 16_384) - 1) < 0.02
assert abs(wrong / right / math.sqrt(16_384 / 32) - 1) < 0.02  # 22.6

# %% [markdown]
r"""
*Try it yourself:* which `nonlinearity=` makes `nn.init.kaiming_normal_` LeCun's rule?

### Exercise 7.1 · Three initializers &nbsp; ★☆☆ &nbsp; 5 minutes

Write `init_std(kind, fan_in, fan_out)`: the std of the weights for `kind` `"lecun"`, `"glorot"` or `"kaiming"` (forward,
for ReLU), in the full precision of Python's floats. For any other kind, `"LeCun"` included, raise a `ValueError`.
"""


# %% nbgrader={"grade": false, "grade_id": "init_std", "locked": false, "schema_version": 3, "solution": true, "task": false}
def init_std(kind: str, fan_in: int, fan_out: int) -> float:
    """Standard deviation of the weights of a matrix with fan_in inputs and fan_out outputs."""
    ### BEGIN SOLUTION
    if kind == "lecun":
        return math.sqrt(1 / fan_in)
    if kind == "glorot":
        return math.sqrt(2 / (fan_in + fan_out))
    if kind == "kaiming":
        return math.sqrt(2 / fan_in)
    raise ValueError(f"kind is {kind!r}: wanted 'lecun', 'glorot' or 'kaiming'")
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_init_std", "locked": true}
check("init_std")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Section 3 gives three variances. What is asked for is the standard deviation.</details>
<details><summary>Hint 2</summary>A ReLU makes the variance of the weights double, not their standard deviation. And try a kind that is none of the three.</details>

**Why it matters.** A factor of $\sqrt2$ looks like a detail. With 50 layers it comes 50 times.

Yours against PyTorch's initializers, which want `[fan_out, fan_in]`:
"""

# %%
torchs = {
    "lecun": lambda w: nn.init.kaiming_normal_(w, nonlinearity="linear"),
    "glorot": nn.init.xavier_normal_,
    "kaiming": nn.init.kaiming_normal_,
}
fan_in, fan_out = 400, 900
for kind, fill in torchs.items():
    w = fill(torch.empty(fan_out, fan_in))
    mine = init_std(kind, fan_in, fan_out)
    print(f"{kind:>8}: yours {mine:.4f}, PyTorch's weights {w.std().item():.4f}")
    assert abs(w.std().item() / mine - 1) < 0.01

# %% [markdown]
r"""
## 4 · Cutting the tails

A normal distribution has no end. Of a hundred million weights, 57 lie beyond five standard deviations, by chance alone.
So one cuts the tails: draw again whatever lies beyond three. That is the **truncated normal** (you met it in lecture
01). PyTorch has it, and `a` and `b` say where to cut:
"""

# %% tags=["item-72"]
d_in, d_out = 16_384, 32
std = 1 / math.sqrt(d_in)
w = nn.Parameter(torch.empty(d_in, d_out, device=device))
nn.init.trunc_normal_(w, std=std, a=-3 * std, b=3 * std)

assert round(1e8 * math.erfc(5 / math.sqrt(2))) == 57
assert w.abs().max().item() <= 3 * std * (1 + 1e-6)  # 3 · std, in float32
y = torch.randn(64, d_in, device=device) @ w
assert 0.9 < y.std().item() < 1.1

# %% [markdown]
r"""
> **A mistake that travels.** This very line is passed on as `trunc_normal_(w, std=1 / np.sqrt(d_in), a=-3, b=3)`. It
> runs, the std of the outputs is right, and no tail is cut: `a` and `b` are *values*. (So are their defaults, −2 and 2.)

**Predict.** With `d_in = 16_384` and `a=-3, b=3`: at how many standard deviations is the cut?
"""

# %%
guess = None  # standard deviations

# %% tags=["error-4"]
reconcile("the cut", guess, 3 / std, "standard deviations")
assert 3 / std == 384

not_cut = nn.init.trunc_normal_(torch.empty(d_in, d_out), std=std, a=-3, b=3)
beyond = int((not_cut.abs() > 3 * std).sum())
share = math.erfc(3 / math.sqrt(2))  # of a normal distribution, beyond 3 std
print(
    f"{beyond:,} of {not_cut.numel():,} weights beyond 3 std, {share * not_cut.numel():,.0f} expected"
)

assert abs(beyond / (share * not_cut.numel()) - 1) < 0.15
assert int((w.abs() > 3 * std * (1 + 1e-6)).sum()) == 0

# %% [markdown]
r"""
It could be worse than no cut at all. Until early 2026 PyTorch did not draw again (its issue 155588). It drew a uniform
number from 0 to 1, stretched it to −1 to 1, sent it through the inverse of the distribution function, and clamped to
`a` and `b`. On a CPU, uniform `float32` numbers are multiples of $2^{-24}$. So once in 16.8 million draws one is 0,
which becomes −1, then −∞, and the clamp makes it −3: a weight of 384 standard deviations. In a matrix of GPT-3's
feed-forward layer, expect 36 of them. If your PyTorch is older, `a=-3 * std, b=3 * std` keeps you safe.
"""

# %%
uniform = torch.rand(100_000)
assert torch.equal(uniform * 2**24, (uniform * 2**24).round())  # multiples of 2⁻²⁴

outlier = std * math.sqrt(2) * torch.erfinv(torch.tensor(-1.0))  # as the old sampler did
assert outlier == -math.inf
assert outlier.clamp(-3, 3) / std == -384
lowest = torch.tensor(-math.erf(3 / math.sqrt(2)))  # where it would start with a=-3 * std
assert abs(math.sqrt(2) * torch.erfinv(lowest).item() + 3) < 1e-4
gpt3 = FACTS["GPT-3 feed forward width"].value * FACTS["GPT-3 width"].value
assert round(gpt3 / 2**24) == 36
assert round(2**24 / 1e6, 1) == 16.8

# %% [markdown]
r"""
A cut has a price: what is left is narrower. With the density $\varphi$ of the normal distribution and the share $P$
that lies within $\pm c$ standard deviations, the std after the cut is $\sqrt{1 - 2c\,\varphi(c)/P}$ times what it was.
"""


# %%
def kept(cut: float) -> float:
    """Std of a normal distribution of std 1 that is cut at ±cut."""
    density = math.exp(-(cut**2) / 2) / math.sqrt(2 * math.pi)
    return math.sqrt(1 - 2 * cut * density / math.erf(cut / math.sqrt(2)))


for cut in (1, 2, 3, 4):
    sample = nn.init.trunc_normal_(torch.empty(1_000_000), a=-cut, b=cut)  # std is 1 here
    print(
        f"cut at {cut} std: {kept(cut):.4f} of it is left, measured {sample.std().item():.4f}"
    )
    assert abs(sample.std().item() / kept(cut) - 1) < 0.005

assert round(kept(3), 4) == 0.9866
assert round(kept(2), 2) == 0.88

# %% [markdown]
r"""
At ±3 the price is 1.3 %. That is nothing, is it? Keep the number in mind: 0.9866.

*Try it yourself:* which cut makes the std half of what it was? (`kept` tells; try values below 1.)

### Exercise 7.2 · A truncated normal of your own &nbsp; ★★☆ &nbsp; 15 minutes

Write `truncated_normal(shape, std, generator)`: a new `float32` tensor (no parameter yet) of that shape on the CPU
(PyTorch's default dtype and device are the usual ones),
drawn from a normal distribution with mean 0 and std `std`, *given that* each number lies within ±3 · `std`. (So the std
of the result is 0.9866 · `std`.) `shape` is a tuple or list of one or more sizes, which may be 0, and `std` is positive.
All randomness comes from `generator`, a `torch.Generator`: the same state gives the same numbers, two calls in a row
give different ones, and PyTorch's global generator stays as it was. (Draw many numbers at a time: a matrix has
millions.)
"""


# %% nbgrader={"grade": false, "grade_id": "truncated_normal", "locked": false, "schema_version": 3, "solution": true, "task": false}
def truncated_normal(
    shape: Sequence[int], std: float, generator: torch.Generator
) -> Float32[Tensor, "*shape"]:
    """Numbers from a normal distribution of std `std`, cut at ±3 · std."""
    ### BEGIN SOLUTION
    numbers = torch.randn(shape, generator=generator)
    while (outside := numbers.abs() > 3).any():
        numbers[outside] = torch.randn(int(outside.sum()), generator=generator)
    return numbers * std
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_truncated_normal", "locked": true}
check("truncated_normal")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Draw all numbers. While any of them lies outside, draw those again, and only those.</details>
<details><summary>Hint 2</summary>With a mask of bools, <code>numbers[mask] = …</code> replaces just those that it marks; how many is that? It is simplest to work with std 1 and to multiply at the end.</details>

**Why it matters.** A generator of your own is how an initialization becomes reproducible, whatever else draws random
numbers in the same program. And you know now what a truncated normal is *not*: clamped, or cut at 3.

## 5 · A model

Time to put it together. Here is the plan of a small model with the shape of every deep one: a few layers of equal
width, and a head that makes one number of each row.

```mermaid
flowchart LR
  accTitle: The Cruncher
  accDescr: A batch of B rows with dim numbers passes through num_layers linear layers of dim by dim, and a final one of dim by 1, to one number for each row.
  X["x<br/>[B, dim]"] --> A["layers.0<br/>[dim, dim]"] --> D["…"] --> F["final<br/>[dim, 1]"] --> Y["one number each<br/>[B]"]
```

### Exercise 7.3 · Linear, and Cruncher &nbsp; ★★☆ &nbsp; 20 minutes

Write two modules.

`Linear(d_in, d_out)` has one parameter, `weight`, of shape `[d_in, d_out]`, and no bias; it computes `x @ weight` for an
`x` with any number of leading dimensions. The weights begin as a normal distribution with mean 0 and std
$1/\sqrt{d_\text{in}}$ (LeCun: there is no ReLU here). Cut it at ±3 std or leave it uncut; either is right.

`Cruncher(dim, num_layers)` has `layers`, that many of your `Linear(dim, dim)` (there may be none), one after the other,
and then `final`, a `Linear(dim, 1)`. It turns `[B, dim]` into `[B]`, for a batch of one as well. The names `weight`,
`layers` and `final` count: they become the names in a checkpoint, which holds nothing else. Each layer draws numbers of
its own, and gradients reach every weight, and `x`. `.to(…)` must be able to move the whole model to another dtype or
device, and it computes there.
"""


# %% nbgrader={"grade": false, "grade_id": "cruncher", "locked": false, "schema_version": 3, "solution": true, "task": false}
class Linear(nn.Module):
    """x @ weight: from d_in numbers to d_out, without a bias."""

    def __init__(self, d_in: int, d_out: int) -> None:
        ### BEGIN SOLUTION
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_in, d_out) / math.sqrt(d_in))
        ### END SOLUTION

    def forward(self, x: Float[Tensor, "... d_in"]) -> Float[Tensor, "... d_out"]:
        ### BEGIN SOLUTION
        return x @ self.weight
        ### END SOLUTION


class Cruncher(nn.Module):
    """num_layers linear layers of one width, and a final one that makes one number of each row."""

    def __init__(self, dim: int, num_layers: int) -> None:
        ### BEGIN SOLUTION
        super().__init__()
        self.layers = nn.ModuleList(Linear(dim, dim) for _ in range(num_layers))
        self.final = Linear(dim, 1)
        ### END SOLUTION

    def forward(self, x: Float[Tensor, "B dim"]) -> Float[Tensor, "B"]:
        ### BEGIN SOLUTION
        for layer in self.layers:
            x = layer(x)
        return self.final(x).squeeze(-1)
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_cruncher", "locked": true}
check("cruncher")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Each <code>__init__</code> begins with <code>super().__init__()</code>. A weight is scaled first, and made an <code>nn.Parameter</code> last. A plain list would hide the layers.</details>
<details><summary>Hint 2</summary>A parameter that is divided by something is no parameter any more. <code>[layer] * n</code> is one layer, n times. And what does <code>squeeze()</code> make of a batch of one?</details>

**Why it matters.** Each model of this course, and each that you will meet, is this: parameters that are registered,
modules in modules, and a `forward` that says in which order.

Here is yours: what it has registered, and a forward pass on your device.
"""

# %% tags=["item-73"]
dim, num_layers, batch = 64, 2, 8
model = Cruncher(dim, num_layers)
for name, parameter in model.named_parameters():
    print(f"{name:>16}  {list(parameter.shape)!s:>9}  {parameter.numel():>6,}")

shapes = [(name, tuple(p.shape)) for name, p in model.named_parameters()]
assert sorted(shapes) == sorted(
    [("layers.0.weight", (64, 64)), ("layers.1.weight", (64, 64)), ("final.weight", (64, 1))]
)
assert sum(p.numel() for p in model.parameters()) == dim * dim + dim * dim + dim == 8_256

model = model.to(device)  # all of it, and in place: no copy of the model
assert all(p.device.type == device.type for p in model.parameters())
y = model(torch.randn(batch, dim, device=device))
assert y.shape == (batch,)

# %% [markdown]
r"""
`state_dict()` gives names and tensors: what a checkpoint holds. `load_state_dict` puts them into a model that has the
same names and shapes, and refuses others.

> **Trap: the best model so far.** `best = model.state_dict()` is *no copy*. It holds the parameters' own storage, and the
> next training step changes `best` as well. Clone each tensor, or write it to disk.
"""

# %%
state = model.state_dict()
assert set(state) == {"layers.0.weight", "layers.1.weight", "final.weight"}
assert memory.same_storage(state["final.weight"], model.final.weight)

best = {name: tensor.clone() for name, tensor in state.items()}
with torch.no_grad():
    model.final.weight.zero_()  # a training step, of a kind
assert not state["final.weight"].any() and best["final.weight"].any()

twin = Cruncher(dim, num_layers).to(device)
twin.load_state_dict(best)
x = torch.randn(batch, dim, device=device)
assert not torch.equal(twin(x), model(x))
model.load_state_dict(best)
assert torch.equal(twin(x), model(x))

try:
    Cruncher(dim, 3).load_state_dict(best)
    raise AssertionError("it loaded two layers into three")
except RuntimeError as refusal:
    print(str(refusal).splitlines()[1].strip())

# %% [markdown]
r"""
### Find the mistakes

Here is a model that runs. It has **five** faults, each of which you can name by now. Read it, and write them down
before you go on.
"""


# %%
class Suspicious(nn.Module):
    """A mean to take off, some layers, a shift, and a last layer."""

    def __init__(self, dim: int, num_layers: int) -> None:
        super().__init__()
        std = 1 / math.sqrt(dim)
        self.mean = torch.zeros(dim)
        self.layers = [Linear(dim, dim) for _ in range(num_layers)]
        self.shift = nn.Parameter(torch.randn(dim)) * std
        self.final = nn.Parameter(torch.empty(dim, 1))
        nn.init.trunc_normal_(self.final, std=std, a=-3, b=3)

    def forward(self, x: Float[Tensor, "B dim"]) -> Float[Tensor, "B"]:
        x = x - self.mean
        for layer in self.layers:
            x = layer(x)
        return ((x + self.shift) @ self.final).squeeze()


suspicious = Suspicious(256, 6)
assert suspicious(torch.randn(10, 256)).shape == (10,)  # it runs

# %% [markdown]
r"""
**Predict.** Its six layers, the shift and the last matrix are eight tensors to train. How many will an optimizer get?
"""

# %%
guess = None  # of eight

# %%
reconcile(
    "tensors that an optimizer gets", guess, len(list(suspicious.parameters())), "of eight"
)

# 1: a plain list. PyTorch does not look into it.
assert [name for name, _ in suspicious.named_parameters()] == ["final"]
# 2: a parameter times a number is no parameter, and its graph lasts for one backward pass.
assert type(suspicious.shift) is Tensor and not suspicious.shift.is_leaf
suspicious(torch.randn(10, 256)).sum().backward()
try:
    suspicious(torch.randn(10, 256)).sum().backward()
    raise AssertionError("a second step went through")
except RuntimeError as refusal:
    print(str(refusal).split("(")[0])
# Without it, nothing stops, and the loss goes down.
suspicious.shift = torch.zeros(256)
x, target, losses = torch.randn(64, 256), torch.randn(64), []
for _ in range(20):
    loss = (suspicious(x) - target).square().mean()
    losses.append(loss.item())
    (step,) = torch.autograd.grad(loss, suspicious.final)
    with torch.no_grad():
        suspicious.final.sub_(1e-3 * step)
assert losses[-1] < 0.95 * losses[0]
# 3: the mean is neither moved nor saved. It should be a buffer.
assert list(suspicious.state_dict()) == ["final"]
assert suspicious.to(torch.bfloat16).mean.dtype == torch.float32
# 4: a and b are values: cut at 48 standard deviations.
assert 3 / (1 / math.sqrt(256)) == 48
# 5: squeeze() takes the batch, too, if there is one row.
assert Suspicious(256, 6)(torch.randn(1, 256)).shape == ()

# %% [markdown]
r"""
The first backward pass runs. The second stops at the shift, which was computed once, in `__init__`, with a message that
does not say so. Without the shift nothing stops at all: the last layer is trained, on top of six random ones, and the
loss goes down. So before any training, **look at what is registered**: names, shapes, and the total. A model that is
wrong usually has the wrong number.

*Try it yourself:* mend `Suspicious`, until it has eight parameters, one buffer, and passes a batch of one.

## 6 · What a model weighs

"The total" is what the next lectures multiply by bytes and FLOPs, and three things make it ambiguous: tensors with two
names, parameters that are not trained, and tensors that are no parameters.

In many language models the table of embeddings and the output layer are *tied* (lecture 06): one matrix, registered in
two places. The smallest GPT-2 does so, with a vocabulary of 50,257 and a width of 768.

**Predict.** How many parameters does `model.parameters()` find, if that matrix is all the model has?
"""

# %%
guess = None  # parameters


# %%
class Tied(nn.Module):
    """A table of embeddings that is the output layer as well."""

    def __init__(self, vocab: int, d: int) -> None:
        super().__init__()
        self.table = nn.Embedding(vocab, d)
        self.head = nn.Linear(d, vocab, bias=False)
        self.head.weight = self.table.weight  # one parameter, two names


layers, d, context, vocab = (
    int(FACTS[f"GPT-2 small {what}"].value)
    for what in ("layers", "width", "context", "vocabulary")
)
with torch.device("meta"):
    tied = Tied(vocab, d)
found = sum(p.numel() for p in tied.parameters())
listed = sum(p.numel() for p in tied.state_dict().values())
reconcile("parameters of the tied model", guess, found, "parameters")

assert tied.head.weight is tied.table.weight
assert found == vocab * d == 50_257 * 768 == 38_597_376
assert [name for name, _ in tied.named_parameters()] == ["table.weight"]  # its first name
assert set(tied.state_dict()) == {"table.weight", "head.weight"}  # both
assert listed == 2 * found

on_disk = io.BytesIO()
torch.save(Tied(1_000, 64).state_dict(), on_disk)
assert len(on_disk.getvalue()) < 1.1 * 4 * 1_000 * 64  # one matrix, and a little

# All of it: table, positions, the layers' matrices, their biases and norms, and the last norm
gpt2 = found + context * d + layers * (12 * d**2 + 13 * d) + 2 * d
assert gpt2 == FACTS["GPT-2 small parameters"].value == 124_439_808
assert gpt2 + found == 163_037_184

# %% [markdown]
r"""
`parameters()` hands out each *tensor* once, whatever it is called: an optimizer has to step it once. `state_dict()`
lists each *name*. (On disk, `torch.save` writes the storage once.) So count with `parameters()`.

A **frozen** parameter, `requires_grad=False`, is still a parameter: it takes memory, and FLOPs in the forward pass, but
no gradient and no optimizer state. So one counts the two kinds apart.

### Exercise 7.4 · Count the parameters &nbsp; ★☆☆ &nbsp; 5 minutes

Write `count_parameters(model)`: the pair `(trainable, frozen)`, how many numbers the model's parameters hold that
require a gradient, and that do not. A parameter may have any shape and dtype, and there may be none. Modules in modules
count. A parameter with several names counts once, and a module that is used in two places, too. Buffers are no
parameters, and neither is what PyTorch doesn't know about. It must work on the meta device, where no tensor has an
address.
"""


# %% nbgrader={"grade": false, "grade_id": "count_parameters", "locked": false, "schema_version": 3, "solution": true, "task": false}
def count_parameters(model: nn.Module) -> tuple[int, int]:
    """(trainable, frozen): numbers in the model's parameters, each counted once."""
    ### BEGIN SOLUTION
    trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
    frozen = sum(p.numel() for p in model.parameters() if not p.requires_grad)
    return trainable, frozen
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_count_parameters", "locked": true}
check("count_parameters")

# %% [markdown]
r"""
<details><summary>Hint 1</summary><code>model.parameters()</code> yields all of them, each once.</details>
<details><summary>Hint 2</summary>Each parameter knows how many numbers it holds, and whether it requires a gradient. And mind that a generator can be walked through only once.</details>

**Why it matters.** "How many parameters?" is the first number of each memory and FLOP budget. You will read of the
smallest GPT-2 that it has 124 million, and that it has 163 million. It is the same model: the table once, or twice.

### A model of 70 billion, in no memory

To count a model one does not need to hold it. On the *meta* device a tensor has a shape and a dtype, and no storage
(lectures 01 and 06). With `torch.device("meta")` as a context, whatever is made inside is made there, also inside of
`__init__`. So here is your `Cruncher`, a bit wider:
"""

# %%
with memory.track("cpu") as used, torch.device("meta"):
    wide = Cruncher(32_768, 65)
trainable, frozen = count_parameters(wide)
print(f"{trainable:,} parameters, {used.peak} bytes")

assert trainable == 65 * 32_768**2 + 32_768 == 69_793_251_328
assert (frozen, used.peak) == (0, 0)
assert all(p.is_meta for p in wide.parameters())

# %% [markdown]
r"""
Shapes go through it, too: a forward pass on the meta device computes nothing and checks that everything fits together.
Only numbers cannot be had, and the model cannot be moved away:
"""

# %%
y = wide(torch.empty(16, 32_768, device="meta"))
assert y.shape == (16,) and y.is_meta
try:
    wide.to("cpu")
    raise AssertionError("it moved numbers that there are not")
except NotImplementedError as refusal:
    print(refusal)

# %% [markdown]
r"""
`to_empty` gives such a model storage of its own, and whatever was in that memory as numbers. One fills it afterwards:
with an initializer, or a checkpoint. That is how models are loaded that would not fit twice.

> **Trap: the tie that breaks.** `to_empty` makes a new tensor for each *name*. What was tied no longer is: two matrices,
> that begin differently, get different gradients, and drift apart. Tie again, then fill.
"""

# %%
with torch.device("meta"):
    tied = Tied(100, 8)
assert tied.head.weight is tied.table.weight

tied.to_empty(device="cpu")
assert tied.head.weight is not tied.table.weight
assert not memory.same_storage(tied.head.weight, tied.table.weight)
assert count_parameters(tied) == (2 * 100 * 8, 0)  # the count gives it away

tied.head.weight = tied.table.weight
assert count_parameters(tied) == (100 * 8, 0)

# %% [markdown]
r"""
### Exercise 7.5 · Bytes of a model &nbsp; ★★☆ &nbsp; 10 minutes

Write `model_bytes(model)`: the bytes that the elements of its parameters and buffers take. Trained or frozen, saved or
not: all of them need a place. Each has a dtype of its own. A parameter or a buffer with several names counts once, and
one that is part of a larger storage counts with its own elements. It must work on the meta device, where every tensor's
address is 0. (No tensor is a parameter and a buffer at once.)
"""


# %% nbgrader={"grade": false, "grade_id": "model_bytes", "locked": false, "schema_version": 3, "solution": true, "task": false}
def model_bytes(model: nn.Module) -> int:
    """Bytes of all parameters and buffers, each counted once."""
    ### BEGIN SOLUTION
    tensors = [*model.parameters(), *model.buffers()]
    return sum(t.numel() * t.element_size() for t in tensors)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_model_bytes", "locked": true}
check("model_bytes")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>There is <code>model.parameters()</code>, and there is <code>model.buffers()</code>. Both hand out each tensor once.</details>
<details><summary>Hint 2</summary>As in exercise 1.1: the number of elements times the bytes of one.</details>

**Why it matters.** Whether a model fits is decided by this number, and one wants it *before* the download.

Here is Llama 3 70B, made of your `Linear`, in the dtype that it was released in. (The shapes are those of lecture 06.
There is no `forward`: nobody is going to run it.)
"""


# %%
class LlamaLayer(nn.Module):
    """The parameters of one layer of Llama 3."""

    def __init__(self, d: int, kv: int, hidden: int) -> None:
        super().__init__()
        self.q, self.o = Linear(d, d), Linear(d, d)
        self.k, self.v = Linear(d, kv), Linear(d, kv)
        self.gate, self.up, self.down = Linear(d, hidden), Linear(d, hidden), Linear(hidden, d)
        self.norm_1, self.norm_2 = nn.RMSNorm(d), nn.RMSNorm(d)


class LlamaWeights(nn.Module):
    """The parameters of Llama 3."""

    def __init__(self, size: str) -> None:
        super().__init__()
        shape = ("layers", "width", "heads", "key and value heads", "feed forward width")
        layers, d, heads, kv_heads, hidden = (
            int(FACTS[f"Llama 3.1 {size} {what}"].value) for what in shape
        )
        vocab = int(FACTS["Llama 3.1 vocabulary"].value)
        kv = d // heads * kv_heads
        self.table = nn.Embedding(vocab, d)
        self.layers = nn.ModuleList(LlamaLayer(d, kv, hidden) for _ in range(layers))
        self.norm = nn.RMSNorm(d)
        self.head = Linear(d, vocab)


with torch.device("meta"):
    llama = LlamaWeights("70B")
parameters = count_parameters(llama)[0]
full = model_bytes(llama)
released = model_bytes(llama.to(torch.bfloat16))
print(f"{parameters:,} parameters; fp32 {format_bytes(full)}, bf16 {format_bytes(released)}")

assert parameters == FACTS["Llama 3.1 70B parameters"].value == 70_553_706_496
assert full == 4 * parameters and released == 2 * parameters
assert f"{released / 1e9:.0f}" == "141"
assert math.ceil(released / FACTS["H100 SXM memory"].value) == 2

# %% [markdown]
r"""
Two H100s of 80 GB to hold the parameters, in bf16, and nothing else. (Gradients, optimizer state and activations are
lecture 08.)

*Try it yourself:* if table and output layer were tied, how many GB would that save, and how many per cent of the model?
And in Llama 3 8B, `LlamaWeights("8B")`?

## 7 · Fifty layers

Now back to the question of the beginning, and to depth. The outputs of one layer are the inputs of the next, so factors
multiply. Write $m_l$ for the mean square of the outputs of layer $l$ (before any ReLU). Then sections 2 and 3 say

$$m_{l} = \text{fan\_in}_l \cdot \sigma_l^2 \cdot \tfrac12\, m_{l-1} \quad\text{with a ReLU between the layers},$$

without the ½ if there is none. The outputs have both signs, so their mean is 0 and $\sqrt{m_l}$ is their std. The first
layer gets the data, which did not go through a ReLU: no ½ there.

A gradient makes the same journey from the other end. Write $g_l$ for the mean square of the gradient of those outputs.
Where the ReLU was off, nothing passes: again half of it. And going back, each sum runs over the *outputs* of the layer:

$$g_{l-1} = \text{fan\_out}_l \cdot \sigma_l^2 \cdot \tfrac12\, g_l .$$

### Exercise 7.6 · There and back &nbsp; ★★★ &nbsp; 25 minutes

Write two functions. A chain of one or more linear layers turns `widths[0]` numbers into `widths[1]`, these into
`widths[2]`, and so on; layer $i$ (from 0) has weights of std `weight_stds[i]`, which is positive, and mean 0. With
`relu=True` there is a ReLU *between* layers: not before the first, and not after the last.

`stds_through_depth(widths, weight_stds, relu)`: a list with the std of each layer's outputs, before the ReLU, if the
data have mean 0 and std 1.

`gradient_stds_through_depth(widths, weight_stds, relu)`: a list with the std of the gradient with respect to each
layer's outputs (again before the ReLU), in the order of the layers, if it is 1 at the outputs of the last.

Both have one number for each layer, and leave their arguments as they are.
"""


# %% nbgrader={"grade": false, "grade_id": "stds_through_depth", "locked": false, "schema_version": 3, "solution": true, "task": false}
def stds_through_depth(
    widths: Sequence[int], weight_stds: Sequence[float], relu: bool
) -> list[float]:
    """Std of the outputs of each layer, for data of std 1."""
    ### BEGIN SOLUTION
    mean_square, stds = 1.0, []
    for layer, std in enumerate(weight_stds):
        if relu and layer > 0:
            mean_square /= 2
        mean_square *= widths[layer] * std**2
        stds.append(math.sqrt(mean_square))
    return stds
    ### END SOLUTION


def gradient_stds_through_depth(
    widths: Sequence[int], weight_stds: Sequence[float], relu: bool
) -> list[float]:
    """Std of the gradient of each layer's outputs, where it is 1 for the last."""
    ### BEGIN SOLUTION
    mean_square, stds = 1.0, [1.0]
    for layer in reversed(range(1, len(weight_stds))):
        mean_square *= widths[layer + 1] * weight_stds[layer] ** 2
        if relu:
            mean_square /= 2
        stds.append(math.sqrt(mean_square))
    return stds[::-1]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_stds_through_depth", "locked": true}
check("stds_through_depth")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Keep one running number, the mean square, multiply it by one factor for each layer, and append its root.</details>
<details><summary>Hint 2</summary>Backward: draw layers i and i + 1 below each other. The gradient of layer i's outputs comes back through the weights between them. How many terms has each sum? Begin with 1.0 for the last layer, and walk down.</details>

**Why it matters.** These two lines of algebra are the whole theory behind the names. With them you can say for *any*
initializer, width and depth what will arrive, before you build it.

Check it on a chain whose widths go up and down:
"""

# %%
generator = torch.Generator().manual_seed(0)
widths = [1_024, 4_096, 512, 2_048, 1_024]
stds = [init_std("glorot", a, b) for a, b in itertools.pairwise(widths)]
weights = [
    truncated_normal((a, b), std, generator)
    for a, b, std in zip(widths[:-1], widths[1:], stds, strict=True)
]
outputs = []
x = torch.randn(64, widths[0], generator=generator)
for i, w in enumerate(weights):
    x = (torch.relu(x) if i else x) @ w.requires_grad_()
    x.retain_grad()
    outputs.append(x)
x.backward(torch.randn(x.shape, generator=generator))

stds = [std * kept(3) for std in stds]  # what is left of each after the cut
forward = stds_through_depth(widths, stds, relu=True)
back = gradient_stds_through_depth(widths, stds, relu=True)
for i, output in enumerate(outputs):
    assert output.grad is not None
    there, and_back = output.std().item(), output.grad.square().mean().sqrt().item()
    print(
        f"layer {i}: outputs {there:.3f}, predicted {forward[i]:.3f};"
        f"  gradients {and_back:.3f}, predicted {back[i]:.3f}"
    )
    assert abs(there / forward[i] - 1) < 0.25 and abs(and_back / back[i] - 1) < 0.25

# %% [markdown]
r"""
### The result

Fifty layers, 512 wide, with a ReLU after each. The model is your `Cruncher`, with a memory for what passes through, and
the weights come from your `truncated_normal`. Four ways to begin: the std of `torch.randn`, which is 1, that of
`nn.Linear`, LeCun's (which is Glorot's here, as the matrices are square), and Kaiming's.
"""


# %%
class Deep(Cruncher):
    """A Cruncher with ReLUs, that remembers the outputs of each layer."""

    def forward(self, x: Float[Tensor, "B dim"]) -> Float[Tensor, "B"]:
        self.outputs = []
        for layer in self.layers:
            x = layer(x)
            x.retain_grad()
            self.outputs.append(x)
            x = torch.relu(x)
        return self.final(x).squeeze(-1)


def some_data(generator: torch.Generator) -> Tensor:
    """Rows of std 1; they require a gradient, so that all outputs have one."""
    return torch.randn(32, width, generator=generator).requires_grad_()


def root_mean_square(x: Tensor) -> float:
    """The std of numbers whose mean is 0."""
    return x.detach().double().square().mean().sqrt().item()


def initialize(model: nn.Module, std: float, generator: torch.Generator) -> None:
    """Fill each parameter from a truncated normal distribution."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(truncated_normal(tuple(parameter.shape), std, generator))


width, depth = 512, 50
ways_to_begin = {
    "torch.randn": 1.0,
    "nn.Linear": 1 / math.sqrt(3 * width),
    "LeCun = Glorot": init_std("lecun", width, width),
    "Kaiming": init_std("kaiming", width, width),
}
assert ways_to_begin["LeCun = Glorot"] == init_std("glorot", width, width)
deep = Deep(width, depth).requires_grad_(False)  # only outputs and their gradients matter here
assert count_parameters(deep) == (0, depth * width**2 + width)

# %% [markdown]
r"""
First `torch.randn`. The factor per layer is $\sqrt{512 / 2} = 16$.

**Predict.** `float32` ends at about $2^{128}$. The outputs of the first layer have std $\sqrt{512} = 2^{4.5}$. Which
layer is the first whose outputs overflow?
"""

# %%
guess = None  # the number of the layer, from 1

# %%
generator = torch.Generator().manual_seed(0)
deep.to(device, torch.float32)
initialize(deep, 1.0, generator)
y = deep(some_data(generator).to(device))
broken = [i + 1 for i, z in enumerate(deep.outputs) if not z.isfinite().all()]
reconcile("the first layer that overflows", guess, broken[0], "")

assert y.isnan().all()  # what is left of the result
too_large = [i + 1 for i, z in enumerate(deep.outputs) if z.abs().max() > 65_504]
assert too_large[0] == 4  # where float16 would have ended
assert broken == list(range(32, 51))
# In powers of two: 124.5 in layer 31, 128.5 in layer 32
assert 4.5 + 4 * (31 - 1) < 128 < 4.5 + 4 * (32 - 1)

# %% [markdown]
r"""
The result is NaN, from a model in which nothing is wrong but a factor. (bf16 has the same range. In fp16, it would have
been layer 4.)

Now all four. Some of these numbers have no place in `float32`, so we measure in `float64`, on the CPU. Your prediction
knows of the cut: it takes `kept(3)` times the std.

**Predict.** The same for LeCun. The factor per layer is $\sqrt{1/2}$. What is the std after 50 layers?
"""

# %%
guess = None  # std of the outputs of layer 50

# %%
outputs_of, gradients_of, predicted, predicted_back, shown = {}, {}, {}, {}, {}
deep.to("cpu").double()
for name, std in ways_to_begin.items():
    generator = torch.Generator().manual_seed(0)
    initialize(deep, std, generator)
    deep(some_data(generator).double())
    last = deep.outputs[-1]
    last.backward(torch.randn(last.shape, generator=generator).double())

    outputs_of[name] = [root_mean_square(z) for z in deep.outputs]
    gradients_of[name] = [root_mean_square(z.grad) for z in deep.outputs]
    shown[name] = {f"layer {i}": deep.outputs[i - 1].detach() for i in (1, 5, 20, 50)}
    chain = [width] * (depth + 1), [std * kept(3)] * depth, True
    predicted[name] = stds_through_depth(*chain)
    predicted_back[name] = gradient_stds_through_depth(*chain)
reconcile("LeCun after 50 layers", guess, outputs_of["LeCun = Glorot"][-1], "")

for name in ways_to_begin:  # over up to 60 powers of ten, never off by more than a factor of 4
    for observed, expected in [
        (outputs_of[name], predicted[name]),
        (gradients_of[name], predicted_back[name]),
    ]:
        assert all(1 / 4 < m / p < 4 for m, p in zip(observed, expected, strict=True))
assert outputs_of["torch.randn"][-1] > 1e59
assert outputs_of["nn.Linear"][-1] < 1e-19
assert 3e-9 < outputs_of["LeCun = Glorot"][-1] < 1e-7
assert 0.2 < outputs_of["Kaiming"][-1] < 2.2

# %%
largest = torch.finfo(torch.float32).max
finding = "Fifty layers: one way to begin explodes, two die, one arrives, all as predicted"
figure = plots.through_depth(
    outputs_of,
    predicted,
    ylabel="std of the layer's outputs",
    title=finding,
    limits={"largest float32": largest},
)
plots.show(
    figure,
    alt=f"{finding}. The std by layer on a logarithmic axis: straight lines. randn rises from 22 "
    "to 1e60 and leaves float32 between layers 30 and 35; nn.Linear falls to 1e-20, LeCun to "
    "1e-8; Kaiming stays near 1. The predictions lie on the measurements.",
)

assert predicted["torch.randn"][29] < largest < predicted["torch.randn"][34]

# %%
finding = "The gradients, from the last layer back to the first, share the fate of the outputs"
figure = plots.through_depth(
    gradients_of,
    predicted_back,
    ylabel="std of the gradient of the outputs",
    title=finding,
    limits={"largest float32": largest},
    backward=True,
)
plots.show(
    figure,
    alt=f"{finding}. At layer 50 all are 1. On the way back to layer 1 randn grows to 1e58, Kaiming "
    "stays near 1, LeCun falls to 1e-8, nn.Linear to 1e-19.",
)

assert gradients_of["torch.randn"][0] > 1e57
assert gradients_of["nn.Linear"][0] < 1e-18 and gradients_of["LeCun = Glorot"][0] < 1e-7
assert 0.2 < gradients_of["Kaiming"][0] < 2

# %%
finding = (
    "The same outputs as histograms: by layer 20 only Kaiming's look like those of layer 1"
)
figure = plots.distributions(shown, reach=5, title=finding)
plots.show(
    figure,
    alt=f"{finding}. Each row a way to begin, each column a layer. randn lies out of the range of "
    "minus 5 to 5 from layer 5 on; nn.Linear and LeCun shrink to a spike at 0.",
)

assert outputs_of["LeCun = Glorot"][19] < 2e-3 and outputs_of["nn.Linear"][4] < 0.03

# %% [markdown]
r"""
Straight lines: a constant factor per layer. And what dies forward dies backward. A layer in the middle of such a
network gets inputs of nearly 0, and of its errors it hears in whispers.

Note *which* rule is right. Your `Cruncher` has no ReLUs. There LeCun keeps 1, and Kaiming explodes. A rule belongs to
what stands between the layers.
"""

# %%
for kind in ("lecun", "kaiming"):
    stds = [init_std(kind, width, width)] * depth
    end = stds_through_depth([width] * (depth + 1), stds, relu=False)[-1]
    print(f"{kind:>8} without ReLUs: {end:.3g} after {depth} layers")
    assert math.isclose(end, {"lecun": 1, "kaiming": 2**25}[kind])

# %% [markdown]
r"""
Now move it: another network of this kind, measured beside its prediction each time. (*Gain* multiplies the weights;
with a *residual connection* each layer adds to what it was given.) Without a nonlinearity, how far may the gain be off 1
before fifty layers notice? And which initializer dies out without residual connections, and arrives with them?
"""

# %%
from course_utils.widgets import initialization

initialization.explore("LeCun = Glorot", "ReLU", depth=50, width=128)

# %% [markdown]
r"""
### The last 1.3 per cent

On that axis Kaiming looks flat. Look closer. It begins at $\sqrt2$ (the first layer has a 2 that it does not need), and
each layer's weights are cut: 0.9866 of the std that you asked for.

**Predict.** 0.9866 per layer. Which share is left after 50?
"""

# %%
guess = None  # of what would be there without a cut

# %%
reconcile("what 50 cuts leave", guess, kept(3) ** depth, "of it")
assert round(kept(3) ** depth, 2) == 0.51

# %% [markdown]
r"""
Half. Does it show? In a single network not clearly. Its scale also depends on which weights it happened to draw, and
*wanders* along the way, by tens of per cent. The prediction is about the mean square over many draws. So draw eight.
"""

# %%
deep.float()
squares, ends = [0.0] * depth, []
for seed in range(8):
    generator = torch.Generator().manual_seed(seed)
    initialize(deep, init_std("kaiming", width, width), generator)
    deep(some_data(generator))
    stds = [root_mean_square(z) for z in deep.outputs]
    squares = [total + std**2 / 8 for total, std in zip(squares, stds, strict=True)]
    ends.append(stds[-1])
together = [math.sqrt(square) for square in squares]
print("after 50 layers:", "  ".join(f"{end:.2f}" for end in ends))

with_cut = predicted["Kaiming"]
chain = [width] * (depth + 1), [init_std("kaiming", width, width)] * depth, True
without_cut = stds_through_depth(*chain)
finding = "The cut that costs 1.3 % of one layer costs half of what passes through fifty"
figure = plots.through_depth(
    {"eight networks": together},
    {"with the cut": with_cut, "without it": without_cut},
    ylabel="std of the layer's outputs",
    title=finding,
)
plots.show(
    figure,
    alt=f"{finding}. Without a cut the prediction stays at 1.41; with it, it falls to 0.72 in 50 "
    "layers, and the mean of eight networks follows.",
)

assert round(with_cut[-1], 2) == 0.72 and round(without_cut[-1], 2) == 1.41
assert together[-1] < 1.2
assert max(ends) > 1.2 * min(ends)  # they wander

# %% [markdown]
r"""
Those who know divide by it: ask for `std / kept(3)`, cut at ±3 times that, and the weights that are left have the std
that was meant. (The `variance_scaling` initializers of JAX and Keras do so, for their cut at ±2; PyTorch's
`trunc_normal_` does what you tell it.) Take one network, and correct the weights that it has. Nothing is drawn again,
so nothing wanders:
"""

# %%
generator = torch.Generator().manual_seed(0)
initialize(deep, init_std("kaiming", width, width), generator)
x = some_data(generator)
deep(x)
as_cut = root_mean_square(deep.outputs[-1])
for parameter in deep.parameters():
    parameter.div_(kept(3))
deep(x)
corrected = root_mean_square(deep.outputs[-1])
print(f"layer 50 as cut {as_cut:.3f}, corrected {corrected:.3f}")

assert abs(as_cut / corrected / kept(3) ** depth - 1) < 1e-3

# %% [markdown]
r"""
### And what do large models do?

They cheat, in the best sense: they put something between the layers that sets the scale anew each time. With a norm
(RMSNorm: divide each row by the root of its mean square) after each layer, factors no longer multiply.
"""


# %%
class Normed(Cruncher):
    """A Cruncher with ReLUs and norms, that returns the outputs of its last layer."""

    def forward(self, x: Float[Tensor, "B dim"]) -> Float[Tensor, "B dim"]:
        for layer in self.layers:
            z = layer(x)
            x = nn.functional.rms_norm(torch.relu(z), (z.shape[-1],))
        return z


normed = Normed(width, depth).requires_grad_(False)
for name, std in ways_to_begin.items():
    generator = torch.Generator().manual_seed(0)
    initialize(normed, std, generator)
    end, alone = root_mean_square(normed(some_data(generator))), math.sqrt(width) * std
    print(f"{name:>14}: layer 50 puts out {end:.3f}; one layer alone would put out {alone:.3f}")
    assert abs(end / (alone * kept(3)) - 1) < 0.15  # as if it were the only layer

# %% [markdown]
r"""
After 50 layers, what one layer does. A Transformer has a norm at each block, and forgives an initializer that is off by
a factor. The paper of the first GPT (Radford et al., 2018) says so: as it has norms throughout, a plain std of 0.02 is
enough. Whatever has no norm to catch it you still have to ask what it does to the scale, and now you can.

*Try it yourself:* in `Deep`, replace the ReLU by `torch.tanh`. Which of the four arrives now? (`tanh` keeps
numbers within ±1. Are the gradients kept as well?)

## Takeaways

**Mechanics.** An `nn.Parameter` assigned to a module is trained, moved and saved; a buffer is moved and saved; a plain
tensor or list is none of these. $\operatorname{std}(y) = \sqrt{\text{fan\_in}}\,\sigma\,\operatorname{std}(x)$ forward,
and with fan_out for the gradient. Variances: LeCun $1/\text{fan\_in}$, Glorot $2/(\text{fan\_in}+\text{fan\_out})$,
Kaiming $2/\text{fan\_in}$, `nn.Linear` $1/(3\,\text{fan\_in})$. The cut of `trunc_normal_` is in values: `±3 * std`; it
leaves 0.9866 of the std. `parameters()` counts a tied weight once, `state_dict()` by each name, `to_empty` breaks the tie.

**Mindset.** Before you train, print names, shapes and the total. Before you build, weigh it on the meta device. For
each operation ask what it does to the mean square, then multiply along the depth, in both directions.

**Intuitions.** Random terms add like roots: 16,384 of them make 128. A factor per layer is an exponential in depth: 16
reaches the end of float32 in layer 32, $\sqrt{1/2}$ leaves some $10^{-8}$ after 50, and even 0.9866 halves.
Llama 3 70B is 141 GB in bf16, before anything has been done with it.

Next: [08 · Optimizers](../08_optimizers/08_optimizers.ipynb). The model stands, its gradients arrive. What does a step do with them, and how many bytes does
it want for that?
"""

# %% [markdown]
r"""
# 07 · Models and initialization

[← 06 · Gradients and 6N](../06_gradients_and_6n/06_gradients_and_6n.ipynb) &nbsp;|&nbsp; [08 · Optimizers
→](../08_optimizers/08_optimizers.ipynb)

> **What should the weights of a model be before training, and why does depth matter?**

You know what a model costs; now you'll build one. Before training, a model's parameters need values, and the choice of
these values is called **initialization**. They have to be random, but how large? If they're several times too large,
the numbers overflow `float32` within fifty layers. If they're only a little too small, almost nothing reaches the last
layer. In this lecture you'll build a network of 50 layers. For four kinds of initialization, you'll predict how large
the numbers in each layer are, both in the forward and in the backward pass, and then check your predictions by
measuring. With three of the four, nothing useful gets through.
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
## 1 · Parameters and modules

In PyTorch a parameter is an `nn.Parameter`: a tensor like any other, except that it requires a gradient by default, and
that a model registers it when you assign it to one of the model's attributes.
"""

# %% tags=["item-68"]
w = nn.Parameter(torch.ones(2, 3))

assert isinstance(w, Tensor)  # it can do everything that a tensor can
assert w.requires_grad and w.is_leaf  # and it keeps a gradient (lecture 06)
assert type(w.data) is Tensor  # the same numbers as a plain tensor
assert memory.same_storage(w, w.data)
print(w)

half = w / 2
assert type(half) is Tensor and not half.is_leaf  # a result is not a parameter

# %% [markdown]
r"""
A model is an `nn.Module`. Its class has a `forward` method, and an `__init__` that assigns parameters and other modules
to `self`. You don't have to list them. `nn.Module` watches each assignment and *registers* every parameter or module
that's assigned. Three methods go through what's registered: `model.parameters()` lists the parameters (for the
optimizer, say), `model.to(…)` moves it, and `model.state_dict()` lists what to save.

Anything that isn't registered still works in `forward`, but these three methods ignore it. The class below stores a
tensor in seven ways: as an `nn.Parameter`, in a module, in an `nn.ModuleList`, with
`register_buffer`, with `register_buffer(…, persistent=False)`, as a plain tensor, and in a plain list of modules.

A **buffer** is a registered tensor that moves with its model, but isn't a parameter and isn't trained.

**Predict.** How many of the seven does `parameters()` find?
"""

# %%
guess = None  # of seven


# %% tags=["open"]
class SevenWays(nn.Module):
    """A tensor of one number, stored in seven ways."""

    def __init__(self) -> None:
        super().__init__()
        self.parameter = nn.Parameter(torch.ones(1))
        self.tensor = torch.ones(1)
        self.register_buffer("buffer", torch.ones(1))
        self.register_buffer("scratch", torch.ones(1), persistent=False)
        self.module = nn.Linear(1, 1, bias=False)
        self.plain_list = [nn.Linear(1, 1, bias=False)]
        self.module_list = nn.ModuleList([nn.Linear(1, 1, bias=False)])


# %%
def tensor_of(held: Any) -> Any:
    """The tensor itself, or the first weight of a module or list."""
    held = held[0] if isinstance(held, list | nn.ModuleList) else held
    return held.weight if isinstance(held, nn.Module) else held


ways = SevenWays()
trained = {name.split(".")[0] for name, _ in ways.named_parameters()}
saved = {name.split(".")[0] for name in ways.state_dict()}
reconcile("found by parameters()", guess, len(trained), "of seven")

ways.to(torch.bfloat16)  # converts floating-point tensors; a change of device moves all
seven = ["parameter", "tensor", "buffer", "scratch", "module", "plain_list", "module_list"]
taken_along = {n for n in seven if tensor_of(getattr(ways, n)).dtype == torch.bfloat16}

assert trained == {"parameter", "module", "module_list"}
assert taken_along == trained | {"buffer", "scratch"}
assert saved == trained | {"buffer"}

# %% [markdown]
r"""
Here are all seven:

| assigned to `self` | what happens to it |
|---|---|
| `nn.Parameter(…)`, a module, `nn.ModuleList([…])` | trained, moved and saved |
| `register_buffer(name, …)`: a running mean, a mask | moved and saved |
| the same with `persistent=False` | moved |
| a plain tensor; a plain list of modules | nothing |

> **Trap: a parenthesis.** `nn.Parameter(torch.randn(n)) / 10` is the *result* of a division, a plain tensor, so it
> isn't registered. You probably want `nn.Parameter(torch.randn(n) / 10)`.

> **Trap: too early.** Before `super().__init__()` has run, a module can't register anything, and PyTorch raises an
> error if you try.
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
    raise AssertionError("it registered a parameter too early")
except AttributeError as refusal:
    print(refusal)

# %% [markdown]
r"""
*Try it yourself:* can a parameter hold integers, as in `nn.Parameter(torch.arange(3))`? What if you add
`requires_grad=False`?

## 2 · How large is a sum of many terms?

Now for the initial values of the weights. They can't all be equal. If every weight starts at the same value, all
outputs of a hidden layer are equal, and the next layer uses them with equal weights. So they receive equal gradients,
and so do their weights. After a training step the outputs are still equal: the layer computes one output many times.
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
So we draw the weights at random. The obvious choice is `torch.randn`, with mean 0 and standard deviation 1. (We'll
write *std*; its square is the **variance**.) Take one layer with 16,384 inputs, which have std 1 as well. Each output is a sum over all inputs:

$$y_j = \sum_{i=1}^{d_\text{in}} x_i \, w_{ij}$$

**Predict.** What's the std of the outputs?
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
The terms are independent, some positive and some negative, so most of the sum cancels. It's the *variances* that add
up.

Each product $x_i w_{ij}$ has variance $1 \cdot 1$, so the sum of $d_\text{in}$ of them has variance $d_\text{in}$. If
the weights have mean 0 and std $\sigma$, and the inputs have mean 0, then

$$\operatorname{std}(y) = \sqrt{d_\text{in}} \; \sigma \; \operatorname{std}(x)$$

This formula also shows how to keep the std at 1. Divide the weights by $\sqrt{d_\text{in}}$:
"""

# %% tags=["item-70"]
w = nn.Parameter(torch.randn(d_in, d_out, device=device) / math.sqrt(d_in))
y = x @ w

assert 0.9 < y.std().item() < 1.1
print(f"std of the weights {w.std().item():.5f}, of the outputs {y.std().item():.2f}")

# %% tags=["error-31"]
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
    title="The outputs grow with the square root of the width unless the weights shrink accordingly",
)
plots.show(
    figure,
    alt="Std of a layer's outputs against its number of inputs. With weights as drawn it rises "
    "from 4 to 128, as predicted; with weights divided by the root it stays at 1.",
)

assert 128**2 == 16_384 and 128**3 > torch.finfo(torch.float16).max == 65_504
for name, values in measured.items():
    assert all(0.85 < m / p < 1.15 for m, p in zip(values, predicted[name], strict=True))
narrow, *_, wide = predicted["as drawn"]
assert widths[-1] / widths[0] == 1_024 and wide / narrow == 32

# %% [markdown]
r"""
You may read that the outputs are "linear in the number of inputs". Their *variance* is. With 16,384 inputs instead of
16, which is 1,024 times as many, the outputs themselves are only 32 times as large.

A single layer that multiplies by 128 would be no problem. But its outputs are the inputs of the next layer, which
multiplies again. Two such layers give a std of 16,384, and a few of their outputs already exceed the limit of
`float16`, 65,504; with the third, most do.

*Try it yourself:* take inputs that are all positive, `torch.rand`. Is the std of the outputs still proportional to the
*std* of `x`, or to the square root of the mean of its squares? (You'll need the answer in section 3.)

## 3 · Three initializers

"Divide by the square root of the number of inputs" is one rule. There are others, and they're easily confused. Here's
where each one comes from.

Consider a weight matrix that turns `fan_in` numbers into `fan_out`. You've seen what happens in the forward pass. In
the backward pass, the gradient of the outputs is multiplied by the same matrix, transposed (lecture 06), so each number
in the gradient of the inputs is a sum over the outputs. With $y = x\,w$ and $\nabla x = \nabla y\, w^\top$,

$$\begin{split}
& \operatorname{std}(y) = \sqrt{\text{fan\_in}}\;\sigma\;\operatorname{std}(x) \\
& \operatorname{std}(\nabla x) = \sqrt{\text{fan\_out}}\;\sigma\;\operatorname{std}(\nabla y) .
\end{split}$$

- **LeCun initialization** (LeCun and others, 1998) keeps the std of the outputs at 1: the weights get variance
  $1/\text{fan\_in}$. This is the rule of section 2.
- **Glorot initialization** (Glorot and Bengio, 2010) also takes the gradients into account, which keep their std if the
  weights have variance $1/\text{fan\_out}$. Unless the matrix is square, you can't have both, so it puts the mean of
  the two fans in the denominator: variance $2/(\text{fan\_in} + \text{fan\_out})$. (It's also called *Xavier*, Glorot's
  first name.)
- **Kaiming initialization** (He and others, 2015; Kaiming is He's first name) takes into account the function *between*
  layers. A **ReLU** sets negative numbers to 0 and keeps the others. This halves the mean of the squares, and the
  weights compensate for it: variance $2/\text{fan\_in}$.
"""

# %%
z = torch.randn(1_000_000)
passed = torch.relu(z)

assert abs(passed.square().mean().item() - 1 / 2) < 0.01  # half of the squares are gone
# The variance is smaller by the square of the mean, 1 / sqrt(2 pi): 0.34.
assert abs(passed.var().item() - (1 / 2 - 1 / (2 * math.pi))) < 0.01
print(f"mean of the squares {passed.square().mean():.3f}, variance {passed.var():.3f}")

# %% [markdown]
r"""
Be careful with the second number printed above, the variance. After a ReLU the mean is no longer 0, so the variance and
the mean square differ. What matters for the next sum is the *mean square*: the terms of that sum are $x_i w_{ij}$, and
the weights are independent and have mean 0, so each term has mean 0 and variance
$\mathbb{E}[(x_i w_{ij})^2] = \mathbb{E}[x_i^2]\,\sigma^2$, where $\mathbb{E}$ stands for the mean. Whether the mean of
$x$ is 0 doesn't matter.

Here are all three rules applied to a matrix with four times as many outputs as inputs, forward and backward.
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
        f"{name:>8}: forward {there:.2f}, backward {returned:.2f}, forward with ReLU {after_relu:.2f}"
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
> **Trap: Xavier isn't LeCun.** You may see $1/\sqrt{d_\text{in}}$ called "Xavier up to a constant". It's LeCun's
> rule. Glorot's also depends on the outputs: for the matrix above, its std is 0.63 times LeCun's, and for the transpose
> it's 1.26 times. So no constant turns one rule into the other.

What does PyTorch do by default? `nn.Linear` draws its weights uniformly between $-1/\sqrt{\text{fan\_in}}$
and $+1/\sqrt{\text{fan\_in}}$. That looks like LeCun's rule.

**Predict.** An `nn.Linear` has 1,024 inputs of std 1, no bias, and PyTorch's default weights. What's the std of the
outputs?
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
A uniform distribution from $-a$ to $a$ has std $a/\sqrt3$, not $a$. So the variance of `nn.Linear`'s weights is
$1/(3\,\text{fan\_in})$, a third of LeCun's. You'll see what that does in a deep model.

> **Trap: which size is `fan_in`?** PyTorch's own layers store a weight as `[fan_out, fan_in]` and compute
> `x @ weight.T`, and its initializers take the *second* size as `fan_in`. We write `x @ w`, with `[fan_in, fan_out]`.
> If you pass a matrix laid out our way, they divide by the wrong size. Pass `w.T`: it's a view, so writing to it fills
> `w`.
"""

# %%
w = torch.empty(16_384, 32)  # for x @ w: 16,384 inputs
nn.init.kaiming_normal_(w)
wrong = w.std().item()
nn.init.kaiming_normal_(w.T)
right = w.std().item()
print(f"std {wrong:.3f} instead of {right:.4f}: {wrong / right:.1f} times too large")

assert abs(right / math.sqrt(2 / 16_384) - 1) < 0.02
assert abs(wrong / right / math.sqrt(16_384 / 32) - 1) < 0.02  # 22.6

# %% [markdown]
r"""
*Try it yourself:* `nn.init.xavier_normal_` multiplies its std by the argument `gain=`. For a square matrix, which gain
turns it into Kaiming's rule?

### Exercise 7.1 · Three initializers &nbsp; ★☆☆ &nbsp; essential &nbsp; 5 minutes

Write `init_std(kind, fan_in, fan_out)`. It returns the std of the weights for the kinds `"lecun"`, `"glorot"` and
`"kaiming"` (forward, for ReLU), as a Python float (or a 0-dimensional tensor) computed in full precision; a different
rounding of the last digit is fine. For any other kind, including `"LeCun"`, raise a `ValueError`.
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
<details><summary>Hint 1</summary>Section 3 gives three variances. The exercise asks for the standard deviation.</details>
<details><summary>Hint 2</summary>For a ReLU the variance of the weights doubles, not their standard deviation. And try a kind that's none of the three.</details>

**Why it matters.** A factor of $\sqrt2$ looks like a detail, but across 50 layers it's applied 50 times.

Here's your function next to PyTorch's initializers, which expect `[fan_out, fan_in]`:
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

A normal distribution has no largest value. Of a hundred million weights, you should expect 57 to be more than five
standard deviations from 0, by chance alone. That's why many initializers use the *truncated normal* (lecture 01), in
which nothing is beyond, say, three standard deviations. In PyTorch, `a` and `b` say where to cut:
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
> **Trap: a and b are values** (lecture 01). `trunc_normal_(w, std=1 / np.sqrt(d_in), a=-3, b=3)` runs, and the outputs
> have the right std, but it cuts nothing: here the limits are 384 standard deviations away. (The defaults, −2 and 2,
> are values too.)
"""

# %% tags=["error-4"]
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
Cutting has a cost: the remaining distribution is narrower. Let $\varphi$ be the density of the standard normal
distribution, which says how the probability is spread over the values, and let $P$ be the probability that a number is
within the cut, at $\pm c$ standard deviations. Then the std after the cut is $\sqrt{1 - 2c\,\varphi(c)/P}$ times what
it was.
"""


# %%
def kept(cut: float) -> float:
    """Std of a normal distribution of std 1 after a cut at ±cut."""
    density = math.exp(-(cut**2) / 2) / math.sqrt(2 * math.pi)
    return math.sqrt(1 - 2 * cut * density / math.erf(cut / math.sqrt(2)))


for cut in (1, 2, 3, 4):
    sample = nn.init.trunc_normal_(torch.empty(1_000_000), a=-cut, b=cut)  # std is 1 here
    print(
        f"cut at {cut} std: predicted std {kept(cut):.4f}, measured {sample.std().item():.4f}"
    )
    assert abs(sample.std().item() / kept(cut) - 1) < 0.005

assert round(kept(3), 4) == 0.9866
assert round(kept(2), 2) == 0.88

# %% [markdown]
r"""
Cutting at ±3 costs 1.3% of the std. That sounds like nothing, but remember the number 0.9866.

*Try it yourself:* which cut halves the std? (Use `kept`, with values below 1.)

### Exercise 7.2 · A truncated normal of your own (optional) &nbsp; ★★☆ &nbsp; 15 minutes

Write `truncated_normal(shape, std, generator)`. It returns a new `float32` tensor (not a parameter) of that shape on
the CPU. You may assume that nobody has changed PyTorch's default dtype and device. The numbers are drawn independently from
a normal distribution with mean 0 and std `std`, *given that* each lies within ±3 · `std`. (So the std of the result is
0.9866 · `std`.) `shape` is a tuple or list of one or more sizes, which may be 0, and `std` is positive. All randomness comes
from `generator`, a `torch.Generator`: the same state gives the same numbers, two calls in a row give different ones,
and PyTorch's global generator isn't changed. Draw many numbers at a time, since a matrix has millions, and then redraw
*only* those outside: redrawing the whole tensor until all are inside would take forever. (If you know the inverse of
the distribution function, you may use that instead.) Write it yourself: nothing from `torch.nn.init` may be called.
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
<details><summary>Hint 1</summary>Draw all numbers. While any of them are outside, draw those again, and only those.</details>
<details><summary>Hint 2</summary>With a Boolean mask, <code>numbers[mask] = …</code> replaces only the numbers that it marks; how many are there? It's simplest to work with std 1 and multiply at the end.</details>

**Why it matters.** With a generator of its own, an initialization is reproducible, whatever else draws random numbers
in the same program. And you now know two things about a truncated normal: numbers outside aren't clamped to the limits,
so the rest keeps its shape; and the limits here are multiples of the std, while `trunc_normal_` takes them as values.

## 5 · A model

Let's put it together. Here's the structure of a small model, built like many deep ones: several layers of equal width,
and a final layer that turns each row into one number.

```mermaid
flowchart LR
  accTitle: The Cruncher
  accDescr: A batch of B rows of dim numbers each passes through num_layers linear layers of dim by dim and a final one of dim by 1, which gives one number for each row.
  X["x<br/>[B, dim]"] --> A["layers.0<br/>[dim, dim]"] --> D["…"] --> F["final<br/>[dim, 1]"] --> Y["one number each<br/>[B]"]
```

### Exercise 7.3 · Linear, and Cruncher &nbsp; ★★☆ &nbsp; essential &nbsp; 20 minutes

Write two modules.

`Linear(d_in, d_out)` has one parameter, `weight`, of shape `[d_in, d_out]`, and no bias. It computes `x @ weight` for
an `x` with any number of leading dimensions. The initial weights come from a normal distribution with mean 0 and std
$1/\sqrt{d_\text{in}}$ (LeCun, since there's no ReLU here). You may cut it at ±3 std or leave it uncut.

`Cruncher(dim, num_layers)` has `layers`, a sequence (such as an `nn.ModuleList`) of `num_layers` of your `Linear(dim,
dim)` (possibly none), one after the other, and then `final`, a `Linear(dim, 1)`. It turns `[B, dim]` into `[B]`, even
for a batch of one. The names `weight`, `layers` and `final` matter: they label the tensors in a checkpoint, the file in
which a model is saved. Don't register any other parameters or buffers. Each layer draws its own numbers, and gradients
reach every weight and `x`. `.to(…)` must be able to move the whole model to another dtype or device; after that,
`forward` works with an `x` of that dtype on that device. In a block that begins with `with torch.device("meta"):`, both
modules are made on that device. (`torch.randn` and `torch.empty` heed such a block; `torch.normal` doesn't if it's
given two numbers and a size.)
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
    """num_layers linear layers of one width, and a final one that turns each row into one number."""

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
<details><summary>Hint 1</summary>Each <code>__init__</code> begins with <code>super().__init__()</code>. Scale a weight first, and make it an <code>nn.Parameter</code> last. A plain list would hide the layers.</details>
<details><summary>Hint 2</summary>A parameter divided by something is no longer a parameter. <code>[layer] * n</code> is one layer, n times. And what does <code>squeeze()</code> do to a batch of one?</details>

**Why it matters.** Every model in this course is built like this: registered parameters,
modules inside modules, and a `forward` that says in which order they run.

Here's your model: what it registered, and a forward pass on your device.
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
`state_dict()` returns names and tensors, which is what a checkpoint contains. `load_state_dict` copies them into a
model that has the same names and shapes, and refuses any other.

> **Trap: the best model so far.** `best = model.state_dict()` is *not a copy*. Its tensors share the parameters'
> storage, so the next training step changes `best` too. Clone each tensor, or write it to disk.
"""

# %%
state = model.state_dict()
assert set(state) == {"layers.0.weight", "layers.1.weight", "final.weight"}
assert memory.same_storage(state["final.weight"], model.final.weight)

best = {name: tensor.clone() for name, tensor in state.items()}
with torch.no_grad():
    model.final.weight.zero_()  # instead of a training step
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

Here's a model that runs but has *five* mistakes. You've met four of them in this lecture, and the statement of exercise
7.3 warns of the fifth. Read it and write them down before you open the folded cell below, which lists them.
"""


# %%
class Suspicious(nn.Module):
    """Subtract a mean, apply some layers, add a shift, apply a last layer."""

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
Its six layers, the shift and the last matrix are eight tensors that should be trained. How many would an optimizer get?
"""

# %% tags=["folded"]
print(f"an optimizer gets {len(list(suspicious.parameters()))} of eight tensors")

# 1: a plain list, whose modules PyTorch does not register.
assert [name for name, _ in suspicious.named_parameters()] == ["final"]
# 2: a parameter times a number is not a parameter, and its graph lasts for only one backward pass.
assert type(suspicious.shift) is Tensor and not suspicious.shift.is_leaf
suspicious(torch.randn(10, 256)).sum().backward()
try:
    suspicious(torch.randn(10, 256)).sum().backward()
    raise AssertionError("a second step worked")
except RuntimeError as refusal:
    print(f"second backward pass: {str(refusal).split('(')[0]}")
# Without the shift there is no error, and the loss goes down.
suspicious.shift = torch.zeros(256)
x, target, losses = torch.randn(64, 256), torch.randn(64), []
for _ in range(20):
    loss = (suspicious(x) - target).square().mean()
    losses.append(loss.item())
    (step,) = torch.autograd.grad(loss, suspicious.final)
    with torch.no_grad():
        suspicious.final.sub_(1e-3 * step)
assert losses[-1] < 0.95 * losses[0]
# 3: the mean is neither moved nor saved; it should be a buffer.
assert list(suspicious.state_dict()) == ["final"]
assert suspicious.to(torch.bfloat16).mean.dtype == torch.float32
# 4: a and b are values, so this cuts at 48 standard deviations.
assert 3 / (1 / math.sqrt(256)) == 48
# 5: squeeze() also removes the batch dimension if there is one row.
assert Suspicious(256, 6)(torch.randn(1, 256)).shape == ()

# %% [markdown]
r"""
The first backward pass works. The second fails because of the shift: it was computed once, in `__init__`, and the first
backward pass has freed that computation's graph. But the error message doesn't mention the shift. Without the shift
there's no error at all: only the last layer is trained, on top of six random ones, and the loss still goes down. So
before training, *look at what's registered*: names, shapes, and the number of parameters.

*Try it yourself:* repair `Suspicious` until it has eight parameters and one buffer, and accepts a batch of one.

## 6 · How large is a model?

In the next lectures we'll work out bytes and FLOPs from the number of parameters. That number isn't always clear, so
let's look at a real model, the smallest GPT-2. It's a Transformer with these parts, which later lectures use, too:

- The *vocabulary* is the set of all tokens. An **embedding** is a vector that represents a token; the embedding table
  has one for each token of the vocabulary.
- A **positional embedding** is a vector that represents a position in the text. It's added to the token's embedding,
  because attention scores depend only on the tokens' vectors, not on their positions.
- Each layer has an attention block (lecture 04) and a feed-forward block (lecture 01), whose first linear layer makes
  each vector four times as wide; the second restores the width.
- **GELU**, GPT-2's nonlinear function, is a smooth relative of the ReLU that multiplies $x$ by $\Phi(x)$, the
  probability that a standard normal random variable is below $x$: $\operatorname{GELU}(x) = x \, \Phi(x)$.
- A **residual connection** adds a block's input to its output, so each block only has to compute a change.
- A **norm**, such as LayerNorm or RMSNorm, rescales each vector to a standard size before a block reads it.
- **Dropout** sets randomly chosen numbers to zero during training and scales up the others, so that the model doesn't
  rely on any single one; in evaluation it does nothing.
- The output layer computes the logits. A **logit** is the score of one token of the vocabulary before softmax; softmax
  turns all logits into probabilities, which add up to 1.

Three things make "the number of parameters" ambiguous: tensors with two names, parameters that aren't trained, and
tensors that aren't parameters. In GPT-2 the embedding table and the output layer are *tied* (lecture 06): one matrix is
registered in two places. The smallest GPT-2 has a vocabulary of 50,257 and a width of 768.

`model.parameters()` finds 124,439,808 numbers in this model.

**Predict.** How many million numbers are in its `state_dict()`? (It has no buffers.)
"""

# %%
guess = None  # million numbers in the state_dict


# %%
class Tied(nn.Module):
    """An embedding table that is also the output layer."""

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
assert tied.head.weight is tied.table.weight
assert found == vocab * d == 50_257 * 768 == 38_597_376
assert [name for name, _ in tied.named_parameters()] == ["table.weight"]  # its first name
assert set(tied.state_dict()) == {"table.weight", "head.weight"}  # both
assert listed == 2 * found

on_disk = io.BytesIO()
torch.save(Tied(1_000, 64).state_dict(), on_disk)
assert len(on_disk.getvalue()) < 1.1 * 4 * 1_000 * 64  # one matrix and a little more

# The whole model: table, positions, layers, and the last norm. A layer has 12 d² weights in its
# matrices, 9 d biases (3 + 1 + 4 + 1), and two LayerNorms with 2 d parameters each.
gpt2 = found + context * d + layers * (12 * d**2 + 13 * d) + 2 * d
assert gpt2 == FACTS["GPT-2 small parameters"].value == 124_439_808
assert gpt2 + found == 163_037_184
reconcile("the state_dict of GPT-2", guess, (gpt2 + found) / 1e6, "million numbers")

# %% [markdown]
r"""
A **frozen** parameter has `requires_grad=False`. It still takes memory, FLOPs in the forward pass, and FLOPs in the
backward pass if something before it needs a gradient (lecture 06). But it has no gradient of its own, and the optimizer
keeps no state for it. So we count the two kinds separately.

For counting, use `parameters()`: it returns each *tensor* once, however many names it has, because an optimizer must
update it only once. `named_parameters()` does the same and adds the first of each tensor's names. For buffers, there
are `buffers()` and `named_buffers()`. `state_dict()` lists each *name*. (On disk, `torch.save` writes the storage
once.)

### Exercise 7.4 · What a model consists of &nbsp; ★★☆ &nbsp; 12 minutes

Write `inventory(model, parts)`, which counts a model's numbers part by part. `parts` is a dict that says which words
belong to which part, such as `{"attention": ["q", "k", "v"], "norms": ["norm"]}`. The words of a name are what its dots
separate: `layers.0.q.weight` has the words `layers`, `0`, `q` and `weight`. A tensor belongs to the first part, in the
order of `parts`, that lists a word of the tensor's name (a whole word: `norm` isn't a word of `norm_1.weight`), and to
`"rest"` if no part does. (`parts` has no key `"rest"`.)

Return a dict that maps each part, and `"rest"`, to three integers `(trainable, frozen, size)`: how many numbers are in
its parameters that require a gradient, how many are in its parameters that don't, and how many bytes the elements of
all its parameters and buffers take. If no tensor belongs to a part, all three are 0. Buffers count only in the bytes,
saved or not; what isn't registered doesn't count at all. Dtypes may differ, and of a tensor that's part of a larger
storage, only its own elements count. A tensor with several names counts once, under the name that `named_parameters()`
or `named_buffers()` gives it. Two different tensors count separately, even if they share memory. (No tensor is both a
parameter and a buffer.) All of this has to work on the meta device, too, where every tensor's address is 0.
"""


# %% nbgrader={"grade": false, "grade_id": "inventory", "locked": false, "schema_version": 3, "solution": true, "task": false}
def inventory(model: nn.Module, parts: dict[str, list[str]]) -> dict[str, tuple[int, int, int]]:
    """For each part and "rest": numbers that are trained, numbers that are frozen, and bytes."""
    ### BEGIN SOLUTION
    rows = {part: [0, 0, 0] for part in [*parts, "rest"]}
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        words = name.split(".")
        part = next((p for p, listed in parts.items() if set(listed) & set(words)), "rest")
        if isinstance(tensor, nn.Parameter):
            rows[part][0 if tensor.requires_grad else 1] += tensor.numel()
        rows[part][2] += tensor.numel() * tensor.element_size()
    return {part: (row[0], row[1], row[2]) for part, row in rows.items()}
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_inventory", "locked": true}
check("inventory")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Start with three zeros for every part. <code>named_parameters()</code> yields each tensor once, with a name that you can split at its dots.</details>
<details><summary>Hint 2</summary>First find out which part a name belongs to, then add to that part's numbers. The bytes are those of exercise 1.1.</details>

**Why it matters.** Parameters and bytes are the first entries in every budget. Whether the smallest GPT-2
has 124 or 163 million parameters depends only on whether you count the table once or twice.

### A model of 70 billion parameters that takes no memory

To count a model's parameters, you don't need to hold them in memory. On the *meta* device a tensor has a shape and a
dtype but no storage (lectures 01 and 06). In a block that begins with `with torch.device("meta"):`, every tensor that's
created is on the meta device, including those that an `__init__` creates. So here's your `Cruncher`, a bit wider:
"""

# %%
with memory.track("cpu") as used, torch.device("meta"):
    wide = Cruncher(32_768, 65)
trainable, frozen, size = inventory(wide, {})["rest"]  # no parts: everything
print(f"{trainable:,} parameters would take {format_bytes(size)}; they take {used.peak} bytes")

assert trainable == 65 * 32_768**2 + 32_768 == 69_793_251_328
assert (frozen, used.peak) == (0, 0)
assert all(p.is_meta for p in wide.parameters())

# %% [markdown]
r"""
You can also send shapes through it: a forward pass on the meta device computes nothing, but it checks that everything
fits together. Since the model has no numbers, you can't move it to another device:
"""

# %%
y = wide(torch.empty(16, 32_768, device="meta"))
assert y.shape == (16,) and y.is_meta
try:
    wide.to("cpu")
    raise AssertionError("it moved numbers that do not exist")
except NotImplementedError as refusal:
    print(refusal)

# %% [markdown]
r"""
`to_empty` gives such a model its own storage, which contains whatever was in that memory. Then you fill it
from an initializer or a checkpoint. No time goes into initial values that a checkpoint then overwrites, and a model
for the GPU needn't be built in CPU memory first.

> **Trap: the broken tie.** `to_empty` makes a new tensor for each *name*. What was tied no longer is: there are two
> matrices that start with different values, get different gradients, and drift apart. Tie them again, then fill them.
"""

# %%
with torch.device("meta"):
    tied = Tied(100, 8)
assert tied.head.weight is tied.table.weight

tied.to_empty(device="cpu")
assert tied.head.weight is not tied.table.weight
assert not memory.same_storage(tied.head.weight, tied.table.weight)
assert tuple(inventory(tied, {})["rest"]) == (2 * 100 * 8, 0, 6_400)  # the count reveals it

tied.head.weight = tied.table.weight
assert tuple(inventory(tied, {})["rest"]) == (100 * 8, 0, 3_200)

# %% [markdown]
r"""
### Where are the parameters of Llama 3?

Here are two sizes of Llama 3, built from your `Linear`, in the dtype in which they were released. (The shapes are those
of lecture 06. There's no `forward`, since we won't run the models.)
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


parts = {
    "attention": ["q", "k", "v", "o"],
    "feed-forward": ["gate", "up", "down"],
    "embedding": ["table"],
    "output layer": ["head"],
    "norms": ["norm_1", "norm_2", "norm"],
}

# %% tags=["folded"]
shares = {}
for name in ("8B", "70B"):
    with torch.device("meta"):
        llama = LlamaWeights(name).to(torch.bfloat16)
    counted = inventory(llama, parts)
    parameters, released = (sum(row[i] for row in counted.values()) for i in (0, 2))
    shares[name] = {part: row[2] / released for part, row in counted.items()}
    print(f"Llama 3 {name}: {parameters:,} parameters, {format_bytes(released)}")
    for part in parts:
        print(f"{part:>14} {format_bytes(counted[part][2]):>20} {shares[name][part]:6.1%}")

assert parameters == FACTS["Llama 3.1 70B parameters"].value == 70_553_706_496
assert tuple(counted["rest"]) == (0, 0, 0) and released == 2 * parameters
assert f"{released / 1e9:.0f}" == "141"
assert math.ceil(released / FACTS["H100 SXM memory"].value) == 2
assert min(share["feed-forward"] for share in shares.values()) > 0.7
tables = {name: share["embedding"] + share["output layer"] for name, share in shares.items()}
assert round(tables["8B"], 2) == 0.13 and round(tables["70B"], 2) == 0.03

# %% [markdown]
r"""
The 70B model's parameters alone take two 80 GB H100s in bfloat16. (Gradients, optimizer state and activations come in
lecture 08.) In both models, most parameters are in the feed-forward blocks. The layers' matrices grow with the square
of the width, and there are more layers in a larger model; the embedding and the output layer grow only in proportion to
the width. So these two are 13% of the 8B model and only 3% of the 70B model.

*Try it yourself:* if the table and the output layer were tied, how many GB would each model save? And if you train only
the attention blocks (`requires_grad_`), how many numbers are trainable?

## 7 · Fifty layers

Back to initialization, and to depth. The outputs of one layer are the inputs of the next, so the factors multiply. We
write $m_l$ for the mean square of the outputs of layer $l = 1, 2, \dots$ (before any ReLU), and $m_0$ for that of the
data. Then, with a ReLU between the layers, sections 2 and 3 give

$$m_{l} = \text{fan\_in}_l \cdot \sigma_l^2 \cdot \tfrac12\, m_{l-1}$$

and the same without the ½ if there's no ReLU. The weights have mean 0, so the outputs do too, and $\sqrt{m_l}$ is their
std. The data didn't go through a ReLU, so $m_1$ has no ½.

The same happens to gradients, starting from the other end. We write $g_l$ for the mean square of the gradient with
respect to the outputs of layer $l$. Where the ReLU's input was negative, no gradient passes, so the mean square is
halved again. In the backward direction each sum runs over the *outputs* of the layer:

$$g_{l-1} = \text{fan\_out}_l \cdot \sigma_l^2 \cdot \tfrac12\, g_l ,$$

again without the ½ if there's no ReLU.

### Exercise 7.5 · There and back &nbsp; ★★★ &nbsp; essential &nbsp; 25 minutes

Write two functions. A chain of one or more linear layers turns `widths[0]` numbers into `widths[1]`, these into
`widths[2]`, and so on. Layer $i$ (from 0) has weights of mean 0 and std `weight_stds[i]`, which is positive. With
`relu=True` there's a ReLU *between* layers: not before the first, and not after the last.

`stds_through_depth(widths, weight_stds, relu)` returns a list with the std of each layer's outputs, before the ReLU, if
the data have mean 0 and std 1.

`gradient_stds_through_depth(widths, weight_stds, relu)` returns a list with the std of the gradient with respect to
each layer's outputs (again before the ReLU), in the order of the layers, given that this std is 1 for the last layer.

Both lists have one number per layer. Don't change the arguments. (No std comes close to the limits of a float, and
neither does its square.)
"""


# %% nbgrader={"grade": false, "grade_id": "stds_through_depth", "locked": false, "schema_version": 3, "solution": true, "task": false}
def stds_through_depth(
    widths: Sequence[int], weight_stds: Sequence[float], relu: bool
) -> list[float]:
    """Std of each layer's outputs, for data of std 1."""
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
    """Std of the gradient of each layer's outputs, if it is 1 for the last layer."""
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
<details><summary>Hint 1</summary>Keep one running number: the mean square. Multiply it by one factor for each layer, and append its root.</details>
<details><summary>Hint 2</summary>Backward: on paper, sketch the outputs of layer i, and those of layer i + 1 below them. The gradient of layer i's outputs comes back through the weights between the two. How many terms does each sum have? Start with 1.0 for the last layer, and work back to the first.</details>

**Why it matters.** These two formulas are all the theory behind the three initializers. With them, you can predict what
arrives at either end for *any* initializer, width and depth, before you build the model.

Check them on a chain whose widths go up and down:
"""


# %%
def draw_truncated(shape: Sequence[int], std: float, generator: torch.Generator) -> Tensor:
    """Numbers from a normal distribution of std `std`, cut at ±3 · std (section 4)."""
    w = torch.empty(tuple(shape))
    return nn.init.trunc_normal_(w, std=std, a=-3 * std, b=3 * std, generator=generator)


generator = torch.Generator().manual_seed(0)
widths = [1_024, 4_096, 512, 2_048, 1_024]
stds = [init_std("glorot", a, b) for a, b in itertools.pairwise(widths)]
weights = [
    draw_truncated((a, b), std, generator)
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
print(f"layer {'outputs':>9} {'predicted':>9} {'gradients':>11} {'predicted':>9}")
for i, output in enumerate(outputs):
    assert output.grad is not None
    there, and_back = output.std().item(), output.grad.square().mean().sqrt().item()
    print(f"{i:>5} {there:>9.3f} {forward[i]:>9.3f} {and_back:>11.3f} {back[i]:>9.3f}")
    assert abs(there / forward[i] - 1) < 0.25 and abs(and_back / back[i] - 1) < 0.25

# %% [markdown]
r"""
### Four initializations, measured

Our network has fifty layers, 512 wide, with a ReLU after each. (The one after the last changes nothing here, since we
look at each layer's outputs before their ReLU.) It's your `Cruncher`, extended to remember each layer's outputs. The
weights come from a normal distribution cut at ±3 std. We compare four choices of std: that of `torch.randn`, which is
1; that of `nn.Linear`; LeCun's (which equals Glorot's here, as the matrices are square); and Kaiming's.
"""


# %%
class Deep(Cruncher):
    """A Cruncher with ReLUs that remembers the outputs of each layer."""

    def forward(self, x: Float[Tensor, "B dim"]) -> Float[Tensor, "B"]:
        self.outputs = []
        for layer in self.layers:
            x = layer(x)
            x.retain_grad()
            self.outputs.append(x)
            x = torch.relu(x)
        return self.final(x).squeeze(-1)


def some_data(generator: torch.Generator) -> Tensor:
    """Rows of std 1 that require a gradient, so that all outputs have one."""
    return torch.randn(32, width, generator=generator).requires_grad_()


def root_mean_square(x: Tensor) -> float:
    """The std of numbers whose mean is 0."""
    return x.detach().double().square().mean().sqrt().item()


def initialize(model: nn.Module, std: float, generator: torch.Generator) -> None:
    """Fill each parameter from a truncated normal distribution."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(draw_truncated(parameter.shape, std, generator))


width, depth = 512, 50
ways_to_begin = {
    "torch.randn": 1.0,
    "nn.Linear": 1 / math.sqrt(3 * width),
    "LeCun = Glorot": float(init_std("lecun", width, width)),
    "Kaiming": float(init_std("kaiming", width, width)),
}
assert math.isclose(ways_to_begin["LeCun = Glorot"], init_std("glorot", width, width))
deep = Deep(width, depth).requires_grad_(False)  # only outputs and their gradients matter here
assert tuple(inventory(deep, {})["rest"][:2]) == (0, depth * width**2 + width)

# %% [markdown]
r"""
First `torch.randn`. The factor per layer is $\sqrt{512 / 2} = 16$.

**Predict.** The largest `float32` is about $2^{128}$. The outputs of the first layer have std $\sqrt{512} = 2^{4.5}$.
Which layer is the first whose outputs overflow?
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

assert y.isnan().all()  # nothing is left of the result
too_large = [i + 1 for i, z in enumerate(deep.outputs) if z.abs().max() > 65_504]
assert too_large[0] == 4  # where float16 would have overflowed
assert broken == list(range(32, 51))
# The std in powers of two: 124.5 in layer 31, 128.5 in layer 32. (The cut takes 0.6 off, but the
# largest numbers are several times the std.)
assert 4.5 + 4 * (31 - 1) < 128 < 4.5 + 4 * (32 - 1)

# %% [markdown]
r"""
The result is NaN, because sums in the next layers contain infinities of both signs (lecture 02). All that's wrong with
this model is the scale of its weights. (bfloat16 has the same range. In float16, it would have failed in layer 4.)

Now all four. Some of these numbers don't fit into `float32`, so we measure in `float64`, on the CPU. The predictions
come from your functions and account for the cut: they use `kept(3)` times the std. (The predictions are right on
average over many networks. A single network may be off by half or more after fifty layers, because its scale also
depends on the weights drawn; the check below allows a factor of 4.)
"""

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
for name, stds in outputs_of.items():
    print(
        f"{name:>14}: std {stds[-1]:.2g} after 50 layers, predicted {predicted[name][-1]:.2g}"
    )

for name in ways_to_begin:  # across up to 60 powers of ten, each is within a factor of 4
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
finding = "Fifty layers: one initialization explodes, two vanish, one works, as predicted"
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
finding = "On the way back to the first layer, gradients grow or vanish just as outputs do on the way forward"
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

# %% tags=["folded"]
finding = "The outputs as histograms: by layer 20 only Kaiming's look like those of layer 1"
figure = plots.distributions(shown, reach=5, title=finding)
plots.show(
    figure,
    alt=f"{finding}. Each row is an initialization, each column a layer. randn is outside the range of "
    "minus 5 to 5 from layer 5 on; nn.Linear and LeCun shrink to a spike at 0.",
)

assert outputs_of["LeCun = Glorot"][19] < 2e-3 and outputs_of["nn.Linear"][4] < 0.03

# %% [markdown]
r"""
(In the histograms, *outside* means below −5 or above 5, and each has its own height.) In the plot of the stds, the lines are straight because each layer multiplies by the same factor and the axis is
logarithmic. And in a network whose outputs vanish toward the last layer, the gradients vanish toward the first. A layer
in the middle of such a network gets inputs near 0, and its gradient is nearly 0 too.

Which rule is right depends on what's between the layers. Your `Cruncher` has no ReLUs. There LeCun's rule keeps the std
at 1, and Kaiming's makes it explode.
"""

# %%
for kind in ("lecun", "kaiming"):
    stds = [init_std(kind, width, width)] * depth
    end = stds_through_depth([width] * (depth + 1), stds, relu=False)[-1]
    print(f"{kind:>8} without ReLUs: std {end:.3g} after {depth} layers")
    assert math.isclose(end, {"lecun": 1, "kaiming": 2**25}[kind])
# LeCun's, with a ReLU before each layer but the first:
assert f"{math.sqrt(1 / 2) ** 49:.0e}" == "4e-08"

# %% [markdown]
r"""
Now try other networks of this kind; the dots are measured, the lines predicted. (*Gain* multiplies the weights. With a
*residual connection* each layer adds its output to its input.) Without a nonlinearity, how far from 1 can the gain be
before the std after fifty layers is off by more than a factor of 10? With ReLUs, several of the explorer's
initializations make the outputs vanish. Switch residual connections on: with which of those initializations does the
std of the outputs now stay between 0.1 and 10?
"""

# %%
from course_utils.explorers import initialization

initialization.explore("LeCun = Glorot", "ReLU", width=128)

# %% [markdown]
r"""
### The last 1.3% (optional)

(This section uses your `truncated_normal` from exercise 7.2.) In the plot of the four initializations, with its
logarithmic axis, Kaiming's line looks flat. Look closer. It starts at $\sqrt2$ (the first layer doesn't need the factor
2), and the cut leaves each layer with 0.9866 of the std that you asked for.

**Predict.** After how many layers has the cut cost half of the std? (Guess before you calculate.)
"""

# %%
guess = None  # layers

# %%
# What a layer keeps is known from above
reconcile("the cut has cost half of the std", guess, math.log(1 / 2, kept(3)), "layers")
assert round(math.log(1 / 2, kept(3))) == 51 and round(kept(3) ** depth, 2) == 0.51

# %% [markdown]
r"""
Can we see that in a measurement? Not clearly in a single network: each layer's scale is a few
percent off, depending on the weights drawn, and over fifty layers that adds up to tens of percent. The prediction is
about the mean square over many draws. So let's draw eight, with your `truncated_normal`.
"""

# %%
deep.float()
squares, ends = [0.0] * depth, []
for seed in range(8):
    generator = torch.Generator().manual_seed(seed)
    for parameter in deep.parameters():
        drawn = truncated_normal(
            tuple(parameter.shape), init_std("kaiming", width, width), generator
        )
        parameter.copy_(drawn)
    deep(some_data(generator))
    stds = [root_mean_square(z) for z in deep.outputs]
    squares = [total + std**2 / 8 for total, std in zip(squares, stds, strict=True)]
    ends.append(stds[-1])
together = [math.sqrt(square) for square in squares]
print("after 50 layers:", "  ".join(f"{end:.2f}" for end in ends))

with_cut = predicted["Kaiming"]
chain = [width] * (depth + 1), [float(init_std("kaiming", width, width))] * depth, True
without_cut = stds_through_depth(*chain)
finding = "A cut that costs 1.3% in one layer costs half in fifty"
figure = plots.through_depth(
    {"eight networks": together},
    {"with the cut": with_cut, "without the cut": without_cut},
    ylabel="std of the layer's outputs",
    title=finding,
)
plots.show(
    figure,
    alt=f"{finding}. Without a cut the prediction stays at 1.41; with the cut it falls to 0.72 in 50 "
    "layers, and the mean of eight networks follows.",
)

assert round(with_cut[-1], 2) == 0.72 and round(without_cut[-1], 2) == 1.41
assert together[-1] < 1.2
assert max(ends) > 1.2 * min(ends)  # they vary

# %% [markdown]
r"""
You can compensate for the cut: ask for `std / kept(3)`, cut at ±3 times that, and the remaining weights have the std
that you wanted. (The `variance_scaling` initializers of JAX and Keras do this for their cut at ±2; PyTorch's
`trunc_normal_` doesn't.) Let's take one network and correct the weights that it already has. Since nothing is drawn
again, the last std grows by exactly $1 / 0.9866^{50}$, about 2:
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
### What do large models do?

Large models avoid the problem by putting a norm between the layers, which restores the scale each time. With RMSNorm
(which divides each vector by its root mean square, exercise 1.4) after each layer, the factors no longer multiply.
"""


# %%
class Normed(Cruncher):
    """A Cruncher with ReLUs and norms that returns the outputs of its last layer."""

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
    print(f"{name:>14}: std after layer 50 {end:.3f}; after a single layer {alone:.3f}")
    assert abs(end / (alone * kept(3)) - 1) < 0.15  # as if it were the only layer

# %% [markdown]
r"""
After 50 layers the std of the outputs is about what a single layer would give, so the 1.3% that a cut costs no longer
compounds. That's why a Transformer, which has a norm before or after each block, is less sensitive to the scale of its
initialization. The paper on the first GPT (Radford and others, 2018) says so: because the model has norms throughout, a
simple initialization with a std of 0.02 is enough. But when you add something without a norm, ask what it does to the
scale. Now you can work that out.

### The residual stream

Let's work it out for the residual connections of a Transformer. In GPT-2 each block, attention or feed-forward,
computes `x + f(norm(x))`: it reads a normalized copy of `x` and adds its result to `x` itself. (In this section we
count each of these blocks as a layer.) The **residual stream** is the vector to which all blocks of a Transformer add,
one after the other, from the embedding to the last norm. No layer multiplies it, so it doesn't vanish. And thanks to
the norm, what a layer adds doesn't depend on how large the stream already is.

**Predict.** The stream starts with std 1, and each of 100 layers adds something of std 1, independent of what's already
there. What's the std of the stream at the end?
"""

# %%
guess = None  # std after 100 layers


# %%
class Residual(nn.Module):
    """Layers that each add to the residual stream: a norm, a matrix, a ReLU, and a matrix that writes the result."""

    def __init__(self, dim: int, num_layers: int) -> None:
        super().__init__()
        self.read = nn.ModuleList(Linear(dim, dim) for _ in range(num_layers))
        self.write = nn.ModuleList(Linear(dim, dim) for _ in range(num_layers))

    def forward(self, x: Float[Tensor, "B dim"]) -> Float[Tensor, "B dim"]:
        self.stream = []
        for read, write in zip(self.read, self.write, strict=True):
            x = x + write(torch.relu(read(nn.functional.rms_norm(x, (x.shape[-1],)))))
            x.retain_grad()
            self.stream.append(x)
        return x


def along_the_stream(scale: float) -> tuple[list[float], list[float]]:
    """Std of the stream and of its gradient after each layer, if `scale` multiplies what each layer writes."""
    dim, generator = 128, torch.Generator().manual_seed(0)
    model = Residual(dim, residual_layers).requires_grad_(False)
    for weight in model.read.parameters():
        nn.init.normal_(weight, std=init_std("lecun", dim, dim), generator=generator)
    for weight in model.write.parameters():  # these come after a ReLU
        nn.init.normal_(weight, std=scale * init_std("kaiming", dim, dim), generator=generator)
    y = model(torch.randn(256, dim, generator=generator).requires_grad_())
    y.backward(torch.randn(y.shape, generator=generator))
    gradients = [root_mean_square(x.grad) for x in model.stream]
    return [root_mean_square(x) for x in model.stream], gradients


residual_layers = 100
as_drawn, gradients_as_drawn = along_the_stream(1.0)
reconcile("std of the stream after 100 layers", guess, as_drawn[-1], "")

assert abs(as_drawn[-1] / math.sqrt(1 + 100) - 1) < 0.1
assert round(math.sqrt(1 + 100), 1) == 10.0

# %% [markdown]
r"""
The stream grows with depth, so the layers don't contribute equally: the first adds as much as is already there, while
the last hardly changes the stream.

GPT-2 (Radford and others, 2019) therefore multiplies the initial weights of each matrix that writes to the stream by
$1/\sqrt{N}$, where $N$ is the number of such matrices. In each of its $L$ Transformer layers there are two, one at the
end of the attention block and one at the end of the feed-forward block, so $N = 2L$ and the factor is $1/\sqrt{2L}$. If
each block would add variance 1 without it, as in our model, the $N$ blocks *together* add $N \cdot \tfrac1N = 1$.
"""

# %%
scaled, gradients_scaled = along_the_stream(1 / math.sqrt(residual_layers))
by_layer = range(1, residual_layers + 1)
growth = {
    "as drawn": [math.sqrt(1 + n) for n in by_layer],
    "scaled by 1/√N": [math.sqrt(1 + n / residual_layers) for n in by_layer],
}
finding = "The residual stream grows with the square root of the depth; GPT-2's factor limits it to √2"
figure = plots.through_depth(
    {"as drawn": as_drawn, "scaled by 1/√N": scaled},
    growth,
    ylabel="std of the residual stream",
    title=finding,
)
plots.show(
    figure,
    alt=f"{finding}. Over 100 layers the std rises from 1.4 to 10 as drawn, and from 1.0 to 1.4 with the "
    "factor. The predictions lie on the measurements.",
)

for measured_stds, name in ((as_drawn, "as drawn"), (scaled, "scaled by 1/√N")):
    assert all(abs(m / p - 1) < 0.1 for m, p in zip(measured_stds, growth[name], strict=True))
assert round(growth["scaled by 1/√N"][-1], 2) == round(math.sqrt(2), 2) == 1.41
# Gradients grow from the last layer back to the first, by as much as the stream does on the way there:
for back, stream in ((gradients_as_drawn, as_drawn), (gradients_scaled, scaled)):
    assert abs(back[0] / back[-1] / (stream[-1] / stream[0]) - 1) < 0.2
assert 6 < gradients_as_drawn[0] < 8.5 and 1.2 < gradients_scaled[0] < 1.6
gpt2_factor = 1 / math.sqrt(2 * FACTS["GPT-2 small layers"].value)
print(
    f"GPT-2 small: std 0.02 · {gpt2_factor:.3f} = {0.02 * gpt2_factor:.4f} where a matrix writes to the stream"
)
assert round(0.02 * gpt2_factor, 4) == 0.0041

# %% [markdown]
r"""
Variances add up, as in section 2, so with the weights as drawn, the stream has std $\sqrt{1 + n}$ after $n$ layers.
With the factor, its std stays between 1 and $\sqrt2$ *at any depth*, and every layer changes it by about the same
fraction. The gradient benefits as well. On its way back through layer $n$, it passes the norm, which divides by the
size of the stream, about $\sqrt n$. So what comes through the layer adds only $1/n$ to its mean square, and it grows by
the same factor, $\sqrt{(n+1)/n}$, as the stream did on the way forward. From layer 100 back to layer 1, that's about
sevenfold without the factor $1/\sqrt N$ (the stream grows from $\sqrt2$ to 10), but only 1.4-fold with it. One such
factor for each block is enough, so the matrices that read from the stream have none.

*Try it yourself:* in `Deep`, replace the ReLU with `torch.tanh`. Which of the four initializations work now? (`tanh`
keeps numbers within ±1. What about the gradients?)

## Takeaways

**Mechanics.** An `nn.Parameter` assigned to a module is trained, moved and saved; a buffer is moved and saved; a plain
tensor or list is neither trained nor moved nor saved. In the forward pass,
$\operatorname{std}(y) = \sqrt{\text{fan\_in}}\,\sigma\,\operatorname{std}(x)$ if $x$ has mean 0; for the gradient,
fan_out replaces fan_in. Variances: LeCun $1/\text{fan\_in}$, Glorot $2/(\text{fan\_in}+\text{fan\_out})$, Kaiming
$2/\text{fan\_in}$, `nn.Linear` $1/(3\,\text{fan\_in})$. `trunc_normal_` cuts at values, so write `±3 * std`; this
leaves 0.9866 of the std. `parameters()` counts a tied weight once, `state_dict()` lists each name, and `to_empty`
breaks the tie.

**Mindset.** Before you train a model, print the names, shapes and total number of its parameters. Before you build it,
count its bytes on the meta device. For each operation, ask what it does to the mean square, then multiply these factors
through all the layers, in both directions.

**Intuitions.** The std of a sum grows with the square root of the number of terms: 16,384 of them give 128. A constant
factor per layer compounds exponentially with depth: a factor of 16 overflows float32 in layer 32, $\sqrt{1/2}$ leaves
about $4 \cdot 10^{-8}$ after 50 layers, and even 0.9866 halves the result. Layers only *add* to a residual stream, so
its std grows with the square root of the depth, and the factor $1/\sqrt{2L}$ limits it to $\sqrt2$. Llama 3 70B takes
141 GB in bfloat16, before any training.

Next: [08 · Optimizers](../08_optimizers/08_optimizers.ipynb). You have a model, and gradients reach all of its layers.
What does a step do with them, and how many bytes does it need?
"""

# %% [markdown]
r"""
# 08 · Optimizers

[← 07 · Models and initialization](../07_models_and_init/07_models_and_init.ipynb) &nbsp;|&nbsp; [09 · The training loop
→](../09_training_loop/09_training_loop.ipynb)

> **What does an optimizer do with a gradient, and what does it have to remember?**

The backward pass gives us a gradient for each parameter. An **optimizer** is the algorithm that turns gradients into
changes to the parameters. All optimizers but the simplest remember something about earlier gradients. What an optimizer
remembers is called its optimizer state, and it can be larger than the model itself. In this lecture you'll write
optimizers, AdamW among them, and account for their bytes and FLOPs. By the end you'll have an account, to the byte, of
the parameters, gradients, optimizer state and activations of a small Transformer, and you'll have measured the same
numbers while your own AdamW trains it.
"""

# %%
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_utils import device as devices
from course_utils import hardware, plots, timing
from course_utils.facts import FACTS
from course_utils.flops import count_flops
from course_utils.memory import saved_bytes, track
from course_utils.predict import reconcile
from course_utils.progress import show_progress
from course_utils.units import format_bytes, readable
from course_utils.testing import check

device = devices.pick_device()
print(devices.describe(device))
show_progress()

# %% [markdown]
r"""
## 1 · One step

A gradient says, for each parameter, how fast the loss grows when that parameter grows. So we go in the opposite
direction:

$$p \;\leftarrow\; p - \text{lr} \cdot g$$

Here $g$ is the gradient, and lr is the **learning rate**, the number that says how far to go. This is *gradient
descent*. Usually the gradient comes from a random batch rather than from all the data; the method is then called
**stochastic gradient descent**, or *SGD*.

How far is too far? Let's take the model from lecture 06: $\text{loss} = \tfrac12 (x \cdot w - 5)^2$ with
$x = (1, 2, 3)$ and $w = (1, 1, 1)$. The error is 1, and the gradient is the error times $x$.

**Predict.** With the right learning rate, a *single* step brings the loss to exactly 0. Which learning rate is that?
"""

# %%
guess = None  # the learning rate


# %%
def loss_after_one_step(lr: float) -> float:
    """The loss of the three weights after one step of gradient descent."""
    x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    w = torch.ones(3, dtype=torch.float64, requires_grad=True)
    (0.5 * (x @ w - 5) ** 2).backward()
    assert w.grad is not None and w.grad.tolist() == [1, 2, 3]
    with torch.no_grad():
        w -= lr * w.grad
    return 0.5 * (x @ w - 5).item() ** 2


reconcile("the learning rate that gets there in one step", guess, 1 / 14, "")

assert loss_after_one_step(1 / 14) < 1e-30
assert math.isclose(loss_after_one_step(2 / 14), 0.5)  # as far on the other side
assert loss_after_one_step(3 / 14) > loss_after_one_step(0) == 0.5  # worse than doing nothing

# %% [markdown]
r"""
A larger learning rate overshoots, and above some limit each step makes things worse. The **curvature** is the second
derivative of the loss in the direction of the gradient. Here it's $x \cdot x = 14$: a step changes $w$ by
$-\text{lr} \cdot \text{error} \cdot x$, and so it multiplies the error by $1 - \text{lr} \cdot (x \cdot x)$. With a
learning rate of 1/14 nothing is left of the error; above 2/14 that factor is below −1, and the error grows. *The
learning rate has to stay below 2 divided by the curvature.*

### PyTorch's optimizers

Each of PyTorch's optimizers is a `torch.optim.Optimizer`, with four parts that you need to know:

- `param_groups` is a list of dicts. Each contains `"params"` and its own settings, such as `"lr"`. Groups may have
  different settings, and settings may *change between steps*; that's how the learning rate can follow a schedule during
  training (lecture 09).
- `state` holds what the optimizer remembers, in a dict for each parameter. Plain SGD remembers nothing.
- `step()` changes each parameter *in place*, using its `.grad`.
- `zero_grad()` clears the gradients, since the next `backward()` would add to them (lecture 06).
"""

# %% tags=["item-78"]
w = nn.Parameter(torch.ones(3, device=device))
b = nn.Parameter(torch.zeros(1, device=device))
groups: list[dict[str, Any]] = [{"params": [w]}, {"params": [b], "lr": 1.0}]
optimizer = torch.optim.SGD(groups, lr=0.5)
x = torch.tensor([1.0, 2.0, 3.0], device=device)

(0.5 * (x @ w + b - 5) ** 2).sum().backward()
where = w.data_ptr()
optimizer.step()

assert [group["lr"] for group in optimizer.param_groups] == [0.5, 1.0]
assert w.tolist() == [0.5, 0.0, -0.5]  # 1 - 0.5 · (1, 2, 3)
assert b.tolist() == [-1.0]  # 0 - 1.0 · 1
assert w.data_ptr() == where  # in place: the model sees it
assert len(optimizer.state) == 0  # nothing to remember

# %% [markdown]
r"""
### No gradient, or a gradient of zero?

`zero_grad()` can do one of two things: set each `.grad` to `None` (`set_to_none=True`, the default), or keep the
tensors and fill them with zeros. These differ in two ways. First, `None` frees the memory until the next backward pass.
Second, an optimizer *skips* a parameter without a gradient, but it updates one whose gradient is zero: weight decay (a
pull toward zero, section 4) still shrinks it, and gradients remembered from earlier steps still move it. The next cell
shows the freed memory and the weight decay.
"""

# %% tags=["item-81", "error-9"]
with track(device) as memory:
    matrix = nn.Parameter(torch.ones(512, 512, device=device))
    optimizer = torch.optim.SGD([matrix], lr=0.1, weight_decay=0.5)
    (matrix.sum() * 0).backward()  # a gradient that is zero everywhere
    held = memory.live

    optimizer.zero_grad(set_to_none=False)
    assert matrix.grad is not None and memory.live == held  # zeros take memory too
    optimizer.step()
    assert torch.allclose(matrix, torch.tensor(0.95, device=device))  # shrunk by 0.1 · 0.5

    optimizer.zero_grad(set_to_none=True)
    assert matrix.grad is None
    freed = held - memory.live
    before = matrix.detach().clone()
    optimizer.step()
    assert torch.equal(matrix, before)  # skipped
print(f"freed by set_to_none=True: {freed:,} B")

assert freed == 4 * 512 * 512

# %% [markdown]
r"""
A *frozen* parameter (`requires_grad=False`) gets no gradient in the backward pass, and neither does a part of the model
that the batch doesn't use. Your own optimizers have to skip them.

*Try it yourself:* in a new cell, give a parameter to `torch.optim.SGD` with `momentum=0.9` (it then remembers earlier
gradients, section 2), and take a step with a gradient of ones. How far does it move in a second step, after each kind
of `zero_grad`?

### Exercise 8.1 · SGD &nbsp; ★☆☆ &nbsp; essential &nbsp; 10 minutes

Write the `step` method of `SGD`: for each group and each of its parameters that has a gradient, subtract the *group's
current* learning rate times the gradient, even if the parameter was frozen after the backward pass: only `.grad`
counts. Leave a parameter alone if its `.grad` is `None`. Change the parameter itself, in place (the model holds the
same tensor); this has to work whatever its strides are. Change nothing else: the gradient is still needed. Keep nothing
in `self.state`. Do all of this inside `torch.no_grad()`; otherwise PyTorch would try to record it for the backward
pass. (Parameters are `float32` or `float64`, here and in the next two exercises.)
"""


# %% nbgrader={"grade": false, "grade_id": "SGD", "locked": false, "schema_version": 3, "solution": true, "task": false}
class SGD(torch.optim.Optimizer):
    """Gradient descent: p ← p − lr · gradient."""

    def __init__(self, params: Iterable[Any], lr: float = 1e-3) -> None:
        super().__init__(params, defaults={"lr": lr})

    def step(self, closure: Any = None) -> None:
        """One step. (closure is for optimizers of another kind; here it is always None.)"""
        ### BEGIN SOLUTION
        with torch.no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        p -= group["lr"] * p.grad
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_SGD", "locked": true}
check("SGD")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>You need two loops: over <code>self.param_groups</code>, and in each group over <code>group["params"]</code>.</details>
<details><summary>Hint 2</summary><code>p -= …</code> changes p itself. It has to be inside <code>with torch.no_grad():</code>.</details>

**Why it matters.** Every optimizer consists of these two loops around a formula. From here on only the formula changes.

## 2 · The narrow valley

A real loss depends on many parameters and curves more in some directions than in others. The simplest example has two
parameters and two curvatures:

$$\text{loss} = \tfrac12 \left( 1 \cdot p_1^2 + 100 \cdot p_2^2 \right)$$

This is a long, narrow valley: the curvature across it is a hundred times the curvature along it. One learning rate has
to work for *both* directions. Across the valley, gradient descent *diverges* at any rate above $2/100$: each step takes
it farther from the minimum (section 1). Along the valley, a step with that rate covers only a fiftieth of the remaining
distance. A step multiplies a coordinate by $1 - \text{lr} \cdot \text{curvature}$. The best compromise is
$2 / (1 + 100)$, where both coordinates shrink by the same factor. We start at $(-9, 2)$ and count the steps until the
loss is a ten-thousandth of its initial value, which is when each coordinate has shrunk to a hundredth.

**Predict.** How many steps does gradient descent take with that learning rate?
"""

# %%
guess = None  # steps

# %%
FLAT, STEEP = 1.0, 100.0  # the two curvatures
START = (-9.0, 2.0)
GIVE_UP = 2_000
Path = list[tuple[float, float]]


def rotate(point: tuple[float, float], angle: float) -> tuple[float, float]:
    """A point rotated about the origin."""
    c, s = math.cos(angle), math.sin(angle)
    return c * point[0] - s * point[1], s * point[0] + c * point[1]


def go_down(
    make: Callable[[list[nn.Parameter]], torch.optim.Optimizer],
    angle: float = 0.0,
) -> Path:
    """The path down a valley at an angle, until the loss is a ten-thousandth of its initial value."""
    c, s = math.cos(angle), math.sin(angle)
    axes = torch.tensor([[c, s], [-s, c]], dtype=torch.float64)  # along, across
    curvatures = torch.tensor([FLAT, STEEP], dtype=torch.float64)
    p = nn.Parameter(torch.tensor(rotate(START, angle), dtype=torch.float64))
    optimizer = make([p])
    path: Path = []
    enough = 0.0
    while len(path) < GIVE_UP:
        path.append((p[0].item(), p[1].item()))
        loss = 0.5 * (curvatures * (axes @ p) ** 2).sum()
        enough = enough or 1e-4 * loss.item()
        if loss < enough:
            break
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return path


plain = go_down(lambda p: SGD(p, lr=2 / (FLAT + STEEP)))
plain_steps = len(plain) - 1
reconcile("gradient descent in the narrow valley", guess, plain_steps, "steps")

shrink = (STEEP - FLAT) / (STEEP + FLAT)  # |1 − lr · curvature|, the same for both directions
assert plain_steps == math.ceil(math.log(1e-2) / math.log(shrink)) == 231
assert plain[1][1] < 0 < plain[2][1]  # across the valley it jumps back and forth
# too large: it never gets there
assert len(go_down(lambda p: SGD(p, lr=2.1 / STEEP))) == GIVE_UP

# %% [markdown]
r"""
In each step the distance shrinks only to $99/101$ of what it was, in both directions: along the valley because the
steps are short, across it because they overshoot. The ratio of the largest to the smallest curvature is called the
**condition number**, $\kappa$. With the best learning rate, each step shrinks the distance by
$(\kappa - 1) / (\kappa + 1)$, about $1 - 2/\kappa$, so if $\kappa$ is large, the number of steps is proportional to it.

**Momentum** is a running sum of the gradients in which older ones fade; the optimizer follows this sum $m$ instead of
the latest gradient:

$$m \leftarrow \mu\, m + g \qquad\qquad p \leftarrow p - \text{lr} \cdot m$$

Across the valley the gradient changes sign in every step, so the terms of the sum partly cancel. Along the valley it
points the same way each time, so the sum builds up, to $1/(1-\mu)$ times a single gradient. Momentum has to store one
number per parameter.
"""


# %% tags=["item-80"]
def momentum_direction(g: Tensor, state: dict[str, Tensor], mu: float) -> Tensor:
    """The direction of momentum's step, given a gradient and the state."""
    state["m"] = mu * state.get("m", torch.zeros_like(g)) + g
    return state["m"]


state_of: dict[str, Tensor] = {}
for _ in range(200):
    direction = momentum_direction(torch.tensor(1.0), state_of, mu=0.9)
assert math.isclose(direction.item(), 1 / (1 - 0.9), rel_tol=1e-5)  # it builds up, tenfold

state_of = {}
for k in range(200):
    direction = momentum_direction(torch.tensor((-1.0) ** k), state_of, mu=0.9)
assert math.isclose(abs(direction.item()), 1 / (1 + 0.9), rel_tol=1e-5)  # about half

# %% [markdown]
r"""
For a quadratic loss such as this one, the best settings are known (Polyak, 1964). If $\kappa$ is the condition number,
they are $\mu = \big(\tfrac{\sqrt\kappa - 1}{\sqrt\kappa + 1}\big)^2$ and, here, $\text{lr} = 4 / (\sqrt{1} +
\sqrt{100})^2$.
"""

# %%
root = math.sqrt(STEEP / FLAT)
best_mu = ((root - 1) / (root + 1)) ** 2
best_lr = 4 / (math.sqrt(FLAT) + math.sqrt(STEEP)) ** 2
with_momentum = go_down(lambda p: torch.optim.SGD(p, lr=best_lr, momentum=best_mu))
momentum_steps = len(with_momentum) - 1
print(f"momentum {best_mu:.2f}, learning rate {best_lr:.3f}: {momentum_steps} steps")
print(f"without momentum: {plain_steps / momentum_steps:.1f} times as many")

assert plain_steps > 5 * momentum_steps

# PyTorch's momentum is the formula above.
p, state_of = torch.tensor(START, dtype=torch.float64), {}
for point in with_momentum[:10]:
    assert torch.allclose(p, torch.tensor(point, dtype=torch.float64))
    slopes = p * torch.tensor([FLAT, STEEP], dtype=torch.float64)
    p = p - best_lr * momentum_direction(slopes, state_of, best_mu)

# %% [markdown]
r"""
Momentum needs about a fifth of the steps, and the advantage grows with the condition number: in the long run the number
of steps is proportional to $\sqrt\kappa$, not to $\kappa$. (Here momentum saves less than a factor of $\sqrt{100} =
10$, because the path is short and momentum first has to build up.)

*Try it yourself:* in a new cell, set `STEEP = 400.0`, compute the best settings again, and count the steps. What's the
ratio now? (Set it back afterward.)
"""

# %% [markdown]
r"""
## 3 · A learning rate for each parameter

Momentum remembers the direction. **AdaGrad** (Duchi, Hazan and Singer, 2011) remembers the *size*: for each parameter
it sums the squares of all gradients so far, and divides the gradient by the square root of that sum.

$$s \leftarrow s + g^2 \qquad\qquad p \leftarrow p - \text{lr} \cdot \frac{g}{\sqrt{s} + \varepsilon}$$

All of this is elementwise, so each parameter is treated separately. If its gradients are large, its effective learning
rate becomes small; if it rarely gets a gradient, it takes large steps when it does. The tiny number $\varepsilon$
prevents a division by zero.

> **Trap: sum or average?** Lecture 2 of Stanford's CS336
> ([2025](https://github.com/stanford-cs336/spring2025-lectures/blob/main/lecture_02.py)) describes AdaGrad as "SGD +
> averaging by grad^2", but its code says `g2 += torch.square(grad)`. Suppose all gradients are 1. How long is the
> hundredth step with a sum, and how long with an average? Which of the two slows down over time? Decide before you look
> at the next cell.
"""

# %% tags=["error-9", "folded"]
summed, averaged = 0.0, 0.0
for k in range(1, 101):
    summed += 1.0**2
    averaged += (1.0**2 - averaged) / k  # the mean of k squares
    assert math.isclose(1 / math.sqrt(summed), 1 / math.sqrt(k))
assert math.isclose(1 / math.sqrt(summed), 0.1)  # the hundredth step: a tenth of the first
assert math.isclose(1 / math.sqrt(averaged), 1.0)  # the hundredth is as long as the first
print(
    f"the hundredth step: {1 / math.sqrt(summed):.1f} with a sum, {1 / math.sqrt(averaged):.1f} with an average"
)

# %% [markdown]
r"""
AdaGrad *sums*, and that's essential: if the gradients keep their size, the length of step $k$ is proportional to
$1/\sqrt{k}$, so the steps get shorter on their own.

> **Trap: where is $\varepsilon$?** Outside the root, as above, or inside: $g / \sqrt{s + \varepsilon}$? Both are in use
> under the same name: PyTorch's Adagrad puts it outside,
> [Keras's](https://github.com/keras-team/keras/blob/master/keras/src/optimizers/adagrad.py) inside. Inside the root,
> $\varepsilon$ is added to a *square*.

**Predict.** Let $\varepsilon = 10^{-5}$, and let the first gradient be $10^{-4}$. What's the ratio of the first step
with $\varepsilon$ outside the root to the first step with $\varepsilon$ inside?
"""

# %%
guess = None  # times


# %% tags=["error-9"]
def eps_matters(g: float, eps: float) -> float:
    """The first step of AdaGrad with eps outside the root, over the one with eps inside."""
    outside = g / (math.sqrt(g**2) + eps)
    inside = g / math.sqrt(g**2 + eps)
    return outside / inside


reconcile(
    "the first step with ε outside", guess, eps_matters(1e-4, 1e-5), "times that with ε inside"
)

assert round(eps_matters(1e-4, 1e-5)) == 29
assert round(eps_matters(1e-9, 1e-5)) == 316  # at worst, 1 / √eps
assert 0.99 < eps_matters(1.0, 1e-5) < 1  # with large gradients it makes no difference

# PyTorch's is outside.
w = nn.Parameter(torch.zeros(1))
w.grad = torch.tensor([1e-4])
torch.optim.Adagrad([w], lr=1.0, eps=1e-5).step()
assert math.isclose(w.item(), -1e-4 / (1e-4 + 1e-5), rel_tol=1e-5)

# %% [markdown]
r"""
All that comes from the position of one parenthesis. Gradients of that size are common: in the Transformer of
section 8, more than a fifth are smaller still. A learning rate that was tuned for one version may not work for the
other.

### Exercise 8.2 · AdaGrad (optional) &nbsp; ★★☆ &nbsp; 10 minutes

Write the `step` method of `AdaGrad`, with a positive $\varepsilon$ outside the root. Keep the sum of the squared
gradients of parameter `p` in `self.state[p]["sum"]`: a tensor with the shape, dtype and device of `p`, and the only one
that you keep. (`self.state[p]` is an empty dict at first. Whatever is in `self.state` is part of the optimizer's
`state_dict()`, and so of a checkpoint.) As in 8.1, settings come from the group; a parameter without a gradient is
skipped (its sum doesn't change, and if it has no sum yet, don't create one); parameters change in place, whatever their
strides; and gradients don't change.
"""


# %% nbgrader={"grade": false, "grade_id": "AdaGrad", "locked": false, "schema_version": 3, "solution": true, "task": false}
class AdaGrad(torch.optim.Optimizer):
    """s ← s + g²; p ← p − lr · g / (√s + eps)."""

    def __init__(self, params: Iterable[Any], lr: float = 1e-2, eps: float = 1e-8) -> None:
        super().__init__(params, defaults={"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        """One step."""
        ### BEGIN SOLUTION
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "sum" not in state:
                    state["sum"] = torch.zeros_like(p)
                state["sum"] += p.grad**2
                p -= group["lr"] * p.grad / (state["sum"].sqrt() + group["eps"])
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_AdaGrad", "locked": true}
check("AdaGrad")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Use the loops from 8.1. What is in <code>self.state[p]</code> in the first step, and what has to be there before you can add to it?</details>
<details><summary>Hint 2</summary>Work out the first step by hand: whatever the gradient, the step should be nearly lr long.</details>

**Why it matters.** AdaGrad is an early member of the family that AdamW belongs to, and it's also the worked example in
lecture 2 of CS336. You can use yours instead of PyTorch's in the next cell.

### AdaGrad in the valley, and RMSProp

In the narrow valley each direction belongs to one parameter, so AdaGrad adapts its step to each direction. Here's
PyTorch's version, with a learning rate that works well:
"""

# %% tags=["item-79"]
adagrad_path = go_down(lambda p: torch.optim.Adagrad(p, lr=2.0))
print(f"AdaGrad in the narrow valley: {len(adagrad_path) - 1} steps")
assert len(adagrad_path) < len(with_momentum) < len(plain)

# %% [markdown]
r"""
That's even fewer steps than with momentum. But AdaGrad has a weakness: it never forgets. If the gradients keep their
size, then after 10,000 steps it moves a hundredth as far as it did at first, even if the curvature of the loss has
changed by then. **RMSProp** (Hinton's lectures, 2012) forgets: it has an *exponential moving average* of the squares,
in which older ones fade:

$$\begin{split}
v &\leftarrow \beta\, v + (1 - \beta)\, g^2 \\
p &\leftarrow p - \text{lr} \cdot \frac{g}{\sqrt{v} + \varepsilon}
\end{split}$$
"""


# %% tags=["item-80"]
def rmsprop_direction(
    g: Tensor, state: dict[str, Tensor], beta: float = 0.99, eps: float = 1e-8
) -> Tensor:
    """The direction of RMSProp's step, given a gradient and the state."""
    state["v"] = beta * state.get("v", torch.zeros_like(g)) + (1 - beta) * g**2
    return g / (state["v"].sqrt() + eps)


state_of = {}
moves = [rmsprop_direction(torch.tensor(1.0), state_of).item() for _ in range(2_000)]
print(f"RMSProp, all gradients 1: step 1 is {moves[0]:.1f}, step 2,000 is {moves[-1]:.1f}")
assert math.isclose(moves[0], 10, rel_tol=1e-4)  # 1 / √(1 − β): the average began at 0
assert math.isclose(moves[-1], 1, rel_tol=1e-4)  # and it does not slow down

# %% [markdown]
r"""
Look at the first step: it's ten times as long as the last one. The average starts at zero, so at first it's much
smaller than the squares that it averages, and dividing by its root makes the steps too long. The next optimizer
corrects this.

*Try it yourself:* print `moves` for `beta=0.9`. After how many steps has it forgotten the start?

## 4 · Adam and AdamW

**Adam** (Kingma and Ba, 2014) combines momentum with RMSProp. Adam's **first moment** $m$ is a running average of the
gradients, similar to momentum; its **second moment** $v$ is a running average of their squares, as in RMSProp. Both
start at zero. After $t$ steps each moment is a weighted sum of all gradients (or squares) so far, and these weights add
up to $1 - \beta^t$ instead of 1, so Adam divides by that; this is called **bias correction**.

$$\begin{split}
m &\leftarrow \beta_1 m + (1 - \beta_1)\, g \\
v &\leftarrow \beta_2 v + (1 - \beta_2)\, g^2 \\
\hat m &= m / (1 - \beta_1^t) \\
\hat v &= v / (1 - \beta_2^t) \\
p &\leftarrow p - \text{lr} \cdot \frac{\hat m}{\sqrt{\hat v} + \varepsilon}
\end{split}$$

In the first step $\hat m = g$ and $\hat v = g^2$. So each parameter moves by lr, in the direction opposite to the
*sign* of its gradient, whether the gradient is a thousand or a thousandth. What happens without bias correction?
"""

# %%
beta1, beta2 = 0.9, 0.999
uncorrected = (1 - beta1) / math.sqrt(1 - beta2)  # m / √v; corrected, it is 1
print(f"without bias correction, the first step is {uncorrected:.2f} times as long")
assert round(uncorrected, 2) == 3.16
assert round(1 - beta2**1_000, 2) == 0.63

for g in (1_000.0, 0.001):
    w = nn.Parameter(torch.zeros(1))
    w.grad = torch.tensor([g])
    torch.optim.Adam([w], lr=0.1).step()
    assert math.isclose(w.item(), -0.1, rel_tol=1e-4)  # lr, whatever the gradient

# %% [markdown]
r"""
The first step is more than three times as *long* as it should be, because (with the usual $\beta_1 = 0.9$ and
$\beta_2 = 0.999$) the $m$ it uses is a tenth of $g$, while its $\sqrt v$ is only about a thirtieth of $|g|$. And the
effect lasts: after a thousand steps those weights still add up to only 0.63 in $v$.

### Weight decay, and the W

A model with large weights can react strongly to small changes in its input, so we often want weights to stay small.
**Weight decay** shrinks weights a little in each step. There are two ways to do it. *L2 regularization* adds
$\tfrac{\lambda}{2} p^2$ to the loss, which adds $\lambda p$ to the gradient. *Decoupled* weight decay leaves the
gradient alone and instead multiplies $p$ by $1 - \text{lr} \cdot \lambda$. For plain SGD these are the same. For Adam
they aren't: Adam divides by the size of the gradient, and with L2 the decay is part of the gradient.

**Predict.** A weight is 1 and its gradient is zero. *Adam* with L2 takes one step from there, once with a decay of 0.1
and once with a decay of 0.001. What's the ratio of the two steps, larger decay to smaller?
"""

# %%
guess = None  # times


# %%
def decay_of(
    kind: type[torch.optim.Optimizer], weight_decay: float, gradient: float = 0.0
) -> float:
    """How far one step with lr 0.1 moves a weight of 1."""
    w = nn.Parameter(torch.ones(1, dtype=torch.float64))
    w.grad = torch.full((1,), gradient, dtype=torch.float64)
    kind([w], lr=0.1, weight_decay=weight_decay).step()  # type: ignore[call-arg]
    return 1 - w.item()


times = decay_of(torch.optim.Adam, 0.1) / decay_of(torch.optim.Adam, 0.001)
reconcile("Adam with L2, a hundred times the decay", guess, times, "times")

assert math.isclose(times, 1, rel_tol=1e-3)
# lr, whatever the decay
assert math.isclose(decay_of(torch.optim.Adam, 0.1), 0.1, rel_tol=1e-3)
assert math.isclose(decay_of(torch.optim.AdamW, 0.1), 0.1 * 0.1)  # lr · decay
assert math.isclose(decay_of(torch.optim.AdamW, 0.001), 0.1 * 0.001)
assert math.isclose(decay_of(torch.optim.SGD, 0.1), 0.1 * 0.1)  # for SGD both are the same

# With a gradient of 100: how much the decay adds to the step.
adam, adamw = (
    decay_of(kind, 0.1, 100.0) - decay_of(kind, 0.0, 100.0)
    for kind in (torch.optim.Adam, torch.optim.AdamW)
)
assert abs(adam) < 1e-6 and math.isclose(adamw, 0.1 * 0.1)

# %% [markdown]
r"""
The size of the decay had no effect: the decay was the whole gradient, so $\lambda$ canceled. If the loss contributes a
gradient as well, Adam divides the decay by the size of that gradient, so weights with large gradients hardly shrink.
**AdamW** (Loshchilov and Hutter, 2017) is Adam with decoupled weight decay, which shrinks all weights by the same
factor.

### Exercise 8.3 · AdamW &nbsp; ★★★ &nbsp; essential &nbsp; 20 minutes

Write the `step` method of `AdamW`. For each parameter with a gradient: first shrink it,
$p \leftarrow p \cdot (1 - \text{lr} \cdot \text{weight\_decay})$; then take Adam's step, with the formulas above.
$\varepsilon$, which is positive, is outside the root, added to the *corrected* $\sqrt{\hat v}$.

Keep three things in `self.state[p]`: `"step"`, a plain `int` that counts the steps *this parameter* has taken ($t$ in
the formulas, so 1 during its first step); and the moments `"exp_avg"` ($m$) and `"exp_avg_sq"` ($v$), tensors with the
shape, dtype and device of `p`. As before, settings come from the group; a parameter without a gradient is skipped
(nothing is shrunk, counted or kept); the others change in place, whatever their strides; and gradients don't change.
"""


# %% nbgrader={"grade": false, "grade_id": "AdamW", "locked": false, "schema_version": 3, "solution": true, "task": false}
class AdamW(torch.optim.Optimizer):
    """Adam with bias correction and decoupled weight decay."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        """One step."""
        ### BEGIN SOLUTION
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["step"] = 0
                    state["exp_avg"] = torch.zeros_like(p)
                    state["exp_avg_sq"] = torch.zeros_like(p)
                state["step"] += 1
                m, v, t = state["exp_avg"], state["exp_avg_sq"], state["step"]
                m.mul_(beta1).add_(p.grad, alpha=1 - beta1)
                v.mul_(beta2).add_(p.grad**2, alpha=1 - beta2)
                p *= 1 - group["lr"] * group["weight_decay"]
                root = (v / (1 - beta2**t)).sqrt()
                p -= group["lr"] * (m / (1 - beta1**t)) / (root + group["eps"])
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_AdamW", "locked": true}
check("AdamW")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Use the loops from 8.1. What has to be in <code>self.state[p]</code> before a parameter's first step, and when does its counter go up?</details>
<details><summary>Hint 2</summary>Go through the formulas in order. Which of their quantities does the next step need, and which are used only in this one? Change the former in place; the latter are new tensors that nobody keeps.</details>

**Why it matters.** You'll train the capstone's Transformer with AdamW. There are many ways to get AdamW wrong,
none of which raises an error. So the next cell compares your AdamW with PyTorch's: it trains a copy of the same model
with each for 20 steps, with weight decay on the matrices and none on the biases.
"""


# %% tags=["item-80", "folded"]
def two_groups(model: nn.Module) -> list[dict[str, Any]]:
    """Weight decay for the matrices, none for the biases."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() == 1]
    return [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]


torch.manual_seed(0)
mine = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)).to(device)
theirs = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)).to(device)
theirs.load_state_dict(mine.state_dict())
my_adamw = AdamW(two_groups(mine), lr=0.01)
their_adamw = torch.optim.AdamW(two_groups(theirs), lr=0.01)
inputs = torch.randn(20, 6, device=device)
for _ in range(20):
    for model, optimizer in ((mine, my_adamw), (theirs, their_adamw)):
        optimizer.zero_grad()
        (model(inputs) - 1).square().mean().backward()
        optimizer.step()
pairs = list(zip(mine.parameters(), theirs.parameters(), strict=True))
same = all(torch.allclose(a, b, rtol=1e-3, atol=1e-5) for a, b in pairs)
print(f"the parameters are the same after 20 steps: {same}")
assert same
assert all(their_adamw.defaults[name] == value for name, value in my_adamw.defaults.items())

# %% [markdown]
r"""
Which settings should you use? The defaults in your `__init__` are PyTorch's. Tune the learning rate first: it scales
every step, and the weight decay, too.

### One family

You can think of these as one optimizer with parts switched on or off:

| | direction: $m$ | size: divide by the root of | numbers kept per parameter |
|---|---|---|---|
| SGD | the gradient | nothing | 0 |
| momentum | fading sum | nothing | 1 |
| AdaGrad | the gradient | the sum of squares | 1 |
| RMSProp | the gradient | running average of squares | 1 |
| Adam | first moment, corrected | second moment, corrected | 2 |
| AdamW | as Adam | as Adam; decoupled decay | 2 |
"""

# %% [markdown]
r"""
### What the state is good for, in a picture (optional)

AdaGrad and AdamW have a learning rate for each parameter, which means for each *axis*. What if a valley doesn't run
along an axis?

**Predict.** The explorer below has a less narrow valley: its condition number is only 15 (the explorer says *steepness
ratio*). While it runs along an axis,
AdaGrad with a learning rate of 1 takes 8 steps to bring the loss below 0.001. How many does it take if you turn the
valley by 45°?
"""

# %%
guess = None  # steps

# %%
from course_utils.explorers import valley


def adagrad_steps(turn: float) -> int:
    """Steps until the loss is below 0.001, in the explorer's valley turned by degrees."""
    path = valley.walk("AdaGrad", (-2.2, 0.8), rate=1.0, ratio=15, turn=turn, steps=100)
    return next(step for step, p in enumerate(path) if valley.loss(p, 15, turn) < valley.CLOSE)


reconcile("AdaGrad in a valley turned by 45°", guess, adagrad_steps(45), "steps")
assert adagrad_steps(0) == 8 and adagrad_steps(45) == 75

# %%
valley.explore("AdaGrad", rate=1.0, turn=45).predicted(
    "AdaGrad in a valley turned by 45°",
    "AdaGrad at a rate of 1 takes 8 steps to a loss of 0.001. How many does it take if you turn the valley by 45°?",
)

# %% [markdown]
r"""
In the turned valley, the steep direction dominates the gradients of *both* parameters, so both get about the same
learning rate. Turn it back to 0°, and drag the starting point. How many steps does AdaGrad take at only 6°? The
curvatures are 1 and 15: work out above which learning rate SGD diverges, then choose SGD and check.

Now let's race SGD, momentum, AdaGrad and AdamW in this lecture's valley, with its condition number of 100. Then we
rotate *the same* valley by 45° and start from the same place in it. For SGD and momentum that makes no difference,
because nothing in their formulas refers to the axes.
"""

# %%
racers: dict[str, Callable[[list[nn.Parameter]], torch.optim.Optimizer]] = {
    "SGD": lambda p: SGD(p, lr=2 / (FLAT + STEEP)),
    "momentum": lambda p: torch.optim.SGD(p, lr=best_lr, momentum=best_mu),
    "AdaGrad": lambda p: torch.optim.Adagrad(p, lr=2.0),
    "AdamW": lambda p: AdamW(p, lr=0.5, weight_decay=0.0),
}
valleys = {"along an axis": 0.0, "rotated by 45°": math.pi / 4}
paths = {
    label: {name: go_down(make, angle) for name, make in racers.items()}
    for label, angle in valleys.items()
}
steps_taken = {
    label: {name: len(path) - 1 for name, path in walked.items()}
    for label, walked in paths.items()
}
for label, counts in steps_taken.items():
    listed = ", ".join(f"{name} {count:,}" for name, count in counts.items())
    print(f"steps in the valley {label}: {listed}")
straight, rotated = steps_taken["along an axis"], steps_taken["rotated by 45°"]
assert straight["AdaGrad"] == 26 and rotated["AdaGrad"] > 10 * straight["AdaGrad"]
assert rotated["AdaGrad"] > rotated["SGD"] and rotated["AdamW"] > 3 * straight["AdamW"]
assert straight["SGD"] == 231
assert rotated["SGD"] == straight["SGD"] and rotated["momentum"] == straight["momentum"]


# %%
def surface(angle: float) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """The loss of the valley at an angle."""
    c, s = math.cos(angle), math.sin(angle)
    return lambda x, y: 0.5 * (FLAT * (c * x + s * y) ** 2 + STEEP * (c * y - s * x) ** 2)


finding = "At one learning rate, AdaGrad and AdamW are fast along an axis and slow at 45°"
rows = {
    label: (
        surface(valleys[label]),
        {f"{n}: {len(w) - 1} steps": w[:60] for n, w in walked.items()},
    )
    for label, walked in paths.items()
}
plots.show(
    plots.descent(rows, reach=11, title=finding),
    alt=f"{finding}. Two rows of four panels, drawn up to the 60th point. Along an axis SGD and momentum jump from "
    "slope to slope, while AdaGrad and AdamW turn into the valley and follow it. Rotated by 45°, AdaGrad and "
    f"AdamW are slow: {rotated['AdaGrad']} and {rotated['AdamW']} steps, against {straight['AdaGrad']} and {straight['AdamW']}.",
)

# %% [markdown]
r"""
(Only the first 60 points of each path are drawn.) Did we choose bad learning rates for the rotated valley? Let's give
AdaGrad and AdamW the best of four learning rates each, and also run AdamW without its first moment ($\beta_1 = 0$):
"""


# %%
def fewest(make: Callable[[list[nn.Parameter], float], torch.optim.Optimizer]) -> int:
    """Steps down the rotated valley, with the best of four learning rates."""
    paths = [
        go_down(lambda p, lr=lr: make(p, lr), math.pi / 4)  # type: ignore[misc]
        for lr in (0.5, 1.0, 2.0, 3.0)
    ]
    return min(len(path) for path in paths) - 1


at_best = {
    "AdaGrad": fewest(lambda p, lr: torch.optim.Adagrad(p, lr)),
    "AdamW with β₁ = 0": fewest(
        lambda p, lr: AdamW(p, lr, betas=(0.0, 0.999), weight_decay=0.0)
    ),
    "AdamW": fewest(lambda p, lr: AdamW(p, lr, weight_decay=0.0)),
}
listed = ", ".join(f"{name}: {count:,}" for name, count in at_best.items())
print(f"steps in the valley rotated by 45°, each at its best rate: {listed}")
assert at_best["AdaGrad"] > 200 and at_best["AdamW with β₁ = 0"] > 150
assert at_best["AdamW"] < 1.5 * straight["AdamW"]

# %% [markdown]
r"""
With a better learning rate AdamW is fast again, but only thanks to its first moment, which works like momentum.
Dividing by the size of the gradients is of little use if the valley runs *diagonally*. It's a great help if the sizes
differ *from one parameter to the next*, as they do between the embeddings of a rare and a common token.

But don't read too much into such a picture. Each optimizer needs its own learning rate, so comparing optimizers at a
single one proves nothing, and none of this says which optimizer trains *your* model best.
"""

# %% [markdown]
r"""
## 5 · What optimizers store

In `optimizer.state` (section 1), each parameter's dict maps names to tensors or plain numbers. Here's the state of
PyTorch's own AdamW, for one matrix and its bias:
"""

# %% tags=["item-81"]
layer = nn.Linear(64, 32, device=device)
optimizer = torch.optim.AdamW(layer.parameters())
assert len(optimizer.state) == 0  # nothing before the first step
layer(torch.randn(8, 64, device=device)).sum().backward()
optimizer.step()
for name, parameter in layer.named_parameters():
    for key, value in optimizer.state[parameter].items():
        print(
            f"{name:>6} {key:>10}: {str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
        )

state = optimizer.state[layer.weight]
assert set(state) == {"step", "exp_avg", "exp_avg_sq"}
assert state["exp_avg"].shape == state["exp_avg_sq"].shape == layer.weight.shape
assert state["step"].shape == () and state["step"].dtype == torch.float32  # 4 bytes each
assert state["step"].device.type == "cpu"  # even if the parameters are on a GPU

saved = optimizer.state_dict()  # for a checkpoint: parameters by number, not by value
assert list(saved["state"]) == [0, 1] and saved["param_groups"][0]["params"] == [0, 1]

# %% [markdown]
r"""
AdamW stores two moments for each element of a parameter. PyTorch's version also stores a counter for each *tensor*, and
the counter is itself a tensor of 4 bytes. (Yours is a Python `int`, which takes no tensor memory.)

*Try it yourself:* look at the state of `torch.optim.AdamW(…, amsgrad=True)`. What else does it keep?

### Exercise 8.4 · Bytes of state &nbsp; ★☆☆ &nbsp; essential &nbsp; 8 minutes

Write `state_bytes(optimizer)`. It returns the bytes of all tensors that the optimizer keeps in its state, including the
counters. The state contains dicts for parameters of the optimizer's groups, and nothing else; the values of each dict
are tensors of any dtype, or plain numbers, strings and `None`, which don't count. No two of the tensors share memory,
and none is part of a larger one. (A few optimizers, such as LBFGS, also keep lists of tensors. Ignore those.)
Parameters and gradients don't count, and no parameter is in two groups.
"""


# %% nbgrader={"grade": false, "grade_id": "state_bytes", "locked": false, "schema_version": 3, "solution": true, "task": false}
def state_bytes(optimizer: torch.optim.Optimizer) -> int:
    """Bytes of all tensors in the optimizer's state."""
    ### BEGIN SOLUTION
    return sum(
        value.numel() * value.element_size()
        for kept in optimizer.state.values()
        for value in kept.values()
        if isinstance(value, Tensor)
    )
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_state_bytes", "locked": true}
check("state_bytes")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>A dict of dicts needs two loops: over the parameters' dicts in <code>optimizer.state</code>, and over the values in each.</details>
<details><summary>Hint 2</summary>How many bytes does a tensor take? (Lecture 01.) Before you ask a value for its size, check that it's a tensor.</details>

**Why it matters.** The optimizer state is easy to forget when you add up the memory of a training step. Now you can
compute it for almost any optimizer (section 9 has some that store less). Here it is for a 1,024 × 512 matrix in
float32:
"""


# %%
def kept_for(make: Callable[[list[nn.Parameter]], torch.optim.Optimizer], *shape: int) -> int:
    """Bytes of state after one step on one parameter."""
    p = nn.Parameter(torch.ones(*shape, device=device))
    p.grad = torch.ones_like(p)
    optimizer = make([p])
    optimizer.step()
    return state_bytes(optimizer)


rows, columns = 1_024, 512
n = rows * columns
mine_keeps = kept_for(lambda p: AdamW(p), rows, columns)
print(f"your AdamW keeps {mine_keeps:,} B for {n:,} parameters")

assert mine_keeps == 8 * n
assert kept_for(lambda p: torch.optim.AdamW(p), rows, columns) == 8 * n + 4  # and the counter
assert kept_for(lambda p: SGD(p), rows, columns) == 0
assert kept_for(lambda p: torch.optim.SGD(p, momentum=0.9), rows, columns) == 4 * n
assert kept_for(lambda p: torch.optim.Adagrad(p), rows, columns) == 4 * n + 4
assert kept_for(lambda p: torch.optim.RMSprop(p), rows, columns) == 4 * n + 4

# %% [markdown]
r"""
## 6 · The whole step, to the byte

A training step keeps four kinds of tensors in memory: parameters, gradients, optimizer state, and activations. The
first three depend only on the model and the optimizer. The activations grow with the batch.

We'll use the example in lecture 2 of Stanford's CS336
([2025](https://github.com/stanford-cs336/spring2025-lectures/blob/main/lecture_02.py)): a chain of $L$ linear layers,
$[B, D] \to [B, D]$, and a *head*, which is a model's last layer (no relation to attention's heads); this one turns each
of the $B$ vectors into one number. There are no biases. The loss is the mean squared error.
"""

# %%
if device.type == "cpu":  # leave one core for other programs (lecture 05)
    torch.set_num_threads(max(1, torch.get_num_threads() - 1))


def chain(width: int, layers: int) -> nn.Sequential:
    """A stack of linear layers and a head with one output."""
    stack = [nn.Linear(width, width, bias=False) for _ in range(layers)]
    return nn.Sequential(*stack, nn.Linear(width, 1, bias=False)).to(device)


def squared_error(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """The mean of the squared errors."""
    return (model(x) - y).square().mean()


# %% [markdown]
r"""
> **Trap: a missing tensor.** For $B = 2$, $D = 4$, $L = 2$ and AdaGrad, that lecture's formula gives: parameters
> $D \cdot D \cdot L + D = 36$, activations $B \cdot D \cdot L = 16$, gradients 36, state 36. With 4 bytes per number
> that's $4 \cdot (36 + 16 + 36 + 36) = 496$ bytes. But autograd keeps more than 16 numbers. Which tensor does the
> formula forget? Go through the forward pass, operation by operation, and ask for each: *which of its inputs will the
> backward pass need?*

**Predict.** How many bytes do the four kinds really take? (Leave out the batch of data and the step counters. The
activations are whatever autograd keeps for the backward pass apart from data and parameters; the course's helper
`saved_bytes` will measure them.)
"""

# %%
guess = None  # bytes

# %% tags=["error-26"]
B, D, L = 2, 4, 2
model = chain(D, L)
x, y = torch.randn(B, D, device=device), torch.randn(B, 1, device=device)
optimizer = torch.optim.Adagrad(model.parameters())
kept = saved_bytes(squared_error, model, x, y)  # x, y and the parameters are not counted
squared_error(model, x, y).backward()
optimizer.step()
numbers = sum(p.numel() for p in model.parameters())
counters = 4 * len(list(model.parameters()))  # PyTorch's; they aren't part of the question
state_kept = state_bytes(optimizer) - counters
in_truth = 4 * numbers + 4 * numbers + state_kept + kept
reconcile("B = 2, D = 4, L = 2 with AdaGrad", guess, in_truth, "B")

assert numbers == 36 and state_kept == 4 * 36
assert in_truth == 504 == 496 + 4 * B
assert kept == 4 * (B * D * L + B)

# %% [markdown]
r"""
Each linear layer keeps its *input*, since $\nabla w = h^\top \nabla y$ (lecture 06). Layer by layer:

- The first layer keeps $x$, which is your batch of data. It takes $4 B D$ bytes, but they weren't allocated for this
  pass, so we count them with the data.
- Layers 2 to $L$ and the head each keep the output of the layer before: $L$ tensors, with $B \cdot D \cdot L$ numbers
  in all. The formula counts these.
- The *loss* keeps something too. The derivative of $e^2$ is $2e$, so it keeps the $B$ errors. The formula forgets
  these.

Here that hardly matters. But a language model's loss keeps, for each token, a number for *each entry of the
vocabulary*, which is far too much to forget (section 8).

What about activation functions? Not every operation saves its input. A ReLU saves nothing extra: its derivative can be
computed from its output, which the next layer keeps anyway. A GELU needs its input, which nothing else keeps.
"""

# %%
B, D, L = 32, 64, 3
x, y = torch.randn(B, D, device=device), torch.randn(B, 1, device=device)
for name, activation in (
    ("none", nn.Identity),
    ("ReLU", nn.ReLU),
    ("Tanh", nn.Tanh),
    ("GELU", nn.GELU),
):
    stack = [part for _ in range(L) for part in (nn.Linear(D, D, bias=False), activation())]
    model = nn.Sequential(*stack, nn.Linear(D, 1, bias=False)).to(device)
    kept = saved_bytes(squared_error, model, x, y)
    print(f"activation {name:>4}: {kept:>6,} B kept")
    assert kept == 4 * (B * D * L * (2 if name == "GELU" else 1) + B)

# %% [markdown]
r"""
*Try it yourself:* how many bytes do `nn.SiLU`, `nn.Sigmoid` and `nn.Dropout(0.5)` keep? Guess first: what does the
derivative of each need?

### Exercise 8.5 · Four kinds of memory &nbsp; ★★☆ &nbsp; essential &nbsp; 12 minutes

Write `training_bytes(batch, width, layers, moments, counter)`. It returns the bytes of each kind in a training step of
the chain above (`layers` layers of `width` × `width`, possibly none; a head of `width` × 1; no biases, no activation
functions, mean squared error), with everything in float32. `batch` and `width` are at least 1. The optimizer keeps
`moments` numbers for each parameter, and `counter` bytes for each parameter *tensor* (0 for yours, 4 for PyTorch's
AdamW). The input and the targets are data and don't count. Return a dict with the keys `"parameters"`, `"gradients"`,
`"optimizer state"` and `"activations"`.
"""


# %% nbgrader={"grade": false, "grade_id": "training_bytes", "locked": false, "schema_version": 3, "solution": true, "task": false}
def training_bytes(
    batch: int, width: int, layers: int, moments: int, counter: int = 0
) -> dict[str, int]:
    """Bytes of a training step of the chain, by kind."""
    ### BEGIN SOLUTION
    numbers = layers * width * width + width
    tensors = layers + 1
    return {
        "parameters": 4 * numbers,
        "gradients": 4 * numbers,
        "optimizer state": 4 * moments * numbers + counter * tensors,
        "activations": 4 * (batch * width * layers + batch),
    }
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_training_bytes", "locked": true}
check("training_bytes")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Count numbers first and convert to bytes last. A gradient is as large as its parameter.</details>
<details><summary>Hint 2</summary>Activations: consider one layer, the head and the loss in turn. Which tensor does the backward pass of each need, and is it data?</details>

**Why it matters.** With a tally like this, you know roughly whether a run will fit *before* you start it (section 9
says what's missing).

### Watch it happen

Now let's run this step with your AdamW. `track` reports how many bytes the tensors take at each moment, and your
`training_bytes` should predict each of these numbers exactly. (On a GPU, the first multiplication allocates a few
megabytes for a library, so the cell runs one forward and one backward pass before it measures.)
"""

# %% tags=["item-82"]
B, D, L = 64, 128, 3
x, y = torch.randn(B, D, device=device), torch.randn(B, 1, device=device)
squared_error(chain(D, L), x, y).backward()  # warm up

predicted = training_bytes(B, D, L, moments=2)
params, grads = predicted["parameters"], predicted["gradients"]
states, acts = predicted["optimizer state"], predicted["activations"]
with track(device) as memory:
    model = chain(D, L)
    optimizer = AdamW(model.parameters(), lr=1e-3)
    held = {"model built": (memory.live, params)}
    loss = squared_error(model, x, y)
    held["after forward"] = (memory.live, params + acts + 4)  # the loss itself is one number
    loss.backward()
    del loss
    held["after backward"] = (memory.live, params + grads)
    optimizer.step()
    held["after step"] = (memory.live, params + grads + states)
    optimizer.zero_grad()
    held["after zero_grad"] = (memory.live, params + states)
    loss = squared_error(model, x, y)
    held["next forward"] = (memory.live, params + states + acts + 4)

for moment, (bytes_held, expected) in held.items():
    print(f"{moment:>16}: {bytes_held:>9,} B held, {expected:>9,} B predicted")
    assert bytes_held == expected

# %% [markdown]
r"""
Prediction and measurement agree on every line. Activations appear in the forward pass and *disappear* in the backward
pass, while the gradients appear. The optimizer state appears at the first `step()` and stays.

(`torch.cuda.memory_allocated()` reports a little more, because the allocator rounds sizes up, as you saw in lecture 01.
The counters of PyTorch's AdamW would be missing from it: by default, they're in the CPU's memory.)

## 7 · The work of a step

And the FLOPs? Lecture 06 has the answer for the matrix products: $6 \cdot B \cdot \text{parameters}$, minus $2 B D^2$
for the gradient of the input, which isn't needed.
"""

# %% tags=["item-83"]
B, D, L = 64, 128, 3
model, numbers = chain(D, L), D * D * L + D
x, y = torch.randn(B, D, device=device), torch.randn(B, 1, device=device)
matmuls = count_flops(lambda: squared_error(model, x, y).backward())
assert matmuls == 6 * B * numbers - 2 * B * D * D
print(
    f"forward and backward: {readable(matmuls, 'FLOPs')}, by the rule {readable(6 * B * numbers, 'FLOPs')}"
)

# %% [markdown]
r"""
The optimizer adds its own work to that. Its operations are elementwise, so PyTorch's counter ignores them. Let's count
AdamW's by hand, for one parameter:
"""

# %%
adamw_work = {  # operations on each parameter, in each step
    "shrink the weight": 1,  # ·
    "first moment": 3,  # · · +
    "second moment": 4,  # · · · +
    "correct both moments": 2,  # ÷ ÷
    "root, and eps": 2,  # √ +
    "divide, times lr, subtract": 3,  # ÷ · −
}
per_parameter = sum(adamw_work.values())
assert per_parameter == 15

# %% [markdown]
r"""
The optimizer runs once per step, however many tokens the batch has. So is its work negligible? That depends on the
optimizer.

### Muon: matrix products in the optimizer

**Muon** (Jordan and others, 2024) is an optimizer that treats the gradients of a matrix as a matrix, not as separate
numbers. Much like momentum, it keeps a running average of the gradients: one number per parameter, 4 bytes in float32,
which is half of AdamW's state. The **singular values** of a matrix are the amounts by which it stretches vectors in
different directions. If a few singular values of the average are much larger than the others, a step proportional to it
follows a few directions and neglects the rest. So Muon keeps the directions but makes all singular values, except for
the very smallest, about equal.

It doesn't compute the singular values, which would be slow. It divides the average (into which PyTorch's version mixes
the latest gradient once more) by its *Frobenius norm*, the square root of the sum of its squared entries. No singular
value is larger than that norm, so those of the result $X$ are at most 1. Then it repeats five times:

$$\begin{split}
A &= X X^\top \\
X &\leftarrow a X + (b A + c A A)\, X
\end{split}$$

with $a = 3.4445$, $b = -4.775$ and $c = 2.0315$. This keeps the directions and turns each singular value $s$ into
$a s + b s^3 + c s^5$. Such **Newton–Schulz iterations** bring the singular values of a matrix roughly to 1, by matrix
products alone. With these constants, small singular values grow quickly, and all those between 0.01 and 1 end up
between 0.6 and 1.2. If $X$ has more rows than columns, Muon transposes it first, so $A$ is always as small as possible.

For a matrix of 4,096 × 4,096, each iteration has three products of $2 \cdot 4{,}096^3$ FLOPs. That makes
$5 \cdot 3 \cdot 2 \cdot 4{,}096 = 122{,}880$ FLOPs *per parameter* in one step, compared with AdamW's 15:
"""

# %%
with torch.device("meta"):  # shapes are enough to count
    square = nn.Parameter(torch.empty(4_096, 4_096))
    square.grad = torch.empty(4_096, 4_096)
muon = torch.optim.Muon([square])
muon_work = count_flops(lambda: muon.step()) / square.numel()
print(f"Muon: {muon_work:,.0f} FLOPs per parameter")

assert muon_work == 122_880 == 5 * 3 * 2 * 4_096

assert muon.defaults["ns_coefficients"] == (3.4445, -4.775, 2.0315)
values = torch.linspace(0.01, 1, 1_000)
for _ in range(5):  # what an iteration does to a singular value
    values = 3.4445 * values - 4.775 * values**3 + 2.0315 * values**5
assert values.min() > 0.6 and values.max() < 1.2


# %% [markdown]
r"""
Muon isn't meant for every parameter. A vector has only one singular value, so there's nothing to equalize, and
`torch.optim.Muon` rejects it with an error. It accepts embedding tables and output layers, since they're matrices, but
Muon's authors found that these train better with AdamW. So you need two optimizers: Muon for the matrices of the
*hidden layers*, those between the embeddings and the output layer, and AdamW for everything else.
"""

# %%
torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(96, 64), nn.Linear(64, 64), nn.Linear(64, 96)).to(device)
hidden = [model[1].weight]
muon = torch.optim.Muon(hidden, lr=0.02, weight_decay=0.0)
adamw = torch.optim.AdamW(p for p in model.parameters() if p is not hidden[0])
model(torch.arange(96, device=device)).square().mean().backward()
before = hidden[0].detach().clone()
muon.step()
adamw.step()

print(f"Muon keeps {state_bytes(muon):,} B for {hidden[0].numel():,} parameters")
assert state_bytes(muon) == 4 * hidden[0].numel()
of_gradient = torch.linalg.svdvals(hidden[0].grad)
of_step = torch.linalg.svdvals((before - hidden[0].detach()) / 0.02)
for name, values in (("the gradient", of_gradient), ("the step", of_step)):
    print(
        f"{name}: its largest singular value is {values[0] / values[32]:.1f} times the median"
    )
assert of_step[0] < 1.3 and of_step[32] > 0.5
try:
    torch.optim.Muon(model.parameters())
    raise AssertionError("it took a vector")
except ValueError as refusal:
    print(refusal)

# %% [markdown]
r"""
### Exercise 8.6 · The optimizer's work &nbsp; ★★☆ &nbsp; 10 minutes

Write `optimizer_share(shapes, tokens)`. `shapes` contains the shape of each parameter tensor of a model (at least one):
two sizes for a matrix, one for a vector, each at least 1. A step trains the model on `tokens` tokens (at least 1), and
its forward and backward passes take $6N$ FLOPs per token, where $N$ is the number of elements in all these tensors.
Return the FLOPs of the optimizer in this step, *divided by* those of the two passes, as a dict with the keys

- `"AdamW"`: 15 FLOPs for each element;
- `"Muon"`: for each matrix, only the matrix products of the five iterations described above (with the transposition;
  `[i, j]` times `[j, k]` takes $2\,i\,j\,k$ FLOPs); for each element of a vector, AdamW's 15.

Treat all matrices as if they belonged to hidden layers.
"""


# %% nbgrader={"grade": false, "grade_id": "optimizer_share", "locked": false, "schema_version": 3, "solution": true, "task": false}
def optimizer_share(shapes: Sequence[tuple[int, ...]], tokens: int) -> dict[str, float]:
    """FLOPs of the optimizer's step over those of the forward and backward passes, by optimizer."""
    ### BEGIN SOLUTION
    parameters = sum(math.prod(shape) for shape in shapes)
    adamw = 15 * parameters
    muon = 0
    for shape in shapes:
        if len(shape) == 2:
            n, m = min(shape), max(shape)
            muon += 5 * (2 * n * n * m + 2 * n * n * n + 2 * n * n * m)  # XXᵀ, AA, and (…)X
        else:
            muon += 15 * shape[0]
    passes = 6 * parameters * tokens
    return {"AdamW": adamw / passes, "Muon": muon / passes}
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_optimizer_share", "locked": true}
check("optimizer_share")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Write down the shapes of X, A and AA for an n × m matrix with n ≤ m. What are i, j and k in each product?</details>

<details><summary>Hint 2</summary>Only two sizes occur in all three products. And what does the transposition do to a matrix with more rows than columns?</details>

**Why it matters.** You may hear that an optimizer's FLOPs are negligible. Your function shows when that's true. Here it
is for one layer of Llama 3.1 8B:
"""

# %%
d, kv, ffn = 4_096, 1_024, 14_336  # lecture 06
layer_shapes = [(d, d), (d, kv), (d, kv), (d, d), (d, ffn), (d, ffn), (ffn, d), (d,), (d,)]
for tokens in (64, 8_192, 2**21):
    shares = optimizer_share(layer_shapes, tokens)
    print(f"{tokens:>9,} tokens: AdamW {shares['AdamW']:.3g}, Muon {shares['Muon']:.3g}")

assert round(optimizer_share(layer_shapes, 64)["AdamW"], 2) == 0.04
assert optimizer_share(layer_shapes, 8_192)["AdamW"] < 1e-3
assert optimizer_share(layer_shapes, 8_192)["Muon"] > 1
assert (
    optimizer_share(layer_shapes, 2**21)["Muon"]
    < 0.01
    < optimizer_share(layer_shapes, 2**20)["Muon"]
)
assert math.isclose(optimizer_share([(d, d)], 8_192)["Muon"], 5 * d / 8_192)  # 2.5

# %% [markdown]
r"""
With thousands of tokens in the batch, AdamW's work is negligible. Muon's isn't: with 8,192 tokens it exceeds that of
the two passes, and it takes a batch of two million tokens to bring the ratio below 1%. For an $n \times n$ matrix, each
of the three products of an iteration takes $2n^3$ FLOPs, which is $2n$ per parameter, so five iterations take $30\,n$.
The ratio is $30\,n / (6 \cdot \text{tokens})$, so it's small only if the batch has far more than $5\,n$ tokens.

### A small share of the work, a larger share of the time

But how much of the *time* does AdamW take? As in lecture 05, we compare its FLOPs with the bytes it moves. For each
parameter it reads four numbers ($p$, $g$, $m$, $v$), does 15 operations, and writes three numbers back. Seven numbers
are 28 bytes, so that's about half a FLOP per byte, and AdamW is memory-bound.

**Predict.** Take the chain of section 6 with 4 layers of width 512 (on a GPU, 8 of width 4,096) and a batch of 64. On
your machine, what fraction of the time of a whole step (forward, backward, and PyTorch's AdamW) does the optimizer
take? Write a number between 0 and 1. By FLOPs it would be 0.04.
"""

# %%
guess = None  # between 0 and 1

# %% tags=["timed"]
intensity = per_parameter / (7 * 4)  # FLOP per byte
assert round(intensity, 2) == 0.54

width, depth = (4_096, 8) if devices.on_gpu(device) else (512, 4)
model = chain(width, depth)
x, y = torch.randn(64, width, device=device), torch.randn(64, 1, device=device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)


def forward_and_backward() -> None:
    optimizer.zero_grad()
    squared_error(model, x, y).backward()


taken = {
    "forward and backward": timing.benchmark(forward_and_backward, device=device),
    "AdamW": timing.benchmark(lambda: optimizer.step(), device=device),
}
for name, seconds in taken.items():
    print(f"{name:>20}: {seconds}")
share = taken["AdamW"].median / sum(seconds.median for seconds in taken.values())
reconcile("the optimizer's share", guess, share, "of the time")

llama_parameters = FACTS["Llama 3.1 8B parameters"].value
llama_step = 28 * llama_parameters / hardware.ACCELERATORS["H100 SXM"].bandwidth  # seconds
print(f"AdamW for 8 billion parameters at an H100's bandwidth: {readable(llama_step, 's')}")
assert round(llama_step, 3) == 0.067
passes = 6 * llama_parameters * 8_192 / (0.4 * FACTS["H100 SXM bfloat16 peak"].value)  # seconds
assert round(passes, 1) == 1.0

# %% [markdown]
r"""
Temporary tensors, such as the root and the quotient, take time too, since each is written and then read back. (With
`fused=True`, AdamW is a single operation that reads and writes everything once.) With more tokens in the batch the
share shrinks, since the optimizer's time stays the same. For Llama 3.1 8B on an H100 (if it
fit), AdamW's step in float32 would take at least 67 ms, because the bandwidth limits it. The forward and backward
passes of 8,192 tokens, with $6N$ FLOPs per token at an MFU of 0.4 in bfloat16, would take 1.0 s.

*Try it yourself:* use `fused=True` in the cell above, and then a batch of 4,096.
"""

# %% [markdown]
r"""
## 8 · A Transformer, to the byte

For a Transformer we do the same accounting, only with more entries: we go through the operations and ask what each of
them keeps. Here's a small language model, with attention written out so that you can see every operation.
"""


# %%
class Block(nn.Module):
    """One layer of the Transformer: causal attention, then feed-forward, each after a norm."""

    future: Tensor

    def __init__(self, d: int, heads: int, context: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3 * d, bias=False)
        self.out = nn.Linear(d, d, bias=False)
        self.up = nn.Linear(d, 4 * d, bias=False)
        self.down = nn.Linear(4 * d, d, bias=False)
        self.register_buffer("future", torch.ones(context, context, dtype=torch.bool).triu(1))

    def forward(self, x: Float[Tensor, "B T d"]) -> Float[Tensor, "B T d"]:
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in self.qkv(self.norm_1(x)).chunk(3, dim=-1)
        )
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        weights = scores.masked_fill(self.future, -math.inf).softmax(dim=-1)
        x = x + self.out((weights @ v).transpose(1, 2).flatten(2))
        return x + self.down(nn.functional.gelu(self.up(self.norm_2(x))))


class Transformer(nn.Module):
    """A language model: embeddings of tokens and positions, blocks, a norm, a head."""

    def __init__(self, vocab: int, context: int, d: int, heads: int, layers: int) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab, d), nn.Embedding(context, d)
        self.blocks = nn.Sequential(*(Block(d, heads, context) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, vocab, bias=False)

    def forward(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T vocab"]:
        return self.head(self.norm(self.blocks(self.tokens(ids) + self.positions.weight)))


def next_token_loss(model: nn.Module, ids: Tensor, targets: Tensor) -> Tensor:
    """Mean cross-entropy of the next token."""
    return nn.functional.cross_entropy(model(ids).flatten(0, 1), targets.flatten())


# %% [markdown]
r"""
*Parameters.* With a vocabulary of $V$ tokens, a context of $T$ and a width of $d$, the two embedding tables and the
head have $2 V d + T d$ parameters. Each block has $d \cdot 3d + d \cdot d + d \cdot 4d + 4d \cdot d = 12 d^2$, and two
norms of $2d$ each. The last norm has $2d$.

*Activations*, for $N = B \cdot T$ tokens ($N$ counts tokens here, not parameters), $h$ heads, and $L$ blocks. All
tensors are float32.

| kept in each block | needed by | numbers |
|---|---|---|
| the block's input; the sum after attention | the two norms | $2 N d$ |
| a mean and a scale for each token | the two norms | $4 N$ |
| outputs of the two norms | `qkv`, `up` | $2 N d$ |
| queries, keys, values | the two products of attention | $3 N d$ |
| attention weights | softmax, and the second product | $B h T^2$ |
| the result of attention | `out` | $N d$ |
| before and after GELU | GELU, `down` | $8 N d$ |
| *total* | | $16 N d + 4 N + B h T^2$ |

Outside the blocks, a few tensors are kept only once: the last norm's input and statistics, $N d + 2N$, and the head's
input, $N d$. The loss, *cross-entropy*, is minus the logarithm of the probability of the correct token, averaged over
all tokens. For each token it keeps the logarithm of the probability of *each entry of the vocabulary*, which is $N V$
numbers in all.
It also keeps one more number, the count of tokens by which the sum of the losses is divided. Masks (constants),
embedding tables (parameters) and token ids (data) don't count.
"""


# %%
def transformer_numbers(vocab: int, context: int, d: int, heads: int, layers: int) -> int:
    """Parameters of the Transformer."""
    return (2 * vocab + context) * d + layers * (12 * d * d + 4 * d) + 2 * d


def transformer_kept(
    batch: int, vocab: int, context: int, d: int, heads: int, layers: int
) -> dict[str, int]:
    """Bytes of activations of the Transformer, by source."""
    n = batch * context
    return {
        "vectors in the blocks": 4 * layers * 16 * n * d,
        "attention's weights": 4 * layers * batch * heads * context**2,
        "statistics of norms": 4 * (layers * 4 * n + 2 * n),
        "last norm and head": 4 * 2 * n * d,
        "the loss": 4 * (n * vocab + 1),
    }


batch = 8
shape = dict(vocab=512, context=64, d=64, heads=4, layers=2)
if devices.on_gpu(device):
    batch, shape = 16, dict(vocab=4_096, context=256, d=256, heads=8, layers=4)

model = Transformer(**shape).to(device)
count = sum(p.numel() for p in model.parameters())
assert count == transformer_numbers(**shape)

generator = torch.Generator().manual_seed(0)
starts = torch.randint(shape["vocab"], (batch, 1), generator=generator)
steps = 7 * torch.arange(shape["context"] + 1)  # each token is the one before it plus 7
text = (starts + steps) % shape["vocab"]
ids, targets = (part.contiguous().to(device) for part in (text[:, :-1], text[:, 1:]))

# %% [markdown]
r"""
The next cell lists what autograd keeps, by source. Look at *the loss*.
"""

# %% tags=["item-84"]
parts = transformer_kept(batch, **shape)
kept_in_all = sum(parts.values())
for name, size in parts.items():
    print(f"{name:>22}: {size:>13,} B, {size / kept_in_all:5.1%}")

assert saved_bytes(next_token_loss, model, ids, targets) == kept_in_all  # to the byte
assert parts["the loss"] > 0.1 * kept_in_all
vocab, d, heads, context = (
    int(FACTS[f"GPT-2 small {what}"].value)
    for what in ("vocabulary", "width", "heads", "context")
)
assert (vocab, d, heads, context) == (50_257, 768, 12, 1_024)
gpt2_block = 16 * d + 4 + heads * context  # numbers per token: vectors, statistics, attention
assert round(vocab / gpt2_block, 1) == 2.0

# %% [markdown]
r"""
The total is right to the byte. (The smallest GPT-2 has $V = 50{,}257$, $d = 768$, 12 heads and $T = 1{,}024$. There the
loss alone keeps as much as two whole blocks.)

We can count FLOPs in the same way: 6 for each token and each weight *in a matrix product* (rows of the two tables are
only looked up), and $12\,L\,d\,T$ for each token in attention (lecture 06).
"""

# %% tags=["item-84"]
work = count_flops(lambda: next_token_loss(model, ids, targets).backward())
matrices = sum(p.numel() for p in model.parameters() if p.dim() == 2)
looked_up = model.tokens.weight.numel() + model.positions.weight.numel()
attention = 12 * shape["layers"] * shape["d"] * shape["context"]
assert work == ids.numel() * (6 * (matrices - looked_up) + attention)

slopes = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
assert (slopes.abs() < 1e-4).float().mean() > 0.2  # section 3: how small gradients are

# %% [markdown]
r"""
The count is right to the FLOP. Now we train the model with *your* AdamW: we predict all four kinds of memory, run the
step, and measure them.
"""

# %%
model.zero_grad()
trained = Transformer(**shape).to(device)
next_token_loss(trained, ids, targets).backward()  # warm up
del trained

predicted = {
    "parameters": 4 * count,
    "gradients": 4 * count,
    "optimizer state": 8 * count,
    "activations": kept_in_all,
}
masks = shape["layers"] * shape["context"] ** 2  # constants: one byte for each True or False
torch.manual_seed(0)
with track(device) as memory:
    model = Transformer(**shape).to(device)
    optimizer = AdamW(model.parameters(), lr=3e-3)
    held = [memory.live]
    loss = next_token_loss(model, ids, targets)
    first_loss = loss.item()
    held.append(memory.live)
    loss.backward()
    del loss
    held.append(memory.live)
    optimizer.step()
    held.append(memory.live)

built, forward, backward, stepped = held
measured = {
    "parameters": built - masks,
    "gradients": backward - built,
    "optimizer state": stepped - backward,
    "activations": forward - built - 4,  # without the loss itself
}
for kind, size in predicted.items():
    print(f"{kind:>16}: {size:>13,} B predicted, {measured[kind]:>13,} B measured")
assert measured == predicted
assert state_bytes(optimizer) == predicted["optimizer state"]

finding = f"One step of a Transformer with your AdamW: {format_bytes(sum(predicted.values()))}, predicted to the byte"
plots.show(
    plots.predicted_vs_measured(
        [(kind, predicted[kind], measured[kind], "B") for kind in predicted], title=finding
    ),
    alt=f"{finding}. Parameters, gradients, optimizer state and activations, predicted and measured: in each row, the "
    "two marks coincide.",
)

# %% [markdown]
r"""
All four predictions are exact. And the model learns quickly, because the text follows one simple rule: each token is
the one before it plus 7. (A model that knows nothing, and gives every token a probability of $1/V$, would have a loss
of $\ln V$.)
"""

# %%
for _ in range(40):
    optimizer.zero_grad()
    loss = next_token_loss(model, ids, targets)
    loss.backward()
    optimizer.step()
last_loss = loss.item()
print(
    f"loss {first_loss:.2f} at first, {last_loss:.2f} after 40 steps; ln V is {math.log(shape['vocab']):.2f}"
)
assert last_loss < first_loss / 3

# %% [markdown]
r"""
*Try it yourself:* in `Block`, replace the scores, mask, softmax and weighted sum with
`nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)`. By how much do the bytes that autograd keeps
(`saved_bytes`) shrink?
"""

# %% [markdown]
r"""
## 9 · Does it fit? (optional)

Sections 5 to 8 added up what a step needs. But does it need all of this at the same time?

### The sum isn't the peak

A step has to fit at its *peak*, the moment when it holds the most memory. The peak can be lower than the sum of the
four kinds, since activations disappear while gradients appear. It can also be higher, since an optimizer's formula
creates temporary tensors (section 7). How many depends on the implementation; PyTorch implements AdamW in three ways.
The loop over the parameters has temporaries for one tensor at a time. `foreach` processes all tensors together, in fewer and
larger operations, with temporaries for all of them. `fused` is a single operation without temporaries. Here's how much
extra memory each needs for a step of a model with 8 matrices of the same size:
"""

# %%
side, count = 256, 8
extra = {}
forms: dict[str, dict[str, bool]] = {
    "loop": {"foreach": False},
    "foreach": {"foreach": True},
    "fused": {"fused": True},
}
for form, settings in forms.items():
    parameters = [nn.Parameter(torch.ones(side, side, device=device)) for _ in range(count)]
    for p in parameters:
        p.grad = torch.ones_like(p)
    optimizer = torch.optim.AdamW(parameters, **settings)
    optimizer.step()  # makes the state
    with track(device) as memory:
        optimizer.step()
    extra[form] = memory.peak / (4 * side**2)
    print(f"{form:>8}: {extra[form]:.2f} × one matrix of extra memory")

assert extra["fused"] < 0.01 and 1 <= extra["loop"] < count <= extra["foreach"]

# %% [markdown]
r"""
On a GPU `foreach` is the default, so a model that barely fits may run out of memory in its first `optimizer.step()`,
after a forward and a backward pass that worked. Then try `fused=True`, or the loop (`foreach=False`). And where's the
peak of a whole step? Here's the chain of section 6 again, for two steps:
"""


# %%
def peak_against_sum(batch: int, width: int, layers: int, form: str) -> tuple[float, str]:
    """The peak of two training steps of the chain, relative to the sum of the four kinds, and where it is."""
    x, y = torch.randn(batch, width, device=device), torch.randn(batch, 1, device=device)
    squared_error(chain(width, layers), x, y).backward()  # warm up
    so_far = []
    with track(device) as memory:
        model = chain(width, layers)
        optimizer = torch.optim.AdamW(model.parameters(), **forms[form])
        for _ in range(2):
            optimizer.zero_grad()
            loss = squared_error(model, x, y)
            so_far.append((memory.peak, "forward"))
            loss.backward()
            del loss
            so_far.append((memory.peak, "backward"))
            optimizer.step()
            so_far.append((memory.peak, "step"))
    where = next(part for peak, part in so_far if peak == memory.peak)
    return memory.peak / sum(training_bytes(batch, width, layers, 2, 4).values()), where


peaks = {
    (batch, form): peak_against_sum(batch, 128, 3, form)
    for batch in (64, 4_096)
    for form in ("fused", "foreach")
}
for (batch, form), (times, where) in peaks.items():
    print(f"batch {batch:>5,}, {form:>7}: the peak is {times:.2f} × the sum, in {where}")

assert peaks[64, "fused"][0] < 1 < peaks[64, "foreach"][0]
assert peaks[64, "fused"][1] == "backward" and peaks[64, "foreach"][1] == "step"
for form in ("fused", "foreach"):
    assert peaks[4_096, form][0] > 1 and peaks[4_096, form][1] == "backward"

# %% [markdown]
r"""
With a small batch, the implementation of AdamW determines where the peak is. With `foreach`, the temporaries put it in
`step()`, above the sum of the four kinds; with `fused` it's in the backward pass, below the sum. With a large batch the
peak is in the backward pass in both cases, since most of the memory is activations, and they're gone by `step()`. It's
above the sum, because the backward pass also holds the gradients *of activations*, which belong to none of the four
kinds. So budget for the sum, and leave some room.

*Try it yourself:* with `foreach`, at which batch size does the peak move from `step()` to the backward pass?
"""

# %% [markdown]
r"""
### A model that you can't run

The formulas of section 8 work at any size. Take the shape of GPT-3: 96 layers, $d = 12{,}288$,
96 heads, a vocabulary of 50,257, and one sequence of 2,048 tokens, all in float32 and with attention written out as
here.

**Predict.** Take the parameters, gradients and optimizer state (AdamW) together. What's the ratio of their bytes to the
bytes of the activations of this *one* sequence? (If you think they're smaller, give a number below 1.)
"""

# %%
guess = None  # times as large

# %%
names = dict(vocab="vocabulary", context="context", d="width", heads="heads", layers="layers")
gpt3 = {name: int(FACTS[f"GPT-3 {what}"].value) for name, what in names.items()}
assert gpt3 == dict(vocab=50_257, context=2_048, d=12_288, heads=96, layers=96)
fixed = 16 * transformer_numbers(**gpt3)
flowing = sum(transformer_kept(1, **gpt3).values())
print(f"parameters, gradients and state: {format_bytes(fixed)}")
print(f"activations of one sequence: {format_bytes(flowing)}")
reconcile(
    "parameters, gradients and state",
    guess,
    fixed / flowing,
    "times the activations of one sequence",
)

for context in (2_048, 32_768):
    kept_there = transformer_kept(1, **gpt3 | {"context": context})
    share = kept_there["attention's weights"] / sum(kept_there.values())
    print(f"context {context:>6,}: attention weights are {share:.0%} of the activations")
    assert round(share, 2) == {2_048: 0.5, 32_768: 0.94}[context]

assert round(transformer_numbers(**gpt3) / 1e9) == 175
assert round(fixed / 1e12, 1) == 2.8 and round(flowing / 1e9) == 310
assert round(fixed / flowing) == 9
# cards of 80 GB, for the fixed part alone
assert math.ceil(fixed / FACTS["H100 SXM memory"].value) == 36

# %% [markdown]
r"""
The parameters, gradients and optimizer state don't depend on the batch; they fill 35 cards of 80 GB and reach into a
36th. The activations grow with each sequence. Half of them are attention weights, the $T^2$ term; with a sequence of
32,768 tokens, nearly all of them would be. That's why fused attention kernels, which do all of attention in one
operation, don't keep them but compute them again in the backward pass, as *activation checkpointing* does with whole
layers (lecture 11).
"""

# %% [markdown]
r"""
### Optimizers that store less

What if a model doesn't fit because of AdamW's state? Here are two optimizers that keep less.

- **Lion** (Chen and others, 2023) keeps only a first moment, mixes it with the new gradient, and takes the *sign*. Each
  parameter moves by exactly lr (or not at all, if the mix is 0), so Lion doesn't need a second moment to determine how
  far to move. Its state is half of AdamW's.
- **Adafactor** (Shazeer and Stern, 2018) has no first moment, and keeps of a matrix's second moment only *the mean of
  each row and of each column*. For an $n \times k$ matrix that's $n + k$ numbers instead of $n \cdot k$.
  From the row means $r_i$, the column means $c_j$, and the mean $\bar r$ of the row means, it estimates the entry in
  row $i$ and column $j$ as $r_i c_j / \bar r$. This is exact if all rows of the matrix are multiples of a single row
  (its *rank* is then 1); otherwise it's an estimate that has the right row and column means.
"""


# %%
class Lion(torch.optim.Optimizer):
    """Keeps a first moment; moves by the sign of its mix with the gradient."""

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-4, betas: tuple[float, float] = (0.9, 0.99)
    ) -> None:
        super().__init__(params, defaults={"lr": lr, "betas": betas})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        """One step."""
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                m = self.state[p].setdefault("exp_avg", torch.zeros_like(p))
                p -= group["lr"] * torch.sign(beta1 * m + (1 - beta1) * p.grad)
                m.mul_(beta2).add_(p.grad, alpha=1 - beta2)


w = nn.Parameter(torch.zeros(3))
w.grad = torch.tensor([1_000.0, -0.001, 0.0])
Lion([w], lr=0.5).step()
assert w.tolist() == [-0.5, 0.5, 0.0]
assert kept_for(lambda p: Lion(p), rows, columns) == 4 * n

torch.manual_seed(0)
squares = torch.randn(rows, columns, dtype=torch.float64) ** 2
r, c = squares.mean(dim=1), squares.mean(dim=0)  # what Adafactor keeps
guessed = torch.outer(r, c) / r.mean()
assert torch.allclose(guessed.mean(dim=1), r) and torch.allclose(guessed.mean(dim=0), c)
assert not torch.allclose(guessed, squares)
rank_one = torch.outer(r, c)
kept_r, kept_c = rank_one.mean(dim=1), rank_one.mean(dim=0)
assert torch.allclose(torch.outer(kept_r, kept_c) / kept_r.mean(), rank_one)  # exact

factored = kept_for(lambda p: torch.optim.Adafactor(p), rows, columns)
assert factored == 4 * (rows + columns) + 4 == 6_148
print(f"for {n:,} parameters: AdamW keeps {mine_keeps:,} B, Adafactor {factored:,} B")

# %% [markdown]
r"""
For section 5's 1,024 × 512 matrix, Adafactor keeps 6,148 bytes, compared with AdamW's 4 million. (A vector can't be
factored, so for biases and norms Adafactor keeps the full second moment.)

*Try it yourself:* run Lion in the narrow valley, `go_down(lambda p: Lion(p, lr=0.1))`. How far does it move in each
step, at the start and near the minimum?

### Exercise 8.7 · How much memory is left? (optional) &nbsp; ★☆☆ &nbsp; 8 minutes

Write `room_left(shapes, memory)`. For each of six optimizers, it returns how many of the `memory` bytes are left for
activations when a model whose parameters have these shapes is trained with parameters, gradients and state in float32.
Ignore step counters, which take a few bytes per tensor. If there isn't enough memory, the number is negative: that many
bytes are missing. Return a dict with the keys

- `"SGD"`: no state; `"momentum"`, `"AdaGrad"` and `"Lion"`: one number per parameter; `"AdamW"`: two;
- `"Adafactor"`: for a matrix, one per row and one per column; for a vector, one for each of its numbers.

Each shape belongs to a matrix or a vector: it has two sizes or one, and each is at least 1. `shapes` may be empty.
"""


# %% nbgrader={"grade": false, "grade_id": "room_left", "locked": false, "schema_version": 3, "solution": true, "task": false}
def room_left(shapes: Sequence[tuple[int, ...]], memory: int) -> dict[str, int]:
    """Bytes left for activations, by optimizer, all in float32."""
    ### BEGIN SOLUTION
    parameters = sum(math.prod(shape) for shape in shapes)
    factored = sum(sum(shape) for shape in shapes)  # rows + columns; of a vector, all
    kept = {
        "SGD": 0,
        "momentum": parameters,
        "AdaGrad": parameters,
        "Lion": parameters,
        "AdamW": 2 * parameters,
        "Adafactor": factored,
    }
    return {name: memory - 4 * (2 * parameters + state) for name, state in kept.items()}
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_room_left", "locked": true}
check("room_left")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Add up two things over all shapes: the parameters, and what Adafactor keeps. <code>math.prod</code> multiplies the sizes of a shape.</details>
<details><summary>Hint 2</summary>What does Adafactor keep for a matrix of 2 × 3? For a vector of 3? Can one expression cover both?</details>

**Why it matters.** If nothing is left for activations, no batch is small enough. Find that out before you rent a card.

### Llama 3.1 8B, on one card and on eight

Let's apply your `room_left` to Llama 3.1 8B (its shapes are in lecture 06), in float32, on an 80 GB card and on a 141
GB card:
"""

# %%
vocab, d = 128_256, 4_096
llama = layer_shapes * 32 + [(vocab, d), (d, vocab), (d,)]  # layer_shapes: section 7
n = sum(math.prod(shape) for shape in llama)
assert n == llama_parameters == 8_030_261_248

h100, h200 = (hardware.ACCELERATORS[name].memory_bytes or 0 for name in ("H100 SXM", "H200"))
left = {"80 GB": room_left(llama, h100), "141 GB": room_left(llama, h200)}
for name in left["80 GB"]:
    rooms = ", ".join(f"{readable(left[card][name], 'B'):>8} of {card}" for card in left)
    print(f"{name:>9}: left {rooms}")
fits = [name for name, room in left["80 GB"].items() if room > 0]
print(f"on 80 GB, only {len(fits)} of the six leave any memory")

assert set(fits) == {"SGD", "Adafactor"}
assert all(room > 0 for room in left["141 GB"].values())
assert round(left["141 GB"]["AdamW"] / 1e9, 1) == 12.5
assert round((h100 - left["80 GB"]["AdamW"]) / n) == 16  # bytes per parameter

# %%
by_name = dict(sorted(left["80 GB"].items(), key=lambda item: -item[1]))
bars = {
    name: {
        "parameters": 4 * n,
        "gradients": 4 * n,
        "optimizer state": h100 - room - 8 * n,
    }
    for name, room in by_name.items()
}
finding = (
    "Llama 3.1 8B in float32: on an H100 only SGD and Adafactor leave memory for activations"
)
plots.show(
    plots.memory_stacks(
        bars, limits={"H100: 80 GB": h100, "H200: 141 GB": h200}, title=finding
    ),
    alt=f"{finding}. Bars of parameters, gradients and optimizer state, 32 GB each for the first two. SGD and "
    "Adafactor need 64 GB, momentum, AdaGrad and Lion 96 GB, AdamW 128 GB; an H200 with 141 GB holds all.",
)

# %% [markdown]
r"""
On the 80 GB card, only SGD and Adafactor leave any memory for activations. The last bar, AdamW's, is lecture 00's rule
of thumb at work: 16 bytes per parameter in float32, 4 + 4 + 8.

And if you have eight cards? The explorer below has two more ways to save memory, which later lectures explain.
*Sharding* splits optimizer state, gradients or parameters among the cards, so that none has to hold all of them
(lecture 12). *Recomputing* layers is the activation checkpointing mentioned above (lecture 11).

The explorer starts with eight H100s, each with all of Llama 3.1 8B and a sequence of 8,192 tokens. A number in a layer
takes two bytes there, one in the loss four, and attention is fused. That doesn't fit. Pin these settings, so that you
can compare others with them. If only each layer's input is kept and the rest recomputed, what is the largest part of
the remaining activations (section 8)? Decide, and then turn on *recompute layers*. It still doesn't fit, so turn that
off again. Which other *single* control makes it fit? (A larger card doesn't count.)
"""

# %%
from course_utils.explorers import memory_budget

memory_budget.explore("Llama 3.1 8B", "H100 SXM", batch=1, context=8_192, cards=8)

# %% [markdown]
r"""
## Takeaways

**Mechanics.** An optimizer is two loops, over groups and parameters, around a formula. SGD: $p - \text{lr} \cdot g$.
AdaGrad divides by the root of the *sum* of squares; RMSProp divides by the root of a running average; Adam also
averages the gradient and corrects both moments; AdamW adds decoupled weight decay. A parameter without a gradient is
skipped. In float32, each parameter takes 4 bytes, its gradient 4, and its state 0 (SGD), 4 (momentum, AdaGrad, RMSProp,
Muon, Lion), or 8 (AdamW). For activations, ask what each operation's backward pass needs.

**Mindset.** Predict the memory first, by kind, to the byte; then measure it. If the two differ by 4 bytes per tensor,
suspect a counter; if by a multiple of the batch size, the loss. When you copy an optimizer's formula, check
$\varepsilon$, the bias correction, the weight decay, and whether it sums or averages.

**Intuitions.** In float32, AdamW's state is twice as large as the model. With momentum, the number of steps grows with
the square root of the condition number. AdamW takes almost no FLOPs but a noticeable amount of time. Muon takes $30\,n$
FLOPs per parameter of an $n \times n$ matrix, which is negligible only if the batch has far more than $5\,n$ tokens.
With a long context, the attention weights, the $T^2$ term, dominate the activations, unless a fused kernel recomputes
them.

Next: [09 · The training loop](../09_training_loop/09_training_loop.ipynb). You have a model, its gradients and an
optimizer. Now you need data, a loop around them, and a checkpoint that loses nothing.
"""

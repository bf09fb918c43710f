# %% [markdown]
r"""
# 08 · Optimizers

[← 07 · Models and initialization](../07_models_and_init/07_models_and_init.ipynb) · [09 · The training loop →](../09_training_loop/09_training_loop.ipynb)

> **What is done with a gradient, and what has to be remembered to do it?**

Lecture 06 ended with a gradient for each parameter. An *optimizer* turns gradients into changes of the parameters, and
all but the simplest of them remember something: a sum, an average, two averages. What they remember takes memory, often
more than the model itself. In this lecture you write three of them, see in a picture what their memory buys, and
account for it. By the end you will have predicted every byte that a training step holds, in four kinds, for a small
Transformer that is trained by your own AdamW, and found the same number in memory.

How to read: run the cells in order (<kbd>Shift</kbd> + <kbd>Enter</kbd>). Where a cell says *predict*, write your
number first; being wrong is how you find out what to look at. The cell below each exercise checks your answer and names
the likely mistake; *Validate* in the toolbar runs them all.
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
## 1 · The step

A gradient says, for each parameter, how fast the loss grows when that parameter grows. So go the other way:

$$p \;\leftarrow\; p - \text{lr} \cdot g$$

where $g$ is the gradient and lr, the **learning rate**, says how far. That is *gradient descent*. When the gradient
comes from a batch and not from all data, it is *stochastic*: **SGD**.

How far is too far? Take the model of lecture 06: $\text{loss} = \tfrac12 (x \cdot w - 5)^2$ with $x = (1, 2, 3)$ and $w
= (1, 1, 1)$. The error is 1 and the gradient is the error times $x$.

**Predict.** There is a learning rate with which *one* step brings the loss to exactly 0. Which one?
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


reconcile("the learning rate that gets there at once", guess, 1 / 14, "")

assert loss_after_one_step(1 / 14) < 1e-30
assert math.isclose(loss_after_one_step(2 / 14), 0.5)  # as far on the other side
assert loss_after_one_step(3 / 14) > loss_after_one_step(0) == 0.5  # worse than doing nothing

# %% [markdown]
r"""
A step of lr changes $x \cdot w$ by $-\text{lr} \cdot \text{error} \cdot (x \cdot x)$, and $x \cdot x = 14$. So each
step multiplies the error by $1 - 14\,\text{lr}$: one step to the goal at $\tfrac{1}{14}$, and beyond $\tfrac{2}{14}$
each step makes it worse. The 14 is the **curvature** of the loss in the direction of the gradient. *The largest
learning rate that works is 2 divided by the curvature.* Keep that for section 2.

### What PyTorch's optimizers are made of

All of them are a `torch.optim.Optimizer`, with four things to know:

- `param_groups`: a list of dicts. Each has its `"params"` and its own settings, such as `"lr"`. Different groups may
  have different ones, and they may *change between steps*: that is what a learning rate schedule does.
- `state`: what it remembers, a dict for each parameter. SGD: nothing.
- `step()`: changes each parameter *in place*, from its `.grad`.
- `zero_grad()`: gets rid of the gradients, since the next `backward()` would add to them (lecture 06).
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

`zero_grad()` can do either: set each `.grad` to `None` (`set_to_none=True`, the default), or keep the tensors and fill
them with zeros. The name says zero, so is it the same? Twice no. `None` gives the memory back, until the next backward
pass needs it. And an optimizer *skips* a parameter without gradient, where one with a gradient of zero is updated:
weight decay (a pull toward zero, section 4) still shrinks it, and what was remembered from earlier steps still moves
it.

**Predict.** The next cell holds a matrix of 512 × 512 in float32, and its gradient. By how many bytes does memory
shrink with `set_to_none=True`?
"""

# %%
guess = None  # bytes

# %% tags=["item-81", "error-9"]
with track(device) as memory:
    matrix = nn.Parameter(torch.ones(512, 512, device=device))
    optimizer = torch.optim.SGD([matrix], lr=0.1, weight_decay=0.5)
    (matrix.sum() * 0).backward()  # a gradient, and it is zero everywhere
    held = memory.live

    optimizer.zero_grad(set_to_none=False)
    assert matrix.grad is not None and memory.live == held  # zeros take room, too
    optimizer.step()
    assert torch.allclose(matrix, torch.tensor(0.95, device=device))  # shrunk by 0.1 · 0.5

    optimizer.zero_grad(set_to_none=True)
    assert matrix.grad is None
    freed = held - memory.live
    before = matrix.detach().clone()
    optimizer.step()
    assert torch.equal(matrix, before)  # skipped
reconcile("freed by set_to_none=True", guess, freed, "B")

assert freed == 4 * 512 * 512

# %% [markdown]
r"""
Parameters without a gradient are no rare case: frozen layers, an expert that no token was sent to, a head that this
batch did not use. An optimizer of your own has to skip them.

*Try it yourself:* in a cell of your own, give a parameter to `torch.optim.SGD` with `momentum=0.9`, and take a step
with a gradient of ones. How far does it move in a second step, after `zero_grad` of the one and of the other kind?

### Exercise 8.1 · SGD &nbsp; ★☆☆ &nbsp; 10 minutes

Write `step` of `SGD`: for each group and each of its parameters that has a gradient, subtract the *group's current*
learning rate times the gradient, also where the parameter has been frozen since. A parameter whose `.grad` is `None` is
left alone. Change the parameter itself, whatever its strides, in the memory where it lies (the model holds the same
tensor), and nothing else: the gradient is still needed. Keep nothing in `self.state`. Outside of `torch.no_grad()`
PyTorch would try to record what you do. (Parameters are `float32` or `float64`, here and in the next two exercises.)
"""


# %% nbgrader={"grade": false, "grade_id": "SGD", "locked": false, "schema_version": 3, "solution": true, "task": false}
class SGD(torch.optim.Optimizer):
    """Gradient descent: p ← p − lr · gradient."""

    def __init__(self, params: Iterable[Any], lr: float = 1e-3) -> None:
        super().__init__(params, defaults={"lr": lr})

    def step(self, closure: Any = None) -> None:
        """One step. (closure is for optimizers of another kind: here it is always None.)"""
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
<details><summary>Hint 1</summary>Two loops: over <code>self.param_groups</code>, and in each over <code>group["params"]</code>.</details>
<details><summary>Hint 2</summary><code>p -= …</code> changes p itself. It has to stand inside <code>with torch.no_grad():</code>.</details>

**Why it matters.** Every optimizer is these two loops around another formula. From here on only the formula changes.

## 2 · The narrow valley

Real losses have many directions, and curve more in some than in others. The simplest picture of it has two parameters
and two curvatures:

$$\text{loss} = \tfrac12 \left( 1 \cdot p_1^2 + 100 \cdot p_2^2 \right)$$

a long and narrow valley, a hundred times more curved across than along. The learning rate has to suit *both*. Across,
anything from $2/100$ on diverges (section 1). Along, each step of that size gets only one fiftieth nearer. The best
compromise is $2 / (1 + 100)$. We start at $(-9, 2)$ and count the steps until the loss is a ten-thousandth of what it
was: a hundredth of the distance.

**Predict.** How many steps does gradient descent take with that learning rate?
"""

# %%
guess = None  # steps


# %%
FLAT, STEEP = 1.0, 100.0  # the two curvatures
START = (-9.0, 2.0)
GIVE_UP = 2_000
Path = list[tuple[float, float]]


def turn(point: tuple[float, float], angle: float) -> tuple[float, float]:
    """A point turned around the origin."""
    c, s = math.cos(angle), math.sin(angle)
    return c * point[0] - s * point[1], s * point[0] + c * point[1]


def go_down(
    make: Callable[[list[nn.Parameter]], torch.optim.Optimizer],
    angle: float = 0.0,
) -> Path:
    """The path down a valley at some angle, until the loss is a ten-thousandth of what it was."""
    c, s = math.cos(angle), math.sin(angle)
    axes = torch.tensor([[c, s], [-s, c]], dtype=torch.float64)  # along, across
    curvatures = torch.tensor([FLAT, STEEP], dtype=torch.float64)
    p = nn.Parameter(torch.tensor(turn(START, angle), dtype=torch.float64))
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
assert plain[1][1] < 0 < plain[2][1]  # across, it jumps from one slope to the other and back
assert len(go_down(lambda p: SGD(p, lr=2.1 / STEEP))) == GIVE_UP  # too far: it never gets there

# %% [markdown]
r"""
In each step the distance shrinks to $99/101$ of what it was, in both directions: along the valley because the steps are
short, across because they overshoot. The number that decides is the ratio of the two curvatures, the **condition
number**, and gradient descent needs steps in proportion to it.

**Momentum** remembers. It keeps a running sum $m$ of the gradients, in which older ones fade, and follows that:

$$m \leftarrow \mu\, m + g \qquad\qquad p \leftarrow p - \text{lr} \cdot m$$

Across the valley the gradient changes its sign in every step, and the sum cancels. Along the valley it points the same
way each time, and the sum builds up, to $1/(1-\mu)$ times a single gradient. It costs one number for each parameter.
"""


# %% tags=["item-80"]
def momentum_direction(g: Tensor, memory: dict[str, Tensor], mu: float) -> Tensor:
    """Where momentum goes, given a gradient and what it remembers."""
    memory["m"] = mu * memory.get("m", torch.zeros_like(g)) + g
    return memory["m"]


memory_of: dict[str, Tensor] = {}
for _ in range(200):
    direction = momentum_direction(torch.tensor(1.0), memory_of, mu=0.9)
assert math.isclose(direction.item(), 1 / (1 - 0.9), rel_tol=1e-5)  # it builds up, ten-fold

memory_of = {}
for k in range(200):
    direction = momentum_direction(torch.tensor((-1.0) ** k), memory_of, mu=0.9)
assert math.isclose(abs(direction.item()), 1 / (1 + 0.9), rel_tol=1e-5)  # it cancels, to half

# %% [markdown]
r"""
For a long walk down a valley the best settings are known (Polyak, 1964). With $\kappa$ for the condition number: $\mu =
\big(\tfrac{\sqrt\kappa - 1}{\sqrt\kappa + 1}\big)^2$, and $\text{lr} = 4 / (\sqrt{1} + \sqrt{100})^2$.

**Predict.** How many times fewer steps does it take than plain gradient descent?
"""

# %%
guess = None  # times fewer

# %%
root = math.sqrt(STEEP / FLAT)
best_mu = ((root - 1) / (root + 1)) ** 2
best_lr = 4 / (math.sqrt(FLAT) + math.sqrt(STEEP)) ** 2
with_momentum = go_down(lambda p: torch.optim.SGD(p, lr=best_lr, momentum=best_mu))
momentum_steps = len(with_momentum) - 1
print(f"momentum {best_mu:.2f}, learning rate {best_lr:.3f}: {momentum_steps} steps")
reconcile("plain against momentum", guess, plain_steps / momentum_steps, "times")

assert plain_steps > 5 * momentum_steps

# PyTorch's momentum is the formula above.
p, memory_of = torch.tensor(START, dtype=torch.float64), {}
for point in with_momentum[:10]:
    assert torch.allclose(p, torch.tensor(point, dtype=torch.float64))
    slopes = p * torch.tensor([FLAT, STEEP], dtype=torch.float64)
    p = p - best_lr * momentum_direction(slopes, memory_of, best_mu)

# %% [markdown]
r"""
Five times fewer, and the harder the problem the more: in the long run momentum needs steps in proportion to
$\sqrt\kappa$, not $\kappa$. (It is less than the ten-fold of $\sqrt{100}$ here, since the walk is short: momentum first
has to build up.)

*Try it yourself:* in a cell of your own, set `STEEP = 400.0`, compute the best settings anew, and count again. How many
times fewer steps is it then? (Set it back to 100.)
"""

# %% [markdown]
r"""
## 3 · A learning rate for each parameter

Momentum remembers which way. **AdaGrad** (Duchi, Hazan and Singer, 2011) remembers *how much*: for each parameter it
adds up the squares of all gradients so far, and divides by the root of that sum.

$$s \leftarrow s + g^2 \qquad\qquad p \leftarrow p - \text{lr} \cdot \frac{g}{\sqrt{s} + \varepsilon}$$

All of it elementwise, each parameter for itself. Where gradients are large, steps become small, and a parameter that
rarely gets a gradient takes large steps when it does. $\varepsilon$ is a tiny number against dividing by zero.

> **Find the mistake.** A retelling of this says: "AdaGrad divides by the root of the *average* of the squared
> gradients." Its own code says `g2 += grad**2`. Let all gradients be 1. How long is the hundredth step with a sum, and
> how long with an average? Which of the two ever slows down? Say it before you run the next cell.
"""

# %% tags=["error-9"]
summed, averaged = 0.0, 0.0
for k in range(1, 101):
    summed += 1.0**2
    averaged += (1.0**2 - averaged) / k  # the mean of k squares
    assert math.isclose(1 / math.sqrt(summed), 1 / math.sqrt(k))
assert math.isclose(1 / math.sqrt(summed), 0.1)  # the hundredth step: a tenth of the first
assert math.isclose(1 / math.sqrt(averaged), 1.0)  # an average forgets how long one has walked

# %% [markdown]
r"""
AdaGrad *sums*, and that is the point of it: its step number $k$ is like $1/\sqrt{k}$, a schedule that nobody had to
set. (With an average you have another optimizer. It comes below.)

> **Trap: where does $\varepsilon$ stand?** Outside the root, as above, or inside: $g / \sqrt{s + \varepsilon}$? Both
> are in use, under the same name. Inside, it counts as a *square*.

**Predict.** $\varepsilon = 10^{-5}$, and the first gradient is $10^{-4}$. How many times longer is the first step with
$\varepsilon$ outside than with $\varepsilon$ inside?
"""

# %%
guess = None  # times longer


# %% tags=["error-9"]
def eps_matters(g: float, eps: float) -> float:
    """The first step of AdaGrad with eps outside the root, over the one with eps inside."""
    outside = g / (math.sqrt(g**2) + eps)
    inside = g / math.sqrt(g**2 + eps)
    return outside / inside


reconcile("outside against inside", guess, eps_matters(1e-4, 1e-5), "times")

assert round(eps_matters(1e-4, 1e-5)) == 29
assert round(eps_matters(1e-9, 1e-5)) == 316  # at worst, 1 / √eps
assert 0.99 < eps_matters(1.0, 1e-5) < 1  # with large gradients nobody notices

# PyTorch's stands outside.
w = nn.Parameter(torch.zeros(1))
w.grad = torch.tensor([1e-4])
torch.optim.Adagrad([w], lr=1.0, eps=1e-5).step()
assert math.isclose(w.item(), -1e-4 / (1e-4 + 1e-5), rel_tol=1e-5)

# %% [markdown]
r"""
A factor of 29, from one pair of parentheses. And gradients of that size are nothing unusual: in the Transformer of
section 8, more than a fifth are smaller still. A learning rate that was tuned for one spelling is not one for the
other.

### Exercise 8.2 · AdaGrad &nbsp; ★★☆ &nbsp; 15 minutes

Write `step` of `AdaGrad`, with $\varepsilon$, which is positive, outside the root. Keep the sum of squares of parameter `p` in
`self.state[p]["sum"]`: a tensor like `p`, and the only tensor that you keep. (`self.state[p]` is an empty dict at
first.) What PyTorch finds in `self.state` it also saves and loads with a checkpoint. As in 8.1: settings come from the
group, a parameter without gradient is skipped (its sum stays as it is, and where there is none, none is made),
parameters change in place, whatever their strides, and gradients do not change.
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
<details><summary>Hint 1</summary>The loops of 8.1, and before the step: <code>state = self.state[p]</code>. If it has no <code>"sum"</code> yet, begin with <code>torch.zeros_like(p)</code>.</details>
<details><summary>Hint 2</summary>First add the square, then divide: the first step is lr · g / (|g| + eps), so nearly lr, whatever the gradient.</details>

**Why it matters.** AdaGrad is the first of a family, and CS336's own worked example. In the narrow valley it takes each
direction at its own pace:
"""

# %% tags=["item-79"]
adagrad_path = go_down(lambda p: AdaGrad(p, lr=2.0))
print(f"AdaGrad in the narrow valley: {len(adagrad_path) - 1} steps")
assert len(adagrad_path) < len(with_momentum) < len(plain)

# The same as PyTorch's, on a small model.
torch.manual_seed(0)
mine = nn.Linear(6, 3).to(device)
theirs = nn.Linear(6, 3).to(device)
theirs.load_state_dict(mine.state_dict())
inputs = torch.randn(20, 6, device=device)
pairs = [
    (mine, AdaGrad(mine.parameters(), lr=0.1)),
    (theirs, torch.optim.Adagrad(theirs.parameters(), lr=0.1, eps=1e-8)),
]
for _ in range(10):
    for model, optimizer in pairs:
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        optimizer.step()
assert torch.allclose(mine.weight, theirs.weight, rtol=1e-4, atol=1e-6)

# %% [markdown]
r"""
It has a weakness, and you asserted it above: it never forgets. After 10,000 steps it moves a hundredth of what it moved
at first, also when the loss has changed its shape by then. **RMSProp** (Hinton's lectures, 2012) mends that with an
average *in which older squares fade*:

$$v \leftarrow \beta\, v + (1 - \beta)\, g^2 \qquad\qquad p \leftarrow p - \text{lr} \cdot \frac{g}{\sqrt{v} + \varepsilon}$$
"""


# %% tags=["item-80"]
def rmsprop_direction(
    g: Tensor, memory: dict[str, Tensor], beta: float = 0.99, eps: float = 1e-8
) -> Tensor:
    """Where RMSProp goes, given a gradient and what it remembers."""
    memory["v"] = beta * memory.get("v", torch.zeros_like(g)) + (1 - beta) * g**2
    return g / (memory["v"].sqrt() + eps)


memory_of = {}
moves = [rmsprop_direction(torch.tensor(1.0), memory_of).item() for _ in range(2_000)]
print(f"RMSProp, all gradients 1: step 1 is {moves[0]:.1f}, step 2,000 is {moves[-1]:.1f}")
assert math.isclose(moves[0], 10, rel_tol=1e-4)  # 1 / √(1 − β): the average began at 0
assert math.isclose(moves[-1], 1, rel_tol=1e-4)  # and it does not slow down

w = nn.Parameter(torch.zeros(1))
optimizer = torch.optim.RMSprop([w], lr=1.0)  # PyTorch's is the formula above
for move in moves[:5]:
    before = w.item()
    w.grad = torch.ones(1)
    optimizer.step()
    assert math.isclose(before - w.item(), move, rel_tol=1e-5)

# %% [markdown]
r"""
Look at the first step: ten times as long as the later ones. The average starts at zero, and zero is not what the
gradients are like. RMSProp lets that be. The next one does not.

*Try it yourself:* print `moves` for `beta=0.9`. After how many steps is the start forgotten?

## 4 · Adam and AdamW

**Adam** (Kingma and Ba, 2014) is both memories in one: a fading average $m$ of the gradients, as momentum has, and a
fading average $v$ of their squares, as RMSProp has. Both start at zero, and both are corrected for it: after $t$ steps
the weights in the averages add up to $1 - \beta^t$, so divide by that.

$$\begin{aligned}
m &\leftarrow \beta_1 m + (1 - \beta_1)\, g &\qquad \hat m &= m / (1 - \beta_1^t) \\
v &\leftarrow \beta_2 v + (1 - \beta_2)\, g^2 &\qquad \hat v &= v / (1 - \beta_2^t) \\
p &\leftarrow p - \text{lr} \cdot \frac{\hat m}{\sqrt{\hat v} + \varepsilon}
\end{aligned}$$

In the first step $\hat m = g$ and $\hat v = g^2$, so each parameter moves by lr, against the *sign* of its gradient,
whether that is a thousand or a thousandth.

**Predict.** Somebody leaves the bias correction out. With $\beta_1 = 0.9$ and $\beta_2 = 0.999$, how many times too
long is the first step? (Below 1, if it is too short.)
"""

# %%
guess = None  # times

# %%
beta1, beta2 = 0.9, 0.999
uncorrected = (1 - beta1) / math.sqrt(
    1 - beta2
)  # m / √v after the first step; corrected, it is 1
reconcile("the first step without bias correction", guess, uncorrected, "times")
assert round(uncorrected, 2) == 3.16
assert round(1 - beta2**1_000, 2) == 0.63

for g in (1_000.0, 0.001):
    w = nn.Parameter(torch.zeros(1))
    w.grad = torch.tensor([g])
    torch.optim.Adam([w], lr=0.1).step()
    assert math.isclose(w.item(), -0.1, rel_tol=1e-4)  # lr, whatever the gradient

# %% [markdown]
r"""
Too *long*, since $v$ starts even nearer to zero than $m$. And it lasts: after a thousand steps the weights in $v$ still
add up to 0.63 only.

### Weight decay, and the W

One often wants weights to stay small, so each step also shrinks them a little. There are two ways to say it. **L2**:
add $\tfrac{\lambda}{2} p^2$ to the loss, that is $\lambda p$ to the gradient. **Decoupled**: leave the gradient alone
and multiply $p$ by $1 - \text{lr} \cdot \lambda$. For plain SGD these are the same thing. For Adam they are not: it
divides by the size of what it is given as the gradient, and with L2 the decay is a part of that.

**Predict.** A weight of 1 whose gradient is zero. Take one step with a decay of 0.1 and one with a decay of 0.001. How
many times further does *Adam*, with L2, move with the larger one?
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
assert math.isclose(
    decay_of(torch.optim.Adam, 0.1), 0.1, rel_tol=1e-3
)  # lr, whatever the decay
assert math.isclose(decay_of(torch.optim.AdamW, 0.1), 0.1 * 0.1)  # lr · decay
assert math.isclose(decay_of(torch.optim.AdamW, 0.001), 0.1 * 0.001)
assert math.isclose(decay_of(torch.optim.SGD, 0.1), 0.1 * 0.1)  # for SGD both are one

# Beside a gradient of 100: what the decay adds to the step.
adam, adamw = (
    decay_of(kind, 0.1, 100.0) - decay_of(kind, 0.0, 100.0)
    for kind in (torch.optim.Adam, torch.optim.AdamW)
)
assert abs(adam) < 1e-6 and math.isclose(adamw, 0.1 * 0.1)

# %% [markdown]
r"""
A hundred times the decay, and no difference at all: here the decay is all of the gradient, and $\lambda$ cancels.
Beside a real gradient it is divided by that gradient's size, so that weights with large gradients hardly shrink.
AdamW (Loshchilov and Hutter, 2017) is Adam with decoupled decay: all weights shrink alike.

### Exercise 8.3 · AdamW &nbsp; ★★★ &nbsp; 20 minutes

Write `step` of `AdamW`. For each parameter with a gradient: first shrink it, $p \leftarrow p \cdot (1 - \text{lr} \cdot
\text{weight\_decay})$; then take Adam's step, with the formulas above. $\varepsilon$ stands outside the root, beside
the *corrected* $\sqrt{\hat v}$.

Keep three things in `self.state[p]`: `"step"`, a plain `int`, how many steps *this parameter* has taken ($t$ in the
formulas, 1 in its first step); and the averages `"exp_avg"` ($m$) and `"exp_avg_sq"` ($v$), tensors like `p`. As
before: settings come from the group, a parameter without gradient is skipped (nothing is shrunk, counted or kept), the
others change in place, whatever their strides, and gradients do not change.
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
<details><summary>Hint 1</summary>AdaGrad's loops. Where <code>self.state[p]</code> is empty, put 0 and two tensors of zeros there; then count the step up.</details>
<details><summary>Hint 2</summary>The averages change in place: <code>m.mul_(beta1).add_(p.grad, alpha=1 - beta1)</code>. The corrected ones are new tensors: <code>m / (1 - beta1**t)</code>. Do not store those.</details>

**Why it matters.** Most large language models are trained with it. There are about ten ways to get it wrong, and none of
them raises an error.

Yours against PyTorch's, on a model, with a group of its own for what should not decay:
"""


# %% tags=["item-80"]
def two_groups(model: nn.Module) -> list[dict[str, Any]]:
    """Matrices decay; biases do not, as is usual."""
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
for a, b in zip(mine.parameters(), theirs.parameters(), strict=True):
    assert torch.allclose(a, b, rtol=1e-3, atol=1e-5)

# %% [markdown]
r"""
### One family

The optimizers above are not six inventions but one, with parts switched on and off:

| | direction: $m$ | size: divide by the root of | numbers kept per parameter |
|---|---|---|---|
| SGD | the gradient | nothing | 0 |
| momentum | fading sum | nothing | 1 |
| AdaGrad | the gradient | the sum of squares | 1 |
| RMSProp | the gradient | fading average of squares | 1 |
| Adam | fading average, corrected | fading average of squares, corrected | 2 |
| AdamW | as Adam | as Adam; decay beside it | 2 |

So your AdamW should *become* the others when parts of it are switched off. With $\beta_1 = 0$ there is no memory of the
direction. With $\beta_2$ close to 1 nothing fades any more, and $\hat v$ is the plain mean of all squares: the sum
divided by $t$. Divide lr by $\sqrt t$ to make up for that, and it is AdaGrad.
"""

# %% tags=["item-80"]
torch.manual_seed(0)
as_adam = nn.Parameter(torch.randn(5, dtype=torch.float64))
as_adagrad = nn.Parameter(as_adam.detach().clone())
switched = AdamW([as_adam], betas=(0.0, 1 - 1e-8), weight_decay=0.0)
adagrad = AdaGrad([as_adagrad], lr=0.1)
for t in range(1, 30):
    gradient = torch.randn(5, dtype=torch.float64)
    as_adam.grad, as_adagrad.grad = gradient.clone(), gradient.clone()
    switched.param_groups[0]["lr"] = 0.1 / math.sqrt(t)  # a schedule: the group's lr changes
    switched.step()
    adagrad.step()
assert torch.allclose(as_adam, as_adagrad, rtol=1e-5)

# %% [markdown]
r"""
### What the memory buys, in a picture

Four optimizers, three of them yours, in the narrow valley. And then in *the same* valley, turned by 45°, from the same
place in it. SGD and momentum cannot tell the difference: nothing in their formulas knows about axes. AdaGrad and AdamW
have a learning rate for each parameter, that is, for each *axis*.

**Predict.** AdaGrad needs 26 steps in the valley that runs along an axis. How many in the turned one?
"""

# %%
guess = None  # steps

# %%
racers: dict[str, Callable[[list[nn.Parameter]], torch.optim.Optimizer]] = {
    "SGD": lambda p: SGD(p, lr=2 / (FLAT + STEEP)),
    "momentum": lambda p: torch.optim.SGD(p, lr=best_lr, momentum=best_mu),
    "AdaGrad": lambda p: AdaGrad(p, lr=2.0),
    "AdamW": lambda p: AdamW(p, lr=0.5, weight_decay=0.0),
}
valleys = {"along an axis": 0.0, "turned by 45°": math.pi / 4}
paths = {
    label: {name: go_down(make, angle) for name, make in racers.items()}
    for label, angle in valleys.items()
}
steps_taken = {
    label: {name: len(path) - 1 for name, path in walked.items()}
    for label, walked in paths.items()
}
for label, counts in steps_taken.items():
    print(f"{label}: {counts}")
straight, turned = steps_taken["along an axis"], steps_taken["turned by 45°"]
reconcile("AdaGrad in the turned valley", guess, turned["AdaGrad"], "steps")

assert straight["AdaGrad"] == 26 and turned["AdaGrad"] > 10 * straight["AdaGrad"]
assert turned["AdamW"] > 2 * straight["AdamW"]
assert turned["SGD"] == straight["SGD"] and turned["momentum"] == straight["momentum"]


# %%
def surface(angle: float) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """The loss of the valley at an angle."""
    c, s = math.cos(angle), math.sin(angle)
    return lambda x, y: 0.5 * (FLAT * (c * x + s * y) ** 2 + STEEP * (c * y - s * x) ** 2)


finding = "Fast along an axis, slow at 45°: AdaGrad and AdamW, each at one learning rate"
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
    "slope to slope, AdaGrad and AdamW bend into the valley and follow it. Turned by 45°, AdaGrad and "
    f"AdamW crawl. Steps needed, along an axis: {straight}; turned: {turned}.",
)

# %% [markdown]
r"""
Only the first 60 points of each path are drawn. In the turned valley AdaGrad and AdamW crawl. Or is it the learning
rate that suited one valley and does not suit the other? Give each the best of four rates in the turned valley, and
AdamW once more without its memory of the direction, $\beta_1 = 0$:
"""


# %%
def fewest(make: Callable[[list[nn.Parameter], float], torch.optim.Optimizer]) -> int:
    """Steps down the turned valley, with the best of four learning rates."""
    paths = [
        go_down(lambda p, lr=lr: make(p, lr), math.pi / 4)  # type: ignore[misc]
        for lr in (0.5, 1.0, 2.0, 3.0)
    ]
    return min(len(path) for path in paths) - 1


at_best = {
    "AdaGrad": fewest(lambda p, lr: AdaGrad(p, lr)),
    "AdamW, β₁ = 0": fewest(lambda p, lr: AdamW(p, lr, betas=(0.0, 0.999), weight_decay=0.0)),
    "AdamW": fewest(lambda p, lr: AdamW(p, lr, weight_decay=0.0)),
}
print(f"turned by 45°, at the best rate: {at_best}")
assert at_best["AdaGrad"] > 200 and at_best["AdamW, β₁ = 0"] > 150
assert at_best["AdamW"] < 1.5 * straight["AdamW"]

# %% [markdown]
r"""
Dividing by each parameter's own size does not help where the difficulty lies *across* the axes, at any of these rates.
Momentum does, and AdamW has both. Dividing is a great help where the parameters *themselves* are differently scaled,
and in language models they are: a bias, a norm, the embedding of a rare token. But mind what a picture like this can
tell. Each optimizer has its own learning rate to find, a comparison at one rate is none, and nothing above says which
one trains *your* model best. It says what each one is made of. Now the price.

*Try it yourself:* turn the valley by 5° only (`math.radians(5)`). How much of AdaGrad's advantage is left?
"""

# %% [markdown]
r"""
## 5 · What they keep

An optimizer's memory lies in `optimizer.state`: for each parameter a dict, from names to tensors and plain numbers.
Look into PyTorch's own AdamW, for one matrix and its bias:
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
assert state["step"].device.type == "cpu"  # also where the parameters are on a GPU

saved = optimizer.state_dict()  # what a checkpoint holds: parameters by number, not by value
assert list(saved["state"]) == [0, 1] and saved["param_groups"][0]["params"] == [0, 1]

half = nn.Parameter(torch.zeros(64, dtype=torch.bfloat16, device=device))
half.grad = torch.ones_like(half)
optimizer = torch.optim.AdamW([half])
optimizer.step()
assert optimizer.state[half]["exp_avg"].dtype == torch.bfloat16  # as the parameter
assert optimizer.state[half]["step"].dtype == torch.float32  # all the same

# %% [markdown]
r"""
Two averages for each number, and in PyTorch's version a counter for each *tensor*, itself a tensor of 4 bytes. (Yours
is an `int` of Python's, and takes none of the tensors' memory.)

*Try it yourself:* look into `torch.optim.AdamW(…, amsgrad=True)`. What does it keep in addition?

### Exercise 8.4 · Bytes of state &nbsp; ★☆☆ &nbsp; 10 minutes

Write `state_bytes(optimizer)`: the bytes of all tensors that the optimizer keeps in its state, the counters too. For each
parameter the state holds a dict, whose values are tensors of any dtype, or plain numbers, texts and `None`, which count
nothing. No two of the tensors share memory, and none is a part of a larger one. (A few optimizers, such as LBFGS, also
keep lists of tensors. Leave those out of consideration.) Parameters and gradients are not the optimizer's.
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
<details><summary>Hint 2</summary>How many bytes does a tensor take? Lecture 01 asked that. Before you ask a value, find out whether it is a tensor.</details>

**Why it matters.** Of all that a training step holds, the state is what people forget. Now you can ask any optimizer.

**Predict.** One matrix of 1,024 × 512 in float32. How many bytes does your AdamW keep for it after a step?
"""

# %%
guess = None  # bytes


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
reconcile("the state of your AdamW", guess, mine_keeps, "B")

assert mine_keeps == 8 * n
assert kept_for(lambda p: torch.optim.AdamW(p), rows, columns) == 8 * n + 4  # and the counter
assert kept_for(lambda p: SGD(p), rows, columns) == 0
assert kept_for(lambda p: torch.optim.SGD(p, momentum=0.9), rows, columns) == 4 * n
assert kept_for(lambda p: AdaGrad(p), rows, columns) == 4 * n
assert kept_for(lambda p: torch.optim.RMSprop(p), rows, columns) == 4 * n + 4

# %% [markdown]
r"""
### With less

Eight bytes for each parameter of 4: the state of AdamW is twice the model. Two ways to do with less.

**Lion** (Chen and others, 2023) keeps one average, mixes it with the new gradient, and takes the *sign*. Each parameter
moves by exactly lr, so no second average is needed to say how far. Half of AdamW's state.

**Adafactor** (Shazeer and Stern, 2018) keeps no average of the gradients, and of the averages of the squares only the
*means of each row and of each column*. For a matrix of $n \times k$ that is $n + k$ numbers in place of $n \cdot k$.
When the entry at row $i$ and column $j$ is needed, it is made from them: $r_i c_j / \bar r$. That is exact if rows and
columns tell everything (a matrix of rank 1), and a guess with the right row and column means if not.
"""


# %%
class Lion(torch.optim.Optimizer):
    """One average, of which only the sign is used."""

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
assert factored == 4 * (rows + columns) + 4
print(f"for {n:,} parameters: AdamW keeps {mine_keeps:,} B, Adafactor {factored:,} B")

# %% [markdown]
r"""
6,148 bytes against 4 million. (A vector cannot be factored; for biases and norms Adafactor keeps the full average.)

*Try it yourself:* take Lion down the narrow valley, `go_down(lambda p: Lion(p, lr=0.1))`. How far does it move in each
step, at the start and near the minimum?

### Exercise 8.5 · What room is left? &nbsp; ★★☆ &nbsp; 15 minutes

Write `room_left(shapes, memory)`: for each of six optimizers, how many of the `memory` bytes are left for activations
when a model whose parameters have these shapes is trained in float32. Parameters, gradients and state are all float32.
Leave out counters of steps: they are a few bytes for each tensor. Where there is not enough memory, the number is
negative: that much is missing. Return a dict with the keys

- `"SGD"`: no state; `"momentum"`, `"AdaGrad"` and `"Lion"`: one number for each parameter; `"AdamW"`: two;
- `"Adafactor"`: for a matrix, one for each row and one for each column; for a vector, one for each of its numbers.

Each shape is that of a matrix or of a vector: two sizes or one.
"""


# %% nbgrader={"grade": false, "grade_id": "room_left", "locked": false, "schema_version": 3, "solution": true, "task": false}
def room_left(shapes: Sequence[tuple[int, ...]], memory: int) -> dict[str, int]:
    """Bytes left for activations, by optimizer; all in float32."""
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
<details><summary>Hint 1</summary>Count two things over all shapes: the parameters, and what Adafactor keeps. For the product of a shape there is <code>math.prod</code>.</details>
<details><summary>Hint 2</summary>Rows plus columns is the <em>sum</em> of a matrix's shape. And the sum of a vector's shape?</details>

**Why it matters.** Before anybody rents a card, this is the question. Here is Llama 3 8B, by the shapes of lecture 06,
in float32, on a card of 80 GB.

**Predict.** How many of the six optimizers leave any room at all?
"""

# %%
guess = None  # of the six

# %%
layers, d, kv, hidden, vocab = 32, 4_096, 1_024, 14_336, 128_256
one_layer = [
    (d, d),
    (d, kv),
    (d, kv),
    (d, d),
    (d, hidden),
    (d, hidden),
    (hidden, d),
    (d,),
    (d,),
]
llama = one_layer * layers + [(vocab, d), (d, vocab), (d,)]
n = sum(math.prod(shape) for shape in llama)
assert n == 8_030_261_248

h100, h200 = (hardware.ACCELERATORS[name].memory_bytes or 0 for name in ("H100 SXM", "H200"))
left = {"80 GB": room_left(llama, h100), "141 GB": room_left(llama, h200)}
for name in left["80 GB"]:
    rooms = ", ".join(f"{readable(left[card][name], 'B'):>8} of {card}" for card in left)
    print(f"{name:>9}: left {rooms}")
fits = [name for name, room in left["80 GB"].items() if room > 0]
reconcile("optimizers that leave room on 80 GB", guess, len(fits), "of the six")

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
finding = "Llama 3 8B in float32: only SGD and Adafactor leave room on an H100"
plots.show(
    plots.memory_stacks(
        bars, limits={"H100: 80 GB": h100, "H200: 141 GB": h200}, title=finding
    ),
    alt=f"{finding}. Bars of parameters, gradients and optimizer state, 32 GB each for the first two. SGD and "
    "Adafactor need 64 GB, momentum, AdaGrad and Lion 96 GB, AdamW 128 GB; an H200 with 141 GB holds all.",
)

# %% [markdown]
r"""
So people spread the state over several cards (lecture 11), keep it in fewer bits, or keep less of it. And the rule of
thumb of lecture 00, 16 bytes per parameter with AdamW in float32, is the last bar: 4 + 4 + 8. It says nothing of
activations. They come now.
"""

# %% [markdown]
r"""
## 6 · The whole step, to the byte

A training step holds four kinds of memory: parameters, gradients, optimizer state, and activations:
what the forward pass keeps because the backward pass will need it. The first three depend on the model alone. The
activations grow with the batch.

Take CS336's example: a chain of $L$ linear layers, $[B, D] \to [B, D]$, and a head that turns each of the $B$ vectors
into one number. No biases. The loss is the mean squared error.
"""


# %%
if device.type == "cpu":  # leave one core to the rest of the machine: lecture 05
    torch.set_num_threads(max(1, torch.get_num_threads() - 1))


def chain(width: int, layers: int) -> nn.Sequential:
    """A stack of linear layers, and a head with one output."""
    stack = [nn.Linear(width, width, bias=False) for _ in range(layers)]
    return nn.Sequential(*stack, nn.Linear(width, 1, bias=False)).to(device)


def squared_error(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """The mean of the squared errors."""
    return (model(x) - y).square().mean()


# %% [markdown]
r"""
> **Find the mistake.** With $B = 2$, $D = 4$, $L = 2$ and AdaGrad, a well-known formula goes: parameters $D \cdot D
> \cdot L + D = 36$, activations $B \cdot D \cdot L = 16$, gradients 36, state 36, and with 4 bytes for each number that
> is $4 \cdot (36 + 16 + 36 + 36) = 496$ bytes. Ask autograd what it keeps, and it is more than 16 numbers. Which tensor
> does the formula forget? Go through the forward pass, operation by operation, and ask of each: *which of its inputs
> will the gradient need?*

**Predict.** How many bytes are the four kinds in truth?
"""

# %%
guess = None  # bytes

# %% tags=["error-26"]
B, D, L = 2, 4, 2
model = chain(D, L)
x, y = torch.randn(B, D, device=device), torch.randn(B, 1, device=device)
optimizer = AdaGrad(model.parameters())
kept = saved_bytes(squared_error, model, x, y)  # x, y and the parameters are not counted
squared_error(model, x, y).backward()
optimizer.step()
numbers = sum(p.numel() for p in model.parameters())
in_truth = 4 * numbers + 4 * numbers + state_bytes(optimizer) + kept
reconcile("B = 2, D = 4, L = 2 with AdaGrad", guess, in_truth, "B")

assert numbers == 36 and state_bytes(optimizer) == 4 * 36
assert in_truth == 504 == 496 + 4 * B
assert kept == 4 * (B * D * L + B)

# %% [markdown]
r"""
Each linear layer keeps its *input*, since $\nabla w = h^\top \nabla y$ (lecture 06). Layer by layer:

- The first layer keeps $x$, which is your batch of data. It lies in memory, $4 B D$ bytes, but nobody allocated it
  for this pass; count it with the data. (Where you count it with the activations, say so.)
- Layers 2 to $L$ and the head keep the $L$ vectors between them: $B \cdot D \cdot L$ numbers. The formula has these.
- The *loss* keeps something, too. The slope of a square is twice what was squared, so it keeps the $B$ errors. That is
  what the formula forgets.

Here that is eight bytes. A language model's loss keeps a number for each token *and* each word of the vocabulary, and
nobody would want to forget that (section 8).

What is saved depends on the operation, and not on the size of its output. The ReLU is free: its slope can be read off
its output, which the next layer keeps anyway. GELU needs its input, which nobody else keeps.
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
*Try it yourself:* `nn.SiLU`, `nn.Sigmoid`, `nn.Dropout(0.5)`. Guess first: what does the slope of each need?

### Exercise 8.6 · Four kinds &nbsp; ★★☆ &nbsp; 15 minutes

Write `training_bytes(batch, width, layers, moments, counter)`: the bytes of each kind in a training step of the chain
above (`layers` layers of `width` × `width`, or none; a head of `width` × 1; no biases, no activation functions, mean squared error), everything
in float32. `batch` and `width` are at least 1. The optimizer keeps `moments` numbers for each parameter, and `counter` bytes for each parameter *tensor* (0
for yours, 4 for PyTorch's AdamW). The input and the targets are data, and not counted. Return a dict with the keys
`"parameters"`, `"gradients"`, `"optimizer state"` and `"activations"`.
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
<details><summary>Hint 1</summary>Count numbers first, bytes last. A gradient is as large as its parameter.</details>
<details><summary>Hint 2</summary>Activations: take one layer, the head and the loss in turn. Which tensor does the backward pass of each need, and is it data?</details>

**Why it matters.** Predict, then allocate. That is how one finds out *before* the job is queued that it does not fit.

### Watch it happen

Now the same step in memory, with your AdamW: build the model, go forward, go backward, step. `track` says what tensors
hold at each moment, and your `training_bytes` should say the same, each time, to the byte. (On a GPU, the first
multiplication takes a few megabytes for the library that does it. So the cell runs one step before it measures.)
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
numbers = D * D * L + D
the_formula = 4 * (4 * numbers + B * D * L)
assert sum(predicted.values()) == the_formula + 4 * B  # and the errors

# %% [markdown]
r"""
Every line agrees. Read down the list: activations come with the forward pass and *go* with the backward pass, while the
gradients come. They are hardly ever there together in full. The state comes with the first `step()` and stays.

**On a GPU** the allocator gives memory in blocks, rounded up to a multiple of 512 bytes, so a tensor of 4 bytes takes
512. (PyTorch keeps AdamW's counters in the CPU's memory, unless it is `fused` or `capturable`.)
`torch.cuda.memory_allocated()` shows rounded bytes. `track` shows in `live` what was asked for, and in `allocated_live`
what was given.
"""

# %%
tiny = torch.zeros(1, device=device)
with track(device) as memory:
    counters = [torch.zeros_like(tiny) for _ in range(100)]
print(f"100 tensors of 4 B: asked for {memory.live:,} B, got {memory.allocated_live:,} B")
assert memory.live == 400
if device.type == "cuda":
    assert memory.allocated_live == 100 * 512
else:
    assert memory.allocated_live == 400  # here the course counts what was asked for

# %% [markdown]
r"""
### The sum is not the peak

A step does not need room for the four kinds at once, but for its fullest *moment*, the **peak**. It can be less than
the sum, since activations go while gradients come. And it can be more, since an optimizer's formula makes temporaries:
the root, the quotient. PyTorch has its AdamW in three forms. A loop over the parameters makes temporaries for one
tensor at a time; `foreach` takes all tensors together, in fewer and larger operations, with temporaries for all; and
`fused` is one operation that needs none.

**Predict.** A model of 8 equal matrices. How many times the bytes of *one* matrix does a step of the `foreach` form
take on top of what is there?
"""

# %%
guess = None  # times one matrix

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
    print(f"{form:>8}: {extra[form]:.2f} × one matrix on top")
reconcile("temporaries of foreach", guess, extra["foreach"], "times one matrix")

assert extra["fused"] < 0.01 and 1 <= extra["loop"] < count <= extra["foreach"]

# %% [markdown]
r"""
On a GPU `foreach` is the default, so a model that just fits may fail in its first *step*, after a forward and a
backward pass that went well. Now you know two things to do about it. And where is the peak of a whole step? The chain
again, for two steps:
"""


# %%
def peak_against_sum(batch: int, width: int, layers: int, form: str) -> tuple[float, str]:
    """The peak of two training steps of the chain over the sum of the four kinds, and where it is."""
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
With few tokens the form decides: temporaries put the peak into `step()`, above the sum; without them it is in the
backward pass, below. With many tokens it is in the backward pass, whatever the optimizer: there the gradients
*of activations* come and go, which are none of the four kinds. So take the sum as the budget, and leave some room.

*Try it yourself:* at which batch does the peak move from `step()` to the backward pass?

## 7 · The work of a step

And the FLOPs? Lecture 06 has the answer for the multiplications: $6 \cdot B \cdot$ parameters, less the gradient of the
input that nobody needs, $2 B D^2$.
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
The optimizer comes on top: elementwise, so PyTorch's counter does not see it. Count AdamW's by hand, for one parameter:
"""

# %%
adamw_work = {  # operations on each parameter, in each step
    "shrink the weight": 1,  # ·
    "average of gradients": 3,  # · · +
    "average of squares": 4,  # · · · +
    "correct both averages": 2,  # ÷ ÷
    "root, and eps": 2,  # √ +
    "divide, times lr, subtract": 3,  # ÷ · −
}
per_parameter = sum(adamw_work.values())
assert per_parameter == 15

optimizer_share = {batch: per_parameter / (6 * batch) for batch in (1, 64, 4_096)}
for batch, share in optimizer_share.items():
    print(f"batch {batch:>5,}: AdamW does {share:.2%} of the FLOPs of the multiplications")
assert (
    optimizer_share[1] == 2.5 and optimizer_share[64] < 0.04 and optimizer_share[4_096] < 1e-3
)

# %% [markdown]
r"""
Once per step, not once per token: with thousands of tokens in the batch it disappears. As *work*. But as in lecture 05,
a small share of the work need not be a small share of the time. AdamW reads four numbers for each parameter ($p$, $g$,
$m$, $v$), writes three, and does 15 operations on them. That is 28 bytes and about half a FLOP per byte, so it runs at
the speed of memory.

**Predict.** On your machine, with a batch of 64: which share of the time of a whole step (forward, backward, and
PyTorch's AdamW) does the optimizer take? Write it as a number from 0 to 1. By FLOPs it would be 0.04.
"""

# %%
guess = None  # of the time

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
reconcile("the optimizer's share of the time", guess, share, "of the time")

llama_step = 28 * 8_030_261_248 / hardware.ACCELERATORS["H100 SXM"].bandwidth  # seconds
print(f"AdamW for 8 billion parameters at an H100's bandwidth: {readable(llama_step, 's')}")
assert round(llama_step, 3) == 0.067

# %% [markdown]
r"""
More than 4 % of the time, most likely by far. (Temporaries make it worse: each is written and read again. `fused=True`
reads and writes everything once.) With more tokens in the batch it shrinks, as its time stays the same. For Llama 3 8B
it is 67 ms, at best, against 1.2 s for the multiplications of 8,192 tokens (lecture 06, at an MFU of 0.4).

*Try it yourself:* `fused=True` in the cell above. And a batch of 4,096.
"""

# %% [markdown]
r"""
## 8 · The result: a Transformer, every byte of its step

A Transformer's ledger is longer, and it is the same ledger: go through the operations, and ask of each what it keeps.
Here is a small language model, with attention spelled out, so that nothing happens behind a curtain.
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
    """A language model: embeddings of tokens and places, blocks, a norm, a head."""

    def __init__(self, vocab: int, context: int, d: int, heads: int, layers: int) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocab, d), nn.Embedding(context, d)
        self.blocks = nn.Sequential(*(Block(d, heads, context) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, vocab, bias=False)

    def forward(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T vocab"]:
        return self.head(self.norm(self.blocks(self.tokens(ids) + self.places.weight)))


def next_token_loss(model: nn.Module, ids: Tensor, targets: Tensor) -> Tensor:
    """Mean cross-entropy of the next token."""
    return nn.functional.cross_entropy(model(ids).flatten(0, 1), targets.flatten())


# %% [markdown]
r"""
**Parameters.** The two tables and the head: $2 V d + T d$. Each block: $d \cdot 3d + d \cdot d + d \cdot 4d + 4d \cdot
d = 12 d^2$, and two norms of $2d$ each. The last norm: $2d$.

*Activations*, for $N = B \cdot T$ tokens, $h$ heads, $L$ blocks. All tensors are float32.

| what is kept, in each block | by whom | numbers |
|---|---|---|
| the block's input; the sum in the middle | the two norms | $2 N d$ |
| a mean and a scale for each token | the two norms | $4 N$ |
| outputs of the two norms | `qkv`, `up` | $2 N d$ |
| queries, keys, values | the two products of attention | $3 N d$ |
| the weights of attention | softmax, and the second product | $B h T^2$ |
| the result of attention | `out` | $N d$ |
| before and after GELU | GELU, `down` | $8 N d$ |
| **in all** | | $16 N d + 4 N + B h T^2$ |

And once: the last norm's input and statistics, $N d + 2N$; the head's input, $N d$; the loss keeps the logarithm of the
probability of *each word of the vocabulary* for each token, $N V$, and one number more. The masks and the tables are
parameters and constants, and the ids are data. New against the chain are the terms without $d$: the statistics,
attention's $T^2$, and the vocabulary.
"""


# %%
def transformer_numbers(vocab: int, context: int, d: int, heads: int, layers: int) -> int:
    """Parameters of the Transformer."""
    return (2 * vocab + context) * d + layers * (12 * d * d + 4 * d) + 2 * d


def transformer_kept(
    batch: int, vocab: int, context: int, d: int, heads: int, layers: int
) -> dict[str, int]:
    """Bytes of activations of the Transformer, by where they come from."""
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
text = (starts + 7 * torch.arange(shape["context"] + 1)) % shape[
    "vocab"
]  # each token is the last plus 7
ids, targets = (part.contiguous().to(device) for part in (text[:, :-1], text[:, 1:]))

# %% [markdown]
r"""
**Predict.** Which share of the activations does autograd keep *for the loss alone*, on your machine? (On a CPU: $V =
512$, $T = 64$, $d = 64$, 4 heads, 2 layers. On a GPU: 4096, 256, 256, 8, 4.) Write it as a number from 0 to 1.
"""

# %%
guess = None  # of the activations

# %% tags=["item-84"]
parts = transformer_kept(batch, **shape)
kept_in_all = sum(parts.values())
for name, size in parts.items():
    print(f"{name:>22}: {size:>13,} B, {size / kept_in_all:5.1%}")
reconcile("kept for the loss", guess, parts["the loss"] / kept_in_all, "of the activations")

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
To the byte. (The smallest GPT-2 has $V = 50{,}257$, $d = 768$, 12 heads and $T = 1{,}024$. There the loss alone keeps
as much as two whole blocks.)

FLOPs are the same kind of ledger: 6 for each token and each weight *that multiplies* (the two tables are looked
up), and $12\,L\,d\,T$ for each token in attention (lecture 06).
"""

# %% tags=["item-84"]
work = count_flops(lambda: next_token_loss(model, ids, targets).backward())
matrices = sum(p.numel() for p in model.parameters() if p.dim() == 2)
looked_up = model.tokens.weight.numel() + model.places.weight.numel()
attention = 12 * shape["layers"] * shape["d"] * shape["context"]
assert work == ids.numel() * (6 * (matrices - looked_up) + attention)

slopes = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
assert (slopes.abs() < 1e-4).float().mean() > 0.2  # section 3: how small gradients are

# %% [markdown]
r"""
To the FLOP. Now train it, with *your* AdamW. All four kinds are predicted first; then the step runs, and memory is
asked.
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

finding = f"Your AdamW, one step of a Transformer: {format_bytes(sum(predicted.values()))}, to the byte"
plots.show(
    plots.predicted_vs_measured(
        [(kind, predicted[kind], measured[kind], "B") for kind in predicted], title=finding
    ),
    alt=f"{finding}. Parameters, gradients, optimizer state and activations, predicted and measured: all four marks "
    "lie on one another.",
)

# %% [markdown]
r"""
No byte too much and none too little, in any of the four. And it learns: the text it is given has one rule, and the loss
of a model that knows nothing is $\ln V$.
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
With a formula, one can ask what nobody would want to try out. Take the shape of GPT-3: 96 layers, $d = 12{,}288$, 96
heads, a vocabulary of 50,257, one sequence of 2,048 tokens, all in float32 and with attention spelled out as here.

**Predict.** Which is more, the bytes of parameters, gradients and AdamW's state together, or the activations of this
*one* sequence? By what factor? (Below 1, if the activations are more.)
"""

# %%
guess = None  # times more

# %%
names = dict(vocab="vocabulary", context="context", d="width", heads="heads", layers="layers")
gpt3 = {name: int(FACTS[f"GPT-3 {what}"].value) for name, what in names.items()}
assert gpt3 == dict(vocab=50_257, context=2_048, d=12_288, heads=96, layers=96)
fixed = 16 * transformer_numbers(**gpt3)
flowing = sum(transformer_kept(1, **gpt3).values())
print(f"parameters, gradients and state: {format_bytes(fixed)}")
print(f"activations of one sequence: {format_bytes(flowing)}")
reconcile("fixed against one sequence", guess, fixed / flowing, "times")

for context in (2_048, 32_768):
    kept_there = transformer_kept(1, **gpt3 | {"context": context})
    share = kept_there["attention's weights"] / sum(kept_there.values())
    print(f"context {context:>6,}: attention's weights are {share:.0%} of the activations")
    assert round(share, 2) == {2_048: 0.5, 32_768: 0.94}[context]

assert round(transformer_numbers(**gpt3) / 1e9) == 175
assert round(fixed / 1e12, 1) == 2.8 and round(flowing / 1e9) == 310
assert round(fixed / flowing) == 9
assert math.ceil(fixed / h100) == 36  # cards of 80 GB, for the fixed part alone

# %% [markdown]
r"""
2.8 TB that do not depend on the batch, 36 cards' worth, and 310 GB for each sequence: with ten of them the activations
are the larger part. Half of that is $T^2$, attention's weights, and at 32,768 tokens nearly all of it. That is why
nobody keeps them: fused attention kernels compute them again in the backward pass, as checkpointing does with whole
layers. The *accounting* says where it pays to be clever. Lecture 11 is clever.

Here is the ledger to move, with lecture 00's bytes per parameter, fused attention and sharding added. Llama 3 8B, one
sequence of 8,192 tokens on each of eight H100s, does not fit. Which *one* control makes it fit? And once each layer is
recomputed, what do most of the activations come from?
"""

# %%
from course_utils.widgets import memory_budget

memory_budget.explore("Llama 3.1 8B", "H100 SXM", batch=1, context=8_192, cards=8)

# %% [markdown]
r"""
*Try it yourself:* in `Block`, replace scores, mask, softmax and weighted sum by
`nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)`. By how much does `saved_bytes` shrink?

## Takeaways

**Mechanics.** An optimizer is two loops, over groups and parameters, around a formula. SGD: $p - \text{lr} \cdot g$.
AdaGrad divides by the root of the *sum* of squares; RMSProp by that of a fading average; Adam averages the gradient,
too, and corrects both averages; AdamW shrinks the weights beside it. Settings live in groups, memory in `state[p]`, and
no gradient means skip. In float32, per parameter: 4 bytes of parameters, 4 of gradients, and of state 0 (SGD), 4
(momentum, AdaGrad, RMSProp, Lion), 8 (AdamW), or rows + columns (Adafactor). Activations: ask of each operation what
its gradient needs.

**Mindset.** Write the ledger first, by kind, to the byte; then measure. If they differ by 4 bytes a tensor, it is a
counter; by 512, an allocator; by the size of the batch, the loss. When you take a formula from somewhere, check
$\varepsilon$, the correction, the decay, and whether it sums or averages: none of these mistakes raises an error.

**Intuitions.** State is often twice the model. Momentum turns a condition number into its root. A rate for each
parameter helps along the axes only. The optimizer is nothing in FLOPs, and something in time. The sum of the kinds is
not the peak, and at long contexts $T^2$ is nearly all.

Next: [09 · The training loop](../09_training_loop/09_training_loop.ipynb). You have a model, its gradients and an optimizer; now the data, the loop around them,
and a checkpoint that loses nothing.
"""

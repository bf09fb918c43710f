# %% [markdown]
r"""
# 06 · Gradients and 6N

[← 05 · FLOPs and MFU](../05_flops_and_mfu/05_flops_and_mfu.ipynb) &nbsp;|&nbsp; [07 · Models and initialization
→](../07_models_and_init/07_models_and_init.ipynb)

> **What does a training step cost, and where does the 6 come from?**

Lecture 05 showed that the forward pass takes two FLOPs per parameter per token. Training also needs gradients, and the
well-known rule for both together is $6N$: six FLOPs to train each of $N$ parameters on one token. This lecture explains
the six. You'll see which matrix products the backward pass computes and which one it can skip; you'll write them
yourself and check them without PyTorch's automatic gradients. By the end you'll have predicted, to the last FLOP, what
a training step of Llama 3 costs. You'll also know for which context lengths $6N$ is a good estimate, for which it's
right by accident, and for which it misses most of the work.
"""

# %%
import itertools
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from course_utils import device as devices
from course_utils import hardware, plots, timing
from course_utils.facts import FACTS
from course_utils.flops import count_flops
from course_utils.predict import reconcile
from course_utils.progress import show_progress
from course_utils.units import readable
from course_utils.testing import check

device = devices.pick_device()
print(devices.describe(device))
show_progress()

# %% [markdown]
r"""
## 1 · One gradient, and who keeps it

Let's start with a very small model: a vector $w$ of three weights. There's a single example $x$, and the output for it,
$x \cdot w$, should be 5. The *loss* is a number that says how wrong the output is:

$$\text{loss} = \tfrac12 (x \cdot w - 5)^2 .$$

A **gradient** says, for each weight, how fast the loss changes when that weight alone grows a little. To compute
gradients, we use the **chain rule**: the derivative of nested functions is the product of their derivatives. Here that
gives the error $(x \cdot w - 5)$ times $x$.

**Predict.** Take $x = (1, 2, 3)$ and $w = (1, 1, 1)$. What's the gradient with respect to the *third* weight?
"""

# %%
guess = None  # the third element of w.grad


# %% tags=["item-61"]
def kept(tensor: Tensor) -> Tensor | None:
    """tensor.grad, without the warning that PyTorch gives for a tensor that keeps none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tensor.grad


x = torch.tensor([1.0, 2.0, 3.0])  # data
w = torch.tensor([1.0, 1.0, 1.0], requires_grad=True)  # what we train

prediction = x @ w  # 1 + 2 + 3 = 6; we want 5
loss = 0.5 * (prediction - 5) ** 2
assert prediction == 6 and loss == 0.5

loss.backward()
assert w.grad is not None
reconcile("the third element of w.grad", guess, w.grad[2].item(), "")

assert w.grad.tolist() == [1, 2, 3]  # the error, 1, times x
assert kept(x) is None  # not required
assert kept(prediction) is None and kept(loss) is None  # computed, but not kept

# %% [markdown]
r"""
`backward()` went from the loss back to `w` and stored a gradient in `w.grad`, and *only there*. To see why, look at the
path it followed. As you computed the loss, PyTorch recorded each operation that had an input requiring a gradient in
the **computational graph**: a node for each operation, with links to the operations that produced its inputs.
**Autograd** is the part of PyTorch that records the graph and computes gradients along it. You reach the graph through
the result's `grad_fn`. From there, each node's links are in its attribute `next_functions`: on the way back, the
operations that produced the inputs come *next*.
"""


# %%
def print_graph(node: Any, depth: int = 0) -> None:
    """The recorded operations, from the result backward."""
    if node is None:  # nothing on that side needs a gradient
        return
    print("    " * depth + type(node).__name__)
    for earlier, _ in node.next_functions:
        print_graph(earlier, depth + 1)


loss = 0.5 * (x @ w - 5) ** 2
print_graph(loss.grad_fn)

assert loss.grad_fn is not None and w.grad_fn is None and x.grad_fn is None
node: Any = loss.grad_fn
while node.next_functions:
    (node,) = (earlier for earlier, _ in node.next_functions if earlier is not None)
assert node.variable is w  # the path ends where a gradient will be stored

# %% [markdown]
r"""
The path ends at a node called `AccumulateGrad`, whose `variable` is `w`. These are the rules:

- A **leaf** is a tensor that wasn't produced by a recorded operation: your data, your parameters. (`tensor.is_leaf`)
- `requires_grad` says that this tensor, or a tensor it was computed from, needs a gradient. You set it on leaves, and
  whatever is computed from them inherits it.
- `backward()` stores a gradient in the `.grad` of each *leaf that requires one and that the graph reaches*. For
  intermediate (non-leaf) tensors, it computes the gradient, passes it on, and discards it.
- If you call `tensor.retain_grad()` first, `backward()` keeps that tensor's gradient, too; from then on
  `tensor.retains_grad` is True.
- Inside `with torch.no_grad():` nothing is recorded. `tensor.detach()` returns a tensor with the same numbers but no
  history. Neither lets gradients flow through.
"""

# %%
w = torch.tensor([1.0, 1.0, 1.0], requires_grad=True)
prediction = x @ w
prediction.retain_grad()
error = prediction - 5
assert w.is_leaf and x.is_leaf and not prediction.is_leaf
assert prediction.requires_grad and not x.requires_grad

(0.5 * error**2).backward()
# kept(t), from the folded cell above, is t.grad without PyTorch's warning.
assert kept(prediction) == 1 and kept(error) is None  # only one was retained

with torch.no_grad():
    unrecorded = x @ w
assert unrecorded.grad_fn is None and not unrecorded.requires_grad
assert prediction.detach().is_leaf and not prediction.detach().requires_grad

# %% [markdown]
r"""
> **Trap: gradients add up.** The node is called *Accumulate*Grad for a reason. A second `backward()` *adds* to the
> gradients that are already there. That's useful if a batch is too large and you process it in parts, and it's why a
> training loop clears the gradients in each step.

> **Trap: a parameter that isn't a leaf.** `torch.ones(3, requires_grad=True) * 0.1` is the *result* of an operation. So
> is the tensor from `.to(device)` or `.double()`, if it had to be moved or converted. Such a tensor gets no `.grad`,
> and an optimizer (the object that updates the parameters, lecture 08) won't accept it. Compute and convert the values
> first, then call `requires_grad_()` on the result.
"""

# %%
w.grad = None
for _ in range(2):
    (0.5 * (x @ w - 5) ** 2).backward()
assert w.grad is not None and w.grad.tolist() == [2, 4, 6]  # twice 1, 2, 3

scaled = torch.ones(3, requires_grad=True) * 0.1
converted = torch.ones(3, requires_grad=True).double()
unchanged = torch.ones(3, requires_grad=True).float()  # float32 already: nothing to do
mended = (torch.ones(3) * 0.1).requires_grad_()
assert not scaled.is_leaf and not converted.is_leaf
assert unchanged.is_leaf and mended.is_leaf
try:
    torch.optim.SGD([scaled], lr=0.1)
    raise AssertionError("it accepted a tensor that is not a leaf")
except ValueError as refusal:
    print(refusal)

# %% [markdown]
r"""
*Try it yourself:* call `.backward()` twice on the *same* loss. What does PyTorch complain about, and what has it thrown
away?

### Exercise 6.1 · Who keeps a gradient? (optional) &nbsp; ★★★ &nbsp; 25 minutes

Write `who_keeps_grad(loss, tensors)`. For each name in `tensors`, it returns `True` if `loss.backward()` would store a
gradient in that tensor's `.grad`, and `False` otherwise. It must not change anything: afterward, every `.grad` must be
what it was before, even for tensors that aren't in `tensors`, and `loss.backward()` must still work and fill the same
`.grad` attributes as it would have without your function. A `.grad` may exist already, from an earlier step, so its
presence proves nothing. `tensors` may be empty. `loss` is the result of a recorded operation and may itself be among
`tensors`. Each operation in the graph is one of PyTorch's own and produces one tensor. There are at most a few hundred
operations, though far more paths may lead through them, and none uses activation checkpointing (section 5).
"""


# %% nbgrader={"grade": false, "grade_id": "who_keeps_grad", "locked": false, "schema_version": 3, "solution": true, "task": false}
def who_keeps_grad(loss: Float[Tensor, ""], tensors: dict[str, Tensor]) -> dict[str, bool]:
    """For each name: would loss.backward() put a gradient into that tensor's .grad?"""
    ### BEGIN SOLUTION
    reached: set[Any] = set()
    waiting: list[Any] = [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in reached:
            reached.add(node)
            waiting += [earlier for earlier, _ in node.next_functions]
    leaves = [node.variable for node in reached if hasattr(node, "variable")]
    return {
        name: tensor.requires_grad
        and (
            any(tensor is leaf for leaf in leaves)
            or (tensor.retains_grad and tensor.grad_fn in reached)
        )
        for name, tensor in tensors.items()
    }
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_who_keeps_grad", "locked": true}
check("who_keeps_grad")

# %% [markdown]
r"""
<details><summary>Hint 1</summary><code>print_graph</code> above already walks the graph. Collect the nodes that it meets, each once, instead of printing them.</details>
<details><summary>Hint 2</summary>How do you get from a node to its leaf, and from an intermediate tensor to its node? Only AccumulateGrad nodes have a <code>variable</code> (compare it with <code>is</code>). And a tensor's <code>retains_grad</code> says whether it was asked to keep its gradient.</details>

### Why is `.grad` None? (optional)

**Why it matters.** "Why is `.grad` None?" is a question you'll ask yourself late one night. If `backward()` has run and
nothing has cleared the gradients since, there are four usual answers: the tensor doesn't require a gradient, it isn't a
leaf, the loss doesn't depend on it, or an operation between it and the loss wasn't recorded. The first two you can read
off the tensor. For the other two, the graph doesn't reach it: look in your code for a `detach()` or `no_grad()` on the
way to the loss. (An operation such as `split` needs care: it returns several tensors that share one node, so the graph
reaches that node even if the loss depends on only some of those tensors. The others get no gradient.) Here's one tensor
for each of the four answers, and one that gets its gradient:
"""

# %%
w, unused = (torch.ones(3, requires_grad=True) for _ in range(2))
frozen, behind = torch.ones(3), torch.ones(3, requires_grad=True)
scaled = 0.1 * w
loss = (x * scaled * frozen * behind.detach()).sum()
suspects = {"frozen": frozen, "scaled": scaled, "unused": unused, "behind": behind, "w": w}
said = who_keeps_grad(loss, suspects)  # before the backward pass
for name, keeps in said.items():
    print(f"{name:>6}: {keeps}")

loss.backward()
assert said == {name: kept(tensor) is not None for name, tensor in suspects.items()}
assert [name for name, keeps in said.items() if keeps] == ["w"]

# %% [markdown]
r"""
## 2 · Is the gradient right?

You can check autograd's answer without autograd. A gradient says how fast the loss changes when *one* number grows a
little, so let it grow a little, and see what happens. The simplest way is the *forward difference*. The *central
difference* takes a step in each direction; like the forward difference, it needs two evaluations of $f$, but it's far
more accurate:

$$\begin{split}
\text{forward: } & \frac{f(x + h) - f(x)}{h} \\
\text{central: } & \frac{f(x + h) - f(x - h)}{2h}
\end{split}$$

How small should the step $h$ be? As small as possible, it seems.

**Predict.** The slope of $\sin$ at 1 is $\cos 1$. Take central differences in float64, once with $h = 10^{-5}$ and once
with $h = 10^{-12}$. What's the ratio of the error with the smaller step to the error with the larger one? (If you think
the smaller step gives the smaller error, give a number below 1.)
"""

# %%
guess = None  # times


# %%
def slope_error(h: float, dtype: torch.dtype, central: bool) -> float:
    """Relative error of the slope of sin at 1, from differences with step h."""
    one, step = torch.tensor(1.0, dtype=dtype), torch.tensor(h, dtype=dtype)
    if central:
        slope = (torch.sin(one + step) - torch.sin(one - step)) / (2 * step)
    else:
        slope = (torch.sin(one + step) - torch.sin(one)) / step
    return abs(slope.item() / math.cos(1) - 1)


good, tiny = (slope_error(h, torch.float64, central=True) for h in (1e-5, 1e-12))
reconcile("the error with h = 1e-12", guess, tiny / good, "times that with h = 1e-5")

assert good < 1e-10 and tiny > 1e-6  # ten correct digits against fewer than six
assert slope_error(1e-5, torch.float64, central=False) > 1e4 * good

# %%
steps_tried = [10.0**-k for k in range(13, 2, -1)]
ways = {
    "central, float64": (torch.float64, True),
    "forward, float64": (torch.float64, False),
    "central, float32": (torch.float32, True),
}
errors = {
    name: [max(slope_error(h, dtype, central), 1e-16) for h in steps_tried]
    for name, (dtype, central) in ways.items()
}
figure = plots.curves(
    steps_tried,
    errors,
    xlabel="step h",
    ylabel="relative error of the slope",
    title="A step can be too small as well as too large",
)
plots.show(
    figure,
    alt="Relative error against the step, from 1e-13 to 0.001. In float64 it falls, to below "
    "1e-10 for central and to about 1e-8 for forward differences, and rises again. Float32 "
    "stays above 1e-6.",
)

least = {name: min(values) for name, values in errors.items()}
assert least["central, float64"] < 1e-10
assert 1e-9 < least["forward, float64"] < 1e-7 and least["central, float32"] > 1e-6

best = steps_tried[errors["central, float64"].index(least["central, float64"])]
assert 1e-7 < best < 1e-4  # around 1e-5
for central, power in ((True, 2), (False, 1)):  # a step ten times as long
    long, short = (slope_error(h, torch.float64, central) for h in (1e-3, 1e-4))
    assert round(math.log10(long / short), 2) == power

# %% [markdown]
r"""
There are two errors, one on each side of the plot. If the step is too large, the function isn't straight over that
distance. A central difference cancels the leading term of this error, so its error shrinks in proportion to $h^2$,
while that of the forward difference shrinks in proportion to $h$. If the step is too small, the two values agree in
nearly all their digits, and what's left after the subtraction is mostly rounding error, in the values of $f$ and in
$x \pm h$ themselves.

*Try it yourself:* in `slope_error` (in the folded cell above), take the slope at 1,000 instead of 1 (in `one` and in
`math.cos`). Which side of the curves moves, and why? (The assertions are for the slope at 1 and will fail.)

### Exercise 6.2 · A gradient without autograd &nbsp; ★★☆ &nbsp; 10 minutes

Write `numerical_gradient(f, x, step)`. It returns the gradient of `f` at `x` by central differences, in float64. You
can rely on `f`: it takes a tensor with the same shape as `x`, computes with PyTorch's operations alone (no `.item()`),
doesn't change its argument, and returns a tensor with one number, of shape `[]` or `[1]`. `x` may have any
floating-point dtype; always call `f` with float64, and return float64 in the shape of `x`. `x` has at least one
dimension, may have no elements or be non-contiguous, and must contain the same numbers afterward.
"""


# %% nbgrader={"grade": false, "grade_id": "numerical_gradient", "locked": false, "schema_version": 3, "solution": true, "task": false}
def numerical_gradient(
    f: Callable[[Tensor], Tensor], x: Float[Tensor, "*shape"], step: float = 1e-5
) -> Float64[Tensor, "*shape"]:
    """(f(x + step) - f(x - step)) / (2 step) for each element of x in turn."""
    ### BEGIN SOLUTION
    gradient = torch.zeros(x.shape, dtype=torch.float64)
    for index in itertools.product(*map(range, x.shape)):
        up, down = (x.to(torch.float64, copy=True) for _ in range(2))
        up[index] += step
        down[index] -= step
        gradient[index] = (f(up) - f(down)) / (2 * step)
    return gradient
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_numerical_gradient", "locked": true}
check("numerical_gradient")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>For each index, make two copies of x in float64, one with that element a step higher and one a step lower. <code>itertools.product(*map(range, x.shape))</code> yields all indices, each as a tuple that you can index with.</details>
<details><summary>Hint 2</summary><code>x.double()</code> doesn't copy if x is already float64. <code>x.to(torch.float64, copy=True)</code> always does.</details>

**Why it matters.** If you write a backward pass by hand, this is how you find out whether it's right: with *central
differences in float64 and a step around $10^{-5}$* (for values of magnitude around 1). PyTorch's
`torch.autograd.gradcheck` works the same way. You'll use your own version in the next section.

The exercise also shows how much work autograd saves you. Central differences need two evaluations *per parameter*. How
much would the gradient of a small model cost this way?
"""

# %%
small = nn.Sequential(nn.Linear(64, 64, bias=False), nn.Tanh(), nn.Linear(64, 8, bias=False))
points = torch.randn(16, 64, requires_grad=True)  # as if another layer came before
forward = count_flops(small, points)
step_work = count_flops(lambda: small(points).sum().backward())

numbers = points.numel() + sum(p.numel() for p in small.parameters())
print(f"central differences for {numbers:,} numbers: {2 * numbers:,} forward passes")
print(f"a forward and a backward pass: {step_work / forward:g} forward passes")

assert numbers == 4_608 + 1_024 == 5_632 and 2 * numbers == 11_264
assert step_work == 3 * forward

# %% [markdown]
r"""
That's 11,264 forward passes, two for each of the 4,608 parameters and 1,024 input numbers. Autograd computes the same
gradients for the price of 3. For a model with 8 billion parameters, central differences would take 16 billion forward
passes, and autograd would still cost only as much as 3. But why 3? Let's count.

## 3 · Two layers, product by product

Take $B$ tokens of $D$ numbers, two linear layers, and a loss:

$$\begin{split}
h_1\;[B, D] &= x\;[B, D] \cdot w_1\;[D, D] \\
h_2\;[B, K] &= h_1\;[B, D] \cdot w_2\;[D, K] \\
\text{loss} &= \operatorname{mean}(h_2^2)
\end{split}$$

The forward pass consists of two matrix products, so it takes $2BDD + 2BDK$ FLOPs (lecture 05). We count them on the
*meta device*, where a tensor has a shape but no memory, so the sizes may be as
large as we like.
"""

# %% tags=["item-62"]
B, D, K = 16_384, 32_768, 8_192
with torch.device("meta"):
    x = torch.empty(B, D)  # data: no gradient needed
    w1 = torch.empty(D, D, requires_grad=True)
    w2 = torch.empty(D, K, requires_grad=True)


def run_forward(x: Tensor, w1: Tensor, w2: Tensor) -> Tensor:
    """The loss of the two layers."""
    h1 = x @ w1
    h2 = h1 @ w2
    return h2.square().mean()


forward = count_flops(run_forward, x, w1, w2)
assert forward == 2 * B * D * D + 2 * B * D * K
with torch.no_grad():
    assert count_flops(run_forward, x, w1, w2) == forward  # not recorded, but still computed
print(f"forward: {readable(forward, 'FLOPs')}")

# %% [markdown]
r"""
Here's a small example with actual numbers. We keep the gradients of $h_1$ and $h_2$ with `retain_grad()` so that we can
look at them.
"""

# %% tags=["item-63"]
torch.manual_seed(0)
b, d, k = 3, 4, 2  # small enough for loops
x = torch.randn(b, d, dtype=torch.float64)
w1 = torch.randn(d, d, dtype=torch.float64, requires_grad=True)
w2 = torch.randn(d, k, dtype=torch.float64, requires_grad=True)

h1 = x @ w1
h2 = h1 @ w2
h1.retain_grad()
h2.retain_grad()
loss = h2.square().mean()
tensors = dict(w1=w1, w2=w2, h1=h1, h2=h2, x=x)
loss.backward()

grads = {name: kept(t) for name, t in tensors.items()}
assert {name for name, grad in grads.items() if grad is None} == {"x"}
assert all(grads[n].shape == t.shape for n, t in dict(w1=w1, w2=w2, h1=h1, h2=h2).items())
# The backward pass starts with the derivative of mean(h²).
assert torch.allclose(grads["h2"], 2 * h2 / (b * k))

# %% [markdown]
r"""
The backward pass starts at $h_2$. Its gradient is $2 h_2 / BK$, since the mean divides by the number of elements. A
gradient always has the shape and the dtype of its tensor.

**The weights $w_2$.** We call the token $i$, the input $j$ and the output $o$. The number $w_2[j, o]$ is used once for
each token $i$: it multiplies $h_1[i, j]$, and the product is added to $h_2[i, o]$. So it changes the loss through each
of the $B$ tokens, and these contributions add up. We write $\nabla w_2$ for the gradient of the loss with respect to
$w_2$:

$$\nabla w_2[j, o] = \sum_i h_1[i, j] \; \nabla h_2[i, o]$$

There's one multiplication and one addition for each *triple* $(i, j, o)$, and there are $B \cdot D \cdot K$ triples.
That's $2BDK$ FLOPs, as many as the layer's forward pass.
"""

# %% tags=["item-64"]
g2 = grads["h2"]
total = torch.zeros(d, k, dtype=torch.float64)
work = 0
for i, j, o in itertools.product(range(b), range(d), range(k)):  # token, input, output
    total[j, o] += h1[i, j].detach() * g2[i, o]  # detach, so that this is not recorded
    work += 2

assert torch.allclose(total, grads["w2"])
assert work == 2 * b * d * k
assert torch.allclose(h1.detach().T @ g2, grads["w2"])  # [D, B] @ [B, K]

# %% [markdown]
r"""
**The activations $h_1$.** To get further back, to $w_1$, we need to know how the loss depends on $h_1[i, j]$. That
number is multiplied by $K$ weights, one for each output of its own token:

$$\nabla h_1[i, j] = \sum_o w_2[j, o] \; \nabla h_2[i, o]$$

These are the same triples, but now the sum runs over a different index. Again it takes $2BDK$ FLOPs.
"""

# %% tags=["item-65"]
total = torch.zeros(b, d, dtype=torch.float64)
work = 0
for i, j, o in itertools.product(range(b), range(d), range(k)):
    total[i, j] += w2[j, o].detach() * g2[i, o]
    work += 2

assert torch.allclose(total, grads["h1"])
assert work == 2 * b * d * k
assert torch.allclose(g2 @ w2.detach().T, grads["h1"])  # [B, K] @ [K, D]

# %% [markdown]
r"""
**The weights $w_1$.** This works the same way as for $w_2$, one layer further back:
$\nabla w_1[j, o] = \sum_i x[i, j] \, \nabla h_1[i, o]$, with triples of a token, an input and an output. It takes
$2BDD$ FLOPs.

So the second layer needs *three products of the same size*, one forward and two backward. Written with `einsum`, all
three use the same three indices, each sums over a different one, and each takes $2BDK$ FLOPs:

| product | of | sums over | einsum |
|---|---|---|---|
| $h_2$ | $h_1$, $w_2$ | inputs | `ij,jo->io` |
| $\nabla w_2$ | $h_1$, $\nabla h_2$ | tokens | `ij,io->jo` |
| $\nabla h_1$ | $\nabla h_2$, $w_2$ | outputs | `io,jo->ij` |
"""

# %% tags=["item-66"]
g1 = grads["h1"]
total = torch.zeros(d, d, dtype=torch.float64)
work = 0
for i, j, o in itertools.product(range(b), range(d), range(d)):
    total[j, o] += x[i, j] * g1[i, o]
    work += 2

assert torch.allclose(total, grads["w1"])
assert work == 2 * b * d * d

assert torch.allclose(torch.einsum("ij, jo -> io", h1, w2), h2)
assert torch.allclose(torch.einsum("ij, io -> jo", h1, g2), grads["w2"])
assert torch.allclose(torch.einsum("io, jo -> ij", g2, w2), grads["h1"])

# %% [markdown]
r"""
*Try it yourself:* what happens if you write `g2 @ w2`, without the `.T`? If `k` were equal to `d`, you'd get no error,
just a wrong gradient. (That's why the sizes in tests should all differ.)

### Exercise 6.3 · Gradients by hand &nbsp; ★★☆ &nbsp; essential &nbsp; 15 minutes

Write `gradients_by_hand(x, w1, w2)`. It returns the pair `(gradient of w1, gradient of w2)` for
$\text{loss} = \operatorname{mean}\big((x\, w_1\, w_2)^2\big)$, each in the shape and dtype of its weights. Use `@` or
`einsum`, but not autograd: the tests run your function with recording switched off. Here $w_1$ is $[D, H]$ and $w_2$ is
$[H, K]$; the sizes $B$, $D$, $H$, $K$ are at least 1 and may all differ or all be the same. The three tensors have the
same floating-point dtype, in which no sum or product overflows, nor $B \cdot K$; they may be non-contiguous, and you
must not change them. In 16 bits, it's up to you where the sums are rounded.
"""


# %% nbgrader={"grade": false, "grade_id": "gradients_by_hand", "locked": false, "schema_version": 3, "solution": true, "task": false}
def gradients_by_hand(
    x: Float[Tensor, "B D"], w1: Float[Tensor, "D H"], w2: Float[Tensor, "H K"]
) -> tuple[Float[Tensor, "D H"], Float[Tensor, "H K"]]:
    """Gradients of mean((x @ w1 @ w2)²) with respect to w1 and w2."""
    ### BEGIN SOLUTION
    h1 = x @ w1
    h2 = h1 @ w2
    grad_h2 = 2 * h2 / h2.numel()
    grad_w2 = h1.T @ grad_h2
    grad_h1 = grad_h2 @ w2.T
    grad_w1 = x.T @ grad_h1
    return grad_w1, grad_w2
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_gradients_by_hand", "locked": true}
check("gradients_by_hand")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Go forward and keep h1 and h2. The backward pass starts with the gradient of h2, which is 2 · h2 / (B · K). Then come w2, h1, w1, in that order.</details>
<details><summary>Hint 2</summary>Let the shapes guide you. The gradient of w2 is [H, K]; you have h1, [B, H], and the gradient of h2, [B, K]. Over which index do you have to sum?</details>

**Why it matters.** This is the backward pass of every linear layer. When you define an operation that needs its own
backward pass, you can now write that pass and check it.

Let's check your hand-written gradients against your own numerical gradient:
"""

# %%
torch.manual_seed(0)
x, w1, w2 = (torch.randn(*shape) for shape in ((6, 5), (5, 4), (4, 3)))
by_hand = gradients_by_hand(x.double(), w1.double(), w2.double())
numerical_w1 = numerical_gradient(lambda w: run_forward(x.double(), w, w2.double()), w1)
numerical_w2 = numerical_gradient(lambda w: run_forward(x.double(), w1.double(), w), w2)
for name, mine, checked in zip(
    ("w1", "w2"), by_hand, (numerical_w1, numerical_w2), strict=True
):
    print(f"{name}: largest difference {(mine - checked).abs().max().item():.1e}")
    assert torch.allclose(mine, checked, rtol=1e-6, atol=1e-8)

# %% [markdown]
r"""
## 4 · Two, four, six

If every layer computes one product forward and two backward, all of the same size, the backward pass costs twice as
much as the forward pass. With 2 FLOPs per parameter per token for the forward pass, that gives

$$\begin{split}
& \underbrace{2}_{\text{forward}} + \underbrace{2}_{\nabla w} + \underbrace{2}_{\nabla h} = 6 \\
& \text{FLOPs of a step} \approx 6 \cdot \text{tokens} \cdot \text{parameters}
\end{split}$$

This is the **6N rule**: training takes six FLOPs per parameter per token. Let's test it on our two layers.

**Predict.** Let $D$ and $K$ be equal, so that both layers have the same size. What's the ratio of the FLOPs of the
*backward* pass to those of the forward pass, according to PyTorch's counter?
"""

# %%
guess = None  # times the forward pass


# %%
def step_flops(x: Tensor, w1: Tensor, w2: Tensor) -> tuple[int, int]:
    """FLOPs of the forward pass, and of the backward pass."""
    forward = count_flops(run_forward, x, w1, w2)
    both = count_flops(lambda: run_forward(x, w1, w2).backward())
    return forward, both - forward


with torch.device("meta"):
    x = torch.empty(B, D)
    w1 = torch.empty(D, D, requires_grad=True)
    w2 = torch.empty(D, D, requires_grad=True)
forward, backward = step_flops(x, w1, w2)
reconcile(
    "the backward pass of two equal layers", guess, backward / forward, "times the forward pass"
)

assert backward / forward == 1.5

# %% [markdown]
r"""
> **Trap: two products for each layer.** If $w_1$ has the shape $[D, D]$ and $w_2$ the shape $[D, K]$, two products for
> each layer would make $4BDD + 4BDK$ for the backward pass. Look at the two layers again: what would each of the four
> products be used for? Decide before you run the next cell.
"""

# %% tags=["error-5", "folded"]
with torch.device("meta"):
    x = torch.empty(B, D)
    w1 = torch.empty(D, D, requires_grad=True)
    w2 = torch.empty(D, K, requires_grad=True)
forward, backward = step_flops(x, w1, w2)
assert backward == 2 * B * D * D + 4 * B * D * K  # what autograd computes
assert backward != 4 * B * D * D + 4 * B * D * K  # two products for each layer

_, with_x = step_flops(x.requires_grad_(), w1, w2)
assert with_x == 4 * B * D * D + 4 * B * D * K  # now x.grad is needed
assert with_x - backward == 2 * B * D * D
print(f"{backward:,} FLOPs, and {with_x:,} if x needs its gradient too: 2·B·D·D more")

# %% [markdown]
r"""
Autograd skips $\nabla x$. The data isn't a parameter, so nobody needs its gradient, and no gradient further back is
computed from it. For each product of the forward pass, autograd computes *one product for each of its two factors that
needs a gradient, and nothing else*.

How much does that matter? For two equal layers, the skipped product is a sixth of what the rule says; with more layers,
its share is smaller. In a language model it doesn't matter at all: the input of the first linear layer comes from the
*embedding table*, which holds one vector for each possible token and is trained. So that gradient is needed, and six is
exact for the linear layers.
"""

# %% tags=["item-67"]
tokens, width = 32, 64
for depth in (1, 2, 4, 8, 32):
    stack = nn.Sequential(*(nn.Linear(width, width, bias=False) for _ in range(depth)))
    parameters = sum(p.numel() for p in stack.parameters())
    data = torch.randn(tokens, width)
    counted = count_flops(lambda: stack(data).sum().backward())
    needed = data.clone().requires_grad_()
    in_full = count_flops(lambda: stack(needed).sum().backward())

    per_token = counted / (tokens * parameters)  # FLOPs per parameter per token
    print(
        f"depth {depth:>2}: {per_token:.4f}, "
        f"with the input's gradient {in_full / (tokens * parameters):g}"
    )
    assert per_token == 6 - 2 / depth
    assert in_full == 6 * tokens * parameters

# %% [markdown]
r"""
Does the clock agree with the count? The next cell times such a chain of layers on your device, with an input that
requires a gradient: first the forward pass alone, then the forward and backward passes together.

**Predict.** By the count, both passes together are exactly 3 times the work of the forward pass alone. On *your* clock,
what's the ratio of the times?
"""

# %%
guess = None  # times the forward pass

# %% tags=["timed"]
if device.type == "cpu":  # leave one core for other programs (lecture 05)
    torch.set_num_threads(max(1, torch.get_num_threads() - 1))
tokens, width, depth = (8_192, 4_096, 6) if devices.on_gpu(device) else (1_024, 512, 6)
dtype = torch.bfloat16 if devices.on_gpu(device) else torch.float32
stack = nn.Sequential(*(nn.Linear(width, width, bias=False) for _ in range(depth)))
stack = stack.to(device=device, dtype=dtype)
data = torch.randn(tokens, width, device=device, dtype=dtype).requires_grad_()
# The gradient of the output: with it, backward() needs no loss.
upstream = torch.randn(tokens, width, device=device, dtype=dtype)


def forward_only() -> None:
    with torch.no_grad():
        stack(data)


def whole_step() -> None:
    stack.zero_grad()  # otherwise gradients of several calls would add up
    data.grad = None
    stack(data).backward(upstream)


flops = {"forward": count_flops(forward_only), "step": count_flops(whole_step)}
taken = {
    "forward": timing.benchmark(forward_only, device=device),
    "step": timing.benchmark(whole_step, device=device),
}
for name, seconds in taken.items():
    speed = readable(flops[name] / seconds.minimum, "FLOP/s")
    print(f"{name:>8}: {readable(flops[name], 'FLOPs')}, at best {speed}\n{'':>10}{seconds}")
times = taken["step"].minimum / taken["forward"].minimum
reconcile("a whole step, by the clock", guess, times, "times the forward pass")
print(
    "On an idle machine it's about 3 or slightly more. If yours is far off, look at the ranges in "
    "parentheses: a wide one means that something else was running."
)

assert flops["step"] == 3 * flops["forward"]

# %% [markdown]
r"""
Two things may explain the rest, which the count leaves out: the backward products read their matrices in a different
order, and memory has to be allocated for the gradients. A real model also spends time on elementwise operations, which
aren't in the count either (lecture 05), so its ratio may differ more.

*Try it yourself:* put an `nn.Tanh()` after each layer of `stack`. The count stays the same. Does the time?

### Find the mistake: another way to get six

You'll also meet this derivation: "For each parameter and token, 2 FLOPs forward, 2 backward, and 2 for the update of
the parameter." The sum is right, so no calculation with the sum will show the mistake. Here it is as code:
"""


# %%
def parts_as_found(parameters: int, tokens: int) -> dict[str, int]:
    """FLOPs of a training step, part by part."""
    work = 2 * parameters * tokens
    return {"forward": work, "backward": work, "update": work}


assert sum(parts_as_found(10**9, 10**6).values()) == 6 * 10**9 * 10**6

# %% [markdown]
r"""
### Exercise 6.4 · The parts of a step &nbsp; ★☆☆ &nbsp; 5 minutes

Write `step_parts(parameters, micro_batches, update_flops)`. It returns three integers, the exact FLOPs of the forward
passes, of the backward passes, and of the update in *one* training step. The batch is processed in parts, called
*microbatches*: `micro_batches` is a list with the number of tokens in each part. There's at least one part, and each
has at least one token. Each part goes through the model forward and backward, and the gradients add up (section 1;
leave out these additions). Then the optimizer updates each parameter once, with `update_flops` FLOPs per parameter. All
of the `parameters` are trained weights of linear layers, and the input's gradient is needed.
"""


# %% nbgrader={"grade": false, "grade_id": "step_parts", "locked": false, "schema_version": 3, "solution": true, "task": false}
def step_parts(
    parameters: int, micro_batches: Sequence[int], update_flops: int
) -> tuple[int, int, int]:
    """FLOPs of the forward passes, the backward passes, and the update in one step over all microbatches."""
    ### BEGIN SOLUTION
    tokens = sum(micro_batches)
    return 2 * parameters * tokens, 4 * parameters * tokens, update_flops * parameters
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_step_parts", "locked": true}
check("step_parts")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>How many products does a layer compute in the backward pass, and of what size? And how often is a parameter updated in a step with a million tokens?</details>
<details><summary>Hint 2</summary>For the forward and backward passes, only the total number of tokens matters. The update doesn't depend on it.</details>

**Why it matters.** The wrong derivation gets the forward pass and the sum right, and the rest wrong: how long the
backward pass takes, what you save by training only part of a model (exercise 6.5), what it costs to compute activations
twice (section 5), and whether the update costs more in a larger batch. PyTorch's counter agrees with you:
"""

# %% tags=["error-30"]
width, parts = 64, [32, 32, 16]  # three microbatches
stack = nn.Sequential(*(nn.Linear(width, width, bias=False) for _ in range(4)))
parameters = sum(p.numel() for p in stack.parameters())
forward = both = 0
for size in parts:
    data = torch.randn(size, width, requires_grad=True)
    forward += count_flops(stack, data)
    both += count_flops(lambda: stack(data).sum().backward())

assert tuple(step_parts(parameters, parts, 20)[:2]) == (forward, both - forward)
as_found = parts_as_found(parameters, sum(parts))
assert sum(as_found.values()) == both and as_found["backward"] != both - forward

# 8 billion parameters, a million tokens, and 20 FLOPs to update a parameter:
*products, update = step_parts(8 * 10**9, [10**6], 20)
share = update / (sum(products) + update)
print(f"the update does {share:.4%} of the work; by the wrong derivation it does a third")
assert share < 1e-5

# %% [markdown]
r"""
### Exercise 6.5 · What the backward pass costs &nbsp; ★★☆ &nbsp; essential &nbsp; 15 minutes

Often, only part of a model is trained, and the rest is *frozen*. Write `backward_flops(tokens, widths, trainable,
input_needs_grad)`. It returns the FLOPs of the backward pass of a chain of linear layers without biases. Layer $i$
turns `widths[i]` numbers into `widths[i + 1]`; `trainable[i]` says whether its weights require a gradient, and
`input_needs_grad` says whether the chain's input does. Count the products that are *needed*, as autograd does, and
nothing else. If no gradient is needed anywhere, the answer is 0. There are one to a few hundred layers, none with more
than $2^{60}$ weights. Your count must be exact, even for sizes that wouldn't fit in any machine's memory; floats, with
their 53 bits, can't represent every integer that large.
"""


# %% nbgrader={"grade": false, "grade_id": "backward_flops", "locked": false, "schema_version": 3, "solution": true, "task": false}
def backward_flops(
    tokens: int, widths: Sequence[int], trainable: Sequence[bool], input_needs_grad: bool
) -> int:
    """FLOPs of the backward pass of a chain of linear layers, from widths[0] to widths[-1]."""
    ### BEGIN SOLUTION
    total = 0
    needed_before = input_needs_grad  # does anything before this layer need a gradient?
    for layer, trained in enumerate(trainable):
        product = 2 * tokens * widths[layer] * widths[layer + 1]
        total += product * (trained + needed_before)
        needed_before = needed_before or trained
    return total
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_backward_flops", "locked": true}
check("backward_flops")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>For each layer there are two questions. Are its weights trained? Then there's a product for their gradient. Does anything <em>before</em> it need a gradient? Then there's a product to pass it back.</details>
<details><summary>Hint 2</summary>Go through the layers from the first to the last, and keep track of whether anything so far needs a gradient. The input comes before all of them.</details>

**Why it matters.** To count correctly, don't think "twice the forward pass"; think "one product per factor that needs a
gradient". This also tells you what freezing saves. Let's compare with autograd:
"""

# %%
widths, tokens = [48, 64, 64, 64, 16], 32
cases = {
    "all trained": [True] * 4,
    "only the last layer": [False, False, False, True],
    "only the first layer": [True, False, False, False],
}
whole = backward_flops(tokens, widths, [True] * 4, False)
for name, trainable in cases.items():
    stack = nn.Sequential(*(nn.Linear(a, b, bias=False) for a, b in itertools.pairwise(widths)))
    for layer, trained in zip(stack, trainable, strict=True):
        layer.requires_grad_(trained)
    data = torch.randn(tokens, widths[0])
    forward = count_flops(stack, data)
    counted = count_flops(lambda: stack(data).sum().backward()) - forward
    print(f"{name:>20}: {counted / whole:4.0%} of the backward FLOPs of full training")
    assert counted == backward_flops(tokens, widths, trainable, False)

# %% [markdown]
r"""
Training only the last layer is cheap. Training only the *first* isn't, because the gradient has to be passed back
through all the others. (LoRA, a fine-tuning method that you'll meet in lecture 11, trains small extra matrices in all
layers. It avoids the gradients of the large matrices and their optimizer state (lecture 08), but not this part of the
backward pass.)

## 5 · Where the rule fails

$6 \cdot \text{tokens} \cdot \text{parameters}$ assumes that each parameter takes part in one multiply-add per token in
each of three products. You've seen one exception, the input of the first layer. Here are four more: attention,
embeddings, recomputation, and mixtures of experts.

**Attention multiplies without parameters.** In each layer, the scores and the weighted sums of a sequence of $T$ tokens
of width $d$ take $4T^2d$ FLOPs in the forward pass (lecture 05). Both factors of both products need a gradient, so the
backward pass takes twice that. In total, it's $12\,T^2 d$ for each sequence, or $12\,T d$ for each token, in each
layer.
"""


# %%
def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Each token's weighted average of the values; all tensors are [heads, tokens, features of a head]."""
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return scores.softmax(dim=-1) @ v


heads, T, d = 8, 1_024, 512
with torch.device("meta"):
    q, k, v = (torch.empty(heads, T, d // heads, requires_grad=True) for _ in range(3))

assert count_flops(attention, q, k, v) == 4 * T**2 * d
attention_step = count_flops(lambda: attention(q, k, v).sum().backward())
assert attention_step == 12 * T**2 * d
print(
    f"attention, {T} tokens of width {d}: {attention_step / T:,.0f} FLOPs per token, 0 parameters"
)

# %% [markdown]
r"""
(A causal model uses only half of the scores, and a good kernel skips most of the other half. We count them all, as in
lecture 05.)

**Embeddings are parameters that don't multiply.** A row of the table is looked up, and in the backward pass the
gradient is *added* to the same row of the table's gradient. Neither step involves a matrix product. By contrast, the
output layer, which turns each vector into a score for each token of the vocabulary, is an ordinary linear layer and
costs the full six. (Some models use *one* table for both; such *tied* weights are stored once and multiplied once.)
"""

# %% tags=["error-17"]
vocabulary, width, tokens = 1_000, 64, 32
ids = torch.randint(vocabulary, (tokens,))
table = nn.Embedding(vocabulary, width)
head = nn.Linear(width, vocabulary, bias=False)

look_up = count_flops(lambda: table(ids).sum().backward())
assert look_up == 0 and table.weight.grad is not None  # a gradient, but no FLOPs

parameters = table.weight.numel() + head.weight.numel()
counted = count_flops(lambda: head(table(ids)).sum().backward())
assert counted == 6 * tokens * head.weight.numel()
assert counted == 6 * tokens * parameters / 2  # 6N is twice as much

head.weight = table.weight  # tied: one tensor, used twice
assert (
    count_flops(lambda: head(table(ids)).sum().backward()) == 6 * tokens * table.weight.numel()
)

# %% [markdown]
r"""
> **Trap: two opposite errors.** People quote "2 · tokens · parameters forward, 6 to train" without these exceptions.
> That counts the look-up as if it were a multiplication, which makes the result too large, and it ignores attention,
> which makes it too small. In a small model the table may be a large part of all parameters; with a long context,
> attention is most of the work.

**Recomputation adds two.** The backward pass needs $h_1$ again to compute $\nabla w_2$ (section 3). So the forward pass
has to *keep* its activations, and they may not fit into memory. *Activation checkpointing* keeps only a few of them and
computes the others a second time when the backward pass needs them (lecture 11). That can cost as much as one more
forward pass, which makes 2 + 2 + 4 = 8 FLOPs per parameter per token.
"""


# %%
class Block(nn.Sequential):
    """A linear layer and a ReLU."""

    def __init__(self, width: int) -> None:
        super().__init__(nn.Linear(width, width, bias=False), nn.ReLU())


def run_blocks(x: Tensor, blocks: nn.ModuleList, recompute: bool) -> Tensor:
    """Run all blocks; with recompute, each keeps only its input."""
    for block in blocks:
        x = checkpoint(block, x, use_reentrant=False) if recompute else block(x)
    return x


width, tokens, depth = 64, 32, 6
blocks = nn.ModuleList(Block(width) for _ in range(depth))
parameters = sum(p.numel() for p in blocks.parameters())
data = torch.randn(tokens, width, requires_grad=True)
rates = {}
for recompute in (False, True):
    counted = count_flops(lambda: run_blocks(data, blocks, recompute).sum().backward())
    rates[recompute] = counted / (tokens * parameters)
    print(f"recompute {recompute!s:>5}: {rates[recompute]:g} FLOPs per parameter per token")

assert rates == {False: 6, True: 8}

# %% [markdown]
r"""
That's why there are two measures of utilization (lecture 05). MFU counts the 6 FLOPs that the model needs; HFU counts
the 8 that the hardware executes. Lecture 11 shows what the extra third buys.

*Try it yourself:* in `Block`, put the ReLU *before* the linear layer, so that the block ends with a product. Is the
number still 8, as the assertion says? Does anything need that product again?

**A mixture of experts skips most of its parameters.** Can a model have more parameters without more work per token? A
Transformer layer contains attention and a feed-forward block (lecture 01). In a **mixture of experts** (MoE), a layer has many feed-forward blocks, called *experts*, and each token uses
only a few of them. A small linear layer, the **router**, gives each expert a score for each token. Only the experts
with the highest scores process the token, and their outputs are added up, weighted by the scores.

So such a model has two sizes. Its *total parameters* are all that it has. A model's **active parameters** are those
that take part in processing one token. An expert that a token doesn't use takes no part in that token's products,
forward or backward, so the rule becomes *6 × active parameters* per token. Memory depends on the total: the next token
may need any expert, so all of them have to be there. Let's count the FLOPs of such a layer, with 8 experts, of which
each token uses 2:
"""


# %%
class MixtureOfExperts(nn.Module):
    """A router and experts of two linear layers; each token goes through `used` of the experts."""

    def __init__(self, width: int, hidden: int, experts: int, used: int) -> None:
        super().__init__()
        self.used = used
        self.router = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(
                nn.Linear(width, hidden, bias=False),
                nn.ReLU(),
                nn.Linear(hidden, width, bias=False),
            )
            for _ in range(experts)
        )

    def forward(self, x: Float[Tensor, "tokens width"]) -> Float[Tensor, "tokens width"]:
        scores, chosen = self.router(x).softmax(dim=-1).topk(self.used)  # both [tokens, used]
        y = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            token, place = (chosen == number).nonzero(as_tuple=True)  # who uses this expert
            y = y.index_add(0, token, scores[token, place, None] * expert(x[token]))
        return y


torch.manual_seed(0)
tokens, width, hidden, experts, used = 256, 64, 256, 8, 2
layer = MixtureOfExperts(width, hidden, experts, used)
total = sum(p.numel() for p in layer.parameters())
active = layer.router.weight.numel() + used * 2 * width * hidden
x = torch.randn(tokens, width, requires_grad=True)  # as if another layer came before
counted = count_flops(lambda: layer(x).sum().backward())

print(f"{total:,} parameters, {active:,} of them active")
print(f"{counted / (tokens * active):g} FLOPs per active parameter per token")
assert counted == 6 * tokens * active  # to the last FLOP
assert counted < 0.26 * (6 * tokens * total)  # 6 × total would be four times as much

# %% [markdown]
r"""
**Predict.** DeepSeek-V3 is a mixture of experts with 671 billion parameters, 37 billion of them active, trained on 14.8
trillion tokens (arXiv:2412.19437). Llama 3 405B isn't one: each of its 15.6 trillion tokens goes through all of its
layers, so we count all 405 billion parameters. Going by the rule, what's the ratio of Llama 3 405B's training FLOPs to
DeepSeek-V3's?
"""

# %%
guess = None  # times

# %%
sizes = {
    "DeepSeek-V3": (
        "DeepSeek-V3 parameters",
        "DeepSeek-V3 active parameters",
        "DeepSeek-V3 tokens",
    ),
    "Llama 3 405B": ("Llama 3.1 405B parameters",) * 2 + ("Llama 3.1 405B tokens",),
}
work, held = {}, {}  # FLOPs of the training, bytes of the weights
for name, numbers in sizes.items():
    total_of, active_of, tokens_of = (FACTS[number].value for number in numbers)
    work[name], held[name] = 6 * active_of * tokens_of, 2 * total_of
    weights = readable(held[name], "B")
    print(f"{name:>12}: {work[name]:.1e} FLOPs to train, {weights} of weights in bfloat16")

times = work["Llama 3 405B"] / work["DeepSeek-V3"]
reconcile("Llama 3 405B's training", guess, times, "times the FLOPs of DeepSeek-V3's")

assert round(times, 1) == 11.6
assert f"{work['DeepSeek-V3']:.1e}" == "3.3e+24"
assert round(held["DeepSeek-V3"] / held["Llama 3 405B"], 1) == 1.7
assert round(held["DeepSeek-V3"] / 1e12, 2) == 1.34

# %% [markdown]
r"""
The price of a mixture of experts is memory: 1.34 TB for DeepSeek-V3's weights alone, at two bytes each, about 1.7 times
as much as Llama's weights take. And each expert sees only some of the tokens, in our layer a quarter of them on
average. So its matrix products have fewer rows, and fewer rows mean a lower arithmetic intensity (lecture 05).

What else is there? Biases and normalization layers have parameters, too, but only a few, and these take part in no
matrix product. An optimizer such as SGD or AdamW does a handful of operations for each parameter, but only once per
*step*, not once per token, so with thousands of tokens per step, its cost is negligible. Our count, which has only
matrix products, leaves all of this out, although it takes time.

*Try it yourself:* how many tokens does each expert of `layer` get? Print
`layer.router(x).topk(2).indices.flatten().bincount()`. If each expert were on a GPU of its own, which one would
determine how long a step takes?

### Exercise 6.6 · Better than 6N &nbsp; ★★☆ &nbsp; essential &nbsp; 15 minutes

Write two functions for a *dense* Transformer language model (one without experts) whose parameters are all trained,
without recomputation.

`flops_per_token(parameters, layers, d, context, vocab, tied)` returns the FLOPs to train on one token, forward and
backward, as an `int`, or as a float equal to it up to rounding. `parameters` is the number of weights in *all* matrices
of the model: the embedding table (`vocab` × `d`), the layers, and the output layer (`d` × `vocab`). If `tied`, the
table and the output layer are the same matrix, and `parameters` counts it once. Count attention in full, including the
scores that a causal model doesn't use; all heads together have `d` numbers per token.

`six_n_error(parameters, layers, d, context, vocab, tied)` returns the relative error of `6 · parameters`:
(6N − exact) / exact. It's negative if the rule predicts too little.
"""


# %% nbgrader={"grade": false, "grade_id": "flops_per_token", "locked": false, "schema_version": 3, "solution": true, "task": false}
def flops_per_token(
    parameters: int, layers: int, d: int, context: int, vocab: int, tied: bool = False
) -> int:
    """FLOPs to train on one token: the matrices that multiply, and attention over the context."""
    ### BEGIN SOLUTION
    multiplied = parameters if tied else parameters - vocab * d
    return 6 * multiplied + 12 * layers * d * context
    ### END SOLUTION


def six_n_error(
    parameters: int, layers: int, d: int, context: int, vocab: int, tied: bool = False
) -> float:
    """(6 · parameters − exact) / exact; negative if 6N predicts too little."""
    ### BEGIN SOLUTION
    exact = flops_per_token(parameters, layers, d, context, vocab, tied)
    return (6 * parameters - exact) / exact
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_flops_per_token", "locked": true}
check("flops_per_token")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Which of the parameters are multiplied? All but the table, unless the table is also the output layer. Each of those costs 6 per token.</details>
<details><summary>Hint 2</summary>Attention computes two products in each layer, the scores and the weighted sum. What do they cost for one token, over all heads? And what do they cost backward?</details>

**Why it matters.** PaLM's authors computed its MFU from $6N + 12\,L\,H\,Q\,T$ FLOPs per token, where $L$ is the number
of layers, $H$ the number of heads and $Q$ the width of a head (appendix B; in most models $H Q = d$, but not in PaLM).
When you compare two MFUs, check whether both include the second term, and which parameters each of them counts in $N$.

## 6 · Llama 3, to the last FLOP

Now let's count a real model. This is Llama 3 (lecture 00's Llama 3.1), with the shapes from its paper (*The Llama 3
Herd of Models*, 2024, table 3; the released vocabulary has 128,256 tokens). On the meta device it takes no memory, even
with 405 billion parameters.
Two things are new, and neither changes our formula. Several heads share their keys and values, so the matrices that
compute these are smaller, but each head still computes its own scores. And the feed-forward block has three matrices.
The rest contains no matrix product: RMSNorm (exercise 1.4 with a learned scale), SiLU (a smooth relative of the ReLU),
and the addition of each block's input to its output. (We left out the rotary positional embeddings, RoPE, which encode
where each token is; they're elementwise and have no parameters.)
"""


# %%
class Layer(nn.Module):
    """One layer of Llama 3: attention with shared keys and values, then feed-forward."""

    def __init__(self, d: int, heads: int, kv_heads: int, hidden: int) -> None:
        super().__init__()
        self.size, self.share = d // heads, heads // kv_heads
        kv = kv_heads * self.size
        self.norm_1, self.norm_2 = nn.RMSNorm(d), nn.RMSNorm(d)
        self.q, self.o = nn.Linear(d, d, bias=False), nn.Linear(d, d, bias=False)
        self.k, self.v = nn.Linear(d, kv, bias=False), nn.Linear(d, kv, bias=False)
        self.gate, self.up = nn.Linear(d, hidden, bias=False), nn.Linear(d, hidden, bias=False)
        self.down = nn.Linear(hidden, d, bias=False)

    def forward(self, x: Float[Tensor, "T d"]) -> Float[Tensor, "T d"]:
        y = self.norm_1(x)
        q, k, v = (
            part(y).unflatten(-1, (-1, self.size)).transpose(0, 1)
            for part in (self.q, self.k, self.v)
        )
        k, v = (t.repeat_interleave(self.share, dim=0) for t in (k, v))
        x = x + self.o(attention(q, k, v).transpose(0, 1).flatten(1))
        y = self.norm_2(x)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    """Llama 3 on one sequence, without positional embeddings."""

    def __init__(
        self, layers: int, d: int, heads: int, kv_heads: int, hidden: int, vocab: int
    ) -> None:
        super().__init__()
        self.table = nn.Embedding(vocab, d)
        self.layers = nn.Sequential(*(Layer(d, heads, kv_heads, hidden) for _ in range(layers)))
        self.norm = nn.RMSNorm(d)
        self.head = nn.Linear(d, vocab, bias=False)

    def forward(self, ids: Int[Tensor, "T"]) -> Float[Tensor, "T vocab"]:
        return self.head(self.norm(self.layers(self.table(ids))))


def count_step(model: nn.Module, context: int) -> int:
    """FLOPs of a forward and a backward pass on one sequence, as PyTorch's counter sees them."""
    ids = torch.zeros(context, dtype=torch.int64, device="meta")
    return count_flops(lambda: nn.functional.cross_entropy(model(ids), ids).backward())


shape_of = ("layers", "width", "heads", "key and value heads", "feed forward width")
vocab = int(FACTS["Llama 3.1 vocabulary"].value)
llamas = {
    size: tuple(int(FACTS[f"Llama 3.1 {size} {what}"].value) for what in shape_of)
    for size in ("8B", "70B", "405B")
}
assert llamas["8B"] == (32, 4_096, 32, 8, 14_336) and vocab == 128_256
with torch.device("meta"):
    model = Llama(*llamas["8B"], vocab)
total = sum(p.numel() for p in model.parameters())
assert total == FACTS["Llama 3.1 8B parameters"].value == 8_030_261_248

layers, d = llamas["8B"][:2]
matrices = sum(p.numel() for p in model.parameters() if p.dim() == 2)  # all but the norms
assert total - matrices < 1e-4 * total  # of which there are few
print(
    f"{matrices:,} weights in matrices, {vocab * d / matrices:.1%} of them in the embedding table"
)

# %% [markdown]
r"""
The two errors from the trap in section 5 (counting the table, ignoring attention) have opposite signs. At one context
length they cancel, and $6N$ is exactly right for the wrong reasons.

**Predict.** The model has 32 layers of width 4,096. At how many tokens of context does this happen? (The rule charges 6
FLOPs for each of the table's `vocab · d` weights.)
"""

# %%
guess = None  # tokens

# %%
# Where the two terms cancel
cancel = 6 * vocab * d / (12 * layers * d)
reconcile("the context at which 6N is right by accident", guess, cancel, "tokens")

assert cancel == vocab / (2 * layers) == 2_004
assert abs(six_n_error(matrices, layers, d, 2_004, vocab)) < 1e-12
assert count_step(model, 2_004) == 6 * matrices * 2_004  # and the counter agrees, to the FLOP

# %% [markdown]
r"""
Now we compare your formula with PyTorch's count of each product in a forward and backward
pass, for short contexts and long ones.

**Predict.** At a context of 131,072 tokens, what fraction of the work does $6N$ account for? Write a number between 0
and 1.
"""

# %%
guess = None  # between 0 and 1

# %%
contexts = [512, 2_004, 8_192, 32_768, 131_072]
print(f"{'context':>7} {'per token':>11} {'attention':>9} {'6N off by':>9}")
counted_per_token, mine, rule = [], [], []  # GFLOPs
for context in contexts:
    counted = count_step(model, context)
    predicted = flops_per_token(matrices, layers, d, context, vocab)
    assert math.isclose(counted, predicted * context)
    counted_per_token.append(counted / context / 1e9)
    mine.append(predicted / 1e9)
    rule.append(6 * matrices / 1e9)
    share = 12 * layers * d * context / predicted
    off = six_n_error(matrices, layers, d, context, vocab)
    print(f"{context:>7,} {readable(predicted, 'FLOPs'):>11} {share:>9.1%} {off:>+9.1%}")

seen_by_rule = rule[-1] / counted_per_token[-1]
reconcile("6N at 131,072 tokens", guess, seen_by_rule, "of the work")

assert round(seen_by_rule, 2) == 0.19
assert abs(six_n_error(matrices, layers, d, 512, vocab)) < 0.06
assert round(six_n_error(matrices, layers, d, 8_192, vocab), 3) == -0.168

# %%
finding = (
    f"Llama 3 8B: 6N is exact at 2,004 tokens; at 131,072 it is {seen_by_rule:.0%} of the work"
)
figure = plots.curves(
    contexts,
    {"a training step": counted_per_token},
    {"a training step": mine, "6N": rule},
    xlabel="context (tokens)",
    ylabel="GFLOPs per token",
    against="counted",
    title=finding,
)
plots.show(
    figure,
    alt=f"{finding}. The count rises from 46 to 251 GFLOPs per token; your prediction lies "
    "on it. 6N is a flat line at 48.",
)

assert round(counted_per_token[0]) == 46 and round(counted_per_token[-1]) == 251
assert round(rule[0]) == 48

# %% [markdown]
r"""
Your formula agrees with the count at every context length. The flat line in the plot is what you'd get from parameter
counts alone.

Here are the larger models too, at a context length of 8,192 tokens, which was used for most of their training:
"""

# %%
missed = []
print(f"{'':>5} {'parameters':>15} {'per token':>11} {'6N off by':>9}")
for name, shape in llamas.items():
    with torch.device("meta"):
        model = Llama(*shape, vocab)
    layers, d = shape[:2]
    total = sum(p.numel() for p in model.parameters())
    matrices = sum(p.numel() for p in model.parameters() if p.dim() == 2)
    predicted = flops_per_token(matrices, layers, d, 8_192, vocab)
    assert math.isclose(count_step(model, 8_192), predicted * 8_192)
    off = six_n_error(matrices, layers, d, 8_192, vocab)
    missed.append(off)
    print(f"{name:>5} {total:>15,} {readable(predicted, 'FLOPs'):>11} {off:>+9.1%}")

assert total == FACTS["Llama 3.1 405B parameters"].value == 405_853_388_800
read = FACTS["Llama 3.1 405B tokens"].value
run = 6 * total * read  # FLOPs of the whole training run, by the rule
print(
    f"405B on {read / 1e12} trillion tokens: 6N says {run:.1e} FLOPs, "
    f"the formula {predicted * read:.1e}"
)
reported = FACTS["Llama 3.1 405B training FLOPs"].value
assert f"{run:.1e}" == f"{reported:.1e}" == "3.8e+25"
assert missed == sorted(missed) and round(missed[-1], 3) == -0.072

# %% [markdown]
r"""
At 8,192 tokens, where most of the error is the attention that it ignores, the rule gets better as the model gets wider:
in each layer, the number of weights grows as $d^2$, the cost of attention only as $d$. For the largest model it's off
by 7%, and the number in its paper, $3.8 \cdot 10^{25}$ FLOPs, is what $6N$ gives. So use $6N$ for a budget. For an MFU,
a long context, or a small model with a large table, count the products instead.

Finally, back to the question: what does a training step cost, in seconds?
"""

# %% tags=["timed"]
with torch.device("meta"):
    model = Llama(*llamas["8B"], vocab)
step = count_step(model, 8_192)  # FLOPs: one sequence of 8,192 tokens
h100 = hardware.ACCELERATORS["H100 SXM"].peak[torch.bfloat16]  # FLOP/s
dtype = torch.bfloat16 if devices.on_gpu(device) else torch.float32
ceiling = hardware.measured_ceiling(device, dtype, max_seconds=1).flops_per_second
print(f"one step of Llama 3 8B on 8,192 tokens: {readable(step, 'FLOPs')}")
print(f"on an H100 with an MFU of 0.4: {readable(step / (0.4 * h100), 's')}")
print(f"here, at the best speed measured in {dtype}: {readable(step / ceiling, 's')}")

assert f"{step:.2e}" == "4.74e+14"
assert round(step / (0.4 * h100), 1) == 1.2

# %% [markdown]
r"""
That assumes that the machine has enough memory. A step also has to *hold* parameters, gradients, optimizer state and
activations, as you'll see in lecture 08.

*Try it yourself:* at which context length is attention half of the 405B model's work? Solve it on paper by setting
$12\,L\,d\,T$ equal to 6 FLOPs for each weight that multiplies, then check with `flops_per_token`.

## Takeaways

**Mechanics.** `backward()` fills the `.grad` of the leaves that require a gradient and that the graph reaches; use
`retain_grad()` for intermediate tensors. Each linear layer $y = h\,w$ needs three products of $2BDK$ FLOPs: the forward
one, $\nabla w = h^\top \nabla y$, and $\nabla h = \nabla y\, w^\top$. A training step takes
$6 \cdot \text{tokens} \cdot \text{parameters}$ FLOPs, with five corrections: (1) for each token, add $12\,L\,d\,T$ for
attention in $L$ layers; (2) subtract 6 for each weight of a table that's only looked up; (3) in a mixture of experts,
count only the active parameters; (4) if the first layer's input is data, subtract the product for its gradient; (5)
recomputation adds up to 2 FLOPs per parameter per token. You can check any gradient with central differences in
float64.

**Mindset.** For each product, ask what needs it. That gives the exact count, even for frozen layers, where no rule of
thumb works. At one context length, two errors cancel, and a wrong rule looks correct. When you quote an MFU, say what
was counted.

**Intuitions.** A forward and a backward pass together cost as much as three forward passes and give you the gradient
for all parameters; central differences take two forward passes *per parameter*. For Llama 3, $6N$ is 7 to 17% off at 8,192 tokens; at 131,072
it accounts for a fifth of the 8B model's work. The wider the model, the longer the context at which attention takes
over. Freezing saves you the gradients of the frozen weights and the whole backward pass through the layers before the
first trained one, but not the rest.

Next: [07 · Models and initialization](../07_models_and_init/07_models_and_init.ipynb). You know what a model costs. How
do you build one, and what values should its weights start with?
"""

# %% [markdown]
r"""
# 06 · Gradients and 6N

[← 05 · FLOPs and MFU](../05_flops_and_mfu/05_flops_and_mfu.ipynb) · [07 · Models and initialization →](../07_models_and_init/07_models_and_init.ipynb)

> **What does a training step cost, and where does the 6 come from?**

Lecture 05 ended with the forward pass: two FLOPs for each parameter and token. To train, you also need the gradients,
and the rule that everybody quotes for the two together is *six*: $6N$ FLOPs to train a model of $N$ parameters on one
token. This lecture takes the six apart. You will see which products the backward pass makes, and which one it leaves
out; you will write them yourself, and check them without autograd. By the end you will have predicted, to the last
FLOP, what a training step of Llama 3 costs, and shown for which context lengths $6N$ is close, for which it is right by
accident, and for which it misses most of the work.

How to read: run the cells in order (<kbd>Shift</kbd> + <kbd>Enter</kbd>). Where a cell says *predict*, write your
number first; being wrong is how you find out what to look at. The cell below each exercise checks your answer and names
the likely mistake; *Validate* in the toolbar runs them all.
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

The smallest model that one can train: a vector of weights, one example, one number that should come out. How wrong it
is we call the *loss*:

$$\text{loss} = \tfrac12 (x \cdot w - 5)^2 .$$

The **gradient** says, for each weight, how fast the loss changes when that weight alone grows a little. By the chain
rule it is $(x \cdot w - 5)$, the error, times $x$.

**Predict.** Take $x = (1, 2, 3)$ and $w = (1, 1, 1)$. What is the gradient with respect to the *third* weight?
"""

# %%
guess = None  # the third element of w.grad


# %% tags=["item-61"]
def kept(tensor: Tensor) -> Tensor | None:
    """tensor.grad, without the warning that PyTorch gives for a tensor which keeps none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tensor.grad


x = torch.tensor([1.0, 2.0, 3.0])  # data
w = torch.tensor([1.0, 1.0, 1.0], requires_grad=True)  # what we may change

prediction = x @ w  # 1 + 2 + 3 = 6; we want 5
loss = 0.5 * (prediction - 5) ** 2
assert prediction == 6 and loss == 0.5

loss.backward()
assert w.grad is not None
reconcile("the third element of w.grad", guess, w.grad[2].item(), "")

assert w.grad.tolist() == [1, 2, 3]  # the error, 1, times x
assert kept(x) is None  # nobody asked for it
assert kept(prediction) is None and kept(loss) is None  # computed on the way, and not kept

# %% [markdown]
r"""
`backward()` walked from the loss back to `w` and left a gradient in `w.grad`, and *only there*. To see why, look at
what there was to walk along. While you computed, PyTorch recorded each operation that had anything to do with a tensor
that requires a gradient. The record is a graph, and it hangs on the result, as `grad_fn`. Each node knows the nodes
before it (`next_functions`).
"""


# %%
def print_graph(node: Any, depth: int = 0) -> None:
    """The recorded operations, from the result backwards."""
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
assert node.variable is w  # the walk ends where a gradient is to be put

# %% [markdown]
r"""
The walk ends at a node called `AccumulateGrad`, whose `variable` is `w`. Here are the words for it:

- A **leaf** is a tensor that no recorded operation made: your data, your parameters. (`tensor.is_leaf`)
- `requires_grad` says that a gradient is wanted, here or further back. You set it on leaves; what is computed from them
  inherits it.
- `backward()` leaves a gradient in `.grad` of each **leaf that requires one and that the walk reaches**. For tensors in
  between, it computes the gradient, passes it on, and lets it go.
- `tensor.retain_grad()`, called before, asks it to keep one of those, too.
- Inside `with torch.no_grad():` nothing is recorded, and `tensor.detach()` is the same numbers without their history.
  The walk does not get past either.
"""

# %%
w = torch.tensor([1.0, 1.0, 1.0], requires_grad=True)
prediction = x @ w
prediction.retain_grad()
error = prediction - 5
assert w.is_leaf and x.is_leaf and not prediction.is_leaf
assert prediction.requires_grad and not x.requires_grad

(0.5 * error**2).backward()
assert kept(prediction) == 1 and kept(error) is None  # one was asked for, one was not

with torch.no_grad():
    unrecorded = x @ w
assert unrecorded.grad_fn is None and not unrecorded.requires_grad
assert prediction.detach().is_leaf and not prediction.detach().requires_grad

# %% [markdown]
r"""
> **Trap: gradients add up.** The node is called *Accumulate*Grad for a reason. A second `backward()` *adds* to what is
> there. That is useful (a batch that is too large can be taken in parts), and it is why a training loop clears the
> gradients in each step.

> **Trap: a parameter that is not a leaf.** `torch.ones(3, requires_grad=True) * 0.1` is the *result* of an operation.
> So is `.to(device)` or `.double()` whenever it has something to do. Such a tensor gets no `.grad`, and an optimizer
> refuses it. Make the numbers first, then call `requires_grad_()`.
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
    raise AssertionError("it took a tensor that is not a leaf")
except ValueError as refusal:
    print(refusal)

# %% [markdown]
r"""
*Try it yourself:* call `.backward()` twice on the *same* loss. What does PyTorch complain about, and what has it thrown
away?

### Exercise 6.1 · Who keeps a gradient? &nbsp; ★★☆ &nbsp; 15 minutes

Write `who_keeps_grad(loss, tensors)`: for each name in `tensors`, `True` where `loss.backward()` would put a gradient
into that tensor's `.grad`, else `False`. Look, and do not touch: afterwards each `.grad` must hold what it held, also
that of a tensor which is not in `tensors`, and `loss.backward()` must still work and fill what it would have filled. A
`.grad` that is already there, from an earlier step, proves nothing. `tensors` may be empty. `loss` is the result of a
recorded operation, and may itself be among `tensors`. Each operation on the way is one of PyTorch's own and makes one
tensor, and there are a few hundred at most, none of them in a checkpoint.
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
<details><summary>Hint 1</summary><code>print_graph</code> above walks the graph already. Collect the nodes that it meets, each once, in place of printing them.</details>
<details><summary>Hint 2</summary>How does a node know a leaf, and how does a tensor in between know its node? Only AccumulateGrad nodes have a <code>variable</code> (compare it with <code>is</code>). And each tensor says whether it <code>retains_grad</code>.</details>

**Why it matters.** "Why is `.grad` None?" is a question that you will ask at midnight. There are four answers: not
required, not a leaf, not reached, not recorded. You can now tell which. (One thing more to look at: an operation such as
`split` makes several tensors and one node, and the loss may depend on some of them only.)

## 2 · Is the gradient right?

Autograd's answer can be checked without autograd. A gradient says how fast the loss changes when *one* number grows a
little, so let it grow a little, and look. The obvious way is the *forward difference*. Going a step to either side
costs the same two evaluations, and is far better:

$$\text{forward: } \frac{f(x + h) - f(x)}{h} \qquad\qquad \text{central: } \frac{f(x + h) - f(x - h)}{2h}$$

How small should the step $h$ be? As small as possible, one would think.

**Predict.** The slope of $\sin$ at 1 is $\cos 1$. Take central differences in float64, once with $h = 10^{-5}$, once
with $h = 10^{-12}$. How many times *larger* is the error with the smaller step? (Less than 1, if it is smaller.)
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
reconcile("the error with h = 1e-12 against h = 1e-5", guess, tiny / good, "times")

assert good < 1e-10 and tiny > 1e-6  # ten correct digits, and not even six
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
    title="A step that is too small is as bad as one that is too large",
)
plots.show(
    figure,
    alt="Relative error against the step, from 1e-13 to 0.001. In float64 it falls, and rises "
    "again: below 1e-10 for central and to about 1e-8 for forward differences. Float32 stays "
    "above 1e-6.",
)

least = {name: min(values) for name, values in errors.items()}
assert least["central, float64"] < 1e-10
assert 1e-9 < least["forward, float64"] < 1e-7 and least["central, float32"] > 1e-6

best = steps_tried[errors["central, float64"].index(least["central, float64"])]
assert 1e-7 < best < 1e-4  # around 1e-5
for central, power in ((True, 2), (False, 1)):  # on the right, a step ten times as long
    long, short = (slope_error(h, torch.float64, central) for h in (1e-3, 1e-4))
    assert round(math.log10(long / short), 2) == power

# %% [markdown]
r"""
Two errors work against each other. On the right, the step is too long: the curve bends on the way. A central difference
cancels the first bend, and its error falls with $h^2$ where the other falls with $h$. On the left, the step is so short
that the two values agree in nearly all of their digits, and what is left after subtracting is rounding. Hence the
recipe: **central, in float64, with $h$ around $10^{-5}$** (for numbers of the size of 1).

*Try it yourself:* in `slope_error`, take the slope at 1,000 instead of 1 (twice: in `one`, and in `math.cos`). Which
side of the V moves, and why?

### Exercise 6.2 · A gradient without autograd &nbsp; ★★☆ &nbsp; 10 minutes

Write `numerical_gradient(f, x, step)`: the gradient of `f` at `x` by central differences, in float64. `f` takes a
tensor of the shape of `x`, which it leaves as it is, and returns a tensor with one number, of shape `[]` or `[1]`. `x` has any floating dtype;
call `f` with float64 always, and return float64 in the shape of `x`. `x` has one or more dimensions, may have no
elements or be non-contiguous, and must hold afterwards what it held.
"""


# %% nbgrader={"grade": false, "grade_id": "numerical_gradient", "locked": false, "schema_version": 3, "solution": true, "task": false}
def numerical_gradient(
    f: Callable[[Tensor], Tensor], x: Float[Tensor, "*shape"], step: float = 1e-5
) -> Float64[Tensor, "*shape"]:
    """(f(x + step) - f(x - step)) / (2 step) for each element of x, moved on its own."""
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
<details><summary>Hint 1</summary>For each index: two copies of x in float64, one with that element a step higher, one a step lower. <code>itertools.product(*map(range, x.shape))</code> yields all indices, each as a tuple that you can index with.</details>
<details><summary>Hint 2</summary><code>x.double()</code> is no copy when x is float64 already. <code>x.to(torch.float64, copy=True)</code> always is.</details>

**Why it matters.** It is how everybody who writes a backward pass by hand finds out whether it is right. PyTorch's
`torch.autograd.gradcheck` does the same. You will use yours in the next section, on gradients written by hand.

It also shows what autograd is worth. Two evaluations *per parameter*: how much would one gradient of a small model
cost?
"""

# %%
small = nn.Sequential(nn.Linear(64, 64, bias=False), nn.Tanh(), nn.Linear(64, 8, bias=False))
points = torch.randn(16, 64, requires_grad=True)  # as if a layer came before
forward = count_flops(small, points)
step_work = count_flops(lambda: small(points).sum().backward())

numbers = points.numel() + sum(p.numel() for p in small.parameters())
print(f"{numbers:,} numbers to move, one by one: {2 * numbers:,} forward passes")
print(f"a forward and a backward pass: {step_work / forward:g} forward passes")

assert numbers == 5_632 and 2 * numbers == 11_264
assert step_work == 3 * forward

# %% [markdown]
r"""
11,264 forward passes against 3, and for a model with 8 billion parameters it would be 16 billion against the same 3.
Why 3? That is our question, and now we count.

## 3 · Two layers, product by product

Take $B$ tokens of $D$ numbers, two linear layers, and a loss:

$$x\;\;[B, D] \;\;\xrightarrow{\;w_1\,[D, D]\;}\;\; h_1\;\;[B, D] \;\;\xrightarrow{\;w_2\,[D, K]\;}\;\; h_2\;\;[B, K]
\;\;\longrightarrow\;\; \text{loss} = \operatorname{mean}(h_2^2)$$

The forward pass is two multiplications of matrices. From lecture 05, that is $2BDD + 2BDK$ FLOPs. We count it on the
*meta device*, where a tensor has a shape and no memory: PyTorch's counter needs only shapes, so the sizes may be as
large as we like.
"""

# %% tags=["item-62"]
B, D, K = 16_384, 32_768, 8_192
with torch.device("meta"):
    x = torch.empty(B, D)  # data: no gradient wanted
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
    assert count_flops(run_forward, x, w1, w2) == forward  # not recorded, but computed
print(f"forward: {readable(forward, 'FLOPs')}")

# %% [markdown]
r"""
Now a small one, with numbers, and the gradients of $h_1$ and $h_2$ kept so that we can look at them. (Without
`retain_grad()` they would be computed and let go: section 1.)
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
said = who_keeps_grad(loss, tensors)  # before it happens
loss.backward()

grads = {name: kept(t) for name, t in tensors.items()}
assert said == {name: grad is not None for name, grad in grads.items()}
assert {name for name, grad in grads.items() if grad is None} == {"x"}
assert all(grads[n].shape == t.shape for n, t in dict(w1=w1, w2=w2, h1=h1, h2=h2).items())
# Where the walk begins: the slope of mean(h²).
assert torch.allclose(grads["h2"], 2 * h2 / (b * k))

# %% [markdown]
r"""
The walk begins at $h_2$, where the gradient is elementwise: $2 h_2 / BK$, since the mean divides by the number of
elements. A gradient always has the shape and the dtype of its tensor.

**The weights $w_2$.** The number $w_2[j, k]$ takes part in one product for each token $i$: it multiplies $h_1[i, j]$
and the result lands in $h_2[i, k]$. So it changes the loss through each of the $B$ tokens, and the parts add up. With
$\nabla w_2$ for the gradient of the loss with respect to $w_2$:

$$\nabla w_2[j, k] = \sum_i h_1[i, j] \; \nabla h_2[i, k]$$

One product for each *triple* $(i, j, k)$. There are $B \cdot D \cdot K$ triples: $2BDK$ FLOPs, as many as the layer
took forward.
"""

# %% tags=["item-64"]
g2 = grads["h2"]
total = torch.zeros(d, k, dtype=torch.float64)
work = 0
for i, j, o in itertools.product(range(b), range(d), range(k)):  # token, input, output
    total[j, o] += h1[i, j].detach() * g2[i, o]  # detach: this need not be recorded
    work += 2

assert torch.allclose(total, grads["w2"])
assert work == 2 * b * d * k
assert torch.allclose(h1.detach().T @ g2, grads["w2"])  # [D, B] @ [B, K]

# %% [markdown]
r"""
**The activations $h_1$.** To get further back, to $w_1$, the walk needs to know how the loss depends on $h_1[i, j]$. It
takes part in $K$ products, one for each output of its own token:

$$\nabla h_1[i, j] = \sum_k w_2[j, k] \; \nabla h_2[i, k]$$

The same triples, summed over another of the three letters. Again $2BDK$.
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
**The weights $w_1$.** As for $w_2$, one layer further back: $\nabla w_1[j, l] = \sum_i x[i, j] \, \nabla h_1[i, l]$,
over triples of a token, an input and an output. $2BDD$.

So each layer makes **three products of the same size**, one forward and two backward. In `einsum` one sees that they
are one thing, read three ways: three letters, of which each product sums over one.

| product | sums over | einsum | FLOPs |
|---|---|---|---|
| forward, $h_2$ | inputs | `"i j, j k -> i k"` of $h_1$, $w_2$ | $2BDK$ |
| backward, $\nabla w_2$ | tokens | `"i j, i k -> j k"` of $h_1$, $\nabla h_2$ | $2BDK$ |
| backward, $\nabla h_1$ | outputs | `"i k, j k -> i j"` of $\nabla h_2$, $w_2$ | $2BDK$ |
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

assert torch.allclose(torch.einsum("ij, jk -> ik", h1, w2), h2)
assert torch.allclose(torch.einsum("ij, ik -> jk", h1, g2), grads["w2"])
assert torch.allclose(torch.einsum("ik, jk -> ij", g2, w2), grads["h1"])

# %% [markdown]
r"""
*Try it yourself:* which shape would $\nabla h_1$ have to have if you wrote `g2 @ w2`, without the `.T`? With `k` equal
to `d` nobody would stop you. (This is why the sizes in tests should all differ.)

### Exercise 6.3 · Backward by hand &nbsp; ★★☆ &nbsp; 15 minutes

Write `gradients_by_hand(x, w1, w2)`: the pair `(gradient of w1, gradient of w2)` for
$\text{loss} = \operatorname{mean}\big((x\, w_1\, w_2)^2\big)$, each in the shape and dtype of its weights. Use `@` or
`einsum`, but not autograd: the tests run your function where nothing can be recorded. The sizes $B$, $D$, $H$, $K$ are
at least 1 and may all differ or all be the same. The three tensors share one floating dtype, in which no sum or product
overflows, may be non-contiguous, and are not yours to change.
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
<details><summary>Hint 1</summary>Go forward and keep h1 and h2. The walk back begins with the gradient of h2, elementwise: 2 · h2 / (B · K). Then w2, h1, w1, in this order.</details>
<details><summary>Hint 2</summary>Let the shapes lead. The gradient of w2 is [H, K]; you have h1, [B, H], and the gradient of h2, [B, K]. Which letter has to be summed away?</details>

**Why it matters.** This is a backward pass. Every linear layer of every model does just that. When an operation of your
own needs one, you can write it, and check it.

Check yours with your own numerical gradient:
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
    print(f"{name}: greatest difference {(mine - checked).abs().max().item():.1e}")
    assert torch.allclose(mine, checked, rtol=1e-6, atol=1e-8)

# %% [markdown]
r"""
## 4 · Two, four, six

Each layer does one product forward and two backward, all of the same size. So the backward pass costs twice the
forward pass. With the forward pass at 2 FLOPs per parameter and token:

$$\underbrace{2}_{\text{forward}} + \underbrace{2}_{\nabla w} + \underbrace{2}_{\nabla h} = 6
\qquad\qquad \text{FLOPs of a training step} \approx 6 \cdot \text{tokens} \cdot \text{parameters}$$

That is the six. Test it on the two layers.

**Predict.** Let $D$ and $K$ be equal, so that both layers are of one size. How many times the FLOPs of the forward pass
does the counter see in the *backward* pass of our two layers?
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
reconcile("backward against forward, two equal layers", guess, backward / forward, "times")

assert backward / forward == 1.5

# %% [markdown]
r"""
One and a half, not two. One of the four products of the backward pass was never made.

> **A mistake that travels.** Summaries of this very example add up $4BDD + 4BDK$ for the backward pass: two products
> for each layer. Which one does autograd leave out? Look at the two layers again: what would the second product of
> the *first* layer be good for? Say it before you run the next cell.
"""

# %% tags=["error-5"]
with torch.device("meta"):
    x = torch.empty(B, D)
    w1 = torch.empty(D, D, requires_grad=True)
    w2 = torch.empty(D, K, requires_grad=True)
forward, backward = step_flops(x, w1, w2)
assert backward == 2 * B * D * D + 4 * B * D * K  # what autograd computes
assert backward != 4 * B * D * D + 4 * B * D * K  # what the summaries say

_, with_x = step_flops(x.requires_grad_(), w1, w2)
assert with_x == 4 * B * D * D + 4 * B * D * K  # now somebody wants x.grad
assert with_x - backward == 2 * B * D * D

# %% [markdown]
r"""
It is $\nabla x$. The data is no parameter; nobody wants its gradient, and there is nothing further back that would need
it. Autograd makes **a product for each gradient that somebody needs, and no other**.

How much does that matter? For two equal layers it is a sixth of what $6N$ says; with more layers, less and less. And in
a language model, nothing at all: what enters its first linear layer comes out of the *table of embeddings*, which is
trained. Somebody does need that gradient, and there the six is exact.
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

    per_token = counted / (tokens * parameters)  # FLOPs per parameter and token
    print(
        f"depth {depth:>2}: {per_token:.4f}, "
        f"with the input's gradient {in_full / (tokens * parameters):g}"
    )
    assert per_token == 6 - 2 / depth
    assert in_full == 6 * tokens * parameters

# %% [markdown]
r"""
Does the clock agree with the count? The same chain of layers, on your device, timed: the forward pass alone, then with
the backward pass. If all products run at the same speed, a step takes three times as long as a forward pass.

**Predict.** What will *your* clock say? Three times, or more, or less?
"""

# %%
guess = None  # times the forward pass

# %% tags=["timed"]
if device.type == "cpu":  # leave one core to the rest of the machine: lecture 05
    torch.set_num_threads(max(1, torch.get_num_threads() - 1))
tokens, width, depth = (8_192, 4_096, 6) if devices.on_gpu(device) else (1_024, 512, 6)
dtype = torch.bfloat16 if devices.on_gpu(device) else torch.float32
stack = nn.Sequential(*(nn.Linear(width, width, bias=False) for _ in range(depth)))
stack = stack.to(device=device, dtype=dtype)
data = torch.randn(tokens, width, device=device, dtype=dtype).requires_grad_()
upstream = torch.randn(tokens, width, device=device, dtype=dtype)  # the gradient of the output


def forward_only() -> None:
    with torch.no_grad():
        stack(data)


def whole_step() -> None:
    stack.zero_grad()  # or the gradients of earlier calls would be added to
    data.grad = None
    stack(data).backward(upstream)


flops = {"forward": count_flops(forward_only), "step": count_flops(whole_step)}
taken = {
    "forward": timing.benchmark(forward_only, device=device),
    "step": timing.benchmark(whole_step, device=device),
}
for name, seconds in taken.items():
    speed = readable(flops[name] / seconds.minimum, "FLOP/s")
    print(f"{name:>8}: {readable(flops[name], 'FLOPs')} in {seconds}, at best {speed}")
times = taken["step"].minimum / taken["forward"].minimum
reconcile("a step against a forward pass, by the clock", guess, times, "times")

assert flops["step"] == 3 * flops["forward"]

# %% [markdown]
r"""
The count is 3, exactly. A quiet machine says about the same, or somewhat more: the backward products read their
matrices in another order, and their results need memory. (A clock that says 2 or 6 was disturbed: compare the spread of
the two.) That count and clock agree is why one can plan a training run by counting.

*Try it yourself:* give `stack` a `nn.Tanh()` after each layer. The count stays. Does the time?

### Exercise 6.4 · What backward costs &nbsp; ★★☆ &nbsp; 15 minutes

Often not everything is trained: one freezes most of a model and tunes the rest. Write
`backward_flops(tokens, widths, trainable, input_needs_grad)`: the FLOPs of the backward pass of a chain of linear
layers without bias. Layer $i$ turns `widths[i]` numbers into `widths[i + 1]`; `trainable[i]` says whether its weights
require a gradient, and `input_needs_grad` whether the chain's input does. Count the products that somebody *needs*, as
autograd does, and nothing else. If no gradient is needed anywhere, that is 0. There are at most some hundred layers. The
count is exact, also for sizes that no machine could hold.
"""


# %% nbgrader={"grade": false, "grade_id": "backward_flops", "locked": false, "schema_version": 3, "solution": true, "task": false}
def backward_flops(
    tokens: int, widths: Sequence[int], trainable: Sequence[bool], input_needs_grad: bool
) -> int:
    """FLOPs of the backward pass of a chain of linear layers, widths[0] to widths[-1]."""
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
<details><summary>Hint 1</summary>For each layer there are two questions. Are its weights trained? Then there is a product for their gradient. Does anything <em>before</em> it need a gradient? Then there is a product to pass it back.</details>
<details><summary>Hint 2</summary>Go through the layers from the first to the last, and carry along whether anything so far needs a gradient. The input comes before all of them.</details>

**Why it matters.** It is the whole of error-hunting in FLOP counts: not "twice the forward pass", but one product per
gradient that is needed. And it tells what freezing saves. Let autograd be the judge:
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
To train the last layer alone is cheap. To train the *first* alone is not: the gradient has to come all the way back.
(Adapters such as LoRA, small trained matrices in all layers, save memory for optimizer states, and the weights'
gradients of the large matrices. They do not save the way back.)

## 5 · Where the rule bends

$6 \cdot \text{tokens} \cdot \text{parameters}$ counts each parameter as one multiply-add per token in each of three
products. You know one case in which it bends, the input of the first layer. Here are three more, and each is counted.

**Attention multiplies without parameters.** In each layer every token is compared with every token of the context
($T \times T$ scores, each of $d$ products over all heads together), and then the values are summed with these weights,
which is as much again. That is $4T^2d$ FLOPs forward and, as both factors of both products need a gradient, twice that
backward: $12\,T^2 d$ for each sequence, $12\,T d$ for each token, in each layer.
"""


# %%
def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Each token's weighted mean of the values; all tensors [heads, tokens, numbers of a head]."""
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return scores.softmax(dim=-1) @ v


heads, T, d = 8, 1_024, 512
with torch.device("meta"):
    q, k, v = (torch.empty(heads, T, d // heads, requires_grad=True) for _ in range(3))

assert count_flops(attention, q, k, v) == 4 * T**2 * d
attention_step = count_flops(lambda: attention(q, k, v).sum().backward())
assert attention_step == 12 * T**2 * d
print(f"attention, {T} tokens of {d}: {attention_step / T:,.0f} FLOPs per token, 0 parameters")

# %% [markdown]
r"""
(A causal model uses only half of the scores, and a good kernel skips most of the other half. We count them all, as PaLM
and PyTorch's counter do: lecture 05.)

**Embeddings are parameters that do not multiply.** A row of the table is looked up, and backward the gradient is
*added* to that row. No product of matrices, in either direction. The output layer, on the other hand, which turns each
vector into a score for each token of the vocabulary, is an ordinary linear layer and pays the full six. (Some models
use *one* table for both, *tied*: it is stored once, and multiplied once.)
"""

# %% tags=["error-17"]
vocabulary, width, tokens = 1_000, 64, 32
ids = torch.randint(vocabulary, (tokens,))
table = nn.Embedding(vocabulary, width)
head = nn.Linear(width, vocabulary, bias=False)

look_up = count_flops(lambda: table(ids).sum().backward())
assert look_up == 0 and table.weight.grad is not None  # a gradient, and no FLOPs

parameters = table.weight.numel() + head.weight.numel()
counted = count_flops(lambda: head(table(ids)).sum().backward())
assert counted == 6 * tokens * head.weight.numel()
assert counted == 6 * tokens * parameters / 2  # 6N is twice too much here

head.weight = table.weight  # tied: one tensor, used twice
assert (
    count_flops(lambda: head(table(ids)).sum().backward()) == 6 * tokens * table.weight.numel()
)

# %% [markdown]
r"""
> **A mistake that travels.** "2 · tokens · parameters forward, 6 to train" is quoted without these two. It counts the
> look-up as if it were a multiplication, which is too much, and it forgets attention, which is too little. In a small
> model the table may be a large part of all parameters; at a long context attention is most of the work. In a moment
> the two meet in one model.

**Recomputation adds two.** The backward pass needs $h_1$ again: $\nabla w_2$ is made of it (section 3). So the forward
pass has to *keep* its activations, and they may not fit. *Activation checkpointing* keeps few of them, and computes the
others a second time when the backward pass gets there. That is up to one more forward pass: 2 + 2 + 4 = 8.
"""


# %%
class Block(nn.Sequential):
    """A linear layer and a ReLU."""

    def __init__(self, width: int) -> None:
        super().__init__(nn.Linear(width, width, bias=False), nn.ReLU())


def run_blocks(x: Tensor, blocks: nn.ModuleList, recompute: bool) -> Tensor:
    """All blocks; with recompute each keeps only its input."""
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
    print(f"recompute {recompute!s:>5}: {rates[recompute]:g} FLOPs per parameter and token")

assert rates == {False: 6, True: 8}

# %% [markdown]
r"""
Which is why there are two utilizations (lecture 05). MFU counts the 6, what the model asks for. HFU counts the 8, what
the hardware did. Lecture 11 shows what the extra third buys.

What else? Biases and norms are parameters without a product, and few. The optimizer does a handful of operations for
each parameter, but once per *step*, not once per token: with thousands of tokens in a step it disappears. All of this
is elementwise, and counts nothing here, though it does take time.

*Try it yourself:* in `Block`, put the ReLU *before* the linear layer, so that the block ends with a product. Is it still
8? Does anybody need that product again?

### Exercise 6.5 · Better than 6N &nbsp; ★★★ &nbsp; 20 minutes

Write two functions for a Transformer language model that is trained in full, without recomputation.

`flops_per_token(parameters, layers, d, context, vocab, tied)`: the FLOPs to train on one token, forward and backward, as
an `int`, or a float that rounds it.
`parameters` is the number of weights in *all* matrices of the model: the table of embeddings (`vocab` × `d`), the
layers, and the output layer (`d` × `vocab`). If `tied`, table and output layer are the same matrix, which `parameters`
then counts once. Attention is counted in full, for `d` numbers per token over all heads.

`six_n_error(parameters, layers, d, context, vocab, tied)`: by which share `6 · parameters` misses that, as
(6N − exact) / exact. Negative means that the rule promises too little.
"""


# %% nbgrader={"grade": false, "grade_id": "flops_per_token", "locked": false, "schema_version": 3, "solution": true, "task": false}
def flops_per_token(
    parameters: int, layers: int, d: int, context: int, vocab: int, tied: bool = False
) -> int:
    """FLOPs to train on one token: matrices that multiply, and attention over the context."""
    ### BEGIN SOLUTION
    multiplied = parameters if tied else parameters - vocab * d
    return 6 * multiplied + 12 * layers * d * context
    ### END SOLUTION


def six_n_error(
    parameters: int, layers: int, d: int, context: int, vocab: int, tied: bool = False
) -> float:
    """(6 · parameters − exact) / exact; negative where 6N promises too little."""
    ### BEGIN SOLUTION
    exact = flops_per_token(parameters, layers, d, context, vocab, tied)
    return (6 * parameters - exact) / exact
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_flops_per_token", "locked": true}
check("flops_per_token")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Which of the parameters are multiplied? All but the table, unless the table is also the output layer. Each of those costs 6 per token.</details>
<details><summary>Hint 2</summary>Attention makes two products in each layer, scores and the weighted sum. What do they cost one token, over all heads? And what do they cost backward?</details>

**Why it matters.** PaLM counts $6N + 12\,L\,d\,T$ for its MFU, and many have followed. Whoever compares two MFUs should
know whether the second term is in, and what was taken for $N$.

## 6 · The result: Llama 3, to the last FLOP

Now a real model. Here is Llama 3, with the shapes of its paper (*The Llama 3 Herd of Models*, 2024, table 3; the
released vocabulary has 128,256 tokens). On the meta device it takes no memory, also where it has 405 billion
parameters. Two things are new, and neither changes our formula. Several heads share their keys and values, so those
matrices are smaller, but each head still makes its own scores. And the feed-forward block has three matrices. (Left
out are the rotations that tell positions: elementwise, without parameters.)
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
    """Llama 3 on one sequence, without positions."""

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
    """FLOPs of a whole training step on one sequence, as PyTorch's counter sees them."""
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
assert total - matrices < 1e-4 * total  # which are few
print(f"{matrices:,} weights in matrices, {vocab * d / matrices:.1%} of them in the table")

# %% [markdown]
r"""
The rule has two faults, and they work against each other: the table is too much, attention too little. At one context
they cancel, and $6N$ is exactly right for the wrong reasons.

**Predict.** At how many tokens? (The table is `vocab · d` weights at 6 FLOPs each.)
"""

# %%
guess = None  # tokens

# %%
cancel = 6 * vocab * d / (12 * layers * d)
reconcile("the context at which 6N is right by accident", guess, cancel, "tokens")

assert cancel == vocab / (2 * layers) == 2_004
assert six_n_error(matrices, layers, d, 2_004, vocab) == 0
assert count_step(model, 2_004) == 6 * matrices * 2_004  # and the counter agrees, to the FLOP

# %% [markdown]
r"""
Now short contexts and long ones: your formula against PyTorch's count of each product in a forward and backward
pass.

**Predict.** At a context of 131,072 tokens, which share of the work does $6N$ see? Write it as a number from 0 to 1.
"""

# %%
guess = None  # of the work

# %%
contexts = [512, 2_004, 8_192, 32_768, 131_072]
counted_per_token, mine, rule = [], [], []  # GFLOPs
for context in contexts:
    counted = count_step(model, context)
    predicted = flops_per_token(matrices, layers, d, context, vocab)
    assert counted == predicted * context  # exact, as integers
    counted_per_token.append(counted / context / 1e9)
    mine.append(predicted / 1e9)
    rule.append(6 * matrices / 1e9)
    share = 12 * layers * d * context / predicted
    off = six_n_error(matrices, layers, d, context, vocab)
    print(
        f"context {context:>7,}: {readable(predicted, 'FLOPs')} per token, "
        f"attention {share:5.1%}, 6N off by {off:+6.1%}"
    )

seen_by_rule = rule[-1] / counted_per_token[-1]
reconcile("what 6N sees at 131,072 tokens", guess, seen_by_rule, "of the work")

assert round(seen_by_rule, 2) == 0.19
assert abs(six_n_error(matrices, layers, d, 512, vocab)) < 0.06
assert round(six_n_error(matrices, layers, d, 8_192, vocab), 3) == -0.168

# %%
finding = f"Llama 3 8B: 6N sees all work at 2,004 tokens, and {seen_by_rule:.0%} at 131,072"
figure = plots.curves(
    contexts,
    {"a training step": counted_per_token},
    {"a training step": mine, "6N": rule},
    xlabel="context (tokens)",
    ylabel="GFLOPs per token",
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
Your prediction lies on the count, at every context, without a FLOP of difference. And the flat line is what a table of
parameter counts would have told you.

The same for its larger siblings, at the 8,192 tokens that they were first trained with:
"""

# %%
missed = []
for name, shape in llamas.items():
    with torch.device("meta"):
        model = Llama(*shape, vocab)
    layers, d = shape[:2]
    total = sum(p.numel() for p in model.parameters())
    matrices = sum(p.numel() for p in model.parameters() if p.dim() == 2)
    predicted = flops_per_token(matrices, layers, d, 8_192, vocab)
    assert count_step(model, 8_192) == predicted * 8_192
    off = six_n_error(matrices, layers, d, 8_192, vocab)
    missed.append(off)
    print(
        f"{name:>5}: {total:>15,} parameters, {readable(predicted, 'FLOPs')} per token, "
        f"6N off by {off:+.1%}"
    )

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
At the same context, the wider the model, the better the rule: weights grow with $d^2$, attention with $d$. For the
largest one it is off by 7 %, and the number in its paper, $3.8 \cdot 10^{25}$ FLOPs, is what $6N$ gives. So that is
when to use which. **For a budget, $6N$. For an MFU, or a long context, or a small model with a large table, count.**

Last, back to the question. What does a training step cost, in seconds?
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
If it had the memory, that is. A step also has to *hold* things: parameters, gradients, optimizer state, activations.
That is lecture 08.

*Try it yourself:* at which context is attention half of the work of the 405B model? Solve it on paper, with
$12\,L\,d\,T$ against 6 for each weight that multiplies, then ask `flops_per_token`.

## Takeaways

**Mechanics.** `backward()` fills `.grad` of leaves that require it and are reached; `retain_grad()` for what lies
between. For each linear layer there are three products of $2BDK$: forward, $\nabla w = h^\top \nabla y$, $\nabla h =
\nabla y\, w^\top$. A training step takes $6 \cdot \text{tokens} \cdot \text{parameters}$, plus $12\,L\,d\,T$ per token
for attention, minus 6 for each weight of a table that is only looked up, minus the first layer's input gradient if it
sees data; recomputation makes it up to 8. Central differences, in float64, check any gradient.

**Mindset.** Ask of each product: who needs it? That gives the exact count, also for frozen layers, where no rule of
thumb does. Two errors that cancel look like a correct rule, at one context. When you quote an MFU, say what was
counted.

**Intuitions.** A gradient for all parameters costs two forward passes, not one per parameter. For Llama 3, $6N$ is 7 to
17 % off at 8,192 tokens; at 131,072 it sees a fifth of what the 8B does. The wider the model, the longer the
context at which attention takes over. Freezing saves what lies below the lowest trained layer, and the frozen weights'
gradients, but not the way back.

Next: [07 · Models and initialization](../07_models_and_init/07_models_and_init.ipynb). You know what a model costs; now build one, and give it numbers to begin with
that let the gradients through.
"""

# %% [markdown]
r"""
# 11 · Memory

[← 10 · Mixed precision](../10_mixed_precision/10_mixed_precision.ipynb) &nbsp;|&nbsp; [12 · Scale →](../12_scale/12_scale.ipynb)

> **The model doesn't fit. What can you trade for memory?**

In lecture 08 you accounted for every byte of a training step. Now you'll learn to get by with fewer. None of the
methods is free: you pay with more passes, more FLOPs, transfer time, a different optimizer, or a model that can learn
less. For each method, we first write down what it saves and costs, and then measure bytes and, where we can, FLOPs or
time.

By the end you'll have trained a model four times, the last three times with one more method each, and you'll have
computed, to the byte, what each run keeps: parameters, gradients, optimizer state and activations.
"""

# %%
import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from course_utils import device as devices
from course_utils import napkin, plots, timing
from course_utils.facts import FACTS
from course_utils.flops import count_flops
from course_utils.memory import saved_bytes, storage_bytes, track
from course_utils.predict import reconcile
from course_utils.progress import show_progress
from course_utils.units import format_bytes, readable
from course_utils.testing import check

device = devices.pick_device()
print(devices.describe(device))
show_progress()

# %% [markdown]
r"""
## 1 · What doesn't fit

Suppose you want to train Llama 3.1 8B on one H100, which has 80 GB of memory. You'd do it the usual way: weights and
gradients in bfloat16, master weights and the optimizer state (AdamW's first and second moments) in float32 (lecture
10), and one sequence of 8,192 tokens per step.

**Predict.** Llama 3.1 8B has 8.03 billion parameters. How many GB do the weights, gradients, master weights and
optimizer state take together?
"""

# %%
guess = None  # GB

# %%
llama = napkin.PUBLISHED["Llama 3.1 8B"]
card = FACTS["H100 SXM memory"].value
alone = napkin.memory(llama, napkin.Step(batch=1, context=8_192))
for kind, size in alone.items():
    print(f"{kind:>16}: {readable(size, 'B'):>8}")
without = sum(alone.values()) - alone["activations"]
reconcile("all but the activations", guess, without / 1e9, "GB")

assert round(llama.parameters / 1e9, 2) == 8.03 and without == 16 * llama.parameters
assert card == 80e9
assert alone["optimizer state"] == max(alone.values()) == 8 * llama.parameters
assert without == 2 * alone["optimizer state"]  # the rest takes as much again
assert round(alone["activations"] / card, 1) == round(3 / 5, 1)

# %% [markdown]
r"""
The optimizer state takes as much as the weights, gradients and master weights together. The activations, counted as in
lecture 08 but without the attention weights, which fused attention doesn't keep, would fill three fifths of the card.
The total doesn't fit. Here's what you can do about it:

| method | reduces | costs |
|---|---|---|
| gradient accumulation (section 2) | activations | more and smaller passes |
| checkpointing (3) | activations | computing them a second time |
| offloading (4) | activations, state, master weights | traffic to a slower memory |
| Adafactor, Lion (5) | optimizer state | a different update rule |
| LoRA (6) | gradients, state, master weights | less expressive updates |
| fusion (7) | intermediate results, traffic | compilation time |

We'll try them on a stack of residual blocks, each with two matrices and a GELU: the feed-forward half of a Transformer
layer.
"""


# %%
class Block(nn.Module):
    """x + down(GELU(up(x))), with a hidden width of 4 · d: 8 · d² parameters."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.up = nn.Linear(d, 4 * d, bias=False)
        self.down = nn.Linear(4 * d, d, bias=False)

    def forward(self, x: Float[Tensor, "B d"]) -> Float[Tensor, "B d"]:
        return x + self.down(nn.functional.gelu(self.up(x)))


def stack(d: int, layers: int) -> nn.Sequential:
    """Make a stack of blocks on the CPU, with the same initial weights in every process."""
    torch.manual_seed(0)
    return nn.Sequential(*(Block(d) for _ in range(layers)))


def squared_error(prediction: Tensor, y: Tensor) -> Tensor:
    """The mean of the squared errors."""
    return (prediction - y).square().mean()


def same(a: Tensor | None, b: Tensor) -> bool:
    """Equal up to rounding: to within a ten-thousandth of the largest number."""
    return a is not None and bool((a - b).abs().max() <= 1e-4 * b.abs().max())


if device.type == "cpu":  # leave one core for other programs (lecture 05)
    torch.set_num_threads(max(1, torch.get_num_threads() - 1))

B, d, L = (1_024, 256, 8) if devices.on_gpu(device) else (512, 64, 8)
model = stack(d, L).to(device)
generator = torch.Generator().manual_seed(0)
data, goal = (torch.randn(B, d, generator=generator).to(device) for _ in range(2))
numbers = sum(p.numel() for p in model.parameters())
assert numbers == L * 8 * d**2

# %% [markdown]
r"""
What does a block keep for the backward pass? For each row of the batch, it keeps its input, $d$ numbers, for the
gradient of `up`; the input of the GELU, $4d$; and the GELU's output, $4d$, for the gradient of `down`. The first
block's input is data, so it doesn't count. But the loss keeps the differences between outputs and targets, which take
exactly as much space as that input. So the stack keeps $9d$ numbers for each of its $L$ blocks and each of the $B$
rows.
"""


# %%
def forward_loss(x: Tensor, y: Tensor) -> Tensor:
    """The loss of the whole batch at once."""
    return squared_error(model(x), y)


plain_kept = saved_bytes(forward_loss, data, goal, exclude=model)
print(f"parameters {format_bytes(4 * numbers)}, activations {format_bytes(plain_kept)}")
assert plain_kept == 4 * 9 * L * B * d

Row = tuple[str, float, float]
ledger: list[Row] = []  # what, bytes predicted, bytes measured


def enter(what: str, predicted: float, measured: float) -> None:
    """Add a line to the ledger."""
    print(f"{what}: {predicted:,.0f} B predicted, {measured:,.0f} B measured")
    ledger.append((what, predicted, measured))


enter("plain: activations", 4 * 9 * L * B * d, plain_kept)

# %% [markdown]
r"""
*Try it yourself:* use `nn.functional.relu` instead of `gelu`. How many of the asserted $9d$ numbers are left, and why?

## 2 · Gradient accumulation

If the loss is a mean over the rows of a batch, its gradient is the mean of the rows' gradients. So you don't need the
whole batch at once. **Gradient accumulation** splits the batch into parts, called **microbatches**, and runs the forward
and backward passes on one microbatch after another. When a microbatch's backward pass ends, its activations are freed,
so you never hold the activations of two at the same time. Its gradients stay: `backward` *adds* them to the earlier
ones (lecture 06). After the last microbatch you have the gradients of the whole batch, and only then does the optimizer
take its step.

**Predict.** For the model above, add up the bytes of the parameters, the gradients, AdamW's state and the activations.
By what factor does this *sum* shrink if you process the batch in eight microbatches instead of all at once? (On a CPU:
$B = 512$, $d = 64$, $L = 8$. On a GPU: 1,024, 256, 8.)
"""

# %%
guess = None  # times

# %% tags=["item-98"]
part_kept = saved_bytes(forward_loss, data[: B // 8], goal[: B // 8], exclude=model)
enter("accumulation, 8 microbatches: activations", 4 * 9 * L * (B // 8) * d, part_kept)
fixed = 16 * numbers  # parameters, gradients, two moments, in float32
shrunk = (fixed + plain_kept) / (fixed + part_kept)
reconcile("the sum for the whole batch", guess, shrunk, "times that for eight microbatches")

assert plain_kept == 8 * part_kept
assert 1 < shrunk < 8

# %% [markdown]
r"""
Only the activations shrink to an eighth. Parameters, gradients and optimizer state take the same space whatever the
batch size.

### Exercise 11.1 · accumulate &nbsp; ★☆☆ &nbsp; essential &nbsp; 10 minutes

Write `accumulate(model, loss, x, y, size)`. It computes the gradients of `loss(model(x), y)` without ever passing more
than `size` rows through the model at a time, or keeping the activations of more than one microbatch. The model stays in
the mode that it's in, training or eval. `loss` returns the *mean* over the rows that it's given. Take the rows in
order, `size` at a time, and use each of them once; the last microbatch is smaller if `size` doesn't divide the number
of rows (which is at least one). Let the gradients *add* to what's in `.grad` (the caller has called `zero_grad`, or
wants the sum), and return the mean loss of the whole batch, as a Python float.
"""


# %% nbgrader={"grade": false, "grade_id": "accumulate", "locked": false, "schema_version": 3, "solution": true, "task": false}
def accumulate(
    model: nn.Module,
    loss: Callable[[Tensor, Tensor], Tensor],
    x: Float[Tensor, "B d_in"],
    y: Float[Tensor, "B d_out"],
    size: int,
) -> float:
    """Add the whole batch's gradients, in microbatches of at most `size` rows; return its mean loss."""
    ### BEGIN SOLUTION
    total = 0.0
    for start in range(0, len(x), size):
        rows, targets = x[start : start + size], y[start : start + size]
        share = loss(model(rows), targets) * len(rows) / len(x)
        share.backward()
        total += share.item()
    return total
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_accumulate", "locked": true}
check("accumulate")

# %% [markdown]
r"""
<details><summary>Hint 1</summary><code>for start in range(0, len(x), size)</code>, and the rows <code>x[start : start + size]</code>: a slice may extend beyond the end.</details>
<details><summary>Hint 2</summary>Suppose there are six rows, in microbatches of four and two: how much does each microbatch's mean count in the mean of all six? Weight its loss before <code>backward</code>, and the gradients are weighted too. <code>.item()</code> turns a loss into a number, without its graph.</details>

**Why it matters.** This method takes no extra FLOPs, but it's easy to get wrong: if you average the means of unequal
microbatches, the rows of a small one count too much.
"""

# %% tags=["item-98"]
model.zero_grad()
whole_loss = forward_loss(data, goal)
whole_loss.backward()
whole = [p.grad.clone() for p in model.parameters() if p.grad is not None]
assert len(whole) == 2 * L

for size in (B // 8, 100):  # 100 does not divide the batch
    model.zero_grad()
    mean = accumulate(model, squared_error, data, goal, size)
    assert math.isclose(mean, whole_loss.item(), rel_tol=1e-4)
    for p, gradient in zip(model.parameters(), whole, strict=True):
        assert same(p.grad, gradient)
del whole_loss

# %% [markdown]
r"""
The gradients are the same up to rounding, but not bit for bit, because the sums are computed in a different order.

What does accumulation cost? A small microbatch may not keep a GPU busy, and the weights are read again for each one, so
with too few rows a matrix product becomes memory-bound (lecture 05). And if the model contains a batch norm (lecture
09), the result changes, because each microbatch is normalized with its own mean and variance.

*Try it yourself:* time `accumulate` for microbatches of $B$, $B/8$ and 1 rows. When does it get much slower?

## 3 · Activation checkpointing

Our Llama's batch is a single sequence, which accumulation can't split. But most activations lie unused for a long time:
the first layer's aren't needed until the backward pass has gone through all the others. **Activation checkpointing**
(Chen and others, 2016), also called *recomputation*, keeps a block's *input* but none of its intermediate results, and
runs the block's forward pass again when the backward pass reaches that block. (Lecture 09's checkpoints are something
else: files.) Lecture 06 measured the cost: 8 FLOPs per parameter and token instead of 6.

How do you make autograd recompute? You write a subclass of `torch.autograd.Function`, which lets you define the
backward pass yourself. It has two static methods, and PyTorch passes both the same *context* object, `ctx`.
`forward(ctx, …)` computes the result and stores in `ctx` what the backward pass will need; while it runs, autograd
records *nothing*. `backward(ctx, gradient)` receives the gradient of the output and returns one gradient for each
argument of `forward`.
"""


# %%
class Square(torch.autograd.Function):
    """x², as an example."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * gradient


three = torch.tensor(3.0, requires_grad=True)
Square.apply(three).backward()
assert three.grad is not None and three.grad.item() == 6.0

# %% [markdown]
r"""
### Exercise 11.2 · Checkpoint &nbsp; ★★★ &nbsp; essential &nbsp; 25 minutes

Write the two methods of `Checkpoint` so that `Checkpoint.apply(block, x)` returns `block(x)`, gives `x` and the block's
parameters the same gradients as `block(x)` itself would, and keeps nothing but `x` between the two passes: no copy, no
output, no graph. `block` is a module that takes one tensor and, in the same mode (training or eval), computes the same
function each time, so it has no dropout, which would draw a different mask. `x` requires a gradient.

- In `forward`, run the block once and save what's needed; tensors with `ctx.save_for_backward`.
- In `backward`, turn gradient recording on and run the block again. Its input is `x` without its history: the same
  numbers, detached from their graph. Run the backward pass through this second run. Return a gradient for each argument
  of `forward`: `None` for the block, which isn't a tensor, and the gradient of `x` for `x`.

The parameters' gradients add to what's in `.grad`, as in any backward pass, and frozen or unused parameters get none.
"""


# %% nbgrader={"grade": false, "grade_id": "Checkpoint", "locked": false, "schema_version": 3, "solution": true, "task": false}
class Checkpoint(torch.autograd.Function):
    """Computes block(x) but keeps only x; the backward pass recomputes the rest."""

    @staticmethod
    def forward(ctx: Any, block: nn.Module, x: Tensor) -> Tensor:
        """The output; autograd records nothing here."""
        ### BEGIN SOLUTION
        ctx.block = block
        ctx.save_for_backward(x)
        return block(x)
        ### END SOLUTION

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        """The gradients of block (None) and x, from the gradient of the output."""
        ### BEGIN SOLUTION
        (x,) = ctx.saved_tensors
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            output = ctx.block(x)
        output.backward(gradient)
        return None, x.grad
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_Checkpoint", "locked": true}
check("Checkpoint")

# %% [markdown]
r"""
<details><summary>Hint 1</summary><code>ctx.block = block</code> keeps something that isn't a tensor, and <code>ctx.save_for_backward(x)</code> keeps tensors; <code>(x,) = ctx.saved_tensors</code> gives them back.</details>
<details><summary>Hint 2</summary>Inside <code>backward</code> nothing is recorded, except under <code>with torch.enable_grad():</code>. <code>x.detach()</code> shares the memory of <code>x</code> but lies outside the graph; make it a leaf that requires a gradient. Once you've run the backward pass from the output of the block's second run, where do you find the gradient of <code>x</code>? And which gradient does that pass start from?</details>

**Why it matters.** You can now choose what autograd keeps. PyTorch's own `torch.utils.checkpoint.checkpoint`, with
`use_reentrant=True`, uses a `torch.autograd.Function` like yours; its newer variant, `use_reentrant=False`, uses hooks
(section 4). Let's check a step's gradients and FLOPs with yours.
"""


# %% tags=["item-99"]
def checkpointed_loss(x: Tensor, y: Tensor) -> Tensor:
    """The loss, with every block in a checkpoint."""
    out = x
    for block in model:
        out = Checkpoint.apply(block, out)
    return squared_error(out, y)


forward_flops = 2 * B * numbers  # lecture 05: 2 for each row and each weight
data.requires_grad_()  # or `apply`, which only looks at its tensors, would return one without a graph
model.zero_grad()
checkpointed_flops = count_flops(lambda: checkpointed_loss(data, goal).backward())
for p, gradient in zip(model.parameters(), whole, strict=True):
    assert same(p.grad, gradient)
assert 4 <= checkpointed_flops / forward_flops < 4.1  # an ordinary step: 3 (lecture 06)

# %% [markdown]
r"""
The gradients are the same, at a third more FLOPs.

**Predict.** By what factor does checkpointing every block reduce the activations that the stack keeps?
"""

# %%
guess = None  # times

# %% tags=["item-99"]
kept = saved_bytes(checkpointed_loss, data, goal, exclude=model)
enter("checkpointing: activations", 4 * L * B * d, kept)
reconcile("activations without checkpointing", guess, plain_kept / kept, "times those with it")
assert plain_kept == 9 * kept

# %% [markdown]
r"""
(As before, the first input doesn't count, but the differences that the loss keeps do.) While the backward pass works on
a block, its intermediate results take space too, but those of two blocks never exist at the same time.

PyTorch's own `checkpoint` keeps as many bytes, but does something that yours doesn't.

> **Trap: random numbers.** If the block contains dropout, the second forward pass draws a *different* mask. The
> gradient then belongs to a function that was never computed, and nothing raises an error. PyTorch's version saves the
> state of the random number generator before the first pass and restores it for the second.
"""

# %%
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
first_layer = nn.Linear(d, d, bias=False)
dropping = nn.Sequential(first_layer, nn.Dropout(0.5)).to(device)


def first_gradient(how: Callable[[], Tensor]) -> Tensor:
    """The gradient of the first weight, always from the same seed."""
    dropping.zero_grad()
    torch.manual_seed(1)
    how().square().mean().backward()
    assert first_layer.weight.grad is not None
    return first_layer.weight.grad.clone()


wanted = first_gradient(lambda: dropping(data))
theirs = first_gradient(lambda: checkpoint(dropping, data, use_reentrant=False))
mine = first_gradient(lambda: Checkpoint.apply(dropping, data))
assert same(theirs, wanted)
print("yours:", "the same gradient" if same(mine, wanted) else "another gradient")


def their_loss(x: Tensor, y: Tensor) -> Tensor:
    """The loss, with every block in PyTorch's checkpoint."""
    out = x
    for block in model:
        out = checkpoint(block, out, use_reentrant=False)
    return squared_error(out, y)


assert saved_bytes(their_loss, data, goal, exclude=model) == kept

# %% [markdown]
r"""
### How many checkpoints?

You can also wrap several blocks, called a *segment*, in a single checkpoint. With $k$ blocks in each segment, you keep
only $L / k$ inputs, but the backward pass recomputes $k$ blocks at a time, and their intermediate results all exist at
once. In units of $B \cdot d$ numbers, the most that you hold at any time is

$$\text{peak}(k) = \frac{L}{k} + 9 k .$$

(That counts the current segment's input twice, for every $k$, so the best $k$ stays the same.)

**Predict.** Take a stack of 36 blocks. If every block has its own checkpoint ($k = 1$), how many times as high is the
peak as at the best $k$?
"""

# %%
guess = None  # times as high


# %% tags=["item-100"]
def worst(layers: int, k: int) -> float:
    """The peak, in units of B · d numbers, with k blocks in each segment."""
    return layers / k + 9 * k


best = min(range(1, 37), key=lambda k: worst(36, k))
reconcile(
    "the peak at k = 1", guess, worst(36, 1) / worst(36, best), "times as high as the best"
)
print(
    f"of 36 blocks, {best} in each segment: {worst(36, best):g} units; 1 in each: {worst(36, 1):g}"
)
assert best == 2 and worst(36, 2) == 36 and worst(36, 1) == 45
assert math.sqrt(36 / 9) == best  # where both terms are equal

sizes = [36 * 4**n for n in range(5)]
at_best = {n: min(worst(n, k) for k in range(1, n + 1)) for n in sizes}
assert all(at_best[n] == 6 * math.sqrt(n) for n in sizes)

# %% [markdown]
r"""
The peak is lowest where its two terms are equal, at $k = \sqrt{L/9}$, and then it's $6\sqrt L$: a model four times as
deep holds only twice as much. In a Transformer, the natural choice is to make each layer a segment. How much, then,
does a single layer keep?

### What a Transformer layer keeps

Korthikanti and others (2022, arXiv:2205.05198) count the bytes that a layer with dropout keeps in 16-bit training. In
their notation, the layer has width $h$ and $a$ heads, and the batch has $b$ sequences of $s$ tokens. In units of $sbh$
bytes, a vector of width $h$ for each token counts as 2, and the vector's dropout mask, one byte per element, as 1.
Attention's weights are $a s^2 b$ numbers, $as/h$ times $sbh$.

| part of the layer | kept, in units of $sbh$ bytes | sum |
|---|---|---|
| feed-forward block | our $9d$ numbers (18), a mask (1) | 19 |
| the linear layers of attention | their input (2), queries, keys and values (6), the output projection's input (2), a mask (1) | 11 |
| two norms | an input each (4) | 4 |
| attention weights, $s \times s$ for each head | softmax's output (2), a mask (1), the result of dropout (2), each times $as/h$ | $5as/h$ |

In all, that's $sbh\,(34 + 5as/h)$ bytes. If you recompute the whole layer, only its input is left, $2sbh$. *Selective*
recomputation, or selective checkpointing, recomputes only the last row of the table and keeps the other $34sbh$. The
last row is large, but cheap to compute again: attention's two products take $4bs^2h$ FLOPs, while all the products in
the layer's forward and backward passes take $72bsh^2 + 12bs^2h$ (lecture 06). For GPT-3, $a = 96$, $s = 2{,}048$ and
$h = 12{,}288$:
"""


# %%
UNITS = {"feed-forward": 2 * 9 + 1, "linear layers of attention": 2 + 6 + 2 + 1, "norms": 2 + 2}


def layer_kept(s: int, b: int, h: int, a: int, recompute: str = "nothing") -> float:
    """Bytes that one layer keeps, depending on what is recomputed."""
    per_element = {
        "nothing": sum(UNITS.values()) + (2 + 1 + 2) * a * s / h,
        "attention": sum(UNITS.values()),
        "everything": 2,
    }
    return s * b * h * per_element[recompute]


names = ("context", "width", "heads", "layers")
s, h, a, depth = (int(FACTS[f"GPT-3 {name}"].value) for name in names)
of_gpt3 = {
    what: depth * layer_kept(s, 1, h, a, what)
    for what in ("nothing", "attention", "everything")
}
for what, size in of_gpt3.items():
    print(f"GPT-3, one sequence, recomputing {what:>10}: {readable(size, 'B'):>8}")
saved = 1 - of_gpt3["attention"] / of_gpt3["nothing"]
more_flops = 4 * s**2 * h / (72 * s * h**2 + 12 * s**2 * h)
print(f"selective: {saved:.0%} of the bytes saved, {more_flops:.1%} more FLOPs")

assert list(UNITS.values()) == [19, 11, 4] and sum(UNITS.values()) == 34
assert (a, s, h) == (96, 2_048, 12_288) and round(saved, 2) == 0.70
assert round(of_gpt3["nothing"] / 1e9) == 275 and round(of_gpt3["everything"] / 1e9, 1) == 4.8
assert round(more_flops, 3) == 0.009
hfu, mfu = (FACTS[f"Megatron 175B {kind}"].value for kind in ("HFU", "MFU"))
# as if 12 b s² h were added
assert round(hfu / mfu - 1, 3) == round(3 * more_flops, 3) == 0.027

# %% [markdown]
r"""
Selective recomputation saves 70% of the bytes for 0.9% more FLOPs. (In the paper's table the HFU is 2.7% above the MFU,
because its formula counts attention's backward pass twice, too.) FlashAttention (lecture 04) makes the same choice
inside its kernel. For other choices, PyTorch has `create_selective_checkpoint_contexts`: you list the operators whose
results it should keep.

*Try it yourself:* call `layer_kept` with a context of 8,192 tokens. How much does selective recomputation save now?

## 4 · Offloading

Instead of computing activations again, you can move them to where memory is cheap. **Offloading** moves data to a
larger and slower memory until it's needed again: from a GPU to the CPU, or to a disk. Activations go out during the
forward pass and come back during the backward pass, over a slow link.

What does that cost? If the computation waits for every copy, the times add up. If the link works *while* the device
computes, each pass takes as long as the slower of the two, and the faster one is hidden. The backward pass does twice
the computation but moves the same number of bytes, so the transfer may be hidden in one pass and not in the other.

### Exercise 11.3 · offload_seconds &nbsp; ★☆☆ &nbsp; 8 minutes

Write `offload_seconds(size, forward_flops, link, rate, overlap)`. It returns how many seconds a forward and a backward
pass take together. The forward pass does `forward_flops` FLOPs and moves `size` bytes out; the backward pass brings
them back and does twice as many FLOPs. `link` is in B/s in each direction, and `rate` is in FLOP/s. With `overlap`, the
transfer and the computation run at the same time, and a pass ends when both are done; without it, one waits for the
other. The second pass begins when the first has ended. There may be nothing to move or nothing to compute; `link` and
`rate` are positive.
"""


# %% nbgrader={"grade": false, "grade_id": "offload_seconds", "locked": false, "schema_version": 3, "solution": true, "task": false}
def offload_seconds(
    size: int, forward_flops: float, link: float, rate: float, overlap: bool
) -> float:
    """Seconds that both passes take, if `size` bytes go out in the first and back in the second."""
    ### BEGIN SOLUTION
    carry, forward = size / link, forward_flops / rate
    passes = ((carry, forward), (carry, 2 * forward))
    return sum(max(times) if overlap else sum(times) for times in passes)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_offload_seconds", "locked": true}
check("offload_seconds")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>You need three numbers: the seconds to move <code>size</code> bytes, the seconds of computation in the forward pass, and those in the backward pass (twice as many).</details>
<details><summary>Hint 2</summary>Consider the two passes separately. When does a pass end if its transfer and its computation run at the same time? When does it end if one waits for the other? Then add the two passes.</details>

**Why it matters.** Before you build anything, this function tells you what offloading costs: nothing, or several times
the computation.

### Offload the activations

Autograd lets you register two functions, called *hooks*: it calls one when it saves a tensor, and the other when it
needs that tensor again.
"""

# %%
import tempfile
from pathlib import Path

resident = {t.untyped_storage().data_ptr() for t in (*model.parameters(), data, goal)}
carried = {"out": 0, "back": 0}  # bytes


def carry_away(tensor: Tensor, folder: Path) -> Any:
    """Move a tensor from a GPU to the CPU's memory, or from a CPU to a file; parameters and data stay."""
    if tensor.untyped_storage().data_ptr() in resident:
        return tensor
    carried["out"] += tensor.nbytes
    if devices.on_gpu(device):
        return tensor.to("cpu"), None
    path = folder / str(carried["out"])
    path.write_bytes(tensor.detach().numpy().tobytes())
    return path, tensor.shape


def bring_back(kept: Any) -> Tensor:
    """The same tensor, back on the device."""
    if isinstance(kept, Tensor):
        return kept
    where, shape = kept
    if shape is None:
        tensor = where.to(device)
    else:
        tensor = torch.frombuffer(bytearray(where.read_bytes()), dtype=torch.float32).view(
            shape
        )
    carried["back"] += tensor.nbytes
    return tensor


def offloaded_loss(folder: Path) -> Tensor:
    """The loss, with every activation that autograd keeps moved out."""
    with torch.autograd.graph.saved_tensors_hooks(
        lambda tensor: carry_away(tensor, folder), bring_back
    ):
        return forward_loss(data, goal)


with tempfile.TemporaryDirectory() as temporary:
    with track(device) as memory:
        loss = offloaded_loss(Path(temporary))
    left = memory.live - 4  # without the loss itself
    model.zero_grad()
    loss.backward()
for p, gradient in zip(model.parameters(), whole, strict=True):
    assert same(p.grad, gradient)

for way, size in carried.items():
    enter(f"offloading: moved {way}", 4 * 9 * L * B * d, size)
enter("offloading: activations left", 0, left)

# %% [markdown]
r"""
No activations are left on the device, the gradients are the same, and every saved activation was moved out once and
back once.

How long does a step take now? Our hooks finish each copy before the next operation begins, so there's no overlap. Your
function can predict the time from two measurements: an ordinary step gives the rate of computation, and one tensor's
round trip gives the bandwidth of the link.
"""

# %% tags=["timed"]
with tempfile.TemporaryDirectory() as temporary:
    folder = Path(temporary)
    one_tensor = torch.randn(B, 4 * d, device=device)
    there_and_back = timing.benchmark(
        lambda: bring_back(carry_away(one_tensor, folder)), device=device
    )
    plain_step = timing.benchmark(lambda: forward_loss(data, goal).backward(), device=device)
    offloaded = timing.benchmark(lambda: offloaded_loss(folder).backward(), device=device)
link = 2 * one_tensor.nbytes / there_and_back.median
rate = 3 * forward_flops / plain_step.median
foreseen = offload_seconds(4 * 9 * L * B * d, forward_flops, link, rate, overlap=False)
print(f"link {readable(link, 'B/s')}, computing {readable(rate, 'FLOP/s')}")
print(f"an ordinary step {plain_step}")
print(f"with offloading {offloaded}, predicted {readable(foreseen, 's')}")
model.zero_grad()

# %% [markdown]
r"""
### Offload the optimizer state

The same calculation works for the optimizer state. ZeRO-Offload (Ren and others, 2021, arXiv:2101.06840) keeps the
master weights and both moments in the CPU's memory and lets the CPU take the optimizer step. Then only 16-bit numbers
cross the link, 2 bytes per parameter in each direction. The gradients are copied to the CPU while the backward pass
computes them; let's assume that the new weights are copied to the GPU during the next forward pass. PCIe, the link
between the CPU and an H100, moves 64 GB/s in each direction, according to the data sheet.

**Predict.** The forward pass does 2 FLOPs per parameter and token, at about 400 TFLOP/s (an MFU of 0.4). What's the
smallest number of tokens that a step must process for the forward pass to hide the copy of the new weights completely?
"""

# %%
guess = None  # tokens

# %%
each_way = FACTS["H100 SXM PCIe bandwidth"].value / 2  # data sheets add both directions
rate = 0.4 * FACTS["H100 SXM bfloat16 peak"].value  # at an MFU of 0.4
size = 2 * llama.parameters  # bytes, each way
reconcile("hiding the copy takes", guess, rate / each_way, "tokens")
for tokens in (8_192, 2_048):
    flops = 2 * llama.parameters * tokens  # of the forward pass
    plain_seconds = 3 * flops / rate
    waiting, hiding = (
        offload_seconds(size, flops, each_way, rate, overlap) for overlap in (False, True)
    )
    print(
        f"{tokens:,} tokens: {plain_seconds:.2f} s without offloading, {waiting:.2f} s without overlap, {hiding:.2f} s with overlap"
    )
    if tokens == 8_192:
        assert round(2 * size / each_way, 2) == 0.50 and round(plain_seconds, 1) == 1.0
        assert round(waiting, 1) == 1.5 and math.isclose(hiding, plain_seconds)
    else:
        assert hiding > 1.9 * plain_seconds
assert round(rate / 1e12, -1) == 400 and each_way == 64e9
assert math.isclose(2 * llama.parameters * (rate / each_way) / rate, size / each_way)
assert round((alone["master copy"] + alone["optimizer state"]) / 1e9) == 96

# %% [markdown]
r"""
This frees 96 GB of GPU memory, 12 bytes per parameter.

Here weights come in during the forward pass and gradients go out during the backward pass. For Llama 3.1 8B with 8,192
tokens, each of the two copies takes a quarter of a second. The forward pass takes a third of a second and the backward
pass two thirds, so both copies are hidden completely. With a quarter as many tokens, the computation takes only a
quarter of a second, so the step takes twice as long as without offloading, even with overlap. (The CPU's optimizer step
over its 96 GB comes on top.)

For $N$ parameters, the forward pass does $2N$ FLOPs per token, and the copy moves $2N$ bytes. $N$ cancels: for *any*
model, the number of tokens must be at least the rate in FLOP/s divided by the bandwidth in B/s.

*Try it yourself:* run `checkpointed_loss` under the two hooks, so that the one input that each checkpoint keeps is
offloaded, too (first set both numbers in `carried` to 0). How many bytes are moved now?

## 5 · Optimizers with less state

Two optimizers from an optional part of lecture 08 need less state than AdamW.

- *Lion* (arXiv:2302.06675) keeps one average of the gradients, mixes it with the current gradient, and steps by the
  sign of the mixture.
- *Adafactor* (arXiv:1804.04235) keeps, for each matrix, running averages of the row means and the column means of the
  squared gradients, whose products stand for the second moments (it has no first ones). So for an $m \times n$ matrix
  it keeps $m + n$ numbers, where AdamW keeps $2mn$. For a vector it keeps a running average of each squared gradient,
  as AdamW does.

The next function computes the size of the state from the parameters' shapes, with the 4-byte step counter that
PyTorch's AdamW and Adafactor keep for each tensor. (Our own `Lion` won't need one.)
"""


# %%
def optimizer_bytes(shapes: list[tuple[int, ...]], optimizer: str) -> int:
    """Bytes of the optimizer's state for float32 matrices and vectors of these shapes."""
    total = 0
    for shape in shapes:
        numbers = {
            "AdamW": 2 * math.prod(shape) + 1,
            "Lion": math.prod(shape),
            "Adafactor": sum(shape) + 1,  # for a vector: one per element
        }
        total += 4 * numbers[optimizer]
    return total


assert optimizer_bytes([(8, 8)], "AdamW") == 2 * 4 * 64 + 4  # two moments, and the counter

# %% [markdown]
r"""
Is the function exact, and does our stack learn with each optimizer? (A layer norm in front adds some parameters that
are vectors.)
"""


# %%
from torch.utils._pytree import tree_leaves


class Lion(torch.optim.Optimizer):
    """Keeps one average; steps by the sign of that average mixed with the gradient."""

    def __init__(self, params: Iterable[Any], lr: float = 1e-4) -> None:
        super().__init__(params, defaults={"lr": lr, "betas": (0.9, 0.99)})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """One step."""
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("exp_avg", torch.zeros_like(p))
                p -= group["lr"] * torch.sign(beta1 * m + (1 - beta1) * p.grad)
                m.mul_(beta2).add_(p.grad, alpha=1 - beta2)


def held(things: Any) -> int:
    """Bytes of the storages of all tensors in nested lists and dicts."""
    return sum(
        storage_bytes(thing) for thing in tree_leaves(things) if isinstance(thing, Tensor)
    )


teacher = stack(d, 1).to(device)
torch.manual_seed(1)
target = (2 * nn.Linear(d, d, bias=False).to(device)(teacher(data.detach()))).detach()
losses: dict[str, list[float]] = {}
for name, make in (
    ("AdamW", lambda p: torch.optim.AdamW(p, lr=1e-3)),
    ("Lion", lambda p: Lion(p, lr=3e-4)),
    ("Adafactor", lambda p: torch.optim.Adafactor(p, lr=3e-2)),
):
    student = nn.Sequential(nn.LayerNorm(d), *stack(d, L)).to(device)
    shapes = [tuple(p.shape) for p in student.parameters()]
    optimizer = make(student.parameters())
    for _ in range(40):
        optimizer.zero_grad()
        loss = squared_error(student(data.detach()), target)
        loss.backward()
        optimizer.step()
        losses.setdefault(name, []).append(loss.item())
    enter(f"{name}: state", optimizer_bytes(shapes, name), held(optimizer.state_dict()))
    print(f"    loss {losses[name][0]:.2f} at first, {losses[name][-1]:.2f} after 40 steps")
    assert losses[name][-1] < losses[name][0] / 2
of_the_stack = [tuple(p.shape) for p in model.parameters()]
share = optimizer_bytes(of_the_stack, "Adafactor") / (4 * numbers)
print(f"Adafactor's state: {share:.1%} of the stack's parameters")
assert share < 0.05

# %% [markdown]
r"""
How large would the state be for Llama 3.1 8B? Each layer has seven matrices and two norms. Around the layers are an
embedding table, a last norm and the output layer.
"""

# %% tags=["folded"]
width, kv, hidden = llama.width, llama.kv_width, llama.hidden
seven = [(width, width)] * 2 + [(width, kv)] * 2 + [(width, hidden)] * 2 + [(hidden, width)]
shapes = [(llama.vocabulary, width)] * 2 + llama.layers * [*seven, (width,), (width,)]
shapes.append((width,))
assert sum(map(math.prod, shapes)) == llama.parameters
for name in losses:
    print(f"Llama 3.1 8B, {name}: {readable(optimizer_bytes(shapes, name), 'B')} of state")
assert [round(optimizer_bytes(shapes, name) / 1e6) for name in losses] == [64_242, 32_121, 13]

# %% [markdown]
r"""
Llama's state shrinks from 64 GB to 32 GB with Lion, and to 13 MB with Adafactor. The cost is a different update rule,
whose learning rate you have to tune again: above, Adafactor's is 30 times AdamW's.

*Try it yourself:* give Adafactor AdamW's learning rate, `1e-3`. Does the loss still fall by half?

## 6 · LoRA: train something smaller

Suppose you only want to *adapt* a trained model. **LoRA**, or low-rank adaptation, freezes the model's matrices and
learns, for each of them, an update that is the product of two thin matrices (Hu and others, 2021, arXiv:2106.09685):

$$y = W x + \frac{\alpha}{r}\, U D x$$

$D$ is $r \times \text{in}$, $U$ is $\text{out} \times r$. $W$ is frozen, so it has no gradient, no optimizer state and no master weights. Only $D$ and $U$ (called $A$ and $B$ in
the paper) are trained; together they're an *adapter*. They're thin: the dimension that they share, the **rank** $r$,
is small. $U$ starts at zero, so that training starts from the given model. ($D$ must not start at zero as well,
or the gradients of both would stay zero.) You choose the constant $\alpha$; thanks to the division by $r$, you
shouldn't have to retune the learning rate much for a different rank. (Kalajdzievski, 2023, arXiv:2312.03732, finds
that dividing by $\sqrt{r}$ works better.) After training you can add $\frac{\alpha}{r}\, U D$ to $W$; such a *merged*
layer takes no extra time to run.

### Exercise 11.4 · LoRALinear &nbsp; ★★☆ &nbsp; 15 minutes

Write `LoRALinear(base, rank, alpha)`. `base` is an `nn.Linear`, perhaps with a bias; freeze all of its parameters. Make
two parameters, `down` of shape `[rank, in]` with random values (normal, with standard deviation $1/\sqrt{\text{in}}$)
and `up` of shape `[out, rank]` with zeros, both in the base's dtype and on its device. The base's parameters belong to
the layer too, so that `.to` moves them and `state_dict` contains them. `forward` takes any number of leading
dimensions, including none, and never makes the product $U D$; gradients reach `down`, `up` and $x$. `merged()` returns
the weight $W + \tfrac{\alpha}{r} U D$ and changes nothing.
"""


# %% nbgrader={"grade": false, "grade_id": "LoRALinear", "locked": false, "schema_version": 3, "solution": true, "task": false}
class LoRALinear(nn.Module):
    """A frozen linear layer plus alpha / rank · up @ down."""

    def __init__(self, base: nn.Linear, rank: int, alpha: float) -> None:
        super().__init__()
        ### BEGIN SOLUTION
        self.base, self.scale = base, alpha / rank
        for p in base.parameters():
            p.requires_grad_(False)
        weight = base.weight
        self.down = nn.Parameter(
            torch.randn_like(weight[:1].expand(rank, -1)) / weight.shape[1] ** 0.5
        )
        self.up = nn.Parameter(weight.new_zeros(weight.shape[0], rank))
        ### END SOLUTION

    def forward(self, x: Float[Tensor, "*B d_in"]) -> Float[Tensor, "*B d_out"]:
        """The base's output plus the update's."""
        ### BEGIN SOLUTION
        return self.base(x) + self.scale * (x @ self.down.T @ self.up.T)
        ### END SOLUTION

    @torch.no_grad()
    def merged(self) -> Float[Tensor, "d_out d_in"]:
        """The single weight that does the same."""
        ### BEGIN SOLUTION
        return self.base.weight + self.scale * (self.up @ self.down)
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_LoRALinear", "locked": true}
check("LoRALinear")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>A linear layer keeps its weight as <code>[out, in]</code> and computes <code>x @ weight.T</code>. Use <code>down</code> and <code>up</code> in the same way, one after the other.</details>
<details><summary>Hint 2</summary><code>base.weight.new_zeros(…)</code> makes zeros of the same dtype on the same device; <code>torch.randn(…, dtype=…, device=…)</code> makes the random ones.</details>

**Why it matters.** With LoRA you can fine-tune a model on a card that's too small for training all of its weights.

**Predict.** All matrices of the stack become LoRA layers of rank 4. By what factor do the bytes of the *activations*
change? (A factor below 1 means fewer.)
"""

# %%
guess = None  # times

# %%
rank = 4
with track(device) as memory:
    model = stack(d, L).to(device)
    for block in model:
        for name in ("up", "down"):
            setattr(block, name, LoRALinear(getattr(block, name), rank, alpha=8.0).to(device))
    trained = [p for p in model.parameters() if p.requires_grad]
    adamw = torch.optim.AdamW(trained, lr=1e-3)
thin = sum(p.numel() for p in trained)
assert thin == 2 * L * rank * (d + 4 * d)

lora_kept = saved_bytes(forward_loss, data.detach(), goal, exclude=model)
forward_loss(data.detach(), goal).backward()
adamw.step()
gradient_bytes = held([p.grad for p in model.parameters()])
enter("LoRA: activations", 4 * (9 * d + 2 * rank) * L * B, lora_kept)
enter("LoRA: gradients", 4 * thin, gradient_bytes)
enter("LoRA: state", 8 * thin + 4 * len(trained), held(adamw.state_dict()))
print(f"parameters that are trained: {thin:,} of {numbers:,}")
reconcile("activations with LoRA", guess, lora_kept / plain_kept, "times those without")

assert gradient_bytes < numbers  # less than a quarter of the 4 · N bytes of the whole model's
assert 4 * (9 * d + 2 * rank) * L * B > plain_kept

# %% [markdown]
r"""
Here's Llama 3.1 8B, with rank 16 on all seven matrices of each layer:
"""

# %%
adapters = llama.layers * sum(16 * (rows + columns) for rows, columns in seven)
everything = 16 * llama.parameters
with_lora = 2 * llama.parameters + 16 * adapters
print(f"{adapters:,} parameters are trained, {adapters / llama.parameters:.2%} of the model's")
print(
    f"without activations: {readable(everything, 'B')} to train every weight, {readable(with_lora, 'B')} with LoRA"
)

assert adapters == 41_943_040
assert round(everything / 1e9) == 128 and round(with_lora / 1e9, 1) == 16.7
assert card < everything < 2 * card and with_lora < 24e9

# %% [markdown]
r"""
Not counting the activations, that takes us from two 80 GB cards to one 24 GB card.

The stack's activations, however, grew a little: $9d + 2r$ numbers for each row and block, instead of $9d$. A frozen
matrix no longer needs its input, but its adapter does, for the gradient of $D$. And each adapter also keeps $D$'s
output, $r$ numbers. LoRA saves memory *per parameter* and checkpointing *per token*, so they complement each other.

*Try it yourself:* suppose the frozen weights take 4 bits, half a byte each (QLoRA; Dettmers and others, 2023). How many
GB does the training need then, without the activations?
"""

# %% [markdown]
r"""
## 7 · Fusion

The last method saves memory *traffic*. An elementwise operation reads each number, computes almost nothing, and writes
the result (lecture 05). In a chain of such operations, each one reads and writes whole tensors. **Fusion** combines a
chain of operations into one kernel that reads the input once, does all the computation, and writes the result once.
`torch.compile` does this. Our example is the usual approximation of GELU, written out:

$$\tfrac12\, x \left( 1 + \tanh\!\big( 0.798\, (x + 0.0447\, x^3) \big) \right)$$
"""


# %%
def gelu_by_hand(x: Tensor) -> Tensor:
    """GELU's approximation, operation by operation."""
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


# %% [markdown]
r"""
**Predict.** PyTorch runs these operations one at a time. By what factor would a single fused kernel reduce the number
of bytes moved?
"""

# %%
guess = None  # times the bytes

# %% [markdown]
r"""
### Exercise 11.5 · chain_bytes &nbsp; ★☆☆ &nbsp; 8 minutes

Write `chain_bytes(chain, size)`. It returns the bytes that a chain of elementwise operations reads and writes, as a
dict with `"eager"`, where each operation is a separate kernel, and `"fused"`, where one kernel does them all. `chain`
is a list of one or more pairs `(result, operands)`; the names in it stand for tensors of `size` bytes each:
`[("a", ["x"]), ("b", ["a", "y"])]` computes `a` from `x`, and then `b` from `a` and `y`. The last result is the one we
want; the others are temporary and are used once, several times or never. (An operation whose result is never used
still runs, fused or not.) An operation has one or more operands, all different; operands come from outside or
from an earlier operation, and each result has a name of its own. (Plain numbers, as in `0.5 * x`, aren't listed:
they're part of the kernel.)
"""


# %% nbgrader={"grade": false, "grade_id": "chain_bytes", "locked": false, "schema_version": 3, "solution": true, "task": false}
def chain_bytes(chain: list[tuple[str, list[str]]], size: int) -> dict[str, int]:
    """Bytes read and written, with one kernel per operation and with one for all."""
    ### BEGIN SOLUTION
    made = {result for result, _ in chain}
    read = {name for _, operands in chain for name in operands}
    eager = sum(len(operands) + 1 for _, operands in chain)
    return {"eager": eager * size, "fused": (len(read - made) + 1) * size}
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_chain_bytes", "locked": true}
check("chain_bytes")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Eager: how many tensors does an operation with two operands move between memory and the kernel? It's not two.</details>
<details><summary>Hint 2</summary>Fused: which names does the kernel have to read because no operation makes them? A set contains each of them once. And what is written?</details>

**Why it matters.** Elementwise operations are usually memory-bound, so nearly all their time goes into moving bytes.
The ratio of the two numbers is therefore about the largest speedup to hope for.

To count the traffic, we use a *dispatch mode*, an object that sits between PyTorch and its kernels. Ours counts the
operations and the bytes that they read and write. GELU takes eight operations, with temporaries that we call `a` to
`g`.
"""

# %%
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Traffic(TorchDispatchMode):
    """Counts the operations that run, and the bytes of tensors that they read and write."""

    def __init__(self) -> None:
        super().__init__()
        self.kernels = self.bytes = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        moved = [t for t in tree_leaves((args, kwargs, result)) if isinstance(t, Tensor)]
        self.kernels += 1
        self.bytes += sum(t.numel() * t.element_size() for t in moved)
        return result


gelu_chain = [
    ("a", ["x"]),  # 0.5 · x
    ("b", ["x"]),  # x³
    ("c", ["b"]),  # 0.0447 · x³
    ("d", ["x", "c"]),
    ("e", ["d"]),  # 0.798 · (…)
    ("f", ["e"]),  # tanh
    ("g", ["f"]),  # 1 + …
    ("result", ["a", "g"]),
]
side = 1_024
many = torch.randn(side, side, device=device)
with Traffic() as eager:
    gelu_by_hand(many)
traffic = chain_bytes(gelu_chain, 4 * side**2)
enter("one kernel for each: traffic of GELU", traffic["eager"], eager.bytes)
reconcile(
    "the traffic of eight kernels", guess, eager.bytes / traffic["fused"], "times that of one"
)

assert eager.kernels == len(gelu_chain) == 8
assert eager.bytes == 9 * traffic["fused"]

# %% [markdown]
r"""
Now let PyTorch compile the function. How many kernels does it generate, and how many tensors does each of them read and
write? (On a CPU this needs a C++ compiler; without one, the cell says so. The first compilation may take ten seconds or
more.)
"""

# %% tags=["folded"]
import re

import torch._inductor.exc
from torch._inductor.utils import run_and_get_code


def compiled_kernels(fn: Callable[..., Any], *args: Any) -> list[tuple[int, int]] | None:
    """For each kernel that torch.compile makes for fn: tensors read and written. None if it cannot compile."""
    torch._dynamo.reset()
    try:
        result, sources = run_and_get_code(torch.compile(fn), *args)
    except torch._inductor.exc.InductorError as error:
        print(f"not compiled here: {type(error).__name__}, {str(error).splitlines()[0]}")
        return None
    assert torch.allclose(result, fn(*args), atol=1e-5)
    heads = re.findall(r"void\s+kernel\(([^)]*)\)|def triton_\w+\(([^)]*)\)", "".join(sources))
    found = []
    for head in map("".join, heads):
        in_place = len(re.findall(r"in_out_ptr\d+", head))
        reads = len(re.findall(r"\bin_ptr\d+", head)) + in_place
        found.append((reads, len(re.findall(r"\bout_ptr\d+", head)) + in_place))
    return found


kernels = compiled_kernels(gelu_by_hand, many)
if kernels is not None:
    for reads, writes in kernels:
        print(f"a kernel that reads {reads} tensor and writes {writes}")
    moved = sum(reads + writes for reads, writes in kernels) * 4 * side**2
    enter("fusion: traffic of GELU", traffic["fused"], moved)
    assert len(kernels) == 1

# %% [markdown]
r"""
Eight kernels became one, with a ninth of the traffic. Is it faster as well? And what does autograd keep for the
backward pass?
"""

# %% tags=["timed"]
if kernels is not None:
    fused = torch.compile(gelu_by_hand)
    learning, besides = many.clone().requires_grad_(), []
    for name, function in (("one at a time", gelu_by_hand), ("fused", fused)):
        besides.append(saved_bytes(function, learning))  # its input not counted
        took = timing.benchmark(lambda: function(many), device=device)
        print(f"{name:>13}: {took}; autograd keeps {format_bytes(besides[-1])}")
    assert besides == [3 * many.nbytes, 0]

# %% [markdown]
r"""
It should be faster, since the chain is memory-bound. With one kernel per operation, autograd kept three intermediate
results of the chain. With the fused kernel it keeps only the input, and the backward pass recomputes the rest: in
effect, the compiler does activation checkpointing for you. Fusion doesn't help a large matrix product, which is
compute-bound and already a single kernel.

*Try it yourself:* give `compiled_kernels` (in the folded code above) a softmax, written out: subtract the maximum,
`exp`, divide by the sum. How many kernels do you get?
"""

# %% [markdown]
r"""
## 8 · The same training in a fraction of the memory

We train the stack four times, each time with one more method: first with none, then in eight microbatches with your
`accumulate`, then also with every block in your `Checkpoint`, and finally with Adafactor instead of AdamW. The first
three compute the same gradients up to rounding, so their losses have to agree. The fourth uses a different update rule.

**Predict.** Add up the bytes of parameters, gradients, optimizer state and activations. By what factor is this sum
larger in the first run than in the last? ($B = 512$, $d = 64$, $L = 8$ on a CPU; 1,024, 256, 8 on a GPU. Each block has
$8 d^2$ parameters, and a checkpointed block keeps only its input; leave out what's recomputed.)
"""

# %%
guess = None  # times


# %% tags=["open"]
class CheckpointedStack(nn.Module):
    """The stack, with every block in your Checkpoint."""

    def __init__(self, blocks: nn.Sequential) -> None:
        super().__init__()
        self.blocks = blocks

    def forward(self, x: Tensor) -> Tensor:
        x = x.detach().requires_grad_()  # or the first block's output would require no gradient
        for block in self.blocks:
            x = Checkpoint.apply(block, x)
        return x


STEPS, PARTS = 20, 8
RATES = {"AdamW": 1e-3, "Adafactor": 3e-2}


def train(checkpoints: bool, size: int, name: str) -> tuple[list[float], dict[str, float]]:
    """The losses of twenty steps with at most `size` rows at a time, and the bytes held, by kind."""
    blocks = stack(d, L).to(device)
    trained: nn.Module = CheckpointedStack(blocks) if checkpoints else blocks
    optimizer = getattr(torch.optim, name)(trained.parameters(), lr=RATES[name])
    x = data.detach()

    def loss(x: Tensor, y: Tensor) -> Tensor:
        return squared_error(trained(x), y)

    kept = saved_bytes(loss, x[:size], target[:size], exclude=trained)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        losses.append(accumulate(trained, squared_error, x, target, size))
        optimizer.step()
    return losses, {
        "parameters": held(list(trained.parameters())),
        "gradients": held([p.grad for p in trained.parameters()]),
        "optimizer state": held(optimizer.state_dict()),
        "activations": kept,
    }


# %%
ways: dict[str, tuple[bool, int, str]] = {
    "plain": (False, B, "AdamW"),
    "microbatches": (False, B // PARTS, "AdamW"),
    "+ checkpoints": (True, B // PARTS, "AdamW"),
    "+ Adafactor": (True, B // PARTS, "Adafactor"),
}
courses: dict[str, list[float]] = {}
bars: dict[str, dict[str, float]] = {}
for way, (checkpoints, size, name) in ways.items():
    courses[way], bars[way] = train(checkpoints, size, name)
    planned = {
        "parameters": 4 * numbers,
        "gradients": 4 * numbers,
        "optimizer state": optimizer_bytes(of_the_stack, name),
        "activations": 4 * (1 if checkpoints else 9) * L * size * d,
    }
    assert bars[way] == planned
    enter(f"{way}: all four kinds", sum(planned.values()), sum(bars[way].values()))
    print(
        f"    loss {courses[way][0]:.3f} at first, {courses[way][-1]:.3f} after {STEPS} steps"
    )
    assert courses[way][-1] < 0.9 * courses[way][0]
for way in ("microbatches", "+ checkpoints"):
    drift = max(abs(a - b) for a, b in zip(courses["plain"], courses[way], strict=True))
    assert drift < 1e-3 * courses["plain"][0]

fewer = sum(bars["plain"].values()) / sum(bars["+ Adafactor"].values())
reconcile("the first training", guess, fewer, "times the bytes of the last")

# %% tags=["folded"]
# The bytes of each method, side by side
finding = f"Three methods together reduce the bytes that a training run keeps by a factor of {fewer:.1f}"
plots.show(
    plots.memory_stacks(bars, title=finding),
    alt=f"{finding}. Bars of parameters, gradients, optimizer state and activations: in microbatches the "
    "activations shrink to an eighth, with checkpoints they nearly vanish, and with Adafactor so does the optimizer state.",
)
exact = sum(predicted == measured for _, predicted, measured in ledger)
print(f"{exact} of the {len(ledger)} byte counts in this lecture were predicted exactly")

# %% [markdown]
r"""
What did it cost? More and smaller passes, a third more FLOPs for recomputation, and a different update rule with its
own learning rate. None of the three methods reduces the memory that the parameters or their gradients take. To reduce
the gradients, you'd use LoRA. To reduce the memory for the parameters, you'd keep them in 16 bits, without master
weights in float32, and round stochastically (lecture 02), so that small updates aren't lost.

Back to the model that didn't fit: can one H100 train Llama 3.1 8B with a sequence of 8,192 tokens?
"""

# %%
step = napkin.Step(batch=1, context=8_192, checkpointing=True)
checkpointed = napkin.memory(llama, step)
with_adafactor = {**checkpointed, "optimizer state": optimizer_bytes(shapes, "Adafactor")}
adapted = {  # the adapters' own activations, a few MB in the one layer being recomputed, are left out
    "parameters": 2 * (llama.parameters + adapters),
    "gradients": 2 * adapters,
    "optimizer state": 8 * adapters,
    "master copy": 4 * adapters,
    "activations": checkpointed["activations"],
}
ledgers = {
    "plain": alone,
    "checkpoints": checkpointed,
    "+ Adafactor": with_adafactor,
    "checkpoints, LoRA": adapted,
}
finding = "With checkpoints and Adafactor or LoRA, Llama 3.1 8B fits on one H100"
plots.show(
    plots.memory_stacks(ledgers, limits={"H100: 80 GB": card}, title=finding),
    alt=f"{finding}. Bars of five kinds: plain and checkpointed training exceed the card; with Adafactor or LoRA it fits.",
)
sums = {name: sum(ledger.values()) for name, ledger in ledgers.items()}
for name, size in sums.items():
    print(f"{name:>18}: {readable(size, 'B')}")

assert round((card - sums["+ Adafactor"]) / 1e9) == 8 and sums["checkpoints, LoRA"] < card / 3
assert (
    sums["plain"] > sums["checkpoints"] > card > sums["+ Adafactor"] > sums["checkpoints, LoRA"]
)

# %% [markdown]
r"""
Checkpointing alone isn't enough, because AdamW's state and the master weights remain. With checkpointing and Adafactor
instead of AdamW, the training barely fits: that leaves 8 GB for everything that these bars don't include, such as
temporaries and what CUDA itself needs. If you train only LoRA's matrices, most of the card is free. With AdamW for
every weight, you need offloading or a second card.

## Takeaways

**Mechanics.** Accumulation: weight each microbatch's loss by its fraction of the rows, then call `backward`.
Checkpointing: keep the input and recompute the rest, for 4/3 of the FLOPs. Our stack's peak is lowest with
$\sqrt{L/9}$ blocks in each segment. Offloading: with overlap, each pass takes as long as the slower of the transfer and
the computation. Adafactor: one number per row and one per column. LoRA: $r\,(\text{in} + \text{out})$ numbers instead of
$\text{in} \cdot \text{out}$. Fusion: each input is read once, and only the final result is written.

**Mindset.** Ask three questions about every method: which kind of memory does it reduce, what does it cost, and is the
result still the same? Then check by measuring.

**Intuitions.** Activations grow with the number of tokens and everything else grows with the number of parameters, so
most methods reduce only one of the two. Don't keep what's cheap to recompute. A chain of elementwise operations spends
most of its time moving numbers between memory and the processor.

Next: [12 · Scale](../12_scale/12_scale.ipynb). Several devices share one model. What does each of them hold, and what
do they have to send each other?
"""

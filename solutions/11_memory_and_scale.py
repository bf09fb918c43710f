# %% [markdown]
r"""
# 11 · Memory and scale

> **The model does not fit. What can you trade for memory?**

Lecture 08 ended with a ledger: every byte of a training step, in four kinds. This lecture makes the numbers in it
smaller. None of the ways is free. Each trades memory for something else: for passes, for FLOPs, for time on a wire, for
another optimizer, for a model that can learn less. So for each of them you will do the same three things: write down
what it saves and what it costs, run it *for real*, and measure both.

By the end you will have shown that two processes train a model together, each with your checkpointing, your
accumulation and its half of your AdamW, that they end up with the numbers of one process that does it all alone, and
that every byte they save was predicted.

How to read: run the cells in order (<kbd>Shift</kbd> + <kbd>Enter</kbd>). Where a cell says *predict*, write your
number first; being wrong is how you find out what to look at. The cell below each exercise checks your answer and names
the likely mistake; **Validate** in the toolbar runs them all.
"""

# %%
import itertools
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
from course_utils.ranks import Group, RanksError, launch, simulate, wire_bytes
from course_utils.units import format_bytes, readable
from course_utils.testing import check

device = devices.pick_device()
print(devices.describe(device))
show_progress()

# %% [markdown]
r"""
## 1 · What does not fit

Llama 3.1 8B again, the way it is usually trained: weights and gradients in bfloat16, and in float32 a master copy and
AdamW's two averages (lecture 10). One sequence of 8,192 tokens on one H100.

**Predict.** How many times over does it fill the card's 80 GB?
"""

# %%
guess = None  # times

# %%
llama = napkin.PUBLISHED["Llama 3.1 8B"]
card = FACTS["H100 SXM memory"].value
alone = napkin.memory(llama, napkin.Step(batch=1, context=8_192))
for kind, size in alone.items():
    print(f"{kind:>16}: {readable(size, 'B'):>8}")
reconcile("one sequence on one card", guess, sum(alone.values()) / card, "times")

assert round(sum(alone.values()) / card, 1) == 2.2
assert alone["optimizer state"] == max(alone.values()) == 8 * llama.parameters
assert round(alone["optimizer state"] / card, 1) == round(4 / 5, 1)
assert round(alone["activations"] / card, 1) == round(3 / 5, 1)

# %% [markdown]
r"""
More than twice, and in five kinds: the state alone would take four fifths of the card, the activations of one sequence
another three fifths. Here is what people do, and what they pay. The third column is what this
lecture is about: you will fill a ledger with it.

| what | shrinks | paid for with |
|---|---|---|
| gradient accumulation (section 2) | activations | more and smaller passes |
| checkpointing (3) | activations | computing them again |
| offload (3) | activations, state | traffic to a slower memory |
| Adafactor, Lion (4) | optimizer state | another rule of learning |
| LoRA (4) | gradients, state, master copy | fewer directions to learn in |
| data parallelism and ZeRO (5, 6) | state, gradients, parameters | traffic between cards |
| tensor parallelism (7) | all five | traffic inside each layer |
| pipeline parallelism (8) | all five | cards that wait |
| fusion (9) | temporaries, traffic | a compiler's time |

The model to try it on is a stack of residual blocks, each with two matrices and a GELU: the feed-forward half of a
Transformer. Small on a CPU, larger on a GPU; the ledger's formulas hold for both.
"""


# %%
class Block(nn.Module):
    """x + down(GELU(up(x))), 4 · d wide in between: 8 · d² parameters."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.up = nn.Linear(d, 4 * d, bias=False)
        self.down = nn.Linear(4 * d, d, bias=False)

    def forward(self, x: Float[Tensor, "B d"]) -> Float[Tensor, "B d"]:
        return x + self.down(nn.functional.gelu(self.up(x)))


def stack(d: int, layers: int) -> nn.Sequential:
    """So many blocks on the CPU; the same numbers in every process."""
    torch.manual_seed(0)
    return nn.Sequential(*(Block(d) for _ in range(layers)))


def squared_error(prediction: Tensor, y: Tensor) -> Tensor:
    """The mean of the squared errors."""
    return (prediction - y).square().mean()


def same(a: Tensor | None, b: Tensor) -> bool:
    """Equal up to rounding: to a ten-thousandth of the largest number."""
    return a is not None and bool((a - b).abs().max() <= 1e-4 * b.abs().max())


if device.type == "cpu":  # leave one core to the rest of the machine: lecture 05
    torch.set_num_threads(max(1, torch.get_num_threads() - 1))

B, d, L = (1_024, 256, 8) if devices.on_gpu(device) else (512, 64, 8)
model = stack(d, L).to(device)
generator = torch.Generator().manual_seed(0)
data, goal = (torch.randn(B, d, generator=generator).to(device) for _ in range(2))
numbers = sum(p.numel() for p in model.parameters())
assert numbers == L * 8 * d**2

# %% [markdown]
r"""
What does a block keep for the backward pass? Its input ($d$ numbers for each row of the batch), for the gradient of
`up`; what goes into the GELU ($4d$), and what comes out of it ($4d$), for the gradient of `down`. The input of the
first block is data, and not counted, but the loss keeps as much: the errors. So $9 d$ for each of the $B$ rows and $L$
blocks.
"""


# %%
def forward_loss(x: Tensor, y: Tensor) -> Tensor:
    """The loss of the whole batch at once."""
    return squared_error(model(x), y)


plain_kept = saved_bytes(forward_loss, data, goal, exclude=model)
print(f"parameters {format_bytes(4 * numbers)}, activations {format_bytes(plain_kept)}")
assert plain_kept == 4 * 9 * L * B * d

Row = tuple[str, float, float, str]
ledger: list[Row] = []  # what, predicted, measured, unit: for the end


def enter(what: str, predicted: float, measured: float, tolerance: float = 0.0) -> None:
    """Write a line into the ledger, and insist that the prediction was right."""
    print(f"{what}: {predicted:,.0f} B predicted, {measured:,.0f} B measured")
    assert abs(measured - predicted) <= tolerance * predicted
    ledger.append((what, predicted, measured, "B"))


enter("plain: activations", 4 * 9 * L * B * d, plain_kept)

# %% [markdown]
r"""
*Try it yourself:* `nn.functional.relu` in place of `gelu`. How many of the nine are left, and why?

## 2 · Smaller passes: gradient accumulation

The gradient of a mean over a batch is the mean of the gradients of its parts. So nobody has to see the whole batch at
once: pass the first part forward and backward, and its activations are gone; pass the next, and `backward` *adds* to
the gradients that are there (lecture 06). After the last part the gradients are those of the whole batch. Then, and
only then, the optimizer steps.

**Predict.** Parameters, gradients, AdamW's state and activations: by which factor does the *sum* shrink for the model
above, with eight parts? (On a CPU: $B = 512$, $d = 64$, $L = 8$. On a GPU: 1,024, 256, 8.)
"""

# %%
guess = None  # times

# %%
part_kept = saved_bytes(forward_loss, data[: B // 8], goal[: B // 8], exclude=model)
enter("accumulation, 8 parts: activations", 4 * 9 * L * (B // 8) * d, part_kept)
fixed = 16 * numbers  # parameters, gradients, two averages, in float32
shrunk = (fixed + plain_kept) / (fixed + part_kept)
reconcile("the whole step, in eight parts", guess, shrunk, "times")

assert plain_kept == 8 * part_kept
assert 1 < shrunk < 8

# %% [markdown]
r"""
The activations by eight, the sum by much less: gradients are as large as the parameters, whatever the batch.

### Exercise 11.1 · accumulate &nbsp; ★☆☆ &nbsp; 15 minutes

Write `accumulate(model, loss, x, y, size)`: the gradients of `loss(model(x), y)` without ever passing more than `size`
rows through the model, or keeping the activations of more than one part. `loss` returns the *mean* over the rows that
it is given. Take the rows in order, `size` at a time and each of them once; the last part is smaller where `size` does
not divide the batch (which has one row at least). Let the gradients *add* to what is in `.grad` (whoever calls you has
called `zero_grad`, or wants the sum), and return the mean loss of the whole batch, as a Python float.
"""


# %% nbgrader={"grade": false, "grade_id": "accumulate", "locked": false, "schema_version": 3, "solution": true, "task": false}
def accumulate(
    model: nn.Module,
    loss: Callable[[Tensor, Tensor], Tensor],
    x: Float[Tensor, "B d_in"],
    y: Float[Tensor, "B d_out"],
    size: int,
) -> float:
    """The whole batch's gradients, from parts of at most `size` rows; returns its mean loss."""
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
<details><summary>Hint 1</summary><code>for start in range(0, len(x), size)</code>, and the rows <code>x[start : start + size]</code>: a slice may end beyond the end.</details>
<details><summary>Hint 2</summary>Six rows in parts of four and two: how much does each part's mean count in the mean of all six? Weigh its loss before <code>backward</code>, and the gradients are weighed too. <code>.item()</code> makes a number of a loss, without its graph.</details>

**Why it matters.** It is the one way on this page that costs next to nothing. It is also the one that is got wrong most
often: for years, widely used training code averaged the means of unequal parts.
"""

# %%
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
The same to rounding, and not to the bit: sums in another order.

What does it cost? The FLOPs are the same. But a small part may not fill a GPU, and each weight is read once for each
part: with too few rows a matmul is bound by memory (lecture 05). And a *batch norm* would see other batches.

*Try it yourself:* time `accumulate` for parts of $B$, $B/8$ and 1 rows. Where does it start to hurt?

## 3 · Compute it again: activation checkpointing

A block needs its $9d$ numbers only when the backward pass gets to it. So throw them away, keep the block's *input*,
and when the backward pass arrives, run the block's forward pass again. That is **activation checkpointing** (Chen and
others, 2016), also called recomputation. It costs one more forward pass.

**Predict.** How many times the FLOPs of a plain training step does it take? (Let the input of the model need a
gradient, too, as in the middle of a longer model.)
"""

# %%
guess = None  # times

# %%
forward_flops = 2 * B * numbers  # lecture 05: 2 for each row and each weight
plain_flops = count_flops(lambda: forward_loss(data.requires_grad_(), goal).backward())
assert plain_flops == 3 * forward_flops
reconcile(
    "with every block computed twice",
    guess,
    (plain_flops + forward_flops) / plain_flops,
    "times",
)

# %% [markdown]
r"""
Forward is 1, backward 2, and forward again 1 more: 4 in place of 3. An MFU that counts the fourth is called HFU, for
*hardware* FLOPs utilisation: it counts what the hardware did, not what the model needed.

To build it, one has to tell autograd what to do in the backward pass. A `torch.autograd.Function` does that: a pair of
static methods. `forward(ctx, …)` computes, *without recording anything*, and puts what the backward pass will need into
`ctx`. `backward(ctx, gradient)` gets the gradient of the output, and returns one for each argument of `forward`.
"""


# %%
class Square(torch.autograd.Function):
    """x², to show the form."""

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
### Exercise 11.2 · Checkpoint &nbsp; ★★★ &nbsp; 20 minutes

Write the two methods of `Checkpoint`, so that `Checkpoint.apply(block, x)` is `block(x)`, with the same gradients for
`x` and for the block's parameters, and keeps nothing but `x` itself in between: no copy, no output, no graph. `block`
is a module that takes one tensor and does the same each time (so no dropout, which would draw another mask); `x`
requires a gradient. In `forward`: run the block once, and save what is needed. In `backward`: run it once more, this
time *with* gradients, on a tensor that is cut off from the graph before `x`; go backward through that; and return a
gradient for each argument of `forward`: `None` for the block, which is no tensor, and that of `x`. Parameters get
theirs as in any backward pass: they add to what is in `.grad`, and frozen or unused ones get none.
"""


# %% nbgrader={"grade": false, "grade_id": "Checkpoint", "locked": false, "schema_version": 3, "solution": true, "task": false}
class Checkpoint(torch.autograd.Function):
    """block(x), of which only x is kept; the rest is computed again in the backward pass."""

    @staticmethod
    def forward(ctx: Any, block: nn.Module, x: Tensor) -> Tensor:
        """The output; nothing is recorded here."""
        ### BEGIN SOLUTION
        ctx.block = block
        ctx.save_for_backward(x)
        return block(x)
        ### END SOLUTION

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        """The gradients of block (None) and x, from that of the output."""
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
<details><summary>Hint 1</summary><code>ctx.block = block</code> keeps what is no tensor, <code>ctx.save_for_backward(x)</code> keeps tensors; <code>(x,) = ctx.saved_tensors</code> gives them back.</details>
<details><summary>Hint 2</summary><code>x.detach()</code> is the same memory, outside the graph; make it a leaf that requires a gradient. Where is that gradient after the backward pass through the block's second output? And from which gradient does that pass start?</details>

**Why it matters.** Whoever trains a large model does this, and `torch.utils.checkpoint` is little more. Three numbers
say what it is: the gradients are the same, the bytes are fewer, the FLOPs are more.
"""


# %%
def checkpointed_loss(x: Tensor, y: Tensor) -> Tensor:
    """The loss, with every block in a checkpoint."""
    out = x
    for block in model:
        out = Checkpoint.apply(block, out)
    return squared_error(out, y)


model.zero_grad()
checkpointed_flops = count_flops(lambda: checkpointed_loss(data, goal).backward())
for p, gradient in zip(model.parameters(), whole, strict=True):
    assert same(p.grad, gradient)
assert checkpointed_flops == 4 * forward_flops  # 4/3 of a plain step

kept = saved_bytes(checkpointed_loss, data, goal, exclude=model)
enter("checkpointing: activations", 4 * L * B * d, kept)
assert plain_kept == 9 * kept

# %% [markdown]
r"""
A ninth of the bytes, for a third more FLOPs. (The first input is data and not counted; the loss keeps the errors, as
many.) When the backward pass is at a block, that block's $9d$ are there, too; but one block's at a time.

PyTorch's own, `torch.utils.checkpoint`, keeps the same. It also does something that yours does not.

> **Trap: random numbers.** With dropout in the block, the second forward pass draws *another* mask. The gradient is
> then that of a function that nobody computed. PyTorch's keeps the state of the random number generator, and goes back
> to it. Nothing raises an error if you forget.
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
assert same(theirs, wanted) and not same(mine, wanted)


def their_loss(x: Tensor, y: Tensor) -> Tensor:
    """The loss, with every block in PyTorch's checkpoint."""
    out = x
    for block in model:
        out = checkpoint(block, out, use_reentrant=False)
    return squared_error(out, y)


assert saved_bytes(their_loss, data, goal, exclude=model) == kept

# %% [markdown]
r"""
### How often?

A checkpoint around every block keeps $L$ inputs, and at its worst moment the inside of one block. A checkpoint around
every $k$ blocks keeps $L / k$ inputs, and at its worst the insides of $k$. In units of $B \cdot d$ numbers:

$$\text{worst}(k) = \frac{L}{k} + 9 k$$

**Predict.** For a stack of 36 blocks, which $k$ needs least?
"""

# %%
guess = None  # blocks in each checkpoint


# %%
def worst(layers: int, k: int) -> float:
    """B · d numbers at the worst moment, with a checkpoint around every k blocks."""
    return layers / k + 9 * k


best = min(range(1, 37), key=lambda k: worst(36, k))
reconcile("blocks in each checkpoint, of 36", guess, best, "blocks")
assert best == 2 and worst(36, 2) == 36 and worst(36, 1) == 45
assert math.sqrt(36 / 9) == best  # where both terms are equal

sizes = [36 * 4**n for n in range(5)]
at_best = {n: min(worst(n, k) for k in range(1, n + 1)) for n in sizes}
assert all(at_best[n] == 6 * math.sqrt(n) for n in sizes)

# %% [markdown]
r"""
The two terms are equal at $k = \sqrt{L/9}$, and then both grow as $\sqrt L$: a model four times as deep keeps twice as
much. In a Transformer people put one around each layer, and stop there: with $k = 1$ a layer's inside is all that is
left to save.

### What a Transformer keeps

For the layer of a Transformer in 16 bits, with dropout, $s$ tokens, batch $b$, width $h$ and $a$ heads, Korthikanti and
others (2022, arXiv:2205.05198) count

$$s b h \left( 34 + 5 \frac{a s}{h} \right) \text{ bytes}$$

where $5as/h$ is attention's $s \times s$ part. Computing a whole layer again leaves $2sbh$. *Selective* recomputation
does it for that part only: it is large and cheap to compute again. $34sbh$ is left.

**Predict.** GPT-3: $a = 96$, $s = 2{,}048$, $h = 12{,}288$. Which share of the bytes does the selective kind save?
"""

# %%
guess = None  # share, from 0 to 1


# %%
def layer_kept(s: int, b: int, h: int, a: int, recompute: str = "nothing") -> float:
    """Bytes that one layer keeps, of which something is computed again."""
    per_element = {"nothing": 34 + 5 * a * s / h, "attention": 34, "everything": 2}
    return s * b * h * per_element[recompute]


names = ("context", "width", "heads", "layers")
s, h, a, depth = (int(FACTS[f"GPT-3 {name}"].value) for name in names)
of_gpt3 = {
    what: depth * layer_kept(s, 1, h, a, what)
    for what in ("nothing", "attention", "everything")
}
for what, size in of_gpt3.items():
    print(f"GPT-3, one sequence, computing again {what:>10}: {readable(size, 'B'):>8}")
reconcile(
    "saved by the selective kind", guess, 1 - of_gpt3["attention"] / of_gpt3["nothing"], ""
)

assert 5 * a * s / h == 80
assert round(1 - of_gpt3["attention"] / of_gpt3["nothing"], 2) == 0.70
assert round(of_gpt3["nothing"] / 1e9) == 275 and round(of_gpt3["everything"] / 1e9, 1) == 4.8
hfu, mfu = (FACTS[f"Megatron 175B {kind}"].value for kind in ("HFU", "MFU"))
assert round(hfu / mfu - 1, 3) == 0.027  # measured there: 2.7 % more FLOPs, and not a third

# %% [markdown]
r"""
70 % of the bytes, for 2.7 % more FLOPs: choose *what* to compute again, and it costs next to nothing. (FlashAttention
is that choice inside one kernel.)

### Or carry it away: offload

In place of computing it again, put it where memory is cheap: a GPU's activations into the CPU's memory, or a CPU's onto
a disk. Every byte travels twice, away during the forward pass and back during the backward pass, over a link that
carries so many bytes in a second. What does that cost? It depends on who waits. If each copy has to end before the
computing goes on, the times add up. If the link works *while* the card computes, each pass takes as long as the slower
of the two: carrying **hides** behind computing, or the other way round. Twice as much is computed backward as forward,
but no more is carried. So it may hide in one pass and not in the other.

### Exercise 11.3 · offload_seconds &nbsp; ★☆☆ &nbsp; 8 minutes

Write `offload_seconds(size, forward_flops, link, rate, overlap)`: the seconds of a forward and a backward pass, of
which the first carries `size` bytes away and the second brings them back, while the second computes twice
`forward_flops`. `link` is in B/s, each way, and `rate` in FLOP/s. With `overlap`, link and computing work at the same
time, and a pass is over when both are done; without it, one waits for the other. The next pass begins when the last is
over. There may be nothing to carry or nothing to compute; `link` and `rate` are positive.
"""


# %% nbgrader={"grade": false, "grade_id": "offload_seconds", "locked": false, "schema_version": 3, "solution": true, "task": false}
def offload_seconds(
    size: int, forward_flops: float, link: float, rate: float, overlap: bool
) -> float:
    """Seconds of both passes, where `size` bytes are carried away in the first and back in the second."""
    ### BEGIN SOLUTION
    carry, forward = size / link, forward_flops / rate
    passes = ((carry, forward), (carry, 2 * forward))
    return sum(max(times) if overlap else sum(times) for times in passes)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_offload_seconds", "locked": true}
check("offload_seconds")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Three numbers are enough: the seconds to carry <code>size</code> bytes, the seconds of the forward pass, and those of the backward pass, which are twice as many.</details>
<details><summary>Hint 2</summary>Take the two passes one after the other. When is a pass over, if both work at once? When is it over, if one waits for the other? Then add the two passes.</details>

**Why it matters.** It says before you build anything whether offload costs nothing or doubles the time, and which of two
numbers to look at: the bytes per second of the link, or the FLOPs for each byte carried.

Now for real. Autograd asks two functions of yours, one when it keeps a tensor, and one when it wants it back.
"""

# %%
import tempfile
from pathlib import Path

resident = {t.untyped_storage().data_ptr() for t in (*model.parameters(), data, goal)}
carried = {"away": 0, "back": 0}  # bytes


def carry_away(tensor: Tensor, folder: Path) -> Any:
    """To the CPU's memory, or from there to a file; parameters and data stay."""
    if tensor.untyped_storage().data_ptr() in resident:
        return tensor
    carried["away"] += tensor.nbytes
    if devices.on_gpu(device):
        return tensor.to("cpu"), None
    path = folder / str(carried["away"])
    path.write_bytes(tensor.detach().numpy().tobytes())
    return path, tensor.shape


def bring_back(kept: Any) -> Tensor:
    """The same tensor, on the device."""
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
    """The loss, with what autograd keeps carried away."""
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
    enter(f"offload: carried {way}", 4 * 9 * L * B * d, size)
enter("offload: activations left", 0, left)

# %% [markdown]
r"""
Nothing is left, the gradients are the same, and everything travelled twice. In this cell each copy ends before the next
operation begins: no overlap. So the seconds, too, can be predicted, from two things measured apart: a plain step
gives the rate of computing, one tensor's way there and back the rate of the link. (What comes out is a little more: each
of two dozen copies also has to be begun.)
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
print(f"a plain step {plain_step}")
print(f"with offload {offloaded}, predicted {readable(foreseen, 's')}")
model.zero_grad()

# %% [markdown]
r"""
The same arithmetic for the *state*. ZeRO-Offload (Ren and others, 2021, arXiv:2101.06840) leaves the master copy and
both averages in the CPU's memory and lets the CPU take the step. In each step the new weights travel up, where the
forward pass needs them, and the gradients down, as the backward pass makes them: 2 bytes each for every parameter. (The
CPU's own work comes on top, unless it is hidden, too.)

**Predict.** Llama 3.1 8B behind an H100's PCIe, at what its data sheet promises. How many seconds on the wire are that
in each step?
"""

# %%
guess = None  # seconds

# %%
each_way = FACTS["H100 SXM PCIe bandwidth"].value / 2  # data sheets add both directions
rate = 0.4 * FACTS["H100 SXM bfloat16 peak"].value  # at an MFU of 0.4
size = 2 * llama.parameters  # bytes, each way
reconcile("gradients down, weights up", guess, 2 * size / each_way, "s")
for tokens in (8_192, 2_048):
    flops = 2 * llama.parameters * tokens  # of the forward pass
    plain_seconds = 3 * flops / rate
    waiting, hiding = (
        offload_seconds(size, flops, each_way, rate, overlap) for overlap in (False, True)
    )
    print(
        f"{tokens:,} tokens: {plain_seconds:.2f} s without offload, {waiting:.2f} s if everybody waits, {hiding:.2f} s with overlap"
    )
    if tokens == 8_192:
        assert round(2 * size / each_way, 2) == 0.50 and round(plain_seconds, 1) == 1.0
        assert round(waiting, 1) == 1.5 and math.isclose(hiding, plain_seconds)
    else:
        assert hiding > 1.9 * plain_seconds
assert round(rate / each_way, -2) == 6_200  # tokens from which on all of it hides
assert round((alone["master copy"] + alone["optimizer state"]) / 1e9) == 96

# %% [markdown]
r"""
Half a second of wire beside a second of arithmetic, and 96 GB less on the card. With overlap nobody notices; with a
quarter of the tokens the step takes twice as long as it should. From which batch on does all of it hide? When the
forward pass, $2N$ FLOPs for each token, takes as long as $2N$ bytes: at rate / link tokens, some 6,200 here, *whatever*
the model.

*Try it yourself:* a checkpoint whose one input is offloaded, too: wrap `checkpointed_loss` in the two functions. What
is carried now?

## 4 · Fewer bytes for each parameter

Lecture 08 asked the optimizers what they remember. Two of them remember less than AdamW. **Lion** (Chen and others,
2023, arXiv:2302.06675) has one average of the gradients, and uses its sign. **Adafactor** (Shazeer and Stern, 2018,
arXiv:1804.04235) has none of the gradients, and of their squares less than one number for each weight: of a matrix it
keeps the mean of every row and the mean of every column, and makes up the rest from them. A vector has nothing to take
means over. Its squares are averaged one by one, as AdamW does.

Both of PyTorch's, AdamW and Adafactor, also count the steps of each parameter tensor, in a tensor of 4 bytes. The Lion
below needs no counter.

**Predict.** How many bytes does Adafactor keep, for each of the 4 · $N$ bytes of parameters of the stack? Give a
percentage.
"""

# %%
guess = None  # percent

# %% [markdown]
r"""
A sum in place of a product: that is all of Adafactor's trick, and LoRA's below is the same one. As a function, counters
included, for a model with parameters of these shapes (lecture 08 had you write it for six optimizers):
"""


# %%
def optimizer_bytes(shapes: list[tuple[int, ...]], optimizer: str) -> int:
    """Bytes of the optimizer's state for float32 matrices and vectors of these shapes."""
    total = 0
    for shape in shapes:
        numbers = {
            "AdamW": 2 * math.prod(shape) + 1,
            "Lion": math.prod(shape),
            "Adafactor": sum(shape) + 1,  # of a vector that is every number
        }
        total += 4 * numbers[optimizer]
    return total


# %% [markdown]
r"""
Here is what it saves, for real, and whether the stack still learns. (A layer norm stands before it, so that there are
vectors.)
"""


# %%
class Lion(torch.optim.Optimizer):
    """One average, of which only the sign is used."""

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


def state_bytes(optimizer: torch.optim.Optimizer) -> int:
    """Bytes of all tensors that an optimizer keeps."""
    kept = [value for state in optimizer.state.values() for value in state.values()]
    return sum(storage_bytes(value) for value in kept if isinstance(value, Tensor))


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
    enter(f"{name}: state", optimizer_bytes(shapes, name), state_bytes(optimizer))
    print(f"    loss {losses[name][0]:.2f} at first, {losses[name][-1]:.2f} after 40 steps")
    assert losses[name][-1] < losses[name][0] / 2
of_the_stack = [tuple(p.shape) for p in model.parameters()]
share = optimizer_bytes(of_the_stack, "Adafactor") / (4 * numbers)
reconcile("Adafactor's state", guess, 100 * share, "%")
assert share < 0.05

width, kv, hidden = llama.width, llama.kv_width, llama.hidden
seven = [(width, width)] * 2 + [(width, kv)] * 2 + [(width, hidden)] * 2 + [(hidden, width)]
shapes = [(llama.vocabulary, width)] * 2 + llama.layers * [*seven, (width,), (width,)]
shapes.append((width,))
assert sum(map(math.prod, shapes)) == llama.parameters
for name in losses:
    print(f"Llama 3.1 8B, {name}: {readable(optimizer_bytes(shapes, name), 'B')} of state")
assert [round(optimizer_bytes(shapes, name) / 1e9, 1) for name in losses] == [64.2, 32.1, 0.0]

# %% [markdown]
r"""
From 64 GB to 32, and to next to nothing. One learning rate does not fit all three; each has its own here. That is what
they cost: another rule, to be tuned anew.

### LoRA: train something smaller

When a trained model is only to be *adapted*, leave it as it is, and learn the change of each matrix as a product of two
thin ones (Hu and others, 2021, arXiv:2106.09685):

$$y = W x + \frac{\alpha}{r}\, U D x \qquad D \in \mathbb{R}^{r \times \text{in}},\; U \in \mathbb{R}^{\text{out} \times r}$$

$W$ is frozen: no gradient, no state, no master copy. Only $D$ and $U$ are trained, and $r$, the **rank**, is small. $U$
begins at zero, so that the first step begins at the model that was given. ($D$ must not be zero, too, or neither would
ever get a gradient.) The factor $\alpha / r$ lets one change the rank without tuning the learning rate again. Once
trained, the product can be added to $W$: a **merged** layer costs nothing more to run.

### Exercise 11.4 · LoRALinear &nbsp; ★★☆ &nbsp; 15 minutes

Write `LoRALinear(base, rank, alpha)`: `base` is an `nn.Linear`, perhaps with a bias, that you freeze. Make two
parameters, `down` of shape `[rank, in]` with random values (normal, of standard deviation $1/\sqrt{\text{in}}$) and
`up` of shape `[out, rank]` with zeros, both of the base's dtype and on its device. The base's parameters belong to the
layer, too, so that `.to` moves them and a checkpoint holds them. `forward` takes any number of leading dimensions, none
included, and gradients reach `down`, `up` and $x$. `merged()` returns the weight $W + \tfrac{\alpha}{r} U D$, and
changes nothing.
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
        """The base's output, and the change."""
        ### BEGIN SOLUTION
        return self.base(x) + self.scale * (x @ self.down.T @ self.up.T)
        ### END SOLUTION

    @torch.no_grad()
    def merged(self) -> Float[Tensor, "d_out d_in"]:
        """The one weight that does the same."""
        ### BEGIN SOLUTION
        return self.base.weight + self.scale * (self.up @ self.down)
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_LoRALinear", "locked": true}
check("LoRALinear")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>A linear layer keeps its weight as <code>[out, in]</code> and computes <code>x @ weight.T</code>. So do <code>down</code> and <code>up</code>, one after the other.</details>
<details><summary>Hint 2</summary><code>base.weight.new_zeros(…)</code> makes zeros of the same dtype on the same device; <code>torch.randn(…, dtype=…, device=…)</code> does the random ones.</details>

**Why it matters.** Most fine-tuning on single cards is this. The arithmetic says why, and also what it does *not* save.

**Predict.** All matrices of the stack become LoRA layers of rank 4. By which factor do the *activations* shrink?
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
gradient_bytes = sum(storage_bytes(p.grad) for p in model.parameters() if p.grad is not None)
enter("LoRA: gradients", 4 * thin, gradient_bytes)
enter("LoRA: state", 8 * thin + 4 * len(trained), state_bytes(adamw))
print(f"parameters that are trained: {thin:,} of {numbers:,}")
reconcile("activations, plain against LoRA", guess, plain_kept / lora_kept, "times")

assert gradient_bytes < numbers  # less than a quarter of the 4 · N bytes of the whole model's
assert lora_kept >= plain_kept

# %% [markdown]
r"""
They do not shrink at all. The frozen matrix no longer needs its input, but `down` does; and for each matrix the $r$
numbers in between are kept on top. LoRA saves *per parameter*, checkpointing saves *per token*: they go well together.

For Llama 3.1 8B, with rank 16 on all seven matrices of each layer:
"""

# %%
adapters = llama.layers * sum(16 * (rows + columns) for rows, columns in seven)
everything = 16 * llama.parameters
with_lora = 2 * llama.parameters + 16 * adapters
print(f"{adapters:,} numbers are trained, {adapters / llama.parameters:.2%} of them all")
print(
    f"per parameter bytes: {readable(everything, 'B')} for all, {readable(with_lora, 'B')} with LoRA"
)

assert adapters == 41_943_040
assert round(everything / 1e9) == 128 and round(with_lora / 1e9, 1) == 16.7

# %% [markdown]
r"""
From two cards of 80 GB to one of 24.

*Try it yourself:* freeze the frozen part in 4 bits, half a byte each (QLoRA; Dettmers and others, 2023). What is the
sum then?
"""

# %% [markdown]
r"""
## 5 · Several at once: data parallelism

From here on one process is not enough. A **rank** is one of several processes that run the same program, each with its
own memory and, on a real cluster, its own GPU. All they can do is compute, and talk. `launch(f, 2, …)` starts two of
them on this machine and calls `f(group, …)` in each: `group.rank` says which one it is, `group.size` how many there
are. They talk in **collectives**, which *every* rank has to call, in the same order:

| call | each rank gives | each rank gets | in `torch.distributed` |
|---|---|---|---|
| `group.all_reduce(x)` | `[n]` | the sum of all: `[n]` | `all_reduce` |
| `group.all_gather(x)` | `[n]` | all of them: `[size · n]` | `all_gather` |
| `group.reduce_scatter(x)` | `[size · n]` | its part of the sum: `[n]` | `reduce_scatter` |

(Two GPUs or more: they talk by NCCL, each rank on its own. If not: by gloo, between two CPU processes. The numbers are
the same. Each rank computes with one thread, so nothing here is about speed.)
"""


# %%
def three_collectives(group: Group) -> list[list[float]]:
    """Each rank gives (1, 2), plus 10 times its number."""
    x = torch.tensor([1.0, 2.0], device=group.device) + 10 * group.rank
    got = (group.all_reduce(x), group.all_gather(x), group.reduce_scatter(x))
    return [values.tolist() for values in got]


on_rank_0, on_rank_1 = launch(three_collectives, 2)
assert on_rank_0 == [[12, 14], [1, 2, 11, 12], [12]]
assert on_rank_1 == [[12, 14], [1, 2, 11, 12], [14]]

# %% [markdown]
r"""
What does an all_reduce cost? The usual way is a *ring*. Cut the vector into as many equal pieces as there are ranks. In
each round every rank sends one piece to its neighbour, and adds the piece that has come from the other side to its own.
After $n - 1$ rounds each rank holds one piece of the whole sum: that is a **reduce_scatter**. Another $n - 1$ rounds
pass the finished pieces around until everybody has all of them: an **all_gather**. One after the other they are the
**all_reduce**.

**Predict.** Two ranks, a million float32 numbers. How many bytes does each rank send in an all_reduce? And with a
thousand ranks: how many times that?
"""

# %%
guess = None  # bytes, with two ranks

# %% [markdown]
r"""
### Exercise 11.5 · What a ring sends, and how long it takes &nbsp; ★★☆ &nbsp; 10 minutes

Write two functions. `collective` is `"all_reduce"`, `"reduce_scatter"` or `"all_gather"`, and `size` is the bytes of the
whole vector: the one that is summed, or the one that everybody has in the end. The pieces are of one size, which need not
be a whole number. A single rank has nothing to send, and takes no time.

`ring_bytes(collective, size, ranks)`: the bytes that *each* rank sends.

`ring_seconds(collective, size, ranks, latency, bandwidth)`: how long it takes. In a round all ranks send at the same time,
and the next round begins when all have got what was sent. A message takes `latency` seconds, however small it is, and then
its bytes pass at `bandwidth` bytes per second.
"""


# %% nbgrader={"grade": false, "grade_id": "ring_bytes", "locked": false, "schema_version": 3, "solution": true, "task": false}
def ring_bytes(collective: str, size: int, ranks: int) -> float:
    """Bytes that each rank sends in a collective on a vector of `size` bytes."""
    ### BEGIN SOLUTION
    piece = size / ranks
    rounds = ranks - 1
    if collective == "all_reduce":
        rounds = 2 * rounds
    return rounds * piece
    ### END SOLUTION


def ring_seconds(
    collective: str, size: int, ranks: int, latency: float, bandwidth: float
) -> float:
    """Seconds that the collective takes, where a message takes latency + bytes / bandwidth."""
    ### BEGIN SOLUTION
    halves = {"all_reduce": 2}.get(collective, 1)
    round_seconds = latency + size / bandwidth / ranks
    return halves * (ranks - 1) * round_seconds
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_ring_bytes", "locked": true}
check("ring_bytes")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Draw four ranks in a circle, and four pieces. How many times does a piece have to be handed on until all four ranks have had it?</details>
<details><summary>Hint 2</summary>Three numbers: the bytes of a piece, how many pieces a rank sends in a round, and how many rounds there are. Which of the three collectives has more rounds than the others, and why? And how long is one round?</details>

**Why it matters.** Every large training waits for these three, and you will need the first function in four cells below.
Here is one of them: the operating system counts the bytes on the connections between two processes.
"""


# %%
def sent_by(group: Group) -> list[int | None]:
    """Bytes that the kernel saw leave this process, for three collectives of a million numbers."""
    x, sent = torch.ones(1_000_000, device=group.device), []
    for collective in (group.all_reduce, group.all_gather, group.reduce_scatter):
        before = wire_bytes()
        collective(x)
        after = wire_bytes()
        sent.append(None if before is None or after is None else after - before)
    return sent


def enter_wire(what: str, predicted: float, sent: int | None) -> None:
    """A line of the ledger for what was sent: up to 2 % more, as messages have headers."""
    if sent is None:
        print(f"{what}: {predicted:,.0f} B predicted; this system does not say what was sent")
        return
    print(f"{what}: {predicted:,.0f} B predicted, {sent / predicted:.2f} times that measured")
    assert predicted <= sent <= 1.02 * predicted
    ledger.append((what, predicted, round(sent / predicted, 2) * predicted, "B"))


predicted = ring_bytes("all_reduce", 4_000_000, 2)
sent = launch(sent_by, 2)[0]
enter_wire("all_reduce of 4 MB: sent", predicted, sent[0])
enter_wire("all_gather to 8 MB: sent", ring_bytes("all_gather", 8_000_000, 2), sent[1])
enter_wire("reduce_scatter of 4 MB: sent", ring_bytes("reduce_scatter", 4_000_000, 2), sent[2])
reconcile("sent by each of two ranks", guess, predicted, "B")

assert ring_bytes("all_reduce", 4_000_000, 1_000) < 2 * 4_000_000

# %% [markdown]
r"""
The messages have headers, a percent or so; the rest is your count. (all_gather of a million numbers on *each* rank makes
two million: 8 MB.) And however many ranks there are, none ever sends more than twice the vector.

Bytes are not all. Say that a message takes 10 µs to set out, and then 50 GB pass in a second:
"""

# %%
for what, size in (
    ("a vector of 4,096 numbers", 4 * 4_096),
    ("all gradients of Llama 3.1 8B", 4 * llama.parameters),
):
    of_8, of_1024 = (ring_seconds("all_reduce", size, n, 10e-6, 50e9) for n in (8, 1_024))
    print(
        f"{what}: {readable(of_8, 's')} with 8 ranks, {readable(of_1024, 's')} with 1,024, "
        f"{of_1024 / of_8:.1f} times as long"
    )

assert ring_seconds("all_reduce", 16_384, 1_024, 10e-6, 50e9) > 99 * 16_384 / 50e9
assert ring_seconds("all_reduce", 4 * llama.parameters, 1_024, 10e-6, 50e9) < 1.4

# %% [markdown]
r"""
What is large takes its bytes' time, and hardly more of it with more ranks. What is small takes its rounds' time, and there
are two for every rank. So gradients are not sent one by one: `DistributedDataParallel` packs many of them into a *bucket*,
and starts on it as soon as the backward pass has filled it.

**Data parallelism** is the first use of it. Every rank has the whole model, and its own part of the batch. After the
backward pass the gradients are averaged with one all_reduce, so that all ranks take the same step and stay the same. It
is accumulation, at the same time instead of one after the other.

> **Trap: the mean.** `all_reduce` *sums*. Each rank's gradient is that of the mean over its own rows, so the sum is
> `size` times too large, and it looks like a learning rate that was too high. Divide by `group.size`. (And if the parts
> are not equal, weight them, as in 11.1.)
"""

# %%
batch, width, depth = 128, 128, 4  # small: two CPU processes have to do it
torch.manual_seed(2)
inputs, targets = torch.randn(batch, width), torch.randn(batch, width)
weights = 8 * width**2 * depth  # parameters


def gradients_of(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """All gradients of the loss, as one vector."""
    model.zero_grad()
    squared_error(model(x), y).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def data_parallel(group: Group, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, int | None]:
    """Averaged gradients, once by hand and once by PyTorch's own; and what was sent by hand."""
    x, y = (t.chunk(group.size)[group.rank].to(group.device) for t in (x, y))
    mine = gradients_of(stack(width, depth).to(group.device), x, y)
    before = wire_bytes()
    mine = group.all_reduce(mine) / group.size
    after = wire_bytes()
    theirs = nn.parallel.DistributedDataParallel(stack(width, depth).to(group.device))
    sent = None if before is None or after is None else after - before
    return mine, gradients_of(theirs, x, y), sent


by_one = gradients_of(stack(width, depth), inputs, targets)
by_rank = launch(data_parallel, 2, inputs, targets)
for mine, theirs, _ in by_rank:
    assert same(mine, by_one) and same(theirs, by_one)
enter_wire(
    "data parallelism: sent in a step", ring_bytes("all_reduce", 4 * weights, 2), by_rank[0][2]
)

# %% [markdown]
r"""
Two processes, half of the rows each, and the gradients of one that saw them all. PyTorch's `DistributedDataParallel` is
this, with the messages begun while the backward pass still runs.

What happens when a rank does *not* call what the others call? They wait. Two GPUs that wait for each other look busy, and
nothing is printed; jobs have hung so for days. `launch` gives up after a time limit, ends all processes, and says who
was where. The tests of the exercises below use `simulate`: the ranks take turns as threads of one process, which needs
no network and knows at once that nobody will ever come.
"""


# %%
def forgets(group: Group) -> Tensor:
    """Rank 1 thinks that it has nothing to say."""
    x = torch.ones(3)
    return group.all_reduce(x) if group.rank == 0 else x


try:
    simulate(forgets, 2)
    raise AssertionError("nobody noticed")
except RanksError as error:
    print(error)
    assert "rank 0 waits in all_reduce" in str(error) and "rank 1 has ended" in str(error)

# %% [markdown]
r"""
*Try it yourself:* `launch(forgets, 2, seconds=10)`. What does it say, and does it take the ten seconds?

## 6 · ZeRO: nobody needs all of it

Data parallelism saves activations (each rank has fewer rows) and nothing else: all ranks hold the same weights, the
same gradients, the same state. **ZeRO** (Rajbhandari and others, 2019, arXiv:1910.02054), for *zero redundancy
optimizer*, divides them among the ranks:

- **Stage 1**: the optimizer's state, with the master copy. Each rank updates its own part of the weights, and an
  all_gather tells the others.
- **Stage 2**: the gradients, too. Each rank needs the average of its own part only: a reduce_scatter.
- **Stage 3**: the parameters, too. Before a layer computes, its weights are gathered, and afterwards dropped. (PyTorch
  calls it FSDP, *fully sharded data parallel*.)

Llama 3.1 8B on eight cards, with 2 bytes for weights, 2 for gradients, 12 for state and master copy.

**Predict.** How many GB are left on each card at stage 3, and how many at stage 1?
"""

# %%
guess = None  # GB on each card at stage 3

# %% [markdown]
r"""
### Exercise 11.6 · zero_bytes &nbsp; ★★☆ &nbsp; 10 minutes

Write `zero_bytes(parameters, ranks, stage, recipe)`: the bytes on each rank, by kind. `recipe` says how many bytes each
*parameter* takes for each kind: a dict with the keys `"parameters"`, `"gradients"` and `"state"` (the master copy
included), in any order. Stage 0 divides nothing, and each later stage divides one more kind. Where a kind is divided,
each rank holds an equal number of *parameters'* worth: the vector of all is padded to a multiple of `ranks`. There are
at most $10^{15}$ parameters. Return a dict of ints with the same keys.
"""


# %% nbgrader={"grade": false, "grade_id": "zero_bytes", "locked": false, "schema_version": 3, "solution": true, "task": false}
def zero_bytes(
    parameters: int, ranks: int, stage: int, recipe: dict[str, int]
) -> dict[str, int]:
    """Bytes on each rank at stage 0, 1, 2 or 3 of ZeRO, by kind."""
    ### BEGIN SOLUTION
    part = -(-parameters // ranks)  # rounded up
    divided_from = {"state": 1, "gradients": 2, "parameters": 3}
    return {
        kind: each * (part if stage >= divided_from[kind] else parameters)
        for kind, each in recipe.items()
    }
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_zero_bytes", "locked": true}
check("zero_bytes")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>How many parameters does one rank look after? Ten parameters on four ranks: two each are too few.</details>
<details><summary>Hint 2</summary>From which stage on is each kind divided? A dict from the kind to that stage makes one rule of all the cases.</details>

**Why it matters.** This is the arithmetic behind most large trainings. The paper's own figure, a model of 7.5 billion
parameters on 64 cards, follows from it:
"""

# %%
mixed = {"parameters": 2, "gradients": 2, "state": 12}
size, cards = (int(FACTS[f"ZeRO example {what}"].value) for what in ("parameters", "devices"))
for stage in range(4):
    predicted = sum(zero_bytes(size, cards, stage, mixed).values())
    published = FACTS[f"ZeRO example memory, stage {stage}"].value
    print(
        f"stage {stage}: {readable(predicted, 'B'):>8}, published {readable(published, 'B'):>8}"
    )
    assert math.isclose(predicted, published, rel_tol=0.02)

gigabytes = [
    sum(zero_bytes(llama.parameters, 8, stage, mixed).values()) / 1e9 for stage in range(4)
]
print("Llama 3.1 8B on eight cards, GB:", ", ".join(f"{value:.1f}" for value in gigabytes))
reconcile("Llama 3.1 8B at stage 3 on each of eight cards", guess, gigabytes[3], "GB")
assert [round(value, 1) for value in gigabytes] == [128.5, 44.2, 30.1, 16.1]

# %% [markdown]
r"""
### Exercise 11.7 · ShardedAdamW &nbsp; ★★★ &nbsp; 25 minutes

Write `step` of `ShardedAdamW`: AdamW with its state divided among the ranks. What is needed is set up for you: all
parameters as one vector, padded to a multiple of `group.size`; of which `self.part` is this rank's part, a parameter of
its own; and `self.adamw`, PyTorch's AdamW for that part alone. In `step`:

1. make one padded vector of all gradients (`self.padded` does that for any list of tensors; all parameters have one, and
   all are contiguous);
2. get this rank's part of the *average* over the ranks, as `self.part.grad`;
3. let `self.adamw` take its step;
4. get everybody's parts, and copy the numbers back into the parameters, in place.

Leave the parameters' own `.grad` as they are. Every rank has to end with the same parameters, and may send no more in a
step than a ring sends for an all_reduce of the vector.
"""


# %% nbgrader={"grade": false, "grade_id": "ShardedAdamW", "locked": false, "schema_version": 3, "solution": true, "task": false}
class ShardedAdamW:
    """AdamW, of which each rank keeps its part of the state (ZeRO stage 1)."""

    def __init__(self, params: Iterable[nn.Parameter], group: Group, lr: float = 1e-3) -> None:
        self.params, self.group = list(params), group
        whole = self.padded([p.detach() for p in self.params])
        self.part = nn.Parameter(whole.chunk(group.size)[group.rank].clone())
        self.adamw = torch.optim.AdamW([self.part], lr=lr)

    def padded(self, tensors: Iterable[Tensor]) -> Float[Tensor, "padded"]:
        """All numbers of the tensors as one vector, with zeros up to a multiple of the ranks."""
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        return nn.functional.pad(flat, (0, -len(flat) % self.group.size))

    @torch.no_grad()
    def step(self) -> None:
        """One step, from each parameter's .grad on each rank."""
        ### BEGIN SOLUTION
        gradients = self.padded([p.grad for p in self.params if p.grad is not None])
        self.part.grad = self.group.reduce_scatter(gradients) / self.group.size
        self.adamw.step()
        whole = self.group.all_gather(self.part)
        start = 0
        for p in self.params:
            p.copy_(whole[start : start + p.numel()].view_as(p))
            start += p.numel()
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_ShardedAdamW", "locked": true}
check("ShardedAdamW")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Which collective gives a rank its part of the <em>sum</em> of all vectors, and no more? What is missing to the average?</details>
<details><summary>Hint 2</summary>What comes back is the whole vector, with the padding at its end. The parameters stand in it in the order of <code>self.params</code>, with <code>p.numel()</code> numbers each. <code>p.copy_(…)</code> wants them in the shape of p.</details>

**Why it matters.** You have written the optimizer that most large models were trained with. What travels is what plain
data parallelism sends, a reduce_scatter and an all_gather being the two halves of an all_reduce: stage 1 costs nothing.

### All stages, for real

Stages 2 and 3 want the gradients divided, and the weights. Here they are, with one part for each matrix. In stage 2 a
hook takes each gradient as soon as it is there, and drops it. In stage 3 there *is* no whole weight: a layer gathers
it, uses it, and forgets it, in the forward and again in the backward pass, as your checkpoint did with activations.
"""


# %%
class Gathered(torch.autograd.Function):
    """x @ w.T, where each rank holds its part of w."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, part: Tensor, shape: tuple[int, int], group: Group
    ) -> Tensor:
        ctx.save_for_backward(x, part)
        ctx.shape, ctx.group = shape, group
        return x @ group.all_gather(part).view(shape).T

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        x, part = ctx.saved_tensors
        weight = ctx.group.all_gather(part).view(ctx.shape)
        whole = (gradient.T @ x).flatten()
        return gradient @ weight, ctx.group.reduce_scatter(whole) / ctx.group.size, None, None


class GatheredLinear(nn.Module):
    """A linear layer at stage 3: only a part of its weight is here."""

    def __init__(self, linear: nn.Linear, group: Group) -> None:
        super().__init__()
        self.shape, self.group = linear.weight.shape, group
        parts = linear.weight.detach().flatten().chunk(group.size)
        self.part = nn.Parameter(parts[group.rank].clone())

    def forward(self, x: Tensor) -> Tensor:
        return Gathered.apply(x, self.part, self.shape, self.group)


def divide_gradient(p: nn.Parameter, part: nn.Parameter, group: Group) -> None:
    """Stage 2: as soon as p's gradient is there, keep this rank's part of the average, and drop the rest."""

    def hook(p: Tensor) -> None:
        assert p.grad is not None
        part.grad = group.reduce_scatter(p.grad.flatten()) / group.size
        p.grad = None

    p.register_post_accumulate_grad_hook(hook)


def held(tensors: Iterable[Tensor | None]) -> int:
    """Bytes of the storages behind some tensors."""
    return sum(storage_bytes(tensor) for tensor in tensors if tensor is not None)


def zero_training(group: Group, stage: int, x: Tensor, y: Tensor) -> dict[str, Any]:
    """Three steps at a stage of ZeRO: what each rank holds, sends and ends with."""
    x, y = (t.chunk(group.size)[group.rank].to(group.device) for t in (x, y))
    model = stack(width, depth).to(group.device)
    parts: list[nn.Parameter] = []
    sharded = ShardedAdamW(model.parameters(), group) if stage == 1 else None
    if stage == 2:
        for p in model.parameters():
            parts.append(
                nn.Parameter(p.detach().flatten().chunk(group.size)[group.rank].clone())
            )
            divide_gradient(p, parts[-1], group)
    if stage == 3:
        for block in model:
            for name in ("up", "down"):
                setattr(block, name, GatheredLinear(getattr(block, name), group))
    adamw = sharded.adamw if sharded else torch.optim.AdamW(parts or model.parameters())
    result: dict[str, Any] = {}
    for number in range(3):
        before = wire_bytes()
        squared_error(model(x), y).backward()
        trained = [*model.parameters(), *parts]
        if number == 0:
            result["gradients"] = held(p.grad for p in trained)
        if sharded:
            sharded.step()
        elif stage == 0:
            for p in model.parameters():
                assert p.grad is not None
                p.grad = group.all_reduce(p.grad) / group.size
        if not sharded:
            adamw.step()
        if stage == 2:
            with torch.no_grad():
                for p, part in zip(model.parameters(), parts, strict=True):
                    p.copy_(group.all_gather(part).view_as(p))
        after = wire_bytes()
        result["sent"] = None if before is None or after is None else after - before
        for p in trained:
            p.grad = None
    result["parameters"] = held(model.parameters())
    result["master copy"] = held(parts or ([sharded.part] if sharded else []))
    result["state"] = state_bytes(adamw) - 4 * len(adamw.state)  # without the counters of steps
    whole = [p if stage < 3 else group.all_gather(p) for p in model.parameters()]
    result["trained"] = torch.cat([p.detach().flatten() for p in whole])
    return result


def all_stages(group: Group, x: Tensor, y: Tensor) -> list[dict[str, Any]]:
    """Stage 0 to 3, one after the other."""
    return [zero_training(group, stage, x, y) for stage in range(4)]


# %% [markdown]
r"""
**Predict.** At stage 3 the weights are gathered twice and the gradients scattered once. How many times as many bytes
does each rank send in a step as at stage 0?
"""

# %%
guess = None  # times

# %%
single = stack(width, depth)
adamw = torch.optim.AdamW(single.parameters())
for _ in range(3):
    gradients_of(single, inputs, targets)
    adamw.step()
alone = torch.cat([p.detach().flatten() for p in single.parameters()])

recipe = {"parameters": 4, "gradients": 4, "state": 8}
collectives = [
    ["all_reduce"],
    *2 * [["reduce_scatter", "all_gather"]],
    ["all_gather", "all_gather", "reduce_scatter"],
]
by_rank = launch(all_stages, 2, inputs, targets)
for stage in range(4):
    wanted = zero_bytes(weights, 2, stage, recipe)
    for result in by_rank:
        found = result[stage]
        assert torch.allclose(found["trained"], alone, atol=1e-4)
        assert {kind: found[kind] for kind in recipe} == wanted
        assert found["master copy"] == (4 * weights // 2 if stage in (1, 2) else 0)
    enter(
        f"ZeRO stage {stage}: on each rank",
        sum(wanted.values()),
        sum(found[kind] for kind in recipe),
    )
    sends = sum(ring_bytes(collective, 4 * weights, 2) for collective in collectives[stage])
    enter_wire(f"ZeRO stage {stage}: sent in a step", sends, found["sent"])
reconcile(
    "sent at stage 3, against stage 0",
    guess,
    sends / ring_bytes("all_reduce", 4 * weights, 2),
    "times",
)
assert sends == 1.5 * ring_bytes("all_reduce", 4 * weights, 2)

# %% [markdown]
r"""
Three steps, four ways, two processes: the same weights as one process alone, and the bytes that the exercise's formula
says. The *master copy* is the part that stages 1 and 2 update and then gather from. In float32 it is one copy too many;
with weights in bfloat16 it is the float32 copy that one needs anyway (lecture 10), and it is divided, too. Stage 3 sends
half as much again, and needs it in time: while a layer computes, the next one's weights have to be on their way.

*Try it yourself:* eight ranks in `zero_bytes` for the stack, up to 64. Where does stage 1 stop helping, and what is left?

## 7 · Tensor parallelism: half a matrix each

ZeRO divides what is *stored*; every rank still computes with whole matrices. **Tensor parallelism** (Shoeybi and others,
2019, arXiv:1909.08053) divides the multiplication. All ranks have the *same* rows, and each has half of every matrix. In
a block with two matrices there is a way that needs a single sum:

- Cut `up` by its *outputs*. Each rank computes half of the hidden numbers, $4d / n$ of them. GELU works on each number
  by itself, so each rank goes on alone.
- Cut `down` by its *inputs*: the same half of the hidden numbers. Each rank gets a full-size output, and it is one of
  $n$ terms of the true one. One all_reduce adds them.

Backward it is the mirror image. The gradient of the output is the same for all. But the gradient of the *input* comes
out in $n$ terms, for each rank knows only what its own part of `up` did with $x$; they have to be added, too. So there
are two small functions (Megatron's *f* and *g*): one does nothing forward and an all_reduce backward, the other an
all_reduce forward and nothing backward.

### Exercise 11.8 · ParallelMLP &nbsp; ★★★ &nbsp; 25 minutes

The two functions are given. Write `__init__` and `forward` of `ParallelMLP`, for $y = \text{GELU}(x\, \text{up}^\top)\,
\text{down}^\top + \text{bias}$. `up` is `[h, d]` and `down` `[d, h]`, as `nn.Linear` keeps its weights: outputs come
first. Keep three parameters: `self.up` and `self.down`, this rank's part of each, and `self.bias`, whole. A part is to
be a tensor of its own: a view would keep the whole matrix alive. $h$ can be divided by the number of ranks: rank
0 has the first of so many equal slices, and the last rank the last.

Every rank is given the same $x$. On every rank the output is the whole $y$, and after `backward` the gradients of $x$
and of the parameters are those of the whole layer, or of this rank's part. The ranks may send one all_reduce of a
tensor like $x$ forward, one backward, and nothing else.
"""


# %% nbgrader={"grade": false, "grade_id": "ParallelMLP", "locked": false, "schema_version": 3, "solution": true, "task": false}
class SumBackward(torch.autograd.Function):
    """x as it is; its gradient is summed over the ranks (Megatron's f)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return ctx.group.all_reduce(gradient), None


class SumForward(torch.autograd.Function):
    """x summed over the ranks; its gradient as it is (Megatron's g)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        return group.all_reduce(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return gradient, None


class ParallelMLP(nn.Module):
    """GELU(x @ up.T) @ down.T + bias, of which each rank holds and computes its part."""

    def __init__(
        self,
        up: Float[Tensor, "h d"],
        down: Float[Tensor, "d h"],
        bias: Float[Tensor, "d"],
        group: Group,
    ) -> None:
        super().__init__()
        self.group = group
        ### BEGIN SOLUTION
        self.up = nn.Parameter(up.chunk(group.size, dim=0)[group.rank].clone())
        self.down = nn.Parameter(down.chunk(group.size, dim=1)[group.rank].clone())
        self.bias = nn.Parameter(bias.clone())
        ### END SOLUTION

    def forward(self, x: Float[Tensor, "B d"]) -> Float[Tensor, "B d"]:
        """The whole output, on every rank."""
        ### BEGIN SOLUTION
        hidden = nn.functional.gelu(SumBackward.apply(x, self.group) @ self.up.T)
        return SumForward.apply(hidden @ self.down.T, self.group) + self.bias
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_ParallelMLP", "locked": true}
check("ParallelMLP")

# %% [markdown]
r"""
<details><summary>Hint 1</summary><code>chunk(group.size, dim=…)</code> cuts a tensor into equal views. Outputs are rows of a weight, inputs its columns.</details>
<details><summary>Hint 2</summary>Where is something the same on all ranks, and where is it one of several terms? Forward, the terms appear behind <code>down</code>; backward, in front of <code>up</code>. And how many ranks may add the bias?</details>

**Why it matters.** Inside one machine, where the wire is fast, every large model is cut like this. Attention is cut by
its heads in the same way: queries, keys and values by outputs, the last matrix by inputs.

Now between two processes: bytes, numbers, and what is sent.

**Predict.** All $B$ rows pass on every rank, forward and backward through one block of width $d$. How many bytes does
each of two ranks send? ($B = 128$, $d = 128$, float32.)
"""

# %%
guess = None  # bytes


# %%
def tensor_parallel(group: Group, x: Tensor, y: Tensor) -> dict[str, Any]:
    """Forward and backward of one block in two halves: gradients, bytes held, kept and sent."""
    block: Any = stack(width, 1)[0]
    up, down = block.up.weight.detach(), block.down.weight.detach()
    mlp = ParallelMLP(up, down, torch.zeros(width), group).to(group.device)
    x, y = x.to(group.device).requires_grad_(), y.to(group.device)
    kept = saved_bytes(lambda x: squared_error(x + mlp(x), y), x, exclude=[mlp, y])
    before = wire_bytes()
    squared_error(x + mlp(x), y).backward()
    after = wire_bytes()
    assert x.grad is not None and mlp.up.grad is not None
    sent = None if before is None or after is None else after - before
    return {
        "held": held((mlp.up, mlp.down)),
        "kept": kept,
        "sent": sent,
        "up": mlp.up.grad,
        "x": x.grad,
    }


undivided: Any = stack(width, 1)[0]
x_whole = inputs.clone().requires_grad_()
squared_error(undivided(x_whole), targets).backward()
halves = launch(tensor_parallel, 2, inputs, targets)
assert x_whole.grad is not None and undivided.up.weight.grad is not None
assert all(same(half["x"], x_whole.grad) for half in halves)
assert same(torch.cat([half["up"] for half in halves]), undivided.up.weight.grad)

enter("tensor parallel: weights on each rank", 4 * 8 * width**2 / 2, halves[0]["held"])
enter(
    "tensor parallel: activations on each rank",
    4 * batch * (8 * width / 2 + width),
    halves[0]["kept"],
)
predicted = 2 * ring_bytes("all_reduce", 4 * batch * width, 2)
enter_wire("tensor parallel: sent by each rank", predicted, halves[0]["sent"])
reconcile("sent for one block, forward and backward", guess, predicted, "B")

# %% [markdown]
r"""
Weights, gradients and state are halved, and the inside of the block, the $8d$; only the $d$-wide stream (here the
errors that the loss keeps) is whole on every rank. The price: two sums of activations for *every* block, and while they
travel everybody waits. Data parallelism sends once per step, and can hide it. So tensor parallelism stays where the
wire is fastest.

*Try it yourself:* at which batch does one block in two halves send more than plain data parallelism does for its
weights?

## 8 · Pipeline parallelism: some layers each

The last way to cut is the plainest: the first half of the layers here, the second half there. Only the stream between
two layers travels, $B \cdot d$ numbers forward and as many backward. But the second card waits for the first, and then
the first for the second. So the batch is cut into **microbatches** that follow one another through the stages, as on an
assembly line (GPipe; Huang and others, 2018, arXiv:1811.06965). Here is the timetable of four stages and six
microbatches: F2 is the forward pass of microbatch 2, B2 its backward pass, and each takes one tick. First all go forward:

```text
stage 0   F0 F1 F2 F3 F4 F5  .  .  .  .  .  . B0 B1 B2 B3 B4 B5
stage 1    . F0 F1 F2 F3 F4 F5  .  .  .  . B0 B1 B2 B3 B4 B5  .
stage 2    .  . F0 F1 F2 F3 F4 F5  .  . B0 B1 B2 B3 B4 B5  .  .
stage 3    .  .  . F0 F1 F2 F3 F4 F5 B0 B1 B2 B3 B4 B5  .  .  .
```

The dots are the **bubble**: a card that waits. They do not depend on how many microbatches there are, but their *share*
does. A stage keeps the activations of a microbatch from its F to its B, so here each one keeps those of all six: the
whole batch's. *1F1B*, one forward, one backward, begins with the backward passes as early as it can, and takes in a new
microbatch only when an old one is done:

```text
stage 0   F0 F1 F2 F3  .  .  . B0 F4 B1 F5 B2  . B3  . B4  . B5
stage 1    . F0 F1 F2  .  . B0 F3 B1 F4 B2 F5 B3  . B4  . B5  .
stage 2    .  . F0 F1  . B0 F2 B1 F3 B2 F4 B3 F5 B4  . B5  .  .
stage 3    .  .  . F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5  .  .  .
```

**Predict.** Four stages. How many microbatches does it take until the bubble is less than a tenth of the time?
"""

# %%
guess = None  # microbatches, until the bubble is below a tenth

# %% [markdown]
r"""
### Exercise 11.9 · pipeline_plan &nbsp; ★★☆ &nbsp; 10 minutes

Write `pipeline_plan(stages, microbatches, stream)`, a dict with three entries. `"bubble"`: the share of all ticks in which
a stage waits. `"kept"`: a list with, for each stage, the number of microbatches whose activations it keeps at its worst
moment, with 1F1B. `"sent"`: a list with the bytes that each stage sends in a step. `stream` is the bytes of the whole
batch's activations *between* two layers; their gradients take as many. Activations go to the next stage, gradients to the
one before. There may be fewer microbatches than stages, or only one stage. There may also be a thousand stages and a
million microbatches, so don't draw up the timetable.
"""


# %% nbgrader={"grade": false, "grade_id": "pipeline_plan", "locked": false, "schema_version": 3, "solution": true, "task": false}
def pipeline_plan(stages: int, microbatches: int, stream: int) -> dict[str, Any]:
    """The bubble's share, and for each stage the microbatches kept (1F1B) and the bytes sent."""
    ### BEGIN SOLUTION
    last = stages - 1
    return {
        "bubble": last / (microbatches + last),
        "kept": [min(stages - stage, microbatches) for stage in range(stages)],
        "sent": [stream * ((stage > 0) + (stage < last)) for stage in range(stages)],
    }
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_pipeline_plan", "locked": true}
check("pipeline_plan")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>The bubble: in any line of the first timetable, dots over ticks. With m microbatches a line has 2·m jobs. How many dots with four stages, and how many with two? Draw it.</details>
<details><summary>Hint 2</summary>Kept: count along the lines of the second timetable, one more at each F, one less at each B. What is the largest count in each line, and what would it be with two microbatches? Sent: how many neighbours has a stage?</details>

**Why it matters.** These three decide how a model is cut: enough microbatches against the bubble, a schedule that does
not keep them all, and a wire that need not be fast. (Narayanan and others, 2021, arXiv:2104.04473, divide the bubble by
the time *without* it, and get $(p - 1)/m$. Both are in use: look which one is meant.)

Here are the timetables, not drawn but worked out from what has to wait for what.
"""


# %%
Job = tuple[str, int]  # forward or backward, and the number of the microbatch


def orders(stages: int, microbatches: int, early: bool) -> list[list[Job]]:
    """What each stage does, one after the other: all forward passes first, or backward as early as it can."""
    result = []
    for stage in range(stages):
        first = min(stages - stage, microbatches) if early else microbatches
        order = [("F", m) for m in range(first)]
        for m in range(microbatches):
            order.append(("B", m))
            order += [("F", first + m)] if first + m < microbatches else []
        result.append(order)
    return result


def schedule(stages: int, microbatches: int, early: bool = False) -> list[list[str]]:
    """The same, tick by tick: a job waits for the stage before it (backward: after it). Each takes one tick."""
    waiting = orders(stages, microbatches, early)
    lines: list[list[str]] = [[] for _ in range(stages)]
    done: set[tuple[int, Job]] = set()
    while any(waiting):
        now = []
        for stage, order in enumerate(waiting):
            needed = stage - 1 if order and order[0][0] == "F" else stage + 1
            if order and (needed not in range(stages) or (needed, order[0]) in done):
                now.append((stage, order.pop(0)))
                lines[stage].append("{}{}".format(*now[-1][1]))
            else:
                lines[stage].append(".")
        done.update(now)
    return lines


def idle_share(lines: list[list[str]]) -> float:
    """The share of all ticks in which a stage has nothing to do."""
    return sum(line.count(".") for line in lines) / (len(lines) * len(lines[0]))


def kept_at_most(line: list[str]) -> int:
    """Microbatches that have passed forward and not yet backward, at the worst moment."""
    change = [{"F": 1, "B": -1, ".": 0}[job[0]] for job in line]
    return max(itertools.accumulate(change))


for stages in (1, 2, 4, 8):
    for microbatches in (1, 3, 8, 32):
        plan = pipeline_plan(stages, microbatches, stream=0)
        for early in (False, True):
            lines = schedule(stages, microbatches, early)
            assert math.isclose(idle_share(lines), plan["bubble"])
        assert [kept_at_most(line) for line in lines] == plan["kept"]  # the early one's

enough = next(m for m in range(1, 1_000) if pipeline_plan(4, m, stream=0)["bubble"] < 0.1)
reconcile("microbatches for a bubble below a tenth", guess, enough, "microbatches")
for early in (False, True):
    for line in schedule(4, 6, early):
        print(" ".join(job.rjust(2) for job in line))

assert enough == 28
assert [kept_at_most(line) for line in schedule(4, 28)] == [28, 28, 28, 28]
assert [kept_at_most(line) for line in schedule(4, 28, early=True)] == [4, 3, 2, 1]

# %% [markdown]
r"""
The bubble is the same with both, and with 1F1B the first stage keeps four microbatches in place of 28: as many as there
are stages.

For real, with two stages: rank 0 has the first half of the blocks, rank 1 the second half and the loss. Collectives are
of no use here. `send` and `recv` are between two.
"""

# %%
import torch.distributed as dist

MICROBATCHES = 4


def pipeline(group: Group, x: Tensor, y: Tensor) -> dict[str, Any]:
    """One step through two stages: this stage's gradients, the bytes that it holds and has sent."""
    whole = stack(width, depth)
    half = depth // 2
    stage = (whole[:half] if group.rank == 0 else whole[half:]).to(group.device)
    x_parts, y_parts = (t.to(group.device).chunk(MICROBATCHES) for t in (x, y))
    inputs, outputs = [], []
    before = wire_bytes()
    for x_part, y_part in zip(x_parts, y_parts, strict=True):  # forward, all of them
        if group.rank == 0:
            outputs.append(stage(x_part))
            dist.send(outputs[-1].detach(), 1)
        else:
            arrived = torch.empty_like(x_part)
            dist.recv(arrived, 0)
            inputs.append(arrived.requires_grad_())
            outputs.append(squared_error(stage(inputs[-1]), y_part) / MICROBATCHES)
    for number in range(MICROBATCHES):  # and back
        if group.rank == 0:
            gradient = torch.empty_like(x_parts[number])
            dist.recv(gradient, 1)
            outputs[number].backward(gradient)
        else:
            outputs[number].backward()
            gradient = inputs[number].grad
            assert gradient is not None
            dist.send(gradient, 0)
    after = wire_bytes()
    flat = torch.cat([p.grad.flatten() for p in stage.parameters() if p.grad is not None])
    sent = None if before is None or after is None else after - before
    return {"held": held(stage.parameters()), "sent": sent, "gradients": flat}


first, second = launch(pipeline, 2, inputs, targets)
both = torch.cat([first["gradients"], second["gradients"]])
assert same(both, by_one)
enter("pipeline: weights on each rank", 4 * weights / 2, first["held"])
plan = pipeline_plan(2, MICROBATCHES, stream=4 * batch * width)
for rank, found in enumerate((first, second)):
    enter_wire(f"pipeline: sent by rank {rank}", plan["sent"][rank], found["sent"])
assert plan["bubble"] == 1 / 5

# %% [markdown]
r"""
The gradients of one process again, and the least traffic of all: 4 · $B$ · $d$ bytes each way, however many layers a
stage has. That is why pipelines run between machines, where the wire is slowest, and tensor parallelism within.

*Try it yourself:* send nothing (comment out the `send` of rank 1). What does `launch` tell you, and when? (Give it
`seconds=10`.)

## 9 · Fusion: fewer trips

The last trade is with the memory's *bandwidth*. An elementwise operation reads each number, computes next to nothing,
and writes it back (lecture 05). A chain of them does that again and again, with a temporary tensor in between. **Fusion**
makes one kernel of the chain: read once, compute all, write once. `torch.compile` does that. Here is GELU's usual
approximation, written out.

$$\tfrac12\, x \left( 1 + \tanh\!\big( 0.798\, (x + 0.0447\, x^3) \big) \right)$$
"""


# %%
def gelu_by_hand(x: Tensor) -> Tensor:
    """GELU's approximation, operation by operation."""
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


# %% [markdown]
r"""
**Predict.** How many kernels is that, one after the other? And how many times the bytes that one fused kernel needs?
"""

# %%
guess = None  # times the bytes

# %% [markdown]
r"""
### Exercise 11.10 · chain_bytes &nbsp; ★☆☆ &nbsp; 8 minutes

Write `chain_bytes(chain, size)`: the bytes that a chain of elementwise operations reads and writes, as a dict with
`"eager"`, where each operation is a kernel of its own, and `"fused"`, where one kernel does them all. `chain` is a list of
one or more `(result, operands)`, names of tensors of `size` bytes each: `[("a", ["x"]), ("b", ["a", "y"])]` makes `a` from
`x`, and then `b` from `a` and `y`. The result of the last one is what is wanted; the others are temporary, used once,
several times or never. An operation has one operand or more, all different; operands come from outside or from an earlier
operation, and no two operations make the same name. (Plain numbers, as in `0.5 * x`, are in no list: they come with the
kernel.)
"""


# %% nbgrader={"grade": false, "grade_id": "chain_bytes", "locked": false, "schema_version": 3, "solution": true, "task": false}
def chain_bytes(chain: list[tuple[str, list[str]]], size: int) -> dict[str, int]:
    """Bytes read and written, with one kernel for each operation and with one for all."""
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
<details><summary>Hint 1</summary>Eager: how many tensors does an operation with two operands move between memory and the kernel? Not two.</details>
<details><summary>Hint 2</summary>Fused: which names does the kernel have to read, as no operation makes them? A set has each of them once. And what is written?</details>

**Why it matters.** Elementwise operations take as long as their bytes do. So the quotient of the two numbers is the most
that fusing a chain can win.

To see it for real, here is somebody who stands between PyTorch and its kernels, and counts. GELU is eight operations, with
their temporaries called `a` to `g`.
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
    "traffic against one read and one write", guess, eager.bytes / traffic["fused"], "times"
)

assert eager.kernels == len(gelu_chain) == 8
assert eager.bytes == 9 * traffic["fused"]

# %% [markdown]
r"""
Nine times. Now let PyTorch compile it, and read what it wrote: its kernels, and which tensors they read and write. (It
needs a C++ compiler on a CPU. Where there is none, the cell says so, and what is claimed is what it would have written.
The first compilation takes some ten seconds.)
"""

# %%
import re

import torch._inductor.exc
from torch._inductor.utils import run_and_get_code


def compiled_kernels(fn: Callable[..., Any], *args: Any) -> list[tuple[int, int]] | None:
    """For each kernel that torch.compile writes for fn: tensors read, and written. None where it cannot compile."""
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
Eight kernels became one, a ninth of the traffic. And since such a chain is bound by bandwidth, time follows:
"""

# %% tags=["timed"]
if kernels is not None:
    fused = torch.compile(gelu_by_hand)
    for name, function in (("one at a time", gelu_by_hand), ("fused", fused)):
        print(f"{name:>13}: {timing.benchmark(lambda: function(many), device=device)}")

# %% [markdown]
r"""
It saves memory, too: autograd would have kept an input for most of the eight, and the fused kernel's backward pass
computes them again from $x$. A checkpoint, made by the compiler. What fusion does *not* help is a matmul: that is bound
by FLOPs, and a good one is one kernel already.

*Try it yourself:* give `compiled_kernels` a softmax, written out: subtract the maximum, `exp`, divide by the sum. How
many kernels?

## 10 · The result: two that make one

All of it together, in two processes. The batch is divided (section 5), each half passes in four parts (your
`accumulate`), each block is computed twice (your `Checkpoint`), each rank keeps half of the state (your
`ShardedAdamW`). One process does the same with none of it. Twenty steps of each. First write down what every rank will
hold.
"""


# %%
class CheckpointedStack(nn.Module):
    """The stack, with every block in your Checkpoint."""

    def __init__(self, blocks: nn.Sequential) -> None:
        super().__init__()
        self.blocks = blocks

    def forward(self, x: Tensor) -> Tensor:
        x = x.detach().requires_grad_()  # or the first block's output would need no gradient
        for block in self.blocks:
            x = Checkpoint.apply(block, x)
        return x


STEPS, PARTS = 20, 4


def train_alone(x: Tensor, y: Tensor) -> dict[str, Any]:
    """Twenty steps of AdamW in one process, as plainly as can be."""
    model = stack(width, depth)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    kept = saved_bytes(lambda x, y: squared_error(model(x), y), x, y, exclude=model)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = squared_error(model(x), y)
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    return {
        "losses": losses,
        "parameters": held(model.parameters()),
        "gradients": held(p.grad for p in model.parameters()),
        "optimizer state": state_bytes(optimizer) - 4 * len(optimizer.state),
        "activations": kept,
        "weights": torch.cat([p.detach().flatten() for p in model.parameters()]),
    }


def train_together(group: Group, x: Tensor, y: Tensor) -> dict[str, Any]:
    """The same on each rank, with everything of this lecture that is yours."""
    x, y = (t.chunk(group.size)[group.rank].to(group.device) for t in (x, y))
    model = CheckpointedStack(stack(width, depth)).to(group.device)
    optimizer = ShardedAdamW(model.parameters(), group, lr=1e-3)
    size = len(x) // PARTS
    kept = saved_bytes(
        lambda x, y: squared_error(model(x), y), x[:size], y[:size], exclude=model
    )
    losses = []
    for _ in range(STEPS):
        model.zero_grad()
        loss = accumulate(model, squared_error, x, y, size)
        losses.append(
            group.all_reduce(torch.tensor([loss], device=group.device)).item() / group.size
        )
        optimizer.step()
    return {
        "losses": losses,
        "parameters": held([*model.parameters(), optimizer.part]),
        "gradients": held(p.grad for p in model.parameters()),
        "optimizer state": state_bytes(optimizer.adamw) - 4,
        "activations": kept,
        "weights": torch.cat([p.detach().flatten() for p in model.parameters()]),
    }


# %% [markdown]
r"""
**Predict.** How many times fewer bytes does a rank hold than the process that does it all alone, in the four kinds
together? ($B = 128$, $d = 128$, four blocks. The part that `ShardedAdamW` updates counts with the parameters.)
"""

# %%
guess = None  # times fewer

# %%
kinds = ("parameters", "gradients", "optimizer state", "activations")
plan_alone = dict(
    zip(
        kinds,
        (4 * weights, 4 * weights, 8 * weights, 4 * 9 * depth * batch * width),
        strict=True,
    )
)
rows_at_once = batch // 2 // PARTS
inputs_and_errors = (
    depth * rows_at_once * width
)  # and the first input, which CheckpointedStack makes a leaf of
plan_together = {
    "parameters": 4 * weights + 4 * weights // 2,
    "gradients": 4 * weights,
    "optimizer state": 8 * weights // 2,
    "activations": 4 * inputs_and_errors,
}

one = train_alone(inputs, targets)
together = launch(train_together, 2, inputs, targets)
for kind in kinds:
    enter(f"alone: {kind}", plan_alone[kind], one[kind])
for rank in together:
    assert {kind: rank[kind] for kind in kinds} == plan_together
for kind in kinds:
    enter(f"each of two: {kind}", plan_together[kind], together[0][kind])
times = sum(plan_alone.values()) / sum(plan_together.values())
reconcile("one alone against each of two", guess, times, "times")

drift = max(abs(a - b) for a, b in zip(one["losses"], together[0]["losses"], strict=True))
print(
    f"loss {one['losses'][0]:.3f} at first, {one['losses'][-1]:.3f} after {STEPS} steps, in both"
)
assert one["losses"][-1] < 0.9 * one["losses"][0]
assert drift < 1e-4
assert torch.equal(together[0]["weights"], together[1]["weights"])
assert torch.allclose(together[0]["weights"], one["weights"], atol=1e-3)

# %%
finding = (
    f"The same training: each of two ranks holds {times:.1f} times fewer bytes than one alone"
)
bars = {"one alone": {kind: one[kind] for kind in kinds}}
bars |= {
    f"rank {number}": {kind: rank[kind] for kind in kinds}
    for number, rank in enumerate(together)
}
plots.show(
    plots.memory_stacks(bars, title=finding),
    alt=f"{finding}. Bars of parameters, gradients, optimizer state and activations: the ranks' activations have "
    "nearly vanished, their state is half, their gradients are as large, and their parameters half as large again.",
)

# %% [markdown]
r"""
Twenty steps, the same losses, the same weights to rounding, and on both ranks the same to the bit. And here is the
ledger of the lecture: everything that was predicted, beside what was found.
"""

# %%
exact = sum(predicted == measured for _, predicted, measured, _ in ledger)
finding = f"{exact} of {len(ledger)} predictions were right to the byte, the others within 2 %"
positive = [row for row in ledger if row[1] > 0]
plots.show(
    plots.predicted_vs_measured(positive, title=finding),
    alt=f"{finding}. For each way of saving memory, predicted and measured bytes: all marks lie on one another.",
)

# %% [markdown]
r"""
Back to the beginning: Llama 3.1 8B, one sequence of 8,192 tokens on each card.

**Predict.** Eight H100s, ZeRO stage 3 and checkpointing. How many GB does each card hold?
"""

# %%
guess = None  # GB

# %%
steps = {
    "plain": napkin.Step(batch=1, context=8_192),
    "ZeRO 1": napkin.Step(batch=1, context=8_192, cards=8, zero=1),
    "ZeRO 3": napkin.Step(batch=1, context=8_192, cards=8, zero=3),
    "ZeRO 3, checkpoints": napkin.Step(
        batch=1, context=8_192, cards=8, zero=3, checkpointing=True
    ),
}
ledgers = {name: napkin.memory(llama, step) for name, step in steps.items()}
finding = "Llama 3.1 8B on eight H100s: dividing and computing again make it fit"
plots.show(
    plots.memory_stacks(ledgers, limits={"H100: 80 GB": card}, title=finding),
    alt=f"{finding}. Bars of the five kinds for one card: plain 177 GB, the others less and less.",
)
last = sum(ledgers["ZeRO 3, checkpoints"].values()) / 1e9
reconcile("on each of eight cards", guess, last, "GB")

sums = {name: sum(ledger.values()) for name, ledger in ledgers.items()}
assert sums["plain"] > sums["ZeRO 1"] > card > sums["ZeRO 3"] > sums["ZeRO 3, checkpoints"]

# %% [markdown]
r"""
*Try it yourself:* move the controls. What is the longest context that fits on eight cards, and which kind is in the way
then?
"""

# %%
from course_utils.widgets import memory_budget

memory_budget.explore("Llama 3.1 8B", "H100 SXM", batch=1, context=8_192, cards=8)

# %% [markdown]
r"""
## Takeaways

**Mechanics.** Accumulation: each part's loss times its share of the rows, then `backward`. Checkpointing: keep the
input, compute again, 4/3 of the FLOPs. Offload: in each pass the slower of link and computing. Adafactor: a number for
each row and each column. LoRA: $r\,(\text{in} + \text{out})$ numbers in place of $\text{in} \cdot
\text{out}$. An all_reduce sends $2\,\tfrac{n-1}{n}\,S$ from each rank and is a reduce_scatter and an all_gather. ZeRO
divides state, gradients, parameters, in this order; stage 3 sends half as much again. Tensor parallel: outputs, then
inputs, one sum each way. Pipeline: a bubble of $\tfrac{p-1}{m+p-1}$.

**Mindset.** For each trick ask three things: which kind does it shrink, what is it paid with, and does the result stay
the same? Then measure all three. What is divided has to be put together again: look for the sum that should be a mean,
the term that was never added, the rank that does not come.

**Intuitions.** Activations grow with tokens, everything else with parameters; no single trick does both. What is cheap
to compute again should not be kept. Cut matrices where the wire is fast, layers where it is slow, and batches
everywhere. Most of the time of an elementwise chain is spent carrying numbers to and fro.

Next: **12 · Capstone**. A whole Transformer: planned first, then built, trained, and reconciled with the plan.
"""

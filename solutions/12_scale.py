# %% [markdown]
r"""
# 12 · Scale

[← 11 · Memory](../11_memory/11_memory.ipynb) &nbsp;|&nbsp; [13 · Inference →](../13_inference/13_inference.ipynb)

> **One card isn't enough. How do several share one model, and what do they send each other?**

In lecture 11, you made a training step fit in less memory on a single device. When that isn't enough, or isn't fast
enough, you divide the work among several devices. You can divide the batch, the optimizer state, the matrices or the
layers. Each choice saves different kinds of memory, and you pay for it in bytes sent or in time spent waiting.

By the end, two processes on your machine train one model together, each keeping half of the AdamW state. They arrive at
the same weights as one process alone, up to rounding, and you'll have predicted every byte that they hold. You'll also
know when communication takes longer than computation.
"""

# %%
import math
from collections.abc import Iterable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from course_utils import device as devices
from course_utils import hardware, napkin, plots
from course_utils.facts import FACTS
from course_utils.memory import saved_bytes, storage_bytes
from course_utils.predict import reconcile
from course_utils.progress import show_progress
from course_utils.ranks import Group, RanksError, launch, simulate, wire_bytes
from course_utils.units import readable
from course_utils.testing import check

device = devices.pick_device()
print(devices.describe(device))
show_progress()

# %% [markdown]
r"""
## 1 · What you can divide

As lecture 11 showed, training Llama 3.1 8B on one sequence of 8,192 tokens takes more than twice the memory of an H100.
There are four things you can divide among several cards:

| what you divide | what shrinks on each card | what you pay |
|---|---|---|
| the batch: data parallelism (section 2) | activations | gradients are sent once per step |
| the duplicated training state: ZeRO (3) | optimizer state, gradients, parameters | parts are gathered when they are needed |
| the matrices: tensor parallelism (4) | all of the above | activations are sent in every layer |
| the layers: pipeline parallelism (5) | all of the above | cards wait for each other |

We'll try these four on lecture 11's stack of residual blocks. (Section 6 adds a fifth, for mixtures of experts.) The
folded code below repeats it, along with `enter`, which writes every count into a ledger and fails if the prediction was
wrong.
"""


# %% tags=["folded"]
class Block(nn.Module):
    """x + down(GELU(up(x))), with a hidden width of 4 · d: 8 · d² parameters."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.up = nn.Linear(d, 4 * d, bias=False)
        self.down = nn.Linear(4 * d, d, bias=False)

    def forward(self, x: Float[Tensor, "B d"]) -> Float[Tensor, "B d"]:
        return x + self.down(nn.functional.gelu(self.up(x)))


def stack(d: int, layers: int) -> nn.Sequential:
    """A stack of blocks on the CPU, with the same weights in every process."""
    torch.manual_seed(0)
    return nn.Sequential(*(Block(d) for _ in range(layers)))


def squared_error(prediction: Tensor, y: Tensor) -> Tensor:
    """The mean of the squared errors."""
    return (prediction - y).square().mean()


def same(a: Tensor | None, b: Tensor) -> bool:
    """Equal up to rounding: within a ten-thousandth of the largest absolute value."""
    return a is not None and bool((a - b).abs().max() <= 1e-4 * b.abs().max())


ledger: list[tuple[str, float, float]] = []  # what, bytes predicted, bytes measured


def enter(what: str, predicted: float, measured: float) -> None:
    """Add a line to the ledger. The prediction must be right."""
    print(f"{what}: {predicted:,.0f} B predicted, {measured:,.0f} B measured")
    assert math.isclose(predicted, measured), what
    ledger.append((what, predicted, measured))


llama = napkin.PUBLISHED["Llama 3.1 8B"]
card = FACTS["H100 SXM memory"].value
one_card = sum(napkin.memory(llama, napkin.Step(batch=1, context=8_192)).values())
print(
    f"Llama 3.1 8B, one sequence of 8,192 tokens: {readable(one_card, 'B')} on one card of {readable(card, 'B')}"
)
assert round(one_card / card, 1) == 2.2

# %% [markdown]
r"""
## 2 · Data parallelism

To divide the batch, we need more than one process. A *rank* (no relation to LoRA's) is one of several processes that
run the same program, each with its own memory and, on a real cluster, its own GPU. Ranks share nothing; they send
messages.

`launch(f, 2, …)` starts two of them on this machine and calls `f(group, …)` in each. `group.rank` is the number of this
rank, and `group.size` is how many there are. Ranks communicate through **collectives**, operations that *every* rank
has to call, in the same order:

| call | each rank gives | each rank gets |
|---|---|---|
| `group.all_reduce(x)` | `[m]` | the sum of all: `[m]` |
| `group.all_gather(x)` | `[m]` | all of them: `[size · m]` |
| `group.reduce_scatter(x)` | `[size · m]` | its part of the sum: `[m]` |

In `torch.distributed` they're called `all_reduce`, `all_gather_into_tensor` and `reduce_scatter_tensor`.

(If you have two GPUs or more, each rank gets its own, and they communicate through NCCL, NVIDIA's library of
collectives. Otherwise they're CPU processes, and use Gloo.)
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
What does an all-reduce cost? The classic implementation is a *ring*. Cut the vector into as many equal pieces as there
are ranks. In the first round, each rank sends a different piece to the next rank, which adds it to its own copy. In
every later round, each passes on the piece to which it has just added. After $n - 1$ rounds, each of $n$ ranks holds
one piece of the complete sum: that's a **reduce-scatter**. In another $n - 1$ rounds, the finished pieces travel on
until every rank has all of them, which is an **all-gather**. A reduce-scatter and then an all-gather are an
**all-reduce**: every rank ends up with the whole sum.

Press ▶, then add ranks. How do the number of rounds and the bytes that each rank sends change?
"""

# %%
from course_utils.explorers import ring

ring.explore()

# %% [markdown]
r"""
**Predict.** Two ranks all-reduce a million float32 numbers. How many bytes does each rank send? (And with a thousand
ranks, how many times as many?)
"""

# %%
guess = None  # bytes, with two ranks

# %% [markdown]
r"""
### Exercise 12.1 · What a ring sends, and how long it takes &nbsp; ★★☆ &nbsp; essential &nbsp; 12 minutes

Write two functions. `collective` is `"all_reduce"`, `"reduce_scatter"` or `"all_gather"`. `size` is the number of bytes
in the whole vector: for `all_reduce` and `reduce_scatter` the one that each rank puts in, for `all_gather` the one that
each rank gets out. All pieces have the same size, which need not be an integer. A single rank has nothing to send, and
takes no time.

`ring_bytes(collective, size, ranks)` returns the bytes that *each* rank sends.

`ring_seconds(collective, size, ranks, latency, bandwidth)` returns how long it takes. In each round all ranks send at
the same time, and the next round begins when every rank has received its piece. Every message first waits `latency`
seconds, however small it is, and then its bytes travel at `bandwidth` bytes per second.
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
<details><summary>Hint 1</summary>In the explorer, how many times is a piece passed on until all four ranks have had it?</details>
<details><summary>Hint 2</summary>You need three numbers: the bytes of a piece, how many pieces a rank sends in a round, and how many rounds there are. Which of the three collectives has more rounds than the others, and why? And how long is one round?</details>

**Why it matters.** Data parallelism, ZeRO and tensor parallelism are all built from these three collectives. Let's check
your `ring_bytes`: the operating system counts the bytes that pass between our two processes.
"""


# %%
def sent_by(group: Group) -> list[int | None]:
    """Bytes that the operating system saw leave this process, for three collectives of a million numbers."""
    x, sent = torch.ones(1_000_000, device=group.device), []
    for collective in (group.all_reduce, group.all_gather, group.reduce_scatter):
        before = wire_bytes()
        collective(x)
        after = wire_bytes()
        sent.append(None if before is None or after is None else after - before)
    return sent


def enter_wire(what: str, predicted: float, sent: int | None) -> None:
    """A line of the ledger for what was sent: up to 2% more, because messages have headers."""
    if sent is None:
        print(f"{what}: {predicted:,.0f} B predicted; this system does not say what was sent")
        return
    print(f"{what}: {predicted:,.0f} B predicted, measured {sent / predicted:.2f} times that")
    assert predicted <= sent <= 1.02 * predicted
    ledger.append((what, predicted, sent))


predicted = ring_bytes("all_reduce", 4_000_000, 2)
sent = launch(sent_by, 2)[0]
enter_wire("all_reduce of 4 MB: sent", predicted, sent[0])
enter_wire("all_gather to 8 MB: sent", ring_bytes("all_gather", 8_000_000, 2), sent[1])
enter_wire("reduce_scatter of 4 MB: sent", ring_bytes("reduce_scatter", 4_000_000, 2), sent[2])
reconcile("sent by each of two ranks", guess, predicted, "B")

assert ring_bytes("all_reduce", 4_000_000, 1_000) < 2 * 4_000_000

# %% [markdown]
r"""
Apart from a percent or so for message headers, the measured bytes match your count. (If each of two ranks puts a
million numbers into an all-gather, the whole vector has two million, or 8 MB, of which each rank sends half.) And
however many ranks there are, none of them ever sends more than twice the vector's bytes.

But bytes aren't everything. Suppose that a message has a latency of 10 µs, and that its bytes then pass at 50 GB/s:
"""

# %% tags=["folded"]
for what, size in (
    ("a vector of 4,096 numbers", 4 * 4_096),
    ("all gradients of Llama 3.1 8B, in float32", 4 * llama.parameters),
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
For a large vector, the number of bytes sets the time, and more ranks hardly change it. For a small one, the number of
rounds does, and each extra rank adds two. That's why gradients aren't sent one by one.

In **data parallelism** every rank holds the whole model and processes its own part of the batch. After the backward
pass, one all-reduce sums the gradients and each rank divides them by the number of ranks, so all ranks take the same
step and their models stay identical. It is gradient accumulation with the parts processed at the same time instead of
one after the other. (PyTorch's `DistributedDataParallel`, which you'll use below, packs many gradients into a *bucket*,
and starts sending it as soon as the backward pass has filled it.)

> **Trap: the mean.** `all_reduce` *sums*. Each rank's gradient is that of the mean loss over its own rows, so the sum
> is `group.size` times too large. With SGD, training then behaves as if the learning rate were that many times too
> high. Divide by `group.size`. (If the parts aren't equal, weight them, as in exercise 11.1.)
"""

# %% tags=["folded"]
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
    """Averaged gradients, by hand and by DistributedDataParallel, and the bytes that ours sent."""
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
Both processes ended up with the same gradients as one process that saw all the rows. So did PyTorch's
`DistributedDataParallel`.

What happens if one rank *doesn't* call what the others call? The others wait for it without printing anything, until
they reach a *timeout*: by default 10 minutes with NCCL and 30 with other libraries. A GPU that waits inside a
collective looks busy, so a job that hangs can look like one that works. `launch` gives up after a time limit. The
exercise checks use `simulate`, in which the ranks are threads of one process. It notices immediately when a rank will
never arrive.
"""


# %% tags=["folded"]
def forgets(group: Group) -> Tensor:
    """Rank 1 thinks that it has nothing to say."""
    x = torch.ones(3, device=group.device)
    return group.all_reduce(x) if group.rank == 0 else x


try:
    simulate(forgets, 2)
    raise AssertionError("nobody noticed")
except RanksError as error:
    print(error)
    assert "rank 0 waits in all_reduce" in str(error) and "rank 1 has ended" in str(error)

from torch.distributed import constants as timeouts

assert timeouts.default_pg_timeout.total_seconds() == 30 * 60
if timeouts.default_pg_nccl_timeout is not None:  # it's None where PyTorch comes without NCCL
    assert timeouts.default_pg_nccl_timeout.total_seconds() == 10 * 60

# %% [markdown]
r"""
*Try it yourself:* run `launch(forgets, 2, seconds=10)`. What does it say, and does it take all ten seconds?

### Ring or tree? (optional)

Around a ring of 1,024 ranks, even a single number takes 2,046 rounds. A *tree* takes far fewer. In the first round,
every second rank sends its vector to a neighbor, which adds it to its own. In the next round, every second one of the
ranks that now hold a sum sends it on, and so on until one rank has the sum of all. Then the sum travels back the way it
came.
"""


# %%
def tree_sum(vectors: list[Tensor]) -> tuple[Tensor, int]:
    """The sum of all ranks' vectors, and the number of rounds until rank 0 has it."""
    vectors, distance, rounds = [v.clone() for v in vectors], 1, 0
    while distance < len(vectors):
        for receiver in range(0, len(vectors) - distance, 2 * distance):
            vectors[receiver] += vectors[receiver + distance]  # all of these at the same time
        distance, rounds = 2 * distance, rounds + 1
    return vectors[0], rounds


for n in (1, 2, 5, 8, 1_000, 1_024):
    summed, tree_rounds = tree_sum([torch.full((3,), float(rank)) for rank in range(n)])
    assert summed.tolist() == 3 * [n * (n - 1) / 2]
    assert tree_rounds == math.ceil(math.log2(n))

# %% [markdown]
r"""
That's $2 \lceil \log_2 n \rceil$ rounds instead of the ring's $2\,(n-1)$. The price is that the *whole* vector travels
in each of them, not just an $n$-th of it.

**Predict.** Again, a message has a latency of 10 µs, and its bytes pass at 50 GB/s. By what factor is the tree faster
than the ring, for 4,096 numbers and 1,024 ranks?
"""

# %%
guess = None  # times


# %%
def tree_seconds(size: int, ranks: int, latency: float, bandwidth: float) -> float:
    """Seconds that an all-reduce takes with a tree."""
    return 2 * math.ceil(math.log2(ranks)) * (latency + size / bandwidth)


faster = {}
for what, size in (("4,096 numbers", 4 * 4_096), ("all gradients", 4 * llama.parameters)):
    tree = tree_seconds(size, 1_024, 10e-6, 50e9)
    by_ring = ring_seconds("all_reduce", size, 1_024, 10e-6, 50e9)
    faster[what] = by_ring / tree
    print(f"{what}: ring {readable(by_ring, 's')}, tree {readable(tree, 's')}")
    assert tree == napkin.all_reduce(size, 1_024, 50e9, latency=10e-6, algorithm="tree")
reconcile("the tree, for 4,096 numbers", guess, faster["4,096 numbers"], "times as fast")

assert round(faster["4,096 numbers"]) == 99 and round(1 / faster["all gradients"]) == 10
equal = 56_270_000  # bytes for which both take as long
both = (
    tree_seconds(equal, 1_024, 10e-6, 50e9),
    ring_seconds("all_reduce", equal, 1_024, 10e-6, 50e9),
)
assert math.isclose(*both, rel_tol=1e-4)

# %% [markdown]
r"""
For all gradients of the model, it's the ring that is ten times as fast. Both take equally long at 56 MB. (NCCL's
[double binary trees](https://developer.nvidia.com/blog/massively-scale-deep-learning-training-nccl-2-4/) use two trees
at once, and send a long vector in pieces, so they lose far less time on it.)

*Try it yourself:* for which sizes is the tree faster with 8 ranks?

## 3 · ZeRO: no rank needs all of it

Data parallelism shrinks the activations, because each rank has fewer rows. But all ranks hold the same weights,
gradients and optimizer state. **ZeRO**, the *zero redundancy optimizer*, removes these copies, one kind after another:
what it divides exists only once, and each rank holds its share (Rajbhandari and others, 2019, arXiv:1910.02054). It has
three stages:

- **Stage 1.** The optimizer state and the master weights (the float32 copy of lecture 10) are divided, or *sharded*.
  Each rank updates its own part of the weights, and an all-gather distributes the result.
- **Stage 2.** The gradients are divided as well. Once a gradient has been reduce-scattered, each rank keeps only
  its own part of the average.
- **Stage 3.** The parameters are divided as well. Before a layer computes, its weights are gathered, and afterward they
  are dropped. PyTorch calls this FSDP, *fully sharded data parallel*; its current version is the function
  `torch.distributed.fsdp.fully_shard`, also known as FSDP2.

Take Llama 3.1 8B on eight cards, with 2 bytes per parameter for the weights, 2 for the gradients, and 12 for optimizer
state and master weights.

**Predict.** Without activations, how many GB does each card hold at stage 2?
"""

# %%
guess = None  # GB on each card at stage 2

# %% [markdown]
r"""
### Exercise 12.2 · zero_bytes &nbsp; ★☆☆ &nbsp; essential &nbsp; 10 minutes

Write `zero_bytes(parameters, ranks, stage, recipe)`, which returns the bytes on each rank, by kind. `recipe` gives the
bytes per *parameter* for each kind: it is a dict with the keys `"parameters"`, `"gradients"` and `"state"` (which
includes the master weights), in any order. Stage 0 divides nothing, and each later stage divides one more kind. When a
kind is divided, each rank holds the bytes for an equal number of *parameters*: the vector of all parameters is padded
to a multiple of `ranks`. There are at most $10^{15}$ parameters. Return a dict of ints with the same keys.
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
<details><summary>Hint 1</summary>How many parameters does one rank look after? With ten parameters on four ranks, two each is too few.</details>
<details><summary>Hint 2</summary>What's the first stage at which each kind is divided? With a dict that maps each kind to that stage, one rule covers all the cases.</details>

**Why it matters.** With this function you can tell whether a model fits on a given number of cards, apart from its
activations. The ZeRO paper's own example, a model of 7.5 billion parameters on 64 cards, follows from it:
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
reconcile("Llama 3.1 8B at stage 2 on each of eight cards", guess, gigabytes[2], "GB")
for stage in (1, 3):
    print(f"at stage {stage}: {gigabytes[stage]:.1f} GB")
assert [round(value, 1) for value in gigabytes] == [128.5, 44.2, 30.1, 16.1]

# %% [markdown]
r"""
At stage 2, every card still holds all the weights. At which stage does Llama 3.1 70B fit on H100s, and how many does it
take?
"""

# %%
from course_utils.explorers import sharding

sharding.explore("Llama 3.1 8B", "H100 SXM", cards=8).predicted(
    "Llama 3.1 8B at stage 2 on each of eight cards",
    "How many GB of Llama 3.1 8B's training does each of eight cards hold at ZeRO stage 2, without activations?",
)

# %% [markdown]
r"""
### Exercise 12.3 · ShardedAdamW &nbsp; ★★★ &nbsp; essential &nbsp; 25 minutes

Write the `step` method of `ShardedAdamW`, an AdamW whose state (lecture 08) is divided among the ranks. The rest is
given: all parameters are joined into one vector, padded to a multiple of `group.size`; `self.part` is a copy of this
rank's part of that vector, as an `nn.Parameter`; and `self.adamw` is PyTorch's AdamW for that part alone. In `step`:

1. make one padded vector of all gradients (`self.padded` does that for any list of tensors; every parameter has a
   gradient, and both are contiguous);
2. get this rank's part of the *average* over the ranks, as `self.part.grad`;
3. let `self.adamw` take its step;
4. get all ranks' parts, and copy the numbers back into the parameters, in place.

Leave the parameters' own `.grad` as they are. Every rank has to end up with the same parameters, and may send no more
in a step than a ring sends for an all-reduce of the vector.
"""


# %% nbgrader={"grade": false, "grade_id": "ShardedAdamW", "locked": false, "schema_version": 3, "solution": true, "task": false}
class ShardedAdamW:
    """AdamW with its state divided among the ranks (ZeRO stage 1)."""

    def __init__(self, params: Iterable[nn.Parameter], group: Group, lr: float = 1e-3) -> None:
        self.params, self.group = list(params), group
        whole = self.padded([p.detach() for p in self.params])
        self.part = nn.Parameter(whole.chunk(group.size)[group.rank].clone())
        self.adamw = torch.optim.AdamW([self.part], lr=lr)

    def padded(self, tensors: Iterable[Tensor]) -> Float[Tensor, "padded"]:
        """All numbers of the tensors as one vector, padded with zeros to a multiple of group.size."""
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
<details><summary>Hint 1</summary>Which collective gives a rank its part of the <em>sum</em> of all vectors, and no more? What turns that into the average?</details>
<details><summary>Hint 2</summary>Step 4 gives you the whole vector, with the padding at its end. It holds the parameters in the order of <code>self.params</code>, with <code>p.numel()</code> numbers each. <code>p.copy_(…)</code> wants them in the shape of p.</details>

**Why it matters.** Stage 1 takes no extra communication: since a reduce-scatter and an all-gather are the two halves of
an all-reduce, it sends exactly what plain data parallelism sends.

### All stages, for real

Here are the other stages, with each matrix divided separately. In stage 2, a hook takes each gradient as soon as it is
complete, keeps this rank's part and drops the rest. In stage 3 no rank *keeps* a whole weight: a layer gathers its
weight, uses it, and drops it, once in the forward pass and once in the backward pass. The last folded cell of this
section trains for three steps at each stage.
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
    """A linear layer at stage 3, which keeps only this rank's part of its weight."""

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


# %% tags=["folded"]
def held(tensors: Iterable[Tensor | None]) -> int:
    """Bytes of the storages behind some tensors."""
    return sum(storage_bytes(tensor) for tensor in tensors if tensor is not None)


def moment_bytes(adamw: torch.optim.AdamW) -> int:
    """Bytes of AdamW's state, without the step counters."""
    return held(state[m] for state in adamw.state.values() for m in ("exp_avg", "exp_avg_sq"))


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
    result["state"] = moment_bytes(adamw)
    whole = [p if stage < 3 else group.all_gather(p) for p in model.parameters()]
    result["trained"] = torch.cat([p.detach().flatten() for p in whole])
    return result


def all_stages(group: Group, x: Tensor, y: Tensor) -> list[dict[str, Any]]:
    """Stages 0 to 3, one after the other."""
    return [zero_training(group, stage, x, y) for stage in range(4)]


# %% [markdown]
r"""
**Predict.** At stage 3, the weights are gathered twice and the gradients reduce-scattered once. How many times as many
bytes does each rank send per step as at stage 0?
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
assert math.isclose(sends, 1.5 * ring_bytes("all_reduce", 4 * weights, 2))

# %% [markdown]
r"""
All four stages led to the same weights as one process, and each rank held exactly the bytes that your formula predicts
(gradients are counted after the backward pass), plus, in stages 1 and 2, a *master copy* of the part of the weights
that the rank updates. Here it's redundant, because the weights are float32 already. With bfloat16 weights, it's the
float32 copy that you need anyway (lecture 10), and exercise 12.2 counts it as state. At stage 3, our code waits for
each layer's weights; FSDP gathers the next layer's while the current layer computes.

## 4 · Tensor parallelism: half a matrix each

ZeRO divides what is *stored*, but every rank still computes with whole matrices. **Tensor parallelism** divides the
matrix multiplications themselves: each rank holds a slice of every weight matrix and computes with that slice only
(Shoeybi and others, 2019, arXiv:1909.08053). All ranks process the *same* rows. In a block with two matrices, you can
slice them so that a single sum is enough:

- Slice `up` by its *outputs*. Each of $n$ ranks computes $4d / n$ of the $4d$ hidden activations. GELU works on each
  number by itself, so each rank can continue alone.
- Slice `down` by its *inputs* in the same way, so that each rank's slice needs only the hidden activations computed on
  that rank. Each rank then gets an output of full size that is one of $n$ terms of the true output. One all-reduce adds
  the terms.

The backward pass is the mirror image. The gradient of the output is the same on all ranks, but the gradient of the
*input* comes in $n$ terms, because each rank can compute only the part that flows back through its own slice of `up`.
These terms have to be added too. Megatron-LM, the library from that paper, wraps the two sums in two small functions
called *f* and *g*: *f* does nothing in the forward pass and an all-reduce in the backward pass, and *g* does the
reverse.

### Exercise 12.4 · ParallelMLP &nbsp; ★★★ &nbsp; 25 minutes

The two functions are given. Write `__init__` and `forward` of `ParallelMLP` (MLP, *multilayer perceptron*, is another
name for a feed-forward block), for $y = \text{GELU}(x\, \text{up}^\top)\, \text{down}^\top + \text{bias}$. `up` is
`[h, d]` and `down` is `[d, h]`, as `nn.Linear` stores its weights: outputs come first. Keep three parameters: `self.up`
and `self.down` hold this rank's slices, and `self.bias` is the whole bias. A slice has to be a copy with its own
storage, because a view would keep the whole matrix alive. $h$ is divisible by the number of ranks, and the equal slices
go to the ranks in order, starting with rank 0.

Every rank is given the same $x$. On every rank the output is the whole $y$. After `backward`, the gradients of $x$ and
of the bias are those of the whole layer, and the gradients of `up` and `down` are this rank's slices of the whole
layer's. The ranks may call `all_reduce` once in the forward pass and once in the backward pass, each time on a tensor
of $x$'s shape, and may send nothing else.
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
    """GELU(x @ up.T) @ down.T + bias, where each rank holds and computes its own part."""

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
<details><summary>Hint 1</summary><code>chunk(group.size, dim=…)</code> cuts a tensor into equal views. Outputs are the rows of a weight, inputs its columns.</details>
<details><summary>Hint 2</summary>Which values are the same on all ranks, and which are only one of several terms of a sum? In the forward pass the terms appear after <code>down</code>; in the backward pass, before <code>up</code>. And should the bias be added before that sum or after it?</details>

**Why it matters.** Attention is divided the same way, by its heads: the query, key and value matrices are sliced by
outputs, and the output projection by inputs. So a whole Transformer layer needs just two sums in each direction.

**Predict.** All $B$ rows pass forward and backward through one block of width $d$ that is divided between two ranks.
How many bytes does each rank send? ($B = 128$, $d = 128$, float32.)
"""

# %%
guess = None  # bytes


# %% tags=["open"]
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


# %%
undivided: Any = stack(width, 1)[0]
x_whole = inputs.clone().requires_grad_()
squared_error(undivided(x_whole), targets).backward()
halves = launch(tensor_parallel, 2, inputs, targets)
assert x_whole.grad is not None and undivided.up.weight.grad is not None
assert all(same(half["x"], x_whole.grad) for half in halves)
assert same(torch.cat([half["up"] for half in halves]), undivided.up.weight.grad)

enter("tensor parallel: weights on each rank", 4 * 8 * width**2 / 2, halves[0]["held"])
planned = 4 * batch * (8 * width / 2 + width)
if halves[0]["kept"] > planned:
    print("a GELU in several operations keeps more than PyTorch's")
else:
    enter("tensor parallel: activations on each rank", planned, halves[0]["kept"])
predicted = 2 * ring_bytes("all_reduce", 4 * batch * width, 2)
enter_wire("tensor parallel: sent by each rank", predicted, halves[0]["sent"])
reconcile("sent for one block, forward and backward", guess, predicted, "B")

# %% [markdown]
r"""
The weights, the gradients, the optimizer state and the block's intermediate activations ($8d$ numbers per row) are
halved. The residual stream (the vector to which each block adds its output) isn't: each block's input is kept in full
on every rank, $d$ numbers per row. (Our count has the loss's differences instead of the first input.) You pay with two
all-reduces in *every* block, one of activations and one of their gradients, and all ranks wait while these travel. Data
parallelism sends only once per step, and can overlap that with the backward pass. So tensor parallelism belongs where
the interconnect, the connection between the cards, is fastest. Llama 3 405B's cluster had **NVLink**, NVIDIA's direct
connection between GPUs, within each server of eight, and Ethernet between servers, with 400 Gbit/s for each GPU (The
Llama 3 Herd of Models, section 3.3.1). **InfiniBand** is another kind of network between servers; it, too, has only a
fraction of NVLink's bandwidth.

*Try it yourself:* at what batch size does one divided block send more than plain data parallelism does for that block's
weights?

## 5 · Pipeline parallelism: some layers each (optional)

**Pipeline parallelism** gives each rank, now called a *stage* (no relation to ZeRO's), some of the layers. Only the
activations at the boundary between two stages are sent, $B \cdot d$ numbers forward and as many gradients backward. But
the second stage has to wait for the first, and later the first for the second. So, as in gradient accumulation, the
batch is cut into microbatches, which follow one another through the stages as on an assembly line (GPipe; Huang and
others, 2018, arXiv:1811.06965). For simplicity, let each forward pass of a microbatch through a stage, and each
backward pass, take one tick. The ticks in which a stage waits are the **bubble** of a pipeline. In GPipe's schedule,
all forward passes come first, and then all backward passes.

**Predict.** With four stages, how many microbatches does it take to bring the bubble down to a quarter of the time?
"""

# %%
guess = None  # microbatches, until the bubble is a quarter of the time

# %%
rows = {
    m: napkin.schedule(4, m)[0] for m in range(1, 20)
}  # the first of four stages, tick by tick
a_quarter = min(m for m, row in rows.items() if row.count(".") <= len(row) / 4)
reconcile("microbatches for a bubble of a quarter", guess, a_quarter, "microbatches")
assert a_quarter == 9

# %% [markdown]
r"""
The explorer runs this schedule and a second one, tick by tick. F2 is the forward pass of microbatch 2, and B2 is its
backward pass. (On a narrow screen, colors replace the letters.) Which slider changes the number of ticks that a stage
waits?
"""

# %%
from course_utils.explorers import timetable

timetable.explore(stages=4, microbatches=a_quarter).predicted(
    "microbatches for a bubble of a quarter",
    "With four stages, how many microbatches bring the bubble down to a quarter of the time?",
)

# %% [markdown]
r"""
Counted in ticks, the bubble doesn't depend on the number of microbatches, but its *fraction* of all ticks does.

A stage keeps the activations of a microbatch from its F to its B. In GPipe's schedule that means all microbatches, the
whole batch. The second one, *1F1B* (short for *one forward, one backward*; Narayanan and others, 2021,
arXiv:2104.04473), starts the backward passes as early as it can. Each stage may hold only so many microbatches (you'll
work out how many); at that limit, it takes in a new one only when an old one is done.

### Exercise 12.5 · pipeline_plan (optional) &nbsp; ★★☆ &nbsp; 15 minutes

Write `pipeline_plan(stages, microbatches, stream)`, which returns a dict with three entries. `"bubble"` is the fraction
of all ticks in which a stage waits. `"kept"` is a list with one entry per stage: the largest number of microbatches
whose activations that stage holds at the same time under 1F1B. `"sent"` is a list with the bytes that each stage sends
in a step. `stream` is the number of bytes of the whole batch's activations *between* two layers; their gradients take
as many. Activations go to the next stage, gradients to the previous one. There may be fewer microbatches than stages,
or only one stage. There may also be a thousand stages and a million microbatches, so don't build the schedule.
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
<details><summary>Hint 1</summary>The bubble: in any row of the first schedule, empty ticks over all ticks. With m microbatches a row has 2·m passes. How many empty ticks are there with four stages, and how many with two?</details>
<details><summary>Hint 2</summary>Kept: count along the rows of the second schedule, one more at each F, one less at each B. What is the largest count in each row, and what would it be with two microbatches? Sent: how many neighbors does a stage have?</details>

**Why it matters.** These three numbers tell you how to cut a model: you want enough microbatches to keep the bubble
small, and a schedule in which no stage has to keep the activations of all of them. And since a stage sends so little,
the interconnect need not be fast. (Narayanan and others divide the bubble by the time *without* it, and get $(p - 1)/m$
for $p$ stages and $m$ microbatches. Check which definition a paper uses.)

The explorer's schedules come from `napkin.schedule`, which starts each pass as soon as the pass that it waits for is
done. Your formulas should agree with it.
"""

# %%
for stages in (1, 2, 4, 8):
    for microbatches in (1, 3, 8, 32):
        plan = pipeline_plan(stages, microbatches, stream=0)
        for early in (False, True):
            lines = napkin.schedule(stages, microbatches, early)
            idle = sum(line.count(".") for line in lines) / (len(lines) * len(lines[0]))
            assert math.isclose(idle, plan["bubble"])
        kept = [max(napkin.kept(line)) for line in lines]  # with 1F1B, the last one tried
        assert kept == list(plan["kept"])

enough = next(
    m for m in range(1, 1_000) if pipeline_plan(4, m, stream=0)["bubble"] < 0.1 - 1e-9
)
print(f"with four stages, it takes {enough} microbatches to bring the bubble below a tenth")
assert enough == 28
assert [max(napkin.kept(line)) for line in napkin.schedule(4, 28)] == [28, 28, 28, 28]
assert [max(napkin.kept(line)) for line in napkin.schedule(4, 28, early=True)] == [4, 3, 2, 1]

# %% [markdown]
r"""
The bubble is the same in both schedules. But with 1F1B, the first stage keeps only four microbatches, as many as there
are stages, instead of all of them.

Now for real, with two stages: rank 0 has the first half of the blocks, and rank 1 has the second half and the loss.
Collectives don't help here. Instead you use `send` and `recv`, which pass a tensor from one rank to another.
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
assert math.isclose(plan["bubble"], 1 / 5)

# %% [markdown]
r"""
Again we get the same gradients as one process alone, and the least traffic of all: 4 · $B$ · $d$ bytes in each
direction, however many layers a stage has. That's why Narayanan and others run pipelines between machines, where the
interconnect is slowest, and tensor parallelism within one.

*Try it yourself:* comment out rank 1's `send`. What does `launch` tell you, and when? (Give it `seconds=10`.)
"""

# %% [markdown]
r"""
## 6 · When does sending take longer than computing?

A step is **communication-bound** if sending takes longer than computing. Then even perfect overlap can't hide the
communication. To find out in advance, count both. Take a model of $L$ layers and width $d$ in bfloat16, with $N$
parameters, of which $A$ are active for a token (lecture 06; $A = N$ except in a mixture of experts). The table's last
row is explained below it; a token uses $k$ experts. On $n$ cards:

| | communication in a step | computation to compare it with |
|---|---|---|
| `"data"` | an all-reduce of the gradients, $2N$ bytes | the backward pass, $4A$ FLOPs per token |
| `"sharded"`: ZeRO 3, FSDP2 | two all-gathers and a reduce-scatter, $2N$ bytes each | the whole step, $6A$ FLOPs per token |
| `"tensor"` | 4 all-reduces in each layer, $2d$ bytes per token each | its part of the step, $6A/n$ FLOPs per token |
| `"pipeline"` | $2d$ bytes per token to each of its neighbors | its part of the step, $6A/n$ FLOPs per token |
| `"expert"` | 4 all-to-alls in each layer, $2kd$ bytes per token each | the whole step, $6A$ FLOPs per token |

A Transformer layer has two divided blocks, attention and feed-forward, so tensor parallelism needs four all-reduces.
**Expert parallelism** divides a mixture of experts: each card has its own tokens, as in data parallelism, and some of
every layer's experts. A token's vector travels to the $k$ experts that it uses, and their outputs come back. In the
backward pass, the gradients make the same two trips. Each trip is an **all-to-all**, in which every card cuts what it
has into $n$ parts, keeps one, and sends one to each of the other cards. (We leave out the gradients of all parameters
outside the experts: they are averaged as in plain data parallelism.)

### Exercise 12.6 · How fast must the link be? &nbsp; ★★☆ &nbsp; essential &nbsp; 15 minutes

Write two functions. `kind` is a name from the table, and `model` is a dict with $N$, $A$, $L$, $d$ and $k$ as
`"parameters"`, `"active"`, `"layers"`, `"width"` and `"used"`. `tokens` is the number of tokens that a card processes
in a step. Each kind is used alone. Collectives are rings, and in an all-to-all all parts have the same size.

`sent_bytes(kind, model, cards, tokens)` returns the bytes that a card sends in a step. In a pipeline, count the bytes
of the card that sends the most: cards in the middle have two neighbors, and those at the ends have one. A single card
sends nothing.

`needed_bandwidth(kind, model, cards, tokens, rate)` returns the bandwidth, in bytes per second, at which sending takes
exactly as long as the computation in the table's last column. A card computes at `rate` FLOP/s.
"""


# %% nbgrader={"grade": false, "grade_id": "sent_bytes", "locked": false, "schema_version": 3, "solution": true, "task": false}
def sent_bytes(kind: str, model: dict[str, int], cards: int, tokens: int) -> float:
    """Bytes that each card sends in a step, or the one that sends the most."""
    ### BEGIN SOLUTION
    others = (cards - 1) / cards  # the part of a vector that leaves a card in a ring
    weights = 2 * model["parameters"]
    stream = 2 * tokens * model["width"]
    if kind == "data":
        return 2 * others * weights
    if kind == "sharded":
        return 3 * others * weights
    if kind == "tensor":
        return 4 * model["layers"] * 2 * others * stream
    if kind == "expert":
        return 4 * model["layers"] * others * model["used"] * stream
    return float(min(cards - 1, 2) * stream)
    ### END SOLUTION


def needed_bandwidth(
    kind: str, model: dict[str, int], cards: int, tokens: int, rate: float
) -> float:
    """Bytes per second at which sending takes as long as the computation."""
    ### BEGIN SOLUTION
    part = cards if kind in ("tensor", "pipeline") else 1
    passes = 4 if kind == "data" else 6
    seconds = passes * model["active"] * tokens / part / rate
    return sent_bytes(kind, model, cards, tokens) / seconds
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_sent_bytes", "locked": true}
check("sent_bytes")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Your <code>ring_bytes</code> covers every collective here except the all-to-all. Which part of its data doesn't leave a card?</details>
<details><summary>Hint 2</summary>The bandwidth is the bytes, divided by the seconds of computation. Which kinds divide the computation among the cards?</details>

**Why it matters.** Compare the result with the links that you have, and you know what to divide, and where.

Are the bytes right? In the folded code, four simulated ranks take a step of each kind and count what they send.
"""

# %% tags=["folded"]
RANKS, TOKENS = 4, 8  # tokens on each rank
TOY = {
    "parameters": 4 * 8 * 16**2,
    "active": 4 * 8 * 16**2,
    "layers": 2,
    "width": 16,
    "used": 3,
}


class Exchanged(torch.autograd.Function):
    """Part i of x goes to rank i; its gradient comes back from there."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        ctx.group = group
        return torch.cat(group.all_to_all(list(x.chunk(group.size))))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return torch.cat(ctx.group.all_to_all(list(gradient.chunk(ctx.group.size)))), None


def through_stages(group: Group, stage: nn.Module, x: Tensor) -> None:
    """One batch forward and backward through a pipeline, each rank a stage."""

    def passed(t: Tensor, source: int, target: int) -> Tensor:
        """What source has, on target."""
        parts = [x[:0]] * group.size
        if group.rank == source:
            parts[target] = t
        return group.all_to_all(parts)[source]

    arrived, out = x, x
    for at in range(group.size):
        if at > 0:
            got = passed(out, at - 1, at)
            arrived = got.requires_grad_() if group.rank == at else arrived
        out = stage(arrived) if group.rank == at else out
    gradient = torch.ones_like(x)
    for at in reversed(range(group.size)):
        if group.rank == at:
            out.backward(gradient)
        if at > 0:
            got = passed(gradient if arrived.grad is None else arrived.grad, at, at - 1)
            gradient = got if group.rank == at - 1 else gradient


def sent_in_a_step(group: Group, kind: str) -> float:
    """The bytes that this rank sends; the layers are two blocks each, or one exchange with the experts."""
    size, layers, used = TOY["width"], TOY["layers"], TOY["used"]
    blocks: Any = stack(size, 2 * layers).bfloat16()
    x = torch.ones(TOKENS, size, dtype=torch.bfloat16, requires_grad=True)
    if kind == "data":
        group.all_reduce(gradients_of(blocks, x, x.detach()))
    elif kind == "sharded":
        for block in blocks:
            for name in ("up", "down"):
                setattr(block, name, GatheredLinear(getattr(block, name), group))
        blocks(x).sum().backward()
    elif kind == "tensor":
        y, bias = x, torch.zeros(size, dtype=x.dtype)
        for block in blocks:
            y = y + ParallelMLP(
                block.up.weight.detach(), block.down.weight.detach(), bias, group
            )(y)
        y.sum().backward()
    elif kind == "pipeline":
        through_stages(group, blocks[group.rank], x)
    else:
        y = x
        for _ in range(layers):
            there = Exchanged.apply(y.repeat_interleave(used, dim=0), group)
            back = Exchanged.apply(nn.functional.gelu(there), group)
            y = y + back.view(TOKENS, used, size).sum(dim=1)
        y.sum().backward()
    return group.sent


for kind in ("data", "sharded", "tensor", "pipeline", "expert"):
    enter(
        f"{kind}: sent by one of {RANKS} ranks",
        sent_bytes(kind, TOY, RANKS, TOKENS),
        max(simulate(sent_in_a_step, RANKS, kind)),
    )

# %% [markdown]
r"""
All counts are right. Now take Llama 3.1 8B on eight H100s at 40% of their peak. In one server, NVLink carries 450 GB/s
in each direction. Between servers, a network of 400 Gbit/s carries 50 GB/s. For expert parallelism we take DeepSeek-V3
(arXiv:2412.19437), in which 58 of the 61 layers have experts. (Eight cards couldn't hold it; we only compare its
traffic.)
"""

# %% tags=["folded"]
h100 = hardware.ACCELERATORS["H100 SXM"]
rate = 0.4 * h100.peak[torch.bfloat16]
nvlink, network = h100.links
links = {"NVLink": nvlink.bandwidth, "network": network.bandwidth}  # bytes/s that a card sends
assert links == {"NVLink": 450e9, "network": 50e9}

dense = {
    "parameters": llama.parameters,
    "active": llama.parameters,
    "layers": llama.layers,
    "width": llama.width,
    "used": 1,
}
deepseek = {
    key: int(FACTS[f"DeepSeek-V3 {what}"].value)
    for key, what in {
        "parameters": "parameters",
        "active": "active parameters",
        "layers": "layers",
        "width": "width",
        "used": "experts per token",
    }.items()
}
deepseek["layers"] -= int(FACTS["DeepSeek-V3 dense layers"].value)
assert deepseek["layers"] == 58
needs, even = {}, {}
print("for 8,192 tokens on each card:")
for kind in ("data", "sharded", "tensor", "pipeline", "expert"):
    model = deepseek if kind == "expert" else dense
    needs[kind] = needed_bandwidth(kind, model, 8, 8_192, rate)
    shares = (f"{needs[kind] / link:.2f} of {name}" for name, link in links.items())
    print(f"{kind:>9} needs {needs[kind] / 1e9:6.1f} GB/s: {', '.join(shares)}")
    if kind in ("data", "sharded"):  # which need less, the more tokens there are
        for name, link in links.items():
            even[kind, name] = needed_bandwidth(kind, model, 8, 1, rate) / link
            print(f"{'':>9} with {even[kind, name]:,.0f} tokens: all of {name}")

for kind in ("tensor", "pipeline", "expert"):
    model = deepseek if kind == "expert" else dense
    assert math.isclose(needed_bandwidth(kind, model, 8, 16_384, rate), needs[kind])
assert round(even["data", "NVLink"], -1) == round(even["sharded", "NVLink"], -1) == 770
assert round(even["data", "network"], -2) == round(even["sharded", "network"], -2) == 6_900
assert round(needs["tensor"] / nvlink.bandwidth, 2) == 0.27
assert round(needs["tensor"] / network.bandwidth, 1) == 2.4
assert round(needs["pipeline"] / network.bandwidth, 2) == 0.02
assert round(needs["expert"] / network.bandwidth, 2) == 0.83
assert round(needs["expert"] / nvlink.bandwidth, 2) == 0.09

# %% [markdown]
r"""
With *data parallelism*, only the computation grows with the number of tokens. So there's a number of tokens per card
below which a step is communication-bound: about 770 over NVLink and 6,900 over the network. Sharding has the same
limits, because it sends 1.5 times as much but can hide it behind 1.5 times the FLOPs. (Almost $4N$ bytes are sent
during $4N$ FLOPs per token, so the limit is about a card's FLOP/s divided by its link's B/s.)

For the other three, the bytes grow with the tokens, too, so a larger batch doesn't help. With *tensor parallelism*,
sending takes 27% of the computation time over NVLink, but 2.4 times the computation time over the network, so it stays
within a server. In a *pipeline*, it takes 2% even over the network. For DeepSeek-V3's *experts*, it's 9% over NVLink,
and 83% over the network.

You can also combine them, as Narayanan and others (2021, arXiv:2104.04473) do: tensor parallelism within a server, a
pipeline through several servers, and data parallelism across many such pipelines.

*Try it yourself:* what changes with 64 cards? And if every block is recomputed (lecture 11), so that a step takes $8A$
FLOPs per token?

## 7 · The result: two processes train one model

Now we combine methods from this lecture and lecture 11. The batch is divided between two processes, each half passes
through the model in four parts, each block is recomputed in the backward pass, and each rank keeps half of the
optimizer state (your `ShardedAdamW`). One process alone has none of this.
"""


# %% tags=["folded"]
from torch.utils.checkpoint import checkpoint


class CheckpointedStack(nn.Module):
    """The stack, with every block in a checkpoint."""

    def __init__(self, blocks: nn.Sequential) -> None:
        super().__init__()
        self.blocks = blocks

    def forward(self, x: Tensor) -> Tensor:
        x = x.detach().requires_grad_()  # needed only with use_reentrant=True; harmless here
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return x


STEPS, PARTS = 20, 4


def accumulate(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """The gradients of the whole batch, from equal parts; returns the mean loss."""
    losses = []
    for rows, targets in zip(x.chunk(PARTS), y.chunk(PARTS), strict=True):
        loss = squared_error(model(rows), targets) / PARTS
        loss.backward()
        losses.append(loss.item())
    return sum(losses)


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
        "optimizer state": moment_bytes(optimizer),
        "activations": kept,
        "weights": torch.cat([p.detach().flatten() for p in model.parameters()]),
    }


def train_together(group: Group, x: Tensor, y: Tensor) -> dict[str, Any]:
    """The same on each rank, in parts, with checkpoints and with your ShardedAdamW."""
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
        loss = accumulate(model, x, y)
        losses.append(
            group.all_reduce(torch.tensor([loss], device=group.device)).item() / group.size
        )
        optimizer.step()
        optimizer.part.grad = None  # needed only during the step
    return {
        "losses": losses,
        "parameters": held([*model.parameters(), optimizer.part]),
        "gradients": held(p.grad for p in model.parameters()),
        "optimizer state": moment_bytes(optimizer.adamw),
        "activations": kept,
        "weights": torch.cat([p.detach().flatten() for p in model.parameters()]),
    }


# %% [markdown]
r"""
**Predict.** Add up parameters, gradients, optimizer state and activations. What's the ratio of the single process's
total to either rank's? ($B = 128$, $d = 128$, four blocks. The part that `ShardedAdamW` updates is counted among the
parameters. Its gradient, needed only during a step, isn't counted.)
"""

# %%
guess = None  # times

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
# as in lecture 11: not the first input, but the differences that the loss keeps
inputs_and_errors = depth * rows_at_once * width
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
reconcile("one alone", guess, times, "times as many bytes as each of two ranks")
assert round(times, 1) == 1.5

drift = max(abs(a - b) for a, b in zip(one["losses"], together[0]["losses"], strict=True))
print(
    f"loss {one['losses'][0]:.3f} at first, {one['losses'][-1]:.3f} after {STEPS} steps, in both"
)
assert one["losses"][-1] < 0.9 * one["losses"][0]
assert drift < 1e-4
assert torch.equal(together[0]["weights"], together[1]["weights"])
assert torch.allclose(together[0]["weights"], one["weights"], atol=1e-4)

# %% tags=["folded"]
# The bytes of one process alone, and of each rank
finding = f"The same training: one process alone holds {times:.1f} times as many bytes as each of two ranks"
bars = {"one alone": {kind: one[kind] for kind in kinds}}
bars |= {
    f"rank {number}": {kind: rank[kind] for kind in kinds}
    for number, rank in enumerate(together)
}
plots.show(
    plots.memory_stacks(bars, title=finding),
    alt=f"{finding}. Bars of parameters, gradients, optimizer state and activations: the ranks' activations have "
    "nearly vanished, their state is halved, their gradients are unchanged, and their parameters take 1.5 times as much.",
)

# %% [markdown]
r"""
After twenty steps, the losses agree, the weights agree up to rounding, and the two ranks agree bit for bit. The
predictions in this lecture were right as well:
"""

# %% tags=["folded"]
exact = sum(predicted == measured for _, predicted, measured in ledger)
print(
    f"{exact} of {len(ledger)} byte counts were predicted exactly; in the others, headers add at most 2%"
)

# %% [markdown]
r"""
Back to Llama 3.1 8B, with one sequence of 8,192 tokens on each of eight H100s:
"""

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
finding = "Llama 3.1 8B on eight H100s: ZeRO 3 makes it fit"
plots.show(
    plots.memory_stacks(ledgers, limits={"H100: 80 GB": card}, title=finding),
    alt=f"{finding}. Bars of the five kinds of memory on one card: plain 177 GB, the others less and less.",
)
for name, of_card in ledgers.items():
    print(f"{name:>20}: {readable(sum(of_card.values()), 'B'):>7} on each card")
sums = {name: sum(ledger.values()) for name, ledger in ledgers.items()}
assert sums["plain"] > sums["ZeRO 1"] > card > sums["ZeRO 3"]
assert sums["ZeRO 3, checkpoints"] < card / 2

# %% [markdown]
r"""
At stage 1 it still doesn't fit. At stage 3 it does, and with checkpoints more than half of each card stays free.

*Try it yourself:* pin the settings below, then move the controls. What is the longest context that fits on eight cards,
and which kind of memory is the limit then?
"""

# %%
from course_utils.explorers import memory_budget

memory_budget.explore("Llama 3.1 8B", "H100 SXM", batch=1, context=8_192, cards=8)

# %% [markdown]
r"""
## Takeaways

**Mechanics.** In an all-reduce of $S$ bytes over $n$ ranks, each rank sends $2\,\tfrac{n-1}{n}\,S$ bytes; an all-reduce
is a reduce-scatter followed by an all-gather. ZeRO divides the optimizer state, then the gradients, then the
parameters; stage 3 sends 1.5 times as many bytes as plain data parallelism. Tensor parallelism slices the first matrix
by its outputs and the second by its inputs, with one sum in each direction. A pipeline of $p$ stages and $m$
microbatches has a bubble of $\tfrac{p-1}{m+p-1}$. Expert parallelism sends every token to its experts and back.

**Mindset.** Whatever you divide, the results have to be put together again. When two processes don't get the same
result as one, look for a sum that should be a mean, or a term that was never added; when they hang, look for a rank
that never arrives.

**Intuitions.** Divide matrices where the interconnect is fast, layers where it is slow, and batches wherever each card
has enough tokens: about as many as the FLOP/s that it reaches, divided by its link's B/s. For large vectors the number
of bytes sets the time; for small ones, the number of rounds does.

Next: [13 · Inference](../13_inference/13_inference.ipynb). How fast does a trained model generate text, and what is it
waiting for?
"""

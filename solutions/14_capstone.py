# %% [markdown]
r"""
# 14 · Capstone: train a small Transformer

[← 13 · Inference](../13_inference/13_inference.ipynb)

> **Before you start a training run, can you say what it will take?**

Every lecture in this course has been about numbers that you can know in advance. Now you'll plan a training run from
beginning to end: how many parameters, how many FLOPs, how many bytes of each kind, how many seconds on *your* machine,
and what loss it has to beat. Then you'll write the model, train it on real text, and compare. The plan will be right to
the last parameter and FLOP, within two percent for memory, and, on an idle machine, within twenty percent for time. And
your model will write some Python, using your own KV cache.

The training itself takes a few minutes on a CPU with two cores.
"""

# %%
import html
import math
import os
import re
import statistics
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from einops import rearrange
from IPython.display import display
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn
from tqdm.auto import tqdm

from course_utils import checkpoint, data, hardware, plots, timing
from course_utils import device as devices
from course_utils.flops import count_flops, mfu
from course_utils.memory import track
from course_utils.napkin import Transformer as Shape
from course_utils.predict import calibration, reconcile, record
from course_utils.progress import show_progress
from course_utils.units import readable
from course_utils.testing import check

device = devices.pick_device()
print(devices.describe(device))
show_progress()

# %% [markdown]
r"""
## 1 · The task

How much do you want to spend? The notebook picks the preset that suits your device. `default` is for a CPU and takes a
few minutes. `large` is for a GPU, and `huge` is for a GPU with at least 64 GB. `small` is for testing this notebook,
and its model learns little. The environment variable `COURSE_PRESET` overrides the choice. Or unfold the next cell and
change the numbers: at least two layers, 30 steps (a multiple of 5) and 600,000 bytes.
"""


# %% tags=["folded"]
class Preset(NamedTuple):
    """A model and its training."""

    layers: int
    width: int  # d
    heads: int
    context: int  # T, tokens
    batch: int  # B, sequences
    steps: int
    peak_lr: float
    pattern: str  # which files to read
    text: int  # at most this many bytes of them
    look_back: int  # of the baseline, in bytes: see below


PRESETS = {
    "small": Preset(2, 64, 4, 64, 16, 150, 4e-3, "*.py", 1_000_000, 0),
    "default": Preset(4, 192, 6, 128, 16, 1_000, 2e-3, "*.py", 4_000_000, 2),
    "large": Preset(8, 768, 12, 512, 32, 1_000, 6e-4, "**/*.py", 32_000_000, 2),
    "huge": Preset(8, 2_048, 16, 1_024, 32, 500, 3e-4, "**/*.py", 32_000_000, 2),
}
name = "default"
if device.type == "cuda":
    name = "huge" if (devices.total_memory(device) or 0) >= 64e9 else "large"
name = os.environ.get("COURSE_PRESET") or name
if name not in PRESETS:
    raise ValueError(f"COURSE_PRESET is {name!r}; wanted one of {', '.join(PRESETS)}")
preset = PRESETS[name]
VOCABULARY = 256  # a token is a byte
tokens_per_step = preset.batch * preset.context
if name == "small" and device.type == "cpu":
    torch.set_num_threads(1)  # a second one would mostly wait
print(f"The preset {name}: {', '.join(f'{k} {v}' for k, v in preset._asdict().items())}")
print(f"{preset.steps * tokens_per_step:,} tokens, {tokens_per_step:,} in each step")

# %% [markdown]
r"""
### A text that you already have

As in lecture 09, we train on Python's own standard library, which is on every machine that can run this notebook.
(Python's license allows this.) Each byte is a token, so we need no tokenizer. Every tenth file belongs to the
validation set: the model never trains on it, so memorizing the training text doesn't help there.
"""


# %% tags=["folded"]
def read_sources(pattern: str, most: int) -> tuple[bytes, bytes]:
    """The training text, at most this many bytes, and the validation text, a tenth of that."""
    root = Path(sysconfig.get_path("stdlib"))
    elsewhere = {"site-packages", "dist-packages", "test", "tests"}
    files = sorted(p for p in root.glob(pattern) if not elsewhere & set(p.parts))
    held = b"".join(p.read_bytes() for p in files[::10])[: most // 10]
    return b"".join(p.read_bytes() for i, p in enumerate(files) if i % 10)[:most], held


scratch = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
folder = Path(scratch.name)  # gone when the notebook closes
for part, text in zip(
    ("train", "held_out"), read_sources(preset.pattern, preset.text), strict=True
):
    data.write_tokens(
        folder / f"{part}.npy", np.frombuffer(text, np.uint8), vocab_size=VOCABULARY
    )
train_tokens, held_out = (
    data.open_tokens(folder / f"{part}.npy", vocab_size=VOCABULARY)
    for part in ("train", "held_out")
)
print(f"{len(train_tokens):,} tokens to train on, {len(held_out):,} for validation")
print(bytes(held_out[:60]).decode(errors="replace"))

assert len(train_tokens) > 500_000 and len(held_out) > 50_000
assert train_tokens.dtype == np.uint8  # one byte on disk for each token

# %% [markdown]
r"""
### The baseline

A loss means little without something to compare it with. A model that knows nothing assigns each of the 256 bytes a
probability of 1/256, and has a loss of $\ln 256 = 5.55$ nats per byte. (*Nats* go with natural logarithms, as bits do
with base-2 logarithms. Divide by $\ln 2$ to get lecture 09's bits per byte.) A table of counts, known as an *n-gram
model*, does better. The simplest table records how often each byte occurs. If it looks back one byte, it records how
often each byte follows each possible byte; if it looks back two, how often each byte follows each possible *pair* of
bytes. Our baseline looks back two bytes; with the preset `small`, it's the simplest table, which doesn't look back.
Your model has to beat it on the validation set.

**Predict.** What's the validation loss of the table that looks back two bytes, in nats per byte?
"""

# %%
guess = None  # nats per byte


# %%
def table_loss(train: NDArray[np.uint8], held: NDArray[np.uint8], look_back: int) -> float:
    """Mean loss on `held`, in nats per byte, of the table of counts made from `train`."""

    def codes(ids: NDArray[np.uint8]) -> NDArray[np.int64]:
        """The previous bytes and the next one, as one number."""
        count = len(ids) - look_back
        digits = [ids[i : i + count].astype(np.int64) for i in range(look_back + 1)]
        return sum(d * 256 ** (look_back - i) for i, d in enumerate(digits))

    counts = np.bincount(codes(train), minlength=256 ** (look_back + 1)).reshape(-1, 256) + 0.1
    before, following = np.divmod(codes(held), 256)
    probabilities = counts[before, following] / counts.sum(axis=1)[before]
    return float(-np.log(probabilities).mean())


table_losses = [table_loss(train_tokens, held_out, look_back) for look_back in range(3)]
reconcile("a table that looks back two bytes", guess, table_losses[2], "nats per byte")
for look_back, loss in enumerate(table_losses):
    print(f"looking back {look_back} byte{'s' * (look_back != 1)}: {loss:.2f} nats per byte")
baseline = table_losses[preset.look_back]

assert round(math.log(256), 2) == 5.55
assert math.log(256) > table_losses[0] > table_losses[1] > table_losses[2] > 1

# %% [markdown]
r"""
(The code adds 0.1 to every count. Otherwise, a single sequence that was never seen would make the loss infinite.)

*Try it yourself, on paper:* a table that looks back three bytes would have $256^4$ counts. Given the length of your
training text, what's the largest fraction of them that can be above zero before the 0.1 is added?

## 2 · The plan

### Parameters and FLOPs

The architecture is lecture 08's Transformer with two changes: attention is a single fused operation, and the token
embedding is also the output layer. Such *tied* weights count only once as parameters, but they do cost FLOPs at the
output. For a vocabulary of $V$ tokens, context length $T$, width $d$ and $L$ layers:

| part | shapes | remarks |
|---|---|---|
| token embedding | $V \times d$ | looked up at the input, *multiplied* at the output |
| positional embedding | $T \times d$ | looked up |
| each layer: `qkv` | $d \times 3d$ | queries, keys and values together |
| each layer: `out` | $d \times d$ | |
| each layer: `up`, `down` | $d \times 4d$, $4d \times d$ | with a GELU between them |
| each layer: two LayerNorms | $2d$ each | a scale and a shift |
| at the end: a LayerNorm | $2d$ | |

None of the linear layers has a bias. For the FLOPs, lecture 06 has everything you need: each weight in a matrix product
costs 2 FLOPs per token in the forward pass and 4 in the backward pass. In addition, attention multiplies queries by
keys and attention weights by values: $2 \cdot 2 \cdot d \cdot T$ FLOPs per token in each layer in the forward pass, and
twice as many in the backward pass. (By convention, we also count the half of the scores that the mask hides, but not
the scores that a fused backward pass recomputes.) Norms, GELU and softmax aren't matrix products, so they aren't
counted.

### Exercise 14.1 · Parameters, and FLOPs per token &nbsp; ★★☆ &nbsp; essential &nbsp; 12 minutes

Write `plan_work(layers, width, context, vocabulary)`. It returns a dict with the number of `"parameters"` and the
`"FLOPs per token"` of the forward and backward pass together. Both must be exact integers.
"""


# %% nbgrader={"grade": false, "grade_id": "plan_work", "locked": false, "schema_version": 3, "solution": true, "task": false}
def plan_work(layers: int, width: int, context: int, vocabulary: int) -> dict[str, int]:
    """{"parameters": …, "FLOPs per token": …} of the Transformer in the table above."""
    ### BEGIN SOLUTION
    matrices = layers * 12 * width**2
    table = vocabulary * width
    norms = (2 * layers + 1) * 2 * width
    return {
        "parameters": matrices + table + context * width + norms,
        "FLOPs per token": 6 * (matrices + table) + 12 * layers * width * context,
    }
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_plan_work", "locked": true}
check("plan_work")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Add up one layer first: four matrices, and two norms of two vectors each. Then multiply by the number of layers, and add the rows that occur once.</details>
<details><summary>Hint 2</summary>For the FLOPs, go through the table again: which rows take part in a matrix product? The first row does, at the output. The text above gives attention's FLOPs for one layer in the forward pass.</details>

**Why it matters.** The rest of the plan builds on these two numbers: three of the four kinds of bytes follow from the
number of parameters, and a lower bound on the time follows from the FLOPs.
"""

# %%
work = plan_work(preset.layers, preset.width, preset.context, VOCABULARY)
run_flops = work["FLOPs per token"] * tokens_per_step * preset.steps
for kind, number in work.items():
    print(f"{kind:>16}: {number:,}")
print(f"{'the whole run':>16}: {readable(run_flops, 'FLOPs')}")

# %% tags=["folded"]
on_the_napkin = Shape(
    layers=preset.layers,
    width=preset.width,
    heads=preset.heads,
    vocabulary=VOCABULARY,
    positions=preset.context,
    tied=True,
)
assert work["parameters"] == on_the_napkin.parameters  # the ledger behind lecture 08's explorer
six_n = work["FLOPs per token"] / (6 * work["parameters"])
print(f"FLOPs per token are {six_n:.2f} × 6N")
assert six_n > 1  # attention adds more than the positional embedding and the norms take away

# %% [markdown]
r"""
### Bytes, by kind

We plan for mixed precision, as in lecture 10: the parameters, their gradients and AdamW's two moments stay `float32`,
and autocast converts the inputs of matrix products to `bfloat16`. So there are activations in both formats. (We plan
for `float32` throughout as well: section 4 finds out which of the two is faster on your device.) For $N = B \cdot T$
tokens (not the $N$ of $6N$) and $h$ heads, autograd keeps:

| in each layer | numbers | format under autocast |
|---|---|---|
| the inputs of the two LayerNorms | $2Nd$ | `float32` |
| their statistics, a mean and a scale for each token | $4N$ | `float32` |
| their outputs, as inputs of `qkv` and of `up` | $2Nd$ | 16 bits |
| queries, keys and values | $3Nd$ | 16 bits |
| the result of attention, which is the input of `out` | $Nd$ | 16 bits |
| attention's *log-sum-exp*, $\ln \sum_j e^{s_j}$ over a query's scores $s_j$: one number for each query and head | $Nh$ | `float32` |
| before and after GELU | $8Nd$ | 16 bits |

| once | numbers | format under autocast |
|---|---|---|
| the last LayerNorm: its input and its statistics | $Nd + 2N$ | `float32` |
| its output, as the input of the output layer | $Nd$ | 16 bits |
| the loss: all log-probabilities, and a scalar, the number of tokens averaged over | $NV + 1$ | `float32` |
| a copy of each matrix in a product, including the token embedding | $12Ld^2 + Vd$ | 16 bits |

From a query's log-sum-exp, the backward pass computes its attention weights again. The second table's last row exists
only under autocast: in `float32` the weights are used directly, without a copy. The other rows are the same in
`float32`, with 4 bytes throughout. There's no $T^2$ in either table, because we'll use fused attention, which doesn't
store the attention weights.

### Exercise 14.2 · Bytes by kind &nbsp; ★★☆ &nbsp; essential &nbsp; 15 minutes

Write `plan_bytes(parameters, layers, width, heads, context, vocabulary, batch, mixed)`. It returns a dict with the
bytes of `"parameters"`, `"gradients"`, `"optimizer state"` (AdamW's, without its step counters) and `"activations"`
(both tables, including the copies). If `mixed` is true, follow the tables; if not, everything is in `float32`. The
numbers must be exact; `parameters` needn't fit the other sizes.
"""


# %% nbgrader={"grade": false, "grade_id": "plan_bytes", "locked": false, "schema_version": 3, "solution": true, "task": false}
def plan_bytes(
    parameters: int,
    layers: int,
    width: int,
    heads: int,
    context: int,
    vocabulary: int,
    batch: int,
    mixed: bool,
) -> dict[str, int]:
    """Bytes of a training step of the Transformer above, by kind."""
    ### BEGIN SOLUTION
    tokens = batch * context
    size = 2 if mixed else 4
    layer = 4 * tokens * (2 * width + 4 + heads) + size * tokens * 14 * width
    once = 4 * (tokens * (width + 2) + tokens * vocabulary + 1) + size * tokens * width
    copies = 2 * (12 * layers * width**2 + vocabulary * width) if mixed else 0
    return {
        "parameters": 4 * parameters,
        "gradients": 4 * parameters,
        "optimizer state": 8 * parameters,
        "activations": layers * layer + once + copies,
    }
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_plan_bytes", "locked": true}
check("plan_bytes")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>In each table add up the numbers of the <code>float32</code> rows and those of the 16-bit rows; then multiply each of these sums by the bytes per number.</details>
<details><summary>Hint 2</summary>Only two things depend on <code>mixed</code>: how many bytes a number in the 16-bit rows takes, and whether there are copies. Apart from the copies, the 16-bit rows have 14 d numbers per token in each layer, and d more per token in the second table.</details>

**Why it matters.** Their sum (plus some temporaries) tells you which batch size fits, and what to change if none does.

**Predict.** Estimate from the tables: for your preset, by what factor does autocast reduce the bytes of the
*activations*, compared with `float32`?
"""

# %%
guess = None  # times

# %%
step_bytes = {
    mixed: plan_bytes(
        work["parameters"],
        preset.layers,
        preset.width,
        preset.heads,
        preset.context,
        VOCABULARY,
        preset.batch,
        mixed,
    )
    for mixed in (False, True)
}
in_float32, in_mixed = step_bytes[False], step_bytes[True]
shrinks = in_float32["activations"] / in_mixed["activations"]
reconcile("activations in float32", guess, shrinks, "times those under autocast")
for kind in in_mixed:
    both = (readable(kinds[kind], "B") for kinds in (in_float32, in_mixed))
    print("{:>16}: {:>8} in float32, {:>8} in mixed precision".format(kind, *both))

assert 1 < shrinks < 64 / 36  # a layer's vectors: 16 · 4 = 64 bytes against 2 · 4 + 14 · 2 = 36

in_all = readable(sum(in_mixed.values()), "B")
finding = f"A step needs {in_all} in mixed precision, mostly for activations"
plots.show(
    plots.memory_stacks({"float32": in_float32, "mixed": in_mixed}, title=finding),
    alt=f"{finding}. Two bars of parameters, gradients, optimizer state and activations; only the "
    "activations differ.",
)
assert in_mixed["activations"] > sum(in_mixed.values()) / 2

# %% [markdown]
r"""
Mixed precision saves memory only on activations. How much time it saves depends on your device.

### Seconds

You know how many FLOPs the run takes; now you need the rate of your device. As in lecture 05, we measure the rate of
large matrix products and call the best rate the *measured ceiling*. Here it is in both formats:
"""

# %% tags=["timed", "folded"]
# The measured ceiling, in both formats
ceilings = {
    dtype: hardware.measured_ceiling(device, dtype, max_seconds=1).flops_per_second
    for dtype in (torch.float32, torch.bfloat16)
}
for dtype, rate in ceilings.items():
    print(
        f"{str(dtype).removeprefix('torch.'):>8}: {readable(rate, 'FLOP/s')}, "
        f"at which the run takes {readable(run_flops / rate, 's')}"
    )

# %% [markdown]
r"""
The printed times are *lower bounds*. No training run reaches the ceiling: its matrices are smaller, and everything
between the matrix products takes time without counting as FLOPs. No formula gives the fraction of the ceiling that a
run reaches. In section 4 you'll measure it in a short *rehearsal*; for now, guess. (The fraction isn't the MFU, which
is relative to the data sheet's peak.)

**Predict.** What fraction of the ceiling will the training reach? (We'll train in the faster of the two formats, and
the ceiling is the one for that format.)
"""

# %%
guess_of_share = None  # of the ceiling, between 0 and 1

# %% tags=["timed"]
for share in (guess_of_share or 0.3, 1.0):
    bounds = " or ".join(
        f"{readable(run_flops / rate / share, 's')} in {str(dtype).removeprefix('torch.')}"
        for dtype, rate in ceilings.items()
    )
    print(f"at {share:.0%} of the ceiling the run takes {bounds}")

# %% [markdown]
r"""
*Try it yourself:* how long would the `large` preset take on your device, at the same fraction of the ceiling?
"""

# %% [markdown]
r"""
## 3 · The model

From ids to logits, the model is a simple sequence of steps, and you'll write most of them:

| | shape |
|---|---|
| ids | `[b, t]` |
| a vector for each token, plus one for its position | `[b, t, d]` |
| $L$ blocks: attention adds information from earlier tokens, and the feed-forward block processes it | `[b, t, d]` |
| a norm | `[b, t, d]` |
| logits: dot products with the embeddings of all $V$ tokens | `[b, t, V]` |

A token's vector, on its way from the embedding to the last norm, is the *residual stream*: each part adds its output to
the vector, and none replaces it. So gradients have a direct path back through any number of layers (lecture 07).

### Exercise 14.3 · Attention &nbsp; ★★☆ &nbsp; essential &nbsp; 10 minutes

Write the module `Attention`. It has two linear layers without bias, `qkv` (width → 3 · width) and `out` (width →
width), made by `nn.Linear`, and nothing else to train or to store. The outputs of `qkv` are, in this order, all
queries, all keys, all values; within each of these three, each head's numbers are consecutive. The heads attend
causally: a token sees itself and everything before it, in training and in evaluation. Merge the heads, and apply `out`.
The module works in whatever floating-point dtype its weights have and on whatever device they're on, and gradients
reach `x` and the weights of both layers.

`F.scaled_dot_product_attention(q, k, v, is_causal=True)` scales and masks. If its arguments have four dimensions,
`[b, h, t, e]` with $e = d / h$, then on a CPU or on CUDA, in our two formats, it's a fused operation that doesn't keep
the $T \times T$ attention weights for the backward pass. The plan of section 2 relies on this: for attention, autograd
keeps what the table lists and no more. (`rearrange` with named dimensions splits and merges without unnecessary
copies.)
"""


# %% nbgrader={"grade": false, "grade_id": "Attention", "locked": false, "schema_version": 3, "solution": true, "task": false}
class Attention(nn.Module):
    """Causal self-attention; each head has width / heads consecutive numbers."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        ### BEGIN SOLUTION
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        ### END SOLUTION

    def forward(self, x: Float[Tensor, "b t d"]) -> Float[Tensor, "b t d"]:
        """For each token, the information that its heads collect from the tokens so far."""
        ### BEGIN SOLUTION
        q, k, v = rearrange(
            self.qkv(x), "b t (three h e) -> three b h t e", three=3, h=self.heads
        )
        gathered = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(rearrange(gathered, "b h t e -> b t (h e)"))
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_Attention", "locked": true}
check("Attention")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>One <code>rearrange</code> can split the last dimension into three dimensions: the part (query, key or value), the head, and the position within the head. Which of these dimensions varies slowest? You can unpack the result into q, k, v if the part comes first.</details>
<details><summary>Hint 2</summary>After the attention the dimensions are <code>b h t e</code>. Merging undoes the split: the heads are next to each other again in the last dimension, in the same order.</details>

**Why it matters.** This is the only place in the model where tokens interact. Everything else treats each token
separately.

You know the rest of a layer from lecture 08. It normalizes `x`, applies attention, and adds the result to `x`. Then it
normalizes that sum, applies the feed-forward block, and adds the result to the sum.
"""


# %%
class Block(nn.Module):
    """One layer: adds attention of the normalized x, then the feed-forward block of the normalized sum."""

    def __init__(self, width: int, attention: nn.Module) -> None:
        super().__init__()
        self.attention = attention
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: Float[Tensor, "b t d"]) -> Float[Tensor, "b t d"]:
        """x plus what this layer adds to it."""
        x = x + self.attention(self.norm_1(x))
        return x + self.down(F.gelu(self.up(self.norm_2(x))))


# %% [markdown]
r"""
### Exercise 14.4 · The whole model &nbsp; ★★☆ &nbsp; essential &nbsp; 18 minutes

Write the model, `Transformer(vocabulary, context, width, blocks)`. It has two tables, `tokens` (the token embedding)
and `places` (the positional embedding), both `nn.Embedding`; the `blocks` that it's given (any iterable of modules: a
list, a generator), in that order; and a final `norm`, an `nn.LayerNorm`. Nothing else is trained. PyTorch has to
register the blocks, so that their parameters are called `blocks.0.…`, `blocks.1.…`, and so on. The input is ids
`[b, t]` with any $t$ from 1 up to `context`. Each token's vector, plus that of its position, goes through the blocks
and the norm. A position's logits are the dot products of the resulting vector with the vectors of *all* tokens in the
table. Gradients reach every parameter, and they reach the token table through both of its uses.

The constructor draws every matrix in the model, including the tables and whatever the blocks contain, from a normal
distribution with mean 0 and a standard deviation of 0.02; vectors, such as those of the norms, stay as they are. (With
`nn.Embedding`'s own standard deviation, 1, the first logits would be about as large as $\sqrt d$; they should be near
0, so that all bytes are about equally likely.)
"""


# %% nbgrader={"grade": false, "grade_id": "Transformer", "locked": false, "schema_version": 3, "solution": true, "task": false}
class Transformer(nn.Module):
    """Logits of the next token, at each position."""

    def __init__(
        self, vocabulary: int, context: int, width: int, blocks: Iterable[nn.Module]
    ) -> None:
        super().__init__()
        ### BEGIN SOLUTION
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.LayerNorm(width)
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.02)
        ### END SOLUTION

    def forward(self, ids: Int[Tensor, "b t"]) -> Float[Tensor, "b t vocabulary"]:
        ### BEGIN SOLUTION
        x = self.tokens(ids) + self.places.weight[: ids.shape[1]]
        return F.linear(self.norm(self.blocks(x)), self.tokens.weight)
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_Transformer", "locked": true}
check("Transformer")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>A linear layer multiplies by a weight of shape <code>[outputs, inputs]</code>, and <code>F.linear</code> does the same with any tensor of that shape: what's the shape of the table? The vectors of a sequence's positions are the first rows of the table <code>places</code>; they're added to each sequence of the batch.</details>
<details><summary>Hint 2</summary>Which containers of <code>torch.nn</code> tell PyTorch about the modules in them? Once the blocks are in one, <code>self.parameters()</code> includes theirs. A matrix has two dimensions, a vector one.</details>

**Why it matters.** That's the whole architecture, in some thirty lines. Llama has a different norm, positional
encoding, nonlinearity and output layer, and fewer heads for keys and values, but the same structure.
"""

# %% [markdown]
r"""
### The assembled model

The dashed arrows lead through one layer; the model has $L$ such layers, one after another. The top line is the residual
stream.

```mermaid
flowchart LR
  accTitle: The Transformer of the capstone
  accDescr: Token ids become vectors, to which the vectors of their positions are added. In each of L layers, attention is applied to the normalized stream and its result is added to the stream, and then the same is done with the feed-forward block. A last norm and products with the table of tokens give the logits.
  E["ids [b, t] →<br/>token + positional<br/>embedding [b, t, d]"]
  E --> P("+")
  P --> Q("+")
  Q --> S["LayerNorm → token<br/>embedding, transposed<br/>→ logits [b, t, V]"]
  E -.-> A["LayerNorm → attention<br/>(qkv, heads, out)"]
  A -.-> P
  P -.-> F["LayerNorm → up<br/>→ GELU → down"]
  F -.-> Q
```

### The model against the plan

Before you train a model, check everything that's cheap to check. Parameters and FLOPs come first. On the meta device,
counting them takes no memory (lecture 06).
"""


# %% tags=["item-83", "item-84"]
def make_model(layers: int = preset.layers) -> nn.Module:
    """A fresh model of the preset's width, on the default device."""
    blocks = (Block(preset.width, Attention(preset.width, preset.heads)) for _ in range(layers))
    return Transformer(VOCABULARY, preset.context, preset.width, blocks)


def next_token_loss(model: nn.Module, ids: Tensor, targets: Tensor) -> Tensor:
    """Mean cross-entropy of the next token, in nats."""
    return F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())


with torch.device("meta"):
    plans_only = make_model()
    ids = torch.zeros(preset.batch, preset.context, dtype=torch.int64)
counted = {
    "parameters": sum(p.numel() for p in plans_only.parameters()),
    "FLOPs per token": count_flops(lambda: next_token_loss(plans_only, ids, ids).backward())
    / ids.numel(),
}
print(plans_only.get_submodule("blocks.0"))
for kind in work:
    print(f"{kind:>16}: {work[kind]:,} planned, {counted[kind]:,.0f} counted")
assert counted == work  # exactly

# %% [markdown]
r"""
**The first loss.** Nearly all logits are near 0, so the model gives each byte about the same probability, and the loss
should be near $\ln 256$. (A logit is the dot product of $d$ normalized numbers with weights whose standard deviation is
0.02. So the variance of the logits is $\sigma^2 = 0.02^2 d$. This adds about $\sigma^2/2$ to $\ln 256$, because the
loss contains the logarithm of the softmax's denominator: for logits $z$ that vary little, the mean of $e^z$ is about
$1 + \sigma^2/2$, whose logarithm is about $\sigma^2/2$. With tied weights, the loss is usually about 0.1 lower than
that: the byte just read has a higher logit, and in source code, with its indents, a fifth of the bytes are followed by
the same byte.)

**The causal mask.** If you change a token, the logits at all earlier positions must stay the same. (In `float64`,
rounding errors stay far below $10^{-9}$; we count anything above that as a change.)
"""

# %% tags=["folded"]
torch.manual_seed(0)
model = make_model().to(device)
shuffle = torch.Generator().manual_seed(0)  # draws the batches


def next_batch(source: NDArray[np.uint8] = train_tokens) -> tuple[Tensor, Tensor]:
    """A batch of the preset's size."""
    return data.get_batch(
        source,
        batch=preset.batch,
        context=preset.context,
        generator=shuffle,
        device=device,
    )


with torch.no_grad():
    first_loss = next_token_loss(model, *next_batch()).item()
knows_nothing = math.log(256) + 0.02**2 * preset.width / 2
print(
    f"first loss {first_loss:.2f}, predicted {knows_nothing:.2f}; ln 256 = {math.log(256):.2f}"
)
assert abs(first_loss - knows_nothing) < 0.3

with torch.no_grad(), torch.device("cpu"):
    exact = make_model().double()
    ids = torch.from_numpy(train_tokens[: preset.context].astype(np.int64))[None]
    before = exact(ids)
    place = preset.context // 2
    ids[0, place] = (ids[0, place] + 1) % VOCABULARY
    changed = (exact(ids) - before).abs().amax(dim=-1)[0] > 1e-9
assert not changed[:place].any() and changed[place:].all()
print(f"changing token {place} changes the logits from {place} on, and none before")

# %% [markdown]
r"""
**Bytes.** We run one step and measure the memory after each part of it, as in lecture 08. The optimizer is PyTorch's
AdamW in its fused version, which makes no temporaries. Weight decay applies to matrices but not to vectors.
"""


# %% tags=["folded", "item-82", "item-84", "item-87"]
def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    """AdamW with the usual settings for language models."""
    groups = [
        {"params": [p for p in model.parameters() if p.dim() == 2], "weight_decay": 0.1},
        {"params": [p for p in model.parameters() if p.dim() != 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=preset.peak_lr, betas=(0.9, 0.95), fused=True)


def bytes_of_a_step(mixed: bool) -> dict[str, int]:
    """The bytes that each part of a model's first step adds to memory, by kind."""
    batch = next_batch()
    with track(device) as memory:
        model = make_model().to(device)
        held = [memory.live]
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=mixed):
            loss = next_token_loss(model, *batch)
        held.append(memory.live)
        loss.backward()
        del loss
        held.append(memory.live)
        optimizer = make_optimizer(model)
        optimizer.step()
        held.append(memory.live)
    built, forward, backward, stepped = held
    return {
        "parameters": built,
        "gradients": backward - built,
        "optimizer state": stepped - backward,
        "activations": forward - built - 4,  # without the loss itself
    }


measured_bytes = {}
for precision, kinds in step_bytes.items():
    bytes_of_a_step(precision)  # warm up: the first product on a GPU allocates a workspace
    measured_bytes[precision] = bytes_of_a_step(precision)
    print("mixed precision" if precision else "float32")
    for kind, size in kinds.items():
        found = measured_bytes[precision][kind]
        share = found / size - 1
        print(f"{kind:>16}: {size:>14,} B planned, {found:>14,} B measured, {share:+.2%}")
        if device.type != "mps":  # where a different attention operation keeps more
            assert abs(share) < 0.02
more = measured_bytes[True]["activations"] - in_mixed["activations"]
if device.type == "cpu":
    assert more >= 8 * tokens_per_step  # the targets, and whatever else your model keeps

# %% [markdown]
r"""
The plan is almost exact; it leaves out two things. AdamW has step counters, 4 bytes for each tensor. And the loss keeps
a copy of the targets, 8 bytes per token: on a CPU they're slices of longer rows, so they aren't contiguous, and
flattening copies them (lecture 03). Together, the two are far below our two percent, so we leave the plan as it is.

*Try it yourself:* what does the plan say for a batch eight times as large? Does that fit on your device?

## 4 · The loop

The loop is your `train` from lecture 09 with three changes. The forward pass and the loss run under `torch.autocast`
if `mixed` is true; `bfloat16` needs no loss scaling (lecture 10). `clip_grad_norm_` clips the gradient to a norm of at
most 1, so that one unusual batch can't ruin the run. With `error_if_nonfinite`, it also raises an error, before the
update, if the norm is NaN or infinite; this replaces the check of the loss in `train`. And the loop saves a checkpoint
at regular intervals and after the last step.
"""


# %%
def train_model(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    next_batch: Callable[[], tuple[Tensor, Tensor]],
    lr_at: Callable[[int], float],
    steps: range,
    mixed: bool,
    save: Callable[[int], None],
    every: int,
    report: Callable[[float], None] = lambda loss: None,
) -> list[float]:
    """Train for these steps, save checkpoints on the way and at the end, and return the losses."""
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        ids, targets = next_batch()
        with torch.autocast(ids.device.type, dtype=torch.bfloat16, enabled=mixed):
            loss = next_token_loss(model, ids, targets)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
        optimizer.step()
        losses.append(loss.item())
        report(losses[-1])
        if (step + 1) % every == 0 or step == steps[-1]:
            save(step + 1)
    return losses


# %% [markdown]
r"""
### The rehearsal

Only the seconds are still missing from the plan. So we rehearse: we train models with fewer layers for a few steps, and
extrapolate. A model of *one* layer takes $t(1)$ seconds per step, for that layer and everything else (embedding, output
layer, loss, batch). A model of $m = \lfloor L/2 \rfloor + 1$ layers takes longer, and the difference is the time of
$m - 1$ layers. So with all $L$ layers, a step should take

$$t(L) = t(1) + (L - 1) \cdot \frac{t(m) - t(1)}{m - 1} .$$

Why not use two layers? Because every error in $t(m) - t(1)$ is multiplied by $(L - 1) / (m - 1)$. With two layers
that's $L - 1$; with $m$, at most two. And we need the *mean* time of a step, not the median: a run pays for its slow
steps too.

We rehearse in both formats and choose the faster one. Each of these four rehearsals has a fiftieth of the run's steps,
but takes at least one second.

Five times during the run we also compute the validation loss, on 16 batches each time. Each batch takes only a forward
pass, a third of a step's FLOPs (lecture 06), so all these batches together take about as long as $5 \cdot 16 / 3
\approx 27$ steps.

**Predict.** By what factor is a step in mixed precision faster than one in `float32`? (Section 2 printed both rates for
one large product. But a step consists of more than products, and on a CPU the factor may even be below 1.)
"""

# %%
guess = None  # times


# %% tags=["timed"]
def lr_at(step: int) -> float:
    """Warm-up over the first twentieth of the run, then a cosine down to a tenth (lecture 09)."""
    warmup = preset.steps // 20
    if step < warmup:
        return preset.peak_lr * (step + 1) / warmup
    done = (step - warmup) / (preset.steps - warmup)
    return preset.peak_lr * (0.1 + 0.9 * (1 + math.cos(math.pi * done)) / 2)


def rehearse(layers: int, mixed: bool) -> float:
    """Seconds of one step of a model with this many layers."""
    model = make_model(layers).to(device)
    optimizer = make_optimizer(model)

    def one_step() -> None:
        train_model(
            model, optimizer, next_batch, lr_at, range(1), mixed, lambda _: None, preset.steps
        )

    # A fiftieth of the run or a second, whichever is more.
    measured = timing.benchmark(
        one_step, device=device, min_seconds=1.0, min_samples=preset.steps // 50
    )
    return statistics.fmean(measured.samples)


few, many = 1, preset.layers // 2 + 1
# how often the validation loss is computed, and on how many batches
LOOKS, LOOK_BATCHES = 5, 16
step_seconds = {}
for precision in (False, True):
    short, long = (rehearse(layers, precision) for layers in (few, many))
    each_layer = max(long - short, 0.0) / (many - few)
    step_seconds[precision] = short + (preset.layers - few) * each_layer
    times = [readable(seconds, "s") for seconds in (short, long, step_seconds[precision])]
    print("mixed precision" if precision else "float32", end=": ")
    print(
        f"{few} layer {times[0]}, {many} layers {times[1]} → {preset.layers} layers {times[2]}"
    )
reconcile(
    "a step in mixed precision",
    guess,
    step_seconds[False] / step_seconds[True],
    "times as fast",
)

mixed = step_seconds[True] < step_seconds[False]
ceiling = ceilings[torch.bfloat16 if mixed else torch.float32]
planned_seconds = (preset.steps + LOOKS * LOOK_BATCHES / 3) * step_seconds[mixed]
planned_share = run_flops / planned_seconds / ceiling
print(
    f"planned: {readable(planned_seconds, 's')} in {'mixed precision' if mixed else 'float32'}, "
    f"{planned_share:.0%} of the ceiling"
)

# %% [markdown]
r"""
Most likely, the speedup is smaller than for a single large product: norms, GELU, softmax and the loss aren't matrix
products, and autocast adds conversions. In a small model, or on a CPU without instructions for `bfloat16`, mixed
precision may even be slower. If so, we train in `float32`, which takes more memory; but our limit is time, not memory.

The last number printed is the planned fraction of the ceiling, which follows from the seconds (those of the validation
included). Now the plan is complete. *From here on we don't change it.*

## 5 · The run

**Predict.** What will the model's validation loss be, in nats per byte? (Compare with the tables in section 1.)
"""

# %%
guess_of_loss = None  # nats per byte

# %% [markdown]
r"""
We also interrupt the run. After two fifths of the steps the first process ends; all that's left is the file that `save`
wrote (using the course's `checkpoint`, from lecture 09). A new process, which we simulate as in lecture 09, starts from
a different seed, makes a model, loads the file and continues.
"""


# %%
def held_out_loss(model: nn.Module) -> float:
    """Mean loss on windows of the validation text, the same windows each time."""
    windows = torch.Generator().manual_seed(1)
    with torch.no_grad(), torch.autocast(device.type, dtype=torch.bfloat16, enabled=mixed):
        losses = [
            next_token_loss(
                model,
                *data.get_batch(
                    held_out,
                    batch=preset.batch,
                    context=preset.context,
                    generator=windows,
                    device=device,
                ),
            )
            for _ in range(LOOK_BATCHES)
        ]
    return torch.stack(losses).mean().item()


# %% tags=["timed"]
path = folder / "run.pt"
every = preset.steps // LOOKS
moments = (every, 3 * every, preset.steps)  # the weights after them will generate text
held_out_losses: dict[int, float] = {}
stop = 2 * every
step_flops = work["FLOPs per token"] * tokens_per_step


def process(seed: int, steps: range) -> tuple[nn.Module, list[float], float]:
    """Train for these steps, from the checkpoint unless they start at 0; return model, losses and seconds."""
    torch.manual_seed(seed)
    shuffle.manual_seed(seed)
    model = make_model().to(device)
    optimizer = make_optimizer(model)
    state: Any = {"model": model, "optimizer": optimizer, "generators": {"data": shuffle}}
    if steps.start > 0:
        assert checkpoint.load_checkpoint(path, **state) == steps.start

    def save(step: int) -> None:
        checkpoint.save_checkpoint(path, step=step, **state)
        if step in moments:
            torch.save(model.state_dict(), folder / f"weights-{step}.pt")
        found = held_out_losses[step] = held_out_loss(model)
        progress.write(f"step {step:>5,}: validation loss {found:.3f}", file=sys.stdout)

    def report(loss: float) -> None:
        progress.update()
        seconds = time.perf_counter() - began
        share = step_flops * (progress.n - steps.start) / seconds / ceiling
        text = f"loss {loss:.2f}, {share:.0%} of the ceiling (planned: {planned_share:.0%})"
        progress.set_postfix_str(text, refresh=False)

    devices.synchronize(device)
    with tqdm(total=steps.stop, initial=steps.start, unit="step", desc="training") as progress:
        began = time.perf_counter()
        losses = train_model(
            model, optimizer, next_batch, lr_at, steps, mixed, save, every, report
        )
        devices.synchronize(device)
        return model, losses, time.perf_counter() - began


_, first_losses, first_seconds = process(0, range(stop))
planned_so_far = planned_seconds * stop / preset.steps
print(f"{readable(first_seconds, 's')} so far, planned {readable(planned_so_far, 's')}")

# %% [markdown]
r"""
Now the new process takes over. A figure of the whole run follows.
"""

# %% tags=["item-86", "timed"]
model, more_losses, more_seconds = process(4_321, range(stop, preset.steps))
losses = first_losses + more_losses
run_seconds = first_seconds + more_seconds
final_loss = held_out_losses[preset.steps]
reconcile("validation loss", guess_of_loss, final_loss, "nats per byte")
print(f"the baseline: {baseline:.2f} nats per byte")
print(f"the run: {readable(run_seconds, 's')}, planned {readable(planned_seconds, 's')}")

assert len(losses) == preset.steps and sorted(held_out_losses) == [
    every * k for k in range(1, LOOKS + 1)
]
assert final_loss < baseline  # better than the table
assert final_loss < first_loss

# %% tags=["timed"]
window = preset.steps // 30
means = {
    end: statistics.fmean(losses[end - window : end])
    for end in range(window, preset.steps + 1, window)
}
assert means[window] < losses[0]
finding = f"From {losses[0]:.1f} to {final_loss:.2f} nats per byte, {1 - final_loss / baseline:.0%} below the baseline"
plots.show(
    plots.loss_curves(
        {"training": means, "validation": held_out_losses},
        {"the baseline": {window: baseline, preset.steps: baseline}},
        events={"a new process": stop},
        names=("training, validation", "a table of counts"),
        highlight=["validation"],
        ylabel="loss (nats per byte)",
        title=finding,
    ),
    alt=f"Loss against step. {finding}. The validation loss ends below the dashed baseline of {baseline:.2f}.",
)

# %% [markdown]
r"""
Your model beats the baseline. (Its loss is a mean over 16 batches of windows, the table's over the whole validation
text. The figure's title begins with the loss of the very first step; the first marker is a mean over several.)

What has the model learned? Let's have it write.

### Exercise 14.5 · Generate text with your cache &nbsp; ★★★ &nbsp; 25 minutes

The model of lecture 13 was ready for a cache. Yours isn't: it always starts at position 0, and its attention sees only
the tokens that you pass. So you'll write a second forward pass, which runs the parts of the trained model one by one,
with a cache in each layer.

Write `generate(model, heads, ids, count, pick)`. It continues each row of `ids`, `[b, t]`, by `count` tokens, one at a
time, and returns the old and new ids together, `[b, t + count]`.

- The logits at the *last* position, `[b, vocabulary]`, predict what comes next. For each new token, call `pick` once
  with these logits; it returns the next id of each row, `[b]`.
- Compute what your `Transformer` computes, from `model.tokens`, `model.places`, `model.blocks` and `model.norm`, and in
  each block from `norm_1`, `attention.qkv`, `attention.out`, `norm_2`, `up` and `down`. Call only these parts, never the
  model, a block or its attention as a whole. `heads` is the number of attention heads.
- Each token passes through each layer only once, except for the last token, which passes through none: its logits
  aren't needed. To make this possible, replace the class below with your `KVCache` from exercise 13.2, or delete it and
  keep the keys and values in some other way. The cache is on the model's device and in its floating-point dtype,
  whatever they are.

`ids` is `int64`, has at least one row and one column, and mustn't change. `count` may be 0, and $t$ + `count` − 1 is at
most the number of positions. Don't record anything for a backward pass, and leave gradient recording as you found it,
on or off.
"""


# %% nbgrader={"grade": false, "grade_id": "generate", "locked": false, "schema_version": 3, "solution": true, "task": false}
class KVCache:
    """Yours, from exercise 13.2: the keys and values of one layer."""

    def __init__(
        self,
        batch: int,
        kv_heads: int,
        capacity: int,
        size: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        ### BEGIN SOLUTION
        self.keys = torch.zeros(batch, kv_heads, capacity, size, dtype=dtype, device=device)
        self.values = torch.zeros_like(self.keys)
        self.length = 0
        ### END SOLUTION

    def attend(
        self,
        q: Float[Tensor, "b h t e"],
        k: Float[Tensor, "b kv_heads t e"],
        v: Float[Tensor, "b kv_heads t e"],
    ) -> Float[Tensor, "b h t e"]:
        """Append k and v to what is stored, and attend causally to all of it."""
        ### BEGIN SOLUTION
        start, end = self.length, self.length + q.shape[2]
        self.keys[:, :, start:end] = k
        self.values[:, :, start:end] = v
        self.length = end
        seen = torch.ones(end - start, end, dtype=torch.bool, device=q.device).tril(start)
        keys, values = self.keys[:, :, :end], self.values[:, :, :end]
        return F.scaled_dot_product_attention(q, keys, values, attn_mask=seen)
        ### END SOLUTION


def generate(
    model: Any,
    heads: int,
    ids: Int[Tensor, "b t"],
    count: int,
    pick: Callable[[Float[Tensor, "b vocabulary"]], Int[Tensor, "b"]],
) -> Int[Tensor, "b t_and_count"]:
    """ids, followed by `count` more in each row, each picked from the logits at the last position."""
    ### BEGIN SOLUTION
    table = model.tokens.weight
    sizes = len(ids), heads, ids.shape[1] + count, table.shape[1] // heads
    caches = [KVCache(*sizes, table.dtype, table.device) for _ in model.blocks]
    new, start = ids, 0
    with torch.no_grad():
        for _ in range(count):
            end = start + new.shape[1]
            x = model.tokens(new) + model.places.weight[start:end]
            for block, cache in zip(model.blocks, caches, strict=True):
                qkv = block.attention.qkv(block.norm_1(x))
                q, k, v = rearrange(qkv, "b t (three h e) -> three b h t e", three=3, h=heads)
                gathered = rearrange(cache.attend(q, k, v), "b h t e -> b t (h e)")
                x = x + block.attention.out(gathered)
                x = x + block.down(F.gelu(block.up(block.norm_2(x))))
            new = pick(F.linear(model.norm(x[:, -1]), table))[:, None]
            ids, start = torch.cat([ids, new], dim=1), end
    return ids
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_generate", "locked": true}
check("generate")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>One loop over the new tokens, as in exercise 13.3. The first pass processes the prompt, and each later one the newest column; positions begin where the cache ends. Inside this loop is another over the blocks, and each block has its own cache.</details>
<details><summary>Hint 2</summary>Copy the lines of <code>Transformer</code>, <code>Block</code> and <code>Attention</code> in the order in which they run. Two lines have to change: the rows of <code>places</code>, and the attention, which becomes <code>cache.attend(q, k, v)</code>. And the norm and the output layer need only the last position.</details>

**Why it matters.** At their core, chatbots work like this: a pass for the prompt, a small one for each new token, and a
rule that picks it. You've now written both forward passes of a Transformer, for training and for inference.

Our rule draws from the predicted probabilities with a temperature (lecture 09) of 0.7, which makes likely bytes even
more likely. The texts are printed side by side, so we cut runs of more than eight spaces to eight, and several empty
lines to one. A dot stands for a character that can't be printed.
"""


# %%
sampler = torch.Generator().manual_seed(3)


def draw(scores: Float[Tensor, "b vocabulary"], temperature: float = 0.7) -> Int[Tensor, "b"]:
    """An id for each row, drawn from the probabilities of its logits."""
    probabilities = (scores.float() / temperature).softmax(dim=-1).cpu()
    return torch.multinomial(probabilities, 1, generator=sampler)[:, 0].to(scores.device)


# %% tags=["timed", "folded"]
# Three samples at three moments of the training, side by side


def show_side_by_side(texts: dict[str, str]) -> None:
    """Show texts side by side (in a narrow window, one below the other), with at most eight spaces in a row."""
    shown = {}
    for name, text in texts.items():
        text = re.sub(r" {9,}", 8 * " ", text)
        text = "".join(c if c.isprintable() or c == "\n" else "·" for c in text)
        shown[name] = re.sub(r"\n{3,}", "\n\n", text)
    columns = "".join(
        f"<div><b>{name}</b><pre style='white-space: pre-wrap'>{html.escape(text)}</pre></div>"
        for name, text in shown.items()
    )
    style = (
        "display: grid; gap: 0 2em; grid-template-columns: repeat(auto-fit, minmax(18em, 1fr))"
    )
    plain = "\n\n".join(f"{name}\n\n{text}" for name, text in shown.items())
    display(
        {"text/html": f"<div style='{style}'>{columns}</div>", "text/plain": plain}, raw=True
    )


start = torch.tensor(
    [list(b"    def "), list(b"\n\nclass "), list(b"\nimport ")], device=device
)
count = min(preset.context + 1 - start.shape[1], 150)  # the last one needs no position
samples = {}
for step in moments:
    writer = make_model().to(device)
    writer.load_state_dict(torch.load(folder / f"weights-{step}.pt", map_location=device))
    written = generate(writer, preset.heads, start, count, draw)
    texts = (bytes(row).decode(errors="replace").strip("\n") for row in written.tolist())
    samples[f"after {step:,} steps: {held_out_losses[step]:.2f}"] = "\n─\n".join(texts)
    assert written.shape == (3, start.shape[1] + count)
show_side_by_side(samples)

# %% [markdown]
r"""
Nobody told the model what a word is, let alone an indent. All it knows is which byte tends to come next, and it learned
that in a few minutes on your own machine.

*Try it yourself:* use a temperature of 0.2, and then one of 1.5. Then try other prompts (all of the same length,
because they form one batch).

### How fast does it generate text?

As in lecture 13, the text must be the same with and without a cache. The folded code compares the two in
`float64`, where rounding errors are too small to change which byte is chosen. Then it times two passes: one over a single token, which takes
about as long as a step with the cache, and one over the whole context, which takes about as long as the last step
without a cache.
"""


# %% tags=["timed", "folded"]
def greedy(scores: Float[Tensor, "b vocabulary"]) -> Int[Tensor, "b"]:
    """The id with the largest logit, for each row."""
    return scores.argmax(dim=-1)


@torch.no_grad()
def generate_plainly(model: nn.Module, ids: Tensor, count: int) -> Tensor:
    """ids, then `count` more in each row by greedy decoding, without a cache."""
    for _ in range(count):
        ids = torch.cat([ids, greedy(model(ids)[:, -1])[:, None]], dim=1)
    return ids


def pass_seconds(tokens: int) -> float:
    """The time of a forward pass over this many tokens."""

    @torch.no_grad()
    def forward() -> Tensor:
        return model(excerpt[:, :tokens])

    return timing.benchmark(forward, device=device, min_seconds=0.3).median


new_tokens = min(preset.context // 2, 128)
excerpt = torch.from_numpy(held_out[: preset.context].astype(np.int64))[None].to(device)
prompt = excerpt[:, : preset.context - new_tokens]
exact = make_model().to(device, torch.float32 if device.type == "mps" else torch.float64)
exact.load_state_dict(model.state_dict())
with_cache = generate(exact, preset.heads, prompt, new_tokens, greedy)
assert torch.equal(with_cache, generate_plainly(exact, prompt, new_tokens))
print(
    f"with and without the cache: the same {new_tokens} bytes after a prompt of {prompt.shape[1]}"
)

one, whole = pass_seconds(1), pass_seconds(preset.context)
print(f"a pass over 1 token takes {readable(one, 's')}", end=", ")
print(f"over {preset.context} tokens {readable(whole, 's')}")

# %% [markdown]
r"""
**Predict.** The cell above printed how long the prompt is, how many bytes the model adds until the context is full, and
how long two passes take. By what factor does the cache increase the number of tokens per second?
"""

# %%
guess = None  # times

# %% tags=["timed"]
slope = (whole - one) / (preset.context - 1)  # if time grows linearly
lengths = range(prompt.shape[1], preset.context)  # of the text, before each new token
planned_rates = {
    "without": new_tokens / sum(one + slope * (length - 1) for length in lengths),
    "with": new_tokens / (one + slope * (lengths[0] - 1) + (new_tokens - 1) * one),
}
ways = {
    "without": lambda: generate_plainly(model, prompt, new_tokens),
    "with": lambda: generate(model, preset.heads, prompt, new_tokens, greedy),
}
rates = {
    way: new_tokens / timing.benchmark(write, device=device, min_samples=2).median
    for way, write in ways.items()
}
reconcile("writing with the cache", guess, rates["with"] / rates["without"], "times as fast")
for way, rate in rates.items():
    planned_rate = planned_rates[way]
    print(f"{way:>7} the cache: estimated {planned_rate:,.0f} tokens/s, measured {rate:,.0f}")
    record(f"the capstone writes {way} the cache", rate, "tokens/s")
    assert (
        1 / 500 < rate / planned_rate < 500
    )  # a machine may be busy; a wrong unit is a factor of 1,000

# %% [markdown]
r"""
Your cache adds a few small operations to each layer, so expect slightly fewer tokens per second than estimated from the
two passes, and far fewer if another program competes for the processor. In a model this small, even a pass over one
token is mostly overhead (lecture 13). The larger the model and the longer its context, the more a cache helps.

But the cache is of no use beyond the end of the context. A loop without a cache could go on by passing only the last
$T$ tokens. Each new token then shifts all the others by one position, so their keys and values change, and everything
in a cache would be out of date.

*Try it yourself:* which batch size gives the most tokens per second? (Pass `prompt.expand(n, -1)`.)

## 6 · Planned and measured

We wrote down all the numbers in the plan before the first step of the run. Here they are next to the measurements.
"""

# %% tags=["timed", "folded"]
planned = {kind: float(number) for kind, number in work.items()}
measured = {kind: float(number) for kind, number in counted.items()}
tolerances = dict.fromkeys(planned, 0.0)
for kind, size in step_bytes[mixed].items():
    planned[f"bytes of {kind}"] = size
    measured[f"bytes of {kind}"] = measured_bytes[mixed][kind]
    tolerances[f"bytes of {kind}"] = 0.02
planned["seconds"] = planned_seconds
measured["seconds"] = run_seconds
tolerances["seconds"] = 0.2

off = {k for k, plan in planned.items() if abs(measured[k] - plan) > tolerances[k] * plan}
for kind, plan in planned.items():
    digits = 2 if kind == "seconds" else 0
    print(
        f"{kind:>24}: planned {plan:>14,.{digits}f}, measured {measured[kind]:>14,.{digits}f} "
        f"({measured[kind] / plan - 1:+.1%}{', off' if kind in off else ''})"
    )

if device.type != "mps":  # see section 3
    assert off <= {"seconds"}  # nothing else depends on how busy the machine is
# A machine may be busy, and several times slower; a wrong unit is a factor of 1,000.
assert 1 / 50 < run_seconds / planned_seconds < 50

# %% [markdown]
r"""
If the run was slower than planned, another program was probably running, or the device got hot and slowed down. If it
was faster, the rehearsal was probably disturbed. Close other programs and repeat both: on an idle machine, plan and
measurement should agree within 20%. (The plan leaves out checkpoints; for `huge` they take seconds.)

### Exercise 14.6 · Discrepancies (optional) &nbsp; ★★☆ &nbsp; 15 minutes

The folded code above stops if a planned number (except the seconds) is off. A report on many runs should list what's
wrong with each, including numbers that are missing and losses that are NaN.

Write `discrepancies(planned, measured, tolerances)`. All three are dicts from names to numbers. It returns a dict of
the numbers that are off. A number is off if it differs from the plan by *more* than its tolerance, in either direction.
The tolerance is a fraction of the *planned* number: 0.02 means 2%, and 0 means exactly equal. Compare the difference
with the tolerance times the planned value, and don't divide: at a tolerance of 0.1, a measured 110 is not off if 100
was planned, although `110 / 100 - 1` is slightly more than 0.1. (The tests have no other number so close to its limit.)
A measured NaN, such as the loss of a run that diverged, is off.

The values of the dict are relative differences: −0.3 if the measured number is 30% less than planned, NaN for a NaN. A
name that was planned but not measured is off as well; its value is None. Planned numbers are positive, every planned
name has a tolerance, and numbers measured without a plan are ignored.
"""


# %% nbgrader={"grade": false, "grade_id": "discrepancies", "locked": false, "schema_version": 3, "solution": true, "task": false}
def discrepancies(
    planned: dict[str, float], measured: dict[str, float], tolerances: dict[str, float]
) -> dict[str, float | None]:
    """For each number that is off by more than its tolerance, its relative difference from the plan."""
    ### BEGIN SOLUTION
    off: dict[str, float | None] = {}
    for name, plan in planned.items():
        if name not in measured:
            off[name] = None
            continue
        difference = measured[name] - plan
        if not abs(difference) <= tolerances[name] * plan:  # `>` is False for NaN
            off[name] = difference / plan
    return off
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_discrepancies", "locked": true}
check("discrepancies")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Go through <code>planned</code>, and ask first whether the name is in <code>measured</code>.</details>
<details><summary>Hint 2</summary>A quotient is rounded; the difference of two numbers this close together isn't. And every less-than or greater-than comparison with NaN is False: should you ask whether a number is outside its tolerance, or whether it's within?</details>

**Why it matters.** A plan is only useful if you compare it with the result, and a program does that every time.

### What is off? (optional)

Your function should find what the folded code in section 6 found:
"""

# %% tags=["timed"]
judged = discrepancies(planned, measured, tolerances)
print("\n".join(f"{kind}: {by:+.1%}" for kind, by in judged.items()) or "nothing is off")
assert judged.keys() == off

# %% [markdown]
r"""
### The fraction of the ceiling

You guessed it before the model existed. What was it in the end?
"""

# %% tags=["timed"]
share = run_flops / run_seconds / ceiling
reconcile("the training reaches", guess_of_share, share, "of the ceiling")
print(
    f"{readable(run_flops / run_seconds, 'FLOP/s')} of {readable(ceiling, 'FLOP/s')}: {share:.0%}"
)
promised = hardware.peak_flops(device, torch.bfloat16 if mixed else torch.float32)
of_promised = mfu(run_flops, run_seconds, promised)
if promised is not None and of_promised is not None:
    record("the run of the capstone", of_promised, "MFU")
    print(f"MFU, relative to the peak of {readable(promised, 'FLOP/s')}: {of_promised:.1%}")
print(f"{preset.steps * tokens_per_step / run_seconds:,.0f} tokens/s")

# %% [markdown]
r"""
*Try it yourself:* run again with half the batch. Does the fraction rise or fall, and which part of a step takes as long
as before?

## 7 · A faster step (optional)

The run reached only a fraction of the ceiling. What would raise it? Here are five versions of the same training step;
each makes one more change than the version before it:

| change | what it does |
|---|---|
| `float32` | where we start |
| `tf32` | products of `float32` use tensor cores, with 10 bits of mantissa (lecture 05; only on CUDA) |
| `bfloat16` | autocast: faster products, and half the bytes for most of the tensors that pass between them (lecture 10) |
| compiled | `torch.compile` fuses the operations between the products (lecture 11; here only on CUDA) |
| twice the batch | larger products, and a smaller fraction of the time for the optimizer |

Attention has been one fused operation from the start. The code divides the rate of every step by the same number: the
peak in `bfloat16` or, if that's unknown, the higher of the two ceilings from section 2. So the fractions that it prints
are proportional to speed.

**Predict.** In tokens per second, by what factor is the fastest of these faster than plain `float32`?
"""

# %%
guess = None  # times


# %% tags=["timed"]
from course_utils.facts import FACTS


class Rung(NamedTuple):
    """The settings of a training step."""

    precision: str  # of float32 products, for torch.set_float32_matmul_precision
    mixed: bool
    compiled: bool
    batches: int  # the preset's batch, times this


rungs = {"float32": Rung("highest", False, False, 1)}
if device.type == "cuda":
    rungs["tf32"] = Rung("high", False, False, 1)
rungs["bfloat16"] = Rung("high", True, False, 1)
if device.type == "cuda":
    rungs["compiled"] = Rung("high", True, True, 1)
rungs["twice the batch"] = rungs[list(rungs)[-1]]._replace(batches=2)
promised = hardware.peak_flops(device, torch.bfloat16)
top = promised or max(ceilings.values())


def share_of(rung: Rung) -> float:
    """The fraction of the top rate that a step reaches."""
    torch.set_float32_matmul_precision(rung.precision)
    model = make_model().to(device)
    optimizer = make_optimizer(model)
    if rung.compiled:
        model.compile(dynamic=False)
    batches = [next_batch() for _ in range(rung.batches)]
    ids, targets = (torch.cat(parts) for parts in zip(*batches, strict=True))

    def one_step() -> None:
        train_model(
            model,
            optimizer,
            lambda: (ids, targets),
            lr_at,
            range(1),
            rung.mixed,
            lambda _: None,
            1,
        )

    taken = timing.benchmark(one_step, device=device, min_seconds=1.0, min_samples=5)
    return work["FLOPs per token"] * ids.numel() / taken.median / top


shares = {}
for rung_name, rung in rungs.items():
    try:
        shares[rung_name] = share_of(rung)
    except (torch.OutOfMemoryError, torch._dynamo.exc.TorchDynamoException) as error:
        print(f"{rung_name}: not on this machine ({str(error).strip().splitlines()[0]})")
        continue
    print(f"{rung_name:>15}: {shares[rung_name]:.1%}")
    if promised is not None:
        record(f"training step of the capstone, {rung_name}", shares[rung_name], "MFU")
torch.set_float32_matmul_precision("highest")

peaks = {
    card: FACTS[f"{card} bfloat16 peak"].value / FACTS[f"{card} float32 peak"].value
    for card in ("A100 SXM 80GB", "H100 SXM", "B200")
}
assert min(peaks.values()) > 10
first, best = shares["float32"], max(shares.values())
reconcile("the fastest step", guess, best / first, "times as fast as in float32")
if promised is not None:
    record("training step of the capstone, at its best", best, "MFU")

# %% tags=["timed", "folded"]
of_what = "bfloat16 peak" if promised else "measured ceiling"
finding = f"A training step, from {first:.1%} to {best:.1%} of the {of_what}"
if best == first:
    finding = f"Nothing is faster here than plain float32: {first:.1%} of the {of_what}"
finding = timing.conclusion(
    finding,
    {
        f"no step is above the {of_what}": best <= 1.1,
        "twice the batch is at most 1.4 times as slow per token": shares.get(
            "twice the batch", best
        )
        > 0.7 * shares.get("bfloat16", 0.0),
    },
)
plots.show(
    plots.mfu_ladder(shares, title=finding, of=of_what),
    alt=f"{finding}, with one change after another.",
)

# %% [markdown]
r"""
We didn't change a single line of the model. On an A100, an H100 or a B200, the peak in `bfloat16` is more than ten
times the peak in `float32` (lecture 05). How much of that factor you get depends on the width: the work that can be
fused grows with $d$, and the work of the matrix products grows with $d^2$. On a CPU, a step in `bfloat16` may be slower
than one in `float32` even where the ceiling of `bfloat16` is higher. There, all fractions are relative to the higher of
the two ceilings. If that's the ceiling of `bfloat16`, even a good step in `float32` reaches only a small fraction of
it.

*Try it yourself:* which of the fractions fall if you halve the width, and which don't?

## 8 · The answer

Before you start a training run, can you say what it will take? Here's the plan next to the measurements, in one figure:
"""

# %% tags=["timed", "folded"]
units = {"parameters": "parameters", "FLOPs per token": "FLOPs", "seconds": "s"}
rows = [(kind, plan, measured[kind], units.get(kind, "B")) for kind, plan in planned.items()]
rows.append(("validation loss", baseline, final_loss, "nats per byte"))
exactly = sum(measured[kind] == planned[kind] for kind in planned)
in_time = timing.conclusion(
    f"Time: {run_seconds / planned_seconds - 1:+.0%}",
    {"the time is within 20% of the plan": "seconds" not in off},
)
finding = (
    f"A Transformer, planned and trained: {exactly} of {len(planned)} numbers right to the last digit, "
    f"the loss {1 - final_loss / baseline:.0%} below the baseline. {in_time}"
)
plots.show(
    plots.predicted_vs_measured(rows, others={"nats per byte": "baseline"}, title=finding),
    alt=f"{finding}. Parameters, FLOPs per token, four kinds of bytes and seconds, predicted and "
    "measured, and the validation loss beside the baseline.",
)

# %% [markdown]
r"""
So yes, you can: parameters, FLOPs and bytes on paper, and the seconds after a short rehearsal. The one thing that the
plan doesn't tell you is how low the loss will be. Scaling laws, which you met in lecture 00, predict even that, by
extrapolating from many small runs to a large one (Kaplan and others, 2020, arXiv:2001.08361, and Hoffmann and others,
2022, arXiv:2203.15556).

*Try it yourself:* halve the width and double the number of layers. Plan first: which of the numbers change, and by how
much? Then run from the top.

## How well do you guess?

For the last time, here are all the numbers that you've written into *predict* cells in this course, next to the
results. Have you gotten better?
"""

# %% tags=["timed"]
calibration()

# %% [markdown]
r"""
## Takeaways

**Mechanics.** Parameters: $12Ld^2 + Vd + Td$ plus some norms. FLOPs per token: 6 for each weight in a matrix product,
plus $12LdT$ for attention. Bytes: 16 per parameter in `float32` or under autocast, plus the activations, which you add
up from a table of what each operation keeps. Seconds: time two models with fewer layers, extrapolate to all layers, and
multiply by the number of steps. FLOPs divided by the ceiling give only a lower bound.

**Mindset.** Write the number down first. Before you pay for a run, check what's cheap to check: shapes on the meta
device, the first loss, the causal mask, the bytes of one step. Compare the loss with a baseline. Give each number in
the plan a tolerance. If a measurement is further off, either the plan or the program is wrong, and you'll learn
something.

**Intuitions.** In a step with a batch like ours, activations take more bytes than everything else together. The run
reaches only a fraction of the ceiling, and you have to measure how large a fraction.

## What to do next (optional)

You now have the tools to plan projects of your own and to check the plans. Here are four, which take between an evening
and a month:

- *Make it a Llama.* Replace LayerNorm with RMSNorm, the positional embedding with rotary embeddings, and the
  feed-forward block with a gated one, which multiplies the outputs of two matrices elementwise before `down`. Let heads
  share keys and values. (Lecture 06 has a layer with all of these except the rotary embeddings.) Predict the new
  parameters, FLOPs and bytes, then assert them.
- *Find a scaling law.* Train three or four sizes, each on 20 tokens per parameter, and plot the validation loss against
  FLOPs on logarithmic axes. Predict the loss of the next size before you train it.
- *Check somebody's claim.* Take a training run from a paper or a model card, compute its implied MFU (lecture 00), and
  find out which number the authors left out.
- *Train a model of your own.* Choose your own text, save it with `write_tokens`, decide what you can afford, and commit
  to the plan.

That's the end of the course. You started with a napkin, and you end with a model that you planned, wrote and trained,
and that you understand: every byte, every FLOP.
"""

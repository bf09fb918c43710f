# %% [markdown]
r"""
# 14 · Capstone: train a small Transformer

[← 12 · Scale](../12_scale/12_scale.ipynb)

> **Can you say what a training will take, before you start it?**

Twelve lectures, and all of them were about one thing: numbers that can be known in advance. Now you plan a training from
beginning to end: how many parameters, how many FLOPs, how many bytes of each kind, how many seconds on *your* machine, and
how good it has to become. Then you write the model, train it on real text, and hold what came out beside the plan. By the
end you will have shown it in one figure: parameters and FLOPs to the last one, memory within two percent, and time
within twenty. And the model will write you some Python.

How to read: run the cells in order (<kbd>Shift</kbd> + <kbd>Enter</kbd>). Where a cell says *predict*, write your
number first; being wrong is how you find out what to look at. The cell below each exercise checks your answer and names
the likely mistake; *Validate* in the toolbar runs them all. The training itself takes a few minutes on a CPU with two
cores.
"""

# %%
import itertools
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
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from einops import rearrange
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
## 1 · What is to be done

A decision comes first: how much do we want to spend? Here are four sizes. `default` is for a CPU with two cores, and
takes a few minutes; `large` is for a GPU, and `huge` for one with 64 GB or more; `small` is for testing this notebook, and
learns little. The environment variable `COURSE_PRESET` chooses another one than your device would get. Or change a number:
everything below follows.
"""


# %%
class Preset(NamedTuple):
    """A model and its training."""

    layers: int
    width: int  # d
    heads: int
    context: int  # T, tokens
    batch: int  # B, sequences
    steps: int
    peak_lr: float
    pattern: str  # of the files to read
    text: int  # at most so many bytes of them
    look_back: int  # the bar, see below


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
print(f"{name}: {preset}")
print(f"{preset.steps * tokens_per_step:,} tokens, {tokens_per_step:,} in each step")

# %% [markdown]
r"""
### A text that you have already

Lecture 09 trained on Python's own standard library, whose sources lie on every machine that can run this notebook, under
the license of Python itself (the PSF license, which allows it). Each byte is a token, so no tokenizer is needed. Every
tenth file is **held out**: the model never trains on it. What it has learned by heart does not help it there.
"""


# %%
def read_sources(pattern: str, most: int) -> tuple[bytes, bytes]:
    """The text to train on, at most so many bytes of it, and the text held out, a tenth of that."""
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
print(f"{len(train_tokens):,} tokens to train on, {len(held_out):,} held out")
print(bytes(held_out[:60]).decode(errors="replace"))

assert len(train_tokens) > 500_000 and len(held_out) > 50_000
assert train_tokens.dtype == np.uint8  # one byte on disk for each token

# %% [markdown]
r"""
### The bar

A loss means little without something to compare it with. Who knows nothing gives each of 256 bytes the same chance, and
has a loss of $\ln 256 = 5.55$ nats per byte. Who has counted how often each byte occurs does better. And so on: count
which byte follows which, or follows each *pair* of bytes. Such a table needs no training, only counting, and is hard to
beat with a few bytes of context. Our bar is the table that looks back as far as `preset.look_back` says: none, or two
bytes. The model has to be better than that, on the text held out.

**Predict.** What is the loss of the table that looks back two bytes, in nats per byte?
"""

# %%
guess = None  # nats per byte


# %%
def table_loss(train: NDArray[np.uint8], held: NDArray[np.uint8], look_back: int) -> float:
    """Mean loss, in nats per byte, of predicting from how often each byte followed the last few."""

    def codes(ids: NDArray[np.uint8]) -> NDArray[np.int64]:
        """The bytes looked back on and the next, as one number."""
        count = len(ids) - look_back
        digits = [ids[i : i + count].astype(np.int64) for i in range(look_back + 1)]
        return sum(d * 256 ** (look_back - i) for i, d in enumerate(digits))

    counts = np.bincount(codes(train), minlength=256 ** (look_back + 1)).reshape(-1, 256) + 0.1
    before, following = np.divmod(codes(held), 256)
    chances = counts[before, following] / counts.sum(axis=1)[before]
    return float(-np.log(chances).mean())


table_losses = [table_loss(train_tokens, held_out, look_back) for look_back in range(3)]
reconcile("a table that looks back two bytes", guess, table_losses[2], "nats per byte")
for look_back, loss in enumerate(table_losses):
    print(f"looking back {look_back} bytes: {loss:.2f} nats per byte")
bar = table_losses[preset.look_back]

assert round(math.log(256), 2) == 5.55
assert math.log(256) > table_losses[0] > table_losses[1] > table_losses[2] > 1

# %% [markdown]
r"""
(The 0.1 stands for what was never seen: without it the loss of one surprise would be infinite.)

*Try it yourself:* look back three bytes. The table has $256^4$ numbers then; how many bytes are that?

## 2 · The plan

### Parameters and FLOPs

The model is the Transformer of lecture 08, with one change: the table of tokens is also the head (the two are *tied*),
so it is counted once, and it does multiply. For $V$ tokens, context $T$, width $d$ and $L$ layers:

| part | shapes | remarks |
|---|---|---|
| table of tokens | $V \times d$ | looked up at the bottom, *multiplied* at the top |
| table of places | $T \times d$ | looked up |
| each layer: `qkv` | $d \times 3d$ | queries, keys and values at once |
| each layer: `out` | $d \times d$ | |
| each layer: `up`, `down` | $d \times 4d$, $4d \times d$ | GELU in between |
| each layer: two LayerNorms | $2d$ each | a scale and a shift |
| at the end: a LayerNorm | $2d$ | |

None of the matrices has a bias. For the FLOPs, lecture 06 has all you need: a weight that multiplies costs 2 FLOPs for
each token forward and 4 backward. And attention multiplies what has no weights: queries with keys and chances with
values, $2 \cdot 2 \cdot d \cdot T$ FLOPs for each token and layer, forward; twice as many backward. (By convention the
half that the mask hides is counted in full.) Norms, GELU and softmax are elementwise, and are not counted.

### Exercise 14.1 · Parameters, and FLOPs per token &nbsp; ★★☆ &nbsp; 15 minutes

Write `plan_work(layers, width, context, vocabulary)`: a dict with the number of `"parameters"`, and with `"FLOPs per
token"`, those of forward and backward pass together. Both are whole numbers, and exact.
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
<details><summary>Hint 1</summary>Add up one layer first: four matrices, and two norms of two vectors each. Then multiply by the layers, and add the rows that occur once.</details>
<details><summary>Hint 2</summary>For the FLOPs go through the table again, and ask of each row whether it multiplies; the first row does, at the top. The text above has attention's FLOPs for one layer, forward.</details>

**Why it matters.** These two numbers decide the rest: bytes follow from the first, seconds from the second.
"""

# %%
work = plan_work(preset.layers, preset.width, preset.context, VOCABULARY)
run_flops = work["FLOPs per token"] * tokens_per_step * preset.steps
for kind, number in work.items():
    print(f"{kind:>16}: {number:,}")
print(f"{'the whole run':>16}: {readable(run_flops, 'FLOPs')}")

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
assert six_n > 1  # what attention adds is more than places and norms take away

# %% [markdown]
r"""
### Bytes, by kind

We train in mixed precision, as in lecture 10: the parameters, their gradients and AdamW's two averages stay `float32`,
and autocast turns what is multiplied into `bfloat16`. The activations are then of both kinds. For $N = B \cdot T$ tokens
and $h$ heads, autograd keeps:

| in each layer | numbers | format under autocast |
|---|---|---|
| the inputs of the two LayerNorms: the sums that run through the model | $2Nd$ | `float32` |
| their statistics, a mean and a scale for each token | $4N$ | `float32` |
| their outputs, as inputs of `qkv` and of `up` | $2Nd$ | 16 bits |
| queries, keys and values | $3Nd$ | 16 bits |
| the result of attention, which is the input of `out` | $Nd$ | 16 bits |
| from attention, one number for each query and head | $Nh$ | `float32` |
| before and after GELU | $8Nd$ | 16 bits |

| once | numbers | format under autocast |
|---|---|---|
| the last LayerNorm: its input, and its statistics | $Nd + 2N$ | `float32` |
| its output, as the input of the head | $Nd$ | 16 bits |
| the loss: the logarithms of all chances, and one number more | $NV + 1$ | `float32` |
| a copy of each matrix that multiplies, the table included | $12Ld^2 + Vd$ | 16 bits |

The last row is what autocast *adds*: in `float32` the weights themselves are there anyway, and no copy is made. The
other rows are the same in `float32`, with 4 bytes throughout. There is no $T^2$ in either: attention will be one fused
operation that never writes its weights down.

### Exercise 14.2 · Bytes by kind &nbsp; ★★☆ &nbsp; 15 minutes

Write `plan_bytes(parameters, layers, width, heads, context, vocabulary, batch, mixed)`: a dict with the bytes of
`"parameters"`, `"gradients"`, `"optimizer state"` (AdamW's; leave out its counters of steps) and `"activations"` (both
tables, the copies included). If `mixed` is true, as in the tables; if not, all in `float32`. The bytes are exact.
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
<details><summary>Hint 1</summary>In each table add up the numbers of the <code>float32</code> rows and those of the 16-bit rows; then multiply each of these sums by its bytes.</details>
<details><summary>Hint 2</summary>Only two things depend on <code>mixed</code>: how many bytes a number in the 16-bit rows has, and whether there are copies. What is in 16 bits is 14 d numbers for each token in a layer, and d once.</details>

**Why it matters.** This decides which batch fits. And it says what to change where none does.

**Predict.** By which factor do the *activations* shrink under autocast, for your preset? (Below 1: they grow.)
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
reconcile("activations under autocast", guess, shrinks, "times smaller")
for kind in in_mixed:
    both = (readable(kinds[kind], "B") for kinds in (in_float32, in_mixed))
    print("{:>16}: {:>8} in float32, {:>8} in mixed precision".format(kind, *both))

assert 1 < shrinks < 64 / 36  # a layer's vectors: 16 · 4 = 64 bytes against 2 · 4 + 14 · 2 = 36

in_all = readable(sum(in_mixed.values()), "B")
finding = f"What a step holds: {in_all} in mixed precision, mostly activations"
plots.show(
    plots.memory_stacks({"float32": in_float32, "mixed": in_mixed}, title=finding),
    alt=f"{finding}. Two bars of parameters, gradients, optimizer state and activations; only the "
    "activations differ.",
)
assert in_mixed["activations"] > sum(in_mixed.values()) / 2

# %% [markdown]
r"""
That is what mixed precision brings in memory: less than half is saved, and only of the activations. What it brings in
time depends on your device.

### Seconds

The run has a number of FLOPs, your device a rate. Lecture 05 showed how to measure the rate: multiply large matrices, and
call the best that they reach a *measured ceiling*. In both formats:
"""

# %% tags=["timed"]
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
These times are *lower bounds*. No training runs at the ceiling: its matrices are smaller, and between the products there
is all that counts no FLOPs and takes time. Which share of the ceiling is reached is the MFU of the run (measured
against a ceiling instead of a promised peak), and it is the one number of the plan that no formula gives. Guess it now.
In section 4 a rehearsal will tell, and will also choose between the two formats.

**Predict.** Which share of the ceiling will the training reach?
"""

# %%
guess_of_share = None  # of the ceiling, between 0 and 1

# %% tags=["timed"]
for share in (guess_of_share or 0.3, 1.0):
    bounds = " or ".join(readable(run_flops / rate / share, "s") for rate in ceilings.values())
    print(f"at {share:.0%} of the ceiling the run takes {bounds}")

# %% [markdown]
r"""
*Try it yourself:* how long would the `large` preset take on your device, at the same share?
"""

# %% [markdown]
r"""
## 3 · The model

From ids to scores it is one straight road, of which you now write each part:

| | shape |
|---|---|
| ids | `[b, t]` |
| a vector for each token, plus one for its place | `[b, t, d]` |
| $L$ blocks: attention adds what a token finds in earlier ones, the feed-forward part what it makes of that | `[b, t, d]` |
| a norm | `[b, t, d]` |
| scores: products with the vectors of all tokens | `[b, t, V]` |

Between the blocks runs one sum for each token, the **residual stream**: nothing on the road replaces it, everything adds
to it. So gradients have a straight way down, past any number of layers; lecture 07 showed what happens without.

### Exercise 14.3 · Attention &nbsp; ★★☆ &nbsp; 15 minutes

Write the module `Attention`. It has two linear layers without bias, `qkv` (width → 3 · width) and `out` (width → width),
made by `nn.Linear`, and nothing else to train or to store. The outputs of `qkv` are, in this order, all queries, all
keys, all values; in each of these three a head is a run of neighboring numbers. Let the heads attend, causally: a
token sees itself and what came before, in training as in evaluation. Merge the heads, and multiply by `out`. It works in
any floating-point dtype and on any device, those of its weights, and lets gradients through to both weights and to `x`.

`F.scaled_dot_product_attention(q, k, v, is_causal=True)` scales and masks; and given four dimensions, `[b, h, t, e]`, it
is one fused operation that keeps no $T \times T$ weights for the backward pass. The plan of section 2 counts on that:
autograd keeps what its table says, and no more. (`rearrange` with named dimensions splits and merges without a copy too
many.)
"""


# %% nbgrader={"grade": false, "grade_id": "Attention", "locked": false, "schema_version": 3, "solution": true, "task": false}
class Attention(nn.Module):
    """Causal self-attention with heads of width / heads neighboring numbers each."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        ### BEGIN SOLUTION
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        ### END SOLUTION

    def forward(self, x: Float[Tensor, "b t d"]) -> Float[Tensor, "b t d"]:
        """For each token what its heads gathered from the tokens so far."""
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
<details><summary>Hint 1</summary>One <code>rearrange</code> can split the last dimension into three: which of the three parts, which head, which number of it. Which of them runs slowest? What it returns can be unpacked into q, k, v if the part comes first.</details>
<details><summary>Hint 2</summary>After the attention the dimensions are <code>b h t e</code>. Merging is the way back: the heads side by side again in the last dimension, in the order in which they were split.</details>

**Why it matters.** It is the only place in the model where tokens meet. Everything else treats each by itself.

The rest of a layer you know from lecture 08. To `x` it adds the attention of the normed `x`; to that sum it adds what `down`
makes of the GELU of `up` of the normed sum. `up` makes four times as many numbers of a token's $d$, and `down` brings them
back.
"""


# %%
class Block(nn.Module):
    """One layer: attention, then a feed-forward part, each of the normed input and added to it."""

    def __init__(self, width: int, attention: nn.Module) -> None:
        super().__init__()
        self.attention = attention
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: Float[Tensor, "b t d"]) -> Float[Tensor, "b t d"]:
        """x, with what this layer adds to it."""
        x = x + self.attention(self.norm_1(x))
        return x + self.down(F.gelu(self.up(self.norm_2(x))))


# %% [markdown]
r"""
### Exercise 14.4 · The whole &nbsp; ★★☆ &nbsp; 20 minutes

Write the model, `Transformer(vocabulary, context, width, blocks)`. It has the two tables `tokens` and `places`
(`nn.Embedding`), the `blocks` that it is given (any iterable of modules: a list, a generator), in that order, and a last
`norm`, an `nn.LayerNorm`; nothing else is trained. PyTorch has to find the blocks: their parameters are called
`blocks.0.…`, `blocks.1.…`, and so on. Its input is ids `[b, t]` with any $t$ from 1 up to `context`. Each token's vector,
plus that of its place, goes through the blocks and the norm; the result for each token is its products with the vectors of
*all* tokens in the table: one score for each. Gradients reach every parameter, and the table of tokens by both of its uses.

When the model is made, it draws every matrix in it, tables and whatever the blocks have included, from a normal distribution
with mean 0 and a standard deviation of 0.02; vectors, as those of the norms, stay as they are. (With `nn.Embedding`'s own 1,
the first scores would be of the size of $\sqrt d$; they should be about 0, all bytes alike.)
"""


# %% nbgrader={"grade": false, "grade_id": "Transformer", "locked": false, "schema_version": 3, "solution": true, "task": false}
class Transformer(nn.Module):
    """Scores for the next token, at each position."""

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
<details><summary>Hint 1</summary>A linear layer multiplies by a weight of shape <code>[outputs, inputs]</code>, and so does <code>F.linear</code> by any tensor of that shape: which shape has the table? The places of a sequence are the first rows of their table; they are added to each sequence of the batch.</details>
<details><summary>Hint 2</summary>Which containers of <code>torch.nn</code> tell PyTorch about the modules in them? Once the blocks are in one, <code>self.parameters()</code> has theirs too; a matrix has two dimensions, a vector one.</details>

**Why it matters.** That is the whole architecture, in some thirty lines. Llama differs in the norm, the places, the
nonlinearity, the head, and the number of heads for keys; the frame is this one.
"""

# %% [markdown]
r"""
### The assembled model

This is what you have put together. The dashed part is one layer; there are $L$ of them, one after the other. Follow the top
line and you see the residual stream: nothing ever replaces it, every part adds to it.

```mermaid
flowchart LR
  accTitle: The Transformer of the capstone
  accDescr: Token ids become vectors, to which the vectors of their positions are added. In each of L layers attention of the normed stream is added to the stream, and then the feed-forward block of the normed stream. A last norm and products with the table of tokens give the logits.
  I["ids<br/>[b, t]"] --> E["token + positional<br/>embedding<br/>[b, t, d]"]
  E --> P("+")
  P --> Q("+")
  Q --> N["LayerNorm"]
  N --> H["token embedding,<br/>transposed<br/>[d, V]"]
  H --> S["logits<br/>[b, t, V]"]
  E -.-> A["LayerNorm → attention<br/>(qkv, heads, out)"]
  A -.-> P
  P -.-> F["LayerNorm → up<br/>→ GELU → down"]
  F -.-> Q
```

### The model against the plan

Before a model is trained it is checked, with everything that is cheap. Parameters and FLOPs first. Neither needs
a single number in memory: on the meta device tensors have shapes and nothing else (lecture 05).
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
print(plans_only)
for kind in work:
    print(f"{kind:>16}: {work[kind]:,} planned, {counted[kind]:,.0f} counted")
assert counted == work  # to the last one

# %% [markdown]
r"""
**The first loss.** All scores are near 0, so the model gives each byte about the same chance. (A score is a product of $d$
normed numbers with weights of std 0.02: its variance is $0.02^2 d$, and half of that comes on top of the loss.) **The
future.** Change a token: nothing before it may change. (`float64`, so that equal means equal.)
"""

# %%
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
print(f"token {place} changed: so did the scores from {place} on, and none before")

# %% [markdown]
r"""
**Bytes.** One step, and memory is asked after each part of it, as in lecture 08. The optimizer is PyTorch's AdamW in its
fused form, which makes no temporaries. Matrices decay, vectors do not.

**Predict.** The activations were planned from two tables. By how many percent will they be off, in mixed precision?
"""

# %%
guess = None  # %


# %% tags=["item-82", "item-84", "item-87"]
def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    """AdamW with the usual settings for language models."""
    groups = [
        {"params": [p for p in model.parameters() if p.dim() == 2], "weight_decay": 0.1},
        {"params": [p for p in model.parameters() if p.dim() != 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=preset.peak_lr, betas=(0.9, 0.95), fused=True)


def bytes_of_a_step(mixed: bool) -> dict[str, int]:
    """What appears in memory in each part of a model's first step, by kind."""
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
    bytes_of_a_step(precision)  # warm up: the first product on a GPU takes memory for itself
    measured_bytes[precision] = bytes_of_a_step(precision)
    print("mixed precision" if precision else "float32")
    for kind, size in kinds.items():
        found = measured_bytes[precision][kind]
        share = found / size - 1
        print(f"{kind:>16}: {size:>14,} B planned, {found:>14,} B measured, {share:+.2%}")
        if device.type != "mps":  # where attention is another operation, which keeps more
            assert abs(share) < 0.02
more = measured_bytes[True]["activations"] - in_mixed["activations"]
reconcile("activations, off by", guess, 100 * abs(more) / in_mixed["activations"], "%")
print(f"{more / tokens_per_step:g} B more for each token")

if device.type == "cpu":
    assert more == 8 * tokens_per_step

# %% [markdown]
r"""
Almost to the byte. AdamW has its counters of steps, 4 bytes for each tensor. And the activations are more than planned by
8 bytes for each token: those are the *targets*. A batch is cut from longer rows, so that to flatten the targets copies
them, as `int64`, and the loss keeps the copy. No table had a row for that; a comparison to the byte found it. It is
far below our two percent, so we leave the plan as it is: it was written before.

*Try it yourself:* what does the plan say for a batch eight times as large? Does that fit your device?

## 4 · The loop

The loop is that of 9.4, and four lines more. The forward pass and the loss stand under `torch.autocast`, where `mixed` is
true; `bfloat16` needs no loss scale (lecture 10). `clip_grad_norm_` shrinks all gradients together where their common norm is
more than 1: one strange batch must not throw the run. And every so often, and after the last step in any case, it saves.
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
    """Train for these steps, save on the way and at the end, and return the losses."""
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        ids, targets = next_batch()
        with torch.autocast(ids.device.type, dtype=torch.bfloat16, enabled=mixed):
            loss = next_token_loss(model, ids, targets)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        report(losses[-1])
        if (step + 1) % every == 0 or step == steps[-1]:
            save(step + 1)
    return losses


# %% [markdown]
r"""
It would train a model of any size. What large runs add is speed, and more machines.
"""

# %% [markdown]
r"""
### The rehearsal

What is still missing in the plan is the share of the ceiling. So rehearse: train a model of *one* layer for a few steps,
and one of $m$ layers, a little more than half of the real one's $L$. What the second takes longer is what $m - 1$ layers
take, and everything else (tables, head, loss, batch) is in the first. From there to $L$ layers is a line:

$$t(L) = t(1) + (L - 1) \cdot \frac{t(m) - t(1)}{m - 1}$$

Why not two layers? Every error in $t(m) - t(1)$ is multiplied by $(L - 1) / (m - 1)$: with two that is $L - 1$, here less
than two. And the step that counts is the *mean*, not the median: a run pays for its slow steps too.

The rehearsal takes seconds, whatever the run will take. It is done in both formats, and the faster one is taken: what
mixed precision brings *here* is another question than what it brings to one large product.

One thing more is on the clock. Five times the run stops to look at the text held out, 16 batches each time, forward only:
a third of a step's FLOPs each (lecture 06), so $5 \cdot 16 / 3 \approx 27$ steps.

**Predict.** How many times as fast as in `float32` is a step in mixed precision? (For one large product section 2 has it.)
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
    """Seconds of one step of a model with so many layers."""
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
LOOKS, LOOK_BATCHES = 5, 16  # how often the run looks at the text held out, and at how much
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
reconcile("mixed precision, in steps", guess, step_seconds[False] / step_seconds[True], "times")

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
Less than the products alone would promise, most likely: norms, GELU, softmax and the loss are not multiplications, and
autocast adds conversions. The smaller the model, the more they weigh; in a small one, or on a CPU without instructions
for `bfloat16`, mixed precision may even lose. Then we train in `float32`. The memory would be less; but here time is
short, and memory is not.

Now the plan is complete. **Commit to it: nothing above is changed from here on.**

## 5 · The run

One more number to guess before you start it.

**Predict.** Which loss will the model have on the text held out, in nats per byte? (The tables of section 1: above.)
"""

# %%
guess_of_loss = None  # nats per byte

# %% [markdown]
r"""
And it is stopped on the way. After two fifths of the steps the first process ends; all that is left is the file that
`save` wrote (with the course's careful `checkpoint`, of lecture 09). A new process, with another seed, makes a model,
loads, and goes on. In it is everything that the next step depends on: weights, averages, the step, the state of the
generator that draws the batches.
"""


# %% tags=["timed"]
def held_out_loss(model: nn.Module) -> float:
    """Mean loss on windows of the text held out, the same windows each time."""
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


path = folder / "run.pt"
moments = (every := preset.steps // LOOKS, 3 * every, preset.steps)  # at which it will show what it writes
held_out_losses: dict[int, float] = {}
stop = 2 * every
step_flops = work["FLOPs per token"] * tokens_per_step


def process(seed: int, steps: range) -> tuple[nn.Module, list[float], float]:
    """Train for these steps, after the first from the checkpoint: model, losses, seconds."""
    torch.manual_seed(seed)
    shuffle.manual_seed(seed)
    model = make_model().to(device)
    optimizer = make_optimizer(model)
    generators = {"data": shuffle}
    if steps.start > 0:
        found = checkpoint.load_checkpoint(
            path, model=model, optimizer=optimizer, generators=generators
        )
        assert found == steps.start

    def save(step: int) -> None:
        checkpoint.save_checkpoint(
            path, model=model, optimizer=optimizer, step=step, generators=generators
        )
        if step in moments:
            torch.save(model.state_dict(), folder / f"weights-{step}.pt")
        held_out_losses[step] = held_out_loss(model)
        progress.write(f"step {step:>5,}: validation loss {held_out_losses[step]:.3f}", file=sys.stdout)

    def report(loss: float) -> None:
        progress.update()
        seconds = time.perf_counter() - began
        share = step_flops * (progress.n - steps.start) / seconds / ceiling
        progress.set_postfix_str(
            f"loss {loss:.2f}, {share:.0%} of the ceiling (planned: {planned_share:.0%})", refresh=False
        )

    devices.synchronize(device)
    with tqdm(total=preset.steps, initial=steps.start, unit="step", desc="training") as progress:
        began = time.perf_counter()
        losses = train_model(model, optimizer, next_batch, lr_at, steps, mixed, save, every, report)
        devices.synchronize(device)
        return model, losses, time.perf_counter() - began


_, first_losses, first_seconds = process(0, range(stop))
planned_so_far = planned_seconds * stop / preset.steps
print(f"{readable(first_seconds, 's')} so far, planned {readable(planned_so_far, 's')}")

# %% [markdown]
r"""
A new process. Nothing of the old one is used but the file:
"""

# %% tags=["item-86", "timed"]
model, more_losses, more_seconds = process(4_321, range(stop, preset.steps))
losses = first_losses + more_losses
run_seconds = first_seconds + more_seconds
final_loss = held_out_losses[preset.steps]
reconcile("loss on the text held out", guess_of_loss, final_loss, "nats per byte")
print(
    f"the bar: {bar:.2f}; {readable(run_seconds, 's')}, planned {readable(planned_seconds, 's')}"
)

assert len(losses) == preset.steps and sorted(held_out_losses) == [
    every * k for k in range(1, LOOKS + 1)
]
assert final_loss < bar  # better than the table
assert final_loss < first_loss

# %% tags=["timed"]
window = preset.steps // 30
means = {
    end: statistics.fmean(losses[end - window : end])
    for end in range(window, preset.steps + 1, window)
}
finding = f"From {losses[0]:.1f} to {final_loss:.2f} nats per byte; the seam in the middle does not show"
plots.show(
    plots.loss_curves(
        {"training": means, "held out": held_out_losses},
        {"the bar": {window: bar, preset.steps: bar}},
        events={"a new process": stop},
        names=("the model", "a table of counts"),
        ylabel="loss (nats per byte)",
        title=finding,
    ),
    alt=f"Loss against step. {finding}. The held-out loss ends below the dashed bar of {bar:.2f}.",
)

# %% [markdown]
r"""
(The first mark of the training loss is a mean over its first steps, while it fell fast.)

What has it learned? Let it write.

### Exercise 14.5 · Let it write &nbsp; ★★☆ &nbsp; 15 minutes

Write `generate(model, ids, count, context, pick)`. It continues each row of `ids`, `[b, t]`, by `count` tokens, one after the
other, and returns them all, `[b, t + count]`. `model` turns ids into scores, `[b, t, vocabulary]`. It has places for `context`
tokens and no more: it gets the last `context` ones of all that there are by then, or all of them where there are fewer. Call it
once for each new token. What comes next is told by the scores at the *last* place: `pick` gets these, `[b, vocabulary]`, and
returns the next id of each row, `[b]`.

Nothing is recorded for a backward pass. While it writes the model is in eval mode; afterwards it is in the mode that it was in
before, also where an error ends the writing. (All of its modules are in the same mode.) `ids` is `int64`, has a row and a column
at least, and stays as it is. `count` may be 0.
"""


# %% nbgrader={"grade": false, "grade_id": "generate", "locked": false, "schema_version": 3, "solution": true, "task": false}
def generate(
    model: nn.Module,
    ids: Int[Tensor, "b t"],
    count: int,
    context: int,
    pick: Callable[[Float[Tensor, "b vocabulary"]], Int[Tensor, "b"]],
) -> Int[Tensor, "b t_and_count"]:
    """ids, and after them `count` more in each row, each picked by the scores at the last place."""
    ### BEGIN SOLUTION
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            for _ in range(count):
                scores = model(ids[:, -context:])
                ids = torch.cat([ids, pick(scores[:, -1])[:, None]], dim=1)
    finally:
        model.train(training)
    return ids
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_generate", "locked": true}
check("generate")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>One loop: cut the window, ask the model, pick, and put the new column beside the others. Which slice has the last <code>context</code> columns, also where there are fewer?</details>
<details><summary>Hint 2</summary>What has to happen whatever happens stands in a <code>finally</code>. And <code>model.train(mode)</code> takes the mode that you have kept.</details>

**Why it matters.** Every chat works like this: a model, asked once for each token, and a rule that picks.

The rule here draws. Its *temperature* of 0.7 makes likely bytes more likely.
"""


# %% tags=["timed"]
speaker = torch.Generator().manual_seed(3)


def draw(scores: Float[Tensor, "b vocabulary"], temperature: float = 0.7) -> Int[Tensor, "b"]:
    """An id for each row, drawn by its scores."""
    chances = (scores.float() / temperature).softmax(dim=-1).cpu()
    return torch.multinomial(chances, 1, generator=speaker)[:, 0].to(scores.device)


def columns(texts: dict[str, str], width: int = 38) -> str:
    """Texts side by side, under their names; of a run of blanks eight are shown, of empty lines one."""
    cut = []
    for name, text in texts.items():
        shown = re.sub(r" {9,}", 8 * " ", text)
        shown = re.sub(r"\n{3,}", "\n\n", "".join(c if c.isprintable() or c == "\n" else "·" for c in shown))
        lines = [line[i : i + width] for line in shown.split("\n") for i in range(0, max(1, len(line)), width)]
        cut.append([name, "─" * width, *lines])
    rows = itertools.zip_longest(*cut, fillvalue="")
    return "\n".join("   ".join(f"{cell:<{width}}" for cell in row).rstrip() for row in rows)


start = torch.tensor([list(b"    def ")], device=device)
samples = {}
for step in moments:
    writer = make_model().to(device)
    writer.load_state_dict(torch.load(folder / f"weights-{step}.pt", map_location=device))
    written = generate(writer, start, 300, preset.context, draw)[0].tolist()
    samples[f"after {step:,} steps: {held_out_losses[step]:.2f}"] = bytes(written).decode(errors="replace")
    assert len(written) == start.numel() + 300
print(columns(samples))

# %% [markdown]
r"""
It has never been told what a word is, let alone an indent. All that it knows is which byte tends to come next; and that
it learned in a few minutes, on a machine that you own.

*Try it yourself:* a temperature of 0.2, and one of 1.5. Then another start: `b"class "`, `b"import "`.

## 6 · The reckoning

### Exercise 14.6 · What is off? &nbsp; ★☆☆ &nbsp; 10 minutes

Write `discrepancies(planned, measured, tolerances)`. All three are dicts by name. A number is off if it differs from the
plan by *more* than its tolerance, in either direction. The tolerance is a share of what was *planned*: 0.02 stands for 2 %,
and 0 for exactly. Rounding must not decide: at a tolerance of 0.1, 110 is not off from 100, although `110 / 100 - 1` is a
little more than 0.1. And a measured NaN, as of a loss that has exploded, is off.

Return a dict of those that are off, with the share as value: −0.3 if 30 % less was measured than planned, NaN for a NaN. A
name that was planned and not measured is off as well; its value is None. Planned numbers are positive, every planned
name has a tolerance, and what was measured without a plan is left out.
"""


# %% nbgrader={"grade": false, "grade_id": "discrepancies", "locked": false, "schema_version": 3, "solution": true, "task": false}
def discrepancies(
    planned: dict[str, float], measured: dict[str, float], tolerances: dict[str, float]
) -> dict[str, float | None]:
    """By how much each number is off that is off by more than its tolerance, as a share of the plan."""
    ### BEGIN SOLUTION
    off: dict[str, float | None] = {}
    for name, plan in planned.items():
        if name not in measured:
            off[name] = None
            continue
        difference = measured[name] - plan
        if not abs(difference) <= tolerances[name] * plan:  # and not `>`, which NaN never is
            off[name] = difference / plan
    return off
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_discrepancies", "locked": true}
check("discrepancies")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Go through <code>planned</code>, and ask first whether the name is in <code>measured</code>.</details>
<details><summary>Hint 2</summary>A share that has been divided is rounded; the difference of the two numbers is not. And every comparison with NaN is False: which of two opposite questions gives the right answer then?</details>

**Why it matters.** A plan that nobody holds against what came out is a wish.

## 7 · The result: everything, planned and measured

All numbers of the plan were written down before the first step of the run. Here they are, with what came out.
"""

# %% tags=["timed"]
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

off = discrepancies(planned, measured, tolerances)
for kind, plan in planned.items():
    verdict = "off" if kind in off else "as planned"
    print(
        f"{kind:>24}: planned {plan:>16,.0f}, measured {measured[kind]:>16,.0f} "
        f"({measured[kind] / plan - 1:+.1%}, {verdict})"
    )

if device.type != "mps":  # see section 3
    assert off.keys() <= {"seconds"}  # all else does not depend on what else the machine does
# A machine may be busy, and several times slower; a wrong unit is a factor of 1,000.
assert 1 / 50 < run_seconds / planned_seconds < 50

# %% [markdown]
r"""
Were the seconds off? Then something else was running, in the rehearsal or in the run, or the device got warm and slowed
down. On an idle machine they agree within 20 %: run the rehearsal again, and see.

And the share of the ceiling, which you guessed before there was a model:
"""

# %% tags=["timed"]
share = run_flops / run_seconds / ceiling
reconcile("share of the ceiling", guess_of_share, share, "of the ceiling")
print(
    f"{readable(run_flops / run_seconds, 'FLOP/s')} of {readable(ceiling, 'FLOP/s')}: {share:.0%}"
)
promised = hardware.peak_flops(device, torch.bfloat16 if mixed else torch.float32)
of_promised = mfu(run_flops, run_seconds, promised)
if promised is not None and of_promised is not None:
    record("the run of the capstone", of_promised, "MFU")
    print(f"MFU, against the promised {readable(promised, 'FLOP/s')}: {of_promised:.1%}")
print(f"{preset.steps * tokens_per_step / run_seconds:,.0f} tokens/s")

# %% tags=["timed"]
units = {"parameters": "parameters", "FLOPs per token": "FLOPs", "seconds": "s"}
rows = [(kind, plan, measured[kind], units.get(kind, "B")) for kind, plan in planned.items()]
rows.append(("the bar, and the loss", bar, final_loss, "nats per byte"))
exactly = sum(measured[kind] == planned[kind] for kind in planned)
finding = (
    f"A Transformer, planned and trained: {exactly} of {len(planned)} numbers to the last digit, "
    f"time {run_seconds / planned_seconds - 1:+.0%}, and {1 - final_loss / bar:.0%} below the bar"
)
plots.show(
    plots.predicted_vs_measured(rows, title=finding),
    alt=f"{finding}. Parameters, FLOPs per token, four kinds of bytes, seconds and the loss, "
    "predicted and measured.",
)

# %% [markdown]
r"""
That is the answer to the question. What a training costs can be known before it starts: the most of it on paper, and the
rest after a rehearsal of seconds. What it will be *worth*, the loss, is the one thing that you had to run for. (For that
as well there are laws, from many small runs to a large one: Kaplan et al. 2020, arXiv:2001.08361, and Hoffmann et al. 2022,
arXiv:2203.15556. That would be another course.)

*Try it yourself:* half the width, twice the layers. Plan first: which of the numbers change, and by how much? Then run
from the top.

## 8 · What is left to gain

The share of the ceiling is small. What would raise it? Here is one step of the same training, with one change after the
other, each on top of those before it:

| change | what it does |
|---|---|
| `float32` | where we begin |
| `tf32` | products of `float32` go through tensor cores, with 10 bits after the point (lecture 05; only on CUDA) |
| `bfloat16` | autocast: faster products, and half the bytes between most of them (lecture 10) |
| compiled | `torch.compile` fuses what lies between the products (lecture 11; here only on CUDA) |
| twice the batch | larger products, and the optimizer's part of a step is smaller |

Attention has no line: it has been one fused operation from the start. All shares are of one rate, the peak of `bfloat16`
(where none is promised: the higher ceiling), so that they compare like the speed itself.

**Predict.** How many times the first share is the last one?
"""

# %%
guess = None  # times


# %% tags=["timed"]
class Rung(NamedTuple):
    """How a step is done."""

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
    """The share of the top rate that a step reaches."""
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

first, best = shares["float32"], max(shares.values())
reconcile("the best step against float32", guess, best / first, "times")
if promised is not None:
    record("training step of the capstone, at its best", best, "MFU")
of_what = "bfloat16 peak" if promised else "measured ceiling"
finding = f"A training step, from {first:.0%} to {best:.0%} of the {of_what}"
plots.show(
    plots.mfu_ladder(shares, title=finding, of=of_what),
    alt=f"{finding}, with one change after the other.",
)

# %% [markdown]
r"""
Not one line of the model was touched. On a GPU the data sheets alone promise more than a factor of ten between the first line and
the third (lecture 05). How much of it arrives depends on the width: what can be fused grows with $d$, the products with $d^2$. On a
CPU there is little to climb.

*Try it yourself:* which rung falls if `d` is halved, and which does not?

## How well do you guess?

For the last time: every number that you wrote into a *predict* cell, in thirteen lectures, against what was measured. Did
you get better?
"""

# %% tags=["timed"]
calibration()

# %% [markdown]
r"""
## Takeaways

**Mechanics.** Parameters: $12Ld^2 + Vd + Td$ and some norms. FLOPs for each token: 6 for each weight that multiplies, and
$12LdT$ for attention. Bytes: 16 for each parameter in `float32` or under autocast, and activations from a table of what
each operation keeps. Seconds: FLOPs over ceiling times share; the share from a rehearsal with fewer layers.
The loop is seven lines, and a checkpoint is all that the next step depends on.

**Mindset.** Write the number down first. Check what is cheap before you pay for what is not: shapes on the meta device, the
first loss, the mask, the bytes of one step. Give a loss something to be compared with. State a tolerance for each number,
and hold the plan against what came out. If they differ, one of the two is wrong, and you learn something.

**Intuitions.** Most of a step's bytes are activations, and most of its FLOPs are matrices. A small model is far from the
ceiling, because what is not multiplied weighs more. Two points make a line. Counting gets you far, with no GPU at all.

That was the course. You began with a napkin; you end with a model that you planned, wrote, trained and understood, **every
byte, every FLOP**.
"""

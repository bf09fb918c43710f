# %% [markdown]
r"""
# 12 · Capstone: train a small Transformer

> **Can you say what a training will take, before you start it?**

Twelve lectures, and all of them were about one thing: numbers that can be known in advance. Now you plan a training from
beginning to end: how many parameters, how many FLOPs, how many bytes of each kind, how many seconds on *your* machine, and
how good it has to become. Then you write the model, train it on real text, and hold what came out beside the plan. By the
end you will have shown it in one figure: parameters and FLOPs to the last one, memory within two percent, and time
within twenty. And the model will write you some Python.

How to read: run the cells in order (<kbd>Shift</kbd> + <kbd>Enter</kbd>). Where a cell says *predict*, write your
number first; being wrong is how you find out what to look at. The cell below each exercise checks your answer and names
the likely mistake; **Validate** in the toolbar runs them all. The training itself takes a few minutes on a CPU with two
cores.
"""

# %%
import math
import os
import statistics
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

from course_utils import checkpoint, data, hardware, plots, timing
from course_utils import device as devices
from course_utils.flops import count_flops, mfu
from course_utils.memory import track
from course_utils.napkin import Transformer as Shape
from course_utils.predict import calibration, reconcile, record
from course_utils.progress import show_progress
from course_utils.units import readable

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
the licence of Python itself (the PSF licence, which allows it). Each byte is a token, so no tokenizer is needed. Every
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

### Exercise 12.1 · Parameters, and FLOPs per token &nbsp; ★★☆ &nbsp; 15 minutes

Write `plan_work(layers, width, context, vocabulary)`: a dict with the number of `"parameters"`, and with `"FLOPs per
token"`, those of forward and backward pass together. Both are whole numbers.
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


# %% nbgrader={"grade": true, "grade_id": "test_plan_work", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
from course_utils.testing import expect, observe

row_by_row = (
    "Go through the table, row by row; what stands in a layer counts once for each layer."
)
multiplies = "A weight counts if it multiplies: not places, which are looked up, nor norms."
twice = "The table is the head: count it once."
both_ways = "Attention has a backward pass, too: three times its forward in all."
bare = "Attention is missing: 2·2·d·T for each token and layer, three times that with backward."
looked_up = "The table is looked up *and* multiplied: it is the head."


def judge_work(seen, parameters, flops, mistakes, mistakes_of_flops):
    """Two numbers in a dict, one after the other."""
    want = {"parameters": parameters, "FLOPs per token": flops}
    if not isinstance(seen.value, dict) or seen.value.keys() != want.keys():
        expect(
            seen.value, want, hint='A dict with the keys "parameters" and "FLOPs per token".'
        )
    got = seen.value
    expect(
        got["parameters"], parameters, about="parameters", mistakes=mistakes, hint=row_by_row
    )
    hint = "6 for each weight that multiplies, and attention on top."
    about = "FLOPs per token"
    expect(got[about], flops, about=about, mistakes=mistakes_of_flops, hint=hint)


# Two layers of width 8, 4 places, 10 tokens.
mistakes = {
    1808: twice,
    1648: "The table of tokens is missing: it is trained, and counts once.",
    1696: "The table of places is missing: it is trained as well.",
    1712: "The LayerNorm at the end is missing.",
    1664: "The layers' LayerNorms are missing: two in each.",
    1688: "A LayerNorm has two vectors, a scale and a shift.",
    1216: "The feed-forward part has two matrices, up and down.",
    1472: "qkv is d × 3d: queries, keys and values.",
    960: "The layers' matrices count once for each layer.",
}
mistakes_of_flops = {
    9696: bare,
    10368: f"{multiplies} And attention is missing.",
    11136: multiplies,
    10656: "Places are looked up, and multiply nothing.",
    9984: looked_up,
    10944: "The table is looked up at the bottom: it multiplies once.",
    9952: both_ways,
    3488: "That is the forward pass alone; backward is twice as much.",
    5232: "A multiply and an add are 2 FLOPs.",
    10080: "Attention multiplies twice: queries with keys, and chances with values.",
    41856: "For one token, not for a sequence.",
}
seen = observe(plan_work, 2, 8, 4, 10)
judge_work(seen, 1728, 10464, mistakes, mistakes_of_flops)
seen = observe(plan_work, 3, 16, 32, 256)
judge_work(seen, 14048, 98304, {18144: twice}, {79872: bare})
### BEGIN HIDDEN TESTS
from course_utils.testing import draws


def check_work(layers, width, context, vocabulary):
    matrices = [
        (width, 3 * width),
        (width, width),
        (width, 4 * width),
        (4 * width, width),
    ]
    tokens, places, norm = vocabulary * width, context * width, 2 * width
    multiplied = (
        sum(rows * columns for rows, columns in matrices for _ in range(layers)) + tokens
    )
    norms = sum(norm for _ in range(2 * layers + 1))
    number, attention = multiplied + places + norms, layers * 2 * (2 * width * context)
    flops = 3 * (2 * multiplied + attention)
    mistakes = [
        (number + tokens, twice),
        (number - tokens, "The table of tokens is missing: it is trained, and counts once."),
        (number - places, "The table of places is missing: it is trained as well."),
        (number - norm, "The LayerNorm at the end is missing."),
        (number - norms + norm, "The layers' LayerNorms are missing: two in each."),
        (number - norms, "The LayerNorms are missing: two in each layer, one at the end."),
        (number - norms // 2, "A LayerNorm has two vectors, a scale and a shift."),
        (number - layers * norm, "Each layer has two LayerNorms."),
        (number - layers * 2 * width**2, "qkv is d × 3d: queries, keys and values."),
        (number + layers * 9 * width, "No matrix has a bias here."),
    ]
    of_flops = [
        (6 * multiplied, bare),
        (6 * number, f"{multiplies} And attention is missing."),
        (6 * number + 3 * attention, multiplies),
        (flops - 6 * tokens, looked_up),
        (flops + 6 * tokens, "The table is looked up at the bottom: it multiplies once."),
        (6 * multiplied + attention, both_ways),
        (6 * multiplied + 2 * attention, both_ways),
        (6 * multiplied + 3 * attention // layers, "Every layer has attention."),
        (flops // 3, "That is the forward pass alone; backward is twice as much."),
    ]
    of_flops = [(value, why) for value, why in of_flops if value != flops]
    seen = observe(plan_work, layers, width, context, vocabulary)
    judge_work(seen, number, flops, mistakes, of_flops)


draw = draws()
for _ in range(8):
    layers, width, context = draw.sizes(3, 2, 40)
    check_work(layers, 2 * width, context, draw.integer(50, 60_000))
check_work(1, 6, 1, 11)
check_work(96, 12_288, 2_048, 50_257)
### END HIDDEN TESTS

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Each layer has <code>12 · width²</code> numbers in its matrices, and <code>4 · width</code> in its norms.</details>
<details><summary>Hint 2</summary>All matrices of the layers multiply, and so does the table of tokens. 6 FLOPs for each of these; then attention, <code>3 · 4 · width · context</code> for each layer.</details>

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

### Exercise 12.2 · Bytes by kind &nbsp; ★★☆ &nbsp; 15 minutes

Write `plan_bytes(parameters, layers, width, heads, context, vocabulary, batch, mixed)`: a dict with the bytes of
`"parameters"`, `"gradients"`, `"optimizer state"` (AdamW's; leave out its counters of steps) and `"activations"`. With
`mixed` as in the tables, without it all in `float32`.
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


# %% nbgrader={"grade": true, "grade_id": "test_plan_bytes", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
from course_utils.testing import expect, observe

names = ("parameters", "gradients", "optimizer state", "activations")
wide = "Under autocast they stay float32, 4 bytes each; only what is multiplied is converted."
averages = "AdamW keeps two averages for each parameter, in float32: 8 bytes."
master = "No master copy: the parameters are in float32 already."
copied = "Autocast keeps a 16-bit copy of each matrix that multiplies: the last row."
not_copied = "Without autocast nobody copies the weights."
not_all = "Not all is 16 bits: the third column says what stays float32."
in_layers = "The first table is for each layer."
one_more = "The loss keeps one number more."
no_squares = "Fused attention keeps no T × T weights."


def judge_bytes(seen, parameters, activations, mistakes):
    """Four kinds in a dict, one after the other."""
    want = dict(
        zip(names, (4 * parameters, 4 * parameters, 8 * parameters, activations), strict=True)
    )
    if not isinstance(seen.value, dict) or seen.value.keys() != want.keys():
        expect(seen.value, want, hint=f"A dict with the keys {', '.join(names)}.")
    for kind in names[:3]:
        wrong = {
            parameters: "That counts numbers; a float32 has 4 bytes.",
            2 * parameters: wide,
        }
        if kind == "optimizer state":
            wrong = {
                4 * parameters: averages,
                12 * parameters: master,
                2 * parameters: averages,
            }
        expect(seen.value[kind], want[kind], about=kind, mistakes=wrong, hint=averages)
    hint = "Row by row: numbers times 4 or 2 bytes, the first table times the layers."
    about = "activations"
    expect(seen.value[about], activations, about=about, mistakes=mistakes, hint=hint)


# 1,000 parameters, 2 layers of width 8 with 2 heads, 4 places, 10 tokens, a batch of 3.
mistakes = {
    8644: copied,
    10338: not_all,
    7106: f"{not_all} And autocast's copies are missing.",
    14212: "Look at mixed: some of these have 16 bits, and the weights are copied.",
    11872: one_more,
    8132: in_layers,
    12644: no_squares,
    12260: no_squares,
    11716: "The table multiplies, too: autocast copies it.",
    11636: "The loss is computed in float32, under autocast as well.",
    11780: "The statistics of the last LayerNorm are missing.",
    11492: "Missing in each layer: statistics of the LayerNorms.",
    10644: "Only what multiplies is copied: no places, no norms.",
    3553: "That counts numbers: each has 4 bytes, or 2.",
}
seen = observe(plan_bytes, 1_000, 2, 8, 2, 4, 10, 3, True)
judge_bytes(seen, 1_000, 11876, mistakes)
mistakes = {
    17444: not_copied,
    11876: "Look at mixed: without it all is float32.",
    14980: no_squares,
    14208: one_more,
    7780: in_layers,
    3553: "That counts numbers: each has 4 bytes.",
}
seen = observe(plan_bytes, 1_000, 2, 8, 2, 4, 10, 3, False)
judge_bytes(seen, 1_000, 14212, mistakes)
### BEGIN HIDDEN TESTS
from course_utils.testing import draws


def check_bytes(parameters, layers, width, heads, context, vocabulary, batch, mixed):
    n, d, short = batch * context, width, 2 if mixed else 4
    in_each = {  # what is kept: numbers, bytes of each
        "inputs of norms": (2 * n * d, 4),
        "statistics": (4 * n, 4),
        "outputs of norms": (2 * n * d, short),
        "queries, keys, values": (3 * n * d, short),
        "result of attention": (n * d, short),
        "a number for each query and head": (n * heads, 4),
        "around GELU": (8 * n * d, short),
    }
    at_the_end = {
        "input of the last norm": (n * d, 4),
        "its statistics": (2 * n, 4),
        "input of the head": (n * d, short),
        "logarithms of all chances": (n * vocabulary, 4),
        "one number more": (1, 4),
    }
    weights = sum(d * rows for _ in range(layers) for rows in (3 * d, d, 4 * d, 4 * d))
    weights += vocabulary * d
    each = {name: numbers * size for name, (numbers, size) in in_each.items()}
    once = {name: numbers * size for name, (numbers, size) in at_the_end.items()}
    copies = 2 * weights if mixed else 0
    total = sum(layers * size for size in each.values()) + sum(once.values()) + copies
    count = sum(m for m, _ in at_the_end.values())
    count += layers * sum(m for m, _ in in_each.values())
    mistakes = [
        (total - 2 * weights, copied),
        (total + 2 * weights, "The copies have 16 bits each." if mixed else not_copied),
        (2 * count + copies, not_all),
        (4 * count + copies, "Look at mixed: 16 bits with it, 4 bytes throughout without."),
        (total + 4 * layers * batch * heads * context**2, no_squares),
        (total - (layers - 1) * sum(each.values()), in_layers),
        (total + (layers - 1) * sum(once.values()), "The second table is counted once."),
        (
            total - copies + 2 * parameters,
            "Only what multiplies is copied: no places, no norms.",
        ),
    ]
    mistakes += [
        (total - layers * v, f"Missing in each layer: {name}.") for name, v in each.items()
    ]
    mistakes += [(total - v, f"Missing: {name}.") for name, v in once.items()]
    mistakes = [(value, why) for value, why in mistakes if value != total]
    seen = observe(
        plan_bytes, parameters, layers, width, heads, context, vocabulary, batch, mixed
    )
    judge_bytes(seen, parameters, total, mistakes)


draw = draws()
for mixed in (True, False, True, False):
    layers, head, context, batch = draw.sizes(4, 2, 30)
    heads, vocabulary = draw.integer(2, 9), draw.integer(50, 60_000)
    number = draw.integer(10_000, 99_999)
    check_bytes(number, layers, head * heads, heads, context, vocabulary, batch, mixed)
### END HIDDEN TESTS

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Add up the <code>float32</code> rows of a layer and the 16-bit rows of a layer: <code>2d + 4 + h</code> and <code>14d</code> numbers for each token.</details>
<details><summary>Hint 2</summary><code>size = 2 if mixed else 4</code> for the 16-bit rows. The copies: <code>2 * (12 * layers * width**2 + vocabulary * width)</code>, and nothing without <code>mixed</code>.</details>

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
is all that counts no FLOPs and takes time. Which share of the ceiling is reached is the **MFU** of the run (measured
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

### Exercise 12.3 · Attention &nbsp; ★★☆ &nbsp; 15 minutes

Write the module `Attention`. It has two linear layers without bias, `qkv` (width → 3 · width) and `out` (width → width),
made by `nn.Linear`, and nothing else to train or to store. The outputs of `qkv` are, in this order, all queries, all
keys, all values; in each of these three a head is a run of neighbouring numbers. Let the heads attend, causally: a
token sees itself and what came before. Merge the heads, and multiply by `out`.

Use `rearrange` with named dimensions to split and to merge, and
`F.scaled_dot_product_attention(q, k, v, is_causal=True)`. It scales and masks; and given four dimensions, `[b, h, t,
e]`, it is one fused operation that keeps no $T \times T$ weights for the backward pass. The plan of section 2 counts on
that.
"""


# %% nbgrader={"grade": false, "grade_id": "Attention", "locked": false, "schema_version": 3, "solution": true, "task": false}
class Attention(nn.Module):
    """Causal self-attention with heads of width / heads neighbouring numbers each."""

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


# %% nbgrader={"grade": true, "grade_id": "test_Attention", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
import math

import torch

from course_utils.testing import draws, expect, observe, probe


@probe
def attended(student, x, qkv, out, heads):
    """Attention of x with these weights."""
    import torch

    layer = student.Attention(x.shape[-1], heads)
    with torch.no_grad():
        layer.qkv.weight.copy_(qkv)
        layer.out.weight.copy_(out)
        return layer(x)


@probe
def attention_holds(student, width, heads):
    """The shapes of what is trained and stored, by name."""
    layer = student.Attention(width, heads)
    return {name: list(value.shape) for name, value in layer.state_dict().items()}


@probe
def attention_keeps(student, width, heads, batch, context):
    """Bytes that autograd keeps of one call, its input included."""
    import torch
    from course_utils.memory import saved_bytes

    layer = student.Attention(width, heads)
    return saved_bytes(layer, torch.ones(batch, context, width, requires_grad=True))


def by_loops(x, qkv, out, heads, *, order="three h e", merge="h e", scale=None, sees=None):
    """Attention on plain numbers. order: what runs slowest to fastest through the outputs of qkv."""
    sees = sees or (lambda i, j: j <= i)
    b, t, d = x.shape
    e = d // heads
    sizes = {"three": 3, "h": heads, "e": e}

    def place(names, **index):
        at = 0
        for name in names.split():
            at = at * sizes[name] + index[name]
        return at

    made, result = (x.double() @ qkv.double().T).tolist(), torch.zeros(b, t, d).double()
    for row in range(b):
        for h in range(heads):
            q, k, v = (
                [
                    [made[row][i][place(order, three=part, h=h, e=c)] for c in range(e)]
                    for i in range(t)
                ]
                for part in range(3)
            )
            for i in range(t):
                powers = [
                    math.exp(sum(q[i][c] * k[j][c] for c in range(e)) * (scale or e**-0.5))
                    if sees(i, j)
                    else 0.0
                    for j in range(t)
                ]
                for c in range(e):
                    value = sum(p * v[j][c] for j, p in enumerate(powers)) / sum(powers)
                    result[row, i, place(merge, h=h, e=c)] = value
    return (result @ out.double().T).float()


def check_attention(x, qkv, out, heads):
    given = (x, qkv, out, heads)
    d, e = x.shape[-1], x.shape[-1] // heads
    no_mask = "A token sees the future: is_causal=True."
    order = "qkv's outputs are all queries, then all keys, then all values: (three h e)."
    merged = "A head is a run of neighbouring numbers, in splitting and in merging: (h e)."
    scaled = "Scale once, by the root of a head's length. scaled_dot_product_attention does."
    mistakes = [
        (by_loops(*given, sees=lambda i, j: True), no_mask),
        (by_loops(*given, sees=lambda i, j: j >= i), "The mask is turned: the past is hidden."),
        (by_loops(*given, order="h three e"), order),
        (by_loops(*given, order="h e three"), order),
        (by_loops(*given, order="three e h"), merged),
        (by_loops(*given, order="e three h"), order),
        (by_loops(*given, merge="e h"), merged),
        (by_loops(*given, order="three e h", merge="e h"), merged),
        (
            by_loops(*given, scale=1.0),
            "The scores are not scaled by the root of a head's length.",
        ),
        (by_loops(*given, scale=d**-0.5), scaled),
        (by_loops(*given, scale=1 / e), scaled),
        (
            by_loops(x, qkv, torch.eye(d), heads),
            "out is missing: it mixes what the heads found.",
        ),
        (by_loops(x, qkv, out, 1), "Those are not several heads but one of the whole width."),
        (by_loops(x, qkv, out.T, heads), "A weight is transposed: let nn.Linear multiply."),
        (by_loops(*given) + x, "The residual belongs to the block, not to Attention."),
    ]
    q, k, v = qkv.chunk(3)
    turns = {
        "Queries and keys are exchanged.": (k, q, v),
        "Keys and values are exchanged.": (q, v, k),
        "Queries and values are exchanged.": (v, k, q),
    }
    for why, parts in turns.items():
        mistakes.append((by_loops(x, torch.cat(parts), out, heads), f"{why} {order}"))
    right = by_loops(*given)
    mistakes = [(value, why) for value, why in mistakes if not torch.allclose(value, right)]
    hint = 'Split with "b t (three h e) -> three b h t e", merge with "b h t e -> b t (h e)".'
    seen = observe(attended, *given)
    expect(seen.value, right, mistakes=mistakes, tolerance=1e-4, hint=hint)


expect(
    observe(attention_holds, 6, 2).value,
    {"qkv.weight": [18, 6], "out.weight": [6, 6]},
    about="what it holds",
    hint="Two nn.Linear layers without bias, qkv and out; no mask is stored, is_causal makes it.",
)
generator = torch.Generator().manual_seed(0)
x, qkv = torch.randn(1, 3, 4, generator=generator), torch.randn(12, 4, generator=generator)
check_attention(x, qkv, torch.randn(4, 4, generator=generator), 2)
### BEGIN HIDDEN TESTS
draw = draws()
for heads in (1, 2, 3):
    b, t = draw.sizes(2, 2, 5)
    d = heads * draw.integer(2, 4)
    x = draw.tensor(b, t, d, contiguous=False)
    check_attention(x, draw.tensor(3 * d, d), draw.tensor(d, d), heads)
b, h = draw.sizes(2, 2, 5)
d, t = 4 * h, 32 * draw.integer(2, 4)
n = b * t
fused = 4 * (
    n * d + 3 * n * d + n * d + n * h
)  # input (counted elsewhere, at most), q k v, result
seen = observe(attention_keeps, d, h, b, t)
about = "at most as many bytes kept as the plan says"
hint = "Are T × T weights kept, or copies of q, k and v? Use F.scaled_dot_product_attention."
squares = isinstance(seen.value, int) and seen.value >= 4 * b * h * t * t
expect(
    "T × T weights"
    if squares
    else seen.value <= fused
    if isinstance(seen.value, int)
    else seen.value,
    True,
    about=about,
    mistakes={
        "T × T weights": "T × T weights are kept for the backward pass: let the fused operation do it."
    },
    hint=hint,
)
### END HIDDEN TESTS

# %% [markdown]
r"""
<details><summary>Hint 1</summary>One <code>rearrange</code> splits: <code>"b t (three h e) -> three b h t e"</code>. What it returns can be unpacked into q, k, v.</details>
<details><summary>Hint 2</summary>After the attention, <code>"b h t e -> b t (h e)"</code> puts the heads side by side again.</details>

**Why it matters.** It is the only place in the model where tokens meet. Everything else treats each by itself.

### Exercise 12.4 · The block, and the whole &nbsp; ★★★ &nbsp; 25 minutes

Write two modules.

`Block(width, attention)` is a layer. It gets its attention as a module, and has `norm_1`, `norm_2` (`nn.LayerNorm`),
`up` (width → 4 · width) and `down` (back; both `nn.Linear`, no bias). To `x` it adds the attention of the normed `x`;
to that sum it adds what `down` makes of the GELU of `up` of the normed sum. (`F.gelu`, as it is.)

`Transformer(vocabulary, context, width, blocks)` is the model. It has the two tables `tokens` and `places`
(`nn.Embedding`), the `blocks` that it is given, in that order, and a last `norm`. Its input is ids `[b, t]` with any $t$
up to `context`. Each token's vector, plus that of its place, goes through the blocks and the norm; the result for each
token is its products with the vectors of *all* tokens in the table: one score for each. When it is made, it draws every
matrix in it, tables and blocks included, from a normal distribution with a standard deviation of 0.02. (With
`nn.Embedding`'s own 1, the first scores would be of the size of $\sqrt d$; they should be about 0, all bytes alike.)
"""


# %% nbgrader={"grade": false, "grade_id": "Transformer", "locked": false, "schema_version": 3, "solution": true, "task": false}
class Block(nn.Module):
    """One layer: attention, then a feed-forward part, each of the normed input and added to it."""

    def __init__(self, width: int, attention: nn.Module) -> None:
        super().__init__()
        ### BEGIN SOLUTION
        self.attention = attention
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)
        ### END SOLUTION

    def forward(self, x: Float[Tensor, "b t d"]) -> Float[Tensor, "b t d"]:
        ### BEGIN SOLUTION
        x = x + self.attention(self.norm_1(x))
        return x + self.down(F.gelu(self.up(self.norm_2(x))))
        ### END SOLUTION


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


# %% nbgrader={"grade": true, "grade_id": "test_Transformer", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
import math

import torch

from course_utils.testing import draws, expect, observe, probe


@probe
def block_of(student, x, mix, scales, shifts, up, down):
    """The block of x, with an attention that multiplies the tokens by the matrix `mix`."""
    import torch

    class Mix(torch.nn.Module):
        def forward(self, x):
            return mix @ x

    block = student.Block(x.shape[-1], Mix())
    with torch.no_grad():
        for norm, scale, shift in zip(
            (block.norm_1, block.norm_2), scales, shifts, strict=True
        ):
            norm.weight.copy_(scale)
            norm.bias.copy_(shift)
        block.up.weight.copy_(up)
        block.down.weight.copy_(down)
        return block(x)


@probe
def model_of(student, ids, tokens, places, scale, shift, factors):
    """The scores of a model whose blocks add factor · (x + 1), one after the other."""
    import torch

    class Plus(torch.nn.Module):
        def __init__(self, factor):
            super().__init__()
            self.factor = factor

        def forward(self, x):
            return x + self.factor * (x + 1)

    blocks = [Plus(factor) for factor in factors]
    model = student.Transformer(*tokens.shape[:1], places.shape[0], tokens.shape[1], blocks)
    with torch.no_grad():
        model.tokens.weight.copy_(tokens)
        model.places.weight.copy_(places)
        model.norm.weight.copy_(scale)
        model.norm.bias.copy_(shift)
        return model(ids)


@probe
def what_is_trained(student):
    """Shapes of the parameters of a model of one block, by name; the block's attention is a linear layer."""
    import torch

    block = student.Block(6, torch.nn.Linear(6, 6, bias=False))
    model = student.Transformer(11, 5, 6, [block])
    return {name: list(p.shape) for name, p in model.named_parameters()}


@probe
def first_weights(student, seed):
    """The std of each matrix, and mean of each vector, of a fresh model."""
    import torch

    torch.manual_seed(seed)
    blocks = [student.Block(64, torch.nn.Linear(64, 64, bias=False)) for _ in range(2)]
    model = student.Transformer(256, 96, 64, blocks)
    named = model.named_parameters()
    return {name: (p.std() if p.dim() == 2 else p.mean()).item() for name, p in named}


def normed(x, scale, shift):
    """LayerNorm from its definition."""
    centred = x - x.mean(dim=-1, keepdim=True)
    return centred / (centred.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt() * scale + shift


def gelu(x):
    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))


def check_block(x, mix, scales, shifts, up, down):
    given = (x, mix, scales, shifts, up, down)
    x, mix, up, down = (y.double() for y in (x, mix, up, down))
    (a, b), (s, t) = ([y.double() for y in pair] for pair in (scales, shifts))

    def feed(y, act=gelu):
        return act(y @ up.T) @ down.T

    middle = x + mix @ normed(x, a, s)
    right = middle + feed(normed(middle, b, t))
    residual = "Both parts *add*: x + attention(…), and then that sum + down(…)."
    mistakes = [
        (mix @ normed(x, a, s) + feed(normed(mix @ normed(x, a, s), b, t)), residual),
        (feed(normed(middle, b, t)), residual),
        (feed(normed(mix @ normed(x, a, s), b, t)), residual),
        (x + feed(normed(middle, b, t)), residual),
        (
            middle + feed(normed(x, b, t)),
            "The feed-forward part takes the sum after attention, not x.",
        ),
        (
            x + mix @ x + feed(normed(x + mix @ x, b, t)),
            "Attention gets the normed x: self.norm_1(x).",
        ),
        (middle + feed(middle), "The feed-forward part gets the normed sum: self.norm_2(x)."),
        (middle + feed(normed(middle, a, s)), "The second norm is norm_2: each has its own."),
        (
            x + mix @ normed(x, b, t) + feed(normed(x + mix @ normed(x, b, t), a, s)),
            "norm_1 stands before attention, norm_2 before the feed-forward part.",
        ),
        (
            middle + feed(normed(middle, b, t), lambda y: y),
            "GELU is missing between up and down.",
        ),
        (middle + feed(normed(middle, b, t), torch.relu), "That is ReLU: wanted is F.gelu."),
        (
            middle
            + feed(
                normed(middle, b, t),
                lambda y: torch.nn.functional.gelu(y, approximate="tanh"),
            ),
            "F.gelu as it is, without its approximation.",
        ),
        (
            normed(x + mix @ x, a, s) + feed(normed(x + mix @ x, a, s)),
            "The norm comes before each part, not after the sum.",
        ),
    ]
    post = normed(x + mix @ x, a, s)
    mistakes.append(
        (
            normed(post + feed(post), b, t),
            "The norms come before each part (pre-norm), not after the sum.",
        )
    )
    mistakes = [(value.float(), why) for value, why in mistakes]
    seen = observe(block_of, *given)
    hint = "x = x + attention(norm_1(x)), then x + down(gelu(up(norm_2(x))))."
    expect(
        seen.value, right.float(), about="Block", mistakes=mistakes, tolerance=1e-4, hint=hint
    )


def check_model(ids, tokens, places, scale, shift, factors):
    given = (ids, tokens, places, scale, shift, factors)
    table, at, a, s = (y.double() for y in (tokens, places, scale, shift))

    def through(x, order):
        for factor in order:
            x = x + factor * (x + 1)
        return x

    looked_up, here = table[ids], at[: ids.shape[1]]
    end = through(looked_up + here, factors)
    right = normed(end, a, s) @ table.T
    last = at[-ids.shape[1] :]
    mistakes = [
        (
            normed(through(looked_up, factors), a, s) @ table.T,
            "The places are missing: add places.weight, one row for each position.",
        ),
        (end @ table.T, "The last norm is missing."),
        (
            normed(looked_up + here, a, s) @ table.T,
            "The blocks are missing: x goes through each of them.",
        ),
        (
            normed(through(looked_up + here, factors[::-1]), a, s) @ table.T,
            "The blocks are used in the wrong order.",
        ),
        (
            normed(through(looked_up + here, factors[:1]), a, s) @ table.T,
            "Only the first block is used.",
        ),
        (
            normed(through(looked_up + last, factors), a, s) @ table.T,
            "Places begin at 0: the first t rows of the table.",
        ),
        (right.softmax(dim=-1), "Return scores: the loss makes chances of them."),
        (right.log_softmax(dim=-1), "Return scores: the loss makes chances of them."),
        (
            through(normed(looked_up + here, a, s), factors) @ table.T,
            "The norm comes after the blocks.",
        ),
    ]
    mistakes = [(value.float(), why) for value, why in mistakes]
    seen = observe(model_of, *given)
    hint = "tokens + places, the blocks, the norm, and then products with every row of tokens.weight."
    expect(
        seen.value,
        right.float(),
        about="Transformer",
        mistakes=mistakes,
        tolerance=1e-4,
        hint=hint,
    )


shapes = {
    "tokens.weight": [11, 6],
    "places.weight": [5, 6],
    "blocks.0.attention.weight": [6, 6],
    "blocks.0.norm_1.weight": [6],
    "blocks.0.norm_1.bias": [6],
    "blocks.0.norm_2.weight": [6],
    "blocks.0.norm_2.bias": [6],
    "blocks.0.up.weight": [24, 6],
    "blocks.0.down.weight": [6, 24],
    "norm.weight": [6],
    "norm.bias": [6],
}
seen = observe(what_is_trained)
if isinstance(seen.value, dict):
    missing, extra = shapes.keys() - seen.value.keys(), seen.value.keys() - shapes.keys()
    if missing and all(name.startswith("blocks.0.") for name in missing):
        lost = "PyTorch does not look into a plain list: keep the blocks in nn.ModuleList or nn.Sequential."
        expect(sorted(missing), [], about="not registered", mistakes=[(sorted(missing), lost)])
    tied = "The head is the table of tokens: it has no matrix of its own."
    biased = "No matrix has a bias: bias=False."
    mistakes = [
        ([n for n in sorted(extra) if "bias" not in n and n.count(".") == 1], tied),
        ([n for n in sorted(extra) if "bias" in n and n.startswith("blocks")], biased),
    ]
    expect(sorted(extra), [], about="trained, and not asked for", mistakes=mistakes)
    expect(sorted(missing), [], about="not there, or under another name")
hint = "The names are tokens, places, blocks, norm; attention, norm_1, norm_2, up, down."
expect(seen.value, shapes, about="what is trained", hint=hint)

generator = torch.Generator().manual_seed(0)


def some(*shape):
    return torch.randn(*shape, generator=generator)


check_block(
    some(1, 3, 4), some(3, 3), [some(4), some(4)], [some(4), some(4)], some(16, 4), some(4, 16)
)
ids = torch.tensor([[3, 0, 1]])
check_model(ids, some(5, 4), some(6, 4), some(4), some(4), [0.5, -2.0])
### BEGIN HIDDEN TESTS
draw = draws()
for _ in range(3):
    b, t, d = draw.sizes(3, 2, 6)
    x, mix = draw.tensor(b, t, d + 1, contiguous=False), draw.tensor(t, t)
    d += 1
    scales, shifts = ([draw.tensor(d), draw.tensor(d)] for _ in range(2))
    check_block(x, mix, scales, shifts, draw.tensor(4 * d, d), draw.tensor(d, 4 * d))
    ids = torch.tensor([[draw.integer(0, 8) for _ in range(t)] for _ in range(b)])
    for context in (t, t + draw.integer(1, 3)):
        factors = [draw.integer(1, 9) / 10, -draw.integer(12, 20) / 10, draw.integer(1, 9) / 5]
        given = (draw.tensor(9, d), draw.tensor(context, d), draw.tensor(d), draw.tensor(d))
        check_model(ids, *given, factors)
seen = observe(first_weights, draw.integer(0, 999))
found = seen.value if isinstance(seen.value, dict) else {}
wide = "nn.Embedding starts with a std of 1: draw its table anew, with 0.02."
for name, value in found.items():
    if "norm" in name:
        start = 1.0 if name.endswith("weight") else 0.0
        hint = "Leave the norms as they are made: scales of 1, shifts of 0."
        expect(value, start, about=f"mean of {name}", hint=hint)
    else:
        wrong = [(1.0, wide), (0.02**0.5, "0.02 is the std, not the variance.")]
        wrong.append((0.0004, "0.02 is the std: no square."))
        wrong.append(
            (
                1 / math.sqrt(3 * (256 if "down" in name else 64)),
                f"{name} is as nn.Linear made it: draw it anew, too.",
            )
        )
        hint = "Go through self.parameters(): nn.init.normal_(p, std=0.02) for each matrix."
        expect(value, 0.02, about=f"std of {name}", mistakes=wrong, hint=hint, tolerance=0.08)
expect(len(found), 4 + 2 * 7, about="parameters of a model with two blocks")
### END HIDDEN TESTS

# %% [markdown]
r"""
<details><summary>Hint 1</summary>For the head: <code>F.linear(x, self.tokens.weight)</code>. <code>self.places.weight[: ids.shape[1]]</code> are the first t places; they are added to each sequence of the batch.</details>
<details><summary>Hint 2</summary><code>self.parameters()</code> gives all parameters, also those of the blocks once they are in an <code>nn.Sequential</code>. The matrices are those with <code>p.dim() == 2</code>.</details>

**Why it matters.** That is the whole architecture, in some thirty lines. Llama differs in the norm, the places, the
nonlinearity, the head, and the number of heads for keys; the frame is this one.
"""

# %% [markdown]
r"""
### The model against the plan

Before a model is trained it is checked, with everything that is cheap. **Parameters** and **FLOPs** first. Neither needs
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

### Exercise 12.5 · Train &nbsp; ★★★ &nbsp; 25 minutes

Write `train(model, optimizer, next_batch, lr_at, steps, mixed, save, every)`. For each step of the range `steps`:

1. set the learning rate of *every* group to `lr_at(step)`;
2. take a batch `ids, targets = next_batch()`;
3. under `torch.autocast` with `bfloat16` on the device of `ids`, switched on if `mixed` is true and off if not: the
   scores `model(ids)`, `[b, t, vocabulary]`, and the mean cross-entropy with `targets`, `[b, t]`;
4. the gradients of this batch alone, outside of autocast;
5. where the norm of all gradients together is more than 1, shrink them so that it is 1
   (`torch.nn.utils.clip_grad_norm_`): one strange batch must not throw the run;
6. update;
7. where `step + 1` is a multiple of `every`, and after the last step in any case, call `save(step + 1)`, once: it writes
   a checkpoint from which step + 1 is the next to run.

Return the losses of all steps, as Python floats. (`bfloat16` needs no loss scale: lecture 10.)
"""


# %% nbgrader={"grade": false, "grade_id": "train", "locked": false, "schema_version": 3, "solution": true, "task": false}
def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    next_batch: Callable[[], tuple[Tensor, Tensor]],
    lr_at: Callable[[int], float],
    steps: range,
    mixed: bool,
    save: Callable[[int], None],
    every: int,
) -> list[float]:
    """Train for these steps, save on the way and at the end, and return the losses."""
    ### BEGIN SOLUTION
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        ids, targets = next_batch()
        with torch.autocast(ids.device.type, dtype=torch.bfloat16, enabled=mixed):
            loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        if (step + 1) % every == 0 or step == steps[-1]:
            save(step + 1)
    return losses
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_train", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
import math

import torch

from course_utils.testing import draws, expect, observe, probe


@probe
def trained(student, table, slope, batches, rates, start, mixed, every):
    """Scores, slope · a table, trained by SGD: [losses, tables after each update, what happened at each save].

    The table has two rows of its own for each group; it notes the dtype of a product, and whether autocast
    is on when the batch is asked for and when the update is made.
    """
    import torch

    class Table(torch.nn.Module):
        def __init__(self):
            super().__init__()
            half = table.shape[0] // 2
            self.low = torch.nn.Parameter(table[:half].clone())
            self.high = torch.nn.Parameter(table[half:].clone())

        def forward(self, ids):
            notes.append(str((torch.ones(2, 2) @ torch.ones(2, 2)).dtype))
            return slope * torch.cat([self.low, self.high])[ids]

    class Watched(torch.optim.SGD):
        def step(self, closure=None):
            if torch.is_autocast_enabled("cpu"):
                notes.append("update under autocast")
            super().step()
            after.append(torch.cat([model.low, model.high]).detach().clone())

    notes: list[str] = []
    after: list[torch.Tensor] = []
    saved: list[list[int]] = []
    model = Table()
    model.low.grad, model.high.grad = torch.ones_like(model.low), torch.ones_like(model.high)
    groups: list[dict] = [{"params": [model.low]}, {"params": [model.high], "lr": 9.0}]
    optimizer = Watched(groups, lr=7.0)
    stream = iter(batches)
    end = start + len(batches)

    def save(next_step):
        saved.append([next_step, len(after)])

    losses = student.train(
        model,
        optimizer,
        lambda: next(stream),
        lambda i: rates[i - start],
        range(start, end),
        mixed,
        save,
        every,
    )
    kinds = [type(loss).__name__ for loss in losses]
    return [losses, after, saved, sorted(set(notes)), sorted(set(kinds))]


def by_hand(
    table,
    slope,
    batches,
    rates,
    *,
    clip=1.0,
    piled=False,
    stale=False,
    summed=False,
    groups=(True, True),
):
    """Losses and tables from first principles; the arguments are mistakes."""
    table = table.double()
    half = table.shape[0] // 2
    losses, after = [], []
    before = torch.ones_like(table) if stale else torch.zeros_like(table)
    for (ids, targets), rate in zip(batches, rates, strict=True):
        gradient = torch.zeros_like(table)
        loss, pairs = (
            0.0,
            list(zip(ids.flatten().tolist(), targets.flatten().tolist(), strict=True)),
        )
        for i, target in pairs:
            powers = (slope * table[i]).exp()
            chances = powers / powers.sum()
            loss -= math.log(chances[target].item())
            chances[target] -= 1
            gradient[i] += slope * chances
        count = 1 if summed else len(pairs)
        gradient, loss = gradient / count + before, loss / count
        if clip == "value":
            gradient = gradient.clamp(-1, 1)
        elif clip == "always":
            gradient = gradient / gradient.norm()
        elif clip == "each":
            parts = [
                part / max(part.norm().item(), 1.0)
                for part in (gradient[:half], gradient[half:])
            ]
            gradient = torch.cat(parts)
        elif clip is not None:
            gradient = gradient / max(gradient.norm().item() / clip, 1.0)
        before = gradient if piled else torch.zeros_like(table)
        rates_of = [rate if groups[0] else 7.0, rate if groups[1] else 9.0]
        each = torch.tensor([rates_of[0]] * half + [rates_of[1]] * (len(table) - half))
        table = table - each.double()[:, None] * gradient
        losses.append(loss)
        after.append(table.float())
    return losses, after


def check_training(table, slope, batches, rates, start, mixed, every):
    seen = observe(trained, table, slope, batches, rates, start, mixed, every)
    value = seen.value
    if not isinstance(value, list) or len(value) != 5:
        expect(value, "losses", hint="Return a list with the loss of each step.")
    losses, after, saved, notes, kinds = value
    end = start + len(batches)
    on, off = "torch.bfloat16", "torch.float32"
    expect(
        notes,
        [on if mixed else off],
        about=f"what is multiplied in the model, with mixed={mixed}",
        mistakes=[
            (
                [off],
                "The model did not run under autocast: with torch.autocast(…, enabled=mixed).",
            ),
            ([on], "Autocast is on though mixed is False: enabled=mixed."),
            (["torch.float16"], "float16 would need a loss scale: dtype=torch.bfloat16."),
            ([on, "update under autocast"], "Only scores and loss belong under autocast."),
        ],
    )
    right = by_hand(table, slope, batches, rates)
    summed = by_hand(table, slope, batches, rates, summed=True)[0][0]
    mistakes = [(summed, "The loss is the mean over all tokens.")]
    hint = "The cross-entropy of model(ids) with targets, before the first update."
    first = losses[0] if isinstance(losses, list) and losses else losses
    expect(first, right[0][0], about="first loss", mistakes=mistakes, tolerance=1e-4, hint=hint)
    clipped = "Shrink the gradients where their norm is above 1: between backward and step."
    wrong: list[tuple[dict, str]] = [
        (dict(clip=None), clipped),
        (dict(clip="value"), "clip_grad_norm_, not clip_grad_value_: the direction must stay."),
        (dict(clip="always"), "A norm below 1 stays as it is."),
        (dict(clip="each"), "One norm for all gradients together, not one for each parameter."),
        (dict(piled=True), "Gradients pile up from step to step: zero_grad before backward."),
        (
            dict(stale=True),
            "The gradient that was there before belongs to nobody: zero_grad first.",
        ),
        (dict(stale=True, piled=True), "Gradients pile up: zero_grad before each backward."),
        (dict(groups=(False, False)), "The learning rate of the groups is never set."),
        (dict(groups=(True, False)), "Set the learning rate of every group."),
    ]
    mistakes = []
    for flaw, why in wrong:
        flaws = [flaw] if "clip" in flaw else [flaw, flaw | {"clip": None}]
        mistakes += [(by_hand(table, slope, batches, rates, **each)[1], why) for each in flaws]
    for shift in (1, -1):
        others = [*rates[1:], rates[-1]] if shift == 1 else [rates[0], *rates[:-1]]
        mistakes.append(
            (
                by_hand(table, slope, batches, others)[1],
                "lr_at(step), before the update of that step.",
            )
        )
    mistakes = [
        (tables, why)
        for tables, why in mistakes
        if any(
            not torch.allclose(a, b, atol=1e-5) for a, b in zip(tables, right[1], strict=True)
        )
    ]
    expect(
        len(after),
        len(batches),
        about="updates",
        hint="One batch and one update for each step.",
    )
    hint = "Rate, batch, loss, zero_grad, backward, clip, step: in this order."
    expect(
        after, right[1], about="after each update", mistakes=mistakes, tolerance=1e-4, hint=hint
    )
    short = "The loss as a float: loss.item(), or each tensor keeps its graph alive."
    expect(kinds, ["float"], about="what the losses are", mistakes=[(["Tensor"], short)])
    later = by_hand(table, slope, batches, rates)[0][1:] + losses[-1:]
    mistakes = [(later, "The loss of the step, before its update.")]
    expect(losses, right[0], about="losses", mistakes=mistakes, tolerance=1e-4)

    def saves(numbers):
        """The saves that there would be with these as next steps."""
        return [[n, n - start] for n in numbers]

    through = range(start + 1, end + 1)
    wanted = [n for n in through if n % every == 0 or n == end]
    early = [n for n in through if (n - 1) % every == 0 or n == end]
    at = saves(wanted)
    often = "Where step + 1 is a multiple of every: its number counts, not how many were done."
    cases = [
        (saves(through), "Not after each step: see every."),
        (saves(n for n in wanted if n % every == 0), "The last step is saved in any case."),
        (saves([end]), "Save on the way as well, not only at the end."),
        ([[n - 1, done] for n, done in at], "save gets the next step: step + 1."),
        ([[n, done - 1] for n, done in at], "Save after the update: that step is done."),
        ([], "Nothing is saved: call save(step + 1)."),
        ([*at, at[-1]], "The last step is saved twice."),
        (saves([*range(start + every, end, every), end]), often),
        (saves(early), often),
        ([[n - 1, done] for n, done in saves(early)], often),
    ]
    mistakes = [(case, why) for case, why in cases if case != at]
    about = "saves: the step that comes next, and how many updates were done"
    hint = (
        "After the update, where (step + 1) % every == 0 or step == steps[-1]: save(step + 1)."
    )
    expect(saved, at, about=about, mistakes=mistakes, hint=hint)


generator = torch.Generator().manual_seed(1)
table = 3 * torch.randn(4, 5, generator=generator)


def some_batches(count, rows, numbers, size):
    return [
        tuple(torch.randint(top, size, generator=generator) for top in (rows, numbers))
        for _ in range(count)
    ]


# Steep scores have large gradients, which are clipped; those of flat ones are not.
check_training(table, 6.0, some_batches(3, 4, 5, (2, 3)), [0.5, 0.25, 1.0], 0, False, 2)
check_training(table, 0.5, some_batches(3, 4, 5, (2, 3)), [0.5, 2.0, 1.0], 0, True, 2)
check_training(table, 3.0, some_batches(3, 4, 5, (1, 4)), [1.0, 0.5, 3.0], 1, False, 2)
### BEGIN HIDDEN TESTS
draw = draws()
generator = torch.Generator().manual_seed(draw.integer(0, 9_999))
for lowered in (False, True):
    for slope in (0.5, 5.0):
        half, count = draw.integer(2, 4), draw.integer(4, 7)
        numbers, start, every = draw.sizes(3, 2, 6)
        table = 3 * draw.tensor(2 * half, numbers)
        rates = [draw.integer(1, 30) / 10 for _ in range(count)]
        batches = some_batches(count, 2 * half, numbers, draw.sizes(2, 2, 4))
        check_training(table, slope, batches, rates, start, lowered, every)
### END HIDDEN TESTS

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Under autocast stand two lines: the scores, and <code>F.cross_entropy(scores.flatten(0, 1), targets.flatten())</code>. It takes <code>ids.device.type</code>, a dtype, and <code>enabled</code>.</details>
<details><summary>Hint 2</summary>After <code>backward()</code> comes <code>nn.utils.clip_grad_norm_(model.parameters(), 1.0)</code>, then <code>step()</code>, then <code>loss.item()</code>, then perhaps <code>save</code>.</details>

**Why it matters.** This loop would train a model of any size. What large runs add is speed, and more machines.
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
        train(
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
held_out_losses: dict[int, float] = {}
every = preset.steps // LOOKS
stop = 2 * every


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
        held_out_losses[step] = held_out_loss(model)
        print(f"step {step:>5,}: held-out loss {held_out_losses[step]:.3f}")

    devices.synchronize(device)
    began = time.perf_counter()
    losses = train(model, optimizer, next_batch, lr_at, steps, mixed, save, every)
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

What has it learned? Let it write. It draws one byte after the other; the *temperature* 0.7 makes likely ones more likely.
"""


# %% tags=["timed"]
def write(model: nn.Module, start: bytes, count: int, temperature: float = 0.7) -> str:
    """The start, and `count` bytes that the model goes on with."""
    ids = list(start)
    speaker = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for _ in range(count):
            seen = torch.tensor([ids[-preset.context :]], device=device)
            chances = (model(seen)[0, -1].float() / temperature).softmax(dim=-1).cpu()
            ids.append(int(torch.multinomial(chances, 1, generator=speaker)))
    return bytes(ids).decode(errors="replace")


sample = write(model, b"    def ", 300)
print(sample)
assert len(sample.encode()) >= 300

# %% [markdown]
r"""
It has never been told what a word is, let alone an indent. All that it knows is which byte tends to come next; and that
it learned in a few minutes, on a machine that you own.

*Try it yourself:* a temperature of 0.2, and one of 1.5. Then another start: `b"class "`, `b"import "`.

## 6 · The reckoning

### Exercise 12.6 · What is off? &nbsp; ★☆☆ &nbsp; 10 minutes

Write `discrepancies(planned, measured, tolerances)`. All three are dicts by name. A number is off if it differs from the
plan by *more* than its tolerance, in either direction, as a share of what was *planned*: 0.02 stands for 2 %, and 0 for
exactly. Return a dict of those that are off, with the share as value: −0.3 if 30 % less was measured than planned. A
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
        elif abs(share := measured[name] / plan - 1) > tolerances[name]:
            off[name] = share
    return off
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_discrepancies", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
from course_utils.testing import expect, observe

not_measured = "What was planned and not measured is off, too: its value is None."
less = "Less than planned is off as well: compare the magnitude."
of_plan = "As a share of what was planned, not of what was measured."
sign = "Keep the sign: measured less than planned is negative."
divide = "As a share: divide by what was planned."
ratio = "That is measured ÷ planned; subtract 1."
percent = "A share, not percent: 0.02 stands for 2 %."
only_off = "Only those that are off by more than their tolerance."
more_than = (
    "By more than its tolerance: at the edge a number is not off, and an equal one never is."
)

plan = {"parameters": 100, "bytes": 200.0, "seconds": 8.0, "loss": 2.0}
came_out = {"parameters": 100, "bytes": 201.0, "seconds": 6.0, "samples": 3}
allowed = {"parameters": 0, "bytes": 0.01, "seconds": 0.125, "loss": 0.125}
mistakes = [
    ({"seconds": -0.25}, not_measured),
    ({"loss": None}, less),
    ({"seconds": -1 / 3, "loss": None}, of_plan),
    ({"seconds": 0.25, "loss": None}, sign),
    ({"seconds": -2.0, "loss": None}, divide),
    ({"seconds": 0.75, "loss": None}, ratio),
    ({"seconds": -25.0, "loss": None}, percent),
    ({"parameters": 0.0, "bytes": 0.005, "seconds": -0.25, "loss": None}, only_off),
    ({"parameters": 0.0, "seconds": -0.25, "loss": None}, more_than),
    ({"seconds": -0.25, "loss": -1.0}, not_measured),
    (["seconds", "loss"], "A dict: each name with its share."),
]
hint = (
    "For each planned name: measured / planned - 1, and is its magnitude above the tolerance?"
)
seen = observe(discrepancies, plan, came_out, allowed)
expect(seen.value, {"seconds": -0.25, "loss": None}, mistakes=mistakes, hint=hint)
seen = observe(discrepancies, {"FLOPs": 64}, {"FLOPs": 65}, {"FLOPs": 0})
more = "More than planned is off as well; and a tolerance of 0 stands for exactly."
expect(seen.value, {"FLOPs": 1 / 64}, mistakes=[({}, more)], hint=hint)
seen = observe(discrepancies, {"seconds": 4.0}, {"seconds": 5.0}, {"seconds": 0.25})
expect(seen.value, {}, mistakes=[({"seconds": 0.25}, more_than)], hint=hint)
### BEGIN HIDDEN TESTS
from course_utils.testing import draws


def off_by(planned, measured, tolerances, *, sides=(1, 1), of_measured=False):
    """What is off, from its definition; the keyword arguments are mistakes."""
    found = {}
    for name, plan in planned.items():
        if name in measured:
            now = measured[name]
            low, high = plan - tolerances[name] * plan, plan + tolerances[name] * plan
            if (now < low and sides[0]) or (now > high and sides[1]):
                found[name] = (now - plan) / (now if of_measured else plan)
        else:
            found[name] = None
    return found


def check_off(planned, measured, tolerances):
    given = (planned, measured, tolerances)
    right = off_by(*given)
    shares = {name: share for name, share in right.items() if share is not None}
    missing = {name: None for name in right if name not in shares}
    mistakes = [
        (shares, not_measured),
        (off_by(*given, sides=(0, 1)), less),
        (off_by(*given, sides=(1, 0)), "More than planned is off as well."),
        (off_by(*given, of_measured=True), of_plan),
        (missing | {name: abs(share) for name, share in shares.items()}, sign),
        (missing | {name: -share for name, share in shares.items()}, sign),
        (missing | {name: 1 + share for name, share in shares.items()}, ratio),
        (missing | {name: 100 * share for name, share in shares.items()}, percent),
        (missing | {name: measured[name] - planned[name] for name in shares}, divide),
    ]
    mistakes = [(case, why) for case, why in mistakes if case != right]
    seen = observe(discrepancies, *given)
    expect(seen.value, right, mistakes=mistakes, hint=hint)
    expect(seen.mutated, [], about="arguments changed")


draw = draws()
names = ["parameters", "FLOPs", "bytes", "seconds", "tokens"]
for _ in range(6):
    plan = {name: 64 * draw.integer(1, 50) for name in names}
    allowed = {name: draw.choice([0, 1 / 16, 1 / 4]) for name in names}
    came_out = {"temperature": 36.6}
    for name in names:
        # Multiples of a 32nd of the plan are exact, so that the edge of a tolerance is an edge.
        part = draw.choice([-24, -10, -8, -4, -2, -1, 0, 0, 1, 2, 4, 8, 10, 40])
        came_out[name] = plan[name] + plan[name] // 32 * part
    del came_out[draw.choice(names)]
    check_off(plan, came_out, allowed)
check_off({"parameters": 10**6}, {"parameters": 10**6 + 1}, {"parameters": 0})
check_off({}, {"seconds": 1.0}, {})
### END HIDDEN TESTS

# %% [markdown]
r"""
<details><summary>Hint 1</summary><code>measured[name] / planned[name] - 1</code> is the share. With a tolerance of 0 an equal number is not off: more than, not at least.</details>
<details><summary>Hint 2</summary>Go through <code>planned</code>, and ask first whether the name is in <code>measured</code>.</details>

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
        train(
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

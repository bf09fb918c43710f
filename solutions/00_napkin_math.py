# %% [markdown]
r"""
# 00 · Napkin math

[01 · Tensors →](../01_tensors/01_tensors.ipynb)

> **How long does it take to train a model of 70 billion parameters on 15 trillion tokens, with 1,024 H100s?**
>
> **What is the largest model that you can train on eight H100s?**

Welcome to *Every Byte, Every FLOP*. Engineers answer questions like these on the back of a napkin, a minute before
somebody spends ten million dollars, and in this lecture you'll answer both. You don't need to know anything about
language models or PyTorch yet: we explain parameters, tokens and H100s as they come up. A few short formulas, three
constants and careful units are enough. By the end you'll also know how far to trust such answers, because you'll have
tested a function of your own against published figures for nine training runs.

**How this course works.** Each lecture is a notebook. Run its cells in order (<kbd>Shift</kbd> + <kbd>Enter</kbd>).
Where code can check a claim, a cell next to it usually does so with an `assert`, a line that stops with an error if the
claim is false, so you rarely have to take our word for it. Where the text says *predict*, replace `None` with a number,
even a rough one, and keep going: the next cell puts it next to the result. A guess that is far off shows you what to
look at. Your guesses stay on your machine, in a file called `predictions.json`, and at the end of this lecture you'll
see them all in one picture. Where it says *try it yourself*, change a cell and see what happens; an `assert` that fails
then was about the values before your change.

Exercises are rated ★ to ★★★, with a rough time in minutes for each. If you're short of time, do those marked
*essential* first: they carry the main ideas. Write your code where it says `# YOUR CODE HERE`. The cell below it tries
your code on a few cases and tells you what went wrong if it recognizes the mistake; if you submit the notebook, an
automatic grader tries many more. *Validate* in the toolbar runs all the checks at once. Everything runs on a laptop,
and the same notebooks use a GPU if you have one.
"""

# %%
import math

import torch
from torch import nn

from course_utils import device as devices
from course_utils import facts, hardware, plots
from course_utils.facts import FACTS
from course_utils.predict import calibration, reconcile
from course_utils.progress import show_progress
from course_utils.units import format_bytes, readable
from course_utils.testing import check

device = devices.pick_device()
print(devices.describe(device))
show_progress()

# %% [markdown]
r"""
## 1 · Two resources

Training a model takes two resources, and this course keeps track of both.

- *Memory*, counted in bytes (B). Every number that training needs has to be stored somewhere. If there isn't enough
  room, training doesn't run at all. A gigabyte, 1 GB, is $10^9$ bytes.
- *Compute*, counted in FLOPs. A **FLOP**, or *floating-point operation*, is one addition or one multiplication of two
  numbers. If training takes too many, it won't finish in your lifetime.

The name hides a trap. *FLOPs* is a count: how much work there is. **FLOP/s** is a rate: how many FLOPs a machine does
per second. Many texts write "FLOPS" for both; in this course a rate always has its "/s". Divide a count by a rate and
you get seconds. Write the units next to the numbers and cancel them as you would in physics, and many mistakes become
visible.

How many FLOPs is a lot? Here are some published counts. The published numbers that our code uses come from one table,
`FACTS`, which says who published each of them and when.
"""

# %% tags=["item-45", "item-46", "item-47"]
gpt3 = FACTS["GPT-3 training FLOPs"].value
gpt4 = FACTS["GPT-4 training FLOPs"].value
us_threshold = FACTS["US reporting threshold"].value

assert gpt3 == 3.14e23
assert f"{gpt4:.0e}" == "2e+25"
assert us_threshold == 1e26
assert 60 < gpt4 / gpt3 < 70

facts.table(
    "GPT-3 training FLOPs",
    "GPT-4 training FLOPs",
    "Llama 3.1 405B training FLOPs",
    "US reporting threshold",
    "EU systemic-risk threshold",
)

# %% [markdown]
r"""
Training GPT-3, OpenAI's 2020 model, took $3.14 \cdot 10^{23}$ FLOPs. OpenAI never published a figure for GPT-4; the
table's $2 \cdot 10^{25}$ is an outside estimate. A 2023 US executive order required companies to report any training
run above $10^{26}$ FLOPs, until it was revoked in January 2025. The EU's 2024 AI Act sets its threshold for "systemic
risk", which has applied since 2025, at $10^{25}$. A law can use such a count because, as you'll see, anybody who knows
the size of a model and of its training data can compute it.

Now we need a rate. An *H100* is a *GPU* (graphics processing unit), a card that NVIDIA makes for training and running
models. (Its fastest version is called *SXM*; that's the one we mean whenever we say H100.) A card's **peak** is the
highest rate, in FLOP/s, that its maker promises. The H100's data sheet lists $1{,}979 \cdot 10^{12}$ FLOP/s for 16-bit
numbers, with a footnote: *with sparsity*. That number applies only to multiplying two matrices when half the numbers in
one of them are zeros, arranged in a fixed pattern. A **dense** matrix is an ordinary one, in which any number may be
nonzero; for dense matrices the peak is half as high: 989.5 TFLOP/s (one TFLOP/s is $10^{12}$ FLOP/s), or about
$10^{15}$ FLOP/s. (Lecture 05 explains the footnote. For now, just remember to ask whether a peak is dense.)

**Predict.** You rent eight H100s for two weeks and run them at that dense peak, which real programs never reach. How
many such two-week rentals would it take to train GPT-3?
"""

# %%
guess = None  # two-week rentals of eight H100s

# %% tags=["item-50"]
h100 = FACTS["H100 SXM sparse peak, as printed"].value / 2  # FLOP/s, dense
two_weeks_long = 14 * 24 * 3600  # s
budget = 8 * h100 * two_weeks_long  # cards · FLOP/s · s = FLOPs
print(f"eight H100s, two weeks: {readable(budget, 'FLOPs')}")
reconcile("GPT-3's training", guess, gpt3 / budget, "two-week rentals of eight H100s")

assert f"{budget:.2e}" == "9.58e+21"
assert round(gpt3 / budget) == 33
# NVIDIA rounds the dense peak to 989.4; nothing in this lecture depends on the difference.
assert math.isclose(h100, FACTS["H100 SXM bfloat16 peak"].value, rel_tol=2e-4)

# %%
runs = {
    "GPT-3 (2020)": gpt3,
    "Chinchilla (2022)": FACTS["Chinchilla training FLOPs"].value,
    "GPT-4 (2023), an estimate": gpt4,
    "Llama 3.1 405B (2024)": FACTS["Llama 3.1 405B training FLOPs"].value,
}
ours = "eight H100s for two weeks"
finding = f"Training GPT-3 took {gpt3 / budget:.0f} times what eight H100s can do in two weeks"
plots.show(
    plots.magnitudes(
        {ours: budget, **runs},
        unit="FLOPs",
        lines={
            "EU threshold, since 2025": FACTS["EU systemic-risk threshold"].value,
            "US reporting threshold, 2023 to 2025": us_threshold,
        },
        highlight=[ours],
        title=finding,
    ),
    alt=f"Training FLOPs on a logarithmic axis from 1e21 to 1e27. {finding}; Llama 3.1 405B took "
    "120 times as much as GPT-3. No model shown reaches the US threshold of 1e26; GPT-4 and "
    "Llama 3.1 405B exceed the EU's of 1e25.",
)

assert 120 < runs["Llama 3.1 405B (2024)"] / gpt3 < 122
assert max(runs.values()) < us_threshold
assert gpt4 > FACTS["EU systemic-risk threshold"].value > runs["Chinchilla (2022)"]

# %% [markdown]
r"""
Each step on the axis of this figure is a factor of ten. That's the right scale for napkin math: the question is rarely
whether the answer is 70 or 77, but whether it's 7, 70 or 700.

What about your own machine? The cell after your guess spends a second measuring how fast your machine multiplies
matrices.

**Predict.** How many *years* would your machine need for GPT-3's $3.14 \cdot 10^{23}$ FLOPs? A year has about 30
million seconds. (A laptop's processor typically multiplies matrices at $10^{10}$ to $10^{12}$ FLOP/s.)
"""

# %%
guess = None  # years

# %% tags=["timed"]
dtype = torch.bfloat16 if devices.on_gpu(device) else torch.float32
ceiling = hardware.measured_ceiling(device, dtype, max_seconds=1)
year = 365.25 * 24 * 3600  # s
print(f"this machine's best: {readable(ceiling.flops_per_second, 'FLOP/s')}, in {dtype}")
reconcile("GPT-3 on this machine", guess, gpt3 / ceiling.flops_per_second / year, "years")

assert 3.1e7 < year < 3.2e7  # handy: π times ten million, to within half a percent
assert math.isclose(year, math.pi * 1e7, rel_tol=0.005)

# %% [markdown]
r"""
*Try it yourself:* `facts.table()` shows all of `FACTS`, and
`facts.table("A100 SXM 80GB bfloat16 peak", "B200 bfloat16 peak")` compares an older card with a newer one, at a 16-bit
number format (section 4). How many of the older cards would you need to replace one of the newer ones?

## 2 · How long does it take?

To answer the first question we need a count and a rate.

*The count.* A **parameter** is a number in the model that training adjusts (Meta's Llama 3.1 405B has 405 billion of
them). A **token** is a piece of text, a word or part of one; the model sees its training data as a long sequence of
tokens. In the **forward pass** the model reads the text and predicts each next token. For each token it multiplies each
parameter by a number and adds the product to a running sum: 2 FLOPs per parameter. The **backward pass** then works out
how each parameter should change to improve the predictions, and this takes twice as much work: 4 FLOPs. So

$$\begin{split}
\text{training FLOPs} & \approx 6 \cdot \text{parameters} \cdot \text{tokens} \\
& = 6 \, N \, D .
\end{split}$$

Lecture 05 derives the 2 and lecture 06 derives the 4, down to the last FLOP, and both show where the rule breaks down.
The formula knows nothing about the model except its size. Does it still give the right answer?
"""

# %%
for name in ("GPT-3", "Chinchilla", "Llama 3.1 405B"):
    parameters, tokens = FACTS[f"{name} parameters"].value, FACTS[f"{name} tokens"].value
    published = FACTS[f"{name} training FLOPs"].value
    work = 6 * parameters * tokens
    print(f"{name:>14}: 6 · N · D = {work:.2e}, published {published:.2e} FLOPs")
    assert math.isclose(work, published, rel_tol=0.03)

# %% [markdown]
r"""
All three are within 3% of the published number. (That's less of a test than it looks: the GPT-3 paper computed its
figure by the same rule. Section 7 tests the rule against the GPU time of seven real runs, and of two whose authors
calculated it from a measured speed.)

*The rate.* If every GPU did useful arithmetic all the time, the rate would be the number of GPUs times their peak. In
practice they also wait: for data, for each other, for the next piece of work. The **model FLOPs utilization**, or
**MFU**, of a training run is the share of the dense peak that goes into the model's own FLOPs, the $6 \, N \, D$ of the
formula. (In lecture 05 you'll measure the MFU that your own machine reaches.) So

$$\text{seconds} = \frac{6 \, N \, D}{\text{GPUs} \cdot \text{peak} \cdot \text{MFU}} .$$

An MFU of 0.4 to 0.5 is good. Here's what professional teams have reached:
"""

# %%
reached = [
    "GPT-3 MFU",
    "Gopher MFU",
    "PaLM 540B MFU",
    "Megatron 1T MFU",
    "MosaicML 7B MFU",
    "Llama 3.1 405B MFU, 8,192 GPUs",
    "Llama 3.1 405B MFU, long context",
]
assert all(0.2 < FACTS[name].value < 0.6 for name in reached)
assert [FACTS[name].value for name in reached[-2:]] == [0.43, 0.38]
facts.table(*reached)

# %% [markdown]
r"""
### Exercise 0.1 · How many days &nbsp; ★☆☆ &nbsp; essential &nbsp; 5 minutes

Write `training_days(parameters, tokens, devices, peak_flops, mfu)`. It returns how many days the training takes by the
formula above, unrounded. `peak_flops` is the dense peak of *one* device (here, a GPU) in FLOP/s, and `mfu` is a
fraction, such as 0.5. All arguments are positive.
"""


# %% nbgrader={"grade": false, "grade_id": "training_days", "locked": false, "schema_version": 3, "solution": true, "task": false}
def training_days(
    parameters: float, tokens: float, devices: int, peak_flops: float, mfu: float
) -> float:
    """Days to train, at 6 FLOPs per parameter per token, on devices that reach a fraction mfu of their peak."""
    ### BEGIN SOLUTION
    work = 6 * parameters * tokens
    rate = devices * peak_flops * mfu
    return work / rate / (24 * 3600)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_training_days", "locked": true}
check("training_days")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Three lines: the work in FLOPs, the rate in FLOP/s, and their quotient in days.</details>
<details><summary>Hint 2</summary>The formula gives seconds. How many of them are there in a day?</details>

**Why it matters.** This function tells you whether a training plan can finish in time.

Now you can answer the first question, if you assume an MFU. Llama 3.1 405B reached 0.38 to 0.43. So we assume 0.4, here
and in the rest of this lecture, and section 7 tests how good a choice that is.

**Predict.** How many days does the training in the first question take? You may use your function, but try it in your
head first: $6 \cdot 70 \cdot 10^9 \cdot 15 \cdot 10^{12}$ FLOPs, about $10^{15}$ FLOP/s from each GPU, and about $10^5$
seconds in a day.
"""

# %%
guess = None  # days

# %% tags=["item-1"]
work = 6 * 70e9 * 15e12
days = training_days(70e9, 15e12, 1024, h100, 0.4)
print(f"{work:.1e} FLOPs")
reconcile("70 B parameters, 15 T tokens, 1,024 H100s at MFU 0.4", guess, days, "days")

assert math.isclose(work, 6.3e24)
assert round(days, 1) == 179.9

# %% [markdown]
r"""
Here is how to do it in your head. Write each number as a digit or two and a power of ten, and work on the two parts
separately:
"""

# %%
digits = 6 * 7 * 1.5  # = 63
exponent = 10 + 13  # 70 B = 7e10, 15 T = 1.5e13
assert math.isclose(digits * 10**exponent, work)

rate = 1e3 * 1e15 * 0.4  # a thousand cards, 1e15 FLOP/s each, 40% of it
napkin = work / rate / 1e5  # a day is nearly 1e5 s
print(f"on the napkin {napkin:.1f} days, with all digits {days:.1f}")
assert abs(napkin / days - 7 / 8) < 0.01
assert 24 * 3600 == 86_400

# %% [markdown]
r"""
The napkin's number is an eighth too low, almost entirely because a day has 86,400 seconds and not 100,000. That's good
enough for most purposes, since you rarely know the MFU any more precisely than that. Three constants are worth
remembering: *an H100 does $10^{15}$ FLOP/s, a day has $10^5$ seconds, and a good MFU is 0.4 to 0.5.*

How much does the answer depend on the assumptions?
"""

# %% tags=["error-14"]
cases = {
    "as asked": (h100, 0.4),
    "MFU 0.5": (h100, 0.5),
    "MFU 0.2, like GPT-3's": (h100, 0.2),
    "the sparse peak, by mistake": (2 * h100, 0.4),
    "MFU forgotten, by mistake": (h100, 1.0),
}
for case, (peak, mfu) in cases.items():
    print(f"{training_days(70e9, 15e12, 1024, peak, mfu):6.1f} days: {case}")

assert round(training_days(70e9, 15e12, 1024, h100, 0.5)) == 144
assert round(training_days(70e9, 15e12, 1024, 2 * h100, 0.4)) == 90
assert round(training_days(70e9, 15e12, 1024, h100, 1.0)) == 72

# %% [markdown]
r"""
Stanford's CS336, whose second lecture this course follows, assumes an MFU of 0.5 and gets 144 days.

> **Trap: words that hide a factor of two.** "An H100 does 2 PFLOP/s" ($2 \cdot 10^{15}$ FLOP/s) quotes the sparse peak
> and gives 90 days instead of 180. A text that counts a multiplication and an addition together as one "FLOP" halves
> the work, and you get 90 again. A plan "at full speed" leaves out the MFU and gives 72. Make two of these mistakes and
> the plan is off by a factor of four or five. When an answer surprises you by a factor of two, go through this list.

*Try it yourself:* how many days would 16,384 H100s need? Would the MFU stay the same?

## 3 · What is worth training?

The formula for the FLOPs has two unknowns, $N$ and $D$. With a given budget of FLOPs you can train a large model on
little text or a small model on a lot of it. Which choice gives the best model? In 2022 a group at DeepMind trained more
than 400 models to find out (Hoffmann and others, the *Chinchilla* paper). They fitted a scaling law to the results. A
**scaling law** is a formula that predicts how good a model will be from its size, its training data and the compute
spent on it. According to DeepMind's, the **compute-optimal** choice, the best one for a given budget, is roughly *20
tokens per parameter*, so the model and the data should both grow with the *square root* of the budget.

### Exercise 0.2 · Model and data for a budget &nbsp; ★★☆ &nbsp; essential &nbsp; 10 minutes

Write `compute_optimal(flops, tokens_per_parameter)`. It returns the pair `(parameters, tokens)` for which $6 \, N \, D
= $ `flops` and $D = $ `tokens_per_parameter` $\cdot\, N$, unrounded. By default there are 20 tokens per parameter. Both
arguments are positive; the ratio needn't be a whole number and may even be less than 1.
"""


# %% nbgrader={"grade": false, "grade_id": "compute_optimal", "locked": false, "schema_version": 3, "solution": true, "task": false}
def compute_optimal(flops: float, tokens_per_parameter: float = 20.0) -> tuple[float, float]:
    """(parameters, tokens) that use up a budget of training FLOPs at a given ratio of tokens to parameters."""
    ### BEGIN SOLUTION
    parameters = math.sqrt(flops / (6 * tokens_per_parameter))
    return parameters, tokens_per_parameter * parameters
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_compute_optimal", "locked": true}
check("compute_optimal")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Put D = ratio · N into 6 · N · D. Only one unknown is left, and it's squared.</details>
<details><summary>Hint 2</summary>Solve for N², then take the square root of the whole right-hand side. D follows from N.</details>

**Why it matters.** With a hundred times the budget, you should train a model ten times as large on ten times the data.
A team that makes the model a hundred times as large, on the same data, wastes most of its budget.

**Predict.** You have eight H100s for two weeks, at an MFU of 0.4. How large a model should you train? Answer in
billions of parameters.
"""

# %%
guess = None  # billion parameters

# %%
affordable = 0.4 * budget
parameters, tokens = compute_optimal(affordable)
reconcile(
    "the model for two weeks of eight H100s", guess, parameters / 1e9, "billion parameters"
)
print(f"on {tokens / 1e9:.0f} billion tokens")

assert round(parameters / 1e9, 1) == 5.6 and round(tokens / 1e9) == 113
# back to the two weeks
assert math.isclose(training_days(parameters, tokens, 8, h100, 0.4), 14)

four_times, _ = compute_optimal(4 * affordable)
assert math.isclose(four_times, 2 * parameters)

# %% [markdown]
r"""
Let's see what this rule says about real models, and how many parameters and tokens would be compute-optimal for the
same FLOPs.
"""

# %%
print(f"{'':>14}{'parameters':>11}{'tokens':>8}{'ratio':>7}   compute-optimal")
for name in (
    "GPT-3",
    "Gopher",
    "Chinchilla",
    "Llama 3.1 405B",
    "Llama 3.1 70B",
    "Llama 3.1 8B",
):
    n = FACTS[f"{name} parameters"].value
    d = FACTS.get(f"{name} tokens", FACTS["Llama 3.1 tokens"]).value
    best_n, best_d = compute_optimal(6 * n * d)
    print(
        f"{name:>14}{n / 1e9:>9.0f} B{d / 1e12:>6.1f} T{d / n:>7,.0f}"
        f"   {best_n / 1e9:,.0f} B on {best_d / 1e12:.1f} T"
    )

assert FACTS["Chinchilla tokens"].value / FACTS["Chinchilla parameters"].value == 20
assert FACTS["GPT-3 tokens"].value / FACTS["GPT-3 parameters"].value < 2
assert round(FACTS["Llama 3.1 tokens"].value / FACTS["Llama 3.1 8B parameters"].value) == 1868
small, data = compute_optimal(gpt3)
assert round(small / 1e9) == 51 and round(data / 1e12, 1) == 1.0

# %% [markdown]
r"""
GPT-3 was trained on fewer than 2 tokens per parameter. By the rule, 51 billion parameters and a trillion tokens would
have been a better use of its FLOPs. Llama 3.1 8B, on the other hand, was trained on 1,868 tokens per parameter! Was
that a mistake? No: a model is trained once and used for years, and a small one is cheaper every time it's used.
"Compute-optimal" means the best model for a given number of training FLOPs, so it considers only the *training* bill.
Know what a rule optimizes before you follow it.

A later fit to Chinchilla's data predicts the *loss*, a measure of how bad the model's predictions are, at any ratio
(Besiroglu and others, 2024). The picture below starts with your two-week budget and 20 tokens per parameter. FLOPs are
*wasted* if a model with the best ratio would reach the same loss without them. According to this fit, how much of the
budget is wasted at Llama 3.1 8B's ratio? And how far from 20 can you go before a tenth is wasted?
"""

# %%
from course_utils.explorers import model_or_data

budgeted = model_or_data.explore(3.83e21, ratio=20)  # 0.4 of what eight H100s could do
budgeted.predicted(
    "the model for two weeks of eight H100s",
    "How many billion parameters are best for 3.83e21 FLOPs (two weeks of eight H100s), with 20 tokens for each?",
)

# %% [markdown]
r"""
*Try it yourself:* how large is the compute-optimal model at the US threshold of $10^{26}$ FLOPs? And how do its tokens
compare with the 15 trillion of Llama 3.1?

## 4 · What fits?

The second question is about memory. Training has to keep three things for each parameter:

- the parameter itself;
- its *gradient*, which says how the parameter should change; the backward pass computes it (lecture 06);
- the **optimizer state**, which is whatever the optimizer remembers from one step to the next. (The optimizer is the
  algorithm that changes the parameters.) Plain stochastic gradient descent (SGD) remembers nothing. With *momentum* it
  keeps one number per parameter. *AdamW*, the usual choice for language models, keeps two: running averages of the
  gradient and of its square, called the *first* and the *second moment*. You'll build it in lecture 08.

Each number takes 4 bytes in the format `float32`, 2 bytes in `bfloat16` or `float16`, and 1 byte in an 8-bit format.
(Lecture 02 explains the bits.) So with everything in `float32`, training with AdamW takes $4 + 4 + 4 + 4 = 16$ bytes
per parameter. The next cell checks this. Don't worry if you can't read its PyTorch yet: it makes a *layer*, one
building block of a model, with a million parameters, runs a forward and a backward pass, lets AdamW take one step, and
counts the bytes that are kept.
"""

# %%
layer = nn.Linear(1_000, 1_000, bias=False, device=device)  # a million parameters
optimizer = torch.optim.AdamW(layer.parameters())
layer(torch.ones(1, 1_000, device=device)).sum().backward()
optimizer.step()

weight = layer.weight
assert weight.grad is not None
state = sum(value.nbytes for value in optimizer.state[weight].values())
kept = weight.nbytes + weight.grad.nbytes + state
print(f"{weight.nbytes:,} + {weight.grad.nbytes:,} + {state:,} B = {kept:,} B")
assert kept == 16 * weight.numel() + 4  # 4 bytes more in all: AdamW counts its steps

# %% [markdown]
r"""
Can we get by with less? In the common recipe, **mixed precision**, most of the arithmetic is done in a 16-bit format,
because an H100's peak in `bfloat16` is 15 times its peak in `float32`; the rest is done in `float32`. The version of
the recipe that we count here also stores parameters and gradients in `bfloat16`, in 2 bytes each. But `bfloat16` has
only two or three significant digits, so small updates get rounded away (as lecture 10 shows). The recipe therefore
keeps a second, more precise copy of each parameter in `float32`, the *master copy*, and the optimizer state in
`float32` as well.

**Predict.** How many bytes per parameter does this recipe take, with AdamW?
"""

# %%
guess = None  # bytes per parameter

# %%
# What the recipe keeps of each parameter
mixed = 2 + 2 + 4 + 2 * 4  # parameter, gradient, master copy, two numbers of AdamW
reconcile("bfloat16 with a float32 master copy and AdamW", guess, mixed, "bytes per parameter")

assert mixed == 16
speed_up = FACTS["H100 SXM bfloat16 peak"].value / FACTS["H100 SXM float32 peak"].value
assert round(speed_up) == 15

# %% [markdown]
r"""
### Exercise 0.3 · Bytes per parameter &nbsp; ★☆☆ &nbsp; essential &nbsp; 10 minutes

Write `bytes_per_parameter(parameters, gradients, optimizer, state, master)` for any such recipe. `parameters`,
`gradients`, `state` and `master` are names of dtypes, PyTorch's word for number formats: `"float32"` (4 bytes),
`"bfloat16"` and `"float16"` (2), `"float8"` (1; it stands for any of PyTorch's 8-bit floating-point dtypes).
`optimizer` is `"SGD"`, `"momentum"` or `"AdamW"`; the optimizer state is in the dtype `state`, by default `"float32"`.
`master` is the dtype of the master copy of the parameters, or `None` (the default) if there is none.
"""


# %% nbgrader={"grade": false, "grade_id": "bytes_per_parameter", "locked": false, "schema_version": 3, "solution": true, "task": false}
def bytes_per_parameter(
    parameters: str,
    gradients: str,
    optimizer: str,
    state: str = "float32",
    master: str | None = None,
) -> int:
    """Bytes per parameter: the parameter itself, its gradient, the optimizer state, and a master copy."""
    ### BEGIN SOLUTION
    size = {"float32": 4, "bfloat16": 2, "float16": 2, "float8": 1}
    numbers = {"SGD": 0, "momentum": 1, "AdamW": 2}
    total = size[parameters] + size[gradients] + numbers[optimizer] * size[state]
    if master is not None:
        total += size[master]
    return total
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_bytes_per_parameter", "locked": true}
check("bytes_per_parameter")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Use two small dictionaries: how many bytes each dtype takes, and how many numbers each optimizer keeps.</details>
<details><summary>Hint 2</summary>For each parameter you store the parameter itself, its gradient, zero to two numbers of optimizer state, and perhaps a copy. Each of these has a dtype of its own.</details>

**Why it matters.** "How large a model fits?" has no answer until somebody specifies the recipe. With a `float32` master
copy, 16-bit parameters and gradients save nothing: as far as these numbers go, *mixed precision saves time, not
memory*. You'll find 16 bytes per parameter in the ZeRO paper (Rajbhandari and others, 2019, arXiv:1910.02054) and 18 in
Hugging Face's documentation ("Anatomy of Model's Memory"); a recipe without a master copy, but with AdamW's state in
`float32`, takes 12. All of them are correct:
"""

# %%
assert bytes_per_parameter("bfloat16", "bfloat16", "AdamW") == 12  # no master copy
assert bytes_per_parameter("bfloat16", "bfloat16", "AdamW", master="float32") == 16
assert bytes_per_parameter("bfloat16", "float32", "AdamW", master="float32") == 18

# %% [markdown]
r"""
### GB, GiB and the label on the box

A **gigabyte** (GB) is $10^9$ bytes. A **gibibyte** (GiB) is $2^{30} = 1{,}073{,}741{,}824$ bytes, 7% more. GPU makers
quote memory in GB; many tools count in GiB, and some of those label the result GB. An H100 is sold with 80 GB. You may
read that it has "100 GB" (it doesn't) or see $80 \cdot 1024^3$ in code (that's 80 GiB, or 85.9 GB). How much does it
really have, according to NVIDIA's command `nvidia-smi`?
"""

# %% tags=["error-22"]
label = FACTS["H100 SXM memory"].value
reported = FACTS["H100 SXM memory, as nvidia-smi reports it"].value
print(f"on the label: {format_bytes(label)};  nvidia-smi: {format_bytes(reported)}")

assert label == 80e9
assert label < reported < 80 * 2**30  # neither 80 GB nor 80 GiB
assert round(reported / label - 1, 2) == 0.07
assert math.isclose(2**30 / 1e9, 1.0737, rel_tol=1e-4)

memory = devices.total_memory(device)
if memory is not None:
    print(f"this machine's {device.type}: {format_bytes(memory)}")

# %% [markdown]
r"""
The H100 has about 7% more memory than the label says, but the driver and PyTorch keep some of that for themselves. Plan
with the label, in GB, and treat whatever is left of the extra 7% as your reserve.

### Exercise 0.4 · The largest model &nbsp; ★☆☆ &nbsp; essential &nbsp; 5 minutes

Write `largest_model(devices, memory_gb, bytes_per_parameter, sharded)`. It returns how many parameters fit. Round to
whole numbers or don't, as you like. `memory_gb` is the memory of *one* device as printed on its label, such as 80. A
**sharded** model is split among the devices: each keeps only its equal share of all the numbers (lecture 12), and
`sharded` is `True` unless the caller says otherwise. If the model isn't sharded, *every* device keeps all the numbers,
and more devices make training faster but don't make room for a larger model.
"""


# %% nbgrader={"grade": false, "grade_id": "largest_model", "locked": false, "schema_version": 3, "solution": true, "task": false}
def largest_model(
    devices: int, memory_gb: float, bytes_per_parameter: float, sharded: bool = True
) -> float:
    """How many parameters fit on devices of memory_gb · 10⁹ bytes each, if nothing else is stored there."""
    ### BEGIN SOLUTION
    keeping = devices if sharded else 1
    return keeping * memory_gb * 1e9 / bytes_per_parameter
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_largest_model", "locked": true}
check("largest_model")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Divide the bytes you have by the bytes that each parameter takes.</details>
<details><summary>Hint 2</summary>Whether you can use the memory of all the devices or of only one depends on <code>sharded</code>. And how many bytes is a GB on a label?</details>

**Why it matters.** This function answers the second question. Notice what that question did *not* ask about: the
training data and the time.

**Predict.** How large a model can you train on eight H100s with AdamW, if the model is sharded, everything is in
`float32` and nothing else is in memory? Answer in billions of parameters.
"""

# %%
guess = None  # billion parameters

# %% tags=["item-2", "item-3"]
recipes = {
    "AdamW, all float32": ("float32", "float32", "AdamW", "float32", None),
    "AdamW, bfloat16, float32 master copy": ("bfloat16", "bfloat16", "AdamW", "float32", "float32"),
    "AdamW, bfloat16, no master copy": ("bfloat16", "bfloat16", "AdamW", "float32", None),
    "SGD, all float32": ("float32", "float32", "SGD", "float32", None),
}  # fmt: skip
largest = {}
for recipe, what in recipes.items():
    each = bytes_per_parameter(*what)
    largest[recipe] = largest_model(8, 80, each)
    print(f"{largest[recipe] / 1e9:5.1f} B parameters, {each:2} B each: {recipe}")
model = largest["AdamW, all float32"]
reconcile("the largest model on eight H100s", guess, model / 1e9, "billion parameters")

assert largest["AdamW, all float32"] == 40e9
assert largest["AdamW, bfloat16, float32 master copy"] == 40e9  # faster, not smaller
assert round(largest["AdamW, bfloat16, no master copy"] / 1e9) == 53
assert largest["SGD, all float32"] == 80e9

# %%
# The parts of a model of the largest size, above the cards
finding = "40 billion parameters with AdamW fill eight H100s to the last byte"
plots.show(
    plots.memory_bar(
        {
            "parameters": 4 * model,
            "gradients": 4 * model,
            "first moment": 4 * model,
            "second moment": 4 * model,
        },
        capacity=80e9,
        capacity_label="80 GB card",
        title=finding,
    ),
    alt=f"{finding}: a bar of 640 GB, a quarter each for parameters, gradients and AdamW's first and second "
    "moment, above eight cards of 80 GB. The parameters alone would fit on two.",
)

assert 16 * model == 8 * 80e9
assert 4 * model == 2 * 80e9

# %% [markdown]
r"""
Without a master copy there's room for a third more, so always say which recipe you mean.

CS336 has used two recipes: in [2025](https://github.com/stanford-cs336/spring2025-lectures/blob/main/lecture_02.py)
every number was in `float32`, and in [2026](https://github.com/stanford-cs336/lectures/blob/main/lecture_02.py)
parameters and gradients were in `bfloat16`, without a master copy. Your functions give both of its answers:
"""

# %% tags=["item-2", "item-88", "folded"]
editions = {2025: ("float32", "float32", "AdamW"), 2026: ("bfloat16", "bfloat16", "AdamW")}
answers = {}
for year, recipe_of_year in editions.items():
    each = bytes_per_parameter(*recipe_of_year)
    answers[year] = largest_model(8, 80, each)
    print(f"{year}: {each} B for each of {answers[year] / 1e9:.0f} billion parameters")

assert answers[2025] == 8 * 80e9 / 16 == 40e9
assert math.isclose(answers[2026], 8 * 80e9 / 12) and round(answers[2026] / 1e9) == 53

# %% [markdown]
r"""
And don't forget the *eight*. You may read that a single H100 can train a model this large; in fact one holds an eighth
of it. And even eight hold it only if the model is sharded. If each GPU keeps everything, eight hold no more than one.
"""

# %% tags=["error-22"]
assert largest_model(1, 80, 16) == 5e9
assert largest_model(8, 80, 16, sharded=False) == 5e9

# %% [markdown]
r"""
> **Trap: this count leaves something out.** **Activations** are intermediate results of the forward pass that have to
> stay in memory because the backward pass needs them again. They don't take a fixed number of bytes per parameter. They
> grow with the number of tokens you process at once, which is the batch size times the length of each text. (The
> **batch size** is the number of texts that are processed together.)

The layer that you saw above, for instance, has to remember its input. (Here too, read the numbers and leave the PyTorch
for later.)
"""


# %% tags=["item-4"]
def remembered(tokens: int) -> int:
    """Bytes that the layer keeps for the backward pass."""
    kept: list[int] = []

    def keep(x: torch.Tensor) -> torch.Tensor:
        kept.append(x.nbytes)
        return x

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
        layer(torch.ones(tokens, 1_000, device=device))
    return sum(kept)


for tokens_at_once in (8, 16, 32):
    print(f"{tokens_at_once:>2} tokens: {remembered(tokens_at_once):,} B")
    assert remembered(tokens_at_once) == tokens_at_once * 1_000 * 4  # the input, in float32

# %% [markdown]
r"""
Each time, the number of parameters stayed the same and the activations doubled. What does this mean for GPT-3? It has
96 layers, and each token travels from one layer to the next as a vector of 12,288 numbers. Suppose that each layer
remembers its input and nothing else, at two bytes per number:
"""

# %%
layers, width = FACTS["GPT-3 layers"].value, FACTS["GPT-3 width"].value
context = FACTS["GPT-3 context"].value  # tokens of one text
per_token = 2 * layers * width  # B
for batch in (1, 16, 64):  # texts at once
    activations = per_token * context * batch
    print(f"{batch:>2} × {context:,} tokens: {readable(activations, 'B'):>7}")

assert round(per_token / 1e6, 1) == 2.4  # MB for each token
assert round(per_token * context / 1e9, 1) == 4.8  # GB for each text
assert activations > 3 * label  # more than three cards hold

# %% [markdown]
r"""
That's 2.4 MB for each token and 4.8 GB for each text, and a real layer remembers much more than its input. So a size
such as those 40 billion is an upper bound, and a real run has to leave room. Lecture 08 counts activations to the byte,
and lecture 11 trades them for compute.

*Try it yourself:* what's the largest model for your own machine, or for one RTX 4090 (`FACTS["RTX 4090 memory"]`)?

## 5 · Both at once, and the bill

You now have two answers for eight H100s, and they disagree: a model of 40 billion parameters *fits*, but by the
20-token rule, two weeks is only long enough to *train* one of 5.65 billion. How long would the larger one take, on 20
tokens per parameter and at an MFU of 0.4?
"""

# %%
fits = training_days(40e9, 20 * 40e9, 8, h100, 0.4)
print(f"the largest model that fits, on eight H100s: {fits:.0f} days")

assert round(fits) == 702
assert round(fits / 14) == 50  # 7 times the parameters, 7 times the tokens: 50 times the work

# %% [markdown]
r"""
It would take nearly two years. So "can it be trained on eight GPUs?" has two answers, one for each resource, and the
stricter one counts.

### Exercise 0.5 · How many cards &nbsp; ★★☆ &nbsp; 10 minutes

Write `cards_needed(parameters, tokens, days, peak_flops, mfu, memory_gb, bytes_per_parameter)`. It returns the smallest
number of cards, as an `int`, that can finish the training within `days` *and* hold the model, sharded. `peak_flops` (in
FLOP/s, dense) and `memory_gb` describe one card; the MFU stays the same no matter how many cards there are. All
arguments are positive, and you can rent any number of cards, not only whole servers of eight. A job that just fits
needs no extra card. The tests avoid cases in which a rounding error could change the answer.
"""


# %% nbgrader={"grade": false, "grade_id": "cards_needed", "locked": false, "schema_version": 3, "solution": true, "task": false}
def cards_needed(
    parameters: float,
    tokens: float,
    days: float,
    peak_flops: float,
    mfu: float,
    memory_gb: float,
    bytes_per_parameter: float,
) -> int:
    """The fewest cards that train in time and hold parameters · bytes_per_parameter bytes."""
    ### BEGIN SOLUTION
    per_card = days * 24 * 3600 * peak_flops * mfu
    for_compute = math.ceil(6 * parameters * tokens / per_card)
    for_memory = math.ceil(parameters * bytes_per_parameter / (memory_gb * 1e9))
    return max(for_compute, for_memory)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_cards_needed", "locked": true}
check("cards_needed")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>There are two questions with separate answers: how many cards finish in time, and how many hold the model?</details>
<details><summary>Hint 2</summary>How many FLOPs does one card do within the days, and how many bytes does it hold? <code>math.ceil</code> rounds up.</details>

**Why it matters.** For every plan, ask which of the two resources is the limit. If it's memory, a recipe with fewer
bytes per parameter helps and a faster card doesn't. If it's compute, the opposite is true.

Which one is the limit for the 70-billion-parameter model of the first question?
"""

# %%
# one token: almost no work, so memory decides
to_hold = cards_needed(70e9, 1, 180, h100, 0.4, 80, 16)
in_time = cards_needed(70e9, 15e12, 180, h100, 0.4, 80, 16)
print(f"to hold it: {to_hold} cards; to be done in 180 days: {in_time:,}")

assert to_hold == 14
assert in_time == 1024

# %% [markdown]
r"""
Fourteen cards would hold the model. The other thousand are there to finish in time.

### What it costs

GPUs are rented by the hour. Prices differ between providers, and they change; these were listed in the autumn of 2026,
except for the last one, which DeepSeek assumed in 2024.
"""

# %%
rent = FACTS["H100 SXM rent"].value  # USD per card per hour
cheap, dear = FACTS["H100 SXM rent, cheap"].value, FACTS["H100 SXM rent, expensive"].value
assert 2.5 < dear / cheap < 2.6  # the same card

facts.table(
    "A100 SXM 80GB rent",
    "H100 SXM rent",
    "B200 rent",
    "H100 SXM rent, cheap",
    "H100 SXM rent, expensive",
    "H800 rent, DeepSeek's assumption",
)

# %% [markdown]
r"""
The bill is hours times cards times price. Twice as many cards take half the time, so *the number of cards cancels*, and
what counts is the number of **GPU-hours**: the hours for which each GPU is rented, added up over all of them.

**Predict.** At 3.99 dollars per GPU-hour, what's the bill for the first question, 70 billion parameters on 15 trillion
tokens at an MFU of 0.4? Answer in millions of dollars.
"""

# %%
guess = None  # million USD

# %%
gpu_hours = 24 * 1024 * training_days(70e9, 15e12, 1024, h100, 0.4)
bill = gpu_hours * rent
print(f"{gpu_hours / 1e6:.2f} million GPU-hours")
reconcile("the bill for 70 B parameters and 15 T tokens", guess, bill / 1e6, "million USD")

assert round(bill / 1e6, 1) == 17.6
assert math.isclose(gpu_hours, 24 * training_days(70e9, 15e12, 1, h100, 0.4))  # cards cancel

# %% [markdown]
r"""
That's for one run, if it works. At the table's lowest price for an H100 it would cost a third less; at the highest,
almost three quarters more. Failed runs, earlier experiments and salaries add to this. (DeepSeek's much-quoted 5.6
million is a number of this kind, as their report says: it's only the rent for the final run.)

We can put a price on each resource:
"""

# %%
assert [round(price / rent, 2) for price in (cheap, dear)] == [0.67, 1.72]

hours, price = (
    FACTS["DeepSeek-V3 GPU-hours"].value,
    FACTS["H800 rent, DeepSeek's assumption"].value,
)
assert hours * price == FACTS["DeepSeek-V3 cost"].value == 5.576e6

per_flops = 1e21 * rent / (3600 * h100 * 0.4)  # USD for 1e21 FLOPs at an MFU of 0.4
per_gb = rent / (label / 1e9)  # USD for a GB of an H100's memory for an hour
print(
    f"compute: {per_flops:,.0f} USD for 1e21 FLOPs, {gpt3 / 1e21 * per_flops:,.0f} USD for GPT-3's"
)
print(f"memory:  {per_gb:.3f} USD for a GB for an hour")

assert 2_790 < per_flops < 2_810
assert round(gpt3 / 1e21 * per_flops / 1e6, 2) == 0.88
assert round(per_gb, 2) == 0.05

# %% [markdown]
r"""
At an MFU of 0.4 you pay about 2,800 dollars for $10^{21}$ FLOPs, and you pay five cents to keep a gigabyte for an hour.
But you can't rent one without the other. If you rent a card for its memory, you also pay for FLOP/s that sit idle, and
vice versa. That's why this whole course is about making full use of both.

*Try it yourself:* does a B200 do more FLOPs per dollar than an H100? (Its peak is in `FACTS`.)

## 6 · Find the error

People copy napkin math from slides to notes to blog posts, and they copy the errors too. Here are three claims of the
kind you'll run into:

> "Eight H100s do $4.8 \cdot 10^{21}$ FLOPs in two weeks, at their peak. A thousand of them (1,024, to be exact) do
> $4.4 \cdot 10^{19}$ FLOPs per day at an MFU of 0.5. And a single H100 trains a model of 43 billion parameters, at 16
> bytes per parameter."

Before you look at the code, decide how many of the three contradict something you computed above: one, two or all of
them? Then read the code below, which prints these numbers.
"""


# %%
def noted_two_weeks(devices: int, peak_tflops: float) -> float:
    seconds = 60 * 60 * 24 * 7
    return devices * peak_tflops * 1e12 * seconds


def noted_day(devices: int, peak_tflops: float, mfu: float) -> float:
    seconds = 60 * 60 * 24
    return devices * peak_tflops * 1e9 * mfu * seconds


def noted_one_card(memory_gb: float, bytes_per_parameter: float) -> float:
    return 8 * memory_gb * 1024**3 / bytes_per_parameter


print(f"{noted_two_weeks(8, 989.5):.1e} FLOPs in two weeks")
print(f"{noted_day(1024, 989.5, 0.5):.1e} FLOPs in a day")
print(f"{noted_one_card(80, 16):.1e} parameters on one card")

assert f"{noted_two_weeks(8, 989.5):.1e}" == "4.8e+21"
assert f"{noted_day(1024, 989.5, 0.5):.1e}" == "4.4e+19"
assert f"{noted_one_card(80, 16):.1e}" == "4.3e+10"

# %% [markdown]
r"""
### Exercise 0.6 · Find the mistakes &nbsp; ★★☆ &nbsp; 10 minutes

There are four mistakes in these three functions. Write corrected versions of all three:

- `two_weeks(devices, peak_tflops)`: the FLOPs that the devices do in two weeks at their peak;
- `one_day(devices, peak_tflops, mfu)`: the FLOPs that they do in a day;
- `on_one_card(memory_gb, bytes_per_parameter)`: how many parameters fit on *one* card. `memory_gb` is the number on its
  label. Round to a whole number or don't, as you like.

`peak_tflops` is the dense peak of one device in TFLOP/s, $10^{12}$ FLOP/s.
"""


# %% nbgrader={"grade": false, "grade_id": "two_weeks", "locked": false, "schema_version": 3, "solution": true, "task": false}
def two_weeks(devices: int, peak_tflops: float) -> float:
    """FLOPs that the devices do in two weeks at their peak."""
    ### BEGIN SOLUTION
    seconds = 60 * 60 * 24 * 14
    return devices * peak_tflops * 1e12 * seconds
    ### END SOLUTION


def one_day(devices: int, peak_tflops: float, mfu: float) -> float:
    """FLOPs that the devices do in a day, at a fraction mfu of their peak."""
    ### BEGIN SOLUTION
    seconds = 60 * 60 * 24
    return devices * peak_tflops * 1e12 * mfu * seconds
    ### END SOLUTION


def on_one_card(memory_gb: float, bytes_per_parameter: float) -> float:
    """How many parameters fit on one card."""
    ### BEGIN SOLUTION
    return memory_gb * 1e9 / bytes_per_parameter
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_two_weeks", "locked": true}
check("two_weeks")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Compare the number for two weeks with your result in section 1, and the number for one card with your result in section 4. For the day: GPT-3's training took 3.14e23 FLOPs. Would 1,024 H100s really need seven thousand days, nearly twenty years, for that?</details>
<details><summary>Hint 2</summary>How many days are there in two weeks? What does "tera" mean? How many cards does the name of the function mention? How many bytes is a GB on a label?</details>

**Why it matters.** All three claims are wrong: the FLOPs in two weeks by a factor of 2, the FLOPs in a day by a factor
of 1,000, and the model on one card by a factor of nearly 9. Yet all of this code runs without an error. To catch such
mistakes, write the units next to each number, and compute it a second time in a different way.
"""

# %% tags=["error-1", "error-23"]
print(f"two weeks of eight H100s: {two_weeks(8, h100 / 1e12):.2e} FLOPs")
print(f"a day of 1,024 at an MFU of 0.5: {one_day(1024, h100 / 1e12, 0.5):.2e} FLOPs")
print(f"one H100: {on_one_card(80, 16) / 1e9:.0f} billion parameters")

assert math.isclose(two_weeks(8, h100 / 1e12), budget)
assert math.isclose(two_weeks(8, 989.5), 2 * noted_two_weeks(8, 989.5))
assert round(one_day(1024, 989.5, 0.5) / noted_day(1024, 989.5, 0.5)) == 1_000
assert round(noted_one_card(80, 16) / on_one_card(80, 16), 1) == 8.6
assert f"{one_day(1024, h100 / 1e12, 0.5):.2e}" == "4.38e+22"
assert on_one_card(80, 16) == largest_model(1, 80, 16)
# The number of days, computed in another way:
assert math.isclose(work / one_day(1024, h100 / 1e12, 0.4), days)

# %% [markdown]
r"""
*Try it yourself:* find a claim about FLOPs or GPU memory in a post from this week, and check it. How far off is it?

## 7 · Nine published runs

How far can you trust all this? Let's test it on nine training runs whose model size, data and duration were published.
Seven of these are real runs; for the other two, which come first below, the authors measured a speed and calculated the
duration from it. You'll predict each one's GPU-hours with `training_days`, the dense 16-bit peak of the card, and *one
MFU for all of them, 0.4*, as in the rest of this lecture.

**Predict.** For how many of the nine is the published number within a factor of 1.25 of the prediction?
"""

# %%
guess = None  # of the nine runs

# %%
published_runs = [  # run, card, whose parameters, whose tokens
    ("GPT-3 on A100s", "A100 SXM 80GB", "GPT-3", "GPT-3"),
    ("1T model on A100s", "A100 SXM 80GB", "1T model on A100s", "1T model on A100s"),
    ("Llama 2 7B", "A100 SXM 80GB", "Llama 2 7B", "Llama 2"),
    ("Llama 2 13B", "A100 SXM 80GB", "Llama 2 13B", "Llama 2"),
    ("Llama 2 70B", "A100 SXM 80GB", "Llama 2 70B", "Llama 2"),
    ("Llama 3.1 8B", "H100 SXM", "Llama 3.1 8B", "Llama 3.1"),
    ("Llama 3.1 70B", "H100 SXM", "Llama 3.1 70B", "Llama 3.1"),
    ("Llama 3.1 405B", "H100 SXM", "Llama 3.1 405B", "Llama 3.1 405B"),
    ("DeepSeek-V3 pre-training", "H100 SXM", "DeepSeek-V3 active", "DeepSeek-V3"),
]
rows = []
for run, card, model_name, data_name in published_runs:
    n, d = FACTS[f"{model_name} parameters"].value, FACTS[f"{data_name} tokens"].value
    peak = FACTS[f"{card} bfloat16 peak"].value
    if f"{run} GPU-hours" in FACTS:
        taken = FACTS[f"{run} GPU-hours"].value
    else:
        taken = 24 * FACTS[f"{run} duration"].value * FACTS[f"{run} devices"].value
    predicted = 24 * training_days(n, d, 1, peak, 0.4)  # hours of one card
    rows.append((run, predicted / 1e3, taken / 1e3, "thousands of GPU-hours"))

ratios = {run: taken / predicted for run, predicted, taken, _ in rows}
close = [run for run, ratio in ratios.items() if 1 / 1.25 < ratio < 1.25]
reconcile("runs within a factor of 1.25", guess, len(close), "of the nine runs")

assert len(rows) == 9 and len(close) == 7
assert max(ratios, key=lambda run: ratios[run]) == "Llama 3.1 8B"
assert round(ratios["Llama 3.1 8B"], 1) == 2.9 and round(ratios["Llama 3.1 70B"], 1) == 1.6

# %% tags=["folded"]
# Each run's GPU-hours, predicted and published
finding = f"One formula and one MFU: {len(close)} of 9 published runs within a factor of 1.25"
plots.show(
    plots.predicted_vs_measured(rows, against="published", title=finding),
    alt=f"{finding}. Predicted next to published GPU-hours, from 180 thousand to 31 million. {len(close)} pairs lie "
    "close together; Llama 3.1 70B took 1.6 and Llama 3.1 8B 2.9 times the prediction.",
)

lowest, highest = min(taken for _, _, taken, _ in rows), max(taken for _, _, taken, _ in rows)
assert round(lowest) == 184 and round(highest) == 30_840

# %% [markdown]
r"""
The largest run took about 170 times as many GPU-hours as the smallest. Three of the runs have more to teach us:

- *The first two rows* come from a 2021 paper (Narayanan and others, arXiv:2104.04473): 34 days for GPT-3 and 84 days
  for a model of a trillion parameters. Its authors saved memory by computing activations a second time instead of
  keeping them. This adds a forward pass, so training takes 8 FLOPs per parameter per token instead of 6, and their
  speed (140 TFLOP/s per GPU for GPT-3) counts all 8. That's 45% of the A100's peak, but MFU counts only 6 of the 8,
  34%, and rightly so: the extra work didn't make the model any better.
- *DeepSeek-V3* has 671 billion parameters but uses only 37 billion of them for each token, so only these count as work.
  (It was trained on the H800, an H100 with slower connections between cards, and largely in 8 bits, where the peak is
  twice as high. We use the 16-bit peak for all runs.)
"""

# %%
tokens, devices_used = FACTS["GPT-3 tokens"].value, FACTS["GPT-3 on A100s devices"].value
with_recomputing = 8 * FACTS["GPT-3 parameters"].value * tokens
seconds = with_recomputing / (devices_used * FACTS["GPT-3 on A100s rate"].value)
assert round(seconds / 86_400) == FACTS["GPT-3 on A100s duration"].value == 34
of_peak = FACTS["GPT-3 on A100s rate"].value / FACTS["A100 SXM 80GB bfloat16 peak"].value
assert f"{of_peak:.0%} {6 / 8 * of_peak:.0%}" == "45% 34%"
assert FACTS["1T model on A100s duration"].value == 84

# The MFU with which each prediction would have been right:
implied = {run: 0.4 / ratio for run, ratio in ratios.items()}
for run, mfu in implied.items():
    print(f"{mfu:.2f}  {run}")
assert round(implied["Llama 3.1 8B"], 2) == 0.14 and round(implied["Llama 3.1 70B"], 2) == 0.25
assert round(highest / lowest, -1) == 170

# With all of DeepSeek-V3's parameters instead of the active ones, the prediction would be 18 times as long.
assert round(671e9 / 37e9) == 18
assert FACTS["DeepSeek-V3 parameters"].value == 671e9
assert FACTS["DeepSeek-V3 active parameters"].value == 37e9
assert max(implied.values()) < 0.5 < round(FACTS["MaxText 32B MFU on TPU v5e"].value, 2) == 0.67

# %% [markdown]
r"""
The number at the start of each line, the run's **implied MFU**, is the most useful one here: it's the MFU at which the
prediction would have been right. (It can be lower than the MFU that the authors report: GPU-hours may include time in
which nothing was trained.) Put any paper's parameters, tokens and GPU-hours into your formula and see what MFU comes
out. A value between 0.3 and 0.6 is plausible on GPUs. Below that, ask why; above it, ask what was counted. Such a high
number may still be right: Google's training library MaxText reports 67% for a model of 32 billion parameters on 256 TPU
v5e chips, Google's counterpart to GPUs. But none of these nine runs comes close.

At the other end, Llama 3.1 8B took 2.9 times as many GPU-hours as predicted and Llama 3.1 70B took 1.6 times as many,
as if their MFUs had been 0.14 and 0.25. The model card (the page published with the models) doesn't say why; perhaps
these hours include more than one run, but we don't know.

Was 0.4 just a lucky choice? Let's count again with other MFUs:
"""

# %%
within = {}
for percent in range(20, 65, 5):
    assumed = percent / 100
    within[percent] = sum(1 / 1.25 < assumed / mfu < 1.25 for mfu in implied.values())
    print(f"MFU {assumed:.2f}: {within[percent]} of 9 within a factor of 1.25")

assert list(within.values()) == [0, 1, 4, 7, 7, 4, 1, 0, 0]
in_order = sorted(implied.values())
assert round(in_order[2], 2) == 0.34 and round(in_order[-1], 2) == 0.43  # seven of nine

# %% [markdown]
r"""
At 0.35 the count is seven as well, at 0.3 or 0.45 it's four, and at 0.5 it's only one. So what do these seven runs
prove? Not that 0.4 is the right MFU: it's the only number in the formula that you have to assume, and we took it from
one of these, Llama 3.1 405B. They show that this one assumption often is enough. The GPU-hours differ by a factor of
170, but the MFUs of seven runs (all at the 16-bit peak) lie between 0.34 and 0.43, and parameters, tokens and the
card's peak account for all the rest. So for well-run training on GPUs, expect an MFU of about 0.4, and rather a little
less than more. These nine say little about badly run training, since a team with a low MFU has little reason to publish
it.

Here's the whole formula with sliders. They start at the first question's run. The picture also shows the GPU-hours of
the seven real runs. Choose one of these and its card (an A100 for Llama 2), and move the MFU until your dot stands
above the run's square. Do you get the implied MFUs printed above? And which controls change the number of days but not
the bill?
"""

# %%
from course_utils.explorers import training_time

training_time.explore(70e9, 15e12, cards=1_024, mfu=0.4).predicted(
    "70 B parameters, 15 T tokens, 1,024 H100s at MFU 0.4",
    "How many days do 70 billion parameters and 15 trillion tokens take on 1,024 H100s at an MFU of 0.4?",
)

# %% [markdown]
r"""
*Try it yourself:* use the sparse peak instead. How many of the nine would still be within a factor of 1.25?

So here are the answers to our two questions:

> *70 billion parameters, 15 trillion tokens, 1,024 H100s*: 180 days at 40% of the dense 16-bit peak (an MFU of 0.4),
> for 18 million dollars at 3.99 dollars per GPU-hour. (Another MFU changes both, another price the dollars.)
>
> *The largest model on eight H100s*: 40 billion parameters, with AdamW at 16 bytes each, sharded, and without counting
> activations. But for two weeks at an MFU of 0.4, the compute-optimal model has only 5.65 billion parameters.

Changing any condition in these answers can change the result a great deal, so always state the conditions with the
result.

Here are your guesses so far, as a picture:
"""

# %%
calibration()

# %% [markdown]
r"""
## Takeaways

Every lecture ends with takeaways at three levels: *mechanics* (how it works), *mindset* (what to do each time) and
*intuitions* (what to expect before you compute).

**Mechanics.** Training takes $6 \cdot N \cdot D$ FLOPs. Days = FLOPs / (GPUs · dense peak · MFU · 86,400). For a budget
of $C$ FLOPs, the compute-optimal size is $N = \sqrt{C / 120}$ with $D = 20 N$. AdamW takes 16 bytes per parameter,
either all in `float32` or in `bfloat16` with a master copy, and 12 in `bfloat16` without one (AdamW's state is in
`float32`). Activations add to this and grow with the batch. A GB is $10^9$ bytes.

**Mindset.** Write the unit next to the number. State your assumptions with the answer: dense or sparse, which MFU,
which recipe, sharded or not. Ask which resource is the limit. Compute the number a second time in another way, and if
it's off by a factor of two, look for sparsity, for multiply-adds counted as one FLOP, or for a forgotten week. Give a
source and a date for every number that isn't your own.

**Intuitions.** An H100 does $10^{15}$ FLOP/s, a day has $10^5$ seconds, and a good MFU is 0.4 to 0.5. Training GPT-3
took $3 \cdot 10^{23}$ FLOPs; Llama 3.1 405B, in 2024, took $4 \cdot 10^{25}$. In our first plan, 14 of the 1,024 GPUs
would hold the model; the others are there to finish in time. A compute-optimal model ten times as large costs a hundred
times as much to train. And this arithmetic was right to within a factor of 1.25 for seven of nine published runs.

Next: [01 · Tensors](../01_tensors/01_tensors.ipynb). Every byte you counted here belongs to a tensor. How many bytes
does one take, and where are they?
"""

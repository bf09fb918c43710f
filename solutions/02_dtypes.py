# %% [markdown]
r"""
# 02 · Dtypes

[← 01 · Tensors](../01_tensors/01_tensors.ipynb) · [03 · Strides and views →](../03_strides_and_views/03_strides_and_views.ipynb)

> **What do the bits inside an element mean, and what is lost?**

A floating-point number in a tensor has 64, 32, 16 or 8 bits, and not one more. So every format keeps some numbers and
loses all others. Which ones is a choice, made once by whoever designed the format, and again by you when you write
`dtype=`. By the end of this lecture you will have shown, with a decoder of your own, what each of the 131,584 patterns
of `float16`, `bfloat16` and the two 8-bit formats means, down to the last bit. And you will know which choice lets
gradients vanish, which one lets a weight stand still, and what is done about either.

How to read: run the cells in order (<kbd>Shift</kbd> + <kbd>Enter</kbd>). Where a cell says *predict*, write your
number first; being wrong is how you find out what to look at. The cell below each exercise checks your answer and names
the likely mistake; *Validate* in the toolbar runs them all. Bits mean the same on a GPU as on a CPU, so this lecture
stays on the CPU.
"""

# %%
import copy
import math

import torch
from jaxtyping import Bool, Float, Int
from matplotlib.figure import Figure
from torch import Tensor, nn

from course_utils import plots
from course_utils.predict import reconcile
from course_utils.progress import show_progress
from course_utils.testing import check

torch.manual_seed(0)  # the same random numbers on every run
print(f"torch {torch.__version__}")
show_progress()

# %% [markdown]
r"""
## 1 · Thirty-two bits

A `float32` has three fields: one **sign** bit, eight **exponent** bits, and 23 **mantissa** bits. `view` with a dtype
looks at the same memory as another type. It converts nothing, so it is how we get to see them:
"""


# %% tags=["item-7"]
def fields(x: float) -> str:
    """The bits of x in float32: sign, exponent and mantissa."""
    bits = int(torch.tensor(x, dtype=torch.float32).view(torch.int32))
    text = f"{bits & 0xFFFFFFFF:032b}"  # & makes it the same bits without a minus sign
    return f"{text[0]} {text[1:9]} {text[9:]}"


for value in (1.0, -1.0, 2.0, 3.0, 0.15625, 0.1):
    print(f"{value:>8}   {fields(value)}")

assert fields(1.0) == "0 01111111 00000000000000000000000"  # exponent field 127
assert fields(-1.0) == "1 01111111 00000000000000000000000"  # only the sign differs
assert fields(2.0) == "0 10000000 00000000000000000000000"  # exponent field 128
assert fields(3.0) == "0 10000000 10000000000000000000000"  # 2 · 1.1 in base two

# %% [markdown]
r"""
Read it like 1.5 · 10⁻⁸, but in base two. The exponent says how large the number is, the mantissa which number of that
size:

$$(-1)^{\text{sign}} \cdot \left(1 + \frac{\text{mantissa}}{2^{23}}\right) \cdot 2^{\,\text{exponent} - 127}$$

Two ideas save bits here. In base two the first digit of a number that is not zero is always a 1, so it is not stored:
that is the **implicit one**. And the exponent field holds no negative numbers; 127, the **bias**, is taken off
afterwards. With $e$ exponent bits the bias is $2^{e-1} - 1$.

**Predict.** Which number is `0 10000001 10100000000000000000000`? Work it out on paper: 10000001 in base two is 129, and
a mantissa that begins with 101 stands for 1/2 + 1/8.
"""

# %%
guess = None  # a number

# %%
pattern = int("0" + "10000001" + "10100000000000000000000", 2)
number = torch.tensor(pattern, dtype=torch.int32).view(torch.float32).item()
reconcile("the number with these bits", guess, number, "")

assert int("10000001", 2) == 129
assert number == (1 + 1 / 2 + 1 / 8) * 2 ** (129 - 127) == 6.5

# %% [markdown]
r"""
Two exponent fields are kept for special cases.

- **All zeros**: there is no implicit one, and the exponent is that of the field 1. So the value is $\text{mantissa} /
  2^{23} \cdot 2^{1-127}$. With mantissa 0 that is zero, which so has two patterns, 0 and −0. All others are the
  **subnormal** numbers. They fill the hole between zero and the smallest ordinary (*normal*) number in even steps.
- **All ones**: with mantissa 0 it is infinity, with any other mantissa it is **NaN**, *not a number*.
"""

# %%
tiny = 2.0**-126  # the smallest normal float32
assert fields(tiny) == "0 00000001 00000000000000000000000"
assert fields(tiny / 2) == "0 00000000 10000000000000000000000"  # subnormal: half of it
assert fields(2.0**-149) == "0 00000000 00000000000000000000001"  # the smallest of all
assert fields(0.0) == "0 00000000 00000000000000000000000"
assert fields(-0.0) == "1 00000000 00000000000000000000000"
assert fields(math.inf) == "0 11111111 00000000000000000000000"
assert fields(math.nan).split()[1] == "11111111" and "1" in fields(math.nan).split()[2]

assert -0.0 == 0.0  # equal, and yet not the same bits
assert math.nan != math.nan  # NaN equals nothing, itself included

# %% [markdown]
r"""
> **A mistake that travels.** "`0.1` is stored exactly; only long computations round." It is not: in base two 0.1 has
> infinitely many digits, like 1/3 in base ten. What is stored is the nearest number that there is.
"""

# %%
stored = torch.tensor(0.1).item()  # float32, read back as one of Python's float64
print(f"{stored:.20f}")
assert stored != 0.1
assert 0.1 + 0.2 != 0.3  # Python's own floats are float64, and no exception

# %% [markdown]
r"""
*Try it yourself:* print `fields(x)` for 4, 8, 16 and then for 5, 9, 17. Which field moves when a number doubles? What
happens to the last bit of the mantissa at `2.0**24 + 1`?

## 2 · One plan, six sizes

Every format of this lecture is built to that plan. They differ in how many bits they give to exponent and mantissa.
**Exponent bits buy range**: how large and how small a number can be. **Mantissa bits buy precision**: how close
together the numbers lie. The total is fixed, so each bit of one costs a bit of the other.
"""

# %%
plans = {  # exponent bits, mantissa bits
    "float64": (11, 52),
    "float32": (8, 23),
    "bfloat16": (8, 7),
    "float16": (5, 10),
    "float8_e5m2": (5, 2),
    "float8_e4m3fn": (4, 3),
}
for name, (exponent_bits, mantissa_bits) in plans.items():
    assert 1 + exponent_bits + mantissa_bits == 8 * getattr(torch, name).itemsize

# %%
title = "Bits to the left of the line buy range, bits to the right buy precision"
plots.show(
    plots.bit_plans(plans, title=title),
    alt="The bits of six formats, lined up where exponent and mantissa meet. float32 and bfloat16 "
    "have 8 exponent bits, float16 and E5M2 have 5, E4M3 has 4; mantissas have 52, 23, 7, 10, 2 and 3.",
)

# %% [markdown]
r"""
Look at the two pairs. **`bfloat16`** is `float32` with the lower half cut off: the same exponents, far less precision.
And E5M2 is `float16` with its lower half cut off. Both, bit by bit: `>> 16` moves the bits 16 places to the right, so
that the lower 16 fall off, and `<< 16` moves the others back.
"""

# %%
x = torch.randn(1000)
upper = (x.view(torch.int32) >> 16) << 16  # the lower 16 bits set to 0 …
cut = upper.view(torch.float32)
assert torch.equal(cut.bfloat16().float(), cut)  # … leave a number that bfloat16 holds exactly

upper = (x.half().view(torch.int16) >> 8) << 8
cut = upper.view(torch.float16)
assert torch.equal(cut.to(torch.float8_e5m2).half(), cut)

# %% [markdown]
r"""
The names of the 8-bit formats say their plan: **E5M2** has five exponent bits and two of mantissa, **E4M3** four and
three. E5M2 follows all the rules above. E4M3 bends one. Its designers gave up infinity for more range: the highest
exponent is an ordinary one, and the *only* NaN is the pattern with all exponent and mantissa bits set (with either
sign). PyTorch says that in the name: `float8_e4m3fn`, with `f` for *finite* and `n` for a NaN of its
own kind.
"""

# %% tags=["item-12"]
largest = {
    torch.float8_e4m3fn: 1.75 * 2**8,  # 0 1111 110: one below the NaN
    torch.float8_e5m2: 1.75 * 2**15,  # 0 11110 11: the highest exponent belongs to inf and NaN
}
for dtype, value in largest.items():
    assert torch.finfo(dtype).max == value  # finfo: what PyTorch says about a format
assert list(largest.values()) == [448, 57_344]

every = torch.arange(256, dtype=torch.uint8)  # all patterns of eight bits
finite = {dtype: int(every.view(dtype).float().isfinite().sum()) for dtype in largest}
print(finite)
assert finite == {torch.float8_e4m3fn: 254, torch.float8_e5m2: 248}

# %% [markdown]
r"""
> **A mistake that travels.** "FP8 was standardized in 2022." In 2022 it was *proposed*, by NVIDIA, Arm and Intel
> ([arXiv:2209.05433](https://arxiv.org/abs/2209.05433)). The Open Compute Project's specification of 8-bit floating
> point followed in 2023. Other 8-bit formats exist beside these two: PyTorch knows some, with `fnuz` in their names.

Eight bits are for *storing* numbers, and for the multiplications of hardware that was made for them. You cannot even
add two such tensors in PyTorch. You convert, compute, and convert back.
"""

# %%
small = torch.tensor([0.1, 1.0, 300.0]).to(torch.float8_e4m3fn)
print(small.float())  # what is left of them
assert small.float().tolist() == [0.1015625, 1.0, 288.0]
try:
    small + small
except RuntimeError as error:
    print(error)
else:
    raise AssertionError("8-bit numbers can be added")

# %% [markdown]
r"""
Now move the bits yourself. Each button is a bit; or write a number, and change the format under it. Flip the lowest
exponent bit of 0.1: what happens to the number, and to the distance of its neighbors? And which single bit turns 448
in E4M3 into NaN?
"""

# %%
from course_utils.widgets import float_bits

float_bits.explore("0.1", "float16")

# %% [markdown]
r"""
*Try it yourself:* convert 0.1, 1 and 300 to `float8_e5m2` in the same way. Which of the two formats comes closer, and
which could hold 3,000?

### Exercise 2.1 · A decoder &nbsp; ★★★ &nbsp; 20 minutes

Write `decode(bits, exponent_bits, mantissa_bits, finite=False)`: the number that a pattern means, for any format that
follows the plan. `bits` is a whole number of exactly that many bits, `1 + exponent_bits + mantissa_bits`: first the sign, then the exponent bits, then
those of the mantissa. Treat all cases: normal numbers, subnormal ones, the two zeros, both infinities, NaN. With
`finite=True` the format bends the rule as E4M3 does: there is no infinity, and NaN is only the pattern in which all
bits after the sign are set. Work with whole numbers and Python's floats; make no tensor.

Formats have at least two exponent bits and at least one of mantissa, and go up to those of `float64`; with
`finite=True` they have at most ten exponent bits, so that every number fits into a Python float. A negative zero is
−0.0: mind that `-1 * 0` is 0 in Python, while `-1.0 * 0` is −0.0.
"""


# %% nbgrader={"grade": false, "grade_id": "decode", "locked": false, "schema_version": 3, "solution": true, "task": false}
def decode(bits: int, exponent_bits: int, mantissa_bits: int, finite: bool = False) -> float:
    """The number that a pattern of 1 + exponent_bits + mantissa_bits bits means.

    finite: as in E4M3, the highest exponent is an ordinary one, except for one NaN where all bits below the sign are 1.
    """
    ### BEGIN SOLUTION
    sign = -1.0 if bits >> (exponent_bits + mantissa_bits) else 1.0
    exponent = (bits >> mantissa_bits) % 2**exponent_bits
    mantissa = bits % 2**mantissa_bits
    bias = 2 ** (exponent_bits - 1) - 1
    if exponent == 2**exponent_bits - 1:
        if finite and mantissa == 2**mantissa_bits - 1:
            return math.nan
        if not finite:
            return math.nan if mantissa else sign * math.inf
    if exponent == 0:  # subnormal: no implicit one, and the exponent of field 1
        return sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return sign * (2**mantissa_bits + mantissa) * 2.0 ** (exponent - bias - mantissa_bits)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_decode", "locked": true}
check("decode")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>First take the three fields apart. <code>bits >> n</code> drops the lower n bits,
and <code>bits % 2**n</code> keeps only those.</details>
<details><summary>Hint 2</summary>Then four cases, in this order: the highest exponent, unless it is an ordinary one;
the one NaN of a finite format; exponent field 0; everything else.</details>
<details><summary>A worked example</summary>

```
E5M2, 0 00000 11     subnormal:  0.75 · 2^(1 - 15)  = 2^-14 · 0.75
E5M2, 0 00001 11     normal:     1.75 · 2^(1 - 15)  = 2^-14 · 1.75
E5M2, 1 11110 11     normal:    -1.75 · 2^(30 - 15) = -57344
E5M2, 1 11111 00     special:   -inf
E4M3, 1 1111 100     normal:    -1.5  · 2^(15 - 7)  = -384
```

</details>

**Why it matters.** Checkpoints, data sheets and papers come with new formats every year, and they all follow this plan or
bend one rule of it. You can now read any of them.

### Exercise 2.2 · The limits of a format &nbsp; ★★☆ &nbsp; 10 minutes

Write `limits(exponent_bits, mantissa_bits, finite=False)`, which returns a dictionary of exactly four numbers:

- `"max"`: the largest finite number;
- `"smallest_normal"`: the smallest positive number with an implicit one;
- `"smallest_subnormal"`: the smallest positive number of all;
- `"eps"`: the distance from 1 to the next larger number.

Exactly, not nearly, and for the same formats as before, up to that of `float64`. (There `2.0**1024` is too large for a
Python float.)
"""


# %% nbgrader={"grade": false, "grade_id": "limits", "locked": false, "schema_version": 3, "solution": true, "task": false}
def limits(exponent_bits: int, mantissa_bits: int, finite: bool = False) -> dict[str, float]:
    """What a format can hold: max, smallest_normal, smallest_subnormal, eps. finite: as in E4M3."""
    ### BEGIN SOLUTION
    bias = 2 ** (exponent_bits - 1) - 1
    eps = 2.0**-mantissa_bits
    # The highest exponent, and the largest mantissa in it, unless they are kept for something else:
    largest = (2 - 2 * eps) * 2.0 ** (bias + 1) if finite else (2 - eps) * 2.0**bias
    return {
        "max": largest,
        "smallest_normal": 2.0 ** (1 - bias),
        "smallest_subnormal": 2.0 ** (1 - bias) * eps,
        "eps": eps,
    }
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_limits", "locked": true}
check("limits")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Write down the pattern of each of the four numbers, and decode it by hand.</details>
<details><summary>Hint 2</summary>What is 1 + mantissa / 2**mantissa_bits for the largest mantissa, in terms of eps? In E4M3
that pattern is taken by the NaN.</details>

**Why it matters.** These four numbers are what you look up before you choose a dtype. Let us hold yours against PyTorch's.
"""

# %% tags=["item-11"]
print(f"{'':>14} {'max':>11} {'normal from':>12} {'subnormal from':>15} {'eps':>10}")
for name, (exponent_bits, mantissa_bits) in plans.items():
    ours = limits(exponent_bits, mantissa_bits, finite=name.endswith("fn"))
    theirs = torch.finfo(getattr(torch, name))
    assert ours["max"] == theirs.max == -theirs.min
    assert ours["smallest_normal"] == theirs.smallest_normal == theirs.tiny
    assert ours["eps"] == theirs.eps
    print(
        f"{name:>14} {ours['max']:>11.5g} {ours['smallest_normal']:>12.3g} "
        f"{ours['smallest_subnormal']:>15.3g} {ours['eps']:>10.3g}"
    )

# %% [markdown]
r"""
> **Trap: three names that mislead.** `finfo.min` is not the smallest positive number, but the most *negative* one.
> `finfo.tiny` (or `smallest_normal`) is the smallest *normal* one; subnormal numbers go on below it. And `finfo.eps` is
> not the smallest number either: it is a gap, and only the gap at 1. Numbers far smaller than `eps` are no trouble at all.
"""

# %%
half = torch.finfo(torch.float16)
assert half.min == -65_504
assert torch.tensor(half.tiny / 1024, dtype=torch.float16) > 0  # far below tiny
assert torch.tensor(half.eps / 1024, dtype=torch.float16) > 0  # far below eps
assert 1 + torch.tensor(half.eps / 1024, dtype=torch.float16) == 1  # but not beside a 1

# %% [markdown]
r"""
*Try it yourself:* design a 16-bit format with six exponent bits. Where do its limits lie between those of `float16` and
`bfloat16`?
"""

# %% [markdown]
r"""
## 3 · Range: too small and too large

What happens to a number outside the limits? If it is too small, it **underflows**: it becomes 0. If it is too large, it
**overflows**: it becomes infinite. There is no error, no warning. In `float16` both happen to quite ordinary numbers:
"""

# %% tags=["item-9"]
assert torch.tensor(1e-8, dtype=torch.float16) == 0  # underflow
assert torch.tensor(70_000.0, dtype=torch.float16) == math.inf  # overflow

# %% tags=["item-10"]
x = torch.tensor([1e-8, 70_000.0], dtype=torch.bfloat16)
print(x)
assert x[0] > 0 and x[1].isfinite()  # both survive …
assert x.tolist() == [1.0011717677116394e-08, 70_144.0]  # … as the nearest bfloat16 there is

# %% [markdown]
r"""
That is why `bfloat16` was made. Where exactly is the edge? A number is rounded to the nearest one that the format has,
and only what rounds to nothing is lost. In `float16`, $2^{-25}$ lies halfway between 0 and the smallest subnormal
number, and becomes 0; anything above it survives. At the other end 65,520 lies halfway between the largest number,
65,504, and 65,536, which would be next. It becomes infinite; 65,519 still rounds down.
"""

# %%
edge = limits(5, 10)["smallest_subnormal"] / 2
assert edge == 2.0**-25
assert torch.tensor(edge, dtype=torch.float16) == 0
assert torch.tensor(1.001 * edge, dtype=torch.float16) == 2.0**-24
assert torch.tensor(65_519.0, dtype=torch.float16) == 65_504
assert torch.tensor(65_520.0, dtype=torch.float16) == math.inf

# %% [markdown]
r"""
Infinity does not stay alone for long. The first difference of two infinities is NaN, and NaN spreads to everything it
touches. So a loss of NaN in the logs often began as a number beyond 65,504.
"""

# %%
scores = torch.tensor([70_000.0, 1.0], dtype=torch.float16)
shifted = scores - scores.max()  # the usual first step of softmax
print(shifted)
assert shifted.isnan().tolist() == [True, False]  # inf - inf
assert shifted.sum().isnan()

# %% [markdown]
r"""
> **A mistake that travels.** "`bfloat16` has the range of `float32`, so converting never overflows." It has the same
> *exponents*. But its largest mantissa is shorter, and the topmost numbers of `float32` round up to infinity.

> **Trap: beyond 448.** What a number too large for `float8_e4m3fn` becomes was NaN in older versions of PyTorch, and is
> 448 since 2.12. (`float8_e5m2` has an infinity, and uses it.) Do not build on either: scale your numbers into the range
> *before* you convert.
"""

# %%
assert torch.tensor(3.4e38).isfinite() and torch.tensor(3.4e38).bfloat16() == math.inf

beyond = torch.tensor(1e4).to(torch.float8_e4m3fn).float()
print(f"1e4 as float8_e4m3fn in torch {torch.__version__}: {beyond.item()}")
assert beyond.isnan() or beyond == 448
assert torch.tensor(1e6).to(torch.float8_e5m2).float() == math.inf

# %% [markdown]
r"""
*Try it yourself:* what is the smallest whole number that `float16` turns into infinity? And how far can you go below
`2.0**-126` in `bfloat16` before you meet 0? Find out with `torch.tensor(…, dtype=…)`, then compare with `limits`.

### Exercise 2.3 · What survives? &nbsp; ★☆☆ &nbsp; 5 minutes

Write `survives(values, dtype)`: for each of the values, does it get through a conversion to `dtype` (`float16`,
`bfloat16` or `float32`) as a finite number, and without being turned into 0? A 0 has nothing to lose and survives.
What is infinite or NaN already does not. It need not keep its exact value. `values` is a tensor of any shape, in
`float64` or one of these three; the result is a tensor of truth values of that shape. No value is so close to an edge
that rounding it to `float32` on the way would decide.
"""


# %% nbgrader={"grade": false, "grade_id": "survives", "locked": false, "schema_version": 3, "solution": true, "task": false}
def survives(values: Float[Tensor, "..."], dtype: torch.dtype) -> Bool[Tensor, "..."]:
    """True where a value converted to dtype is finite, and 0 only if it was 0 before."""
    ### BEGIN SOLUTION
    converted = values.to(dtype)
    return converted.isfinite() & ((converted != 0) | (values == 0))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_survives", "locked": true}
check("survives")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Convert, and look at what became of the values.</details>
<details><summary>Hint 2</summary>Two conditions have to hold: one looks at overflow, the other at underflow. Join
comparisons of tensors with <code>&</code> and <code>|</code>, each in parentheses.</details>

**Why it matters.** In section 6 you ask this of the gradients of a real network.

## 4 · Precision: the gaps between numbers

Within the range a format has finitely many numbers, and they do not lie evenly. Between 1 and 2 there are as many
`float16` numbers as between 2 and 4, and as between 1,024 and 2,048: one for each mantissa, 1,024 of them. So the gap
doubles with each power of two.

**Predict.** There are 63,487 different finite numbers in `float16`, from −65,504 to 65,504. How many of them lie
between −1 and 1, both included?
"""

# %%
guess = None  # of 63,487

# %%
every = torch.arange(2**16, dtype=torch.int32).to(torch.int16).view(torch.float16).double()
numbers = every[every.isfinite()].unique()  # once each: 0 and −0 are the same number
inside = int((numbers.abs() <= 1).sum())
reconcile("float16 numbers from −1 to 1", guess, inside, "")

assert len(numbers) == 63_487
assert inside == 30_721  # nearly half of them, on 1/65,504 of the line
for low in (1, 2, 1024):
    assert ((numbers >= low) & (numbers < 2 * low)).sum() == 1024

# %% [markdown]
r"""
That is the plan at work: the exponent chooses a stretch from one power of two to the next, and the mantissa cuts each
stretch into the same number of steps. Seen as patterns it is simpler still:

> **The next number up is the next pattern up.** Read the bits of a positive float as a whole number and add 1. If the
> mantissa overflows, the carry goes into the exponent, which is just what it should do. Even 0, the subnormal numbers
> and infinity are in line.
"""

# %%
one = torch.tensor(1.0, dtype=torch.bfloat16)
following = (one.view(torch.int16) + 1).view(torch.bfloat16)
assert following == 1 + 2**-7 == 1.0078125  # there is no bfloat16 between 1 and this

assert one + 2**-8 == 1  # so half a gap more than 1 is rounded back to 1
assert one + 2**-7 == following
top = torch.tensor(torch.finfo(torch.bfloat16).max, dtype=torch.bfloat16)
assert (top.view(torch.int16) + 1).view(torch.bfloat16) == math.inf  # in line, too

# %% [markdown]
r"""
### Exercise 2.4 · Mind the gap &nbsp; ★★☆ &nbsp; 10 minutes

Write `gap(x, dtype)`: round `x` to the nearest number of `dtype`; how far is it from there to the next larger number of
that dtype? `x` is a Python float, 0 or positive, and what it is rounded to is below the largest number of the dtype. It
must work for `float64`, `float32`, `float16`, `bfloat16` and both 8-bit formats (which cannot subtract: convert first),
and be exact. No `x` lies on a tie between two numbers, or so close to one that rounding it to `float32` on the way would
decide.
"""


# %% nbgrader={"grade": false, "grade_id": "gap", "locked": false, "schema_version": 3, "solution": true, "task": false}
def gap(x: float, dtype: torch.dtype) -> float:
    """The distance from x, rounded to dtype, to the next larger number of dtype. x: 0 or positive."""
    ### BEGIN SOLUTION
    whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]
    here = torch.tensor(x, dtype=dtype)
    following = (here.view(whole) + 1).view(dtype)
    return following.double().item() - here.double().item()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_gap", "locked": true}
check("gap")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Make a tensor of that dtype, look at it as a whole number of the same size, and add
1.</details>
<details><summary>Hint 2</summary><code>.view(torch.int16)</code> looks at two bytes as a whole number, and
<code>.view(torch.uint8)</code> at one. In which dtype can you subtract without losing anything?</details>

**Why it matters.** Half of this distance is the most that rounding can be off by, and the least that an update must have to
be noticed. Section 6 is about nothing else.
"""

# %%
drawn = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "E5M2": torch.float8_e5m2,
    "E4M3": torch.float8_e4m3fn,
}
gaps = {
    name: {
        power: gap(2.0**power, dtype)
        for power in range(-32, 33)
        if gap(0.0, dtype) <= 2.0**power < torch.finfo(dtype).max
    }
    for name, dtype in drawn.items()
}
title = "The gap grows with the number, until the format runs out; near 0 it levels off"
plots.show(
    plots.gap_curves(gaps, reach=31, title=title),
    alt="Gap against magnitude for five formats, on logarithmic axes. Each rises in proportion to the "
    "number; float32 lies lowest, the 8-bit formats highest. float16 and the 8-bit formats level off "
    "on the left, where their numbers are subnormal, and end early on the right.",
)

# %% [markdown]
r"""
Where they do not level off, all curves have the same slope. So what a format fixes is not the gap but the *relative*
gap: `float32` has about seven decimal digits, `float16` three, `bfloat16` two, whatever the size of the number. And if
you add less than half a gap to a number, it stands still. That holds for `float32` as well: beyond $2^{24}$ it does not
have every whole number any more, so do not count tokens with it.
"""

# %%
big = torch.tensor(2.0**24)  # float32; 16,777,216
assert gap(2.0**24, torch.float32) == 2
assert big + 1 == big
for dtype, digits in ((torch.float32, 6.9), (torch.float16, 3.0), (torch.bfloat16, 2.1)):
    assert round(-math.log10(torch.finfo(dtype).eps), 1) == digits

# %% [markdown]
r"""
**Predict.** Add up a thousand ones in `bfloat16`, one after another. What comes out?
"""

# %%
guess = None  # the sum

# %%
total = torch.tensor(0.0, dtype=torch.bfloat16)
for _ in range(1000):
    total += 1
reconcile("a thousand ones", guess, total.item(), "")

assert total == 256
assert gap(256.0, torch.bfloat16) == 2  # 257 lies halfway between 256 and 258 …
assert torch.tensor(257.0).bfloat16() == 256  # … and is rounded back
assert torch.ones(1000, dtype=torch.bfloat16).sum() == 1000  # sum() adds up in float32 inside

# %% [markdown]
r"""
This is why good code for sums, means and products of matrices reads 16 bits but *accumulates* in 32, and rounds once, at
the end.

*Try it yourself:* do the same in `float16`, with 5,000 ones. Say beforehand where it stops: at which number is the gap
2?

## 5 · Rounding, by hand

Converting to a shorter format means choosing one of two neighbors. The rule of all these conversions is **round to
nearest**, and if the number lies exactly between them, **to the even one**: the neighbor whose last bit is 0. (Always
rounding halves up would push sums up, bit by bit.) From `float32` to `bfloat16` we can watch it, for the new number is
simply the upper 16 bits, and the lower 16 say how far it is to the next one:

```
lower 16 bits    below 0x8000, which is 1000 0000 0000 0000 in base two:    the upper bits stay
                 above:                                                     the upper bits go up by 1
                 exactly that, a tie:                                       up by 1 only if they are odd
```

If going up overflows the mantissa, the carry goes into the exponent. You know by now that this is right.
"""

# %%
gap_at_1 = 2**-7
for fraction, upper in (
    (0.25, 0),
    (0.5, 0),
    (0.75, 1),
    (1.25, 1),
    (1.5, 2),
    (2.5, 2),
    (3.5, 4),
):
    rounded = torch.tensor(1 + fraction * gap_at_1).bfloat16()
    assert rounded == 1 + upper * gap_at_1
assert torch.tensor(1.999).bfloat16() == 2  # the carry at work

# %% [markdown]
r"""
*Try it yourself:* Python's own `round` follows the same rule: what are `round(0.5)`, `round(1.5)` and `round(2.5)`?

### Exercise 2.5 · To bfloat16, bit by bit &nbsp; ★★★ &nbsp; 20 minutes

Write `to_bfloat16_bits(x)`: for each element of the `float32` tensor `x`, the 16 bits of the nearest `bfloat16`, as a
whole number from 0 to 65,535. Ties go to the even neighbor. What lies half a gap or more above the largest `bfloat16`
becomes infinite, as everywhere in IEEE's formats, and −0.0 keeps its sign. The result has the shape of `x` and any integer dtype that
can hold these numbers, and `x` stays as it is. Use integer arithmetic on the bits: make no tensor of `bfloat16`.
Infinity stays infinity, and every NaN must become some NaN.
"""


# %% nbgrader={"grade": false, "grade_id": "to_bfloat16_bits", "locked": false, "schema_version": 3, "solution": true, "task": false}
def to_bfloat16_bits(x: Float[Tensor, "..."]) -> Int[Tensor, "..."]:
    """The bits of the bfloat16 nearest to each element of x (float32), 0 to 65,535; ties to even, NaN to a NaN."""
    ### BEGIN SOLUTION
    bits = x.view(torch.int32).long() & 0xFFFFFFFF  # int64, so that nothing is negative
    odd = (bits >> 16) & 1
    rounded = (
        bits + 0x7FFF + odd
    ) >> 16  # goes up above the tie, and on it where that makes it even
    return torch.where(x.isnan(), 0x7FC0, rounded)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_to_bfloat16_bits", "locked": true}
check("to_bfloat16_bits")

# %% [markdown]
r"""
<details><summary>Hint 1</summary><code>x.view(torch.int32)</code> gives the bits. An int32 with the upper bit set is
negative; <code>.long() & 0xFFFFFFFF</code> gives the same 32 bits as a number that is not.</details>
<details><summary>Hint 2</summary>Which number has to be added so that there is a carry into the upper 16 bits if the lower
ones are above a half, and only then? And what changes on a tie, if the upper part is odd? NaN last, with
<code>torch.where</code>.</details>

**Why it matters.** This is how processors without an instruction for it convert: two additions and a shift. Knowing it,
you can build roundings that no instruction offers. You will, in the next section.
"""

# %%
x = torch.cat([torch.randn(10_000), torch.randn(10_000) * 1e-39, torch.randn(10_000) * 1e38])
theirs = x.bfloat16().view(torch.int16).long() & 0xFFFF  # now PyTorch's
assert torch.equal(to_bfloat16_bits(x).long(), theirs)

# %% [markdown]
r"""
## 6 · What it means for training

Here is a small network, all in `float32`, and the gradient of its loss with respect to what the first layer puts out:
numbers that flow backward on their way to the weights. They are small. A loss is a mean over the batch, so each
example's share of it is divided by the size of the batch; that is 16,384 here, and millions of tokens in the training of
a large model.
"""

# %%
torch.manual_seed(0)
threads = torch.get_num_threads()
torch.set_num_threads(1)  # a second thread waits whenever something else runs on its core
width, batch = 256, 16_384
model = nn.Sequential(
    nn.Linear(64, width),
    nn.Tanh(),
    nn.Linear(width, width),
    nn.Tanh(),
    nn.Linear(width, width),
    nn.Tanh(),
    nn.Linear(width, 1),
)
inputs = torch.randn(batch, 64)
targets = inputs[:, :1] * inputs[:, 1:2] + 0.1 * torch.randn(batch, 1)

hidden = model[:2](inputs)
hidden.retain_grad()  # keep the gradient of what the first layer puts out
loss = (model[2:](hidden) - targets).pow(2).mean()
loss.backward()
gradients = hidden.grad
assert gradients is not None
middle = gradients.abs().median().item()
print(f"{gradients.numel():,} gradients; half of them are smaller than {middle:.1e}")

assert middle < 1e-5

# %% [markdown]
r"""
Now your own function. Which of these gradients survive in 16 bits? And what if we first multiply all of them by a power
of two?
"""

# %% tags=["item-13"]
sample = gradients[::16]
factors = [2.0**power for power in range(0, 45, 2)]
shares = {
    dtype: [survives(sample * factor, dtype).float().mean().item() for factor in factors]
    for dtype in (torch.float16, torch.bfloat16)
}
for dtype, share in shares.items():
    print(f"{dtype}: {share[0]:.1%} survive as they are, {max(share):.1%} with the best factor")

assert shares[torch.float16][0] < 0.95  # many a gradient becomes 0 …
assert shares[torch.float16][8] > 0.999  # … and nearly none, multiplied by 2^16 …
assert shares[torch.float16][-1] < 0.5  # … but too large a factor makes them infinite
assert min(shares[torch.bfloat16]) == 1

# %%
figure = plots.curves(
    factors,
    {str(dtype).removeprefix("torch."): share for dtype, share in shares.items()},
    xlabel="factor that the gradients are multiplied by",
    ylabel="survive",
    shares=True,
    title="float16 is a window that gradients must be moved into; bfloat16 is wide enough",
)
plots.show(
    figure,
    alt="Share of gradients that survive against the factor. In float16 it rises to 100 % and falls "
    "steeply where gradients overflow; in bfloat16 it is 100 % throughout.",
)

# %% [markdown]
r"""
So training in `float16` needs *loss scaling*: multiply the loss by such a factor, and the chain rule multiplies every
gradient by it. Divide it out again before the update, in `float32`. `bfloat16` does without. (Lecture 10 builds both.)

### Why deep learning can be sloppy

Orbits and bridges are usually computed in `float64`. Why not networks? Because the gradient itself is only an
estimate. Take another batch, and it comes out different. Compare three errors of one gradient: `float32` rounds,
`bfloat16` rounds more, and another batch of 256 examples is another sample.
"""


# %%
def gradient(rows: slice, dtype: torch.dtype) -> Tensor:
    """The gradient of the loss on these rows, computed in dtype, as one long float64 vector."""
    network = copy.deepcopy(model).to(dtype)
    network.zero_grad()
    (network(inputs[rows].to(dtype)) - targets[rows].to(dtype)).pow(2).mean().backward()
    return torch.cat(
        [p.grad.flatten().double() for p in network.parameters() if p.grad is not None]
    )


here, there = slice(0, 256), slice(256, 512)
exact = gradient(here, torch.float64)
others = {
    "float32": gradient(here, torch.float32),
    "bfloat16": gradient(here, torch.bfloat16),
    "another batch": gradient(there, torch.float64),
}
errors = {name: ((g - exact).norm() / exact.norm()).item() for name, g in others.items()}
for name, error in errors.items():
    print(f"{name:>13}: off by {error:.2g} of the gradient's length")
torch.set_num_threads(threads)

assert errors["float32"] < 1e-5
assert errors["float32"] < errors["bfloat16"] < 0.05
assert errors["another batch"] > 50 * errors["bfloat16"]

# %% [markdown]
r"""
Rounding is a whisper next to the noise of sampling, which is more than fifty times as large here, and training is made to
average over noise. `float64` would spend
twice the bytes of `float32`, and on most GPUs at least twice the time, to make the whisper fainter still. But mind what
this does *not* say. Noise averages out only if it is different each time. An error that goes the same way at every step
does not. And there is one such error.

### The update that vanishes

A weight of 1 is to grow by 0.001 a step, a thousand times. After that it should be 2.

**Predict.** In `bfloat16`, rounded after each step: where is it?
"""

# %%
guess = None  # the weight after a thousand steps

# %% tags=["item-13"]
weight = torch.tensor(1.0, dtype=torch.bfloat16)
for _ in range(1000):
    weight += 1e-3
reconcile("the weight", guess, weight.item(), "")

assert weight == 1
assert gap(1.0, torch.bfloat16) / 2 > 1e-3  # each step is less than half a gap …
assert gap(1.0, torch.float16) / 2 < 1e-3  # … which in float16 it is not …
half_weight = torch.tensor(1.0, dtype=torch.float16)
for _ in range(1000):
    half_weight += 1e-3
assert 1.95 < half_weight < 2  # … but rounding 0.001 to one gap, each time, adds up to an error
assert torch.tensor(1.0) + 1e-9 == 1  # float32 swallows updates, too, but only far smaller ones
assert gap(1.0, torch.bfloat16) == 8 * gap(1.0, torch.float16)

# %% [markdown]
r"""
Not a single step was taken. Nothing warns you: the loss just stops falling. The gradient was fine and the product with
the learning rate was fine. What was lost was the *sum*. There are two ways out. Keep a `float32` copy of the weights,
add the updates there, and compute with a `bfloat16` copy of it: these *master weights* are the usual way. Or round so
that small steps count in the long run.

What each format means for training, then:

| format | range | precision | so that training is stable |
|---|---|---|---|
| `float32` | ample | ample | it just works, at four bytes a number |
| `bfloat16` | as `float32` | small updates vanish | keep weights and sums in `float32` |
| `float16` | gradients vanish, activations overflow | 8 × as fine as `bfloat16` | scale the loss; keep weights and sums in `float32` |
| `float8_e4m3fn` | ±448 | very coarse | one scale for each tensor or block; usual for weights and activations |
| `float8_e5m2` | ±57,344 | coarser still | the same; often for gradients, which need range |

*Try it yourself:* let the weight be 0.1 instead of 1, with the same step. Where does it stop now? `gap` tells you why.

### Exercise 2.6 · Rounding by lot &nbsp; ★★☆ &nbsp; 15 minutes

Write `stochastic_round(x, generator)`: round each element of the `float32` tensor `x` to one of its two `bfloat16`
neighbors, at random, so that it is right *on average*. An element that lies a quarter of the way to the next number
goes there with probability 1/4. What `bfloat16` holds exactly stays as it is. Each element draws for itself, and all
randomness comes from `generator` (a `torch.Generator` on the device of `x`). The result is a new `bfloat16` tensor of the
shape of `x`, which may be any view and stays as it is. All elements are finite, and within the largest number of
`bfloat16`. There may be millions of them, so write no loop.
"""


# %% nbgrader={"grade": false, "grade_id": "stochastic_round", "locked": false, "schema_version": 3, "solution": true, "task": false}
def stochastic_round(
    x: Float[Tensor, "..."], generator: torch.Generator
) -> Float[Tensor, "..."]:
    """x (float32) as bfloat16, each element rounded to a neighbor with a probability that makes the mean exact."""
    ### BEGIN SOLUTION
    noise = torch.randint(
        0, 2**16, x.shape, generator=generator, dtype=torch.int32, device=x.device
    )
    bits = x.view(torch.int32) + noise  # carries into the upper half as often as it should
    return (bits & -(2**16)).view(torch.float32).to(torch.bfloat16)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_stochastic_round", "locked": true}
check("stochastic_round")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>The lower 16 bits of the <code>float32</code> are the distance to the nearer-to-zero
neighbor, in units of 1/65,536 of a gap.</details>
<details><summary>Hint 2</summary>Cutting off the lower 16 bits always takes the same neighbor. What could you add to the
bits before, at random, so that there is a carry as often as it should come?</details>

**Why it matters.** The update that vanished needs no `float32` copy any more: with two bytes a weight, it moves by a whole
gap now and then, and on average just as it should. Some accelerators do this in hardware.
"""

# %%
generator = torch.Generator().manual_seed(0)
weights = torch.ones(200, dtype=torch.bfloat16)  # 200 weights that all should reach 2
by_lot, to_nearest = [weights.float()], [1.0]
plain = torch.tensor(1.0, dtype=torch.bfloat16)
for _ in range(1000):
    weights = stochastic_round(weights.float() + 1e-3, generator)
    plain += 1e-3
    by_lot.append(weights.float())
    to_nearest.append(plain.item())
paths = torch.stack(by_lot, dim=1)  # [weight, step]
print(f"mean {paths[:, -1].mean():.3f}, standard deviation {paths[:, -1].std():.3f}")

assert abs(paths[:, -1].mean() - 2) < 0.05  # right on average …
assert paths[:, -1].std() > 0.03  # … with noise in each
assert to_nearest[-1] == 1

# %%
fig = Figure(figsize=(8.9, 3.8), layout="constrained")
axes = fig.add_subplot(xlabel="step", ylabel="weight", xlim=(0, 1290))
for path in paths[:5]:
    axes.plot(path.tolist(), color=plots.MEASURED, linewidth=1, alpha=0.6)
axes.plot(paths.mean(dim=0).tolist(), color=plots.MEASURED, linewidth=3)
axes.plot(to_nearest, color=plots.MEASURED, linewidth=3, linestyle=":")
axes.plot([0, 1000], [1, 2], color=plots.PREDICTED, linewidth=1.5, linestyle="--")
for text, height in (
    ("rounded by lot:\nfive weights,\nand the mean of 200", 1.72),
    ("exact (dashed)", 2.03),
    ("to nearest", 1.0),
):
    axes.text(1015, height, text, va="center", weight="bold", size=9.5)
axes.grid(True, alpha=0.35, color=plots.CONTEXT)
axes.spines[["top", "right"]].set_visible(False)
axes.set_xticks(range(0, 1001, 200))
axes.set_title(
    "Rounded to nearest, a bfloat16 weight never moves; by lot, it is right on average",
    loc="left",
    weight="bold",
    size=12,
)
plots.show(
    fig,
    alt="Weight against step. Rounded to nearest it stays at 1 for a thousand steps; rounded by lot, "
    "single weights wander up in steps, and their mean follows the exact line to 2.",
)

# %% [markdown]
r"""
*Try it yourself:* make the step 1e-5 instead. Who still moves, and what does the noise look like?

## 7 · The result: every number there is

There are 256 patterns of eight bits and 65,536 of sixteen. That is so few that you can look at *all* of them. Let your
decoder read every pattern of four formats, from its bits alone, and hold each one against PyTorch. Then the way back:
PyTorch turns your number into the format again, and the bits must be the very ones that you began with.

**Predict.** How many of the 65,536 patterns of `float16` are NaN?
"""

# %%
guess = None  # of 65,536

# %%
patterns = 0
line: dict[str, Tensor] = {}
for name in ("float8_e4m3fn", "float8_e5m2", "float16", "bfloat16"):
    dtype, (exponent_bits, mantissa_bits) = getattr(torch, name), plans[name]
    count = 2 ** (1 + exponent_bits + mantissa_bits)
    whole = torch.uint8 if dtype.itemsize == 1 else torch.int16
    bits = torch.arange(count, dtype=torch.int32).to(whole)
    theirs = bits.view(dtype).double()
    ours = torch.tensor(
        [decode(n, exponent_bits, mantissa_bits, name.endswith("fn")) for n in range(count)],
        dtype=torch.float64,
    )
    nan = theirs.isnan()
    assert torch.equal(ours.isnan(), nan)
    assert torch.equal(ours[~nan], theirs[~nan])  # every number, and every infinity …
    assert torch.equal(ours[~nan].to(dtype).view(whole), bits[~nan])  # … and back, bit for bit
    if name == "float16":
        reconcile("patterns of float16 that are NaN", guess, int(nan.sum()), "")
        assert nan.sum() == 2 * (2**10 - 1) == 2_046
    line[name] = ours
    patterns += count
    print(
        f"{name:>14}: {count:>6,} patterns, {int(ours.isfinite().sum()):>6,} finite: all agree"
    )
assert patterns == 131_584

# %% [markdown]
r"""
And here they are: the two 8-bit formats, number by number, drawn from *your* decoder. Above on an ordinary axis near
zero, below on an axis on which each doubling takes the same room.
"""

# %%
numbers = {
    name.removeprefix("float8_").removesuffix("fn").upper(): (
        line[name][line[name].isfinite()],
        limits(*plans[name])["smallest_normal"],
    )
    for name in ("float8_e5m2", "float8_e4m3fn")
}
title = "One bit moved from mantissa to exponent: half as dense, and twice as many doublings"
plots.show(
    plots.number_lines(numbers, title=title),
    alt="Every number of E4M3 and E5M2 as a tick. Near zero both are dense, and thin out with each "
    "doubling; E4M3 has eight ticks to a doubling and reaches from 2^-9 to 448, E5M2 has four and "
    "reaches from 2^-16 to 57,344.",
)

doublings = {}
for name, numbers in line.items():
    normal_from = limits(*plans[name], name.endswith("fn"))["smallest_normal"]
    doublings[name] = math.ceil(math.log2(numbers[numbers.isfinite()].max() / normal_from))
print(doublings)
assert doublings["float8_e4m3fn"] == 15 and doublings["float8_e5m2"] == 30
assert doublings["float16"] == 30 and doublings["bfloat16"] == 254
for name, steps in (("float8_e4m3fn", 8), ("float8_e5m2", 4)):
    assert ((line[name] >= 1) & (line[name] < 2)).sum() == steps

# %% [markdown]
r"""
You could do the same for a format that will be published next year: all you need is its plan.

*Try it yourself:* print E3M4, which is `decode(n, 3, 4)` for all n below 256. Where would you use such a format?

## Takeaways

**Mechanics.** A float is sign, exponent, mantissa: $\pm (1 + m/2^M) \cdot 2^{\,e - \text{bias}}$, with a bias of
$2^{E-1} - 1$. Exponent field 0 is subnormal, all ones is infinity or NaN (in E4M3 a single NaN). The next pattern is
the next number. Conversion rounds to nearest, ties to even; too small becomes 0, too large becomes infinite (in E4M3: NaN
or 448), and nobody tells you.

**Mindset.** For each tensor ask two questions. Does its *range* fit: the smallest gradient, the largest activation? Does
its *precision* fit: is what I add larger than half a gap of what I add it to? Convert for storing and multiplying; add
up in `float32`.

**Intuitions.** Exponent bits are range, mantissa bits precision. `float16` has too little range, `bfloat16` too little
precision, 8 bits have too little of both, and each has its cure: a scale for the loss, a `float32` copy of the
weights, a scale for each tensor. Rounding is harmless while it is noise; it is deadly where it goes the same way
every time.

Next: [03 · Strides and views](../03_strides_and_views/03_strides_and_views.ipynb), what lies between a shape and the memory. In **10 · Mixed precision** the scale and the
master weights become a training loop.
"""

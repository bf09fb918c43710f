# %% [markdown]
r"""
# 02 · Dtypes

[← 01 · Tensors](../01_tensors/01_tensors.ipynb) &nbsp;|&nbsp; [03 · Strides and views
→](../03_strides_and_views/03_strides_and_views.ipynb)

> **What do the bits inside an element mean, and what gets lost?**

A **floating-point number** is stored like a number in scientific notation, with a sign, a few digits and an exponent.
In a tensor it has just 64, 32, 16, 8 or even 4 bits. So every format can represent only certain numbers and must
round all the others. The designer of the format chose which numbers it can represent, and you choose again whenever you
write `dtype=`. In this lecture you'll write a decoder and check it against PyTorch on every one of the 131,584 bit
patterns of `float16`, `bfloat16` and the two 8-bit formats. You'll also see which formats round gradients to zero,
which ones leave a weight stuck, and how people fix both. At the end you'll read a format of only four bits.

(Bits mean the same thing on a GPU as on a CPU, so this lecture runs on the CPU.)
"""

# %%
import copy
import math

import torch
from jaxtyping import Bool, Float, Int
from matplotlib.figure import Figure
from torch import Tensor, nn

from course_utils import plots
from course_utils.facts import FACTS
from course_utils.predict import reconcile
from course_utils.progress import show_progress
from course_utils.testing import check

torch.manual_seed(0)  # the same random numbers on every run
print(f"torch {torch.__version__}")
show_progress()

# %% [markdown]
r"""
## 1 · Thirty-two bits

A `float32` has three fields: one *sign* bit, eight *exponent* bits, and 23 *mantissa* bits. Calling `view` with a dtype
reinterprets the same memory as another type without converting anything, so we can use it to look at the bits:
"""


# %% tags=["item-7"]
def fields(x: float) -> str:
    """The bits of x in float32: sign, exponent and mantissa."""
    bits = int(torch.tensor(x, dtype=torch.float32).view(torch.int32))
    text = f"{bits & 0xFFFFFFFF:032b}"  # & gives the same bits as a nonnegative number
    return f"{text[0]} {text[1:9]} {text[9:]}"


for value in (1.0, -1.0, 2.0, 3.0, 0.15625, 0.1):
    print(f"{value:>7}  {fields(value)}")

assert fields(1.0) == "0 01111111 00000000000000000000000"  # exponent field 127
assert fields(-1.0) == "1 01111111 00000000000000000000000"  # only the sign differs
assert fields(2.0) == "0 10000000 00000000000000000000000"  # exponent field 128
assert fields(3.0) == "0 10000000 10000000000000000000000"  # 2 · 1.1 in base two

# %% [markdown]
r"""
Read the three fields the way you read 1.5 · 10⁻⁸, but in base two. The **exponent** says roughly how large the number
is; the **mantissa**, also called the *fraction* (and, loosely, the *significand*), holds its digits:

$$(-1)^{\text{sign}} \cdot \left(1 + \frac{\text{mantissa}}{2^{23}}\right) \cdot 2^{\,\text{exponent field} - 127}$$

Two ideas are at work here. In base-two scientific notation the first digit of any number except zero is 1, so the
format doesn't store it. The leading 1 that isn't stored is the **implicit one**. The exponent field itself is never
negative: to get the exponent, you subtract a constant, the **bias**, from the field. For `float32` the bias is 127, and
with $E$ exponent bits it's $2^{E-1} - 1$.

**Predict.** Which number is `0 10000001 10100000000000000000000`? Work it out on paper: 10000001 in base two is 129,
and a mantissa that begins with 101 stands for 1/2 + 1/8.
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
Two values of the exponent field are reserved for special cases.

- *All zeros.* There's no implicit one, and the exponent is the same as for a field value of 1. So the number is
  $\text{mantissa} / 2^{23} \cdot 2^{1-127}$. A mantissa of 0 then means the number zero. Because the sign bit can still
  be 0 or 1, zero has two patterns, 0 and −0. A **subnormal** number has exponent field 0 and a nonzero mantissa.
  Subnormal numbers fill the gap between zero and the smallest ordinary (*normal*) number in equal steps.
- *All ones.* If the mantissa is 0, that's infinity. Any other mantissa means **NaN**, *not a number*, the result of
  operations such as ∞ − ∞.
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

assert -0.0 == 0.0  # equal, although their bits differ
assert math.nan != math.nan  # NaN equals nothing, itself included

# %% [markdown]
r"""
> **Trap: 0.1 is not 0.1.** It's easy to assume that `0.1` is stored exactly and that rounding happens only in long
> computations. But `0.1` is rounded too: in base two, 0.1 has infinitely many digits, like 1/3 in base ten. The
> computer stores the nearest number that the format can represent.
"""

# %%
stored = torch.tensor(0.1).item()  # float32, read back as a Python float, which is a float64
print(f"{stored:.20f}")
assert stored != 0.1
assert 0.1 + 0.2 != 0.3  # Python's own floats are float64, and they round too

# %% [markdown]
r"""
*Try it yourself:* print `fields(x)` for 4, 8, 16 and then for 5, 9, 17. Which field changes when a number doubles? What
happens to the 1 in the mantissa if you go on in this way, up to `2.0**24 + 1`?

## 2 · One layout, six formats

All formats in this lecture but one (a format for scales, in section 9) follow that layout: sign, exponent, mantissa.
They differ in how many bits they give to the exponent and to the mantissa. *Exponent bits buy range*: how large and how
small a number can be. *Mantissa bits buy precision*: how close together the numbers are. Since the total number of bits
is fixed, each extra exponent bit costs a mantissa bit, and vice versa.
"""

# %%
layouts = {  # exponent bits, mantissa bits
    "float64": (11, 52),
    "float32": (8, 23),
    "bfloat16": (8, 7),
    "float16": (5, 10),
    "float8_e5m2": (5, 2),
    "float8_e4m3fn": (4, 3),
}
for name, (exponent_bits, mantissa_bits) in layouts.items():
    assert 1 + exponent_bits + mantissa_bits == 8 * getattr(torch, name).itemsize

# %% tags=["folded"]
title = "Bits left of the line buy range, bits right of it buy precision"
plots.show(
    plots.bit_layouts(layouts, title=title),
    alt="The bits of six formats, lined up where exponent and mantissa meet. float32 and bfloat16 "
    "have 8 exponent bits, float16 and E5M2 have 5, E4M3 has 4; mantissas have 52, 23, 7, 10, 2 and 3.",
)

# %% [markdown]
r"""
Look at two pairs of formats. **bfloat16** is `float32` without its lower 16 bits: it has almost the same range and far less
precision. In the same way, E5M2 (PyTorch's `float8_e5m2`) is `float16` without its lower 8 bits. The next cell shows
both: `>> 16` shifts the bits 16 places to the right, so that the lower 16 disappear, and `<< 16` shifts the others
back.
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
The names of the 8-bit formats, together called **fp8**, describe their layout: *E5M2* has five exponent bits and two
mantissa bits, *E4M3* has four and three. E5M2 follows all the rules above. E4M3 breaks the rule for an exponent field of all ones. Its
designers gave up infinity for more range: the highest exponent is used for ordinary numbers, and the *only* NaN is the
pattern with all exponent and mantissa bits set (with either sign). PyTorch's name for it reflects both changes: in
`float8_e4m3fn`, `f` stands for *finite* and `n` for a nonstandard NaN.
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
for dtype, count in finite.items():
    print(f"{dtype}: {count} of 256 patterns are finite")
assert finite == {torch.float8_e4m3fn: 254, torch.float8_e5m2: 248}

# %% [markdown]
r"""
> **Trap: what's standard?** You may read that fp8 "was standardized in 2022". In fact, NVIDIA, Arm and Intel only
> *proposed* it in 2022 ([arXiv:2209.05433](https://arxiv.org/abs/2209.05433)), and the Open Compute Project published
> its specification of 8-bit floating point in 2023. There are other 8-bit formats too; PyTorch has some, with `fnuz` in
> their names. You may also see fp8, or E5M2 alone, called "BF8". Don't expect a small bfloat16: even E5M2 has only as
> many exponent bits as `float16`, and therefore only about the range of `float16`.

The 8-bit formats are meant for *storing* numbers, and for matrix multiplications on hardware that supports them. In
PyTorch you can't even add two such tensors. Instead, you convert, compute, and convert back.
"""

# %% tags=["error-18", "error-33"]
small = torch.tensor([0.1, 1.0, 300.0]).to(torch.float8_e4m3fn)
print(small.float())  # what the conversion made of them
assert small.float().tolist() == [0.1015625, 1.0, 288.0]
try:
    small + small
except RuntimeError as error:
    print(error)
else:
    raise AssertionError("8-bit numbers can be added")

e5m2, half, brain = (
    torch.finfo(dtype) for dtype in (torch.float8_e5m2, torch.float16, torch.bfloat16)
)
assert e5m2.smallest_normal == half.smallest_normal and e5m2.max < half.max < brain.max
assert not hasattr(torch, "bfloat8")  # PyTorch has no such name

# %% [markdown]
r"""
Now flip the bits yourself: press one, type a number, or change the format. The three number lines zoom in on your
number: the first shows all powers of two, the second the numbers between two of them, and the third the nearest
neighbors. Flip the lowest exponent bit of 0.1: which of the three markers moves, and what happens to the distance to
the neighbors? And which single bit turns 448 in E4M3 into NaN?
"""

# %%
from course_utils.explorers import float_bits

float_bits.explore("0.1", "float16")

# %% [markdown]
r"""
*Try it yourself:* convert 0.1, 1 and 300 to `float8_e5m2`, as we did above with `float8_e4m3fn`. Which of the two
formats comes closer, and which has enough range for 3,000?

### Exercise 2.1 · A decoder &nbsp; ★★★ &nbsp; essential &nbsp; 25 minutes

Write `decode(bits, exponent_bits, mantissa_bits, finite=False)`. It returns the number that a bit pattern represents,
in any format that follows this layout. `bits` is an integer of exactly `1 + exponent_bits + mantissa_bits` bits: first
the sign, then the exponent bits, then the mantissa bits. Handle all cases: normal and subnormal numbers, the two zeros,
both infinities, and NaN. With `finite=True` the format departs from the rules in the same way as E4M3: there's no
infinity, and the only NaN is the pattern in which all bits after the sign are set. Use integers and Python floats;
don't make a tensor.

Formats have at least two exponent bits and at least one mantissa bit, and at most as many of each as `float64`. With
`finite=True` they have at most ten exponent bits, so that every number fits into a Python float. A negative zero must
be −0.0: note that `-1 * 0` is 0 in Python, but `-1.0 * 0` is −0.0.
"""


# %% nbgrader={"grade": false, "grade_id": "decode", "locked": false, "schema_version": 3, "solution": true, "task": false}
def decode(bits: int, exponent_bits: int, mantissa_bits: int, finite: bool = False) -> float:
    """The number that a pattern of 1 + exponent_bits + mantissa_bits bits represents.

    finite: as in E4M3, the highest exponent is an ordinary one; the only NaN has all bits below the sign set.
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
<details><summary>Hint 2</summary>Then there are four cases, in this order: the highest exponent, unless it's used for ordinary numbers;
the one NaN of a finite format; exponent field 0; everything else.</details>
<details><summary>A worked example</summary>

```
E5M2, 0 00000 11     subnormal:  0.75 · 2^(1 - 15)  = 0.0000457763671875
E5M2, 0 00001 11     normal:     1.75 · 2^(1 - 15)  = 0.0001068115234375
E5M2, 1 11110 11     normal:    -1.75 · 2^(30 - 15) = -57344
E5M2, 1 11111 00     special:   -inf
E4M3, 1 1111 100     normal:    -1.5  · 2^(15 - 7)  = -384
```

</details>

**Why it matters.** New formats keep appearing in published models, data sheets and papers. If one follows this layout,
or departs from it as E4M3 does, you can now read it.

### Exercise 2.2 · The limits of a format &nbsp; ★★☆ &nbsp; 15 minutes

Write `limits(exponent_bits, mantissa_bits, finite=False)`. It returns a dictionary with exactly these four numbers:

- `"max"`: the largest finite number;
- `"smallest_normal"`: the smallest positive number that has an implicit one;
- `"smallest_subnormal"`: the smallest positive number of all;
- `"eps"`: the distance from 1 to the next larger number.

The results must be exact for the same formats as before, `float64` included. (For that one, don't compute `2.0**1024`
along the way: it's too large for a Python float.)
"""


# %% nbgrader={"grade": false, "grade_id": "limits", "locked": false, "schema_version": 3, "solution": true, "task": false}
def limits(exponent_bits: int, mantissa_bits: int, finite: bool = False) -> dict[str, float]:
    """The limits of a format: max, smallest_normal, smallest_subnormal, eps. finite: as in E4M3."""
    ### BEGIN SOLUTION
    bias = 2 ** (exponent_bits - 1) - 1
    eps = 2.0**-mantissa_bits
    # The highest exponent and the largest mantissa that are not reserved:
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
<details><summary>Hint 1</summary>Write down the bit pattern of each of the four numbers, and decode it by hand.</details>
<details><summary>Hint 2</summary>What is 1 + mantissa / 2**mantissa_bits for the largest mantissa, in terms of eps? In E4M3,
that mantissa with the highest exponent is the NaN.</details>

**Why it matters.** These four numbers tell you whether a dtype fits your data, so look them up before you choose one.
Let's compare yours with PyTorch's.
"""

# %% tags=["item-11"]
print(f"{'':>13} {'max':>11} {'min normal':>11} {'min subnormal':>14} {'eps':>9}")
for name, (exponent_bits, mantissa_bits) in layouts.items():
    ours = limits(exponent_bits, mantissa_bits, finite=name.endswith("fn"))
    theirs = torch.finfo(getattr(torch, name))
    assert ours["max"] == theirs.max == -theirs.min
    assert ours["smallest_normal"] == theirs.smallest_normal == theirs.tiny
    assert ours["eps"] == theirs.eps
    print(
        f"{name:>13} {ours['max']:>11.5g} {ours['smallest_normal']:>11.3g} "
        f"{ours['smallest_subnormal']:>14.3g} {ours['eps']:>9.3g}"
    )

# %% [markdown]
r"""
> **Trap: three misleading names.** `finfo.min` isn't the smallest positive number but the most *negative* one.
> `finfo.tiny` (or `smallest_normal`) is the smallest *normal* number; subnormal numbers are smaller still.
> `finfo.eps`, the **machine epsilon**, is the gap between 1 and the next number. It isn't the smallest number either:
> the format can represent numbers far smaller than `eps`.
"""

# %%
half = torch.finfo(torch.float16)
assert half.min == -65_504
assert torch.tensor(half.tiny / 1024, dtype=torch.float16) > 0  # far below tiny
assert torch.tensor(half.eps / 1024, dtype=torch.float16) > 0  # far below eps
assert 1 + torch.tensor(half.eps / 1024, dtype=torch.float16) == 1  # but lost when added to 1

# %% [markdown]
r"""
*Try it yourself:* design a 16-bit format with six exponent bits. Where do its limits fall between those of `float16`
and `bfloat16`?
"""

# %% [markdown]
r"""
## 3 · Range: too small and too large

What happens to a number outside the limits? **Underflow** turns a number that's too small for a format into 0.
**Overflow** turns a number that's too large for a format into infinity, if the format has one. There's no error and no
warning. In `float16` both happen to quite ordinary numbers:
"""

# %% tags=["item-9"]
assert torch.tensor(1e-8, dtype=torch.float16) == 0  # underflow
assert torch.tensor(70_000.0, dtype=torch.float16) == math.inf  # overflow

# %% tags=["item-10", "error-29"]
x = torch.tensor([1e-8, 70_000.0], dtype=torch.bfloat16)
print(x)
assert x[0] > 0 and x[1].isfinite()  # both survive …
assert x.tolist() == [1.0011717677116394e-08, 70_144.0]  # … as the nearest bfloat16 there is
assert round(x[0].item() / 1e-8 - 1, 4) == 0.0012

# %% [markdown]
r"""
In `bfloat16` both numbers survive, which is the point of the format (Kalamkar and others, 2019, arXiv:1905.12322).

> **Trap: a number can survive and still change.** A check such as `x != 0` shows only that the number hasn't become 0.
> Here 1e-8 has become 1.0012e-08, 0.12% too large, and 70,000 has become 70,144.

Where exactly is the edge? A conversion rounds to the nearest number that the format can represent, and for rounding,
infinity counts as the number that would come right after the largest one. So a number is lost only if it rounds to 0 or
to infinity. In `float16`, $2^{-25}$ lies halfway between 0 and the smallest subnormal number, and it becomes 0; any
larger `float32` number survives. At the other end, 65,520 lies halfway between the largest number, 65,504, and the one
that would come next, 65,536. So 65,520 becomes infinite, while 65,519 still rounds down. (Section 4 explains why one
halfway case rounds down and the other up.)
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
One infinity soon causes more damage. Infinity minus infinity is NaN, and almost all arithmetic with a NaN gives another
NaN. So when the loss of a `float16` run turns into NaN, look for a number that got too large a few operations earlier.
"""

# %%
scores = torch.tensor([70_000.0, 1.0], dtype=torch.float16)
# subtract the largest, as programs usually do before they take exponentials
shifted = scores - scores.max()
print(shifted)
assert shifted.isnan().tolist() == [True, False]  # inf - inf
assert shifted.sum().isnan()

# %% [markdown]
r"""
> **Trap: bfloat16 can overflow.** You may read that converting `float32` to `bfloat16` never overflows, because both
> have the same range. They do have the same *exponents*, but the mantissa of `bfloat16` is shorter, so the very largest
> numbers of `float32` round up to infinity.

> **Trap: beyond 448.** In older versions of PyTorch, a number too large for `float8_e4m3fn` became NaN. Since 2.12
> (pull request 178817) it becomes 448, and so does infinity, so converting can hide an overflow. (`float8_e5m2` has an
> infinity and uses it.) Don't rely on either behavior of E4M3: scale your numbers into the range *before* you convert.
"""

# %%
assert torch.tensor(3.4e38).isfinite() and torch.tensor(3.4e38).bfloat16() == math.inf

beyond = torch.tensor(1e4).to(torch.float8_e4m3fn).float()
print(f"1e4 as float8_e4m3fn in torch {torch.__version__}: {beyond.item()}")
assert beyond.isnan() or beyond == 448
hidden = torch.tensor(math.inf).to(torch.float8_e4m3fn).float()
assert torch.equal(hidden, beyond) or hidden.isnan()
assert torch.tensor(1e6).to(torch.float8_e5m2).float() == math.inf

# %% [markdown]
r"""
*Try it yourself:* how far can you go below `2.0**-126` in `bfloat16` before you reach 0? Find out with
`torch.tensor(…, dtype=…)`, then compare with `limits`.

### Exercise 2.3 · What survives? &nbsp; ★☆☆ &nbsp; essential &nbsp; 5 minutes

Write `survives(values, dtype)`. For each value, it says whether a conversion to `dtype` (`float16`, `bfloat16` or
`float32`) leaves it finite and doesn't turn it into 0. A 0 has nothing to lose and survives; a value that's already
infinite or NaN doesn't. A value that survives may still be rounded. `values` is a tensor of any shape, in `float64` or
one of these three dtypes; the result is a Boolean tensor of the same shape. You can assume that no value is so close to
a limit that rounding it to `float32` first would change the answer.
"""


# %% nbgrader={"grade": false, "grade_id": "survives", "locked": false, "schema_version": 3, "solution": true, "task": false}
def survives(values: Float[Tensor, "..."], dtype: torch.dtype) -> Bool[Tensor, "..."]:
    """True where a value converted to dtype is finite, and is 0 only if it was 0 before."""
    ### BEGIN SOLUTION
    converted = values.to(dtype)
    return converted.isfinite() & ((converted != 0) | (values == 0))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_survives", "locked": true}
check("survives")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Convert, and look at what the values became.</details>
<details><summary>Hint 2</summary>Two conditions must hold: one about overflow, the other about underflow. Put each
comparison in parentheses, and combine them with <code>&</code> and <code>|</code>.</details>

**Why it matters.** In section 6 you'll apply this function to the gradients of a real network.

## 4 · Precision: the gaps between numbers

Within its range, a format has finitely many numbers, and they aren't evenly spaced. There are as many `float16` numbers
between 1 and 2 as between 2 and 4, or between 1,024 and 2,048: one for each mantissa, 1,024 of them. So the gap between
neighbors doubles at each power of two.

**Predict.** There are 63,487 different finite numbers in `float16`, from −65,504 to 65,504. How many of them lie
between −1 and 1, inclusive?
"""

# %%
guess = None  # of 63,487

# %%
every = torch.arange(2**16, dtype=torch.int32).to(torch.int16).view(torch.float16).double()
numbers = every[every.isfinite()].unique()  # once each: 0 and −0 are the same number
inside = int((numbers.abs() <= 1).sum())
reconcile("float16 numbers from −1 to 1", guess, inside, "of 63,487")

assert len(numbers) == 63_487
assert inside == 30_721  # nearly half of them, in 1/65,504 of the range
for low in (1, 2, 1024):
    assert ((numbers >= low) & (numbers < 2 * low)).sum() == 1024

# %% [markdown]
r"""
That's the layout at work: the exponent picks an interval from one power of two to the next, and the mantissa divides
each interval into the same number of steps. If you look at the bit patterns, it's even simpler:

> *The next number is the next pattern.* Read the bits of a positive float as an integer and add 1. If the mantissa
> overflows, the carry goes into the exponent, which is exactly what should happen. Even 0, the subnormal numbers and
> infinity fit into this order.
"""

# %%
one = torch.tensor(1.0, dtype=torch.bfloat16)
following = (one.view(torch.int16) + 1).view(torch.bfloat16)
assert following == 1 + 2**-7 == 1.0078125  # there is no bfloat16 between 1 and this

assert one + 2**-8 == 1  # so half a gap more than 1 rounds back to 1
assert one + 2**-7 == following
top = torch.tensor(torch.finfo(torch.bfloat16).max, dtype=torch.bfloat16)
assert (top.view(torch.int16) + 1).view(torch.bfloat16) == math.inf  # the very next pattern

# %% [markdown]
r"""
### Exercise 2.4 · Mind the gap &nbsp; ★★☆ &nbsp; essential &nbsp; 15 minutes

Write `gap(x, dtype)`. Round `x` to the nearest number that `dtype` can represent, and return the distance from there to
the next larger one. `x` is a Python float, 0.0 or positive, and it rounds to a number below the largest one of the
dtype. The function must work for `float64`, `float32`, `float16`, `bfloat16` and both 8-bit formats (PyTorch can't
subtract those, so convert first), and its result must be exact. You can assume that no `x` lies exactly halfway between
two numbers and, unless `dtype` is `float64`, that none is so close to halfway that rounding it to `float32` first would
change the answer.
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
<details><summary>Hint 1</summary>Make a tensor of that dtype, view it as an integer of the same size, and add
1.</details>
<details><summary>Hint 2</summary><code>.view(torch.int16)</code> reads two bytes as an integer, and
<code>.view(torch.uint8)</code> reads one. In which dtype can you subtract without losing anything?</details>

**Why it matters.** Half of this gap is the largest error that rounding can introduce. Any positive amount below that
half gap is lost altogether when you add it to a positive number. (Numerical analysts call the gap a *unit in the last
place*, or **ulp**: the distance between a number and its next larger neighbor.)
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
Both axes are logarithmic, and where the curves don't level off, they all have slope 1: the gap grows in proportion to
the number. So a format doesn't have a fixed gap but, to within a factor of two, a fixed *relative* gap: `float32` has
about seven decimal digits, `float16` three and `bfloat16` two, regardless of the size of the number. And if you add
less than half a gap to a positive number, it doesn't change. (If you subtract, the gap *below* the number counts, which
is half as large at a power of two.) That's true for `float32` as well: beyond $2^{24}$ it can't represent every
integer, so don't count tokens with it.
"""

# %%
big = torch.tensor(2.0**24)  # float32; 16,777,216
assert gap(2.0**24, torch.float32) == 2
assert big + 1 == big
for dtype, digits in ((torch.float32, 6.9), (torch.float16, 3.0), (torch.bfloat16, 2.1)):
    assert round(-math.log10(torch.finfo(dtype).eps), 1) == digits

# %% [markdown]
r"""
What happens exactly halfway? PyTorch's conversions and sums **round to nearest**, with ties to even: they take the
closer neighbor, and if a number lies exactly in the middle, the neighbor whose last bit is 0. (Always rounding halves
up would make sums drift upward.) That's why 65,520 becomes infinite and $2^{-25}$ becomes 0 in section 3: the last bit
of 65,504 is 1, and that of 0 is 0.

**Predict.** Add up a thousand ones in `bfloat16`, one after another. What's the result?
"""

# %%
guess = None  # the sum

# %%
total = torch.tensor(0.0, dtype=torch.bfloat16)
for _ in range(1000):
    total += 1
reconcile("a thousand ones", guess, total.item(), "")
print(
    f"the gap there: {gap(total.item(), torch.bfloat16):g}; one more 1 is a tie, rounded down"
)

assert total == 256
assert gap(256.0, torch.bfloat16) == 2  # 257 lies halfway between 256 and 258 …
assert torch.tensor(257.0).bfloat16() == 256  # … and rounds down
# sum() keeps its running sum in float32
assert torch.ones(1000, dtype=torch.bfloat16).sum() == 1000

# %% [markdown]
r"""
Good implementations of sums, means and matrix products read 16-bit numbers but **accumulate** in `float32`: they keep
the running sum in the wider format and round once, at the end.

*Try it yourself:* do the same in `float16`, with 5,000 ones. Predict the result first.

## 5 · Rounding, by hand (optional)

We can watch rounding to nearest in the conversion from `float32` to `bfloat16`. The upper 16 bits are the neighbor
nearer to zero, and the lower 16 bits say how far beyond it the number lies:

| lower 16 bits | upper 16 bits |
|---|---|
| below `0x8000`, which is 1000 0000 0000 0000 in base two | stay |
| above `0x8000` | go up by 1 |
| exactly `0x8000`, a tie | go up by 1 only if they are odd |

If rounding up overflows the mantissa, the carry goes into the exponent. As you saw above, that's correct.
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
*Try it yourself:* Python's own `round` follows the same rule. What are `round(0.5)`, `round(1.5)` and `round(2.5)`?

### Exercise 2.5 · To bfloat16, bit by bit (optional) &nbsp; ★★★ &nbsp; 25 minutes

Write `to_bfloat16_bits(x)`. For each element of the `float32` tensor `x`, it returns the 16 bits of the nearest
`bfloat16`, as an integer from 0 to 65,535. Ties go to the even neighbor. Numbers half a gap or more above the largest
`bfloat16` become infinite, as they do in the formats of IEEE 754 (the floating-point standard), and −0.0 keeps its
sign. The result has the shape of `x` and any integer dtype that can hold these numbers, and `x` isn't changed. Use
integer arithmetic on the bits: don't make a `bfloat16` tensor. Infinity stays infinity, and every NaN must become some
NaN.
"""


# %% nbgrader={"grade": false, "grade_id": "to_bfloat16_bits", "locked": false, "schema_version": 3, "solution": true, "task": false}
def to_bfloat16_bits(x: Float[Tensor, "..."]) -> Int[Tensor, "..."]:
    """The bits of the bfloat16 nearest to each float32 in x, 0 to 65,535. Ties to even; NaN stays NaN."""
    ### BEGIN SOLUTION
    bits = x.view(torch.int32).long() & 0xFFFFFFFF  # int64, so that nothing is negative
    odd = (bits >> 16) & 1
    rounded = (
        bits + 0x7FFF + odd
    ) >> 16  # rounds up above the tie, and on the tie if that makes it even
    return torch.where(x.isnan(), 0x7FC0, rounded)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_to_bfloat16_bits", "locked": true}
check("to_bfloat16_bits")

# %% [markdown]
r"""
<details><summary>Hint 1</summary><code>x.view(torch.int32)</code> gives the bits. An int32 whose highest bit is set is
negative; <code>.long() & 0xFFFFFFFF</code> gives the same 32 bits as a nonnegative number.</details>
<details><summary>Hint 2</summary>Which number can you add so that there's a carry into the upper 16 bits if the lower
ones are above 0x8000, and only then? And what changes on a tie, if the upper part is odd? Handle NaN last, with
<code>torch.where</code>.</details>

**Why it matters.** On processors without an instruction for this conversion, software can do it this way, with two
additions, two shifts and a mask, and a test for NaN. Once you know the trick, you can build other kinds of rounding,
too, as section 7 does.
"""

# %%
x = torch.cat([torch.randn(10_000), torch.randn(10_000) * 1e-39, torch.randn(10_000) * 1e38])
theirs = x.bfloat16().view(torch.int16).long() & 0xFFFF  # now PyTorch's
assert torch.equal(to_bfloat16_bits(x).long(), theirs)

# %% [markdown]
r"""
## 6 · What it means for training

Here's a small network in `float32`. (You needn't be able to read its code yet: gradients come in lecture 06 and models
in 07.) The *loss* measures its error on a *batch* of examples, and the *backward pass* computes how the loss changes
with each intermediate number: that number's gradient. We look at the gradients of the output of the first tanh, the
nonlinear function after the first layer. These gradients are small. The loss is a mean over the batch, so each
example's contribution is divided by the batch size: 16,384 here. (In a language model each *token* is an example, and
DeepSeek-V3's batches have up to 63 million of them; arXiv:2412.19437.)
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
hidden.retain_grad()  # keep the gradient of the first tanh's output
loss = (model[2:](hidden) - targets).pow(2).mean()
loss.backward()
gradients = hidden.grad
assert gradients is not None
middle = gradients.abs().median().item()
print(f"{gradients.numel():,} gradients; half of them are smaller than {middle:.1e}")

assert middle < 1e-5
assert round(FACTS["DeepSeek-V3 tokens in a step"].value / 1e6) == 63

# %% [markdown]
r"""
Now apply your `survives`. Which of these gradients survive in 16 bits? And what if we first multiply all of them by a
power of two?
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

assert shares[torch.float16][0] < 0.95  # many gradients become 0 …
assert sample.abs().max() < 2**-14  # … and all others are subnormal …
assert shares[torch.float16][8] > 0.999  # … but nearly none if multiplied by 2^16 …
assert shares[torch.float16][-1] < 0.5  # … and too large a factor makes them infinite
assert min(shares[torch.bfloat16]) == 1

# %% tags=["folded"]
figure = plots.curves(
    factors,
    {str(dtype).removeprefix("torch."): share for dtype, share in shares.items()},
    xlabel="factor by which the gradients are multiplied",
    ylabel="share that survives",
    shares=True,
    title="float16 needs the gradients scaled into its range; bfloat16 does not",
)
plots.show(
    figure,
    alt="Share of gradients that survive against the factor. In float16 it rises to 100% and falls "
    "steeply where gradients overflow; in bfloat16 it is 100% throughout.",
)

# %% [markdown]
r"""
And surviving isn't enough: without a factor, even those that survive are all subnormal, with fewer bits left. So
training in `float16` needs *loss scaling*: multiply the loss by such a factor, and every gradient is multiplied by it
too. Before the update you undo this by dividing the gradients by the same factor, in `float32`. With `bfloat16` you
don't need this. (In lecture 10 you'll build both kinds of training.)

### Why deep learning can afford low precision

To compute an orbit or the load on a bridge, you'd want `float64`. Why don't we use it for networks? Because the
gradient itself is only an estimate: a different batch gives a different one. Let's take the gradient on 256 examples in
`float64` as exact, and see how far three others are from it: the same in `float32`, the same in `bfloat16`, and that on
the next 256 examples.
"""


# %%
def gradient(rows: slice, dtype: torch.dtype) -> Tensor:
    """The gradient of the loss on these rows, computed in dtype, as one float64 vector."""
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
    print(f"{name:>13}: error of {error:.2g} relative to the gradient's length")
torch.set_num_threads(threads)

assert errors["float32"] < 1e-5
assert errors["float32"] < errors["bfloat16"] < 0.05
assert errors["another batch"] > 50 * errors["bfloat16"]

# %% [markdown]
r"""
The noise from sampling is more than fifty times as large as the rounding error of `bfloat16`, and training averages
such noise out anyway. `float64` would take twice the bytes of `float32`, and so about twice the time wherever moving
data is the limit, to reduce an error that doesn't matter. But be careful: noise averages out only if it's different
each time. An error that has the same sign at every step keeps adding up, and here's an example.

### A thousand small steps

Suppose a weight is 1 and should grow by 0.001 at each step, a thousand times. In the end it should be 2.

**Predict.** If the weight is stored in `bfloat16`, and so rounded after each step, what is it in the end?
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
assert gap(1.0, torch.float16) / 2 < 1e-3  # … but not in float16 …
half_weight = torch.tensor(1.0, dtype=torch.float16)
for _ in range(1000):
    half_weight += 1e-3
assert 1.95 < half_weight < 2  # … where rounding 0.001 to one gap each time adds up to an error
assert torch.tensor(1.0) + 1e-9 == 1  # float32 loses updates too, but only far smaller ones
assert gap(1.0, torch.bfloat16) == 8 * gap(1.0, torch.float16)

# %% [markdown]
r"""
In training, nothing would warn you of such an error. The gradient would be fine, and so would the update computed from
it (the gradient times a small number, the *learning rate*): it's the *sum* that gets rounded. There are two remedies.
The usual one is to keep a `float32` copy of the weights, the *master weights* (lecture 00's *master copy*), add the
updates there, and compute with
a `bfloat16` copy of them. The other remedy changes how the sum is rounded. **Stochastic rounding** rounds a number to
one of its two neighbors at random, with probabilities that make the result right *on average*. (A **probability** is a
number between zero and one that says how likely something is.) An update of a tenth of a gap then moves the weight by a
whole gap one time in ten.

So this is what each format means for training:

- `float32` has ample range and precision, but takes four bytes per number.
- `bfloat16` has the range of `float32`, but it's too coarse for small updates. Keep weights and sums in `float32`.
- `float16` is eight times as fine as `bfloat16`, but small gradients underflow, and a layer's outputs (*activations*)
  can overflow. Scale the loss, and keep weights and sums in `float32`.
- E4M3 (`float8_e4m3fn`) ends at ±448 and is very coarse. Use one scale factor per tensor or block (section 9). It suits
  weights and activations, which need the additional mantissa bit.
- E5M2 (`float8_e5m2`) ends at ±57,344 and is coarser still. It needs scale factors as well, and suits gradients, which
  vary over a wider range. (If each small block has its own scale factor, E4M3 works for gradients, too; lecture 10.)

*Try it yourself:* let the weight be 0.1 instead of 1, with the same step. What is it in the end? `gap` tells you why.

## 7 · Stochastic rounding (optional)

With stochastic rounding, does the weight reach 2?

### Exercise 2.6 · Rounding at random (optional) &nbsp; ★★★ &nbsp; 20 minutes

Write `stochastic_round(x, generator)`, which rounds each element of the `float32` tensor `x` stochastically to one of
its two `bfloat16` neighbors. An element a quarter of the way from one neighbor to the other is rounded to the other with
probability 1/4. Elements that `bfloat16` can represent exactly don't change. Each element is rounded independently, and
all randomness comes from `generator` (a `torch.Generator` on the device of `x`). The result is a new `bfloat16` tensor
with the same shape as `x`; `x` may be any view and must stay unchanged. You can assume that all elements of `x` are
finite and that none is beyond the largest number of `bfloat16`. There may be millions of them, so don't write a loop.
"""


# %% nbgrader={"grade": false, "grade_id": "stochastic_round", "locked": false, "schema_version": 3, "solution": true, "task": false}
def stochastic_round(
    x: Float[Tensor, "..."], generator: torch.Generator
) -> Float[Tensor, "..."]:
    """x as bfloat16, rounded at random so that each element is right on average."""
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
<details><summary>Hint 1</summary>The lower 16 bits of the <code>float32</code> are the distance to the neighbor nearer to
zero, in units of 1/65,536 of a gap.</details>
<details><summary>Hint 2</summary>Cutting off the lower 16 bits always gives the same neighbor. What could you add to the
bits first, at random, so that there's a carry exactly as often as there should be?</details>

**Why it matters.** With stochastic rounding, the weight that got stuck no longer needs a `float32` copy: stored in two
bytes, it jumps by a whole gap now and then, and on average it moves just as it should.
"""

# %%
generator = torch.Generator().manual_seed(0)
weights = torch.ones(200, dtype=torch.bfloat16)  # 200 weights that should all reach 2
stochastic, to_nearest = [weights.float()], [1.0]
plain = torch.tensor(1.0, dtype=torch.bfloat16)
for _ in range(1000):
    weights = stochastic_round(weights.float() + 1e-3, generator)
    plain += 1e-3
    stochastic.append(weights.float())
    to_nearest.append(plain.item())
paths = torch.stack(stochastic, dim=1)  # [weight, step]
print(f"mean {paths[:, -1].mean():.3f}, standard deviation {paths[:, -1].std():.3f}")

assert abs(paths[:, -1].mean() - 2) < 0.05  # right on average …
assert paths[:, -1].std() > 0.03  # … with noise in each
assert to_nearest[-1] == 1

# %%
fig = Figure(figsize=(8.9, 3.8), layout="constrained")
axes = fig.add_subplot(xlabel="step", ylabel="weight", xlim=(0, 1290))
for path in paths[:5]:
    axes.plot(path.tolist(), color=plots.MEASURED, linewidth=1, alpha=0.6)
axes.plot(paths.mean(dim=0).tolist(), color=plots.MEASURED, linewidth=2)
axes.plot(to_nearest, color=plots.MEASURED, linewidth=3, linestyle=":")
axes.plot([0, 1000], [1, 2], color=plots.PREDICTED, linewidth=2.5, linestyle="--")
for text, height in (
    ("stochastic:\nfive weights,\nand the mean of 200", 1.72),
    ("exact (dashed)", 2.03),
    ("to nearest", 1.0),
):
    axes.text(1015, height, text, va="center", weight="bold", size=9.5)
axes.grid(True, alpha=0.35, color=plots.CONTEXT)
axes.spines[["top", "right"]].set_visible(False)
axes.set_xticks(range(0, 1001, 200))
axes.set_title(
    "Rounded to nearest, a bfloat16 weight never moves;\n"
    "rounded stochastically, it is right on average",
    loc="left",
    weight="bold",
    size=12,
)
plots.show(
    fig,
    alt="Weight against step. Rounded to nearest it stays at 1 for a thousand steps; rounded stochastically, "
    "single weights wander up in steps, and their mean follows the exact line to 2.",
)

# %% [markdown]
r"""
*Try it yourself:* copy the loop into a new cell, with a step of 1e-5. About how many of the 200 weights have moved
after a thousand steps, and what does the noise look like?

## 8 · Every number there is

There are only 256 patterns of eight bits and 65,536 of sixteen, few enough to look at *all* of them. Your decoder will
read every pattern of four formats, and we'll compare each result with PyTorch's. Then we go the other way: PyTorch
converts your number back into the format, and the bits must be the ones that you started with. (We leave out NaN: all
its patterns become the same Python `nan`, so there's no way back.)

**Predict.** How many of the 65,536 patterns of `float16` are NaN?
"""

# %%
guess = None  # of 65,536

# %%
patterns = 0
line: dict[str, Tensor] = {}
for name in ("float8_e4m3fn", "float8_e5m2", "float16", "bfloat16"):
    dtype, (exponent_bits, mantissa_bits) = getattr(torch, name), layouts[name]
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
    line[name] = ours
    patterns += count
    print(
        f"{name:>14}: {count:>6,} patterns, {int(ours.isfinite().sum()):>6,} finite: all agree"
    )
assert patterns == 131_584
nans = int(line["float16"].isnan().sum())
reconcile("patterns of float16 that are NaN", guess, nans, "")
assert nans == 2 * (2**10 - 1) == 2_046

# %% [markdown]
r"""
Here they are: the two 8-bit formats, number by number, as *your* decoder reads them. The upper part shows the numbers
near zero on a linear axis; the axis of the lower part is logarithmic, so each doubling takes up the same space.
"""

# %%
numbers = {
    name.removeprefix("float8_").removesuffix("fn").upper(): (
        line[name][line[name].isfinite()],
        limits(*layouts[name])["smallest_normal"],
    )
    for name in ("float8_e5m2", "float8_e4m3fn")
}
title = "E5M2 has one more exponent bit and one fewer mantissa bit: half as dense, twice as many doublings"
plots.show(
    plots.number_lines(numbers, title=title),
    alt="Every number of E4M3 and E5M2 as a tick. Near zero both are dense, and thin out with each "
    "doubling; E4M3 has eight ticks to a doubling and reaches from 2^-9 to 448, E5M2 has four and "
    "reaches from 2^-16 to 57,344.",
)

doublings = {}
for name, numbers in line.items():
    normal_from = limits(*layouts[name], name.endswith("fn"))["smallest_normal"]
    doublings[name] = math.ceil(math.log2(numbers[numbers.isfinite()].max() / normal_from))
for name, count in doublings.items():
    print(f"{name:>13}: {count:>3} doublings of normal numbers")
assert doublings["float8_e4m3fn"] == 15 and doublings["float8_e5m2"] == 30
assert doublings["float16"] == 30 and doublings["bfloat16"] == 254
for name, steps in (("float8_e4m3fn", 8), ("float8_e5m2", 4)):
    assert ((line[name] >= 1) & (line[name] < 2)).sum() == steps

# %% [markdown]
r"""
You could do the same for a format that's published next year, if you know its layout and which patterns are special.

*Try it yourself:* print E3M4, which is `decode(n, 3, 4)` for all n below 256. What would you use such a format for?

## 9 · Four bits and a shared scale

NVIDIA's Blackwell GPUs, such as the B200, also multiply 4-bit numbers in their *tensor cores*, units that multiply
small matrices (lecture 05). **FP4** is the 4-bit format E2M1: one sign bit, two exponent bits and one mantissa bit,
with a bias of 1. Since there are only 16 patterns, its designers gave up the special case at the top: there's no
infinity and no NaN, and the highest exponent is an ordinary one. The other special case is still there: exponent field
0 means zero or a subnormal number.

Your decoder would treat the highest exponent as special or, with `finite=True`, the largest number as NaN. But a trick
helps: put a 0 in front of the two exponent bits. That makes a field of three bits whose highest value never occurs.
With three exponent bits the bias is 3 instead of 1, so each number comes out as a quarter of its true value.
"""


# %%
def decode_fp4(code: int) -> float:
    """The number that a 4-bit code represents: decoded with one extra exponent bit, which is 0."""
    sign, rest = divmod(code, 8)
    return 4 * decode(16 * sign + rest, exponent_bits=3, mantissa_bits=1)


assert decode_fp4(0b0010) == 1 and decode_fp4(0b1010) == -1

# %% [markdown]
r"""
**Predict.** What's the ratio of FP4's largest number to its smallest positive one?
"""

# %%
guess = None  # the ratio

# %% tags=["item-89"]
fp4 = [decode_fp4(code) for code in range(16)]
ratio = max(fp4) / min(number for number in fp4 if number > 0)
reconcile("FP4's largest number", guess, ratio, "times its smallest positive one")
print(*(f"{number:g}" for number in fp4))

assert fp4[:8] == [0, 0.5, 1, 1.5, 2, 3, 4, 6]
assert fp4[8:] == [-number for number in fp4[:8]]
assert ratio == 12 and len(set(fp4)) == 15  # 0 and −0 are the same number

# %% [markdown]
r"""
FP4's fifteen numbers cover hardly any range, so you divide a tensor by a **scale factor** before you convert it, and
multiply by it afterwards. If a whole tensor shares one scale factor, a single large element can turn most of the others
into 0. **Block scaling** splits a tensor into small blocks of neighboring elements and stores one scale factor for each
block. Each element is stored as a bit pattern, its *code*, and is approximately the number that this code represents
times the scale of its block (and, in NVFP4, times that of the whole tensor). So a large element pushes others toward 0
only in its own block. For example, dividing 0.3, −0.02 and 0.1 by a scale of 0.05 gives 6, −0.4 and 2, and −0.4 is
rounded to −0.5, the nearest number in FP4.

| format | elements | block | scale of each block | scale of the whole tensor |
|---|---|---|---|---|
| MXFP8 | E4M3 or E5M2 | 32 | E8M0 | |
| MXFP4 | E2M1 | 32 | E8M0 | |
| NVFP4 | E2M1 | 16 | E4M3 | `float32` |

The first two are *microscaling* (MX) formats ([arXiv:2310.10537](https://arxiv.org/abs/2310.10537)), which the Open
Compute Project specified in 2023. **E8M0** is an 8-bit format for scales: it's all exponent, with no sign and no
mantissa, and the code $n$ means $2^{n - 127}$. It has neither 0 nor infinity, and the code 255 means NaN. NVFP4
([arXiv:2509.25149](https://arxiv.org/abs/2509.25149)) is NVIDIA's. Its scales have three mantissa bits, so they can fit
a block more closely than powers of two can, but they have much less range than E8M0. That's why the whole tensor has
another scale, in `float32`.
"""

# %% tags=["item-89"]
scales = torch.arange(256, dtype=torch.uint8).view(torch.float8_e8m0fnu).double()
assert scales[:255].tolist() == [2.0 ** (n - 127) for n in range(255)]  # every scale of E8M0
assert scales[255].isnan()
e4m3 = limits(4, 3, finite=True)
assert e4m3["max"] / e4m3["smallest_subnormal"] < 2**18  # whereas E8M0 spans a factor of 2^254

scaled = [round(x / 0.05, 6) for x in (0.3, -0.02, 0.1)]
assert scaled == [6, -0.4, 2]
assert [min(fp4, key=lambda number: abs(number - x)) for x in scaled] == [6, -0.5, 2]

# The first four elements of a block in NVFP4: two codes in each byte, the first one in the lower bits.
stored, scale_bits, tensor_scale = bytes([0x7A, 0x51]), 0b0_0101_100, 2.0**-10
codes = [code for byte in stored for code in (byte & 0xF, byte >> 4)]
scale = decode(scale_bits, 4, 3, finite=True)
elements = [decode_fp4(code) * scale * tensor_scale for code in codes]
print("codes:", *codes, "· scale:", scale)
print("elements times 2^10:", *(x * 2**10 for x in elements))
assert codes == [10, 7, 1, 5] and scale == 0.375
assert elements == [number * 0.375 * 2.0**-10 for number in (-1, 6, 0.5, 3)]

# %% [markdown]
r"""
The scales take memory, too.

**Predict.** How many gigabytes do 70 billion weights take in NVFP4, with all their scales? (In `bfloat16` they take
140.)
"""

# %%
guess = None  # GB

# %%
formats = {"MXFP8": (8, 32), "MXFP4": (4, 32), "NVFP4": (4, 16)}  # bits of an element, block
bits_per_value = {name: bits + 8 / block for name, (bits, block) in formats.items()}
weights_of_70b = 70e9
gigabytes = {name: weights_of_70b * bits / 8 / 1e9 for name, bits in bits_per_value.items()}
reconcile("70 billion weights in NVFP4", guess, gigabytes["NVFP4"], "GB")
for name, bits in bits_per_value.items():
    print(f"{name}: {bits} bits per value, {gigabytes[name]:.1f} GB")

assert bits_per_value == {"MXFP8": 8.25, "MXFP4": 4.25, "NVFP4": 4.5}
assert round(gigabytes["NVFP4"], 1) == 39.4 and weights_of_70b * 2 / 1e9 == 140

# %% [markdown]
r"""
Each block adds eight bits, so the smaller the blocks, the more their scales take. (The four bytes for the whole tensor
are negligible.) In lecture 10 you'll write the code for the other direction, from numbers to codes and scales, and
count the elements that no longer become 0 when the blocks are smaller.

*Try it yourself:* how many bits per value would blocks of 8 take, or blocks of 128?

## Takeaways

**Mechanics.** With $E$ exponent bits and $M$ mantissa bits, a float with sign ±, exponent field $e$ and mantissa $m$
means $\pm (1 + m/2^M) \cdot 2^{\,e - \text{bias}}$, with a bias of $2^{E-1} - 1$. Exponent field 0 means zero or
subnormal; all ones means infinity or NaN (in E4M3 it's an ordinary exponent, except that a mantissa of all ones makes
it NaN). For positive numbers, the next pattern is the next larger number. Conversion rounds to nearest, ties to even.
Numbers that are too small become 0 and numbers that are too large become infinite (in E4M3: NaN or 448), without any
warning.

**Mindset.** Ask two questions about the dtype of each tensor. Is its *range* wide enough for the smallest gradient and
the largest activation? Is its *precision* fine enough: is whatever I add to a number larger than half the gap at that
number? Use narrow formats to store and multiply; add up in `float32`. And when you count the bits of a block format,
count its scales.

**Intuitions.** Exponent bits give range, mantissa bits give precision. `float16` has too little range, `bfloat16` too
little precision, and 8 or 4 bits too little of both. The remedies are a scale for the loss, a `float32` copy of the
weights, and a scale for each tensor or block, which extends the range; sums and weights stay in a wider format.
Rounding errors do little harm as long as they're random; they can ruin training if they all go the same way.

Next: [03 · Strides and views](../03_strides_and_views/03_strides_and_views.ipynb). How does PyTorch turn a shape into
places in memory?
"""

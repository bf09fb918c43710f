# %% [markdown]
r"""
# 02 · Dtypes

> **What do the bits inside an element mean, and what is lost?**

A floating-point number in a tensor has 64, 32, 16 or 8 bits, and not one more. So every format keeps some numbers and
loses all others. Which ones is a choice, made once by whoever designed the format, and again by you when you write
`dtype=`. By the end of this lecture you will have shown, with a decoder of your own, what each of the 131,584 patterns
of `float16`, `bfloat16` and the two 8-bit formats means, down to the last bit. And you will know which choice lets
gradients vanish, which one lets a weight stand still, and what is done about either.

How to read: run the cells in order (<kbd>Shift</kbd> + <kbd>Enter</kbd>). Where a cell says *predict*, write your
number first; being wrong is how you find out what to look at. The cell below each exercise checks your answer and names
the likely mistake; **Validate** in the toolbar runs them all. Bits mean the same on a GPU as on a CPU, so this lecture
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
> **A mistake that travels.** "FP8 was standardised in 2022." In 2022 it was *proposed*, by NVIDIA, Arm and Intel
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
exponent bit of 0.1: what happens to the number, and to the distance of its neighbours? And which single bit turns 448
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
follows the plan. `bits` is a whole number, sign first: the upper bit is the sign, then come the exponent bits, then
those of the mantissa. Treat all cases: normal numbers, subnormal ones, the two zeros, both infinities, NaN. With
`finite=True` the format bends the rule as E4M3 does. Work with whole numbers and Python's floats; make no tensor.

Formats have at least two exponent bits and at least one of mantissa, and go up to those of `float64`. A negative zero
is −0.0: mind that `-1 * 0` is 0 in Python, while `-1.0 * 0` is −0.0.
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


# %% nbgrader={"grade": true, "grade_id": "test_decode", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
import math

from course_utils.testing import expect, observe

no_one = "The implicit one is missing: a normal number is 1 + mantissa / 2**mantissa_bits, times its power of two."
one_too_many = (
    "With an exponent field of 0 there is no implicit one: these are the subnormal numbers."
)
one_below = (
    "Subnormal numbers have the exponent of the field 1, which is 1 - bias, not 0 - bias."
)
bias_off = "Look at the bias: it is 2**(exponent_bits - 1) - 1, so 15 for five exponent bits."
no_sign = "The sign is lost: the uppermost bit says that the number is negative."
ordinary = (
    "All exponent bits set is a special case: infinity, or NaN where the mantissa is not 0."
)
not_inf = "All exponent bits set and mantissa 0 is infinity; NaN has any other mantissa."
not_nan = "All exponent bits set is infinity only where the mantissa is 0; else it is NaN."
e4m3 = "With finite=True the highest exponent is an ordinary one; only the pattern with all bits below the sign set is NaN."
plain = "Without finite=True the highest exponent is kept for infinity and NaN."
zero = "The field of the exponent is 0 here, so there is no implicit one: the number is 0."
sign_bit = "The sign bit got into the exponent: keep only the lower exponent_bits bits of what is left."
full_step = "One step of the mantissa is 1 / 2**mantissa_bits."
complement = (
    "Only the uppermost bit is the sign; the other bits mean the same with either sign."
)
# float16: 5 and 10 bits. The number that each pattern means, worked out by hand.
cases = [
    (0b0_01111_0000000000, 1.0, {0.0: no_one, 0.5: bias_off, 2.0: bias_off}),
    (
        0b0_10000_1000000000,
        3.0,
        {1.0: no_one, 1.5: bias_off, 6.0: bias_off, (1 + 512 / 1023) * 2: full_step},
    ),
    (
        0b1_10000_1000000000,
        -3.0,
        {3.0: no_sign, -1.0: no_one, -1.5: complement, -1.5 * 2.0**33: sign_bit},
    ),
    (
        0b0_00000_1000000000,
        2.0**-15,
        {1.5 * 2.0**-15: one_too_many, 2.0**-16: one_below, 1.5 * 2.0**-14: one_too_many},
    ),
    (0b0_00000_0000000000, 0.0, {2.0**-15: zero, 2.0**-14: zero}),
    (
        0b0_11111_0000000000,
        math.inf,
        {2.0**16: ordinary, math.nan: not_inf, -math.inf: no_sign},
    ),
    (
        0b1_11111_0000000000,
        -math.inf,
        {math.inf: no_sign, -(2.0**16): ordinary, math.nan: not_inf},
    ),
    (0b0_11111_0000000001, math.nan, {2.0**16 + 64: ordinary, math.inf: not_nan}),
]
for bits, want, mistakes in cases:
    expect(observe(decode, bits, 5, 10).value, want, mistakes=mistakes, tolerance=1e-16)
lost = "-0.0 is the zero with the sign bit set: -1 * 0 is 0 in Python, -1.0 * 0 is -0.0."
seen = observe(decode, 0b1_00000_0000000000, 5, 10)
expect(str(seen.value), "-0.0", about="printed", mistakes={"0.0": lost, "0": lost}, hint=lost)
# Four and three bits: first by the ordinary rules, then as E4M3 bends them.
mistakes = {256.0: plain, math.nan: not_inf, 448.0: plain}
expect(observe(decode, 0b0_1111_000, 4, 3).value, math.inf, mistakes=mistakes)
mistakes = {math.nan: e4m3, math.inf: e4m3, 192.0: no_one, 224.0: bias_off}
expect(observe(decode, 0b0_1111_110, 4, 3, finite=True).value, 448.0, mistakes=mistakes)
mistakes = {math.nan: e4m3, math.inf: e4m3, 0.0: no_one, 128.0: bias_off}
expect(observe(decode, 0b0_1111_000, 4, 3, finite=True).value, 256.0, mistakes=mistakes)
mistakes = {480.0: e4m3, math.inf: e4m3, -480.0: e4m3}
expect(observe(decode, 0b1_1111_111, 4, 3, finite=True).value, math.nan, mistakes=mistakes)
### BEGIN HIDDEN TESTS
import torch

from course_utils.testing import draws, probe


@probe
def zeros(student):
    """The signs of both zeros of float16 and of E4M3."""
    import math

    values = [student.decode(sign << 15, 5, 10) for sign in (0, 1)]
    values += [student.decode(sign << 7, 4, 3, True) for sign in (0, 1)]
    return [[float(v) == 0, math.copysign(1.0, float(v))] for v in values]


def meaning(bits, exponent_bits, mantissa_bits, finite):
    """The number, from its digits: the value of each place of the mantissa is added up."""
    text = f"{bits:0{1 + exponent_bits + mantissa_bits}b}"
    exponent, digits = text[1 : 1 + exponent_bits], text[1 + exponent_bits :]
    bias = int("0" + "1" * (exponent_bits - 1), 2)
    if "0" not in exponent and not (finite and "0" in digits):
        return (
            math.nan if finite or "1" in digits else -math.inf if text[0] == "1" else math.inf
        )
    normal = "1" in exponent
    total = math.fsum(int(digit) * 2.0 ** -(n + 1) for n, digit in enumerate(digits)) + normal
    number = math.ldexp(total, (int(exponent, 2) if normal else 1) - bias)
    return -number if text[0] == "1" else number


draw = draws()
formats = [(4, 3, True), (5, 2, False), (5, 10, False), (8, 7, False), (8, 23, False)]
formats += [(11, 52, False), (4, 3, False), (2, 1, False), (3, 2, True), (6, 9, False)]
formats += [(2, 5, True), (7, 4, False)]
for exponent_bits, mantissa_bits, finite in formats:
    width = 1 + exponent_bits + mantissa_bits
    top = (2**exponent_bits - 1) << mantissa_bits
    edges = [0, 1, 2**mantissa_bits - 1, 2**mantissa_bits, top - 1, top, top + 1]
    edges += [top + 2**mantissa_bits - 1, top + 2**mantissa_bits - 2]
    edges += [top + 2 ** (mantissa_bits - 1), draw.integer(1, 2**mantissa_bits - 1)]
    patterns = range(256) if width == 8 else [draw.integer(0, 2**width - 1) for _ in range(40)]
    patterns = [*patterns, *edges, *(edge + 2 ** (width - 1) for edge in edges)]
    half = 2.0 ** (2 - 2 ** (exponent_bits - 1))
    for bits in patterns:
        want = meaning(bits, exponent_bits, mantissa_bits, finite)
        field, mantissa = (bits >> mantissa_bits) % 2**exponent_bits, bits % 2**mantissa_bits
        sign = -1 if bits >> (width - 1) else 1
        mistakes = [(-want, no_sign)] if want else []
        if field == 0:
            mistakes += [
                (want / 2, one_below),
                (want + sign * half, one_too_many),
                ((want + sign * half) / 2, one_too_many),
            ]
        elif "0" in f"{field:0{exponent_bits}b}" or finite:
            special = math.nan if math.isnan(want) else None
            mistakes += [(want / 2, bias_off)] if special is None else []
            mistakes += [(math.nan, e4m3), (sign * math.inf, e4m3)] if finite else []
        else:
            mistakes += [(math.nan, not_inf), (sign * math.inf, not_nan)]
        given = {"finite": True} if finite else {}
        seen = observe(decode, bits, exponent_bits, mantissa_bits, **given)
        hint = (
            f"The pattern is {bits:0{width}b}: sign, {exponent_bits} and {mantissa_bits} bits."
        )
        if width > 53:
            hint += " bits / 2**n is a float and rounds; bits >> n and bits // 2**n are exact."
        expect(seen.value, want, mistakes=mistakes, tolerance=1e-16, hint=hint)
want = [[True, 1.0], [True, -1.0]] * 2
mistakes = [([[True, 1.0]] * 4, lost)]
expect(observe(zeros).value, want, about="is it zero, and its sign", mistakes=mistakes)
### END HIDDEN TESTS

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

Write `limits(exponent_bits, mantissa_bits, finite=False)`, which returns a dictionary of four floats:

- `"max"`: the largest finite number;
- `"smallest_normal"`: the smallest positive number with an implicit one;
- `"smallest_subnormal"`: the smallest positive number of all;
- `"eps"`: the distance from 1 to the next larger number.

Exactly, not nearly, and again up to the format of `float64`. (There `2.0**1024` is too large for a Python float.)
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


# %% nbgrader={"grade": true, "grade_id": "test_limits", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
import sys

from course_utils.testing import expect, observe

names = ["max", "smallest_normal", "smallest_subnormal", "eps"]
taken = "The highest exponent is kept for infinity and NaN: the largest finite number has the one below it."
power = "The mantissa of the largest number is all ones, which is just short of the next power of two."
one_nan = "With finite=True the highest exponent is an ordinary one, and all ones in it is the only NaN."
by_one = "The exponent of the smallest normal number is that of the field 1, which is 1 - bias."
not_normal = "That is a subnormal number: a normal one has an exponent field of at least 1."
above_zero = "That is the smallest normal number; below it lie the subnormal ones."
below_one = "That is the distance from 1 down to its lower neighbour; wanted is the one up."
whole = "eps is one step of the mantissa at 1: 2**-mantissa_bits."
one_step = "Subnormal numbers have the exponent of the field 1, 1 - bias; the smallest is one step of the mantissa."
too_large = (
    "2.0**1024 is too large for a float: multiply a smaller power by a number just below 2."
)


def check(seen, want, mistakes):
    """Compare number by number, so that the message says which one it is."""
    given = seen.value
    if not isinstance(given, dict):
        hint = "Return a dictionary with the four names."
        expect(given, want, hint=too_large if seen.error == "OverflowError" else hint)
    expect(sorted(map(str, given)), sorted(want), about="the names in the dictionary")
    for name in names:
        expect(
            given[name],
            want[name],
            about=f'"{name}"',
            mistakes=mistakes[name],
            tolerance=1e-16,
            hint="Write down its pattern, and decode it by hand. The last bit counts as well.",
        )


def likely(exponent_bits, mantissa_bits, want):
    """For each of the four numbers, values that mistakes lead to."""
    normal, step = want["smallest_normal"], 2.0**-mantissa_bits
    # What 1 - bias is, told from the smallest normal number: bias + 1 would be 2 / normal.
    two = 2.0 / normal
    high = [(two * (2 - step) if two < 1e300 else None, taken), (two, power)]
    return {
        "max": [(value, text) for value, text in high if value is not None],
        "smallest_normal": [(normal / 2, by_one), (normal * step, not_normal)],
        "smallest_subnormal": [(normal, above_zero), (normal * step / 2, one_step)],
        "eps": [(step / 2, below_one), (2 * step, whole), (normal * step, whole)],
    }


# float16, worked out by hand: bias 15, ten bits of mantissa.
want = {
    "max": 65_504.0,
    "smallest_normal": 1 / 16_384,
    "smallest_subnormal": 1 / 16_777_216,
    "eps": 1 / 1_024,
}
mistakes = likely(5, 10, want)
mistakes["max"] = [
    (131_008.0, taken),
    (65_536.0, power),
    (131_072.0, taken),
    (32_752.0, by_one),
]
check(observe(limits, 5, 10), want, mistakes)
# E4M3: bias 7, three bits of mantissa, no infinity.
want = {"max": 448.0, "smallest_normal": 1 / 64, "smallest_subnormal": 1 / 512, "eps": 1 / 8}
mistakes = likely(4, 3, want)
mistakes["max"] = [(480.0, one_nan), (240.0, one_nan), (512.0, one_nan), (256.0, one_nan)]
check(observe(limits, 4, 3, finite=True), want, mistakes)
# float64, which is what a Python float is: Python itself says what its limits are.
info = sys.float_info
want = {"max": info.max, "smallest_normal": info.min, "eps": info.epsilon}
want["smallest_subnormal"] = 5e-324
check(observe(limits, 11, 52), want, likely(11, 52, want))
### BEGIN HIDDEN TESTS
import math

formats = [(8, 7, False), (8, 23, False), (11, 52, False), (5, 2, False), (4, 3, False)]
formats += [
    (2, 1, False),
    (3, 2, True),
    (2, 5, True),
    (5, 2, True),
    (6, 9, False),
    (10, 4, True),
]
for exponent_bits, mantissa_bits, finite in formats:
    # Bit by bit: the largest number is the sum of its digits, the others are a single digit.
    fields_used = 2**exponent_bits - 1 if finite else 2**exponent_bits - 2
    highest = fields_used - (2 ** (exponent_bits - 1) - 1)
    digits = [math.ldexp(1.0, highest - place) for place in range(mantissa_bits + 1)]
    if finite:
        digits.pop()  # all ones is the NaN
    lowest = 1 - (2 ** (exponent_bits - 1) - 1)
    want = {
        "max": math.fsum(digits),
        "smallest_normal": math.ldexp(1.0, lowest),
        "smallest_subnormal": math.ldexp(1.0, lowest - mantissa_bits),
        "eps": math.ldexp(1.0, -mantissa_bits),
    }
    mistakes = likely(exponent_bits, mantissa_bits, want)
    if finite:
        nearly = [(want["max"] + digits[-1] / 2, one_nan), (math.fsum(digits) / 2, one_nan)]
        mistakes["max"] = nearly
    given = {"finite": True} if finite else {}
    check(observe(limits, exponent_bits, mantissa_bits, **given), want, mistakes)
### END HIDDEN TESTS

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Write down the pattern of each of the four numbers, and decode it by hand.</details>
<details><summary>Hint 2</summary>The largest mantissa gives 1 + (1 − eps) = 2 − eps. In E4M3 that pattern is taken by the
NaN, so it is one step less.</details>

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
What is infinite or NaN already does not. It need not keep its exact value. `values` is a floating-point tensor of any
dtype and shape, with `float64` the widest; the result is a tensor of truth values of that shape.
"""


# %% nbgrader={"grade": false, "grade_id": "survives", "locked": false, "schema_version": 3, "solution": true, "task": false}
def survives(values: Float[Tensor, "..."], dtype: torch.dtype) -> Bool[Tensor, "..."]:
    """True where a value converted to dtype is finite, and 0 only if it was 0 before."""
    ### BEGIN SOLUTION
    converted = values.to(dtype)
    return converted.isfinite() & ((converted != 0) | (values == 0))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_survives", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
import torch

from course_utils.testing import expect, observe

rounded = (
    "It need not come through exactly: 0.1 becomes the nearest number there is, and survives."
)
over = "A number too large becomes infinite: it does not survive."
under = "A number too small becomes 0: it does not survive."
naught = "0 stays 0: it has nothing to lose, and survives."
negative = "Negative numbers overflow and underflow as well."
subnormal = "Below the smallest normal number lie the subnormal ones: those survive."
not_finite = "What is infinite or NaN already does not survive."
stays = "bfloat16 has exponents like float32: 1e-8 and 70,000 get through."
given = torch.tensor([0.1, 70_000.0, 1e-8, 0.0, -70_000.0, -1.0])
mistakes = [
    (torch.tensor([False, False, False, True, False, True]), rounded),
    (torch.tensor([True, True, False, True, True, True]), over),
    (torch.tensor([True, False, True, True, False, True]), under),
    (torch.tensor([True, False, False, False, False, True]), naught),
    (torch.tensor([True, False, False, True, True, True]), negative),
    (torch.tensor([True, False, False, False, True, False]), negative),
    (torch.tensor([True, False, False, True, False, False]), negative),
    (~torch.tensor([True, False, False, True, False, True]), "True means that it survives."),
]
want = torch.tensor([True, False, False, True, False, True])
seen = observe(survives, given, torch.float16)
joining = "Join conditions on tensors with & and |, not with `and` and `or`, and put each comparison in parentheses."
hint = (
    joining
    if seen.error
    else "Return a tensor of bool, one truth value for each of the values."
)
expect(seen.value, want, mistakes=mistakes, hint=hint)
expect(
    observe(survives, given, torch.bfloat16).value,
    torch.tensor([True] * 6),
    mistakes=[(want, stays), (torch.tensor([True, True, False, True, True, True]), stays)],
)
given = torch.tensor([[1e-6, -1e-6], [-1e-8, float("nan")]])
mistakes = [
    (torch.tensor([[False, False], [False, False]]), subnormal),
    (torch.tensor([[True, True], [False, True]]), not_finite),
    (torch.tensor([[True, False], [False, False]]), negative),
    (torch.tensor([[True, True], [True, False]]), negative),
    (torch.tensor([[True, False], [True, False]]), negative),
]
want = torch.tensor([[True, True], [False, False]])
expect(observe(survives, given, torch.float16).value, want, mistakes=mistakes)
### BEGIN HIDDEN TESTS
from course_utils.testing import draws

draw = draws()
# The edges, exactly: half of the smallest number, and half a step above the largest.
smallest = {torch.float16: 2.0**-24, torch.bfloat16: 2.0**-133, torch.float32: 2.0**-149}
halfway = {
    torch.float16: 65_520.0,
    torch.bfloat16: (2 - 2.0**-8) * 2.0**127,
    torch.float32: (2 - 2.0**-24) * 2.0**127,
}
rounding = "What counts is what the number is rounded to: the edges are halfway to 0, and halfway beyond the largest."
for dtype, least in smallest.items():
    top = halfway[dtype]
    cases = [
        (0.0, True, naught),
        (-0.0, True, naught),
        (least / 2, False, rounding),
        (least * 0.51, True, rounding),
        (least * draw.integer(1, 9), True, subnormal),
        (least / 8, False, under),
        (-least / 8, False, under),
        (-least * draw.integer(1, 9), True, negative),
        (top, False, rounding),
        (-top, False, over),
        (top * (1 - 2.0**-22), True, rounding),
        (-top * (1 - 2.0**-22), True, negative),
        (top * 2, False, over),
        (-top * draw.integer(2, 5), False, negative),
        (float("inf"), False, not_finite),
        (float("-inf"), False, not_finite),
        (float("nan"), False, not_finite),
        (draw.integer(1, 900) / 1_000, True, rounded),
        (-draw.integer(1, 900) / 7, True, negative),
    ]
    wide = torch.float64 if dtype == torch.float32 else torch.float32
    for value, survived, text in cases:
        x = torch.tensor([value], dtype=torch.float64).to(wide)
        seen = observe(survives, x, dtype)
        expect(
            seen.value,
            torch.tensor([survived]),
            mistakes=[(torch.tensor([not survived]), text)],
        )
    x = torch.tensor([value for value, _, _ in cases], dtype=torch.float64).to(wide)
    want = torch.tensor([survived for _, survived, _ in cases])
    seen = observe(survives, x, dtype)
    expect(seen.value, want, hint="Each value is judged by itself.")
    expect(seen.mutated, [], about="arguments changed")
    grid = torch.stack([x, x.flip(0), x]).T
    seen = observe(survives, grid, dtype)
    shape = "The result has the shape of the values, one truth value for each."
    expect(seen.value, torch.stack([want, want.flip(0), want]).T, hint=shape)
x = torch.tensor([1e-8, 7e4, 1.0], dtype=torch.float16)
seen = observe(survives, x, torch.float32)
before = (
    "These values were 0 and infinite before the conversion: the 0 survives, infinity does not."
)
expect(seen.value, torch.tensor([True, False, True]), hint=before)
seen = observe(survives, torch.tensor(1e-8), torch.float16)
expect(seen.value, torch.tensor(False), hint="values may be a tensor without dimensions.")
### END HIDDEN TESTS

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Convert, and look at what became of the values.</details>
<details><summary>Hint 2</summary>Two conditions: finite afterwards (<code>isfinite</code>), and not 0 afterwards unless
it was 0 before. Join them with <code>&</code> and <code>|</code>, in parentheses.</details>

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
that dtype? `x` is a Python float, 0 or positive, and below the largest number of the dtype. It must work for `float64`,
`float32`, `float16`, `bfloat16` and both 8-bit formats (which cannot subtract: convert first).
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


# %% nbgrader={"grade": true, "grade_id": "test_gap", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
import math

import torch

from course_utils.testing import expect, observe

always_eps = "eps is the gap at 1; the gap grows and shrinks with the number."
proportional = (
    "The gap is the same from one power of two to the next; it does not grow with each number."
)
down = "At a power of two the gap below is half of the gap above; wanted is the one above."
inexact = "Round x to the dtype first, and take the distance from there, not from x."
steady = (
    "Subnormal numbers lie evenly: below the smallest normal number the gap shrinks no further."
)
naught = "The number after 0 is the smallest subnormal one."
logarithm = (
    "log2 rounds, too: just below a power of two it gives a whole number. math.frexp is exact."
)
of_float32 = "That is the gap of float32: nextafter takes the dtype of what it is given."
mistakes = {1 / 1024: always_eps, 0.0: always_eps, 3 / 1024: proportional, 2.0**-22: of_float32}
expect(observe(gap, 3.0, torch.float16).value, 2 / 1024, mistakes=mistakes)
mistakes = {2.0**-8: down}
expect(observe(gap, 1.0, torch.bfloat16).value, 2.0**-7, mistakes=mistakes)
mistakes = {2.0**-10: always_eps, 0.0: naught, 2.0**-14: naught, 2.0**-15: naught}
expect(observe(gap, 0.0, torch.float16).value, 2.0**-24, mistakes=mistakes, hint=naught)
mistakes = {2.0**-10: always_eps, 2.0**-30: steady, 2.0**-31: steady}
expect(observe(gap, 2.0**-20, torch.float16).value, 2.0**-24, mistakes=mistakes)
mistakes = {2.0**-11: inexact}
expect(observe(gap, 0.9999, torch.float16).value, 2.0**-10, mistakes=mistakes, hint=inexact)
seen = observe(gap, 101.0, torch.float8_e4m3fn)  # 96, 104, 112, … are the numbers here
no_arithmetic = "PyTorch has no arithmetic for 8-bit floats: convert both numbers to float64 before you subtract."
expect(
    "not implemented for" in seen.message,
    False,
    about="does it calculate with 8-bit numbers?",
    mistakes={True: no_arithmetic},
)
mistakes = {0.125: always_eps, 11.0: inexact, 13.0: proportional, 12.625: proportional}
expect(seen.value, 8.0, mistakes=mistakes, hint=inexact)
just_below = math.nextafter(8.0, 0.0)
mistakes = {8 * 2.0**-52: logarithm, 2.0**-52: always_eps}
expect(
    observe(gap, just_below, torch.float64).value,
    4 * 2.0**-52,
    mistakes=mistakes,
    hint=logarithm,
)
### BEGIN HIDDEN TESTS
import bisect

from course_utils.testing import draws

draw = draws()
formats = {
    torch.float8_e4m3fn: (torch.uint8, 256),
    torch.float8_e5m2: (torch.uint8, 256),
    torch.float16: (torch.int16, 2**16),
    torch.bfloat16: (torch.int16, 2**16),
}
for dtype, (whole, count) in formats.items():
    # All numbers of the format in order: the next one is the next in the list.
    patterns = torch.arange(count, dtype=torch.int32)
    every = patterns.to(whole).view(dtype).double()
    numbers = sorted({value for value in every.tolist() if 0 <= value < math.inf})
    info = torch.finfo(dtype)
    places = [0, 1, 2, len(numbers) - 2]
    places += [draw.integer(3, len(numbers) - 3) for _ in range(25)]
    places += [numbers.index(2.0**power) + step for power in (-2, 0, 3) for step in (-1, 0, 1)]
    places += [numbers.index(info.smallest_normal) + step for step in (-1, 0, 1)]
    for place in places:
        here, want = numbers[place], numbers[place + 1] - numbers[place]
        below = here - numbers[place - 1] if place else want
        # Also an x that is a little above or below one of them, and rounds to it.
        for x in (here, here + want * 0.2, here - below * 0.2):
            if x < 0:
                continue
            mistakes = [
                (info.eps, always_eps),
                (info.eps * here, proportional),
                (below, down if x == here else inexact),
                (numbers[place + 1] - x, inexact),
                (numbers[bisect.bisect_right(numbers, x)] - x, inexact),
            ]
            if here < info.smallest_normal:
                mistakes += [(want / 2**k, steady) for k in range(1, 12)]
            seen = observe(gap, x, dtype)
            expect(seen.value, want, mistakes=mistakes, tolerance=1e-12, hint=inexact)
for power in (-1000, -3, 0, 1, draw.integer(4, 40), 900):
    for x, up in (
        (2.0**power, 2.0 ** (power - 52)),
        (1.7 * 2.0**power, 2.0 ** (power - 52)),
        (math.nextafter(2.0**power, 0.0), 2.0 ** (power - 53)),
    ):
        mistakes = [(2 * up, logarithm), (2.0**-52, always_eps), (x * 2.0**-52, proportional)]
        expect(observe(gap, x, torch.float64).value, up, mistakes=mistakes, tolerance=1e-12)
for x, up in (
    (0.0, 2.0**-149),
    (2.0**-140, 2.0**-149),
    (2.0**-126, 2.0**-149),
    (2.0**-125, 2.0**-148),
    (0.1, 2.0**-27),
    (float(2**24), 2.0),
    (float(2**24 - 1), 1.0),
    (3e38, 2.0**104),
    (1 - 2.0**-40, 2.0**-23),
):
    mistakes = [(2.0**-23, always_eps), (up / 2, down)]
    seen = observe(gap, x, torch.float32)
    expect(seen.value, up, mistakes=mistakes, tolerance=1e-12, hint=inexact)
expect(observe(gap, 0.0, torch.float64).value, 2.0**-1074, tolerance=1e-12, hint=naught)
expect(observe(gap, 2.0**-1030, torch.float64).value, 2.0**-1074, tolerance=1e-12, hint=steady)
### END HIDDEN TESTS

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Make a tensor of that dtype, look at it as a whole number of the same size, and add
1.</details>
<details><summary>Hint 2</summary><code>.view(torch.int16)</code> for two bytes, <code>.view(torch.uint8)</code> for one;
look back with <code>.view(dtype)</code>. Take the difference in float64.</details>

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

Converting to a shorter format means choosing one of two neighbours. The rule of all these conversions is **round to
nearest**, and if the number lies exactly between them, **to the even one**: the neighbour whose last bit is 0. (Always
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
whole number from 0 to 65,535. Ties go to the even neighbour. The result has the shape of `x` and any integer dtype that
can hold these numbers. Use integer arithmetic on the bits: PyTorch's own conversion to `bfloat16` is not to be called.
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


# %% nbgrader={"grade": true, "grade_id": "test_to_bfloat16_bits", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
import torch

from course_utils.testing import expect, observe, probe


def floats(*patterns):
    """float32 numbers with these bits."""
    signed = [p - 2**32 if p >= 2**31 else p for p in patterns]
    return torch.tensor(signed, dtype=torch.int32).view(torch.float32)


def whole_numbers(seen):
    """The result as a list, whatever its integer dtype."""
    got = seen.value
    if not isinstance(got, torch.Tensor):
        return got
    whole = not (got.is_floating_point() or got.is_complex())
    expect(whole, True, about=f"is {seen.dtype} an integer dtype?")
    return got.tolist()


cut = "The lower bits are merely cut off: they say which neighbour is nearer."
half_up = "A tie goes to the even neighbour, not always up."
half_down = "A tie goes to the even neighbour, not always down."
odd_one = "A tie goes to the even neighbour: the one whose last bit is 0."
always_up = "It goes up only if the lower bits are more than a half."
signed = "That is a negative number: >> keeps the sign of an int32, and an int16 ends at 32,767. Wanted is 0 to 65,535."
in_place = "Wanted are the upper 16 bits as a number of their own: move them down."
lost_sign = "The sign bit is lost: it is the uppermost of the 16."
carry = "If the mantissa overflows, the carry goes into the exponent: that is right, let it."
# 1.0, and what lies a quarter, a half, three quarters, one and a half gaps above it
given = floats(0x3F800000, 0x3F804000, 0x3F808000, 0x3F80C000, 0x3F818000)
mistakes = [
    ([0x3F80, 0x3F80, 0x3F80, 0x3F80, 0x3F81], cut),
    ([0x3F80, 0x3F80, 0x3F81, 0x3F81, 0x3F82], half_up),
    ([0x3F80, 0x3F80, 0x3F80, 0x3F81, 0x3F81], half_down),
    ([0x3F80, 0x3F80, 0x3F81, 0x3F81, 0x3F81], odd_one),
    ([0x3F80, 0x3F81, 0x3F81, 0x3F81, 0x3F82], always_up),
    ([0x3F81, 0x3F81, 0x3F81, 0x3F81, 0x3F82], always_up),
    ([n << 16 for n in (0x3F80, 0x3F80, 0x3F80, 0x3F81, 0x3F82)], in_place),
]
want = [0x3F80, 0x3F80, 0x3F80, 0x3F81, 0x3F82]
expect(whole_numbers(observe(to_bfloat16_bits, given)), want, mistakes=mistakes)
given = floats(0xBF80C000)  # −1 and three quarters of a gap
mistakes = [([0xBF81 - 2**16], signed), ([0xBF80], cut), ([0x3F81], lost_sign)]
expect(whole_numbers(observe(to_bfloat16_bits, given)), [0xBF81], mistakes=mistakes)
mistakes = [([0x3F80], carry), ([0x3FFF], cut)]
expect(
    whole_numbers(observe(to_bfloat16_bits, floats(0x3FFFFFFF))), [0x4000], mistakes=mistakes
)
infinite = "Infinity is no NaN: all its exponent bits are set as well, but its mantissa is 0."
mistakes = [([n, n], infinite) for n in (0x7FC0, 0x7FFF, 0xFFFF)]
mistakes += [([n, n | 0x8000], infinite) for n in (0x7FC0, 0x7FFF)]
seen = observe(to_bfloat16_bits, floats(0x7F800000, 0xFF800000))
expect(whole_numbers(seen), [0x7F80, 0xFF80], mistakes=mistakes, hint=infinite)
nan = "A NaN must stay a NaN: its mantissa is not 0. Treat it apart; adding to it, or cutting it, may make it something else."
for pattern in (0x7F800001, 0x7FFFFFFF, 0xFFFFFFFF):
    got = whole_numbers(observe(to_bfloat16_bits, floats(pattern)))
    number = got[0] if isinstance(got, list) and len(got) == 1 else got
    is_nan = number & 0x7FFF > 0x7F80 if isinstance(number, int) else number
    about = f"is the result for the NaN {pattern:#x} a NaN?"
    expect(is_nan, True, about=about, mistakes=[(False, nan)])
    expect(
        0 <= number < 2**16, True, about="is it from 0 to 65,535?", mistakes=[(False, signed)]
    )
given = torch.tensor([[1.0, -2.0], [0.5, 3.0]])[:, 1:]
shapes = "The result has the shape of x, which may be any view of any number of dimensions."
expect(whole_numbers(observe(to_bfloat16_bits, given)), [[0xC000], [0x4040]], hint=shapes)


@probe
def made_by_pytorch(student, x):
    """How many bfloat16 tensors one call makes."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    made: list[torch.Tensor] = []
    looked_at: list[torch.Tensor] = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor) and result.dtype == torch.bfloat16:
                # To look at other bits as bfloat16 is no conversion, nor is a view of that.
                a_view = function.is_view and (
                    args[0].dtype != torch.bfloat16 or any(args[0] is old for old in looked_at)
                )
                (looked_at if a_view else made).append(result)
            return result

    with Watch():
        student.to_bfloat16_bits(x)
    return len(made)


own = (
    "Do it yourself, with integers: PyTorch's conversion to bfloat16 is not to be called here."
)
seen = observe(made_by_pytorch, torch.ones(6))
expect(seen.value, 0, about="tensors of bfloat16 that it makes on the way", hint=own)
### BEGIN HIDDEN TESTS
import struct

from course_utils.testing import draws

draw = draws()


def nearest(value):
    """The upper 16 bits, one more if the lower ones are above a half, or a half and the upper ones odd."""
    upper, lower = divmod(struct.unpack(">I", struct.pack(">f", value))[0], 2**16)
    return upper + (lower > 2**15 or (lower == 2**15 and upper % 2 == 1))


def nested(values):
    return [nested(v) for v in values] if isinstance(values, list) else nearest(values)


uppers = [
    0x0001,
    0x0000,
    0x007F,
    0x0080,
    0x3F80,
    0x3F81,
    0x3FFF,
    0x4000,
    0x7F7E,
    0x7F7F,
    0x7F80,
]
uppers += [draw.integer(0, 0x7F7F) for _ in range(40)]
lowers = [0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF]
for upper in uppers:
    for sign in (0, 0x8000):
        chosen = [0] if upper == 0x7F80 else [*lowers, draw.integer(2, 0xFFFE)]
        x = floats(*[(upper | sign) << 16 | lower for lower in chosen])
        want = nested(x.tolist())
        plus = [upper | sign] * len(chosen)
        mistakes = [
            ([p + (low >= 0x8000) for p, low in zip(plus, chosen, strict=True)], half_up),
            ([p + (low > 0x8000) for p, low in zip(plus, chosen, strict=True)], half_down),
            ([w - 2**16 for w in want], signed),
            ([w & 0x7FFF for w in want], lost_sign),
        ]
        seen = observe(to_bfloat16_bits, x)
        hint = "Zeros, subnormal numbers, the largest number and infinity follow the same rule."
        expect(whole_numbers(seen), want, mistakes=mistakes, hint=hint)
        expect(seen.mutated, [], about="arguments changed")
for x in (
    draw.tensor(*draw.sizes(3), contiguous=False),
    draw.tensor(*draw.sizes(2), contiguous=False) * 1e30,
    draw.tensor(4, 6)[1::2, 3],
    draw.tensor(1, 5).expand(3, 5),
    torch.tensor(1.2345),
):
    seen = observe(to_bfloat16_bits, x)
    expect(whole_numbers(seen), nested(x.tolist()), hint=shapes)
    expect(seen.mutated, [], about="arguments changed")
mixed = floats(0x3F80C000, 0x7F800001, 0x7F800000, 0xFF800000, 0xFFC00000, 0xFF80FFFF)
got = whole_numbers(observe(to_bfloat16_bits, mixed))
expect(
    got[:1] + got[2:4], [0x3F81, 0x7F80, 0xFF80], hint="A NaN changes nothing for the others."
)
expect([n & 0x7FFF > 0x7F80 for n in got], [False, True, False, False, True, True], hint=nan)
### END HIDDEN TESTS

# %% [markdown]
r"""
<details><summary>Hint 1</summary><code>x.view(torch.int32)</code> gives the bits. An int32 with the upper bit set is
negative; <code>.long() & 0xFFFFFFFF</code> gives the same 32 bits as a number that is not.</details>
<details><summary>Hint 2</summary>Add 0x7FFF, which is one less than a half, and 1 more if the upper part is odd. Then
cut off the lower 16 bits: the carry has done the rounding. NaN last, with <code>torch.where</code>.</details>

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
neighbours, at random, so that it is right *on average*. An element that lies a quarter of the way to the next number
goes there with probability 1/4. What `bfloat16` holds exactly stays as it is. Each element draws for itself, and all
randomness comes from `generator` (a `torch.Generator` on the device of `x`). The result is a new `bfloat16` tensor of the
shape of `x`. All elements are finite, and within the largest number of `bfloat16`. There may be millions of them, so
write no loop.
"""


# %% nbgrader={"grade": false, "grade_id": "stochastic_round", "locked": false, "schema_version": 3, "solution": true, "task": false}
def stochastic_round(
    x: Float[Tensor, "..."], generator: torch.Generator
) -> Float[Tensor, "..."]:
    """x (float32) as bfloat16, each element rounded to a neighbour with a probability that makes the mean exact."""
    ### BEGIN SOLUTION
    noise = torch.randint(
        0, 2**16, x.shape, generator=generator, dtype=torch.int32, device=x.device
    )
    bits = x.view(torch.int32) + noise  # carries into the upper half as often as it should
    return (bits & -(2**16)).view(torch.float32).to(torch.bfloat16)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_stochastic_round", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
from course_utils.testing import expect, observe, probe


@probe
def share_per_value(student, pattern, count, seed):
    """Round the float32 with these bits `count` times: dtype, shape, and how often each result came."""
    import numpy as np
    import torch

    signed = pattern - 2**32 if pattern >= 2**31 else pattern
    x = torch.full((count,), signed, dtype=torch.int32).view(torch.float32)
    result = student.stochastic_round(x, torch.Generator().manual_seed(seed))
    if not isinstance(result, torch.Tensor):
        return result
    values, counts = np.unique(result.detach().float().numpy(), return_counts=True)
    found = dict(zip(values.tolist(), counts.tolist(), strict=True))
    return [str(result.dtype), list(result.shape), found]


def check_share(pattern, count, seed):
    """The two neighbours and nothing else, the upper one as often as it should come."""
    upper, lower = divmod(pattern, 2**16)
    near, far = (
        torch.tensor([u - 2**16 if u >= 2**15 else u], dtype=torch.int16)
        .view(torch.bfloat16)
        .item()
        for u in (upper, upper + 1)
    )
    seen = observe(share_per_value, pattern, count, seed)
    if not isinstance(seen.value, list):
        what_comes = "dtype, shape, and how often each result came"
        expect(seen.value, what_comes, hint="Return a tensor of bfloat16.")
    dtype, shape, found = seen.value
    expect(dtype, "torch.bfloat16", about="dtype of the result")
    expect(
        shape,
        [count],
        about="shape of the result",
        hint="One result for each element. (An int64 seen as float32 is two numbers: stay with int32.)",
    )
    odd = sorted(value for value in found if value not in (near, far))
    between = f"Only the two neighbours can come, {near} and {far}."
    expect(
        odd,
        [],
        about=f"results that are no neighbour of {near} + {lower}/65536 gap",
        hint=between,
    )
    wanted, share = lower / 2**16, found.get(far, 0) / count
    text = "The farther neighbour comes with a probability that is the distance to the nearer one, in gaps."
    if share in (0.0, 1.0):
        text = "The same neighbour comes each time: that is an ordinary rounding, or one draw for all elements."
    elif abs(share - (1 - wanted)) < 0.03:
        text = "The wrong way round: the nearer a neighbour is, the more often it comes."
    elif abs(share - 0.5) < 0.03:
        text = "That tosses a fair coin; the nearer neighbour has to come more often."
    # Six standard deviations of a fair count: what is right passes, whatever the draw.
    slack = 6 * (wanted * (1 - wanted) / count) ** 0.5
    if wanted == 0:
        text = "What bfloat16 holds exactly stays as it is."
    about = f"share of {far} is {share:.3f}; is that within six standard deviations of {wanted:.5g}?"
    expect(abs(share - wanted) <= slack, True, about=about, mistakes=[(False, text)])


@probe
def randomness(student, seed):
    """Where the randomness comes from, and what a call leaves behind."""
    import torch

    x = (
        (torch.arange(20 * 30).view(20, 30) * 2**16 + 2**15 + 0x3F800000)
        .int()
        .view(torch.float32)
    )
    x, before = x.T, x.T.clone()
    first, second = torch.Generator().manual_seed(seed), torch.Generator().manual_seed(seed)
    state = torch.get_rng_state()
    one, two, three = (student.stochastic_round(x, g) for g in (first, second, first))
    up = one.float() > x
    return {
        "the same for the same seed": torch.equal(one, two),
        "the same in a second call": torch.equal(one, three),
        "PyTorch's global generator is untouched": torch.equal(state, torch.get_rng_state()),
        "x is untouched": torch.equal(x, before),
        "shape": list(one.shape),
        "different rows": len({tuple(row) for row in up.tolist()}),
        "different columns": len({tuple(column) for column in up.T.tolist()}),
    }


behaviour = {
    "x is untouched": True,
    "the same for the same seed": True,
    "the same in a second call": False,
    "PyTorch's global generator is untouched": True,
    "shape": [30, 20],
    "different rows": 30,
    "different columns": 20,
}
own_draw = "Each element draws for itself, not each row or each column."
hints = {
    "the same for the same seed": "All randomness comes from the generator that is handed in: pass generator=generator.",
    "the same in a second call": "A second call must draw anew: the generator is not to be seeded again.",
    "PyTorch's global generator is untouched": "Draw from the generator that is handed in, and from no other.",
    "x is untouched": "x is somebody else's: make a new tensor.",
    "shape": "The result has the shape of x, of any number of dimensions.",
    "different rows": own_draw,
    "different columns": own_draw,
}


def check_randomness(seed):
    """Whose randomness it is, whether each element has its own, and that nothing else has changed."""
    seen = observe(randomness, seed)
    if not isinstance(seen.value, dict):
        expect(
            seen.value,
            behaviour,
            hint="Return a tensor of bfloat16, also for x of two dimensions.",
        )
    for what, wanted in behaviour.items():
        expect(seen.value[what], wanted, about=what, hint=hints[what])


import torch

check_share(0x3F800000, 10_000, 0)  # 1 exactly
check_share(0x3F804000, 10_000, 1)  # a quarter of a gap above 1
check_share(0xBF80C000, 10_000, 2)  # three quarters of a gap below −1
check_randomness(3)
### BEGIN HIDDEN TESTS
from course_utils.testing import draws

draw = draws()
for upper in (0x0000, 0x0001, 0x007F, 0x3FFF, 0x4000, 0x7F7E, draw.integer(0x100, 0x7F00)):
    for sign in (0, 0x8000):
        check_share(
            (upper | sign) << 16 | draw.integer(0x0800, 0xF800), 20_000, draw.integer(0, 10**6)
        )
for upper in (0x0000, 0x8000, 0x3F80, 0x7F7F, 0xFF7F, draw.integer(0x100, 0x7F00)):
    check_share(upper << 16, 2_000, draw.integer(0, 10**6))
# Two million draws: a share of 1 in 65,536 has to come, 32 times or so, and must not come where it is 0.
check_share(0x3F800000, 2**21, 4)  # one seed: `rand <= 0` is true once in 2**24 draws
for lower in (0x0001, 0xFFFF):
    pattern = 0x3F800000 | lower
    seen = observe(share_per_value, pattern, 2**21, draw.integer(0, 10**6))
    got = len(seen.value[2]) if isinstance(seen.value, list) else seen.value
    rare = "Even a neighbour that is 65,535/65,536 of a gap away comes now and then; here it never does."
    about = "how many different results come in two million draws"
    expect(got, 2, about=about, mistakes={1: rare})


check_randomness(draw.integer(0, 10**6))


@probe
def one_number(student, value, seed):
    """A tensor without dimensions, rounded."""
    import torch

    result = student.stochastic_round(torch.tensor(value), torch.Generator().manual_seed(seed))
    return [list(result.shape), result.item()]


seen = observe(one_number, -3.0, draw.integer(0, 10**6))
expect(seen.value, [[], -3.0], hint="x may have no dimensions at all.")
### END HIDDEN TESTS

# %% [markdown]
r"""
<details><summary>Hint 1</summary>The lower 16 bits of the <code>float32</code> are the distance to the nearer-to-zero
neighbour, in units of 1/65,536 of a gap.</details>
<details><summary>Hint 2</summary>Add a random whole number from 0 to 65,535 to the bits, then cut off the lower 16. How
often does the addition carry?</details>

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

Next: **03 · Strides and views**, what lies between a shape and the memory. In **10 · Mixed precision** the scale and the
master weights become a training loop.
"""

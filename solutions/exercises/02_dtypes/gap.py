import math

import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given

exercise = Exercise("Which bit pattern comes right after that of the rounded x? In float64, the difference of the two numbers is exact.")

EIGHT = (torch.float8_e4m3fn, torch.float8_e5m2)
WIDER = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
WHOLE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def number(pattern, dtype):
    """The number with this pattern."""
    return torch.tensor(pattern, dtype=torch.int64).to(WHOLE[dtype.itemsize]).view(dtype).double().item()


def pattern_of(value, dtype):
    return int(torch.tensor(value, dtype=dtype).view(WHOLE[dtype.itemsize]))


@st.composite
def at_numbers(draw, dtypes, subnormal=False):
    """Numbers of a dtype; many of them are powers of two, or just below one."""
    dtype = draw(st.sampled_from(dtypes))
    info = torch.finfo(dtype)
    normal = pattern_of(info.tiny, dtype)
    low, high = (0, normal - 1) if subnormal else (normal, pattern_of(info.max, dtype) - 1)
    pattern = draw(st.integers(low, high) | st.sampled_from([low, low + 1, high, high - 1]))
    if not subnormal and draw(st.booleans()):
        pattern = max(low, (pattern // normal) * normal - draw(st.integers(0, 1)))
    return given(number(pattern, dtype), dtype)


@st.composite
def between_numbers(draw, dtypes, least=0):
    """A number of a dtype and some part of the gap above it, never near a half. `least`: 1 for normal numbers alone."""
    dtype = draw(st.sampled_from(dtypes))
    last = pattern_of(torch.finfo(dtype).max, dtype)
    step = pattern_of(torch.finfo(dtype).tiny, dtype)
    least *= step
    pattern = draw(st.integers(least, last - 2))
    if draw(st.booleans()):
        pattern = max(least, (pattern // step) * step - draw(st.integers(0, 1)))
    low, high = number(pattern, dtype), number(pattern + 1, dtype)
    return given(low + draw(st.floats(0.02, 0.48) | st.floats(0.52, 0.98)) * (high - low), dtype)


nearest = {dtype: math.nextafter(2.0, 0) if dtype == torch.float64 else 2 - torch.finfo(dtype).eps for dtype in WIDER}
exercise.requirement(
    "for 16-, 32- and 64-bit dtypes, the result at a normal number is the distance to the next larger number",
    points=0.5,
    tolerance=0,
    visible=[given(3.0, torch.bfloat16), given(1e300, torch.float64), given(2.0**24, torch.float32, says="gap(2.0**24, torch.float32)"),
             given(math.nextafter(8.0, 0), torch.float64, says="gap(math.nextafter(8.0, 0), torch.float64)")],
    edges={
        **{f"just below 2 in {dtype}": given(value, dtype) for dtype, value in nearest.items()},
        **{f"the smallest normal number of {dtype}": given(torch.finfo(dtype).tiny, dtype) for dtype in WIDER},
        **{f"twice that of {dtype}": given(2 * torch.finfo(dtype).tiny, dtype) for dtype in WIDER},
        **{f"just below the largest of {dtype}": given(number(pattern_of(torch.finfo(dtype).max, dtype) - 1, dtype), dtype)
           for dtype in WIDER},
        **{f"1 in {dtype}": given(1.0, dtype) for dtype in WIDER},
        "small, in float64": given(1.5 * 2.0**-1000, torch.float64),
        "large, in float64": given(1.7 * 2.0**900, torch.float64),
        "0.1 in float64": given(0.1, torch.float64),
        "2**53 in float64": given(2.0**53, torch.float64),
        "3 in float16": given(3.0, torch.float16),
    },
    domain=at_numbers(WIDER),
    hint="The gap is the same from one power of two to the next, where it doubles.",
)  # fmt: skip
exercise.requirement(
    "for 16-, 32- and 64-bit dtypes, the result at 0 or a subnormal number is the distance to the next larger number",
    points=0.5,
    tolerance=0,
    visible=[given(0.0, torch.float16), given(2.0**-20, torch.float16, says="gap(2.0**-20, torch.float16)"),
             given(0.0, torch.float64), given(2.0**-140, torch.float32, says="gap(2.0**-140, torch.float32)")],
    edges={
        **{f"0 in {dtype}": given(0.0, dtype) for dtype in WIDER},
        **{f"the smallest of {dtype}": given(number(1, dtype), dtype) for dtype in WIDER},
        **{f"the largest subnormal of {dtype}": given(number(pattern_of(torch.finfo(dtype).tiny, dtype) - 1, dtype), dtype)
           for dtype in WIDER},
        "up to the smallest subnormal number": given(0.75 * 2.0**-24, torch.float16),
        "down to 0": given(0.25 * 2.0**-149, torch.float32),
        "far too small": given(1e-300, torch.bfloat16),
        "between two subnormal numbers": given(1e-6, torch.float16),
        "2**-1030 in float64": given(2.0**-1030, torch.float64),
    },
    domain=at_numbers(WIDER, subnormal=True),
    hint="Subnormal numbers are evenly spaced, starting at 0: below the smallest normal number, the gap doesn't shrink any further.",
)  # fmt: skip
exercise.requirement(
    "x is rounded first, and the distance is measured from the rounded number",
    points=0.5,
    tolerance=0,
    visible=[given(0.9999, torch.float16), given(0.1, torch.bfloat16), given(7.9999, torch.bfloat16),
             given(1 - 2.0**-40, torch.float32, says="gap(1 - 2.0**-40, torch.float32)")],
    edges={
        "down to a power of two": given(4.001, torch.float16),
        "between two numbers of float32": given(16_777_217.25, torch.float32),
        "down, below a power of two": given(3.99, torch.bfloat16),
        "down to a power of two, in float32": given(1 + 2.0**-40, torch.float32),
        "up to the smallest normal number": given(2.0**-14 * (1 - 2.0**-12), torch.float16),
        "down to just below the largest": given(65_472 + 8.0, torch.float16),
        "0.1 in float32": given(0.1, torch.float32),
        "between two whole numbers": given(2_049.5, torch.float16),
    },
    domain=between_numbers(WIDER[1:], 1),
    hint="Round x to the dtype first. Then measure the distance from the rounded number, not from x.",
)  # fmt: skip
exercise.requirement(
    "in both 8-bit formats, x is rounded and the result is the distance to the next larger number",
    points=0.5,
    tolerance=0,
    visible=[given(101.0, torch.float8_e4m3fn), given(0.0, torch.float8_e5m2), given(1.0, torch.float8_e5m2),
             given(0.01, torch.float8_e4m3fn)],
    edges={
        **{f"0 in {dtype}": given(0.0, dtype) for dtype in EIGHT},
        **{f"just below the largest of {dtype}": given(number(pattern_of(torch.finfo(dtype).max, dtype) - 1, dtype), dtype)
           for dtype in EIGHT},
        **{f"up to the smallest normal number of {dtype}": given(torch.finfo(dtype).tiny * 0.99, dtype) for dtype in EIGHT},
        **{f"just below 2 in {dtype}": given(2 - torch.finfo(dtype).eps, dtype) for dtype in EIGHT},
        "up to a power of two": given(3.9, torch.float8_e5m2),
        "down to a power of two": given(4.1, torch.float8_e4m3fn),
        "a subnormal number": given(3 * 2.0**-9, torch.float8_e4m3fn),
    },
    domain=between_numbers(EIGHT) | at_numbers(EIGHT) | at_numbers(EIGHT, subnormal=True),
    hint="PyTorch can't subtract 8-bit floats: convert both numbers first.",
)  # fmt: skip

RETURNED = "return following.double().item() - here.double().item()"
exercise.mistake("Your result is eps, which is the gap at 1; larger numbers have larger gaps, and smaller numbers have smaller ones.",
                 f"{RETURNED} → return torch.finfo(dtype).eps")  # fmt: skip
exercise.mistake("Your gap grows with every number; it must stay the same from one power of two to the next.",
                 f"{RETURNED} → return here.double().item() * torch.finfo(dtype).eps")  # fmt: skip
exercise.mistake("Your result is the distance to the next smaller number; the exercise asks for the next larger one.",
                 "(here.view(whole) + 1) → (here.view(whole) - 1)",
                 f"{RETURNED} → return here.double().item() - following.double().item()")  # fmt: skip
exercise.mistake("Measure the distance from the rounded x, not from x itself.", "- here.double().item() → - x")
exercise.mistake("Your result is the next larger number; the exercise asks for the distance to it.", " - here.double().item() → ")
exercise.mistake("Your result is half of the gap; the exercise asks for the whole gap.", f"{RETURNED} → return ({RETURNED[7:]}) / 2")
exercise.mistake("PyTorch can't subtract 8-bit floats: convert both numbers first.",
                 f"{RETURNED} → return (following - here).item()")  # fmt: skip
exercise.mistake("Your code subtracts in float32, which can't represent every float64 exactly: use a wider dtype.",
                 f"{RETURNED} → return following.float().item() - here.float().item()")  # fmt: skip
exercise.mistake("Your result is the gap in float32: torch.nextafter works in the dtype of its arguments.",
                 "following = (here.view(whole) + 1).view(dtype) → here = here.float(); following = torch.nextafter(here, torch.tensor(math.inf))")  # fmt: skip
exercise.mistake("Your code rounds x to float16 along the way: round it only to dtype.",
                 "torch.tensor(x, dtype=dtype) → torch.tensor(x, dtype=torch.float16).to(dtype)")  # fmt: skip
exercise.mistake("Your code rounds x to float32 along the way: round it only to dtype.",
                 "torch.tensor(x, dtype=dtype) → torch.tensor(x).to(dtype)")  # fmt: skip
exercise.mistake("The number after 0 isn't the smallest normal number: subnormal numbers come in between.",
                 f"{RETURNED} → return max({RETURNED[7:]}, torch.finfo(dtype).tiny if x == 0 else 0)")  # fmt: skip
exercise.mistake("Your code views every dtype as 16-bit integers: the integers must have the same size as the dtype.",
                 "{1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize] → torch.int16")  # fmt: skip

# %% mistake: nothing below the smallest normal number
# says: Subnormal numbers are evenly spaced: below the smallest normal number, the gap doesn't shrink any further.
def gap(x, dtype):
    here = torch.tensor(x, dtype=dtype).double().item()
    if here == 0:
        return torch.finfo(dtype).tiny * torch.finfo(dtype).eps
    return torch.finfo(dtype).eps * 2.0 ** (math.frexp(here)[1] - 1)

# %% mistake: log2
# says: math.log2 rounds its result: just below a power of two, your exponent is too large. Find the exponent exactly.
def gap(x, dtype):
    info = torch.finfo(dtype)
    here = max(torch.tensor(x, dtype=dtype).double().item(), info.tiny)
    return info.eps * 2.0 ** math.floor(math.log2(here))

# %% mistake: not rounded
# says: Round x to the dtype first: it may round up to a power of two, where the gap is larger.
def gap(x, dtype):
    info = torch.finfo(dtype)
    return info.eps * 2.0 ** (math.frexp(max(x, info.tiny))[1] - 1)

# %% wrong: adds eps and looks where that leads
def gap(x, dtype):
    here = torch.tensor(x, dtype=dtype).double()
    return ((here + torch.finfo(dtype).eps).to(dtype).double() - here).item()

# %% wrong: the smallest normal number follows 0
def gap(x, dtype):
    info = torch.finfo(dtype)
    here = torch.tensor(x, dtype=dtype).double().item()
    if here == 0:
        return info.tiny
    return info.eps * 2.0 ** (math.frexp(max(here, info.tiny))[1] - 1)

# %% wrong: the next number above x, not above what it is rounded to
def gap(x, dtype):
    whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]
    here = torch.tensor(x, dtype=dtype)
    if here.double().item() > x:
        here = (here.view(whole) - 1).view(dtype)
    return (here.view(whole) + 1).view(dtype).double().item() - here.double().item()

# %% wrong: rounded down
def gap(x, dtype):
    info = torch.finfo(dtype)
    step = info.tiny * info.eps
    power = max(math.frexp(x)[1] - 1, math.frexp(info.tiny)[1] - 1)
    return max(step, math.ldexp(info.eps, power))

# %% wrong: a list of the 8-bit numbers, and for the others a formula without subnormal numbers
def gap(x, dtype):
    here = torch.tensor(x, dtype=dtype).double()
    if dtype.itemsize == 1:
        every = torch.arange(256, dtype=torch.uint8).view(dtype).double()
        return (every[every > here].min() - here).item()
    return math.ldexp(torch.finfo(dtype).eps, math.frexp(here.item())[1] - 1) or torch.finfo(dtype).tiny

# %% wrong: bfloat16 as the upper half of a float32, cut off
def gap(x, dtype):
    here = torch.tensor(x, dtype=dtype)
    if dtype == torch.bfloat16:
        here = ((torch.tensor(x).view(torch.int32) >> 16) << 16).view(torch.float32).to(dtype)
    whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]
    return ((here.view(whole) + 1).view(dtype).double() - here.double()).item()

# %% wrong: torch.tensor(x) is float32 first, whatever the dtype (from the statement)
def gap(x: float, dtype: torch.dtype) -> float:
    here = torch.tensor(x).to(dtype)
    integer = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]
    after = (here.view(integer) + 1).view(dtype)
    return after.double().item() - here.double().item()

# %% wrong: floor(log2(x)) rounds up just below a power of two in float64 (from the statement)
def gap(x: float, dtype: torch.dtype) -> float:
    info = torch.finfo(dtype)
    here = torch.tensor(x, dtype=dtype).double().item()
    here = max(here, info.smallest_normal)
    return info.eps * 2.0 ** math.floor(math.log2(here))

# %% wrong: looks at the binade of x itself, not of x rounded (from the statement)
def gap(x: float, dtype: torch.dtype) -> float:
    info = torch.finfo(dtype)
    _, exponent = math.frexp(max(x, info.smallest_normal))
    return info.eps * 2.0 ** (exponent - 1)

# %% right: frexp
def gap(x, dtype):
    info = torch.finfo(dtype)
    here = torch.tensor(x, dtype=torch.float64).to(dtype).double().item()
    _, power = math.frexp(max(here, info.smallest_normal))
    return math.ldexp(info.eps, power - 1)

# %% right: looks along the list of all numbers, or asks nextafter
def gap(x, dtype):
    here = torch.tensor(x, dtype=dtype)
    if dtype in (torch.float32, torch.float64):
        return (torch.nextafter(here, torch.tensor(torch.inf, dtype=dtype)) - here).item()
    if dtype.itemsize == 1:
        every = torch.arange(256, dtype=torch.uint8).view(dtype).double()
    else:
        every = torch.arange(2**16, dtype=torch.int32).to(torch.int16).view(dtype).double()
    larger = every[every > here.double()]
    return larger.min() - here.double()

# %% right: takes ever smaller steps
def gap(x, dtype):
    here = torch.tensor([x], dtype=dtype)
    start = here.double().item()
    step = max(start, 1.0)

    def moved(by):
        if start + by == start:
            return start
        return torch.tensor([start + by], dtype=torch.float64).to(dtype).double().item()

    while moved(step) != start:
        landed = moved(step)
        step /= 2
    return landed - start if moved(step) == start else landed

# %% right: rounds by itself, with whole numbers
def gap(x, dtype):
    from fractions import Fraction

    info = torch.finfo(dtype)
    least = Fraction(info.tiny)
    power = Fraction(2) ** (math.frexp(x)[1] - 1) if x else Fraction(0)
    step = max(power, least) * Fraction(info.eps)
    here = round(Fraction(x) / step) * step
    larger = max(Fraction(2) ** (math.frexp(float(here))[1] - 1), least) if here else least
    return float(larger * Fraction(info.eps))

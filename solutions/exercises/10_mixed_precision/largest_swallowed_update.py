import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given

exercise = Exercise("Which updates are certain to be swallowed? Only one case remains: what happens to a sum exactly halfway between two neighbors?")

# Digits of the mantissa, and the exponents of w for which all is normal and finite.
FORMATS = {torch.float16: (11, -2, 14), torch.bfloat16: (8, -117, 126), torch.float32: (24, -101, 126)}
BF16, F16, F32 = torch.bfloat16, torch.float16, torch.float32


@st.composite
def weights(draw, dtypes, lasts):
    """Any w of one of these formats whose last bit is one of these; exponents near 0 are as frequent as all others."""
    dtype = draw(st.sampled_from(dtypes))
    digits, lowest, highest = FORMATS[dtype]
    most = 2**digits - 2
    mantissa = draw(st.sampled_from([2 ** (digits - 1), most]) | st.integers(2 ** (digits - 1), most))
    mantissa = mantissa // 2 * 2 + draw(st.sampled_from(lasts))
    exponent = draw(st.integers(max(lowest, -10), 10) | st.integers(lowest, highest))
    return given(mantissa * 2.0 ** (exponent - digits + 1), dtype)


exercise.requirement(
    "the result is right for a w whose last bit is 0, where the tie rounds down to w",
    points=1,
    tolerance=0,
    visible=[given(1.0, BF16), given(5.0, BF16), given(0.3125, F16), given(16368.0, F16)],
    edges={
        "a power of two above 1": given(1024.0, BF16),
        "a power of two below 1": given(2.0**-20, BF16),
        "just below a power of two": given(1.984375, BF16),
        "the smallest": given(2.0**-117, BF16),
        "the largest": given(254 * 2.0**120, BF16),
        "float16, the smallest": given(0.25, F16),
        "float16, just below a power of two": given(2046.0, F16),
        "float16, the largest": given(65472.0, F16),
        "float32": given(3.0, F32),
        "float32, a power of two": given(2.0**-30, F32),
        "float32, the largest": given((2**24 - 2) * 2.0**104, F32),
    },
    domain=weights([BF16, F16, F32], [0]),
)
exercise.requirement(
    "the result is right for a w whose last bit is 1, where the tie rounds up to w's neighbor",
    points=1,
    tolerance=0,
    visible=[
        given(5.03125, BF16, says="largest_swallowed_update(5.03125, torch.bfloat16)"),
        given(1 + 2.0**-10, F16, says="largest_swallowed_update(1 + 2**-10, torch.float16)"),
    ],
    edges={
        "next to 1": given(1 + 2.0**-7, BF16),
        "just below a power of two": given(1.9921875, BF16),
        "just above a power of two": given(2.0**-9 * (1 + 2.0**-7), BF16),
        "a large one": given(253 * 2.0**120, BF16),
        "float16": given(100.0625, F16),
        "float16, just below a power of two": given(2047.0, F16),
        "float32": given(1 + 2.0**-23, F32),
        "float32, just below a power of two": given(16777215.0, F32),
    },
    domain=weights([BF16, F16, F32], [1]),
)

exercise.mistake("Your result is a whole gap, which moves w to its neighbor. Where between the two does rounding change direction?",
                 "(above - weight) / 2 → (above - weight)",
                 "if weight + update != weight → if False")  # fmt: skip
exercise.mistake("Half a gap makes a tie, and the last bit of this w is 1, so the tie rounds up and changes w.", "if weight + update != weight → if False")
exercise.mistake("The last bit of this w is 0, so the tie rounds down to it: a larger update than yours is swallowed.",
                 "if weight + update != weight → if True")  # fmt: skip
exercise.mistake("You have the two kinds of ties reversed: a tie rounds to the neighbor whose last bit is 0.",
                 "if weight + update != weight → if weight + update == weight")  # fmt: skip
exercise.mistake("The update is positive: use the gap above w, which may be twice the gap below.",
                 "(above - weight) / 2 → (weight - torch.nextafter(weight, torch.zeros_like(weight))) / 2")  # fmt: skip
exercise.mistake("Your result is swallowed, but it isn't the largest such update: halving or doubling skips most numbers.",
                 "torch.nextafter(update, torch.zeros_like(update)) → update / 2")  # fmt: skip
exercise.mistake("Your result is the smallest update that changes w; return the largest one that doesn't.",
                 "if weight + update != weight → if weight + update == weight", "torch.zeros_like(update) → torch.full_like(update, math.inf)")  # fmt: skip

# %% mistake: eps times w
# says: eps times w is the gap only if w is a power of two; between two powers of two, the gap is constant.
def largest_swallowed_update(w, dtype):
    return w * torch.finfo(dtype).eps / 2

# %% mistake: half of eps, everywhere
# says: Your result is half the gap at 1, but the gap depends on w.
def largest_swallowed_update(w, dtype):
    return torch.finfo(dtype).eps / 2

# %% mistake: bfloat16, whatever was asked
# says: You computed in bfloat16; compute in the dtype that's given.
def largest_swallowed_update(w, dtype):
    x = torch.tensor(w, dtype=torch.bfloat16)
    half = (torch.nextafter(x, torch.tensor(math.inf, dtype=x.dtype)) - x) / 2
    if x + half != x:
        half = torch.nextafter(half, torch.zeros_like(half))
    return half.item()

# %% mistake: float32, whatever was asked
# says: You computed in float32; round the sum to the dtype that's given.
def largest_swallowed_update(w, dtype):
    x = torch.tensor(w)
    half = (torch.nextafter(x, torch.tensor(math.inf)) - x) / 2
    return (torch.nextafter(half, torch.tensor(0.0)) if x + half != x else half).item()

# %% mistake: powers of two only
# says: Your result is swallowed, but it isn't the largest such update: halving or doubling skips most numbers.
def largest_swallowed_update(w, dtype):
    x, u = torch.tensor(w, dtype=dtype), torch.tensor(2.0 ** (math.frexp(w)[1] - 40))
    while x + (2 * u).to(dtype) == x:
        u *= 2
    return u.item()

# %% mistake: halves w until it is swallowed
# says: Your result is swallowed, but it isn't the largest such update: halving or doubling skips most numbers.
def largest_swallowed_update(w, dtype):
    x = torch.tensor(w, dtype=dtype)
    u = x.clone()
    while x + u != x:
        u = u / 2
    return u.item()

# %% mistake: adds in Python's float64
# says: Python's floats have 64 bits: round the sum to the dtype that's given.
def largest_swallowed_update(w, dtype):
    x = torch.tensor(w, dtype=dtype)
    half = (torch.nextafter(x, torch.tensor(math.inf, dtype=dtype)) - x).item() / 2
    while w + half != w:
        half /= 2
    return half

# %% mistake: the neighbor below half a gap in another format
# says: The result has to be representable in the given format: you went to the next number in float32 or float64.
def largest_swallowed_update(w, dtype):
    x = torch.tensor(w, dtype=dtype)
    half = (torch.nextafter(x, torch.tensor(math.inf, dtype=dtype)) - x) / 2
    return half.item() if x + half == x else math.nextafter(half.item(), 0.0)

# %% wrong: the exponent of w from a logarithm in the format itself
def largest_swallowed_update(w, dtype):
    x = torch.tensor(w, dtype=dtype)
    half = torch.finfo(dtype).eps * 2.0 ** math.floor(torch.log2(x).item()) / 2
    if x + torch.tensor(half, dtype=dtype) != x:
        half = torch.nextafter(torch.tensor(half, dtype=dtype), torch.tensor(0.0, dtype=dtype)).item()
    return half

# %% wrong: even means an even number
def largest_swallowed_update(w, dtype):
    x = torch.tensor(w, dtype=dtype)
    half = (torch.nextafter(x, torch.tensor(math.inf, dtype=dtype)) - x) / 2
    return half.item() if w % 2 == 0 or w in (1.0, 0.5, 0.25) else torch.nextafter(half, torch.zeros_like(half)).item()

# %% wrong: takes w - u for w + u
def largest_swallowed_update(w, dtype):
    x = torch.tensor(w, dtype=dtype)
    half = (x - torch.nextafter(x, torch.zeros_like(x))) / 2
    if x - half != x:
        half = torch.nextafter(half, torch.zeros_like(half))
    return half.item()

# %% wrong: finds the exponent by torch.log2 in the dtype itself, which rounds up just below a power of two (from the statement)
import math

import torch


def largest_swallowed_update(w, dtype):
    """The largest u, a number of the format dtype, for which w + u is rounded back to w."""
    exponent = math.floor(torch.log2(torch.tensor(w, dtype=dtype)).item())
    gap = 2.0**exponent * torch.finfo(dtype).eps
    if round(w / gap) % 2 == 0:
        return gap / 2
    half = torch.tensor(gap / 2, dtype=dtype)
    return torch.nextafter(half, torch.tensor(0.0, dtype=dtype)).item()

# %% wrong: measures the gap below w, which is half as wide where w is a power of two (from the statement)
import math

import torch


def largest_swallowed_update(w, dtype):
    """The largest u, a number of the format dtype, for which w + u is rounded back to w."""
    x = torch.tensor(w, dtype=dtype)
    gap = x - torch.nextafter(x, torch.zeros_like(x))
    half = gap / 2
    if (x + half).item() != x.item():
        half = torch.nextafter(half, torch.zeros_like(half))
    return half.item()

# %% wrong: the number just below half the gap is Python's, not the format's (from the statement)
import math

import torch


def largest_swallowed_update(w, dtype):
    """The largest u, a number of the format dtype, for which w + u is rounded back to w."""
    x = torch.tensor(w, dtype=dtype)
    gap = torch.nextafter(x, torch.tensor(math.inf, dtype=dtype)).double() - x.double()
    half = gap.item() / 2
    even = (w / gap.item()) % 2 == 0
    return half if even else math.nextafter(half, 0.0)

# %% right: bisection on the bits of the update
def largest_swallowed_update(w, dtype):
    whole = {2: torch.int16, 4: torch.int32}[dtype.itemsize]
    x = torch.tensor(w, dtype=dtype)
    swallowed, moves = 0, int(x.view(whole))
    while moves - swallowed > 1:
        middle = (swallowed + moves) // 2
        update = torch.tensor(middle, dtype=whole).view(dtype)
        if x + update == x:
            swallowed = middle
        else:
            moves = middle
    return torch.tensor(swallowed, dtype=whole).view(dtype).item()

# %% right: from the number of digits
def largest_swallowed_update(w, dtype):
    digits = {torch.float16: 11, torch.bfloat16: 8, torch.float32: 24}[dtype]
    fraction, exponent = math.frexp(w)
    half_gap = math.ldexp(1.0, exponent - digits - 1)
    if int(fraction * 2**digits) % 2 == 0:
        return half_gap
    return half_gap * (1 - 2.0**-digits)

# %% right: as a tensor without dimensions, the parity from the last bit
def largest_swallowed_update(w, dtype):
    whole = {2: torch.int16, 4: torch.int32}[dtype.itemsize]
    bits = torch.tensor(w, dtype=dtype).view(whole)
    half = ((bits + 1).view(dtype) - bits.view(dtype)) / 2
    return (half.view(whole) - (bits & 1)).to(whole).view(dtype)

# %% right: from eps and the power of two below w
def largest_swallowed_update(w, dtype):
    eps = torch.finfo(dtype).eps
    half = eps * 2.0 ** math.floor(math.log2(w)) / 2
    tie = torch.tensor(w, dtype=dtype) + torch.tensor(half, dtype=dtype)
    return half if tie.item() == w else half * (1 - eps / 2)

# %% right: from a whole gap downwards, until it is swallowed
def largest_swallowed_update(w, dtype):
    x = torch.full((1,), w, dtype=dtype)
    u = torch.nextafter(x, 2 * x) - x
    u = u / 2
    while (x + u).item() != w:
        u = torch.nextafter(u, 0 * u)
    return float(u)

import math

import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of

exercise = Exercise("Convert the values, and look at what they became. Combine conditions on tensors with & and |, not with `and` and `or`, and put each comparison in parentheses.")  # fmt: skip

DTYPES = (torch.float16, torch.bfloat16, torch.float32)
LEAST = {torch.float16: -24, torch.bfloat16: -133, torch.float32: -149}  # the smallest number: 2 to the power of this
MOST = {torch.float16: 16, torch.bfloat16: 128, torch.float32: 128}  # the largest is just short of this power
BITS = {torch.float16: 11, torch.bfloat16: 8, torch.float32: 24}


def values(numbers, dtype, held_in=torch.float32):
    """The call as a student would write it: a list of numbers or of lists."""
    other = "" if held_in == torch.float32 else f", dtype={held_in}"
    return given(torch.tensor(numbers, dtype=torch.float64).to(held_in), dtype,
                 says=f"survives(torch.tensor({numbers}{other}), {dtype})")  # fmt: skip


def halfway(dtype):
    """The least that becomes infinite."""
    return (1 - 2.0 ** -(BITS[dtype] + 1)) * 2.0 ** (MOST[dtype] - 1) * 2


def wide(dtype):
    return torch.float64 if dtype == torch.float32 else torch.float32


@st.composite
def around(draw, where):
    """Values of any size, many of them near one end of the range ("least" or "most"), none close to an edge."""
    dtype = draw(any_of(*DTYPES))
    held_in = draw(any_of(torch.float64, *DTYPES))
    low, high = (LEAST[dtype] - 8, LEAST[dtype] + 14) if where == "least" else (MOST[dtype] - 4, MOST[dtype] + 4)
    powers = st.integers(low, high).filter(lambda n: n != LEAST[dtype] - 1)  # these are rounded to 0 or to the least
    numbers = []
    for _ in range(draw(st.integers(2, 8))):
        power = draw(powers | powers | any_of(0, -3, -300 if where == "least" else 300))
        # Three bits of mantissa: too few to lie just beside an edge.
        numbers.append(draw(any_of(1.0, -1.0)) * draw(any_of(1.0, 1.25, 1.5, 1.75)) * 2.0**power)
    numbers += [0.0, -0.0] if where == "least" else draw(st.lists(any_of(math.inf, -math.inf, math.nan, 2.5), max_size=2))
    return given(torch.tensor(draw(st.permutations(numbers)), dtype=torch.float64).to(held_in), dtype)


@st.composite
def at_the_edges(draw):
    """Values on both edges, and a millionth or so beside them."""
    dtype = draw(any_of(*DTYPES))
    edges = [2.0 ** (LEAST[dtype] - 1), halfway(dtype)]
    nudges = st.integers(-9, 9).map(lambda n: 1 + n * 2.0**-20)
    if dtype == torch.bfloat16:  # at the lower edge even float32 has few bits there
        nudges = any_of(1.0, 1 + 2.0**-10, 1 - 2.0**-10)
    numbers = [draw(any_of(1.0, -1.0)) * draw(any_of(*edges)) * draw(nudges) for _ in range(draw(st.integers(2, 6)))]
    return given(torch.tensor(numbers, dtype=torch.float64).to(wide(dtype)), dtype)


@st.composite
def of_any_shape(draw):
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    numbers = torch.tensor([0.1, 1e5, 1.0, -2.5, 4.0, 1e5, -8.0, 300.0]).repeat(math.prod(shape) // 8 + 1)
    turned = numbers.roll(draw(st.integers(0, 7)))[: math.prod(shape)].view(shape)
    return given(turned.mT if len(shape) > 1 and draw(st.booleans()) else turned, draw(any_of(*DTYPES)))


nan, inf = math.nan, math.inf
def ends(*numbers_of):
    """Numbers of every dtype, and of every dtype that they are converted to."""
    found = {}
    for held_in in (*DTYPES, torch.float64):
        info = torch.finfo(held_in)
        known = {"max": info.max, "least": info.smallest_normal * info.eps, "normal": info.smallest_normal, "one": 1.0}
        numbers = torch.tensor([sign * known[name] for name in numbers_of for sign in (1, -1)], dtype=torch.float64)
        for dtype in DTYPES:
            found[f"{' and '.join(numbers_of)} of {held_in}, in {dtype}"] = given(numbers.to(held_in), dtype)
    return found


exercise.requirement(
    "a value that becomes infinite doesn't survive, nor does one that's already infinite or NaN",
    points=0.25,
    visible=[
        values([0.1, 70000.0, -70000.0, -1.0], torch.float16),
        values([0.1, 70000.0, 1e38, -70000.0], torch.bfloat16),
        given(torch.tensor([inf, -inf, nan, 2.0]), torch.float16,
              says="survives(torch.tensor([math.inf, -math.inf, math.nan, 2.0]), torch.float16)"),
        values([1e39, -1e39, 1e38], torch.float32, torch.float64),
    ],
    edges={
        "the largest numbers": values([65504.0, -65504.0], torch.float16),
        "the largest of bfloat16": values([torch.finfo(torch.bfloat16).max, 3.4028e38, 3e38], torch.bfloat16),
        "infinite in float16, to a wider one": given(torch.tensor([inf, 1.0, -inf, nan]).half(), torch.float32),
        "infinite in bfloat16, to float16": given(torch.tensor([inf, 1.0, 1e6, nan]).bfloat16(), torch.float16),
        "far too large": values([1e300, -1e300], torch.float32, torch.float64),
        "far too large, to 16 bits": values([1e300, -1e300, 1.0], torch.float16, torch.float64),
        "far too large, to bfloat16": values([1e300, -1e300, 1.0], torch.bfloat16, torch.float64),
        "all of float32, which stays": values([3.4e38, -3.4e38], torch.float32),
        **ends("max", "one"),
        "bfloat16 to itself": given(torch.tensor([3e38, inf, -1.0]).bfloat16(), torch.bfloat16),
    },
    domain=around("most"),
    hint="A value that's too large for dtype becomes infinite and doesn't survive. Negative values can overflow, too.",
)  # fmt: skip
exercise.requirement(
    "a value that becomes 0 doesn't survive unless it was 0 before; a value that becomes a subnormal number survives",
    points=0.25,
    visible=[
        values([0.1, 1e-8, -1e-8, 0.0], torch.float16),
        values([1e-6, -1e-6, 1e-4], torch.float16),
        values([1e-8, 1e-39, 0.0], torch.bfloat16),
        values([1e-60, -1e-40, 0.0], torch.float32, torch.float64),
    ],
    edges={
        **ends("least", "normal"),
        "both zeros": values([0.0, -0.0], torch.bfloat16),
        "0 in float16": given(torch.tensor([1e-9, 0.0, 1.0]).half(), torch.float32),
        "far too small, to 16 bits": values([1e-60, -1e-300, 0.0], torch.float16, torch.float64),
        "far too small, to bfloat16": values([1e-60, -1e-300, 0.0], torch.bfloat16, torch.float64),
        "the smallest float64": values([5e-324, -5e-324, 0.0], torch.float32, torch.float64),
        "bfloat16 to float16": given(torch.tensor([1e-8, -1e-8, 1e-6, 0.0, 1e-30]).bfloat16(), torch.float16),
        "the smallest number of each": values([2.0**-24, -(2.0**-24)], torch.float16),
        "the smallest of bfloat16": values([2.0**-133, -(2.0**-133)], torch.bfloat16),
        "the smallest of float32": values([2.0**-149, -(2.0**-149)], torch.float32),
        "exact or not": values([0.1, 1 / 3, 1e-5], torch.float16, torch.float64),
    },
    domain=around("least"),
    hint="A value that's too small for dtype becomes 0 and doesn't survive. A value that was 0 before has nothing to lose.",
)
exercise.requirement(
    "near the limits of dtype, what counts is the number that a value rounds to",
    points=0.25,
    visible=[
        values([65504.0, 65519.0, 65520.0], torch.float16),
        given(torch.tensor([1.0, 1.001, -1.001, -1.0]) * 2.0**-25, torch.float16,
              says="survives(torch.tensor([1.0, 1.001, -1.001, -1.0]) * 2.0**-25, torch.float16)"),
    ],
    edges={
        f"the edges of {dtype}": given(
            torch.tensor([sign * edge * nudge for sign in (1, -1) for edge in (2.0 ** (LEAST[dtype] - 1), halfway(dtype))
                          for nudge in (1, 1 - 2.0**-13, 1 + 2.0**-13, 1.5, 0.75)], dtype=torch.float64).to(wide(dtype)), dtype)
        for dtype in DTYPES
    },
    domain=at_the_edges(),
    hint="Don't compare the values with the limits yourself: let the conversion do the rounding, and look at its "
         "result.",
)  # fmt: skip
exercise.requirement(
    "the result is a Boolean tensor with the same shape as `values`, whatever that shape is",
    points=0.25,
    visible=[
        values([[1.0, 1e5], [1e5, 1.0], [3.0, -2.0]], torch.float16),
        values(1e5, torch.float16),
        values([1.0], torch.bfloat16),
        given(torch.zeros(0, 2), torch.float16),
    ],
    edges={
        "no values": given(torch.zeros(0), torch.float16),
        "no columns": given(torch.zeros(3, 0), torch.bfloat16),
        "sizes of 1": given(torch.tensor([[[1e5]], [[1.0]]]), torch.float16),
        "one number": given(torch.tensor([[1e5]]), torch.float16),
        "one that stays, without dimensions": given(torch.tensor(3.0), torch.float16),
        "a view": given(torch.tensor([[1.0, 1e5, 3.0], [1e5, 2.0, -5.0]]).T[::2], torch.float16),
        "expanded": given(torch.tensor([[1.0, 1e5, 3.0]]).expand(2, 3), torch.float16),
        "of parameters": given(torch.tensor([1.0, 1e5, 3.0], requires_grad=True), torch.float16),
    },
    domain=of_any_shape(),
    hint="Return a Boolean tensor with one element for each value, in the same shape as `values`.",
)

REST = "converted.isfinite() & ((converted != 0) | (values == 0))"
over = "A value that's too large for dtype becomes infinite: it doesn't survive."
exact = "A value needn't stay exactly the same: 0.1 is rounded to a nearby number, and survives."
not_finite = "A value that's already infinite or NaN doesn't survive."
rounding = "Don't compare the values with the limits of dtype: a value slightly beyond a limit may still round to a number within it."
exercise.mistake(exact, f"{REST} → converted.to(values.dtype) == values")
exercise.mistake("A value that's too small for dtype becomes 0: it doesn't survive.", " & ((converted != 0) | (values == 0)) → ")
exercise.mistake(over, "converted.isfinite() & → ~converted.isnan() &")
exercise.mistake("A value that was 0 before the conversion has nothing to lose: it survives.", "((converted != 0) | (values == 0)) → (converted != 0)")
exercise.mistake("Negative values can overflow, too: they become minus infinity.", "converted.isfinite() → (converted < torch.inf)")
exercise.mistake("Negative values can survive, too: your code accepts only positive ones.", "(converted != 0) → (converted > 0)")
exercise.mistake("A value that becomes a subnormal number survives: your code rejects everything below the smallest normal number.",
                 "(converted != 0) → (converted.abs() >= torch.finfo(dtype).tiny)")  # fmt: skip
exercise.mistake(rounding, "converted.isfinite() → (values.abs() <= torch.finfo(dtype).max)")
exercise.mistake(rounding, "(converted != 0) → (values.abs() >= torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps)")
exercise.mistake("eps is the gap at 1, not the smallest number: far smaller values survive.",
                 "(converted != 0) → (converted.abs() > torch.finfo(dtype).eps)")  # fmt: skip
exercise.mistake(not_finite, "converted.isfinite() → ~converted.isinf()")
exercise.mistake("A value that's already infinite doesn't survive: it isn't a finite number.",
                 "converted.isfinite() → (converted.isfinite() | values.isinf())")  # fmt: skip
exercise.mistake("Your result is inverted: True means that the value survives.", f"{REST} → ~({REST})")
exercise.mistake("Your code always converts to float16: convert to `dtype`.",
                 "values.to(dtype) → values.half()")  # fmt: skip
exercise.mistake("Return one Boolean for each value, not a single one for all of them.", f"{REST} → ({REST}).all()")
exercise.mistake("The result must have the same shape as `values`.", f"{REST} → ({REST}).flatten()")
exercise.mistake("Keep dimensions of size 1: the result must have the same shape "
                 "as `values`.", f"{REST} → ({REST}).squeeze()")
exercise.mistake("Return Booleans, not the values themselves.", f"{REST} → torch.where({REST}, converted, 0)")
exercise.mistake("Return a tensor, not a list.", f"{REST} → ({REST}).tolist()")
exercise.mistake("& and | have a higher precedence than comparisons: put each comparison in parentheses.",
                 f"{REST} → converted.isfinite() & converted != 0 | values == 0")  # fmt: skip
exercise.mistake("Combine conditions on tensors with & and |: `and` and `or` need a single Boolean.",
                 f"{REST} → converted.isfinite() and (converted != 0 or values == 0)")  # fmt: skip
exercise.mistake("Your code converts to float32 first, where a tiny float64 already becomes 0: check the original values for 0.",
                 "converted = values.to(dtype) → values = values.float(); converted = values.to(dtype)")  # fmt: skip
exercise.mistake("Your code changes `values`, which belongs to the caller.",
                 f"return {REST} → result = {REST}; values.detach()[~result] = 0; return result")  # fmt: skip

# %% wrong: close is good enough
def survives(values, dtype):
    return torch.isclose(values.to(dtype).to(values.dtype), values, rtol=1e-2)

# %% wrong: one by one, of a list
def survives(values, dtype):
    def one(v):
        c = torch.tensor(v, dtype=torch.float64).to(dtype).item()
        return math.isfinite(c) and (c != 0 or v == 0)

    return torch.tensor([one(v) for v in values.tolist()], dtype=torch.bool)

# %% wrong: rows of a matrix
def survives(values, dtype):
    rows = []
    for row in values:
        converted = row.to(dtype)
        rows.append(converted.isfinite() & ((converted != 0) | (row == 0)))
    return torch.stack(rows)

# %% wrong: the sign stays the same
def survives(values, dtype):
    return torch.sign(values.to(dtype)).to(values.dtype) == torch.sign(values)

# %% wrong: beyond the limits by logarithms
def survives(values, dtype):
    info = torch.finfo(dtype)
    low, high = math.log2(info.tiny * info.eps), math.log2(info.max)
    power = values.double().abs().log2()
    return (values == 0) | ((power >= low) & (power <= high))

# %% wrong: converts back before it looks, and the way back overflows (from the statement)
# unseen: only the hidden inputs contain the largest numbers of a dtype
def survives(values: Float[Tensor, "..."], dtype: torch.dtype) -> Bool[Tensor, "..."]:
    there_and_back = values.to(dtype).to(values.dtype)
    lost = (there_and_back == 0) & (values != 0)
    return there_and_back.isfinite() & ~lost

# %% wrong: a list of truth values, which becomes float32 when it is empty (from the statement)
def survives(values: Float[Tensor, "..."], dtype: torch.dtype) -> Bool[Tensor, "..."]:
    after = values.to(dtype)
    answers = []
    for before, now in zip(values.flatten().tolist(), after.flatten().tolist()):
        answers.append(math.isfinite(now) and (now != 0 or before == 0))
    return torch.tensor(answers).reshape(values.shape)

# %% wrong: compares with the largest number instead of rounding (from the statement)
def survives(values: Float[Tensor, "..."], dtype: torch.dtype) -> Bool[Tensor, "..."]:
    size = values.double().abs()
    fits = size <= torch.finfo(dtype).max
    return fits & ((values.to(dtype) != 0) | (values == 0))

# %% right: compares the signs
def survives(values, dtype):
    converted = values.to(dtype)
    return (torch.sign(converted).to(values.dtype) == torch.sign(values)) & (converted.abs() < torch.inf)

# %% right: one by one
def survives(values, dtype):
    def one(v):
        c = torch.tensor(v, dtype=torch.float64).to(dtype).item()
        return math.isfinite(c) and (c != 0 or v == 0)

    return torch.tensor([one(v) for v in values.flatten().tolist()], dtype=torch.bool).reshape(values.shape)

# %% right: the edges, halfway
def survives(values, dtype):
    info = torch.finfo(dtype)
    size = values.double().abs()
    least = info.tiny * info.eps / 2
    most = info.max * (1 + info.eps / (2 * (2 - info.eps)))
    return (size == 0) | ((size > least) & (size < most))

# %% right: the way back
def survives(values, dtype):
    back = values.to(dtype).double()
    gone = torch.logical_or(back.isnan(), back.isinf())
    vanished = torch.logical_and(back == 0, values.double() != 0)
    return torch.logical_not(torch.logical_or(gone, vanished))

# %% right: what is gone is written over
def survives(values, dtype):
    converted = values.detach().clone().to(dtype)
    alive = torch.ones_like(values, dtype=torch.bool)
    alive[converted.isnan() | (converted.abs() == math.inf)] = False
    alive[converted.eq(0) & values.ne(0)] = False
    return alive

# %% right: in numpy
def survives(values, dtype):
    found = values.detach().to(dtype).double().numpy()
    before = values.detach().double().numpy()
    import numpy as np

    return torch.from_numpy(np.asarray(np.isfinite(found) & ~((found == 0) & (before != 0))))

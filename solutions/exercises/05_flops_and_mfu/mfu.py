import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of

exercise = Exercise("Which rate did you achieve, and which peak does the sheet give for dense matrices in this dtype?")

DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.int8)


def promised(student, flops, seconds, sheet, dtype):
    """None, or that a number came; where the sheet has no such dtype, whatever came."""
    import torch

    known = dtype in sheet
    result = student.mfu(flops, seconds, sheet, dtype)
    number = isinstance(result, (int, float, torch.Tensor))
    return {"mfu returns": "a number" if known and number else result}


def sheet_after(student, flops, seconds, sheet, dtype):
    """The sheet afterwards, and for a dtype that it has, whether a number came."""
    import torch

    known = dtype in sheet
    promised = seconds * sheet[dtype][0] if known else flops  # a difference that no rounding hides
    try:
        result = student.mfu(flops, seconds, sheet, dtype)
        more = student.mfu(flops + promised, seconds, sheet, dtype)
    except KeyError:
        if known:
            raise
        result = more = None
    return {
        "sheet afterwards": {str(key): entry for key, entry in sheet.items()},
        "mfu returns a number": isinstance(result, (int, float, torch.Tensor)) if known else None,
        "more FLOPs give a larger result": bool(more > result) if known and None not in (result, more) else None,
    }


@st.composite
def jobs(draw, sparse=None, missing=None):
    """Work on a device. missing: whether the sheet lacks the dtype."""
    every = st.tuples(st.floats(1e12, 9e15), st.booleans())
    sheet = draw(st.dictionaries(any_of(*DTYPES), every, max_size=4))
    dtype = draw(any_of(*DTYPES))
    gone = draw(st.booleans()) if missing is None else missing
    if gone:
        sheet.pop(dtype, None)
    else:
        rate, is_sparse = draw(every)
        sheet[dtype] = (rate, is_sparse if sparse is None else sparse)
    return given(draw(st.floats(1e9, 1e18)), draw(st.floats(1e-3, 1e3)), sheet, dtype)


printed = {torch.float32: (67e12, False), torch.bfloat16: (1979e12, True)}
small = {torch.float32: (4.0, False), torch.bfloat16: (7.0, True), torch.float16: (8.0, False)}
exercise.requirement(
    "the utilization is the achieved FLOP/s divided by the peak FLOP/s of the given dtype",
    points=0.25,
    parts=["value"],
    visible=[given(6.0, 5.0, small, torch.float32), given(50.0, 5.0, small, torch.float16),
             given(0.0, 5.0, small, torch.float32), given(1.0, 7.0, small, torch.float32)],
    edges={
        "more than promised": given(2e15, 1.0, printed, torch.float32),
        "nothing done": given(0, 1.0, printed, torch.float32),
        "exactly what was promised": given(67e12, 1.0, printed, torch.float32),
        "as on a real sheet": given(4e13, 2.0, printed, torch.float32),
        "a tiny share": given(1.0, 1e6, printed, torch.float32),
        "whole numbers": given(7, 2, {torch.float32: (3, False)}, torch.float32),
        "a sheet of one": given(1e12, 0.25, {torch.bfloat16: (3e12, False)}, torch.bfloat16),
    },
    domain=jobs(sparse=False, missing=False),
)
exercise.requirement(
    "a rate that holds only for 2:4 sparse matrices is halved",
    points=0.25,
    parts=["value"],
    visible=[given(7.0, 5.0, small, torch.bfloat16), given(3.0, 0.5, {torch.bfloat16: (24.0, True)}, torch.bfloat16)],
    edges={
        "more than promised": given(2e15, 1.0, printed, torch.bfloat16),
        "nothing done": given(0, 1.0, printed, torch.bfloat16),
        "as on a real sheet": given(8e14, 2.0, printed, torch.bfloat16),
        "an odd rate": given(5, 2, {torch.bfloat16: (7, True)}, torch.bfloat16),
        "whole numbers": given(7, 2, {torch.float32: (3, True)}, torch.float32),
    },
    domain=jobs(sparse=True, missing=False),
)
exercise.requirement(
    "the result is None if the sheet has no rate for the given dtype",
    points=0.25,
    probe=promised,
    parts=["value"],
    visible=[
        given(1e12, 1.0, printed, torch.float16, says="a sheet with float32 and bfloat16; mfu(1e12, 1.0, sheet, torch.float16)"),
        given(1e12, 1.0, printed, torch.float32, says="a sheet with float32 and bfloat16; mfu(1e12, 1.0, sheet, torch.float32)"),
    ],
    edges={
        "an empty sheet": given(1e12, 1.0, {}, torch.float32),
        "only another one of 16 bits": given(1e12, 1.0, {torch.bfloat16: (1e15, False)}, torch.float16),
        "only the other one of 16 bits": given(1e12, 1.0, {torch.float16: (1e15, False)}, torch.bfloat16),
        "only a wider one": given(1e12, 1.0, {torch.float32: (1e14, False)}, torch.bfloat16),
        "no work, and no promise": given(0, 1.0, printed, torch.int8),
        "no work, but a promise": given(0, 1.0, printed, torch.bfloat16),
    },
    domain=jobs(),
    hint="Check whether the sheet has the dtype before you look up its rate.",
)
exercise.requirement(
    "the sheet doesn't change",
    points=0.25,
    probe=sheet_after,
    parts=["value"],
    visible=[
        given(1e12, 1.0, printed, torch.bfloat16, says="mfu(1e12, 1.0, sheet, torch.bfloat16), where the "
                                                       "sheet's rate for bfloat16 is sparse"),
        given(1e12, 1.0, printed, torch.float16, says="mfu(1e12, 1.0, sheet, torch.float16), where the sheet "
                                                      "has no rate for float16"),
    ],
    edges={"empty": given(1e12, 1.0, {}, torch.float16), "dense": given(1e12, 1.0, printed, torch.float32)},
    domain=jobs(),
    hint="Look up the rate without writing anything to the sheet, not even a default value.",
)

unknown = "The sheet has no rate for this dtype: return None, not a number."
another = "Your code uses the rate of a different dtype."
theirs = "Your code changes the sheet, which belongs to the caller."
exercise.mistake("Your code divides by the sparse rate; for dense matrices the peak is half of that.", "rate / 2 if sparse else rate → rate")
exercise.mistake("Your code halves a rate that's already dense.", "rate / 2 if sparse else rate → rate / 2")
exercise.mistake("Your code halves the dense rates: halve the sparse ones instead.", "rate / 2 if sparse else rate → rate if sparse else rate / 2")
exercise.mistake("Your code doubles the sparse rate; for dense matrices the peak is half of it.", "rate / 2 if → rate * 2 if")
exercise.mistake("Your result is in percent; the exercise asks for a fraction.", "flops / seconds / peak → 100 * flops / seconds / peak")
exercise.mistake("Your quotient is upside down: divide the achieved rate by the peak.", "flops / seconds / peak → peak / (flops / seconds)")
exercise.mistake("The seconds are missing: flops is a count, but the peak is a rate.", "flops / seconds / peak → flops / peak")
exercise.mistake(
    "Your code multiplies by the seconds; a rate is a count divided by a time.", "flops / seconds / peak → flops * seconds / peak"
)
exercise.mistake("Your result is the achieved rate; divide it by the peak.", "flops / seconds / peak → flops / seconds")
exercise.mistake("Don't limit the result to 1: a value above 1 tells you that some number is wrong.",
                 "flops / seconds / peak → min(1.0, flops / seconds / peak)")  # fmt: skip
exercise.mistake("Don't round the result: that throws away digits that you measured.", "flops / seconds / peak → round(flops / seconds / peak, 1)")
exercise.mistake(another, "sheet[dtype] → sheet[torch.float32]")
exercise.mistake(unknown, "return None → return 0.0")
exercise.mistake(unknown, "return None → return 1.0")
exercise.mistake("Check whether the sheet has the dtype before you look up its rate.", "if dtype not in sheet → if False")
exercise.mistake(theirs, "peak = → sheet[dtype] = (rate / 2, False) if sparse else (rate, False); peak =")
exercise.mistake(theirs, "if dtype not in sheet → if sheet.setdefault(dtype, None) is None")
exercise.mistake(theirs, "sheet[dtype] → sheet.pop(dtype)")

# %% mistake: a dtype that the sheet has
# says: The rate of another dtype doesn't apply to this one: return None.
def mfu(flops, seconds, sheet, dtype):
    rate, sparse = sheet.get(dtype) or next(iter(sheet.values()))
    return flops / seconds / (rate / 2 if sparse else rate)

# %% mistake: a rate of 1 where there is none
# says: The sheet has no rate for this dtype: return None, not a number.
def mfu(flops, seconds, sheet, dtype):
    rate, sparse = sheet.get(dtype, (1.0, False))
    return flops / seconds / (rate / 2 if sparse else rate)

# %% wrong: always float32
def mfu(flops, seconds, sheet, dtype):
    rate, sparse = sheet[torch.float32]
    return flops / seconds / (rate / 2 if sparse else rate)

# %% wrong: None for no work
def mfu(flops, seconds, sheet, dtype):
    if dtype not in sheet or not flops:
        return None
    rate, sparse = sheet[dtype]
    return flops / seconds / (rate / 2 if sparse else rate)

# %% wrong: NaN where there is none
def mfu(flops, seconds, sheet, dtype):
    rate, sparse = sheet.get(dtype, (math.nan, False))
    return flops / seconds / (rate / 2 if sparse else rate)

# %% wrong: half of a whole number
def mfu(flops, seconds, sheet, dtype):
    if dtype not in sheet:
        return None
    rate, sparse = sheet[dtype]
    return flops / seconds / (rate // 2 if sparse else rate)

# %% wrong: rounded to four digits behind the point (from the statement)
def mfu(
    flops: float,
    seconds: float,
    sheet: dict[torch.dtype, tuple[float, bool]],
    dtype: torch.dtype,
) -> float | None:
    if dtype not in sheet:
        return None
    peak, sparse = sheet[dtype]
    return round(flops / seconds / (peak * 0.5 if sparse else peak), 4)

# %% wrong: no FLOPs at all give None, by `or` (from the statement)
def mfu(
    flops: float,
    seconds: float,
    sheet: dict[torch.dtype, tuple[float, bool]],
    dtype: torch.dtype,
) -> float | None:
    rate, sparse = sheet.get(dtype, (math.inf, False))
    dense = rate / 2 if sparse else rate
    return flops / (seconds * dense) or None

# %% wrong: the sparse rate is halved by an integer division (from the statement)
def mfu(
    flops: float,
    seconds: float,
    sheet: dict[torch.dtype, tuple[float, bool]],
    dtype: torch.dtype,
) -> float | None:
    if dtype not in sheet:
        return None
    rate, sparse = sheet[dtype]
    if sparse:
        rate = rate // 2
    return flops / seconds / rate

# %% wrong: bfloat16 is as fast as float16 (from the statement)
# unseen: no visible case has a sheet with only float16
def mfu(flops, seconds, sheet, dtype):
    if dtype is torch.bfloat16 and dtype not in sheet:
        dtype = torch.float16
    if dtype not in sheet:
        return None
    rate, sparse = sheet[dtype]
    return flops / seconds / (rate / 2 if sparse else rate)

# %% right: by the seconds that it should have taken
def mfu(flops, seconds, sheet, dtype):
    for known, (rate, sparse) in sheet.items():
        if known == dtype:
            dense = rate / 2 if sparse else rate
            return (flops / dense) / seconds
    return None

# %% right: get and arithmetic with a truth value
def mfu(flops, seconds, sheet, dtype):
    entry = sheet.get(dtype)
    return entry and flops * (1 + entry[1]) / (seconds * entry[0])

# %% right: an exception, and a tensor without dimensions
def mfu(flops, seconds, sheet, dtype):
    try:
        rate, sparse = sheet[dtype]
    except KeyError:
        return None
    return torch.tensor(flops, dtype=torch.float64) / (seconds * rate * (0.5 if sparse else 1.0))


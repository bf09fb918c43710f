from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given

exercise = Exercise("Extract the three fields first. Then decide which of the four cases you have.")


def zero(student, bits, exponent_bits, mantissa_bits, finite=False):
    """What comes, as a text: only there do 0.0 and -0.0 differ."""
    found = student.decode(bits, exponent_bits, mantissa_bits, finite)
    return str(float(found)) if isinstance(found, (int, float)) and not isinstance(found, bool) else found


def with_tensors(student, bits, exponent_bits, mantissa_bits, finite=False):
    """The number, and how often PyTorch made or changed a tensor on the way."""
    from torch.utils._python_dispatch import TorchDispatchMode

    calls = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            calls.append(function)
            return function(*args, **(kwargs or {}))

    with Watch():
        found = student.decode(bits, exponent_bits, mantissa_bits, finite)
    return {"the number": found, "operations on tensors": len(calls)}


def pattern(text, finite=False):
    """The pattern that is written as sign, exponent and mantissa: "0 01111 0000000000"."""
    sign, exponent, mantissa = text.split()
    more = ", finite=True" if finite else ""
    return given(int(sign + exponent + mantissa, 2), len(exponent), len(mantissa), **({"finite": True} if finite else {}),
                 says=f"decode(0b{text.replace(' ', '_')}, {len(exponent)}, {len(mantissa)}{more})")  # fmt: skip


def as_text(text, finite=False):
    case = pattern(text, finite)
    return given(*case.args, **case.kwargs, says=f"str({case.says})")


@st.composite
def patterns(draw, field, finite=False, mantissa=0):
    """Patterns of any format. `field`: "normal", 0 or "highest"; `mantissa`: the least that is drawn."""
    if finite is None:
        finite = draw(st.booleans())
    exponent_bits, mantissa_bits = draw(st.integers(2, 10 if finite else 11)), draw(st.integers(1, 52))
    if draw(st.booleans()):
        exponent_bits, mantissa_bits = draw(st.sampled_from([(5, 10), (8, 7), (8, 23), (5, 2), (4, 3), (10, 52)]))
    highest = 2**exponent_bits - 1
    exponent = {"normal": draw(st.integers(1, highest - 1)), 0: 0, "highest": highest}[field]
    ones = 2**mantissa_bits - 1
    fraction = draw(st.integers(mantissa, ones) | st.sampled_from([mantissa, ones, max(mantissa, ones - 1)]))
    bits = (draw(st.integers(0, 1)) << exponent_bits | exponent) << mantissa_bits | fraction
    return given(bits, exponent_bits, mantissa_bits, **({"finite": True} if finite else {}))


exercise.requirement(
    "normal numbers are exact to the last bit, in any format up to float64",
    points=0.5,
    tolerance=0,
    visible=[
        pattern("0 01111 0000000000"),
        pattern("1 10000 1000000000"),
        pattern("0 0001 101"),
        pattern(f"1 {1:011b} {2**52 - 1:052b}"),
    ],
    edges={
        "the largest float64": pattern(f"0 {2046:011b} {2**52 - 1:052b}"),
        "the smallest normal float64": pattern(f"0 {1:011b} {0:052b}"),
        "a negative float64": pattern(f"1 {1:011b} {2**52 - 1:052b}"),
        "the smallest format": pattern("0 01 1"),
        "the smallest format, negative": pattern("1 10 1"),
        "one bit of mantissa": pattern("1 01111111110 1"),
        "two bits of exponent": pattern(f"0 10 {2**51 + 1:052b}"),
        "finite, and an ordinary exponent": pattern("1 1110 111", finite=True),
        "finite, all ones but in the exponent": pattern("0 10 11", finite=True),
        "E5M2": pattern("1 11110 11"),
        "more mantissa than exponent needs": pattern(f"0 011 {2**40 + 1:048b}"),
    },
    domain=patterns("normal", finite=None),
    hint="Section 1 has the formula for a normal number. Mind the rounding: / returns a float, while >> and // are exact.",
)
exercise.requirement(
    "subnormal numbers are exact, in any format up to float64",
    points=0.75,
    tolerance=0,
    visible=[pattern("0 00000 1000000000"), pattern("0 0000 001"), pattern("1 00000 11"), pattern("0 0000 111", finite=True),
             pattern(f"0 {0:011b} {3:052b}")],
    edges={
        "the smallest float64": pattern(f"0 {0:011b} {1:052b}"),
        "the largest subnormal float64": pattern(f"1 {0:011b} {2**52 - 1:052b}"),
        "the smallest format": pattern("0 00 1"),
        "two bits of exponent, finite": pattern("1 00 11111", finite=True),
        "float32": pattern(f"0 {0:08b} {1:023b}"),
        "a field of 0, as large as it gets": pattern("1 0000 111"),
    },
    domain=patterns(0, finite=None, mantissa=1),
)
exercise.requirement(
    "both zeros have the right sign",
    points=0.25,
    probe=zero,
    visible=[as_text("1 00000 0000000000"), as_text("0 00000 0000000000"), as_text("1 0000 000", finite=True)],
    edges={
        "+0 of E4M3": as_text("0 0000 000", finite=True),
        "-0 of E5M2": as_text("1 00000 00"),
        "-0 of the smallest format": as_text("1 00 0"),
        "+0 of the smallest format": as_text("0 00 0"),
        "-0 of float64": as_text(f"1 {0:011b} {0:052b}"),
        "+0 of float64": as_text(f"0 {0:011b} {0:052b}"),
    },
    domain=st.builds(
        lambda e, m, sign: given(sign << (e + m), e, m), st.integers(2, 11), st.integers(1, 52), st.integers(0, 1)
    ),
    hint="A zero whose sign bit is set is -0.0. In Python, -1 * 0 is 0, but -1.0 * 0 is -0.0.",
)
exercise.requirement(
    "if all exponent bits are set, the result is an infinity with the right sign, or NaN",
    points=0.75,
    visible=[
        pattern("0 1111 000"), pattern("1 11111 0000000000"), pattern("0 11111 0000000001"), pattern("0 11111 1111111111"),
    ],
    edges={
        "a negative NaN": pattern("1 11111 0000000001"),
        "float16's infinity": pattern("0 11111 0000000000"),
        "all ones": pattern("1 11111 1111111111"),
        "a NaN with its upper bit set": pattern("0 11111 1000000000"),
        "all ones in E4M3's layout, not finite": pattern("0 1111 111"),
        "just below all ones": pattern("0 1111 110"),
        "infinity of the smallest format": pattern("1 11 0"),
        "NaN of the smallest format": pattern("0 11 1"),
        "a NaN of float64, lowest bit": pattern(f"0 {2047:011b} {1:052b}"),
        "a NaN of float64, all ones": pattern(f"0 {2047:011b} {2**52 - 1:052b}"),
        "minus infinity of float64": pattern(f"1 {2047:011b} {0:052b}"),
    },
    domain=patterns("highest"),
    hint="If all exponent bits are set, the pattern means infinity or NaN. Which of the two is it if the mantissa is 0?",
)  # fmt: skip
exercise.requirement(
    "with finite=True the highest exponent is an ordinary one, and a pattern is NaN only if all bits after the "
    "sign bit are set",
    points=0.5,
    tolerance=0,
    visible=[pattern("0 1111 110", finite=True), pattern("0 1111 000", finite=True), pattern("1 1111 111", finite=True),
             pattern("1 11 0", finite=True), pattern("1 111 11", finite=True)],
    edges={
        "NaN, positive": pattern("0 1111 111", finite=True),
        "one mantissa bit, the NaN": pattern("0 11 1", finite=True),
        "one mantissa bit, positive": pattern("0 11 0", finite=True),
        "a half of the mantissa": pattern("1 1111 100", finite=True),
        "the layout of E5M2, all ones": pattern("0 11111 11", finite=True),
        "the layout of E5M2, below": pattern("0 11111 10", finite=True),
        "the largest": pattern(f"0 {1023:010b} {2**52 - 2:052b}", finite=True),
        "the lowest bit of mantissa alone": pattern("0 11111 0000000001", finite=True),
    },
    domain=patterns("highest", finite=True),
    hint="With finite=True there's no infinity, and most patterns with the highest exponent are ordinary numbers. Which one isn't?",
)  # fmt: skip
exercise.requirement(
    "the function uses integers and Python floats, and doesn't make a tensor",
    points=0.25,
    probe=with_tensors,
    tolerance=0,
    visible=[pattern("0 01111 0000000000"), pattern("0 0111 100", finite=True)],
    edges={
        "bfloat16": pattern("0 01111111 0000001"),
        "E5M2": pattern("0 01111 01"),
        "float32": pattern(f"0 {127:08b} {5:023b}"),
        "float64": pattern(f"0 {1023:011b} {1:052b}"),
    },
    domain=st.builds(  # numbers from 1 to 2: what else may be wrong is for the other requirements
        lambda e, m, fraction: given((2 ** (e - 1) - 1) << m | int(fraction * 2**m), e, m),
        st.integers(3, 11), st.integers(1, 52), st.floats(0, 1, exclude_max=True),
    ),
    hint="Use integer operations such as >>, % and //, and don't make a tensor.",
)  # fmt: skip

no_one = "The implicit one is missing: every normal number has it."
bias_off = "Your bias is wrong: with five exponent bits it must be 15."
subnormal = "An exponent field of 0 means zero or a subnormal number: neither has an implicit one."
no_sign = "Your code loses the sign: if the highest bit is set, the number is negative."
exercise.mistake(no_one, "(2**mantissa_bits + mantissa) → mantissa")
exercise.mistake(subnormal, "if exponent == 0: → if False:")
exercise.mistake(subnormal, "if exponent == 0: → if exponent == 0 and mantissa == 0:")
exercise.mistake("Your subnormal numbers have the exponent 0 - bias; it must be the same as for an exponent field of 1.",
                 "2.0 ** (1 - bias - mantissa_bits) → 2.0 ** (0 - bias - mantissa_bits)")  # fmt: skip
exercise.mistake("An exponent field of 1 is an ordinary exponent: only a field of 0 means zero or a subnormal number.",
                 "if exponent == 0: → if exponent <= 1:")  # fmt: skip
exercise.mistake(bias_off, "2 ** (exponent_bits - 1) - 1 → 2 ** (exponent_bits - 1)")
exercise.mistake(bias_off, "2 ** (exponent_bits - 1) - 1 → 2**exponent_bits - 1")
exercise.mistake("The bias depends on the number of exponent bits; 15 is the bias of float16.",
                 "2 ** (exponent_bits - 1) - 1 → 15")  # fmt: skip
exercise.mistake(no_sign, "-1.0 if bits >> (exponent_bits + mantissa_bits) else 1.0 → 1.0")
exercise.mistake("The sign is reversed: if the sign bit is set, the number is negative.",
                 "-1.0 if bits >> (exponent_bits + mantissa_bits) else 1.0 → 1.0 if bits >> (exponent_bits + mantissa_bits) else -1.0")  # fmt: skip
exercise.mistake("Your code loses the sign of infinity: there's a negative infinity, too.", "sign * math.inf → math.inf")
exercise.mistake("Your code treats the highest exponent as an ordinary one: without finite=True it's reserved for infinity and NaN.",
                 "if not finite: → if False:")  # fmt: skip
exercise.mistake("Your code returns infinity for NaN: if all exponent bits are set, any mantissa other than 0 means NaN.",
                 "math.nan if mantissa else sign * math.inf → sign * math.inf")  # fmt: skip
exercise.mistake("Your code returns NaN for infinity: if all exponent bits are set, a mantissa of 0 means infinity.",
                 "math.nan if mantissa else sign * math.inf → math.nan")  # fmt: skip
exercise.mistake("If all exponent bits are set, any mantissa other than 0 means NaN, not only a mantissa of all ones.",
                 "math.nan if mantissa else sign * math.inf → math.nan if mantissa == 2**mantissa_bits - 1 else sign * math.inf")  # fmt: skip
one_nan = (
    "With finite=True the highest exponent is an ordinary one; a pattern is NaN only if all bits after the "
    "sign bit are set."
)
exercise.mistake(one_nan, "if finite and mantissa → if mantissa", "if not finite: → if True:")
exercise.mistake(one_nan, "if finite and mantissa == 2**mantissa_bits - 1: → if finite and mantissa:")
exercise.mistake("With finite=True there's still a NaN: if all bits after the sign bit are set, the result is NaN.",
                 "if finite and mantissa == 2**mantissa_bits - 1: → if False:")  # fmt: skip
exercise.mistake("With finite=True there's no infinity: if all bits after the sign bit are set, the result is NaN.",
                 "2**mantissa_bits - 1:\n            return math.nan → 2**mantissa_bits - 1:\n            return sign * math.inf")  # fmt: skip
exercise.mistake("Your code guesses from the layout whether a format has an infinity: use the argument `finite`.",
                 "if finite and mantissa → if (finite := (exponent_bits, mantissa_bits) == (4, 3)) and mantissa")  # fmt: skip
exercise.mistake("Your code loses the sign of zero: in Python, -1 * 0 is 0, but -1.0 * 0 is -0.0.", "-1.0 if bits → -1 if bits",
                 "else 1.0 → else 1")  # fmt: skip
exercise.mistake("The sign bit got into your exponent field: keep only the exponent bits.",
                 "(bits >> mantissa_bits) % 2**exponent_bits → bits >> mantissa_bits")  # fmt: skip
exercise.mistake("Your code divides the mantissa by the wrong number: how many different mantissas are there?",
                 "(2**mantissa_bits + mantissa) * 2.0 ** (exponent - bias - mantissa_bits) → (1 + mantissa / (2**mantissa_bits - 1)) * 2.0 ** (exponent - bias)")  # fmt: skip
exercise.mistake("Your code divides integers with /, which returns a rounded float: use >> or //, which are exact.",
                 "bits >> (exponent_bits + mantissa_bits) → int(bits / 2 ** (exponent_bits + mantissa_bits))",
                 "(bits >> mantissa_bits) → int(bits / 2**mantissa_bits)")  # fmt: skip

# %% mistake: negative numbers as in whole numbers
# says: A float isn't stored in two's complement: apart from the sign bit, x and -x have the same bits.
def decode(bits, exponent_bits, mantissa_bits, finite=False):
    width = 1 + exponent_bits + mantissa_bits
    if bits >= 2 ** (width - 1):
        return -decode(2**width - bits, exponent_bits, mantissa_bits, finite)
    exponent, mantissa = divmod(bits, 2**mantissa_bits)
    bias = 2 ** (exponent_bits - 1) - 1
    if exponent == 0:
        return mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return (1 + mantissa / 2**mantissa_bits) * 2.0 ** (exponent - bias)

# %% mistake: asks PyTorch for the formats that it knows
# says: Don't make a tensor: use integers and Python floats.
def decode(bits, exponent_bits, mantissa_bits, finite=False):
    known = {(5, 10): torch.float16, (8, 7): torch.bfloat16, (5, 2): torch.float8_e5m2}
    known[4, 3] = torch.float8_e4m3fn if finite else None
    dtype = known.get((exponent_bits, mantissa_bits))
    if dtype and not (finite and exponent_bits > 4):
        whole = torch.int16 if dtype.itemsize == 2 else torch.uint8
        return torch.tensor(bits, dtype=torch.int32).to(whole).view(dtype).double().item()
    sign = -1.0 if bits >> (exponent_bits + mantissa_bits) else 1.0
    exponent = (bits >> mantissa_bits) % 2**exponent_bits
    mantissa = bits % 2**mantissa_bits
    bias = 2 ** (exponent_bits - 1) - 1
    if exponent == 2**exponent_bits - 1:
        if finite and mantissa == 2**mantissa_bits - 1:
            return math.nan
        if not finite:
            return math.nan if mantissa else sign * math.inf
    if exponent == 0:
        return sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return sign * (2**mantissa_bits + mantissa) * 2.0 ** (exponent - bias - mantissa_bits)

# %% wrong: no special cases at all
def decode(bits, exponent_bits, mantissa_bits, finite=False):
    sign = -1.0 if bits >> (exponent_bits + mantissa_bits) else 1.0
    exponent = (bits >> mantissa_bits) % 2**exponent_bits
    mantissa = bits % 2**mantissa_bits
    bias = 2 ** (exponent_bits - 1) - 1
    return sign * (1 + mantissa / 2**mantissa_bits) * 2.0 ** (exponent - bias)

# %% wrong: the fraction in float32
def decode(bits, exponent_bits, mantissa_bits, finite=False):
    sign = -1.0 if bits >> (exponent_bits + mantissa_bits) else 1.0
    exponent = (bits >> mantissa_bits) % 2**exponent_bits
    mantissa = bits % 2**mantissa_bits
    bias = 2 ** (exponent_bits - 1) - 1
    top = 2**exponent_bits - 1
    if exponent == top and finite and mantissa == 2**mantissa_bits - 1:
        return math.nan
    if exponent == top and not finite:
        return math.nan if mantissa else sign * math.inf
    import struct

    fraction = struct.unpack("f", struct.pack("f", mantissa / 2**mantissa_bits))[0]
    return sign * ((exponent > 0) + fraction) * 2.0 ** (max(exponent, 1) - bias)

# %% wrong: zero is dealt with first
def decode(bits, exponent_bits, mantissa_bits, finite=False):
    sign = -1.0 if bits >> (exponent_bits + mantissa_bits) else 1.0
    exponent = (bits >> mantissa_bits) % 2**exponent_bits
    mantissa = bits % 2**mantissa_bits
    if not exponent and not mantissa:
        return 0.0
    bias = 2 ** (exponent_bits - 1) - 1
    top = 2**exponent_bits - 1
    if exponent == top and finite and mantissa == 2**mantissa_bits - 1:
        return math.nan
    if exponent == top and not finite:
        return math.nan if mantissa else sign * math.inf
    return sign * ((exponent > 0) + mantissa / 2**mantissa_bits) * 2.0 ** (max(exponent, 1) - bias)

# %% wrong: the NaN of a finite format is recognized by the mantissa of E4M3, 7 (from the statement)
def decode(bits: int, exponent_bits: int, mantissa_bits: int, finite: bool = False) -> float:
    sign = bits >> (exponent_bits + mantissa_bits)
    exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1)
    mantissa = bits & ((1 << mantissa_bits) - 1)
    bias = (1 << (exponent_bits - 1)) - 1
    if exponent == (1 << exponent_bits) - 1:
        if finite:
            if mantissa == 0b111:
                return float("nan")
        elif mantissa == 0:
            return float("-inf") if sign else float("inf")
        else:
            return float("nan")
    if exponent == 0:
        value = math.ldexp(mantissa, 1 - bias - mantissa_bits)
    else:
        value = math.ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits)
    return -value if sign else value

# %% wrong: divides by a float power of two, which overflows for float64's subnormals (from the statement)
def decode(bits: int, exponent_bits: int, mantissa_bits: int, finite: bool = False) -> float:
    sign = -1.0 if bits >> (exponent_bits + mantissa_bits) else 1.0
    exponent = (bits >> mantissa_bits) % 2**exponent_bits
    mantissa = bits % 2**mantissa_bits
    top = 2**exponent_bits - 1
    bias = 2 ** (exponent_bits - 1) - 1
    if exponent == top and not finite:
        return sign * math.inf if mantissa == 0 else math.nan
    if exponent == top and mantissa == 2**mantissa_bits - 1:
        return math.nan
    if exponent == 0:
        return sign * mantissa / 2.0 ** (bias - 1 + mantissa_bits)
    return sign * (1 + mantissa / 2**mantissa_bits) * 2.0 ** (exponent - bias)

# %% wrong: the sign of a zero is lost, because everything is a whole number until the end (from the statement)
def decode(bits: int, exponent_bits: int, mantissa_bits: int, finite: bool = False) -> float:
    sign = (-1) ** (bits >> (exponent_bits + mantissa_bits))
    exponent = (bits >> mantissa_bits) % 2**exponent_bits
    mantissa = bits % 2**mantissa_bits
    bias = 2 ** (exponent_bits - 1) - 1
    if exponent == 2**exponent_bits - 1 and not finite:
        return sign * math.inf if mantissa == 0 else math.nan
    if exponent == 2**exponent_bits - 1 and mantissa == 2**mantissa_bits - 1:
        return math.nan
    if exponent == 0:
        exponent = 1
    else:
        mantissa += 2**mantissa_bits
    return float(sign * mantissa * 2.0 ** (exponent - bias - mantissa_bits))

# %% right: as a text of digits
def decode(bits, exponent_bits, mantissa_bits, finite=False):
    text = format(bits, f"0{1 + exponent_bits + mantissa_bits}b")
    sign, exponent, mantissa = text[0], text[1 : 1 + exponent_bits], text[1 + exponent_bits :]
    if "0" not in exponent:
        if finite and "0" not in mantissa:
            return float("nan")
        if not finite:
            return float("nan") if "1" in mantissa else float("-inf" if sign == "1" else "inf")
    lead = "1" if "1" in exponent else "0"
    power = max(int(exponent, 2), 1) - (2 ** (exponent_bits - 1) - 1) - mantissa_bits
    return math.copysign(math.ldexp(int(lead + mantissa, 2), power), -1 if sign == "1" else 1)

# %% right: masks, and fractions
def decode(bits, exponent_bits, mantissa_bits, finite=False):
    from fractions import Fraction

    m = bits & ((1 << mantissa_bits) - 1)
    e = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1)
    s = bits >> mantissa_bits + exponent_bits
    full = e == (1 << exponent_bits) - 1
    bias = (1 << exponent_bits - 1) - 1
    if full and finite and m == (1 << mantissa_bits) - 1:
        value = math.nan
    elif full and not finite:
        value = math.nan if m else math.inf
    else:
        value = float((Fraction(m, 1 << mantissa_bits) + (e > 0)) * Fraction(2) ** (max(e, 1) - bias))
    return -value if s else value

# %% right: the fraction as a float
def decode(bits, exponent_bits, mantissa_bits, finite=False):
    rest, mantissa = divmod(bits, 2**mantissa_bits)
    negative, exponent = divmod(rest, 2**exponent_bits)
    sign = -1.0 if negative else 1.0
    bias = 2 ** (exponent_bits - 1) - 1
    last = 2**exponent_bits - 1
    if finite:
        if (exponent, mantissa) == (last, 2**mantissa_bits - 1):
            return float("nan")
    elif exponent == last:
        return sign * float("inf") if mantissa == 0 else float("nan")
    fraction = mantissa / 2**mantissa_bits
    if exponent == 0:
        return sign * fraction * 2.0 ** (1 - bias)
    return sign * (1 + fraction) * 2.0 ** (exponent - bias)

# %% right: widened to the bits of a float64
def decode(bits, exponent_bits, mantissa_bits, finite=False):
    import struct

    m, e = bits % 2**mantissa_bits, (bits >> mantissa_bits) % 2**exponent_bits
    s, bias = bits >> (exponent_bits + mantissa_bits), 2 ** (exponent_bits - 1) - 1
    full, ones = e == 2**exponent_bits - 1, m == 2**mantissa_bits - 1
    if full and finite and ones:
        return float("nan")
    if full and not finite:
        e = 2047
    elif e:
        e += 1023 - bias
    else:
        return math.copysign(math.ldexp(m, 1 - bias - mantissa_bits), -s or 1)
    whole = s << 63 | e << 52 | m << (52 - mantissa_bits)
    return struct.unpack(">d", whole.to_bytes(8, "big"))[0]

# %% equivalent: finite and mantissa == 2 ** mantissa_bits - 1 → mantissa == 2 ** mantissa_bits - 1
# why: a pattern of all ones is NaN without finite, too

from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given

exercise = Exercise("Write down the bit pattern of each number, and decode it by hand. The results must be exact to the last bit.")

NAMES = ("max", "smallest_normal", "smallest_subnormal", "eps")


def of(exponent_bits, mantissa_bits, finite=False):
    return given(exponent_bits, mantissa_bits, **({"finite": True} if finite else {}))


def only(name):
    """The rules that look at one of the four numbers."""
    return dict.fromkeys(set(NAMES) - {name}, "ignored")


mantissas = st.integers(1, 52)
formats = st.builds(of, st.integers(2, 11), mantissas)
finite = st.builds(of, st.integers(2, 10), mantissas, st.just(True))
EDGES = {
    "bfloat16": of(8, 7),
    "float32": of(8, 23),
    "E5M2": of(5, 2),
    "E4M3's layout, not finite": of(4, 3),
    "the smallest format": of(2, 1),
    "two exponent bits, 52 of mantissa": of(2, 52),
    "eleven exponent bits, one of mantissa": of(11, 1),
}
FINITE = {
    "E5M2's layout": of(5, 2, True),
    "the smallest format": of(2, 1, True),
    "one bit of mantissa": of(10, 1, True),
    "ten exponent bits": of(10, 52, True),
    "two exponent bits": of(2, 5, True),
    "E3M2": of(3, 2, True),
    "float16's layout": of(5, 10, True),
}
BOTH = EDGES | {f"finite, {name}": case for name, case in FINITE.items()}

exercise.requirement(
    '"max" is the largest finite number',
    points=0.5,
    tolerance=0,
    rules=only("max"),
    visible=[of(5, 10), of(4, 3), of(11, 52)],
    edges=EDGES,
    domain=formats,
    hint="The highest exponent is reserved for infinity and NaN, and the largest mantissa is all ones. Don't compute 2.0**1024 along the way.",
)
exercise.requirement(
    "with finite=True, \"max\" follows the rules of E4M3: no infinity, and NaN only if all bits after the sign "
    "bit are set",
    points=0.5,
    tolerance=0,
    rules=only("max"),
    visible=[of(4, 3, True), of(5, 2, True), of(3, 1, True)],
    edges=FINITE,
    domain=finite,
    hint="With finite=True the highest exponent is an ordinary one, and it means NaN only if the mantissa is all ones.",
)
exercise.requirement(
    '"smallest_normal" is the smallest positive number with an implicit one',
    points=0.25,
    tolerance=0,
    rules=only("smallest_normal"),
    visible=[of(5, 10), of(4, 3, True), of(2, 1)],
    edges={"float64": of(11, 52)} | BOTH,
    domain=formats | finite,
    hint="A normal number has an exponent field of at least 1.",
)
exercise.requirement(
    '"smallest_subnormal" is the smallest positive number of all',
    points=0.5,
    tolerance=0,
    rules=only("smallest_subnormal"),
    visible=[of(5, 10), of(4, 3, True), of(11, 52)],
    edges=BOTH,
    domain=formats | finite,
    hint="Below the smallest normal number are the subnormal numbers, which are evenly spaced.",
)
exercise.requirement(
    '"eps" is the distance from 1 to the next larger number',
    points=0.25,
    tolerance=0,
    rules=only("eps"),
    visible=[of(5, 10), of(4, 3, True)],
    edges={"float64": of(11, 52)} | BOTH,
    domain=formats | finite,
    hint="Write down the pattern of 1 and the next pattern: eps is the distance between the two numbers.",
)

above_zero = "Your smallest_subnormal is a normal number; subnormal numbers are smaller still."
exercise.mistake("The highest exponent is reserved for infinity and NaN: the largest finite number has the next lower exponent.",
                 "(2 - eps) * 2.0**bias → (2 - eps) * (2.0 ** (bias + 1) if bias < 1000 else 0)")  # fmt: skip
exercise.mistake("Your max is a power of two and too large: the largest number is just below it, with a mantissa of all ones.",
                 "(2 - eps) * 2.0**bias → 2 * 2.0**bias if bias < 1000 else 0.0")  # fmt: skip
exercise.mistake("Your max has a mantissa of 0; the largest number has a mantissa of all ones.",
                 "(2 - eps) * 2.0**bias → 2.0**bias")  # fmt: skip
exercise.mistake("Your max lacks the implicit one, which every normal number has.",
                 "(2 - eps) * 2.0**bias → (1 - eps) * 2.0**bias")  # fmt: skip
exercise.mistake("For float64 your code computes 2.0**1024, which is too large for a float: keep the intermediate results smaller.",
                 "(2 - eps) * 2.0**bias → (1 - eps / 2) * 2.0 ** (bias + 1)")  # fmt: skip
one_nan = "With finite=True the highest exponent is an ordinary one, and it means NaN only if the mantissa is all ones."
exercise.mistake(one_nan, "2 - 2 * eps → 2 - eps", "(bias + 1) → bias")
exercise.mistake("Your max belongs to the pattern that is NaN with finite=True: the largest number has the pattern before it.",
                 "2 - 2 * eps → 2 - eps")  # fmt: skip
exercise.mistake("With finite=True the highest exponent is an ordinary one: your max has a lower exponent.", "(bias + 1) → bias",
                 together_with=["bias = 2 ** (exponent_bits - 1) - 1 → bias = min(2 ** (exponent_bits - 1), 1022)"])  # fmt: skip
exercise.mistake("Your smallest_normal is too small: a normal number has an exponent field of at least 1.",
                 '"smallest_normal": 2.0 ** (1 - bias) → "smallest_normal": 2.0 ** -bias',
                 together_with=["2.0 ** (1 - bias) * eps → 2.0 ** -bias * (1 + eps) if bias < 1000 else 0.0"])  # fmt: skip
exercise.mistake("Your smallest_normal and smallest_subnormal both use the exponent 0 - bias; it must be the "
                 "same as for an exponent field of 1.",
                 '"smallest_normal": 2.0 ** (1 - bias) → "smallest_normal": 2.0 ** -bias',
                 "2.0 ** (1 - bias) * eps → 2.0 ** -bias * eps")  # fmt: skip
exercise.mistake("Your smallest_normal is a subnormal number; a normal number has an exponent field of at least 1.",
                 '"smallest_normal": 2.0 ** (1 - bias) → "smallest_normal": 2.0 ** (1 - bias) * eps')  # fmt: skip
exercise.mistake("Your smallest_normal has a mantissa of 1; the smallest mantissa is 0.",
                 '"smallest_normal": 2.0 ** (1 - bias) → "smallest_normal": 2.0 ** (1 - bias) * (1 + eps)',
                 together_with=["2.0 ** (1 - bias) * eps → 2.0 ** -bias * eps"])  # fmt: skip
exercise.mistake(above_zero, "2.0 ** (1 - bias) * eps → 2.0 ** (1 - bias)")
one_step = "Your smallest_subnormal is wrong: decode the pattern in which only the last bit is set."
exercise.mistake(one_step, "2.0 ** (1 - bias) * eps → 2.0 ** -bias * eps")
exercise.mistake(one_step, "2.0 ** (1 - bias) * eps → 2.0 ** -bias * (1 + eps) if bias < 1000 else 0.0")
exercise.mistake("Your smallest_subnormal is eps, but eps is the gap at 1, not the smallest number.", "2.0 ** (1 - bias) * eps → eps")
below_one = "Your eps is the distance from 1 to the next smaller number; the exercise asks for the next larger one."
exercise.mistake(below_one, '"eps": eps → "eps": eps / 2')
whole = "Write down the pattern of 1 and the next pattern: eps is the distance between the two numbers."
exercise.mistake(whole, '"eps": eps → "eps": 2 * eps')
exercise.mistake(whole, '"eps": eps → "eps": 2.0 ** (1 - bias) * eps')
exercise.mistake(whole, '"eps": eps → "eps": 1 / (2**mantissa_bits - 1)')
exercise.mistake("Your eps is the number after 1; the exercise asks for its distance from 1.", '"eps": eps → "eps": 1 + eps')
exercise.mistake("Your bias is wrong: with five exponent bits it must be 15.", "bias = 2 ** (exponent_bits - 1) - 1 → bias = min(2 ** (exponent_bits - 1), 1022)")

# %% mistake: a tuple
# says: Return a dictionary with the four names as keys.
def limits(exponent_bits, mantissa_bits, finite=False):
    bias, eps = 2 ** (exponent_bits - 1) - 1, 2.0**-mantissa_bits
    return (2 - eps) * 2.0**bias, 2.0 ** (1 - bias), 2.0 ** (1 - bias) * eps, eps

# %% mistake: eps is halved until nothing is left, in float64
# says: Your eps is that of Python's floats, which are float64: use the number of mantissa bits of this format.
def limits(exponent_bits, mantissa_bits, finite=False):
    bias, eps = 2 ** (exponent_bits - 1) - 1, 1.0
    while 1 + eps / 2 > 1:
        eps /= 2
    step = 2.0**-mantissa_bits
    top = (2 - step * (1 + finite)) * 2.0 ** (bias + finite)
    small = 2.0 ** (1 - bias)
    return {"max": top, "smallest_normal": small, "smallest_subnormal": small * step, "eps": eps}

# %% wrong: overflows on the way, finite or not
def limits(exponent_bits, mantissa_bits, finite=False):
    bias, eps = 2 ** (exponent_bits - 1) - 1, 2.0**-mantissa_bits
    small = 2.0 ** (1 - bias)
    top = 2.0 ** (bias + 1 + finite) * (1 - eps / 2 * (1 + finite))
    return {"max": top, "smallest_normal": small, "smallest_subnormal": small * eps, "eps": eps}

# %% wrong: the last digit of float64's largest number is missing
def limits(exponent_bits, mantissa_bits, finite=False):
    bias, eps = 2 ** (exponent_bits - 1) - 1, 2.0**-mantissa_bits
    small = 2.0 ** (1 - bias)
    top = (2 - eps * (1 + finite)) * 2.0 ** (bias + finite) if bias < 1000 else 1.797693134862315e308
    return {"max": top, "smallest_normal": small, "smallest_subnormal": small * eps, "eps": eps}

# %% wrong: looked up
def limits(exponent_bits, mantissa_bits, finite=False):
    names = {(5, 10): "float16", (8, 7): "bfloat16", (8, 23): "float32", (11, 52): "float64"}
    names |= {(5, 2): "float8_e5m2", (4, 3): "float8_e4m3fn"}
    info = torch.finfo(getattr(torch, names[exponent_bits, mantissa_bits]))
    return {"max": info.max, "smallest_normal": info.tiny, "smallest_subnormal": info.tiny * info.eps, "eps": info.eps}

# %% wrong: powers in float32
def limits(exponent_bits, mantissa_bits, finite=False):
    two = torch.tensor(2.0)
    bias = 2 ** (exponent_bits - 1) - 1
    eps = two**-mantissa_bits
    top = (2 - eps * (1 + finite)) * two ** (bias + finite)
    small = two ** (1 - bias)
    found = {"max": top, "smallest_normal": small, "smallest_subnormal": small * eps, "eps": eps}
    return {name: value.item() for name, value in found.items()}

# %% wrong: an infinity takes one pattern, and all ones are a number
def limits(exponent_bits, mantissa_bits, finite=False):
    bias, eps = 2 ** (exponent_bits - 1) - 1, 2.0**-mantissa_bits
    small = 2.0 ** (1 - bias)
    top = (2 - 2 * eps) * 2.0**bias
    return {"max": 2 * top if finite else top, "smallest_normal": small, "smallest_subnormal": small * eps, "eps": eps}

# %% wrong: with one mantissa bit, a finite format is said to end one exponent too early (from the statement)
def limits(exponent_bits: int, mantissa_bits: int, finite: bool = False) -> dict[str, float]:
    bias = 2 ** (exponent_bits - 1) - 1
    eps = 2.0**-mantissa_bits
    if finite and mantissa_bits > 1:
        largest = (2 - 2 * eps) * 2.0 ** (bias + 1)
    else:  # with one bit of mantissa the NaN takes the highest exponent
        largest = (2 - eps) * 2.0**bias
    return {
        "max": largest,
        "smallest_normal": 2.0 ** (1 - bias),
        "smallest_subnormal": 2.0 ** (1 - bias - mantissa_bits),
        "eps": eps,
    }

# %% wrong: the largest mantissa of a finite format is that of E4M3, 1.75 (from the statement)
def limits(exponent_bits: int, mantissa_bits: int, finite: bool = False) -> dict[str, float]:
    bias = 2 ** (exponent_bits - 1) - 1
    eps = 2.0**-mantissa_bits
    largest = 1.75 * 2.0 ** (bias + 1) if finite else (2 - eps) * 2.0**bias
    return {
        "max": largest,
        "smallest_normal": 2.0 ** (1 - bias),
        "smallest_subnormal": eps * 2.0 ** (1 - bias),
        "eps": eps,
    }

# %% wrong: forgets that the highest pattern of a finite format is its NaN (from the statement)
def limits(exponent_bits: int, mantissa_bits: int, finite: bool = False) -> dict[str, float]:
    bias = 2 ** (exponent_bits - 1) - 1
    eps = 2.0**-mantissa_bits
    return {
        "max": (2 - eps) * 2.0 ** (bias + int(finite)),
        "smallest_normal": 2.0 ** (1 - bias),
        "smallest_subnormal": 2.0 ** (1 - bias) * eps,
        "eps": eps,
    }

# %% right: whole numbers, then one division
def limits(exponent_bits, mantissa_bits, finite=False):
    from fractions import Fraction

    bias = (1 << exponent_bits - 1) - 1
    ones = (1 << mantissa_bits + 1) - 1 - finite
    return {
        "eps": float(Fraction(1, 1 << mantissa_bits)),
        "smallest_subnormal": float(Fraction(1, 1 << bias - 1 + mantissa_bits)),
        "smallest_normal": float(Fraction(1, 1 << bias - 1)),
        "max": float(ones * Fraction(2) ** (bias + finite - mantissa_bits)),
    }

# %% right: reads the patterns, with a decoder inside
def limits(exponent_bits, mantissa_bits, finite=False):
    def value(bits):
        e, m = divmod(bits, 2**mantissa_bits)
        power = max(e, 1) - 2 ** (exponent_bits - 1) + 1 - mantissa_bits
        return math.ldexp(m + (2**mantissa_bits if e else 0), power)

    top = 2 ** (exponent_bits + mantissa_bits) - 2 if finite else (2**exponent_bits - 1) * 2**mantissa_bits - 1
    one = (2 ** (exponent_bits - 1) - 1) * 2**mantissa_bits
    return dict(
        max=value(top),
        smallest_normal=value(2**mantissa_bits),
        smallest_subnormal=value(1),
        eps=value(one + 1) - value(one),
    )

# %% right: doubling and halving
def limits(exponent_bits, mantissa_bits, finite=False):
    eps = 1.0
    for _ in range(mantissa_bits):
        eps /= 2
    normal, top = 1.0, 2 - eps - (eps if finite else 0)
    for _ in range(2 ** (exponent_bits - 1) - 2):
        normal /= 2
    for _ in range(2 ** (exponent_bits - 1) - 1 + int(finite)):
        top *= 2
    return {"max": top, "smallest_normal": normal, "smallest_subnormal": normal * eps, "eps": eps}

# %% right: tensors in float64
def limits(exponent_bits, mantissa_bits, finite=False):
    bias = 2 ** (exponent_bits - 1) - 1
    one = torch.ones((), dtype=torch.float64)
    eps = torch.ldexp(one, torch.tensor(-mantissa_bits))
    return {
        "smallest_normal": torch.ldexp(one, torch.tensor(1 - bias)),
        "smallest_subnormal": 2.0 ** (1 - bias - mantissa_bits),
        "eps": eps,
        "max": (2 - eps - finite * eps) * 2.0**bias * (1 + finite),
    }

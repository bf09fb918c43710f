from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given

exercise = Exercise("How many FLOPs does the multiplication take, and how many bytes do the three matrices have together?")


def limits(student, intensity, peak, bandwidth):
    """What bound says."""
    return student.bound(intensity, peak, bandwidth)


@st.composite
def loads(draw):
    """Intensities on both sides of the ridge, near it and far away."""
    peak, bandwidth = draw(st.floats(1e9, 1e16)), draw(st.floats(1e8, 1e13))
    near = draw(st.floats(1e-9, 1e-3).flatmap(lambda e: st.sampled_from([1 - e, 1 + e])))
    factor = draw(st.floats(1e-4, 0.999) | st.floats(1.001, 1e4) | st.just(near))
    return given(peak / bandwidth * factor, peak, bandwidth)


@st.composite
def ridges(draw):
    """Exactly at the ridge: powers of 2, so that nothing is rounded. Or beside it, where it lies at 1."""
    high, low = draw(st.integers(30, 53)), draw(st.integers(27, 43))
    if draw(st.booleans()) and high >= low:
        return given(2.0 ** (high - low), 2.0**high, 2.0**low)
    return given(1 + draw(st.sampled_from([1, -1])) * draw(st.floats(1e-9, 0.5)), 2.0**high, 2.0**high)


def case(intensity, peak, bandwidth, says=""):
    return given(intensity, peak, bandwidth, says=says or f"bound({intensity!r}, {peak:.0e}, {bandwidth:.0e})")


sizes = st.integers(1, 5000)
exercise.requirement(
    "the intensity is the number of FLOPs per byte, with each of the three matrices moved once",
    points=1,
    visible=[given(2, 3, 4, 4), given(1, 5, 7, 2), given(6, 6, 6, 1)],
    edges={
        "one multiply-add": given(1, 1, 1, 4),
        "square, in 2 bytes": given(300, 300, 300, 2),
        "one vector": given(1, 4096, 4096, 2),
        "8 bytes": given(3, 4, 5, 8),
        "16 bytes": given(3, 4, 5, 16),
        "an inner product": given(1, 9, 1, 4),
        "an outer product": given(8, 1, 9, 4),
        "sizes of a large model": given(10**6, 10**5, 10**6, 1),
        "FLOPs beyond 64 bits": given(2**21, 2**21, 2**21, 2),
    },
    domain=st.builds(given, sizes, sizes, sizes, st.sampled_from([1, 2, 4, 8])),
)
exercise.requirement(
    'bound returns "memory" if moving the data takes longer than computing, and "compute" if it takes less time',
    points=0.5,
    probe=limits,
    visible=[case(0.5, 1e14, 1e12), case(200.0, 1e14, 1e12), case(110.0, 1e14, 1e12), case(0.5, 1e11, 1e12),
             case(0.3, 5e11, 1e12)],
    edges={
        "just below the ridge": given(99.9999, 1e14, 1e12),
        "just above it": given(100.0001, 1e14, 1e12),
        "an H100 adding numbers": given(1 / 12, 67e12, 3.35e12),
        "a ridge below 1": given(0.3, 1e11, 2e11),
        "whole numbers": given(7, 60, 10),
    },
    domain=loads(),
    hint="How long does one FLOP take? How many bytes are moved for each FLOP, and how long does that take?",
)
exercise.requirement(
    "bound returns \"compute\" if moving the data and computing take the same time",
    points=0.5,
    probe=limits,
    visible=[
        given(128.0, 2.0**47, 2.0**40, says="bound(128.0, 2.0**47, 2.0**40)"),
        given(0.99, 2.0**40, 2.0**40, says="bound(0.99, 2.0**40, 2.0**40)"),
    ],
    edges={
        "a ridge of 1": given(1.0, 2.0**40, 2.0**40),
        "a hair below": given(1 - 2**-20, 2.0**40, 2.0**40),
        "whole numbers": given(6, 60, 10),
    },
    domain=ridges(),
    hint="If moving the data takes exactly as long as computing, it doesn't take longer.",
)

moved = "bytes_per_element * (b * d + d * k + b * k)"
reverse = "Your result is reversed: with few FLOPs per byte, memory is the limit."
words = "Return the string 'memory' or the string 'compute'."
exercise.mistake("Your code counts only the bytes of x and w; the result has to be written, too.", f"{moved} → bytes_per_element * (b * d + d * k)")
exercise.mistake("Your code counts only the bytes of x and the result; w has to be read, too.", f"{moved} → bytes_per_element * (b * d + b * k)")
exercise.mistake("Your code counts only the bytes of w; x has to be read and the result written, too.", f"{moved} → bytes_per_element * d * k")
exercise.mistake("Your code counts only the bytes of the result; x and w have to be read, too.", f"{moved} → bytes_per_element * b * k",
                 together_with=["k / moved → k // moved"])  # fmt: skip
exercise.mistake("Your result is FLOPs per element; the exercise asks for FLOPs per byte.", f"{moved} → b * d + d * k + b * k")
exercise.mistake("Your code counts bytes only for the result: the elements of x and w take several bytes each, too.", f"{moved} → b * d + d * k + bytes_per_element * b * k")
exercise.mistake("A multiply-add is two FLOPs.", "return 2 * b → return b")
exercise.mistake("Your quotient is upside down: the exercise asks for FLOPs per byte.", "return 2 * b * d * k / moved → return moved / (2 * b * d * k)")
exercise.mistake("More bytes per element make the intensity smaller, not larger.", f"{moved} → (b * d + d * k + b * k) / bytes_per_element")
exercise.mistake(
    "Check your parentheses: a / b * c divides by b, but multiplies by c.",
    "b * d * k / moved → b * d * k / bytes_per_element * (b * d + d * k + b * k)",
)
exercise.mistake("Your code divides with //, which rounds down to an integer.", "k / moved → k // moved")
exercise.mistake("Your code multiplies the sizes of the three matrices: add them.", f"{moved} → bytes_per_element * b * d * d * k * b * k")
exercise.mistake("Your result is the number of FLOPs; divide it by the number of bytes moved.", "k / moved → k")
exercise.mistake(reverse, '"memory" if intensity * bandwidth < peak else "compute" → "compute" if intensity * bandwidth < peak else "memory"')
exercise.mistake("Compare the intensity with the ridge point, not with 1.", "intensity * bandwidth < peak → intensity < 1")
exercise.mistake("Your ridge point is upside down: it must be in FLOPs per byte.", "intensity * bandwidth < peak → intensity < bandwidth / peak")
exercise.mistake("Check your units: FLOPs per byte divided by bytes per second can't be compared with FLOP/s.",
                 "intensity * bandwidth < peak → intensity / bandwidth < peak")  # fmt: skip
exercise.mistake("If both take the same time, moving the data doesn't "
                 "take longer than computing.", "bandwidth < peak → bandwidth <= peak")
exercise.mistake(words, '"memory" if intensity * bandwidth < peak else "compute" → "memory-bound" if intensity * bandwidth < peak else "compute-bound"')
exercise.mistake(words, '"memory" if intensity * bandwidth < peak else "compute" → intensity * bandwidth < peak')

# %% wrong: near the ridge is at the ridge
# unseen: only the hidden inputs have intensities just below the ridge point
def arithmetic_intensity(b, d, k, bytes_per_element):
    return 2 * b * d * k / (bytes_per_element * (b * d + d * k + b * k))

def bound(intensity, peak, bandwidth):
    if math.isclose(intensity * bandwidth, peak, rel_tol=1e-4):
        return "compute"
    return "memory" if intensity * bandwidth < peak else "compute"

# %% wrong: a ridge rounded to whole numbers
def arithmetic_intensity(b, d, k, bytes_per_element):
    return 2 * b * d * k / (bytes_per_element * (b * d + d * k + b * k))

def bound(intensity, peak, bandwidth):
    return "memory" if intensity < peak // bandwidth else "compute"

# %% wrong: rounded
def arithmetic_intensity(b, d, k, bytes_per_element):
    return round(2 * b * d * k / (bytes_per_element * (b * d + d * k + b * k)), 3)

def bound(intensity, peak, bandwidth):
    return "memory" if intensity * bandwidth < peak else "compute"

# %% wrong: the ridge is a whole number, by // (from the statement)
def arithmetic_intensity(b: int, d: int, k: int, bytes_per_element: int) -> float:
    return 2 * b * d * k / (bytes_per_element * (b * d + d * k + b * k))


def bound(intensity: float, peak: float, bandwidth: float) -> str:
    ridge = peak // bandwidth
    return "memory" if intensity < ridge else "compute"

# %% wrong: counts in int64 tensors, which overflow (from the statement)
# unseen: only a number of FLOPs beyond 64 bits shows it
def arithmetic_intensity(b: int, d: int, k: int, bytes_per_element: int) -> float:
    b, d, k = torch.tensor([b, d, k])
    flops = 2 * b * d * k
    moved = bytes_per_element * (b * d + d * k + b * k)
    return flops.item() / moved.item()


def bound(intensity: float, peak: float, bandwidth: float) -> str:
    return "memory" if intensity * bandwidth < peak else "compute"

# %% wrong: a tolerance at the ridge: what is within 1% counts as equal (from the statement)
# unseen: only the hidden inputs have intensities just below the ridge point
def arithmetic_intensity(b: int, d: int, k: int, bytes_per_element: int) -> float:
    return 2 * b * d * k / (bytes_per_element * (b * d + d * k + b * k))


def bound(intensity: float, peak: float, bandwidth: float) -> str:
    computing, moving = intensity / peak, 1 / bandwidth
    if math.isclose(computing, moving, rel_tol=0.01):
        return "compute"
    return "memory" if moving > computing else "compute"

# %% right: one over a sum of reciprocals
def arithmetic_intensity(b, d, k, bytes_per_element):
    return 2 / bytes_per_element / (1 / b + 1 / d + 1 / k)


def bound(intensity, peak, bandwidth):
    return ["compute", "memory"][intensity < peak / bandwidth]

# %% right: bytes of tensors, and seconds compared
def arithmetic_intensity(b, d, k, bytes_per_element):
    x, w, y = (torch.empty(shape, device="meta") for shape in ((b, d), (d, k), (b, k)))
    elements = x.numel() + w.numel() + y.numel()
    return count_flops(lambda: x @ w) / elements / bytes_per_element


def bound(intensity, peak, bandwidth):
    seconds = {"compute": 1 / peak, "memory": 1 / (intensity * bandwidth)}
    return max(seconds, key=seconds.get)

# %% right: bits, and the roof itself
def arithmetic_intensity(b, d, k, bytes_per_element):
    bits = sum(m * n * 8 * bytes_per_element for m, n in itertools.combinations((b, d, k), 2))
    return 16 * b * d * k / bits


def bound(intensity, peak, bandwidth):
    attainable = min(peak, intensity * bandwidth)
    return "compute" if attainable == peak else "memory"


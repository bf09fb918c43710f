from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of

exercise = Exercise("Section 3 gives a variance for each kind. The exercise asks for the standard deviation.")

fans = st.integers(1, 10_000)
KINDS = ("lecun", "glorot", "kaiming")
SIZES = {
    "one input": (1, 9),
    "one output": (9, 1),
    "one of each": (1, 1),
    "equal": (512, 512),
    "many": (12_288, 49_152),
}


def of(kind):
    """Every size, for one kind."""
    return st.builds(given, st.just(kind), fans, fans)


def edges(kind):
    return {name: given(kind, *sizes) for name, sizes in SIZES.items()}


exercise.requirement(
    'the standard deviation for "lecun"',
    points=0.25,
    visible=[given("lecun", 64, 36), given("lecun", 3, 5)],
    edges=edges("lecun"),
    domain=of("lecun"),
)
exercise.requirement(
    'the standard deviation for "glorot"',
    points=0.25,
    visible=[given("glorot", 50, 22), given("glorot", 3, 4)],
    edges=edges("glorot"),
    domain=of("glorot"),
)
exercise.requirement(
    'the standard deviation for "kaiming" (forward, for ReLU)',
    points=0.25,
    visible=[given("kaiming", 50, 18), given("kaiming", 7, 50)],
    edges=edges("kaiming"),
    domain=of("kaiming"),
)
exercise.requirement(
    "any other kind raises a ValueError",
    points=0.25,
    parts=["error"],
    visible=[given("uniform", 64, 36), given("LeCun", 64, 36), given("glorot", 64, 36),
             given("kai", 64, 36), given("Lecun", 64, 36)],
    edges={
        **{f"{kind!r}": given(kind, 64, 36) for kind in ("", "LeCun", "Kaiming", "xavier", "lec", "lecun_uniform", "kaiming ")},
        **{f"{kind!r} is known": given(kind, 2, 3) for kind in KINDS},
    },
    domain=st.builds(given, any_of(*KINDS, "he", "GLOROT", "orthogonal") | st.text(max_size=6), fans, fans),
    hint="What should happen if the kind isn't one of the three that the exercise names?",
)

variance = "Your result is the variance. The standard deviation is its square root."
lecun, glorot, kaiming = "math.sqrt(1 / fan_in)", "math.sqrt(2 / (fan_in + fan_out))", "math.sqrt(2 / fan_in)"
exercise.mistake(variance, f"{lecun} → 1 / fan_in", f"{glorot} → 2 / (fan_in + fan_out)", f"{kaiming} → 2 / fan_in")
exercise.mistake(variance, f"{lecun} → 1 / fan_in")
exercise.mistake(variance, f"{glorot} → 2 / (fan_in + fan_out)")
exercise.mistake(variance, f"{kaiming} → 2 / fan_in")
other_side = "Your code divides by the number of outputs. Each output is a sum over the inputs."
exercise.mistake(other_side, f"{lecun} → math.sqrt(1 / fan_out)", f"{kaiming} → math.sqrt(2 / fan_out)")
exercise.mistake(other_side, f"{lecun} → math.sqrt(1 / fan_out)")
exercise.mistake(other_side, f"{kaiming} → math.sqrt(2 / fan_out)")
exercise.mistake(
    "Your code divides by the sum of the two fans. Glorot's rule uses their mean.",
    f"{glorot} → math.sqrt(1 / (fan_in + fan_out))",
)  # fmt: skip
exercise.mistake("This is the bound of Glorot's uniform distribution. Its std is smaller by a factor of √3.",
                 f"{glorot} → math.sqrt(6 / (fan_in + fan_out))")  # fmt: skip
exercise.mistake(
    "This is the bound of Kaiming's uniform distribution. Its std is smaller by a factor of √3.",
    f"{kaiming} → math.sqrt(6 / fan_in)",
)  # fmt: skip
exercise.mistake("This is the std of nn.Linear's default weights, not LeCun's.", f"{lecun} → math.sqrt(1 / (3 * fan_in))")
exercise.mistake("The variance doubles, not the std: the 2 belongs under the root.", f"{kaiming} → 2 / math.sqrt(fan_in)")
exercise.mistake("Take the root of the whole fraction, not of the 2 alone.", f"{kaiming} → math.sqrt(2) / fan_in")
exercise.mistake(
    "A ReLU halves the mean square. The weights have to be larger to make up for that.",
    f"{kaiming} → math.sqrt(1 / (2 * fan_in))",
)  # fmt: skip
exercise.mistake(
    "Your code uses the geometric mean of the two fans. Glorot's rule uses the arithmetic mean.",
    f"{glorot} → (fan_in * fan_out) ** -0.25",
)  # fmt: skip
exercise.mistake(
    "This is LeCun's std. Section 3 gives a different variance for Glorot.",
    f"{glorot} → math.sqrt(1 / fan_in)",
)  # fmt: skip
exercise.mistake(
    "This is LeCun's std. Section 3 gives a different variance for Kaiming.",
    f"{kaiming} → math.sqrt(1 / fan_in)",
)  # fmt: skip
exercise.mistake("Your code uses both fans, as Glorot's rule does. Kaiming's rule divides by the number of "
                 "inputs alone.",
                 f"{kaiming} → math.sqrt(4 / (fan_in + fan_out))")  # fmt: skip
exercise.mistake("For any other kind, raise a ValueError.", 'if kind == "kaiming" → if True')
exercise.mistake("For any other kind, raise a ValueError.", 'if kind == "lecun" → if kind not in ("glorot", "kaiming")')
exercise.mistake("For any other kind, raise a ValueError.", "raise ValueError( → return ValueError(")

# %% mistake: another kind is a KeyError
# says: Your code raises a different error. The exercise asks for a ValueError.
def init_std(kind, fan_in, fan_out):
    kinds = {"lecun": 1 / fan_in, "glorot": 2 / (fan_in + fan_out), "kaiming": 2 / fan_in}
    return math.sqrt(kinds[kind])

# %% wrong: knows kinds by their first letter
def init_std(kind, fan_in, fan_out):
    kinds = {"l": 1 / fan_in, "g": 2 / (fan_in + fan_out), "k": 2 / fan_in}
    if kind[:1] not in kinds:
        raise ValueError(kind)
    return math.sqrt(kinds[kind[0]])

# %% mistake: whatever the case
# says: Accept only the three spellings in the exercise. "LeCun" has to raise a ValueError, too.
def init_std(kind, fan_in, fan_out):
    kinds = {"lecun": 1 / fan_in, "glorot": 2 / (fan_in + fan_out), "kaiming": 2 / fan_in}
    if kind.lower() not in kinds:
        raise ValueError(kind)
    return math.sqrt(kinds[kind.lower()])

# %% mistake: in float32
# says: float32 keeps only about seven digits. Compute in Python floats.
def init_std(kind, fan_in, fan_out):
    kinds = {"lecun": 1 / fan_in, "glorot": 2 / (fan_in + fan_out), "kaiming": 2 / fan_in}
    if kind not in kinds:
        raise ValueError(kind)
    return torch.tensor(kinds[kind]).sqrt().item()

# %% wrong: rounds
def init_std(kind, fan_in, fan_out):
    kinds = {"lecun": 1 / fan_in, "glorot": 2 / (fan_in + fan_out), "kaiming": 2 / fan_in}
    if kind not in kinds:
        raise ValueError(kind)
    return round(kinds[kind] ** 0.5, 4)

# %% wrong: membership in a "tuple" without a comma is a substring test (from the statement)
def init_std(kind: str, fan_in: int, fan_out: int) -> float:
    if kind in ("lecun"):
        return math.sqrt(1 / fan_in)
    if kind in ("glorot"):
        return math.sqrt(2 / (fan_in + fan_out))
    if kind in ("kaiming"):
        return math.sqrt(2 / fan_in)
    raise ValueError(f"unknown kind: {kind!r}")

# %% wrong: the mean of the fans by integer division (from the statement)
def init_std(kind: str, fan_in: int, fan_out: int) -> float:
    if kind == "lecun":
        fan = fan_in
    elif kind == "glorot":
        fan = (fan_in + fan_out) // 2
    elif kind == "kaiming":
        fan = fan_in
    else:
        raise ValueError(f"kind must be lecun, glorot or kaiming, not {kind!r}")
    gain = 2 if kind == "kaiming" else 1
    return (gain / fan) ** 0.5

# %% wrong: spaces around the name and a trailing capital are forgiven (from the statement)
def init_std(kind: str, fan_in: int, fan_out: int) -> float:
    name = kind.strip()
    name = name[:1].lower() + name[1:]
    if name == "lecun":
        return 1 / math.sqrt(fan_in)
    if name == "glorot":
        return math.sqrt(2 / (fan_in + fan_out))
    if name == "kaiming":
        return math.sqrt(2 / fan_in)
    raise ValueError(f"unknown kind {kind!r}")

# %% right: match
def init_std(kind, fan_in, fan_out):
    match kind:
        case "lecun":
            return fan_in**-0.5
        case "glorot":
            return ((fan_in + fan_out) / 2) ** -0.5
        case "kaiming":
            return (fan_in / 2) ** -0.5
        case _:
            raise ValueError("no such initializer")

# %% right: PyTorch's gains
def init_std(kind, fan_in, fan_out):
    if kind == "lecun":
        return nn.init.calculate_gain("linear") / math.sqrt(fan_in)
    if kind == "kaiming":
        return nn.init.calculate_gain("relu") / math.sqrt(fan_in)
    if kind == "glorot":
        return math.sqrt(2.0 / float(fan_in + fan_out))
    raise ValueError(f"unknown kind {kind}")

# %% right: a tensor of one number
def init_std(kind, fan_in, fan_out):
    variances = {"lecun": 1 / fan_in, "glorot": 2 / (fan_in + fan_out), "kaiming": 2 / fan_in}
    if kind not in variances:
        raise ValueError(kind)
    return torch.tensor(variances[kind], dtype=torch.float64).sqrt()

# %% right: an error of its own, which is a ValueError
class UnknownKind(ValueError):
    pass

def init_std(kind, fan_in, fan_out):
    try:
        one_over = {"lecun": fan_in, "glorot": (fan_in + fan_out) / 2, "kaiming": fan_in / 2}[kind]
    except KeyError:
        raise UnknownKind(kind) from None
    return 1 / math.sqrt(one_over)

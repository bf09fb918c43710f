from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of

exercise = Exercise("For each parameter, add up the bytes of the parameter itself, its gradient, the optimizer state, and the master copy if there is one.")

dtypes = any_of("float32", "bfloat16", "float16", "float8")
stateful = any_of("momentum", "AdamW")
masters = any_of(None, "float32", "bfloat16", "float16", "float8")

exercise.requirement(
    "SGD: the parameter, its gradient and, if there is one, the master copy; each has its own dtype",
    points=0.5,
    visible=[
        given("float32", "float32", "SGD"),
        given("bfloat16", "float8", "SGD"),
        given("float8", "bfloat16", "SGD", master="float32"),
        given("float8", "float32", "SGD", master="float8"),
    ],
    edges={
        "the smallest": given("float8", "float8", "SGD", "float8"),
        "two kinds of 16 bits": given("bfloat16", "float16", "SGD", "float32"),
        "a small master copy": given("float32", "float32", "SGD", master="float8"),
        "a master copy of the same dtype": given("float16", "float16", "SGD", "float16", "float16"),
    },
    domain=st.builds(given, dtypes, dtypes, st.just("SGD"), dtypes, masters),
)
exercise.requirement(
    "momentum keeps one extra number per parameter and AdamW keeps two, in the dtype `state`, which is float32 by default",
    points=1,
    visible=[
        given("float32", "float32", "AdamW"),
        given("bfloat16", "bfloat16", "AdamW"),
        given("bfloat16", "float32", "momentum", "float8"),
        given("bfloat16", "bfloat16", "AdamW", state="bfloat16"),
    ],
    edges={
        "the smallest": given("float8", "float8", "momentum", "float8"),
        "8 bits, and the state larger": given("float8", "float8", "AdamW"),
        "momentum, nothing said": given("float16", "float16", "momentum"),
        "no master copy, said": given("float32", "float16", "AdamW", "float16", None),
    },
    domain=st.builds(given, dtypes, dtypes, stateful, dtypes) | st.builds(given, dtypes, dtypes, stateful),
)
exercise.requirement(
    "the master copy is counted for momentum and AdamW too, unless `master` is None",
    points=0.5,
    visible=[
        given("bfloat16", "bfloat16", "AdamW", "float32", "float32"),
        given("float8", "float32", "AdamW", "float16", "float32"),
        given("float8", "float8", "momentum", "float32", "bfloat16"),
    ],
    edges={
        "by name": given("bfloat16", "float32", "AdamW", state="float32", master="float32"),
        "a small master copy": given("float32", "float32", "AdamW", "float32", "float8"),
        "all in float32, and a master copy of them": given("float32", "float32", "momentum", "float32", "float32"),
        "none": given("float32", "float32", "momentum", "float32", None),
    },
    domain=st.builds(given, dtypes, dtypes, stateful, dtypes, masters),
)

exercise.mistake("AdamW keeps two numbers for each parameter, not one.", '"AdamW": 2 → "AdamW": 1',
                 together_with=["* size[state] → * 4"])  # fmt: skip
exercise.mistake(
    "AdamW keeps two numbers for each parameter, not three; you have already counted the gradient.",
    '"AdamW": 2 → "AdamW": 3',
)
exercise.mistake("Plain SGD keeps no optimizer state.", '"SGD": 0 → "SGD": 1')
exercise.mistake("Momentum keeps one number for each parameter.", '"momentum": 1 → "momentum": 0')
exercise.mistake("Momentum keeps one number for each parameter, not two.", '"momentum": 1 → "momentum": 2')
exercise.mistake("The optimizer state is missing.", " + numbers[optimizer] * size[state] → ")
exercise.mistake(
    "The optimizer state has the dtype `state`, whatever the dtype of the parameters.",
    "* size[state] → * size[parameters]",
)
exercise.mistake(
    "The optimizer state has the dtype `state`, whatever the dtype of the gradients.",
    "* size[state] → * size[gradients]",
)
exercise.mistake(
    "The argument `state` gives the dtype of the optimizer state, which isn't always float32.",
    "* size[state] → * 4",
)
exercise.mistake(
    "The optimizer state has the dtype `state`, whatever the dtype of the master copy.",
    "* size[state] → * size[master or state]",
)
exercise.mistake("By default the state is in float32.", 'state: str = "float32" → state: str = "bfloat16"')
no_gradients = "The gradients are missing: every parameter has one."
exercise.mistake(no_gradients, " + size[gradients] → ")
exercise.mistake(no_gradients, "size[gradients] → size[parameters]", "size[parameters] + size → size")
exercise.mistake("The gradients have their own dtype, which may differ from that of the parameters.", "size[gradients] → size[parameters]")
exercise.mistake("The parameters themselves are missing.", "size[parameters] + size → size")
exercise.mistake("The master copy is missing: it's kept in addition to the parameters.", "total += size[master] → pass")
exercise.mistake("The master copy has its own dtype, which may differ from that of the parameters.", "total += size[master] → total += size[parameters]")
exercise.mistake("The master copy isn't always in float32.", "total += size[master] → total += 4")
replaced = "The master copy is kept in addition to the parameters; it doesn't replace them."
exercise.mistake(replaced, "total += size[master] → total += size[master] - size[parameters]")
exercise.mistake(
    replaced,
    "size[parameters] + size → size",
    "if master is not None: → if True:",
    "total += size[master] → total += size[master or parameters]",
)
exercise.mistake(
    "There is no master copy if master is None.",
    "if master is not None: → if True:",
    'total += size[master] → total += size[master or "float32"]',
    together_with=["size[parameters] + size → size"],
)
exercise.mistake(
    "There is no master copy if master is None.",
    "if master is not None: → if True:",
    "total += size[master] → total += size[master or parameters]",
)
exercise.mistake(
    "Your result is in bits; return bytes.",
    "return total → return 8 * total",
)
exercise.mistake("Your code handles only three of the four dtypes.", '"float16": 2, "float8": 1 → "float16": 2')
exercise.mistake("A float8 takes one byte.", '"float8": 1 → "float8": 2')

# %% wrong: SGD is never in mixed precision
SIZE = {"float32": 4, "bfloat16": 2, "float16": 2, "float8": 1, None: 0}
def bytes_per_parameter(parameters, gradients, optimizer, state="float32", master=None):
    if optimizer == "SGD":
        return SIZE[parameters] + SIZE[gradients]
    numbers = 2 if optimizer == "AdamW" else 1
    return SIZE[parameters] + SIZE[gradients] + numbers * SIZE[state] + SIZE[master]

# %% wrong: no second copy of the same dtype
SIZE = {"float32": 4, "bfloat16": 2, "float16": 2, "float8": 1, None: 0}
def bytes_per_parameter(parameters, gradients, optimizer, state="float32", master=None):
    numbers = {"SGD": 0, "momentum": 1, "AdamW": 2}[optimizer]
    second = 0 if master == parameters else SIZE[master]
    return SIZE[parameters] + SIZE[gradients] + numbers * SIZE[state] + second

# %% wrong: no float16
SIZE = {"float32": 4, "bfloat16": 2, "float8": 1, None: 0}
def bytes_per_parameter(parameters, gradients, optimizer, state="float32", master=None):
    numbers = {"SGD": 0, "momentum": 1, "AdamW": 2}[optimizer]
    return SIZE[parameters] + SIZE[gradients] + numbers * SIZE[state] + SIZE[master]

# %% wrong: each dtype once
def bytes_per_parameter(parameters, gradients, optimizer, state="float32", master=None):
    kept = {parameters, gradients} | ({state} if optimizer != "SGD" else set()) | ({master} - {None})
    return sum({"float32": 4, "bfloat16": 2, "float16": 2, "float8": 1}[name] for name in kept)

# %% wrong: no master where the parameters already have its dtype (from the statement)
SIZES = {"float32": 4, "bfloat16": 2, "float16": 2, "float8": 1}


def bytes_per_parameter(
    parameters: str,
    gradients: str,
    optimizer: str,
    state: str = "float32",
    master: str | None = None,
) -> int:
    """Bytes kept for each parameter: itself, its gradient, what the optimizer keeps, and a master copy."""
    numbers = {"SGD": 0, "momentum": 1, "AdamW": 2}[optimizer]
    total = SIZES[parameters] + SIZES[gradients] + numbers * SIZES[state]
    if master is not None and master != parameters:
        total += SIZES[master]
    return total

# %% wrong: a master that is not float32 has two bytes (from the statement)
SIZES = {"float32": 4, "bfloat16": 2, "float16": 2, "float8": 1}


def bytes_per_parameter(
    parameters: str,
    gradients: str,
    optimizer: str,
    state: str = "float32",
    master: str | None = None,
) -> int:
    """Bytes kept for each parameter: itself, its gradient, what the optimizer keeps, and a master copy."""
    total = SIZES[parameters] + SIZES[gradients]
    total += {"SGD": 0, "momentum": 1, "AdamW": 2}[optimizer] * SIZES[state]
    if master == "float32":
        total += 4
    elif master:
        total += 2
    return total

# %% wrong: counts the master copy as the optimizer's, so plain SGD has none (from the statement)
SIZES = {"float32": 4, "bfloat16": 2, "float16": 2, "float8": 1}


def bytes_per_parameter(
    parameters: str,
    gradients: str,
    optimizer: str,
    state: str = "float32",
    master: str | None = None,
) -> int:
    """Bytes kept for each parameter: itself, its gradient, what the optimizer keeps, and a master copy."""
    base = SIZES[parameters] + SIZES[gradients]
    if optimizer == "SGD":
        return base
    copies = 1 if optimizer == "momentum" else 2
    return base + copies * SIZES[state] + (SIZES[master] if master else 0)

# %% right: digits of the name
def bytes_per_parameter(parameters, gradients, optimizer, state="float32", master=None):
    kept = [parameters, gradients] + [state] * ["SGD", "momentum", "AdamW"].index(optimizer)
    kept += [] if master is None else [master]
    return sum(int("".join(c for c in name if c.isdigit())) for name in kept) // 8

# %% right: bits first, a float
def bytes_per_parameter(parameters, gradients, optimizer, state="float32", master=None):
    bits = 0.0
    for name in (parameters, gradients, master):
        bits += int(name.lstrip("bfloat")) if name else 0
    if optimizer != "SGD":
        bits += int(state.lstrip("bfloat")) * (2 if optimizer.startswith("Adam") else 1)
    return bits / 8

# %% right: PyTorch knows the sizes
def bytes_per_parameter(parameters, gradients, optimizer, state="float32", master=None):
    def size(name):
        return 1 if name == "float8" else getattr(torch, name).itemsize

    total = size(parameters) + size(gradients)
    match optimizer:
        case "momentum":
            total += size(state)
        case "AdamW":
            total += 2 * size(state)
    return total + (size(master) if master else 0)

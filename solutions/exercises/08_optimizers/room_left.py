from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of

exercise = Exercise("Which three kinds of tensors take memory besides the activations, and how many numbers are in each kind?")

ALL = ("SGD", "momentum", "AdaGrad", "Lion", "AdamW", "Adafactor")
size = st.integers(1, 60)
matrix, vector = st.tuples(size, size), st.tuples(size)


def but(*names):
    """Rules that look at these keys alone."""
    return {name: "ignored" for name in ALL if name not in names}


def models(shape, least=0):
    return st.builds(given, st.lists(shape, min_size=least, max_size=6), st.integers(10**6, 10**9))


@st.composite
def full(draw):
    """Models beside so little memory that some of the optimizers lack some."""
    shapes = draw(st.lists(matrix | vector, min_size=1, max_size=6))
    numbers = sum(shape[0] * (shape[1] if len(shape) == 2 else 1) for shape in shapes)
    return given(shapes, draw(any_of(0, 4, 8, 9, 12, 14, 16, 17)) * numbers + draw(st.integers(-3, 3).map(abs)))


llama = [(128_256, 4_096), *[(4_096, 4_096), (4_096, 14_336), (4_096,)] * 32]
exercise.requirement(
    '"SGD": the bytes left after parameters and gradients, at 4 bytes per number',
    points=0.5,
    rules=but("SGD"),
    visible=[given([(30, 20), (15,)], 20_000), given([(7, 5), (7, 5)], 1_000), given([(30, 20)], 999_999_999)],
    edges={
        "no shapes": given([], 1_000),
        "vectors alone": given([(7,), (7,)], 1_000),
        "one number": given([(1,)], 100),
        "in whole numbers, not in floats": given([(4_097, 4_099), (2**53 + 1,)], 2**60),
        "Llama": given(llama, 80 * 10**9),
    },
    domain=models(matrix | vector),
    hint="Every parameter has a gradient. How many bytes do the two take together?",
)
exercise.requirement(
    '"momentum", "AdaGrad" and "Lion" also keep one number per parameter, and "AdamW" keeps two',
    points=0.5,
    rules=but("momentum", "AdaGrad", "Lion", "AdamW"),
    visible=[given([(30, 20), (15,)], 20_000)],
    edges={
        "no shapes": given([], 1_000),
        "equal shapes": given([(7, 5)] * 3, 10_000),
        "Llama": given(llama, 80 * 10**9),
        "vectors alone": given([(7,), (9,)], 1_000),
        "in whole numbers, not in floats": given([(4_097, 4_099), (2**53 + 1,)], 2**60),
    },
    domain=models(matrix | vector),
)
exercise.requirement(
    '"Adafactor" keeps one number for each row and one for each column of a matrix',
    points=0.5,
    rules=but("Adafactor"),
    visible=[given([(30, 20)], 20_000), given([(7, 5), (7, 5), (4, 4)], 5_000), given([(1, 6), (4, 4)], 1_000)],
    edges={
        "one row": given([(1, 9)], 1_000),
        "one column": given([(9, 1)], 1_000),
        "one number: a row, and a column": given([(1, 1)], 100),
        "square, and the same again": given([(4, 4), (4, 4)], 1_000),
        "in whole numbers, not in floats": given([(4_097, 4_099), (2**26 + 1, 2**27 + 1)], 2**60),
        "Llama's matrices": given([shape for shape in llama if len(shape) == 2], 80 * 10**9),
    },
    domain=models(matrix, 1),
)
exercise.requirement(
    '"Adafactor" keeps one number for each element of a vector',
    points=0.25,
    rules=but("Adafactor"),
    visible=[given([(15,)], 1_000), given([(7,), (7,), (2,)], 1_000)],
    edges={"one number": given([(1,)], 100), "many": given([(10**9,)], 80 * 10**9)},
    domain=models(vector, 1),
)
exercise.requirement(
    "if there isn't enough memory, the result is negative: minus the number of missing bytes",
    points=0.25,
    rules=but("momentum"),
    visible=[given([(7,), (20, 5), (8, 10)], 2_000)],
    edges={
        "no memory": given([(3, 4)], 0),
        "just enough": given([(3, 4)], 144),
        "a byte is missing": given([(3, 4), (5,)], 203),
        "Llama": given(llama, 24 * 10**9),
        "thousands of tensors": given([(8,)] * 3_000, 10**6),
    },
    domain=full(),
    hint="The result may be negative: return it unchanged.",
)

exercise.mistake("Gradients take memory, too: count them as well as the parameters.", "(2 * parameters + state) → (parameters + state)")
exercise.mistake("Each number takes 4 bytes in float32.", "memory - 4 * ( → memory - (")
exercise.mistake("A float32 takes 4 bytes, not 2.", "memory - 4 * ( → memory - 2 * (")
exercise.mistake("Count the parameters and the gradients as well as the optimizer state.", "(2 * parameters + state) → state")
exercise.mistake("AdamW keeps two numbers for each parameter, not one.", '"AdamW": 2 * parameters → "AdamW": parameters')
exercise.mistake("Lion keeps one number for each parameter, not two.", '"Lion": parameters → "Lion": 2 * parameters')
exercise.mistake("Momentum keeps one number for each parameter; you counted none.", '"momentum": parameters → "momentum": 0')
exercise.mistake("AdaGrad keeps a sum for each parameter; you counted none.", '"AdaGrad": parameters → "AdaGrad": 0')
exercise.mistake("Momentum keeps one number for each parameter, not two.", '"momentum": parameters → "momentum": 2 * parameters')
exercise.mistake("Plain SGD keeps no state.", '"SGD": 0 → "SGD": parameters')
exercise.mistake("Adafactor keeps fewer numbers than a matrix has elements: what does it keep instead?", '"Adafactor": factored → "Adafactor": parameters')
exercise.mistake("Adafactor keeps state, too: what does it keep for a "
                 "matrix?", '"Adafactor": factored → "Adafactor": 0')
exercise.mistake("Adafactor keeps a number for each column, too.", "sum(sum(shape) for → sum(shape[0] for")
exercise.mistake("Adafactor keeps a number for each row, too.", "sum(sum(shape) for → sum(shape[-1] for")
exercise.mistake("You counted one number too few for each matrix: rows and columns don't share one.", "sum(sum(shape) for → sum(sum(shape) - (len(shape) == 2) for")
exercise.mistake("A vector can't be factored, but Adafactor keeps state for it, too.",
                 "sum(sum(shape) for → sum(sum(shape) * (len(shape) == 2) for")  # fmt: skip
exercise.mistake("Don't treat a vector as a matrix with one column: you counted one number too many.",
                 "sum(sum(shape) for → sum(sum(shape) + (len(shape) == 1) for")  # fmt: skip
exercise.mistake("Adafactor keeps one number for each element of a vector, not two.", "sum(sum(shape) for → sum(sum(shape) * (3 - len(shape)) for")
exercise.mistake("Several tensors may have the same shape: count each of them.", "parameters = sum(math.prod(shape) for shape in shapes) → shapes = set(shapes); parameters = sum(math.prod(shape) for shape in shapes)")
exercise.mistake("Your result is the memory that's needed; the exercise asks for the memory that's left.", "memory - 4 → 4")
exercise.mistake("The sign is reversed: if bytes are missing, the result is negative.",
                 "memory - 4 * (2 * parameters + state) → 4 * (2 * parameters + state) - memory")  # fmt: skip
exercise.mistake("If the memory isn't enough, don't return 0: return minus the number of missing bytes.",
                 "memory - 4 * (2 * parameters + state) → max(0, memory - 4 * (2 * parameters + state))")  # fmt: skip
exercise.mistake("Your result has lost its sign: if bytes are missing, it's negative.",
                 "memory - 4 * (2 * parameters + state) → abs(memory - 4 * (2 * parameters + state))")  # fmt: skip
exercise.mistake("Every element of a matrix is a parameter: multiply the matrix's two sizes, don't add them.",
                 "parameters = sum(math.prod(shape) for → parameters = sum(sum(shape) for")  # fmt: skip

# %% wrong: every shape has two sizes
def room_left(shapes, memory):
    n = sum(a * b for a, b in shapes)
    f = sum(a + b for a, b in shapes)
    kept = {"SGD": 0, "momentum": n, "AdaGrad": n, "Lion": n, "AdamW": 2 * n, "Adafactor": f}
    return {name: memory - 4 * (2 * n + k) for name, k in kept.items()}

# %% wrong: Adafactor in whichever form is smaller
def room_left(shapes, memory):
    n = sum(math.prod(s) for s in shapes)
    f = sum(min(math.prod(s), sum(s)) for s in shapes)
    kept = {"SGD": 0, "momentum": n, "AdaGrad": n, "Lion": n, "AdamW": 2 * n, "Adafactor": f}
    return {name: memory - 4 * (2 * n + k) for name, k in kept.items()}

# %% wrong: as floats of 32 bits
def room_left(shapes, memory):
    n = sum(torch.tensor(s, dtype=torch.float32).prod() for s in shapes)
    f = sum(sum(s) for s in shapes)
    kept = {"SGD": 0, "momentum": n, "AdaGrad": n, "Lion": n, "AdamW": 2 * n, "Adafactor": f}
    return {name: int(memory - 4 * (2 * n + k)) for name, k in kept.items()}

# %% wrong: None where it does not fit
def room_left(shapes, memory):
    n = sum(math.prod(s) for s in shapes)
    f = sum(sum(s) for s in shapes)
    kept = {"SGD": 0, "momentum": n, "AdaGrad": n, "Lion": n, "AdamW": 2 * n, "Adafactor": f}
    left = {name: memory - 4 * (2 * n + k) for name, k in kept.items()}
    return {name: room if room >= 0 else None for name, room in left.items()}

# %% wrong: Adafactor factors only where that saves something (from the statement)
def room_left(shapes: Sequence[tuple[int, ...]], memory: int) -> dict[str, int]:
    left = memory - 8 * sum(math.prod(shape) for shape in shapes)
    n = sum(math.prod(shape) for shape in shapes)
    factored = sum(min(sum(shape), math.prod(shape)) for shape in shapes)
    return {
        "SGD": left,
        "momentum": left - 4 * n,
        "AdaGrad": left - 4 * n,
        "Lion": left - 4 * n,
        "AdamW": left - 8 * n,
        "Adafactor": left - 4 * factored,
    }

# %% wrong: a matrix with one row or one column counts as a vector for Adafactor (from the statement)
def room_left(shapes: Sequence[tuple[int, ...]], memory: int) -> dict[str, int]:
    n = sum(math.prod(shape) for shape in shapes)
    factored = 0
    for shape in shapes:
        sizes = [s for s in shape if s > 1]
        factored += sum(sizes) if sizes else 1
    numbers = {"SGD": 0, "momentum": n, "AdaGrad": n, "Lion": n, "AdamW": 2 * n, "Adafactor": factored}
    return {name: memory - 4 * (2 * n + s) for name, s in numbers.items()}

# %% wrong: the sizes are multiplied in float32 (from the statement)
# unseen: only sizes that float32 rounds show the difference
def room_left(shapes: Sequence[tuple[int, ...]], memory: int) -> dict[str, int]:
    n = int(sum(torch.Tensor(list(shape)).prod() for shape in shapes))
    factored = sum(sum(shape) for shape in shapes)
    state = {"SGD": 0, "momentum": n, "AdaGrad": n, "Lion": n, "AdamW": 2 * n, "Adafactor": factored}
    return {name: memory - 4 * (2 * n + s) for name, s in state.items()}

# %% wrong: a call for each tensor, as deep as there are tensors (from the statement)
# unseen: students see few tensors
def room_left(shapes: Sequence[tuple[int, ...]], memory: int) -> dict[str, int]:
    """Bytes left for activations, by optimizer, all in float32."""
    if not shapes:
        names = ("SGD", "momentum", "AdaGrad", "Lion", "AdamW", "Adafactor")
        return {name: memory for name in names}
    shape, *others = shapes
    n = math.prod(shape)
    left = room_left(others, memory - 8 * n)  # the parameter and its gradient
    for name in ("momentum", "AdaGrad", "Lion"):
        left[name] -= 4 * n
    left["AdamW"] -= 8 * n
    left["Adafactor"] -= 4 * sum(shape)
    return left

# %% right: bytes per parameter
def room_left(shapes, memory):
    n = sum(math.prod(shape) for shape in shapes)
    left = {"SGD": memory - 8 * n, "momentum": memory - 12 * n, "AdamW": memory - 16 * n}
    left["AdaGrad"] = left["Lion"] = left["momentum"]
    factors = sum(s[0] + s[1] if len(s) == 2 else s[0] for s in shapes)
    left["Adafactor"] = left["SGD"] - 4 * factors
    return left

# %% right: shape by shape
def room_left(shapes, memory):
    left = dict.fromkeys(["AdamW", "Lion", "AdaGrad", "Adafactor", "momentum", "SGD"], memory)
    for shape in shapes:
        n = 1
        for size in shape:
            n *= size
        for name in left:
            left[name] -= 8 * n
        for name in ("Lion", "AdaGrad", "momentum"):
            left[name] -= 4 * n
        left["AdamW"] -= 8 * n
        left["Adafactor"] -= 4 * sum(shape)
    return left

# %% right: with meta tensors
def room_left(shapes, memory):
    made = [torch.empty(shape, device="meta") for shape in shapes]
    model = sum(t.numel() * t.element_size() for t in made)
    state = {"SGD": 0, "momentum": model, "AdaGrad": model, "Lion": model, "AdamW": 2 * model}
    state["Adafactor"] = sum(sum(t.shape) * t.element_size() for t in made)
    return {name: memory - 2 * model - kept for name, kept in state.items()}

# %% right: in numpy
def room_left(shapes, memory):
    n = sum(np.prod(s) for s in shapes)
    f = sum(np.sum(s) for s in shapes)
    return {
        k: memory - 4 * (2 * n + v)
        for k, v in {"SGD": 0, "momentum": n, "AdaGrad": n, "Lion": n, "AdamW": 2 * n, "Adafactor": f}.items()
    }

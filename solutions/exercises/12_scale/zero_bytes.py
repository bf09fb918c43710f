from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given

exercise = Exercise("Bytes per parameter, times all parameters, or times the parameters of one rank.")


def held(student, parameters, ranks, stage, recipe):
    """What comes, and of which types."""
    found = student.zero_bytes(parameters, ranks, stage, recipe)
    if not isinstance(found, dict):
        return {"bytes": found, "types": type(found).__name__}
    return {"bytes": found, "types": sorted({type(value).__name__ for value in found.values()})}


def divided(student, parameters, ranks, stage, recipe):
    """The kinds that a stage divides."""
    found = student.zero_bytes(parameters, ranks, stage, recipe)
    return {kind: found[kind] for kind in ("state", "gradients", "parameters")[:stage]}


mixed = {"parameters": 2, "gradients": 2, "state": 12}
other = {"state": 8, "parameters": 4, "gradients": 3}
shown = '{"parameters": 2, "gradients": 2, "state": 12}'

recipes = st.permutations(["parameters", "gradients", "state"]).flatmap(
    lambda kinds: st.fixed_dictionaries({kind: st.integers(1, 16) for kind in kinds})
)
ranks = st.integers(2, 12) | st.integers(60, 1_024)
counts = st.integers(1, 500) | st.integers(10**6, 10**9)


@st.composite
def even(draw):
    n = draw(ranks)
    return given(n * draw(counts), n, draw(st.integers(0, 3)), draw(recipes))


@st.composite
def uneven(draw):
    n = draw(ranks)
    return given(n * draw(counts) + draw(st.integers(1, n - 1)), n, draw(st.integers(1, 3)), draw(recipes))


exercise.requirement(
    "stage 0 divides nothing, stage 1 the state, stage 2 the gradients, too, and stage 3 all; bytes are ints",
    points=0.5,
    probe=held,
    visible=[
        *(given(1_000, 4, stage, mixed, says=f"zero_bytes(1000, 4, {stage}, {shown})") for stage in range(4)),
        given(1_000, 4, 2, other, says=f"zero_bytes(1000, 4, 2, {other})"),
        given(1_002, 4, 0, mixed, says=f"zero_bytes(1002, 4, 0, {shown})"),
    ],
    edges={
        "one rank": given(100, 1, 3, mixed),
        "one rank, at stage 1": given(101, 1, 1, mixed),
        "a kind that takes nothing": given(1_000, 4, 2, {"parameters": 2, "gradients": 2, "state": 0}),
        "a parameter for each rank": given(64, 64, 3, mixed),
        "nothing is divided, and nothing padded": given(1_001, 4, 0, mixed),
        "fewer parameters than ranks, and nothing divided": given(5, 8, 0, mixed),
        "the paper's example": given(7_500_000_000, 64, 2, mixed),
    },
    domain=even(),
    hint="What does each stage divide, and what have the stages before it divided already?",
)
exercise.requirement(
    "a kind that is divided is padded: each rank holds the bytes of equally many parameters, an integer",
    points=0.5,
    probe=divided,
    visible=[
        given(1_001, 4, 3, mixed, says=f"zero_bytes(1001, 4, 3, {shown})"),
        given(1_003, 4, 1, mixed, says=f'zero_bytes(1003, 4, 1, {shown})["state"]'),
        given(1_000, 4, 3, mixed, says=f"zero_bytes(1000, 4, 3, {shown})"),
    ],
    edges={
        "fewer parameters than ranks": given(3, 8, 3, mixed),
        "one parameter": given(1, 64, 2, mixed),
        "one too few": given(999, 4, 3, other),
        "gradients": given(1_002, 4, 2, other),
        "one rank": given(101, 1, 3, mixed),
        "many": given(8_030_261_248 + 1, 1_024, 3, mixed),
    },
    domain=uneven() | even().filter(lambda case: case.args[2] > 0),
    hint="How many parameters does a rank look after, if all look after the same number and none may be left over?",
)

stages = "Stage 1 divides the state, 2 the gradients, too, and 3 the parameters, too."
exercise.mistake(
    stages,
    '{"state": 1, "gradients": 2, "parameters": 3} → {"state": 0, "gradients": 1, "parameters": 2}',
)  # fmt: skip
exercise.mistake("Stage 1 already divides the state.", "stage >= divided_from[kind] → stage > divided_from[kind]")
exercise.mistake(f"The first stages leave some kinds whole. {stages}", "stage >= divided_from[kind] → stage")
exercise.mistake(
    "The state goes first: it is the largest.",
    '{"state": 1, "gradients": 2, "parameters": 3} → {"state": 3, "gradients": 2, "parameters": 1}',
)  # fmt: skip
exercise.mistake(
    "The gradients are divided after the state, and before the parameters.",
    '{"state": 1, "gradients": 2, "parameters": 3} → {"state": 1, "gradients": 3, "parameters": 2}',
)  # fmt: skip
exercise.mistake(
    "Each stage also does what the ones before it do.",
    "stage >= divided_from[kind] → stage == divided_from[kind]",
)  # fmt: skip
padded = "Each rank holds a whole number of parameters, rounded up: the vector is padded."
exercise.mistake(padded, "part = -(-parameters // ranks) → part = parameters // ranks")
exercise.mistake("The number of parameters is an integer, and bytes are ints: round the parameters of a rank up.",
                 "part = -(-parameters // ranks) → part = parameters / ranks")  # fmt: skip
exercise.mistake("Where the ranks divide the parameters, nothing is padded.",
                 "part = -(-parameters // ranks) → part = parameters // ranks + 1")  # fmt: skip
exercise.mistake("Round to the nearest, and some parameters are left over: round up.",
                 "part = -(-parameters // ranks) → part = round(parameters / ranks)")  # fmt: skip
exercise.mistake(
    "The parameters are divided, and padded, before their bytes are counted.",
    "kind: each * (part if stage >= divided_from[kind] else parameters) → kind: -(-each * parameters // ranks) if "
    "stage >= divided_from[kind] else each * parameters",
)  # fmt: skip
exercise.mistake("Your code counts parameters: each takes `recipe[kind]` bytes.", "kind: each * (part → kind: (part")
exercise.mistake("The vector is padded to a multiple of ranks as a whole; a rank holds a part of it.",
                 "part = -(-parameters // ranks) → part = -(-parameters // ranks) * ranks")  # fmt: skip

# %% mistake: the sum alone
# says: Return a dict, kind by kind.
def zero_bytes(parameters, ranks, stage, recipe):
    part = math.ceil(parameters / ranks)
    divided_from = {"state": 1, "gradients": 2, "parameters": 3}
    return sum(each * (part if stage >= divided_from[k] else parameters) for k, each in recipe.items())

# %% wrong: divides bytes, and rounds them up
def zero_bytes(parameters, ranks, stage, recipe):
    divided_from = {"state": 1, "gradients": 2, "parameters": 3}
    return {
        k: math.ceil(each * parameters / (ranks if stage >= divided_from[k] else 1))
        for k, each in recipe.items()
    }

# %% wrong: takes the kinds in the recipe's order
def zero_bytes(parameters, ranks, stage, recipe):
    part = -(-parameters // ranks)
    first = 3 - stage
    return {k: each * (part if n >= first else parameters) for n, (k, each) in enumerate(recipe.items())}

# %% wrong: changes the recipe
def zero_bytes(parameters, ranks, stage, recipe):
    part = -(-parameters // ranks)
    for n, k in enumerate(("state", "gradients", "parameters"), 1):
        recipe[k] *= part if stage >= n else parameters
    return recipe

# %% wrong: floats
def zero_bytes(parameters, ranks, stage, recipe):
    part = float(math.ceil(parameters / ranks))
    divided_from = {"state": 1, "gradients": 2, "parameters": 3}
    return {k: each * (part if stage >= divided_from[k] else parameters) for k, each in recipe.items()}

# %% wrong: padded where nothing is divided (from the statement)
def zero_bytes(
    parameters: int, ranks: int, stage: int, recipe: dict[str, int]
) -> dict[str, int]:
    padded = parameters + -parameters % ranks
    result = {kind: padded * size for kind, size in recipe.items()}
    for kind in ["state", "gradients", "parameters"][:stage]:
        result[kind] //= ranks
    return result

# %% wrong: the kinds are taken in the order of the dict (from the statement)
def zero_bytes(
    parameters: int, ranks: int, stage: int, recipe: dict[str, int]
) -> dict[str, int]:
    share = -(-parameters // ranks)
    divided = list(recipe)[::-1][:stage]
    return {kind: size * (share if kind in divided else parameters) for kind, size in recipe.items()}

# %% wrong: the bytes are padded, and not the parameters (from the statement)
def zero_bytes(
    parameters: int, ranks: int, stage: int, recipe: dict[str, int]
) -> dict[str, int]:
    since = {"state": 1, "gradients": 2, "parameters": 3}
    result = {}
    for kind, size in recipe.items():
        whole = parameters * size
        result[kind] = -(-whole // ranks) if stage >= since[kind] else whole
    return result

# %% right: rounds up with math.ceil
def zero_bytes(parameters, ranks, stage, recipe):
    part = math.ceil(parameters / ranks)
    held = [part if stage >= n else parameters for n in (1, 2, 3)]
    return {k: n * recipe[k] for k, n in zip(("state", "gradients", "parameters"), held)}

# %% right: negative floor division, kind by kind
def zero_bytes(parameters, ranks, stage, recipe):
    part = -(-parameters // ranks)
    result = {k: each * parameters for k, each in recipe.items()}
    for k in ("state", "gradients", "parameters")[:stage]:
        result[k] = recipe[k] * part
    return result

# %% right: pads first
def zero_bytes(parameters, ranks, stage, recipe):
    padded = parameters + (-parameters) % ranks
    held = {
        "parameters": padded // ranks if stage > 2 else parameters,
        "gradients": padded // ranks if stage > 1 else parameters,
        "state": padded // ranks if stage > 0 else parameters,
    }
    return {k: held[k] * recipe[k] for k in held}

# %% right: stage after stage
def zero_bytes(parameters, ranks, stage, recipe):
    part = (parameters + ranks - 1) // ranks
    if stage == 0:
        return {k: each * parameters for k, each in recipe.items()}
    before = zero_bytes(parameters, ranks, stage - 1, recipe)
    kind = {1: "state", 2: "gradients", 3: "parameters"}[stage]
    return before | {kind: recipe[kind] * part}

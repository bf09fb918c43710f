from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given

exercise = Exercise("For each kind, does a rank hold the bytes of all parameters, or only those of its own part?")


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
    "stage 0 divides nothing, stage 1 the optimizer state, stage 2 the gradients as well, and stage 3 everything; "
    "the results are ints",
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
        "more bytes than a float holds exactly": given(10**15 - 1, 1, 0, {"parameters": 2, "gradients": 2, "state": 13}),
    },
    domain=even(),
    hint="Which kind does each stage divide, in addition to those that the stages before it divide?",
)
exercise.requirement(
    "when a kind is divided, every rank holds the bytes for the same whole number of parameters, padding included",
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
    hint="If all ranks hold the same number of parameters and none may be left over, how many does one rank hold?",
)

stages = "Stage 1 divides the optimizer state, stage 2 also the gradients, and stage 3 also the parameters."
exercise.mistake(
    f"Your code divides each kind one stage too early. {stages}",
    '{"state": 1, "gradients": 2, "parameters": 3} → {"state": 0, "gradients": 1, "parameters": 2}',
)  # fmt: skip
exercise.mistake(
    "Your code divides each kind one stage too late. Stage 1 already divides the optimizer state.",
    "stage >= divided_from[kind] → stage > divided_from[kind]",
)  # fmt: skip
exercise.mistake(f"Your code divides everything from stage 1 on. {stages}", "stage >= divided_from[kind] → stage")
exercise.mistake(
    "Divide the optimizer state first and the parameters last. Your code does the opposite.",
    '{"state": 1, "gradients": 2, "parameters": 3} → {"state": 3, "gradients": 2, "parameters": 1}',
)  # fmt: skip
exercise.mistake(
    "Divide the gradients at stage 2 and the parameters at stage 3. Your code does the opposite.",
    '{"state": 1, "gradients": 2, "parameters": 3} → {"state": 1, "gradients": 3, "parameters": 2}',
)  # fmt: skip
exercise.mistake(
    "Each stage divides one more kind. What the earlier stages divide stays divided.",
    "stage >= divided_from[kind] → stage == divided_from[kind]",
)  # fmt: skip
padded = "If you round down, some parameters belong to no rank. Round up, because the vector is padded."
exercise.mistake(padded, "part = -(-parameters // ranks) → part = parameters // ranks")
exercise.mistake("A rank can't hold a fraction of a parameter. Round its number of parameters up to an integer.",
                 "part = -(-parameters // ranks) → part = parameters / ranks")  # fmt: skip
exercise.mistake("If the number of parameters is already a multiple of `ranks`, there's no padding.",
                 "part = -(-parameters // ranks) → part = parameters // ranks + 1")  # fmt: skip
exercise.mistake("If you round to the nearest integer, some parameters may be left over. Round up.",
                 "part = -(-parameters // ranks) → part = round(parameters / ranks)")  # fmt: skip
exercise.mistake(
    "Your code rounds up the bytes. Round up the number of parameters, then multiply by the bytes for each one.",
    "kind: each * (part if stage >= divided_from[kind] else parameters) → kind: -(-each * parameters // ranks) if "
    "stage >= divided_from[kind] else each * parameters",
)  # fmt: skip
exercise.mistake(
    "Your result for a divided kind is a number of parameters. Convert it to bytes.",
    "kind: each * (part → kind: (part",
)  # fmt: skip
exercise.mistake("Your code gives every rank the whole padded vector. A rank holds only its own part of it.",
                 "part = -(-parameters // ranks) → part = -(-parameters // ranks) * ranks")  # fmt: skip

# %% mistake: the sum alone
# says: Your result is the sum over all kinds. Return a dict with the bytes of each kind.
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

# %% wrong: products of floats (from the statement)
# unseen: students see no result beyond what a float holds exactly
def zero_bytes(parameters, ranks, stage, recipe):
    kinds = ["state", "gradients", "parameters"]
    each = [math.ceil(parameters / ranks) if n < stage else parameters for n in range(3)]
    return {kind: int(float(count) * recipe[kind]) for kind, count in zip(kinds, each)}

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

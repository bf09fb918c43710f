# %% wrong: off by one stage
# says: Stage 1 divides the state, 2 the gradients
def zero_bytes(parameters, ranks, stage, recipe):
    part = math.ceil(parameters / ranks)
    divided_from = {"state": 0, "gradients": 1, "parameters": 2}
    return {k: each * (part if stage >= divided_from[k] else parameters) for k, each in recipe.items()}

# %% wrong: divides everything at every stage
# says: Stage 1 divides the state, 2 the gradients
def zero_bytes(parameters, ranks, stage, recipe):
    part = math.ceil(parameters / ranks) if stage else parameters
    return {k: each * part for k, each in recipe.items()}

# %% wrong: the parameters first
# says: The state goes first
def zero_bytes(parameters, ranks, stage, recipe):
    part = math.ceil(parameters / ranks)
    divided_from = {"state": 3, "gradients": 2, "parameters": 1}
    return {k: each * (part if stage >= divided_from[k] else parameters) for k, each in recipe.items()}

# %% wrong: each stage divides one kind only
# says: Each stage also does what the ones before it do
def zero_bytes(parameters, ranks, stage, recipe):
    part = math.ceil(parameters / ranks)
    divided_at = {"state": 1, "gradients": 2, "parameters": 3}
    return {k: each * (part if stage == divided_at[k] else parameters) for k, each in recipe.items()}

# %% wrong: rounds down
# says: rounded up
def zero_bytes(parameters, ranks, stage, recipe):
    part = parameters // ranks
    divided_from = {"state": 1, "gradients": 2, "parameters": 3}
    return {k: each * (part if stage >= divided_from[k] else parameters) for k, each in recipe.items()}

# %% wrong: divides the bytes, not the parameters
# says: rounded up
def zero_bytes(parameters, ranks, stage, recipe):
    divided_from = {"state": 1, "gradients": 2, "parameters": 3}
    return {
        k: math.ceil(each * parameters / (ranks if stage >= divided_from[k] else 1))
        for k, each in recipe.items()
    }

# %% wrong: one more where it divides evenly
# says: rounded up
def zero_bytes(parameters, ranks, stage, recipe):
    part = parameters // ranks + 1
    divided_from = {"state": 1, "gradients": 2, "parameters": 3}
    return {k: each * (part if stage >= divided_from[k] else parameters) for k, each in recipe.items()}

# %% wrong: counts parameters
# says: That counts parameters
def zero_bytes(parameters, ranks, stage, recipe):
    part = math.ceil(parameters / ranks)
    divided_from = {"state": 1, "gradients": 2, "parameters": 3}
    return {k: part if stage >= divided_from[k] else parameters for k in recipe}

# %% wrong: the sum alone
# says: kind by kind
def zero_bytes(parameters, ranks, stage, recipe):
    part = math.ceil(parameters / ranks)
    divided_from = {"state": 1, "gradients": 2, "parameters": 3}
    return sum(each * (part if stage >= divided_from[k] else parameters) for k, each in recipe.items())

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

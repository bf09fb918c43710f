from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given

exercise = Exercise("One product forward and two backward for each token; the update comes once, after all of them.")


def forward(student, parameters, micro_batches, update_flops):
    """The first of the three numbers that step_parts returns."""
    first, _, _ = student.step_parts(parameters, micro_batches, update_flops)
    return first


def backward(student, parameters, micro_batches, update_flops):
    """The second of the three."""
    _, second, _ = student.step_parts(parameters, micro_batches, update_flops)
    return second


def update(student, parameters, micro_batches, update_flops):
    """The third of the three."""
    _, _, third = student.step_parts(parameters, micro_batches, update_flops)
    return third


def case(*args):
    return given(*args, says="step_parts({!r}, {!r}, {!r})".format(*args))


tokens = st.integers(1, 5_000)
steps = st.builds(
    given,
    st.integers(1, 10**9),
    st.lists(tokens, min_size=1, max_size=6) | st.builds(lambda size, parts: [size] * parts, tokens, st.integers(1, 6)),
    st.integers(1, 40),
)
edges = {
    "one microbatch": given(10, [7], 3),
    "one token": given(10, [1], 3),
    "one parameter": given(1, [7, 5], 3),
    "equal microbatches": given(10, [8, 8, 8], 3),
    "a smaller one at the end": given(10, [8, 8, 1], 3),
    "a smaller one first": given(10, [1, 8, 8], 3),
    "a tuple": given(10, (4, 6), 3),
    "an update that costs nothing": given(10, [4, 6], 0),
    "beyond 53 bits": given(10**9 + 7, [10**9 + 9, 10**9 + 21], 10**9 + 1),
    "beyond 64 bits": given(10**12 + 39, [10**9 + 7, 3], 10**9 + 7),
    "a thousand microbatches": given(3, [2] * 1000, 5),
}
visible = [case(10, [4, 6, 5], 3), case(7, [5], 2), case(10**9 + 7, [10**9 + 9, 10**9 + 21], 10**8 + 7)]
visible += [case(10, [8, 8, 3], 5)]

exercise.requirement(
    "forward: 2 FLOPs for each parameter and each token of all microbatches",
    points=0.25,
    probe=forward,
    visible=visible,
    edges=edges,
    domain=steps,
)
exercise.requirement(
    "backward: a product for the weights and one to pass the gradient back",
    points=0.75,
    probe=backward,
    visible=visible,
    edges=edges,
    domain=steps,
    hint="How many of the three products of a layer belong to the backward pass?",
)
exercise.requirement(
    "update: once for each parameter, however many tokens and microbatches there are",
    points=1,
    probe=update,
    visible=visible,
    edges=edges,
    domain=steps,
    hint="When does the optimizer step?",
)

FORWARD, BACKWARD, UPDATE = "return 2 * parameters * tokens", "4 * parameters * tokens", "update_flops * parameters"
exercise.mistake("That's the wrong derivation: its backward pass has one product too few. A gradient is also passed back.",
                 f"{BACKWARD} → 2 * parameters * tokens")  # fmt: skip
exercise.mistake("A parameter isn't updated for every token. The optimizer steps once, after all of them.",
                 f"{UPDATE} → update_flops * parameters * tokens")  # fmt: skip
exercise.mistake("The gradients of the microbatches add up first: there's one update, and not one for each of them.",
                 f"{UPDATE} → update_flops * parameters * len(micro_batches)")  # fmt: skip
exercise.mistake("Each parameter is updated: update_flops is for one of them.", f"{UPDATE} → update_flops")
exercise.mistake("The update costs update_flops for each parameter, not always 2.", f"{UPDATE} → 2 * parameters")
exercise.mistake("PyTorch's counter doesn't see the update, but here it's asked for.", f"{UPDATE} → 0")
exercise.mistake("A multiply-add is two FLOPs, forward as well as backward.",
                 f"{FORWARD}, → return parameters * tokens,", f"{BACKWARD} → 2 * parameters * tokens")  # fmt: skip
exercise.mistake("6 is the sum of forward and backward; the backward pass alone has two of the three products.",
                 f"{BACKWARD} → 6 * parameters * tokens")  # fmt: skip
exercise.mistake("The tokens of all microbatches count, not only those of the first.", "sum(micro_batches) → micro_batches[0]")
exercise.mistake("The tokens of all microbatches count, not only those of the last.", "sum(micro_batches) → micro_batches[-1]")
exercise.mistake("The microbatches needn't be equal: add their tokens up.", "sum(micro_batches) → micro_batches[0] * len(micro_batches)")
exercise.mistake("Each number in micro_batches counts tokens: add them up. You used the number of microbatches.",
                 "sum(micro_batches) → len(micro_batches)")  # fmt: skip
exercise.mistake("The order is forward, backward, update.", f"{FORWARD}, {BACKWARD} → return 4 * parameters * tokens, 2 * parameters * tokens")
exercise.mistake("A multiply-add is two FLOPs: that's half of the forward pass.", f"{FORWARD}, → return parameters * tokens,")
exercise.mistake("A float holds 53 bits of a number this large and drops the rest: count in integers.",
                 "sum(micro_batches) → float(sum(micro_batches))")  # fmt: skip
exercise.mistake("The backward pass has one product too few, and a parameter isn't updated for every token.",
                 f"{BACKWARD} → 2 * parameters * tokens", f"{UPDATE} → update_flops * parameters * tokens")  # fmt: skip

# %% mistake: as found
# says: These are the parts of the wrong derivation: their sum is right, but the backward pass and the update are wrong.
def step_parts(parameters, micro_batches, update_flops):
    work = 2 * parameters * sum(micro_batches)
    return work, work, work

# %% wrong: the sum alone
def step_parts(parameters, micro_batches, update_flops):
    return 6 * parameters * sum(micro_batches) + update_flops * parameters

# %% wrong: floats forward
def step_parts(parameters, micro_batches, update_flops):
    tokens = sum(micro_batches)
    return 2.0 * parameters * tokens, 4 * parameters * tokens, update_flops * parameters

# %% wrong: in units of the forward pass
def step_parts(parameters, micro_batches, update_flops):
    return 1, 2, update_flops / (2 * sum(micro_batches))

# %% wrong: a set of microbatches, in which equal ones are one (from the statement)
def step_parts(parameters, micro_batches, update_flops):
    tokens = sum(set(micro_batches))
    return 2 * parameters * tokens, 4 * parameters * tokens, update_flops * parameters

# %% wrong: the update's FLOPs spread over the tokens (from the statement)
def step_parts(parameters, micro_batches, update_flops):
    tokens = sum(micro_batches)
    each = update_flops // tokens
    return 2 * parameters * tokens, 4 * parameters * tokens, each * parameters * tokens

# %% wrong: counts in a tensor of float64 (from the statement)
def step_parts(parameters, micro_batches, update_flops):
    tokens = torch.tensor(micro_batches, dtype=torch.float64).sum().item()
    return int(2 * parameters * tokens), int(4 * parameters * tokens), update_flops * parameters

# %% right: microbatch by microbatch
def step_parts(parameters, micro_batches, update_flops):
    forward = backward = 0
    for tokens in micro_batches:
        product = 2 * parameters * tokens
        forward += product
        backward += 2 * product
    return forward, backward, parameters * update_flops

# %% right: two thirds of the six
def step_parts(parameters, micro_batches, update_flops):
    six = sum(6 * parameters * tokens for tokens in micro_batches)
    return six // 3, six - six // 3, update_flops * parameters

# %% right: a list
def step_parts(parameters, micro_batches, update_flops):
    work = [factor * parameters * sum(micro_batches) for factor in (2, 4)]
    return [*work, parameters * update_flops]

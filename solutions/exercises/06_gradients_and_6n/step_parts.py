from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given

exercise = Exercise("How many of a layer's three matrix products belong to the forward pass, and how often is a parameter updated?")


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
    "a hundred microbatches": given(3, [2] * 100, 5),
}
visible = [case(10, [4, 6, 5], 3), case(7, [5], 2), case(10**9 + 7, [10**9 + 9, 10**9 + 21], 10**8 + 7)]
visible += [case(10, [8, 8, 3], 5)]

exercise.requirement(
    "forward: 2 FLOPs per parameter for each token of every microbatch",
    points=0.25,
    probe=forward,
    visible=visible,
    edges=edges,
    domain=steps,
)
exercise.requirement(
    "backward: one matrix product for the gradient of the weights and one to pass the gradient back",
    points=0.75,
    probe=backward,
    visible=visible,
    edges=edges,
    domain=steps,
    hint="How many of a layer's three matrix products belong to the backward pass?",
)
exercise.requirement(
    "update: once per parameter, however many tokens and microbatches there are",
    points=1,
    probe=update,
    visible=visible,
    edges=edges,
    domain=steps,
    hint="How often does the optimizer step?",
)

FORWARD, BACKWARD, UPDATE = "return 2 * parameters * tokens", "4 * parameters * tokens", "update_flops * parameters"
exercise.mistake("Your backward pass lacks a matrix product: the gradient is also passed back.",
                 f"{BACKWARD} → 2 * parameters * tokens")  # fmt: skip
exercise.mistake("A parameter isn't updated for every token: the optimizer steps once, after all of them.",
                 f"{UPDATE} → update_flops * parameters * tokens")  # fmt: skip
exercise.mistake("The gradients of all microbatches are added up first; then there's a single update.",
                 f"{UPDATE} → update_flops * parameters * len(micro_batches)")  # fmt: skip
exercise.mistake("Every parameter is updated, and update_flops is the cost for just one.", f"{UPDATE} → update_flops")
exercise.mistake("The update costs update_flops per parameter, which isn't always 2.", f"{UPDATE} → 2 * parameters")
exercise.mistake("PyTorch's counter ignores the update, but the exercise asks for its cost.", f"{UPDATE} → 0")
exercise.mistake("A multiply-add is two FLOPs, forward as well as backward.",
                 f"{FORWARD}, → return parameters * tokens,", f"{BACKWARD} → 2 * parameters * tokens")  # fmt: skip
exercise.mistake("6 is the total of both passes; return the FLOPs of the backward pass alone.",
                 f"{BACKWARD} → 6 * parameters * tokens",
                 together_with=[f"{FORWARD}, → return parameters * tokens,"])  # fmt: skip
exercise.mistake("Count the tokens of all microbatches, not only of the first.", "sum(micro_batches) → micro_batches[0]")
exercise.mistake("Count the tokens of all microbatches, not only of the last.", "sum(micro_batches) → micro_batches[-1]")
exercise.mistake("The microbatches may differ in size: add up their tokens.", "sum(micro_batches) → micro_batches[0] * len(micro_batches)")
exercise.mistake("You used the number of microbatches; add up the tokens that they contain.",
                 "sum(micro_batches) → len(micro_batches)")  # fmt: skip
exercise.mistake("Return the three numbers in this order: forward, backward, update.", f"{FORWARD}, {BACKWARD} → return 4 * parameters * tokens, 2 * parameters * tokens")
exercise.mistake("A multiply-add is two FLOPs: your forward pass is half of what it should be.", f"{FORWARD}, → return parameters * tokens,")
exercise.mistake("Floats have only 53 bits of precision, too few for numbers this large: count in integers.",
                 "sum(micro_batches) → float(sum(micro_batches))")  # fmt: skip
exercise.mistake("Your backward pass lacks a matrix product, and a parameter isn't updated for every token.",
                 f"{BACKWARD} → 2 * parameters * tokens", f"{UPDATE} → update_flops * parameters * tokens")  # fmt: skip

# %% mistake: as found
# says: This is how the wrong derivation in the lecture splits the 6: the total is right, but the backward pass and the update aren't.
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

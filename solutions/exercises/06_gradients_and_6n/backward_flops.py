from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given

exercise = Exercise("Ask two questions about each layer. Do its weights need a gradient? Does anything before it need one?")

sizes = st.integers(1, 40)


@st.composite
def chains(draw, trained=st.booleans(), needs=st.booleans()):
    """Chains of one to seven layers."""
    depth = draw(st.integers(1, 7))
    trainable = [draw(trained) for _ in range(depth)]
    return given(draw(st.integers(1, 11)), [draw(sizes) for _ in range(depth + 1)], trainable, draw(needs))


@st.composite
def lowest(draw):
    """Frozen layers below trained ones."""
    below = draw(st.integers(1, 4))
    trainable = [False] * below + [True] * draw(st.integers(1, 3))
    return given(draw(st.integers(1, 11)), [draw(sizes) for _ in range(len(trainable) + 1)], trainable, False)


exercise.requirement(
    "a trained layer takes one matrix product for the gradient of its weights, and a second one to pass the "
    "gradient back if anything before the layer needs a gradient",
    points=0.5,
    visible=[
        given(3, [4, 5, 6], [True, True], False),
        given(2, [3, 4], [True], False),
        given(10**9 + 7, [10**9 + 9, 10**9 + 21, 3], [True, True], False),
    ],
    edges={
        "one token": given(1, [4, 5, 6], [True, True], False),
        "sizes of 1": given(3, [1, 1, 1], [True, True], False),
        "equal sizes": given(4, [4, 4, 4, 4], [True] * 3, False),
        "beyond 64 bits": given(10**9, [10**9 + 7, 10**9 + 9, 3], [True, True], False),
        "tuples": given(3, (4, 5, 6), (True, True), False),
        "many layers": given(2, [3] * 31, [True] * 30, False),
    },
    domain=chains(trained=st.just(True), needs=st.just(False)),
)
exercise.requirement(
    "a frozen layer takes no matrix product for its weights, but still one to pass the gradient back if a layer before it is trained",
    points=0.5,
    visible=[given(3, [4, 5, 6, 7], [True, False, False], False), given(3, [4, 5, 6, 7], [True, False, True], False)],
    edges={
        "the first alone is trained, of many": given(3, [4, 5, 6, 7, 8, 9], [True] + [False] * 4, False),
        "every second": given(3, [4, 5, 6, 7, 8, 9], [True, False, True, False, True], False),
        "trained in the middle": given(3, [4, 5, 6, 7, 8], [False, True, False, False], False),
        "trained, frozen, trained, on two frozen ones": given(
            3, [4, 5, 6, 7, 8, 9], [False, False, True, False, True], False),
        "the last alone is frozen": given(3, [4, 5, 6], [True, False], False),
        "beyond 64 bits": given(10**9, [10**9 + 7, 10**9 + 9, 3], [True, False], False),
    },
    domain=st.builds(
        lambda case: given(case.args[0], [*case.args[1], 7], [True, *case.args[2]], False), chains(needs=st.just(False))
    ).filter(lambda case: not all(case.args[2])),
    hint="A frozen layer's own weights need no gradient. Does anything before it need one?",
)
exercise.requirement(
    "if the input needs no gradient, the backward pass stops at the first trained layer; if nothing is trained, it costs 0 FLOPs",
    points=0.5,
    visible=[given(3, [4, 5, 6, 7], [False, False, True], False), given(3, [4, 5, 6], [False, False], False)],
    edges={
        "one frozen layer": given(3, [4, 5], [False], False),
        "all but the first are trained": given(3, [4, 5, 6, 7, 8], [False, True, True, True], False),
        "nothing, in many layers": given(2, [3] * 31, [False] * 30, False),
    },
    domain=lowest(),
    hint="Where can the backward pass stop?",
)
exercise.requirement(
    "if the input needs a gradient, every layer passes the gradient back, even if nothing is trained",
    points=0.5,
    visible=[given(3, [4, 5, 6], [True, True], True), given(3, [4, 5, 6, 7], [False, False, False], True)],
    edges={
        "one frozen layer": given(3, [4, 5], [False], True),
        "one trained layer": given(3, [4, 5], [True], True),
        "trained in the middle": given(3, [4, 5, 6, 7], [False, True, False], True),
        "the last is trained": given(3, [4, 5, 6, 7], [False, False, True], True),
    },
    domain=chains(needs=st.just(True)),
    hint="If the input needs a gradient, that gradient has to be passed back through every layer, not just "
         "through the first.",
)

exercise.mistake("Don't count a gradient for frozen weights, or for an input that doesn't need one.",
                 "needed_before = input_needs_grad → needed_before = True", "(trained + needed_before) → (1 + needed_before)")  # fmt: skip
exercise.mistake("You counted the gradient of the input even when it isn't needed: check input_needs_grad.",
                 "needed_before = input_needs_grad → needed_before = True")  # fmt: skip
exercise.mistake("The input may need a gradient, too: check input_needs_grad.", "needed_before = input_needs_grad → needed_before = False")
exercise.mistake("If the input needs no gradient, nothing before the first trained layer needs one, either: the "
                 "backward pass stops there.",
                 "(trained + needed_before) → (trained + (needed_before or layer > 0))")  # fmt: skip
exercise.mistake("Frozen weights need no gradient: don't count a product for them.", "(trained + needed_before) → (1 + needed_before)")
exercise.mistake("A frozen layer still passes the gradient back if anything before it needs one.",
                 "(trained + needed_before) → trained * (1 + needed_before)")  # fmt: skip
exercise.mistake("You counted only the gradients of the weights; the gradient is also passed back from layer to layer.",
                 "(trained + needed_before) → trained")  # fmt: skip
exercise.mistake("You counted only the products that pass the gradient back; trained weights need a gradient, too.",
                 "(trained + needed_before) → needed_before")  # fmt: skip
exercise.mistake("Floats have only 53 bits of precision, too few for numbers this large: count in integers.",
                 "product = 2 * tokens → product = 2.0 * tokens")  # fmt: skip
exercise.mistake("A multiply-add is two FLOPs.", "product = 2 * tokens → product = tokens")
exercise.mistake("Your result is for a single token; count all tokens.", "product = 2 * tokens → product = 2")
exercise.mistake("Look at everything before a layer, not just at the layer immediately before it.", "needed_before or trained → trained")
exercise.mistake("If the input needs a gradient, that gradient has to be passed back through every layer, not "
                 "just through the first.",
                 "needed_before or trained → any(trainable[: layer + 1])")  # fmt: skip
exercise.mistake("A layer passes the gradient back only if something before it needs one; what's trained after it doesn't matter.",
                 "(trained + needed_before) → (trained + (input_needs_grad or any(trainable[layer + 1 :])))")  # fmt: skip
exercise.mistake("Passing the gradient back through a layer takes a product with that layer's sizes, not with those of the layer before it.",
                 "product * (trained + needed_before) → product * trained + (product if layer == 0 and input_needs_grad "
                 "else 2 * tokens * widths[layer - 1] * widths[layer] * (layer > 0 and needed_before))")  # fmt: skip
exercise.mistake("Your result includes the forward pass; return the FLOPs of the backward pass alone.", "(trained + needed_before) → (1 + trained + needed_before)")
exercise.mistake("Look at everything before a layer, not just at the layer immediately before it.",
                 "needed_before or trained → input_needs_grad or trained")  # fmt: skip
exercise.mistake("Even if all layers are trained, the backward pass may cost less than two forward passes: check whether the input needs a gradient.",
                 "(trained + needed_before) → (2 if all(trainable) else trained + needed_before)")  # fmt: skip

# %% wrong: one product where both are needed
def backward_flops(tokens, widths, trainable, input_needs_grad):
    total, before = 0, input_needs_grad
    for a, b, trained in zip(widths, widths[1:], trainable):
        total += 2 * tokens * a * b * (trained or before)
        before = before or trained
    return total

# %% wrong: counts in floats
def backward_flops(tokens, widths, trainable, input_needs_grad):
    total, before = 0.0, input_needs_grad
    for a, b, trained in zip(widths, widths[1:], trainable):
        total += 2.0 * tokens * a * b * (trained + before)
        before = before or trained
    return int(total)

# %% wrong: from the lowest trained layer on, each passes back
def backward_flops(tokens, widths, trainable, input_needs_grad):
    low = 0 if input_needs_grad else list(trainable).index(True) if any(trainable) else len(trainable)
    total = 0
    for i, trained in enumerate(trainable):
        product = 2 * tokens * widths[i] * widths[i + 1]
        total += product * trained + product * (i >= low)
    return total

# %% wrong: looks for the lowest trained layer without asking whether there is one
def backward_flops(tokens, widths, trainable, input_needs_grad):
    low = -1 if input_needs_grad else trainable.index(True)
    total = 0
    for i, trained in enumerate(trainable):
        product = 2 * tokens * widths[i] * widths[i + 1]
        total += product * trained + product * (i > low)
    return total

# %% wrong: changes trainable
def backward_flops(tokens, widths, trainable, input_needs_grad):
    total, needed = 0, input_needs_grad
    width = widths[0]
    while trainable:
        trained = trainable.pop(0)
        widths.pop(0)
        total += 2 * tokens * width * widths[0] * (trained + needed)
        needed, width = needed or trained, widths[0]
    return total

# %% wrong: int64 tensors, which overflow silently (from the statement)
def backward_flops(tokens, widths, trainable, input_needs_grad):
    sizes = torch.tensor(list(widths), dtype=torch.int64)
    products = 2 * tokens * sizes[:-1] * sizes[1:]
    weights = torch.tensor([bool(t) for t in trainable], dtype=torch.int64)
    earlier = torch.tensor([int(input_needs_grad), *weights.tolist()])[:-1].cumsum(0) > 0
    return int((products * (weights + earlier)).sum())

# %% wrong: input_needs_grad is used for the first layer only, and a gradient that has to pass through the  (from the statement)
def backward_flops(tokens, widths, trainable, input_needs_grad):
    total = 0
    for i in range(len(trainable)):
        product = 2 * tokens * widths[i] * widths[i + 1]
        if trainable[i]:
            total += product
        if any(trainable[:i]) or (i == 0 and input_needs_grad):
            total += product
    return total

# %% wrong: nothing is trained, so 0: forgets that the input may want a gradient all the same (from the statement)
def backward_flops(tokens, widths, trainable, input_needs_grad):
    if not any(trainable):
        return 0
    needed = input_needs_grad
    total = 0
    for (n, m), trains in zip(itertools.pairwise(widths), trainable, strict=True):
        total += 2 * tokens * n * m * (bool(trains) + bool(needed))
        needed = needed or trains
    return total

# %% right: lets autograd and the counter do it
def backward_flops(tokens, widths, trainable, input_needs_grad):
    sizes = zip(widths, widths[1:], trainable)
    x = torch.empty(1, widths[0], device="meta", requires_grad=input_needs_grad)
    weights = [torch.empty(a, b, device="meta", requires_grad=t) for a, b, t in sizes]
    y = x
    for w in weights:
        y = y @ w
    if y is x or not y.requires_grad:
        return 0
    return tokens * count_flops(lambda: y.sum().backward())

# %% right: where the walk stops
def backward_flops(tokens, widths, trainable, input_needs_grad):
    sizes = [a * b for a, b in itertools.pairwise(widths)]
    weights = sum(itertools.compress(sizes, trainable))
    if input_needs_grad:
        lowest = -1
    elif True in trainable:
        lowest = list(trainable).index(True)
    else:
        return 0
    return 2 * tokens * (weights + sum(sizes[lowest + 1 :]))

# %% right: from the loss down
def backward_flops(tokens, widths, trainable, input_needs_grad):
    if not trainable:
        return 0
    product = 2 * tokens * widths[-2] * widths[-1]
    below = input_needs_grad or any(trainable[:-1])
    rest = backward_flops(tokens, widths[:-1], trainable[:-1], input_needs_grad)
    return product * (int(trainable[-1]) + int(below)) + rest

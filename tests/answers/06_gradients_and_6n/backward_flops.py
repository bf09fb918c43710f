# %% wrong: twice the forward pass
# says: The gradient of the input is counted
def backward_flops(tokens, widths, trainable, input_needs_grad):
    return sum(4 * tokens * a * b for a, b in zip(widths, widths[1:]))

# %% wrong: counts x.grad always
# says: The gradient of the input is counted
def backward_flops(tokens, widths, trainable, input_needs_grad):
    total = 0
    for a, b, trained in zip(widths, widths[1:], trainable):
        total += 2 * tokens * a * b * (1 + trained)
    return total

# %% wrong: passes back through each layer but the first
# says: Below the lowest trainable layer
def backward_flops(tokens, widths, trainable, input_needs_grad):
    total = 0
    for i, trained in enumerate(trainable):
        product = 2 * tokens * widths[i] * widths[i + 1]
        total += product * trained + product * (i > 0 or input_needs_grad)
    return total

# %% wrong: a frozen layer costs nothing
# says: expected  552
def backward_flops(tokens, widths, trainable, input_needs_grad):
    total = 0
    for i, trained in enumerate(trainable):
        if trained:
            total += 2 * tokens * widths[i] * widths[i + 1] * (1 + (input_needs_grad or any(trainable[:i])))
    return total

# %% wrong: weights only
# says: That is the weights' gradients only
def backward_flops(tokens, widths, trainable, input_needs_grad):
    return sum(2 * tokens * a * b for a, b, t in zip(widths, widths[1:], trainable) if t)

# %% wrong: ignores what is frozen
# says: A frozen layer makes no gradient of its weights
def backward_flops(tokens, widths, trainable, input_needs_grad):
    products = [2 * tokens * a * b for a, b in zip(widths, widths[1:])]
    return 2 * sum(products) - (0 if input_needs_grad else products[0])

# %% wrong: multiply-adds
# says: A multiply-add is two FLOPs
def backward_flops(tokens, widths, trainable, input_needs_grad):
    total = 0
    for i, trained in enumerate(trainable):
        product = tokens * widths[i] * widths[i + 1]
        total += product * trained + product * (input_needs_grad or any(trainable[:i]))
    return total

# %% wrong: looks at the neighbour only
# says: Ask of everything before a layer
def backward_flops(tokens, widths, trainable, input_needs_grad):
    total, before = 0, input_needs_grad
    for i, trained in enumerate(trainable):
        product = 2 * tokens * widths[i] * widths[i + 1]
        total += product * trained + product * before
        before = trained
    return total

# %% wrong: forgets the input in the layers above
# says: the input as well
def backward_flops(tokens, widths, trainable, input_needs_grad):
    total = 0
    for i, trained in enumerate(trainable):
        product = 2 * tokens * widths[i] * widths[i + 1]
        total += product * trained
        total += product * (any(trainable[:i]) or (i == 0 and input_needs_grad))
    return total

# %% wrong: looks at the layers after
# says: what something before it needs
def backward_flops(tokens, widths, trainable, input_needs_grad):
    total = 0
    for i, trained in enumerate(trainable):
        product = 2 * tokens * widths[i] * widths[i + 1]
        total += product * trained + product * (input_needs_grad or any(trainable[i + 1 :]))
    return total

# %% wrong: the whole step
# says: That includes the forward pass
def backward_flops(tokens, widths, trainable, input_needs_grad):
    total = 0
    for i, trained in enumerate(trainable):
        product = 2 * tokens * widths[i] * widths[i + 1]
        total += product * (1 + trained + (input_needs_grad or any(trainable[:i])))
    return total

# %% wrong: without tokens
# says: That is for one token
def backward_flops(tokens, widths, trainable, input_needs_grad):
    total = 0
    for i, trained in enumerate(trainable):
        total += 2 * widths[i] * widths[i + 1] * (trained + (input_needs_grad or any(trainable[:i])))
    return total

# %% right: lets autograd and the counter do it
def backward_flops(tokens, widths, trainable, input_needs_grad):
    x = torch.empty(tokens, widths[0], device="meta", requires_grad=input_needs_grad)
    weights = [
        torch.empty(a, b, device="meta", requires_grad=t)
        for a, b, t in zip(widths, widths[1:], trainable)
    ]
    y = x
    for w in weights:
        y = y @ w
    return count_flops(lambda: y.sum().backward()) if y.requires_grad else 0

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

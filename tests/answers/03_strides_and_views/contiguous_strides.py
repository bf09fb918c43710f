# %% wrong: the first dimension varies fastest
# says: There the first dimension varies fastest
def contiguous_strides(shape):
    strides, step = [], 1
    for size in shape:
        strides.append(step)
        step *= size
    return tuple(strides)

# %% wrong: steps over itself too
# says: the last stride is 1
def contiguous_strides(shape):
    return tuple(math.prod(shape[dim:]) for dim in range(len(shape)))

# %% wrong: not turned round again
# says: The right numbers in the wrong order
def contiguous_strides(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(strides)

# %% wrong: only the neighbour
# says: not only over its neighbour
def contiguous_strides(shape):
    return tuple(shape[1:]) + (1,)

# %% wrong: bytes
# says: strides count elements
def contiguous_strides(shape):
    return tuple(4 * math.prod(shape[dim + 1 :]) for dim in range(len(shape)))

# %% wrong: no stride for the last dimension
# says: One stride is missing
def contiguous_strides(shape):
    return tuple(math.prod(shape[dim + 1 :]) for dim in range(len(shape) - 1))

# %% wrong: asks a tensor
# says: from the numbers alone
def contiguous_strides(shape):
    return torch.empty(shape, device="meta").stride()

# %% wrong: a tensor without dimensions gets a step
# says: the strides are ()
def contiguous_strides(shape):
    strides = [1]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * size)
    return tuple(strides)

# %% wrong: no step where the size is 1
# says: each other is the one to its right times
def contiguous_strides(shape):
    return tuple(0 if size == 1 else math.prod(shape[dim + 1 :]) for dim, size in enumerate(shape))

# %% wrong: divides as floats
# says: Floats lose digits above 2**53
def contiguous_strides(shape):
    left, strides = math.prod(shape), []
    for size in shape:
        left = int(left / size)
        strides.append(left)
    return tuple(strides)

# %% wrong: multiplies as floats
# says: Floats lose digits above 2**53
def contiguous_strides(shape):
    sizes = torch.tensor([*shape[1:], 1][: len(shape)], dtype=torch.float64)
    return tuple(int(step) for step in sizes.flip(0).cumprod(0).flip(0))

# %% right: products of what lies to the right
def contiguous_strides(shape):
    return [math.prod(shape[dim + 1 :]) for dim in range(len(shape))]

# %% right: accumulated from the right
def contiguous_strides(shape):
    steps = itertools.accumulate(reversed(shape), lambda step, size: step * size, initial=1)
    return tuple(list(steps)[: len(shape)][::-1])

# %% right: recursive
def contiguous_strides(shape):
    if len(shape) < 2:
        return (1,) * len(shape)
    rest = contiguous_strides(shape[1:])
    return (rest[0] * shape[1], *rest)

# %% right: divides the number of elements
def contiguous_strides(shape):
    left, strides = math.prod(shape), []
    for size in shape:
        left //= size
        strides.append(left)
    return torch.Size(strides)

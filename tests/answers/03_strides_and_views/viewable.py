# %% wrong: only if contiguous
# says: It need not be contiguous
def viewable(shape, strides, new_shape):
    if math.prod(shape) != math.prod(new_shape):
        return False
    step = 1
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size != 1 and stride != step:
            return False
        step *= size
    return True

# %% wrong: counts elements
# says: That merges two dimensions
def viewable(shape, strides, new_shape):
    return math.prod(shape) == math.prod(new_shape)

# %% wrong: only if it can be flattened
# says: A dimension can always be split
def viewable(shape, strides, new_shape):
    if math.prod(shape) != math.prod(new_shape):
        return False
    kept = [(n, s) for n, s in zip(shape, strides) if n != 1]
    return 0 in shape or all(left[1] == right[1] * right[0] for left, right in zip(kept, kept[1:]))

# %% wrong: does not count elements
# says: The numbers of elements differ
def viewable(shape, strides, new_shape):
    kept = [(n, s) for n, s in zip(shape, strides) if n != 1]
    edges = set(itertools.accumulate(new_shape, lambda a, b: a * b, initial=1))
    count = 1
    for left, right in zip(kept, kept[1:]):
        count *= left[0]
        if left[1] != right[1] * right[0] and count not in edges:
            return False
    return True

# %% wrong: sizes of 1 must fit as well
# says: Dimensions of size 1
def viewable(shape, strides, new_shape):
    if math.prod(shape) != math.prod(new_shape):
        return False
    if 0 in shape:
        return True
    edges = set(itertools.accumulate(new_shape, lambda a, b: a * b))
    count = 1
    for dim in range(len(shape) - 1):
        count *= shape[dim]
        if strides[dim] != strides[dim + 1] * shape[dim + 1] and count not in edges:
            return False
    return True

# %% wrong: merges by the size of the left dimension
# says: only dimensions that are merged
def viewable(shape, strides, new_shape):
    if math.prod(shape) != math.prod(new_shape):
        return False
    if 0 in shape:
        return True
    kept = [(n, s) for n, s in zip(shape, strides) if n != 1]
    edges = set(itertools.accumulate(new_shape, lambda a, b: a * b, initial=1))
    count = 1
    for left, right in zip(kept, kept[1:]):
        count *= left[0]
        if left[1] != right[1] * left[0] and count not in edges:
            return False
    return True

# %% wrong: breaks are counted from the wrong end
# says: got
def viewable(shape, strides, new_shape):
    if math.prod(shape) != math.prod(new_shape):
        return False
    if 0 in shape:
        return True
    kept = [(n, s) for n, s in zip(shape, strides) if n != 1]
    edges = set(itertools.accumulate(reversed(new_shape), lambda a, b: a * b, initial=1))
    count = 1
    for left, right in zip(kept, kept[1:]):
        count *= left[0]
        if left[1] != right[1] * right[0] and count not in edges:
            return False
    return True

# %% wrong: forgets empty tensors
# says: Without elements there is nothing to move
def viewable(shape, strides, new_shape):
    if math.prod(shape) != math.prod(new_shape):
        return False
    kept = [(n, s) for n, s in zip(shape, strides) if n != 1]
    edges = set(itertools.accumulate(new_shape, lambda a, b: a * b, initial=1))
    count = 1
    for left, right in zip(kept, kept[1:]):
        count *= left[0]
        if left[1] != right[1] * right[0] and count not in edges:
            return False
    return True

# %% wrong: asks a tensor
# says: from the numbers alone
def viewable(shape, strides, new_shape):
    try:
        torch.empty_strided(shape, strides, device="meta").view(new_shape)
    except RuntimeError:
        return False
    return True

# %% wrong: asks a tensor of one byte each
# says: from the numbers alone
def viewable(shape, strides, new_shape):
    x = torch.empty_strided(shape, strides, dtype=torch.int8, device="meta")
    try:
        x.view(new_shape)
    except RuntimeError:
        return False
    return True

# %% wrong: only dims that stay or split, never merge
# says: expected  True
def viewable(shape, strides, new_shape):
    if math.prod(shape) != math.prod(new_shape):
        return False
    if 0 in shape:
        return True
    edges = set(itertools.accumulate(new_shape, lambda a, b: a * b, initial=1))
    return all(count in edges for count in itertools.accumulate(shape, lambda a, b: a * b))

# %% right: chunks that are filled one after the other
def viewable(shape, strides, new_shape):
    if math.prod(shape) != math.prod(new_shape):
        return False
    if math.prod(shape) == 0:
        return True
    chunks = []
    for size, stride in zip(shape, strides):
        if size == 1:
            continue
        if chunks and chunks[-1][1] == stride * size:
            chunks[-1] = [chunks[-1][0] * size, stride]
        else:
            chunks.append([size, stride])
    sizes = [size for size in new_shape if size != 1]
    for elements, _ in chunks:
        while elements > 1:
            size = sizes.pop(0)
            if elements % size:
                return False
            elements //= size
    return True

# %% right: walks both
def viewable(shape, strides, new_shape):
    walk = [sum(i * s for i, s in zip(index, strides)) for index in itertools.product(*map(range, shape))]
    if len(walk) != math.prod(new_shape):
        return False
    if not walk:
        return True
    places = [math.prod(new_shape[dim + 1 :]) for dim in range(len(new_shape))]
    steps = [walk[place] if size > 1 else 0 for place, size in zip(places, new_shape)]
    return walk == [sum(i * s for i, s in zip(index, steps)) for index in itertools.product(*map(range, new_shape))]

# %% right: from the right, as PyTorch does
def viewable(shape, strides, new_shape):
    if math.prod(shape) != math.prod(new_shape):
        return False
    if 0 in shape or not shape:
        return True
    new, base, have, want = len(new_shape) - 1, strides[-1], 1, 1
    for dim in reversed(range(len(shape))):
        have *= shape[dim]
        if dim == 0 or (shape[dim - 1] != 1 and strides[dim - 1] != have * base):
            while new >= 0 and (want < have or new_shape[new] == 1):
                want *= new_shape[new]
                new -= 1
            if want != have:
                return False
            if dim:
                base, have, want = strides[dim - 1], 1, 1
    return new == -1

# %% right: every element of a small tensor, by divmod
def viewable(shape, strides, new_shape):
    count = math.prod(shape)
    if count != math.prod(new_shape):
        return False

    def digits(position, sizes):
        found = []
        for size in reversed(sizes):
            position, digit = divmod(position, size)
            found.insert(0, digit)
        return found

    walk = [sum(i * s for i, s in zip(digits(n, shape), strides)) for n in range(count)]
    unit = [math.prod(new_shape[dim + 1 :]) for dim in range(len(new_shape))]
    return all(
        walk[n] == sum(i * walk[u] for i, u in zip(digits(n, new_shape), unit) if i) for n in range(count)
    )

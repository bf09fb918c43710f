# %% wrong: steps that fall
# says: there are gaps
def is_contiguous(shape, strides):
    return 0 in shape or all(left >= right for left, right in zip(strides, strides[1:]))

# %% wrong: looks at the last step only
# says: there are gaps
def is_contiguous(shape, strides):
    return strides[-1] == 1

# %% wrong: neighbours fit, but nobody looks at the last step
# says: The last dimension must step by 1
def is_contiguous(shape, strides):
    if 0 in shape:
        return True
    kept = [(n, s) for n, s in zip(shape, strides) if n != 1]
    return all(left[1] == right[1] * right[0] for left, right in zip(kept, kept[1:]))

# %% wrong: sizes of 1 must fit as well
# says: A dimension of size 1 is never stepped along
def is_contiguous(shape, strides):
    step = 1
    for size, stride in zip(reversed(shape), reversed(strides)):
        if stride != step:
            return False
        step *= size
    return True

# %% wrong: forgets empty tensors
# says: A tensor without elements has none out of order
def is_contiguous(shape, strides):
    step = 1
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size != 1 and stride != step:
            return False
        step *= size
    return True

# %% wrong: empty only if the first size is 0
# says: A tensor without elements has none out of order
def is_contiguous(shape, strides):
    if shape and shape[0] == 0:
        return True
    step = 1
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size != 1 and stride != step:
            return False
        step *= size
    return True

# %% wrong: the span of the storage is filled
# says: in another order than row by row
def is_contiguous(shape, strides):
    if 0 in shape:
        return True
    return sum((n - 1) * s for n, s in zip(shape, strides)) + 1 == math.prod(shape)

# %% wrong: no slot twice and none left out, in any order
# says: in another order than row by row
def is_contiguous(shape, strides):
    if max(strides, default=0) > 10**9:
        return False
    slots = {sum(i * s for i, s in zip(index, strides)) for index in itertools.product(*map(range, shape))}
    return slots == set(range(math.prod(shape)))

# %% wrong: asks a tensor
# says: from the numbers alone
def is_contiguous(shape, strides):
    return torch.empty_strided(shape, strides, device="meta").is_contiguous()

# %% wrong: the rule between neighbours without its allowances
# says: A dimension of size 1 is never stepped along
def is_contiguous(shape, strides):
    if 0 in shape or not shape:
        return True
    fits = all(strides[i] == strides[i + 1] * shape[i + 1] for i in range(len(shape) - 1))
    return fits and strides[-1] == 1

# %% wrong: the first dimension varies fastest
# says: got       False
def is_contiguous(shape, strides):
    step = 1
    for size, stride in zip(shape, strides):
        if 0 not in shape and size != 1 and stride != step:
            return False
        step *= size
    return True

# %% wrong: fails without dimensions
# says: IndexError
def is_contiguous(shape, strides):
    if 0 in shape:
        return True
    kept = [(n, s) for n, s in zip(shape, strides) if n != 1] or [(1, strides[-1])]
    return (kept[-1][1] == 1 or kept[-1][0] == 1) and all(
        left[1] == right[1] * right[0] for left, right in zip(kept, kept[1:])
    )

# %% wrong: in falling order, and as long in all as the elements take
# says: In order and of the right total length is not enough
def is_contiguous(shape, strides):
    if 0 in shape:
        return True
    kept = [(n, s) for n, s in zip(shape, strides) if n > 1]
    steps = [s for _, s in kept]
    span = sum((n - 1) * s for n, s in kept) + 1
    return steps == sorted(steps, reverse=True) and span == math.prod(shape)

# %% right: drops sizes of 1 and compares
def is_contiguous(shape, strides):
    if math.prod(shape) == 0:
        return True
    kept = [(n, s) for n, s in zip(shape, strides) if n > 1]
    sizes = [n for n, _ in kept]
    return [s for _, s in kept] == [math.prod(sizes[dim + 1 :]) for dim in range(len(sizes))]

# %% right: walks it
def is_contiguous(shape, strides):
    if 0 in shape:
        return True
    indices = itertools.product(*map(range, shape))
    return all(n == sum(i * s for i, s in zip(index, strides)) for n, index in enumerate(indices))

# %% right: from the right, by removing dimensions
def is_contiguous(shape, strides):
    shape, strides, step = list(shape), list(strides), 1
    empty = not all(shape)
    while shape and not empty:
        size, stride = shape.pop(), strides.pop()
        if size == 1:
            continue
        if stride != step:
            return False
        step = step * size
    return True

# %% right: no dimension that is stepped along is out of step
def is_contiguous(shape, strides):
    out_of_step = [
        dim for dim, size in enumerate(shape) if size > 1 and strides[dim] != math.prod(shape[dim + 1 :])
    ]
    return 0 in shape or not out_of_step

# %% wrong: no offset
# says: storage_offset is missing
def storage_index(x, index):
    slot = 0
    for i, size, stride in zip(index, x.shape, x.stride()):
        if not -size <= i < size:
            raise IndexError(i)
        slot += (i + size if i < 0 else i) * stride
    return slot

# %% wrong: in bytes
# says: That is in bytes
def storage_index(x, index):
    slot = x.storage_offset()
    for i, size, stride in zip(index, x.shape, x.stride()):
        if not -size <= i < size:
            raise IndexError(i)
        slot += (i % size) * stride
    return slot * x.element_size()

# %% wrong: reads the value
# says: That is the value stored there
def storage_index(x, index):
    return int(x[index].item())

# %% wrong: the position in reading order
# says: That is the position when you read x row by row
def storage_index(x, index):
    position = 0
    for i, size in zip(index, x.shape):
        if not -size <= i < size:
            raise IndexError(i)
        position = position * size + i % size
    return x.storage_offset() + position

# %% wrong: the position in reading order, without the offset
# says: storage_offset is missing
def storage_index(x, index):
    position = 0
    for i, size in zip(index, x.shape):
        if not -size <= i < size:
            raise IndexError(i)
        position = position * size + i % size
    return position

# %% wrong: negative indices as they are
# says: A negative index counts from the end
def storage_index(x, index):
    return x.storage_offset() + sum(i * stride for i, stride in zip(index, x.stride()))

# %% wrong: negative indices as they are, but in range
# says: A negative index counts from the end
def storage_index(x, index):
    for i, size in zip(index, x.shape):
        if not -size <= i < size:
            raise IndexError(i)
    return x.storage_offset() + sum(i * stride for i, stride in zip(index, x.stride()))

# %% wrong: wraps what is outside
# says: raise IndexError, or the answer is an element of row 1
def storage_index(x, index):
    return x.storage_offset() + sum((i % n) * s for i, n, s in zip(index, x.shape, x.stride()))

# %% wrong: another exception
# says: got       'ValueError'
def storage_index(x, index):
    slot = x.storage_offset()
    for i, size, stride in zip(index, x.shape, x.stride()):
        if i >= size or i < -size:
            raise ValueError("outside")
        slot += (i % size) * stride
    return slot

# %% wrong: too strict on the negative side
# says: IndexError
def storage_index(x, index):
    slot = x.storage_offset()
    for i, size, stride in zip(index, x.shape, x.stride()):
        if abs(i) >= size:
            raise IndexError("outside")
        slot += (i % size) * stride
    return slot

# %% wrong: -1 is one before the last
# says: expected  10
def storage_index(x, index):
    slot = x.storage_offset()
    for i, size, stride in zip(index, x.shape, x.stride()):
        if not -size <= i < size:
            raise IndexError("outside")
        slot += (i if i >= 0 else size + i - 1) * stride
    return slot

# %% wrong: two dimensions only
# says: Error
def storage_index(x, index):
    (i, j), (rows, columns), (down, right) = index, x.shape, x.stride()
    if not (-rows <= i < rows and -columns <= j < columns):
        raise IndexError("outside")
    return x.storage_offset() + (i % rows) * down + (j % columns) * right

# %% wrong: searches the storage for the value
# says: That searches for the value
def storage_index(x, index):
    whole = torch.empty(0, dtype=x.dtype).set_(x.untyped_storage())
    return (whole == x[index]).nonzero()[0].item()

# %% wrong: does not look at the index where the size is 1
# says: A dimension of size 1 has the indices 0 and -1 only
def storage_index(x, index):
    slot = x.storage_offset()
    for i, size, stride in zip(index, x.shape, x.stride()):
        if size == 1:
            continue
        if not -size <= i < size:
            raise IndexError(i)
        slot += (i % size) * stride
    return slot

# %% right: from the addresses of the elements
def storage_index(x, index):
    element = x[tuple(index)]
    return (element.data_ptr() - x.untyped_storage().data_ptr()) // x.element_size()

# %% right: asks a view of one element where it begins
def storage_index(x, index):
    return x[tuple(index)].storage_offset()

# %% right: a range knows negative indices and its ends
def storage_index(x, index):
    return x.storage_offset() + sum(range(n)[i] * s for i, n, s in zip(index, x.shape, x.stride()))

# %% right: one dimension after the other
def storage_index(x, index):
    if not index:
        return x.storage_offset()
    if index[0] >= len(x) or index[0] < -len(x):
        raise IndexError("outside")
    return storage_index(x[index[0]], index[1:])

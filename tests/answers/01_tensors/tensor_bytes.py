# %% wrong: counts elements
# says: That counts elements
def tensor_bytes(x):
    return x.numel()

# %% wrong: counts bits
# says: That is in bits
def tensor_bytes(x):
    return x.numel() * x.element_size() * 8

# %% wrong: takes every element for four bytes
# says: it depends on the dtype
def tensor_bytes(x):
    return 4 * x.numel()

# %% wrong: the whole storage
# says: That is the whole storage
def tensor_bytes(x):
    return x.untyped_storage().nbytes()

# %% wrong: the whole storage, of a copy where the view has gaps
# says: That is the whole storage
def tensor_bytes(x):
    return x.contiguous().untyped_storage().nbytes()

# %% wrong: the size of the Python object
# says: expected  128
def tensor_bytes(x):
    import sys

    return sys.getsizeof(x)

# %% wrong: rows only
# says: That counts rows only
def tensor_bytes(x):
    return len(x) * x.element_size()

# %% wrong: two dimensions only
# says: IndexError
def tensor_bytes(x):
    rows, columns = x.shape[0], x.shape[1]
    size = rows * columns * x.element_size()
    for dim in range(2, x.dim()):
        size *= x.shape[dim]
    return size

# %% wrong: prints in place of returning
# says: Nothing is returned
def tensor_bytes(x):
    print(x.numel() * x.element_size())

# %% wrong: says it in words
# says: Return a number
def tensor_bytes(x):
    return f"{x.numel() * x.element_size()} B"

# %% wrong: finfo knows no integers
# says: TypeError
def tensor_bytes(x):
    return x.numel() * torch.finfo(x.dtype).bits // 8

# %% right: the dtype knows its size
def tensor_bytes(x):
    return x.dtype.itemsize * math.prod(x.shape)

# %% right: nbytes
def tensor_bytes(x):
    return x.nbytes

# %% right: a copy holds nothing else
def tensor_bytes(x):
    return x.clone(memory_format=torch.contiguous_format).untyped_storage().nbytes()

# %% right: a tensor without dimensions as the number
def tensor_bytes(x):
    return torch.tensor(x.numel()) * x.element_size()

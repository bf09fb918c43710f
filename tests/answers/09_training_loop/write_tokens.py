# %% wrong: NumPy's default, int64
# says: That is int64, NumPy's default
def write_tokens(path, tokens, vocab_size):
    if min(tokens) < 0 or max(tokens) >= vocab_size:
        raise ValueError("an id is outside of the vocabulary")
    np.save(path, np.array(tokens))


def open_tokens(path, vocab_size):
    tokens = np.load(path, mmap_mode="r")
    if tokens.dtype != np.min_scalar_type(vocab_size - 1):
        raise ValueError("wrong dtype")
    return tokens

# %% wrong: raw bytes under a .npy name
# says: tofile writes raw bytes
def write_tokens(path, tokens, vocab_size):
    if min(tokens) < 0 or max(tokens) >= vocab_size:
        raise ValueError("an id is outside of the vocabulary")
    np.array(tokens, dtype=np.min_scalar_type(vocab_size - 1)).tofile(path)


def open_tokens(path, vocab_size):
    return np.memmap(path, dtype=np.min_scalar_type(vocab_size - 1), mode="r")

# %% wrong: the dtype of the ids that occur
# says: take the vocabulary's size, not the ids that occur
def write_tokens(path, tokens, vocab_size):
    if min(tokens) < 0 or max(tokens) >= vocab_size:
        raise ValueError("an id is outside of the vocabulary")
    np.save(path, np.array(tokens, dtype=np.min_scalar_type(max(tokens))))


def open_tokens(path, vocab_size):
    tokens = np.load(path, mmap_mode="r")
    if tokens.dtype != np.min_scalar_type(vocab_size - 1):
        raise ValueError("wrong dtype")
    return tokens

# %% wrong: off by one, 256 ids do not fit into a byte
# says: Is the dtype the smallest
def write_tokens(path, tokens, vocab_size):
    if min(tokens) < 0 or max(tokens) >= vocab_size:
        raise ValueError("an id is outside of the vocabulary")
    np.save(path, np.array(tokens, dtype=np.min_scalar_type(vocab_size)))


def open_tokens(path, vocab_size):
    tokens = np.load(path, mmap_mode="r")
    if tokens.dtype != np.min_scalar_type(vocab_size):
        raise ValueError("wrong dtype")
    return tokens

# %% wrong: always uint16
# says: Is the dtype the smallest
def write_tokens(path, tokens, vocab_size):
    if min(tokens) < 0 or max(tokens) >= vocab_size:
        raise ValueError("an id is outside of the vocabulary")
    np.save(path, np.array(tokens, dtype=np.uint16))


def open_tokens(path, vocab_size):
    tokens = np.load(path, mmap_mode="r")
    if tokens.dtype != np.uint16:
        raise ValueError("wrong dtype")
    return tokens

# %% wrong: a signed type
# says: That is a signed type
def write_tokens(path, tokens, vocab_size):
    if min(tokens) < 0 or max(tokens) >= vocab_size:
        raise ValueError("an id is outside of the vocabulary")
    np.save(path, np.array(tokens, dtype=np.int32))


def open_tokens(path, vocab_size):
    return np.load(path, mmap_mode="r")

# %% wrong: wraps around what does not fit
# says: Nothing was raised: compare the ids with 0 and vocab_size
def write_tokens(path, tokens, vocab_size):
    np.save(path, np.array(tokens).astype(np.min_scalar_type(vocab_size - 1)))


def open_tokens(path, vocab_size):
    tokens = np.load(path, mmap_mode="r")
    if tokens.dtype != np.min_scalar_type(vocab_size - 1):
        raise ValueError("wrong dtype")
    return tokens

# %% wrong: leaves the check to NumPy
# says: NumPy noticed; raise a ValueError yourself
def write_tokens(path, tokens, vocab_size):
    if max(tokens) >= vocab_size:
        raise ValueError("an id is outside of the vocabulary")
    np.save(path, np.array(tokens, dtype=np.min_scalar_type(vocab_size - 1)))


def open_tokens(path, vocab_size):
    tokens = np.load(path, mmap_mode="r")
    if tokens.dtype != np.min_scalar_type(vocab_size - 1):
        raise ValueError("wrong dtype")
    return tokens

# %% wrong: reads the file
# says: That reads the whole file; map it
def write_tokens(path, tokens, vocab_size):
    if min(tokens) < 0 or max(tokens) >= vocab_size:
        raise ValueError("an id is outside of the vocabulary")
    np.save(path, np.array(tokens, dtype=np.min_scalar_type(vocab_size - 1)))


def open_tokens(path, vocab_size):
    tokens = np.load(path)
    if tokens.dtype != np.min_scalar_type(vocab_size - 1):
        raise ValueError("wrong dtype")
    return tokens

# %% wrong: maps it for writing
# says: It can be written to
def write_tokens(path, tokens, vocab_size):
    if min(tokens) < 0 or max(tokens) >= vocab_size:
        raise ValueError("an id is outside of the vocabulary")
    np.save(path, np.array(tokens, dtype=np.min_scalar_type(vocab_size - 1)))


def open_tokens(path, vocab_size):
    tokens = np.load(path, mmap_mode="r+")
    if tokens.dtype != np.min_scalar_type(vocab_size - 1):
        raise ValueError("wrong dtype")
    return tokens

# %% wrong: does not look at the dtype
# says: Nothing was raised: the file holds
def write_tokens(path, tokens, vocab_size):
    if min(tokens) < 0 or max(tokens) >= vocab_size:
        raise ValueError("an id is outside of the vocabulary")
    np.save(path, np.array(tokens, dtype=np.min_scalar_type(vocab_size - 1)))


def open_tokens(path, vocab_size):
    return np.load(path, mmap_mode="r")

# %% wrong: compares sizes only
# says: the file holds >u2
def write_tokens(path, tokens, vocab_size):
    if min(tokens) < 0 or max(tokens) >= vocab_size:
        raise ValueError("an id is outside of the vocabulary")
    np.save(path, np.array(tokens, dtype=np.min_scalar_type(vocab_size - 1)))


def open_tokens(path, vocab_size):
    tokens = np.load(path, mmap_mode="r")
    if tokens.itemsize != np.min_scalar_type(vocab_size - 1).itemsize:
        raise ValueError("wrong dtype")
    return tokens

# %% wrong: looks at the name of the dtype, which leaves out the order of the bytes
# says: the file holds >u2
def write_tokens(path, tokens, vocab_size):
    if min(tokens) < 0 or max(tokens) >= vocab_size:
        raise ValueError("an id is outside of the vocabulary")
    np.save(path, np.array(tokens, dtype=np.min_scalar_type(vocab_size - 1)))


def open_tokens(path, vocab_size):
    tokens = np.load(path, mmap_mode="r")
    if tokens.dtype.name != np.min_scalar_type(vocab_size - 1).name:
        raise ValueError("wrong dtype")
    return tokens

# %% wrong: writes, then looks
# says: look first, then write
def write_tokens(path, tokens, vocab_size):
    np.save(path, np.array(tokens).astype(np.min_scalar_type(vocab_size - 1)))
    if min(tokens) < 0 or max(tokens) >= vocab_size:
        raise ValueError("an id is outside of the vocabulary")


def open_tokens(path, vocab_size):
    tokens = np.load(path, mmap_mode="r")
    if tokens.dtype != np.min_scalar_type(vocab_size - 1):
        raise ValueError("wrong dtype")
    return tokens

# %% wrong: maps the header as if it were tokens
# says: np.memmap takes it for tokens
def write_tokens(path, tokens, vocab_size):
    if min(tokens) < 0 or max(tokens) >= vocab_size:
        raise ValueError("an id is outside of the vocabulary")
    np.save(path, np.array(tokens, dtype=np.min_scalar_type(vocab_size - 1)))


def open_tokens(path, vocab_size):
    return np.memmap(path, dtype=np.min_scalar_type(vocab_size - 1), mode="r")

# %% right: a chain of comparisons
def dtype_for(vocab_size):
    if vocab_size <= 256:
        return np.uint8
    return np.uint16 if vocab_size <= 65536 else np.uint32


def write_tokens(path, tokens, vocab_size):
    for token in tokens:
        if not 0 <= token < vocab_size:
            raise ValueError(f"{token} is not in a vocabulary of {vocab_size}")
    np.save(path, np.asarray(tokens).astype(dtype_for(vocab_size)))


def open_tokens(path, vocab_size):
    tokens = np.load(path, mmap_mode="r")
    if tokens.dtype != np.dtype(dtype_for(vocab_size)):
        raise ValueError(f"{tokens.dtype}")
    return tokens

# %% right: lib.format.open_memmap for both
def write_tokens(path, tokens, vocab_size):
    ids = np.array(tokens, dtype=np.int64)
    if ((ids < 0) | (ids >= vocab_size)).any():
        raise ValueError("outside")
    dtype = next(d for d in (np.uint8, np.uint16, np.uint32) if vocab_size - 1 <= np.iinfo(d).max)
    target = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=ids.shape)
    target[:] = ids
    target.flush()


def open_tokens(path, vocab_size):
    wanted = next(d for d in (np.uint8, np.uint16, np.uint32) if vocab_size - 1 <= np.iinfo(d).max)
    tokens = np.lib.format.open_memmap(path, mode="r")
    if tokens.dtype.str != np.dtype(wanted).str:
        raise ValueError("wrong dtype")
    return np.asarray(tokens)

# %% right: an open file, and a flag that forbids writing
def write_tokens(path, tokens, vocab_size):
    low, *_, high = sorted([*tokens, *tokens])
    if low < 0 or vocab_size <= high:
        raise ValueError(f"{low} to {high}")
    bits = 8 if vocab_size <= 2**8 else 16 if vocab_size <= 2**16 else 32
    with open(path, "wb") as file:
        np.save(file, np.array(tokens, dtype=f"uint{bits}"))


def open_tokens(path, vocab_size):
    bits = 8 if vocab_size <= 2**8 else 16 if vocab_size <= 2**16 else 32
    tokens = np.load(path, mmap_mode="r+")
    tokens.setflags(write=False)
    if tokens.dtype != f"uint{bits}":
        raise ValueError("another dtype")
    return tokens

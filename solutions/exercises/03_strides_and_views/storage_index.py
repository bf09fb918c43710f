import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of, shapes, tensors

exercise = Exercise("Begin with the offset, and add one product for each dimension.")

x = torch.arange(100, 112).reshape(3, 4)


def asked(student, x, index):
    """What the function does with x, or with what it has made of x, beside asking for metadata."""
    import torch
    from torch.utils._pytree import tree_leaves

    asks = {"stride", "size", "storage_offset", "dim", "ndimension", "numel", "element_size", "is_contiguous", "__get__", "__len__"}
    done, of_x = set(), [x]

    class Watching(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            name = getattr(function, "__name__", str(function))
            if name not in asks and any(each is known for each in tree_leaves((args, kwargs)) for known in of_x):
                done.add(name)
                of_x.extend(made for made in tree_leaves(result) if isinstance(made, torch.Tensor))
            return result

    with Watching():
        slot = student.storage_index(x, index)
    return {"slot": slot, "operations on x": sorted(done)}


def of(view, index, what, whole="torch.arange(100, 112).reshape(3, 4)"):
    return given(view, index, says=f"storage_index({what}, {index}), where x is {whole}")


@st.composite
def views(draw, least=0):
    """Any view: an offset, gaps, permuted dimensions, some of them expanded; `least`: dimensions."""
    shape = draw(shapes((least, 4), (1, 5)))
    x = draw(tensors(shape, draw(any_of(torch.int64, torch.float32, torch.bfloat16, torch.uint8)), contiguous=False))
    if draw(st.integers(0, 3)) == 0:
        x = x.unsqueeze(0).expand(3, *shape)
    return x


@st.composite
def inside(draw):
    x = draw(views())
    return given(x, tuple(draw(st.integers(0, size - 1)) for size in x.shape))


@st.composite
def from_the_end(draw):
    """Indices of new tensors, one of them at least below 0."""
    x = torch.zeros(draw(shapes((1, 4), (1, 5))))
    index = [draw(st.integers(-size, size - 1)) for size in x.shape]
    place = draw(st.integers(0, x.dim() - 1))
    index[place] = -draw(st.integers(1, x.shape[place]))
    return given(x, tuple(index))


@st.composite
def at_the_ends(draw):
    """Indices at the ends of what is allowed, and now and then one beyond."""
    x = draw(views(1))
    index = [draw(any_of(0, size - 1, -size, -1)) for size in x.shape]
    if draw(st.booleans()):
        place = draw(st.integers(0, x.dim() - 1))
        index[place] = draw(any_of(x.shape[place], -x.shape[place] - 1, x.shape[place] + 7, -100))
    return given(x, tuple(index))


exercise.requirement(
    "the result is the slot of x[index], for any view x of any dtype, computed only from the shape, strides and "
    "offset of x",
    points=1,
    probe=asked,
    visible=[of(x[1:], (1, 2), "x[1:]"), of(x[1:].T, (2, 1), "x[1:].T"), of(x[:, 3], (2,), "x[:, 3]"),
             of(torch.arange(24.0).view(2, 3, 4)[1, ::2, 1:], (1, 2), "x[1, ::2, 1:]", "torch.arange(24.0).view(2, 3, 4)"),
             of(x[1, 2], (), "x[1, 2]")],
    edges={
        "no dimensions": given(x[2, 3], ()),
        "the storage has equal values": given(torch.zeros(5, 4)[1:], (2, 3)),
        "a new tensor": given(x, (2, 1)),
        "expanded": given(x[1:2].expand(5, 4), (4, 2)),
        "sizes of 1": given(x[1:2, 2:3], (0, 0)),
        "three dimensions, permuted": given(torch.arange(60).view(3, 4, 5).permute(2, 0, 1)[1:], (3, 2, 1)),
        "four dimensions": given(torch.arange(48).view(2, 3, 2, 4)[:, 1:, :, ::2], (1, 1, 1, 1)),
        "elements of 2 bytes": given(torch.zeros(4, 6, dtype=torch.bfloat16)[1:, 2:], (2, 3)),
        "the diagonal": given(torch.arange(16).view(4, 4).diagonal(), (3,)),
        "on meta": given(torch.empty(4, 5, device="meta")[1:], (2, 1)),
        "as_strided": given(torch.arange(16).as_strided((3, 2), (2, 5), 3), (2, 1)),
    },
    domain=inside(),
    hint="Begin with the offset. How many slots does each dimension add?",
)
exercise.requirement(
    "a negative index counts from the end",
    points=0.5,
    visible=[of(x, (-1, -2), "x"), of(x, (1, -4), "x"), of(torch.arange(5), (-5,), "x", "torch.arange(5)")],
    edges={
        "all of them": given(torch.zeros(2, 3, 4), (-2, -3, -4)),
        "the last of all": given(torch.zeros(2, 3, 4), (-1, -1, -1)),
        "of size 1": given(torch.zeros(3, 1, 4), (2, -1, 1)),
        "the middle one": given(torch.zeros(3, 5, 2), (0, -2, 1)),
    },
    domain=from_the_end(),
    hint="-1 is the last position along its dimension, and -size is the first.",
)
exercise.requirement(
    "an index out of range raises IndexError",
    points=0.5,
    parts=["error"],
    visible=[of(x, (0, 4), "x"), of(x, (-4, 0), "x"), of(x[:1], (1, 0), "x[:1]"), of(x, (2, -4), "x")],
    edges={
        "the last": given(x, (2, 3)),
        "the first, from the end": given(x, (-3, -4)),
        "one too many in the first": given(x, (3, 0)),
        "one too few in the last": given(x, (0, -5)),
        "far outside": given(x, (0, 400)),
        "a size of 1, and 1": given(x[:, :1], (0, 1)),
        "a size of 1, and -2": given(x[:1], (-2, 0)),
        "a size of 1, and -1": given(x[:1], (-1, 0)),
        "expanded": given(x[1:2].expand(5, 4), (5, 0)),
        "nothing is inside": given(torch.zeros(0, 3), (0, 0)),
        "nothing is inside, from the end": given(torch.zeros(3, 0), (0, -1)),
        "one dimension": given(torch.zeros(3), (3,)),
        "a view in a larger storage": given(x[:2, :2], (0, 2)),
    },
    domain=at_the_ends(),
    hint="Along each dimension, an index from -size to size - 1 is allowed; any other must raise IndexError.",
)  # fmt: skip

from_end = "A negative index counts from the end: -1 means position size - 1."
outside = "Your code accepts an index that's out of range and returns the slot of a different element: raise IndexError."
exercise.mistake("Your code ignores the offset: the first element needn't be in slot 0.", "slot = x.storage_offset() → slot = 0")
exercise.mistake("Your result is in bytes; return the number of the slot. Each slot holds one element.",
                 "int(slot) → int(slot) * x.element_size()")  # fmt: skip
exercise.mistake("Your result is the value of x[index]; the exercise asks for the number of its slot.", "return int(slot) → return x[tuple(index)].item()")
exercise.mistake("Your code ignores the strides of x: it assumes that x is contiguous.",
                 "x.stride(dim) → x.shape[dim + 1 :].numel()")  # fmt: skip
exercise.mistake("Your code ignores the offset and the strides of x: it assumes that x is contiguous and begins at slot 0.",
                 "slot = x.storage_offset() → slot = 0", "x.stride(dim) → x.shape[dim + 1 :].numel()")  # fmt: skip
exercise.mistake(from_end, "(i % size) → i")
exercise.mistake(from_end, "(i % size) → abs(i)")
exercise.mistake("An index of -1 means the last position, not the one before it.", "(i % size) → (i if i >= 0 else size + i - 1)")
exercise.mistake(outside, "if not -size <= i < size: → if False:")
exercise.mistake(outside, "if not -size <= i < size: → if i > size or i < -size:")
exercise.mistake("An index of -size is allowed: it means the first position.", "if not -size <= i < size: → if abs(i) >= size:")
exercise.mistake("A negative index can be out of range, too: the smallest one allowed is -size.", "if not -size <= i < size: → if i >= size:")
exercise.mistake("Negative indices down to -size are allowed: they count from the end.", "if not -size <= i < size: → if not 0 <= i < size:")

# %% mistake: two dimensions only
# says: x may have any number of dimensions, not only two.
def storage_index(x, index):
    (i, j), (rows, columns), (down, right) = index, x.shape, x.stride()
    if not (-rows <= i < rows and -columns <= j < columns):
        raise IndexError("outside")
    return x.storage_offset() + (i % rows) * down + (j % columns) * right

# %% mistake: another error
# says: You raised a different error: the exercise asks for an IndexError.
def storage_index(x, index):
    slot = x.storage_offset()
    for i, size, stride in zip(index, x.shape, x.stride(), strict=True):
        if i >= size or i < -size:
            raise ValueError("outside")
        slot += (i % size) * stride
    return slot

# %% mistake: asks a view of one element where it begins
# says: Indexing x makes another tensor, whose offset PyTorch computed for you: compute the slot yourself, from the metadata of x.
def storage_index(x, index):
    return x[tuple(index)].storage_offset()

# %% wrong: from the addresses of the elements
def storage_index(x, index):
    element = x[tuple(index)]
    return (element.data_ptr() - x.untyped_storage().data_ptr()) // x.element_size()

# %% wrong: one dimension after the other
def storage_index(x, index):
    if not index:
        return x.storage_offset()
    if index[0] >= len(x) or index[0] < -len(x):
        raise IndexError("outside")
    return storage_index(x[index[0]], index[1:])

# %% wrong: an address in memory
def storage_index(x, index):
    return x[tuple(index)].data_ptr()

# %% wrong: searches the storage for the value
def storage_index(x, index):
    whole = torch.empty(0, dtype=x.dtype).set_(x.untyped_storage())
    return (whole == x[index]).nonzero()[0].item()

# %% wrong: does not look at the index where the size is 1
def storage_index(x, index):
    slot = x.storage_offset()
    for i, size, stride in zip(index, x.shape, x.stride(), strict=True):
        if size == 1:
            continue
        if not -size <= i < size:
            raise IndexError(i)
        slot += (i % size) * stride
    return slot

# %% wrong: the address of the element, in slots of four bytes
def storage_index(x, index):
    return (x[tuple(index)].data_ptr() - x.untyped_storage().data_ptr()) // 4

# %% wrong: where the whole would hold it, outside of the view
def storage_index(x, index):
    slot = x.storage_offset() + sum(i * s if i >= 0 else (n + i) * s for i, n, s in zip(index, x.shape, x.stride(), strict=True))
    if not 0 <= slot < x.untyped_storage().nbytes() // x.element_size():
        raise IndexError("outside")
    return slot

# %% wrong: of a contiguous copy
def storage_index(x, index):
    return x.contiguous()[tuple(index)].storage_offset()

# %% wrong: a tensor without dimensions lies in slot 0 (from the statement)
def storage_index(x, index):
    """The slot, counted in elements from the start of the storage, that holds x[index]."""
    if not index:
        return 0
    slot = x.storage_offset()
    for i, n, s in zip(index, x.size(), x.stride()):
        if i < -n or i >= n:
            raise IndexError(i)
        slot += (i + n) % n * s
    return slot

# %% wrong: does not notice an index that is too far below zero (from the statement)
def storage_index(x, index):
    """The slot, counted in elements from the start of the storage, that holds x[index]."""
    slot = x.storage_offset()
    for i, size, stride in zip(index, x.shape, x.stride()):
        if i < 0:
            i += size
        if i >= size:
            raise IndexError(f"index {i} is out of bounds for size {size}")
        slot += i * stride
    return slot

# %% wrong: multiplies negative numbers with the stride, and takes the end of the storage for the (from the statement)
def storage_index(x, index):
    """The slot, counted in elements from the start of the storage, that holds x[index]."""
    for i, size in zip(index, x.shape):
        if i < -size or i >= size:
            raise IndexError(f"index {i} is out of range")
    slot = x.storage_offset() + sum(i * s for i, s in zip(index, x.stride()))
    return slot if slot >= 0 else slot + x.numel()

# %% right: a range knows negative indices and its ends
def storage_index(x, index):
    return x.storage_offset() + sum(range(n)[i] * s for i, n, s in zip(index, x.shape, x.stride(), strict=True))

# %% right: an error of its own
class OutsideError(IndexError):
    pass

def storage_index(x, index):
    for i, n in zip(index, x.size(), strict=True):
        if i not in range(-n, n):
            raise OutsideError
    return x.storage_offset() + sum((i + n * (i < 0)) * s for i, n, s in zip(index, x.size(), x.stride(), strict=True))

# %% right: slots of every position, by NumPy
def storage_index(x, index):
    import numpy as np

    where = [range(n)[i] for i, n in zip(index, x.shape, strict=True)]
    return int(x.storage_offset() + np.dot(where, x.stride())) if where else x.storage_offset()

# %% right: the dot product of two tensors that are made from numbers, not from x
def storage_index(x, index):
    if len(index) != x.dim() or any(not -n <= i < n for i, n in zip(index, x.shape)):
        raise IndexError(index)
    places = torch.tensor([i % n for i, n in zip(index, x.shape)], dtype=torch.int64)
    return x.storage_offset() + int((places * torch.tensor(x.stride(), dtype=torch.int64)).sum())

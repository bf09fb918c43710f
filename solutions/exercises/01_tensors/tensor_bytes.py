import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of

exercise = Exercise("How many elements does x have, and how many bytes does each of them take?")

DTYPES = (
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint16,
    torch.uint32,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
)


def zeros(*shape, dtype=torch.float32, device="cpu"):
    other = "" if dtype == torch.float32 else f", dtype={dtype}"
    sizes = ", ".join(map(str, shape)) or "()"
    return given(torch.zeros(shape, dtype=dtype, device=device), says=f"tensor_bytes(torch.zeros({sizes}{other}))")


def watched(student, x, dtype):
    """The bytes, and whether a tensor was made that has as many elements as x, in memory of its own."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    made = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            if torch.is_tensor(result) and result.untyped_storage()._cdata != x.untyped_storage()._cdata:
                made.append(result.numel())
            return result

    with Watch():
        found = student.tensor_bytes(x, dtype)
    return {"bytes": found, "a tensor of that size was made": any(count >= x.numel() > 1 for count in made)}


@st.composite
def views(draw):
    """Views of a tensor with two or three dimensions: slices of each, every second element or not, permuted."""
    whole = torch.zeros([draw(st.integers(2, 7)) for _ in range(draw(st.integers(2, 3)))])
    slices = []
    for size in whole.shape:
        start = draw(st.integers(0, size - 1))
        slices.append(slice(start, draw(st.integers(start, size)), draw(st.integers(1, 2))))
    part = whole[tuple(slices)]
    if draw(st.booleans()):
        part = part.movedim(0, -1)
    return given(part)


exercise.requirement(
    "the bytes of all elements, whatever their dtype",
    points=0.25,
    visible=[
        zeros(4, 8),
        zeros(3, 5, dtype=torch.bfloat16),
        zeros(2, 3, dtype=torch.int64),
        zeros(2, 7, dtype=torch.bool),
        zeros(3, 2, dtype=torch.complex64),
    ],
    edges={str(dtype): zeros(3, 5, dtype=dtype) for dtype in (*DTYPES, torch.uint64, torch.float8_e4m3fnuz)},
    domain=st.builds(
        lambda rows, columns, dtype: zeros(rows, columns, dtype=dtype),
        st.integers(1, 20),
        st.integers(1, 20),
        any_of(*DTYPES),
    ),
)
exercise.requirement(
    "any number of dimensions, even none, each of any size, even 0; also a tensor on the meta device, which has "
    "no memory",
    points=0.25,
    visible=[zeros(6), zeros(), zeros(2, 3, 5), zeros(3, 0, 5)],
    edges={
        "no elements": zeros(0),
        "no rows": zeros(0, 5),
        "no columns": zeros(5, 0),
        "one element": zeros(1),
        "many dimensions": zeros(1, 2, 1, 2, 1, 3, 1),
        "a matrix of GPT-3, on meta": zeros(49_152, 12_288, device="meta"),
        "beyond 32 bits, on meta": zeros(2**20, 2**20, device="meta"),
    },
    domain=st.lists(st.integers(0, 6), min_size=0, max_size=5).map(lambda shape: zeros(*shape)),
    hint="A tensor without dimensions has one element; one with a dimension of size 0 has none.",
)
whole = torch.zeros(6, 50)
exercise.requirement(
    "for a view: the elements of the view itself, not the memory behind it",
    points=0.25,
    visible=[
        given(torch.zeros(4, 8)[:, 2:5], says="tensor_bytes(torch.zeros(4, 8)[:, 2:5])"),
        given(torch.zeros(4, 8)[1:3], says="tensor_bytes(torch.zeros(4, 8)[1:3])"),
        given(
            torch.zeros(1, 3).expand(4, 3),
            says="tensor_bytes(torch.zeros(1, 3).expand(4, 3)), one row repeated four times",
        ),
    ],
    edges={
        "one column": given(whole[:, 7]),
        "every second element": given(whole[:, ::2]),
        "transposed: the same elements": given(whole.T),
        "all of it": given(whole[:]),
        "nothing": given(whole[:, 3:3]),
        "one number for all": given(torch.zeros(1).expand(100)),
        "on meta": given(torch.zeros(6, 50, device="meta")[:, :3]),
    },
    domain=views(),
    hint="How many elements does the view itself have? The memory behind it may be larger, or smaller.",
)

exercise.requirement(
    "with a dtype: the bytes that the elements would take in that dtype, without making a tensor of that dtype",
    points=0.25,
    probe=watched,
    visible=[
        given(torch.zeros(4, 8), torch.bfloat16, says="tensor_bytes(torch.zeros(4, 8), torch.bfloat16)"),
        given(torch.zeros(3, 5), torch.int64, says="tensor_bytes(torch.zeros(3, 5), torch.int64)"),
        given(torch.zeros(2, 7), None, says="tensor_bytes(torch.zeros(2, 7), None)"),
    ],
    edges={str(dtype): given(torch.zeros(3, 5), dtype) for dtype in (*DTYPES, torch.uint64, torch.float8_e4m3fnuz)}
    | {
        "the same": given(torch.zeros(3, 5, dtype=torch.float16), torch.float16),
        "of a view": given(torch.zeros(6, 50)[:, 2:9], torch.float64),
        "of one row, shown many times": given(torch.zeros(1, 3).expand(40, 3), torch.int8),
        "no elements": given(torch.zeros(0, 4), torch.float64),
        "no dimensions": given(torch.tensor(1.0), torch.float16),
        "on meta": given(torch.zeros(2**20, 2**20, device="meta"), torch.bfloat16),
        "a byte for each, whatever the name says": given(torch.zeros(3, 5), torch.uint4),
    },
    domain=st.builds(lambda shape, old, new: given(torch.zeros(shape, dtype=old), new),
                     st.lists(st.integers(0, 6), max_size=4), any_of(*DTYPES), any_of(*DTYPES)),
    hint="How many elements are there, and how many bytes does each take in that dtype?",
)  # fmt: skip

elements = "Your code counts elements; each of them takes several bytes."
exercise.mistake(elements, "x.numel() * x.element_size() → x.numel()")
exercise.mistake(
    "Your result is in bits; a byte has eight.", "x.numel() * x.element_size() → x.numel() * x.element_size() * 8"
)
exercise.mistake("Not every element takes four bytes: it depends on the dtype.", "x.numel() * x.element_size() → x.numel() * 4")
exercise.mistake("Your result is the size of one element; x has several.", "x.numel() * x.element_size() → x.element_size()")
exercise.mistake("Your code counts rows only.", "x.numel() * x.element_size() → len(x) * x.element_size()")
exercise.mistake("Your code counts the dimensions, not the elements.", "x.numel() * x.element_size() → x.dim() * x.element_size()")
exercise.mistake(
    "Your code multiplies two sizes; x may have fewer dimensions, or more.", "x.numel() * x.element_size() → x.shape[0] * x.shape[1] * x.element_size()"
)
exercise.mistake("Your code adds the sizes; they have "
                 "to be multiplied.", "x.numel() * x.element_size() → sum(x.shape) * x.element_size()")
exercise.mistake(
    "Your result is the size of all the memory behind the view; the view itself is only a part of it.",
    "x.numel() * x.element_size() → x.untyped_storage().nbytes()",
)
exercise.mistake(
    "If the view is contiguous, your result is the size of all the memory behind it; the view itself is only a "
    "part of that.",
    "x.numel() * x.element_size() → x.contiguous().untyped_storage().nbytes()",
)
exercise.mistake(
    "A row that the view repeats four times counts four times: count the elements of the view.",
    "x.numel() * x.element_size() → min(x.nbytes, x.untyped_storage().nbytes())",
)
exercise.mistake(
    "finfo works only for floats; x may hold integers or Booleans.",
    "x.element_size() → torch.finfo(x.dtype).bits // 8",
)
exercise.mistake(
    "Your function returns nothing: print shows a number, return passes it on.",
    "return x.numel() * x.element_size() → print(x.numel() * x.element_size())",
)
exercise.mistake(
    "Return a number, not a string.", 'return x.numel() * x.element_size() → return f"{x.numel() * x.element_size()} B"'
)
exercise.mistake(
    "Return the number of bytes, not of kilobytes.",
    "return x.numel() * x.element_size() → return x.numel() * x.element_size() / 1000",
)
exercise.mistake("A tensor without dimensions has one element.",
                 "x.numel() * x.element_size() → (x.numel() if x.dim() else 0) * x.element_size()")  # fmt: skip
exercise.mistake("A tensor with a dimension of size 0 has no elements, and takes no bytes.",
                 "x.numel() * x.element_size() → max(x.numel(), 1) * x.element_size()")  # fmt: skip
exercise.mistake("If a dtype is given, use that one, not the dtype of x.", "dtype.itemsize → x.element_size()")
exercise.mistake("If a dtype is given, use only that one.", "dtype.itemsize → (x.element_size() + dtype.itemsize)")
exercise.mistake("Don't make a tensor just to measure it: "
                 "count the elements instead.", "x.numel() * dtype.itemsize → x.to(dtype).nbytes")
exercise.mistake("Don't make a tensor just to measure it: count the elements instead.",
                 "x.numel() * dtype.itemsize → torch.empty(x.shape, dtype=dtype).nbytes")  # fmt: skip
exercise.mistake("finfo works only for floats; the given dtype may be an integer type.",
                 "dtype.itemsize → torch.finfo(dtype).bits // 8")  # fmt: skip

# %% wrong: the size of the Python object
def tensor_bytes(x, dtype=None):
    import sys

    return sys.getsizeof(x)

# %% wrong: a table that lacks some dtypes
def tensor_bytes(x, dtype=None):
    size = {torch.float32: 4, torch.float64: 8, torch.float16: 2, torch.bfloat16: 2, torch.int64: 8, torch.bool: 1}
    return x.numel() * size[x.dtype]

# %% wrong: the digits of the dtype's name
def tensor_bytes(x, dtype=None):
    digits = "".join(c for c in str(x.dtype) if c.isdigit())
    return x.numel() * max(1, int(digits or 8) // 8)

# %% wrong: at least one element
def tensor_bytes(x, dtype=None):
    return max(1, x.numel()) * x.element_size()

# %% wrong: saves it and looks
def tensor_bytes(x, dtype=None):
    import io

    file = io.BytesIO()
    torch.save(x.clone(), file)
    return file.tell()

# %% wrong: by NumPy, which has no bfloat16
def tensor_bytes(x, dtype=None):
    return x.numpy().nbytes

# %% wrong: not for a tensor without dimensions
def tensor_bytes(x, dtype=None):
    total = 1 if x.dim() else 0
    for size in x.shape:
        total *= size
    return total * x.element_size()

# %% wrong: nbytes, whatever dtype is asked for
def tensor_bytes(x, dtype=None):
    return x.nbytes

# %% wrong: a copy holds nothing else
def tensor_bytes(x, dtype=None):
    copy = torch.empty_like(x, dtype=dtype or x.dtype, memory_format=torch.contiguous_format)
    return copy.untyped_storage().nbytes()

# %% wrong: one element of the other dtype, times the elements of its own
def tensor_bytes(x, dtype=None):
    return x.numel() * max(x.element_size(), (dtype or x.dtype).itemsize)

# %% wrong: sizes from finfo and iinfo, complex dtypes come out half (from the statement)
def tensor_bytes(x: Tensor, dtype: torch.dtype | None = None) -> int:
    """Bytes that the elements of x take, or would take in another dtype."""
    if dtype is None:
        dtype = x.dtype
    if dtype == torch.bool:
        bits = 8
    elif dtype.is_floating_point or dtype.is_complex:
        bits = torch.finfo(dtype).bits
    else:
        bits = torch.iinfo(dtype).bits
    return x.numel() * bits // 8

# %% wrong: converts the tensor to measure it (from the statement)
def tensor_bytes(x: Tensor, dtype: torch.dtype | None = None) -> int:
    """Bytes that the elements of x take, or would take in another dtype."""
    if dtype is not None:
        x = x.to(dtype)
    return x.numel() * x.element_size()

# %% wrong: dimensions of stride 0 count once (from the statement)
def tensor_bytes(x: Tensor, dtype: torch.dtype | None = None) -> int:
    """Bytes that the elements of x take, or would take in another dtype."""
    size = (x.dtype if dtype is None else dtype).itemsize
    n = 1
    for length, stride in zip(x.shape, x.stride()):
        if stride != 0 or length == 0:
            n *= length
    return n * size

# %% wrong: the bits that the name of the dtype says (from the statement)
# unseen: the names of all other dtypes say the right number
def tensor_bytes(x, dtype=None):
    digits = "".join(c if c.isdigit() else " " for c in str(dtype or x.dtype)).split()
    return x.numel() * (int(digits[0]) // 8 if digits else 1)

# %% right: the dtype knows its size
def tensor_bytes(x, dtype=None):
    return (dtype or x.dtype).itemsize * math.prod(x.shape)

# %% right: nbytes, and a ratio
def tensor_bytes(x, dtype=None):
    return x.nbytes if dtype is None else x.nbytes // x.itemsize * torch.empty(0, dtype=dtype).element_size()

# %% right: multiplies a tensor
def tensor_bytes(x, dtype=None):
    return int(torch.tensor(x.numel()) * (x.dtype if dtype is None else dtype).itemsize)

# %% right: row by row
def tensor_bytes(x, dtype=None):
    if x.dim() == 0 or x.device.type != "cpu":
        return x.numel() * (dtype or x.dtype).itemsize
    return sum(tensor_bytes(row, dtype) for row in x)

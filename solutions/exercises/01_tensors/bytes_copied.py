import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of, tensors

exercise = Exercise(
    "In which case is nothing copied? Otherwise, how many elements does the copy have, and how large is each?"
)

cpu, meta = torch.device("cpu"), torch.device("meta")
cuda, second = torch.device("cuda:0"), torch.device("cuda:1")
DTYPES = (
    torch.bool,
    torch.uint8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float8_e4m3fn,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
)
SAME_SIZE = [
    (torch.float32, torch.int32),
    (torch.float16, torch.bfloat16),
    (torch.float64, torch.int64),
]


def moved(student, shape, here, device, dtype, old_dtype=None):
    """The bytes of moving zeros from here to device, and what was allocated to find out; neither need exist here.

    If only the dtype changes, the bytes belong to another requirement, and any number will do.
    """
    from numbers import Real

    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils._python_dispatch import TorchDispatchMode

    old_dtype = old_dtype or dtype
    if here.type == "cpu":
        x = torch.zeros(shape, dtype=old_dtype)
    else:
        with FakeTensorMode():  # all that a tensor on that device has, but the memory
            x = torch.zeros(shape, dtype=old_dtype, device=here)
    copies = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            y = function(*args, **(kwargs or {}))
            if isinstance(y, torch.Tensor) and y.device.type != "meta" and y.numel() >= max(2, x.numel()):
                copies.append(y is not x and not y._is_view())
            return y

    with Watch():
        size = student.bytes_copied(x, device, dtype)
    filled = {"memory of that size was filled": any(copies)}
    if here == device and old_dtype != dtype:
        return {"a number of bytes": isinstance(size, Real), **filled}
    return {"bytes": size, **filled}


def dtype_of(dtype):
    return str(dtype).removeprefix("torch.")


def zeros(shape, old, device, new):
    size = ", ".join(map(str, shape))
    says = f'bytes_copied(torch.zeros({size}, dtype={old}), torch.device("{device}"), {new})'
    return given(torch.zeros(shape, dtype=old), device, new, says=says)


def move(shape, here, device, dtype, old=None):
    x = f"{dtype_of(old or dtype)}{list(shape)} on {here}"
    says = f'bytes_copied(x, torch.device("{device}"), {dtype}), where x is {x}'
    return given(shape, here, device, dtype, old, says=says)


@st.composite
def layouts(draw):
    """Tensors of any layout and their dtype, or whole tensors and another dtype of the same size."""
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    old, new = draw(st.sampled_from(SAME_SIZE))
    dtype = draw(any_of(old, old, new))
    return given(draw(tensors(shape, old, contiguous=None if dtype == old else True)), cpu, dtype)


@st.composite
def views(draw):
    """Parts of a matrix, also with rows that are one row; to another device and another dtype of that size."""
    old, new = draw(st.sampled_from(SAME_SIZE))
    rows, columns = draw(st.integers(2, 6)), draw(st.integers(2, 6))
    x = torch.zeros(rows, columns, dtype=old)
    kind = draw(st.sampled_from(["rows", "columns", "expanded", "transposed"]))
    x = {"rows": x[1:], "columns": x[:, 1:], "expanded": x[:1].expand(rows, columns), "transposed": x[:, 1:].T}[kind]
    return given(x, draw(any_of(cuda, second)), new)


sizes = st.lists(st.integers(1, 6), min_size=1, max_size=3)
exercise.requirement(
    "another dtype: all elements, at their new size",
    points=0.5,
    visible=[
        zeros((4, 8), torch.float32, cpu, torch.bfloat16),
        zeros((3, 5), torch.int8, cpu, torch.float64),
        zeros((2, 3), torch.float32, cpu, torch.uint8),
    ],
    edges={
        "the same size": zeros((4, 8), torch.float32, cpu, torch.int32),
        "two kinds of 16 bits": zeros((4, 8), torch.float16, cpu, torch.bfloat16),
        "another device at once": zeros((3, 5), torch.int8, cuda, torch.float64),
        "truth values": zeros((4, 8), torch.bool, cpu, torch.float32),
        "to truth values": zeros((4, 8), torch.float32, cpu, torch.bool),
        "8 bits": zeros((4, 8), torch.bfloat16, cuda, torch.float8_e4m3fn),
        "complex": zeros((4, 8), torch.float64, cpu, torch.complex128),
        "no elements": zeros((0, 3), torch.float32, cpu, torch.float64),
        "no dimensions": given(torch.tensor(1.0), cpu, torch.float64),
    },
    domain=st.builds(zeros, sizes, any_of(*DTYPES), any_of(cpu, cuda, second), any_of(*DTYPES)).filter(
        lambda case: case.args[0].dtype != case.args[2]
    ),
    hint="The copy has as many elements as x, but each of them takes the bytes of the new dtype.",
)
exercise.requirement(
    "another device, even one that isn't in this machine: all elements; nothing is copied anywhere to work it out",
    points=0.5,
    probe=moved,
    visible=[
        move((4, 8), cpu, cuda, torch.float32),
        move((4, 8), cuda, cpu, torch.bfloat16),
        move((4, 8), cuda, second, torch.float32),
        move((3, 5), cpu, cpu, torch.int32, torch.float16),
    ],
    edges={
        "already there": move((4, 8), cuda, cuda, torch.float32),
        "there, but another dtype": move((4, 8), cuda, cuda, torch.float64, torch.float32),
        "on the CPU, another dtype": move((4, 8), cpu, cpu, torch.float64, torch.float32),
        "no elements": move((0, 3), cpu, cuda, torch.float32),
        "twelve cards": move((4, 8), cuda, torch.device("cuda:11"), torch.float32),
    },
    domain=st.builds(
        move, sizes, any_of(cpu, cuda, second), any_of(cpu, cuda, second), any_of(torch.float32, torch.int8)
    ),
    hint="Compute the number of bytes: neither .to nor any other copy is needed, and the device needn't be in "
         "this machine.",
)
permuted = torch.zeros(4, 8)
exercise.requirement(
    "0 if, and only if, the device and the dtype are both as requested, whatever the layout of x",
    points=0.5,
    visible=[
        zeros((4, 8), torch.float32, cpu, torch.float32),
        given(
            permuted.T, cpu, torch.float32, says='bytes_copied(torch.zeros(4, 8).T, torch.device("cpu"), torch.float32)'
        ),
        zeros((4, 8), torch.float32, cpu, torch.int32),
    ],
    edges={
        "part of a tensor": given(permuted[1:3, 2:5], cpu, torch.float32),
        "one row, shown four times": given(torch.zeros(1, 6).expand(4, 6), cpu, torch.float32),
        "x is on meta": given(torch.zeros(5, 3, device=meta), meta, torch.float32),
        "half precision": given(permuted.half(), cpu, torch.float16),
        "the other half precision": given(permuted.half(), cpu, torch.bfloat16),
        "whole numbers": zeros((4, 8), torch.int64, cpu, torch.int64),
        "x requires a gradient": given(torch.zeros(3, requires_grad=True), cpu, torch.float32),
    },
    domain=layouts(),
    hint="Two properties must already be as requested. The layout of x isn't one of them.",
)
exercise.requirement(
    "for a view: the elements of the view itself, each stored separately in the copy",
    points=0.5,
    visible=[
        given(
            permuted[:1],
            cuda,
            torch.int32,
            says='bytes_copied(torch.zeros(4, 8)[:1], torch.device("cuda:0"), torch.int32)',
        ),
        given(
            torch.zeros(1, 6).expand(4, 6),
            cuda,
            torch.int32,
            says='bytes_copied(torch.zeros(1, 6).expand(4, 6), torch.device("cuda:0"), torch.int32)',
        ),
    ],
    edges={
        "columns": given(permuted[:, 2:5], cuda, torch.int32),
        "transposed": given(permuted.T, cuda, torch.int32),
        "every second": given(permuted[:, ::2], second, torch.int32),
        "one number for all": given(torch.zeros(1).expand(100), cuda, torch.int32),
        "nothing": given(permuted[:, 3:3], cuda, torch.int32),
    },
    domain=views(),
    hint="How many elements does x itself have? The memory behind it doesn't matter.",
)

same = "if x.device == device and x.dtype == dtype:"
needless = "Nothing is copied if x is already on that device and has that dtype: .to returns x itself."
exercise.mistake(needless, f"{same} → if False:")
exercise.mistake(
    "Your code counts the elements at their old size; the copy holds them at the new one.",
    "* dtype.itemsize → * x.element_size()",
    together_with=["x.dtype == dtype: → x.element_size() >= dtype.itemsize:"],
)
exercise.mistake("The device is the same, but the dtype isn't: that takes a copy.", f"{same} → if x.device == device:")
exercise.mistake("The dtype is the same, but the device isn't: that takes a copy.", f"{same} → if x.dtype == dtype:")
exercise.mistake("The device and the dtype must both be as requested, "
                 "not just one of them.", "device and x.dtype → device or x.dtype")
exercise.mistake(
    "The element size is the same, but the dtype isn't: that takes a copy.",
    "x.dtype == dtype: → x.dtype.itemsize == dtype.itemsize:",
)
exercise.mistake("cuda:0 and cuda:1 are two devices.", "x.device == device → x.device.type == device.type")
exercise.mistake(
    "x needn't be on the CPU: compare with the device that it is on.", 'x.device == device → device.type == "cpu"'
)
exercise.mistake(
    "A view in any layout is returned as it is if its device and dtype already match.",
    "x.dtype == dtype: → x.dtype == dtype and x.is_contiguous():",
)
exercise.mistake(
    "Only the elements of the view itself are copied, not all the memory behind it.",
    "x.numel() * dtype.itemsize → x.untyped_storage().nbytes() // x.element_size() * dtype.itemsize",
)
exercise.mistake(
    "Every element of x is stored separately in the copy, even where x repeats a row.",
    "x.numel() * dtype.itemsize → min(x.numel(), x.untyped_storage().nbytes() // x.element_size()) * dtype.itemsize",
)
exercise.mistake("Your code counts elements; each of them takes several bytes.", "x.numel() * dtype.itemsize → x.numel()")
exercise.mistake("Your result is in bits.", "x.numel() * dtype.itemsize → x.numel() * dtype.itemsize * 8")
exercise.mistake(
    "Only the copy takes new memory; x already had its own.",
    "x.numel() * dtype.itemsize → x.numel() * (dtype.itemsize + x.element_size())",
)
exercise.mistake(
    "Converting to a smaller dtype, or to another one of the same size, takes a copy, too.",
    "x.dtype == dtype: → x.element_size() >= dtype.itemsize:",
)

# %% mistake: what it takes more than x
# says: The whole copy is new memory, not only the part by which it's larger than x.
def bytes_copied(x, device, dtype):
    return 0 if (x.device, x.dtype) == (device, dtype) else x.numel() * (dtype.itemsize - x.element_size())

# %% mistake: makes the copy
# says: Compute the number of bytes; don't call .to: the device needn't be in this machine.
def bytes_copied(x, device, dtype):
    y = x.to(device, dtype)
    return 0 if y is x else y.numel() * y.element_size()

# %% mistake: makes the copy where it can
# says: Your code makes a copy to find out how large it is: compute the size instead.
def bytes_copied(x, device, dtype):
    if x.device == device and x.dtype == dtype:
        return 0
    return torch.zeros_like(x, dtype=dtype, memory_format=torch.contiguous_format).nbytes

# %% wrong: only what is larger is a copy
def bytes_copied(x, device, dtype):
    if x.device == device and dtype.itemsize <= x.element_size():
        return 0
    return x.numel() * dtype.itemsize

# %% wrong: old and new together where the dtype changes
def bytes_copied(x, device, dtype):
    if x.device == device and x.dtype == dtype:
        return 0
    return x.numel() * dtype.itemsize + (x.numel() * x.element_size() if x.dtype != dtype else 0)

# %% wrong: asks a GPU that is not there
def bytes_copied(x, device, dtype):
    if x.device == device and x.dtype == dtype:
        return 0
    return torch.empty(x.shape, dtype=dtype, device=device).nbytes

# %% wrong: the dtype has to be the larger one
def bytes_copied(x, device, dtype):
    if x.device == device and x.dtype == dtype:
        return 0
    return x.numel() * max(dtype.itemsize, x.element_size())

# %% wrong: a table of sizes
def bytes_copied(x, device, dtype):
    if x.device == device and x.dtype == dtype:
        return 0
    return x.numel() * {torch.float64: 8, torch.int64: 8, torch.float16: 2, torch.bfloat16: 2, torch.bool: 1}.get(dtype, 4)

# %% wrong: compares only the kind of device, not its number (from the statement)
def bytes_copied(x: Tensor, device: torch.device, dtype: torch.dtype) -> int:
    """Bytes of new memory that x.to(device, dtype) fills: 0 if it returns x itself."""
    if x.device.type == device.type and x.dtype == dtype:
        return 0
    return x.numel() * dtype.itemsize

# %% wrong: dtypes of the same width count as no copy (from the statement)
def bytes_copied(x: Tensor, device: torch.device, dtype: torch.dtype) -> int:
    """Bytes of new memory that x.to(device, dtype) fills: 0 if it returns x itself."""
    if device == x.device and dtype.itemsize == x.element_size():
        return 0
    return x.numel() * dtype.itemsize

# %% wrong: makes the copy where the device is the tensor's own (from the statement)
def bytes_copied(x: Tensor, device: torch.device, dtype: torch.dtype) -> int:
    """Bytes of new memory that x.to(device, dtype) fills: 0 if it returns x itself."""
    if device != x.device:
        return x.numel() * dtype.itemsize
    y = x.to(dtype)
    return 0 if y is x else y.numel() * y.element_size()

# %% right: asks whether anything differs
def bytes_copied(x, device, dtype):
    return (x.device, x.dtype) != (device, dtype) and x.numel() * dtype.itemsize or 0

# %% right: makes a copy that weighs nothing
def bytes_copied(x, device, dtype):
    if x.dtype is dtype and x.device == device:
        return 0
    return torch.empty(x.shape, dtype=dtype, device="meta").nbytes

# %% right: by the parts of the device
def bytes_copied(x, device, dtype):
    same_place = x.device.type == device.type and x.device.index == device.index
    bytes_each = torch.empty((), dtype=dtype).element_size()
    return int(not (same_place and x.dtype == dtype)) * x.numel() * bytes_each

# %% right: by the names
def bytes_copied(x, device, dtype):
    total = dtype.itemsize
    for size in x.size():
        total *= size
    return total if (str(x.device), str(x.dtype)) != (str(device), str(dtype)) else 0

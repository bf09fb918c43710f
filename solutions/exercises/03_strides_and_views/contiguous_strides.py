from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given

exercise = Exercise("Go from right to left, and keep track of the number of elements passed so far.")


def strides_of(student, shape):
    """The strides, and how often PyTorch made or changed a tensor on the way."""
    from torch.utils._python_dispatch import TorchDispatchMode

    calls = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            calls.append(function)
            return function(*args, **(kwargs or {}))

    with Watch():
        found = student.contiguous_strides(shape)
    return {"the strides": found, "operations on tensors": len(calls)}


def shape(*sizes):
    return given(sizes, says=f"contiguous_strides({sizes})")


sizes = st.integers(1, 12)
exercise.requirement(
    "a step along a dimension skips all the elements of the dimensions to its right; the last stride is 1",
    points=0.5,
    visible=[given((2, 3, 4)), given((7,)), given((3, 1, 5)), given(())],
    edges={
        "two dimensions": given((5, 2)),
        "one element": given((1,)),
        "sizes of 1": given((3, 1, 5, 1)),
        "all of size 1": given((1, 1, 1)),
        "sizes of 1 in front": given((1, 1, 4)),
        "equal sizes": given((3, 3, 3)),
        "many dimensions": given((2,) * 12),
    },
    domain=st.lists(sizes | st.just(1), min_size=1, max_size=6).map(lambda chosen: given(tuple(chosen))),
)
exercise.requirement(
    "the strides are computed from the sizes without making a tensor, even for shapes that are too large for any machine's memory",
    points=0.5,
    probe=strides_of,
    visible=[shape(10**9, 10**9, 10**9, 10**9), shape(7, 10**9 + 7, 10**9 + 9), shape(2, 3)],
    edges={
        "beyond 64 bits": shape(10**12, 10**12, 10**12, 10**12),
        "odd numbers, beyond what a float holds": shape(3, 2**53 + 1),
        "products beyond what a float holds": shape(5, 3**20, 3**21, 7),
        "a size of 1 among large ones": shape(10**15, 1, 10**15 + 1),
        "large in front": shape(2**70 + 1, 2),
    },
    domain=st.lists(st.integers(10**9, 10**13), min_size=3, max_size=5).map(lambda chosen: shape(*chosen)),
    hint="Don't make a tensor, and don't use floats: a Python integer can be as large as you like.",
)

STEP = "strides.append(step)\n        step *= size"
exercise.mistake("Your strides are those of a tensor in which the first index changes fastest; in row-major order the last one does.",
                 "reversed(shape): → shape:", "tuple(reversed(strides)) → tuple(strides)")  # fmt: skip
exercise.mistake("Your strides count the dimension itself; a step skips only the dimensions to its right, so the last stride is 1.",
                 f"{STEP} → step *= size\n        strides.append(step)")  # fmt: skip
exercise.mistake("Your strides are right but in the wrong order: the last dimension has the smallest one.",
                 "tuple(reversed(strides)) → tuple(strides)")  # fmt: skip
exercise.mistake("A step skips the elements of all dimensions to its right, not only of the next one.", "step *= size → step = size")
exercise.mistake("Your code adds the sizes: multiply them.", "step *= size → step += size")
exercise.mistake("Your result is in bytes; strides count elements.", "step = [], 1 → step = [], 4")
exercise.mistake("Your result has one stride too few: the last dimension has one, too.", "tuple(reversed(strides)) → tuple(reversed(strides))[:-1]")
exercise.mistake("Your result is the number of elements; the exercise asks for the strides.", "return tuple(reversed(strides)) → return step")
exercise.mistake("Your code uses floats, which can't represent every integer above 2**53: use integers.", "step = [], 1 → step = [], 1.0",
                 "strides.append(step) → strides.append(int(step))")  # fmt: skip

# %% mistake: the number of elements as well
# says: Your result has one stride too many: the number of elements isn't a stride.
def contiguous_strides(shape):
    strides = [1]
    for size in reversed(shape):
        strides.insert(0, strides[0] * size)
    return tuple(strides)

# %% mistake: asks a tensor
# says: Don't make a tensor: if you compute with the sizes alone, no shape is too large.
def contiguous_strides(shape):
    return torch.empty(shape, device="meta").stride()

# %% mistake: asks a tensor, and falls back on the numbers
# says: Don't make a tensor: compute with the sizes alone.
def contiguous_strides(shape):
    try:
        return torch.empty(shape, device="meta").stride()
    except (RuntimeError, TypeError, OverflowError):
        return tuple(math.prod(shape[dim + 1 :]) for dim in range(len(shape)))

# %% wrong: a tensor without dimensions gets a step
def contiguous_strides(shape):
    strides = [1]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * size)
    return tuple(strides)

# %% wrong: no step where the size is 1
def contiguous_strides(shape):
    return tuple(0 if size == 1 else math.prod(shape[dim + 1 :]) for dim, size in enumerate(shape))

# %% wrong: divides as floats
def contiguous_strides(shape):
    left, strides = math.prod(shape), []
    for size in shape:
        left = int(left / size)
        strides.append(left)
    return tuple(strides)

# %% wrong: multiplies in a tensor
def contiguous_strides(shape):
    sizes = torch.tensor([*shape[1:], 1][: len(shape)], dtype=torch.float64)
    return tuple(int(step) for step in sizes.flip(0).cumprod(0).flip(0))

# %% wrong: in NumPy, of 64 bits
def contiguous_strides(shape):
    import numpy as np

    return tuple(int(n) for n in np.cumprod([1, *shape[:0:-1]])[::-1]) if shape else ()

# %% wrong: cumulated products in int64, which overflow (from the statement)
import numpy as np


def contiguous_strides(shape):
    """Strides, in elements, of a tensor of that shape whose elements lie in reading order."""
    if len(shape) == 0:
        return ()
    sizes = np.array([1, *shape[:0:-1]], dtype=np.int64)
    return tuple(np.cumprod(sizes)[::-1].tolist())

# %% wrong: asks an empty tensor on the meta device (from the statement)
import torch


def contiguous_strides(shape):
    """Strides, in elements, of a tensor of that shape whose elements lie in reading order."""
    return torch.empty(shape, device="meta").stride()

# %% wrong: divides with floats, exact only up to 2**53 (from the statement)
import math


def contiguous_strides(shape):
    """Strides, in elements, of a tensor of that shape whose elements lie in reading order."""
    left = math.prod(shape)
    strides = []
    for n in shape:
        left = left / n
        strides.append(int(left))
    return tuple(strides)

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
    return tuple(strides)

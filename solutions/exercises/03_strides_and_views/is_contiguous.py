import math

from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given

exercise = Exercise("Go from right to left with the stride that a contiguous tensor would have, and compare.")


def by_numbers(student, shape, strides):
    """The answer, and how often PyTorch made or changed a tensor on the way."""
    from torch.utils._python_dispatch import TorchDispatchMode

    calls = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            calls.append(function)
            return function(*args, **(kwargs or {}))

    with Watch():
        found = student.is_contiguous(shape, strides)
    return {"the answer": found, "operations on tensors": len(calls)}


def asked(shape, strides):
    return given(shape, strides, says=f"is_contiguous({shape}, {strides})")


def in_order(shape):
    return [math.prod(shape[dim + 1 :]) for dim in range(len(shape))]


@st.composite
def walks(draw, ones=False):
    """Strides of new tensors, half of them changed: permuted, with gaps, repeated.

    `ones`: with dimensions of size 1, and the others are permuted or twice as large, or as they were.
    """
    shape = draw(st.lists(st.integers(2, 4), min_size=1, max_size=3))
    strides = in_order(shape)
    change = draw(st.sampled_from(["none"] * 4 + ["order", "larger"] + ["gap", "zero", "any"] * (not ones)))
    if change == "order":
        strides = draw(st.permutations(strides))
    elif change == "larger":
        strides = [2 * step for step in strides]
    elif change != "none":
        place = draw(st.integers(0, len(shape) - 1))
        strides[place] = {"gap": strides[place] + 1, "zero": 0, "any": draw(st.integers(0, 30))}[change]
    if ones:
        for _ in range(draw(st.integers(1, 2))):
            place = draw(st.integers(0, len(shape)))
            shape.insert(place, 1)
            strides.insert(place, draw(st.integers(0, 99)))
    return given(tuple(shape), tuple(strides))


@st.composite
def without_elements(draw):
    """Shapes with a 0, and now and then one without, whose strides are far too large by any rule."""
    if draw(st.integers(0, 2)) == 0:
        shape = draw(st.lists(st.integers(2, 5), min_size=2, max_size=3))
        return given(tuple(shape), (99,) * len(shape))
    shape = draw(st.lists(st.integers(2, 5), max_size=3))
    shape.insert(draw(st.integers(0, len(shape))), 0)
    return given(tuple(shape), tuple(draw(st.integers(0, 20)) for _ in shape))


exercise.requirement(
    "True if the elements are in row-major order without gaps, otherwise False",
    points=0.75,
    visible=[given((4, 4), (4, 1)), given((4, 4), (1, 4)), given((4, 3), (4, 1)), given((3, 4), (0, 1)),
             given((2, 3), (5, 0)), given((2, 3, 4), (13, 4, 1)), given((), ())],
    edges={
        "no dimensions": given((), ()),
        "one dimension": given((5,), (1,)),
        "one dimension, every other slot": given((5,), (2,)),
        "one number, again and again": given((5,), (0,)),
        "three dimensions": given((2, 3, 4), (12, 4, 1)),
        "all steps twice as large": given((2, 3, 4), (24, 8, 2)),
        "a gap on the left": given((3, 2, 4), (9, 4, 1)),
        "a gap in the middle": given((2, 3, 4), (15, 5, 1)),
        "in falling order, and of the right length": given((3, 2, 2), (3, 3, 2)),
        "the right length, one step 0": given((2, 2), (3, 0)),
        "all slots, in another order": given((2, 3, 4), (4, 8, 1)),
        "gaps and overlaps that make up for each other": given((2, 2, 3), (7, 2, 1)),
        "the first dimension varies fastest": given((2, 3, 4), (1, 2, 6)),
        "a square, transposed": given((3, 3, 3), (3, 9, 1)),
        "every other slot": given((2, 3), (6, 2)),
        "all steps 0": given((3, 4), (0, 0)),
        "the steps overlap": given((3, 4), (2, 1)),
    },
    domain=walks(),
    hint="A step along a dimension must skip exactly the elements of the dimensions to its right. What does that mean for the last stride?",
)
exercise.requirement(
    "the stride of a dimension of size 1 may be anything",
    points=0.5,
    visible=[given((4, 1), (1, 77)), given((1, 2, 3), (5, 3, 1)), given((4, 1), (4, 1)), given((2, 1, 3), (3, 0, 1))],
    edges={
        "all of size 1": given((1, 1), (8, 3)),
        "one of size 1": given((1,), (5,)),
        "one of size 1, with step 0": given((1,), (0,)),
        "two beside each other": given((2, 1, 1, 3), (3, 9, 7, 1)),
        "on the right": given((2, 3, 1), (3, 1, 40)),
        "on the right, and a gap": given((2, 3, 1), (6, 2, 1)),
        "in the middle, and a gap": given((2, 1, 3), (4, 99, 1)),
        "on the left, and out of order": given((1, 2, 3), (6, 1, 2)),
        "the others would fit with its step": given((2, 1), (5, 5)),
        "the one on the left is in order": given((3, 1, 2), (2, 2, 1)),
    },
    domain=walks(ones=True),
    hint="You never take a step along a dimension of size 1, so its stride doesn't matter.",
)
exercise.requirement(
    "a tensor without elements is contiguous, whatever its strides are",
    points=0.25,
    visible=[given((0, 3), (5, 7)), given((3, 0), (5, 7)), given((3, 2), (5, 7))],
    edges={
        "in the middle": given((2, 0, 3), (1, 9, 4)),
        "nothing but 0": given((0,), (4,)),
        "all 0": given((0, 0), (3, 2)),
        "steps of 0": given((0, 5), (0, 0)),
        "out of order on the right of it": given((0, 2, 3), (6, 1, 2)),
        "out of order on its left": given((2, 3, 0), (1, 2, 5)),
    },
    domain=without_elements(),
    hint="If there are no elements, none of them is out of order.",
)
exercise.requirement(
    "the answer is computed from the numbers without making a tensor, even for strides that don't fit into 64 bits",
    points=0.5,
    probe=by_numbers,
    visible=[asked((2, 3), (3 * 10**30, 10**30)), asked((2, 3), (3, 1)), asked((2, 3), (10**30, 1)),
             asked((2, 0), (10**30, 1))],
    edges={
        "beyond what a float tells apart": asked((2, 3), (3 + 2**70, 1)),
        "in order": asked((4, 5, 6), (30, 6, 1)),
        "another order": asked((4, 5), (1, 4)),
        "the last step is huge": asked((3,), (2**64 + 1,)),
        "huge steps, and no elements": asked((2, 3, 0), (1, 2**65, 2**64)),
    },
    domain=st.builds(
        lambda a, b, large, step: asked((a, b), (large or b * step, step)),
        st.integers(2, 5), st.integers(2, 5), st.sampled_from([0, 0, 10**20, 10**40]), st.sampled_from([1, 1, 10**19]),
    ),
    hint="Don't make a tensor: compare integers.",
)  # fmt: skip

exercise.mistake("You never take a step along a dimension of size 1, so its stride may be anything.", "shape[dim] != 1 and strides → strides")
exercise.mistake("A tensor without elements is always contiguous, whatever its strides are.", "if 0 in shape: → if False:")
exercise.mistake("Your code checks only whether the first size "
                 "is 0; if any size is 0, there are no elements.", "if 0 in shape: → if shape and shape[0] == 0:")
exercise.mistake("Your code checks only whether the last size "
                 "is 0; if any size is 0, there are no elements.", "if 0 in shape: → if shape and shape[-1] == 0:")
exercise.mistake("Your rule is for tensors in which the first index changes fastest; in row-major order the last one does.", "reversed(range(len(shape))) → range(len(shape))")
exercise.mistake("Your code accepts strides that are too large: those leave gaps between the elements.",
                 "strides[dim] != step → strides[dim] < step")  # fmt: skip
exercise.mistake("A step skips the elements of all dimensions to its right, not only of the next one.", "step *= shape[dim] → step = shape[dim]")
exercise.mistake("Your code accepts any last stride: unless its dimension has size 1, it must be 1.",
                 "step = 1 → step = next((s for n, s in zip(shape[::-1], strides[::-1], strict=True) if n != 1), 1)")  # fmt: skip
exercise.mistake("Your code accepts strides of 0, which use the same slots again and again: that's not row-major order.", "strides[dim] != step → strides[dim] not in (0, step)")

# %% mistake: upside down
# says: Your result is reversed: True means that the tensor is contiguous.
def is_contiguous(shape, strides):
    if 0 in shape:
        return False
    step = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != step:
            return True
        step *= size
    return False

# %% mistake: no huge stride is right
# says: Even a stride that doesn't fit into 64 bits makes no difference if there are no elements.
def is_contiguous(shape, strides):
    if max((0, *strides)) >= 2**63:
        return False
    if 0 in shape:
        return True
    step = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != step:
            return False
        step *= size
    return True

# %% mistake: looks at the last step only
# says: Your code checks only the last stride: check the others, too.
def is_contiguous(shape, strides):
    return 0 in shape or not shape or strides[-1] == 1

# %% mistake: asks a tensor
# says: Don't make a tensor: if you compute with the numbers alone, no stride is too large.
def is_contiguous(shape, strides):
    return torch.empty_strided(shape, strides, device="meta").is_contiguous()

# %% mistake: asks a tensor where that is possible
# says: Don't make a tensor: compute with the numbers alone.
def is_contiguous(shape, strides):
    if max(strides, default=0) > 10**9:
        return False
    return torch.empty_strided(shape, strides, device="meta").is_contiguous()

# %% mistake: the rule between neighbors without its allowances
# says: Leave out dimensions of size 1 before you compare neighbors: the rule holds for the dimensions that remain.
def is_contiguous(shape, strides):
    if 0 in shape or not shape:
        return True
    fits = all(strides[i] == strides[i + 1] * shape[i + 1] or shape[i] == 1 for i in range(len(shape) - 1))
    return fits and (strides[-1] == 1 or shape[-1] == 1)

# %% wrong: the span of the storage is filled
def is_contiguous(shape, strides):
    if 0 in shape:
        return True
    return sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + 1 == math.prod(shape)

# %% wrong: no slot twice and none left out, in any order
def is_contiguous(shape, strides):
    if max(strides, default=0) > 10**9:
        return False
    slots = {sum(i * s for i, s in zip(index, strides, strict=True)) for index in itertools.product(*map(range, shape))}
    return slots == set(range(math.prod(shape)))

# %% wrong: fails without dimensions
def is_contiguous(shape, strides):
    if 0 in shape:
        return True
    kept = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1] or [(1, strides[-1])]
    return (kept[-1][1] == 1 or kept[-1][0] == 1) and all(
        left[1] == right[1] * right[0] for left, right in itertools.pairwise(kept)
    )

# %% wrong: in falling order, and as long in all as the elements take
def is_contiguous(shape, strides):
    if 0 in shape:
        return True
    kept = [(n, s) for n, s in zip(shape, strides, strict=True) if n > 1]
    steps = [s for _, s in kept]
    span = sum((n - 1) * s for n, s in kept) + 1
    return steps == sorted(steps, reverse=True) and span == math.prod(shape)

# %% wrong: steps that fall, down to 1
def is_contiguous(shape, strides):
    kept = [s for n, s in zip(shape, strides, strict=True) if n > 1]
    return 0 in shape or not kept or (kept == sorted(kept, reverse=True) and kept[-1] == 1)

# %% wrong: compares floats
def is_contiguous(shape, strides):
    if 0 in shape:
        return True
    step = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and not math.isclose(stride / step, 1, rel_tol=0.2):
            return False
        step *= size
    return True

# %% wrong: strides that don't grow, and as many slots as elements from the first to the last (from the statement)
import math


def is_contiguous(shape, strides):
    """Whether reading order is storage order without gaps. Sizes of 1 and empty tensors as in PyTorch."""
    if 0 in shape:
        return True
    dims = [(n, s) for n, s in zip(shape, strides) if n > 1]
    ordered = all(a[1] >= b[1] for a, b in zip(dims, dims[1:]))
    slots = 1 + sum((n - 1) * s for n, s in dims)
    return ordered and slots == math.prod(shape)

# %% wrong: notices an empty dimension only when it comes by it (from the statement)
def is_contiguous(shape, strides):
    """Whether reading order is storage order without gaps. Sizes of 1 and empty tensors as in PyTorch."""
    expected = 1
    for n, s in zip(reversed(shape), reversed(strides)):
        if n == 0:
            return True
        if n != 1 and s != expected:
            return False
        expected *= n
    return True

# %% wrong: lets PyTorch decide, with a tensor without memory (from the statement)
import torch


def is_contiguous(shape, strides):
    """Whether reading order is storage order without gaps. Sizes of 1 and empty tensors as in PyTorch."""
    return torch.empty_strided(tuple(shape), tuple(strides), device="meta").is_contiguous()

# %% wrong: strides that fall, and from the first slot to the last as many as there are elements (from the statement)
# unseen: only rare strides have gaps and overlaps that make up for each other
def is_contiguous(shape, strides):
    kept = [(size, step) for size, step in zip(shape, strides) if size != 1]
    if 0 in shape or not kept:
        return True
    falling = all(left[1] >= right[1] for left, right in itertools.pairwise(kept))
    return falling and kept[-1][1] == 1 and 1 + sum((n - 1) * step for n, step in kept) == math.prod(shape)

# %% right: drops sizes of 1 and compares
def is_contiguous(shape, strides):
    if math.prod(shape) == 0:
        return True
    kept = [(n, s) for n, s in zip(shape, strides, strict=True) if n > 1]
    sizes = [n for n, _ in kept]
    return [s for _, s in kept] == [math.prod(sizes[dim + 1 :]) for dim in range(len(sizes))]

# %% right: walks it
def is_contiguous(shape, strides):
    if 0 in shape:
        return True
    indices = itertools.product(*map(range, shape))
    return all(n == sum(i * s for i, s in zip(index, strides, strict=True)) for n, index in enumerate(indices))

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

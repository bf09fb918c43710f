from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given

exercise = Exercise("How many elements does the result have, batch dimensions included? How many FLOPs does each of them cost?")

sizes = st.integers(1, 9)


@st.composite
def matrices(draw):
    b, d, k = draw(st.tuples(sizes, st.integers(0, 9), sizes))
    return given((b, d), (d, k))


@st.composite
def products(draw, one_side=False):
    """Shapes with leading dimensions that broadcast: equal, 1 on one side, or missing on one side."""
    b, d, k = draw(st.tuples(sizes, sizes, sizes))
    pairs = draw(st.lists(st.tuples(st.integers(0, 6), st.sampled_from(["both", "x", "w"])), min_size=1, max_size=3))
    x = [n if which != "w" else 1 for n, which in pairs]
    w = [n if which != "x" else 1 for n, which in pairs]
    missing = draw(st.integers(0, len(pairs)))
    shorter = draw(st.sampled_from(["x", "w"]))
    if shorter == "x":
        x = x[missing:]
    else:
        w = w[missing:]
    return given((*x, b, d), (*w, d, k))


@st.composite
def misfits(draw):
    """Inner sizes that differ, whatever the leading dimensions are; 1 does not broadcast there."""
    shapes = draw(products() | matrices())
    (*x_batch, b, d), w = shapes.args
    other = draw(st.integers(0, 9).filter(lambda n: n != d))
    return given((*x_batch, b, other), w)


exercise.requirement(
    "multiplying two matrices costs 2 · b · d · k FLOPs",
    points=0.5,
    visible=[given((3, 4), (4, 5)), given((2, 2), (2, 2)), given((10**7 + 1, 10**7 + 3), (10**7 + 3, 10**7 + 7))],
    edges={
        "inner size 0: outputs, and nothing to add": given((3, 0), (0, 5)),
        "no outputs": given((0, 4), (4, 5)),
        "one number": given((1, 1), (1, 1)),
        "far beyond 64 bits": given((10**9, 10**9), (10**9, 10**9)),
    },
    domain=matrices(),
)
exercise.requirement(
    "batch dimensions broadcast: the sizes in the two shapes may be equal, or one of the two may be 1 or missing",
    points=1,
    visible=[
        given((2, 3, 4), (4, 5)),
        given((3, 4), (2, 4, 5)),
        given((7, 3, 4), (7, 4, 5)),
        given((2, 1, 3, 4), (6, 4, 5)),
        given((0, 3, 4), (1, 4, 5)),
    ],
    edges={
        "1 and 0": given((1, 3, 4), (0, 4, 5)),
        "0 and 1": given((0, 3, 4), (1, 4, 5)),
        "1 on both sides": given((1, 3, 4), (1, 4, 5)),
        "different numbers, lined up from the right": given((2, 3, 4, 5), (3, 5, 6)),
        "1 on x, 1 on w": given((4, 1, 2, 3), (1, 5, 3, 2)),
        "many": given((2, 1, 2, 1, 2, 3, 4), (2, 1, 2, 1, 4, 5)),
    },
    domain=products(),
)
exercise.requirement(
    "if the inner sizes differ, a ValueError is raised",
    points=0.5,
    visible=[given((3, 4), (5, 6)), given((2, 3, 1), (4, 6)), given((3, 4), (4, 6))],
    edges={
        "1 and d: the inner size does not broadcast": given((3, 1), (4, 5)),
        "d and 1": given((3, 4), (1, 5)),
        "0 and d": given((3, 0), (4, 5)),
        "the sizes would fit the other way around": given((3, 4), (5, 4)),
        "an error also where there is nothing to compute": given((0, 3, 4), (5, 6)),
    },
    domain=misfits() | products(),
    parts=["error"],
    hint="Compare the inner sizes before anything else, whatever the batch dimensions are.",
)

exercise.mistake("Your code counts only the multiplications: a multiply-add is two FLOPs.", "return 2 * batch → return batch")
exercise.mistake("Your code counts two FLOPs for each element of the result; each of them takes d multiply-adds.", "b * d * k → b * k")
exercise.mistake("Your code counts d twice: it's the same dimension in both matrices.", "b * d * k → b * d * d * k")
exercise.mistake(
    "Your code leaves out the first addition of each sum: by convention, every multiply-add counts as two FLOPs.",
    "2 * batch * b * d * k → batch * b * (2 * d - 1) * k",
)
exercise.mistake(
    "Your code ignores the batch dimensions: there's one matrix product for each combination of batch indices.", "2 * batch * b → 2 * b"
)
exercise.mistake(
    "If both shapes have the same batch dimension, count it once: each matrix of x is multiplied by one matrix of w, not by all of them.",
    "torch.broadcast_shapes(tuple(x_batch), tuple(w_batch)) → (*x_batch, *w_batch)",
)
exercise.mistake(
    "w may have batch dimensions that x lacks: count them, too.",
    "torch.broadcast_shapes(tuple(x_batch), tuple(w_batch)) → x_batch",
)
exercise.mistake(
    "x may have batch dimensions that w lacks: count them, too.",
    "torch.broadcast_shapes(tuple(x_batch), tuple(w_batch)) → w_batch",
)
exercise.mistake("Raise a ValueError if the inner sizes differ.", "if d != inner → if False")
exercise.mistake("You raised a different error: the exercise asks for a ValueError.", "raise ValueError( → raise RuntimeError(")

# %% mistake: the error that PyTorch raises
# says: You raised a different error: the exercise asks for a ValueError.
def matmul_flops(x_shape, w_shape):
    y = torch.empty(x_shape, device="meta") @ torch.empty(w_shape, device="meta")
    return y.numel() * x_shape[-1] * 2

# %% wrong: takes both batches to be equal, or one to be empty
def matmul_flops(x_shape, w_shape):
    if x_shape[-1] != w_shape[-2]:
        raise ValueError("inner sizes differ")
    batch = max(x_shape[:-2], w_shape[:-2], key=len)
    return 2 * math.prod(batch) * x_shape[-2] * x_shape[-1] * w_shape[-1]

# %% wrong: lines batches up from the left
def matmul_flops(x_shape, w_shape):
    if x_shape[-1] != w_shape[-2]:
        raise ValueError("inner sizes differ")
    pairs = itertools.zip_longest(x_shape[:-2], w_shape[:-2], fillvalue=1)
    return 2 * math.prod(max(p) for p in pairs) * x_shape[-2] * x_shape[-1] * w_shape[-1]

# %% wrong: the larger of two sizes that broadcast
def matmul_flops(x_shape, w_shape):
    (*x_batch, b, d), (*w_batch, inner, k) = x_shape, w_shape
    if d != inner:
        raise ValueError("inner sizes differ")
    pairs = itertools.zip_longest(x_batch[::-1], w_batch[::-1], fillvalue=1)
    return math.prod(map(max, pairs)) * 2 * b * d * k

# %% wrong: in the 64 bits that NumPy counts in
def matmul_flops(x_shape, w_shape):
    import numpy as np

    if x_shape[-1] != w_shape[-2]:
        raise ValueError("the inner sizes differ")
    batch = np.broadcast_shapes(x_shape[:-2], w_shape[:-2])
    return 2 * int(np.prod([*batch, *x_shape[-2:], w_shape[-1]]))

# %% wrong: a shape with a zero in it returns 0 before the inner sizes are compared (from the statement)
# unseen: only the hidden inputs have a size of 0 as well as inner sizes that differ
def matmul_flops(x_shape: tuple[int, ...], w_shape: tuple[int, ...]) -> int:
    if 0 in x_shape or 0 in w_shape:
        return 0  # nothing to multiply
    if x_shape[-1] != w_shape[-2]:
        raise ValueError("the inner sizes differ")
    batch = torch.broadcast_shapes(x_shape[:-2], w_shape[:-2])
    return 2 * math.prod(batch) * x_shape[-2] * x_shape[-1] * w_shape[-1]

# %% wrong: multiplies in floating point, the last digits of a large count are off (from the statement)
def matmul_flops(x_shape: tuple[int, ...], w_shape: tuple[int, ...]) -> int:
    if x_shape[-1] != w_shape[-2]:
        raise ValueError("inner sizes differ")
    flops = 2.0
    for n in torch.broadcast_shapes(x_shape[:-2], w_shape[:-2]):
        flops *= n
    return int(flops * x_shape[-2] * x_shape[-1] * w_shape[-1])

# %% wrong: broadcast by max, so a batch dimension of 0 against 1 becomes 1 (from the statement)
from itertools import zip_longest


def matmul_flops(x_shape: tuple[int, ...], w_shape: tuple[int, ...]) -> int:
    *xb, b, d = x_shape
    *wb, d2, k = w_shape
    if d != d2:
        raise ValueError(f"inner sizes differ: {d} and {d2}")
    n = 1
    for p, q in zip_longest(reversed(xb), reversed(wb), fillvalue=1):
        n *= max(p, q)
    return 2 * n * b * d * k

# %% right: the outputs of a product without memory
def matmul_flops(x_shape, w_shape):
    (*x_batch, b, d), (*w_batch, inner, k) = x_shape, w_shape
    if d != inner:
        raise ValueError("these cannot be multiplied")
    y = (torch.empty(*x_batch, 1, device="meta") * torch.empty(*w_batch, 1, device="meta"))
    return y.numel() * b * d * k * 2

# %% right: broadcasts by hand
def matmul_flops(x_shape, w_shape):
    if list(x_shape)[-1] != list(w_shape)[-2]:
        raise ValueError("inner sizes differ")
    total = 2 * x_shape[-2] * x_shape[-1] * w_shape[-1]
    pairs = itertools.zip_longest(reversed(x_shape[:-2]), reversed(w_shape[:-2]), fillvalue=1)
    for a, b in pairs:
        total *= b if a == 1 else a
    return total

# %% right: a subclass of ValueError
class ShapeError(ValueError):
    pass

def matmul_flops(x_shape, w_shape):
    if x_shape[-1] != w_shape[-2]:
        raise ShapeError
    batch = torch.broadcast_shapes(x_shape[:-2], w_shape[:-2])
    return math.prod((*batch, 2, *x_shape[-2:], w_shape[-1]))

# %% equivalent: torch.broadcast_shapes(tuple(x_batch), tuple(w_batch)) → torch.broadcast_shapes(tuple(w_batch), tuple(x_batch))
# why: broadcasting does not depend on the order

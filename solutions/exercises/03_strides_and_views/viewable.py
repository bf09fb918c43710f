from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given

exercise = Exercise("Which neighboring dimensions don't merge? No new dimension may cross the boundary between them.")


def by_numbers(student, shape, strides, new_shape):
    """The answer, and how often PyTorch made or changed a tensor on the way."""
    from torch.utils._python_dispatch import TorchDispatchMode

    calls = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            calls.append(function)
            return function(*args, **(kwargs or {}))

    with Watch():
        found = student.viewable(shape, strides, new_shape)
    return {"the answer": found, "operations on tensors": len(calls)}


def asked(shape, strides, new_shape):
    return given(shape, strides, new_shape, says=f"viewable({shape}, {strides}, {new_shape})")


def in_order(shape, order=None):
    """Strides without gaps; `order`: the dimensions, beginning with the one that varies slowest."""
    strides, step = [0] * len(shape), 1
    for dim in reversed(order or range(len(shape))):
        strides[dim] = step
        step *= shape[dim]
    return tuple(strides)


def cut(draw, numbers):
    """Products of neighbors: [2, 3, 2] may become [6, 2]."""
    products, current = [], 1
    for number in numbers:
        current *= number
        if draw(st.booleans()):
            products.append(current)
            current = 1
    return tuple(products if current == 1 else [*products, current])


def walk(draw, shape):
    """Strides: of a new tensor, permuted, of every other element, with a gap, repeated."""
    strides = list(in_order(shape))
    change = draw(st.sampled_from(["order", "order", "larger", "gap", "zero", "none"]))
    if change == "order":
        strides = list(in_order(shape, draw(st.permutations(range(len(shape))))))
    elif change == "larger":
        strides = [3 * step for step in strides]
    elif change != "none":
        place = draw(st.integers(0, len(shape) - 1))
        strides[place] = strides[place] + shape[place] if change == "gap" else 0
    return tuple(strides)


@st.composite
def counted(draw):
    """New tensors, seen as shapes of as many elements or not."""
    numbers = draw(st.lists(st.integers(2, 4), min_size=1, max_size=4))
    shape, new = cut(draw, numbers), list(cut(draw, draw(st.permutations(numbers))))
    if draw(st.booleans()):
        place = draw(st.integers(0, len(new) - 1))
        new[place] += draw(st.sampled_from([-1, 1, new[place]]))
    return given(shape, in_order(shape), tuple(new))


@st.composite
def merged(draw):
    """Whole dimensions are merged with their neighbors, or stay."""
    shape = tuple(draw(st.lists(st.integers(2, 4), min_size=2, max_size=4)))
    return given(shape, walk(draw, shape), cut(draw, shape))


@st.composite
def regrouped(draw):
    """Dimensions are split and merged at once."""
    shape = tuple(draw(st.lists(st.sampled_from([2, 3, 4, 6]), min_size=2, max_size=3)))
    primes = [p for size in shape for p in {4: [2, 2], 6: draw(st.permutations([2, 3]))}.get(size, [size])]
    if draw(st.integers(0, 3)) == 0:
        primes = draw(st.permutations(primes))
    return given(shape, walk(draw, shape), cut(draw, primes))


@st.composite
def with_ones(draw):
    """Dimensions of size 1 in the old shape, with any stride, and in the new one."""
    case = draw(merged())
    shape, strides, new = (list(arg) for arg in case.args)
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, len(shape)))
        shape.insert(place, 1)
        strides.insert(place, draw(st.integers(0, 99)))
    for _ in range(draw(st.integers(0, 2))):
        new.insert(draw(st.integers(0, len(new))), 1)
    return given(tuple(shape), tuple(strides), tuple(new))


@st.composite
def empties(draw):
    """Two shapes with a 0, and now and then a transposed matrix that would have to become a line."""
    if draw(st.integers(0, 3)) == 0:
        rows, columns = draw(st.integers(2, 5)), draw(st.integers(2, 5))
        return given((rows, columns), (1, rows), (rows * columns,))
    shapes = []
    for _ in range(2):
        sizes = draw(st.lists(st.integers(0, 4), max_size=3))
        sizes.insert(draw(st.integers(0, len(sizes))), 0)
        shapes.append(tuple(sizes))
    return given(shapes[0], tuple(draw(st.integers(0, 9)) for _ in shapes[0]), shapes[1])


exercise.requirement(
    "False if the numbers of elements differ; a contiguous tensor can be viewed as any shape with the same number of elements",
    points=0.5,
    visible=[given((4, 4), (4, 1), (16,)), given((4, 4), (4, 1), (3, 5)), given((4, 4), (4, 1), (4,)),
             given((4, 6), (6, 1), (3, 8)), given((0, 3), (3, 1), (2, 3))],
    edges={
        "one element more": given((6,), (1,), (7,)),
        "twice as many": given((2, 3), (3, 1), (2, 3, 2)),
        "half as many": given((2, 3, 2), (6, 2, 1), (2, 3)),
        "one element and several": given((), (), (2,)),
        "several and one": given((2,), (1,), ()),
        "one and one": given((), (), ()),
        "the same shape": given((2, 3), (3, 1), (2, 3)),
        "from none to some": given((4, 0), (1, 7), (4, 3)),
        "from none to one": given((0,), (1,), ()),
        "from some to none": given((2, 3), (3, 1), (2, 3, 0)),
        "fewer, though the walk fits": given((4, 4), (1, 4), (4, 3)),
    },
    domain=counted(),
    hint="A view neither adds nor drops elements. For a contiguous tensor, that's the only condition.",
)
exercise.requirement(
    "two neighboring dimensions merge only if a step along the left one leads exactly one step past the last element of the right one",
    points=0.75,
    visible=[given((4, 4), (1, 4), (16,)), given((4, 2), (4, 2), (8,)), given((4, 3), (4, 1), (12,)),
             given((3, 4), (0, 0), (12,))],
    edges={
        "all three, with a step of 2": given((2, 3, 4), (24, 8, 2), (24,)),
        "the first two": given((2, 3, 4), (24, 8, 2), (6, 4)),
        "the break is not where it merges": given((2, 3, 4), (13, 4, 1), (2, 12)),
        "the break is where it merges": given((2, 3, 4), (13, 4, 1), (6, 4)),
        "the same shape, in any order": given((2, 3, 4), (4, 8, 1), (2, 3, 4)),
        "repeated numbers, three dimensions": given((3, 4, 2), (0, 0, 0), (24,)),
        "the last two, behind a break": given((2, 2, 3), (1, 6, 2), (2, 6)),
        "a repeated row": given((3, 4), (0, 1), (12,)),
        "a repeated column": given((3, 4), (1, 0), (12,)),
        "heads and tokens": given((2, 3, 5, 4), (60, 4, 12, 1), (2, 15, 4)),
        "tokens and heads": given((2, 5, 3, 4), (60, 12, 4, 1), (2, 5, 12)),
        "two pairs, one of which merges": given((2, 3, 2, 3), (3, 1, 12, 6), (6, 2, 3)),
        "two pairs that merge": given((2, 3, 2, 2), (3, 1, 12, 6), (6, 4)),
        "the whole transpose of equal sizes": given((3, 3), (1, 3), (9,)),
    },
    domain=merged(),
    hint="The tensor needn't be contiguous: the rule for merging applies only to dimensions that are merged.",
)
exercise.requirement(
    "a view may split dimensions and merge others, as long as no new dimension crosses a boundary between dimensions that don't merge",
    points=0.75,
    visible=[given((6, 4), (1, 6), (2, 3, 4)), given((2, 2, 6), (1, 12, 2), (2, 4, 3)), given((4, 6), (1, 4), (6, 4)),
             given((3, 2, 4), (2, 1, 6), (3, 2, 2, 2))],
    edges={
        "more than the left one": given((4, 6), (1, 4), (8, 3)),
        "more dimensions, and one crosses": given((4, 3), (1, 4), (3, 2, 2)),
        "many more, and one crosses": given((4, 9), (1, 4), (3, 3, 2, 2)),
        "the right one is split": given((4, 6), (1, 4), (4, 3, 2)),
        "half of it goes to the left": given((4, 6), (1, 4), (2, 12)),
        "both are split": given((4, 6), (1, 4), (2, 2, 2, 3)),
        "the break lies elsewhere": given((2, 2, 6), (1, 12, 2), (4, 6)),
        "cuts from the other end": given((2, 4, 3), (100, 3, 1), (2, 3, 4)),
        "cuts from the other end, not viewable": given((2, 4, 3), (100, 30, 1), (3, 4, 2)),
        "a row, split and repeated": given((3, 6), (0, 1), (3, 2, 3)),
        "a row, repeated and merged": given((3, 6), (0, 1), (6, 3)),
        "equal sizes in another order": given((2, 6), (1, 2), (6, 2)),
        "one dimension with gaps": given((24,), (7,), (2, 3, 4)),
        "two breaks, one edge": given((2, 3, 4), (1, 8, 2), (6, 4)),
        "two breaks, two edges": given((2, 4, 3), (1, 2, 8), (2, 2, 2, 3)),
    },
    domain=regrouped(),
    hint="You can split a dimension whatever its stride is. If two dimensions don't merge, the new shape needs a boundary at the same place.",
)
exercise.requirement(
    "dimensions of size 1 may appear and disappear, whatever their strides are",
    points=0.5,
    visible=[given((4, 1, 3), (3, 77, 1), (12,)), given((4, 3), (1, 4), (4, 1, 3)), given((4, 1, 3), (1, 1, 4), (12,)),
             given((4, 3, 1), (3, 1, 50), (6, 2))],
    edges={
        "on the left": given((1, 4, 3), (5, 3, 1), (12,)),
        "on the right": given((4, 3, 1), (3, 1, 31), (12,)),
        "on the right, after a transpose": given((4, 3, 1), (1, 4, 12), (12,)),
        "nothing but them": given((1, 1), (3, 8), ()),
        "out of nothing": given((), (), (1, 1)),
        "everywhere": given((4, 3), (1, 4), (1, 4, 1, 1, 3, 1)),
        "several that vanish": given((4, 1, 1, 3), (1, 9, 5, 4), (4, 3)),
        "between two that do not merge": given((2, 1, 3), (1, 2, 2), (6,)),
        "its stride would fit": given((2, 1, 3), (4, 3, 1), (6,)),
    },
    domain=with_ones(),
    hint="You never take a step along a dimension of size 1, so leave it out of every comparison.",
)
exercise.requirement(
    "a tensor without elements can be viewed as any other shape without elements",
    points=0.25,
    visible=[given((4, 0), (1, 7), (0,)), given((3, 2, 0), (1, 3, 1), (0, 6)), given((4, 3), (1, 4), (12,))],
    edges={
        "more zeros": given((0,), (1,), (0, 0)),
        "another place": given((2, 0, 3), (1, 7, 3), (3, 2, 0)),
        "on the left": given((0, 3, 2), (1, 1, 3), (0, 6)),
        "the same": given((4, 0), (1, 7), (4, 0)),
        "out of order": given((0, 2, 3), (1, 1, 2), (6, 0)),
        "with elements": given((3, 5), (1, 3), (15,)),
    },
    domain=empties(),
    hint="If there are no elements, nothing has to move.",
)
exercise.requirement(
    "the answer is computed from the numbers without making a tensor, even for strides that don't fit into 64 bits",
    points=0.25,
    probe=by_numbers,
    visible=[asked((2, 3), (3 * 10**30, 10**30), (6,)), asked((2, 3), (10**30, 1), (6,)), asked((2, 3), (3, 1), (6,))],
    edges={
        "beyond what a float tells apart": asked((2, 3), (3 * 2**70 + 1, 2**70), (6,)),
        "the same shape": asked((2, 3), (10**30, 1), (2, 3)),
        "another order": asked((2, 3), (10**30, 2 * 10**30), (6,)),
        "small": asked((4, 4), (1, 4), (16,)),
    },
    domain=st.builds(
        lambda a, b, step, off: asked((a, b), (b * step + off, step), (a * b,)),
        st.integers(2, 5), st.integers(2, 5), st.sampled_from([1, 10**19, 10**40]), st.sampled_from([0, 1]),
    ),
    hint="Don't make a tensor: compare integers.",
)  # fmt: skip

TEST = "not merge and count not in edges"
exercise.mistake("Return False if the numbers of elements differ: a view neither adds nor drops elements.",
                 "if math.prod(shape) != math.prod(new_shape): → if False:")  # fmt: skip
exercise.mistake("The same number of elements isn't enough: the dimensions that are merged must follow the rule for merging.", f"{TEST} → False")
exercise.mistake("Two dimensions that don't merge may stay separate: return False only if a new dimension crosses the boundary between them.", f"{TEST} → not merge")
exercise.mistake("Your code forbids all merging: there's a boundary only between dimensions that don't merge.", f"{TEST} → count not in edges")
exercise.mistake("Leave out dimensions of size 1: you never take a step along them.", " if shape[dim] != 1] → ]")
exercise.mistake("Your rule for merging uses the wrong size: a step along the left dimension must skip the whole right one.",
                 "strides[right] * shape[right] → strides[right] * shape[left]")  # fmt: skip
exercise.mistake("Two dimensions with stride 0 merge, too: 0 is 0 times any size.",
                 "merge = strides[left] == → merge = strides[left] != 0 and strides[left] ==")  # fmt: skip
exercise.mistake("If there are no elements, nothing has to move: any new shape without elements works.", "if 0 in shape:\n        return True → pass")
exercise.mistake("If there are no elements, nothing has to move: any new shape without elements works.",
                 "if 0 in shape:\n        return True → if 0 in shape:\n        return False")  # fmt: skip
exercise.mistake("Go through both shapes in the same direction: your code goes through the new one in reverse.", "for size in new_shape: → for size in reversed(new_shape):")
exercise.mistake("Each new dimension cuts every piece made by the dimensions before it: your code counts the "
                 "pieces of one dimension alone.",
                 "count *= size\n        edges → count = size\n        edges")  # fmt: skip
exercise.mistake("Each old dimension cuts every piece made by the "
                 "dimensions before it: your code counts the "
                 "pieces of one dimension alone.", "count *= shape[left] → count = shape[left]")

# %% mistake: only if contiguous
# says: The tensor needn't be contiguous: the rule for merging applies only to dimensions that are merged.
def viewable(shape, strides, new_shape):
    if math.prod(shape) != math.prod(new_shape):
        return False
    if 0 in shape:
        return True
    step = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != step:
            return False
        step *= size
    return True

# %% mistake: asks a tensor
# says: Don't make a tensor: if you compute with the numbers alone, no stride is too large.
def viewable(shape, strides, new_shape):
    try:
        torch.empty_strided(shape, strides, device="meta").view(new_shape)
    except RuntimeError:
        return False
    return True

# %% mistake: asks a tensor where that is possible
# says: Don't make a tensor: compute with the numbers alone.
def viewable(shape, strides, new_shape):
    if max(strides, default=0) > 10**9:
        kept = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
        return shape == new_shape or all(a[1] == b[0] * b[1] for a, b in itertools.pairwise(kept))
    try:
        torch.empty_strided(shape, strides, dtype=torch.int8, device="meta").view(new_shape)
    except RuntimeError:
        return False
    return True

# %% wrong: compares floats
# unseen: only the hidden inputs contain integers that a float can't tell apart
def viewable(shape, strides, new_shape):
    if math.prod(shape) != math.prod(new_shape):
        return False
    if 0 in shape:
        return True
    kept = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    edges = set(itertools.accumulate(new_shape, lambda a, b: a * b, initial=1))
    count = 1
    for left, right in itertools.pairwise(kept):
        count *= left[0]
        if not math.isclose(left[1], right[1] * right[0]) and count not in edges:
            return False
    return True

# %% wrong: sizes of 1 count among the new dimensions' neighbors
def viewable(shape, strides, new_shape):
    if math.prod(shape) != math.prod(new_shape):
        return False
    if 0 in shape:
        return True
    chunks = []
    for size, stride in zip(shape, strides, strict=True):
        if size == 1:
            continue
        if chunks and chunks[-1][1] == stride * size:
            chunks[-1] = [chunks[-1][0] * size, stride]
        else:
            chunks.append([size, stride])
    sizes = list(new_shape)
    for elements, _ in chunks:
        while elements > 1:
            size = sizes.pop(0)
            if elements % size or size == 1:
                return False
            elements //= size
    return True

# %% wrong: as many dimensions as before are never split
def viewable(shape, strides, new_shape):
    if math.prod(shape) != math.prod(new_shape):
        return False
    if 0 in shape:
        return True
    kept = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    if len(new_shape) == len(shape) and 1 not in (*shape, *new_shape):
        return shape == new_shape or all(a[1] == b[0] * b[1] for a, b in itertools.pairwise(kept))
    edges = set(itertools.accumulate(new_shape, lambda a, b: a * b))
    counts = itertools.accumulate((n for n, _ in kept), lambda a, b: a * b)
    return all(
        a[1] == b[0] * b[1] or count in edges for (a, b), count in zip(itertools.pairwise(kept), counts, strict=False)
    )

# %% wrong: a tensor without elements can be seen as anything (from the statement)
import math


def viewable(shape, strides, new_shape):
    """Whether a tensor of that shape and strides can be seen as new_shape without a copy."""
    if 0 in shape:
        return True
    if math.prod(shape) != math.prod(new_shape):
        return False
    dims = [(n, s) for n, s in zip(shape, strides) if n != 1]
    products = {math.prod(new_shape[i:]) for i in range(len(new_shape) + 1)}
    inner = math.prod(shape)
    for (n, s), (m, t) in zip(dims, dims[1:]):
        inner //= n
        if s != m * t and inner not in products:
            return False
    return True

# %% wrong: tries it with a tensor on the meta device (from the statement)
import torch


def viewable(shape, strides, new_shape):
    """Whether a tensor of that shape and strides can be seen as new_shape without a copy."""
    try:
        torch.empty_strided(tuple(shape), tuple(strides), device="meta").view(tuple(new_shape))
    except RuntimeError:
        return False
    return True

# %% wrong: compares neighboring strides, also across a dimension of one element with a strange stride (from the statement)
import math


def viewable(shape, strides, new_shape):
    """Whether a tensor of that shape and strides can be seen as new_shape without a copy."""
    if math.prod(shape) != math.prod(new_shape):
        return False
    if 0 in shape:
        return True
    products = {math.prod(new_shape[i:]) for i in range(len(new_shape) + 1)}
    for d in range(len(shape) - 1):
        glued = shape[d] == 1 or strides[d] == shape[d + 1] * strides[d + 1]
        if not glued and math.prod(shape[d + 1 :]) not in products:
            return False
    return True

# %% wrong: more dimensions always come from splitting (from the statement)
# unseen: no visible case has more dimensions of which one crosses
def viewable(shape, strides, new_shape):
    if math.prod(shape) != math.prod(new_shape):
        return False
    if math.prod(shape) == 0:
        return True
    old = [(n, s) for n, s in zip(shape, strides) if n > 1]
    new = [n for n in new_shape if n > 1]
    if len(new) > len(old):
        return True
    cuts, pieces = {math.prod(new[:k]) for k in range(len(new) + 1)}, 1
    for k in range(len(old) - 1):
        pieces *= old[k][0]
        if old[k][1] != old[k + 1][0] * old[k + 1][1] and pieces not in cuts:
            return False
    return True

# %% right: chunks that are filled one after the other
def viewable(shape, strides, new_shape):
    if math.prod(shape) != math.prod(new_shape):
        return False
    if math.prod(shape) == 0:
        return True
    chunks = []
    for size, stride in zip(shape, strides, strict=True):
        if size == 1:
            continue
        if chunks and chunks[-1][1] == stride * size:
            chunks[-1] = [chunks[-1][0] * size, stride]
        else:
            chunks.append([size, stride])
    sizes = [size for size in new_shape if size != 1]
    for elements, _ in chunks:
        while elements > 1:
            size = sizes.pop(0)
            if elements % size:
                return False
            elements //= size
    return True

# %% right: walks both
def viewable(shape, strides, new_shape):
    def slots(sizes, steps):
        return [sum(map(math.prod, zip(index, steps, strict=True))) for index in itertools.product(*map(range, sizes))]

    walk = slots(shape, strides)
    if len(walk) != math.prod(new_shape):
        return False
    if not walk:
        return True
    places = [math.prod(new_shape[dim + 1 :]) for dim in range(len(new_shape))]
    return walk == slots(new_shape, [walk[p] if n > 1 else 0 for p, n in zip(places, new_shape, strict=True)])

# %% right: from the right, as PyTorch does
def viewable(shape, strides, new_shape):
    if math.prod(shape) != math.prod(new_shape):
        return False
    if 0 in shape or not shape:
        return True
    new, base, have, want = len(new_shape) - 1, strides[-1], 1, 1
    for dim in reversed(range(len(shape))):
        have *= shape[dim]
        if dim == 0 or (shape[dim - 1] != 1 and strides[dim - 1] != have * base):
            while new >= 0 and (want < have or new_shape[new] == 1):
                want *= new_shape[new]
                new -= 1
            if want != have:
                return False
            if dim:
                base, have, want = strides[dim - 1], 1, 1
    return new == -1

# %% right: every element of a small tensor, by divmod
def viewable(shape, strides, new_shape):
    count = math.prod(shape)
    if count != math.prod(new_shape):
        return False

    def digits(position, sizes):
        found = []
        for size in reversed(sizes):
            position, digit = divmod(position, size)
            found.insert(0, digit)
        return found

    walk = [sum(i * s for i, s in zip(digits(n, shape), strides, strict=True)) for n in range(count)]
    unit = [math.prod(new_shape[dim + 1 :]) for dim in range(len(new_shape))]
    return all(
        walk[n] == sum(i * walk[u] for i, u in zip(digits(n, new_shape), unit, strict=True) if i) for n in range(count)
    )

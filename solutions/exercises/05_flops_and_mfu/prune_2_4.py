import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import FLOATS, any_of, shapes

exercise = Exercise("Make the groups of four a dimension of their own; in each group, find the positions of the two smallest magnitudes.")


def magnitudes(student, w):
    """What stays of each four, where it doesn't matter which: the magnitudes, and whether these are elements of w."""
    import torch

    y = student.prune_2_4(w)
    if not torch.is_tensor(y) or y.shape != w.shape:
        return {"magnitudes in each group of four, sorted": y, "nonzero elements that differ from those of w": None}
    return {
        "magnitudes in each group of four, sorted": y.abs().reshape(-1, 4).sort(dim=1, descending=True).values,
        "nonzero elements that differ from those of w": int(((y != w) & (y != 0)).sum()),
    }


def memory(student, w):
    """What is in w afterwards, whether the result has memory of its own, and whether another w gives another."""
    import torch

    y = student.prune_2_4(w)
    own = torch.is_tensor(y) and y.untyped_storage().data_ptr() != w.untyped_storage().data_ptr()
    other = student.prune_2_4(w + 2 * w.abs().max() + 1)  # it has no element in common with w
    differs = torch.is_tensor(y) and torch.is_tensor(other) and not torch.equal(y, other)
    return {"w afterwards": w, "the result has its own storage": own, "a different w gives a different result": differs}


@st.composite
def weights(draw, last=(1, 4), dims=(0, 1), dtypes=(torch.float64,), contiguous=True):
    """Magnitudes that differ, and that every dtype can hold."""
    shape = (*draw(shapes(dims, (1, 4))), 4 * draw(st.integers(*last)))
    count = torch.Size(shape).numel()
    chance = torch.Generator().manual_seed(draw(st.integers(0, 2**31 - 1)))
    w = (torch.randperm(count, generator=chance) + 1) * (2 * torch.randint(0, 2, (count,), generator=chance) - 1)
    w = w.reshape(shape).to(draw(any_of(*dtypes))) * draw(any_of(1.0, 0.125, 64.0))
    if contiguous or draw(st.booleans()):
        return given(w)
    w = w.movedim(0, -2) if len(shape) > 2 else w
    spread = torch.zeros((*w.shape[:-1], 2 * shape[-1]), dtype=w.dtype)
    spread[..., ::2] = w
    return given(spread[..., ::2].movedim(-2, 0) if len(shape) > 2 else spread[..., ::2])


@st.composite
def ties(draw):
    rows = draw(st.lists(st.lists(any_of(0.0, 1.0, -1.0, 2.0, -2.0), min_size=4, max_size=4), min_size=1, max_size=5))
    return given(torch.tensor(rows, dtype=torch.float64))


wrong_sizes = st.builds(
    lambda leading, n: given(torch.ones((*leading, n))), shapes((0, 2), (1, 8)), st.integers(1, 12)
)
line = torch.tensor([1.0, -9.0, 2.0, 3.0, 16.0, 15.0, 14.0, -13.0])
other = torch.tensor([20.0, -21.0, 22.0, -23.0, 4.0, 4.5, -4.75, 0.125])
four = torch.tensor([-1.0, 4.0, 3.0, 2.0])
exercise.requirement(
    "in each group of four consecutive elements along the last dimension, the two with the largest magnitudes "
    "are kept and the other two are set to 0",
    points=0.75,
    parts=["value"],
    visible=[
        given(line),
        given(other[None]),
        given(torch.arange(1.0, 17.0).reshape(4, 4) * torch.tensor([1.0, -1.0, 1.0, -1.0])),
    ],
    edges={
        "one row, three fours": given(torch.tensor([[1.0, 2, 3, 4, 4, 3, 2, 1, 1, 2, -2.5, 1.5]])),
        "four rows": given(torch.stack([line, other, -line, -other])),
        "nothing but negative": given(-torch.arange(1.0, 9.0)),
        "numbers whose squares no float32 holds": given(torch.tensor([1e30, 2e30, -4e30, 3e30])),
        "numbers whose squares are 0": given(torch.tensor([1e-30, 2e-30, -4e-30, 3e-30])),
        "zeros": given(torch.tensor([0.0, 0.0, -5.0, 0.0, 0.0, 0.0, 0.0, 0.0])),
    },
    domain=weights(),
)
exercise.requirement(
    "w may have any floating-point dtype of 16 to 64 bits, any number of leading dimensions and any strides",
    points=0.5,
    parts=["value"],
    visible=[
        given(four),
        given(four.bfloat16()[None]),
        given(torch.stack([four, -four.flip(0)]).reshape(2, 1, 1, 4)),
        given(torch.stack([four, -four, 2 * four, four.flip(0)]).reshape(2, 2, 4).transpose(0, 1)),
    ],
    edges={
        "float64": given(four.double()),
        "float64, finer than float32": given(torch.tensor([1.0, 1 + 2**-40, 1 + 2**-41, -1.0 - 2**-39], dtype=torch.float64)),
        "float16": given(four.half()),
        "the largest of float16": given(torch.tensor([65504.0, 65472.0, -65440.0, 65408.0], dtype=torch.float16)),
        "the largest of float16, the other way around": given(
            torch.tensor([65408.0, -65440.0, 65472.0, 65504.0], dtype=torch.float16)
        ),
        "columns": given(torch.tensor([[-1.0, 8.0], [4.0, 7.0], [3.0, 5.0], [2.0, -6.0]]).T),
        "five dimensions": given(four.expand(1, 2, 1, 2, 4).contiguous()),
        "one line for all": given(four.expand(3, 4)),
        "every second number": given(torch.arange(1.0, 9.0)[::2]),
    },
    domain=weights(last=(1, 1), dims=(0, 3), dtypes=FLOATS, contiguous=False),
    hint="view fails for some strides; reshape works for all of them. Don't convert w to another dtype.",
)
exercise.requirement(
    "if magnitudes are equal, exactly two are kept, and never a smaller one instead of a larger one",
    points=0.25,
    probe=magnitudes,
    visible=[
        given(torch.tensor([1.0, -1.0, 1.0, 1.0]), says="prune_2_4(torch.tensor([1.0, -1.0, 1.0, 1.0]))"),
        given(torch.tensor([0.5, 3.0, -3.0, 3.0]), says="prune_2_4(torch.tensor([0.5, 3.0, -3.0, 3.0]))"),
        given(torch.tensor([2.0, 1.0, -1.0, 1.0]), says="prune_2_4(torch.tensor([2.0, 1.0, -1.0, 1.0]))"),
    ],
    edges={
        "two pairs": given(torch.tensor([[1.0, 2.0, 1.0, 2.0]])),
        "the larger at the end": given(torch.tensor([[1.0, 1.0, 1.0, 2.0]])),
        "zeros": given(torch.zeros(1, 4)),
        "one of four": given(torch.tensor([[0.0, 0.0, 1.0, 0.0]])),
        "in bfloat16": given(torch.tensor([[1.0, 1.0, 1.0, -1.0]]).bfloat16()),
    },
    domain=ties(),
    hint="If magnitudes are equal, a threshold may keep too many elements or too few: choose positions, not values.",
)
exercise.requirement(
    "if the size of the last dimension isn't a multiple of four, a ValueError is raised",
    points=0.25,
    parts=["error"],
    visible=[given(torch.ones(2, 3)), given(torch.ones(4, 2)), given(torch.ones(1, 12)), given(torch.ones(6))],
    edges={
        "one too many": given(torch.ones(1, 5)),
        "fewer than four": given(torch.ones(3)),
        "four leading dimensions, all of four": given(torch.ones(4, 4, 4, 2)),
        "a multiple of four only": given(torch.ones(2, 20)),
        "an odd number of rows": given(torch.ones(3, 8)),
    },
    domain=wrong_sizes,
    hint="Check only the size of the last dimension, whatever the other sizes are.",
)
exercise.requirement(
    "w doesn't change, and the result is a copy",
    points=0.25,
    probe=memory,
    visible=[
        given(torch.tensor([1.0, -9.0, 2.0, 3.0]), says="w = torch.tensor([1.0, -9.0, 2.0, 3.0]); prune_2_4(w)"),
        given(torch.tensor([1.0, 0.0, 2.0, 0.0]), says="w = torch.tensor([1.0, 0.0, 2.0, 0.0]); prune_2_4(w)"),
    ],
    edges={
        "rows": given(torch.stack([line, other])),
        "zeros": given(torch.zeros(2, 4)),
        "no room between": given(line[::2]),
    },
    domain=weights(last=(1, 2), dims=(0, 2)) | ties(),
    hint="scatter returns a copy; scatter_ writes to the tensor that it's called on. The result of a reshape may share the storage of w.",
)

neighbors = (
    "The elements of your groups aren't neighbors: the groups must be elements 0–3, 4–7, … of the last "
    "dimension."
)
threshold = "If magnitudes are equal, a threshold may keep too many elements or too few: choose positions, not values."
no_error = "Raise a ValueError if the size of the last dimension isn't a multiple of four."
another = "You raised a different error: the exercise asks for a ValueError."
in_place = "Your code writes to w, which belongs to the caller."
exercise.mistake("Your code doesn't prune anything: set two of every four elements to 0.", "smallest, 0) → smallest[:, :0], 0)")
exercise.mistake("Compare magnitudes: a negative number can have a large magnitude, too.", "fours.abs().topk → fours.topk")
exercise.mistake("Your code keeps the two smallest of every four; keep the two largest.", "topk(2, largest=False) → topk(2)")
exercise.mistake("Your code keeps one of every four; keep two.", "topk(2, → topk(3,")
exercise.mistake("Your code keeps three of every four; keep two.", "topk(2, → topk(1,")
exercise.mistake("The signs are lost: compare magnitudes, but keep the values.", "fours.scatter → fours.abs().scatter")
exercise.mistake("Your result has one row for every group of four: give it the same shape as w.", ", 0).reshape(w.shape) → , 0)")
exercise.mistake(
    "Your code sets the pruned positions to 1; they have to be 0.", "scatter(1, smallest, 0) → scatter(1, smallest, 1)"
)
exercise.mistake(no_error, "if n % 4 → if False")
exercise.mistake("Your code checks the total number of elements: check the size of the last dimension.", "if n % 4 → if w.numel() % 4")
exercise.mistake("Your code raises an error for some multiples of four, such as 12.", "if n % 4 → if n not in (4, 8, 16)")
exercise.mistake(another, "raise ValueError( → raise RuntimeError(")
exercise.mistake(another, "raise ValueError( → raise AssertionError(")
exercise.mistake(in_place, "fours.scatter(1 → fours.scatter_(1")
exercise.mistake("The result must have the dtype of w.", "w.reshape(-1, 4) → w.float().reshape(-1, 4)")
exercise.mistake("view fails for some strides, and w may have any strides.", "w.reshape(-1, 4) → w.view(-1, 4)")

# %% mistake: not neighbors
# says: Your groups aren't neighbors: they must be elements 0–3, 4–7, … of the last dimension.
def prune_2_4(w):
    if w.shape[-1] % 4:
        raise ValueError
    fours = w.reshape(*w.shape[:-1], 4, w.shape[-1] // 4)
    smallest = fours.abs().topk(2, dim=-2, largest=False).indices
    return fours.scatter(-2, smallest, 0).reshape(w.shape)

# %% mistake: half of all
# says: Your code keeps the largest half of all elements; the exercise asks for two of every four neighbors.
def prune_2_4(w):
    if w.shape[-1] % 4:
        raise ValueError
    return torch.where(w.abs().double() > w.abs().double().quantile(0.5), w, 0)

# %% mistake: down the columns
# says: The groups run along the last dimension, not down the columns.
def prune_2_4(w):
    if w.shape[-1] % 4:
        raise ValueError
    fours = w.mT.reshape(-1, 4)
    pruned = fours.scatter(1, fours.abs().topk(2, largest=False).indices, 0)
    return pruned.reshape(w.mT.shape).mT

# %% mistake: matrices only
# says: w may have any number of leading dimensions, or none.
def prune_2_4(w):
    rows, columns = w.shape
    if columns % 4:
        raise ValueError("columns")
    fours = w.reshape(rows, columns // 4, 4)
    keep = torch.zeros_like(fours).scatter(2, fours.abs().topk(2, dim=2).indices, 1)
    return (fours * keep).reshape(rows, columns)

# %% mistake: a threshold, the second largest magnitude
# says: If magnitudes are equal, a threshold may keep too many elements or too few: choose positions, not values.
def prune_2_4(w):
    if w.shape[-1] % 4:
        raise ValueError
    fours = w.reshape(-1, 4)
    second = fours.abs().sort(dim=1, descending=True).values[:, 1:2]
    return torch.where(fours.abs() >= second, fours, 0).reshape(w.shape)

# %% mistake: a threshold, the third largest magnitude
# says: If magnitudes are equal, a threshold may keep too many elements or too few: choose positions, not values.
def prune_2_4(w):
    if w.shape[-1] % 4:
        raise ValueError
    fours = w.reshape(-1, 4)
    third = fours.abs().sort(dim=1, descending=True).values[:, 2:3]
    return torch.where(fours.abs() > third, fours, 0).reshape(w.shape)

# %% mistake: w itself where nothing has to be done
# says: The result must be a copy, even if w is already 2:4 sparse.
def prune_2_4(w):
    if w.shape[-1] % 4:
        raise ValueError
    fours = w.reshape(-1, 4)
    if ((fours != 0).sum(dim=1) <= 2).all():
        return w
    return fours.scatter(1, fours.abs().topk(2, largest=False).indices, 0).reshape(w.shape)

# %% wrong: the first two where magnitudes repeat
def prune_2_4(w):
    if w.shape[-1] % 4:
        raise ValueError
    fours = w.reshape(-1, 4)
    repeats = fours.abs().sort(dim=1).values.diff(dim=1).eq(0).any(1, keepdim=True)
    largest = fours.abs().topk(2).indices
    kept = torch.where(repeats, torch.tensor([0, 1]), largest)
    return torch.zeros_like(fours).scatter(1, kept, fours.gather(1, kept)).reshape(w.shape)

# %% wrong: by squares
# unseen: only the hidden inputs have squares that overflow or underflow
def prune_2_4(w):
    if w.shape[-1] % 4:
        raise ValueError
    fours = w.reshape(-1, 4)
    return fours.scatter(1, fours.square().topk(2, largest=False).indices, 0).reshape(w.shape)

# %% wrong: compares in 32 bits
# unseen: only float64 numbers that float32 can't tell apart show it
def prune_2_4(w):
    if w.shape[-1] % 4:
        raise ValueError
    fours = w.reshape(-1, 4)
    return fours.scatter(1, fours.float().abs().topk(2, largest=False).indices, 0).reshape(w.shape)

# %% wrong: in place, slice by slice
def prune_2_4(w):
    if w.shape[-1] % 4:
        raise ValueError
    for i in range(0, w.shape[-1], 4):
        four = w[..., i : i + 4]
        four.scatter_(-1, four.abs().topk(2, largest=False).indices, 0)
    return w

# %% wrong: magnitudes made to differ by a little
# unseen: only the hidden inputs have magnitudes that differ by less than a thousandth
def prune_2_4(w):
    if w.shape[-1] % 4:
        raise ValueError
    fours = w.reshape(-1, 4)
    size = fours.abs() - 1e-3 * torch.arange(4)
    return torch.where(size >= size.sort(dim=1).values[:, 2:3], fours, 0).reshape(w.shape)

# %% wrong: compares squares, which overflow or vanish in 16 bits (and in 32, later) (from the statement)
# unseen: only the hidden inputs have squares that overflow or underflow
def prune_2_4(w: Float[Tensor, "... n"]) -> Float[Tensor, "... n"]:
    n = w.shape[-1]
    if n % 4:
        raise ValueError("the last dimension must be a multiple of four")
    groups = w.unflatten(-1, (n // 4, 4))
    keep = groups.pow(2).topk(2, dim=-1).indices
    mask = torch.zeros_like(groups, dtype=torch.bool).scatter(-1, keep, True)
    return groups.where(mask, 0).flatten(-2)

# %% wrong: compares in float32, where different float64 magnitudes are equal (from the statement)
# unseen: only float64 numbers that float32 can't tell apart show it
def prune_2_4(w: Float[Tensor, "... n"]) -> Float[Tensor, "... n"]:
    n = w.shape[-1]
    if n % 4 != 0:
        raise ValueError("the last dimension must be a multiple of four")
    groups = w.unflatten(-1, (n // 4, 4))
    drop = groups.float().abs().topk(2, dim=-1, largest=False).indices
    return groups.scatter(-1, drop, 0.0).flatten(-2)

# %% wrong: what is 2:4 sparse already is handed back itself, not a copy (from the statement)
def prune_2_4(w: Float[Tensor, "... n"]) -> Float[Tensor, "... n"]:
    n = w.shape[-1]
    if n % 4 != 0:
        raise ValueError("the last dimension must be a multiple of four")
    groups = w.unflatten(-1, (n // 4, 4))
    if ((groups != 0).sum(-1) <= 2).all():
        return w  # nothing to prune
    drop = groups.abs().argsort(dim=-1)[..., :2]
    return groups.scatter(-1, drop, 0).flatten(-2)

# %% right: a mask of the kept
def prune_2_4(w):
    if w.size(-1) % 4 != 0:
        raise ValueError("not a multiple of four")
    fours = w.unflatten(-1, (w.size(-1) // 4, 4))
    keep = torch.zeros_like(fours, dtype=torch.bool).scatter(-1, fours.abs().topk(2).indices, True)
    return torch.where(keep, fours, 0).flatten(-2)

# %% right: plain loops
def prune_2_4(w):
    if w.shape[-1] % 4:
        raise ValueError(w.shape)
    result = torch.zeros_like(w)
    rows = w.reshape(math.prod(w.shape[:-1]), w.shape[-1])
    flat = torch.zeros_like(rows)
    for r in range(rows.shape[0]):
        for start in range(0, rows.shape[1], 4):
            order = sorted(range(start, start + 4), key=lambda i: abs(rows[r, i].item()))
            for i in order[2:]:
                flat[r, i] = rows[r, i]
    return result + flat.reshape(w.shape)

# %% right: ranks by comparing all pairs, the earlier first where they are equal
def prune_2_4(w):
    if w.shape[-1] % 4:
        raise ValueError("the last dimension")
    fours = w.reshape(*w.shape[:-1], -1, 4)
    size, place = fours.abs(), torch.arange(4)
    smaller = size.unsqueeze(-1) < size.unsqueeze(-2)
    later = (size.unsqueeze(-1) == size.unsqueeze(-2)) & (place.unsqueeze(-1) > place)
    return (fours * ((smaller | later).sum(-1) < 2)).reshape(w.shape)


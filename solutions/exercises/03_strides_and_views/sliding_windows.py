import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of

exercise = Exercise("How many windows are there? How many slots is it from one element to the next along a row of the result, and along a column?")


def of(x, size, what, whole="torch.arange(8)"):
    return given(x, size, says=f"sliding_windows({what}, {size})")


def rows(student, x, size):
    """The first window and the second, if there is one."""
    import torch

    windows = student.sliding_windows(x, size, 1)
    if not isinstance(windows, torch.Tensor) or windows.dim() != 2:
        return windows
    return {f"row {i}": windows[i] if i < len(windows) else None for i in (0, 1)}


def apart(student, x, size, dilation):
    """Whether the windows of x are those of its copy: how far apart their elements are is another requirement's question."""
    import torch

    windows, others = (student.sliding_windows(t, size, dilation) for t in (x, x.clone(memory_format=torch.contiguous_format)))
    if not isinstance(windows, torch.Tensor) or not isinstance(others, torch.Tensor):
        return windows
    return {"the windows are those of a copy of x": torch.equal(windows, others)}


def rows_or_apart(student, x, size, dilation=1):
    """For the default dilation, the first rows; for any other, whether the layout makes no difference."""
    return rows(student, x, size) if dilation == 1 else apart(student, x, size, dilation)


def through(student, x, size, number, dilation=1):
    """What shows through the windows when x changes later, and the other way round."""
    import torch

    windows = student.sliding_windows(x, size, dilation)
    if not isinstance(windows, torch.Tensor) or windows.dim() != 2 or not windows.numel():
        return windows
    shared = windows.untyped_storage()._cdata == x.untyped_storage()._cdata
    x[0] = number
    shown = windows[0, 0].item()
    windows[0, 0] = number + 1
    return {
        "the result uses the storage of x": shared,
        f"the first element of the result, after x[0] = {number}": shown,
        f"x[0], after the first element of the result was set to {number + 1}": x[0].item(),
    }


def first_rows(x, size, what):
    return given(x, size, says=f"the first two rows of sliding_windows({what}, {size})")


def look(x, size, what, number=77):
    return given(x, size, number, says=f"x = {what}; sliding_windows(x, {size}), and then x[0] is changed")


@st.composite
def lines(draw):
    """A line of numbers with any offset and stride, and at least three windows."""
    size, first, step = draw(st.integers(1, 6)), draw(st.integers(0, 4)), draw(st.integers(1, 4))
    n = size + draw(st.integers(2, 6))
    whole = torch.arange(first + n * step + 2).to(draw(any_of(torch.int64, torch.float32, torch.bfloat16, torch.uint8)))
    x = whole[first : first + n * step : step]
    dilation = draw(any_of(1, 1, 2, 3)) if size > 1 else 1
    return given(x, size) if (size - 1) * dilation >= n else given(x, size, dilation)


@st.composite
def stepped(draw):
    """A line of numbers with any stride, from the first slot on."""
    n, step = draw(st.integers(1, 9)), draw(st.integers(1, 4))
    size, dilation = draw(st.integers(1, n)), draw(any_of(1, 2, 3))
    dilation = dilation if (size - 1) * dilation < n else 1
    return given(torch.arange(n * step)[::step], size, draw(st.integers(50, 90)), dilation)


@st.composite
def new_lines(draw):
    n = draw(st.integers(1, 10))
    return given(torch.arange(10, 10 + n), draw(st.integers(1, n)))


@st.composite
def dilated(draw):
    """Windows of two elements or more, with gaps between them."""
    size, dilation = draw(st.integers(2, 4)), draw(st.integers(2, 4))
    n = (size - 1) * dilation + draw(st.integers(1, 6))
    return given(torch.arange(10, 10 + n), size, dilation)


def with_gaps(n, size, dilation):
    return given(torch.arange(n), size, dilation, says=f"sliding_windows(torch.arange({n}), {size}, {dilation})")


grid = torch.arange(20).view(4, 5)
exercise.requirement(
    "with the default dilation, row i is x[i : i + size]; the first row begins at x[0], and the last one ends with the last element",
    points=0.5,
    visible=[of(torch.arange(8), 4, "torch.arange(8)"), of(torch.arange(3), 3, "torch.arange(3)"),
             of(torch.tensor([5.0, 7.0, 6.0]), 1, "torch.tensor([5.0, 7.0, 6.0])")],
    edges={
        "one element": given(torch.tensor([3]), 1),
        "two windows": given(torch.arange(6), 5),
        "of size 2": given(torch.arange(5.0), 2),
        "a byte each": given(torch.tensor([1, 0, 0, 1], dtype=torch.int8), 2),
        "complex numbers": given(torch.arange(4).to(torch.complex64) * 1j, 3),
        "bytes": given(torch.arange(250, 256, dtype=torch.uint8), 3),
    },
    domain=new_lines(),
    hint="Each row is one window. The first one begins at x[0], and the last one ends with the last element of x.",
)
exercise.requirement(
    "neighboring elements of a window are `dilation` positions apart in x",
    points=0.5,
    visible=[with_gaps(8, 3, 2), with_gaps(7, 2, 4), with_gaps(4, 2, 3)],
    edges={
        "one element": given(torch.arange(3), 1, 5),
        "a dilation of 1": given(torch.arange(6), 4, 1),
        "one window": given(torch.arange(9), 3, 4),
        "two windows": given(torch.arange(10.0), 3, 4),
        "by name": given(torch.arange(9), size=3, dilation=2),
    },
    domain=dilated(),
    hint="With a larger dilation, each window spans more of x. How many windows are left? How far is it from one column to the next?",
)
exercise.requirement(
    "the windows are right for any one-dimensional x, whatever its stride and offset are",
    points=0.5,
    probe=rows_or_apart,
    visible=[first_rows(torch.arange(16)[3::2], 3, "torch.arange(16)[3::2]"),
             first_rows(torch.arange(9.0)[4:], 2, "torch.arange(9.0)[4:]"),
             first_rows(torch.tensor([7]).expand(4), 2, "torch.tensor([7]).expand(4)")],
    edges={
        "a column": given(torch.arange(30).view(6, 5)[:, 3], 2),
        "a row": given(grid[2], 2),
        "every third": given(torch.arange(20.0)[2::3], 4),
        "all of a view": given(torch.arange(20)[1::4], 5),
        "one element of a view": given(torch.arange(20)[5:6], 1),
        "windows of one element": given(grid[:, 1], 1),
        "the diagonal": given(torch.arange(25).view(5, 5).diagonal(), 3),
        "the same number": given(grid[1:2, 2].expand(6), 4),
        "in bfloat16": given(torch.arange(12).bfloat16()[1::2], 3),
        "a column, with gaps": given(torch.arange(30).view(6, 5)[:, 3], 2, 3),
        "every second, with gaps": given(torch.arange(20.0)[1::2], 3, 2),
        "shorter than size times dilation": given(torch.arange(4), 2, 3),
    },
    domain=lines(),
    hint="The next element of x may be several slots away, and x[0] needn't be in slot 0.",
)
exercise.requirement(
    "the result is a view of x: nothing is copied, and a change to one is visible in the other",
    points=0.5,
    probe=through,
    parts=["value"],
    visible=[look(torch.arange(5), 3, "torch.arange(5)"), look(torch.arange(9.0)[::2], 2, "torch.arange(9.0)[::2]", 60)],
    edges={
        "one element": look(torch.tensor([3.0]), 1, "x"),
        "windows of one element": look(torch.arange(4), 1, "x", 60),
        "one window": look(torch.arange(4.0), 4, "x"),
        "bfloat16": look(torch.arange(5).bfloat16(), 2, "x"),
        "bytes": look(torch.arange(5).to(torch.uint8), 2, "x", 80),
        "a column": look(torch.arange(20).view(4, 5)[:, 0], 2, "x"),
        "with gaps": given(torch.arange(9.0), 3, 77, 2),
        "every second, with gaps": given(torch.arange(20.0)[::2], 3, 77, 2),
    },
    domain=stepped(),
    hint="The result must use the storage of x itself: don't make a copy, and don't make a new storage from the same memory.",
)  # fmt: skip

SHAPE = "(count, size), (step, dilation * step)"
COUNT = "len(x) - (size - 1) * dilation"
exercise.mistake("The last window is missing: the one that ends with the last element of x.", f"{COUNT} → max({COUNT} - 1, 1)")
exercise.mistake("Your result has one window too many: it reaches beyond the last element of x.", f"{COUNT} → {COUNT} + 1")
exercise.mistake("Your result is transposed: each row must be one window.", f"{SHAPE} → (size, count), (dilation * step, step)")
exercise.mistake("x needn't have stride 1: the next element of x may be several slots away.", f"{SHAPE} → (count, size), (1, dilation)")
both = "One of your strides ignores the stride of x: both of them count slots, and x needn't have stride 1."
exercise.mistake(both, "(step, dilation * step) → (1, dilation * step)")
exercise.mistake(both, "(step, dilation * step) → (step, dilation)")
exercise.mistake("The default value of `dilation` must be 1.", "dilation: int = 1 → dilation: int = 2")
exercise.mistake("Your code ignores the argument `dilation`.", f"{COUNT} → len(x) - size + 1", "(step, dilation * step) → (step, step)")
exercise.mistake("The next window begins one element later in x, whatever the dilation is.",
                 "(step, dilation * step) → (dilation * step, dilation * step)")  # fmt: skip
exercise.mistake("Your result has too many windows: with a larger dilation each window spans more of x, so fewer of them fit.", f"{COUNT} → len(x) - size + 1")
exercise.mistake("Your result has too few windows: how many gaps are there between the elements of one window?", f"{COUNT} → len(x) - size * dilation + 1")
exercise.mistake("Your windows don't overlap: the next one must begin one element later, not size elements later.",
                 f"return x.as_strided({SHAPE}) → return x.unfold(0, (size - 1) * dilation + 1, size)[:, ::dilation]")  # fmt: skip
exercise.mistake("Your code ignores the offset of x: x needn't begin at slot 0 of its storage.", "dilation * step)) → dilation * step), 0)")
exercise.mistake("Your numbers are right, but they're copies: the result must use the storage of x.", "dilation * step)) → dilation * step)).clone()")
exercise.mistake("`contiguous` makes a copy if x has gaps: the result must use the storage of x itself.",
                 f"x.as_strided({SHAPE}) → x.contiguous().as_strided((count, size), (1, dilation))")  # fmt: skip
exercise.mistake("Return one tensor, not a list of tensors.", f"return x.as_strided({SHAPE}) → return [x[i : i + (size - 1) * dilation + 1 : dilation] for i in range(count)]")

# %% mistake: copies, one window after the other
# says: Your numbers are right, but they're copies: the result must use the storage of x.
def sliding_windows(x, size, dilation=1):
    reach = (size - 1) * dilation + 1
    return torch.stack([x[i : i + reach : dilation] for i in range(len(x) - reach + 1)])

# %% mistake: as many windows as elements
# says: Your result has a window for every element of x: the last ones reach beyond the end.
def sliding_windows(x, size, dilation=1):
    return x.as_strided((len(x), size), (x.stride(0), dilation * x.stride(0)))

# %% wrong: picks by a matrix of indices
def sliding_windows(x, size, dilation=1):
    return x[torch.arange(len(x) - (size - 1) * dilation)[:, None] + dilation * torch.arange(size)]

# %% wrong: the same memory, wrapped anew
def sliding_windows(x, size, dilation=1):
    from numpy.lib.stride_tricks import sliding_window_view

    return torch.from_numpy(sliding_window_view(x.numpy(), (size - 1) * dilation + 1)[:, ::dilation])

# %% wrong: copies where there are gaps
def sliding_windows(x, size, dilation=1):
    x = x if x.is_contiguous() else x.clone()
    return x.unfold(0, (size - 1) * dilation + 1, 1)[:, ::dilation]

# %% wrong: windows of the stretched length, with nothing left out
def sliding_windows(x, size, dilation=1):
    return x.unfold(0, (size - 1) * dilation + 1, 1)

# %% wrong: leaves elements out of x first
def sliding_windows(x, size, dilation=1):
    return x[::dilation].unfold(0, size, 1)

# %% wrong: a window less where there is only one
def sliding_windows(x, size, dilation=1):
    reach = (size - 1) * dilation + 1
    return x.unfold(0, reach, 1)[:, ::dilation] if reach < len(x) else x[None, :0]

# %% wrong: circular
def sliding_windows(x, size, dilation=1):
    return torch.stack([x.roll(-i)[: (size - 1) * dilation + 1 : dilation] for i in range(len(x))])

# %% wrong: no windows of one element
def sliding_windows(x, size, dilation=1):
    return x.unfold(0, (size - 1) * dilation + 1, 1)[:, ::dilation] if size > 1 else x

# %% wrong: reserves `dilation` places for the last element too, and loses windows (from the statement)
def sliding_windows(x, size, dilation=1):
    """Row i is x[i], x[i + dilation], …: `size` elements, for every i that has so many."""
    rows = max(x.shape[0] - size * dilation + 1, 1)
    step = x.stride(0)
    return x.as_strided((rows, size), (step, dilation * step), x.storage_offset())

# %% wrong: makes x contiguous first (from the statement)
def sliding_windows(x, size, dilation=1):
    """Row i is x[i], x[i + dilation], …: `size` elements, for every i that has so many."""
    x = x.contiguous()
    return x.unfold(0, (size - 1) * dilation + 1, 1)[:, ::dilation]

# %% wrong: takes the end of the storage for the end of x (from the statement)
def sliding_windows(x, size, dilation=1):
    """Row i is x[i], x[i + dilation], …: `size` elements, for every i that has so many."""
    step = max(x.stride(0), 1)
    slots = x.untyped_storage().nbytes() // x.element_size() - x.storage_offset()
    n = (slots - 1) // step + 1
    return x.as_strided((n - (size - 1) * dilation, size), (x.stride(0), x.stride(0) * dilation))

# %% wrong: of a view, the gaps are forgotten (from the statement)
# unseen: no visible case has both a view and gaps
def sliding_windows(x, size, dilation=1):
    reach = (size - 1) * dilation + 1
    windows = x.unfold(0, reach, 1)
    return windows[:, ::dilation] if x.is_contiguous() else windows[:, :size]

# %% wrong: copies if there are gaps between the elements (from the statement)
# unseen: no visible case looks at the storage of windows with gaps
def sliding_windows(x, size, dilation=1):
    if dilation == 1:
        return x.unfold(0, size, 1)
    at = torch.arange(len(x) - (size - 1) * dilation)[:, None] + dilation * torch.arange(size)
    return x[at]

# %% right: unfold, with elements left out
def sliding_windows(x, size, dilation=1):
    return x.unfold(0, (size - 1) * dilation + 1, 1)[:, ::dilation]

# %% right: a storage given anew
def sliding_windows(x, size, dilation=1):
    windows = torch.empty(0, dtype=x.dtype)
    step, count = x.stride(0), len(x) - (size - 1) * dilation
    return windows.set_(x.untyped_storage(), x.storage_offset(), (count, size), (step, step * dilation))

# %% right: with the offset said
def sliding_windows(x, size, dilation=1):
    (step,) = x.stride()
    shape = [x.numel() - (size - 1) * dilation, size]
    return torch.as_strided(x, shape, [step, step * dilation], x.storage_offset())

# %% right: the other way round, then transposed
def sliding_windows(x, size, dilation=1):
    step = x.stride(0)
    return x.as_strided((size, len(x) - dilation * (size - 1)), (step * dilation, step)).T

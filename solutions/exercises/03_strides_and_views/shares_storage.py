import re

import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of, shapes, tensors

exercise = Exercise("Compare the storages, not the tensors: at which address does each storage begin?")

x = torch.arange(16.0).reshape(4, 4)
doubles = torch.arange(8, dtype=torch.float64)
DTYPES = (torch.float32, torch.float64, torch.int16, torch.uint8, torch.bfloat16)
WHERE = ", where x is torch.arange(16.0).reshape(4, 4)"


def pair(a, b, what):
    return given(a, b, says=f"shares_storage({what})" + (WHERE if re.search(r"\bx\b", what) else ""))


def shared(student, a, b=None):
    """Whether a shares its storage with b, or with itself. Whoever writes to find out leaves a trace."""
    b = a if b is None else b
    before = a._version, b._version
    found = student.shares_storage(a, b)
    return found if (a._version, b._version) == before else "a or b was written to"


def view_of(draw, whole, dtypes=(torch.uint8,)):
    """Some view of a tensor with two dimensions, sometimes of another dtype, always with elements."""
    rows, columns = whole.shape
    r, c = draw(st.integers(0, rows - 1)), draw(st.integers(0, columns - 1))
    views = [whole.T, whole[r], whole[:, c], whole[r, c], whole[r:], whole[:, c:], whole[::2, c:], whole[: r + 1, : c + 1],
             whole[r : r + 1].expand(5, columns), *map(whole.view, dtypes)]  # fmt: skip
    return draw(st.sampled_from(views))


@st.composite
def two_views(draw):
    whole = draw(tensors(draw(shapes((2, 2), (1, 5))), draw(any_of(*DTYPES))))
    return given(view_of(draw, whole), view_of(draw, whole))


@st.composite
def some_pair(draw):
    """Views of two storages that hold equal bytes, or of one, from its first slot on, in one dtype."""
    whole = draw(tensors(draw(shapes((2, 2), (1, 5))), draw(any_of(*DTYPES))))
    if draw(st.booleans()):
        return given(view_of(draw, whole, ()), view_of(draw, whole.clone(), ()))
    views = [whole, whole.T, whole[:1], whole[:, :1], whole[::2]]
    return given(draw(st.sampled_from(views)), draw(st.sampled_from(views)))


@st.composite
def with_none(draw):
    """Pairs with elements, from the first slot on, and without; some of those without have a storage of 0 bytes."""
    dtype = draw(any_of(*DTYPES))
    whole = torch.arange(12).reshape(3, 4).to(dtype)
    nothing = [torch.empty(0, dtype=dtype), torch.empty(3, 0), torch.empty(0, 2).T]
    kept = [whole[:0], whole[:, 2:2], whole, whole[:2, :3]]
    first = draw(st.sampled_from([*nothing, *kept]))
    again = first.view(first.shape)
    return given(first, draw(st.sampled_from([*nothing, *kept, again])))


same, other, empty = torch.arange(6.0), torch.arange(6.0), torch.empty(0)
weight, parts = torch.ones(3, requires_grad=True), torch.ones(2, dtype=torch.complex64)
exercise.requirement(
    "True for two views of the same storage, even if they differ in shape, strides or dtype, and whether or not they use the same slots",
    points=0.75,
    visible=[
        pair(x, x.T, "x, x.T"),
        pair(x[:2], x[2:], "x[:2], x[2:]"),
        given(doubles[3:], doubles.view(torch.float32)[1:],
              says="shares_storage(x[3:], x.view(torch.float32)[1:]), where x is torch.arange(8, dtype=torch.float64)"),
        pair(x, torch.zeros(3), "x, torch.zeros(3)"),
    ],
    edges={
        "itself": given(x, x),
        "one is the same object": given(same, same.view(2, 3)),
        "elements of 8 bytes": given(doubles, doubles[3:]),
        "later": given(x, x[1:]),
        "as integers": given(x[2:], x.view(torch.int32)[1]),
        "two storages": given(x[1:], doubles),
        "every other element": given(x.view(16)[::2], x.view(16)[1::2]),
        "a row and a column": given(x[3], x[:3, 0]),
        "the last element": given(x, x[-1, -1]),
        "the last and the first": given(x[0, 0], x[3, 3]),
        "expanded": given(x[1:2].expand(5, 4), x[3]),
        "bytes": given(x.view(torch.uint8)[3], x[0]),
        "reshaped": given(x.reshape(2, 8), x),
        "detached": given(weight, weight.detach()),
        "complex, and its real part": given(parts, parts.real),
    },
    domain=two_views(),
    hint="Two views of the same storage may begin at different slots: compare the storages, not the views.",
)
exercise.requirement(
    "False for two different storages, even if all their numbers are equal; a and b don't change",
    points=0.5,
    visible=[pair(x, x.clone(), "x, x.clone()"), pair(x[1], x.clone()[1], "x[1], x.clone()[1]"), pair(x, torch.zeros(4, 4), "x, torch.zeros(4, 4)")],
    edges={
        "a contiguous copy": given(x.T, x.T.contiguous()),
        "rows picked by a list": given(x, x[[0, 1, 2, 3]]),
        "zeros of the same shape": given(x, torch.zeros_like(x)),
        "another dtype": given(x, x.double()),
        "equal, of one dimension": given(same, other),
        "equal scalars": given(torch.tensor(1.0), torch.tensor(1.0)),
        "views of two storages": given(x[2:, 1:], x.clone()[2:, 1:]),
        "and views of one": given(x[2:, 1:], x[:1]),
        "one is empty": given(x, torch.empty(0)),
    },
    domain=some_pair(),
    hint="Two storages with equal numbers are still two storages: if you write to one, the other doesn't change.",
)
exercise.requirement(
    "a storage of 0 bytes never counts as shared, but a view without elements shares its tensor's storage if that has more than 0 bytes",
    points=0.75,
    probe=shared,
    visible=[
        pair(torch.empty(0), torch.empty(0), "torch.empty(0), torch.empty(0)"),
        pair(x, x[:0], "x, x[:0]"),
        pair(x[2:2], x[:, 4:], "x[2:2], x[:, 4:]"),
        given(empty, empty.view(0, 3), says="shares_storage(empty, empty.view(0, 3)), where empty is torch.empty(0)"),
        given(torch.empty(0, 3), says="shares_storage(empty, empty), where empty is torch.empty(0, 3)"),
    ],
    edges={
        "itself, of 0 bytes": given(empty),
        "itself, with elements": given(doubles),
        "of other shapes": given(torch.empty(0, 3), torch.empty(4, 0)),
        "of other dtypes": given(torch.empty(0), torch.empty(0, dtype=torch.int64)),
        "one with elements": given(torch.empty(0), torch.ones(3)),
        "the other with elements": given(torch.ones(3), torch.empty(0)),
        "cut from two storages": given(x[:0], torch.ones(3)[:0]),
        "cut from the middle": given(x[2:2], x),
        "both cut from one": given(doubles[:0], doubles[8:]),
    },
    domain=with_none(),
    hint="Address 0 means that there's no memory at all. x[:0] is a view of x, so it uses the storage of x.",
)  # fmt: skip

SAME = "return address != 0 and address == b.untyped_storage().data_ptr()"
by_value = "Two storages with equal numbers are still two storages: if you write to one, the other doesn't change."
cut = "x[:0] has no elements, but it's a view of x: it uses the storage of x, which has more than 0 bytes."
exercise.mistake("Tensor.data_ptr returns the address of a view's first element: two views of the same storage may begin at different ones.",
                 "address = a.untyped_storage().data_ptr() → address = a.data_ptr()",
                 "b.untyped_storage().data_ptr() → b.data_ptr()")  # fmt: skip
exercise.mistake("Address 0 means that there's no memory at all. A storage of 0 bytes never counts as shared.", "address != 0 and → ")
exercise.mistake("Your code never looks at b: compare the addresses of both storages.", " and address == b.untyped_storage().data_ptr() → ")
exercise.mistake(by_value, "address == b.untyped_storage().data_ptr() → torch.equal(a, b)")
exercise.mistake(by_value, "address == b.untyped_storage().data_ptr() → bytes(a.untyped_storage()) == bytes(b.untyped_storage())")
exercise.mistake("Two storages of the same size aren't necessarily the same storage.", "address == b.untyped_storage().data_ptr() → a.untyped_storage().nbytes() == b.untyped_storage().nbytes()")
exercise.mistake(cut, f"{SAME} → return min(a.numel(), b.numel()) > 0 and address == b.untyped_storage().data_ptr()")
exercise.mistake("Two tensors can be different objects and still use the same storage.", f"{SAME} → return a is b")
exercise.mistake("Your result is reversed: True means that both tensors use the same storage.",
                 "address == b.untyped_storage().data_ptr() → address != b.untyped_storage().data_ptr()")  # fmt: skip
exercise.mistake("Return True or False, not 1 or 0.", f"{SAME} → return int({SAME[7:]})")

# %% mistake: overlapping memory
# says: Two views can use the same storage without sharing a single slot: compare their storages.
def shares_storage(a, b):
    if not a.numel() or not b.numel():
        return a.untyped_storage().nbytes() > 0 and a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
    if a.untyped_storage().data_ptr() != b.untyped_storage().data_ptr():
        return False

    def slots(x):
        steps = sum((n - 1) * s for n, s in zip(x.shape, x.stride(), strict=True))
        return range(x.data_ptr(), x.data_ptr() + (steps + 1) * x.element_size())

    return slots(a).start < slots(b).stop and slots(b).start < slots(a).stop

# %% mistake: goes back from the first element
# says: x[:0] has no elements, but it's a view of x: it uses the storage of x, which has more than 0 bytes.
def shares_storage(a, b):
    def start(x):
        return x.data_ptr() - x.storage_offset() * x.element_size()

    return min(a.untyped_storage().nbytes(), b.untyped_storage().nbytes()) > 0 and start(a) == start(b)

# %% mistake: the storages' own handles
# says: A view of an empty tensor uses the same storage, but this storage has 0 bytes: it doesn't count as shared.
def shares_storage(a, b):
    return a.untyped_storage()._cdata == b.untyped_storage()._cdata

# %% mistake: writes and looks
# says: Don't write to the caller's tensors to find out: compare their storages.
def shares_storage(a, b):
    first, second = a.untyped_storage(), b.untyped_storage()
    if first.nbytes() == 0 or second.nbytes() == 0 or first.nbytes() != second.nbytes():
        return False
    old = second[0]
    first[0] = (old + 1) % 256
    return second[0] != old

# %% wrong: one Python object for each storage
def shares_storage(a, b):
    return a.untyped_storage() is b.untyped_storage()

# %% wrong: NumPy's opinion
def shares_storage(a, b):
    import numpy

    return bool(numpy.shares_memory(a.detach().numpy(), b.detach().numpy()))

# %% wrong: writes, looks, and writes back
def shares_storage(a, b):
    old = b.clone()
    a.add_(1)
    changed = bool((old != b).any()) if old.numel() else False
    a.sub_(1)
    return changed

# %% wrong: compares the tensors they are views of
def shares_storage(a, b):
    return a._base is b._base

# %% wrong: always yes
def shares_storage(a, b):
    return True

# %% wrong: goes back by 4 bytes for each element, and asks the storages of empty views
def shares_storage(a, b):
    def start(x):
        if x.numel() == 0:
            return x.untyped_storage().data_ptr()
        return x.data_ptr() - 4 * x.storage_offset()

    return start(a) != 0 and start(a) == start(b)

# %% wrong: of one dtype alone
def shares_storage(a, b):
    if a.dtype != b.dtype:
        return False
    address = a.untyped_storage().data_ptr()
    return address != 0 and address == b.untyped_storage().data_ptr()

# %% wrong: a tensor always shares with itself (from the statement)
def shares_storage(a, b):
    """True if a and b look at the same storage. A storage of 0 bytes is shared with nobody."""
    if a is b:
        return True
    first, second = a.untyped_storage(), b.untyped_storage()
    return first.nbytes() > 0 and first.data_ptr() == second.data_ptr()

# %% wrong: takes every tensor without elements for one with an empty storage (from the statement)
def shares_storage(a, b):
    """True if a and b look at the same storage. A storage of 0 bytes is shared with nobody."""
    if a.numel() == 0 or b.numel() == 0:
        return False
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()

# %% wrong: follows _base, which detach() and .data do not have (from the statement)
def shares_storage(a, b):
    """True if a and b look at the same storage. A storage of 0 bytes is shared with nobody."""
    if a.untyped_storage().nbytes() == 0:
        return False
    root_a = a if a._base is None else a._base
    root_b = b if b._base is None else b._base
    return root_a is root_b

# %% wrong: turns a bit over and back (from the statement)
# unseen: afterward, nothing that the visible cases look at has changed
def shares_storage(a, b):
    def whole(x):
        slots = x.untyped_storage().nbytes() // x.element_size()
        return x.detach().as_strided((slots,), (1,), 0).view(torch.uint8)

    first, second = whole(a), whole(b)
    if len(first) == 0 or len(second) == 0:
        return False
    before = second[0].item()
    first[0] ^= 1
    marked = second[0].item() != before
    first[0] ^= 1
    return marked

# %% right: goes back from the first element to the start, where there is one
def shares_storage(a, b):
    def start(x):
        if x.numel() == 0:
            return x.untyped_storage().data_ptr()
        return x.data_ptr() - x.storage_offset() * x.element_size()

    return start(a) != 0 and start(a) == start(b)

# %% right: the intervals of addresses
def shares_storage(a, b):
    def interval(x):
        storage = x.untyped_storage()
        return range(storage.data_ptr(), storage.data_ptr() + storage.nbytes())

    return len(interval(a)) > 0 and interval(a) == interval(b)

# %% right: the deprecated spelling
def shares_storage(a, b):
    return a.storage().data_ptr() == b.storage().data_ptr() and len(a.storage()) > 0

# %% right: the handles, where there is memory
def shares_storage(a, b):
    first, second = a.untyped_storage(), b.untyped_storage()
    return first.nbytes() > 0 and first._cdata == second._cdata

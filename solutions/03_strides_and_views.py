# %% [markdown]
r"""
# 03 · Strides and views

[← 02 · Dtypes](../02_dtypes/02_dtypes.ipynb) · [04 · Einops →](../04_einops/04_einops.ipynb)

> **What lies between a shape and the memory, and why are some operations free?**

Some operations give you a new tensor without moving a byte. Others make a copy. A copy takes as many bytes again, and
the time to move them. The two look alike in code, and sometimes the same method does one or the other. By the end of
this lecture you will have shown, with code of your own, that 8 MB of tokens can be seen as a tensor of a billion
elements, for nothing, and you will know which innocent call would make you pay for it.

How to read: run the cells in order (<kbd>Shift</kbd> + <kbd>Enter</kbd>). Where a cell says *predict*, write your
number first; being wrong is how you find out what to look at. The cell below each exercise checks your answer and names
the likely mistake; *Validate* in the toolbar runs them all.
"""

# %%
import io
import itertools
import math

import torch
from jaxtyping import Num
from torch import Tensor

from course_utils import device as devices
from course_utils import memory, plots, timing
from course_utils.predict import reconcile
from course_utils.progress import show_progress
from course_utils.units import format_bytes, readable
from course_utils.testing import check

device = devices.pick_device()
print(devices.describe(device))
show_progress()

# %% [markdown]
r"""
## 1 · A line of slots, and a way to walk it

Memory has no rows and columns. It is a line. A tensor is two things: a **storage**, which is that line, cut into slots
of one element each, and a little **metadata** that says how to find an element in it. Fill a storage with its own slot
numbers, and every tensor that looks at it prints its own map:
"""

# %% tags=["item-19"]
x = torch.arange(16.0).reshape(4, 4)

storage = x.untyped_storage()  # the line itself: bytes, without shape or dtype
assert storage.nbytes() == 16 * 4  # 16 slots of four bytes

metadata = (x.shape, x.stride(), x.storage_offset(), x.dtype)  # all that makes it 4 × 4
assert metadata == ((4, 4), (4, 1), 0, torch.float32)
print(x)

# %% [markdown]
r"""
> **Spelling.** Older code writes `x.storage()`. That is deprecated and warns; `x.untyped_storage()` is what it wants
> you to write.

The **strides** are the steps: how many slots further is the next element along each dimension? For our 4 × 4 matrix
they are `(4, 1)`: four slots to the next row, one slot to the next column.
"""

# %% tags=["item-20"]
assert x.stride() == (4, 1)
assert x.stride(0) == 4  # to the next row: skip a row of 4
assert x.stride(1) == 1  # to the next column: the neighbor

plots.show(
    plots.storage_layout(x, title="A 4 × 4 matrix is sixteen slots, row after row"),
    alt="A 4 by 4 matrix above its storage of 16 slots: the rows lie one after the other; "
    "a step down is 4 slots, a step right is 1.",
)

# %% [markdown]
r"""
The walk need not begin at slot 0. A part of a matrix begins where its first element lies, and that is its **storage
offset**. So here is the whole rule, for any tensor:

$$\text{slot} = \text{offset} + \sum_i \text{index}_i \cdot \text{stride}_i$$

> **A mistake that travels.** Many explanations give the formula without the offset. It works for every tensor that they
> show, because those begin at slot 0.

**Predict.** Take the lower right corner `corner = x[1:, 2:]`. How many slots from the start of the storage lies
`corner[1, 0]`? Find it in the picture above, then with the formula.
"""

# %%
guess = None  # the number of a slot

# %% tags=["item-21", "error-11"]
corner = x[1:, 2:]
assert corner.shape == (3, 2)
assert corner.stride() == (4, 1)  # steps are as in x: it is the same line
assert corner.storage_offset() == 6  # but the walk begins here

slot = corner.storage_offset() + 1 * corner.stride(0) + 0 * corner.stride(1)
reconcile("the slot of corner[1, 0]", guess, int(slot), "")
assert slot == 10
assert corner[1, 0] == 10  # the storage holds its own slot numbers, so the value tells

for i in range(3):
    for j in range(2):
        assert corner[i, j] == corner.storage_offset() + i * 4 + j * 1
without_offset = 1 * 4 + 0 * 1
assert without_offset not in corner  # slot 4 is not even a part of the corner

# %%
plots.show(
    plots.storage_layout(
        corner, highlight=(1, 0), title="A corner: begin at slot 6, step by 4 and by 1"
    ),
    alt="The lower right corner, 3 by 2, begins at slot 6 of 16 and steps by 4 and 1. "
    "Its element [1, 0] is slot 10.",
)

# %% [markdown]
r"""
*Try it yourself:* what are the offset and the strides of `x[2:, :3]`? Say it before you look. Then draw it, with
`plots.show(plots.storage_layout(x[2:, :3]), alt="the lower left corner")`.

### Exercise 3.1 · Where does it lie? &nbsp; ★★☆ &nbsp; 10 minutes

Write `storage_index(x, index)`: the number of the slot that holds `x[index]`. There is one whole number in `index` for
each dimension of `x`. As in Python, −1 is the last along its dimension, and a number that is outside raises
`IndexError`. Work it out from the metadata of `x` alone, its shape, strides and offset; make no other tensor of it, as
indexing does.
"""


# %% nbgrader={"grade": false, "grade_id": "storage_index", "locked": false, "schema_version": 3, "solution": true, "task": false}
def storage_index(x: Num[Tensor, "..."], index: tuple[int, ...]) -> int:
    """The slot, counted in elements from the start of the storage, that holds x[index].

    index: one number per dimension; negative ones count from the end. Raises IndexError for one that is outside.
    """
    ### BEGIN SOLUTION
    slot = x.storage_offset()
    for dim, i in enumerate(index):
        size = x.shape[dim]
        if not -size <= i < size:
            raise IndexError(f"index {i} is outside of dimension {dim}, which has size {size}")
        slot += (i % size) * x.stride(dim)
    return int(slot)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_storage_index", "locked": true}
check("storage_index")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Begin with <code>x.storage_offset()</code> and add one product for each
dimension.</details>
<details><summary>Hint 2</summary>First refuse what is outside −size … size − 1. Which ordinary index does −1 stand for, and
which one −size?</details>

**Why it matters.** This sum is what every kernel computes, for every element, before it touches memory. It will be the
first line of every CUDA or Triton kernel that you write.

## 2 · Views: another walk over the same line

Now the point of it all. To take a row, a column or the transpose, nothing has to be moved. The storage stays; a new
tensor gets other metadata. Such a tensor is called a **view**.
"""

# %% tags=["item-22", "item-23", "item-24", "item-25"]
x = torch.arange(16.0).reshape(4, 4)

row = x[1]
assert (row.stride(), row.storage_offset()) == ((1,), 4)  # begin at 4, step by 1

column = x[:, 1]
assert (column.stride(), column.storage_offset()) == ((4,), 1)  # begin at 1, step by 4

flat = x.view(16)  # the same slots under another shape
pairs = x.view(2, 8)
assert (flat.stride(), pairs.stride()) == ((1,), (8, 1))

transpose = x.T  # also x.transpose(0, 1)
assert transpose.stride() == (1, 4)  # the steps have changed places, and that is all

start = x.untyped_storage().data_ptr()  # the address where the storage begins
for view in (row, column, flat, pairs, transpose):
    assert view.untyped_storage().data_ptr() == start

# %%
plots.show(
    plots.storage_layout(row, title="A row: begin at slot 4, step by 1"),
    alt="Row 1 is slots 4 to 7 of the storage: it begins at 4 and steps by 1.",
)
plots.show(
    plots.storage_layout(column, title="A column: begin at slot 1, step by 4"),
    alt="Column 1 is slots 1, 5, 9 and 13: it begins at 1 and steps by 4.",
)
plots.show(
    plots.storage_layout(transpose, title="The transpose: the same slots, the steps exchanged"),
    alt="The transpose looks at all 16 slots, in the same storage, "
    "with a step of 1 down and 4 to the right.",
)

# %% [markdown]
r"""
There is even a view with *more* elements than slots. `expand` repeats a dimension of size 1 by giving it the stride 0:
every step stays where it is. This is how broadcasting adds a bias to a million rows without a million copies of it.
"""

# %%
row = x[1:2]  # still a matrix: [1, 4]
expanded = row.expand(3, 4)
assert expanded.stride() == (0, 1)
assert expanded.numel() == 12  # elements, in four slots

plots.show(
    plots.storage_layout(expanded, title="An expanded row: twelve elements in four slots"),
    alt="A row expanded to 3 by 4: twelve elements in slots 4 to 7, "
    "three on each of them, because the step down is 0.",
)

# %% [markdown]
r"""
A view has no numbers of its own. Write through one, and it shows through all the others.
"""

# %% tags=["item-27"]
x = torch.arange(16.0).reshape(4, 4)
transpose, column = x.T, x[:, 1]
x[2, 1] = -1

assert transpose[1, 2] == -1
assert column[2] == -1
column.zero_()  # the _ says: in place
assert x[:, 1].sum() == 0

# %% [markdown]
r"""
Writing to an expanded tensor is a different matter: which of the three elements on a slot should win? Arithmetic in
place (`add_`, `mul_`, `copy_`) refuses. Do not rely on that: `zero_`, `fill_` and `expanded[0, 0] = 7` go through, and
change all three rows.
"""

# %%
x = torch.arange(16.0).reshape(4, 4)
expanded = x[1:2].expand(3, 4)
ones = torch.ones(3, 4)
for write in (expanded.add_, expanded.mul_, expanded.copy_):
    try:
        write(ones)
    except RuntimeError as error:
        message = str(error)
        assert "more than one element of the written-to tensor" in message
    else:
        raise AssertionError("an expanded tensor was written to")
print(message)

expanded[0, 0] = 7  # goes through …
assert expanded[:, 0].tolist() == [7, 7, 7]  # … and all three rows have changed
expanded.fill_(3)
assert x[1].tolist() == [3, 3, 3, 3]
expanded.zero_()
assert x[1].tolist() == [0, 0, 0, 0]

# %% [markdown]
r"""
> **Trap: two kinds of brackets.** Slices and whole numbers (`x[1:3]`, `x[:, 0]`) can be said with an offset and
> strides, so they give views. A list, a mask or a tensor of indices (`x[[1, 2]]`, `x[x > 3]`) can pick anything in any
> order, which no strides can say. Those *copy*, even where a slice would have shown the same. (On the *left* of `=`,
> all brackets write into `x`: `x[[1, 2]] = 0` is an assignment, no copy.)
"""

# %%
x = torch.arange(16.0).reshape(4, 4)
assert torch.equal(x[1:3], x[[1, 2]])
x[1:3].zero_()  # writes into x
assert x.sum() == 0 + 1 + 2 + 3 + 12 + 13 + 14 + 15

x = torch.arange(16.0).reshape(4, 4)
x[[1, 2]].zero_()  # writes into a copy, which is then thrown away
assert x.sum() == sum(range(16))

x[[1, 2]] = 0  # an assignment: writes into x
assert x.sum() == 0 + 1 + 2 + 3 + 12 + 13 + 14 + 15

# %% [markdown]
r"""
> **Trap: a small view keeps a large storage.** As long as any view lives, all of its storage does. Keep one row of each
> batch "for later", and you keep every batch. Save one row, and you save the whole matrix. A `clone` of the row has a
> storage of its own and lets go of the rest.
"""

# %%
kept = torch.zeros(1024, 1024)[0]  # the matrix has no name any more, and yet it is still here
assert kept.numel() * kept.element_size() == 4 * 1024
assert kept.untyped_storage().nbytes() == 4 * 1024 * 1024
assert kept.clone().untyped_storage().nbytes() == 4 * 1024

file = io.BytesIO()
torch.save(kept, file)
assert file.tell() > 4 * 1024 * 1024  # a checkpoint of 4 kB, a thousand times too large

# %% [markdown]
r"""
How do you find out whether two tensors share a storage?

> **A mistake that travels.** "Compare `a.data_ptr()` with `b.data_ptr()`." But `Tensor.data_ptr` is the address of the
> tensor's *first element*: where its walk begins. Two views of one storage may begin in different places. What they
> have in common is the storage, so ask the storage.
"""

# %% tags=["item-26", "error-11"]
x = torch.arange(16.0).reshape(4, 4)

assert x[1:].data_ptr() != x.data_ptr()  # they look different …
assert x[1:].data_ptr() == x.data_ptr() + 4 * x.element_size()  # … as one begins 4 slots later

start = x.untyped_storage().data_ptr()  # the address where the storage begins
assert x[1:].untyped_storage().data_ptr() == start  # the same line
assert x.clone().untyped_storage().data_ptr() != start  # another line, with equal numbers

# %% [markdown]
r"""
*Try it yourself:* is `x.diagonal()` a view? Guess its stride first. And `x.flip(0)`? (PyTorch has no negative
strides.)

### Exercise 3.2 · One storage or two? &nbsp; ★★☆ &nbsp; 10 minutes

Write `shares_storage(a, b)`: `True` if the two tensors look at the same storage, whether or not they look at the same
slots of it. They may differ in shape, strides and dtype. Mind one thing: a tensor made empty, like `torch.empty(0)`,
has a storage of 0 bytes, whose address is 0. A storage of 0 bytes is shared with nobody; return `False` for it, also if
`b` is a view of `a` or `a` itself. Leave `a` and `b` as they are.
"""


# %% nbgrader={"grade": false, "grade_id": "shares_storage", "locked": false, "schema_version": 3, "solution": true, "task": false}
def shares_storage(a: Tensor, b: Tensor) -> bool:
    """True if a and b look at the same storage. A storage of 0 bytes is shared with nobody."""
    ### BEGIN SOLUTION
    address = a.untyped_storage().data_ptr()
    return address != 0 and address == b.untyped_storage().data_ptr()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_shares_storage", "locked": true}
check("shares_storage")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>The cell above compares the right addresses. What is left is the case in which an
address means nothing.</details>
<details><summary>Hint 2</summary>Which address does a storage of 0 bytes have, and what would you conclude from two of
them?</details>

**Why it matters.** Count the memory of a model tensor by tensor, and shared storages are counted twice: tied embeddings
are one storage under two names. And the question "who else sees it when I write here?" is this question.

## 3 · Contiguous: reading order is storage order

Which strides does a new tensor get? Its elements lie in reading order: the last dimension varies fastest, like digits
on a counter. So the last stride is 1, and each other dimension steps over everything to its right:

$$\text{stride}_i = \text{stride}_{i+1} \cdot \text{shape}_{i+1}$$

**Predict.** A batch of activations is `float32[32, 1024, 768]`: 32 sequences of 1,024 tokens, 768 numbers each. How
many *bytes* is it from one sequence to the next?
"""

# %%
guess = None  # bytes

# %%
activations = torch.empty(32, 1024, 768, device="meta")  # a shape and strides, without memory
assert activations.stride() == (1024 * 768, 768, 1) == (786_432, 768, 1)

step = activations.stride(0) * activations.element_size()
reconcile("from one sequence to the next", guess, step, "B")
assert step == 3_145_728  # 3 MiB

# %% [markdown]
r"""
*Try it yourself:* what are the strides of `torch.empty(2, 3).unsqueeze(1)`? That dimension has one element, so nobody
ever takes its step.

### Exercise 3.3 · The strides of a new tensor &nbsp; ★☆☆ &nbsp; 5 minutes

Write `contiguous_strides(shape)`: the strides of a new tensor of that shape, in elements. All sizes are at least 1.
Work it out from the numbers and make no tensor; then it also works for shapes that no machine could hold.
"""


# %% nbgrader={"grade": false, "grade_id": "contiguous_strides", "locked": false, "schema_version": 3, "solution": true, "task": false}
def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides, in elements, of a tensor of that shape whose elements lie in reading order."""
    ### BEGIN SOLUTION
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_contiguous_strides", "locked": true}
check("contiguous_strides")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Go from right to left, and carry the number of elements passed so far.</details>
<details><summary>Hint 2</summary>How far is a step along the last dimension? And how does the step grow with each size that
you pass?</details>

**Why it matters.** From these numbers you can tell what a loop over a tensor will do to the memory before you run it: a
step of 1 is a walk next door, one of 786,432 a journey for each element.

### What counts as contiguous

A tensor is **contiguous** if reading order is storage order without gaps. `x.is_contiguous()` tells. It checks exactly
the rule above (the last stride is 1, and each other one is the stride times the size of its right neighbor), with two
allowances: dimensions of size 1 are left out altogether, since no step is ever taken there, so their strides may be
anything; and a tensor without elements is always contiguous, since nothing could be out of order.
"""

# %%
x = torch.arange(16.0).reshape(4, 4)

assert x.is_contiguous() and x[1:].is_contiguous()  # an offset does no harm
assert not x.T.is_contiguous()  # (1, 4): another order
assert not x[:, :3].is_contiguous()  # (4, 1), but 4 ≠ 1 · 3: there is a gap after each row
assert not x[1:2].expand(3, 4).is_contiguous()  # (0, 1): the steps go nowhere

assert x[:, :1].stride() == (4, 1) and not x[:, :1].is_contiguous()  # 4 ≠ 1 · 1
assert x[:1, :].stride() == (4, 1) and x[:1, :].is_contiguous()
assert torch.empty_strided((4, 1), (1, 77)).is_contiguous()  # the 77 is never used
assert torch.empty_strided((0, 3), (5, 7)).is_contiguous()  # no elements

# %% [markdown]
r"""
*Try it yourself:* for which of `x[::2]`, `x[:2]`, `x[:, 2]`, `x[2]` will `is_contiguous()` be true? Say why, then
check.

### Exercise 3.4 · In order, without gaps? &nbsp; ★★☆ &nbsp; 10 minutes

Write `is_contiguous(shape, strides)`: does a tensor with these sizes and strides have its elements in reading order,
without gaps? Work it out from the numbers and make no tensor.
"""


# %% nbgrader={"grade": false, "grade_id": "is_contiguous", "locked": false, "schema_version": 3, "solution": true, "task": false}
def is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether reading order is storage order without gaps. Sizes of 1 and empty tensors as in PyTorch."""
    ### BEGIN SOLUTION
    if 0 in shape:
        return True
    step = 1
    for dim in reversed(range(len(shape))):
        if shape[dim] != 1 and strides[dim] != step:
            return False
        step *= shape[dim]
    return True
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_is_contiguous", "locked": true}
check("is_contiguous")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Go from right to left with the step that a contiguous tensor would have, as in the
last exercise, and compare.</details>
<details><summary>Hint 2</summary>Do not compare where the size is 1. Treat a shape with a 0 in it before anything
else.</details>

**Why it matters.** Kernels ask this question first. Contiguous input takes the fast path, anything else is copied,
refused, or read in a slower way.

## 4 · When can a shape change without a copy?

`view` promises not to copy. So it must find strides for the new shape, and sometimes there are none. Flatten a
transpose: reading order visits slots 0, 4, 8, 12, 1, 5, … and no single step does that.
"""

# %% tags=["item-28"]
x = torch.arange(16.0).reshape(4, 4)
try:
    x.T.view(16)
except RuntimeError as error:
    print(error)
    assert "view size is not compatible with input tensor's size and stride" in str(error)
else:
    raise AssertionError("a transpose was flattened without a copy")

# %% [markdown]
r"""
Read that message once more, slowly: it says *"at least one dimension spans across two contiguous subspaces"*. Not that
the tensor is not contiguous. That is the point of the next box.

> **A mistake that travels.** "A non-contiguous tensor cannot be viewed." It can, as long as the new shape asks for no
> step that does not exist.

Two things can happen to dimensions in a change of shape:

- **Splitting** one always works. A walk over 4 elements is two walks over 2.
- **Merging** two neighbors works if a step of the left one lands where the right one would land with one step past its
  end: $\text{stride}_i = \text{stride}_{i+1} \cdot \text{shape}_{i+1}$. The rule of contiguity again, but only for the
  dimensions that you merge.

A new shape may do both at once. What no new dimension may do is reach across a place where two neighbors do not merge:
the walk breaks there.
"""

# %% tags=["error-11"]
every_other = x[:, ::2]  # [4, 2] with strides (4, 2)
assert not every_other.is_contiguous()
assert every_other.stride(0) == every_other.stride(1) * 2  # the rule: they merge
assert every_other.view(8).stride() == (2,)  # one walk over slots 0, 2, 4, …, 14

assert x.T.view(2, 2, 4).stride() == (2, 1, 4)  # splitting a dimension of the transpose is fine
assert x[:, :3].stride() == (4, 1)  # but these do not merge: 4 ≠ 1 · 3

# %% [markdown]
r"""
**Predict.** Let `heads` be `[2, 3, 5, 4]` with strides `(60, 4, 12, 1)`: what attention has after `transpose(1, 2)`,
with batch, heads, tokens and numbers per head. Five changes of shape are tried below. How many of them fail?

| | new shape | what it asks for |
|---|---|---|
| A | `[2, 15, 4]` | merge heads with tokens |
| B | `[6, 5, 4]` | merge batch with heads |
| C | `[2, 3, 5, 2, 2]` | split the numbers |
| D | `[2, 3, 20]` | merge tokens with numbers |
| E | `[2, 3, 1, 5, 4]` | a new dimension of size 1 |
"""

# %%
guess = None  # views that fail

# %%
heads = torch.arange(120.0).view(2, 5, 3, 4).transpose(1, 2)
assert heads.shape == (2, 3, 5, 4) and heads.stride() == (60, 4, 12, 1)

asked = {
    "A": (2, 15, 4),
    "B": (6, 5, 4),
    "C": (2, 3, 5, 2, 2),
    "D": (2, 3, 20),
    "E": (2, 3, 1, 5, 4),
}
failed = []
for name, shape in asked.items():
    try:
        heads.view(shape)
    except RuntimeError:
        failed.append(name)
reconcile("views that fail", guess, len(failed), "of 5")
print(f"These fail: {', '.join(failed)}.")

assert failed == ["A", "B", "D"]
assert 4 != 12 * 5  # A: heads and tokens
assert 60 != 4 * 3  # B: batch and heads
assert 12 != 1 * 4  # D: tokens and numbers

# %% [markdown]
r"""
When no strides will do, the elements have to move. `contiguous()` makes a copy in reading order, and from there every
`view` works. If the tensor is contiguous already, it returns *the same tensor*.
"""

# %% tags=["item-29"]
x = torch.arange(16.0).reshape(4, 4)
copied = x.T.contiguous()

assert torch.equal(copied, x.T)  # the same numbers …
assert copied.stride() == (4, 1) and x.T.stride() == (1, 4)  # … laid out in another order …
assert not memory.same_storage(copied, x)  # … in a storage of its own
assert copied.view(16)[1] == 4  # now it can be flattened

assert x.contiguous() is x  # nothing to do, nothing copied

# %% [markdown]
r"""
`reshape` is the two together: a view if there are strides for it, else a copy. It never complains about strides, and
that is its danger. Whether a write through the result shows in `x` depends on strides that you may not even have seen.
"""

# %%
x.reshape(2, 8)[0, 0] = -1  # a view: written into x
assert x[0, 0] == -1

x.T.reshape(16)[0] = -2  # a copy: written nowhere
assert x[0, 0] == -1

# %% [markdown]
r"""
So: write `view` where you mean "for free", and be told when it is not. Write `reshape` where you do not mind paying.
Never write *into* the result of a `reshape`.

Here is a walk to move: an operation on a 3 × 4 matrix, or sizes, strides and offset by the sliders. Raise *elements
read*, and the slots light up in reading order. Which of the operations are not contiguous, and yet flattened for free?
Then begin with `x[:, :3]`: to which value must you move one stride so that `reshape` need not copy?
"""

# %%
from course_utils.widgets import stride_walk

stride_walk.explore("x.T")

# %% [markdown]
r"""
*Try it yourself:* let `out = torch.randn(2, 3, 5, 4)` be what attention returns: `[batch, heads, tokens, numbers]`. What
follows needs `[batch, tokens, heads · numbers]`. Try `out.transpose(1, 2).view(2, 5, 12)`. Do you see now why so much
code says `.transpose(1, 2).contiguous().view(…)`? Then try the same with `heads` in place of `out`: why does that one
work?

### Exercise 3.5 · Will `view` work? &nbsp; ★★★ &nbsp; 25 minutes

Write `viewable(shape, strides, new_shape)`: can a tensor with these sizes and strides be seen as `new_shape` without
moving an element? All sizes are whole numbers of 0 or more (no −1 here). `False` if the numbers of elements differ; a
tensor without elements can be seen as any other such shape. Dimensions of size 1 may appear and vanish freely. Work it
out from the numbers and make no tensor.
"""


# %% nbgrader={"grade": false, "grade_id": "viewable", "locked": false, "schema_version": 3, "solution": true, "task": false}
def viewable(
    shape: tuple[int, ...], strides: tuple[int, ...], new_shape: tuple[int, ...]
) -> bool:
    """Whether a tensor of that shape and strides can be seen as new_shape without a copy."""
    ### BEGIN SOLUTION
    if math.prod(shape) != math.prod(new_shape):
        return False
    if 0 in shape:
        return True
    edges, count = set(), 1  # how many elements the first 1, 2, 3, … new dimensions hold
    for size in new_shape:
        count *= size
        edges.add(count)
    walked = [dim for dim in range(len(shape)) if shape[dim] != 1]
    count = 1
    for left, right in itertools.pairwise(walked):
        count *= shape[left]
        merge = strides[left] == strides[right] * shape[right]
        if (
            not merge and count not in edges
        ):  # a break in the walk needs an edge between new dimensions
            return False
    return True
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_viewable", "locked": true}
check("viewable")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Settle what is simple: the numbers of elements, empty tensors, dimensions of size 1.
Then look at each pair of neighbors: do they merge? If they do not, the walk breaks between them, and no new dimension
may reach across the break.</details>
<details><summary>Hint 2</summary>Count pieces. A break behind dimensions of sizes 2 and 3 cuts the elements, in reading
order, into 2 · 3 = 6 equal pieces. The new shape has cuts of its own: <code>[3, 2, 4]</code> into 3, into 3 · 2 = 6 and
into 3 · 2 · 4 = 24 pieces. Every break needs a cut into the same number of pieces.</details>
<details><summary>A worked example</summary>

```
shape      [2,    2,    6]     strides (1, 12, 2)
merge?        no    yes        1 ≠ 12 · 2        12 = 2 · 6
pieces        2

new shape  [2, 4, 3]           cuts into 2, 8, 24 pieces: 2 is among them,  viewable
new shape  [4, 6]              cuts into 4, 24 pieces:    2 is not,         not viewable
```

</details>

**Why it matters.** You now know better than the error message why a `view` fails, and which of the dimensions is to
blame. The usual suspect in attention code is a merge of heads with numbers right after a transpose.

## 5 · What is free, and what it costs when it is not

Time to send the bill. First the memory, to the byte, for a matrix of 4 MiB:
"""

# %% tags=["item-30"]
x = torch.randn(1024, 1024, device=device)

with memory.track(device) as views:
    kept = [
        x.T,
        x[0],
        x[:, 0],
        x[::2, 1:],
        x.view(-1),
        x.expand(1000, 1024, 1024),
        x.diagonal(),
    ]
assert views.live == views.peak == 0  # seven tensors, one of them with a billion elements

with memory.track(device) as copies:
    kept = [x.T.contiguous(), x.clone(), x.T.reshape(-1)]
assert copies.live == 3 * 1024 * 1024 * 4  # each a copy of all of x

print(f"seven views: {views.live} B; three copies: {format_bytes(copies.live)}")

# %% [markdown]
r"""
Then the time. Three things are measured, for matrices from a few kilobytes on: the transpose, a *view*; a copy of the
matrix *in order*; and a copy of its transpose, which reads *across* the rows. Both copies write into memory that was
there before, so that they measure the moving alone.

**Predict.** The largest matrix below is 4096 × 4096, 64 MiB (on a CUDA GPU 16,384 × 16,384, 1 GiB). How long does it
take to transpose it with `x.T`? Remember that `1e-3` is a millisecond.
"""

# %%
guess = None  # seconds

# %% tags=["item-30", "timed"]
edges = [32, 64, 128, 256, 512, 1024, 2048, 4096]
if device.type == "cuda":
    edges += [8192, 16_384]
sizes = [4 * n * n for n in edges]  # bytes
threads = torch.get_num_threads()
torch.set_num_threads(1)  # a second thread waits whenever something else is running on its core
measured: dict[str, list[float]] = {"view: x.T": [], "copy in order": [], "copy across": []}
for n in edges:
    x = torch.randn(n, n, device=device)
    target = torch.empty_like(x)
    works = (lambda: x.T, lambda: target.copy_(x), lambda: target.copy_(x.T))
    for seconds, work in zip(measured.values(), works, strict=True):
        timed = timing.benchmark(work, warmup_seconds=0.02, min_seconds=0.05)
        seconds.append(timed.median)
torch.set_num_threads(threads)

print(f"{'bytes':>12} " + " ".join(f"{name:>15}" for name in measured))
for i, size in enumerate(sizes):
    print(f"{size:>12,} " + " ".join(f"{readable(s[i], 's'):>15}" for s in measured.values()))
view, in_order, across = (seconds[-1] for seconds in measured.values())
reconcile(f"x.T of {readable(sizes[-1], 'B')}", guess, view, "s")
moved = 2 * sizes[-1]  # bytes: each is read, and each is written
print(f"Read and written: {readable(moved / in_order, 'B/s')} in order,", end=" ")
print(f"{readable(moved / across, 'B/s')} across.")

assert 10 * view < in_order  # a factor of hundreds or thousands; ten is beyond any disturbance


# %% tags=["timed"]
plots.show(
    plots.curves(
        sizes,
        measured,
        xlabel="size of the matrix",
        ylabel="median time",
        xunit="B",
        yunit="s",
        title="A view takes a moment, whatever its size; a copy takes longer the more it moves",
    ),
    alt="Time against size, both on logarithmic axes. The view is a flat line at the bottom; "
    "both copies rise with the size, and the one across lies above the one in order.",
)

# %% [markdown]
r"""
The view is flat: Python makes a small object, and the storage is never touched. The copies go with bytes (read and
written) over bandwidth, once they are large enough. (For small matrices you see the fixed cost of a call, and the
caches, which are faster than memory.)

And *across* costs more than *in order* for the same bytes. Memory is not read one number at a time but in **lines**, on
most CPUs of 64 bytes, and all of a line comes along for the one number you asked for. Walk along the row, and you use
all of it. Walk down the column of a large matrix, and you use one number of each line, and by the time you come back
for the next it may be gone. Kernels that transpose work in small tiles for this reason. PyTorch's own copy of a
transpose does so on a CPU, so what you see there is what is left after that help. GPUs have the same trouble: they
fetch in sectors of 32 bytes.
"""

# %%
line, number = 64, 4  # bytes
assert line // number == 16  # neighbors that come along with each float32
assert number / line == 0.0625  # the share of the traffic that is of use, at worst

# %% [markdown]
r"""
So strides are free until somebody walks them. A view moves no bytes; it decides in which order they will be read later.

*Try it yourself:* `(x.T + 1).stride()` may surprise you: elementwise operations keep the layout of their input, because
that is the order in which reading and writing are cheapest. What is the layout of `x + x.T`?

## 6 · The result: a billion elements in 8 MB

One tool is left, the one under all the others. `as_strided(shape, strides)` makes a view with any shape and strides you
like, in the same storage; the offset stays that of the tensor, unless you give one. It trusts you: it refuses negative
strides, which PyTorch does not have, and a walk that leaves the storage, and nothing else.

Think of a language model's training data: one long line of tokens. Every position begins a *window*, a piece of text to
train on. Here are eight tokens and their windows of four:

```
tokens     0 1 2 3 4 5 6 7
windows    0 1 2 3
             1 2 3 4
               2 3 4 5
                 3 4 5 6
                   4 5 6 7
```

**Predict.** Take a sheet of paper, and draw where in storage the elements of this 5 × 4 matrix lie, if it is a view of
the eight tokens. Two steps tell it all: from one window to the next, and within a window. How many of the 20 elements
lie in slot 3?
"""

# %%
guess = None  # elements

# %%
tokens = torch.arange(8)
# One slot to the next window, and one slot to the next token within a window.
windows = tokens.as_strided((5, 4), (1, 1))
assert windows.tolist() == [
    [0, 1, 2, 3],
    [1, 2, 3, 4],
    [2, 3, 4, 5],
    [3, 4, 5, 6],
    [4, 5, 6, 7],
]

in_slot_3 = [(i, j) for i in range(5) for j in range(4) if i + j == 3]
reconcile("in slot 3", guess, len(in_slot_3), "elements")
assert len(in_slot_3) == 4 and windows.numel() == 20

plots.show(
    plots.storage_layout(
        windows, highlight=in_slot_3, title="Windows: twenty elements in eight slots"
    ),
    alt="Five windows of four tokens as a 5 by 4 matrix with strides 1 and 1: "
    "twenty elements on eight slots. The diagonal of four elements with the value 3 is one slot.",
)

# %% [markdown]
r"""
Not even writing is refused. PyTorch looks for a stride of 0, as `expand` makes it, and not for other overlaps. Here
every slot is written as often as it is seen, and what is in it afterwards depends on who came when.
"""

# %%
# What it does refuse:
for strides, refusal in (((-1, 1), "Negative strides"), ((2, 1), "out of bounds")):
    try:
        tokens.as_strided((5, 4), strides)
    except RuntimeError as error:
        assert refusal in str(error)
    else:
        raise AssertionError(f"as_strided took the strides {strides}")

shared = torch.arange(8)
shared.as_strided((5, 4), (1, 1)).add_(100)  # nobody refuses
assert shared.tolist() != list(range(100, 108))  # some slots were written several times

# %% [markdown]
r"""
*Try it yourself:* print `shared`. How often was each slot written? Compare with the picture.

> **Trap.** The steps are counted in slots of the *storage*, not in elements of the tensor. If the tokens are themselves
> a view with gaps, `(1, 1)` walks over the gaps and shows what is in them.
"""

# %%
gappy = torch.arange(16)[::2]  # 0, 2, 4, …, 14: a stride of 2
wrong = gappy.as_strided((2, 3), (1, 1))
assert wrong.tolist() == [[0, 1, 2], [1, 2, 3]]  # 1 and 3 are none of its elements

# %% [markdown]
r"""
### Exercise 3.6 · Sliding windows &nbsp; ★★☆ &nbsp; 10 minutes

Write `sliding_windows(x, size, dilation)`: all windows of `size` elements of `x`, one per row, the first of them
beginning at `x[0]`, the last one ending with the last element. Within a window, each element stands `dilation` places
behind the one before: next to it where `dilation` is 1, as it is if nothing is said. It must be a view, which looks at
the storage of `x` itself, for any `x` of one dimension, whatever its stride and offset. You may rely on sizes and
dilations of at least 1, and on an `x` that is long enough for one window.
"""


# %% nbgrader={"grade": false, "grade_id": "sliding_windows", "locked": false, "schema_version": 3, "solution": true, "task": false}
def sliding_windows(
    x: Num[Tensor, "n"], size: int, dilation: int = 1
) -> Num[Tensor, "windows size"]:
    """Row i is x[i], x[i + dilation], …: `size` elements, for every i that has so many. A view: nothing is copied."""
    ### BEGIN SOLUTION
    step = x.stride(0)
    count = len(x) - (size - 1) * dilation
    return x.as_strided((count, size), (step, dilation * step))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_sliding_windows", "locked": true}
check("sliding_windows")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Two questions: how many windows are there, and how many slots is it from one element
of <code>x</code> to the next?</details>
<details><summary>Hint 2</summary><code>x.as_strided(shape, strides)</code> keeps the offset of <code>x</code> if you give
none. How many slots further is the next element of a window, and how many the first element of the next window?</details>

**Why it matters.** Convolutions, moving averages, local attention and the sampling of training data are all windows over
a line; with a dilation, a convolution sees farther for the same number of weights. (For a dilation of 1 PyTorch has
`unfold`.)

### With everything you wrote

A million tokens, and all their windows of 1,024: the context of a small language model.

**Predict.** How many bytes would this matrix of windows take, if it were stored element by element, as `int64`?
"""

# %%
guess = None  # bytes

# %%
tokens = torch.randint(50_257, (1_000_000,), device=device)  # GPT-2's vocabulary
with memory.track(device) as used:
    windows = sliding_windows(tokens, 1024)
apparent = windows.numel() * windows.element_size()
reconcile("all windows, if each element had a slot", guess, apparent, "B")

assert windows.shape == (998_977, 1024)
assert windows.numel() == 1_022_952_448  # a billion elements
assert apparent == 8_183_619_584  # 8.18 GB …
assert memory.storage_bytes(windows) == 8_000_000  # … in 8 MB …
assert used.live == 0  # … that were there before
assert windows.stride() == tokens.unfold(0, 1024, 1).stride()  # PyTorch's own windows
assert shares_storage(windows, tokens)

at = storage_index(windows, (123_456, 789))
assert at == 123_456 + 789
assert windows[123_456, 789] == tokens[at]

# %% [markdown]
r"""
And the call that would cost 8 GB? Any that wants these elements in reading order, each in a slot of its own:
`windows.contiguous()`, or an innocent `windows.reshape(-1)`. Do not run them. Your own functions tell what would
happen:
"""

# %%
shape, strides = tuple(windows.shape), windows.stride()
assert not is_contiguous(shape, strides)
assert strides == (1, 1) and contiguous_strides(shape) == (1024, 1)
# Flattening needs a copy of all of it; cutting each window into pieces is free.
assert not viewable(shape, strides, (windows.numel(),))
assert viewable(shape, strides, (998_977, 32, 32))

with memory.track(device) as used:
    batch = windows[[5, 123_456, 998_976]]  # three windows, picked by a list: a copy
assert used.live == 3 * 1024 * 8 == 24_576  # of just what you asked for
inputs, targets = batch[:, :-1], batch[:, 1:]  # two views: each token, and the one that follows
assert torch.equal(inputs[:, 1:], targets[:, :-1])
for size, what in (
    (apparent, "to look at"),
    (memory.storage_bytes(windows), "to keep"),
    (used.live, "to train on"),
):
    print(f"{format_bytes(size):>20} {what}")

# %%
context_sizes = [1, 10, 100, 1_000, 10_000, 100_000]  # tokens in a window
seeming, real = [], []  # bytes
for size in context_sizes:
    windows = sliding_windows(tokens, size)
    seeming.append(windows.numel() * windows.element_size())
    real.append(memory.storage_bytes(windows))
assert real == [8_000_000] * 6
assert seeming[-1] == 900_001 * 100_000 * 8  # 720 GB

plots.show(
    plots.curves(
        context_sizes,
        {"real": real},
        {"seeming": seeming},
        xlabel="length of a window (tokens)",
        ylabel="bytes",
        yunit="B",
        title="The longer the windows, the more they seem to hold; the storage stays",
    ),
    alt="Bytes against the length of the windows, on logarithmic axes. What the windows seem to hold "
    "grows from 8 MB to 720 GB; the storage behind them is 8 MB throughout.",
)

# %% [markdown]
r"""
## Takeaways

**Mechanics.** A tensor is a storage, and a shape, strides and an offset to walk it: $\text{slot} =
\text{offset} + \sum_i \text{index}_i \cdot \text{stride}_i$. Slices, `view`, `T`, `transpose`, `expand` and
`as_strided` make views; lists and masks of indices, `clone` and `contiguous` (where it has something to do) make
copies; `reshape` makes either. Dimensions merge if $\text{stride}_i = \text{stride}_{i+1} \cdot \text{shape}_{i+1}$,
and split always. Whether two tensors share is a question to their storages.

**Mindset.** At each change of shape ask: a view or a copy? If you mean a view, write `view` and be told. If it is a
copy, say its bytes. If you write in place, know who else is looking.

**Intuitions.** A view costs a moment and no bytes, whatever its size. A copy costs bytes over bandwidth. A walk against
the grain of memory costs more for the same bytes. And the number of elements says nothing about the memory behind them:
ask the storage.

Next: [04 · Einops](../04_einops/04_einops.ipynb), names in place of positions, so that you need not remember what dimension −2 was. In **09 · The
training loop** the windows come back, over a file that is larger than memory.
"""

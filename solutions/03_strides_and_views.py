# %% [markdown]
r"""
# 03 · Strides and views

[← 02 · Dtypes](../02_dtypes/02_dtypes.ipynb) &nbsp;|&nbsp; [04 · Einops →](../04_einops/04_einops.ipynb)

> **How does a shape map to memory, and why are some operations free?**

Some operations give you a new tensor without moving a byte. Others make a copy, which needs memory of its own and takes
time to make. In code the two look alike, and some methods do one or the other depending on their input. In this lecture
you'll turn 8 MB of tokens into a tensor of a billion elements at no cost, and you'll learn which innocent-looking call
would make you pay for it.
"""

# %%
import io
import itertools
import math

import numpy as np
import torch
from jaxtyping import Num
from torch import Tensor

from course_utils import device as devices
from course_utils import memory, plots, timing
from course_utils.facts import FACTS
from course_utils.predict import reconcile
from course_utils.progress import show_progress
from course_utils.units import format_bytes, readable
from course_utils.testing import check

device = devices.pick_device()
print(devices.describe(device))
show_progress()

# %% [markdown]
r"""
## 1 · Storage and strides

Memory has no rows or columns; it's one long sequence of bytes. A tensor's **storage** is a one-dimensional
block of memory, which we'll think of as a row of element-sized *slots*. The tensor's *metadata* says how to find an
element in the storage. In this lecture we often fill each slot with its own position in the storage.
Then the values in any tensor that uses the storage tell us which slots they come from:
"""

# %% tags=["item-19"]
x = torch.arange(16.0).reshape(4, 4)

storage = x.untyped_storage()  # only bytes, without shape or dtype
assert storage.nbytes() == 16 * 4  # 16 slots of four bytes

metadata = (x.shape, x.stride(), x.storage_offset(), x.dtype)  # this is what makes it 4 × 4
assert metadata == ((4, 4), (4, 1), 0, torch.float32)
print(x)

# %% [markdown]
r"""
> **Trap: an old spelling.** Older code writes `x.storage()`. That's deprecated and gives a warning; write
> `x.untyped_storage()`.

A tensor has one **stride** per dimension: the number of slots from one element to the next along that dimension. For
our 4 × 4 matrix the strides are `(4, 1)`: four slots to the next row, one slot to the next column.
"""

# %% tags=["item-20"]
assert x.stride() == (4, 1)
assert x.stride(0) == 4  # to the next row: 4 slots on
assert x.stride(1) == 1  # to the next column: the neighbor

# %% tags=["folded"]
plots.show(
    plots.storage_layout(x, title="A 4 × 4 matrix is stored in sixteen slots, row after row"),
    alt="A 4 by 4 matrix above its storage of 16 slots: the rows lie one after the other; "
    "a step down is 4 slots, a step right is 1.",
)

# %% [markdown]
r"""
A tensor doesn't have to start at slot 0. If it contains only part of a matrix, it starts wherever the first element of
that part is. The slot of a tensor's first element is its **storage offset**. Here's the complete rule, for any tensor:

$$\text{slot} = \text{offset} + \sum_i \text{index}_i \cdot \text{stride}_i$$

> **Trap: the forgotten offset.** You may see this formula without the offset. That version works only for tensors that
> start at slot 0.

**Predict.** Take the lower right corner, `corner = x[1:, 2:]`. Which slot of the storage holds `corner[1, 0]`? Use the
formula, then check your answer in the picture above.
"""

# %%
guess = None  # which slot

# %% tags=["item-21", "error-11"]
corner = x[1:, 2:]
assert corner.shape == (3, 2)
assert corner.stride() == (4, 1)  # as for x: a step covers as many slots as before
assert corner.storage_offset() == 6  # but it starts here

slot = corner.storage_offset() + 1 * corner.stride(0) + 0 * corner.stride(1)
reconcile("the slot of corner[1, 0]", guess, int(slot), "")
assert slot == 10
assert corner[1, 0] == 10  # each slot holds its own number, so the value tells us

for i in range(3):
    for j in range(2):
        assert corner[i, j] == corner.storage_offset() + i * 4 + j * 1
without_offset = 1 * 4 + 0 * 1
assert without_offset not in corner  # slot 4 does not even belong to the corner

# %% tags=["folded"]
plots.show(
    plots.storage_layout(
        corner, highlight=(1, 0), title="A corner: start at slot 6, strides 4 and 1"
    ),
    alt="The lower right corner, 3 by 2, begins at slot 6 of 16 and steps by 4 and 1. "
    "Its element [1, 0] is slot 10.",
)

# %% [markdown]
r"""
*Try it yourself:* what are the offset and the strides of `x[2:, :3]`? Decide before you look. Then draw it with
`plots.show(plots.storage_layout(x[2:, :3]), alt="the lower left corner")`.

### Exercise 3.1 · Which slot? &nbsp; ★★☆ &nbsp; essential &nbsp; 10 minutes

Write `storage_index(x, index)`. It returns the number of the slot that holds `x[index]`. `index` contains one integer
for each dimension of `x`. As in Python, −1 means the last position along its dimension, and an index out of range
raises `IndexError`. Use only the metadata of `x` (its shape, strides and offset), and don't make another tensor from
`x` (indexing it would make one).
"""


# %% nbgrader={"grade": false, "grade_id": "storage_index", "locked": false, "schema_version": 3, "solution": true, "task": false}
def storage_index(x: Num[Tensor, "..."], index: tuple[int, ...]) -> int:
    """The slot, counted in elements from the start of the storage, that holds x[index].

    index: one number per dimension; negative ones count from the end. Raises IndexError if one is out of range.
    """
    ### BEGIN SOLUTION
    slot = x.storage_offset()
    for dim, i in enumerate(index):
        size = x.shape[dim]
        if not -size <= i < size:
            raise IndexError(
                f"index {i} is out of range for dimension {dim}, which has size {size}"
            )
        slot += (i % size) * x.stride(dim)
    return int(slot)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_storage_index", "locked": true}
check("storage_index")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Begin with <code>x.storage_offset()</code> and add one product for each
dimension.</details>
<details><summary>Hint 2</summary>First reject any index outside −size … size − 1. Which nonnegative index does −1 stand for, and
which does −size stand for?</details>

**Why it matters.** A GPU program that accepts tensors with arbitrary strides computes this sum to find each element in
memory. If you ever write one, the sum will be among its first lines.

## 2 · Views: new metadata for the same storage

To take a row, a column or the transpose of a matrix, PyTorch doesn't move anything. It keeps the storage and makes a
tensor with different metadata. A **view** is a tensor that shares the storage of another tensor.
"""

# %% tags=["item-22", "item-23", "item-24", "item-25"]
x = torch.arange(16.0).reshape(4, 4)

row = x[1]
assert (row.stride(), row.storage_offset()) == ((1,), 4)  # start at 4, stride 1

column = x[:, 1]
assert (column.stride(), column.storage_offset()) == ((4,), 1)  # start at 1, stride 4

flat = x.view(16)  # the same slots under another shape
pairs = x.view(2, 8)
assert (flat.stride(), pairs.stride()) == ((1,), (8, 1))

transpose = x.T  # also x.transpose(0, 1)
assert transpose.stride() == (1, 4)  # the strides are swapped (and the sizes, here both 4)

start = x.untyped_storage().data_ptr()  # the address where the storage begins
for view in (row, column, flat, pairs, transpose):
    assert view.untyped_storage().data_ptr() == start

# %% tags=["folded"]
plots.show(
    plots.storage_layout(row, title="A row: start at slot 4, stride 1"),
    alt="Row 1 is slots 4 to 7 of the storage: it begins at 4 and steps by 1.",
)
plots.show(
    plots.storage_layout(column, title="A column: start at slot 1, stride 4"),
    alt="Column 1 is slots 1, 5, 9 and 13: it begins at 1 and steps by 4.",
)
plots.show(
    plots.storage_layout(transpose, title="The transpose: the same slots, the strides swapped"),
    alt="The transpose uses all 16 slots, in the same storage, "
    "with a step of 1 down and 4 to the right.",
)

# %% [markdown]
r"""
A view can even have *more* elements than there are slots. `expand` repeats a dimension of size 1 by giving it stride 0,
so every step along it lands on the same slot. This is how broadcasting adds a bias to a million rows without making a
million copies of it.
"""

# %%
row = x[1:2]  # still a matrix: [1, 4]
expanded = row.expand(3, 4)
assert expanded.stride() == (0, 1)
assert expanded.numel() == 12  # elements, in four slots

# %% tags=["folded"]
plots.show(
    plots.storage_layout(expanded, title="An expanded row: twelve elements in four slots"),
    alt="A row expanded to 3 by 4: twelve elements in slots 4 to 7, "
    "three in each of them, because the step down is 0.",
)

# %% [markdown]
r"""
A view has no data of its own. If you write through one, every tensor that uses the same slots shows the change.
"""

# %% tags=["item-27"]
x = torch.arange(16.0).reshape(4, 4)
transpose, column = x.T, x[:, 1]
x[2, 1] = -1

assert transpose[1, 2] == -1
assert column[2] == -1
column.zero_()  # the _ means in place: it changes column itself
assert x[:, 1].sum() == 0

# %% [markdown]
r"""
What if you write to an expanded tensor, where several elements share a slot? Some in-place operations (`add_`, `mul_`,
`copy_`) refuse to do it. Don't rely on that: `zero_`, `fill_` and `expanded[0, 0] = 7` do work, and they change all
three rows.
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
print(message.replace(". ", ".\n"))

expanded[0, 0] = 7  # this works …
assert expanded[:, 0].tolist() == [7, 7, 7]  # … and all three rows have changed
expanded.fill_(3)
assert x[1].tolist() == [3, 3, 3, 3]
expanded.zero_()
assert x[1].tolist() == [0, 0, 0, 0]

# %% [markdown]
r"""
> **Trap: two kinds of indexing.** Slices and integers (`x[1:3]`, `x[:, 0]`) can be described by an offset and strides,
> so they give views. A list, a mask or a tensor of indices (`x[[1, 2]]`, `x[x > 3]`; this is called *advanced
> indexing*) can pick any elements in any order, which strides can't describe. So these make a *copy*, even where a
> slice would have selected the same elements. (On the *left* of `=`, all of them write into `x`: `x[[1, 2]] = 0` is an
> assignment and copies nothing.)
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
> **Trap: a small view keeps a large storage alive.** As long as any view of a storage exists, the whole storage stays
> in memory. If you keep one row of each batch for later, you keep every batch. If you save one row to a file, you save
> the whole matrix. If you keep a `clone` of the row instead, it has its own small storage, and the rest can be freed.
"""

# %%
# The matrix itself gets no name, but its storage goes on existing.
kept = torch.zeros(1024, 1024)[0]
assert kept.numel() * kept.element_size() == 4 * 1024
assert kept.untyped_storage().nbytes() == 4 * 1024 * 1024
assert kept.clone().untyped_storage().nbytes() == 4 * 1024

file = io.BytesIO()
torch.save(kept, file)
assert file.tell() > 4 * 1024 * 1024  # for a row of 4 KiB: a thousand times too large

# %% [markdown]
r"""
How can you tell whether two tensors share a storage?

> **Trap: the wrong address.** A common answer is to compare `a.data_ptr()` with `b.data_ptr()`. But `Tensor.data_ptr()`
> returns the address of the tensor's *first element*, and two views of one storage may start at different elements.
> Compare the addresses of their storages instead.
"""

# %% tags=["item-26", "error-11"]
x = torch.arange(16.0).reshape(4, 4)

assert x[1:].data_ptr() != x.data_ptr()  # they look different …
# … since one begins 4 slots later
assert x[1:].data_ptr() == x.data_ptr() + 4 * x.element_size()

start = x.untyped_storage().data_ptr()  # the address where the storage begins
assert x[1:].untyped_storage().data_ptr() == start  # the same storage
assert x.clone().untyped_storage().data_ptr() != start  # another storage, with equal numbers

# %% [markdown]
r"""
*Try it yourself:* is `x.diagonal()` a view? Guess its stride first. And is `x.flip(0)` a view? (PyTorch has no negative
strides.)

### Exercise 3.2 · One storage or two? &nbsp; ★☆☆ &nbsp; essential &nbsp; 5 minutes

Write `shares_storage(a, b)`. It returns `True` if the two tensors use the same storage, whether or not they use the
same slots of it. They may differ in shape, strides and dtype. There's one special case: a tensor created empty, like
`torch.empty(0)`, has a storage of 0 bytes whose address is 0. In this exercise a storage of 0 bytes never counts as
shared: return `False` if `a` or `b` has one, even if `b` is a view of `a` or is `a` itself. Both tensors were made by
PyTorch (not from a NumPy array), on a device that stores numbers (not "meta"). Don't change `a` or `b`.
"""


# %% nbgrader={"grade": false, "grade_id": "shares_storage", "locked": false, "schema_version": 3, "solution": true, "task": false}
def shares_storage(a: Tensor, b: Tensor) -> bool:
    """True if a and b use the same storage. A storage of 0 bytes never counts as shared."""
    ### BEGIN SOLUTION
    address = a.untyped_storage().data_ptr()
    return address != 0 and address == b.untyped_storage().data_ptr()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_shares_storage", "locked": true}
check("shares_storage")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>The code before this exercise compares the right addresses. What's left is the case in which an
address means nothing.</details>
<details><summary>Hint 2</summary>Which address does a storage of 0 bytes have, and what would you conclude from two of
them?</details>

**Why it matters.** If you count a model's memory tensor by tensor, you count shared storages twice. (Many language
models use one embedding table under two names, for the input and the output; GPT-3, in lecture 01, is one of them.) And
whenever you write to a tensor, you need to know who else will see the change.

## 3 · Contiguous tensors

Which strides does a tensor get that you make from a shape, such as `torch.zeros(3, 4)`? Its elements are stored in
*row-major order*: the last index changes fastest, like the last digit of a counter. So the last stride is 1, and a step
along any other dimension skips all the elements of the dimensions to its right:

$$\text{stride}_i = \text{stride}_{i+1} \cdot \text{shape}_{i+1}$$

**Predict.** A batch of activations is `float32[32, 1024, 768]`: 32 sequences of 1,024 tokens with 768 numbers each. How
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
*Try it yourself:* what are the strides of `torch.empty(2, 3).unsqueeze(1)`? The new dimension has only one element, so
its stride is never used.

### Exercise 3.3 · The strides of a new tensor &nbsp; ★☆☆ &nbsp; 5 minutes

Write `contiguous_strides(shape)`. It returns the strides of a new tensor of that shape, in elements. All sizes are at
least 1. Compute the strides from the sizes without making a tensor; then the function works for shapes that are too
large for any machine's memory.
"""


# %% nbgrader={"grade": false, "grade_id": "contiguous_strides", "locked": false, "schema_version": 3, "solution": true, "task": false}
def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides, in elements, of a tensor of that shape in row-major order."""
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
<details><summary>Hint 1</summary>Go from right to left, and keep track of the number of elements passed so far.</details>
<details><summary>Hint 2</summary>How far is a step along the last dimension? And how does the step grow with each size that
you pass?</details>

**Why it matters.** From the strides you can tell, before you run a loop, how it will access memory. With a stride of 1
the next element is next door; with a stride of 786,432 each one is far away.

### Which tensors are contiguous?

A tensor is **contiguous** if its elements are stored in row-major order without gaps. `x.is_contiguous()` checks
exactly the rule above (the last stride is 1, and any other stride is its right neighbor's stride times that neighbor's
size), with two exceptions. Dimensions of size 1 are left out first: their strides may be anything, and the dimensions
on either side are neighbors. And a tensor without elements is always contiguous.
"""

# %%
x = torch.arange(16.0).reshape(4, 4)

assert x.is_contiguous() and x[1:].is_contiguous()  # an offset does not matter
assert not x.T.is_contiguous()  # (1, 4): another order
assert not x[:, :3].is_contiguous()  # (4, 1), but 4 ≠ 1 · 3: there is a gap after each row
assert not x[1:2].expand(3, 4).is_contiguous()  # (0, 1): rows share slots

assert x[:, :1].stride() == (4, 1) and not x[:, :1].is_contiguous()  # 4 ≠ 1 · 1
assert x[:1, :].stride() == (4, 1) and x[:1, :].is_contiguous()
assert torch.empty_strided((4, 1), (1, 77)).is_contiguous()  # the 77 is never used
assert torch.empty_strided((0, 3), (5, 7)).is_contiguous()  # no elements

# %% [markdown]
r"""
*Try it yourself:* for which of `x[::2]`, `x[:2]`, `x[:, 2]`, `x[2]` is `is_contiguous()` true? Decide, and say why,
before you check.

### Exercise 3.4 · In order, without gaps? &nbsp; ★☆☆ &nbsp; 5 minutes

Write `is_contiguous(shape, strides)`. It returns `True` if a tensor with these sizes and strides is contiguous (its
elements are in row-major order without gaps, allowing for both exceptions above), and `False` otherwise. Compute the
answer from the numbers, without making a tensor.
"""


# %% nbgrader={"grade": false, "grade_id": "is_contiguous", "locked": false, "schema_version": 3, "solution": true, "task": false}
def is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether the elements are in row-major order without gaps; sizes of 0 and 1 as in PyTorch."""
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
<details><summary>Hint 1</summary>Go from right to left with the stride that a contiguous tensor would have, as in the
last exercise, and compare.</details>
<details><summary>Hint 2</summary>Don't compare where the size is 1. Handle a shape that contains a 0 before anything
else.</details>

**Why it matters.** Many operations have a fast path for contiguous tensors. If a tensor isn't contiguous, they make a
copy first, use a slower path, or raise an error.

## 4 · When can a shape change without a copy?

`view` promises not to copy. So it must find strides for the new shape, and sometimes there aren't any. Try to flatten
the transpose of our 4 × 4 matrix: in row-major order its elements are in slots 0, 4, 8, 12, 1, 5, …, and no single
stride produces that sequence.
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
Read that message again, slowly: it says *"at least one dimension spans across two contiguous subspaces"*. It doesn't
say that the tensor isn't contiguous, and the difference matters.

> **Trap: contiguous or not?** People say that a non-contiguous tensor can't be viewed. It can, as long as strides for
> the new shape exist.

A change of shape can do two things to dimensions:

- *Splitting* a dimension always works: 4 elements in a row are two groups of 2.
- *Merging* two neighboring dimensions works if a step along the left one leads exactly to where the right one would
  continue after its last element: $\text{stride}_i = \text{stride}_{i+1} \cdot \text{shape}_{i+1}$. This is the rule for
  contiguous tensors again, but only for the dimensions that you merge.

A new shape may do both. But if two neighboring dimensions of the old shape don't merge, there's a boundary between
them, and no dimension of the new shape may cross it: that would be the dimension that "spans across two contiguous
subspaces".
"""

# %% tags=["error-11"]
every_other = x[:, ::2]  # [4, 2] with strides (4, 2)
assert not every_other.is_contiguous()
assert every_other.stride(0) == every_other.stride(1) * 2  # the rule: they merge
assert every_other.view(8).stride() == (2,)  # slots 0, 2, 4, …, 14

assert x.T.view(2, 2, 4).stride() == (2, 1, 4)  # splitting a dimension of the transpose is fine
assert x[:, :3].stride() == (4, 1)  # but these do not merge: 4 ≠ 1 · 3

# %% [markdown]
r"""
**Predict.** Let `heads` be `[2, 3, 5, 4]` with strides `(60, 4, 12, 1)`. (You'll meet such a tensor in the next
lecture, after `transpose(1, 2)` in attention; its dimensions are batch, heads, tokens and features.) For how many of
these five new shapes does `heads.view` fail?

| | new shape | what it asks for |
|---|---|---|
| A | `[2, 15, 4]` | merge heads with tokens |
| B | `[6, 5, 4]` | merge batch with heads |
| C | `[2, 3, 5, 2, 2]` | split the features |
| D | `[2, 3, 20]` | merge tokens with features |
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
assert 12 != 1 * 4  # D: tokens and features

# %% [markdown]
r"""
If no strides fit the new shape, the elements have to move. `contiguous()` makes a copy in row-major order, and that
copy can be viewed as any shape with the same number of elements. If the tensor is already contiguous, it returns *the
same tensor*.
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
`reshape` combines `view` and `contiguous`: a view if possible, otherwise a copy. It never complains about strides, and
that's dangerous. Whether writing to the result changes `x` depends on strides that you may never have looked at.
"""

# %%
x.reshape(2, 8)[0, 0] = -1  # a view: this writes into x
assert x[0, 0] == -1

x.T.reshape(16)[0] = -2  # a copy: x does not change
assert x[0, 0] == -1

# %% [markdown]
r"""
So write `view` if you rely on getting a view; you'll get an error if it's impossible. Write `reshape` if you don't mind
a copy. And never write *into* the result of a `reshape`.

Try it out below: choose an operation on a 3 × 4 matrix, or set sizes, strides and offset with the sliders. Press play
on *elements read* to walk through the tensor row by row; the line shows which slots you visit. Which of the operations
give a tensor that isn't contiguous but can still be flattened without a copy, and what do their lines look like? Then
start with `x[:, :3]`, which can't be flattened without a copy: which value of its first stride would change that?
"""

# %%
from course_utils.explorers import stride_walk

stride_walk.explore("x[:2, 1:].T")

# %% [markdown]
r"""
*Try it yourself:* let `out = torch.randn(2, 3, 5, 4)` be `[batch, heads, tokens, features]`. The next operation needs
`[batch, tokens, heads · features]`. Try `out.transpose(1, 2).view(2, 5, 12)`. Do you see why so much code says
`.transpose(1, 2).contiguous().view(…)`? Now try the same with `heads` instead of `out`. Why does that work?

### Exercise 3.5 · Will `view` work? &nbsp; ★★★ &nbsp; 30 minutes

Write `viewable(shape, strides, new_shape)`. It returns `True` if a tensor with these sizes and strides can be viewed as
`new_shape` without moving an element, and `False` otherwise. All sizes are integers of at least 0 (there's no −1 here).
Return `False` if the numbers of elements differ; a tensor without elements can be viewed as any other shape without
elements. Dimensions of size 1 may appear and disappear freely. Compute the answer from the numbers, without making a
tensor.
"""


# %% nbgrader={"grade": false, "grade_id": "viewable", "locked": false, "schema_version": 3, "solution": true, "task": false}
def viewable(
    shape: tuple[int, ...], strides: tuple[int, ...], new_shape: tuple[int, ...]
) -> bool:
    """Whether a tensor with that shape and those strides can be viewed as new_shape without a copy."""
    ### BEGIN SOLUTION
    if math.prod(shape) != math.prod(new_shape):
        return False
    if 0 in shape:
        return True
    edges, count = (
        set(),
        1,
    )  # the numbers of pieces that the first 1, 2, 3, … new dimensions cut the elements into
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
        ):  # a boundary needs a cut into the same number of pieces
            return False
    return True
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_viewable", "locked": true}
check("viewable")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Handle the simple cases first: different numbers of elements, empty tensors, dimensions of size 1.
Then look at each pair of neighboring dimensions: do they merge? If they don't, there's a boundary between them, and no new dimension
may cross it.</details>
<details><summary>Hint 2</summary>Count pieces. A boundary after dimensions of sizes 2 and 3 cuts the elements, in row-major
order, into 2 · 3 = 6 equal pieces. The new shape makes cuts of its own: <code>[3, 2, 4]</code> cuts them into 3, into 3
· 2 = 6 and into 3 · 2 · 4 = 24 pieces. For every boundary, the new shape must have a cut into the same number of
pieces.</details>
<details><summary>A worked example</summary>

```
shape      [2,    2,    6]     strides (1, 12, 2)
merge?        no    yes        1 ≠ 12 · 2        12 = 2 · 6
pieces        2

new shape  [2, 4, 3]           cuts into 2, 8, 24 pieces: 2 is among them,  viewable
new shape  [4, 6]              cuts into 4, 24 pieces:    2 is not,         not viewable
```

</details>

**Why it matters.** When a `view` fails, you can now find out what the error message doesn't say: which two dimensions
don't merge. In attention code, a typical mistake is to try to merge heads with features by calling `view` right after a
transpose.

## 5 · The cost of copies

How much do views and copies cost? First the memory, to the byte, for a matrix of 4 MiB:
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
Then the time. We measure it for three operations on matrices of increasing size: the transpose, which is a *view*; a
copy of the matrix, which reads its elements *in order*; and a copy of its transpose, which reads them *by column*: down
one column, then down the next. Both copies write into memory that's already allocated, so we measure only the time to
move the data.

**Predict.** The largest matrix below is 4096 × 4096, 64 MiB (on a CUDA GPU 16,384 × 16,384, 1 GiB). How many seconds
does `x.T` take? You can write `1e-3` for a millisecond.
"""

# %%
guess = None  # seconds

# %% tags=["item-30", "timed"]
edges = [32, 64, 128, 256, 512, 1024, 2048, 4096]
if device.type == "cuda":
    edges += [8192, 16_384]
sizes = [4 * n * n for n in edges]  # bytes
threads = torch.get_num_threads()
torch.set_num_threads(1)  # with more, a copy would be as slow as the slowest of them
measured: dict[str, list[float]] = {"view: x.T": [], "copy in order": [], "copy by column": []}
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
view, in_order, by_column = (seconds[-1] for seconds in measured.values())
reconcile(f"x.T of {readable(sizes[-1], 'B')}", guess, view, "s")
moved = 2 * sizes[-1]  # bytes: each is read, and each is written
print(f"Read and written: {readable(moved / in_order, 'B/s')} in order,", end=" ")
print(f"{readable(moved / by_column, 'B/s')} by column.")

assert 10 * view < in_order  # in fact hundreds or thousands of times; ten allows for noise


# %% tags=["timed", "folded"]
of_view, *of_copies = measured.values()
finding = timing.conclusion(
    "A view takes the same time at any size; a copy takes longer the more it moves",
    {
        "a view takes about the same time at any size": max(of_view) < 3 * min(of_view),
        "a larger copy takes longer": all(  # up to noise: small ones may take equally long
            larger > 0.7 * smaller
            for of_copy in of_copies
            for smaller, larger in itertools.pairwise(of_copy)
        ),
    },
)
plots.show(
    plots.curves(
        sizes,
        measured,
        xlabel="size of the matrix",
        ylabel="median time",
        xunit="B",
        yunit="s",
        title=finding,
    ),
    alt="Time against size, both on logarithmic axes, for a view, a copy in order and a copy by column. "
    f"{finding}.",
)

# %% [markdown]
r"""
To make a view, PyTorch creates a small object; it never touches the storage. Once the matrix is large enough, a copy
*in order* takes as long as its bytes, read and written, divided by the bandwidth. (For small matrices you see the
overhead of the call and the effect of the caches, which are faster than memory.)

Copying *by column* takes longer than copying *in order*, although the number of bytes is the same. A CPU never reads a
single number from memory: it reads a whole **cache line**, a block of 64 bytes on most CPUs. If you walk along a row,
you use the whole line. If you walk down a column of a large matrix, you use only one number from each line, and by the
time you come back for the number next to it, other lines may have taken its place in the cache. The remedy is to
transpose one small block, or *tile*, of the matrix at a time. On a CPU, PyTorch's copy of a transpose does that (see
`copy_transpose_valid` in its `Copy.cpp`), and the difference you see is what remains after this optimization. NVIDIA's
GPUs have the same problem: they read memory in blocks of 32 bytes (CUDA C++ Best Practices Guide).
"""

# %%
line, number = 64, 4  # bytes
assert line // number == 16  # float32 numbers in a line
assert number / line == 0.0625  # the share of the traffic that is useful, at worst

# %% [markdown]
r"""
So strides cost nothing until somebody reads the elements. A view moves no bytes; it determines the order in which
they'll be read later.

*Try it yourself:* make a small matrix, `y = torch.zeros(3, 3)`, predict `(y.T + 1).stride()`, then look. (Elementwise
operations choose the order that's fastest to read and write. Which one is that here?) Then look at the strides of
`y + y.T` and of `y.T + y`: whose order wins?

### PyTorch and NumPy

NumPy is Python's array library. Like a tensor, a NumPy array is a block of memory with a shape and strides, so the two
can share memory, and passing an array from one library to the other needn't copy anything. Here's where they agree and
where they differ:

| | NumPy | PyTorch |
|:--|:--|:--|
| strides | in bytes | in elements |
| dtype of `zeros(3)` | `float64` | `float32` |
| slices and `.T` | views | views |
| a list or a mask in brackets | a copy | a copy |
| `reshape` | a view if possible | a view if possible |
| backwards, `a[::-1]` | a view with a negative stride | impossible; `flip` copies |

`torch.from_numpy(array)` and `tensor.numpy()` share memory, as does `torch.as_tensor(array)`; `torch.tensor(array)`
copies. `numpy()` works only if the tensor is on the CPU, doesn't require gradients (`requires_grad`, lecture 06), and
has a dtype that exists in NumPy (`bfloat16` doesn't).
"""

# %% tags=["item-102"]
array = np.zeros((3, 4))
tensor = torch.from_numpy(array)
assert array.dtype == np.float64 and tensor.dtype == torch.float64  # kept …
assert torch.zeros(3, 4).dtype == torch.float32  # … but PyTorch's own default is different
assert array.strides == (32, 8) and tensor.stride() == (4, 1)  # 8 bytes for each element
assert array.T.strides == (8, 32) and tensor.T.stride() == (1, 4)

tensor[0, 0] = 7
assert array[0, 0] == 7  # the same memory
assert np.shares_memory(tensor.numpy(), array)
assert np.shares_memory(torch.as_tensor(array).numpy(), array)
assert not np.shares_memory(torch.tensor(array).numpy(), array)
assert np.shares_memory(array[1:], array) and not np.shares_memory(array[[1, 2]], array)

assert array[::-1].strides == (-32, 8)
for refused in (
    lambda: torch.from_numpy(array[::-1]),  # a negative stride
    lambda: torch.zeros(3, requires_grad=True).numpy(),
    lambda: torch.zeros(3, dtype=torch.bfloat16).numpy(),
):
    try:
        refused()
    except (ValueError, RuntimeError, TypeError) as error:
        print(str(error).split(". ")[0])
    else:
        raise AssertionError("NumPy and PyTorch shared what they cannot share")

# %% [markdown]
r"""
**Predict.** Let `array` be `np.ones((1000, 1000))`. How many bytes does `torch.from_numpy(array).float()` allocate?
"""

# %%
guess = None  # bytes

# %%
array = np.ones((1000, 1000))
shared = torch.from_numpy(array)
assert shared.nbytes == 8_000_000 and np.shares_memory(shared.numpy(), array)  # nothing new
with memory.track("cpu") as converting:
    converted = shared.float()
reconcile("from NumPy to float32", guess, converting.live, "B")

assert converting.live == 4_000_000  # a copy, four bytes for each number
converted[0, 0] = 2
assert array[0, 0] == 1  # it's no longer shared

# %% [markdown]
r"""
As long as the two share memory, the array changes when you write to the tensor. After a copy it doesn't.

## 6 · A billion elements in 8 MB

One function is more general than all the others. `as_strided(shape, strides)` makes a view of the same storage with any
shape and any strides you like; it keeps the tensor's offset unless you give another. It checks very little: mainly that
no stride is negative, which PyTorch doesn't have, and that no element is outside the storage.

Think of a language model's training data as one long sequence of tokens. To train on it, we take *windows* from it:
stretches of a fixed length. A window can start at any position that still has enough tokens after it. Here are eight
tokens and their windows of four:

```
tokens     0 1 2 3 4 5 6 7
windows    0 1 2 3
             1 2 3 4
               2 3 4 5
                 3 4 5 6
                   4 5 6 7
```

Suppose that this 5 × 4 matrix is a view of the eight tokens. Draw on paper which slot each of its elements uses. You
need only two numbers: the stride from one window to the next and the stride within a window.

**Predict.** Now take a million tokens, in slots 0 to 999,999, and all their windows of 1,024. How many elements of that
matrix are in slot 500,000?
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
assert len(in_slot_3) == 4 and windows.numel() == 20

# Position j of a window is in slot 500,000 if the window starts j slots earlier.
starts = range(1_000_000 - 1_024 + 1)
in_one_slot = sum(500_000 - j in starts for j in range(1_024))
reconcile("in slot 500,000", guess, in_one_slot, "elements")
assert in_one_slot == 1_024  # as many as a window has positions

plots.show(
    plots.storage_layout(
        windows, highlight=in_slot_3, title="Windows: twenty elements in eight slots"
    ),
    alt="Five windows of four tokens as a 5 by 4 matrix with strides 1 and 1: "
    "twenty elements on eight slots. The diagonal of four elements with the value 3 is one slot.",
)

# %% [markdown]
r"""
You can also write to such a view. The operations that refused to write to an expanded tensor (section 2) look only for
a stride of 0, not for other overlaps. With overlapping windows, a slot is written once for each element that uses it:
`add_` adds to it several times, and after `copy_` it holds whichever number came last.
"""

# %%
# Negative strides and elements outside the storage are refused:
for strides, refusal in (((-1, 1), "Negative strides"), ((2, 1), "out of bounds")):
    try:
        tokens.as_strided((5, 4), strides)
    except RuntimeError as error:
        assert refusal in str(error)
    else:
        raise AssertionError(f"as_strided took the strides {strides}")

shared = torch.arange(8)
shared.as_strided((5, 4), (1, 1)).add_(100)  # overlapping writes are not refused
assert shared.tolist() != list(range(100, 108))  # some slots were written several times

# %% [markdown]
r"""
*Try it yourself:* print `shared`. How many times was each slot written? Compare with the picture.

> **Trap: strides count slots of the storage,** not elements of the tensor you start from. If the tokens are themselves
> a view with gaps, strides of `(1, 1)` show you what's in the gaps.
"""

# %%
gappy = torch.arange(16)[::2]  # 0, 2, 4, …, 14: a stride of 2
wrong = gappy.as_strided((2, 3), (1, 1))
assert wrong.tolist() == [[0, 1, 2], [1, 2, 3]]  # 1 and 3 are not elements of gappy

# %% [markdown]
r"""
### Exercise 3.6 · Sliding windows &nbsp; ★★☆ &nbsp; essential &nbsp; 10 minutes

Write `sliding_windows(x, size, dilation)`. It returns all windows of `size` elements of `x`, one per row; the first one
starts at `x[0]`, and the last one ends with the last element. Within a window, the elements are `dilation` apart: if
one is `x[i]`, the next is `x[i + dilation]`. By default `dilation` is 1. The result must be a view that uses the
storage of `x` itself, for any one-dimensional `x` of real numbers, whatever its stride and offset. You may rely on
`size` and `dilation` being at least 1, and on `x` being long enough for one window.
"""


# %% nbgrader={"grade": false, "grade_id": "sliding_windows", "locked": false, "schema_version": 3, "solution": true, "task": false}
def sliding_windows(
    x: Num[Tensor, "n"], size: int, dilation: int = 1
) -> Num[Tensor, "windows size"]:
    """One row per window: row i is the `size` elements x[i], x[i + dilation], … A view: nothing is copied."""
    ### BEGIN SOLUTION
    step = x.stride(0)
    count = len(x) - (size - 1) * dilation
    return x.as_strided((count, size), (step, dilation * step))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_sliding_windows", "locked": true}
check("sliding_windows")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>There are two questions: how many windows are there, and how many slots is it from one element
of <code>x</code> to the next?</details>
<details><summary>Hint 2</summary><code>x.as_strided(shape, strides)</code> keeps the offset of <code>x</code> if you give
none. How many slots is it to the next element of a window, and how many to the first element of the next window?</details>

**Why it matters.** Convolutions, moving averages, sliding-window attention (exercise 1.5) and the sampling of training
data all use windows over a sequence. (For a dilation of 1, PyTorch has `unfold`.)

### Everything you wrote, together

Let's make those million tokens and all their windows of 1,024, which is GPT-2's context length. A model's **context
length** is the number of tokens that it reads at a time. If each element had a slot of its own, as `int64`, the matrix
would take 8.18 GB:
"""

# %%
tokens = torch.randint(50_257, (1_000_000,), device=device)  # GPT-2's vocabulary
with memory.track(device) as used:
    windows = sliding_windows(tokens, 1024)
apparent = windows.numel() * windows.element_size()
assert FACTS["GPT-2 small context"].value == 1024
assert windows.shape == (998_977, 1024)
assert windows.numel() == 1_022_952_448  # a billion elements
assert apparent == 8_183_619_584  # 8.18 GB …
assert memory.storage_bytes(windows) == 8_000_000  # … in 8 MB …
assert used.live == 0  # … which were there already
assert windows.stride() == tokens.unfold(0, 1024, 1).stride()  # PyTorch's own windows
assert shares_storage(windows, tokens)

at = storage_index(windows, (123_456, 789))
assert at == 123_456 + 789
assert windows[123_456, 789] == tokens[at]

# %% [markdown]
r"""
And which call would cost 8 GB? Any call that has to store these elements in row-major order, each in its own slot:
`windows.contiguous()`, or an innocent-looking `windows.reshape(-1)`. Don't run them. Your own functions predict what
would happen:
"""

# %%
shape, strides = tuple(windows[:100].shape), windows.stride()  # the first hundred windows
assert not is_contiguous(shape, strides)
assert strides == (1, 1) and tuple(contiguous_strides(shape)) == (1024, 1)
# Flattening needs a copy of all of it; cutting each window into pieces is free.
assert not viewable(shape, strides, (100 * 1024,))
assert viewable(shape, strides, (100, 32, 32))

with memory.track(device) as used:
    batch = windows[[5, 123_456, 998_976]]  # three windows, picked by a list: a copy
assert used.live == 3 * 1024 * 8 == 24_576  # of just those three
inputs, targets = batch[:, :-1], batch[:, 1:]  # two views: each token, and the one that follows
assert torch.equal(inputs[:, 1:], targets[:, :-1])
for size, what in (
    (apparent, "for the elements of all windows"),
    (memory.storage_bytes(windows), "in storage"),
    (used.live, "for a batch of three"),
):
    print(f"{format_bytes(size):>20} {what}")

# %% [markdown]
r"""
As long as windows are much shorter than the text, longer ones mean that more of them contain a given token, and that
the view saves more memory:
"""

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
        {"in storage": real},
        {"if each element had a slot": seeming},
        xlabel="length of a window (tokens)",
        ylabel="bytes",
        yunit="B",
        title="Longer windows have more elements; the storage stays the same",
    ),
    alt="Bytes against the length of the windows, on logarithmic axes. The bytes that their elements would take "
    "grow from 8 MB to 720 GB; the storage behind them is 8 MB throughout.",
)

# %% [markdown]
r"""
## Takeaways

**Mechanics.** A tensor is a storage together with a shape, strides and an offset:
$\text{slot} = \text{offset} + \sum_i \text{index}_i \cdot \text{stride}_i$. Slices, `view`, `T`, `transpose`, `expand`
and `as_strided` make views. `clone`, `contiguous` (unless the tensor is contiguous already), and indexing with a list,
a mask or a tensor of indices make copies. `reshape` makes one or the other. Two dimensions merge if
$\text{stride}_i = \text{stride}_{i+1} \cdot \text{shape}_{i+1},$ and splitting always works. To find out whether two
tensors share a storage, compare the addresses of their storages.

**Mindset.** At each change of shape, ask whether it's a view or a copy. If you rely on a view, write `view` and let
PyTorch check. If it's a copy, work out how many bytes it takes. Before you write in place, know who else uses the
storage.

**Intuitions.** A view takes about a microsecond and no memory, whatever its size. A copy takes as long as its bytes
divided by the bandwidth, or longer if it reads down the columns. The number of elements doesn't tell you how much
memory they use; look at the size of the storage.

Next: [04 · Einops](../04_einops/04_einops.ipynb). Can you give the dimensions names, so that you don't have to remember
what dimension −2 was?
"""

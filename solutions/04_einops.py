# %% [markdown]
r"""
# 04 · Einops

[← 03 · Strides and views](../03_strides_and_views/03_strides_and_views.ipynb) · [05 · FLOPs and MFU →](../05_flops_and_mfu/05_flops_and_mfu.ipynb)

> **Which dimension is −2?**

Is it the tokens? The heads? It depends on what somebody did three lines above, and PyTorch will not ask. Code that
counts dimensions runs just as well when it has counted wrong. In this lecture you name them instead. By the end you
will have shown, with code of your own, that multi-head causal attention, the operation at the heart of nearly every
language model today, is six lines that can be read aloud; that yours agrees with PyTorch's to rounding; that you can
draw who looks at whom; and that the future cannot be seen, to the last bit.

How to read: run the cells in order (<kbd>Shift</kbd> + <kbd>Enter</kbd>). Where a cell says *predict*, write your
number first; being wrong is how you find out what to look at. The cell below each exercise checks your answer and names
the likely mistake; *Validate* in the toolbar runs them all.

`einops` is a small library by Alex Rogozhnikov. Six functions of it are all you need, and you will meet them here.
"""

# %%
import math
from typing import Any

import torch
from beartype import beartype
from einops import EinopsError, einsum, pack, rearrange, reduce, repeat, unpack
from jaxtyping import Bool, Float, Int, jaxtyped
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils import device as devices
from course_utils import memory, plots, timing
from course_utils.flops import count_flops
from course_utils.predict import reconcile
from course_utils.progress import show_progress
from course_utils.units import format_bytes
from course_utils.testing import check

torch.manual_seed(0)  # the same random numbers on every run
device = devices.pick_device()
print(devices.describe(device))
show_progress()

# %% [markdown]
r"""
## 1 · Which dimension is −2?

Here is a line that you will meet in many models. It compares each *query* vector with each *key* vector, by their dot
product:

```python
scores = q @ k.transpose(-2, -1)
```

What do the scores compare with what? The line does not say. `@` multiplies along the last two dimensions, and which
these are was decided elsewhere. Suppose that each of 5 tokens has 3 query vectors (one for each of 3 *heads*; section 6
explains them) of 4 numbers.

**Predict.** Let `q` and `k` be `float32[2, 5, 3, 4]`: 2 sequences, 5 tokens, 3 heads, 4 numbers. We want every token
compared with every other, for each sequence and each head: 2 · 3 · 5 · 5 = 150 scores. How many scores does the line
give?
"""

# %%
guess = None  # scores

# %% tags=["item-35"]
q = torch.randn(2, 5, 3, 4)  # batch, tokens, heads, numbers
k = torch.randn(2, 5, 3, 4)

scores = q @ k.transpose(-2, -1)  # no error, no warning
reconcile("the line gives", guess, scores.numel(), "scores")

assert scores.shape == (2, 5, 3, 3)  # heads against heads, within each token
assert scores.numel() == 90
dot_product = (q[0, 0, 0] * k[0, 0, 1]).sum()
assert torch.isclose(scores[0, 0, 0, 1], dot_product)  # head 0 with head 1, both of token 0

# %% [markdown]
r"""
Dimension −2 was the heads. No token was compared with any other. Here the shape betrays it, if somebody looks. Now give
the model as many heads as there are tokens in your test, and nothing betrays it:
"""

# %%
q = torch.randn(2, 4, 4, 8)  # batch, 4 tokens, 4 heads, numbers
k = torch.randn(2, 4, 4, 8)

careless = q @ k.transpose(-2, -1)
careful = q.transpose(1, 2) @ k.transpose(1, 2).transpose(-2, -1)  # first [batch, heads, …]
assert careless.shape == careful.shape == (2, 4, 4, 4)
assert not torch.allclose(careless, careful)  # the same shape, and other numbers

# %% [markdown]
r"""
The same with names. Read it aloud: *for each batch and head, for each token t and token s, the products over e,
summed.* It gives the right scores whatever the sizes are:
"""

# %%
pattern = "batch t head e, batch s head e -> batch head t s"
assert torch.allclose(einsum(q, k, pattern), careful, atol=1e-5)

q, k = torch.randn(2, 5, 3, 4), torch.randn(2, 5, 3, 4)  # the sizes of the first cell
assert einsum(q, k, pattern).shape == (2, 3, 5, 5)  # all 150 of them

# %% [markdown]
r"""
*Try it yourself:* what does `q @ k.T` do for these tensors of four dimensions? PyTorch says something about it.

## 2 · Names for the reader, and for the machine

The other lectures annotate functions with names, like this. `Float[Tensor, "batch t e"]` says: a tensor of floats whose
three dimensions we call `batch`, `t` and `e`. The same name means the same size, everywhere in one signature. This is
the library `jaxtyping` (it began with JAX, and works for PyTorch as well).
"""


# %% tags=["item-36"]
def compare(
    q: Float[Tensor, "batch t e"], k: Float[Tensor, "batch s e"]
) -> Float[Tensor, "batch t s"]:
    return q @ k.transpose(-2, -1)


q = torch.randn(2, 3, 4)
good, bad = torch.randn(2, 5, 4), torch.randn(1, 5, 4)
assert compare(q, good).shape == (2, 3, 5)
assert compare(q, bad).shape == (2, 3, 5)  # another batch: stretched by broadcasting, no error

# %% [markdown]
r"""
Python attaches annotations to a function and never looks at them again. So it did not mind that `bad` has another batch
size, which is against the annotation.

> **A mistake that travels.** "jaxtyping is only documentation." It is, if you leave it there. It is enforced when you
> ask: with the decorator `jaxtyped` and a type checker such as `beartype`, or, for one tensor, with `isinstance`.
"""

# %% tags=["item-36", "error-10"]
checked = jaxtyped(typechecker=beartype)(compare)  # or as a decorator, @…, above the def

assert torch.equal(checked(q, good), compare(q, good))
try:
    checked(q, bad)
except TypeError as error:  # jaxtyping.TypeCheckError, which is a TypeError
    message = str(error)
    assert "parameter 'k'" in message and "f32[1,5,4]" in message
    print(message)
else:
    raise AssertionError("the batch of 1 was not noticed")

# %%
fits: list[Any] = [
    Float[Tensor, "batch t e"],
    Float[Tensor, "2 t e"],  # a number: this size and no other
    Float[Tensor, "... e"],  # any dimensions in front; none is fine too
]
fits_not: list[Any] = [
    Float[Tensor, "batch t"],  # another number of dimensions
    Float[Tensor, "batch t t"],  # one name, two sizes
    Int[Tensor, "batch t e"],  # the dtype counts too
]
assert all(isinstance(q, kind) for kind in fits)
assert not any(isinstance(q, kind) for kind in fits_not)
assert isinstance(q[0, 0], fits[2])  # one vector, with nothing in front

# %% [markdown]
r"""
What comes out is checked as well. So a function that mixes up its dimensions is caught where it happens, and not three
files later. But a check sees sizes, not meanings. If two dimensions of the same size are exchanged, it cannot notice.
So test with sizes that are all different.
"""


# %% tags=["timed"]
@jaxtyped(typechecker=beartype)
def transpose_badly(x: Float[Tensor, "t e"]) -> Float[Tensor, "e t"]:
    return x  # forgotten


try:
    transpose_badly(torch.zeros(3, 4))
except TypeError as error:
    assert "return value" in str(error)
else:
    raise AssertionError("the result was not checked")

transpose_badly(torch.zeros(4, 4))  # passes: 4 is 4

nothing = torch.empty(2, 3, 4, device="meta")  # a shape and a dtype, and no elements
assert checked(nothing, nothing).shape == (2, 3, 3)  # can be checked all the same

print("not checked:", timing.benchmark(lambda: compare(q, good), min_seconds=0.05))
print("checked:    ", timing.benchmark(lambda: checked(q, good), min_seconds=0.05))

# %% [markdown]
r"""
The check looks at shapes and dtypes, never at the elements. So what it costs is some Python for each call (the
difference of the two times above), whatever the size of the tensors. Check where that is little: in tests, and in
functions that run a few times per step.

*Try it yourself:* annotate `compare` with `"batch t e"` for both `q` and `k`, make `checked` again and call it with
`good`. Which size does it complain about?

### Exercise 4.1 · What a name means &nbsp; ★★☆ &nbsp; 12 minutes

How does one enforce names? With a dictionary. Write `bind_names(names, shape, sizes)`: match one shape with its names.
`sizes` holds what is known so far, from other tensors. Return a *new* dictionary with all that is known afterwards, and
leave `sizes` as it is. A name that is a number, such as `12` or `0`, demands that size and does not enter the dictionary. The
first name, and no other, may be `...`: it stands for any number of dimensions, also none, whose sizes do not matter. A scalar's shape
`()` has no names, so `""` fits it. Raise `ValueError` if the number of dimensions is wrong, if one name would have two
sizes, or if a demanded size is not there.

```python
bind_names("batch t d", (2, 3, 4), {"t": 3})   # {"t": 3, "batch": 2, "d": 4}
bind_names("... 12 d", (2, 12, 4), {})         # {"d": 4}
```
"""


# %% nbgrader={"grade": false, "grade_id": "bind_names", "locked": false, "schema_version": 3, "solution": true, "task": false}
def bind_names(names: str, shape: tuple[int, ...], sizes: dict[str, int]) -> dict[str, int]:
    """All sizes known after matching a shape with its names. ValueError where they disagree.

    names: separated by spaces; a number stands for itself, and `...` in front for any dimensions.
    """
    ### BEGIN SOLUTION
    known = dict(sizes)
    wanted = names.split()
    if wanted[:1] == ["..."]:
        del wanted[0]
        shape = shape[max(len(shape) - len(wanted), 0) :]
    for name, size in zip(wanted, shape, strict=True):  # unequal lengths: ValueError
        expected = int(name) if name.isdigit() else known.setdefault(name, size)
        if size != expected:
            raise ValueError(f"{name} is {expected}, but the shape {shape} says {size}")
    return known
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_bind_names", "locked": true}
check("bind_names")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Three steps: take <code>...</code> away together with the sizes that it stands for;
compare the two lengths; then go through names and sizes in pairs.</details>
<details><summary>Hint 2</summary>For each pair: is the name a number (<code>name.isdigit()</code>)? Is it known
already? Only if neither, write it down.</details>

**Why it matters.** This is what `jaxtyped` does for every annotated tensor of a call, with one dictionary for all of
them. You will see that `einsum` and `rearrange` do the same before they move anything.

One dictionary, handed from tensor to tensor, holds all three shapes of a product to their names:
"""

# %%
known: dict[str, int] = {}
for names, shape in (("batch t d", (2, 3, 4)), ("d k", (4, 5)), ("batch t k", (2, 3, 5))):
    known = bind_names(names, shape, known)
    print(f"{names:>9} = {shape}: {known}")

try:
    bind_names("batch t k", (2, 3, 6), known)
except ValueError as error:
    print(f"a k of 6 is refused: {error}")
else:
    raise AssertionError("a k of 6 passes where 5 is known")

# %% [markdown]
r"""
## 3 · einsum: what is not in the output is summed

`einsum` takes tensors and a pattern. To the left of the arrow it names the dimensions of each tensor, to the right
those of the result. That is all you need to know, because it means a loop for each name:
"""

# %% tags=["item-37"]
batch, t, s, e = 2, 3, 5, 4
q, k = torch.randn(batch, t, e), torch.randn(batch, s, e)

old = q @ k.transpose(-2, -1)
new = einsum(q, k, "batch t e, batch s e -> batch t s")
assert torch.allclose(new, old, atol=1e-5)

loops = torch.zeros(batch, t, s)  # the names after the arrow
for i_batch in range(batch):
    for i_t in range(t):
        for i_s in range(s):
            for i_e in range(e):  # not named in the result: summed
                loops[i_batch, i_t, i_s] += q[i_batch, i_t, i_e] * k[i_batch, i_s, i_e]
assert torch.allclose(new, loops, atol=1e-5)

# %% [markdown]
r"""
So there are three things that a name can do. `batch` is in both tensors and in the result: it goes along. `t` and `s`
are in one tensor each and in the result: every pair is formed. `e` is not in the result: it is summed. Sums, products
of matrices, transposes, diagonals: all are this one rule. And `...` stands for dimensions that you do not want to name.
"""

# %% tags=["item-38"]
x, y = torch.randn(3, 4), torch.randn(3, 4)
square, w = torch.randn(4, 4), torch.randn(4, 6)
for old, new in (
    (x.T, einsum(x, "a b -> b a")),
    (x.sum(dim=0), einsum(x, "a b -> b")),
    (x.sum(), einsum(x, "a b ->")),
    (x @ w, einsum(x, w, "a b, b c -> a c")),
    (x * y, einsum(x, y, "a b, a b -> a b")),
    ((x * y).sum(dim=1), einsum(x, y, "a b, a b -> a")),  # a dot product for each row
    (square.trace(), einsum(square, "i i ->")),  # one name twice: the diagonal
):
    assert torch.allclose(old, new, atol=1e-5)

deep = torch.randn(2, 7, 5, 4)
assert torch.allclose(deep @ w, einsum(deep, w, "... d, d k -> ... k"), atol=1e-5)
assert torch.allclose(x @ w, einsum(x, w, "... d, d k -> ... k"), atol=1e-5)

# %% [markdown]
r"""
> **A mistake that travels.** `einsum(q, k, "b h s d, b h s d -> b h s s")` for attention scores. It cannot work. In a
> pattern one name is one loop, and query and key move independently: they need two names. Neither einops nor PyTorch
> accepts a name twice in the result.
"""

# %% tags=["error-25"]
q = k = torch.randn(2, 3, 5, 4)
try:
    einsum(q, k, "b h s d, b h s d -> b h s s")
except EinopsError as error:
    print(error)
    assert 'duplicate dimension "s"' in str(error)
else:
    raise AssertionError("a repeated name was accepted in the result")
try:
    torch.einsum("bhsd,bhsd->bhss", q, k)
except RuntimeError as error:
    assert "more than once in the output" in str(error)
else:
    raise AssertionError("PyTorch accepted a repeated name in the result")

assert einsum(q, k, "b h t d, b h s d -> b h t s").shape == (2, 3, 5, 5)

# %% [markdown]
r"""
> **Two traps that names do not close.** A name that you *forget* on the right is summed, without a word. And the sizes
> of a name must agree, except that `einsum` still broadcasts a size of 1. The check of section 2 catches both: the
> result does not have the shape that it promised, or an argument has another size.
"""

# %%
x, w = torch.randn(2, 3, 4), torch.randn(4, 6)
forgotten = einsum(x, w, "b t d, d k -> b k")  # where is t?
assert torch.allclose(forgotten, (x @ w).sum(dim=1), atol=1e-5)

one = torch.randn(1, 5, 4)  # a batch of 1 against a batch of 2
assert einsum(x, one, "b t d, b s d -> b t s").shape == (2, 3, 5)


@jaxtyped(typechecker=beartype)
def widen(x: Float[Tensor, "b t d"], w: Float[Tensor, "d k"]) -> Float[Tensor, "b t k"]:
    return einsum(x, w, "b t d, d k -> b k")  # forgotten again


for function, arguments in ((widen, (x, w)), (checked, (x, one))):
    try:
        function(*arguments)
    except TypeError:
        continue  # noticed
    raise AssertionError(f"{function.__name__} did not notice")

# %% [markdown]
r"""
### What does it cost?

Count in the loops. In the innermost one there is one multiplication and one addition, two FLOPs (floating-point
operations; lecture 05 is about them). It runs once for each combination of all the names. So, for two tensors and a sum
over names that both of them have,

$$\text{FLOPs} = 2 \cdot \text{the product of the sizes of all names, each taken once.}$$

**Predict.** A layer of GPT-2 widens its vectors from 768 to 3,072 numbers: `einsum(x, w, "b t d, d k -> b t k")`, here
for a batch of 8 sequences of 1,024 tokens. How many FLOPs?
"""

# %%
guess = None  # FLOPs

# %%
b, t, d, k = 8, 1024, 768, 3072
x = torch.empty(b, t, d, device="meta")  # shapes without memory: nothing is computed
w = torch.empty(d, k, device="meta")
counted = count_flops(lambda: einsum(x, w, "b t d, d k -> b t k"))
reconcile("to widen the vectors", guess, counted, "FLOPs")

assert counted == 2 * b * t * d * k == 38_654_705_664

# %% [markdown]
r"""
With three tensors or more, PyTorch multiplies two at a time, from left to right (unless the package `opt_einsum` is
installed, which looks for a good order). It matters which two come first. (A single loop over all names, with two
multiplications and an addition inside, would be more work still.) If you know a good order, write two einsums.
"""

# %%
b, i, j, k = 1, 1000, 1000, 1000  # one vector through two square matrices
x, w1, w2 = (torch.empty(*shape, device="meta") for shape in ((b, i), (i, j), (j, k)))
vector_first = count_flops(
    lambda: einsum(einsum(x, w1, "b i, i j -> b j"), w2, "b j, j k -> b k")
)
matrices_first = count_flops(
    lambda: einsum(x, einsum(w1, w2, "i j, j k -> i k"), "b i, i k -> b k")
)
assert vector_first == 2 * b * i * j + 2 * b * j * k == 4_000_000
assert matrices_first == 2 * i * j * k + 2 * b * i * k == 2_002_000_000
assert 3 * b * i * j * k == 3_000_000_000  # the single loop

in_one = count_flops(lambda: einsum(w1, w2, x, "i j, j k, b i -> b k"))  # the vector comes last
if not torch.backends.opt_einsum.is_available():
    assert in_one == matrices_first  # from left to right
print(f"the same result for {matrices_first / vector_first:.4g} times the work")

# %% [markdown]
r"""
*Try it yourself:* for which `b` is it better to multiply the two matrices first?

## 4 · reduce: say what is left, and how the rest is summed up

`einsum` sums. For a mean, a maximum or a minimum there is `reduce`. What the pattern leaves out is reduced, and the
last argument says how.
"""

# %% tags=["item-39"]
x = torch.randn(2, 3, 4)  # batch, tokens, numbers

for old, how in (
    (x.sum(dim=-1), "sum"),
    (x.mean(dim=-1), "mean"),
    (x.amax(dim=-1), "max"),
    (x.amin(dim=-1), "min"),
):
    assert torch.allclose(old, reduce(x, "b t d -> b t", how), atol=1e-5)

assert torch.allclose(x.mean(dim=(0, 1)), reduce(x, "b t d -> d", "mean"), atol=1e-5)
# A 1 keeps a dimension, as keepdim=True does:
assert torch.equal(x.amax(dim=-1, keepdim=True), reduce(x, "b t d -> b t 1", "max"))

# %% [markdown]
r"""
> **A mistake that travels.** Lecture notes show `y = x.mean(dim=-1)` as the old way and
> `y = reduce(x, "... hidden -> ...", "sum")` as the new one. Both run, both have the right shape, and one is
> `hidden` times the other. When you translate, assert that old and new agree. It takes one line.
"""

# %% tags=["error-2"]
old = x.mean(dim=-1)
wrong = reduce(x, "... hidden -> ...", "sum")
assert wrong.shape == old.shape
assert not torch.allclose(wrong, old)
assert torch.allclose(wrong, 4 * old, atol=1e-5)  # hidden is 4
assert torch.allclose(reduce(x, "... hidden -> ...", "mean"), old, atol=1e-5)

# %% [markdown]
r"""
And `reduce` can do more than leave out whole dimensions. Parentheses on the left *split* a dimension: `(y 2)` reads "a
number `y` of pieces of 2". So this takes the maximum of each square of 2 × 2 pixels, which is known as max pooling:
"""

# %%
images = torch.randn(8, 3, 32, 48)  # batch, channels, height, width
pooled = reduce(images, "b c (y 2) (x 2) -> b c y x", "max")
assert pooled.shape == (8, 3, 16, 24)
assert torch.equal(pooled, F.max_pool2d(images, 2))

# %% [markdown]
r"""
*Try it yourself:* turn the images gray (the mean over channels), then shrink them to a quarter of their height and
width. Can you do both in one pattern?

### Exercise 4.2 · The mean of what is there &nbsp; ★★☆ &nbsp; 10 minutes

Sentences have different lengths, so in a batch the short ones are filled up with *padding*. Write `mean_pool(x, mask)`:
the mean vector of each sentence, over its real tokens only. `mask[b, t]` is `True` where a token is real, and each
sentence has at least one. Padding may stand at the end, in front, anywhere. What stands at padded places must not
matter, even if it is NaN or infinite (it may come from `torch.empty`, after all). The vectors of real tokens are
finite, as are their sums in the dtype of `x`, and may well be all zeros. A sentence has at most 2,048 tokens. The result
has the dtype of `x`, which may be `float64`, `float32`, `float16` or `bfloat16`; in a narrow one, too, it is the mean, but
for a rounding at the end. Gradients flow back to `x`, and those of padded places are 0. Leave `x` and `mask` as they are.
"""


# %% nbgrader={"grade": false, "grade_id": "mean_pool", "locked": false, "schema_version": 3, "solution": true, "task": false}
def mean_pool(x: Float[Tensor, "b t d"], mask: Bool[Tensor, "b t"]) -> Float[Tensor, "b d"]:
    """For each sentence the mean of those vectors whose place in the mask is True."""
    ### BEGIN SOLUTION
    real = x.masked_fill(~rearrange(mask, "b t -> b t 1"), 0)
    return reduce(real, "b t d -> b d", "sum") / reduce(mask, "b t -> b 1", "sum")
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_mean_pool", "locked": true}
check("mean_pool")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>A mean is a sum over a number. Take the sum of <code>x</code> with zeros at the padded
places, and the number from the mask.</details>
<details><summary>Hint 2</summary><code>x.masked_fill(forbidden, 0)</code> wants a mask that can be broadcast against
<code>x</code>: give it a dimension of 1 at the end. And it wants what is to be <i>replaced</i>:
<code>~mask</code>.</details>

**Why it matters.** Texts are often searched and compared by such mean vectors. A mean that counts padding still looks
like a vector. It only depends on what else happened to be in the batch, and no shape and no error will tell you. The
same goes for a loss that is averaged over padded tokens.

The same sentence of four tokens, filled up with zeros to 4, 6 and 12:
"""

# %%
sentence = torch.randn(1, 4, 8)
for length in (4, 6, 12):
    padded = torch.zeros(1, length, 8)
    padded[:, :4] = sentence
    real = torch.arange(length)[None] < 4
    naive, pooled = padded.mean(dim=1), mean_pool(padded, real)
    assert torch.allclose(pooled, sentence.mean(dim=1))
    print(
        f"{length:2} places: {naive.norm() / pooled.norm():.2f} of its length is left without a mask"
    )

# %% [markdown]
r"""
## 5 · rearrange: split, move, merge

`rearrange` changes the shape and computes nothing. Here are the moves that you know from lecture 03, in the old way and
in the new:
"""

# %%
x = torch.arange(24.0).reshape(2, 3, 4)

for old, new in (
    (x.transpose(1, 2), rearrange(x, "b t d -> b d t")),
    (x.reshape(6, 4), rearrange(x, "b t d -> (b t) d")),
    (x.unsqueeze(1), rearrange(x, "b t d -> b 1 t d")),
    (x.reshape(2, 3, 2, 2), rearrange(x, "b t (h e) -> b t h e", h=2)),
):
    assert torch.equal(old, new)

column = torch.tensor([1.0, 2.0])
repeated = repeat(column, "t -> t copies", copies=3)  # a new name on the right
assert torch.equal(repeated, column[:, None].expand(2, 3))
assert memory.same_storage(repeated, column)  # a view: stride 0, as in lecture 03

# %% [markdown]
r"""
You give the sizes that cannot be known (`h=2`), and einops finds the others. The pattern must account for every
dimension, and it is checked before anything moves. Compare with `view`, which takes any shape that has the right number
of elements:
"""

# %%
for pattern, sizes, complaint in (
    ("b d -> d b", {}, "expected 2 dims"),
    ("b t d -> b d", {}, "only on one side"),
    ("b t (h e) -> b h t e", {"h": 3}, "can't divide axis of length 4 in chunks of 3"),
):
    try:
        rearrange(x, pattern, **sizes)
    except EinopsError as error:
        assert complaint in str(error)
        print(str(error).splitlines()[-1].strip())
    else:
        raise AssertionError(f"{pattern} was accepted")

meaningless = x.view(4, 3, 2)  # view does not mind
assert not torch.equal(meaningless, rearrange(x, "b t d -> d t b"))

# %% [markdown]
r"""
### Split the heads, transform each, merge

Say that a vector of 4 numbers is to become 2 *heads* of 2 numbers. Parentheses list what a dimension consists of, and
the order in them matters. As on a clock, the last one runs fastest: `(h e)` is head 0 with all its numbers, then head 1
with all of its own. `(e h)` would deal out the numbers in turn, like cards.
"""

# %%
vector = torch.tensor([0.0, 1, 2, 3])
assert rearrange(vector, "(h e) -> h e", h=2).tolist() == [[0, 1], [2, 3]]
assert rearrange(vector, "(e h) -> h e", h=2).tolist() == [[0, 2], [1, 3]]  # the same shape!

# %% [markdown]
r"""
Now all three steps, old way and new. Each head is multiplied by one matrix.
"""

# %% tags=["item-40", "item-41", "item-42"]
x = torch.randn(2, 5, 8)  # batch, tokens, 2 heads of 4 numbers
w = torch.randn(4, 4)

old = x.view(2, 5, 2, 4)  # split
old = old @ w  # transform each
old = old.reshape(2, 5, 8)  # merge

new = rearrange(x, "... (heads hidden1) -> ... heads hidden1", heads=2)
new = einsum(new, w, "... hidden1, hidden1 hidden2 -> ... hidden2")
new = rearrange(new, "... heads hidden2 -> ... (heads hidden2)")

assert torch.allclose(old, new, atol=1e-5)

# %% [markdown]
r"""
In attention, the heads must also change places with the tokens: each head is a problem of its own, so it goes in front,
beside the batch. Here are the vectors of 3 tokens, in 2 heads of 6 numbers, seen as `[heads, tokens, numbers]`. Each
line of the storage is one token, and head 0 is outlined:
"""

# %%
tokens = torch.arange(36).reshape(3, 12)
heads = rearrange(tokens, "t (h e) -> h t e", h=2)
assert torch.equal(heads, tokens.view(3, 2, 6).transpose(0, 1))  # the old way
assert heads.stride() == (6, 12, 1)
assert torch.equal(heads[0], tokens[:, :6])  # the left half of each token

plots.show(
    plots.storage_layout(
        heads,
        title="Splitting heads moves nothing: each head is a band of columns",
        highlight=[(0, t, e) for t in range(3) for e in range(6)],
    ),
    alt="The storage of 36 slots seen as 2 heads of 3 tokens of 6 numbers, with strides 6, 12 and 1. "
    "Head 0, outlined, is the left half of each token's line of 12 slots, head 1 the right half.",
)

# %% [markdown]
r"""
### Which of them are free?

`rearrange` gives a view where strides can say it, and a copy otherwise, like `reshape` (lecture 03). What helps is to
look at the order of the names, read without parentheses: if the names that you *merge* are neighbors in memory
already, it is free. If they were moved apart or exchanged before, somebody must carry the numbers.

**Predict.** Attention returns `float32[8, 12, 1024, 64]`: batch, heads, tokens, numbers. How many bytes does
`rearrange(out, "b h t e -> b t (h e)")` allocate?
"""

# %%
guess = None  # bytes


# %%
def allocated_bytes(tensor: Tensor, pattern: str, **sizes: int) -> int:
    with memory.track(device) as used:
        result = rearrange(tensor, pattern, **sizes)
    assert memory.same_storage(result, tensor) == (used.live == 0)  # a view, or a copy
    print(f"{pattern:>22}   {format_bytes(used.live)}")
    return used.live


out = torch.zeros(8, 12, 1024, 64, device=device)
x = torch.zeros(8, 1024, 768, device=device)
assert allocated_bytes(x, "b t (h e) -> b t h e", h=12) == 0
assert allocated_bytes(x, "b t (h e) -> b h t e", h=12) == 0
assert allocated_bytes(x, "b t d -> (b t) d") == 0
assert allocated_bytes(x, "b t d -> t b d") == 0
assert allocated_bytes(x, "b t d -> t (b d)") > 0  # b and d are no neighbors
assert allocated_bytes(out, "b h t e -> b t h e") == 0

merged = allocated_bytes(out, "b h t e -> b t (h e)")
reconcile("merging the heads", guess, merged, "B")
assert merged == 8 * 12 * 1024 * 64 * 4 == 25_165_824  # a copy of everything

# %% [markdown]
r"""
So splitting heads is free, and merging them is a copy. Code like ours pays for it once in every layer. (A kernel that
writes its result as `b t h e` to begin with does not. You will see one in section 7.)

In this picture each name has a line, from where it is split off to where it is merged. Choose an example, or write a
pattern, shapes and sizes of your own. In *split and move*, write `(e h)` for `(h e)`: what changes in the picture, and
what does the shape of the result tell you about it?
"""

# %%
from course_utils.widgets import patterns

patterns.explore("split and move")

# %% [markdown]
r"""
*Try it yourself:* is `rearrange(x, "b (t two) d -> b t (two d)", two=2)`, which puts two tokens into one vector, free?
Say it before you measure.

### Exercise 4.3 · Split and merge &nbsp; ★☆☆ &nbsp; 8 minutes

Write `split_heads(x, heads)`, from `[b, t, d]` to `[b, h, t, e]`, where $d = h \cdot e$ and each head is a run of $e$
neighboring numbers; and `merge_heads(x)`, which undoes it, whatever the strides of its argument are. Splitting must not
copy: the result looks at the storage of `x`, whatever the strides of `x` are. Gradients flow back through both
functions. In the old way or the new, as you like.
"""


# %% nbgrader={"grade": false, "grade_id": "split_heads", "locked": false, "schema_version": 3, "solution": true, "task": false}
def split_heads(x: Float[Tensor, "b t d"], heads: int) -> Float[Tensor, "b heads t e"]:
    """Each vector as `heads` runs of d / heads neighbors, the heads before the tokens. A view."""
    ### BEGIN SOLUTION
    return rearrange(x, "b t (h e) -> b h t e", h=heads)
    ### END SOLUTION


def merge_heads(x: Float[Tensor, "b heads t e"]) -> Float[Tensor, "b t d"]:
    """Undoes split_heads: head after head, side by side in one vector for each token."""
    ### BEGIN SOLUTION
    return rearrange(x, "b h t e -> b t (h e)")
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_split_heads", "locked": true}
check("split_heads")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>In the old way splitting is two steps, <code>unflatten</code> (or <code>view</code>)
and <code>transpose</code>; in the new it is one pattern.</details>
<details><summary>Hint 2</summary>In the pattern, the last dimension of <code>x</code> is two names in parentheses. The
one that runs fastest comes last; which is it? And which size can einops not know?</details>

**Why it matters.** Exchange `(h e)` and `(e h)` in a model that you train yourself, and it learns just as well, since
no number had a meaning before. Do it in a model that you *load*, and it talks nonsense, without any error. Whoever
converts a checkpoint from one library to another has to know which of the two it holds.

### Images are only more names

A Vision Transformer cuts an image into square *patches* and treats each as a token: a vector of all its pixels. The
whole operation is a split and a merge, twice each.

### Exercise 4.4 · Patches, and back &nbsp; ★★☆ &nbsp; 12 minutes

Write `patchify(images, size)`: from `[b, c, height, width]` to `[b, patches, numbers]`. The patches of `size` × `size`
pixels come in reading order, row after row. Within a patch the pixels come in reading order too, and for each pixel its
`c` channels, side by side. And write `unpatchify(patches, size, height)`, which makes the images again; `height` counts
pixels. Images need not be square; you may rely on at least one image with at least one channel and one patch, on finite
pixels, and on `height` and width being multiples of `size`. Both functions keep the dtype, and gradients flow back
through them.
"""


# %% nbgrader={"grade": false, "grade_id": "patchify", "locked": false, "schema_version": 3, "solution": true, "task": false}
def patchify(
    images: Float[Tensor, "b c height width"], size: int
) -> Float[Tensor, "b patches numbers"]:
    """Squares in reading order, each a vector: its pixels in reading order, channels last."""
    ### BEGIN SOLUTION
    return rearrange(images, "b c (y p) (x q) -> b (y x) (p q c)", p=size, q=size)
    ### END SOLUTION


def unpatchify(
    patches: Float[Tensor, "b patches numbers"], size: int, height: int
) -> Float[Tensor, "b c height width"]:
    """Undoes patchify, for images of that height in pixels."""
    ### BEGIN SOLUTION
    return rearrange(
        patches, "b (y x) (p q c) -> b c (y p) (x q)", p=size, q=size, y=height // size
    )
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_patchify", "locked": true}
check("patchify")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>The height is (a number of rows of patches) × (pixels down a patch). Split it and the
width, then say in which order the six names shall lie.</details>
<details><summary>Hint 2</summary>In parentheses the last name runs fastest: which of the six does, within a patch, and
which of rows and columns of patches? On the way back einops cannot know how many rows of patches there are.</details>
<details><summary>A worked example</summary>

```
0  1 | 2  3
4  5 | 6  7        patches of 2 × 2:
------------       [0 1 4 5] [2 3 6 7] [8 9 12 13] [10 11 14 15]
8  9 |10 11
12 13|14 15
```

</details>

**Why it matters.** So an image becomes a text, as far as a Transformer is concerned. In the old way this is a `reshape`
to six dimensions, a `permute` with six numbers and another `reshape`, and a comment above that must be kept true.

### Tokens from two sources: pack and unpack

A Vision Transformer puts one more token, without pixels, in front of the patches. `pack` joins tensors along the
dimension called `*`, and remembers where the seams are; `unpack` cuts there again.
"""

# %%
patches, extra = patchify(torch.randn(8, 3, 224, 224), 16), torch.randn(8, 1, 768)
assert patches.shape == (8, 14 * 14, 16 * 16 * 3)  # a photo, as Vision Transformers cut it

old = torch.cat([extra, patches], dim=1)
new, seams = pack([extra, patches], "b * d")
assert torch.equal(old, new) and new.shape == (8, 197, 768)

extra_again, patches_again = unpack(new, seams, "b * d")
assert torch.equal(patches_again, patches)
assert memory.same_storage(patches_again, new)  # joining copies, cutting does not

# %% [markdown]
r"""
*Try it yourself:* undo `b (t two) d -> b t (two d)` with one pattern.

## 6 · Attention, in names

Each token asks a question, its **query**. Each token also has a **key**, which says what it has to offer, and a
**value**, which is what it gives. A query is compared with all keys by dot products: the *scores*. Softmax turns each
query's scores into *weights*, shares that add up to 1. And the result is the mean of the values with these weights:

$$\text{out}_t = \sum_s \text{weight}_{ts} \, v_s, \qquad
\text{weight}_{ts} = \frac{\exp(q_t \cdot k_s / \sqrt{e})}{\sum_r \exp(q_t \cdot k_r / \sqrt{e})}$$

Two einsums, with a softmax between them. The scale $\sqrt{e}$ is there because a dot product of $e$ numbers of size 1
has the size $\sqrt{e}$. Without it, the longer the vectors, the more softmax would choose only one.
"""

# %%
q, k = torch.randn(10_000, 64), torch.randn(10_000, 64)
dots = einsum(q, k, "pair e, pair e -> pair")
assert 7.5 < dots.std() < 8.5  # √64 = 8

few = dots[:64]  # as if they were the scores of one query
assert few.softmax(0).max() > (few / 8).softmax(0).max()
print(
    f"largest of 64 weights: {few.softmax(0).max():.2f}, scaled: {(few / 8).softmax(0).max():.2f}"
)

# %% [markdown]
r"""
*Try it yourself:* look at a few other queries: `dots[64:128]`, `dots[128:192]`, … How much does the largest weight
leave to the others, with and without the scale?

There are as many scores as there are pairs of tokens, for each head.

**Predict.** Llama 3 8B has 32 heads of 128 numbers in each layer. For one text of 8,192 tokens, how many bytes would
the scores of *one* layer take in `bfloat16`, if they were all written down?
"""

# %%
guess = None  # bytes

# %%
heads, t, e = 32, 8192, 128
q = k = v = torch.empty(heads, t, e, dtype=torch.bfloat16, device="meta")
scores = einsum(q, k, "h t e, h s e -> h t s")
score_bytes = scores.numel() * scores.element_size()
reconcile("the scores of one layer", guess, score_bytes, "B")

assert score_bytes == 32 * 8192 * 8192 * 2 == 4_294_967_296  # 4 GiB …
assert q.numel() * q.element_size() == 67_108_864  # … out of queries of 67 MB
twice = count_flops(
    lambda: einsum(einsum(q, k, "h t e, h s e -> h t s"), v, "h t s, h s e -> h t e")
)
assert twice == 4 * heads * t * t * e == 4 * t**2 * 4096  # lecture 05's 4 T² d

# %% [markdown]
r"""
That is why nobody writes them down. Kernels such as FlashAttention compute a block of scores, use it, and forget it.
PyTorch has them as `F.scaled_dot_product_attention`. What you write next is what they compute, in the plainest way.

A language model must not look ahead. So, if attention is *causal*, a query sees only keys up to its own position, and
the others get the weight 0. Where do queries stand, if there are fewer of them than keys? When a model writes a text,
it keeps the keys and values of all tokens (the *KV cache*), and only the newest one asks. So the queries belong to the
*last* positions.

> **Trap.** `F.scaled_dot_product_attention(q, k, v, is_causal=True)` puts the queries at the *first* positions. For as
> many queries as keys that is the same. For one query it means that it sees one key, the oldest.
"""

# %%
q, k, v = torch.randn(1, 1, 4), torch.randn(1, 5, 4), torch.randn(1, 5, 4)

first_only = F.scaled_dot_product_attention(q, k, v, is_causal=True)
assert torch.allclose(first_only, v[:, :1], atol=1e-5)  # the newest token reads the oldest

# %% [markdown]
r"""
### Exercise 4.5 · Attention &nbsp; ★★☆ &nbsp; 15 minutes

Write `attention(q, k, v, causal)` for any number of leading dimensions, which `q`, `k` and `v` have in common. Scale
the scores by $1/\sqrt{e}$, where $e$ is the length of a query. If `causal`, the queries are the last `t` of the `s`
positions (t ≤ s), and each sees the keys up to its own position, itself included. The scores may be large, those of the
future too: each fits into the dtype, but `exp(100_000)` does not, and every weight does (`softmax` knows how). What you make on the way, such as a mask,
belongs on the device of `q`: `device=q.device`. (The test asks with the meta device, so that you need no GPU for it.) The
result has the dtype of `q`, `k` and `v`, gradients flow back to all three, and they stay as they are.
"""


# %% nbgrader={"grade": false, "grade_id": "attention", "locked": false, "schema_version": 3, "solution": true, "task": false}
def attention(
    q: Float[Tensor, "... t e"],
    k: Float[Tensor, "... s e"],
    v: Float[Tensor, "... s f"],
    causal: bool,
) -> Float[Tensor, "... t f"]:
    """For each query the mean of the values, weighted by softmax(query · keys / √e).

    causal: the queries stand at the last t of s positions, and see the keys up to their own.
    """
    ### BEGIN SOLUTION
    scores = einsum(q, k, "... t e, ... s e -> ... t s") / math.sqrt(q.shape[-1])
    if causal:
        t, s = scores.shape[-2:]
        may_look = torch.ones(t, s, dtype=torch.bool, device=q.device).tril(diagonal=s - t)
        scores = scores.masked_fill(~may_look, -torch.inf)
    return einsum(scores.softmax(dim=-1), v, "... t s, ... s f -> ... t f")
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_attention", "locked": true}
check("attention")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Three steps: scores with one einsum; −∞ where a query may not look
(<code>masked_fill</code>) and softmax over the keys; the mean of the values with another einsum.</details>
<details><summary>Hint 2</summary>The allowed scores are
<code>torch.ones(t, s, device=q.device).tril(diagonal=s - t)</code>: for as many queries as keys the lower triangle, and
for fewer the lowest rows of it.</details>
<details><summary>What it should look like</summary>

```
3 queries, 5 keys      key  0  1  2  3  4
                   query 0  ■  ■  ■  ·  ·      stands at position 2
                   query 1  ■  ■  ■  ■  ·
                   query 2  ■  ■  ■  ■  ■      the newest sees all
```

</details>

**Why it matters.** You have written the operation that the field is named after, in a form that a kernel can be tested
against. A transposed mask and a mask at the wrong corner both make numbers that look fine.

### Exercise 4.6 · Many heads &nbsp; ★★★ &nbsp; 15 minutes

One head can attend in one way only. So a layer has several, each with queries, keys and values of its own, and all
their results are laid side by side. Write `multi_head_attention(x, wq, wk, wv, wo, heads)`, causal: multiply `x` by
`wq`, `wk` and `wv`, split each of the three products into heads (a head is a run of neighboring numbers), let the
heads attend, merge them, and multiply by `wo`. Scale by the length of a *head's* vectors. The products need not be as
wide as `x`. As before, scores may be large, what you make belongs on the device of `x`, the result has the dtype of the
arguments, gradients flow back to all of them (`heads` apart), and they stay as they are.

Each exercise is checked by itself, so write it without the functions of other cells. Six to ten lines are enough.
PyTorch's own functions are allowed.
"""


# %% nbgrader={"grade": false, "grade_id": "multi_head_attention", "locked": false, "schema_version": 3, "solution": true, "task": false}
def multi_head_attention(
    x: Float[Tensor, "b t d"],
    wq: Float[Tensor, "d inner"],
    wk: Float[Tensor, "d inner"],
    wv: Float[Tensor, "d inner"],
    wo: Float[Tensor, "inner d"],
    heads: int,
) -> Float[Tensor, "b t d"]:
    """Causal self-attention with `heads` heads of inner / heads neighboring numbers each."""
    ### BEGIN SOLUTION
    q, k, v = (rearrange(x @ w, "b t (h e) -> b h t e", h=heads) for w in (wq, wk, wv))
    scores = einsum(q, k, "b h t e, b h s e -> b h t s") / math.sqrt(q.shape[-1])
    future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
    weights = scores.masked_fill(future, -torch.inf).softmax(dim=-1)
    out = einsum(weights, v, "b h t s, b h s e -> b h t e")
    return rearrange(out, "b h t e -> b t (h e)") @ wo
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_multi_head_attention", "locked": true}
check("multi_head_attention")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Write down the names first: <code>x</code> is <code>b t d</code>, its products
<code>b t (h e)</code>, split they are <code>b h t e</code>, the scores <code>b h t s</code>.</details>
<details><summary>Hint 2</summary>What lies between splitting and merging is attention as before, with <code>b h</code>
in front. The causal mask <code>[t, s]</code> broadcasts over batch and heads by itself.</details>

**Why it matters.** Llama, GPT and BERT differ in what stands around this function, and in details inside it (whether
several heads share keys, how positions enter). In lecture 12 you train one.

## 7 · The result: who looks at whom

Now make a head do something that you can see. Take six words, and give each token a vector of 12 numbers: 6 say which
word it is (a 1 in one place; there are four different words, so two places stay empty), 6 at which position it stands.
Head 0 is to compare words with words, head 1 to look for the position before. No training: you write the weights by
hand, with a name for each dimension.
"""

# %%
words = ["to", "be", "or", "not", "to", "be"]
vocabulary = list(dict.fromkeys(words))  # to, be, or, not
which = F.one_hot(torch.tensor([vocabulary.index(word) for word in words]), 6)
position = torch.eye(6)
x = rearrange([which.float(), position], "kind t number -> 1 t (kind number)")
assert x.shape == (1, 6, 12)  # batch, tokens, d

sharp = 40.0  # large scores: a head that is sure of itself
asks = torch.zeros(2, 6, 2, 6)  # kind, number, head, e
offers = torch.zeros(2, 6, 2, 6)
asks[0, :, 0] = sharp * torch.eye(6)  # head 0 asks for its own word …
offers[0, :, 0] = torch.eye(6)  # … and offers its word
asks[1, :, 1] = sharp * torch.eye(6)  # head 1 asks for its own position …
offers[1, :, 1] = torch.eye(6).roll(1, dims=1)  # … and offers its position plus one
offers[1, 5, 1] = 0  # (nothing comes after the last)
wq, wk = (rearrange(w, "kind number h e -> (kind number) (h e)") for w in (asks, offers))

# %% [markdown]
r"""
**Predict.** In head 0, the second "to" finds two words like itself that it may see: the first "to", and itself. How
much of its attention goes to the first "to"?
"""

# %%
guess = None  # a share, from 0 to 1

# %%
q, k = split_heads(x @ wq, 2), split_heads(x @ wk, 2)
# With the identity matrix in place of the values, the result is the weights themselves.
identity = repeat(torch.eye(6), "s f -> 1 h s f", h=2)
weights = attention(q, k, identity, causal=True)
second_to = weights[0, 0, 4]  # batch 0, head 0, query 4
reconcile("from the second to the first “to”", guess, round(second_to[0].item(), 4), "")

assert torch.allclose(second_to, torch.tensor([0.5, 0, 0, 0, 0.5, 0]), atol=1e-4)
before = torch.eye(6).roll(-1, dims=1)  # token t looks at t - 1 …
before[0] = torch.eye(6)[0]  # … but the first has nobody before it
assert torch.allclose(weights[0, 1], before, atol=1e-4)
assert (weights.triu(1) == 0).all()  # nobody looks ahead: zero, not nearly zero
assert torch.allclose(reduce(weights, "b h t s -> b h t", "sum"), torch.ones(1, 2, 6))


# %%
def attention_map(weights: Float[Tensor, "head t s"], words: list[str], names: list[str]):
    """For each head a row per query and a column per key, × where none may look."""
    figure = Figure(figsize=(8.9, 4.6))
    for panel, (square, name) in enumerate(zip(weights.tolist(), names, strict=True)):
        axes = figure.add_axes((0.09 + 0.48 * panel, 0.05, 0.42, 0.74))
        axes.set(xlim=(0, len(words)), ylim=(len(words), 0), aspect="equal")
        figure.text(0.09 + 0.48 * panel, 0.93, name, size=12, weight="bold")
        places = [i + 0.5 for i in range(len(words))]
        axes.set_xticks(places, words)
        axes.set_yticks(places, words)
        axes.tick_params(length=0, labelsize=10, top=False, labeltop=True, labelbottom=False)
        axes.set_ylabel("query: who looks", size=10)
        axes.set_xlabel("key: at whom", size=10)
        axes.xaxis.set_label_position("top")
        for side in axes.spines.values():
            side.set_visible(False)
        for t, row in enumerate(square):
            for s, weight in enumerate(row):
                shade = (*to_rgb(plots.DATA), 0.7 * weight)
                axes.add_patch(Rectangle((s, t), 1, 1, fc=shade, ec=plots.CONTEXT))
                text = "×" if s > t else f"{weight:.2f}" if weight > 0.005 else "0"
                strength = 1.0 if weight > 0.005 else 0.55
                axes.text(s + 0.5, t + 0.5, text, ha="center", va="center", alpha=strength)
    return figure


plots.show(
    attention_map(
        weights[0],
        words,
        ["Head 0 looks for the same word", "Head 1 looks at the word before"],
    ),
    alt="Two 6 by 6 squares, a row for each query and a column for each key, the upper triangle crossed out. "
    "In head 0 each word attends to itself, and the second “to” and “be” give one half to their first "
    "occurrence. In head 1 each word attends to the one before it, the first one to itself.",
)

# %% [markdown]
r"""
One head that finds *where this word was before*, one that looks *one step back*. Put one layer on top of another, and a
model can find what *followed* this word the last time, and say it again. Trained models do grow such pairs. They are
called induction heads (Olsson and others, 2022, "In-context Learning and Induction Heads").

*Try it yourself:* set `sharp = 4.0`, run the cells again and look. (The asserts will object: such a head is less sure
of itself.) Then make head 1 look two steps back.

### Your layer, and PyTorch's

The same function with weights of GPT-2's size. `nn.MultiheadAttention` keeps the three matrices for queries, keys and
values in one, on top of each other, each transposed. One pattern takes them apart:
"""

# %%
layer = nn.MultiheadAttention(768, 12, bias=False, batch_first=True, device=device)
x = torch.randn(2, 128, 768, device=device)
with torch.no_grad():
    wq, wk, wv = rearrange(layer.in_proj_weight, "(three inner) d -> three d inner", three=3)
    wo = rearrange(layer.out_proj.weight, "d inner -> inner d")
    future = torch.ones(128, 128, dtype=torch.bool, device=device).triu(1)

    theirs, _ = layer(x, x, x, attn_mask=future, need_weights=False)
    yours = multi_head_attention(x, wq, wk, wv, wo, heads=12)

    q, k, v = (split_heads(x @ w, 12) for w in (wq, wk, wv))
    in_pieces = merge_heads(attention(q, k, v, causal=True)) @ wo
    kernel = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    apart = (attention(q, k, v, causal=True) - kernel).abs().max()

largest = theirs.abs().max()
for name, result in (("multi_head_attention", yours), ("from its pieces", in_pieces)):
    error = (result - theirs).abs().max() / largest
    print(
        f"{name:>21}: differs from nn.MultiheadAttention by {error:.1e} of the largest number"
    )
    assert error < 1e-5  # float32 keeps about seven digits
print(f"{'attention':>21}: differs from F.scaled_dot_product_attention by {apart:.1e}")
assert apart < 1e-5 * kernel.abs().max()

if not devices.on_gpu(device):  # the kernel wrote b t h e, as q lies: merging its heads is free
    assert memory.same_storage(rearrange(kernel, "b h t e -> b t (h e)"), kernel)

# %% [markdown]
r"""
### The future cannot be seen

The picture shows weights. Here is a proof that needs no picture and trusts nobody's mask: change one token, and look
which outputs change, in any bit. Do it for each token in turn.
"""


# %%
@torch.no_grad()
def influence(layer, x: Float[Tensor, "1 t d"]) -> Bool[Tensor, "t s"]:
    """Entry [t, s]: does output t change, in any bit, when token s is changed?"""
    before = layer(x)
    columns = []
    for s in range(x.shape[1]):
        changed = x.clone()
        changed[:, s] += 1
        columns.append(reduce(layer(changed) != before, "1 t d -> t", "any"))
    return rearrange(columns, "s t -> t s")


small = torch.randn(1, 16, 768, device=device)
mine = influence(lambda x: multi_head_attention(x, wq, wk, wv, wo, 12), small)

triangle = torch.ones(16, 16, dtype=torch.bool, device=device).tril()
assert torch.equal(mine, triangle)  # lecture 01's causal mask, found by experiment
print("outputs that change with token 0, 1, …:", mine.sum(dim=0).tolist())

# %% [markdown]
r"""
Bit for bit: a weight of exactly 0 times any number adds exactly nothing. And the layer with the transposed mask, which
lecture 01 warned of? It runs, it has the right shape, and every token reads the answer from the future.
"""

# %%
past = ~future[:16, :16] & ~torch.eye(16, dtype=torch.bool, device=device)
leaky = influence(lambda x: layer(x, x, x, attn_mask=past, need_weights=False)[0], small)
assert torch.equal(leaky, triangle.T)  # it sees the future, and nothing but the future

unmasked = influence(lambda x: layer(x, x, x, need_weights=False)[0], small)
assert unmasked.all()  # everybody sees everybody, as in BERT

# %% [markdown]
r"""
*Try it yourself:* "adds exactly nothing" has one exception, and you have met it in exercise 4.2. Put NaN
into the last token: `small[:, -1] = torch.nan`. In how many tokens of `multi_head_attention(small, wq, wk, wv, wo, 12)`
is there NaN now, and why?

## Takeaways

**Mechanics.** `einsum` is a loop for each name; what is not in the output is summed; FLOPs of two tensors are twice the
product of all sizes. `reduce` does the same with mean, max or min. In `rearrange`, parentheses split and merge, and the
last name in them runs fastest. It is a view where strides can say it. jaxtyping's names are checked when you ask
(`jaxtyped` with a type checker, `isinstance`), and sizes and dtypes are all that is checked.

**Mindset.** Never count dimensions if you can name them. When you translate old code, assert that old and new agree, on
sizes that are all different. Do not trust a mask: change a token, and look who notices.

**Intuitions.** Attention is two einsums with a softmax between. Splitting heads is free, and merging them is a copy.
The scores are as many as pairs of tokens, which is why long texts are expensive and why good kernels never write the
scores down. And a wrong order of dimensions can have the right shape.

Next: [05 · FLOPs and MFU](../05_flops_and_mfu/05_flops_and_mfu.ipynb), how fast all this could be, and how fast it is. In **12 · Capstone** the six lines of
attention become part of a model that you train.
"""

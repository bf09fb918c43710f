# %% [markdown]
r"""
# 04 · Einops

[← 03 · Strides and views](../03_strides_and_views/03_strides_and_views.ipynb) &nbsp;|&nbsp; [05 · FLOPs and MFU
→](../05_flops_and_mfu/05_flops_and_mfu.ipynb)

> **Which dimension is −2?**

Is it the tokens? The heads? That depends on what somebody wrote three lines earlier, and PyTorch doesn't check. Code
that refers to dimensions by number often runs without complaint even when the numbers are wrong. In this lecture you'll
give dimensions names instead. With them you'll write multi-head causal attention, the central operation of today's
language models, in six to ten lines that you can read aloud. You'll check that it agrees with PyTorch's version up to
rounding, plot which word attends to which, and show by experiment that no position can see the future: not a single bit
of its output depends on a later token.

The names come from `einops`, a small library by Alex Rogozhnikov. You only need six of its functions, and you'll meet
all of them here.
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
from course_utils.units import format_bytes, readable
from course_utils.testing import check

torch.manual_seed(0)  # the same random numbers on every run
device = devices.pick_device()
print(devices.describe(device))
show_progress()

# %% [markdown]
r"""
## 1 · Which dimension is −2?

You may meet this line in a model's code. It compares each *query* vector with each *key* vector (section 6 explains both)
by taking their dot product:

```python
scores = q @ k.transpose(-2, -1)
```

What exactly is compared with what? The line doesn't say. `@` treats the last two dimensions as matrices, and some other
code decided what those dimensions are. Suppose that there are 5 tokens and 3 *heads* (section 6 explains these too),
and that each token has a query vector of 4 numbers for each head.

**Predict.** Let `q` and `k` be `float32[2, 5, 3, 4]`: 2 sequences, 5 tokens, 3 heads, 4 numbers. We want to compare
every token with every token, itself included, in each sequence and for each head: 2 · 3 · 5 · 5 = 150 scores. How many
scores does the line produce?
"""

# %%
guess = None  # scores

# %% tags=["item-35"]
q = torch.randn(2, 5, 3, 4)  # batch, tokens, heads, numbers
k = torch.randn(2, 5, 3, 4)

scores = q @ k.transpose(-2, -1)  # no error, no warning
reconcile("the line produces", guess, scores.numel(), "scores")
print(f"{list(scores.shape)}: dimension −2 was the heads, so no token is compared with another")

assert scores.shape == (2, 5, 3, 3)  # heads against heads, within each token
assert scores.numel() == 90
dot_product = (q[0, 0, 0] * k[0, 0, 1]).sum()
assert torch.isclose(scores[0, 0, 0, 1], dot_product)  # head 0 with head 1, both of token 0

# %% [markdown]
r"""
Here the shape gives the mistake away, if anybody looks. But if your test happens to use as many heads as tokens,
nothing does:
"""

# %%
q = torch.randn(2, 4, 4, 8)  # batch, 4 tokens, 4 heads, numbers
k = torch.randn(2, 4, 4, 8)

careless = q @ k.transpose(-2, -1)
careful = q.transpose(1, 2) @ k.transpose(1, 2).transpose(-2, -1)  # first [batch, heads, …]
assert careless.shape == careful.shape == (2, 4, 4, 4)
assert not torch.allclose(careless, careful)  # the same shape, but different numbers

# %% [markdown]
r"""
Here's the careful computation with names. Read it aloud: *for each batch element and head, and for each token t and
token s, multiply along e and add up the products*. It gives the right scores for any sizes:
"""

# %%
pattern = "batch t head e, batch s head e -> batch head t s"
assert torch.allclose(einsum(q, k, pattern), careful, atol=1e-5)

q, k = torch.randn(2, 5, 3, 4), torch.randn(2, 5, 3, 4)  # the sizes of the first cell
assert einsum(q, k, pattern).shape == (2, 3, 5, 5)  # all 150 of them

# %% [markdown]
r"""
*Try it yourself:* what does `q @ k.T` do for these four-dimensional tensors? PyTorch has two things to say: a warning
about `.T`, and an error about the sizes.

## 2 · Names for the reader, and for the machine

Names can also stand in the annotations of functions, as they do in the other lectures. `Float[Tensor, "batch t e"]`
means a tensor of floats whose three dimensions are called `batch`, `t` and `e`. The same name means the same size
everywhere in one function's signature. These annotations come from the library `jaxtyping`, which was made for JAX and
also works with PyTorch.
"""


# %% tags=["item-36"]
def compare(
    q: Float[Tensor, "batch t e"], k: Float[Tensor, "batch s e"]
) -> Float[Tensor, "batch t s"]:
    return q @ k.transpose(-2, -1)


q = torch.randn(2, 3, 4)
good, bad = torch.randn(2, 5, 4), torch.randn(1, 5, 4)
assert compare(q, good).shape == (2, 3, 5)
assert compare(q, bad).shape == (2, 3, 5)  # a different batch size, but broadcasting hides it

# %% [markdown]
r"""
Python stores annotations and otherwise ignores them. So it didn't complain that `bad` has a different batch
size, which violates the annotation.

> **Trap: annotations that nobody checks.** People say that jaxtyping is only documentation. By default it is, but its
> annotations can be enforced: with the decorator `jaxtyped` and a type checker such as `beartype`, or for a single
> tensor with `isinstance`.
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
    raise AssertionError("nobody noticed the batch size of 1")

# %%
fits: list[Any] = [
    Float[Tensor, "batch t e"],
    Float[Tensor, "2 t e"],  # a number: exactly this size
    Float[Tensor, "... e"],  # any number of dimensions in front, including none
]
fits_not: list[Any] = [
    Float[Tensor, "batch t"],  # the wrong number of dimensions
    Float[Tensor, "batch t t"],  # one name, two sizes
    Int[Tensor, "batch t e"],  # the dtype counts too
]
assert all(isinstance(q, kind) for kind in fits)
assert not any(isinstance(q, kind) for kind in fits_not)
assert isinstance(q[0, 0], fits[2])  # a single vector

# %% [markdown]
r"""
`jaxtyped` checks a function's result too, so a function that mixes up its dimensions fails where the mistake is, not
three files later. But the check sees only sizes, not meanings: if two dimensions have the same size, it can't tell them
apart. In your tests, choose a different size for each dimension.
"""


# %% tags=["timed"]
@jaxtyped(typechecker=beartype)
def transpose_badly(x: Float[Tensor, "t e"]) -> Float[Tensor, "e t"]:
    return x  # the transpose was forgotten


try:
    transpose_badly(torch.zeros(3, 4))
except TypeError as error:
    assert "return value" in str(error)
else:
    raise AssertionError("the result was not checked")

transpose_badly(torch.zeros(4, 4))  # passes: both sizes are 4

nothing = torch.empty(2, 3, 4, device="meta")  # a shape and a dtype, but no memory
assert checked(nothing, nothing).shape == (2, 3, 3)  # the check works all the same

print("not checked:", timing.benchmark(lambda: compare(q, good), min_seconds=0.05))
print("checked:    ", timing.benchmark(lambda: checked(q, good), min_seconds=0.05))

# %% [markdown]
r"""
The check looks at shapes and dtypes, never at the elements. So it should cost the same small amount of Python time, the
difference between the two times above, however large the tensors are. Use it where that time doesn't matter: in tests,
and in functions that run only a few times per step.

*Try it yourself:* annotate `compare` with `"batch t e"` for both `q` and `k`, make `checked` again and call it with
`good`. Which size does it complain about?

### Exercise 4.1 · What a name means (optional) &nbsp; ★★☆ &nbsp; 15 minutes

To enforce names, a program can keep a dictionary of their sizes. Write `bind_names(names, shape, sizes)`, which matches
one shape against its names. `sizes` contains the sizes known so far, from other tensors. Return a *new* dictionary with
all sizes known afterward, and don't change `sizes`. A name that is a number, such as `12` or `0`, requires that size
and isn't added to the dictionary. The first name, and no other, may be `...`: it stands for any number of dimensions
(including none) of any sizes. A scalar's shape `()` has no names, so `""` fits it. Raise `ValueError` if the number of
dimensions is wrong, if one name would get two sizes, or if a dimension doesn't have the size that a number requires.

```python
bind_names("batch t d", (2, 3, 4), {"t": 3})   # {"t": 3, "batch": 2, "d": 4}
bind_names("... 12 d", (2, 12, 4), {})         # {"d": 4}
```
"""


# %% nbgrader={"grade": false, "grade_id": "bind_names", "locked": false, "schema_version": 3, "solution": true, "task": false}
def bind_names(names: str, shape: tuple[int, ...], sizes: dict[str, int]) -> dict[str, int]:
    """All sizes known after matching a shape with its names. Raises ValueError if they disagree.

    names: separated by spaces; a number stands for itself, a leading `...` for any dimensions.
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
<details><summary>Hint 1</summary>There are three steps: remove <code>...</code> together with the sizes that it stands for;
compare the two lengths; then go through names and sizes in pairs.</details>
<details><summary>Hint 2</summary>For each pair: is the name a number (<code>name.isdigit()</code>)? Is it already
known? If it's neither, add it.</details>

**Why it matters.** `jaxtyped` matches names in this way for every annotated tensor in a call, with one dictionary for
all of them. `einsum` and `rearrange`, which come next, make similar checks before they compute anything.

### One dictionary, three shapes (optional)

If you pass the sizes found so far on from tensor to tensor, `bind_names` checks all three shapes of a matrix product:
"""

# %%
known: dict[str, int] = {}
for names, shape in (("batch t d", (2, 3, 4)), ("d k", (4, 5)), ("batch t k", (2, 3, 5))):
    known = bind_names(names, shape, known)
    print(f"{names:>9} = {shape}: {known}")

try:
    bind_names("batch t k", (2, 3, 6), known)
except ValueError as error:
    print(f"A k of 6 is refused: {error}")
else:
    raise AssertionError("a k of 6 was accepted although k is 5")

# %% [markdown]
r"""
## 3 · einsum: sum over whatever isn't in the output

An **einsum** (short for Einstein summation) takes tensors and a pattern. To the left of the arrow, the pattern names
the dimensions of each tensor; to the right of it, the dimensions of the result. Each name is a loop, and that's all you
need to know:
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
So a name can play one of three roles. `batch` is in both tensors and in the result, so the product is computed
separately for each element of the batch. `t` and `s` are in one tensor each and in the result, so the product is
computed for every pair of them. `e` isn't in the result, so the products are summed over it. Sums, matrix products,
transposes and traces all follow this rule. And `...` stands for dimensions that you don't want to name.
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
> **Trap: one name for two loops.** You may see `einsum(q, k, "b h s d, b h s d -> b h s s")` for attention scores. It
> can't work: in a pattern one name is one loop, but query and key positions vary independently, so they need two names.
> Neither einops nor PyTorch accepts a name twice in the result.
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
> **Trap: what names don't catch.** If you *forget* a name on the right, einsum silently sums over it. And although
> dimensions with the same name should have the same size, `einsum` accepts a size of 1 and broadcasts it. The check
> from section 2 catches both mistakes: in the first case, the result doesn't have the promised shape; in the second, an
> argument has the wrong size.
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

Count the work in the loops. The innermost one contains one multiplication and one addition: two FLOPs. Its body runs
once for each combination of index values, one value for each name. So for two tensors, if there's a sum and both have
all the names that it runs over,

$$\text{FLOPs} = 2 \cdot \prod_{\text{names}} \text{size} ,$$

where each name counts once, even if both tensors have it. (A summed name that only one of them has can be summed first,
which costs less.)

In each layer of the smallest GPT-2, one matrix maps vectors of 768 numbers to vectors of 3,072. For a batch of 8
sequences of 1,024 tokens, that takes 39 GFLOPs:
"""

# %%
b, t, d, k = 8, 1024, 768, 3072
x = torch.empty(b, t, d, device="meta")  # shapes without memory: nothing is computed
w = torch.empty(d, k, device="meta")
counted = count_flops(lambda: einsum(x, w, "b t d, d k -> b t k"))
assert counted == 2 * b * t * d * k == 38_654_705_664

# %% [markdown]
r"""
With three or more tensors, PyTorch multiplies two at a time, from left to right (unless the package `opt_einsum` is
installed, which looks for a good order). The order matters: if you know a good one, write two einsums. (A single loop
over all names, with two multiplications and an addition inside, would be even more work.)

**Predict.** A vector of 1,000 numbers is multiplied by one 1000 × 1000 matrix, and the result by another. How many
times as many FLOPs does it take if you multiply the two matrices first?
"""

# %%
guess = None  # times

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
reconcile("the matrices first", guess, matrices_first / vector_first, "times the FLOPs")
assert matrices_first / vector_first == 500.5

# %% [markdown]
r"""
*Try it yourself:* if there are `b` vectors instead of one, for which `b` does it take fewer FLOPs to multiply the two
matrices first?

## 4 · reduce: name what remains

`einsum` sums. For a mean, a maximum or a minimum there's `reduce`. It reduces over every dimension that isn't to the
right of the arrow, and the last argument says how.
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
> **Trap: a translation that isn't one.** You may see `y = x.mean(dim=-1)` as the old way and
> `y = reduce(x, "... hidden -> ...", "sum")` as the new one. Both run and both have the right shape, but one is
> `hidden` times the other. When you translate code, assert that old and new agree. It takes one line.
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
`reduce` can also work on parts of dimensions. Parentheses on the left *split* a dimension: `(y 2)` means "`y`
pieces of 2". So this takes the maximum of each square of 2 × 2 pixels, which is called max pooling:
"""

# %%
images = torch.randn(8, 3, 32, 48)  # batch, channels, height, width
pooled = reduce(images, "b c (y 2) (x 2) -> b c y x", "max")
assert pooled.shape == (8, 3, 16, 24)
assert torch.equal(pooled, F.max_pool2d(images, 2))

# %% [markdown]
r"""
*Try it yourself:* turn the images gray (the mean over channels), then shrink them to a quarter of their height and a
quarter of their width, by means again. Can you do both in one pattern? Could you if you shrank them with a maximum?

### Exercise 4.2 · The mean without the padding &nbsp; ★★☆ &nbsp; 15 minutes

Sentences have different lengths, so in a batch the shorter ones are extended with *padding*. Write
`mean_pool(x, mask)`. It returns the mean vector of each sentence, taken over its real tokens only. `mask[b, t]` is
`True` where a token is real, and each sentence has at least one real token. Padding may be anywhere: at the end, at the
start or in between. The vectors at padded positions must not affect the result, even if they're NaN or infinite (they
may come from `torch.empty`, after all). The vectors of real tokens are finite, and small enough that even their sum
fits into the dtype of `x`; all of a sentence's real vectors may be zero. A sentence has at most 2,048 tokens. The
result has the dtype of `x`, which may be `float64`, `float32`, `float16` or `bfloat16`. Even in a narrow dtype it must
be accurate. (PyTorch's sums are: they add in a wider dtype and round only their result. If you add in another way, with
`einsum` for example, convert to `float64` first.) Gradients flow back to `x`, and those at padded positions are 0.
Don't change `x` or `mask`.
"""


# %% nbgrader={"grade": false, "grade_id": "mean_pool", "locked": false, "schema_version": 3, "solution": true, "task": false}
def mean_pool(x: Float[Tensor, "b t d"], mask: Bool[Tensor, "b t"]) -> Float[Tensor, "b d"]:
    """For each sentence the mean of the vectors whose mask is True."""
    ### BEGIN SOLUTION
    real = x.masked_fill(~rearrange(mask, "b t -> b t 1"), 0)
    return reduce(real, "b t d -> b d", "sum") / reduce(mask, "b t -> b 1", "sum")
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_mean_pool", "locked": true}
check("mean_pool")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>A mean is a sum divided by a count. Sum <code>x</code> with zeros at the padded
positions, and get the count from the mask.</details>
<details><summary>Hint 2</summary>The mask has one dimension fewer than <code>x</code>: where does it need one more to
be broadcast against <code>x</code>? And does <code>masked_fill</code> want to know what to keep, or what to
<i>replace</i>?</details>

**Why it matters.** Mean vectors like these are used to search and compare texts. A mean that counts padding still has
the right shape, but it depends on which other sentences happened to be in the batch, and no error will tell you. The
same is true of a loss that is averaged over padding tokens.

Here's one sentence of four tokens, first without padding, then padded with zeros to 6 and to 12 positions:
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
        f"{length:2} positions: without a mask, the mean is {naive.norm() / pooled.norm():.2f} times what it should be"
    )

# %% [markdown]
r"""
## 5 · rearrange: split, move, merge

`rearrange` changes the shape and computes nothing. Here are the operations of lecture 03, written the old way and the
new way, with einops's `repeat` for `expand` (names that are only on the right say how often to repeat):
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
You only give the sizes that can't be inferred (`h=2`). The pattern must account for every dimension, and einops checks
it before anything moves. In contrast, `view` on a contiguous tensor accepts any shape that has the right number of
elements:
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

meaningless = x.view(4, 3, 2)  # view does not complain
assert not torch.equal(meaningless, rearrange(x, "b t d -> d t b"))

# %% [markdown]
r"""
### Split the heads, transform each, merge

Suppose that we want to split a vector of 4 numbers into 2 *heads* of 2 numbers. Parentheses list the parts of a
dimension, and their order matters. The last one varies fastest, like the seconds on a clock: `(h e)` means all the
numbers of head 0, followed by all those of head 1. `(e h)` would deal the numbers out to the heads in turn, like cards.
"""

# %%
vector = torch.tensor([0.0, 1, 2, 3])
assert rearrange(vector, "(h e) -> h e", h=2).tolist() == [[0, 1], [2, 3]]
assert rearrange(vector, "(e h) -> h e", h=2).tolist() == [[0, 2], [1, 3]]  # the same shape!

# %% [markdown]
r"""
Now let's take all three steps, the old way and the new way. Each head is multiplied by the same matrix.
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
In attention (section 6), the heads also have to change places with the tokens: each head is computed separately, so the
head dimension moves to the front, next to the batch. Here are the vectors of 3 tokens, split into 2 heads of 6 numbers,
with the shape `[heads, tokens, features]`. The picture shows the storage with one token per row; head 0 is outlined:
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
        title="Splitting heads moves nothing: each head is a block of columns",
        highlight=[(0, t, e) for t in range(3) for e in range(6)],
    ),
    alt="The storage of 36 slots seen as 2 heads of 3 tokens of 6 numbers, with strides 6, 12 and 1. "
    "Head 0, outlined, is the left half of each token's 12 slots, head 1 the right half.",
)

# %% [markdown]
r"""
### Which of them are free?

`rearrange` returns a view if strides can describe the result and a copy otherwise, just like `reshape` (lecture 03).
Moving and splitting dimensions is always free. Merging is free only if the names that you merge are already neighbors
in memory, in the same order; otherwise the numbers have to move. So for a contiguous `x`, `b t d -> d (b t)` is a view,
but `b t d -> b (d t)` makes a copy.

**Predict.** Suppose that attention returns a contiguous `float32[8, 12, 1024, 64]`: batch, heads, tokens, features. How
many bytes does `rearrange(out, "b h t e -> b t (h e)")` allocate?
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
assert allocated_bytes(x, "b t d -> d (b t)") == 0
assert allocated_bytes(x, "b t d -> b (d t)") > 0  # neighbors, but in the other order
assert allocated_bytes(x, "b t d -> t (b d)") > 0  # b and d are not neighbors
assert allocated_bytes(out, "b h t e -> b t h e") == 0

merged = allocated_bytes(out, "b h t e -> b t (h e)")
reconcile("merging the heads", guess, merged, "B")
assert merged == 8 * 12 * 1024 * 64 * 4 == 25_165_824  # a copy of everything

# %% [markdown]
r"""
In the picture below, each element of a small tensor moves to its place in the result. Its number is its place in the
tensor that it comes from, and its color shows its index along one of the named dimensions. Press play on *elements
placed*, choose another example, or write your own pattern, shapes and sizes. In *split and move*, replace `(h e)` with
`(e h)`: which elements does the first head get now, and can you see the change in the shape of the result?
"""

# %%
from course_utils.explorers import patterns

patterns.explore("split and move")

# %% [markdown]
r"""
*Try it yourself:* `rearrange(x, "b (t two) d -> b t (two d)", two=2)` puts two tokens into one vector. Is it free?
Decide before you measure.

### Exercise 4.3 · Split and merge &nbsp; ★☆☆ &nbsp; essential &nbsp; 5 minutes

Write `split_heads(x, heads)`, which turns a tensor `[b, t, d]` into one of shape `[b, h, t, e]`, where $d = h \cdot e$
and each head consists of $e$ neighboring numbers. Also write `merge_heads(x)`, which undoes it, whatever the strides of
its argument are. Splitting must not copy: the result uses the storage of `x`, whatever the strides of `x` are.
Gradients flow back through both functions. You may write them the old way or the new way.
"""


# %% nbgrader={"grade": false, "grade_id": "split_heads", "locked": false, "schema_version": 3, "solution": true, "task": false}
def split_heads(x: Float[Tensor, "b t d"], heads: int) -> Float[Tensor, "b heads t e"]:
    """Each vector as `heads` groups of d / heads neighbors, with heads before tokens. A view."""
    ### BEGIN SOLUTION
    return rearrange(x, "b t (h e) -> b h t e", h=heads)
    ### END SOLUTION


def merge_heads(x: Float[Tensor, "b heads t e"]) -> Float[Tensor, "b t d"]:
    """Undo split_heads: concatenate the heads into one vector for each token."""
    ### BEGIN SOLUTION
    return rearrange(x, "b h t e -> b t (h e)")
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_split_heads", "locked": true}
check("split_heads")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>The old way, splitting takes two steps, <code>unflatten</code> (or <code>view</code>)
and <code>transpose</code>; the new way, it's one pattern.</details>
<details><summary>Hint 2</summary>In the pattern, the last dimension of <code>x</code> is two names in parentheses. The
one that varies fastest comes last; which is it? And which size can't einops infer?</details>

**Why it matters.** If you use `(e h)` instead of `(h e)` in a model that you train from scratch, it learns just as
well, because before training no position in the vector has a meaning. If you do it in a model that you *load*, it
produces nonsense, without any error. When you convert a model's saved weights from one library to another, you have to
know which order each library uses.

Splitting heads is free, but merging them makes a copy, and code like ours pays for that copy once per layer. (An
implementation that writes its result as `b t h e` in the first place doesn't. You'll see one in section 7.)

### Images: just more names (optional)

A Vision Transformer cuts an image into square *patches* and treats each as a token: a vector of all its pixels. To do
this it splits and merges both the height and the width.

### Exercise 4.4 · Patches, and back (optional) &nbsp; ★★☆ &nbsp; 15 minutes

Write `patchify(images, size)`, which turns images `[b, c, height, width]` into patches `[b, patches, numbers]`. The
patches of `size` × `size` pixels come in row-major order. Within a patch the pixels come in row-major order too, and
the `c` channels of each pixel are next to each other. Also write `unpatchify(patches, size, height)`, which restores
the images; `height` is in pixels. Images needn't be square. You may assume that there's at least one image with at
least one channel and one patch, that the pixels are finite, and that `height` and width are multiples of `size`. Both
functions keep the dtype, and gradients flow back through them.
"""


# %% nbgrader={"grade": false, "grade_id": "patchify", "locked": false, "schema_version": 3, "solution": true, "task": false}
def patchify(
    images: Float[Tensor, "b c height width"], size: int
) -> Float[Tensor, "b patches numbers"]:
    """Patches in row-major order, each as a vector of its pixels in row-major order, channels last."""
    ### BEGIN SOLUTION
    return rearrange(images, "b c (y p) (x q) -> b (y x) (p q c)", p=size, q=size)
    ### END SOLUTION


def unpatchify(
    patches: Float[Tensor, "b patches numbers"], size: int, height: int
) -> Float[Tensor, "b c height width"]:
    """Undo patchify, for images of that height in pixels."""
    ### BEGIN SOLUTION
    return rearrange(
        patches, "b (y x) (p q c) -> b c (y p) (x q)", p=size, q=size, y=height // size
    )
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_patchify", "locked": true}
check("patchify")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>The height is (number of rows of patches) × (height of a patch in pixels). Split it and the
width, then decide in which order the six names must come.</details>
<details><summary>Hint 2</summary>In parentheses the last name varies fastest. Which one is that within a patch, and
which one among the rows and columns of patches? On the way back einops can't infer how many rows of patches there are.</details>
<details><summary>A worked example</summary>

```
0  1 | 2  3
4  5 | 6  7        patches of 2 × 2:
------------       [0 1 4 5] [2 3 6 7] [8 9 12 13] [10 11 14 15]
8  9 |10 11
12 13|14 15
```

</details>

**Why it matters.** A Transformer can now read an image as if it were text. The old way takes a `reshape` to six
dimensions, a `permute` with six numbers, another `reshape`, and a comment that somebody has to keep up to date.

### Tokens from two sources: pack and unpack (optional)

A Vision Transformer puts one extra token, which contains no pixels, in front of the patches. `pack` joins tensors along
the dimension called `*` and also returns the shape that each of them had there (`seams` below); given these shapes,
`unpack` splits the result again. The next cell uses both, but first it puts the patches back in reverse order: your
`unpatchify` makes a different photo from the same tokens, and the mean of the tokens is the same for both photos.
Nothing in a token says where in the photo it belongs. A computation that ignores the order of the tokens, as the mean
does and attention (section 6) without a mask, can't tell the two photos apart, so a model has to be told where each
patch was.
"""

# %%
photos, extra = torch.randn(8, 3, 224, 224), torch.randn(8, 1, 768)
patches = patchify(photos, 16)
assert patches.shape == (8, 14 * 14, 16 * 16 * 3)  # a photo, as Vision Transformers cut it

jumbled = unpatchify(patches.flip(1), 16, height=224)
print(f"pixels that moved: {(jumbled != photos).float().mean().item():.0%}")
assert not torch.equal(jumbled, photos)
assert torch.allclose(patchify(jumbled, 16).mean(dim=1), patches.mean(dim=1), atol=1e-5)

old = torch.cat([extra, patches], dim=1)
new, seams = pack([extra, patches], "b * d")
assert torch.equal(old, new) and new.shape == (8, 197, 768)

extra_again, patches_again = unpack(new, seams, "b * d")
assert torch.equal(patches_again, patches)
assert memory.same_storage(patches_again, new)  # pack copies, unpack does not

# %% [markdown]
r"""
*Try it yourself:* undo `b (t two) d -> b t (two d)` with one pattern.

### What names cost

The first time you use a pattern with a given number of dimensions, einops parses it and remembers what to do. After
that, each call checks the sizes and calls PyTorch's own operations, so it does the same work as code without names,
plus a little work in Python.

**Predict.** Splitting the heads by number is `x.view(8, 1024, 12, 64).transpose(1, 2)`. How many times as long does
`rearrange(x, "b t (h e) -> b h t e", h=12)` take?
"""

# %%
guess = None  # times


# %% tags=["item-103", "timed"]
def by_number(x: Float[Tensor, "b t d"]) -> Float[Tensor, "b h t e"]:
    b, t, d = x.shape
    return x.view(b, t, 12, d // 12).transpose(1, 2)


def by_name(x: Float[Tensor, "b t d"]) -> Float[Tensor, "b h t e"]:
    return rearrange(x, "b t (h e) -> b h t e", h=12)


seconds = {}
for shape in ((2, 5, 24), (8, 1024, 768)):
    x = torch.randn(*shape, device=device)
    assert torch.equal(by_number(x), by_name(x))
    for split in (by_number, by_name):
        seconds[split] = timing.benchmark(lambda: split(x), min_seconds=0.1).minimum
        print(f"{shape!s:>14} {split.__name__:>9}: {readable(seconds[split], 's')}")

reconcile("with names", guess, seconds[by_name] / seconds[by_number], "times as long")
w = torch.randn(768, 768, device=device)
product = timing.benchmark(lambda: x @ w, device=device, min_seconds=0.1).minimum
print(f"one product with a 768 × 768 matrix: {readable(product, 's')}")

# %% [markdown]
r"""
Since einops doesn't touch the numbers, the cost of the names doesn't depend on the size of the tensor. Compared with
the matrix products of a layer for a batch of this size, it's nothing. It can matter in a program that makes many small
calls, such as one that generates text a token at a time.

`einops.einsum` calls `torch.einsum`, which you met in a trap above and will meet in other people's code. There, each
name is a single letter, the pattern comes first, and the arrow may be missing.

> **Trap: the missing arrow.** Without an arrow, `torch.einsum` gives the result one dimension for each letter that
> occurs exactly once, in *alphabetical* order. So `torch.einsum("ab", x)` is `x`, and `torch.einsum("ba", x)` is its
> transpose. einops insists on an arrow.
"""

# %% tags=["item-104"]
q, k, x = torch.randn(2, 3, 4), torch.randn(2, 5, 4), torch.randn(3, 4)
named = einsum(q, k, "batch t e, batch s e -> batch t s")
assert torch.equal(torch.einsum("bte,bse->bts", q, k), named)

assert torch.equal(torch.einsum("ab", x), x)
assert torch.equal(torch.einsum("ba", x), x.T)
try:
    einsum(x, "b a")
except ValueError as error:
    print(error)
else:
    raise AssertionError("einops accepted a pattern without an arrow")

# %% [markdown]
r"""
## 6 · Attention, with names

How can one token use information from the others? In **attention**, each token reads a weighted average of vectors from
all tokens, itself included, and the weights depend on what those tokens contain. Each token has three vectors: its
**query** says what it's looking for, its **key** says what it has to offer, and its **value** is what the others
receive from it. The dot products of a token's query with all the keys are its *scores*. **Softmax** then turns a row of
scores, divided by $\sqrt e$, into positive *weights* that add up to 1: it takes the exponential of each and divides it
by the sum of all the exponentials. The result is the average of the values, weighted by these weights (here $e$ is the
length of a query or key, not Euler's number, and $q_t$, $k_s$, $v_s$ are the vectors of tokens $t$ and $s$):

$$\begin{split}
\text{out}_t &= \sum_s \text{weight}_{ts} \, v_s \\
\text{weight}_{ts} &= \frac{\exp(q_t \cdot k_s / \sqrt{e})}{\sum_r \exp(q_t \cdot k_r / \sqrt{e})}
\end{split}$$

That's two einsums with a softmax between them. Why divide by $\sqrt{e}$? If two vectors consist of $e$ independent
random numbers with mean 0 and standard deviation 1, their dot product has a standard deviation of $\sqrt{e}$. Without
the division, the more numbers the vectors have, the closer softmax comes to putting all its weight on one key.
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
leave for the others, with and without the scaling?

A model computes attention in several *heads*, each with its own queries, keys and values (exercise 4.6). For each head,
there's one score for each pair of tokens.

**Predict.** In each layer, Llama 3 8B has 32 heads, with queries and keys of 128 numbers. For one text of 8,192 tokens,
how many bytes would the scores of *one* layer take in `bfloat16` if they were all stored?
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
# … computed from queries that take only 67 MB
assert q.numel() * q.element_size() == 67_108_864
flops = count_flops(
    lambda: einsum(einsum(q, k, "h t e, h s e -> h t s"), v, "h t s, h s e -> h t e")
)
assert flops == 2 * 2 * heads * t * t * e == 4 * t**2 * 4096  # two products, 2 h t t e each

# %% [markdown]
r"""
That's why good implementations, such as FlashAttention (Dao and others, 2022, arXiv:2205.14135), don't store them: they
compute a block of scores, use it, and throw it away. In PyTorch you call such implementations through
`F.scaled_dot_product_attention`. You'll now write the simplest version of the same computation.

A language model must not look ahead. So in *causal* attention, a query sees only the keys up to its own position, and
the others get weight 0; this is lecture 01's causal mask. To get there, replace their *scores* by −∞: $\exp(-\infty)$
is exactly 0, and the other weights still add up to 1. But which positions do the queries have if there are fewer of
them than keys? When a model generates text, it keeps the keys and values of all previous tokens in a **KV cache** so
that it needn't compute them again, and only the newest token has a query. So the queries belong to the *last*
positions.

> **Trap: queries in the wrong place.** `F.scaled_dot_product_attention(q, k, v, is_causal=True)` gives the queries the
> *first* positions. If there are as many queries as keys, that makes no difference. But if there's only one query, it
> sees only one key, the oldest.
"""

# %%
q, k, v = torch.randn(1, 1, 4), torch.randn(1, 5, 4), torch.randn(1, 5, 4)

first_only = F.scaled_dot_product_attention(q, k, v, is_causal=True)
assert torch.allclose(first_only, v[:, :1], atol=1e-5)  # the newest token reads the oldest

# %% [markdown]
r"""
### Exercise 4.5 · Attention &nbsp; ★★★ &nbsp; essential &nbsp; 20 minutes

Write `attention(q, k, v, causal)` for any number of leading dimensions, which are the same for `q`, `k` and `v`. Scale
the scores by $1/\sqrt{e}$, where $e$ is the length of a query. If `causal` is true, the `t` queries belong to the last
`t` of the `s` key positions (t ≤ s), and each sees the keys up to and including the one at its own position. The scores
may be large, including those that the mask hides. Every score (scaled or not) is a finite number above the dtype's
smallest, `torch.finfo(q.dtype).min`, but the exponential of a score may be too large for the dtype, as `exp(100_000)`
is (`softmax` can handle that). Anything you create, such as a mask, must be on the device of `q`: `device=q.device`.
(The test uses the meta device to check this, so you don't need a GPU.) The result has the dtype of `q`, `k` and `v`,
and gradients flow back to all three. Don't change the arguments.
"""


# %% nbgrader={"grade": false, "grade_id": "attention", "locked": false, "schema_version": 3, "solution": true, "task": false}
def attention(
    q: Float[Tensor, "... t e"],
    k: Float[Tensor, "... s e"],
    v: Float[Tensor, "... s f"],
    causal: bool,
) -> Float[Tensor, "... t f"]:
    """For each query the average of the values, weighted by softmax(query · keys / √e).

    causal: the queries are at the last t of s positions and see the keys up to their own.
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
<details><summary>Hint 1</summary>Write down the names of the dimensions before and after each step. Over which of them does
each einsum sum, and along which does softmax run?</details>
<details><summary>Hint 2</summary>Number the positions from 0 to s − 1. At which of them is the first query, and at which the
last? Take 3 queries and 5 keys, and draw what each query may see; then compare your drawing with the one below.</details>
<details><summary>What it should look like</summary>

```
3 queries, 5 keys      key  0  1  2  3  4
                   query 0  ■  ■  ■  ·  ·      at position 2
                   query 1  ■  ■  ■  ■  ·
                   query 2  ■  ■  ■  ■  ■      the newest sees all
```

</details>

**Why it matters.** You've written the operation that Transformers are built on, in a form simple enough to test a fast
implementation against. A transposed mask, and one that puts the queries at the *first* positions, both produce numbers
that look fine.

### Exercise 4.6 · Many heads &nbsp; ★★☆ &nbsp; essential &nbsp; 10 minutes

With one set of attention weights, each token can read only one weighted average. So **multi-head attention** runs
several *heads* side by side, each with its own queries, keys and values, and concatenates their results. Write a causal
`multi_head_attention(x, wq, wk, wv, wo, heads)`: multiply `x` by `wq`, `wk` and `wv`, split each of the three products
into heads of neighboring numbers, compute attention in each head, merge the heads, and multiply by `wo`. Scale by
$1/\sqrt{e}$, where $e$ is the length of a *head's* vectors. The products needn't be as wide as `x`. As before, scores
may be large, anything you create must be on the device of `x`, the result has the dtype of the arguments, gradients
flow back to all of them (except `heads`). Don't change them.

Six to ten lines are enough. You may call your own functions from above, and PyTorch's.
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
<details><summary>Hint 1</summary>Write down the names of the dimensions first: of <code>x</code>, its products,
the vectors after splitting, and the scores.</details>
<details><summary>Hint 2</summary>Compare the steps between splitting and merging with the attention that you've written already: what's different?
Which dimensions does the causal mask need, and which does it get by broadcasting?</details>

**Why it matters.** Llama, GPT and BERT all contain a version of this function. They differ in what surrounds it and in
details (whether it's causal, whether several heads share keys, how positions enter). In lecture 14 you'll train such a
model.

## 7 · Who attends to whom

Let's make two heads do something that we can see. We take six words and give each token a vector of 12 numbers. The
first 6 say which word it is (one-hot: a single 1 among zeros; there are four different words, so two of the six are
always 0), and the other 6 give its position in the same way. Head 0 should look for the same word, and head 1 for the
previous position. We don't train anything: we write the weights by hand, with a name for each dimension. A factor of 40
(`sharp`) makes the scores so large that softmax gives nearly all the weight to the keys with the highest score.
Attention is causal, as in a language model.
"""

# %%
words = ["to", "be", "or", "not", "to", "be"]
vocabulary = list(dict.fromkeys(words))  # to, be, or, not
which = F.one_hot(torch.tensor([vocabulary.index(word) for word in words]), 6)
position = torch.eye(6)
# From a list of tensors, einops makes a new first dimension, here `kind`.
x = rearrange([which.float(), position], "kind t number -> 1 t (kind number)")
assert x.shape == (1, 6, 12)  # batch, tokens, d

sharp = 40.0
asks = torch.zeros(2, 6, 2, 6)  # kind, number, head, e
offers = torch.zeros(2, 6, 2, 6)
asks[0, :, 0] = sharp * torch.eye(6)  # head 0 looks for its own word …
offers[0, :, 0] = torch.eye(6)  # … and offers its word
asks[1, :, 1] = sharp * torch.eye(6)  # head 1 looks for its own position …
offers[1, :, 1] = torch.eye(6).roll(1, dims=1)  # … which the token before it offers
offers[1, 5, 1] = 0  # (nothing comes after the last)
wq, wk = (rearrange(w, "kind number h e -> (kind number) (h e)") for w in (asks, offers))

# %% [markdown]
r"""
**Predict.** In head 0, what share of its attention does the second "to" give to the first "to"?
"""

# %%
guess = None  # between 0 and 1

# %%
q, k = split_heads(x @ wq, 2), split_heads(x @ wk, 2)
# With the identity matrix instead of values, the result is the weights themselves.
identity = repeat(torch.eye(6), "s f -> 1 h s f", h=2)
weights = attention(q, k, identity, causal=True)
second_to = weights[0, 0, 4]  # batch 0, head 0, query 4
reconcile("weight of the first “to” for the second", guess, round(second_to[0].item(), 4), "")

assert torch.allclose(second_to, torch.tensor([0.5, 0, 0, 0, 0.5, 0]), atol=1e-4)
before = torch.eye(6).roll(-1, dims=1)  # token t attends to t - 1 …
before[0] = torch.eye(6)[0]  # … but the first has no predecessor
assert torch.allclose(weights[0, 1], before, atol=1e-4)
assert (weights.triu(1) == 0).all()  # no weight on the future: exactly zero
assert torch.allclose(reduce(weights, "b h t s -> b h t", "sum"), torch.ones(1, 2, 6))


# %%
def attention_map(weights: Float[Tensor, "head t s"], words: list[str], names: list[str]):
    """For each head a row per query and a column per key, × where the mask forbids it."""
    figure = Figure(figsize=(8.9, 4.6))
    for panel, (square, name) in enumerate(zip(weights.tolist(), names, strict=True)):
        axes = figure.add_axes((0.09 + 0.48 * panel, 0.05, 0.42, 0.74))
        axes.set(xlim=(0, len(words)), ylim=(len(words), 0), aspect="equal")
        figure.text(0.09 + 0.48 * panel, 0.93, name, size=12, weight="bold")
        places = [i + 0.5 for i in range(len(words))]
        axes.set_xticks(places, words)
        axes.set_yticks(places, words)
        axes.tick_params(length=0, labelsize=10, top=False, labeltop=True, labelbottom=False)
        axes.set_ylabel("query", size=10)
        axes.set_xlabel("key", size=10)
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
        ["Head 0 attends to the same word", "Head 1 attends to the previous word"],
    ),
    alt="Two 6 by 6 squares, a row for each query and a column for each key, the upper triangle crossed out. "
    "In head 0 each word attends to itself, and the second “to” and “be” give one half to their first "
    "occurrence. In head 1 each word attends to the previous one, and the first to itself.",
)

# %% [markdown]
r"""
(A × marks a key that the mask hides.) One head finds *where this word occurs*; the other looks *one step back*. If a
head in one layer copies the previous word into each token, a head in a later layer can look for the tokens whose
*previous* word is the current one. So it finds what *followed* this word last time, and the model can predict it again.
Trained models do develop such pairs; the later head is called an induction head (Olsson and others, 2022, "In-context
Learning and Induction Heads").

*Try it yourself:* set `sharp = 4.0` and run the cells again. (The asserts will fail, because the attention is then less
concentrated.) Then make head 1 look two steps back.

### Your layer, and PyTorch's

Now let's run your `multi_head_attention` with weights the size of the smallest GPT-2's. `nn.MultiheadAttention` stores
the three matrices for queries, keys and values as the transposes of ours, stacked in a single tensor. One pattern
separates them:
"""

# %%
layer = nn.MultiheadAttention(768, 12, bias=False, batch_first=True, device=device)
x = torch.randn(2, 128, 768, device=device)
with torch.no_grad():
    wq, wk, wv = rearrange(layer.in_proj_weight, "(three inner) d -> three d inner", three=3)
    wo = rearrange(layer.out_proj.weight, "d inner -> inner d")
    future = torch.ones(128, 128, dtype=torch.bool, device=device).triu(1)

    # In nn.MultiheadAttention, True means hidden.
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

# On a CPU, PyTorch wrote the result as b t h e, the layout of q, so merging its heads is free.
if not devices.on_gpu(device):
    assert memory.same_storage(rearrange(kernel, "b h t e -> b t (h e)"), kernel)

# %% [markdown]
r"""
### The future is invisible

The map of the attention shows only weights. Here's a test that looks at the outputs and doesn't rely on the mask being
right: change one token, and see which outputs change, even in a single bit. Do it for each token in turn.
"""


# %%
@torch.no_grad()
def influence(layer, x: Float[Tensor, "1 t d"]) -> Bool[Tensor, "t s"]:
    """Entry [t, s]: does any bit of output t change when token s is changed?"""
    before = layer(x)
    columns = []
    for s in range(x.shape[1]):
        changed = x.clone()
        changed[:, s] += 1
        columns.append(reduce(layer(changed) != before, "1 t d -> t", "any"))  # is any True?
    return rearrange(columns, "s t -> t s")


small = torch.randn(1, 16, 768, device=device)
mine = influence(lambda x: multi_head_attention(x, wq, wk, wv, wo, 12), small)

triangle = torch.ones(16, 16, dtype=torch.bool, device=device).tril()
assert torch.equal(mine, triangle)  # lecture 01's causal mask, found by experiment
print("outputs that change with token 0, 1, …:", mine.sum(dim=0).tolist())

# %% [markdown]
r"""
Not a single bit leaks: $\exp(-\infty)$ is exactly 0, so a hidden key adds nothing to softmax's denominator, and its
weight of 0 times any finite number adds exactly nothing. And what about the transposed mask that lecture 01 warned you
about? With that mask, which hides the past instead of the future, the code still runs and the result has the right
shape, but every token except the last reads the answer from the future.
"""

# %%
past = ~future[:16, :16] & ~torch.eye(16, dtype=torch.bool, device=device)
leaky = influence(lambda x: layer(x, x, x, attn_mask=past, need_weights=False)[0], small)
assert torch.equal(leaky, triangle.T)  # each token sees itself and the future, and nothing else

unmasked = influence(lambda x: layer(x, x, x, need_weights=False)[0], small)
assert unmasked.all()  # every token sees every token, as in BERT, which doesn't generate text

# %% [markdown]
r"""
*Try it yourself:* "adds exactly nothing" has an exception: what is 0 · NaN? Put NaN into the last token:
`small[:, -1] = torch.nan`. In how many tokens of `multi_head_attention(small, wq, wk, wv, wo, 12)` is there a NaN now,
and why?

## Takeaways

**Mechanics.** In `einsum`, each name is a loop, and names that aren't in the output are summed over. For two tensors
that both have all the summed names, the FLOPs are twice the product of the sizes of all names, each taken once.
`reduce` reduces with a mean, max or min. In `rearrange`, parentheses split and merge, the last name in them varies
fastest, and the result is a view if strides can describe it. jaxtyping's names are checked if you ask for it
(`jaxtyped` with a type checker, or `isinstance`), and only sizes and dtypes are checked.

**Mindset.** Don't count dimensions if you can name them. When you translate old code, assert that old and new agree,
with a different size for each dimension. Don't trust a mask: change a token, and see which outputs change.

**Intuitions.** Attention is two einsums with a softmax between them. Splitting heads is free, and merging them makes a
copy. There are as many scores as pairs of tokens; that's why long texts are expensive and why good implementations
never store the scores. And a tensor with its dimensions in the wrong order can still have the right shape.

Next: [05 · FLOPs and MFU](../05_flops_and_mfu/05_flops_and_mfu.ipynb). How fast could all this be, and how fast is it?
"""

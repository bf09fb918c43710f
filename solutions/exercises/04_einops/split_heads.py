import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import FLOATS, any_of, tensors

exercise = Exercise("Splitting: [b, t, d] → [b, t, h, e] → [b, h, t, e]. Merging takes the same steps in reverse.")


def merge(student, x):
    """What merge_heads makes of x."""
    return student.merge_heads(x)


def storage(student, x, heads):
    """Whether the result looks at the storage of x, and its shape: x itself has another."""
    import torch

    y = student.split_heads(x, heads)
    if not torch.is_tensor(y):
        return {"shape": None, "shares the storage of x": False}
    return {
        "shape": list(y.shape),
        "shares the storage of x": y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr(),
    }


def gradients(student, x, heads):
    """The gradients of the arguments, where those of the results are ones."""
    import torch

    b, t, d = x.shape
    found = {}
    for name, call, value in (
        ("split_heads", lambda y: student.split_heads(y, heads), x),
        ("merge_heads", student.merge_heads, x.reshape(b, heads, t, d // heads)),
    ):
        leaf = value.clone().requires_grad_()
        y = call(leaf)
        if torch.is_tensor(y) and y.requires_grad:
            y.backward(torch.ones_like(y))
        found[f"x.grad after {name}"] = leaf.grad
    return found


@st.composite
def vectors(draw):
    b, t, h, e = draw(st.tuples(*[st.integers(1, 4)] * 4))
    return given(draw(tensors((b, t, h * e), draw(any_of(*FLOATS)), contiguous=None)), h)


@st.composite
def heads(draw):
    shape = draw(st.tuples(*[st.integers(1, 4)] * 4))
    return given(draw(tensors(shape, draw(any_of(*FLOATS)), contiguous=None)))


def numbers(*shape, dtype=torch.float32):
    return torch.arange(torch.Size(shape).numel()).to(dtype).reshape(shape)


turned = numbers(1, 4, 2).mT  # [1, 2, 4]
exercise.requirement(
    "split_heads turns [b, t, d] into [b, h, t, e], and each head consists of neighboring numbers",
    points=0.75,
    visible=[given(numbers(1, 2, 4), 2), given(numbers(1, 4, 2), 2), given(numbers(2, 1, 4), 2), given(turned, 2),
             given(numbers(2, 2, 4)[1:], 2)],
    edges={
        "one head": given(numbers(2, 3, 4), 1),
        "as many heads as numbers": given(numbers(2, 3, 4), 4),
        "one of everything": given(numbers(1, 1, 1), 1),
        "no sentences": given(numbers(0, 2, 4), 2),
        "one token": given(numbers(3, 1, 6), 2),
        "as many tokens as heads": given(numbers(2, 3, 6), 3),
        "heads longer than many": given(numbers(1, 2, 12), 3),
        "all sizes alike": given(numbers(3, 3, 9), 3),
        "float64": given(numbers(1, 3, 6, dtype=torch.float64), 3),
        "bfloat16": given(numbers(1, 3, 6, dtype=torch.bfloat16), 2),
        "strides that fit no view of another shape": given(numbers(6, 3, 2).permute(2, 1, 0), 3),
        "one line for all tokens": given(numbers(4).expand(2, 3, 4), 2),
        "a part of a storage": given(numbers(2, 5, 8)[:, 1:4, 2:6], 2),
    },
    domain=vectors(),
)
exercise.requirement(
    "splitting doesn't copy: the result shares the storage of x, whatever the strides of x are",
    points=0.5,
    probe=storage,
    visible=[
        given(numbers(1, 2, 4), 2, says="split_heads(x, 2), with x of float32[1, 2, 4]"),
        given(turned, 2, says="split_heads(x.mT, 2), with x of float32[1, 4, 2]"),
    ],
    edges={
        "one head": given(turned, 1),
        "as many heads as numbers": given(turned, 4),
        "one line for all tokens": given(numbers(4).expand(2, 3, 4), 2),
        "a part of a storage": given(numbers(2, 5, 8)[:, 1:4, 2:6], 2),
        "bfloat16": given(numbers(1, 3, 6, dtype=torch.bfloat16).mT, 3),
    },
    domain=vectors(),
    hint="Some functions copy (stack and cat always, contiguous if it has to); splitting and transposing don't need a copy.",
)
exercise.requirement(
    "merge_heads turns [b, h, t, e] into [b, t, d], which undoes split_heads",
    points=0.5,
    probe=merge,
    visible=[
        given(numbers(1, 2, 2, 2), says=f"merge_heads(torch.tensor({numbers(1, 2, 2, 2).tolist()}))"),
        given(numbers(1, 2, 3, 1), says=f"merge_heads(torch.tensor({numbers(1, 2, 3, 1).tolist()}))"),
        given(numbers(1, 2, 2, 2).transpose(1, 2), says=f"merge_heads(torch.tensor({numbers(1, 2, 2, 2).tolist()}).transpose(1, 2))"),
    ],
    edges={
        "one head": given(numbers(2, 1, 3, 4)),
        "heads of one number": given(numbers(2, 4, 3, 1)),
        "one of everything": given(numbers(1, 1, 1, 1)),
        "one token": given(numbers(3, 2, 1, 4)),
        "all sizes alike": given(numbers(3, 3, 3, 3)),
        "all sizes different": given(numbers(2, 3, 4, 5)),
        "as split_heads gives it": given(numbers(2, 3, 2, 4).transpose(1, 2)),
        "float64": given(numbers(1, 2, 3, 2, dtype=torch.float64)),
        "bfloat16": given(numbers(1, 2, 3, 2, dtype=torch.bfloat16)),
        "strides turned round": given(numbers(5, 4, 3, 2).permute(3, 2, 1, 0)),
    },
    domain=heads(),
    hint="Move the tokens back in front of the heads; then merge the last two dimensions.",
)  # fmt: skip
exercise.requirement(
    "gradients flow back to x through both functions",
    points=0.25,
    probe=gradients,
    visible=[
        given(numbers(1, 2, 4), 2, says="split_heads(x, 2).sum().backward(), and the same for merge_heads")
    ],
    edges={
        "one head": given(numbers(2, 3, 4), 1),
        "a part of a storage": given(numbers(2, 5, 8)[:, 1:4, 2:6], 2),
    },
    domain=vectors(),
    hint="Use only operations on x itself: detach, data, tolist and no_grad stop the gradients.",
)

dealt = "Your code splits the numbers as (e h), which interleaves the heads. A head consists of neighboring numbers: (h e)."
scrambled = "Your reshape scrambles the numbers, because it keeps row-major order. Split the last dimension, then swap tokens and heads."
copied = "The numbers are right, but splitting needs no copy: the result has to share the storage of x."
no_way_back = "Gradients can't flow back: use only operations on x itself."
back_first = "Move the tokens back in front of the heads before you merge h and e."
exercise.mistake(dealt, "b t (h e) -> → b t (e h) ->")
exercise.mistake("Your code merges as (e h); the heads were split as (h e).", "-> b t (h e) → -> b t (e h)")
exercise.mistake(dealt, "b t (h e) -> → b t (e h) ->", "-> b t (h e) → -> b t (e h)")
exercise.mistake(
    scrambled, 'rearrange(x, "b t (h e) -> b h t e", h=heads) → x.reshape(x.shape[0], heads, x.shape[1], -1)'
)
exercise.mistake("The heads come in front of the tokens: [b, h, t, e].", "-> b h t e → -> b t h e")
exercise.mistake("Batch and heads stay separate: [b, h, t, e] has four dimensions.", "-> b h t e → -> (b h) t e")
exercise.mistake("`heads` is the number of heads, not the size of each head.", "h=heads → e=heads")
exercise.mistake(copied, "h=heads) → h=heads).contiguous()")
exercise.mistake(copied, "h=heads) → h=heads).clone()")
exercise.mistake(copied, 'rearrange(x, "b t (h e) -> b h t e", h=heads) → torch.stack(x.chunk(heads, dim=-1), dim=1)')
exercise.mistake(
    "Your code copies x if it isn't contiguous; the last dimension can be split without a copy, whatever the strides are.",
    "rearrange(x, \"b t (h e) -> → rearrange(x.contiguous(), \"b t (h e) ->",
)
exercise.mistake(back_first, 'rearrange(x, "b h t e -> b t (h e)") → x.reshape(x.shape[0], x.shape[2], -1)')
exercise.mistake(back_first, '-> b t (h e) → -> b (h t) e')
exercise.mistake("Your result is [b, t, h, e]: merge the last two dimensions.", "-> b t (h e) → -> b t h e")
exercise.mistake(
    "view can't merge transposed dimensions, because that takes a copy; merge_heads may make one.",
    'rearrange(x, "b h t e -> b t (h e)") → x.transpose(1, 2).view(x.shape[0], x.shape[2], -1)',
)
exercise.mistake(no_way_back, "rearrange(x, \"b t (h e) -> → rearrange(x.data, \"b t (h e) ->")
exercise.mistake(no_way_back, "b h t e -> b t (h e)\") → b h t e -> b t (h e)\").detach()")

# %% mistake: strides of a contiguous tensor
# says: Your code assumes the strides of a contiguous tensor; use the strides that x actually has.
def split_heads(x, heads):
    b, t, d = x.shape
    e = d // heads
    return x.as_strided((b, heads, t, e), (t * d, e, d, 1))

def merge_heads(x):
    return rearrange(x, "b h t e -> b t (h e)")

# %% wrong: squeezes away a single head
def split_heads(x, heads):
    b, t, d = x.shape
    return x.view(b, t, heads, d // heads).transpose(1, 2)

def merge_heads(x):
    return torch.cat([part.squeeze(1) for part in x.split(1, dim=1)], dim=-1).squeeze(0)

# %% wrong: transposes the last two
def split_heads(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(-1, -2).movedim(-1, 1)

def merge_heads(x):
    return x.movedim(1, -1).flatten(-2)

# %% wrong: a new tensor of 32 bits to merge into
# unseen: dtypes other than float32 are for the hidden inputs to find
def split_heads(x, heads):
    return rearrange(x, "b t (h e) -> b h t e", h=heads)

def merge_heads(x):
    b, h, t, e = x.shape
    out = torch.zeros(b, t, h * e)
    for i in range(h):
        out[:, :, i * e : i * e + e] = x[:, i]
    return out

# %% wrong: as_strided with the right strides, but always from the start of the storage (from the statement)
def split_heads(x: Float[Tensor, "b t d"], heads: int) -> Float[Tensor, "b heads t e"]:
    b, t, d = x.shape
    sb, st, sd = x.stride()
    e = d // heads
    return torch.as_strided(x, (b, heads, t, e), (sb, e * sd, st, sd), 0)


def merge_heads(x: Float[Tensor, "b heads t e"]) -> Float[Tensor, "b t d"]:
    return rearrange(x, "b h t e -> b t (h e)")

# %% wrong: a view through .data, so gradients end there (from the statement)
def split_heads(x: Float[Tensor, "b t d"], heads: int) -> Float[Tensor, "b heads t e"]:
    return rearrange(x.data, "b t (h e) -> b h t e", h=heads)


def merge_heads(x: Float[Tensor, "b heads t e"]) -> Float[Tensor, "b t d"]:
    return rearrange(x, "b h t e -> b t (h e)")

# %% wrong: makes x contiguous first, which copies if it is not (from the statement)
def split_heads(x: Float[Tensor, "b t d"], heads: int) -> Float[Tensor, "b heads t e"]:
    b, t, d = x.shape
    return x.contiguous().view(b, t, heads, d // heads).transpose(1, 2)


def merge_heads(x: Float[Tensor, "b heads t e"]) -> Float[Tensor, "b t d"]:
    return x.transpose(1, 2).flatten(2)

# %% right: the old way
def split_heads(x, heads):
    b, t, d = x.shape
    return x.view(b, t, heads, d // heads).transpose(1, 2)

def merge_heads(x):
    b, h, t, e = x.shape
    return x.transpose(1, 2).reshape(b, t, h * e)

# %% right: unflatten and concatenate
def split_heads(x, heads):
    return x.unflatten(2, (heads, -1)).movedim(2, 1)

def merge_heads(x):
    return torch.cat(x.unbind(dim=1), dim=-1)

# %% right: strides by hand
def split_heads(x, heads):
    b, t, d = x.shape
    e = d // heads
    sb, st, sd = x.stride()
    return x.as_strided((b, heads, t, e), (sb, e * sd, st, sd))

def merge_heads(x):
    return x.permute(0, 2, 1, 3).contiguous().flatten(2)

# %% right: windows
def split_heads(x, heads):
    e = x.shape[-1] // heads
    return x.unfold(-1, e, e).swapaxes(1, 2)

def merge_heads(x):
    return torch.einsum("bhte->bthe", x).flatten(-2, -1)

# %% right: einops' other functions, and a tensor that is filled
def split_heads(x, heads):
    return torch.unflatten(einsum(x, "b t d -> b d t"), 1, (heads, -1)).mT

def merge_heads(x):
    b, h, t, e = x.shape
    out = x.new_empty(b, t, h * e)
    for i in range(h):
        out[..., i * e : (i + 1) * e] = x[:, i]
    return out

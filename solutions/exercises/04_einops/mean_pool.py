import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import FLOATS, any_of, tensors

exercise = Exercise("A mean is a sum divided by a count: what may the padding add to the sum, and which tensor knows the count?")

nan, inf = torch.nan, torch.inf
FILLERS = (0.0, 1000.0, nan, inf, -inf)


def look(student, x, mask):
    """The result's shape and dtype, and the arguments afterwards."""
    import torch

    result = student.mean_pool(x, mask)
    if not torch.is_tensor(result):
        result = torch.empty(0, dtype=torch.bool)
    return {"shape": list(result.shape), "dtype": result.dtype, "x afterwards": x, "mask afterwards": mask}


def gradient(student, x, mask, weights):
    """The gradient of x, where that of the result is weights. x is no leaf: to write into it is another mistake."""
    leaf = x.clone().requires_grad_()
    result = student.mean_pool(leaf * 1, mask)
    if result is not None and result.requires_grad:
        result.backward(weights.to(result.dtype))
    return {"x.grad": leaf.grad}


@st.composite
def masks(draw, b, t):
    """At least one real token in each sentence."""
    rows = [draw(st.lists(st.booleans(), min_size=t, max_size=t)) for _ in range(b)]
    for row in rows:
        row[draw(st.integers(0, t - 1))] = True
    return torch.tensor(rows)


@st.composite
def batches(draw, fillers=(0.0, 1000.0), zeros=False, dtypes=(torch.float64,)):
    b, t, d = draw(st.integers(1, 4)), draw(st.integers(1, 6)), draw(st.integers(1, 4))
    x = draw(tensors((b, t, d), draw(any_of(*dtypes)), contiguous=None))
    if zeros:
        x = x * draw(masks(t, d)) * draw(masks(b, t))[:, :, None]
    mask = draw(masks(b, t))
    mask = mask.mT.contiguous().mT if draw(st.booleans()) else mask
    x[~mask] = draw(any_of(*fillers))
    return given(x, mask)


@st.composite
def with_weights(draw):
    x, mask = draw(batches(FILLERS, dtypes=FLOATS)).args
    return given(x, mask, draw(tensors((x.shape[0], x.shape[2]), torch.float64)))


x = torch.tensor([[[1.0, 2.0], [50.0, 60.0]], [[5.0, 6.0], [7.0, 9.0]]])
right = torch.tensor([[True, False], [True, True]])
left = torch.tensor([[False, True], [True, True]])
two_missing = torch.tensor([[True, False], [False, True]])
three = torch.tensor([[[1.0, 2.0], [3.0, 4.0], [50.0, 60.0]], [[5.0, 6.0], [7.0, 8.0], [9.0, 13.0]]])
wide = torch.tensor([[[1.0, 2.0, 6.0], [9.0, 9.0, 9.0]]])
first = torch.tensor([[True, False]])


def padded(filler, mask=right):
    return x.masked_fill(~mask[:, :, None], filler)


exercise.requirement(
    "each sentence's vector is the mean of its real tokens, wherever the padding is, and it is accurate in every dtype",
    points=0.5,
    parts=["value"],
    visible=[
        given(x, right),
        given(x, left),
        given(x.mT.contiguous().mT, right),
        given(wide, first),
        given(torch.tensor([[[0.1], [0.7]]], dtype=torch.float64), torch.tensor([[True, True]])),
        given(torch.ones(1, 600, 1, dtype=torch.bfloat16), torch.arange(600)[None] >= 0,
              says="mean_pool(x, mask), with x = torch.ones(1, 600, 1, dtype=torch.bfloat16) and no padding"),
    ],
    edges={
        "one token": given(x[:, :1], right[:, :1]),
        "one sentence": given(x[:1], right[:1]),
        "numbers of one": given(x[:, :, :1], right),
        "one of everything": given(x[:1, :1, :1], right[:1, :1]),
        "numbers of none": given(x[:, :, :0], right),
        "no padding": given(x, torch.ones(2, 2, dtype=torch.bool)),
        "a token in the middle": given(three[:1], torch.tensor([[False, True, False]])),
        "a mask in another order": given(x, left.mT.contiguous().mT),
        "a hole": given(three, torch.tensor([[True, False, True], [False, True, False]])),
        "as many tokens as there may be": given(torch.ones(1, 2048, 1, dtype=torch.bfloat16), torch.ones(1, 2048) > 0),
        "float16": given(torch.full((1, 2048, 1), 3.0, dtype=torch.float16), torch.ones(1, 2048) > 0),
        "small numbers in float16": given(torch.full((1, 2048, 1), 0.0021, dtype=torch.float16), torch.ones(1, 2048) > 0),
        "one token of many": given(torch.full((1, 2048, 1), 0.0021, dtype=torch.float16), torch.arange(2048)[None] == 7),
        "many tokens": given(torch.ones(1, 300, 2, dtype=torch.float64), torch.arange(300)[None] > 10),
    },
    domain=batches(),
)
exercise.requirement(
    "the vectors at padded positions don't matter, even if they're NaN or infinite",
    points=0.5,
    parts=["value"],
    visible=[given(padded(nan), right), given(padded(inf), right), given(padded(-1e30, two_missing), two_missing)],
    edges={
        "-inf": given(padded(-inf), right),
        "all kinds": given(torch.tensor([[[1.0], [nan], [inf], [-inf], [1e38]]]),
                           torch.tensor([[True, False, False, False, False]])),
        "NaN in a part of the vector": given(torch.tensor([[[1.0, 2.0], [nan, 3.0]]]), first),
        "the largest number": given(padded(torch.finfo(torch.float32).max, two_missing), two_missing),
        "transposed": given(padded(nan).mT.contiguous().mT, right),
    },
    domain=batches(fillers=(nan, inf, -inf)),
    hint="0 · NaN is NaN: replace the padding (with masked_fill or where) instead of multiplying it by 0.",
)  # fmt: skip
exercise.requirement(
    "a real token counts, even if its vector is all zeros",
    points=0.25,
    parts=["value"],
    visible=[
        given(torch.tensor([[[0.0, 0.0], [3.0, 4.0], [1.0, 1.0]]]), torch.tensor([[True, True, False]])),
        given(torch.tensor([[[0.0, 2.0], [3.0, 4.0]]]), torch.tensor([[True, True]])),
    ],
    edges={
        "nothing but zeros": given(torch.zeros(2, 2, 2), right),
        "zeros and padding of zeros": given(torch.zeros(1, 2, 2), first),
        "-0.0": given(torch.tensor([[[-0.0], [2.0]]]), torch.tensor([[True, True]])),
        "transposed": given(torch.tensor([[[0.0, 3.0], [0.0, 4.0]], [[1.0, 0.0], [2.0, 0.0]]]).mT, right),
    },
    domain=batches(zeros=True, fillers=(0.0, 5.0)),
    hint="The mask determines which tokens count; the numbers don't.",
)
exercise.requirement(
    "the result has the dtype of x, and the arguments don't change",
    points=0.5,
    probe=look,
    visible=[
        given(x, right, says="x and mask after mean_pool(x, mask), with x of float32[2, 2, 2]"),
        given(x.bfloat16(), right, says="mean_pool(x, mask), with x of bfloat16[2, 2, 2]"),
    ],
    edges={
        "float64": given(x.double(), right),
        "float16": given(x.half(), right),
        "NaN at padded places": given(padded(nan), right),
        "no padding": given(x, torch.ones(2, 2, dtype=torch.bool)),
        "transposed": given(x.mT.contiguous().mT, right),
    },
    domain=batches(FILLERS, dtypes=FLOATS),
    hint="masked_fill_ and x[…] = … write to the caller's tensor; masked_fill and where make a new one.",
)
exercise.requirement(
    "gradients flow back to x, and they are 0 at padded positions",
    points=0.25,
    probe=gradient,
    visible=[
        given(x, right, torch.ones(2, 2), says="x.requires_grad_(); mean_pool(x, mask).sum().backward()"),
        given(padded(nan), right, torch.ones(2, 2), says="x.requires_grad_(); mean_pool(x, mask).sum().backward(), with NaN at padded positions"),
    ],
    edges={
        "infinite padding": given(padded(inf), right, torch.ones(2, 2)),
        "one number at a time": given(x, left, torch.tensor([[0.0, 1.0], [0.0, 0.0]])),
        "transposed": given(x.mT.contiguous().mT, right, torch.ones(2, 2)),
        "float16": given(x.half(), right, torch.ones(2, 2)),
        "bfloat16": given(x.bfloat16(), right, torch.ones(2, 2)),
        "numbers that are rounded": given(
            torch.tensor([[[0.211664], [0.0], [-0.0338929], [-0.309915]]]).double(), torch.tensor([[True, False, True, True]]),
            torch.tensor([[1.541]]).double()),
    },
    domain=with_weights(),
    hint="Compute with tensors throughout: gradients can't flow back through numbers taken out of x with tolist, numpy or detach.",
)

turned = (
    "Your mask is inverted: True marks the real tokens, but masked_fill replaces the positions where its mask is True."
)
counted = "Your code counts the padding: only tokens whose mask is True belong in the mean."
a_sum = "Your result is the sum; divide it by the number of real tokens."
nan_times = "0 · NaN is NaN. Replace the padding instead of multiplying it by 0."
zero_token = "The vector of a real token may be all zeros: count the tokens that the mask marks, not the numbers that aren't 0."
exercise.mistake(a_sum, '/ reduce(mask, "b t -> b 1", "sum") → ')
exercise.mistake(
    counted,
    "x.masked_fill(~rearrange(mask, \"b t -> b t 1\"), 0) → x",
    'reduce(mask, "b t -> b 1", "sum") → x.shape[1]',
)
exercise.mistake(counted, "x.masked_fill(~rearrange(mask, \"b t -> b t 1\"), 0) → x")
exercise.mistake(
    "The sum is right, but your code divides it by the number of all tokens, including the padding.",
    'reduce(mask, "b t -> b 1", "sum") → x.shape[1]',
)
exercise.mistake(
    turned,
    "x.masked_fill(~rearrange → x.masked_fill(rearrange",
    "reduce(mask, → reduce(~mask,",
)
exercise.mistake(
    turned,
    "x.masked_fill(~rearrange → x.masked_fill(rearrange",
)
exercise.mistake(
    "Each sentence has its own number of real tokens; your code divides by all of them together.",
    '"b t -> b 1" → "b t -> 1 1"',
)
exercise.mistake(
    "[b, d] / [b] lines up the counts with the numbers within a vector, not with the sentences: the counts need "
    "a last dimension of size 1.",
    '"b t -> b 1" → "b t -> b"',
)
exercise.mistake(zero_token, 'reduce(mask, "b t -> b 1", "sum") → reduce((real != 0).any(dim=-1), "b t -> b 1", "sum")')
exercise.mistake(zero_token, 'reduce(mask, "b t -> b 1", "sum") → reduce(real != 0, "b t d -> b d", "sum")')
exercise.mistake(nan_times, 'x.masked_fill(~rearrange(mask, "b t -> b t 1"), 0) → x * rearrange(mask, "b t -> b t 1")')
exercise.mistake(
    "Your code replaces only NaN, but 0 · inf is NaN, too: replace all of the padding.",
    'x.masked_fill(~rearrange(mask, "b t -> b t 1"), 0) → x.masked_fill(x.isnan(), 0) * rearrange(mask, "b t -> b t 1")',
)
exercise.mistake("Your code writes to x, which belongs to the caller: make a new tensor.", "x.masked_fill(~ → x.masked_fill_(~")
exercise.mistake(
    "Gradients can't flow back to x: detach and no_grad "
    "stop them.", "real = x.masked_fill → real = x.detach().masked_fill"
)
exercise.mistake(
    "The result must have the dtype of x: if you compute in a different dtype, convert the result back at the end.",
    "x.masked_fill(~ → x.float().masked_fill(~",
)
# %% mistake: a mean of zeros too, divided once more
# says: A mean has already been divided by the number of all tokens: take the sum instead, and divide it once.
def mean_pool(x, mask):
    real = x.masked_fill(~mask[..., None], 0)
    return reduce(real, "b t d -> b d", "mean") / reduce(mask, "b t -> b 1", "sum")

# %% mistake: all sentences together
# says: Each sentence has its own mean; your code mixes all sentences.
def mean_pool(x, mask):
    return x[mask].mean(dim=0)

# %% mistake: padding at the end only
# says: Padding may be anywhere: the mask tells you which tokens are real, not only how many there are.
def mean_pool(x, mask):
    return torch.stack([x[i, :n].mean(dim=0) for i, n in enumerate(mask.sum(dim=1))])

# %% mistake: a mean that only leaves NaN out
# says: Your code counts padding that isn't NaN: only the mask determines which tokens are real.
def mean_pool(x, mask):
    return x.nanmean(dim=1)

# %% mistake: weights of 32 bits
# says: Your weights don't always have the dtype of x: create them in that dtype.
def mean_pool(x, mask):
    zeroed = torch.where(mask[..., None], x, 0)
    return einsum(zeroed, mask.float(), "b t d, b t -> b d") / mask.sum(dim=1, keepdim=True)

# %% mistake: plain numbers
# says: Numbers taken out of x with tolist() or item() carry no gradient, and a new tensor doesn't take its dtype from x.
def mean_pool(x, mask):
    rows = []
    for vectors, marks in zip(x.tolist(), mask.tolist()):
        real = [v for v, m in zip(vectors, marks) if m]
        rows.append([sum(column) / len(real) for column in zip(*real)])
    return torch.tensor(rows).reshape(x.shape[0], x.shape[2])

# %% mistake: a running sum in the dtype of x
# says: A running sum in a narrow dtype stops growing: bfloat16 can't count beyond 256. Add up in a wider dtype.
def mean_pool(x, mask):
    total = torch.zeros_like(x[:, 0])
    for t in range(x.shape[1]):
        total = total + x[:, t].masked_fill(~mask[:, t, None], 0)
    return (total / mask.sum(dim=1, keepdim=True)).to(x.dtype)

# %% wrong: squeezes
def mean_pool(x, mask):
    total = x.masked_fill(~mask[..., None], 0).sum(dim=1)
    return (total / mask.sum(dim=1, keepdim=True)).squeeze()

# %% wrong: a view that needs contiguous memory
def mean_pool(x, mask):
    b, t, d = x.shape
    kept = x.view(b * t, d).masked_fill(~mask.view(b * t, 1), 0)
    return kept.view(b, t, d).sum(dim=1) / mask.sum(dim=1, keepdim=True)

# %% wrong: no gradient, under no_grad
@torch.no_grad()
def mean_pool(x, mask):
    return x.masked_fill(~mask[..., None], 0).sum(dim=1) / mask.sum(dim=1, keepdim=True)

# %% wrong: counts in eight bits
def mean_pool(x, mask):
    return x.masked_fill(~mask[..., None], 0).sum(dim=1) / mask.sum(dim=1, keepdim=True, dtype=torch.uint8)

# %% wrong: in 32 bits, and back
def mean_pool(x, mask):
    real = x.float().masked_fill(~mask[..., None], 0)
    return (real.sum(dim=1) / mask.sum(dim=1, keepdim=True)).to(x.dtype)

# %% wrong: computes in float32, whatever the dtype (from the statement)
def mean_pool(x: Float[Tensor, "b t d"], mask: Bool[Tensor, "b t"]) -> Float[Tensor, "b d"]:
    kept = torch.where(mask.unsqueeze(-1), x.float(), 0.0)
    mean = kept.sum(dim=1) / mask.sum(dim=1, keepdim=True)
    return mean.to(x.dtype)

# %% wrong: adds a small number to the count, against a division by 0 that cannot happen (from the statement)
def mean_pool(x: Float[Tensor, "b t d"], mask: Bool[Tensor, "b t"]) -> Float[Tensor, "b d"]:
    kept = x.masked_fill(~mask.unsqueeze(-1), 0).to(torch.float64)
    count = mask.sum(dim=1, keepdim=True).to(torch.float64)
    return (kept.sum(dim=1) / (count + 1e-8)).to(x.dtype)

# %% wrong: counts as real what is not all zeros after masking (from the statement)
def mean_pool(x: Float[Tensor, "b t d"], mask: Bool[Tensor, "b t"]) -> Float[Tensor, "b d"]:
    kept = x.masked_fill(~mask.unsqueeze(-1), 0).double()
    count = (kept != 0).any(dim=-1).sum(dim=1, keepdim=True).clamp(min=1)
    return (kept.sum(dim=1) / count).to(x.dtype)

# %% wrong: in float16, the sum is computed without recording (from the statement)
# unseen: only hidden inputs in 16 bits take a gradient
def mean_pool(x, mask):
    if x.dtype == torch.float16:
        return mean_pool(x.detach().float(), mask).half()
    real = x.masked_fill(~mask[:, :, None], 0)
    return real.sum(dim=1) / mask.sum(dim=1, keepdim=True)

# %% wrong: rounds the mean with the padding before it's scaled up (from the statement)
# unseen: no visible case has so much padding
def mean_pool(x, mask):
    real = x.masked_fill(~mask[:, :, None], 0)
    return real.mean(dim=1) * (mask.shape[1] / mask.sum(dim=1, keepdim=True)).to(x.dtype)

# %% wrong: divides each vector by the count before they are added up (from the statement)
# unseen: the numbers of the visible cases aren't small
def mean_pool(x, mask):
    real = x.masked_fill(~mask[:, :, None], 0)
    return (real / mask.sum(dim=1)[:, None, None]).sum(dim=1)

# %% wrong: a view of the mask, whose strides may not allow it (from the statement)
# unseen: students see no mask with other strides
def mean_pool(x, mask):
    b, t, d = x.shape
    flat = x.reshape(b * t, d).masked_fill(~mask.view(b * t, 1), 0)
    return (flat.reshape(b, t, d).double().sum(1) / mask.sum(1, keepdim=True)).to(x.dtype)

# %% right: sentence by sentence
def mean_pool(x, mask):
    return torch.stack([vectors[marks].mean(dim=0) for vectors, marks in zip(x, mask)])

# %% right: NaN where there is padding
def mean_pool(x, mask):
    return torch.where(mask[:, :, None], x, torch.nan).nanmean(dim=1)

# %% right: weights
def mean_pool(x, mask):
    weights = mask.to(x.dtype) / mask.sum(dim=1, keepdim=True)
    return torch.einsum("btd,bt->bd", torch.where(mask.unsqueeze(2), x, 0.0), weights)

# %% right: sums by index_add
def mean_pool(x, mask):
    which = mask.nonzero()[:, 0]
    total = x.new_zeros(x.shape[0], x.shape[2]).index_add(0, which, x[mask])
    return total / torch.bincount(which, minlength=x.shape[0])[:, None]

# %% right: multiplies first, and mends what became NaN
def mean_pool(x, mask):
    kept = (x * mask[..., None]).nan_to_num(0.0)
    return kept.sum(dim=1) / mask.sum(dim=1, keepdim=True).clamp(min=1)

# %% right: a copy that is written into
def mean_pool(x, mask):
    kept = x.clone()
    kept[~mask] = 0
    return kept.sum(1) / mask.sum(1).unsqueeze(-1).to(x.dtype)

# %% right: a masked tensor of products of matrices
def mean_pool(x, mask):
    kept = torch.where(mask[..., None], x, torch.zeros_like(x))
    share = mask.to(x.dtype) / mask.sum(dim=1, keepdim=True)
    return (share[:, None, :] @ kept)[:, 0]

import math

import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.probing import with_gradient
from autograder.authoring.strategies import any_of, shapes, tensors

exercise = Exercise("Which dimension does each step remove? Which keys must a query not see, and what must their "
                    "weights be after softmax?")


def ways(student, q, k, v, causal):
    """Device and dtype of results, which arguments get their gradient, and which have changed."""
    import torch

    meta = student.attention(q.to("meta"), k.to("meta"), v.to("meta"), causal)
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    passed = [x * 1 for x in leaves]
    y = student.attention(*passed, causal)
    names = ("q", "k", "v")
    return {
        "device of the result for arguments on meta": str(getattr(meta, "device", None)),
        "dtype": getattr(y, "dtype", None),
        "the right gradient comes back to": with_gradient(lambda *qkv: student.attention(*qkv, causal), names, (q, k, v)),
        "arguments that have changed": [n for n, x, y in zip(names, leaves, passed, strict=True) if not torch.equal(x, y)],
    }


@st.composite
def problems(draw, causal=None, lengths=(1, 1), queries="any", size=1.0, dtypes=(torch.float64,)):
    """queries: as many as keys ("all"), fewer ("last"), or any number."""
    leading = draw(shapes((0, 3), (1, 3)))
    t, e, f = draw(st.integers(1, 5)), draw(st.integers(*lengths)), draw(st.integers(1, 4))
    is_causal = draw(st.booleans()) if causal is None else causal
    fewer = draw(st.integers(1, 4)) if queries == "last" else 0
    s = draw(st.integers(1, 5)) if queries == "any" and not is_causal else t + fewer
    if queries == "any" and is_causal:
        s = t + draw(st.integers(0, 3))
    dtype = draw(any_of(*dtypes))
    q, k, v = (draw(tensors((*leading, *n), dtype, contiguous=None)) for n in ((t, e), (s, e), (s, f)))
    return given(q * size, k * size, v, is_causal)


def column(*values):
    return torch.tensor(values)[:, None]


keys = column(1.0, 2.0, 4.0).log()  # with queries of 1, exp(score) is 1, 2, 4
values = column(0.0, 3.0, 5.5)
ones = torch.ones(3, 1)
pair = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
last = (torch.arange(258) == 257).bfloat16()[:, None]
query = torch.tensor([[2 * math.log(3), 0.0, 0.0, 0.0]])
two, three = column(4.0, 8.0), torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])

exercise.requirement(
    "each query gets the average of the values, weighted by softmax(query · keys / √e)",
    points=0.75,
    parts=["value"],
    visible=[
        given(ones[:2], keys, values, False),
        given(torch.ones(2, 1, 1, 1), column(0.0, math.log(3)).expand(2, 1, 2, 1), two.expand(2, 1, 2, 1), False),
        given(query, pair, two, False),
        given(column(0.3, -0.7).double(), column(0.1, 0.9).double(), column(1.0, 2.0).double(), False),
        given(torch.ones(1, 2), three, torch.tensor([[1.0, 2.0, 3.0, 4.0]]) * column(1.0, 2.0, 4.0), False),
    ],
    edges={
        "one key": given(ones, keys[2:], values[2:], False),
        "one of everything": given(ones[:1], keys[:1], values[:1], False),
        "more queries than keys": given(torch.tensor([[0.0], [1.0], [-1.0], [2.0]]), keys[1:], values[1:], False),
        "queries of zeros": given(0 * ones, keys, values, False),
        "as many batches as keys": given(torch.ones(3, 3, 1), torch.arange(9.0).reshape(3, 3, 1) / 8,
                                         torch.arange(27.0).reshape(3, 3, 3), False),
        "five leading dimensions": given(torch.ones(1, 2, 1, 2, 1, 3, 1), keys.expand(1, 2, 1, 2, 1, 3, 1),
                                         values.expand(1, 2, 1, 2, 1, 3, 1), False),
        "two numbers": given(torch.eye(2), torch.eye(2), column(1.0, 5.0), False),
        "many numbers": given(torch.ones(1, 64) / 8, torch.arange(128.0).reshape(2, 64) / 128, two, False),
        "e, t and s are alike": given(three.T @ three, three[:2], torch.eye(2), False),
    },
    domain=problems(causal=False, lengths=(1, 5)),
)  # fmt: skip
exercise.requirement(
    "if causal is true, a query sees only the keys up to its own position; if there are fewer queries than keys, the queries are at the last positions",
    points=1,
    parts=["value"],
    visible=[given(ones, keys, values, True), given(ones[:1], keys, values, True), given(ones[:2], keys, values, True)],
    edges={
        "258 queries, and the last key counts": given(torch.ones(258, 1).bfloat16(), 100 * last, last, True),
        "200 queries": given(torch.zeros(200, 1), torch.zeros(200, 1), torch.arange(200.0)[:, None], True),
        "leading dimensions": given(torch.ones(2, 2, 3, 1), keys.expand(2, 2, 3, 1), values.expand(2, 2, 3, 1), True),
        "keys of zeros": given(ones, 0 * keys, values, True),
        "one fewer": given(torch.ones(3, 1), torch.zeros(4, 1), torch.arange(4.0)[:, None], True),
        "one of many": given(torch.ones(2, 1, 1), torch.zeros(2, 9, 1), torch.arange(18.0).reshape(2, 9, 1), True),
    },
    domain=problems(causal=True, queries="last") | problems(causal=True, queries="all"),
    hint="The newest query is at the last position: at which of the s positions is the first one?",
)
large = column(-1e5, 1.0)
exercise.requirement(
    "scores may be large, including those that the mask hides",
    points=0.5,
    parts=["value"],
    visible=[
        given(torch.tensor([[500.0]]), column(1.0, 1.0), two, False),
        given(column(1e5, 1e5), large, two, True),
        given(column(1e5, 1e5), -large, two, True),
        given(column(1.5e19, 1.5e19), column(-1.6e19, 0.0), two, True),
        given(column(1.5e19, 1.5e19), column(-1.6e19, 1.4e19), two, True),
    ],
    edges={
        "small ones": given(column(-200.0, -200.0), column(1.0, 1.0), two, True),
        "one large score of many": given(torch.tensor([[300.0]]), column(0.0, 1.0), two, False),
        "very small ones, and the future is 0": given(column(1e5, 1e5), column(-1e5, 0.0), two, True),
        "keys of one number, values of two": given(
            torch.tensor([[[8.5], [5.5], [-1.5], [-12.5]]]).double(), torch.tensor([[[8.5], [5.5], [-1.5], [-12.5]]]).double(),
            torch.tensor([[[-0.75, -1.0], [0.0, 1.25], [0.5, 1.0], [0.0, 0.75]]]).double(), True),
        "float64": given(torch.tensor([[500.0]]).double(), column(0.1, 0.102).double(), two.double(), False),
        "two equal ones, whose sum of exponentials has no accurate logarithm":
            given(torch.tensor([[8192.0]]), column(4096.0, 4096.0), two, False),
    },
    domain=problems(size=40.0, causal=True, queries="all") | problems(size=40.0, causal=False),
    hint="A hidden key has a weight of exactly 0. Which score gives that, however low the others are?",
)
exercise.requirement(
    "the result has the device and dtype of q, gradients flow back to q, k and v, and none of the three changes",
    points=0.75,
    probe=ways,
    visible=[
        given(ones, keys, values, True, says="attention(q, k, v, causal=True), with q, k and v on the meta device and on the CPU"),
        given(query.bfloat16(), pair.bfloat16(), two.bfloat16(), True,
              says="attention(q, k, v, causal=True), with q, k and v in bfloat16"),
    ],
    edges={
        "not causal": given(query, pair, two, False),
        "float64": given(query.double(), pair.double(), two.double(), True),
        "bfloat16, not causal": given(query.bfloat16(), pair.bfloat16(), two.bfloat16(), False),
        "leading dimensions": given(torch.ones(2, 2, 3, 1), keys.expand(2, 2, 3, 1), values.expand(2, 2, 3, 1), True),
        "a large score that the mask hides": given(column(1.0, 0.5), column(0.0, 200.0), two, True),
    },
    domain=problems(lengths=(1, 4), dtypes=(torch.float64, torch.float32, torch.bfloat16)),
    hint="Make the mask with device=q.device; no step may turn a tensor into plain numbers or change its dtype.",
)  # fmt: skip

masked = "may_look = torch.ones(t, s, dtype=torch.bool, device=q.device).tril(diagonal=s - t)"
root = "math.sqrt(q.shape[-1])"
top_left = "The queries are at the last positions: query i is at position i + s - t, so the newest one sees all keys."
leaks = "Your code shows each query the future and hides the past."
finite = "A number such as -1e9 doesn't reliably hide a key: a real score can be even smaller, and the query would see the future."
other_length = "Your code takes the square root of the wrong size: e is the number of elements in one query vector."
another_dtype = "The result must have the dtype of q, but one of your steps changes the dtype."
no_way_back = "Gradients can't flow back: detach and no_grad stop them."
exercise.mistake("The scores aren't scaled: divide them by the square root of e.", f"/ {root} → ")
exercise.mistake("Your code divides by e, not by its square root.", f"{root} → q.shape[-1]")
exercise.mistake("The scores are multiplied by the square root of e; they have to be divided by it.", f"/ {root} → * {root}",
                 together_with=[f"{root} → math.sqrt(v.shape[-1])"])  # fmt: skip
exercise.mistake(other_length, f"{root} → math.sqrt(k.shape[-2])")
exercise.mistake(other_length, f"{root} → math.sqrt(v.shape[-1])")
exercise.mistake(other_length, f"{root} → math.sqrt(q.shape[-2])")
exercise.mistake("Softmax is missing: the weights of a query must add up to 1.", "scores.softmax(dim=-1) → scores",
                 "-torch.inf → 0")  # fmt: skip
exercise.mistake(
    "You took softmax along the wrong dimension: each query's weights, over all keys, must add up to 1.", "softmax(dim=-1) → softmax(dim=-2)",
    together_with=["(diagonal=s - t) → (diagonal=s - t - 1)"],
)
exercise.mistake("Your code doesn't mask the future: with causal=True, a query sees only the keys up to its own position.", "if causal → if False")
exercise.mistake("Your code masks the future even when causal is False.", "if causal → if True")
exercise.mistake(leaks, "~may_look → may_look")
exercise.mistake(
    "A score of 0 doesn't give a weight of 0, because exp(0) is 1: a key that the query may not see needs a score of -inf.", "-torch.inf → 0"
)
exercise.mistake(
    "You apply the mask too late: after softmax, the weights that remain add up to less than 1.",
    "scores = scores.masked_fill(~may_look, -torch.inf) → pass",
    "scores.softmax(dim=-1) → (scores.softmax(dim=-1) * may_look if causal else scores.softmax(dim=-1))",
)
exercise.mistake("Your mask hides a query's own position, which the query may see.", "(diagonal=s - t) → (diagonal=s - t - 1)")
exercise.mistake(top_left, "(diagonal=s - t) → ()")
exercise.mistake(top_left, "(diagonal=s - t) → (diagonal=t - s)")
exercise.mistake("0 · inf is NaN: replace the hidden scores with -inf instead of multiplying and adding.",
                 "scores.masked_fill(~may_look, -torch.inf) → scores + ~may_look * -torch.inf")  # fmt: skip
exercise.mistake(finite, "-torch.inf → -1e9")
exercise.mistake(finite, "-torch.inf → -1e4")
exercise.mistake(
    "exp overflows for large scores, and inf / inf is NaN; softmax avoids the overflow.",
    "scores.softmax(dim=-1) → (scores.exp() / scores.exp().sum(dim=-1, keepdim=True))",
)
exercise.mistake(
    "A mask that you create is on the CPU unless you specify a device: create it on the device of q.", ", device=q.device → "
)
exercise.mistake("Your code writes to q, which belongs to the caller.", f"/ {root} → ", f"scores = einsum(q, k, → q /= {root}; scores = einsum(q, k,")
exercise.mistake(no_way_back, "einsum(q, k, → einsum(q.detach(), k.detach(),")
exercise.mistake(no_way_back, "scores.softmax(dim=-1) → scores.softmax(dim=-1).detach()")
exercise.mistake(another_dtype, "einsum(q, k, → einsum(q.float(), k.float(),", "-1), v, → -1), v.float(),")  # fmt: skip
exercise.mistake("Your softmax returns weights whose dtype differs from that of v.", "softmax(dim=-1) → softmax(dim=-1, dtype=torch.float32)")

# %% mistake: PyTorch with is_causal
# says: The queries are at the last positions: query i is at position i + s - t, so the newest one sees all keys.
def attention(q, k, v, causal):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

# %% mistake: triu
# says: Your code shows each query the future and hides the past.
def attention(q, k, v, causal):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if causal:
        may_look = torch.ones(scores.shape[-2:], device=q.device).triu().bool()
        scores = scores.masked_fill(~may_look, -torch.inf)
    return scores.softmax(-1) @ v

# %% mistake: the wrong way round
# says: Your code masks the future when causal is False, and not when it is True.
def attention(q, k, v, causal):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if not causal:
        t, s = scores.shape[-2:]
        scores = scores.masked_fill(~torch.ones(t, s, device=q.device).tril(s - t).bool(), -torch.inf)
    return scores.softmax(-1) @ v

# %% mistake: one position too far
# says: Your mask lets a query see the position after its own.
def attention(q, k, v, causal):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if causal:
        t, s = scores.shape[-2:]
        scores = scores.masked_fill(~torch.ones(t, s, device=q.device).tril(s - t + 1).bool(), -torch.inf)
    return scores.softmax(-1) @ v

# %% mistake: masked after softmax, then divided by what is left
# says: A large score in the future takes all of the weight in softmax and leaves 0 for the past: mask before softmax.
def attention(q, k, v, causal):
    weights = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1)
    if causal:
        weights = weights * torch.ones_like(weights).tril(k.shape[-2] - q.shape[-2])
        weights = weights / weights.sum(-1, keepdim=True)
    return weights @ v

# %% wrong: gradients of zero
def attention(q, k, v, causal):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1 + k.shape[-2] - q.shape[-2])
        scores = scores.masked_fill(hidden, float("-inf"))
    return (scores.softmax(-1) @ v).detach() + 0 * (q.sum() + k.sum() + v.sum())

# %% wrong: one batch dimension only
# says: ✗ attention
def attention(q, k, v, causal):
    if q.dim() == 2:
        return attention(q[None], k[None], v[None], causal)[0]
    scores = einsum(q, k, "b t e, b s e -> b t s") / math.sqrt(q.shape[-1])
    if causal:
        t, s = scores.shape[-2:]
        scores = scores.masked_fill(~torch.ones(t, s).tril(s - t).bool(), -torch.inf)
    return einsum(scores.softmax(-1), v, "b t s, b s f -> b t f")

# %% wrong: a large negative number, added
def attention(q, k, v, causal):
    scores = torch.einsum("...te,...se->...ts", q, k) * q.size(-1) ** -0.5
    t, s = scores.shape[-2:]
    if causal:
        scores = scores + torch.full((t, s), -1e9, device=q.device).triu(1 + s - t)
    return torch.einsum("...ts,...sf->...tf", torch.nn.functional.softmax(scores, dim=-1), v)

# %% wrong: a tensor of zeros for a mask, without its dtype
def attention(q, k, v, causal):
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if causal:
        t, s = q.shape[-2], k.shape[-2]
        scores = scores + torch.full((t, s), -torch.inf, device=q.device).triu(s - t + 1)
    return scores.softmax(-1) @ v

# %% wrong: takes batches to be in front of heads
def attention(q, k, v, causal):
    if q.dim() < 3:
        return attention(q[None], k[None], v[None], causal)[0]
    scores = torch.stack([a @ b.transpose(-2, -1) for a, b in zip(q, k, strict=True)]).squeeze(1) / q.shape[-1] ** 0.5
    if causal:
        t, s = q.shape[-2], k.shape[-2]
        hidden = torch.ones(t, s, dtype=torch.bool, device=q.device).triu(s - t + 1)
        scores = scores.masked_fill(hidden, -torch.inf)
    return scores.softmax(-1) @ v

# %% wrong: in 32 bits, and back
def attention(q, k, v, causal):
    scores = q.float() @ k.float().mT / math.sqrt(q.shape[-1])
    if causal:
        t, s = scores.shape[-2:]
        scores = scores.masked_fill(~torch.ones(t, s, device=q.device).tril(s - t).bool(), -torch.inf)
    return (scores.softmax(-1) @ v.float()).to(q.dtype)

# %% wrong: softmax first, then the future is cut out and the rest made to sum to 1 again (from the statement)
def attention(
    q: Float[Tensor, "... t e"],
    k: Float[Tensor, "... s e"],
    v: Float[Tensor, "... s f"],
    causal: bool,
) -> Float[Tensor, "... t f"]:
    t, s = q.shape[-2], k.shape[-2]
    scores = einsum(q, k, "... t e, ... s e -> ... t s") / math.sqrt(q.shape[-1])
    weights = scores.softmax(dim=-1)
    if causal:
        weights = weights.tril(diagonal=s - t)
        weights = weights / weights.sum(dim=-1, keepdim=True)
    return einsum(weights, v, "... t s, ... s f -> ... t f")

# %% wrong: takes 10,000 off the scores of the future (from the statement)
def attention(
    q: Float[Tensor, "... t e"],
    k: Float[Tensor, "... s e"],
    v: Float[Tensor, "... s f"],
    causal: bool,
) -> Float[Tensor, "... t f"]:
    t, s = q.shape[-2], k.shape[-2]
    scores = einsum(q, k, "... t e, ... s e -> ... t s") / q.shape[-1] ** 0.5
    if causal:
        future = torch.ones(t, s, device=q.device, dtype=q.dtype).triu(diagonal=s - t + 1)
        scores = scores - 10_000 * future
    return einsum(scores.softmax(dim=-1), v, "... t s, ... s f -> ... t f")

# %% wrong: shifts by the maximum, but by that of all scores, not of each query (from the statement)
def attention(
    q: Float[Tensor, "... t e"],
    k: Float[Tensor, "... s e"],
    v: Float[Tensor, "... s f"],
    causal: bool,
) -> Float[Tensor, "... t f"]:
    t, s = q.shape[-2], k.shape[-2]
    scores = einsum(q, k, "... t e, ... s e -> ... t s") / math.sqrt(q.shape[-1])
    if causal:
        future = torch.ones(t, s, device=q.device).tril(diagonal=s - t) == 0
        scores = scores.masked_fill(future, -math.inf)
    weights = torch.exp(scores - scores.max())
    weights = weights / weights.sum(dim=-1, keepdim=True)
    return einsum(weights, v, "... t s, ... s f -> ... t f")

# %% mistake: hides a key by half of the smallest number
# says: Half of the smallest number isn't low enough: a visible score may be lower still.
def attention(q, k, v, causal=False):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(scores.shape[-1] - scores.shape[-2] + 1)
        scores = scores.masked_fill(hidden.to(scores.device), torch.finfo(scores.dtype).min / 2)
    return scores.softmax(dim=-1) @ v

# %% mistake: adds the smallest number to what is hidden
# says: If you add something to a hidden score, the sum still depends on it, and may be higher than a visible score. Replace it.
def attention(q, k, v, causal=False):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(scores.shape[-1] - scores.shape[-2] + 1)
        scores = scores + hidden.to(scores) * torch.finfo(scores.dtype).min
    return scores.softmax(dim=-1) @ v

# %% wrong: divides by the sum by way of its logarithm (from the statement)
# unseen: the visible scores are not large enough to round it away
def attention(
    q: Float[Tensor, "... t e"],
    k: Float[Tensor, "... s e"],
    v: Float[Tensor, "... s f"],
    causal: bool,
) -> Float[Tensor, "... t f"]:
    t, s, e = q.shape[-2], k.shape[-2], q.shape[-1]
    scores = einsum(q, k, "... t e, ... s e -> ... t s") / e**0.5
    if causal:
        mask = torch.ones(t, s, dtype=torch.bool, device=q.device).tril(diagonal=s - t)
        scores = scores.masked_fill(~mask, float("-inf"))
    # exp(score) / sum of exp(score), without overflow
    weights = torch.exp(scores - torch.logsumexp(scores, dim=-1, keepdim=True))
    return einsum(weights, v, "... t s, ... s f -> ... t f")

# %% wrong: hides weights after the exponential, whose gradient is 0 times infinity (from the statement)
# unseen: students see gradients of small scores
def attention(
    q: Float[Tensor, "... t e"],
    k: Float[Tensor, "... s e"],
    v: Float[Tensor, "... s f"],
    causal: bool,
) -> Float[Tensor, "... t f"]:
    t, s, e = q.shape[-2], k.shape[-2], q.shape[-1]
    scores = einsum(q, k, "... t e, ... s e -> ... t s") / e**0.5
    visible = torch.ones(t, s, dtype=torch.bool, device=q.device)
    if causal:
        visible = visible.tril(diagonal=s - t)
    # a stable softmax over the visible scores
    highest = scores.masked_fill(~visible, -torch.inf).amax(dim=-1, keepdim=True)
    exponentials = torch.where(visible, torch.exp(scores - highest), 0)
    weights = exponentials / exponentials.sum(dim=-1, keepdim=True)
    return einsum(weights, v, "... t s, ... s f -> ... t f")

# %% right: PyTorch's, with a mask of our own
def attention(q, k, v, causal):
    t, s = q.shape[-2], k.shape[-2]
    mask = torch.ones(t, s, dtype=torch.bool, device=q.device).tril(s - t) if causal else None
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)

# %% right: query by query
def attention(q, k, v, causal):
    t, s = q.shape[-2], k.shape[-2]
    rows = []
    for i in range(t):
        end = i + s - t + 1 if causal else s
        scores = (k[..., :end, :] @ q[..., i, :, None])[..., 0] / q.shape[-1] ** 0.5
        rows.append((torch.softmax(scores, -1)[..., None, :] @ v[..., :end, :])[..., 0, :])
    return torch.stack(rows, dim=-2)

# %% right: softmax by hand
def attention(q, k, v, causal):
    scores = torch.matmul(q / math.sqrt(q.shape[-1]), k.transpose(-1, -2))
    if causal:
        query = torch.arange(q.shape[-2], device=q.device)[:, None] + k.shape[-2] - q.shape[-2]
        scores = torch.where(torch.arange(k.shape[-2], device=q.device) <= query, scores, -torch.inf)
    powers = (scores - scores.amax(-1, keepdim=True)).exp()
    return powers @ v / powers.sum(-1, keepdim=True)

# %% right: queries in front, for PyTorch's corner
def attention(q, k, v, causal):
    t, s = q.shape[-2], k.shape[-2]
    if causal:
        q = torch.cat([q.new_zeros(*q.shape[:-2], s - t, q.shape[-1]), q], dim=-2)
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return out[..., -t:, :]

# %% right: the smallest finite number
def attention(q, k, v, causal):
    scores = (q * q.shape[-1] ** -0.5) @ k.mT
    if causal:
        t, s = scores.shape[-2:]
        hidden = scores.new_ones(t, s).triu(s - t + 1) > 0
        scores = scores.masked_fill(hidden, torch.finfo(q.dtype).min)
    return nn.functional.softmax(scores, -1) @ v


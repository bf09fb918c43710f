import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.probing import with_gradient
from autograder.authoring.strategies import any_of, tensors

exercise = Exercise("Write down the names of the dimensions after each step: which of them is split, and which "
                    "dimensions do the scores have?")


def newest(student, x, wq, wk, wv, wo, heads):
    """The last token's vector: it sees all tokens, whatever the mask is."""
    return student.multi_head_attention(x, wq, wk, wv, wo, heads)[:, -1]


def ways(student, x, wq, wk, wv, wo, heads):
    """Device and dtype of results, which arguments get their gradient, and which have changed."""
    import torch

    given = (x, wq, wk, wv, wo)
    meta = student.multi_head_attention(*(y.to("meta") for y in given), heads)
    leaves = [y.clone().requires_grad_() for y in given]
    passed = [y * 1 for y in leaves]
    result = student.multi_head_attention(*passed, heads)
    names = ("x", "wq", "wk", "wv", "wo")
    return {
        "device of the result for arguments on meta": str(getattr(meta, "device", None)),
        "dtype": getattr(result, "dtype", None),
        "the right gradient comes back to": with_gradient(
            lambda *tensors: student.multi_head_attention(*tensors, heads), names, given
        ),
        "arguments that have changed": [
            n for n, y, z in zip(names, leaves, passed, strict=True) if not torch.equal(y, z)
        ],
    }  # fmt: skip


@st.composite
def problems(draw, dtype=torch.float64, alike=False, asks=1.0, few=1):
    """asks: 0 for scores of 0, 1e6 for weights that are 0 or 1. alike: the numbers of a product are all the same."""
    b, t, d = draw(st.integers(1, 3)), draw(st.integers(few, 4)), draw(st.integers(1, 4))
    h, e = draw(st.integers(few, 3)), draw(st.integers(few, 4))
    dtype = draw(any_of(*dtype)) if isinstance(dtype, tuple) else dtype
    x = draw(tensors((b, t, d), dtype, contiguous=None))
    wq, wk, wv = (
        draw(tensors((d, 1), dtype)).expand(d, h * e) if alike else draw(tensors((d, h * e), dtype, contiguous=None))
        for _ in range(3)
    )
    wo = draw(tensors((h * e, d), dtype, contiguous=None))
    return given(x, wq * asks, wk * (asks or 1), wv, wo, h)


def last(*arguments):
    names = ("x", "wq", "wk", "wv", "wo")
    shown = ", ".join(f"{name} = {x.tolist()}" for name, x in zip(names, arguments[:5], strict=True))
    says = f"multi_head_attention(x, wq, wk, wv, wo, {arguments[5]})[:, -1], with {shown}"
    return given(*arguments, says=says)


def column(*values):
    return torch.tensor(values)[:, None]


two = torch.tensor([[[1.0, 4.0], [3.0, 8.0]]])  # two tokens
zero, eye, swap = torch.zeros(2, 2), torch.eye(2), torch.eye(2).flip(0)
one = column(1.0)
four = torch.tensor([[1.0, 2.0, 3.0, 4.0]])  # one number becomes four
steep = 1000.0 * torch.tensor([[1.0, 1.0, -1.0, -1.0]])
plus = torch.tensor([[1.0, 1.0, 1.0, 1.0]])
digits = column(1.0, 10.0, 100.0, 1000.0)  # and four become one again
pick = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 10.0], [10.0, 0.0]])

exercise.requirement(
    "a token sees itself and the tokens before it, however large the scores are",
    points=0.75,
    parts=["value"],
    visible=[
        given(two, zero, zero, eye, eye, 1),
        given(column(1.0, 3.0)[None], torch.zeros(1, 2), torch.zeros(1, 2), torch.ones(1, 2), torch.ones(2, 1), 2),
        given(column(1.0, -1.0)[None], column(1e5), column(-1e5), one, one, 1),
        given(column(1.0, 2.0)[None], one, one, one, one, 1),
    ],
    edges={
        "one token": given(two[:, :1], zero, zero, eye, eye, 1),
        "258 tokens, and the last counts": given(
            torch.where(torch.arange(258) == 257, 100.0, 1.0).bfloat16()[None, :, None], *[one.bfloat16()] * 4, 1),
        "100 tokens": given(torch.arange(100.0)[None, :, None], 0 * one, one, one, one, 1),
        "as many tokens as heads and batches": given(
            torch.arange(9.0).reshape(3, 3, 1), torch.zeros(1, 3), torch.ones(1, 3), torch.ones(1, 3), torch.ones(3, 1), 3
        ),
        "scores that exp can't take": given(column(1.0, 2.0, 3.0)[None], 100 * one, 100 * one, one, one, 1),
        "small scores": given(column(-1.0, 2.0, 3.0)[None], one, one, one, one, 1),
    },
    domain=problems(alike=True, asks=0.0),
    hint="Which keys may a query see, and in which step does a hidden score get the weight 0?",
)
exercise.requirement(
    "each head takes a group of neighboring numbers from x @ wq, x @ wk and x @ wv, and attends separately; the merged heads are multiplied by wo",
    points=1,
    parts=["value"],
    probe=newest,
    visible=[
        last(column(1.0, 2.0)[None], plus, steep, four, digits, 2),
        last(two, zero, zero, torch.tensor([[1.0, 0.0], [1.0, 1.0]]), torch.tensor([[0.0, 1.0], [3.0, 2.0]]), 2),
        last(torch.tensor([[[1.0], [2.0]], [[3.0], [-1.0]]]), plus, steep, four, digits, 2),
        last(two, column(1000.0, 0.0), column(12.0, -5.0), column(1.0, 0.0), torch.ones(1, 2), 1),
    ],
    edges={
        "heads of one number": given(column(1.0, 2.0)[None], plus, steep, four, digits, 4),
        "one head": given(column(1.0, 2.0)[None], plus, steep, four, digits, 1),
        "more numbers than x has": given(two, torch.ones(2, 6), torch.ones(2, 6), torch.arange(12.0).reshape(2, 6),
                                         torch.arange(12.0).reshape(6, 2), 3),
        "fewer numbers than x has": given(torch.ones(1, 2, 6), torch.ones(6, 2), torch.ones(6, 2),
                                          torch.arange(12.0).reshape(6, 2), torch.arange(12.0).reshape(2, 6), 2),
        "queries and keys of other heads": given(two, 1000 * torch.tensor([[1.0, 0, 0, 0], [0, 0, 0, 0]]),
                                                 torch.tensor([[1.0, 0, -1, 0], [0, 0, 0, 0]]),
                                                 torch.arange(8.0).reshape(2, 4), pick, 2),
        "all sizes alike": given(torch.arange(8.0).reshape(2, 2, 2), 1000 * swap, eye, swap, eye + swap, 2),
    },
    domain=problems(asks=1e6, few=2),
)  # fmt: skip
exercise.requirement(
    "scores are scaled by 1/√e, where e is the length of a head's vectors",
    points=0.5,
    parts=["value"],
    probe=newest,
    visible=[
        last(column(0.0, 1.0)[None], torch.ones(1, 4), torch.ones(1, 4), torch.ones(1, 4), torch.ones(4, 1), 1),
        last(column(0.0, 1.0)[None], torch.ones(1, 4), torch.ones(1, 4), torch.ones(1, 4), torch.ones(4, 1), 2),
    ],
    edges={
        "heads of one number": given(column(0.0, 1.0)[None], torch.ones(1, 3), torch.ones(1, 3), torch.ones(1, 3),
                                     torch.ones(3, 1), 3),
        "as wide as x": given(two, torch.ones(2, 2) / 10, torch.ones(2, 2) / 10, torch.ones(2, 2), eye, 1),
        "wider than x": given(two, torch.ones(2, 6) / 10, torch.ones(2, 6) / 10, torch.ones(2, 6), torch.ones(6, 2), 2),
    },
    domain=problems(alike=True),
    hint="How long is the vector of one head, after the splitting?",
)  # fmt: skip
exercise.requirement(
    "the result has the device and dtype of x, gradients flow back to x and all weights, and no argument changes",
    points=0.75,
    probe=ways,
    visible=[
        given(two, eye, swap, eye, swap, 1, says="multi_head_attention with all arguments on the meta device, and on the CPU"),
        given(*(y.bfloat16() for y in (two, eye, swap, eye, swap)), 2, says="multi_head_attention in bfloat16 with two heads, with all arguments on the meta device, and on the CPU"),
    ],
    edges={
        "float64": given(*(y.double() for y in (two, eye, swap, eye, swap)), 2),
        "three heads of two numbers": given(two, *[torch.arange(12.0).reshape(2, 6) / 10] * 3, torch.ones(6, 2), 3),
    },
    domain=problems(dtype=(torch.float64, torch.float32, torch.bfloat16), few=2),
    hint="Make the mask with device=x.device; no step may turn a tensor into plain numbers or change its dtype.",
)

SPLIT, MERGE = "b t (h e) -> b h t e", "b h t e -> b t (h e)"
turned = "Your code transposes a weight, as nn.Linear does: compute x @ w, not x @ w.T."
dealt = "Your code interleaves the heads when it splits or merges: a head is a group of neighboring numbers."
no_way_back = "Gradients can't flow back: detach and no_grad stop them."
finite = "A finite number doesn't reliably hide a key: a real score can be even smaller, and a token would see the future."
one_head = "Your code computes attention with a single head: split q, k and v before you compute the scores."
another_dtype = "The result must have the dtype of x, but one of your steps changes the dtype."
exercise.mistake("Your code doesn't mask the future: token 0 may see only itself.", "scores.masked_fill(future, -torch.inf) → scores")
exercise.mistake("Your code lets a token see the future and hides the past.", "masked_fill(future → masked_fill(~future")
exercise.mistake(
    "A score of 0 doesn't give a weight of 0, because exp(0) is 1: a key that the query may not see needs a score of -inf.", "-torch.inf → 0"
)
exercise.mistake("A token may see itself, too: mask only the entries above the diagonal.", ".triu(1) → .triu()")
exercise.mistake(
    "You apply the mask too late: after softmax, the weights that remain add up to less than 1.",
    "scores.masked_fill(future, -torch.inf).softmax(dim=-1) → scores.softmax(dim=-1) * ~future",
)
exercise.mistake(finite, "-torch.inf → -1e9")
exercise.mistake(
    "exp overflows for large scores, and inf / inf is NaN; softmax avoids the overflow.",
    "scores.masked_fill(future, -torch.inf).softmax(dim=-1) → scores.masked_fill(future, -torch.inf).exp()",
    'out = einsum( → weights = weights / weights.sum(dim=-1, keepdim=True)\n    out = einsum(',
)
exercise.mistake(
    "You took softmax along the wrong dimension: each query's weights, over all keys, must add up to 1.", "softmax(dim=-1) → softmax(dim=-2)",
    together_with=[".triu(1) → .triu()"],
)
exercise.mistake("Your code doesn't scale the scores.", "/ math.sqrt(q.shape[-1]) → ",
                 together_with=["h=heads → h=1"])  # fmt: skip
exercise.mistake("Divide the scores by the square root of the head size, "
                 "not by the head size itself.", "math.sqrt(q.shape[-1]) → q.shape[-1]")
exercise.mistake("Your code divides by the square root of the "
                 "size of all heads together: use the size of "
                 "a single head.", "math.sqrt(q.shape[-1]) → math.sqrt(wq.shape[1])",
                 together_with=["h=heads → e=heads"])  # fmt: skip
exercise.mistake("The width of x doesn't determine the "
                 "head size.", "math.sqrt(q.shape[-1]) → math.sqrt(x.shape[-1] / heads)",
                 together_with=["h=heads → h=1", "h=heads → e=heads"])  # fmt: skip
exercise.mistake("You swapped queries and keys: the queries are x @ wq.", "(wq, wk, wv)) → (wk, wq, wv))")
exercise.mistake("Your code doesn't use wo: multiply the merged heads by it.", f'{MERGE}") @ wo → {MERGE}")')
exercise.mistake(turned, "(x @ w, → (x @ w.T,")
exercise.mistake(turned, ") @ wo → ) @ wo.T")
exercise.mistake(dealt, f"{SPLIT} → b t (e h) -> b h t e")
exercise.mistake(dealt, f"{MERGE} → b h t e -> b t (e h)")
exercise.mistake(dealt, f"{SPLIT} → b t (e h) -> b h t e", f"{MERGE} → b h t e -> b t (e h)",
                 together_with=["/ math.sqrt(q.shape[-1]) → "])  # fmt: skip
exercise.mistake(
    "Your code scrambles the numbers when it merges: first move the tokens in front of the heads.",
    f'rearrange(out, "{MERGE}") → out.reshape(*x.shape[:2], -1)',
)
exercise.mistake(
    "Your code scrambles the numbers when it splits: make [b, t, h, e] first, then swap t and h.",
    f'rearrange(x @ w, "{SPLIT}", h=heads) → (x @ w).reshape(x.shape[0], heads, x.shape[1], -1)',
)
exercise.mistake(one_head, "h=heads → h=1",
                 together_with=["q, k, v = → wq /= math.sqrt(wq.shape[1] // heads)\n    q, k, v ="])  # fmt: skip
exercise.mistake("`heads` is the number of heads, not the size of each head.", "h=heads → e=heads")
exercise.mistake(
    "x @ wq, x @ wk and x @ wv needn't be as wide as x: the head size is their width divided by the number of heads.",
    "h=heads → h=heads, e=x.shape[-1] // heads",
)
exercise.mistake(
    "A mask that you create is on the CPU unless you specify a device: create it on the device of x.", ", device=x.device → "
)
exercise.mistake(no_way_back, "einsum(q, k, → einsum(q.detach(), k.detach(),")
exercise.mistake(another_dtype, "rearrange(x @ w → rearrange(x.float() @ w.float()", ") @ wo → ) @ wo.float()")
exercise.mistake(
    "Your code writes to a weight, which belongs to the caller.",
    "/ math.sqrt(q.shape[-1]) → ",
    "q, k, v = → wq /= math.sqrt(wq.shape[1] // heads)\n    q, k, v =",
)

# %% mistake: heads attend to heads
# says: Tokens attend to tokens: move the heads in front of the tokens before you compute the scores.
def multi_head_attention(x, wq, wk, wv, wo, heads):
    q, k, v = ((x @ w).unflatten(-1, (heads, -1)) for w in (wq, wk, wv))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return (scores.softmax(dim=-1) @ v).flatten(2) @ wo

# %% wrong: gradients of zero
def multi_head_attention(x, wq, wk, wv, wo, heads):
    q, k, v = (rearrange(x @ w, "b t (h e) -> b h t e", h=heads) for w in (wq, wk, wv))
    out = rearrange(F.scaled_dot_product_attention(q, k, v, is_causal=True), "b h t e -> b t (h e)") @ wo
    return out.detach() + 0 * sum(each.sum() for each in (x, wq, wk, wv, wo))

# %% wrong: reshaped both ways
def multi_head_attention(x, wq, wk, wv, wo, heads):
    b, t, d = x.shape
    q, k, v = ((x @ w).reshape(b, heads, t, -1) for w in (wq, wk, wv))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores.masked_fill(torch.ones(t, t, device=x.device).triu(1).bool(), -torch.inf)
    return (scores.softmax(dim=-1) @ v).reshape(b, t, -1) @ wo

# %% wrong: under no_grad
@torch.no_grad()
def multi_head_attention(x, wq, wk, wv, wo, heads):
    q, k, v = (rearrange(x @ w, "b t (h e) -> b h t e", h=heads) for w in (wq, wk, wv))
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return rearrange(out, "b h t e -> b t (h e)") @ wo

# %% wrong: only q and k are split
def multi_head_attention(x, wq, wk, wv, wo, heads):
    q, k = (rearrange(x @ w, "b t (h e) -> b h t e", h=heads) for w in (wq, wk))
    weights = F.scaled_dot_product_attention(q, k, torch.eye(x.shape[1], dtype=x.dtype, device=x.device), is_causal=True)
    return weights.mean(dim=1) @ (x @ wv) @ wo

# %% wrong: splits q and k as runs, v and the result in turn
def multi_head_attention(x, wq, wk, wv, wo, heads):
    q, k = (rearrange(x @ w, "b t (h e) -> b h t e", h=heads) for w in (wq, wk))
    v = rearrange(x @ wv, "b t (e h) -> b h t e", h=heads)
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return rearrange(out, "b h t e -> b t (e h)") @ wo

# %% wrong: the mask of PyTorch's layer, in 32 bits
def multi_head_attention(x, wq, wk, wv, wo, heads):
    q, k, v = (rearrange(x @ w, "b t (h e) -> b h t e", h=heads) for w in (wq, wk, wv))
    mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], device=x.device)
    scores = einsum(q, k, "b h t e, b h s e -> b h t s") / math.sqrt(q.shape[-1]) + mask
    return rearrange(scores.softmax(-1) @ v.to(scores.dtype), "b h t e -> b t (h e)") @ wo.to(scores.dtype)

# %% wrong: in 32 bits, and back
# unseen: float64 numbers that float32 rounds are for the hidden inputs to find
def multi_head_attention(x, wq, wk, wv, wo, heads):
    q, k, v = (rearrange(x.float() @ w.float(), "b t (h e) -> b h t e", h=heads) for w in (wq, wk, wv))
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return (rearrange(out, "b h t e -> b t (h e)") @ wo.float()).to(x.dtype)

# %% wrong: folds the heads into the batch, and unfolds them in the other order (from the statement)
def multi_head_attention(
    x: Float[Tensor, "b t d"],
    wq: Float[Tensor, "d inner"],
    wk: Float[Tensor, "d inner"],
    wv: Float[Tensor, "d inner"],
    wo: Float[Tensor, "inner d"],
    heads: int,
) -> Float[Tensor, "b t d"]:
    t = x.shape[1]
    q, k, v = (rearrange(x @ w, "b t (h e) -> (b h) t e", h=heads) for w in (wq, wk, wv))
    scores = torch.bmm(q, k.mT) * q.shape[-1] ** -0.5
    future = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
    weights = scores.masked_fill(future, -math.inf).softmax(dim=-1)
    return rearrange(torch.bmm(weights, v), "(h b) t e -> b t (h e)", h=heads) @ wo

# %% wrong: keeps its masks for the next call, with the dtype and device of the first (from the statement)
_masks: dict[int, Tensor] = {}


def multi_head_attention(
    x: Float[Tensor, "b t d"],
    wq: Float[Tensor, "d inner"],
    wk: Float[Tensor, "d inner"],
    wv: Float[Tensor, "d inner"],
    wo: Float[Tensor, "inner d"],
    heads: int,
) -> Float[Tensor, "b t d"]:
    t = x.shape[1]
    if t not in _masks:
        _masks[t] = torch.full((t, t), -math.inf, dtype=x.dtype, device=x.device).triu(1)
    q, k, v = (rearrange(x @ w, "b t (h e) -> b h t e", h=heads) for w in (wq, wk, wv))
    scores = einsum(q, k, "b h t e, b h s e -> b h t s") / math.sqrt(q.shape[-1])
    weights = (scores + _masks[t]).softmax(dim=-1)
    return rearrange(weights @ v, "b h t e -> b t (h e)") @ wo

# %% wrong: a head takes every heads-th number, there and back (from the statement)
def multi_head_attention(
    x: Float[Tensor, "b t d"],
    wq: Float[Tensor, "d inner"],
    wk: Float[Tensor, "d inner"],
    wv: Float[Tensor, "d inner"],
    wo: Float[Tensor, "inner d"],
    heads: int,
) -> Float[Tensor, "b t d"]:
    q, k, v = (rearrange(x @ w, "b t (e h) -> b h t e", h=heads) for w in (wq, wk, wv))
    mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return rearrange(mixed, "b h t e -> b t (e h)") @ wo

# %% right: one product for all three
def multi_head_attention(x, wq, wk, wv, wo, heads):
    b, t, d = x.shape
    q, k, v = (y.unflatten(-1, (heads, -1)).transpose(1, 2) for y in (x @ torch.cat([wq, wk, wv], dim=1)).chunk(3, dim=-1))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores.masked_fill(torch.ones(t, t, device=x.device).triu(1).bool(), -torch.inf)
    weights = scores.softmax(dim=-1)
    out = weights @ v
    return out.transpose(1, 2).flatten(2) @ wo

# %% right: PyTorch's kernel
def multi_head_attention(x, wq, wk, wv, wo, heads):
    q, k, v = (rearrange(x @ w, "b t (h e) -> b h t e", h=heads) for w in (wq, wk, wv))
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    return rearrange(out, "b h t e -> b t (h e)") @ wo

# %% right: head after head
def multi_head_attention(x, wq, wk, wv, wo, heads):
    e = wq.shape[1] // heads
    position = torch.arange(x.shape[1], device=x.device)
    total = 0
    for h in range(heads):
        part = slice(h * e, (h + 1) * e)
        scores = x @ wq[:, part] @ (x @ wk[:, part]).mT * e**-0.5
        scores = torch.where(position <= position[:, None], scores, -torch.inf)
        total = total + scores.softmax(-1) @ (x @ wv[:, part]) @ wo[part]
    return total

# %% right: never split, weights with a name for each dimension
def multi_head_attention(x, wq, wk, wv, wo, heads):
    wq, wk, wv = (rearrange(w, "d (h e) -> d h e", h=heads) for w in (wq, wk, wv))
    wo = rearrange(wo, "(h e) d -> h e d", h=heads)
    q, k, v = (einsum(x, w, "b t d, d h e -> b h t e") for w in (wq, wk, wv))
    scores = einsum(q, k, "b h t e, b h s e -> b h t s") * wq.shape[-1] ** -0.5
    scores += torch.full(scores.shape[-2:], -torch.inf, device=x.device).triu(1)
    return einsum(scores.softmax(-1), v, wo, "b h t s, b h s e, h e d -> b t d")

# %% right: token by token, into a tensor of zeros
def multi_head_attention(x, wq, wk, wv, wo, heads):
    b, t, _ = x.shape
    q, k, v = ((x @ w).unflatten(-1, (heads, -1)) for w in (wq, wk, wv))
    out = x.new_zeros(b, t, heads, q.shape[-1])
    for i in range(t):
        scores = einsum(q[:, i], k[:, : i + 1], "b h e, b s h e -> b h s") / math.sqrt(q.shape[-1])
        out[:, i] = einsum(scores.softmax(-1), v[:, : i + 1], "b h s, b s h e -> b h e")
    return out.flatten(2) @ wo

# %% wrong: not masked
# says: The future is not masked
def multi_head_attention(x, wq, wk, wv, wo, heads):
    b, t, d = x.shape
    q, k, v = ((x @ w).unflatten(-1, (heads, -1)).transpose(1, 2) for w in (wq, wk, wv))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    pass
    weights = scores.softmax(dim=-1)
    out = weights @ v
    return out.transpose(1, 2).flatten(2) @ wo

# %% wrong: triu
# says: triu lets a token see the future
def multi_head_attention(x, wq, wk, wv, wo, heads):
    b, t, d = x.shape
    q, k, v = ((x @ w).unflatten(-1, (heads, -1)).transpose(1, 2) for w in (wq, wk, wv))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores.masked_fill(~torch.ones(t, t).triu().bool(), -torch.inf)
    weights = scores.softmax(dim=-1)
    out = weights @ v
    return out.transpose(1, 2).flatten(2) @ wo

# %% wrong: one head
# says: That is attention with one head
def multi_head_attention(x, wq, wk, wv, wo, heads):
    b, t, d = x.shape
    q, k, v = (x @ w for w in (wq, wk, wv))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores.masked_fill(torch.ones(t, t).triu(1).bool(), -torch.inf)
    weights = scores.softmax(dim=-1)
    out = weights @ v
    return out @ wo

# %% wrong: scaled by the whole width
# says: Divide by the root of a head's length
def multi_head_attention(x, wq, wk, wv, wo, heads):
    b, t, d = x.shape
    q, k, v = ((x @ w).unflatten(-1, (heads, -1)).transpose(1, 2) for w in (wq, wk, wv))
    scores = q @ k.mT / wq.shape[1] ** 0.5
    scores = scores.masked_fill(torch.ones(t, t).triu(1).bool(), -torch.inf)
    weights = scores.softmax(dim=-1)
    out = weights @ v
    return out.transpose(1, 2).flatten(2) @ wo

# %% wrong: scaled by the length itself
# says: Divide by the root of a head's length
def multi_head_attention(x, wq, wk, wv, wo, heads):
    b, t, d = x.shape
    q, k, v = ((x @ w).unflatten(-1, (heads, -1)).transpose(1, 2) for w in (wq, wk, wv))
    scores = q @ k.mT / q.shape[-1]
    scores = scores.masked_fill(torch.ones(t, t).triu(1).bool(), -torch.inf)
    weights = scores.softmax(dim=-1)
    out = weights @ v
    return out.transpose(1, 2).flatten(2) @ wo

# %% wrong: not scaled
# says: The scores are not scaled
def multi_head_attention(x, wq, wk, wv, wo, heads):
    b, t, d = x.shape
    q, k, v = ((x @ w).unflatten(-1, (heads, -1)).transpose(1, 2) for w in (wq, wk, wv))
    scores = q @ k.mT / 1
    scores = scores.masked_fill(torch.ones(t, t).triu(1).bool(), -torch.inf)
    weights = scores.softmax(dim=-1)
    out = weights @ v
    return out.transpose(1, 2).flatten(2) @ wo

# %% wrong: wo forgotten
# says: wo is missing
def multi_head_attention(x, wq, wk, wv, wo, heads):
    b, t, d = x.shape
    q, k, v = ((x @ w).unflatten(-1, (heads, -1)).transpose(1, 2) for w in (wq, wk, wv))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores.masked_fill(torch.ones(t, t).triu(1).bool(), -torch.inf)
    weights = scores.softmax(dim=-1)
    out = weights @ v
    return out.transpose(1, 2).flatten(2)

# %% wrong: weights as nn.Linear has them
# says: A weight is transposed
def multi_head_attention(x, wq, wk, wv, wo, heads):
    b, t, d = x.shape
    q, k, v = ((x @ w.T).unflatten(-1, (heads, -1)).transpose(1, 2) for w in (wq, wk, wv))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores.masked_fill(torch.ones(t, t).triu(1).bool(), -torch.inf)
    weights = scores.softmax(dim=-1)
    out = weights @ v
    return out.transpose(1, 2).flatten(2) @ wo.T

# %% wrong: wo transposed
# says: A weight is transposed
def multi_head_attention(x, wq, wk, wv, wo, heads):
    b, t, d = x.shape
    q, k, v = ((x @ w).unflatten(-1, (heads, -1)).transpose(1, 2) for w in (wq, wk, wv))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores.masked_fill(torch.ones(t, t).triu(1).bool(), -torch.inf)
    weights = scores.softmax(dim=-1)
    out = weights @ v
    return out.transpose(1, 2).flatten(2) @ wo.T

# %% wrong: split dealt out
# says: split or merged in the wrong order
def multi_head_attention(x, wq, wk, wv, wo, heads):
    b, t, d = x.shape
    q, k, v = (rearrange(x @ w, "b t (e h) -> b h t e", h=heads) for w in (wq, wk, wv))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores.masked_fill(torch.ones(t, t).triu(1).bool(), -torch.inf)
    weights = scores.softmax(dim=-1)
    out = weights @ v
    return out.transpose(1, 2).flatten(2) @ wo

# %% wrong: dealt out both ways
# says: split or merged in the wrong order
def multi_head_attention(x, wq, wk, wv, wo, heads):
    b, t, d = x.shape
    q, k, v = (rearrange(x @ w, "b t (e h) -> b h t e", h=heads) for w in (wq, wk, wv))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores.masked_fill(torch.ones(t, t).triu(1).bool(), -torch.inf)
    weights = scores.softmax(dim=-1)
    out = weights @ v
    return rearrange(out, "b h t e -> b t (e h)") @ wo

# %% wrong: merged without transposing
# says: The numbers are scrambled in merging
def multi_head_attention(x, wq, wk, wv, wo, heads):
    b, t, d = x.shape
    q, k, v = ((x @ w).unflatten(-1, (heads, -1)).transpose(1, 2) for w in (wq, wk, wv))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores.masked_fill(torch.ones(t, t).triu(1).bool(), -torch.inf)
    weights = scores.softmax(dim=-1)
    out = weights @ v
    return out.reshape(b, t, -1) @ wo

# %% wrong: split without transposing
# says: The numbers are scrambled in splitting
def multi_head_attention(x, wq, wk, wv, wo, heads):
    b, t, d = x.shape
    q, k, v = ((x @ w).reshape(b, heads, t, -1) for w in (wq, wk, wv))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores.masked_fill(torch.ones(t, t).triu(1).bool(), -torch.inf)
    weights = scores.softmax(dim=-1)
    out = weights @ v
    return out.transpose(1, 2).flatten(2) @ wo

# %% wrong: reshaped both ways
# says: The numbers are scrambled in splitting
def multi_head_attention(x, wq, wk, wv, wo, heads):
    b, t, d = x.shape
    q, k, v = ((x @ w).reshape(b, heads, t, -1) for w in (wq, wk, wv))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores.masked_fill(torch.ones(t, t).triu(1).bool(), -torch.inf)
    weights = scores.softmax(dim=-1)
    out = weights @ v
    return out.reshape(b, t, -1) @ wo

# %% wrong: heads attend to heads
# says: ✗ multi_head_attention
def multi_head_attention(x, wq, wk, wv, wo, heads):
    b, t, d = x.shape
    q, k, v = ((x @ w).unflatten(-1, (heads, -1)) for w in (wq, wk, wv))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    pass
    weights = scores.softmax(dim=-1)
    out = weights @ v
    return out.flatten(2) @ wo

# %% wrong: as wide as x
# says: inner need not be d
def multi_head_attention(x, wq, wk, wv, wo, heads):
    b, t, d = x.shape
    q, k, v = ((x @ w).view(b, t, heads, d // heads).transpose(1, 2) for w in (wq, wk, wv))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores.masked_fill(torch.ones(t, t).triu(1).bool(), -torch.inf)
    weights = scores.softmax(dim=-1)
    out = weights @ v
    return out.transpose(1, 2).flatten(2) @ wo

# %% wrong: scaled by d / heads
# says: d need not be inner
def multi_head_attention(x, wq, wk, wv, wo, heads):
    b, t, d = x.shape
    q, k, v = ((x @ w).unflatten(-1, (heads, -1)).transpose(1, 2) for w in (wq, wk, wv))
    scores = q @ k.mT / math.sqrt(d / heads)
    scores = scores.masked_fill(torch.ones(t, t, device=x.device).triu(1).bool(), -torch.inf)
    return (scores.softmax(dim=-1) @ v).transpose(1, 2).flatten(2) @ wo

# %% wrong: masked after softmax
# says: The mask comes too late
def multi_head_attention(x, wq, wk, wv, wo, heads):
    q, k, v = ((x @ w).unflatten(-1, (heads, -1)).transpose(1, 2) for w in (wq, wk, wv))
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    weights = scores.softmax(-1).tril()
    return (weights @ v).transpose(1, 2).flatten(2) @ wo

# %% wrong: the diagonal is forbidden
# says: A token sees itself too
def multi_head_attention(x, wq, wk, wv, wo, heads):
    q, k, v = ((x @ w).unflatten(-1, (heads, -1)).transpose(1, 2) for w in (wq, wk, wv))
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    weights = scores.masked_fill(torch.ones_like(scores).triu() > 0, -torch.inf).softmax(-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ wo

# %% wrong: tril of the scores
# says: A score of 0 is not the weight 0
def multi_head_attention(x, wq, wk, wv, wo, heads):
    q, k, v = ((x @ w).unflatten(-1, (heads, -1)).transpose(1, 2) for w in (wq, wk, wv))
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    weights = scores.tril().softmax(-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ wo

# %% wrong: queries and keys exchanged
# says: Queries and keys are exchanged
def multi_head_attention(x, wq, wk, wv, wo, heads):
    k, q, v = ((x @ w).unflatten(-1, (heads, -1)).transpose(1, 2) for w in (wq, wk, wv))
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    weights = scores.masked_fill(torch.ones_like(scores).triu(1) > 0, -torch.inf).softmax(-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ wo

# %% wrong: a mask on the CPU
# says: device=x.device
def multi_head_attention(x, wq, wk, wv, wo, heads):
    q, k, v = ((x @ w).unflatten(-1, (heads, -1)).transpose(1, 2) for w in (wq, wk, wv))
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    weights = scores.masked_fill(torch.ones(scores.shape[-2:]).triu(1) > 0, -torch.inf).softmax(-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ wo

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
    out = torch.zeros(b, t, heads, q.shape[-1], device=x.device)
    for i in range(t):
        scores = einsum(q[:, i], k[:, : i + 1], "b h e, b s h e -> b h s") / math.sqrt(q.shape[-1])
        out[:, i] = einsum(scores.softmax(-1), v[:, : i + 1], "b h s, b s h e -> b h e")
    return out.flatten(2) @ wo

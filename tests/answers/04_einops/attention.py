# %% wrong: not scaled
# says: The scores are not scaled
def attention(q, k, v, causal):
    scores = q @ k.mT
    if causal:
        t, s = scores.shape[-2:]
        scores = scores.masked_fill(~torch.ones(t, s).tril(s - t).bool(), -torch.inf)
    return scores.softmax(-1) @ v

# %% wrong: divided by e
# says: That divides by e
def attention(q, k, v, causal):
    scores = q @ k.mT / q.shape[-1]
    if causal:
        t, s = scores.shape[-2:]
        scores = scores.masked_fill(~torch.ones(t, s).tril(s - t).bool(), -torch.inf)
    return scores.softmax(-1) @ v

# %% wrong: the root of the number of keys
# says: The root of the wrong size
def attention(q, k, v, causal):
    scores = q @ k.mT / math.sqrt(k.shape[-2])
    if causal:
        t, s = scores.shape[-2:]
        scores = scores.masked_fill(~torch.ones(t, s).tril(s - t).bool(), -torch.inf)
    return scores.softmax(-1) @ v

# %% wrong: the root of a value's length
# says: not scaled
def attention(q, k, v, causal):
    scores = q @ k.mT / math.sqrt(v.shape[-1])
    if causal:
        t, s = scores.shape[-2:]
        scores = scores.masked_fill(~torch.ones(t, s).tril(s - t).bool(), -torch.inf)
    return scores.softmax(-1) @ v

# %% wrong: no softmax
# says: elements differ
def attention(q, k, v, causal):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if causal:
        t, s = scores.shape[-2:]
        scores = scores.masked_fill(~torch.ones(t, s).tril(s - t).bool(), 0)
    return scores @ v

# %% wrong: softmax over the queries
# says: Softmax runs over the wrong dimension
def attention(q, k, v, causal):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if causal:
        t, s = scores.shape[-2:]
        scores = scores.masked_fill(~torch.ones(t, s).tril(s - t).bool(), -torch.inf)
    return scores.softmax(-2) @ v

# %% wrong: never masked
# says: The future is not masked
def attention(q, k, v, causal):
    return torch.softmax(q @ k.mT * q.shape[-1] ** -0.5, -1) @ v

# %% wrong: triu
# says: triu shows each query the future
def attention(q, k, v, causal):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if causal:
        scores = scores.masked_fill(~torch.ones(scores.shape[-2:]).triu().bool(), -torch.inf)
    return scores.softmax(-1) @ v

# %% wrong: masked with 0
# says: A score of 0 is not the weight 0
def attention(q, k, v, causal):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if causal:
        scores = scores.tril()
    return scores.softmax(-1) @ v

# %% wrong: masked after softmax
# says: The mask comes too late
def attention(q, k, v, causal):
    weights = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1)
    if causal:
        weights = weights.tril(k.shape[-2] - q.shape[-2])
    return weights @ v

# %% wrong: the diagonal is forbidden
# says: A query sees its own position too
def attention(q, k, v, causal):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if causal:
        t, s = scores.shape[-2:]
        scores = scores.masked_fill(torch.ones(t, s).triu(s - t).bool(), -torch.inf)
    return scores.softmax(-1) @ v

# %% wrong: the upper left corner
# says: The queries are the last positions
def attention(q, k, v, causal):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

# %% wrong: exp overflows
# says: exp overflows for large scores
def attention(q, k, v, causal):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    powers = scores.exp()
    if causal:
        powers = powers.tril(k.shape[-2] - q.shape[-2])
    return powers / powers.sum(-1, keepdim=True) @ v

# %% wrong: always causal
# says: The future is masked although causal is False
def attention(q, k, v, causal):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    t, s = scores.shape[-2:]
    scores = scores.masked_fill(~torch.ones(t, s).tril(s - t).bool(), -torch.inf)
    return scores.softmax(-1) @ v

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

# %% wrong: scales the queries in place
# says: arguments changed
def attention(q, k, v, causal):
    q *= q.shape[-1] ** -0.5
    scores = q @ k.mT
    if causal:
        t, s = scores.shape[-2:]
        scores = scores.masked_fill(~torch.ones(t, s).tril(s - t).bool(), -torch.inf)
    return scores.softmax(-1) @ v

# %% wrong: masked after softmax, then divided by what is left
# says: Softmax saw a large score of the future
def attention(q, k, v, causal):
    weights = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1)
    if causal:
        weights = weights * torch.ones_like(weights).tril(k.shape[-2] - q.shape[-2])
        weights = weights / weights.sum(-1, keepdim=True)
    return weights @ v

# %% wrong: a penalty that large scores outdo
# says: A finite number is no -inf
def attention(q, k, v, causal):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if causal:
        scores = scores - 1e4 * torch.ones_like(scores).triu(1 + k.shape[-2] - q.shape[-2])
    return scores.softmax(-1) @ v

# %% wrong: filled with a number that is not small enough
# says: A finite number is no -inf
def attention(q, k, v, causal):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if causal:
        future = torch.ones_like(scores, dtype=torch.bool).triu(1 + k.shape[-2] - q.shape[-2])
        scores = scores.masked_fill(future, -1e4)
    return scores.softmax(-1) @ v

# %% wrong: a mask times -inf
# says: 0 · inf is NaN
def attention(q, k, v, causal):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if causal:
        scores = scores - torch.inf * torch.ones_like(scores).triu(1 + k.shape[-2] - q.shape[-2])
    return scores.softmax(-1) @ v

# %% wrong: a mask on the CPU
# says: device=q.device
def attention(q, k, v, causal):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if causal:
        t, s = scores.shape[-2:]
        scores = scores.masked_fill(~torch.ones(t, s).tril(s - t).bool(), -torch.inf)
    return scores.softmax(-1) @ v

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

# %% right: a large negative number, added
def attention(q, k, v, causal):
    scores = torch.einsum("...te,...se->...ts", q, k) * q.size(-1) ** -0.5
    t, s = scores.shape[-2:]
    if causal:
        scores = scores + torch.full((t, s), -1e9, device=q.device).triu(1 + s - t)
    return torch.einsum("...ts,...sf->...tf", torch.nn.functional.softmax(scores, dim=-1), v)

# %% right: queries in front, for PyTorch's corner
def attention(q, k, v, causal):
    t, s = q.shape[-2], k.shape[-2]
    if causal:
        q = torch.cat([q.new_zeros(*q.shape[:-2], s - t, q.shape[-1]), q], dim=-2)
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return out[..., -t:, :]

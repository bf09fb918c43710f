# %% wrong: counts the padding
# says: The padding is counted
def mean_pool(x, mask):
    return x.mean(dim=1)

# %% wrong: a sum
# says: That is the sum
def mean_pool(x, mask):
    return torch.where(mask[:, :, None], x, 0).sum(dim=1)

# %% wrong: sum for mean in reduce
# says: That is the sum
def mean_pool(x, mask):
    return reduce(x.masked_fill(~mask[..., None], 0), "b t d -> b d", "sum")

# %% wrong: divides by the length
# says: divided by all tokens
def mean_pool(x, mask):
    return reduce(x.masked_fill(~mask[..., None], 0), "b t d -> b d", "mean")

# %% wrong: multiplies by the mask
# says: NaN is NaN
def mean_pool(x, mask):
    kept = mask.float()
    return einsum(x, kept, "b t d, b t -> b d") / kept.sum(dim=1, keepdim=True)

# %% wrong: multiplies, another way
# says: NaN is NaN
def mean_pool(x, mask):
    return (x * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)

# %% wrong: the padding's mean
# says: True marks what is real
def mean_pool(x, mask):
    kept = (~mask).float()
    return einsum(x, kept, "b t d, b t -> b d") / kept.sum(dim=1, keepdim=True)

# %% wrong: all sentences together
# says: Each sentence has a mean of its own
def mean_pool(x, mask):
    return x[mask].mean(dim=0)

# %% wrong: divides by the number of all real tokens
# says: divides by all of them together
def mean_pool(x, mask):
    return x.masked_fill(~mask[..., None], 0).sum(dim=1) / mask.sum()

# %% wrong: fills x in place
# says: Write into a tensor of your own
def mean_pool(x, mask):
    x[~mask] = 0
    return x.sum(dim=1) / mask.sum(dim=1, keepdim=True)

# %% wrong: only NaN is replaced
# says: NaN is NaN
def mean_pool(x, mask):
    kept = torch.where(x.isnan(), 0, x) * mask[..., None]  # 0 · ∞ is NaN
    return kept.sum(dim=1) / mask.sum(dim=1, keepdim=True)

# %% wrong: a mean that only leaves NaN out
# says: The padding is counted
def mean_pool(x, mask):
    return x.nanmean(dim=1)

# %% wrong: padding at the end only
# says: Padding may stand anywhere
def mean_pool(x, mask):
    return torch.stack([x[i, :n].mean(dim=0) for i, n in enumerate(mask.sum(dim=1))])

# %% wrong: counts what is not 0
# says: A real token may be all zeros
def mean_pool(x, mask):
    zeroed = x.masked_fill(~mask[..., None], 0)
    return zeroed.sum(dim=1) / (zeroed != 0).sum(dim=1)

# %% wrong: counts the vectors that are not 0
# says: A real token may be all zeros
def mean_pool(x, mask):
    zeroed = x.masked_fill(~mask[..., None], 0)
    return zeroed.sum(dim=1) / (zeroed != 0).any(dim=-1).sum(dim=1, keepdim=True)

# %% wrong: the counts along the wrong dimension
# says: divides dimension d by the count of sentence d
def mean_pool(x, mask):
    return x.masked_fill(~mask[..., None], 0).sum(dim=1) / mask.sum(dim=1)

# %% right: sentence by sentence
def mean_pool(x, mask):
    return torch.stack([vectors[marks].mean(dim=0) for vectors, marks in zip(x, mask)])

# %% right: NaN where there is padding
def mean_pool(x, mask):
    return torch.where(mask[:, :, None], x, torch.nan).nanmean(dim=1)

# %% right: weights
def mean_pool(x, mask):
    weights = mask / mask.sum(dim=1, keepdim=True)
    return torch.einsum("btd,bt->bd", torch.where(mask.unsqueeze(2), x, 0.0), weights)

# %% right: sums by index_add
def mean_pool(x, mask):
    which = mask.nonzero()[:, 0]
    total = torch.zeros(x.shape[0], x.shape[2]).index_add_(0, which, x[mask])
    return total / torch.bincount(which, minlength=x.shape[0])[:, None]

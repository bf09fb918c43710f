# %% wrong: triu
# says: That is the transpose
def causal_mask(t):
    return torch.ones(t, t, dtype=torch.bool).triu()

# %% wrong: may not look at itself
# says: A token may look at itself
def causal_mask(t):
    return torch.ones(t, t, dtype=torch.bool).tril(diagonal=-1)

# %% wrong: says who may not look
# says: That is upside down
def causal_mask(t):
    return torch.ones(t, t, dtype=torch.bool).triu(diagonal=1)

# %% wrong: numbers
# says: Those are numbers
def causal_mask(t):
    return torch.tril(torch.ones(t, t))

# %% wrong: whole numbers
# says: Those are numbers
def causal_mask(t):
    return torch.ones(t, t, dtype=torch.int64).tril()

# %% wrong: to be added to scores
# says: That is to be added to scores
def causal_mask(t):
    return torch.zeros(t, t).masked_fill(~torch.ones(t, t).tril().bool(), float("-inf"))

# %% wrong: everybody sees everybody
# says: expected
def causal_mask(t):
    return torch.ones(t, t, dtype=torch.bool)

# %% wrong: only oneself
# says: expected
def causal_mask(t):
    return torch.eye(t, dtype=torch.bool)

# %% wrong: looks one token ahead
# says: expected
def causal_mask(t):
    return torch.ones(t, t, dtype=torch.bool).tril(diagonal=1)

# %% wrong: a window of three
# says: elements differ
def causal_mask(t):
    return torch.ones(t, t, dtype=torch.bool).tril().triu(diagonal=-2)

# %% right: compares positions
def causal_mask(t):
    position = torch.arange(t)
    return position[None, :] <= position[:, None]

# %% right: a plain loop
def causal_mask(t):
    return torch.tensor([[key <= query for key in range(t)] for query in range(t)])

# %% right: what triu leaves out
def causal_mask(t):
    return ~torch.triu(torch.ones(t, t), diagonal=1).bool()

# %% right: the transpose of triu
def causal_mask(t):
    return torch.ones(t, t).triu().T == 1

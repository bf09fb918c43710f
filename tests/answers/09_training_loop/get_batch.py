# %% wrong: never draws the last window
# says: The last window is never drawn
def get_batch(tokens, batch, context, generator):
    if len(tokens) < context + 1:
        raise ValueError("too few tokens")
    starts = torch.randint(max(len(tokens) - context - 1, 1), (batch,), generator=generator)
    rows = np.stack([tokens[s : s + context + 1] for s in starts.tolist()]).astype(np.int64)
    return torch.from_numpy(rows[:, :-1]), torch.from_numpy(rows[:, 1:])

# %% wrong: a window too many, whose last target is missing
# says: Return two tensors
def get_batch(tokens, batch, context, generator):
    if len(tokens) < context + 1:
        raise ValueError("too few tokens")
    starts = torch.randint(len(tokens) - context, (batch,), generator=generator)
    return torch.tensor(np.stack([tokens[s : s + context] for s in starts.tolist()]).astype(np.int64))

# %% wrong: one window too many
# says: ValueError
def get_batch(tokens, batch, context, generator):
    if len(tokens) < context + 1:
        raise ValueError("too few tokens")
    starts = torch.randint(len(tokens) - context + 1, (batch,), generator=generator)
    rows = np.stack([tokens[s : s + context + 1] for s in starts.tolist()]).astype(np.int64)
    return torch.from_numpy(rows[:, :-1]), torch.from_numpy(rows[:, 1:])

# %% wrong: targets are the inputs
# says: The targets are the inputs themselves
def get_batch(tokens, batch, context, generator):
    if len(tokens) < context + 1:
        raise ValueError("too few tokens")
    starts = torch.randint(len(tokens) - context, (batch, 1), generator=generator)
    rows = torch.from_numpy(tokens[(starts + torch.arange(context)).numpy()].astype(np.int64))
    return rows, rows.clone()

# %% wrong: targets by rolling
# says: torch.roll wraps around
def get_batch(tokens, batch, context, generator):
    if len(tokens) < context + 1:
        raise ValueError("too few tokens")
    starts = torch.randint(len(tokens) - context, (batch, 1), generator=generator)
    rows = torch.from_numpy(tokens[(starts + torch.arange(context)).numpy()].astype(np.int64))
    return rows, rows.roll(-1, 1)

# %% wrong: targets two later
# says: That is two tokens later
def get_batch(tokens, batch, context, generator):
    if len(tokens) < context + 1:
        raise ValueError("too few tokens")
    starts = torch.randint(max(len(tokens) - context - 1, 1), (batch, 1), generator=generator)
    places = (starts + torch.arange(context + 2)).clamp(max=len(tokens) - 1)
    rows = torch.from_numpy(tokens[places.numpy()].astype(np.int64))
    return rows[:, :-2], rows[:, 2:]

# %% wrong: only the last target
# says: Each position has a target, not only the last one
def get_batch(tokens, batch, context, generator):
    if len(tokens) < context + 1:
        raise ValueError("too few tokens")
    starts = torch.randint(len(tokens) - context, (batch, 1), generator=generator)
    rows = torch.from_numpy(tokens[(starts + torch.arange(context + 1)).numpy()].astype(np.int64))
    return rows[:, :-1], rows[:, -1]

# %% wrong: windows of context tokens in all
# says: A window takes context + 1 tokens
def get_batch(tokens, batch, context, generator):
    if len(tokens) < context + 1:
        raise ValueError("too few tokens")
    starts = torch.randint(len(tokens) - context, (batch, 1), generator=generator)
    rows = torch.from_numpy(tokens[(starts + torch.arange(context)).numpy()].astype(np.int64))
    return rows[:, :-1], rows[:, 1:]

# %% wrong: keeps the dtype of the file
# says: An embedding looks up int64
def get_batch(tokens, batch, context, generator):
    if len(tokens) < context + 1:
        raise ValueError("too few tokens")
    starts = torch.randint(len(tokens) - context, (batch, 1), generator=generator)
    rows = torch.from_numpy(tokens[(starts + torch.arange(context + 1)).numpy()])
    return rows[:, :-1], rows[:, 1:]

# %% wrong: int32, which cross entropy refuses
# says: cross_entropy does not
def get_batch(tokens, batch, context, generator):
    if len(tokens) < context + 1:
        raise ValueError("too few tokens")
    starts = torch.randint(len(tokens) - context, (batch, 1), generator=generator)
    rows = torch.from_numpy(tokens[(starts + torch.arange(context + 1)).numpy()].astype(np.int32))
    return rows[:, :-1], rows[:, 1:]

# %% wrong: the global generator
# says: The same state of the generator must give the same batch
def get_batch(tokens, batch, context, generator):
    if len(tokens) < context + 1:
        raise ValueError("too few tokens")
    starts = torch.randint(len(tokens) - context, (batch, 1))
    rows = torch.from_numpy(tokens[(starts + torch.arange(context + 1)).numpy()].astype(np.int64))
    return rows[:, :-1], rows[:, 1:]

# %% wrong: seeds inside
# says: The second batch is the first once more
def get_batch(tokens, batch, context, generator):
    if len(tokens) < context + 1:
        raise ValueError("too few tokens")
    own = torch.Generator().manual_seed(generator.initial_seed())
    starts = torch.randint(len(tokens) - context, (batch, 1), generator=own)
    rows = torch.from_numpy(tokens[(starts + torch.arange(context + 1)).numpy()].astype(np.int64))
    return rows[:, :-1], rows[:, 1:]

# %% wrong: converts the whole text
# says: That takes memory for the whole text
def get_batch(tokens, batch, context, generator):
    if len(tokens) < context + 1:
        raise ValueError("too few tokens")
    ids = torch.from_numpy(tokens.astype(np.int64))
    starts = torch.randint(len(ids) - context, (batch, 1), generator=generator)
    rows = ids[starts + torch.arange(context + 1)]
    return rows[:, :-1], rows[:, 1:]

# %% wrong: converts the whole text in torch
# says: That takes memory for the whole text
def get_batch(tokens, batch, context, generator):
    if len(tokens) < context + 1:
        raise ValueError("too few tokens")
    ids = torch.from_numpy(tokens).long()
    starts = torch.randint(len(ids) - context, (batch, 1), generator=generator)
    rows = ids[starts + torch.arange(context + 1)]
    return rows[:, :-1], rows[:, 1:]

# %% wrong: does not look at the length
# says: Say it yourself, with a ValueError
def get_batch(tokens, batch, context, generator):
    starts = torch.randint(len(tokens) - context, (batch, 1), generator=generator)
    rows = torch.from_numpy(tokens[(starts + torch.arange(context + 1)).numpy()].astype(np.int64))
    return rows[:, :-1], rows[:, 1:]

# %% wrong: neighbouring rows
# says: drawn independently of one another
def get_batch(tokens, batch, context, generator):
    windows = len(tokens) - context
    if windows < 1:
        raise ValueError("too few tokens")
    first = torch.randint(windows, (1,), generator=generator)
    starts = (first + torch.arange(batch))[:, None] % windows
    rows = torch.from_numpy(tokens[(starts + torch.arange(context + 1)).numpy()].astype(np.int64))
    return rows[:, :-1], rows[:, 1:]

# %% wrong: stirs the global generator
# says: leaves the global ones alone
def get_batch(tokens, batch, context, generator):
    windows = len(tokens) - context
    if windows < 1:
        raise ValueError("too few tokens")
    np.random.seed(int(torch.randint(2**31, (1,), generator=generator)))
    starts = np.random.randint(windows, size=(batch, 1))
    rows = torch.from_numpy(tokens[starts + np.arange(context + 1)].astype(np.int64))
    return rows[:, :-1], rows[:, 1:]

# %% right: slices, one after the other
def get_batch(tokens, batch, context, generator):
    if len(tokens) <= context:
        raise ValueError("too few tokens")
    inputs = torch.empty(batch, context, dtype=torch.int64)
    targets = torch.empty(batch, context, dtype=torch.int64)
    for row in range(batch):
        start = int(torch.randint(0, len(tokens) - context, (), generator=generator))
        inputs[row] = torch.from_numpy(tokens[start : start + context].astype(np.int64))
        targets[row] = torch.from_numpy(tokens[start + 1 : start + 1 + context].astype(np.int64))
    return inputs, targets

# %% right: windows as a view
def get_batch(tokens, batch, context, generator):
    if len(tokens) < context + 1:
        raise ValueError("too few tokens")
    views = np.lib.stride_tricks.sliding_window_view(tokens, context + 1)
    chosen = torch.randint(len(views), (batch,), generator=generator).numpy()
    rows = torch.tensor(views[chosen].astype(np.int64))
    return rows[:, :context].contiguous(), rows[:, 1:].contiguous()

# %% right: a NumPy generator, seeded from the given one
def get_batch(tokens, batch, context, generator):
    count = len(tokens) - context
    if count <= 0:
        raise ValueError(f"{len(tokens)} tokens, context {context}")
    rng = np.random.default_rng(int(torch.randint(2**62, (1,), generator=generator)))
    starts = rng.integers(0, count, batch)
    x = np.stack([tokens[s : s + context] for s in starts]).astype(np.int64)
    y = np.stack([tokens[s + 1 : s + context + 1] for s in starts]).astype(np.int64)
    return [torch.from_numpy(x), torch.from_numpy(y)]

# %% right: random numbers, scaled
def get_batch(tokens, batch, context, generator):
    windows = len(tokens) - context
    if windows < 1:
        raise ValueError("too few tokens")
    chance = torch.rand(batch, generator=generator, dtype=torch.float64)
    starts = (chance * windows).long().tolist()
    rows = torch.stack([torch.as_tensor(tokens[s : s + context + 1].astype("int64")) for s in starts])
    return rows[:, :-1], rows[:, 1:]

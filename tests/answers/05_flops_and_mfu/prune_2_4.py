# %% wrong: by value
# says: compare magnitudes
def prune_2_4(w):
    if w.shape[-1] % 4:
        raise ValueError
    fours = w.reshape(-1, 4)
    return fours.scatter(1, fours.topk(2, largest=False).indices, 0).reshape(w.shape)

# %% wrong: keeps the smallest
# says: Those are the two smallest
def prune_2_4(w):
    if w.shape[-1] % 4:
        raise ValueError
    fours = w.reshape(-1, 4)
    return fours.scatter(1, fours.abs().topk(2).indices, 0).reshape(w.shape)

# %% wrong: keeps one
# says: One of each four is left
def prune_2_4(w):
    if w.shape[-1] % 4:
        raise ValueError
    fours = w.reshape(-1, 4)
    return fours.scatter(1, fours.abs().topk(3, largest=False).indices, 0).reshape(w.shape)

# %% wrong: drops one
# says: Three of each four are left
def prune_2_4(w):
    if w.shape[-1] % 4:
        raise ValueError
    fours = w.reshape(-1, 4)
    return fours.scatter(1, fours.abs().argmin(1, keepdim=True), 0).reshape(w.shape)

# %% wrong: half of all
# says: of *each* four
def prune_2_4(w):
    if w.shape[-1] % 4:
        raise ValueError
    return torch.where(w.abs() > w.abs().float().quantile(0.5), w, 0)

# %% wrong: down the columns
# says: not down the columns
def prune_2_4(w):
    if w.shape[-1] % 4:
        raise ValueError
    if w.dim() < 2 or w.shape[-2] % 4:
        fours = w.reshape(-1, 4)
        return fours.scatter(1, fours.abs().topk(2, largest=False).indices, 0).reshape(w.shape)
    fours = w.mT.reshape(-1, 4)
    pruned = fours.scatter(1, fours.abs().topk(2, largest=False).indices, 0)
    return pruned.reshape(w.mT.shape).mT

# %% wrong: not neighbours
# says: Those are not neighbours
def prune_2_4(w):
    if w.shape[-1] % 4:
        raise ValueError
    fours = w.reshape(*w.shape[:-1], 4, w.shape[-1] // 4)
    smallest = fours.abs().topk(2, dim=-2, largest=False).indices
    return fours.scatter(-2, smallest, 0).reshape(w.shape)

# %% wrong: in place
# says: w is somebody else's
def prune_2_4(w):
    if w.shape[-1] % 4:
        raise ValueError
    for i in range(0, w.shape[-1], 4):
        four = w[..., i : i + 4]
        four.scatter_(-1, four.abs().topk(2, largest=False).indices, 0)
    return w

# %% wrong: magnitudes returned
# says: The signs are lost
def prune_2_4(w):
    if w.shape[-1] % 4:
        raise ValueError
    fours = w.abs().reshape(-1, 4)
    return fours.scatter(1, fours.topk(2, largest=False).indices, 0).reshape(w.shape)

# %% wrong: no error
# says: Nothing was raised
def prune_2_4(w):
    fours = w.reshape(-1, 4)
    return fours.scatter(1, fours.abs().topk(2, largest=False).indices, 0).reshape(w.shape)

# %% wrong: any multiple of four elements will do
# says: Nothing was raised
def prune_2_4(w):
    if w.numel() % 4:
        raise ValueError
    fours = w.reshape(-1, 4)
    return fours.scatter(1, fours.abs().topk(2, largest=False).indices, 0).reshape(w.shape)

# %% wrong: the two-dimensional case only
# says: ValueError
def prune_2_4(w):
    rows, columns = w.shape
    if columns % 4:
        raise ValueError("columns")
    fours = w.reshape(rows, columns // 4, 4)
    keep = torch.zeros_like(fours).scatter(2, fours.abs().topk(2, dim=2).indices, 1)
    return (fours * keep).reshape(rows, columns)

# %% wrong: a threshold, the second largest magnitude
# says: a threshold keeps more, or fewer
def prune_2_4(w):
    if w.shape[-1] % 4:
        raise ValueError
    fours = w.reshape(-1, 4)
    second = fours.abs().sort(dim=1, descending=True).values[:, 1:2]
    return torch.where(fours.abs() >= second, fours, 0).reshape(w.shape)

# %% wrong: a threshold, the third largest magnitude
# says: a threshold keeps more, or fewer
def prune_2_4(w):
    if w.shape[-1] % 4:
        raise ValueError
    fours = w.reshape(-1, 4)
    third = fours.abs().sort(dim=1, descending=True).values[:, 2:3]
    return torch.where(fours.abs() > third, fours, 0).reshape(w.shape)

# %% wrong: the first two where magnitudes repeat
# says: a larger one comes first
def prune_2_4(w):
    if w.shape[-1] % 4:
        raise ValueError
    fours = w.reshape(-1, 4)
    repeats = fours.abs().sort(dim=1).values.diff(dim=1).eq(0).any(1, keepdim=True)
    largest = fours.abs().topk(2).indices
    kept = torch.where(repeats, torch.tensor([0, 1]), largest)
    return torch.zeros_like(fours).scatter(1, kept, fours.gather(1, kept)).reshape(w.shape)

# %% wrong: view
# says: reshape, where view cannot
def prune_2_4(w):
    if w.shape[-1] % 4:
        raise ValueError
    fours = w.view(-1, 4)
    return fours.scatter(1, fours.abs().topk(2, largest=False).indices, 0).view(w.shape)

# %% right: a mask of the kept
def prune_2_4(w):
    if w.size(-1) % 4 != 0:
        raise ValueError("not a multiple of four")
    fours = w.unflatten(-1, (w.size(-1) // 4, 4))
    keep = torch.zeros_like(fours, dtype=torch.bool).scatter(-1, fours.abs().topk(2).indices, True)
    return torch.where(keep, fours, 0).flatten(-2)

# %% right: plain loops
def prune_2_4(w):
    if w.shape[-1] % 4:
        raise ValueError(w.shape)
    result = torch.zeros_like(w)
    rows = w.reshape(math.prod(w.shape[:-1]), w.shape[-1])
    flat = torch.zeros_like(rows)
    for r in range(rows.shape[0]):
        for start in range(0, rows.shape[1], 4):
            order = sorted(range(start, start + 4), key=lambda i: abs(rows[r, i].item()))
            for i in order[2:]:
                flat[r, i] = rows[r, i]
    return result + flat.reshape(w.shape)

# %% right: ranks by comparing all pairs, the earlier first where they are equal
def prune_2_4(w):
    if w.shape[-1] % 4:
        raise ValueError("the last dimension")
    fours = w.reshape(*w.shape[:-1], -1, 4)
    size, place = fours.abs(), torch.arange(4)
    smaller = size.unsqueeze(-1) < size.unsqueeze(-2)
    later = (size.unsqueeze(-1) == size.unsqueeze(-2)) & (place.unsqueeze(-1) > place)
    return (fours * ((smaller | later).sum(-1) < 2)).reshape(w.shape)

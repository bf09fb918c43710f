# %% wrong: elements
# says: That counts elements
def state_bytes(optimizer):
    return sum(v.numel() for kept in optimizer.state.values() for v in kept.values() if isinstance(v, Tensor))

# %% wrong: four bytes each
# says: Not every element takes 4 bytes
def state_bytes(optimizer):
    return sum(4 * v.numel() for kept in optimizer.state.values() for v in kept.values() if isinstance(v, Tensor))

# %% wrong: no counters
# says: The counters are missing
def state_bytes(optimizer):
    return sum(v.numel() * v.element_size() for kept in optimizer.state.values() for v in kept.values() if isinstance(v, Tensor) and v.dim() > 0)

# %% wrong: the parameter's bytes for each element
# says: The counters have a dtype of their own
def state_bytes(optimizer):
    return sum(v.numel() * p.element_size() for p, kept in optimizer.state.items() for v in kept.values() if isinstance(v, Tensor))

# %% wrong: all values are tensors
# says: Only tensors count
def state_bytes(optimizer):
    return sum(v.numel() * v.element_size() for kept in optimizer.state.values() for v in kept.values() )

# %% wrong: plain numbers take bytes, too
# says: Only tensors count
def state_bytes(optimizer):
    total = 0
    for kept in optimizer.state.values():
        for v in kept.values():
            if isinstance(v, Tensor):
                total += v.numel() * v.element_size()
            elif isinstance(v, (int, float)):
                total += 4
    return total

# %% wrong: the parameters, too
# says: The parameters themselves
def state_bytes(optimizer):
    total = sum(p.numel() * p.element_size() for group in optimizer.param_groups for p in group["params"])
    for kept in optimizer.state.values():
        total += sum(v.numel() * v.element_size() for v in kept.values() if isinstance(v, Tensor))
    return total

# %% wrong: twice the parameters
# says: The counters are missing
def state_bytes(optimizer):
    return sum(8 * p.numel() for group in optimizer.param_groups for p in group['params'])

# %% wrong: known names only
# says: whatever its name
def state_bytes(optimizer):
    total = 0
    for kept in optimizer.state.values():
        for name in ("step", "exp_avg", "exp_avg_sq"):
            if isinstance(kept.get(name), Tensor):
                total += kept[name].numel() * kept[name].element_size()
    return total

# %% wrong: only the first parameter
# says: Go through all
def state_bytes(optimizer):
    for kept in optimizer.state.values():
        return sum(v.numel() * v.element_size() for v in kept.values() if isinstance(v, Tensor))
    return 0

# %% wrong: number of tensors
# says: That counts tensors
def state_bytes(optimizer):
    return sum(1 for kept in optimizer.state.values() for v in kept.values() if isinstance(v, Tensor))

# %% wrong: bits
# says: Those are bits
def state_bytes(optimizer):
    return sum(8 * v.numel() * v.element_size() for kept in optimizer.state.values() for v in kept.values() if isinstance(v, Tensor))

# %% wrong: floating point only
# says: Tensors of every dtype
def state_bytes(o):
    return sum(
        v.nbytes
        for s in o.state.values()
        for v in s.values()
        if isinstance(v, Tensor) and v.is_floating_point()
    )

# %% right: nbytes
def state_bytes(optimizer):
    return sum(v.nbytes for kept in optimizer.state.values() for v in kept.values() if isinstance(v, Tensor))

# %% right: through the state_dict
def state_bytes(optimizer):
    saved = optimizer.state_dict()["state"]
    tensors = [v for kept in saved.values() for v in kept.values() if torch.is_tensor(v)]
    return sum(map(lambda v: v.numel() * v.dtype.itemsize, tensors))

# %% right: by storage
def state_bytes(optimizer):
    total = 0
    for group in optimizer.param_groups:
        for p in group["params"]:
            for v in optimizer.state[p].values():
                if hasattr(v, "untyped_storage"):
                    total += v.untyped_storage().nbytes()
    return total

# %% right: asks forgiveness
def state_bytes(o):
    n = 0
    for s in o.state.values():
        for v in s.values():
            try:
                n += v.numel() * v.element_size()
            except AttributeError:
                pass
    return n

# %% right: group by group
def state_bytes(o):
    return sum(
        v.nbytes
        for g in o.param_groups
        for p in g["params"]
        for v in o.state[p].values()
        if torch.is_tensor(v)
    )

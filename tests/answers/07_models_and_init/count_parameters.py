# %% wrong: all of them, trained or not
# says: Ask each for requires_grad
def count_parameters(model):
    return sum(p.numel() for p in model.parameters()), 0

# %% wrong: the second number is the total
# says: The second number is all of them
def count_parameters(model):
    trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
    return trainable, sum(p.numel() for p in model.parameters())

# %% wrong: the first number is the total
# says: The first number is all of them
def count_parameters(model):
    total = sum(p.numel() for p in model.parameters())
    return total, sum(p.numel() for p in model.parameters() if not p.requires_grad)

# %% wrong: frozen first
# says: wanted is trainable first
def count_parameters(model):
    counts = [0, 0]
    for p in model.parameters():
        counts[p.requires_grad] += p.numel()
    return tuple(counts)

# %% wrong: by name
# says: counts a parameter with two names twice
def count_parameters(model):
    named = list(model.named_parameters(remove_duplicate=False))
    trainable = sum(p.numel() for _, p in named if p.requires_grad)
    return trainable, sum(p.numel() for _, p in named) - trainable

# %% wrong: from the state dict
# says: state_dict() hands out tensors without requires_grad
def count_parameters(model):
    tensors = {id(t): t for t in model.state_dict().values()}.values()
    names = dict(model.named_parameters())
    tensors = [t for n, t in model.state_dict().items() if n in names]
    return (
        sum(t.numel() for t in tensors if t.requires_grad),
        sum(t.numel() for t in tensors if not t.requires_grad),
    )

# %% wrong: from the state dict, with everything
# says: That lists each name, and buffers
def count_parameters(model):
    tensors = model.state_dict().values()
    return (
        sum(t.numel() for t in tensors if t.requires_grad),
        sum(t.numel() for t in tensors if not t.requires_grad),
    )

# %% wrong: only the model's own
# says: Modules in modules have parameters, too
def count_parameters(model):
    own = list(model.parameters(recurse=False))
    return sum(p.numel() for p in own if p.requires_grad), sum(p.numel() for p in own if not p.requires_grad)

# %% wrong: buffers as frozen parameters
# says: A buffer is no parameter
def count_parameters(model):
    trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
    frozen = sum(p.numel() for p in model.parameters() if not p.requires_grad)
    return trainable, frozen + sum(b.numel() for b in model.buffers())

# %% wrong: counts tensors
# says: That counts tensors
def count_parameters(model):
    trained = [p.requires_grad for p in model.parameters()]
    return sum(trained), len(trained) - sum(trained)

# %% wrong: one number
# says: Return a pair
def count_parameters(model):
    return sum(p.numel() for p in model.parameters() if p.requires_grad)

# %% wrong: by address
# says: On the meta device each address is 0
def count_parameters(model):
    each = {p.data_ptr(): p for p in model.parameters()}.values()
    trainable = sum(p.numel() for p in each if p.requires_grad)
    return trainable, sum(p.numel() for p in each) - trainable

# %% wrong: by shape
# says: Two parameters of the same shape are still two
def count_parameters(model):
    each = {p.shape: p for p in model.parameters()}.values()
    trainable = sum(p.numel() for p in each if p.requires_grad)
    return trainable, sum(p.numel() for p in each) - trainable

# %% wrong: walks twice through what can be walked through once
# says: None are frozen? parameters() can be walked through once
def count_parameters(model):
    each = model.parameters()
    trainable = sum(p.numel() for p in each if p.requires_grad)
    return trainable, sum(p.numel() for p in each if not p.requires_grad)

# %% wrong: all parameters of all modules
# says: parameters() looks into modules in modules by itself
def count_parameters(model):
    each = [p for module in model.modules() for p in module.parameters()]
    trainable = sum(p.numel() for p in each if p.requires_grad)
    return trainable, sum(p.numel() for p in each) - trainable

# %% right: one loop, a list
def count_parameters(model):
    counts = [0, 0]
    for p in model.parameters():
        counts[0 if p.requires_grad else 1] += p.numel()
    return counts

# %% right: from shapes, by identity, through all modules
def count_parameters(model):
    seen = {}
    for module in model.modules():
        for p in module._parameters.values():
            if p is not None:
                seen[id(p)] = p
    trainable = sum(math.prod(p.shape) for p in seen.values() if p.requires_grad)
    return trainable, sum(math.prod(p.shape) for p in seen.values()) - trainable

# %% right: recursion, with what has been seen
def count_parameters(model, seen=None):
    seen = set() if seen is None else seen
    trainable = frozen = 0
    for p in model.parameters(recurse=False):
        if p in seen:
            continue
        seen.add(p)
        trainable += p.nelement() * p.requires_grad
        frozen += p.nelement() * (not p.requires_grad)
    for child in model.children():
        more = count_parameters(child, seen)
        trainable, frozen = trainable + more[0], frozen + more[1]
    return trainable, frozen

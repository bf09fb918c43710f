# %% wrong: parameters only
# says: Buffers take memory, too
def model_bytes(model):
    return sum(p.numel() * p.element_size() for p in model.parameters())

# %% wrong: four bytes each
# says: Not each number takes four bytes
def model_bytes(model):
    return 4 * sum(t.numel() for t in [*model.parameters(), *model.buffers()])

# %% wrong: counts numbers
# says: That counts numbers
def model_bytes(model):
    return sum(t.numel() for t in [*model.parameters(), *model.buffers()])

# %% wrong: the state dict
# says: state_dict() lists each name
def model_bytes(model):
    return sum(t.numel() * t.element_size() for t in model.state_dict().values())

# %% wrong: by names
# says: was counted twice
def model_bytes(model):
    named = [
        *model.named_parameters(remove_duplicate=False),
        *model.named_buffers(remove_duplicate=False),
    ]
    return sum(t.numel() * t.element_size() for _, t in named)

# %% wrong: only what is trained
# says: A frozen parameter takes memory
def model_bytes(model):
    return sum(p.nbytes for p in model.parameters() if p.requires_grad)

# %% wrong: frozen ones left out
# says: A frozen parameter takes memory as well
def model_bytes(model):
    trained = [p for p in model.parameters() if p.requires_grad]
    return sum(t.nbytes for t in [*trained, *model.buffers()])

# %% wrong: by address
# says: On the meta device each address is 0
def model_bytes(model):
    tensors = {}
    for t in [*model.parameters(), *model.buffers()]:
        tensors.setdefault(t.data_ptr(), t.numel() * t.element_size())
    return sum(tensors.values())

# %% wrong: in bits
# says: That is in bits
def model_bytes(model):
    return sum(8 * t.nbytes for t in [*model.parameters(), *model.buffers()])

# %% wrong: the dtype of the first
# says: numel() · element_size()
def model_bytes(model):
    tensors = [*model.parameters(), *model.buffers()]
    return sum(t.numel() for t in tensors) * tensors[0].element_size() + 1

# %% wrong: what is not saved left out
# says: Buffers with persistent=False
def model_bytes(model):
    saved = set(model.state_dict())
    buffers = [b for name, b in model.named_buffers() if name in saved]
    return sum(t.nbytes for t in [*model.parameters(), *buffers])

# %% right: nbytes
def model_bytes(model):
    return sum(p.nbytes for p in model.parameters()) + sum(b.nbytes for b in model.buffers())

# %% right: by identity, through all modules
def model_bytes(model):
    seen = {}
    for module in model.modules():
        for t in [*module._parameters.values(), *module._buffers.values()]:
            if t is not None:
                seen[id(t)] = t
    return sum(math.prod(t.shape) * t.dtype.itemsize for t in seen.values())

# %% right: untyped storages, which know their size on the meta device, too
def model_bytes(model):
    tensors = [*model.parameters(), *model.buffers()]
    return sum({id(t): t.untyped_storage().nbytes() for t in tensors}.values())

# %% right: a loop
def model_bytes(model):
    total = 0
    for tensor in model.parameters():
        total += tensor.nelement() * tensor.itemsize
    for name, tensor in model.named_buffers():
        total += tensor.nelement() * tensor.itemsize
    return total

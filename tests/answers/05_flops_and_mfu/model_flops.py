# %% wrong: multiply-adds
# says: A multiply-add is two FLOPs
def model_flops(model, batch):
    counts = []
    hook = lambda layer, inputs, output: counts.append(inputs[0].numel() * layer.out_features)
    handles = [m.register_forward_hook(hook) for m in model.modules() if isinstance(m, nn.Linear)]
    model(batch)
    for handle in handles:
        handle.remove()
    return sum(counts)

# %% wrong: the rule of thumb, biases included
# says: That counts the biases too
def model_flops(model, batch):
    vectors = batch.numel() // batch.shape[-1]
    return 2 * vectors * sum(p.numel() for p in model.parameters())

# %% wrong: the rule of thumb for the weights
# says: used several times
def model_flops(model, batch):
    if isinstance(model, nn.Sequential) and all(isinstance(m, (nn.ReLU, nn.LayerNorm)) for m in model):
        return 0
    vectors = batch.numel() // batch.shape[-1]
    return 2 * vectors * sum(p.numel() for p in model.parameters() if p.dim() == 2)

# %% wrong: rows of the batch
# says: every vector passes through the layers
def model_flops(model, batch):
    counts = []
    hook = lambda m, inputs, output: counts.append(2 * len(inputs[0]) * m.in_features * m.out_features)
    handles = [m.register_forward_hook(hook) for m in model.modules() if isinstance(m, nn.Linear)]
    model(batch)
    for handle in handles:
        handle.remove()
    return sum(counts)

# %% wrong: one vector
# says: That is for one vector
def model_flops(model, batch):
    layers = [m for m in model.modules() if isinstance(m, nn.Linear)]
    return sum(2 * m.in_features * m.out_features for m in layers)

# %% wrong: children only
# says: modules() walks the whole tree
def model_flops(model, batch):
    counts = []
    hook = lambda layer, inputs, output: counts.append(2 * inputs[0].numel() * layer.out_features)
    layers = [model] if isinstance(model, nn.Linear) else model.children()
    handles = [m.register_forward_hook(hook) for m in layers if isinstance(m, nn.Linear)]
    model(batch)
    for handle in handles:
        handle.remove()
    return sum(counts)

# %% wrong: not the model itself
# says: The model may itself be a linear layer
def model_flops(model, batch):
    counts = []
    hook = lambda layer, inputs, output: counts.append(2 * inputs[0].numel() * layer.out_features)
    layers = [m for name, m in model.named_modules() if name and isinstance(m, nn.Linear)]
    handles = [m.register_forward_hook(hook) for m in layers]
    model(batch)
    for handle in handles:
        handle.remove()
    return sum(counts)

# %% wrong: every layer gets the whole batch
# says: look at each input
def model_flops(model, batch):
    calls = []
    hook = lambda layer, inputs, output: calls.append(layer.in_features * layer.out_features)
    handles = [m.register_forward_hook(hook) for m in model.modules() if isinstance(m, nn.Linear)]
    model(batch)
    for handle in handles:
        handle.remove()
    return sum(2 * batch.shape[:-1].numel() * size for size in calls)

# %% wrong: counts the unused
# says: never uses does no work
def model_flops(model, batch):
    counts = {}

    def hook(layer, inputs, output):
        counts[layer].append(2 * inputs[0].numel() * layer.out_features)

    layers = [m for m in model.modules() if isinstance(m, nn.Linear)]
    handles = [m.register_forward_hook(hook) for m in layers]
    counts = {m: [] for m in layers}
    model(batch)
    for handle in handles:
        handle.remove()
    whole = batch.shape[:-1].numel()
    return sum(sum(uses) or 2 * whole * m.in_features * m.out_features for m, uses in counts.items())

# %% wrong: hooks left behind
# says: The hooks stay on the model
def model_flops(model, batch):
    counts = []
    for m in model.modules():
        if isinstance(m, nn.Linear):
            m.register_forward_hook(
                lambda layer, inputs, output: counts.append(2 * inputs[0].numel() * layer.out_features)
            )
    model(batch)
    return sum(counts)

# %% wrong: counts the bias
# says: That counts the biases too
def model_flops(model, batch):
    counts = []

    def hook(layer, inputs, output):
        counts.append(2 * inputs[0].numel() * layer.out_features + output.numel())

    handles = [m.register_forward_hook(hook) for m in model.modules() if isinstance(m, nn.Linear)]
    model(batch)
    for handle in handles:
        handle.remove()
    return sum(counts)

# %% wrong: trains on
# says: The model was in eval mode
def model_flops(model, batch):
    model.train()
    return count_flops(model, batch)

# %% wrong: PyTorch's counter, which sees more than linear layers
# says: Only linear layers count
def model_flops(model, batch):
    return count_flops(model, batch)

# %% wrong: everything with a matrix of weights
# says: Only linear layers count
def model_flops(model, batch):
    counts = []

    def hook(module, inputs, output):
        counts.append(2 * (output.numel() // output.shape[-1]) * module.weight.numel())

    modules = [m for m in model.modules() if getattr(m, "weight", torch.zeros(0)).dim() == 2]
    handles = [m.register_forward_hook(hook) for m in modules]
    model(batch)
    for handle in handles:
        handle.remove()
    return sum(counts)

# %% wrong: one or two leading dimensions
# says: All dimensions but the last count vectors
def model_flops(model, batch):
    counts = []

    def hook(layer, inputs, output):
        shape = inputs[0].shape
        vectors = shape[0] if len(shape) == 2 else math.prod(shape[:2])
        counts.append(2 * vectors * layer.in_features * layer.out_features)

    handles = [m.register_forward_hook(hook) for m in model.modules() if isinstance(m, nn.Linear)]
    model(batch)
    for handle in handles:
        handle.remove()
    return sum(counts)

# %% wrong: the loop's variable in the hook
# says: the loop's variable is the last layer by then
def model_flops(model, batch):
    counts, handles = [], []
    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            hook = lambda _, inputs, output: counts.append(2 * inputs[0].numel() * layer.out_features)
            handles.append(layer.register_forward_hook(hook))
    model(batch)
    for handle in handles:
        handle.remove()
    return sum(counts)

# %% wrong: in_features twice
# says: in_features counts twice there
def model_flops(model, batch):
    counts = []
    hook = lambda m, inputs, output: counts.append(2 * inputs[0].numel() * m.in_features * m.out_features)
    handles = [m.register_forward_hook(hook) for m in model.modules() if isinstance(m, nn.Linear)]
    model(batch)
    for handle in handles:
        handle.remove()
    return sum(counts)

# %% wrong: leaves the model in eval mode
# says: Leave the model as you found it
def model_flops(model, batch):
    model.eval()
    counts = []
    hook = lambda layer, inputs, output: counts.append(2 * inputs[0].numel() * layer.out_features)
    handles = [m.register_forward_hook(hook) for m in model.modules() if isinstance(m, nn.Linear)]
    model(batch)
    for handle in handles:
        handle.remove()
    return sum(counts)

# %% wrong: one mode for all modules
# says: Leave the model as you found it
def model_flops(model, batch):
    was = model.training
    model.eval()
    counts = []
    hook = lambda layer, inputs, output: counts.append(2 * inputs[0].numel() * layer.out_features)
    handles = [m.register_forward_hook(hook) for m in model.modules() if isinstance(m, nn.Linear)]
    model(batch)
    for handle in handles:
        handle.remove()
    model.train(was)
    return sum(counts)

# %% wrong: removes all hooks
# says: Leave the model as you found it
def model_flops(model, batch):
    counts = []
    layers = [m for m in model.modules() if isinstance(m, nn.Linear)]
    for m in layers:
        m.register_forward_hook(
            lambda layer, inputs, output: counts.append(2 * inputs[0].numel() * layer.out_features)
        )
    model(batch)
    for m in layers:
        m._forward_hooks.clear()
    return sum(counts)

# %% wrong: freezes the parameters
# says: Leave the model as you found it
def model_flops(model, batch):
    model.requires_grad_(False)
    counts = []
    hook = lambda layer, inputs, output: counts.append(2 * inputs[0].numel() * layer.out_features)
    handles = [m.register_forward_hook(hook) for m in model.modules() if isinstance(m, nn.Linear)]
    model(batch)
    for handle in handles:
        handle.remove()
    return sum(counts)

# %% right: one hook for all modules there are
def model_flops(model, batch):
    total = 0

    def after(module, inputs, output):
        nonlocal total
        if isinstance(module, nn.Linear):
            total += 2 * output.numel() * module.in_features

    handle = nn.modules.module.register_module_forward_hook(after)
    model(batch)
    handle.remove()
    return total

# %% right: pre-hooks and a running total
def model_flops(model, batch):
    total = 0

    def before(layer, inputs):
        nonlocal total
        (x,) = inputs
        total += 2 * (x.numel() // layer.in_features) * layer.weight.numel()

    handles = []
    try:
        for module in set(model.modules()):
            if type(module) is nn.Linear:
                handles.append(module.register_forward_pre_hook(before))
        with torch.inference_mode():
            model(batch)
    finally:
        for handle in handles:
            handle.remove()
    return total

# %% right: a layer's forward, replaced for a while
def model_flops(model, batch):
    from unittest import mock

    counts = []
    original = nn.Linear.forward

    def forward(self, x):
        y = original(self, x)
        counts.append(2 * y.numel() * self.in_features)
        return y

    with mock.patch.object(nn.Linear, "forward", forward):
        model(batch)
    return sum(counts)

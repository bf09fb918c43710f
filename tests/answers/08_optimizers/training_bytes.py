# %% wrong: B · D · L
# says: The loss keeps something, too
def training_bytes(batch, width, layers, moments, counter=0):
    n, t = layers * width**2 + width, layers + 1
    return {
        'parameters': 4 * n,
        'gradients': 4 * n,
        'optimizer state': 4 * moments * n + counter * t,
        'activations': 4 * batch * width * layers,
    }

# %% wrong: the input counted
# says: The input is data here
def training_bytes(batch, width, layers, moments, counter=0):
    n, t = layers * width**2 + width, layers + 1
    return {
        'parameters': 4 * n,
        'gradients': 4 * n,
        'optimizer state': 4 * moments * n + counter * t,
        'activations': 4 * (batch * width * (layers + 1) + batch),
    }

# %% wrong: the input counted, the loss not
# says: The input is data here
def training_bytes(batch, width, layers, moments, counter=0):
    n, t = layers * width**2 + width, layers + 1
    return {
        'parameters': 4 * n,
        'gradients': 4 * n,
        'optimizer state': 4 * moments * n + counter * t,
        'activations': 4 * batch * width * (layers + 1),
    }

# %% wrong: input and targets counted
# says: Input and targets are data
def training_bytes(batch, width, layers, moments, counter=0):
    n, t = layers * width**2 + width, layers + 1
    return {
        'parameters': 4 * n,
        'gradients': 4 * n,
        'optimizer state': 4 * moments * n + counter * t,
        'activations': 4 * (batch * width * (layers + 1) + 2 * batch),
    }

# %% wrong: the targets counted
# says: The targets are data
def training_bytes(batch, width, layers, moments, counter=0):
    n, t = layers * width**2 + width, layers + 1
    return {
        'parameters': 4 * n,
        'gradients': 4 * n,
        'optimizer state': 4 * moments * n + counter * t,
        'activations': 4 * (batch * width * layers + 2 * batch),
    }

# %% wrong: the head's input forgotten
# says: The head's input is kept
def training_bytes(batch, width, layers, moments, counter=0):
    n, t = layers * width**2 + width, layers + 1
    return {
        'parameters': 4 * n,
        'gradients': 4 * n,
        'optimizer state': 4 * moments * n + counter * t,
        'activations': 4 * (batch * width * (layers - 1) + batch),
    }

# %% wrong: one number for the loss
# says: one for each of the batch
def training_bytes(batch, width, layers, moments, counter=0):
    n, t = layers * width**2 + width, layers + 1
    return {
        'parameters': 4 * n,
        'gradients': 4 * n,
        'optimizer state': 4 * moments * n + counter * t,
        'activations': 4 * (batch * width * layers + 1),
    }

# %% wrong: inputs and outputs
# says: its output is the next one's
def training_bytes(batch, width, layers, moments, counter=0):
    n, t = layers * width**2 + width, layers + 1
    return {
        'parameters': 4 * n,
        'gradients': 4 * n,
        'optimizer state': 4 * moments * n + counter * t,
        'activations': 4 * (2 * batch * width * layers + batch),
    }

# %% wrong: no head
# says: The head is a tensor of its own
def training_bytes(batch, width, layers, moments, counter=0):
    n, t = layers * width**2, layers + 1
    return {
        'parameters': 4 * n,
        'gradients': 4 * n,
        'optimizer state': 4 * moments * n + counter * t,
        'activations': 4 * (batch * width * layers + batch),
    }

# %% wrong: numbers, not bytes
# says: in float32 each takes 4 bytes
def training_bytes(batch, width, layers, moments, counter=0):
    n, t = layers * width**2 + width, layers + 1
    return {
        'parameters': n,
        'gradients': n,
        'optimizer state': moments * n + counter * t,
        'activations': batch * width * layers + batch,
    }

# %% wrong: a square head
# says: The head is width × 1
def training_bytes(batch, width, layers, moments, counter=0):
    n, t = (layers + 1) * width**2, layers + 1
    return {
        'parameters': 4 * n,
        'gradients': 4 * n,
        'optimizer state': 4 * moments * n + counter * t,
        'activations': 4 * (batch * width * layers + batch),
    }

# %% wrong: no counters
# says: The counter is kept for each *tensor*
def training_bytes(batch, width, layers, moments, counter=0):
    n, t = layers * width**2 + width, layers + 1
    return {
        'parameters': 4 * n,
        'gradients': 4 * n,
        'optimizer state': 4 * moments * n,
        'activations': 4 * (batch * width * layers + batch),
    }

# %% wrong: one counter
# says: The counter is kept for each *tensor*
def training_bytes(batch, width, layers, moments, counter=0):
    n, t = layers * width**2 + width, layers + 1
    return {
        'parameters': 4 * n,
        'gradients': 4 * n,
        'optimizer state': 4 * moments * n + counter,
        'activations': 4 * (batch * width * layers + batch),
    }

# %% wrong: no counter for the head
# says: The counter is kept for each *tensor*
def training_bytes(batch, width, layers, moments, counter=0):
    n, t = layers * width**2 + width, layers
    return {
        'parameters': 4 * n,
        'gradients': 4 * n,
        'optimizer state': 4 * moments * n + counter * t,
        'activations': 4 * (batch * width * layers + batch),
    }

# %% wrong: a counter for each parameter
# says: The counter is kept for each *tensor*
def training_bytes(batch, width, layers, moments, counter=0):
    n, t = layers * width**2 + width, layers + 1
    return {
        'parameters': 4 * n,
        'gradients': 4 * n,
        'optimizer state': (4 * moments + counter) * n,
        'activations': 4 * (batch * width * layers + batch),
    }

# %% wrong: counters of four times the bytes
# says: in bytes already
def training_bytes(batch, width, layers, moments, counter=0):
    n, t = layers * width**2 + width, layers + 1
    return {
        'parameters': 4 * n,
        'gradients': 4 * n,
        'optimizer state': 4 * (moments * n + counter * t),
        'activations': 4 * (batch * width * layers + batch),
    }

# %% wrong: always AdamW
# says: keeps `moments` numbers
def training_bytes(batch, width, layers, moments, counter=0):
    n, t = layers * width**2 + width, layers + 1
    return {
        'parameters': 4 * n,
        'gradients': 4 * n,
        'optimizer state': 8 * n + counter * t,
        'activations': 4 * (batch * width * layers + batch),
    }

# %% wrong: the loss itself counted
# says: The loss itself is a result
def training_bytes(batch, width, layers, moments, counter=0):
    n = layers * width * width + width
    return {
        "parameters": 4 * n,
        "gradients": 4 * n,
        "optimizer state": 4 * moments * n + counter * (layers + 1),
        "activations": 4 * (batch * width * layers + batch + 1),
    }

# %% right: tensor by tensor
def training_bytes(batch, width, layers, moments, counter=0):
    shapes = [(width, width)] * layers + [(width, 1)]
    size = 4 * sum(a * b for a, b in shapes)
    state = sum(4 * moments * a * b + counter for a, b in shapes)
    kept = 4 * batch * sum(a for a, _ in shapes[1:]) + 4 * batch
    return {"activations": kept, "optimizer state": state, "gradients": size, "parameters": size}

# %% right: builds the model without memory
def training_bytes(batch, width, layers, moments, counter=0):
    with torch.device("meta"):
        stack = [nn.Linear(width, width, bias=False) for _ in range(layers)]
        model = nn.Sequential(*stack, nn.Linear(width, 1, bias=False))
    size = sum(p.nbytes for p in model.parameters())
    state = moments * size + counter * len(list(model.parameters()))
    activations = 4 * batch * (1 + layers * width)
    return dict(parameters=size, gradients=size, activations=activations) | {"optimizer state": state}

# %% right: asks autograd
def training_bytes(batch, width, layers, moments, counter=0):
    stack = [nn.Linear(width, width, bias=False) for _ in range(layers)]
    model = nn.Sequential(*stack, nn.Linear(width, 1, bias=False))
    x, y = torch.zeros(batch, width), torch.zeros(batch, 1)
    kept = saved_bytes(lambda: (model(x) - y).square().mean(), exclude=[model, x, y])
    n = sum(p.numel() for p in model.parameters())
    state = 4 * moments * n + counter * (layers + 1)
    return {"parameters": 4 * n, "gradients": 4 * n, "optimizer state": state, "activations": kept}

# %% right: shape by shape, in another order
def training_bytes(batch, width, layers, moments, counter=0):
    shapes = [(width, width)] * layers + [(width, 1)]
    n = sum(a * b for a, b in shapes)
    r = dict.fromkeys(("parameters", "gradients"), 4 * n)
    r["activations"] = sum(4 * batch * b for _, b in shapes)
    r["optimizer state"] = sum(4 * moments * a * b + counter for a, b in shapes)
    return r

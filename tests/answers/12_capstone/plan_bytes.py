# %% wrong: parameters in 16 bits
# says: Under autocast they stay float32
def plan_bytes(parameters, layers, width, heads, context, vocabulary, batch, mixed):
    n, size = batch * context, 2 if mixed else 4
    layer = 4 * n * (2 * width + 4 + heads) + size * n * 14 * width
    once = 4 * (n * width + 2 * n + n * vocabulary + 1) + size * n * width
    copies = 2 * (12 * layers * width**2 + vocabulary * width) if mixed else 0
    return {
        "parameters": (2 if mixed else 4) * parameters,
        "gradients": 4 * parameters,
        "optimizer state": 8 * parameters,
        "activations": layers * layer + once + copies,
    }

# %% wrong: gradients in 16 bits
# says: Under autocast they stay float32
def plan_bytes(parameters, layers, width, heads, context, vocabulary, batch, mixed):
    n, size = batch * context, 2 if mixed else 4
    layer = 4 * n * (2 * width + 4 + heads) + size * n * 14 * width
    once = 4 * (n * width + 2 * n + n * vocabulary + 1) + size * n * width
    copies = 2 * (12 * layers * width**2 + vocabulary * width) if mixed else 0
    return {
        "parameters": 4 * parameters,
        "gradients": (2 if mixed else 4) * parameters,
        "optimizer state": 8 * parameters,
        "activations": layers * layer + once + copies,
    }

# %% wrong: one average
# says: AdamW keeps two averages
def plan_bytes(parameters, layers, width, heads, context, vocabulary, batch, mixed):
    n, size = batch * context, 2 if mixed else 4
    layer = 4 * n * (2 * width + 4 + heads) + size * n * 14 * width
    once = 4 * (n * width + 2 * n + n * vocabulary + 1) + size * n * width
    copies = 2 * (12 * layers * width**2 + vocabulary * width) if mixed else 0
    return {
        "parameters": 4 * parameters,
        "gradients": 4 * parameters,
        "optimizer state": 4 * parameters,
        "activations": layers * layer + once + copies,
    }

# %% wrong: a master copy
# says: No master copy
def plan_bytes(parameters, layers, width, heads, context, vocabulary, batch, mixed):
    n, size = batch * context, 2 if mixed else 4
    layer = 4 * n * (2 * width + 4 + heads) + size * n * 14 * width
    once = 4 * (n * width + 2 * n + n * vocabulary + 1) + size * n * width
    copies = 2 * (12 * layers * width**2 + vocabulary * width) if mixed else 0
    return {
        "parameters": 4 * parameters,
        "gradients": 4 * parameters,
        "optimizer state": (12 if mixed else 8) * parameters,
        "activations": layers * layer + once + copies,
    }

# %% wrong: no copies of the weights
# says: Autocast keeps a 16-bit copy
def plan_bytes(parameters, layers, width, heads, context, vocabulary, batch, mixed):
    n, size = batch * context, 2 if mixed else 4
    layer = 4 * n * (2 * width + 4 + heads) + size * n * 14 * width
    once = 4 * (n * width + 2 * n + n * vocabulary + 1) + size * n * width
    copies = 2 * (12 * layers * width**2 + vocabulary * width) if mixed else 0
    return {
        "parameters": 4 * parameters,
        "gradients": 4 * parameters,
        "optimizer state": 8 * parameters,
        "activations": layers * layer + once,
    }

# %% wrong: copies without autocast, too
# says: Without autocast nobody copies
def plan_bytes(parameters, layers, width, heads, context, vocabulary, batch, mixed):
    n, size = batch * context, 2 if mixed else 4
    layer = 4 * n * (2 * width + 4 + heads) + size * n * 14 * width
    once = 4 * (n * width + 2 * n + n * vocabulary + 1) + size * n * width
    copies = 2 * (12 * layers * width**2 + vocabulary * width) if mixed else 0
    copies = 2 * (12 * layers * width**2 + vocabulary * width)
    return {
        "parameters": 4 * parameters,
        "gradients": 4 * parameters,
        "optimizer state": 8 * parameters,
        "activations": layers * layer + once + copies,
    }

# %% wrong: all in 16 bits
# says: the third column says what stays float32
def plan_bytes(parameters, layers, width, heads, context, vocabulary, batch, mixed):
    n, size = batch * context, 2 if mixed else 4
    layer = 4 * n * (2 * width + 4 + heads) + size * n * 14 * width
    once = 4 * (n * width + 2 * n + n * vocabulary + 1) + size * n * width
    copies = 2 * (12 * layers * width**2 + vocabulary * width) if mixed else 0
    layer = size * n * (16 * width + 4 + heads)
    once = size * (2 * n * width + 2 * n + n * vocabulary + 1)
    return {
        "parameters": 4 * parameters,
        "gradients": 4 * parameters,
        "optimizer state": 8 * parameters,
        "activations": layers * layer + once + copies,
    }

# %% wrong: mixed ignored
# says: Look at mixed
def plan_bytes(parameters, layers, width, heads, context, vocabulary, batch, mixed):
    n, size = batch * context, 2 if mixed else 4
    layer = 4 * n * (2 * width + 4 + heads) + size * n * 14 * width
    once = 4 * (n * width + 2 * n + n * vocabulary + 1) + size * n * width
    copies = 2 * (12 * layers * width**2 + vocabulary * width) if mixed else 0
    return {
        "parameters": 4 * parameters,
        "gradients": 4 * parameters,
        "optimizer state": 8 * parameters,
        "activations": layers * 4 * n * (16 * width + 4 + heads) + 4 * (2 * n * width + 2 * n + n * vocabulary + 1),
    }

# %% wrong: the weights of attention kept
# says: Fused attention keeps no T
def plan_bytes(parameters, layers, width, heads, context, vocabulary, batch, mixed):
    n, size = batch * context, 2 if mixed else 4
    layer = 4 * n * (2 * width + 4 + heads) + size * n * 14 * width
    once = 4 * (n * width + 2 * n + n * vocabulary + 1) + size * n * width
    copies = 2 * (12 * layers * width**2 + vocabulary * width) if mixed else 0
    return {
        "parameters": 4 * parameters,
        "gradients": 4 * parameters,
        "optimizer state": 8 * parameters,
        "activations": layers * layer + once + copies + size * layers * batch * heads * context**2,
    }

# %% wrong: one layer
# says: The first table is for each layer
def plan_bytes(parameters, layers, width, heads, context, vocabulary, batch, mixed):
    n, size = batch * context, 2 if mixed else 4
    layer = 4 * n * (2 * width + 4 + heads) + size * n * 14 * width
    once = 4 * (n * width + 2 * n + n * vocabulary + 1) + size * n * width
    copies = 2 * (12 * layers * width**2 + vocabulary * width) if mixed else 0
    return {
        "parameters": 4 * parameters,
        "gradients": 4 * parameters,
        "optimizer state": 8 * parameters,
        "activations": layer + once + copies,
    }

# %% wrong: the loss's last number forgotten
# says: The loss keeps one number more
def plan_bytes(parameters, layers, width, heads, context, vocabulary, batch, mixed):
    n, size = batch * context, 2 if mixed else 4
    layer = 4 * n * (2 * width + 4 + heads) + size * n * 14 * width
    once = 4 * (n * width + 2 * n + n * vocabulary + 1) + size * n * width
    copies = 2 * (12 * layers * width**2 + vocabulary * width) if mixed else 0
    return {
        "parameters": 4 * parameters,
        "gradients": 4 * parameters,
        "optimizer state": 8 * parameters,
        "activations": layers * layer + once + copies - 4,
    }

# %% wrong: a loss in 16 bits
# says: The loss is computed in float32
def plan_bytes(parameters, layers, width, heads, context, vocabulary, batch, mixed):
    n, size = batch * context, 2 if mixed else 4
    layer = 4 * n * (2 * width + 4 + heads) + size * n * 14 * width
    once = 4 * (n * width + 2 * n + n * vocabulary + 1) + size * n * width
    copies = 2 * (12 * layers * width**2 + vocabulary * width) if mixed else 0
    return {
        "parameters": 4 * parameters,
        "gradients": 4 * parameters,
        "optimizer state": 8 * parameters,
        "activations": layers * layer + once + copies - (4 - size) * n * vocabulary,
    }

# %% wrong: the table not copied
# says: The table multiplies, too
def plan_bytes(parameters, layers, width, heads, context, vocabulary, batch, mixed):
    n, size = batch * context, 2 if mixed else 4
    layer = 4 * n * (2 * width + 4 + heads) + size * n * 14 * width
    once = 4 * (n * width + 2 * n + n * vocabulary + 1) + size * n * width
    copies = 2 * (12 * layers * width**2 + vocabulary * width) if mixed else 0
    return {
        "parameters": 4 * parameters,
        "gradients": 4 * parameters,
        "optimizer state": 8 * parameters,
        "activations": layers * layer + once + copies - (2 * vocabulary * width if mixed else 0),
    }

# %% wrong: numbers in place of bytes
# says: That counts numbers
def plan_bytes(parameters, layers, width, heads, context, vocabulary, batch, mixed):
    n, size = batch * context, 2 if mixed else 4
    layer = 4 * n * (2 * width + 4 + heads) + size * n * 14 * width
    once = 4 * (n * width + 2 * n + n * vocabulary + 1) + size * n * width
    copies = 2 * (12 * layers * width**2 + vocabulary * width) if mixed else 0
    return {
        "parameters": 4 * parameters,
        "gradients": 4 * parameters,
        "optimizer state": 8 * parameters,
        "activations": layers * n * (16 * width + 4 + heads) + 2 * n * width + 2 * n + n * vocabulary + 1,
    }

# %% wrong: keys of another name
# says: A dict with the keys
def plan_bytes(parameters, layers, width, heads, context, vocabulary, batch, mixed):
    return {"weights": 4 * parameters}

# %% wrong: places and norms copied
# says: Only what multiplies is copied
def plan_bytes(parameters, layers, width, heads, context, vocabulary, batch, mixed):
    n, size = batch * context, 2 if mixed else 4
    layer = 4 * n * (2 * width + 4 + heads) + size * n * 14 * width
    once = 4 * (n * width + 2 * n + n * vocabulary + 1) + size * n * width
    copies = 2 * (12 * layers * width**2 + vocabulary * width) if mixed else 0
    return {
        "parameters": 4 * parameters,
        "gradients": 4 * parameters,
        "optimizer state": 8 * parameters,
        "activations": layers * layer + once + (2 * parameters if mixed else 0),
    }

# %% wrong: no statistics in the layers
# says: Missing in each layer: statistics
def plan_bytes(parameters, layers, width, heads, context, vocabulary, batch, mixed):
    n, size = batch * context, 2 if mixed else 4
    layer = 4 * n * (2 * width + 4 + heads) + size * n * 14 * width
    once = 4 * (n * width + 2 * n + n * vocabulary + 1) + size * n * width
    copies = 2 * (12 * layers * width**2 + vocabulary * width) if mixed else 0
    return {
        "parameters": 4 * parameters,
        "gradients": 4 * parameters,
        "optimizer state": 8 * parameters,
        "activations": layers * layer + once + copies - layers * 16 * n,
    }

# %% right: a ledger of rows
def plan_bytes(parameters, layers, width, heads, context, vocabulary, batch, mixed):
    n = batch * context
    long, short = torch.float32.itemsize, (torch.bfloat16 if mixed else torch.float32).itemsize
    ledger = []
    for _ in range(layers):
        ledger += [(2 * n * width, long), (4 * n, long), (2 * n * width, short), (3 * n * width, short)]
        ledger += [(n * width, short), (n * heads, long), (8 * n * width, short)]
    ledger += [(n * width, long), (2 * n, long), (n * width, short), (n * vocabulary, long), (1, long)]
    if mixed:
        ledger.append((vocabulary * width, 2))
        ledger += [(12 * width * width, 2)] * layers
    kept = sum(numbers * size for numbers, size in ledger)
    fixed = {kind: count * long * parameters for kind, count in (("parameters", 1), ("gradients", 1), ("optimizer state", 2))}
    return fixed | {"activations": kept}

# %% right: per token
def plan_bytes(parameters, layers, width, heads, context, vocabulary, batch, mixed):
    if mixed:
        token = layers * (36 * width + 16 + 4 * heads) + 6 * width + 8 + 4 * vocabulary
        rest = 4 + 24 * layers * width**2 + 2 * vocabulary * width
    else:
        token, rest = layers * (64 * width + 16 + 4 * heads) + 8 * width + 8 + 4 * vocabulary, 4
    four = 4 * parameters
    return {"activations": batch * context * token + rest, "optimizer state": 2 * four, "gradients": four, "parameters": four}

# %% right: what float32 takes, less what is halved
def plan_bytes(parameters, layers, width, heads, context, vocabulary, batch, mixed):
    n = batch * context
    halved = n * width * (14 * layers + 1)
    kept = 4 * (halved + n * (layers * (2 * width + heads + 4) + width + 2 + vocabulary) + 1)
    if mixed:
        kept += -2 * halved + 2 * width * (12 * layers * width + vocabulary)
    return {
        "parameters": parameters * 4,
        "gradients": parameters * 4,
        "optimizer state": parameters * 8,
        "activations": kept,
    }

# %% wrong: 6N
# says: A weight counts if it multiplies: not places
def plan_work(layers, width, context, vocabulary):
    matrices, table, norms = layers * 12 * width**2, vocabulary * width, (4 * layers + 2) * width
    return {"parameters": matrices + table + context * width + norms, "FLOPs per token": 6 * (matrices + table + context * width + norms)}

# %% wrong: 6N and attention
# says: A weight counts if it multiplies: not places
def plan_work(layers, width, context, vocabulary):
    matrices, table, norms = layers * 12 * width**2, vocabulary * width, (4 * layers + 2) * width
    return {"parameters": matrices + table + context * width + norms, "FLOPs per token": 6 * (matrices + table + context * width + norms) + 12 * layers * width * context}

# %% wrong: attention left out
# says: Attention is missing
def plan_work(layers, width, context, vocabulary):
    matrices, table, norms = layers * 12 * width**2, vocabulary * width, (4 * layers + 2) * width
    return {"parameters": matrices + table + context * width + norms, "FLOPs per token": 6 * (matrices + table)}

# %% wrong: attention forward only
# says: Attention has a backward pass
def plan_work(layers, width, context, vocabulary):
    matrices, table, norms = layers * 12 * width**2, vocabulary * width, (4 * layers + 2) * width
    return {"parameters": matrices + table + context * width + norms, "FLOPs per token": 6 * (matrices + table) + 4 * layers * width * context}

# %% wrong: the table taken for a look-up
# says: looked up *and* multiplied
def plan_work(layers, width, context, vocabulary):
    matrices, table, norms = layers * 12 * width**2, vocabulary * width, (4 * layers + 2) * width
    return {"parameters": matrices + table + context * width + norms, "FLOPs per token": 6 * matrices + 12 * layers * width * context}

# %% wrong: the head counted again
# says: The table is the head: count it once
def plan_work(layers, width, context, vocabulary):
    matrices, table, norms = layers * 12 * width**2, vocabulary * width, (4 * layers + 2) * width
    return {"parameters": matrices + table + context * width + norms + table, "FLOPs per token": 6 * (matrices + table) + 12 * layers * width * context}

# %% wrong: no places
# says: The table of places is missing
def plan_work(layers, width, context, vocabulary):
    matrices, table, norms = layers * 12 * width**2, vocabulary * width, (4 * layers + 2) * width
    return {"parameters": matrices + table + norms, "FLOPs per token": 6 * (matrices + table) + 12 * layers * width * context}

# %% wrong: no last norm
# says: The LayerNorm at the end is missing
def plan_work(layers, width, context, vocabulary):
    matrices, table, norms = layers * 12 * width**2, vocabulary * width, (4 * layers + 2) * width
    return {"parameters": matrices + table + context * width + norms - 2 * width, "FLOPs per token": 6 * (matrices + table) + 12 * layers * width * context}

# %% wrong: norms of one vector
# says: A LayerNorm has two vectors
def plan_work(layers, width, context, vocabulary):
    matrices, table, norms = layers * 12 * width**2, vocabulary * width, (4 * layers + 2) * width
    return {"parameters": matrices + table + context * width + norms - norms // 2, "FLOPs per token": 6 * (matrices + table) + 12 * layers * width * context}

# %% wrong: no norms in the layers
# says: The layers' LayerNorms are missing
def plan_work(layers, width, context, vocabulary):
    matrices, table, norms = layers * 12 * width**2, vocabulary * width, (4 * layers + 2) * width
    return {"parameters": matrices + table + context * width + norms - 4 * layers * width, "FLOPs per token": 6 * (matrices + table) + 12 * layers * width * context}

# %% wrong: a feed-forward part of one matrix
# says: The feed-forward part has two matrices
def plan_work(layers, width, context, vocabulary):
    matrices, table, norms = layers * 12 * width**2, vocabulary * width, (4 * layers + 2) * width
    return {"parameters": matrices + table + context * width + norms - layers * 4 * width**2, "FLOPs per token": 6 * (matrices + table) + 12 * layers * width * context}

# %% wrong: qkv taken for d × d
# says: qkv is d × 3d
def plan_work(layers, width, context, vocabulary):
    matrices, table, norms = layers * 12 * width**2, vocabulary * width, (4 * layers + 2) * width
    return {"parameters": matrices + table + context * width + norms - layers * 2 * width**2, "FLOPs per token": 6 * (matrices + table) + 12 * layers * width * context}

# %% wrong: the forward pass
# says: That is the forward pass alone
def plan_work(layers, width, context, vocabulary):
    matrices, table, norms = layers * 12 * width**2, vocabulary * width, (4 * layers + 2) * width
    return {"parameters": matrices + table + context * width + norms, "FLOPs per token": (6 * (matrices + table) + 12 * layers * width * context) // 3}

# %% wrong: multiply-adds
# says: A multiply and an add are 2 FLOPs
def plan_work(layers, width, context, vocabulary):
    matrices, table, norms = layers * 12 * width**2, vocabulary * width, (4 * layers + 2) * width
    return {"parameters": matrices + table + context * width + norms, "FLOPs per token": (6 * (matrices + table) + 12 * layers * width * context) // 2}

# %% wrong: attention multiplies once
# says: Attention multiplies twice
def plan_work(layers, width, context, vocabulary):
    matrices, table, norms = layers * 12 * width**2, vocabulary * width, (4 * layers + 2) * width
    return {"parameters": matrices + table + context * width + norms, "FLOPs per token": 6 * (matrices + table) + 6 * layers * width * context}

# %% wrong: for a whole sequence
# says: For one token, not for a sequence
def plan_work(layers, width, context, vocabulary):
    matrices, table, norms = layers * 12 * width**2, vocabulary * width, (4 * layers + 2) * width
    return {"parameters": matrices + table + context * width + norms, "FLOPs per token": context * (6 * (matrices + table) + 12 * layers * width * context)}

# %% wrong: a pair
# says: A dict with the keys
def plan_work(layers, width, context, vocabulary):
    return 1728, 10464

# %% right: counted on the meta device
def plan_work(layers, width, context, vocabulary):
    with torch.device("meta"):
        layer = [nn.Linear(a * width, b * width, bias=False) for a, b in ((1, 3), (1, 1), (1, 4), (4, 1))]
        all_layers = layers * sum(m.weight.numel() for m in layer)
        table, places = nn.Embedding(vocabulary, width).weight.numel(), nn.Embedding(context, width).weight.numel()
        norms = (2 * layers + 1) * sum(p.numel() for p in nn.LayerNorm(width).parameters())
    return {
        "FLOPs per token": 6 * (all_layers + table) + 3 * layers * 2 * (context * width + context * width),
        "parameters": all_layers + table + places + norms,
    }

# %% right: layer after layer
def plan_work(layers, width, context, vocabulary):
    number, flops = vocabulary * width + 2 * width, 2 * vocabulary * width
    number += context * width
    for _ in range(layers):
        for rows, columns in [(width, 3 * width), (width, width), (width, 4 * width), (4 * width, width)]:
            number += rows * columns
            flops += 2 * rows * columns
        number += 4 * width
        flops += 4 * width * context
    return dict([("parameters", number), ("FLOPs per token", 3 * flops)])

# %% right: the formula with d factored out
def plan_work(layers, width, context, vocabulary):
    return {"parameters": width * (12 * layers * width + vocabulary + context + 4 * layers + 2), "FLOPs per token": 6 * width * (12 * layers * width + vocabulary + 2 * layers * context)}

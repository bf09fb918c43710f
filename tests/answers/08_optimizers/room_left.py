# %% wrong: no gradients
# says: and* their gradients take room
def room_left(shapes, memory):
    n = sum(math.prod(s) for s in shapes)
    kept = {'SGD': 0, 'momentum': n, 'AdaGrad': n, 'Lion': n, 'AdamW': 2 * n}
    kept['Adafactor'] = sum(sum(s) for s in shapes)
    return {name: memory - 4 * (n + k) for name, k in kept.items()}

# %% wrong: numbers, not bytes
# says: Each number takes 4 bytes
def room_left(shapes, memory):
    n = sum(math.prod(s) for s in shapes)
    kept = {'SGD': 0, 'momentum': n, 'AdaGrad': n, 'Lion': n, 'AdamW': 2 * n}
    kept['Adafactor'] = sum(sum(s) for s in shapes)
    return {name: memory - 1 * (2 * n + k) for name, k in kept.items()}

# %% wrong: two bytes each
# says: float32
def room_left(shapes, memory):
    n = sum(math.prod(s) for s in shapes)
    kept = {'SGD': 0, 'momentum': n, 'AdaGrad': n, 'Lion': n, 'AdamW': 2 * n}
    kept['Adafactor'] = sum(sum(s) for s in shapes)
    return {name: memory - 2 * (2 * n + k) for name, k in kept.items()}

# %% wrong: one number for AdamW
# says: two numbers for each parameter
def room_left(shapes, memory):
    n = sum(math.prod(s) for s in shapes)
    kept = {'SGD': 0, 'momentum': n, 'AdaGrad': n, 'Lion': n, 'AdamW': n}
    kept['Adafactor'] = sum(sum(s) for s in shapes)
    return {name: memory - 4 * (2 * n + k) for name, k in kept.items()}

# %% wrong: Adafactor keeps all
# says: Adafactor does not keep them all
def room_left(shapes, memory):
    n = sum(math.prod(s) for s in shapes)
    kept = {'SGD': 0, 'momentum': n, 'AdaGrad': n, 'Lion': n, 'AdamW': 2 * n}
    kept['Adafactor'] = n
    return {name: memory - 4 * (2 * n + k) for name, k in kept.items()}

# %% wrong: Adafactor keeps rows only
# says: each row *and*
def room_left(shapes, memory):
    n = sum(math.prod(s) for s in shapes)
    kept = {'SGD': 0, 'momentum': n, 'AdaGrad': n, 'Lion': n, 'AdamW': 2 * n}
    kept['Adafactor'] = sum(s[0] for s in shapes)
    return {name: memory - 4 * (2 * n + k) for name, k in kept.items()}

# %% wrong: Adafactor keeps columns only
# says: each row *and*
def room_left(shapes, memory):
    n = sum(math.prod(s) for s in shapes)
    kept = {'SGD': 0, 'momentum': n, 'AdaGrad': n, 'Lion': n, 'AdamW': 2 * n}
    kept['Adafactor'] = sum(s[-1] for s in shapes)
    return {name: memory - 4 * (2 * n + k) for name, k in kept.items()}

# %% wrong: Adafactor keeps nothing for vectors
# says: A vector has no rows and columns
def room_left(shapes, memory):
    n = sum(math.prod(s) for s in shapes)
    kept = {'SGD': 0, 'momentum': n, 'AdaGrad': n, 'Lion': n, 'AdamW': 2 * n}
    kept['Adafactor'] = sum(s[0] + s[1] for s in shapes if len(s) == 2)
    return {name: memory - 4 * (2 * n + k) for name, k in kept.items()}

# %% wrong: a vector as a matrix of one column
# says: A vector has no rows and columns
def room_left(shapes, memory):
    n = sum(math.prod(s) for s in shapes)
    kept = {'SGD': 0, 'momentum': n, 'AdaGrad': n, 'Lion': n, 'AdamW': 2 * n}
    kept['Adafactor'] = sum(s[0] + (s[1] if len(s) == 2 else 1) for s in shapes)
    return {name: memory - 4 * (2 * n + k) for name, k in kept.items()}

# %% wrong: what is needed
# says: wanted is what is left
def room_left(shapes, memory):
    n = sum(math.prod(s) for s in shapes)
    kept = {'SGD': 0, 'momentum': n, 'AdaGrad': n, 'Lion': n, 'AdamW': 2 * n}
    kept['Adafactor'] = sum(sum(s) for s in shapes)
    return {name: 4 * (2 * n + k) for name, k in kept.items()}

# %% wrong: what is missing
# says: The sign is the other way round
def room_left(shapes, memory):
    n = sum(math.prod(s) for s in shapes)
    kept = {'SGD': 0, 'momentum': n, 'AdaGrad': n, 'Lion': n, 'AdamW': 2 * n}
    kept['Adafactor'] = sum(sum(s) for s in shapes)
    return {name: 4 * (2 * n + k) - memory for name, k in kept.items()}

# %% wrong: never negative
# says: say by how much
def room_left(shapes, memory):
    n = sum(math.prod(s) for s in shapes)
    kept = {'SGD': 0, 'momentum': n, 'AdaGrad': n, 'Lion': n, 'AdamW': 2 * n}
    kept['Adafactor'] = sum(sum(s) for s in shapes)
    return {name: max(0, memory - 4 * (2 * n + k)) for name, k in kept.items()}

# %% wrong: two numbers for Lion
# says: parameters + gradients + state
def room_left(shapes, memory):
    n = sum(math.prod(s) for s in shapes)
    f = sum(sum(s) for s in shapes)
    return {
        k: memory - 4 * (2 * n + v)
        for k, v in {
            "SGD": 0,
            "momentum": n,
            "AdaGrad": n,
            "Lion": 2 * n,
            "AdamW": 2 * n,
            "Adafactor": f,
        }.items()
    }

# %% right: bytes per parameter
def room_left(shapes, memory):
    n = sum(math.prod(shape) for shape in shapes)
    left = {"SGD": memory - 8 * n, "momentum": memory - 12 * n, "AdamW": memory - 16 * n}
    left["AdaGrad"] = left["Lion"] = left["momentum"]
    factors = sum(s[0] + s[1] if len(s) == 2 else s[0] for s in shapes)
    left["Adafactor"] = left["SGD"] - 4 * factors
    return left

# %% right: shape by shape
def room_left(shapes, memory):
    left = dict.fromkeys(["AdamW", "Lion", "AdaGrad", "Adafactor", "momentum", "SGD"], memory)
    for shape in shapes:
        n = 1
        for size in shape:
            n *= size
        for name in left:
            left[name] -= 8 * n
        for name in ("Lion", "AdaGrad", "momentum"):
            left[name] -= 4 * n
        left["AdamW"] -= 8 * n
        left["Adafactor"] -= 4 * sum(shape)
    return left

# %% right: with meta tensors
def room_left(shapes, memory):
    made = [torch.empty(shape, device="meta") for shape in shapes]
    model = sum(t.numel() * t.element_size() for t in made)
    state = {"SGD": 0, "momentum": model, "AdaGrad": model, "Lion": model, "AdamW": 2 * model}
    state["Adafactor"] = sum(sum(t.shape) * t.element_size() for t in made)
    return {name: memory - 2 * model - kept for name, kept in state.items()}

# %% right: in numpy
def room_left(shapes, memory):
    n = sum(np.prod(s) for s in shapes)
    f = sum(np.sum(s) for s in shapes)
    return {
        k: memory - 4 * (2 * n + v)
        for k, v in {"SGD": 0, "momentum": n, "AdaGrad": n, "Lion": n, "AdamW": 2 * n, "Adafactor": f}.items()
    }

# %% wrong: one number for AdamW
# says: AdamW keeps two numbers
SIZE = {"float32": 4, "bfloat16": 2, "float16": 2, "float8": 1}
def bytes_per_parameter(parameters, gradients, optimizer, state="float32", master=None):
    numbers = {"SGD": 0, "momentum": 1, "AdamW": 1}[optimizer]
    return SIZE[parameters] + SIZE[gradients] + numbers * SIZE[state] + SIZE.get(master, 0)

# %% wrong: no optimizer
# says: That is without the optimizer
SIZE = {"float32": 4, "bfloat16": 2, "float16": 2, "float8": 1}
def bytes_per_parameter(parameters, gradients, optimizer, state="float32", master=None):
    return SIZE[parameters] + SIZE[gradients] + SIZE.get(master, 0)

# %% wrong: bits
# says: Those are bits
SIZE = {"float32": 32, "bfloat16": 16, "float16": 16, "float8": 8}
def bytes_per_parameter(parameters, gradients, optimizer, state="float32", master=None):
    numbers = {"SGD": 0, "momentum": 1, "AdamW": 2}[optimizer]
    return SIZE[parameters] + SIZE[gradients] + numbers * SIZE[state] + SIZE.get(master, 0)

# %% wrong: no master copy
# says: The master copy is missing
SIZE = {"float32": 4, "bfloat16": 2, "float16": 2, "float8": 1}
def bytes_per_parameter(parameters, gradients, optimizer, state="float32", master=None):
    numbers = {"SGD": 0, "momentum": 1, "AdamW": 2}[optimizer]
    return SIZE[parameters] + SIZE[gradients] + numbers * SIZE[state]

# %% wrong: the master copy in place of the parameters
# says: expected  16
SIZE = {"float32": 4, "bfloat16": 2, "float16": 2, "float8": 1}
def bytes_per_parameter(parameters, gradients, optimizer, state="float32", master=None):
    numbers = {"SGD": 0, "momentum": 1, "AdamW": 2}[optimizer]
    return SIZE[master or parameters] + SIZE[gradients] + numbers * SIZE[state] - 0

# %% wrong: a master copy of the parameters' dtype
# says: a dtype of its own
SIZE = {"float32": 4, "bfloat16": 2, "float16": 2, "float8": 1}
def bytes_per_parameter(parameters, gradients, optimizer, state="float32", master=None):
    numbers = {"SGD": 0, "momentum": 1, "AdamW": 2}[optimizer]
    copies = 2 if master else 1
    return copies * SIZE[parameters] + SIZE[gradients] + numbers * SIZE[state]

# %% wrong: always a master copy
# says: There is no master copy where master is None
SIZE = {"float32": 4, "bfloat16": 2, "float16": 2, "float8": 1}
def bytes_per_parameter(parameters, gradients, optimizer, state="float32", master=None):
    numbers = {"SGD": 0, "momentum": 1, "AdamW": 2}[optimizer]
    return SIZE[parameters] + SIZE[gradients] + numbers * SIZE[state] + SIZE[master or "float32"]

# %% wrong: the state in the parameters' dtype
# says: whatever the parameters are in
SIZE = {"float32": 4, "bfloat16": 2, "float16": 2, "float8": 1}
def bytes_per_parameter(parameters, gradients, optimizer, state="float32", master=None):
    numbers = {"SGD": 0, "momentum": 1, "AdamW": 2}[optimizer]
    return SIZE[parameters] + SIZE[gradients] + numbers * SIZE[parameters] + SIZE.get(master, 0)

# %% wrong: the state always in float32
# says: The argument `state` says float8
SIZE = {"float32": 4, "bfloat16": 2, "float16": 2, "float8": 1}
def bytes_per_parameter(parameters, gradients, optimizer, state="float32", master=None):
    numbers = {"SGD": 0, "momentum": 1, "AdamW": 2}[optimizer]
    return SIZE[parameters] + SIZE[gradients] + numbers * 4 + SIZE.get(master, 0)

# %% wrong: SGD keeps something
# says: Plain SGD keeps nothing
SIZE = {"float32": 4, "bfloat16": 2, "float16": 2, "float8": 1}
def bytes_per_parameter(parameters, gradients, optimizer, state="float32", master=None):
    numbers = 2 if optimizer == "AdamW" else 1
    return SIZE[parameters] + SIZE[gradients] + numbers * SIZE[state] + SIZE.get(master, 0)

# %% wrong: momentum keeps nothing
# says: Momentum keeps one number
SIZE = {"float32": 4, "bfloat16": 2, "float16": 2, "float8": 1}
def bytes_per_parameter(parameters, gradients, optimizer, state="float32", master=None):
    numbers = 2 if optimizer == "AdamW" else 0
    return SIZE[parameters] + SIZE[gradients] + numbers * SIZE[state] + SIZE.get(master, 0)

# %% wrong: no 8-bit numbers
# says: KeyError
SIZE = {"float32": 4, "bfloat16": 2, "float16": 2, None: 0}
def bytes_per_parameter(parameters, gradients, optimizer, state="float32", master=None):
    numbers = {"SGD": 0, "momentum": 1, "AdamW": 2}[optimizer]
    return SIZE[parameters] + SIZE[gradients] + numbers * SIZE[state] + SIZE[master]

# %% wrong: the gradients in the parameters' dtype
# says: The gradients have a dtype of their own
SIZE = {"float32": 4, "bfloat16": 2, "float16": 2, "float8": 1}
def bytes_per_parameter(parameters, gradients, optimizer, state="float32", master=None):
    numbers = {"SGD": 0, "momentum": 1, "AdamW": 2}[optimizer]
    return 2 * SIZE[parameters] + numbers * SIZE[state] + SIZE.get(master, 0)

# %% wrong: momentum keeps as much as AdamW
# says: Momentum keeps one number for each parameter, not two
SIZE = {"float32": 4, "bfloat16": 2, "float16": 2, "float8": 1}
def bytes_per_parameter(parameters, gradients, optimizer, state="float32", master=None):
    numbers = 0 if optimizer == "SGD" else 2
    return SIZE[parameters] + SIZE[gradients] + numbers * SIZE[state] + SIZE.get(master, 0)

# %% right: digits of the name
def bytes_per_parameter(parameters, gradients, optimizer, state="float32", master=None):
    kept = [parameters, gradients] + [state] * ["SGD", "momentum", "AdamW"].index(optimizer)
    kept += [] if master is None else [master]
    return sum(int("".join(c for c in name if c.isdigit())) for name in kept) // 8

# %% right: bits first, a float
def bytes_per_parameter(parameters, gradients, optimizer, state="float32", master=None):
    bits = 0.0
    for name in (parameters, gradients, master):
        bits += int(name.lstrip("bfloat")) if name else 0
    if optimizer != "SGD":
        bits += int(state.lstrip("bfloat")) * (2 if optimizer.startswith("Adam") else 1)
    return bits / 8

# %% right: PyTorch knows the sizes
def bytes_per_parameter(parameters, gradients, optimizer, state="float32", master=None):
    def size(name):
        return 1 if name == "float8" else getattr(torch, name).itemsize

    total = size(parameters) + size(gradients)
    match optimizer:
        case "momentum":
            total += size(state)
        case "AdamW":
            total += 2 * size(state)
    return total + (size(master) if master else 0)

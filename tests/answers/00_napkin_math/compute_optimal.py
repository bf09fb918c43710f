# %% wrong: no root
# says: The square root is missing
def compute_optimal(flops, tokens_per_parameter=20.0):
    parameters = flops / (6 * tokens_per_parameter)
    return parameters, tokens_per_parameter * parameters

# %% wrong: no six
# says: The 6 is missing
def compute_optimal(flops, tokens_per_parameter=20.0):
    parameters = math.sqrt(flops / tokens_per_parameter)
    return parameters, tokens_per_parameter * parameters

# %% wrong: the forward pass alone
# says: the forward pass alone
def compute_optimal(flops, tokens_per_parameter=20.0):
    parameters = math.sqrt(flops / (2 * tokens_per_parameter))
    return parameters, tokens_per_parameter * parameters

# %% wrong: swapped
# says: Parameters first
def compute_optimal(flops, tokens_per_parameter=20.0):
    parameters = math.sqrt(flops / (6 * tokens_per_parameter))
    return tokens_per_parameter * parameters, parameters

# %% wrong: as many tokens as parameters
# says: equally many tokens as parameters
def compute_optimal(flops, tokens_per_parameter=20.0):
    return math.sqrt(flops / 6), math.sqrt(flops / 6)

# %% wrong: always twenty
# says: the second argument asked for 5
def compute_optimal(flops, tokens_per_parameter=20.0):
    parameters = math.sqrt(flops / 120)
    return parameters, 20 * parameters

# %% wrong: twenty under the root
# says: the second argument asked for 5
def compute_optimal(flops, tokens_per_parameter=20.0):
    parameters = math.sqrt(flops / 120)
    return parameters, tokens_per_parameter * parameters

# %% wrong: from left to right
# says: 6 · parameters · tokens has to give the budget
def compute_optimal(flops, tokens_per_parameter=20.0):
    parameters = math.sqrt(flops / 6 * tokens_per_parameter)
    return parameters, tokens_per_parameter * parameters

# %% wrong: the ratio left out of the work
# says: The tokens per parameter are missing from the work
def compute_optimal(flops, tokens_per_parameter=20.0):
    parameters = math.sqrt(flops / 6)
    return parameters, tokens_per_parameter * parameters

# %% wrong: only the model
# says: Return both
def compute_optimal(flops, tokens_per_parameter=20.0):
    return math.sqrt(flops / (6 * tokens_per_parameter))

# %% wrong: the ratio for the tokens
# says: not the ratio
def compute_optimal(flops, tokens_per_parameter=20.0):
    return math.sqrt(flops / (6 * tokens_per_parameter)), tokens_per_parameter

# %% wrong: the root of the budget alone
# says: belong under the root
def compute_optimal(flops, tokens_per_parameter=20.0):
    parameters = math.sqrt(flops)
    return parameters, tokens_per_parameter * parameters

# %% wrong: whole numbers
# says: Do not round
def compute_optimal(flops, tokens_per_parameter=20.0):
    parameters = math.sqrt(flops / (6 * tokens_per_parameter))
    return int(parameters), int(tokens_per_parameter * parameters)

# %% wrong: the tokens first, and divided after the root
# says: their product too small
def compute_optimal(flops, tokens_per_parameter=20.0):
    tokens = math.sqrt(flops / 6)
    return tokens / tokens_per_parameter, tokens

# %% right: tokens first, powers, a list
def compute_optimal(flops, tokens_per_parameter=20.0):
    tokens = (flops * tokens_per_parameter / 6) ** 0.5
    return [flops / 6 / tokens, tokens]

# %% right: bisection
def compute_optimal(flops, tokens_per_parameter=20.0):
    low, high = 0.0, flops
    for _ in range(300):
        middle = (low + high) / 2
        if 6 * middle * tokens_per_parameter * middle < flops:
            low = middle
        else:
            high = middle
    return low, low * tokens_per_parameter

# %% right: tensors without dimensions
def compute_optimal(flops, tokens_per_parameter=20.0):
    n = torch.sqrt(torch.tensor(flops, dtype=torch.float64) / 6 / tokens_per_parameter)
    return n, n * tokens_per_parameter

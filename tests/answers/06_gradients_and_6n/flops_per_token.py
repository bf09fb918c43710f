# %% wrong: 6N
# says: That is 6N
def flops_per_token(parameters, layers, d, context, vocab, tied=False):
    return 6 * parameters

def six_n_error(parameters, layers, d, context, vocab, tied=False):
    return 0.0

# %% wrong: look-ups counted
# says: The table of embeddings is looked up
def flops_per_token(parameters, layers, d, context, vocab, tied=False):
    return 6 * parameters + 12 * layers * d * context

def six_n_error(parameters, layers, d, context, vocab, tied=False):
    exact = flops_per_token(parameters, layers, d, context, vocab, tied)
    return (6 * parameters - exact) / exact

# %% wrong: subtracts the table also where it is tied
# says: the one matrix is also the output layer
def flops_per_token(parameters, layers, d, context, vocab, tied=False):
    return 6 * (parameters - vocab * d) + 12 * layers * d * context

def six_n_error(parameters, layers, d, context, vocab, tied=False):
    exact = flops_per_token(parameters, layers, d, context, vocab, tied)
    return (6 * parameters - exact) / exact

# %% wrong: no output layer
# says: The output layer is a multiplication
def flops_per_token(parameters, layers, d, context, vocab, tied=False):
    return 6 * (parameters - (1 if tied else 2) * vocab * d) + 12 * layers * d * context

def six_n_error(parameters, layers, d, context, vocab, tied=False):
    exact = flops_per_token(parameters, layers, d, context, vocab, tied)
    return (6 * parameters - exact) / exact

# %% wrong: attention ignored
# says: Attention is missing
def flops_per_token(parameters, layers, d, context, vocab, tied=False):
    return 6 * (parameters if tied else parameters - vocab * d)

def six_n_error(parameters, layers, d, context, vocab, tied=False):
    exact = flops_per_token(parameters, layers, d, context, vocab, tied)
    return (6 * parameters - exact) / exact

# %% wrong: attention forward only
# says: That is attention's forward pass
def flops_per_token(parameters, layers, d, context, vocab, tied=False):
    return 6 * (parameters if tied else parameters - vocab * d) + 4 * layers * d * context

def six_n_error(parameters, layers, d, context, vocab, tied=False):
    exact = flops_per_token(parameters, layers, d, context, vocab, tied)
    return (6 * parameters - exact) / exact

# %% wrong: the square of the context
# says: one token looks at `context` others
def flops_per_token(parameters, layers, d, context, vocab, tied=False):
    return 6 * (parameters if tied else parameters - vocab * d) + 12 * layers * d * context**2

def six_n_error(parameters, layers, d, context, vocab, tied=False):
    exact = flops_per_token(parameters, layers, d, context, vocab, tied)
    return (6 * parameters - exact) / exact

# %% wrong: attention once
# says: Attention happens in each layer
def flops_per_token(parameters, layers, d, context, vocab, tied=False):
    return 6 * (parameters if tied else parameters - vocab * d) + 12 * d * context

def six_n_error(parameters, layers, d, context, vocab, tied=False):
    exact = flops_per_token(parameters, layers, d, context, vocab, tied)
    return (6 * parameters - exact) / exact

# %% wrong: causal attention halved
# says: is counted in full
def flops_per_token(parameters, layers, d, context, vocab, tied=False):
    return 6 * (parameters if tied else parameters - vocab * d) + 6 * layers * d * context

def six_n_error(parameters, layers, d, context, vocab, tied=False):
    exact = flops_per_token(parameters, layers, d, context, vocab, tied)
    return (6 * parameters - exact) / exact

# %% wrong: a whole sequence
# says: That is for a whole sequence
def flops_per_token(parameters, layers, d, context, vocab, tied=False):
    return context * (6 * (parameters if tied else parameters - vocab * d) + 12 * layers * d * context)

def six_n_error(parameters, layers, d, context, vocab, tied=False):
    exact = flops_per_token(parameters, layers, d, context, vocab, tied)
    return (6 * parameters - exact) / exact

# %% wrong: the sign
# says: The sign is the other way round
def flops_per_token(parameters, layers, d, context, vocab, tied=False):
    return 6 * (parameters if tied else parameters - vocab * d) + 12 * layers * d * context

def six_n_error(parameters, layers, d, context, vocab, tied=False):
    exact = flops_per_token(parameters, layers, d, context, vocab, tied)
    return (exact - 6 * parameters) / exact

# %% wrong: the sign lost
# says: The sign is the other way round
def flops_per_token(parameters, layers, d, context, vocab, tied=False):
    return 6 * (parameters if tied else parameters - vocab * d) + 12 * layers * d * context

def six_n_error(parameters, layers, d, context, vocab, tied=False):
    exact = flops_per_token(parameters, layers, d, context, vocab, tied)
    return abs(6 * parameters / exact - 1)

# %% wrong: a share of 6N
# says: Divide by what is exact
def flops_per_token(parameters, layers, d, context, vocab, tied=False):
    return 6 * (parameters if tied else parameters - vocab * d) + 12 * layers * d * context

def six_n_error(parameters, layers, d, context, vocab, tied=False):
    exact = flops_per_token(parameters, layers, d, context, vocab, tied)
    return 1 - exact / (6 * parameters)

# %% wrong: the ratio
# says: That is the ratio
def flops_per_token(parameters, layers, d, context, vocab, tied=False):
    return 6 * (parameters if tied else parameters - vocab * d) + 12 * layers * d * context

def six_n_error(parameters, layers, d, context, vocab, tied=False):
    return 6 * parameters / flops_per_token(parameters, layers, d, context, vocab, tied)

# %% wrong: the error never sees tied
# says: Did you pass `tied` on
def flops_per_token(parameters, layers, d, context, vocab, tied=False):
    return 6 * (parameters if tied else parameters - vocab * d) + 12 * layers * d * context

def six_n_error(parameters, layers, d, context, vocab, tied=False):
    exact = flops_per_token(parameters, layers, d, context, vocab)
    return (6 * parameters - exact) / exact

# %% wrong: 6N without the table
# says: 6N takes all parameters
def flops_per_token(parameters, layers, d, context, vocab, tied=False):
    return 6 * (parameters if tied else parameters - vocab * d) + 12 * layers * d * context

def six_n_error(parameters, layers, d, context, vocab, tied=False):
    exact = flops_per_token(parameters, layers, d, context, vocab, tied)
    return (6 * (parameters if tied else parameters - vocab * d) - exact) / exact

# %% right: counts a model's products
def flops_per_token(parameters, layers, d, context, vocab, tied=False):
    lookups = 0 if tied else d * vocab
    forward = 2 * (parameters - lookups)
    for _ in range(layers):
        forward += 2 * d * context  # scores
        forward += 2 * context * d  # weighted sum
    return 3 * forward

def six_n_error(parameters, layers, d, context, vocab, tied=False):
    return 6 * parameters / flops_per_token(parameters, layers, d, context, vocab, tied) - 1

# %% right: sequence first, then per token
def flops_per_token(parameters, layers, d, context, vocab, tied=False):
    sequence = 6 * context * (parameters - d * vocab * (not tied)) + 12 * layers * context**2 * d
    return sequence // context

def six_n_error(parameters, layers, d, context, vocab, tied=False):
    lookups, attention = 6 * d * vocab * (not tied), 12 * layers * d * context
    return (lookups - attention) / (6 * parameters - lookups + attention)

# %% right: as floats
def flops_per_token(parameters, layers, d, context, vocab, tied=False):
    n = float(parameters)
    if not tied:
        n -= float(vocab) * d
    return 6.0 * (n + 2.0 * layers * d * context)

def six_n_error(parameters, layers, d, context, vocab, tied=False):
    promised = 6.0 * parameters
    truth = flops_per_token(parameters, layers, d, context, vocab, tied=tied)
    return promised / truth - truth / truth

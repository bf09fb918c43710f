# %% wrong: no bias
# says: b is not added
def batched_linear(x, w, b):
    return x @ w

# %% wrong: transposes w
# says: w is transposed
def batched_linear(x, w, b):
    return x @ w.T + b

# %% wrong: the order of nn.Linear
# says: w is transposed
def batched_linear(x, w, b):
    return torch.nn.functional.linear(x, w, b)

# %% wrong: element by element
# says: * multiplies element by element
def batched_linear(x, w, b):
    return x * w + b

# %% wrong: loses the leading dimensions
# says: the leading dimensions are lost
def batched_linear(x, w, b):
    return x.reshape(-1, x.shape[-1]) @ w + b

# %% wrong: a loop over the batch
# says: That is a loop
def batched_linear(x, w, b):
    if x.dim() <= 1:
        return x @ w + b
    if x.shape[0] == 0:
        return torch.zeros(*x.shape[:-1], w.shape[1], dtype=x.dtype)
    return torch.stack([batched_linear(row, w, b) for row in x])

# %% wrong: two dimensions only
# says: RuntimeError
def batched_linear(x, w, b):
    return torch.mm(x, w) + b

# %% wrong: three dimensions at most
# says: Check it for x with one, two and four dimensions
def batched_linear(x, w, b):
    if x.dim() > 3:
        x = x.flatten(0, -3)
    return x @ w + b

# %% wrong: the other way round
# says: The order of a product matters
def batched_linear(x, w, b):
    return w @ x + b

# %% wrong: a bias for each row
# says: b is added along the wrong dimension
def batched_linear(x, w, b):
    return x @ w + b.unsqueeze(-1)

# %% wrong: adds the bias to x in place
# says: arguments changed
def batched_linear(x, w, b):
    y = x @ w + b
    b += 1
    return y

# %% right: einsum
def batched_linear(x, w, b):
    return torch.einsum("...i, io -> ...o", x, w) + b

# %% right: the functional layer
def batched_linear(x, w, b):
    return torch.nn.functional.linear(x, w.T, b)

# %% wrong: products by hand
# says: makes no product of matrices
def batched_linear(x, w, b):
    return (x.unsqueeze(-1) * w).sum(-2) + b

# %% right: flattened and unfolded, the last size inferred
def batched_linear(x, w, b):
    return (x.reshape(-1, x.shape[-1]) @ w).reshape(*x.shape[:-1], -1) + b

# %% right: flattened and unfolded
def batched_linear(x, w, b):
    flat = x.reshape(-1, w.shape[0])
    return torch.addmm(b, flat, w).reshape(*x.shape[:-1], w.shape[1])

# %% right: tensordot
def batched_linear(x, w, b):
    return b + torch.tensordot(x, w, dims=1)

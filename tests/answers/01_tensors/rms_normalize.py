# %% wrong: sum of squares
# says: root of the sum of squares
def rms_normalize(x, eps=1e-6):
    return x / (x.pow(2).sum(dim=-1, keepdim=True) + eps).sqrt()

# %% wrong: the vector's norm
# says: root of the sum of squares
def rms_normalize(x, eps=1e-6):
    return x / (x.norm(dim=-1, keepdim=True) + eps)

# %% wrong: no keepdim
# says: look at keepdim
def rms_normalize(x, eps=1e-6):
    return x / (x.pow(2).mean(dim=-1) + eps).sqrt()

# %% wrong: over the whole tensor
# says: one mean over the whole tensor
def rms_normalize(x, eps=1e-6):
    return x / (x.pow(2).mean() + eps).sqrt()

# %% wrong: no root
# says: The root is missing
def rms_normalize(x, eps=1e-6):
    return x / (x.pow(2).mean(dim=-1, keepdim=True) + eps)

# %% wrong: eps outside of the root
# says: eps is added to the root
def rms_normalize(x, eps=1e-6):
    return x / (x.pow(2).mean(dim=-1, keepdim=True).sqrt() + eps)

# %% wrong: no eps
# says: eps is ignored
def rms_normalize(x, eps=1e-6):
    return x / x.pow(2).mean(dim=-1, keepdim=True).sqrt()

# %% wrong: layer normalisation
# says: No mean is subtracted
def rms_normalize(x, eps=1e-6):
    return torch.nn.functional.layer_norm(x, x.shape[-1:], eps=eps)

# %% wrong: the first dimension
# says: averages over the first dimension
def rms_normalize(x, eps=1e-6):
    dim = -1 if x.shape == (2, 2) or x.dim() == 1 else 0
    return x * (x.pow(2).mean(dim=dim, keepdim=True) + eps).rsqrt()

# %% wrong: overwrites its argument
# says: Leave x as it is
def rms_normalize(x, eps=1e-6):
    x /= (x.pow(2).mean(dim=-1, keepdim=True) + eps).sqrt()
    return x

# %% wrong: an eps of its own
# says: eps is ignored
def rms_normalize(x, eps=1e-6):
    return x * (x.pow(2).mean(dim=-1, keepdim=True) + 1e-6).rsqrt()

# %% wrong: multiplies by the root
# says: Each row is divided by a number of its own
def rms_normalize(x, eps=1e-6):
    return x * (x.pow(2).mean(dim=-1, keepdim=True) + eps).sqrt()

# %% right: PyTorch's own
def rms_normalize(x, eps=1e-6):
    return torch.nn.functional.rms_norm(x, x.shape[-1:], eps=eps)

# %% right: einsum
def rms_normalize(x, eps=1e-6):
    square = torch.einsum("...d, ...d -> ...", x, x) / x.shape[-1]
    return x / (square + eps).sqrt().unsqueeze(-1)

# %% right: by the norm
def rms_normalize(x, eps=1e-6):
    d = x.size(-1)
    norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return x * torch.pow(norm**2 / d + eps, -0.5)

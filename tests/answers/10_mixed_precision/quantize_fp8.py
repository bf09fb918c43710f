# %% wrong: no scale
# says: No scale at all
def quantize_fp8(x, dtype=torch.float8_e4m3fn):
    return x.to(dtype), torch.tensor(1.0)

# %% wrong: the reciprocal, as some libraries store it
# says: That is its reciprocal
def quantize_fp8(x, dtype=torch.float8_e4m3fn):
    scale = torch.finfo(dtype).max / x.abs().max()
    return (x * scale).to(dtype), scale

# %% wrong: the largest becomes 1
# says: That makes the largest 1
def quantize_fp8(x, dtype=torch.float8_e4m3fn):
    scale = x.abs().max()
    return (x / scale).to(dtype), scale

# %% wrong: the sign counts
# says: The largest in *magnitude* counts
def quantize_fp8(x, dtype=torch.float8_e4m3fn):
    scale = x.max() / torch.finfo(dtype).max
    return (x / scale).to(dtype), scale

# %% wrong: zeros
# says: Zeros have no largest magnitude
def quantize_fp8(x, dtype=torch.float8_e4m3fn):
    scale = x.abs().max() / torch.finfo(dtype).max
    return (x / scale).to(dtype), scale

# %% wrong: from the mean
# says: not the mean
def quantize_fp8(x, dtype=torch.float8_e4m3fn):
    scale = x.abs().mean() / torch.finfo(dtype).max
    return (x / scale).to(dtype), scale if scale > 0 else 1.0

# %% wrong: a scale for each row
# says: One scale for the whole tensor
def quantize_fp8(x, dtype=torch.float8_e4m3fn):
    scale = x.abs().amax(dim=-1, keepdim=True) / torch.finfo(dtype).max
    scale = torch.where(scale > 0, scale, torch.ones_like(scale))
    scale = scale if scale.numel() > 1 else scale.squeeze()
    return (x / scale).to(dtype), scale

# %% wrong: E4M3 whatever was asked
# says: The formats have different largest numbers
def quantize_fp8(x, dtype=torch.float8_e4m3fn):
    largest = x.abs().max()
    scale = largest / 448 if largest > 0 else torch.tensor(1.0)
    return (x / scale).to(torch.float8_e4m3fn), scale

# %% wrong: codes are already multiplied back
# says: dtype of codes
def quantize_fp8(x, dtype=torch.float8_e4m3fn):
    largest = x.abs().max()
    scale = largest / torch.finfo(dtype).max if largest > 0 else torch.tensor(1.0)
    return (x / scale).to(dtype).float() * scale, scale

# %% wrong: multiplies by the scale
# says: Divide x by the scale
def quantize_fp8(x, dtype=torch.float8_e4m3fn):
    largest = x.abs().max()
    scale = largest / torch.finfo(dtype).max if largest > 0 else torch.tensor(1.0)
    return (x * scale).to(dtype), scale

# %% wrong: not scaled, only the scale returned
# says: The codes are not scaled
def quantize_fp8(x, dtype=torch.float8_e4m3fn):
    largest = x.abs().max()
    scale = largest / torch.finfo(dtype).max if largest > 0 else torch.tensor(1.0)
    return x.to(dtype), scale

# %% wrong: codes alone
# says: Return two things
def quantize_fp8(x, dtype=torch.float8_e4m3fn):
    return (x / x.abs().max() * torch.finfo(dtype).max).to(dtype)

# %% wrong: rounds to whole numbers first
# says: is each code the number of the format that is nearest
def quantize_fp8(x, dtype=torch.float8_e4m3fn):
    largest = x.abs().max()
    scale = largest / torch.finfo(dtype).max if largest > 0 else torch.tensor(1.0)
    return (x / scale).round().to(dtype), scale

# %% wrong: a tiny number keeps zeros from dividing by zero
# says: Zeros have the scale 1
def quantize_fp8(x, dtype=torch.float8_e4m3fn):
    scale = x.abs().max().clamp(min=1e-12) / torch.finfo(dtype).max
    return (x / scale).to(dtype), scale

# %% wrong: a scale with one dimension
# says: a tensor without dimensions
def quantize_fp8(x, dtype=torch.float8_e4m3fn):
    scale = (torch.where(x.any(), x.abs().max() / torch.finfo(dtype).max, 1.0)).reshape(1)
    return (x / scale).to(dtype), scale

# %% wrong: a power of two
# says: What becomes of the largest magnitude?
def quantize_fp8(x, dtype=torch.float8_e4m3fn):
    scale = 2.0 ** torch.ceil(torch.log2(x.abs().max() / torch.finfo(dtype).max))
    return (x / scale).to(dtype), scale

# %% wrong: divides in place
# says: Divide into a new tensor
def quantize_fp8(x, dtype=torch.float8_e4m3fn):
    amax = x.abs().max()
    scale = amax / torch.finfo(dtype).max if amax else torch.tensor(1.0)
    return x.div_(scale).to(dtype), scale

# %% right: a Python float
def quantize_fp8(x, dtype=torch.float8_e4m3fn):
    largest = max(x.max().item(), -x.min().item())
    scale = largest / torch.finfo(dtype).max or 1.0
    return (x / scale).to(dtype), scale

# %% right: multiplies by the reciprocal, and clamps
def quantize_fp8(x, dtype=torch.float8_e4m3fn):
    top = torch.finfo(dtype).max
    amax = x.abs().amax()
    scale = amax / top if amax else torch.ones(())
    return (x * (1 / scale)).clamp(-top, top).to(dtype), scale

# %% right: zeros apart
def quantize_fp8(x, dtype=torch.float8_e4m3fn):
    if not x.any():
        return torch.zeros_like(x, dtype=torch.float32).to(dtype), 1.0
    scale = torch.linalg.vector_norm(x, ord=math.inf) / torch.finfo(dtype).max
    return torch.div(x, scale).to(dtype), scale

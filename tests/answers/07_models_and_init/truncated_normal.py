# %% wrong: not cut
# says: Some lie beyond 3 std
def truncated_normal(shape, std, generator):
    return torch.randn(shape, generator=generator) * std

# %% wrong: cut at the values ±3
# says: Is the cut at ±3 · std
def truncated_normal(shape, std, generator):
    return nn.init.trunc_normal_(torch.empty(shape), std=std, a=-3, b=3, generator=generator)

# %% wrong: clamped
# says: clamping moves the tails
def truncated_normal(shape, std, generator):
    return (torch.randn(shape, generator=generator) * std).clamp(-3 * std, 3 * std)

# %% wrong: drawn again, once, and then clamped
# says: expected
def truncated_normal(shape, std, generator):
    x = torch.randn(shape, generator=generator)
    outside = x.abs() > 3
    x[outside] = torch.randn(int(outside.sum()), generator=generator).sign() * 3
    return x * std

# %% wrong: redrawn within ±2
# says: No number comes near 3 std
def truncated_normal(shape, std, generator):
    return nn.init.trunc_normal_(torch.empty(shape), std=std, a=-2 * std, b=2 * std, generator=generator)

# %% wrong: scaled up to make up for the cut
# says: Some lie beyond 3 std
def truncated_normal(shape, std, generator):
    x = nn.init.trunc_normal_(torch.empty(shape), a=-3, b=3, generator=generator)
    return x * std / 0.98658

# %% wrong: scaled up, and cut where it is right
# says: That has been scaled to std 1
def truncated_normal(shape, std, generator):
    wide = std / 0.98658 * 1.0035
    return nn.init.trunc_normal_(torch.empty(shape), std=wide, a=-3 * std, b=3 * std, generator=generator)

# %% wrong: uniform
# says: That is uniform
def truncated_normal(shape, std, generator):
    return (torch.rand(shape, generator=generator) * 2 - 1) * 3 * std

# %% wrong: forgets the generator
# says: Take all random numbers from `generator`
def truncated_normal(shape, std, generator):
    return nn.init.trunc_normal_(torch.empty(shape), std=std, a=-3 * std, b=3 * std)

# %% wrong: redraws with the global generator
# says: The global generator was used
def truncated_normal(shape, std, generator):
    x = torch.randn(shape, generator=generator)
    while (outside := x.abs() > 3).any():
        x[outside] = torch.randn(int(outside.sum()), generator=generator)
    torch.randn(1)
    return x * std

# %% wrong: seeds the generator anew
# says: do not seed the generator again
def truncated_normal(shape, std, generator):
    generator.manual_seed(generator.initial_seed())
    return nn.init.trunc_normal_(torch.empty(shape), std=std, a=-3 * std, b=3 * std, generator=generator)

# %% wrong: seeds the global generator from this one
# says: do not seed the generator again
def truncated_normal(shape, std, generator):
    torch.manual_seed(generator.initial_seed())
    return nn.init.trunc_normal_(torch.empty(shape), std=std, a=-3 * std, b=3 * std)

# %% wrong: half of the normal distribution
# says: expected
def truncated_normal(shape, std, generator):
    return nn.init.trunc_normal_(torch.empty(shape), std=std, a=-3 * std, b=3 * std, generator=generator).abs()

# %% wrong: a parameter
# says: requires_grad of the result
def truncated_normal(shape, std, generator):
    x = nn.Parameter(torch.empty(shape))
    return nn.init.trunc_normal_(x, std=std, a=-3 * std, b=3 * std, generator=generator)

# %% wrong: in double precision
# says: dtype of the result
def truncated_normal(shape, std, generator):
    x = torch.empty(shape, dtype=torch.float64)
    return nn.init.trunc_normal_(x, std=std, a=-3 * std, b=3 * std, generator=generator)

# %% wrong: what lies outside becomes 0
# says: Many are the same number
def truncated_normal(shape, std, generator):
    x = torch.randn(shape, generator=generator)
    x[x.abs() > 3] = 0
    return x * std

# %% wrong: redraws the few that lie outside with the global generator
# says: Take all random numbers from `generator`
def truncated_normal(shape, std, generator):
    x = torch.randn(shape, generator=generator)
    while (outside := x.abs() > 3).any():
        x[outside] = torch.randn(int(outside.sum()))
    return x * std

# %% right: PyTorch's own
def truncated_normal(shape, std, generator):
    x = torch.empty(*shape)
    nn.init.trunc_normal_(x, mean=0.0, std=std, a=-3 * std, b=3 * std, generator=generator)
    return x

# %% right: the inverse of the distribution function
def truncated_normal(shape, std, generator):
    share = math.erf(3 / math.sqrt(2))
    uniform = torch.rand(shape, generator=generator, dtype=torch.float64) * 2 - 1
    return (torch.erfinv(uniform * share) * math.sqrt(2) * std).float()

# %% right: one number at a time is slow, so all of them at a time, with where
def truncated_normal(shape, std, generator):
    x = torch.normal(0.0, std, tuple(shape), generator=generator)
    while True:
        outside = x.abs() > 3 * std
        if not outside.any():
            return x
        x = torch.where(outside, torch.normal(0.0, std, tuple(shape), generator=generator), x)

# %% right: draws too many, and keeps the first that lie inside
def truncated_normal(shape, std, generator):
    n = math.prod(shape)
    x = torch.randn(2 * n + 100, generator=generator)
    return std * x[x.abs() <= 3][:n].reshape(*shape)

# %% equivalent: numbers.abs() > 3 → numbers.abs() >= 3
# why: a number that is 3 exactly turns up once in millions of draws

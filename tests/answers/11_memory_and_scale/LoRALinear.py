# %% wrong: the base is not frozen
# says: Freeze the base
class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base, self.scale = base, alpha / rank
        out, into = base.weight.shape
        self.down = nn.Parameter(torch.randn(rank, into, dtype=base.weight.dtype) / into**0.5)
        self.up = nn.Parameter(torch.zeros(out, rank, dtype=base.weight.dtype))

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.down.T @ self.up.T)

    @torch.no_grad()
    def merged(self):
        return self.base.weight + self.scale * (self.up @ self.down)

# %% wrong: only the weight is frozen
# says: The bias, too
class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base, self.scale = base, alpha / rank
        base.weight.requires_grad_(False)
        out, into = base.weight.shape
        self.down = nn.Parameter(torch.randn(rank, into, dtype=base.weight.dtype) / into**0.5)
        self.up = nn.Parameter(torch.zeros(out, rank, dtype=base.weight.dtype))

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.down.T @ self.up.T)

    @torch.no_grad()
    def merged(self):
        return self.base.weight + self.scale * (self.up @ self.down)

# %% wrong: both begin with random numbers
# says: At first nothing has changed
class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base, self.scale = base.requires_grad_(False), alpha / rank
        out, into = base.weight.shape
        self.down = nn.Parameter(torch.randn(rank, into, dtype=base.weight.dtype) / into**0.5)
        self.up = nn.Parameter(torch.randn(out, rank, dtype=base.weight.dtype))

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.down.T @ self.up.T)

    @torch.no_grad()
    def merged(self):
        return self.base.weight + self.scale * (self.up @ self.down)

# %% wrong: both begin with zeros
# says: neither ever gets a gradient
class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base, self.scale = base.requires_grad_(False), alpha / rank
        out, into = base.weight.shape
        self.down = nn.Parameter(torch.zeros(rank, into, dtype=base.weight.dtype))
        self.up = nn.Parameter(torch.zeros(out, rank, dtype=base.weight.dtype))

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.down.T @ self.up.T)

    @torch.no_grad()
    def merged(self):
        return self.base.weight + self.scale * (self.up @ self.down)

# %% wrong: without alpha / rank
# says: The change is multiplied by alpha / rank
class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base = base.requires_grad_(False)
        out, into = base.weight.shape
        self.down = nn.Parameter(torch.randn(rank, into, dtype=base.weight.dtype) / into**0.5)
        self.up = nn.Parameter(torch.zeros(out, rank, dtype=base.weight.dtype))

    def forward(self, x):
        return self.base(x) + x @ self.down.T @ self.up.T

    @torch.no_grad()
    def merged(self):
        return self.base.weight + self.up @ self.down

# %% wrong: merged forgets the scale
# says: merged(): the change is multiplied by alpha / rank
class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base, self.scale = base.requires_grad_(False), alpha / rank
        out, into = base.weight.shape
        self.down = nn.Parameter(torch.randn(rank, into, dtype=base.weight.dtype) / into**0.5)
        self.up = nn.Parameter(torch.zeros(out, rank, dtype=base.weight.dtype))

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.down.T @ self.up.T)

    @torch.no_grad()
    def merged(self):
        return self.base.weight + self.up @ self.down

# %% wrong: merged changes the base
# says: merged() returns a new tensor
class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base, self.scale = base.requires_grad_(False), alpha / rank
        out, into = base.weight.shape
        self.down = nn.Parameter(torch.randn(rank, into, dtype=base.weight.dtype) / into**0.5)
        self.up = nn.Parameter(torch.zeros(out, rank, dtype=base.weight.dtype))

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.down.T @ self.up.T)

    @torch.no_grad()
    def merged(self):
        self.base.weight += self.scale * (self.up @ self.down)
        return self.base.weight

# %% wrong: shapes as one multiplies from the right
# says: as nn.Linear keeps its weights
class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base, self.scale = base.requires_grad_(False), alpha / rank
        out, into = base.weight.shape
        self.down = nn.Parameter(torch.randn(into, rank, dtype=base.weight.dtype) / into**0.5)
        self.up = nn.Parameter(torch.zeros(rank, out, dtype=base.weight.dtype))

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.down @ self.up)

    @torch.no_grad()
    def merged(self):
        return self.base.weight + self.scale * (self.down @ self.up).T

# %% wrong: always float32
# says: have the dtype of the base's weight
class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base, self.scale = base.requires_grad_(False), alpha / rank
        out, into = base.weight.shape
        self.down = nn.Parameter(torch.randn(rank, into) / into**0.5)
        self.up = nn.Parameter(torch.zeros(out, rank))

    def forward(self, x):
        down, up = self.down.to(x.dtype), self.up.to(x.dtype)
        return self.base(x) + self.scale * (x @ down.T @ up.T)

    @torch.no_grad()
    def merged(self):
        return self.base.weight + self.scale * (self.up @ self.down)

# %% wrong: standard deviation 1
# says: divided by √in
class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base, self.scale = base.requires_grad_(False), alpha / rank
        out, into = base.weight.shape
        self.down = nn.Parameter(torch.randn(rank, into, dtype=base.weight.dtype))
        self.up = nn.Parameter(torch.zeros(out, rank, dtype=base.weight.dtype))

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.down.T @ self.up.T)

    @torch.no_grad()
    def merged(self):
        return self.base.weight + self.scale * (self.up @ self.down)

# %% right: with einsum and normal_
class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base, self.rank, self.alpha = base, rank, alpha
        base.requires_grad_(False)
        w = base.weight
        self.down = nn.Parameter(torch.empty(rank, base.in_features, dtype=w.dtype, device=w.device))
        nn.init.normal_(self.down, std=base.in_features**-0.5)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank, dtype=w.dtype, device=w.device))

    def forward(self, x):
        change = torch.einsum("...i,ri,or->...o", x, self.down, self.up)
        return self.base(x) + change * self.alpha / self.rank

    def merged(self):
        change = torch.einsum("ri,or->oi", self.down, self.up)
        return (self.base.weight + change * self.alpha / self.rank).detach()

# %% right: the base's forward, and F.linear twice
class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base = base
        self.factor = alpha / rank
        for name, p in self.base.named_parameters():
            p.requires_grad = False
        w = base.weight
        self.register_parameter("down", nn.Parameter(torch.randn(rank, w.size(1)).to(w) * w.size(1) ** -0.5))
        self.register_parameter("up", nn.Parameter(torch.zeros(w.size(0), rank).to(w)))

    def forward(self, x):
        thin = nn.functional.linear(x, self.down)
        return self.base.forward(x) + nn.functional.linear(thin, self.factor * self.up)

    def merged(self):
        with torch.no_grad():
            return torch.addmm(self.base.weight, self.up, self.down, alpha=self.factor)

# %% right: computes with the merged weight
class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        base.requires_grad_(False)
        self.weight, self.bias, self.scale = base.weight, base.bias, alpha / rank
        self.down = nn.Parameter(torch.randn_like(base.weight[:1].repeat(rank, 1)) / base.in_features**0.5)
        self.up = nn.Parameter(torch.zeros_like(base.weight[:, :1].repeat(1, rank)))

    def forward(self, x):
        return nn.functional.linear(x, self.weight + self.scale * self.up @ self.down, self.bias)

    @torch.no_grad()
    def merged(self):
        return self.weight + self.scale * self.up @ self.down

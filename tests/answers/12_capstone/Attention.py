# %% wrong: no mask
# says: A token sees the future
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        q, k, v = rearrange(self.qkv(x), "b t (three h e) -> three b h t e", three=3, h=self.heads)
        y = F.scaled_dot_product_attention(q, k, v)
        return self.out(rearrange(y, "b h t e -> b t (h e)"))

# %% wrong: heads first, then q k v
# says: all queries, then all keys
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        q, k, v = rearrange(self.qkv(x), "b t (h three e) -> three b h t e", three=3, h=self.heads)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(rearrange(y, "b h t e -> b t (h e)"))

# %% wrong: heads take numbers in turn
# says: A head is a run of neighbouring numbers
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        q, k, v = rearrange(self.qkv(x), "b t (three e h) -> three b h t e", three=3, h=self.heads)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(rearrange(y, "b h t e -> b t (h e)"))

# %% wrong: merged in turn
# says: A head is a run of neighbouring numbers
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        q, k, v = rearrange(self.qkv(x), "b t (three h e) -> three b h t e", three=3, h=self.heads)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(rearrange(y, "b h t e -> b t (e h)"))

# %% wrong: out forgotten
# says: out is missing
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        q, k, v = rearrange(self.qkv(x), "b t (three h e) -> three b h t e", three=3, h=self.heads)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return rearrange(y, "b h t e -> b t (h e)")

# %% wrong: one head
# says: one of the whole width
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y)

# %% wrong: not scaled
# says: not scaled
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        q, k, v = rearrange(self.qkv(x), "b t (three h e) -> three b h t e", three=3, h=self.heads)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1.0)
        return self.out(rearrange(y, "b h t e -> b t (h e)"))

# %% wrong: scaled twice
# says: Scale once
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        q, k, v = rearrange(self.qkv(x), "b t (three h e) -> three b h t e", three=3, h=self.heads)
        q = q / math.sqrt(q.shape[-1])
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(rearrange(y, "b h t e -> b t (h e)"))

# %% wrong: scaled by the whole width
# says: Scale once
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        q, k, v = rearrange(self.qkv(x), "b t (three h e) -> three b h t e", three=3, h=self.heads)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=x.shape[-1] ** -0.5)
        return self.out(rearrange(y, "b h t e -> b t (h e)"))

# %% wrong: with biases
# says: Two nn.Linear layers without bias
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        q, k, v = rearrange(self.qkv(x), "b t (three h e) -> three b h t e", three=3, h=self.heads)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(rearrange(y, "b h t e -> b t (h e)"))

# %% wrong: three layers in place of one
# says: Two nn.Linear layers without bias
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.wq, self.wk, self.wv, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, x):
        q, k, v = (rearrange(f(x), "b t (h e) -> b h t e", h=self.heads) for f in (self.wq, self.wk, self.wv))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(rearrange(y, "b h t e -> b t (h e)"))

# %% wrong: weights spelled out
# says: T × T weights are kept
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        q, k, v = rearrange(self.qkv(x), "b t (three h e) -> three b h t e", three=3, h=self.heads)
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        y = scores.masked_fill(future, -math.inf).softmax(dim=-1) @ v
        return self.out(rearrange(y, "b h t e -> b t (h e)"))

# %% wrong: queries and keys exchanged
# says: Queries and keys are exchanged
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        k, q, v = rearrange(self.qkv(x), "b t (three h e) -> three b h t e", three=3, h=self.heads)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(rearrange(y, "b h t e -> b t (h e)"))

# %% wrong: a residual inside
# says: The residual belongs to the block
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        q, k, v = rearrange(self.qkv(x), "b t (three h e) -> three b h t e", three=3, h=self.heads)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(rearrange(y, "b h t e -> b t (h e)"))

# %% wrong: view in place of a merge
# says: expected
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        q, k, v = rearrange(self.qkv(x), "b t (three h e) -> three b h t e", three=3, h=self.heads)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.reshape(x.shape))

# %% right: unflatten, transpose, flatten
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))

# %% wrong: merged in the product, which copies
# says: or copies of q, k and v
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        q, k, v = rearrange(self.qkv(x), "b t (three h e) -> three b h t e", three=3, h=self.heads)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        
        weight = rearrange(self.out.weight, "d (h e) -> h e d", h=self.heads)
        return torch.einsum("bhte,hed->btd", y, weight)

# %% wrong: three dimensions, for which there is no fused operation
# says: T × T weights are kept
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        b = len(x)
        q, k, v = rearrange(self.qkv(x), "b t (three h e) -> three (b h) t e", three=3, h=self.heads)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(rearrange(y, "(b h) t e -> b t (h e)", b=b))

# %% right: split in two steps, and unbound
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.h = heads
        self.out = nn.Linear(width, width, bias=False)
        self.qkv = nn.Linear(width, 3 * width, bias=False)

    def forward(self, x):
        parts = rearrange(self.qkv(x), "b t (three h e) -> b three h t e", three=3, h=self.h).unbind(1)
        y = F.scaled_dot_product_attention(*parts, is_causal=True, scale=(x.shape[-1] / self.h) ** -0.5)
        return F.linear(rearrange(y, "b h t e -> b t (h e)"), self.out.weight)

# %% right: one name after the other
class Attention(nn.Module):
    def __init__(self, width, heads):
        nn.Module.__init__(self)
        self.heads, self.width = heads, width
        for name, outputs in (("qkv", 3 * width), ("out", width)):
            self.add_module(name, nn.Linear(width, outputs, bias=False))

    def forward(self, x):
        q, k, v = self.qkv(x).split(self.width, dim=-1)
        q = rearrange(q, "b t (h e) -> b h t e", h=self.heads)
        k = rearrange(k, "b t (h e) -> b h t e", h=self.heads)
        v = rearrange(v, "b t (h e) -> b h t e", h=self.heads)
        gathered = F.scaled_dot_product_attention(query=q, key=k, value=v, is_causal=True)
        return self.out(gathered.permute(0, 2, 1, 3).reshape(x.shape))

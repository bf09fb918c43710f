# %% wrong: dealt out
# says: That is (e h)
def split_heads(x, heads):
    return rearrange(x, "b t (e h) -> b h t e", h=heads)

def merge_heads(x):
    return rearrange(x, "b h t e -> b t (e h)")

# %% wrong: reshape alone
# says: reshape keeps reading order
def split_heads(x, heads):
    b, t, d = x.shape
    return x.reshape(b, heads, t, d // heads)

def merge_heads(x):
    b, h, t, e = x.shape
    return x.reshape(b, t, h * e)

# %% wrong: heads behind the tokens
# says: The heads come in front of the tokens
def split_heads(x, heads):
    return x.unflatten(-1, (heads, -1))

def merge_heads(x):
    return x.flatten(-2)

# %% wrong: a contiguous copy
# says: splitting needs no copy
def split_heads(x, heads):
    return rearrange(x, "b t (h e) -> b h t e", h=heads).contiguous()

def merge_heads(x):
    return rearrange(x, "b h t e -> b t (h e)")

# %% wrong: chunks stacked
# says: splitting needs no copy
def split_heads(x, heads):
    return torch.stack(x.chunk(heads, dim=-1), dim=1)

def merge_heads(x):
    return rearrange(x, "b h t e -> b t (h e)")

# %% wrong: merges without transposing
# says: The tokens must come back in front
def split_heads(x, heads):
    return rearrange(x, "b t (h e) -> b h t e", h=heads)

def merge_heads(x):
    b, h, t, e = x.shape
    return x.contiguous().view(b, t, h * e)

# %% wrong: merges heads with tokens
# says: The tokens must come back in front
def split_heads(x, heads):
    return rearrange(x, "b t (h e) -> b h t e", h=heads)

def merge_heads(x):
    return rearrange(x, "b h t e -> b (h t) e")

# %% wrong: only transposes back
# says: the last two are to become one
def split_heads(x, heads):
    return rearrange(x, "b t (h e) -> b h t e", h=heads)

def merge_heads(x):
    return x.transpose(1, 2)

# %% wrong: merges in the other order
# says: That merges as (e h)
def split_heads(x, heads):
    return rearrange(x, "b t (h e) -> b h t e", h=heads)

def merge_heads(x):
    return rearrange(x, "b h t e -> b t (e h)")

# %% wrong: views what was transposed
# says: view size is not compatible
def split_heads(x, heads):
    return rearrange(x, "b t (h e) -> b h t e", h=heads)

def merge_heads(x):
    b, h, t, e = x.shape
    return x.transpose(1, 2).view(b, t, h * e)

# %% wrong: heads taken for their length
# says: shape: got
def split_heads(x, heads):
    return rearrange(x, "b t (h e) -> b h t e", e=heads)

def merge_heads(x):
    return rearrange(x, "b h t e -> b t (h e)")

# %% wrong: batch and heads merged
# says: Wanted is [b, h, t, e]
def split_heads(x, heads):
    return rearrange(x, "b t (h e) -> (b h) t e", h=heads)
def merge_heads(x):
    return rearrange(x, "b h t e -> b t (h e)")

# %% right: the old way
def split_heads(x, heads):
    b, t, d = x.shape
    return x.view(b, t, heads, d // heads).transpose(1, 2)

def merge_heads(x):
    b, h, t, e = x.shape
    return x.transpose(1, 2).reshape(b, t, h * e)

# %% right: unflatten and concatenate
def split_heads(x, heads):
    return x.unflatten(2, (heads, -1)).movedim(2, 1)

def merge_heads(x):
    return torch.cat(x.unbind(dim=1), dim=-1)

# %% right: strides by hand
def split_heads(x, heads):
    b, t, d = x.shape
    e = d // heads
    sb, st, sd = x.stride()
    return x.as_strided((b, heads, t, e), (sb, e * sd, st, sd))

def merge_heads(x):
    return x.permute(0, 2, 1, 3).contiguous().flatten(2)

# %% right: windows
def split_heads(x, heads):
    e = x.shape[-1] // heads
    return x.unfold(-1, e, e).swapaxes(1, 2)

def merge_heads(x):
    return torch.einsum("bhte->bthe", x).flatten(-2, -1)

# %% wrong: a part that is a view
# says: Clone it
class SumBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return ctx.group.all_reduce(gradient), None


class SumForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        return group.all_reduce(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class ParallelMLP(nn.Module):
    def __init__(self, up, down, bias, group):
        super().__init__()
        self.group = group
        self.up = nn.Parameter(up.chunk(group.size, dim=0)[group.rank])
        self.down = nn.Parameter(down.chunk(group.size, dim=1)[group.rank])
        self.bias = nn.Parameter(bias.clone())

    def forward(self, x):
        hidden = nn.functional.gelu(SumBackward.apply(x, self.group) @ self.up.T)
        return SumForward.apply(hidden @ self.down.T, self.group) + self.bias

# %% wrong: down is cut by its outputs
# says: down by its columns
class SumBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return ctx.group.all_reduce(gradient), None


class SumForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        return group.all_reduce(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class ParallelMLP(nn.Module):
    def __init__(self, up, down, bias, group):
        super().__init__()
        self.group = group
        self.up = nn.Parameter(up.chunk(group.size, dim=0)[group.rank].clone())
        self.down = nn.Parameter(down.chunk(group.size, dim=0)[group.rank].clone())
        self.bias = nn.Parameter(bias.clone())

    def forward(self, x):
        hidden = nn.functional.gelu(SumBackward.apply(x, self.group) @ self.up.T)
        return SumForward.apply(hidden @ self.down.T, self.group) + self.bias

# %% wrong: up is cut by its inputs
# says: up is cut by its rows
class SumBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return ctx.group.all_reduce(gradient), None


class SumForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        return group.all_reduce(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class ParallelMLP(nn.Module):
    def __init__(self, up, down, bias, group):
        super().__init__()
        self.group = group
        self.up = nn.Parameter(up.chunk(group.size, dim=1)[group.rank].clone())
        self.down = nn.Parameter(down.chunk(group.size, dim=1)[group.rank].clone())
        self.bias = nn.Parameter(bias.clone())

    def forward(self, x):
        hidden = nn.functional.gelu(SumBackward.apply(x, self.group) @ self.up.T)
        return SumForward.apply(hidden @ self.down.T, self.group) + self.bias

# %% wrong: the terms are never added
# says: the terms of all have to be added, by SumForward
class SumBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return ctx.group.all_reduce(gradient), None


class SumForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        return group.all_reduce(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class ParallelMLP(nn.Module):
    def __init__(self, up, down, bias, group):
        super().__init__()
        self.group = group
        self.up = nn.Parameter(up.chunk(group.size, dim=0)[group.rank].clone())
        self.down = nn.Parameter(down.chunk(group.size, dim=1)[group.rank].clone())
        self.bias = nn.Parameter(bias.clone())

    def forward(self, x):
        hidden = nn.functional.gelu(SumBackward.apply(x, self.group) @ self.up.T)
        return hidden @ self.down.T + self.bias

# %% wrong: the bias is added on every rank
# says: add it after the sum
class SumBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return ctx.group.all_reduce(gradient), None


class SumForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        return group.all_reduce(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class ParallelMLP(nn.Module):
    def __init__(self, up, down, bias, group):
        super().__init__()
        self.group = group
        self.up = nn.Parameter(up.chunk(group.size, dim=0)[group.rank].clone())
        self.down = nn.Parameter(down.chunk(group.size, dim=1)[group.rank].clone())
        self.bias = nn.Parameter(bias.clone())

    def forward(self, x):
        hidden = nn.functional.gelu(SumBackward.apply(x, self.group) @ self.up.T)
        return SumForward.apply(hidden @ self.down.T + self.bias, self.group)

# %% wrong: nothing at the entrance
# says: by SumBackward on x
class SumBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return ctx.group.all_reduce(gradient), None


class SumForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        return group.all_reduce(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class ParallelMLP(nn.Module):
    def __init__(self, up, down, bias, group):
        super().__init__()
        self.group = group
        self.up = nn.Parameter(up.chunk(group.size, dim=0)[group.rank].clone())
        self.down = nn.Parameter(down.chunk(group.size, dim=1)[group.rank].clone())
        self.bias = nn.Parameter(bias.clone())

    def forward(self, x):
        hidden = nn.functional.gelu(x @ self.up.T)
        return SumForward.apply(hidden @ self.down.T, self.group) + self.bias

# %% wrong: sums the gradient of the output
# says: The gradient of the output is the same on all ranks already
class SumBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return ctx.group.all_reduce(gradient), None


class SumForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        return group.all_reduce(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class ParallelMLP(nn.Module):
    def __init__(self, up, down, bias, group):
        super().__init__()
        self.group = group
        self.up = nn.Parameter(up.chunk(group.size, dim=0)[group.rank].clone())
        self.down = nn.Parameter(down.chunk(group.size, dim=1)[group.rank].clone())
        self.bias = nn.Parameter(bias.clone())

    def forward(self, x):
        hidden = nn.functional.gelu(SumBackward.apply(x, self.group) @ self.up.T)
        term = SumBackward.apply(hidden @ self.down.T, self.group)
        return SumForward.apply(term, self.group) + self.bias

# %% wrong: sums the hidden numbers, too
# says: the output
class SumBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return ctx.group.all_reduce(gradient), None


class SumForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        return group.all_reduce(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class ParallelMLP(nn.Module):
    def __init__(self, up, down, bias, group):
        super().__init__()
        self.group = group
        self.up = nn.Parameter(up.chunk(group.size, dim=0)[group.rank].clone())
        self.down = nn.Parameter(down.chunk(group.size, dim=1)[group.rank].clone())
        self.bias = nn.Parameter(bias.clone())

    def forward(self, x):
        hidden = nn.functional.gelu(SumForward.apply(SumBackward.apply(x, self.group) @ self.up.T, self.group))
        return SumForward.apply(hidden @ self.down.T, self.group) + self.bias

# %% wrong: always the first part
# says: the output
class SumBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return ctx.group.all_reduce(gradient), None


class SumForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        return group.all_reduce(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class ParallelMLP(nn.Module):
    def __init__(self, up, down, bias, group):
        super().__init__()
        self.group = group
        self.up = nn.Parameter(up.chunk(group.size, dim=0)[0].clone())
        self.down = nn.Parameter(down.chunk(group.size, dim=1)[0].clone())
        self.bias = nn.Parameter(bias.clone())

    def forward(self, x):
        hidden = nn.functional.gelu(SumBackward.apply(x, self.group) @ self.up.T)
        return SumForward.apply(hidden @ self.down.T, self.group) + self.bias

# %% wrong: the bias is left out
# says: The bias is missing
class SumBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return ctx.group.all_reduce(gradient), None


class SumForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        return group.all_reduce(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class ParallelMLP(nn.Module):
    def __init__(self, up, down, bias, group):
        super().__init__()
        self.group = group
        self.up = nn.Parameter(up.chunk(group.size, dim=0)[group.rank].clone())
        self.down = nn.Parameter(down.chunk(group.size, dim=1)[group.rank].clone())
        self.bias = nn.Parameter(bias.clone())

    def forward(self, x):
        hidden = nn.functional.gelu(SumBackward.apply(x, self.group) @ self.up.T)
        return SumForward.apply(hidden @ self.down.T, self.group)

# %% right: slices, and einsum
class SumBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return ctx.group.all_reduce(gradient), None


class SumForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        return group.all_reduce(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class ParallelMLP(nn.Module):
    def __init__(self, up, down, bias, group):
        super().__init__()
        self.group = group
        n = len(up) // group.size
        mine = slice(group.rank * n, (group.rank + 1) * n)
        self.up, self.down = (nn.Parameter(part.clone()) for part in (up[mine], down[:, mine]))
        self.bias = nn.Parameter(bias)

    def forward(self, x):
        x = SumBackward.apply(x, self.group)
        hidden = nn.functional.gelu(torch.einsum("bd,hd->bh", x, self.up))
        return self.bias + SumForward.apply(torch.einsum("bh,dh->bd", hidden, self.down), self.group)

# %% right: F.linear, parts by unflatten
class SumBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return ctx.group.all_reduce(gradient), None


class SumForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        return group.all_reduce(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class ParallelMLP(nn.Module):
    def __init__(self, up, down, bias, group):
        super().__init__()
        self.group = group
        self.up = nn.Parameter(up.unflatten(0, (group.size, -1))[group.rank].clone())
        self.down = nn.Parameter(down.unflatten(1, (group.size, -1))[:, group.rank].clone())
        self.bias = nn.Parameter(bias.clone())

    def forward(self, x):
        F = nn.functional
        hidden = F.gelu(F.linear(SumBackward.apply(x, self.group), self.up))
        return SumForward.apply(F.linear(hidden, self.down), self.group) + self.bias

# %% right: GELU written out
class SumBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return ctx.group.all_reduce(gradient), None


class SumForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        return group.all_reduce(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class ParallelMLP(nn.Module):
    def __init__(self, up, down, bias, group):
        super().__init__()
        self.group = group
        self.up = nn.Parameter(up.chunk(group.size, dim=0)[group.rank].clone())
        self.down = nn.Parameter(down.chunk(group.size, dim=1)[group.rank].clone())
        self.bias = nn.Parameter(bias.clone())

    def forward(self, x):
        z = SumBackward.apply(x, self.group) @ self.up.mT
        hidden = z * 0.5 * (1 + torch.erf(z / math.sqrt(2)))
        total = SumForward.apply(torch.matmul(hidden, self.down.mT), self.group)
        return torch.add(total, self.bias)

# %% equivalent: up.chunk(group.size, dim=0) → up.chunk(group.size)
# why: chunk cuts along dim 0 if it is not told otherwise

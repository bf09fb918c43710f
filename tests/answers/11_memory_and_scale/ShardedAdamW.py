# %% wrong: sums the gradients
# says: The gradients are summed over the ranks
class ShardedAdamW:
    def __init__(self, params, group, lr=1e-3):
        self.params, self.group = list(params), group
        whole = self.padded([p.detach() for p in self.params])
        self.part = nn.Parameter(whole.chunk(group.size)[group.rank].clone())
        self.adamw = torch.optim.AdamW([self.part], lr=lr)

    def padded(self, tensors):
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        return nn.functional.pad(flat, (0, -len(flat) % self.group.size))

    @torch.no_grad()
    def step(self):
        self.part.grad = self.group.reduce_scatter(self.padded([p.grad for p in self.params]))
        self.adamw.step()
        whole = self.group.all_gather(self.part)
        start = 0
        for p in self.params:
            p.copy_(whole[start : start + p.numel()].view_as(p))
            start += p.numel()

# %% wrong: each rank steps with its own gradient
# says: average over the ranks
class ShardedAdamW:
    def __init__(self, params, group, lr=1e-3):
        self.params, self.group = list(params), group
        whole = self.padded([p.detach() for p in self.params])
        self.part = nn.Parameter(whole.chunk(group.size)[group.rank].clone())
        self.adamw = torch.optim.AdamW([self.part], lr=lr)

    def padded(self, tensors):
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        return nn.functional.pad(flat, (0, -len(flat) % self.group.size))

    @torch.no_grad()
    def step(self):
        flat = self.padded([p.grad for p in self.params])
        self.part.grad = flat.chunk(self.group.size)[self.group.rank].clone()
        self.adamw.step()
        whole = self.group.all_gather(self.part)
        start = 0
        for p in self.params:
            p.copy_(whole[start : start + p.numel()].view_as(p))
            start += p.numel()

# %% wrong: nothing is copied back
# says: Nothing has moved
class ShardedAdamW:
    def __init__(self, params, group, lr=1e-3):
        self.params, self.group = list(params), group
        whole = self.padded([p.detach() for p in self.params])
        self.part = nn.Parameter(whole.chunk(group.size)[group.rank].clone())
        self.adamw = torch.optim.AdamW([self.part], lr=lr)

    def padded(self, tensors):
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        return nn.functional.pad(flat, (0, -len(flat) % self.group.size))

    @torch.no_grad()
    def step(self):
        flat = self.padded([p.grad for p in self.params])
        self.part.grad = self.group.reduce_scatter(flat) / self.group.size
        self.adamw.step()
        self.group.all_gather(self.part)

# %% wrong: copies back its own part only
# says: this rank's part only
class ShardedAdamW:
    def __init__(self, params, group, lr=1e-3):
        self.params, self.group = list(params), group
        whole = self.padded([p.detach() for p in self.params])
        self.part = nn.Parameter(whole.chunk(group.size)[group.rank].clone())
        self.adamw = torch.optim.AdamW([self.part], lr=lr)

    def padded(self, tensors):
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        return nn.functional.pad(flat, (0, -len(flat) % self.group.size))

    @torch.no_grad()
    def step(self):
        flat = self.padded([p.grad for p in self.params])
        self.part.grad = self.group.reduce_scatter(flat) / self.group.size
        self.adamw.step()
        whole = self.padded(self.params)
        n = len(self.part)
        whole[self.group.rank * n : (self.group.rank + 1) * n] = self.part
        start = 0
        for p in self.params:
            p.copy_(whole[start : start + p.numel()].view_as(p))
            start += p.numel()

# %% wrong: takes the parameters to new memory
# says: the model holds them
class ShardedAdamW:
    def __init__(self, params, group, lr=1e-3):
        self.params, self.group = list(params), group
        whole = self.padded([p.detach() for p in self.params])
        self.part = nn.Parameter(whole.chunk(group.size)[group.rank].clone())
        self.adamw = torch.optim.AdamW([self.part], lr=lr)

    def padded(self, tensors):
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        return nn.functional.pad(flat, (0, -len(flat) % self.group.size))

    @torch.no_grad()
    def step(self):
        flat = self.padded([p.grad for p in self.params])
        self.part.grad = self.group.reduce_scatter(flat) / self.group.size
        self.adamw.step()
        whole = self.group.all_gather(self.part)
        start = 0
        for p in self.params:
            p.data = whole[start : start + p.numel()].view_as(p)
            start += p.numel()

# %% wrong: writes the averages into the gradients
# says: Leave the parameters' own .grad
class ShardedAdamW:
    def __init__(self, params, group, lr=1e-3):
        self.params, self.group = list(params), group
        whole = self.padded([p.detach() for p in self.params])
        self.part = nn.Parameter(whole.chunk(group.size)[group.rank].clone())
        self.adamw = torch.optim.AdamW([self.part], lr=lr)

    def padded(self, tensors):
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        return nn.functional.pad(flat, (0, -len(flat) % self.group.size))

    @torch.no_grad()
    def step(self):
        for p in self.params:
            p.grad.copy_(self.group.all_reduce(p.grad) / self.group.size)
        flat = self.padded([p.grad for p in self.params])
        self.part.grad = flat.chunk(self.group.size)[self.group.rank].clone()
        self.adamw.step()
        whole = self.group.all_gather(self.part)
        start = 0
        for p in self.params:
            p.copy_(whole[start : start + p.numel()].view_as(p))
            start += p.numel()

# %% wrong: keeps the whole state
# says: each rank keeps that of its part
class ShardedAdamW:
    def __init__(self, params, group, lr=1e-3):
        self.params, self.group = list(params), group
        whole = self.padded([p.detach() for p in self.params])
        self.part = nn.Parameter(whole.chunk(group.size)[group.rank].clone())
        self.adamw = torch.optim.AdamW([self.part], lr=lr)

    def padded(self, tensors):
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        return nn.functional.pad(flat, (0, -len(flat) % self.group.size))

    @torch.no_grad()
    def step(self):
        if not hasattr(self, "full"):
            self.full = nn.Parameter(self.padded([p.detach() for p in self.params]))
            self.adamw = torch.optim.AdamW([self.full], lr=self.adamw.defaults["lr"])
        flat = self.padded([p.grad for p in self.params])
        self.full.grad = self.group.all_reduce(flat) / self.group.size
        self.adamw.step()
        whole = self.full
        start = 0
        for p in self.params:
            p.copy_(whole[start : start + p.numel()].view_as(p))
            start += p.numel()

# %% wrong: only rank 0 calls the collective
# says: rank 1 has ended
class ShardedAdamW:
    def __init__(self, params, group, lr=1e-3):
        self.params, self.group = list(params), group
        whole = self.padded([p.detach() for p in self.params])
        self.part = nn.Parameter(whole.chunk(group.size)[group.rank].clone())
        self.adamw = torch.optim.AdamW([self.part], lr=lr)

    def padded(self, tensors):
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        return nn.functional.pad(flat, (0, -len(flat) % self.group.size))

    @torch.no_grad()
    def step(self):
        flat = self.padded([p.grad for p in self.params])
        if self.group.rank > 0:
            return
        self.part.grad = self.group.reduce_scatter(flat) / self.group.size
        self.adamw.step()
        whole = self.group.all_gather(self.part)
        start = 0
        for p in self.params:
            p.copy_(whole[start : start + p.numel()].view_as(p))
            start += p.numel()

# %% wrong: steps before the gradient is there
# says: parameters after each step
class ShardedAdamW:
    def __init__(self, params, group, lr=1e-3):
        self.params, self.group = list(params), group
        whole = self.padded([p.detach() for p in self.params])
        self.part = nn.Parameter(whole.chunk(group.size)[group.rank].clone())
        self.adamw = torch.optim.AdamW([self.part], lr=lr)

    def padded(self, tensors):
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        return nn.functional.pad(flat, (0, -len(flat) % self.group.size))

    @torch.no_grad()
    def step(self):
        self.adamw.step()
        flat = self.padded([p.grad for p in self.params])
        self.part.grad = self.group.reduce_scatter(flat) / self.group.size
        whole = self.group.all_gather(self.part)
        start = 0
        for p in self.params:
            p.copy_(whole[start : start + p.numel()].view_as(p))
            start += p.numel()

# %% right: an all_reduce, of which one part is used
class ShardedAdamW:
    def __init__(self, params, group, lr=1e-3):
        self.params, self.group = list(params), group
        whole = self.padded([p.detach() for p in self.params])
        self.part = nn.Parameter(whole.chunk(group.size)[group.rank].clone())
        self.adamw = torch.optim.AdamW([self.part], lr=lr)

    def padded(self, tensors):
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        return nn.functional.pad(flat, (0, -len(flat) % self.group.size))

    @torch.no_grad()
    def step(self):
        flat = self.padded(p.grad for p in self.params)
        mean = self.group.all_reduce(flat) / self.group.size
        n = self.part.numel()
        self.part.grad = mean[self.group.rank * n :][:n].clone()
        self.adamw.step()
        whole = self.group.all_gather(self.part.data)
        start = 0
        for p in self.params:
            p.copy_(whole[start : start + p.numel()].view_as(p))
            start += p.numel()

# %% right: PyTorch's own vector_to_parameters does the rest
class ShardedAdamW:
    def __init__(self, params, group, lr=1e-3):
        self.params, self.group = list(params), group
        whole = self.padded([p.detach() for p in self.params])
        self.part = nn.Parameter(whole.chunk(group.size)[group.rank].clone())
        self.adamw = torch.optim.AdamW([self.part], lr=lr)

    def padded(self, tensors):
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        return nn.functional.pad(flat, (0, -len(flat) % self.group.size))

    @torch.no_grad()
    def step(self):
        from torch.nn.utils import parameters_to_vector

        flat = parameters_to_vector([p.grad for p in self.params])
        flat = torch.cat([flat, flat.new_zeros(-len(flat) % self.group.size)])
        self.part.grad = self.group.reduce_scatter(flat).div_(self.group.size)
        self.adamw.step()
        whole = self.group.all_gather(self.part)[: sum(p.numel() for p in self.params)]
        pieces = whole.split([p.numel() for p in self.params])
        for p, piece in zip(self.params, pieces):
            p.data.copy_(piece.reshape(p.shape))

# %% right: divides before it sends, parameter by parameter
class ShardedAdamW:
    def __init__(self, params, group, lr=1e-3):
        self.params, self.group = list(params), group
        whole = self.padded([p.detach() for p in self.params])
        self.part = nn.Parameter(whole.chunk(group.size)[group.rank].clone())
        self.adamw = torch.optim.AdamW([self.part], lr=lr)

    def padded(self, tensors):
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        return nn.functional.pad(flat, (0, -len(flat) % self.group.size))

    @torch.no_grad()
    def step(self):
        flat = self.padded([p.grad / self.group.size for p in self.params])
        self.part.grad = self.group.reduce_scatter(flat)
        self.adamw.step()
        self.part.grad = None
        numbers = iter(self.group.all_gather(self.part).tolist())
        for p in self.params:
            new = [next(numbers) for _ in range(p.numel())]
            p.copy_(torch.tensor(new, dtype=p.dtype).view(p.shape))

# %% wrong: averages
# says: AdaGrad adds up the squares
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, {"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is None:
                    continue
                g, state = p.grad, self.state[p]
                if 'sum' not in state:
                    state['sum'] = torch.zeros_like(p)
                state['n'] = state.get('n', 0) + 1
                state['sum'] += (g**2 - state['sum']) / state['n']
                p -= group['lr'] * g / (state['sum'].sqrt() + group['eps'])

# %% wrong: forgets
# says: The sum is forgotten
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, {"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is None:
                    continue
                g, state = p.grad, self.state[p]
                if 'sum' not in state:
                    state['sum'] = torch.zeros_like(p)
                state['sum'] = g**2
                p -= group['lr'] * g / (state['sum'].sqrt() + group['eps'])

# %% wrong: eps inside the root
# says: eps stands outside the root
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, {"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is None:
                    continue
                g, state = p.grad, self.state[p]
                if 'sum' not in state:
                    state['sum'] = torch.zeros_like(p)
                state['sum'] += g**2
                p -= group['lr'] * g / (state['sum'] + group['eps']).sqrt()

# %% wrong: no root
# says: divide by its root
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, {"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is None:
                    continue
                g, state = p.grad, self.state[p]
                if 'sum' not in state:
                    state['sum'] = torch.zeros_like(p)
                state['sum'] += g**2
                p -= group['lr'] * g / (state['sum'] + group['eps'])

# %% wrong: no squares
# says: Sum up the squares
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, {"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is None:
                    continue
                g, state = p.grad, self.state[p]
                if 'sum' not in state:
                    state['sum'] = torch.zeros_like(p)
                state['sum'] += g.abs()
                p -= group['lr'] * g / (state['sum'] + group['eps'])

# %% wrong: no eps
# says: eps is missing
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, {"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is None:
                    continue
                g, state = p.grad, self.state[p]
                if 'sum' not in state:
                    state['sum'] = torch.zeros_like(p)
                state['sum'] += g**2
                p -= group['lr'] * g / state['sum'].sqrt()

# %% wrong: uphill
# says: points uphill
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, {"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is None:
                    continue
                g, state = p.grad, self.state[p]
                if 'sum' not in state:
                    state['sum'] = torch.zeros_like(p)
                state['sum'] += g**2
                p += group['lr'] * g / (state['sum'].sqrt() + group['eps'])

# %% wrong: settings of its own
# says: Settings come from the group
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, {"lr": lr, "eps": eps})
        self.lr, self.eps = lr, eps

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is None:
                    continue
                g, state = p.grad, self.state[p]
                if 'sum' not in state:
                    state['sum'] = torch.zeros_like(p)
                state['sum'] += g**2
                p -= self.lr * g / (state['sum'].sqrt() + self.eps)

# %% wrong: RMSProp
# says: expected
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, {"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is None:
                    continue
                g, state = p.grad, self.state[p]
                if 'sum' not in state:
                    state['sum'] = torch.zeros_like(p)
                state['sum'].mul_(0.9).add_(0.1 * g**2)
                p -= group['lr'] * g / (state['sum'].sqrt() + group['eps'])

# %% wrong: divides before it adds
# says: expected
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, {"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is None:
                    continue
                g, state = p.grad, self.state[p]
                if 'sum' not in state:
                    state['sum'] = torch.zeros_like(p)
                p -= group['lr'] * g / (state['sum'].sqrt() + group['eps'])
                state['sum'] += g**2

# %% wrong: one sum for equal shapes
# says: share one sum
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, {"lr": lr, "eps": eps})
        self.sums = {}

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is None:
                    continue
                s = self.sums.setdefault(p.shape, torch.zeros_like(p))
                s += p.grad**2
                self.state[p]['sum'] = s
                p -= group['lr'] * p.grad / (s.sqrt() + group['eps'])

# %% wrong: keeps the sums elsewhere
# says: keep all in self.state
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, {"lr": lr, "eps": eps})
        self.sums = {}

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is None:
                    continue
                s = self.sums.setdefault(p, torch.zeros_like(p))
                s += p.grad**2
                p -= group['lr'] * p.grad / (s.sqrt() + group['eps'])

# %% wrong: state also for those that never had a gradient
# says: needs no state
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, {"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                g, state = p.grad, self.state[p]
                if 'sum' not in state:
                    state['sum'] = torch.zeros_like(p)
                if g is None:
                    continue
                state['sum'] += g**2
                p -= group['lr'] * g / (state['sum'].sqrt() + group['eps'])

# %% wrong: does not skip
# says: Each parameter has its own sum
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, {"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                g, state = p.grad, self.state[p]
                if 'sum' not in state:
                    state['sum'] = torch.zeros_like(p)
                state['sum'] += g**2
                p -= group['lr'] * g / (state['sum'].sqrt() + group['eps'])

# %% wrong: squares the gradient in place
# says: Leave p.grad as it is
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, {"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is None:
                    continue
                g, state = p.grad, self.state[p]
                if 'sum' not in state:
                    state['sum'] = torch.zeros_like(p)
                h = g.clone()
                state['sum'] += g.pow_(2)
                p -= group['lr'] * h / (state['sum'].sqrt() + group['eps'])

# %% wrong: another name
# says: 'sum'
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, {"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is None:
                    continue
                g, state = p.grad, self.state[p]
                if 'total' not in state:
                    state['total'] = torch.zeros_like(p)
                state['total'] += g**2
                p -= group['lr'] * g / (state['total'].sqrt() + group['eps'])

# %% wrong: new memory
# says: gives the parameter new memory
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, {"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is None:
                    continue
                g, state = p.grad, self.state[p]
                if 'sum' not in state:
                    state['sum'] = torch.zeros_like(p)
                state['sum'] += g**2
                p.data = p - group['lr'] * g / (state['sum'].sqrt() + group['eps'])

# %% wrong: one norm for the whole tensor
# says: a sum of its own
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, defaults={"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "sum" not in state:
                    state["sum"] = torch.zeros_like(p)
                state["sum"] += p.grad.norm() ** 2
                p -= group["lr"] * p.grad / (state["sum"].sqrt() + group["eps"])

# %% wrong: one sum for the whole tensor
# says: a sum of its own
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, defaults={"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                state["sum"] = state.get("sum", 0) + (p.grad**2).sum()
                p -= group["lr"] * p.grad / (state["sum"].sqrt() + group["eps"])

# %% wrong: keeps the root
# says: Keep the sum itself
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, defaults={"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "sum" not in state:
                    state["sum"] = torch.zeros_like(p)
                state["sum"] = (state["sum"] ** 2 + p.grad**2).sqrt()
                p -= group["lr"] * p.grad / (state["sum"] + group["eps"])

# %% wrong: keeps the root, too
# says: Keep one tensor for p
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, defaults={"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "sum" not in state:
                    state["sum"] = torch.zeros_like(p)
                state["sum"] += p.grad**2
                state["root"] = state["sum"].sqrt()
                p -= group["lr"] * p.grad / (state["root"] + group["eps"])

# %% wrong: a sum in float32
# says: of its shape and dtype
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, defaults={"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["sum"] = torch.zeros(p.shape)
                state["sum"] += p.grad**2
                p -= group["lr"] * p.grad / (state["sum"].sqrt() + group["eps"])

# %% wrong: state from the beginning
# says: needs no state
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, defaults={"lr": lr, "eps": eps})
        for g in self.param_groups:
            for p in g["params"]:
                self.state[p]["sum"] = torch.zeros_like(p)

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                self.state[p]["sum"] += p.grad**2
                p -= group["lr"] * p.grad / (self.state[p]["sum"].sqrt() + group["eps"])

# %% right: addcmul_ and addcdiv_
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, {"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is None:
                    continue
                g, state = p.grad, self.state[p]
                if 'sum' not in state:
                    state['sum'] = torch.zeros_like(p)
                state['sum'].addcmul_(g, g)
                p.addcdiv_(g, state['sum'].sqrt().add_(group['eps']), value=-group['lr'])

# %% right: a new sum in each step
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, {"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is not None:
                    total = self.state[p].get('sum', 0) + p.grad.square()
                    self.state[p]['sum'] = total
                    p.sub_(group['lr'] * p.grad / (total**0.5 + group['eps']))

# %% right: counts its steps, too
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, {"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is None:
                    continue
                g, state = p.grad, self.state[p]
                if 'sum' not in state:
                    state['sum'] = torch.zeros_like(p)
                state['step'] = state.get('step', 0) + 1
                state['sum'] += g * g
                scale = group['lr'] / (torch.sqrt(state['sum']) + group['eps'])
                p.data.add_(-scale * g)

# %% right: number by number
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, defaults={"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "sum" not in state:
                    state["sum"] = torch.zeros_like(p)
                s, a, g = state["sum"].view(-1), p.view(-1), p.grad.reshape(-1)
                for i in range(len(a)):
                    s[i] += g[i] ** 2
                    a[i] -= group["lr"] * g[i] / (s[i] ** 0.5 + group["eps"])

# %% right: a new state in each step
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, defaults={"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                old = self.state[p].get("sum", torch.zeros_like(p))
                self.state[p] = {"sum": old + p.grad.square()}
                p.sub_(group["lr"] * p.grad / (self.state[p]["sum"] ** 0.5 + group["eps"]))

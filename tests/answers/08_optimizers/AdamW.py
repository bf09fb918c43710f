# %% wrong: no bias correction
# says: Both averages start at 0
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group['betas']
            lr, eps, wd = group['lr'], group['eps'], group['weight_decay']
            for p in group['params']:
                if p.grad is None:
                    continue
                s = self.state[p]
                if 'step' not in s:
                    s['step'] = 0
                    s['exp_avg'] = torch.zeros_like(p)
                    s['exp_avg_sq'] = torch.zeros_like(p)
                s['step'] += 1
                t = s['step']
                m, v = s['exp_avg'], s['exp_avg_sq']
                g = p.grad
                p *= 1 - lr * wd
                m.mul_(b1).add_(g, alpha=1 - b1)
                v.mul_(b2).add_(g * g, alpha=1 - b2)
                p -= lr * m / (v.sqrt() + eps)

# %% wrong: corrects one average
# says: Both averages start at 0
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group['betas']
            lr, eps, wd = group['lr'], group['eps'], group['weight_decay']
            for p in group['params']:
                if p.grad is None:
                    continue
                s = self.state[p]
                if 'step' not in s:
                    s['step'] = 0
                    s['exp_avg'] = torch.zeros_like(p)
                    s['exp_avg_sq'] = torch.zeros_like(p)
                s['step'] += 1
                t = s['step']
                m, v = s['exp_avg'], s['exp_avg_sq']
                g = p.grad
                p *= 1 - lr * wd
                m.mul_(b1).add_(g, alpha=1 - b1)
                v.mul_(b2).add_(g * g, alpha=1 - b2)
                p -= lr * m / ((v / (1 - b2**t)).sqrt() + eps)

# %% wrong: counts from 0
# says: so that t begins at 1
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group['betas']
            lr, eps, wd = group['lr'], group['eps'], group['weight_decay']
            for p in group['params']:
                if p.grad is None:
                    continue
                s = self.state[p]
                if 'step' not in s:
                    s['step'] = 0
                    s['exp_avg'] = torch.zeros_like(p)
                    s['exp_avg_sq'] = torch.zeros_like(p)
                t = s['step']
                s['step'] += 1
                m, v = s['exp_avg'], s['exp_avg_sq']
                g = p.grad
                p *= 1 - lr * wd
                m.mul_(b1).add_(g, alpha=1 - b1)
                v.mul_(b2).add_(g * g, alpha=1 - b2)
                p -= lr * (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + eps)

# %% wrong: does not count
# says: does not count up
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group['betas']
            lr, eps, wd = group['lr'], group['eps'], group['weight_decay']
            for p in group['params']:
                if p.grad is None:
                    continue
                s = self.state[p]
                if 'step' not in s:
                    s['step'] = 0
                    s['exp_avg'] = torch.zeros_like(p)
                    s['exp_avg_sq'] = torch.zeros_like(p)
                t = 1
                m, v = s['exp_avg'], s['exp_avg_sq']
                g = p.grad
                p *= 1 - lr * wd
                m.mul_(b1).add_(g, alpha=1 - b1)
                v.mul_(b2).add_(g * g, alpha=1 - b2)
                p -= lr * (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + eps)

# %% wrong: L2
# says: adds the decay to the gradient
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group['betas']
            lr, eps, wd = group['lr'], group['eps'], group['weight_decay']
            for p in group['params']:
                if p.grad is None:
                    continue
                s = self.state[p]
                if 'step' not in s:
                    s['step'] = 0
                    s['exp_avg'] = torch.zeros_like(p)
                    s['exp_avg_sq'] = torch.zeros_like(p)
                s['step'] += 1
                t = s['step']
                m, v = s['exp_avg'], s['exp_avg_sq']
                g = p.grad + wd * p

                m.mul_(b1).add_(g, alpha=1 - b1)
                v.mul_(b2).add_(g * g, alpha=1 - b2)
                p -= lr * (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + eps)

# %% wrong: decay without the learning rate
# says: The decay is multiplied by lr
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group['betas']
            lr, eps, wd = group['lr'], group['eps'], group['weight_decay']
            for p in group['params']:
                if p.grad is None:
                    continue
                s = self.state[p]
                if 'step' not in s:
                    s['step'] = 0
                    s['exp_avg'] = torch.zeros_like(p)
                    s['exp_avg_sq'] = torch.zeros_like(p)
                s['step'] += 1
                t = s['step']
                m, v = s['exp_avg'], s['exp_avg_sq']
                g = p.grad
                p *= 1 - wd
                m.mul_(b1).add_(g, alpha=1 - b1)
                v.mul_(b2).add_(g * g, alpha=1 - b2)
                p -= lr * (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + eps)

# %% wrong: no decay
# says: The weights have not shrunk
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group['betas']
            lr, eps, wd = group['lr'], group['eps'], group['weight_decay']
            for p in group['params']:
                if p.grad is None:
                    continue
                s = self.state[p]
                if 'step' not in s:
                    s['step'] = 0
                    s['exp_avg'] = torch.zeros_like(p)
                    s['exp_avg_sq'] = torch.zeros_like(p)
                s['step'] += 1
                t = s['step']
                m, v = s['exp_avg'], s['exp_avg_sq']
                g = p.grad

                m.mul_(b1).add_(g, alpha=1 - b1)
                v.mul_(b2).add_(g * g, alpha=1 - b2)
                p -= lr * (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + eps)

# %% wrong: shrinks after the step
# says: First shrink, then step
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group['betas']
            lr, eps, wd = group['lr'], group['eps'], group['weight_decay']
            for p in group['params']:
                if p.grad is None:
                    continue
                s = self.state[p]
                if 'step' not in s:
                    s['step'] = 0
                    s['exp_avg'] = torch.zeros_like(p)
                    s['exp_avg_sq'] = torch.zeros_like(p)
                s['step'] += 1
                t = s['step']
                m, v = s['exp_avg'], s['exp_avg_sq']
                g = p.grad
                m.mul_(b1).add_(g, alpha=1 - b1)
                v.mul_(b2).add_(g * g, alpha=1 - b2)
                p -= lr * (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + eps)
                p *= 1 - lr * wd

# %% wrong: eps inside the root
# says: eps stands outside the root
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group['betas']
            lr, eps, wd = group['lr'], group['eps'], group['weight_decay']
            for p in group['params']:
                if p.grad is None:
                    continue
                s = self.state[p]
                if 'step' not in s:
                    s['step'] = 0
                    s['exp_avg'] = torch.zeros_like(p)
                    s['exp_avg_sq'] = torch.zeros_like(p)
                s['step'] += 1
                t = s['step']
                m, v = s['exp_avg'], s['exp_avg_sq']
                g = p.grad
                p *= 1 - lr * wd
                m.mul_(b1).add_(g, alpha=1 - b1)
                v.mul_(b2).add_(g * g, alpha=1 - b2)
                p -= lr * (m / (1 - b1**t)) / (v / (1 - b2**t) + eps).sqrt()

# %% wrong: eps beside the uncorrected root
# says: beside the corrected root
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group['betas']
            lr, eps, wd = group['lr'], group['eps'], group['weight_decay']
            for p in group['params']:
                if p.grad is None:
                    continue
                s = self.state[p]
                if 'step' not in s:
                    s['step'] = 0
                    s['exp_avg'] = torch.zeros_like(p)
                    s['exp_avg_sq'] = torch.zeros_like(p)
                s['step'] += 1
                t = s['step']
                m, v = s['exp_avg'], s['exp_avg_sq']
                g = p.grad
                p *= 1 - lr * wd
                m.mul_(b1).add_(g, alpha=1 - b1)
                v.mul_(b2).add_(g * g, alpha=1 - b2)
                rate = lr * math.sqrt(1 - b2**t) / (1 - b1**t)
                p -= rate * m / (v.sqrt() + eps)

# %% wrong: betas swapped
# says: The betas are swapped
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b2, b1 = group['betas']
            lr, eps, wd = group['lr'], group['eps'], group['weight_decay']
            for p in group['params']:
                if p.grad is None:
                    continue
                s = self.state[p]
                if 'step' not in s:
                    s['step'] = 0
                    s['exp_avg'] = torch.zeros_like(p)
                    s['exp_avg_sq'] = torch.zeros_like(p)
                s['step'] += 1
                t = s['step']
                m, v = s['exp_avg'], s['exp_avg_sq']
                g = p.grad
                p *= 1 - lr * wd
                m.mul_(b1).add_(g, alpha=1 - b1)
                v.mul_(b2).add_(g * g, alpha=1 - b2)
                p -= lr * (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + eps)

# %% wrong: no root
# says: Divide by the root
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group['betas']
            lr, eps, wd = group['lr'], group['eps'], group['weight_decay']
            for p in group['params']:
                if p.grad is None:
                    continue
                s = self.state[p]
                if 'step' not in s:
                    s['step'] = 0
                    s['exp_avg'] = torch.zeros_like(p)
                    s['exp_avg_sq'] = torch.zeros_like(p)
                s['step'] += 1
                t = s['step']
                m, v = s['exp_avg'], s['exp_avg_sq']
                g = p.grad
                p *= 1 - lr * wd
                m.mul_(b1).add_(g, alpha=1 - b1)
                v.mul_(b2).add_(g * g, alpha=1 - b2)
                p -= lr * (m / (1 - b1**t)) / (v / (1 - b2**t) + eps)

# %% wrong: steps along the gradient
# says: Step along m
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group['betas']
            lr, eps, wd = group['lr'], group['eps'], group['weight_decay']
            for p in group['params']:
                if p.grad is None:
                    continue
                s = self.state[p]
                if 'step' not in s:
                    s['step'] = 0
                    s['exp_avg'] = torch.zeros_like(p)
                    s['exp_avg_sq'] = torch.zeros_like(p)
                s['step'] += 1
                t = s['step']
                m, v = s['exp_avg'], s['exp_avg_sq']
                g = p.grad
                p *= 1 - lr * wd
                m.mul_(b1).add_(g, alpha=1 - b1)
                v.mul_(b2).add_(g * g, alpha=1 - b2)
                p -= lr * g / ((v / (1 - b2**t)).sqrt() + eps)

# %% wrong: one counter for all
# says: counts its own steps
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        self.t = getattr(self, 't', 0) + 1
        for group in self.param_groups:
            b1, b2 = group['betas']
            lr, eps, wd = group['lr'], group['eps'], group['weight_decay']
            for p in group['params']:
                if p.grad is None:
                    continue
                s = self.state[p]
                if 'step' not in s:
                    s['step'] = 0
                    s['exp_avg'] = torch.zeros_like(p)
                    s['exp_avg_sq'] = torch.zeros_like(p)
                t = self.t
                s['step'] = t
                m, v = s['exp_avg'], s['exp_avg_sq']
                g = p.grad
                p *= 1 - lr * wd
                m.mul_(b1).add_(g, alpha=1 - b1)
                v.mul_(b2).add_(g * g, alpha=1 - b2)
                p -= lr * (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + eps)

# %% wrong: one counter for all, counted for each parameter
# says: counts its own steps
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group['betas']
            lr, eps, wd = group['lr'], group['eps'], group['weight_decay']
            for p in group['params']:
                if p.grad is None:
                    continue
                s = self.state[p]
                if 'step' not in s:
                    s['step'] = 0
                    s['exp_avg'] = torch.zeros_like(p)
                    s['exp_avg_sq'] = torch.zeros_like(p)
                self.t = getattr(self, 't', 0) + 1
                t = s['step'] = self.t
                m, v = s['exp_avg'], s['exp_avg_sq']
                g = p.grad
                p *= 1 - lr * wd
                m.mul_(b1).add_(g, alpha=1 - b1)
                v.mul_(b2).add_(g * g, alpha=1 - b2)
                p -= lr * (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + eps)

# %% wrong: shrinks also without gradient
# says: do not shrink either
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group['betas']
            lr, eps, wd = group['lr'], group['eps'], group['weight_decay']
            for p in group['params']:
                p *= 1 - lr * wd
                if p.grad is None:
                    continue
                s = self.state[p]
                if 'step' not in s:
                    s['step'] = 0
                    s['exp_avg'] = torch.zeros_like(p)
                    s['exp_avg_sq'] = torch.zeros_like(p)
                s['step'] += 1
                t = s['step']
                m, v = s['exp_avg'], s['exp_avg_sq']
                g = p.grad

                m.mul_(b1).add_(g, alpha=1 - b1)
                v.mul_(b2).add_(g * g, alpha=1 - b2)
                p -= lr * (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + eps)

# %% wrong: shared averages
# says: share their averages
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})
        self.averages = {}

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group['betas']
            for p in group['params']:
                if p.grad is None:
                    continue
                m, v = self.averages.setdefault(p.shape, (torch.zeros_like(p), torch.zeros_like(p)))
                s = self.state[p]
                s['step'] = s.get('step', 0) + 1
                s['exp_avg'], s['exp_avg_sq'] = m, v
                m.mul_(b1).add_(p.grad, alpha=1 - b1)
                v.mul_(b2).add_(p.grad**2, alpha=1 - b2)
                p *= 1 - group['lr'] * group['weight_decay']
                top = m / (1 - b1 ** s['step'])
                p -= group['lr'] * top / ((v / (1 - b2 ** s['step'])).sqrt() + group['eps'])

# %% wrong: keeps corrected averages
# says: expected
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group['betas']
            lr, eps, wd = group['lr'], group['eps'], group['weight_decay']
            for p in group['params']:
                if p.grad is None:
                    continue
                s = self.state[p]
                if 'step' not in s:
                    s['step'] = 0
                    s['exp_avg'] = torch.zeros_like(p)
                    s['exp_avg_sq'] = torch.zeros_like(p)
                s['step'] += 1
                t = s['step']
                m, v = s['exp_avg'], s['exp_avg_sq']
                g = p.grad
                p *= 1 - lr * wd
                m.mul_(b1).add_(g, alpha=1 - b1)
                v.mul_(b2).add_(g * g, alpha=1 - b2)
                m /= 1 - b1**t
                v /= 1 - b2**t
                p -= lr * m / (v.sqrt() + eps)

# %% wrong: step as a tensor
# says: Keep step as a plain int
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group['betas']
            lr, eps, wd = group['lr'], group['eps'], group['weight_decay']
            for p in group['params']:
                if p.grad is None:
                    continue
                s = self.state[p]
                if 'step' not in s:
                    s['step'] = torch.tensor(0.0)
                    s['exp_avg'] = torch.zeros_like(p)
                    s['exp_avg_sq'] = torch.zeros_like(p)
                s['step'] += 1
                t = s['step']
                m, v = s['exp_avg'], s['exp_avg_sq']
                g = p.grad
                p *= 1 - lr * wd
                m.mul_(b1).add_(g, alpha=1 - b1)
                v.mul_(b2).add_(g * g, alpha=1 - b2)
                t = t.item()
                p -= lr * (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + eps)

# %% wrong: changes the gradient
# says: Leave p.grad as it is
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group['betas']
            lr, eps, wd = group['lr'], group['eps'], group['weight_decay']
            for p in group['params']:
                if p.grad is None:
                    continue
                s = self.state[p]
                if 'step' not in s:
                    s['step'] = 0
                    s['exp_avg'] = torch.zeros_like(p)
                    s['exp_avg_sq'] = torch.zeros_like(p)
                s['step'] += 1
                t = s['step']
                m, v = s['exp_avg'], s['exp_avg_sq']
                g = p.grad
                p *= 1 - lr * wd
                m.mul_(b1).add_(g, alpha=1 - b1)
                v.mul_(b2).add_(g.pow_(2), alpha=1 - b2)
                p -= lr * (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + eps)

# %% wrong: new memory
# says: gives the parameter new memory
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group['betas']
            lr, eps, wd = group['lr'], group['eps'], group['weight_decay']
            for p in group['params']:
                if p.grad is None:
                    continue
                s = self.state[p]
                if 'step' not in s:
                    s['step'] = 0
                    s['exp_avg'] = torch.zeros_like(p)
                    s['exp_avg_sq'] = torch.zeros_like(p)
                s['step'] += 1
                t = s['step']
                m, v = s['exp_avg'], s['exp_avg_sq']
                g = p.grad
                p *= 1 - lr * wd
                m.mul_(b1).add_(g, alpha=1 - b1)
                v.mul_(b2).add_(g * g, alpha=1 - b2)
                p.data = p.data - lr * (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + eps)

# %% wrong: corrects v after its root
# says: before its root is taken
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            lr, eps, wd = group["lr"], group["eps"], group["weight_decay"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                s = self.state[p]
                if not s:
                    s["step"], s["exp_avg"], s["exp_avg_sq"] = 0, torch.zeros_like(p), torch.zeros_like(p)
                s["step"] += 1
                t = s["step"]
                p *= 1 - lr * wd
                s["exp_avg"].mul_(b1).add_(p.grad, alpha=1 - b1)
                s["exp_avg_sq"].mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
                p -= lr * (s["exp_avg"] / (1 - b1**t)) / (s["exp_avg_sq"].sqrt() / (1 - b2**t) + eps)

# %% wrong: the betas of the defaults
# says: group['betas']
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = self.defaults["betas"]
            lr, eps, wd = group["lr"], group["eps"], group["weight_decay"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                s = self.state[p]
                if not s:
                    s["step"], s["exp_avg"], s["exp_avg_sq"] = 0, torch.zeros_like(p), torch.zeros_like(p)
                s["step"] += 1
                t = s["step"]
                p *= 1 - lr * wd
                s["exp_avg"].mul_(b1).add_(p.grad, alpha=1 - b1)
                s["exp_avg_sq"].mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
                p -= lr * (s["exp_avg"] / (1 - b1**t)) / ((s["exp_avg_sq"] / (1 - b2**t)).sqrt() + eps)

# %% wrong: a sum of gradients in place of an average
# says: weights of sum 1
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            lr, eps, wd = group["lr"], group["eps"], group["weight_decay"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                s = self.state[p]
                if not s:
                    s["step"], s["exp_avg"], s["exp_avg_sq"] = 0, torch.zeros_like(p), torch.zeros_like(p)
                s["step"] += 1
                t = s["step"]
                p *= 1 - lr * wd
                s["exp_avg"].mul_(b1).add_(p.grad)
                s["exp_avg_sq"].mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
                p -= lr * (s["exp_avg"] / (1 - b1**t)) / ((s["exp_avg_sq"] / (1 - b2**t)).sqrt() + eps)

# %% wrong: divides by the largest average
# says: p ← p - lr
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            lr, eps, wd = group["lr"], group["eps"], group["weight_decay"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                s = self.state[p]
                if not s:
                    s["step"], s["exp_avg"], s["exp_avg_sq"] = 0, torch.zeros_like(p), torch.zeros_like(p)
                s["step"] += 1
                t = s["step"]
                p *= 1 - lr * wd
                s["exp_avg"].mul_(b1).add_(p.grad, alpha=1 - b1)
                s["exp_avg_sq"].mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
                s["max"] = torch.maximum(s.get("max", s["exp_avg_sq"]), s["exp_avg_sq"])
                p -= lr * (s["exp_avg"] / (1 - b1**t)) / ((s["max"] / (1 - b2**t)).sqrt() + eps)

# %% wrong: one counter for the group
# says: counts its own steps
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            lr, eps, wd = group["lr"], group["eps"], group["weight_decay"]
            group["t"] = group.get("t", 0) + 1
            for p in group["params"]:
                if p.grad is None:
                    continue
                s = self.state[p]
                if not s:
                    s["step"], s["exp_avg"], s["exp_avg_sq"] = 0, torch.zeros_like(p), torch.zeros_like(p)
                s["step"] = t = group["t"]
                p *= 1 - lr * wd
                s["exp_avg"].mul_(b1).add_(p.grad, alpha=1 - b1)
                s["exp_avg_sq"].mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
                p -= lr * (s["exp_avg"] / (1 - b1**t)) / ((s["exp_avg_sq"] / (1 - b2**t)).sqrt() + eps)

# %% right: lerp_, addcmul_ and addcdiv_
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group['betas']
            lr, eps, wd = group['lr'], group['eps'], group['weight_decay']
            for p in group['params']:
                if p.grad is None:
                    continue
                s = self.state[p]
                if 'step' not in s:
                    s['step'] = 0
                    s['exp_avg'] = torch.zeros_like(p)
                    s['exp_avg_sq'] = torch.zeros_like(p)
                s['step'] += 1
                t = s['step']
                m, v = s['exp_avg'], s['exp_avg_sq']
                g = p.grad
                p.mul_(1 - lr * wd)
                m.lerp_(g, 1 - b1)
                v.mul_(b2).addcmul_(g, g, value=1 - b2)
                root = (v.sqrt() / math.sqrt(1 - b2**t)).add_(eps)
                p.addcdiv_(m, root, value=-lr / (1 - b1**t))

# %% right: one expression, from the old weight
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group['betas']
            lr, eps, wd = group['lr'], group['eps'], group['weight_decay']
            for p in group['params']:
                if p.grad is None:
                    continue
                s = self.state[p]
                if 'step' not in s:
                    s['step'] = 0
                    s['exp_avg'] = torch.zeros_like(p)
                    s['exp_avg_sq'] = torch.zeros_like(p)
                s['step'] += 1
                t = s['step']
                m, v = s['exp_avg'], s['exp_avg_sq']
                g = p.grad
                m.mul_(b1).add_(g, alpha=1 - b1)
                v.mul_(b2).add_(g * g, alpha=1 - b2)
                p.copy_(p - lr * ((m / (1 - b1**t)) / (torch.sqrt(v / (1 - b2**t)) + eps) + wd * p))

# %% right: new averages in each step
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group['betas']
            for p in (p for p in group['params'] if p.grad is not None):
                s = self.state[p]
                t = s['step'] = s.get('step', 0) + 1
                s['exp_avg'] = b1 * s.get('exp_avg', 0) + (1 - b1) * p.grad
                s['exp_avg_sq'] = b2 * s.get('exp_avg_sq', 0) + (1 - b2) * p.grad.square()
                m, v = s['exp_avg'] / (1 - b1**t), s['exp_avg_sq'] / (1 - b2**t)
                p.data *= 1 - group['lr'] * group['weight_decay']
                p.data -= group['lr'] * m / (v**0.5 + group['eps'])

# %% right: in numpy
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            lr, eps, wd = group["lr"], group["eps"], group["weight_decay"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                s = self.state[p]
                if not s:
                    s["step"], s["exp_avg"], s["exp_avg_sq"] = 0, torch.zeros_like(p), torch.zeros_like(p)
                s["step"] += 1
                t = s["step"]
                m, v, a, g = s["exp_avg"].numpy(), s["exp_avg_sq"].numpy(), p.numpy(), p.grad.numpy()
                a *= 1 - lr * wd
                m[...] = b1 * m + (1 - b1) * g
                v[...] = b2 * v + (1 - b2) * g * g
                a -= lr * (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + eps)

# %% right: moves the averages towards the gradient
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            lr, eps, wd = group["lr"], group["eps"], group["weight_decay"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                s = self.state[p]
                if not s:
                    s["step"], s["exp_avg"], s["exp_avg_sq"] = 0, torch.zeros_like(p), torch.zeros_like(p)
                s["step"] += 1
                t = s["step"]
                p *= 1 - lr * wd
                s["exp_avg"] += (p.grad - s["exp_avg"]) * (1 - b1)
                s["exp_avg_sq"] += (p.grad**2 - s["exp_avg_sq"]) * (1 - b2)
                p -= lr * (s["exp_avg"] / (1 - b1**t)) / ((s["exp_avg_sq"] / (1 - b2**t)).sqrt() + eps)

# %% wrong: the loss is not scaled
# says: That is the loss as it was
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.factor, self.growth_interval, self.good_steps = factor, growth_interval, 0

    def scale(self, loss):
        return loss

    def step(self, optimizer):
        finite = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    finite &= p.grad.isfinite().all().item()
        if finite:
            optimizer.step()
            self.good_steps += 1
            if self.good_steps == self.growth_interval:
                self.factor *= 2
                self.good_steps = 0
        else:
            self.factor /= 2
            self.good_steps = 0
        return finite

    def state_dict(self):
        return {"factor": self.factor, "good_steps": self.good_steps, "growth_interval": self.growth_interval}

    def load_state_dict(self, state):
        self.factor = state["factor"]
        self.good_steps = state["good_steps"]
        self.growth_interval = state["growth_interval"]

# %% wrong: scale returns a number
# says: scale must return a tensor
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.factor, self.growth_interval, self.good_steps = factor, growth_interval, 0

    def scale(self, loss):
        return loss.item() * self.factor

    def step(self, optimizer):
        finite = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    finite &= p.grad.isfinite().all().item()
        if finite:
            optimizer.step()
            self.good_steps += 1
            if self.good_steps == self.growth_interval:
                self.factor *= 2
                self.good_steps = 0
        else:
            self.factor /= 2
            self.good_steps = 0
        return finite

    def state_dict(self):
        return {"factor": self.factor, "good_steps": self.good_steps, "growth_interval": self.growth_interval}

    def load_state_dict(self, state):
        self.factor = state["factor"]
        self.good_steps = state["good_steps"]
        self.growth_interval = state["growth_interval"]

# %% wrong: steps whatever the gradients are
# says: Look at all gradients of all groups
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.factor, self.growth_interval, self.good_steps = factor, growth_interval, 0

    def scale(self, loss):
        return loss * self.factor

    def step(self, optimizer):
        finite = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    finite &= p.grad.isfinite().all().item()
        finite = True
        if finite:
            optimizer.step()
            self.good_steps += 1
            if self.good_steps == self.growth_interval:
                self.factor *= 2
                self.good_steps = 0
        else:
            self.factor /= 2
            self.good_steps = 0
        return finite

    def state_dict(self):
        return {"factor": self.factor, "good_steps": self.good_steps, "growth_interval": self.growth_interval}

    def load_state_dict(self, state):
        self.factor = state["factor"]
        self.good_steps = state["good_steps"]
        self.growth_interval = state["growth_interval"]

# %% wrong: only the first group is checked
# says: Look at all gradients of all groups
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.factor, self.growth_interval, self.good_steps = factor, growth_interval, 0

    def scale(self, loss):
        return loss * self.factor

    def step(self, optimizer):
        finite = True
        for group in optimizer.param_groups[:1]:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    finite &= p.grad.isfinite().all().item()
        if finite:
            optimizer.step()
            self.good_steps += 1
            if self.good_steps == self.growth_interval:
                self.factor *= 2
                self.good_steps = 0
        else:
            self.factor /= 2
            self.good_steps = 0
        return finite

    def state_dict(self):
        return {"factor": self.factor, "good_steps": self.good_steps, "growth_interval": self.growth_interval}

    def load_state_dict(self, state):
        self.factor = state["factor"]
        self.good_steps = state["good_steps"]
        self.growth_interval = state["growth_interval"]

# %% wrong: infinity only
# says: NaN is not finite either
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.factor, self.growth_interval, self.good_steps = factor, growth_interval, 0

    def scale(self, loss):
        return loss * self.factor

    def step(self, optimizer):
        finite = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    finite &= (~p.grad.isinf()).all().item()
        if finite:
            optimizer.step()
            self.good_steps += 1
            if self.good_steps == self.growth_interval:
                self.factor *= 2
                self.good_steps = 0
        else:
            self.factor /= 2
            self.good_steps = 0
        return finite

    def state_dict(self):
        return {"factor": self.factor, "good_steps": self.good_steps, "growth_interval": self.growth_interval}

    def load_state_dict(self, state):
        self.factor = state["factor"]
        self.good_steps = state["good_steps"]
        self.growth_interval = state["growth_interval"]

# %% wrong: an overflow does not begin the count anew
# says: Good steps are counted *in a row*
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.factor, self.growth_interval, self.good_steps = factor, growth_interval, 0

    def scale(self, loss):
        return loss * self.factor

    def step(self, optimizer):
        finite = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    finite &= p.grad.isfinite().all().item()
        if finite:
            optimizer.step()
            self.good_steps += 1
            if self.good_steps == self.growth_interval:
                self.factor *= 2
                self.good_steps = 0
        else:
            self.factor /= 2
        return finite

    def state_dict(self):
        return {"factor": self.factor, "good_steps": self.good_steps, "growth_interval": self.growth_interval}

    def load_state_dict(self, state):
        self.factor = state["factor"]
        self.good_steps = state["good_steps"]
        self.growth_interval = state["growth_interval"]

# %% wrong: grows after each good step
# says: not after each
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.factor, self.growth_interval, self.good_steps = factor, growth_interval, 0

    def scale(self, loss):
        return loss * self.factor

    def step(self, optimizer):
        finite = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    finite &= p.grad.isfinite().all().item()
        if finite:
            optimizer.step()
            self.good_steps += 1
            if self.good_steps:
                self.factor *= 2
                self.good_steps = 0
        else:
            self.factor /= 2
            self.good_steps = 0
        return finite

    def state_dict(self):
        return {"factor": self.factor, "good_steps": self.good_steps, "growth_interval": self.growth_interval}

    def load_state_dict(self, state):
        self.factor = state["factor"]
        self.good_steps = state["good_steps"]
        self.growth_interval = state["growth_interval"]

# %% wrong: never grows
# says: The factor never grows again
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.factor, self.growth_interval, self.good_steps = factor, growth_interval, 0

    def scale(self, loss):
        return loss * self.factor

    def step(self, optimizer):
        finite = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    finite &= p.grad.isfinite().all().item()
        if finite:
            optimizer.step()
            self.good_steps += 1
            if self.good_steps == self.growth_interval:
                self.good_steps = 0
        else:
            self.factor /= 2
            self.good_steps = 0
        return finite

    def state_dict(self):
        return {"factor": self.factor, "good_steps": self.good_steps, "growth_interval": self.growth_interval}

    def load_state_dict(self, state):
        self.factor = state["factor"]
        self.good_steps = state["good_steps"]
        self.growth_interval = state["growth_interval"]

# %% wrong: never changes
# says: The factor never changes
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.factor, self.growth_interval, self.good_steps = factor, growth_interval, 0

    def scale(self, loss):
        return loss * self.factor

    def step(self, optimizer):
        finite = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    finite &= p.grad.isfinite().all().item()
        if finite:
            optimizer.step()
            self.good_steps += 1
            if self.good_steps == self.growth_interval:
                self.good_steps = 0
        else:
            self.good_steps = 0
        return finite

    def state_dict(self):
        return {"factor": self.factor, "good_steps": self.good_steps, "growth_interval": self.growth_interval}

    def load_state_dict(self, state):
        self.factor = state["factor"]
        self.good_steps = state["good_steps"]
        self.growth_interval = state["growth_interval"]

# %% wrong: never shrinks
# says: The factor is halved after an overflow
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.factor, self.growth_interval, self.good_steps = factor, growth_interval, 0

    def scale(self, loss):
        return loss * self.factor

    def step(self, optimizer):
        finite = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    finite &= p.grad.isfinite().all().item()
        if finite:
            optimizer.step()
            self.good_steps += 1
            if self.good_steps == self.growth_interval:
                self.factor *= 2
                self.good_steps = 0
        else:
            pass
            self.good_steps = 0
        return finite

    def state_dict(self):
        return {"factor": self.factor, "good_steps": self.good_steps, "growth_interval": self.growth_interval}

    def load_state_dict(self, state):
        self.factor = state["factor"]
        self.good_steps = state["good_steps"]
        self.growth_interval = state["growth_interval"]

# %% wrong: doubled after an overflow
# says: the factor is too large: halve it
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.factor, self.growth_interval, self.good_steps = factor, growth_interval, 0

    def scale(self, loss):
        return loss * self.factor

    def step(self, optimizer):
        finite = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    finite &= p.grad.isfinite().all().item()
        if finite:
            optimizer.step()
            self.good_steps += 1
            if self.good_steps == self.growth_interval:
                self.factor *= 2
                self.good_steps = 0
        else:
            self.factor *= 2
            self.good_steps = 0
        return finite

    def state_dict(self):
        return {"factor": self.factor, "good_steps": self.good_steps, "growth_interval": self.growth_interval}

    def load_state_dict(self, state):
        self.factor = state["factor"]
        self.good_steps = state["good_steps"]
        self.growth_interval = state["growth_interval"]

# %% wrong: the factor stays in the gradients
# says: The factor is still in the gradients
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.factor, self.growth_interval, self.good_steps = factor, growth_interval, 0

    def scale(self, loss):
        return loss * self.factor

    def step(self, optimizer):
        finite = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    finite &= p.grad.isfinite().all().item()
        if finite:
            optimizer.step()
            self.good_steps += 1
            if self.good_steps == self.growth_interval:
                self.factor *= 2
                self.good_steps = 0
        else:
            self.factor /= 2
            self.good_steps = 0
        return finite

    def state_dict(self):
        return {"factor": self.factor, "good_steps": self.good_steps, "growth_interval": self.growth_interval}

    def load_state_dict(self, state):
        self.factor = state["factor"]
        self.good_steps = state["good_steps"]
        self.growth_interval = state["growth_interval"]

# %% wrong: multiplies once more
# says: Divide by the factor; that multiplies
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.factor, self.growth_interval, self.good_steps = factor, growth_interval, 0

    def scale(self, loss):
        return loss * self.factor

    def step(self, optimizer):
        finite = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad *= self.factor
                    finite &= p.grad.isfinite().all().item()
        if finite:
            optimizer.step()
            self.good_steps += 1
            if self.good_steps == self.growth_interval:
                self.factor *= 2
                self.good_steps = 0
        else:
            self.factor /= 2
            self.good_steps = 0
        return finite

    def state_dict(self):
        return {"factor": self.factor, "good_steps": self.good_steps, "growth_interval": self.growth_interval}

    def load_state_dict(self, state):
        self.factor = state["factor"]
        self.good_steps = state["good_steps"]
        self.growth_interval = state["growth_interval"]

# %% wrong: returns nothing
# says: Return whether the optimizer stepped
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.factor, self.growth_interval, self.good_steps = factor, growth_interval, 0

    def scale(self, loss):
        return loss * self.factor

    def step(self, optimizer):
        finite = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    finite &= p.grad.isfinite().all().item()
        if finite:
            optimizer.step()
            self.good_steps += 1
            if self.good_steps == self.growth_interval:
                self.factor *= 2
                self.good_steps = 0
        else:
            self.factor /= 2
            self.good_steps = 0

    def state_dict(self):
        return {"factor": self.factor, "good_steps": self.good_steps, "growth_interval": self.growth_interval}

    def load_state_dict(self, state):
        self.factor = state["factor"]
        self.good_steps = state["good_steps"]
        self.growth_interval = state["growth_interval"]

# %% wrong: the count goes on after growing
# says: good_steps counts since the factor last changed
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.factor, self.growth_interval, self.good_steps = factor, growth_interval, 0

    def scale(self, loss):
        return loss * self.factor

    def step(self, optimizer):
        finite = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    finite &= p.grad.isfinite().all().item()
        if finite:
            optimizer.step()
            self.good_steps += 1
            if self.good_steps == self.growth_interval:
                self.factor *= 2
        else:
            self.factor /= 2
            self.good_steps = 0
        return finite

    def state_dict(self):
        return {"factor": self.factor, "good_steps": self.good_steps, "growth_interval": self.growth_interval}

    def load_state_dict(self, state):
        self.factor = state["factor"]
        self.good_steps = state["good_steps"]
        self.growth_interval = state["growth_interval"]

# %% wrong: good_steps counts nothing that a checkpoint keeps
# says: a restart before step
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.factor, self.growth_interval, self.good_steps = factor, growth_interval, 0

    def scale(self, loss):
        return loss * self.factor

    def step(self, optimizer):
        finite = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    finite &= p.grad.isfinite().all().item()
        if finite:
            optimizer.step()
            self.good_steps += 1
            if self.good_steps == self.growth_interval:
                self.factor *= 2
                self.good_steps = 0
        else:
            self.factor /= 2
            self.good_steps = 0
        return finite

    def state_dict(self):
        return {"factor": self.factor, "good_steps": self.good_steps, "growth_interval": self.growth_interval}

    def load_state_dict(self, state):
        self.factor = state["factor"]
        self.good_steps = 0
        self.growth_interval = state["growth_interval"]

# %% wrong: the interval is not in the state
# says: a restart before step
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.factor, self.growth_interval, self.good_steps = factor, growth_interval, 0

    def scale(self, loss):
        return loss * self.factor

    def step(self, optimizer):
        finite = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    finite &= p.grad.isfinite().all().item()
        if finite:
            optimizer.step()
            self.good_steps += 1
            if self.good_steps == self.growth_interval:
                self.factor *= 2
                self.good_steps = 0
        else:
            self.factor /= 2
            self.good_steps = 0
        return finite

    def state_dict(self):
        return {"factor": self.factor, "good_steps": self.good_steps}

    def load_state_dict(self, state):
        self.factor = state["factor"]
        self.good_steps = state["good_steps"]

# %% wrong: a missing gradient is an error
# says: NoneType
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.factor, self.growth_interval, self.good_steps = factor, growth_interval, 0

    def scale(self, loss):
        return loss * self.factor

    def step(self, optimizer):
        finite = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                p.grad /= self.factor
                finite &= p.grad.isfinite().all().item()
        if finite:
            optimizer.step()
            self.good_steps += 1
            if self.good_steps == self.growth_interval:
                self.factor *= 2
                self.good_steps = 0
        else:
            self.factor /= 2
            self.good_steps = 0
        return finite

    def state_dict(self):
        return {"factor": self.factor, "good_steps": self.good_steps, "growth_interval": self.growth_interval}

    def load_state_dict(self, state):
        self.factor = state["factor"]
        self.good_steps = state["good_steps"]
        self.growth_interval = state["growth_interval"]

# %% wrong: never below 1
# says: factors after overflows only
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.factor, self.growth_interval, self.good_steps = factor, growth_interval, 0

    def scale(self, loss):
        return loss * self.factor

    def step(self, optimizer):
        finite = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    finite = finite and not (p.grad.isinf() | p.grad.isnan()).any().item()
                    p.grad.mul_(1.0 / self.factor)
        if finite:
            optimizer.step()
            self.good_steps += 1
            if self.good_steps == self.growth_interval:
                self.factor *= 2
                self.good_steps = 0
        else:
            self.factor = max(self.factor / 2, 1.0)
            self.good_steps = 0
        return finite

    def state_dict(self):
        return {"factor": self.factor, "good_steps": self.good_steps, "growth_interval": self.growth_interval}

    def load_state_dict(self, state):
        self.factor = state["factor"]
        self.good_steps = state["good_steps"]
        self.growth_interval = state["growth_interval"]

# %% wrong: the state is the scaler's own dictionary
# says: The state changed after it was taken
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.factor, self.growth_interval, self.good_steps = factor, growth_interval, 0

    def scale(self, loss):
        return loss * self.factor

    def step(self, optimizer):
        grads = [p.grad for g in optimizer.param_groups for p in g["params"] if p.grad is not None]
        for grad in grads:
            grad /= self.factor
        fine = all(grad.isfinite().all().item() for grad in grads)
        if fine:
            optimizer.step()
            self.good_steps += 1
            if self.good_steps == self.growth_interval:
                self.factor, self.good_steps = self.factor * 2, 0
        else:
            self.factor, self.good_steps = self.factor / 2, 0
        return fine

    def state_dict(self):
        return vars(self)

    def load_state_dict(self, state):
        vars(self).update(state)

# %% wrong: a missing gradient becomes zeros
# says: is a parameter without a gradient left alone?
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.factor, self.growth_interval, self.good_steps = factor, growth_interval, 0

    def scale(self, loss):
        return loss * self.factor

    def step(self, optimizer):
        for g in optimizer.param_groups:
            for p in g["params"]:
                p.grad = torch.zeros_like(p) if p.grad is None else p.grad
        grads = [p.grad for g in optimizer.param_groups for p in g["params"] if p.grad is not None]
        for grad in grads:
            grad /= self.factor
        fine = all(grad.isfinite().all().item() for grad in grads)
        if fine:
            optimizer.step()
            self.good_steps += 1
            if self.good_steps == self.growth_interval:
                self.factor, self.good_steps = self.factor * 2, 0
        else:
            self.factor, self.good_steps = self.factor / 2, 0
        return fine

    def state_dict(self):
        return dict(vars(self))

    def load_state_dict(self, state):
        vars(self).update(state)

# %% wrong: the factor is halved before it is divided out
# says: before you adapt it
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.factor, self.growth_interval, self.good_steps = factor, growth_interval, 0

    def scale(self, loss):
        return loss * self.factor

    def step(self, optimizer):
        grads = [p.grad for g in optimizer.param_groups for p in g["params"] if p.grad is not None]
        for grad in grads:
            grad /= self.factor / 2
        fine = all(grad.isfinite().all().item() for grad in grads)
        if fine:
            optimizer.step()
            self.good_steps += 1
            if self.good_steps == self.growth_interval:
                self.factor, self.good_steps = self.factor * 2, 0
        else:
            self.factor, self.good_steps = self.factor / 2, 0
        return fine

    def state_dict(self):
        return dict(vars(self))

    def load_state_dict(self, state):
        vars(self).update(state)

# %% wrong: infinities are replaced by zeros
# says: one that is infinite is enough
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.factor, self.growth_interval, self.good_steps = factor, growth_interval, 0

    def scale(self, loss):
        return loss * self.factor

    def step(self, optimizer):
        grads = [p.grad for g in optimizer.param_groups for p in g["params"] if p.grad is not None]
        for grad in grads:
            grad /= self.factor
            grad.nan_to_num_(0.0, 0.0, 0.0)
        fine = all(grad.isfinite().all().item() for grad in grads)
        if fine:
            optimizer.step()
            self.good_steps += 1
            if self.good_steps == self.growth_interval:
                self.factor, self.good_steps = self.factor * 2, 0
        else:
            self.factor, self.good_steps = self.factor / 2, 0
        return fine

    def state_dict(self):
        return dict(vars(self))

    def load_state_dict(self, state):
        vars(self).update(state)

# %% wrong: gradients are cleared by the step
# says: grads, step
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.factor, self.growth_interval, self.good_steps = factor, growth_interval, 0

    def scale(self, loss):
        return loss * self.factor

    def step(self, optimizer):
        grads = [p.grad for g in optimizer.param_groups for p in g["params"] if p.grad is not None]
        for grad in grads:
            grad /= self.factor
        fine = all(grad.isfinite().all().item() for grad in grads)
        if fine:
            optimizer.step()
            optimizer.zero_grad()
            self.good_steps += 1
            if self.good_steps == self.growth_interval:
                self.factor, self.good_steps = self.factor * 2, 0
        else:
            self.factor, self.good_steps = self.factor / 2, 0
        return fine

    def state_dict(self):
        return dict(vars(self))

    def load_state_dict(self, state):
        vars(self).update(state)

# %% right: new gradients, and one list of them
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.factor = factor
        self.good_steps = 0
        self._interval = growth_interval

    def scale(self, loss):
        return self.factor * loss

    def step(self, optimizer):
        parameters = [p for g in optimizer.param_groups for p in g["params"] if p.grad is not None]
        for p in parameters:
            p.grad = p.grad / self.factor
        if any(not torch.isfinite(p.grad).all() for p in parameters):
            self.factor = self.factor * 0.5
            self.good_steps = 0
            return False
        optimizer.step()
        self.good_steps = (self.good_steps + 1) % self._interval
        if self.good_steps == 0:
            self.factor = self.factor * 2.0
        return True

    def state_dict(self):
        return {"scale": self.factor, "steps": self.good_steps, "every": self._interval}

    def load_state_dict(self, state):
        self.factor, self.good_steps, self._interval = state["scale"], state["steps"], state["every"]

# %% right: the sum tells, and the factor is kept as a power of two
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.power = math.log2(factor)
        self.growth_interval = growth_interval
        self.good_steps = 0

    @property
    def factor(self):
        return 2.0**self.power

    def scale(self, loss):
        return loss.mul(self.factor)

    def step(self, optimizer):
        total = 0.0
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.grad.div_(self.factor)
                total += p.grad.abs().sum().item()
        stepped = math.isfinite(total)
        if stepped:
            optimizer.step()
            self.good_steps += 1
        if not stepped or self.good_steps >= self.growth_interval:
            self.power += 1 if stepped else -1
            self.good_steps = 0
        return stepped

    def state_dict(self):
        return vars(self).copy()

    def load_state_dict(self, state):
        self.__dict__.update(state)

# %% right: checks the scaled gradients, and multiplies by the reciprocal
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.factor, self.growth_interval, self.good_steps = factor, growth_interval, 0

    def scale(self, loss):
        return loss * self.factor

    def step(self, optimizer):
        finite = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    finite = finite and not (p.grad.isinf() | p.grad.isnan()).any().item()
                    p.grad.mul_(1.0 / self.factor)
        if finite:
            optimizer.step()
            self.good_steps += 1
            if self.good_steps == self.growth_interval:
                self.factor *= 2
                self.good_steps = 0
        else:
            self.factor /= 2
            self.good_steps = 0
        return finite

    def state_dict(self):
        return {"factor": self.factor, "good_steps": self.good_steps, "growth_interval": self.growth_interval}

    def load_state_dict(self, state):
        self.factor = state["factor"]
        self.good_steps = state["good_steps"]
        self.growth_interval = state["growth_interval"]

# %% right: looks before it divides, and leaves a skipped step's gradients alone
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.factor, self.growth_interval, self.good_steps = factor, growth_interval, 0

    def scale(self, loss):
        return loss * self.factor

    def step(self, optimizer):
        finite = all(
            p.grad is None or bool(p.grad.isfinite().all())
            for group in optimizer.param_groups
            for p in group["params"]
        )
        for group in optimizer.param_groups if finite else []:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.mul_(1.0 / self.factor)
        if finite:
            optimizer.step()
            self.good_steps += 1
            if self.good_steps == self.growth_interval:
                self.factor *= 2
                self.good_steps = 0
        else:
            self.factor /= 2
            self.good_steps = 0
        return finite

    def state_dict(self):
        return {"factor": self.factor, "good_steps": self.good_steps, "growth_interval": self.growth_interval}

    def load_state_dict(self, state):
        self.factor = state["factor"]
        self.good_steps = state["good_steps"]
        self.growth_interval = state["growth_interval"]

# %% right: a skipped step clears the gradients
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.factor, self.growth_interval, self.good_steps = factor, growth_interval, 0

    def scale(self, loss):
        return loss * self.factor

    def step(self, optimizer):
        grads = [p.grad for g in optimizer.param_groups for p in g["params"] if p.grad is not None]
        for grad in grads:
            grad /= self.factor
        fine = all(grad.isfinite().all().item() for grad in grads)
        if fine:
            optimizer.step()
            self.good_steps += 1
            if self.good_steps == self.growth_interval:
                self.factor, self.good_steps = self.factor * 2, 0
        else:
            self.factor, self.good_steps = self.factor / 2, 0
            optimizer.zero_grad()
        return fine

    def state_dict(self):
        return dict(vars(self))

    def load_state_dict(self, state):
        vars(self).update(state)

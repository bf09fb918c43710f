# %% wrong: ignores lr_at
# says: The optimizer's own learning rate was used
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    losses = []
    for step in steps:
        inputs, targets = next_batch()
        loss = loss_fn(model(inputs), targets)
        if not torch.isfinite(loss):
            raise FloatingPointError(f"step {step}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses

# %% wrong: ignores loss_fn
# says: wanted is loss_fn, whatever it is
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        inputs, targets = next_batch()
        loss = F.mse_loss(model(inputs), targets)
        if not torch.isfinite(loss):
            raise FloatingPointError(f"step {step}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses

# %% wrong: only the first group
# says: Only the first parameter group got the learning rate
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    losses = []
    for step in steps:
        optimizer.param_groups[0]["lr"] = lr_at(step)
        inputs, targets = next_batch()
        loss = loss_fn(model(inputs), targets)
        if not torch.isfinite(loss):
            raise FloatingPointError(f"step {step}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses

# %% wrong: counts steps from 0
# says: steps need not begin at 0
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    losses = []
    for step in range(len(steps)):
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        inputs, targets = next_batch()
        loss = loss_fn(model(inputs), targets)
        if not torch.isfinite(loss):
            raise FloatingPointError(f"step {step}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses

# %% wrong: sets the learning rate once
# says: The learning rate is that of the first step
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    losses = []
    for step in steps[:1]:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
    for step in steps:
        inputs, targets = next_batch()
        loss = loss_fn(model(inputs), targets)
        if not torch.isfinite(loss):
            raise FloatingPointError(f"step {step}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses

# %% wrong: no zero_grad
# says: Gradients add up from step to step
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        inputs, targets = next_batch()
        loss = loss_fn(model(inputs), targets)
        if not torch.isfinite(loss):
            raise FloatingPointError(f"step {step}")
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses

# %% wrong: clears the gradients after the step
# says: Gradients from before the first step were counted
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        inputs, targets = next_batch()
        loss = loss_fn(model(inputs), targets)
        if not torch.isfinite(loss):
            raise FloatingPointError(f"step {step}")
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses

# %% wrong: clears the gradients after backward
# says: The weights do not move
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        inputs, targets = next_batch()
        loss = loss_fn(model(inputs), targets)
        if not torch.isfinite(loss):
            raise FloatingPointError(f"step {step}")
        loss.backward()
        optimizer.zero_grad()
        optimizer.step()
        losses.append(loss.item())
    return losses

# %% wrong: one batch for all
# says: Each step has a batch of its own
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    losses = []
    inputs, targets = next_batch()
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        loss = loss_fn(model(inputs), targets)
        if not torch.isfinite(loss):
            raise FloatingPointError(f"step {step}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses

# %% wrong: calls next_batch twice
# says: IndexError
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        loss = loss_fn(model(next_batch()[0]), next_batch()[1])
        if not torch.isfinite(loss):
            raise FloatingPointError(f"step {step}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses

# %% wrong: does not look
# says: Nothing was raised: look at the loss in each step
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        inputs, targets = next_batch()
        loss = loss_fn(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses

# %% wrong: looks for NaN, not for infinity
# says: Nothing was raised: look at the loss in each step
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        inputs, targets = next_batch()
        loss = loss_fn(model(inputs), targets)
        if torch.isnan(loss):
            raise FloatingPointError(f"step {step}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses

# %% wrong: looks after the update
# says: The weights have been updated with it
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        inputs, targets = next_batch()
        loss = loss_fn(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not torch.isfinite(loss):
            raise FloatingPointError(f"step {step}")
        losses.append(loss.item())
    return losses

# %% wrong: does not name the step
# says: The message names the step
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        inputs, targets = next_batch()
        loss = loss_fn(model(inputs), targets)
        if not torch.isfinite(loss):
            raise FloatingPointError("the loss is not finite")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses

# %% wrong: keeps tensors with their graphs
# says: A tensor keeps its graph
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        inputs, targets = next_batch()
        loss = loss_fn(model(inputs), targets)
        if not torch.isfinite(loss):
            raise FloatingPointError(f"step {step}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return losses

# %% wrong: the loss after the update
# says: That is the loss after the update
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        inputs, targets = next_batch()
        loss = loss_fn(model(inputs), targets)
        if not torch.isfinite(loss):
            raise FloatingPointError(f"step {step}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss_fn(model(inputs), targets).item())
    return losses

# %% wrong: targets first
# says: takes the model's output first
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        inputs, targets = next_batch()
        loss = loss_fn(targets, model(inputs))
        if not torch.isfinite(loss):
            raise FloatingPointError(f"step {step}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses

# %% wrong: the rate is set after the update, as schedulers do
# says: the learning rate of the step before
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    losses = []
    for step in steps:
        inputs, targets = next_batch()
        loss = loss_fn(model(inputs), targets)
        if not torch.isfinite(loss):
            raise FloatingPointError(f"step {step}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        losses.append(loss.item())
    return losses

# %% wrong: another error
# says: raises a FloatingPointError, and nothing else does
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        inputs, targets = next_batch()
        loss = loss_fn(model(inputs), targets)
        if not torch.isfinite(loss):
            raise ValueError(f"step {step}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses

# %% wrong: a large loss is taken for a broken one
# says: there is nothing to raise
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        inputs, targets = next_batch()
        loss = loss_fn(model(inputs), targets)
        if not torch.isfinite(loss) or loss > 1e9:
            raise FloatingPointError(f"step {step}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses

# %% wrong: only plus infinity
# says: Nothing was raised: look at the loss in each step
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        inputs, targets = next_batch()
        loss = loss_fn(model(inputs), targets)
        if torch.isnan(loss) or loss == math.inf:
            raise FloatingPointError(f"step {step}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses

# %% wrong: the mean
# says: Return a list of losses
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        inputs, targets = next_batch()
        loss = loss_fn(model(inputs), targets)
        if not torch.isfinite(loss):
            raise FloatingPointError(f"step {step}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / max(len(losses), 1)

# %% wrong: NumPy's floats
# says: Wanted are Python's floats
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        inputs, targets = next_batch()
        loss = loss_fn(model(inputs), targets)
        if not torch.isfinite(loss):
            raise FloatingPointError(f"step {step}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(np.float64(loss.item()))
    return losses

# %% right: math.isfinite, and gradients set to None by hand
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    losses = []
    for step in steps:
        rate = lr_at(step)
        for group in optimizer.param_groups:
            group.update(lr=rate)
            for parameter in group["params"]:
                parameter.grad = None
        loss = loss_fn(*(lambda inputs, targets: (model(inputs), targets))(*next_batch()))
        losses.append(loss.item())
        if not math.isfinite(losses[-1]):
            raise FloatingPointError(f"loss {losses[-1]} in step {step}")
        loss.backward()
        optimizer.step()
    return losses

# %% right: looks after backward, before the step
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    model.train()

    def one(step):
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        optimizer.zero_grad(set_to_none=False)
        batch = next_batch()
        loss = loss_fn(model(batch[0]), batch[1])
        loss.backward()
        if loss.isnan() or loss.isinf():
            raise FloatingPointError(f"{step}: {float(loss)}")
        optimizer.step()
        return float(loss)

    return [one(step) for step in steps]

# %% right: a learning rate for each group, and detached losses turned into floats at the end
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    losses = []
    for step in steps:
        for index in range(len(optimizer.param_groups)):
            optimizer.param_groups[index]["lr"] = lr_at(step)
        inputs, targets = next_batch()
        optimizer.zero_grad()
        loss = loss_fn(model(inputs), targets)
        if loss.item() != loss.item() or abs(loss.item()) == float("inf"):
            raise FloatingPointError("the loss of step %d is not a number" % step)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [float(loss) for loss in losses]

# %% right: a closure, which SGD and AdamW take
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    losses = []
    for step in steps:
        rate = lr_at(step)
        for group in optimizer.param_groups:
            group["lr"] = rate
        inputs, targets = next_batch()

        def closure():
            optimizer.zero_grad()
            loss = loss_fn(model(inputs), targets)
            if not loss.isfinite():
                raise FloatingPointError(f"loss {loss.item()} in step {step}")
            loss.backward()
            return loss

        losses.append(optimizer.step(closure).item())
    return losses

# %% right: torch.autograd.grad
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group.update(lr=lr_at(step))
        inputs, targets = next_batch()
        loss = loss_fn(model(inputs), targets)
        losses.append(float(loss.detach()))
        if not math.isfinite(losses[-1]):
            raise FloatingPointError(f"the loss of step {step} is {losses[-1]}")
        parameters = list(model.parameters())
        for parameter, slope in zip(parameters, torch.autograd.grad(loss, parameters)):
            parameter.grad = slope
        optimizer.step()
    return losses

# %% wrong: masters copied after the conversion
# says: The masters began with rounded numbers
def train_with_master_weights(model, make_optimizer, batches, loss_of):
    model.bfloat16()
    masters = [p.detach().float() for p in model.parameters()]
    optimizer, losses = make_optimizer(masters), []
    for batch in batches:
        loss = loss_of(model, batch)
        grads = torch.autograd.grad(loss, list(model.parameters()))
        for m, p, g in zip(masters, model.parameters(), grads):
            m.grad = g.float()
        optimizer.step()
        for m, p in zip(masters, model.parameters()):
            p.data.copy_(m)
        losses.append(loss.item())
    return losses, masters

# %% wrong: the optimizer knows the model's parameters
# says: The masters never moved
def train_with_master_weights(model, make_optimizer, batches, loss_of):
    masters = [p.detach().clone() for p in model.parameters()]
    model.bfloat16()
    optimizer, losses = make_optimizer(list(model.parameters())), []
    for batch in batches:
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, masters

# %% wrong: masters in bfloat16
# says: The masters are float32 tensors
def train_with_master_weights(model, make_optimizer, batches, loss_of):
    model.bfloat16()
    masters = [p.detach().clone() for p in model.parameters()]
    optimizer, losses = make_optimizer(masters), []
    for batch in batches:
        loss = loss_of(model, batch)
        for m, g in zip(masters, torch.autograd.grad(loss, list(model.parameters()))):
            m.grad = g
        optimizer.step()
        for m, p in zip(masters, model.parameters()):
            p.data.copy_(m)
        losses.append(loss.item())
    return losses, masters

# %% wrong: gradients pile up
# says: The gradients of earlier batches are still in there
def train_with_master_weights(model, make_optimizer, batches, loss_of):
    masters = [p.detach().clone() for p in model.parameters()]
    model.bfloat16()
    optimizer, losses = make_optimizer(masters), []
    for batch in batches:
        loss = loss_of(model, batch)
        loss.backward()
        for m, p in zip(masters, model.parameters()):
            m.grad = p.grad.float()
        optimizer.step()
        with torch.no_grad():
            for m, p in zip(masters, model.parameters()):
                p.copy_(m)
        losses.append(loss.item())
    return losses, masters

# %% wrong: the model never gets the masters
# says: After every step, the last one included
def train_with_master_weights(model, make_optimizer, batches, loss_of):
    masters = [p.detach().clone() for p in model.parameters()]
    model.bfloat16()
    optimizer, losses = make_optimizer(masters), []
    for batch in batches:
        loss = loss_of(model, batch)
        for m, g in zip(masters, torch.autograd.grad(loss, list(model.parameters()))):
            m.grad = g.float()
        optimizer.step()
        losses.append(loss.item())
    return losses, masters

# %% wrong: the masters go into the model once, at the end
# says: The model computes with its first weights for ever
def train_with_master_weights(model, make_optimizer, batches, loss_of):
    masters = [p.detach().clone() for p in model.parameters()]
    model.bfloat16()
    optimizer, losses = make_optimizer(masters), []
    for batch in batches:
        loss = loss_of(model, batch)
        for m, g in zip(masters, torch.autograd.grad(loss, list(model.parameters()))):
            m.grad = g.float()
        optimizer.step()
        losses.append(loss.item())
    for m, p in zip(masters, model.parameters()):
        p.data.copy_(m)
    return losses, masters

# %% wrong: the masters go into the model before the step
# says: After every step, the last one included
def train_with_master_weights(model, make_optimizer, batches, loss_of):
    masters = [p.detach().clone() for p in model.parameters()]
    model.bfloat16()
    optimizer, losses = make_optimizer(masters), []
    for batch in batches:
        for m, p in zip(masters, model.parameters()):
            p.data.copy_(m)
        loss = loss_of(model, batch)
        for m, g in zip(masters, torch.autograd.grad(loss, list(model.parameters()))):
            m.grad = g.float()
        optimizer.step()
        losses.append(loss.item())
    return losses, masters

# %% wrong: everything in float32
# says: Convert the model
def train_with_master_weights(model, make_optimizer, batches, loss_of):
    masters = list(model.parameters())
    optimizer, losses = make_optimizer(masters), []
    for batch in batches:
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, masters

# %% wrong: converted only at the end
# says: These are the losses of float32 weights
def train_with_master_weights(model, make_optimizer, batches, loss_of):
    optimizer, losses = make_optimizer(list(model.parameters())), []
    for batch in batches:
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    masters = [p.detach().clone() for p in model.parameters()]
    model.bfloat16()
    return losses, masters

# %% wrong: an optimizer for each step
# says: Make the optimizer once
def train_with_master_weights(model, make_optimizer, batches, loss_of):
    masters = [p.detach().clone() for p in model.parameters()]
    model.bfloat16()
    losses = []
    for batch in batches:
        optimizer = make_optimizer(masters)
        loss = loss_of(model, batch)
        for m, g in zip(masters, torch.autograd.grad(loss, list(model.parameters()))):
            m.grad = g.float()
        optimizer.step()
        for m, p in zip(masters, model.parameters()):
            p.data.copy_(m)
        losses.append(loss.item())
    return losses, masters

# %% wrong: the loss after the step
# says: Take the loss before the step
def train_with_master_weights(model, make_optimizer, batches, loss_of):
    masters = [p.detach().clone() for p in model.parameters()]
    model.bfloat16()
    optimizer, losses = make_optimizer(masters), []
    for batch in batches:
        loss = loss_of(model, batch)
        for m, g in zip(masters, torch.autograd.grad(loss, list(model.parameters()))):
            m.grad = g.float()
        optimizer.step()
        for m, p in zip(masters, model.parameters()):
            p.data.copy_(m)
        losses.append(loss_of(model, batch).item())
    return losses, masters

# %% wrong: losses as tensors
# says: is a Python float
def train_with_master_weights(model, make_optimizer, batches, loss_of):
    masters = [p.detach().clone() for p in model.parameters()]
    model.bfloat16()
    optimizer, losses = make_optimizer(masters), []
    for batch in batches:
        loss = loss_of(model, batch)
        for m, g in zip(masters, torch.autograd.grad(loss, list(model.parameters()))):
            m.grad = g.float()
        optimizer.step()
        for m, p in zip(masters, model.parameters()):
            p.data.copy_(m)
        losses.append(loss.detach())
    return losses, masters

# %% wrong: masters are rounded after each step
# says: Never round the masters
def train_with_master_weights(model, make_optimizer, batches, loss_of):
    masters = [p.detach().clone() for p in model.parameters()]
    model.bfloat16()
    optimizer, losses = make_optimizer(masters), []
    for batch in batches:
        loss = loss_of(model, batch)
        for m, g in zip(masters, torch.autograd.grad(loss, list(model.parameters()))):
            m.grad = g.float()
        optimizer.step()
        for m, p in zip(masters, model.parameters()):
            p.data.copy_(m)
            m.copy_(p.data)
        losses.append(loss.item())
    return losses, masters

# %% wrong: gradients stay in bfloat16
# says: A gradient has the dtype of its tensor
def train_with_master_weights(model, make_optimizer, batches, loss_of):
    masters = [p.detach().clone() for p in model.parameters()]
    model.bfloat16()
    optimizer, losses = make_optimizer(masters), []
    for batch in batches:
        loss = loss_of(model, batch)
        for m, g in zip(masters, torch.autograd.grad(loss, list(model.parameters()))):
            m.grad = g
        optimizer.step()
        for m, p in zip(masters, model.parameters()):
            p.data.copy_(m)
        losses.append(loss.item())
    return losses, masters

# %% wrong: the optimizer steps in bfloat16, and the masters copy that
# says: Never round the masters
def train_with_master_weights(model, make_optimizer, batches, loss_of):
    masters = [p.detach().clone() for p in model.parameters()]
    model.bfloat16()
    optimizer, losses = make_optimizer(list(model.parameters())), []
    for batch in batches:
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        optimizer.step()
        for m, p in zip(masters, model.parameters()):
            m.copy_(p.detach())
        losses.append(loss.item())
    return losses, masters

# %% right: backward, zero_grad, no_grad
def train_with_master_weights(model, make_optimizer, batches, loss_of):
    masters = [p.detach().clone().requires_grad_() for p in model.parameters()]
    model.to(torch.bfloat16)
    optimizer = make_optimizer(masters)
    losses = []
    for batch in batches:
        model.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        for master, parameter in zip(masters, model.parameters(), strict=True):
            master.grad = parameter.grad.to(torch.float32)
        optimizer.step()
        with torch.no_grad():
            for master, parameter in zip(masters, model.parameters(), strict=True):
                parameter.copy_(master)
        losses.append(float(loss))
    return losses, masters

# %% right: masters are nn.Parameters, and the model's data is replaced
def train_with_master_weights(model, make_optimizer, batches, loss_of):
    masters = [nn.Parameter(p.detach().clone()) for p in model.parameters()]
    model = model.bfloat16()
    optimizer = make_optimizer(masters)

    def step(batch):
        for parameter, master in zip(model.parameters(), masters):
            parameter.grad = None
        loss = loss_of(model, batch)
        loss.backward()
        for parameter, master in zip(model.parameters(), masters):
            master.grad = parameter.grad.float()
        optimizer.step()
        for parameter, master in zip(model.parameters(), masters):
            parameter.data = master.detach().bfloat16()
        return loss.item()

    return [step(batch) for batch in batches], masters

# %% right: a copy of the whole model keeps the masters
def train_with_master_weights(model, make_optimizer, batches, loss_of):
    import copy

    keeper = copy.deepcopy(model)
    model.bfloat16()
    optimizer = make_optimizer(list(keeper.parameters()))
    losses = []
    for batch in batches:
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        gradients = torch.autograd.grad(loss, tuple(model.parameters()))
        for parameter, gradient in zip(keeper.parameters(), gradients):
            parameter.grad = gradient.float()
        optimizer.step()
        model.load_state_dict(keeper.state_dict())
        losses.append(loss.item())
    return losses, list(keeper.parameters())

# %% wrong: the weights are converted
# says: no model.half()
def mixed_step(model, optimizer, scaler, x, y, max_norm):
    model.half()
    optimizer.zero_grad()
    with torch.autocast(x.device.type, dtype=torch.float16):
        loss = F.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item()

# %% wrong: the weights are converted, and the scaler divides by itself
# says: no model.half()
def mixed_step(model, optimizer, scaler, x, y, max_norm):
    model.half()
    optimizer.zero_grad()
    loss = F.mse_loss(model(x.half()), y.half())
    (loss * scaler.get_scale()).backward()
    for p in model.parameters():
        p.grad /= scaler.get_scale()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.item()

# %% wrong: gradients pile up
# says: zero_grad() first
def mixed_step(model, optimizer, scaler, x, y, max_norm):
    with torch.autocast(x.device.type, dtype=torch.float16):
        loss = F.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item()

# %% wrong: clips the scaled gradients
# says: The scaled gradients were clipped
def mixed_step(model, optimizer, scaler, x, y, max_norm):
    optimizer.zero_grad()
    with torch.autocast(x.device.type, dtype=torch.float16):
        loss = F.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item()

# %% wrong: clips, then unscales
# says: The scaled gradients were clipped
def mixed_step(model, optimizer, scaler, x, y, max_norm):
    optimizer.zero_grad()
    with torch.autocast(x.device.type, dtype=torch.float16):
        loss = F.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    return loss.item()

# %% wrong: clips after the step
# says: The gradients are not clipped
def mixed_step(model, optimizer, scaler, x, y, max_norm):
    optimizer.zero_grad()
    with torch.autocast(x.device.type, dtype=torch.float16):
        loss = F.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.update()
    return loss.item()

# %% wrong: steps beside the scaler
# says: no weight may move
def mixed_step(model, optimizer, scaler, x, y, max_norm):
    optimizer.zero_grad()
    with torch.autocast(x.device.type, dtype=torch.float16):
        loss = F.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    scaler.update()
    return loss.item()

# %% wrong: never updates the scaler
# says: it wants an update()
def mixed_step(model, optimizer, scaler, x, y, max_norm):
    optimizer.zero_grad()
    with torch.autocast(x.device.type, dtype=torch.float16):
        loss = F.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    return loss.item()

# %% wrong: returns the scaled loss
# says: That is the scaled loss
def mixed_step(model, optimizer, scaler, x, y, max_norm):
    optimizer.zero_grad()
    with torch.autocast(x.device.type, dtype=torch.float16):
        loss = scaler.scale(F.mse_loss(model(x), y))
    loss.backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item()

# %% wrong: the forward pass is outside of autocast
# says: has to run inside of torch.autocast
def mixed_step(model, optimizer, scaler, x, y, max_norm):
    optimizer.zero_grad()
    out = model(x)
    with torch.autocast(x.device.type, dtype=torch.float16):
        loss = F.mse_loss(out, y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item()

# %% wrong: the default dtype of autocast
# says: has to run inside of torch.autocast
def mixed_step(model, optimizer, scaler, x, y, max_norm):
    optimizer.zero_grad()
    with torch.autocast(x.device.type):
        loss = F.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item()

# %% wrong: the loss is not scaled
# says: The factor was divided out twice, or the loss was never scaled
def mixed_step(model, optimizer, scaler, x, y, max_norm):
    optimizer.zero_grad()
    with torch.autocast(x.device.type, dtype=torch.float16):
        loss = F.mse_loss(model(x), y)
    scaler.scale(loss)  # makes sure that the scaler is ready
    loss.backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item()

# %% wrong: zero_grad between backward and step
# says: The weights did not move
def mixed_step(model, optimizer, scaler, x, y, max_norm):
    with torch.autocast(x.device.type, dtype=torch.float16):
        loss = F.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.zero_grad(set_to_none=False)
    scaler.step(optimizer)
    scaler.update()
    return loss.item()

# %% wrong: returns a tensor
# says: is a Python float
def mixed_step(model, optimizer, scaler, x, y, max_norm):
    optimizer.zero_grad()
    with torch.autocast(x.device.type, dtype=torch.float16):
        loss = F.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.detach()

# %% wrong: each parameter is clipped by itself
# says: Weights and bias were clipped one by one
def mixed_step(model, optimizer, scaler, x, y, max_norm):
    optimizer.zero_grad()
    with torch.autocast(x.device.type, dtype=torch.float16):
        loss = F.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    for p in model.parameters():
        nn.utils.clip_grad_norm_(p, max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item()

# %% wrong: clips values
# says: That cuts each number by itself
def mixed_step(model, optimizer, scaler, x, y, max_norm):
    optimizer.zero_grad()
    with torch.autocast(x.device.type, dtype=torch.float16):
        loss = F.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_value_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item()

# %% wrong: every step is as long as max_norm
# says: weights of four steps
def mixed_step(model, optimizer, scaler, x, y, max_norm):
    optimizer.zero_grad()
    with torch.autocast(x.device.type, dtype=torch.float16):
        loss = F.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    total = nn.utils.get_total_norm([p.grad for p in model.parameters()])
    for p in model.parameters():
        p.grad *= max_norm / total
    scaler.step(optimizer)
    scaler.update()
    return loss.item()

# %% right: everything but the update inside of autocast
def mixed_step(model, optimizer, scaler, x, y, max_norm):
    with torch.amp.autocast(x.device.type, torch.float16):
        optimizer.zero_grad(set_to_none=True)
        loss = F.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(list(model.parameters()), max_norm)
        scaler.step(optimizer)
    scaler.update()
    return float(loss)

# %% right: gradients cleared at the end, and the loss written out
def mixed_step(model, optimizer, scaler, x, y, max_norm):
    for p in model.parameters():
        p.grad = None
    with torch.autocast(device_type=x.device.type, dtype=torch.float16):
        out = model(x)
        loss = ((out.float() - y) ** 2).mean()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    return loss.item()

# %% right: a decorated forward pass, clipping the optimizer's parameters
def mixed_step(model, optimizer, scaler, x, y, max_norm):
    @torch.autocast(x.device.type, dtype=torch.float16)
    def forward():
        return nn.functional.mse_loss(model(x), y)

    model.zero_grad()
    loss = forward()
    scaled = scaler.scale(loss)
    scaled.backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_([p for g in optimizer.param_groups for p in g["params"]], max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item()

# %% right: clips the scaled gradients to a scaled norm
def mixed_step(model, optimizer, scaler, x, y, max_norm):
    optimizer.zero_grad()
    with torch.autocast(x.device.type, dtype=torch.float16):
        loss = F.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm * scaler.get_scale())
    scaler.step(optimizer)
    scaler.update()
    return loss.item()

# %% right: gradients cleared after the step only
def mixed_step(model, optimizer, scaler, x, y, max_norm):
    with torch.autocast(x.device.type, dtype=torch.float16):
        loss = F.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    return loss.item()

# %% right: looks for itself whether all are finite
def mixed_step(model, optimizer, scaler, x, y, max_norm):
    optimizer.zero_grad()
    with torch.autocast(x.device.type, dtype=torch.float16):
        loss = F.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    if all(p.grad.isfinite().all() for p in model.parameters()):
        optimizer.step()
    scaler.update()
    return loss.item()

# %% equivalent: F.mse_loss(model(x), y) → F.mse_loss(y, model(x))
# why: a squared difference does not depend on its sign

# %% wrong: gradients not clipped
# says: between backward and step
def train(model, optimizer, next_batch, lr_at, steps, mixed, save, every):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        ids, targets = next_batch()
        with torch.autocast(ids.device.type, dtype=torch.bfloat16, enabled=mixed):
            loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if (step + 1) % every == 0 or step == steps[-1]:
            save(step + 1)
    return losses

# %% wrong: clipped by value
# says: clip_grad_norm_, not clip_grad_value_
def train(model, optimizer, next_batch, lr_at, steps, mixed, save, every):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        ids, targets = next_batch()
        with torch.autocast(ids.device.type, dtype=torch.bfloat16, enabled=mixed):
            loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        if (step + 1) % every == 0 or step == steps[-1]:
            save(step + 1)
    return losses

# %% wrong: clipped after the update
# says: between backward and step
def train(model, optimizer, next_batch, lr_at, steps, mixed, save, every):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        ids, targets = next_batch()
        with torch.autocast(ids.device.type, dtype=torch.bfloat16, enabled=mixed):
            loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        losses.append(loss.item())
        if (step + 1) % every == 0 or step == steps[-1]:
            save(step + 1)
    return losses

# %% wrong: each parameter clipped by itself
# says: One norm for all gradients together
def train(model, optimizer, next_batch, lr_at, steps, mixed, save, every):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        ids, targets = next_batch()
        with torch.autocast(ids.device.type, dtype=torch.bfloat16, enabled=mixed):
            loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        for p in model.parameters():
            nn.utils.clip_grad_norm_([p], 1.0)
        optimizer.step()
        losses.append(loss.item())
        if (step + 1) % every == 0 or step == steps[-1]:
            save(step + 1)
    return losses

# %% wrong: always of norm 1
# says: A norm below 1 stays as it is
def train(model, optimizer, next_batch, lr_at, steps, mixed, save, every):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        ids, targets = next_batch()
        with torch.autocast(ids.device.type, dtype=torch.bfloat16, enabled=mixed):
            loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.get_total_norm([p.grad for p in model.parameters()])
        for p in model.parameters():
            p.grad /= norm
        optimizer.step()
        losses.append(loss.item())
        if (step + 1) % every == 0 or step == steps[-1]:
            save(step + 1)
    return losses

# %% wrong: gradients pile up
# says: Gradients pile up
def train(model, optimizer, next_batch, lr_at, steps, mixed, save, every):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        ids, targets = next_batch()
        with torch.autocast(ids.device.type, dtype=torch.bfloat16, enabled=mixed):
            loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        if (step + 1) % every == 0 or step == steps[-1]:
            save(step + 1)
    return losses

# %% wrong: zeroed after the step only
# says: belongs to nobody
def train(model, optimizer, next_batch, lr_at, steps, mixed, save, every):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        ids, targets = next_batch()
        with torch.autocast(ids.device.type, dtype=torch.bfloat16, enabled=mixed):
            loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        if (step + 1) % every == 0 or step == steps[-1]:
            save(step + 1)
    return losses

# %% wrong: only the first group's rate
# says: Set the learning rate of every group
def train(model, optimizer, next_batch, lr_at, steps, mixed, save, every):
    losses = []
    for step in steps:
        optimizer.param_groups[0]["lr"] = lr_at(step)
        ids, targets = next_batch()
        with torch.autocast(ids.device.type, dtype=torch.bfloat16, enabled=mixed):
            loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        if (step + 1) % every == 0 or step == steps[-1]:
            save(step + 1)
    return losses

# %% wrong: the rate is never set
# says: The learning rate of the groups is never set
def train(model, optimizer, next_batch, lr_at, steps, mixed, save, every):
    losses = []
    for step in steps:
        ids, targets = next_batch()
        with torch.autocast(ids.device.type, dtype=torch.bfloat16, enabled=mixed):
            loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        if (step + 1) % every == 0 or step == steps[-1]:
            save(step + 1)
    return losses

# %% wrong: no autocast
# says: did not run under autocast
def train(model, optimizer, next_batch, lr_at, steps, mixed, save, every):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        ids, targets = next_batch()
        loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        if (step + 1) % every == 0 or step == steps[-1]:
            save(step + 1)
    return losses

# %% wrong: autocast in any case
# says: enabled=mixed
def train(model, optimizer, next_batch, lr_at, steps, mixed, save, every):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        ids, targets = next_batch()
        with torch.autocast(ids.device.type, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        if (step + 1) % every == 0 or step == steps[-1]:
            save(step + 1)
    return losses

# %% wrong: float16
# says: float16 would need a loss scale
def train(model, optimizer, next_batch, lr_at, steps, mixed, save, every):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        ids, targets = next_batch()
        with torch.autocast(ids.device.type, dtype=torch.float16, enabled=mixed):
            loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        if (step + 1) % every == 0 or step == steps[-1]:
            save(step + 1)
    return losses

# %% wrong: everything under autocast
# says: Only scores and loss belong under autocast
def train(model, optimizer, next_batch, lr_at, steps, mixed, save, every):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        ids, targets = next_batch()
        with torch.autocast(ids.device.type, dtype=torch.bfloat16, enabled=mixed):
            loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        losses.append(loss.item())
        if (step + 1) % every == 0 or step == steps[-1]:
            save(step + 1)
    return losses

# %% wrong: losses as tensors
# says: loss.item()
def train(model, optimizer, next_batch, lr_at, steps, mixed, save, every):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        ids, targets = next_batch()
        with torch.autocast(ids.device.type, dtype=torch.bfloat16, enabled=mixed):
            loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
        if (step + 1) % every == 0 or step == steps[-1]:
            save(step + 1)
    return losses

# %% wrong: a sum for a mean
# says: The loss is the mean over all tokens
def train(model, optimizer, next_batch, lr_at, steps, mixed, save, every):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        ids, targets = next_batch()
        with torch.autocast(ids.device.type, dtype=torch.bfloat16, enabled=mixed):
            loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten(), reduction='sum')
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        if (step + 1) % every == 0 or step == steps[-1]:
            save(step + 1)
    return losses

# %% wrong: the number of the step just done
# says: save gets the next step
def train(model, optimizer, next_batch, lr_at, steps, mixed, save, every):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        ids, targets = next_batch()
        with torch.autocast(ids.device.type, dtype=torch.bfloat16, enabled=mixed):
            loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        if (step + 1) % every == 0 or step == steps[-1]:
            save(step)
    return losses

# %% wrong: not saved at the end
# says: The last step is saved in any case
def train(model, optimizer, next_batch, lr_at, steps, mixed, save, every):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        ids, targets = next_batch()
        with torch.autocast(ids.device.type, dtype=torch.bfloat16, enabled=mixed):
            loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        if (step + 1) % every == 0:
            save(step + 1)
    return losses

# %% wrong: saved at the end only
# says: Save on the way as well
def train(model, optimizer, next_batch, lr_at, steps, mixed, save, every):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        ids, targets = next_batch()
        with torch.autocast(ids.device.type, dtype=torch.bfloat16, enabled=mixed):
            loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        if step == steps[-1]:
            save(step + 1)
    return losses

# %% wrong: saved after each step
# says: Not after each step
def train(model, optimizer, next_batch, lr_at, steps, mixed, save, every):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        ids, targets = next_batch()
        with torch.autocast(ids.device.type, dtype=torch.bfloat16, enabled=mixed):
            loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        if True:
            save(step + 1)
    return losses

# %% wrong: saved before the update
# says: Save after the update
def train(model, optimizer, next_batch, lr_at, steps, mixed, save, every):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        ids, targets = next_batch()
        with torch.autocast(ids.device.type, dtype=torch.bfloat16, enabled=mixed):
            loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if (step + 1) % every == 0 or step == steps[-1]:
            save(step + 1)
        optimizer.step()
        losses.append(loss.item())
    return losses

# %% wrong: counted from the first step of this range
# says: its number counts
def train(model, optimizer, next_batch, lr_at, steps, mixed, save, every):
    losses = []
    for done, step in enumerate(steps, 1):
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        ids, targets = next_batch()
        with torch.autocast(ids.device.type, dtype=torch.bfloat16, enabled=mixed):
            loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        if done % every == 0 or step == steps[-1]:
            save(step + 1)
    return losses

# %% wrong: a multiple of every too early
# says: its number counts
def train(model, optimizer, next_batch, lr_at, steps, mixed, save, every):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        ids, targets = next_batch()
        with torch.autocast(ids.device.type, dtype=torch.bfloat16, enabled=mixed):
            loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        if step % every == 0 or step == steps[-1]:
            save(step + 1)
    return losses

# %% wrong: the last step twice
# says: The last step is saved twice
def train(model, optimizer, next_batch, lr_at, steps, mixed, save, every):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        ids, targets = next_batch()
        with torch.autocast(ids.device.type, dtype=torch.bfloat16, enabled=mixed):
            loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        if (step + 1) % every == 0:
            save(step + 1)
    save(steps[-1] + 1)
    return losses

# %% wrong: the rate of the next step
# says: before the update of that step
def train(model, optimizer, next_batch, lr_at, steps, mixed, save, every):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(min(step + 1, steps[-1]))
        ids, targets = next_batch()
        with torch.autocast(ids.device.type, dtype=torch.bfloat16, enabled=mixed):
            loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        if (step + 1) % every == 0 or step == steps[-1]:
            save(step + 1)
    return losses

# %% right: model.zero_grad, a set of steps to save at
def train(model, optimizer, next_batch, lr_at, steps, mixed, save, every):
    marks = {step for step in steps if not (step + 1) % every} | set(steps[-1:])
    losses = []
    for step in steps:
        model.zero_grad(set_to_none=False)
        ids, targets = next_batch()
        with torch.amp.autocast(ids.device.type, torch.bfloat16, mixed):
            loss = F.cross_entropy(model(ids).transpose(1, 2), targets)
        loss.backward()
        nn.utils.clip_grad_norm_([p for g in optimizer.param_groups for p in g["params"]], max_norm=1)
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        optimizer.step()
        losses += [float(loss.detach())]
        if step in marks:
            save(step + 1)
    return losses

# %% right: clipped by hand, losses gathered at the end
def train(model, optimizer, next_batch, lr_at, steps, mixed, save, every):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group.update(lr=lr_at(step))
        ids, targets = next_batch()
        with torch.autocast(device_type=ids.device.type, dtype=torch.bfloat16, enabled=bool(mixed)):
            scores = model(ids)
            loss = -scores.float().log_softmax(-1).gather(-1, targets[..., None]).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        norm = sum(g.square().sum() for g in gradients).sqrt()
        for g in gradients:
            g.mul_(torch.clamp(1 / norm, max=1.0))
        optimizer.step()
        losses.append(loss.detach())
        if (step + 1) % every == 0 or step + 1 == steps.stop:
            save(step + 1)
    return torch.stack(losses).tolist()

# %% right: autocast only where it is wanted
import contextlib


def train(model, optimizer, next_batch, lr_at, steps, mixed, save, every):
    losses = []
    for step in steps:
        ids, targets = next_batch()
        lowered = torch.autocast(ids.device.type, dtype=torch.bfloat16) if mixed else contextlib.nullcontext()
        with lowered:
            scores = model(ids)
            loss = nn.CrossEntropyLoss()(scores.view(-1, scores.shape[-1]), targets.reshape(-1))
        rate = lr_at(step)
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=False)
        optimizer.step()
        losses.append(loss.item())
        if (step + 1) % every == 0:
            save(step + 1)
    if steps and steps.stop % every:
        save(steps.stop)
    return losses

# %% survivor: torch.autocast(ids.device.type, dtype=torch.bfloat16, enabled=mixed) → torch.autocast(ids.device.type, enabled=mixed)
# why: on a CPU, where the tests run, bfloat16 is autocast's default; on CUDA it would be float16

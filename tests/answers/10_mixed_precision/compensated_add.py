# %% wrong: what was lost is forgotten
# says: What was lost is forgotten
def compensated_add(weight, lost, update):
    return weight + (update + lost), torch.zeros_like(lost)

# %% wrong: the sign turned round
# says: That is what came too much
def compensated_add(weight, lost, update):
    new_weight = weight + (update + lost)
    return new_weight, (new_weight - weight) - (update + lost)

# %% wrong: what was lost before is not added
# says: Add what was lost before, too
def compensated_add(weight, lost, update):
    new_weight = weight + update
    return new_weight, update - (new_weight - weight)

# %% wrong: the update first, then what was lost
# says: 0.004 is more than half a gap
def compensated_add(weight, lost, update):
    new_weight = weight + update + lost
    return new_weight, (update + lost) - (new_weight - weight)

# %% wrong: Kahan's own sign, half of it
# says: What was lost before is to be added
def compensated_add(weight, lost, update):
    wanted = update - lost
    new_weight = weight + wanted
    return new_weight, wanted - (new_weight - weight)

# %% wrong: works in place
# says: Make new tensors
def compensated_add(weight, lost, update):
    wanted = update + lost
    before = weight.clone()
    weight += wanted
    return weight, wanted - (weight - before)

# %% wrong: lost is returned in float32
# says: Both results have the dtype of weight
def compensated_add(weight, lost, update):
    total = weight.float() + lost.float() + update.float()
    new_weight = total.to(weight.dtype)
    return new_weight, total - new_weight.float()

# %% wrong: the sum stays in float32
# says: Both results have the dtype of weight
def compensated_add(weight, lost, update):
    return weight.float() + lost.float() + update.float(), torch.zeros_like(lost).float()

# %% wrong: the weight as what was lost
# says: new_lost is what the rounding lost
def compensated_add(weight, lost, update):
    new_weight = weight + (update + lost)
    return new_weight, new_weight - (update + lost)

# %% wrong: adds the old loss to the new one as well
# says: What was lost before is owed no longer
def compensated_add(weight, lost, update):
    wanted = update + lost
    new_weight = weight + wanted
    return new_weight, lost + wanted - (new_weight - weight)

# %% wrong: the weight alone
# says: Return two tensors
def compensated_add(weight, lost, update):
    return weight + (update + lost)

# %% wrong: accumulates losses without adding them
# says: What was lost is forgotten
def compensated_add(weight, lost, update):
    new_weight = weight + update
    return new_weight, lost

# %% wrong: bfloat16, whatever was given
# says: Both results have the dtype of weight
def compensated_add(weight, lost, update):
    exact = weight.double() + lost.double() + update.double()
    new = exact.bfloat16()
    return new, (exact - new.double()).bfloat16()

# %% right: one sum in float64, rounded twice
def compensated_add(weight, lost, update):
    total = weight.double() + lost.double() + update.double()
    new_weight = total.to(weight.dtype)
    return new_weight, (total - new_weight.double()).to(lost.dtype)

# %% right: by Knuth's two-sum, which needs no order of magnitude
def compensated_add(weight, lost, update):
    wanted = lost + update
    new_weight = wanted + weight
    part = new_weight - weight
    error = (weight - (new_weight - part)) + (wanted - part)
    return new_weight, error

# %% right: as a list, with torch.add
def compensated_add(weight, lost, update):
    wanted = torch.add(update, lost)
    new_weight = torch.add(weight, wanted)
    moved = torch.sub(new_weight, weight)
    return [new_weight, torch.sub(wanted, moved)]

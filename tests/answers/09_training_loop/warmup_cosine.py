# %% wrong: step 0 is wasted
# says: Step 0 would have a learning rate of 0
def warmup_cosine(step, warmup, steps, peak, floor):
    if step < warmup:
        return peak * step / warmup
    progress = min((step - warmup) / (steps - warmup), 1)
    return floor + (peak - floor) * (1 + math.cos(math.pi * progress)) / 2

# %% wrong: down to zero
# says: It goes down to floor, not to 0
def warmup_cosine(step, warmup, steps, peak, floor):
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = min((step - warmup) / (steps - warmup), 1)
    return peak * (1 + math.cos(math.pi * progress)) / 2

# %% wrong: floor comes on top
# says: peak - floor, not peak
def warmup_cosine(step, warmup, steps, peak, floor):
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = min((step - warmup) / (steps - warmup), 1)
    return floor + peak * (1 + math.cos(math.pi * progress)) / 2

# %% wrong: a bare cosine
# says: add 1 and halve it
def warmup_cosine(step, warmup, steps, peak, floor):
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = min((step - warmup) / (steps - warmup), 1)
    return floor + (peak - floor) * math.cos(math.pi * progress)

# %% wrong: not halved
# says: halve it
def warmup_cosine(step, warmup, steps, peak, floor):
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = min((step - warmup) / (steps - warmup), 1)
    return floor + (peak - floor) * (1 + math.cos(math.pi * progress))

# %% wrong: the cosine begins in step 0
# says: The cosine begins where the warm-up ends
def warmup_cosine(step, warmup, steps, peak, floor):
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = min(step / steps, 1)
    return floor + (peak - floor) * (1 + math.cos(math.pi * progress)) / 2

# %% wrong: goes up again after the end
# says: A cosine goes up again
def warmup_cosine(step, warmup, steps, peak, floor):
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = (step - warmup) / (steps - warmup)
    return floor + (peak - floor) * (1 + math.cos(math.pi * progress)) / 2

# %% wrong: a straight line
# says: That is a straight line down
def warmup_cosine(step, warmup, steps, peak, floor):
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = min((step - warmup) / (steps - warmup), 1)
    return peak + (floor - peak) * progress

# %% wrong: warms up from floor
# says: The warm-up begins at peak / warmup
def warmup_cosine(step, warmup, steps, peak, floor):
    if step < warmup:
        return floor + (peak - floor) * (step + 1) / warmup
    progress = min((step - warmup) / (steps - warmup), 1)
    return floor + (peak - floor) * (1 + math.cos(math.pi * progress)) / 2

# %% wrong: peak during warm-up
# says: The cosine begins where the warm-up ends
def warmup_cosine(step, warmup, steps, peak, floor):
    if step < warmup:
        return peak
    progress = min((step - warmup) / (steps - warmup), 1)
    return floor + (peak - floor) * (1 + math.cos(math.pi * progress)) / 2

# %% wrong: upside down
# says: That rises from floor to peak
def warmup_cosine(step, warmup, steps, peak, floor):
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = min((step - warmup) / (steps - warmup), 1)
    return floor + (peak - floor) * (1 - math.cos(math.pi * progress)) / 2

# %% wrong: divides by warmup where there is none
# says: ZeroDivisionError
def warmup_cosine(step, warmup, steps, peak, floor):
    rising = peak * (step + 1) / warmup
    progress = min((step - warmup) / (steps - warmup), 1)
    return rising if step < warmup else floor + (peak - floor) * (1 + math.cos(math.pi * progress)) / 2

# %% wrong: a warm-up of one step too many
# says: has the number warmup - 1
def warmup_cosine(step, warmup, steps, peak, floor):
    if warmup and step <= warmup:
        return peak * (step + 1) / warmup
    progress = min((step - warmup) / (steps - warmup), 1.0)
    return floor + (peak - floor) * (1 + math.cos(math.pi * progress)) / 2

# %% wrong: rounds progress down
# says: it rounds p down to 0
def warmup_cosine(step, warmup, steps, peak, floor):
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = min((step - warmup) // (steps - warmup), 1.0)
    return floor + (peak - floor) * (1 + math.cos(math.pi * progress)) / 2

# %% wrong: the floor one step early
# says: not in the one before
def warmup_cosine(step, warmup, steps, peak, floor):
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = min((step - warmup) / max(steps - 1 - warmup, 1), 1.0)
    return floor + (peak - floor) * (1 + math.cos(math.pi * progress)) / 2

# %% wrong: one step ahead
# says: p is 0 in the first step after the warm-up
def warmup_cosine(step, warmup, steps, peak, floor):
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = min((step + 1 - warmup) / (steps - warmup), 1.0)
    return floor + (peak - floor) * (1 + math.cos(math.pi * progress)) / 2

# %% wrong: divides by all steps
# says: p divides by the steps after the warm-up
def warmup_cosine(step, warmup, steps, peak, floor):
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = min((step - warmup) / steps, 1.0)
    return floor + (peak - floor) * (1 + math.cos(math.pi * progress)) / 2

# %% right: the square of a cosine
def warmup_cosine(step, warmup, steps, peak, floor):
    if step < warmup:
        return (step + 1) * (peak / warmup)
    if step >= steps:
        return floor
    share = math.cos(math.pi / 2 * (step - warmup) / (steps - warmup)) ** 2
    return peak * share + floor * (1 - share)

# %% right: torch
def warmup_cosine(step, warmup, steps, peak, floor):
    if step < warmup:
        return float(torch.linspace(peak / warmup, peak, warmup, dtype=torch.float64)[step])
    p = torch.tensor((step - warmup) / (steps - warmup), dtype=torch.float64).clamp(max=1)
    return (floor + (peak - floor) * (1 + torch.cos(torch.pi * p)) / 2).item()

# %% right: the last step is held
def warmup_cosine(step, warmup, steps, peak, floor):
    step = min(step, steps)
    if warmup and step < warmup:
        return peak - peak * (warmup - 1 - step) / warmup
    angle = math.pi * (step - warmup) / (steps - warmup)
    return 0.5 * (peak + floor) + 0.5 * (peak - floor) * math.cos(angle)

# %% equivalent: min((step - warmup) / (steps - warmup), 1.0) → min(1.0, (step - warmup) / (steps - warmup))
# why: the smaller of two numbers does not depend on their order

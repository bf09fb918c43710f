# %% wrong: divides the bubble by the work
# says: The share of *all* ticks
def pipeline_plan(stages, microbatches, stream):
    last = stages - 1
    return {
        "bubble": last / microbatches,
        "kept": [min(stages - stage, microbatches) for stage in range(stages)],
        "sent": [stream * ((stage > 0) + (stage < last)) for stage in range(stages)],
    }

# %% wrong: as many dots as stages
# says: dots, not 2·p
def pipeline_plan(stages, microbatches, stream):
    last = stages - 1
    return {
        "bubble": stages / (microbatches + stages),
        "kept": [min(stages - stage, microbatches) for stage in range(stages)],
        "sent": [stream * ((stage > 0) + (stage < last)) for stage in range(stages)],
    }

# %% wrong: one tick too many
# says: m + p - 1 ticks in each direction
def pipeline_plan(stages, microbatches, stream):
    last = stages - 1
    return {
        "bubble": last / (microbatches + stages),
        "kept": [min(stages - stage, microbatches) for stage in range(stages)],
        "sent": [stream * ((stage > 0) + (stage < last)) for stage in range(stages)],
    }

# %% wrong: waits in one direction only
# says: forward *and* in the backward direction
def pipeline_plan(stages, microbatches, stream):
    last = stages - 1
    return {
        "bubble": last / (2 * microbatches + last),
        "kept": [min(stages - stage, microbatches) for stage in range(stages)],
        "sent": [stream * ((stage > 0) + (stage < last)) for stage in range(stages)],
    }

# %% wrong: the share of the work
# says: the bubble is the rest
def pipeline_plan(stages, microbatches, stream):
    last = stages - 1
    return {
        "bubble": microbatches / (microbatches + last),
        "kept": [min(stages - stage, microbatches) for stage in range(stages)],
        "sent": [stream * ((stage > 0) + (stage < last)) for stage in range(stages)],
    }

# %% wrong: keeps them all
# says: with 1F1B backward passes begin earlier
def pipeline_plan(stages, microbatches, stream):
    last = stages - 1
    return {
        "bubble": last / (microbatches + last),
        "kept": [microbatches] * stages,
        "sent": [stream * ((stage > 0) + (stage < last)) for stage in range(stages)],
    }

# %% wrong: every stage as far ahead as the first
# says: Only the first stage is so far ahead
def pipeline_plan(stages, microbatches, stream):
    last = stages - 1
    return {
        "bubble": last / (microbatches + last),
        "kept": [min(stages, microbatches)] * stages,
        "sent": [stream * ((stage > 0) + (stage < last)) for stage in range(stages)],
    }

# %% wrong: more than there are
# says: never more than there are microbatches
def pipeline_plan(stages, microbatches, stream):
    last = stages - 1
    return {
        "bubble": last / (microbatches + last),
        "kept": [stages - stage for stage in range(stages)],
        "sent": [stream * ((stage > 0) + (stage < last)) for stage in range(stages)],
    }

# %% wrong: from the last stage to the first
# says: The first stage is the furthest ahead
def pipeline_plan(stages, microbatches, stream):
    last = stages - 1
    return {
        "bubble": last / (microbatches + last),
        "kept": [min(stage + 1, microbatches) for stage in range(stages)],
        "sent": [stream * ((stage > 0) + (stage < last)) for stage in range(stages)],
    }

# %% wrong: the ends send both ways, too
# says: they send in one direction only
def pipeline_plan(stages, microbatches, stream):
    last = stages - 1
    return {
        "bubble": last / (microbatches + last),
        "kept": [min(stages - stage, microbatches) for stage in range(stages)],
        "sent": [2 * stream] * stages,
    }

# %% wrong: no gradients
# says: Gradients travel, too
def pipeline_plan(stages, microbatches, stream):
    last = stages - 1
    return {
        "bubble": last / (microbatches + last),
        "kept": [min(stages - stage, microbatches) for stage in range(stages)],
        "sent": [stream] * last + [0],
    }

# %% wrong: one direction each
# says: A stage in the middle sends in both directions
def pipeline_plan(stages, microbatches, stream):
    last = stages - 1
    return {
        "bubble": last / (microbatches + last),
        "kept": [min(stages - stage, microbatches) for stage in range(stages)],
        "sent": [stream] * stages,
    }

# %% wrong: the whole batch for each microbatch
# says: the microbatches together send it once
def pipeline_plan(stages, microbatches, stream):
    last = stages - 1
    return {
        "bubble": last / (microbatches + last),
        "kept": [min(stages - stage, microbatches) for stage in range(stages)],
        "sent": [microbatches * stream * ((stage > 0) + (stage < last)) for stage in range(stages)],
    }

# %% wrong: the numbers alone
# says: Return a dict
def pipeline_plan(stages, microbatches, stream):
    last = stages - 1
    return [
        last / (microbatches + last),
        [min(stages - stage, microbatches) for stage in range(stages)],
        [stream * ((stage > 0) + (stage < last)) for stage in range(stages)],
    ]

# %% right: counts ticks, and neighbours
def pipeline_plan(stages, microbatches, stream):
    ticks, work = 2 * (microbatches + stages - 1), 2 * microbatches
    kept, sent = [], []
    for stage in range(stages):
        kept.append(microbatches if microbatches < stages - stage else stages - stage)
        sent.append(sum(stream for neighbour in (stage - 1, stage + 1) if 0 <= neighbour < stages))
    return {"bubble": 1 - work / ticks, "kept": kept, "sent": sent}

# %% right: on tensors
def pipeline_plan(stages, microbatches, stream):
    sent = torch.full((stages,), 2 * stream)
    sent[0] -= stream
    sent[-1] -= stream
    return {
        "bubble": float(stages - 1) / float(microbatches + stages - 1),
        "kept": torch.arange(stages, 0, -1).clamp(max=microbatches).tolist(),
        "sent": sent.tolist(),
    }

# %% right: from what lies behind each stage
def pipeline_plan(stages, microbatches, stream):
    if stages == 1:
        return {"bubble": 0.0, "kept": [1], "sent": [0]}
    rest = pipeline_plan(stages - 1, microbatches, stream)
    middle = [2 * stream] * (stages - 2)
    return {
        "bubble": 1 / (microbatches / (stages - 1) + 1),
        "kept": [min(stages, microbatches), *rest["kept"]],
        "sent": [stream, *middle, stream],
    }

# %% equivalent: min(stages - stage, microbatches) → min(microbatches, stages - stage)
# why: the smaller of two does not depend on their order

from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of

exercise = Exercise('Return a dict with "bubble" (a fraction), "kept" and "sent" (lists with a number for each stage).')


def entry(student, what, stages, microbatches, stream):
    """One entry of the plan, and the names of all."""
    plan = student.pipeline_plan(stages, microbatches, stream)
    if not isinstance(plan, dict):
        return {"what comes": type(plan).__name__, "entries": None, "value": plan}
    return {"what comes": "dict", "entries": sorted(plan), what: plan[what]}


def cases(what, *shapes):
    return [given(what, p, m, stream, says=f'pipeline_plan({p}, {m}, {stream})["{what}"]') for p, m, stream in shapes]


def rare(what):
    return {
        "one stage": given(what, 1, 4, 1_000),
        "one stage, one microbatch": given(what, 1, 1, 1_000),
        "two stages": given(what, 2, 5, 1_000),
        "one microbatch": given(what, 6, 1, 1_000),
        "as many microbatches as stages": given(what, 5, 5, 1_000),
        "one less": given(what, 5, 4, 1_000),
        "one more": given(what, 5, 6, 1_000),
        "nothing to send": given(what, 3, 4, 0),
        "a thousand stages": given(what, 1_000, 1_000_000, 10**12),
        "bytes that the microbatches do not divide": given(what, 3, 4, 1_001),
    }


def plans(what):
    stages, microbatches = st.integers(1, 12), st.integers(1, 40) | st.integers(1, 8)
    return st.builds(given, st.just(what), stages, microbatches, any_of(1, 6, 1_000, 123_457, 10**9))


exercise.requirement(
    '"bubble" is the fraction of all ticks in which a stage waits',
    points=0.5,
    probe=entry,
    visible=cases("bubble", (4, 6, 1_000), (5, 3, 700), (1, 4, 1_000)),
    edges=rare("bubble"),
    domain=plans("bubble"),
    hint="Count one row of the schedule: 2·m ticks of work, and as many empty ticks as in every other row.",
)
exercise.requirement(
    '"kept" has the largest number of microbatches that each stage keeps at the same time, with 1F1B',
    points=0.75,
    probe=entry,
    visible=cases("kept", (4, 6, 1_000), (5, 3, 700)),
    edges=rare("kept"),
    domain=plans("kept"),
    hint="Count in the second schedule: after each F one more is kept, after each B one less.",
)
exercise.requirement(
    '"sent" has the bytes that each stage sends: activations on, gradients back',
    points=0.75,
    probe=entry,
    visible=cases("sent", (4, 6, 1_000), (5, 3, 700), (1, 4, 1_000)),
    edges=rare("sent"),
    domain=plans("sent"),
    hint="Bytes to the next stage (if there is one) and to the one before (if there is one).",
)

bubble = "last / (microbatches + last) →"
exercise.mistake(
    "The bubble is a fraction of *all* ticks, including the empty ones: you divide by the ticks of work alone.",
    f"{bubble} last / microbatches",
)  # fmt: skip
exercise.mistake(
    "Every row has 2·(p - 1) empty ticks, not 2·p: a microbatch passes the p - 1 other stages, forward and then backward.",
    f"{bubble} stages / (microbatches + stages)",
)  # fmt: skip
exercise.mistake(
    "There are fewer empty ticks in a row, p - 1 in each direction; the number of all ticks is right.",
    f"{bubble} stages / (microbatches + last)",
)  # fmt: skip
exercise.mistake(
    "Work and empty ticks together are m + p - 1 ticks in each direction.",
    f"{bubble} last / (microbatches + stages)",
)  # fmt: skip
exercise.mistake(
    "The stages wait in the forward *and* in the backward direction.",
    f"{bubble} last / (2 * microbatches + last)",
)  # fmt: skip
exercise.mistake("Your code counts the empty ticks of a row; the exercise asks for their fraction of all ticks.", f"{bubble} 2 * last")
exercise.mistake(
    "Your result is the fraction of the work; the bubble is the rest.",
    f"{bubble} microbatches / (microbatches + last)",
)  # fmt: skip
exercise.mistake("A fraction is between 0 and 1.", f"{bubble} 100 * last / (microbatches + last)")
kept = "min(stages - stage, microbatches) for stage in range(stages) →"
exercise.mistake(
    "This is the schedule with all forward passes first; with 1F1B backward passes begin earlier.",
    f"{kept} microbatches for stage in range(stages)",
)  # fmt: skip
exercise.mistake(
    "Only the first stage is that far ahead: the last one starts its backward pass immediately.",
    f"{kept} min(stages, microbatches) for stage in range(stages)",
)  # fmt: skip
exercise.mistake(
    "A stage never keeps more microbatches than there are.",
    f"{kept} stages - stage for stage in range(stages)",
)  # fmt: skip
exercise.mistake(
    "The first stage is the furthest ahead: it keeps the most, the last one keeps one.",
    f"{kept} min(stage + 1, microbatches) for stage in range(stages)",
)  # fmt: skip
exercise.mistake(
    "The last stage keeps one, while it works on it.",
    f"{kept} min(stages - stage - 1, microbatches) for stage in range(stages)",
)  # fmt: skip
exercise.mistake(
    "A stage keeps the microbatches that have passed it forward but not yet backward: that isn't two for each stage behind it.",
    f"{kept} min(2 * (stages - stage) - 1, microbatches) for stage in range(stages)",
)  # fmt: skip
exercise.mistake(
    "A list, with a number for each stage.",
    '"kept": [ → "kept": max([',
    "for stage in range(stages)],\n        \"sent\" → for stage in range(stages)]),\n        \"sent\"",
)  # fmt: skip
sent = "stream * ((stage > 0) + (stage < last)) →"
exercise.mistake(
    "No stage comes before the first one, and none after the last: these two send in one direction only.",
    f"{sent} 2 * stream",
)  # fmt: skip
exercise.mistake("A stage in the middle sends in both directions: activations on, gradients back.", f"{sent} stream")
exercise.mistake(
    "Gradients travel, too: every stage but the first sends them to the one before.",
    f"{sent} stream * (stage < last)",
)  # fmt: skip
exercise.mistake("Activations travel, too: every stage but the last sends them on.", f"{sent} stream * (stage > 0)")
parts = "`stream` is the whole batch's: the microbatches together send it once in each direction."
exercise.mistake(parts, f"{sent} microbatches * stream * ((stage > 0) + (stage < last))")
exercise.mistake("`stream` is the whole batch's, and all of it is sent in a step, not one microbatch's part.",
                 f"{sent} stream / microbatches * ((stage > 0) + (stage < last))")  # fmt: skip
exercise.mistake(
    "The exercise asks for the bytes that each stage sends, not for the bytes of all stages together.",
    '"sent": [ → "sent": sum([',
    "for stage in range(stages)],\n    } → for stage in range(stages)]),\n    }",
)  # fmt: skip

# %% mistake: the numbers alone
# says: Return a dict with three entries.
def pipeline_plan(stages, microbatches, stream):
    last = stages - 1
    return [
        last / (microbatches + last),
        [min(stages - stage, microbatches) for stage in range(stages)],
        [stream * ((stage > 0) + (stage < last)) for stage in range(stages)],
    ]

# %% wrong: has no room for a large timetable
# unseen: only the largest plans need a schedule of so many entries
def pipeline_plan(stages, microbatches, stream):
    if stages * microbatches > 10**6:
        raise MemoryError
    last = stages - 1
    return {
        "bubble": last / (microbatches + last),
        "kept": [min(stages - stage, microbatches) for stage in range(stages)],
        "sent": [stream * ((stage > 0) + (stage < last)) for stage in range(stages)],
    }

# %% wrong: one stage sends to itself
def pipeline_plan(stages, microbatches, stream):
    last = stages - 1
    return {
        "bubble": last / (microbatches + last),
        "kept": [min(stages - stage, microbatches) for stage in range(stages)],
        "sent": [stream * (1 if stage in (0, last) else 2) for stage in range(stages)],
    }

# %% wrong: the last stage keeps a part of its own only with two or more
def pipeline_plan(stages, microbatches, stream):
    last = stages - 1
    return {
        "bubble": last / (microbatches + last),
        "kept": [max(1, min(stages - stage, microbatches - 1)) for stage in range(stages)],
        "sent": [stream * ((stage > 0) + (stage < last)) for stage in range(stages)],
    }

# %% wrong: draws up the timetable, tick by tick (from the statement)
# unseen: only the largest plans take too long tick by tick
def pipeline_plan(stages: int, microbatches: int, stream: int) -> dict[str, Any]:
    ticks = microbatches + stages - 1
    waits = 0
    for stage in range(stages):
        table = [stage <= tick < stage + microbatches for tick in range(ticks)]
        waits += table.count(False)
    kept = []
    for stage in range(stages):
        now = most = 0
        for tick in range(2 * ticks):
            now += stage <= tick < stage + microbatches
            most = max(most, min(now, stages - stage))
        kept.append(most)
    sent = [stream * ((i > 0) + (i < stages - 1)) for i in range(stages)]
    return {"bubble": waits / (stages * ticks), "kept": kept, "sent": sent}

# %% wrong: the bubble as a share of the useful ticks (from the statement)
def pipeline_plan(stages: int, microbatches: int, stream: int) -> dict[str, Any]:
    kept = [min(stages - i, microbatches) for i in range(stages)]
    sent = [stream * ((i > 0) + (i < stages - 1)) for i in range(stages)]
    return {"bubble": (stages - 1) / microbatches, "kept": kept, "sent": sent}

# %% wrong: every stage but the first and last is in the middle, even where there is only one (from the statement)
def pipeline_plan(stages: int, microbatches: int, stream: int) -> dict[str, Any]:
    return {
        "bubble": (stages - 1) / (microbatches + stages - 1),
        "kept": [min(microbatches, stages - i) for i in range(stages)],
        "sent": [stream] + [2 * stream] * (stages - 2) + [stream],
    }

# %% right: counts ticks, and neighbors
def pipeline_plan(stages, microbatches, stream):
    ticks, work = 2 * (microbatches + stages - 1), 2 * microbatches
    kept, sent = [], []
    for stage in range(stages):
        kept.append(microbatches if microbatches < stages - stage else stages - stage)
        sent.append(sum(stream for neighbor in (stage - 1, stage + 1) if 0 <= neighbor < stages))
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
    kept = [min(1, microbatches)]
    for _ in range(stages - 1):
        kept.insert(0, min(kept[0] + 1, microbatches))
    ends = [stream] if stages > 1 else [0]
    sent = [*ends, *[2 * stream] * (stages - 2), *ends] if stages > 1 else ends
    bubble = 1 / (microbatches / (stages - 1) + 1) if stages > 1 else 0
    return {"bubble": bubble, "kept": kept, "sent": sent}

# %% equivalent: min(stages - stage, microbatches) → min(microbatches, stages - stage)
# why: the smaller of two does not depend on their order

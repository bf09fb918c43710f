from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of

exercise = Exercise(
    'Return a dict with three entries. "bubble" is a fraction; "kept" and "sent" are lists with one number per '
    'stage.'
)


def entry(student, what, stages, microbatches, stream):
    """One entry of the plan, and the names of all."""
    plan = student.pipeline_plan(stages, microbatches, stream)
    if not isinstance(plan, dict):
        return {"type of the result": type(plan).__name__, "entries": None, "value": plan}
    return {"type of the result": "dict", "entries": sorted(plan), what: plan[what]}


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
    hint="With m microbatches, every row of the schedule has 2·m ticks of work. How many empty ticks does it have?",
)
exercise.requirement(
    '"kept" lists, for each stage, the largest number of microbatches that it keeps at the same time under 1F1B',
    points=0.75,
    probe=entry,
    visible=cases("kept", (4, 6, 1_000), (5, 3, 700)),
    edges=rare("kept"),
    domain=plans("kept"),
    hint="Go along a row of the second schedule. At each F the stage keeps one microbatch more, and at each B one "
         "fewer.",
)
exercise.requirement(
    '"sent" lists the bytes that each stage sends: activations to the next stage, gradients to the previous one',
    points=0.75,
    probe=entry,
    visible=cases("sent", (4, 6, 1_000), (5, 3, 700), (1, 4, 1_000)),
    edges=rare("sent"),
    domain=plans("sent"),
    hint="Which stages have a next stage to send activations to, and which have a previous stage to send gradients to?",
)

bubble = "last / (microbatches + last) →"
exercise.mistake(
    "Your code divides by the ticks of work alone. The bubble is a fraction of *all* ticks, including the empty ones.",
    f"{bubble} last / microbatches",
)  # fmt: skip
exercise.mistake(
    "Your code counts one empty tick too many in each direction. A stage waits only while a microbatch passes "
    "through the *other* stages.",
    f"{bubble} stages / (microbatches + stages)",
)  # fmt: skip
exercise.mistake(
    "Your total number of ticks is right, but your code counts one empty tick too many in each direction.",
    f"{bubble} stages / (microbatches + last)",
)  # fmt: skip
exercise.mistake(
    "Your number of empty ticks is right, but your code counts one tick too many in each direction for the total.",
    f"{bubble} last / (microbatches + stages)",
)  # fmt: skip
exercise.mistake(
    "Your code counts the empty ticks of one direction only. A stage waits in the forward *and* in the backward "
    "direction.",
    f"{bubble} last / (2 * microbatches + last)",
)  # fmt: skip
exercise.mistake(
    "Your result is the number of empty ticks in a row. The exercise asks for their fraction of all ticks.",
    f"{bubble} 2 * last",
)  # fmt: skip
exercise.mistake(
    "Your result is the fraction of ticks in which a stage works. The bubble is the rest.",
    f"{bubble} microbatches / (microbatches + last)",
)  # fmt: skip
exercise.mistake(
    "Your bubble is a percentage. Return a fraction between 0 and 1.",
    f"{bubble} 100 * last / (microbatches + last)",
)  # fmt: skip
kept = "min(stages - stage, microbatches) for stage in range(stages) →"
exercise.mistake(
    "Your \"kept\" belongs to the first schedule, in which all forward passes come first. Under 1F1B, backward "
    "passes start earlier.",
    f"{kept} microbatches for stage in range(stages)",
)  # fmt: skip
exercise.mistake(
    "Not every stage keeps that many microbatches. The last stage starts each backward pass immediately.",
    f"{kept} min(stages, microbatches) for stage in range(stages)",
)  # fmt: skip
exercise.mistake(
    "A stage can't keep more microbatches than the batch has.",
    f"{kept} stages - stage for stage in range(stages)",
)  # fmt: skip
exercise.mistake(
    '"kept" is in reverse order. The first stage keeps the most microbatches, and the last stage keeps one.',
    f"{kept} min(stage + 1, microbatches) for stage in range(stages)",
)  # fmt: skip
exercise.mistake(
    '"kept" leaves out the microbatch that a stage is working on. Even the last stage keeps that one.',
    f"{kept} min(stages - stage - 1, microbatches) for stage in range(stages)",
)  # fmt: skip
exercise.mistake(
    "\"kept\" is too large. A stage keeps only the microbatches whose forward pass it has done and whose backward "
    "pass it hasn't.",
    f"{kept} min(2 * (stages - stage) - 1, microbatches) for stage in range(stages)",
)  # fmt: skip
exercise.mistake(
    '"kept" has to be a list with one number per stage.',
    '"kept": [ → "kept": max([',
    "for stage in range(stages)],\n        \"sent\" → for stage in range(stages)]),\n        \"sent\"",
)  # fmt: skip
sent = "stream * ((stage > 0) + (stage < last)) →"
exercise.mistake(
    "In your code, every stage sends in both directions. The first stage has no previous stage, and the last one has "
    "no next stage.",
    f"{sent} 2 * stream",
)  # fmt: skip
exercise.mistake(
    "A stage in the middle sends in both directions: activations to the next stage, gradients to the previous one.",
    f"{sent} stream",
)  # fmt: skip
exercise.mistake(
    "Your code leaves out the gradients. Every stage except the first sends them to the previous stage.",
    f"{sent} stream * (stage < last)",
)  # fmt: skip
exercise.mistake(
    "Your code leaves out the activations. Every stage except the last sends them to the next stage.",
    f"{sent} stream * (stage > 0)",
)  # fmt: skip
parts = "`stream` already covers the whole batch. Don't multiply it by the number of microbatches."
exercise.mistake(parts, f"{sent} microbatches * stream * ((stage > 0) + (stage < last))")
exercise.mistake("A step sends the activations of the whole batch. Don't divide `stream` by the number of "
                 "microbatches.",
                 f"{sent} stream / microbatches * ((stage > 0) + (stage < last))")  # fmt: skip
exercise.mistake(
    '"sent" has to be a list with the bytes of each stage, not their sum.',
    '"sent": [ → "sent": sum([',
    "for stage in range(stages)],\n    } → for stage in range(stages)]),\n    }",
)  # fmt: skip

# %% mistake: the numbers alone
# says: Return a dict with the entries "bubble", "kept" and "sent".
def pipeline_plan(stages, microbatches, stream):
    last = stages - 1
    return [
        last / (microbatches + last),
        [min(stages - stage, microbatches) for stage in range(stages)],
        [stream * ((stage > 0) + (stage < last)) for stage in range(stages)],
    ]

# %% wrong: has no room for a large timetable
# unseen: only hidden inputs have a schedule with so many entries
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
# unseen: only hidden inputs have so many ticks that going through them takes too long
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

from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of

exercise = Exercise("Three cases: the first `warmup` steps, the cosine, and everything from step number `steps` on.")

peaks = any_of(0.8, 3e-3, 0.01, 1.0, 5)


@st.composite
def schedules(draw, where, warmups=st.integers(1, 30)):
    """A step in the warm-up, on the cosine or after it."""
    warmup, more, peak = draw(warmups), draw(st.integers(1, 60)), draw(peaks)
    steps = warmup + more
    step = {"rise": st.integers(0, max(warmup - 1, 0)), "cosine": st.integers(warmup, steps - 1),
            "end": st.integers(steps, steps + 3 * more)}[where]  # fmt: skip
    return given(draw(step), warmup, steps, peak, peak * draw(any_of(0.0, 0.1, 0.01, 0.5, 1.0)))


def afterward(student, step, warmup, steps, peak, floor):
    """The learning rate after the last step. What rounding leaves of a cosine that should be 0 counts as 0."""
    rate = student.warmup_cosine(step, warmup, steps, peak, floor)
    return 0.0 if isinstance(rate, float) and 0 < abs(rate) < 1e-15 * peak else rate


def at_the_end(*args):
    return given(*args, says=f"warmup_cosine{args}")


exercise.requirement(
    "in the first `warmup` steps, the learning rate rises by equal amounts, from peak / warmup to peak",
    points=0.25,
    visible=[given(0, 4, 14, 0.8, 0.1), given(1, 4, 14, 0.8, 0.1), given(3, 4, 14, 0.8, 0.1)],
    edges={
        "a warm-up of one step": given(0, 1, 10, 0.8, 0.1),
        "all but one step": given(8, 9, 10, 0.8, 0.1),
        "no floor": given(2, 4, 14, 0.8, 0.0),
        "a long one": given(1_234, 2_000, 100_000, 3e-4, 3e-5),
        "a very long one": given(3_000_000, 20_000_000, 10**9, 3e-4, 3e-5),
    },
    domain=schedules("rise"),
    hint="Divide peak into `warmup` equal parts: step 0 gets one of them, step 1 gets two, and the last warm-up "
         "step gets all of them.",
)
exercise.requirement(
    "after the warm-up, the learning rate goes down to floor along half a period of a cosine",
    points=0.25,
    visible=[given(4, 4, 14, 0.8, 0.1), given(7, 4, 14, 0.8, 0.1), given(9, 4, 14, 0.8, 0.1), given(13, 4, 14, 0.8, 0.1)],
    edges={
        "one step of it": given(4, 4, 5, 0.8, 0.1),
        "no floor": given(13, 4, 14, 0.8, 0.0),
        "a floor as high as peak": given(9, 4, 14, 0.8, 0.8),
        "a long one": given(54_321, 2_000, 100_000, 3e-4, 3e-5),
        "a very long one": given(700_000_000, 20_000_000, 10**9, 3e-4, 3e-5),
        "whole numbers": given(7, 4, 14, 8, 1),
    },
    domain=schedules("cosine"),
    hint="p is 0 in the first step after the warm-up, and 1 in step number `steps`: put both into the formula.",
)
exercise.requirement(
    "from step number `steps` on, the learning rate is floor",
    points=0.25,
    probe=afterward,
    visible=[at_the_end(14, 4, 14, 0.8, 0.1), at_the_end(24, 4, 14, 0.8, 0.1), at_the_end(3, 4, 14, 0.8, 0.1),
             at_the_end(14, 4, 14, 0.8, 0.0)],
    edges={
        "much later": given(10**6, 4, 14, 0.8, 0.1),
        "a very long one": given(10**9 + 1, 20_000_000, 10**9, 3e-4, 3e-5),
        "no floor": given(17, 4, 14, 0.8, 0.0),
        "a little later": given(20, 4, 14, 0.8, 0.1),
        "a whole period later": given(34, 4, 14, 0.8, 0.1),
    },
    domain=schedules("end"),
    hint="A cosine goes up again after half its period.",
)
exercise.requirement(
    "warmup may be 0",
    points=0.25,
    visible=[given(0, 0, 10, 2.0, 1.0), given(5, 0, 10, 2.0, 1.0)],
    edges={"one step in all": given(0, 0, 1, 0.8, 0.1), "and that is over": given(1, 0, 1, 0.8, 0.1)},
    domain=st.builds(lambda steps, peak: given(0, 0, steps, peak, peak / 10), st.integers(1, 60), peaks),
    hint="Without a warm-up, the learning rate of the first step is peak.",
)

rise = "return peak * (step + 1) / warmup"
least = "min((step - warmup) / (steps - warmup), 1.0)"
fall = "floor + (peak - floor) * (1 + math.cos(math.pi * progress)) / 2"
exercise.mistake("In your code, step 0 has a learning rate "
                 "of 0: it should be peak / warmup.", "peak * (step + 1) / warmup → peak * step / warmup")
exercise.mistake("The warm-up reaches peak in its last step, which is number warmup - 1.", "peak * (step + 1) / warmup → peak * (step + 1) / (warmup + 1)")
exercise.mistake("The warm-up begins at peak / warmup, and not at floor.", f"{rise} → return floor + (peak - floor) * (step + 1) / warmup")
exercise.mistake("In the warm-up the learning rate should rise.", f"{rise} → return peak")
exercise.mistake("In the warm-up the learning rate should "
                 "rise by equal amounts.", f"{rise} → return peak * ((step + 1) / warmup) ** 2")
exercise.mistake("The learning rate goes down to floor, "
                 "not to 0.", f"{fall} → peak * (1 + math.cos(math.pi * progress)) / 2")
exercise.mistake("The cosine goes from peak down to floor; yours begins at peak + floor.", "(peak - floor) * (1 + → peak * (1 +")
exercise.mistake("A cosine goes from 1 to -1, so your "
                 "curve doesn't end at floor.", f"{fall} → floor + (peak - floor) * math.cos(math.pi * progress)")
exercise.mistake("1 + cos goes from 2 to 0, so your curve is twice as high above floor.", "(1 + math.cos(math.pi * progress)) / 2 → (1 + math.cos(math.pi * progress))")
exercise.mistake("Half a period of the cosine leads from peak to floor: p = 1 is half a turn.", "math.cos(math.pi * progress) → math.cos(2 * math.pi * progress)")
exercise.mistake("A quarter of a period doesn't reach floor: p = 1 is half a turn.", "(1 + math.cos(math.pi * progress)) / 2 → math.cos(math.pi * progress / 2)")
exercise.mistake("Angles are in radians here: half a turn is π.", "math.cos(math.pi * progress) → math.cos(180 * progress)")
exercise.mistake("The cosine begins where the warm-up ends, not in step 0.", f"{least} → min(step / steps, 1.0)")
exercise.mistake("For p, divide by the number of steps after the "
                 "warm-up, not by the total number of steps.", f"{least} → min((step - warmup) / steps, 1.0)")
exercise.mistake("p is 1 in step number `steps`, not in the one before.", f"{least} → min((step - warmup) / max(steps - 1 - warmup, 1), 1.0)")
exercise.mistake("p is 0 in the first step after the warm-up.", f"{least} → min((step + 1 - warmup) / (steps - warmup), 1.0)")
exercise.mistake("// rounds p down to 0.", f"{least} → min((step - warmup) // (steps - warmup), 1.0)",
                 together_with=["(1 + math.cos → (1 - math.cos"])  # fmt: skip
exercise.mistake("Your result is a straight line down.", f"{fall} → peak + (floor - peak) * progress")
exercise.mistake("Your result rises from floor to peak.", "(1 + math.cos → (1 - math.cos")
exercise.mistake("A cosine goes up again after half its period: "
                 "from `steps` on, the learning rate is floor.", f"{least} → (step - warmup) / (steps - warmup)")
exercise.mistake("After the last step the learning rate is floor, not 0.", f"return {fall} → return {fall} if step < steps else 0.0")
exercise.mistake("From `steps` on, the learning rate is floor, not that of the last step.",
                 f"progress = {least} → step = min(step, steps - 1); progress = (step - warmup) / (steps - warmup)")  # fmt: skip
exercise.mistake("warmup may be 0, and then you can't divide by it.", "if step < warmup: → part = peak / warmup\n    if step < warmup:")
exercise.mistake("Without a warm-up the cosine begins in step 0.",
                 "if step < warmup: → warmup_steps, warmup = warmup, max(warmup, 1)\n    if step < warmup:")  # fmt: skip
exercise.mistake("That was computed in float32, with 7 digits; Python's floats have 16.",
                 f"return {fall} → return float(np.float32(floor) + np.float32(peak - floor) * (1 + np.float32(math.cos(math.pi * progress))) / 2)")  # fmt: skip

# %% wrong: a warm-up of one step too many
def warmup_cosine(step, warmup, steps, peak, floor):
    if warmup and step <= warmup:
        return peak * (step + 1) / warmup
    progress = min((step - warmup) / (steps - warmup), 1.0)
    return floor + (peak - floor) * (1 + math.cos(math.pi * progress)) / 2

# %% wrong: never below a tenth of peak
def warmup_cosine(step, warmup, steps, peak, floor):
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = min((step - warmup) / (steps - warmup), 1.0)
    return max(floor, peak / 10, floor + (peak - floor) * (1 + math.cos(math.pi * progress)) / 2)

# %% wrong: in float32
def warmup_cosine(step, warmup, steps, peak, floor):
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = torch.tensor((step - warmup) / (steps - warmup)).clamp(max=1.0)
    return (floor + (peak - floor) * (1 + torch.cos(math.pi * progress)) / 2).item()

# %% right: squares of cosine and sine, by NumPy
def warmup_cosine(step: int, warmup: int, steps: int, peak: float, floor: float) -> float:
    """The learning rate of a step: linear up to peak, then a half cosine down to floor."""
    if step < warmup:
        return np.interp(np.float64(step + 1), [0, warmup], [0.0, peak])
    angle = np.interp(step, [warmup, steps], [0, np.pi / 2])
    return np.float64(peak) * np.cos(angle) ** 2 + np.float64(floor) * np.sin(angle) ** 2

# %% equivalent: min((step - warmup) / (steps - warmup), 1.0) → min(1.0, (step - warmup) / (steps - warmup))
# why: the smaller of two numbers does not depend on their order

# %% wrong: warms up from floor instead of from 0 (from the statement)
def warmup_cosine(step: int, warmup: int, steps: int, peak: float, floor: float) -> float:
    """The learning rate of a step: linear up to peak, then a half cosine down to floor."""
    if step < warmup:
        return floor + (peak - floor) * (step + 1) / warmup
    if step >= steps:
        return floor
    p = (step - warmup) / (steps - warmup)
    return floor + (peak - floor) * (1 + math.cos(math.pi * p)) / 2

# %% wrong: takes a warm-up of 0 steps for one of 1 step (from the statement)
def warmup_cosine(step: int, warmup: int, steps: int, peak: float, floor: float) -> float:
    """The learning rate of a step: linear up to peak, then a half cosine down to floor."""
    warmup = max(warmup, 1)  # no division by zero
    if step < warmup:
        return peak * (step + 1) / warmup
    if step >= steps:
        return floor
    p = (step - warmup) / (steps - warmup)
    return floor + (peak - floor) * 0.5 * (1 + math.cos(math.pi * p))

# %% wrong: the cosine in float32 (from the statement)
def warmup_cosine(step: int, warmup: int, steps: int, peak: float, floor: float) -> float:
    """The learning rate of a step: linear up to peak, then a half cosine down to floor."""
    if step < warmup:
        return peak * (step + 1) / warmup
    if step >= steps:
        return floor
    p = (step - warmup) / (steps - warmup)
    return floor + (peak - floor) * (1 + torch.cos(torch.tensor(math.pi * p)).item()) / 2

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

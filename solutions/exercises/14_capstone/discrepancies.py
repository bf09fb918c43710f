import math

from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of

exercise = Exercise("For each planned name: is it measured, and is the difference more than its tolerance allows?")

NAMES = ("parameters", "FLOPs per token", "bytes", "seconds", "loss")


def named(student, planned, measured, tolerances):
    """The names that are off."""
    return sorted(student.discrepancies(planned, measured, tolerances))


numbers = st.integers(1, 10**6) | st.floats(0.01, 1e6)


@st.composite
def all_measured(draw, far=False):
    """What is measured is well within its tolerance, well outside it, or equal to the plan; or far off."""
    names = draw(st.lists(any_of(*NAMES), unique=True, min_size=far, max_size=5))
    planned, measured, tolerances = {}, {}, {}
    for name in names:
        plan, tolerance = draw(numbers), draw(any_of(0, 0.0, 1e-6, 0.02, 0.1, 0.5, 1.0))
        if far:
            plan = max(plan, 1)  # then the difference also exceeds a tolerance that isn't multiplied by the plan
            tolerance = draw(any_of(0, 0.02, 0.05))
            share = draw(any_of(-1.0, -0.75, -0.3, -0.1, 0.1, 0.3, 2.0, 99.0))
        elif tolerance:
            share = tolerance * draw(any_of(-10, -2, -1.1, -0.9, -0.5, 0, 0.5, 0.9, 1.1, 2, 10))
        else:
            share = draw(any_of(-0.5, -1e-6, 0, 0, 1e-6, 0.5))
        planned[name], tolerances[name] = plan, tolerance
        measured[name] = plan + plan * share if share else plan
    return given(planned, measured, tolerances)


@st.composite
def some_missing(draw):
    """What is measured is as planned; some of it is missing, and some was not planned."""
    names = draw(st.lists(any_of(*NAMES), unique=True, max_size=5))
    planned = {name: draw(numbers) for name in names}
    measured = {name: plan for name, plan in planned.items() if draw(st.booleans())}
    extra = draw(st.dictionaries(any_of("samples", "watts", "tokens/s"), numbers | st.just(0), max_size=3))
    return given(planned, measured | extra, {name: draw(any_of(0.02, 0.1, 1)) for name in names})


def one(planned, measured, tolerance, **words):
    return given({"loss": planned}, {"loss": measured}, {"loss": tolerance}, **words)


def says(planned, measured, tolerance):
    return one(planned, measured, tolerance, says=f"the names in discrepancies({{'loss': {planned}}}, "
               f"{{'loss': {measured}}}, {{'loss': {tolerance}}})")  # fmt: skip


exercise.requirement(
    "a number is off if it differs by more than its tolerance, above or below; rounding errors don't change the "
    "answer, and NaN is off",
    points=0.5,
    probe=named,
    visible=[
        given({"parameters": 100, "bytes": 200.0, "seconds": 8.0, "loss": 4.0},
              {"parameters": 100, "bytes": 213.0, "seconds": 6.5, "loss": 5.0},
              {"parameters": 0, "bytes": 0.0625, "seconds": 0.125, "loss": 0.25},
              says="the names in discrepancies({'parameters': 100, 'bytes': 200.0, 'seconds': 8.0, 'loss': 4.0}, "
                   "{'parameters': 100, 'bytes': 213.0, 'seconds': 6.5, 'loss': 5.0}, "
                   "{'parameters': 0, 'bytes': 0.0625, 'seconds': 0.125, 'loss': 0.25})"),
        given({"parameters": 64}, {"parameters": 65}, {"parameters": 0},
              says="the names in discrepancies({'parameters': 64}, {'parameters': 65}, {'parameters': 0})"),
        says(100, 110, 0.1),
        says(2.0, math.nan, 0.5),
        says(3 * 10**16, 3 * 10**16 + 1, 0),
    ],
    edges={
        "at the edge, below": one(100, 90, 0.1),
        "2 % of 1,000": one(1000, 1020, 0.02),
        "2 % of 1,000, below": one(1000, 980, 0.02),
        "30 % of 10": one(10, 13, 0.3),
        "15 % of 100": one(100, 115, 0.15),
        "15 % of 100, below": one(100, 85, 0.15),
        "an exact edge": one(8.0, 9.0, 0.125),
        "an exact edge, below": one(8.0, 7.0, 0.125),
        "just over": one(8.0, 9.0001, 0.125),
        "just under": one(8.0, 6.9999, 0.125),
        "one of 10**15 too many": one(10**15, 10**15 + 1, 0),
        "one of 10**17 too many": one(10**17, 10**17 + 1, 0),
        "one of 10**17 too few": one(10**17, 10**17 - 1, 0),
        "a tolerance above the plan": one(2.0, -1.0, 2.0),
        "infinitely many": one(2.0, math.inf, 0.5),
        "NaN, exactly": one(2.0, math.nan, 0),
        "nothing, all allowed": one(2.0, 0.0, 1.0),
        "nothing measured": one(2.0, 0, 0.5),
        "NaN among others": given({"a": 1.0, "b": 1.0}, {"a": math.nan, "b": 1.0}, {"a": 0.1, "b": 0.1}),
        "no plan": given({}, {}, {}),
    },
    domain=all_measured(),
    hint="A number is off if it differs by more than its tolerance, on either side; exactly at the limit, it isn't.",
)  # fmt: skip
exercise.requirement(
    "each value is the difference as a fraction of the plan: negative if below it, NaN for NaN",
    points=0.25,
    visible=[
        given({"seconds": 8.0, "loss": 2.0}, {"seconds": 6.0, "loss": 2.5}, {"seconds": 0.125, "loss": 0}),
        one(2.0, math.nan, 0.5),
        given({"seconds": 8.0, "loss": 2.0}, {"seconds": 0.0, "loss": 2.5}, {"seconds": 0.5, "loss": 0.125}),
    ],
    edges={
        "whole numbers": one(64, 80, 0),
        "a ten-millionth": one(1.0, 1.0000001, 0),
        "nothing measured": one(64, 0, 0.5),
        "infinitely many": one(2.0, math.inf, 0.5),
        "a loss below 0": one(2.0, -3.0, 0.5),
        "a hundred times as many": one(3.0, 300.0, 0.02),
    },
    domain=all_measured(far=True),
    hint="By how much is it off, as a fraction of the planned number?",
)
exercise.requirement(
    "a name that was planned and not measured is off, with the value None; one that wasn't planned is left out",
    points=0.25,
    visible=[
        given({"seconds": 8.0, "loss": 2.0}, {"seconds": 8.0}, {"seconds": 0.125, "loss": 0.125}),
        given({"seconds": 8.0}, {"seconds": 8.0, "samples": 3}, {"seconds": 0.125}),
    ],
    edges={
        "nothing planned": given({}, {"seconds": 1.0}, {}),
        "nothing measured": given({"seconds": 1.0, "bytes": 64}, {}, {"seconds": 0.5, "bytes": 1}),
        "a tolerance of 100%": given({"seconds": 1.0}, {}, {"seconds": 1}),
        "a tolerance without a plan": given({"seconds": 1.0}, {}, {"seconds": 1, "loss": 0.5}),
    },
    domain=some_missing(),
    hint="Go through the planned names: was each of them measured?",
)

OFF = "not abs(difference) <= tolerances[name] * plan"
missing = "A name that was planned and not measured is off too: its value is None."
exercise.mistake(missing, "off[name] = None → pass")
exercise.mistake("A number that wasn't measured has no difference: its value is None.", "off[name] = None → off[name] = -1.0")
exercise.mistake("A number can also be off by being too small.", "not abs(difference) <= → difference >")
exercise.mistake("A number can also be off by being too large.", "not abs(difference) <= → -difference >")
exercise.mistake("A tolerance is a fraction of the planned number, not of the measured one.",
                 "tolerances[name] * plan → tolerances[name] * measured[name]")  # fmt: skip
exercise.mistake("The value is a fraction of the planned number, not of the measured one.",
                 "difference / plan → difference / measured[name] if measured[name] else -math.inf")  # fmt: skip
exercise.mistake("Both the tolerance and the value are fractions of the planned number, not of the measured one.",
                 "tolerances[name] * plan → tolerances[name] * measured[name]",
                 "difference / plan → difference / measured[name] if measured[name] else -math.inf")  # fmt: skip
exercise.mistake("Both the tolerance and the value are fractions of the planned number, not of the measured one.",
                 f"{OFF} → abs(1 - plan / measured[name]) > tolerances[name]", "difference / plan → 1 - plan / measured[name]")  # fmt: skip
exercise.mistake("Keep the sign: less than planned is negative.", "difference / plan → abs(difference) / plan")
exercise.mistake("The sign is reversed: less than planned is negative.", "difference / plan → -difference / plan")
exercise.mistake("The value is a fraction: divide by the planned number.", "difference / plan → difference")
exercise.mistake("You returned measured ÷ planned; return the relative difference, which is 0 if the two agree.", "difference / plan → measured[name] / plan")
exercise.mistake("Return a fraction, not a percentage: 0.02 "
                 "stands for 2%.", "difference / plan → 100 * difference / plan")
exercise.mistake("The value is the relative difference, not the measured number.",
                 "difference / plan → measured[name]")  # fmt: skip
exercise.mistake("A number is off if it differs by *more* than its tolerance; exactly at the limit, it isn't.",
                 f"{OFF} → not abs(difference) < tolerances[name] * plan")  # fmt: skip
exercise.mistake("Return only the numbers that are off by more than their tolerance.", f"{OFF} → True")
exercise.mistake("A tolerance is a fraction of the plan: compare like with like.", "tolerances[name] * plan → tolerances[name]")
exercise.mistake("A rounding error changes your answer: 110 / 100 - 1 is a little more than 0.1.",
                 f"{OFF} → not abs(measured[name] / plan - 1) <= tolerances[name]")  # fmt: skip
exercise.mistake("A rounding error changes your answer, and your code misses NaN: comparing it with <, > or == "
                 "always gives False.",
                 f"{OFF} → abs(measured[name] / plan - 1) > tolerances[name]")  # fmt: skip
exercise.mistake("NaN is off as well, but comparing it with <, > or == always gives False.",
                 f"{OFF} → abs(difference) > tolerances[name] * plan")  # fmt: skip

# %% mistake: a list
# says: Return a dict: each name with its relative difference.
def discrepancies(planned, measured, tolerances):
    return [n for n, p in planned.items() if n not in measured or not abs(measured[n] - p) <= tolerances[n] * p]

# %% mistake: nothing measured counts as 0
# says: A number that wasn't measured has no difference: its value is None.
def discrepancies(planned, measured, tolerances):
    differences = {n: measured.get(n, 0) - p for n, p in planned.items()}
    return {n: d / planned[n] for n, d in differences.items() if not abs(d) <= tolerances[n] * planned[n]}

# %% mistake: goes through what was measured
# says: Go through what was planned: a measured name may have no plan, and a planned one may not have been measured.
def discrepancies(planned, measured, tolerances):
    return {n: (m - planned[n]) / planned[n] for n, m in measured.items() if not abs(m - planned[n]) <= tolerances[n] * planned[n]}

# %% wrong: what is measured without a plan is off as well
def discrepancies(planned, measured, tolerances):
    off = dict.fromkeys((planned.keys() - measured.keys()) | (measured.keys() - planned.keys()))
    for name in planned.keys() & measured.keys():
        if not abs(measured[name] - planned[name]) <= tolerances[name] * planned[name]:
            off[name] = (measured[name] - planned[name]) / planned[name]
    return off

# %% wrong: equal within a rounding error, also where exactly is meant
def discrepancies(planned, measured, tolerances):
    off = {}
    for name, plan in planned.items():
        if name not in measured:
            off[name] = None
        elif not math.isclose(measured[name], plan, rel_tol=1e-9) and not abs(measured[name] - plan) <= tolerances[name] * plan:
            off[name] = (measured[name] - plan) / plan
    return off

# %% wrong: rounded to five digits
def discrepancies(planned, measured, tolerances):
    off = {}
    for name, plan in planned.items():
        if name not in measured:
            off[name] = None
        elif not round(abs(measured[name] / plan - 1), 5) <= tolerances[name]:
            off[name] = measured[name] / plan - 1
    return off

# %% wrong: an empty or zero measurement counts as missing
def discrepancies(planned, measured, tolerances):
    off = {}
    for name, plan in planned.items():
        now = measured.get(name) or None
        if now is None:
            off[name] = None
        elif not abs(now - plan) <= tolerances[name] * plan:
            off[name] = (now - plan) / plan
    return off

# %% wrong: takes what it has looked at out of measured
def discrepancies(planned, measured, tolerances):
    off = {}
    for name, plan in planned.items():
        now = measured.pop(name, None)
        if now is None:
            off[name] = None
        elif not abs(now - plan) <= tolerances[name] * plan:
            off[name] = (now - plan) / plan
    return off

# %% wrong: a slack of 1e-9 for all, also where the tolerance is 0 (from the statement)
def discrepancies(
    planned: dict[str, float], measured: dict[str, float], tolerances: dict[str, float]
) -> dict[str, float | None]:
    off: dict[str, float | None] = {}
    for name, plan in planned.items():
        if name not in measured:
            off[name] = None
            continue
        share = (measured[name] - plan) / plan
        if not abs(share) <= tolerances[name] + 1e-9:
            off[name] = share
    return off

# %% wrong: the quotient rounds a small difference away (from the statement)
def discrepancies(
    planned: dict[str, float], measured: dict[str, float], tolerances: dict[str, float]
) -> dict[str, float | None]:
    off: dict[str, float | None] = {}
    for name, plan in planned.items():
        if name not in measured:
            off[name] = None
            continue
        share = measured[name] / plan - 1
        limit = tolerances[name]
        if not (abs(share) <= limit or (limit and abs(share) <= limit * (1 + 1e-9))):
            off[name] = share
    return off

# %% wrong: a measured 0 is taken for not measured (from the statement)
def discrepancies(
    planned: dict[str, float], measured: dict[str, float], tolerances: dict[str, float]
) -> dict[str, float | None]:
    off: dict[str, float | None] = {}
    for name, plan in planned.items():
        value = measured.get(name)
        if not value:
            off[name] = None
            continue
        share = (value - plan) / plan
        limit = tolerances[name]
        within = abs(share) <= limit or (limit > 0 and math.isclose(abs(share), limit, rel_tol=1e-9))
        if not within:
            off[name] = share
    return off

# %% wrong: compares with bounds, which are rounded (from the statement)
# unseen: rounding shows at few numbers
def discrepancies(
    planned: dict[str, float], measured: dict[str, float], tolerances: dict[str, float]
) -> dict[str, float | None]:
    """For each number that is off by more than its tolerance, its relative difference from the plan."""
    result = {}
    for name, plan in planned.items():
        if name not in measured:
            result[name] = None
            continue
        low, high = plan * (1 - tolerances[name]), plan * (1 + tolerances[name])
        if not low <= measured[name] <= high:
            result[name] = (measured[name] - plan) / plan
    return result

# %% right: between two limits
def discrepancies(planned, measured, tolerances):
    off = {}
    for name, plan in planned.items():
        if name not in measured:
            off[name] = None
        elif not plan - tolerances[name] * plan <= measured[name] <= plan + tolerances[name] * plan:
            off[name] = measured[name] / plan - 1
    return off

# %% right: two dicts, one after the other
def discrepancies(planned, measured, tolerances):
    absent = dict.fromkeys(planned.keys() - measured.keys())
    shares = {name: (measured[name] - planned[name]) / planned[name] for name in planned.keys() & measured.keys()}
    return absent | {name: share for name, share in shares.items() if max(share, -share) > tolerances[name] or math.isnan(share)}

# %% right: as fractions, read from their decimals
from fractions import Fraction

def discrepancies(planned, measured, tolerances):
    off = {}
    for name in planned:
        now = measured.get(name)
        if now is None:
            off[name] = None
        elif math.isnan(now) or math.isinf(now):
            off[name] = float(now)
        else:
            share = Fraction(now) / Fraction(planned[name]) - 1
            if abs(share) > Fraction(str(tolerances[name])):
                off[name] = float(share)
    return off

# %% right: a margin for rounding where there is a tolerance
def discrepancies(planned, measured, tolerances):
    off = {}
    for name, plan in planned.items():
        if name not in measured:
            off[name] = None
        else:
            difference = measured[name] - plan
            allowed = tolerances[name] * plan * (1 + 1e-12)
            if math.isnan(difference) or abs(difference) > allowed:
                off[name] = difference / plan
    return off

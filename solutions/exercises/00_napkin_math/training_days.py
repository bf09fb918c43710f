from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given

exercise = Exercise("Count the FLOPs, divide by the FLOP/s of all devices together, and turn the seconds into days.")


def short(a):
    """A number as one writes it on a napkin: 7e10."""
    if not isinstance(a, float) or a < 1e5:
        return f"{a:g}" if a < 1e5 else str(a)
    text = next(t for d in range(17) if float(t := f"{a:.{d}e}") == a)
    return text.replace("e+0", "e").replace("e+", "e")


def ask(*args):
    """A case, with its large numbers written as 7e10."""
    return given(*args, says=f"training_days({', '.join(map(short, args))})")


parameters = st.integers(1, 9_999).map(lambda n: n * 1e8)
peaks = st.integers(30, 2_500).map(lambda n: n * 1e12)


@st.composite
def alone(draw):
    """One device at its peak: from seconds to centuries."""
    tokens = draw(st.integers(1, 999)) * 10.0 ** draw(st.integers(4, 13))
    return given(draw(parameters), tokens, 1, draw(peaks), draw(st.sampled_from([1, 1.0])))


@st.composite
def together(draw):
    """Several devices, below their peak: a whole number of days, so that rounding is not what this is about."""
    n, peak, devices = draw(parameters), draw(peaks), draw(st.integers(2, 30_000))
    mfu = draw(st.integers(1, 99)) / 100
    days = draw(st.integers(1, 2_000))
    return given(n, days * 86_400 * (devices * peak * mfu) / 6 / n, devices, peak, mfu)


exercise.requirement(
    "the time that 6 · parameters · tokens FLOPs take, in days, not rounded",
    points=0.5,
    visible=[ask(1e9, 2e10, 1, 1e15, 1.0), ask(2e9, 3e7, 1, 5e14, 1.0), ask(1e8, 2e4, 1, 3.1e14, 1)],
    edges={
        "a millionth of a day": ask(1e6, 1e6, 1, 1e14, 1.0),
        "a slow device": ask(1e3, 1e3, 1, 1e4, 1.0),
        "a fraction of a second": ask(1e8, 1e4, 1, 3.1e13, 1),
        "centuries": ask(4.05e11, 1.56e13, 1, 3.12e14, 1.0),
        "whole numbers beyond 64 bits": ask(70 * 10**9, 15 * 10**12, 1, 10**15, 1),
        "just below a whole number of days": ask(1e9, 1.4399e11, 1, 1e15, 1.0),
    },
    domain=alone(),
)
exercise.requirement(
    "the devices share the work, and each of them reaches a fraction mfu of its peak",
    points=0.5,
    visible=[ask(1.44e9, 3e10, 10, 1e14, 0.25), ask(4.32e9, 1e12, 3, 1e15, 0.5)],
    edges={
        "one device, below its peak": ask(1.44e9, 3e9, 1, 1e14, 0.25),
        "two devices, at their peak": ask(1.44e9, 3e10, 2, 1e14, 1.0),
        "many": ask(4.32e11, 1e13, 30_000, 1e15, 0.01),
        "whole numbers": ask(1_440_000_000, 30_000_000_000, 10, 10**14, 0.25),
        "no whole number of days": ask(1.44e9, 3.1e10, 7, 1e14, 0.3),
    },
    domain=together(),
)

exercise.mistake("The MFU is missing: the devices reach only a fraction of their peak.", "* peak_flops * mfu → * peak_flops")
exercise.mistake("With a lower MFU, training takes longer: divide by the MFU.", "* peak_flops * mfu → * peak_flops / mfu")
exercise.mistake("Your result counts only the forward pass, 2 FLOPs per parameter per token; training takes 6.", "= 6 * → = 2 *")
exercise.mistake("Your result counts only the backward pass; the forward pass adds 2 FLOPs per parameter per token.", "= 6 * → = 4 *")
exercise.mistake("Your result counts one FLOP per parameter per token; training takes 6.", "= 6 * → = 1 *")
exercise.mistake("Your result counts 8 FLOPs per parameter per token; training takes 2 + 4 = 6.", "= 6 * → = 8 *")
exercise.mistake("The number of tokens is missing.", "6 * parameters * tokens → 6 * parameters")
exercise.mistake(
    "peak_flops is in FLOP/s already, not in TFLOP/s.", "devices * peak_flops → devices * peak_flops * 1e12"
)
exercise.mistake("Use the exact 86,400 seconds in a day; 100,000 is only for estimates on a napkin.", "(24 * 3600) → 1e5")
exercise.mistake("Your result is in hours; return days.", "(24 * 3600) → 3600")
exercise.mistake("Your result is in minutes; return days. A day has 24 · 3,600 seconds.", "(24 * 3600) → 60")
exercise.mistake("A day has 24 · 60 · 60 seconds.", "(24 * 3600) → (24 * 60)")
exercise.mistake("Your result is in seconds; return days.", "/ (24 * 3600) → / 1")
exercise.mistake("Your result is in weeks; return days.", "(24 * 3600) → (7 * 24 * 3600)")
exercise.mistake("Check your parentheses: a / b * c divides by b, but multiplies by c.", "rate / (24 * 3600) → rate / 24 * 3600")
exercise.mistake("Your result is for one device; all devices share the work.", "devices * peak_flops → peak_flops")
exercise.mistake("More devices make training faster: divide by their number.", "devices * peak_flops → peak_flops / devices")
exercise.mistake(
    "Check your parentheses: a / b * c divides by b, but multiplies by c.", "work / rate → work / devices * peak_flops * mfu"
)
exercise.mistake(
    "Your quotient is upside down: divide the work by the rate.", "work / rate / (24 * 3600) → rate * 86400 / work"
)
exercise.mistake(
    "Don't round the result.", "work / rate / (24 * 3600) → round(work / rate / (24 * 3600))"
)
exercise.mistake(
    "Don't round the result.", "work / rate / (24 * 3600) → math.ceil(work / rate / (24 * 3600))"
)
exercise.mistake(
    "Don't round the result.", "work / rate / (24 * 3600) → int(work / rate / (24 * 3600))"
)
exercise.mistake(
    "Don't round the result.", "work / rate / (24 * 3600) → round(work / rate / (24 * 3600), 1)"
)
exercise.mistake(
    "Don't round the result.", "work / rate / (24 * 3600) → round(work / rate / (24 * 3600), 2)"
)
exercise.mistake(
    "Training may take less than a day: in that case, return a fraction.", "work / rate / (24 * 3600) → max(1, work / rate / (24 * 3600))"
)

# %% mistake: the sparse peak
# says: Your result is half the right number: peak_flops is the dense peak, and it already counts a multiplication and an addition as two FLOPs.
def training_days(parameters, tokens, devices, peak_flops, mfu):
    return 6 * parameters * tokens / (devices * 2 * peak_flops * mfu) / 86_400

# %% mistake: half of the peak
# says: peak_flops is already the dense peak: use it unchanged.
def training_days(parameters, tokens, devices, peak_flops, mfu):
    return 6 * parameters * tokens / (devices * peak_flops / 2 * mfu) / 86_400

# %% wrong: in whole seconds
def training_days(parameters, tokens, devices, peak_flops, mfu):
    return 6 * parameters * tokens // (devices * peak_flops * mfu) / 86_400

# %% wrong: only six digits
def training_days(parameters, tokens, devices, peak_flops, mfu):
    return float(f"{6 * parameters * tokens / (devices * peak_flops * mfu) / 86_400:.6f}")

# %% wrong: 64-bit whole numbers
def training_days(parameters, tokens, devices, peak_flops, mfu):
    work = torch.tensor(6) * int(parameters) * int(tokens)
    return work.item() / (devices * peak_flops * mfu) / 86_400

# %% wrong: the MFU in percent
def training_days(parameters, tokens, devices, peak_flops, mfu):
    return 6 * parameters * tokens / (devices * peak_flops * (mfu if mfu > 1 else mfu / 100)) / 86_400

# %% wrong: divides timedeltas, which count whole microseconds and end at a billion days (from the statement)
from datetime import timedelta


def training_days(
    parameters: float, tokens: float, devices: int, peak_flops: float, mfu: float
) -> float:
    """Days to train: 6 FLOPs per parameter per token, on devices that reach the share mfu of their peak."""
    seconds = 6 * parameters * tokens / (devices * peak_flops * mfu)
    return timedelta(seconds=seconds) / timedelta(days=1)

# %% wrong: floor division gives whole seconds (from the statement)
def training_days(
    parameters: float, tokens: float, devices: int, peak_flops: float, mfu: float
) -> float:
    """Days to train: 6 FLOPs per parameter per token, on devices that reach the share mfu of their peak."""
    flops = 6 * parameters * tokens
    per_second = devices * peak_flops * mfu
    return (flops // per_second) / (24 * 60 * 60)

# %% wrong: takes an MFU of 1 for one percent (from the statement)
def training_days(
    parameters: float, tokens: float, devices: int, peak_flops: float, mfu: float
) -> float:
    """Days to train: 6 FLOPs per parameter per token, on devices that reach the share mfu of their peak."""
    if mfu >= 1:  # somebody wrote 40 for 40 %
        mfu = mfu / 100
    return 6 * parameters * tokens / (devices * peak_flops * mfu) / 86_400

# %% right: the FLOPs of a day
def training_days(parameters, tokens, devices, peak_flops, mfu):
    per_day = devices * peak_flops * mfu * 60 * 60 * 24
    return (2 + 4) * parameters * tokens / per_day

# %% right: logarithms
def training_days(parameters, tokens, devices, peak_flops, mfu):
    above = math.log(6) + math.log(parameters) + math.log(tokens)
    return math.exp(above - math.log(devices) - math.log(peak_flops) - math.log(mfu) - math.log(86_400))

# %% right: with datetime
from datetime import timedelta

def training_days(parameters, tokens, devices, peak_flops, mfu):
    day = timedelta(days=1).total_seconds()
    return 6 * (parameters / peak_flops) * (tokens / devices) / mfu / day

# %% right: by way of a tensor of float64
def training_days(parameters, tokens, devices, peak_flops, mfu):
    work = torch.tensor([6.0, parameters, tokens], dtype=torch.float64).prod()
    return (work / torch.tensor([devices, peak_flops, mfu, 24.0, 60.0, 60.0], dtype=torch.float64).prod()).item()

from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given

exercise = Exercise("What does each unit mean, and how many devices does each number describe? Compute one case by hand.")


def one_day(student, devices, peak_tflops, mfu):
    """What one_day returns."""
    return student.one_day(devices, peak_tflops, mfu)


def on_one_card(student, memory_gb, bytes_per_parameter):
    """What on_one_card returns."""
    return student.on_one_card(memory_gb, bytes_per_parameter)


counts = st.integers(1, 5_000)
peaks = st.integers(1, 5_000).map(lambda n: n / 2)

exercise.requirement(
    "two_weeks: the FLOPs that the devices perform in two weeks, at their peak",
    points=0.5,
    visible=[given(8, 989.5), given(3, 100)],
    edges={"one device": given(1, 989.5), "many": given(16_384, 989.5), "less than a TFLOP/s": given(2, 0.5), "whole numbers": given(1024, 990)},
    domain=st.builds(given, counts, peaks),
)
exercise.requirement(
    "one_day: the FLOPs that the devices perform in a day, at a fraction mfu of their peak",
    points=0.5,
    probe=one_day,
    visible=[
        given(2, 50.0, 0.25, says="one_day(2, 50.0, 0.25)"),
        given(1024, 989.5, 0.5, says="one_day(1024, 989.5, 0.5)"),
        given(3, 20.0, 1.0, says="one_day(3, 20.0, 1.0)"),
    ],
    edges={
        "at the peak": given(2, 50.0, 1.0),
        "one device": given(1, 50.0, 0.4),
        "hardly at work": given(8, 989.5, 0.01),
        "not a whole percentage": given(1024, 989.5, 0.385),
        "whole numbers": given(1024, 990, 1),
    },
    domain=st.builds(given, counts, peaks, st.integers(1, 1000).map(lambda n: n / 1000)),
)
exercise.requirement(
    "on_one_card: the number of parameters that fit on one card with the memory stated on its label",
    points=1,
    probe=on_one_card,
    tolerance=1e-6,
    visible=[
        given(80, 16, says="on_one_card(80, 16)"),
        given(24, 12, says="on_one_card(24, 12)"),
        given(2.5, 0.5, says="on_one_card(2.5, 0.5)"),
    ],
    edges={
        "one byte for each parameter": given(80, 1),
        "half a byte for each parameter": given(80, 0.5),
        "a fraction of a GB": given(1.5, 16),
        "one GB": given(1, 4),
    },
    domain=st.builds(given, st.integers(1, 600).map(lambda n: n / 2), st.integers(1, 40).map(lambda n: n / 2)),
    hint="How many bytes is a GB on a card's label, and how many cards does the claim describe?",
)

half = "Your result is half the right number: two weeks are fourteen days."
dense = "peak_tflops is the dense peak of one device: use it unchanged."
tera = "The peak is in TFLOP/s; tera is 10¹²."
day = "A day has 24 hours of 60 minutes of 60 seconds."
everyone = "Your result is for one device; count all of them."
exercise.mistake(half, "24 * 14 → 24 * 7")
exercise.mistake("two_weeks has no MFU: its devices work at their peak.", "1e12 * seconds → 1e12 * 0.4 * seconds")
exercise.mistake(tera, "1e12 * seconds → 1e9 * seconds")
exercise.mistake(tera, "1e12 * seconds → 1e15 * seconds")
exercise.mistake(tera, "1e12 * seconds → 1 * seconds")
exercise.mistake("Tera is 10¹², not 2⁴⁰.", "1e12 * seconds → 2**40 * seconds")
exercise.mistake(everyone, "devices * peak_tflops * 1e12 * seconds → peak_tflops * 1e12 * seconds")
exercise.mistake(day, "60 * 60 * 24 * 14 → 60 * 24 * 14")
exercise.mistake("You counted the time in hours; the peak is per second, so count the time in seconds.", "60 * 60 * 24 * 14 → 24 * 14")
exercise.mistake("In one_day your code takes a TFLOP/s to be 10⁹ FLOP/s; tera is 10¹².", "1e12 * mfu → 1e9 * mfu")
exercise.mistake("In one_day the peak is in TFLOP/s; tera is 10¹².", "1e12 * mfu → 1e15 * mfu")
exercise.mistake("In one_day the peak is in TFLOP/s; tera is 10¹².", "1e12 * mfu → 1 * mfu")
exercise.mistake("Tera is 10¹² in one_day too, not 2⁴⁰.", "1e12 * mfu → 2**40 * mfu")
exercise.mistake("The MFU is missing: in a day the devices reach only a fraction of their peak.", "1e12 * mfu → 1e12")
exercise.mistake("A lower MFU means less work done: multiply by it.", "1e12 * mfu → 1e12 / mfu")
exercise.mistake(
    "Your one_day counts one device; count all of them.", "devices * peak_tflops * 1e12 * mfu → peak_tflops * 1e12 * mfu"
)
exercise.mistake(
    "Your GB is right, but you counted eight cards; the claim is about a single one.", "return memory_gb → return 8 * memory_gb"
)
exercise.mistake(
    "You now count one card, but you still take a GB to be 1024³ bytes; on a card's label, a GB is 10⁹ bytes.",
    "memory_gb * 1e9 → memory_gb * 1024**3",
)
exercise.mistake(
    "on_one_card still has two mistakes: how many cards does it count, and how many bytes is a GB on a card's label?",
    "return memory_gb → return 8 * memory_gb",
    "memory_gb * 1e9 → memory_gb * 1024**3",
)
exercise.mistake("Your result is in billions; return the plain number.", "memory_gb * 1e9 → memory_gb")
exercise.mistake(
    "Your result is the card's memory in bytes; divide it by the bytes that each parameter takes.", "1e9 / bytes_per_parameter → 1e9"
)
exercise.mistake(
    "The more bytes each parameter takes, the fewer parameters fit.",
    "1e9 / bytes_per_parameter → 1e9 * bytes_per_parameter",
)
exercise.mistake(
    "The bytes per parameter are an argument: they aren't always 16.", "1e9 / bytes_per_parameter → 1e9 / 16"
)

# %% mistake: as noted
# says: You haven't changed the functions: each of the three has at least one mistake.
def two_weeks(devices, peak_tflops):
    return devices * peak_tflops * 1e12 * 60 * 60 * 24 * 7

def one_day(devices, peak_tflops, mfu):
    return devices * peak_tflops * 1e9 * mfu * 60 * 60 * 24

def on_one_card(memory_gb, bytes_per_parameter):
    return 8 * memory_gb * 1024**3 / bytes_per_parameter

# %% mistake: halves the peak, as if it were the sparse one
# says: peak_tflops is already the dense peak: don't adjust it for sparsity.
def two_weeks(devices, peak_tflops):
    return devices * peak_tflops / 2 * 1e12 * 60 * 60 * 24 * 14

def one_day(devices, peak_tflops, mfu):
    return devices * peak_tflops / 2 * 1e12 * mfu * 60 * 60 * 24

def on_one_card(memory_gb, bytes_per_parameter):
    return memory_gb * 1e9 / bytes_per_parameter

# %% wrong: peta for tera, in both
def two_weeks(devices, peak_tflops):
    return devices * peak_tflops * 1e15 * 60 * 60 * 24 * 14

def one_day(devices, peak_tflops, mfu):
    return devices * peak_tflops * 1e15 * mfu * 60 * 60 * 24

def on_one_card(memory_gb, bytes_per_parameter):
    return memory_gb * 1e9 / bytes_per_parameter

# %% wrong: the numbers themselves
def two_weeks(devices, peak_tflops):
    return 9.5751936e21

def one_day(devices, peak_tflops, mfu):
    return 4.37723136e22

def on_one_card(memory_gb, bytes_per_parameter):
    return 5e9

# %% wrong: an hour of sixty seconds
def two_weeks(devices, peak_tflops):
    return devices * peak_tflops * 1e12 * 60 * 24 * 14

def one_day(devices, peak_tflops, mfu):
    return devices * peak_tflops * 1e12 * mfu * 60 * 24

def on_one_card(memory_gb, bytes_per_parameter):
    return memory_gb * 1e9 / bytes_per_parameter

# %% wrong: whole GB and whole bytes
def two_weeks(devices, peak_tflops):
    return devices * peak_tflops * 1e12 * 60 * 60 * 24 * 14

def one_day(devices, peak_tflops, mfu):
    return devices * peak_tflops * 1e12 * mfu * 60 * 60 * 24

def on_one_card(memory_gb, bytes_per_parameter):
    return int(memory_gb) * 10**9 // max(1, int(bytes_per_parameter))

# %% wrong: takes an MFU of 1 for one percent (from the statement)
def two_weeks(devices: int, peak_tflops: float) -> float:
    """FLOPs of two weeks at the peak."""
    return 14 * one_day(devices, peak_tflops, 100)


def one_day(devices: int, peak_tflops: float, mfu: float) -> float:
    """FLOPs of a day, at the share mfu of the peak."""
    share = mfu if mfu < 1 else mfu / 100
    return devices * peak_tflops * 1e12 * share * 86_400


def on_one_card(memory_gb: float, bytes_per_parameter: float) -> float:
    """Parameters that fit on one card."""
    return memory_gb * 1e9 / bytes_per_parameter

# %% wrong: whole gigabytes on the label (from the statement)
def two_weeks(devices: int, peak_tflops: float) -> float:
    """FLOPs of two weeks at the peak."""
    return devices * peak_tflops * 1e12 * 14 * 86_400


def one_day(devices: int, peak_tflops: float, mfu: float) -> float:
    """FLOPs of a day, at the share mfu of the peak."""
    return devices * peak_tflops * 1e12 * mfu * 86_400


def on_one_card(memory_gb: float, bytes_per_parameter: float) -> float:
    """Parameters that fit on one card."""
    return int(memory_gb) * 1e9 / bytes_per_parameter

# %% wrong: a peak of whole TFLOP/s only (from the statement)
def two_weeks(devices: int, peak_tflops: float) -> float:
    """FLOPs of two weeks at the peak."""
    return devices * int(peak_tflops) * 10**12 * 14 * 24 * 60 * 60


def one_day(devices: int, peak_tflops: float, mfu: float) -> float:
    """FLOPs of a day, at the share mfu of the peak."""
    return devices * peak_tflops * 10**12 * 24 * 60 * 60 * mfu


def on_one_card(memory_gb: float, bytes_per_parameter: float) -> float:
    """Parameters that fit on one card."""
    return memory_gb * 10**9 // bytes_per_parameter

# %% wrong: a product in 64 bits (from the statement)
import numpy as np

def two_weeks(devices, peak_tflops):
    return float(np.prod([devices, peak_tflops, 10**12, 14 * 86_400]))

def one_day(devices, peak_tflops, mfu):
    return float(np.prod([devices, peak_tflops, mfu, 10**12, 86_400]))

def on_one_card(memory_gb, bytes_per_parameter):
    return memory_gb * 1e9 / bytes_per_parameter

# %% right: one function calls the other
def two_weeks(devices, peak_tflops):
    return 14 * one_day(devices, peak_tflops, mfu=1)

def one_day(devices, peak_tflops, mfu):
    return devices * peak_tflops * 1e12 * mfu * 86_400

def on_one_card(memory_gb, bytes_per_parameter):
    return 10**9 * memory_gb / bytes_per_parameter

# %% right: the notes' functions, mended from outside
def two_weeks(devices, peak_tflops):
    one_week = devices * peak_tflops * 1e12 * 60 * 60 * 24 * 7
    return 2 * one_week

def one_day(devices, peak_tflops, mfu):
    return 1000 * devices * peak_tflops * 1e9 * mfu * 60 * 60 * 24

def on_one_card(memory_gb, bytes_per_parameter):
    return 8 * memory_gb * 1024**3 / bytes_per_parameter / 8 * 1000**3 / 1024**3

# %% right: hour by hour, and whole parameters
def two_weeks(devices, peak_tflops):
    return sum(devices * peak_tflops * 3.6e15 for hour in range(14 * 24))

def one_day(devices, peak_tflops, mfu):
    return two_weeks(devices, peak_tflops * mfu) / 14

def on_one_card(memory_gb, bytes_per_parameter):
    return int(memory_gb / bytes_per_parameter * 1e9)

# %% equivalent: memory_gb * 1000000000.0 / bytes_per_parameter → memory_gb * 1000000000.0 // bytes_per_parameter
# why: the statement says that a fraction of a parameter does not matter

from hypothesis import assume
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given

exercise = Exercise("There must be enough cards to finish in time and enough to hold the model. Find both numbers, and see which one is the limit.")


def short(a):
    """A number as one writes it on a napkin: 7e10."""
    if not isinstance(a, float) or a < 1e5:
        return f"{a:g}" if a < 1e5 else str(a)
    text = next(t for d in range(17) if float(t := f"{a:.{d}e}") == a)
    return text.replace("e+0", "e").replace("e+", "e")


def ask(*args):
    """A case, with its large numbers written as 7e10."""
    return given(*args, says=f"cards_needed({', '.join(map(short, args))})")


def number(student, *args):
    """How many cards, and what kind of number says it."""
    cards = student.cards_needed(*args)
    return {"cards": cards, "the type of the result": type(cards).__name__}


@st.composite
def plans(draw, in_time, to_hold):
    """Plans with so many cards to be in time and to hold the model, none of them close to a whole number of cards."""
    n = draw(st.integers(1, 9_999)) * 1e8
    days, mfu = draw(st.integers(1, 300)) / draw(st.sampled_from([1, 1, 2])), draw(st.integers(5, 100)) / 100
    peak, size = draw(st.integers(30, 2_500)) * 1e12, draw(st.sampled_from([0.5, 2, 8, 12, 16, 18]))
    time, hold = draw(in_time), draw(to_hold)
    assume(min(abs(c - round(c)) for c in (time, hold)) > 1e-4)
    tokens = float(f"{time * days * 86_400 * peak * mfu / 6 / n:.9g}")
    return given(n, tokens, days, peak, mfu, float(f"{n * size / 1e9 / hold:.9g}"), size)


few = st.integers(1, 4_000).map(lambda k: k / 1_000 + 0.0005)
many = st.integers(5_000, 90_000).map(lambda k: k / 1_000 + 0.0005) | st.integers(1_000, 9_000).map(lambda k: k + 0.5)

exercise.requirement(
    "enough cards to finish in the given number of days, if time is the limit",
    points=0.75,
    visible=[ask(70e9, 15e12, 90, 9.895e14, 0.5, 80, 16), ask(13e9, 1.3687e11, 30, 3.12e14, 0.4, 80, 2)],
    edges={
        "a little more than 15 cards": ask(1e9, 1.0801e11, 1, 1e15, 0.5, 80, 16),
        "half a day": ask(8e9, 1.6e11, 0.5, 9.895e14, 0.4, 80, 16),
        "few bytes for each parameter": ask(80e9, 1.3e10, 30, 1e15, 0.5, 80, 2),
        "a fraction that rounds down": ask(2.88e9, 1.03e10, 1, 1e15, 0.5, 80, 4),
        "a million cards": ask(2e12, 20e12, 7, 1e15, 0.4, 80, 16),
        "a day and a half": ask(1e9, 6.336e9, 1.5, 1e15, 0.4, 80, 16),
        "whole numbers beyond 64 bits": ask(70 * 10**9, 15 * 10**12, 90, 10**15, 0.5, 80, 16),
    },
    domain=plans(many, few),
)
exercise.requirement(
    "enough cards to hold the model, sharded, if memory is the limit",
    points=0.75,
    visible=[ask(13e9, 1e10, 30, 3.12e14, 0.4, 40, 12), ask(4.06e11, 1e9, 30, 9.895e14, 0.5, 80, 16)],
    edges={
        "one token: there is no work": ask(70e9, 1.0, 144, 9.895e14, 0.5, 80, 16),
        "a little more than 16 cards": ask(80.1e9, 5e9, 30, 9.895e14, 0.5, 80, 16),
        "half a byte for each parameter": ask(4.05e11, 1e9, 30, 9.895e14, 0.5, 80, 0.5),
        "a little more than 50,000 cards": ask(1.0000005e12, 1e6, 365, 9.895e14, 0.4, 1, 50),
        "a small card": ask(7e9, 1e9, 30, 1.65e14, 0.5, 24, 16),
        "GB, not GiB": ask(8.4e10, 5e9, 30, 9.895e14, 0.5, 80, 16),
    },
    domain=plans(few, many),
)
exercise.requirement(
    "the smallest number of cards, an int: a job that just fits needs no extra card",
    points=0.5,
    probe=number,
    visible=[ask(80e9, 5e9, 30, 9.895e14, 0.5, 80, 16), ask(2.88e9, 1e10, 1, 1e15, 0.5, 80, 16)],
    edges={
        "one card holds it exactly": ask(5e9, 1e6, 30, 9.895e14, 0.5, 80, 16),
        "15 cards hold it exactly": ask(75e9, 5e9, 30, 9.895e14, 0.5, 80, 16),
        "17 cards hold it exactly": ask(85e9, 5e9, 30, 9.895e14, 0.5, 80, 16),
        "one card is in time exactly": ask(2.88e9, 2.5e9, 1, 1e15, 0.5, 80, 16),
        "both need four cards exactly": ask(2.88e9, 1e10, 1, 1e15, 0.5, 36, 50),
        "far less than a card": ask(1e6, 1e6, 30, 9.895e14, 0.5, 80, 16),
        "two cards hold it exactly, each of them half a parameter": ask(1_953_125.0, 1e6, 30, 9.895e14, 0.5, 1, 1024),
        "a billionth of a card": ask(1, 1, 1, 1e15, 0.4, 80, 16),
    },
    # Numbers that every order of dividing them keeps whole.
    domain=st.builds(
        lambda cards, tokens: ask(cards * 5e9, tokens * 1e6, 30, 1e15, 0.5, 80, 16),
        st.integers(1, 400),
        st.integers(1, 9),
    ),
)

exercise.mistake(
    "Your cards finish in time, but they can't hold the model.", "max(for_compute, for_memory) → for_compute"
)
exercise.mistake("Your cards hold the model, but they don't finish in time.", "max(for_compute, for_memory) → for_memory")
exercise.mistake(
    "The same cards do the computing and hold the "
    "model, so don't add the two numbers.", "max(for_compute, for_memory) → for_compute + for_memory"
)
part = "You can't rent a part of a card: round up."
exercise.mistake(part, "math.ceil(6 → int(6", "math.ceil(parameters → int(parameters")
exercise.mistake(part, "math.ceil(6 → round(6", "math.ceil(parameters → round(parameters")
exercise.mistake("You can't rent part of a card: round up the number needed to finish in time.", "math.ceil(6 → int(6",
                 together_with=["math.ceil(parameters → round(parameters"])  # fmt: skip
exercise.mistake("You can't rent part of a card: round up the number needed to finish in time.", "math.ceil(6 → round(6",
                 together_with=["math.ceil(parameters → int(parameters"])  # fmt: skip
exercise.mistake(
    "You can't rent part of a card: round up the number needed to hold the model.", "math.ceil(parameters → int(parameters"
)
exercise.mistake(
    "You can't rent part of a card: round up the number needed to hold the model.",
    "math.ceil(parameters → round(parameters",
)
exercise.mistake(
    "You can't rent part of a card: round up, and return an int.", "math.ceil(6 → (6", "math.ceil(parameters → (parameters"
)
exercise.mistake(
    "The value is right, but its type isn't: return an int.", "max(for_compute, for_memory) → float(max(for_compute, for_memory))"
)
exercise.mistake(
    "A job that just fits needs no extra card: rounding up doesn't change a whole number.",
    "math.ceil(6 → 1 + int(6",
    "math.ceil(parameters → 1 + int(parameters",
)
exercise.mistake("The MFU is missing: the cards reach only a fraction of their peak.", "peak_flops * mfu → peak_flops",
                 together_with=["6 * parameters * tokens → 2 * parameters * tokens"])  # fmt: skip
exercise.mistake(
    "With a lower MFU, training is slower and takes more cards, not fewer.", "peak_flops * mfu → peak_flops / mfu",
    together_with=["6 * parameters * tokens → parameters * tokens"],
)
exercise.mistake("A day has 24 · 3,600 seconds, and the peak is in FLOP/s.", "days * 24 * 3600 → days")
exercise.mistake("A day has 24 · 3,600 seconds, not 3,600.", "days * 24 * 3600 → days * 3600")
exercise.mistake(
    "The number of days is missing: your code counts the work that a card does in a single day.", "days * 24 * 3600 → 24 * 3600"
)
exercise.mistake(
    "Training takes 6 FLOPs per parameter per token, not 2.", "6 * parameters * tokens → 2 * parameters * tokens"
)
exercise.mistake(
    "Training takes 6 FLOPs per parameter per token, not 1.", "6 * parameters * tokens → parameters * tokens"
)
exercise.mistake("A GB is 10⁹ bytes, not 2³⁰.", "(memory_gb * 1e9) → (memory_gb * 2**30)",
                 together_with=["ceil(parameters * bytes_per_parameter → ceil(parameters"])  # fmt: skip
exercise.mistake("memory_gb is in GB, but the model's size is in bytes.", "(memory_gb * 1e9) → memory_gb")
exercise.mistake(
    "The bytes per parameter are missing: your code divides a number of parameters by a number of bytes.",
    "ceil(parameters * bytes_per_parameter → ceil(parameters",
)
exercise.mistake(
    "The bytes per parameter are an argument; they aren't always 16.",
    "ceil(parameters * bytes_per_parameter → ceil(parameters * 16",
)

# %% mistake: the smaller
# says: The smaller number of cards meets only one of the two conditions.
def cards_needed(parameters, tokens, days, peak_flops, mfu, memory_gb, bytes_per_parameter):
    compute = math.ceil(6 * parameters * tokens / (days * 86_400 * peak_flops * mfu))
    return min(compute, math.ceil(parameters * bytes_per_parameter / (memory_gb * 1e9)))

# %% wrong: one more, to be sure
def cards_needed(parameters, tokens, days, peak_flops, mfu, memory_gb, bytes_per_parameter):
    compute = 6 * parameters * tokens / (days * 86_400 * peak_flops * mfu)
    return math.ceil(max(compute, parameters * bytes_per_parameter / (memory_gb * 1e9))) + 1

# %% wrong: more than enough
def cards_needed(parameters, tokens, days, peak_flops, mfu, memory_gb, bytes_per_parameter):
    compute = 6 * parameters * tokens / (days * 86_400 * peak_flops * mfu)
    return int(max(compute, parameters * bytes_per_parameter / (memory_gb * 1e9))) + 2

# %% wrong: whole servers of eight cards
def cards_needed(parameters, tokens, days, peak_flops, mfu, memory_gb, bytes_per_parameter):
    compute = 6 * parameters * tokens / (days * 86_400 * peak_flops * mfu)
    cards = math.ceil(max(compute, parameters * bytes_per_parameter / (memory_gb * 1e9)))
    return -(-cards // 8) * 8

# %% wrong: rounds to the nearest, at least one
def cards_needed(parameters, tokens, days, peak_flops, mfu, memory_gb, bytes_per_parameter):
    compute = 6 * parameters * tokens / (days * 86_400 * peak_flops * mfu)
    return max(1, round(max(compute, parameters * bytes_per_parameter / (memory_gb * 1e9))))

# %% wrong: a tensor
def cards_needed(parameters, tokens, days, peak_flops, mfu, memory_gb, bytes_per_parameter):
    compute = 6 * parameters * tokens / (days * 86_400 * peak_flops * mfu)
    return torch.tensor(max(compute, parameters * bytes_per_parameter / (memory_gb * 1e9))).ceil().long()

# %% wrong: forgives a hundredth of a card
def cards_needed(parameters, tokens, days, peak_flops, mfu, memory_gb, bytes_per_parameter):
    compute = 6 * parameters * tokens / (days * 86_400 * peak_flops * mfu)
    cards = max(compute, parameters * bytes_per_parameter / (memory_gb * 1e9))
    return max(1, math.ceil(cards - 0.01))

# %% wrong: a thousand cards at most
def cards_needed(parameters, tokens, days, peak_flops, mfu, memory_gb, bytes_per_parameter):
    for cards in range(1, 1025):
        in_time = cards * peak_flops * mfu * days * 86_400 >= 6 * parameters * tokens
        if in_time and cards * memory_gb * 1e9 >= parameters * bytes_per_parameter:
            return cards

# %% wrong: returns a float, as numpy's ceil does (from the statement)
import numpy as np


def cards_needed(
    parameters: float,
    tokens: float,
    days: float,
    peak_flops: float,
    mfu: float,
    memory_gb: float,
    bytes_per_parameter: float,
) -> int:
    """The smallest number of cards that trains the model in time and holds parameters · bytes_per_parameter."""
    for_time = np.ceil(6 * parameters * tokens / (peak_flops * mfu * days * 86_400))
    for_memory = np.ceil(parameters * bytes_per_parameter / (memory_gb * 1e9))
    return np.maximum(for_time, for_memory)

# %% wrong: the next whole number, also where the number is whole already (from the statement)
def cards_needed(
    parameters: float,
    tokens: float,
    days: float,
    peak_flops: float,
    mfu: float,
    memory_gb: float,
    bytes_per_parameter: float,
) -> int:
    """The smallest number of cards that trains the model in time and holds parameters · bytes_per_parameter."""
    for_time = 6 * parameters * tokens / (peak_flops * mfu * days * 86_400)
    for_memory = parameters * bytes_per_parameter / (memory_gb * 1e9)
    return int(max(for_time, for_memory)) + 1

# %% wrong: rounds to the nearest number of cards (from the statement)
def cards_needed(
    parameters: float,
    tokens: float,
    days: float,
    peak_flops: float,
    mfu: float,
    memory_gb: float,
    bytes_per_parameter: float,
) -> int:
    """The smallest number of cards that trains the model in time and holds parameters · bytes_per_parameter."""
    for_time = 6 * parameters * tokens / (peak_flops * mfu * days * 86_400)
    for_memory = parameters * bytes_per_parameter / (memory_gb * 1e9)
    return max(1, round(for_time), round(for_memory))

# %% wrong: rounds the days that one card takes up, too (from the statement)
# unseen: the rounding rarely makes a difference
def cards_needed(parameters, tokens, days, peak_flops, mfu, memory_gb, bytes_per_parameter):
    days_on_one_card = math.ceil(6 * parameters * tokens / (peak_flops * mfu) / 86_400)
    hold = math.ceil(parameters * bytes_per_parameter / (memory_gb * 1e9))
    return max(math.ceil(days_on_one_card / days), hold)

# %% wrong: at most 100,000 cards (from the statement)
# unseen: no visible case needs so many
def cards_needed(parameters, tokens, days, peak_flops, mfu, memory_gb, bytes_per_parameter):
    in_time = math.ceil(6 * parameters * tokens / (peak_flops * mfu * days * 86_400))
    hold = math.ceil(parameters * bytes_per_parameter / (memory_gb * 1e9))
    return min(max(in_time, hold), 100_000)

# %% wrong: a tolerance for rounding errors makes it no card for a tiny job (from the statement)
# unseen: the visible jobs are of the usual size
def cards_needed(
    parameters: float,
    tokens: float,
    days: float,
    peak_flops: float,
    mfu: float,
    memory_gb: float,
    bytes_per_parameter: float,
) -> int:
    """The fewest cards that train in time and hold parameters · bytes_per_parameter bytes."""

    def round_up(x: float) -> int:
        return math.ceil(x - 1e-9)  # a job that just fits needs no extra card

    in_time = round_up(6 * parameters * tokens / (peak_flops * mfu * days * 24 * 3600))
    to_hold = round_up(parameters * bytes_per_parameter / (memory_gb * 1e9))
    return max(in_time, to_hold)

# %% wrong: whole parameters on each card (from the statement)
# unseen: students see cards that hold a whole number of parameters
def cards_needed(
    parameters: float,
    tokens: float,
    days: float,
    peak_flops: float,
    mfu: float,
    memory_gb: float,
    bytes_per_parameter: float,
) -> int:
    """The fewest cards that train in time and hold parameters · bytes_per_parameter bytes."""
    # How many cards finish in time?
    seconds = days * 86_400
    in_time = math.ceil(6 * parameters * tokens / (peak_flops * mfu * seconds))
    # How many cards hold the model?
    parameters_per_card = memory_gb * 1e9 // bytes_per_parameter
    to_hold = math.ceil(parameters / parameters_per_card)
    return max(in_time, to_hold)

# %% right: rounds once
def cards_needed(parameters, tokens, days, peak_flops, mfu, memory_gb, bytes_per_parameter):
    seconds = 60 * 60 * 24 * days
    in_time = 6 * parameters * tokens / seconds / peak_flops / mfu
    to_hold = parameters * bytes_per_parameter / 1e9 / memory_gb
    return math.ceil(max(in_time, to_hold))

# %% right: floor division of negative numbers
def cards_needed(parameters, tokens, days, peak_flops, mfu, memory_gb, bytes_per_parameter):
    work, one = 6 * parameters * tokens, peak_flops * mfu * days * 86_400
    per_card = memory_gb * 1e9 / bytes_per_parameter
    return int(max(-(-work // one), -(-parameters // per_card)))

# %% right: starts at the memory, then asks the clock
def cards_needed(parameters, tokens, days, peak_flops, mfu, memory_gb, bytes_per_parameter):
    cards = math.ceil(parameters * bytes_per_parameter / (memory_gb * 10**9))
    needed = 6 * parameters * tokens / (cards * peak_flops * mfu) / 86_400
    if needed > days:
        cards = math.ceil(cards * needed / days)
    return cards

# %% right: a card more, until it is enough
def cards_needed(parameters, tokens, days, peak_flops, mfu, memory_gb, bytes_per_parameter):
    cards, work, size = 1, 6 * parameters * tokens, parameters * bytes_per_parameter
    while cards * peak_flops * mfu * days * 86_400 < work or cards * memory_gb * 1e9 < size:
        cards += 1
    return cards

# %% right: in fractions, which are exact
def cards_needed(*numbers):
    from fractions import Fraction

    parameters, tokens, days, peak, mfu, memory, size = map(Fraction, numbers)
    in_time = 6 * parameters * tokens / (peak * mfu * days * 86_400)
    to_hold = parameters * size / (memory * 10**9)
    return math.ceil(max(in_time, to_hold))

# %% equivalent: max(for_compute, for_memory) → max(for_memory, for_compute)
# why: the larger of two numbers does not depend on their order

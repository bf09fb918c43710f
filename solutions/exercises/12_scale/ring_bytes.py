from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of

exercise = Exercise("How many rounds are there, and how many bytes does each rank send per round?")

sizes = st.integers(1, 9_000) | st.integers(10**6, 10**15)
ranks = st.integers(1, 9) | st.integers(10, 2_000)


def seconds(student, *args):
    """How long it takes."""
    return student.ring_seconds(*args)


def timed(*args):
    """A case for the second function."""
    return given(*args, says=f"ring_seconds({', '.join(map(repr, args))})")


def rare(collective):
    return {
        "one rank has nobody to send to": given(collective, 1_000, 1),
        "two ranks": given(collective, 1_000, 2),
        "no bytes": given(collective, 0, 4),
        "pieces smaller than a byte": given(collective, 3, 8),
        "many ranks": given(collective, 16 * 10**12, 100_000),
        "an odd number of ranks": given(collective, 1_000, 7),
        "too many bytes for a float": given(collective, 2**80 + 1, 3),
    }


exercise.requirement(
    "in a reduce_scatter or an all_gather, each rank sends one piece per round",
    points=0.25,
    visible=[
        given("reduce_scatter", 800, 4),
        given("all_gather", 800, 4),
        given("reduce_scatter", 1_000, 3),
        given("all_gather", 1_000, 3),
    ],
    edges=rare("reduce_scatter") | {f"all_gather: {name}": case for name, case in rare("all_gather").items()},
    domain=st.builds(given, any_of("reduce_scatter", "all_gather"), sizes, ranks),
)
exercise.requirement(
    "an all_reduce takes as many rounds as a reduce_scatter and an all_gather together",
    points=0.25,
    visible=[given("all_reduce", 800, 4), given("all_reduce", 1_000, 3)],
    edges=rare("all_reduce"),
    domain=st.builds(given, st.just("all_reduce"), sizes, ranks),
    hint="An all_reduce is a reduce_scatter followed by an all_gather. How many rounds does each of them take?",
)
exercise.requirement(
    "ring_seconds: each round takes the latency plus the time to transfer one piece",
    points=0.5,
    probe=seconds,
    visible=[
        timed("reduce_scatter", 800, 4, 0.5, 100.0),
        timed("all_gather", 1_000, 3, 0.0, 50.0),
        timed("all_reduce", 800, 4, 0.5, 100.0),
        timed("all_reduce", 800, 1, 0.5, 100.0),
    ],
    edges={
        "no bytes, but messages": timed("all_gather", 0, 4, 0.5, 100.0),
        "no bytes": timed("all_reduce", 0, 5, 0.5, 100.0),
        "no latency": timed("all_reduce", 1_000, 7, 0.0, 100.0),
        "pieces smaller than a byte": timed("reduce_scatter", 3, 8, 1e-6, 100.0),
        "two ranks": timed("all_reduce", 1_000, 2, 1e-5, 5e10),
        "many ranks": timed("all_reduce", 16 * 10**12, 100_000, 1e-5, 5e10),
        "one rank": timed("all_gather", 1_000, 1, 0.5, 100.0),
    },
    domain=st.builds(given, any_of("all_reduce", "reduce_scatter", "all_gather"), sizes, ranks,
                     any_of(0.0, 1e-6, 1e-5, 0.25), any_of(100.0, 1e9, 5e10)),
    hint="How many rounds are there, and how long does one of them take?",
)  # fmt: skip

exercise.mistake(
    "Your result is too large by a factor of `ranks`. In each round, a rank sends one *piece*, not the whole vector.",
    "piece = size / ranks → piece = size",
)  # fmt: skip
exercise.mistake(
    "Your code counts too many rounds. A piece starts at one rank, so it only has to reach the others.",
    "rounds = ranks - 1 → rounds = ranks",
)  # fmt: skip
exercise.mistake(
    "Your code counts only half of an all_reduce. It's a reduce_scatter followed by an all_gather.",
    "rounds = 2 * rounds → pass",
)  # fmt: skip
exercise.mistake(
    "Your code doubles the rounds of every collective. Only an all_reduce takes twice as many.",
    'if collective == "all_reduce" → if True',
)  # fmt: skip
exercise.mistake(
    "Your code doubles the rounds of an all_gather, which is only half of an all_reduce.",
    '== "all_reduce" → != "reduce_scatter"',
)  # fmt: skip
exercise.mistake(
    "Your code doubles the rounds of a reduce_scatter, which is only half of an all_reduce.",
    '== "all_reduce" → != "all_gather"',
)  # fmt: skip
exercise.mistake(
    "Your code counts a single round. How many rounds does the collective take?",
    "piece = size / ranks → piece = size / ranks / max(ranks - 1, 1)",
)  # fmt: skip
exercise.mistake("Your code counts one round too many for an all_reduce. Both of its halves take the same number of "
                 "rounds.",
                 "rounds = 2 * rounds → rounds = 2 * rounds + 1")  # fmt: skip
exercise.mistake("The size of a piece needn't be an integer. Don't round it down.", "size / ranks → size // ranks")
exercise.mistake(
    "The size of a piece needn't be an integer. Don't round it up.",
    "size / ranks → math.ceil(size / ranks)",
)  # fmt: skip
exercise.mistake(
    "The two halves of an all_reduce run one after the other. Add their rounds instead of multiplying them.",
    "rounds = 2 * rounds → rounds = rounds**2",
)  # fmt: skip
exercise.mistake("ring_seconds counts the latency only once. Count it in every round.",
                 "halves * (ranks - 1) * round_seconds → halves * (ranks - 1) * size / bandwidth / ranks + latency")
exercise.mistake(
    "ring_seconds counts only half of an all_reduce. It's a reduce_scatter followed by an all_gather.",
    '{"all_reduce": 2} → {}',
)  # fmt: skip
exercise.mistake(
    "ring_seconds doubles the rounds of every collective. Only an all_reduce takes twice as many.",
    "get(collective, 1) → get(collective, 2)",
)  # fmt: skip
exercise.mistake(
    "ring_seconds transfers the whole vector in each round. A rank sends only one piece per round.",
    "bandwidth / ranks → bandwidth",
)  # fmt: skip
exercise.mistake("ring_seconds leaves out the latency.", "latency + size / bandwidth → size / bandwidth")
exercise.mistake(
    "ring_seconds counts too many rounds. A piece starts at one rank, so it only has to reach the others.",
    "halves * (ranks - 1) → halves * ranks",
)  # fmt: skip
exercise.mistake(
    "The bandwidth is in bytes per second. To get seconds, divide the bytes by it.",
    "size / bandwidth → size * bandwidth",
)  # fmt: skip
exercise.mistake("Within a round, all ranks send at the same time. Don't add up the times of their messages.",
                 "halves * (ranks - 1) → halves * ranks * (ranks - 1)")  # fmt: skip

# %% wrong: the latency overlaps with the bytes
def ring_bytes(collective, size, ranks):
    return (2 if collective == "all_reduce" else 1) * (ranks - 1) * size / ranks

def ring_seconds(collective, size, ranks, latency, bandwidth):
    return (2 if collective == "all_reduce" else 1) * (ranks - 1) * max(latency, size / ranks / bandwidth)

# %% wrong: an empty message is none
# unseen: only hidden inputs include a message of 0 bytes
def ring_bytes(collective, size, ranks):
    return (2 if collective == "all_reduce" else 1) * (ranks - 1) * size / ranks

def ring_seconds(collective, size, ranks, latency, bandwidth):
    if not size:
        return 0.0
    return (2 if collective == "all_reduce" else 1) * (ranks - 1) * (latency + size / ranks / bandwidth)

# %% wrong: all ranks send to one, which sends to all
def ring_bytes(collective, size, ranks):
    if collective == "all_reduce":
        return size + size * (ranks - 1) / ranks
    return size * (ranks - 1) / ranks

# %% wrong: twice the vector, for many ranks
def ring_bytes(collective, size, ranks):
    half = size if ranks > 100 else size * (ranks - 1) / ranks
    return 2 * half if collective == "all_reduce" else half

# %% wrong: a tree
def ring_bytes(collective, size, ranks):
    half = math.log2(ranks) * size / ranks
    return 2 * half if collective == "all_reduce" else half

# %% wrong: a single rank sends to itself (from the statement)
def ring_bytes(collective: str, size: int, ranks: int) -> float:
    steps = max(ranks - 1, 1)
    return size / ranks * steps * (2 if collective == "all_reduce" else 1)

# %% wrong: every "reduce" costs double (from the statement)
def ring_bytes(collective: str, size: int, ranks: int) -> float:
    rounds = 2 if "reduce" in collective else 1
    return rounds * (ranks - 1) * size / ranks

# %% wrong: in an all_gather, size is taken for what a rank begins with (from the statement)
def ring_bytes(collective: str, size: int, ranks: int) -> float:
    if collective == "all_gather":
        return float((ranks - 1) * size)
    once = (ranks - 1) / ranks * size
    return 2 * once if collective == "all_reduce" else once

# %% right: the vector without one piece
def ring_bytes(collective, size, ranks):
    half = size - size / ranks
    return half + half if collective == "all_reduce" else half

def ring_seconds(collective, size, ranks, latency, bandwidth):
    rounds = {"all_reduce": 2 * ranks - 2}.get(collective, ranks - 1)
    return rounds * latency + ring_bytes(collective, size, ranks) / bandwidth

# %% right: the textbook's formula
def ring_bytes(collective, size, ranks):
    halves = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1}
    return halves[collective] * (1 - 1 / ranks) * size

def ring_seconds(collective, size, ranks, latency, bandwidth):
    time = (ranks - 1) * latency + (1 - 1 / ranks) * size / bandwidth
    return 2 * time if collective == "all_reduce" else time

# %% right: round after round
def ring_bytes(collective, size, ranks):
    if collective == "all_reduce":
        return ring_bytes("reduce_scatter", size, ranks) + ring_bytes("all_gather", size, ranks)
    return math.fsum(size / ranks for _ in range(1, ranks))

def ring_seconds(collective, size, ranks, latency, bandwidth):
    if collective == "all_reduce":
        halves = "reduce_scatter", "all_gather"
        return sum(ring_seconds(half, size, ranks, latency, bandwidth) for half in halves)
    return math.fsum(latency + size / ranks / bandwidth for _ in range(ranks - 1))

# %% right: an exact fraction
def ring_bytes(collective, size, ranks):
    from fractions import Fraction
    rounds = (ranks - 1) * (1 + (collective == "all_reduce"))
    return float(Fraction(size, ranks) * rounds)

def ring_seconds(collective, size, ranks, latency, bandwidth):
    from fractions import Fraction
    rounds = (ranks - 1) * (1 + (collective == "all_reduce"))
    return float(rounds * (Fraction(latency) + Fraction(size, ranks) / Fraction(bandwidth)))

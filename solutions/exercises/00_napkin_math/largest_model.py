from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given

exercise = Exercise("How many bytes of memory can the model use, and how many does each parameter take?")

counts = st.integers(1, 20_000)
memories = st.integers(8, 1_000).map(lambda n: n / 2)
sizes = st.integers(1, 40).map(lambda n: n / 2)

exercise.requirement(
    "sharded (the default): the model is split among the devices, and their memory adds up",
    points=0.5,
    tolerance=1e-8,
    visible=[given(6, 48, 16), given(2, 141, 12), given(3, 24, 8, True), given(16, 2.5, 0.5)],
    edges={
        "one device": given(1, 80, 16),
        "by name": given(4, 80, 16, sharded=True),
        "half a byte for each parameter": given(8, 80, 0.5),
        "a fraction of a GB": given(2, 1.5, 18),
        "many": given(16_384, 80, 18),
        "more digits than a float32 has": given(1_000, 79.6, 12),
    },
    domain=st.builds(given, counts, memories, sizes) | st.builds(given, counts, memories, sizes, st.just(True)),
)
exercise.requirement(
    "not sharded: every device holds the whole model, and more devices don't make room for a larger model",
    points=0.5,
    tolerance=1e-8,
    visible=[given(6, 48, 16, False), given(3, 24, 8, sharded=False)],
    edges={
        "one device": given(1, 80, 16, False),
        "half a byte for each parameter": given(8, 80, 0.5, False),
        "a fraction of a GB": given(2, 1.5, 18, False),
        "many": given(16_384, 80, 18, False),
    },
    domain=st.builds(given, counts, memories, sizes, st.just(False)),
    hint="If the model isn't sharded, how much of it does each device hold?",
)

every = "Without sharding, every device holds the whole model, so the number of devices doesn't matter."
exercise.mistake("Your code takes a GB to be 2³⁰ bytes; on a card's "
                 "label, a GB is 10⁹ bytes.", "memory_gb * 1e9 → memory_gb * 2**30")
exercise.mistake("A GB is 10⁹ bytes; your code takes it to be 1024².", "memory_gb * 1e9 → memory_gb * 1024**2")
exercise.mistake("A GB is 10⁹ bytes; your code takes it to be 10⁶.", "memory_gb * 1e9 → memory_gb * 1e6")
exercise.mistake("Your result is in billions; return the plain number of parameters.", "memory_gb * 1e9 → memory_gb")
exercise.mistake("Your result is a number of bytes; divide it by the bytes that each parameter takes.", "1e9 / bytes_per_parameter → 1e9")
exercise.mistake(
    "The more bytes each parameter takes, the fewer parameters fit: divide by those bytes.",
    "1e9 / bytes_per_parameter → 1e9 * bytes_per_parameter",
)
exercise.mistake("Your code turns the memory into bits, but neither memory_gb nor "
                 "bytes_per_parameter is in bits.", "* 1e9 / → * 8e9 /")
exercise.mistake("The bytes per parameter are an argument; they aren't always 16.", "1e9 / bytes_per_parameter → 1e9 / 16")
exercise.mistake("Your result is for one device; if the model is sharded, the "
                 "memory of all devices counts.", "devices if sharded else 1 → 1")
exercise.mistake(every, "devices if sharded else 1 → devices")
exercise.mistake(
    "It's the other way around: if the model is sharded, the devices' memory adds up; otherwise it doesn't.",
    "devices if sharded else 1 → 1 if sharded else devices",
)
exercise.mistake(
    "More devices hold more: multiply by their number.", "devices if sharded else 1 → 1 / devices if sharded else 1"
)
exercise.mistake(
    "If the model isn't sharded, each device holds the whole model and can use all of its own memory for it.",
    "devices if sharded else 1 → devices if sharded else 1 / devices",
)

# %% mistake: another default
# says: By default the model is sharded.
def largest_model(devices, memory_gb, bytes_per_parameter, sharded=False):
    return (devices if sharded else 1) * memory_gb * 1e9 / bytes_per_parameter

# %% mistake: forgets what is not sharded
# says: Your function returns nothing if the model isn't sharded.
def largest_model(devices, memory_gb, bytes_per_parameter, sharded=True):
    if sharded:
        return devices * memory_gb * 1e9 / bytes_per_parameter

# %% wrong: whole GB only
def largest_model(devices, memory_gb, bytes_per_parameter, sharded=True):
    return (devices if sharded else 1) * int(memory_gb) * 10**9 / bytes_per_parameter

# %% wrong: whole bytes only
def largest_model(devices, memory_gb, bytes_per_parameter, sharded=True):
    return (devices if sharded else 1) * memory_gb * 10**9 // max(1, int(bytes_per_parameter))

# %% wrong: in whole billions
def largest_model(devices, memory_gb, bytes_per_parameter, sharded=True):
    return (devices if sharded else 1) * memory_gb // bytes_per_parameter * 1e9

# %% wrong: at most eight cards are sharded
def largest_model(devices, memory_gb, bytes_per_parameter, sharded=True):
    return (min(devices, 8) if sharded else 1) * memory_gb * 1e9 / bytes_per_parameter

# %% wrong: whole gigabytes only (from the statement)
def largest_model(
    devices: int, memory_gb: float, bytes_per_parameter: float, sharded: bool = True
) -> float:
    """Parameters that fit into devices of memory_gb · 10⁹ bytes each, with nothing else in them."""
    total = int(memory_gb) * 10**9 * (devices if sharded else 1)
    return total / bytes_per_parameter

# %% wrong: whole bytes per parameter only (from the statement)
def largest_model(
    devices: int, memory_gb: float, bytes_per_parameter: float, sharded: bool = True
) -> float:
    """Parameters that fit into devices of memory_gb · 10⁹ bytes each, with nothing else in them."""
    memory = int(memory_gb * 10**9) * (devices if sharded else 1)
    return memory // int(bytes_per_parameter)

# %% wrong: copies on every device leave less room for each (from the statement)
def largest_model(
    devices: int, memory_gb: float, bytes_per_parameter: float, sharded: bool = True
) -> float:
    """Parameters that fit into devices of memory_gb · 10⁹ bytes each, with nothing else in them."""
    if sharded:
        return devices * memory_gb * 1e9 / bytes_per_parameter
    return memory_gb * 1e9 / (devices * bytes_per_parameter)

# %% right: whole parameters
def largest_model(devices, memory_gb, bytes_per_parameter, sharded=True):
    if not sharded:
        devices = 1
    return devices * memory_gb * 10**9 // bytes_per_parameter

# %% right: a truth value as an exponent
def largest_model(devices, memory_gb, bytes_per_parameter, sharded=True):
    return memory_gb / bytes_per_parameter * devices**sharded * 1e9

# %% right: calls itself
def largest_model(devices, memory_gb, bytes_per_parameter, sharded=True):
    if sharded:
        return devices * largest_model(1, memory_gb, bytes_per_parameter, False)
    return memory_gb * 1_000_000_000 / bytes_per_parameter

# %% right: adds up the cards, and leaves a fraction of a parameter on each
def largest_model(devices, memory_gb, bytes_per_parameter, sharded=True):
    return sum(int(memory_gb * 1e9 / bytes_per_parameter) for _ in range(devices if sharded else 1))

# %% equivalent: keeping * memory_gb * 1000000000.0 / bytes_per_parameter → keeping * memory_gb * 1000000000.0 // bytes_per_parameter
# why: the statement says that a fraction of a parameter does not matter

from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of

exercise = Exercise(
    "Memory, arithmetic and bandwidth each limit the batch. How many sequences does each of them allow?"
)

INF = float("inf")


def model(weights=1_000, weight_bytes=2_000, layers=3, width=8, token_bytes=40):
    return {"weights": weights, "weight_bytes": weight_bytes, "layers": layers, "width": width, "token_bytes": token_bytes}


LLAMA = model(7_504_924_672, 15_009_849_344, 32, 4_096, 131_072)


@st.composite
def limits(draw, tight):
    """Halfway to the next sequence, or (memory) exactly there; the other two limits allow more, or anything."""
    weights = draw(st.integers(1, 10**10))
    shape = model(weights, weights * draw(any_of(1, 2, 4)), draw(st.integers(1, 100)), draw(st.integers(1, 10_000)),
                  draw(st.integers(1, 10**6)))  # fmt: skip
    context = draw(st.integers(1, 5_000))
    cache = context * shape["token_bytes"]
    flops = 2 * weights + 4 * shape["layers"] * shape["width"] * context
    seconds = draw(any_of(1e-3, 0.02, 1.0))
    least = draw(st.integers(0, 12) | st.integers(0, 10**9))
    most = {what: least + draw(any_of(1, 3, 10**9)) for what in ("memory", "bandwidth", "arithmetic")} | {tight: least}
    room = most["memory"] * cache + draw(any_of(0, cache // 2, cache - 1))
    peak = (most["arithmetic"] + 0.5) * flops / seconds
    speed = (shape["weight_bytes"] + (most["bandwidth"] + 0.5) * cache) / seconds
    if tight == "bandwidth" and draw(st.integers(0, 4)) == 0:
        speed = draw(any_of(0.5, 0.01)) * shape["weight_bytes"] / seconds  # not even the weights
    return given(shape, context, room, seconds, peak, speed)


exercise.requirement(
    "the caches fit into `room` bytes, and caches of exactly `room` bytes still fit",
    points=0.5,
    visible=[
        given(model(), 10, 2_000, 1.0, 1e5, 9_000.0),
        given(model(), 10, 1_999, 1.0, INF, INF),
        given(model(), 10, 399, INF, 1e5, 9_000.0),
        given(model(), 10, 10**12, INF, 1e5, 9_000.0),
    ],
    edges={
        "no room": given(model(), 10, 0, 1.0, INF, INF),
        "exactly one": given(model(), 10, 400, 1.0, INF, INF),
        "one byte too little": given(model(token_bytes=131_072), 2_048, 2_048 * 131_072 * 7 - 1, 1.0, INF, INF),
        "beyond what a float holds exactly": given(model(token_bytes=3), 1, 3 * (2**60 + 1), 1.0, INF, INF),
        "an H100 with Llama 3.1 8B": given(LLAMA, 2_048, 63_939_477_504, INF, 989.4e12, 3.35e12),
    },
    domain=limits("memory"),
    hint="How many bytes does the cache of one sequence take? How many such caches fit?",
)
exercise.requirement(
    "the weights and caches of a step can be read in time; if the weights alone take too long, the answer is 0",
    points=0.75,
    visible=[
        given(model(), 10, 10**9, 1.0, INF, 5_000.0),
        given(model(), 10, 10**6, 0.5, 1e6, 9_000.0),
        given(model(), 10, 10**9, 1.0, INF, 2_300.0),
        given(model(), 10, 10**9, 1.0, INF, 1_100.0),
    ],
    edges={
        "the weights alone take much longer": given(model(), 10, 10**9, 1e-6, INF, 1_500.0),
        "an H100 with Llama 3.1 8B, 10 ms": given(LLAMA, 2_048, 63_939_477_504, 10e-3, 989.4e12, 3.35e12),
        "4 ms are too little": given(LLAMA, 2_048, 63_939_477_504, 4e-3, 989.4e12, 3.35e12),
        "billions": given(model(token_bytes=1), 1, 10**15, 1.0, INF, 5_000_000_000_500.5),
        "room for as many bytes as the weights have": given(model(), 10, 2_000, 1.0, INF, 3_800.0),
    },
    domain=limits("bandwidth"),
    hint="Suppose that the weights are read first. How many caches can be read in the time that's left?",
)
exercise.requirement(
    "the FLOPs of a step can be computed in time",
    points=0.75,
    visible=[
        given(model(), 100, 10**9, 1.0, 1e5, INF),
        given(model(), 10, 10**6, 2.0, 1e5, 1e6),
        given(model(), 10, 10**9, 1.0, 2_000.0, INF),
    ],
    edges={
        "an H100 with Llama 3.1 8B and little context": given(LLAMA, 16, 10**14, 20e-3, 989.4e12, 3.35e12),
        "a long context": given(model(), 10**6, 10**12, 1.0, 1e9, INF),
        "room for as many bytes as the weights have": given(model(), 10, 2_000, 1.0, 10_360.0, INF),
        "millions": given(model(), 10, 10**9, 1.0, 5_920_001_480.0, INF),
    },
    domain=limits("arithmetic"),
    hint="A decode step has one new token in each sequence. How many FLOPs does that token take?",
)

negative = "If the weights alone take too long, return 0, not a negative number."
exercise.mistake(
    "Your code leaves out the memory. All caches have to fit into `room` bytes.",
    "by_memory = room // cache → by_memory = 10**40",
)  # fmt: skip
exercise.mistake(
    "Your code leaves out the bandwidth. Weights and caches have to be read in time.",
    "min(by_memory, by_arithmetic, by_bandwidth) → min(by_memory, by_arithmetic)",
)  # fmt: skip
exercise.mistake(
    "Your code leaves out the arithmetic. The FLOPs of a step have to be computed in time.",
    "min(by_memory, by_arithmetic, by_bandwidth) → min(by_memory, by_bandwidth)",
)  # fmt: skip
exercise.mistake(
    "Your result is the largest of the three limits. All of them apply, so return the smallest.",
    "math.floor(min(by_memory → math.floor(max(by_memory",
)  # fmt: skip
exercise.mistake(negative, "max(0, math.floor(min(by_memory, by_arithmetic, by_bandwidth))) → math.floor(min(by_memory, by_arithmetic, by_bandwidth))")
exercise.mistake("If even one sequence is too many, return 0.", "max(0, → max(1, ")
exercise.mistake("A cache that fits only partly doesn't count. Round down.", "room // cache → -(-room // cache)")
exercise.mistake("Caches that take exactly `room` bytes still fit.", "room // cache → max(room - 1, 0) // cache")
exercise.mistake(
    "Your code leaves out the weights. They have to be read in the same time as the caches.",
    '(seconds * bandwidth - model["weight_bytes"]) → (seconds * bandwidth)',
)  # fmt: skip
exercise.mistake(
    "`room` is what the weights leave free. Don't subtract their bytes again.",
    'room // cache → (room - model["weight_bytes"]) // cache',
)  # fmt: skip
exercise.mistake(
    "Your code counts the cache of a single token. Each sequence has `context` tokens.",
    'cache = context * model["token_bytes"] → cache = model["token_bytes"]',
)  # fmt: skip
exercise.mistake(
    '"weights" is the number of weights. Their bytes are in "weight_bytes".',
    'bandwidth - model["weight_bytes"] → bandwidth - model["weights"]',
)  # fmt: skip
exercise.mistake("Your code processes the whole context again. In a decode step, each sequence has only one new token.",
                 "seconds * peak / flops → seconds * peak / flops / context")  # fmt: skip
exercise.mistake(
    "Attention's FLOPs are missing. Each new token attends to the whole context.",
    ' + 4 * model["layers"] * model["width"] * context → ',
)  # fmt: skip
exercise.mistake(
    "Your code counts one FLOP per weight. A multiply-add is two FLOPs.",
    'flops = 2 * model["weights"] → flops = model["weights"]',
)  # fmt: skip
exercise.mistake("Your code rounds up, so it counts one sequence too many. Round down.", "math.floor(min → math.ceil(min")
exercise.mistake("Memory and arithmetic work at the same time. Each may take all of `seconds`.",
                 "by_bandwidth = → by_bandwidth = (seconds - model[\"weight_bytes\"] / bandwidth) / (cache / bandwidth + flops / peak) if peak < math.inf and bandwidth < math.inf else")  # fmt: skip
exercise.mistake("Return an integer, rounded down. There are no fractions of a sequence.",
                 "math.floor(min(by_memory, by_arithmetic, by_bandwidth)) → min(by_memory, by_arithmetic, by_bandwidth)")  # fmt: skip

# %% wrong: memory by a quotient of floats
# unseen: only hidden inputs have a `room` that a float can't hold exactly
def largest_batch(model, context, room, seconds, peak, bandwidth):
    cache = context * model["token_bytes"]
    flops = 2 * model["weights"] + 4 * model["layers"] * model["width"] * context
    most = min(room / cache, seconds * peak / flops, (seconds * bandwidth - model["weight_bytes"]) / cache)
    return max(0, int(most))

# %% wrong: powers of two
def largest_batch(model, context, room, seconds, peak, bandwidth):
    cache = context * model["token_bytes"]
    flops = 2 * model["weights"] + 4 * model["layers"] * model["width"] * context
    batch = 1
    while (
        batch * cache <= room
        and batch * flops <= seconds * peak
        and model["weight_bytes"] + batch * cache <= seconds * bandwidth
    ):
        batch *= 2
    return batch // 2

# %% wrong: doubles first, and gives up at a million (from the statement)
def largest_batch(model, context, room, seconds, peak, bandwidth):
    def fits(batch):
        flops = batch * (2 * model["weights"] + 4 * model["layers"] * model["width"] * context)
        read = model["weight_bytes"] + batch * context * model["token_bytes"]
        return batch * context * model["token_bytes"] <= room and max(flops / peak, read / bandwidth) <= seconds

    low, high = 0, 1_000_000
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low

# %% wrong: at least one (from the statement)
def largest_batch(model, context, room, seconds, peak, bandwidth):
    cache = context * model["token_bytes"]
    flops = 2 * model["weights"] + 4 * model["layers"] * model["width"] * context
    in_time = (seconds * bandwidth - model["weight_bytes"]) / cache
    return max(1, math.floor(min(room // cache, seconds * peak / flops, in_time)))

# %% wrong: checks the time of the batch that fits, and no smaller one (from the statement)
def largest_batch(model, context, room, seconds, peak, bandwidth):
    cache = context * model["token_bytes"]
    batch = room // cache
    flops = batch * (2 * model["weights"] + 4 * model["layers"] * model["width"] * context)
    step = max(flops / peak, (model["weight_bytes"] + batch * cache) / bandwidth)
    return batch if step <= seconds else 0

# %% right: bisection
def largest_batch(model, context, room, seconds, peak, bandwidth):
    cache = context * model["token_bytes"]
    flops = 2 * model["weights"] + 4 * model["layers"] * model["width"] * context

    def fits(batch):
        step = max(batch * flops / peak, (model["weight_bytes"] + batch * cache) / bandwidth)
        return batch * cache <= room and step <= seconds

    low, high = 0, int(room // cache) + 1  # low fits, or is 0; high doesn't
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low

# %% right: one limit after the other
def largest_batch(model, context, room, seconds, peak, bandwidth):
    of_one = context * model["token_bytes"]
    batch = room // of_one
    if batch > (computed := seconds * peak / (2 * model["weights"] + 4 * model["layers"] * model["width"] * context)):
        batch = int(computed)
    left = seconds * bandwidth - model["weight_bytes"]
    if left < 0:
        return 0
    return batch if left / of_one > batch else int(left / of_one)

# %% right: in seconds
def largest_batch(model, context, room, seconds, peak, bandwidth):
    flops = 2 * model["weights"] + 4 * model["layers"] * model["width"] * context
    cache = model["token_bytes"] * context
    limits = [room // cache]
    if peak < math.inf and seconds < math.inf:
        limits.append(seconds // (flops / peak))
    if bandwidth < math.inf and seconds < math.inf:
        limits.append((seconds - model["weight_bytes"] / bandwidth) // (cache / bandwidth))
    return max(int(min(limits)), 0)

# %% equivalent: seconds * peak / flops → seconds * peak // flops
# why: the smallest of the limits is rounded down anyway

# %% equivalent: (seconds * bandwidth - model['weight_bytes']) / cache → (seconds * bandwidth - model['weight_bytes']) // cache
# why: the smallest of the limits is rounded down anyway

# %% equivalent: max(0, math.floor(min(by_memory, by_arithmetic, by_bandwidth))) → max(math.floor(min(by_memory, by_arithmetic, by_bandwidth)), 0)
# why: the larger of two numbers does not depend on the order

# %% equivalent: min(by_memory, by_arithmetic, by_bandwidth) → min(by_arithmetic, by_memory, by_bandwidth)
# why: the smallest of three numbers does not depend on the order

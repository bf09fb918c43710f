from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of

exercise = Exercise(
    "Work out two times, one for arithmetic and one for memory. Which of them determines how long the pass takes?"
)


def model(weights=1_000, weight_bytes=2_000, layers=3, width=8, token_bytes=40):
    return {"weights": weights, "weight_bytes": weight_bytes, "layers": layers, "width": width, "token_bytes": token_bytes}


LLAMA = model(7_504_924_672, 15_009_849_344, 32, 4_096, 131_072)


@st.composite
def passes(draw, slower):
    """A pass in which memory or arithmetic takes longer, by little or by much."""
    context, batch = draw(st.integers(1, 5_000)), draw(st.integers(1, 500))
    new = draw(any_of(1, context) | st.integers(1, context))
    weights = draw(st.integers(1, 10**6) | st.integers(10**6, 10**11))
    shape = model(weights, weights * draw(any_of(0.5, 1, 2, 4)), draw(st.integers(1, 130)), draw(st.integers(1, 20_000)),
                  draw(st.integers(1, 10**6)))  # fmt: skip
    flops = batch * new * (2 * weights + 4 * shape["layers"] * shape["width"] * context)
    moved = shape["weight_bytes"] + batch * context * shape["token_bytes"]
    bandwidth = draw(any_of(1e10, 3e11, 3.35e12))
    share = draw(any_of(0.97, 0.6, 0.1, 1e-4, 0.0))  # of the slower one's time
    if slower == "memory":
        return given(shape, batch, new, context, flops / (share * moved / bandwidth) if share else INF, bandwidth)
    return given(shape, batch, new, context, bandwidth * 295, moved / (share * flops / (bandwidth * 295)) if share else INF)


INF = float("inf")
CARD = 989.4e12, 3.35e12
exercise.requirement(
    "a memory-bound pass takes the time to read all weights once, and the cache of each sequence once",
    points=1,
    visible=[
        given(model(), 1, 1, 1, 1e9, 1e3),
        given(model(), 2, 3, 5, 1e9, 1e3),
        given(model(), 1, 1, 1, INF, 3e12),
        given(model(weight_bytes=562.5), 7, 1, 30, INF, 1e3),
    ],
    edges={
        "Llama's decode step": given(LLAMA, 1, 1, 2_048, *CARD),
        "a large batch, compute-bound but for its caches": given(LLAMA, 400, 1, 2_048, *CARD),
        "five new tokens": given(LLAMA, 1, 5, 2_048, *CARD),
        "all tokens are new": given(model(), 2, 9, 9, INF, 1e3),
        "many sequences": given(model(), 10**6, 1, 10, 1e13, 1e9),
        "one of everything": given(model(1, 1, 1, 1, 1), 1, 1, 1, INF, 1.0),
        "both infinite": given(model(), 2, 3, 5, INF, INF),
        "4-bit weights": given(LLAMA | {"weight_bytes": 4_221_520_128}, 64, 1, 2_048, *CARD),
        "both take equally long": given(model(128, 256, 1, 8, 32), 1, 1, 8, 512.0, 512.0),
    },
    domain=passes("memory"),
    hint="What is read once for all sequences, and what is read for each sequence separately?",
)
exercise.requirement(
    "a compute-bound pass takes the time to compute 2 FLOPs per weight, plus attention, for each new token",
    points=1,
    visible=[
        given(model(), 1, 1, 1, 1e3, 1e9),
        given(model(), 2, 3, 5, 1e6, INF),
        given(model(layers=50, width=70), 3, 1, 20, 1e6, 1e9),
    ],
    edges={
        "Llama's prefill": given(LLAMA, 1, 2_048, 2_048, *CARD),
        "a decode step with little context": given(LLAMA, 1_000, 1, 16, *CARD),
        "a prompt of one token": given(model(), 4, 1, 1, 1e6, INF),
        "all tokens are new": given(model(), 1, 9, 9, 1e6, INF),
        "a long context": given(model(), 1, 1, 10**6, 1e6, INF),
        "one of everything": given(model(1, 1, 1, 1, 1), 1, 1, 1, 1.0, INF),
    },
    domain=passes("arithmetic"),
    hint="Section 4 gives the FLOPs of one new token. How many new tokens are there in the whole batch?",
)

exercise.mistake(
    "Your code counts one FLOP per weight and token. A multiply-add is two FLOPs.",
    '2 * model["weights"] → model["weights"]',
)  # fmt: skip
exercise.mistake("Attention's FLOPs are missing. Each new token attends to the whole context.",
                 ' + 4 * model["layers"] * model["width"] * context → ')  # fmt: skip
exercise.mistake("Attention multiplies twice: queries by keys, and attention weights by values. Your code counts one "
                 "of the two.",
                 '4 * model["layers"] → 2 * model["layers"]')  # fmt: skip
exercise.mistake(
    "Your code counts attention in a single layer. Count it in every layer.",
    '4 * model["layers"] * model["width"] → 4 * model["width"]',
)  # fmt: skip
exercise.mistake(
    "Your code leaves the width out of attention's FLOPs.",
    '4 * model["layers"] * model["width"] → 4 * model["layers"]',
)  # fmt: skip
exercise.mistake(
    "Each new token attends to the whole context, not only to the new tokens.",
    '* model["width"] * context → * model["width"] * new',
)  # fmt: skip
exercise.mistake("Your code leaves out what the causal mask hides. By the usual convention, count that, too.",
                 '* model["width"] * context → * model["width"] * (context - (new - 1) / 2)')  # fmt: skip
exercise.mistake(
    "Your code counts one new token per sequence. Each sequence has `new` of them.",
    "batch * new * per_token → batch * per_token",
)  # fmt: skip
exercise.mistake(
    "Your code counts the new tokens of a single sequence. Count those of the whole batch.",
    "batch * new * per_token → new * per_token",
)  # fmt: skip
exercise.mistake(
    "Your code counts FLOPs for the whole context. Only the new tokens are processed.",
    "batch * new * per_token → batch * context * per_token",
)  # fmt: skip
exercise.mistake("The weights are read once for all sequences, not once for each.",
                 'model["weight_bytes"] + batch * context → batch * model["weight_bytes"] + batch * context')  # fmt: skip
exercise.mistake(
    "The weights are read once for all new tokens, not once for each.",
    'model["weight_bytes"] + batch → new * model["weight_bytes"] + batch',
)  # fmt: skip
exercise.mistake(
    "Your code counts a single cache. Each sequence has its own.",
    "batch * context * model → context * model",
)  # fmt: skip
exercise.mistake(
    "The cache holds the whole context, not only the new tokens.",
    "batch * context * model → batch * new * model",
)  # fmt: skip
exercise.mistake(
    "Your code counts only the weights. The caches have to be read as well.",
    ' + batch * context * model["token_bytes"] → ',
)  # fmt: skip
exercise.mistake(
    "Your code counts only the caches. The weights have to be read as well.",
    'model["weight_bytes"] + batch → batch',
)  # fmt: skip
exercise.mistake(
    '"weights" is the number of weights. Their bytes are in "weight_bytes".',
    'moved = model["weight_bytes"] → moved = model["weights"]',
)  # fmt: skip
exercise.mistake("Don't assume two bytes per weight. \"weight_bytes\" gives the bytes of all weights.",
                 'moved = model["weight_bytes"] → moved = 2 * model["weights"]')  # fmt: skip
exercise.mistake(
    "Arithmetic and memory work at the same time. Don't add their times.",
    "max(flops / peak, moved / bandwidth) → flops / peak + moved / bandwidth",
)  # fmt: skip
exercise.mistake(
    "Your result is the time of the faster of the two. The slower one determines how long the pass takes.",
    "max(flops / peak → min(flops / peak",
)  # fmt: skip
exercise.mistake("The number of new tokens doesn't tell you whether a pass is compute-bound. Compare the two times.",
                 "max(flops / peak, moved / bandwidth) → flops / peak if new > 1 else moved / bandwidth")  # fmt: skip

# %% wrong: the new tokens are written, too
def forward_seconds(model, batch, new, context, peak, bandwidth):
    flops = batch * new * (2 * model["weights"] + 4 * model["layers"] * model["width"] * context)
    moved = model["weight_bytes"] + batch * (context + new) * model["token_bytes"]
    return max(flops / peak, moved / bandwidth)

# %% wrong: only the tokens that were there before are read
def forward_seconds(model, batch, new, context, peak, bandwidth):
    flops = batch * new * (2 * model["weights"] + 4 * model["layers"] * model["width"] * context)
    moved = model["weight_bytes"] + batch * (context - new) * model["token_bytes"]
    return max(flops / peak, moved / bandwidth)

# %% wrong: each of the two parts has its own maximum (from the statement)
# unseen: only hidden inputs have one part that is compute-bound and another that is memory-bound
def forward_seconds(model, batch, new, context, peak, bandwidth):
    tokens = batch * new
    weights = max(2 * model["weights"] * tokens / peak, model["weight_bytes"] / bandwidth)
    attention = max(
        4 * model["layers"] * model["width"] * context * tokens / peak,
        batch * context * model["token_bytes"] / bandwidth,
    )
    return weights + attention

# %% wrong: attention once per sequence (from the statement)
def forward_seconds(model, batch, new, context, peak, bandwidth):
    flops = 2 * model["weights"] * batch * new + 4 * model["layers"] * model["width"] * context * batch
    read = model["weight_bytes"] + model["token_bytes"] * batch * context
    return max(flops / peak, read / bandwidth)

# %% wrong: in whole nanoseconds (from the statement)
def forward_seconds(model, batch, new, context, peak, bandwidth):
    flops = batch * new * (2 * model["weights"] + 4 * model["layers"] * model["width"] * context)
    read = model["weight_bytes"] + batch * context * model["token_bytes"]
    return round(max(flops / peak, read / bandwidth), 9)

# %% right: by the intensity, as in lecture 05
def forward_seconds(model, batch, new, context, peak, bandwidth):
    flops = batch * new * (2 * model["weights"] + 4 * model["layers"] * model["width"] * context)
    moved = model["weight_bytes"] + batch * context * model["token_bytes"]
    attainable = min(peak, flops / moved * bandwidth)
    return flops / attainable

# %% right: term by term
def forward_seconds(model, batch, new, context, peak, bandwidth):
    tokens = batch * new
    linear = 2 * tokens * model["weights"]
    attention = 4 * tokens * context * model["width"] * model["layers"]
    arithmetic = linear / peak + attention / peak
    memory = model["weight_bytes"] / bandwidth + batch * (context * model["token_bytes"]) / bandwidth
    return arithmetic if arithmetic > memory else memory

# %% right: sequence by sequence
def forward_seconds(model, batch, new, context, peak, bandwidth):
    weights, weight_bytes, layers, width, token_bytes = (
        model[key] for key in ("weights", "weight_bytes", "layers", "width", "token_bytes")
    )
    per_sequence = new * (weights + weights + layers * 4 * context * width)
    seconds = [batch * per_sequence / peak, (weight_bytes + batch * token_bytes * context) / bandwidth]
    return sorted(seconds)[-1]

# %% equivalent: max(flops / peak, moved / bandwidth) → max(moved / bandwidth, flops / peak)
# why: the larger of two numbers does not depend on the order

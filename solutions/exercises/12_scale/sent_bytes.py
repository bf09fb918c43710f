from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of

exercise = Exercise("Go through the row of the table: which collectives, how often, of how many bytes, and what is computed meanwhile?")


def needed(student, kind, model, cards, tokens, rate):
    """The seconds that your sent_bytes take at your needed_bandwidth; the bandwidth itself where it is 0."""
    bandwidth = student.needed_bandwidth(kind, model, cards, tokens, rate)
    return student.sent_bytes(kind, model, cards, tokens) / bandwidth if bandwidth else bandwidth


def model(parameters, active, layers, width, used):
    return {"parameters": parameters, "active": active, "layers": layers, "width": width, "used": used}


def wanted(*args):
    """A case for the second function."""
    return given(*args, says=f"seconds for your sent_bytes at needed_bandwidth({', '.join(map(repr, args))})")


SMALL = model(1_000, 400, 5, 10, 3)
LLAMA = model(8_030_261_248, 8_030_261_248, 32, 4_096, 1)
DEEPSEEK = model(671 * 10**9, 37 * 10**9, 58, 7_168, 8)
models = st.builds(
    lambda active, more, layers, width, used: model(active + more, active, layers, width, used),
    st.integers(1, 10**12), st.integers(0, 10**12), st.integers(1, 200), st.integers(1, 20_000), st.integers(1, 16),
)  # fmt: skip
cards = st.integers(1, 9) | st.integers(10, 256)  # an answer may walk around the ring, card by card
tokens = st.integers(1, 9) | st.integers(10, 10**7)


def rare(kind):
    return {
        f"{kind}: one card": given(kind, SMALL, 1, 100),
        f"{kind}: two cards": given(kind, SMALL, 2, 100),
        f"{kind}: three cards": given(kind, SMALL, 3, 100),
        f"{kind}: many cards": given(kind, LLAMA, 256, 8_192),
        f"{kind}: one token": given(kind, DEEPSEEK, 8, 1),
        f"{kind}: every size is 1": given(kind, model(1, 1, 1, 1, 1), 4, 1),
        f"{kind}: a large mixture of experts": given(kind, DEEPSEEK, 64, 4_096),
    }


def domain(*kinds):
    return st.builds(given, any_of(*kinds), models, cards, tokens)


exercise.requirement(
    "sent_bytes, data and sharded: collectives on 2 bytes for each parameter, however many tokens there are",
    points=0.5,
    visible=[
        given("data", SMALL, 4, 100),
        given("sharded", SMALL, 4, 100),
        given("data", SMALL, 1, 100),
        given("sharded", SMALL, 5, 7),
    ],
    edges=rare("data") | rare("sharded"),
    domain=domain("data", "sharded"),
    hint="How many bytes leave a card in one of a ring's collectives, and how many collectives are there?",
)
exercise.requirement(
    "sent_bytes, tensor and pipeline: 2 bytes for each number of the residual stream, in every layer or between stages",
    points=0.5,
    visible=[
        given("tensor", SMALL, 4, 100),
        given("tensor", SMALL, 1, 100),
        given("pipeline", SMALL, 4, 100),
        given("pipeline", SMALL, 2, 100),
        given("pipeline", SMALL, 1, 100),
    ],
    edges=rare("tensor") | rare("pipeline"),
    domain=domain("tensor", "pipeline"),
    hint="What is sent grows with the tokens and the width. How often is it sent, and to how many cards?",
)
exercise.requirement(
    "sent_bytes, expert: each token's vector travels to the experts that it uses and back, forward and backward",
    points=0.5,
    visible=[given("expert", SMALL, 4, 100), given("expert", model(900, 900, 7, 10, 1), 5, 10), given("expert", SMALL, 1, 100)],
    edges=rare("expert"),
    domain=domain("expert"),
    hint="An all-to-all keeps one of n parts. How many numbers of a token go into it?",
)
exercise.requirement(
    "needed_bandwidth: the bytes that are sent, in the time that the computation takes",
    points=1,
    probe=needed,
    visible=[
        wanted("data", SMALL, 4, 100, 1e6),
        wanted("sharded", SMALL, 4, 100, 1e6),
        wanted("tensor", SMALL, 4, 100, 1e6),
        wanted("pipeline", SMALL, 4, 100, 1e6),
        wanted("expert", SMALL, 4, 100, 1e6),
        wanted("data", SMALL, 1, 100, 1e6),
    ],
    edges={
        f"{kind}: {name}": wanted(kind, *rest)
        for kind in ("data", "sharded", "tensor", "pipeline", "expert")
        for name, rest in {
            "two cards": (SMALL, 2, 100, 3e5),
            "many cards": (LLAMA, 256, 8_192, 4e14),
            "one token": (DEEPSEEK, 8, 1, 4e14),
            "one card": (LLAMA, 1, 8_192, 4e14),
            "more tokens": (DEEPSEEK, 64, 10**6, 4e14),
            "sizes of 1": (model(1, 1, 1, 1, 1), 4, 1, 1e6),
            "an odd number of cards": (SMALL, 7, 1, 1e6),
        }.items()
    },
    domain=st.builds(given, any_of("data", "sharded", "tensor", "pipeline", "expert"), models, cards, tokens,
                     any_of(1e6, 3e12, 4e14)),
    hint="How many FLOPs does the card compute meanwhile, and how long do they take?",
)  # fmt: skip

exercise.mistake("An all-reduce sends every piece twice: once for the sum, once to give it to all.",
                 "return 2 * others * weights → return others * weights")  # fmt: skip
exercise.mistake("With everything sharded, weights are gathered twice and gradients reduce-scattered once.",
                 "return 3 * others * weights → return 2 * others * weights")  # fmt: skip
exercise.mistake("With everything sharded, gradients are reduce-scattered: no card needs all of their sum.",
                 "return 3 * others * weights → return 4 * others * weights")  # fmt: skip
exercise.mistake("In bfloat16 a parameter takes 2 bytes.", 'weights = 2 * model["parameters"] → weights = model["parameters"]')
exercise.mistake("In bfloat16 a number of the activations takes 2 bytes.", 'stream = 2 * tokens → stream = tokens')
exercise.mistake("All parameters count, including those that a token doesn't use.",
                 'weights = 2 * model["parameters"] → weights = 2 * model["active"]')  # fmt: skip
exercise.mistake("A card keeps one n-th of what it has: only the rest is sent.", "others = (cards - 1) / cards → others = 1 if cards > 1 else 0")
exercise.mistake("A ring has one round fewer than cards.", "others = (cards - 1) / cards → others = 1 if cards > 1 else 1 / cards")
exercise.mistake("A piece is an n-th of the vector: in every round one of these is sent.", "others = (cards - 1) / cards → others = cards - 1")
exercise.mistake("The four collectives of tensor parallelism come in every layer.", 'return 4 * model["layers"] * 2 → return 4 * 2')
exercise.mistake("A layer of tensor parallelism has four all-reduces, and each of them sends every piece twice.",
                 'return 4 * model["layers"] * 2 * others * stream → return 4 * model["layers"] * others * stream')  # fmt: skip
exercise.mistake("A layer has two divided blocks, with a sum forward and one backward each, and not one block.",
                 'return 4 * model["layers"] * 2 * others * stream → return 2 * model["layers"] * others * stream')  # fmt: skip
exercise.mistake("Every token goes to all of the experts that it uses.", '* model["used"] →')
exercise.mistake("Each layer has its own experts.", 'return 4 * model["layers"] * others → return 4 * others')
exercise.mistake("A token goes to its experts and back, and so do the gradients: four trips.",
                 'return 4 * model["layers"] * others → return 2 * model["layers"] * others')  # fmt: skip
exercise.mistake("An all-to-all isn't an all-reduce: every part is sent once.",
                 'return 4 * model["layers"] * others → return 8 * model["layers"] * others')  # fmt: skip
exercise.mistake("Activations go forward and gradients back: a card in the middle sends both.", "min(cards - 1, 2) → min(cards - 1, 1)")
exercise.mistake("With two cards, each has one neighbor; a single card has none.", "min(cards - 1, 2) → 2")
exercise.mistake("A pipeline sends between its stages, and not in every layer.",
                 '2) * stream → 2) * stream * model["layers"]')  # fmt: skip
exercise.mistake("Gradients are sent during the backward pass: two thirds of the step.", '4 if kind == "data" else 6 → 6')
exercise.mistake("Weights are gathered in the forward pass, too: compare with the whole step.", '4 if kind == "data" else 6 → 4 if kind in ("data", "sharded") else 6')
exercise.mistake("Where the matrices or the layers are divided, a card computes only its part.",
                 'cards if kind in ("tensor", "pipeline") else 1 → 1')  # fmt: skip
exercise.mistake("A stage of a pipeline computes only its part of the layers.", 'in ("tensor", "pipeline") → == "tensor"')
exercise.mistake("With its matrices divided, a card computes only its part.", 'in ("tensor", "pipeline") → == "pipeline"')
exercise.mistake("In expert parallelism each card has its own tokens: it computes the whole step for them.",
                 'in ("tensor", "pipeline") → in ("tensor", "pipeline", "expert")')  # fmt: skip
exercise.mistake("Only the parameters that a token uses take FLOPs.", 'passes * model["active"] → passes * model["parameters"]')
exercise.mistake("More tokens take longer to compute.", "* tokens / part / rate → / part / rate")
exercise.mistake("FLOPs divided by FLOP/s are seconds.", "/ part / rate → / part * rate")
exercise.mistake("A bandwidth is bytes divided by seconds.", "cards, tokens) / seconds → cards, tokens) * seconds")

# %% equivalent: min(cards - 1, 2) → min(2, cards - 1)
# why: the smaller of two numbers does not depend on the order

# %% wrong: a single card divides by zero
def sent_bytes(kind, model, cards, tokens):
    once = (cards - 1) / (cards if cards > 1 else 0)
    weights, stream = 2 * model["parameters"], 2 * tokens * model["width"]
    return {
        "data": 2 * once * weights,
        "sharded": 3 * once * weights,
        "tensor": 8 * model["layers"] * once * stream,
        "expert": 4 * model["layers"] * model["used"] * once * stream,
        "pipeline": min(cards - 1, 2) * stream,
    }[kind]

def needed_bandwidth(kind, model, cards, tokens, rate):
    flops = {"data": 4, "sharded": 6, "expert": 6}.get(kind, 6 / cards) * model["active"] * tokens
    return sent_bytes(kind, model, cards, tokens) * rate / flops

# %% wrong: the mean of all cards in a pipeline
def sent_bytes(kind, model, cards, tokens):
    once = (cards - 1) / cards
    weights, stream = 2 * model["parameters"], 2 * tokens * model["width"]
    return {
        "data": 2 * once * weights,
        "sharded": 3 * once * weights,
        "tensor": 8 * model["layers"] * once * stream,
        "expert": 4 * model["layers"] * model["used"] * once * stream,
        "pipeline": 2 * once * stream,
    }[kind]

def needed_bandwidth(kind, model, cards, tokens, rate):
    flops = {"data": 4, "sharded": 6, "expert": 6}.get(kind, 6 / cards) * model["active"] * tokens
    return sent_bytes(kind, model, cards, tokens) * rate / flops

# %% wrong: whole bytes per second
def sent_bytes(kind, model, cards, tokens):
    once = (cards - 1) / cards
    weights, stream = 2 * model["parameters"], 2 * tokens * model["width"]
    return {
        "data": 2 * once * weights,
        "sharded": 3 * once * weights,
        "tensor": 8 * model["layers"] * once * stream,
        "expert": 4 * model["layers"] * model["used"] * once * stream,
        "pipeline": min(cards - 1, 2) * stream,
    }[kind]

def needed_bandwidth(kind, model, cards, tokens, rate):
    flops = {"data": 4, "sharded": 6, "expert": 6}.get(kind, 6 / cards) * model["active"] * tokens
    return sent_bytes(kind, model, cards, tokens) * rate // flops

# %% wrong: what all cards send together (from the statement)
def sent_bytes(kind, model, cards, tokens):
    n, d, L = cards, model["width"], model["layers"]
    if kind == "data":
        return 2 * (n - 1) * 2 * model["parameters"]
    if kind == "sharded":
        return 3 * (n - 1) * 2 * model["parameters"]
    if kind == "tensor":
        return 8 * L * (n - 1) * 2 * d * tokens
    if kind == "expert":
        return 4 * L * (n - 1) * 2 * model["used"] * d * tokens
    return 2 * (n - 1) * 2 * d * tokens

def needed_bandwidth(kind, model, cards, tokens, rate):
    computing = (4 if kind == "data" else 6) * model["active"] * tokens / rate
    return sent_bytes(kind, model, cards, tokens) / computing

# %% wrong: the table's bytes without the ring (from the statement)
def sent_bytes(kind, model, cards, tokens):
    if cards == 1:
        return 0
    vector = 2 * model["width"] * tokens
    return {
        "data": 2 * model["parameters"],
        "sharded": 6 * model["parameters"],
        "tensor": 4 * model["layers"] * vector,
        "pipeline": 2 * vector,
        "expert": 4 * model["layers"] * vector * model["used"],
    }[kind]

def needed_bandwidth(kind, model, cards, tokens, rate):
    flops = {"data": 4, "sharded": 6, "tensor": 6 / cards, "pipeline": 6 / cards, "expert": 6}[kind]
    return sent_bytes(kind, model, cards, tokens) / (flops * model["active"] * tokens / rate)

# %% wrong: the experts all compute, and the tokens are the batch's (from the statement)
def sent_bytes(kind, model, cards, tokens):
    ring = 1 - 1 / cards
    if kind in ("data", "sharded"):
        return (2 if kind == "data" else 3) * ring * 2 * model["parameters"]
    stream = 2 * model["width"] * tokens
    if kind == "pipeline":
        return stream * min(2, cards - 1)
    factor = 2 if kind == "tensor" else model["used"] / cards
    return 4 * model["layers"] * factor * ring * stream

def needed_bandwidth(kind, model, cards, tokens, rate):
    flops = {"data": 4, "sharded": 6}.get(kind, 6 / cards) * model["parameters"] * tokens
    return sent_bytes(kind, model, cards, tokens) / flops * rate

# %% right: by the collectives of a ring
def sent_bytes(kind, model, cards, tokens):
    def one_way(size):
        return size - size / cards

    weights, stream = 2 * model["parameters"], 2 * tokens * model["width"]
    match kind:
        case "data":
            return one_way(weights) + one_way(weights)
        case "sharded":
            return sum(one_way(weights) for _ in range(3))
        case "tensor":
            return 4 * model["layers"] * 2 * one_way(stream)
        case "expert":
            return 4 * model["layers"] * one_way(model["used"] * stream)
        case "pipeline":
            return [0, stream, 2 * stream][min(cards, 3) - 1]

def needed_bandwidth(kind, model, cards, tokens, rate):
    flops = model["active"] * tokens * {"data": 4, "sharded": 6, "expert": 6}.get(kind, 6 / cards)
    return sent_bytes(kind, model, cards, tokens) * rate / flops

# %% right: exact fractions
def sent_bytes(kind, model, cards, tokens):
    from fractions import Fraction

    once, d = Fraction(cards - 1, cards), model["width"]
    if kind == "pipeline":
        neighbors = 0 if cards == 1 else 1 if cards == 2 else 2
        return float(neighbors * 2 * d * tokens)
    count = {"data": 2, "sharded": 3, "tensor": 8 * model["layers"], "expert": 4 * model["layers"] * model["used"]}[kind]
    numbers = model["parameters"] if kind in ("data", "sharded") else d * tokens
    return float(count * once * 2 * numbers)

def needed_bandwidth(kind, model, cards, tokens, rate):
    if cards == 1:
        return 0.0
    each = 4 if kind == "data" else 6
    if kind in {"tensor", "pipeline"}:
        each /= cards
    return rate * sent_bytes(kind, model, cards, tokens) / (each * tokens * model["active"])

# %% right: piece by piece
def sent_bytes(kind, model, cards, tokens):
    rounds = cards - 1
    piece = 2 * (model["parameters"] if kind in ("data", "sharded") else tokens * model["width"]) / cards
    if kind == "pipeline":
        return cards * piece * (rounds if rounds < 2 else 2)
    times = {"data": 2, "sharded": 3, "tensor": 2, "expert": model["used"]}[kind]
    if kind in ("tensor", "expert"):
        times *= 4 * model["layers"]
    return times * rounds * piece

def needed_bandwidth(kind, model, cards, tokens, rate):
    seconds = 6 * model["active"] * tokens / rate
    if kind == "data":
        seconds *= 2 / 3
    elif kind in ("tensor", "pipeline"):
        seconds /= cards
    return sent_bytes(kind, model, cards, tokens) / seconds

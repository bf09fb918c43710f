from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of

exercise = Exercise(
    "Find the kind's row in the table. Which collectives does a card call, how often, and on how many bytes?"
)


def needed(student, kind, model, cards, tokens, rate):
    """The seconds that your sent_bytes take at your needed_bandwidth; the bandwidth itself where it is 0."""
    bandwidth = student.needed_bandwidth(kind, model, cards, tokens, rate)
    return student.sent_bytes(kind, model, cards, tokens) / bandwidth if bandwidth else bandwidth


def model(parameters, active, layers, width, used):
    return {"parameters": parameters, "active": active, "layers": layers, "width": width, "used": used}


def wanted(*args):
    """A case for the second function."""
    return given(*args, says=f"seconds to send your sent_bytes at needed_bandwidth({', '.join(map(repr, args))})")


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
    'sent_bytes for "data" and "sharded": collectives on vectors of 2 bytes per parameter, whatever the number of '
    'tokens',
    points=0.5,
    visible=[
        given("data", SMALL, 4, 100),
        given("sharded", SMALL, 4, 100),
        given("data", SMALL, 1, 100),
        given("sharded", SMALL, 5, 7),
    ],
    edges=rare("data") | rare("sharded"),
    domain=domain("data", "sharded"),
    hint="How many bytes does a card send in one of these collectives (exercise 12.1), and how many collectives are "
         "there?",
)
exercise.requirement(
    'sent_bytes for "tensor" and "pipeline": 2 bytes for each number of the residual stream, sent in every layer or '
    'between stages',
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
    hint="The residual stream has tokens · width numbers. How often is it sent, and to how many cards?",
)
exercise.requirement(
    "sent_bytes for \"expert\": each token's vector travels to the experts that it uses and back, in both passes",
    points=0.5,
    visible=[given("expert", SMALL, 4, 100), given("expert", model(900, 900, 7, 10, 1), 5, 10), given("expert", SMALL, 1, 100)],
    edges=rare("expert"),
    domain=domain("expert"),
    hint="In an all-to-all, a card keeps one of its n parts. How many numbers does each token contribute?",
)
exercise.requirement(
    "needed_bandwidth: sending takes exactly as long as the computation in the table's last column",
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
    hint="How many FLOPs does a card compute while it sends, and how long do they take?",
)  # fmt: skip

exercise.mistake("Your code counts only half of an all-reduce. An all-reduce sends every piece twice: once to "
                 "add it up, once to distribute the sum.",
                 "return 2 * others * weights → return others * weights",
                 together_with=["return 3 * others * weights → return 2 * others * weights"])  # fmt: skip
exercise.mistake('For "sharded", your code counts two collectives. Weights are gathered twice, and gradients are '
                 'reduce-scattered once.',
                 "return 3 * others * weights → return 2 * others * weights")  # fmt: skip
exercise.mistake('For "sharded", gradients are only reduce-scattered. No card needs the whole sum.',
                 "return 3 * others * weights → return 4 * others * weights",
                 together_with=['weights = 2 * model["parameters"] → weights = model["parameters"]'])  # fmt: skip
exercise.mistake(
    "In bfloat16, each parameter takes 2 bytes, not 1.",
    'weights = 2 * model["parameters"] → weights = model["parameters"]',
)  # fmt: skip
exercise.mistake("In bfloat16, each activation takes 2 bytes, not 1.", 'stream = 2 * tokens → stream = tokens')
exercise.mistake("Your code counts only the active parameters. The collectives carry all of them.",
                 'weights = 2 * model["parameters"] → weights = 2 * model["active"]')  # fmt: skip
exercise.mistake(
    "A card sends all of the n parts except one. Your code counts all of them.",
    "others = (cards - 1) / cards → others = 1 if cards > 1 else 0",
)  # fmt: skip
exercise.mistake(
    "Your code counts as many rounds as cards. A piece starts at one card, so it only has to reach the others.",
    "others = (cards - 1) / cards → others = 1 if cards > 1 else 1 / cards",
)  # fmt: skip
exercise.mistake(
    "Your code counts the whole vector in every round. A card sends only one piece of it at a time.",
    "others = (cards - 1) / cards → others = cards - 1",
)  # fmt: skip
exercise.mistake(
    'For "tensor", your code counts a single layer. Every layer has four all-reduces.',
    'return 4 * model["layers"] * 2 → return 4 * 2',
)  # fmt: skip
exercise.mistake('For "tensor", your code counts only half of each all-reduce. An all-reduce sends every piece twice.',
                 'return 4 * model["layers"] * 2 * others * stream → return 4 * model["layers"] * others * stream')  # fmt: skip
exercise.mistake('For "tensor", your code counts one all-reduce per layer. A layer has two divided blocks, each with '
                 'one all-reduce per pass.',
                 'return 4 * model["layers"] * 2 * others * stream → return 2 * model["layers"] * others * stream')  # fmt: skip
exercise.mistake(
    "A token's vector goes to every expert that the token uses. Your code counts only one.",
    '* model["used"] →',
)  # fmt: skip
exercise.mistake(
    'For "expert", your code counts a single layer. Every layer has its own experts.',
    'return 4 * model["layers"] * others → return 4 * others',
)  # fmt: skip
exercise.mistake('For "expert", your code counts two trips. In the backward pass, the gradients make the same two '
                 'trips.',
                 'return 4 * model["layers"] * others → return 2 * model["layers"] * others')  # fmt: skip
exercise.mistake('For "expert", your result is twice as large as it should be. An all-to-all sends every part only '
                 'once.',
                 'return 4 * model["layers"] * others → return 8 * model["layers"] * others')  # fmt: skip
exercise.mistake(
    "A card in the middle of a pipeline sends twice: activations to the next card, gradients to the previous one.",
    "min(cards - 1, 2) → min(cards - 1, 1)",
)  # fmt: skip
exercise.mistake(
    "Not every pipeline has a card with two neighbors. How many neighbors does a card have if there are only two "
    "cards, or just one?",
    "min(cards - 1, 2) → 2",
)  # fmt: skip
exercise.mistake("A pipeline sends only between its stages, not in every layer.",
                 '2) * stream → 2) * stream * model["layers"]')  # fmt: skip
exercise.mistake(
    'For "data", compare with the backward pass only. Your code takes the whole step.',
    '4 if kind == "data" else 6 → 6',
)  # fmt: skip
exercise.mistake(
    'For "sharded", compare with the whole step, because the forward pass gathers weights, too.',
    '4 if kind == "data" else 6 → 4 if kind in ("data", "sharded") else 6',
)  # fmt: skip
exercise.mistake("In tensor and pipeline parallelism, each card does only its part of the computation.",
                 'cards if kind in ("tensor", "pipeline") else 1 → 1')  # fmt: skip
exercise.mistake("In a pipeline, each card computes only its own layers.", 'in ("tensor", "pipeline") → == "tensor"')
exercise.mistake(
    "In tensor parallelism, each card computes only with its own slices of the matrices.",
    'in ("tensor", "pipeline") → == "pipeline"',
)  # fmt: skip
exercise.mistake("In expert parallelism, each card has its own tokens and computes the whole step for them. Don't "
                 "divide by the number of cards.",
                 'in ("tensor", "pipeline") → in ("tensor", "pipeline", "expert")')  # fmt: skip
exercise.mistake(
    "Your code counts the FLOPs of all parameters. A token takes FLOPs only for its active ones.",
    'passes * model["active"] → passes * model["parameters"]',
)  # fmt: skip
exercise.mistake(
    "The table gives FLOPs per token. Your code leaves out the number of tokens.",
    "* tokens / part / rate → / part / rate",
)  # fmt: skip
exercise.mistake("The rate is in FLOP/s. To get seconds, divide the FLOPs by it.", "/ part / rate → / part * rate")
exercise.mistake(
    "A bandwidth is in bytes per second. Divide the bytes by the seconds of computation.",
    "cards, tokens) / seconds → cards, tokens) * seconds",
)  # fmt: skip

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

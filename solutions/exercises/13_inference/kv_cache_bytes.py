from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of

exercise = Exercise("How many numbers does one token add in one layer? How many tokens and layers are there?")

KINDS = ("multi-head", "grouped-query", "multi-query", "latent")
sizes = st.integers(1, 200)


def shape(kind, kv_heads=2, latent=(5, 3), layers=3, heads=6, size=4, batch=5, context=7, number_bytes=2):
    return given(kind, layers, heads, size, batch, context, number_bytes, kv_heads=kv_heads, latent=latent)


def rare(kind):
    return {
        f"{kind}: one of everything": shape(kind, 1, (1, 1), 1, 1, 1, 1, 1, 1),
        f"{kind}: one token": shape(kind, batch=1, context=1),
        f"{kind}: one sequence": shape(kind, batch=1),
        f"{kind}: four bytes": shape(kind, number_bytes=4),
        f"{kind}: one byte": shape(kind, number_bytes=1),
        f"{kind}: beyond what a float holds exactly": shape(kind, 7, (513, 65), 10**5 + 3, 21, 129, 10**6 + 3, 10**8 + 7, 2),
    }


@st.composite
def shapes(draw, kinds):
    groups, kv_heads = draw(st.integers(1, 8)), draw(st.integers(1, 16))
    return shape(
        draw(kinds), kv_heads, (draw(sizes), draw(sizes)), draw(st.integers(1, 130)), groups * kv_heads, draw(sizes),
        draw(st.integers(1, 300)), draw(st.integers(1, 200_000)), draw(any_of(1, 2, 4)),
    )  # fmt: skip


exercise.requirement(
    "multi-head: a key and a value for each head, per token and layer",
    points=0.25,
    visible=[shape("multi-head"), shape("multi-head", layers=2, heads=3, size=8, batch=1, context=9, number_bytes=4)],
    edges=rare("multi-head"),
    domain=shapes(st.just("multi-head")),
)
exercise.requirement(
    "grouped-query: a key and a value for each key-value head; multi-query: a single key and a single value",
    points=0.25,
    visible=[shape("grouped-query"), shape("multi-query"), shape("grouped-query", kv_heads=3, batch=1, number_bytes=1)],
    edges={
        "as many key-value heads as heads": shape("grouped-query", kv_heads=6),
        "a single key-value head": shape("grouped-query", kv_heads=1),
        **rare("grouped-query"),
        **rare("multi-query"),
    },
    domain=shapes(any_of("grouped-query", "multi-query")),
)
exercise.requirement(
    "latent: the latent vector and the one that encodes the position, each once per token and layer, however many heads "
    "there are",
    points=0.25,
    visible=[shape("latent"), shape("latent", latent=(512, 64), layers=61, heads=128, size=128, batch=1, context=10)],
    edges={"no vector for the position": shape("latent", latent=(8, 0)), **rare("latent")},
    domain=shapes(st.just("latent")),
)
exercise.requirement(
    "any other kind raises ValueError",
    points=0.25,
    parts=["error"],
    visible=[shape("multihead"), shape("grouped-query"), shape("latent"), shape("multi-head"), shape("multi-query")],
    edges={"nothing": shape(""), "capitals": shape("Latent"), "sliding": shape("sliding-window"), "a part": shape("multi")},
    domain=shapes(any_of(*KINDS, "", "multi_head", "latents", "mla", "Multi-Query", "grouped")),
    hint="What should happen with a kind that the statement doesn't list?",
)

times = "layers * batch * context * number_bytes * numbers"
both = "Your code counts one vector for each key-value head. There are two, a key and a value."
exercise.mistake(both, "2 * heads * size → heads * size", "2 * kv_heads * size → kv_heads * size", "2 * size → size")
exercise.mistake(
    "In multi-head attention, each head keeps two vectors, a key and a value. Your code counts one.",
    "2 * heads * size → heads * size",
)  # fmt: skip
exercise.mistake(
    "In grouped-query attention, each key-value head keeps two vectors, a key and a value. Your code counts one.",
    "2 * kv_heads * size → kv_heads * size",
)  # fmt: skip
exercise.mistake(
    "In multi-query attention, the shared head keeps two vectors, a key and a value. Your code counts one.",
    "= 2 * size → = size",
)  # fmt: skip
exercise.mistake(
    "Count the latent vector once. Keys and values are both computed from it.",
    "sum(latent) → 2 * sum(latent)",
)  # fmt: skip
exercise.mistake(
    "Your code leaves out the vector that encodes the position. It's kept as well.",
    "sum(latent) → latent[0]",
)  # fmt: skip
exercise.mistake(
    "Count the vector that encodes the position once. All heads share it.",
    "sum(latent) → latent[0] + heads * latent[1]",
)  # fmt: skip
exercise.mistake(
    "Count the latent vector and the one that encodes the position once, not once per head. All heads share them.",
    "sum(latent) → heads * sum(latent)",
)  # fmt: skip
exercise.mistake(
    "Your code counts a single layer. Every layer has its own cache.",
    f"{times} → batch * context * number_bytes * numbers",
)  # fmt: skip
exercise.mistake(
    "Your code counts a single sequence. Every sequence in the batch has its own cache.",
    f"{times} → layers * context * number_bytes * numbers",
)  # fmt: skip
exercise.mistake(
    "Your code counts a single token. The cache keeps every token of the context.",
    f"{times} → layers * batch * number_bytes * numbers",
)  # fmt: skip
exercise.mistake(
    "Your result is a number of elements. Convert it to bytes.",
    f"{times} → layers * batch * context * numbers",
)  # fmt: skip
exercise.mistake(
    "In grouped-query attention, count the key-value heads, not the query heads.",
    "2 * kv_heads * size → 2 * heads * size",
)  # fmt: skip
exercise.mistake("`kv_heads` is the number of key-value heads, not the number of query heads that share one.",
                 "2 * kv_heads * size → 2 * (heads // kv_heads) * size")  # fmt: skip
exercise.mistake(
    "In multi-query attention, all query heads share a single key and a single value.",
    "= 2 * size → = 2 * heads * size",
)  # fmt: skip
exercise.mistake("Multi-query attention has a single key-value head, whatever `kv_heads` is.",
                 "= 2 * size → = 2 * kv_heads * size")  # fmt: skip
exercise.mistake("In multi-head attention, every query head has its own keys and values, whatever `kv_heads` is.",
                 "2 * heads * size → 2 * kv_heads * size")  # fmt: skip
exercise.mistake("Your code accepts an unknown kind. Raise ValueError for it.",
                 'raise ValueError(f"unknown kind of attention: {kind}") → numbers = 2 * heads * size')  # fmt: skip
exercise.mistake("For an unknown kind, raise ValueError, not another error.", "raise ValueError → raise KeyError")

# %% wrong: the attention weights are kept, too
def kv_cache_bytes(kind, layers, heads, size, batch, context, number_bytes, *, kv_heads=1, latent=(0, 0)):
    kept = {"multi-head": heads, "grouped-query": kv_heads, "multi-query": 1}
    if kind == "latent":
        return layers * batch * context * sum(latent) * number_bytes
    if kind not in kept:
        raise ValueError(kind)
    return layers * batch * (2 * context * kept[kind] * size + heads * context**2) * number_bytes

# %% wrong: floats
# unseen: only hidden inputs have results that a float can't hold exactly
def kv_cache_bytes(kind, layers, heads, size, batch, context, number_bytes, *, kv_heads=1, latent=(0, 0)):
    kept = {"multi-head": 2.0 * heads * size, "grouped-query": 2.0 * kv_heads * size, "multi-query": 2.0 * size,
            "latent": float(sum(latent))}
    if kind not in kept:
        raise ValueError(kind)
    return layers * batch * context * number_bytes * kept[kind]

# %% wrong: a KeyError for what isn't listed (from the statement)
def kv_cache_bytes(kind, layers, heads, size, batch, context, number_bytes, *, kv_heads=1, latent=(0, 0)):
    c, r = latent
    per_token = {
        "multi-head": 2 * heads * size,
        "grouped-query": 2 * kv_heads * size,
        "multi-query": 2 * size,
        "latent": c + r,
    }[kind]
    return per_token * layers * batch * context * number_bytes

# %% wrong: by the first letters (from the statement)
def kv_cache_bytes(kind, layers, heads, size, batch, context, number_bytes, *, kv_heads=1, latent=(0, 0)):
    if kind.startswith("multi-q"):
        numbers = 2 * size
    elif kind.startswith("m"):
        numbers = 2 * heads * size
    elif kind.startswith("g"):
        numbers = 2 * kv_heads * size
    elif kind.startswith("l"):
        numbers = sum(latent)
    else:
        raise ValueError("no such kind")
    return numbers * layers * batch * context * number_bytes

# %% wrong: the position's vector is kept by every head (from the statement)
def kv_cache_bytes(kind, layers, heads, size, batch, context, number_bytes, *, kv_heads=1, latent=(0, 0)):
    tokens = batch * context
    match kind:
        case "multi-head":
            numbers = 2 * heads * size
        case "grouped-query":
            numbers = 2 * kv_heads * size
        case "multi-query":
            numbers = 2 * size
        case "latent":
            numbers = latent[0] + latent[1] * heads
        case _:
            raise ValueError(kind)
    return tokens * layers * number_bytes * numbers

# %% right: a table of key-value heads
def kv_cache_bytes(kind, layers, heads, size, batch, context, number_bytes, *, kv_heads=1, latent=(0, 0)):
    shared = {"multi-head": heads, "grouped-query": kv_heads, "multi-query": 1}
    if kind == "latent":
        numbers = latent[0] + latent[1]
    elif kind in shared:
        numbers = size * shared[kind] * 2
    else:
        raise ValueError(f"{kind!r} is not a kind of attention")
    return numbers * number_bytes * layers * context * batch

# %% right: bytes of meta tensors
def kv_cache_bytes(kind, layers, heads, size, batch, context, number_bytes, *, kv_heads=1, latent=(0, 0)):
    if kind not in ("multi-head", "grouped-query", "multi-query", "latent"):
        raise ValueError(kind)
    keys = {"multi-head": heads, "grouped-query": kv_heads}.get(kind, 1)
    if kind == "latent":
        one = torch.empty(latent[0], device="meta").numel() + torch.empty(latent[1], device="meta").numel()
    else:
        one = 2 * torch.empty(keys, size, device="meta").numel()
    return math.prod((one, layers, batch, context, number_bytes))

# %% right: case by case
def kv_cache_bytes(kind, layers, heads, size, batch, context, number_bytes, *, kv_heads=1, latent=(0, 0)):
    match kind:
        case "latent":
            per_token = sum(latent)
        case "multi-query":
            per_token = size + size
        case "multi-head":
            per_token = heads * (size + size)
        case "grouped-query":
            per_token = kv_heads * (size + size)
        case other:
            raise ValueError(other)
    per_sequence = context * per_token * layers
    return per_sequence * number_bytes * batch

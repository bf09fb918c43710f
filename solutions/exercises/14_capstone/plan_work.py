from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given

exercise = Exercise("Go through the table row by row. How often does each row occur, and does it take part in a matrix product?")

sizes = st.builds(
    given,
    st.integers(1, 100),  # layers
    st.integers(1, 10_000),  # width
    st.integers(1, 10_000),  # context
    st.integers(1, 100_000),  # vocabulary
)
small, larger, other = given(2, 8, 5, 13), given(3, 16, 32, 256), given(1, 12, 7, 29)
large = given(40, 5_120, 2_048, 32_000)
edges = {
    "GPT-3": given(96, 12_288, 2_048, 50_257),
    "one of everything": given(1, 1, 1, 1),
    "all sizes equal": given(4, 4, 4, 4),
    "one layer": given(1, 6, 5, 11),
    "beyond 64 bits": given(10**6, 10**7, 1, 1),
    "a very long context": given(2, 3, 1_000_000, 7),
    "beyond what a float holds exactly": given(10_007, 1_000_003, 1_000_033, 1_000_037),
}
exercise.requirement(
    '"parameters": every row of the table, those of a layer once for each layer',
    points=1,
    visible=[small, larger, other, large],
    edges=edges,
    domain=sizes,
    rules={"FLOPs per token": "ignored"},
    hint="Go through the table row by row; the rows of a layer count once for each layer.",
)
exercise.requirement(
    '"FLOPs per token": 6 for each weight in a matrix product, plus attention, forward and backward',
    points=1,
    visible=[small, larger, other, large],
    edges=edges,
    domain=sizes,
    rules={"parameters": "ignored"},
    hint="Which rows of the table take part in a matrix product? And what does attention cost in each layer, "
         "backward pass included?",
)

PARAMETERS = '"parameters": matrices + table + context * width + norms'
FLOPS = "6 * (matrices + table) + 12 * layers * width * context"
both = "layers * 12 * width**2 →"
exercise.mistake("The token embedding is also the output layer: count it once.",
                 f"{PARAMETERS} → {PARAMETERS} + table")  # fmt: skip
exercise.mistake("The token embedding is missing: it is trained, and counts once.",
                 f'{PARAMETERS} → "parameters": matrices + context * width + norms')  # fmt: skip
exercise.mistake("The positional embedding is missing: it is trained as well.",
                 f'{PARAMETERS} → "parameters": matrices + table + norms')  # fmt: skip
exercise.mistake("The norms are missing: they have few numbers, but they are trained.", "+ norms → + 0")
exercise.mistake("The LayerNorm at the end is missing.", "2 * layers + 1 → 2 * layers")
exercise.mistake("The LayerNorms of the layers are missing: each layer has two.", "(2 * layers + 1) → 1")
exercise.mistake("Each layer has two LayerNorms.", "2 * layers + 1 → layers + 1")
exercise.mistake("A LayerNorm has two vectors, a scale and a shift.", "+ 1) * 2 * width → + 1) * width")
exercise.mistake("The norms are in every layer: they count once for each layer.", "(2 * layers + 1) → 3")
exercise.mistake("None of the matrices has a bias here.", "+ norms → + norms + 9 * layers * width")
exercise.mistake("The matrices of a layer count once for each layer.", f"{both} 12 * width**2")
exercise.mistake("The feed-forward part has two matrices, up and down.", f"{both} layers * 8 * width**2")
exercise.mistake("The feed-forward part has two matrices, up and down.", f"{PARAMETERS} → {PARAMETERS} - layers * 4 * width**2")
exercise.mistake("qkv makes queries, keys and values: its output is three times as wide as its input.",
                 f"{PARAMETERS} → {PARAMETERS} - layers * 2 * width**2",
                 together_with=[f"{both} layers * 10 * width**2"])  # fmt: skip
exercise.mistake("qkv makes queries, keys and values: its output is three "
                 "times as wide as its input.", f"{both} layers * 10 * width**2")
exercise.mistake("The matrix `out` is missing: each layer has one.", f"{both} layers * 11 * width**2")
exercise.mistake("One dimension of up and of down is four times as large: 4d, not d.", f"{both} layers * 6 * width**2")
exercise.mistake("Attention multiplies queries by keys, and attention weights by values: these FLOPs are missing.",
                 f"{FLOPS} → 6 * (matrices + table)")  # fmt: skip
exercise.mistake("6 FLOPs for every parameter is only a rule of thumb. The positional embedding and the norms take part in no matrix product, "
                 "and attention is missing.",
                 f"{FLOPS} → 6 * (matrices + table + context * width + norms)")  # fmt: skip
exercise.mistake("Only weights in matrix products count: the positional embedding is only looked up, and norms "
                 "aren't matrix products.",
                 f"{FLOPS} → {FLOPS} + 6 * context * width", f"{FLOPS} → {FLOPS} + 6 * norms")  # fmt: skip
exercise.mistake("The positional embedding is only looked up: it takes part in no matrix product.", f"{FLOPS} → {FLOPS} + 6 * context * width")
exercise.mistake("Norms aren't matrix products, so they aren't counted.", f"{FLOPS} → {FLOPS} + 6 * norms")
exercise.mistake("The token embedding takes part in a product as well: it's the output layer.",
                 "6 * (matrices + table) → 6 * matrices")  # fmt: skip
exercise.mistake("The output layer is the token embedding, not the positional one.",
                 f"{FLOPS} → {FLOPS} + 6 * context * width", "6 * (matrices + table) → 6 * matrices")  # fmt: skip
exercise.mistake("The token embedding takes part in one product, at the output; at the input it's only looked up.",
                 "6 * (matrices + table) → 6 * (matrices + 2 * table)")  # fmt: skip
exercise.mistake("Attention has a backward pass, too, which costs twice as much as its forward pass.", "12 * layers * width → 4 * layers * width")
exercise.mistake("Your result is attention's backward pass alone: add its forward pass.",
                 "12 * layers * width → 8 * layers * width")  # fmt: skip
exercise.mistake("Attention multiplies twice: queries by keys, and attention weights by values.",
                 "12 * layers * width → 6 * layers * width")  # fmt: skip
exercise.mistake("By convention, the half of the scores that the mask hides is counted, too.",
                 "12 * layers * width * context → 6 * layers * width * (context + 1)")  # fmt: skip
exercise.mistake("Every layer has attention.", "12 * layers * width → 12 * width")
exercise.mistake("Your result is attention's FLOPs for all tokens of a sequence; the exercise asks for one token.",
                 "12 * layers * width * context → 12 * layers * width * context**2")  # fmt: skip
forward = "Your result is the forward pass alone; add the backward pass, which costs twice as much."
exercise.mistake(forward, f"{FLOPS} → ({FLOPS}) // 3")
exercise.mistake(forward, f"{FLOPS} → ({FLOPS}) // 3 * 2", f"{FLOPS} → ({FLOPS}) // 2")
exercise.mistake("Your result is the backward pass alone; add the forward pass.", f"{FLOPS} → ({FLOPS}) // 3 * 2")
exercise.mistake("A multiplication and an addition are 2 FLOPs.", f"{FLOPS} → ({FLOPS}) // 2")
exercise.mistake("Your result is for a whole sequence; the exercise asks for one token.", f"{FLOPS} → context * ({FLOPS})")

# %% mistake: a pair
# says: Return a dict with the two keys "parameters" and "FLOPs per token".
def plan_work(layers, width, context, vocabulary):
    matrices, table, norms = layers * 12 * width**2, vocabulary * width, (4 * layers + 2) * width
    return matrices + table + context * width + norms, 6 * (matrices + table) + 12 * layers * width * context

# %% wrong: floats, which lose the last digits
# unseen: only counts that a float can't hold exactly show it
def plan_work(layers, width, context, vocabulary):
    matrices, table, norms = layers * 12.0 * width**2, vocabulary * width, (4 * layers + 2) * width
    return {"parameters": int(matrices + table + context * width + norms), "FLOPs per token": int(6 * (matrices + table) + 12 * layers * width * context)}

# %% wrong: twelve matrices of d × d in 32-bit numbers
def plan_work(layers, width, context, vocabulary):
    matrices, table, norms = int(np.int64(layers * 12 * width**2 % 2**31)), vocabulary * width, (4 * layers + 2) * width
    return {"parameters": matrices + table + context * width + norms, "FLOPs per token": 6 * (matrices + table) + 12 * layers * width * context}

# %% wrong: counts in floats, and makes them whole at the end (from the statement)
# unseen: only counts that a float can't hold exactly show it
def plan_work(layers: int, width: int, context: int, vocabulary: int) -> dict[str, int]:
    d = float(width)
    weights = 12 * layers * d**2 + vocabulary * d
    parameters = weights + context * d + (4 * layers + 2) * d
    flops = 3 * (2 * weights + 4 * layers * d * context)
    return {"parameters": int(parameters), "FLOPs per token": int(flops)}

# %% wrong: the 6 N rule for all parameters (from the statement)
def plan_work(layers: int, width: int, context: int, vocabulary: int) -> dict[str, int]:
    d = width
    parameters = (vocabulary + context) * d + layers * (12 * d * d + 4 * d) + 2 * d
    return {"parameters": parameters, "FLOPs per token": 6 * parameters + 12 * layers * d * context}

# %% wrong: the table of tokens is looked up, so it costs no FLOPs (from the statement)
def plan_work(layers: int, width: int, context: int, vocabulary: int) -> dict[str, int]:
    matrices = 12 * width**2
    parameters = (vocabulary + context + 2) * width + layers * (matrices + 4 * width)
    flops = 6 * layers * matrices + 3 * 4 * layers * width * context
    return {"parameters": parameters, "FLOPs per token": flops}

# %% right: counted on the meta device
def plan_work(layers, width, context, vocabulary):
    with torch.device("meta"):
        layer = [nn.Linear(a * width, b * width, bias=False) for a, b in ((1, 3), (1, 1), (1, 4), (4, 1))]
        all_layers = layers * sum(m.weight.numel() for m in layer)
        table, places = nn.Embedding(vocabulary, width).weight.numel(), nn.Embedding(context, width).weight.numel()
        norms = (2 * layers + 1) * sum(p.numel() for p in nn.LayerNorm(width).parameters())
    return {
        "FLOPs per token": 6 * (all_layers + table) + 3 * layers * 2 * (context * width + context * width),
        "parameters": all_layers + table + places + norms,
    }

# %% right: layer after layer
def plan_work(layers, width, context, vocabulary):
    number, flops = vocabulary * width + 2 * width, 2 * vocabulary * width
    number += context * width
    for _ in range(layers):
        for rows, columns in [(width, 3 * width), (width, width), (width, 4 * width), (4 * width, width)]:
            number += rows * columns
            flops += 2 * rows * columns
        number += 4 * width
        flops += 4 * width * context
    return dict([("parameters", number), ("FLOPs per token", 3 * flops)])

# %% right: the formula with d factored out
def plan_work(layers, width, context, vocabulary):
    return {"parameters": width * (12 * layers * width + vocabulary + context + 4 * layers + 2), "FLOPs per token": 6 * width * (12 * layers * width + vocabulary + 2 * layers * context)}

# %% right: remembers what it has returned
from functools import cache

@cache
def plan_work(layers, width, context, vocabulary):
    multiplied = 12 * layers * width**2 + vocabulary * width
    return {
        "parameters": multiplied + context * width + 4 * layers * width + 2 * width,
        "FLOPs per token": 6 * multiplied + 12 * layers * width * context,
    }

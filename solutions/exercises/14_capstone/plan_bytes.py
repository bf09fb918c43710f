from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given

exercise = Exercise("Row by row: how many numbers, how many bytes each, and does the row count once or in each layer?")

THREE = ("parameters", "gradients", "optimizer state")


def plans(mixed):
    @st.composite
    def draw_one(draw):
        heads, size = draw(st.integers(1, 20)), draw(st.integers(1, 200))
        return given(
            draw(st.integers(1, 10**9)),  # parameters
            draw(st.integers(1, 100)),  # layers
            heads * size,  # width
            heads,
            draw(st.integers(1, 5_000)),  # context
            draw(st.integers(1, 100_000)),  # vocabulary
            draw(st.integers(1, 100)),  # batch
            draw(mixed),
        )

    return draw_one()


def edges(*modes):
    sizes = {
        "GPT-3": (175_000_000_000, 96, 12_288, 96, 2_048, 50_257, 1_536),
        "one of everything": (1, 1, 1, 1, 1, 1, 1),
        "all sizes equal": (4, 4, 4, 4, 4, 4, 4),
        "one layer": (1_000, 1, 8, 2, 4, 10, 3),
        "one sequence of one token": (1_000, 2, 8, 2, 1, 10, 1),
        "one head": (1_000, 3, 7, 1, 5, 11, 2),
        "a head for each number": (1_000, 3, 7, 7, 5, 11, 2),
        "a long context": (1_000, 2, 8, 2, 1_000_000, 10, 1),
        "beyond what a float holds exactly": (10**17 + 1, 1_009, 1_000_003 * 7, 7, 1_000_033, 1_000_037, 10_007),
    }
    return {f"{name}, mixed={mixed}": given(*size, mixed) for name, size in sizes.items() for mixed in modes}


with_mixed, without = (given(1_000, 2, 8, 2, 5, 11, 3, mixed) for mixed in (True, False))
exercise.requirement(
    "parameters, gradients and AdamW's moments: float32, whether or not mixed is true",
    points=0.5,
    visible=[with_mixed, without],
    edges=edges(True, False),
    domain=plans(st.booleans()),
    rules={"activations": "ignored"},
    hint="AdamW has two moments for each parameter. Does autocast convert the moments, the "
         "parameter or its gradient to 16 bits?",
)
exercise.requirement(
    "activations in float32: every row, those of the first table once for each layer",
    points=0.75,
    visible=[without, given(1_000, 3, 6, 3, 7, 5, 1, False), given(1_000, 1, 5, 1, 3, 2, 1, False)],
    edges=edges(False),
    domain=plans(st.just(False)),
    rules=dict.fromkeys(THREE, "ignored"),
)
exercise.requirement(
    "activations if mixed is true: 4 or 2 bytes, as the third column says, and the copies",
    points=0.75,
    visible=[with_mixed, given(1_000, 3, 6, 3, 7, 5, 1, True), given(1_000, 1, 5, 1, 3, 2, 1, True), given(1_000, 2, 4, 4, 9, 3, 2, True)],
    edges=edges(True),
    domain=plans(st.just(True)),
    rules=dict.fromkeys(THREE, "ignored"),
    hint="Which format does each row have under autocast? The last row of the second table exists only under autocast.",
)

ACTIVATIONS = "layers * layer + once + copies"
GRADIENTS = '"gradients": 4 * parameters'
PARAMETERS = '"parameters": 4 * parameters'
COPIES = "copies = 2 * (12 * layers * width**2 + vocabulary * width) if mixed else 0"

exercise.mistake("Under autocast the parameters stay float32, 4 bytes each: only the inputs of matrix products are converted.",
                 f'{PARAMETERS} → "parameters": size * parameters')  # fmt: skip
exercise.mistake("Gradients have the format of their parameters: float32, 4 bytes each, under autocast too.",
                 f'{GRADIENTS} → "gradients": size * parameters')  # fmt: skip
exercise.mistake("Parameters and gradients stay float32 under autocast: only the inputs of matrix products are converted.",
                 f'{PARAMETERS} → "parameters": size * parameters', f'{GRADIENTS} → "gradients": size * parameters')  # fmt: skip
exercise.mistake("AdamW's moments stay float32 under autocast, 4 bytes each.", "8 * parameters → 2 * size * parameters")
exercise.mistake("AdamW keeps two moments for each parameter.", "8 * parameters → 4 * parameters")
exercise.mistake("There is no master copy here: the parameters themselves are float32.",
                 "8 * parameters → (12 if mixed else 8) * parameters")  # fmt: skip
exercise.mistake("The optimizer state is only what AdamW adds; the parameters have their own entry.",
                 "8 * parameters → 12 * parameters")  # fmt: skip
exercise.mistake("You counted numbers, not bytes.",
                 f'{PARAMETERS} → "parameters": parameters', f'{GRADIENTS} → "gradients": parameters',
                 "8 * parameters → 2 * parameters")  # fmt: skip
exercise.mistake("You counted numbers, not bytes: each takes 4 bytes, or 2.",
                 "layer = 4 * → layer =", "+ size * tokens * 14 → + tokens * 14", "once = 4 * → once =",
                 "+ size * tokens * width → + tokens * width", "copies = 2 * → copies =")  # fmt: skip
exercise.mistake("Autocast keeps a 16-bit copy of each matrix in a product: the last row of the table.",
                 f"{COPIES} → copies = 0",
                 together_with=["2 if mixed else 4 → 4 if mixed else 2"])  # fmt: skip
exercise.mistake("Without autocast there are no copies of the weights.", "vocabulary * width) if mixed else 0 → vocabulary * width)",
                 together_with=["2 if mixed else 4 → 4 if mixed else 2",
                                "tokens * 14 * width → tokens * (14 * width + 4)",
                                "2 * width + 4 + heads → 4 + heads",
                                "14 * width → 12 * width",
                                "14 * width → 10 * width"])  # fmt: skip
exercise.mistake("The copies take 2 bytes per number.", "copies = 2 * → copies = 4 *")
exercise.mistake("The token embedding takes part in a product as well: autocast copies it, too.",
                 "(12 * layers * width**2 + vocabulary * width) → (12 * layers * width**2)")  # fmt: skip
exercise.mistake("Every layer's matrices are copied.", "12 * layers * width**2 → 12 * width**2")
exercise.mistake("Only the matrices in products are copied, not the positional embedding or the norms.",
                 f"{COPIES} → copies = 2 * parameters if mixed else 0")  # fmt: skip
exercise.mistake("Not everything is 16 bits under autocast: the third column says what stays float32.",
                 "layer = 4 * → layer = size *", "once = 4 * → once = size *",
                 together_with=["2 if mixed else 4 → 4 if mixed else 2"])  # fmt: skip
exercise.mistake("Your result doesn't depend on mixed: if it's true, some rows take half the bytes, and there are copies.",
                 "size = 2 if mixed else 4 → size = 4", f"{COPIES} → copies = 0")  # fmt: skip
exercise.mistake("You counted numbers, not bytes: each takes 4 bytes, or 2.",
                 "layer = 4 * → layer =", "+ size * tokens * 14 → + tokens * 14", "once = 4 * → once =",
                 "+ size * tokens * width → + tokens * width", f"{COPIES} → copies = 0")  # fmt: skip
exercise.mistake("If mixed is true, some rows take half the bytes.", "size = 2 if mixed else 4 → size = 4")
exercise.mistake("If mixed is false, everything is float32, 4 bytes each.", "size = 2 if mixed else 4 → size = 2",
                 together_with=["tokens * 14 * width → tokens * (14 * width + 4)", "2 * width + 4 + heads → 4 + heads", "14 * width → 12 * width", "14 * width → 10 * width"])  # fmt: skip
exercise.mistake("It's the other way around: a number in the 16-bit rows takes 2 bytes if mixed is true, and 4 if not.",
                 "2 if mixed else 4 → 4 if mixed else 2",
                 together_with=["+ size * tokens * width → + size * tokens * (width + vocabulary)",
                                "tokens * 14 * width → tokens * (14 * width + heads)",
                                "tokens * 14 * width → tokens * (14 * width + 4)",
                                "2 * width + 4 + heads → 4 + heads"])  # fmt: skip
exercise.mistake("The rows of the first table count once for each layer.", "layers * layer → layer")
exercise.mistake("The rows of the second table count only once.", f"{ACTIVATIONS} → layers * (layer + once) + copies")
exercise.mistake("Fused attention keeps no T × T weights.",
                 f"{ACTIVATIONS} → {ACTIVATIONS} + size * layers * batch * heads * context**2")  # fmt: skip
exercise.mistake("Fused attention keeps no T × T weights.",
                 f"{ACTIVATIONS} → {ACTIVATIONS} + 4 * layers * batch * heads * context**2")  # fmt: skip
exercise.mistake("A batch has many sequences: N = B · T tokens.", "tokens = batch * context → tokens = context")
exercise.mistake("N counts tokens: B sequences with T tokens each.", "tokens = batch * context → tokens = batch")
exercise.mistake("The loss keeps one more number besides the log-probabilities.", "tokens * vocabulary + 1) → tokens * vocabulary)")
exercise.mistake("The loss is computed in float32, under autocast as well.",
                 "tokens * vocabulary + 1) → 1)", "+ size * tokens * width → + size * tokens * (width + vocabulary)")  # fmt: skip
exercise.mistake("Missing: all the log-probabilities, which the loss keeps.", "tokens * vocabulary + 1) → 1)")
exercise.mistake("Missing: the statistics of the last LayerNorm.", "(width + 2) → width",
                 together_with=["2 * width + 4 + heads → 2 * width + 4 + 1"])  # fmt: skip
exercise.mistake("Missing: the input of the last LayerNorm.", "(width + 2) → 2",
                 together_with=["2 * width + 4 + heads → 2 * width + heads"])  # fmt: skip
exercise.mistake("Missing: the output of the last LayerNorm, which is the input of the output layer.", "+ size * tokens * width →",
                 together_with=["tokens * 14 * width → tokens * (14 * width + 4)"])  # fmt: skip
exercise.mistake("Missing in each layer: the inputs of the two LayerNorms.", "(2 * width + 4 + heads) → (4 + heads)")
exercise.mistake("Each layer has two LayerNorms, and keeps the input of both.", "(2 * width + 4 → (width + 4",
                 together_with=["14 * width → 12 * width", "14 * width → 13 * width"])  # fmt: skip
exercise.mistake("Missing in each layer: the statistics of the LayerNorms.", "2 * width + 4 + heads → 2 * width + heads")
exercise.mistake("Two LayerNorms with a mean and a scale each: four numbers for each token.",
                 "2 * width + 4 + heads → 2 * width + 2 + heads")  # fmt: skip
exercise.mistake("Missing in each layer: the log-sum-exp, one number for each query and head.", "2 * width + 4 + heads → 2 * width + 4")
exercise.mistake("The log-sum-exp is one number for each query *and head*.", "2 * width + 4 + heads → 2 * width + 4 + 1")
exercise.mistake("Attention's log-sum-exp stays float32.",
                 "2 * width + 4 + heads → 2 * width + 4", "tokens * 14 * width → tokens * (14 * width + heads)",
                 together_with=["14 * width → 13 * width"])  # fmt: skip
exercise.mistake("The statistics of a LayerNorm stay float32.",
                 "2 * width + 4 + heads → 2 * width + heads", "tokens * 14 * width → tokens * (14 * width + 4)",
                 together_with=["14 * width → 13 * width"])  # fmt: skip
exercise.mistake("The inputs of the LayerNorms stay float32: they are the residual stream.",
                 "2 * width + 4 + heads → 4 + heads", "14 * width → 16 * width")  # fmt: skip
exercise.mistake("Missing in each layer: the outputs of the two LayerNorms.", "14 * width → 12 * width")
exercise.mistake("Missing in each layer: queries, keys and values.", "14 * width → 11 * width")
exercise.mistake("Missing in each layer: the result of attention.", "14 * width → 13 * width")
exercise.mistake("The feed-forward part keeps numbers before GELU *and* after it.", "14 * width → 10 * width")

# %% mistake: keys of another name
# says: Return a dict with the four keys "parameters", "gradients", "optimizer state" and "activations".
def plan_bytes(parameters, layers, width, heads, context, vocabulary, batch, mixed):
    n, size = batch * context, 2 if mixed else 4
    layer = 4 * n * (2 * width + 4 + heads) + size * n * 14 * width
    once = 4 * (n * width + 2 * n + n * vocabulary + 1) + size * n * width
    copies = 2 * (12 * layers * width**2 + vocabulary * width) if mixed else 0
    return {"weights": 4 * parameters, "gradients": 4 * parameters, "optimizer": 8 * parameters, "activations": layers * layer + once + copies}

# %% wrong: counters of steps, too
def plan_bytes(parameters, layers, width, heads, context, vocabulary, batch, mixed):
    n, size = batch * context, 2 if mixed else 4
    layer = 4 * n * (2 * width + 4 + heads) + size * n * 14 * width
    once = 4 * (n * width + 2 * n + n * vocabulary + 1) + size * n * width
    copies = 2 * (12 * layers * width**2 + vocabulary * width) if mixed else 0
    return {"parameters": 4 * parameters, "gradients": 4 * parameters, "optimizer state": 8 * parameters + 4 * (8 * layers + 4), "activations": layers * layer + once + copies}

# %% wrong: floats, which lose the last digits
# unseen: only counts that a float can't hold exactly show it
def plan_bytes(parameters, layers, width, heads, context, vocabulary, batch, mixed):
    n, size = float(batch * context), 2 if mixed else 4
    layer = 4 * n * (2 * width + 4 + heads) + size * n * 14 * width
    once = 4 * (n * width + 2 * n + n * vocabulary + 1) + size * n * width
    copies = 2 * (12 * layers * width**2 + vocabulary * width) if mixed else 0
    return {"parameters": 4 * parameters, "gradients": 4 * parameters, "optimizer state": 8 * parameters, "activations": int(layers * layer + once + copies)}

# %% wrong: parameters and gradients in 16 bits (from the statement)
def plan_bytes(
    parameters: int,
    layers: int,
    width: int,
    heads: int,
    context: int,
    vocabulary: int,
    batch: int,
    mixed: bool,
) -> dict[str, int]:
    n, d, small = batch * context, width, 2 if mixed else 4
    kept = layers * (4 * (2 * n * d + 4 * n + n * heads) + small * 14 * n * d)
    kept += 4 * (n * d + 2 * n + n * vocabulary + 1) + small * n * d
    if mixed:
        kept += 2 * (12 * layers * d**2 + vocabulary * d)
    return {
        "parameters": small * parameters,
        "gradients": small * parameters,
        "optimizer state": 8 * parameters,
        "activations": kept,
    }

# %% wrong: a float32 master copy in the optimizer's state (from the statement)
def plan_bytes(
    parameters: int,
    layers: int,
    width: int,
    heads: int,
    context: int,
    vocabulary: int,
    batch: int,
    mixed: bool,
) -> dict[str, int]:
    n, d, small = batch * context, width, 2 if mixed else 4
    kept = layers * (4 * (2 * n * d + 4 * n + n * heads) + small * 14 * n * d)
    kept += 4 * (n * d + 2 * n + n * vocabulary + 1) + small * n * d
    if mixed:
        kept += 2 * (12 * layers * d**2 + vocabulary * d)
    return {
        "parameters": 4 * parameters,
        "gradients": 4 * parameters,
        "optimizer state": (12 if mixed else 8) * parameters,
        "activations": kept,
    }

# %% wrong: copies of the matrices in float32, too (from the statement)
def plan_bytes(
    parameters: int,
    layers: int,
    width: int,
    heads: int,
    context: int,
    vocabulary: int,
    batch: int,
    mixed: bool,
) -> dict[str, int]:
    n, d, small = batch * context, width, 2 if mixed else 4
    kept = layers * (4 * (2 * n * d + 4 * n + n * heads) + small * 14 * n * d)
    kept += 4 * (n * d + 2 * n + n * vocabulary + 1) + small * n * d
    kept += small * (12 * layers * d**2 + vocabulary * d)
    return {
        "parameters": 4 * parameters,
        "gradients": 4 * parameters,
        "optimizer state": 8 * parameters,
        "activations": kept,
    }

# %% right: a ledger of rows
def plan_bytes(parameters, layers, width, heads, context, vocabulary, batch, mixed):
    n = batch * context
    long, short = torch.float32.itemsize, (torch.bfloat16 if mixed else torch.float32).itemsize
    ledger = []
    for _ in range(layers):
        ledger += [(2 * n * width, long), (4 * n, long), (2 * n * width, short), (3 * n * width, short)]
        ledger += [(n * width, short), (n * heads, long), (8 * n * width, short)]
    ledger += [(n * width, long), (2 * n, long), (n * width, short), (n * vocabulary, long), (1, long)]
    if mixed:
        ledger.append((vocabulary * width, 2))
        ledger += [(12 * width * width, 2)] * layers
    kept = sum(numbers * size for numbers, size in ledger)
    fixed = {kind: count * long * parameters for kind, count in (("parameters", 1), ("gradients", 1), ("optimizer state", 2))}
    return fixed | {"activations": kept}

# %% right: per token
def plan_bytes(parameters, layers, width, heads, context, vocabulary, batch, mixed):
    if mixed:
        token = layers * (36 * width + 16 + 4 * heads) + 6 * width + 8 + 4 * vocabulary
        rest = 4 + 24 * layers * width**2 + 2 * vocabulary * width
    else:
        token, rest = layers * (64 * width + 16 + 4 * heads) + 8 * width + 8 + 4 * vocabulary, 4
    four = 4 * parameters
    return {"activations": batch * context * token + rest, "optimizer state": 2 * four, "gradients": four, "parameters": four}

# %% right: what float32 takes, less what is halved
def plan_bytes(parameters, layers, width, heads, context, vocabulary, batch, mixed):
    n = batch * context
    halved = n * width * (14 * layers + 1)
    kept = 4 * (halved + n * (layers * (2 * width + heads + 4) + width + 2 + vocabulary) + 1)
    if mixed:
        kept += -2 * halved + 2 * width * (12 * layers * width + vocabulary)
    return {
        "parameters": parameters * 4,
        "gradients": parameters * 4,
        "optimizer state": parameters * 8,
        "activations": kept,
    }

from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given

exercise = Exercise("Count the optimizer's FLOPs in a step, and those of the two passes. Which of the two depend on the number of tokens?")

size, counts = st.integers(1, 300), st.integers(1, 10**7)
square, matrix, vector = size.map(lambda n: (n, n)), st.tuples(size, size), st.tuples(size)
wide = matrix.map(lambda shape: tuple(sorted(shape)))  # or square


def but(name):
    """Rules that look at the other key alone."""
    return {name: "ignored"}


def models(shape):
    return st.builds(given, st.lists(shape, min_size=1, max_size=5), counts)


layer = [(4_096, 4_096), (4_096, 1_024), (4_096, 14_336), (14_336, 4_096), (4_096,), (4_096,)]
exercise.requirement(
    '"AdamW": 15 FLOPs for each element, divided by the FLOPs of the two passes',
    points=0.5,
    rules=but("Muon"),
    visible=[given([(30, 20), (15,)], 64), given([(7, 5)], 1)],
    edges={
        "a vector alone": given([(7,)], 10),
        "one number": given([(1,)], 1),
        "a layer of Llama 3 8B": given(layer, 8_192),
        "equal shapes": given([(4, 3), (4, 3)], 5),
    },
    domain=models(matrix | vector),
    hint="The two passes process every token. How often does the optimizer run in a step?",
)
exercise.requirement(
    '"Muon": five iterations of three matrix products each, for a matrix with no more rows than columns',
    points=0.5,
    rules=but("AdamW"),
    visible=[given([(6, 6)], 10), given([(3, 5), (2, 9)], 2), given([(3, 5), (3, 5), (2, 9)], 2)],
    edges={
        "one number, as a matrix": given([(1, 1)], 1),
        "one row": given([(1, 9)], 3),
        "large": given([(4_096, 4_096), (4_096, 14_336)], 8_192),
        "beyond 64 bits": given([(2**21, 2**21)], 1),
        "equal shapes": given([(3, 3), (3, 3)], 2),
    },
    domain=models(wide),
    hint="Write down the shapes of X, A and AA for a small matrix. Which shapes do the two factors of each "
         "product have?",
)
exercise.requirement(
    '"Muon": a matrix with more rows than columns takes as many FLOPs as its transpose',
    points=0.5,
    rules=but("AdamW"),
    visible=[given([(5, 3)], 2), given([(9, 2), (4, 2)], 7)],
    edges={"one column": given([(9, 1)], 3), "large": given([(14_336, 4_096)], 2**22)},
    domain=models(wide.map(lambda shape: (shape[1] + 1, shape[0]))),
    hint="What shape does X have in the first product if the matrix has more rows than columns?",
)
exercise.requirement(
    '"Muon": each element of a vector takes 15 FLOPs, as with AdamW',
    points=0.5,
    rules=but("AdamW"),
    visible=[given([(8,)], 4), given([(5,), (4, 4), (7,)], 6)],
    edges={
        "one number": given([(1,)], 1),
        "wide": given([(64, 64), (4_096,)], 8_192),
        "equal vectors": given([(5,), (5,), (2, 2)], 3),
    },
    domain=models(square | vector),
    hint="Which optimizer updates the vectors if Muon updates the matrices?",
)

passes, products = "passes = 6 * parameters * tokens", "5 * (2 * n * n * m + 2 * n * n * n + 2 * n * n * m)"
other = 'return {"AdamW": adamw / passes, "Muon": muon / passes}'
exercise.mistake("The two passes process every token, so their FLOPs grow with the number of tokens; yours don't.", f"{passes} → passes = 6 * parameters")
exercise.mistake("You divided by the FLOPs of the forward pass alone: include the backward pass.", f"{passes} → passes = 2 * parameters * tokens")
exercise.mistake("AdamW takes 15 FLOPs for each element, not for each tensor.", "adamw = 15 * parameters → adamw = 15 * len(shapes)")
exercise.mistake("Divide the optimizer's work by that of the passes; your result is the inverse.", "adamw / passes → passes / adamw",
                 "muon / passes → passes / muon")  # fmt: skip
exercise.mistake("Divide by the work of the forward and backward passes alone, without the optimizer's.",
                 "adamw / passes → adamw / (passes + adamw)", "muon / passes → muon / (passes + muon)")  # fmt: skip
exercise.mistake("Your result is in FLOPs; divide it by the FLOPs of the passes.", "adamw / passes → adamw", "muon / passes → muon")
exercise.mistake("You counted a single iteration; there are five.", f"{products} → (4 * n * n * m + 2 * n * n * n)")
exercise.mistake("A multiply-add is two FLOPs.",
                 f"{products} → 5 * (2 * n * n * m + n * n * n)")  # fmt: skip
exercise.mistake("Each iteration has a third matrix product: the sum in parentheses times X.", f"{products} → 5 * (2 * n * n * m + 2 * n * n * n)")
exercise.mistake("A matrix product is missing: each iteration also computes A times A.", f"{products} → 5 * (4 * n * n * m)")
exercise.mistake("30 · n FLOPs per parameter is right only for a square "
                 "matrix, n × n. What shape does A have if the matrix isn't "
                 "square?", f"{products} → 5 * 6 * n * n * m")
exercise.mistake("Muon transposes a matrix with more rows than columns: what shape does A have then?",
                 "n, m = min(shape), max(shape) → n, m = shape")  # fmt: skip
exercise.mistake("Your A is too large: Muon transposes a matrix so that A is as small as possible.", "n, m = min(shape), max(shape) → n, m = max(shape), min(shape)")
exercise.mistake("A matrix is transposed only if it has more rows than columns.", "n, m = min(shape), max(shape) → m, n = shape")
exercise.mistake("With Muon, count the vectors, too: AdamW updates them.", "muon += 15 * shape[0] → muon += 0")
exercise.mistake("Don't add AdamW's 15 FLOPs for Muon's matrices: count only their matrix products.",
                 "muon += 5 * → muon += 15 * n * m + 5 *")  # fmt: skip
exercise.mistake("Don't treat a vector as a matrix with one row: AdamW updates it.", "muon += 15 * shape[0] → muon += 20 * shape[0] + 10")
exercise.mistake("The passes use every parameter, vectors included: count them all.",
                 f"{passes} → passes = 6 * tokens * (sum(math.prod(s) for s in shapes if len(s) == 2) or parameters)")  # fmt: skip

# %% wrong: shapes count once, however many parameters have them
def optimizer_share(shapes, tokens):
    shapes = set(shapes)
    n = sum(math.prod(s) for s in shapes)
    work = sum(20 * min(s) ** 2 * max(s) + 10 * min(s) ** 3 if len(s) == 2 else 15 * s[0] for s in shapes)
    return {"AdamW": 2.5 / tokens, "Muon": work / (6 * n * tokens)}

# %% wrong: the largest matrix stands for all (from the statement)
def optimizer_share(shapes, tokens):
    total = sum(math.prod(s) for s in shapes)
    big = max(shapes, key=math.prod)
    muon = 0
    if len(big) == 2:
        n, m = sorted(big)
        muon = 20 * n * n * m + 10 * n**3
    muon += sum(15 * s[0] for s in shapes if len(s) == 1)
    return {"AdamW": 15 / (6 * tokens), "Muon": muon / (6 * total * tokens)}

# %% wrong: the mean of the parameters' shares (from the statement)
def optimizer_share(shapes, tokens):
    shares = []
    for shape in shapes:
        if len(shape) == 1:
            shares.append(15 / (6 * tokens))
        else:
            n, m = sorted(shape)
            shares.append((20 * n * n * m + 10 * n**3) / (6 * n * m * tokens))
    return {"AdamW": 15 / (6 * tokens), "Muon": sum(shares) / len(shares)}

# %% wrong: whole-number division (from the statement)
def optimizer_share(shapes, tokens):
    total = sum(math.prod(s) for s in shapes)
    muon = sum(20 * min(s) ** 2 * max(s) + 10 * min(s) ** 3 if len(s) == 2 else 15 * s[0] for s in shapes)
    return {"AdamW": 15 * total // (6 * total * tokens), "Muon": muon // (6 * total * tokens)}

# %% right: in closed form
def optimizer_share(shapes, tokens):
    total = sum(math.prod(s) for s in shapes)
    muon = sum(10 * min(s) ** 2 * (2 * max(s) + min(s)) if len(s) == 2 else 15 * s[0] for s in shapes)
    return {"AdamW": 2.5 / tokens, "Muon": muon / (6 * total * tokens)}

# %% right: product by product
def optimizer_share(shapes, tokens):
    def product(i, j, k):
        return 2 * i * j * k

    parameters = adamw = muon = 0
    for shape in shapes:
        count = 1
        for each in shape:
            count *= each
        parameters += count
        adamw += 15 * count
        if len(shape) == 1:
            muon += 15 * count
        else:
            rows, columns = shape if shape[0] <= shape[1] else shape[::-1]
            for _ in range(5):
                muon += product(rows, columns, rows) + product(rows, rows, rows) + product(rows, rows, columns)
    work = 6 * parameters * tokens
    return {"Muon": muon / work, "AdamW": adamw / work}

# %% right: counted on the meta device
def optimizer_share(shapes, tokens):
    total = sum(math.prod(s) for s in shapes)
    muon = 0
    for shape in shapes:
        if len(shape) == 1:
            muon += 15 * shape[0]
            continue
        x = torch.empty(shape, device="meta")
        x = x if shape[0] <= shape[1] else x.T
        muon += 5 * count_flops(lambda: (x @ x.T) @ (x @ x.T) @ x) - 5 * count_flops(lambda: x @ x.T)
    return {"AdamW": 15 / 6 / tokens, "Muon": muon / (6 * total * tokens)}

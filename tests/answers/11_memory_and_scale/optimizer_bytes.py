# %% wrong: without the counters
# says: The counters are missing
def optimizer_bytes(shapes, optimizer):
    numbers = sum(math.prod(s) for s in shapes)
    return {"AdamW": 8 * numbers, "Lion": 4 * numbers, "Adafactor": 4 * sum(map(sum, shapes))}[optimizer]

# %% wrong: one counter for the whole model
# says: a counter of its own
def optimizer_bytes(shapes, optimizer):
    numbers = sum(math.prod(s) for s in shapes)
    if optimizer == "Lion":
        return 4 * numbers
    return 4 + (8 * numbers if optimizer == "AdamW" else 4 * sum(map(sum, shapes)))

# %% wrong: a counter for Lion, too
# says: This Lion has no counters
def optimizer_bytes(shapes, optimizer):
    total = 0
    for s in shapes:
        kept = {"AdamW": 2 * math.prod(s), "Lion": math.prod(s), "Adafactor": sum(s)}[optimizer]
        total += 4 * kept + 4
    return total

# %% wrong: counts numbers
# says: each of them takes 4 bytes
def optimizer_bytes(shapes, optimizer):
    total = 0
    for s in shapes:
        total += {"AdamW": 2 * math.prod(s) + 1, "Lion": math.prod(s), "Adafactor": sum(s) + 1}[optimizer]
    return total

# %% wrong: one average for AdamW
# says: AdamW has two averages
def optimizer_bytes(shapes, optimizer):
    total = 0
    for s in shapes:
        total += 4 * {"AdamW": math.prod(s) + 1, "Lion": math.prod(s), "Adafactor": sum(s) + 1}[optimizer]
    return total

# %% wrong: two averages for Lion
# says: Lion has one average only
def optimizer_bytes(shapes, optimizer):
    total = 0
    for s in shapes:
        total += 4 * {"AdamW": 2 * math.prod(s) + 1, "Lion": 2 * math.prod(s), "Adafactor": sum(s) + 1}[optimizer]
    return total

# %% wrong: one number for each weight of a matrix, with Adafactor
# says: only the means of its rows
def optimizer_bytes(shapes, optimizer):
    total = 0
    for s in shapes:
        total += 4 * {"AdamW": 2 * math.prod(s) + 1, "Lion": math.prod(s), "Adafactor": math.prod(s) + 1}[optimizer]
    return total

# %% wrong: a vector as a matrix of one column
# says: A vector is not a matrix of one column
def optimizer_bytes(shapes, optimizer):
    total = 0
    for s in shapes:
        rows, columns = s if len(s) == 2 else (s[0], 1)
        factored = rows + columns + 1
        total += 4 * {"AdamW": 2 * rows * columns + 1, "Lion": rows * columns, "Adafactor": factored}[optimizer]
    return total

# %% wrong: one mean for a vector
# says: A vector is not reduced to one mean
def optimizer_bytes(shapes, optimizer):
    total = 0
    for s in shapes:
        factored = sum(s) + 1 if len(s) == 2 else 2
        total += 4 * {"AdamW": 2 * math.prod(s) + 1, "Lion": math.prod(s), "Adafactor": factored}[optimizer]
    return total

# %% wrong: forgets the vectors
# says: The vectors are missing
def optimizer_bytes(shapes, optimizer):
    total = 0
    for s in shapes:
        factored = (sum(s) if len(s) == 2 else 0) + 1
        total += 4 * {"AdamW": 2 * math.prod(s) + 1, "Lion": math.prod(s), "Adafactor": factored}[optimizer]
    return total

# %% wrong: Adafactor with an average of the gradients
# says: Adafactor has no average of the gradients
def optimizer_bytes(shapes, optimizer):
    total = 0
    for s in shapes:
        adafactor = math.prod(s) + sum(s) + 1
        total += 4 * {"AdamW": 2 * math.prod(s) + 1, "Lion": math.prod(s), "Adafactor": adafactor}[optimizer]
    return total

# %% right: asks real optimizers, on no memory at all
def optimizer_bytes(shapes, optimizer):
    averages = {"AdamW": ["", ""], "Lion": [""], "Adafactor": [""]}[optimizer]
    counter = [] if optimizer == "Lion" else [torch.zeros(())]
    kept = []
    for shape in shapes:
        p = torch.empty(shape, device="meta")
        kept += counter
        if optimizer == "Adafactor" and p.dim() == 2:
            kept += [p.mean(dim=0), p.mean(dim=1)]
        else:
            kept += [torch.empty_like(p) for _ in averages]
    return sum(t.numel() * t.element_size() for t in kept)

# %% right: an optimizer at a time
def optimizer_bytes(shapes, optimizer):
    weights = sum(math.prod(shape) for shape in shapes)
    if optimizer == "AdamW":
        return 8 * weights + 4 * len(shapes)
    if optimizer == "Lion":
        return 4 * weights
    matrices = [shape for shape in shapes if len(shape) == 2]
    vectors = [shape for shape in shapes if len(shape) == 1]
    means = sum(rows + columns for rows, columns in matrices)
    return 4 * (means + sum(n for (n,) in vectors) + len(shapes))

# %% right: shape after shape, by pattern
def optimizer_bytes(shapes, optimizer):
    total = 0
    for shape in shapes:
        match optimizer, shape:
            case "Adafactor", (rows, columns):
                total += 4 * rows + 4 * columns + 4
            case "Adafactor", (n,):
                total += 4 * n + 4
            case "Lion", _:
                total += 4 * math.prod(shape)
            case _:
                total += 8 * math.prod(shape) + 4
    return total

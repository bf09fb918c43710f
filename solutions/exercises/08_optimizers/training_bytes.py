from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given

exercise = Exercise("Count the numbers in each tensor first, and convert to bytes last.")

size, count = st.integers(1, 60), st.integers(0, 5)


def but(*names):
    """Rules that look at these keys alone."""
    kinds = ("parameters", "gradients", "optimizer state", "activations")
    return {name: "ignored" for name in kinds if name not in names}


exercise.requirement(
    "parameters and gradients of the layers and the head, at 4 bytes per number",
    points=0.5,
    rules=but("parameters", "gradients"),
    visible=[given(2, 4, 2, 1), given(7, 5, 3, 2, 4)],
    edges={
        "the head alone": given(3, 4, 0, 1),
        "one layer": given(3, 4, 1, 1),
        "a width of 1": given(3, 1, 2, 1),
        "a large model": given(64, 300, 12, 2, 4),
        "in more digits than float32 has": given(3, 4_099, 2, 1),
    },
    domain=st.builds(given, size, size, count, count, count),
    hint="Which shapes do the weights of a layer and of the head have? A gradient has the shape of its parameter.",
)
exercise.requirement(
    "optimizer state: `moments` numbers per parameter, at 4 bytes each, and no counter unless one is given",
    points=0.75,
    rules=but("optimizer state"),
    visible=[given(2, 4, 2, 1), given(7, 5, 3, 3, 0)],
    edges={
        "nothing is kept": given(2, 4, 2, 0),
        "the head alone": given(3, 4, 0, 2),
        "a width of 1": given(3, 1, 2, 2),
        "two": given(64, 30, 12, 2),
        "in more digits than float32 has": given(3, 4_099, 2, 1),
    },
    domain=st.builds(given, size, size, count, count) | st.builds(given, size, size, count, count, st.just(0)),
    hint="The optimizer keeps state for the head's parameters, too.",
)
exercise.requirement(
    "optimizer state: `counter` bytes for each parameter tensor",
    points=0.5,
    rules=but("optimizer state"),
    visible=[given(7, 5, 3, 2, 4), given(2, 4, 2, 1, 8), given(7, 5, 3, 0, 4)],
    edges={
        "the head alone": given(3, 4, 0, 2, 4),
        "no moments, but a counter": given(2, 4, 2, 0, 4),
        "a counter of one byte": given(2, 4, 2, 1, 1),
        "many layers": given(2, 4, 50, 2, 4),
    },
    domain=st.builds(given, size, size, count, count, st.integers(1, 8)),
    hint="How many parameter tensors does the chain have, including the head?",
)
exercise.requirement(
    "activations: everything that the layers, the head and the loss keep for the backward pass, except data",
    points=1.25,
    rules=but("activations"),
    visible=[given(2, 4, 2, 1), given(7, 5, 3, 2, 4), given(1, 4, 0, 1)],
    edges={
        "the head alone": given(3, 4, 0, 1),
        "one layer": given(3, 4, 1, 1),
        "a batch of 1": given(1, 4, 2, 1),
        "a width of 1": given(3, 1, 2, 1),
        "a large batch": given(4_096, 16, 3, 1),
        "in more digits than float32 has": given(4_099, 4_098, 1, 1),
    },
    domain=st.builds(given, size, size, count, count, count),
    hint="Go through the operations of the forward pass. Which of its inputs does each one need again in the backward pass?",
)

inner = "4 * (batch * width * layers + batch)"
exercise.mistake("The head has parameters, too: count them.", "layers * width * width + width → layers * width * width")
exercise.mistake("The head has only one output: its weights aren't width × width.", "width * width + width → width * width + width * width")
exercise.mistake("Don't count biases: this chain has none.", "width * width + width → width * (width + 1) + width + 1")
exercise.mistake("You counted one layer too many: the head is smaller than a layer.", "layers * width * width + width → (layers + 1) * width * width + width",
                 together_with=["4 * moments * numbers → 4 * moments * (numbers - width)"])  # fmt: skip
exercise.mistake("Your result counts numbers; in float32 each takes 4 bytes.", '"parameters": 4 * → "parameters":', '"gradients": 4 * → "gradients":',
                 "4 * moments → moments", f"{inner} → batch * width * layers + batch")  # fmt: skip
exercise.mistake("A gradient is as large as its parameter, whatever the batch size.", '"gradients": 4 * numbers → "gradients": 4 * batch * numbers',
                 together_with=["4 * moments * numbers → 4 * moments * (numbers - width)"])  # fmt: skip
exercise.mistake("The head has a gradient, too.", '"gradients": 4 * numbers → "gradients": 4 * (numbers - width)',
                 together_with=["4 * moments * numbers → 4 * moments * (numbers - width)"])  # fmt: skip
exercise.mistake("The optimizer keeps `moments` numbers for each parameter, not always two.", "4 * moments * numbers → 8 * numbers")
exercise.mistake("Each of the `moments` numbers takes 4 bytes.", "4 * moments * numbers → moments * numbers")
exercise.mistake("Don't count the parameters as optimizer state: they have their own entry.", "4 * moments * numbers → 4 * (moments + 1) * numbers")
exercise.mistake("The optimizer keeps state for the head, too.", "4 * moments * numbers → 4 * moments * (numbers - width)")
exercise.mistake("If `counter` is 0, add no bytes for counters.", "counter * tensors → (counter or 4) * tensors")
exercise.mistake("The counters are missing: there's one for each parameter tensor.", " + counter * tensors → ")
exercise.mistake("There's a counter for each parameter tensor; you counted only one.", "counter * tensors → counter")
exercise.mistake("The head is a parameter tensor, too, with its own counter.", "tensors = layers + 1 → tensors = layers")
exercise.mistake("There's one counter for each parameter tensor, not for each of its elements.", "counter * tensors → counter * numbers")
exercise.mistake("`counter` is already in bytes.", "counter * tensors → 4 * counter * tensors")
exercise.mistake("There's one counter for each parameter tensor, not for each of its moments.", "counter * tensors → counter * moments * tensors")
exercise.mistake("The loss keeps something for its backward pass, too.", f"{inner} → 4 * batch * width * layers")
exercise.mistake("Don't count the input: it's data.", f"{inner} → 4 * (batch * width * (layers + 1) + batch)")
exercise.mistake("Don't count the input, which is data. But do count what the loss keeps.", f"{inner} → 4 * batch * width * (layers + 1)")
exercise.mistake("Don't count the input and the targets: both are data.", f"{inner} → 4 * (batch * width * (layers + 1) + 2 * batch)")
exercise.mistake("Don't count the targets: they're data.", f"{inner} → 4 * (batch * width * layers + 2 * batch)")
exercise.mistake("The head keeps its input, too.", f"{inner} → 4 * (batch * width * (layers - 1) + batch)")
exercise.mistake("The loss keeps more than one number: its derivative depends on the whole batch.", f"{inner} → 4 * (batch * width * layers + 1)")
exercise.mistake("Don't count the value of the loss: the backward pass doesn't need it.", f"{inner} → 4 * (batch * width * layers + batch + 1)")
exercise.mistake("You counted activations twice: a layer's output is the next layer's input.", f"{inner} → 4 * (2 * batch * width * layers + batch)")
exercise.mistake("Activations grow with the batch size, which is missing "
                 "from your result.", f"{inner} → 4 * (width * layers + 1)")

# %% wrong: the head's input is always kept
def training_bytes(batch, width, layers, moments, counter=0):
    n = layers * width * width + width
    kept = batch * width * max(layers, 1) + batch
    return {"parameters": 4 * n, "gradients": 4 * n, "optimizer state": 4 * moments * n + counter * (layers + 1), "activations": 4 * kept}

# %% wrong: a counter only where something is averaged
def training_bytes(batch, width, layers, moments, counter=0):
    n = layers * width * width + width
    state = 4 * moments * n + counter * (layers + 1) if moments else 0
    return {"parameters": 4 * n, "gradients": 4 * n, "optimizer state": state, "activations": 4 * batch * (width * layers + 1)}

# %% wrong: the loss of a batch of one is free
def training_bytes(batch, width, layers, moments, counter=0):
    n = layers * width * width + width
    kept = batch * width * layers + (batch if batch > 1 else 0)
    return {"parameters": 4 * n, "gradients": 4 * n, "optimizer state": 4 * moments * n + counter * (layers + 1), "activations": 4 * kept}

# %% wrong: an optimizer without moments has no counters (from the statement)
def training_bytes(
    batch: int, width: int, layers: int, moments: int, counter: int = 0
) -> dict[str, int]:
    shapes = [(width, width)] * layers + [(width, 1)]
    parameters = sum(4 * math.prod(shape) for shape in shapes)
    state = moments * parameters + len(shapes) * counter if moments else 0
    return {
        "parameters": parameters,
        "gradients": parameters,
        "optimizer state": state,
        "activations": 4 * batch * (layers * width + 1),
    }

# %% wrong: bytes by way of float32 (from the statement)
# unseen: only sizes that float32 rounds show the difference
def training_bytes(
    batch: int, width: int, layers: int, moments: int, counter: int = 0
) -> dict[str, int]:
    widths = torch.tensor([float(width)] * (layers + 1) + [1.0])
    n = int((widths[:-1] * widths[1:]).sum())
    return {
        "parameters": 4 * n,
        "gradients": 4 * n,
        "optimizer state": 4 * moments * n + counter * (layers + 1),
        "activations": int(4 * batch * widths[1:].sum()),
    }

# %% wrong: at least one layer (from the statement)
def training_bytes(
    batch: int, width: int, layers: int, moments: int, counter: int = 0
) -> dict[str, int]:
    shapes = [(width, width)]
    while len(shapes) < layers:
        shapes.append((width, width))
    shapes.append((width, 1))
    n = sum(a * b for a, b in shapes)
    activations = sum(batch * columns for _, columns in shapes)
    return {
        "parameters": 4 * n,
        "gradients": 4 * n,
        "optimizer state": 4 * moments * n + counter * len(shapes),
        "activations": 4 * activations,
    }

# %% right: tensor by tensor
def training_bytes(batch, width, layers, moments, counter=0):
    shapes = [(width, width)] * layers + [(width, 1)]
    size = 4 * sum(a * b for a, b in shapes)
    state = sum(4 * moments * a * b + counter for a, b in shapes)
    kept = 4 * batch * sum(a for a, _ in shapes[1:]) + 4 * batch
    return {"activations": kept, "optimizer state": state, "gradients": size, "parameters": size}

# %% right: builds the model without memory
def training_bytes(batch, width, layers, moments, counter=0):
    with torch.device("meta"):
        stack = [nn.Linear(width, width, bias=False) for _ in range(layers)]
        model = nn.Sequential(*stack, nn.Linear(width, 1, bias=False))
    size = sum(p.nbytes for p in model.parameters())
    state = moments * size + counter * len(list(model.parameters()))
    activations = 4 * batch * (1 + layers * width)
    return dict(parameters=size, gradients=size, activations=activations) | {"optimizer state": state}

# %% right: asks autograd
def training_bytes(batch, width, layers, moments, counter=0):
    stack = [nn.Linear(width, width, bias=False) for _ in range(layers)]
    model = nn.Sequential(*stack, nn.Linear(width, 1, bias=False))
    x, y = torch.zeros(batch, width), torch.zeros(batch, 1)
    kept = saved_bytes(lambda: (model(x) - y).square().mean(), exclude=[model, x, y])
    n = sum(p.numel() for p in model.parameters())
    state = 4 * moments * n + counter * (layers + 1)
    return {"parameters": 4 * n, "gradients": 4 * n, "optimizer state": state, "activations": kept}

# %% right: shape by shape, in another order
def training_bytes(batch, width, layers, moments, counter=0):
    shapes = [(width, width)] * layers + [(width, 1)]
    n = sum(a * b for a, b in shapes)
    r = dict.fromkeys(("parameters", "gradients"), 4 * n)
    r["activations"] = sum(4 * batch * b for _, b in shapes)
    r["optimizer state"] = sum(4 * moments * a * b + counter for a, b in shapes)
    return r

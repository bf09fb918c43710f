from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given

exercise = Exercise("Each layer contributes one factor, which multiplies the result of the layers before it (or, for gradients, after it).")


def gradients(student, widths, weight_stds, relu):
    """What the second function returns."""
    return {"stds": student.gradient_stds_through_depth(widths, weight_stds, relu)}


@st.composite
def chains(draw, relu, least=2):
    depth = draw(st.integers(least, 8))
    widths = draw(st.lists(st.integers(1, 5_000), min_size=depth + 1, max_size=depth + 1))
    stds = draw(st.lists(st.floats(1e-3, 10), min_size=depth, max_size=depth))
    return given(widths, stds, relu)


def back(widths, weight_stds, relu):
    return given(widths, weight_stds, relu, says=f"gradient_stds_through_depth({widths}, {weight_stds}, relu={relu})")


UP_AND_DOWN = [4, 9, 16, 2], [1.0, 0.25, 0.5]
SHAPES = {
    "two layers": ([3, 5, 7], [0.3, 0.7]),
    "equal widths": ([64] * 7, [0.125, 0.25, 0.125, 0.0625, 0.125, 0.5]),
    "equal stds": ([8, 64, 2, 512, 1], [0.25] * 4),
    "one number wide": ([1, 1, 1, 1], [0.5, 2.0, 3.0]),
    "deep": ([64] * 101, [(2 / 64) ** 0.5] * 100),
    "tuples": ((3, 5, 7, 9), (0.3, 0.7, 1.1)),
    "whole numbers": ([512] * 21, [1] * 20),
}
ONE = {"one layer": ([9, 25], [2.0]), "one layer, one number": ([1, 1], [0.5])}


def edges(relu, make):
    return {name: make(*chain, relu) for name, chain in {**SHAPES, **ONE}.items()}


exercise.requirement(
    "the std of each layer's outputs, without ReLU",
    points=0.5,
    visible=[given(*UP_AND_DOWN, False)],
    edges=edges(False, given),
    domain=chains(False),
    hint="Each output is a sum over the layer's inputs. Each layer contributes one factor.",
)
exercise.requirement(
    "the std of each layer's outputs before the ReLU, with a ReLU between layers",
    points=1,
    visible=[given(*UP_AND_DOWN, True), given([9, 25], [2.0], True)],
    edges=edges(True, given) | {"very deep": given([512] * 201, [(2 / 512) ** 0.5] * 200, True)},
    domain=chains(True),
    hint="What does a ReLU do to the mean square? And between which layers are there ReLUs?",
)
exercise.requirement(
    "the std of the gradient with respect to each layer's outputs, without ReLU",
    points=0.5,
    probe=gradients,
    visible=[back(*UP_AND_DOWN, False)],
    edges=edges(False, back),
    domain=chains(False),
    hint="Begin with 1 at the last layer. Through which layer's weights does the gradient of a layer's outputs come back?",
)
exercise.requirement(
    "the std of the gradient with respect to each layer's outputs, with a ReLU between layers",
    points=1,
    probe=gradients,
    visible=[back(*UP_AND_DOWN, True), back([9, 25], [2.0], True)],
    edges=edges(True, back),
    domain=chains(True),
    hint="Where the ReLU's input was negative, no gradient passes. And between which layers are there ReLUs?",
)

THERE, BACK = "mean_square *= widths[layer] * std**2", "mean_square *= widths[layer + 1] * weight_stds[layer] ** 2"
ROOTS = "stds.append(math.sqrt(mean_square))\n    return stds\n    ### END"
exercise.mistake(
    "Your code returns mean squares. The std is the square root.",
    f"{ROOTS} → stds.append(mean_square)\n    return stds\n    ### END",
)  # fmt: skip
exercise.mistake("The data haven't been through a ReLU: nothing is halved in the first layer.", "if relu and layer > 0 → if relu")
exercise.mistake("A ReLU between two layers halves the mean square.", "if relu and layer > 0 → if False")
exercise.mistake("Without ReLU nothing is halved.", "if relu and layer > 0 → if layer > 0")
exercise.mistake("Use the mean square of the ReLU's outputs, not their variance: the mean square is half of what "
                 "it was before the ReLU.",
                 f"mean_square /= 2\n        {THERE} → mean_square *= 0.5 - 0.5 / math.pi\n        {THERE}")  # fmt: skip
exercise.mistake("A ReLU halves the mean square, not the std: the std changes by a factor of √½.", f"mean_square /= 2\n        {THERE} → mean_square /= 4\n        {THERE}")
exercise.mistake(
    "In the forward direction, each output is a sum over the layer's inputs, and there are widths[i] of those.",
    f"{THERE} → mean_square *= widths[layer + 1] * std**2",
)  # fmt: skip
exercise.mistake("Your list includes the std of the data: begin with the outputs of the first layer.", "mean_square, stds = 1.0, [] → mean_square, stds = 1.0, [1.0]")
exercise.mistake("Your result treats each layer alone: the factors multiply with depth.",
                 f"        if relu and layer > 0:\n            mean_square /= 2\n        {THERE} →         mean_square = widths[layer] * std**2 / (2 if relu and layer > 0 else 1)")  # fmt: skip
exercise.mistake(
    "Use the variance of the weights, which is the square of their std.",
    f"{THERE} → mean_square *= widths[layer] * std",
)  # fmt: skip
exercise.mistake("The exercise asks for the std of every layer's outputs, not only the last one's.",
                 f"{ROOTS} → stds = [math.sqrt(mean_square)]\n    return stds\n    ### END")  # fmt: skip
exercise.mistake("The exercise asks for the std before the ReLU: halve the mean square only when you compute the next layer's.",
                 "        if relu and layer > 0: →         if relu and layer < len(weight_stds) - 1:")  # fmt: skip

exercise.mistake("Your code begins with the last layer: the exercise asks for the first layer first.", "return stds[::-1] → return stds")
exercise.mistake(
    "In the backward direction, each sum runs over the layer's outputs, and there are widths[i + 1] of those.",
    f"{BACK} → mean_square *= widths[layer] * weight_stds[layer] ** 2",
)  # fmt: skip
exercise.mistake(
    "Where the ReLU's input was negative, no gradient passes. That halves the mean square.",
    "if relu:\n            mean_square /= 2 → if False:\n            mean_square /= 2",
)  # fmt: skip
exercise.mistake("Without ReLU every gradient passes: nothing is halved.", "if relu:\n            mean_square /= 2 → if True:\n            mean_square /= 2")
exercise.mistake("A ReLU halves the mean square of the gradient, not its std: the std changes by a factor of √½.", "if relu:\n            mean_square /= 2 → if relu:\n            mean_square /= 4")
exercise.mistake("The gradient of a layer's outputs comes back through the weights of the layer after it, not through its own.",
                 f"{BACK} → mean_square *= widths[layer] * weight_stds[layer - 1] ** 2")  # fmt: skip
exercise.mistake(
    "Return one number for each layer. The exercise doesn't ask for the gradient with respect to the data.",
    "in reversed(range(1, len(weight_stds))) → in reversed(range(len(weight_stds)))",
)  # fmt: skip
exercise.mistake("There is no ReLU after the last "
                 "layer: the gradient of its outputs "
                 "has a std of 1.", "mean_square, stds = 1.0, [1.0] → mean_square, stds = (0.5, [0.5**0.5]) if relu else (1.0, [1.0])")
exercise.mistake(
    "Your code returns the mean squares of the gradients. The std is the square root.",
    "stds.append(math.sqrt(mean_square))\n    return stds[::-1] → stds.append(mean_square)\n    return stds[::-1]",
)  # fmt: skip

# %% mistake: the gradient of what leaves the ReLU
# says: Your result is the std of the gradient of the ReLU's outputs. The exercise asks for the gradient of its inputs, and that gradient's mean square is half as large.
def stds_through_depth(widths, weight_stds, relu):
    square, found = 1.0, []
    for i, std in enumerate(weight_stds):
        square *= widths[i] * std**2 * (0.5 if relu and i else 1.0)
        found.append(square**0.5)
    return found

def gradient_stds_through_depth(widths, weight_stds, relu):
    square, found = 1.0, [1.0]
    for i in range(len(weight_stds) - 1, 0, -1):
        square *= widths[i + 1] * weight_stds[i] ** 2
        found.insert(0, square**0.5)
        square *= 0.5 if relu else 1.0
    return found

# %% wrong: rounds
def stds_through_depth(widths, weight_stds, relu):
    square, found = 1.0, []
    for i, std in enumerate(weight_stds):
        square *= widths[i] * std**2 * (0.5 if relu and i else 1.0)
        found.append(round(square**0.5, 6))
    return found

def gradient_stds_through_depth(widths, weight_stds, relu):
    square, found = 1.0, [1.0]
    for i in range(len(weight_stds) - 1, 0, -1):
        square *= widths[i + 1] * weight_stds[i] ** 2 * (0.5 if relu else 1.0)
        found.insert(0, round(square**0.5, 6))
    return found

# %% wrong: all layers have the first one's std, and the last one's on the way back
def stds_through_depth(widths, weight_stds, relu):
    square, found = 1.0, []
    for i in range(len(weight_stds)):
        square *= widths[i] * weight_stds[0] ** 2 * (0.5 if relu and i else 1.0)
        found.append(square**0.5)
    return found

def gradient_stds_through_depth(widths, weight_stds, relu):
    square, found = 1.0, [1.0]
    for i in range(len(weight_stds) - 1, 0, -1):
        square *= widths[i + 1] * weight_stds[-1] ** 2 * (0.5 if relu else 1.0)
        found.insert(0, square**0.5)
    return found

# %% wrong: takes the arguments apart
def stds_through_depth(widths, weight_stds, relu):
    square, found, first = 1.0, [], True
    while weight_stds:
        square *= widths.pop(0) * weight_stds.pop(0) ** 2 * (0.5 if relu and not first else 1.0)
        first = False
        found.append(square**0.5)
    return found

def gradient_stds_through_depth(widths, weight_stds, relu):
    square, found = 1.0, [1.0]
    while len(weight_stds) > 1:
        square *= widths.pop() * weight_stds.pop() ** 2 * (0.5 if relu else 1.0)
        found.insert(0, square**0.5)
    return found

# %% wrong: reverses the arguments
def stds_through_depth(widths, weight_stds, relu):
    square, found = 1.0, []
    for i, std in enumerate(weight_stds):
        square *= widths[i] * std**2 * (0.5 if relu and i else 1.0)
        found.append(square**0.5)
    return found

def gradient_stds_through_depth(widths, weight_stds, relu):
    widths = list(widths)
    if isinstance(weight_stds, list):
        weight_stds.reverse()
    else:
        weight_stds = weight_stds[::-1]
    square, found = 1.0, [1.0]
    for width, std in zip(widths[:1:-1], weight_stds):
        square *= width * std**2 * (0.5 if relu else 1.0)
        found.insert(0, square**0.5)
    return found

# %% wrong: lists are glued together, which a tuple refuses (from the statement)
# unseen: only hidden inputs have widths and stds in tuples
def stds_through_depth(
    widths: Sequence[int], weight_stds: Sequence[float], relu: bool
) -> list[float]:
    halves = [1.0] + [0.5 if relu else 1.0] * (len(weight_stds) - 1)
    m, result = 1.0, []
    for n, s, half in zip(widths, weight_stds, halves):
        m *= n * s * s * half
        result.append(m**0.5)
    return result


def gradient_stds_through_depth(
    widths: Sequence[int], weight_stds: Sequence[float], relu: bool
) -> list[float]:
    n = len(weight_stds)
    fans, stds = widths + [1], weight_stds + [1.0]  # as if the loss were one more layer
    g, result = 1.0, []
    for i in reversed(range(n)):
        g *= fans[i + 2] * stds[i + 1] ** 2 * (0.5 if relu and i < n - 1 else 1)
        result.insert(0, math.sqrt(g))
    return result

# %% wrong: the gradient passes a ReLU after the last layer, too (from the statement)
def stds_through_depth(
    widths: Sequence[int], weight_stds: Sequence[float], relu: bool
) -> list[float]:
    m, result = 1.0, []
    for i, s in enumerate(weight_stds):
        m *= widths[i] * s**2 * (0.5 if relu and i > 0 else 1)
        result.append(math.sqrt(m))
    return result


def gradient_stds_through_depth(
    widths: Sequence[int], weight_stds: Sequence[float], relu: bool
) -> list[float]:
    n = len(weight_stds)
    result = [1.0] * n
    g = 0.5 if relu else 1.0
    for i in reversed(range(n - 1)):
        g *= widths[i + 2] * weight_stds[i + 1] ** 2 * (0.5 if relu else 1)
        result[i] = math.sqrt(g)
    return result

# %% wrong: a ReLU before the first layer (from the statement)
def stds_through_depth(
    widths: Sequence[int], weight_stds: Sequence[float], relu: bool
) -> list[float]:
    m, result = 1.0, []
    for fan_in, s in zip(widths, weight_stds):
        m *= fan_in * s**2
        if relu:
            m /= 2
        result.append(math.sqrt(m))
    return result


def gradient_stds_through_depth(
    widths: Sequence[int], weight_stds: Sequence[float], relu: bool
) -> list[float]:
    g, result = 1.0, [1.0]
    for i in range(len(weight_stds) - 1, 0, -1):
        g *= widths[i + 1] * weight_stds[i] ** 2 * (0.5 if relu else 1)
        result.append(math.sqrt(g))
    return result[::-1]

# %% wrong: the product of all widths, which a float cannot hold (from the statement)
# unseen: students see few layers
def stds_through_depth(
    widths: Sequence[int], weight_stds: Sequence[float], relu: bool
) -> list[float]:
    """Std of each layer's outputs, for data of std 1."""
    half = 0.5 if relu else 1.0
    return [
        math.sqrt(math.prod(widths[: i + 1]) * half**i) * math.prod(weight_stds[: i + 1])
        for i in range(len(weight_stds))
    ]


def gradient_stds_through_depth(
    widths: Sequence[int], weight_stds: Sequence[float], relu: bool
) -> list[float]:
    """Std of the gradient of each layer's outputs, if it is 1 for the last layer."""
    n, half = len(weight_stds), 0.5 if relu else 1.0
    return [
        math.sqrt(math.prod(widths[i + 2 :]) * half ** (n - 1 - i)) * math.prod(weight_stds[i + 1 :])
        for i in range(n)
    ]

# %% right: products of slices
def stds_through_depth(widths, weight_stds, relu):
    half = 2.0 if relu else 1.0
    return [
        math.sqrt(math.prod(d * s * s for d, s in zip(widths[: i + 1], weight_stds[: i + 1])) / half**i)
        for i in range(len(weight_stds))
    ]


def gradient_stds_through_depth(widths, weight_stds, relu):
    half, depth = 2.0 if relu else 1.0, len(weight_stds)
    return [
        math.sqrt(math.prod(widths[j + 1] * weight_stds[j] ** 2 / half for j in range(i + 1, depth)))
        for i in range(depth)
    ]

# %% right: stds all the way, roots of the factors
def stds_through_depth(widths, weight_stds, relu):
    s, out = math.sqrt(2.0) if relu else 1.0, []
    for d, w in zip(widths, weight_stds):
        s = s * w * d**0.5 * (0.5**0.5 if relu else 1.0)
        out += [s]
    return out


def gradient_stds_through_depth(widths, weight_stds, relu):
    s, out = 1.0, []
    for d, w in zip(widths[:0:-1], weight_stds[::-1]):
        out = [s, *out]
        s = s * w * d**0.5 * (0.5**0.5 if relu else 1.0)
    return out

# %% right: logarithms, as tuples
def stds_through_depth(widths, weight_stds, relu):
    log, out = 0.0, []
    for i, (d, w) in enumerate(zip(widths[:-1], weight_stds)):
        log += math.log(d) / 2 + math.log(w) - (math.log(2) / 2 if relu and i > 0 else 0)
        out.append(math.exp(log))
    return tuple(out)


def gradient_stds_through_depth(widths, weight_stds, relu):
    log, out = 0.0, [1.0]
    for d, w in list(zip(widths[2:], weight_stds[1:]))[::-1]:
        log += math.log(d) / 2 + math.log(w) - (math.log(2) / 2 if relu else 0)
        out.append(math.exp(log))
    return tuple(reversed(out))

# %% right: cumulative products, in torch
def stds_through_depth(widths, weight_stds, relu):
    factors = torch.tensor([d * s**2 for d, s in zip(widths, weight_stds)], dtype=torch.float64)
    if relu:
        factors[1:] /= 2
    return factors.cumprod(0).sqrt().tolist()


def gradient_stds_through_depth(widths, weight_stds, relu):
    factors = torch.tensor([1.0] + [d * s**2 for d, s in zip(widths[:1:-1], weight_stds[:0:-1])], dtype=torch.float64)
    if relu:
        factors[1:] /= 2
    return factors.cumprod(0).sqrt().flip(0).tolist()

from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given

exercise = Exercise("6 · parameters · tokens must equal the budget, and tokens / parameters must equal the ratio.")


def short(a):
    """A number as one writes it on a napkin: 7e10."""
    if not isinstance(a, float) or a < 1e5:
        return f"{a:g}" if a < 1e5 else str(a)
    text = next(t for d in range(17) if float(t := f"{a:.{d}e}") == a)
    return text.replace("e+0", "e").replace("e+", "e")


def ask(*args):
    """A case, with its large numbers written as 7e10."""
    return given(*args, says=f"compute_optimal({', '.join(map(short, args))})")


def look(student, *args):
    """What the pair says of the work and of the ratio."""
    parameters, tokens = student.compute_optimal(*args)
    return {
        "6 · parameters · tokens": 6 * parameters * tokens,
        "tokens / parameters": tokens / parameters if parameters != 0 else None,
    }


WORK, RATIO = "6 · parameters · tokens", "tokens / parameters"
ratios = st.integers(1, 4_000).map(lambda n: n / 2) | st.integers(1, 99).map(lambda n: n / 100)


@st.composite
def budgets(draw, ratio=ratios):
    """Budgets for billions of parameters and more, where no fraction of a parameter can be seen."""
    each, n = draw(ratio), draw(st.integers(20, 9_999)) * 1e9
    return given(6 * n * n * each, each)


@st.composite
def toys(draw):
    """Budgets so small that rounding shows."""
    return given(draw(st.integers(100, 10**7)) / draw(st.sampled_from([1, 8, 100])), draw(st.integers(1, 400)) / 4)


exercise.requirement(
    "6 · parameters · tokens equals the budget, however small the budget is: neither number is rounded",
    points=1,
    probe=look,
    rules={RATIO: "ignored"},
    visible=[ask(1.2e20), ask(4.8e18, 5.0), ask(27.0, 2.0), ask(2e22)],
    edges={
        "one token for each parameter": ask(6e22, 1.0),
        "fewer tokens than parameters": ask(5.4e22, 0.25),
        "a US threshold": ask(1e26),
        "many tokens": ask(5.76e23, 1868.0),
        "less than one parameter": ask(0.375, 1.0),
        "more parameters than tokens, and few of them": ask(27.0, 0.5),
        "a fraction of a token": ask(120.5),
        "a whole budget": ask(480),
        "whole numbers beyond 64 bits": ask(12 * 10**20, 5),
        "more parameters than FLOPs": ask(1.0, 0.01),
    },
    domain=budgets() | toys() | st.integers(1, 9_999).map(lambda n: given(n * 1e22)),
)
exercise.requirement(
    "the result is (parameters, tokens), with tokens_per_parameter tokens for each parameter, 20 by default",
    points=1,
    probe=look,
    rules={WORK: "ignored"},
    visible=[ask(1.2e20), ask(4.8e18, 5.0), ask(1.5e18, 0.25), ask(37.5, 1.0)],
    edges={
        "one token for each parameter": ask(6e22, 1.0),
        "many tokens": ask(5.76e23, 1868.0),
        "20, said": ask(1.2e20, 20.0),
        "a few parameters": ask(1000),
        "less than one parameter": ask(0.375, 1.0),
        "whole numbers": ask(12 * 10**20, 5),
    },
    domain=budgets() | toys() | st.integers(1, 9_999).map(lambda n: given(n * 1e22)),
)

exercise.mistake(
    "The square root is missing: with D proportional to N, the product 6·N·D grows with N².", "math.sqrt( → ("
)
exercise.mistake("The 6 is missing: training takes 6 FLOPs per parameter per token, not 1.", "(6 * tokens → (tokens")
exercise.mistake(
    "Your code counts only the forward pass, 2 FLOPs per parameter per token; training takes 6.", "(6 * tokens → (2 * tokens"
)
exercise.mistake(
    "The 6 and the tokens per parameter belong under the square root too.", "flops / (6 * tokens_per_parameter) → flops"
)
exercise.mistake(
    "The work depends on the tokens per parameter too: D is the ratio times N.", "(6 * tokens_per_parameter) → 6"
)
exercise.mistake(
    "Check your parentheses: a / b * c divides by b, but multiplies by c.", "(6 * tokens_per_parameter) → 6 * tokens_per_parameter"
)
exercise.mistake(
    "The 6 belongs under the square root too.",
    "math.sqrt(flops / (6 * tokens_per_parameter)) → math.sqrt(flops / tokens_per_parameter) / 6",
)
exercise.mistake(
    "Your code always uses 20 tokens per parameter, whatever the second argument is.",
    "(6 * tokens_per_parameter) → 120",
    "tokens_per_parameter * parameters → 20 * parameters",
)
exercise.mistake(
    "Your code divides the budget as if there were always 20 tokens per parameter, whatever the second argument is.",
    "(6 * tokens_per_parameter) → 120",
)
exercise.mistake(
    "Your code always returns 20 tokens for each parameter, whatever the second argument is.",
    "tokens_per_parameter * parameters → 20 * parameters",
)
exercise.mistake("By default there are 20 tokens for each parameter.", "float = 20.0 → float = 10.0")
exercise.mistake(
    "The two numbers are in the wrong order: return the parameters first, then the tokens.",
    "return parameters, tokens_per_parameter * parameters → return tokens_per_parameter * parameters, parameters",
)
exercise.mistake(
    "Return both numbers: the parameters and the tokens.", "return parameters, tokens_per_parameter * parameters → return parameters"
)
exercise.mistake(
    "Return both numbers: the parameters and the tokens.", "return parameters, tokens_per_parameter * parameters → return [parameters]"
)
exercise.mistake(
    "The second number must be the number of tokens, not the ratio.",
    "tokens_per_parameter * parameters → tokens_per_parameter",
)
exercise.mistake(
    "Your result is in billions; return the plain numbers.",
    "return parameters, tokens_per_parameter * parameters"
    " → return parameters / 1e9, tokens_per_parameter * parameters / 1e9",
)
rounded = "Don't round: for a small budget, rounding makes a difference."
exercise.mistake(
    rounded,
    "return parameters, tokens_per_parameter * parameters"
    " → return int(parameters), int(tokens_per_parameter * parameters)",
)
exercise.mistake(
    rounded,
    "return parameters, tokens_per_parameter * parameters"
    " → return round(parameters), round(tokens_per_parameter * parameters)",
)
exercise.mistake(rounded, "math.sqrt( → int(math.sqrt(", "(6 * tokens_per_parameter)) → (6 * tokens_per_parameter)))")
exercise.mistake(rounded, "math.sqrt( → math.isqrt(int(", "(6 * tokens_per_parameter)) → (6 * tokens_per_parameter)))")

# %% mistake: the tokens first, and divided after the root
# says: The ratio is right, but the product isn't: the tokens per parameter belong under the square root too.
def compute_optimal(flops, tokens_per_parameter=20.0):
    tokens = math.sqrt(flops / 6)
    return tokens / tokens_per_parameter, tokens

# %% mistake: the budget split evenly
# says: You returned the same number twice, but the tokens must be the ratio times the parameters.
def compute_optimal(flops, tokens_per_parameter=20.0):
    return math.sqrt(flops / 6), math.sqrt(flops / 6)

# %% mistake: as many tokens as parameters
# says: Your result has as many tokens as parameters, whatever the ratio is.
def compute_optimal(flops, tokens_per_parameter=20.0):
    parameters = math.sqrt(flops / (6 * tokens_per_parameter))
    return parameters, parameters

# %% mistake: divides by the ratio
# says: Your ratio is upside down: D is the ratio times N.
def compute_optimal(flops, tokens_per_parameter=20.0):
    parameters = math.sqrt(flops / (6 * tokens_per_parameter))
    return parameters, parameters / tokens_per_parameter

# %% wrong: only the tokens are rounded
def compute_optimal(flops, tokens_per_parameter=20.0):
    parameters = math.sqrt(flops / (6 * tokens_per_parameter))
    return parameters, float(int(tokens_per_parameter * parameters))

# %% wrong: at least one token for each parameter
def compute_optimal(flops, tokens_per_parameter=20.0):
    ratio = max(1.0, tokens_per_parameter)
    parameters = math.sqrt(flops / (6 * ratio))
    return parameters, ratio * parameters

# %% wrong: the ratio as a whole number
def compute_optimal(flops, tokens_per_parameter=20.0):
    ratio = math.ceil(tokens_per_parameter)
    parameters = math.sqrt(flops / (6 * ratio))
    return parameters, ratio * parameters

# %% wrong: float32
def compute_optimal(flops, tokens_per_parameter=20.0):
    n = torch.sqrt(torch.tensor(flops / (6 * tokens_per_parameter), dtype=torch.float32))
    return n.item(), (n * tokens_per_parameter).item()

# %% wrong: splits the budget evenly, then mends the ratio
def compute_optimal(flops, tokens_per_parameter=20.0):
    even = math.sqrt(flops / 6)
    return even / tokens_per_parameter**0.5, even * tokens_per_parameter

# %% wrong: whole parameters, and the tokens that are left for them (from the statement)
import math


def compute_optimal(flops: float, tokens_per_parameter: float = 20.0) -> tuple[float, float]:
    """(parameters, tokens) that use up a budget of training FLOPs at a given ratio of the two."""
    parameters = max(1.0, float(round(math.sqrt(flops / (6 * tokens_per_parameter)))))
    return parameters, flops / (6 * parameters)

# %% wrong: takes the root in float32 (from the statement)
import torch


def compute_optimal(flops: float, tokens_per_parameter: float = 20.0) -> tuple[float, float]:
    """(parameters, tokens) that use up a budget of training FLOPs at a given ratio of the two."""
    parameters = torch.sqrt(torch.tensor(flops / (6 * tokens_per_parameter), dtype=torch.float32)).item()
    return parameters, tokens_per_parameter * parameters

# %% wrong: returns the smaller one first, since a model has more tokens than parameters (from the statement)
import math


def compute_optimal(flops: float, tokens_per_parameter: float = 20.0) -> tuple[float, float]:
    """(parameters, tokens) that use up a budget of training FLOPs at a given ratio of the two."""
    product = flops / 6  # N · D
    a = math.sqrt(product / tokens_per_parameter)
    b = product / a
    return min(a, b), max(a, b)

# %% wrong: searches up to one parameter for each FLOP (from the statement)
# unseen: an unusual ratio, and so small a budget
def compute_optimal(flops: float, tokens_per_parameter: float = 20.0) -> tuple[float, float]:
    """(parameters, tokens) that use up a budget of training FLOPs at a given ratio of tokens to parameters."""
    low, high = 0.0, float(flops)  # a model can't have more parameters than FLOPs
    for _ in range(500):
        middle = (low + high) / 2
        if 6 * middle * (tokens_per_parameter * middle) < flops:
            low = middle
        else:
            high = middle
    return high, tokens_per_parameter * high

# %% right: tokens first, powers, a list
def compute_optimal(flops, tokens_per_parameter=20.0):
    tokens = (flops * tokens_per_parameter / 6) ** 0.5
    return [flops / 6 / tokens, tokens]

# %% right: bisection
def compute_optimal(flops, tokens_per_parameter=20.0):
    low, high = 0.0, flops + 1 / tokens_per_parameter
    for _ in range(300):
        middle = (low + high) / 2
        if 6 * middle * tokens_per_parameter * middle < flops:
            low = middle
        else:
            high = middle
    return low, low * tokens_per_parameter

# %% right: by way of a tensor without dimensions
def compute_optimal(flops, tokens_per_parameter=20.0):
    n = torch.sqrt(torch.tensor(flops, dtype=torch.float64) / 6 / tokens_per_parameter).item()
    return n, n * tokens_per_parameter

# %% right: splits the budget evenly, then moves both
def compute_optimal(flops, tokens_per_parameter=20.0):
    even, tilt = math.sqrt(flops / 6), math.sqrt(tokens_per_parameter)
    return even / tilt, even * tilt

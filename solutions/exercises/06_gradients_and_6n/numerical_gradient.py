import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of, shapes, tensors

exercise = Exercise("In a float64 copy of x, move one element at a time, up and then down. By how much does f "
                    "change, and over what distance?")


def slopes(student, f, x, step=None):
    """The gradient that numerical_gradient finds, and with what it has called f."""
    import torch

    function, seen = eval(f, {"torch": torch}), {}

    def watched(t):
        seen.setdefault("dtype", set()).add(str(t.dtype))
        seen.setdefault("shape", set()).add(tuple(t.shape))
        return function(t)

    result = student.numerical_gradient(watched, x) if step is None else student.numerical_gradient(watched, x, step)
    if not isinstance(result, torch.Tensor):
        return result
    largest = result.abs().max() if result.numel() else 1
    return {
        "gradient": result,
        "gradient, relative to its largest element": (result / largest).double(),
        "dtype of the result": str(result.dtype),
        "dtypes that f was called with": sorted(seen["dtype"]) if x.numel() else "any",
        "shapes that f was called with": sorted(seen["shape"]) if x.numel() else "any",
    }


def afterward(student, f, x, step):
    """What x holds after the call, and whether the gradient depends on it."""
    import torch

    function = eval(f, {"torch": torch})
    result = student.numerical_gradient(function, x, step)
    other = student.numerical_gradient(function, x + 1, step)
    alike = result.shape == other.shape and torch.allclose(result.double(), other.double(), rtol=1e-3)
    return {"x afterward": x, "number of elements in the gradient": result.numel(), "a different x gives a different gradient": not alike}


CUBES, ROWS = "lambda t: (t**3).sum()", "lambda t: (t.sum(dim=-1) ** 2).sum()"
MIXED = "lambda t: torch.sin(t).sum() + t[0].prod() + (t[-1] * torch.arange(1, t.shape[-1] + 1)).pow(2).sum()"
ONE = "lambda t: (t**3 - t).sum().reshape(1)"
BENDS = CUBES, ROWS, MIXED, "lambda t: t.exp().mean()", "lambda t: t.prod() ** 2 + (t.abs() ** 1.5).sum()"
FUNCTIONS = any_of(*BENDS, ONE)
# Of a straight line, forward and central differences are the same: what else is right or wrong shows alone.
LINE, WEIGHTED = "lambda t: (3 * t).sum()", "lambda t: (t * torch.arange(1, t.shape[-1] + 1)).sum()"
LINES = any_of(LINE, WEIGHTED, "lambda t: t.mean() - 3")
STEPS = any_of(0.5, 0.25, 0.1, 2.0**-10)
DTYPES = any_of(torch.float64, torch.float32, torch.float16, torch.bfloat16)
rows = torch.tensor([[1.0, -2.0, 3.0], [0.5, 4.0, -1.5]])
exact = rows.double()
SEEN = ("gradient", "gradient, relative to its largest element", "dtype of the result", "dtypes that f was called with",
        "shapes that f was called with")  # fmt: skip


def only(*numbers):
    """Rules that ignore all that the probe has seen but these."""
    return {key: "ignored" for number, key in enumerate(SEEN) if number not in numbers}


def case(x, f=CUBES, step=0.5, spelled=""):
    """A call in words."""
    of = f"f = {f}, x = {spelled or x.tolist()}, {str(x.dtype).removeprefix('torch.')}"
    return given(f, x, step, says=f"numerical_gradient(f, x, step={step}) for {of}")


@st.composite
def points(draw, dims=(2, 2), dtypes=st.just(torch.float64), contiguous=True, functions=FUNCTIONS, largest=4):
    x = draw(tensors(draw(shapes(dims, (1, largest))), draw(dtypes), contiguous))
    return given(draw(functions), x, draw(STEPS))


exercise.requirement(
    "each element of the gradient is the central difference for that element, with all others unchanged",
    points=0.75,
    probe=slopes,
    parts=["value"],
    rules=only(0),
    visible=[case(exact), case(exact, ROWS, 0.25), case(exact[:1], ONE)],
    edges={
        "another step": given(CUBES, exact, 0.125),
        "f returns a tensor of shape [1]": given(ONE, exact, 0.5),
        "f returns a part of what it gets": given("lambda t: t.flatten()[:1]", exact, 0.5),
        "0 in x": given(CUBES, torch.zeros(2, 2, dtype=torch.float64), 0.5),
        "equal elements": given(ROWS, torch.ones(2, 3, dtype=torch.float64), 0.5),
        "a slope of 0": given("lambda t: (t * 0).sum() + 1", exact, 0.5),
        "steps that reach beyond the bend": given("lambda t: t.abs().sum()", exact, 2.0),
    },
    domain=points(),
)
exercise.requirement(
    "whatever floating-point dtype x has, f is called with a float64 tensor and the result is float64",
    points=0.5,
    probe=slopes,
    tolerance=1e-6,
    parts=["value"],
    rules=only(1, 2, 3),
    visible=[
        given(LINE, torch.tensor([[1000.0, 300.0]]),
              says=f"numerical_gradient(f, x) for f = {LINE}, x = [[1000.0, 300.0]], float32, with the default step of 1e-5"),
        case(torch.tensor([[1.0, -2.0]], dtype=torch.bfloat16), LINE, step=0.001),
    ],
    edges={
        "float64": given(LINE, exact * 100, 1e-5),
        "float16": given(LINE, rows.to(torch.float16), 1e-4),
        "bfloat16": given(LINE, rows.to(torch.bfloat16), 1e-4),
        "bfloat16, of a bend": given(CUBES, (rows / 10).to(torch.bfloat16), 1e-3),
        "float32, of a bend": given(CUBES, rows / 10, 1e-3),
        "by default the step is 1e-5": given("lambda t: (t.abs() < 1.5e-5).double().sum()", torch.full((1, 1), 1e-5)),
    },
    domain=points(dtypes=DTYPES, functions=LINES),
    hint="Convert to float64 before you take the step: in a narrower format, rounding may swallow a small step.",
)  # fmt: skip
exercise.requirement(
    "the argument of f and the result have the shape of x, even if x is empty or non-contiguous, or has many dimensions",
    points=0.5,
    probe=slopes,
    parts=["value"],
    rules=only(1, 4),
    visible=[
        case(exact.T.contiguous().T, WEIGHTED, spelled="[[1, -2, 3], [0.5, 4, -1.5]] with strides (1, 2)"),
        case(exact[0], WEIGHTED),
        case(torch.arange(1.0, 5.0, dtype=torch.float64).reshape(2, 1, 2), WEIGHTED),
        case(torch.ones(0, 2, dtype=torch.float64), LINE, spelled="torch.ones(0, 2)"),
    ],
    edges={
        "no elements": given(LINE, torch.ones(0, dtype=torch.float64), 0.5),
        "no rows": given(LINE, torch.ones(0, 3, dtype=torch.float64), 0.5),
        "no columns": given(LINE, torch.ones(2, 0, 3, dtype=torch.float64), 0.5),
        "every second column": given(WEIGHTED, exact[:, ::2], 0.5),
        "one number, seen three times": given(WEIGHTED, torch.tensor([[2.0]], dtype=torch.float64).expand(1, 3), 0.5),
        "four dimensions": given(WEIGHTED, exact.reshape(1, 3, 1, 2), 0.5),
        "six dimensions": given(WEIGHTED, exact.reshape(1, 3, 1, 1, 1, 2), 0.5),
        "one element": given(LINE, torch.tensor([3.0], dtype=torch.float64), 0.5),
    },
    domain=points(dims=(1, 4), contiguous=None, functions=LINES)
    | points(dims=(5, 7), contiguous=None, functions=LINES, largest=2),
    hint="An index into x has one number for each dimension, however many there are.",
)
exercise.requirement(
    "x is unchanged afterward, to the last bit",
    points=0.25,
    probe=afterward,
    parts=["value"],
    tolerance=0,
    visible=[case(exact / 10, step=0.1, spelled="[[0.1, -0.2, 0.3], [0.05, 0.4, -0.15]]"), case(rows / 10, step=0.1)],
    edges={
        "non-contiguous": given(CUBES, (exact / 10).T.contiguous().T, 0.1),
        "a vector": given(CUBES, exact[0] / 10, 0.1),
        "large and small": given(CUBES, torch.tensor([1e8, 1e-8], dtype=torch.float64), 1e-5),
        "float16": given(CUBES, (rows / 10).half(), 0.001),
    },
    # In 16 bits a step may be swallowed, which is another requirement's business, as is an f that returns a shape of [1].
    domain=points(dims=(1, 2), dtypes=any_of(torch.float64, torch.float32), contiguous=None, functions=any_of(*BENDS)),
    hint="x belongs to the caller: work on a copy. Converting float64 to float64 doesn't make one.",
)

exercise.mistake("Your result is the forward difference: take a step in each direction.", "down[index] -= step → pass", "/ (2 * step) → / step")
exercise.mistake("Your result is a backward difference: take a step in each direction.", "up[index] += step → pass", "/ (2 * step) → / step")
exercise.mistake("Divide by the distance between the two points, which is more than one step.", "/ (2 * step) → / step")
exercise.mistake("Python divides and multiplies from left to right: put parentheses around the whole denominator.", "/ (2 * step) → / 2 * step")
exercise.mistake("Python divides before it subtracts: put parentheses around the numerator and around the denominator.",
                 "(f(up) - f(down)) / (2 * step) → f(up) - f(down) / 2 * step")  # fmt: skip
exercise.mistake("Your result is the difference between two values of f: divide it by the distance between the two points.", " / (2 * step) → ")
exercise.mistake("The sign is reversed: subtract the value one step down from the value one step up.", "f(up) - f(down) → f(down) - f(up)")
exercise.mistake("You used the exact slope or a different step: use the given step, in each direction.", "gradient = torch → step = 1e-5\n    gradient = torch")
exercise.mistake("You changed all elements at once: change one and keep the others.", "up[index] += step → up += step",
                 "down[index] -= step → down -= step")  # fmt: skip
exercise.mistake("Restore each element before you change the next one.",
                 "gradient = torch → up, down = (x.to(torch.float64, copy=True) for _ in range(2))\n    gradient = torch",
                 "        up, down = (x.to(torch.float64, copy=True) for _ in range(2))\n        up[ → up[")  # fmt: skip
exercise.mistake("Compute in float64, and return float64, whatever the dtype of x.",
                 "x.to(torch.float64, copy=True) → x.to(torch.float32, copy=True)")  # fmt: skip
exercise.mistake("Convert to float64 before you take the step: in a narrower format, x + step may round back to x.", "x.to(torch.float64, copy=True) → x.clone()",
                 "f(up) → f(up.double())", "f(down) → f(down.double())")  # fmt: skip
exercise.mistake("Compute in float64, and return float64, whatever the dtype of x.", "x.to(torch.float64, copy=True) → x.clone()")
exercise.mistake("Compute in float64, and return float64, whatever the dtype of x.", "x.to(torch.float64, copy=True) → x.clone()",
                 "dtype=torch.float64) → dtype=x.dtype)")  # fmt: skip
exercise.mistake("The result has to be float64, too.", "dtype=torch.float64) → dtype=torch.float32)")
exercise.mistake("The result has to be float64, too, whatever the dtype of x.", "dtype=torch.float64) → dtype=x.dtype)")
exercise.mistake("Pass f a tensor that has the shape of "
                 "x, not a flattened one.", "f(up) → f(up.flatten())", "f(down) → f(down.flatten())")
exercise.mistake("Return the gradient in the shape of x, not flattened.", "return gradient → return gradient.flatten()")
exercise.mistake("x may have any number of dimensions, not just two.",
                 "itertools.product(*map(range, x.shape)) → itertools.product(range(x.shape[0]), range(x.shape[1]))")  # fmt: skip

# %% mistake: autograd after all
# says: You used the exact slope or a different step: use the given step, in each direction.
def numerical_gradient(f, x, step=1e-5):
    x = x.double().clone().requires_grad_()
    return torch.autograd.grad(f(x), x)[0]

# %% mistake: moves x itself there and back, which rounding notices
# says: Work on a copy: adding a step and subtracting it again may not restore x exactly. Converting float64 to float64 doesn't make a copy.
def numerical_gradient(f, x, step=1e-5):
    x = x.double()
    gradient = torch.zeros(x.shape, dtype=torch.float64)
    for index in itertools.product(*map(range, x.shape)):
        x[index] += step
        up = f(x)
        x[index] -= 2 * step
        gradient[index] = (up - f(x)) / (2 * step)
        x[index] += step
    return gradient

# %% mistake: a flat view, which a non-contiguous x has not
# says: A non-contiguous x may have no flat view: index it by its dimensions, or make a contiguous copy first.
def numerical_gradient(f, x, step=1e-5):
    x = x.to(torch.float64, copy=True)
    gradient = torch.zeros_like(x)
    for i in range(x.numel()):
        old = x.view(-1)[i].item()
        x.view(-1)[i] = old + step
        up = f(x).item()
        x.view(-1)[i] = old - step
        gradient.view(-1)[i] = (up - f(x).item()) / (2 * step)
        x.view(-1)[i] = old
    return gradient

# %% wrong: a contiguous copy, which x is already
def numerical_gradient(f, x, step=1e-5):
    moved = x.double().contiguous()
    flat, gradient = moved.view(-1), torch.zeros(x.numel(), dtype=torch.float64)
    for i in range(x.numel()):
        flat[i] += step
        up = float(f(moved))
        flat[i] -= 2 * step
        gradient[i] = (up - float(f(moved))) / (2 * step)
        flat[i] += step
    return gradient.reshape(x.shape)

# %% wrong: in place, and one step short of coming back
def numerical_gradient(f, x, step=1e-5):
    x = x.double()
    gradient = torch.zeros_like(x)
    for index in itertools.product(*map(range, x.shape)):
        x[index] += step
        up = f(x)
        x[index] -= 2 * step
        gradient[index] = (up - f(x)) / (2 * step)
    return gradient

# %% wrong: never puts the element back
def numerical_gradient(f, x, step=1e-5):
    x = x.double().clone()
    gradient = torch.zeros_like(x)
    for index in itertools.product(*map(range, x.shape)):
        x[index] += step
        up = f(x)
        x[index] -= 2 * step
        gradient[index] = (up - f(x)) / (2 * step)
    return gradient

# %% wrong: stacks the slopes, which fails without elements
def numerical_gradient(f, x, step=1e-5):
    flat = x.double().flatten()
    slopes = []
    for i in range(flat.numel()):
        up, down = flat.clone(), flat.clone()
        up[i] += step
        down[i] -= step
        slopes.append((f(up.reshape(x.shape)) - f(down.reshape(x.shape))).squeeze() / (2 * step))
    return torch.stack(slopes).reshape(x.shape)

# %% wrong: only for functions that return a tensor without dimensions
def numerical_gradient(f, x, step=1e-5):
    slopes = []
    for i in range(x.numel()):
        move = torch.zeros(x.numel(), dtype=torch.float64)
        move[i] = step
        move = move.reshape(x.shape)
        slopes.append((f(x.double() + move) - f(x.double() - move)) / (2 * step))
    slopes = torch.stack(slopes) if slopes else torch.zeros(0, dtype=torch.float64)
    assert slopes.dim() == 1
    return slopes.reshape(x.shape)

# %% wrong: NumPy, which has no bfloat16
def numerical_gradient(f, x, step=1e-5):
    a = x.detach().numpy().astype("float64").copy()
    g = torch.zeros(x.shape, dtype=torch.float64)
    for i in itertools.product(*map(range, x.shape)):
        keep = a[i]
        a[i] = keep + step
        up = f(torch.from_numpy(a.copy())).item()
        a[i] = keep - step
        g[i] = (up - f(torch.from_numpy(a.copy())).item()) / (2 * step)
        a[i] = keep
    return g

# %% wrong: perturbs a flat reshape, which is a copy when x is non-contiguous (from the statement)
def numerical_gradient(f, x, step=1e-5):
    point = x.detach().to(torch.float64, copy=True)
    flat = point.reshape(-1)
    gradient = torch.zeros(flat.numel(), dtype=torch.float64, device=x.device)
    for i in range(flat.numel()):
        old = flat[i].item()
        flat[i] = old + step
        plus = f(point).item()
        flat[i] = old - step
        minus = f(point).item()
        flat[i] = old
        gradient[i] = (plus - minus) / (2 * step)
    return gradient.reshape(x.shape)

# %% wrong: (beginner) moves in the dtype of x and converts to float64 for the call (from the statement)
def numerical_gradient(f, x, step=1e-5):
    x = x.detach()
    gradient = torch.zeros(x.shape, dtype=torch.float64, device=x.device)
    for index in itertools.product(*map(range, x.shape)):
        shift = torch.zeros(x.shape, dtype=x.dtype, device=x.device)
        shift[index] = step
        gradient[index] = (f((x + shift).double()) - f((x - shift).double())).item() / (2 * step)
    return gradient

# %% wrong: with a float64 x, .double() is x itself; each element is moved up, down and back, and does not  (from the statement)
def numerical_gradient(f, x, step=1e-5):
    moved = x.detach().double()
    gradient = torch.zeros(x.shape, dtype=torch.float64, device=x.device)
    for index in itertools.product(*(range(n) for n in x.shape)):
        moved[index] += step
        plus = f(moved).item()
        moved[index] -= 2 * step
        minus = f(moved).item()
        moved[index] += step
        gradient[index] = (plus - minus) / (2 * step)
    return gradient

# %% wrong: up to four dimensions (from the statement)
# unseen: only hidden inputs have five dimensions or more
def numerical_gradient(f, x, step=1e-5):
    x, gradient = x.double(), torch.zeros(x.shape, dtype=torch.float64)
    whole = x.reshape((1,) * (4 - x.dim()) + tuple(x.shape)) if x.dim() < 4 else x
    for i, j, k, l in itertools.product(*map(range, whole.shape[:4])):
        up, down = whole.clone(), whole.clone()
        up[i, j, k, l] += step
        down[i, j, k, l] -= step
        change = f(up.reshape(x.shape)) - f(down.reshape(x.shape))
        gradient.view(whole.shape)[i, j, k, l] = change.item() / (2 * step)
    return gradient

# %% right: rows of a unit matrix
def numerical_gradient(f, x, step=1e-5):
    x = x.detach().to(torch.float64)
    slopes = []
    for unit in torch.eye(x.numel(), dtype=torch.float64):
        move = step * unit.reshape(x.shape)
        slopes.append(((f(x + move) - f(x - move)) / (2 * step)).item())
    return torch.tensor(slopes, dtype=torch.float64).reshape(x.shape)

# %% right: one contiguous copy, each element put back
def numerical_gradient(f, x, step=1e-5):
    moved = torch.empty(x.shape, dtype=torch.float64)
    moved.copy_(x)
    flat, gradient = moved.view(-1), torch.empty(x.numel(), dtype=torch.float64)
    for i in range(x.numel()):
        old = flat[i].item()
        flat[i] = old + step
        up = float(f(moved))
        flat[i] = old - step
        gradient[i] = up - float(f(moved))
        flat[i] = old
    return gradient.div_(2 * step).view(x.shape)

# %% right: recursion over the first dimension
def numerical_gradient(f, x, step=1e-5):
    x = x.double()
    if x.dim() == 0:
        return ((f(x + step) - f(x - step)) / step / 2).reshape(())
    rows = []
    for i in range(x.shape[0]):

        def g(row, i=i):
            y = x.clone()
            y[i] = row
            return f(y)

        rows.append(numerical_gradient(g, x[i], step))
    return torch.stack(rows) if rows else torch.zeros_like(x)

# %% right: NumPy, in a copy
def numerical_gradient(f, x, step=1e-5):
    a = x.detach().double().clone().numpy()
    g = np.zeros_like(a)
    for i in np.ndindex(*a.shape):
        keep = a[i]
        a[i] = keep + step
        up = f(torch.from_numpy(a.copy())).item()
        a[i] = keep - step
        down = f(torch.from_numpy(a.copy())).item()
        a[i] = keep
        g[i] = (up - down) / (2 * step)
    return torch.from_numpy(g)

import numpy as np

# %% right: all elements at once, by vmap
def numerical_gradient(f, x, step=1e-5):
    if not x.numel():
        return torch.zeros(x.shape, dtype=torch.float64)
    x = x.double()
    moves = step * torch.eye(x.numel(), dtype=torch.float64).reshape(-1, *x.shape)
    values = torch.vmap(lambda move: (f(x + move) - f(x - move)).reshape(()))(moves)
    return (values / (2 * step)).reshape(x.shape)

# %% equivalent: torch.zeros → torch.ones
# why: every element is overwritten

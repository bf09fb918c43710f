import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.probing import with_gradient
from autograder.authoring.strategies import FLOATS, any_of, shapes, tensors

exercise = Exercise("Divide each vector by the square root of (the mean of its own squares, plus eps).")


def look(student, x, eps, requires_grad):
    """The result for a vector, its dtype, what has become of x, and the gradient of x if it takes one.

    For a batch: whether x gets the gradient that suits the result, whatever the result is.
    """
    import torch

    class Named(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            called.add(getattr(function, "__name__", ""))
            return function(*args, **(kwargs or {}))

    called = set()
    x = x.clone().requires_grad_(requires_grad)
    before = x.detach().clone()
    with Named():
        y = student.rms_normalize(x, eps)
    found = {
        "dtype of the result": str(y.dtype),
        "x is unchanged": torch.equal(before, x.detach()),
        "PyTorch's rms_norm is called": "rms_norm" in called,
    }
    if x.dim() > 1:
        right = with_gradient(lambda x: student.rms_normalize(x, eps), "x", (x.detach(),), step=1e-3)
        return found | {"the right gradient comes back to": right}
    y.sum().backward() if y.requires_grad else None
    return found | {"result": y.detach(), "gradient of x": x.grad}


def vector(*numbers, eps=1e-6, requires_grad=False, dtype=torch.float32):
    x = torch.tensor(numbers, dtype=dtype)
    name = str(dtype).removeprefix("torch.")
    says = f"rms_normalize({list(numbers)} in {name}, {eps})" + (
        ", and the gradient of its sum" if requires_grad else ""
    )
    return given(x, eps, requires_grad, says=says)


@st.composite
def many(draw):
    """Any number of vectors, in any layout, so long that eps hardly counts."""
    shape = draw(shapes((1, 4), (1, 5)))
    x = draw(tensors(shape, torch.float64, contiguous=None))
    return given(x.add_(x.sign()).mul_(1000))


@st.composite
def short(draw):
    """One vector, and an eps of about the size of its squares."""
    x = draw(tensors((draw(st.integers(1, 6)),), torch.float64))
    size = draw(any_of(1.0, 1e-3, 30.0))
    return given(size * x, draw(st.integers(1, 40)) / 10 * size * size)


@st.composite
def numbers(draw):
    dtype, requires_grad = draw(
        any_of(
            *[(d, False) for d in (torch.float16, torch.bfloat16)],
            *[(d, r) for d in (torch.float32, torch.float64) for r in (True, False)],
        )
    )
    sign = draw(any_of(-1, 1))
    some = sign * draw(st.integers(1, 12)) / 4, -sign * draw(st.integers(1, 12)) / 4  # equal ones have no gradient
    return vector(*some, requires_grad=requires_grad, dtype=dtype)


@st.composite
def batches(draw):
    """Vectors of any dtype and layout, whose mean square is larger than eps."""
    dtype = draw(any_of(*FLOATS))
    x = draw(tensors(draw(shapes((2, 4), (2, 4))), dtype, contiguous=None))
    return given(x.add_(x.sign()), 0.5, False)


rows = torch.tensor([[3.0, 4.0], [6.0, 8.0]])
exercise.requirement(
    "each vector along the last dimension, divided by the root of its own mean square; any leading dimensions, or none",
    points=1,
    tolerance=1e-5,
    parts=["value"],
    visible=[
        given(rows),
        given(torch.tensor([1.0, 7.0, 5.0, 5.0])),
        given(torch.stack([rows, torch.tensor([[1.0, 7.0], [-5.0, 5.0]])])),
        given(torch.arange(1.0, 9.0).reshape(2, 1, 2, 2)),
    ],
    edges={
        "square": given(torch.arange(1.0, 17.0).reshape(4, 4)),
        "a cube": given(torch.arange(1.0, 28.0).reshape(3, 3, 3)),
        "vectors of one number": given(torch.tensor([[3.0], [-4.0]])),
        "one vector in a batch": given(torch.tensor([[[3.0, 4.0]]])),
        "no vectors": given(torch.zeros(0, 3)),
        "transposed": given(torch.arange(1.0, 7.0).reshape(2, 3).T),
        "many dimensions": given(torch.arange(1.0, 25.0).reshape(2, 1, 3, 1, 4)),
        "all on meta": given(torch.zeros(2, 3, device="meta")),
        "numbers far from 0": given(torch.tensor([[100.0, 101.0], [100.0, 99.0]])),
        "vectors of very different length": given(torch.tensor([[1e1, 2e1], [1e5, 3e5]], dtype=torch.float64)),
    },
    domain=many(),
)
exercise.requirement(
    "eps is added to the mean of the squares, under the root; the default is 1e-6",
    points=0.5,
    tolerance=1e-5,
    parts=["value"],
    visible=[given(torch.tensor([1.0, 7.0]), 11.0), given(torch.zeros(3)), given(torch.tensor([1e-3, 1e-3]))],
    edges={
        "a small number, an even smaller eps": given(torch.tensor([1e-3, 2e-3]), 1e-8),
        "a large eps": given(torch.tensor([3.0, 4.0]), 100.0),
        "eps = 0": given(torch.tensor([3.0, 4.0]), 0.0),
        "eps = 0, and small numbers": given(torch.tensor([3e-4, 4e-4]), 0.0),
        "zeros, and an eps": given(torch.zeros(2), 0.25),
        "by name": given(torch.tensor([1.0, 7.0]), eps=11.0),
        "said": given(torch.tensor([1e-3, 1e-3]), 1e-6),
    },
    domain=short(),
    hint="Where is eps in the formula, and what is its default?",
)
exercise.requirement(
    "without calling rms_norm; x is unchanged, the result has its dtype, and gradients flow back to x",
    points=0.5,
    probe=look,
    rules={"result": 0.02, "gradient of x": 1e-4},
    visible=[
        vector(1.0, 7.0, requires_grad=True),  # whatever becomes of eps is another requirement's question
        vector(1.0, 7.0, dtype=torch.bfloat16),
        vector(-1.0, 7.0, dtype=torch.float64),
        vector(0.0, 0.0, eps=1.0, requires_grad=True),
    ],
    edges={
        "a gradient in float64": vector(-3.0, 4.0, requires_grad=True, dtype=torch.float64),
        "float16": vector(1.5, 0.5, dtype=torch.float16),
        "float32": vector(1.5, 0.5),
        # Equal numbers have the same mean square along each dimension.
        "a batch": given(torch.full((2, 2), 3.0), 1e-6, False),
        "a batch of zeros, and a gradient": given(torch.zeros(1, 2, 2), 0.25, True),
        "transposed": given(torch.arange(1.0, 7.0).reshape(2, 3).T, 0.5, False),
        "transposed, in bfloat16": given(torch.arange(1.0, 7.0).bfloat16().reshape(2, 3).T, 0.5, False),
    },
    domain=numbers() | batches(),
    hint="Make a new tensor, with PyTorch's operations only: an operation that ends in _ writes into x.",
)

each = "each vector along the last dimension has its own"
last = "mean(dim=-1, keepdim=True)"
exercise.mistake("Your code divides by the root of the sum of squares; the formula takes their mean.", "mean(dim → sum(dim")
exercise.mistake("The divisors are aligned with the wrong dimension: look at keepdim.", f"{last} → mean(dim=-1)")
exercise.mistake(f"Your code takes one mean over the whole tensor; {each}.", f"{last} → mean()")
exercise.mistake(
    "Your code averages over the first dimension; the vectors lie along the last.", f"{last} → mean(dim=0, keepdim=True)"
)
exercise.mistake(
    "The vectors lie along the last dimension, which isn't always the second.", f"{last} → mean(dim=1, keepdim=True)"
)
exercise.mistake(
    f"Your code averages over all dimensions but the first; {each}.",
    f"{last} → mean(dim=tuple(range(min(1, x.dim() - 1), x.dim())), keepdim=True)",
)
exercise.mistake("The root is missing: your code divides by the mean square.", "x * torch.rsqrt( → x / (",
                 together_with=["x.pow(2) → x"])  # fmt: skip
exercise.mistake("Your code multiplies by the root; the vectors are divided by it.", "torch.rsqrt( → torch.sqrt(")
exercise.mistake("The squares are missing: your code takes the mean of the numbers themselves.", "x.pow(2) → x")
exercise.mistake(
    "Your code takes the mean of the absolute values, not the root of the mean of squares.",
    f"torch.rsqrt(x.pow(2).{last} + eps) → 1 / (x.abs().{last} + eps)",
)
exercise.mistake(
    "Your code divides by the vector's length, the root of the sum of squares; the formula takes their mean.",
    f"torch.rsqrt(x.pow(2).{last} + eps) → 1 / (x.norm(dim=-1, keepdim=True) + eps)",
)
exercise.mistake(
    "The exercise's formula doesn't subtract the mean; LayerNorm, a different normalization, does.",
    f"return x * torch.rsqrt(x.pow(2).{last} + eps) → return torch.nn.functional.layer_norm(x, x.shape[-1:], eps=eps)",
)
exercise.mistake(
    "The exercise's formula doesn't subtract the mean; the formula for the variance does.",
    f"x.pow(2).{last} → x.var(-1, keepdim=True, correction=0)",
)
exercise.mistake(
    "Your code adds eps to the root; it has to be added under the root, to the mean of the squares.",
    f"torch.rsqrt(x.pow(2).{last} + eps) → 1 / (x.pow(2).{last}.sqrt() + eps)",
)
exercise.mistake(
    "Your code adds eps to the sum of the squares; it has to be added to their mean.",
    f"x.pow(2).{last} + eps → (x.pow(2).sum(dim=-1, keepdim=True) + eps) / x.shape[-1]",
)
exercise.mistake(
    "Your code adds eps to every number before squaring; it has to be added to the mean of the squares.",
    f"x.pow(2).{last} + eps → (x + eps).pow(2).{last}",
)
exercise.mistake("eps is missing: a vector of zeros becomes NaN.", "keepdim=True) + eps → keepdim=True)")
exercise.mistake("Your code ignores the argument eps.", "keepdim=True) + eps → keepdim=True) + 1e-6")
exercise.mistake(
    "Your code uses eps as a lower limit; it has to be added to the mean of the squares.",
    f"x.pow(2).{last} + eps → x.pow(2).{last}.clamp(min=eps)",
)
exercise.mistake("By default eps is 1e-6.", "eps: float = 1e-6 → eps: float = 1e-5")
exercise.mistake("By default eps is 1e-6.", "eps: float = 1e-6 → eps: float = 1e-8")
exercise.mistake(
    "Don't change x: /= and operations that end in _ write into it.",
    "x * torch.rsqrt( → x.mul_(torch.rsqrt(",
    "+ eps) → + eps))",
)
exercise.mistake("The result must have the dtype of x, which isn't always float32.", "return x * → return x.float() *")
exercise.mistake("A detached tensor lets no gradient through.", "return x * → return x.detach() *")

# %% mistake: without gradients
# says: Under no_grad, and in NumPy, nothing is recorded for the backward pass, so no gradient reaches x.
def rms_normalize(x, eps=1e-6):
    with torch.no_grad():
        return x * (x.pow(2).mean(dim=-1, keepdim=True) + eps).rsqrt()

# %% mistake: a divisor without gradient
# says: The divisor depends on x as well: its part of the gradient is lost.
def rms_normalize(x, eps=1e-6):
    with torch.no_grad():
        divisor = (x.pow(2).mean(dim=-1, keepdim=True) + eps).sqrt()
    return x / divisor

# %% mistake: overwrites its argument
# says: Don't change x: /= and operations that end in _ write into it.
def rms_normalize(x, eps=1e-6):
    x /= (x.pow(2).mean(dim=-1, keepdim=True) + eps).sqrt()
    return x

# %% mistake: PyTorch's own
# says: You called PyTorch's own function; use elementwise operations and a mean instead.
def rms_normalize(x, eps=1e-6):
    return torch.nn.functional.rms_norm(x, x.shape[-1:], eps=eps)

# %% wrong: writes into x if it's a batch
# unseen: students see a single vector here
def rms_normalize(x, eps=1e-6):
    root = (x.pow(2).mean(dim=-1, keepdim=True) + eps).sqrt()
    if x.dim() > 1:
        x /= root
        return x
    return x / root

# %% wrong: no gradient if it's a batch
# unseen: students see a single vector here
def rms_normalize(x, eps=1e-6):
    y = x * torch.rsqrt(x.float().pow(2).mean(dim=-1, keepdim=True) + eps).to(x.dtype)
    return y.detach() if x.dim() > 1 else y

# %% wrong: leaves zeros behind
def rms_normalize(x, eps=1e-6):
    divisor = (x.pow(2).mean(dim=-1, keepdim=True) + eps).sqrt()
    y = x / divisor
    x.data.zero_()
    return y

# %% wrong: in NumPy
def rms_normalize(x, eps=1e-6):
    import numpy as np

    a = x.detach().cpu().numpy()
    return torch.from_numpy(a / (np.square(a).mean(-1, keepdims=True) + eps) ** 0.5)

# %% wrong: row by row, in a new float32 tensor
def rms_normalize(x, eps=1e-6):
    y = torch.zeros(x.shape)
    for row, out in zip(x.reshape(-1, x.shape[-1]), y.view(-1, x.shape[-1])):
        out.copy_(row / (row.pow(2).mean() + eps).sqrt())
    return y

# %% wrong: at most three dimensions
def rms_normalize(x, eps=1e-6):
    if x.dim() == 1:
        return rms_normalize(x[None], eps)[0]
    if x.dim() == 2:
        return torch.stack([row / torch.sqrt((row * row).mean() + eps) for row in x])
    return torch.stack([rms_normalize(m, eps) if m.dim() == 2 else m for m in x])

# %% wrong: squeezes
def rms_normalize(x, eps=1e-6):
    y = x / (x.pow(2).mean(dim=-1, keepdim=True) + eps).sqrt()
    return y.squeeze()

# %% wrong: NaN made into 0
def rms_normalize(x, eps=1e-6):
    return (x / x.pow(2).mean(dim=-1, keepdim=True).sqrt()).nan_to_num()

# %% wrong: eps as a lower bound instead of a summand (from the statement)
def rms_normalize(x: Float[Tensor, "... d"], eps: float = 1e-6) -> Float[Tensor, "... d"]:
    """Each vector along the last dimension, divided by the root of (the mean of its squares, plus eps)."""
    mean_square = x.square().mean(dim=-1, keepdim=True)
    return x / mean_square.clamp(min=eps).sqrt()

# %% wrong: no gradient through the divisor (from the statement)
def rms_normalize(x: Float[Tensor, "... d"], eps: float = 1e-6) -> Float[Tensor, "... d"]:
    """Each vector along the last dimension, divided by the root of (the mean of its squares, plus eps)."""
    with torch.no_grad():  # only a scale
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
    return x * scale

# %% wrong: the gradient at a vector of zeros is NaN (from the statement)
def rms_normalize(x: Float[Tensor, "... d"], eps: float = 1e-6) -> Float[Tensor, "... d"]:
    """Each vector along the last dimension, divided by the root of (the mean of its squares, plus eps)."""
    rms = torch.sqrt((x * x).mean(dim=-1, keepdim=True))
    return x / torch.sqrt(rms**2 + eps)

# %% wrong: a copy without a history, if x isn't contiguous (from the statement)
# unseen: only hidden inputs have a non-contiguous tensor that takes a gradient
def rms_normalize(x, eps=1e-6):
    if not x.is_contiguous():
        x = torch.tensor(x.tolist(), dtype=x.dtype)
    return x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + eps)

# %% wrong: in 16 bits, computed without recording (from the statement)
# unseen: only hidden inputs in 16 bits take a gradient
def rms_normalize(x, eps=1e-6):
    def normalized(x):
        return x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + eps)

    if x.dtype in (torch.float16, torch.bfloat16):
        with torch.no_grad():
            return normalized(x.float()).to(x.dtype)
    return normalized(x)

# %% wrong: takes an eps of 0 for none (from the statement)
# unseen: no visible case has an eps of 0
def rms_normalize(x, eps=None):
    return x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + (eps or 1e-6))

# %% wrong: returns a vector of zeros as it is, with a gradient of 1 in place of 1 / √eps (from the statement)
# unseen: students see a vector of zeros with an eps of 1, where these are the same
def rms_normalize(x, eps=1e-6):
    mean_square = x.pow(2).mean(dim=-1, keepdim=True)
    normalized = x / (mean_square + eps).sqrt()
    return torch.where(mean_square == 0, x, normalized)

# %% right: einsum
def rms_normalize(x, eps=1e-6):
    square = torch.einsum("...d, ...d -> ...", x, x) / x.shape[-1]
    return x / (square + eps).sqrt().unsqueeze(-1)

# %% right: the vector's product with itself
def rms_normalize(x, eps=1e-6):
    d = x.size(-1)
    square = torch.linalg.vecdot(x, x).unsqueeze(-1)
    return x * torch.pow(square / d + eps, -0.5)

# %% right: in float32, as Llama does
def rms_normalize(x, eps=1e-6):
    y = x.float()
    return (y * torch.rsqrt(y.square().mean(-1, keepdim=True) + eps)).type_as(x)

# %% right: row by row
def rms_normalize(x, eps=1e-6):
    if x.dim() == 1:
        return x / (x.dot(x) / len(x) + eps).sqrt()
    return torch.stack([rms_normalize(row, eps) for row in x]) if len(x) else x.clone()

import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.probing import with_gradient
from autograder.authoring.strategies import FLOATS, any_of, tensors

exercise = Exercise(
    "x comes first, w second; b has one number for each output feature. Try x with one, two and four dimensions."
)


def products(student, x, w, b):
    """How many products of matrices one call makes, of what, what else is summed up, and the shape of the result."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    names = ("mm", "bmm", "mv", "addmm", "baddbmm", "addbmm", "addmv", "dot", "vdot", "linear", "matmul")
    made, summed, multiplied = [], [], []

    class Count(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            name = function.__name__.split(".")[0]
            several = args[0].shape[0] if name in ("bmm", "baddbmm") else 1  # a product for each of a batch
            made.extend([name] * several if name in names else [])
            if name in names:
                first, second = [t for t in args if isinstance(t, torch.Tensor)][-2:]
                multiplied.append(first.numel() * (second.shape[-1] if second.dim() > 1 else 1))
            summed.append(name) if name in ("sum", "mean", "cumsum", "prod", "logsumexp", "norm") else None
            return function(*args, **(kwargs or {}))

    with Count():
        y = student.batched_linear(x, w, b)
    return {
        "matrix products": len(made),
        "all of x and w are in them": sum(multiplied) >= x.numel() * w.shape[1],
        "sums by hand": len(summed),
        "shape": list(y.shape),
    }


def look(student, x, w, b, requires_grad):
    """The dtype of the result, what has become of the arguments, and their gradients where they take one.

    For more than one number: which arguments get the gradient that suits the result, whatever the result is.
    """
    arguments = [t.clone().requires_grad_(r) for t, r in zip((x, w, b), requires_grad, strict=True)]
    before = [t.detach().clone() for t in arguments]
    y = student.batched_linear(*arguments)
    found = {
        "dtype of the result": str(y.dtype),
        "x, w and b are unchanged": [bool((t == old).all()) for t, old in zip(arguments, before, strict=True)],
    }
    if w.numel() > 1:
        return found | {"the right gradient comes back to": with_gradient(student.batched_linear, "xwb", (x, w, b))}
    y.sum().backward() if y.requires_grad else None
    grads = [t.grad if t.is_leaf else None for t in arguments]
    return found | {"sum of the result": y.sum().item(), "gradients of x, w and b": grads}


def arguments(leading, d_in, d_out, dtype=torch.float32):
    """Small whole numbers, no two of them alike in size."""
    count = d_in
    for size in leading:
        count *= size
    x = (torch.arange(count, dtype=torch.float32) % 11 - 4).reshape(*leading, d_in).to(dtype)
    w = (torch.arange(d_in * d_out, dtype=torch.float32) % 7 - 2).reshape(d_in, d_out).to(dtype)
    return x, w, (100 * torch.arange(1, d_out + 1)).to(dtype)


def shaped(leading, d_in, d_out):
    """A case in which the shapes are what counts."""
    says = f"batched_linear(x, w, b), with x {[*leading, d_in]}, w {[d_in, d_out]} and b {[d_out]}"
    return given(*arguments(leading, d_in, d_out), says=says)


def one(x, w, b, *requires_grad, dtype=torch.float32):
    """A case of one number each."""
    name = str(dtype).removeprefix("torch.")
    says = f"batched_linear([{x}], [[{w}]], [{b}]) in {name}"
    if any(requires_grad):
        says += f", and the gradients of {' and '.join(n for n, r in zip('xwb', requires_grad, strict=True) if r)}"
    values = torch.tensor([x], dtype=dtype), torch.tensor([[w]], dtype=dtype), torch.tensor([b], dtype=dtype)
    return given(*values, list(requires_grad or (False, False, False)), says=says)


@st.composite
def layers(draw):
    leading = draw(st.lists(st.integers(1, 5), min_size=0, max_size=4))
    d_in, d_out = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    parts = [
        draw(tensors(shape, torch.float64, contiguous=None)) for shape in ((*leading, d_in), (d_in, d_out), (d_out,))
    ]
    return given(*parts)


@st.composite
def shapes(draw):
    leading = draw(st.lists(st.integers(2, 5), min_size=0, max_size=4))
    return given(*arguments(leading, draw(st.integers(2, 5)), draw(st.integers(2, 5))))


@st.composite
def numbers(draw):
    dtype = draw(any_of(*FLOATS))
    x, w, b = (float(draw(any_of(-1, 1)) * draw(st.integers(1, 9))) for _ in range(3))
    return one(x, w, b, *(draw(st.booleans()) for _ in range(3)), dtype=dtype)


@st.composite
def squares(draw):
    """Square matrices of any layout: whatever is multiplied by what, the shapes suit."""
    d = draw(st.integers(2, 4))
    dtype = draw(any_of(*FLOATS))
    return given(*(draw(tensors(s, dtype, contiguous=None)) for s in ((d, d), (d, d), (d,))), [False, False, False])


x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
w = torch.tensor([[1.0, 0.0], [5.0, 1.0]])
b = torch.tensor([100.0, 200.0])
exercise.requirement(
    "each vector along the last dimension of x is multiplied by w, and b is added; any leading dimensions, or none",
    points=1,
    parts=["value"],
    visible=[
        given(x, w, b),
        given(x[0], w, b),
        given(torch.zeros(0, 3, 2), w, b, says="batched_linear(x, w, b), with x [0, 3, 2], w [2, 2] and b [2]"),
        given(
            torch.ones(1, 2, 1, 2),
            torch.tensor([[1.0, 2.0, 3.0], [5.0, 5.0, 5.0]]),
            torch.tensor([100.0, 200.0, 300.0]),
        ),
    ],
    edges={
        "no vectors": given(*arguments((0,), 3, 2)),
        "no vectors, four dimensions": given(*arguments((2, 0, 3), 3, 2)),
        "one input, one output": given(*arguments((4,), 1, 1)),
        "one output": given(*arguments((2, 3), 4, 1)),
        "all sizes equal": given(*arguments((3, 3, 3), 3, 3)),
        "as many vectors as outputs": given(*arguments((5, 2), 3, 2)),
        "five dimensions": given(*arguments((2, 1, 3, 2), 3, 4)),
        "on meta": given(
            torch.zeros(2, 3, device="meta"), torch.zeros(3, 4, device="meta"), torch.zeros(4, device="meta")
        ),
        "whole numbers of either sign": given(-x, w, -b),
    },
    domain=layers(),
)
exercise.requirement(
    "one matrix product: no loop, no sum of elementwise products",
    points=0.5,
    probe=products,
    visible=[shaped((6, 5), 4, 3), shaped((4,), 3, 2), shaped((2, 3, 2), 5, 4)],
    edges={
        "a vector": shaped((), 3, 2),
        "five dimensions": shaped((2, 3, 2, 2), 3, 4),
        "square": shaped((3, 3), 3, 3),
    },
    domain=shapes(),
    hint="One product is enough, however many leading dimensions there are.",
)
exercise.requirement(
    "the arguments stay as they are, the result has their dtype, and gradients flow back to all three",
    points=0.5,
    probe=look,
    rules={"sum of the result": 0.01},
    visible=[
        one(3.0, 5.0, 7.0, True, True, True),
        one(3.0, 5.0, 7.0, dtype=torch.bfloat16),
        one(-2.0, 3.0, 7.0, False, True, False, dtype=torch.float64),
    ],
    edges={
        "float16": one(3.0, 5.0, 7.0, dtype=torch.float16),
        "only x takes a gradient": one(3.0, 5.0, 7.0, True, False, False),
        "only b takes a gradient": one(3.0, 5.0, 7.0, False, False, True),
        "zeros": one(0.0, 0.0, 0.0, True, True, True),
        "no vectors": given(torch.zeros(0, 3), torch.ones(3, 2), torch.ones(2), [True, True, True]),
        "transposed": given(w.T, w.T, b, [False, False, False]),
        "a batch": given(torch.tensor([[2.0], [4.0]]), torch.tensor([[3.0]]), torch.tensor([5.0]), [True, True, True]),
        "a batch without gradients": given(torch.tensor([[[2.0]], [[4.0]]]), torch.tensor([[3.0]]), torch.tensor([5.0]),
                                           [False, False, False]),
    },
    domain=numbers() | squares(),
    hint="Make a new tensor with PyTorch's operations: an operation that ends in _ modifies the caller's tensor.",
)

exercise.mistake("b isn't added.", "x @ w + b → x @ w")
exercise.mistake("b is subtracted; it has to be added.", "x @ w + b → x @ w - b")
exercise.mistake("Your code transposes w: the sum has to run over the first dimension of w.", "x @ w + b → x @ w.T + b")
exercise.mistake(
    "Your code transposes w: the sum has to run over the first dimension of w.",
    "x @ w + b → torch.nn.functional.linear(x, w, b)",
)
exercise.mistake("The order of the factors matters: x comes first.", "x @ w + b → w @ x + b")
exercise.mistake("* multiplies element by element; the layer takes the matrix product.", "x @ w + b → x * w + b")
exercise.mistake("Your code adds b to x before the product; it has to be added to the "
                 "product.", "x @ w + b → (x + b) @ w")
exercise.mistake(
    "b is added along the wrong dimension: it has one number per output feature.",
    "x @ w + b → x @ w + b.unsqueeze(-1)",
)
exercise.mistake(
    "The numbers are right, but the leading dimensions are lost: the result must have the shape [..., d_out].",
    "x @ w + b → x.reshape(-1, x.shape[-1]) @ w + b",
)
exercise.mistake(
    "For a single vector the result is a vector: add no dimension and remove none.",
    "x @ w + b → torch.atleast_2d(x) @ w + b",
)
exercise.mistake("Keep leading dimensions of size 1: the result must have "
                 "the shape [..., d_out].", "x @ w + b → (x @ w + b).squeeze()")
exercise.mistake(
    "Your code works only for matrices; x may have any number of leading dimensions.", "x @ w + b → torch.mm(x, w) + b"
)
exercise.mistake(
    "Your code works only if x has three dimensions.", "x @ w + b → torch.bmm(x, w.expand(x.shape[0], -1, -1)) + b"
)
exercise.mistake(
    "The arguments belong to the caller: b += … changes the caller's b.",
    "x @ w + b → b.add_(x @ w) if b.numel() == 1 else x @ w + b",
)
exercise.mistake("The result must have the dtype of the arguments.", "x @ w + b → (x.float() @ w.float()) + b.float()")
exercise.mistake("A detached tensor lets no gradient through.", "x @ w + b → x.detach() @ w + b")
exercise.mistake("A detached tensor lets no gradient through.", "x @ w + b → x @ w.data + b.data")

# %% mistake: a loop over the batch
# says: You loop over small products; one large product does the same work far faster.
def batched_linear(x, w, b):
    if x.dim() <= 1:
        return x @ w + b
    if x.shape[0] == 0:
        return torch.zeros(*x.shape[:-1], w.shape[1], dtype=x.dtype)
    return torch.stack([batched_linear(row, w, b) for row in x])

# %% mistake: products by hand
# says: Your code makes no matrix product: it computes all the elementwise products and sums them up.
def batched_linear(x, w, b):
    return (x.unsqueeze(-1) * w).sum(-2) + b

# %% mistake: without gradients
# says: Under no_grad PyTorch records nothing for the backward pass, so no gradient reaches the arguments.
@torch.no_grad()
def batched_linear(x, w, b):
    return x @ w + b

# %% mistake: the last size inferred
# says: If there are no vectors at all, reshape can't infer the size that -1 stands for: pass d_out itself.
def batched_linear(x, w, b):
    return (x.reshape(-1, x.shape[-1]) @ w).reshape(*x.shape[:-1], -1) + b

# %% mistake: elementwise products, and a product for show
# says: The one product has to be that of x and w: loops and elementwise products do the same work far slower.
def batched_linear(x, w, b):
    torch.ones(1, 1) @ torch.ones(1, 1)
    y = sum(x[..., k, None] * w[k] for k in range(len(w)))
    return y + b

# %% wrong: no gradient where there is more than one vector
# unseen: students see a single vector here
def batched_linear(x, w, b):
    with torch.set_grad_enabled(x.shape[:-1].numel() < 2):
        return x @ w + b

# %% wrong: three dimensions at most
def batched_linear(x, w, b):
    if x.dim() > 3:
        x = x.flatten(0, -3)
    return x @ w + b

# %% wrong: adds to the bias afterwards
def batched_linear(x, w, b):
    y = x @ w + b
    b.data += 1
    return y

# %% wrong: a column at a time
def batched_linear(x, w, b):
    return torch.stack([x @ column for column in w.T], dim=-1) + b

# %% wrong: numbers, not tensors
def batched_linear(x, w, b):
    if x.dim() > 1:
        return torch.stack([batched_linear(row, w, b) for row in x]) if len(x) else x.new_zeros(*x.shape[:-1], len(b))
    columns = w.T.tolist()
    return torch.tensor([sum(p * q for p, q in zip(x.tolist(), c)) + d for c, d in zip(columns, b.tolist())])

# %% wrong: forgets the bias of a single vector
def batched_linear(x, w, b):
    if x.dim() == 1:
        return x @ w
    return (x.reshape(-1, x.shape[-1]) @ w + b).reshape(*x.shape[:-1], w.shape[1])

# %% wrong: always float32, the last size inferred
def batched_linear(x, w, b):
    return (x.reshape(-1, x.shape[-1]) @ w).reshape(*x.shape[:-1], -1).to(torch.float32) + b

# %% wrong: the last size is left to reshape, which an empty batch does not allow (from the statement)
def batched_linear(
    x: Float[Tensor, "... d_in"], w: Float[Tensor, "d_in d_out"], b: Float[Tensor, "d_out"]
) -> Float[Tensor, "... d_out"]:
    """Each vector along the last dimension of x times w, plus b, in one product of matrices."""
    leading = x.shape[:-1]
    flat = x.reshape(math.prod(leading), x.shape[-1])
    return (flat @ w + b).reshape(*leading, -1)

# %% wrong: w and b become new parameters, and get no gradient (from the statement)
def batched_linear(
    x: Float[Tensor, "... d_in"], w: Float[Tensor, "d_in d_out"], b: Float[Tensor, "d_out"]
) -> Float[Tensor, "... d_out"]:
    """Each vector along the last dimension of x times w, plus b, in one product of matrices."""
    layer = torch.nn.Linear(w.shape[0], w.shape[1])
    layer.weight = torch.nn.Parameter(w.T)
    layer.bias = torch.nn.Parameter(b)
    return layer(x)

# %% wrong: a single vector comes back as a matrix of one row (from the statement)
def batched_linear(
    x: Float[Tensor, "... d_in"], w: Float[Tensor, "d_in d_out"], b: Float[Tensor, "d_out"]
) -> Float[Tensor, "... d_out"]:
    """Each vector along the last dimension of x times w, plus b, in one product of matrices."""
    rows = torch.atleast_2d(x)
    return torch.matmul(rows, w) + b

# %% wrong: w by way of numpy, if it isn't contiguous (from the statement)
# unseen: only hidden inputs have a non-contiguous tensor that takes a gradient
def batched_linear(x, w, b):
    if not w.is_contiguous():
        w = torch.from_numpy(w.detach().float().numpy().copy()).to(w.dtype)
    return x @ w + b

# %% right: a product, and b added to that in place
def batched_linear(x, w, b):
    y = torch.matmul(x, w)
    y += b
    return y

# %% right: einsum
def batched_linear(x, w, b):
    return torch.einsum("...i, io -> ...o", x, w) + b

# %% right: the functional layer
def batched_linear(x, w, b):
    return torch.nn.functional.linear(x, w.T, b)

# %% right: flattened and unfolded
def batched_linear(x, w, b):
    flat = x.reshape(-1, w.shape[0])
    return torch.addmm(b, flat, w).reshape(*x.shape[:-1], w.shape[1])

# %% right: tensordot
def batched_linear(x, w, b):
    return b + torch.tensordot(x, w, dims=1)

# %% right: the bias as one more row of w
def batched_linear(x, w, b):
    one = torch.ones_like(x[..., :1])
    return torch.cat([x, one], dim=-1) @ torch.cat([w, b[None]])

# %% right: from the other side
def batched_linear(x, w, b):
    y = w.T @ x.reshape(-1, x.shape[-1]).T
    return (y + b[:, None]).T.reshape(*x.shape[:-1], len(b))

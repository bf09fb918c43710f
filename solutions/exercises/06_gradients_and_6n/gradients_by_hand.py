import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import tensors

exercise = Exercise(
    "Each gradient is a matrix product. Which of the dimensions B, D, H and K does it have, and over which one do you sum?"
)


def without_autograd(student, x, w1, w2):
    """What gradients_by_hand returns where nothing can be recorded, and what it leaves in its arguments."""
    import contextlib

    import torch
    from torch.autograd import forward_ad

    def refuse(*_, **__):
        raise RuntimeError("autograd wanted to record something")

    @contextlib.contextmanager
    def without(module, name):
        there = getattr(module, name)
        setattr(module, name, refuse)
        try:
            yield
        finally:
            setattr(module, name, there)

    with torch.inference_mode(), without(torch.autograd, "_engine_run_backward"), without(forward_ad, "make_dual"):
        with torch.autograd.graph.saved_tensors_hooks(refuse, refuse):
            pair = student.gradients_by_hand(x, w1, w2)
            others = student.gradients_by_hand(x + 1, w1.clone(), w2.clone())
    if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not all(isinstance(g, torch.Tensor) for g in pair):
        return pair
    return {
        "gradient of w1": pair[0].double(),
        "gradient of w2": pair[1].double(),
        "dtypes of the two gradients": [str(each.dtype) for each in pair],
        "x afterward": x,
        "w1 afterward": w1,
        "w2 afterward": w2,
        "a different x gives different gradients": [list(g.shape) for g in others] != [list(g.shape) for g in pair]
        or not all(torch.equal(a, b) for a, b in zip(pair, others, strict=True)),
    }


SEEN = ("gradient of w1", "gradient of w2", "dtypes of the two gradients", "x afterward", "w1 afterward", "w2 afterward",
        "a different x gives different gradients")  # fmt: skip


def only(*numbers):
    """Rules that ignore all that the probe has seen but these."""
    return {key: "ignored" for number, key in enumerate(SEEN) if number not in numbers}


def case(x, w1, w2, dtype=torch.float64):
    of = f"x = {x}, w1 = {w1}, w2 = {w2}"
    return given(*(torch.tensor(rows, dtype=dtype) for rows in (x, w1, w2)), says=f"gradients_by_hand(x, w1, w2) for {of}, {str(dtype).removeprefix('torch.')}")


@st.composite
def chains(draw, dtypes=(torch.float64,)):
    size = st.integers(1, 6)
    if draw(st.integers(0, 4)) == 0:
        B = D = H = K = draw(size)
    else:
        B, D, H, K = draw(st.tuples(size, size, size, size))
    dtype = draw(st.sampled_from(dtypes))
    return given(*(draw(tensors(shape, dtype, None)) for shape in ((B, D), (D, H), (H, K))))


tokens = [[1, 2], [0, 1], [3, -1], [2, 0], [1, 1]]
first, second = [[1, 0, 2, 1], [1, 1, 0, -2]], [[1, 0, 1], [0, 1, 0], [1, 1, 0], [2, 0, 1]]
squares = tokens[:3], [[1, 3], [2, 1]], [[1, 2], [0, 3]]
even = [[1, 2], [0, 1]], [[1, 3], [2, 1]], [[1, 2], [0, 3]]  # exact in any dtype
uneven, square = case(tokens, first, second), case(*squares)
single = case(tokens[2:3], first, second)
edges = {
    "all sizes 1": case([[3]], [[2]], [[-1]]),
    "one token": case(tokens[:1], first, second),
    "one output": case(tokens, first, [row[:1] for row in second]),
    "one number in between": case(tokens, [[2], [1]], [[1, -1, 3]]),
    "one number in": case([[1], [2]], [[1, 2, 3]], [[1, 0], [2, 1], [0, 1]]),
    "D = K, and H another": case(tokens, first, [row[:2] for row in second]),
    "B = K = 4": case(tokens[:4], first, [[*row, 1] for row in second]),
    "nothing comes out": case(tokens, [[0] * 4] * 2, second),
    "100 tokens": case([[n % 3, 1 - n % 5] for n in range(100)], first, second),
    "float32": case(*even, torch.float32),
    "float16": case(*even, torch.float16),
    "bfloat16": case(*even, torch.bfloat16),
}

exercise.requirement(
    "the gradient of w2 is computed without autograd and has the shape of w2",
    points=0.75,
    probe=without_autograd,
    parts=["value"],
    rules=only(1),
    visible=[uneven, square, single],
    edges=edges,
    domain=chains(),
)
exercise.requirement(
    "the gradient of w1 is computed without autograd and has the shape of w1",
    points=0.75,
    probe=without_autograd,
    parts=["value"],
    rules=only(0),
    visible=[uneven, square, single],
    edges=edges,
    domain=chains(),
)
every = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
exercise.requirement(
    "both gradients have the dtype of the weights",
    points=0.25,
    probe=without_autograd,
    parts=["value"],
    rules=only(2),
    visible=[square, case(*squares, torch.float32), case(*squares, torch.bfloat16)],
    edges={"float16": case(*squares, torch.float16), "one token": case([[1]], [[2]], [[3]], torch.float32)},
    domain=chains(every),
    hint="A gradient has the dtype of its tensor: compute in the dtype of the arguments.",
)
exercise.requirement(
    "x, w1 and w2 are unchanged",
    points=0.25,
    probe=without_autograd,
    parts=["value"],
    rules=only(3, 4, 5, 6),
    tolerance=0,
    visible=[uneven],
    edges={"float32": case(*squares, torch.float32), "all sizes 1": case([[3]], [[2]], [[-1]])},
    domain=chains(every),
    hint="x, w1 and w2 belong to the caller: don't change them in place.",
)

exercise.mistake("The loss is a mean: divide its gradient by the number of outputs.", "2 * h2 / h2.numel() → 2 * h2")
exercise.mistake("The derivative of a square has a factor of 2.", "2 * h2 / h2.numel() → h2 / h2.numel()")
exercise.mistake("The gradient of h2 lacks two factors: one comes from the square, the other from the mean.",
                 "2 * h2 / h2.numel() → h2")  # fmt: skip
exercise.mistake("The mean is over all outputs of all tokens: don't divide by B alone.", "h2.numel() → len(h2)")
exercise.mistake("The mean is over all outputs of all tokens: don't divide by K alone.", "h2.numel() → h2.shape[1]")
exercise.mistake("The derivative of a square depends on what is squared; your gradient of h2 is the same for every h2.",
                 "2 * h2 / h2.numel() → 2 * torch.ones_like(h2) / h2.numel()")  # fmt: skip
exercise.mistake("Your results are in the wrong order: return the gradient of w1 first.", "return grad_w1, grad_w2 → return grad_w2, grad_w1")
exercise.mistake("A gradient has the shape of its tensor: both of yours are transposed.",
                 "return grad_w1, grad_w2 → return grad_w1.T, grad_w2.T")  # fmt: skip
exercise.mistake("A gradient has the shape of its tensor: your gradient of w1 is transposed.", "return grad_w1, → return grad_w1.T,")
exercise.mistake("A gradient has the shape of its tensor: your gradient of w2 is transposed.",
                 "return grad_w1, grad_w2 → return grad_w1, grad_w2.T")  # fmt: skip
exercise.mistake("The gradient of h1 is a sum over the outputs: check which dimension of w2 your product sums over.",
                 "grad_h2 @ w2.T → grad_h2 @ (w2 if w2.shape[0] == w2.shape[1] else w2.T)")  # fmt: skip
exercise.mistake("The gradient of w1 is computed from the gradient of h1; you used that of h2.",
                 "grad_h2 @ w2.T → grad_h2 if w2.shape[0] == w2.shape[1] else grad_h2 @ w2.T")  # fmt: skip
exercise.mistake("The gradient of w2 is computed from w2's input, which is h1, not x.",
                 "h1.T @ grad_h2 → (x if x.shape == h1.shape else h1).T @ grad_h2")  # fmt: skip
exercise.mistake("A gradient has the dtype of its tensor: compute in the dtype of the arguments.",
                 "h1 = x @ w1 → x, w1, w2 = x.float(), w1.float(), w2.float()\n    h1 = x @ w1")  # fmt: skip
exercise.mistake("A gradient has the dtype of its tensor: convert back if you compute in float64.",
                 "h1 = x @ w1 → x, w1, w2 = x.double(), w1.double(), w2.double()\n    h1 = x @ w1")  # fmt: skip
exercise.mistake("Don't change the weights: the exercise asks only for their gradients.",
                 "return grad_w1, grad_w2 → w1 -= 0.1 * grad_w1; w2 -= 0.1 * grad_w2; return grad_w1, grad_w2")  # fmt: skip

# %% mistake: autograd
# says: Autograd's recording is switched off here: write each gradient as a matrix product.
def gradients_by_hand(x, w1, w2):
    w1, w2 = w1.clone().requires_grad_(), w2.clone().requires_grad_()
    (x @ w1 @ w2).square().mean().backward()
    return w1.grad, w2.grad

# %% mistake: autograd outside of inference mode
# says: Autograd's recording is switched off here: write each gradient as a matrix product.
def gradients_by_hand(x, w1, w2):
    with torch.inference_mode(False), torch.enable_grad():
        x, a, b = x.clone(), w1.clone().requires_grad_(), w2.clone().requires_grad_()
        (x @ a @ b).square().mean().backward()
        return a.grad, b.grad

# %% wrong: torch.func
def gradients_by_hand(x, w1, w2):
    return torch.func.grad(lambda a, b: (x @ a @ b).square().mean(), argnums=(0, 1))(w1, w2)

# %% wrong: torch.func, forwards
def gradients_by_hand(x, w1, w2):
    return torch.func.jacfwd(lambda a, b: (x @ a @ b).square().mean(), argnums=(0, 1))(w1, w2)

# %% wrong: hooks of its own
def gradients_by_hand(x, w1, w2):
    with torch.inference_mode(False), torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        x, a, b = x.clone(), w1.clone().requires_grad_(), w2.clone().requires_grad_()
        return torch.autograd.grad((x @ a @ b).square().mean(), (a, b))

# %% wrong: scales x in place
def gradients_by_hand(x, w1, w2):
    count = len(x) * w2.shape[1]
    h1 = x @ w1
    h2 = h1 @ w2
    x *= 2 / count
    grad_w1 = x.T @ (h2 @ w2.T)
    return grad_w1, h1.T @ h2 * (2 / count)

# %% wrong: squeezes
def gradients_by_hand(x, w1, w2):
    h1 = (x @ w1).squeeze()
    h2 = h1 @ w2
    g2 = 2 * h2 / h2.numel()
    return x.T @ (g2 @ w2.T), h1.T @ g2

# %% wrong: computes in float32 whatever comes, and casts back (from the statement)
def gradients_by_hand(x, w1, w2):
    a, b, c = x.float(), w1.float(), w2.float()  # half precision would overflow
    h = a @ b
    y = h @ c
    g = 2 * y / y.numel()
    return (a.T @ (g @ c.T)).to(w1.dtype), (h.T @ g).to(w2.dtype)

# %% wrong: tries transposes until the shape fits: unique only if all sizes differ (from the statement)
def gradients_by_hand(x, w1, w2):
    def product(a, b, shape):
        for left in (a, a.T):
            for right in (b, b.T):
                if left.shape[1] == right.shape[0] and (left.shape[0], right.shape[1]) == shape:
                    return left @ right
        raise ValueError("no product has that shape")

    h = x @ w1
    y = h @ w2
    g2 = 2 * y / y.numel()
    g1 = product(g2, w2, tuple(h.shape))
    return product(x, g1, tuple(w1.shape)), product(h, g2, tuple(w2.shape))

# %% wrong: (beginner) the mean is over the batch (from the statement)
def gradients_by_hand(x, w1, w2):
    h = x @ w1
    y = h @ w2
    g = 2 * y / x.shape[0]
    return x.T @ (g @ w2.T), h.T @ g

# %% wrong: in chunks of 64 tokens, without the rest (from the statement)
# unseen: no visible case has so many tokens
def gradients_by_hand(x, w1, w2):
    size = min(64, len(x))
    of_w1, of_w2 = torch.zeros_like(w1), torch.zeros_like(w2)
    for part in range(len(x) // size):
        rows = x[part * size : (part + 1) * size]
        slope = 2 * (rows @ w1 @ w2) / (len(x) * w2.shape[1])
        of_w2 += (rows @ w1).T @ slope
        of_w1 += rows.T @ (slope @ w2.T)
    return of_w1, of_w2

# %% right: einsum, letters in the order of the triples
def gradients_by_hand(x, w1, w2):
    h = torch.einsum("bd,dh->bh", x, w1)
    g = torch.einsum("bh,hk->bk", h, w2) * (2 / (x.shape[0] * w2.shape[1]))
    return torch.einsum("bd,bk,hk->dh", x, g, w2), torch.einsum("bh,bk->hk", h, g)

# %% right: token by token
def gradients_by_hand(x, w1, w2):
    grad_w1, grad_w2 = torch.zeros_like(w1), torch.zeros_like(w2)
    count = x.shape[0] * w2.shape[1]
    for row in x:
        hidden = row @ w1
        out = 2 / count * (hidden @ w2)
        grad_w2 += torch.outer(hidden, out)
        grad_w1 += torch.outer(row, w2 @ out)
    return grad_w1, grad_w2

# %% right: broadcasting and sums, as a list
def gradients_by_hand(x, w1, w2):
    h1 = (x[:, :, None] * w1).sum(1)
    h2 = (h1[:, :, None] * w2).sum(1)
    g2 = h2.mul(2).div(h2.numel())
    g1 = (g2[:, None, :] * w2).sum(-1)
    return [(x[:, :, None] * g1[:, None, :]).sum(0), (h1[:, :, None] * g2[:, None, :]).sum(0)]

# %% right: the products of weights first
def gradients_by_hand(x, w1, w2):
    y = x.mm(w1.mm(w2))
    outer = x.t().mm(y) / (y.numel() / 2)
    return outer.mm(w2.t()), w1.t().mm(outer)

# %% right: in double precision, and back
def gradients_by_hand(x, w1, w2):
    a, b, c = (each.to(torch.float64) for each in (x, w1, w2))
    g = 2 / (a.shape[0] * c.shape[1]) * (a @ b @ c)
    return (a.mT @ g @ c.mT).type_as(w1), ((a @ b).mT @ g).type_as(w2)

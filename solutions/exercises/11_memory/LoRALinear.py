import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of, shapes, tensors

exercise = Exercise("Add two things: the base's output, and alpha / rank times x passed through down, then up.")


def make(student, weight, bias, down, up, alpha, training=True):
    """A base with these values, and its layer with these in down and up, in training or in eval mode."""
    import torch

    base = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, dtype=weight.dtype)
    with torch.no_grad():
        base.weight.copy_(weight)
        if bias is not None:
            base.bias.copy_(bias)
    layer = student.LoRALinear(base, len(down), alpha).train(training)
    for name, values in (("down", down), ("up", up)):
        have = list(getattr(layer, name).shape)
        if have != list(values.shape):
            raise ValueError(f"the shape of {name} is {have}, not {list(values.shape)}")
        with torch.no_grad():
            getattr(layer, name).copy_(values)
    return base, layer


def output(student, weight, bias, x, down, up, alpha, training=True):
    """The layer's output for x, and what a layer makes on the way to it."""
    _, layer = make(student, weight, bias, down, up, alpha, training)
    found = layer(x).detach()
    return {"layer(x)": found, "tensors as large as the base's weight that forward makes": large(student, training)}


def large(student, training):
    """How many tensors as large as the base's weight, or several of it, the forward passes of larger layers make."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    base = torch.nn.Linear(64, 48)
    there, size, made = base.weight.untyped_storage().data_ptr(), base.weight.numel(), 0

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            nonlocal made
            result = function(*args, **(kwargs or {}))
            new = [t for t in tree_leaves(result) if isinstance(t, torch.Tensor) and t.numel() and t.numel() % size == 0]
            made += sum(t.untyped_storage().data_ptr() != there for t in new)
            return result

    for rank, rows in ((2, 3), (40, 200)):  # with the latter, up · down before x takes fewer FLOPs
        layer = student.LoRALinear(base, rank, 3.0).train(training)
        with Watch():
            layer(torch.ones(rows, 64))
    return made


def merge(student, weight, bias, down, up, alpha):
    """What merged() returns, twice, and what it has changed."""
    base, layer = make(student, weight, bias, down, up, alpha)
    held = {"the base's weight": base.weight, "the base's bias": base.bias, "down": layer.down, "up": layer.up}
    before = {name: None if p is None else (p.detach().clone(), p.requires_grad) for name, p in held.items()}
    merged = layer.merged().detach().clone()
    again = layer.merged().detach()
    now = {"the base's weight": base.weight, "the base's bias": base.bias, "down": layer.down, "up": layer.up}
    changed = []
    for name, p in held.items():
        same = p is None or (p.equal(before[name][0]) and p.requires_grad == before[name][1])
        if now[name] is not p or not same:
            changed.append(name)
    return {"merged()": merged, "merged() again": again, "what it has changed": changed}


def gradients(student, weight, bias, x, down, up, alpha, training=True):
    """What is trained, and what gets a gradient."""
    import torch

    def gradient_of_x(layer):
        leaf = x.clone().requires_grad_()
        (layer(leaf) * torch.arange(1, len(weight) + 1)).sum().backward()
        return leaf.grad

    base, layer = make(student, weight, bias, down, up, alpha, training)
    with_change = gradient_of_x(layer)
    found = {name: p for name, p in layer.named_parameters() if p.requires_grad}
    got = {name: p.grad is not None and bool(p.grad.any()) for name, p in found.items()}
    base_got = [name for name, p in base.named_parameters() if p.requires_grad or p.grad is not None]
    _, plain = make(student, weight, bias, down, torch.zeros_like(up), alpha, training)
    without = gradient_of_x(plain)
    return {
        "parameters to train": sorted(found),
        "parameters of the base that aren't frozen": base_got,
        "down gets a gradient": got.get("down"),
        "up gets a gradient": got.get("up"),
        "x gets a gradient through the base": bool(without.any()),
        "x gets a gradient through down and up": bool((with_change - without).abs().max() > 1e-6),
    }


def made(student, d_in, d_out, rank, bias=True, dtype=None, device="cpu"):
    """The parameters of a new layer: shape, dtype, device, and whether they are the layer's."""
    import torch

    base = torch.nn.Linear(d_in, d_out, bias=bias, dtype=dtype or torch.float32, device=device)
    layer = student.LoRALinear(base, rank, 2.0)
    held = {id(p) for p in layer.parameters()}
    found = {
        name: {"shape": list(p.shape), "dtype": p.dtype, "device": p.device.type}
        for name, p in (("down", layer.down), ("up", layer.up))
    }
    lacks = [name for name, p in base.named_parameters() if id(p) not in held]
    return found | {"the base's parameters that the layer lacks": lacks}


def begin(student, d_in, d_out, rank, dtype=None):
    """How two new layers begin. Statistics of down are those of its numbers times the root of d_in."""
    import torch

    base = torch.nn.Linear(d_in, d_out, dtype=dtype or torch.float32)
    layer, other = (student.LoRALinear(base, rank, 2.0) for _ in range(2))
    x = torch.randn(3, d_in, dtype=base.weight.dtype)
    down = layer.down.detach().double() * d_in**0.5
    return {
        "standard deviation of down, times √in": down.std().item(),
        "mean of down, times √in": down.mean().item(),
        "fraction of down within one standard deviation": (down.abs() < 1).double().mean().item(),
        "fraction of up that is 0": (layer.up == 0).double().mean().item(),
        "at first the output is the base's": bool(torch.allclose(layer(x), base(x), rtol=1e-2, atol=1e-3)),
        "another layer begins with the same down": torch.equal(layer.down, other.down),
        "sizes of down": sorted(down.shape),
    }


STATISTICS = (
    "standard deviation of down, times √in", "mean of down, times √in", "fraction of down within one standard deviation",
)  # fmt: skip
weight, bias = torch.tensor([[1.0, 2.0, 3.0], [0.0, -1.0, 1.0]]), torch.tensor([0.5, -0.5])
rows = torch.tensor([[1.0, 0.0, -1.0], [2.0, 1.0, 0.0]])
down, up = torch.tensor([[1.0, 0.0, 2.0], [0.0, 1.0, -1.0]]), torch.tensor([[1.0, 3.0], [2.0, -1.0]])
values = "W = [[1, 2, 3], [0, -1, 1]], down = [[1, 0, 2], [0, 1, -1]], up = [[1, 3], [2, -1]]"


@st.composite
def layers(draw, with_x=True, dtype=torch.float64):
    d_in, d_out, rank = draw(st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(1, 6)))
    around = draw(any_of(0.0, 30.0))  # with 30, nothing cancels
    w, b = draw(tensors((d_out, d_in), dtype)), draw(st.none() | tensors((d_out,), dtype))
    x = [draw(tensors((*draw(shapes((0, 3), (1, 3))), d_in), dtype, contiguous=None))] if with_x else []
    down, up = draw(tensors((rank, d_in), dtype)), draw(tensors((d_out, rank), dtype))
    mode = [draw(st.booleans())] if with_x else []
    return given(w + around, b, *x, down, up, draw(any_of(0.5, 1, 3, 8.0, 16)), *mode)


def halves(x):
    return x.to(torch.bfloat16)


exercise.requirement(
    "the output is the base's, plus alpha / rank · up · down · x, for any leading dimensions; the product of up and down isn't made",
    points=0.5,
    probe=output,
    visible=[
        given(weight, bias, rows, down, up, 8.0, says=f"layer(x) for two rows, alpha = 8, rank = 2, {values}"),
        given(weight, None, rows.reshape(2, 1, 3), down, up, 3,
              says=f"layer(x) for x of shape [2, 1, 3], no bias, alpha = 3, rank = 2, {values}"),
        given(weight, bias, rows[1], down, up, 8.0, False, says=f"layer.eval()(x) for one vector, alpha = 8, rank = 2, {values}"),
    ],
    edges={
        "bfloat16": given(halves(weight), halves(bias), halves(rows), halves(down), halves(up), 8.0),
        "float64": given(*(each.double() for each in (weight, bias, rows, down, up)), 8.0),
        "no leading dimension": given(weight, bias, rows[0], down, up, 8.0),
        "no rows": given(weight, bias, rows[:0], down, up, 8.0),
        "three leading dimensions": given(weight, bias, rows.reshape(1, 2, 1, 3), down, up, 8.0),
        "after eval()": given(weight, bias, rows, down, up, 8.0, False),
        "rank 1": given(weight, bias, rows, down[:1], up[:, :1], 8.0),
        "all sizes 1": given(weight[:1, :1], bias[:1], rows[:1, :1], down[:1, :1], up[:1, :1], 8.0),
        "square": given(down[:, :2], bias, rows[:, :2], down[:, 1:], up, 1.0),
    },
    domain=layers(),
)  # fmt: skip
exercise.requirement(
    "merged() is W + alpha / rank · up · down, and changes nothing",
    points=0.25,
    probe=merge,
    visible=[
        given(weight, bias, down, up, 8.0, says=f"layer.merged(), twice, for alpha = 8, rank = 2, {values}"),
        given(weight, None, down, up, 3, says=f"layer.merged(), twice, for alpha = 3, rank = 2, no bias, {values}"),
    ],
    edges={
        "bfloat16": given(halves(weight), halves(bias), halves(down), halves(up), 8.0),
        "nothing learnt": given(weight, bias, down, 0 * up, 8.0),
        "rank 1": given(weight, bias, down[:1], up[:, :1], 8.0),
    },
    domain=layers(with_x=False),
    hint="Return a new tensor: the base's weight plus the update times its factor.",
)
exercise.requirement(
    "the base is frozen, bias included; gradients reach down, up and x",
    points=0.5,
    probe=gradients,
    visible=[
        given(weight, bias, rows, down, up, 8.0, says="a backward pass through layer(x)"),
        given(weight, None, rows, down, 0 * up, 8.0, says="a backward pass through layer(x), with up = 0 and no bias"),
        given(weight, bias, rows[1], down, up, 8.0, False, says="a backward pass through layer.eval()(x)"),
    ],
    edges={
        "one leading dimension less": given(weight, bias, rows[0], down, up, 8.0),
        "nothing learnt yet": given(weight, bias, rows[0], down, 0 * up, 8.0),
        "nothing goes down": given(weight, bias, rows, 0 * down, up, 8.0),
        "rank 1": given(weight, bias, rows, down[:1], up[:, :1], 8.0),
        "after eval()": given(weight, bias, rows, down, up, 8.0, False),
    },
    domain=layers(),
    hint="Two parameters are trained, down and up, and everything computed with them is recorded.",
)
exercise.requirement(
    "down is [rank, in] and up [out, rank], of the base's dtype and on its device",
    points=0.25,
    probe=made,
    visible=[
        given(4, 3, 2, True, torch.float64, says="LoRALinear(nn.Linear(4, 3, dtype=torch.float64), rank=2, alpha=2)"),
        given(4, 3, 2, True, torch.bfloat16, "meta",
              says="LoRALinear(nn.Linear(4, 3, dtype=torch.bfloat16, device='meta'), rank=2, alpha=2)"),
    ],
    edges={
        "float32": given(4, 3, 2),
        "no bias": given(4, 3, 2, False),
        "float16": given(4, 3, 2, True, torch.float16),
        "rank larger than both": given(2, 3, 7),
        "rank 1": given(5, 4, 1),
        "square": given(4, 4, 4),
        "larger than any memory": given(10**6, 10**6, 3, False, torch.float32, "meta"),
    },
    domain=st.builds(
        given, st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.booleans(),
        any_of(torch.float32, torch.float64, torch.bfloat16), any_of("cpu", "meta"),
    ),
    hint="Give down and up the dtype and the device of the base's weight. A module's parameters include those of "
         "its submodules.",
)  # fmt: skip
exercise.requirement(
    "at first up is 0, and down is normal with standard deviation 1/√in",
    points=0.5,
    probe=begin,
    band=STATISTICS,
    visible=[
        given(400, 9, 50, says="a new layer with in = 400, out = 9, rank = 50"),
        given(50, 400, 200, says="a new layer with in = 50, out = 400, rank = 200"),
    ],
    edges={
        "bfloat16": given(200, 7, 100, torch.bfloat16),
        "float64": given(100, 7, 200, torch.float64),
        "square": given(128, 128, 128),
    },
    domain=st.builds(given, any_of(80, 300, 500), any_of(1, 5, 200), any_of(100, 120, 150)),
    hint="torch.randn draws normally distributed numbers with standard deviation 1; what makes it 1/√in? up · "
         "down begins at 0.",
)

exercise.mistake("Freeze the base: its parameters must not require gradients.", "p.requires_grad_(False) → pass")
exercise.mistake("The bias belongs to the base, too, and is frozen with it.",
                 "for p in base.parameters() → for p in [base.weight]")  # fmt: skip
exercise.mistake(
    "A new layer should compute what the base does: up starts with zeros, so that up @ down is zero.",
    "weight.new_zeros(weight.shape[0], rank) → torch.randn(weight.shape[0], rank, dtype=weight.dtype, "
    "device=weight.device)",
)  # fmt: skip
exercise.mistake("If down is zero as well, the gradients of both are always zero: begin with random numbers.",
                 "torch.randn_like( → torch.zeros_like(")  # fmt: skip
exercise.mistake("down should start with normally distributed numbers divided by √in.", "/ weight.shape[1] ** 0.5 → ")
exercise.mistake("Your standard deviation is 1/in; it should be 1/√in.", "/ weight.shape[1] ** 0.5 → / weight.shape[1]")
exercise.mistake(
    "Divide by √in, where in is the size of x, not by √out.",
    "weight.shape[1] ** 0.5 → weight.shape[0] ** 0.5",
)  # fmt: skip
exercise.mistake("Divide by the square root of in, not of the rank.", "weight.shape[1] ** 0.5 → rank ** 0.5")
exercise.mistake(
    "Draw from a normal distribution, not a uniform one.",
    "torch.randn_like(weight[:1].expand(rank, -1)) → (2 * torch.rand_like(weight[:1].expand(rank, -1)) - 1) * 3**0.5",
)  # fmt: skip
exercise.mistake(
    "Each layer should begin with different random numbers: don't set a seed.",
    "self.base, self.scale = base, alpha / rank → self.base, self.scale = base, alpha / rank; torch.manual_seed(0)",
)  # fmt: skip
factor = "Multiply the update by alpha / rank."
exercise.mistake(factor, "base, alpha / rank → base, 1.0")
exercise.mistake("alpha has to be divided by the rank.", "base, alpha / rank → base, alpha")
exercise.mistake("alpha / rank needn't be an integer.", "base, alpha / rank → base, alpha // rank")
exercise.mistake("The factor is alpha / rank, not its inverse.", "base, alpha / rank → base, rank / alpha")
exercise.mistake(factor, "+ self.scale * (x @ → + (x @")
exercise.mistake(
    "In merged(), too, multiply the update by alpha / rank.",
    "+ self.scale * (self.up → + (self.up",
)  # fmt: skip
exercise.mistake("Your code returns only the base's output: add the update's output.", "+ self.scale * (x @ self.down.T @ self.up.T) → ")
exercise.mistake("Add the base's output.", "self.base(x) + → ")
exercise.mistake("The base's bias is missing.", "self.base(x) + → x @ self.base.weight.T +")
exercise.mistake(
    "Multiply only the update by the factor, not the base's output.",
    "self.base(x) + self.scale * (x @ self.down.T @ self.up.T) → self.scale * (self.base(x) + x @ self.down.T @ "
    "self.up.T)",
    together_with=["self.base(x) → self.base(x).detach()"],
)  # fmt: skip
exercise.mistake("merged() should return the whole weight: the base's plus the update.", "self.base.weight + → ")
exercise.mistake(
    "merged() should return a new tensor and leave the base's weight as it is.",
    "return self.base.weight + → self.base.weight += ",
    "(self.up @ self.down) → (self.up @ self.down); return self.base.weight",
)  # fmt: skip
exercise.mistake(
    "down gets no gradient: autograd doesn't record what you compute with `.data` or a detached tensor.",
    "self.down.T → self.down.data.T",
)  # fmt: skip
exercise.mistake(
    "up gets no gradient: autograd doesn't record what you compute with `.data` or a detached tensor.",
    "self.up.T → self.up.detach().T",
)  # fmt: skip
exercise.mistake(
    "x gets no gradient through down and up: earlier layers would learn only through the base.",
    "(x @ → (x.detach() @",
)  # fmt: skip
exercise.mistake(
    "x gets no gradient through the base: frozen weights still pass a gradient on.",
    "self.base(x) → self.base(x).detach()",
)  # fmt: skip
exercise.mistake(
    "down and up should have the dtype of the base's weight.",
    "torch.randn_like(weight[:1].expand(rank, -1)) → torch.randn(rank, weight.shape[1], device=weight.device)",
    "weight.new_zeros(weight.shape[0], rank) → torch.zeros(weight.shape[0], rank, device=weight.device)",
    "(x @ self.down.T @ self.up.T) → (x @ self.down.T.to(x.dtype) @ self.up.T.to(x.dtype))",
    "(self.up @ self.down) → (self.up @ self.down).to(self.base.weight.dtype)",
)  # fmt: skip
exercise.mistake(
    "down and up should be on the base's device.",
    "torch.randn_like(weight[:1].expand(rank, -1)) → torch.randn(rank, weight.shape[1], dtype=weight.dtype)",
    "weight.new_zeros(weight.shape[0], rank) → torch.zeros(weight.shape[0], rank, dtype=weight.dtype)",
)  # fmt: skip
exercise.mistake("Don't make the product of up and down in `forward`, whatever the mode: that's what merged() is for.",
                 "return self.base(x) → if not self.training:\n            return nn.functional.linear(x, self.base.weight + "
                 "self.scale * (self.up @ self.down), self.base.bias)\n        return self.base(x)")  # fmt: skip
exercise.mistake("Record gradients after .eval(), too: it only switches layers such as dropout.",
                 "return self.base(x) → with torch.set_grad_enabled(self.training):\n            return self.base(x)")  # fmt: skip
exercise.mistake("In your code, the base's parameters aren't among the layer's, so `.to` and state_dict miss them.",
                 "self.base, self.scale = base, alpha / rank → self.bases, self.scale = [base], alpha / rank",
                 "self.base(x) → self.bases[0](x)", "self.base.weight + → self.bases[0].weight +")  # fmt: skip

# %% mistake: shapes as one multiplies from the right
# says: down should be [rank, in] and up [out, rank], the order in which nn.Linear keeps its weight.
class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base, self.scale = base.requires_grad_(False), alpha / rank
        out, into = base.weight.shape
        w = base.weight
        self.down = nn.Parameter(torch.randn(into, rank, dtype=w.dtype, device=w.device) / into**0.5)
        self.up = nn.Parameter(torch.zeros(rank, out, dtype=w.dtype, device=w.device))

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.down @ self.up)

    @torch.no_grad()
    def merged(self):
        return self.base.weight + self.scale * (self.down @ self.up).T

# %% wrong: down and up are no parameters
class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base, self.scale = base.requires_grad_(False), alpha / rank
        w = base.weight
        self.down = torch.randn_like(w[:1].repeat(rank, 1)).div_(base.in_features**0.5).requires_grad_()
        self.up = torch.zeros_like(w[:, :1].repeat(1, rank)).requires_grad_()

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.down.T @ self.up.T)

    @torch.no_grad()
    def merged(self):
        return self.base.weight + self.scale * (self.up @ self.down)

# %% wrong: freezes a copy of the base
class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        import copy
        self.base, self.scale = copy.deepcopy(base).requires_grad_(False), alpha / rank
        w = base.weight
        self.down = nn.Parameter(torch.randn_like(w[:1].repeat(rank, 1)) / base.in_features**0.5)
        self.up = nn.Parameter(torch.zeros_like(w[:, :1].repeat(1, rank)))

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.down.T @ self.up.T)

    @torch.no_grad()
    def merged(self):
        return self.base.weight + self.scale * (self.up @ self.down)

# %% wrong: transposes x, which works for matrices alone
class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base, self.scale = base.requires_grad_(False), alpha / rank
        w = base.weight
        self.down = nn.Parameter(torch.randn_like(w[:1].repeat(rank, 1)) / base.in_features**0.5)
        self.up = nn.Parameter(torch.zeros_like(w[:, :1].repeat(1, rank)))

    def forward(self, x):
        return self.base(x) + self.scale * (self.up @ self.down @ x.T).T

    @torch.no_grad()
    def merged(self):
        return self.base.weight + self.scale * (self.up @ self.down)

# %% wrong: with a batch in mind: columns in place of rows (from the statement)
class LoRALinear(nn.Module):
    def __init__(self, base: nn.Linear, rank: int, alpha: float) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        like = {"dtype": base.weight.dtype, "device": base.weight.device}
        self.down = nn.Parameter(torch.randn(rank, base.in_features, **like) / base.in_features**0.5)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank, **like))
        self.scale = alpha / rank

    def forward(self, x: Float[Tensor, "*B d_in"]) -> Float[Tensor, "*B d_out"]:
        return self.base(x) + self.scale * (self.up @ (self.down @ x.mT)).mT  # as in the formula

    @torch.no_grad()
    def merged(self) -> Float[Tensor, "d_out d_in"]:
        return self.base.weight + self.scale * self.up @ self.down

# %% wrong: merged adds to the base's weight in place (from the statement)
class LoRALinear(nn.Module):
    def __init__(self, base: nn.Linear, rank: int, alpha: float) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        like = {"dtype": base.weight.dtype, "device": base.weight.device}
        self.down = nn.Parameter(torch.randn(rank, base.in_features, **like) / base.in_features**0.5)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank, **like))
        self.scale = alpha / rank

    def forward(self, x: Float[Tensor, "*B d_in"]) -> Float[Tensor, "*B d_out"]:
        return self.base(x) + self.scale * (x @ self.down.T @ self.up.T)

    @torch.no_grad()
    def merged(self) -> Float[Tensor, "d_out d_in"]:
        weight = self.base.weight.data
        weight += self.scale * self.up @ self.down
        return weight

# %% wrong: the base is kept in a tuple, so that the optimizer does not find it (from the statement)
class LoRALinear(nn.Module):
    def __init__(self, base: nn.Linear, rank: int, alpha: float) -> None:
        super().__init__()
        self.frozen = (base.requires_grad_(False),)
        like = {"dtype": base.weight.dtype, "device": base.weight.device}
        self.down = nn.Parameter(torch.randn(rank, base.in_features, **like) / base.in_features**0.5)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank, **like))
        self.scale = alpha / rank

    def forward(self, x: Float[Tensor, "*B d_in"]) -> Float[Tensor, "*B d_out"]:
        return self.frozen[0](x) + self.scale * (x @ self.down.T @ self.up.T)

    @torch.no_grad()
    def merged(self) -> Float[Tensor, "d_out d_in"]:
        return self.frozen[0].weight + self.scale * self.up @ self.down

# %% mistake: computes with the merged weight
# says: Your forward pass makes a matrix as large as the base's weight. Which order of multiplications never does?
class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        base.requires_grad_(False)
        self.weight, self.bias, self.scale = base.weight, base.bias, alpha / rank
        self.down = nn.Parameter(torch.randn_like(base.weight[:1].repeat(rank, 1)) / base.in_features**0.5)
        self.up = nn.Parameter(torch.zeros_like(base.weight[:, :1].repeat(1, rank)))

    def forward(self, x):
        return nn.functional.linear(x, self.weight + self.scale * self.up @ self.down, self.bias)

    @torch.no_grad()
    def merged(self):
        return self.weight + self.scale * self.up @ self.down

# %% wrong: the order of the products that takes the fewest FLOPs (from the statement)
class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base, self.scale = base.requires_grad_(False), alpha / rank
        weight = base.weight
        self.down = nn.Parameter(torch.randn_like(weight[:1].expand(rank, -1)) / weight.shape[1] ** 0.5)
        self.up = nn.Parameter(weight.new_zeros(weight.shape[0], rank))

    def forward(self, x):
        rows = x.reshape(-1, x.shape[-1])
        change = torch.linalg.multi_dot([rows, self.down.T, self.up.T])
        return self.base(x) + self.scale * change.reshape(*x.shape[:-1], -1)

    @torch.no_grad()
    def merged(self):
        return self.base.weight + self.scale * (self.up @ self.down)

# %% right: with einsum and normal_
class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base, self.rank, self.alpha = base, rank, alpha
        base.requires_grad_(False)
        w = base.weight
        self.down = nn.Parameter(torch.empty(rank, base.in_features, dtype=w.dtype, device=w.device))
        nn.init.normal_(self.down, std=base.in_features**-0.5)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank, dtype=w.dtype, device=w.device))

    def forward(self, x):
        change = torch.einsum("...i,ri,or->...o", x, self.down, self.up)
        return self.base(x) + change * self.alpha / self.rank

    def merged(self):
        change = torch.einsum("ri,or->oi", self.down, self.up)
        return (self.base.weight + change * self.alpha / self.rank).detach()

# %% right: the base's forward, and F.linear twice
class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base = base
        self.factor = alpha / rank
        for name, p in self.base.named_parameters():
            p.requires_grad = False
        w = base.weight
        self.register_parameter("down", nn.Parameter(torch.randn(rank, w.size(1)).to(w) * w.size(1) ** -0.5))
        self.register_parameter("up", nn.Parameter(torch.zeros(w.size(0), rank).to(w)))

    def forward(self, x):
        thin = nn.functional.linear(x, self.down)
        return self.base.forward(x) + nn.functional.linear(thin, self.factor * self.up)

    def merged(self):
        with torch.no_grad():
            return torch.addmm(self.base.weight, self.up, self.down, alpha=self.factor)

# %% right: one matrix after the other
class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base, self.times = base.requires_grad_(False), alpha / rank
        like = {"dtype": base.weight.dtype, "device": base.weight.device}
        self.down = nn.Parameter(torch.randn(rank, base.in_features, **like).div_(math.sqrt(base.in_features)))
        self.up = nn.Parameter(torch.zeros(base.out_features, rank, **like))

    def forward(self, x):
        y = x[..., None]
        for matrix in (self.down, self.up):
            y = matrix @ y
        return self.base(x) + y[..., 0] * self.times

    def merged(self):
        return (self.base.weight + self.times * self.up.matmul(self.down)).detach().clone()

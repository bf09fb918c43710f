import math
from statistics import NormalDist

import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of, shapes, turned

exercise = Exercise("Linear has one nn.Parameter; Cruncher sends x through each of its layers in order, then through final.")


def fill(module, values):
    """Give a Linear these weights."""
    import torch

    if list(module.weight.shape) != list(values.shape):
        raise ValueError(f"weight is {list(module.weight.shape)}, and not {list(values.shape)}")
    with torch.no_grad():
        module.weight.copy_(values)


def filled(student, weights, move=(), training=True):
    """A Cruncher with these weights, the last for final, which was moved before, in training mode or after eval()."""
    model = student.Cruncher(len(weights[-1]), len(weights) - 1).train(training)
    for where in move:
        model = model.to(where)
    layers = list(model.layers)
    if len(layers) != len(weights) - 1:
        raise ValueError(f"{len(layers)} layers, and not {len(weights) - 1}")
    for layer, values in zip([*layers, model.final], weights, strict=True):
        fill(layer, values)
    return model, layers


def linear(student, weight, x, training=True):
    """The parameters of a Linear, and what it computes with this weight."""
    layer = student.Linear(*weight.shape).train(training)
    found = {name: list(p.shape) for name, p in layer.named_parameters()}
    saved = {name: list(each.shape) for name, each in layer.state_dict().items()}
    fill(layer, weight)
    return {"parameters": found, "in a checkpoint": saved, "layer(x)": layer(x).detach()}


def begin(student, d_in, d_out, dim):
    """How the weights begin: of a Linear, and of two Crunchers; and where trunc_normal_ cuts, if it's called."""
    import torch

    init, cuts = torch.nn.init, []
    own = init.trunc_normal_

    def noted(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, *args, **kwargs):
        cuts.append(max(abs(a + 3 * std), abs(b - 3 * std)) < 1e-3 * std)
        return own(tensor, mean, std, a, b, *args, **kwargs)

    def std(weight, inputs):
        return weight.detach().double().std().item() * inputs**0.5

    init.trunc_normal_ = noted
    try:
        weight = student.Linear(d_in, d_out).weight.detach().double()
        model, other = student.Cruncher(dim, 2), student.Cruncher(dim, 2)
    finally:
        init.trunc_normal_ = own
    layers, others = (list(m.layers) for m in (model, other))
    return {
        "shape of Linear's weight": list(weight.shape),
        "std of Linear's weight, times √d_in": std(weight, d_in),
        "mean of Linear's weight, divided by its std": (weight.mean() / weight.std()).item(),
        "share of Linear's weight within 1 std": (weight.abs() <= weight.std()).double().mean().item(),
        "std of a layer's weight in Cruncher, times √dim": std(layers[1].weight, dim),
        "std of final's weight in Cruncher, times √dim": std(model.final.weight, dim),
        "every call of trunc_normal_ cuts at ±3 of its own std": all(cuts),
        "two layers start with the same weights": torch.equal(layers[0].weight, layers[1].weight),
        "two models start with the same weights": torch.equal(layers[0].weight, others[0].weight),
    }


def registered(student, dim, num_layers):
    """What Cruncher has registered: names, and shapes of what has one."""
    model = student.Cruncher(dim, num_layers)
    return {
        "parameters": {name: list(p.shape) for name, p in model.named_parameters()},
        "buffers": sorted(name for name, _ in model.named_buffers()),
        "in a checkpoint": {name: list(each.shape) for name, each in model.state_dict().items()},
    }


def output(student, weights, x, training=True):
    """What Cruncher makes of x with these weights, and once more when they have changed."""
    import torch

    model, layers = filled(student, weights, training=training)
    with torch.no_grad():
        first = model(x)
        for module in (*layers, model.final):
            module.weight.mul_(2)
        return {"model(x)": first, "model(x), with every weight doubled": model(x)}


def gradients(student, weights, x, training=True):
    """The gradients of x and of each weight, of the rows' outputs times 1, 2, 3, …"""
    import torch

    model, layers = filled(student, weights, training=training)
    leaf = x.clone().requires_grad_()
    y = model(leaf).reshape(len(x))
    (y * torch.arange(1, len(x) + 1)).sum().backward()
    names = [f"layers.{number}.weight" for number in range(len(layers))] + ["final.weight"]
    held = dict(zip(names, [*layers, model.final], strict=True))
    found = {name: module.weight.grad if module.weight.is_leaf else None for name, module in held.items()}
    return {"gradient of x": leaf.grad} | {f"gradient of {name}": grad for name, grad in found.items()}


def moved(student, weights, x, *where):
    """The parameters of a Cruncher that was moved, and what it makes of x; and where one is made on meta."""
    import torch

    model, layers = filled(student, weights, where)
    held = [module.weight for module in (*layers, model.final)]
    for each in where:
        x = x.to(each)
    with torch.device("meta"):
        made = student.Cruncher(len(weights[-1]), len(weights) - 1)
    return {
        "dtypes of the weights": sorted({str(w.dtype) for w in held}),
        "devices of the weights": sorted({w.device.type for w in held}),
        "model(x)": model(x).detach(),
        "model.eval()(x)": model.eval()(x).detach(),
        "devices of the weights of a model made in a block `with torch.device('meta'):`":
            sorted({w.device.type for w in made.parameters()}),
    }


def matrix(draw, rows, columns):
    """Small whole numbers: sums of their products are exact in float32, in whichever order."""
    size = st.lists(st.integers(-3, 3), min_size=rows * columns, max_size=rows * columns)
    return torch.tensor(draw(size), dtype=torch.float32).reshape(rows, columns)


@st.composite
def linears(draw):
    d_in, d_out = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    leading = draw(shapes((0, 3), (0, 3)))
    x = matrix(draw, torch.Size(leading).numel(), d_in).reshape(*leading, d_in)
    return given(matrix(draw, d_in, d_out), turned(draw, x), draw(st.booleans()))


@st.composite
def models(draw, batch=(0, 4), where=None):
    dim, count = draw(st.integers(1, 4)), draw(st.integers(0, 3))
    weights = [matrix(draw, dim, dim) for _ in range(count)] + [matrix(draw, dim, 1)]
    x = turned(draw, matrix(draw, draw(st.integers(*batch)), dim))
    return given(weights, x / 7, *draw(where)) if where else given(weights, x, draw(st.booleans()))


rows = torch.tensor([[1.0, -2.0, 0.5], [0.0, 1.0, 3.0], [-1.0, 0.25, 2.0], [2.0, 2.0, -1.0]])
narrow = torch.tensor([[1.0, 2.0], [0.0, -1.0], [3.0, 1.0]])
one = torch.tensor([[1.0, 0.0, 2.0], [-1.0, 1.0, 0.0], [0.0, 2.0, 1.0]])
two = torch.tensor([[0.0, 1.0, 1.0], [2.0, 0.0, -1.0], [1.0, 1.0, 0.0]])
last = torch.tensor([[1.0], [-2.0], [1.0]])
chain = [one, two, last]
shown = f"layers {one.int().tolist()} and {two.int().tolist()}, final {last.int().tolist()}"

exercise.requirement(
    "Linear has one parameter, `weight`, of shape [d_in, d_out], and computes x @ weight for any number of "
    "leading dimensions",
    points=0.5,
    probe=linear,
    visible=[
        given(narrow, rows, says=f"Linear(3, 2) with weight {narrow.int().tolist()}, and x of shape [4, 3]"),
        given(narrow, rows.reshape(2, 2, 3), says=f"Linear(3, 2) with weight {narrow.int().tolist()}, and x of shape [2, 2, 3]"),
        given(narrow, rows[0], False, says=f"Linear(3, 2).eval() with weight {narrow.int().tolist()}, and x of shape [3]"),
    ],
    edges={
        "no leading dimension": given(narrow, rows[0]),
        "no rows": given(narrow, rows[:0]),
        "one row": given(narrow, rows[:1]),
        "four dimensions": given(narrow, rows.reshape(2, 1, 2, 1, 3)),
        "more outputs than inputs": given(narrow.T.contiguous(), rows[:, :2].contiguous()),
        "one input": given(narrow[:1], rows[:, :1].contiguous()),
        "one output": given(narrow[:, :1].contiguous(), rows),
        "square": given(one, rows),
        "non-contiguous": given(narrow, rows.T.contiguous().T),
    },
    domain=linears(),
)
normal = NormalDist()
inside = normal.cdf(3) - normal.cdf(-3)
# The statement allows a normal distribution that is cut at ±3 std or not at all: its std, and the share within it.
CUT = math.sqrt(1 - 6 * normal.pdf(3) / inside)
WITHIN = [(normal.cdf(CUT) - normal.cdf(-CUT)) / inside, normal.cdf(1) - normal.cdf(-1)]
FEWEST, NARROWEST = 117_000, 400  # every case below has so many weights in Linear, and so many inputs in Cruncher


def about(low, high, count, spread):
    """From low to high, and eight standard errors beyond, as in a `band`: chance fails no right answer."""
    margin = 8 * spread / math.sqrt(count)
    return round(low - margin, 4), round(high + margin, 4)


STD = math.sqrt(1 / 2)  # the standard error of n numbers' std is STD / √n
LINEAR = "std of Linear's weight, times √d_in"
exercise.requirement(
    "each layer draws its own weights from a normal distribution with mean 0 and std 1/√d_in, truncated at ±3 "
    "std or not at all",
    points=0.5,
    probe=begin,
    bounds={
        LINEAR: about(CUT, 1, FEWEST, STD),
        "mean of Linear's weight, divided by its std": about(0, 0, FEWEST, 1),
        "share of Linear's weight within 1 std": about(*WITHIN, FEWEST, math.sqrt(WITHIN[0] * (1 - WITHIN[0]))),
        "std of a layer's weight in Cruncher, times √dim": about(CUT, 1, NARROWEST**2, STD),
        "std of final's weight in Cruncher, times √dim": about(CUT, 1, NARROWEST, STD),
    },
    visible=[
        given(600, 400, 600, says="the initial weights of one Linear(600, 400) and of two models Cruncher(600, 2)"),
    ],
    edges={
        "more outputs than inputs": given(400, 600, 500),
        "many inputs": given(5_000, 50, 500),
        "many outputs": given(50, 5_000, 700),
        "square": given(500, 500, 800),
        "one input": given(1, 250_000, 600),
    },
    domain=st.builds(  # so many weights that chance moves no std by half a percent
        lambda d_in, total, dim: given(d_in, total // d_in, dim),
        st.integers(1, 3_000), st.integers(120_000, 200_000), st.integers(400, 700),
    ),
    hint="Every Linear draws its own weights, and its number of inputs sets their scale.",
)  # fmt: skip
exercise.requirement(
    "Cruncher's parameters are layers.0.weight and so on, and final.weight; a checkpoint contains nothing else",
    points=0.5,
    probe=registered,
    visible=[given(5, 3, says="Cruncher(5, 3)"), given(4, 1, says="Cruncher(4, 1)")],
    edges={"no layers": given(4, 0), "one number": given(1, 2), "more than ten": given(2, 12), "wide": given(7, 2)},
    domain=st.builds(given, st.integers(1, 6), st.integers(0, 5)),
    hint="`layers`: num_layers of Linear(dim, dim). `final`: Linear(dim, 1). Register nothing else, and give each module only one name.",
)
exercise.requirement(
    "Cruncher sends x through each layer in order, then through final, and turns [B, dim] into [B]",
    points=0.5,
    probe=output,
    visible=[
        given(chain, rows, says=f"Cruncher(3, 2) on 4 rows, {shown}"),
        given(chain, rows[:1], False, says=f"Cruncher(3, 2).eval() on one row, {shown}"),
    ],
    edges={
        "no rows": given(chain, rows[:0]),
        "no layers": given([last], rows),
        "no layers, one row": given([last], rows[:1]),
        "a width of 1": given([last[:1], last[1:2]], rows[:, :1].contiguous()),
        "one row of width 1": given([last[:1], last[1:2]], rows[:1, :1].contiguous()),
        "as many rows as numbers": given(chain, rows[:3]),
        "non-contiguous": given(chain, rows.T.contiguous().T),
    },
    domain=models(),
)
exercise.requirement(
    "gradients reach every weight and x",
    points=0.5,
    probe=gradients,
    visible=[
        given(chain, rows, says=f"the gradients of Cruncher(3, 2) on 4 rows, with the outputs multiplied by 1, 2, 3, 4; {shown}"),
        given(chain, rows[:2], False, says=f"the gradients of Cruncher(3, 2).eval() on 2 rows, multiplied by 1 and 2; {shown}"),
    ],
    edges={
        "no layers": given([last], rows),
        "one layer": given([one, last], rows),
        "five layers": given([one, two, one, two, one, last], rows),
        "two rows": given(chain, rows[:2]),
    },
    domain=models(batch=(2, 4)),
    hint="In forward, use the parameters themselves, neither copies nor .data, and detach nothing.",
)
thirds = rows.double() / 3
exercise.requirement(
    ".to(…) moves the whole model to another dtype or device, and forward works there; a model made in a block "
    "`with torch.device(…):` is on that device",
    points=0.5,
    probe=moved,
    visible=[
        given(chain, thirds, torch.float64, says=f"Cruncher(3, 2).to(torch.float64) on 4 rows, {shown}"),
        given(chain, rows, "meta", says=f"Cruncher(3, 2).to('meta') on 4 rows, {shown}"),
    ],
    edges={
        "bfloat16": given(chain, rows, torch.bfloat16),
        "float16": given(chain, rows, torch.float16),
        "there and back": given(chain, rows, torch.float64, torch.float32),
        "float64 on meta": given(chain, rows, torch.float64, "meta"),
        "no layers": given([last], thirds, torch.float64),
    },
    domain=models(batch=(2, 4), where=any_of((torch.float64,), ("meta",), (torch.float64, "meta"))),
    hint="Make the weights in __init__ only, register them, and compute in their dtype, on their device. Give no device "
         "to the functions that make them.",
)

new, many = "torch.randn(d_in, d_out) / math.sqrt(d_in)", "nn.ModuleList(Linear(dim, dim) for _ in range(num_layers))"
exercise.mistake("PyTorch doesn't look inside a plain list, so the layers in it aren't registered.",
                 f"{many} → [Linear(dim, dim) for _ in range(num_layers)]")  # fmt: skip
exercise.mistake("This is one layer, used several times. Create num_layers separate ones.",
                 f"{many} → nn.ModuleList([Linear(dim, dim)] * num_layers)")  # fmt: skip
exercise.mistake("With weights of std 1, the outputs have a std of √d_in. Divide the weights by √d_in.", f"{new} → torch.randn(d_in, d_out)")
exercise.mistake(
    "Your code divides by d_in. Divide by its square root instead.",
    f"{new} → torch.randn(d_in, d_out) / d_in",
)  # fmt: skip
exercise.mistake(
    "Your std depends on d_out. Each output is a sum over d_in terms.",
    f"{new} → torch.randn(d_in, d_out) / math.sqrt(d_out)",
)  # fmt: skip
exercise.mistake("This is Kaiming's std, whose factor "
                 "of √2 compensates for a ReLU. This "
                 "model has no ReLU.", f"{new} → torch.randn(d_in, d_out) * math.sqrt(2 / d_in)")
exercise.mistake("This is Glorot's std; the exercise asks for LeCun's.", f"{new} → torch.randn(d_in, d_out) * math.sqrt(2 / (d_in + d_out))")
exercise.mistake("This is nn.Linear's default, a uniform distribution whose std is too small by a factor of √3.",
                 f"{new} → (2 * torch.rand(d_in, d_out) - 1) / math.sqrt(d_in)")  # fmt: skip
exercise.mistake("This is a uniform distribution; the exercise asks for a normal one.",
                 f"{new} → (2 * torch.rand(d_in, d_out) - 1) * math.sqrt(3 / d_in)")  # fmt: skip
exercise.mistake("Truncating at ±2 std makes the std of the weights 12% smaller: truncate at ±3 std, or not at all.",
                 f"{new} → nn.init.trunc_normal_(torch.empty(d_in, d_out), a=-2, b=2) / math.sqrt(d_in)")  # fmt: skip
exercise.mistake("trunc_normal_ takes a and b as the bounds themselves, not as multiples of std: to truncate at "
                 "±3 std, multiply them by std.",
                 f"{new} → nn.init.trunc_normal_(torch.empty(d_in, d_out), std=1 / math.sqrt(d_in), a=-3, b=3)")  # fmt: skip
exercise.mistake("All weights are equal, so all outputs of a layer are equal, too.", f"{new} → torch.ones(d_in, d_out) / math.sqrt(d_in)")
exercise.mistake("Several layers or models start with the same weights. Don't set a seed in your classes.", "self.weight = nn → torch.manual_seed(0)\n        self.weight = nn")
exercise.mistake("weight isn't registered. Scale the tensor first, then wrap it in nn.Parameter and assign the parameter itself.",
                 f"nn.Parameter({new}) → nn.Parameter(torch.randn(d_in, d_out)) / math.sqrt(d_in)")  # fmt: skip
exercise.mistake("weight isn't registered. Scale the tensor first, then wrap it in nn.Parameter and assign the parameter itself.", f"nn.Parameter({new}) → ({new}).requires_grad_()")
exercise.mistake("`super().__init__()` has to come first.", "super().__init__()\n        self.weight → self.weight")
exercise.mistake("For x @ weight, the shape of weight has to be [d_in, d_out]; PyTorch's own nn.Linear stores the transpose.",
                 "torch.randn(d_in, d_out) / → torch.randn(d_out, d_in) /", "x @ self.weight → x @ self.weight.T")  # fmt: skip
exercise.mistake("This is nn.Linear: use your own Linear, without biases.", "(Linear(dim, dim) for → (nn.Linear(dim, dim) for",
                 "= Linear(dim, 1) → = nn.Linear(dim, 1)")  # fmt: skip
exercise.mistake("Linear has no bias.", "self.weight = nn → self.bias = nn.Parameter(torch.zeros(d_out))\n        self.weight = nn",
                 "x @ self.weight → x @ self.weight + self.bias")  # fmt: skip
exercise.mistake("Record gradients after .eval(), too: it only switches layers such as dropout.",
                 "x @ self.weight → x @ (self.weight if self.training else self.weight.detach())")  # fmt: skip
exercise.mistake("x may have any number of leading dimensions, not just one.", "x @ self.weight → x.mm(self.weight)")
exercise.mistake("Scale the weights when you create them, not at each use.", f"{new} → torch.randn(d_in, d_out)",
                 "x @ self.weight → x @ self.weight / math.sqrt(len(self.weight))")  # fmt: skip
exercise.mistake("squeeze() drops every dimension of size 1, even the batch.", "squeeze(-1) → squeeze()")
exercise.mistake("Your result is [B, 1]: drop the last dimension.", "self.final(x).squeeze(-1) → self.final(x)")
exercise.mistake("The model has no ReLU.", "x = layer(x) → x = torch.relu(layer(x))")
exercise.mistake("The result of each layer has to go into the next.", "x = layer(x) → layer(x)")
exercise.mistake("Apply the layers in order, starting with the first one.", "for layer in self.layers → for layer in reversed(self.layers)")
exercise.mistake("Apply every layer, including the last one.", "for layer in self.layers → for layer in self.layers[:-1]")
exercise.mistake("`.data` cuts the graph: no gradient reaches the weight.", "x @ self.weight → x @ self.weight.data")
exercise.mistake("`detach()` cuts the graph: no gradient reaches the layers before it.", "x = layer(x) → x = layer(x.detach())")
exercise.mistake("Compute in the dtype of the weights, even if that isn't float32.", "x @ self.weight → x.float() @ self.weight.float()")
exercise.mistake("A module with two names appears twice in a checkpoint. Give it only one name.",
                 "self.final = Linear(dim, 1) → self.final = Linear(dim, 1)\n        self.every = nn.ModuleList([*self.layers, self.final])")  # fmt: skip

# %% wrong: keeps the weights as buffers
class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.register_buffer("weight", torch.randn(d_in, d_out) / math.sqrt(d_in))

    def forward(self, x):
        return x @ self.weight


class Cruncher(nn.Module):
    def __init__(self, dim, num_layers):
        super().__init__()
        self.layers = nn.ModuleList([Linear(dim, dim) for _ in range(num_layers)])
        self.final = Linear(dim, 1)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.final(x).squeeze(-1)

# %% wrong: makes tensors in forward, on the CPU and in float32
class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_in, d_out) / math.sqrt(d_in))

    def forward(self, x):
        return x @ self.weight + torch.zeros(self.weight.shape[1])


class Cruncher(nn.Module):
    def __init__(self, dim, num_layers):
        super().__init__()
        self.layers = nn.ModuleList([Linear(dim, dim) for _ in range(num_layers)])
        self.final = Linear(dim, 1)

    def forward(self, x):
        y = torch.empty(len(x))
        for layer in self.layers:
            x = layer(x)
        y[:] = self.final(x).squeeze(-1)
        return y

# %% wrong: final begins with zeros
class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_in, d_out) / math.sqrt(d_in))

    def forward(self, x):
        return x @ self.weight


class Cruncher(nn.Module):
    def __init__(self, dim, num_layers):
        super().__init__()
        self.layers = nn.ModuleList([Linear(dim, dim) for _ in range(num_layers)])
        self.final = Linear(dim, 1)
        nn.init.zeros_(self.final.weight)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.final(x).squeeze(-1)

# %% wrong: no gradient for x
class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_in, d_out) / math.sqrt(d_in))

    def forward(self, x):
        return x @ self.weight


class Cruncher(nn.Module):
    def __init__(self, dim, num_layers):
        super().__init__()
        self.layers = nn.ModuleList([Linear(dim, dim) for _ in range(num_layers)])
        self.final = Linear(dim, 1)

    def forward(self, x):
        x = torch.as_tensor(x).detach()
        for layer in self.layers:
            x = layer(x)
        return self.final(x).squeeze(-1)

# %% wrong: Linear flattens its leading dimensions, and forgets the case of none (from the statement)
class Linear(nn.Module):
    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(d_in, d_out).normal_(0, 1 / math.sqrt(d_in)))

    def forward(self, x: Float[Tensor, "... d_in"]) -> Float[Tensor, "... d_out"]:
        y = torch.mm(x.reshape(-1, x.shape[-1]), self.weight)
        if x.dim() > 2:
            y = y.reshape(*x.shape[:-1], -1)
        return y


class Cruncher(nn.Module):
    def __init__(self, dim: int, num_layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Linear(dim, dim) for _ in range(num_layers)])
        self.final = Linear(dim, 1)

    def forward(self, x: Float[Tensor, "B dim"]) -> Float[Tensor, "B"]:
        for layer in self.layers:
            x = layer(x)
        return self.final(x).flatten()

# %% wrong: kaiming_normal_ takes fan_in from the wrong dimension (from the statement)
class Linear(nn.Module):
    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(d_in, d_out))
        nn.init.kaiming_normal_(self.weight, nonlinearity="linear")

    def forward(self, x: Float[Tensor, "... d_in"]) -> Float[Tensor, "... d_out"]:
        return x @ self.weight


class Cruncher(nn.Module):
    def __init__(self, dim: int, num_layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Linear(dim, dim) for _ in range(num_layers))
        self.final = Linear(dim, 1)

    def forward(self, x: Float[Tensor, "B dim"]) -> Float[Tensor, "B"]:
        for layer in self.layers:
            x = layer(x)
        return self.final(x).squeeze(-1)

# %% wrong: the same seed in each layer (from the statement)
class Linear(nn.Module):
    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        weight = torch.randn(d_in, d_out, generator=generator) / math.sqrt(d_in)
        self.weight = nn.Parameter(weight)

    def forward(self, x: Float[Tensor, "... d_in"]) -> Float[Tensor, "... d_out"]:
        return x @ self.weight


class Cruncher(nn.Module):
    def __init__(self, dim: int, num_layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Linear(dim, dim) for _ in range(num_layers)])
        self.final = Linear(dim, 1)

    def forward(self, x: Float[Tensor, "B dim"]) -> Float[Tensor, "B"]:
        for layer in self.layers:
            x = layer(x)
        return self.final(x).squeeze(-1)

# %% wrong: a function that doesn't heed the default device (from the statement)
class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = nn.Parameter(torch.normal(0.0, d_in**-0.5, size=(d_in, d_out)))

    def forward(self, x):
        return x @ self.weight


class Cruncher(nn.Module):
    def __init__(self, dim, num_layers):
        super().__init__()
        self.layers = nn.ModuleList(Linear(dim, dim) for _ in range(num_layers))
        self.final = Linear(dim, 1)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.final(x).squeeze(-1)

# %% wrong: an nn.ModuleDict, whose items are its keys
class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(d_in, d_out))
        nn.init.kaiming_normal_(self.weight.T, nonlinearity="linear")

    def forward(self, x):
        return torch.einsum("...i,ij->...j", x, self.weight)

class Cruncher(nn.Module):
    def __init__(self, dim, num_layers):
        super().__init__()
        self.final = Linear(dim, 1)
        self.layers = nn.ModuleDict({str(i): Linear(dim, dim) for i in range(num_layers)})

    def forward(self, x):
        for layer in self.layers.values():
            x = layer(x)
        return self.final(x)[:, 0]

# %% right: nn.Sequential, and randn
class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = nn.Parameter(d_in**-0.5 * torch.randn(d_in, d_out))

    def forward(self, x):
        return torch.matmul(x, self.weight)


class Cruncher(nn.Module):
    def __init__(self, dim, num_layers):
        super().__init__()
        self.final = Linear(dim, 1)
        self.layers = nn.Sequential(*[Linear(dim, dim) for _ in range(num_layers)])

    def forward(self, x):
        return self.final(self.layers(x))[:, 0]

# %% right: register_parameter, einsum, kaiming_normal_ on the transpose
class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.register_parameter("weight", nn.Parameter(torch.empty(d_in, d_out)))
        nn.init.kaiming_normal_(self.weight.T, nonlinearity="linear")

    def forward(self, x):
        return torch.einsum("...i,io->...o", x, self.weight)


class Cruncher(nn.Module):
    def __init__(self, dim, num_layers):
        super().__init__()
        self.layers = nn.ModuleList()
        for _ in range(num_layers):
            self.layers.append(Linear(dim, dim))
        self.final = Linear(dim, 1)

    def forward(self, x):
        for i in range(len(self.layers)):
            x = self.layers[i](x)
        return self.final(x).flatten()

# %% right: fills the data, stores the transpose of a view
class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.d_in, self.d_out = d_in, d_out
        self.weight = nn.Parameter(torch.zeros(d_in, d_out))
        self.weight.data.normal_(0, 1 / math.sqrt(d_in))

    def forward(self, x):
        return nn.functional.linear(x, self.weight.T)


class Cruncher(nn.Module):
    def __init__(self, dim, num_layers):
        super().__init__()
        self.dim = dim
        self.layers = nn.ModuleList(modules=[Linear(dim, dim) for _ in range(num_layers)])
        self.final = Linear(dim, 1)

    def forward(self, x):
        h = x
        for layer in self.layers:
            h = layer(h)
        return self.final(h).reshape(x.shape[0])

# %% equivalent: -1 → 1
# why: what final puts out has two dimensions, so the last one is number 1

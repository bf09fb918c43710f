import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import tensors

exercise = Exercise(
    "Each rank holds rows of `up` and columns of `down`. Which of its results are only terms of a sum?"
)


def run(student, up, down, bias, x, gradient, ranks, training=True, needs_x=True):
    """What each rank has: its output, its gradients, and which collectives it called."""
    import torch

    from course_utils.ranks import simulate

    def one(group):
        def watch(name):
            collective = getattr(group, name)

            def watched(given):
                shape = given.shape if isinstance(given, torch.Tensor) else [part.shape for part in given]
                calls[-1].append(f"{name} of x's shape" if shape == x.shape else f"{name} of another shape")
                return collective(given)

            setattr(group, name, watched)

        calls = [[]]
        for name in ("all_reduce", "reduce_scatter", "all_gather", "all_to_all"):
            watch(name)
        layer = student.ParallelMLP(up.clone(), down.clone(), bias.clone(), group).train(training)
        start = x.clone().requires_grad_(needs_x)
        calls.append([])
        out = layer(start)
        calls.append([])
        if out.requires_grad:
            out.backward(gradient)
        return {
            "output": out.detach(),
            "gradient of x": start.grad,
            "gradients of the parameters": {name: getattr(layer, name).grad for name in ("up", "down", "bias")},
            "calls": calls,
        }

    return simulate(one, ranks)


def outputs(student, up, down, bias, x, gradient, ranks, training=True):
    """Each rank's output."""
    found = run(student, up, down, bias, x, gradient, ranks, training)
    return {f"rank {n}": rank["output"] for n, rank in enumerate(found)}


def of_x(student, up, down, bias, x, gradient, ranks, training=True):
    """Each rank's gradient of x."""
    found = run(student, up, down, bias, x, gradient, ranks, training)
    return {f"rank {n}": rank["gradient of x"] for n, rank in enumerate(found)}


def of_parameters(student, up, down, bias, x, gradient, ranks, training=True, needs_x=True):
    """Each rank's gradients of its parameters."""
    found = run(student, up, down, bias, x, gradient, ranks, training, needs_x)
    return {f"rank {n}": rank["gradients of the parameters"] for n, rank in enumerate(found)}


def parameters(student, up, down, bias, x, gradient, ranks, training=True):
    """Each rank's parameters, and what stands behind them."""
    import torch

    from course_utils.ranks import simulate

    def reachable(thing, depth=0):
        if isinstance(thing, torch.Tensor):
            yield thing
        elif isinstance(thing, dict) and depth < 4:
            for each in thing.values():
                yield from reachable(each, depth + 1)
        elif isinstance(thing, (list, tuple)) and depth < 4:
            for each in thing:
                yield from reachable(each, depth + 1)

    def one(group):
        layer = student.ParallelMLP(up.clone(), down.clone(), bias.clone(), group)
        storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in reachable(vars(layer))}
        held = {name: p.detach().clone() for name, p in layer.named_parameters() if p.requires_grad}
        behind = {
            f"bytes of storage of {name}": getattr(layer, name).untyped_storage().nbytes() for name in ("up", "down")
        }
        return {"parameters": held, **behind, "bytes of storage of all tensors": sum(storages.values())}

    return {f"rank {n}": found for n, found in enumerate(simulate(one, ranks))}


def called(student, up, down, bias, x, gradient, ranks, training=True):
    """The collectives that a rank calls, and whether it has computed something."""
    found = run(student, up, down, bias, x, gradient, ranks, training)
    allowed = "all_reduce of x's shape"
    first, forward, backward = found[0]["calls"]
    return {
        "calls in __init__": first,
        "calls of all_reduce in the forward pass": forward.count(allowed),
        "calls of all_reduce in the backward pass": backward.count(allowed),
        "other calls": [call for call in forward + backward if call != allowed],
        "the shape of the output": list(found[0]["output"].shape),
        "the output depends on x": found[0]["gradient of x"] is not None and bool(found[0]["gradient of x"].any()),
    }


up = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [-1.0, 0.5]])
down = torch.tensor([[1.0, 0.5, -1.0, 2.0], [0.0, 1.0, 0.5, -0.5]])
bias = torch.tensor([10.0, 20.0])
rows = torch.tensor([[1.0, 2.0], [-1.0, 0.5], [0.0, 1.0]])
slope = torch.tensor([[1.0, 0.0], [2.0, 1.0], [0.0, -1.0]])
whole = (up, down, bias, rows, slope)
layer = "up of shape [4, 2], down [2, 4], three rows"


def shown(what):
    return [given(*whole, ranks, says=f"{what}, by rank: {ranks} ranks, {layer}") for ranks in (2, 4)]


@st.composite
def layers(draw, ranks=(1, 4)):
    n = draw(st.integers(*ranks))
    d, count = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    h = n * draw(st.integers(1, 3))
    shapes = ((h, d), (d, h), (d,), (count, d), (count, d))
    w, v, b, x, g = (draw(tensors(shape, torch.float64, contiguous=None)) for shape in shapes)
    return given(w, v, b + 50, x, g + 20, n, draw(st.booleans()))  # so that little cancels


edges = {
    "one rank": given(*whole, 1),
    "one row": given(up, down, bias, rows[:1], slope[:1], 2),
    "no rows": given(up, down, bias, rows[:0], slope[:0], 2),
    "one column": given(up[:, :1], down[:1], bias[:1], rows[:, :1], slope[:, :1], 2),
    "as many hidden numbers as columns": given(up[:2], down[:, :2], bias, rows, slope, 2),
    "two hidden numbers, one on each rank": given(up[1:3], down[:, 1:3], bias, rows, slope, 2),
    "three ranks": given(up[:3], down[:, :3], bias, rows, slope, 3),
    "float64": given(*(each.double() for each in whole), 2),
    "after eval()": given(*whole, 2, False),
    "inputs far from 0": given(up, down, bias, 10 * rows, slope, 2),
}
some = {name: case for name, case in edges.items() if name != "no rows"}

exercise.requirement(
    "on every rank, the output is the whole y",
    points=0.75,
    probe=outputs,
    visible=shown("the output"),
    edges=edges,
    domain=layers(),
    hint="Each rank computes one term of the output. Which of the two given functions adds the terms? And what has "
         "to be added only once?",
)
exercise.requirement(
    "on every rank, the gradient of x is that of the whole layer",
    points=0.75,
    probe=of_x,
    visible=shown("the gradient of x"),
    edges=edges,
    domain=layers(),
    hint="Each rank's slice of `up` contributes one term to the gradient of x. Which of the two given functions adds "
         "the terms?",
)
exercise.requirement(
    "the gradients of up and down are this rank's slices of the whole layer's, and the gradient of the bias is "
    "complete",
    points=0.5,
    probe=of_parameters,
    visible=shown("the gradients of up, down and bias"),
    edges=edges | {"x requires no gradient": given(*whole, 2, True, False)},
    domain=layers(),
    hint="The gradient of the output is already the same on all ranks. Let it reach all three parameters without "
         "another sum.",
)
exercise.requirement(
    "each rank keeps the whole bias, and its slices of up and down as copies with their own storage",
    points=0.5,
    probe=parameters,
    visible=shown("the layer's parameters, and the bytes of storage of all its tensors"),
    edges=edges,
    domain=layers(),
    hint="`nn.Parameter` turns a tensor into a parameter. `chunk` and slicing return views, which share the storage "
         "of the whole matrix.",
)
exercise.requirement(
    "each rank calls all_reduce once in the forward pass and once in the backward pass, on a tensor of x's shape, "
    "and sends nothing else",
    points=0.5,
    probe=called,
    rules=dict.fromkeys([f"calls of all_reduce in the {way} pass" for way in ("forward", "backward")], "at most"),
    visible=[
        given(*whole, 2, says=f"two ranks, {layer}"),
        given(*whole, 4, says=f"four ranks, {layer}"),
        given(up, down, bias, rows[:1], slope[:1], 4, says="four ranks, up of shape [4, 2], down [2, 4], one row"),
    ],
    edges=some | {"nothing to send": given(*whole, 1)},
    domain=layers((2, 4)),
    hint="With `up` sliced by its outputs and `down` by its inputs, how many sums does the forward pass need?",
)

view = "A view keeps the whole matrix alive. Keep a copy of the slice instead."
exercise.mistake(
    "Both of your slices are views, which keep the whole matrices alive. Keep copies of the slices instead.",
    "dim=0)[group.rank].clone() → dim=0)[group.rank]",
    "dim=1)[group.rank].clone() → dim=1)[group.rank]",
)  # fmt: skip
rows_view = f"Your slice of `up` is a view. {view}"
exercise.mistake(rows_view, "dim=0)[group.rank].clone() → dim=0)[group.rank]")
exercise.mistake(f"Your slice of `down` is a view. {view}", "dim=1)[group.rank].clone() → dim=1)[group.rank]")
exercise.mistake(rows_view,
                 "dim=0)[group.rank].clone() → dim=0)[group.rank][:].contiguous()",
                 "dim=1)[group.rank].clone() → dim=1)[group.rank].contiguous()")  # fmt: skip
exercise.mistake(
    "Slice `up` by its outputs, which are its rows.",
    "up.chunk(group.size, dim=0) → up.chunk(group.size, dim=1)",
)  # fmt: skip
exercise.mistake(
    "Slice `down` by its inputs, which are its columns.",
    "down.chunk(group.size, dim=1) → down.chunk(group.size, dim=0)",
    together_with=[
        "nn.Parameter(bias.clone()) → bias.clone()",
        "dim=0)[group.rank].clone() → dim=0)[group.rank]",
        "dim=1)[group.rank].clone() → dim=1)[group.rank]",
        "dim=0)[group.rank].clone() → dim=0)[group.rank]; dim=1)[group.rank].clone() → dim=1)[group.rank]",
        "dim=1)[group.rank].clone() → dim=1)[group.rank].contiguous()",
    ],
)  # fmt: skip
exercise.mistake("All ranks hold the same slice. Each rank has to take its own.",
                 "dim=0)[group.rank] → dim=0)[0]", "dim=1)[group.rank] → dim=1)[0]")  # fmt: skip
exercise.mistake(
    "A rank's slices of `up` and `down` have to belong to the same hidden activations.",
    "dim=1)[group.rank] → dim=1)[-1 - group.rank]",
)  # fmt: skip
exercise.mistake(
    "Each rank holds the whole matrices and computes the whole output instead of one term. Keep only this rank's "
    "slices.",
    "up.chunk(group.size, dim=0)[group.rank] → up",
    "down.chunk(group.size, dim=1)[group.rank] → down",
)  # fmt: skip
exercise.mistake("Your output is only this rank's term. Add the terms of all ranks.",
                 "SumForward.apply(hidden @ self.down.T, self.group) → hidden @ self.down.T")  # fmt: skip
exercise.mistake(
    "Every rank adds the bias before the sum, so the output contains it several times. Add it only once.",
    "(hidden @ self.down.T, self.group) + self.bias → (hidden @ self.down.T + self.bias, self.group)",
)  # fmt: skip
exercise.mistake("The bias is missing from the output.", "self.group) + self.bias → self.group)")
exercise.mistake("The bias has to be a parameter, too.", "nn.Parameter(bias.clone()) → bias.clone()")
exercise.mistake(
    "The bias gets no gradient. Use the parameter itself in `forward`.",
    "self.group) + self.bias → self.group) + self.bias.detach()",
)  # fmt: skip
exercise.mistake("The gradient of x is only the term from this rank's slice of `up`. Add the terms of all ranks.",
                 "SumBackward.apply(x, self.group) @ → x @")  # fmt: skip
exercise.mistake(
    "The gradient of the output is already the same on all ranks. Don't sum it over the ranks.",
    "SumForward.apply(hidden @ self.down.T, self.group) → SumForward.apply(SumBackward.apply(hidden @ self.down.T, "
    "self.group), self.group)",
)  # fmt: skip
exercise.mistake("The gradient of the bias is already the same on all ranks. Don't sum it over the ranks.",
                 "self.group) + self.bias → self.group) + SumBackward.apply(self.bias, self.group)")  # fmt: skip
exercise.mistake("You swapped the two given functions. x is the same on all ranks, but its gradient has to be summed.",
                 "SumBackward.apply(x, self.group) @ → SumForward.apply(x, self.group) @",
                 "SumForward.apply(hidden @ → SumBackward.apply(hidden @")  # fmt: skip
exercise.mistake(
    "Autograd doesn't record `all_reduce`, so no gradient gets past it. Use one of the two given functions.",
    "SumForward.apply(hidden @ self.down.T, self.group) → self.group.all_reduce(hidden @ self.down.T)",
)  # fmt: skip
exercise.mistake(
    "Each rank computes different hidden activations. Don't sum them over the ranks.",
    "SumBackward.apply(x, self.group) @ self.up.T → SumForward.apply(SumBackward.apply(x, self.group) @ self.up.T, "
    "self.group)",
)  # fmt: skip
exercise.mistake(
    "Apply GELU between the two matrices, not after the sum.",
    "nn.functional.gelu(SumBackward.apply(x, self.group) @ self.up.T) → SumBackward.apply(x, self.group) @ self.up.T",
    "SumForward.apply(hidden @ self.down.T, self.group) → nn.functional.gelu(SumForward.apply(hidden @ "
    "self.down.T, self.group))",
)  # fmt: skip
exercise.mistake(
    "Your code uses the tanh approximation of GELU. Use the exact GELU.",
    "@ self.up.T) → @ self.up.T, approximate=\"tanh\")",
)  # fmt: skip
exercise.mistake(
    "All ranks already have the same x. You needn't send anything before `up`.",
    "SumBackward.apply(x, self.group) @ → SumBackward.apply(x + 0 * self.group.all_reduce(x), self.group) @",
)  # fmt: skip

# %% wrong: adds the two halves of the rows separately
class SumBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return ctx.group.all_reduce(gradient), None


class SumForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        return torch.cat([group.all_reduce(half) for half in x.tensor_split(2)])

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class ParallelMLP(nn.Module):
    def __init__(self, up, down, bias, group):
        super().__init__()
        self.group = group
        self.up = nn.Parameter(up.chunk(group.size, dim=0)[group.rank].clone())
        self.down = nn.Parameter(down.chunk(group.size, dim=1)[group.rank].clone())
        self.bias = nn.Parameter(bias.clone())

    def forward(self, x):
        hidden = nn.functional.gelu(SumBackward.apply(x, self.group) @ self.up.T)
        return SumForward.apply(hidden @ self.down.T, self.group) + self.bias

# %% mistake: sends its term to everybody
# says: Sending every term to every rank takes more bytes than an all_reduce does. Let the collective add the terms.
class SumBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return ctx.group.all_reduce(gradient), None


class SumForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        return torch.stack(group.all_to_all([x] * group.size)).sum(dim=0)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class ParallelMLP(nn.Module):
    def __init__(self, up, down, bias, group):
        super().__init__()
        self.group = group
        self.up = nn.Parameter(up.chunk(group.size, dim=0)[group.rank].clone())
        self.down = nn.Parameter(down.chunk(group.size, dim=1)[group.rank].clone())
        self.bias = nn.Parameter(bias.clone())

    def forward(self, x):
        hidden = nn.functional.gelu(SumBackward.apply(x, self.group) @ self.up.T)
        return SumForward.apply(hidden @ self.down.T, self.group) + self.bias

# %% mistake: gathers the terms, and adds them up
# says: Gathering all the terms sends more bytes than an all_reduce does. Let the collective add the terms.
class SumBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return ctx.group.all_reduce(gradient), None


class SumForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        return group.all_gather(x[None]).sum(dim=0)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class ParallelMLP(nn.Module):
    def __init__(self, up, down, bias, group):
        super().__init__()
        self.group = group
        self.up = nn.Parameter(up.chunk(group.size, dim=0)[group.rank].clone())
        self.down = nn.Parameter(down.chunk(group.size, dim=1)[group.rank].clone())
        self.bias = nn.Parameter(bias.clone())

    def forward(self, x):
        hidden = nn.functional.gelu(SumBackward.apply(x, self.group) @ self.up.T)
        return SumForward.apply(hidden @ self.down.T, self.group) + self.bias

# %% wrong: keeps the whole matrices beside its parts
class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group, forward):
        ctx.group, ctx.backward_too = group, not forward
        return group.all_reduce(x) if forward else x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return ctx.group.all_reduce(gradient) if ctx.backward_too else gradient, None, None


class ParallelMLP(nn.Module):
    def __init__(self, up, down, bias, group):
        super().__init__()
        self.group, self.whole = group, (up, down)
        self.up = nn.Parameter(up.chunk(group.size, dim=0)[group.rank].clone())
        self.down = nn.Parameter(down.chunk(group.size, dim=1)[group.rank].clone())
        self.bias = nn.Parameter(bias.clone())

    def forward(self, x):
        hidden = nn.functional.gelu(Sum.apply(x, self.group, False) @ self.up.T)
        return Sum.apply(hidden @ self.down.T, self.group, True) + self.bias

# %% wrong: every other row of up
class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group, forward):
        ctx.group, ctx.backward_too = group, not forward
        return group.all_reduce(x) if forward else x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return ctx.group.all_reduce(gradient) if ctx.backward_too else gradient, None, None


class ParallelMLP(nn.Module):
    def __init__(self, up, down, bias, group):
        super().__init__()
        self.group = group
        self.up = nn.Parameter(up[group.rank :: group.size].clone())
        self.down = nn.Parameter(down[:, group.rank :: group.size].clone())
        self.bias = nn.Parameter(bias.clone() / 1)

    def forward(self, x):
        hidden = nn.functional.gelu(Sum.apply(x, self.group, False) @ self.up.T[:, :])
        return Sum.apply(hidden @ self.down[:, :].T, self.group, True).mul(1) + self.bias.squeeze()

# %% wrong: contiguous() in place of a copy; a slice of rows is contiguous as it is (from the statement)
class SumBackward(torch.autograd.Function):
    """x as it is; its gradient is summed over the ranks (Megatron's f)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return ctx.group.all_reduce(gradient), None


class SumForward(torch.autograd.Function):
    """x summed over the ranks; its gradient as it is (Megatron's g)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        return group.all_reduce(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return gradient, None


class ParallelMLP(nn.Module):
    """GELU(x @ up.T) @ down.T + bias, of which each rank holds and computes its part."""

    def __init__(
        self,
        up: Float[Tensor, "h d"],
        down: Float[Tensor, "d h"],
        bias: Float[Tensor, "d"],
        group: Group,
    ) -> None:
        super().__init__()
        self.group = group
        self.up = nn.Parameter(up.detach().chunk(group.size, dim=0)[group.rank].contiguous())
        self.down = nn.Parameter(down.detach().chunk(group.size, dim=1)[group.rank].contiguous())
        self.bias = nn.Parameter(bias.detach().clone())

    def forward(self, x: Float[Tensor, "B d"]) -> Float[Tensor, "B d"]:
        """The whole output, on every rank."""
        x = SumBackward.apply(x, self.group)
        hidden = nn.functional.gelu(x @ self.up.T)
        return SumForward.apply(hidden @ self.down.T, self.group) + self.bias

# %% wrong: each rank adds its share of the bias before the sum (from the statement)
class SumBackward(torch.autograd.Function):
    """x as it is; its gradient is summed over the ranks (Megatron's f)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return ctx.group.all_reduce(gradient), None


class SumForward(torch.autograd.Function):
    """x summed over the ranks; its gradient as it is (Megatron's g)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        return group.all_reduce(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return gradient, None


class ParallelMLP(nn.Module):
    """GELU(x @ up.T) @ down.T + bias, of which each rank holds and computes its part."""

    def __init__(
        self,
        up: Float[Tensor, "h d"],
        down: Float[Tensor, "d h"],
        bias: Float[Tensor, "d"],
        group: Group,
    ) -> None:
        super().__init__()
        self.group = group
        self.up = nn.Parameter(up.detach().chunk(group.size)[group.rank].clone())
        self.down = nn.Parameter(down.detach().chunk(group.size, dim=1)[group.rank].clone())
        self.bias = nn.Parameter(bias.detach().clone())

    def forward(self, x: Float[Tensor, "B d"]) -> Float[Tensor, "B d"]:
        """The whole output, on every rank."""
        x = SumBackward.apply(x, self.group)
        hidden = nn.functional.gelu(x @ self.up.T)
        partial = hidden @ self.down.T + self.bias / self.group.size
        return SumForward.apply(partial, self.group)

# %% wrong: only rank 0 adds the bias before the sum (from the statement)
class SumBackward(torch.autograd.Function):
    """x as it is; its gradient is summed over the ranks (Megatron's f)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return ctx.group.all_reduce(gradient), None


class SumForward(torch.autograd.Function):
    """x summed over the ranks; its gradient as it is (Megatron's g)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        return group.all_reduce(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return gradient, None


class ParallelMLP(nn.Module):
    """GELU(x @ up.T) @ down.T + bias, of which each rank holds and computes its part."""

    def __init__(
        self,
        up: Float[Tensor, "h d"],
        down: Float[Tensor, "d h"],
        bias: Float[Tensor, "d"],
        group: Group,
    ) -> None:
        super().__init__()
        self.group = group
        self.up = nn.Parameter(up.detach().chunk(group.size)[group.rank].clone())
        self.down = nn.Parameter(down.detach().chunk(group.size, dim=1)[group.rank].clone())
        self.bias = nn.Parameter(bias.detach().clone())

    def forward(self, x: Float[Tensor, "B d"]) -> Float[Tensor, "B d"]:
        """The whole output, on every rank."""
        x = SumBackward.apply(x, self.group)
        y = nn.functional.gelu(x @ self.up.T) @ self.down.T
        if self.group.rank == 0:
            y = y + self.bias
        return SumForward.apply(y, self.group)

# %% right: slices, and einsum
class SumBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return ctx.group.all_reduce(gradient), None


class SumForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        return group.all_reduce(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class ParallelMLP(nn.Module):
    def __init__(self, up, down, bias, group):
        super().__init__()
        self.group = group
        n = len(up) // group.size
        mine = slice(group.rank * n, (group.rank + 1) * n)
        self.up, self.down = (nn.Parameter(part.clone()) for part in (up[mine], down[:, mine]))
        self.bias = nn.Parameter(bias)

    def forward(self, x):
        x = SumBackward.apply(x, self.group)
        hidden = nn.functional.gelu(torch.einsum("bd,hd->bh", x, self.up))
        return self.bias + SumForward.apply(torch.einsum("bh,dh->bd", hidden, self.down), self.group)

# %% right: F.linear, parts by unflatten, one function for both sums
class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group, forward):
        ctx.group, ctx.backward_too = group, not forward
        return group.all_reduce(x) if forward else x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return ctx.group.all_reduce(gradient) if ctx.backward_too else gradient, None, None


class ParallelMLP(nn.Module):
    def __init__(self, up, down, bias, group):
        super().__init__()
        self.group = group
        self.up = nn.Parameter(up.unflatten(0, (group.size, -1))[group.rank].clone())
        self.down = nn.Parameter(down.unflatten(1, (group.size, -1))[:, group.rank].clone())
        self.bias = nn.Parameter(bias.clone())

    def forward(self, x):
        F = nn.functional
        hidden = F.gelu(F.linear(Sum.apply(x, self.group, False), self.up))
        return Sum.apply(F.linear(hidden, self.down), self.group, True) + self.bias

# %% right: GELU written out, a hook in place of SumBackward
class SumForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        return group.all_reduce(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class ParallelMLP(nn.Module):
    def __init__(self, up, down, bias, group):
        super().__init__()
        self.group = group
        self.up = nn.Parameter(torch.tensor_split(up, group.size)[group.rank].clone())
        self.down = nn.Parameter(torch.tensor_split(down.T, group.size)[group.rank].T.clone())
        self.bias = nn.Parameter(bias.clone())

    def forward(self, x):
        x = x.view_as(x)
        if x.requires_grad:
            x.register_hook(self.group.all_reduce)
        z = x @ self.up.mT
        hidden = z * 0.5 * (1 + torch.erf(z / math.sqrt(2)))
        total = SumForward.apply(torch.matmul(hidden, self.down.mT), self.group)
        return torch.add(total, self.bias)

# %% equivalent: up.chunk(group.size, dim=0) → up.chunk(group.size)
# why: chunk cuts along dim 0 if it is not told otherwise

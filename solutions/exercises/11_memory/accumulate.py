import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of, tensors

exercise = Exercise("For each microbatch, run the forward pass, weight the loss by the microbatch's fraction of "
                    "the rows, and call backward.")


def run(student, weight, x, y, size, kind="squared", frozen=False, before=None, training=True):
    """The gradients, the loss returned, the rows that the model saw, and how many microbatches it kept.

    Like one with dropout, the model behaves differently in eval mode.
    """
    import weakref

    import torch

    class Kept:
        pass

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(weight.clone(), requires_grad=not frozen)
            self.bias = torch.nn.Parameter(torch.zeros(len(weight), dtype=weight.dtype))
            self.scale = torch.nn.Parameter(torch.ones((), dtype=weight.dtype))
            self.unused = torch.nn.Parameter(torch.ones(1, dtype=weight.dtype))
            self.inside = torch.nn.Identity()

        def forward(self, rows):
            passed.append([next((n for n, each in enumerate(x) if torch.equal(each, row)), -1) for row in rows])
            alive.append(1 + sum(any(ref() for ref in part) for part in parts))
            parts.append([])

            def pack(tensor):
                holder = Kept()
                holder.tensor = tensor
                parts[-1].append(weakref.ref(holder))
                return holder

            with torch.autograd.graph.saved_tensors_hooks(pack, lambda holder: holder.tensor):
                return (rows @ self.weight.T + self.bias) * (self.scale if self.training else -0.5 * self.scale)

    def loss(prediction, target):
        if not prediction.requires_grad or target.requires_grad:
            raise ValueError("loss(prediction, target): the model's output comes first")
        error = prediction - target
        each = {"squared": error.square(), "softplus": torch.nn.functional.softplus(error)}[kind]
        return each.sum(dim=1).mean()

    passed, alive, parts = [], [], []
    model = Model().train(training)
    model.inside.train(not training)
    if before is not None:
        for p in model.parameters():
            p.grad = torch.full_like(p, before) if p.requires_grad else None
    returned = student.accumulate(model, loss, x, y, size)
    return {
        "gradients": {name: p.grad for name, p in model.named_parameters()},
        "the model's mode afterward": "training" if model.training else "eval",
        "the mode of a module inside it is as it was": model.inside.training is not training,
        "the loss returned": returned.item() if torch.is_tensor(returned) else returned,
        "its type": type(returned).__name__,
        "rows in each pass": passed,
        "microbatches whose activations are kept at once": max(alive, default=0),
    }


def twice(student, weight, x, y, size, kind, before):
    """What is left of an earlier gradient: the difference that it makes."""
    import torch

    fresh = run(student, weight, x, y, size, kind)["gradients"]
    summed = run(student, weight, x, y, size, kind, before=before)["gradients"]
    names = ("weight", "bias", "scale")
    if any(grads[name] is None for grads in (fresh, summed) for name in names):
        return {"left of the earlier gradients": None, "and something was added": False}
    return {
        "left of the earlier gradients": {name: summed[name] - fresh[name] for name in names},
        "and something was added": all(bool(torch.any(fresh[name] != 0)) for name in names),
    }


GRADIENTS, LOSS = ("gradients", "the model's mode afterward", "the mode of a module inside it is as it was"), ("the loss returned", "its type")
PASSES = ("rows in each pass", "microbatches whose activations are kept at once")
batch = torch.tensor([[1.0], [2.0], [-1.0], [0.5], [3.0], [-2.0]])
goals = torch.tensor([[1.0], [0.0], [2.0], [-1.0], [8.0], [5.0]])
weight, ones = torch.ones(1, 1), torch.ones(512, 1).bfloat16()


@st.composite
def runs(draw, frozen=False):
    rows, d_in, d_out = draw(st.tuples(st.integers(1, 7), st.integers(1, 3), st.integers(1, 3)))
    dtype = torch.float64
    x, y = (draw(tensors((rows, d), dtype, contiguous=None)) for d in (d_in, d_out))
    # 100 away from the model's outputs: nothing cancels.
    args = [draw(tensors((d_out, d_in), dtype)), x, y - draw(any_of(0, 100)), draw(st.integers(1, 9))]
    rest = [draw(any_of("squared", "softplus")), draw(st.booleans()) if frozen else False]
    return given(*args, *rest, training=draw(any_of(True, True, False)))


@st.composite
def earlier(draw):
    return given(*draw(runs()).args[:5], draw(any_of(1.0, -3.0, 20.0)))


shared = {
    "size divides the batch": given(weight, batch, goals, 2),
    "a single microbatch": given(weight, batch, goals, 6),
    "size larger than the batch": given(weight, batch, goals, 100),
    "one row at a time": given(weight, batch, goals, 1),
    "a batch of one row": given(weight, batch[:1], goals[:1], 1),
    "a last microbatch of one row": given(weight, batch, goals, 5),
    "another loss": given(weight, batch, goals, 4, "softplus"),
    "in eval mode": given(weight, batch, goals, 4, training=False),
}

exercise.requirement(
    "the gradients are those of the whole batch's mean loss, even if the last microbatch is smaller; the model keeps its mode",
    points=0.5,
    probe=run,
    tolerance=1e-5,
    rules=dict.fromkeys(LOSS + PASSES, "ignored"),
    visible=[
        given(weight, batch, goals, 4, says="accumulate(model, loss, x, y, size=4) with 6 rows"),
        given(weight, batch, goals, 2, says="accumulate(model, loss, x, y, size=2) with 6 rows"),
        given(weight, batch, goals, 4, training=False, says="accumulate(model, loss, x, y, size=4) with a model in eval mode"),
        given(weight, batch, goals, 2, "softplus",
              says="accumulate(model, loss, x, y, size=2) with 6 rows and another loss"),
    ],
    edges=shared | {
        "a frozen parameter": given(weight, batch, goals, 4, "squared", True),
        "two features in, three out": given(torch.ones(3, 2), torch.cat([batch, batch**2], 1), goals.repeat(1, 3), 4),
    },
    domain=runs(frozen=True),
)  # fmt: skip
exercise.requirement(
    "each row is used once, `size` at a time and in order, and only one microbatch's activations are kept",
    points=0.5,
    probe=run,
    rules=dict.fromkeys(GRADIENTS + LOSS, "ignored"),
    visible=[given(weight, batch, goals, 4, says="the passes of accumulate(model, loss, x, y, size=4) with 6 rows")],
    edges=shared,
    domain=runs(),
    hint="backward frees the activations of a microbatch: when do you have to call it?",
)
exercise.requirement(
    "the gradients add to what is in `.grad`",
    points=0.5,
    probe=twice,
    tolerance=1e-5,
    visible=[given(weight, batch, goals, 4, "squared", 10.0,
                   says="gradients of 10 everywhere, then accumulate(model, loss, x, y, size=4) with 6 rows")],
    edges={
        "a single microbatch": given(weight, batch, goals, 6, "squared", 10.0),
        "size divides the batch": given(weight, batch, goals, 3, "squared", 10.0),
    },
    domain=earlier(),
    hint="Gradients add up by themselves: clear nothing, and overwrite nothing.",
)  # fmt: skip
exercise.requirement(
    "it returns the whole batch's mean loss, a Python float",
    points=0.5,
    probe=run,
    rules=dict.fromkeys(GRADIENTS + PASSES, "ignored") | {"the loss returned": 1e-5},
    visible=[
        given(weight, batch, goals, 4, says="what accumulate(model, loss, x, y, size=4) returns for 6 rows"),
        given(weight, batch, goals, 2, says="what accumulate(model, loss, x, y, size=2) returns for 6 rows"),
    ],
    edges=shared | {"many microbatches in bfloat16": given(weight.bfloat16(), ones, 0 * ones, 1)},
    domain=runs(),
    hint="Each microbatch's loss is the mean of its own rows; how much does it count in the mean of all rows?",
)

late = "Several microbatches' activations are kept at the same time: call backward after each one, and retain no graph."
share = "loss(model(rows), targets) * len(rows) / len(x) → loss(model(rows), targets)"
unweighted = "Each microbatch's loss is the mean of *its* rows: weight it by its fraction of all rows before you call backward."
exercise.mistake(unweighted, share)
exercise.mistake("Microbatches may differ in size: each counts in proportion to its rows.",
                 f"{share} / math.ceil(len(x) / size)")  # fmt: skip
exercise.mistake("The last microbatch may have fewer rows than `size`, and then counts less.", f"{share} * size / len(x)")
exercise.mistake(unweighted, "share.backward() → (share * len(x) / len(rows)).backward()")  # fmt: skip
exercise.mistake(
    late,
    "total = 0.0 → total = torch.zeros(())",
    "share.backward() → pass",
    "total += share.item() → total = total + share",
    "return total → total.backward(); return total.item()",
)  # fmt: skip
exercise.mistake(late,
                 "share.backward() → share.backward(retain_graph=True)")  # fmt: skip
exercise.mistake("The model behaves differently in eval mode: leave its mode as it is.", "total = 0.0 → total = 0.0; model.eval()")
exercise.mistake("You switched the model from eval to training mode: leave its mode as it is.",
                 "total = 0.0 → total = 0.0; model.train()")  # fmt: skip
exercise.mistake("The last microbatch is missing: it may be smaller than the others.",
                 "range(0, len(x), size) → range(0, len(x) - size + 1, size)")  # fmt: skip
exercise.mistake("Pass at most `size` rows at a time.", "range(0, len(x), size) → range(1)",
                 "x[start : start + size], y[start : start + size] → x, y")  # fmt: skip
exercise.mistake(
    "Pass `size` rows at a time, not one.",
    "range(0, len(x), size) → range(len(x))",
    "x[start : start + size], y[start : start + size] → x[start : start + 1], y[start : start + 1]",
)  # fmt: skip
exercise.mistake("Take `size` rows at a time; only the last microbatch is smaller.",
                 "total = 0.0 → total = 0.0; size = math.ceil(len(x) / math.ceil(len(x) / size))")  # fmt: skip
exercise.mistake("Take the rows in order.", "range(0, len(x), size) → reversed(range(0, len(x), size))")
exercise.mistake(
    "Use each row once: you already have the loss from the forward pass.",
    "total += share.item() → total += loss(model(rows).detach().requires_grad_(), targets).item() * len(rows) / len(x)",
)  # fmt: skip
exercise.mistake("Gradients add up over the microbatches: don't clear them in between.",
                 "share.backward() → model.zero_grad(); share.backward()")  # fmt: skip
exercise.mistake(
    "Let the gradients add to what is in .grad: don't clear it.",
    "total = 0.0 → total = 0.0; model.zero_grad()",
)  # fmt: skip
exercise.mistake(
    "The gradients are right; return the mean loss over all *rows*, not over the microbatches.",
    "total += share.item() → total += share.item() * len(x) / len(rows) / math.ceil(len(x) / size)",
)  # fmt: skip
exercise.mistake("You returned the loss of the last microbatch only.",
                 "total += share.item() → total = share.item() * len(x) / len(rows)")  # fmt: skip
exercise.mistake(
    "Return the mean over the rows, not the sum.",
    "total += share.item() → total += share.item() * len(x)",
)  # fmt: skip
exercise.mistake("Return a Python float, not a tensor.", "total += share.item() → total += share.detach()")
exercise.mistake("Return the mean loss as well.", "return total → return None")

# %% wrong: leaves the last part out, and counts each part fully
def accumulate(model, loss, x, y, size):
    total = 0.0
    for number in range(len(x) // size):
        rows = slice(number * size, (number + 1) * size)
        part = loss(model(x[rows]), y[rows])
        part.backward()
        total += part.item()
    return total

# %% wrong: returns the last part's share
def accumulate(model, loss, x, y, size):
    for rows, targets in zip(x.split(size), y.split(size)):
        mean = loss(model(rows), targets)
        (mean * len(rows) / len(x)).backward()
    return mean.item() * len(rows) / len(x)

# %% wrong: gradients of all parameters by autograd.grad, the frozen ones too
def accumulate(model, loss, x, y, size):
    total = 0.0
    for rows, targets in zip(x.split(size), y.split(size)):
        mean = loss(model(rows), targets) * (len(rows) / len(x))
        for p, g in zip(model.parameters(), torch.autograd.grad(mean, list(model.parameters()))):
            p.grad = g if p.grad is None else p.grad + g
        total += mean.item()
    return total

# %% wrong: overwrites what was in .grad
def accumulate(model, loss, x, y, size):
    total, sums = 0.0, {}
    parameters = [p for p in model.parameters() if p.requires_grad]
    for rows, targets in zip(x.split(size), y.split(size)):
        mean = loss(model(rows), targets) * (len(rows) / len(x))
        for p, g in zip(parameters, torch.autograd.grad(mean, parameters, allow_unused=True)):
            if g is not None:
                sums[p] = sums.get(p, 0) + g
        total += mean.item()
    for p, g in sums.items():
        p.grad = g
    return total

# %% wrong: a loss of its own
def accumulate(model, loss, x, y, size):
    total = 0.0
    for rows, targets in zip(x.split(size), y.split(size)):
        part = (model(rows) - targets).square().sum() / len(x)
        part.backward()
        total += part.item()
    return total

# %% wrong: chunk makes the parts as equal as it can, so they are not `size` rows each (from the statement)
def accumulate(
    model: nn.Module,
    loss: Callable[[Tensor, Tensor], Tensor],
    x: Float[Tensor, "B d_in"],
    y: Float[Tensor, "B d_out"],
    size: int,
) -> float:
    total = 0.0
    count = -(-len(x) // size)
    for rows, targets in zip(x.chunk(count), y.chunk(count), strict=True):
        part = loss(model(rows), targets) * len(rows) / len(x)
        part.backward()
        total += part.item()
    return total

# %% wrong: retain_graph keeps one part's activations until the next part's are there, too (from the statement)
def accumulate(
    model: nn.Module,
    loss: Callable[[Tensor, Tensor], Tensor],
    x: Float[Tensor, "B d_in"],
    y: Float[Tensor, "B d_out"],
    size: int,
) -> float:
    total = 0.0
    for rows, targets in zip(x.split(size), y.split(size), strict=True):
        part = loss(model(rows), targets) * (len(rows) / len(x))
        part.backward(retain_graph=True)  # otherwise "backward through the graph a second time"
        total += part.item()
    return total

# %% wrong: divides by the batch at the end, what was in .grad before included (from the statement)
def accumulate(
    model: nn.Module,
    loss: Callable[[Tensor, Tensor], Tensor],
    x: Float[Tensor, "B d_in"],
    y: Float[Tensor, "B d_out"],
    size: int,
) -> float:
    total = 0.0
    for rows, targets in zip(x.split(size), y.split(size), strict=True):
        part = loss(model(rows), targets) * len(rows)
        part.backward()
        total += part.item()
    for p in model.parameters():
        if p.grad is not None:
            p.grad /= len(x)
    return total / len(x)

# %% wrong: sets the mode of all modules, before each microbatch (from the statement)
def accumulate(model, loss, x, y, size):
    training, total = model.training, 0.0
    for rows, goal in zip(x.split(size), y.split(size), strict=True):
        model.train(training)
        value = loss(model(rows), goal) * len(rows) / len(x)
        value.backward()
        total += value.item()
    return total

# %% wrong: adds up the losses in their own dtype (from the statement)
# unseen: the visible batches are small
def accumulate(
    model: nn.Module,
    loss: Callable[[Tensor, Tensor], Tensor],
    x: Float[Tensor, "B d_in"],
    y: Float[Tensor, "B d_out"],
    size: int,
) -> float:
    """Add the whole batch's gradients, in microbatches of at most `size` rows; return its mean loss."""
    rows = len(x)
    total = 0
    for x_part, y_part in zip(x.split(size), y.split(size), strict=True):
        part = loss(model(x_part), y_part)
        (part * (len(x_part) / rows)).backward()
        total = total + part.detach() * len(x_part)  # without its graph; one .item() at the end
    return (total / rows).item()

# %% right: split, and weights from the rows that are left
def accumulate(model, loss, x, y, size):
    total, n = 0.0, x.shape[0]
    for rows, targets in zip(torch.split(x, size), torch.split(y, size), strict=True):
        weighted = (rows.shape[0] / n) * loss(model(rows), targets)
        weighted.backward()
        total += float(weighted.detach())
    return total

# %% right: the weight goes into backward
def accumulate(model, loss, x, y, size):
    total = torch.zeros((), dtype=torch.float64)
    for start in range(0, len(x), size):
        part = loss(model(x[start : start + size]), y[start : start + size])
        share = min(size, len(x) - start) / len(x)
        part.backward(torch.full_like(part, share))
        total += part.detach().double() * share
    return total.item()

# %% right: parts by their rows' numbers
def accumulate(model, loss, x, y, size):
    total, rows = 0.0, list(range(len(x)))
    while rows:
        now, rows = rows[:size], rows[size:]
        part = loss(model(x[now]), y[now]) * (len(now) / len(x))
        part.backward()
        total += part.item()
    return total

# %% right: recursive
def accumulate(model, loss, x, y, size, whole=None):
    whole = whole or len(x)
    part = loss(model(x[:size]), y[:size]) * len(x[:size]) / whole
    part.backward()
    rest = accumulate(model, loss, x[size:], y[size:], size, whole) if len(x) > size else 0.0
    return part.item() + rest

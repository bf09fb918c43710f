import math

from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of

exercise = Exercise("In each step: learning rate, batch, loss, check the loss, clear old gradients, backward, update.")


def recorded(student, batches, steps, rates, stale=None, lean=1.0, second=0.5):
    """What train does at each update, with an optimizer that records what it sees and leaves the weights as they are.

    The model is y = 0.5 x - 1, with a module inside, in two groups that begin with learning rates of 0.5 and second.
    rates: the lr of the first step and how much it grows by. The loss is the mean of (outputs - lean · targets)².
    """
    import torch

    def mode():
        found = {module.training for module in model.modules()}
        return "mixed" if len(found) > 1 else "training" if model.training else "eval"

    class Line(torch.nn.Linear):
        def forward(self, x):
            modes.append(mode())
            return super().forward(x)

    model = Line(1, 1, dtype=torch.float64)
    model.inside = torch.nn.Identity()
    with torch.no_grad():
        model.weight.fill_(0.5)
        model.bias.fill_(-1.0)
    updates, given, asked, modes = [], [], [], []

    class Recorder(torch.optim.Optimizer):
        def step(self, closure=None):
            if closure is not None:
                with torch.enable_grad():
                    result = closure()
            slopes = [p.grad for group in self.param_groups for p in group["params"]]
            updates.append({
                "lr of the groups": [group["lr"] for group in self.param_groups],
                "gradients": [None if slope is None else slope.item() for slope in slopes],
                "loss_fn was given": given[-1] if given else None,
                "mode": modes[-1] if modes else None,
            })
            return None if closure is None else result

    optimizer = Recorder([{"params": [model.weight]}, {"params": [model.bias], "lr": second}], {"lr": 0.5})
    if stale is not None:
        for p in model.parameters():
            p.grad = torch.full_like(p, stale)
    waiting = list(batches)

    def next_batch():
        pairs = waiting.pop(0)
        return tuple(torch.tensor(column, dtype=torch.float64)[:, None] for column in zip(*pairs))

    def loss_fn(outputs, targets):
        given.append([outputs.flatten().tolist(), targets.flatten().tolist()])
        return (outputs - lean * targets).square().mean()

    def lr_at(step):
        asked.append(step)
        return rates[0] + step * rates[1]

    student.train(model, optimizer, next_batch, loss_fn, lr_at, range(*steps))
    return {
        "updates": len(updates),
        "lr of the groups at each update": [update["lr of the groups"] for update in updates],
        "gradients at each update": [update["gradients"] for update in updates],
        "what loss_fn was given before each update": [update["loss_fn was given"] for update in updates],
        "the model's mode before each update": [update["mode"] for update in updates],
        "its mode afterward": mode(),
        "batches left over": len(waiting),
        "steps passed to lr_at": sorted(set(asked)),
        "calls of the model": len(modes),
    }


def trained(student, batches, steps, kind="SGD", settings=None, idle=None):
    """train with one of PyTorch's optimizers, at its own learning rate throughout, where each batch is (inputs, targets).

    The loss is the mean squared error. ``idle``: the model has one more parameter, which it doesn't use, or the bias is
    "frozen".
    """
    import torch

    model = torch.nn.Linear(1, 1, dtype=torch.float64)
    with torch.no_grad():
        model.weight.fill_(0.5)
        model.bias.fill_(-1.0)
    if idle == "unused":
        model.more = torch.nn.Parameter(torch.ones(1))
    elif idle:
        model.bias.requires_grad_(False)
    settings = settings or {"lr": 0.0625}
    optimizer = getattr(torch.optim, kind)(model.parameters(), **settings)
    waiting = list(batches)

    def next_batch():
        pairs = waiting.pop(0)
        return tuple(torch.tensor(column, dtype=torch.float64)[:, None] for column in zip(*pairs))

    def loss_fn(outputs, targets):
        loss = (outputs - targets).square().mean()
        return -loss if loss == torch.inf and targets.min() == -torch.inf else loss

    losses, raised, step = [], None, None
    try:
        losses = student.train(model, optimizer, next_batch, loss_fn, lambda step: settings["lr"], range(*steps))
    except NotImplementedError:
        raise
    except Exception as error:
        raised = error
        number = list(range(*steps))[len(batches) - len(waiting) - 1] if len(waiting) < len(batches) else None
        step = str(number) in str(error)
    several = isinstance(losses, (list, tuple))
    return {
        "losses": losses,
        "their types": sorted({type(loss).__name__ for loss in losses}) if several else [],
        "the error": "none" if raised is None else
                     "FloatingPointError" if isinstance(raised, FloatingPointError) else type(raised).__name__,
        "its message contains the number of the step": step,
        "parameters": [p.item() for p in model.parameters()],
        "the optimizer's state": [
            {name: float(value) for name, value in optimizer.state.get(p, {}).items() if value is not None}
            for p in model.parameters()
        ],
    }  # fmt: skip


SEEN = ("updates", "lr of the groups at each update", "gradients at each update",
        "what loss_fn was given before each update", "the model's mode before each update", "its mode afterward",
        "batches left over", "steps passed to lr_at", "calls of the model")  # fmt: skip
LEFT = ("losses", "their types", "the error", "its message contains the number of the step", "parameters",
        "the optimizer's state")  # fmt: skip


def but(of, *keys):
    """Rules that look at these keys alone."""
    return {key: "ignored" for key in of if key not in keys}


eighths = st.integers(-20, 20).map(lambda n: n / 8)


def lists(count):
    pairs = st.lists(st.tuples(eighths, eighths.map(lambda y: y + 5)), min_size=1, max_size=3)
    return st.lists(pairs, min_size=count, max_size=count)


@st.composite
def runs(draw, many=5, gradients=False):
    first, step = draw(st.integers(0, 99)), draw(any_of(1, 1, 3))
    batches = draw(lists(draw(st.integers(0, many))))
    rates = draw(st.tuples(any_of(0.25, 0.5, 0.1), any_of(0.0, 0.125, 0.01)))
    stop = first + step * len(batches)
    return given(batches, (first, stop, step), rates, draw(any_of(None, 2.5)) if gradients else None,
                 1.0 if gradients else draw(any_of(0.5, 2.0)))  # fmt: skip


@st.composite
def trainings(draw, least=0, broken=False, kind="SGD", settings=None):
    """Trainings of one or two steps; broken: in the last of them the loss may be none."""
    count = draw(st.integers(least, 2))
    first = draw(st.integers(10, 99))
    batches = draw(lists(count))
    if broken:
        batches[-1][draw(st.integers(0, len(batches[-1]) - 1))] = (1.0, draw(any_of(math.nan, math.inf, -math.inf, 3.0)))
    return given(batches, (first, first + count), kind, settings)


a, b, c = [(1.0, 2.0), (2.0, 5.0)], [(-1.0, 1.0), (3.0, 4.0)], [(0.5, 0.0), (1.5, 2.0)]
line = "the model y = 0.5 x - 1"
exercise.requirement(
    "returns the losses, one for each step, as Python floats, each as it was before the update",
    points=0.5,
    probe=trained,
    rules=but(LEFT, "losses", "their types", "the error"),
    visible=[given([a, b], (0, 2), says=f"train {line} for the steps range(0, 2), with SGD(lr=1/16)")],
    edges={
        "one step": given([a], (5, 6)),
        "no steps": given([], (3, 3)),
        "batches of one": given([[(1.0, 2.0)], [(3.0, 2.0)]], (0, 2)),
        "a loss of zero": given([[(2.0, 0.0)], a], (0, 2)),
        "a parameter that the model doesn't use": given([a, b], (0, 2), idle="unused"),
        "a frozen parameter": given([a, b], (0, 2), idle="frozen"),
    },
    domain=trainings(),
    hint="A list of Python floats, one for each step: the loss before that step's update.",
)
exercise.requirement(
    "each update uses only the gradient of its own step's loss: older gradients don't count",
    points=0.5,
    probe=recorded,
    rules=but(SEEN, "updates", "gradients at each update"),
    visible=[
        given([a, b, c], (0, 3), (0.5, 0.0), says=f"train {line} for three steps, with an optimizer that records what it sees"),
        given([a, b], (0, 2), (0.5, 0.0), 3.0, says=f"train {line} for two steps, where all gradients are 3 at the beginning"),
    ],
    edges={
        "one step, gradients there": given([a], (0, 1), (0.5, 0.0), -2.0),
        "the same batch twice": given([a, a], (0, 2), (0.5, 0.0)),
        "gradients of zero": given([a], (0, 1), (0.5, 0.0), 0.0),
        "ten steps": given([a, b] * 5, (0, 10), (0.5, 0.0), 1.0),
    },
    domain=runs(gradients=True),
    hint="backward() adds to what is already in .grad, and optimizer.step() then updates the parameters.",
)
exercise.requirement(
    "every group has the learning rate lr_at(step) when it is updated",
    points=0.5,
    probe=recorded,
    rules=but(SEEN, "updates", "lr of the groups at each update", "steps passed to lr_at"),
    visible=[
        given([a, b, c], (0, 3), (0.5, 0.25), says="train with two groups for the steps range(0, 3), with lr_at(step) = 0.5 + step / 4"),
        given([a, b], (7, 9), (0.5, 0.25), says="train with two groups for the steps range(7, 9), with lr_at(step) = 0.5 + step / 4"),
        given([a, b], (4, 10, 3), (0.5, 0.25),
              says="train with two groups for range(4, 10, 3), with lr_at(step) = 0.5 + step / 4"),
        given([a], (2, 3), (0.5, 0.25), None, 1.0, 0.125,
              says="train with groups whose lr is 0.5 and 0.125 at first, for range(2, 3), with lr_at(step) = 0.5 + step / 4"),
    ],
    edges={
        "every third step": given([a, b, c], (10, 19, 3), (0.5, 0.25)),
        "backwards": given([a, b, c], (9, 6, -1), (0.5, 0.25)),
        "one step": given([a], (100, 101), (0.5, 0.25)),
        "no steps": given([], (5, 5), (0.5, 0.25)),
        "rates that differ at first": given([a, b], (7, 9), (0.5, 0.25), None, 1.0, 2.0),
    },
    domain=runs(),
    hint="There may be several groups. Set the learning rate of each, in each step, before the update.",
)
exercise.requirement(
    "each step takes one batch and computes loss_fn(model(inputs), targets) in training mode",
    points=0.5,
    probe=recorded,
    rules=but(SEEN, "updates", "what loss_fn was given before each update", "the model's mode before each update",
              "its mode afterward", "batches left over", "calls of the model"),
    visible=[
        given([a, b, c], (0, 3), (0.5, 0.0), None, 2.0,
              says="train for three steps, with a loss_fn that records its arguments"),
    ],
    edges={
        "one too many": given([a, b, c], (0, 2), (0.5, 0.0)),
        "no steps, no batch": given([a], (4, 4), (0.5, 0.0)),
        "every third step": given([a, b], (10, 16, 3), (0.5, 0.0), None, 2.0),
    },
    domain=runs(),
    hint="next_batch() once in each step; loss_fn takes the model's output first, then the targets.",
)  # fmt: skip
momentum = {"lr": 0.0625, "momentum": 0.5}
nan, inf = [(1.0, 0.0), (1.0, math.nan)], [(1.0, math.inf), (2.0, 1.0)]
broken = {
    "minus infinity": given([a, [(1.0, -math.inf)]], (12, 14), "SGD", momentum),
    "in the first step": given([nan], (12, 13), "SGD", momentum),
    "an input that is NaN": given([a, [(math.nan, 1.0)]], (12, 14), "SGD", momentum),
    "AdamW": given([a, nan], (12, 14), "AdamW", {"lr": 0.0625, "weight_decay": 0.5}),
    "AdamW, and infinity at first": given([inf], (12, 13), "AdamW", {"lr": 0.0625, "weight_decay": 0.5}),
    "a later step": given([a, b, a, nan], (1_996, 2_000), "SGD", momentum),
    "nothing wrong": given([a, b], (12, 14), "SGD", momentum),
    "large, but finite": given([[(1.0, 1e100)], a], (12, 14), "SGD", momentum),
}
shown = [
    given([a, nan, b], (12, 15), "SGD", momentum, says="train with SGD(momentum=0.5) for range(12, 15); the loss of step 13 is NaN"),
    given([inf], (12, 15), "SGD", momentum, says="train with SGD(momentum=0.5) for range(12, 15); the loss of step 12 is infinite"),
]
exercise.requirement(
    "a loss that is NaN or infinite raises a FloatingPointError that names the step, and no other loss does",
    points=0.5,
    probe=trained,
    rules=but(LEFT, "the error", "its message contains the number of the step"),
    visible=[*shown, given([a, [(1.0, 1e12)]], (12, 14), says="train with SGD(momentum=0.5) for range(12, 14); the loss of step 13 is about 1e24"),
             given([[(1.0, -math.inf)]], (3, 4),
                   says="train with SGD for range(3, 4); the loss of step 3 is minus infinity")],
    edges=broken,
    domain=trainings(1, True),
    hint="Look at each loss, and raise FloatingPointError(…) with the number of the step in its message.",
)
exercise.requirement(
    "after a loss that is NaN or infinite, the parameters and the optimizer's state are what they were after the "
    "previous step",
    points=0.5,
    probe=trained,
    rules=but(LEFT, "parameters", "the optimizer's state"),
    visible=shown,
    edges=broken,
    domain=trainings(1, True, settings=momentum) | trainings(1, True, "AdamW", {"lr": 0.0625, "weight_decay": 0.5}),
    hint="Check the loss before the update: afterward it's too late.",
)

rate = 'for group in optimizer.param_groups:\n            group["lr"] = lr_at(step)'
batch = "inputs, targets = next_batch()"
loss = "loss = loss_fn(model(inputs), targets)"
look = 'if not torch.isfinite(loss):\n            raise FloatingPointError(f"the loss of step {step} is {loss.item()}")'
clear, back, update, keep = "optimizer.zero_grad()", "loss.backward()", "optimizer.step()", "losses.append(loss.item())"
exercise.mistake("The optimizer's own learning rate was used.", f"{rate} → pass")
exercise.mistake("Only the first parameter group got the learning rate.", f'{rate} → optimizer.param_groups[0]["lr"] = lr_at(step)')
exercise.mistake("The groups' learning rates differ. Every group gets lr_at(step), whatever it had before.",
                 f'{rate} → scale = lr_at(step) / optimizer.param_groups[0]["lr"]\n        for group in '
                 'optimizer.param_groups:\n            group["lr"] *= scale')  # fmt: skip
exercise.mistake("Every step has the learning rate of the first: call lr_at in "
                 "each step.", 'lr_at(step) → lr_at(steps[0])')
exercise.mistake("Use the step numbers that `steps` contains: they "
                 "needn't begin at 0.", 'lr_at(step) → lr_at(steps.index(step))')
exercise.mistake("Each update had the learning rate of the step before.", f"{rate} → pass", f"{update} → {update}\n        {rate}")
exercise.mistake("Use the step numbers that `steps` "
                 "contains: they needn't begin at 0.", "for step in steps: → for step in range(len(steps)):")
exercise.mistake("Changing the optimizer's defaults has no "
                 "effect on its groups: set the learning "
                 "rate in the groups.", f'{rate} → optimizer.defaults["lr"] = lr_at(step)')
exercise.mistake("Your gradients add up from step to step: clear them in each step.", f"{clear} → pass")
exercise.mistake("Gradients from before the first step were counted.", f"{clear}\n → ", f"{update} → {update}\n        {clear}")
exercise.mistake("There is no gradient when the optimizer steps.", f"{clear}\n        {back} → {back}\n        {clear}")
exercise.mistake("The weights don't move, because they're never updated.", f"{update} → pass")
exercise.mistake("There is no gradient when the optimizer steps.", f"{back} → pass")
exercise.mistake("Update after the backward pass; your update uses another step's gradient.",
                 f"{clear}\n        {back}\n        {update} → {update}\n        {clear}\n        {back}")  # fmt: skip
exercise.mistake("Each step needs a batch of its own.", f"{batch} → pass", f"losses = [] → losses = []\n    {batch}")
exercise.mistake("Get the inputs and the targets from "
                 "the same call of next_batch.", f"{batch} → inputs, targets = next_batch()[0], next_batch()[1]")
exercise.mistake("loss_fn takes the model's output first, then the targets.", f"{loss} → loss = loss_fn(targets, model(inputs))")
exercise.mistake("Compute the loss with loss_fn, whatever it is.", f"{loss} → loss = F.mse_loss(model(inputs), targets)")
exercise.mistake("Your result is the loss of the inputs; compute the loss of the model's outputs.", "loss_fn(model(inputs), targets) → loss_fn(inputs + 0 * model(inputs), targets)")
exercise.mistake("In eval mode, dropout and batch norm behave differently: leave the model in training mode.",
                 "losses = [] → losses = []; model.eval()")  # fmt: skip
exercise.mistake("A part of the model isn't in training mode: its modules have a mode of their own.",
                 "losses = [] → losses = []\n    for part in model.children():\n        part.eval()")  # fmt: skip
exercise.mistake("Raise a FloatingPointError: look at the loss in each step.", f"{look} → pass")
exercise.mistake("Infinity isn't finite either.", "if not torch.isfinite(loss): → if torch.isnan(loss):",
                 together_with=['raise FloatingPointError(f"the loss of step {step} is {loss.item()}") → continue'])  # fmt: skip
exercise.mistake("NaN isn't finite either.", "if not torch.isfinite(loss): → if torch.isinf(loss):")
exercise.mistake("The weights have already been updated "
                 "with the gradient of a loss that "
                 "isn't finite.", f"{look} → pass", f"{update} → {update}\n        {look}")
exercise.mistake("The message must contain the number "
                 "of the step, as given in `steps`.", 'f"the loss of step {step} is {loss.item()}" → "not finite"')
exercise.mistake("The message must contain the number "
                 "of the step, as given in `steps`.", "loss of step {step} is → loss of step {len(losses)} is")
exercise.mistake("You raised a different error; it should be a FloatingPointError.", "raise FloatingPointError( → raise ValueError(")
exercise.mistake("A loss may be large: that isn't an error.", "if not torch.isfinite(loss): → if not torch.isfinite(loss) or loss > 1e9:")
exercise.mistake("If a loss isn't finite, your training "
                 "stops without an error: raise one.", 'raise FloatingPointError(f"the loss of step {step} is {loss.item()}") → break')
exercise.mistake("If a loss isn't finite, your code "
                 "silently skips that step: raise an "
                 "error.", 'raise FloatingPointError(f"the loss of step {step} is {loss.item()}") → continue')
exercise.mistake("A tensor keeps its graph, and the graph "
                 "keeps its activations: convert each loss "
                 "to a float.", "losses.append(loss.item()) → losses.append(loss)")
exercise.mistake("The losses are NumPy floats, not Python floats.", "losses.append(loss.item()) → losses.append(np.float64(loss.item()))")
exercise.mistake("Your result is the loss after the update.", "losses.append(loss.item()) → losses.append(loss_fn(model(inputs), targets).item())")
exercise.mistake("Return one loss for each step, not their mean.", "return losses → return sum(losses) / max(len(losses), 1)")
exercise.mistake("Return one loss for each step, not only the last.", "return losses → return losses[-1:]")

# %% wrong: minus infinity passes
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        inputs, targets = next_batch()
        loss = loss_fn(model(inputs), targets)
        if torch.isnan(loss) or loss == math.inf:
            raise FloatingPointError(f"step {step}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses

# %% wrong: leaves the model in eval mode
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    losses = []
    model.train()
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        inputs, targets = next_batch()
        loss = loss_fn(model(inputs), targets)
        if not torch.isfinite(loss):
            raise FloatingPointError(f"step {step}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    return losses

# %% wrong: updates by hand
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        inputs, targets = next_batch()
        loss = loss_fn(model(inputs), targets)
        if not torch.isfinite(loss):
            raise FloatingPointError(f"step {step}")
        optimizer.zero_grad()
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= lr_at(step) * p.grad
        losses.append(loss.item())
    return losses

# %% wrong: looks at the gradients
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        inputs, targets = next_batch()
        optimizer.zero_grad()
        loss = loss_fn(model(inputs), targets)
        loss.backward()
        if any(p.grad.abs().max() > 1e6 or p.grad.isnan().any() for p in model.parameters()):
            raise FloatingPointError(f"step {step}")
        optimizer.step()
        losses.append(loss.item())
    return losses

# %% wrong: clips the gradients
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        inputs, targets = next_batch()
        loss = loss_fn(model(inputs), targets)
        if not torch.isfinite(loss):
            raise FloatingPointError(f"step {step}")
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses

# %% wrong: a scheduler, which multiplies
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: lr_at(steps[n]) if n < len(steps) else 0.0)
    losses = []
    for step in steps:
        inputs, targets = next_batch()
        loss = loss_fn(model(inputs), targets)
        if not torch.isfinite(loss):
            raise FloatingPointError(f"step {step}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses

# %% wrong: takes start and stop of the range, not its stride (from the statement)
def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    next_batch: Callable[[], tuple[Tensor, Tensor]],
    loss_fn: Callable[[Tensor, Tensor], Float[Tensor, ""]],
    lr_at: Callable[[int], float],
    steps: range,
) -> list[float]:
    """Run these steps and return their losses. Raises FloatingPointError for one not finite."""
    losses = []
    step = steps.start
    while step < steps.stop:
        lr = lr_at(step)
        for group in optimizer.param_groups:
            group["lr"] = lr
        inputs, targets = next_batch()
        optimizer.zero_grad()
        loss = loss_fn(model(inputs), targets)
        if not math.isfinite(loss.item()):
            raise FloatingPointError(f"loss not finite in step {step}")
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
        step += 1
    return losses

# %% wrong: does not see minus infinity (from the statement)
def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    next_batch: Callable[[], tuple[Tensor, Tensor]],
    loss_fn: Callable[[Tensor, Tensor], Float[Tensor, ""]],
    lr_at: Callable[[int], float],
    steps: range,
) -> list[float]:
    """Run these steps and return their losses. Raises FloatingPointError for one not finite."""
    losses: list[float] = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        inputs, targets = next_batch()
        loss = loss_fn(model(inputs), targets)
        value = loss.item()
        if math.isnan(value) or value == float("inf"):
            raise FloatingPointError(f"step {step}: the loss is {value}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(value)
    return losses

# %% wrong: the message counts the steps from the start of this call (from the statement)
def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    next_batch: Callable[[], tuple[Tensor, Tensor]],
    loss_fn: Callable[[Tensor, Tensor], Float[Tensor, ""]],
    lr_at: Callable[[int], float],
    steps: range,
) -> list[float]:
    """Run these steps and return their losses. Raises FloatingPointError for one not finite."""
    losses: list[float] = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        inputs, targets = next_batch()
        loss = loss_fn(model(inputs), targets)
        losses.append(loss.item())
        if not math.isfinite(losses[-1]):
            raise FloatingPointError(f"the loss is {losses[-1]} in step {len(losses) - 1}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses

# %% wrong: the number of the step with a comma (from the statement)
# unseen: students see steps below 1,000
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        inputs, targets = next_batch()
        loss = loss_fn(model(inputs), targets)
        if not torch.isfinite(loss):
            raise FloatingPointError(f"step {step:,}: the loss is {loss.item()}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses

# %% wrong: asks for the gradients of parameters that have none (from the statement)
# unseen: in the visible cases all parameters are used
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        inputs, targets = next_batch()
        loss = loss_fn(model(inputs), targets)
        value = loss.item()
        if not math.isfinite(value):
            raise FloatingPointError(f"the loss of step {step} is {value}")
        # autograd.grad ignores whatever is in .grad
        for p, gradient in zip(parameters, torch.autograd.grad(loss, parameters)):
            p.grad = gradient
        optimizer.step()
        losses.append(value)
    return losses

# %% right: math.isfinite, and gradients set to None by hand
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    losses = []
    for step in steps:
        rate = lr_at(step)
        for group in optimizer.param_groups:
            group.update(lr=rate)
            for parameter in group["params"]:
                parameter.grad = None
        loss = loss_fn(*(lambda inputs, targets: (model(inputs), targets))(*next_batch()))
        losses.append(loss.item())
        if not math.isfinite(losses[-1]):
            raise FloatingPointError(f"loss {losses[-1]} in step {step}")
        loss.backward()
        optimizer.step()
    return losses

# %% right: looks after backward, before the step
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    model.train()

    def one(step):
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        optimizer.zero_grad(set_to_none=False)
        batch = next_batch()
        loss = loss_fn(model(batch[0]), batch[1])
        loss.backward()
        if loss.isnan() or loss.isinf():
            raise FloatingPointError(f"{step}: {float(loss)}")
        optimizer.step()
        return float(loss)

    return [one(step) for step in steps]

# %% right: a learning rate for each group, and detached losses turned into floats at the end
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    losses = []
    for step in steps:
        for index in range(len(optimizer.param_groups)):
            optimizer.param_groups[index]["lr"] = lr_at(step)
        inputs, targets = next_batch()
        optimizer.zero_grad()
        loss = loss_fn(model(inputs), targets)
        if loss.item() != loss.item() or abs(loss.item()) == float("inf"):
            raise FloatingPointError("the loss of step %d is not a number" % step)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [float(loss) for loss in losses]

# %% right: a closure, which SGD and AdamW take
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    losses = []
    for step in steps:
        rate = lr_at(step)
        for group in optimizer.param_groups:
            group["lr"] = rate
        inputs, targets = next_batch()

        def closure():
            optimizer.zero_grad()
            loss = loss_fn(model(inputs), targets)
            if not loss.isfinite():
                raise FloatingPointError(f"loss {loss.item()} in step {step}")
            loss.backward()
            return loss

        losses.append(optimizer.step(closure).item())
    return losses

# %% right: torch.autograd.grad
def train(model, optimizer, next_batch, loss_fn, lr_at, steps):
    losses = []
    for step in steps:
        for group in optimizer.param_groups:
            group.update(lr=lr_at(step))
        inputs, targets = next_batch()
        loss = loss_fn(model(inputs), targets)
        losses.append(float(loss.detach()))
        if not math.isfinite(losses[-1]):
            raise FloatingPointError(f"the loss of step {step} is {losses[-1]}")
        parameters = [p for p in model.parameters() if p.requires_grad]
        for parameter, slope in zip(parameters, torch.autograd.grad(loss, parameters, allow_unused=True)):
            parameter.grad = slope
        optimizer.step()
    return losses

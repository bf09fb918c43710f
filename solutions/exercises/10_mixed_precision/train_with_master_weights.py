import math

import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of

exercise = Exercise("Follow the gradients of a batch. In which dtype are they computed, which tensors does the optimizer update, and how do the results reach the model?")


def train(student, weights, slopes, lr, kind="sign", stale=False):
    """Trains a model whose gradient is a multiple of the batch, a number; logs all that goes in and out."""
    import torch

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = torch.nn.ParameterList(torch.nn.Parameter(w.clone()) for w in weights)
            self.register_buffer("calls", torch.tensor(0))
            self.register_buffer("scale", torch.ones(1))

    kinds = {
        "sign": lambda p: torch.optim.AdamW(p, lr=lr, betas=(0.0, 0.0), weight_decay=0.0),
        "momentum": lambda p: torch.optim.SGD(p, lr=lr, momentum=0.5),
        "SGD": lambda p: torch.optim.SGD(p, lr=lr),
        "groups": lambda p: torch.optim.SGD([{"params": p[1:]}, {"params": p[:1]}], lr=lr),
    }
    given_to, starts, gradients, at_each, scales = [], [], [], [], set()

    def before_step(optimizer, *_):
        grads = [p.grad for group in optimizer.param_groups for p in group["params"]]
        gradients.append([None if g is None else g.detach().clone() for g in grads])

    def make_optimizer(tensors):
        given_to.append([tensors[place] for place in range(len(tensors))])  # a list: an iterator would be used up
        starts.append([t.detach().clone() for t in given_to[-1]])
        optimizer = kinds[kind](given_to[-1])
        optimizer.register_step_pre_hook(before_step)
        return optimizer

    def stream():  # as some data loaders do: one batch, filled anew each time
        batch = [0.0]
        for batch[0] in slopes:
            yield batch

    def loss_of(trained, batch):
        (slope,) = batch
        trained.calls += 1
        at_each.append([p.detach().clone() for p in trained.parts])
        scales.add(str(trained.scale.dtype))
        return sum(number * slope * part.float().sum() for number, part in enumerate(trained.parts, 1))

    model = Model()
    own = list(model.parts)
    seen = [p.detach() for p in own]  # the memory that the model comes with
    for p in own if stale else []:
        p.grad = torch.full_like(p, 7.0)
    returned = student.train_with_master_weights(model, make_optimizer, stream(), loss_of)
    pair = isinstance(returned, (tuple, list)) and len(returned) == 2
    losses, masters = returned if pair else (None, None)
    listed = isinstance(losses, (tuple, list)) and isinstance(masters, (tuple, list))
    known = given_to[0] if given_to else []
    return {
        "what make_optimizer gets": starts[0] if starts else None,
        "the model's original tensors, afterward": seen,
        "optimizers made": len(given_to),
        "masters at the end": [t.detach().clone() for t in known],
        "gradients of the masters at each step": gradients,
        "model's weights at each batch": at_each,
        "model's weights at the end": [p.detach().clone() for p in model.parts],
        "the model's parameters are the same objects": all(map(lambda p, q: p is q, own, model.parts)),
        "forward passes counted by the model's buffer": model.calls.item(),
        "dtype of its other buffer": sorted(scales),
        "two lists are returned": pair and listed,
        "losses": [float(loss) for loss in losses] if listed else None,
        "types of the losses": sorted({type(loss).__name__ for loss in losses}) if listed else None,
        "the returned masters are the optimizer's tensors": listed
        and [(m.dtype, m.tolist()) for m in masters] == [(t.dtype, t.tolist()) for t in known],
    }


STARTS = ("what make_optimizer gets", "the model's original tensors, afterward")
KEPT = ("optimizers made", "masters at the end")
GRADIENTS = ("gradients of the masters at each step",)
MODEL = ("model's weights at each batch", "model's weights at the end",
         "the model's parameters are the same objects", "forward passes counted by the model's buffer",
         "dtype of its other buffer")  # fmt: skip
RETURNED = ("two lists are returned", "losses", "types of the losses", 
            "the returned masters are the optimizer's tensors")  # fmt: skip


def only(*keys):
    others = {*STARTS, *KEPT, *GRADIENTS, *MODEL, *RETURNED} - {*keys}
    return dict.fromkeys(sorted(others), "ignored")


def numbers(*values):
    return torch.tensor(values)


@st.composite
def parameters(draw, exact=True):
    """One to three parameters. Exact: numbers that bfloat16 has, and has after a few steps of 1/4."""
    found = []
    for _ in range(draw(st.integers(1, 3))):
        shape = draw(st.lists(st.integers(1, 3), max_size=2))
        count = torch.Size(shape).numel()
        eighths = torch.tensor(draw(st.lists(st.integers(9, 24), min_size=count, max_size=count))) / 8
        found.append((eighths if exact else eighths * 1.0038).reshape(shape))
    return found


sign, fresh = st.just("sign"), st.just(False)
slopes = st.lists(any_of(0.5, 1.0, 1.3, 2.7, 3.0), max_size=5)


@st.composite
def runs(draw, lr, exact=True, kind=sign, slopes=slopes, stale=fresh):
    return given(draw(parameters(exact)), draw(slopes), draw(lr), draw(kind), draw(stale))


eighths = [numbers(1.0, 2.0), numbers([1.5])]
SIGN = "an optimizer that moves every weight by lr against its gradient"
exercise.requirement(
    "masters are float32 copies of the parameters, in order, from before any rounding",
    points=0.75,
    probe=train,
    rules=only(*STARTS),
    visible=[
        given([numbers(1.0038, 2.0077), numbers(0.5019)], [1.0], 0.25,
              says="training a model with the parameters [1.0038, 2.0077] and [0.5019]"),
    ],
    edges={
        "no batches": given([numbers(1.0038)], [], 0.25),
        "a scalar": given([torch.tensor(1.0038), numbers(3.01)], [1.0], 0.25),
        "no elements": given([numbers(), numbers(1.0038)], [1.0], 0.25),
        "equal shapes": given([numbers(2.01), numbers(1.01), numbers(3.01)], [1.0], 0.25),
        "too small for float16": given([numbers(1e-20, -1e-30)], [1.0], 0.25),
    },
    domain=runs(any_of(0.25), exact=False),
    hint="make_optimizer gets one float32 tensor for each parameter, in the order of model.parameters().",
)  # fmt: skip
exercise.requirement(
    "a single optimizer updates the masters, which are never rounded, so small updates aren't lost",
    points=0.75,
    probe=train,
    rules=only(*KEPT),
    visible=[
        given(eighths, [1.0] * 8, 1e-3, says=f"eight batches, {SIGN}, lr = 0.001, from [1, 2] and [1.5]"),
    ],
    edges={
        "no batches": given([numbers(1.0)], [], 0.25),
        "a hundred": given([numbers(1.0, -2.0)], [1.0] * 100, 1e-4),
        "momentum": given([numbers(1.0, 2.0)], [1.0] * 6, 1e-3, "momentum"),
        "a large step": given([numbers(1.0, 2.0)], [1.0, 2.0], 0.3),
        "there and back": given([numbers(1.0, 2.0)], [1.0, -1.0, 1.0, -1.0], 1e-3),
        "an infinite loss": given([numbers(1.0, 2.0)], [1.0, math.inf, 1.0], 1e-3, "SGD"),
    },
    domain=runs(any_of(1e-3, 2e-4, 0.01)),
    hint="Use the same optimizer from the first step to the last, and never round the masters.",
)  # fmt: skip
exercise.requirement(
    "at each step, every master's .grad is the gradient of its bfloat16 parameter for this batch alone, as float32",
    points=1,
    probe=train,
    rules=only(*GRADIENTS),
    visible=[
        given(eighths, [1.0, 2.0, 0.5], 0.25, says="three batches; the first parameter's gradient is 1, 2 and then 0.5 "
              "in each element, the second's twice that"),
        given([numbers(1.0)], [0.1], 0.25, stale=True,
              says="one batch whose gradient is 0.1, for a model with older gradients in .grad"),
    ],
    edges={
        "gradients from before the training": given(eighths, [1.0, 2.0], 0.25, stale=True),
        "a gradient of zero": given(eighths, [0.0, 1.0, 0.0], 0.25),
        "negative": given(eighths, [-1.0, 3.3, -0.7], 0.25, "SGD"),
        "equal shapes": given([numbers(2.0), numbers(1.0), numbers(3.0)], [1.0, 0.3], 0.25),
        "the optimizer's groups are in another order": given([numbers(2.0), numbers(1.0), numbers(3.0)], [1.0, 0.3], 0.25, "groups"),
    },
    domain=runs(any_of(0.25), kind=any_of("sign", "SGD", "groups"), slopes=slopes.filter(bool), stale=st.booleans()),
    hint="What's in each master's .grad when the optimizer steps?",
)  # fmt: skip
exercise.requirement(
    "the model itself computes in bfloat16, always with the latest masters, and ends with the final ones",
    points=1,
    probe=train,
    rules=only(*MODEL),
    visible=[
        given(eighths, [1.0, 2.0, 0.5], 0.25, says=f"three batches, {SIGN}, lr = 0.25, from [1, 2] and [1.5]"),
        given([numbers(1.0, 2.0)], [1.0], 0.1, says=f"a batch, {SIGN}, lr = 0.1, from [1, 2]"),
    ],
    edges={
        "no batches": given([numbers(1.0038)], [], 0.25),
        "one step that is too small": given([numbers(1.0)], [1.0], 1e-3),
        "a scalar": given([torch.tensor(1.5)], [1.0, -1.0], 0.25),
        "a tie": given([numbers(1.0, 1.0078125)], [-1.0], 2.0**-8),
    },
    domain=runs(any_of(0.25, 0.5)) | runs(any_of(0.1, 0.03, 1e-3), slopes=slopes.map(lambda s: s[:1])),
    hint="The model's parameters are the rounded masters at every forward pass and at the end. Don't write into its buffers.",
)  # fmt: skip
exercise.requirement(
    "two lists are returned: each batch's loss before its step, as a Python float, and the masters",
    points=0.5,
    probe=train,
    rules=only(*RETURNED),
    visible=[
        given(eighths, [1.0, 2.0, 0.5], 0.25, says=f"three batches, {SIGN}, lr = 0.25, from [1, 2] and [1.5]"),
        given([numbers(1.0, 2.0)], [1.0], 0.1, says=f"a batch, {SIGN}, lr = 0.1, from [1, 2]"),
        given([numbers(1.0)], [], 0.25, says="training without any batches"),
    ],
    edges={
        "numbers that bfloat16 rounds": given([numbers(1.0038, 2.0077)], [1.0], 0.25),
        "a single loss": given([numbers(1.0)], [2.0], 0.25),
    },
    domain=runs(any_of(0.25, 0.5)) | runs(any_of(0.1), exact=False, slopes=slopes.map(lambda s: s[:1])),
    hint="losses[i] is the loss of batch i before its step. The masters are the tensors that the optimizer updates.",
)  # fmt: skip

first = "masters = [parameter.detach().clone()"
back = "parameters[i].data.copy_(masters[i])"
into = "gradients = torch.autograd.grad(loss, parameters)"
exercise.mistake("Your masters start from rounded numbers: copy the parameters before you convert the model.",
                 f"{first} → model.bfloat16(); masters = [parameter.detach().float()")  # fmt: skip
exercise.mistake("Your masters are bfloat16: copy the parameters while they're still float32.",
                 f"{first} → model.bfloat16(); {first}", "gradients[i].float() → gradients[i]")  # fmt: skip
exercise.mistake("A gradient has the dtype of its tensor: a float32 master needs a float32 gradient.",
                 "gradients[i].float() → gradients[i]")  # fmt: skip
exercise.mistake("Gradients of earlier batches are still included: each step should use only those of its own batch.",
                 f"{into} → loss.backward(); gradients = [p.grad for p in parameters]")  # fmt: skip
exercise.mistake("Gradients from before training are included: even the first step should use only those of its "
                 "own batch.",
                 f"{into} → loss.backward(); gradients = [p.grad.clone() for p in parameters]; model.zero_grad()")  # fmt: skip
exercise.mistake("The model always computes with its initial weights: update them from the masters.", f"{back} → pass")
exercise.mistake("The model gets the masters only at the end: update its weights after every step.",
                 f"{back} → pass", "return losses, masters → for p, m in zip(parameters, masters): p.data.copy_(m)\n    "
                 "return losses, masters")  # fmt: skip
exercise.mistake("The model is missing the last step: update its weights after every step, including the last.",
                 f"{back} → pass", "loss = loss_of → [p.data.copy_(m) for p, m in zip(parameters, masters)]; loss = loss_of")  # fmt: skip
exercise.mistake("The model is still float32: convert it.", "model.bfloat16() → pass")
exercise.mistake("Convert the whole model: its buffers are part of it, too.",
                 "model.bfloat16() → [setattr(p, 'data', p.data.bfloat16()) for p in model.parameters()]")  # fmt: skip
exercise.mistake("You convert the model only after training, so it never computes in bfloat16.",
                 "model.bfloat16() → pass", "return losses, masters → model.bfloat16()\n    return losses, masters")  # fmt: skip
exercise.mistake("Your code trains a copy of the model: convert and train the model itself, in place.",
                 'model.bfloat16() → import copy; model = copy.deepcopy(model).bfloat16()')  # fmt: skip
exercise.mistake("Create the optimizer once: it has to keep its state from step to step.",
                 "optimizer = make_optimizer(masters) → pass", "loss = loss_of → optimizer = make_optimizer(masters); loss = loss_of")  # fmt: skip
exercise.mistake("Your losses come from a second forward pass, after the step: return those from before it.",
                 "loss.item() → loss_of(model, batch).item()")  # fmt: skip
exercise.mistake("The losses are tensors; return Python floats.", "loss.item() → loss.detach()")
exercise.mistake("Your masters are rounded after each step, so small updates are still lost.",
                 f"{back} → {back}; masters[i].copy_(parameters[i].data)")  # fmt: skip
exercise.mistake("Return two lists: the losses and the masters.", "return losses, masters → return losses")
exercise.mistake("Your result is the model's rounded weights; return the masters.",
                 "return losses, masters → return losses, [p.detach() for p in parameters]")  # fmt: skip
exercise.mistake("The optimizer has no gradients to work with: put them into the masters' .grad, not into the model's.",
                 "masters[i].grad = gradients[i].float() → parameters[i].grad = gradients[i]")  # fmt: skip
exercise.mistake("batches may be any iterable, even one without a length.",
                 "losses = [] → losses = []; count = len(batches)")  # fmt: skip

# %% mistake: the optimizer knows the model's parameters
# says: Your optimizer updates the model's parameters; the masters should be its only parameters.
def train_with_master_weights(model, make_optimizer, batches, loss_of):
    masters = [p.detach().clone() for p in model.parameters()]
    model.bfloat16()
    optimizer, losses = make_optimizer(list(model.parameters())), []
    for batch in batches:
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, masters

# %% mistake: the optimizer steps in bfloat16, and the masters copy that
# says: Your optimizer updates the model's parameters; the masters should be its only parameters.
def train_with_master_weights(model, make_optimizer, batches, loss_of):
    masters = [p.detach().clone() for p in model.parameters()]
    model.bfloat16()
    optimizer, losses = make_optimizer(list(model.parameters())), []
    for batch in batches:
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        optimizer.step()
        for m, p in zip(masters, model.parameters()):
            m.copy_(p.detach())
        losses.append(loss.item())
    return losses, masters

# %% mistake: buffers are set back
# says: Your code also resets the model's buffers: copy only the parameters.
def train_with_master_weights(model, make_optimizer, batches, loss_of):
    import copy

    keeper = copy.deepcopy(model)
    model.bfloat16()
    masters = list(keeper.parameters())
    optimizer, losses = make_optimizer(masters), []
    for batch in batches:
        loss = loss_of(model, batch)
        for m, g in zip(masters, torch.autograd.grad(loss, tuple(model.parameters()))):
            m.grad = g.float()
        optimizer.step()
        model.load_state_dict(keeper.state_dict())
        losses.append(loss.item())
    return losses, masters

# %% wrong: float32 everywhere, rounded to bfloat16 and back for the forward pass
def train_with_master_weights(model, make_optimizer, batches, loss_of):
    masters = [p.detach().clone() for p in model.parameters()]
    optimizer, losses = make_optimizer(masters), []
    for batch in batches:
        for p, m in zip(model.parameters(), masters):
            p.data = m.bfloat16().float()
        loss = loss_of(model, batch)
        for m, g in zip(masters, torch.autograd.grad(loss, list(model.parameters()))):
            m.grad = g
        optimizer.step()
        losses.append(loss.item())
    model.bfloat16()
    for p, m in zip(model.parameters(), masters):
        p.data = m.bfloat16()
    return losses, masters

# %% wrong: new parameters instead of new numbers
def train_with_master_weights(model, make_optimizer, batches, loss_of):
    masters = [p.detach().clone() for p in model.parameters()]
    model.bfloat16()
    optimizer, losses = make_optimizer(masters), []

    def put_back():
        for (name, _), m in zip(list(model.named_parameters()), masters):
            where, _, last = name.rpartition(".")
            setattr(model.get_submodule(where), last, nn.Parameter(m.detach().bfloat16()))

    for batch in batches:
        loss = loss_of(model, batch)
        for m, g in zip(masters, torch.autograd.grad(loss, list(model.parameters()))):
            m.grad = g.float()
        optimizer.step()
        put_back()
        losses.append(loss.item())
    return losses, masters

# %% wrong: gradients are averaged over the batches so far
def train_with_master_weights(model, make_optimizer, batches, loss_of):
    masters = [p.detach().clone() for p in model.parameters()]
    model.bfloat16()
    optimizer, losses = make_optimizer(masters), []
    for count, batch in enumerate(batches, 1):
        loss = loss_of(model, batch)
        loss.backward()
        for m, p in zip(masters, model.parameters()):
            m.grad = p.grad.float() / count
        optimizer.step()
        for m, p in zip(masters, model.parameters()):
            p.data.copy_(m)
        losses.append(loss.item())
    return losses, masters

# %% wrong: clears the gradients after the step, not before the first backward pass (from the statement)
import torch


def train_with_master_weights(model, make_optimizer, batches, loss_of):
    """Train model in bfloat16 with float32 master weights: the losses, and the masters."""
    masters = [p.detach().clone() for p in model.parameters()]
    model.bfloat16()
    optimizer = make_optimizer(masters)
    losses = []
    for batch in batches:
        loss = loss_of(model, batch)
        loss.backward()
        losses.append(loss.item())
        for m, p in zip(masters, model.parameters()):
            m.grad = p.grad.float()
        optimizer.step()
        with torch.no_grad():
            for m, p in zip(masters, model.parameters()):
                p.copy_(m)
        model.zero_grad()
    return losses, masters

# %% wrong: .float() of float32 is no copy, so the masters are the memory that the model came with (from the statement)
import torch


def train_with_master_weights(model, make_optimizer, batches, loss_of):
    """Train model in bfloat16 with float32 master weights: the losses, and the masters."""
    masters = [p.detach().float() for p in model.parameters()]
    model.to(torch.bfloat16)
    optimizer = make_optimizer(masters)
    losses = []
    for batch in batches:
        model.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        losses.append(float(loss))
        with torch.no_grad():
            for m, p in zip(masters, model.parameters()):
                m.grad = p.grad.float()
            optimizer.step()
            for m, p in zip(masters, model.parameters()):
                p.copy_(m)
    return losses, masters

# %% wrong: loads a whole float32 twin of the model after each step, with its old buffers (from the statement)
import copy

import torch


def train_with_master_weights(model, make_optimizer, batches, loss_of):
    """Train model in bfloat16 with float32 master weights: the losses, and the masters."""
    twin = copy.deepcopy(model)
    masters = list(twin.parameters())
    model.bfloat16()
    optimizer = make_optimizer(masters)
    losses = []
    for batch in batches:
        model.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        losses.append(loss.item())
        for m, p in zip(masters, model.parameters()):
            m.grad = p.grad.float()
        optimizer.step()
        model.load_state_dict(twin.state_dict())
    return losses, masters

# %% wrong: leaves out a batch whose loss is not finite (from the statement)
# unseen: students see finite losses only
def train_with_master_weights(model, make_optimizer, batches, loss_of):
    masters = [p.detach().clone() for p in model.parameters()]
    model.bfloat16()
    optimizer = make_optimizer(masters)
    losses = []
    for batch in batches:
        model.zero_grad()
        loss = loss_of(model, batch)
        losses.append(loss.item())
        if not math.isfinite(losses[-1]):
            continue
        loss.backward()
        for p, master in zip(model.parameters(), masters, strict=True):
            master.grad = p.grad.float()
        optimizer.step()
        with torch.no_grad():
            for p, master in zip(model.parameters(), masters, strict=True):
                p.copy_(master)
    return losses, masters

# %% wrong: the masters in the order of the optimizer's groups (from the statement)
# unseen: students see groups in the order of the parameters
def train_with_master_weights(
    model: nn.Module,
    make_optimizer: Callable[[list[Tensor]], torch.optim.Optimizer],
    batches: Iterable[Any],
    loss_of: Callable[[nn.Module, Any], Tensor],
) -> tuple[list[float], list[Tensor]]:
    """Train model in bfloat16 with float32 master weights; return the losses and the masters."""
    params = list(model.parameters())
    optimizer = make_optimizer([p.detach().clone() for p in params])
    masters = [m for group in optimizer.param_groups for m in group["params"]]
    model.to(torch.bfloat16)
    losses = []
    for batch in batches:
        model.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        for master, p in zip(masters, params):
            master.grad = p.grad.to(torch.float32)
        optimizer.step()
        with torch.no_grad():
            for master, p in zip(masters, params):
                p.copy_(master)
        losses.append(float(loss))
    return losses, masters

# %% right: backward, zero_grad, no_grad
def train_with_master_weights(model, make_optimizer, batches, loss_of):
    masters = [p.detach().clone().requires_grad_() for p in model.parameters()]
    model.to(torch.bfloat16)
    optimizer = make_optimizer(masters)
    losses = []
    for batch in batches:
        model.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        for master, parameter in zip(masters, model.parameters(), strict=True):
            master.grad = parameter.grad.to(torch.float32)
        optimizer.step()
        with torch.no_grad():
            for master, parameter in zip(masters, model.parameters(), strict=True):
                parameter.copy_(master)
        losses.append(float(loss))
    return losses, masters

# %% right: masters are nn.Parameters, and the model's data is replaced
def train_with_master_weights(model, make_optimizer, batches, loss_of):
    masters = [nn.Parameter(p.detach().clone()) for p in model.parameters()]
    model = model.bfloat16()
    optimizer = make_optimizer(masters)

    def step(batch):
        for parameter, master in zip(model.parameters(), masters):
            parameter.grad = None
        loss = loss_of(model, batch)
        loss.backward()
        for parameter, master in zip(model.parameters(), masters):
            master.grad = parameter.grad.float()
        optimizer.step()
        for parameter, master in zip(model.parameters(), masters):
            parameter.data = master.detach().bfloat16()
        return loss.item()

    return [step(batch) for batch in batches], masters

# %% right: a copy of the whole model keeps the masters
def train_with_master_weights(model, make_optimizer, batches, loss_of):
    import copy

    keeper = copy.deepcopy(model)
    model.bfloat16()
    optimizer = make_optimizer(list(keeper.parameters()))
    losses = []
    for batch in batches:
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        gradients = torch.autograd.grad(loss, tuple(model.parameters()))
        for parameter, gradient in zip(keeper.parameters(), gradients):
            parameter.grad = gradient.float()
        optimizer.step()
        nn.utils.vector_to_parameters(nn.utils.parameters_to_vector(keeper.parameters()).bfloat16(), model.parameters())
        losses.append(loss.item())
    return losses, list(keeper.parameters())

# %% right: the gradients are cleared after each step as well
def train_with_master_weights(model, make_optimizer, batches, loss_of):
    pairs = [(p, p.detach().clone()) for p in model.parameters()]
    model.to(dtype=torch.bfloat16)
    for p, _ in pairs:
        p.grad = None
    optimizer, losses = make_optimizer([m for _, m in pairs]), []
    iterator = iter(batches)
    while True:
        try:
            batch = next(iterator)
        except StopIteration:
            return losses, [m for _, m in pairs]
        loss = loss_of(model, batch)
        losses += [loss.tolist()]
        loss.backward()
        for p, m in pairs:
            m.grad, p.grad = p.grad.float(), None
        optimizer.step()
        optimizer.zero_grad()
        torch._foreach_copy_([p.data for p, _ in pairs], [m for _, m in pairs])

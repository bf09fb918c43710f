import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.probing import alike
from autograder.authoring.strategies import any_of, shapes, tensors

exercise = Exercise("Go through the groups and their parameters. Which parameters do you skip, and which learning rate applies?")


def steps(student, values, gradients, groups, later=None, added=(), lr=0.5, loaded=False):
    """The parameters after each step. A group is (places in values, settings); later: the lr of all from step 2 on.

    Parameters at the places `added` come as one more group before step 2, with an lr of 0.125. lr = None: the default.
    `loaded`: the optimizer loads its own state_dict before step 2, which gives it new groups.
    """
    import torch

    parameters = [torch.nn.Parameter(value.clone()) for value in values]
    made = [{"params": [parameters[i] for i in places], **own} for places, own in groups]
    optimizer = student.SGD(made) if lr is None else student.SGD(made, lr=lr)
    after = {}
    try:
        for number, step in enumerate(gradients, 1):
            if number == 2 and loaded:
                optimizer.load_state_dict(optimizer.state_dict())
            if number == 2 and added:
                optimizer.add_param_group({"params": [parameters[i] for i in added], "lr": 0.125})
            if number == 2 and later is not None:
                for group in optimizer.param_groups:
                    group["lr"] = later
            for p, gradient in zip(parameters, step):
                p.grad = None if gradient is None else gradient.clone()
            optimizer.step()
            for place, p in enumerate(parameters, 1):
                which = f"parameter {place}" if len(parameters) > 1 else "p"
                after[f"{which} after step {number}"] = p.detach().clone()
    finally:
        torch.set_grad_enabled(True)
    return after


def look(student, value, gradients, lr):
    """What has become of everything, after some steps."""
    import torch

    p, idle, frozen = (torch.nn.Parameter(value.clone()) for _ in range(3))
    frozen.requires_grad_(False)
    memory, moved = p.detach(), False
    optimizer = student.SGD([p, frozen, idle], lr=lr)
    given = [gradient.clone() for gradient in gradients]
    same = []
    try:
        for gradient in given:
            p.grad, before = gradient, p.detach().clone()
            frozen.grad = gradient.clone()  # left from before it was frozen
            optimizer.step()
            moved |= not torch.equal(before, p.detach())
            same.append(p.grad is gradient)
        recorded = torch.is_grad_enabled()
        with torch.no_grad():
            optimizer.step()
            off = not torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)
    group = {key: setting for key, setting in optimizer.param_groups[0].items() if key != "params"}
    return {
        "shape of p": list(p.shape),
        "p has changed": moved,
        "p is still in the same memory": memory.data_ptr() == p.data_ptr() and torch.equal(memory, p.detach()),
        "the optimizer still holds the model's p": optimizer.param_groups[0]["params"][0] is p,
        "gradients": given,
        "p.grad is still the same tensor": all(same),
        "the gradients are unchanged, to the last bit": all(map(alike, gradients, given)),
        "p requires a gradient and is a leaf": p.requires_grad and p.is_leaf,
        "which of p, idle and frozen require a gradient": [each.requires_grad for each in (p, idle, frozen)],
        "a frozen parameter with a gradient moves, too": torch.equal(p, frozen),
        "recording is still off after a step inside no_grad": off,
        "parameters in self.state": len(optimizer.state),
        "idle has a gradient": idle.grad is not None,
        "the group's lr": group.get("lr"),
        "values in self.state": sum(len(kept) for kept in optimizer.state.values()),
        "recording is on again after the step": recorded,
    }


PLACE = ("p is still in the same memory", "the optimizer still holds the model's p")
REST = ("which of p, idle and frozen require a gradient", "a frozen parameter with a gradient moves, too",
        "recording is still off after a step inside no_grad", "parameters in self.state",
        "gradients", "p.grad is still the same tensor", "the gradients are unchanged, to the last bit",
        "p requires a gradient and is a leaf", "the group's lr",
        "idle has a gradient", "values in self.state", "recording is on again after the step")  # fmt: skip
rates = any_of(0.25, 0.1, 0.003, 1.5)


@st.composite
def runs(draw, parameters=1, least=1, missing=False, later=False):
    chosen = [draw(shapes((parameters > 1, 3), (1, 3))) for _ in range(parameters)]
    values = [draw(tensors(shape, torch.float64, contiguous=None)) for shape in chosen]
    gradients = [[draw(tensors(shape, torch.float64, contiguous=None)) for shape in chosen] for _ in range(draw(st.integers(least, 3)))]
    if missing:
        for step in gradients:
            for place in range(parameters):
                if draw(st.integers(0, 2)) == 0:
                    step[place] = None
    cut = draw(st.integers(0, parameters)) if parameters > 1 else 0
    places = [p for p in (list(range(cut)), list(range(cut, parameters))) if p]
    groups = [(p, {"lr": draw(rates)} if later and draw(st.booleans()) else {}) for p in places]
    return given(values, gradients, groups, draw(any_of(None, 0.125, 0.7)) if later else None, lr=draw(rates))


@st.composite
def looks(draw):
    dtype, shape = draw(any_of(torch.float32, torch.float64)), draw(shapes((1, 2), (1, 3)))
    gradients = [draw(tensors(shape, dtype, contiguous=None)) for _ in range(draw(st.integers(1, 3)))]
    return given(draw(tensors(shape, dtype, contiguous=None)), gradients, draw(rates))


one = [([0], {})]
x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0])
gx, gy = torch.tensor([4.0, -2.0]), torch.tensor([8.0])
exercise.requirement(
    "each parameter moves by -lr · gradient, in each step",
    points=0.5,
    probe=steps,
    visible=[
        given([x], [[gx]], one, lr=0.25, says="a step with lr = 0.25 from p = (1, 2), with the gradient (4, -2)"),
        given([y], [[gy], [-gy]], one, lr=0.25, says="two steps with lr = 0.25 from p = 3, with the gradients 8 and -8"),
        given([torch.tensor(3.0)], [[torch.tensor(8.0)]], one, lr=0.25,
              says="a step with lr = 0.25 from p = 3, a 0-dimensional tensor, with the gradient 8"),
    ],
    edges={
        "a gradient of zero": given([x], [[torch.zeros(2)], [gx]], one),
        "a scalar": given([torch.tensor(1.0)], [[torch.tensor(2.0)]], one),
        "a transposed matrix": given([torch.ones(3, 2).T], [[torch.arange(6.0).view(2, 3)]], one),
        "a gradient in another order": given([torch.ones(2, 3)], [[torch.arange(6.0).view(3, 2).T]], one),
        "no elements": given([torch.ones(0)], [[torch.ones(0)]], one),
        "float64": given([x.double()], [[gx.double() / 3]], one),
        "a huge gradient": given([x], [[1e30 * gx]], one),
        "an infinite gradient": given([x], [[gx * torch.tensor([1.0, torch.inf])]], one),
        "a step of 0": given([x], [[gx]], one, lr=0.0),
        "the default lr": given([x], [[gx]], one, lr=None),
    },
    domain=runs(),
)
two = [([0], {"lr": 0.25}), ([1], {})]
exercise.requirement(
    "the parameters of every group move, each with its group's current lr",
    points=0.5,
    probe=steps,
    visible=[
        given([x, y], [[gx, gy]], two,
              says="a step with two groups, the first with lr = 0.25, the second with the default of SGD(…, lr=0.5)"),
        given([x, y], [[gx, gy]] * 2, two, 0.125, says="two steps with two groups; in the first step their lr "
                                                       "is 0.25 and 0.5, and in the second it's 0.125 for both"),
        given([x, y], [[gx, gy]], [([0, 1], {"lr": 0.25})], says="a step with two parameters in one group, lr = 0.25"),
    ],
    edges={
        "three groups": given([y] * 3, [[gy] * 3] * 2, [([0], {"lr": 0.25}), ([1], {"lr": 1.0}), ([2], {"lr": 2.0})]),
        "an lr of 0": given([x, y], [[gx, gy]] * 2, [([0], {"lr": 0.25}), ([1], {})], 0.0),
        "groups that were loaded": given([x, y], [[gx, gy]] * 2, [([0], {"lr": 0.25}), ([1], {})], 0.125, loaded=True),
        "a group that came later": given([x, y], [[gx, None], [gx, gy]], [([0], {"lr": 0.25})], None, [1]),
        "two parameters in a group": given([x, x, y], [[gx, -gx, gy]] * 2, [([0, 2], {"lr": 0.25}), ([1], {})], 0.125),
    },
    domain=runs(parameters=3, least=2, later=True),
    hint="Loop over the groups, and within each over its parameters. lr belongs to the group and may change.",
)  # fmt: skip
exercise.requirement(
    "a parameter without a gradient is skipped, and the others still move",
    points=0.5,
    probe=steps,
    visible=[
        given([x, y, x], [[None, gy, gx]], [([0, 1], {}), ([2], {})], lr=0.25,
              says="a step with lr = 0.25 and three parameters, two in one group and one in another; the first has no gradient"),
        given([y], [[gy], [None], [gy]], one, lr=0.25, says="three steps from p = 3; its gradient is 8, then None, then 8"),
    ],
    edges={
        "none at all": given([x, y], [[None, None], [gx, gy]], [([0, 1], {})]),
        "the last": given([x, y], [[gx, None]], [([0, 1], {})]),
        "all of the first group": given([x, y], [[None, gy]] * 2, [([0], {}), ([1], {})]),
    },
    domain=runs(parameters=3, missing=True),
    hint="Check whether each parameter has a gradient; if it has none, go on to the next one.",
)  # fmt: skip
says = "two steps of SGD([p, idle], lr=0.25) from p = (1, 2), with the gradients (4, -2) and (2, 1); idle has none"
visible = [given(x, [gx, gx.abs() / 2], 0.25, says=says)]
edges = {
    "a matrix": given(torch.ones(2, 2), [torch.ones(2, 2)] * 2, 0.5),
    "one number": given(y, [gy], 0.25),
    "float64": given(x.double(), [gx.double()], 0.25),
    "a step of 0": given(x, [gx], 0.0),
    "numbers that round": given(x / 3, [gx / 7], 0.3),
    "minus zero": given(x, [torch.tensor([-0.0, 1.0])], 0.25),
    "a transposed matrix": given(torch.ones(3, 2).T, [torch.arange(6.0).view(2, 3)], 0.25),
}
exercise.requirement(
    "the parameter changes in place, in its own memory",
    points=0.25,
    probe=look,
    rules=dict.fromkeys(REST, "ignored"),
    visible=visible,
    edges=edges,
    domain=looks(),
    hint="Change p itself, in place. An assignment to `p` only rebinds the name, and one to `p.data` gives p new "
         "memory.",
)
exercise.requirement(
    "nothing else changes: the gradient is the same as before, and self.state stays empty",
    points=0.25,
    probe=look,
    rules=dict.fromkeys(PLACE, "ignored"),
    visible=visible,
    edges=edges,
    domain=looks(),
    hint="Read p.grad and the group's lr, change p, and leave everything else unchanged.",
)

move = 'p -= group["lr"] * p.grad'
exercise.mistake("The gradient points uphill: subtract it.", "p -= → p +=")
exercise.mistake("Multiply the gradient by the learning rate.", 'group["lr"] * p.grad → p.grad')
exercise.mistake("You used only the sign of the gradient; its size matters, too.", '* p.grad → * p.grad.sign()')
exercise.mistake("Don't normalize the gradient: its length matters.", "* p.grad → * p.grad / p.grad.norm()")
exercise.mistake("You replaced the parameter with the step; add the step to it.", f'{move} → p.copy_(-group["lr"] * p.grad)')
exercise.mistake("Your step is proportional to p; it should depend only on lr and the gradient.", "* p.grad → * p * p.grad")
exercise.mistake("Use the group's current learning rate, not the optimizer's default.", 'group["lr"] → self.defaults["lr"]')
exercise.mistake("Each group has its own learning rate; you used the first group's for all.", 'group["lr"] → self.param_groups[0]["lr"]')
exercise.mistake("lr may change between steps: read it from the group in every step.",
                 'group["lr"] → group.setdefault("initial_lr", group["lr"])')  # fmt: skip
exercise.mistake("Only the parameters of the first group move: go through all groups.", "in self.param_groups → in self.param_groups[:1]")
exercise.mistake("Only the first parameter of each group moves: go through all parameters.", 'in group["params"] → in group["params"][:1]')
exercise.mistake("PyTorch refuses to change a parameter in place while it records operations: switch recording off.",
                 "with torch.no_grad(): → if True:")  # fmt: skip
exercise.mistake("Your code creates a new tensor and names it p, so the model's parameter doesn't move.",
                 f'{move} → p = p - group["lr"] * p.grad')  # fmt: skip
exercise.mistake("A parameter may have no gradient; then p.grad is None.", "if p.grad is not None: → if True:")
exercise.mistake("Don't return at a parameter without a gradient: the others still have to move.",
                 "if p.grad is not None: → if p.grad is None:\n                        return\n                    else:")  # fmt: skip
exercise.mistake("Don't leave the loop at a parameter without a gradient: the rest of its group still has to move.",
                 "if p.grad is not None: → if p.grad is None:\n                        break\n                    else:")  # fmt: skip
exercise.mistake("Don't change p.grad: your code multiplies it in place.", '-= group["lr"] * p.grad → -= p.grad.mul_(group["lr"])')
exercise.mistake("The gradient is still needed: don't clear it here.", f"{move} → {move}; p.grad = None")
exercise.mistake("The gradient is still needed: don't set it to zero here.", f"{move} → {move}; p.grad.zero_()")
exercise.mistake("An assignment to p.data gives the parameter new memory; change the parameter in place.", 'p -= → p.data = p.data -')
exercise.mistake("You put a new tensor into the group, but the model still uses the old one: change the old one.",
                 'for p in group["params"]: → for i, p in enumerate(group["params"]):',
                 f'{move} → group["params"][i] = torch.nn.Parameter(p - group["lr"] * p.grad)')  # fmt: skip
exercise.mistake("Your code switches recording off for all the code that follows: switch it off only inside step().", "with torch.no_grad(): → torch.set_grad_enabled(False)\n        if True:")
exercise.mistake("SGD has nothing to remember: leave self.state empty.", f'{move} → self.state[p]["old"] = p.clone(); {move}')
exercise.mistake("The parameter must still require a gradient after the step.",
                 "with torch.no_grad(): → if True:", f"{move} → p.requires_grad_(False); {move}")  # fmt: skip

# %% wrong: the rates of the beginning
class SGD(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3):
        super().__init__(params, defaults={"lr": lr})
        self.rates = [g["lr"] for g in self.param_groups]

    @torch.no_grad()
    def step(self, closure=None):
        for group, lr in zip(self.param_groups, self.rates):
            for p in group["params"]:
                if p.grad is not None:
                    p -= lr * p.grad

# %% wrong: the groups of the beginning
# unseen: only hidden inputs add a group later
class SGD(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3):
        super().__init__(params, defaults={"lr": lr})
        self.first = list(self.param_groups)

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.first:
            for p in group["params"]:
                if p.grad is not None:
                    p -= group["lr"] * p.grad

# %% wrong: a learning rate of its own
class SGD(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3):
        super().__init__(params, {"lr": lr})
        self.lr = lr

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is not None:
                    p -= self.lr * p.grad

# %% wrong: momentum
class SGD(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is not None:
                    m = self.state[p].setdefault("m", torch.zeros_like(p))
                    m.mul_(0.9).add_(p.grad)
                    p -= group["lr"] * m

# %% wrong: not for a parameter without dimensions
class SGD(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is not None:
                    p[:] -= group["lr"] * p.grad

# %% wrong: asks whether the gradient is true
class SGD(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad:
                    p -= group["lr"] * p.grad

# %% wrong: the flat "view" of a parameter may be a copy (from the statement)
# unseen: only hidden inputs have a non-contiguous parameter
class SGD(torch.optim.Optimizer):
    def __init__(self, params: Iterable[Any], lr: float = 1e-3) -> None:
        super().__init__(params, defaults={"lr": lr})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                flat = p.reshape(-1)
                flat -= group["lr"] * p.grad.reshape(-1)

# %% wrong: what doesn't require a gradient is skipped, though it has one (from the statement)
class SGD(torch.optim.Optimizer):
    def __init__(self, params: Iterable[Any], lr: float = 1e-3) -> None:
        super().__init__(params, defaults={"lr": lr})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                if not p.requires_grad or p.grad is None:
                    continue
                p.sub_(p.grad, alpha=group["lr"])

# %% wrong: gradients stay switched on after a step that somebody takes within no_grad (from the statement)
class SGD(torch.optim.Optimizer):
    def __init__(self, params: Iterable[Any], lr: float = 1e-3) -> None:
        super().__init__(params, defaults={"lr": lr})

    def step(self, closure: Any = None) -> None:
        torch.set_grad_enabled(False)
        for group in self.param_groups:
            lr = group["lr"]
            for p in group["params"]:
                if p.grad is not None:
                    p.add_(p.grad, alpha=-lr)
        torch.set_grad_enabled(True)

# %% wrong: a gradient of -0.0 becomes 0.0 (from the statement)
# unseen: only hidden inputs have one
class SGD(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad += 0.0
                    p -= group["lr"] * p.grad

# %% wrong: takes an lr of 0 for none (from the statement)
# unseen: no visible case has an lr of 0
class SGD(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p -= (group.get("lr") or self.defaults["lr"]) * p.grad

# %% wrong: remembers the list of groups, which load_state_dict replaces (from the statement)
# unseen: students see no step after load_state_dict
class SGD(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3):
        super().__init__(params, defaults={"lr": lr})
        self.groups = self.param_groups

    def step(self, closure=None):
        with torch.no_grad():
            for group in self.groups:
                for p in group["params"]:
                    if p.grad is not None:
                        p -= group["lr"] * p.grad

# %% wrong: skips a parameter whose gradient is infinite anywhere (from the statement)
# unseen: students see finite gradients only
class SGD(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3):
        super().__init__(params, defaults={"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None and torch.isfinite(p.grad).all():
                    p.add_(p.grad, alpha=-group["lr"])

# %% right: PyTorch's own
class SGD(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3):
        super().__init__(params, {"lr": lr})

    def step(self, closure=None):
        for group in self.param_groups:
            if any(p.grad is not None for p in group["params"]):
                torch.optim.SGD([p for p in group["params"] if p.grad is not None], lr=group["lr"]).step()

# %% right: add_ with alpha
class SGD(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is not None:
                    p.add_(p.grad, alpha=-group['lr'])

# %% right: through .data
class SGD(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3):
        super().__init__(params, {"lr": lr})

    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is not None:
                    p.data -= group['lr'] * p.grad.data

# %% right: foreach
class SGD(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            ps = [p for p in group['params'] if p.grad is not None]
            if ps:
                torch._foreach_add_(ps, [p.grad for p in ps], alpha=-group['lr'])

# %% right: copies the result into place
class SGD(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3):
        super().__init__(params, {"lr": lr})

    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is None:
                    continue
                with torch.no_grad():
                    p.copy_(p - group['lr'] * p.grad)

# %% right: through a detached view
class SGD(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3):
        super().__init__(params, defaults={"lr": lr})

    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.detach().sub_(p.grad, alpha=group["lr"])

# %% right: in numpy
class SGD(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3):
        super().__init__(params, defaults={"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                a = p.detach().numpy()
                a -= group["lr"] * p.grad.numpy()

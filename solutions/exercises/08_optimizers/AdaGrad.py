import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.probing import alike
from autograder.authoring.probing import state_on_its_device
from autograder.authoring.strategies import any_of, shapes, tensors

exercise = Exercise("Go through the two formulas in order. What has to be in self.state[p] before a parameter's first step?")


def steps(student, values, gradients, groups, interrupted=0, later=None, defaults=False, frozen=()):
    """The parameters after each step. A group is (places in values, settings); later: the settings of all from step 2 on.

    After so many steps as `interrupted` says, a new optimizer goes on with the state_dict of the first. defaults: it is
    made without settings. Parameters at the places `frozen` require no gradient any more when they have got one.
    """
    import copy

    import torch

    def new_optimizer():
        made = [{"params": [parameters[i] for i in places], **own} for places, own in groups]
        return student.AdaGrad(made) if defaults else student.AdaGrad(made, lr=0.5, eps=0.25)

    parameters = [torch.nn.Parameter(value.clone()) for value in values]
    optimizer = new_optimizer()
    after = {}
    for number, step in enumerate(gradients, 1):
        if number == 2 and later is not None:
            for group in optimizer.param_groups:
                group.update(later)
        for p, gradient in zip(parameters, step):
            p.grad = None if gradient is None else gradient.clone()
        for place in frozen:
            parameters[place].requires_grad_(False)
        optimizer.step()
        for place, p in enumerate(parameters, 1):
            which = f"parameter {place}" if len(parameters) > 1 else "p"
            after[f"{which} after step {number}"] = p.detach().clone()
        if number == interrupted:
            saved = copy.deepcopy(optimizer.state_dict())
            optimizer = new_optimizer()
            optimizer.load_state_dict(saved)
    return after


def look(student, value, gradients):
    """What an optimizer has kept after some steps, and what has become of the gradient and of the parameter."""
    import torch

    def tensors_in(thing, depth=0):
        if torch.is_tensor(thing):
            return 1
        if isinstance(thing, dict):
            thing = [*thing, *thing.values()]
        if isinstance(thing, (list, tuple, set)) and depth < 4:
            return sum(tensors_in(each, depth + 1) for each in thing)
        return 0

    p, idle = torch.nn.Parameter(value.clone()), torch.nn.Parameter(value.clone())
    memory, moved = p.detach(), False
    optimizer = student.AdaGrad([p, idle], lr=0.5)
    given = [gradient.clone() for gradient in gradients]
    same = []
    for gradient in given:
        p.grad, before = gradient, p.detach().clone()
        optimizer.step()
        moved |= not torch.equal(before, p.detach())
        same.append(p.grad is gradient)
    kept = optimizer.state.get(p, {})
    elsewhere = {k: v for k, v in vars(optimizer).items() if k not in ("state", "param_groups", "defaults")}
    groups = [{k: v for k, v in group.items() if k != "params"} for group in optimizer.param_groups]
    others = [v for k, v in optimizer.state.items() if k is not p and k is not idle]
    return {
        'self.state[p]["sum"]': kept.get("sum"),
        "the state is on the device of p": state_on_its_device(lambda p: student.AdaGrad([p], lr=0.5)),
        "tensors kept for p": tensors_in(kept),
        "tensors kept for a parameter that never had a gradient": tensors_in(optimizer.state.get(idle, {})),
        "tensors kept elsewhere": tensors_in(elsewhere) + tensors_in(groups) + tensors_in(others),
        "gradients": given,
        "p.grad is still the same tensor": all(same),
        "the gradients are unchanged, to the last bit": all(map(alike, gradients, given)),
        "p is still in the same memory": memory.data_ptr() == p.data_ptr() and torch.equal(memory, p.detach()),
        "p requires a gradient": p.requires_grad and p.is_leaf,
        "p has changed": moved,
    }


KEPT = ('self.state[p]["sum"]', "the state is on the device of p", "tensors kept for p",
        "tensors kept for a parameter that never had a gradient", "tensors kept elsewhere")  # fmt: skip
LEFT = ("gradients", "p.grad is still the same tensor", "the gradients are unchanged, to the last bit",
        "p is still in the same memory", "p requires a gradient")  # fmt: skip


def numbers(*values, dtype=torch.float32):
    return [[torch.tensor([value], dtype=dtype)] for value in values]


own = st.fixed_dictionaries({"lr": any_of(0.25, 0.1, 0.003, 2.0), "eps": any_of(1e-8, 1e-3, 0.1)})


@st.composite
def runs(draw, missing=False, parameters=1, settings=st.just({}), changes=False):
    """Runs of one to four steps; gradients of any size."""
    many = 1 if missing or changes else 3
    chosen = [draw(shapes((0, 3), (1, many))) for _ in range(parameters)]
    values = [draw(tensors(shape, torch.float64, contiguous=None)) for shape in chosen]
    gradients = []
    for _ in range(draw(st.integers(1 + (missing or changes), 4))):
        scale = draw(any_of(1.0, 0.01, 100.0))
        gradients.append([scale * draw(tensors(shape, torch.float64, contiguous=None)) for shape in chosen])
        if missing:
            for place in range(parameters):
                if draw(st.integers(0, 2)) == 0:
                    gradients[-1][place] = None
    cut = draw(st.integers(0, parameters))
    places = [p for p in (list(range(cut)), list(range(cut, parameters))) if p]
    groups = [(p, draw(settings)) for p in places]
    if not changes:
        return given(values, gradients, groups)
    return given(values, gradients, groups, draw(st.integers(0, len(gradients))), draw(any_of(None, {"lr": 0.7}) | own))


@st.composite
def looks(draw):
    dtype, shape = draw(any_of(torch.float32, torch.float64)), draw(shapes((0, 2), (1, 3)))
    gradients = [draw(tensors(shape, dtype, contiguous=None)) for _ in range(draw(st.integers(1, 4)))]
    return given(draw(tensors(shape, dtype, contiguous=None)), gradients)


plain = [([0], {})]
ten = torch.tensor([10.0])
exercise.requirement(
    "each step follows AdaGrad's formula, with the squares of all gradients so far, including this step's",
    points=0.5,
    probe=steps,
    visible=[
        given([ten], numbers(3.0, -4.0), plain,
              says="two steps of AdaGrad([p], lr=0.5, eps=0.25) from p = 10, with the gradients 3 and -4"),
        given([torch.tensor([10.0, 10.0])], [[torch.tensor([0.125, 3.0])]], plain,
              says="a step of AdaGrad([p], lr=0.5, eps=0.25) from p = (10, 10), with the gradient (1/8, 3)"),
    ],
    edges={
        "thirty steps: nothing fades": given([ten.double()], numbers(*[1.0, -2.0, 0.5] * 10, dtype=torch.float64), plain),
        "a gradient of zero": given([torch.tensor([1.0, 2.0])], [[torch.zeros(2)], [torch.ones(2)]], plain),
        "zero after others": given([ten], numbers(3.0, 0.0, 3.0), plain),
        "a tiny gradient": given([torch.tensor([0.0])], numbers(1e-4, 1e-3), [([0], {"eps": 1e-5})]),
        "the usual settings": given([torch.ones(3)], [[torch.ones(3)], [-torch.ones(3)]], [([0], {"lr": 1e-2, "eps": 1e-8})]),
        "the defaults": given([torch.ones(1)], numbers(1e-8, 3e-8), plain, defaults=True),
        "a scalar": given([torch.tensor(1.0)], [[torch.tensor(2.0)]] * 2, plain),
        "no elements": given([torch.ones(0)], [[torch.ones(0)]], plain),
        "a transposed matrix": given([torch.ones(3, 2).T], [[torch.arange(1.0, 7.0).view(2, 3)]] * 2, plain),
        "a gradient in another order": given([torch.ones(2, 3)], [[torch.arange(1.0, 7.0).view(3, 2).T]] * 2, plain),
    },
    domain=runs() | runs(settings=own),
    hint="Work out the first two steps by hand, for a single number. Which value of the sum does each of them use?",
)  # fmt: skip
both = [([0], {"lr": 1.0, "eps": 0.5}), ([1], {})]
a, b, c = torch.tensor([10.0]), torch.tensor([20.0]), torch.tensor([3.0])
exercise.requirement(
    "each parameter has its own sum and uses its group's settings; a parameter without a gradient is skipped",
    points=0.5,
    probe=steps,
    visible=[
        given([a, b], [[c, 2 * c], [None, c], [c, None]], [([0, 1], {})],
              says="three steps with two parameters in one group; the first has no gradient in step 2, the second none in step 3"),
        given([a, b], [[c, None], [c, c]], [([0, 1], {})],
              says="two steps with two parameters in one group; the second has no gradient in step 1"),
        given([a, b], [[c, c]], both,
              says="a step with two parameters, each in its own group; the first has lr = 1 and eps = 0.5, "
                   "the second the defaults of AdaGrad(…, lr=0.5, eps=0.25)"),
    ],
    edges={
        "no gradient at all": given([a, b], [[None, None], [c, c]], both),
        "frozen after the backward pass": given([a, b], [[c, 2 * c], [c, c]], both, frozen=[1]),
        "a first gradient in step 3": given([a, b], [[c, None], [c, None], [c, c]], both),
        "the first of all has none": given([a, b], [[None, c], [None, c]], [([0, 1], {})]),
        "equal values do not make one parameter": given([a, a], [[c, -2 * c]] * 2, both),
        "shapes that broadcast": given([a, b.view(1, 1)], [[c, 2 * c.view(1, 1)]] * 2, both),
    },
    domain=runs(missing=True, parameters=3, settings=own),
    hint="lr and eps belong to the group. The sum belongs to the parameter and changes only if there's a gradient.",
)  # fmt: skip
exercise.requirement(
    "settings may change between steps, and a new optimizer can continue from a state_dict",
    points=0.25,
    probe=steps,
    visible=[
        given([ten], numbers(3.0, 4.0, 1.0), plain, 2,
              says="three steps with gradients 3, 4 and 1; after two of them a new optimizer continues from the state_dict"),
        given([ten], numbers(3.0, 4.0), plain, 0, {"lr": 2.0, "eps": 0.5},
              says="two steps with gradients 3 and 4; between them the group gets lr = 2 and eps = 0.5"),
    ],
    edges={
        "a new one after the first": given([ten], numbers(3.0, 4.0), plain, 1),
        "both": given([ten], numbers(3.0, 4.0, 1.0), plain, 1, {"lr": 2.0}),
    },
    domain=runs(changes=True),
    hint="Keep whatever the next step needs in self.state[p], and read the settings from the group in every step.",
)  # fmt: skip
squares = [torch.tensor([3.0, 1.0]), torch.tensor([-3.0, 2.0])]
says = "two steps of AdaGrad([p, idle], lr=0.5), where p has the gradients (3, 1) and (-3, 2), and idle never has one"
exercise.requirement(
    'self.state[p]["sum"] is the sum of the squared gradients, in the shape, dtype and device of p; no other tensor is kept',
    points=0.5,
    probe=look,
    rules=dict.fromkeys(LEFT, "ignored"),
    visible=[
        given(torch.zeros(2), squares, says=says),
        given(torch.zeros(2, dtype=torch.float64), [torch.ones(2, dtype=torch.float64) / 3],
              says="a step of AdaGrad([p, idle], lr=0.5) in float64"),
    ],
    edges={
        "a gradient of zero": given(torch.ones(2), [squares[0], torch.zeros(2)]),
        "nothing but zeros": given(torch.ones(2), [torch.zeros(2)]),
        "a scalar": given(torch.tensor(1.0), [torch.tensor(2.0)]),
    },
    domain=looks(),
    hint="self.state[p] contains a single tensor, 'sum'. Which shape, dtype and device should it have?",
)  # fmt: skip
exercise.requirement(
    "the parameter changes in place, and its gradient is unchanged",
    points=0.25,
    probe=look,
    rules=dict.fromkeys(KEPT, "ignored"),
    visible=[given(torch.zeros(2), squares, says=says)],
    edges={"one step": given(torch.ones(2), squares[:1]), "float64": given(torch.ones(2).double(), [squares[0].double()]),
           "minus zero": given(torch.ones(2), [torch.tensor([-0.0, 1.0])])},
    domain=looks(),
    hint="Change p itself, in place: an assignment to p.data gives it new memory. Only read p.grad.",
)

add = 'state["sum"] += p.grad**2'
root = '(state["sum"].sqrt() + group["eps"])'
start = 'if "sum" not in state:\n                    state["sum"] = torch.zeros_like(p)'
exercise.mistake("AdaGrad adds up the squares; you used their average.",
                 f'{add} → state["n"] = state.get("n", 0) + 1; state["sum"] += (p.grad**2 - state["sum"]) / state["n"]')  # fmt: skip
exercise.mistake("AdaGrad adds up the squares; the old ones don't fade.", f'{add} → state["sum"].mul_(0.9).add_(0.1 * p.grad**2)')
exercise.mistake("Your sum starts over in each step: it should include the "
                 "squares from all earlier steps.", f'{add} → state["sum"] = p.grad**2')
exercise.mistake("Add up the *squares* of the gradients.", "p.grad**2 → p.grad")
exercise.mistake("Add up the squares of the gradients, not their absolute values.", "p.grad**2 → p.grad.abs()")
exercise.mistake("Your code divides by the sum; divide by its square root.", 'state["sum"].sqrt() → state["sum"]')
exercise.mistake("Add eps outside the root: inside, it would be added to a sum of squares.",
                 f'{root} → (state["sum"] + group["eps"]).sqrt()')  # fmt: skip
exercise.mistake("eps is missing from the denominator.", f'{root} → state["sum"].sqrt()')
exercise.mistake("You used eps as a lower limit for the "
                 "root; it should be added to the root.", f'{root} → state["sum"].sqrt().clamp(min=group["eps"])')
exercise.mistake("The gradient points uphill: subtract the step.", "p -= → p +=")
exercise.mistake("This step's squared gradient counts, too: update the sum before you divide.",
                 f'{add} → before = state["sum"].clone(); {add}', 'state["sum"].sqrt() → before.sqrt()')  # fmt: skip
exercise.mistake("Your step is plain SGD: the division is missing.", f" / {root} → ")
exercise.mistake("The learning rate is missing.", 'p -= group["lr"] * → p -=')
exercise.mistake("Read lr from the group in every step: it may change.", 'p -= group["lr"] → p -= self.defaults["lr"]')
exercise.mistake("Read eps from the group in every step: it may change.", '+ group["eps"] → + self.defaults["eps"]')
exercise.mistake("Read both settings, lr and eps, from the group in every step.", 'p -= group["lr"] → p -= self.defaults["lr"]',
                 '+ group["eps"] → + self.defaults["eps"]')  # fmt: skip
exercise.mistake("A parameter may have no gradient: skip it then.", "if p.grad is None: → if False:")
exercise.mistake("Skip only the parameter without a gradient, and go on to the next one.", "continue → return")
exercise.mistake("If a parameter has no gradient, its sum must not change.",
                 "if p.grad is None: → if p.grad is None and self.state[p]:\n                    self.state[p].clear()\n                if p.grad is None:")  # fmt: skip
exercise.mistake("Each element of p has its own sum; you used one sum for the whole tensor.", "p.grad**2 → (p.grad**2).sum()",
                 together_with=[f'{root} → state["sum"].sqrt().clamp(min=group["eps"])'])  # fmt: skip
exercise.mistake("Divide each element by the root of its own sum, not by the root of a sum over the whole tensor.",
                 'state["sum"].sqrt() → state["sum"].sum().sqrt()',
                 together_with=[f'{root} → state["sum"].sqrt().clamp(min=group["eps"])'])  # fmt: skip
exercise.mistake("Store the sum itself, not its root.",
                 f'{add} → state["sum"] = (state["sum"] ** 2 + p.grad**2).sqrt()', 'state["sum"].sqrt() → state["sum"]')  # fmt: skip
exercise.mistake("One stored tensor per parameter is enough: recompute everything else in each step.",
                 f'{add} → {add}; state["root"] = state["sum"].sqrt()')  # fmt: skip
exercise.mistake("Don't store a copy of the gradient: the sum is the only tensor to keep.", f'{add} → {add}; self.last = p.grad.clone()')
exercise.mistake("The sum should have the dtype of p.", "torch.zeros_like(p) → torch.zeros_like(p, dtype=torch.float32)")
exercise.mistake("The sum should be on the device of p: a new tensor is on the CPU unless you say otherwise.",
                 "torch.zeros_like(p) → torch.zeros(p.shape, dtype=p.dtype)")  # fmt: skip
exercise.mistake("Don't create state for a parameter that has never had a gradient.",
                 'if p.grad is None: → self.state[p].setdefault("sum", torch.zeros_like(p))\n                if p.grad is None:')  # fmt: skip
exercise.mistake("Don't change p.grad: your code squares it in place.", f"{add} → g = p.grad.clone(); state[\"sum\"] += p.grad.pow_(2)",
                 f"p.grad / {root} → g / {root}")  # fmt: skip
exercise.mistake("Don't clear p.grad: it's still needed.", f"{root} → {root}; p.grad = None")
exercise.mistake("`p.data = …` gives the parameter new memory; change the parameter in place.", "p -= → p.data = p.data -")

# %% mistake: keeps the sums elsewhere
# says: Keep the sums in self.state[p]: a checkpoint doesn't include what you store elsewhere.
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, {"lr": lr, "eps": eps})
        self.sums = {}

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is None:
                    continue
                s = self.sums.setdefault(p, torch.zeros_like(p))
                s += p.grad**2
                p -= group['lr'] * p.grad / (s.sqrt() + group['eps'])

# %% mistake: another name
# says: Store the sum in self.state[p] under the name "sum".
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, {"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is None:
                    continue
                g, state = p.grad, self.state[p]
                if 'total' not in state:
                    state['total'] = torch.zeros_like(p)
                state['total'] += g**2
                p -= group['lr'] * g / (state['total'].sqrt() + group['eps'])

# %% mistake: all share one sum
# says: Your parameters share one sum: give each its own, in self.state[p].
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, {"lr": lr, "eps": eps})
        self.sum = 0

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is None:
                    continue
                self.sum = self.sum + p.grad**2
                self.state[p]["sum"] = self.sum
                p -= group['lr'] * p.grad / (self.sum.sqrt() + group['eps'])

# %% wrong: one sum for equal shapes
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, {"lr": lr, "eps": eps})
        self.sums = {}

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is None:
                    continue
                s = self.sums.setdefault(p.shape, torch.zeros_like(p))
                s += p.grad**2
                self.state[p]['sum'] = s
                p -= group['lr'] * p.grad / (s.sqrt() + group['eps'])

# %% wrong: begins anew after a state_dict
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, {"lr": lr, "eps": eps})
        self.begun = set()

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is None:
                    continue
                state = self.state[p]
                if id(p) not in self.begun:
                    self.begun.add(id(p))
                    state["sum"] = torch.zeros_like(p)
                state["sum"] += p.grad**2
                p -= group['lr'] * p.grad / (state["sum"].sqrt() + group['eps'])

# %% wrong: settings of its own
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, {"lr": lr, "eps": eps})
        self.lr, self.eps = lr, eps

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is None:
                    continue
                g, state = p.grad, self.state[p]
                if 'sum' not in state:
                    state['sum'] = torch.zeros_like(p)
                state['sum'] += g**2
                p -= self.lr * g / (state['sum'].sqrt() + self.eps)

# %% wrong: one norm for the whole tensor
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, defaults={"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "sum" not in state:
                    state["sum"] = torch.zeros_like(p)
                state["sum"] += p.grad.norm() ** 2
                p -= group["lr"] * p.grad / (state["sum"].sqrt() + group["eps"])

# %% wrong: no root for the first step
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, defaults={"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "sum" not in state:
                    state["sum"] = p.grad.clone()
                state["sum"] += p.grad**2
                p -= group["lr"] * p.grad / (state["sum"].sqrt() + group["eps"])

# %% wrong: state from the beginning
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, defaults={"lr": lr, "eps": eps})
        for g in self.param_groups:
            for p in g["params"]:
                self.state[p]["sum"] = torch.zeros_like(p)

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                self.state[p]["sum"] += p.grad**2
                p -= group["lr"] * p.grad / (self.state[p]["sum"].sqrt() + group["eps"])

# %% wrong: the state is made for all parameters with a gradient in the first step, and only then (from the statement)
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params: Iterable[Any], lr: float = 1e-2, eps: float = 1e-8) -> None:
        super().__init__(params, defaults={"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        params = [(g, p) for g in self.param_groups for p in g["params"] if p.grad is not None]
        if not self.state:
            for _, p in params:
                self.state[p]["sum"] = torch.zeros_like(p)
        for group, p in params:
            s = self.state[p]["sum"]
            s += p.grad**2
            p -= group["lr"] * p.grad / (s.sqrt() + group["eps"])

# %% wrong: a gradient of zeros counts as none (from the statement)
# unseen: only hidden inputs have a gradient of zeros
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params: Iterable[Any], lr: float = 1e-2, eps: float = 1e-8) -> None:
        super().__init__(params, defaults={"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None or not p.grad.any():
                    continue
                state = self.state[p]
                if "sum" not in state:
                    state["sum"] = torch.zeros_like(p)
                state["sum"] += p.grad**2
                p -= group["lr"] * p.grad / (state["sum"].sqrt() + group["eps"])

# %% wrong: the sum of a parameter without gradient is made (of zeros) (from the statement)
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params: Iterable[Any], lr: float = 1e-2, eps: float = 1e-8) -> None:
        super().__init__(params, defaults={"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                s = self.state[p].setdefault("sum", torch.zeros_like(p))
                if p.grad is None:
                    continue
                s.addcmul_(p.grad, p.grad)
                p.addcdiv_(p.grad, s.sqrt() + group["eps"], value=-group["lr"])

# %% right: PyTorch's own, which has a counter
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, defaults={"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in (p for p in group["params"] if p.grad is not None):
                sums = self.state[p].setdefault("sum", torch.zeros_like(p))
                from torch.optim.adagrad import adagrad
                adagrad([p], [p.grad], [sums], [torch.tensor(0.0)], lr=group["lr"], weight_decay=0.0,
                        lr_decay=0.0, eps=group["eps"], maximize=False, foreach=False)

# %% right: addcmul_ and addcdiv_
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, {"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is None:
                    continue
                g, state = p.grad, self.state[p]
                if 'sum' not in state:
                    state['sum'] = torch.zeros_like(p)
                state['sum'].addcmul_(g, g)
                p.addcdiv_(g, state['sum'].sqrt().add_(group['eps']), value=-group['lr'])

# %% right: a new sum in each step
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, {"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is not None:
                    total = self.state[p].get('sum', 0) + p.grad.square()
                    self.state[p]['sum'] = total
                    p.sub_(group['lr'] * p.grad / (total**0.5 + group['eps']))

# %% right: counts its steps, too
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, {"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is None:
                    continue
                g, state = p.grad, self.state[p]
                if 'sum' not in state:
                    state['sum'] = torch.zeros_like(p)
                state['step'] = state.get('step', 0) + 1
                state['sum'] += g * g
                scale = group['lr'] / (torch.sqrt(state['sum']) + group['eps'])
                p.data.add_(-scale * g)

# %% right: number by number
import itertools

class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, defaults={"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "sum" not in state:
                    state["sum"] = torch.zeros_like(p)
                s, g = state["sum"], p.grad
                for i in itertools.product(*map(range, p.shape)):
                    s[i] += g[i] ** 2
                    p[i] -= group["lr"] * g[i] / (s[i] ** 0.5 + group["eps"])

# %% right: a new state in each step
class AdaGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-8):
        super().__init__(params, defaults={"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                old = self.state[p].get("sum", torch.zeros_like(p))
                self.state[p] = {"sum": old + p.grad.square()}
                p.sub_(group["lr"] * p.grad / (self.state[p]["sum"] ** 0.5 + group["eps"]))

# %% right: in NumPy, with a new sum in each step
class AdaGrad(torch.optim.Optimizer):
    """s ← s + g²; p ← p − lr · g / (√s + eps)."""

    def __init__(self, params: Iterable[Any], lr: float = 1e-2, eps: float = 1e-8) -> None:
        super().__init__(params, defaults={"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        """One step."""
        with np.errstate(all="ignore"):
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    g = p.grad.detach().cpu().numpy()
                    s = np.square(g)
                    if "sum" in self.state[p]:
                        s = self.state[p]["sum"].cpu().numpy() + s
                    move = group["lr"] * g / (np.sqrt(s) + group["eps"])
                    self.state[p]["sum"] = torch.as_tensor(np.array(s), dtype=p.dtype).to(p.device)
                    p.sub_(torch.as_tensor(np.array(move), dtype=p.dtype).to(p.device))

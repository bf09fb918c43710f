import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.probing import alike
from autograder.authoring.probing import state_on_its_device
from autograder.authoring.strategies import any_of, shapes, tensors

exercise = Exercise("Go through the formulas in order. Does each one use the old or the new value of a quantity, and where is that value stored?")


def steps(student, values, gradients, groups, interrupted=0, later=None, frozen=(), rewound=False):
    """The parameters after each step. A group is (places in values, settings); later: its lr from step 2 on.

    After so many steps as `interrupted` says, a new optimizer goes on with the state_dict of the first, or if `rewound`,
    the same one with the state_dict from after its first step. Parameters at the places `frozen` require no gradient any
    more when they have got one.
    """
    import copy

    import torch

    def new_optimizer():
        return student.AdamW([{"params": [parameters[i] for i in places], **own} for places, own in groups])

    parameters = [torch.nn.Parameter(value.clone()) for value in values]
    optimizer = new_optimizer()
    after = {}
    for number, step in enumerate(gradients, 1):
        if number == 2 and later is not None:
            for group in optimizer.param_groups:
                group["lr"] = later
        for p, gradient in zip(parameters, step):
            p.grad = None if gradient is None else gradient.clone()
        for place in frozen:
            parameters[place].requires_grad_(False)
        optimizer.step()
        for place, p in enumerate(parameters, 1):
            which = f"parameter {place}" if len(parameters) > 1 else "p"
            after[f"{which} after step {number}"] = p.detach().clone()
        if number == (1 if rewound else interrupted):
            saved = copy.deepcopy(optimizer.state_dict())
        if number == interrupted:
            optimizer = optimizer if rewound else new_optimizer()
            optimizer.load_state_dict(saved)
    return after


def look(student, value, gradients, settings):
    """What an optimizer has kept after some steps, and what has become of the gradient and of the parameter."""
    import torch

    def tensors_in(thing, depth=0):
        if torch.is_tensor(thing):
            return 1
        if isinstance(thing, dict):
            thing = list(thing.values())
        if isinstance(thing, (list, tuple, set)) and depth < 4:
            return sum(tensors_in(each, depth + 1) for each in thing)
        return 0

    p, idle = torch.nn.Parameter(value.clone()), torch.nn.Parameter(value.clone())
    memory, moved = p.detach(), False
    optimizer = student.AdamW([p, idle], **settings)
    given = [gradient.clone() for gradient in gradients]
    same = []
    for gradient in given:
        p.grad, before = gradient, p.detach().clone()
        optimizer.step()
        moved |= not torch.equal(before, p.detach())
        same.append(p.grad is gradient)
    state = dict(optimizer.state.get(p, {}))
    elsewhere = {k: v for k, v in vars(optimizer).items() if k not in ("state", "param_groups", "defaults")}
    groups = [{k: v for k, v in group.items() if k != "params"} for group in optimizer.param_groups]
    others = {k: v for k, v in optimizer.state.items() if k is not p and k is not idle}
    step = state.get("step")
    return {
        "the type of step": type(step).__name__,
        "step": step if type(step) in (int, float) or torch.is_tensor(step) else None,
        "exp_avg": state.get("exp_avg"),
        "exp_avg_sq": state.get("exp_avg_sq"),
        "the state is on the device of p": state_on_its_device(lambda p: student.AdamW([p], lr=0.5)),
        "names kept for p": sorted(map(str, state)),
        "tensors kept for p": tensors_in(state),
        "tensors kept for a parameter that never had a gradient": tensors_in(optimizer.state.get(idle, {})),
        "tensors kept elsewhere": tensors_in(elsewhere) + tensors_in(groups) + tensors_in(list(others.values())),
        "gradients": given,
        "p.grad is still the same tensor": all(same),
        "the gradients are unchanged, to the last bit": all(map(alike, gradients, given)),
        "p is still in the same memory": memory.data_ptr() == p.data_ptr() and torch.equal(memory, p.detach()),
        "p requires a gradient": p.requires_grad and p.is_leaf,
        "p has changed": moved,
    }  # fmt: skip


KEPT = ("the type of step", "step", "exp_avg", "exp_avg_sq", "the state is on the device of p", "names kept for p",
        "tensors kept for p", "tensors kept for a parameter that never had a gradient", "tensors kept elsewhere")  # fmt: skip
LEFT = ("gradients", "p.grad is still the same tensor", "the gradients are unchanged, to the last bit",
        "p is still in the same memory", "p requires a gradient")  # fmt: skip


def numbers(*values, dtype=torch.float32):
    return [[torch.tensor([value], dtype=dtype)] for value in values]


def one(**settings):
    """One group with one parameter."""
    return [([0], {"lr": 0.1, "betas": (0.5, 0.9), "weight_decay": 0.0, **settings})]


settings = st.fixed_dictionaries(
    {
        "lr": any_of(0.25, 0.1, 0.003),
        "betas": st.tuples(any_of(0.0, 0.3, 0.5, 0.9), any_of(0.5, 0.75, 0.99, 0.999)),
        "eps": any_of(1e-8, 1e-3, 0.1),
    }
)


@st.composite
def runs(draw, decay=st.just(0.0), missing=False, parameters=1):
    """Runs of one to five steps; gradients of any size."""
    dtype = torch.float64
    chosen = [draw(shapes((0, 2), (1, 3))) for _ in range(parameters)]
    values = [draw(tensors(shape, dtype, contiguous=None)) for shape in chosen]
    values = [x + 3 * x.sign() for x in values]  # no step ends close to 0, where rounding would show
    gradients = []
    for _ in range(draw(st.integers(1 + missing, 5))):
        scale = draw(any_of(1.0, 0.01, 100.0))
        gradients.append([scale * draw(tensors(shape, dtype, contiguous=None)) for shape in chosen])
        if missing:
            for place in range(parameters):
                if draw(st.integers(0, 2)) == 0:
                    gradients[-1][place] = None
    groups = [([place], draw(settings) | {"weight_decay": draw(decay)}) for place in range(parameters)]
    return given(values, gradients, groups)


@st.composite
def interrupted_runs(draw):
    # With 0.999, betas in float32 show in some runs; that costs points for the formulas, and not here.
    run = draw(runs().filter(lambda run: run.args[2][0][1]["betas"][1] < 0.999))
    count = len(run.args[1])
    return given(*run.args, draw(st.integers(0, count)), draw(any_of(None, 0.5)))


@st.composite
def looks(draw):
    dtype = draw(any_of(torch.float32, torch.float64))
    shape = draw(shapes((0, 2), (1, 3)))
    gradients = [draw(tensors(shape, dtype, contiguous=None)) for _ in range(draw(st.integers(1, 4)))]
    return given(draw(tensors(shape, dtype, contiguous=None)), gradients, draw(settings) | {"weight_decay": draw(any_of(0.0, 0.1))})


exercise.requirement(
    "each step follows Adam's formulas: both moments are bias-corrected, and eps is added to the root of the "
    "corrected second moment",
    points=1,
    probe=steps,
    tolerance=1e-5,
    visible=[
        given([torch.tensor([1.0])], numbers(4.0, 2.0), one(),
              says="two steps of AdamW([p], lr=0.1, betas=(0.5, 0.9), weight_decay=0) from p = 1, with gradients 4 and 2"),
        given([torch.tensor([1.0])], numbers(1e-4), one(eps=1e-4),
              says="a step of AdamW([p], lr=0.1, betas=(0.5, 0.9), eps=1e-4, weight_decay=0) from p = 1, with gradient 1e-4"),
        given([torch.tensor([1.0])], numbers(1e-3, -1e-3), one(eps=1e-2, betas=(0.5, 0.75)),
              says="two steps of AdamW([p], lr=0.1, betas=(0.5, 0.75), eps=1e-2, weight_decay=0) from p = 1, "
                   "with gradients 1e-3 and -1e-3"),
    ],
    edges={
        "thirty steps: the correction never stops": given(
            [torch.tensor([1.0], dtype=torch.float64)], numbers(*[1.0, -2.0, 0.5] * 10, dtype=torch.float64),
            one(betas=(0.9, 0.999))),
        "a gradient of zero": given([torch.tensor([1.0, 2.0])], [[torch.zeros(2)], [torch.ones(2)]], one()),
        "the usual settings": given([torch.ones(3)], [[torch.ones(3)], [-torch.ones(3)]],
                                    one(lr=1e-3, betas=(0.9, 0.999), eps=1e-8)),
        "the defaults": given([torch.ones(1)], numbers(1e-8, 3e-8), [([0], {})]),
        "no momentum": given([torch.ones(1)], numbers(1.0, 2.0), one(betas=(0.0, 0.9))),
        "no memory of squares": given([torch.ones(1)], numbers(1.0, 2.0), one(betas=(0.5, 0.0))),
        "a scalar": given([torch.tensor(1.0)], [[torch.tensor(2.0)]], one()),
        "no elements": given([torch.ones(0)], [[torch.ones(0)]], one()),
        "a transposed matrix": given([torch.ones(3, 2).T], [[torch.arange(1.0, 7.0).view(2, 3)]] * 2, one()),
        "a gradient in another order": given([torch.ones(2, 3)], [[torch.arange(1.0, 7.0).view(3, 2).T]] * 2, one()),
    },
    domain=runs(),
)  # fmt: skip
exercise.requirement(
    "weight decay is decoupled: it shrinks p before each step that p takes, and at no other time",
    points=0.5,
    probe=steps,
    tolerance=1e-5,
    visible=[
        given([torch.tensor([2.0])], numbers(4.0, 1.0), one(weight_decay=0.5),
              says="two steps of AdamW([p], lr=0.1, betas=(0.5, 0.9), weight_decay=0.5) from p = 2, with gradients 4 and 1"),
        given([torch.tensor([2.0])], numbers(0.0), one(weight_decay=0.5),
              says="a step of AdamW([p], lr=0.1, betas=(0.5, 0.9), weight_decay=0.5) from p = 2, with gradient 0"),
        given([torch.tensor([2.0])], [[None], [torch.tensor([4.0])]], one(betas=(0.0, 0.0), weight_decay=0.5),
              says="two steps of AdamW([p], lr=0.1, betas=(0, 0), weight_decay=0.5) from p = 2; in the first it has no "
                   "gradient, in the second 4"),
    ],
    edges={
        "a large decay": given([torch.tensor([3.0])], numbers(1.0, 1.0), one(lr=0.5, weight_decay=1.5)),
        "a vector decays as a matrix does": given([torch.ones(2), torch.ones(2, 2)], [[torch.ones(2), torch.ones(2, 2)]],
                                                  [([0, 1], {"lr": 0.1, "weight_decay": 0.5})]),
        "a beta that float32 rounds": given([torch.zeros(1)], numbers(1.0), [([0], {"lr": 0.5, "betas": (0.9, 0.99999)})]),
        "the default of 0.01": given([torch.tensor([2.0])], numbers(1.0), [([0], {"lr": 0.5})]),
    },
    domain=runs(decay=any_of(0.1, 0.5, 0.01)),
)  # fmt: skip
both = [([0], {"lr": 0.1, "betas": (0.5, 0.9), "weight_decay": 0.0}),
        ([1], {"lr": 0.2, "betas": (0.5, 0.75), "weight_decay": 0.0})]  # fmt: skip
two, four = torch.tensor([2.0]), torch.tensor([4.0])
exercise.requirement(
    "each parameter has its own moments and step count and uses its group's settings; a parameter without a gradient is skipped",
    points=0.5,
    hint="What the formulas remember belongs to one parameter, and each setting to its group. What changes for a "
         "parameter in a step in which it has no gradient?",
    probe=steps,
    tolerance=1e-5,
    visible=[
        given([torch.ones(1)] * 2, [[four, two], [None, four], [two, None]], both,
              says="three steps with two parameters, each in its own group (lr 0.1 and 0.2, betas (0.5, 0.9) and (0.5, 0.75), "
                   "no decay); the first has no gradient in step 2, the second none in step 3"),
    ],
    edges={
        "one group, one of two without gradient": given(
            [torch.ones(2), torch.ones(2)], [[torch.ones(2), None], [torch.ones(2), torch.ones(2)]],
            [([0, 1], {"lr": 0.1, "weight_decay": 0.0})]),
        "no gradient at all": given([torch.ones(1)] * 2, [[None, None], [two, two]], both),
        "frozen after the backward pass": given([torch.ones(1)] * 2, [[four, two], [two, four]], both, frozen=[1]),
        "a first gradient in step 3": given([torch.ones(1)] * 2, [[two, None], [two, None], [two, four]], both),
        "equal values do not make one parameter": given([torch.ones(2)] * 2, [[torch.ones(2), -torch.ones(2)]] * 2, both),
    },
    domain=runs(missing=True, parameters=2),
)  # fmt: skip
exercise.requirement(
    "settings may change between steps, and a new optimizer can continue from a state_dict",
    points=0.25,
    probe=steps,
    tolerance=1e-5,
    visible=[
        given([torch.ones(1)], numbers(4.0, 2.0, 1.0), one(), 2,
              says="three steps with gradients 4, 2 and 1; after two of them a new optimizer continues from the state_dict"),
        given([torch.ones(1)], numbers(4.0, 2.0), one(), 0, 0.5, says="two steps with gradients 4 and 2, lr = 0.1 and then 0.5"),
    ],
    edges={
        "a new one after the first": given([torch.ones(1)], numbers(4.0, 2.0), one(), 1),
        "both": given([torch.ones(1)], numbers(4.0, 2.0, 1.0), one(), 1, 0.5),
        "back to its own earlier state": given([torch.ones(1)], numbers(4.0, 2.0, 1.0, 3.0), one(), 3, rewound=True),
        "an lr of 0 at first": given([torch.ones(1)], numbers(4.0, 2.0, 1.0), one(lr=0.0), 0, 0.5),
    },
    domain=interrupted_runs(),
    hint="Keep whatever the next step needs in self.state[p], and read all settings from the group in every step.",
)  # fmt: skip
moments = [torch.tensor([4.0, -1.0]), torch.tensor([2.0, 1.0])]
says = "two steps of AdamW([p, idle], betas=(0.5, 0.75)), where idle never has a gradient"
exercise.requirement(
    'self.state[p] contains "step" (an int), the uncorrected moments "exp_avg" and "exp_avg_sq", on the device of p, and nothing else',
    points=0.5,
    probe=look,
    rules=dict.fromkeys(LEFT, "ignored"),
    visible=[given(torch.zeros(2), moments, {"betas": (0.5, 0.75)}, says=says)],
    edges={
        "one step": given(torch.zeros(2), moments[:1], {"betas": (0.5, 0.75)}),
        "a gradient of zero": given(torch.ones(2), [torch.zeros(2)] * 2, {}),
    },
    domain=looks(),
    hint="Which three things does a parameter's next step need? Store these, without bias correction, and nothing else.",
)
exercise.requirement(
    "the parameter changes in place, and its gradient is unchanged",
    points=0.25,
    probe=look,
    rules=dict.fromkeys(KEPT, "ignored"),
    visible=[given(torch.zeros(2), moments, {"betas": (0.5, 0.75)}, says=says)],
    edges={"with decay": given(torch.ones(2), moments, {"weight_decay": 0.5}),
           "minus zero": given(torch.ones(2), [torch.tensor([-0.0, 1.0])], {})},
    domain=looks(),
    hint="Change p itself, in place: an assignment to p.data gives it new memory. Only read p.grad.",
)

bias = "Both moments start at 0, so at first they're too small: the bias correction is missing."
exercise.mistake(bias, "(m / (1 - beta1**t)) → m", "(v / (1 - beta2**t)).sqrt() → v.sqrt()")
exercise.mistake("The first moment m lacks its bias correction: it starts at 0, too.", "(m / (1 - beta1**t)) → m")
exercise.mistake("The second moment v lacks its bias correction: it starts at 0, too.", "(v / (1 - beta2**t)).sqrt() → v.sqrt()")
exercise.mistake("Correct v before you take its root.", "(v / (1 - beta2**t)).sqrt() → v.sqrt() / (1 - beta2**t)")
exercise.mistake("t is 1 during a parameter's first step: with t = 0, the bias correction would divide by zero.", "(1 - beta2**t) → (1 - beta2**(t - 1))",
                 "(1 - beta1**t) → (1 - beta1**(t - 1))")  # fmt: skip
exercise.mistake("Your t is one too large: it's 1 during a parameter's first step.",
                 't = state["exp_avg"], state["exp_avg_sq"], state["step"] → t = state["exp_avg"], state["exp_avg_sq"], state["step"] + 1')  # fmt: skip
exercise.mistake("The new m isn't stored: `m = …` creates a new tensor, and self.state[p] still contains the old one.",
                 "m.mul_(beta1).add_(p.grad, alpha=1 - beta1) → m = beta1 * m + (1 - beta1) * p.grad")  # fmt: skip
exercise.mistake("The new v isn't stored: `v = …` creates a new tensor, and self.state[p] still contains the old one.",
                 "v.mul_(beta2).add_(p.grad**2, alpha=1 - beta2) → v = beta2 * v + (1 - beta2) * p.grad**2")  # fmt: skip
exercise.mistake("v averages the squares of the gradients, not their absolute values.", "p.grad**2 → p.grad.abs()")
exercise.mistake("Your m and v are the same tensor: give each its own.",
                 'state["exp_avg_sq"] = torch.zeros_like(p) → state["exp_avg_sq"] = state["exp_avg"]')  # fmt: skip
exercise.mistake("Your state starts over in each step: initialize self.state[p] only if it's empty.", "if not state: → if True:")
exercise.mistake("Your step count doesn't increase.", 'state["step"] += 1 → state["step"] = 1')
exercise.mistake("Read the betas from the group, like all other settings.", 'group["betas"] → self.defaults["betas"]')
exercise.mistake("Read lr from the group in every step.", 'p -= group["lr"] → p -= self.defaults["lr"]')
exercise.mistake("lr may change between steps: don't reuse its first value.",
                 'beta1, beta2 = group["betas"] → beta1, beta2 = group["betas"]; lr = group.setdefault("first", group["lr"])',
                 'p -= group["lr"] → p -= lr')  # fmt: skip
exercise.mistake("Read eps from the group.", 'root + group["eps"] → root + 1e-8')
exercise.mistake("In m, the coefficients of the old m and of the gradient should add up to 1.", "(p.grad, alpha=1 - beta1) → (p.grad)")
exercise.mistake("In v, the coefficients of the old v and of the squared gradient should add up to 1.",
                 "(p.grad**2, alpha=1 - beta2) → (p.grad**2)")  # fmt: skip
exercise.mistake("The betas are swapped: the first is for m, the second for v.", "beta1, beta2 = → beta2, beta1 =")
exercise.mistake("v is an average of squares: divide by its square root.",
                 "(v / (1 - beta2**t)).sqrt() → v / (1 - beta2**t)")  # fmt: skip
exercise.mistake("The step should follow the first moment m, not the latest gradient.", "(m / (1 - beta1**t)) → p.grad")
exercise.mistake("The gradient points uphill: subtract the step.", "p -= → p +=")
exercise.mistake("Add eps outside the root.", "(v / (1 - beta2**t)).sqrt() → (v / (1 - beta2**t) + group[\"eps\"]).sqrt()",
                 'root + group["eps"] → root')  # fmt: skip
exercise.mistake("Add eps to the root of the *corrected* v.", '(root + group["eps"]) → (root + group["eps"] / (1 - beta2**t) ** 0.5)')
exercise.mistake("Your code adds the decay to the gradient (L2). Decoupled decay leaves the gradient alone and shrinks p itself.",
                 'm.mul_(beta1).add_(p.grad, alpha → grad = p.grad + group["weight_decay"] * p; m.mul_(beta1).add_(grad, alpha',
                 "p.grad**2 → grad**2", 'p *= 1 - group["lr"] * group["weight_decay"] → pass')  # fmt: skip
exercise.mistake("Multiply the weight decay by lr, too.", '1 - group["lr"] * group["weight_decay"] → 1 - group["weight_decay"]')
exercise.mistake("Weight decay is missing: p doesn't shrink.", 'p *= 1 - group["lr"] * group["weight_decay"] → pass')
exercise.mistake("Your weight decay makes p grow: check its sign.", '1 - group["lr"] * group["weight → 1 + group["lr"] * group["weight')
exercise.mistake("Shrink p first, and then take Adam's step.", 'p *= 1 - group["lr"] * group["weight_decay"] → pass',
                 '(root + group["eps"]) → (root + group["eps"]); p *= 1 - group["lr"] * group["weight_decay"]')  # fmt: skip
exercise.mistake("Count the steps of each parameter separately, and only those in which it has a gradient.",
                 'beta1, beta2 = group["betas"] → beta1, beta2 = group["betas"]; group["t"] = group.get("t", 0) + 1',
                 'state["step"] += 1 → state["step"] = group["t"]')  # fmt: skip
exercise.mistake("If a parameter has no gradient, skip it entirely: it must not shrink, either.",
                 "continue → p *= 1 - group[\"lr\"] * group[\"weight_decay\"]; continue")  # fmt: skip
exercise.mistake("Store the moments uncorrected: your code corrects them in place.",
                 "(m / (1 - beta1**t)) → m.div_(1 - beta1**t)")  # fmt: skip
exercise.mistake("Store the step count as a plain int: a tensor costs bytes.", 'state["step"] = 0 → state["step"] = torch.tensor(0.0)',
                 't = state["exp_avg"], state["exp_avg_sq"], state["step"] → t = state["exp_avg"], state["exp_avg_sq"], state["step"].item()')  # fmt: skip
exercise.mistake("Two stored tensors per parameter are enough: recompute everything else in each step.",
                 'root = (v → root = state["corrected"] = (v')  # fmt: skip
exercise.mistake("The moments should be on the device of p: a new tensor is on the CPU unless you say otherwise.",
                 'state["exp_avg"] = torch.zeros_like(p) → state["exp_avg"] = torch.zeros(p.shape, dtype=p.dtype)',
                 'state["exp_avg_sq"] = torch.zeros_like(p) → state["exp_avg_sq"] = torch.zeros(p.shape, dtype=p.dtype)')  # fmt: skip
exercise.mistake("Don't copy settings into self.state[p]: they belong to the group.",
                 'state["step"] += 1 → state["step"] += 1; state["lr"] = group["lr"]')  # fmt: skip
exercise.mistake("Three entries per parameter are enough: don't add a list that grows with every step.",
                 'state["step"] = 0 → state["step"], state["history"] = 0, []',
                 'state["step"] += 1 → state["step"] += 1; state["history"].append(float(p.grad.abs().sum()))')  # fmt: skip
exercise.mistake("Don't create state for a parameter that has never had a gradient.", "if p.grad is None: → self.state[p].setdefault(\"exp_avg\", torch.zeros_like(p)) if p.grad is None else 0\n                if p.grad is None:",)
exercise.mistake("Don't change p.grad: your code squares it in place.", "p.grad**2 → p.grad.pow_(2)")
exercise.mistake("`p.data = …` gives the parameter new memory; change the parameter in place.",
                 "p -= → p.data = p.data -")  # fmt: skip

# %% mistake: the parameters share their averages
# says: Give each parameter its own moments, in self.state[p].
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})
        self.m = self.v = 0

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                t = self.state[p]["step"] = self.state[p].get("step", 0) + 1
                self.m = b1 * self.m + (1 - b1) * p.grad
                self.v = b2 * self.v + (1 - b2) * p.grad**2
                p *= 1 - group["lr"] * group["weight_decay"]
                p -= group["lr"] * (self.m / (1 - b1**t)) / ((self.v / (1 - b2**t)).sqrt() + group["eps"])

# %% wrong: divides by the largest average
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            lr, eps, wd = group["lr"], group["eps"], group["weight_decay"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                s = self.state[p]
                if not s:
                    s["step"], s["exp_avg"], s["exp_avg_sq"] = 0, torch.zeros_like(p), torch.zeros_like(p)
                s["step"] += 1
                t = s["step"]
                p *= 1 - lr * wd
                s["exp_avg"].mul_(b1).add_(p.grad, alpha=1 - b1)
                s["exp_avg_sq"].mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
                s["max"] = torch.maximum(s.get("max", s["exp_avg_sq"]), s["exp_avg_sq"])
                p -= lr * (s["exp_avg"] / (1 - b1**t)) / ((s["max"] / (1 - b2**t)).sqrt() + eps)

# %% wrong: no correction after ten steps
# unseen: only runs of ten or more steps show the difference
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                s = self.state[p]
                if not s:
                    s["step"], s["exp_avg"], s["exp_avg_sq"] = 0, torch.zeros_like(p), torch.zeros_like(p)
                s["step"] += 1
                t = s["step"] if s["step"] < 10 else 10**9
                s["exp_avg"].mul_(b1).add_(p.grad, alpha=1 - b1)
                s["exp_avg_sq"].mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
                p *= 1 - group["lr"] * group["weight_decay"]
                p -= group["lr"] * (s["exp_avg"] / (1 - b1**t)) / ((s["exp_avg_sq"] / (1 - b2**t)).sqrt() + group["eps"])

# %% wrong: the averages are kept in float32 (from the statement)
# unseen: only hidden inputs check the moments of float64 parameters
class AdamW(torch.optim.Optimizer):
    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            lr, eps, decay = group["lr"], group["eps"], group["weight_decay"]
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                g, state = p.grad.float(), self.state[p]
                if not state:
                    state["step"] = 0
                    state["exp_avg"] = torch.zeros_like(p, dtype=torch.float32)
                    state["exp_avg_sq"] = torch.zeros_like(p, dtype=torch.float32)
                state["step"] += 1
                t, m, v = state["step"], state["exp_avg"], state["exp_avg_sq"]
                p.mul_(1 - lr * decay)
                m.mul_(beta1).add_(g, alpha=1 - beta1)
                v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
                m_hat = m / (1 - beta1**t)
                v_hat = v / (1 - beta2**t)
                p.sub_(lr * m_hat / (v_hat.sqrt() + eps))

# %% wrong: shrunk after the step (from the statement)
class AdamW(torch.optim.Optimizer):
    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            lr, eps, decay = group["lr"], group["eps"], group["weight_decay"]
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                g, state = p.grad, self.state[p]
                if not state:
                    state["step"] = 0
                    state["exp_avg"] = torch.zeros_like(p)
                    state["exp_avg_sq"] = torch.zeros_like(p)
                state["step"] += 1
                t, m, v = state["step"], state["exp_avg"], state["exp_avg_sq"]
                m.mul_(beta1).add_(g, alpha=1 - beta1)
                v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
                m_hat = m / (1 - beta1**t)
                v_hat = v / (1 - beta2**t)
                p.sub_(lr * m_hat / (v_hat.sqrt() + eps))
                p.mul_(1 - lr * decay)

# %% wrong: the settings of the first group hold for all (from the statement)
class AdamW(torch.optim.Optimizer):
    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            lr, eps, decay = group["lr"], group["eps"], group["weight_decay"]
            beta1, beta2 = self.param_groups[0]["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                g, state = p.grad, self.state[p]
                if not state:
                    state["step"] = 0
                    state["exp_avg"] = torch.zeros_like(p)
                    state["exp_avg_sq"] = torch.zeros_like(p)
                state["step"] += 1
                t, m, v = state["step"], state["exp_avg"], state["exp_avg_sq"]
                p.mul_(1 - lr * decay)
                m.mul_(beta1).add_(g, alpha=1 - beta1)
                v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
                m_hat = m / (1 - beta1**t)
                v_hat = v / (1 - beta2**t)
                p.sub_(lr * m_hat / (v_hat.sqrt() + eps))

# %% wrong: an lr of 0 stops the counting, too (from the statement)
# unseen: no visible case has an lr of 0
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            lr, (beta1, beta2) = group["lr"], group["betas"]
            for p in group["params"] if lr else []:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state.update(step=0, exp_avg=torch.zeros_like(p), exp_avg_sq=torch.zeros_like(p))
                state["step"] += 1
                t, m, v = state["step"], state["exp_avg"], state["exp_avg_sq"]
                p.mul_(1 - lr * group["weight_decay"])
                m.mul_(beta1).add_(p.grad, alpha=1 - beta1)
                v.mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                p.sub_(lr * (m / (1 - beta1**t)) / ((v / (1 - beta2**t)).sqrt() + group["eps"]))

# %% wrong: skips what was frozen after the backward pass (from the statement)
# unseen: no visible case has a frozen parameter
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            lr, (beta1, beta2) = group["lr"], group["betas"]
            for p in group["params"]:
                if p.grad is None or not p.requires_grad:
                    continue
                state = self.state[p]
                if not state:
                    state.update(step=0, exp_avg=torch.zeros_like(p), exp_avg_sq=torch.zeros_like(p))
                state["step"] += 1
                t, m, v = state["step"], state["exp_avg"], state["exp_avg_sq"]
                p.mul_(1 - lr * group["weight_decay"])
                m.mul_(beta1).add_(p.grad, alpha=1 - beta1)
                v.mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                p.sub_(lr * (m / (1 - beta1**t)) / ((v / (1 - beta2**t)).sqrt() + group["eps"]))

# %% wrong: keeps the powers of the betas outside self.state (from the statement)
# unseen: students see no optimizer that goes back to its own earlier state
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})
        self.powers = {}

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            lr, (beta1, beta2) = group["lr"], group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state.update(step=0, exp_avg=torch.zeros_like(p), exp_avg_sq=torch.zeros_like(p))
                if p not in self.powers:
                    self.powers[p] = beta1 ** state["step"], beta2 ** state["step"]
                state["step"] += 1
                power1, power2 = self.powers[p]
                self.powers[p] = power1, power2 = power1 * beta1, power2 * beta2
                p.mul_(1 - lr * group["weight_decay"])
                state["exp_avg"].lerp_(p.grad, 1 - beta1)
                state["exp_avg_sq"].lerp_(p.grad**2, 1 - beta2)
                p.sub_(lr * state["exp_avg"] / (1 - power1) / ((state["exp_avg_sq"] / (1 - power2)).sqrt() + group["eps"]))

# %% wrong: betas in float32 (from the statement)
# unseen: students see betas that float32 has
class AdamW(torch.optim.Optimizer):
    """Adam with bias correction and decoupled weight decay."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        """One step."""
        for group in self.param_groups:
            lr, eps, decay = group["lr"], group["eps"], group["weight_decay"]
            betas = torch.tensor(group["betas"])
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "step" not in state:
                    state["step"] = 0
                    state["exp_avg"] = torch.zeros_like(p)
                    state["exp_avg_sq"] = torch.zeros_like(p)
                state["step"] += 1
                beta1, beta2 = group["betas"]
                p *= 1 - lr * decay
                state["exp_avg"].mul_(beta1).add_(p.grad, alpha=1 - beta1)
                state["exp_avg_sq"].mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                correction1, correction2 = (1 - betas ** state["step"]).tolist()
                m_hat = state["exp_avg"] / correction1
                v_hat = state["exp_avg_sq"] / correction2
                p -= lr * m_hat / (v_hat.sqrt() + eps)

# %% right: lerp_, addcmul_ and addcdiv_
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group['betas']
            lr, eps, wd = group['lr'], group['eps'], group['weight_decay']
            for p in group['params']:
                if p.grad is None:
                    continue
                s = self.state[p]
                if 'step' not in s:
                    s['step'] = 0
                    s['exp_avg'] = torch.zeros_like(p)
                    s['exp_avg_sq'] = torch.zeros_like(p)
                s['step'] += 1
                t = s['step']
                m, v = s['exp_avg'], s['exp_avg_sq']
                g = p.grad
                p.mul_(1 - lr * wd)
                m.lerp_(g, 1 - b1)
                v.mul_(b2).addcmul_(g, g, value=1 - b2)
                root = (v.sqrt() / math.sqrt(1 - b2**t)).add_(eps)
                p.addcdiv_(m, root, value=-lr / (1 - b1**t))

# %% right: one expression, from the old weight
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group['betas']
            lr, eps, wd = group['lr'], group['eps'], group['weight_decay']
            for p in group['params']:
                if p.grad is None:
                    continue
                s = self.state[p]
                if 'step' not in s:
                    s['step'] = 0
                    s['exp_avg'] = torch.zeros_like(p)
                    s['exp_avg_sq'] = torch.zeros_like(p)
                s['step'] += 1
                t = s['step']
                m, v = s['exp_avg'], s['exp_avg_sq']
                g = p.grad
                m.mul_(b1).add_(g, alpha=1 - b1)
                v.mul_(b2).add_(g * g, alpha=1 - b2)
                p.copy_(p - lr * ((m / (1 - b1**t)) / (torch.sqrt(v / (1 - b2**t)) + eps) + wd * p))

# %% right: new averages in each step
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group['betas']
            for p in (p for p in group['params'] if p.grad is not None):
                s = self.state[p]
                t = s['step'] = s.get('step', 0) + 1
                s['exp_avg'] = b1 * s.get('exp_avg', 0) + (1 - b1) * p.grad
                s['exp_avg_sq'] = b2 * s.get('exp_avg_sq', 0) + (1 - b2) * p.grad.square()
                m, v = s['exp_avg'] / (1 - b1**t), s['exp_avg_sq'] / (1 - b2**t)
                p.data *= 1 - group['lr'] * group['weight_decay']
                p.data -= group['lr'] * m / (v**0.5 + group['eps'])

# %% right: in numpy
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            lr, eps, wd = group["lr"], group["eps"], group["weight_decay"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                s = self.state[p]
                if not s:
                    s["step"], s["exp_avg"], s["exp_avg_sq"] = 0, torch.zeros_like(p), torch.zeros_like(p)
                s["step"] += 1
                t = s["step"]
                m, v, a, g = s["exp_avg"].numpy(), s["exp_avg_sq"].numpy(), p.numpy(), p.grad.numpy()
                a *= 1 - lr * wd
                m[...] = b1 * m + (1 - b1) * g
                v[...] = b2 * v + (1 - b2) * g * g
                a -= lr * (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + eps)

# %% right: moves the averages toward the gradient
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            lr, eps, wd = group["lr"], group["eps"], group["weight_decay"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                s = self.state[p]
                if not s:
                    s["step"], s["exp_avg"], s["exp_avg_sq"] = 0, torch.zeros_like(p), torch.zeros_like(p)
                s["step"] += 1
                t = s["step"]
                p *= 1 - lr * wd
                s["exp_avg"] += (p.grad - s["exp_avg"]) * (1 - b1)
                s["exp_avg_sq"] += (p.grad**2 - s["exp_avg_sq"]) * (1 - b2)
                p -= lr * (s["exp_avg"] / (1 - b1**t)) / ((s["exp_avg_sq"] / (1 - b2**t)).sqrt() + eps)

# %% right: one number after the other, in Python floats
class AdamW(torch.optim.Optimizer):
    """Adam with bias correction and decoupled weight decay."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, defaults)

    @staticmethod
    def _one(p, g, m, v, t, lr, betas, eps, weight_decay):
        b1, b2 = betas
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g * g
        m_hat, v_hat = m / (1 - b1**t), v / (1 - b2**t)
        return p * (1 - lr * weight_decay) - lr * m_hat / (math.sqrt(v_hat) + eps), m, v

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        """One step."""
        for group in self.param_groups:
            settings = {k: group[k] for k in ("lr", "betas", "eps", "weight_decay")}
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                state.setdefault("step", 0)
                for name in ("exp_avg", "exp_avg_sq"):
                    if name not in state:
                        state[name] = torch.zeros_like(p)
                state["step"] += 1
                columns = (p, p.grad, state["exp_avg"], state["exp_avg_sq"])
                rows = zip(*(c.reshape(-1).tolist() for c in columns), strict=True)
                new = [self._one(*row, state["step"], **settings) for row in rows]
                for i, target in enumerate((p, state["exp_avg"], state["exp_avg_sq"])):
                    values = [row[i] for row in new]
                    target.copy_(torch.tensor(values, dtype=p.dtype).reshape(p.shape))

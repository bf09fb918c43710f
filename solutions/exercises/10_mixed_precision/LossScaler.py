import math

import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of

exercise = Exercise("First divide and check all gradients, then decide whether to step. Which numbers does the next call need?")


def scaled(student, value, factor, overflows=0):
    """The scaled loss and the gradient that it sends back, after so many overflows. factor = None: the default."""
    import torch

    scaler = student.LossScaler() if factor is None else student.LossScaler(factor, 5)
    for _ in range(overflows):
        weight = torch.zeros(1)
        weight.grad = torch.full((1,), float("inf"))
        scaler.step(torch.optim.SGD([weight], lr=1.0))
    start = value.clone().requires_grad_()
    loss = start * 1
    result = scaler.scale(loss)
    tensor = torch.is_tensor(result)
    if tensor and result.requires_grad:
        result.sum().backward()
    return {
        "the result is a new tensor": tensor and result is not loss,
        "the scaled loss": result.detach().clone() if tensor else result,
        "the gradient that reaches the original loss": start.grad,
        "the original loss, afterward": loss.detach().clone(),
    }


def story(student, factor, interval, batches, before=0):
    """Each batch: scaled gradients of two groups of parameters; None stands for none. What each step does.

    interval = None: the default. before: how many good steps come first.
    """
    import math

    import torch

    first, second, idle = torch.zeros(2), torch.zeros(2), torch.zeros(1)
    optimizer = torch.optim.SGD([{"params": [first, idle]}, {"params": [second]}], lr=1.0)
    steps = []
    optimizer.register_step_post_hook(lambda *_: steps.append(1))
    scaler = student.LossScaler(factor) if interval is None else student.LossScaler(factor, interval)
    for _ in range(before):
        step(scaler, True)
    returned, counts, gradients, weights, factors, good = [], [], [], [], [scaler.factor], [scaler.good_steps]
    for batch in batches:
        for weight in (first, idle, second):
            weight.zero_()  # so that no sum of steps cancels, whose digits would be those of rounding
        for parameter, values in zip((first, second), batch, strict=True):
            parameter.grad = None if values is None else torch.tensor(values)
        returned.append(scaler.step(optimizer))
        counts.append(len(steps))
        if all(math.isfinite(value) for values in batch for value in values or []):
            gradients.append([None if p.grad is None else p.grad.clone() for p in (first, idle, second)])
        weights.append([*first.tolist(), *idle.tolist(), *second.tolist()])
        factors.append(scaler.factor)
        good.append(scaler.good_steps)
    return {
        "gradients after each good step": gradients,
        "how each step changes the weights": weights,
        "what step returned": returned,
        "optimizer steps so far": counts,
        "the type of factor": type(scaler.factor).__name__,
        "factor, initially and after each step": factors,
        "good_steps, initially and after each step": good,
    }


def step(scaler, fine):
    """One step with a gradient that is finite or not, and what the scaler holds then."""
    import torch

    weight = torch.zeros(1)
    weight.grad = torch.full((1,), 1.0 if fine else float("inf"))
    scaler.step(torch.optim.SGD([weight], lr=1.0))
    return [scaler.factor, scaler.good_steps]


def state(student, factor, interval, before, after):
    """A scaler's state after some steps, each good or not."""
    scaler = student.LossScaler(factor, interval)
    for fine in before:
        step(scaler, fine)
    held = scaler.state_dict()
    for _ in range(2):
        step(scaler, False)
    return held


def resumed(student, factor, interval, before, after, saved=None):
    """Goes on from a scaler's state, saved here or in another process; others use the same state meanwhile."""
    saved = state(student, factor, interval, before, after) if saved is None else saved
    held = sorted({type(value).__name__ for value in saved.values()}) if isinstance(saved, dict) else []
    other = student.LossScaler(7.0, 55)
    other.load_state_dict(saved)
    step(other, False)
    new = student.LossScaler(3.0, 77)
    new.load_state_dict(saved)
    return {
        "the state is a dict": isinstance(saved, dict),
        "types in the state other than numbers": [kind for kind in held if kind not in ("int", "float")],
        "factor and good_steps after loading": [new.factor, new.good_steps],
        "factor and good_steps after each further step": [step(new, fine) for fine in after],
    }


DIVIDED = ("gradients after each good step", "how each step changes the weights")
SKIPPED = ("what step returned", "optimizer steps so far")
ADAPTED = ("the type of factor", "factor, initially and after each step", "good_steps, initially and after each step")


def only(*keys):
    return dict.fromkeys(sorted({*DIVIDED, *SKIPPED, *ADAPTED} - {*keys}), "ignored")


factors = any_of(*(2.0**n for n in range(-3, 20)), 3.0, 10.0, 1000.0)
intervals = st.integers(1, 5)
whole = st.integers(-8, 8).map(float)
broken = any_of(math.inf, -math.inf, math.nan)


def batches(finite=whole, odd=0.0, count=(1, 6)):
    """Scaled gradients; that share of batches has one that is infinite or NaN."""

    @st.composite
    def one(draw):
        pair = [draw(st.none() | st.lists(finite, min_size=2, max_size=2)) for _ in range(2)]
        if odd and draw(st.integers(0, 9)) < 10 * odd:
            pair[draw(st.integers(0, 1))] = draw(st.permutations([draw(finite), draw(broken)]))
        return pair

    return st.lists(one(), min_size=count[0], max_size=count[1])


@st.composite
def losses(draw):
    value = draw(st.floats(-100, 100, width=32).filter(lambda v: abs(v) > 1e-3))
    dtype = draw(any_of(torch.float32, torch.float64))
    return given(torch.tensor(value, dtype=dtype), draw(factors), draw(st.integers(0, 3)))


exercise.requirement(
    "scale returns the loss times the current factor, as a new tensor through which gradients flow",
    points=0.5,
    probe=scaled,
    visible=[
        given(torch.tensor(0.5), 1024.0, says="scale(loss) for a loss of 0.5, with the factor 1024"),
        given(torch.tensor(0.5), 1024.0, 2, says="scale(loss) for a loss of 0.5, after two overflows, with an initial factor of 1024"),
    ],
    edges={
        "the default factor": given(torch.tensor(0.5), None),
        "a loss of 0": given(torch.tensor(0.0), 8.0),
        "a negative loss": given(torch.tensor(-3.0), 8.0),
        "a factor below 1": given(torch.tensor(3.0), 1.0, 3),
        "a factor of 1": given(torch.tensor(3.0), 1.0),
        "a loss with a dimension": given(torch.tensor([0.5]), 8.0),
        "float64": given(torch.tensor(0.1, dtype=torch.float64), 3.0),
        "no power of two": given(torch.tensor(0.3), 10.0, 1),
    },
    domain=losses(),
    hint="The result has to be part of the graph, and the loss itself must not change.",
)  # fmt: skip
exercise.requirement(
    "step divides every gradient by the factor, and the optimizer steps with the true gradients",
    points=1,
    probe=story,
    rules=only(*DIVIDED),
    visible=[
        given(4.0, 9, [([4.0, 8.0], [4.0, -4.0])],
              says="a step with the factor 4; the scaled gradients are [4, 8] in one group and [4, -4] in another"),
        given(2.0, 9, [(None, [2.0, 4.0])],
              says="a step with the factor 2; one parameter has no gradient, and one in another group has [2, 4]"),
    ],
    edges={
        "nothing has a gradient": given(4.0, 9, [(None, None)]),
        "a factor of 1": given(1.0, 9, [([4.0, 8.0], [4.0, 4.0])]),
        "a factor below 1": given(0.25, 9, [([4.0, 8.0], [4.0, 4.0])]),
        "no power of two": given(10.0, 9, [([4.0, 8.0], [4.0, 4.0])]),
        "three steps": given(4.0, 9, [([4.0, 8.0], [4.0, 4.0]), ([1.0, 0.0], None), (None, [-1.0, 2.0])]),
        "tiny": given(2.0**16, 9, [([1e-30, 1e-20], [1e-10, 1.0])]),
        "gradients of 0": given(8.0, 9, [([0.0, 0.0], [0.0, 0.0])]),
    },
    domain=st.builds(given, factors, st.just(9), batches()),
    hint="Go through the parameters of every group. After the step, each .grad contains the true gradient.",
)  # fmt: skip
exercise.requirement(
    "if any gradient is infinite or NaN, the optimizer doesn't step; step returns whether it did",
    points=0.75,
    probe=story,
    rules=only(*SKIPPED),
    visible=[
        given(4.0, 9, [([4.0, 8.0], [4.0, 4.0]), ([4.0, 4.0], [4.0, math.inf]), ([math.inf, math.inf], [1.0, 1.0])],
              says="three steps; in the second, one gradient of the second group is infinite; in the third, all "
                   "gradients of the first group are infinite"),
        given(2.0, 9, [([1.0, math.nan], [1.0, 1.0]), (None, [2.0, 4.0]), ([1.0, 1.0], [math.nan, 1.0])],
              says="three steps; in the first, a gradient of the first group is NaN; in the second, a parameter has no "
                   "gradient; in the third, a gradient of the second group is NaN"),
    ],
    edges={
        "minus infinity": given(4.0, 9, [([4.0, -math.inf], [1.0, 1.0])]),
        "both infinities: their sum is NaN": given(4.0, 9, [([math.inf, -math.inf], [1.0, 1.0])]),
        "all of them": given(4.0, 9, [([math.inf] * 2, [math.nan] * 2)]),
        "NaN in the first, finite in the last": given(4.0, 9, [([math.nan, 1.0], [1.0, 1.0])]),
        "large but finite: their sum is not": given(1.0, 9, [([3e38, 3e38], [3e38, 3e38])]),
        "nothing has a gradient": given(4.0, 9, [(None, None)]),
        "gradients of 0": given(4.0, 9, [([0.0, 0.0], [0.0, 0.0])]),
        "large ones that cancel": given(1.0, 9, [([3e38, -3e38], [3e38, -3e38])]),
    },
    domain=st.builds(given, any_of(2.0**6, 2.0**16), st.just(9), batches(whole | any_of(3e38, -3e38, 1e-30), 0.4)),
    hint="Look at every gradient of every group before you decide.",
)  # fmt: skip
good, bad = ([2.0, 2.0], [2.0, 2.0]), ([2.0, 2.0], [math.inf, 2.0])
exercise.requirement(
    "an overflow halves the factor, and growth_interval good steps in a row double it; both restart the count",
    points=1,
    probe=story,
    rules=only(*ADAPTED),
    visible=[
        given(4.0, 2, [good, bad, good, good, good], says="five steps with growth_interval 2, of which the second overflows"),
        given(1.0, 3, [bad, bad, good, good], says="four steps with growth_interval 3; the first two overflow"),
    ],
    edges={
        "growth_interval 1": given(4.0, 1, [good, good, bad, good]),
        "overflows alone": given(2.0, 3, [bad] * 6),
        "far up": given(2.0**24, 1, [good] * 20),
        "no power of two": given(3.0, 2, [good, good, bad, good]),
        "a long row": given(4.0, 5, [good] * 16),
        "an overflow just before doubling": given(4.0, 3, [good, good, bad, good, good, good]),
        "an overflow just after doubling": given(4.0, 2, [good, good, bad, bad, good]),
        "nothing has a gradient": given(4.0, 2, [(None, None)] * 2),
        "the default growth_interval": given(4.0, None, [good] * 2, before=1_998),
    },
    domain=st.builds(given, factors, intervals, batches(whole, 0.2, (1, 12))),
    hint="good_steps counts the good steps since the factor last changed.",
)  # fmt: skip
exercise.requirement(
    "state_dict returns plain numbers that don't change afterward, and any scaler can load them and continue",
    points=0.75,
    probe=resumed,
    saves=state,
    visible=[
        given(8.0, 3, [True, True], [True, True], says="LossScaler(8.0, 3) takes two good steps, saves its "
                                                       "state, and takes two more steps; a second scaler loads "
                                                       "that state and takes a step; then LossScaler(3.0, 77) "
                                                       "loads the same state and takes two good steps"),
    ],
    edges={
        "saved at once": given(8.0, 2, [], [True, True, True]),
        "after an overflow": given(8.0, 2, [True, False], [True, True]),
        "after doubling": given(8.0, 2, [True, True], [True, False]),
        "growth_interval 1": given(8.0, 1, [True], [True]),
    },
    # No scaler gets below 1 or far up: whether the factor may is another requirement's question.
    domain=st.builds(
        given, any_of(1_024.0, 3_000.0), intervals, *[st.lists(st.booleans() | st.just(True), max_size=4)] * 2
    ),
    hint="What does a new scaler need to know to continue in the same way? Later steps must not change a state that was saved.",
)  # fmt: skip

exercise.mistake("Your scale returns the loss without the factor.", "return loss * self.factor → return loss")
exercise.mistake("The result of scale has to be part of the graph, so that gradients flow through it.",
                 "return loss * → return loss.item() *")  # fmt: skip
exercise.mistake("The result of scale has to be part of the graph, so that gradients flow through it.",
                 "return loss * → return loss.detach() *")  # fmt: skip
exercise.mistake("Your scale changes the loss itself: return a new tensor.",
                 "return loss * self.factor → loss *= self.factor; return loss")  # fmt: skip
exercise.mistake("The factor may have changed since the scaler was created: use the current one.",
                 "growth_interval, 0 → growth_interval, 0; self.__dict__[\"first\"] = factor",
                 "return loss * self.factor → return loss * self.first")  # fmt: skip
exercise.mistake("Your code divides the loss by the factor; multiply instead.", "return loss * → return loss /")

unscaled = "parameter.grad /= self.factor"
grows, shrinks = "self.factor * 2, 0", "self.factor / 2, 0"
exercise.mistake("The gradients are still scaled when the optimizer steps.", f"{unscaled} → pass",
                 together_with=[".isfinite().all() → .isfinite().any()"])  # fmt: skip
exercise.mistake("Your code multiplies the gradients by the factor; divide instead.", f"{unscaled} → parameter.grad *= self.factor")
exercise.mistake("Divide the gradients by the same factor that the loss was multiplied by.",
                 f"{unscaled} → {unscaled} / 2",
                 together_with=[".isfinite().all() → .isfinite().any()"])  # fmt: skip
exercise.mistake("Your optimizer steps before the factor is divided out.",
                 "optimizer.step() → pass",
                 "finite = True → optimizer.step(); finite = True",
                 together_with=["optimizer.step() → optimizer.step(); optimizer.zero_grad()", "bool(parameter.grad.isfinite().all()) → not bool(parameter.grad.isnan().any())"])  # fmt: skip
exercise.mistake("The gradients are still scaled when the optimizer steps.",
                 f"{unscaled} → parameter.grad / self.factor",
                 together_with=[".isfinite().all() → .isfinite().any()"])  # fmt: skip
exercise.mistake("A parameter may have no gradient: skip it then.", "if parameter.grad is not None → if True")
exercise.mistake("A parameter without a gradient has to stay without one: don't fill it with zeros.", "if parameter.grad is not None: → "
                 "if parameter.grad is None:\n                    parameter.grad = torch.zeros_like(parameter)\n                if True:",
                 together_with=["return False → optimizer.zero_grad(); optimizer.step(); return False"])  # fmt: skip
exercise.mistake("After a good step, leave the true gradient in .grad: don't clear it.",
                 "optimizer.step() → optimizer.step(); optimizer.zero_grad()",
                 together_with=["return False → optimizer.zero_grad(); optimizer.step(); return False"])  # fmt: skip
exercise.mistake("Go through all groups, not only the first.", "optimizer.param_groups → optimizer.param_groups[:1]")
exercise.mistake("In your code only the last gradient decides; skip the step if any gradient isn't finite.",
                 "finite = finite and bool → finite = bool",
                 together_with=["bool(parameter.grad.isfinite().all()) → not bool(parameter.grad.isnan().any())"])  # fmt: skip
exercise.mistake("Your code accepts a gradient if some of its elements are finite; all of them have to be.", ".isfinite().all() → .isfinite().any()")
exercise.mistake("Your optimizer steps although a gradient is infinite or NaN: skip that step.", "if not finite → if False")
exercise.mistake("NaN isn't finite, either: check for it as well as for infinity.",
                 "bool(parameter.grad.isfinite().all()) → not bool(parameter.grad.isinf().any())",
                 together_with=["return False → optimizer.zero_grad(); optimizer.step(); return False"])  # fmt: skip
exercise.mistake("Infinity isn't finite, either: check for it as well as for NaN.",
                 "bool(parameter.grad.isfinite().all()) → not bool(parameter.grad.isnan().any())",
                 together_with=["return False → optimizer.zero_grad(); optimizer.step(); return False",
                                "return False → return None",
                                "return False → return True",
                                f"{grows} → self.factor, 0"])  # fmt: skip
exercise.mistake("Your optimizer steps although a gradient is infinite or NaN: skip that step.",
                 f"{unscaled} → {unscaled}; parameter.grad.nan_to_num_(0.0, 0.0, 0.0)")  # fmt: skip
exercise.mistake("A step with gradients of zero isn't a skipped step: it still changes the optimizer state.",
                 "return False → optimizer.zero_grad(); optimizer.step(); return False")  # fmt: skip
exercise.mistake("The sum of finite gradients may be infinite: check the gradients themselves.",
                 "bool(parameter.grad.isfinite().all()) → math.isfinite(parameter.grad.abs().sum().item())",
                 unseen="only an edge case has gradients this large")  # fmt: skip
exercise.mistake("Return whether the optimizer stepped.", "return True → return None", "return False → return None")
exercise.mistake("Return True if the step took place, False if it was skipped.",
                 "return True → return None", "return False → return True", "return None → return False")  # fmt: skip

exercise.mistake("Only good steps in a row count: an overflow restarts the count.",
                 f"{shrinks} → self.factor / 2, self.good_steps")  # fmt: skip
exercise.mistake("The factor should double after growth_interval good steps in a row, not after every one.",
                 "self.good_steps == self.growth_interval → self.good_steps")  # fmt: skip
exercise.mistake("Your factor never grows: growth_interval good steps in a row should double it.", f"{grows} → self.factor, 0")
exercise.mistake("Your factor never changes: which steps halve it, and which double it?", f"{grows} → self.factor, 0", f"{shrinks} → self.factor, 0")
exercise.mistake("Halve the factor after an overflow.", f"{shrinks} → self.factor, 0",
                 together_with=[f"{grows} → self.factor * 2, self.good_steps", "self.good_steps == self.growth_interval → self.good_steps > self.growth_interval"])  # fmt: skip
exercise.mistake("An overflow means that the factor is too large: halve it.", f"{shrinks} → self.factor * 2, 0")
exercise.mistake("Restart the count when the factor doubles.", f"{grows} → self.factor * 2, self.good_steps")
exercise.mistake("Your factor doubles one step too late: it should double as soon as the count reaches growth_interval.",
                 "self.good_steps == self.growth_interval → self.good_steps > self.growth_interval")  # fmt: skip
exercise.mistake("Don't stop at 1: the factor may be smaller.", f"{shrinks} → max(self.factor / 2, 1.0), 0")
exercise.mistake("Don't limit the factor: it may keep doubling.", f"{grows} → min(self.factor * 2, 2.0**24), 0",
                 unseen="only an edge case has a factor this large")  # fmt: skip
exercise.mistake("Keep the factor as a plain float, not as a tensor.",
                 "= factor, growth_interval, 0 → = torch.tensor(factor), growth_interval, 0")  # fmt: skip

whole_state = "return dict(vars(self))"
exercise.mistake("The state that you returned changes with later steps; it has to keep the numbers from when it was saved.",
                 f"{whole_state} → return vars(self)")  # fmt: skip
exercise.mistake("Your scaler changes the dictionary that was loaded into it: only read that dictionary.",
                 "vars(self).update(state) → self.__dict__ = state")  # fmt: skip
exercise.mistake("The count of good steps is part of the state: save and restore it.",
                 f'{whole_state} → return {{"factor": self.factor, "growth_interval": self.growth_interval}}')  # fmt: skip
exercise.mistake("The growth interval is part of the state: save and restore it, too.",
                 f'{whole_state} → return {{"factor": self.factor, "good_steps": self.good_steps}}')  # fmt: skip
exercise.mistake("The factor is part of the state: save and restore it.",
                 f'{whole_state} → return {{"good_steps": self.good_steps, "growth_interval": self.growth_interval}}')  # fmt: skip
exercise.mistake("The count of good steps is part of the state: save and restore it.",
                 "vars(self).update(state) → vars(self).update(state); self.good_steps = 0")  # fmt: skip
exercise.mistake("The state should contain plain numbers, and nothing else.",
                 f"{whole_state} → return {{**vars(self), 'factor': torch.tensor(self.factor)}}")  # fmt: skip

# %% wrong: one flag for the scaler's whole life
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.factor, self.growth_interval, self.good_steps, self.finite = factor, growth_interval, 0, 1

    def scale(self, loss):
        return loss * self.factor

    def step(self, optimizer):
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not p.grad.isfinite().all():
                        self.finite = 0
        if self.finite:
            optimizer.step()
            self.good_steps += 1
            if self.good_steps % self.growth_interval == 0:
                self.factor, self.good_steps = self.factor * 2, 0
        else:
            self.factor, self.good_steps = self.factor / 2, 0
        return bool(self.finite)

    def state_dict(self):
        return {**vars(self)}

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)

# %% wrong: a class state shared by all scalers
class LossScaler:
    state = {}

    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.state.update(factor=factor, good_steps=0, every=growth_interval)

    factor = property(lambda self: self.state["factor"])
    good_steps = property(lambda self: self.state["good_steps"])

    def scale(self, loss):
        return loss * self.factor

    def step(self, optimizer):
        s = self.state
        grads = [p.grad for g in optimizer.param_groups for p in g["params"] if p.grad is not None]
        for grad in grads:
            grad.div_(s["factor"])
        fine = all(grad.isfinite().all() for grad in grads)
        if fine:
            optimizer.step()
        s["good_steps"] = s["good_steps"] + 1 if fine else 0
        if not fine or s["good_steps"] == s["every"]:
            s["factor"] *= 2 if fine else 0.5
            s["good_steps"] = 0
        return fine

    def state_dict(self):
        return self.state

    def load_state_dict(self, state):
        self.state.update(state)

# %% wrong: a missing gradient spoils the step
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.factor, self.growth_interval, self.good_steps = factor, growth_interval, 0

    def scale(self, loss):
        return loss * self.factor

    def step(self, optimizer):
        parameters = [p for g in optimizer.param_groups for p in g["params"]]
        for p in parameters:
            if p.grad is not None:
                p.grad = p.grad / self.factor
        fine = all(p.grad is not None and bool(torch.isfinite(p.grad).all()) for p in parameters)
        if fine:
            optimizer.step()
            self.good_steps += 1
            if self.good_steps >= self.growth_interval:
                self.factor, self.good_steps = self.factor * 2, 0
        else:
            self.factor, self.good_steps = self.factor / 2, 0
        return fine

    def state_dict(self):
        return {"f": self.factor, "g": self.good_steps, "i": self.growth_interval}

    def load_state_dict(self, state):
        self.factor, self.good_steps, self.growth_interval = state["f"], state["g"], state["i"]

# %% wrong: asks whether the norm of all gradients is finite (from the statement)
# unseen: only hidden inputs have gradients whose squares overflow
import torch
from torch import nn


class LossScaler:
    """Multiplies the loss by a factor that it adapts: halved after an overflow, doubled after many good steps."""

    def __init__(self, factor=2.0**16, growth_interval=2_000):
        self.factor, self.growth_interval, self.good_steps = float(factor), growth_interval, 0

    def scale(self, loss):
        return self.factor * loss

    def step(self, optimizer):
        total = torch.zeros(())
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.div_(self.factor)
                    total = total + p.grad.square().sum().cpu()
        finite = bool(total.isfinite())
        if finite:
            optimizer.step()
            self.good_steps += 1
            if self.good_steps >= self.growth_interval:
                self.factor, self.good_steps = self.factor * 2, 0
        else:
            self.factor, self.good_steps = self.factor / 2, 0
        return finite

    def state_dict(self):
        return {
            "factor": self.factor,
            "growth_interval": self.growth_interval,
            "good_steps": self.good_steps,
        }

    def load_state_dict(self, state):
        self.factor = state["factor"]
        self.growth_interval = state["growth_interval"]
        self.good_steps = state["good_steps"]

# %% wrong: the state has the factor and the count, but not the interval (from the statement)
import torch


class LossScaler:
    """Multiplies the loss by a factor that it adapts: halved after an overflow, doubled after many good steps."""

    def __init__(self, factor=2.0**16, growth_interval=2_000):
        self.factor = float(factor)
        self.growth_interval = growth_interval
        self.good_steps = 0

    def scale(self, loss):
        return loss * self.factor

    def step(self, optimizer):
        grads = [p.grad for g in optimizer.param_groups for p in g["params"] if p.grad is not None]
        for grad in grads:
            grad.div_(self.factor)
        if not all(grad.isfinite().all().item() for grad in grads):
            self.factor /= 2
            self.good_steps = 0
            return False
        optimizer.step()
        self.good_steps += 1
        if self.good_steps == self.growth_interval:
            self.factor *= 2
            self.good_steps = 0
        return True

    def state_dict(self):
        return {"factor": self.factor, "good_steps": self.good_steps}

    def load_state_dict(self, state):
        self.factor = state["factor"]
        self.good_steps = state["good_steps"]

# %% wrong: the state is the scaler's own __dict__, which goes on changing (from the statement)
import torch


class LossScaler:
    """Multiplies the loss by a factor that it adapts: halved after an overflow, doubled after many good steps."""

    def __init__(self, factor=2.0**16, growth_interval=2_000):
        self.factor = float(factor)
        self.growth_interval = growth_interval
        self.good_steps = 0

    def scale(self, loss):
        return loss * self.factor

    def step(self, optimizer):
        grads = [p.grad for g in optimizer.param_groups for p in g["params"] if p.grad is not None]
        for grad in grads:
            grad.div_(self.factor)
        finite = all(bool(grad.isfinite().all()) for grad in grads)
        if finite:
            optimizer.step()
        self.good_steps = self.good_steps + 1 if finite else 0
        if not finite:
            self.factor /= 2
        elif self.good_steps == self.growth_interval:
            self.factor *= 2
            self.good_steps = 0
        return finite

    def state_dict(self):
        return vars(self)

    def load_state_dict(self, state):
        self.__dict__ = state

# %% wrong: returns the loss itself if the factor is 1 (from the statement)
# unseen: students see larger factors
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2_000):
        self.factor, self.growth_interval, self.good_steps = float(factor), growth_interval, 0

    def scale(self, loss):
        return loss if self.factor == 1 else self.factor * loss

    def step(self, optimizer):
        finite = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    finite &= bool(p.grad.isfinite().all())
        if finite:
            optimizer.step()
            self.good_steps += 1
            if self.good_steps == self.growth_interval:
                self.factor, self.good_steps = 2 * self.factor, 0
        else:
            self.factor, self.good_steps = self.factor / 2, 0
        return finite

    def state_dict(self):
        return {name: getattr(self, name) for name in ("factor", "growth_interval", "good_steps")}

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)

# %% right: new gradients, and one list of them
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.factor = factor
        self.good_steps = 0
        self._interval = growth_interval

    def scale(self, loss):
        return self.factor * loss

    def step(self, optimizer):
        parameters = [p for g in optimizer.param_groups for p in g["params"] if p.grad is not None]
        for p in parameters:
            p.grad = p.grad / self.factor
        if any(not torch.isfinite(p.grad).all() for p in parameters):
            self.factor = self.factor * 0.5
            self.good_steps = 0
            return False
        optimizer.step()
        self.good_steps = (self.good_steps + 1) % self._interval
        if self.good_steps == 0:
            self.factor = self.factor * 2.0
        return True

    def state_dict(self):
        return {"scale": self.factor, "steps": self.good_steps, "every": self._interval}

    def load_state_dict(self, state):
        self.factor, self.good_steps, self._interval = state["scale"], state["steps"], state["every"]

# %% right: the factor is kept as a power of two
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.power = math.log2(factor)
        self.growth_interval = growth_interval
        self.good_steps = 0

    @property
    def factor(self):
        return 2.0**self.power

    def scale(self, loss):
        return loss.mul(self.factor)

    def step(self, optimizer):
        stepped = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.grad.div_(self.factor)
                stepped &= p.grad.abs().max().item() < math.inf
        if stepped:
            optimizer.step()
            self.good_steps += 1
        if not stepped or self.good_steps >= self.growth_interval:
            self.power += 1 if stepped else -1
            self.good_steps = 0
        return stepped

    def state_dict(self):
        return vars(self).copy()

    def load_state_dict(self, state):
        self.__dict__.update(state)

# %% right: checks the scaled gradients, and multiplies by the reciprocal
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.factor, self.growth_interval, self.good_steps = factor, growth_interval, 0

    def scale(self, loss):
        return loss * self.factor

    def step(self, optimizer):
        finite = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    finite = finite and not (p.grad.isinf() | p.grad.isnan()).any().item()
                    p.grad.mul_(1.0 / self.factor)
        if finite:
            optimizer.step()
            self.good_steps += 1
            if self.good_steps == self.growth_interval:
                self.factor *= 2
                self.good_steps = 0
        else:
            self.factor /= 2
            self.good_steps = 0
        return finite

    def state_dict(self):
        return {"factor": self.factor, "good_steps": self.good_steps, "growth_interval": self.growth_interval}

    def load_state_dict(self, state):
        self.factor = state["factor"]
        self.good_steps = state["good_steps"]
        self.growth_interval = state["growth_interval"]

# %% right: looks before it divides, and leaves a skipped step's gradients alone
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.factor, self.growth_interval, self.good_steps = factor, growth_interval, 0

    def scale(self, loss):
        return loss * self.factor

    def step(self, optimizer):
        finite = all(
            p.grad is None or bool(p.grad.isfinite().all())
            for group in optimizer.param_groups
            for p in group["params"]
        )
        for group in optimizer.param_groups if finite else []:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.mul_(1.0 / self.factor)
        if finite:
            optimizer.step()
            self.good_steps += 1
            if self.good_steps == self.growth_interval:
                self.factor *= 2
                self.good_steps = 0
        else:
            self.factor /= 2
            self.good_steps = 0
        return finite

    def state_dict(self):
        return {"factor": self.factor, "good_steps": self.good_steps, "growth_interval": self.growth_interval}

    def load_state_dict(self, state):
        self.factor = state["factor"]
        self.good_steps = state["good_steps"]
        self.growth_interval = state["growth_interval"]

# %% right: a skipped step clears the gradients
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.factor, self.growth_interval, self.good_steps = factor, growth_interval, 0

    def scale(self, loss):
        return loss * self.factor

    def step(self, optimizer):
        grads = [p.grad for g in optimizer.param_groups for p in g["params"] if p.grad is not None]
        for grad in grads:
            grad /= self.factor
        fine = all(grad.isfinite().all().item() for grad in grads)
        if fine:
            optimizer.step()
            self.good_steps += 1
            if self.good_steps == self.growth_interval:
                self.factor, self.good_steps = self.factor * 2, 0
        else:
            self.factor, self.good_steps = self.factor / 2, 0
            optimizer.zero_grad()
        return fine

    def state_dict(self):
        return dict(vars(self))

    def load_state_dict(self, state):
        vars(self).update(state)

# %% right: counts down, and divides all gradients in one go
class LossScaler:
    def __init__(self, factor=2.0**16, growth_interval=2000):
        self.factor, self.interval, self.left = factor, growth_interval, growth_interval

    @property
    def good_steps(self):
        return self.interval - self.left

    def scale(self, loss):
        return loss * torch.tensor(self.factor, dtype=loss.dtype)

    def step(self, optimizer):
        grads = [p.grad for g in optimizer.param_groups for p in g["params"] if p.grad is not None]
        bad = torch.zeros(1)
        if grads:
            torch._amp_foreach_non_finite_check_and_unscale_(grads, bad, torch.tensor(1 / self.factor))
        stepped = bad.item() == 0
        if stepped:
            optimizer.step()
            self.left -= 1
        if not stepped or self.left == 0:
            self.factor *= 2.0 if stepped else 0.5
            self.left = self.interval
        return stepped

    def state_dict(self):
        return dict(self.__dict__)

    def load_state_dict(self, state):
        for name in state:
            setattr(self, name, state[name])

import math

import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of, shapes, tensors

exercise = Exercise(
    "Follow the four steps in the statement. In which of them does a rank need numbers from the other ranks?"
)


def run(student, values, gradients, lr):
    """Steps on simulated ranks; gradients[step][rank] has a tensor for each parameter. What each rank ends with.

    lr = None: the default.
    """
    import torch

    from course_utils.ranks import simulate

    def steps(group):
        sent, after, own_grad, same_memory = [], [], "unchanged", True
        parameters = [torch.nn.Parameter(value.clone()) for value in values]
        memory = [p.detach() for p in parameters]
        optimizer = student.ShardedAdamW(parameters, group, **({} if lr is None else {"lr": lr}))
        for step in gradients:
            own = [gradient.clone() for gradient in step[group.rank]]
            for p, gradient in zip(parameters, own, strict=True):
                p.grad = gradient
            before = group.sent
            optimizer.step()
            sent.append(group.sent - before)
            after.append([p.detach().clone() for p in parameters])
            for p, gradient, before in zip(parameters, own, step[group.rank], strict=True):
                if p.grad is None:
                    own_grad = "gone"
                elif not torch.equal(p.grad, before) or not torch.equal(gradient, before):
                    own_grad = "changed"
        for p, old in zip(parameters, memory, strict=True):
            same_memory = same_memory and p.data_ptr() == old.data_ptr() and torch.equal(p.detach(), old)
            same_memory = same_memory and p.requires_grad and p.is_leaf
        states = list(optimizer.adamw.state.values())
        return {
            "averages": [state.get("exp_avg") for state in states],
            "squares": [state.get("exp_avg_sq") for state in states],
            "parameters after each step": after,
            "the parameters have changed": not all(
                torch.equal(p.detach(), value) for p, value in zip(parameters, values, strict=True)
            ),
            "changed in place": same_memory,
            "the parameters' own .grad": own_grad,
            "bytes sent, at most": round(max(sent), 3),  # thirds of bytes, added up in another order, differ
        }

    return simulate(steps, len(gradients[0]))


def learn(student, values, gradients, lr):
    """The parameters after each step, by rank."""
    found = run(student, values, gradients, lr)
    return {f"rank {n}": rank["parameters after each step"] for n, rank in enumerate(found)}


def averages(student, values, gradients, lr):
    """What self.adamw keeps on each rank: the averages of its part of the gradients, and of their squares."""
    found = run(student, values, gradients, lr)
    return {f"rank {n}": {"exp_avg": rank["averages"], "exp_avg_sq": rank["squares"]} for n, rank in enumerate(found)}


def leave(student, values, gradients, lr):
    """What has become of the parameters' memory and gradients, by rank."""
    keys = ("the parameters have changed", "changed in place", "the parameters' own .grad")
    found = run(student, values, gradients, lr)
    return {f"rank {n}": {key: rank[key] for key in keys} for n, rank in enumerate(found)}


def send(student, values, gradients, lr):
    """The most bytes that a rank sends in a step, and whether the step uses what the others have and have sent."""
    import torch

    def ends(found):
        return [torch.cat([p.flatten() for p in rank["parameters after each step"][-1]]) for rank in found]

    found = run(student, values, gradients, lr)
    first, *rest = ends(found)
    # Every rank needs the numbers of all others, at least once; what comes in another way than from the group doesn't
    # come between machines.
    needed = (len(gradients[0]) - 1) * sum(value.nbytes for value in values)
    turned = [[step[0], *([-1000 * g for g in rank] for rank in step[1:])] for step in gradients]
    return {
        "the most bytes that a rank sends in a step": max(rank["bytes sent, at most"] for rank in found),
        "what the ranks need of each other is sent": sum(rank["bytes sent, at most"] for rank in found) >= needed,
        "all ranks end with the same parameters": all(torch.equal(first, other) for other in rest),
        "the other ranks' gradients matter": not torch.equal(first, ends(run(student, values, turned, lr))[0]),
    }


dtype = torch.float64
values = [torch.tensor([1.0, 2.0, 3.0]), torch.tensor([[4.0]])]
one = [torch.tensor([1.0, -2.0, 3.0]), torch.tensor([[0.5]])]
two = [torch.tensor([3.0, 0.5, -1.0]), torch.tensor([[1.5]])]
small = [g / 8 for g in one]
both = given(values, [[one, two], [small, two]], 0.5)
three = given(values[:1], [[one[:1], two[:1], small[:1]]], 0.5)
says = "two ranks, four numbers in two parameters, two steps with lr = 0.5"
says_three = "three ranks, three numbers in one parameter, one step with lr = 0.5"
odd = given(values[:1], [[one[:1], two[:1]]] * 2, 0.5)
says_odd = "two ranks, three numbers in one parameter, one number of padding, two steps with lr = 0.5"


@st.composite
def runs(draw, ranks=(1, 4)):
    sizes = draw(st.lists(shapes((0, 3), (1, 4)), min_size=1, max_size=4))
    world = draw(st.integers(*ranks))
    gradients = []
    for _ in range(draw(st.integers(1, 3))):
        scale = draw(any_of(1.0, 100.0, 0.01))
        gradients.append([[scale * (draw(tensors(shape, dtype)) + 5) for shape in sizes] for _ in range(world)])
    return given([draw(tensors(shape, dtype)) for shape in sizes], gradients, draw(any_of(0.25, 0.01)))


def edges():
    x = torch.arange(1.0, 7.0)
    return {
        "one rank": given([x], [[[x]], [[-x]]], 0.5),
        "more ranks than numbers": given([x[:1]], [[[x[:1]], [x[1:2]], [x[2:3]]]], 0.5),
        "a scalar": given([x[0].clone(), x[1:3]], [[[x[0].clone(), x[1:3]], [x[1].clone(), x[2:4]]]], 0.5),
        "no padding": given([x[:4]], [[[x[:4]], [x[2:6]]]] * 2, 0.5),
        "three dimensions": given([x.reshape(1, 2, 3)], [[[x.reshape(1, 2, 3)], [x.reshape(1, 2, 3) ** 2]]], 0.5),
        "as small as eps": given([x[:3]], [[[1e-8 * x[:3]], [2e-8 * x[:3]]]] * 2, 0.25),
        "float64": given([x.double()], [[[x.double()], [3 * x.double()]]] * 2, 0.25),
        "gradients of zero on one rank": given([x], [[[0 * x], [x]]], 0.25),
        "the default lr": given([x], [[[x], [2 * x]]], None),
        "an infinite gradient": given([x], [[[x], [torch.tensor([1.0, 2.0, math.inf, 4.0, 5.0, 6.0])]], [[x], [2 * x]]], 0.25),
    }


several = {name: case for name, case in edges().items() if name not in ("one rank", "more ranks than numbers")}

exercise.requirement(
    "`self.adamw` steps with this rank's part of the averaged gradients, and keeps state for that part only",
    points=0.75,
    probe=averages,
    tolerance=1e-5,
    visible=[
        given(*both.args, says=f"the state of self.adamw; {says}"),
        given(*odd.args, says=f"the state of self.adamw; {says_odd}"),
    ],
    edges=edges(),
    domain=runs(),
    hint="`self.part.grad` has to be as long as `self.part`. What turns a sum over the ranks into an average?",
)
exercise.requirement(
    "after each step, every rank has the parameters that an unsharded AdamW would produce",
    points=1,
    probe=learn,
    tolerance=1e-5,
    visible=[
        given(*both.args, says=f"the parameters after each step; {says}"),
        given(*odd.args, says=f"the parameters after each step; {says_odd}"),
    ],
    edges=edges(),
    domain=runs(),
    hint="When `self.adamw` has taken its step, each rank has updated only its own part. The parameters need the "
         "parts of all ranks.",
)
exercise.requirement(
    "the parameters change in place, and their own `.grad` doesn't change",
    points=0.5,
    probe=leave,
    visible=[given(*both.args, says=f"{says}"), given(*three.args, says=f"{says_three}")],
    edges=edges(),
    domain=runs(),
    hint="Write the new numbers into the existing parameters. Only read their gradients: those belong to the caller.",
)
exercise.requirement(
    "in a step, a rank sends no more than it would in a ring all_reduce of the vector",
    points=0.75,
    probe=send,
    rules={"the most bytes that a rank sends in a step": "at most"},
    visible=[given(*both.args, says=says), given(*three.args, says=says_three)],
    edges=several | {
        "four ranks": given([torch.ones(8)], [[[torch.ones(8) * n] for n in (1, -3, 4, 5)]], 0.5),
        "one rank sends nothing": edges()["one rank"],
    },
    domain=runs((2, 4)),
    hint="An all_reduce consists of two halves (exercise 12.1). Which half do you need before AdamW's step, and "
         "which one after it?",
)  # fmt: skip

exercise.mistake(
    "Your code sums the gradients over the ranks. Average them instead.",
    "self.group.reduce_scatter(gradients) / self.group.size → self.group.reduce_scatter(gradients)",
)  # fmt: skip
exercise.mistake(
    "Each rank steps with its own gradient. Average the gradients over all ranks first.",
    "self.group.reduce_scatter(gradients) / self.group.size → gradients.chunk(self.group.size)[self.group.rank]",
)  # fmt: skip
exercise.mistake("The parameters haven't changed. Copy the gathered numbers into them.",
                 "p.copy_(whole[start : start + p.numel()].view_as(p)) → pass")  # fmt: skip
exercise.mistake(
    "Your code updates only this rank's part of the parameters. Gather the parts of all ranks, too.",
    "whole = self.group.all_gather(self.part) → whole = self.padded(self.params); n = len(self.part); "
    "whole[self.group.rank * n :][:n] = self.part",
)  # fmt: skip
exercise.mistake(
    "Your code copies the beginning of the vector into every parameter. Each parameter has its own range of the "
    "vector.",
    "start += p.numel() → pass",
)  # fmt: skip
exercise.mistake(
    "Your code gives the parameters new memory. Copy the numbers into the memory that they already have.",
    "p.copy_(whole[start : start + p.numel()].view_as(p)) → p.data = whole[start : start + p.numel()].view_as(p)",
)  # fmt: skip
exercise.mistake(
    "Your code overwrites the parameters' own `.grad`. Leave it unchanged.",
    "gradients = self.padded( → for p in self.params: p.grad.mul_(1 / self.group.size)\n        gradients = "
    "self.group.size * self.padded(",
)  # fmt: skip
exercise.mistake(
    "Your code clears the parameters' own `.grad`. Leave that to the caller.",
    "start += p.numel() → start += p.numel(); p.grad = None",
)  # fmt: skip
exercise.mistake(
    "`self.adamw` takes its step too early. Set `self.part.grad` first.",
    "self.part.grad = → self.adamw.step(); self.part.grad =",
    "self.group.size\n        self.adamw.step() → self.group.size",
)  # fmt: skip
exercise.mistake("`self.adamw` never takes its step. Look at step 3 in the statement.", "        self.adamw.step() → ")
much = (
    "Your code sends more than it needs to. A rank needs only its own part of the sum and, after the step, the parts "
    "of all ranks."
)
exercise.mistake(
    much,
    "self.group.reduce_scatter(gradients) / self.group.size → "
    "self.group.all_reduce(gradients).chunk(self.group.size)[self.group.rank] / self.group.size",
)  # fmt: skip
exercise.mistake(
    much,
    "self.group.reduce_scatter(gradients) / self.group.size → "
    "self.group.all_gather(gradients).view(self.group.size, -1).mean(dim=0).chunk(self.group.size)[self.group.rank]",
)  # fmt: skip
exercise.mistake(
    much,
    "self.group.reduce_scatter(gradients) / self.group.size → "
    "torch.stack(self.group.all_to_all([gradients] * self.group.size)).mean(dim=0).chunk(self.group.size)"
    "[self.group.rank]",
)  # fmt: skip
exercise.mistake(
    much,
    "whole = self.group.all_gather(self.part) → n = len(self.part); whole = self.part.new_zeros(n * "
    "self.group.size); whole[self.group.rank * n :][:n] = self.part; whole = self.group.all_reduce(whole)",
)  # fmt: skip
exercise.mistake("All ranks must call the same collectives in the same order.",
                 "gradients = self.padded( → if self.group.rank: return\n        gradients = self.padded(")  # fmt: skip
# %% mistake: keeps the state of everything, on each rank
# says: Each rank keeps state for all parameters. `self.adamw` should keep it for this rank's part only.
class ShardedAdamW:
    def __init__(self, params, group, lr=1e-3):
        self.params, self.group = list(params), group
        self.adamw = torch.optim.AdamW(self.params, lr=lr)

    @torch.no_grad()
    def step(self):
        own = [p.grad for p in self.params]
        for p in self.params:
            p.grad = self.group.all_reduce(p.grad) / self.group.size
        self.adamw.step()
        for p, g in zip(self.params, own):
            p.grad = g

# %% wrong: a board that all ranks read, in place of messages
board = {}

def tell(group, what, x):
    board[what, group.rank] = x.detach().clone()
    group.all_reduce(torch.zeros(0))  # wait for each other
    said = [board[what, rank] for rank in range(group.size)]
    group.all_reduce(torch.zeros(0))
    return said

class ShardedAdamW:
    def __init__(self, params, group, lr=1e-3):
        self.params, self.group = list(params), group
        whole = self.padded([p.detach() for p in self.params])
        self.part = nn.Parameter(whole.chunk(group.size)[group.rank].clone())
        self.adamw = torch.optim.AdamW([self.part], lr=lr)

    def padded(self, tensors):
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        return nn.functional.pad(flat, (0, -len(flat) % self.group.size))

    @torch.no_grad()
    def step(self):
        mean = sum(tell(self.group, "g", self.padded([p.grad for p in self.params]))) / self.group.size
        self.part.grad = mean.chunk(self.group.size)[self.group.rank]
        self.adamw.step()
        whole = torch.cat(tell(self.group, "p", self.part))
        sizes = [p.numel() for p in self.params]
        for p, new in zip(self.params, whole[: sum(sizes)].split(sizes)):
            p.copy_(new.view_as(p))

# %% wrong: averages by the number of parameters
class ShardedAdamW:
    def __init__(self, params, group, lr=1e-3):
        self.params, self.group = list(params), group
        whole = self.padded([p.detach() for p in self.params])
        self.part = nn.Parameter(whole.chunk(group.size)[group.rank].clone())
        self.adamw = torch.optim.AdamW([self.part], lr=lr)

    def padded(self, tensors):
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        return nn.functional.pad(flat, (0, -len(flat) % self.group.size))

    @torch.no_grad()
    def step(self):
        flat = self.padded([p.grad for p in self.params])
        self.part.grad = self.group.reduce_scatter(flat) / len(self.params)
        self.adamw.step()
        whole = self.group.all_gather(self.part)
        sizes = [p.numel() for p in self.params]
        for p, new in zip(self.params, whole[: sum(sizes)].split(sizes)):
            p.copy_(new.view_as(p))

# %% wrong: takes the last numbers where it is padded
class ShardedAdamW:
    def __init__(self, params, group, lr=1e-3):
        self.params, self.group = list(params), group
        whole = self.padded([p.detach() for p in self.params])
        self.part = nn.Parameter(whole.chunk(group.size)[group.rank].clone())
        self.adamw = torch.optim.AdamW([self.part], lr=lr)

    def padded(self, tensors):
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        return nn.functional.pad(flat, (0, -len(flat) % self.group.size))

    @torch.no_grad()
    def step(self):
        flat = self.padded([p.grad for p in self.params])
        self.part.grad = self.group.reduce_scatter(flat) / self.group.size
        self.adamw.step()
        whole = self.group.all_gather(self.part)
        end = len(whole)
        for p in reversed(self.params):
            p.copy_(whole[end - p.numel() : end].view_as(p))
            end -= p.numel()

# %% wrong: vector_to_parameters makes the parameters views of the vector (from the statement)
class ShardedAdamW:
    """AdamW, of which each rank keeps its part of the state (ZeRO stage 1)."""

    def __init__(self, params: Iterable[nn.Parameter], group: Group, lr: float = 1e-3) -> None:
        self.params, self.group = list(params), group
        whole = self.padded([p.detach() for p in self.params])
        self.part = nn.Parameter(whole.chunk(group.size)[group.rank].clone())
        self.adamw = torch.optim.AdamW([self.part], lr=lr)

    def padded(self, tensors: Iterable[Tensor]) -> Float[Tensor, "padded"]:
        """All numbers of the tensors as one vector, with zeros up to a multiple of the ranks."""
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        return nn.functional.pad(flat, (0, -len(flat) % self.group.size))

    @torch.no_grad()
    def step(self) -> None:
        """One step, from each parameter's .grad on each rank."""
        whole = self.padded([p.grad for p in self.params])
        self.part.grad = self.group.reduce_scatter(whole) / self.group.size
        self.adamw.step()
        flat = self.group.all_gather(self.part.detach())
        nn.utils.vector_to_parameters(flat[: sum(p.numel() for p in self.params)], self.params)

# %% wrong: clears the parameters' gradients after the step (from the statement)
class ShardedAdamW:
    """AdamW, of which each rank keeps its part of the state (ZeRO stage 1)."""

    def __init__(self, params: Iterable[nn.Parameter], group: Group, lr: float = 1e-3) -> None:
        self.params, self.group = list(params), group
        whole = self.padded([p.detach() for p in self.params])
        self.part = nn.Parameter(whole.chunk(group.size)[group.rank].clone())
        self.adamw = torch.optim.AdamW([self.part], lr=lr)

    def padded(self, tensors: Iterable[Tensor]) -> Float[Tensor, "padded"]:
        """All numbers of the tensors as one vector, with zeros up to a multiple of the ranks."""
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        return nn.functional.pad(flat, (0, -len(flat) % self.group.size))

    @torch.no_grad()
    def step(self) -> None:
        """One step, from each parameter's .grad on each rank."""
        whole = self.padded([p.grad for p in self.params])
        self.part.grad = self.group.reduce_scatter(whole) / self.group.size
        self.adamw.step()
        flat = self.group.all_gather(self.part.detach())
        for p in self.params:
            values, flat = flat[: p.numel()], flat[p.numel() :]
            p.copy_(values.view_as(p))
            p.grad = None

# %% wrong: the average is written into .grad as well (from the statement)
class ShardedAdamW:
    """AdamW, of which each rank keeps its part of the state (ZeRO stage 1)."""

    def __init__(self, params: Iterable[nn.Parameter], group: Group, lr: float = 1e-3) -> None:
        self.params, self.group = list(params), group
        whole = self.padded([p.detach() for p in self.params])
        self.part = nn.Parameter(whole.chunk(group.size)[group.rank].clone())
        self.adamw = torch.optim.AdamW([self.part], lr=lr)

    def padded(self, tensors: Iterable[Tensor]) -> Float[Tensor, "padded"]:
        """All numbers of the tensors as one vector, with zeros up to a multiple of the ranks."""
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        return nn.functional.pad(flat, (0, -len(flat) % self.group.size))

    @torch.no_grad()
    def step(self) -> None:
        """One step, from each parameter's .grad on each rank."""
        for p in self.params:
            p.grad /= self.group.size
        whole = self.padded([p.grad for p in self.params])
        self.part.grad = self.group.reduce_scatter(whole)
        self.adamw.step()
        flat = self.group.all_gather(self.part.detach())
        begin = 0
        for p in self.params:
            p.copy_(flat[begin : begin + p.numel()].view(p.shape))
            begin += p.numel()

# %% right: PyTorch's own vector_to_parameters does the rest
class ShardedAdamW:
    def __init__(self, params, group, lr=1e-3):
        self.params, self.group = list(params), group
        whole = self.padded([p.detach() for p in self.params])
        self.part = nn.Parameter(whole.chunk(group.size)[group.rank].clone())
        self.adamw = torch.optim.AdamW([self.part], lr=lr)

    def padded(self, tensors):
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        return nn.functional.pad(flat, (0, -len(flat) % self.group.size))

    @torch.no_grad()
    def step(self):
        from torch.nn.utils import parameters_to_vector

        flat = parameters_to_vector([p.grad for p in self.params])
        flat = torch.cat([flat, flat.new_zeros(-len(flat) % self.group.size)])
        self.part.grad = self.group.reduce_scatter(flat).div_(self.group.size)
        self.adamw.step()
        whole = self.group.all_gather(self.part)[: sum(p.numel() for p in self.params)]
        pieces = whole.split([p.numel() for p in self.params])
        for p, piece in zip(self.params, pieces):
            p.data.copy_(piece.reshape(p.shape))

# %% right: divides before it sends, and copies number by number
class ShardedAdamW:
    def __init__(self, params, group, lr=1e-3):
        self.params, self.group = list(params), group
        whole = self.padded([p.detach() for p in self.params])
        self.part = nn.Parameter(whole.chunk(group.size)[group.rank].clone())
        self.adamw = torch.optim.AdamW([self.part], lr=lr)

    def padded(self, tensors):
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        return nn.functional.pad(flat, (0, -len(flat) % self.group.size))

    @torch.no_grad()
    def step(self):
        flat = self.padded([p.grad / self.group.size for p in self.params])
        self.part.grad = self.group.reduce_scatter(flat)
        self.adamw.step()
        self.part.grad = None
        numbers = iter(self.group.all_gather(self.part).tolist())
        for p in self.params:
            new = [next(numbers) for _ in range(p.numel())]
            p.copy_(torch.tensor(new, dtype=p.dtype).view(p.shape))

# %% right: the numbers go where the vector of views is
class ShardedAdamW:
    def __init__(self, params, group, lr=1e-3):
        self.params, self.group = list(params), group
        whole = self.padded([p.detach() for p in self.params])
        self.part = nn.Parameter(whole.chunk(group.size)[group.rank].clone())
        self.adamw = torch.optim.AdamW([self.part], lr=lr)

    def padded(self, tensors):
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        return nn.functional.pad(flat, (0, -len(flat) % self.group.size))

    def step(self):
        self.part.grad = self.group.reduce_scatter(self.padded(p.grad for p in self.params)).mul_(1 / self.group.size)
        self.adamw.step()
        rest = self.group.all_gather(self.part)
        for p in self.params:
            p.detach().view(-1)[:] = rest[: p.numel()]
            rest = rest[p.numel() :]

# %% right: sends each rank its part, and adds up what it gets
class ShardedAdamW:
    def __init__(self, params, group, lr=1e-3):
        self.params, self.group = list(params), group
        whole = self.padded([p.detach() for p in self.params])
        self.part = nn.Parameter(whole.chunk(group.size)[group.rank].clone())
        self.adamw = torch.optim.AdamW([self.part], lr=lr)

    def padded(self, tensors):
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        return nn.functional.pad(flat, (0, -len(flat) % self.group.size))

    @torch.no_grad()
    def step(self):
        flat = self.padded([p.grad for p in self.params])
        terms = self.group.all_to_all(list(flat.chunk(self.group.size)))
        self.part.grad = torch.stack(terms).mean(dim=0)
        self.adamw.step()
        whole = torch.cat(self.group.all_to_all([self.part] * self.group.size))
        start = 0
        for p in self.params:
            p.copy_(whole[start : start + p.numel()].view_as(p))
            start += p.numel()

import itertools

import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of, tensors

exercise = Exercise(
    "Save x in forward. In backward, run the block again with gradients enabled, then run backward from the gradient you're given."
)


def run(student, weights, x, gradient, kind="tanh", before=None, frozen=(), shared=False, training=True, twice=False, hooked=False):
    """A chain of blocks in checkpoints: output, gradients of x and the last block, who ran, what was kept.

    In eval mode a block behaves differently. ``twice``: there are two backward passes. ``hooked``: a hook changes what
    a block returns.
    """
    import torch
    from torch.multiprocessing.reductions import StorageWeakRef
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    class Block(torch.nn.Module):
        def __init__(self, weight, number):
            super().__init__()
            self.number = number
            self.weight = torch.nn.Parameter(weight.clone(), requires_grad="weight" not in frozen)
            self.bias = torch.nn.Parameter(torch.ones_like(weight[0]), requires_grad="bias" not in frozen)
            self.unused = torch.nn.Parameter(torch.ones_like(weight[0]))
            self.inside = torch.nn.Identity()

        def forward(self, x):
            if not isinstance(x, torch.Tensor):
                raise TypeError(f"the block was called with a {type(x).__name__}")
            events.append(self.number)
            if kind == "product":
                return (x @ self.weight + self.bias).exp().sin()
            return torch.tanh(x @ self.weight + self.bias if self.training else x @ self.weight - self.bias)

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            for tensor in tree_leaves(result):
                if isinstance(tensor, torch.Tensor):
                    storage = tensor.untyped_storage()
                    if storage.data_ptr() not in known:
                        made[storage._cdata, storage.data_ptr()] = StorageWeakRef(storage), storage.nbytes()
            return result

    events, made = [], {}
    blocks = [Block(weight, number).train(training) for number, weight in enumerate(weights)]
    for block in blocks:
        block.inside.train(not training)
        if hooked:
            block.register_forward_hook(lambda block, args, result: 2 * result)
    chain = [blocks[0], blocks[0]] if shared else blocks
    start = x.clone().requires_grad_()
    parameters = [p for block in blocks for p in block.parameters()]
    known = {tensor.untyped_storage().data_ptr() for tensor in (start, *parameters)}
    if before is not None:
        for tensor in (start, *(p for p in parameters if p.requires_grad)):
            tensor.grad = torch.full_like(tensor, before)
    out = start
    with Watch():
        for block in chain:
            out = student.Checkpoint.apply(block, out)
    value, forward = out.detach().clone(), list(events)
    total = (out * gradient).sum()  # which keeps the way back, and not the output
    del out
    alive = {ref.cdata: size for ref, size in made.values() if not ref.expired()}
    if total.requires_grad:
        try:
            if twice:
                total.backward(retain_graph=True)
            total.backward()
        except RuntimeError as error:
            error.args = (str(error)[:190],)  # of longer ones a check remembers as much
            raise
    backward, packed = events[len(forward) :], []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t.untyped_storage().data_ptr()), lambda t: t):
        student.Checkpoint.apply(blocks[0], start)
    return {
        "the output": value,
        "the gradient of x": start.grad,
        "the blocks' modes afterward": ["training" if block.training else "eval" for block in blocks],
        "the modes of the modules in them are as they were": all(block.inside.training is not training for block in blocks),
        "the gradients of the block's parameters": {name: p.grad for name, p in chain[-1].named_parameters()},
        "blocks run in forward": forward,
        "blocks run in backward": backward,
        "bytes kept besides the first x": sum(alive.values()),
        "x is kept by ctx.save_for_backward": start.untyped_storage().data_ptr() in packed,
    }


X, PARAMETERS = ("the output", "the gradient of x", "the blocks' modes afterward",
                 "the modes of the modules in them are as they were"), ("the gradients of the block's parameters",)
RUNS, BYTES = ("blocks run in forward", "blocks run in backward"), ("bytes kept besides the first x", "x is kept by ctx.save_for_backward")
rows = torch.tensor([[0.5, -1.0], [0.25, 0.0], [1.0, 2.0]])
first = torch.tensor([[0.5, 0.25, -0.5], [1.0, -0.25, 0.125]])
second = torch.tensor([[0.5], [0.25], [-1.0]])
up = torch.tensor([[1.0, 0.0, 2.0], [0.5, -1.0, 0.0], [0.0, 1.0, 1.0]])
one, two = given([first], rows, up), given([first, second], rows, torch.tensor([[1.0], [2.0], [-0.5]]))
square = torch.tensor([[0.5, 1.0], [-1.0, 0.25]])


@st.composite
def chains(draw):
    count = draw(st.integers(1, 5))
    widths = draw(st.lists(st.integers(1, 5), min_size=2, max_size=4))
    dtype = torch.float64
    weights = [draw(tensors((a, b), dtype)) / 2 for a, b in itertools.pairwise(widths)]
    gradient = draw(tensors((count, widths[-1]), dtype, contiguous=None))
    return given(
        weights, draw(tensors((count, widths[0]), dtype, contiguous=None)), gradient, draw(any_of("tanh", "product")),
        draw(any_of(None, 5.0)), draw(any_of([], [], ["bias"], ["weight"], ["weight", "bias"])), training=draw(any_of(True, True, False)),
    )  # fmt: skip


edges = {
    "three blocks": given([first, second, torch.ones(1, 2)], rows, torch.ones(3, 2)),
    "one row": given([first], rows[:1], up[:1]),
    "no rows": given([first], rows[:0], up[:0]),
    "nothing in the block requires a gradient": given([square], rows, rows, "tanh", None, ["weight", "bias"]),
    "the same block twice": given([square], rows, rows, "tanh", None, [], True),
    "a gradient of zeros": given([first], rows, torch.zeros(3, 3)),
    "gradients that add to others": given([first, second], rows, torch.ones(3, 1), "tanh", 7.0),
    "in eval mode": given([first], rows, up, training=False),
    "one column": given([torch.ones(1, 1)], rows[:, :1], rows[:, :1]),
}
says_one = "out = Checkpoint.apply(block, x), then a backward pass"
says_two = "out = Checkpoint.apply(b, Checkpoint.apply(a, x)), then a backward pass"


def shown(*cases):
    return [given(*case.args, says=says) for case, says in zip(cases, (says_one, says_two), strict=False)]


exercise.requirement(
    "the output, and the gradient that x gets, are those of block(x); the block keeps its mode",
    points=0.75,
    probe=run,
    tolerance=1e-5,
    rules=dict.fromkeys(PARAMETERS + RUNS + BYTES, "ignored"),
    visible=shown(one, two),
    edges=edges | {
        "two backward passes": given([first, second], rows, torch.ones(3, 1), twice=True),
        "blocks with a hook": given([first, second], rows, torch.ones(3, 1), hooked=True),
    },
    domain=chains(),
    hint="The second run starts from a tensor of its own; in backward, return that tensor's gradient as the gradient of x.",
)
exercise.requirement(
    "the block's parameters get the same gradients as from block(x), added to what is in `.grad`",
    points=0.75,
    probe=run,
    tolerance=1e-5,
    rules=dict.fromkeys(X + RUNS + BYTES, "ignored"),
    visible=[
        *shown(one, two),
        given([first], rows, up, "tanh", 5.0, says=f"gradients of 5 everywhere; {says_one}"),
        given([first], rows, up, "tanh", None, ["bias"], says=f"the block's bias is frozen; {says_one}"),
    ],
    edges={name: case for name, case in edges.items() if name != "the same block twice"},
    domain=chains(),
    hint="An ordinary backward pass through the second run adds the right gradients to the parameters.",
)
exercise.requirement(
    "nothing but x itself is kept between forward and backward, by ctx.save_for_backward",
    points=1,
    probe=run,
    rules=dict.fromkeys(X + PARAMETERS + RUNS, "ignored"),
    visible=shown(one, two),
    edges=edges,
    domain=chains(),
    hint="Save x itself and the block, and nothing that was computed from x.",
)
exercise.requirement(
    "the block runs once in forward, and once more in backward",
    points=0.5,
    probe=run,
    rules=dict.fromkeys(X + PARAMETERS + BYTES, "ignored"),
    visible=shown(one, two),
    edges=edges,
    domain=chains(),
    hint="Run the block once in forward and once in backward; the second run gives you all the gradients.",
)

no_grad = "output.backward(gradient) → slope = torch.autograd.grad(output, x, gradient)[0]"
slope = "return None, x.grad → return None, slope"
exercise.mistake(
    "The parameters got no gradient: torch.autograd.grad only returns what it is asked for and adds nothing to .grad.",
    no_grad, slope,
)  # fmt: skip
all_of_them = """output.backward(gradient) → parameters = PARAMETERS
        slope, *rest = torch.autograd.grad(output, [x, *parameters], gradient, allow_unused=True)
        for p, g in zip(parameters, rest):
            p.grad = """
exercise.mistake(
    "Your code replaces what is in .grad; add the gradients to it.",
    all_of_them.replace("PARAMETERS", "[p for p in ctx.block.parameters() if p.requires_grad]") + "g", slope,
)  # fmt: skip
exercise.mistake(
    "Frozen parameters require no gradient, and autograd raises an error if you ask for one.",
    all_of_them.replace("PARAMETERS", "list(ctx.block.parameters())")
    + "p.grad if g is None else g if p.grad is None else p.grad + g", slope,
)  # fmt: skip
mode = "The block behaves differently in eval mode: leave its mode as it is."
exercise.mistake(mode, "return block(x) → return block.eval()(x)")
exercise.mistake(mode, "return block(x) → was = block.training; out = block.eval()(x); block.train(was); return out",
                 "output = ctx.block(x) → was = ctx.block.training; output = ctx.block.eval()(x); ctx.block.train(was)")  # fmt: skip
again = "Something that forward computed is kept: its output, or a graph with everything in it."
exercise.mistake(
    again,
    "x = x.detach().requires_grad_() → pass",
    "(x,) = ctx.saved_tensors → x = ctx.x",
    "output = ctx.block(x) → output = ctx.output",
    "ctx.save_for_backward(x) → ctx.x = x.detach().requires_grad_()",
    "return block(x) → \n        with torch.enable_grad(): ctx.output = block(ctx.x)\n        return "
    "ctx.output.detach().clone()",
)  # fmt: skip
exercise.mistake("backward runs without recording: turn gradient recording on for the second run.",
                 "with torch.enable_grad(): → if True:")  # fmt: skip
exercise.mistake("x is still attached to the graph that produced it, and that graph gets the gradient twice: detach x.",
                 "x = x.detach().requires_grad_() → x.retain_grad()")  # fmt: skip
none = "x gets no gradient, so nothing before this block does either."
exercise.mistake(none, "x.detach().requires_grad_() → x.detach()")
exercise.mistake(
    "Start the backward pass from the gradient that you're given, not from ones.",
    "output = ctx.block(x) → output = ctx.block(x).sum()",
    "output.backward(gradient) → output.backward()",
)  # fmt: skip
exercise.mistake("Return one gradient for each argument of forward, in the same order: the block comes first.",
                 "return None, x.grad → return x.grad, None")  # fmt: skip
exercise.mistake(
    "Return one gradient for each argument of forward: the block is one of them.",
    "return None, x.grad → return x.grad",
)  # fmt: skip
exercise.mistake(none, "return None, x.grad → return None, None")
exercise.mistake(
    "Your code returns the gradient of the output; return that of x.",
    "return None, x.grad → return None, gradient",
)  # fmt: skip
exercise.mistake(
    "The output is kept as well: x is enough.",
    "ctx.save_for_backward(x) → out = block(x); ctx.save_for_backward(x, out)",
    "return block(x) → return out",
    "(x,) = ctx.saved_tensors → x, _ = ctx.saved_tensors",
)  # fmt: skip
exercise.mistake("x is kept, but autograd doesn't know: pass it to ctx.save_for_backward.", "ctx.save_for_backward(x) → ctx.x = x",
                 "(x,) = ctx.saved_tensors → x = ctx.x")  # fmt: skip
exercise.mistake(
    "A copy of x is kept: x itself is enough.",
    "ctx.save_for_backward(x) → ctx.save_for_backward(x.clone())",
)  # fmt: skip
exercise.mistake("x runs through the block twice in forward.", "return block(x) → block(x); return block(x)")
exercise.mistake(
    "Run the block once in backward: one backward pass gives both the parameters' gradients and that of x.",
    "output.backward(gradient) → output.backward(gradient); x.grad = None",
    "return None, x.grad → \n        with torch.enable_grad(): slope = torch.autograd.grad(ctx.block(x), x, "
    "gradient)[0]\n        return None, slope",
)  # fmt: skip
exercise.mistake(
    "The parameters' gradients were added twice.",
    "output.backward(gradient) → output.backward(gradient, retain_graph=True); x.grad = None; "
    "output.backward(gradient)",
)  # fmt: skip
exercise.mistake(
    again,
    "return block(x) → \n        with torch.enable_grad(): ctx.kept = block(x.detach().requires_grad_())\n        "
    "return ctx.kept.detach().clone()",
)  # fmt: skip

# %% wrong: keeps the output, to save the last step of the block
class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, block, x):
        ctx.block = block
        ctx.save_for_backward(x)
        ctx.out = block(x)
        return ctx.out.clone()

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            output = ctx.block(x)
        output.backward(gradient)
        return None, x.grad

# %% wrong: the parameters' gradients are added twice, in two runs
class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, block, x):
        ctx.block = block
        ctx.save_for_backward(x)
        return block(x)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            ctx.block(x).backward(gradient)
            x.grad = None
            ctx.block(x).backward(gradient)
        return None, x.grad

# %% wrong: fails for a parameter that the block does not use
class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, block, x):
        ctx.block = block
        ctx.save_for_backward(x)
        with torch.no_grad():
            return block(x)

    @staticmethod
    def backward(ctx, gradient):
        x = ctx.saved_tensors[0].detach().requires_grad_(True)
        parameters = [p for p in ctx.block.parameters() if p.requires_grad]
        with torch.enable_grad():
            found = torch.autograd.grad(ctx.block(x), [x, *parameters], gradient)
        for p, slope in zip(parameters, found[1:]):
            p.grad = slope if p.grad is None else p.grad + slope
        return None, found[0]

# %% wrong: no checkpoint at all
class Checkpoint:
    @staticmethod
    def apply(block, x):
        return block(x)

# %% wrong: forgets the gradients from before
class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, block, x):
        ctx.block = block
        ctx.save_for_backward(x)
        return block(x)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            output = ctx.block(x)
        ctx.block.zero_grad()
        output.backward(gradient)
        return None, x.grad

# %% wrong: the block runs twice in the backward pass, once for x and once for the parameters (from the statement)
class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, block: nn.Module, x: Tensor) -> Tensor:
        ctx.block = block
        ctx.save_for_backward(x)
        return block(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            here = x.detach().requires_grad_()
            (result,) = torch.autograd.grad(ctx.block(here), here, gradient)
            y = ctx.block(x.detach())
        if y.requires_grad:
            y.backward(gradient)
        return None, result

# %% wrong: the parameters' gradients are lost (from the statement)
class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, block: nn.Module, x: Tensor) -> Tensor:
        ctx.block = block
        ctx.save_for_backward(x)
        return block(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            y = ctx.block(x)
        (result,) = torch.autograd.grad(y, x, gradient)
        return None, result

# %% wrong: unused parameters get zeros for a gradient (from the statement)
class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, block: nn.Module, x: Tensor) -> Tensor:
        ctx.block = block
        ctx.save_for_backward(x)
        return block(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        params = [p for p in ctx.block.parameters() if p.requires_grad]
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            y = ctx.block(x)
        result, *rest = torch.autograd.grad(y, [x, *params], gradient, allow_unused=True, materialize_grads=True)
        for p, g in zip(params, rest, strict=True):
            p.grad = g if p.grad is None else p.grad + g
        return None, result

# %% wrong: the leaf is made once, so a second backward pass adds to the first (from the statement)
# unseen: no visible case has two backward passes
class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, block, x):
        ctx.block, ctx.leaf = block, x.detach().requires_grad_()
        return block(x)

    @staticmethod
    def backward(ctx, gradient):
        with torch.enable_grad():
            out = ctx.block(ctx.leaf)
        out.backward(gradient)
        return None, ctx.leaf.grad.clone()

# %% wrong: sets the mode of all the block's modules for the second run (from the statement)
class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, block, x):
        ctx.block, ctx.training = block, block.training
        ctx.save_for_backward(x)
        return block(x)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        x = x.detach().requires_grad_()
        ctx.block.train(ctx.training)
        with torch.enable_grad():
            out = ctx.block(x)
        out.backward(gradient)
        return None, x.grad

# %% wrong: the method forward of the block, past its hooks (from the statement)
# unseen: students see blocks without hooks
class Checkpoint(torch.autograd.Function):
    """Computes block(x) but keeps only x; the backward pass recomputes the rest."""

    @staticmethod
    def forward(ctx: Any, block: nn.Module, x: Tensor) -> Tensor:
        """The output; autograd records nothing here."""
        ctx.save_for_backward(x)
        ctx.run = block.forward
        return block.forward(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        """The gradients of block (None) and x, from the gradient of the output."""
        (x,) = ctx.saved_tensors
        x = x.detach().requires_grad_(True)
        with torch.enable_grad():
            out = ctx.run(x)
        torch.autograd.backward(out, gradient)
        return None, x.grad

# %% right: asks for all gradients by name, and adds the parameters' by hand
class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, block, x):
        ctx.block = block
        ctx.save_for_backward(x)
        with torch.no_grad():
            return block(x)

    @staticmethod
    def backward(ctx, gradient):
        x = ctx.saved_tensors[0].detach().requires_grad_(True)
        parameters = [p for p in ctx.block.parameters() if p.requires_grad]
        with torch.enable_grad():
            found = torch.autograd.grad(ctx.block(x), [x, *parameters], gradient, allow_unused=True)
        for p, slope in zip(parameters, found[1:]):
            if slope is not None:
                p.grad = slope if p.grad is None else p.grad + slope
        return None, found[0]

# %% right: a vector-Jacobian product of the block
class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, block, x):
        ctx.save_for_backward(x)
        ctx.run = block.__call__
        return block(x)

    @staticmethod
    def backward(ctx, gradient):
        leaf = ctx.saved_tensors[0].detach()
        leaf.requires_grad = True
        torch.set_grad_enabled(True)
        out = ctx.run(leaf)
        (out * gradient).sum().backward()
        torch.set_grad_enabled(False)
        return None, leaf.grad

# %% right: a dot product with the gradient, and any number of arguments
class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, *args):
        ctx.block, x = args
        ctx.save_for_backward(x)
        return ctx.block(x)

    @staticmethod
    def backward(ctx, *gradients):
        leaf = ctx.saved_tensors[0].detach()
        leaf.requires_grad = True
        with torch.set_grad_enabled(True):
            torch.dot(ctx.block(leaf).flatten(), gradients[0].flatten()).backward()
        return None, leaf.grad

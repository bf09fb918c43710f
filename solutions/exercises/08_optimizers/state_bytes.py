import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of, shapes

exercise = Exercise("Go through everything that optimizer.state holds for each parameter, and add up the bytes of the tensors.")


def of_values(student, *kept, parameters="float32"):
    """state_bytes of an optimizer that keeps these dicts, one for each of its (empty) parameters.

    A text such as "float16[2, 3]" stands for a tensor, with "meta " before it for one without memory, with "Parameter "
    before it for one that is a Parameter.
    """
    import torch

    class Keeper(torch.optim.Optimizer):
        def step(self, closure=None):
            for p, values in zip(self.param_groups[0]["params"], kept):
                self.state[p].update({name: made(value) for name, value in values.items()})

    def made(value):
        if isinstance(value, list):
            return [made(each) for each in value]
        if not (isinstance(value, str) and value.endswith("]")):
            return value
        *how, last = value.split(" ")
        dtype, sizes = last.rstrip("]").split("[")
        shape = [int(size) for size in sizes.split(",") if size]
        tensor = torch.empty(shape, dtype=getattr(torch, dtype), device="meta" if "meta" in how else "cpu")
        return torch.nn.Parameter(tensor, requires_grad=False) if "Parameter" in how else tensor

    optimizer = Keeper([torch.nn.Parameter(torch.ones(0, dtype=getattr(torch, parameters))) for _ in kept], {})
    optimizer.step()
    return student.state_bytes(optimizer)


def of_pytorchs(student, name, settings, sizes, steps=1, dtype=None, idle=(), frozen=()):
    """state_bytes of one of PyTorch's optimizers after some steps.

    Parameters at the places idle get no gradient; those at the places frozen are frozen afterwards.
    """
    import torch

    parameters = [torch.nn.Parameter(torch.ones(*shape, dtype=dtype)) for shape in sizes]
    optimizer = getattr(torch.optim, name)([{"params": [p]} for p in parameters], lr=0.1, **settings)
    for _ in range(steps):
        for place, p in enumerate(parameters):
            p.grad = None if place in idle else torch.ones_like(p)
        optimizer.step()
    for place in frozen:
        parameters[place].requires_grad_(False)
    return student.state_bytes(optimizer)


def tensor(*sizes, dtype="float32", how=""):
    return f"{how}{dtype}[{','.join(map(str, sizes))}]"


@st.composite
def several(draw):
    """Several parameters with float32 tensors of any name."""
    names = st.sampled_from(["step", "exp_avg", "exp_avg_sq", "momentum_buffer", "sum", "rows", "p", "m"])
    kept = draw(st.lists(st.dictionaries(names, shapes((0, 3), (0, 5)), max_size=3), min_size=1, max_size=4))
    return given(*({name: tensor(*shape) for name, shape in values.items()} for values in kept))


@st.composite
def of_dtypes(draw):
    dtype = any_of("float64", "float32", "float16", "bfloat16", "int64", "int32", "uint8", "bool", "complex64")
    return given({
        name: tensor(*draw(shapes((0, 2), (1, 9))), dtype=draw(dtype))
        for name in draw(any_of(["step"], ["exp_avg", "step"], ["step", "exp_avg", "exp_avg_sq"]))
    }, parameters=draw(any_of("float32", "bfloat16")))  # fmt: skip


@st.composite
def mixtures(draw):
    other = st.integers() | st.floats(allow_nan=False) | st.none() | st.booleans() | any_of("", "m", "exp_avg")
    kept = {"exp_avg": tensor(draw(st.integers(0, 9)))} | {
        name: draw(other) for name in draw(any_of(["step"], ["exp_avg_sq"], ["step", "exp_avg_sq"]))
    }
    return given(kept)


@st.composite
def optimizers(draw):
    names = any_of(("AdamW", {}), ("Adam", {"amsgrad": True}), ("RMSprop", {}), ("Adagrad", {}), ("SGD", {}),
                   ("SGD", {"momentum": 0.5}), ("Adafactor", {}), ("NAdam", {}))  # fmt: skip
    sizes = draw(st.lists(shapes((1, 3), (1, 5)), min_size=1, max_size=3))
    idle = draw(st.lists(st.integers(0, len(sizes) - 1), max_size=1))
    dtype = draw(any_of(torch.float32, torch.float64, torch.bfloat16))
    return given(*draw(names), sizes, draw(st.integers(0, 2)), dtype, idle)


exercise.requirement(
    "every tensor in the state of any parameter counts, whatever its name",
    points=0.5,
    probe=of_values,
    visible=[
        given({"sum": "float32[2,3]"}, {"sum": "float32[5]"},
              says="the state has float32 tensors of shapes [2, 3] and [5], one for each of two parameters"),
        given({"m": "float32[4]", "rows": "float32[4]", "v": "float32[7]"},
              says='the state has three float32 tensors for one parameter: "m" and "rows" of shape [4], and "v" of shape [7]'),
    ],
    edges={
        "a tensor without elements": given({"m": "float32[0]", "n": "float32[3,0]", "v": "float32[2]"}),
        "equal shapes, again and again": given(*[{"m": "float32[3]", "n": "float32[3]"}] * 4),
        "nothing for the first": given({}, {"sum": "float32[5]"}),
        "more than a machine holds": given({"m": "meta float32[1000000,1000000]", "n": "meta float32[10]"}),
        "a Parameter is a tensor": given({"m": "Parameter float32[3]", "n": "float32[2]"}),
        "keys that are numbers": given({0: "float32[3]", 1: "float32[2]"}),
    },
    domain=several(),
)  # fmt: skip
exercise.requirement(
    "each tensor is counted at the size of its own dtype, counters included",
    points=0.5,
    probe=of_values,
    visible=[
        given({"step": "float32[]", "exp_avg": "bfloat16[2,3]", "exp_avg_sq": "bfloat16[2,3]"}, parameters="bfloat16",
              says='for one bfloat16 parameter the state has "step", a 0-dimensional float32 tensor, and two bfloat16 tensors '
                   "of shape [2, 3]"),
        given({"exp_avg": "float64[]"}, parameters="float64",
              says="the state has a 0-dimensional float64 tensor for one float64 parameter"),
        given({"exp_avg": "int64[3]"}, says="the state has an int64 tensor of shape [3] for one parameter"),
    ],
    edges={
        "whole numbers": given({"step": "int64[2]", "exp_avg": "float16[]"}, parameters="float64"),
        "bytes and bools": given({"step": "bool[]", "exp_avg": "uint8[3]"}),
        "complex numbers": given({"exp_avg": "complex64[3]", "exp_avg_sq": "complex128[2]"}),
        "eight bits of a float": given({"exp_avg": "float8_e4m3fn[16]", "step": "float32[]"}),
        "a counter alone": given({"step": "float32[]"}),
        "without memory": given({"step": "meta float32[]", "exp_avg": "meta bfloat16[3000000,1000000]"}),
    },
    domain=of_dtypes(),
    hint="You can ask a tensor how many elements it has, and how many bytes one of them takes.",
)  # fmt: skip
exercise.requirement(
    "plain numbers, strings and None don't count",
    points=0.5,
    probe=of_values,
    visible=[
        given({"step": 7, "exp_avg": "float32[2,3]"}, says='the state has the int "step" and a tensor of shape [2, 3] for one parameter'),
        given({"exp_avg": "float32[2]", "exp_avg_sq": None, "step": 2.5},
              says='the state has a tensor of shape [2], None, and a float for one parameter'),
        given({"step": "seven", "exp_avg": "float32[2]"}, says="the state has a string and a tensor of shape [2] for one parameter"),
    ],
    edges={
        "True and False": given({"exp_avg": "float32[2]", "step": True, "exp_avg_sq": False}),
        "an empty text": given({"exp_avg": "float32[2]", "step": ""}),
        "no tensor at all": given({"step": 3, "exp_avg": None}),
        "a list of tensors": given({"step": 3, "exp_avg": "float32[2]", "old": ["float32[5]", "float32[7]"]}),
    },
    domain=mixtures(),
    hint="Check whether each value is a tensor.",
)  # fmt: skip
exercise.requirement(
    "parameters and gradients don't count; an optimizer without state has 0 bytes",
    points=0.5,
    probe=of_pytorchs,
    visible=[
        given("AdamW", {}, [(2, 3), (5,)], says="torch.optim.AdamW after a step, with parameters of shapes [2, 3] and [5]"),
        given("SGD", {}, [(2, 3)], says="torch.optim.SGD after a step, with a parameter of shape [2, 3]"),
        given("AdamW", {}, [(2, 3)], 0, says="torch.optim.AdamW before its first step, with a parameter of shape [2, 3]"),
    ],
    edges={
        "in bfloat16": given("AdamW", {}, [(2, 3), (5,)], 2, torch.bfloat16),
        "a parameter that never had a gradient": given("AdamW", {}, [(2, 3), (5,)], 1, None, [1]),
        "no parameter had one": given("AdamW", {}, [(2, 3)], 1, None, [0]),
        "rows and columns": given("Adafactor", {}, [(4, 6), (5,)]),
        "three moments": given("Adam", {"amsgrad": True}, [(4, 6)]),
        "momentum": given("SGD", {"momentum": 0.9}, [(2, 3), (5,)], 1, None, [1]),
        "a parameter frozen afterwards": given("AdamW", {}, [(2, 3), (5,)], 1, None, [], [1]),
    },
    domain=optimizers(),
    hint="Everything that counts is in optimizer.state.",
)

size = "value.numel() * value.element_size()"
test = "if isinstance(value, Tensor)"
exercise.mistake("Your code counts elements; return the bytes that they take.", f"{size} → value.numel()")
exercise.mistake("Not every element takes 4 bytes: that depends on the tensor's dtype.", "value.element_size() → 4")
exercise.mistake("A tensor in the state may have a different "
                 "dtype from its parameter: use the tensor's "
                 "own.", "value.element_size() → parameter.element_size()",
                 "for kept in optimizer.state.values() → for parameter, kept in optimizer.state.items()")  # fmt: skip
exercise.mistake("A 0-dimensional tensor counts, too: it holds one number.", f"{test} → {test} and value.dim() > 0")
exercise.mistake("The step counters count, too.", "for value in kept.values() → for name, value in kept.items()", f'{test} → {test} and name != "step"')
exercise.mistake("Tensors of every dtype count, including integers.", f"{test} → {test} and value.is_floating_point()")
exercise.mistake("Some values in the state aren't tensors: skip them.", f"{test} → if True")
exercise.mistake("Only tensors count: skip plain numbers.",
                 f"{test} → if isinstance(value, (Tensor, int, float))", f"{size} → {size} if isinstance(value, Tensor) else 4")  # fmt: skip
exercise.mistake("A string doesn't count: only tensors do.",
                 f"{test} → if isinstance(value, (Tensor, str))", f"{size} → {size} if isinstance(value, Tensor) else len(value)")  # fmt: skip
exercise.mistake("None doesn't count: it isn't a tensor.", f"{test} → if not isinstance(value, (int, float, str))")
exercise.mistake("Don't count the parameters: they aren't part of the optimizer state.",
                 'return sum( → return sum(p.nbytes for g in optimizer.param_groups for p in g["params"]) + sum(')  # fmt: skip
exercise.mistake("Don't count parameters or gradients: neither is part of the optimizer state.",
                 'return sum( → return sum(2 * p.nbytes for g in optimizer.param_groups for p in g["params"]) + sum(')  # fmt: skip
exercise.mistake("Your code counts only the first parameter's state: include all of them.",
                 "in optimizer.state.values() → in list(optimizer.state.values())[:1]")  # fmt: skip
exercise.mistake("Count every tensor, whatever its name.", "for value in kept.values() → for name, value in kept.items()",
                 f'{test} → {test} and name in ("step", "exp_avg", "exp_avg_sq")')  # fmt: skip
exercise.mistake("Your code counts tensors; the exercise asks for their bytes.", f"{size} → 1")
exercise.mistake("Your result is in bits; return bytes.", f"{size} → 8 * {size}")
exercise.mistake("Several tensors may have the same size: count each of them.", "return sum( → return sum({", f"{test} → {test}\n    }}")
exercise.mistake("Your result is the size of the Python object; the tensor's elements are stored elsewhere.", f"{size} → value.__sizeof__()")

# %% mistake: twice the parameters
# says: Not every optimizer keeps two moments: count what this one actually keeps.
def state_bytes(optimizer):
    return sum(8 * p.numel() for group in optimizer.param_groups for p in group['params'])

# %% mistake: nothing kept is no maximum
# says: An optimizer may have no state at all.
def state_bytes(optimizer):
    import functools
    return functools.reduce(
        lambda a, b: a + b, [v.nbytes for kept in optimizer.state.values() for v in kept.values() if torch.is_tensor(v)]
    )

# %% wrong: knows PyTorch's names
def state_bytes(optimizer):
    names = ("step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq", "momentum_buffer", "square_avg", "sum", "row_var", "col_var",
             "variance", "mu_product")
    return sum(kept[n].nbytes for kept in optimizer.state.values() for n in names if isinstance(kept.get(n), Tensor))

# %% wrong: no Parameter
# unseen: only hidden inputs have a Parameter in the state
def state_bytes(optimizer):
    return sum(v.nbytes for kept in optimizer.state.values() for v in kept.values() if type(v) is Tensor)

# %% wrong: copies to NumPy
def state_bytes(optimizer):
    return sum(v.numpy().nbytes for kept in optimizer.state.values() for v in kept.values() if isinstance(v, Tensor))

# %% wrong: the first tensor's dtype for all
def state_bytes(optimizer):
    total, size = 0, None
    for kept in optimizer.state.values():
        for v in kept.values():
            if isinstance(v, Tensor):
                size = size or v.element_size()
                total += v.numel() * size
    return total

# %% wrong: looks for the first parameter that has state
def state_bytes(optimizer):
    for kept in optimizer.state.values():
        return sum(v.numel() * v.element_size() for v in kept.values() if isinstance(v, Tensor))
    return 0

# %% wrong: only torch.Tensor itself is a tensor (from the statement)
# unseen: only hidden inputs have a Parameter in the state
def state_bytes(optimizer: torch.optim.Optimizer) -> int:
    return sum(
        value.numel() * value.element_size()
        for state in optimizer.state.values()
        for value in state.values()
        if type(value) is Tensor
    )

# %% wrong: tensors of integers are not seen (from the statement)
def state_bytes(optimizer: torch.optim.Optimizer) -> int:
    total = 0
    for state in optimizer.state.values():
        for value in state.values():
            if torch.is_tensor(value) and value.is_floating_point():
                total += value.nbytes
    return total

# %% wrong: only the parameters of the first group (from the statement)
def state_bytes(optimizer: torch.optim.Optimizer) -> int:
    total = 0
    for p in optimizer.param_groups[0]["params"]:
        for value in optimizer.state.get(p, {}).values():
            if isinstance(value, Tensor):
                total += value.nbytes
    return total

# %% wrong: of lists, too (from the statement)
# unseen: no visible case has a list of tensors
def state_bytes(optimizer):
    def size(value):
        if isinstance(value, Tensor):
            return value.nbytes
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
        return sum(map(size, parts))

    return size(list(optimizer.state.values()))

# %% wrong: only the state of parameters that are still trained (from the statement)
# unseen: in the visible cases all of them are
def state_bytes(optimizer):
    total = 0
    for group in optimizer.param_groups:
        for p in group["params"]:
            if p.requires_grad and p in optimizer.state:
                total += sum(v.numel() * v.element_size() for v in optimizer.state[p].values() if torch.is_tensor(v))
    return total

# %% right: nbytes
def state_bytes(optimizer):
    return sum(v.nbytes for kept in optimizer.state.values() for v in kept.values() if isinstance(v, Tensor))

# %% right: through the state_dict
def state_bytes(optimizer):
    saved = optimizer.state_dict()["state"]
    tensors = [v for kept in saved.values() for v in kept.values() if torch.is_tensor(v)]
    return sum(map(lambda v: v.numel() * v.dtype.itemsize, tensors))

# %% right: by storage
def state_bytes(optimizer):
    total = 0
    for group in optimizer.param_groups:
        for p in group["params"]:
            for v in optimizer.state[p].values():
                if hasattr(v, "untyped_storage"):
                    total += v.untyped_storage().nbytes()
    return total

# %% right: asks forgiveness
def state_bytes(o):
    n = 0
    for s in o.state.values():
        for v in s.values():
            try:
                n += v.numel() * v.element_size()
            except AttributeError:
                pass
    return n

# %% right: group by group
def state_bytes(o):
    return sum(
        v.nbytes
        for g in o.param_groups
        for p in g["params"]
        for v in o.state[p].values()
        if torch.is_tensor(v)
    )

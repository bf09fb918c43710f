from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of

exercise = Exercise("Which method of a model returns each of its parameters once, including those of modules in modules?")


def count(student, code, device="cpu"):
    """count_parameters of the model that a few lines make, on a device."""
    import torch

    made = {"torch": torch, "nn": torch.nn}
    with torch.device(device):
        exec(code, made)
    return student.count_parameters(made["model"])


def case(code, device="cpu"):
    on = "" if device == "cpu" else f", made on the device {device}"
    return given(code, device, says=f"{code}\ncount_parameters(model){on}")


@st.composite
def models(draw, buffers=False, tied=False, devices=("cpu",)):
    """Modules in modules; each parameter with a shape of its own, or with that of another."""
    lines = ["model, b, c, d = (nn.Module() for _ in range(4))", "model.b, b.c, c.d = b, c, d"]
    made = []
    places = any_of("model.u", "model.v", "model.w", "b.u", "b.v", "c.u", "d.u", "d.v")
    for place in draw(st.lists(places, max_size=6, unique=True)):
        shape = tuple(draw(st.lists(st.integers(1, 6), max_size=3)))
        kind = draw(any_of("parameter", "parameter", "frozen", *(("buffer",) if buffers else ())))
        if kind == "buffer":
            module, name = place.split(".")
            lines.append(f'{module}.register_buffer("{name}", torch.zeros{shape})' if shape else
                         f'{module}.register_buffer("{name}", torch.tensor(0.0))')  # fmt: skip
            continue
        zeros = f"torch.zeros{shape}" if shape else "torch.tensor(0.0)"
        lines.append(f"{place} = nn.Parameter({zeros}" + (")" if kind == "parameter" else ", requires_grad=False)"))
        made.append(place)
    if tied:
        for name in ("x", "y"):
            if made and draw(st.booleans()):
                lines.append(f"{draw(any_of('model', 'b', 'd'))}.{name} = {draw(any_of(*made))}")
        lines.append(f"{draw(any_of('model', 'b'))}.again = {draw(any_of('c', 'd'))}")
    return given("\n".join(lines), draw(any_of(*devices)))


exercise.requirement(
    "the pair (trainable, frozen): how many numbers require a gradient, and how many don't, including modules in modules",
    points=0.5,
    probe=count,
    visible=[case("model = nn.Conv1d(3, 4, 5)"),
             case("model = nn.Linear(3, 4)\nmodel.scale = nn.Parameter(torch.tensor(1.0))"),
             case("model = nn.Linear(3, 4)\nmodel.bias.requires_grad_(False)"), case("model = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 3, bias=False)))")],
    edges={
        "all frozen": case("model = nn.Linear(3, 4).requires_grad_(False)"),
        "no parameters": case("model = nn.ReLU()"),
        "one number": case("model = nn.Module()\nmodel.scale = nn.Parameter(torch.tensor(1.0))"),
        "no numbers": case("model = nn.Module()\nmodel.none = nn.Parameter(torch.zeros(0, 3))"),
        "three dimensions": case("model = nn.Conv1d(2, 3, 5, bias=False)"),
        "equal shapes, trained and frozen": case(
            "model = nn.Module()\nmodel.a, model.b = nn.Parameter(torch.zeros(2, 3)), nn.Parameter(torch.zeros(2, 3))\n"
            "model.c = nn.Parameter(torch.zeros(2, 3), requires_grad=False)"),
        "whole numbers": case("model = nn.Module()\nmodel.codes = nn.Parameter(torch.zeros(5, dtype=torch.int8), requires_grad=False)"),
        "complex numbers and bfloat16": case(
            "model = nn.Module()\nmodel.a = nn.Parameter(torch.zeros(5, dtype=torch.complex64))\n"
            "model.b = nn.Parameter(torch.zeros(3, dtype=torch.bfloat16))"),
        "deep": case("model = nn.Linear(2, 5)\nfor _ in range(6): model = nn.Sequential(model)"),
        "equal layers": case("model = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))"),
        "lists and dicts of parameters": case(
            'model = nn.Module()\nmodel.a = nn.ParameterList([torch.zeros(2), torch.zeros(3)])\n'
            'model.b = nn.ParameterDict({"c": torch.zeros(4)})\nmodel.d = nn.ModuleDict({"e": nn.Linear(5, 1)})'),
        "the model's own, beside its modules'": case(
            "model = nn.Sequential(nn.Linear(2, 3))\nmodel.scale = nn.Parameter(torch.ones(7))"),
    },
    domain=models(),
)  # fmt: skip
exercise.requirement(
    "buffers don't count, and neither do tensors that aren't registered",
    points=0.25,
    probe=count,
    visible=[case("model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))")],
    edges={
        "buffers alone": case('model = nn.Module()\nmodel.register_buffer("mask", torch.zeros(3, 3))'),
        "a buffer that is not saved": case(
            'model = nn.Linear(2, 2)\nmodel.register_buffer("mask", torch.zeros(3, 3), persistent=False)'),
        "a plain tensor": case("model = nn.Linear(2, 2)\nmodel.table = torch.zeros(5, requires_grad=True)"),
        "layers in a plain list": case("model = nn.Linear(2, 2)\nmodel.layers = [nn.Linear(3, 3)]"),
    },
    domain=models(buffers=True),
    hint="Ask the model itself, and only for what it has registered as parameters.",
)  # fmt: skip
exercise.requirement(
    "a parameter with several names, or a module that's used in two places, counts once, on the meta device too",
    points=0.25,
    probe=count,
    visible=[
        case("model = nn.Sequential(nn.Embedding(10, 3), nn.Linear(3, 10, bias=False))\nmodel[1].weight = model[0].weight"),
        case("layer = nn.Linear(2, 3, bias=False)\nmodel = nn.Sequential(nn.Linear(3, 2), layer, nn.Linear(3, 2), layer)", "meta"),
    ],
    edges={
        "on the meta device": case("model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2))", "meta"),
        "tied on the meta device": case(
            "model = nn.Sequential(nn.Embedding(10, 3), nn.Linear(3, 10))\nmodel[1].weight = model[0].weight", "meta"),
        "three names": case("model = nn.Module()\nmodel.a = nn.Parameter(torch.zeros(4))\nmodel.b = model.a\nmodel.c = model.a"),
        "tied and frozen": case("model = nn.Module()\nmodel.a = nn.Parameter(torch.zeros(4), requires_grad=False)\nmodel.b = model.a"),
        "a module in itself, at two depths": case(
            "layer = nn.Linear(2, 3)\nmodel = nn.Sequential(layer, nn.Sequential(layer, nn.Linear(3, 3)))"),
        "more than any memory holds": case("model = nn.Linear(2**20, 2**22, bias=False)", "meta"),
        "two parts of one storage": case(
            "flat = torch.zeros(10)\nmodel = nn.Module()\nmodel.a, model.b = nn.Parameter(flat[:3]), nn.Parameter(flat[3:])"),
        "two parts of one storage, in two modules": case(
            "flat = torch.zeros(10)\nmodel = nn.Sequential(nn.Module(), nn.Module())\n"
            "model[0].a, model[1].a = nn.Parameter(flat[:5]), nn.Parameter(flat[5:])"),
        "twice the same memory": case(
            "flat = torch.zeros(4)\nmodel = nn.Module()\nmodel.a, model.b = nn.Parameter(flat), nn.Parameter(flat.view(2, 2))"),
        "equal values are two parameters": case(
            "model = nn.Module()\nmodel.a, model.b = nn.Parameter(torch.zeros(4)), nn.Parameter(torch.zeros(4))"),
    },
    domain=models(tied=True, devices=("cpu", "meta")),
    hint="Don't compare names, addresses or values: which method returns each parameter once?",
)  # fmt: skip

exercise.mistake("Is every parameter trained? Ask each for requires_grad.",
                 "trainable = sum(p.numel() for p in model.parameters() if p.requires_grad) → "
                 "trainable = sum(p.numel() for p in model.parameters())",
                 "frozen = sum(p.numel() for p in model.parameters() if not p.requires_grad) → frozen = 0")  # fmt: skip
exercise.mistake("Your second number counts all parameters; the exercise asks for the frozen ones.", "model.parameters() if not p.requires_grad → model.parameters()")
exercise.mistake("Your first number counts all parameters; the exercise asks for the trainable ones.", "model.parameters() if p.requires_grad → model.parameters()")
exercise.mistake("Your result is (frozen, trainable): the exercise asks for trainable first.", "return trainable, frozen → return frozen, trainable")
exercise.mistake("Return a pair, (trainable, frozen), and not one number.", "return trainable, frozen → return trainable")
exercise.mistake("Return a pair, (trainable, frozen), and not one number.", "return trainable, frozen → return trainable + frozen")
twice = "Your code counts a parameter with two names twice."
exercise.mistake(twice, "p.numel() for p in model.parameters() if p.requires → p.numel() for _, p in model.named_parameters(remove_duplicate=False) if p.requires",
                 "p.numel() for p in model.parameters() if not → p.numel() for _, p in model.named_parameters(remove_duplicate=False) if not")  # fmt: skip
exercise.mistake("Modules in modules have parameters, too.", "model.parameters() if p → model.parameters(recurse=False) if p",
                 "model.parameters() if not → model.parameters(recurse=False) if not")  # fmt: skip
exercise.mistake("The model's own parameters() includes those of modules in modules: don't add them up module by module.",
                 "for p in model.parameters() if p → for m in model.modules() for p in m.parameters() if p",
                 "for p in model.parameters() if not → for m in model.modules() for p in m.parameters() if not")  # fmt: skip
exercise.mistake("A buffer isn't a parameter, frozen or not.",
                 "frozen = sum(p.numel() for p in model.parameters() if not p.requires_grad) → frozen = "
                 "sum(p.numel() for p in model.parameters() if not p.requires_grad) + sum(b.numel() for b in model.buffers())")  # fmt: skip
exercise.mistake("Your code counts tensors; the exercise asks for numbers.", "trainable = sum(p.numel() → trainable = sum(1", "frozen = sum(p.numel() → frozen = sum(1")
exercise.mistake("Your result is in bytes; the exercise asks for numbers.", "trainable = sum(p.numel() → trainable = sum(p.nbytes", "frozen = sum(p.numel() → frozen = sum(p.nbytes")

# %% mistake: from the state dict
# says: state_dict() lists each name, buffers as well, and its tensors require no gradient.
def count_parameters(model):
    tensors = model.state_dict().values()
    return (
        sum(t.numel() for t in tensors if t.requires_grad),
        sum(t.numel() for t in tensors if not t.requires_grad),
    )

# %% mistake: by address
# says: On the meta device each address is 0, so it doesn't show which parameters are the same.
def count_parameters(model):
    each = {p.data_ptr(): p for p in model.parameters()}.values()
    trainable = sum(p.numel() for p in each if p.requires_grad)
    return trainable, sum(p.numel() for p in each) - trainable

# %% mistake: by shape
# says: Two parameters of the same shape are still two.
def count_parameters(model):
    each = {p.shape: p for p in model.parameters()}.values()
    trainable = sum(p.numel() for p in each if p.requires_grad)
    return trainable, sum(p.numel() for p in each) - trainable

# %% mistake: walks twice through what can be walked through once
# says: None are frozen? You can go through a generator only once: call parameters() for each sum.
def count_parameters(model):
    each = model.parameters()
    trainable = sum(p.numel() for p in each if p.requires_grad)
    return trainable, sum(p.numel() for p in each if not p.requires_grad)

# %% wrong: from the state dict, by name
def count_parameters(model):
    names = dict(model.named_parameters())
    tensors = [t for n, t in model.state_dict().items() if n in names]
    return (
        sum(t.numel() for t in tensors if t.requires_grad),
        sum(t.numel() for t in tensors if not t.requires_grad),
    )

# %% wrong: by storage, which empty parameters and those on the meta device share
def count_parameters(model):
    each = {p.untyped_storage().data_ptr(): p for p in model.parameters()}.values()
    trainable = sum(p.numel() for p in each if p.requires_grad)
    return trainable, sum(p.numel() for p in each) - trainable

# %% wrong: rows times columns
def count_parameters(model):
    counts = [0, 0]
    for p in model.parameters():
        rows, columns = (*p.shape, 1, 1)[:2]
        counts[not p.requires_grad] += rows * columns
    return tuple(counts)

# %% wrong: walks through children, and forgets which it has seen
def count_parameters(model):
    trainable = sum(p.numel() for p in model.parameters(recurse=False) if p.requires_grad)
    frozen = sum(p.numel() for p in model.parameters(recurse=False) if not p.requires_grad)
    for child in model.children():
        more = count_parameters(child)
        trainable, frozen = trainable + more[0], frozen + more[1]
    return trainable, frozen

# %% wrong: modules that are used in two places once, but names of parameters twice
def count_parameters(model):
    each = [p for m in model.modules() for p in m.parameters(recurse=False)]
    trainable = sum(p.numel() for p in each if p.requires_grad)
    return trainable, sum(p.numel() for p in each) - trainable

# %% wrong: what autograd could train
# unseen: complex parameters are for the hidden inputs to find
def count_parameters(model):
    counts = [0, 0]
    for p in model.parameters():
        counts[0 if p.is_floating_point() and p.requires_grad else 1] += p.numel()
    return tuple(counts)

# %% wrong: what shares a storage is taken for the same parameter (from the statement)
# unseen: two parameters in one storage are for the hidden inputs to find
def count_parameters(model: nn.Module) -> tuple[int, int]:
    seen = set()
    counts = {True: 0, False: 0}
    for p in model.parameters():
        key = p.untyped_storage()._cdata
        if key not in seen:
            seen.add(key)
            counts[p.requires_grad] += p.numel()
    return counts[True], counts[False]

# %% wrong: only floating-point parameters count (from the statement)
# unseen: parameters that aren't floating-point are for the hidden inputs to find
def count_parameters(model: nn.Module) -> tuple[int, int]:
    params = [p for p in model.parameters() if p.is_floating_point()]
    trainable = sum(p.numel() for p in params if p.requires_grad)
    return trainable, sum(p.numel() for p in params) - trainable

# %% wrong: a scalar parameter has no sizes to multiply (from the statement)
def count_parameters(model: nn.Module) -> tuple[int, int]:
    def size(p: Tensor) -> int:
        n = 1 if p.shape else 0
        for s in p.shape:
            n *= s
        return n

    trainable = sum(size(p) for p in model.parameters() if p.requires_grad)
    frozen = sum(size(p) for p in model.parameters() if not p.requires_grad)
    return trainable, frozen

# %% right: one loop, a list
def count_parameters(model):
    counts = [0, 0]
    for p in model.parameters():
        counts[0 if p.requires_grad else 1] += p.numel()
    return counts

# %% right: from shapes, by identity, through all modules
def count_parameters(model):
    seen = {}
    for module in model.modules():
        for p in module._parameters.values():
            if p is not None:
                seen[id(p)] = p
    trainable = sum(math.prod(p.shape) for p in seen.values() if p.requires_grad)
    return trainable, sum(math.prod(p.shape) for p in seen.values()) - trainable

# %% right: recursion, with what has been seen
def count_parameters(model, seen=None):
    seen = set() if seen is None else seen
    trainable = frozen = 0
    for p in model.parameters(recurse=False):
        if p in seen:
            continue
        seen.add(p)
        trainable += p.nelement() * p.requires_grad
        frozen += p.nelement() * (not p.requires_grad)
    for child in model.children():
        more = count_parameters(child, seen)
        trainable, frozen = trainable + more[0], frozen + more[1]
    return trainable, frozen

from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of

exercise = Exercise("Count each parameter and each buffer once. How many elements does each have, and how many bytes does one element take?")


def weigh(student, code, device="cpu"):
    """model_bytes of the model that a few lines make, on a device."""
    import torch

    made = {"torch": torch, "nn": torch.nn}
    with torch.device(device):
        exec(code, made)
    return student.model_bytes(made["model"])


def case(code, device="cpu"):
    on = "" if device == "cpu" else f", made on the device {device}"
    return given(code, device, says=f"{code}\nmodel_bytes(model){on}")


FLOATS = ("float32", "bfloat16", "float16", "float64", "float8_e4m3fn", "complex64")
OTHERS = ("int64", "int32", "int16", "uint16", "int8", "uint8", "bool")


@st.composite
def models(draw, kinds=("parameter",), whole=(), tied=False, dtypes=("float32",), devices=("cpu",)):
    """Modules in modules, with parameters and buffers of several shapes."""
    lines = ["model, b, c, d = (nn.Module() for _ in range(4))", "model.b, b.c, c.d = b, c, d"]
    made, buffers = [], []
    places = any_of("model.u", "model.v", "b.u", "b.v", "c.u", "d.u", "d.v")
    for place in draw(st.lists(places, max_size=6, unique=True)):
        shape = draw(st.lists(st.integers(0 if tied else 1, 6), max_size=3))
        kind = draw(any_of(*kinds))
        dtype = draw(any_of(*dtypes, *(OTHERS if kind in whole else ())))
        zeros = f"torch.zeros({shape}, dtype=torch.{dtype})"
        if kind in ("buffer", "scratch"):
            module, name = place.split(".")
            lines.append(f'{module}.register_buffer("{name}", {zeros}, persistent={kind == "buffer"})')
            buffers.append(place)
        else:
            lines.append(f"{place} = nn.Parameter({zeros}, requires_grad={kind == 'parameter'})")
            made.append(place)
    if tied:
        if made:
            lines.append(f"{draw(any_of('model', 'b', 'd'))}.x = {draw(any_of(*made))}")
        if buffers:
            lines.append(f'{draw(any_of("model", "b"))}.register_buffer("y", {draw(any_of(*buffers))})')
        lines.append(f"{draw(any_of('model', 'b'))}.again = {draw(any_of('c', 'd'))}")
    return given("\n".join(lines), draw(any_of(*devices)))


def of_dtype(dtype):
    return case(f"model = nn.Module()\nmodel.w = nn.Parameter(torch.zeros(3, 5, dtype=torch.{dtype}), requires_grad=False)")


exercise.requirement(
    "each tensor takes its number of elements times the bytes of one element, which depend on its dtype",
    points=0.5,
    probe=weigh,
    visible=[
        case("model = nn.Linear(3, 4)"),
        case("model = nn.Sequential(nn.Linear(6, 4, dtype=torch.bfloat16), nn.Linear(4, 2, dtype=torch.float64))"),
    ],
    edges={
        **{f"one of {dtype}": of_dtype(dtype) for dtype in (*FLOATS, *OTHERS)},
        "one number": case("model = nn.Module()\nmodel.w = nn.Parameter(torch.tensor(1.0))"),
        "no numbers": case("model = nn.Module()\nmodel.w = nn.Parameter(torch.zeros(0, 5))"),
        "nothing": case("model = nn.ReLU()"),
        "modules in modules": case("model = nn.Sequential(nn.Sequential(nn.Sequential(nn.Linear(3, 2)), nn.Linear(2, 1)))"),
        "a part of a larger storage": case("model = nn.Module()\nmodel.w = nn.Parameter(torch.zeros(8, 6)[2:5])"),
        "every second column": case("model = nn.Module()\nmodel.w = nn.Parameter(torch.zeros(8, 6)[:, ::2])"),
    },
    domain=models(("parameter", "frozen"), ("frozen",), dtypes=FLOATS),
)
exercise.requirement(
    "parameters count whether they're trained or frozen, and buffers count whether they're saved or not",
    points=0.5,
    probe=weigh,
    visible=[
        case("model = nn.Linear(3, 4)\nmodel.bias.requires_grad_(False)"),
        case("model = nn.BatchNorm1d(4)"),
        case('model = nn.Linear(3, 4)\nmodel.register_buffer("mask", torch.zeros(6, 6, dtype=torch.bool), persistent=False)'),
    ],
    edges={
        "all frozen": case("model = nn.Linear(3, 4).requires_grad_(False)"),
        "buffers alone": case('model = nn.Module()\nmodel.register_buffer("steps", torch.zeros(3, dtype=torch.int64))'),
        "one number": case('model = nn.Module()\nmodel.register_buffer("step", torch.tensor(0))'),
        "a buffer that is None": case('model = nn.Linear(2, 2, bias=False)\nmodel.register_buffer("mask", None)'),
        "modules in modules": case("model = nn.Sequential(nn.Linear(3, 2), nn.Sequential(nn.BatchNorm1d(2), nn.BatchNorm1d(3)))"),
        "buffers of other dtypes": case(
            'model = nn.BatchNorm1d(4, dtype=torch.bfloat16)\nmodel.register_buffer("a", torch.zeros(5, dtype=torch.uint16))\n'
            'model.register_buffer("b", torch.zeros(5, dtype=torch.float8_e4m3fn), persistent=False)'),
        "a plain tensor does not": case("model = nn.Linear(2, 2)\nmodel.table = torch.zeros(5)"),
        "a buffer that is part of a larger storage": case(
            'model = nn.Linear(2, 2)\nmodel.register_buffer("a", torch.zeros(100)[:7])'),
    },
    domain=models(("parameter", "frozen", "buffer", "scratch"), ("buffer", "scratch"), dtypes=FLOATS[:4]),
    hint="Besides its parameters, a model has buffers. Which method returns the buffers?",
)  # fmt: skip
exercise.requirement(
    "a parameter or buffer with several names counts once",
    points=0.5,
    probe=weigh,
    visible=[
        case("model = nn.Sequential(nn.Embedding(10, 3), nn.Linear(3, 10, bias=False))\nmodel[1].weight = model[0].weight"),
        case("layer = nn.Linear(2, 3)\nmodel = nn.Sequential(layer, nn.Linear(3, 2), layer)"),
        case('model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2))\n'
             'model[0].register_buffer("table", torch.zeros(5))\nmodel[1].register_buffer("table", model[0].table)'),
    ],
    edges={
        "a part that begins where the whole does": case(
            'model = nn.Module()\nmodel.register_buffer("a", torch.zeros(6))\nmodel.register_buffer("b", model.a[:2])'),
        "three names": case("model = nn.Module()\nmodel.a = nn.Parameter(torch.zeros(4))\nmodel.b = model.a\nmodel.c = model.a"),
        "a buffer with two names": case(
            'model = nn.Linear(2, 2)\nmodel.register_buffer("a", torch.zeros(4))\nmodel.register_buffer("b", model.a)'),
        "a buffer in two modules": case(
            'model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))\nmask = torch.zeros(4)\n'
            'for layer in model: layer.register_buffer("mask", mask)'),
        "a module with buffers, twice": case("norm = nn.BatchNorm1d(3)\nmodel = nn.Sequential(norm, nn.Linear(3, 3), norm)"),
        "at two depths": case("layer = nn.Linear(2, 3)\nmodel = nn.Sequential(layer, nn.Sequential(layer, nn.Linear(3, 3)))"),
        "two parts of one storage": case(
            "flat = torch.zeros(10)\nmodel = nn.Module()\nmodel.a, model.b = nn.Parameter(flat[:3]), nn.Parameter(flat[3:])"),
        "two parts of one storage, in two modules": case(
            "flat = torch.zeros(10)\nmodel = nn.Sequential(nn.Module(), nn.Module())\n"
            "model[0].a, model[1].a = nn.Parameter(flat[:5]), nn.Parameter(flat[5:])"),
        "two buffers in one storage": case(
            'flat = torch.zeros(10)\nmodel = nn.Module()\n'
            'model.register_buffer("a", flat[:3])\nmodel.register_buffer("b", flat[3:])'),
        "equal values are two tensors": case(
            "model = nn.Module()\nmodel.a, model.b = nn.Parameter(torch.zeros(4)), nn.Parameter(torch.zeros(4))"),
        "equal shapes are two tensors": case("model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))"),
    },
    domain=models(("parameter", "buffer"), tied=True),
    hint="Don't compare names or values: which methods return each tensor once?",
)
exercise.requirement(
    "model_bytes also works on the meta device",
    points=0.5,
    probe=weigh,
    visible=[
        case("model = nn.Sequential(nn.Linear(6, 4), nn.Linear(4, 6), nn.Linear(6, 4))", "meta"),
        case("model = nn.Linear(2**20, 2**22, bias=False)", "meta"),
    ],
    edges={
        "one layer": case("model = nn.Linear(6, 4)", "meta"),
        "nothing": case("model = nn.ReLU()", "meta"),
        "many layers of one shape": case("model = nn.ModuleList(nn.Linear(8, 8) for _ in range(20))", "meta"),
        "70 billion": case("model = nn.ModuleList(nn.Linear(8_192, 106_496) for _ in range(80))", "meta"),
    },
    domain=models(devices=("meta",)),
    hint="Even without a storage, a tensor has a shape and a dtype.",
)

saved = "Buffers that aren't saved take memory, too; and state_dict() lists a tensor once for each name."
both = "[*model.parameters(), *model.buffers()]"
exercise.mistake("Buffers take memory, too.", f"{both} → list(model.parameters())")
exercise.mistake("Parameters take memory, too, not only buffers.", f"{both} → list(model.buffers())")
exercise.mistake("Not every number takes four bytes: it depends on the dtype.", "t.element_size() → 4")
exercise.mistake("Your code counts elements. The exercise asks for bytes.", "t.numel() * t.element_size() → t.numel()")
exercise.mistake(
    "Your code adds up the sizes of single elements. Each tensor has many of them.",
    "t.numel() * t.element_size() → t.element_size()",
)  # fmt: skip
exercise.mistake(
    "Your result is in bits. Return bytes.",
    "t.numel() * t.element_size() → 8 * t.numel() * t.element_size()",
)  # fmt: skip
exercise.mistake("The tensors may differ in dtype: ask each one.", "t.element_size() → tensors[0].element_size()")
exercise.mistake("Your code counts a tensor with two names twice.",
                 f"{both} → [t for m in (model.named_parameters, model.named_buffers) for _, t in m(remove_duplicate=False)]")  # fmt: skip
exercise.mistake("A frozen parameter takes memory as well.", f"{both} → [*(p for p in model.parameters() if p.requires_grad), *model.buffers()]")
exercise.mistake("Frozen parameters and buffers take memory as well.", f"{both} → [p for p in model.parameters() if p.requires_grad]")
exercise.mistake(
    "Modules inside modules have parameters and buffers, too.",
    f"{both} → [*model.parameters(recurse=False), *model.buffers(recurse=False)]",
)  # fmt: skip
exercise.mistake(saved, f"{both} → list(model.state_dict().values())")
exercise.mistake(saved,
                 f"{both} → [*model.parameters(), *(b for n, b in model.named_buffers() if n in model.state_dict())]")  # fmt: skip
exercise.mistake("On the meta device every address is 0, so addresses don't show which tensors are the same.",
                 "for t in tensors → for t in {(t.data_ptr(), t.shape): t for t in tensors}.values()")  # fmt: skip
exercise.mistake("Two tensors of the same shape are still two.", "for t in tensors → for t in {t.shape: t for t in tensors}.values()")
exercise.mistake("On the meta device a tensor has no storage to measure: count from its shape and dtype.",
                 "t.numel() * t.element_size() → (len(bytes(t.untyped_storage().cpu())) if t.device.type == 'cpu' else 0)")  # fmt: skip

# %% wrong: by storage
def model_bytes(model):
    tensors = [*model.parameters(), *model.buffers()]
    return sum({t.untyped_storage().data_ptr(): t.nbytes for t in tensors}.values())

# %% wrong: untyped storages, which may be larger than what is seen of them
# unseen: only hidden inputs have tensors that are part of a larger storage
def model_bytes(model):
    tensors = [*model.parameters(), *model.buffers()]
    return sum({id(t): t.untyped_storage().nbytes() for t in tensors}.values())

# %% wrong: a parameter that is no float
# unseen: only hidden inputs have parameters that aren't floating-point
def model_bytes(model):
    parameters = sum(p.numel() * torch.finfo(p.dtype).bits // 8 for p in model.parameters())
    return parameters + sum(b.nbytes for b in model.buffers())

# %% wrong: bits of floating dtypes
def model_bytes(model):
    tensors = [*model.parameters(), *model.buffers()]
    bits = [torch.finfo(t.dtype).bits if t.is_floating_point() else torch.iinfo(t.dtype).bits for t in tensors]
    return sum(t.numel() * b // 8 for t, b in zip(tensors, bits))

# %% wrong: in whole MB
def model_bytes(model):
    tensors = [*model.parameters(), *model.buffers()]
    return round(sum(t.numel() * t.element_size() for t in tensors) / 2**20) * 2**20

# %% wrong: saves it and looks
def model_bytes(model):
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    return file.tell()

# %% wrong: parameters once, buffers as often as they have names
def model_bytes(model):
    buffers = [b for module in model.modules() for b in module.buffers(recurse=False)]
    return sum(t.nbytes for t in [*model.parameters(), *buffers])

# %% wrong: leaves out what has no dimensions
def model_bytes(model):
    tensors = [*model.parameters(), *model.buffers()]
    return sum(len(t) * math.prod(t.shape[1:]) * t.element_size() for t in tensors if t.dim())

# %% wrong: its own elements, but one tensor for each storage (from the statement)
# unseen: only hidden inputs have two tensors in one storage
def model_bytes(model: nn.Module) -> int:
    seen, total = set(), 0
    for t in itertools.chain(model.parameters(), model.buffers()):
        key = t.untyped_storage()._cdata
        if key in seen:
            continue
        seen.add(key)
        total += t.nbytes
    return total

# %% wrong: buffers with several names count several times (from the statement)
def model_bytes(model: nn.Module) -> int:
    total = sum(p.numel() * p.element_size() for p in model.parameters())
    for module in model.modules():
        for b in module.buffers(recurse=False):
            total += b.numel() * b.element_size()
    return total

# %% wrong: the bytes of each storage, once (from the statement)
# unseen: only hidden inputs have tensors that are part of a larger storage
def model_bytes(model: nn.Module) -> int:
    storages = {}
    for t in [*model.parameters(), *model.buffers()]:
        storage = t.untyped_storage()
        storages[storage._cdata] = storage.nbytes()
    return sum(storages.values())

# %% right: nbytes
def model_bytes(model):
    return sum(p.nbytes for p in model.parameters()) + sum(b.nbytes for b in model.buffers())

# %% right: by identity, through all modules
def model_bytes(model):
    seen = {}
    for module in model.modules():
        for t in [*module._parameters.values(), *module._buffers.values()]:
            if t is not None:
                seen[id(t)] = t
    return sum(math.prod(t.shape) * t.dtype.itemsize for t in seen.values())

# %% right: a loop
def model_bytes(model):
    total = 0
    for tensor in model.parameters():
        total += tensor.nelement() * tensor.itemsize
    for name, tensor in model.named_buffers():
        total += tensor.nelement() * tensor.itemsize
    return total

from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of

exercise = Exercise("Go through the model's tensors with their names, each once. Which words does a name have, and what does its tensor add to which part?")


def take(student, code, parts, device="cpu"):
    """The inventory of the model that a few lines make, on a device, number by number."""
    import torch

    made = {"torch": torch, "nn": torch.nn}
    with torch.device(device):
        exec(code, made)
    before = {part: list(words) for part, words in parts.items()}
    found = student.inventory(made["model"], parts)
    fits = isinstance(found, dict) and all(isinstance(row, (tuple, list)) and len(row) == 3 for row in found.values())
    columns = ("trainable", "frozen", "bytes")
    return {
        "what it returns": "three numbers for each part" if fits else found,
        "parts": sorted(map(str, found)) if isinstance(found, dict) else None,
        **{column: {str(part): row[i] for part, row in found.items()} if fits else None for i, column in enumerate(columns)},
        "parts is as it was": parts == before,
    }


def only(*columns):
    return dict.fromkeys({"trainable", "frozen", "bytes"} - {*columns}, "ignored")


def case(code, parts=None, device="cpu"):
    on = "" if device == "cpu" else f", with a model made on the device {device}"
    return given(code, parts or {}, device, says=f"{code}\ninventory(model, {parts or {}}){on}")


FLOATS = ("float32", "bfloat16", "float16", "float64", "float8_e4m3fn", "complex64")
OTHERS = ("int64", "int32", "int16", "uint16", "int8", "uint8", "bool")
WORDS = ("a", "ab", "b", "ba", "norm", "norm_1", "weight", "bias")


@st.composite
def names(draw):
    """Modules in modules, whose names have words that contain each other; parts that share words."""

    def module(depth):
        if depth == 0 or draw(any_of(True, False)):
            bias = draw(st.booleans())
            return f"nn.Linear({draw(st.integers(1, 5))}, {draw(st.integers(1, 5))}, bias={bias})"
        inside = draw(st.lists(any_of(*WORDS[:6]), min_size=1, max_size=3, unique=True))
        return "nn.ModuleDict({" + ", ".join(f'"{word}": {module(depth - 1)}' for word in inside) + "})"

    inside = draw(st.lists(any_of(*WORDS[:6]), min_size=1, max_size=3, unique=True))
    code = "model = nn.ModuleDict({" + ", ".join(f'"{word}": {module(2)}' for word in inside) + "})"
    parts = draw(st.lists(any_of("one", "two", "three", "a", "norm"), max_size=4, unique=True))
    return given(code, {part: draw(st.lists(any_of(*WORDS, "0", "other"), max_size=3, unique=True)) for part in parts})


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
    parts = any_of({}, {"deep": ["d"]}, {"middle": ["c"]}, {"top": ["u"], "other": ["v"]})  # none share a tensor
    return given("\n".join(lines), draw(parts), draw(any_of(*devices)))


def of_dtype(dtype):
    return case(f"model = nn.Module()\nmodel.w = nn.Parameter(torch.zeros(3, 5, dtype=torch.{dtype}), requires_grad=False)")


BLOCK = ('model = nn.ModuleDict({"q": nn.Linear(4, 4, bias=False), "norm": nn.LayerNorm(4), '
         '"up": nn.Linear(4, 8, bias=False)})')  # fmt: skip
exercise.requirement(
    "each tensor counts toward the first part that lists one of the words of its name, or else toward \"rest\"; "
    "every part has an entry",
    points=0.75,
    probe=take,
    rules=only("trainable"),
    visible=[
        case(BLOCK, {"attention": ["q", "k", "v"], "norm": ["norm"], "biases": ["bias"]}),
        case('model = nn.Sequential(nn.ModuleDict({"up": nn.Linear(2, 3), "norm_1": nn.LayerNorm(3)}), nn.Linear(3, 2))',
             {"norms": ["norm"], "biases": ["bias"], "first": ["0"]}),
        case("model = nn.Linear(2, 3)", {"norms": ["norm"]}),
    ],
    edges={
        "no parts": case(BLOCK),
        "nothing is left": case(BLOCK, {"all": ["q", "norm", "up"]}),
        "no tensors": case("model = nn.ReLU()", {"a": ["weight"]}),
        "no words": case("model = nn.Linear(2, 3)", {"a": [], "b": ["weight"]}),
        "a word in two parts": case("model = nn.Linear(2, 3)", {"b": ["weight"], "a": ["weight", "bias"]}),
        "a word that has others in it": case('model = nn.ModuleDict({"pre-norm": nn.Linear(2, 2), "2norm": nn.Linear(3, 1)})', {"norms": ["norm", "2"]}),
        "two of its words in one part": case(BLOCK, {"norms": ["norm", "weight"]}),
        "two of its words in two parts": case(BLOCK, {"weights": ["weight"], "norms": ["norm"]}),
        "the name of a part isn't a word": case(BLOCK, {"up": ["norm"], "q": []}),
        "a number": case("model = nn.Sequential(*(nn.Linear(n, 1) for n in range(1, 12)))", {"second": ["1"], "last": ["10"]}),
        "a word in the middle": case("model = nn.Sequential(nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 3)), nn.Linear(3, 1))",
                                     {"a": ["1"], "b": ["0"]}),
    },
    domain=names(),
    hint="Split the name at its dots. Does a part list one of these words, letter for letter? If so, no later "
         "part matters.",
)  # fmt: skip
exercise.requirement(
    "trainable, then frozen: how many numbers require a gradient and how many don't; buffers aren't among them",
    points=0.5,
    probe=take,
    rules=only("trainable", "frozen"),
    visible=[
        case("model = nn.Conv1d(3, 4, 5)\nmodel.bias.requires_grad_(False)"),
        case("model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).requires_grad_(False)\nmodel[0].bias.requires_grad_(True)",
             {"first": ["0"]}),
        case("model = nn.Linear(3, 4)\nmodel.scale = nn.Parameter(torch.tensor(1.0))"),
    ],
    edges={
        "all frozen": case("model = nn.Linear(3, 4).requires_grad_(False)"),
        "one number": case("model = nn.Module()\nmodel.scale = nn.Parameter(torch.tensor(1.0))"),
        "no numbers": case("model = nn.Module()\nmodel.none = nn.Parameter(torch.zeros(0, 3))"),
        "whole numbers": case("model = nn.Module()\nmodel.codes = nn.Parameter(torch.zeros(5, dtype=torch.int8), requires_grad=False)"),
        "complex numbers and bfloat16": case(
            "model = nn.Module()\nmodel.a = nn.Parameter(torch.zeros(5, dtype=torch.complex64))\n"
            "model.b = nn.Parameter(torch.zeros(3, dtype=torch.bfloat16))"),
        "buffers alone": case('model = nn.Module()\nmodel.register_buffer("mask", torch.zeros(3, 3))'),
        "a buffer with a gradient": case(
            'model = nn.Linear(2, 2)\nmodel.register_buffer("scale", torch.ones(3, requires_grad=True))'),
        "a plain tensor": case("model = nn.Linear(2, 2)\nmodel.table = torch.zeros(5, requires_grad=True)"),
        "layers in a plain list": case("model = nn.Linear(2, 2)\nmodel.layers = [nn.Linear(3, 3)]"),
        "lists and dicts of parameters": case(
            'model = nn.Module()\nmodel.a = nn.ParameterList([torch.zeros(2), torch.zeros(3)])\n'
            'model.b = nn.ParameterDict({"c": torch.zeros(4)})', {"c": ["c"]}),
    },
    domain=models(("parameter", "frozen", "buffer")),
    hint="Ask each parameter whether it requires a gradient.",
)  # fmt: skip
exercise.requirement(
    "bytes: those of the parameters, frozen ones included, and of the buffers, saved or not, each counted in its "
    "own dtype",
    points=0.75,
    probe=take,
    rules=only("bytes"),
    visible=[
        case("model = nn.Sequential(nn.Linear(6, 4, dtype=torch.bfloat16), nn.Linear(4, 2, dtype=torch.float64))", {"last": ["1"]}),
        case("model = nn.BatchNorm1d(4)\nmodel.bias.requires_grad_(False)"),
        case('model = nn.Linear(3, 4)\nmodel.register_buffer("mask", torch.zeros(6, 6, dtype=torch.bool), persistent=False)',
             {"masks": ["mask"]}),
        case("model = nn.Module()\nmodel.w = nn.Parameter(torch.zeros(8, 6)[2:5])"),
    ],
    edges={
        **{f"one of {dtype}": of_dtype(dtype) for dtype in (*FLOATS, *OTHERS)},
        "one number": case('model = nn.Module()\nmodel.register_buffer("step", torch.tensor(0))'),
        "no numbers": case("model = nn.Module()\nmodel.w = nn.Parameter(torch.zeros(0, 5))"),
        "every second column": case("model = nn.Module()\nmodel.w = nn.Parameter(torch.zeros(8, 6)[:, ::2])"),
        "a buffer that is part of a larger storage": case('model = nn.Linear(2, 2)\nmodel.register_buffer("a", torch.zeros(100)[:7])'),
        "a buffer that is None": case('model = nn.Linear(2, 2, bias=False)\nmodel.register_buffer("mask", None)'),
        "a plain tensor does not count": case("model = nn.Linear(2, 2)\nmodel.table = torch.zeros(5)"),
        "modules in modules": case("model = nn.Sequential(nn.Linear(3, 2), nn.Sequential(nn.BatchNorm1d(2), nn.BatchNorm1d(3)))",
                                   {"means": ["running_mean", "running_var"]}),
    },
    domain=models(("parameter", "frozen", "buffer", "scratch"), ("frozen", "buffer", "scratch"), dtypes=FLOATS),
    hint="Besides its parameters, a model has buffers. How many elements does each tensor have, and how many "
         "bytes does each element take?",
)  # fmt: skip
exercise.requirement(
    "a tensor with several names, or a module that's used in two places, counts once, on the meta device too",
    points=0.5,
    probe=take,
    rules={},
    visible=[
        case("model = nn.Sequential(nn.Embedding(10, 3), nn.Linear(3, 10, bias=False))\nmodel[1].weight = model[0].weight",
             {"head": ["1"], "table": ["0"]}),
        case("layer = nn.Linear(2, 3, bias=False)\nmodel = nn.Sequential(nn.Linear(3, 2), layer, nn.Linear(3, 2), layer)", device="meta"),
        case('model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2))\n'
             'model[0].register_buffer("table", torch.zeros(5))\nmodel[1].register_buffer("table", model[0].table)'),
    ],
    edges={
        "tied on the meta device": case(
            "model = nn.Sequential(nn.Embedding(10, 3), nn.Linear(3, 10))\nmodel[1].weight = model[0].weight", device="meta"),
        "three names": case("model = nn.Module()\nmodel.a = nn.Parameter(torch.zeros(4))\nmodel.b = model.a\nmodel.c = model.a",
                            {"last": ["c"], "first": ["a"]}),
        "tied and frozen": case("model = nn.Module()\nmodel.a = nn.Parameter(torch.zeros(4), requires_grad=False)\nmodel.b = model.a"),
        "a module in itself, at two depths": case(
            "layer = nn.Linear(2, 3)\nmodel = nn.Sequential(layer, nn.Sequential(layer, nn.Linear(3, 3)))", {"inner": ["1"]}),
        "a module with buffers, twice": case("norm = nn.BatchNorm1d(3)\nmodel = nn.Sequential(norm, nn.Linear(3, 3), norm)"),
        "a buffer in two modules": case(
            'model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))\nmask = torch.zeros(4)\n'
            'for layer in model: layer.register_buffer("mask", mask)', {"second": ["1"]}),
        "more than any memory holds": case("model = nn.Linear(2**20, 2**22, bias=False)", device="meta"),
        "70 billion": case("model = nn.ModuleList(nn.Linear(8_192, 106_496) for _ in range(80))", {"first": ["0"]}, "meta"),
        "many layers of one shape": case("model = nn.ModuleList(nn.Linear(8, 8) for _ in range(20))", device="meta"),
        "two parts of one storage": case(
            "flat = torch.zeros(10)\nmodel = nn.Module()\nmodel.a, model.b = nn.Parameter(flat[:3]), nn.Parameter(flat[3:])"),
        "two parts of one storage, in two modules": case(
            "flat = torch.zeros(10)\nmodel = nn.Sequential(nn.Module(), nn.Module())\n"
            "model[0].a, model[1].a = nn.Parameter(flat[:5]), nn.Parameter(flat[5:])"),
        "two buffers in one storage": case(
            'flat = torch.zeros(10)\nmodel = nn.Module()\nmodel.register_buffer("a", flat[:3])\nmodel.register_buffer("b", flat[3:])'),
        "a part that begins where the whole does": case(
            'model = nn.Module()\nmodel.register_buffer("a", torch.zeros(6))\nmodel.register_buffer("b", model.a[:2])'),
        "twice the same memory": case(
            "flat = torch.zeros(4)\nmodel = nn.Module()\nmodel.a, model.b = nn.Parameter(flat), nn.Parameter(flat.view(2, 2))"),
        "twice the same memory in the same shape": case(
            "model = nn.Sequential(nn.Linear(3, 2, bias=False), nn.Linear(3, 2, bias=False))\n"
            "model[1].weight = nn.Parameter(model[0].weight.detach())"),
        "twice the same memory, as buffers": case(
            'model = nn.Module()\nmodel.register_buffer("a", torch.zeros(6))\nmodel.register_buffer("b", model.a.view(6))'),
        "equal values are two parameters": case(
            "model = nn.Module()\nmodel.a, model.b = nn.Parameter(torch.zeros(4)), nn.Parameter(torch.zeros(4))"),
    },
    domain=models(("parameter", "buffer"), tied=True, devices=("cpu", "meta")),
    hint="Don't compare names, addresses or values: which methods return each tensor once, with the first of its names?",
)  # fmt: skip

NAMED = "model.named_parameters(), *model.named_buffers()"
WHOSE = "set(listed) & set(words)"
exercise.mistake('"norm" isn\'t a word of "norm_1.weight": compare whole words, not pieces of them.',
                 f"{WHOSE} → any(word in name for word in listed)")  # fmt: skip
exercise.mistake("Every word of a name counts, not only the first.", 'name.split(".") → name.split(".")[:1]')
exercise.mistake("Every word of a name counts, not only the last.", 'name.split(".") → name.split(".")[-1:]')
exercise.mistake("A name has several words, but your code compares it as a whole.", 'name.split(".") → [name]')
exercise.mistake("A tensor belongs to a part because of the words that the part lists, "
                 "not because of the part's own name.", f"{WHOSE} → p in words",
                 together_with=['name.split(".") → name.split(".")[-1:]'])  # fmt: skip
exercise.mistake("One of the words that a part lists is enough; a name needn't have all of them.", f"{WHOSE} → set(listed) <= set(words)")
exercise.mistake("If several parts list a word of a name, the tensor belongs to the first of them; your code "
                 "chooses the last.",
                 "for p, listed in parts.items() → for p, listed in reversed(parts.items())")  # fmt: skip
exercise.mistake("Every part has an entry, even if no tensor belongs to it.",
                 "for part, row in rows.items()} → for part, row in rows.items() if any(row)}")  # fmt: skip
exercise.mistake("Are all parameters trained? Check requires_grad "
                 "for each of them.", "[0 if tensor.requires_grad else 1] → [0]")
exercise.mistake("Your rows are (frozen, trainable, bytes): the exercise asks for trainable first.",
                 "0 if tensor.requires_grad else 1 → 1 if tensor.requires_grad else 0")  # fmt: skip
exercise.mistake("A buffer isn't a parameter, frozen or not: "
                 "it counts only toward the bytes.", "if isinstance(tensor, nn.Parameter): → if True:")
exercise.mistake("Buffers take memory, too.", f"{NAMED} → model.named_parameters()")
exercise.mistake("A frozen parameter takes memory as well.",
                 "rows[part][2] += → rows[part][2] += (tensor.requires_grad or not isinstance(tensor, nn.Parameter)) *")  # fmt: skip
exercise.mistake("Not every number takes four bytes: it depends on the dtype.", "tensor.numel() * tensor.element_size() → 4 * tensor.numel()")
exercise.mistake("Your third number counts elements; the exercise asks for their bytes.", "tensor.numel() * tensor.element_size() → tensor.numel()")
exercise.mistake("Your third number counts the bytes of "
                 "just one element per tensor, but a "
                 "tensor may have many.", "tensor.numel() * tensor.element_size() → tensor.element_size()")
exercise.mistake("Your third number is in bits.", "tensor.numel() * tensor.element_size() → 8 * tensor.numel() * tensor.element_size()")
exercise.mistake("Only the tensor's own elements count, not the whole storage: the tensor may be a view of just "
                 "a part of it.",
                 "tensor.numel() * tensor.element_size() → tensor.untyped_storage().nbytes()")  # fmt: skip
exercise.mistake("Your code counts tensors; the first two numbers "
                 "should count elements.", "else 1] += tensor.numel() → else 1] += 1")
exercise.mistake("Your code counts a tensor with several names several times.",
                 f"{NAMED} → model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)")  # fmt: skip
exercise.mistake("Submodules have parameters and buffers, too.",
                 f"{NAMED} → model.named_parameters(recurse=False), *model.named_buffers(recurse=False)")  # fmt: skip
exercise.mistake("Buffers that aren't saved take memory, too: state_dict() doesn't list them.",
                 f"{NAMED} → model.named_parameters(), *((n, b) for n, b in model.named_buffers() if n in model.state_dict())")  # fmt: skip

# %% mistake: nothing for what no part lists
# says: If no part lists any of the words of a tensor's name, the tensor belongs to "rest".
def inventory(model, parts):
    rows = {part: [0, 0, 0] for part in [*parts, "rest"]}
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        for part, listed in parts.items():
            if set(listed) & set(name.split(".")):
                if isinstance(tensor, nn.Parameter):
                    rows[part][not tensor.requires_grad] += tensor.numel()
                rows[part][2] += tensor.nbytes
                break
    return {part: tuple(row) for part, row in rows.items()}

# %% mistake: in every part that lists a word of its name
# says: A tensor belongs to one part only: the first that lists one of its words.
def inventory(model, parts):
    rows = {part: [0, 0, 0] for part in [*parts, "rest"]}
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        for part in [p for p, listed in parts.items() if set(listed) & set(name.split("."))] or ["rest"]:
            if isinstance(tensor, nn.Parameter):
                rows[part][not tensor.requires_grad] += tensor.numel()
            rows[part][2] += tensor.nbytes
    return {part: tuple(row) for part, row in rows.items()}

# %% mistake: from the state dict
# says: state_dict() lists every name, including those of buffers, and none of its tensors requires a gradient.
def inventory(model, parts):
    rows = {part: [0, 0, 0] for part in [*parts, "rest"]}
    for name, tensor in model.state_dict().items():
        part = next((p for p, listed in parts.items() if set(listed) & set(name.split("."))), "rest")
        rows[part][not tensor.requires_grad] += tensor.numel()
        rows[part][2] += tensor.nbytes
    return {part: tuple(row) for part, row in rows.items()}

# %% mistake: by address
# says: On the meta device every address is 0, so addresses don't show which tensors are the same.
def inventory(model, parts):
    rows = {part: [0, 0, 0] for part in [*parts, "rest"]}
    seen = set()
    for name, tensor in [*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)]:
        if (tensor.data_ptr(), tensor.shape) in seen:
            continue
        seen.add((tensor.data_ptr(), tensor.shape))
        part = next((p for p, listed in parts.items() if set(listed) & set(name.split("."))), "rest")
        if isinstance(tensor, nn.Parameter):
            rows[part][not tensor.requires_grad] += tensor.numel()
        rows[part][2] += tensor.nbytes
    return {part: tuple(row) for part, row in rows.items()}

# %% mistake: by shape
# says: Two tensors of the same shape are still two.
def inventory(model, parts):
    rows = {part: [0, 0, 0] for part in [*parts, "rest"]}
    each = {t.shape: (name, t) for name, t in reversed([*model.named_parameters(), *model.named_buffers()])}
    for name, tensor in each.values():
        part = next((p for p, listed in parts.items() if set(listed) & set(name.split("."))), "rest")
        if isinstance(tensor, nn.Parameter):
            rows[part][not tensor.requires_grad] += tensor.numel()
        rows[part][2] += tensor.nbytes
    return {part: tuple(row) for part, row in rows.items()}

# %% mistake: a tied tensor under its last name
# says: A tensor with several names counts under the first of them.
def inventory(model, parts):
    rows = {part: [0, 0, 0] for part in [*parts, "rest"]}
    last = {}
    for name, tensor in [*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)]:
        last[id(tensor)] = (name, tensor)
    for name, tensor in last.values():
        part = next((p for p, listed in parts.items() if set(listed) & set(name.split("."))), "rest")
        if isinstance(tensor, nn.Parameter):
            rows[part][not tensor.requires_grad] += tensor.numel()
        rows[part][2] += tensor.nbytes
    return {part: tuple(row) for part, row in rows.items()}

# %% wrong: a part only if it begins the name
def inventory(model, parts):
    rows = {part: [0, 0, 0] for part in [*parts, "rest"]}
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        part = next((p for p, listed in parts.items() if name.startswith(tuple(f"{word}." for word in listed))), "rest")
        if isinstance(tensor, nn.Parameter):
            rows[part][not tensor.requires_grad] += tensor.numel()
        rows[part][2] += tensor.nbytes
    return {part: tuple(row) for part, row in rows.items()}

# %% wrong: one storage is one tensor, and parameters that share it count once
# unseen: two tensors in one storage are for the hidden inputs to find
def inventory(model, parts):
    rows = {part: [0, 0, 0] for part in [*parts, "rest"]}
    seen = set()
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        key = tensor.untyped_storage()._cdata
        if key in seen:
            continue
        seen.add(key)
        part = next((p for p, listed in parts.items() if set(listed) & set(name.split("."))), "rest")
        if isinstance(tensor, nn.Parameter):
            rows[part][not tensor.requires_grad] += tensor.numel()
        rows[part][2] += tensor.nbytes
    return {part: tuple(row) for part, row in rows.items()}

# %% wrong: what autograd could train
# unseen: complex parameters are for the hidden inputs to find
def inventory(model, parts):
    rows = {part: [0, 0, 0] for part in [*parts, "rest"]}
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        part = next((p for p, listed in parts.items() if set(listed) & set(name.split("."))), "rest")
        if isinstance(tensor, nn.Parameter):
            rows[part][0 if tensor.is_floating_point() and tensor.requires_grad else 1] += tensor.numel()
        rows[part][2] += tensor.nbytes
    return {part: tuple(row) for part, row in rows.items()}

# %% wrong: word by word, as a search in the name (from the statement)
def inventory(model, parts):
    result = {}
    left = dict(model.named_parameters()) | dict(model.named_buffers())
    for part, words in [*parts.items(), ("rest", [""])]:
        chosen = {n: t for n, t in left.items() if any(w in n for w in words)}
        left = {n: t for n, t in left.items() if n not in chosen}
        parameters = [t for t in chosen.values() if isinstance(t, nn.Parameter)]
        trainable = sum(t.numel() for t in parameters if t.requires_grad)
        frozen = sum(t.numel() for t in parameters) - trainable
        result[part] = (trainable, frozen, sum(t.nbytes for t in chosen.values()))
    return result

# %% wrong: module by module, so that what is used twice counts twice (from the statement)
def inventory(model, parts):
    result = {part: (0, 0, 0) for part in [*parts, "rest"]}
    for prefix, module in model.named_modules():
        for kind in (module._parameters, module._buffers):
            for name, t in kind.items():
                if t is None:
                    continue
                words = [*prefix.split("."), name]
                part = next((p for p in parts if any(w in words for w in parts[p])), "rest")
                a, b, c = result[part]
                if kind is module._parameters:
                    a, b = a + t.numel() * t.requires_grad, b + t.numel() * (not t.requires_grad)
                result[part] = (a, b, c + t.numel() * t.element_size())
    return result

# %% wrong: the bytes of each storage (from the statement)
def inventory(model, parts):
    result = {part: [0, 0, 0] for part in parts}
    result["rest"] = [0, 0, 0]

    def part_of(name):
        for part, words in parts.items():
            for word in name.split("."):
                if word in words:
                    return part
        return "rest"

    for name, p in model.named_parameters():
        row = result[part_of(name)]
        row[0 if p.requires_grad else 1] += p.numel()
        row[2] += p.untyped_storage().nbytes()
    for name, b in model.named_buffers():
        result[part_of(name)][2] += b.untyped_storage().nbytes()
    return result

# %% wrong: the part that lists the earliest word of the name (from the statement)
def inventory(model, parts):
    home = {}
    for part, words in parts.items():
        for word in words:
            home.setdefault(word, part)
    result = {part: [0, 0, 0] for part in [*parts, "rest"]}
    for name, t in [*model.named_parameters(), *model.named_buffers()]:
        part = next((home[word] for word in name.split(".") if word in home), "rest")
        if isinstance(t, nn.Parameter):
            result[part][not t.requires_grad] += t.numel()
        result[part][2] += t.nbytes
    return {part: tuple(row) for part, row in result.items()}

# %% wrong: parts without tensors are left out (from the statement)
def inventory(model, parts):
    result = {}
    for name, t in [*model.named_parameters(), *model.named_buffers()]:
        part = next((p for p in parts if not set(parts[p]).isdisjoint(name.split("."))), "rest")
        row = result.setdefault(part, [0, 0, 0])
        if isinstance(t, nn.Parameter):
            row[0 if t.requires_grad else 1] += t.numel()
        row[2] += t.nbytes
    return result

# %% wrong: words by a regular expression, to which a hyphen ends a word (from the statement)
# unseen: students see names without hyphens
import re


def inventory(model: nn.Module, parts: dict[str, list[str]]) -> dict[str, tuple[int, int, int]]:
    """For each part and "rest": numbers that are trained, numbers that are frozen, and bytes."""
    patterns = {
        part: re.compile(r"\b(" + "|".join(map(re.escape, words)) + r")\b")
        for part, words in parts.items()
        if words
    }

    def part_of(name: str) -> str:
        return next((p for p, pattern in patterns.items() if pattern.search(name)), "rest")

    result = {part: (0, 0, 0) for part in (*parts, "rest")}
    for name, p in model.named_parameters():
        trained, frozen, size = result[part_of(name)]
        if p.requires_grad:
            trained += p.numel()
        else:
            frozen += p.numel()
        result[part_of(name)] = trained, frozen, size + p.nbytes
    for name, b in model.named_buffers():
        trained, frozen, size = result[part_of(name)]
        result[part_of(name)] = trained, frozen, size + b.nbytes
    return result

# %% right: two loops and a function
def inventory(model, parts):
    result = {part: [0, 0, 0] for part in parts}
    result["rest"] = [0, 0, 0]

    def part_of(name):
        words = name.split(".")
        for part, listed in parts.items():
            if any(word in listed for word in words):
                return part
        return "rest"

    for name, p in model.named_parameters():
        row = result[part_of(name)]
        row[0 if p.requires_grad else 1] += p.numel()
        row[2] += p.nbytes
    for name, b in model.named_buffers():
        result[part_of(name)][2] += b.nbytes
    return result

# %% right: module by module, with what has been seen
def inventory(model, parts):
    seen, rows = set(), {part: (0, 0, 0) for part in (*parts, "rest")}
    for prefix, module in model.named_modules():
        for trained, kind in ((True, module._parameters), (False, module._buffers)):
            for name, t in kind.items():
                if t is None or id(t) in seen:
                    continue
                seen.add(id(t))
                words = {*prefix.split("."), *name.split(".")}
                part = next((p for p in parts if words.intersection(parts[p])), "rest")
                n = math.prod(t.shape)
                add = (n * (trained and t.requires_grad), n * (trained and not t.requires_grad), n * t.dtype.itemsize)
                rows[part] = tuple(map(sum, zip(rows[part], add)))
    return rows

# %% right: part by part, taking out what is counted
def inventory(model, parts):
    parameters, buffers = dict(model.named_parameters()), dict(model.named_buffers())
    result = {}
    for part in [*parts, None]:
        def mine(named):
            chosen = [n for n in named if part is None or set(n.split(".")) & set(parts[part])]
            return [named.pop(n) for n in chosen]

        ps, bs = mine(parameters), mine(buffers)
        result["rest" if part is None else part] = [
            sum(p.numel() for p in ps if p.requires_grad),
            sum(p.numel() for p in ps if not p.requires_grad),
            sum(t.numel() * t.element_size() for t in ps + bs),
        ]
    return result

# %% wrong: the same memory in the same shape counts once (from the statement)
# unseen: tensors of the same shape that share memory are rare; the visible cases show tied tensors
def inventory(model, parts):
    def identity(tensor):
        return id(tensor) if tensor.is_meta else (tensor.data_ptr(), tensor.shape, tensor.dtype)

    rows = {part: [0, 0, 0] for part in [*parts, "rest"]}
    seen = set()
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if identity(tensor) in seen:
            continue
        seen.add(identity(tensor))
        part = next((p for p, listed in parts.items() if set(listed) & set(name.split("."))), "rest")
        if isinstance(tensor, nn.Parameter):
            rows[part][not tensor.requires_grad] += tensor.numel()
        rows[part][2] += tensor.nbytes
    return {part: tuple(row) for part, row in rows.items()}

# %% wrong: a buffer that requires a gradient counts as trainable (from the statement)
# unseen: buffers with gradients are rare; the visible cases have a buffer without one
def inventory(model, parts):
    parameters = {name for name, _ in model.named_parameters()}
    rows = {part: [0, 0, 0] for part in [*parts, "rest"]}
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        part = next((p for p, listed in parts.items() if set(listed) & set(name.split("."))), "rest")
        if tensor.requires_grad or name in parameters:
            rows[part][not tensor.requires_grad] += tensor.numel()
        rows[part][2] += tensor.nbytes
    return {part: tuple(row) for part, row in rows.items()}

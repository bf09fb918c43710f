from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of

exercise = Exercise("Walk the graph from loss.grad_fn: which leaves do you reach, and which intermediate tensors were asked to retain their gradient?")


def build(code):
    """The tensors that a few lines make, by name."""
    import torch

    made = {"torch": torch}
    exec(code, made)
    return {name: each for name, each in made.items() if isinstance(each, torch.Tensor)}


def ask(student, code, missing=()):
    """The answer for the tensors that a few lines make, without those in missing.

    Walking every path through a graph may take longer than anyone can wait, so the call ends after a million lines.
    """
    import sys

    left = 1_000_000

    def count(frame, event, arg):
        nonlocal left
        left -= 1
        if left < 0:
            raise RuntimeError("stopped after 1,000,000 lines of code, with a graph of only a few operations")
        return count

    made = build(code)
    asked = {name: each for name, each in made.items() if name not in missing}
    traced = sys.gettrace()
    sys.settrace(count)
    try:
        answer = student.who_keeps_grad(made["loss"], dict(asked))
    finally:
        sys.settrace(traced)
    if not isinstance(answer, dict):
        return answer
    about = {name: answer.get(name, "not in the answer") for name in asked}
    return {
        "leaves": {name: value for name, value in about.items() if made[name].is_leaf},
        "intermediate tensors": {name: value for name, value in about.items() if not made[name].is_leaf},
        "names in the answer that aren't in tensors": sorted(str(name) for name in set(answer) - set(asked)),
    }


def touch(student, code, missing=()):
    """What asking has changed, and what loss.backward() adds to each .grad afterward."""
    import warnings

    made = build(code)
    asked = {name: each for name, each in made.items() if name not in missing}

    def held():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # asking an intermediate tensor for its .grad warns
            return {name: None if each.grad is None else each.grad.clone() for name, each in made.items()}

    answer = student.who_keeps_grad(made["loss"], dict(asked))
    after = held()
    try:
        made["loss"].backward()
        added = {n: None if g is None else g if after[n] is None else g - after[n] for n, g in held().items()}
    except RuntimeError:
        added = "nothing: loss.backward() fails"
    given_back = isinstance(answer, dict) and all(type(answer.get(name)) is bool for name in asked)
    return {
        "an answer for each name": given_back,
        ".grad after your function": after,
        "what loss.backward() adds to .grad": added,
    }


@st.composite
def graphs(draw):
    """Leaves a to c, five more tensors, a branch of its own with parameter w, and a loss."""
    kinds = any_of("2", "2", "3, 2", "2, dtype=torch.float64", "2, dtype=torch.bfloat16")
    lines = [f"{n} = torch.ones({draw(kinds)}, requires_grad={draw(any_of(True, True, False))})" for n in "ac"]
    lines.insert(0, f"b = torch.ones({draw(kinds)}, requires_grad=True)")
    lines.append(f"w = torch.ones({draw(kinds)}, requires_grad=True)")
    needing = {"b", "w", *(line[0] for line in lines if "True" in line)}
    retained = {"z"}
    lines += ["z = w * 2", "z.retain_grad()"]
    names = ["b", "a", "c"]
    for name in "defgh":
        one, other = draw(any_of(*names)), draw(any_of(*names))
        made = f"{name} = {one} {draw(any_of('*', '+'))} {other}"
        how = draw(any_of("", "", "", "", "with torch.no_grad(): ", "detach"))
        lines.append(f"{made}; {name} = {name}.detach()" if how == "detach" else how + made)
        if how == "" and needing & {one, other}:
            needing.add(name)
            if draw(st.booleans()):
                retained.add(name)
                lines.append(f"{name}.retain_grad()")
        names.append(name)
    for name in draw(st.lists(any_of(*sorted(retained | {"a", "b", "c", "w"})), max_size=3, unique=True)):
        lines.append(f"{name}.grad = torch.ones_like({name})")
    ends = [name for name in ("h", "g", "f", "e", "d", "b", "z") if name in needing]
    lines.append(f"loss = ({draw(any_of(*ends))} * {draw(any_of(*names, 'z'))}).sum()")
    if draw(st.booleans()):
        lines.append("loss.retain_grad()")
    missing = draw(st.lists(any_of(*names, "w", "z"), max_size=2, unique=True))
    return given("\n".join(lines), missing)


def case(code, missing=()):
    """A graph, and the question about it in words."""
    about = f"all of these tensors except {', '.join(missing)}" if missing else "all of these tensors"
    return given(code, list(missing), says=f"{code}\nwho_keeps_grad(loss, …) for {about}")


LEAVES, BETWEEN = ("leaves",), ("intermediate tensors",)
mixed = case("""x, w, u = torch.ones(2), torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
v, b = torch.zeros(2, requires_grad=True), torch.zeros(2, requires_grad=True)
h = x * w; s = v * 2
with torch.no_grad(): n = u * w
r = h + n; r.retain_grad(); s.retain_grad(); b.grad = torch.ones(2)
loss = (r * r).sum()""")
itself = case("""w, v = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
h = w * v; h.retain_grad(); h.grad = torch.ones(2); v.grad = torch.ones(2)
loss = (w + h).sum(); loss.retain_grad()""")
begin = "w, v = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)\n"
paths = case("""w, v = torch.ones(2, requires_grad=True), torch.zeros(2, requires_grad=True)
x = w
for _ in range(40): x = x + 0.1 * x
x.retain_grad(); loss = x.sum()""")
edges = {
    "one operation": case("w = torch.tensor(1.0, requires_grad=True)\nloss = w * 2"),
    "one operation, and loss keeps its own": case("w = torch.tensor(1.0, requires_grad=True)\nloss = w * 2; loss.retain_grad()"),
    "one tensor, two names": case(begin + "again = w; h = w * 2; h.retain_grad(); same = h\nloss = (h * w).sum()"),
    "equal values": case(begin + "loss = (w * 2).sum()"),
    "a view is another tensor": case(begin + "u = w.detach(); u.requires_grad_(); h = w[:1]; loss = h.sum()"),
    "required only after loss was computed": case(begin + "u = torch.ones(2); loss = (u * w).sum(); u.requires_grad_()"),
    "frozen after loss was computed": case(begin + "h = w + v; loss = h.sum(); v.requires_grad_(False)"),
    "a leaf that was asked to retain": case(begin + "w.retain_grad(); v.retain_grad(); loss = w.sum()"),
    "the result of an operation on a parameter": case(begin + "p = w * 0.1; q = v.double(); loss = (p + q).sum()"),
    "a parameter that is used after a detour without recording": case(
        begin + "with torch.no_grad(): n = w * v\nh = n * v; h.retain_grad(); loss = (h * n).sum()"),
    "second and third inputs": case(begin + "h = torch.stack([torch.ones(2), w, v]); h.retain_grad(); loss = h.sum()"),
    "the same input twice": case(begin + "h = w * w; h.retain_grad(); g = h * h; loss = (g + h).sum()"),
    "a graph of another loss": case(begin + "h = w * v; h.retain_grad(); other = h.sum(); other.retain_grad(); loss = w.sum()"),
    "parameters of a module": case(
        "torch.manual_seed(0); m = torch.nn.Linear(2, 1)\na, b = m.weight, m.bias\ny = m(torch.ones(1, 2)); y.retain_grad(); loss = (y * y).sum()"),
    "an old .grad everywhere": case(begin + "h = w * 2; h.retain_grad(); g = v * 2; g.retain_grad()\n"
                                    "for t in (w, v, h, g): t.grad = torch.ones(2)\nloss = h.sum()"),
    "in float64": case("w = torch.ones(2, dtype=torch.float64, requires_grad=True)\n"
                       "h = w * 2; h.retain_grad(); loss = h.sum(); loss.retain_grad()"),
    "a parameter and a retained tensor that are not in tensors": case(
        begin + "h = w * v; h.retain_grad(); w.grad = torch.ones(2); loss = h.sum()", ("w", "h")),
}  # fmt: skip
nobody = {
    "no tensors to answer for": case(begin + "loss = (w * v).sum()", ("w", "v", "loss")),
    "none of the tensors keeps a gradient": case(begin + "x = torch.ones(2); h = w * v; loss = (h * x).sum()", ("w", "v")),
}

exercise.requirement(
    "True for a leaf that requires a gradient and that the graph of loss reaches, False for any other leaf",
    points=0.75,
    probe=ask,
    rules=dict.fromkeys(BETWEEN, "ignored"),
    visible=[mixed, itself, paths],
    edges=edges | nobody,
    domain=graphs(),
    hint="For a leaf: does it require a gradient, and is it the variable of a node that you can reach from loss.grad_fn?",
)
exercise.requirement(
    "True for an intermediate tensor, including loss, that was asked to retain its gradient and that the graph reaches; False for any other",
    points=0.75,
    probe=ask,
    rules=dict.fromkeys(LEAVES, "ignored"),
    visible=[mixed, itself],
    edges=edges | nobody,
    domain=graphs(),
    hint="For an intermediate tensor: was it asked to retain its gradient, and can you reach its grad_fn from loss.grad_fn?",
)
hidden = case(begin + "h = w * v; h.retain_grad(); w.grad = torch.ones(2)\nloss = h.sum()", ("v", "h"))
exercise.requirement(
    "every .grad is unchanged afterward, even for a tensor that isn't in `tensors`",
    points=0.25,
    probe=touch,
    rules={"what loss.backward() adds to .grad": "ignored"},
    visible=[mixed, hidden],
    edges=edges | nobody,
    domain=graphs(),
    hint="You can find the answer by reading the graph, without a backward pass.",
)
exercise.requirement(
    "loss.backward() still works afterward and fills the same .grad attributes as it would without your function",
    points=0.25,
    probe=touch,
    rules={".grad after your function": "ignored"},
    visible=[mixed, itself],
    edges=edges | nobody,
    domain=graphs(),
    hint="Only read the graph: don't run a backward pass, and don't call retain_grad() or requires_grad_().",
)

exercise.mistake("A leaf that doesn't require a gradient doesn't get one.",
                 "name: tensor.requires_grad → name: tensor.is_leaf or tensor.requires_grad",
                 "any(tensor is leaf for leaf in leaves) → tensor.is_leaf")  # fmt: skip
exercise.mistake("A leaf gets a gradient only if loss depends on it: does the graph reach it?", "any(tensor is leaf for leaf in leaves) → tensor.is_leaf")
exercise.mistake("Even with retain_grad(), an intermediate tensor gets a gradient only if loss depends on it: does the graph reach it?",
                 "tensor.grad_fn in reached → True")  # fmt: skip
exercise.mistake("A tensor gets a gradient only if loss depends on it: does the graph reach it?", "any(tensor is leaf for leaf in leaves) → tensor.is_leaf",
                 "tensor.grad_fn in reached → True")  # fmt: skip
exercise.mistake("An intermediate tensor may require a gradient, but it keeps one only if it was asked to.", "tensor.retains_grad and tensor → tensor")
exercise.mistake("It isn't enough that an intermediate tensor requires a gradient: was it asked to keep one? And "
                 "does loss depend on each of the tensors?",
                 "any(tensor is leaf for leaf in leaves) → tensor.is_leaf", "tensor.retains_grad and tensor → tensor",
                 "tensor.grad_fn in reached → True")  # fmt: skip
exercise.mistake("An intermediate tensor keeps its gradient, too, if retain_grad() was called on it.", "or (tensor.retains_grad and tensor.grad_fn in reached) → ")
exercise.mistake("An intermediate tensor keeps its gradient, too, if retain_grad() was called on it. And does loss depend on every leaf?",
                 "any(tensor is leaf for leaf in leaves) → tensor.is_leaf",
                 "or (tensor.retains_grad and tensor.grad_fn in reached) → ")  # fmt: skip
exercise.mistake("Your answers are reversed: True means that the tensor would get a gradient.", "name: tensor.requires_grad → name: not (tensor.requires_grad",
                 "and tensor.grad_fn in reached)\n        ) → and tensor.grad_fn in reached)))")  # fmt: skip
exercise.mistake("Visit each node once. Your code walks every path through the graph, and 40 operations can have 2⁴⁰ of them.",
                 "if node is not None and node not in reached: → if node is not None:")  # fmt: skip
exercise.mistake("The loss may keep its own gradient, too: begin with loss.grad_fn itself.",
                 "waiting: list[Any] = [loss.grad_fn] → waiting: list[Any] = [n for n, _ in loss.grad_fn.next_functions]")  # fmt: skip
exercise.mistake("A node may have several entries in next_functions: follow all of them to the leaves.",
                 "for earlier, _ in node.next_functions] → for earlier, _ in node.next_functions[:1]]")  # fmt: skip
exercise.mistake("Tensors with equal values can still be different tensors: compare them with `is`.",
                 "tensor is leaf for leaf in leaves → tensor.is_leaf and tensor.shape == leaf.shape and bool((tensor == leaf).all()) for leaf in leaves")  # fmt: skip
exercise.mistake("A .grad that is already there proves nothing: it may be from an earlier step.",
                 "name: tensor.requires_grad → name: tensor.grad is not None or tensor.requires_grad")  # fmt: skip

# %% mistake: runs backward and looks
# says: Your code ran the backward pass and cleared the .grad attributes: only read the graph.
def who_keeps_grad(loss, tensors):
    for t in tensors.values():
        t.grad = None
    loss.backward()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: t.grad is not None for name, t in tensors.items()}

# %% mistake: runs backward and looks at old gradients, too
# says: Your code ran the backward pass, which adds to each .grad. And a .grad that is already there proves nothing.
def who_keeps_grad(loss, tensors):
    loss.backward(retain_graph=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: t.grad is not None for name, t in tensors.items()}

# %% mistake: autograd.grad, which fills retained ones
# says: torch.autograd.grad runs a backward pass, which fills .grad for every tensor that retains its gradient.
def who_keeps_grad(loss, tensors):
    keeps = {n: t for n, t in tensors.items() if t.requires_grad and (t.is_leaf or t.retains_grad)}
    if not keeps:
        return dict.fromkeys(tensors, False)
    grads = torch.autograd.grad(loss, list(keeps.values()), retain_graph=True, allow_unused=True)
    found = dict(zip(keeps, grads))
    return {name: found.get(name) is not None for name in tensors}

# %% mistake: the walk is right, and the graph is gone
# says: Your code ran the backward pass, which frees the graph and fills .grad even for tensors that aren't in `tensors`.
def who_keeps_grad(loss, tensors):
    reached, waiting = set(), [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in reached:
            reached.add(node)
            waiting += [earlier for earlier, _ in node.next_functions]
    leaves = [node.variable for node in reached if hasattr(node, "variable")]
    found = {
        name: t.requires_grad and (any(t is leaf for leaf in leaves) or t.retains_grad and t.grad_fn in reached)
        for name, t in tensors.items()
    }
    every = [t for t in (*leaves, *tensors.values()) if t.requires_grad and (t.is_leaf or t.retains_grad)]
    old = [t.grad if t.grad is None else t.grad.clone() for t in every]
    torch.autograd.grad(loss, leaves)
    for t, grad in zip(every, old):
        t.grad = grad
    return found

# %% mistake: asks all of them to retain
# says: retain_grad() changes what loss.backward() fills: don't call it.
def who_keeps_grad(loss, tensors):
    found = {}
    reached, waiting = set(), [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in reached:
            reached.add(node)
            waiting += [earlier for earlier, _ in node.next_functions]
    ids = {id(node.variable) for node in reached if hasattr(node, "variable")}
    for name, t in tensors.items():
        found[name] = t.requires_grad and (id(t) in ids or t.retains_grad and t.grad_fn in reached)
        if t.requires_grad:
            t.retain_grad()
    return found

# %% wrong: autograd.grad without retain_graph, and cleans up
def who_keeps_grad(loss, tensors):
    keeps = {n: t for n, t in tensors.items() if t.requires_grad and (t.is_leaf or t.retains_grad)}
    grads = torch.autograd.grad(loss, list(keeps.values()), allow_unused=True)
    for t in keeps.values():
        t.grad = None
    found = dict(zip(keeps, grads))
    return {name: found.get(name) is not None for name in tensors}

# %% wrong: clears the old gradients for good
def who_keeps_grad(loss, tensors):
    for t in tensors.values():
        t.grad = None
    loss.backward(retain_graph=True)
    res = {n: t.grad is not None for n, t in tensors.items()}
    for t in tensors.values():
        t.grad = None
    return res

# %% wrong: runs backward, and keeps only references to the old gradients
def who_keeps_grad(loss, tensors):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        old = {n: t.grad for n, t in tensors.items()}
        before = {n: None if g is None else g.clone() for n, g in old.items()}
        loss.backward(retain_graph=True)
        res = {}
        for n, t in tensors.items():
            res[n] = t.grad is not None and (before[n] is None or not torch.equal(t.grad, before[n]))
        for n, t in tensors.items():
            t.grad = old[n]
    return res

# %% wrong: asks autograd, and puts back what it was asked about
def who_keeps_grad(loss, tensors):
    keeps = {n: t for n, t in tensors.items() if t.requires_grad and (t.is_leaf or t.retains_grad)}
    before = {name: t.grad for name, t in keeps.items()}
    grads = torch.autograd.grad(loss, list(keeps.values()), retain_graph=True, allow_unused=True)
    for name, t in keeps.items():
        t.grad = before[name]
    found = dict(zip(keeps, grads))
    return {name: found.get(name) is not None for name in tensors}

# %% wrong: runs backward on the side, and restores what it was asked about
def who_keeps_grad(loss, tensors):
    asked = [t for t in tensors.values() if t.requires_grad and (t.is_leaf or t.retains_grad)]
    before = [t.grad for t in asked]
    for t in asked:
        t.grad = None
    loss.backward(retain_graph=True)
    found = {id(t) for t in asked if t.grad is not None}
    for t, old in zip(asked, before):
        t.grad = old
    return {name: id(t) in found for name, t in tensors.items()}

# %% wrong: a leaf that is in the graph counts, also when it was frozen after the forward pass (from the statement)
# unseen: only hidden inputs freeze a leaf after the forward pass
def who_keeps_grad(loss, tensors):
    seen, todo, leaves = set(), [loss.grad_fn], []
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            leaves.append(node.variable)
        todo.extend(parent for parent, _ in node.next_functions)
    return {
        name: any(t is leaf for leaf in leaves) or (t.grad_fn in seen and t.retains_grad)
        for name, t in tensors.items()
    }

# %% wrong: turns the dict around (tensor to name), so a tensor with two names is found under one of them o (from the statement)
# unseen: only hidden inputs have one tensor under two names
def who_keeps_grad(loss, tensors):
    names = {id(t): name for name, t in tensors.items()}
    result = dict.fromkeys(tensors, False)
    seen, todo = {loss.grad_fn}, [loss.grad_fn]
    while todo:
        node = todo.pop()
        leaf = getattr(node, "variable", None)
        if leaf is not None and id(leaf) in names and leaf.requires_grad:
            result[names[id(leaf)]] = True
        for parent, _ in node.next_functions:
            if parent is not None and parent not in seen:
                seen.add(parent)
                todo.append(parent)
    for t in tensors.values():
        if t.grad_fn is not None and t.retains_grad and t.grad_fn in seen:
            result[names[id(t)]] = True
    return result

# %% wrong: asks torch.autograd.grad and saves the .grad of `tensors` only, but autograd.grad fills the .gr (from the statement)
def who_keeps_grad(loss, tensors):
    candidates = {
        name: t for name, t in tensors.items() if t.requires_grad and (t.is_leaf or t.retains_grad)
    }
    result = dict.fromkeys(tensors, False)
    if not candidates:
        return result
    before = {name: t.grad for name, t in candidates.items()}
    found = torch.autograd.grad(
        loss, list(candidates.values()), retain_graph=True, allow_unused=True
    )
    for (name, t), g in zip(candidates.items(), found, strict=True):
        result[name] = g is not None
        t.grad = before[name]
    return result

# %% wrong: only float32 tensors get a gradient (from the statement)
# unseen: only hidden inputs have another dtype
def who_keeps_grad(loss, tensors):
    reached, waiting = set(), [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in reached:
            reached.add(node)
            waiting += [earlier for earlier, _ in node.next_functions]
    leaves = [node.variable for node in reached if hasattr(node, "variable")]
    return {
        name: t.requires_grad and t.dtype == torch.float32
        and (any(t is leaf for leaf in leaves) or (t.retains_grad and t.grad_fn in reached))
        for name, t in tensors.items()
    }

# %% wrong: a recursion over every path (from the statement)
def who_keeps_grad(loss, tensors):
    leaves, nodes = {}, set()

    def walk(node):
        if node is None:
            return
        nodes.add(node)
        if hasattr(node, "variable"):
            leaves[id(node.variable)] = node.variable
        for earlier, _ in node.next_functions:
            walk(earlier)

    walk(loss.grad_fn)
    return {
        name: (t.requires_grad and id(t) in leaves) if t.is_leaf else (t.retains_grad and t.grad_fn in nodes)
        for name, t in tensors.items()
    }

# %% right: a recursive walk, by identities
def who_keeps_grad(loss, tensors):
    seen = {}

    def walk(node):
        if node is None or id(node) in seen:
            return
        seen[id(node)] = node
        for earlier, _ in node.next_functions:
            walk(earlier)

    walk(loss.grad_fn)
    ids = {id(node.variable) for node in seen.values() if type(node).__name__ == "AccumulateGrad"}
    return {
        name: t.requires_grad and id(t) in ids if t.is_leaf else t.retains_grad and id(t.grad_fn) in seen
        for name, t in tensors.items()
    }

# %% right: one walk for each tensor
def who_keeps_grad(loss, tensors):
    def leads_to(start, wanted):
        met = set()

        def walk(node):
            if node is None or node in met:
                return False
            met.add(node)
            if node is wanted or getattr(node, "variable", None) is wanted:
                return True
            return any(walk(earlier) for earlier, _ in node.next_functions)

        return walk(start)

    result = {}
    for name, t in tensors.items():
        if not t.requires_grad:
            result[name] = False
        elif t.is_leaf:
            result[name] = leads_to(loss.grad_fn, t)
        else:
            result[name] = bool(t.retains_grad and leads_to(loss.grad_fn, t.grad_fn))
    return result

# %% right: grows the set of nodes until it stays the same
def who_keeps_grad(loss, tensors):
    met = {loss.grad_fn}
    while True:
        more = {earlier for node in met for earlier, _ in node.next_functions if earlier is not None} - met
        if not more:
            break
        met |= more

    def keeps(t):
        if t.grad_fn is None:
            return t.requires_grad and t.data_ptr() and any(getattr(node, "variable", None) is t for node in met)
        return t.retains_grad and t.grad_fn in met

    return {name: bool(keeps(t)) for name, t in tensors.items()}

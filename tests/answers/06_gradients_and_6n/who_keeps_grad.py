# %% wrong: whatever requires a gradient
# says: keeps it only if asked to
def who_keeps_grad(loss, tensors):
    return {name: t.requires_grad for name, t in tensors.items()}

# %% wrong: leaves
# says: A leaf that does not require a gradient gets none
def who_keeps_grad(loss, tensors):
    return {name: t.is_leaf for name, t in tensors.items()}

# %% wrong: leaves and retained ones
# says: A leaf that does not require a gradient gets none
def who_keeps_grad(loss, tensors):
    return {name: t.is_leaf or t.retains_grad for name, t in tensors.items()}

# %% wrong: flags alone, not the walk
# says: Not each of them is reached
def who_keeps_grad(loss, tensors):
    return {name: t.requires_grad and (t.is_leaf or t.retains_grad) for name, t in tensors.items()}

# %% wrong: leaves that require a gradient
# says: Some tensors in between were asked to retain_grad()
def who_keeps_grad(loss, tensors):
    return {name: t.is_leaf and t.requires_grad for name, t in tensors.items()}

# %% wrong: reached leaves only
# says: Some tensors in between were asked to retain_grad()
def who_keeps_grad(loss, tensors):
    def leaves(node):
        if node is None:
            return []
        own = [node.variable] if hasattr(node, "variable") else []
        return own + [leaf for earlier, _ in node.next_functions for leaf in leaves(earlier)]

    found = leaves(loss.grad_fn)
    return {name: any(t is leaf for leaf in found) for name, t in tensors.items()}

# %% wrong: runs backward and looks
# says: That ran the backward pass
def who_keeps_grad(loss, tensors):
    for t in tensors.values():
        t.grad = None
    loss.backward()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: t.grad is not None for name, t in tensors.items()}

# %% wrong: looks at old gradients
# says: Each parameter has an old .grad
def who_keeps_grad(loss, tensors):
    loss.backward(retain_graph=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: t.grad is not None for name, t in tensors.items()}

# %% wrong: autograd.grad, which fills retained ones
# says: autograd.grad fills the .grad
def who_keeps_grad(loss, tensors):
    keeps = {n: t for n, t in tensors.items() if t.requires_grad and (t.is_leaf or t.retains_grad)}
    grads = torch.autograd.grad(loss, list(keeps.values()), retain_graph=True, allow_unused=True)
    found = dict(zip(keeps, grads))
    return {name: found.get(name) is not None for name in tensors}

# %% wrong: autograd.grad without retain_graph, and cleans up
# says: The graph is gone
def who_keeps_grad(loss, tensors):
    keeps = {n: t for n, t in tensors.items() if t.requires_grad and (t.is_leaf or t.retains_grad)}
    grads = torch.autograd.grad(loss, list(keeps.values()), allow_unused=True)
    for t in keeps.values():
        t.grad = None
    found = dict(zip(keeps, grads))
    return {name: found.get(name) is not None for name in tensors}

# %% wrong: every retained tensor, wherever it lies
# says: Not each of them is reached
def who_keeps_grad(loss, tensors):
    def leaves(node):
        if node is None:
            return []
        own = [node.variable] if hasattr(node, "variable") else []
        return own + [leaf for earlier, _ in node.next_functions for leaf in leaves(earlier)]

    found = leaves(loss.grad_fn)
    return {name: t.retains_grad or any(t is leaf for leaf in found) for name, t in tensors.items()}

# %% wrong: whatever is reached
# says: keeps it only if asked to
def who_keeps_grad(loss, tensors):
    nodes, todo = [], [loss.grad_fn]
    while todo:
        node = todo.pop()
        if node is not None:
            nodes.append(node)
            todo += [earlier for earlier, _ in node.next_functions]
    leaves = [n.variable for n in nodes if hasattr(n, "variable")]
    return {
        name: any(t is leaf for leaf in leaves) or t.grad_fn in nodes and t.grad_fn is not None
        for name, t in tensors.items()
    }

# %% wrong: the other way round
# says: just the other way round
def who_keeps_grad(loss, tensors):
    nodes, todo = [], [loss.grad_fn]
    while todo:
        node = todo.pop()
        if node is not None:
            nodes.append(node)
            todo += [earlier for earlier, _ in node.next_functions]
    leaves = [n.variable for n in nodes if hasattr(n, "variable")]
    return {
        name: not (any(t is leaf for leaf in leaves) or t.retains_grad and t.grad_fn in nodes)
        for name, t in tensors.items()
    }

# %% wrong: clears the old gradients for good
# says: An old .grad is gone
def who_keeps_grad(loss, tensors):
    for t in tensors.values():
        t.grad = None
    loss.backward(retain_graph=True)
    res = {n: t.grad is not None for n, t in tensors.items()}
    for t in tensors.values():
        t.grad = None
    return res

# %% wrong: runs backward, and keeps only references to the old gradients
# says: you need a copy
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

# %% wrong: begins behind the first node
# says: begin at loss.grad_fn
def who_keeps_grad(loss, tensors):
    met, todo = set(), [n for n, _ in loss.grad_fn.next_functions]
    while todo:
        node = todo.pop()
        if node is None or node in met: continue
        met.add(node); todo += [n for n, _ in node.next_functions]
    return {k: any(getattr(n, "variable", None) is t for n in met) if t.is_leaf else t.retains_grad and t.grad_fn in met for k, t in tensors.items()}

# %% wrong: follows the first input only
# says: A node may have several before it
def who_keeps_grad(loss, tensors):
    nodes = []
    n = loss.grad_fn
    while n is not None:
        nodes.append(n)
        n = n.next_functions[0][0] if n.next_functions else None
    return {k: any(getattr(n, "variable", None) is t for n in nodes) or (not t.is_leaf and t.retains_grad and t.grad_fn in nodes) for k, t in tensors.items()}

# %% wrong: finds leaves by value
# says: Compare with `is`
def who_keeps_grad(loss, tensors):
    met, todo = set(), [loss.grad_fn]
    while todo:
        node = todo.pop()
        if node is None or node in met: continue
        met.add(node); todo += [n for n, _ in node.next_functions]
    return {k: (t.requires_grad and any(hasattr(n, "variable") and torch.equal(n.variable, t) for n in met)) if t.is_leaf else t.retains_grad and t.grad_fn in met for k, t in tensors.items()}

# %% wrong: asks all of them to retain
# says: keeps it only if asked to
def who_keeps_grad(loss, tensors):
    for t in tensors.values():
        if t.requires_grad: t.retain_grad()
    met, todo = set(), [loss.grad_fn]
    while todo:
        node = todo.pop()
        if node is None or node in met: continue
        met.add(node); todo += [n for n, _ in node.next_functions]
    return {k: any(getattr(n, "variable", None) is t for n in met) if t.is_leaf else t.retains_grad and t.grad_fn in met for k, t in tensors.items()}

# %% right: asks autograd, and puts everything back
def who_keeps_grad(loss, tensors):
    keeps = {n: t for n, t in tensors.items() if t.requires_grad and (t.is_leaf or t.retains_grad)}
    before = {name: t.grad for name, t in keeps.items()}
    grads = torch.autograd.grad(loss, list(keeps.values()), retain_graph=True, allow_unused=True)
    for name, t in keeps.items():
        t.grad = before[name]
    found = dict(zip(keeps, grads))
    return {name: found.get(name) is not None for name in tensors}

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
        name: id(t) in ids if t.is_leaf else t.retains_grad and id(t.grad_fn) in seen
        for name, t in tensors.items()
    }

# %% right: runs backward on the side, and restores
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

# %% equivalent: node is not None and node not in reached → node is not None
# why: meeting a node twice only takes longer: the graph has no circles

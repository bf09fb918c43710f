# %% wrong: reads only
# says: An operation reads its operands *and* writes its result
def chain_bytes(chain, size):
    made = {result for result, _ in chain}
    read = {name for _, operands in chain for name in operands} - made
    return {"eager": sum(len(operands) for _, operands in chain) * size, "fused": (len(read) + 1) * size}

# %% wrong: one read and one write for each operation
# says: Some operations read two tensors
def chain_bytes(chain, size):
    made = {result for result, _ in chain}
    read = {name for _, operands in chain for name in operands} - made
    return {"eager": 2 * len(chain) * size, "fused": (len(read) + 1) * size}

# %% wrong: each tensor once, also without fusion
# says: Each kernel reads its operands anew
def chain_bytes(chain, size):
    made = {result for result, _ in chain}
    read = {name for _, operands in chain for name in operands}
    return {"eager": len(made | read) * size, "fused": (len(read - made) + 1) * size}

# %% wrong: one input, whatever the chain
# says: later operations, too, may need one
def chain_bytes(chain, size):
    return {"eager": sum(len(operands) + 1 for _, operands in chain) * size, "fused": 2 * size}

# %% wrong: an input once for each use
# says: One kernel reads each tensor that comes from outside once
def chain_bytes(chain, size):
    made = {result for result, _ in chain}
    uses = [name for _, operands in chain for name in operands if name not in made]
    return {"eager": sum(len(operands) + 1 for _, operands in chain) * size, "fused": (len(uses) + 1) * size}

# %% wrong: the result is not written
# says: The last result has to be written
def chain_bytes(chain, size):
    made = {result for result, _ in chain}
    read = {name for _, operands in chain for name in operands} - made
    return {"eager": sum(len(operands) + 1 for _, operands in chain) * size, "fused": len(read) * size}

# %% wrong: the fused kernel writes every temporary
# says: In one kernel a temporary never gets to memory
def chain_bytes(chain, size):
    made = {result for result, _ in chain}
    read = {name for _, operands in chain for name in operands} - made
    return {"eager": sum(len(operands) + 1 for _, operands in chain) * size, "fused": (len(read) + len(chain)) * size}

# %% wrong: the fused kernel reads every temporary
# says: In one kernel a temporary never gets to memory
def chain_bytes(chain, size):
    read = {name for _, operands in chain for name in operands} | {chain[-1][0]}
    return {"eager": sum(len(operands) + 1 for _, operands in chain) * size, "fused": (len(read) + 1) * size}

# %% wrong: the inputs of the first operation only
# says: later operations, too, may need one
def chain_bytes(chain, size):
    return {"eager": sum(len(operands) + 1 for _, operands in chain) * size, "fused": (len(chain[0][1]) + 1) * size}

# %% wrong: counts tensors
# says: that counts tensors
def chain_bytes(chain, size):
    made = {result for result, _ in chain}
    read = {name for _, operands in chain for name in operands} - made
    return {"eager": sum(len(operands) + 1 for _, operands in chain), "fused": len(read) + 1}

# %% wrong: both at once, reads only and no result
# says: An operation reads its operands *and* writes its result
def chain_bytes(chain, size):
    made = {result for result, _ in chain}
    read = {name for _, operands in chain for name in operands} - made
    return {"eager": sum(len(operands) for _, operands in chain) * size, "fused": len(read) * size}

# %% right: walks along the chain
def chain_bytes(chain, size):
    eager, fused, known = 0, size, set()
    for result, operands in chain:
        eager += size
        for name in operands:
            eager += size
            if name not in known:
                fused += size
                known.add(name)
        known.add(result)
    return {"eager": eager, "fused": fused}

# %% right: counts all names, and takes the temporaries off
def chain_bytes(chain, size):
    names = [name for result, operands in chain for name in (result, *operands)]
    return {"eager": size * len(names), "fused": size * (len(set(names)) - len(chain) + 1)}

# %% right: with lists
def chain_bytes(chain, size):
    results = [step[0] for step in chain]
    inputs = []
    for step in chain:
        inputs += [name for name in step[1] if name not in results and name not in inputs]
    each = [size * (1 + len(step[1])) for step in chain]
    return {"fused": size * len(inputs) + size, "eager": sum(each)}

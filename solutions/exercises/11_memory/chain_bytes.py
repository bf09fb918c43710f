from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given

exercise = Exercise("Eager: count the operands and the result of every operation. Fused: the inputs from outside, and the last result.")

small = [("a", ["x"]), ("b", ["a", "y"])]
later = [("b", ["a", "y"]), ("c", ["b", "z"]), ("d", ["c", "x"]), ("e", ["d", "a"])]
branches = [("a", ["x"]), ("b", ["x"]), ("c", ["x", "a"]), ("d", ["b", "c"])]
gelu = [("a", ["x"]), ("b", ["x"]), ("c", ["b"]), ("d", ["x", "c"]), ("e", ["d"]), ("f", ["e"])]
gelu += [("g", ["f"]), ("h", ["a", "g"])]


@st.composite
def chains(draw):
    outside = [f"x{n}" for n in range(draw(st.integers(1, 4)))]
    known, chain = list(outside), []
    for number in range(draw(st.integers(1, 8))):
        count = draw(st.integers(1, min(3, len(known))))
        operands = draw(st.permutations(known))[:count]
        chain.append((f"t{number}", operands))
        known.append(f"t{number}")
    return given(chain, draw(st.integers(1, 99)) * 4)


def bytes_of(*pairs):
    return [given(chain, size) for chain, size in pairs]


edges = {
    "one operation": given([("a", ["x"])], 64),
    "many operands": given([("p", ["u", "v", "w"]), ("q", ["p", "z"])], 8),
    "results that are used twice": given(branches, 4),
    "GELU": given(gelu, 4_000),
    "a temporary that is never used": given([("a", ["x"]), ("b", ["y"]), ("c", ["y"])], 4),
    "the last one uses none of the others": given([("a", ["x"]), ("b", ["a"]), ("c", ["x", "z"])], 4),
    "an input that comes last": given([("a", ["x"]), ("b", ["a"]), ("c", ["b", "y"])], 4),
    "the temporary is the second operand": given([("a", ["x"]), ("b", ["y", "a"])], 4),
    "an input used by every operation": given([("a", ["x"]), ("b", ["a", "x"]), ("c", ["b", "x"])], 4),
    "all from outside": given([("a", ["x", "y"]), ("b", ["x", "y"])], 4),
    "tensors of one byte": given(later, 1),
    "far beyond 64 bits": given(small, 2**70),
    "longer names": given([("result", ["left", "right"]), ("left2", ["result", "left"])], 8),
}
visible = bytes_of((small, 1_000), ([("a", ["x"]), *later], 1_000), ([("p", ["u", "v"]), ("q", ["p", "u"])], 64))
visible += bytes_of(([("a", ["x"]), ("b", ["y"]), ("c", ["x", "y"])], 100))

exercise.requirement(
    '"eager": each operation reads its operands and writes its result',
    points=0.5,
    rules={"fused": "ignored"},
    visible=visible,
    edges=edges,
    domain=chains(),
    hint="Every operation, one by one: what does its kernel read, and what does it write?",
)
exercise.requirement(
    '"fused": each input from outside is read once, the last result is written, and temporaries stay in the kernel',
    points=0.5,
    rules={"eager": "ignored"},
    visible=visible,
    edges=edges,
    domain=chains(),
    hint="One kernel for all: what has to come from memory, and what has to go there?",
)

both = "An operation reads its operands *and* writes its result."
exercise.mistake(both, "sum(len(operands) + 1 for → sum(len(operands) for")
exercise.mistake(
    "Count the operands, too: an operation reads them before it writes its result.",
    "sum(len(operands) + 1 for → sum(1 for",
)  # fmt: skip
exercise.mistake("Some operations read two tensors: count the operands.", "sum(len(operands) + 1 for → sum(2 for")
exercise.mistake("Some operations read one tensor only: count the operands.", "sum(len(operands) + 1 for → sum(3 for")
exercise.mistake("Each kernel reads all of its operands, even a tensor that an earlier kernel has just read or written.",
                 "sum(len(operands) + 1 for _, operands in chain) → len(made | read)")  # fmt: skip
exercise.mistake(
    "Each operation writes its result, even if it's a temporary.",
    "eager = sum(len(operands) + 1 for _, operands in chain) → eager = sum(len(operands) for _, operands in chain) + 1",
)  # fmt: skip
exercise.mistake(
    "Temporaries are read back by the operations that need them.",
    "eager = sum(len(operands) + 1 for _, operands in chain) → eager = len(made) + sum(len(set(operands) - made) "
    "for _, operands in chain)",
)  # fmt: skip
first = "Every tensor from outside has to be read, and later operations may need new ones."
exercise.mistake(first, '"fused": (len(read - made) + 1) → "fused": 2')
exercise.mistake(
    f"Your code counts only the first operation's operands. {first}",
    '"fused": (len(read - made) + 1) → "fused": (len(chain[0][1]) + 1)',
)  # fmt: skip
exercise.mistake(
    "The fused kernel reads each tensor that comes from outside only once, however often it's used.",
    "read = {name for _, operands in chain for name in operands} → read = [name for _, operands in chain for name "
    "in operands]",
    "len(read - made) → len([n for n in read if n not in made])",
)  # fmt: skip
exercise.mistake("The last result has to be written.", "(len(read - made) + 1) * size → len(read - made) * size")
inside = "In the fused kernel, a temporary never reaches memory: it's neither written nor read."
exercise.mistake(inside, "(len(read - made) + 1) → (len(read - made) + len(made))")
exercise.mistake(inside, "(len(read - made) + 1) → (len(read) + 1)")
exercise.mistake("Count what the kernel reads from outside, too, not only what it writes.", "(len(read - made) + 1) → 1")
elements = "Your result is a number of tensors; each of them takes `size` bytes."
exercise.mistake(elements, 'eager * size → eager', "(len(read - made) + 1) * size → len(read - made) + 1")

# %% mistake: the two numbers alone
# says: Return a dict with the entries "eager" and "fused".
def chain_bytes(chain, size):
    made = {result for result, _ in chain}
    read = {name for _, operands in chain for name in operands}
    return sum(len(operands) + 1 for _, operands in chain) * size, (len(read - made) + 1) * size

# %% wrong: takes every first operand for a temporary, but for the first
def chain_bytes(chain, size):
    eager = sum(len(operands) + 1 for _, operands in chain)
    outside = {chain[0][1][0]} | {name for _, operands in chain for name in operands[1:]}
    return {"eager": eager * size, "fused": (len(outside) + 1) * size}

# %% wrong: letters from the end of the alphabet come from outside
def chain_bytes(chain, size):
    eager = sum(len(operands) + 1 for _, operands in chain)
    outside = {name for _, operands in chain for name in operands if name[0] > "m"}
    return {"eager": eager * size, "fused": (len(outside) + 1) * size}

# %% wrong: only what the last result needs, in the eager count, too
def chain_bytes(chain, size):
    needed, eager, outside = {chain[-1][0]}, 0, set()
    for result, operands in reversed(chain):
        if result in needed:
            eager += len(operands) + 1
            needed |= set(operands)
    outside = needed - {result for result, _ in chain}
    return {"eager": eager * size, "fused": (len(outside) + 1) * size}

# %% wrong: what is never used is taken for a result (from the statement)
def chain_bytes(chain: list[tuple[str, list[str]]], size: int) -> dict[str, int]:
    made = {result for result, _ in chain}
    read = {name for _, operands in chain for name in operands}
    eager = sum(1 + len(operands) for _, operands in chain)
    return {"eager": eager * size, "fused": (len(read - made) + len(made - read)) * size}

# %% wrong: eager leaves out what is never used (from the statement)
def chain_bytes(chain: list[tuple[str, list[str]]], size: int) -> dict[str, int]:
    last = chain[-1][0]
    used = {name for _, operands in chain for name in operands} | {last}
    eager = sum(1 + len(operands) for result, operands in chain if result in used)
    made: set[str] = set()
    outside: set[str] = set()
    for result, operands in chain:
        outside.update(set(operands) - made)
        made.add(result)
    return {"eager": eager * size, "fused": (len(outside) + 1) * size}

# %% wrong: an operand from outside is read once for each operation that uses it (from the statement)
def chain_bytes(chain: list[tuple[str, list[str]]], size: int) -> dict[str, int]:
    made = {result for result, _ in chain}
    eager = sum(len(operands) + 1 for _, operands in chain)
    fused = sum(name not in made for _, operands in chain for name in operands) + 1
    return {"eager": eager * size, "fused": fused * size}

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

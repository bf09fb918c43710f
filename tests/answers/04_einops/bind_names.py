# %% wrong: forgets what was known
# says: begin with a copy of sizes
def bind_names(names, shape, sizes):
    if len(names.split()) != len(shape):
        raise ValueError("dimensions")
    return dict(zip(names.split(), shape))

# %% wrong: returns only what is new
# says: begin with a copy of sizes
def bind_names(names, shape, sizes):
    new = {}
    for name, size in zip(names.split(), shape):
        if name not in sizes:
            new[name] = size
    return new

# %% wrong: writes into sizes
# says: work on a copy
def bind_names(names, shape, sizes):
    for name, size in zip(names.split(), shape):
        if sizes.setdefault(name, size) != size:
            raise ValueError(name)
    return sizes

# %% wrong: overwrites
# says: do not overwrite what is known
def bind_names(names, shape, sizes):
    wanted = names.split()
    if wanted[0] == "...":
        wanted = wanted[1:]
        shape = shape[len(shape) - len(wanted) :]
    if len(wanted) != len(shape):
        raise ValueError("dimensions")
    return {**sizes, **{n: s for n, s in zip(wanted, shape) if not n.isdigit()}}

# %% wrong: compares with sizes only
# says: t is named twice in one shape
def bind_names(names, shape, sizes):
    wanted = names.split()
    if wanted[0] == "...":
        wanted = wanted[1:]
        shape = shape[len(shape) - len(wanted) :]
    if len(wanted) != len(shape):
        raise ValueError("dimensions")
    new = dict(sizes)
    for name, size in zip(wanted, shape):
        if name.isdigit():
            if int(name) != size:
                raise ValueError(name)
            continue
        if name in sizes and sizes[name] != size:
            raise ValueError(name)
        new[name] = size
    return new

# %% wrong: zip stops at the shorter
# says: zip stops at the shorter of the two
def bind_names(names, shape, sizes):
    known = dict(sizes)
    wanted = names.split()
    if wanted[0] == "...":
        wanted = wanted[1:]
        shape = shape[-len(wanted) :]
    for name, size in zip(wanted, shape):
        expected = int(name) if name.isdigit() else known.setdefault(name, size)
        if expected != size:
            raise ValueError(name)
    return known

# %% wrong: a number is a name
# says: A number is no name
def bind_names(names, shape, sizes):
    known = dict(sizes)
    wanted = names.split()
    if wanted[0] == "...":
        wanted = wanted[1:]
        shape = shape[len(shape) - len(wanted) :]
    if len(wanted) != len(shape):
        raise ValueError("dimensions")
    for name, size in zip(wanted, shape):
        if known.setdefault(name, size) != size:
            raise ValueError(name)
    return known

# %% wrong: numbers are passed over
# says: The number 5 demands the size 5
def bind_names(names, shape, sizes):
    known = dict(sizes)
    wanted = names.split()
    if wanted[0] == "...":
        wanted = wanted[1:]
        shape = shape[len(shape) - len(wanted) :]
    if len(wanted) != len(shape):
        raise ValueError("dimensions")
    for name, size in zip(wanted, shape):
        if not name.isdigit() and known.setdefault(name, size) != size:
            raise ValueError(name)
    return known

# %% wrong: ... is one dimension
# says: also none
def bind_names(names, shape, sizes):
    known = dict(sizes)
    wanted = names.split()
    if len(wanted) != len(shape):
        raise ValueError("dimensions")
    for name, size in zip(wanted, shape):
        if name == "...":
            continue
        expected = int(name) if name.isdigit() else known.setdefault(name, size)
        if expected != size:
            raise ValueError(name)
    return known

# %% wrong: -0 is not the end
# says: ... stands for any number of dimensions
def bind_names(names, shape, sizes):
    known = dict(sizes)
    wanted = names.split()
    if wanted[0] == "...":
        wanted = wanted[1:]
        shape = shape[-len(wanted) :]
    if len(wanted) != len(shape):
        raise ValueError("dimensions")
    for name, size in zip(wanted, shape):
        expected = int(name) if name.isdigit() else known.setdefault(name, size)
        if expected != size:
            raise ValueError(name)
    return known

# %% wrong: a 1 broadcasts
# says: names do not broadcast
def bind_names(names, shape, sizes):
    known = dict(sizes)
    wanted = names.split()
    if wanted[0] == "...":
        wanted = wanted[1:]
        shape = shape[max(0, len(shape) - len(wanted)) :]
    if len(wanted) != len(shape):
        raise ValueError("dimensions")
    for name, size in zip(wanted, shape):
        expected = int(name) if name.isdigit() else known.setdefault(name, size)
        if expected != size and 1 not in (expected, size):
            raise ValueError(name)
    return known

# %% wrong: asserts
# says: Raise ValueError
def bind_names(names, shape, sizes):
    known = dict(sizes)
    wanted = names.split()
    if wanted[0] == "...":
        wanted = wanted[1:]
        shape = shape[len(shape) - len(wanted) :]
    assert len(wanted) == len(shape)
    for name, size in zip(wanted, shape):
        expected = int(name) if name.isdigit() else known.setdefault(name, size)
        assert expected == size
    return known

# %% wrong: returns nothing
# says: Nothing is returned
def bind_names(names, shape, sizes):
    for name, size in zip(names.split(), shape):
        if sizes.get(name, size) != size:
            raise ValueError(name)

# %% wrong: each letter a name
# says: names.split()
def bind_names(names, shape, sizes):
    known = dict(sizes)
    letters = [letter for letter in names if letter != " "]
    if len(letters) != len(shape):
        raise ValueError("dimensions")
    for letter, size in zip(letters, shape):
        if known.setdefault(letter, size) != size:
            raise ValueError(letter)
    return known

# %% wrong: fewer sizes than names after ...
# says: Fewer sizes than names
def bind_names(names, shape, sizes):
    known = dict(sizes)
    wanted = names.split()
    if wanted[0] == "...":
        del wanted[0]
    elif len(wanted) != len(shape):
        raise ValueError("dimensions")
    for name, size in zip(reversed(wanted), reversed(shape)):
        if size != (int(name) if name.isdigit() else known.setdefault(name, size)):
            raise ValueError(name)
    return known

# %% right: from the back
def bind_names(names, shape, sizes):
    left, known = list(shape), {**sizes}
    for name in reversed(names.split()):
        if name == "...":
            left = []
            break
        if not left:
            raise ValueError("too few")
        size = left.pop()
        try:
            expected = int(name)
        except ValueError:
            expected = known.get(name, size)
            known[name] = expected
        if expected != size:
            raise ValueError(f"{name}: {expected}, {size}")
    if left:
        raise ValueError("too many")
    return known

# %% right: pairs first
def bind_names(names, shape, sizes):
    words = names.split()
    rest = [w for w in words if w != "..."]
    if len(shape) < len(rest) or (len(rest) == len(words) and len(shape) != len(rest)):
        raise ValueError("dimensions")
    pairs = list(zip(rest, shape[len(shape) - len(rest) :]))
    result = sizes.copy()
    for name, size in pairs:
        if name.isnumeric():
            if int(name) != size:
                raise ValueError("number")
        elif result.get(name, size) != size:
            raise ValueError("name")
        else:
            result[name] = size
    return result

# %% right: sets of sizes
def bind_names(names, shape, sizes):
    words = names.split()
    if words and words[0] == "...":
        words = ["_"] * (len(shape) - len(words) + 1) + words[1:]
    if len(words) != len(shape):
        raise ValueError("dimensions")
    found = {name: {size} for name, size in sizes.items()}
    for word, size in zip(words, shape):
        if word.isdecimal():
            if size != int(word):
                raise ValueError("number")
        elif word != "_":
            found.setdefault(word, set()).add(size)
    if any(len(values) > 1 for values in found.values()):
        raise ValueError("name")
    return {name: values.pop() for name, values in found.items()}

# %% equivalent: max(len(shape) - len(wanted), 0) → max(0, len(shape) - len(wanted))
# why: the larger of two numbers does not depend on their order

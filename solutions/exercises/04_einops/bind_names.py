from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given

exercise = Exercise("Go through names and sizes in pairs: is the name a number, is it known already, or is it new?")

NAMES = ("batch", "t", "d", "t_2", "heads", "x4")
sizes = st.integers(0, 5)


@st.composite
def fitting(draw, numbers=False, dots=False):
    """A shape that agrees with its names. numbers: some of them are demanded sizes. dots: the first is `...`."""
    every = {name: draw(sizes) for name in NAMES}
    words = draw(st.lists(st.sampled_from(NAMES), min_size=int(not dots), max_size=4))
    shape = [every[word] for word in words]
    if numbers:
        for place in draw(st.sets(st.integers(0, len(words)), min_size=1, max_size=3)):
            size = draw(st.integers(0, 12))
            words.insert(place, str(size))
            shape.insert(place, size)
    if dots:
        words.insert(0, "...")
        shape = draw(st.lists(sizes, max_size=3)) + shape
    plain = not numbers and not dots
    known = draw(st.sets(st.sampled_from(NAMES if plain else [word for word in words if word in every] or ["t"])))
    known = {name: every[name] for name in known if plain or name in words}
    return given(" ".join(words), tuple(shape), known | (draw(others) if plain else {}))


others = st.dictionaries(st.sampled_from(("h", "vocabulary")), sizes, max_size=2)


@st.composite
def two_sizes(draw):
    """A name that has another size already: in sizes, or further left in the shape."""
    names, shape, known = draw(fitting()).args
    words = names.split()
    place = draw(st.integers(0, len(words) - 1))
    other = draw(sizes.filter(lambda n: n != shape[place]))
    if draw(st.booleans()):
        return given(names, shape, {**known, words[place]: other})
    return given(f"{names} {words[place]}", (*shape, other), {k: v for k, v in known.items() if k != words[place]})


@st.composite
def other_numbers(draw):
    names, shape, known = draw(fitting(numbers=True)).args
    words = names.split()
    place = next(n for n, word in enumerate(words) if word.isdigit())
    words[place] = str(draw(st.integers(0, 12).filter(lambda n: n != shape[place])))
    return given(" ".join(words), shape, known)


@st.composite
def misfits(draw):
    """Too many sizes, or too few; with `...` there can only be too few."""
    names, shape, known = draw(fitting()).args
    if draw(st.booleans()):
        return given(names, (*shape, *draw(st.lists(sizes, min_size=1, max_size=2))), known)
    few = shape[: draw(st.integers(0, len(shape) - 1))]
    return given(draw(st.sampled_from(["", "... "])) + names, few, known)


def look(student, names, shape, sizes, fits):
    """What has become of sizes, also where a ValueError is raised, and whether what comes back is another dict."""
    try:
        result = student.bind_names(names, shape, sizes)
    except ValueError:
        if fits:
            raise
        result = {}
    return {"sizes afterwards": dict(sizes), "returns a new dict": isinstance(result, dict) and result is not sizes}


def looked_at(fits):
    return lambda case: given(*case.args, fits)


exercise.requirement(
    "each name gets the size of its dimension, and sizes already known are kept",
    points=0.25,
    parts=["value"],
    visible=[
        given("batch t d", (2, 3, 4), {"t": 3, "h": 8}),
        given("t d t", (3, 4, 3), {}),
        given("", (), {"t": 3}),
        given("x4 t", (3, 2), {}),
    ],
    edges={
        "a scalar has no names": given("", (), {}),
        "all is known already": given("t d", (3, 4), {"t": 3, "d": 4}),
        "sizes of 0": given("t d", (0, 4), {"t": 0}),
        "a size of 1": given("t d", (1, 4), {"t": 1}),
        "a digit in a name": given("t_2 x4", (3, 5), {}),
        "a huge size": given("t", (2**70,), {}),
    },
    domain=fitting(),
)
exercise.requirement(
    "a number requires exactly that size, any other size raises a ValueError, and the number isn't added to the "
    "dictionary",
    points=0.25,
    parts=["value"],
    visible=[given("b 12 d", (2, 12, 4), {}), given("b 5", (2, 3), {}), given("b 5", (2, 1), {})],
    edges={
        "nothing but a number": given("7", (7,), {}),
        "a demanded 1": given("b 1 1", (2, 1, 1), {}),
        "1 is not 2": given("1 d", (2, 3), {}),
        "a demanded 0": given("0 d", (0, 3), {}),
        "0 is not 2": given("0 d", (2, 3), {}),
        "the same number twice": given("3 d 3", (3, 4, 3), {}),
        "the same number twice, fitting once": given("3 d 3", (3, 4, 2), {}),
        "many digits": given("b 1024", (2, 1024), {}),
    },
    domain=fitting(numbers=True) | other_numbers(),
    hint="name.isdigit() tells a number from a name; int(name) is the size that it requires.",
)
exercise.requirement(
    "a leading `...` stands for any number of dimensions, including none",
    points=0.5,
    parts=["value"],
    visible=[
        given("... t d", (9, 8, 3, 4), {}),
        given("... d", (4,), {}),
        given("... 12 d", (2, 12, 4), {}),
        given("...", (2,), {}),
    ],
    edges={
        "no names, no dimensions": given("...", (), {}),
        "no names, two dimensions": given("...", (2, 3), {}),
        "none, and a name that is known": given("... d", (4,), {"d": 4}),
        "sizes in front may be those of names": given("... t d", (3, 3, 4), {"t": 3}),
        "a 0 in front": given("... d", (0, 4), {}),
        "a name twice": given("... t t", (5, 3, 3), {}),
    },
    domain=fitting(dots=True) | fitting(dots=True, numbers=True),
    hint="The names after `...` belong to the last dimensions; if no name follows, every shape fits.",
)
exercise.requirement(
    "a name that would get two sizes raises a ValueError",
    points=0.5,
    parts=["error"],
    visible=[
        given("b t", (2, 4), {"t": 3}),
        given("t t", (3, 4), {}),
        given("b t", (1, 4), {"b": 2}),
        given("t d", (3, 4), {"t": 3}),
        given("t", (3,), {"t": 0}),
    ],
    edges={
        "a known 1": given("b t", (2, 4), {"b": 1}),
        "a known 0": given("b t", (2, 4), {"b": 0}),
        "a size of 0": given("b t", (0, 4), {"b": 2}),
        "the first time": given("t d", (3, 4), {"t": 4, "d": 4}),
        "the third time": given("t t t", (3, 3, 4), {}),
        "far apart": given("t d b t", (3, 4, 5, 1), {}),
        "two names with one size": given("t d", (4, 4), {}),
        "behind ...": given("... t", (3, 4), {"t": 3}),
    },
    domain=two_sizes() | fitting(),
    hint="Compare each size with the size known for its name before you store anything.",
)
exercise.requirement(
    "a wrong number of dimensions raises a ValueError",
    points=0.25,
    parts=["error"],
    visible=[given("b t", (2, 3, 4), {}), given("b t d", (2, 3), {}), given("... t d", (4,), {}), given("b t", (2, 3), {})],
    edges={
        "names for a scalar": given("b", (), {}),
        "a shape without names": given("", (3,), {}),
        "nothing for the names after ...": given("... d", (), {}),
        "all sizes are known": given("b t", (2, 3, 3), {"b": 2, "t": 3}),
        "further sizes of 1": given("b t", (1, 2, 3), {}),
        "a 1 at the end": given("b t", (2, 3, 1), {}),
        "three names too many after ...": given("... b t d h", (2,), {}),
    },
    domain=misfits() | fitting(),
    hint="zip silently stops at the end of the shorter sequence.",
)
exercise.requirement(
    "the result is a new dictionary, and `sizes` doesn't change",
    points=0.25,
    probe=look,
    visible=[
        given("b t", (2, 3), {"t": 3}, True, says='sizes = {"t": 3}; bind_names("b t", (2, 3), sizes)'),
        given("t", (3,), {"t": 3}, True, says='sizes = {"t": 3}; bind_names("t", (3,), sizes)'),
        given("b t", (2, 4), {"t": 3}, False, says='sizes = {"t": 3}; bind_names("b t", (2, 4), sizes)'),
    ],
    edges={
        "empty": given("b", (2,), {}, True),
        "a scalar": given("", (), {"t": 3}, True),
        "nothing but ...": given("...", (5,), {"t": 3}, True),
        "a digit in a name": given("t_2 x4", (3, 5), {}, True),
        "a wrong number of dimensions": given("b t", (2, 3, 4), {}, False),
    },
    domain=fitting().map(looked_at(True)) | two_sizes().map(looked_at(False)) | misfits().map(looked_at(False)),
    hint="`sizes` belongs to the caller: work on a copy.",
)
two_sizes_at_once = "If a name would get two sizes, raise a ValueError instead of overwriting the known size."
all_known = "The result has to contain all sizes known afterward: those in `sizes` and the new ones."
another = "You raised a different error: with a ValueError, the caller can tell a wrong shape from a bug in your code."
exercise.mistake(all_known, "known = dict(sizes) → known = {}")
exercise.mistake(
    all_known,
    "return known → return {name: known[name] for name in wanted if name in known}",
)
exercise.mistake(
    all_known,
    "return known → return {name: size for name, size in known.items() if name not in sizes}",
)
exercise.mistake("`sizes` belongs to the caller: work on a copy.", "known = dict(sizes) → known = sizes")
exercise.mistake(
    "If all sizes are known already, your code returns `sizes` itself; the exercise asks for a new dictionary.",
    "return known → return sizes if known == sizes else known",
)
exercise.mistake("Your function returns nothing: a return statement is missing.", "return known → return None")
exercise.mistake(
    two_sizes_at_once,
    "else known.setdefault(name, size) → else size",
    "if size != expected → known |= {} if name.isdigit() else {name: size}\n        if size != expected",
)
exercise.mistake(
    two_sizes_at_once,
    "if size != expected → if name.isdigit() and size != expected",
)
exercise.mistake(
    "A name that occurs twice in one shape has a single size: compare each size with those that you've just found, too.",
    "else known.setdefault(name, size) → else sizes.get(name, size)",
    "if size != expected → known |= {} if name.isdigit() else {name: size}\n        if size != expected",
)
exercise.mistake(
    "Here a size of 1 is a size like any other: names don't broadcast.",
    "if size != expected → if size != expected and 1 not in (size, expected)",
)
exercise.mistake(
    "If there are more sizes than names, or fewer, zip silently stops at the end of the shorter sequence.",
    "zip(wanted, shape, strict=True) → zip(wanted, shape)",
)
exercise.mistake(
    "With fewer sizes than names, the number of dimensions is wrong, even after a leading `...`.",
    "shape = shape[max(len(shape) - len(wanted), 0) :] → shape = shape[max(len(shape) - len(wanted), 0) :]; "
    "wanted = wanted[len(wanted) - len(shape) :]",
)
a_name = "A number isn't a name: it requires that size and isn't added to the dictionary."
exercise.mistake(a_name, "int(name) if name.isdigit() else known → known")
exercise.mistake(
    a_name,
    "if size != expected → known[name] = size\n        if size != expected",
    "if size != expected → if not name.isdigit() and size != expected",
)
exercise.mistake(
    "You check the size that a number requires, but the number doesn't belong in the dictionary.",
    "if size != expected → known[name] = size\n        if size != expected",
)
exercise.mistake(
    "A number requires exactly that size; your code raises no error if the shape has a different one.",
    "if size != expected → if not name.isdigit() and size != expected",
)
exercise.mistake(
    "`...` stands for any number of dimensions, including none, not for exactly one.",
    "shape = shape[max(len(shape) - len(wanted), 0) :] → shape = shape[1:]",
)
exercise.mistake(
    "`...` isn't a name: the dimensions that it stands for aren't added to the dictionary.",
    'if wanted[:1] == ["..."] → if False',
)
exercise.mistake(
    "If no name follows the dots, your code takes shape[-0:], which is the whole shape.",
    "shape = shape[max(len(shape) - len(wanted), 0) :] → shape = shape[-len(wanted) :]",
)
exercise.mistake(
    "The names after the dots belong to the last dimensions, not to the first.",
    "shape = shape[max(len(shape) - len(wanted), 0) :] → shape = shape[: len(wanted)]",
)
exercise.mistake(another, "raise ValueError(f → raise KeyError(f")
exercise.mistake(another, "raise ValueError(f → raise AssertionError(f")

# %% mistake: each letter is a name
# says: Your code treats each letter as a name: names are separated by spaces, and a name may have several letters.
def bind_names(names, shape, sizes):
    known = dict(sizes)
    letters = [letter for letter in names if letter != " "]
    if len(letters) != len(shape):
        raise ValueError("dimensions")
    for letter, size in zip(letters, shape):
        if known.setdefault(letter, size) != size:
            raise ValueError(letter)
    return known

# %% mistake: asserts
# says: You raised a different error: with a ValueError, the caller can tell a wrong shape from a bug in your code.
def bind_names(names, shape, sizes):
    known = dict(sizes)
    wanted = names.split()
    if wanted and wanted[0] == "...":
        wanted = wanted[1:]
        shape = shape[len(shape) - len(wanted) :] if len(wanted) <= len(shape) else shape
    assert len(wanted) == len(shape)
    for name, size in zip(wanted, shape):
        expected = int(name) if name.isdigit() else known.setdefault(name, size)
        assert expected == size
    return known

# %% wrong: a known 0 counts as unknown
def bind_names(names, shape, sizes):
    known = dict(sizes)
    wanted = names.split()
    if wanted and wanted[0] == "...":
        wanted = wanted[1:]
        shape = shape[max(0, len(shape) - len(wanted)) :]
    if len(wanted) != len(shape):
        raise ValueError("dimensions")
    for name, size in zip(wanted, shape):
        known[name] = expected = int(name) if name.isdigit() else known.get(name) or size
        if name.isdigit():
            del known[name]
        if expected != size:
            raise ValueError(name)
    return known

# %% wrong: any name with a digit in it is a number
def bind_names(names, shape, sizes):
    known = dict(sizes)
    wanted = names.split()
    if wanted and wanted[0] == "...":
        wanted = wanted[1:]
        shape = shape[max(0, len(shape) - len(wanted)) :]
    if len(wanted) != len(shape):
        raise ValueError("dimensions")
    for name, size in zip(wanted, shape):
        digits = "".join(letter for letter in name if letter.isdigit())
        if digits:
            if int(digits) != size:
                raise ValueError(name)
        elif known.setdefault(name, size) != size:
            raise ValueError(name)
    return known

# %% wrong: fails where there are no names
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
        if expected != size:
            raise ValueError(name)
    return known

# %% wrong: writes into sizes until it has to raise
def bind_names(names, shape, sizes):
    wanted = names.split()
    before = dict(sizes)
    if wanted and wanted[0] == "...":
        wanted = wanted[1:]
        shape = shape[max(0, len(shape) - len(wanted)) :]
    if len(wanted) != len(shape):
        raise ValueError("dimensions")
    for name, size in zip(wanted, shape):
        expected = int(name) if name.isdigit() else sizes.setdefault(name, size)
        if expected != size:
            raise ValueError(name)
    known = dict(sizes)
    sizes.clear()
    sizes.update(before)
    return known

# %% wrong: a known size of 0 counts as unknown (from the statement)
def bind_names(names: str, shape: tuple[int, ...], sizes: dict[str, int]) -> dict[str, int]:
    known = dict(sizes)
    parts = names.split()
    if parts and parts[0] == "...":
        parts = parts[1:]
        if len(shape) < len(parts):
            raise ValueError("too few dimensions")
        shape = shape[len(shape) - len(parts) :]
    if len(shape) != len(parts):
        raise ValueError("wrong number of dimensions")
    for part, size in zip(parts, shape):
        expected = int(part) if part.isdigit() else (known.get(part) or size)
        if expected != size:
            raise ValueError(f"{part} is {expected}, not {size}")
        if not part.isdigit():
            known[part] = size
    return known

# %% wrong: splits at each space, so the empty string is one name (from the statement)
def bind_names(names: str, shape: tuple[int, ...], sizes: dict[str, int]) -> dict[str, int]:
    known = dict(sizes)
    parts = names.split(" ")
    if parts[0] == "...":
        parts = parts[1:]
        if len(shape) < len(parts):
            raise ValueError("too few dimensions")
        shape = shape[len(shape) - len(parts) :]
    if len(parts) != len(shape):
        raise ValueError("wrong number of dimensions")
    for part, size in zip(parts, shape):
        if part.isdigit():
            if int(part) != size:
                raise ValueError(f"{part} demanded, but {size}")
        elif known.setdefault(part, size) != size:
            raise ValueError(f"two sizes for {part}")
    return known

# %% wrong: whatever is not only letters counts as a number (from the statement)
def bind_names(names: str, shape: tuple[int, ...], sizes: dict[str, int]) -> dict[str, int]:
    known = dict(sizes)
    parts = names.split()
    if parts and parts[0] == "...":
        parts = parts[1:]
        if len(shape) < len(parts):
            raise ValueError("too few dimensions")
        shape = shape[len(shape) - len(parts) :]
    if len(parts) != len(shape):
        raise ValueError("wrong number of dimensions")
    for part, size in zip(parts, shape):
        if part.isalpha():
            if known.setdefault(part, size) != size:
                raise ValueError(f"two sizes for {part}")
        elif int(part) != size:
            raise ValueError(f"{part} demanded, but {size}")
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

# %% right: a subclass of ValueError, and tuples
class SizeError(ValueError):
    pass

def bind_names(names, shape, sizes):
    head, dots, tail = names.rpartition("...")
    words = tuple(tail.split())
    skip = len(shape) - len(words)
    if skip < 0 or (skip and not dots):
        raise SizeError(names)
    found = list(sizes.items())
    for word, size in zip(words, shape[skip:]):
        if word.isdecimal():
            word, found_here = "", [int(word)]
        else:
            found_here = [n for name, n in found if name == word]
        if any(n != size for n in found_here):
            raise SizeError(word)
        found += [(word, size)] * bool(word)
    return dict(found)

# %% equivalent: max(len(shape) - len(wanted), 0) → max(0, len(shape) - len(wanted))
# why: the larger of two numbers does not depend on their order

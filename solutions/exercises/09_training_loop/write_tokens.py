from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of

exercise = Exercise("The dtype follows from vocab_size alone: the largest id is vocab_size - 1.")


def written(student, ids, vocab_size):
    """What write_tokens leaves in a folder."""
    import pathlib
    import tempfile

    import numpy as np

    with tempfile.TemporaryDirectory() as place:
        path = pathlib.Path(place) / "ids.npy"
        student.write_tokens(path, ids, vocab_size)
        files = sorted(found.name for found in pathlib.Path(place).iterdir())
        try:
            array = np.load(path)
        except (OSError, ValueError, EOFError) as error:
            return {"files": files, "np.load(path)": type(error).__name__, "dtype": None, "ids": None}
        return {"files": files, "np.load(path)": "loads", "dtype": array.dtype.str, "ids": array.tolist()}


def checked(student, ids, vocab_size):
    """Whether write_tokens raises, and what."""
    import pathlib
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        student.write_tokens(pathlib.Path(place) / "ids.npy", ids, vocab_size)


def after_refusal(student, ids, vocab_size, before=None):
    """The files after write_tokens, whatever it raises; before: ids that a file at path already holds."""
    import pathlib
    import tempfile

    import numpy as np

    with tempfile.TemporaryDirectory() as place:
        path = pathlib.Path(place) / "ids.npy"
        if before is not None:
            np.save(path, np.array(before, dtype=np.uint8))
        old = path.read_bytes() if path.exists() else None
        try:
            student.write_tokens(path, ids, vocab_size)
        except NotImplementedError:
            raise
        except Exception:
            pass  # which error it is, another requirement asks
        files = sorted(pathlib.Path(place).iterdir())
        return {"files": {file.name: "as before" if file.read_bytes() == old else "new" for file in files}}


def opened(student, ids, stored, vocab_size):
    """What open_tokens makes of ids that are stored in a dtype."""
    import mmap
    import pathlib
    import tempfile

    import numpy as np

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        path = pathlib.Path(place) / "ids.npy"
        np.save(path, np.array(ids, dtype=stored))
        tokens = student.open_tokens(path, vocab_size)
        base, mapped, writeable = tokens, False, tokens.flags.writeable
        while base is not None and not mapped:
            mapped = isinstance(base, mmap.mmap)
            base = base.obj if isinstance(base, memoryview) else getattr(base, "base", None)
        try:
            tokens.flags.writeable, again = True, True
        except ValueError:  # the file itself is mapped read-only
            again = False
        return {
            "ids": tokens.tolist(),
            "dtype": tokens.dtype.str,
            "mapped": mapped,
            "can be written to": bool(writeable),
            "can be made writeable again": again,
        }


SIZES = (1, 2, 17, 255, 256, 257, 300, 50_257, 65_535, 65_536, 65_537, 100_000, 2**31, 2**31 + 1, 2**32 - 1, 2**32)
DTYPES = ("|u1", "<u2", "<u4", ">u2", ">u4", "|i1", "<i2", "<i4", "<u8", "<i8", "<f4", "<f2")


@st.composite
def texts(draw):
    """Ids of a vocabulary, its largest among them or not."""
    size = draw(any_of(*SIZES) | st.integers(1, 2**32))
    return given(draw(st.lists(st.integers(0, size - 1) | any_of(0, size - 1), min_size=1, max_size=6)), size)


@st.composite
def with_strangers(draw):
    """Texts of which about half have an id that the vocabulary lacks."""
    ids, size = draw(texts()).args
    for id in draw(st.lists(any_of(-1, size, size + 1, -300, 2**33), max_size=2)):
        ids.insert(draw(st.integers(0, len(ids))), id)
    return given(ids, size)


@st.composite
def refusals(draw):
    return given(*draw(with_strangers()).args, draw(any_of(None, [1, 2, 3])))


@st.composite
def stored(draw, fits=False):
    size = draw(any_of(*SIZES))
    dtype = "|u1" if size <= 256 else "<u2" if size <= 65_536 else "<u4"
    if not fits:
        dtype = draw(any_of(*DTYPES) | st.just(dtype))
    top = {"1": 100, "2": 2_000}.get(dtype[-1], 2**31 - 1)
    return given(draw(st.lists(st.integers(0, min(top, size - 1)), min_size=1, max_size=5)), dtype, size)


says = "write_tokens(path, {}, vocab_size={:_})"
exercise.requirement(
    "write_tokens writes the ids as a .npy file at path, and no other file",
    points=0.25,
    probe=written,
    rules={"dtype": "ignored"},
    visible=[
        given([5, 0, 200, 5], 50_257, says=says.format([5, 0, 200, 5], 50_257)),
        given([7], 256, says=says.format([7], 256)),
    ],
    edges={
        "one id, the largest": given([2**32 - 1], 2**32),
        "the same again": given([3, 3, 3], 4),
        "a vocabulary of one": given([0, 0], 1),
    },
    domain=texts(),
    hint="np.save writes a .npy file: a header with dtype and shape, then the numbers.",
)
exercise.requirement(
    "the file's dtype is the smallest of uint8, uint16 and uint32 that can hold every id of the vocabulary",
    points=0.5,
    probe=written,
    rules={"ids": "ignored"},
    visible=[
        given([5, 0, 200, 5], 50_257, says=says.format([5, 0, 200, 5], 50_257)),
        given([0, 255], 256, says=says.format([0, 255], 256)),
        given([0, 1], 257, says=says.format([0, 1], 257)),
        given([0, 1], 65_536, says=says.format([0, 1], 65_536)),
    ],
    edges={
        f"a vocabulary of {size:_}": given([0], size)
        for size in (1, 2, 127, 128, 129, 255, 32_768, 32_769, 65_535, 65_537, 2**31, 2**32 - 1, 2**32)
    },
    domain=texts(),
)
exercise.requirement(
    "an id that's negative or not in the vocabulary raises a ValueError",
    points=0.25,
    probe=checked,
    parts=["error"],
    visible=[
        given([3, 300, 1], 300, says=says.format([3, 300, 1], 300)),
        given([3, -1], 300, says=says.format([3, -1], 300)),
        given([3, 65_541], 300, says=says.format([3, 65_541], 300)),
        given([3, 299, 0], 300, says=says.format([3, 299, 0], 300)),
    ],
    edges={
        "it fits into the dtype": given([200], 200),
        "it would, in the one below": given([65_536], 65_536),
        "it does not fit into the dtype": given([256], 256),
        "beyond 32 bits": given([2**32], 2**32),
        "the largest of 63 bits": given([3, 2**63 - 1], 300),
        "far below 0": given([3, -(2**63)], 300),
        "the first": given([-5, 3], 10),
        "the largest that there is": given([2**32 - 1], 2**32),
        "zero of one": given([0], 1),
        "one of one": given([1], 1),
    },
    domain=with_strangers(),
    hint="Compare the ids with 0 and vocab_size before you write any of them.",
)
exercise.requirement(
    "after a ValueError nothing has been written, and an existing file is unchanged",
    points=0.25,
    probe=after_refusal,
    visible=[
        given([3, 300], 300, says=f"the folder after {says.format([3, 300], 300)}"),
        given([3, -1], 300, [1, 2], says=f"the folder after {says.format([3, -1], 300)}, if path already held a file with the ids [1, 2]"),
        given([3, 4], 300, [1, 2], says=f"the folder after {says.format([3, 4], 300)}, if path already held a file with the ids [1, 2]"),
    ],
    edges={
        "the last of many": given([*range(50), 50], 50, [1]),
        "it fits into the dtype": given([200], 200, [1]),
        "nothing to refuse": given([199], 200),
        "an id that no dtype holds": given([2**33, 0], 1),
        "between two that are allowed": given([0, -1, 0], 1),
        "too large for 16 bits, and allowed": given([2**16], 2**16 + 1),
        "too large for 31 bits, and allowed": given([2**31], 2**31 + 1),
        "the largest vocabulary": given([0], 2**32),
    },
    domain=refusals(),
    hint="Check all the ids first, then write.",
)  # fmt: skip
opens = "open_tokens(path, vocab_size={:_}), where the file holds {}, as {}"
exercise.requirement(
    "open_tokens memory-maps the file, read-only",
    points=0.25,
    probe=opened,
    visible=[
        given([7, 0, 300], "<u2", 301, says=opens.format(301, [7, 0, 300], "uint16")),
        given([7, 0], "|u1", 256, says=opens.format(256, [7, 0], "uint8")),
    ],
    edges={"four bytes": given([2**32 - 1, 5], "<u4", 2**32), "one id": given([0], "|u1", 1)},
    domain=stored(fits=True),
    hint="np.load can map a .npy file instead of reading it, in one of several modes.",
)


def tried_to_open(student, ids, stored, vocab_size):
    """Whether open_tokens raises, and what."""
    import pathlib
    import tempfile

    import numpy as np

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        path = pathlib.Path(place) / "ids.npy"
        np.save(path, np.array(ids, dtype=stored))
        student.open_tokens(path, vocab_size)


exercise.requirement(
    "open_tokens raises a ValueError if the file's dtype isn't the one that vocab_size calls for",
    points=0.5,
    probe=tried_to_open,
    parts=["error"],
    visible=[
        given([7, 0], "<u2", 256, says=opens.format(256, [7, 0], "uint16")),
        given([7, 0], "<u2", 70_000, says=opens.format(70_000, [7, 0], "uint16")),
        given([7, 0], "|u1", 301, says=opens.format(301, [7, 0], "uint8")),
        given([7, 0], "<i2", 301, says=opens.format(301, [7, 0], "int16, signed")),
        given([7, 0], ">u2", 301, says=opens.format(301, [7, 0], "uint16 in the opposite byte order")),
        given([7, 0], "<u2", 301, says=opens.format(301, [7, 0], "uint16")),
    ],
    edges={
        "a vocabulary of 256 in one byte": given([7], "|u1", 256),
        "a vocabulary of 257 in one byte": given([7], "|u1", 257),
        "a vocabulary of 65,536 in two": given([7], "<u2", 65_536),
        "a vocabulary of 65,537 in two": given([7], "<u2", 65_537),
        "a vocabulary of 65,537 in four": given([7], "<u4", 65_537),
        "four, the other order": given([7], ">u4", 2**32),
        "signed bytes": given([7], "|i1", 100),
        "signed, four": given([7], "<i4", 2**32),
        "eight bytes": given([7], "<i8", 2**32),
        "floats": given([7], "<f2", 301),
        "NumPy's default": given([7], "<i8", 50_257),
    },
    domain=stored(),
    hint="Two NumPy dtypes are equal only if they have the same kind, size and byte order.",
)

dtype = "dtype=np.min_scalar_type(vocab_size - 1)"
save = f"np.save(path, np.array(tokens, {dtype}))"
look = "if min(tokens) < 0 or max(tokens) >= vocab_size:"
exercise.mistake("The dtype is int64, NumPy's default, which "
                 "takes up to eight times as many bytes as you "
                 "need.", f"np.array(tokens, {dtype}) → np.array(tokens)")
exercise.mistake("The dtype depends on the vocabulary's largest id, not on the ids that happen to occur.",
                 f"{dtype} → dtype=np.min_scalar_type(max(tokens))")  # fmt: skip
exercise.mistake("A vocabulary of 256 has the ids 0 to 255, and those fit into a byte.", f"{dtype} → dtype=np.min_scalar_type(vocab_size)",
                 "wanted = np.min_scalar_type(vocab_size - 1) → wanted = np.min_scalar_type(vocab_size)",
                 together_with=["tokens.dtype != wanted → tokens.itemsize > wanted.itemsize"])  # fmt: skip
exercise.mistake("Two bytes can represent 65,536 different ids; some vocabularies "
                 "need fewer bytes, others more.", f"{dtype} → dtype=np.uint16",
                 "wanted = np.min_scalar_type(vocab_size - 1) → wanted = np.uint16")  # fmt: skip
exercise.mistake("The dtype is signed: half of its range is for negative numbers.", f"{dtype} → dtype=np.int32")
exercise.mistake("An unsigned byte can represent 256 different ids, not just 128.",
                 f"{dtype} → dtype=np.uint8 if vocab_size <= 128 else np.uint16 if vocab_size <= 32768 else np.uint32",
                 unseen="the visible sizes are the powers of two that students ask about")  # fmt: skip
exercise.mistake("tofile writes raw bytes, whatever the file's name; a .npy file has a header.", f"{save} → np.array(tokens, {dtype}).tofile(path)")
exercise.mistake("Keep the ids in their order.", "np.array(tokens, → np.array(sorted(tokens),")
exercise.mistake("The array should have one dimension.", "np.array(tokens, → np.array([tokens],")
exercise.mistake("Raise a ValueError: compare the ids with 0 and vocab_size before you write them.",
                 f"{look} → if False:", f"np.array(tokens, {dtype}) → np.array(tokens).astype(np.min_scalar_type(vocab_size - 1))")  # fmt: skip
exercise.mistake("Your check misses negative ids.", "min(tokens) < 0 or → ")
exercise.mistake("vocab_size itself isn't an id of the vocabulary.", "max(tokens) >= vocab_size → max(tokens) > vocab_size")
exercise.mistake("vocab_size - 1 is an id of the vocabulary.", "max(tokens) >= vocab_size → max(tokens) >= vocab_size - 1")
exercise.mistake("The exercise asks for a different "
                 "error: a ValueError.", 'raise ValueError(f"there is an id → raise IndexError(f"there is an id')
exercise.mistake("Your code writes to the file before it has checked all the ids.", f"{look} → {save.replace(f'np.array(tokens, {dtype})', 'np.array(tokens).astype(np.min_scalar_type(vocab_size - 1))')}\n    {look}")
exercise.mistake("Your code writes to the file before it has checked all the ids.", f"{look} → open(path, \"wb\").close()\n    {look}")
exercise.mistake("Your code reads the whole file into memory: "
                 "memory-map it instead.", 'np.load(path, mmap_mode="r") → np.load(path)')
exercise.mistake("The array can be written to: map the file read-only.", 'mmap_mode="r") → mmap_mode="r+")')
exercise.mistake("The array can be written to: map the file read-only.", 'mmap_mode="r") → mmap_mode="c")')
exercise.mistake("No error was raised for a file whose dtype isn't the "
                 "one that vocab_size requires.", "if tokens.dtype != wanted: → if False:")
exercise.mistake("Two dtypes can have the same size and still differ.", "tokens.dtype != wanted → tokens.itemsize != wanted.itemsize")
exercise.mistake("The name of a dtype leaves out the byte order.", "tokens.dtype != wanted → tokens.dtype.name != wanted.name")
exercise.mistake("A dtype that is too small isn't the "
                 "one that vocab_size requires, either.", "tokens.dtype != wanted → tokens.itemsize > wanted.itemsize",
                 together_with=['raise ValueError(f"{path} holds {tokens.dtype}; wanted {wanted}") → raise TypeError("another dtype")'])  # fmt: skip
exercise.mistake("A signed dtype is never the one that "
                 "vocab_size requires.", "tokens.dtype != wanted → tokens.dtype.str.replace(\"i\", \"u\") != wanted.str")
exercise.mistake("If the file's dtype isn't the one "
                 "that vocab_size requires, raise a "
                 "ValueError.", 'raise ValueError(f"{path} holds {tokens.dtype}; wanted {wanted}") → raise TypeError("another dtype")')

# %% mistake: maps the header as if it were tokens
# says: A .npy file begins with a header; np.memmap takes it for tokens.
def write_tokens(path, tokens, vocab_size):
    if min(tokens) < 0 or max(tokens) >= vocab_size:
        raise ValueError("an id is outside of the vocabulary")
    np.save(path, np.array(tokens, dtype=np.min_scalar_type(vocab_size - 1)))


def open_tokens(path, vocab_size):
    return np.memmap(path, dtype=np.min_scalar_type(vocab_size - 1), mode="r")

# %% wrong: looks at the ids of the file
def write_tokens(path, tokens, vocab_size):
    if min(tokens) < 0 or max(tokens) >= vocab_size:
        raise ValueError("an id is outside of the vocabulary")
    np.save(path, np.array(tokens, dtype=np.min_scalar_type(vocab_size - 1)))


def open_tokens(path, vocab_size):
    tokens = np.load(path, mmap_mode="r")
    if tokens.max() >= vocab_size or tokens.dtype.kind != "u":
        raise ValueError("ids that the vocabulary does not have")
    return tokens

# %% wrong: a dtype that is too large will do
def write_tokens(path, tokens, vocab_size):
    if min(tokens) < 0 or max(tokens) >= vocab_size:
        raise ValueError("an id is outside of the vocabulary")
    np.save(path, np.array(tokens, dtype=np.min_scalar_type(vocab_size - 1)))


def open_tokens(path, vocab_size):
    tokens = np.load(path, mmap_mode="r")
    if tokens.itemsize < np.min_scalar_type(vocab_size - 1).itemsize:
        raise ValueError("wrong dtype")
    return tokens

# %% wrong: raw bytes both ways
def write_tokens(path, tokens, vocab_size):
    if min(tokens) < 0 or max(tokens) >= vocab_size:
        raise ValueError("an id is outside of the vocabulary")
    np.array(tokens, dtype=np.min_scalar_type(vocab_size - 1)).tofile(path)


def open_tokens(path, vocab_size):
    return np.memmap(path, dtype=np.min_scalar_type(vocab_size - 1), mode="r")

# %% wrong: looks at the first and the last id
def write_tokens(path, tokens, vocab_size):
    if not (0 <= tokens[0] < vocab_size and 0 <= tokens[-1] < vocab_size):
        raise ValueError("an id is outside of the vocabulary")
    np.save(path, np.array(tokens).astype(np.min_scalar_type(vocab_size - 1)))


def open_tokens(path, vocab_size):
    tokens = np.load(path, mmap_mode="r")
    if tokens.dtype != np.min_scalar_type(vocab_size - 1):
        raise ValueError("wrong dtype")
    return tokens

# %% wrong: removes the old file first
def write_tokens(path, tokens, vocab_size):
    path.unlink(missing_ok=True)
    if min(tokens) < 0 or max(tokens) >= vocab_size:
        raise ValueError("an id is outside of the vocabulary")
    np.save(path, np.array(tokens, dtype=np.min_scalar_type(vocab_size - 1)))


def open_tokens(path, vocab_size):
    tokens = np.load(path, mmap_mode="r")
    if tokens.dtype != np.min_scalar_type(vocab_size - 1):
        raise ValueError("wrong dtype")
    return tokens

# %% wrong: off by one, vocab_size itself must fit in the dtype (from the statement)
def smallest_dtype(vocab_size: int) -> np.dtype:
    for dtype in (np.uint8, np.uint16, np.uint32):
        if vocab_size <= np.iinfo(dtype).max:
            return np.dtype(dtype)
    raise ValueError(f"no dtype for a vocabulary of {vocab_size}")


def write_tokens(path: Path, tokens: list[int], vocab_size: int) -> None:
    """Write ids as a .npy file, in the smallest unsigned dtype that holds the vocabulary."""
    if min(tokens) < 0 or max(tokens) >= vocab_size:
        raise ValueError("an id is not in the vocabulary")
    np.save(path, np.array(tokens, dtype=smallest_dtype(vocab_size)))


def open_tokens(path: Path, vocab_size: int) -> NDArray[Any]:
    """Map a file of ids, read-only. Raises ValueError for another dtype than vocab_size's."""
    tokens = np.load(path, mmap_mode="r")
    if tokens.dtype != smallest_dtype(vocab_size):
        raise ValueError(f"the file has dtype {tokens.dtype}")
    return tokens

# %% wrong: compares the scalar type, which knows nothing of the byte order (from the statement)
def id_type(vocab_size: int) -> type:
    if vocab_size <= 2**8:
        return np.uint8
    if vocab_size <= 2**16:
        return np.uint16
    return np.uint32


def write_tokens(path: Path, tokens: list[int], vocab_size: int) -> None:
    """Write ids as a .npy file, in the smallest unsigned dtype that holds the vocabulary."""
    for token in tokens:
        if not 0 <= token < vocab_size:
            raise ValueError(f"id {token} is not in the vocabulary")
    np.save(path, np.array(tokens, dtype=id_type(vocab_size)))


def open_tokens(path: Path, vocab_size: int) -> NDArray[Any]:
    """Map a file of ids, read-only. Raises ValueError for another dtype than vocab_size's."""
    tokens = np.load(path, mmap_mode="r")
    if tokens.dtype.type is not id_type(vocab_size):
        raise ValueError(f"the file has dtype {tokens.dtype}")
    return tokens

# %% wrong: casts to the small dtype first and checks the ids after it (from the statement)
def token_dtype(vocab_size: int) -> np.dtype:
    return np.dtype(np.uint8 if vocab_size <= 256 else np.uint16 if vocab_size <= 65536 else np.uint32)


def write_tokens(path: Path, tokens: list[int], vocab_size: int) -> None:
    """Write ids as a .npy file, in the smallest unsigned dtype that holds the vocabulary."""
    ids = np.asarray(tokens).astype(token_dtype(vocab_size))
    if int(ids.min()) < 0 or int(ids.max()) >= vocab_size:
        raise ValueError("an id is not in the vocabulary")
    np.save(path, ids)


def open_tokens(path: Path, vocab_size: int) -> NDArray[Any]:
    """Map a file of ids, read-only. Raises ValueError for another dtype than vocab_size's."""
    tokens = np.load(path, mmap_mode="r")
    if tokens.dtype != token_dtype(vocab_size):
        raise ValueError(f"the file has dtype {tokens.dtype}")
    return tokens

# %% mistake: maps the file for writing, and then forbids it
# says: The file itself has to be mapped read-only; np.load's mmap_mode decides that.
def write_tokens(path, tokens, vocab_size):
    if min(tokens) < 0 or max(tokens) >= vocab_size:
        raise ValueError("an id is not in the vocabulary")
    np.save(path, np.array(tokens, dtype=np.min_scalar_type(vocab_size - 1)))

def open_tokens(path, vocab_size):
    mapped = np.load(path, mmap_mode="r+")
    mapped.flags.writeable = False
    if mapped.dtype != np.min_scalar_type(vocab_size - 1):
        raise ValueError(f"{path} holds {mapped.dtype}")
    return mapped

# %% right: an error of its own, and bytes written by hand
class NotInVocabulary(ValueError):
    pass


def smallest(vocab_size):
    return np.dtype(np.uint8 if vocab_size <= 2**8 else np.uint16 if vocab_size <= 2**16 else np.uint32)


def write_tokens(path, tokens, vocab_size):
    if any(token not in range(vocab_size) for token in tokens):
        raise NotInVocabulary
    buffer = io.BytesIO()
    np.save(buffer, np.fromiter(tokens, smallest(vocab_size)))
    path.write_bytes(buffer.getvalue())


def open_tokens(path, vocab_size):
    tokens = np.load(path, mmap_mode="r")
    if tokens.dtype != smallest(vocab_size):
        raise NotInVocabulary
    return tokens

# %% right: a chain of comparisons
def dtype_for(vocab_size):
    if vocab_size <= 256:
        return np.uint8
    return np.uint16 if vocab_size <= 65536 else np.uint32


def write_tokens(path, tokens, vocab_size):
    for token in tokens:
        if not 0 <= token < vocab_size:
            raise ValueError(f"{token} is not in a vocabulary of {vocab_size}")
    np.save(path, np.asarray(tokens).astype(dtype_for(vocab_size)))


def open_tokens(path, vocab_size):
    tokens = np.load(path, mmap_mode="r")
    if tokens.dtype != np.dtype(dtype_for(vocab_size)):
        raise ValueError(f"{tokens.dtype}")
    return tokens

# %% right: lib.format.open_memmap for both
def write_tokens(path, tokens, vocab_size):
    ids = np.array(tokens, dtype=np.int64)
    if ((ids < 0) | (ids >= vocab_size)).any():
        raise ValueError("outside")
    dtype = next(d for d in (np.uint8, np.uint16, np.uint32) if vocab_size - 1 <= np.iinfo(d).max)
    target = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=ids.shape)
    target[:] = ids
    target.flush()


def open_tokens(path, vocab_size):
    wanted = next(d for d in (np.uint8, np.uint16, np.uint32) if vocab_size - 1 <= np.iinfo(d).max)
    tokens = np.lib.format.open_memmap(path, mode="r")
    if tokens.dtype.str != np.dtype(wanted).str:
        raise ValueError("wrong dtype")
    return np.asarray(tokens)

# %% right: the standard library maps the file
import mmap
import sys
from array import array


def _code(vocab_size: int) -> str:
    return "B" if vocab_size <= 1 << 8 else "H" if vocab_size <= 1 << 16 else "I"


def write_tokens(path: Path, tokens: list[int], vocab_size: int) -> None:
    if not all(0 <= token < vocab_size for token in tokens):
        raise ValueError(f"every id must be at least 0 and less than {vocab_size}")
    numbers = array(_code(vocab_size), tokens)
    header = {
        "descr": np.lib.format.dtype_to_descr(np.dtype(numbers.typecode)),
        "fortran_order": False,
        "shape": (len(numbers),),
    }
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        numbers.tofile(file)


def open_tokens(path: Path, vocab_size: int) -> NDArray[Any]:
    with path.open("rb") as file:
        version = np.lib.format.read_magic(file)
        read = getattr(np.lib.format, f"read_array_header_{version[0]}_0")
        shape, _, dtype = read(file)
        if dtype != np.dtype(_code(vocab_size)):
            raise ValueError(f"the file contains {dtype!r}")
        start = file.tell()
        pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return np.frombuffer(pages, dtype, count=math.prod(shape), offset=start).reshape(shape)

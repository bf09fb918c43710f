"""Tokens on disk and the batches taken from them, with every assumption checked.

A file is a one-dimensional ``.npy`` array of integers. Its header records dtype, byte order and length, so that a
reader can check them. The file is memory-mapped read-only, so only the pages in use are in memory.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from course_utils.files import replacing

_BLOCK = 2**20  # tokens checked or written at a time: a file may be larger than memory
_MAGIC = b"\x93NUMPY"


def token_dtype(vocab_size: int) -> np.dtype[Any]:
    """The smallest of uint8, uint16 and uint32, little-endian, that holds the ids 0 … vocab_size − 1.

    Raises:
        ValueError: vocab_size is not between 1 and 2³².
    """
    for size, name in ((2**8, "u1"), (2**16, "<u2"), (2**32, "<u4")):
        if 1 <= vocab_size <= size:
            return np.dtype(name)
    raise ValueError(f"token_dtype was given vocab_size={vocab_size}; expected 1 to 2**32.")


def write_tokens(path: str | os.PathLike[str], tokens: ArrayLike, *, vocab_size: int) -> None:
    """Write token ids to `path` as a .npy file. A reader sees either the old file or the complete new one.

    Args:
        path: the file; its name ends in ".npy".
        tokens: a one-dimensional array of ids; a memory-mapped one is read block by block.
        vocab_size: the number of different ids, which determines the dtype.

    Raises:
        ValueError: the suffix isn't .npy, the ids aren't integers in one dimension, or an id is outside the vocabulary.
        OSError: the file cannot be written; `path` keeps its old content.
    """
    path = Path(path)
    if path.suffix != ".npy":
        raise ValueError(
            f"write_tokens was given {path.name!r}; expected a name ending in .npy, which is what it writes."
        )
    dtype = token_dtype(vocab_size)
    ids = np.asanyarray(tokens)
    if ids.ndim != 1 or ids.dtype.kind not in "ui" or not ids.size:
        raise ValueError(
            f"write_tokens was given {ids.dtype} of shape {ids.shape}; expected one or more integers in one "
            "dimension. Turn the text into ids first; np.frombuffer(text, np.uint8) uses its bytes as ids."
        )
    _check_ids(ids, vocab_size, "write_tokens")
    with replacing(path) as file:
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": ids.shape}
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, len(ids), _BLOCK):
            file.write(ids[start : start + _BLOCK].astype(dtype).tobytes())


def open_tokens(path: str | os.PathLike[str], *, vocab_size: int, check_ids: bool = False) -> NDArray[Any]:
    """Memory-map a file that `write_tokens` wrote, read-only. Nothing is read until it's used.

    Args:
        path: the .npy file.
        vocab_size: how many different ids the reader expects.
        check_ids: also read the whole file once and look for ids outside the vocabulary.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file isn't in NumPy's format; its dtype, byte order, number of dimensions or length is wrong; or
            (with `check_ids`) it holds an id outside the vocabulary.
    """
    path = Path(path)
    wanted = token_dtype(vocab_size)
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise ValueError(
                f"{path} does not start like a .npy file, whatever its name: it may be raw bytes from tofile(), which "
                "records no dtype. Read it with np.fromfile and the dtype it was written in, then use write_tokens."
            )
        file.seek(0)
        try:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = read(file)
        except ValueError as error:
            raise ValueError(f"{path} has a damaged header ({error}); write it again with write_tokens.") from error
        start = file.tell()
    if dtype != wanted:
        order = "" if dtype.newbyteorder("<") != wanted else ", in the opposite byte order"
        raise ValueError(
            f"{path} holds {dtype.str}{order}; expected {wanted.str}, the dtype for {vocab_size:,} ids. It was written "
            "for another vocabulary or by another program: convert it with write_tokens."
        )
    if len(shape) != 1:
        raise ValueError(
            f"{path} holds an array of shape {shape}; expected one dimension. Flatten it, then use write_tokens."
        )
    recorded, present = start + shape[0] * dtype.itemsize, path.stat().st_size
    if recorded != present:
        raise ValueError(
            f"{path} has {present:,} bytes; expected {recorded:,} for the {shape[0]:,} tokens that its header records. "
            f"It {'was cut short' if present < recorded else 'has extra bytes'}: copy or write it again."
        )
    if shape[0] == 0:
        raise ValueError(f"{path} holds no tokens; expected one or more. Write it again.")
    tokens = np.load(path, mmap_mode="r", allow_pickle=False)
    if check_ids:
        _check_ids(tokens, vocab_size, str(path))
    return tokens  # type: ignore[no-any-return]


def get_batch(
    tokens: NDArray[Any],
    *,
    batch: int,
    context: int,
    generator: torch.Generator,
    device: torch.device | str = "cpu",
) -> tuple[torch.Tensor, torch.Tensor]:
    """Random windows of the tokens, and the same windows one token later: int64[batch, context] twice, on `device`.

    All len(tokens) − context windows are equally likely. The copy to a CUDA device is asynchronous, from pinned memory.

    Args:
        tokens: a one-dimensional array of ids, such as `open_tokens` returns.
        batch: the number of windows.
        context: the number of tokens in each window.
        generator: a CPU generator, the only source of randomness; restoring its state resumes the sequence of batches.
        device: where the batch goes.

    Raises:
        ValueError: batch or context isn't positive, or the tokens aren't in one dimension or are too few for the
            context.
    """
    if batch < 1 or context < 1:
        raise ValueError(f"get_batch was given batch={batch}, context={context}; expected both to be 1 or more.")
    if tokens.ndim != 1:
        raise ValueError(f"get_batch was given tokens of shape {tokens.shape}; expected one dimension.")
    count = len(tokens) - context  # number of windows
    if count < 1:
        raise ValueError(
            f"get_batch was given {len(tokens):,} tokens for context={context}; expected {context + 1:,} or more, "
            "since the last input needs a target. Use a shorter context or a longer text."
        )
    windows = np.lib.stride_tricks.sliding_window_view(tokens, context + 1)  # a view: nothing is read yet
    chosen = windows[torch.randint(count, (batch,), generator=generator).numpy()]
    rows = torch.from_numpy(chosen.astype(np.int64))
    device = torch.device(device)
    rows = rows.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else rows.to(device)
    return rows[:, :-1], rows[:, 1:]


def _check_ids(ids: NDArray[Any], vocab_size: int, who: str) -> None:
    for start in range(0, len(ids), _BLOCK):
        block = np.asarray(ids[start : start + _BLOCK])
        outside = np.flatnonzero((block < 0) | (block >= vocab_size))
        if outside.size:
            place = int(outside[0])
            raise ValueError(
                f"{who}: token {start + place:,} is {int(block[place])}; expected 0 to {vocab_size - 1:,} for "
                f"vocab_size={vocab_size:,}. Check the tokenizer, or give the vocabulary's true size."
            )

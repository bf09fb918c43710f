"""Files that are written completely or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def replacing(path: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces ``path`` when the block ends without an error.

    A reader of ``path`` sees either the old content or the new, never a part of it. If the block or the disk fails,
    the new file is deleted and the old one stays. By default it also waits until the bytes and the new name are on
    disk, so that this holds through a power failure; pass ``durable=False`` for files that can be recreated.

    Raises:
        OSError: the file could not be written; ``path`` keeps its old content.
    """
    # In the same folder, because a rename is atomic only within a file system; and not path's name plus a suffix,
    # because that name may already be as long as the file system allows.
    partial = path.with_name(f".{os.getpid()}-{secrets.token_hex(4)}.partial")
    try:
        with partial.open("wb") as file:
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())  # otherwise the rename may reach the disk before the bytes do
        os.replace(partial, path)
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
    if durable:
        _sync_folder(path.parent)


def remove_partials(folder: Path) -> None:
    """Delete what `replacing` left in a folder when its process was killed. Nobody may be writing there."""
    for partial in folder.glob(".*.partial"):
        partial.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Also flush the new name to disk, on systems that can open a folder."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

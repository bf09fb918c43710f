"""Locks between commands: whoever holds one works alone, and the others wait."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, where no class is graded
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def locked(path: Path, waiting: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Hold the lock at ``path``, which ends with the process, however that ends. On Windows, nobody waits for it.

    If somebody else holds it, ``waiting`` is called before waiting for them. Raises OSError if the file can't be made.
    """
    with path.open("w") as file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                fcntl.flock(file, fcntl.LOCK_EX)
        yield

"""Probes: functions that run beside the student's code, for tests of several steps."""

from __future__ import annotations

import functools
import linecache
import types
import zlib
from collections.abc import Callable, Mapping
from typing import Any


class _NotebookNames:
    """The names that a notebook defines, as attributes."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        object.__setattr__(self, "_names", names)

    def __getattr__(self, name: str) -> Any:
        try:
            return self._names[name]
        except KeyError:
            raise NameError(f"`{name}` is not defined: run the cell that defines it first") from None


def from_source(source: str, name: str, names: Mapping[str, Any]) -> Callable[..., Any]:
    """The probe ``name`` in a source text, with a notebook's names as its first argument.

    The text runs in its own namespace, so nothing is defined among the notebook's names.
    """
    probe = function(source, name)

    @functools.wraps(probe)
    def run(*args: Any, **kwargs: Any) -> Any:
        return probe(_NotebookNames(names), *args, **kwargs)

    return run


def function(source: str, name: str) -> Callable[..., Any]:
    """The function ``name`` in the source of a probe."""
    namespace: dict[str, Any] = {"__name__": "probe"}
    exec(_compiled(source), namespace)
    found: Callable[..., Any] = namespace[name]
    return found


@functools.lru_cache(maxsize=256)
def _compiled(source: str) -> types.CodeType:
    filename = f"<probe {zlib.crc32(source.encode()):x}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    return compile(source, filename, "exec")

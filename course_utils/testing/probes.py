"""Probes: functions that run beside the student's code, for tests of several steps."""

from __future__ import annotations

import contextlib
import functools
import linecache
import sys
import types
import zlib
from collections.abc import Callable, Iterator, Mapping
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

    The text runs in its own namespace, so nothing is defined among the notebook's names. While it runs, no process can
    be started, and no thread either, unless the probe simulates ranks, each of which is a thread.
    """
    probe = function(source, name)

    @functools.wraps(probe)
    def run(*args: Any, **kwargs: Any) -> Any:
        with contextlib.nullcontext() if "simulate(" in source else _alone():
            return probe(_NotebookNames(names), *args, **kwargs)

    return run


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Refuse new threads and processes. What a probe watches in torch (modes, hooks), torch watches in the probe's
    thread only."""

    def refuse(*_: Any, **__: Any) -> None:
        raise RuntimeError("this check watches what your code does, so your code can't start a thread or a process")

    # threading and subprocess have references of their own, and Python 3.13 has other names.
    starts = ["start_new", "start_new_thread", "start_joinable_thread"]
    starts += ["fork", "forkpty", "fork_exec", "posix_spawn", "posix_spawnp"]
    modules = map(sys.modules.get, ["_thread", "threading", "os", "posix", "subprocess", "_posixsubprocess"])
    places = [(each, name) for each in filter(None, modules) for name in vars(each) if name.removeprefix("_") in starts]
    there = [getattr(module, name) for module, name in places]
    for module, name in places:
        setattr(module, name, refuse)
    try:
        yield
    finally:
        for (module, name), function in zip(places, there, strict=True):
            setattr(module, name, function)


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

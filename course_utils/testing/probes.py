"""Probes: tests of several steps, as functions that run beside the student's code."""

from __future__ import annotations

import builtins
import dis
import functools
import types
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


def probe(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function as one that runs beside the student's code.

    Its first parameter receives the notebook's names (``student.Linear``); it imports what else it needs and returns
    plain data. It may use no name from outside itself, because the autograder sends its source to another process.
    Raises TypeError if it does, or if it lacks the first parameter.
    """
    outside = sorted(_outside_names(function.__code__))
    if outside or function.__code__.co_argcount < 1:
        problem = f"uses {', '.join(outside)} from outside" if outside else "has no first parameter `student`"
        raise TypeError(f"probe {function.__name__} {problem}; import inside it, or pass it as an argument")

    # The names are those of the module that defines the probe, looked up at each call: in a notebook, the notebook's.
    # wraps() keeps the function as __wrapped__, where the judge finds its source.
    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        return function(_NotebookNames(function.__globals__), *args, **kwargs)

    return run


@functools.lru_cache
def _outside_names(code: types.CodeType) -> frozenset[str]:
    """The names that a function, or one nested in it, takes from outside. Built-in names do not count."""
    names = {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    names |= set(code.co_freevars)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            # A name that is free in the nested function may be a local variable of this one.
            names |= _outside_names(constant) - set(code.co_varnames) - set(code.co_cellvars)
    return frozenset(name for name in names if not hasattr(builtins, name))

"""Which names a cell defines and which it looks up, from its text alone: nothing is run."""

from __future__ import annotations

import symtable
import warnings


def defined(text: str) -> set[str]:
    """Names that a cell defines at its top level; none where it cannot be parsed."""
    found: set[str] = set()
    for scope in _scopes(text):
        there = [name for name in scope.get_symbols() if scope.get_type() == "module" or name.is_declared_global()]
        found |= {name.get_name() for name in there if name.is_assigned() or name.is_imported()}
    return found


def used(text: str) -> set[str]:
    """Names that a cell, or a function in it, looks up at the top level; none where it cannot be parsed."""
    found: set[str] = set()
    for scope in _scopes(text):
        there = [name for name in scope.get_symbols() if scope.get_type() == "module" or name.is_global()]
        found |= {name.get_name() for name in there if name.is_referenced()}
    return found


def _scopes(text: str) -> list[symtable.SymbolTable]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what Python thinks of the cell's style
            found = [symtable.symtable(text, "<cell>", "exec")]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    for scope in found:  # grows as we go
        found += scope.get_children()
    return found

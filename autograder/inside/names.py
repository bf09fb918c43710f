"""Which names a cell defines and which it looks up, from its text alone, without running it."""

from __future__ import annotations

import ast
import re
import symtable
import warnings

# Code with names that symtable doesn't report as looked up: annotations that are only texts, which `singledispatch`
# and dataclasses evaluate, and `n` in `n += 1` outside functions.
_UNREPORTED = re.compile(r"\bannotations\b|[-+*/%&|^@<>]=")


def defined(text: str) -> set[str]:
    """Names that a cell defines at its top level; none if it can't be parsed."""
    return both(text)[0]


def used(text: str) -> set[str]:
    """Names that a cell, or a function in it, looks up at the top level; none if it can't be parsed."""
    return both(text)[1]


def both(text: str) -> tuple[set[str], set[str]]:
    """`defined` and `used`, parsing the cell once."""
    makes: set[str] = set()
    takes: set[str] = set()
    for scope in _scopes(text):
        module, body = scope.get_type() == "module", scope.get_type() == "class"
        for name in scope.get_symbols():
            if (module or name.is_declared_global()) and (name.is_assigned() or name.is_imported()):
                makes.add(name.get_name())
            # A class body may read a name before it defines its own: `std = std`.
            if (module or name.is_global() or (body and name.is_local())) and name.is_referenced():
                takes.add(name.get_name())
    return makes, takes | (_unreported(text) if _UNREPORTED.search(text) else set())


def _unreported(text: str) -> set[str]:
    """Names in annotations, and those that the cell itself, rather than a function, changes by an operator."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    outside: list[ast.AST] = [tree]
    for node in outside:  # the list grows while we iterate
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            outside += ast.iter_child_nodes(node)
    changed = [node.target for node in outside if isinstance(node, ast.AugAssign)]
    found = {target.id for target in changed if isinstance(target, ast.Name)}
    for node in ast.walk(tree):
        for each in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if isinstance(each, ast.AST):
                found |= {name.id for name in ast.walk(each) if isinstance(name, ast.Name)}
    return found


def later(text: str) -> set[str]:
    """Names that functions of a cell look up at the top level, which happens when they are called."""
    at_once = {"listcomp", "setcomp", "dictcomp", "genexpr"}  # nearly always
    bodies = [each for each in _scopes(text) if each.get_type() == "function" and each.get_name() not in at_once]
    symbols = [name for scope in bodies for name in scope.get_symbols()]
    return {name.get_name() for name in symbols if name.is_global() and name.is_referenced()}


def _scopes(text: str) -> list[symtable.SymbolTable]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as those about invalid escapes
            found = [symtable.symtable(text, "<cell>", "exec")]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    for scope in found:  # the list grows while we iterate
        found += scope.get_children()
    return found

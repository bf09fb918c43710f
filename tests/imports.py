"""Which modules of this project import which, read from their source: imports inside functions count too."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

PACKAGES = ("autograder", "course_utils")


def modules(root: Path) -> dict[str, Path]:
    """The modules of the packages at ``root`` by name, and where each is. A package is the module of its name."""
    found = {}
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(root: Path) -> dict[str, set[str]]:
    """For each module, those of the project that it imports, wherever in it: at its top, in a function, for types."""
    known = modules(root)
    return {name: set(_imported(name, path, known)) - {name} for name, path in known.items()}


def reached(start: Iterable[str], graph: Mapping[str, set[str]]) -> set[str]:
    """The modules that are imported sooner or later by those in ``start``, which are among them."""
    found = list(start)
    for name in found:  # grows as we go
        found += sorted(graph[name] - set(found))
    return set(found)


def _imported(module: str, path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            # One dot is the package that the module is in, and each further dot the one above.
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            # `from package import name`: the name may be a module, or something that the package defines.
            names = [f"{base}.{alias.name}" if f"{base}.{alias.name}" in known else base for alias in node.names]
        else:
            continue
        for name in names:
            # Whoever imports a.b.c imports a and a.b first, unless it is in them, when they are there already.
            parts = name.split(".")
            for size in range(1, len(parts) + 1):
                whole = ".".join(parts[:size])
                if whole in known and (size == len(parts) or not f"{module}.".startswith(f"{whole}.")):
                    yield whole

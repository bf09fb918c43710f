"""A lecture's notebook as its kernel sees it: where it is, which exercises it has, and what its cells define."""

from __future__ import annotations

import ast
import builtins
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from course_utils import keeping
from course_utils.colab import on_colab

_TITLE = re.compile(r"^#+ *(Exercise .+?)(?: *&nbsp;.*)?$", re.MULTILINE)


@dataclass(frozen=True)
class Exercise:
    """One exercise of a notebook.

    ``name`` is its solution's grade_id, ``check`` the source of its check cell, ``check_id`` that cell's id; ``link``
    takes JupyterLab to its text. Ids and links are "" in notebooks whose cells have no ids, and links on Colab, too.
    """

    name: str
    title: str
    points: float
    check: str
    check_id: str
    link: str


def find_notebook() -> Path | None:
    """The notebook that runs in the current folder; None if the folder isn't a lecture's.

    JupyterLab reports its path. Elsewhere it has its folder's name, or is the only notebook there.
    """
    here = Path.cwd()
    session = re.split(r"[/\\]", os.environ.get("JPY_SESSION_NAME", ""))[-1]
    if not session and not keeping.lecture():
        return None
    usual = here / f"{here.name}.ipynb"
    present = list(here.glob("*.ipynb"))
    candidates = [here / session, usual, *(present if len(present) == 1 else [])]
    return next((path for path in candidates if path.suffix == ".ipynb" and path.is_file()), usual)


def read_exercises(path: Path) -> list[Exercise]:
    """The exercises of a notebook, in order.

    Raises:
        OSError: there is no such file, or it cannot be read.
        ValueError: it isn't a complete notebook, or has no exercises.
    """
    found = []
    try:
        title, place = "", ""
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] == "markdown" and (headings := _TITLE.findall(source)):
                title, place = headings[-1].replace("`", ""), cell.get("id", "")
            marks = cell["metadata"].get("nbgrader", {})
            if marks.get("grade"):
                name = marks["grade_id"].removeprefix("test_")
                link = f"{quote(path.name)}#cell-id={quote(place)}" if place and not on_colab() else ""
                found.append(
                    Exercise(name, title or name, float(marks["points"]), source.strip(), cell.get("id", ""), link)
                )
                title, place = "", ""
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError("it is not a complete notebook") from error
    if not found:
        raise ValueError("it has no exercises")
    return found


@dataclass(frozen=True)
class Cell:
    """A code cell of a notebook: the names it defines and, if it's an exercise's solution cell, its title and link."""

    defines: frozenset[str]
    exercise: str = ""
    link: str = ""


def read_cells(path: Path) -> list[Cell]:
    """The code cells of a notebook, in order.

    Raises:
        OSError: there is no such file, or it cannot be read.
        ValueError: it isn't a complete notebook.
    """
    exercises = {exercise.name: exercise for exercise in read_exercises(path)}
    found = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            marks = cell["metadata"].get("nbgrader", {})
            exercise = exercises.get(marks.get("grade_id", "")) if marks.get("solution") else None
            defines = frozenset(name for step in steps("".join(cell["source"])) for name in step.binds)
            found.append(Cell(defines, exercise.title if exercise else "", exercise.link if exercise else ""))
    return found


@dataclass(frozen=True)
class Step:
    """A statement of a cell: the names it uses, binds and changes, and whether it defines an unsolved function."""

    uses: frozenset[str]
    binds: frozenset[str]
    changes: frozenset[str]
    empty: bool


def steps(source: str) -> Iterator[Step]:
    """The statements of a cell, or nothing if it isn't plain Python."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError):
        return
    for statement in body:
        uses, binds, changes = set(), set(), set()
        for node in _here(statement):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                binds.add(node.name)
            elif isinstance(node, ast.alias):
                binds.add((node.asname or node.name).partition(".")[0])
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                binds.add(node.id)
            elif isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
                changes.add(_base(node))
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):  # rows.append(…)
                changes.add(_base(node.value.func))
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                uses.add(node.id)
        builtin = vars(builtins).keys()
        functions = [node for node in ast.walk(statement) if isinstance(node, ast.FunctionDef)]
        yield Step(
            frozenset(uses), frozenset(binds), frozenset(changes - builtin - {""}), any(map(_is_empty, functions))
        )


def _here(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement that run in the cell itself, without the bodies of what it defines."""
    yield statement
    if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
        for node in ast.iter_child_nodes(statement):
            yield from _here(node)  # type: ignore[arg-type]


def _base(node: ast.AST) -> str:
    """`rows` for `rows[0].x`; "" if the expression is a bare name or doesn't start with one."""
    inner = node
    while isinstance(inner, (ast.Attribute, ast.Subscript)):
        inner = inner.value
    return inner.id if isinstance(inner, ast.Name) and inner is not node else ""


def _is_empty(function: ast.FunctionDef) -> bool:
    """Whether a function is unsolved: it still ends in ``raise NotImplementedError()`` and never returns."""
    returns = any(isinstance(node, ast.Return) for node in ast.walk(function))
    return ast.unparse(function.body[-1]) == "raise NotImplementedError()" and not returns

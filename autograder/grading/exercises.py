"""What grading needs to know about a lecture: its exercises with their tests, and its own code, but no prose."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # imports PyTorch, which commands that don't grade avoid
    from course_utils.testing.requirements import Check

STUB = "# YOUR CODE HERE\nraise NotImplementedError()"
TEXT_STUB = "YOUR ANSWER HERE"
SOLUTION = ("### BEGIN SOLUTION", "### END SOLUTION")
HIDDEN_FOLDER = "hidden"  # course_utils.testing.checking.HIDDEN, without importing PyTorch


@dataclass(frozen=True)
class Exercise:
    """One exercise of a lecture. ``solution`` is a whole cell, ``line`` is where it starts.

    ``packed`` is its check with the visible cases, as bytes; it's empty only while checks are being built. ``path`` is
    the lecture's source, from which it was read, if any.
    """

    name: str
    points: float
    setup: str
    solution: str
    line: int
    packed: bytes
    path: Path | None = None

    @cached_property
    def check(self) -> Check:
        """Its requirements, and how each is tested."""
        return unpacked(self.packed)

    @cached_property
    def made_from(self) -> str:
        """A digest of what its check was made from."""
        return str(json.loads(self.packed.partition(b"\n")[0])["made_from"])

    @property
    def tests(self) -> str:
        """The test cell as students see it."""
        return f'check("{self.name}")'

    @property
    def stub(self) -> str:
        """The solution cell as students get it."""
        return with_stub(self.solution)


@dataclass(frozen=True)
class Question:
    """A question that a person grades: nbgrader's manually graded cells.

    ``text`` is its cell as students get it, and ``after`` the text of the lecture's next cell ("" if there's none).
    ``task``: the cell only says what to do; the answer is in cells that the student adds between the two.
    """

    name: str
    points: float
    text: str
    task: bool = False
    after: str = ""


@dataclass(frozen=True)
class Cell:
    """A cell of a notebook; ``name`` is its ``grade_id``, or "" if it has none. ``prose``: it's text, not code.

    ``ended`` and ``earned`` come from the outputs saved in the notebook, which anybody may have edited. ``ended`` is
    the class of the error that stopped the cell, "" if there was none, None if the cell has no outputs; ``earned`` has
    the points that a check showed.
    """

    text: str
    name: str = ""
    prose: bool = False
    ended: str | None = None
    earned: float | None = None

    @cached_property
    def plain(self) -> str:
        """Its text without what editors change by themselves: line endings, and spaces before them.

        Other characters that Python's str methods call spaces or line breaks are kept: a no-break space, for instance,
        is a syntax error.
        """
        return "\n".join(line.rstrip(" \t") for line in re.split(r"\r\n|\r|\n", self.text)).strip("\n")

    @cached_property
    def title(self) -> str:
        """What to call it in messages, so that a person can find it in the notebook."""
        lines = [line.strip() for line in self.plain.splitlines()]
        return f"the cell {self.name}" if self.name else f"the cell that begins with `{[*lines, ''][0]:.60}`"


@dataclass(frozen=True)
class ProblemSet:
    """The exercises of a lecture and all its code cells as students get them, both in order.

    ``hidden`` has a class's hidden cases, by exercise. ``questions`` are graded by a person.
    """

    lecture_name: str
    exercises: tuple[Exercise, ...]
    cells: tuple[Cell, ...] = ()
    hidden: Mapping[str, bytes] = field(default_factory=dict)
    questions: tuple[Question, ...] = ()

    @property
    def points(self) -> float:
        """The total points of all exercises and questions."""
        return sum(each.points for each in self.exercises) + sum(each.points for each in self.questions)

    @cached_property
    def digest(self) -> bytes:
        """A hash of everything in here that can change a point. (An exercise's line number can't.)"""
        exercises = [
            [e.name, e.points, e.setup, e.solution, _hash(e.packed), _hash(self.hidden.get(e.name, b""))]
            for e in self.exercises
        ]
        cells = [[cell.name, cell.text] for cell in self.cells]
        questions = [[each.name, each.points, each.text, each.task] for each in self.questions]
        return hashlib.sha256(json.dumps([self.lecture_name, exercises, cells, questions]).encode()).digest()

    def answered(self, answers: Mapping[str, str]) -> tuple[Cell, ...]:
        """The lecture's cells with these answers in the solution cells; other exercises keep their stubs."""
        return tuple(Cell(answers.get(cell.name, cell.text), cell.name) for cell in self.cells)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def hidden_path(course: Path, name: str) -> Path:
    """The path of an exercise's hidden cases in a class's folder."""
    return course / HIDDEN_FOLDER / f"{name}.check"


def made_from(path: Path) -> str:
    """The digest of what a stored check was made from, or "" if the file can't be read."""
    try:
        with path.open("rb") as file:
            return str(json.loads(file.readline())["made_from"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


@functools.lru_cache(maxsize=64)
def unpacked(content: bytes) -> Check:
    """A check from its bytes. Kept, since a worker needs the same ones for every submission of a class."""
    from course_utils.testing.requirements import Check

    return Check.unpack(content)


def with_stub(solution: str, stub: str = STUB) -> str:
    """A solution cell with the solution replaced by the stub, indented as there; just the stub if no part is marked.

    nbgrader does the same.
    """
    if SOLUTION[0] not in solution:
        return stub
    lines: list[str] = []
    inside = False
    for line in solution.splitlines():
        if line.strip() == SOLUTION[0]:
            inside = True
            indent = line[: len(line) - len(line.lstrip())]
            lines += [indent + part for part in stub.splitlines()]
        elif line.strip() == SOLUTION[1]:
            inside = False
        elif not inside:
            lines.append(line)
    return "\n".join(lines).rstrip()

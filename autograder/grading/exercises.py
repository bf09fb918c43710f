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

if TYPE_CHECKING:  # with PyTorch, which the commands that grade nothing do without
    from course_utils.testing.requirements import Check

STUB = "# YOUR CODE HERE\nraise NotImplementedError()"
TEXT_STUB = "YOUR ANSWER HERE"
SOLUTION = ("### BEGIN SOLUTION", "### END SOLUTION")
HIDDEN_FOLDER = "hidden"  # as course_utils.testing.checking.HIDDEN, which would bring PyTorch


@dataclass(frozen=True)
class Exercise:
    """One exercise of a lecture. ``solution`` is a whole cell, ``line`` is where it starts.

    ``packed`` is its check, with the visible cases; it's empty only while checks are being made. ``lecture`` is the
    source that it's in, if it was read from one.
    """

    name: str
    points: float
    setup: str
    solution: str
    line: int
    packed: bytes
    lecture: Path | None = None

    @cached_property
    def check(self) -> Check:
        """What its requirements are, and how each is tried."""
        return unpacked(self.packed)

    @cached_property
    def made_from(self) -> str:
        """What its check was made from."""
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
    """A question whose points a person gives: nbgrader's manually graded cells.

    ``text`` is its cell as students get it. ``task``: that cell says what to do, and the answer may be anywhere.
    """

    name: str
    points: float
    text: str
    task: bool = False


@dataclass(frozen=True)
class Cell:
    """A cell of a notebook; ``name`` is its ``grade_id``, or "" if it has none. ``prose``: it's text, not code.

    What its outputs in the notebook say, which anybody may have written: ``ended`` is the class of the error that it
    ended with, "" if it came to its end, None if it has no outputs; ``earned`` are the points that a check showed.
    """

    text: str
    name: str = ""
    prose: bool = False
    ended: str | None = None
    earned: float | None = None

    @cached_property
    def plain(self) -> str:
        """Its text without what editors change on their own: line ends, and spaces before them.

        Other characters that Python calls spaces or line ends are kept: a no-break space is a syntax error.
        """
        return "\n".join(line.rstrip(" \t") for line in re.split(r"\r\n|\r|\n", self.text)).strip("\n")

    @cached_property
    def title(self) -> str:
        """What to call it for a person who looks for it in the notebook."""
        lines = [line.strip() for line in self.plain.splitlines()]
        return f"the cell {self.name}" if self.name else f"the cell that begins with `{[*lines, ''][0]:.60}`"


@dataclass(frozen=True)
class ProblemSet:
    """The exercises of a lecture and all its code cells as students get them, both in order.

    ``hidden``: a class's cases, by exercise. ``questions`` are those that no test judges.
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
        """A hash of everything in here that can change a point. (The position in the source can't.)"""
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
    """What the check in a file was made from, or "" if there's no readable one."""
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
    """A solution cell with the stub, indented as it is there, instead of the solution; all of it where none is marked.

    As nbgrader does it.
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

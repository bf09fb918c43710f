"""What grading needs to know of a lecture: its exercises with their tests, and its own code. No prose."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

STUB = "# YOUR CODE HERE\nraise NotImplementedError()"
SOLUTION = ("### BEGIN SOLUTION", "### END SOLUTION")
HIDDEN = ("### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS")


@dataclass(frozen=True)
class Exercise:
    """One exercise of a lecture. ``solution`` and ``tests`` are whole cells, ``line`` is where they begin."""

    name: str
    points: float
    setup: str
    solution: str
    tests: str
    line: int

    @property
    def visible_tests(self) -> str:
        """The test cell as students see it."""
        return cut(self.tests, HIDDEN)

    @property
    def stub(self) -> str:
        """The solution cell as students get it."""
        return cut(self.solution, SOLUTION, STUB)


@dataclass(frozen=True)
class Cell:
    """A code cell of a notebook; ``name`` is its ``grade_id``, or "" where it has none."""

    text: str
    name: str = ""

    @cached_property
    def plain(self) -> str:
        """Its text without what editors change by themselves: ends of lines, and spaces before them.

        Not what else Python calls a space or an end of a line: a no-break space is a syntax error.
        """
        return "\n".join(line.rstrip(" \t") for line in re.split(r"\r\n|\r|\n", self.text)).strip("\n")

    @cached_property
    def title(self) -> str:
        """How to speak of it to a person who looks for it in the notebook."""
        lines = [line.strip() for line in self.plain.splitlines()]
        return f"the cell {self.name}" if self.name else f"the cell that begins with `{[*lines, ''][0]:.60}`"


@dataclass(frozen=True)
class ProblemSet:
    """The exercises of a lecture, and all of its code cells as students get them, both in order.

    ``seed`` is what hidden inputs are drawn from: a class has its own.
    """

    lecture_name: str
    exercises: tuple[Exercise, ...]
    cells: tuple[Cell, ...] = ()
    seed: int = 0

    @property
    def points(self) -> float:
        """What all exercises together are worth."""
        return sum(exercise.points for exercise in self.exercises)

    @cached_property
    def digest(self) -> bytes:
        """A hash of everything in here that can change a point. Where in the source it stands cannot."""
        exercises = [[e.name, e.points, e.setup, e.solution, e.tests] for e in self.exercises]
        cells = [[cell.name, cell.text] for cell in self.cells]
        return hashlib.sha256(json.dumps([self.lecture_name, exercises, cells, self.seed]).encode()).digest()

    def answered(self, answers: Mapping[str, str]) -> tuple[Cell, ...]:
        """The lecture's cells with these answers in the solution cells; an exercise without one keeps its stub."""
        return tuple(Cell(answers.get(cell.name, cell.text), cell.name) for cell in self.cells)


def cut(text: str, markers: tuple[str, str], replacement: str | None = None) -> str:
    """``text`` without what stands between the markers; ``replacement`` takes its place and its indentation."""
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        if line.strip() == markers[0]:
            inside = True
            if replacement is not None:
                indent = line[: len(line) - len(line.lstrip())]
                lines += [indent + part for part in replacement.splitlines()]
        elif line.strip() == markers[1]:
            inside = False
        elif not inside:
            lines.append(line)
    return "\n".join(lines).rstrip()

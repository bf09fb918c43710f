"""What grading needs to know of a lecture: its exercises with their tests, and its own code. No prose."""

from __future__ import annotations

import hashlib
import json
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
class ProblemSet:
    """The exercises of a lecture, in order, and the text of its other code cells after the first.

    Answers may use a name that one of these cells defines; the judge then runs it.
    """

    lecture_name: str
    exercises: tuple[Exercise, ...]
    demonstrations: tuple[str, ...] = ()

    @property
    def points(self) -> float:
        """What all exercises together are worth."""
        return sum(exercise.points for exercise in self.exercises)

    @cached_property
    def digest(self) -> bytes:
        """A hash of everything in here that can change a point. Where in the source it stands cannot."""
        exercises = [[e.name, e.points, e.setup, e.solution, e.tests] for e in self.exercises]
        return hashlib.sha256(json.dumps([self.lecture_name, exercises, self.demonstrations]).encode()).digest()


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

"""The results of grading: a mark for each exercise, a result for each submission."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True)
class Mark:
    """What an exercise earned: ``points`` of ``worth``; ``message`` says why not all, ``mistake`` names the mistake.

    ``hidden``: a hidden test failed; the message is for the instructor, the mistake also for the student.
    ``requirements``: the text and points of each and whether it's met, in the words of
    :class:`course_utils.testing.rubric.Met`. ``open``: a person has yet to give its points, or to confirm them.

    Where a person has decided, ``points`` and ``comment`` are theirs, and ``tests`` the points that the tests gave.
    """

    exercise: str
    points: float
    worth: float
    message: str = ""
    mistake: str | None = None
    hidden: bool = False
    requirements: tuple[tuple[str, float, str], ...] = ()
    open: bool = False
    tests: float | None = None
    comment: str = ""


class State(StrEnum):
    """The state of a student on the roster. Every student has one; only graded ones have points."""

    NOT_SUBMITTED = "not submitted"
    QUEUED = "queued"
    GRADED = "graded"
    NEEDS_REVIEW = "needs review"  # graded as far as possible; a person should look
    FAILED_HERE = "failed here"  # a fault of ours or of this machine: no points, and no zero


@dataclass(frozen=True)
class Result:
    """The result of one submission. ``notes`` say why a person should look, or what failed.

    ``submission`` is the digest of what was handed in. ``comment`` and ``until``, a day to which a student may hand in,
    are a person's. ``off`` are the points that being late costs, and ``late`` says so in words.
    """

    student: str
    lecture_name: str
    state: State
    key: str
    marks: tuple[Mark, ...] = ()
    notes: tuple[str, ...] = ()
    submission: str = ""
    comment: str = ""
    until: str = ""
    off: float = 0.0
    late: str = ""

    @property
    def points(self) -> float | None:
        """The sum of the marks, less what being late costs; None if not graded."""
        graded = self.state in (State.GRADED, State.NEEDS_REVIEW)
        return sum(mark.points for mark in self.marks) - self.off if graded else None


def counts(results: Mapping[str, Result]) -> dict[State, int]:
    """The number of students in each state, which add up to the roster."""
    return {state: sum(result.state is state for result in results.values()) for state in State}

"""The results of grading: a mark for each exercise, a result for each submission.

Their messages, notes and comments were cleaned when they were made (`autograder.grading.text`), and a stored result
that somebody has edited doesn't count. So whatever shows them shows them as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True)
class Mark:
    """What an exercise earned: ``points`` of ``worth``; ``message`` says why not all, ``mistake`` names the mistake.

    ``hidden``: a hidden test failed; the message is only for the instructor, the mistake also for the student.
    ``requirements``: the text and points of each, and whether it's met, as a value of
    :class:`course_utils.testing.rubric.Met`. ``open``: a person has yet to give its points, or to confirm them.

    If a person has decided, ``points`` and ``comment`` are theirs, and ``tests`` has the points that the tests gave.
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
    FAILED_HERE = "failed here"  # the grader's or the machine's fault: no points, but not zero either


@dataclass(frozen=True)
class Result:
    """The result of one submission. ``notes`` say why a person should look, or what failed.

    ``submission`` is the digest of what was handed in. ``comment`` and ``until``, the last day on which the student may
    hand in, come from decisions. ``off`` is the late penalty in points, and ``late`` describes it. ``number``
    is that of the attempt that counts, if there are several, ``last`` that of the last one, and ``unread`` says why the
    last one couldn't be graded, if that's another.
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
    number: int = 0
    last: int = 0
    unread: str = ""

    @property
    def points(self) -> float | None:
        """The sum of the marks, less the late penalty; None if not graded."""
        graded = self.state in (State.GRADED, State.NEEDS_REVIEW)
        return sum(mark.points for mark in self.marks) - self.off if graded else None

    @property
    def attempt(self) -> str:
        """Which attempt counts, or "" if there aren't several."""
        return f"attempt {self.number} of {self.last}" if self.last else ""


def counts(results: Mapping[str, Result]) -> dict[State, int]:
    """The number of students in each state; together, they add up to the roster."""
    return {state: sum(result.state is state for result in results.values()) for state in State}

"""What grading says of a submission: a verdict for each answer, a mark for each exercise, a result for it all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True)
class Verdict:
    """What a test cell said of one answer. ``mistake`` is the known mistake that it named, or None.

    ``hidden``: it was the hidden part that failed, so the message may show inputs that students don't see.
    ``points`` and ``requirements``: as of a mark. ``told``: the student's process has seen hidden inputs.
    """

    passed: bool
    message: str = ""
    mistake: str | None = None
    hidden: bool = False
    points: float = 0.0
    requirements: tuple[tuple[str, float, str], ...] = ()
    told: bool = False


@dataclass(frozen=True)
class Mark:
    """What an exercise earned: ``points`` of ``worth``; ``message`` says why not, ``mistake`` which known one.

    ``hidden``: a hidden test failed; the message is for the instructor, the mistake for the student too.
    ``requirements``: of each its text, its points and whether it is met, in the words of
    :class:`course_utils.testing.rubric.Met`.
    """

    exercise: str
    points: float
    worth: float
    message: str = ""
    mistake: str | None = None
    hidden: bool = False
    requirements: tuple[tuple[str, float, str], ...] = ()


class State(StrEnum):
    """Where a student on the roster stands. They add up to the roster; only the graded have points."""

    NOT_SUBMITTED = "not submitted"
    QUEUED = "queued"
    GRADED = "graded"
    NEEDS_REVIEW = "needs review"  # graded as far as possible; a person should look
    FAILED_HERE = "failed here"  # a fault of ours or of this machine: no points, and no zero


@dataclass(frozen=True)
class Result:
    """What one submission got. ``notes`` say why a person should look, or what failed."""

    student: str
    lecture_name: str
    state: State
    key: str
    marks: tuple[Mark, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def points(self) -> float | None:
        """The sum of the marks; None unless it was graded."""
        return sum(mark.points for mark in self.marks) if self.state in (State.GRADED, State.NEEDS_REVIEW) else None


def counts(results: Mapping[str, Result]) -> dict[State, int]:
    """How many are in each state; they add up to the roster."""
    return {state: sum(result.state is state for result in results.values()) for state in State}

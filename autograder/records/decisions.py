"""What people decided about a student's work: points, comments, finished reviews, extensions.

Each decision is a file of its own, ``decisions/LECTURE/STUDENT/WHEN-….json``, which no command ever changes or deletes:
a later decision counts instead of an earlier one. So two people can decide at the same time, and whoever reads the
folder sees what was decided when, by whom, and about which result. Everything that shows or exports points applies
these records to the results (`table`).
"""

from __future__ import annotations

import getpass
import json
import math
import os
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path

from autograder import CourseError
from autograder.grading.marks import Mark, Result, State
from autograder.grading.text import MESSAGE_LIMIT, clean, one_line
from course_utils.files import replacing

from . import results
from . import roster as rosters
from .folder import ClassFolder

FORMGRADER = "Formgrader"  # who decided, where nbgrader doesn't say


class DecisionError(CourseError):
    """A decision can't be recorded; the message says why and what to do."""


@dataclass(frozen=True)
class Decision:
    """One decision about an exercise, or about the whole submission if ``exercise`` is empty.

    ``points`` are None if those that the tests give shall count. ``reviewed``: a person has looked at everything that
    the result's notes say. ``until``: the day to which the student may hand in.

    What it was based on: ``key``, ``submission`` and ``notes`` of the result, and ``found`` of ``worth``, the points
    that the tests had given (for the whole submission: all of them).
    """

    student: str
    lecture_name: str
    exercise: str
    who: str
    when: str
    points: float | None = None
    comment: str = ""
    reviewed: bool = False
    until: str = ""
    key: str = ""
    submission: str = ""
    found: float = 0.0
    worth: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def day(self) -> str:
        """When it was made, for people."""
        return self.when[:10]


def now() -> str:
    """The time, as it stands in a record: UTC, to the microsecond, so that records can be sorted by it."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def me() -> str:
    """The name of whoever runs the command. Raises :class:`DecisionError` if the system doesn't know it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError) as error:
        raise DecisionError("this system does not know who you are\n  → add --by NAME") from error


def write(folder: ClassFolder, decision: Decision) -> None:
    """Record a decision. Raises OSError if that fails; all earlier ones are still there."""
    place = folder.decisions / decision.lecture_name / decision.student
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    stamp = "".join(filter(str.isalnum, decision.when))
    with replacing(place / f"{stamp}-{secrets.token_hex(4)}.json") as file:
        os.chmod(file.name, 0o600)  # grades are for whoever grades
        file.write(json.dumps(asdict(decision), indent=1).encode() + b"\n")


def read(folder: ClassFolder, lecture_name: str, student: str) -> tuple[list[Decision], list[str]]:
    """All decisions about a student's work, the earliest first, and what is wrong with records that can't be read."""
    found: list[Decision] = []
    problems: list[str] = []
    for path in sorted((folder.decisions / lecture_name / student).glob("[!.]*.json")):
        try:
            found.append(_parsed(json.loads(path.read_bytes()), lecture_name, student))
        except (OSError, ValueError, TypeError, RecursionError) as error:
            why = one_line(str(error))[:200]
            problems.append(f"a decision cannot be read and does not count: {path} ({why}); mend it or put it back")
    return sorted(found, key=lambda each: each.when), problems


def _parsed(content: object, lecture_name: str, student: str) -> Decision:
    if not isinstance(content, dict):
        raise ValueError("it holds no record")
    made = Decision(**content | {"notes": tuple(content.get("notes", ()))})
    if (made.student, made.lecture_name) != (student, lecture_name):
        raise ValueError("it is about another student or another lecture")
    texts = (made.exercise, made.who, made.when, made.comment, made.until, made.key, made.submission, *made.notes)
    numbers = [made.found, made.worth, *([] if made.points is None else [made.points])]
    if not all(isinstance(text, str) for text in texts) or type(made.reviewed) is not bool:
        raise ValueError("a text is missing")
    if not all(type(number) in (int, float) and math.isfinite(number) for number in numbers):
        raise ValueError("points are no number")
    if datetime.fromisoformat(made.when).tzinfo is None:
        raise ValueError("`when` has no time zone")
    return made


def cleaned(comment: str) -> str:
    """A comment as it's stored and shown."""
    return clean(comment, limit=MESSAGE_LIMIT)


def latest(found: Iterable[Decision]) -> dict[str, Decision]:
    """The decision that counts, by exercise; that under "" is about the whole submission."""
    return {each.exercise: each for each in found}


def about(result: Result, exercise: str) -> Decision:
    """A decision that says nothing yet, based on this result."""
    tests = {mark.exercise: mark for mark in result.marks}
    on = [tests[exercise]] if exercise in tests else result.marks if not exercise else []
    return Decision(
        result.student, result.lecture_name, exercise, who="", when=now(), key=result.key,
        submission=result.submission, found=sum(mark.points for mark in on), worth=sum(mark.worth for mark in on),
    )  # fmt: skip


def decide(
    folder: ClassFolder,
    lecture_name: str,
    student: str,
    exercise: str = "",
    *,
    points: float | None = None,
    comment: str | None = None,
    withdraw: bool = False,
    reviewed: bool = False,
    until: str = "",
    by: str = "",
    roster: Path | None = None,
) -> list[Decision]:
    """Record what a person decides, and return the records. What isn't mentioned stays as it was decided before.

    ``withdraw``: the tests' points count again, and the comment goes. Raises :class:`DecisionError` for what can't be
    decided.
    """
    if points is not None and not (math.isfinite(points) and points >= 0):
        raise DecisionError(f"{points:g} points cannot be given\n  → give 0 or more")
    if points is not None and not exercise:
        raise DecisionError("points are for an exercise\n  → name it after the student")
    if until:
        try:
            until = date.fromisoformat(until).isoformat()
        except ValueError:
            raise DecisionError(f"{one_line(until)} is no day\n  → write it as 2026-11-30") from None
    if withdraw and (points is not None or comment is not None):
        raise DecisionError("--withdraw takes points and comment back\n  → leave out --points and --comment")
    if points is None and comment is None and not (withdraw or reviewed or until):
        raise DecisionError("nothing is decided\n  → add --points, --comment, --reviewed, --until or --withdraw")
    if student not in rosters.of(folder, lecture_name, roster):
        raise DecisionError(
            f"there is no student {one_line(student)!r} in {folder}\n  → take a name of `course report`"
        )
    result = results.standing(folder, lecture_name, student)
    if result.points is None and (exercise or reviewed):
        raise DecisionError(
            f"{one_line(student)} has no points in {lecture_name} yet ({result.state})\n"
            f"  → `course grade {folder} {lecture_name}` first"
        )
    names = [mark.exercise for mark in result.marks]
    if exercise and exercise not in names:
        raise DecisionError(
            f"{lecture_name} has no exercise {one_line(exercise)!r} here\n  → it has {', '.join(map(one_line, names))}"
        )
    before, _ = read(folder, lecture_name, student)
    made: list[Decision] = []
    whole = reviewed or until or not exercise
    for name in dict.fromkeys([exercise, *([""] if whole else [])]):
        old = latest(before).get(name)
        new = replace(about(result, name), who=by or me())
        if old is not None:
            new = replace(new, points=old.points, comment=old.comment, until=old.until)
        if name == exercise and withdraw:
            new = replace(new, points=None, comment="")
        if name == exercise and comment is not None:
            new = replace(new, comment=cleaned(comment))
        if name == exercise and points is not None:
            new = replace(new, points=points)
        if not name and until:
            new = replace(new, until=until)
        if name or not reviewed:
            write(folder, new)
            made.append(new)
            continue
        seen = decided(result, [*before, *made])  # with the points that were given just now
        made.append(replace(new, reviewed=True, notes=seen.notes))
        write(folder, made[-1])
    return made


def decided(result: Result, found: Sequence[Decision], problems: Sequence[str] = ()) -> Result:
    """A result with what people decided about it.

    A decision counts as long as it's about the same work and the tests say what they said then. Otherwise it's stale: a
    person is asked, with both values. Until they answer, a student keeps the better ones, unless the decision had taken
    points away: then it isn't undone by handing in again.
    """
    last = latest(found)
    whole = last.get("")
    if whole is not None:
        result = replace(result, comment=whole.comment, until=whole.until)
    if result.points is None:
        return result
    notes, waiting, marks = list(result.notes), list(problems), list[Mark]()
    for mark in result.marks:
        decision = last.get(mark.exercise)
        if decision is None or decision.points is None:
            if mark.open:
                waiting.append(f"{mark.exercise} has no points yet, and no tests: a person gives them")
            marks.append(replace(mark, comment=decision.comment if decision else ""))
            continue
        points, stale = decision.points, not _stands(decision, result, mark)
        if stale:
            raised = decision.points >= decision.found
            points = (max if raised else min)(decision.points, mark.points)
            notes.append(_question(decision, mark, points))
        marks.append(replace(mark, points=points, tests=mark.points, comment=decision.comment, open=stale))
    known = {"", *(mark.exercise for mark in marks)}
    notes += [
        f"{one_line(each.who)} decided about {one_line(each.exercise)}, which is no longer an exercise here"
        for each in last.values()
        if each.exercise not in known and (each.points is not None or each.comment)
    ]
    state = result.state
    if any(_looked_at(each, result, notes) for each in found if each.reviewed):
        notes, state = [], State.GRADED
        marks = [replace(mark, open=mark.open and mark.tests is None) for mark in marks]
    notes += waiting
    return replace(result, marks=tuple(marks), notes=tuple(notes), state=State.NEEDS_REVIEW if notes else state)


def _stands(decision: Decision, result: Result, mark: Mark) -> bool:
    """Whether a decision is about this mark as it is now.

    A key also changes with the grader and with other exercises; what counts then is whether the work is the same, and
    whether the tests say the same about it.
    """
    same = (decision.submission, decision.found, decision.worth) == (result.submission, mark.points, mark.worth)
    return decision.key == result.key or same or (decision.points == mark.points and not mark.open)


def _looked_at(review: Decision, result: Result, notes: Iterable[str]) -> bool:
    """Whether a finished review was of this result, and of all that is to be looked at now."""
    same = (review.submission, review.found, review.worth) == (
        result.submission, sum(mark.points for mark in result.marks), sum(mark.worth for mark in result.marks)
    )  # fmt: skip
    return (review.key == result.key or same) and set(notes) <= set(review.notes)


def _question(decision: Decision, mark: Mark, points: float) -> str:
    given = f"{one_line(decision.who)} gave {decision.points:g} points on {decision.day}"
    if mark.open:
        return f"{mark.exercise}: {given}, to other work; they count until somebody decides again"
    return (
        f"{mark.exercise}: {given}, where the tests gave {decision.found:g}; the work or the tests have changed, and "
        f"now the tests give {mark.points:g}. Until somebody decides again, {points:g} count"
    )


def apply(folder: ClassFolder, result: Result) -> Result:
    """A result with what people decided about it."""
    return decided(result, *read(folder, result.lecture_name, result.student))


def table(folder: ClassFolder, lecture_name: str, students: Iterable[str]) -> dict[str, Result]:
    """What stands for each student, by name: the result, and what people decided about it."""
    return {name: apply(folder, one) for name, one in results.table(folder, lecture_name, students).items()}

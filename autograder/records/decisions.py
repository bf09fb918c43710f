"""What people decided about a student's work: points, comments, finished reviews, extensions.

Each decision is a separate file, ``decisions/LECTURE/STUDENT/WHEN-….json``, which no command ever changes or deletes: a
later decision overrides an earlier one. So two people can decide at the same time, and the folder shows what was
decided when, by whom, and about which result. Everything that shows or exports points applies these records to the
results (`table`).
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
from autograder.grading.text import MESSAGE_LIMIT, clean, counted, one_line
from course_utils.files import replacing

from . import results
from . import roster as rosters
from .folder import ClassFolder

_OTHER_WORK = "was written for another submission; it stays on the student's page until somebody decides again"
_MENDED = (
    "was written for another submission, which didn't get all the points; this one does, so the comment is no longer "
    "on the student's page"
)
_WHOLE = "the comment on the whole work"
FORMGRADER = "Formgrader"  # who decided: nbgrader doesn't record the person


class DecisionError(CourseError):
    """A decision can't be recorded; the message says why and what to do."""


@dataclass(frozen=True)
class Decision:
    """One decision about an exercise, or about the whole submission if ``exercise`` is empty.

    ``points`` are None if the tests' points are to count. ``reviewed``: a person has checked everything in the result's
    notes; ``withdrawn``: reviews before this decision no longer count. ``until``: the last day on which the student may
    hand in.

    The decision was based on a result with this ``key``, ``submission`` and ``notes``, in which the tests gave
    ``found`` of ``worth`` points (for the whole submission, in all). ``gave``, only for the whole submission, has each
    exercise's name with these two numbers.
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
    gave: tuple[tuple[str, float, float], ...] = ()
    withdrawn: bool = False

    @property
    def day(self) -> str:
        """The date on which it was made, to show to people."""
        return self.when[:10]


def now() -> str:
    """The current time as records have it: UTC, in ISO format, to the microsecond, so that records can be sorted."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def me() -> str:
    """The user who runs the command. Raises :class:`DecisionError` if the system doesn't know the name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError) as error:
        raise DecisionError("this system does not know who you are\n  → add --by NAME") from error


def write(folder: ClassFolder, decision: Decision) -> None:
    """Record a decision. Raises OSError if that fails; earlier ones aren't affected."""
    place = folder.decisions / decision.lecture_name / decision.student
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    stamp = "".join(filter(str.isalnum, decision.when))
    with replacing(place / f"{stamp}-{secrets.token_hex(4)}.json") as file:
        os.chmod(file.name, 0o600)  # only graders may see grades
        file.write(json.dumps(asdict(decision), indent=1).encode() + b"\n")


def students(folder: ClassFolder, lecture_name: str) -> list[str]:
    """The students about whom somebody has decided something in a lecture."""
    place = folder.decisions / lecture_name
    return sorted(path.name for path in place.iterdir() if path.is_dir()) if place.is_dir() else []


def read(folder: ClassFolder, lecture_name: str, student: str) -> tuple[list[Decision], list[str]]:
    """All decisions about a student's work, earliest first, and messages about records that can't be read."""
    found: list[Decision] = []
    problems: list[str] = []
    for path in sorted((folder.decisions / lecture_name / student).glob("[!.]*.json")):
        try:
            found.append(_parsed(json.loads(path.read_bytes()), lecture_name, student))
        except (OSError, ValueError, TypeError, RecursionError) as error:
            why = one_line(str(error))[:200]
            problems.append(f"a decision cannot be read and does not count: {path} ({why}); repair or restore it")
    return sorted(found, key=lambda each: each.when), problems


def _parsed(content: object, lecture_name: str, student: str) -> Decision:
    if not isinstance(content, dict):
        raise ValueError("it contains no record")
    gave = tuple((name, points, worth) for name, points, worth in content.get("gave", ()))
    made = Decision(**content | {"notes": tuple(content.get("notes", ())), "gave": gave})
    if (made.student, made.lecture_name) != (student, lecture_name):
        raise ValueError("it is about another student or another lecture")
    texts = (made.exercise, made.who, made.when, made.comment, made.until, made.key, made.submission, *made.notes)
    texts += tuple(name for name, *_ in gave)
    numbers = [made.found, made.worth, *([] if made.points is None else [made.points])]
    numbers += [number for _, *both in gave for number in both]
    if not all(isinstance(text, str) for text in texts) or not {type(made.reviewed), type(made.withdrawn)} <= {bool}:
        raise ValueError("a value has the wrong type")
    if not all(type(number) in (int, float) and math.isfinite(number) for number in numbers):
        raise ValueError("points are not a number")
    if datetime.fromisoformat(made.when).tzinfo is None:
        raise ValueError("`when` has no time zone")
    return made


def day(text: str) -> str:
    """A date as records have it; "" if there's none. Raises :class:`DecisionError` if the text isn't a date."""
    try:
        return date.fromisoformat(text).isoformat() if text else ""
    except ValueError:
        raise DecisionError(f"{one_line(text)} is not a date\n  → write it as 2026-11-30") from None


def cleaned(comment: str) -> str:
    """A comment as it's stored and shown: cleaned, and cut to `MESSAGE_LIMIT` characters."""
    return clean(comment, limit=MESSAGE_LIMIT)


def latest(found: Iterable[Decision]) -> dict[str, Decision]:
    """The decision that counts, by exercise; "" stands for the whole submission."""
    return {each.exercise: each for each in found}


def finished(found: Sequence[Decision]) -> list[Decision]:
    """The finished reviews that nobody has withdrawn."""
    begin = max((place + 1 for place, each in enumerate(found) if each.withdrawn), default=0)
    return [each for each in found[begin:] if each.reviewed]


def about(result: Result, exercise: str) -> Decision:
    """An empty decision based on this result."""
    tests = {mark.exercise: mark for mark in result.marks}
    on = [tests[exercise]] if exercise in tests else result.marks if not exercise else []
    return Decision(
        result.student, result.lecture_name, exercise, who="", when=now(), key=result.key,
        submission=result.submission, found=sum(mark.points for mark in on), worth=sum(mark.worth for mark in on),
        gave=() if exercise else tuple((mark.exercise, mark.points, mark.worth) for mark in on),
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
    """Record what a person decides, and return the records. Whatever isn't given keeps its earlier decision.

    ``withdraw``: the tests' points count again, and the comment is dropped; without an exercise, the extension, too.
    Raises :class:`DecisionError` if the decision isn't possible.
    """
    if points is not None and not (math.isfinite(points) and points >= 0):
        raise DecisionError(f"{points:g} points cannot be given\n  → give 0 or more")
    if points is not None and not exercise:
        raise DecisionError("points can only be given for an exercise\n  → name it after the student")
    until = day(until)
    if withdraw and (points is not None or comment is not None):
        raise DecisionError("--withdraw drops points and comment\n  → leave out --points and --comment")
    if points is None and comment is None and not (withdraw or reviewed or until):
        raise DecisionError("nothing is decided\n  → add --points, --comment, --reviewed, --until or --withdraw")
    if until and exercise and points is None and comment is None:
        raise DecisionError("an extension is for the whole lecture\n  → leave out the exercise")
    if reviewed and exercise and points is None and comment is None:
        raise DecisionError(
            "a review is of the whole submission\n  → leave out the exercise once you've checked all notes, or add "
            "--points or --comment for this one"
        )
    if student not in (students := rosters.of(folder, lecture_name, roster)):
        raise DecisionError(rosters.unknown(folder, lecture_name, student, students.values()))
    result = results.standing(folder, lecture_name, student)
    if result.state is State.NOT_SUBMITTED and (exercise or reviewed):
        raise DecisionError(
            f"{one_line(student)} has handed in no notebook for {lecture_name}, so there are no points to change\n"
            f"  → put one, an unanswered one perhaps, into {folder.submission(student, lecture_name)} and grade it; "
            "--until, and --comment without EXERCISE, need none"
        )
    if result.points is None and (exercise or reviewed):
        raise DecisionError(
            f"{one_line(student)} has no points in {lecture_name} yet ({result.state})\n"
            f"  → run `course grade {folder} {lecture_name}` first"
        )
    names = [mark.exercise for mark in result.marks]
    if exercise and exercise not in names:
        raise DecisionError(
            f"{lecture_name} has no exercise {one_line(exercise)!r}\n  → it has {', '.join(map(one_line, names))}"
        )
    before, _ = read(folder, lecture_name, student)
    made: list[Decision] = []
    whole = reviewed or until or not exercise
    for name in dict.fromkeys([exercise, *([""] if whole else [])]):
        old = latest(before).get(name)
        new = replace(about(result, name), who=by or me())
        if old is not None:
            new = replace(new, points=old.points, comment=kept_comment(old, new), until=old.until)
        if old is not None and until and not (name or reviewed or withdraw or comment is not None):
            # Still about the same work.
            new = replace(old, who=new.who, when=new.when, reviewed=False, withdrawn=False, notes=())
        if name == exercise and withdraw:
            new = replace(new, points=None, comment="", until=new.until if name else "", withdrawn=not name)
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
        seen = decided(result, [*before, *made])  # including the points given just now
        made.append(replace(new, reviewed=True, notes=seen.notes))
        write(folder, made[-1])
    return made


def decided(result: Result, found: Sequence[Decision], problems: Sequence[str] = ()) -> Result:
    """A result with the decisions about it applied.

    A decision counts as long as it's about the same work and the tests give the same points as then. Otherwise it's
    stale, and a note asks a person to decide again. Until they do, the higher of the two numbers of points counts,
    unless the decision had taken points away: then the lower one does, so that handing in again doesn't undo it. A
    comment on other work is asked about in the same way, and is shown until then, unless the tests took points from
    that work and give this one all of them.

    A finished review settles the notes that it covers; see `_covers`.
    """
    last = latest(found)
    whole = last.get("")
    if whole is not None:
        result = replace(result, comment=whole.comment, until=whole.until)
    if result.points is None:
        return result
    notes, waiting, marks = list(result.notes), list(problems), list[Mark]()
    questions: dict[str, str] = {}
    if whole is not None and _outdated(whole, result):
        result = replace(result, comment=kept_comment(whole, about(result, "")))
        notes.append(f"{_WHOLE} {_OTHER_WORK if result.comment else _MENDED}")
    for mark in result.marks:
        decision = last.get(mark.exercise)
        stale = decision is not None and decision.points is not None and not _stands(decision, result, mark)
        comment = decision.comment if decision else ""
        if decision is not None and _outdated(decision, result):
            comment = kept_comment(decision, about(result, mark.exercise))
            notes.append(f"{mark.exercise}: the comment {_OTHER_WORK if comment else _MENDED}")
        if decision is None or decision.points is None:
            if mark.open:
                waiting.append(f"{mark.exercise} has no tests: a person has yet to give points")
            marks.append(replace(mark, comment=comment))
            continue
        points = decision.points
        if stale:
            raised = decision.points >= decision.found
            points = (max if raised else min)(decision.points, mark.points)
            questions[mark.exercise] = _question(decision, mark, points)
            notes.append(questions[mark.exercise])
        marks.append(replace(mark, points=points, tests=mark.points, comment=comment, open=stale))
    known = {"", *(mark.exercise for mark in marks)}
    notes += [
        f"{one_line(each.who)} decided about {one_line(each.exercise)}, which is no longer an exercise here"
        for each in last.values()
        if each.exercise not in known and (each.points is not None or each.comment)
    ]
    state = result.state
    reviews = finished(found)
    left = [note for note in notes if not any(_covers(each, result, note) for each in reviews)]
    if notes and not left:
        state = State.GRADED
    marks = [
        replace(mark, open=mark.open and (mark.tests is None or questions[mark.exercise] in left)) for mark in marks
    ]
    left += waiting
    return replace(result, marks=tuple(marks), notes=tuple(left), state=State.NEEDS_REVIEW if left else state)


def kept_comment(decision: Decision, now: Decision) -> str:
    """A decision's comment if it's still shown on the work that ``now`` is about, which may be other work; or "".

    It's dropped when its reason is gone: the tests took points from the other work and give this one all of them.
    """
    mended = _outdated(decision, now) and decision.found < decision.worth and now.found >= now.worth
    return "" if mended else decision.comment


def _stands(decision: Decision, result: Result, mark: Mark) -> bool:
    """Whether a decision still applies to this mark.

    A key also changes with the grader and with other exercises; then the decision applies if the work is the same and
    gets the same points from the tests.
    """
    same = (decision.submission, decision.found, decision.worth) == (result.submission, mark.points, mark.worth)
    agree = (decision.points, decision.worth) == (mark.points, mark.worth) and not mark.open
    return decision.key == result.key or same or agree


def _outdated(decision: Decision, now: Result | Decision) -> bool:
    """Whether a decision has a comment on a submission other than this one (and not on one that was yet to come)."""
    other = decision.submission not in ("", now.submission) and decision.key != now.key
    return bool(decision.comment) and other


def _covers(review: Decision, result: Result, note: str) -> bool:
    """Whether a finished review settles a note on this result.

    The work must be the same. A key also changes with the grader and with other exercises; then the tests must give the
    same points as at the review: in the exercise that the note names, or else in all of them together.
    """
    if note not in review.notes:
        return False
    if review.key == result.key:
        return True
    now = about(result, "")
    named = [each for each in now.gave if each[0] == note.partition(": ")[0]]
    if note.startswith(_WHOLE):
        same = True
    elif review.gave and named:
        same = named[0] in review.gave
    else:
        same = (review.found, review.worth) == (now.found, now.worth)
    return same and review.submission == result.submission


def _question(decision: Decision, mark: Mark, points: float) -> str:
    given = f"{one_line(decision.who)} gave {counted(decision.points or 0, 'point')} on {decision.day}"
    if mark.open:
        what = "a different submission"
        if decision.worth != mark.worth:
            what = f"an exercise worth {decision.worth:g}, which is worth {mark.worth:g} now"
        return f"{mark.exercise}: {given} for {what}; they count until somebody decides again"
    return (
        f"{mark.exercise}: {given} when the tests gave {decision.found:g} of {decision.worth:g}; the work or the tests "
        f"have changed, and now the tests give {mark.points:g} of {mark.worth:g}. Until somebody decides again, "
        f"{counted(points, 'point')} {'counts' if points == 1 else 'count'}"
    )


def apply(folder: ClassFolder, result: Result) -> Result:
    """A result with the stored decisions about it applied."""
    return decided(result, *read(folder, result.lecture_name, result.student))


def table(folder: ClassFolder, lecture_name: str, students: Iterable[str]) -> dict[str, Result]:
    """Each student's result, with decisions applied, by name."""
    return {name: apply(folder, one) for name, one in results.table(folder, lecture_name, students).items()}

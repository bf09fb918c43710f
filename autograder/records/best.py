"""Grades all attempts, if a class counts the best one, and puts that one into ``submitted/``.

The points of each attempt are kept in ``results/LECTURE/.attempts/``. The result that counts is written when
``submitted/`` is graded, as for any other submission.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from autograder.grading import engine, submission
from autograder.grading.exercises import ProblemSet
from autograder.grading.marks import Result, State
from autograder.grading.submission import HandedIn
from autograder.grading.worker import Failed, Task
from autograder.inside.limits import Limits

from . import attempts, decisions, due, results
from .attempts import Attempt
from .folder import ClassFolder, concerns_one
from .roster import Student


@dataclass
class _Theirs:
    """One student's attempts with a notebook, latest last: each with its content and key. ``earned``: result by key."""

    stored: list[tuple[Attempt, bytes, str]]
    earned: dict[str, Result]


def settle(
    folder: ClassFolder,
    problems: ProblemSet,
    rules: due.Rules,
    students: Mapping[str, Student],
    limits: Limits,
    *,
    again: bool = False,
    unsafe: bool = False,
    workers: int | None = None,
    scheduler: str = "",
    progress: Callable[[int, int, Result | None], None] = lambda done, total, latest: None,
    say: Callable[[str], None] = lambda message: None,
) -> list[str]:
    """Put the attempt with the most points into ``submitted/``, for each student who has several. Safe to repeat.

    Points that people gave to an attempt count. Of attempts with the same points, the latest counts. An attempt that
    *needs review* counts as long as the review could give it more points than the others have, so that somebody looks.
    Returns remarks for the instructor. Raises what :func:`autograder.grading.engine.grade_all` raises.
    """
    remarks: list[str] = []
    found = _all(folder, problems, students, remarks)
    tasks = list(_tasks(folder, problems, found, limits, again, unsafe, remarks))
    if tasks:
        outcomes = engine.grade_all(iter(tasks), limits, unsafe=unsafe, workers=workers, scheduler=scheduler)
        with contextlib.closing(outcomes):
            for done, (task, outcome) in enumerate(outcomes, 1):
                if isinstance(outcome, Failed):
                    remarks.append(f"an attempt of {task.student} could not be graded here: {outcome.reason}")
                    continue
                state = State.NEEDS_REVIEW if outcome.notes else State.GRADED
                result = Result(task.student, problems.lecture_name, state, task.key, outcome.marks, outcome.notes)
                found[task.student].earned[task.key] = result
                remarks += _keeping(partial(results.write_attempt, folder, result))
                progress(done, len(tasks), result)
    with attempts.alone(folder, problems.lecture_name, say):
        for student, theirs in found.items():
            name = problems.lecture_name
            remarks += _keeping(partial(_keep_time, folder, name, student, theirs))
            if best := _best(folder, rules, students[student], theirs):
                there = folder.read(student, name).data
                changed = there is None or submission.digest(there) != best[0].sha256
                # The file with the result of what was there will be replaced.
                if changed and (counts := results.standing(folder, name, student)).key in theirs.earned:
                    remarks += _keeping(partial(results.write_attempt, folder, counts))
                remarks += _keeping(partial(attempts.install, folder, name, student, *best))
    return remarks


def _keep_time(folder: ClassFolder, name: str, student: str, theirs: _Theirs) -> None:
    """If a person has written a time beside what's graded, store it with that attempt, which may not be graded next."""
    if (when := due.by_hand(folder, name, student, [each for each, _, _ in theirs.stored])) is None:
        return
    digest = submission.digest(folder.read(student, name).data or b"")
    for place in reversed(range(len(theirs.stored))):
        attempt, content, key = theirs.stored[place]
        if attempt.sha256 == digest:
            theirs.stored[place] = attempts.set_time(folder, name, student, attempt, when), content, key
            return


def waiting(folder: ClassFolder, problems: ProblemSet, students: Iterable[str], *, again: bool = False) -> int:
    """How many attempts `settle` would grade."""
    found = _all(folder, problems, students, [])
    return len(list(_tasks(folder, problems, found, Limits(), again, False, [])))


def _all(folder: ClassFolder, problems: ProblemSet, students: Iterable[str], remarks: list[str]) -> dict[str, _Theirs]:
    """The attempts of everybody who has several. Adds a remark on each student whose attempts can't be read."""
    found: dict[str, _Theirs] = {}
    for student in students:
        try:
            if (theirs := _several(folder, problems, student)) is not None:
                found[student] = theirs
        except attempts.AttemptError as error:
            remarks.append(f"{student}: {error}")
    return found


def _several(folder: ClassFolder, problems: ProblemSet, student: str) -> _Theirs | None:
    """A student's attempts, if there are several and ``submitted/`` has one of them or nothing; otherwise None."""
    name = problems.lecture_name
    stored = [each for each in attempts.read(folder, name, student) if each.notebook]
    # The same work handed in twice counts when it's known to have come in, not when it isn't.
    timed = {each.sha256 for each in stored if each.when}
    stored = [each for each in stored if each.when or each.sha256 not in timed]
    if len(stored) < 2:
        return None
    there = folder.read(student, name)
    if not there.nothing and (there.data is None or submission.digest(there.data) not in {e.sha256 for e in stored}):
        return None  # a person put it there
    contents = [attempts.content_of(folder, name, student, each) for each in stored]
    keys = [HandedIn(folder.submission(student, name), data=content).key(problems) for content in contents]
    return _Theirs(list(zip(stored, contents, keys, strict=True)), {})


def _tasks(
    folder: ClassFolder,
    problems: ProblemSet,
    found: Mapping[str, _Theirs],
    limits: Limits,
    again: bool,
    unsafe: bool,
    remarks: list[str],
) -> Iterator[Task]:
    """The attempts that a worker must grade. Adds a remark on each that had a result, which is damaged."""
    for student, theirs in found.items():
        name = problems.lecture_name
        counts = results.standing(folder, name, student)
        for _, content, key in theirs.stored:
            if key in theirs.earned:
                continue
            try:
                before = counts if counts.key == key else results.read_attempt(folder, name, student, key)
            except results.ResultError as error:
                remarks.append(str(error).splitlines()[0])
                before = None
            if before is not None and before.points is not None and not again:
                theirs.earned[key] = before
            else:
                theirs.earned[key] = Result(student, name, State.FAILED_HERE, key)  # until it's graded
                yield Task(student, problems, content, key, limits, unsafe)


def _best(folder: ClassFolder, rules: due.Rules, student: Student, theirs: _Theirs) -> tuple[Attempt, bytes] | None:
    """The attempt that counts, or None if that's unknown because one could not be graded."""
    name = next(iter(theirs.earned.values())).lecture_name
    decided, _ = decisions.read(folder, name, student.student)
    limit = rules.limit(student, decisions.decided(results.standing(folder, name, student.student), decided).until)
    most: tuple[float, Attempt, bytes] | None = None
    for attempt, content, key in theirs.stored:
        tested = replace(theirs.earned[key], submission=submission.digest(content))
        result = decisions.decided(tested, decided)
        # No review gives points for a file that can't be read.
        if tested.notes and submission.parse(HandedIn(Path(), data=content), ProblemSet(name, ())).cells:
            result = _possible(result, tested.notes)
        points = due.charged(rules, result, limit, attempt.time).points
        if points is None:
            return None
        if most is None or points >= most[0]:
            most = points, attempt, content
    return most and most[1:]


def _possible(result: Result, notes: Collection[str]) -> Result:
    """A result with all points in the exercises that those of these notes name that nobody has looked at, or in all of
    them if such a note names none."""
    named = {note.partition(": ")[0] for note in result.notes if note in notes}
    some = named <= {mark.exercise for mark in result.marks}
    marks = [replace(m, points=max(m.points, m.worth)) if m.exercise in named or not some else m for m in result.marks]
    return replace(result, marks=tuple(marks))


def _keeping(work: Callable[[], object]) -> Iterable[str]:
    """Write something for one student. If something else is in the way of just that file, return a remark about it.

    Raises all other errors.
    """
    try:
        work()
    except OSError as error:
        if not concerns_one(error):
            raise
        return [f"{error.filename} is in the way ({error.strerror}): move it away and repeat the command"]
    return []

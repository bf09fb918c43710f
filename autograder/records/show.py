"""One student's result, or one exercise across the class, as text for people who grade by hand."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping

from autograder.grading import submission
from autograder.grading.exercises import ProblemSet
from autograder.grading.marks import Mark, Result, State
from autograder.grading.source import Lecture
from autograder.grading.text import clean, one_line

from . import pages
from .decisions import DecisionError
from .folder import ClassFolder
from .roster import Student, called, unknown


def alias(folder: ClassFolder, lecture_name: str, student: str) -> str:
    """What a student is called if names aren't shown. Only with the class's seed can it be traced to the student."""
    text = f"{folder.seed} {lecture_name} {student}".encode("utf-8", "surrogateescape")
    return f"anon-{hashlib.sha256(text).hexdigest()[:10]}"


def named(folder: ClassFolder, lecture_name: str, name: str, students: Iterable[str]) -> str:
    """The student with this name or alias; the given name itself if there's none."""
    everybody = list(students)
    return next((s for s in everybody if name not in everybody and alias(folder, lecture_name, s) == name), name)


def text(
    folder: ClassFolder,
    lecture: Lecture,
    found: Mapping[str, Result],
    students: Mapping[str, Student] = {},
    *,
    student: str = "",
    exercise: str = "",
    anonymous: bool = False,
) -> Iterator[str]:
    """What to show, student by student: points and state, with marks and answers if a student or exercise is given.

    ``anonymous``: with aliases instead of names, in an order that reveals nothing. Raises :class:`DecisionError` for an
    unknown student or exercise.
    """
    problems = folder.problems(lecture)
    if exercise and exercise not in (names := [part.name for part in lecture.parts]):
        raise DecisionError(
            f"{lecture.name} has no exercise {one_line(exercise)!r}\n  → it has {', '.join(map(one_line, names))}"
        )
    if student and (student := named(folder, lecture.name, student, found)) not in found:
        raise DecisionError(unknown(folder, lecture.name, student, map(Student, found)))
    names = [student] if student else list(found)
    shown = {alias(folder, lecture.name, name) if anonymous else called(name, students): name for name in names}
    for who, name in sorted(shown.items()):
        result = found[name]
        points = "" if result.points is None else f", {result.points:g} of {lecture.points:g} points"
        said = "".join(f", {each}" for each in (result.attempt, result.late) if each)
        yield f"{who}: {result.state}{points}{said}"
        # A note may quote a path or a file's name, and both may contain the student's.
        notes = [] if anonymous else [note for note in (*result.notes, result.unread) if note]
        if student or result.state is State.NOT_SUBMITTED:
            yield from [f"  • {note}" for note in notes]
        elif exercise:
            yield from [f"  • {note}" for note in notes if note.startswith(f"{exercise}:")]
        if anonymous and result.state is State.NOT_SUBMITTED and folder.instead(name, lecture.name):
            yield f"  • something was handed in, but no {lecture.name}.ipynb"
        if student:
            yield from [f"  comment: {result.comment}"] if result.comment else []
        if student or exercise:
            marks = (
                [mark for mark in result.marks if exercise in ("", mark.exercise)] if result.points is not None else []
            )
            yield from _answers(folder.read(name, lecture.name), problems, marks)


def _answers(handed_in: submission.HandedIn, problems: ProblemSet, marks: Iterable[Mark]) -> Iterator[str]:
    answers = submission.parse(handed_in, problems).answers(problems)
    untested = {each.name for each in problems.questions}
    for mark in marks:
        by_hand = mark.tests is not None and mark.exercise not in untested
        tests = f" (the tests gave {mark.tests:g})" if by_hand else ""
        points = "no points yet" if mark.open and mark.tests is None else f"{mark.points:g}"
        yield f"\n  {one_line(mark.exercise)}: {points} of {mark.worth:g}{tests}"
        if mark.comment:
            yield _indented("comment: " + mark.comment)
        yield _indented(mark.message)
        yield _indented(answers.get(mark.exercise, "")[: pages.CODE_LIMIT])


def _indented(text: str) -> str:
    """Indented text from a submission or about it, without characters that control a terminal."""
    return "\n".join(f"    {line}".rstrip() for line in clean(text, keep="\n\t").split("\n")) if text else ""

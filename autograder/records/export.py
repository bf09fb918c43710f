"""Grades as files for other systems: CSV, JSON, and files to import into Canvas and Moodle.

A student without points (not submitted, queued, failed here) has an empty grade, never 0, next to their state; the
files for Canvas and Moodle (`.lms`) leave out everybody whose grade isn't final. If a person gave points, the tests'
points have a column of their own. The late penalty is taken off the total. In CSV files, whatever a spreadsheet would
take for a formula gets a ``'`` in front, because names come from folders.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from pathlib import Path

from autograder.grading.marks import Mark, Result, counts
from autograder.grading.source import Lecture
from autograder.grading.text import one_line

from . import lms, pages
from .folder import ClassFolder
from .roster import Student, name_of


class Format(StrEnum):
    """The export formats; the value is the name on the command line."""

    CSV = "csv"
    QUESTIONS = "questions"
    JSON = "json"
    CANVAS = "canvas"
    MOODLE = "moodle"


def path_of(folder: ClassFolder, lecture_name: str, form: Format) -> Path:
    """The path of an export: ``exports/LECTURE.csv``, ``exports/LECTURE.canvas.csv`` and so on."""
    endings = {Format.CSV: "csv", Format.JSON: "json"}
    return folder.exports / f"{lecture_name}.{endings.get(form, f'{form}.csv')}"


def write(
    folder: ClassFolder,
    lecture: Lecture,
    found: Mapping[str, Result],
    students: Mapping[str, Student],
    formats: Iterable[Format] = tuple(Format),
    title: str = "",
) -> list[Path]:
    """Write the exports; safe to repeat.

    ``students`` has the students' ids in other systems; ``title`` is the assignment's title there, if it isn't the
    lecture's name. Raises :class:`.lms.ExportError` if no assignment can have that title; then nothing is written.
    """
    contents = [(form, _WRITERS[form](lecture, found, students, title)) for form in formats]
    written = []
    for form, content in contents:
        path = path_of(folder, lecture.name, form)
        pages.write(path, content)
        written.append(path)
    return written


def _csv(lecture: Lecture, found: Mapping[str, Result], students: Mapping[str, Student], title: str) -> str:
    rows = [
        [
            name,
            name_of(name, students),
            one.state,
            _grade(one.points),
            _worth(lecture),
            one.attempt,
            one.late,
            _grade(one.off or None),
            one.comment,
            _notes(one),
        ]
        for name, one in found.items()
    ]
    columns = ["student", "name", "state", "points", "worth", "attempt", "late", "points taken off", "comment", "notes"]
    return _table([columns, *rows])


def _questions(lecture: Lecture, found: Mapping[str, Result], students: Mapping[str, Student], title: str) -> str:
    rows = [["student", "name", "state", "exercise", "points", "worth", "mistake", "points by tests", "comment"]]
    for name, one in found.items():
        marks = {mark.exercise: mark for mark in one.marks} if one.points is not None else {}
        for exercise in lecture.parts:
            mark = marks.get(exercise.name)
            earned = [_grade(_given(mark) if mark else None), f"{exercise.points:g}", (mark and mark.mistake) or ""]
            earned += [_grade(mark.tests) if mark else "", mark.comment if mark else ""]
            rows.append([name, name_of(name, students), one.state, exercise.name, *earned])
    return _table(rows)


def _json(lecture: Lecture, found: Mapping[str, Result], students: Mapping[str, Student], title: str) -> str:
    content = {
        "lecture": lecture.name,
        "worth": lecture.points,
        "counts": {str(state): count for state, count in counts(found).items()},
        "students": [
            {
                "student": name,
                "name": name_of(name, students),
                "state": str(one.state),
                "points": one.points,
                "exercises": [
                    {"exercise": m.exercise, "points": _given(m), "worth": m.worth, "mistake": m.mistake}
                    | ({"points by tests": m.tests} if m.tests is not None else {})
                    | ({"comment": m.comment} if m.comment else {})
                    for m in (one.marks if one.points is not None else ())
                ],
                "notes": list(one.notes),
                "comment": one.comment,
                "until": one.until,
                "attempt": one.attempt,
                "late": one.late,
                "points taken off": one.off,
            }
            for name, one in found.items()
        ],
    }
    return json.dumps(content, indent=1) + "\n"


def _canvas(lecture: Lecture, found: Mapping[str, Result], students: Mapping[str, Student], title: str) -> str:
    return _table(lms.canvas(lecture, found, students, title))


def _moodle(lecture: Lecture, found: Mapping[str, Result], students: Mapping[str, Student], title: str) -> str:
    return _table(lms.moodle(lecture, found, students, title))


_WRITERS: dict[Format, Callable[[Lecture, Mapping[str, Result], Mapping[str, Student], str], str]] = {
    Format.CSV: _csv,
    Format.QUESTIONS: _questions,
    Format.JSON: _json,
    Format.CANVAS: _canvas,
    Format.MOODLE: _moodle,
}


def _given(mark: Mark) -> float | None:
    """The points of a mark; None until a person gives them, if no tests do."""
    return None if mark.open and mark.tests is None else mark.points


def _grade(points: float | None) -> str:
    return "" if points is None else f"{points:g}"


def _notes(one: Result) -> str:
    """All notes on one line, without their remedies."""
    return "; ".join(one_line(note.split("\n")[0]) for note in one.notes)


def _worth(lecture: Lecture) -> str:
    return f"{lecture.points:g}"


def _table(rows: Iterable[Iterable[str]]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, quoting=csv.QUOTE_ALL).writerows([[lms.cell(text) for text in row] for row in rows])
    return buffer.getvalue()

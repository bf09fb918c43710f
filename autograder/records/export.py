"""Grades as files for other systems: CSV, JSON, and files to import into Canvas and Moodle.

A student without points (not submitted, queued, failed here) has an empty grade, with their state beside it, never 0.
Where a person gave points, those of the tests stand beside them. Points that being late costs are taken off the whole.
Names come from folders, so what a spreadsheet would take for a formula gets a ``'`` in front in a CSV file.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from pathlib import Path

from autograder.grading.marks import Result, counts
from autograder.grading.source import Lecture
from autograder.grading.text import clean

from . import pages
from .folder import ClassFolder
from .roster import Student


class Format(StrEnum):
    """The export formats; the value is the name on the command line."""

    CSV = "csv"
    QUESTIONS = "questions"
    JSON = "json"
    CANVAS = "canvas"
    MOODLE = "moodle"


# Where a formula would begin; joiners cannot be seen, and quotation marks may enclose nothing.
_FORMULA = re.compile(r'(?:^|(?<=;))(?=[\s"\u200c\u200d]*[=+\-@＝＋－＠])')
# Canvas leaves out every column whose name holds "Current Grade", so a state may stand there.
CANVAS_STATE = "Current Grade (state)"


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
) -> list[Path]:
    """Write the exports; safe to repeat. ``students`` has the students' ids in other systems."""
    written = []
    for form in formats:
        path = path_of(folder, lecture.name, form)
        pages.write(path, _WRITERS[form](lecture, found, students))
        written.append(path)
    return written


def _csv(lecture: Lecture, found: Mapping[str, Result], students: Mapping[str, Student]) -> str:
    rows = [
        [name, one.state, _grade(one.points), _worth(lecture), one.late, _grade(one.off or None)]
        for name, one in found.items()
    ]
    return _table([["student", "state", "points", "worth", "late", "points taken off"], *rows])


def _questions(lecture: Lecture, found: Mapping[str, Result], students: Mapping[str, Student]) -> str:
    rows = [["student", "state", "exercise", "points", "worth", "mistake", "points by tests", "comment"]]
    for name, one in found.items():
        marks = {mark.exercise: mark for mark in one.marks} if one.points is not None else {}
        for exercise in lecture.parts:
            mark = marks.get(exercise.name)
            waits = mark is not None and mark.open and mark.tests is None
            points = None if mark is None or waits else mark.points
            earned = [_grade(points), f"{exercise.points:g}", (mark and mark.mistake) or ""]
            earned += [_grade(mark.tests) if mark else "", mark.comment if mark else ""]
            rows.append([name, one.state, exercise.name, *earned])
    return _table(rows)


def _json(lecture: Lecture, found: Mapping[str, Result], students: Mapping[str, Student]) -> str:
    content = {
        "lecture": lecture.name,
        "worth": lecture.points,
        "counts": {str(state): count for state, count in counts(found).items()},
        "students": [
            {
                "student": name,
                "state": str(one.state),
                "points": one.points,
                "exercises": [
                    {"exercise": m.exercise, "points": m.points, "worth": m.worth, "mistake": m.mistake}
                    | ({"points by tests": m.tests} if m.tests is not None else {})
                    | ({"comment": m.comment} if m.comment else {})
                    for m in (one.marks if one.points is not None else ())
                ],
                "notes": list(one.notes),
                "comment": one.comment,
                "until": one.until,
                "late": one.late,
                "points taken off": one.off,
            }
            for name, one in found.items()
        ],
    }
    return json.dumps(content, indent=1) + "\n"


def _canvas(lecture: Lecture, found: Mapping[str, Result], students: Mapping[str, Student]) -> str:
    head = ["Student", "ID", "SIS Login ID", "Section", lecture.name, CANVAS_STATE]
    rows = [head, ["Points Possible", "", "", "", _worth(lecture), "(read only)"]]
    for name, one in found.items():
        who = students.get(name) or Student(name)
        known = [who.name or name, who.canvas_id, who.login or name, who.section]
        rows.append([*known, _grade(one.points), one.state])
    return _table(rows)


def _moodle(lecture: Lecture, found: Mapping[str, Result], students: Mapping[str, Student]) -> str:
    rows = [["Username", "ID number", "Email address", lecture.name, "State"]]
    for name, one in found.items():
        who = students.get(name) or Student(name)
        rows.append([who.login or name, who.id_number, who.email, _grade(one.points), one.state])
    return _table(rows)


_WRITERS: dict[Format, Callable[[Lecture, Mapping[str, Result], Mapping[str, Student]], str]] = {
    Format.CSV: _csv,
    Format.QUESTIONS: _questions,
    Format.JSON: _json,
    Format.CANVAS: _canvas,
    Format.MOODLE: _moodle,
}


def _grade(points: float | None) -> str:
    return "" if points is None else f"{points:g}"


def _worth(lecture: Lecture) -> str:
    return f"{lecture.points:g}"


def _table(rows: Iterable[Iterable[str]]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, quoting=csv.QUOTE_ALL).writerows([[cell(text) for text in row] for row in rows])
    return buffer.getvalue()


def cell(text: str) -> str:
    """Text for a CSV cell: no spreadsheet takes it, or what follows a semicolon in it, for a formula.

    Where numbers have a decimal comma, spreadsheets split a line at semicolons, whatever is in quotation marks after a
    comma. Nothing in the text is hidden.
    """
    return _FORMULA.sub("'", clean(str(text), keep=""))

"""Who is in the class: everybody in ``roster.csv``, and everybody who handed something in.

``FOLDER/roster.csv`` (or another file) has a column ``student``, the name of the folder in ``submitted/``, and any of
``name``, ``email``, ``id_number``, ``canvas_id``, ``login`` and ``section``, by which Canvas and Moodle know students.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, fields
from pathlib import Path

FILE = "roster.csv"


class RosterError(Exception):
    """A roster that cannot be read: says which line, and what to do."""


@dataclass(frozen=True)
class Student:
    """One student; what is not known is empty."""

    student: str
    name: str = ""
    email: str = ""
    id_number: str = ""
    canvas_id: str = ""
    login: str = ""
    section: str = ""


def read(path: Path) -> list[Student]:
    """The students in a file. Raises :class:`RosterError` where there is no column ``student``, or no folder's name."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            rows = list(reader)
            columns = {name.strip().lower() for name in reader.fieldnames or ()}
    except (UnicodeDecodeError, csv.Error) as error:
        raise RosterError(f"{path} is no CSV in UTF-8 ({error})\n  → save it as such") from error
    if "student" not in columns:
        raise RosterError(f"{path} has no column `student`\n  → name the column with the folders' names so")
    known = {field.name for field in fields(Student)}
    found: dict[str, Student] = {}
    for number, row in enumerate(rows, 2):
        values = {key.strip().lower(): (value or "").strip() for key, value in row.items() if isinstance(key, str)}
        student = values.get("student", "")
        if not student or "/" in student or "\0" in student or student.startswith("."):
            raise RosterError(f"{path}:{number}: {student!r} cannot be a folder in submitted/\n  → correct that line")
        if student in found:
            raise RosterError(f"{path}:{number}: {student} is there twice\n  → delete one of the lines")
        found[student] = Student(**{key: value for key, value in values.items() if key in known})
    return list(found.values())


def of(course: Path, lecture: str, path: Path | None = None) -> dict[str, Student]:
    """Everybody by name: in the roster (``path``, else ``roster.csv`` where there is one), submitted/ or results/."""
    if not course.is_dir():
        raise FileNotFoundError(f"{course} is missing: `course init {course}` makes a course directory")
    file = path or course / FILE
    listed = {student.student: student for student in read(file)} if path or file.exists() else {}
    folders = {p.name for p in (course / "submitted").glob("*") if p.is_dir()}
    graded = {p.stem for p in (course / "results" / lecture).glob("*.json")}
    names = {*listed, *(name for name in folders | graded if not name.startswith("."))}
    return {name: listed.get(name) or Student(name) for name in sorted(names)}

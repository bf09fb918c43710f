"""Who is in the class: everybody in ``roster.csv``, and everybody who handed something in or was graded.

``FOLDER/roster.csv`` (or another file) is as nbgrader's: ``id`` is the name of the folder in ``submitted/``. Where they
are there, the gradebook and exports use ``first_name`` and ``last_name`` (exports alone: or ``name``), ``email`` and
``lms_user_id`` (Canvas' ID); exports ``id_number`` (Moodle's), ``login`` and ``section``.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from autograder import CourseError

from .folder import ClassFolder


class RosterError(CourseError):
    """A roster that cannot be read: says which line, and what to do."""


@dataclass(frozen=True)
class Student:
    """One student; what is not known is empty. ``listed`` is False for who is in no roster, and there all the same."""

    student: str
    name: str = ""
    email: str = ""
    id_number: str = ""
    canvas_id: str = ""
    login: str = ""
    section: str = ""
    first_name: str = ""
    last_name: str = ""
    listed: bool = True


def read(path: Path) -> list[Student]:
    """The students in a file. Raises :class:`RosterError` where it has no column ``id``, or one that is no folder."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            rows = list(reader)
            columns = [name.strip().lower() for name in reader.fieldnames or ()]
    except (UnicodeDecodeError, csv.Error) as error:
        raise RosterError(f"{path} is no CSV in UTF-8 ({error})\n  → save it as such") from error
    column = next((name for name in ("id", "student_id", "student") if name in columns), None)
    if column is None:
        raise RosterError(f"{path} has no column `id`\n  → its first line names the columns; one is id")
    found: dict[str, Student] = {}
    for row in rows:
        values = {key.strip().lower(): (value or "").strip() for key, value in row.items() if isinstance(key, str)}
        student = values.get(column, "")
        if not student or student in found:
            continue
        if _odd(student):
            raise RosterError(f"{path}: {student!a} cannot be a folder in submitted/\n  → correct that line")
        found[student] = Student(
            student,
            name=values.get("name") or f"{values.get('first_name', '')} {values.get('last_name', '')}".strip(),
            email=values.get("email", ""),
            id_number=values.get("id_number", ""),
            canvas_id=values.get("lms_user_id", ""),
            login=values.get("login", ""),
            section=values.get("section", ""),
            first_name=values.get("first_name", ""),
            last_name=values.get("last_name", ""),
        )
    return list(found.values())


def of(folder: ClassFolder, lecture_name: str, path: Path | None = None) -> dict[str, Student]:
    """Everybody by name: in the roster (``path``, else ``roster.csv`` where there is one), handed in, or graded."""
    folder.require()
    file = path or folder.roster
    listed = {student.student: student for student in read(file)} if path or file.exists() else {}
    others = folder.present(lecture_name) - listed.keys()
    if odd := sorted(filter(_odd, others)):
        raise RosterError(
            f"these are no names for a student: {', '.join(map(ascii, odd))}\n"
            "  → rename the folders in submitted/: printable characters, no slash, no first dot"
        )
    return dict(sorted((listed | {name: Student(name, listed=False) for name in others}).items()))


def _odd(name: str) -> bool:
    return "/" in name or not name.isprintable() or name.startswith(".")

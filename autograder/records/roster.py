"""The members of a class: everybody in ``roster.csv``, and everybody who handed something in or was graded.

``FOLDER/roster.csv`` (or another file) has nbgrader's format: ``id`` is the name of the folder in ``submitted/``. All
other columns are optional. The gradebook and exports use ``first_name`` and ``last_name``, ``email`` and
``lms_user_id`` (Canvas' ID). Only exports use ``name`` (if the other two are missing), ``id_number`` (Moodle's),
``login`` and ``section``. `course collect` finds students by all of these, and by ``also``: other names, logins and
Canvas IDs, separated by semicolons. ``extra_days`` extend all of a student's due dates.

Canvas' gradebook and Moodle's list of participants are read as they were downloaded. In a file without a column ``id``,
it's the login, the ID number or the email address: the first of these that anybody has; then everybody needs it.
"""

from __future__ import annotations

import csv
import difflib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from autograder import CourseError
from autograder.grading.text import clean, one_line

from .folder import ClassFolder, some

# Letters that aren't another one with an accent. Some systems write them, and ä, ö and ü, with an e.
_LETTERS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ı": "i", "æ": "a", "œ": "o", "þ": "th"})


class RosterError(CourseError):
    """A roster can't be read; the message says which line and what to do."""


@dataclass(frozen=True)
class Student:
    """One student; unknown fields are empty. ``listed`` is False for a student who isn't in the roster."""

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
    also: tuple[str, ...] = ()
    extra_days: int = 0


_COLUMNS = {"id", "student_id", "student", "name", "first_name", "last_name", "email", "id_number", "lms_user_id"}
_COLUMNS |= {"login", "section", "also", "extra_days"}
# What other systems call these columns. The names in `_CANVAS` mean that only beside the last one.
_CANVAS = {"student": "name", "id": "lms_user_id", "sis_user_id": "id_number", "sis_login_id": "login"}
_MOODLE = {"username": "login", "email_address": "email", "surname": "last_name", "full_name": "name"}
_NOBODY = ("Points Possible", "Student, Test")  # in Canvas' gradebook


def read(path: Path) -> list[Student]:
    """The students in a file.

    Raises :class:`RosterError` if nothing can serve as ``id``, another column's name is misspelled, or a student has
    two different lines.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            file.seek(0)
            # Where a comma is the decimal sign, Excel separates columns by semicolons.
            reader = csv.DictReader(file, delimiter=";" if first.count(";") > first.count(",") else ",")
            rows = list(reader)
            named = {name: _column(name) for name in reader.fieldnames or ()}
    except OSError as error:
        raise RosterError(f"{path} cannot be read ({error.strerror})\n  → name a CSV file with a column id") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise RosterError(f"{path} is not a CSV file in UTF-8 ({error})\n  → save it as one") from error
    theirs = {*named.values()}
    canvas = {"student", "sis_login_id"} <= theirs
    ours = _CANVAS if canvas else {name: our for name, our in _MOODLE.items() if our not in theirs}
    columns = {name: ours.get(column, column) for name, column in named.items()}
    lines = [{columns[key]: (value or "").strip() for key, value in row.items() if key in columns} for row in rows]
    if canvas:  # a row without a student says how assignments are posted
        lines = [_turned(each) for each in lines if each["name"] not in ("", *_NOBODY)]
    column = next((name for name in ("id", "student_id", "student") if name in columns.values()), "")
    for other in ("login", "id_number", "email"):  # not another one because somebody lacks it: all ids would change
        column = column or other * any(each.get(other) for each in lines)
    if not column:
        there = f": it has {some([name[:40] for name in named.values()])}" if named else ""
        advice = "its first line must name the columns, one of them id; or else every student needs a login"
        raise RosterError(f"{path} has no column `id`{there}\n  → {advice}")
    for name in columns.values():
        missing = _COLUMNS - {*columns.values()}
        if name not in _COLUMNS and (meant := difflib.get_close_matches(name, missing, 1, 0.85)):
            raise RosterError(f"{path} has a column {name!a:.40}\n  → call it {meant[0]}, or something else")
    found: dict[str, Student] = {}
    seen: dict[str, dict[str, str]] = {}
    for number, row in enumerate(rows, 1):
        if any(row.get(None) or ()):
            raise RosterError(
                f"{path}: student {number} has more values than there are columns\n  → put quotation marks around a "
                "value that contains a separator"
            )
    for number, values in enumerate(lines, 1):
        if not (student := values.get(column, "")):
            if any(map(values.get, ("name", "first_name", "last_name", "email", "login"))):
                raise RosterError(f"{path}: student {number} has no {column}\n  → add it, or remove that line")
            continue
        known = {key: value for key, value in values.items() if key in _COLUMNS}
        if seen.setdefault(student, known) != known:
            raise RosterError(f"{path} has two different lines for {one_line(student)}\n  → keep one")
        if _odd(student):
            raise RosterError(
                f"{path}: {student!a} cannot be the name of a folder in submitted/\n  → correct that line"
            )
        if not re.fullmatch(r"[0-9]{0,3}", extra := values.get("extra_days", "")):
            raise RosterError(
                f"{path}: extra_days of {student} is {extra!r:.40}\n  → make it a number of days, or empty"
            )
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
            also=tuple(filter(None, map(str.strip, values.get("also", "").split(";")))),
            extra_days=int(extra or 0),
        )
    return list(found.values())


def _turned(line: dict[str, str]) -> dict[str, str]:
    """A line of Canvas' gradebook, which has "Lovelace, Ada", with both names."""
    last, comma, first = line["name"].partition(",")
    return line | {"name": "", "first_name": first.strip(), "last_name": last.strip()} if comma else line


def _column(name: str) -> str:
    """A column's name as it's compared: ``Extra Days`` is ``extra_days``."""
    return re.sub(r"[\s-]+", "_", name.strip().lower())


def of(folder: ClassFolder, lecture_name: str, path: Path | None = None) -> dict[str, Student]:
    """Everybody, by name: on the roster (``path``, or else ``roster.csv`` if there is one), handed in, or graded.

    If there's a roster, others belong to a lecture only if they handed something in for it, or were graded in it.
    A folder whose name can't be a student's is left out; `left_out` lists those.
    """
    folder.require()
    file = path or folder.roster
    listed = {student.student: student for student in read(file)} if path or file.exists() else {}
    others = {name for name in folder.present(lecture_name) - listed.keys() if not _odd(name)}
    if listed:  # somebody who left counts only where there's work of theirs
        others = {name for name in others if folder.has_work(name, lecture_name)}
    return dict(sorted((listed | {name: Student(name, listed=False) for name in others}).items()))


def name_of(student: str, students: Mapping[str, Student]) -> str:
    """A student's name on the roster, or "" if there's none."""
    return students[student].name if student in students else ""


def called(student: str, students: Mapping[str, Student]) -> str:
    """A student's id, and the name on the roster behind it where there is one: ``ada (Ada Lovelace)``."""
    name = name_of(student, students)
    return one_line(f"{student} ({name})" if name else student)


def left_out(folder: ClassFolder, lecture_name: str) -> list[str]:
    """Messages about what is in ``submitted/`` and belongs to no student: notebooks, and folders with odd names."""
    belongs = one_line(str(folder.submission("STUDENT", lecture_name)))
    return [
        f"{one_line(name)} is in submitted/ itself, so it is not graded: it belongs to a student, in {belongs}"
        for name in folder.stray(lecture_name)
    ] + [
        f"{name!a} in submitted/ cannot be a student's name, so it is not graded: rename the folder (no leading "
        "dot, no control characters, and none that hide or reorder text)"
        for name in sorted(filter(_odd, folder.present(lecture_name)))
    ]


def unknown(folder: ClassFolder, lecture_name: str, name: str, students: Iterable[Student]) -> str:
    """The message that no student has this name, and who may be meant."""
    near = Directory(students).near(name)
    meant = f"{' or '.join(map(one_line, near))}? " if near else ""
    return (
        f"there is no student {one_line(name)!r} in {folder}\n"
        f"  → {meant}`course show {folder} {lecture_name}` lists them all"
    )


class Directory:
    """Finds students by what other systems call them. Each method returns all candidates; a single one is a match."""

    def __init__(self, students: Iterable[Student]) -> None:
        self._ids: set[str] = set()
        self._called: dict[str, str] = {}
        self._logins: dict[str, set[str]] = defaultdict(set)
        self._names: dict[str, set[str]] = defaultdict(set)  # ignoring case, and all but letters and digits
        self._shortened: dict[str, set[str]] = defaultdict(set)  # as other systems shorten them
        self._also: dict[str, set[str]] = defaultdict(set)
        self._canvas: dict[str, set[str]] = defaultdict(set)
        self._numbers: dict[str, str] = {}
        for one in students:
            self._ids.add(one.student)
            self._called[one.student] = _letters(one.name)
            for login in filter(None, (one.student, one.login, one.email, *one.also)):
                self._logins[login.casefold()].add(one.student)
            for name in one.also:
                self._also[name].add(one.student)
            for name in _names(one):
                self._names[_letters(name)].add(one.student)
                for short in (_without_accents(name), _ascii(name)):
                    self._shortened[_letters(short)].add(one.student)
            for number in filter(None, (one.canvas_id, *filter(str.isdecimal, one.also))):
                self._canvas[number].add(one.student)
            if one.canvas_id:
                self._numbers[one.student] = one.canvas_id

    def name(self, student: str) -> str:
        """A student's name on the roster, ignoring case and all but letters and digits."""
        return self._called.get(student, "")

    @property
    def logins(self) -> list[str]:
        """Every id, login, email address and other name, in lower case."""
        return list(self._logins)

    def by_login(self, login: str) -> set[str]:
        """The student with exactly this id, or else all with this id, login, address or other name, ignoring case."""
        return {login} if login in self._ids else set(self._logins.get(login.casefold(), ()))

    def by_name(self, name: str) -> set[str]:
        """The students with this name, in either order of its parts, or else those whose name was shortened to it.

        If one student has exactly this name in ``also``, it's that one: a person has written it there to say so.
        """
        if not (key := _letters(name)):
            return set()
        if len(said := self._also.get(name, set())) == 1:
            return set(said)
        short = _letters(_without_accents(name))
        return set(self._names.get(key) or self._shortened.get(key, set()) | self._shortened.get(short, set()))

    def near(self, name: str, cutoff: float = 0.6) -> list[str]:
        """The students with this id, login or name, or else those whose ids are as similar as ``cutoff`` says.

        Of an address, what follows the @ need not be given, and counts for no similarity.
        """
        exact = self.by_login(name) | self.by_name(name)
        short = {each.partition("@")[0]: each for each in sorted(self._ids)}
        same = [short[name]] if name in short else []
        alike = difflib.get_close_matches(name.partition("@")[0], sorted(short), cutoff=cutoff)
        return sorted(exact or same or [short[each] for each in alike])

    def by_number(self, number: str) -> set[str]:
        """The students with this Canvas ID, in ``lms_user_id`` or ``also``."""
        return set(self._canvas.get(number, ()))

    def by_canvas(self, number: str, name: str) -> set[str]:
        """The student with this Canvas ID, or else those with this name who have no ID on the roster."""
        return self.by_number(number) or self.by_name(name) - self._numbers.keys()

    def numbered(self, name: str) -> dict[str, str]:
        """The students with this name who have a Canvas ID on the roster, each with that ID."""
        return {each: self._numbers[each] for each in sorted(self.by_name(name) & self._numbers.keys())}


def _names(one: Student) -> list[str]:
    """What other systems may call a student: each name in either order of its parts, the email and ID number."""
    names = (one.name, f"{one.first_name} {one.last_name}", *one.also)
    return [*(turned for name in names for turned in _orders(name)), one.email, one.id_number]


def words(*names: str) -> set[str]:
    """The words of names as they compare between systems: without case, accents and single letters of ASCII."""
    plain = _without_accents(" ".join(names).casefold()).translate(_LETTERS)
    return {re.sub("([aou])e", r"\1", word) for word in re.findall(r"[^\W\d_]{2,}|[^\W\d_a-z]", plain)}


def _orders(name: str) -> list[str]:
    """A name, and the same with its last parts first: systems that sort by last names write those first."""
    parts = name.replace(",", " ").split()
    return [name, *(" ".join(parts[cut:] + parts[:cut]) for cut in range(1, len(parts)))]


def _letters(name: str) -> str:
    """A name's letters and digits, ignoring case: systems write the rest differently, or omit it from file names."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", name.casefold()))


def _without_accents(name: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c))


def _ascii(name: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFC", name) if c.isascii())


def _odd(name: str) -> bool:
    return "/" in name or clean(name, keep="") != name or name.startswith(".")

"""Grades in the form that Canvas' and Moodle's importers read, and what importing them would change.

The rules come from the importers' own code: ``lib/gradebook_importer.rb`` of github.com/instructure/canvas-lms and
``grade/import/csv/classes/load_data.php`` of github.com/moodle/moodle. For both, an empty cell deletes a student's
grade. So students without a final grade are left out, which leaves their grades unchanged.
"""

from __future__ import annotations

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autograder import CourseError
from autograder.grading.marks import Result, State
from autograder.grading.source import Lecture
from autograder.grading.text import clean, one_line

from .folder import some
from .roster import Student, words

Table = list[list[str]]

NO_GRADE = "no grade"
# Canvas ignores every column with one of these in its name, and takes the names below for columns about the student.
_NOT_ASSIGNMENTS = re.compile(
    "Current (Score|Points|Grade)|Final (Score|Points|Grade)|Override (Score|Grade|Status)|Points Possible"
)
_ABOUT_STUDENTS = {
    "student", "lastname", "firstname", "id", "sis user id", "sis login id", "section", "integration id",
    "root account", "username", "id number", "email address",
}  # fmt: skip
# What a gradebook from Moodle says of a student, beside the grades.
_IN_MOODLE = {
    "first name", "last name", "surname", "full name", "username", "id number", "institution", "department",
    "email address", "last downloaded from this course",
}  # fmt: skip
_TITLE_AND_ID = re.compile(r"(.*)\s\(([0-9]+)\)", re.DOTALL)
# Where a formula would begin, perhaps after invisible joiners or empty quotation marks.
_FORMULA = re.compile(r'(?:^|(?<=;))(?=[\s"\u200c\u200d]*[=+\-@＝＋－＠])')


class ExportError(CourseError):
    """Grades can't be exported under this title, or a downloaded gradebook can't be read; the message says why."""


def cell(text: str) -> str:
    """Clean text for a CSV cell, such that no spreadsheet takes it, or what follows a semicolon in it, for a formula.

    In locales with a decimal comma, spreadsheets split lines at semicolons, even within quotation marks after a comma.
    """
    return _FORMULA.sub("'", clean(str(text), keep=""))


def check_title(title: str) -> str:
    """The title, if both Canvas and Moodle accept it as an assignment's. Raises :class:`ExportError` if not."""
    if not title.strip() or title.lower() in _ABOUT_STUDENTS or _NOT_ASSIGNMENTS.search(title) or cell(title) != title:
        raise ExportError(
            f"no assignment can have the title {title!r:.80}: Canvas, Moodle or a spreadsheet would take such a column "
            "for something else\n  → give the assignment another title there, and pass that to --title"
        )
    return title


def final(found: Mapping[str, Result], students: Mapping[str, Student]) -> dict[str, Result]:
    """The results to export to other systems: graded, not waiting for review, and on the roster if there is one."""
    return {name: found[name] for name in found if not _reason(found[name], students)}


def left_out(found: Mapping[str, Result], students: Mapping[str, Student]) -> dict[str, list[str]]:
    """The students who are not in the files for other systems, by reason."""
    names: dict[str, list[str]] = {}
    for name, one in found.items():
        if reason := _reason(one, students):
            names.setdefault(reason, []).append(name)
    return names


def _reason(one: Result, students: Mapping[str, Student]) -> str:
    if one.state is not State.GRADED:
        return str(one.state)
    who = students.get(one.student)
    rostered = any(each.listed for each in students.values())
    return "not on the roster" if rostered and not (who and who.listed) else ""


def canvas(lecture: Lecture, found: Mapping[str, Result], students: Mapping[str, Student], title: str = "") -> Table:
    """The table for Canvas, which finds students by ``ID``, then by login, then by name.

    ``title`` is the assignment's, ideally with its number, as in a downloaded gradebook: ``Tensors (4711)``. For an
    unknown title, Canvas creates a new assignment. Raises :class:`ExportError` for an impossible title.
    """
    head = ["Student", "ID", "SIS Login ID", "Section", check_title(title or lecture.name)]
    rows = [head, ["Points Possible", "", "", "", f"{lecture.points:g}"]]
    for name, one in final(found, students).items():
        who = students.get(name) or Student(name)
        # Canvas parses only the leading digits of an ID, so 17b would be taken for somebody else's 17.
        number = who.canvas_id if re.fullmatch("[0-9]+", who.canvas_id) else ""
        rows.append([who.name or name, number, who.login or name, who.section, f"{one.points:g}"])
    return rows


def moodle(lecture: Lecture, found: Mapping[str, Result], students: Mapping[str, Student], title: str = "") -> Table:
    """The table for Moodle, where the importing person picks the column that identifies students, ideally ``Username``.

    If the identifying cell of a row is empty or 0, Moodle assigns the row to the previous row's student. So ``ID
    number`` and ``Email address`` are included only if every student has a different one.
    """
    final_ones = final(found, students)
    who = [students.get(name) or Student(name) for name in final_ones]
    columns = [("Username", [(one.login or one.student).lower() for one in who])]  # Moodle's usernames are lowercase
    for head, values in (("ID number", [one.id_number for one in who]), ("Email address", [one.email for one in who])):
        if not {"", "0"} & {*values} and len({*values}) == len(values):
            columns.append((head, values))
    grades = [f"{one.points:g}" for one in final_ones.values()]
    columns.append((check_title(title or lecture.name), grades))
    return [[head for head, _ in columns], *map(list, zip(*(values for _, values in columns), strict=True))]


@dataclass(frozen=True)
class Comparison:
    """What an import would do: ``changes`` has (student, old grade, new grade), ``problems`` what would go wrong."""

    system: str
    changes: list[tuple[str, str, str]] = field(default_factory=list)
    same: int = 0
    problems: list[str] = field(default_factory=list)


def compare(
    path: Path, lecture: Lecture, found: Mapping[str, Result], students: Mapping[str, Student], title: str = ""
) -> Comparison:
    """What an import would change in a gradebook downloaded from Canvas or Moodle.

    Raises :class:`ExportError` if the file isn't such a gradebook, or can't be read.
    """
    table = _read(path)
    who = [students.get(name) or Student(name) for name in final(found, students)]
    if _is_canvas(table[0]):
        return _compare_canvas(table, who, canvas(lecture, found, students, title))
    return _compare_moodle(path, table, who, moodle(lecture, found, students, title))


def _read(path: Path) -> Table:
    """A downloaded table with a header, separated by commas, semicolons or tabs."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            file.seek(0)
            separator = max(",;\t", key=first.count)
            rows = [[text.strip() for text in row] for row in csv.reader(file, delimiter=separator) if any(row)]
    except OSError as error:
        raise ExportError(
            f"{path} cannot be read ({error.strerror})\n  → name the CSV file that you downloaded from Canvas or Moodle"
        ) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise ExportError(f"{path} is not a CSV file in UTF-8 ({error})\n  → download it again as CSV") from error
    if not rows:
        raise ExportError(f"{path} is empty\n  → download the gradebook from Canvas or Moodle as CSV")
    return [row + [""] * (len(rows[0]) - len(row)) for row in rows]


def _is_canvas(head: list[str]) -> bool:
    return "Section" in head and (head[:2] == ["Student", "ID"] or head[:3] == ["LastName", "FirstName", "ID"])


@dataclass(frozen=True)
class _Line:
    """One person in a downloaded gradebook.

    ``codes`` has, by column, the login, email address and numbers with which it may agree with the roster.
    """

    name: str
    codes: Mapping[str, str]
    before: str

    @property
    def called(self) -> str:
        """What to call this person in a message."""
        return one_line(self.name or next(filter(None, self.codes.values()), "somebody else"))


# The roster's columns for those of a gradebook.
_COLUMN = {
    "ID": "lms_user_id", "SIS Login ID": "login", "Username": "login", "ID number": "id_number",
    "Email address": "email",
}  # fmt: skip


class _People:
    """The people in a gradebook, to find out whether one who was found is the student on the roster."""

    def __init__(self, lines: Sequence[_Line]) -> None:
        self._lines = lines
        self._with: dict[str, list[int]] = defaultdict(list)
        for place, line in enumerate(lines):
            for word in words(line.name):
                self._with[word].append(place)

    def doubt(self, who: Student, place: int, column: str, value: str) -> str:
        """Why the person found by this value is somebody else, and what to correct; "" if nothing says so.

        It's the same person if any word of the name agrees, or anything else. But if Canvas' ID finds somebody who has
        a name in common, and another line has more of the student's name, the ID is that of a namesake; and so it is if
        another line has the student's login, and this one somebody else's.
        """
        line = self._lines[place]
        ours, theirs = words(who.name, *who.also), words(line.name)
        codes = {each: code for each, code in line.codes.items() if each != column and code}
        known = {*map(_code, filter(None, (who.student, who.login, who.email, who.id_number, *who.also)))}
        namesakes = self._with_login(who.login) if column == "ID" and codes.get("SIS Login ID") else []
        if namesakes and line not in namesakes:
            return self._said(who, line, column, value, namesakes)
        if column == "Student" or (theirs and theirs <= ours) or known & {*map(_code, codes.values())}:
            return ""
        shared = Counter(each for word in ours for each in self._with[word])
        most = max(shared.values(), default=0)
        nearest = [self._lines[each] for each, count in shared.items() if count == most > shared[place]]
        if ours & theirs:
            differs = column == "ID" and bool(nearest)
        else:
            differs = bool(
                (ours and theirs)
                or (who.login and codes.keys() & {"SIS Login ID", "Username"})
                or (who.email and "Email address" in codes)
            )
        if not differs:
            return ""
        if not nearest:
            others = [each for each in self._lines if each is not line]
            nearest = [each for each in others if known & {*map(_code, filter(None, each.codes.values()))}]
        return self._said(who, line, column, value, nearest)

    def _with_login(self, login: str) -> list[_Line]:
        found = (line for line in self._lines if login and line.codes.get("SIS Login ID"))
        return [line for line in found if _code(line.codes["SIS Login ID"]) == _code(login)]

    @staticmethod
    def _said(who: Student, line: _Line, column: str, value: str, nearest: Sequence[_Line]) -> str:
        """The message that somebody else has this value, and what to write instead, if only one of ``nearest`` fits."""
        roster_column, value = _COLUMN[column], one_line(value)
        right = nearest[0].codes.get(column) if len(nearest) == 1 else ""
        which = f"{one_line(right)}, which is {nearest[0].called}," if right else "the right one"
        known_as = "id" if roster_column == "login" and not who.login else roster_column
        return (
            f"{one_line(who.student)}{who.name and f' ({one_line(who.name)})'} has the {known_as} {value} in the "
            f"roster, but in this gradebook {value} is {line.called}, who would get the points: write {which} into the "
            f"column {roster_column}; or, if they are the same person, add {_given(line)} to the column also"
        )


def _given(line: _Line) -> str:
    return one_line(_turned(line.name)) if line.name else line.called


def _code(text: str) -> str:
    """A login or address as far as it has to agree: without what follows an @, which only some systems append."""
    return text.casefold().partition("@")[0]


def _compare_canvas(table: Table, who: Sequence[Student], ours: Table) -> Comparison:
    comparison = Comparison("Canvas")
    head, title, worth = table[0], ours[0][-1], ours[1][-1]
    at = _canvas_column(head, title, comparison.problems)
    divided = head[0] == "LastName"
    by: dict[str, dict[str, int]] = {"ID": {}, "SIS Login ID": {}, "Student": {}}
    lines: list[_Line] = []
    for row in table[1:]:
        if "Points Possible" in row[0]:
            if at is not None and row[at] and not _same(row[at], worth):
                comparison.problems.append(
                    f"the assignment is worth {row[at]} points in Canvas; the import would change that to {worth}"
                )
            continue
        about = dict(zip(head, row, strict=False))
        codes = {column: about.get(column, "") for column in ("ID", "SIS Login ID", "SIS User ID")}
        names_of = [f"{row[1]} {row[0]}", f"{row[0]}, {row[1]}"] if divided else [row[0], _turned(row[0])]
        if not codes["ID"] and not codes["SIS Login ID"]:
            continue  # the row that shows which assignments have a manual posting policy
        place = len(lines)
        lines.append(_Line(names_of[divided], codes, row[at] if at is not None else ""))
        by["ID"][codes["ID"]] = place
        by["SIS Login ID"][codes["SIS Login ID"]] = place
        for each in names_of:
            by["Student"].setdefault(each, place)
    taken: dict[int, str] = {}
    people = _People(lines)
    for one, row in zip(who, ours[2:], strict=True):
        places = (
            (column, value, by[column].get(value))
            for column, value in (("ID", row[1]), ("SIS Login ID", row[2]), ("Student", row[0]))
            if value
        )
        column, value, place_of = next((each for each in places if each[2] is not None), ("", "", None))
        if place_of is None:
            comparison.problems.append(
                f"{one_line(one.student)} is not in this gradebook, so Canvas would ask who that is: correct "
                "lms_user_id or login in the roster, or delete the line of a student who has left"
            )
        elif doubt := people.doubt(one, place_of, column, value):
            comparison.problems.append(doubt)
        elif place_of in taken:
            comparison.problems.append(
                f"{one_line(one.student)} and {one_line(taken[place_of])} are the same person in this gradebook"
            )
        else:
            taken[place_of] = one.student
            _note(comparison, one.student, lines[place_of].before, row[-1])
    return _counted(comparison, len(taken))


def _canvas_column(head: list[str], title: str, problems: list[str]) -> int | None:
    """The index of an assignment's column in a Canvas gradebook, found by its number or by its title."""
    found = [(column, _TITLE_AND_ID.fullmatch(column)) for column in head]
    if wanted := _TITLE_AND_ID.fullmatch(title):
        for at, (_, match) in enumerate(found):
            if match and match[2] == wanted[2]:
                return at
    same = [at for at, (column, match) in enumerate(found) if title in (column, match and match[1])]
    if len(same) > 1:
        problems.append(f"{len(same)} assignments are called {title!r} in this gradebook: pass --title with the number")
    elif not same:
        others = ", ".join(repr(column) for column, match in found if match and not _NOT_ASSIGNMENTS.search(column))
        problems.append(
            f"no assignment is called {title!r} in this gradebook, so Canvas would create one; for an existing one, "
            f"pass --title with one of {one_line(others) or 'its assignments'}"
        )
    return same[0] if len(same) == 1 else None


def _turned(name: str) -> str:
    last, _, first = name.partition(", ")
    return f"{first} {last}".strip()


def _compare_moodle(path: Path, table: Table, who: Sequence[Student], ours: Table) -> Comparison:
    comparison = Comparison("Moodle")
    head = [column.lower() for column in table[0]]
    column = next((each for each in ours[0][:-1] if each.lower() in head), None)
    if column is None:
        raise ExportError(
            f"{path} is not a gradebook from Canvas, and has none of the columns that Moodle's would: "
            f"{', '.join(ours[0][:-1])}\n  → export the grades from Moodle in English, as a plain text file"
        )
    title = ours[0][-1]
    stripped = [re.sub(r" \(Real\)$", "", each) for each in table[0]]
    same = [at for at, each in enumerate(stripped) if each == title or each.endswith(f": {title}")]
    if len(same) != 1:
        problem = "no grade item is" if not same else f"{len(same)} grade items are"
        items = [each for each in stripped if each.lower() not in _IN_MOODLE]
        comparison.problems.append(
            f"{problem} called {title!r} in this gradebook: choose one in Moodle, or pass another --title (it has "
            f"{some(items) or 'none'})"
        )
    at, ours_at = head.index(column.lower()), ours[0].index(column)
    lines: list[_Line] = []
    rows: dict[str, int] = {}
    for row in table[1:]:
        about = dict(zip(head, row, strict=False))
        name = " ".join(filter(None, map(about.get, ("first name", "last name", "surname", "full name"))))
        codes = {each: about.get(each.lower(), "") for each in ("Username", "ID number", "Email address")}
        before = row[same[0]].replace(",", ".") if len(same) == 1 else ""
        rows[row[at]] = len(lines)
        lines.append(_Line(name, codes, before))
    taken: dict[str, str] = {}
    people = _People(lines)
    for one, row in zip(who, ours[1:], strict=True):
        place = rows.get(row[ours_at])
        if place is None:
            comparison.problems.append(
                f"{one_line(one.student)} is not in this gradebook as {column} {one_line(row[ours_at])}: Moodle "
                "imports nothing at all if it doesn't know a user"
            )
        elif doubt := people.doubt(one, place, column, row[ours_at]):
            comparison.problems.append(doubt)
        elif (key := row[ours_at]) in taken:
            comparison.problems.append(
                f"{one_line(one.student)} and {one_line(taken[key])} are the same person in this gradebook"
            )
        else:
            taken[key] = one.student
            _note(comparison, one.student, lines[place].before, row[-1])
    return _counted(comparison, len(taken))


def _note(comparison: Comparison, name: str, before: str, after: str) -> None:
    before = "" if before == "-" else before
    if not _same(before, after):
        comparison.changes.append((name, before or NO_GRADE, after))


def _counted(comparison: Comparison, matched: int) -> Comparison:
    return Comparison(comparison.system, comparison.changes, matched - len(comparison.changes), comparison.problems)


def _same(before: str, after: str) -> bool:
    """Whether two grades are equal to two decimals, the precision at which Canvas compares them and both show them."""
    try:
        return round(float(before), 2) == round(float(after), 2)
    except ValueError:
        return before == after

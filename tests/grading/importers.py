"""What Canvas and Moodle do with a file of grades, after the code of their importers.

Canvas: lib/gradebook_importer.rb of https://github.com/instructure/canvas-lms (commit 00b222d); a guide to it is
https://teaching.resources.osu.edu/toolsets/carmencanvas/guides/calculating-final-grades/import-csv-file-carmen-grades.
Moodle: grade/import/csv/classes/load_data.php of https://github.com/moodle/moodle (commit 0289d8c), described by
https://docs.moodle.org/311/en/Grade_import; that a username is in lower case is from login/signup_form.php's rules.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass, field


class Refused(Exception):
    """The importer takes nothing of the file."""


@dataclass
class Person:
    number: str
    name: str  # sortable, as `Lovelace, Ada`
    login: str = ""
    email: str = ""
    id_number: str = ""
    section: str = "A"


@dataclass
class Canvas:
    people: list[Person]
    titles: dict[str, str]  # by number
    worth: dict[str, str] = field(default_factory=dict)  # by title
    grades: dict[tuple[str, str], str] = field(default_factory=dict)  # by the person's number and the title
    asks_about: list[str] = field(default_factory=list)

    def download(self) -> str:
        """The gradebook as a CSV file, as app/…/gradebook_exporter.rb writes it."""
        out = io.StringIO()
        write = csv.writer(out).writerow
        columns = [f"{title} ({number})" for number, title in self.titles.items()]
        write(["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *columns, "Current Score", "Final Score"])
        write(["", "", "", "", "", *("Manual Posting" for _ in columns), "", ""])
        worth = [self.worth.get(title, "") for title in self.titles.values()]
        write(["    Points Possible", "", "", "", "", *worth, "(read only)", "(read only)"])
        for one in self.people:
            grades = [self.grades.get((one.number, title), "") for title in self.titles.values()]
            write([one.name, one.number, one.id_number, one.login, one.section, *grades, "", ""])
        return "\ufeff" + out.getvalue()

    def upload(self, text: str) -> None:
        rows = list(csv.reader(io.StringIO(text)))
        head = rows[0]
        if not (len(head) > 3 and "Student" in head[0] and "ID" in head[1]):
            raise Refused("Invalid header row")
        about = 3 + (head[2] == "SIS Login ID") + 2 * (head[2:4] == ["SIS User ID", "SIS Login ID"])
        if "Section" not in head[about - 1]:
            raise Refused("Invalid header row")
        ignored = r"(Current|Final) (Score|Points|Grade)|Override (Score|Grade|Status)"
        assignments = [column for column in head[about:] if not re.search(ignored, column)]
        place = {column: head.index(column) for column in assignments}
        title_of = {column: self._title(column) for column in assignments}
        for row in rows[1:]:
            if "Points Possible" in row[0]:
                self.worth |= {title_of[each]: row[place[each]] for each in assignments if row[place[each]]}
                continue
            if (who := self._who(row, head)) is None:
                self.asks_about.append(row[0])
                continue
            for column in assignments:
                key = (who.number, title_of[column])
                if grade := row[place[column]].strip():
                    self.grades[key] = grade
                else:
                    self.grades.pop(key, None)  # an empty cell deletes a grade

    def _title(self, column: str) -> str:
        match = re.fullmatch(r"(.*)\s\((\d+)\)", column)
        if match and match[2] in self.titles:
            return self.titles[match[2]]
        if column not in self.titles.values():
            self.titles[f"new {len(self.titles)}"] = match[1] if match else column
        return match[1] if match and column not in self.titles.values() else column

    def _who(self, row: list[str], head: list[str]) -> Person | None:
        number = re.match(r"\s*\d*", row[1])
        by_number = [one for one in self.people if number and one.number == number[0].strip()]
        login = row[head.index("SIS Login ID")] if "SIS Login ID" in head else ""
        by_login = [one for one in self.people if login and one.login == login]
        by_name = [one for one in self.people if row[0] in (one.name, " ".join(reversed(one.name.split(", "))))]
        return next(iter([*by_number, *by_login, *by_name]), None)


@dataclass
class Moodle:
    people: list[Person]
    items: list[str]
    grades: dict[tuple[str, str], str] = field(default_factory=dict)  # by login and item

    def download(self) -> str:
        """The gradebook as a plain text file, in English, with usernames."""
        out = io.StringIO()
        write = csv.writer(out).writerow
        items = [f"Assignment: {item} (Real)" for item in self.items]
        write(["Username", "ID number", "Email address", *items, "Last downloaded from this course"])
        for one in self.people:
            grades = [self.grades.get((one.login, item), "-") for item in self.items]
            write([one.login, one.id_number, one.email, *grades, "1700000000"])
        return out.getvalue()

    def upload(self, text: str, map_from: str, map_to: str, grades: dict[str, str]) -> None:
        """Import; ``grades`` says which column is which item."""
        rows = list(csv.reader(io.StringIO(text)))
        head, new, who = rows[0], dict(self.grades), None
        for row in rows[1:]:
            value = row[head.index(map_from)]
            if value not in ("", "0"):  # PHP takes both for empty, and goes on with the user of the row before
                who = next((one for one in self.people if getattr(one, map_to) == value), None)
                if who is None:
                    raise Refused(f"no user {value}")
            if who is None:
                raise Refused("user not found")
            for column, item in grades.items():
                grade = row[head.index(column)].strip()
                if grade in ("", "-"):
                    new.pop((who.login, item), None)
                else:
                    float(grade)
                    new[who.login, item] = grade
        self.grades = new

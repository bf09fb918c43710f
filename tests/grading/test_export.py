"""Grades for others: every format parses, names every state, and gives nobody a zero who has no grade."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from autograder import project
from autograder.cli import app
from autograder.grading import source
from autograder.grading.marks import Mark, Result, State
from autograder.records import export, results, roster
from autograder.records.export import Format
from autograder.records.folder import ClassFolder

STATES = {
    "graded-ada": State.GRADED, "graded-zero": State.GRADED, "review": State.NEEDS_REVIEW,
    "queued": State.QUEUED, "failed": State.FAILED_HERE, "absent": State.NOT_SUBMITTED,
}  # fmt: skip
POINTS = {"graded-ada": 6.0, "graded-zero": 0.0, "review": 1.0}


@pytest.fixture(scope="module")
def lecture() -> source.Lecture:
    return source.read(project.SOLUTIONS / "01_tensors.py")


@pytest.fixture
def found(lecture: source.Lecture) -> dict[str, Result]:
    made = {}
    for name, state in STATES.items():
        # Marks of who failed here must not come through either.
        given = [
            Mark(e.name, float(place < POINTS.get(name, 2.0)), e.points, "✗", "counts, elements\n")
            for place, e in enumerate(lecture.exercises)
        ]
        made[name] = Result(name, lecture.name, state, "", tuple(given), ("a note",))
    return made


def written(course: Path, lecture: source.Lecture, found: dict[str, Result], form: Format) -> list[dict[str, str]]:
    students = roster.of(ClassFolder(course), lecture.name)
    [path] = export.write(ClassFolder(course), lecture, found, students, [form])
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))


def test_csv_has_points_and_state_of_everybody(
    lecture: source.Lecture, found: dict[str, Result], tmp_path: Path
) -> None:
    rows = written(tmp_path, lecture, found, Format.CSV)
    assert {row["student"]: row["state"] for row in rows} == {name: str(state) for name, state in STATES.items()}
    assert {r["student"]: float(r["points"]) for r in rows if r["points"]} == POINTS
    assert {row["worth"] for row in rows} == {f"{sum(e.points for e in lecture.exercises):g}"}


def test_points_by_question_add_up(lecture: source.Lecture, found: dict[str, Result], tmp_path: Path) -> None:
    rows = written(tmp_path, lecture, found, Format.QUESTIONS)
    assert len(rows) == len(STATES) * len(lecture.exercises)
    for name in STATES:
        mine = [row for row in rows if row["student"] == name]
        assert [row["exercise"] for row in mine] == [e.name for e in lecture.exercises]
        if name in POINTS:
            assert sum(float(row["points"]) for row in mine) == POINTS[name]
            assert {row["mistake"] for row in mine} == {"counts, elements\\n"}
        else:
            assert {row["points"] for row in mine} == {row["mistake"] for row in mine} == {""}


def test_json_has_states_points_and_notes_of_everybody(
    lecture: source.Lecture, found: dict[str, Result], tmp_path: Path
) -> None:
    found["\udc80"] = Result("\udc80", lecture.name, State.GRADED, "")  # a folder's name that is no UTF-8
    [path] = export.write(ClassFolder(tmp_path), lecture, found, {}, [Format.JSON])
    content = json.loads(path.read_text(encoding="utf-8"))
    assert sum(content["counts"].values()) == len(content["students"]) == len(found)
    for student in content["students"]:
        one = found[student["student"]]
        assert (student["state"], student["points"], student["notes"]) == (one.state, one.points, list(one.notes))
        assert sum(m["points"] for m in student["exercises"]) == (one.points or 0)
        assert bool(student["exercises"]) == (student["student"] in POINTS)


@pytest.mark.parametrize(
    "start",
    ["=", "+", "-", "@", " =", "\t=", "\r=", "＝", "\u200d=", " \u200c+", "a;=", "a; +", 'a;"=', "a;;\u200d@", "a\n;-"],
)
def test_no_cell_starts_a_formula(lecture: source.Lecture, tmp_path: Path, start: str) -> None:
    name = f"{start}cmd|'/C calc'!A0;b"
    given = tuple(Mark(e.name, 0.0, e.points, "", name) for e in lecture.exercises)
    found = {name: Result(name, lecture.name, State.GRADED, "", given)}
    students = {name: roster.Student(name, name, name, name, name, name, name)}
    for path in export.write(ClassFolder(tmp_path), lecture, found, students):
        if path.suffix == ".csv":
            text = path.read_text(encoding="utf-8")
            rows = [*csv.reader(io.StringIO(text)), *csv.reader(io.StringIO(text), delimiter=";")]
            # Some programs split at any semicolon, and where nothing is between quotation marks, there is nothing.
            rows += [[field.replace('"', "") for field in line.split(";")] for line in text.splitlines()]
            for row in rows:
                seen = [re.sub("[\u200c\u200d]", "", each).lstrip()[:1] for each in row]
                assert not {*seen} & {*"=+-@\t\r＝"}, path


@pytest.mark.parametrize("name", ["", 'a "quoted", name', "two\nlines", "é 漢", "'already", "a=b", "a; b", "007"])
def test_ordinary_and_odd_names_survive_the_csv(lecture: source.Lecture, tmp_path: Path, name: str) -> None:
    found = {name: Result(name, lecture.name, State.NOT_SUBMITTED, "")}
    [row] = written(tmp_path, lecture, found, Format.CSV)
    assert row["student"] == name.replace("\n", "\\n")


def test_the_command_writes_all_or_what_is_asked_for(lecture: source.Lecture, tmp_path: Path) -> None:
    (tmp_path / "roster.csv").write_text("student\nada\n", encoding="utf-8")
    results.write(ClassFolder(tmp_path), Result("bob", lecture.name, State.GRADED, "", ()))
    ran = CliRunner().invoke(app, ["export", str(tmp_path), lecture.name, "--format", "moodle"])
    assert ran.exit_code == 0 and "2 students: 1 not submitted, 1 graded" in ran.output
    assert [p.name for p in (tmp_path / "exports").iterdir()] == ["01_tensors.moodle.csv"]
    contents = []
    for _ in range(2):
        assert CliRunner().invoke(app, ["export", str(tmp_path), lecture.name]).exit_code == 0
        contents.append({p.name: p.read_bytes() for p in (tmp_path / "exports").iterdir()})
    assert contents[0] == contents[1] and len(contents[0]) == len(Format)


def test_an_empty_class_exports_only_headers(lecture: source.Lecture, tmp_path: Path) -> None:
    assert CliRunner().invoke(app, ["export", str(tmp_path), lecture.name]).exit_code == 0
    assert (tmp_path / "exports" / "01_tensors.csv").read_text().splitlines() == [
        '"student","name","state","points","worth","attempt","late","points taken off","comment","notes"'
    ]
    assert json.loads((tmp_path / "exports" / "01_tensors.json").read_text())["students"] == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name\nada\n", "has no column `id`"),
        ("", "has no column `id`"),
        ("id\n../../etc\n", "cannot be the name of a folder"),
        ("id\n.hidden\n", "cannot be the name of a folder"),
        ("student_id,x\na\x1bb,1\n", "cannot be the name of a folder"),
    ],
)
def test_a_roster_whose_ids_are_missing_or_no_folders_is_refused(
    lecture: source.Lecture, tmp_path: Path, text: str, says: str
) -> None:
    (tmp_path / "roster.csv").write_text(text, encoding="utf-8")
    with pytest.raises(roster.RosterError, match=says):
        roster.of(ClassFolder(tmp_path), lecture.name)
    ran = CliRunner().invoke(app, ["export", str(tmp_path), lecture.name])
    assert ran.exit_code == 1 and not (tmp_path / "exports").exists()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("id,extra_day\nada,3\n", "has a column 'extra_day'\n  → call it extra_days"),
        ("id,e-mail\nada,a@b.c\n", "has a column 'e_mail'\n  → call it email"),
        ("id,name\nada,Ada\nada,Ada King\n", "has two different lines for ada"),
        ("id,name\nada,Ada\n,Bob\n", "student 2 has no id"),
        ("id,name\nada,King, Ada\n", "student 1 has more values than there are columns"),
    ],
)
def test_a_roster_with_a_misspelled_column_or_two_lines_for_one_student_is_refused(
    tmp_path: Path, text: str, says: str
) -> None:
    (tmp_path / "roster.csv").write_text(text, encoding="utf-8")
    with pytest.raises(roster.RosterError) as caught:
        roster.read(tmp_path / "roster.csv")
    assert says in str(caught.value)


def test_columns_may_be_separated_by_semicolons_and_empty_lines_are_nobody(tmp_path: Path) -> None:
    (tmp_path / "roster.csv").write_text('id;name;also\nada;"King, Ada";"ak; al"\n;;\n', encoding="utf-8")
    [ada] = roster.read(tmp_path / "roster.csv")
    assert (ada.student, ada.name, ada.also) == ("ada", "King, Ada", ("ak", "al"))


def test_columns_are_found_however_they_are_spaced(tmp_path: Path) -> None:
    (tmp_path / "roster.csv").write_text(
        "ID,Extra Days,First-Name,SIS User ID\nada,3,Ada,T\nada,3,Ada,T\n", encoding="utf-8"
    )
    [ada] = roster.read(tmp_path / "roster.csv")
    assert (ada.extra_days, ada.first_name) == (3, "Ada")


def test_the_class_is_the_roster_and_all_who_handed_in_or_were_graded(lecture: source.Lecture, tmp_path: Path) -> None:
    (tmp_path / "submitted" / "bob" / lecture.name).mkdir(parents=True)
    (tmp_path / "submitted" / "bob" / lecture.name / "notes.pdf").touch()
    (tmp_path / "submitted" / ".cache").mkdir()
    results.write(ClassFolder(tmp_path), Result("cy", lecture.name, State.GRADED, ""))
    assert list(roster.of(ClassFolder(tmp_path), lecture.name)) == ["bob", "cy"]
    other = tmp_path / "class.csv"
    other.write_bytes("student;x\n".replace(";", ",").encode() + b"ada,1\n\nada,4\n,5\n")
    assert list(roster.of(ClassFolder(tmp_path), lecture.name, other)) == ["ada", "bob", "cy"]
    other.write_bytes(b"student\n\xff\xfe\n")
    with pytest.raises(roster.RosterError, match="UTF-8"):
        roster.of(ClassFolder(tmp_path), lecture.name, other)


def test_lists_from_canvas_and_moodle_are_rosters_as_they_were_downloaded(tmp_path: Path) -> None:
    path = tmp_path / "roster.csv"
    path.write_text(
        "Student,ID,SIS User ID,SIS Login ID,Section,01 (77)\n"
        ",,,,,Manual Posting\n"
        "    Points Possible,,,,,11\n"
        '"Lovelace, Ada",1017,u17,alovelace,Tuesday,9\n'
        '"Student, Test",9,,,Tuesday,\n',
        encoding="utf-8",
    )
    assert roster.read(path) == [
        roster.Student(
            "alovelace", "Ada Lovelace", "", "u17", "1017", "alovelace", "Tuesday", "Ada", "Lovelace"
        )
    ]  # fmt: skip
    path.write_text(
        "\ufeffFirst name,Last name,ID number,Email address,Groups\nAda,Lovelace,17,ada@example.org,A\n",
        encoding="utf-8",
    )
    ada = roster.Student("17", "Ada Lovelace", "ada@example.org", "17", first_name="Ada", last_name="Lovelace")
    assert roster.read(path) == [ada]
    path.write_text("Username,Surname,Email address\nal,Lovelace,ada@example.org\nbb,Babbage,\n", encoding="utf-8")
    assert [(one.student, one.login, one.last_name) for one in roster.read(path)] == [
        ("al", "al", "Lovelace"), ("bb", "bb", "Babbage"),
    ]  # fmt: skip
    path.write_text("Username,Surname\nal,Lovelace\n,Babbage\n", encoding="utf-8")
    with pytest.raises(roster.RosterError, match="student 2 has no login"):
        roster.read(path)


def test_of_an_address_the_first_part_is_enough_and_the_rest_makes_nobody_alike() -> None:
    class_ = roster.Directory(map(roster.Student, ("jhughes@example.edu", "cadams@example.edu", "fdiaz@example.edu")))
    assert class_.near("jhughes") == ["jhughes@example.edu"]
    assert class_.near("cadam@example.edu") == ["cadams@example.edu"]
    assert class_.near("zzz@example.edu") == []

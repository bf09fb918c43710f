"""Grades that go to Canvas and Moodle: their importers' own rules, and a dry run that says what those would do."""

from __future__ import annotations

import copy
import shlex
from pathlib import Path

import pytest
from importers import Canvas, Moodle, Person, Refused
from typer.testing import CliRunner

from autograder import project
from autograder.cli import app
from autograder.grading import source
from autograder.grading.marks import Mark, Result, State
from autograder.records import export, lms, results, roster
from autograder.records.export import Format
from autograder.records.folder import ClassFolder

LECTURE = source.read(project.SOLUTIONS / "01_tensors.py")
WORTH = LECTURE.points
PEOPLE = [
    Person("17", "Lovelace, Ada", "ada@x.org", "ada@mail.org", "007"),
    Person("18", "Babbage, Charles", "babbage", "c@mail.org", "008"),
    Person("19", "Noether, Emmy", "emmy", "e@mail.org", "009"),
    Person("20", "Hopper, Grace", "grace", "g@mail.org", "010"),
    Person("21", "Turing, Alan", "alan", "alan@mail.org", "011"),
]
ROSTER = (
    "id,first_name,last_name,lms_user_id,login,email,id_number\n"
    "ada,Ada,Lovelace,17,ada@x.org,ada@mail.org,007\n"
    "charles,Charles,Babbage,,BABBAGE,c@mail.org,008\n"
    "emmy,Emmy,Noether,19b,,e@mail.org,009\n"  # 19b is no number
    "grace,Grace,Hopper,20,grace,g@mail.org,010\n"
    "alan,Alan,Turing,21,alan,alan@mail.org,011\n"
)
# Canvas' logins are as they are; Moodle's usernames are in lower case.
IN_MOODLE = [Person(p.number, p.name, p.login.lower(), p.email, p.id_number) for p in PEOPLE]
IN_CANVAS = [Person(p.number, p.name, "BABBAGE" if p.login == "babbage" else p.login) for p in PEOPLE]
STATES = {
    "ada": State.GRADED, "charles": State.GRADED, "emmy": State.GRADED, "grace": State.NEEDS_REVIEW,
    "alan": State.FAILED_HERE, "gone": State.GRADED,
}  # fmt: skip
POINTS = {"ada": 6.0, "charles": 0.0, "emmy": 1.25, "grace": 3.0, "alan": 2.0, "gone": 4.0}
FINAL = {"17": "6", "18": "0", "19": "1.25"}


@pytest.fixture
def course(tmp_path: Path) -> Path:
    (tmp_path / "roster.csv").write_text(ROSTER, encoding="utf-8")
    for name, state in STATES.items():
        marks = (Mark(LECTURE.exercises[0].name, POINTS[name], WORTH),)
        results.write(ClassFolder(tmp_path), Result(name, LECTURE.name, state, "", marks))
    return tmp_path


def found(course: Path) -> tuple[dict[str, Result], dict[str, roster.Student]]:
    students = roster.of(ClassFolder(course), LECTURE.name)
    read = {name: results.read(ClassFolder(course), LECTURE.name, name) for name in students}
    return {name: one for name, one in read.items() if one}, students


def written(course: Path, form: Format, title: str = "") -> str:
    [path] = export.write(ClassFolder(course), LECTURE, *found(course), [form], title)
    return path.read_text(encoding="utf-8")


def canvas() -> Canvas:
    grades = {(p.number, title): "5" for p in IN_CANVAS for title in ("01_tensors", "Essay")}
    worth = {"01_tensors": f"{WORTH:g}", "Essay": "10"}
    return Canvas(copy.deepcopy(IN_CANVAS), {"4711": "01_tensors", "4712": "Essay"}, worth, grades)


def moodle() -> Moodle:
    return Moodle(copy.deepcopy(IN_MOODLE), ["01_tensors", "Essay"], {(p.login, "01_tensors"): "5" for p in IN_MOODLE})


@pytest.mark.parametrize("title", ["", "01_tensors (4711)", "an old title (4711)"])
def test_canvas_gives_the_final_grades_and_changes_nothing_else(course: Path, title: str) -> None:
    there = canvas()
    expected = there.grades | {(number, "01_tensors"): grade for number, grade in FINAL.items()}
    there.upload(written(course, Format.CANVAS, title))
    assert there.grades == expected and there.asks_about == []
    assert there.worth == {"01_tensors": f"{WORTH:g}", "Essay": "10"} and len(there.titles) == 2


@pytest.mark.parametrize(
    ("column", "field"), [("Username", "login"), ("ID number", "id_number"), ("Email address", "email")]
)
def test_moodle_gives_the_final_grades_however_it_finds_users(course: Path, column: str, field: str) -> None:
    there = moodle()
    for one in there.people:
        one.login = "emmy" if one.number == "19" else one.login
    expected = there.grades | {("ada@x.org", "01_tensors"): "6", ("babbage", "01_tensors"): "0"}
    expected |= {("emmy", "01_tensors"): "1.25"}
    there.upload(written(course, Format.MOODLE), column, field, {"01_tensors": "01_tensors"})
    assert there.grades == expected


@pytest.mark.parametrize("odd", ["", "0", "007"])
def test_a_column_that_does_not_tell_moodle_who_it_is_stays_out(course: Path, odd: str) -> None:
    (course / "roster.csv").write_text(ROSTER.replace("008", odd), encoding="utf-8")
    head = written(course, Format.MOODLE).splitlines()[0]
    assert head == '"Username","Email address","01_tensors"'


def test_the_importers_are_as_strict_as_theirs() -> None:
    """So that the tests above can fail: what the old files had does harm."""
    there = canvas()
    there.upload("Student,ID,SIS Login ID,Section,01_tensors\nx,17,,,\nwho,,gone,,4\n")
    assert ("17", "01_tensors") not in there.grades and there.asks_about == ["who"]
    there.upload('Student,ID,SIS Login ID,Section,Tensors\n"Lovelace, Ada",17b,,,4\n')
    assert there.grades["17", "Tensors"] == "4" and len(there.titles) == 3
    with pytest.raises(Refused):
        there.upload("Student,Section,01_tensors\nx,17,4\n")
    with pytest.raises(Refused):
        moodle().upload("Username,01_tensors\ngone,4\n", "Username", "login", {"01_tensors": "01_tensors"})
    other = moodle()
    other.upload("Username,01_tensors\nemmy,4\n,1\n", "Username", "login", {"01_tensors": "01_tensors"})
    assert other.grades["emmy", "01_tensors"] == "1"


def test_without_a_roster_everybody_graded_is_in_the_files(course: Path) -> None:
    (course / "roster.csv").unlink()
    rows = written(course, Format.MOODLE).splitlines()
    assert [row.split(",")[0].strip('"') for row in rows] == ["Username", "ada", "charles", "emmy", "gone"]


@pytest.mark.parametrize("title", [" ", "Student", "id", "Final Score of all", "My Points Possible", "=1+1", "a\nb"])
def test_a_title_that_means_something_else_to_an_importer_is_refused(course: Path, title: str) -> None:
    ran = CliRunner().invoke(app, ["export", str(course), LECTURE.name, "--title", title])
    assert ran.exit_code == 1 and "no assignment can have the title" in ran.output and "→" in ran.output
    assert not (course / "exports").exists()


def run(course: Path, *arguments: str, code: int = 0) -> str:
    ran = CliRunner().invoke(app, ["export", str(course), LECTURE.name, *arguments])
    assert ran.exit_code == code, ran.output
    return ran.output


def test_the_command_says_who_is_left_out(course: Path) -> None:
    said = run(course)
    left_out = "1 failed here (alan), 1 not on the roster (gone), 1 needs review (grace)"
    assert f"Canvas and Moodle: 3 students; left out: {left_out}" in said
    for number in range(7):
        results.write(ClassFolder(course), Result(f"s{number}", LECTURE.name, State.FAILED_HERE, ""))
    assert "8 failed here (alan, s0, s1, s2, s3 and 3 more)" in run(course)
    assert "Canvas and Moodle" not in run(course, "--format", "csv")


def test_a_dry_run_says_exactly_what_canvas_then_does(course: Path, tmp_path: Path) -> None:
    file = tmp_path / "gradebook.csv"
    there = canvas()
    there.grades["17", "01_tensors"] = "6.0"
    there.grades.pop(("19", "01_tensors"))
    file.write_text(there.download(), encoding="utf-8")
    said = run(course, "--against", str(file))
    assert not (course / "exports").exists()
    before = dict(there.grades)
    there.upload(written(course, Format.CANVAS))
    changed = {key for key in there.grades if float(there.grades[key]) != float(before.get(key, "nan"))}
    assert changed == {("18", "01_tensors"), ("19", "01_tensors")}
    assert "charles: 5 → 0" in said and "emmy: no grade → 1.25" in said and "ada:" not in said
    assert "Canvas would change 2 grades and keep 1; no changes made" in said


def test_a_gradebook_with_semicolons_and_divided_names_is_read(course: Path, tmp_path: Path) -> None:
    # As lib/gradebook_exporter.rb writes it for users who have chosen that.
    file = tmp_path / "gradebook.csv"
    file.write_text(
        "LastName;FirstName;ID;SIS User ID;SIS Login ID;Section;01_tensors (4711)\n"
        f"Points Possible;;;;;;{WORTH:g}\n"
        "Lovelace;Ada;17;;;A;6\nBabbage;Charles;18;;;A;\nNoether;Emmy;19;;;A;2\n",
        encoding="utf-8",
    )
    said = run(course, "--against", str(file))
    assert "charles: no grade → 0" in said and "emmy: 2 → 1.25" in said and "change 2 grades and keep 1" in said


def test_a_dry_run_names_what_would_go_wrong_in_canvas(course: Path, tmp_path: Path) -> None:
    file = tmp_path / "gradebook.csv"
    there = canvas()
    there.worth["01_tensors"] = "100"
    there.people = [one for one in there.people if one.number != "18"]
    file.write_text(there.download(), encoding="utf-8")
    said = run(course, "--against", str(file), code=1)
    assert "worth 100 points in Canvas" in said and "• charles is not in this gradebook" in said
    said = run(course, "--against", str(file), "--title", "Tensors", code=1)
    assert "no assignment is called 'Tensors'" in said and "'01_tensors (4711)', 'Essay (4712)'" in said
    there.titles["4713"] = "01_tensors"
    file.write_text(there.download(), encoding="utf-8")
    assert "2 assignments are called '01_tensors'" in run(course, "--against", str(file), code=1)
    assert "assignments are called" not in run(course, "--against", str(file), "--title", "x (4713)", code=1)
    twice = ROSTER.replace("ada,Ada,Lovelace,17,ada@x.org", "ada,Emmy,Noether,19,")
    (course / "roster.csv").write_text(twice, encoding="utf-8")
    assert "emmy and ada are the same person" in run(course, "--against", str(file), code=1)


HEAD = "id,name,lms_user_id,login,email,id_number,also\n"
# The student, as the roster has her; then her line in the gradebook, which has this number, and perhaps another line.
JANE, HILL = Person("1021", "Doe, Jane", "jdoe"), Person("9921", "Hill, Eve", "ehill")


def compared(course: Path, student: str, *people: Person, code: int) -> str:
    (course / "roster.csv").write_text(f"{HEAD}{student}\n", encoding="utf-8")
    results.write(ClassFolder(course), Result("eve", LECTURE.name, State.GRADED, "", (Mark("x", 7.25, WORTH),)))
    there = Canvas([*people], {"4711": "01_tensors"}, {"01_tensors": f"{WORTH:g}"})
    (course / "gradebook.csv").write_text(there.download(), encoding="utf-8")
    return run(course, "--against", str(course / "gradebook.csv"), code=code)


@pytest.mark.parametrize(
    ("student", "people", "says", "corrected"),
    [
        (
            "eve,Eve Hill,1021,,,,", [JANE, HILL],
            "eve (Eve Hill) has the lms_user_id 1021 in the roster, but in this gradebook 1021 is Doe, Jane, who would "
            "get the points: write 9921, which is Hill, Eve, into the column lms_user_id; or, if they are the same "
            "person, add Jane Doe to the column also",
            "eve,Eve Hill,9921,,,,",
        ),
        (
            "eve,Eve Hill,1021,ehill,e@x.org,,", [JANE], "1021 is Doe, Jane, who would get the points: write the right "
            "one into the column lms_user_id", "eve,Eve Hill,1021,ehill,e@x.org,,Jane Doe",
        ),
        (  # a namesake, and a line that has more of the name
            "eve,Eve Hill,1021,,,,", [Person("1021", "Hill, Bob", "bhill"), HILL],
            "1021 is Hill, Bob, who would get the points: write 9921, which is Hill, Eve,", "eve,Eve Hill,9921,,,,",
        ),
        (  # equal names, but another login
            "eve,Eve Hill,1021,ehill,,,", [Person("1021", "Hill, Eve", "ehill2"), HILL],
            "1021 is Hill, Eve, who would get the points: write 9921, which is Hill, Eve,",
            "eve,Eve Hill,9921,ehill,,,",
        ),
        (
            "eve,Eve Hill,,jdoe,,,", [JANE, HILL],
            "has the login jdoe in the roster, but in this gradebook jdoe is Doe, Jane, who would get the points: "
            "write ehill, which is Hill, Eve, into the column login", "eve,Eve Hill,,ehill,,,",
        ),
        (
            "eve,Eve Hill,,,,,", [Person("1021", "Doe, Jane", "eve"), HILL],
            "has the id eve in the roster, but in this gradebook eve is Doe, Jane, who would get the points: write "
            "ehill, which is Hill, Eve, into the column login", "eve,Eve Hill,,ehill,,,",
        ),
        (
            "eve,,1021,ehill,,,", [JANE, HILL],
            "eve has the lms_user_id 1021 in the roster, but in this gradebook 1021 is Doe, Jane, who would get the "
            "points: write 9921, which is Hill, Eve, into the column lms_user_id",
            "eve,,9921,ehill,,,",
        ),
    ],
)  # fmt: skip
def test_points_for_somebody_else_in_canvas_are_announced_with_what_to_correct(
    course: Path, student: str, people: list[Person], says: str, corrected: str
) -> None:
    said = compared(course, student, *people, code=1)
    assert says in said and "eve: " not in said and "would change 0 grades and keep 0" in said, said
    assert "eve: no grade → 7.25" in compared(course, corrected, *people, code=0)


@pytest.mark.parametrize(
    ("student", "line"),
    [
        ("eve,Eve Hill,1021,,,,", Person("1021", "Hill, Eve Maria", "x1")),
        ("eve,Maria Eve Hill,1021,,,,", Person("1021", "Hill, Evie", "x1")),
        ("eve,HILL EVE,1021,,,,", Person("1021", "Hill-Doe, Évelyn", "x1")),
        ("eve,Søren Müller,1021,,,,", Person("1021", "Mueller, Sam", "x1")),
        ("eve,Łukasz Ørsted,1021,,,,", Person("1021", "Orsted, Luke", "x1")),
        ("eve,李 明,1021,,,,", Person("1021", "明, 李", "x1")),
        ("eve,Eve Hill,1021,jdoe,,,", JANE),
        ("eve,Eve Hill,1021,JDoe@x.org,,,", JANE),
        ("eve,Eve Hill,1021,,jdoe@x.org,,", JANE),
        ("eve,Eve Hill,1021,,,0815,", Person("1021", "Doe, Jane", "x1", id_number="0815")),
        ("eve,Eve Hill,1021,,,,jdoe", JANE),
        ("eve,,1021,,,,", JANE),  # the roster has nothing to compare
    ],
)
def test_what_is_only_written_differently_is_the_same_person(course: Path, student: str, line: Person) -> None:
    other = Person("1022", "Hill, Bob", "bhill")
    assert "eve: no grade → 7.25" in compared(course, student, line, other, code=0)


def test_an_initial_in_common_makes_nobody_the_same_person(course: Path) -> None:
    assert "is Doe, Jane M." in compared(course, "eve,Eve M Hill,1021,,,,", Person("1021", "Doe, Jane M."), code=1)


@pytest.mark.parametrize("last", ["Last name", "Surname"])
def test_points_for_somebody_else_in_moodle_are_announced_with_what_to_correct(course: Path, last: str) -> None:
    file = course / "grades.csv"
    file.write_text(
        f"First name,{last},Username,ID number,Email address,Assignment: 01_tensors (Real)\n"
        "Jane,Doe,jdoe,1,jane@x.org,-\nEve Maria,Hill,ehill,2,eve@x.org,-\n",
        encoding="utf-8",
    )
    results.write(ClassFolder(course), Result("eve", LECTURE.name, State.GRADED, "", (Mark("x", 7.25, WORTH),)))
    for student, code, says in (
        (
            "eve,Eve Hill,,jdoe,e@x.org,3,", 1,
            "• eve (Eve Hill) has the login jdoe in the roster, but in this gradebook jdoe is Jane Doe, who would get "
            "the points: write ehill, which is Eve Maria Hill, into the column login; or, if they are the same person, "
            "add Jane Doe to the column also",
        ),
        ("eve,,,jdoe,eve@x.org,,", 1, "eve has the login jdoe in the roster, but in this gradebook jdoe is Jane Doe"),
        ("eve,Eve Hill,,ehill,e@x.org,3,", 0, "eve: no grade → 7.25"),
        ("eve,Eve Hill,,jdoe,jane@x.org,3,", 0, "eve: no grade → 7.25"),
        ("eve,,,jdoe,,,", 0, "eve: no grade → 7.25"),
    ):  # fmt: skip
        (course / "roster.csv").write_text(f"{HEAD}{student}\n", encoding="utf-8")
        assert says in run(course, "--against", str(file), code=code)


def test_a_dry_run_says_what_moodle_would_do(course: Path, tmp_path: Path) -> None:
    file = tmp_path / "grades.csv"
    there = moodle()
    there.grades["babbage", "01_tensors"] = "-"
    there.grades["emmy", "01_tensors"] = "1,250"
    file.write_text(there.download(), encoding="utf-8")
    said = run(course, "--against", str(file))
    assert "ada: 5 → 6" in said and "charles: no grade → 0" in said
    assert "Moodle would change 2 grades and keep 1; no changes made" in said
    there.people = [one for one in there.people if one.number != "17"]
    file.write_text(there.download(), encoding="utf-8")
    assert "• ada is not in this gradebook as Username ada@x.org" in run(course, "--against", str(file), code=1)
    with pytest.raises(Refused):
        there.upload(written(course, Format.MOODLE), "Username", "login", {"01_tensors": "01_tensors"})
    said = run(course, "--against", str(file), "--title", "Tensors", code=1)
    assert "no grade item is called 'Tensors'" in said and "it has Assignment: 01_tensors" in said, said


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"\xff\xfe\x00", "is not a CSV"),
        (b"a,b\n1,2\n", "not a gradebook from Canvas"),
        (None, "No such file"),
    ],
)
def test_a_file_that_is_no_gradebook_is_refused(course: Path, content: bytes | None, says: str) -> None:
    if content is not None:
        (course / "odd.csv").write_bytes(content)
    said = run(course, "--against", str(course / "odd.csv"), code=1)
    assert "course: " in said and says in said


def test_the_commands_of_the_instructors_page_work(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (project.ROOT / "docs" / "instructors.md").read_text(encoding="utf-8")
    block = page.partition("\n### To Canvas and Moodle\n")[2].partition("```sh\n")[2].partition("```")[0]
    downloads = course / "Downloads"
    downloads.mkdir()
    there = canvas()
    there.titles["4711"] = "Tensors"
    (downloads / "Grades-CS336.csv").write_text(there.download(), encoding="utf-8")
    other = moodle()
    other.items[0] = "Tensors"
    (downloads / "CS336 Grades.csv").write_text(other.download(), encoding="utf-8")
    monkeypatch.setenv("HOME", str(course))
    monkeypatch.chdir(course)
    lines = [line for line in block.splitlines() if line.startswith("course ")]
    assert len(lines) == 4
    for line in lines:
        ran = CliRunner().invoke(app, shlex.split(line.replace("~", str(course)), comments=True)[1:])
        assert ran.exit_code == 0, (line, ran.output)
    assert "Tensors (4711)" in (course / "exports" / "01_tensors.canvas.csv").read_text(encoding="utf-8")
    assert lms.check_title("Tensors (4711)")

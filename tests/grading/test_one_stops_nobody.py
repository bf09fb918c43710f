"""Whatever is in a class's folder about one student concerns that student alone: the others keep their grades."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from classroom import LECTURE, NAME, hand_in
from typer.testing import CliRunner

from autograder import cli, project
from autograder.grading.marks import State
from autograder.records import feedback, grade, results, roster
from autograder.records.folder import ClassFolder

BROKEN = '{"cells": ['  # graded without running anything
OTHERS = ("ada", "bob")
NAMES = {
    "control characters": "new\nline \x1b[31m",
    "bytes that are no text": os.fsdecode(b"\xff\xfe"),
    "text that turns": "abc\u202edef",
    "an invisible character": "a\u200bb",
    "a joiner, as in Persian": "علی\u200cرضا",
    "an emoji": "👩\u200d🔬",
    "a line separator": "a\u2028b",
    "252 bytes": "x" * 252,
    "255 bytes": "x" * 255,
    "251 bytes": "é" * 125 + "x",
    "an option": "--unsafe",
    "spaces": "  a  b ",
    "no-break space": "a\xa0b",
    "a formula": "a;=HYPERLINK(1)",
    "another formula": "=1+1",
    "markup": "<script>alert(1)<",
    "quotes": "o'b\"r`",
    "a comma": "Lovelace, Ada",
    "TeX": "$\\frac{$",
    "a placeholder": "{student_id}",
    "a percent sign": "%s%n",
    "a backslash": "a\\nb",
    "three dots": "...a",
    "rich's markup": "[bold]a[red]",
    "two forms of one letter": "e\u0301",
    "another's name in capitals": "ADA",
    "a drive of Windows": "CON",
    "a tilde": "~root",
    "a number": "0001",
    "a suffix": "ada.json",
}
Trouble = Callable[[ClassFolder, str], None]
TROUBLES: dict[str, Trouble] = {}


def trouble(function: Trouble) -> Trouble:
    TROUBLES[function.__name__.replace("_", " ")] = function
    return function


def put(path: Path, content: bytes | str = BROKEN) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@trouble
def an_empty_notebook(course: ClassFolder, student: str) -> None:
    put(course.submission(student, NAME), "")


@trouble
def bytes_that_are_no_text(course: ClassFolder, student: str) -> None:
    put(course.submission(student, NAME), os.urandom(10_000))


@trouble
def a_pipe_for_a_notebook(course: ClassFolder, student: str) -> None:
    course.assignment(student, NAME).mkdir(parents=True)
    os.mkfifo(course.submission(student, NAME))


@trouble
def a_socket_for_a_notebook(course: ClassFolder, student: str) -> None:
    folder = course.assignment(student, NAME)
    folder.mkdir(parents=True)
    before = Path.cwd()
    os.chdir(folder)  # a socket's whole path may have some hundred characters
    try:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(f"{NAME}.ipynb")
    finally:
        os.chdir(before)


@trouble
def a_folder_for_a_notebook(course: ClassFolder, student: str) -> None:
    course.submission(student, NAME).mkdir(parents=True)


@trouble
def an_endless_notebook(course: ClassFolder, student: str) -> None:
    course.assignment(student, NAME).mkdir(parents=True)
    course.submission(student, NAME).symlink_to("/dev/zero")


@trouble
def a_sparse_notebook_of_a_terabyte(course: ClassFolder, student: str) -> None:
    os.truncate(put(course.submission(student, NAME)), 2**40)


@trouble
def a_link_to_anothers_notebook(course: ClassFolder, student: str) -> None:
    course.assignment(student, NAME).mkdir(parents=True)
    course.submission(student, NAME).symlink_to(course.submission("ada", NAME))


@trouble
def a_link_to_itself(course: ClassFolder, student: str) -> None:
    course.assignment(student, NAME).mkdir(parents=True)
    course.submission(student, NAME).symlink_to(f"{NAME}.ipynb")


@trouble
def a_folder_that_is_a_link_to_itself(course: ClassFolder, student: str) -> None:
    course.assignment(student, NAME).parent.mkdir(parents=True)
    course.assignment(student, NAME).symlink_to(NAME)


@trouble
def a_link_to_too_long_a_name_for_the_students_folder(course: ClassFolder, student: str) -> None:
    course.assignment(student, NAME).parent.symlink_to("a" * 300)


@trouble
def a_link_to_too_long_a_name_for_the_lectures_folder(course: ClassFolder, student: str) -> None:
    course.assignment(student, NAME).parent.mkdir(parents=True)
    course.assignment(student, NAME).symlink_to("a" * 300)


@trouble
def a_link_to_too_long_a_name_for_a_notebook(course: ClassFolder, student: str) -> None:
    course.assignment(student, NAME).mkdir(parents=True)
    course.submission(student, NAME).symlink_to("a" * 300)


@trouble
def a_file_for_the_lectures_folder(course: ClassFolder, student: str) -> None:
    put(course.assignment(student, NAME))


@trouble
def a_file_for_the_students_folder(course: ClassFolder, student: str) -> None:
    put(course.assignment(student, NAME).parent)


@trouble
def ten_thousand_other_files(course: ClassFolder, student: str) -> None:
    folder = course.assignment(student, NAME)
    folder.mkdir(parents=True)
    for number in range(10_000):
        (folder / f"{number}\n").touch()


@trouble
def a_folder_in_the_results_place(course: ClassFolder, student: str) -> None:
    put(course.submission(student, NAME))
    put(course.result(student, NAME) / "file")


@trouble
def a_pipe_in_the_results_place(course: ClassFolder, student: str) -> None:
    put(course.submission(student, NAME))
    course.result(student, NAME).parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(course.result(student, NAME))


@trouble
def a_dangling_link_in_the_results_place(course: ClassFolder, student: str) -> None:
    put(course.submission(student, NAME))
    course.result(student, NAME).parent.mkdir(parents=True, exist_ok=True)
    course.result(student, NAME).symlink_to("nowhere")


@trouble
def anothers_result(course: ClassFolder, student: str) -> None:
    put(course.submission(student, NAME))
    results.write(course, results.Result("ada", NAME, State.GRADED, "key"))
    course.result("ada", NAME).rename(course.result(student, NAME))


@trouble
def a_file_for_the_folder_of_the_graded_notebook(course: ClassFolder, student: str) -> None:
    put(course.submission(student, NAME))
    put(course.autograded(student, NAME).parent.parent)


@trouble
def a_folder_for_the_graded_notebook(course: ClassFolder, student: str) -> None:
    put(course.submission(student, NAME))
    put(course.autograded(student, NAME) / "file")


@trouble
def a_folder_for_the_page(course: ClassFolder, student: str) -> None:
    put(course.submission(student, NAME))
    put(course.feedback(student, NAME) / "file")


@trouble
def a_file_for_the_folder_of_the_page(course: ClassFolder, student: str) -> None:
    put(course.submission(student, NAME))
    put(course.feedback(student, NAME).parent)


def timestamp(text: bytes) -> Trouble:
    def write(course: ClassFolder, student: str) -> None:
        put(course.submission(student, NAME))
        put(course.assignment(student, NAME) / "timestamp.txt", text)

    return write


@trouble
def a_pipe_for_a_timestamp(course: ClassFolder, student: str) -> None:
    put(course.submission(student, NAME))
    os.mkfifo(course.assignment(student, NAME) / "timestamp.txt")


@trouble
def a_folder_for_a_timestamp(course: ClassFolder, student: str) -> None:
    put(course.submission(student, NAME))
    (course.assignment(student, NAME) / "timestamp.txt").mkdir()


def named(name: str) -> Trouble:
    def write(course: ClassFolder, student: str) -> None:
        put(course.submission(name, NAME))

    return write


for text in (
    b"2026-11-22 12:00:00 ..", b"2026-11-22 12:00:00 /dev/zero", b"99999-99-99", b"\xff\x00", b"yesterday", b"1" * 150,
    b"0001-01-01 00:00:00 +23:59", b"9999-12-31 23:59:59 -23:59", b"2026-11-22 12:00:00 Europe/../../../etc/passwd",
    b"2026-11-22 12:00:00 A" + 60 * b"_a" + b"!",
):  # fmt: skip
    TROUBLES[f"a timestamp of {text!r}"] = timestamp(text)
for title, name in NAMES.items():
    TROUBLES[f"a name with {title}"] = named(name)


def make(root: Path) -> ClassFolder:
    """A class of two whose grading runs nothing."""
    course = ClassFolder(root)
    for student in OTHERS:
        put(course.submission(student, NAME))
    return course


def grades(course: ClassFolder) -> dict[str, bytes]:
    return {student: course.result(student, NAME).read_bytes() for student in OTHERS}


def test_there_are_at_least_forty_kinds_of_trouble() -> None:
    assert len(TROUBLES) >= 40


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The others' results in a class of their own."""
    course = make(tmp_path_factory.mktemp("undisturbed"))
    grade.grade_class(course, NAME, workers=0, unsafe=True, database=None)
    return grades(course)


@pytest.mark.sandboxed
@pytest.mark.parametrize("kind", TROUBLES)
def test_trouble_with_one_student_leaves_the_others_grades_as_they_are(
    kind: str, tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    course = make(tmp_path)
    TROUBLES[kind](course, "odd")
    dry = CliRunner().invoke(cli.app, ["grade", str(tmp_path), NAME, "--dry-run"])
    assert dry.exit_code == 0, dry.output
    summary = grade.grade_class(course, NAME, workers=0, unsafe=True, database=None)
    assert grades(course) == undisturbed
    others = {name: result for name, result in summary.results.items() if name not in OTHERS}
    assert all(result.state is not State.QUEUED for result in others.values())
    # Who has no points is told of: in a note, in a remark, or as one who has handed in nothing.
    told = (State.GRADED, State.NOT_SUBMITTED)
    assert all(result.state in told or result.notes for result in others.values())
    for command in ("verify", "feedback", "export"):
        ran = CliRunner().invoke(cli.app, [command, str(tmp_path), NAME])
        assert ran.exit_code in (0, 1) and isinstance(ran.exception, SystemExit | None), (command, ran.exception)
        assert command == "verify" or ran.exit_code == int("cannot be written" in ran.output), ran.output
    for student in OTHERS:
        assert "0 of" in course.feedback(student, NAME).read_text(encoding="utf-8")
    again = grade.grade_class(course, NAME, workers=0, unsafe=True, database=None)
    assert not set(again.graded) & set(OTHERS) and grades(course) == undisturbed


LOOK = """
import sys
from pathlib import Path
from autograder.grading import source
from autograder.project import source_path
from autograder.records import feedback, grade, report
from autograder.records.folder import ClassFolder
course, lecture = ClassFolder(Path(sys.argv[1])), source.read(source_path(sys.argv[2]))
summary = grade.grade_class(course, lecture.name, workers=0, unsafe=True, database=None)
list(feedback.write(course, lecture, summary.results))
report.write(course, lecture, summary.results)
for name, result in summary.results.items():
    print(f"{name}: {result.state}")
print(*summary.left_out)
"""


@pytest.mark.sandboxed
@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="root may look everywhere")
def test_folders_that_an_ordinary_user_may_not_look_into_stop_nobody(
    tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    course = make(tmp_path)
    course.require_cases(LECTURE)
    closed, place = tmp_path / "closed", course.assignment("ada", NAME).parents[1]
    for folder in (closed, place / ".eve", place / "fay"):
        folder.mkdir(mode=0)
    (place / "eve").symlink_to(closed / "x")
    course.assignment("gus", NAME).parent.mkdir()
    course.assignment("gus", NAME).symlink_to(closed / "x")
    TROUBLES["a link to too long a name for the lectures folder"](course, "hal")
    course.feedback("hal", NAME).parents[2].mkdir()
    course.feedback("hal", NAME).parents[1].symlink_to("a" * 300)
    command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    ran = subprocess.run(
        [*command, sys.executable, "-c", LOOK, tmp_path, NAME], cwd=project.ROOT, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert grades(course) == undisturbed
    states = dict(line.split(": ") for line in ran.stdout.splitlines() if ": " in line)
    assert states["eve"] == states["gus"] == states["hal"] == State.NEEDS_REVIEW, states
    assert states["fay"] == State.FAILED_HERE and "'.eve' in submitted/" in ran.stdout, ran.stdout


@pytest.mark.sandboxed
def test_all_troubles_together_leave_honest_work_its_points_and_its_place_in_the_gradebook(tmp_path: Path) -> None:
    course = ClassFolder(tmp_path)
    for student in OTHERS:
        hand_in(tmp_path, student)
    for number, (kind, cause) in enumerate(TROUBLES.items()):
        if kind != "anothers result":
            cause(course, f"odd{number}")
    for name in NAMES.values():
        hand_in(tmp_path, name)
    summary = grade.grade_class(course, NAME, workers=2)
    assert not summary.gradebook_problem
    for student in OTHERS:
        assert summary.results[student].points == LECTURE.points
    named = {name for name in NAMES.values() if name in summary.results}
    # Every name that can be one is a student like any other, and the others are told of.
    assert {name for name in named if summary.results[name].points == LECTURE.points} >= {
        NAMES["a joiner, as in Persian"], NAMES["an emoji"], NAMES["a formula"], NAMES["a comma"], NAMES["an option"]
    }  # fmt: skip
    left = roster.left_out(course, NAME)
    assert named | {name for name in NAMES.values() if any(ascii(name) in line for line in left)} == {*NAMES.values()}
    assert len(left) == len(NAMES) - len(named) and all(line.isascii() and "\n" not in line for line in left)
    pages = list(feedback.write(course, LECTURE, summary.results))
    assert sum(bool(page.problem) for page in pages) >= 2
    ran = CliRunner().invoke(cli.app, ["report", str(tmp_path), NAME])
    assert ran.exit_code == 0, ran.output

"""A class's folder: it is laid out as nbgrader's configuration says, and every command sees the same students in it."""

from __future__ import annotations

import contextlib
import csv
import ctypes
import io
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from classroom import give_cases
from nbgrader.api import Gradebook
from nbgrader.apps import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from rich.cells import cell_len
from traitlets.config.loader import PyFileConfigLoader
from typer.testing import CliRunner

from autograder import cli, project
from autograder.grading import source
from autograder.grading.marks import Result, State
from autograder.grading.text import NOTES_LIMIT
from autograder.records import feedback, grade, report, results, roster
from autograder.records import folder as folders
from autograder.records.folder import ClassFolder, FolderError
from autograder.records.show import alias

NAME = "00_napkin_math"
LECTURE = source.read(project.SOLUTIONS / f"{NAME}.py")
BROKEN = '{"cells": ['  # graded without running anything, so these tests need no sandbox
LAYOUTS = {
    "nbgrader's own": "",
    "other directories, the assignment first": """
c.CourseDirectory.submitted_directory = "handed in"
c.CourseDirectory.autograded_directory = "work/marked"
c.CourseDirectory.feedback_directory = "pages"
c.CourseDirectory.directory_structure = "{{assignment_id}}/{{nbgrader_step}}/{{student_id}}"
""",
    "the student first, another database and course": """
c.CourseDirectory.directory_structure = "{{student_id}}/{{nbgrader_step}}/{{assignment_id}}"
c.CourseDirectory.db_url = "sqlite:///{elsewhere}/book.db"
c.CourseDirectory.course_id = "cs336"
""",
    "the step last, a database beside the configuration": """
c.CourseDirectory.directory_structure = "students/{{student_id}}/{{assignment_id}}/{{nbgrader_step}}"
c.CourseDirectory.submitted_directory = "work/in"
c.CourseDirectory.db_url = "sqlite:///book.db"
""",
    "submissions in a directory elsewhere": 'c.CourseDirectory.submitted_directory = "{elsewhere}/submitted"',
}


@pytest.fixture(params=LAYOUTS)
def course(request: pytest.FixtureRequest, tmp_path: Path) -> ClassFolder:
    """An empty class in one of the layouts."""
    (tmp_path / "elsewhere").mkdir()
    root = tmp_path / "class"
    root.mkdir()
    config = LAYOUTS[request.param].format(elsewhere=tmp_path / "elsewhere")
    (root / folders.CONFIG).write_text(f"c = get_config()\n{config}\n", encoding="utf-8")
    give_cases(root)
    return ClassFolder(root)


def of_nbgrader(root: Path) -> CourseDirectory:
    """What nbgrader itself makes of the configuration."""
    config = PyFileConfigLoader(folders.CONFIG, path=str(root)).load_config()
    config.CourseDirectory.root = str(root)
    return CourseDirectory(config=config)


def hand_in(path: Path, text: str = BROKEN) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def grade_class(course: ClassFolder, **options: object) -> grade.Summary:
    return grade.grade_class(course, NAME, workers=0, unsafe=True, **options)  # type: ignore[arg-type]


def command(name: str, course: ClassFolder, *options: str) -> str:
    """What a command says, its lines joined."""
    return " ".join(CliRunner().invoke(cli.app, [name, str(course), NAME, *options]).output.split())


def test_a_class_in_any_layout_is_graded_where_nbgrader_looks_for_it(
    course: ClassFolder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    theirs = of_nbgrader(course.root)
    for student in ("ada", "bob"):
        hand_in(Path(theirs.format_path(theirs.submitted_directory, student, NAME)) / f"{NAME}.ipynb")
    for name in ("source", "release", "exports"):  # of which none is a student
        (course.root / name / NAME).mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(tmp_path)  # `course` may be called from anywhere, nbgrader in the class's folder

    assert roster.of(course, NAME).keys() == {"ada", "bob"}
    summary = grade_class(course)
    assert summary.complete and summary.graded == ("ada", "bob")
    assert {result.state for result in summary.results.values()} == {State.NEEDS_REVIEW}
    assert [page.path for page in feedback.write(course, LECTURE, summary.results)] == [
        course.feedback(student, NAME) for student in ("ada", "bob")
    ]

    monkeypatch.chdir(course.root)
    assert NbGraderAPI(theirs).get_submitted_students(NAME) == {"ada", "bob"}
    for student in ("ada", "bob"):
        autograded = Path(theirs.format_path(theirs.autograded_directory, student, NAME)) / f"{NAME}.ipynb"
        assert autograded == course.autograded(student, NAME) and autograded.is_file()
        page = Path(theirs.format_path(theirs.feedback_directory, student, NAME)) / f"{NAME}.html"
        assert page == course.feedback(student, NAME) and page.is_file()
    with Gradebook(theirs.db_url, course.settings.course_id) as book:
        assert {one.student.id for one in book.assignment_submissions(NAME)} == {"ada", "bob"}
        assert book.find_assignment(NAME).course_id == course.settings.course_id
    assert not (tmp_path / "book.db").exists()


def test_who_left_the_roster_counts_only_in_lectures_with_work_of_theirs(course: ClassFolder) -> None:
    for student, name in (("ada", NAME), ("dan", NAME), ("dan", "01_tensors"), ("eve", "01_tensors")):
        hand_in(course.submission(student, name))
    hand_in(course.assignment("cy", "01_tensors") / "notes.pdf")
    assert set(roster.of(course, NAME)) >= {"ada", "dan"}  # without a roster, others who handed in something, too
    course.roster.write_text("id\nada\nabsent\n", encoding="utf-8")
    assert set(roster.of(course, NAME)) == {"absent", "ada", "dan"}
    assert set(roster.of(course, "01_tensors")) == {"absent", "ada", "cy", "dan", "eve"}
    summary = grade_class(course)
    assert set(summary.results) == {"absent", "ada", "dan"}
    assert summary.remarks == (f"dan is not on the roster, but has work in {NAME}, so it counts",)
    # A result counts, too, until somebody deletes it; the remark says how.
    course.submission("dan", NAME).unlink()
    [_, gone] = grade_class(course).remarks
    assert f"put the file back, or delete {course.result('dan', NAME)} if it isn't to count" in gone
    course.result("dan", NAME).unlink()
    assert set(grade_class(course).results) == {"absent", "ada"}


def test_paths_are_those_of_nbgraders_course_directory(course: ClassFolder) -> None:
    theirs = of_nbgrader(course.root)
    settings = course.settings
    assert (settings.submitted, settings.autograded) == (theirs.submitted_directory, theirs.autograded_directory)
    assert (settings.feedback, settings.course_id) == (theirs.feedback_directory, theirs.course_id or "default_course")
    for student in ("ada", "ä b", "x.y"):
        handed_in = Path(theirs.format_path(theirs.submitted_directory, student, NAME))
        assert course.assignment(student, NAME) == handed_in
        assert course.submission(student, NAME) == handed_in / f"{NAME}.ipynb"


def test_a_layout_without_the_submissions_says_where_they_belong(course: ClassFolder) -> None:
    said = command("grade", course, "--dry-run")
    if course.settings.structure.startswith("{student_id}"):
        assert "0 to grade, 0 graded before, 0 not submitted" in said  # the class's folder is the students' folder
    else:
        place = str(course.submission("STUDENT", NAME))
        assert "is missing → put submissions into" in said and place.replace(" ", "") in said.replace(" ", "")


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ("c.CourseDirectory.submitted_directory = ", "cannot be read"),
        ("raise RuntimeError('no')", "cannot be read"),
        ('c.CourseDirectory.directory_structure = "{nbgrader_step}/{assignment_id}"', "has no folder per student"),
        ('c.CourseDirectory.directory_structure = "{nbgrader_step}/s-{student_id}"', "has no folder per student"),
        ('c.CourseDirectory.directory_structure = "{step}/{student_id}"', "cannot be filled in"),
        ('c.CourseDirectory.directory_structure = "{nbgrader_step/{student_id}"', "cannot be filled in"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_refused_by_every_command(
    tmp_path: Path, config: str, says: str
) -> None:
    (tmp_path / folders.CONFIG).write_text(f"c = get_config()\n{config}\n", encoding="utf-8")
    (tmp_path / "submitted").mkdir()
    with pytest.raises(FolderError, match=says):
        roster.of(ClassFolder(tmp_path), NAME)
    for name, *options in (("verify",), ("grade", "--dry-run"), ("grade",), ("feedback",), ("report",), ("export",)):
        ran = CliRunner().invoke(cli.app, [name, str(tmp_path), NAME, *options])
        assert ran.exit_code == 1 and says in " ".join(ran.output.split()) and "→" in ran.output, ran.output


# What may be found of a student: what makes it so, the state that every command has to give, and whether that is
# handed in.
Situation = Callable[[ClassFolder], None]
SITUATIONS: dict[str, tuple[Situation, State, bool]] = {}


def situation(state: State, *, handed_in: bool) -> Callable[[Situation], Situation]:
    def register(function: Situation) -> Situation:
        SITUATIONS[function.__name__] = function, state, handed_in
        return function

    return register


@situation(State.NOT_SUBMITTED, handed_in=False)
def nothing(course: ClassFolder) -> None: ...


@situation(State.QUEUED, handed_in=True)
def a_notebook(course: ClassFolder) -> None:
    hand_in(course.submission("ada", NAME))


@situation(State.QUEUED, handed_in=True)
def a_notebook_that_is_a_dangling_link(course: ClassFolder) -> None:
    course.assignment("ada", NAME).mkdir(parents=True)
    course.submission("ada", NAME).symlink_to("nowhere")


@situation(State.QUEUED, handed_in=True)
def a_lecture_folder_that_is_a_dangling_link(course: ClassFolder) -> None:
    course.assignment("ada", NAME).parent.mkdir()
    course.assignment("ada", NAME).symlink_to("nowhere")


@situation(State.QUEUED, handed_in=True)
def a_students_folder_that_is_a_dangling_link(course: ClassFolder) -> None:
    course.assignment("ada", NAME).parent.symlink_to("nowhere")


@situation(State.QUEUED, handed_in=True)
def a_folder_in_the_notebooks_place(course: ClassFolder) -> None:
    course.submission("ada", NAME).mkdir(parents=True)


@situation(State.NOT_SUBMITTED, handed_in=False)
def a_file_in_the_lecture_folders_place(course: ClassFolder) -> None:
    hand_in(course.assignment("ada", NAME))


@situation(State.QUEUED, handed_in=True)
def a_damaged_result(course: ClassFolder) -> None:
    hand_in(course.submission("ada", NAME))
    hand_in(course.result("ada", NAME), '{"student": "ada"')


@situation(State.NOT_SUBMITTED, handed_in=False)
def a_damaged_result_of_nothing(course: ClassFolder) -> None:
    hand_in(course.result("ada", NAME), "[]")


@situation(State.QUEUED, handed_in=True)
def a_folder_in_the_results_place(course: ClassFolder) -> None:
    hand_in(course.submission("ada", NAME))
    course.result("ada", NAME).mkdir(parents=True)


@situation(State.QUEUED, handed_in=True)
def an_unreadable_notebook(course: ClassFolder) -> None:
    hand_in(course.submission("ada", NAME))
    course.submission("ada", NAME).chmod(0)


@situation(State.QUEUED, handed_in=True)
def an_unreadable_lecture_folder(course: ClassFolder) -> None:
    hand_in(course.submission("ada", NAME))
    course.assignment("ada", NAME).chmod(0)


@situation(State.QUEUED, handed_in=True)
def an_unreadable_students_folder(course: ClassFolder) -> None:
    hand_in(course.submission("ada", NAME))
    course.assignment("ada", NAME).parent.chmod(0)


@situation(State.NEEDS_REVIEW, handed_in=True)
def a_graded_notebook(course: ClassFolder) -> None:
    hand_in(course.submission("ada", NAME))
    grade_class(course, database=None)


@situation(State.NEEDS_REVIEW, handed_in=True)
def a_graded_dangling_link(course: ClassFolder) -> None:
    a_notebook_that_is_a_dangling_link(course)
    grade_class(course, database=None)


@situation(State.NEEDS_REVIEW, handed_in=False)
def a_result_whose_notebook_is_gone(course: ClassFolder) -> None:
    a_graded_notebook(course)
    course.submission("ada", NAME).unlink()


@situation(State.NEEDS_REVIEW, handed_in=True)
def a_result_whose_notebook_cannot_be_read_any_more(course: ClassFolder) -> None:
    a_graded_notebook(course)
    course.submission("ada", NAME).chmod(0)


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


@contextlib.contextmanager
def permissions_count() -> Iterator[None]:
    """Give up root's right to read everything, for this thread and for as long as the block lasts."""
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header, data = _Header(0x20080522, 0), (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; twice
    assert libc.capget(ctypes.byref(header), data) == 0
    before = data[0]
    data[0] &= ~(1 << 1 | 1 << 2)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    assert libc.capset(ctypes.byref(header), data) == 0
    try:
        yield
    finally:
        data[0] = before
        assert libc.capset(ctypes.byref(header), data) == 0


@pytest.fixture
def situated(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[ClassFolder, State, bool]]:
    """A class of one, in the situation."""
    write, state, handed_in = SITUATIONS[request.param]
    course = ClassFolder(tmp_path)
    (tmp_path / "submitted").mkdir()
    course.roster.write_text("id\nada\n", encoding="utf-8")
    write(course)
    with permissions_count():
        yield course, state, handed_in
    for path in (course.assignment("ada", NAME).parent, course.assignment("ada", NAME), course.submission("ada", NAME)):
        if path.exists():
            path.chmod(0o700)  # for whoever clears up


@pytest.mark.parametrize("situated", SITUATIONS, indirect=True)
def test_every_command_gives_a_student_the_same_state(situated: tuple[ClassFolder, State, bool]) -> None:
    course, state, handed_in = situated
    for name in ("feedback", "report", "export"):
        assert f"1 student: 1 {state} " in f"{command(name, course)} ", name
    exported = json.loads((course.exports / f"{NAME}.json").read_text())
    assert [student["state"] for student in exported["students"]] == [state]
    assert f"1 student: 1 {state}." in report.page(LECTURE, results.table(course, NAME, ["ada"]))

    dry_run, verified = command("grade", course, "--dry-run"), command("verify", course)
    assert ("would grade ada" in dry_run) is (state is State.QUEUED or changed(course))
    assert ("1 not submitted" in dry_run) is (not handed_in)
    there = handed_in or bool(course.instead("ada", NAME))
    assert f"{int(there)} submission{'' if there else 's'}: {int(there)} to look at" in verified
    assert grade.plan(course, NAME).absent == ([] if handed_in else ["ada"])


@pytest.mark.parametrize("name", [f"{NAME} (1).ipynb", "answers.pdf"])
def test_every_command_names_what_was_handed_in_instead_of_the_notebook(tmp_path: Path, name: str) -> None:
    course = ClassFolder(tmp_path)
    course.assignment("ada", NAME).mkdir(parents=True)
    (course.assignment("ada", NAME) / name).write_bytes(b"{}")
    (course.root / "submitted" / "bob").mkdir()
    course.roster.write_text("id\nada\nbob\n", encoding="utf-8")
    give_cases(tmp_path)
    said = f"ada handed in {name}, but no {NAME}.ipynb"

    graded = grade_class(course, database=None)
    assert graded.remarks == (said,) and graded.results["ada"].notes == (said,) and not graded.results["bob"].notes
    for options in ([], ["--student", "ada"]):
        assert f"ada: not submitted • {said}" in command("show", course, *options)
    shown = command("show", course, "--anonymous")  # the file's name may contain the student's
    ada, bob = (alias(course, NAME, student) for student in ("ada", "bob"))
    assert f"{ada}: not submitted • something was handed in, but no {NAME}.ipynb" in shown and name not in shown
    assert shown.count("handed in") == 1 and f"{bob}: not submitted" in shown
    command("report", course)
    page = course.report(NAME).read_text(encoding="utf-8")
    assert said in page and "0 of 2 have points; 1 to look at" in page and "bob handed in" not in page
    command("export", course)
    rows = csv.DictReader((course.exports / f"{NAME}.csv").read_text(encoding="utf-8").splitlines())
    assert {row["student"]: row["notes"] for row in rows} == {"ada": said, "bob": ""}
    students = json.loads((course.exports / f"{NAME}.json").read_text(encoding="utf-8"))["students"]
    assert [student["notes"] for student in students] == [[said], []]
    verified = command("verify", course)
    assert (
        f"there is no such notebook; what was handed in is {name} → " in verified
        and "1 submission: 1 to look at" in verified
    )


@pytest.mark.parametrize("name", [f"{NAME}.ipynb", "my work.ipynb", NAME[:-1], f"{NAME}s"])
def test_grading_names_what_looks_like_a_notebook_in_the_wrong_place(tmp_path: Path, name: str) -> None:
    course = ClassFolder(tmp_path)
    place = course.assignment("ada", NAME).parent / name
    if name.endswith(".ipynb"):
        place.parent.mkdir(parents=True)
        place.write_bytes(b"{}")
    else:
        place.mkdir(parents=True)
    course.assignment("bob", "03_strides_and_views").mkdir(parents=True)
    course.roster.write_text("id\nada\nbob\n", encoding="utf-8")
    give_cases(tmp_path)
    [remark] = grade_class(course, database=None).remarks
    assert remark.startswith(f"ada has {name} in ") and f"move it to {course.submission('ada', NAME)}" in remark


def test_of_many_files_handed_in_instead_five_are_named_everywhere(tmp_path: Path) -> None:
    course = ClassFolder(tmp_path)
    course.assignment("ada", NAME).mkdir(parents=True)
    for number in range(1_007):
        (course.assignment("ada", NAME) / f"{number:04}.pdf").touch()
    give_cases(tmp_path)
    said = "0000.pdf, 0001.pdf, 0002.pdf, 0003.pdf, 0004.pdf, and 1,002 more files"

    assert grade_class(course, database=None).remarks == (f"ada handed in {said}, but no {NAME}.ipynb",)
    assert f"what was handed in is {said} → " in command("verify", course)
    command("feedback", course)
    assert f"It was: {said}. Hand in {NAME}.ipynb itself." in course.feedback("ada", NAME).read_text(encoding="utf-8")


def changed(course: ClassFolder) -> bool:
    """Whether nobody can say that the stored result is of what is there."""
    return course.read("ada", NAME).error is not None


@pytest.mark.parametrize("situated", SITUATIONS, indirect=True)
def test_grading_says_of_a_student_what_the_other_commands_say_afterwards(
    situated: tuple[ClassFolder, State, bool],
) -> None:
    course, before, _ = situated
    summary = grade_class(course, database=None)
    result = summary.results["ada"]
    if course.result("ada", NAME).is_dir():
        assert (
            result.state is State.FAILED_HERE and "result of ada cannot be written (Is a directory)" in result.notes[0]
        )
        assert not summary.complete
        return
    unreadable = course.read("ada", NAME).error is not None
    if before is State.NOT_SUBMITTED or (unreadable and before is State.NEEDS_REVIEW):
        assert result.state is before
    else:
        assert result.state is (State.FAILED_HERE if unreadable else State.NEEDS_REVIEW)
    assert (result.points is None) is (result.state in (State.NOT_SUBMITTED, State.FAILED_HERE))
    for name in ("feedback", "report", "export"):
        assert f"1 student: 1 {result.state} " in f"{command(name, course)} ", name


@pytest.mark.parametrize("name", ["verify", "grade", "feedback", "report", "export"])
def test_a_dangling_link_that_no_roster_lists_is_a_student_for_every_command(tmp_path: Path, name: str) -> None:
    (tmp_path / "submitted").mkdir()
    (tmp_path / "submitted" / "ada").symlink_to("nowhere")
    (tmp_path / "submitted" / "notes.txt").write_text("no student")
    said = command(name, ClassFolder(tmp_path), *(["--dry-run"] if name == "grade" else []))
    wanted = {"verify": "1 submission: 1 to look at", "grade": "would grade ada 1 to grade"}
    assert wanted.get(name, "1 student: 1 queued") in said


def test_results_of_a_class_whose_submissions_are_gone_are_still_shown(tmp_path: Path) -> None:
    course = ClassFolder(tmp_path)
    a_graded_notebook(course)
    (tmp_path / "submitted").rename(tmp_path / "archive")
    for name in ("feedback", "report", "export"):
        assert "1 student: 1 needs review" in command(name, course), name


def test_of_a_notebook_with_a_thousand_odd_cells_the_first_findings_are_listed(tmp_path: Path) -> None:
    cells = [{"cell_type": "code", "metadata": {"nbgrader": {"grade_id": f"x{i}"}}, "source": ""} for i in range(1_000)]
    path = tmp_path / "submitted" / "ada" / NAME / f"{NAME}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}))
    said = command("verify", ClassFolder(tmp_path))
    assert (
        said.count("→") == NOTES_LIMIT + 1
        and "no answer at all" in said
        and "more problems" in said
        and ": 1 to look at" in said
    )


def test_a_terminal_shows_nothing_of_a_submission_as_a_row_of_ours_as_markup_or_as_an_emoji(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = io.StringIO()
    for name, value in {"_file": shown, "_force_terminal": True, "_width": 80, "_height": 25}.items():
        monkeypatch.setattr(cli.console, name, value)
    forged = "• ada, failed here: :smile: [b]x[/b]"
    notes = tuple(f"OSError: {filler * n}{forged}" for filler in ("x", "x ", "字", "e\u0301") for n in range(90))
    eve = Result(f"eve {forged}", NAME, State.NEEDS_REVIEW, "", (), notes)
    cli._print_summary(grade.Summary({eve.student: eve}, (), (f"{eve.student} {'is not on the roster ' * 5}",)))
    cli._say("\n    " + " " * 75 + forged)  # as `course show` prints code
    lines = shown.getvalue().splitlines()
    ours = [f"• {eve.student}, needs review:", f"• {eve.student} is not on the roster"]
    assert [line for line in lines if line.startswith("•") and not line.startswith(tuple(ours))] == []
    assert sum(line.startswith("•") for line in lines) == 2
    at_worst = [sum(1 if character.isascii() else 2 for character in line) for line in lines]
    assert max(at_worst) <= 80 and max(map(cell_len, lines)) <= 80
    said = "".join(line.strip() for line in lines).replace(" ", "")
    assert said.count(forged.replace(" ", "")) == len(notes) + 3


def test_work_in_a_wrong_place_is_named_on_the_report_and_wherever_it_counts(tmp_path: Path) -> None:
    course = ClassFolder(tmp_path)
    give_cases(tmp_path)
    submitted = tmp_path / "submitted"
    for path in (course.submission("ada", NAME), submitted / "bea.ipynb", submitted / "cyd" / f"{NAME} (1).ipynb"):
        hand_in(path, json.dumps(LECTURE.notebook))
    (tmp_path / "roster.csv").write_text("id\nada\nbea\ncyd\n", encoding="utf-8")
    graded = CliRunner().invoke(cli.app, ["grade", str(tmp_path), NAME, "--unsafe", "--workers", "0"])
    assert graded.exit_code == 1, graded.output
    for said in ("bea.ipynb is in submitted/ itself", "cyd has 00_napkin_math (1).ipynb in"):
        assert graded.output.count(said) == 1
    page = report.page(LECTURE, results.table(course, NAME, ["ada", "bea", "cyd"]))
    assert "cyd has 00_napkin_math (1).ipynb in" in page
    assert "bea.ipynb is in submitted/ itself" in CliRunner().invoke(cli.app, ["show", str(tmp_path), NAME]).output

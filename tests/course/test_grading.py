"""A class of four, graded with nbgrader: every point is the one that was planned.

The notebooks have all that a point can depend on: the setup cell, the exercises, and the lecture's cells that an answer
uses. The other cells run in test_notebooks.py and in the browser. Two students' first lecture is graded as instructors
do it, on stock kernels and with a process for each command; everything on warm kernels, with the same commands called
in this process.
"""

import csv
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import nbformat
import pytest
from exercise_notebooks import exercises_only
from jupyter_client.provisioning.factory import KernelProvisionerFactory
from nbgrader.api import Gradebook
from nbgrader.apps import AutogradeApp, ExportApp, GenerateAssignmentApp, GenerateFeedbackApp

from autograder import project
from autograder.authoring import build, checks
from autograder.grading import source
from autograder.records import gradebook

LECTURES = source.lectures(project.SOLUTIONS)
FIRST = LECTURES[0]
COMMANDS = {
    "generate_assignment": GenerateAssignmentApp,
    "autograde": AutogradeApp,
    "generate_feedback": GenerateFeedbackApp,
    "export": ExportApp,
}
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # nbgrader starts alembic
STUDENTS = ("blank", "ada", "bob", "cy")
Plan = dict[str, dict[str, tuple[str, float]]]


def plan(lecture: source.Lecture) -> Plan:
    """For each student and exercise: the answer handed in and the points it must get.

    One hands in nothing; the others take turns between the reference, a wrong answer and an unusual right one.
    """
    students: Plan = {student: {} for student in STUDENTS}
    for number, exercise in enumerate(lecture.exercises):
        programs = checks.programs(lecture.name, exercise)
        wrong = [p.code for p in programs if p.kind != "right"]
        right = [p.code for p in programs if p.kind == "right"]
        chosen = wrong[number % len(wrong)]
        choices = [
            (exercise.solution, exercise.points),
            (chosen, checks.earned(lecture.name, exercise, chosen)),
            (right[number % len(right)], exercise.points),
        ]
        students["blank"][exercise.name] = (exercise.stub, 0.0)
        for turn, student in enumerate(STUDENTS[1:]):
            students[student][exercise.name] = choices[(number + turn) % 3]
    return students


def in_a_process(course: Path, command: str, *arguments: str) -> None:
    whole = [sys.executable, "-m", "nbgrader", command, *arguments]
    ran = subprocess.run(whole, capture_output=True, text=True, cwd=course, env={**os.environ, "PATH": PATH})
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-4000:]


def in_this_process(course: Path, command: str, *arguments: str) -> None:
    # Nothing of a kernel is wanted once its notebook has run; to end in an orderly way takes it half a second.
    quick = ["--Execute.shutdown_kernel=immediate"] if command == "autograde" else []
    app = COMMANDS[command]()
    with pytest.MonkeyPatch.context() as patch, gradebook.without_alembics_command():
        patch.chdir(course)
        app.initialize([*arguments, *quick])
        app.start()  # exits where something fails


def test_a_class_gets_the_planned_points_from_nbgraders_commands_and_stock_kernels(tmp_path: Path) -> None:
    grade_and_compare(tmp_path, FIRST, in_a_process, students=["blank", "ada"])


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course directory for several lectures, so that a gradebook is made once."""
    return tmp_path_factory.mktemp("course")


@pytest.mark.parametrize("path", LECTURES, ids=lambda path: path.stem)
def test_a_class_gets_the_planned_points(path: Path, course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if sys.platform == "linux":
        monkeypatch.setattr(KernelProvisionerFactory.instance(), "default_provisioner_name", "warm")
    grade_and_compare(course, path, in_this_process, page="ada")  # a page takes nbgrader half a second


def test_an_endless_loop_costs_a_minute_and_its_own_exercise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if sys.platform == "linux":
        monkeypatch.setattr(KernelProvisionerFactory.instance(), "default_provisioner_name", "warm")
    (lecture,) = build.course_directory(tmp_path, [FIRST])
    endless, *others = lecture.exercises
    answers = {each.name: each.solution for each in others} | {endless.name: "while True:\n    pass"}
    notebook = exercises_only(lecture, answers.values())
    build.write_notebook(notebook, project.notebook_path(tmp_path / "source", lecture.name))
    in_this_process(tmp_path, "generate_assignment", lecture.name)
    for cell in notebook.cells:
        cell.source = answers.get(cell.id, cell.source)
    submitted = project.notebook_path(tmp_path / "submitted" / "ada", lecture.name)
    submitted.parent.mkdir(parents=True)
    build.write_notebook(notebook, submitted)
    monkeypatch.chdir(tmp_path)
    (app := AutogradeApp()).initialize([lecture.name])
    assert app.config.Execute.timeout == 60  # and not what the whole environment has for Validate
    in_this_process(tmp_path, "autograde", lecture.name, "--Execute.timeout=8")
    with Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}") as gradebook:
        got = gradebook.find_submission(lecture.name, "ada").score
    assert got == sum(each.points for each in others)


def grade_and_compare(
    course: Path, path: Path, nbgrader: Callable[..., None], page: str = "", students: Sequence[str] = STUDENTS
) -> None:
    """Hand in what was planned, grade it, and look at the gradebook, the exported table and the feedback pages.

    ``page``: the student whose page is made, if not everybody's.
    """
    (lecture,) = build.course_directory(course, [path])
    name = lecture.name
    planned = {student: answers for student, answers in plan(lecture).items() if student in students}
    notebook = exercises_only(lecture, [text for answers in planned.values() for text, _ in answers.values()])
    build.write_notebook(notebook, project.notebook_path(course / "source", name))
    nbgrader(course, "generate_assignment", name)
    released = project.notebook_path(course / "release", name)
    for student, answers in planned.items():
        notebook = nbformat.read(released, as_version=4)
        for cell in notebook.cells:
            if cell.id in answers:
                cell.source = answers[cell.id][0]
        submitted = project.notebook_path(course / "submitted" / student, name)
        submitted.parent.mkdir(parents=True)
        nbformat.write(notebook, submitted)

    nbgrader(course, "autograde", name)
    nbgrader(course, "generate_feedback", name, *(["--student", page] if page else []))
    nbgrader(course, "export", "--to", "grades.csv")

    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        for student, answers in planned.items():
            notebook = gradebook.find_submission_notebook(name, name, student)
            got = {grade.name: grade.score for grade in notebook.grades}
            assert got == {f"test_{exercise}": points for exercise, (_, points) in answers.items()}, student
    with (course / "grades.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["assignment"] == name]
    totals = {row["student_id"]: float(row["score"]) for row in rows}
    whole = sum(exercise.points for exercise in lecture.exercises)
    assert totals == {student: sum(p for _, p in answers.values()) for student, answers in planned.items()}
    assert totals["blank"] == 0
    assert all(0 < totals[student] < whole for student in students if student != "blank")
    for student in [page] if page else planned:
        text = (course / "feedback" / student / name / f"{name}.html").read_text()
        assert f"{totals[student]:g}" in text

"""A class of five, graded with nbgrader's own commands: every point is the one that was planned.

The first lecture on stock kernels, as instructors run it; the others on warm ones, which are quicker.
"""

import csv
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook

from autograder import project
from autograder.authoring import bank, build
from autograder.grading import source

LECTURES = source.lectures(project.SOLUTIONS)


def plan(lecture: source.Lecture) -> dict[str, dict[str, tuple[str, float]]]:
    """For each student and exercise: the answer handed in and the points it must get.

    The mixed students take turns between the reference, a wrong answer, an unusual right one and nothing at all.
    """
    students: dict[str, dict[str, tuple[str, float]]] = {"blank": {}, "reference": {}, "ada": {}, "bob": {}, "cy": {}}
    for number, exercise in enumerate(lecture.exercises):
        answers = bank.read_bank(bank.bank_path(project.ANSWERS, lecture.name, exercise.name))
        wrong = [a.code for a in answers if a.kind == "wrong"]
        right = [a.code for a in answers if a.kind == "right"]
        choices = [
            (exercise.solution, exercise.points),
            (wrong[number % len(wrong)], 0.0),
            (right[number % len(right)], exercise.points),
            (exercise.stub, 0.0),
        ]
        students["blank"][exercise.name] = choices[3]
        students["reference"][exercise.name] = choices[0]
        for turn, student in enumerate(("ada", "bob", "cy")):
            students[student][exercise.name] = choices[(number + turn) % 4]
    return students


def nbgrader(course: Path, *arguments: str) -> str:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    command = [sys.executable, "-m", "nbgrader", *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=course, env=environment)
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-4000:]
    return ran.stdout + ran.stderr


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("path", LECTURES, ids=lambda path: path.stem)
def test_a_class(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if path != LECTURES[0] and sys.platform == "linux":
        monkeypatch.setenv("JUPYTER_DEFAULT_PROVISIONER_NAME", "warm")
    (lecture,) = build.course_directory(tmp_path, [path])
    name = lecture.name
    nbgrader(tmp_path, "generate_assignment", name)
    released = project.notebook_path(tmp_path / "release", name)
    planned = plan(lecture)
    for student, answers in planned.items():
        notebook = nbformat.read(released, as_version=4)
        for cell in notebook.cells:
            if cell.id in answers:
                cell.source = answers[cell.id][0]
        submitted = project.notebook_path(tmp_path / "submitted" / student, name)
        submitted.parent.mkdir(parents=True)
        nbformat.write(notebook, submitted)

    nbgrader(tmp_path, "autograde", name)
    nbgrader(tmp_path, "generate_feedback", name)
    nbgrader(tmp_path, "export", "--to", "grades.csv")

    with Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}") as gradebook:
        for student, answers in planned.items():
            notebook = gradebook.find_submission_notebook(name, name, student)
            got = {grade.name: grade.score for grade in notebook.grades}
            assert got == {f"test_{exercise}": points for exercise, (_, points) in answers.items()}, student
    totals = {row["student_id"]: float(row["score"]) for row in csv.DictReader((tmp_path / "grades.csv").open())}
    whole = sum(exercise.points for exercise in lecture.exercises)
    assert totals == {student: sum(p for _, p in answers.values()) for student, answers in planned.items()}
    assert totals["blank"] == 0 and totals["reference"] == whole
    assert all(0 < totals[student] < whole for student in ("ada", "bob", "cy"))
    for student in planned:
        page = (tmp_path / "feedback" / student / name / f"{name}.html").read_text()
        assert f"{totals[student]:g}" in page

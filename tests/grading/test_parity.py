"""`course grade` gives the points that were planned, and those that stock nbgrader gives, cell by cell."""

import shutil
from pathlib import Path

import nbformat
import pytest
from exercise_notebooks import exercises_only
from nbgrader.api import Gradebook
from nbgrader.apps import AutogradeApp, GenerateAssignmentApp

from autograder import project
from autograder.authoring import build, checks
from autograder.grading import judge, sandbox, source
from autograder.inside import names
from autograder.records import grade, gradebook
from autograder.records.folder import ClassFolder

LECTURES = source.lectures(project.SOLUTIONS)
STOCK = "00_napkin_math"  # the lecture that nbgrader itself grades here


def plan(lecture: source.Lecture) -> dict[str, dict[str, tuple[str, float]]]:
    """For each student and exercise: the answer handed in and the points it must get.

    The mixed student takes turns between a wrong answer, an unusual right one, the reference and nothing at all.
    """
    students: dict[str, dict[str, tuple[str, float]]] = {"reference": {}, "blank": {}, "mixed": {}}
    for number, exercise in enumerate(lecture.exercises):
        programs = checks.programs(lecture.name, exercise)
        wrong = [p.code for p in programs if p.kind != "right"]
        right = [p.code for p in programs if p.kind == "right"]
        chosen = wrong[number % len(wrong)]
        choices = [
            (chosen, checks.earned(lecture.name, exercise, chosen)),
            (right[number % len(right)], exercise.points),
            (exercise.solution, exercise.points),
            (exercise.stub, 0.0),
        ]
        students["reference"][exercise.name] = choices[2]
        students["blank"][exercise.name] = choices[3]
        students["mixed"][exercise.name] = choices[number % 4]
    return students


def test_names_that_a_cell_defines_and_names_that_it_looks_up_are_told_apart() -> None:
    text = """
import os.path as path
from torch import nn as layers
total, (first, *rest) = 1, [2, 3]
for i in range(3): last = i
def answer(given: Kind = fallback):
    global kept
    size = given + helper
    kept = [size * k for k in range(3)]
    def inner(): return size + constant
class Layer(Base):
    width = first
    scale = scale
    def forward(self, x): return torch.relu(x)
"""
    made = {"path", "layers", "total", "first", "rest", "i", "last", "answer", "kept", "Layer"}
    assert names.defined(text) == made
    outside = {"Kind", "fallback", "helper", "constant", "Base", "torch", "range", "scale"}
    assert outside <= names.used(text) <= outside | made
    assert names.defined("def f(:") == names.used("\0") == set()


@pytest.mark.sandboxed
@pytest.mark.parametrize("path", LECTURES, ids=lambda path: path.stem)
def test_every_lecture_gives_the_planned_points(path: Path, box: sandbox.Sandbox) -> None:
    lecture = source.read(path)
    problems = checks.problems(lecture)
    for student, answers in plan(lecture).items():
        cells = problems.answered({name: text for name, (text, _) in answers.items()})
        marks, notes = judge.grade(problems, cells, box)
        planned = {name: points for name, (_, points) in answers.items()}
        assert {mark.exercise: mark.points for mark in marks} == planned, student
        assert notes == [], student


@pytest.mark.sandboxed
@pytest.mark.usefixtures("warm")
def test_stock_nbgrader_gives_the_same_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (lecture,) = build.course_directory(tmp_path, [project.SOLUTIONS / f"{STOCK}.py"])
    monkeypatch.chdir(tmp_path)

    def nbgrader(command: type[AutogradeApp] | type[GenerateAssignmentApp]) -> None:
        app = command()
        app.initialize([STOCK])
        with gradebook.without_alembics_command():
            app.start()  # exits where something fails

    planned = plan(lecture)
    notebook = exercises_only(lecture, [text for answers in planned.values() for text, _ in answers.values()])
    build.write_notebook(notebook, project.notebook_path(tmp_path / "source", STOCK))
    nbgrader(GenerateAssignmentApp)
    students = [name for name in planned if name != "blank"]
    for student in students:
        notebook = nbformat.read(project.notebook_path(tmp_path / "release", STOCK), as_version=4)
        for cell in notebook.cells:
            if cell.id in (answers := planned[student]):
                cell.source = answers[cell.id][0]
        path = project.notebook_path(tmp_path / "submitted" / student, STOCK)
        path.parent.mkdir(parents=True)
        nbformat.write(notebook, path)

    def points(url: str) -> dict[tuple[str, str], tuple[float, float]]:
        with Gradebook(url) as book:
            return {
                (student, grade.name): (grade.score, grade.max_score)
                for student in students
                for grade in book.find_submission_notebook(STOCK, STOCK, student).grades
            }

    # Ours goes first into a gradebook that nbgrader has begun, and into a new one; nbgrader then writes over the first.
    own, new = f"sqlite:///{tmp_path / 'gradebook.db'}", f"sqlite:///{tmp_path / 'new.db'}"
    assert grade.grade_class(ClassFolder(tmp_path), STOCK, workers=0, database=new).complete
    assert grade.grade_class(ClassFolder(tmp_path), STOCK, workers=0).complete
    ours = points(own)
    assert ours == points(new) and len(ours) == len(students) * len(lecture.exercises)
    shutil.rmtree(tmp_path / "autograded")
    nbgrader(AutogradeApp)
    assert points(own) == ours
    with Gradebook(own) as theirs, Gradebook(new) as made:
        cells = [
            {(cell.name, getattr(cell, "source", ""), getattr(cell, "max_score", 0)) for cell in kind}
            for book in (theirs, made)
            for kind in (
                book.find_notebook(STOCK, STOCK).grade_cells,
                book.find_notebook(STOCK, STOCK).solution_cells,
                book.find_notebook(STOCK, STOCK).source_cells,
            )
        ]
    assert cells[:3] == cells[3:]

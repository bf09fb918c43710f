"""The notebooks that Formgrader opens: nbgrader takes them for its own, and a killed run leaves nothing beside them."""

from __future__ import annotations

import copy
from pathlib import Path

import nbformat
import pytest
from classroom import FIRST, LECTURE, NAME, SECOND
from nbgrader.utils import compute_checksum

from autograder import project
from autograder.grading import source
from autograder.grading.marks import Mark, Result, State
from autograder.records import autograded
from autograder.records.folder import ClassFolder

MARKS = tuple(Mark(e.name, 0.0, e.points, f"✗ {e.name}\n    got       λ") for e in LECTURE.exercises)
RESULT = Result("ada", NAME, State.GRADED, "", MARKS)


@pytest.mark.parametrize("path", source.lectures(project.SOLUTIONS), ids=lambda path: path.stem)
def test_the_checksum_of_every_cell_is_nbgraders_own(path: Path) -> None:
    lecture = source.read(path)
    cells = [cell for cell in lecture.notebook.cells if cell.metadata.get("nbgrader")]
    assert len(cells) == 2 * len(lecture.exercises)
    for cell in cells:
        about = cell.metadata.nbgrader
        variants = [copy.deepcopy(cell) for _ in range(5)]
        variants[1].source = "def λ(x):\n    return '𝟙\\ud800\ufffd'"
        variants[2].metadata.nbgrader |= {"grade": not about["grade"], "points": 2.5}
        variants[3].metadata.nbgrader |= {"points": 3, "locked": not about["locked"], "grade_id": "other"}
        variants[4].metadata.nbgrader = nbformat.from_dict({"grade_id": "text", "locked": True})
        for each in variants:
            assert autograded.checksum(each) == compute_checksum(each)
        assert len({autograded.checksum(each) for each in variants}) == 5


def test_the_notebook_has_the_students_answers_our_tests_and_their_messages(tmp_path: Path) -> None:
    answers = {FIRST.name: "x = '\ud800'"}
    path = autograded.write(ClassFolder(tmp_path), LECTURE, RESULT, answers)
    assert path == tmp_path / "autograded" / "ada" / NAME / f"{NAME}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = {cell.id: cell for cell in notebook.cells}
    assert cells[FIRST.name].source == "x = '?'"  # what has no UTF-8 cannot be in a file
    assert "not in what was handed in" in cells[SECOND.name].source
    for exercise in LECTURE.exercises:
        test = cells[f"test_{exercise.name}"]
        assert test.source == exercise.tests and f"✗ {exercise.name}\n    got       λ" in test.outputs[0].text
        for cell in (cells[exercise.name], test):
            assert cell.metadata.nbgrader.checksum == compute_checksum(cell)
            assert cell.metadata.nbgrader.cell_type == "code"


def test_what_a_killed_run_left_unfinished_is_removed_when_the_notebook_is_written_again(tmp_path: Path) -> None:
    folder = ClassFolder(tmp_path)
    path = autograded.write(folder, LECTURE, RESULT, {})
    before = path.read_bytes()
    (path.parent / ".4711-0badcafe.partial").write_bytes(before[:100])
    assert autograded.write(folder, LECTURE, RESULT, {}) == path
    assert [each.name for each in path.parent.iterdir()] == [path.name] and path.read_bytes() == before

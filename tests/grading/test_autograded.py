"""The notebooks that Formgrader opens: nbgrader takes them for its own, and a killed run leaves nothing beside them."""

from __future__ import annotations

import copy
import time
from pathlib import Path

import nbformat
import pytest
from classroom import FIRST, LECTURE, NAME, SECOND
from nbconvert import HTMLExporter
from nbgrader.utils import compute_checksum

from autograder import project
from autograder.grading import source
from autograder.grading.exercises import Cell
from autograder.grading.marks import Mark, Result, State
from autograder.records import autograded, exchange, feedback, pages
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
    path = autograded.write(ClassFolder(tmp_path), LECTURE, RESULT, [Cell("x = '\ud800'", FIRST.name)])
    assert path == tmp_path / "autograded" / "ada" / NAME / f"{NAME}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = {cell.id: cell for cell in notebook.cells}
    assert cells[FIRST.name].source == "x = '?'"  # what has no UTF-8 cannot be in a file
    assert "the submission does not have this cell" in cells[SECOND.name].source
    for exercise in LECTURE.exercises:
        test = cells[f"test_{exercise.name}"]
        assert test.source == source.with_hidden(exercise.tests)
        assert f"✗ {exercise.name}\n    got       λ" in test.outputs[0].text
        for cell in (cells[exercise.name], test):
            assert cell.metadata.nbgrader.checksum == compute_checksum(cell)
            assert cell.metadata.nbgrader.cell_type == "code"


def test_cells_of_a_students_own_stand_where_the_student_put_them(tmp_path: Path) -> None:
    cells = list(LECTURE.problems.cells)
    place = next(n for n, cell in enumerate(cells) if cell.name == FIRST.name)
    cells[place + 1 : place + 1] = [Cell("def helper(): ..."), Cell("  \n")]
    cells[place:place] = [Cell("import cmath")]
    changed = next(n for n, cell in enumerate(cells) if n and not cell.name and cell != Cell("import cmath"))
    cells[changed] = Cell(cells[changed].text + "\nprint('changed')")
    cells += [Cell(f"many = {n}", "strange") for n in range(1_000)]
    cells += [Cell(f"def {SECOND.name}():\n    return {n}") for n in range(2)]
    path = autograded.write(ClassFolder(tmp_path), LECTURE, RESULT, cells)
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    theirs = [cell.source for cell in code if cell.id.startswith("theirs-")]
    answer = next(n for n, cell in enumerate(code) if cell.id == FIRST.name)
    assert code[answer - 1].source == "import cmath" and code[answer + 1].source == "def helper(): ..."
    assert any(source.endswith("print('changed')") for source in theirs) and len(theirs) == 101
    assert theirs[-1].endswith("return 1"), "what an exercise is last defined by is always there"
    assert "more cells of the student's own" in notebook.cells[-1].source
    assert len(code) == len(LECTURE.problems.cells) + 101


@pytest.mark.slow
def test_blank_lines_without_end_are_no_work_for_whoever_colors_them(tmp_path: Path) -> None:
    """In a time that no square of their number would leave: half of these lines would take Pygments minutes."""
    blank = [end.join(["\t"] * 9_000) + f"{end}x = 1" for end in ("\n", "\r", "\r\n", "\u2003\n")]
    cells = [Cell("x = 2\n" + "# long\n" * 20_000, FIRST.name), Cell(blank[0], SECOND.name)]
    cells += [Cell(text, prose=prose) for text in blank for prose in (False, True)]
    began = time.process_time()
    notebook = nbformat.read(autograded.write(ClassFolder(tmp_path), LECTURE, RESULT, cells), as_version=4)
    page, _ = HTMLExporter().from_notebook_node(notebook)
    assert all(feedback.highlighted(text) for text in blank)
    assert time.process_time() - began < 20
    assert "more characters" in page and "x = 2" in {c.id: c.source for c in notebook.cells}[FIRST.name]
    honest = "def f():\n\n    # two blank lines follow\n\n\n    return 1  \n"
    assert pages.shown(honest) == honest
    path = autograded.write(ClassFolder(tmp_path), LECTURE, RESULT, [Cell((".1" * 200 + "\n") * 50)] * 90)
    assert path.read_text().count('"theirs-') == 10


def test_a_long_paragraph_can_be_read_to_its_end_and_of_a_long_line_of_code_the_beginning(tmp_path: Path) -> None:
    cells = [Cell("word " * 300, prose=True), Cell("x = 1" + " + 1" * 300)]
    path = autograded.write(ClassFolder(tmp_path), LECTURE, RESULT, cells)
    sources = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.id.startswith("theirs-")]
    assert [source.count("word") for source in sources] == [300, 0]
    assert sources[1] == ("x = 1" + " + 1" * 300)[:500] + "… (705 more characters)"


def test_what_a_killed_run_left_unfinished_is_removed_when_the_notebook_is_written_again(tmp_path: Path) -> None:
    folder = ClassFolder(tmp_path)
    path = autograded.write(folder, LECTURE, RESULT, [])
    before = path.read_bytes()
    (path.parent / ".4711-0badcafe.partial").write_bytes(before[:100])
    assert autograded.write(folder, LECTURE, RESULT, []) == path
    assert {each.name for each in path.parent.iterdir()} == {path.name, exchange.TIMESTAMP, exchange.SECRET}
    assert path.read_bytes() == before

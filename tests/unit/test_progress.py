"""The panel of a lecture's exercises: what it reads, shows and keeps, in real kernels."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from autograder.authoring.kernel.execution import run_cells
from course_utils import progress
from course_utils.notebook import find_notebook, read_exercises
from course_utils.progress import FILE_VARIABLE, load, show_progress

SETUP = "from course_utils.progress import show_progress\nshow_progress()"
STUB, RIGHT, WRONG = "def double(n):\n    raise NotImplementedError()", "double = lambda n: 2 * n", "double = abs"
NAME = "11_demo"


def check(name: str, source: str, points: float) -> NotebookNode:
    marks = {"grade": True, "grade_id": f"test_{name}", "locked": True, "points": points, "solution": False}
    cell: NotebookNode = new_code_cell(source, id=f"test_{name}", metadata={"nbgrader": marks})
    return cell


def notebook(answer: str = STUB) -> NotebookNode:
    title = "### Exercise 11.1 · Twice `n` <more> &nbsp; ★☆☆ &nbsp; 5 minutes\n\nWrite `double(n)`."
    made: NotebookNode = new_notebook(
        cells=[
            new_markdown_cell("# 11 · Demo\n\nExercises say how long they take.", id="top"),
            new_code_cell(SETUP, id="setup"),
            new_markdown_cell(title, id="text-1"),
            new_code_cell(answer, id="double", metadata={"nbgrader": {"solution": True, "grade_id": "double"}}),
            check("double", "assert double(2) == 4", 2),
            new_code_cell("f = lambda: 0", id="f", metadata={"nbgrader": {"solution": True, "grade_id": "f"}}),
            check("f", "assert f() == 1", 1),
        ]
    )
    return made


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lecture's folder with its notebook, which is the current one."""
    for variable in (FILE_VARIABLE, "JPY_SESSION_NAME", "NBGRADER_EXECUTION"):
        monkeypatch.delenv(variable, raising=False)
    path = tmp_path / NAME
    path.mkdir()
    nbformat.write(notebook(), path / f"{NAME}.ipynb")
    monkeypatch.chdir(path)
    return path


def run(folder: Path, *sources: str) -> list[NotebookNode]:
    """Run cells in a fresh kernel in ``folder``, errors or not; the cells with their outputs."""
    made = new_notebook(cells=[new_code_cell(source) for source in sources])
    run_cells(made, folder, 60, allow_errors=True)
    return list(made.cells)


def shown(cell: NotebookNode) -> list[NotebookNode]:
    """What a cell displayed, as text/html and text/plain."""
    assert not any(output.get("name") == "stderr" for output in cell.outputs), cell.outputs
    return [output.data for output in cell.outputs if output.output_type == "display_data"]


TESTS = ["assert double(2) == 4", "assert f() == 1"]


def test_reads_exercises_in_the_notebooks_order(folder: Path) -> None:
    first, second = read_exercises(folder / f"{NAME}.ipynb")
    assert (first.name, first.title, first.points) == ("double", "Exercise 11.1 · Twice n <more>", 2)
    assert (first.check, first.check_id) == ("assert double(2) == 4", "test_double")
    assert first.link == "11_demo.ipynb#cell-id=text-1"
    assert (second.title, second.link) == ("f", ""), "no heading of its own"


def test_a_check_that_runs_changes_the_panel_and_is_kept(folder: Path) -> None:
    setup, *_, passing = run(folder, SETUP, STUB, TESTS[0], RIGHT, TESTS[0] + "\n")
    (panel,) = shown(setup)
    assert panel["text/plain"].startswith("✓○ 1 of 2 exercises done, 2 of 3 points on the visible checks\n")
    assert "Next: f (1 point)" in panel["text/plain"]
    rows = re.findall(r"<tr><td.*?</tr>", panel["text/html"])
    cells = [re.sub("<[^>]*>", "|", row).strip("|").replace("||", "|") for row in rows]
    assert [re.sub(r"\|+", "|", row) for row in cells] == [
        "✓| done|Exercise 11.1 · Twice n &lt;more&gt;|2",
        "○| to do|f|1",
    ]
    (line,) = shown(passing)
    assert line["text/plain"] == ("✓ double: 2 points on the visible checks; 1 of 2 exercises done. Next: f (1 point)")
    assert "role='status'" in line["text/html"]
    assert json.loads((folder.parent / "progress.json").read_text()) == {NAME: {"double": True}}
    assert sorted(os.listdir(folder.parent)) == [NAME, "progress.json"]


def test_a_failing_check_shows_its_error_and_nothing_more(folder: Path) -> None:
    setup, _, failing = run(folder, SETUP, STUB, TESTS[0])
    assert [output.output_type for output in failing.outputs] == ["error"]
    assert shown(setup)[0]["text/plain"].startswith("✗○ 0 of 2 exercises done, 0 of 3 points")
    assert "does not pass yet" in shown(setup)[0]["text/html"]


def test_a_rubric_counts_by_what_it_says(folder: Path) -> None:
    rubric = """
from course_utils.testing.rubric import Line, Met, Rubric
def made(*met): return Rubric("double", tuple(Line("a promise", 1, each) for each in met))
"""
    for met, mark in (("YES, Met.YES", "✓"), ("YES, Met.NO", "✗"), ("NOT_TRIED, Met.NOT_TRIED", "○")):
        path = folder / f"{NAME}.ipynb"
        path.write_text(path.read_text().replace('"assert double(2) == 4"', f'"made(Met.{met})"'))
        setup, *_, last = run(folder, SETUP, rubric, f"made(Met.{met})")
        assert shown(setup)[0]["text/plain"].startswith(f"{mark}○ ")
        assert bool(shown(last)) is (mark == "✓")
        nbformat.write(notebook(), path)


def test_progress_survives_a_restart_and_a_check_that_fails_later_is_no_longer_done(folder: Path) -> None:
    run(folder, SETUP, RIGHT, TESTS[0], "f = lambda: 1", TESTS[1])
    (panel,) = shown(run(folder, SETUP)[0])
    assert panel["text/plain"].startswith("✓✓ 2 of 2 exercises done, 3 of 3 points")
    assert "All visible checks pass. Validate, in the toolbar," in panel["text/html"]
    fake = "import sys; sys.modules['google.colab'] = sys\n"  # there is no Validate
    (panel,) = shown(run(folder, fake + SETUP)[0])
    assert "All visible checks pass. Runtime ▸ Restart session and run all runs" in panel["text/html"]
    setup, *_ = run(folder, SETUP, WRONG, TESTS[0])
    assert shown(setup)[0]["text/plain"].startswith("✗✓ 1 of 2 exercises done, 1 of 3 points")
    (again,) = shown(run(folder, SETUP)[0])
    assert again == shown(setup)[0]


def test_running_the_setup_cell_again_does_not_count_twice(folder: Path) -> None:
    *_, passing = run(folder, SETUP, SETUP, RIGHT, TESTS[0])
    assert len(shown(passing)) == 1


def test_other_cells_an_interrupt_and_other_lectures_change_nothing(folder: Path) -> None:
    kept = {"00_napkin_math": {"two_weeks": True}, NAME: {"double": True}}
    (folder.parent / "progress.json").write_text(json.dumps(kept))
    stop = "def double(n):\n    raise KeyboardInterrupt"
    setup, *cells = run(folder, SETUP, "1 / 0", "x = 1", stop, TESTS[0])
    assert shown(setup)[0]["text/plain"].startswith("✓○ 1 of 2")
    *_, (interrupted,) = said = [shown(cell) for cell in cells]
    assert not any(said[:-1]) and interrupted["text/plain"].startswith("Interrupted at line 1")
    assert json.loads((folder.parent / "progress.json").read_text()) == kept
    run(folder, SETUP, "f = lambda: 1", TESTS[1])
    kept[NAME]["f"] = True
    assert json.loads((folder.parent / "progress.json").read_text()) == kept


def test_two_runs_from_a_fresh_start_show_the_same(folder: Path) -> None:
    cells = [SETUP, RIGHT, TESTS[0], TESTS[1]]
    first = [cell.outputs for cell in run(folder, *cells)]
    (folder.parent / "progress.json").unlink()
    assert [cell.outputs for cell in run(folder, *cells)] == first


@pytest.mark.parametrize(
    ("variable", "value"),
    [("NBGRADER_EXECUTION", "autograde"), ("NBGRADER_EXECUTION", "validate"), (FILE_VARIABLE, "off")],
)
def test_nothing_is_shown_or_kept_while_grading_or_when_turned_off(
    variable: str, value: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    assert not any(cell.outputs for cell in run(folder, SETUP, RIGHT, TESTS[0]))
    assert os.listdir(folder.parent) == [NAME]


def test_nothing_is_shown_or_kept_in_a_folder_without_a_lecture(tmp_path: Path, folder: Path) -> None:
    assert not any(cell.outputs for cell in run(tmp_path, SETUP, RIGHT, TESTS[0]))
    assert os.listdir(tmp_path) == [NAME]


def test_nothing_is_shown_kept_or_imported_outside_ipython(folder: Path) -> None:
    script = "import sys; from course_utils.progress import show_progress as s; s(); print('IPython' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=folder)
    assert (ran.stdout, ran.stderr) == ("False\n", "")
    show_progress()  # IPython is imported here, and there is no shell
    assert os.listdir(folder.parent) == [NAME]


def test_a_file_that_cannot_be_written_is_reported_and_the_panel_goes_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FILE_VARIABLE, str(folder / "missing" / "progress.json"))
    setup, _, passing, _, failing = run(folder, SETUP, RIGHT, TESTS[0], WRONG, TESTS[0])
    assert "This could not be saved: [Errno 2]" in shown(passing)[0]["text/html"]
    assert "1 of 2 exercises done" in shown(passing)[0]["text/html"]
    assert any("This could not be saved" in output.get("text", "") for output in failing.outputs)
    assert shown(setup)[0]["text/plain"].startswith("✗○ 0 of 2")


TEXT = nbformat.writes(notebook())
BROKEN = {
    "missing": None,
    "empty": "",
    "truncated": TEXT[: len(TEXT) // 2],
    "a list": "[]",
    "a cell of no kind": '{"cells": [1]}',
    "no metadata": '{"cells": [{"cell_type": "code", "source": "1"}]}',
    "points of no number": TEXT.replace('"points": 2', '"points": null'),
    "deep": "[" * 100_000,
    "no exercises": json.dumps(new_notebook(cells=[new_code_cell("1")])),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_notebook_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.ipynb"
    if (text := BROKEN[name]) is not None:
        path.write_text(text)
    with pytest.raises((OSError, ValueError)):
        read_exercises(path)


@pytest.mark.parametrize("name", ["missing", "truncated", "no exercises"])
def test_the_panel_says_that_a_broken_notebook_cannot_be_read(name: str, folder: Path) -> None:
    path = folder / f"{NAME}.ipynb"
    path.unlink()
    if (text := BROKEN[name]) is not None:
        path.write_text(text)
    setup, _, passing = run(folder, SETUP, RIGHT, TESTS[0])
    (panel,) = shown(setup)
    assert "Your progress cannot be shown, because 11_demo.ipynb cannot be read" in panel["text/plain"]
    assert "run this cell again" in panel["text/html"] and not passing.outputs


def test_finds_the_notebook_under_another_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = folder / f"{NAME}.ipynb"
    assert find_notebook() == usual
    mine = usual.rename(folder / "mine.ipynb")
    assert find_notebook() == mine
    nbformat.write(notebook(), folder / "copy.ipynb")
    assert find_notebook() == usual, "which of the two is not known"
    for session in ("11_demo/mine.ipynb", "C:\\11_demo\\mine.ipynb"):
        monkeypatch.setenv("JPY_SESSION_NAME", session)
        assert find_notebook() == mine
    monkeypatch.setenv("JPY_SESSION_NAME", "11_demo/before.ipynb")
    (folder / "copy.ipynb").rename(usual)
    assert find_notebook() == usual, "renamed since its kernel was started"
    monkeypatch.chdir(folder.parent)
    monkeypatch.delenv("JPY_SESSION_NAME")
    assert find_notebook() is None


@pytest.mark.parametrize("content", ["{", "[1]", '{"11_demo": 1}', '{"11_demo": {"double": "yes"}}', "\udcff"])
def test_a_damaged_file_is_moved_aside_whole(content: str, tmp_path: Path) -> None:
    path = tmp_path / "progress.json"
    before = content.encode(errors="surrogateescape")
    for count in (1, 2):
        path.write_bytes(before)
        kept, trouble = load(path)
        assert kept == {} and f"It is now progress.damaged-{count}.json" in trouble
        assert not path.exists() and (tmp_path / f"progress.damaged-{count}.json").read_bytes() == before
    assert load(path) == ({}, "")


def test_the_panel_reports_a_damaged_file_and_goes_on(folder: Path) -> None:
    (folder.parent / "progress.json").write_text("{")
    setup, *_ = run(folder, SETUP, RIGHT, TESTS[0])
    (panel,) = shown(setup)
    assert "progress.json was damaged" in panel["text/html"] and "progress.damaged-1.json" in panel["text/plain"]
    assert json.loads((folder.parent / "progress.json").read_text()) == {NAME: {"double": True}}


def test_a_file_that_cannot_be_read_is_left_alone(folder: Path) -> None:
    path = folder.parent / "progress.json"
    path.mkdir()  # root may read any file, but no folder is one
    setup, _, passing = run(folder, SETUP, RIGHT, TESTS[0])
    assert "Your earlier progress cannot be read" in shown(setup)[0]["text/html"]
    assert "This could not be saved" in shown(passing)[0]["text/plain"] and path.is_dir()


def test_a_check_is_recognized_by_its_id_and_without_one_by_its_source(folder: Path) -> None:
    panel = progress._Panel(NAME, read_exercises(folder / f"{NAME}.ipynb"))

    class Cell:
        def __init__(self, cell_id: str | None, raw_cell: str) -> None:
            self.cell_id, self.raw_cell = cell_id, raw_cell

    def name(cell_id: str | None, source: str) -> str | None:
        found = panel._checked(Cell(cell_id, source))
        return found.name if found else None

    assert name("test_f", "print(f())\nassert f() == 1") == "f"
    assert name(None, "assert f() == 1\n") == name("other", "assert f() == 1") == "f"
    assert name("other", "assert f() == 2") is None and name(None, "") is None

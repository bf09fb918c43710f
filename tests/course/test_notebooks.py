"""Every notebook runs from top to bottom, a student's too before anything is solved.

The instructor's runs twice, and shows the same both times: nbval compares.

The first run starts on a warm kernel, which is quicker, and its outputs are also the web book's. The second starts on
a stock kernel, as people run notebooks.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from autograder import project
from autograder.authoring import build, execution
from autograder.grading import source
from course_utils.progress import FILE_VARIABLE

SKIPPED = "○ Skipped: this cell needs "


@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", source.lectures(project.SOLUTIONS), ids=lambda path: path.stem)
def test_a_second_run_on_a_stock_kernel_shows_what_the_first_showed(path: Path, tmp_path: Path) -> None:
    lecture = source.read(path)
    notebook = execution.executed(lecture)
    for index in lecture.timed:
        notebook.cells[index].metadata["tags"] = ["nbval-ignore-output"]
    executed = tmp_path / f"{lecture.name}.ipynb"
    build.write_notebook(notebook, executed)

    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "--nbval-cell-timeout=120"]
    # Without plugins that have no part in this: importing Hypothesis and anyio takes more than a second each time.
    command += ["--disable-plugin-autoload", "-p", "nbval.plugin", "-p", "no:cacheprovider"]
    command += ["-c", "/dev/null", "-q", "--durations=5", str(executed)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    print(ran.stdout[-4000:])
    assert ran.returncode == 0, (
        "A cell fails, or shows something else on a second run: seed it, or tag it `timed` if it shows a timing.\n"
        + ran.stdout[-8000:]
        + ran.stderr[-2000:]
    )
    code = sum(cell.cell_type == "code" for cell in notebook.cells)
    assert f"{code} passed" in ran.stdout, ran.stdout[-2000:]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", source.lectures(project.SOLUTIONS), ids=lambda path: path.stem)
def test_an_untouched_notebook_runs_to_its_last_cell_and_says_what_it_skips(path: Path, tmp_path: Path) -> None:
    """As Run All does, which stops at the first error. Once everything is solved nothing is skipped."""
    lecture = source.read(path)
    (tmp_path / lecture.name).mkdir()
    place = project.notebook_path(tmp_path, lecture.name)
    shutil.copyfile(project.notebook_path(project.NOTEBOOKS, lecture.name), place)
    notebook = nbformat.read(place, as_version=4)
    with execution.warm_kernels():
        execution.run_cells(notebook, place.parent, 120, environ={**os.environ, FILE_VARIABLE: "off"})
    skipped = _skipped(notebook)
    assert skipped and _skipped(execution.executed(lecture)) == []
    titles = {found for cell in notebook.cells for found in re.findall(r"(Exercise [\d.]+) ·", cell.source)}
    assert {text.removeprefix(SKIPPED).split(" ·")[0] for text in skipped} <= titles


def _skipped(notebook: nbformat.NotebookNode) -> list[str]:
    """What cells say that were skipped."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    shown = [output.get("data", {}).get("text/plain", "") for output in outputs]
    return [text for text in shown if text.startswith(SKIPPED)]

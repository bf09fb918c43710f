"""Every instructor's notebook runs from top to bottom twice, and shows the same both times: nbval compares.

The first run starts on a warm kernel, which is quicker, and its outputs are also the web book's. The second starts on
a stock kernel, as people run notebooks. Most students' notebooks run untouched in JupyterLab, in
tests/browser/test_lectures.py; the others run here.
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
from autograder.authoring import build
from autograder.authoring.kernel import execution
from autograder.grading import source
from course_utils.progress import FILE_VARIABLE

SKIPPED = "○ Skipped: this cell needs "
SOLVED_IN_JUPYTERLAB = "01_tensors", "05_flops_and_mfu", "14_capstone"  # SOLVED in tests/browser/test_lectures.py


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
    assert "○ Skipped" not in str(notebook), "with everything solved nothing is skipped"
    # A student's own module may keep more than planned, so the lectures allow it; ours keeps what the text says.
    for planned, measured in re.findall(r"([\d,]+) B predicted, ([\d,]+) B measured", str(notebook)):
        assert planned == measured


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", SOLVED_IN_JUPYTERLAB)
def test_an_untouched_notebook_runs_to_its_last_cell_and_says_what_it_skips(name: str, tmp_path: Path) -> None:
    """As Run All does, which stops at the first error."""
    place = project.notebook_path(tmp_path, name)
    place.parent.mkdir()
    shutil.copyfile(project.notebook_path(project.NOTEBOOKS, name), place)
    notebook = nbformat.read(place, as_version=4)
    with execution.warm_kernels():
        execution.run_cells(notebook, place.parent, 120, environ={**os.environ, FILE_VARIABLE: "off"})
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    shown = [output.get("data", {}).get("text/plain", "") for output in outputs]
    skipped = {text.removeprefix(SKIPPED).split(" ·")[0] for text in shown if text.startswith(SKIPPED)}
    titles = {found for cell in notebook.cells for found in re.findall(r"(Exercise [\d.]+) ·", cell.source)}
    assert skipped and skipped <= titles

"""What a lecture's kernel says in place of a traceback, in real kernels."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from autograder import project
from autograder.authoring.kernel.execution import run_cells
from autograder.grading import source
from course_utils.notebook import steps

NAME = "11_demo"
WATCH = "%load_ext course_utils.kernel"
STUB = "def double(n):\n    '''Twice n.'''\n    raise NotImplementedError()"
CLASS = "class Pair:\n    def __init__(self, n):\n        self.n = n\n        raise NotImplementedError()"
RIGHT = "def double(n):\n    return 2 * n"
NEEDED = "○ Skipped: this cell needs Exercise 11.1 · Twice n"


def solution(name: str, source: str) -> NotebookNode:
    cell: NotebookNode = new_code_cell(source, metadata={"nbgrader": {"solution": True, "grade_id": name}})
    return cell


def check(name: str, source: str) -> NotebookNode:
    marks = {"grade": True, "grade_id": f"test_{name}", "locked": True, "points": 1, "solution": False}
    cell: NotebookNode = new_code_cell(source, metadata={"nbgrader": marks})
    return cell


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lecture's folder with its notebook."""
    for variable in ("JPY_SESSION_NAME", "NBGRADER_EXECUTION"):
        monkeypatch.delenv(variable, raising=False)
    path = tmp_path / NAME
    path.mkdir()
    made = new_notebook(
        cells=[
            new_code_cell("from fractions import Fraction\nhalf = Fraction(1, 2)"),
            new_markdown_cell("### Exercise 11.1 · Twice `n` &nbsp; ★☆☆ &nbsp; 5 minutes", id="text-1"),
            solution("double", STUB),
            check("double", "assert double(2) == 4"),
            new_markdown_cell("### Exercise 11.2 · A pair &nbsp; ★☆☆ &nbsp; 5 minutes", id="text-2"),
            solution("Pair", CLASS),
            check("Pair", "assert Pair(1).n == 1"),
        ]
    )
    nbformat.write(made, path / f"{NAME}.ipynb")
    return path


def run(folder: Path, *sources: str, go_on: bool = False) -> list[str]:
    """Run cells in a fresh kernel in ``folder``; what each says: text shown, text printed, or an error's name."""
    made = new_notebook(cells=[new_code_cell(source) for source in (WATCH, *sources)])
    run_cells(made, folder, 60, allow_errors=go_on)
    said = []
    for cell in made.cells[1:]:
        parts = []
        for output in cell.outputs:
            parts.append(output.get("ename") or output.get("text") or output["data"]["text/plain"])
        said.append("".join(parts).strip())
    return said


def test_a_cell_that_needs_an_unsolved_exercise_says_which_and_the_next_one_runs(folder: Path) -> None:
    cells = [
        (STUB, ""),
        (CLASS, ""),
        ("double(3)", NEEDED),
        ("rows = []\nrows.append(double(1))", NEEDED),
        ("assert len(rows) == 1", NEEDED),  # a cell that was skipped would have filled them
        ("made = {'mine': double}", ""),
        ("made['mine'](1)", NEEDED),
        ("def twice_twice(n):\n    return double(double(n))", ""),
        ("twice_twice(1)", NEEDED),
        ("answer = double(21)", NEEDED),
        ("print(answer)", NEEDED),
        ("def late():\n    return answer", ""),
        ("late()", NEEDED),
        (
            "try:\n    double(1)\nexcept NotImplementedError as error:\n    raise ValueError('as text') from None",
            NEEDED,
        ),
        ("Pair(1)", "○ Skipped: this cell needs Exercise 11.2 · A pair"),
        ("import math", ""),
        ("math.floor(2.5)", "2"),
        (RIGHT, ""),
        ("answer = double(21)", ""),
        ("print(answer)", "42"),
    ]
    said = run(folder, *(source for source, _ in cells))
    assert list(zip((source for source, _ in cells), said, strict=True)) == cells


def test_once_it_is_solved_errors_are_errors_again(folder: Path) -> None:
    said = run(
        folder, STUB, "a = double(1)", RIGHT, "a = double(1)", "assert a == 3", "double(None)", "b", "1", go_on=True
    )
    assert said == ["", NEEDED, "", "", "AssertionError", "TypeError", "NameError", "1"]


def test_an_error_of_the_students_own_stops_the_run(folder: Path) -> None:
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        run(folder, STUB, "1 / 0", "2")
    with pytest.raises(CellExecutionError, match="not this device"):
        run(folder, STUB, "raise NotImplementedError('not this device')", "2")


def test_a_check_is_never_skipped(folder: Path) -> None:
    assert run(folder, STUB, "assert double(2) == 4", go_on=True) == ["", "NotImplementedError"]


def test_in_a_fresh_kernel_a_name_of_the_notebooks_is_said_to_be_defined_above(folder: Path) -> None:
    (said,) = run(folder, "half + 1", go_on=True)
    assert said.startswith("NameError: `half` is defined in a cell above, which has not run in this kernel yet.")


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("1\nnp.zeros(3)", "NameError: `np` isn't defined. … (line 2: np.zeros(3))"),
        (
            "def f(x):\n    return nowhere + x\nf(1)",
            "NameError: `nowhere` isn't defined. … (line 2 in f: return nowhere + x)",
        ),
        ("import pandaz", "ModuleNotFoundError: there is no module `pandaz` here. … (line 1: import pandaz)"),
        (
            "from torch.nowhere import x",
            "ModuleNotFoundError: there is no module `torch.nowhere` here. … (line 1: from torch.nowhere import x)",
        ),
    ],
)
def test_a_name_or_module_that_nobody_has_is_one_line_above_a_folded_traceback(
    code: str, line: str, folder: Path
) -> None:
    made = new_notebook(cells=[new_code_cell(source) for source in (WATCH, code)])
    with pytest.raises(CellExecutionError):
        run_cells(made, folder, 60)
    shown, fold = made.cells[1].outputs
    first, last = line.split(" … ")
    [said] = shown["traceback"]
    assert said.startswith(first) and said.endswith(last) and "\n" not in said
    assert shown["ename"] == first.partition(":")[0]  # the grader reads it
    assert "<details>" in fold["data"]["text/html"]
    assert "Traceback (most recent call last)" in fold["data"]["text/html"]


def test_an_error_that_only_looks_like_it_keeps_its_traceback(folder: Path) -> None:
    early = "def f():\n    x += 1\nf()"
    inside = "import importlib\nimportlib.import_module('pandaz')"
    assert run(folder, early, inside, go_on=True) == ["UnboundLocalError", "ModuleNotFoundError"]


INTERRUPT = "import os, signal, time\nfor n in range(3):\n    os.kill(os.getpid(), signal.SIGINT)\n    time.sleep(5)"


@pytest.mark.skipif(not hasattr(signal, "SIGINT") or os.name == "nt", reason="no such signal")
def test_an_interrupt_says_where_it_stopped_the_cell(folder: Path) -> None:
    (said,) = run(folder, INTERRUPT, go_on=True)
    assert said.startswith("Interrupted at line ") and "of this cell: " in said and said.endswith(".")


def test_elsewhere_nothing_changes(tmp_path: Path) -> None:
    assert run(tmp_path, STUB, "double(1)", go_on=True) == ["", "NotImplementedError"]
    code = (
        "import IPython; from course_utils import kernel; shell = IPython.InteractiveShell(); "
        "kernel.watch(shell); print(shell.custom_exceptions)"
    )
    environ = {**os.environ, "NBGRADER_EXECUTION": "autograde"}
    lecture = tmp_path / NAME
    lecture.mkdir()
    done = subprocess.run([sys.executable, "-c", code], cwd=lecture, env=environ, capture_output=True, text=True)
    assert done.stdout == "()\n", done.stderr


def test_a_lectures_kernel_names_no_version_of_python_that_a_notebook_would_keep(folder: Path) -> None:
    ask = "get_ipython().kernel.language_info"
    (said,) = run(folder, ask)
    lecture = project.notebook_path(project.NOTEBOOKS, source.lectures(project.SOLUTIONS)[0].stem)
    ours = nbformat.read(lecture, as_version=4).metadata["language_info"]
    assert ast.literal_eval(said) == ours


def test_every_kernel_of_the_environment_loads_it() -> None:
    found = Path(sys.prefix, "etc", "ipython", "ipython_kernel_config.py")
    assert 'extensions = ["course_utils.kernel"]' in found.read_text(encoding="utf-8")


def test_steps_are_what_a_cell_uses_binds_and_changes() -> None:
    (step,) = steps("total[0].x, (a, *b) = f(c), [d for d in e]")
    assert (step.binds >= {"a", "b"}, step.changes, step.uses >= {"f", "c", "e", "total"}) == (True, {"total"}, True)
    inner, outer = steps("def g(x):\n    y = x + z\n    return y\nimport a.b as c, d.e")
    assert (inner.binds, "z" in inner.uses, outer.binds) == ({"g"}, True, {"c", "d"})
    assert [step.changes for step in steps("rows.append(1); print(1); x.y = 2")] == [{"rows"}, set(), {"x"}]
    assert list(steps("def f(:")) == []
    empty = ["def f():\n    '''f'''\n    raise NotImplementedError()", CLASS]
    begun = ["def f():\n    return 1\n    raise NotImplementedError()", "def f():\n    raise NotImplementedError('x')"]
    assert [[step.empty for step in steps(source)] for source in (*empty, *begun)] == [[True], [True], [False], [False]]

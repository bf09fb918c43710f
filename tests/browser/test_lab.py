"""JupyterLab as a student meets it: in a real browser, in the environment that runs these tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from lab import WAIT, Lab
from nbformat import NotebookNode
from playwright.sync_api import Locator, Page

ROOT = Path(__file__).parents[2]
LONG = 150  # cells; JupyterLab's windowing, left on, keeps 63 of them in the page

pytestmark = pytest.mark.xdist_group("lab")  # one server and one browser serve them all


def cell(source: str, grade_id: str, **nbgrader: object) -> NotebookNode:
    """A code cell with nbgrader's metadata, read-only and without points unless told otherwise."""
    metadata = {"schema_version": 3, "grade_id": grade_id, "grade": False, "solution": False, "locked": True}
    made: NotebookNode = nbformat.v4.new_code_cell(source, metadata={"nbgrader": {**metadata, **nbgrader}}, id=grade_id)
    return made


def without_demonstrations(lecture: str) -> list[NotebookNode]:
    """A lecture's cells as students get them, but of its own code only the setup cell: the rest takes long to run."""
    cells = nbformat.read(ROOT / "notebooks" / lecture / f"{lecture}.ipynb", as_version=4).cells
    setup = next(cell for cell in cells if cell.cell_type == "code")
    return [cell for cell in cells if cell is setup or cell.cell_type != "code" or "nbgrader" in cell.metadata]


def write_notebook(path: Path, cells: list[NotebookNode]) -> None:
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("notebooks")
    test = cell("assert double(2) == 4", "test_double", grade=True, points=1)
    for name, answer in {"right": "def double(n): return 2 * n", "wrong": "def double(n): return n"}.items():
        write_notebook(folder / f"{name}.ipynb", [cell(answer, "double", solution=True, locked=False), test])
    (folder / "01_tensors").mkdir()
    write_notebook(folder / "01_tensors" / "01_tensors.ipynb", without_demonstrations("01_tensors"))
    (folder / "11_demo").mkdir()
    setup = nbformat.v4.new_code_cell("from course_utils.progress import show_progress\nshow_progress()", id="setup")
    text = nbformat.v4.new_markdown_cell("### Exercise 11.1 · Twice &nbsp; ★☆☆", id="text")
    space = nbformat.v4.new_markdown_cell("\n\n".join("text" * 40), id="space")  # more than a window's height
    answer = cell("def double(n): return n", "double", solution=True, locked=False)
    write_notebook(folder / "11_demo" / "11_demo.ipynb", [setup, space, text, answer, test])
    folded = cell("numbers = [" + ", ".join(map(str, range(50))) + "]", "folded")
    folded.metadata["jupyter"] = {"source_hidden": True}
    table = cell('print(*(f"{i:>30}{i:>30}" for i in range(5)), sep="\\n")', "table")
    code = nbformat.v4.new_markdown_cell(f"A long name: `{'torch.' * 20}`", id="code")
    write_notebook(folder / "narrow.ipynb", [folded, code, table])
    write_notebook(folder / "long.ipynb", [cell(f"{i}", f"cell-{i}") for i in range(LONG)])
    lab = Lab(folder, tmp_path_factory.mktemp("home"))
    yield lab
    lab.stop()


def test_installed_settings_are_the_ones_in_the_checkout() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    shared = build["targets"]["wheel"]["shared-data"]
    settings = [path for path in (ROOT / "jupyter").rglob("*.*") if path.suffix in {".json", ".py", ".js", ".css"}]
    for path in sorted(settings):
        (source,) = (source for source in shared if path.is_relative_to(ROOT / source))
        installed = Path(sys.prefix, shared[source], path.relative_to(ROOT / source))
        assert installed.is_file(), f"{installed} is missing: install with `make test` (python3 bootstrap.py)"
        assert installed.read_bytes() == path.read_bytes(), f"{installed} is old: `make test` installs it again"


def test_a_notebook_opens_ready_to_run_and_nothing_asks_or_complains(lab: Lab, page: Page) -> None:
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    lab.open(page, "right.ipynb")
    assert page.locator(".jp-Dialog").count() == 0
    assert page.locator(".Toastify__toast").count() == 0
    page.evaluate("jupyterapp.commands.execute('notebook:run-all-cells')")
    page.locator(".jp-InputArea-prompt").get_by_text("[2]:").wait_for()
    assert (
        page.locator(".jp-OutputArea-output[data-mime-type*=stderr], .jp-RenderedText[data-mime-type*=error]").count()
        == 0
    )
    assert problems == []
    log = lab.log.read_text()
    assert "Traceback" not in log and "| ERROR" not in log and "[E " not in log, log


def test_validate_says_whether_the_tests_pass(lab: Lab, page: Page) -> None:
    lab.open(page, "right.ipynb")
    assert "passes all the tests" in lab.validate(page)
    lab.open(page, "wrong.ipynb")
    failure = lab.validate(page)
    assert "assert double(2) == 4" in failure and "passes all" not in failure
    lab.open(page, "01_tensors/01_tensors.ipynb")
    failure = lab.validate(page)
    assert "Exercise 1.1 · " in failure and re.search(r"tensor_bytes: 0 of 1 points?\s+○ ", failure)
    assert "course_utils" not in failure and "Traceback" not in failure


def test_a_lectures_check_names_the_mistake_and_accepts_the_answer(lab: Lab, page: Page) -> None:
    lab.open(page, "01_tensors/01_tensors.ipynb")
    page.evaluate("jupyterapp.commands.execute('notebook:run-all-cells')")
    cells = page.locator(".jp-CodeCell")
    solution = cells.filter(has_text="def tensor_bytes").first
    check = cells.filter(has_text='check("tensor_bytes")').first
    output = check.locator(".jp-OutputArea")
    output.get_by_text("not tried yet").first.wait_for(timeout=WAIT)

    def answer(expression: str) -> None:
        solution.locator(".cm-content").click()
        page.keyboard.press("Control+A")
        page.keyboard.insert_text(f"def tensor_bytes(x, dtype=None):\n    return {expression}")
        page.keyboard.press("Shift+Enter")  # runs it and goes on to the check
        page.keyboard.press("Shift+Enter")

    answer("x.numel()")
    output.get_by_text("Your code counts elements").first.wait_for(timeout=WAIT)
    message = output.inner_text()
    assert "Traceback" not in message and "✗" in message
    assert re.search(r"got\s+\d+\s+expected\s+\d+", message)
    answer("x.numel() * (dtype or x.dtype).itemsize")
    output.get_by_text("✓ tensor_bytes: 1 point on the visible checks; 1 of 6 exercises done.").wait_for(timeout=WAIT)
    assert "✗" not in output.inner_text() and "on the cases that you can see" in output.inner_text()


def test_the_panel_follows_the_checks_survives_a_restart_and_leads_to_what_is_next(lab: Lab, page: Page) -> None:
    lab.open(page, "11_demo/11_demo.ipynb")
    setup, solution, check = (page.locator(".jp-CodeCell").nth(i) for i in range(3))
    panel = setup.locator("[role=region]")

    def run(cell: Locator, text: str | None = None) -> None:
        cell.locator(".cm-content").click()
        if text is not None:
            page.keyboard.press("Control+A")
            page.keyboard.insert_text(text)
        page.keyboard.press("Control+Enter")

    run(setup)
    panel.get_by_text("0 of 1 exercises done").wait_for()
    panel.get_by_role("link", name="Exercise 11.1 · Twice").last.click()
    heading = page.get_by_role("heading", name="Exercise 11.1")
    page.wait_for_function("heading => heading.getBoundingClientRect().top < innerHeight", arg=heading.element_handle())
    run(solution)
    # Changed and not saved: JupyterLab sends the cell's id, so the check is still known.
    run(check, "print(double(2))\nassert double(2) == 4")
    check.get_by_text("AssertionError").first.wait_for()
    panel.locator("summary", has_text="✗ 0 of 1 exercises done").wait_for()
    run(solution, "def double(n): return 2 * n")
    run(check)
    check.get_by_role("status").get_by_text("✓ double: 1 point on the visible checks").wait_for()
    panel.locator("summary", has_text="✓ 1 of 1 exercises done, 1 of 1 point").wait_for()

    page.evaluate("void jupyterapp.commands.execute('notebook:restart-clear-output')")  # waits for the dialog
    page.locator(".jp-Dialog").get_by_role("button", name="Confirm").click()
    panel.wait_for(state="detached")
    run(setup)
    panel.locator("summary", has_text="✓ 1 of 1 exercises done, 1 of 1 point").wait_for(timeout=WAIT)


def test_nbgraders_other_extensions_are_off(lab: Lab, page: Page) -> None:
    lab.open(page, "right.ipynb")
    commands = page.evaluate("jupyterapp.commands.listCommands()")
    assert "notebook:run-all-cells" in commands
    assert [each for each in commands if each.startswith("nbgrader:")] == []
    assert page.get_by_text("Nbgrader", exact=True).count() == 0
    for address in ["assignments", "courses", "formgraders", "formgrader/api/status"]:
        assert lab.status(address) == 404
    assert lab.status("nbgrader_version?version=0.9.6") == 200  # the Validate button's own side


def test_every_cell_of_a_long_notebook_is_in_the_page(lab: Lab, page: Page) -> None:
    lab.open(page, "long.ipynb")
    assert page.locator(".jp-Notebook .jp-Cell").count() == LONG


def test_beside_the_file_browser_in_half_a_window_nothing_is_cut_off(lab: Lab, page: Page) -> None:
    page.set_viewport_size({"width": 720, "height": 900})
    lab.open(page, "narrow.ipynb")
    notebook = page.locator(".jp-NotebookPanel-notebook")

    def fits(locator: Locator) -> bool:
        inner, outer = locator.bounding_box(), notebook.bounding_box()
        assert inner and outer and outer["width"] < 420
        return inner["width"] > 0 and inner["x"] + inner["width"] <= outer["x"] + outer["width"]

    assert fits(notebook.locator(".jp-Placeholder .jp-MoreHorizIcon svg"))
    assert fits(notebook.locator(".jp-RenderedMarkdown code"))
    page.evaluate("jupyterapp.commands.execute('notebook:run-all-cells')")
    printed = notebook.locator(".jp-OutputArea-output pre")
    printed.wait_for(timeout=WAIT)
    assert printed.evaluate("e => e.getClientRects()[0].height / parseFloat(getComputedStyle(e).lineHeight)") < 6.5
    assert printed.evaluate("e => e.scrollWidth > e.clientWidth && getComputedStyle(e).overflowX") == "auto"


def test_nbgrader_gives_a_lectures_cells_time(tmp_path: Path) -> None:
    script = "from nbgrader.apps import ValidateApp as A; a = A(); a.initialize([]); print(a.config.Execute.timeout)"
    environ = {**os.environ, "JUPYTER_CONFIG_DIR": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=environ, capture_output=True, text=True)
    assert run.stdout.split() == ["900"], run.stderr  # the capstone trains for minutes

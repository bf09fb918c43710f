"""Every lecture in a real JupyterLab; `make screenshots` keeps pictures of it.

Most are as students get them, with nothing solved: as Run All does, they run to the last cell and say what they skip.
Three are solved, and opened again.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import explorers
import nbformat
import pytest
from lab import WAIT, Lab
from playwright.sync_api import Browser, Error, Page, TimeoutError

from autograder import demo, project
from autograder.grading import source

ROOT = Path(__file__).parents[2]
LECTURES = [source.read(path) for path in source.lectures(project.SOLUTIONS)]
SCREENSHOTS = os.environ.get("COURSE_SCREENSHOTS", "")
WIDTHS = (1_440, 720)  # of the screenshots, in pixels
# Between them they have every kind of picture; untouched, the last one has none. Untouched, they run in
# tests/course/test_notebooks.py.
SOLVED = {"01_tensors", "05_flops_and_mfu", "14_capstone"}
SKIPPED = "○ Skipped: this cell needs "
# Whether all code cells ran. The page cannot be asked: a folded cell shows no number.
RAN = """() => jupyterapp.shell.currentWidget.content.widgets.every(
  cell => cell.model.type !== "code" || (cell.model.executionCount && cell.model.executionState !== "running"))"""
# The cells that show a picture, by their number.
DRAWN = """() => [...document.querySelectorAll(".jp-Cell")].flatMap(
  (cell, number) => cell.querySelector(".jp-OutputArea-output svg") ? [number] : [])"""
pytestmark = pytest.mark.xdist_group("lectures")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The students' notebooks, some of them solved."""
    made = tmp_path_factory.mktemp("notebooks")
    for lecture in LECTURES:
        path = project.notebook_path(made, lecture.name)
        path.parent.mkdir()
        if solved(lecture):
            demo.hand_in(path, lecture, {exercise.name: exercise.solution for exercise in lecture.exercises})
        else:
            shutil.copyfile(project.notebook_path(project.NOTEBOOKS, lecture.name), path)
    return made


def solved(lecture: source.Lecture) -> bool:
    return bool(SCREENSHOTS) or lecture.name in SOLVED


@pytest.fixture(scope="module")
def lab(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """What `make lab` starts, on those notebooks."""
    command = [sys.executable, str(ROOT / "bootstrap.py"), "lab", f"--ServerApp.root_dir={folder}"]
    lab = Lab(folder, tmp_path_factory.mktemp("home"), command, warm=True)  # nbval runs them on stock kernels
    yield lab
    lab.stop()


@pytest.fixture(scope="module")
def page(browser: Browser, lab: Lab) -> Iterator[Page]:
    """One window for all lectures."""
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.set_default_timeout(30_000)
    page.goto(f"{lab.url}lab?reset&token={lab.token}")
    page.wait_for_function("window.jupyterapp?.restored !== undefined", timeout=WAIT)
    page.evaluate("jupyterapp.restored")
    yield page
    page.close()


@pytest.mark.slow
@pytest.mark.parametrize("lecture", LECTURES, ids=lambda lecture: lecture.name)
def test_a_lecture_from_top_to_bottom(lecture: source.Lecture, lab: Lab, page: Page, folder: Path) -> None:
    problems: list[str] = []

    def notice(error: Error) -> None:
        # JupyterLab takes a cell from its list twice (jupyterlab#15415), and closes a notebook whose kernel hasn't yet
        # answered that widgets may have a subshell.
        if not re.search("removeChild|Canceled future for create_subshell_request", error.message):
            problems.append(f"{error}\n{error.stack}")

    page.on("pageerror", notice)
    wear(page, "JupyterLab Light")
    lab.open_next(page, f"{lecture.name}/{lecture.name}.ipynb")
    assert not page.evaluate("jupyterapp.shell.currentWidget.context.model.dirty"), "opening the notebook changed it"
    page.evaluate("jupyterapp.commands.execute('notebook:run-all-cells')")
    # Asked four times a second. By default Playwright asks, and the page draws, sixty times a second.
    page.wait_for_function(RAN, timeout=2 * WAIT, polling=250)
    assert page.locator(".jp-RenderedText[data-mime-type*=error], [data-mime-type*=stderr]").all_inner_texts() == []
    count = len(lecture.exercises)
    done = count if solved(lecture) else 0
    assert page.locator(".course-check").count() == count
    assert page.locator(".course-check", has_text="on the cases that you can see").count() == done
    panel = page.get_by_role("region", name="Your progress")
    assert f"{done} of {count} exercises done" in panel.inner_text()
    assert ("All visible checks pass" in panel.inner_text()) is solved(lecture)

    for root in page.locator(".course-live .course-explorer").all():
        drawings = {answer["svg"] for _, _, answer in explorers.moves(root, page)}
        assert len(drawings) > 3, root.inner_text()
    if SCREENSHOTS:
        shoot(page, Path(SCREENSHOTS), f"{lecture.name}-light")

    drawn = page.evaluate(DRAWN)
    assert drawn, "no cell shows a picture"
    page.evaluate("jupyterapp.commands.execute('docmanager:save')")
    saved = nbformat.read(folder / lecture.name / f"{lecture.name}.ipynb", as_version=4).cells
    assert [cell for cell in drawn if not keeps_picture(saved[cell])] == []
    titles = {found for cell in saved for found in re.findall(r"(Exercise [\d.]+) ·", cell.source)}
    needed = {text.removeprefix(SKIPPED).split(" ·")[0] for text in skipped(saved)}
    assert needed <= titles and bool(needed) is not solved(lecture)
    if solved(lecture):
        wear(page, "JupyterLab Dark")
        lab.open_next(page, f"{lecture.name}/{lecture.name}.ipynb")
        with contextlib.suppress(TimeoutError):
            same = f"wanted => ({DRAWN})().join() === wanted"
            page.wait_for_function(same, arg=",".join(map(str, drawn)), timeout=WAIT, polling=250)
        missing = sorted(set(drawn) ^ set(page.evaluate(DRAWN)))
        assert not missing, {cell: page.locator(".jp-Cell").nth(cell).inner_text() for cell in missing}
        assert f"{count} of {count} exercises done" in page.get_by_role("region", name="Your progress").inner_text()
    if SCREENSHOTS:
        shoot(page, Path(SCREENSHOTS), f"{lecture.name}-dark")
    page.evaluate("jupyterapp.commands.execute('notebook:shutdown-kernel')")
    page.remove_listener("pageerror", notice)
    assert problems == []


def skipped(cells: list[nbformat.NotebookNode]) -> list[str]:
    """What cells say that were skipped."""
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    shown = [output.get("data", {}).get("text/plain", "") for output in outputs]
    return [text for text in shown if text.startswith(SKIPPED)]


def keeps_picture(cell: nbformat.NotebookNode) -> bool:
    """Whether a saved cell has what JupyterLab draws again: a figure, or an explorer."""
    for output in cell.get("outputs", []):
        for kind, data in output.get("data", {}).items():
            if "svg" in kind or "widget-view" in kind or (kind == "text/html" and "<svg" in data):
                return True
    return False


def wear(page: Page, theme: str) -> None:
    """Change JupyterLab's theme. What Mermaid has drawn keeps its colors until the notebook is opened again."""
    page.evaluate(f"jupyterapp.commands.execute('apputils:change-theme', {{theme: '{theme}'}})")
    page.wait_for_function(f"document.body.dataset.jpThemeName === '{theme}'")


def shoot(page: Page, target: Path, name: str) -> None:
    """Keep pictures of a notebook from top to bottom, in a wide and in a narrow window."""
    target.mkdir(parents=True, exist_ok=True)
    before = page.viewport_size
    assert before is not None
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": before["height"]})
        page.wait_for_timeout(1500)
        scroller = page.locator(".jp-Notebook .jp-WindowedPanel-outer")
        scroller.evaluate("e => e.scrollTo(0, 0)")
        # The height is not known before: cells far below have one that JupyterLab has guessed.
        for number in itertools.count():
            page.wait_for_timeout(150)
            page.screenshot(path=target / f"{name}-{width}-{number:02d}.png")
            top = scroller.evaluate("e => e.scrollTop")
            if scroller.evaluate("e => { e.scrollBy(0, e.clientHeight - 40); return e.scrollTop; }") <= top:
                break
    page.set_viewport_size(before)

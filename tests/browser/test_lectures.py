"""Every lecture in a real JupyterLab, as a newcomer works through it; `make screenshots` keeps pictures of it."""

from __future__ import annotations

import contextlib
import itertools
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest
from lab import WAIT, Lab
from playwright.sync_api import Browser, Error, Locator, Page, Position, TimeoutError

from autograder import demo, project
from autograder.grading import source

ROOT = Path(__file__).parents[2]
LECTURES = [source.read(path) for path in source.lectures(project.SOLUTIONS)]
SCREENSHOTS = os.environ.get("COURSE_SCREENSHOTS", "")
REOPENED = {"01_tensors", "05_flops_and_mfu"}  # between them they have every kind of picture
SLOW = 5.0  # seconds that an explorer may take to answer beside other tests
QUIET = 0.5  # seconds for the page itself: to send what was done, and to draw what the kernel answered
# Measures in the page how long after an event the picture is another; what Playwright adds is left out. `waiting` holds
# the messages to the kernel that it has not dealt with yet.
WATCH = """explorer => {
  let start = 0;
  explorer.waiting = new Set();
  explorer.heard = performance.now();
  jupyterapp.shell.currentWidget.sessionContext.session.kernel.anyMessage.connect((_, {msg, direction}) => {
    if (direction === "send" && msg.header.msg_type === "comm_msg") explorer.waiting.add(msg.header.msg_id);
    if (msg.header.msg_type === "status" && msg.content.execution_state === "idle")
      explorer.waiting.delete(msg.parent_header.msg_id);
    explorer.heard = performance.now();
  });
  explorer.answers = [];
  for (const kind of ["pointerdown", "keydown", "change"])
    explorer.addEventListener(kind, () => { start = performance.now(); }, true);
  new MutationObserver(() => {
    if (start) explorer.answers.push((performance.now() - start) / 1000);
    start = 0;
  }).observe(explorer.querySelector(":scope > .widget-html"), {childList: true, subtree: true});
}"""
# Whether all code cells ran. The page cannot be asked: a folded cell shows no number.
RAN = """() => jupyterapp.shell.currentWidget.content.widgets.every(
  cell => cell.model.type !== "code" || (cell.model.executionCount && cell.model.executionState !== "running"))"""
# The cells that show a picture, by their number.
DRAWN = """() => [...document.querySelectorAll(".jp-Cell")].flatMap(
  (cell, number) => cell.querySelector(".jp-OutputArea-output svg") ? [number] : [])"""
SETTLED = f"explorer => !explorer.waiting.size && performance.now() - explorer.heard > {1000 * QUIET}"

pytestmark = pytest.mark.xdist_group("lectures")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lectures with all exercises solved, as students' notebooks."""
    made = tmp_path_factory.mktemp("notebooks")
    for lecture in LECTURES:
        path = made / lecture.name / f"{lecture.name}.ipynb"
        path.parent.mkdir()
        demo.hand_in(path, lecture, {exercise.name: exercise.solution for exercise in lecture.exercises})
    return made


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
        if "removeChild" not in error.message:  # JupyterLab takes a cell from its list twice: jupyterlab#15415
            problems.append(f"{error}\n{error.stack}")

    page.on("pageerror", notice)
    wear(page, "JupyterLab Light")
    lab.open_next(page, f"{lecture.name}/{lecture.name}.ipynb")
    assert not page.evaluate("jupyterapp.shell.currentWidget.context.model.dirty"), "opening the notebook changed it"
    page.evaluate("jupyterapp.commands.execute('notebook:run-all-cells')")
    page.wait_for_function(RAN, timeout=2 * WAIT)
    assert page.locator(".jp-RenderedText[data-mime-type*=error], [data-mime-type*=stderr]").all_inner_texts() == []
    count = len(lecture.exercises)
    assert page.locator(".course-check", has_text="as far as the cases go that you can see").count() == count
    panel = page.get_by_role("region", name="Your progress")
    assert f"{count} of {count} exercises done" in panel.inner_text()
    assert "All visible checks pass" in panel.inner_text()

    explorers = page.locator(".course-explorer")
    for number in range(explorers.count()):
        move(explorers.nth(number), page)
    if SCREENSHOTS:
        shoot(page, Path(SCREENSHOTS), f"{lecture.name}-light")

    drawn = page.evaluate(DRAWN)
    assert drawn, "no cell shows a picture"
    page.evaluate("jupyterapp.commands.execute('docmanager:save')")
    saved = nbformat.read(folder / lecture.name / f"{lecture.name}.ipynb", as_version=4).cells
    assert [cell for cell in drawn if not keeps_picture(saved[cell])] == []
    if SCREENSHOTS or lecture.name in REOPENED:
        wear(page, "JupyterLab Dark")
        lab.open_next(page, f"{lecture.name}/{lecture.name}.ipynb")
        with contextlib.suppress(TimeoutError):
            same = f"wanted => ({DRAWN})().join() === wanted"
            page.wait_for_function(same, arg=",".join(map(str, drawn)), timeout=WAIT)
        missing = sorted(set(drawn) ^ set(page.evaluate(DRAWN)))
        assert not missing, {cell: page.locator(".jp-Cell").nth(cell).inner_text() for cell in missing}
        assert f"{count} of {count} exercises done" in page.get_by_role("region", name="Your progress").inner_text()
    if SCREENSHOTS:
        shoot(page, Path(SCREENSHOTS), f"{lecture.name}-dark")
    page.evaluate("jupyterapp.commands.execute('notebook:shutdown-kernel')")
    page.remove_listener("pageerror", notice)
    assert problems == []


def keeps_picture(cell: nbformat.NotebookNode) -> bool:
    """Whether a saved cell has what JupyterLab draws again: a figure, or an explorer."""
    for output in cell.get("outputs", []):
        for kind, data in output.get("data", {}).items():
            if "svg" in kind or "widget-view" in kind or (kind == "text/html" and "<svg" in data):
                return True
    return False


def test_every_explorer_is_in_a_lecture() -> None:
    folders = (ROOT / "course_utils" / name for name in ("explorers", "widgets"))
    modules = {path.stem for folder in folders for path in folder.glob("*.py")}
    wanted = modules - {"__init__", "drawing", "explorer", "group", "live"}
    texts = "\n".join(lecture.path.read_text(encoding="utf-8") for lecture in LECTURES)
    assert len(wanted) >= 8 and all(f"{name}.explore(" in texts for name in wanted)


def move(explorer: Locator, page: Page) -> None:
    """Move every control by mouse and by keyboard; the picture follows, and nothing fails."""
    explorer.scroll_into_view_if_needed()
    answered: dict[tuple[str, str], int] = {}
    explorer.evaluate(WATCH)

    def does(kind: str, how: str, act: Callable[[], object]) -> None:
        answered.setdefault((kind, how), 0)
        before, start = look(explorer), time.perf_counter()
        explorer.evaluate("explorer => { explorer.heard = performance.now(); }")
        act()
        while look(explorer) == before:
            if time.perf_counter() - start > SLOW or explorer.evaluate(SETTLED):
                break
            page.wait_for_timeout(40)
        else:
            answered[kind, how] += 1
        assert explorer.locator(".course-explorer-error").count() == 0, explorer.inner_text()

    # First small steps, then large ones: after those a setting may be impossible, and stay so one step further.
    for kind, by_mouse, by_keyboard in (
        (".noUi-handle", None, lambda c: (c.focus(), page.keyboard.press("ArrowLeft" if last(c) else "ArrowRight"))),
        (".noUi-target", lambda c: c.click(position=opposite(c), force=True), None),
        (
            "select",
            lambda c: c.select_option(index=0 if chosen(c) else 1),
            lambda c: (c.focus(), page.keyboard.press("ArrowUp" if chosen(c) else "ArrowDown")),
        ),
        ("input[type=checkbox]", lambda c: c.click(), lambda c: (c.focus(), page.keyboard.press("Space"))),
        ("button", lambda c: c.click(), lambda c: (c.focus(), page.keyboard.press("Space"))),
    ):
        controls = explorer.locator(kind)
        for place in range(min(controls.count(), 6)):
            control = controls.nth(place)
            if kind == "select":  # another list's choice may have changed which options this one has
                page.wait_for_function(SETTLED, arg=explorer.element_handle(), timeout=WAIT)
            alone = kind == "select" and control.locator("option").count() == 1
            if not control.is_visible() or control.is_disabled() or alone:
                continue
            if by_mouse is not None:
                does(kind, "mouse", lambda control=control, act=by_mouse: act(control))
            if by_keyboard is not None:
                does(kind, "keyboard", lambda control=control, act=by_keyboard: act(control))
    silent = [f"{kind} by {how}" for (kind, how), answers in answered.items() if not answers]
    assert answered and not silent, f"the picture followed no {', no '.join(silent)}"
    took = explorer.evaluate("explorer => explorer.answers")
    half, most = statistics.median(took), max(took)
    print(f"an explorer answered {len(took)} events: half of them within {half:.3f} s, all within {most:.3f} s")


def opposite(slider: Locator) -> Position:
    """A point of a slider, far from where its handle is."""
    here, handle = slider.bounding_box(), slider.locator(".noUi-handle").first.bounding_box()
    assert here is not None and handle is not None
    left = handle["x"] + handle["width"] / 2 < here["x"] + here["width"] / 2
    return {"x": (0.8 if left else 0.2) * here["width"], "y": 2}


def last(handle: Locator) -> bool:
    """Whether a slider's handle is at its end."""
    return handle.get_attribute("aria-valuenow") == handle.get_attribute("aria-valuemax")


def chosen(select: Locator) -> int:
    """Which option of a list is chosen."""
    return int(select.evaluate("s => s.selectedIndex"))


def look(explorer: Locator) -> str:
    """What an explorer shows now."""
    return str(explorer.evaluate("e => [...e.querySelectorAll('svg, p')].map(s => s.outerHTML).join('')"))


def wear(page: Page, theme: str) -> None:
    """Change JupyterLab's theme. What Mermaid has drawn keeps its colors until the notebook is opened again."""
    page.evaluate(f"jupyterapp.commands.execute('apputils:change-theme', {{theme: '{theme}'}})")
    page.wait_for_function(f"document.body.dataset.jpThemeName === '{theme}'")


def shoot(page: Page, target: Path, name: str) -> None:
    """Keep pictures of a notebook from top to bottom."""
    target.mkdir(parents=True, exist_ok=True)
    page.wait_for_timeout(1500)
    scroller = page.locator(".jp-Notebook .jp-WindowedPanel-outer")
    scroller.evaluate("e => e.scrollTo(0, 0)")
    # The height is not known before: cells far below have one that JupyterLab has guessed.
    for number in itertools.count():
        page.wait_for_timeout(150)
        page.screenshot(path=target / f"{name}-{number:02d}.png")
        top = scroller.evaluate("e => e.scrollTop")
        if scroller.evaluate("e => { e.scrollBy(0, e.clientHeight - 40); return e.scrollTop; }") <= top:
            break

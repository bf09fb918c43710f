"""An explorer in JupyterLab whose kernel or page has gone, and in an export: a picture that says how to wake it."""

from __future__ import annotations

from collections.abc import Iterator

import nbformat
import pytest
from lab import WAIT, Lab
from nbconvert import HTMLExporter
from playwright.sync_api import Page, expect

from course_utils.explorers.explorer import ASLEEP

pytestmark = pytest.mark.xdist_group("explorers")

CELLS = {
    "one.ipynb": "from course_utils.explorers import roofline\n\nroofline.explore()",
    "guess.ipynb": """
from course_utils.explorers import sharding
from course_utils.predict import reconcile

reconcile("stage 2", None, 30.1, "GB")
sharding.explore().predicted("stage 2", "How many GB does a card hold at stage 2?")
""",
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("notebooks")
    for name, code in CELLS.items():
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(notebook, folder / name)
    lab = Lab(folder, tmp_path_factory.mktemp("home"))
    lab.folder = folder
    yield lab
    lab.stop()


def test_a_restart_a_reopening_and_an_export(lab: Lab, page: Page) -> None:
    page.set_viewport_size({"width": 1100, "height": 700})
    lab.open(page, "one.ipynb")
    page.evaluate("jupyterapp.commands.execute('notebook:run-all-cells')")
    live, still = page.locator(".course-live .course-explorer"), page.locator(".course-still")
    live.locator("input").first.wait_for(timeout=WAIT)
    expect(still).to_be_hidden()
    # All of it fits into this window: the controls are in sight while the hand is on them.
    top, bottom = live.bounding_box(), live.locator(".course-finding").bounding_box()
    assert top is not None and bottom is not None
    assert bottom["y"] + bottom["height"] - top["y"] < 570

    live.locator("input").first.focus()
    page.keyboard.press("ArrowRight")
    expect(live.locator("input").first).to_have_css("outline-width", "3px")  # the focus can be seen
    ghost = live.locator(".course-drawing svg > .course-ghost")  # the previous setting, which stays behind
    expect(ghost).to_have_count(1, timeout=20_000)
    expect(ghost).to_have_attribute("aria-hidden", "true")

    page.evaluate("jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    page.locator("#jp-bottom-panel, .jp-StatusBar-Widget").get_by_text("| Idle").wait_for(timeout=WAIT)
    live.locator("input").first.focus()
    page.keyboard.press("ArrowRight")
    expect(live.locator(".course-wake")).to_contain_text("run this cell again", timeout=20_000)
    expect(live.locator("svg")).to_be_visible()

    page.evaluate("jupyterapp.commands.execute('docmanager:save')")
    page.wait_for_function("!jupyterapp.shell.currentWidget.context.model.dirty")
    page.evaluate("jupyterapp.commands.execute('notebook:shutdown-kernel')")
    lab.open_next(page, "one.ipynb")
    expect(still).to_be_visible(timeout=WAIT)
    expect(still).to_contain_text(ASLEEP)
    page.wait_for_timeout(1_000)  # the widget, if it came, would come now
    expect(page.get_by_text("Error displaying widget")).to_be_hidden()

    exported, _ = HTMLExporter().from_filename(str(lab.folder / "one.ipynb"))
    assert ASLEEP in exported and "<svg" in exported


def test_a_guess_is_entered_before_the_picture_shows(lab: Lab, page: Page) -> None:
    lab.open(page, "guess.ipynb")
    page.evaluate("jupyterapp.commands.execute('notebook:run-all-cells')")
    live = page.locator(".course-live .course-explorer")
    guess = live.locator("input[name=guess]")
    guess.wait_for(timeout=WAIT)
    expect(live.locator(".course-title")).to_be_hidden()
    guess.focus()
    page.keyboard.type("20")
    page.wait_for_timeout(500)
    expect(live.locator(".course-title")).to_be_hidden()
    page.keyboard.press("Enter")
    expect(live.locator(".course-guess")).to_contain_text("you said 20", timeout=20_000)
    expect(live.locator(".course-title")).to_be_visible()
    field, reply = guess.bounding_box(), live.locator(".course-guess").bounding_box()
    assert field and reply and reply["x"] > field["x"] + field["width"]
    assert abs(reply["y"] + reply["height"] / 2 - field["y"] - field["height"] / 2) < 6
    page.evaluate("jupyterapp.commands.execute('notebook:shutdown-kernel')")

"""Explorers in a page of the web book: the way to their first answer, guesses, the planner's address, and paper."""

from __future__ import annotations

import http.server
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import explorers
import pytest
from playwright.sync_api import Browser, Page, expect

from autograder.authoring import book
from course_utils.explorers import initialization, planner, sharding, stride_walk, valley
from course_utils.explorers.explorer import Explorer, Question

pytestmark = [
    pytest.mark.xdist_group("explorers"),
    pytest.mark.skipif(shutil.which("npm") is None, reason="npm is needed to fetch Pyodide"),
]
ASKED = Question("Llama 3.1 8B at stage 2 on each of eight cards", 30.1, "GB")


def asking() -> Explorer:
    explorer = sharding.explore()
    return Explorer(explorer.name, explorer.show, explorer.arguments, ASKED)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Explorers with the book's scripts and styles, and nothing of its theme."""
    folder = tmp_path_factory.mktemp("site")
    static = folder / "_static"
    shutil.copytree(book.BOOK / "_static", static)
    book._enliven(static, pytest.fail)
    head = '<!doctype html><html data-theme="dark"><meta charset="utf-8">'
    head += '<meta name="viewport" content="width=device-width">'
    head += '<link rel="stylesheet" href="_static/explorers/explorer.css">'
    head += "".join(f'<script defer src="_static/{name}.js"></script>' for name in ("explorers/wake", "paper"))
    figures = {"valley": valley.explore(), "guess": asking(), "planner": planner.explore()}
    figures |= {"walk": stride_walk.explore(), "layers": initialization.explore()}
    for name, explorer in figures.items():
        addressed = " data-addressed" if name == "planner" else ""
        (folder / f"{name}.html").write_text(f"{head}<div{addressed}>{explorer.still()}</div>", encoding="utf-8")
    return folder


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves a folder at ``address``, but for one file that is ``missing``. Notes the paths that were ``asked`` for."""

    address = missing = ""
    asked: list[str]

    def send_head(self) -> object:  # type: ignore[override]
        self.asked.append(self.path)
        if self.missing and self.path.endswith(self.missing):
            self.send_error(404)
            return None
        return super().send_head()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def served(site: Path) -> Iterator[type[Quiet]]:
    """The server's handler of requests."""

    class Handler(Quiet):
        pass

    Handler.asked = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        Handler.address = f"http://127.0.0.1:{server.server_port}"
        yield Handler
        server.shutdown()


def opened(page: Page, address: str) -> None:
    page.goto(address)
    page.locator(".course-control").first.wait_for()


def moved(page: Page) -> None:
    page.locator("input[type=range]").first.focus()
    page.keyboard.press("ArrowRight")


@pytest.mark.parametrize("name", ["pyodide.asm.wasm", "python_stdlib.zip", "course.zip"])
def test_a_file_that_is_missing_is_named_and_the_picture_stays(name: str, served: type[Quiet], page: Page) -> None:
    served.missing = name
    opened(page, f"{served.address}/valley.html")
    title = page.locator(".course-title").inner_text()
    moved(page)
    note = page.locator(".course-wake")
    path = name if name == "course.zip" else f"pyodide/{name}"
    expect(note).to_contain_text(f"✗ Python could not be loaded: {path}: 404")
    expect(note).to_contain_text("reload the page to try again")
    assert page.locator(".course-stale").count() == 0 and page.locator(".course-title").inner_text() == title
    moved(page)
    page.wait_for_timeout(300)
    expect(note).to_contain_text("404")


def test_a_reader_who_waits_is_told_why_beside_the_controls_and_for_how_long(served: type[Quiet], page: Page) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    page.clock.install()
    page.route("**/*.wasm", lambda route: None)  # no answer at all
    opened(page, f"{served.address}/valley.html")
    note, title = page.locator(".course-wake"), page.locator(".course-title")
    expect(note).to_have_text("Move a slider or drag the ring ○: the picture follows.")
    moved(page)
    expect(note).to_contain_text("Loading Python (13 MB, which your browser keeps")
    expect(page.locator(".course-stale")).to_have_count(3)
    controls, said, below = (each.bounding_box() for each in (page.locator(".course-panel"), note, title))
    assert controls and said and below
    assert controls["y"] + controls["height"] <= said["y"] and said["y"] + said["height"] <= below["y"] < 800
    page.clock.fast_forward(30_000)  # time passes besides
    expect(note).to_contain_text("Loading Python (13 MB")
    page.clock.fast_forward(31_000)
    expect(note).to_contain_text("reload the page to try again")


def test_python_is_loaded_when_a_control_is_touched_and_not_before(served: type[Quiet], page: Page) -> None:
    opened(page, f"{served.address}/valley.html")
    slider = page.locator("input[type=range]").first
    slider.hover()
    page.locator(".course-title").click()
    page.wait_for_timeout(300)
    assert not [path for path in served.asked if "pyodide" in path]
    slider.hover()
    page.mouse.down()
    page.wait_for_timeout(1_000)
    assert [path for path in served.asked if "pyodide" in path]
    page.mouse.up()
    page.locator(".course-wake", has_text="Move a slider").wait_for(timeout=explorers.WAIT)
    assert page.locator(".course-stale").count() == 0


HIDDEN = (".course-title", ".course-finding", ".course-front")


def test_nothing_gives_an_answer_away_before_the_guess_which_counts_once_it_is_entered(
    served: type[Quiet], page: Page, browser: Browser
) -> None:
    opened(page, f"{served.address}/guess.html")
    guess, button = page.locator("input[name=guess]"), page.get_by_role("button", name="Show me")
    for part in HIDDEN:
        expect(page.locator(part)).to_be_hidden()
    expect(page.locator("input[name=cards]")).to_be_hidden()
    expect(page.locator(".course-wake")).to_contain_text("Enter your guess, or press “Show me”")
    expect(page.locator(".course-back")).to_be_visible()
    drawing = page.locator(".course-drawing")
    assert drawing.evaluate("e => e.inert"), "its description has the answer"
    places = [each.bounding_box() for each in (guess, button)]
    assert places[0] and places[1] and abs(places[0]["y"] - places[1]["y"]) < 6
    guess.press_sequentially("20")
    page.wait_for_timeout(500)
    assert not [path for path in served.asked if "pyodide" in path] and button.is_visible()
    guess.press("Enter")
    expect(page.locator(".course-stale")).to_have_count(3)
    for part in (*HIDDEN, ".course-ghost"):
        expect(page.locator(part)).to_be_hidden()
    expect(page.locator(".course-guess")).to_contain_text("you said 20", timeout=explorers.WAIT)
    for part in HIDDEN:
        expect(page.locator(part)).to_be_visible()
    expect(button).to_have_count(0)
    # The reply is in the field's row, above the picture, which is of what was asked.
    field, reply, picture = (each.bounding_box() for each in (guess, page.locator(".course-guess"), drawing))
    assert field and reply and picture
    assert abs(reply["y"] + reply["height"] / 2 - field["y"] - field["height"] / 2) < 6
    assert reply["x"] > field["x"] + field["width"] and reply["y"] + reply["height"] < picture["y"]
    expect(page.locator("input[name=cards]")).to_have_attribute("aria-valuetext", "8")
    expect(drawing).to_contain_text("30.1 GB")
    guess.fill("")
    guess.press("Enter")
    expect(page.locator(".course-guess")).to_have_text(f"{ASKED.what}: 30.1 GB")
    expect(page.locator(".course-title")).to_be_visible()  # what was seen is known

    without = browser.new_page(java_script_enabled=False)
    without.goto(f"{served.address}/guess.html")
    for part in (".course-title", ".course-finding", ".course-wide .course-front"):
        expect(without.locator(part)).to_be_visible()
    without.close()


def test_a_reader_who_does_not_guess_is_shown_the_picture_at_once(served: type[Quiet], page: Page) -> None:
    opened(page, f"{served.address}/guess.html")
    page.get_by_role("button", name="Show me").click()
    for part in (*HIDDEN, "input[name=cards]"):
        expect(page.locator(part)).to_be_visible()
    expect(page.locator(".course-wake")).to_have_text("Move a slider: the picture follows.")
    expect(page.locator(".course-guess")).to_have_text(f"{ASKED.what}: 30.1 GB")
    assert page.evaluate("document.activeElement.className") == "course-title"
    assert not [path for path in served.asked if "pyodide" in path]


def test_a_guess_counts_although_the_reader_asks_for_the_picture_before_it_is_judged(
    served: type[Quiet], page: Page
) -> None:
    opened(page, f"{served.address}/guess.html")
    page.locator("input[name=guess]").fill("20")
    page.get_by_role("button", name="Show me").click()  # leaves the field, so that the guess is entered
    expect(page.locator(".course-wake")).to_contain_text("Loading Python")
    expect(page.locator(".course-title")).to_be_hidden()
    expect(page.locator(".course-guess")).to_contain_text("you said 20", timeout=explorers.WAIT)
    expect(page.locator(".course-title")).to_be_visible()


def test_a_guess_that_cannot_be_judged_shows_the_picture_at_least(served: type[Quiet], page: Page) -> None:
    served.missing = "pyodide.asm.wasm"
    opened(page, f"{served.address}/guess.html")
    page.locator("input[name=guess]").fill("20")
    page.locator("input[name=guess]").press("Enter")
    expect(page.locator(".course-wake")).to_contain_text("pyodide.asm.wasm: 404")
    for part in HIDDEN:
        expect(page.locator(part)).to_be_visible()


def test_the_caption_of_the_setting_before_is_there_only_where_that_differs(served: type[Quiet], page: Page) -> None:
    opened(page, f"{served.address}/valley.html")
    slider, caption = page.locator("input[type=range]").first, page.locator(".t-before")
    expect(caption).to_be_hidden()
    slider.press("ArrowRight")
    expect(caption).to_be_visible(timeout=explorers.WAIT)
    page.wait_for_timeout(1_000)  # what is moved after this is compared with what is shown now
    slider.press("ArrowLeft")
    slider.press("ArrowRight")
    expect(caption).to_be_hidden()
    slider.press("ArrowLeft")
    expect(caption).to_be_visible()


@pytest.mark.parametrize("width", [1_100, 390])
def test_an_error_stands_at_its_control_covers_no_other_and_moves_nothing(
    width: int, served: type[Quiet], page: Page
) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    opened(page, f"{served.address}/walk.html")
    where = """[...document.querySelectorAll(".course-control, .course-title, .course-drawing, .course-finding")].map(
        (each) => JSON.stringify(each.getBoundingClientRect()))"""
    before, slider = page.evaluate(where), page.locator("input[name='stride 0']")
    finding = page.locator(".course-finding").inner_text()
    slider.focus()
    page.keyboard.press("End")
    note = page.locator(".course-problem")
    expect(note).to_contain_text("✗ the last element would be in slot", timeout=explorers.WAIT)
    expect(slider).to_have_attribute("aria-invalid", "true")
    assert page.evaluate(where) == before
    control, said = slider.bounding_box(), note.locator("span").bounding_box()
    assert control and said
    reach = note.locator("span").evaluate("each => parseFloat(getComputedStyle(each, '::before').height)")
    assert abs(said["y"] - control["y"] - control["height"] - reach) < 2, "a line leads from one to the other"
    for other in page.locator(".course-control").all():
        place = other.bounding_box()
        assert place and (said["y"] >= place["y"] + place["height"] or said["y"] + said["height"] <= place["y"])
    assert said["x"] <= control["x"] + control["width"] and said["x"] + said["width"] >= control["x"]
    assert said["x"] >= 0 and said["x"] + said["width"] <= width
    expect(page.locator(".course-stale")).to_have_count(3)
    assert page.locator(".course-finding").inner_text() == finding, "title, drawing and finding belong together"
    page.keyboard.press("Home")
    expect(page.locator(".course-wake")).to_have_text("Move a slider: the picture follows.")
    expect(note).to_have_count(0)
    assert slider.get_attribute("aria-invalid") is None


def test_no_line_breaks_inside_a_number(served: type[Quiet], page: Page) -> None:
    opened(page, f"{served.address}/layers.html")
    numbers = page.locator(".course-title .course-number, .course-finding .course-number")
    assert "4.2e-8)." in numbers.all_inner_texts()
    for width in range(320, 760, 40):
        page.set_viewport_size({"width": width, "height": 800})
        assert numbers.evaluate_all("all => all.every((each) => each.getClientRects().length === 1)"), width
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width


def test_the_planner_follows_its_address_and_says_what_it_does_not_know(served: type[Quiet], page: Page) -> None:
    opened(page, f"{served.address}/planner.html#cards=8&more=true&peak=2P")
    title = page.locator(".course-title")
    first = title.inner_text()
    expect(title).not_to_have_text(first, timeout=explorers.WAIT)
    assert set(page.url.split("#")[1].split("&")) == {"cards=8", "more=true", "peak=2P"}
    page.evaluate("location.hash = '#model=Nonsense&more=true'")
    expect(page.locator(".course-problem")).to_have_text("✗ 'Nonsense' isn't offered; shown: Llama 3.1 8B")
    assert page.locator("select[name=model]").get_attribute("aria-invalid") is None
    expect(page.locator("input[name=peak]")).to_have_value("from the table")  # nothing is left of the other plan
    expect(page.locator("input[name=cards]")).to_have_value("64")
    expect(title).to_have_text(first)
    page.wait_for_url("**/planner.html#more=true")
    page.locator("input[name=more]").click()
    page.wait_for_url("**/planner.html")
    page.locator("select[name=task]").select_option("serve")
    page.wait_for_url("**/planner.html#task=serve")
    page.evaluate("location.hash = '#a-heading'")
    page.wait_for_timeout(500)
    expect(page.locator("select[name=task]")).to_have_value("serve")


def test_a_dark_page_is_printed_in_black_on_white_without_its_controls(served: type[Quiet], page: Page) -> None:
    opened(page, f"{served.address}/guess.html")
    ink = "getComputedStyle(document.querySelector('.course-title')).color"
    assert page.evaluate(ink) == "rgb(236, 236, 236)"
    page.emulate_media(media="print")
    page.wait_for_function("document.documentElement.dataset.theme === 'light'")
    assert page.evaluate(ink) == "rgb(26, 26, 26)"
    expect(page.locator(".course-panel")).to_be_hidden()
    for part in HIDDEN:
        expect(page.locator(part)).to_be_visible()
    page.emulate_media(media="screen")
    page.wait_for_function("document.documentElement.dataset.theme === 'dark'")

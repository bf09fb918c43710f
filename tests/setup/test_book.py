"""The web book: complete, whole without a network, and nothing in it that students should not see."""

from __future__ import annotations

import gzip
import http.server
import io
import json
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

import explorers
import firefox
import nbformat
import pytest
from axe_playwright_python.sync_playwright import Axe
from bs4 import BeautifulSoup, Tag
from PIL import Image, ImageStat
from playwright.sync_api import Browser, BrowserContext, BrowserType, Error, Page, Response, expect

from autograder import project
from autograder.authoring import book, build, colab
from autograder.authoring.kernel import execution
from autograder.grading import source
from course_utils.explorers.explorer import load

LECTURES = [path.stem for path in source.lectures(project.SOLUTIONS)]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800), pytest.mark.xdist_group("book")]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the whole book."""
    return book.make_book(tmp_path_factory.mktemp("site") / "book", draft=True).parent


def test_one_worker_has_all_of_these_tests(request: pytest.FixtureRequest) -> None:
    """The book is made once. Where pytest-xdist takes no notice of the group, nothing else would say so."""
    if not request.config.getoption("loadgroup", False):
        pytest.skip("the tests run in one process, or are not spread by group")
    assert request.node.nodeid.endswith("@book")


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, BeautifulSoup]:
    # Below _static the theme leaves templates of its own.
    found = [path for path in site.rglob("*.html") if "_static" not in path.parts]
    return {path: BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser") for path in found}


@pytest.fixture(scope="module")
def chromium(chromium: tuple[BrowserType, dict[str, Any]]) -> tuple[BrowserType, dict[str, Any]]:
    """Chromium without a network: everything that isn't on this machine goes to a proxy that nobody runs.

    (A page that Playwright routes, the usual way to do this, keeps nothing in its cache.)
    """
    kind, how = chromium
    return kind, {**how, "args": [*how["args"], "--proxy-server=127.0.0.1:9"]}


def test_the_browser_has_no_network(browser: Browser) -> None:
    page = browser.new_page()
    with pytest.raises(Error, match="ERR_PROXY_CONNECTION_FAILED"):
        page.goto("http://192.0.2.1/")  # in a range that is kept free for examples
    page.close()


def lecture_page(site: Path, name: str) -> Path:
    return project.notebook_path(site / "notebooks", name).with_suffix(".html")


def is_closed(element: Tag) -> bool:
    """Whether an element can't be seen until the reader opens it."""
    fold = element.find_parent("details")
    return fold is not None and "open" not in fold.attrs


def references(page: BeautifulSoup) -> Iterator[tuple[Tag, str]]:
    """Every address in a page, with the element that has it."""
    for element in page.find_all(True):
        for attribute in ("href", "src", "xlink:href", "data"):
            if attribute in element.attrs:
                yield element, str(element[attribute])
        for value in element.attrs.values():
            for name in re.findall(r"url\((#[^)]+)\)", str(value)):
                yield element, name


def test_every_page_is_there_and_can_be_reached(site: Path, pages: dict[Path, BeautifulSoup]) -> None:
    wanted = {lecture_page(site, name) for name in LECTURES}
    wanted |= {site / "docs" / path.with_suffix(".html").name for path in (project.ROOT / "docs").glob("*.md")}
    wanted |= {site / name for name in ("CONTRIBUTING.html", "planner.html", "notebooks/glossary.html")}
    front = pages[site / "index.html"]
    linked = {site / unquote(link.partition("#")[0]) for _, link in references(front) if not urlsplit(link).scheme}
    assert wanted <= linked & pages.keys()
    assert "the question" in front.select_one("article table").text, "README's table of lectures is missing"
    assert "GB too much" in front.select_one("figure.course-explorer .course-title").text


def test_no_link_is_broken_and_nothing_comes_from_elsewhere(site: Path, pages: dict[Path, BeautifulSoup]) -> None:
    ids = {path: {element["id"] for element in page.find_all(id=True)} for path, page in pages.items()}
    problems, seen = [], 0
    for path, page in pages.items():
        for element, link in references(page):
            address = urlsplit(link)
            if element.name == "a" and address.scheme in ("http", "https"):
                continue  # a reader may follow it; nothing is loaded
            seen += 1
            target = (path.parent / unquote(address.path)).resolve() if address.path else path
            if address.scheme == "data" or (address.path == "" and not address.fragment):
                continue
            missing = address.scheme or address.netloc or not target.is_file()
            if missing or (address.fragment and target in ids and unquote(address.fragment) not in ids[target]):
                problems.append(f"{path.relative_to(site)}: {element.name} {link[:100]}")
    for path in site.rglob("*.css"):
        urls = re.findall(r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')]+)""", path.read_text(encoding="utf-8"))
        problems += [f"{path.relative_to(site)}: {url}" for url in urls]
    assert not problems, "\n".join(problems)
    assert seen > 1000


@pytest.mark.parametrize("name", LECTURES)
def test_a_lecture_shows_the_students_text_with_its_outputs_and_figures(
    name: str, site: Path, pages: dict[Path, BeautifulSoup]
) -> None:
    page = pages[lecture_page(site, name)]
    notebook = nbformat.read(project.notebook_path(project.NOTEBOOKS, name), as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    shown = page.select("article div.cell")
    for cell, here in zip(code, shown, strict=True):
        assert here.select_one(".cell_input pre").text.strip() == cell.source.strip()
        output = here.select_one(".cell_output")
        if "nbgrader" in cell.metadata:
            assert output is None, f"the exercise or check {cell.metadata.nbgrader.grade_id} has an output"
        elif re.search(r"^plots\.show\(", cell.source, re.MULTILINE):
            found = output.select("svg[role=img][aria-label]") if output else []
            assert found and all(svg.find("path") for svg in found), f"no figure below:\n{cell.source}"
        if "reconcile(" in cell.source:
            assert output.text.strip(), f"no answer below:\n{cell.source}"
            assert is_closed(output), f"the answer is in sight:\n{cell.source}"
    assert len(page.select("article .cell_output svg[role=img]")) >= 2
    diagrams = sum(cell.source.count("```mermaid") for cell in notebook.cells)
    assert len(page.select("article .diagram[aria-label] > svg")) == diagrams
    exercises = source.read(project.SOLUTIONS / f"{name}.py").exercises
    assert len(page.select("article details")) >= 2 * len(exercises), "hints are missing"

    outputs = "\n".join(output.text for output in page.select(".cell_output"))
    for leak in ("Traceback", str(project.ROOT), str(Path.home()), tempfile.gettempdir(), "HIDDEN TESTS"):
        assert leak not in outputs, f"an output holds {leak!r}"
    assert page.select_one(".cell_output").text.strip(), "the first output does not name the machine"


def test_every_figure_has_a_caption(site: Path, pages: dict[Path, BeautifulSoup]) -> None:
    seen = set()
    for path, page in pages.items():
        for drawn in page.select("article :is(img, .diagram, svg[role=img])"):
            figure = drawn.find_parent("figure")
            caption = figure and figure.select_one(":scope > figcaption, :scope > .course-finding")
            assert caption and caption.text, f"{path.name}: no caption below the figure {drawn}"[:300]
            seen.add(path)
    assert {site / "index.html", site / "docs" / "performance.html"} <= seen


@pytest.mark.parametrize("name", LECTURES)
def test_no_solution_is_shown(name: str, site: Path, pages: dict[Path, BeautifulSoup]) -> None:
    students = project.notebook_path(project.NOTEBOOKS, name).read_text(encoding="utf-8")
    page = pages[lecture_page(site, name)].text
    secret = set()
    for exercise in source.read(project.SOLUTIONS / f"{name}.py").exercises:
        lines = [line.strip() for line in exercise.solution.splitlines()]
        # As a notebook's JSON holds a line; a short one may be said elsewhere in other words.
        secret |= {
            line for line in lines if len(line) > 30 and json.dumps(line, ensure_ascii=False)[1:-1] not in students
        }
    assert secret
    assert not [line for line in secret if line in page]


def test_no_notebook_and_no_source_is_beside_the_pages(site: Path) -> None:
    found = {path.suffix for path in site.rglob("*") if path.is_file()}
    assert found & {".ipynb", ".py", ".md", ".doctree", ".pickle"} == set()


def test_formulas_are_drawn_without_scripts(pages: dict[Path, BeautifulSoup]) -> None:
    formulas = [formula for page in pages.values() for formula in page.find_all("math")]
    assert len(formulas) > 200
    assert not [formula.text for formula in formulas if re.search(r"\\|\$", formula.text) or formula.find("merror")]
    for path, page in pages.items():
        code = ["pre", "code", "svg", "script", "style"]
        prose = "".join(text for text in page.find_all(string=True) if not text.find_parent(code))
        unread = re.findall(r"\$[^$\n]*[\\^_][^$\n]*\$", prose)
        assert not unread, f"{path.name}: {unread}"


@pytest.fixture(params=["light", "dark"])
def reader(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Page]:
    page = browser.new_page(color_scheme=request.param, viewport={"width": 1280, "height": 900})
    yield page
    page.close()


LOOK = """() => {
  const style = s => getComputedStyle(document.querySelector(s));
  const figure = document.querySelector('.cell_output svg[role=img]');
  return {dark: document.documentElement.dataset.theme, text: style('article').color,
          ink: figure && getComputedStyle(figure).color,
          paper: figure && style('.cell_output .text_html').backgroundColor,
          overflow: document.documentElement.scrollWidth - innerWidth};
}"""


@pytest.mark.parametrize(
    "path", ["index.html", "docs/performance.html", "notebooks/03_strides_and_views/03_strides_and_views.html"]
)
def test_a_browser_shows_it_by_day_and_by_night(path: str, site: Path, reader: Page) -> None:
    problems: list[str] = []
    reader.on("pageerror", lambda error: problems.append(str(error)))
    reader.on("console", lambda each: problems.append(each.text) if each.type in ("error", "warning") else None)
    reader.on("request", lambda each: None if each.url.startswith(("file:", "data:")) else problems.append(each.url))
    reader.on("requestfailed", lambda each: problems.append(f"{each.url}: {each.failure}"))
    reader.goto((site / path).as_uri())
    look = reader.evaluate(LOOK)
    assert look["dark"] == reader.evaluate("matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'")
    expect(reader.get_by_text("By the authors of Every Byte, Every FLOP")).to_be_visible()
    if "notebooks" in path:
        assert reader.locator("div.highlight:has(> pre) > button.copybtn").count() > 20
        assert look["ink"] == look["text"], "a figure's ink is not the page's"
        assert look["paper"] == "rgba(0, 0, 0, 0)", "the theme put paper below a figure whose ink is the page's"
    else:
        picture = "figure.course-explorer svg" if path == "index.html" else ".course-figure img"
        shot = reader.locator(f"article {picture}").first.screenshot()
        assert (ImageStat.Stat(Image.open(io.BytesIO(shot)).convert("L")).mean[0] < 80) is (look["dark"] == "dark")
    for width in (1280, 390):
        reader.set_viewport_size({"width": width, "height": 900})
        assert reader.evaluate(LOOK)["overflow"] <= 0, f"{path} is wider than a window of {width} pixels"
        assert reader.locator(".search-button__button:visible").count() == 1
        if "notebooks" in path:
            figures = reader.locator(".cell_output .course-figure svg").evaluate_all(
                "all => all.filter(e => e.checkVisibility()).map(e => e.clientWidth)"
            )
            assert min(figures) >= 600, "a figure's letters would be too small to read"
    assert problems == []


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """The book as a web server serves it."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def returning(
    chromium: tuple[BrowserType, dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrowserContext]:
    """A reader who opens several pages. From the second on, the browser has Pyodide in its cache, and compiled."""
    kind, how = chromium
    context = kind.launch_persistent_context(tmp_path_factory.mktemp("reader"), **how)
    yield context
    context.close()


def opened(returning: BrowserContext, width: int = 1100) -> Page:
    page = returning.new_page()
    page.set_viewport_size({"width": width, "height": 700})
    return page


EXPLORED = [path.stem for path in source.lectures(project.SOLUTIONS) if ".explore(" in path.read_text(encoding="utf-8")]


def test_a_page_fits_a_phone_and_takes_less_than_a_megabyte_until_an_explorer_is_touched(
    site: Path, pages: dict[Path, BeautifulSoup], address: str, browser: Browser
) -> None:
    """As a server such as GitHub Pages sends it, with text compressed; on a phone, where drawings are narrow."""
    for path in pages:
        page = browser.new_page(viewport={"width": 400, "height": 700})
        came: dict[str, Response] = {}
        page.on("response", lambda each, came=came: came.update({each.url: each}))
        page.goto(f"{address}/{path.relative_to(site).as_posix()}")
        if pages[path].select_one("[data-explorer]") and shutil.which("npm"):
            page.locator(".course-control").first.wait_for()
            page.wait_for_timeout(200)  # what asks by itself asks now
            drawn = page.locator(".course-explorer svg").first.get_attribute("viewBox") or ""
            assert drawn.split()[2] == "380", f"{path.name}: drawn for another width"
        over = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert over <= 0, f"{path.name} is {over} pixels wider than a phone"
        assert not [url for url in came if "pyodide" in url or "worker" in url], path.name
        sent = 0
        for url, response in list(came.items()):
            text = url.partition("?")[0].endswith((".html", ".css", ".js", ".svg"))
            sent += len(gzip.compress(response.body()) if text else response.body())
        assert sent < 1_000_000, f"{path.name}: {sent:,} bytes"
        page.set_viewport_size({"width": 1440, "height": 900})
        wide = "[...document.querySelectorAll('.formula')].filter(each => each.scrollWidth > each.clientWidth)"
        assert page.evaluate(f"{wide}.map(each => each.textContent)") == [], "a formula is wider than the text"
        page.close()


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is needed to fetch Pyodide")
@pytest.mark.parametrize("name", ["planner", *EXPLORED])
def test_an_explorer_in_the_book_says_what_python_says_here(
    name: str, site: Path, address: str, returning: BrowserContext
) -> None:
    path = site / "planner.html" if name == "planner" else lecture_page(site, name)
    page = opened(returning)
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(f"{error}"))
    page.on("request", lambda each: None if each.url.startswith((address, "data:")) else problems.append(each.url))
    page.goto(f"{address}/{path.relative_to(site).as_posix()}")
    roots = page.locator("figure.course-explorer")
    assert roots.count()
    for number in range(roots.count()):
        root = roots.nth(number)
        explorer, changed, seen, moved = explorers.shown(root), set(), 0, set()
        for what, asked, answer in explorers.moves(root, page):
            mine = explorer.frame(asked["state"], asked["moved"], asked["width"])
            assert json.loads(json.dumps(mine)) == answer, f"{explorer.name}, {what}"
            shown = root.evaluate(explorers.SHOWN)
            if not answer["problem"]:
                assert shown == "", f"{explorer.name}, {what}: {shown}"
                changed.add(answer["svg"])
                seen += "as before" not in what
                moved.add(asked["moved"])
        assert len(changed) > seen / 3, f"{explorer.name}: {seen} moves, {len(changed)} drawings"
        assert explorers.reached(explorer).keys() <= moved
    assert problems == []
    page.close()


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is needed to fetch Pyodide")
@pytest.mark.skipif(firefox.PROGRAM is None, reason="no Firefox here; `apt install firefox-esr` brings one")
def test_firefox_says_what_python_says_here(site: Path, address: str, tmp_path: Path) -> None:
    browser = firefox.Firefox(tmp_path)
    try:
        for path in [site / "planner.html", *(lecture_page(site, name) for name in EXPLORED)]:
            browser.open(f"{address}/{path.relative_to(site).as_posix()}")
            described = browser.call(
                "() => [...document.querySelectorAll('[data-explorer]')].map(e => e.dataset.explorer)"
            )
            for number, each in enumerate(map(json.loads, described)):
                explorer, changed, seen, moved = load(**each), set(), 0, set()
                for what, asked, answer, shown in firefox.moves(browser, number, explorer):
                    mine = explorer.frame(asked["state"], asked["moved"], asked["width"])
                    assert json.loads(json.dumps(mine)) == answer, f"{explorer.name}, {what}"
                    if not answer["problem"]:
                        assert shown == "", f"{explorer.name}, {what}: {shown}"
                        changed.add(answer["svg"])
                        seen += not what.endswith(("as before", "by Backspace"))
                        moved.add(asked["moved"])
                assert len(changed) > seen / 4, f"{explorer.name}: {seen} moves, {len(changed)} drawings"
                assert explorers.reached(explorer).keys() <= moved
        assert {url for url in browser.requests if not url.startswith((address, "data:"))} == set()
    finally:
        browser.stop()


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is needed to fetch Pyodide")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_an_explorer(
    scheme: Literal["light", "dark"], site: Path, address: str, returning: BrowserContext
) -> None:
    for path in [site / "planner.html", *(lecture_page(site, name) for name in EXPLORED)]:
        page = opened(returning, 1280)
        page.emulate_media(color_scheme=scheme)
        page.goto(f"{address}/{path.relative_to(site).as_posix()}")
        page.locator(".course-control").first.wait_for()
        assert page.evaluate("document.documentElement.dataset.theme") == scheme
        found = Axe().run(page, context={"include": [["figure.course-explorer"]]}).response["violations"]
        assert not [(each["id"], each["nodes"][0]["failureSummary"]) for each in found], path.name
        page.close()


@pytest.mark.parametrize("how", ["without JavaScript", "from a file"])
def test_without_a_script_or_a_server_an_explorer_is_a_picture_that_says_so(
    how: str, site: Path, address: str, browser: Browser
) -> None:
    page = browser.new_page(java_script_enabled=how == "from a file")
    for path in [site / "planner.html", *(lecture_page(site, name) for name in EXPLORED)]:
        page.goto(path.as_uri() if how == "from a file" else f"{address}/{path.relative_to(site).as_posix()}")
        found = page.locator("figure.course-explorer").all()
        assert found, path.name
        for explorer in found:
            assert explorer.locator(".course-wide svg").is_visible(), path.name
            assert not explorer.locator(".course-narrow svg").is_visible(), path.name
            assert explorer.locator(".course-title").inner_text() and explorer.locator(".course-finding").inner_text()
            assert "need JavaScript and work only on a page from a web server" in explorer.inner_text(), path.name
            assert not explorer.locator("input, select").count(), path.name
    page.close()


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is needed to fetch Pyodide")
def test_a_plan_is_in_its_pages_address(address: str, browser: Browser, returning: BrowserContext) -> None:
    page = opened(returning)
    page.goto(f"{address}/planner.html")
    first = page.locator(".course-title").inner_text()
    page.locator("select[name=model]").select_option("DeepSeek-V3")
    page.locator("input[name=cards]").fill("2048")
    page.wait_for_url("**#*DeepSeek-V3*2048*", timeout=explorers.WAIT)
    sent, title = page.url, page.locator(".course-title").inner_text()
    assert title != first
    other = browser.new_page()
    other.goto(sent)
    expect(other.locator(".course-wake")).to_contain_text("Loading Python")
    other.locator(".course-title", has_text=title).wait_for(timeout=explorers.WAIT)
    assert other.locator("input[name=cards]").input_value() == "2048"
    page.close()
    other.close()


@pytest.fixture
def not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The outputs of a lecture that a test makes up are not kept beside those of the course's lectures."""
    monkeypatch.setattr(execution, "KEPT", tmp_path / "executed")


def made_up(folder: Path, text: str, code: str) -> Path:
    """A lecture's source of two cells."""
    path = folder / "11_made_up.py"
    path.write_text(f'# %% [markdown]\nr"""\n# 11 · Made up\n\n{text}\n"""\n\n# %%\n{code}\n', encoding="utf-8")
    return path


ANSWERED = """
from course_utils.predict import reconcile
print("the machine")

# %%
guess = None  # dozens

# %%
reconcile("eggs", guess, 12, "dozens")

# %%
guess_of_shells = None  # shells

# %%
shells = 24

# %%
print("what it takes to", "find", shells)

# %%
reconcile("shells", guess_of_shells, shells, "shells")

# %%
print("in the open")
"""


@pytest.mark.usefixtures("not_kept")
def test_an_answer_is_hidden_until_the_reader_opens_it(tmp_path: Path) -> None:
    front = book.make_book(tmp_path / "book", [made_up(tmp_path, "**Predict.** How many?", ANSWERED)])
    page = BeautifulSoup(lecture_page(front.parent, "11_made_up").read_text(encoding="utf-8"), "html.parser")
    shown = {output.text.strip(): output for output in page.select(".cell_output")}
    assert {said: is_closed(output) for said, output in shown.items()} == {
        "the machine": False,
        "eggs: 12 dozens": True,
        "what it takes to find 24": True,
        "shells: 24 shells": True,
        "in the open": False,
    }
    assert [each.text for each in page.select("details p.collapsed")] == [
        "Show code cell source",
        "Show the answer",
        "Show code cell content",
        "Show code cell output",
        "Show the answer",
    ]
    [run] = [code for code in page.select(".cell_input") if "what it takes to" in code.text]
    assert not is_closed(run), "only the output of what's taught is hidden"


@pytest.mark.usefixtures("not_kept")
def test_of_a_widget_its_picture_stays(tmp_path: Path) -> None:
    code = """
import base64
from IPython.display import display
png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
metadata = {"image/png": {"alt": "one dot"}}
display({"image/png": base64.b64decode(png), "text/plain": "a dot"}, raw=True, metadata=metadata)
display({"application/vnd.jupyter.widget-view+json": {"model_id": "1"}, "text/plain": "VBox()"}, raw=True)
"""
    front = book.make_book(tmp_path / "book", [made_up(tmp_path, "", code)])
    page = BeautifulSoup(lecture_page(front.parent, "11_made_up").read_text(encoding="utf-8"), "html.parser")
    [output] = page.select(".cell_output")
    [image] = output.select("img")
    assert image["alt"] == "one dot" == output.select_one("figcaption").text
    assert (lecture_page(front.parent, "11_made_up").parent / str(image["src"])).is_file()
    assert output.text.strip() == "one dot" and not page.select("script[type*=widget]")


@pytest.mark.usefixtures("not_kept")
def test_where_the_repository_is_known_a_lecture_has_a_button_that_opens_it_on_colab(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.com")
    monkeypatch.setenv("GITHUB_REPOSITORY", "someone/course")
    front = book.make_book(tmp_path / "book", [made_up(tmp_path, "", "1")])
    page = BeautifulSoup(lecture_page(front.parent, "11_made_up").read_text(encoding="utf-8"), "html.parser")
    [button] = page.select('a[href*="colab.research"]')
    assert button["href"] == colab.address("someone/course", "11_made_up")
    icons = [lecture_page(front.parent, "11_made_up").parent / str(image["src"]) for image in button.select("img")]
    assert icons and all(icon.is_file() for icon in icons), "an icon comes from elsewhere"
    assert "colab.research" not in front.read_text(encoding="utf-8")


@pytest.mark.usefixtures("not_kept")
@pytest.mark.parametrize(
    ("text", "code", "problem"),
    [
        ("", "assert 1 == 2, 'one is not two'", "11_made_up: a cell fails:.*one is not two"),
        ("[a page](nowhere.md)", "1", "11_made_up.ipynb.*nowhere.md"),
        ("[a page](../../docs/students.md#nothing)", "1", "11_made_up.ipynb.*nothing"),
        ("![a picture](nowhere.png)", "1", "11_made_up.ipynb.*nowhere.png"),
        ("```mermaid\nflowchart LR\n  A --> B\n```", "1", "11_made_up.ipynb.*accDescr"),
    ],
    ids=["cell", "page", "anchor", "picture", "diagram"],
)
def test_what_is_wrong_stops_the_build_and_leaves_the_old_book(
    text: str, code: str, problem: str, tmp_path: Path
) -> None:
    old = tmp_path / "book" / "searchindex.js"
    old.parent.mkdir()
    old.write_text("old")
    with pytest.raises(build.BuildError) as error:
        book.make_book(tmp_path / "book", [made_up(tmp_path, text, code)])
    assert re.search(problem, str(error.value), re.DOTALL)
    assert str(tempfile.gettempdir()) not in str(error.value)
    assert old.read_text() == "old"


@pytest.mark.usefixtures("not_kept")
def test_measurements_that_were_disturbed_are_published_only_as_a_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([(0.0, 0.0), (100.0, 40.0)] * 2)
    monkeypatch.setattr(execution, "_processors", lambda: next(clock))
    lecture = made_up(tmp_path, "", "1")
    lecture.write_text(
        lecture.read_text(encoding="utf-8").replace("# %%\n1", '# %% tags=["timed"]\n1'), encoding="utf-8"
    )
    with pytest.raises(build.BuildError, match="other programs used 40% of the processors"):
        book.make_book(tmp_path / "book", [lecture])
    front = book.make_book(tmp_path / "book", [lecture], draft=True)
    assert "so this book is a draft" in front.read_text(encoding="utf-8")
    assert "Other programs used 40%" in lecture_page(front.parent, "11_made_up").read_text(encoding="utf-8")


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "thesis.md"
    other.write_text("months of work")
    with pytest.raises(build.BuildError, match="not a book; name an empty folder"):
        book.make_book(tmp_path, [made_up(tmp_path, "", "1")])
    assert other.read_text() == "months of work"


def test_without_its_packages_no_lecture_runs_and_the_reason_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sphinx", None)
    monkeypatch.setattr(book, "page", lambda *_, **__: pytest.fail("a lecture ran"))
    with pytest.raises(build.BuildError, match=r"bootstrap\.py --extra book"):
        book.make_book(tmp_path / "book", [made_up(tmp_path, "", "1")])

"""How long explorers take to answer: each frame in Python, and how many drawings a drag of 30 moves shows.

Run: python benchmarks/explorers.py            (add --browser for the drag, in JupyterLab and in a page of the book)

Frames: a seeded random walk over each explorer's controls. The target is 5 ms of Python. The drag: the slider of steps
in `valley`, by mouse, 16 ms between two moves. The target is 20 drawings. Don't use the machine for anything else
meanwhile.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import pkgutil
import random
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import nbformat
from rich.console import Console
from rich.table import Table

from autograder import project
from course_utils import explorers
from course_utils.explorers.explorer import Explorer, load

FRAMES, MOVES = 200, 30
CODE = "from course_utils.explorers import valley\n\nvalley.explore()\n"
COUNT = """root => {
  if (root.drawings === undefined) root.addEventListener("course-frame", () => { root.drawings += 1; });
  root.drawings = 0;
}"""


def names() -> list[str]:
    """The modules that have an explorer."""
    shared = {"drawing", "explorer", "live"}
    return [module.name for module in pkgutil.iter_modules(explorers.__path__) if module.name not in shared]


def walk(explorer: Explorer, chance: random.Random) -> list[float]:
    """Seconds of each frame, moving one control after another."""
    frame, took = explorer.frame(), []
    for _ in range(FRAMES):
        control = chance.choice(frame["controls"])
        value: Any = control["value"]
        if control["options"]:
            value = chance.choice(control["options"])
        elif control["kind"] == "switch":
            value = not value
        start = time.perf_counter()
        new = explorer.frame({**frame["state"], control["name"]: value}, control["name"])
        took.append(time.perf_counter() - start)
        frame = new if not new["problem"] else frame
    return sorted(took)


def drag(page: Any, root: Any) -> int:
    """Drawings that a drag of the slider of steps shows, from its start to its end."""
    root.evaluate(COUNT)
    box = root.locator("input[name=steps]").bounding_box()
    y, left, length = box["y"] + box["height"] / 2, box["x"] + 6, box["width"] - 12
    page.mouse.move(left, y)
    page.mouse.down()
    for move in range(MOVES):
        page.mouse.move(left + move * length / (MOVES - 1), y)
        page.wait_for_timeout(16)
    page.mouse.up()
    page.wait_for_timeout(500)
    return int(root.evaluate("root => root.drawings"))


def in_jupyterlab(browser: Any) -> int:
    """The drag in JupyterLab."""
    sys.path.insert(0, str(project.ROOT / "tests" / "browser"))
    from lab import Lab

    with tempfile.TemporaryDirectory() as scratch:
        folder, home = Path(scratch, "notebooks"), Path(scratch, "home")
        folder.mkdir()
        home.mkdir()
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        cells = [nbformat.v4.new_code_cell(CODE)]
        nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), folder / "one.ipynb")
        lab, page = Lab(folder, home), browser.new_page(viewport={"width": 1100, "height": 700})
        try:
            lab.open(page, "one.ipynb")
            page.evaluate("jupyterapp.commands.execute('notebook:run-all-cells')")
            root = page.locator(".course-live .course-explorer")
            root.locator("input[name=steps]").wait_for(timeout=60_000)
            page.wait_for_timeout(1_000)
            return drag(page, root)
        finally:
            lab.stop()


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves without a word."""

    def log_message(self, *_: object) -> None:
        pass


def in_the_book(browser: Any) -> int:
    """The drag in a page of the book, once Python is awake there."""
    from autograder.authoring import book

    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch, "11_made_up.py")
        source.write_text(f'# %% [markdown]\nr"""\n# 11 · Made up\n"""\n\n# %%\n{CODE}', encoding="utf-8")
        site = book.make_book(Path(scratch, "book"), [source]).parent
        handler = functools.partial(Quiet, directory=str(site))
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            page = browser.new_page(viewport={"width": 1100, "height": 700})
            page.goto(f"http://127.0.0.1:{server.server_port}/notebooks/11_made_up/11_made_up.html")
            root = page.locator("figure.course-explorer")
            root.evaluate(COUNT)
            root.locator("input[name=turn]").press("ArrowRight")
            page.wait_for_function("document.querySelector('figure.course-explorer').drawings > 0", timeout=60_000)
            found = drag(page, root)
            server.shutdown()
            return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--browser", action="store_true", help="drag in JupyterLab and in the book, too")
    given = parser.parse_args()
    table = Table("explorer", "half within", "95% within", "slowest")
    for name in names():
        took = walk(load(name, {}), random.Random(0))
        shown = (statistics.median(took), took[int(0.95 * FRAMES)], took[-1])
        table.add_row(name, *(f"{1e3 * seconds:.1f} ms" for seconds in shown))
    Console().print(table)
    if given.browser:
        from playwright.sync_api import sync_playwright

        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
            for where, count in (("JupyterLab", in_jupyterlab), ("the book", in_the_book)):
                Console().print(f"{where}: a drag of {MOVES} moves shows {count(browser)} drawings")
    return 0


if __name__ == "__main__":
    sys.exit(main())

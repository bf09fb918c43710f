"""What the pages of the web book take before an explorer is touched: bytes, and time to the first picture.

    python benchmarks/pages.py build/book

Needs Chromium and a finished book. Each page is loaded three times from a server on this machine, with an empty cache.
"""

from __future__ import annotations

import gzip
import http.server
import shutil
import sys
import threading
from functools import partial
from pathlib import Path
from statistics import median

from playwright.sync_api import Page, Response, sync_playwright

PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
TEXT = (".html", ".css", ".js", ".svg")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def load(page: Page, address: str) -> tuple[int, int, float]:
    """Bytes of a page with all that it loads, the same with text compressed, and ms until something is seen."""
    came: dict[str, Response] = {}
    page.on("response", lambda each: came.update({each.url: each}))
    page.goto(address, wait_until="networkidle")
    bodies = {url.partition("?")[0]: response.body() for url, response in list(came.items()) if response.ok}
    sent = sum(len(gzip.compress(body) if url.endswith(TEXT) else body) for url, body in bodies.items())
    return sum(map(len, bodies.values())), sent, page.evaluate(PAINT)


def main(book: Path) -> None:
    paths = sorted(path for path in book.rglob("*.html") if "_static" not in path.parts)
    found = {}
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(book))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium") or shutil.which("google-chrome"), args=["--no-sandbox"]
            )
            for path in paths:
                runs = []
                for _ in range(3):
                    page = browser.new_page(viewport={"width": 1100, "height": 700})  # and a cache of its own
                    runs.append(
                        load(page, f"http://127.0.0.1:{server.server_port}/{path.relative_to(book).as_posix()}")
                    )
                    page.close()
                found[path.stem] = runs[0][0], runs[0][1], median(run[2] for run in runs), max(run[2] for run in runs)
                print("{:30} {:9,} B, {:9,} B compressed, first picture {:4.0f} ms, at most {:.0f}".format(
                    path.stem, *found[path.stem]
                ))  # fmt: skip
            browser.close()
        server.shutdown()
    whole, sent, paint, slowest = (max(values) for values in zip(*found.values(), strict=True))
    print(f"\n{len(found)} pages; at most {whole:,} B, {sent:,} B compressed, {paint:.0f} ms ({slowest:.0f} ms)")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""What all tests share: a small capstone, threads that wait asleep, and a browser for those that look at pages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

os.environ.setdefault("COURSE_PRESET", "small")  # lecture 12 trains for seconds where notebooks are only tried out
# A thread of OpenMP that waits keeps a processor busy. Several tests run side by side, and on two cores that costs most
# of the time: lecture 07 takes seven times as long. Read when torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a screen: the system's, or the one that Playwright installed."""
    from playwright.sync_api import sync_playwright  # not there where only the GPU is tested

    with sync_playwright() as playwright:
        found = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
        executable = found or playwright.chromium.executable_path
        if not Path(executable).exists():
            pytest.skip("no chromium here; `apt install chromium` or `playwright install chromium` brings one")
        # Chromium's own sandbox refuses to run as root, and its updates need a network.
        flags = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
        browser = playwright.chromium.launch(
            executable_path=executable, args=[*flags.split(), "--disable-component-update", "--disable-sync"]
        )
        yield browser
        browser.close()

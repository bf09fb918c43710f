"""What all tests share: in which order they start, which of them are slow, where they may write, and a browser."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserType

TESTS = Path(__file__).parent
ROOT = TESTS.parent

# What `make quick` leaves out. Everything else counts as quick, and `make quick` fails a test that takes too long. This
# is also the order in which files start, the longest first, so that no worker sits idle at the end of a run.
SLOW = [
    "browser/test_lectures.py",
    "course/test_notebooks.py",  # before the book, which shows what these tests run: it would wait for all of them
    "setup/test_book.py",
    "course/test_grading.py",
    "setup/test_release.py",
    "setup/test_bootstrap.py",
    "setup/test_kernel.py",
    "setup/test_ways_in.py",
    "browser/test_jupyterhub.py",
    "browser/test_lab.py",
    "grading/test_engine.py",
    "grading/test_machines.py",
    "course/test_exercises.py",
    "course/test_honest.py",
    "grading/test_liar.py",
    "grading/test_hidden_inputs.py",
    "grading/test_parity.py",
    "setup/test_gpu.py",
    "grading/test_demo.py",
    "grading/test_semester.py",
    "grading/test_semester_page.py",
    "grading/test_nothing_broken_passes.py",
    "grading/test_questions.py",
    "unit/test_ranks_failures.py",
    "grading/test_decisions.py",
    "grading/test_collect.py",
    "grading/test_due.py",
    "unit/test_explorers_initialization.py",
    "unit/test_explorers_training_time.py",
    "browser/test_explorers_in_lab.py",
    "browser/test_explorers_in_page.py",
    "grading/test_gradebook.py",
    "unit/test_progress.py",
    "unit/test_kernel_messages.py",
    "browser/test_formgrader.py",
    "unit/test_plots.py",
    "grading/test_folder.py",
    "grading/test_sandbox.py",
    "course/test_execution.py",
    "setup/test_cli.py",
    "grading/test_feedback.py",
    "grading/test_one_stops_nobody.py",
    "course/test_proving.py",
    "setup/test_benchmarks.py",
    "grading/test_own_exercises.py",
    "unit/test_napkin_modules.py",
    "grading/test_pool.py",
    "grading/test_cgroup.py",
    "grading/test_hostile.py",
    "grading/test_kills.py",
]
# Where a run may leave something in the checkout: git ignores it, and the next run is quicker for it.
CACHES = {"build", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".venv", ".venv.installing"}

os.environ.setdefault("COURSE_PRESET", "small")  # lecture 14 trains for seconds where notebooks are only tried out
# A thread of OpenMP that waits keeps a processor busy. Several tests run side by side, and on two cores that costs most
# of the time: lecture 07 takes seven times as long. Read when torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="leave out what is slow, without even importing it")
    parser.addoption(
        "--leave-nothing",
        action="store_true",
        help="fail if the run leaves something in the checkout (caches aside) or in the home directory",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Send what Jupyter, IPython, matplotlib, npm and uv would write into the home directory elsewhere."""
    if hasattr(config, "workerinput"):  # a worker of pytest-xdist has the environment of the process that started it
        return
    config.stash[LEFT] = _lying_around() if config.getoption("--leave-nothing") else set()
    home = tempfile.TemporaryDirectory(prefix="course-tests-")
    config.add_cleanup(home.cleanup)
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR", "npm_config_cache"):
        os.environ[name] = str(Path(home.name, name.lower()))
    # These two are caches that take long to fill: matplotlib's list of fonts, and what uv knows of the package index.
    for name in ("MPLCONFIGDIR", "UV_CACHE_DIR"):
        os.environ[name] = str(ROOT / "build" / "caches" / name.lower())
        Path(os.environ[name]).mkdir(parents=True, exist_ok=True)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the slow files with ``--quick``."""
    slow = config.getoption("--quick") and any(collection_path == TESTS / name for name in SLOW)
    return True if slow else None


@pytest.hookimpl(tryfirst=True)  # before `-m "not slow"` chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow, and start the longest first."""
    places = {TESTS / name: place for place, name in enumerate(SLOW)}
    for item in items:
        if item.path in places:
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: places.get(item.path, len(places)))  # stable


@pytest.hookimpl(tryfirst=True)  # before a module's fixtures start to grade
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test marked ``sandboxed``, with the reason, if there is no sandbox to be had."""
    has_one = "box" in getattr(item, "fixturenames", ())  # which is tried where it is made
    if not item.get_closest_marker("sandboxed") or has_one:
        return
    from shared_sandbox import Shared  # with PyTorch

    if Shared.refusal is None:
        Shared.get()
    if item.get_closest_marker("hostile"):
        Shared.close()  # these flood what all sandboxes share
    if Shared.refusal:
        pytest.skip(Shared.refusal)


@pytest.fixture(autouse=True, scope="session")
def shared() -> Iterator[None]:
    """Close the sandbox that tests share, if one was started."""
    yield
    if module := sys.modules.get("shared_sandbox"):
        module.Shared.close()


LEFT = pytest.StashKey[set[str]]()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run that leaves something behind."""
    if hasattr(session.config, "workerinput") or not session.config.getoption("--leave-nothing"):
        return
    if left := sorted(_lying_around() - session.config.stash[LEFT]):
        print("\nThe run left this behind, or you made it meanwhile:", *left, sep="\n  ")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _lying_around() -> set[str]:
    """The files in the checkout that git doesn't know, and what is in the home directory, caches aside."""
    command = ["git", "status", "--porcelain", "-z", "--untracked-files=all", "--ignored=matching"]
    status = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout
    unknown = [entry for entry in status.split("\0") if entry.startswith(("??", "!!"))]
    found = {entry for entry in unknown if not CACHES & set(entry[3:].rstrip("/").split("/"))}
    home = Path.home()
    for folder in (home, *(home / name for name in (".cache", ".config", ".local", ".local/share", ".local/state"))):
        if folder.is_dir():
            # pip keeps what it downloads for everybody; this folder is the only one that a run may make.
            found |= {str(path) for path in folder.iterdir() if path != home / ".cache" / "pip"}
    return found


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[BrowserType, dict[str, Any]]]:
    """Chromium without a screen, the system's or the one that Playwright installed, and how to launch it."""
    from playwright.sync_api import sync_playwright  # not there where only the GPU is tested

    with sync_playwright() as playwright:
        found = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
        executable = found or playwright.chromium.executable_path
        if not Path(executable).exists():
            pytest.skip("no chromium here; `apt install chromium` or `playwright install chromium` brings one")
        # Chromium's own sandbox refuses to run as root, and its updates need a network.
        flags = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
        home = str(tmp_path_factory.mktemp("chromium"))
        yield (
            playwright.chromium,
            {
                "executable_path": executable,
                "args": [*flags.split(), "--disable-component-update", "--disable-sync"],
                "env": {**os.environ, "HOME": home, "XDG_CONFIG_HOME": home, "XDG_CACHE_HOME": home},
            },
        )


@pytest.fixture(scope="module")
def browser(chromium: tuple[BrowserType, dict[str, Any]]) -> Iterator[Browser]:
    """A browser in which each page is somebody else's: it shares no cache with the others."""
    kind, how = chromium
    browser = kind.launch(**how)
    yield browser
    browser.close()

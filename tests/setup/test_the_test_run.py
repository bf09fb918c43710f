"""The run of the tests itself: what is slow is known by files that exist, and whatever a run leaves behind is found."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from autograder import project


@pytest.fixture
def conftest(request: pytest.FixtureRequest) -> ModuleType:
    """tests/conftest.py, as pytest has imported it."""
    found = request.config.pluginmanager.get_plugin(str(project.ROOT / "tests" / "conftest.py"))
    assert isinstance(found, ModuleType)
    return found


def test_every_slow_file_exists_and_is_named_once(conftest: ModuleType) -> None:
    assert [name for name in conftest.SLOW if not (project.ROOT / "tests" / name).is_file()] == []
    assert len(set(conftest.SLOW)) == len(conftest.SLOW)


def test_a_file_left_in_the_checkout_or_in_the_home_directory_is_found_and_a_cache_is_not(
    conftest: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout, home = tmp_path / "checkout", tmp_path / "home"
    for folder in (checkout / "build", checkout / "docs" / "__pycache__", home / ".cache" / "pip"):
        folder.mkdir(parents=True)
    subprocess.run(["git", "init", "--quiet"], cwd=checkout, check=True)
    (checkout / ".gitignore").write_text("build/\n__pycache__/\n*.log\n")
    monkeypatch.setattr(conftest, "ROOT", checkout)
    monkeypatch.setenv("HOME", str(home))
    before = conftest._lying_around()
    for name in ("build/cache", "docs/__pycache__/x.pyc", "docs/new.md", "ignored.log"):
        (checkout / name).touch()
    (home / ".jupyter").mkdir()
    (home / ".cache" / "chromium").mkdir()
    assert conftest._lying_around() - before == {
        "?? docs/new.md", "!! ignored.log", str(home / ".jupyter"), str(home / ".cache" / "chromium")
    }  # fmt: skip


def test_jupyter_and_matplotlib_write_elsewhere_than_in_the_home_directory() -> None:
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR", "MPLCONFIGDIR"):
        assert Path(os.environ[name]).parent.name.startswith(("course-tests-", "caches"))

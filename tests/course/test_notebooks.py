"""Every instructor notebook runs from top to bottom, re-executed by nbval."""

import subprocess
import sys
from pathlib import Path

import pytest

from autograder import build, source


@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", source.lectures(build.SOLUTIONS), ids=lambda path: path.stem)
def test_nbval(path: Path, tmp_path: Path) -> None:
    build.course_directory(tmp_path, [path])
    notebook = build.notebook_path(tmp_path / "source", path.stem)
    # Lax: outputs hold measurements, which differ; that every cell runs, asserts included, is what is checked.
    command = [sys.executable, "-m", "pytest", "--nbval-lax", "--nbval-current-env", "--nbval-cell-timeout=120"]
    command += ["-p", "no:cacheprovider", "-o", "addopts=", "-q", "--durations=5", str(notebook)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    print(ran.stdout[-4000:])
    assert ran.returncode == 0, ran.stdout[-8000:] + ran.stderr[-2000:]
    assert " passed" in ran.stdout

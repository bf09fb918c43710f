"""Every instructor notebook runs from top to bottom, twice, and says the same both times: nbval compares.

The first time on a warm kernel, which is quicker; the second on a stock one, as people run it.
"""

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from jupyter_client.provisioning import KernelProvisionerFactory
from nbclient import NotebookClient

from autograder import project
from autograder.grading import source


@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", source.lectures(project.SOLUTIONS), ids=lambda path: path.stem)
def test_nbval(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lecture = source.read(path)
    notebook = lecture.notebook
    for index in lecture.timed:
        notebook.cells[index].metadata["tags"] = ["nbval-ignore-output"]
    if sys.platform == "linux":
        monkeypatch.setattr(KernelProvisionerFactory.instance(), "default_provisioner_name", "warm")
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": tmp_path}}).execute()
    executed = tmp_path / f"{lecture.name}.ipynb"
    nbformat.write(notebook, executed)

    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "--nbval-cell-timeout=120"]
    command += ["-p", "no:cacheprovider", "-o", "addopts=", "-q", "--durations=5", str(executed)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    print(ran.stdout[-4000:])
    assert ran.returncode == 0, (
        "A cell fails, or shows something else on a second run: seed it, or tag it `timed` if it shows a timing.\n"
        + ran.stdout[-8000:]
        + ran.stderr[-2000:]
    )
    assert " passed" in ran.stdout

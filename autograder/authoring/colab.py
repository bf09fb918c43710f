"""Lectures for Google Colab, and a page with a badge for each: the content of the branch ``colab``.

Colab opens just one notebook, on a machine that has PyTorch but not this course. So each lecture gets a cell that
fetches the course from GitHub, at one commit, and installs whatever Colab lacks.
"""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder import CourseError
from autograder.grading import source
from autograder.project import ROOT, SOLUTIONS
from course_utils import home

from . import build

BRANCH = "colab"
_REPOSITORY = re.compile(r"[\w-]+/[\w.-]+")
_LINK = re.compile(r"\]\(\.\./(\d\d_\w+)/\1\.ipynb\)")


def make_colab(
    folder: Path,
    repository: str,
    commit: str = "",
    archive: str = "",
    sources: Iterable[Path] = (),
    progress: Callable[[str], None] = lambda name: None,
) -> Path:
    """Write lectures for Colab and the page that lists them into ``folder``; return the page's path.

    ``repository`` is OWNER/NAME on GitHub. The first cell fetches the course from ``archive``, the URL of a zip, or, by
    default, from GitHub's zip of ``commit``, which defaults to the one that is checked out here. Includes all lectures
    unless ``sources`` names some. Raises :class:`CourseError` without a repository or a commit.
    """
    if not _REPOSITORY.fullmatch(repository):
        raise CourseError(
            f"Colab opens notebooks from a public repository on GitHub, and {repository!r} doesn't name one\n"
            "  → give --repository OWNER/NAME (in a workflow on GitHub, the variable GITHUB_REPOSITORY has it)"
        )
    archive = archive or f"https://github.com/{repository}/archive/{commit or _checked_out()}.zip"
    notebooks = folder / "notebooks"
    with tempfile.TemporaryDirectory() as scratch:
        sources = list(sources) or source.lectures(SOLUTIONS)
        paths = build.students_notebooks(notebooks, Path(scratch), progress, sources)
    for path in paths:
        build.write_notebook(_for_colab(nbformat.read(path, as_version=4), path.stem, repository, archive), path)
    rows = "\n".join(_row(home.read_lecture(path), repository) for path in paths)
    page = folder / "README.md"
    binder = f"https://mybinder.org/v2/gh/{repository}/HEAD?urlpath=lab/tree/notebooks/{home.PAGE}"
    text = _PAGE.format(repository=repository, rows=rows, missing=MISSING, binder=binder)
    page.write_text(text, encoding="utf-8", newline="\n")
    return page


def address(repository: str, lecture_name: str) -> str:
    """The URL at which Colab opens a lecture."""
    return f"https://colab.research.google.com/github/{repository}/blob/{BRANCH}/notebooks/{lecture_name}/{lecture_name}.ipynb"


def _checked_out() -> str:
    try:
        ran = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        raise CourseError(
            "this folder isn't a git checkout, so nothing says which commit Colab should fetch\n"
            "  → give --commit, or --archive with the URL of a zip"
        ) from None
    return ran.stdout.strip()


def _for_colab(notebook: NotebookNode, lecture_name: str, repository: str, archive: str) -> NotebookNode:
    """A students' notebook with two more cells below its title, and with links to the other lectures on Colab."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = _LINK.sub(lambda found: f"]({address(repository, found[1])})", cell.source)
    notebook.cells[1:1] = first_cells(lecture_name, archive)
    return notebook


def first_cells(lecture_name: str, archive: str) -> list[NotebookNode]:
    """The cells that a lecture on Colab begins with: a note on what is different there, and the setup."""
    code = "\n\n".join(
        [
            "# @title Run this cell first",
            inspect.getsource(fetch_course).replace("  # noqa: F401", "").rstrip(),
            f"fetch_course({json.dumps(archive)}, {json.dumps(lecture_name)})",
        ]
    )
    folded = {"cellView": "form", "jupyter": {"source_hidden": True}}
    return [
        nbformat.v4.new_markdown_cell(_NOTE.format(lecture_name=lecture_name, missing=MISSING), id="on-colab"),
        nbformat.v4.new_code_cell(code, id="fetch-course", metadata=folded),
    ]


# This function's source becomes a cell. If the course is installed, as on the grading machine, it does nothing. It must
# use nothing that makes the grader ask for a review; course_utils/colab.py does the rest.
def fetch_course(archive: str, lecture_name: str) -> None:
    """Fetch the course and work in the lecture's folder. Colab's PyTorch isn't changed."""
    import io
    import runpy
    import urllib.request
    import zipfile

    class SetupStopped(Exception):
        def _render_traceback_(self) -> list[str]:  # IPython shows this instead of a traceback
            return [f"Setup stopped: {self}; run this cell again."]

    try:
        import course_utils.units  # noqa: F401

        return
    except ModuleNotFoundError:
        pass
    try:
        with urllib.request.urlopen(archive, timeout=60) as response:
            files = zipfile.ZipFile(io.BytesIO(response.read()))
    except (OSError, zipfile.BadZipFile) as error:
        raise SetupStopped(f"{archive} can't be fetched ({error})") from None
    course = files.namelist()[0].partition("/")[0]
    wanted = (f"{course}/course_utils/", f"{course}/notebooks/")
    files.extractall(members=[name for name in files.namelist() if name.startswith(wanted)])
    try:
        runpy.run_path(f"{course}/course_utils/colab.py")["set_up"](course, lecture_name)
    except RuntimeError as error:
        raise SetupStopped(str(error)) from None


def _row(lecture: home.Lecture, repository: str) -> str:
    badge = f"[![Open {lecture.title} in Colab](https://colab.research.google.com/assets/colab-badge.svg)]"
    return f"| {lecture.title} | {'<br>'.join(lecture.questions)} | {badge}({address(repository, lecture.path.stem)}) |"


MISSING = (
    "Colab lacks grading, the sandbox that grading needs, and **Validate**; it checks your answers on the visible "
    "cases only."
)
_NOTE = """\
> **You're on Google Colab.** First choose *File ▸ Save a copy in Drive*, or your answers are lost with this tab. Then
> run the next cell: it fetches the course without changing Colab's PyTorch. {missing}
> Your guesses and the panel of finished exercises last only as long as the session.
> To hand in, choose *File ▸ Download ▸ Download .ipynb* and name the file `{lecture_name}.ipynb`.
"""
_PAGE = """\
# Every Byte, Every FLOP in a browser

`course colab` builds this branch; [the course itself](https://github.com/{repository}) is on another one.
Each badge opens a lecture on Google Colab, where nothing has to be installed. {missing}

| lecture | the question | |
|---|---|---|
{rows}

Two more ways to work without installing anything:

- [![Open the lectures on Binder](https://mybinder.org/badge_logo.svg)]({binder})
  has the whole course in JupyterLab, with **Validate**, but no grading, no sandbox and no GPU. It keeps nothing:
  download your notebook before you leave.
- [A codespace](https://codespaces.new/{repository}) has the whole repository in VS Code. It keeps your files, but
  can't grade, because its container has no sandbox.
"""

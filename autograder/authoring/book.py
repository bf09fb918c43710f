"""Makes the web book, a static site of all lectures, with outputs and figures, and the project's pages.

The lectures are run with their solutions, but the book shows the students' text: exercises and checks appear as a
student first sees them, without output. What answers a prediction is hidden until the reader opens it. Sphinx builds
the site (`book/conf.py`) without a network.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder.grading import source
from autograder.project import ROOT, notebook_path
from course_utils.explorers import memory_budget, planner
from course_utils.explorers.explorer import ASLEEP

from . import build, glossary, pyodide
from .kernel import execution

BOOK = ROOT / "book"
# Copied in addition to the lectures; the front page includes README.md.
PAGES = ("README.md", "CONTRIBUTING.md", "docs")
WIDGET = "application/vnd.jupyter.widget-view+json"
ASLEEP_PAGE = (
    "This is a picture of the initial settings. Its controls need JavaScript and work only on a page from a web server."
)
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#:\s]+)\)")


def make_book(
    destination: Path,
    lectures: list[Path] | None = None,
    progress: Callable[[str], None] = lambda name: None,
    *,
    draft: bool = False,
) -> Path:
    """Write the site to ``destination``, replacing an older one, and return its front page.

    Includes all lectures of the project unless ``lectures`` names some. Raises BuildError if a cell fails, if Sphinx
    warns about anything (such as a broken link, a missing image, or invalid markup), if other programs disturbed a
    lecture's measurements, if ``destination`` contains something else, and, before a lecture runs, if Sphinx isn't
    installed. A ``draft`` accepts disturbed measurements, and its pages say so.
    """
    if importlib.util.find_spec("sphinx") is None:
        raise build.BuildError(
            "the packages that make the book are missing; install them with `python3 bootstrap.py --extra book`"
        )
    if destination.exists() and any(destination.iterdir()) and not (destination / "searchindex.js").is_file():
        raise build.BuildError(
            f"{destination} contains something that is not a book; name an empty folder or a new one"
        )
    with tempfile.TemporaryDirectory() as scratch:
        # A mirror of the project's layout, so that links between its pages work.
        pages, html = Path(scratch, "pages"), Path(scratch, "html")
        shutil.copytree(BOOK, pages)
        for name in PAGES:
            path = ROOT / name
            (shutil.copytree if path.is_dir() else shutil.copyfile)(path, pages / name)
        runs = []
        read = build.course_directory(Path(scratch, "course"), lectures or ())
        build.require_current(read)
        for lecture in read:
            progress(lecture.name)
            notebook = page(lecture, Path(scratch, "course"), draft=draft)
            runs.append(notebook.metadata.pop("run"))
            path = notebook_path(pages / "notebooks", lecture.name)
            path.parent.mkdir(parents=True)
            build.write_notebook(notebook, path)
        _enliven(pages / "_static", progress)
        (pages / "notebooks" / build.GLOSSARY).write_text(glossary.page(read), encoding="utf-8")
        _fill(pages / "index.md", measured=_measured(runs), explorer=_waking(memory_budget.explore().still()))
        _fill(pages / "planner.md", planner=_waking(planner.explore().still()))
        for path in pages.rglob("*.md"):
            path.write_text(_inside(path, pages), encoding="utf-8")
        progress("pages")
        options = ["--quiet", "--fail-on-warning", "--keep-going", "--doctree-dir", str(Path(scratch, "doctrees"))]
        command = [sys.executable, "-m", "sphinx", *options, str(pages), str(html)]
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode:
            raise build.BuildError(f"Sphinx could not make the book:\n{ran.stderr.replace(str(pages), '')}")
        _lighten(html)
        shutil.rmtree(destination, ignore_errors=True)
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(html, destination)
    return destination / "index.html"


def page(lecture: source.Lecture, course: Path, *, draft: bool = False) -> NotebookNode:
    """The students' notebook of a lecture in ``course`` with the outputs of the solved lecture.

    Raises BuildError if a cell fails, or if its measurements were disturbed; in a ``draft``, the page says so instead.
    """
    solved = execution.executed(lecture, undisturbed=not draft)
    shown: NotebookNode = nbformat.read(build.release(course, lecture.name), as_version=4)
    for cell, ran in zip(shown.cells, solved.cells, strict=True):
        if cell.cell_type == "code" and "nbgrader" not in cell.metadata:
            cell.outputs = [output for output in ran.outputs if _still(output)]
            for output in cell.outputs:
                if "course-explorer" in (text := output.get("data", {}).get("text/html", "")):
                    # The book has one stylesheet for all pages, and activates explorers itself.
                    text = re.sub(r"<style>.*?</style>", "", text, count=1, flags=re.DOTALL)
                    output.data["text/html"] = _waking(text)
                elif found := re.fullmatch(r'<svg [^>]*aria-label="([^"]+)".*</svg>', text.strip(), re.DOTALL):
                    caption = f'<figcaption aria-hidden="true">{found[1]}</figcaption>'  # screen readers read the label
                    output.data["text/html"] = f'<figure class="course-figure"><div>{text}</div>{caption}</figure>'
                if alt := output.get("metadata", {}).get("image/png", {}).get("alt"):
                    cell.metadata["mystnb"] = {"image": {"alt": alt}}
    _hide_answers(shown.cells)
    shown.metadata["run"] = run = solved.metadata.run
    if run.disturbed:
        warning = (
            f"> **A draft.** Other programs used {run.others:.0%} of the processors while this was measured: don't "
            "trust its times and rates."
        )
        shown.cells.insert(1, nbformat.v4.new_markdown_cell(warning, id="draft"))
    return shown


def _hide_answers(cells: list[NotebookNode]) -> None:
    """Hide what may answer a prediction until the reader opens it: a folded cell as a whole, of others the output.

    That's every cell from a guess to the one that compares it with the answer, or to the end of the section.
    """
    guessed = False
    for cell in cells:
        if cell.cell_type == "markdown":
            guessed = guessed and re.search(r"^## ", cell.source, re.MULTILINE) is None
            continue
        answers = source.states_answer(cell.source)
        if (guessed or answers) and "nbgrader" not in cell.metadata:
            folded = "hide-input" in cell.metadata.get("tags", [])
            cell.metadata["tags"] = ["hide-cell" if folded else "hide-output"]
        if answers:
            prompts = {f"code_prompt_{do}": f"{do.title()} the answer" for do in ("show", "hide")}
            cell.metadata["mystnb"] = {**cell.metadata.get("mystnb", {}), **prompts}
        guessed = (guessed or cell.source.startswith("guess")) and not answers


def _fill(page: Path, **contents: str) -> None:
    """Put texts where a page has their names, ``{{ planner }}``."""
    text = page.read_text(encoding="utf-8")
    for name, content in contents.items():
        text = text.replace(f"{{{{ {name} }}}}", content)
    page.write_text(text, encoding="utf-8")


def _measured(runs: list[NotebookNode]) -> str:
    """A paragraph on where and when the lectures ran, and how busy the machine was with other programs."""
    dates = sorted({run.date for run in runs})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    most = max(run.others for run in runs)
    draft = any(run.disturbed for run in runs)
    return (
        f"The lectures ran on {'; '.join(sorted({run.where for run in runs}))} ({when}). Other programs used at most "
        f"{most:.0%} of the processors meanwhile{', so this book is a draft' if draft else ''}."
    )


def _waking(explorer: str) -> str:
    """An explorer's picture, with the book's note on what its controls need."""
    return explorer.replace(ASLEEP, ASLEEP_PAGE)


def _enliven(static: Path, progress: Callable[[str], None]) -> None:
    """Add the files that run explorers in the reader's browser. Without Pyodide, they remain pictures."""
    explorers = ROOT / "course_utils" / "explorers"
    shutil.copyfile(explorers / "explorer.css", static / "explorers" / "explorer.css")
    try:
        pyodide.install(static)
    except pyodide.NoPyodide as reason:
        (static / "explorers" / "page.js").write_text("")
        progress(f"explorers as pictures only: {reason}")
    else:
        shutil.copyfile(explorers / "explorer.js", static / "explorers" / "explorer.js")


def _lighten(html: Path) -> None:
    """Remove the theme's icon script, 1.6 MB on every page: its stylesheet has the same icons as a font."""
    for path in html.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        text = re.sub(r"<(?:script|link)\b[^>]*/fontawesome\.js[^>]*>(?:</script>)?", "", text)
        path.write_text(text, encoding="utf-8")
    (html / "_static" / "scripts" / "fontawesome.js").unlink()


def _still(output: NotebookNode) -> bool:
    """Whether an output can be displayed without a kernel. A widget can't, but comes with a picture of itself."""
    return not {WIDGET, "application/javascript"} & output.get("data", {}).keys()


def _inside(path: Path, pages: Path) -> str:
    """The text of a page, in which links to parts of the project that aren't in the book are plain text."""

    def link(found: re.Match[str]) -> str:
        target = path.parent / found[2]
        outside = not target.exists() and (ROOT / os.path.relpath(target, pages)).exists()
        return found[1] if outside else found[0]

    return _LINK.sub(link, path.read_text(encoding="utf-8"))

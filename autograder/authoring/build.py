"""Builds notebooks: sources become instructor notebooks in a course directory, nbgrader makes the students' from them.

A course directory is nbgrader's: ``source/NN_topic/NN_topic.ipynb`` (with solutions), ``release/`` (without), and,
once a class is graded in it, ``submitted/``, ``autograded/``, ``feedback/`` and the gradebook.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import nbformat

from autograder import CourseError
from autograder.grading import source
from autograder.project import BUILD, NOTEBOOKS, SOLUTIONS, notebook_path

CONFIG = '''\
"""nbgrader's configuration of this course directory."""

c = get_config()  # noqa: F821

c.CourseDirectory.course_id = "every-byte-every-flop"
'''


class BuildError(CourseError):
    """A notebook could not be built: says which one and what to do."""


def course_directory(folder: Path, sources: Iterable[Path] = ()) -> list[source.Lecture]:
    """Write instructor notebooks and nbgrader's configuration into ``folder``.

    Takes all lectures of the project unless ``sources`` names some. Nothing else in the folder is touched, so
    it is safe to repeat over a course with submissions. Raises SourceError for a source that is not sound.
    """
    read = [source.read(path) for path in sources or source.lectures(SOLUTIONS)]
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "nbgrader_config.py"
    if not config.exists():
        config.write_text(CONFIG, encoding="utf-8")
    for lecture in read:
        path = notebook_path(folder / "source", lecture.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.validate(lecture.notebook)
        write_notebook(lecture.notebook, path)
    return read


def release(course: Path, name: str) -> Path:
    """Make the students' notebook of one lecture with nbgrader's own pipeline; return where it is."""
    from nbgrader.converters import GenerateAssignment  # its import takes longer than all else that most commands do
    from nbgrader.coursedir import CourseDirectory
    from nbgrader.utils import capture_log
    from traitlets.config import Config

    config = Config()
    config.CourseDirectory.root = str(course)
    # As `nbgrader generate_assignment --no-db`: the gradebook belongs to a class, not to a build.
    config.GenerateAssignment.no_database = True
    config.SaveCells.enabled = False
    config.CourseDirectory.assignment_id = name
    config.BaseConverter.force = True
    converter = GenerateAssignment(coursedir=CourseDirectory(config=config), config=config)
    converter.log.setLevel(logging.ERROR)
    result = capture_log(converter)
    path = notebook_path(course / "release", name)
    if not result["success"] or not path.is_file():
        log = result.get("log") or result["error"]
        raise BuildError(f"{name}: nbgrader could not make the students' notebook:\n{log}")
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        # The release carries what nbgrader needs to grade and nothing else.
        for key in [key for key in cell.metadata if key != "nbgrader"]:
            del cell.metadata[key]
    write_notebook(notebook, path)
    return path


def write_notebook(notebook: nbformat.NotebookNode, path: Path) -> None:
    """Write a notebook so that equal notebooks are equal bytes."""
    path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8", newline="\n")


def students_notebooks(
    destination: Path = NOTEBOOKS,
    course: Path = BUILD,
    progress: Callable[[str], None] = lambda name: None,
) -> list[Path]:
    """Build everything: instructor notebooks in ``course``, students' notebooks in ``destination``."""
    written = []
    for lecture in course_directory(course):
        progress(lecture.name)
        target = notebook_path(destination, lecture.name)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(release(course, lecture.name), target)
        written.append(target)
    return written


def stale(scratch: Path, committed: Path = NOTEBOOKS) -> list[str]:
    """Names of lectures whose committed notebook is not what their source builds now, or has no source any more."""
    built = {path.parent.name: path.read_bytes() for path in students_notebooks(scratch / "notebooks", scratch)}
    have = {path.parent.name: path.read_bytes() for path in committed.glob("*/*.ipynb")}
    return sorted(name for name in built.keys() | have.keys() if built.get(name) != have.get(name))

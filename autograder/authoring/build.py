"""Builds notebooks: the instructors' from sources, into a course directory, and the students' from those with nbgrader.

A course directory has nbgrader's layout: ``source/NN_topic/NN_topic.ipynb`` (with solutions), ``release/`` (without),
and, once a class is graded there, ``submitted/``, ``autograded/``, ``feedback/`` and the gradebook.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import nbformat

from autograder import CourseError
from autograder.grading import source
from autograder.grading.exercises import hidden_path, made_from
from autograder.inside.preload import preload
from autograder.project import BUILD, CHECKS, NOTEBOOKS, SOLUTIONS, checks_of, notebook_path
from course_utils import validating
from course_utils.files import replacing

from . import glossary

GLOSSARY = "glossary.md"  # next to the lectures' folders

CONFIG = '''\
"""nbgrader's configuration of this course directory."""

c = get_config()  # noqa: F821

c.CourseDirectory.course_id = {course_id!r}
# `nbgrader autograde` interrupts a cell that takes longer, such as an endless loop, and goes on with the next one.
c.Execute.timeout = 60
'''
COURSE_ID = "every-byte-every-flop"


# nbgrader sets the last two, so that checks can't be deleted or edited by accident.
_RELEASED = {"nbgrader", "jupyter", "cellView", "tags", "deletable", "editable"}


class BuildError(CourseError):
    """A notebook could not be built; the message says which one and what to do."""


def course_directory(
    folder: Path, sources: Iterable[Path] = (), seed: int | None = 0, course_id: str = COURSE_ID
) -> list[source.Lecture]:
    """Write instructor notebooks, nbgrader's configuration and hidden cases into ``folder``.

    Builds all lectures of the project unless ``sources`` names some. Nothing else in the folder is touched, so it's
    safe to repeat in a course with submissions. ``seed`` draws hidden cases that are missing: 0 isn't secret, and None
    draws none. ``course_id`` is nbgrader's name for a new class. Raises SourceError for an invalid source.
    """
    read = [source.read(path) for path in sources or source.lectures(SOLUTIONS)]
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "nbgrader_config.py"
    if not config.exists():
        config.write_text(CONFIG.format(course_id=course_id), encoding="utf-8")
    for lecture in read:
        path = notebook_path(folder / "source", lecture.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.validate(lecture.notebook)
        write_notebook(lecture.notebook, path)
        _copy_checks(lecture, path.parent / "checks")
        if seed is not None:
            for _ in draw_hidden(folder, lecture, seed):
                pass
    return read


def _copy_checks(lecture: source.Lecture, target: Path) -> None:
    """Put the checks of a class's own lecture next to the notebook, so that nbgrader hands them out with it."""
    folder = checks_of(lecture.path.parent)
    if folder != CHECKS and folder.is_dir():
        target.mkdir(exist_ok=True)
        for exercise in lecture.exercises:
            (target / f"{exercise.name}.check").write_bytes(exercise.packed)


def draw_hidden(folder: Path, lecture: source.Lecture, seed: int) -> Iterator[str]:
    """Draw a class's missing or outdated hidden cases; yield the exercises' names one by one.

    A seed other than 0 is the class's secret, so the cases are stored nowhere else.
    """
    from . import checks  # with PyTorch

    for cells in lecture.exercises:
        target = hidden_path(folder, cells.name)
        if made_from(target) == cells.made_from:
            continue
        spec = checks.spec_of(lecture.name, cells)
        content = checks.hidden(spec) if seed == 0 else checks.hidden_check(spec, seed).pack()
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with replacing(target) as file:
            os.chmod(file.name, 0o600)
            file.write(content)
        yield cells.name


def require_current(lectures: Iterable[source.Lecture]) -> None:
    """Raise :class:`BuildError` if a reference or an exercise's file has changed since its check was made."""
    from . import checks

    stale = [
        f"{lecture.name} {cells.name}"
        for lecture in lectures
        for cells in lecture.exercises
        if checks.stale(checks.path_of(lecture.name, cells), cells)
    ]
    if stale:
        raise BuildError(
            f"the reference or the file of these exercises has changed since their check was made: {', '.join(stale)}\n"
            "  → run `course notebooks` (with --class FOLDER for a class's own lecture)"
        )


def students_checks(progress: Callable[[str], None] = lambda name: None, folder: Path | None = None) -> None:
    """Make the students' checks of exercises whose file or reference has changed; delete those without an exercise.

    ``folder`` has a class's own lectures; the default is the course's. Raises :class:`BuildError` if a class's own
    exercise has the same name as one of the course's, because students' notebooks would find the wrong check.
    """
    from . import checks

    folder = folder or SOLUTIONS
    target = checks_of(folder)
    names = set()
    points: dict[str, dict[str, float]] = {}
    for path in source.lectures(folder):
        for spec in checks.specs(source.read(path, built=False)):
            if target != CHECKS and (CHECKS / f"{spec.cells.name}.check").exists():
                raise BuildError(
                    f"{spec.path}: the course has an exercise {spec.cells.name}, too\n  → give it another name"
                )
            points.setdefault(path.stem, {})[spec.cells.name] = spec.points
            names.add(f"{spec.cells.name}.check")
            if checks.stale(spec.path, spec.cells):
                progress(spec.cells.name)
                preload()  # or the time of an import counts as a program's own
                checks.write(target, checks.visible_check(spec))
    for path in target.glob("*.check"):
        if path.name not in names:
            path.unlink()
    text = json.dumps(points, indent=1) + "\n"
    (target / validating.FILE).write_text(text, encoding="utf-8", newline="\n")


def release(course: Path, name: str) -> Path:
    """Make the students' notebook of one lecture with nbgrader's own pipeline, and return its path."""
    from nbgrader.converters import GenerateAssignment  # takes longer to import than most commands take
    from nbgrader.coursedir import CourseDirectory
    from nbgrader.utils import capture_log
    from traitlets.config import Config

    config = Config()
    config.CourseDirectory.root = str(course)
    # Like `nbgrader generate_assignment --no-db`: the gradebook belongs to a class, not to a build.
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
        # Keep only the metadata that nbgrader needs for grading, and how a cell is shown.
        for key in [key for key in cell.metadata if key not in _RELEASED]:
            del cell.metadata[key]
    write_notebook(notebook, path)
    return path


def write_notebook(notebook: nbformat.NotebookNode, path: Path) -> None:
    """Write a notebook so that equal notebooks have equal bytes."""
    path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8", newline="\n")


def students_notebooks(
    destination: Path = NOTEBOOKS,
    course: Path = BUILD,
    progress: Callable[[str], None] = lambda name: None,
    sources: Iterable[Path] = (),
) -> list[Path]:
    """Build everything: instructor notebooks in ``course``, students' notebooks and the glossary in ``destination``.

    Builds all lectures of the project unless ``sources`` names some. Raises :class:`BuildError` if a check is older
    than its exercise.
    """
    written = []
    lectures = course_directory(course, sources, seed=None)
    require_current(lectures)
    for lecture in lectures:
        progress(lecture.name)
        target = notebook_path(destination, lecture.name)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(release(course, lecture.name), target)
        written.append(target)
    (destination / GLOSSARY).write_text(glossary.page(lectures), encoding="utf-8", newline="\n")
    return written


def stale(scratch: Path, committed: Path = NOTEBOOKS) -> list[str]:
    """The lectures (or the glossary) in ``committed`` that the sources no longer build, or build differently."""
    students_notebooks(scratch / "notebooks", scratch)

    def pages(folder: Path) -> dict[str, bytes]:
        return {path.stem: path.read_bytes() for path in (*folder.glob("*/*.ipynb"), *folder.glob(GLOSSARY))}

    built, have = pages(scratch / "notebooks"), pages(committed)
    return sorted(name for name in built.keys() | have.keys() if built.get(name) != have.get(name))

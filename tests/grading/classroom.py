"""A class to grade: one short lecture, and answers that cost time or end the process."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import nbformat
from nbgrader.api import Gradebook

from autograder import project
from autograder.authoring import build
from autograder.grading import source
from autograder.inside.limits import Limits

NAME = "00_napkin_math"
LECTURE = source.read(project.SOLUTIONS / f"{NAME}.py")
FIRST, SECOND = LECTURE.exercises[:2]
WHOLE = sum(exercise.points for exercise in LECTURE.exercises)
LIMITS = Limits(seconds=5)
# A lecture's source, broken.
BREAKS: dict[str, Callable[[str], str]] = {
    "stub": lambda text: re.sub(
        r"( *)(### BEGIN SOLUTION\n).*?(### END)", r"\1\2\1raise NotImplementedError\n\1\3", text, flags=re.DOTALL
    ),
    "empty": lambda text: "",
    "error": lambda text: text.replace("### BEGIN SOLUTION\n", "### BEGIN SOLUTION\n    1 / 0\n"),
    "no_checks": lambda text: re.sub(r"^check\(.*\)\n", "", text, flags=re.MULTILINE),
}  # fmt: skip
CRASH = "import os\nos._exit(3)"
HANG = "while True:\n    pass"


def give_cases(course: Path, lecture: source.Lecture = LECTURE) -> None:
    """The hidden cases that `course init` would draw, from a seed that is no secret."""
    for _ in build.draw_hidden(course, lecture, 0):
        pass


def hand_in(course: Path, student: str, **answers: str) -> Path:
    """A notebook with the reference's answers, but for those given."""
    notebook = nbformat.from_dict(json.loads(json.dumps(LECTURE.notebook)))
    for cell in notebook.cells:
        cell.source = answers.get(cell.id, cell.source)
    give_cases(course)
    path = project.notebook_path(course / "submitted" / student, NAME)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(nbformat.writes(notebook), encoding="utf-8")
    return path


def files(course: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (course / "results" / NAME).glob("[!.]*")}


def scores(course: Path, student: str) -> dict[str, float]:
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as book:
        return {grade.name: grade.score for grade in book.find_submission_notebook(NAME, NAME, student).grades}

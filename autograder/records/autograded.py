"""The notebooks that nbgrader's Formgrader opens: ours, with a student's cells and their test results."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from autograder.grading.exercises import Cell
from autograder.grading.marks import Result
from autograder.grading.source import Lecture
from autograder.grading.submission import made
from autograder.grading.text import counted
from course_utils.files import remove_partials, replacing

from . import exchange, pages
from .folder import ClassFolder

_ADDED, _ROOM = 100, 200_000  # limits for a student's own cells: their number, and their characters in all


def write(folder: ClassFolder, lecture: Lecture, result: Result, cells: Sequence[Cell]) -> Path:
    """Write one student's notebook; ``cells`` are the cells that were read from the submission.

    A student's own cells, including changed cells of the lecture, stay below the lecture's cell that they followed.
    """
    notebook = copy.deepcopy(lecture.notebook)
    answers = {cell.name: cell.text for cell in cells if cell.name}
    messages = {f"test_{mark.exercise}": mark.message for mark in result.marks}
    for cell in notebook.cells:
        code = cell.cell_type == "code"
        if code:
            cell.outputs, cell.execution_count = [], None
        if cell.metadata.get("nbgrader", {}).get("solution"):
            text = answers.get(cell.id, "# the submission does not have this cell, or it cannot be read")
            cell.source = _shown(text) if code else _as_text(text)
        elif message := messages.get(cell.id):
            cell.outputs = [new_output("stream", name="stderr", text=message + "\n")]
    for cell in notebook.cells:
        if about := cell.metadata.get("nbgrader"):
            about["checksum"], about["cell_type"] = checksum(cell), cell.cell_type
    notebook.cells = _with_their_own(lecture, notebook.cells, cells)
    path = folder.autograded(result.student, lecture.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_partials(path.parent)
    with replacing(path, durable=False) as file:
        # Valid by construction. nbformat.writes would validate, copy and indent it, which takes longer than grading.
        file.write(json.dumps(notebook, ensure_ascii=False).encode() + b"\n")
    exchange.pass_on(folder, result.student, lecture.name, path.parent)  # for nbgrader's own `generate_feedback`
    return path


def _with_their_own(lecture: Lecture, ours: list[Any], cells: Sequence[Cell]) -> list[Any]:
    """Our cells, with the student's own cells between them."""
    code = [cell for cell in ours if cell.cell_type == "code"]
    places = {cell.metadata.nbgrader.grade_id: cell for cell in ours if "nbgrader" in cell.metadata}
    texts = {each.plain: cell for each, cell in zip(lecture.problems.cells, code, strict=True) if not each.name}
    prose = {Cell(cell.source).plain: cell for cell in lecture.notebook.cells if cell.cell_type == "markdown"}
    below: dict[str, list[Any]] = {}  # by the id of one of our cells
    # An exercise's name may have its last value from the thousandth cell.
    asked = {exercise.name for exercise in lecture.exercises}
    makes = {name: number for number, cell in enumerate(cells) for name in asked & made(cell.text)}
    last, added, room, left = "", 0, _ROOM, 0
    for number, cell in enumerate(cells):
        if found := places.get(cell.name) if cell.name else (prose if cell.prose else texts).get(cell.plain):
            last = found.id
        elif cell.plain and (added >= _ADDED or room <= 0) and number not in makes.values():
            left += 1
        elif cell.plain:
            text, identity = (_as_text if cell.prose else _shown)(cell.text), f"theirs-{added}"
            theirs = new_markdown_cell(text, id=identity) if cell.prose else new_code_cell(text, id=identity)
            below.setdefault(last, []).append(theirs)
            added, room = added + 1, room - len(text)
    merged = below.get("", [])
    for cell in ours:
        merged += [cell, *below.get(cell.id, [])]
    if left:
        said = f"{counted(left, 'more cell')} of the student's own: see the notebook in submitted/"
        merged.append(new_markdown_cell(said, id="more-cells"))
    return merged


def _shown(text: str, *, prose: bool = False) -> str:
    """The part of a cell that can be stored, and that Formgrader can highlight in a reasonable time."""
    more = f"\n# … {count:,} more characters" if (count := len(text) - pages.CODE_LIMIT) > 0 else ""
    return pages.shown(text, prose=prose).encode("utf-8", "replace").decode() + more


def _as_text(written: str) -> str:
    """A student's text as an indented block, which Markdown shows verbatim: HTML in it would run in Formgrader."""
    lines = _shown(written, prose=True).splitlines()
    return "\n".join(f"    {line}" for line in lines)


def checksum(cell: Any) -> str:
    """nbgrader's checksum of one of its cells; a test compares it with nbgrader's own.

    We compute it because importing nbgrader would delay the first result by two seconds.
    """
    about = cell.metadata.nbgrader
    grade, solution = about.get("grade", False), about.get("solution", False)
    # nbgrader never considers a solution cell locked, and always a test cell, whatever their metadata say.
    locked = not solution and (grade or about.get("locked", False))
    parts = [cell.source, cell.cell_type, grade, solution, locked, about["grade_id"]]
    if grade:
        parts.append(float(about["points"]))
    return hashlib.md5("".join(map(str, parts)).encode(), usedforsecurity=False).hexdigest()

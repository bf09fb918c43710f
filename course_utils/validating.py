"""What the Validate button tests beyond nbgrader's own validation: whether every check of the lecture is there.

nbgrader runs the check cells that a notebook has, so a notebook without any passes. Here the missing ones are added in
memory, so that a check that was deleted, or lost in another program, is reported the way it will be graded.
jupyter/nbgrader_config.py names `restore_checks` as the hook that runs before the first cell.
"""

from __future__ import annotations

import json
import os
from importlib import resources
from typing import Any

from nbformat.v4 import new_code_cell

from course_utils import keeping

FILE = "exercises.json"  # written by `course notebooks`: lecture → exercise → points
_MISSING = """\
# This check cell was deleted, or nbgrader no longer recognizes it; grading needs it.
from course_utils.testing import check

check({name!r})"""
_NOTHING = """\
raise AssertionError("This notebook has no check cell, so nothing was tested. Validate the lecture's own notebook.")"""


def exercises() -> dict[str, dict[str, float]]:
    """The points of each lecture's exercises, in order."""
    found: dict[str, dict[str, float]] = json.loads(
        resources.files("course_utils").joinpath("checks", FILE).read_bytes()
    )
    return found


def restore_checks(notebook: Any) -> None:
    """Add the missing check cells of the lecture whose folder is the current one, if nbgrader is validating.

    A notebook elsewhere gets a cell that fails if it has no check cells at all.
    """
    if os.environ.get("NBGRADER_EXECUTION") != "validate":
        return
    marks = [cell.metadata.get("nbgrader", {}) for cell in notebook.cells]
    there = {mark.get("grade_id") for mark in marks if mark.get("grade")}
    for name, points in exercises().get(keeping.lecture(), {}).items():
        if f"test_{name}" not in there:
            there.add(f"test_{name}")
            notebook.cells.append(_cell(f"test_{name}", _MISSING.format(name=name), points))
    if not there:
        notebook.cells.append(_cell("no_checks", _NOTHING, 1.0))


def _cell(grade_id: str, source: str, points: float) -> Any:
    about = {"grade": True, "grade_id": grade_id, "locked": True, "solution": False, "task": False}
    return new_code_cell(source, metadata={"nbgrader": {**about, "points": points, "schema_version": 3}})

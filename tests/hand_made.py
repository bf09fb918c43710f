"""Checks of exercises that tests make up: one requirement, whose cases are calls with one argument."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from course_utils.testing.comparing import Comparison
from course_utils.testing.requirements import Case, Check, Requirement


def check_of(name: str, points: float, results: Mapping[Any, Any]) -> Check:
    """The check of a function ``name`` that returns these results for these arguments."""
    cases = tuple(Case((x,), {}, {"value": result, "mutated": []}) for x, result in results.items())
    return Check(name, (Requirement("it is right", points, name, "", Comparison(), "", cases),), (), "made up")


def write(folder: Path, *checks: Check) -> None:
    """Write checks where `autograder.grading.source.CHECKS`, or a class, is told to have them."""
    folder.mkdir(parents=True, exist_ok=True)
    for check in checks:
        (folder / f"{check.name}.check").write_bytes(check.pack())

"""Where things are in this project."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOLUTIONS = ROOT / "solutions"
ITEMS = SOLUTIONS / "items.toml"
KIT = SOLUTIONS / "teaching.toml"
NOTEBOOKS = ROOT / "notebooks"
EXERCISES = SOLUTIONS / "exercises"
CHECKS = ROOT / "course_utils" / "checks"
COVERAGE = ROOT / "docs" / "coverage.md"
TEACHING = ROOT / "docs" / "teaching.md"
PUBLISHED = ROOT / "docs" / "published.md"
BUILD = ROOT / "build"


def source_path(lecture_name: str) -> Path:
    """Where a lecture's source is."""
    return SOLUTIONS / f"{lecture_name}.py"


def exercises_of(path: Path) -> Path:
    """The folder of a lecture's exercises, one file each: next to the lecture's source, in ``exercises/NN_topic``."""
    return path.parent / "exercises" / path.stem


def checks_of(folder: Path) -> Path:
    """Where the checks of a folder's lectures are: in course_utils for ours, next to the lectures for a class's own."""
    return CHECKS if folder == SOLUTIONS else folder / "checks"


def notebook_path(folder: Path, lecture_name: str) -> Path:
    """Where nbgrader keeps the notebook of an assignment below a folder: ``folder/name/name.ipynb``."""
    return folder / lecture_name / f"{lecture_name}.ipynb"

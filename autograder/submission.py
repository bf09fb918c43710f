"""Reads what a student handed in, whatever state it is in, and says what a person should know about it."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import nbformat

from .source import Lecture

SIZE_LIMIT = 50_000_000  # bytes; a lecture with all its figures has well under one million


@dataclass(frozen=True)
class Finding:
    """Something about a submission that a person should see: what it is, and what to do."""

    path: Path
    problem: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}\n  → {self.remedy}"


@dataclass(frozen=True)
class Submission:
    """The text of the solution cells by exercise, as far as they can be read, and what was found on the way."""

    path: Path
    answers: dict[str, str]
    findings: tuple[Finding, ...]


class NotReadable(Exception):
    """There is a file, and it is not one that is read: the finding says why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(str(finding))
        self.finding = finding


def load(path: Path, lecture: str) -> bytes:
    """The bytes of a submitted notebook.

    Raises :class:`NotReadable` for what a student may have put there in place of a notebook, FileNotFoundError where
    there is nothing, and OSError for a fault of this machine.
    """

    def refuse(problem: str, remedy: str) -> NotReadable:
        return NotReadable(Finding(path, problem, remedy))

    if path.is_symlink():
        raise refuse("it is a symbolic link, which is not followed", "ask for the file itself")
    if not path.exists():
        raise FileNotFoundError(path)
    if not path.is_file():
        raise refuse("there is no such notebook", f"a submission is STUDENT/{lecture}/{lecture}.ipynb")
    if (size := path.stat().st_size) > SIZE_LIMIT:
        raise refuse(f"it has {size:,} bytes", "ask for the notebook with its outputs cleared")
    return path.read_bytes()


def read_submission(path: Path, lecture: Lecture) -> Submission:
    """Read one submitted notebook. Never raises for what a student may have done to it: it is a finding."""
    try:
        return parse(load(path, lecture.name), path, lecture)
    except NotReadable as error:
        finding = error.finding
    except FileNotFoundError:
        remedy = f"a submission is STUDENT/{lecture.name}/{lecture.name}.ipynb"
        finding = Finding(path, "there is no such notebook", remedy)
    except OSError as error:
        finding = Finding(path, f"it cannot be read ({error.strerror})", "look at its permissions and at the disk")
    return Submission(path, {}, (finding,))


def parse(data: bytes, path: Path, lecture: Lecture) -> Submission:
    """As `read_submission`, from the bytes of a notebook; ``path`` only names it."""

    def unreadable(problem: str) -> Submission:
        remedy = "ask the student to hand in again; nothing of it can be graded"
        return Submission(path, {}, (Finding(path, problem, remedy),))

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of copied cells, which are found below
            notebook = nbformat.reads(data.decode("utf-8"), as_version=4)
        cells = [(cell.get("metadata", {}).get("nbgrader", {}).get("grade_id"), cell) for cell in notebook.cells]
        texts = [(name, cell.cell_type, str(cell.source)) for name, cell in cells if name]
    except UnicodeDecodeError:
        return unreadable("it is not text, so it is not a notebook")
    except nbformat.reader.NotJSONError as error:
        return unreadable(f"it is not JSON: {str(error.__cause__ or error).splitlines()[0][:200]}")
    except Exception as error:  # nbformat raises many kinds for the many ways in which a notebook can be broken
        return unreadable(f"it is JSON but not a notebook ({type(error).__name__})")

    findings = []
    counts = Counter(name for name, _, _ in texts)
    wanted = {name for e in lecture.exercises for name in (e.name, f"test_{e.name}")}
    for exercise in lecture.exercises:
        if not counts[exercise.name]:
            problem = f"the cell of exercise {exercise.name} is missing or lost its mark"
            findings.append(Finding(path, problem, "it scores 0; look whether the answer stands in another cell"))
        if not counts[f"test_{exercise.name}"]:
            problem = f"the test cell of {exercise.name} is missing"
            remedy = "`nbgrader autograde` cannot give its points: paste the answers into a fresh notebook"
            findings.append(Finding(path, problem, remedy))
    for name, count in sorted(counts.items()):
        if count > 1:
            problem = f"the cell {name} is there {count} times"
            findings.append(Finding(path, problem, "delete the copies, or nbgrader stops at this submission"))
        if name not in wanted:
            problem = f"the cell {name} is not one of {lecture.name}"
            findings.append(Finding(path, problem, "it is not graded; check that this is the right assignment"))
    known = {exercise.name for exercise in lecture.exercises}
    answers = {name: text for name, kind, text in texts if name in known and counts[name] == 1 and kind == "code"}
    return Submission(path, answers, tuple(findings))


def submissions(course: Path, lecture: Lecture) -> list[Submission]:
    """All submissions of one assignment in a course directory, by student."""
    folder = course / "submitted"
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is missing: put submissions into submitted/STUDENT/{lecture.name}/")
    students = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    return [read_submission(s / lecture.name / f"{lecture.name}.ipynb", lecture) for s in students]

"""Reads what a student handed in, whatever state it is in, and says what a person should know about it."""

from __future__ import annotations

import json
import os
import stat
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from .source import Lecture

SIZE_LIMIT = 50_000_000  # bytes; a lecture with all its figures has well under one million
CELL_LIMIT = 200_000  # characters; the longest reference has some 2,000
PARTS_LIMIT = 2_000_000  # commas and brackets, which bound the memory and the time that reading takes


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
    """There is something in place of a notebook that is not read: the finding says why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(str(finding))
        self.finding = finding


def load(path: Path) -> bytes:
    """The bytes of a submitted notebook.

    Raises :class:`NotReadable` for what a student may have put there in place of a notebook, FileNotFoundError where
    there is nothing, and OSError for a fault of this machine.
    """
    try:
        return _content(path)
    except _Broken as broken:
        raise NotReadable(Finding(path, broken.problem, broken.remedy)) from None


def read_submission(path: Path, lecture: Lecture) -> Submission:
    """Read one submitted notebook. Never raises for what a student may have done to it: it is a finding."""
    try:
        return parse(load(path), path, lecture)
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
    again = "ask the student to hand in again; nothing of it can be graded"
    try:
        texts, findings = _cells(path, data)
    except _Broken as broken:
        return Submission(path, {}, (Finding(path, broken.problem, broken.remedy or again),))

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
    answers = {}
    for name, kind, text in texts:
        if name not in known or counts[name] != 1:
            continue
        if kind != "code":
            problem, remedy = f"the cell of exercise {name} is of type {kind!r:.40}", "it scores 0; it must be code"
            findings.append(Finding(path, problem, remedy))
        elif len(text) > CELL_LIMIT:
            problem = f"the cell of exercise {name} has {len(text):,} characters"
            findings.append(Finding(path, problem, f"it scores 0; at most {CELL_LIMIT:,} are read"))
        else:
            answers[name] = text
    return Submission(path, answers, tuple(findings))


class _Broken(Exception):
    def __init__(self, problem: str, remedy: str = "") -> None:
        self.problem, self.remedy = problem, remedy


def _content(path: Path) -> bytes:
    """What stands in the file, if it is one: no link is followed, no pipe is waited for, nothing endless is read."""
    for part in (path, path.parent, path.parent.parent):
        if part.is_symlink():
            where = "it" if part == path else f"its folder {part.name}"
            raise _Broken(f"{where} is a symbolic link, which is not followed", "ask for the file itself")
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except NotADirectoryError:
        raise FileNotFoundError(path) from None
    try:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode):
            raise _Broken("it is a folder, a pipe or a device, and no file", "ask for the notebook itself")
        if about.st_size > SIZE_LIMIT:
            raise _Broken(f"it has {about.st_size:,} bytes", "ask for the notebook with its outputs cleared")
        with open(handle, "rb", closefd=False) as file:
            return file.read(SIZE_LIMIT + 1)
    finally:
        os.close(handle)


def _cells(path: Path, content: bytes) -> tuple[list[tuple[str, str, str]], list[Finding]]:
    """Name, type and text of the cells that have a name. Not by nbformat: its checks take hours for a hostile file."""
    if not content.strip():
        raise _Broken("it is not JSON: it is empty")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _Broken("it is not text, so it is not a notebook") from None
    if sum(map(text.count, ",[{")) > PARTS_LIMIT:
        raise _Broken(f"it has more than {PARTS_LIMIT:,} parts", "ask for the notebook with its outputs cleared")
    try:
        notebook = json.loads(text)
    except json.JSONDecodeError as error:
        raise _Broken(f"it is not JSON: {error}"[:200]) from None
    except (RecursionError, ValueError) as error:
        raise _Broken(f"it is JSON but not a notebook ({type(error).__name__})") from None
    odd = "it is JSON but not a notebook"
    if not isinstance(notebook, dict) or not isinstance(notebook.get("nbformat"), int):
        raise _Broken(f"{odd} (it has no nbformat)")
    if notebook["nbformat"] != 4:
        raise _Broken(f"it is in notebook format {notebook['nbformat']!r:.20}", "ask for it in format 4")
    if not isinstance(cells := notebook.get("cells"), list):
        raise _Broken(f"{odd} (it has no list of cells)")
    found, findings, broken = [], [], 0
    for cell in cells:
        metadata = cell.get("metadata") if isinstance(cell, dict) else None
        nbgrader = metadata.get("nbgrader", {}) if isinstance(metadata, dict) else None
        name = nbgrader.get("grade_id", "") if isinstance(nbgrader, dict) else None
        source = cell.get("source") if isinstance(cell, dict) else None
        if isinstance(source, list) and all(isinstance(line, str) for line in source):
            source = "".join(source)
        if not isinstance(name, str) or not isinstance(source, str):
            broken += 1
        elif name:
            found.append((name, str(cell.get("cell_type")), source))
    if broken:
        problem = f"{broken} of its {len(cells)} cells cannot be read"
        findings.append(Finding(path, problem, "the others are graded; look whether an answer stands in one of these"))
    kernel = notebook.get("metadata", {})
    kernel = kernel.get("kernelspec", {}) if isinstance(kernel, dict) else None
    language = kernel.get("language", "python") if isinstance(kernel, dict) else None
    if language != "python":
        problem = f"it was made with a kernel for {language!r:.40}"
        findings.append(Finding(path, problem, "it is graded as Python; check that this is the right notebook"))
    return found, findings


def submissions(course: Path, lecture: Lecture) -> list[Submission]:
    """All submissions of one assignment in a course directory, by student."""
    folder = course / "submitted"
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is missing\n  → put submissions into submitted/STUDENT/{lecture.name}/")
    students = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    return [read_submission(s / lecture.name / f"{lecture.name}.ipynb", lecture) for s in students]

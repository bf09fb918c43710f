"""What grading found: one file for each submission, written whole or not at all, and never a zero of ours.

``results/NN_topic/STUDENT.json`` in a course directory. A file says what was graded (``key``: the submission, the
lecture's source, the versions), so that running again does only what is missing or changed; the same input gives the
same bytes.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import Any

from . import CourseError

_TIMES = ".times.jsonl"
_VERSIONS = ("torch", "numpy", "einops", "jaxtyping")
_CODE = Path(__file__).parent
# What decides points and messages: a change to it grades everybody again, a change to a report does not.
_DECIDING = (
    "bank", "conversation", "engine", "judge", "sandbox", "source", "submission", "warm", "wire", "worker",
)  # fmt: skip


class State(StrEnum):
    """Where a student on the roster stands. They add up to the roster; only the graded have points."""

    NOT_SUBMITTED = "not submitted"
    QUEUED = "queued"
    GRADED = "graded"
    NEEDS_REVIEW = "needs review"  # graded as far as possible; a person should look
    FAILED_HERE = "failed here"  # a fault of ours or of this machine: no points, and no zero


@dataclass(frozen=True)
class Mark:
    """What an exercise earned: ``points`` of ``worth``; ``message`` says why not, ``mistake`` which known one."""

    exercise: str
    points: float
    worth: float
    message: str = ""
    mistake: str | None = None


@dataclass(frozen=True)
class Result:
    """What one submission got. ``notes`` say why a person should look, or what failed."""

    student: str
    lecture: str
    state: State
    key: str
    marks: tuple[Mark, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def points(self) -> float | None:
        """The sum of the marks; None unless it was graded."""
        return sum(mark.points for mark in self.marks) if self.state in (State.GRADED, State.NEEDS_REVIEW) else None


class ResultError(CourseError):
    """A result file that cannot be read: says which and what to do."""


def key(submission: bytes, lecture_source: bytes) -> str:
    """What was graded, in 64 hexadecimal digits: the submission, the lecture, what decides points, what it runs on."""
    digest = hashlib.sha256()
    for part in (submission, lecture_source, _grader(_CODE)):
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()


@functools.cache
def _grader(code: Path) -> bytes:
    """The modules that decide points, those that lectures and their tests import, and the versions below them."""
    helpers = sorted((code.parent / "course_utils").glob("*.py"))
    modules = [*(code / f"{name}.py" for name in _DECIDING), *helpers]
    digest = hashlib.sha256(";".join(f"{name} {version(name)}" for name in _VERSIONS).encode())
    for path in modules:
        digest.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.digest()


def path_of(course: Path, lecture: str, student: str) -> Path:
    """Where a result lies."""
    return course / "results" / lecture / f"{student}.json"


def write(course: Path, result: Result) -> None:
    """Write a result, whole or not at all. Raises OSError where that fails; what was there is still there."""
    path = path_of(course, result.lecture, result.student)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(asdict(result), indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".partial")
    try:
        # A lone surrogate has no UTF-8, and JSON's own escape for it is what this makes.
        with open(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def read(course: Path, lecture: str, student: str) -> Result | None:
    """A result, or None where there is none yet. Raises :class:`ResultError` for a damaged file."""
    path = path_of(course, lecture, student)
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        marks = tuple(Mark(**mark) for mark in content.pop("marks"))
        state, notes = State(content.pop("state")), tuple(content.pop("notes"))
        return Result(state=state, marks=marks, notes=notes, **content)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ResultError(f"{path} is damaged ({error})\n  → delete it; the next run grades it again") from error


def note_time(course: Path, lecture: str, student: str, seconds: float) -> None:
    """Note how long grading took, beside the results, whose bytes must not depend on it. Never raises OSError."""
    line = json.dumps({"student": student, "seconds": round(seconds, 3)}) + "\n"
    with contextlib.suppress(OSError), (course / "results" / lecture / _TIMES).open("a", encoding="utf-8") as file:
        file.write(line)


def times(course: Path, lecture: str) -> dict[str, float]:
    """Seconds that each student's submission took when it was last graded, as far as they were noted."""
    found: dict[str, float] = {}
    with contextlib.suppress(OSError), (course / "results" / lecture / _TIMES).open(encoding="utf-8") as file:
        for text in file:
            # A line that was cut off when the command was killed tells nothing.
            with contextlib.suppress(ValueError, TypeError, KeyError):
                noted = json.loads(text)
                found[noted["student"]] = float(noted["seconds"])
    return found


def table(course: Path, lecture: str, roster: Iterable[str]) -> dict[str, Result]:
    """A result for everybody on the roster: those without a file are queued if they handed in, else not submitted."""
    found: dict[str, Result] = {}
    for student in sorted(set(roster)):
        try:
            result = read(course, lecture, student)
        except ResultError as error:
            result = Result(student, lecture, State.QUEUED, "", notes=(str(error),))
        if result is None:
            handed_in = (course / "submitted" / student / lecture / f"{lecture}.ipynb").exists()
            result = Result(student, lecture, State.QUEUED if handed_in else State.NOT_SUBMITTED, "")
        found[student] = result
    return found


def counts(results: Mapping[str, Result]) -> dict[State, int]:
    """How many are in each state; they add up to the roster."""
    return {state: sum(result.state is state for result in results.values()) for state in State}

"""Results on disk: one file per submission, written completely or not at all, and never a zero through our fault.

They are in ``results/LECTURE/STUDENT.json`` in a class's folder. A file records what was graded (its key), so that
another run grades only what's missing or changed; the same input gives the same bytes. Everything else is made from
these files, so a file counts only if it's unchanged: for this student and lecture, with the digest of its content.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from autograder import CourseError
from autograder.grading.marks import Mark, Result, State
from autograder.grading.submission import HandedIn
from autograder.grading.text import one_line
from course_utils.files import replacing

from .folder import ClassFolder

_TIMES = ".times.jsonl"
_DIGEST = "sha256"


class ResultError(CourseError):
    """A result file can't be read; the message says which and what to do."""


def write(folder: ClassFolder, result: Result) -> None:
    """Write a result completely or not at all. Raises OSError if that fails; then the old file is kept."""
    _write(folder.result(result.student, result.lecture_name), result)


def write_attempt(folder: ClassFolder, result: Result) -> None:
    """Keep what one of several attempts earned, whether or not it's the one that counts."""
    _write(_of_attempt(folder, result.lecture_name, result.student, result.key), result)


def read_attempt(folder: ClassFolder, lecture_name: str, student: str, key: str) -> Result | None:
    """What an attempt earned; None if that's unknown, or if it was graded under another key.

    Raises :class:`ResultError` for a damaged file.
    """
    found = _read(_of_attempt(folder, lecture_name, student, key), lecture_name, student)
    return found if found is not None and found.key == key else None


def _of_attempt(folder: ClassFolder, lecture_name: str, student: str, key: str) -> Path:
    return folder.results / lecture_name / ".attempts" / student / f"{key}.json"


def _write(path: Path, result: Result) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = asdict(result)
    with replacing(path) as file:
        os.chmod(file.name, 0o600)  # only graders may see grades
        file.write(_text(content | {_DIGEST: _digest(content)}) + b"\n")


def _text(content: Mapping[str, Any]) -> bytes:
    text = json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True)
    # A lone surrogate has no UTF-8 encoding; backslashreplace writes it as JSON's own escape sequence.
    return text.encode("utf-8", "backslashreplace")


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(_text(content)).hexdigest()


def read(folder: ClassFolder, lecture_name: str, student: str) -> Result | None:
    """A result, or None if there's none yet. Raises :class:`ResultError` for a damaged file."""
    return _read(folder.result(student, lecture_name), lecture_name, student)


def _read(path: Path, lecture_name: str, student: str) -> Result | None:
    try:
        if path.exists() and not path.is_file():
            raise ValueError("it is not a file")  # reading a pipe would block
        content = json.loads(path.read_bytes())
        # If the digest is right, the types are, too.
        if not isinstance(content, dict) or content.pop(_DIGEST, "") != _digest(content):
            raise ValueError("it has been changed since it was written")
        if (content["student"], content["lecture_name"]) != (student, lecture_name):
            raise ValueError("it is the result of another student or of another lecture")
        marks = tuple(
            Mark(**mark | {"requirements": tuple(map(tuple, mark["requirements"]))}) for mark in content.pop("marks")
        )
        state, notes = State(content.pop("state")), tuple(content.pop("notes"))
        # Another version of this course may have written other fields: without them, the key says what is current.
        known = {each.name: content[each.name] for each in fields(Result) if each.name in content}
        return Result(state=state, marks=marks, notes=notes, **known)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        why = one_line(f"{error}")[:200]
        raise ResultError(
            f"{path} is damaged ({why})\n  → do nothing: the next `course grade` grades it again"
        ) from error


def standing(folder: ClassFolder, lecture_name: str, student: str, handed_in: HandedIn | None = None) -> Result:
    """A student's stored result, or else one whose state is queued or not submitted.

    A damaged result doesn't count, and a note says so. If something else was handed in instead of the notebook, a note
    names it, so that *not submitted* isn't taken to mean nothing at all. The submission is read only if necessary.
    """
    notes: tuple[str, ...] = ()
    try:
        if (stored := read(folder, lecture_name, student)) is not None:
            return stored
    except ResultError as error:
        notes = (str(error),)
    handed_in = handed_in or folder.read(student, lecture_name)
    if not handed_in.nothing:
        return Result(student, lecture_name, State.QUEUED, "", notes=notes)
    if remark := folder.remark(student, lecture_name):
        notes += (remark,)
    return Result(student, lecture_name, State.NOT_SUBMITTED, "", notes=notes)


def table(folder: ClassFolder, lecture_name: str, students: Iterable[str]) -> dict[str, Result]:
    """The result of each student, by name; see `standing`."""
    return {student: standing(folder, lecture_name, student) for student in sorted(set(students))}


def note_time(folder: ClassFolder, lecture_name: str, student: str, seconds: float) -> None:
    """Record how long grading took, in a separate file, since results must be reproducible. Never raises OSError."""
    line = json.dumps({"student": student, "seconds": round(seconds, 3)}) + "\n"
    with contextlib.suppress(OSError), (folder.results / lecture_name / _TIMES).open("a", encoding="utf-8") as file:
        file.write(line)


def times(folder: ClassFolder, lecture_name: str) -> dict[str, float]:
    """Seconds that each student's submission took when it was last graded, if recorded."""
    found: dict[str, float] = {}
    with (
        contextlib.suppress(OSError),
        (folder.results / lecture_name / _TIMES).open(encoding="utf-8", errors="replace") as file,
    ):
        for text in file:
            # Skip a line that was cut off when the command was killed.
            with contextlib.suppress(ValueError, TypeError, KeyError, OverflowError, RecursionError):
                noted = json.loads(text)
                found[noted["student"]] = float(noted["seconds"])
    return found

"""Everything that a student handed in for a lecture, one folder for each attempt; nothing in it is ever overwritten.

``attempts/STUDENT/LECTURE/N/`` in a class's folder has the notebook as handed in, ``attempt.json``, and, if the time is
known, nbgrader's ``timestamp.txt``, which a person may add or change. What's graded is a copy of one attempt in
``submitted/``. A submission from nbgrader's exchange also has its ``submission_secret.txt``, which nbgrader needs to
return feedback.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime

from autograder import CourseError
from autograder.grading.submission import digest
from autograder.locks import locked
from course_utils.files import replacing

from .exchange import SECRET, TIMESTAMP
from .folder import INSTEAD, ClassFolder
from .sources import moment

_ABOUT = "attempt.json"


class AttemptError(CourseError):
    """A stored attempt can't be read; the message says which and what to do."""


@dataclass(frozen=True)
class Attempt:
    """What's known about one attempt.

    ``notebook`` is False if no notebook was found; then the content is a list of what was handed in instead. ``kind``,
    ``source`` and ``name`` say where it came from; of one kind, the attempt with the highest ``order`` is the latest.
    ``when`` is an ISO time in UTC, or "" if the source has none; ``late`` is True if the source says so. ``secret`` is
    nbgrader's submission secret, by which it returns feedback, or "".
    """

    number: int
    sha256: str
    notebook: bool
    kind: str
    source: str
    name: str
    order: float = 0.0
    when: str = ""
    late: bool = False
    secret: str = ""

    @property
    def time(self) -> datetime | None:
        """When it was handed in, if that's known."""
        return datetime.fromisoformat(self.when) if self.when else None


def read(folder: ClassFolder, lecture_name: str, student: str) -> list[Attempt]:
    """A student's attempts, latest last. Raises :class:`AttemptError` if one is damaged."""
    place = folder.attempts(student, lecture_name)
    found = []
    try:
        names = [path.name for path in place.iterdir()] if place.is_dir() else []
    except OSError as error:
        raise AttemptError(f"{place} cannot be read ({error.strerror})\n  → fix its permissions or its name") from error
    for number in sorted(int(name) for name in names if name.isdecimal()):
        path = place / str(number) / _ABOUT
        try:
            about = json.loads(path.read_bytes())
            attempt = Attempt(**about)
            for each, kind in Attempt.__annotations__.items():
                if type(getattr(attempt, each)).__name__ != kind:
                    raise ValueError(f"its {each} is {getattr(attempt, each)!r:.50}")
            if attempt.number != number or (attempt.time and attempt.time.tzinfo is None):
                raise ValueError("its number is wrong, or its time has no time zone")
            with contextlib.suppress(FileNotFoundError):
                stamp = (place / str(number) / TIMESTAMP).read_bytes()[:200].decode()
                if (when := moment(stamp)) is None:
                    raise ValueError(f"{TIMESTAMP} beside it has no time with a zone; write 2026-11-30 18:00:00 UTC")
                attempt = replace(attempt, when=when.isoformat())
        except (OSError, ValueError, TypeError, RecursionError) as error:
            raise AttemptError(
                f"{path} cannot be read ({type(error).__name__}: {error})\n"
                f"  → repair it, or move the folder {path.parent} away and collect again"
            ) from error
        found.append(attempt)
    return in_order(found)


def in_order(found: list[Attempt]) -> list[Attempt]:
    """Sort attempts, latest last: by ``order`` if they are of one kind, else by when they were collected."""
    one_kind = len({attempt.kind for attempt in found}) == 1
    return sorted(found, key=lambda attempt: (attempt.order if one_kind else 0.0, attempt.number))


@contextlib.contextmanager
def alone(folder: ClassFolder, lecture_name: str, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock without which no command stores attempts of a lecture or changes which one is graded."""
    waiting = f"waiting until another command has collected {lecture_name} in {folder}"
    with locked(folder.root / f".{lecture_name}.collect.lock", lambda: say(waiting)):
        yield


def add(folder: ClassFolder, lecture_name: str, student: str, attempt: Attempt, content: bytes) -> None:
    """Store an attempt, completely or not at all. Raises FileExistsError if there already is one with its number."""
    place = folder.attempts(student, lecture_name)
    place.mkdir(parents=True, exist_ok=True)
    partial = place / f".{os.getpid()}-{secrets.token_hex(4)}.partial"
    partial.mkdir(mode=0o700)
    try:
        for name, text in _files(lecture_name, attempt, content).items():
            with replacing(partial / name) as file:
                file.write(text)
        target = place / str(attempt.number)
        if target.exists() or target.is_symlink():  # renaming would replace an empty folder
            raise FileExistsError(f"{target} already exists")
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)  # no longer there if it was renamed


def content_of(folder: ClassFolder, lecture_name: str, student: str, attempt: Attempt) -> bytes:
    """What was handed in. Raises :class:`AttemptError` if it can't be read or has changed since it was stored."""
    path = folder.attempts(student, lecture_name) / str(attempt.number) / _main(lecture_name, attempt)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise AttemptError(f"{path} cannot be read ({error.strerror})\n  → collect again from its source") from error
    if digest(content) != attempt.sha256:
        raise AttemptError(f"{path} has been changed\n  → restore it, or move {path.parent} away and collect again")
    return content


def set_time(folder: ClassFolder, lecture_name: str, student: str, attempt: Attempt, when: datetime) -> Attempt:
    """Store the time that a person has found out, and return the attempt with it."""
    timed = replace(attempt, when=when.isoformat())
    with replacing(folder.attempts(student, lecture_name) / str(attempt.number) / TIMESTAMP) as file:
        file.write(_stamp(when))
    return timed


def install(folder: ClassFolder, lecture_name: str, student: str, attempt: Attempt, content: bytes) -> None:
    """Make an attempt the one that's graded: write it into ``submitted/``, with its time."""
    place = folder.assignment(student, lecture_name)
    place.mkdir(parents=True, exist_ok=True)
    wanted = _files(lecture_name, attempt, content)
    for name in {TIMESTAMP, SECRET} - wanted.keys():
        (place / name).unlink(missing_ok=True)  # an earlier attempt's
    for name, text in wanted.items():
        if name != _ABOUT and not (os.path.isfile(place / name) and (place / name).read_bytes() == text):
            with replacing(place / name) as file:
                os.chmod(file.name, 0o644)
                file.write(text)
    if attempt.notebook:
        (place / INSTEAD).unlink(missing_ok=True)


def _main(lecture_name: str, attempt: Attempt) -> str:
    return f"{lecture_name}.ipynb" if attempt.notebook else INSTEAD


def _files(lecture_name: str, attempt: Attempt, content: bytes) -> Mapping[str, bytes]:
    files = {_main(lecture_name, attempt): content}
    if when := attempt.time:
        files[TIMESTAMP] = _stamp(when)
    if attempt.secret:
        files[SECRET] = attempt.secret.encode()
    return files | {_ABOUT: (json.dumps(asdict(attempt), indent=1) + "\n").encode()}


def _stamp(when: datetime) -> bytes:
    return f"{when.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f} UTC\n".encode()


def remove_partials(folder: ClassFolder, lecture_name: str, student: str) -> None:
    """Delete what a killed command left behind. Only for the one that stores attempts `alone`."""
    for partial in folder.attempts(student, lecture_name).glob(".*.partial"):
        shutil.rmtree(partial, ignore_errors=True)

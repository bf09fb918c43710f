"""What nbgrader's exchange writes beside a submission, and looks for when it takes the feedback back.

A page returns to whoever knows the submission's secret: nbgrader names it by that. Students can write these files, and
nbgrader trusts them: one that isn't there, or isn't what it expects, ends `nbgrader release_feedback` for the whole
class. So only what nbgrader itself could have written is passed on.
"""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path

from autograder.grading import submission
from course_utils.files import replacing

from .folder import ClassFolder

TIMESTAMP, SECRET = "timestamp.txt", "submission_secret.txt"
_SECRET = re.compile(rb"[0-9a-f]{128}")  # nbgrader's secrets.token_hex(64)
_STAMP = re.compile(rb"[\w .:+-]{1,100}\s*", re.ASCII)


def usable_secret(data: bytes | None) -> str:
    """A submission's secret, or "" if nbgrader didn't make it."""
    return data.decode() if data and _SECRET.fullmatch(data) else ""


def pass_on(folder: ClassFolder, student: str, lecture_name: str, place: Path) -> None:
    """Put beside a student's page, or graded notebook, what nbgrader needs to return it.

    Without a secret of the submission's, the one that's there stays, or else it's one that nobody knows: then the page
    returns to nobody, and doesn't stop the others. Raises OSError if it can't be written.
    """
    handed_in = folder.assignment(student, lecture_name)
    stamp = submission.read(handed_in / TIMESTAMP).data or b""
    _write(place / TIMESTAMP, stamp if _STAMP.fullmatch(stamp) else b"", 0o644)
    secret = usable_secret(submission.read(handed_in / SECRET).data)
    if not secret and not usable_secret(submission.read(place / SECRET).data):
        secret = secrets.token_hex(64)
    if secret:
        _write(place / SECRET, secret.encode(), 0o600)


def _write(path: Path, content: bytes, mode: int) -> None:
    with replacing(path, durable=False) as file:
        os.chmod(file.name, mode)
        file.write(content)

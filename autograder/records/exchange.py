"""The files that nbgrader's exchange adds to a submission, and needs in order to return its feedback.

nbgrader derives the name of a student's feedback from the submission's secret, so only those who know the secret find
it. Students can write these files, and nbgrader trusts them: one that is missing or malformed stops `nbgrader
release_feedback` for the whole class. So only what nbgrader itself could have written is passed on.
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
    """Write what nbgrader needs to return a student's page, or graded notebook, next to it.

    If the submission has no secret, an existing one is kept, or else a random one is written: then the page is returned
    to nobody, but doesn't stop the others. Raises OSError if a file can't be written.
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

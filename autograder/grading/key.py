"""What a result depends on: the submission, the exercises, the grading code, and the versions of Python and libraries.

A submission isn't graded again while its result's key is current. So the key must change with everything that can
change a point, and with nothing else, because a new key regrades a whole class. Of the code, it covers the folders in
`DECIDING`. (The students' checks, which are in course_utils, count as part of their exercises; otherwise a change to
one would regrade every lecture.) Of Python's version, it has only the first two numbers: a patch release fixes bugs.
"""

from __future__ import annotations

import functools
import hashlib
import platform
from importlib.metadata import version
from pathlib import Path

from .exercises import ProblemSet

_ROOT = Path(__file__).resolve().parents[2]
DECIDING = ("autograder/inside", "autograder/grading", "course_utils")
_COUNTED_BY_EXERCISE = "course_utils/checks"
_VERSIONS = ("torch", "numpy", "einops", "jaxtyping", "ipython")


def key(submission: bytes, problems: ProblemSet) -> str:
    """The key of a submission's result: 64 hexadecimal digits."""
    digest = hashlib.sha256()
    for part in (hashlib.sha256(submission).digest(), problems.digest, grader()):
        digest.update(part)
    return digest.hexdigest()


@functools.cache
def grader() -> bytes:
    """A hash of the grading code and of the versions it runs on."""
    python = ".".join(platform.python_version_tuple()[:2])
    versions = ";".join((f"python {python}", *(f"{name} {version(name)}" for name in _VERSIONS)))
    return hashlib.sha256(versions.encode() + code_digest(_ROOT)).digest()


def code_digest(root: Path) -> bytes:
    """A hash of every file in the folders that determine points, in the copy of this project at ``root``."""
    digest = hashlib.sha256()
    for folder in DECIDING:
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root)
            if name.as_posix().startswith(_COUNTED_BY_EXERCISE + "/"):
                continue
            if path.is_file() and not any(part.startswith((".", "__pycache__")) for part in name.parts):
                digest.update(name.as_posix().encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.digest()

"""Grades one submission in a process of its own: what a Dask worker runs. Plain data goes in and comes out.

Importing this must stay quick: a worker starts its sandbox and imports the judge, both with PyTorch, at the same time.
"""

from __future__ import annotations

import functools
import importlib
import threading
import time
import unicodedata
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from . import results, sandbox, source, submission
from .results import Mark

ATTEMPTS = 3  # at a submission during which the sandbox or the worker dies
_RECYCLE = 300  # submissions that one warm process serves
_TEXT_LIMIT = 4_000  # characters of a message or a note

Task = dict[str, Any]  # lecture, source, submission, key, limits, unsafe
Outcome = dict[str, Any]  # marks, notes, answers, seconds; or failed

_LOCK = threading.Lock()  # the judge redirects output and seeds torch: one at a time in a process


@dataclass
class _Warm:
    box: sandbox.Sandbox
    settings: tuple[Any, ...]
    left: int = _RECYCLE


_warm: _Warm | None = None


def _box(limits: dict[str, Any], unsafe: bool) -> sandbox.Sandbox:
    """This process's sandbox: kept warm, and a new one after some hundred submissions."""
    global _warm
    settings = (*sorted(limits.items()), unsafe)
    if _warm is None or _warm.settings != settings or _warm.left <= 0:
        close_box()
        for attempt in range(1, ATTEMPTS + 1):
            try:
                _warm = _Warm(sandbox.Sandbox(sandbox.Limits(**limits), unsafe=unsafe), settings)
                break
            except sandbox.SandboxError:
                if attempt == ATTEMPTS:
                    raise
    assert _warm is not None
    _warm.left -= 1
    return _warm.box


def close_box() -> None:
    """End this process's sandbox."""
    global _warm
    if _warm is not None:
        _warm.box.close()
        _warm = None


def prepare(limits: dict[str, Any], unsafe: bool) -> str:
    """Start this worker's sandbox; why it cannot, or nothing."""
    with ThreadPoolExecutor(1) as pool, _LOCK:
        judge = pool.submit(importlib.import_module, f"{__package__}.judge")
        try:
            _box(limits, unsafe)
        except sandbox.SandboxError as error:
            return str(error)
        judge.result()
    return ""


def grade_one(task: Task) -> Outcome:
    """Grade one submission: plain data in, plain data out. Never raises; ``failed`` says what went wrong here."""
    from . import judge

    with _LOCK:
        started = time.monotonic()
        try:
            return {**_grade(task), "seconds": time.monotonic() - started}
        except (Exception, judge.TestError, sandbox.Gone) as error:
            return {"failed": clean(f"{type(error).__name__}: {error}")}


def _grade(task: Task) -> Outcome:
    from . import judge

    lecture = _lecture(task["lecture"], task["source"])
    if results.key(task["submission"], task["source"].encode()) != task["key"]:
        return {"failed": "the worker runs another version of the course\n  → install the same one on every machine"}
    read = submission.parse(task["submission"], Path(f"{lecture.name}.ipynb"), lecture)
    notes = [finding.problem for finding in read.findings]
    if not read.answers:
        notes = [f"{finding.problem}: {finding.remedy}" for finding in read.findings[:1]]
        return _outcome(nothing(lecture, notes[0] if notes else "it is empty"), notes, {})
    reason = ""
    for _ in range(ATTEMPTS):
        try:
            box = _box(task["limits"], task["unsafe"])
        except sandbox.SandboxError as error:
            return {"refused": clean(str(error))}
        try:
            graded = judge.grade(lecture, read.answers, box)
        except sandbox.SandboxError as error:
            if not isinstance(error, sandbox.Killed):
                close_box()
            reason = str(error)
            continue
        return _outcome(graded.marks, notes + graded.notes, read.answers)
    return {"failed": clean(f"the sandbox was lost {ATTEMPTS} times while it was graded: {reason}")}


def _outcome(marks: Iterable[Mark], notes: Iterable[str], answers: dict[str, str]) -> Outcome:
    cleaned = [asdict(replace(mark, message=clean(mark.message))) for mark in marks]
    return {"marks": cleaned, "notes": [clean(note) for note in notes], "answers": answers}


def nothing(lecture: source.Lecture, why: str) -> tuple[Mark, ...]:
    """No point anywhere: nothing of the submission could be read."""
    return tuple(
        Mark(exercise.name, 0.0, exercise.points, clean(f"✗ {exercise.name}\n  Your notebook cannot be graded: {why}"))
        for exercise in lecture.exercises
    )


@functools.lru_cache(maxsize=4)
def _lecture(name: str, text: str) -> source.Lecture:
    return source.parse(Path(f"{name}.py"), text)


def clean(text: str) -> str:
    """Text that can be written, printed and read: no lone surrogates, no control characters, not too long."""
    short = text if len(text) <= _TEXT_LIMIT else text[:_TEXT_LIMIT] + "…"
    return "".join("\N{REPLACEMENT CHARACTER}" if _hidden(c) else c for c in short)


def _hidden(character: str) -> bool:
    return unicodedata.category(character).startswith("C") and character not in "\n\t"

"""Grades one submission after another in a separate process: a `Task` goes in, `Graded` or `Failed` comes out.

Importing this module must stay quick: a worker imports the judge, and PyTorch with it, while its sandbox is starting.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from autograder import CourseError
from autograder.inside.limits import Limits

from . import text
from .exercises import Cell, ProblemSet
from .key import grader
from .marks import Mark
from .sandbox import Sandbox, SandboxError
from .submission import AGAIN, Finding, HandedIn, Submission, parse
from .text import MESSAGE_LIMIT, clean

ATTEMPTS = 3  # at grading a submission if the sandbox or the worker dies
_RECYCLE = 300  # submissions per fork server
# Seconds that a task may take beyond its limits. The judge enforces the limits, including on its own work; this is a
# safety net in case it fails to.
_GRACE = 30.0

_LOCK = threading.Lock()  # the judge redirects output and seeds torch, so only one thread per process may grade


class EngineError(CourseError):
    """Grading can't start or continue; the message says why and what to do. Results so far are kept."""


@dataclass(frozen=True)
class Task:
    """One submission to grade: plain data, which can be sent to another process or machine.

    ``key`` is the result's. ``grader`` identifies the sender's version of the course; a worker refuses any but its own.
    """

    student: str
    problems: ProblemSet
    submission: bytes
    key: str
    limits: Limits
    unsafe: bool = False
    grader: bytes = field(default_factory=grader)


@dataclass(frozen=True)
class Graded:
    """The judge's findings. ``notes`` are for a reviewer; ``cells`` are the submission's cells as read, including text
    cells if a question may be answered in one.
    """

    marks: tuple[Mark, ...]
    notes: tuple[str, ...] = ()
    cells: tuple[Cell, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True)
class Failed:
    """The submission couldn't be graded here, through our fault or the machine's.

    ``refused``: no sandbox could be started. ``lost``: it broke on every attempt.
    """

    reason: str
    refused: bool = False
    lost: bool = False

    @property
    def perhaps_by_others(self) -> bool:
        """Whether concurrent submissions may be the cause: a user's sandboxes share some kernel limits."""
        return self.refused or self.lost


Done = Graded | Failed


@dataclass
class _Warm:
    box: Sandbox
    limits: Limits
    unsafe: bool
    left: int = _RECYCLE


_warm: _Warm | None = None
_keeping = 0  # `kept_box` contexts


def _box(limits: Limits, unsafe: bool) -> Sandbox:
    """This process's sandbox, kept warm and replaced every few hundred submissions."""
    global _warm
    if _warm is None or (_warm.limits, _warm.unsafe) != (limits, unsafe) or _warm.left <= 0:
        close_box()
        for attempt in range(1, ATTEMPTS + 1):
            try:
                _warm = _Warm(Sandbox(limits, unsafe=unsafe, meanwhile=_import_judge), limits, unsafe)
                break
            except SandboxError:
                if attempt == ATTEMPTS:
                    raise
    assert _warm is not None
    _warm.left -= 1
    return _warm.box


def _import_judge() -> None:
    importlib.import_module(f"{__package__}.judge")


def close_box() -> None:
    """End this process's sandbox."""
    global _warm
    if _warm is not None:
        _warm.box.close()
        _warm = None


@contextlib.contextmanager
def kept_box() -> Iterator[None]:
    """Keep this process's sandbox from one grading to the next, and end it after the last: a start takes seconds."""
    global _keeping
    _keeping += 1
    try:
        yield
    finally:
        _keeping -= 1
        if not _keeping:
            close_box()


def prepare(limits: Limits, unsafe: bool) -> str:
    """Start this worker's sandbox. Returns why that failed, or ""."""
    with _LOCK:
        try:
            with _box(limits, unsafe).conversation():
                pass  # only trying shows whether a process can be isolated
        except SandboxError as error:
            return str(error)
    return ""


def grade_one(task: Task) -> Done:
    """Grade one submission. Errors aren't raised but returned as `Failed`."""
    from . import conversation

    with _LOCK:
        started = time.monotonic()
        try:
            with _watchdog(ATTEMPTS * task.limits.seconds_in_all + _GRACE):
                return _grade(task, started)
        except _Overdue:
            close_box()
            return unfinished(task.problems)
        except (Exception, conversation.Gone) as error:
            return failed(f"{type(error).__name__}: {error}")


class _Overdue(BaseException):
    """The task, including its judging, has taken longer than the total allowed."""


@contextlib.contextmanager
def _watchdog(seconds: float) -> Iterator[None]:
    """Raise `_Overdue` in this thread when the time is up, wherever it is executing.

    The exception arrives between two Python instructions. That is soon enough, because the judge's calls into C are
    bounded by the size of a message; if one isn't, the pool kills the worker.
    """
    thread, lock, over, fired, arrived = threading.get_ident(), threading.Lock(), False, False, False

    def stop() -> None:
        nonlocal fired
        with lock:
            if not over:
                fired = True
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(_Overdue))

    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    except _Overdue:
        arrived = True
        raise
    finally:
        with lock:
            over = True
        timer.cancel()
        # If the exception is pending, wait for it here, or it would arrive in unrelated code. Don't cancel it (with
        # NULL): CPython 3.11 would then consider one pending forever, and never get past the first instruction of a
        # traced or profiled function.
        if fired and not arrived:
            with contextlib.suppress(_Overdue):
                for _ in range(1000):
                    pass


def _grade(task: Task, started: float) -> Done:
    from . import judge

    if task.grader != grader():
        return Failed("the worker runs another version of the course\n  → install the same one on every machine")
    path = Path(f"{task.problems.lecture_name}.ipynb")  # only a name, for findings
    read = parse(HandedIn(path, data=task.submission), task.problems)
    if not read.cells:
        return unreadable(task.problems, next(iter(read.findings), Finding(path, "it is empty", AGAIN)))
    reason = ""
    for _ in range(ATTEMPTS):
        try:
            box = _box(task.limits, task.unsafe)
        except SandboxError as error:
            return failed(str(error), refused=True)
        try:
            marks, notes = judge.grade(task.problems, read.cells, box)
        except SandboxError as error:
            close_box()  # even if only the student's process was killed: some of its descendants may be left
            reason = str(error)
            continue
        said = text.notes([*notes, *(finding.problem for finding in read.findings)])
        marks += _unanswered(task.problems, read)
        return Graded(tuple(marks), said, read.everything, time.monotonic() - started)
    return failed(f"the sandbox broke {ATTEMPTS} times while grading it: {reason}", lost=True)


def _unanswered(problems: ProblemSet, read: Submission) -> list[Mark]:
    """The marks of questions, which wait for a person to give points, unless the cell is unchanged: then there's no
    answer. If the cell is missing, that's a finding, which also asks a person to look for an answer.
    """
    answers = {name: Cell(answer).plain for name, answer in read.answers(problems).items()}
    return [
        Mark(each.name, 0.0, each.points, open=each.task or answers.get(each.name) != Cell(each.text).plain)
        for each in problems.questions
    ]


def failed(reason: str, *, refused: bool = False, lost: bool = False) -> Failed:
    """A `Failed` whose reason is cleaned."""
    return Failed(clean(reason, limit=MESSAGE_LIMIT), refused, lost)


def unreadable(problems: ProblemSet, finding: Finding) -> Graded:
    """No points, and a note for a person, because nothing in the submission was readable."""
    message = f"Your notebook cannot be graded: {finding.problem}. Please hand it in again."
    return _nothing(problems, f"{finding.problem}: {finding.remedy}", message)


def unfinished(problems: ProblemSet) -> Graded:
    """The outcome for a notebook that takes too long as a whole, including its judging."""
    why = "the submission exceeded its total time limit, including the comparison of its results"
    return _nothing(problems, why, f"Your code did not finish: {why}.")


def _nothing(problems: ProblemSet, note: str, message: str) -> Graded:
    message = clean(message, limit=MESSAGE_LIMIT)
    marks = (Mark(e.name, 0.0, e.points, f"✗ {e.name}\n  {message}") for e in problems.exercises)
    questions = (Mark(each.name, 0.0, each.points) for each in problems.questions)
    return Graded((*marks, *questions), text.notes([note]))

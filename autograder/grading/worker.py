"""Grades one submission after another in a process of its own: a `Task` goes in, `Graded` or `Failed` comes out.

Importing this must stay quick: a worker imports the judge, with PyTorch, while its sandbox starts and does the same.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from autograder import CourseError
from autograder.inside.limits import Limits

from . import text
from .exercises import Cell, ProblemSet
from .key import key
from .marks import Mark
from .sandbox import Sandbox, SandboxError
from .submission import AGAIN, Finding, HandedIn, Submission, parse
from .text import MESSAGE_LIMIT, clean

ATTEMPTS = 3  # at a submission during which the sandbox or the worker dies
_RECYCLE = 300  # submissions that one fork server serves
# Seconds that a task may take beyond all that its limits allow. The judge keeps to the limits, also where it takes the
# time itself; this is for the day when it does not.
_GRACE = 30.0

_LOCK = threading.Lock()  # the judge redirects output and seeds torch: one at a time in a process


class EngineError(CourseError):
    """Grading can't start or continue; the message says why and what to do. Results so far are kept."""


@dataclass(frozen=True)
class Task:
    """One submission to grade. It's only data, so it can go to another process or machine.

    ``key`` is the sender's: a worker with a different version of the course computes a different one.
    """

    student: str
    problems: ProblemSet
    submission: bytes
    key: str
    limits: Limits
    unsafe: bool = False


@dataclass(frozen=True)
class Graded:
    """The judge's findings. ``notes`` are for a person; ``cells`` are the submission's cells as read, with text
    where a question may be answered in it.
    """

    marks: tuple[Mark, ...]
    notes: tuple[str, ...] = ()
    cells: tuple[Cell, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True)
class Failed:
    """The submission couldn't be graded here, through our fault or the machine's.

    ``refused``: there's no sandbox. ``lost``: there was one, time and again, and it broke.
    """

    reason: str
    refused: bool = False
    lost: bool = False

    @property
    def perhaps_by_others(self) -> bool:
        """Whether what's graded beside it may be why: all sandboxes of a user share some limits of the kernel."""
        return self.refused or self.lost


Outcome = Graded | Failed


@dataclass
class _Warm:
    box: Sandbox
    limits: Limits
    unsafe: bool
    left: int = _RECYCLE


_warm: _Warm | None = None


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


def prepare(limits: Limits, unsafe: bool) -> str:
    """Start this worker's sandbox; why it cannot, or nothing."""
    with _LOCK:
        try:
            with _box(limits, unsafe).conversation():
                pass  # that a process can be isolated shows only when one is
        except SandboxError as error:
            return str(error)
    return ""


def grade_one(task: Task) -> Outcome:
    """Grade one submission. Never raises an error: what went wrong is in the outcome."""
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
    """Raise `_Overdue` in this thread when the time is up, wherever it is then.

    An exception from outside arrives between two Python instructions, which is soon: what the judge calls in C is
    bounded by the size of a message. Should that be wrong, the pool kills the worker.
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
        # One that is on its way is waited for here: later it would come in the middle of something else. Taking it back
        # (with NULL) is no way: CPython 3.11 then believes for ever that one is on its way, and never gets past the
        # first instruction of a function that is traced or profiled.
        if fired and not arrived:
            with contextlib.suppress(_Overdue):
                for _ in range(1000):
                    pass


def _grade(task: Task, started: float) -> Outcome:
    from . import judge

    if key(task.submission, task.problems) != task.key:
        return Failed("the worker runs another version of the course\n  → install the same one on every machine")
    path = Path(f"{task.problems.lecture_name}.ipynb")  # it only names it
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
            close_box()  # also where only the student's process was killed: some of it may have been left
            reason = str(error)
            continue
        said = text.notes([*notes, *(finding.problem for finding in read.findings)])
        marks += _unanswered(task.problems, read)
        return Graded(tuple(marks), said, read.everything, time.monotonic() - started)
    return failed(f"the sandbox was lost {ATTEMPTS} times while it was graded: {reason}", lost=True)


def _unanswered(problems: ProblemSet, read: Submission) -> list[Mark]:
    """The marks of questions, to which a person gives points; nothing is due for a cell that is as it was handed out.

    That a cell is missing is a finding, so somebody looks for its answer anyway.
    """
    answers = {name: Cell(answer).plain for name, answer in read.answers(problems).items()}
    return [
        Mark(each.name, 0.0, each.points, open=each.task or answers.get(each.name) != Cell(each.text).plain)
        for each in problems.questions
    ]


def failed(reason: str, *, refused: bool = False, lost: bool = False) -> Failed:
    """The submission couldn't be graded here; the reason is cleaned."""
    return Failed(clean(reason, limit=MESSAGE_LIMIT), refused, lost)


def unreadable(problems: ProblemSet, finding: Finding) -> Graded:
    """No points and a note for a person, because nothing in the submission was readable. The remedy is for them."""
    message = f"Your notebook cannot be graded: {finding.problem}. Please hand it in again."
    return _nothing(problems, f"{finding.problem}: {finding.remedy}", message)


def unfinished(problems: ProblemSet) -> Graded:
    """The outcome for a notebook that takes too long as a whole, like that of a cell that does."""
    why = "the submission took longer than it may in all, with the judging of it"
    return _nothing(problems, why, f"Your code did not come to an end: {why}.")


def _nothing(problems: ProblemSet, note: str, message: str) -> Graded:
    message = clean(message, limit=MESSAGE_LIMIT)
    marks = (Mark(e.name, 0.0, e.points, f"✗ {e.name}\n  {message}") for e in problems.exercises)
    questions = (Mark(each.name, 0.0, each.points) for each in problems.questions)
    return Graded((*marks, *questions), text.notes([note]))

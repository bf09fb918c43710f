"""The answer bank: wrong answers that a test must reject, and unusual right ones that it must accept.

``tests/answers/NN_topic/<exercise>.py`` holds one exercise's answers as cells::

    # %% wrong: counts elements
    # says: That counts elements
    def tensor_bytes(x):
        return x.numel()

    # %% right: adds up the elements one by one
    def tensor_bytes(x): ...

    # %% equivalent: x.numel() * 4 → 4 * x.numel()
    # why: a product does not depend on the order

``says`` is a part of the message that the student must be shown. The last two kinds, ``equivalent`` and
``survivor``, speak of mutants of the reference (see :mod:`autograder.mutants`) that the tests let pass:
``equivalent`` ones behave like the reference, ``survivor``s do not, and ``why`` says why they may live.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import einops.einops
import torch

from course_utils.testing import SEED_VARIABLE

from . import CourseError
from .source import Exercise

WRONG_ANSWERS = 6  # at least, for each exercise
RIGHT_ANSWERS = 3
_CELL = re.compile(r"^# %% (\w+): (.+)$", re.MULTILINE)
_NOTE = {"wrong": "says", "equivalent": "why", "survivor": "why"}


class BankError(CourseError):
    """An answer bank that is missing or malformed: names the file and says what to do."""


@dataclass(frozen=True)
class Answer:
    """One cell of a bank: ``kind`` is wrong, right, equivalent or survivor; ``note`` is its `says` or `why`."""

    kind: str
    title: str
    note: str
    code: str
    line: int


@dataclass(frozen=True)
class Verdict:
    """What a test cell said of one answer. ``mistake`` is the known mistake it named, or None."""

    passed: bool
    message: str = ""
    mistake: str | None = None


class OutOfTime(BaseException):
    """The answer used up its processor time."""


def bank_path(answers: Path, lecture: str, exercise: str) -> Path:
    """Where the bank of an exercise lies."""
    return answers / lecture / f"{exercise}.py"


def read_bank(path: Path) -> list[Answer]:
    """The answers in one file. Raises :class:`BankError` where it is missing or malformed."""
    if not path.is_file():
        raise BankError(
            f"{path}: this exercise has no answer bank\n  → write at least {WRONG_ANSWERS} wrong and "
            f"{RIGHT_ANSWERS} unusual right answers there; CONTRIBUTING.md shows how"
        )
    text = path.read_text(encoding="utf-8")
    heads = list(_CELL.finditer(text))
    found = []
    for head, end in zip(heads, [m.start() for m in heads[1:]] + [len(text)], strict=True):
        kind, title = head.group(1), head.group(2).strip()
        line = text.count("\n", 0, head.start()) + 1
        body = text[head.end() : end].strip("\n")
        if kind not in ("right", *_NOTE):
            raise BankError(f"{path}:{line}: {kind!r} is no kind of answer\n  → use wrong, right, equivalent, survivor")
        note = ""
        if key := _NOTE.get(kind):
            first, _, body = body.partition("\n")
            if not first.startswith(f"# {key}: "):
                raise BankError(f"{path}:{line}: {title!r} has no note\n  → begin the cell with `# {key}: …`")
            note = first.removeprefix(f"# {key}: ").strip()
        if kind in ("wrong", "right") and not body.strip():
            raise BankError(f"{path}:{line}: {title!r} is empty\n  → write the answer below the header")
        found.append(Answer(kind, title, note, body.strip("\n"), line))
    return found


def judge(exercise: Exercise, code: str, *, hidden: bool = True, seed: int = 0, seconds: float = 20) -> Verdict:
    """Run the lecture's first cell, an answer and the test cell, as a kernel would, and say whether it passed.

    ``seconds`` is processor time. Only for answers of our own: nothing here isolates them.
    """
    names: dict[str, Any] = {}
    with quietly(seed), _time_limit(seconds):
        try:
            for title, text in (("setup", exercise.setup), ("answer", code)):
                # A cell that fails does not end a notebook: the test cell still runs.
                with contextlib.suppress(Exception, SystemExit):
                    run_cell(text, title, names)
            return run_tests(exercise.tests if hidden else exercise.visible_tests, names)
        except OutOfTime as error:
            return Verdict(False, f"{error}")


def run_tests(tests: str, names: dict[str, Any]) -> Verdict:
    """Run a test cell over a notebook's names, and say what it found."""
    try:
        run_cell(tests, "tests", names)
    except (Exception, SystemExit) as error:
        return Verdict(False, f"{error}" or type(error).__name__, getattr(error, "mistake", None))
    return Verdict(True)


def problems(exercise: Exercise, answers: list[Answer], seed: int = 0) -> list[str]:
    """What is wrong with an exercise's tests or its bank, in words; empty where nothing is."""
    found = []
    if not (verdict := judge(exercise, exercise.solution, seed=seed)).passed:
        found.append(f"the reference fails: {verdict.message}")
    if judge(exercise, exercise.stub, seed=seed).passed or judge(exercise, exercise.stub, hidden=False).passed:
        found.append("the empty stub passes")
    for kind, least in (("wrong", WRONG_ANSWERS), ("right", RIGHT_ANSWERS)):
        if (count := sum(answer.kind == kind for answer in answers)) < least:
            found.append(f"only {count} {kind} answers in the bank, {least} wanted")
    for answer in answers:
        where = f"line {answer.line}, {answer.title!r}"
        if answer.kind == "wrong":
            verdict = judge(exercise, answer.code, seed=seed)
            if verdict.passed:
                found.append(f"{where} is wrong and passes")
            elif answer.note not in verdict.message:
                found.append(f"{where} is told {verdict.message!r} in place of {answer.note!r}")
        elif answer.kind == "right":
            for hidden in (False, True):
                verdict = judge(exercise, answer.code, seed=seed, hidden=hidden)
                if not verdict.passed:
                    found.append(f"{where} is right and fails: {verdict.message}")
                    break
    return found


def run_cell(text: str, title: str, names: dict[str, Any]) -> None:
    """Run a cell as a kernel would, over a notebook's names."""
    names.setdefault("__name__", "__main__")
    filename = f"<{title}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    exec(compile(text, filename, "exec"), names)


@contextlib.contextmanager
def quietly(seed: int = 0) -> Iterator[None]:
    """What is drawn inside is drawn from ``seed``; nothing is printed, and no setting of torch outlives it."""
    dtype, threads = torch.get_default_dtype(), torch.get_num_threads()
    torch.set_num_threads(1)  # on a busy machine a second one spins, and costs more than it brings
    _forget_shapes()
    with _seed(seed), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)
            torch.set_num_threads(threads)
            torch.set_grad_enabled(True)


def _forget_shapes() -> None:
    # einops keeps what it worked out for a call, and 2.0 == 2: `size=4 / 2` would fail or pass by what ran before.
    for cached in ("_prepare_transformation_recipe", "_reconstruct_from_shape"):
        getattr(einops.einops, cached).cache_clear()


@contextlib.contextmanager
def _seed(seed: int) -> Iterator[None]:
    before = os.environ.get(SEED_VARIABLE)
    os.environ[SEED_VARIABLE] = str(seed)
    torch.manual_seed(seed)
    try:
        yield
    finally:
        if before is None:
            del os.environ[SEED_VARIABLE]
        else:
            os.environ[SEED_VARIABLE] = before


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise OutOfTime(f"stopped after {seconds:g} seconds of processor time")

    # The virtual timer leaves SIGALRM, which pytest-timeout uses, alone.
    previous = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)

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
``survivor``, speak of mutants of the reference (see :mod:`autograder.authoring.mutants`) that the tests let pass:
``equivalent`` ones behave like the reference, ``survivor``s do not, and ``why`` says why they may live.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from autograder import CourseError
from autograder.grading.exercises import Exercise
from autograder.grading.in_process import judge_in_process

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


def problems(exercise: Exercise, answers: list[Answer], seed: int = 0) -> list[str]:
    """What is wrong with an exercise's tests or its bank, in words; empty where nothing is."""
    found = []
    if not (verdict := judge_in_process(exercise, exercise.solution, seed=seed)).passed:
        found.append(f"the reference fails: {verdict.message}")
    if (
        judge_in_process(exercise, exercise.stub, seed=seed).passed
        or judge_in_process(exercise, exercise.stub, hidden=False).passed
    ):
        found.append("the empty stub passes")
    for kind, least in (("wrong", WRONG_ANSWERS), ("right", RIGHT_ANSWERS)):
        if (count := sum(answer.kind == kind for answer in answers)) < least:
            found.append(f"only {count} {kind} answers in the bank, {least} wanted")
    for answer in answers:
        where = f"line {answer.line}, {answer.title!r}"
        if answer.kind == "wrong":
            verdict = judge_in_process(exercise, answer.code, seed=seed)
            if verdict.passed:
                found.append(f"{where} is wrong and passes")
            elif answer.note not in verdict.message:
                found.append(f"{where} is told {verdict.message!r} in place of {answer.note!r}")
        elif answer.kind == "right":
            for hidden in (False, True):
                verdict = judge_in_process(exercise, answer.code, seed=seed, hidden=hidden)
                if not verdict.passed:
                    found.append(f"{where} is right and fails: {verdict.message}")
                    break
    return found

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
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder import CourseError
from autograder.grading.exercises import Exercise

from .in_process import judge_for_seeds

SEEDS = range(20)  # each answer is judged with, where they can matter
WRONG_ANSWERS = 6  # at least, for each exercise
RIGHT_ANSWERS = 3
NAMED = 0.5  # of the wrong answers, at least: they meet a mistake that the tests know
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


def problems(exercise: Exercise, answers: list[Answer], seeds: Sequence[int] = (0,)) -> list[str]:
    """What is wrong with an exercise's tests or its bank, in words; empty if nothing is.

    Every answer is judged with every seed, unless the first run shows that the seed makes no difference to it.
    """
    found = [f"the reference fails: {why}" for why in _rejections(exercise, exercise.solution, seeds)]
    for hidden in (False, True):
        if any(verdict.passed for verdict in judge_for_seeds(exercise, exercise.stub, seeds, hidden=hidden)):
            found.append("the empty stub passes" if hidden else "the empty stub passes the visible tests")
    for kind, least in (("wrong", WRONG_ANSWERS), ("right", RIGHT_ANSWERS)):
        if (count := sum(answer.kind == kind for answer in answers)) < least:
            found.append(f"only {count} {kind} answers in the bank, {least} wanted")
    wrong = named = 0
    for answer in answers:
        where = f"line {answer.line}, {answer.title!r}"
        if answer.kind == "wrong":
            verdicts = judge_for_seeds(exercise, answer.code, seeds)
            wrong += 1
            named += verdicts[0].mistake is not None
            for seed, verdict in zip(seeds, verdicts, strict=True):
                if verdict.passed:
                    found.append(f"{where} is wrong and passes (seed {seed})")
                elif answer.note not in verdict.message:
                    found.append(f"{where} is told {verdict.message!r} in place of {answer.note!r} (seed {seed})")
        elif answer.kind == "right":
            found += [f"{where} is right and fails: {why}" for why in _rejections(exercise, answer.code, seeds)]
    if named < NAMED * wrong:
        found.append(f"only {named} of {wrong} wrong answers meet a named mistake, {NAMED:.0%} wanted")
    return found


def _rejections(exercise: Exercise, code: str, seeds: Sequence[int]) -> list[str]:
    """What the tests say against an answer that should pass, with and without the hidden ones."""
    # If the visible tests are how the cell begins, whatever passes the whole cell has passed them on the way; once is
    # enough to see that they can stand alone.
    some = seeds[:1] if exercise.tests.startswith(exercise.visible_tests) else seeds
    return [
        f"{verdict.message} (seed {seed})"
        for hidden, with_seeds in ((False, some), (True, seeds))
        for seed, verdict in zip(seeds, judge_for_seeds(exercise, code, with_seeds, hidden=hidden), strict=False)
        if not verdict.passed
    ]

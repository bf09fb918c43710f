"""Runs an answer and its test cell in this very process. Nothing here isolates it: only for answers of our own.

The checks of exercises use it (answer banks, mutants), thousands of times a minute. Submissions never come here.
"""

from __future__ import annotations

import contextlib
import signal
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from autograder.grading.cells import quietly, run_cell, run_tests
from autograder.grading.exercises import Exercise
from autograder.grading.marks import Verdict

from .randomness import UNSEEN, Watch


class OutOfTime(BaseException):
    """The answer used up its processor time. No Exception, so that no answer and no test cell catches it."""


def judge_in_process(
    exercise: Exercise, code: str, *, hidden: bool = True, seed: int = 0, seconds: float = 20
) -> Verdict:
    """Run the lecture's first cell, an answer and the test cell, as a kernel would, and say whether it passed.

    ``seconds`` is processor time.
    """
    return _judge(exercise, code, hidden, seed, seconds)[0]


def judge_for_seeds(
    exercise: Exercise, code: str, seeds: Iterable[int], *, hidden: bool = True, seconds: float = 20
) -> list[Verdict]:
    """The verdict for each seed, as `judge_in_process` gives it.

    If nothing random was used with the first seed, no other one can change the verdict, and the answer isn't run again.
    """
    verdicts: list[Verdict] = []
    uses_randomness = True
    for seed in seeds:
        if uses_randomness:
            verdict, uses_randomness = _judge(exercise, code, hidden, seed, seconds)
        verdicts.append(verdict)
    return verdicts


def _judge(exercise: Exercise, code: str, hidden: bool, seed: int, seconds: float) -> tuple[Verdict, bool]:
    """The verdict, and whether it may depend on anything random."""
    tests = exercise.tests if hidden else exercise.visible_tests
    names: dict[str, Any] = {}
    with quietly(seed), warnings.catch_warnings(), Watch().watching() as watch, _time_limit(seconds):
        warnings.simplefilter("ignore")  # an answer's warnings are its author's; where they are errors, it would fail
        try:
            for title, text in (("setup", exercise.setup), ("answer", code)):
                # A cell that fails does not end a notebook: the test cell still runs.
                with contextlib.suppress(Exception, SystemExit):
                    run_cell(text, title, names)
            verdict = run_tests(tests, names)
        except OutOfTime as error:
            verdict = Verdict(False, f"{error}")
        return verdict, watch.used or any(map(UNSEEN.search, (exercise.setup, code, tests)))


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

"""Runs our own programs (references, mistakes, answers, mutants) on cases, in this process.

There is no isolation, so submissions are never run here.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any

from autograder.grading.cells import quietly, run_cell
from course_utils.testing.checking import SEED, seed_all
from course_utils.testing.observing import observe
from course_utils.testing.plain import Raised
from course_utils.testing.probes import from_source
from course_utils.testing.requirements import Case, Outcome, outcome, summarized

from .exercise import Given, Promise

# Processor seconds for one case, after which its outcome is OutOfTime. Right programs get plenty, even for a busy
# machine. Wrong ones get less, because many of them never end.
SECONDS, BRIEF = 10.0, 1.5
_SLOW = 2  # after this many cases have run out of time, all others are assumed to


class OutOfTime(BaseException):
    """The program used up its processor time. Not an Exception, so that no program catches it."""


class Trial:
    """One program, loaded as in a kernel: the lecture's first cell, then its own."""

    def __init__(self, setup: str, code: str, threads: int = 1, seconds: float = SECONDS) -> None:
        self._names: dict[str, Any] = {}
        self._threads, self._seconds = threads, seconds
        self._slow = 0
        self.longest = 0.0  # seconds of processor time that a case has taken so far
        with quietly(), _no_warnings(), _time_limit(seconds):
            for title, text in (("setup", setup), ("answer", code)):
                # A failing cell does not end a notebook: test whatever it has defined.
                with contextlib.suppress(Exception, SystemExit, OutOfTime):
                    run_cell(text, title, self._names)

    def outcomes(self, name: str, promise: Promise, cases: Iterable[Given], seed: int = SEED) -> Iterator[Outcome]:
        """The outcome of each case of a promise of the exercise ``name``."""
        probe = from_source(promise.probe, promise.target, self._names) if promise.probe else None
        target = probe or self._names.get(name)
        for case in cases:
            if target is None:
                yield _instead(promise, Raised("NameError", name))
            elif self._slow >= _SLOW:
                yield _instead(promise, Raised("OutOfTime", ""))
            else:
                with quietly(self._threads), _no_warnings():
                    seed_all(seed)
                    began = time.process_time()
                    with _time_limit(self._seconds):
                        try:
                            seen = observe(target, *case.args, **case.kwargs)
                        except OutOfTime:
                            seen = observe(_out_of_time)
                    self.longest = max(self.longest, time.process_time() - began)
                    self._slow += seen.error == "OutOfTime"
                    made = Case(case.args, case.kwargs, {})
                    yield outcome(summarized(seen, promise.probe, promise.summary, made), promise.comparison)

    def outcome(self, name: str, promise: Promise, case: Given, seed: int = SEED) -> Outcome:
        """The outcome of one case."""
        return next(iter(self.outcomes(name, promise, [case], seed)))


def _instead(promise: Promise, value: Raised) -> Outcome:
    parts = promise.comparison.parts
    return dict.fromkeys(parts) | {"value": value} | ({"error": value} if "error" in parts else {})


def _out_of_time() -> None:
    raise OutOfTime


@contextlib.contextmanager
def _no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # else a program with warnings would fail where they are errors
        yield


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    def stop(_: int, frame: FrameType | None) -> None:
        # Never within an import: a module of which half was run stays in sys.modules, and everything that uses it
        # later in this process fails, the next exercise's reference too. The next tick comes in a tenth of a second.
        while frame is not None and frame.f_code not in (Trial.__init__.__code__, Trial.outcomes.__code__):
            if frame.f_code.co_filename.startswith("<frozen importlib"):
                return
            frame = frame.f_back
        raise OutOfTime

    # In a finalizer or a callback of the garbage collector, Python doesn't propagate exceptions but reports them. Don't
    # report this one, since the next tick raises it again.
    def report(unraisable: sys.UnraisableHookArgs) -> None:
        if unraisable.exc_type is not OutOfTime:
            reporting(unraisable)

    reporting, sys.unraisablehook = sys.unraisablehook, report
    # The virtual timer doesn't use SIGALRM, which pytest-timeout needs.
    previous = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, 0.1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)
        sys.unraisablehook = reporting

"""Runs an answer and its test cell in this very process. Nothing here isolates it: only for answers of our own.

The checks of exercises use it (answer banks, mutants), thousands of times a minute. Submissions never come here. The
judge shares `run_cell` and `run_tests`, which run cells of ours, and does not share `judge_in_process`.
"""

from __future__ import annotations

import contextlib
import functools
import io
import linecache
import os
import random
import re
import signal
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import einops.einops
import numpy as np
import torch

from course_utils import testing
from course_utils.testing import SEED_VARIABLE

from .exercises import Exercise
from .marks import Verdict


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

    If nothing random was used with the first seed, no other seed can change the verdict, and the answer isn't run again.
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
    with quietly(seed), warnings.catch_warnings(), _Watch().watching() as watch, _time_limit(seconds):
        warnings.simplefilter("ignore")  # an answer's warnings are its author's; where they are errors, it would fail
        try:
            for title, text in (("setup", exercise.setup), ("answer", code)):
                # A cell that fails does not end a notebook: the test cell still runs.
                with contextlib.suppress(Exception, SystemExit):
                    run_cell(text, title, names)
            verdict = run_tests(tests, names)
        except OutOfTime as error:
            verdict = Verdict(False, f"{error}")
        return verdict, watch.used or any(map(_UNSEEN.search, (exercise.setup, code, tests)))


def run_tests(tests: str, names: dict[str, Any]) -> Verdict:
    """Run a test cell over a notebook's names, and say what it found."""
    try:
        run_cell(tests, "tests", names)
    except (Exception, SystemExit) as error:
        return Verdict(False, f"{error}" or type(error).__name__, getattr(error, "mistake", None))
    return Verdict(True)


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
    torch.set_num_threads(1)  # on a busy machine a second one spins, and costs more than it gives
    _forget_shapes()
    with _seed(seed), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)
            torch.set_num_threads(threads)
            torch.set_grad_enabled(True)


def _forget_shapes() -> None:
    # einops remembers what it worked out for a call by value, and 2.0 == 2: whether `size=4 / 2` fails would depend on
    # what ran before.
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


# Randomness that `_Watch` cannot see, found by its name in a cell: other ways to torch's generator, generators that
# nobody seeded, and processes that inherit the seed's variable (in this process only `draws` reads it).
_UNSEEN = re.compile(
    r"default_generator|torch\._C|\.seed\(\)|\bRandom\(\)|default_rng\(\)|urandom|\bsecrets\b|\buuid|"
    rf"{SEED_VARIABLE}|environ|subprocess|multiprocessing|\blaunch\("
)


class _Watch:
    """Notices whether anything random is used: `draws`, or a global generator of torch's, NumPy's or Python's.

    Drawing from a generator changes its state, so it's enough to compare states, as long as nobody reads the state or
    puts an old one back. Calls to torch's functions that do so are noticed as well; only torch's generator starts from
    the seed. Tests often call ``torch.manual_seed(0)``: what is drawn after that is the same for every seed, and
    doesn't count.
    """

    def __init__(self) -> None:
        self._get_state = torch.get_rng_state
        self._start, self._others = self._get_state(), _state_of_others()
        self._used = False
        self._follows_seed = True  # torch's generator does, until it is given another seed

    @property
    def used(self) -> bool:
        """Whether anything random has been used so far."""
        return self._used or self._drawn() or _state_of_others() != self._others

    def _drawn(self) -> bool:
        return self._follows_seed and not torch.equal(self._get_state(), self._start)

    def _on_draw(self) -> None:
        self._used = True

    def _on_state(self) -> None:
        self._used |= self._follows_seed

    def _on_seed(self) -> None:
        self._used |= self._drawn()
        self._follows_seed = False

    @contextlib.contextmanager
    def watching(self) -> Iterator[_Watch]:
        """Inside, whatever is called in torch and in `course_utils.testing` is noticed."""
        watched = {(testing, "draws"): self._on_draw, (torch.random, "fork_rng"): self._on_state}
        for module in (torch, torch.random):
            watched[module, "seed"] = self._on_draw
            watched[module, "manual_seed"] = self._on_seed
            for name in ("initial_seed", "get_rng_state", "set_rng_state"):
                watched[module, name] = self._on_state
        real = {(module, name): getattr(module, name) for module, name in watched}
        try:
            for (module, name), notice in watched.items():
                setattr(module, name, _noticed(real[module, name], notice))
            yield self
        finally:
            for (module, name), function in real.items():
                setattr(module, name, function)


def _noticed(function: Callable[..., Any], notice: Callable[[], None]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        notice()
        return function(*args, **kwargs)

    return call


def _state_of_others() -> tuple[Any, ...]:
    """The states of NumPy's and Python's global generators."""
    name, keys, *rest = np.random.get_state(legacy=True)
    return name, keys.tobytes(), rest, random.getstate()


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

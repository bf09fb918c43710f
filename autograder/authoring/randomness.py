"""Whether what a cell does can depend on the seed, found out while it runs."""

from __future__ import annotations

import contextlib
import functools
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from course_utils import testing
from course_utils.testing import SEED_VARIABLE

# Randomness that `Watch` cannot see, found by its name in a cell: other ways to torch's generator, generators that
# nobody seeded, and processes that inherit the seed's variable (in this process only `draws` reads it).
UNSEEN = re.compile(
    r"default_generator|torch\._C|\.seed\(\)|\bRandom\(\)|default_rng\(\)|urandom|\bsecrets\b|\buuid|"
    rf"{SEED_VARIABLE}|environ|subprocess|multiprocessing|\blaunch\("
)


class Watch:
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
    def watching(self) -> Iterator[Watch]:
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
    state: Any = np.random.get_state()  # a name, an array of keys, and numbers
    return state[0], state[1].tobytes(), *state[2:], random.getstate()

"""Random inputs for tests."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Sequence
from typing import Any

import torch

SEED_VARIABLE = "COURSE_SEED"


class Draw:
    """Random inputs for tests: the same on every run with one seed, and no other random generator is touched."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._torch = torch.Generator().manual_seed(seed)

    def integer(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return self._random.randint(low, high)

    def choice(self, options: Sequence[Any]) -> Any:
        """One of the options."""
        return self._random.choice(options)

    def sizes(self, count: int, low: int = 2, high: int = 7) -> tuple[int, ...]:
        """``count`` different sizes, so that swapped dimensions show."""
        return tuple(self._random.sample(range(low, high + 1), count))

    def tensor(self, *shape: int, dtype: torch.dtype = torch.float32, contiguous: bool = True) -> torch.Tensor:
        """A random tensor: normally distributed floats, integers from −9 to 9, fair coins for bools.

        With ``contiguous=False`` it is a view of a larger storage, with permuted dimensions, an offset and gaps.
        """
        if contiguous:
            return self._fill(shape, dtype)
        order = list(range(len(shape)))
        self._random.shuffle(order)
        room = [shape[d] + self._random.randint(1, 2) for d in order]
        x = self._fill(tuple(room), dtype)
        for place, d in enumerate(order):
            start = self._random.randint(0, room[place] - shape[d])
            x = x.narrow(place, start, shape[d])
        return x.permute([order.index(d) for d in range(len(shape))])

    def _fill(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        if dtype == torch.bool:
            return torch.randint(0, 2, shape, generator=self._torch).bool()
        if dtype.is_floating_point or dtype.is_complex:
            # Drawn wide, then rounded: randn does not exist for float8.
            wide = torch.complex64 if dtype.is_complex else torch.float32
            return torch.randn(shape, generator=self._torch, dtype=wide).to(dtype)
        low = 0 if dtype == torch.uint8 else -9
        return torch.randint(low, 10, shape, generator=self._torch).to(dtype)


def draws(seed: int | None = None) -> Draw:
    """Random inputs. The seed is the one given, else ``COURSE_SEED`` from the environment, else 0."""
    if seed is None:
        text = os.environ.get(SEED_VARIABLE, "0")
        try:
            seed = int(text)
        except ValueError:
            sys.exit(f"{SEED_VARIABLE} must be a whole number, got {text!r}")
    return Draw(seed)

"""Hypothesis strategies for tensors, dtypes and shapes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import torch
from hypothesis import strategies as st

FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


@st.composite
def tensors(
    draw: st.DrawFn, shape: Sequence[int], dtype: torch.dtype = torch.float32, contiguous: bool | None = True
) -> torch.Tensor:
    """Tensors of a shape: normally distributed floats, integers from -9 to 9 (0 to 9 for uint8), uniform bools.

    ``contiguous=False``: views of a larger storage, with permuted dimensions, an offset and gaps. None: both kinds.
    """
    seed = draw(st.integers(0, 2**31 - 1))
    whole = draw(st.booleans()) if contiguous is None else contiguous
    return _tensor(seed, tuple(shape), dtype, whole)


def turned(draw: st.DrawFn, x: torch.Tensor) -> torch.Tensor:
    """x as it is, or with its last two dimensions stored in the other order."""
    return x.mT.contiguous().mT if x.dim() > 1 and draw(st.booleans()) else x


def shapes(dims: tuple[int, int] = (1, 3), sizes: tuple[int, int] = (1, 6)) -> st.SearchStrategy[tuple[int, ...]]:
    """Shapes whose number of dimensions and sizes are within these bounds, inclusive."""
    return st.lists(st.integers(*sizes), min_size=dims[0], max_size=dims[1]).map(tuple)


def any_of(*options: Any) -> st.SearchStrategy[Any]:
    """One of the options."""
    return st.sampled_from(options)


def _tensor(seed: int, shape: tuple[int, ...], dtype: torch.dtype, contiguous: bool) -> torch.Tensor:
    numbers = torch.Generator().manual_seed(seed)
    if contiguous:
        return _filled(shape, dtype, numbers)
    sizes = random.Random(seed)
    order = list(range(len(shape)))
    sizes.shuffle(order)
    room = [shape[d] + sizes.randint(1, 2) for d in order]
    x = _filled(tuple(room), dtype, numbers)
    for place, d in enumerate(order):
        x = x.narrow(place, sizes.randint(0, room[place] - shape[d]), shape[d])
    return x.permute([order.index(d) for d in range(len(shape))])


def _filled(shape: tuple[int, ...], dtype: torch.dtype, numbers: torch.Generator) -> torch.Tensor:
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=numbers).bool()
    if dtype.is_floating_point or dtype.is_complex:
        # Draw in float32, then round, because randn doesn't support float8. A float64 needs digits that float32 hasn't.
        wide = torch.complex64 if dtype.is_complex else torch.float64 if dtype == torch.float64 else torch.float32
        return torch.randn(shape, generator=numbers, dtype=wide).to(dtype)
    return torch.randint(0 if dtype == torch.uint8 else -9, 10, shape, generator=numbers).to(dtype)

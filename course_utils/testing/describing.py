"""Values, arguments and functions in words, short enough for a message."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from course_utils.testing.plain import Opaque, Raised

_TEXT = 200  # characters of a string that are shown
_SHOWN = 8  # elements of a tensor, or items of a container, written out in a message


def describe(value: Any) -> str:
    """A value in one readable line, short enough for a message."""
    return _line(value, short_number)


def written(value: Any) -> str:
    """Like `describe`, but with enough digits that different numbers look different."""
    return _line(value, number)


def _line(value: Any, as_text: Callable[[Any], str]) -> str:
    if isinstance(value, torch.Tensor):
        text = f"{short_dtype(value.dtype)}{list(value.shape)}"
        if value.numel() and value.dim() and not value.is_contiguous():
            text += f" with strides {tuple(value.stride())}"
        if value.device.type == "meta":
            return f"{text} on meta"
        if 0 < value.numel() <= _SHOWN:
            text += f" = {_elements(value, as_text)}"
        return text
    if isinstance(value, (Raised, Opaque)):
        return str(value)
    if isinstance(value, torch.dtype):
        return str(value)
    if isinstance(value, (list, tuple)):
        left, right = ("[", "]") if isinstance(value, list) else ("(", ")")
        items = [_line(item, as_text) for item in value[:_SHOWN]]
        more = ", …" if len(value) > _SHOWN else ","[: isinstance(value, tuple) and len(value) == 1]
        return left + ", ".join(items) + more + right
    if isinstance(value, dict):
        items = [f"{_line(k, as_text)}: {_line(v, as_text)}" for k, v in list(value.items())[:_SHOWN]]
        return "{" + ", ".join(items) + (", …" if len(value) > _SHOWN else "") + "}"
    if isinstance(value, (set, frozenset)):
        items = [_line(item, as_text) for item in itertools.islice(value, _SHOWN)]
        return "{" + ", ".join(items) + (", …" if len(value) > _SHOWN else "") + "}" if items else "set()"
    if isinstance(value, (int, float)):
        return as_text(value)
    if isinstance(value, (str, bytes)) and len(value) > _TEXT:
        return repr(value[:_TEXT]) + "…"  # cut before repr: a string may have any length
    text = repr(value)
    return text if len(text) <= _TEXT else text[:_TEXT] + "…"


def _elements(x: torch.Tensor, as_text: Callable[[Any], str]) -> str:
    """All elements of a small tensor. A float32 has fewer digits than the Python number of the same value."""
    if x.dtype == torch.float32 and as_text is number:
        as_text = _single
    return _line(x.tolist(), as_text)


def _single(value: Any) -> str:
    if not isinstance(value, float):
        return repr(value)
    text = repr(float(str(np.float32(value))))
    return _shorter(text, float(text))


def number(value: Any) -> str:
    """A number in the fewest digits that identify it."""
    return _shorter(repr(value), value) if isinstance(value, float) else repr(value)


def _shorter(text: str, value: float) -> str:
    """In scientific notation if that's shorter: 1440000000.0 becomes 1.44e+09."""
    short = f"{value:.6g}"
    return short if float(short) == value and "e" in short and len(short) < len(text) else text


def call_in_words(name: str, arguments: Mapping[int | str, Any]) -> str:
    """A call as text, ``f(first, size=3)``. A positional argument's key is its place, any other's its name.

    Without the underscores that mark a name as private.
    """
    parts = [("" if isinstance(key, int) else f"{key}=") + written(value) for key, value in arguments.items()]
    return f"{name.strip('_')}({', '.join(parts)})"


def short_dtype(dtype: torch.dtype) -> str:
    """``float32`` for ``torch.float32``."""
    return str(dtype).removeprefix("torch.")


def short_number(value: Any) -> str:
    """Non-integers to six significant digits; integers and anything else in full."""
    if isinstance(value, float):
        return _shorter(repr(value), value) if value.is_integer() else f"{value:.6g}"
    return repr(value)

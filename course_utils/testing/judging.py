"""Whether plain data is what was expected and, if not, the message that the student reads."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from course_utils.testing.describing import describe, short_dtype, short_number
from course_utils.testing.plain import Raised

_TOLERANCES = {torch.float16: (1e-3, 1e-5), torch.bfloat16: (1.6e-2, 1e-5)}  # relative, absolute


class Mismatch(AssertionError):
    """What was observed is not what was expected.

    ``mistake`` is the text of the known mistake that the value matched, or None.
    """

    def __init__(self, message: str, mistake: str | None = None) -> None:
        super().__init__(message)
        self.mistake = mistake

    def _render_traceback_(self) -> list[str]:
        """What IPython shows instead of a traceback: only the message, because the frames would teach nothing."""
        return str(self).splitlines()


@dataclass
class LastCall:
    """The call that the next ``expect`` will name in its message: the one observed last."""

    text: str = ""


# Written by observing, read here. It is changed in place and never replaced, so every importer sees the same one.
last_call = LastCall()


def expect(
    got: Any,
    want: Any,
    *,
    mistakes: Mapping[Any, str] | Sequence[tuple[Any, str]] = (),
    about: str = "",
    tolerance: float | None = None,
    hint: str = "",
) -> None:
    """Raise :class:`Mismatch` unless ``got`` is ``want``.

    Numbers are compared by value: 128 equals 128.0, floats may differ by the relative ``tolerance`` (1e-6 by default),
    and a tensor without dimensions counts as its number. A bool is not a number. Lists and tuples are compared item by
    item. Tensors must have the same shape, dtype and elements; floats may differ by a tolerance that suits the dtype,
    or by ``tolerance`` times the largest magnitude expected.

    ``mistakes`` maps the values that well-known mistakes produce to what the student should read (a list of pairs works
    too, for values that cannot be keys). ``about`` names what is compared if it is not the returned value. ``hint`` is
    shown if no mistake matches and the exercise has been started.
    """
    problem = difference(got, want, tolerance)
    if problem is None:
        return
    mistake = None
    # An error has no value that a mistake could have produced, and its own text says more than any guess at the cause.
    if not isinstance(got, Raised):
        pairs = mistakes.items() if isinstance(mistakes, Mapping) else mistakes
        for value, text in pairs:
            if difference(got, value, tolerance) is None:
                mistake = text
                break
    lines = [f"✗ {last_call.text or 'this check'}" + (f": {about}" if about else "")]
    if isinstance(got, torch.Tensor) and isinstance(want, torch.Tensor):
        lines.append(f"    {problem}")
    else:
        lines += [f"    got       {describe(got)}", f"    expected  {describe(want)}"]
    begun = not (isinstance(got, Raised) and got.not_begun)
    if isinstance(want, bool) and type(got) is int and not mistake:
        hint = "Wanted is True or False; a number that counts as one of them is not the same."
    if advice := mistake or (hint if begun else ""):
        lines.append(f"  {advice}")
    raise Mismatch("\n".join(lines), mistake)


def difference(got: Any, want: Any, tolerance: float | None = None, *, exact: bool = False) -> str | None:
    """How ``got`` differs from ``want``, in words, or None if they agree.

    ``exact`` allows no tolerance at all, and NaN still equals NaN: it says whether a call has changed its argument.
    """
    if isinstance(want, torch.Tensor):
        return _tensor_difference(got, want, tolerance, exact)
    if isinstance(got, torch.Tensor) and got.dim() == 0 and isinstance(want, (bool, int, float, complex)):
        got = got.item()
    if isinstance(want, (list, tuple)):
        if not isinstance(got, (list, tuple)) or len(got) != len(want):
            return _differ(got, want)
        return next(
            (d for g, w in zip(got, want, strict=True) if (d := difference(g, w, tolerance, exact=exact))),
            None,
        )
    if isinstance(want, dict):
        if not isinstance(got, dict) or got.keys() != want.keys():
            return _differ(got, want)
        return next((d for k in want if (d := difference(got[k], want[k], tolerance, exact=exact))), None)
    if isinstance(want, bool) or want is None or isinstance(got, bool):
        return None if got is want else _differ(got, want)  # by identity: True == 1
    if isinstance(want, (int, float, complex)):
        if not isinstance(got, (int, float, complex)):
            return _differ(got, want)
        if got == want or (got != got and want != want):  # NaN is what was expected if NaN was expected
            return None
        if exact or (isinstance(want, int) and tolerance is None):  # a count is right or wrong
            return _differ(got, want)
        if isinstance(want, complex) or isinstance(got, complex):
            return None if abs(got - want) <= (tolerance or 1e-6) * abs(want) else _differ(got, want)
        return None if math.isclose(got, want, rel_tol=tolerance or 1e-6) else _differ(got, want)
    # The same type and equal: text, dtypes, devices, and errors, which are equal if type, message and line are. An
    # Opaque never equals another one. To accept any ValueError, a test compares Observation.error, which is a name.
    return None if type(got) is type(want) and got == want else _differ(got, want)


def _differ(got: Any, want: Any) -> str:
    return f"got {describe(got)}, expected {describe(want)}"


def _tensor_difference(got: Any, want: torch.Tensor, tolerance: float | None, exact: bool) -> str | None:
    if not isinstance(got, torch.Tensor):
        return f"got {describe(got)}, expected {describe(want)}"
    if got.shape != want.shape:
        return f"shape: got {list(got.shape)}, expected {list(want.shape)}"
    if got.dtype != want.dtype:
        return f"dtype: got {short_dtype(got.dtype)}, expected {short_dtype(want.dtype)}"
    if want.device.type == "meta" or got.device.type == "meta" or want.numel() == 0:
        return None if got.device.type == want.device.type else f"got {got.device}, expected {want.device}"
    if want.dtype.itemsize == 1 and want.dtype.is_floating_point:  # PyTorch cannot compare float8
        got, want = got.float(), want.float()
    if exact or not (want.is_floating_point() or want.is_complex()):
        same = (got == want) | ((got != got) & (want != want))
    elif tolerance is not None:
        # Relative to the largest element: the rounding error of a sum has the size of its terms, even if they cancel.
        scale = want[torch.isfinite(want)].abs().max().item() if torch.isfinite(want).any() else 0.0
        same = torch.isclose(got, want, rtol=0.0, atol=tolerance * scale, equal_nan=True)
    else:
        rtol, atol = _TOLERANCES.get(want.dtype, (1e-5, 1e-6))
        same = torch.isclose(got, want, rtol=rtol, atol=atol, equal_nan=True)
    if bool(same.all()):
        return None
    count = int((~same).sum())
    place = tuple(int(i) for i in (~same).nonzero()[0])
    at = f"at {list(place)}: " if place else ""
    few = f" ({count} of {want.numel()} elements differ)" if want.numel() > 1 else ""
    return f"{at}got {short_number(got[place].item())}, expected {short_number(want[place].item())}{few}"

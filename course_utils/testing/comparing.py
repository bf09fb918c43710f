"""Compare an observation with the reference's, following rules that are themselves plain data."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from course_utils.testing.plain import Opaque, Raised

# Relative to the number itself, plus a tenth as much relative to the largest number in its tensor. That's about a
# hundred times the dtype's spacing, since two correct answers may add in a different order.
_TOLERANCES = {torch.float64: 1e-9, torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 1.6e-2}
_OF_A_NUMBER = 1e-9  # a Python float is a float64,
_OF_A_SINGLE = 1e-6  # unless .item() or .tolist() made it from a float32: correct answers may round differently

AT_MOST = "at most"
BETWEEN = "between"
IGNORED = "ignored"


@dataclass(frozen=True)
class Difference:
    """Where an outcome isn't what it should be: the actual and the expected value, and which part of the whole this is.

    ``words`` replaces both where they wouldn't be clear: "shape: got [2, 3], expected [3, 2]".
    """

    got: Any
    want: Any
    where: str = ""
    words: str = ""


@dataclass(frozen=True)
class Comparison:
    """How a requirement compares outcomes.

    ``tolerance``: relative, instead of the dtype's default; 0 means exact. ``parts``: the parts of an observation that
    count: ``value``, ``error`` (whether there is one, and its class; the value is then ignored), ``mutated``,
    ``shares``, ``stride``, ``offset``, ``requires_grad`` and so on. ``rules``: a different rule for a key of the dict
    that a probe returns: a tolerance, ``AT_MOST`` (at most the reference's number), ``BETWEEN`` (within the expected
    pair of numbers), ``IGNORED``, or ``"as KEY"`` (equal to the value under another key of the same observation). The
    key "" stands for the whole value.
    """

    tolerance: float | None = None
    parts: tuple[str, ...] = ("value", "mutated")
    rules: dict[str, float | str] = field(default_factory=dict)

    def difference(self, got: dict[str, Any], want: dict[str, Any]) -> Difference | None:
        """How one outcome differs from another, or None. An outcome is a dict with an entry for each part."""
        for part in self.parts:
            if part == "value":
                found = self._values(got[part], want[part])
            elif part == "error":
                found = self._errors(got, want)
            elif isinstance(want["value"], Raised):
                # After an error there is no shape to compare, but changes to the arguments still count.
                found = compare(got[part], want[part], where=_PARTS[part]) if part == "mutated" else None
            else:
                found = compare(got[part], want[part], where=_PARTS.get(part, part))
            if found is not None:
                return found
        return None

    def _errors(self, got: dict[str, Any], want: dict[str, Any]) -> Difference | None:
        if want["error"] is not None:
            # Show what was returned instead, not only that no error was raised.
            return compare(got["value"] if got["error"] is None else got["error"], want["error"])
        return None if got["error"] is None else Difference(got["error"], want["value"])

    def _values(self, got: Any, want: Any) -> Difference | None:
        if isinstance(want, Raised) or isinstance(got, Raised):
            return compare(got, want)
        if rule := self.rules.get(""):
            return self._by_rule(rule, got, want, {}, "")
        named = self.rules and isinstance(want, dict)
        if not named:
            return compare(got, want, self.tolerance)
        if not isinstance(got, dict) or got.keys() != want.keys():
            return Difference(got, want)
        for key in want:
            rule = self.rules.get(key, "")
            found = (
                self._by_rule(rule, got[key], want[key], got, key)
                if rule != ""
                else compare(got[key], want[key], self.tolerance, where=key)
            )
            if found is not None:
                return found
        return None

    def _by_rule(self, rule: float | str, got: Any, want: Any, whole: dict[str, Any], where: str) -> Difference | None:
        if isinstance(rule, (int, float)):
            return compare(got, want, rule, where)
        if rule == IGNORED:
            return None
        if rule == AT_MOST:
            fine = _is_number(got) and got <= want
            return None if fine else Difference(got, want, f"{where}, at most".lstrip(", "))
        if rule == BETWEEN:
            return _between(got, want, where)
        other = rule.removeprefix("as ")
        return compare(got, whole.get(other), self.tolerance, where)


_PARTS = {
    "mutated": "arguments that the call changed",
    "shares": "arguments whose memory the result shares",
    "stride": "strides",
    "requires_grad": "whether the result requires a gradient",
}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value


def _between(got: Any, want: Any, where: str) -> Difference | None:
    """How ``got`` misses the range. ``want`` is a pair (low, high), or a list or dict of such pairs."""
    if isinstance(want, dict):
        if not isinstance(got, dict) or got.keys() != want.keys():
            return Difference(got, want, where)
        return next((d for k in want if (d := _between(got[k], want[k], f"{where} {k}".strip()))), None)
    if isinstance(want, list):
        if not isinstance(got, (list, tuple)) or len(got) != len(want):
            return Difference(got, want, where)
        pairs = enumerate(zip(got, want, strict=True), 1)
        return next((d for n, (g, w) in pairs if (d := _between(g, w, f"{where}, item {n}".lstrip(", ")))), None)
    low, high = want
    fine = _is_number(got) and low <= got <= high
    return None if fine else Difference(got, want, f"{where}, between".lstrip(", "))


def compare(got: Any, want: Any, tolerance: float | None = None, where: str = "") -> Difference | None:
    """How ``got`` differs from ``want``, or None if it doesn't.

    Numbers are compared by value (128 equals 128.0, and True isn't a number): integers exactly, others within a
    relative ``tolerance``, by default one that suits the dtype. A 0-dimensional tensor counts as its number. Tensors
    must have the same shape, dtype and device, lists and tuples the same length, dicts the same keys. Errors agree if
    the actual one is of the expected class or a subclass. ``where``: which part of the whole this is.
    """
    found = _compare(got, want, tolerance)
    return found and _inside(where, found)


def _inside(where: str, found: Difference) -> Difference:
    """A difference in one part of a whole, seen from the whole."""
    return replace(found, where=", ".join(filter(None, (where, found.where))))


def _compare(got: Any, want: Any, tolerance: float | None) -> Difference | None:
    # Lists have up to a hundred thousand items, nearly all of them numbers that agree: the shortest way is theirs, and
    # places get their names only where something differs.
    kind = type(want)
    if kind is type(got) and (kind is int or kind is float or kind is str or kind is bool) and got == want:
        return None
    if isinstance(want, Raised):
        fine = isinstance(got, Raised) and want.kind in (got.kind, *got.classes)
        return None if fine else Difference(got, want)
    if isinstance(want, torch.Tensor):
        return _compare_tensors(got, want, tolerance)
    if isinstance(got, torch.Tensor) and got.dim() == 0 and not got.is_meta:
        got = got.item() if isinstance(want, (bool, int, float, complex)) else got
    if isinstance(want, (list, tuple)):
        if not isinstance(got, (list, tuple)):
            return Difference(got, want)
        if len(got) != len(want):
            return Difference(got, want)
        for number, (g, w) in enumerate(zip(got, want, strict=True), 1):
            if found := _compare(g, w, tolerance):
                # Short values are shown whole, long ones where they differ.
                if len(want) > 4 or isinstance(w, (torch.Tensor, list, tuple, dict)):
                    return _inside(f"item {number}" if len(want) > 1 else "", found)
                return Difference(got, want)
        return None
    if isinstance(want, dict):
        if not isinstance(got, dict) or got.keys() != want.keys():
            return Difference(got, want)
        return next((_inside(f"{key}", d) for key in want if (d := _compare(got[key], want[key], tolerance))), None)
    if isinstance(want, bool) or want is None or isinstance(got, bool):
        return None if got is want else Difference(got, want)
    if isinstance(want, (int, float, complex)):
        return None if _same_number(got, want, tolerance) else Difference(got, want)
    return None if type(got) is type(want) and got == want else Difference(got, want)


def _same_number(got: Any, want: complex, tolerance: float | None) -> bool:
    if not isinstance(got, (int, float, complex)) or (isinstance(got, complex) and not isinstance(want, complex)):
        return False
    if got == want or (got != got and want != want):
        return True
    if isinstance(want, int) and tolerance is None:  # counts must match exactly
        return False
    relative = tolerance
    if relative is None:
        relative = _OF_A_SINGLE if _are_singles(got, want) else _OF_A_NUMBER
    try:
        if isinstance(want, complex):
            return math.isfinite(abs(want)) and bool(abs(got - want) <= relative * abs(want))
        return math.isclose(got, want, rel_tol=relative)
    except OverflowError:  # an integer, or the magnitude of a complex number, that is too large for a float
        return False


def _are_singles(a: complex, b: complex) -> bool:
    """Whether both numbers are exactly representable in float32. (Counts may be too, but they must match exactly.)"""
    if not (isinstance(a, float) and isinstance(b, float)) or (a.is_integer() and b.is_integer()):
        return False
    with np.errstate(over="ignore"):
        return all(float(np.float32(x)) == x for x in (a, b))


def _compare_tensors(got: Any, want: torch.Tensor, tolerance: float | None) -> Difference | None:
    if not isinstance(got, torch.Tensor):
        return Difference(got, want)
    for name, mine, theirs in (
        ("shape", list(got.shape), list(want.shape)),
        ("dtype", got.dtype, want.dtype),
        ("device", got.device.type, want.device.type),
    ):
        if mine != theirs:
            return Difference(got, want, name, f"{mine} instead of {theirs}")
    if want.device.type == "meta" or want.numel() == 0:
        return None
    if want.dtype.itemsize == 1 and want.dtype.is_floating_point:  # PyTorch cannot compare float8
        return _compare_tensors(got.float(), want.float(), tolerance or 0.0)
    pair = (got, want)
    if want.is_complex():
        pair = (torch.view_as_real(got.resolve_conj()), torch.view_as_real(want.resolve_conj()))
    if torch.equal(*pair):  # the usual case, in a single operation; NaN isn't equal to itself
        return None
    same = _same_elements(*pair, tolerance)
    if want.is_complex():
        same = same.all(dim=-1)
    if bool(same.all()):
        return None
    count = int((~same).sum())
    place = tuple(int(i) for i in np.unravel_index(int((~same).flatten().byte().argmax()), same.shape))
    if want.numel() > 8:
        few = f"{count:,} of {want.numel():,} elements differ, the first at {list(place)}"
        return Difference(got[place], want[place], few)
    return Difference(got, want)


def _same_elements(got: torch.Tensor, want: torch.Tensor, tolerance: float | None) -> torch.Tensor:
    same = (got == want) | ((got != got) & (want != want))
    if want.is_floating_point() and tolerance != 0.0 and not bool(same.all()):
        relative = _TOLERANCES.get(want.dtype, 1e-5) if tolerance is None else tolerance
        a, b = got.double(), want.double()
        finite = b[torch.isfinite(b)].abs()
        scale = finite.max().item() if finite.numel() else 0.0
        same |= torch.isfinite(b) & ((a - b).abs() <= relative * (b.abs() + 0.1 * scale))
    return same


def alike(got: dict[str, Any], mistaken: dict[str, Any], how: Comparison, want: Any = None) -> bool:
    """Whether an outcome is what a known mistake leads to. The text of errors must agree too, except for numbers.

    Numbers that vary from run to run must be the mistake's own, which only a program that draws the same random numbers
    gets. With ``want``, the expected value, they may lie in a range around those, at least as wide as the expected one.
    """
    if "error" in how.parts and not isinstance(mistaken["value"], Raised):
        return how.difference(got, mistaken) is None
    mine, theirs = got["value"], mistaken["value"]
    if isinstance(mine, Opaque) or isinstance(theirs, Opaque):
        return isinstance(mine, Opaque) and isinstance(theirs, Opaque) and mine.what == theirs.what
    if isinstance(mine, Raised) and isinstance(theirs, Raised):
        # The stored message of a mistake is cut to the same length.
        return mine.kind == theirs.kind and _masked(mine.message[:200]) == _masked(theirs.message[:200])
    if BETWEEN in how.rules.values() or AT_MOST in how.rules.values():
        ranges = {}
        if isinstance(theirs, dict) and isinstance(want, dict):
            varied = [key for key, rule in how.rules.items() if rule == BETWEEN and key in theirs and key in want]
            ranges = {key: found for key in varied if (found := _around(theirs[key], want[key])) is not None}
        left = {k: r for k, r in how.rules.items() if r not in (BETWEEN, AT_MOST)} | dict.fromkeys(ranges, BETWEEN)
        how = Comparison(how.tolerance, how.parts, left)
        mistaken = mistaken | {"value": theirs | ranges} if ranges else mistaken
    got, mistaken = ({**each, "value": _with_singles(each["value"])} for each in (got, mistaken))
    return how.difference(got, mistaken) is None


def _around(mistaken: Any, want: Any) -> Any:
    """A range as wide as ``want`` around a number, or a list or dict of such ranges; None if there is no such range.

    A larger number varies more, and one may vary where the right one doesn't.
    """
    found: Any
    if isinstance(want, dict) and isinstance(mistaken, dict) and want.keys() == mistaken.keys():
        found = {key: _around(mistaken[key], want[key]) for key in want}
        return None if None in found.values() else found
    if isinstance(want, list) and isinstance(mistaken, (list, tuple)) and len(want) == len(mistaken):
        found = [_around(one, other) for one, other in zip(mistaken, want, strict=True)]
        return None if None in found else found
    if isinstance(want, tuple) and _is_number(mistaken) and math.isfinite(mistaken):
        middle, half = (want[0] + want[1]) / 2, (want[1] - want[0]) / 2
        half = max(half, half * abs(mistaken / middle) if middle else 0.0, 0.1 * abs(mistaken))
        return (mistaken - half, mistaken + half) if math.isfinite(half) else None
    return None


def _with_singles(value: Any) -> Any:
    """A value in which float64 tensors whose numbers are all exact in float32 have become float32 tensors.

    A mistake may be to compute in float32, where rounding depends on the machine.
    """
    if isinstance(value, (list, tuple)):
        return type(value)(_with_singles(each) for each in value)
    if isinstance(value, dict):
        return {key: _with_singles(each) for key, each in value.items()}
    if not isinstance(value, torch.Tensor) or value.dtype != torch.float64 or value.device.type == "meta":
        return value
    single = value.float()
    rounded = torch.equal(single.double(), value) and not torch.equal(value.round(), value)
    return single if rounded else value


def _masked(message: str) -> str:
    return re.sub(r"0x[0-9a-f]+|\btmp\w+|\d+(?:\.\d+)?", "#", message)

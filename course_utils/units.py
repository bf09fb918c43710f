"""Numbers with units, for people to read."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

_SIZES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_WORDS = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_PREFIXES = {-9: "n", -6: "µ", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}


def parse(text: str, unit: str = "") -> float:
    """A number as people write it: ``"15T"`` and ``"15 trillion"`` are 15e12, ``"0.4"`` 0.4, ``"1,024"`` 1,024.

    If you give a unit, the text may end in it: ``parse("80GB", "B")`` and ``parse("80G", "B")`` are 80e9,
    ``parse("80 GiB", "B")`` is 80 · 2³⁰. A capital B alone means billion, unless the unit is bytes: then ``"24B"`` is
    24 bytes.

    Raises:
        ValueError: the text isn't such a number.
    """
    number, rest = _split(text)
    if unit and rest.endswith(unit):
        rest = rest.removesuffix(unit).rstrip()
    sizes = _SIZES | _WORDS | (_BINARY if unit == "B" else {})
    if number is None or rest not in sizes:
        examples = "24G, 80GB or 80GiB" if unit == "B" else f"0.4, 15e12 or 15T{f' {unit}' if unit else ''}"
        raise ValueError(f"{text!r} is not a number; expected one such as {examples}")
    return number * sizes[rest]


def _split(text: str) -> tuple[float | None, str]:
    match = re.fullmatch(r"\s*([+-]?[0-9_.,]+(?:e[+-]?\d+)?)\s*([A-Za-z/]*)\s*", text)
    if match and "," in match[1] and not re.match(r"[+-]?\d{1,3}(?:,\d{3})+(?![\d,_])", match[1]):
        return None, ""  # not between thousands, so it may be a decimal comma
    try:
        return (float(match[1].replace(",", "")), match[2]) if match else (float(text), "")
    except ValueError:
        return None, ""


def takes_prefix(unit: str) -> bool:
    """Whether numbers in this unit get decimal prefixes, as bytes, seconds, FLOPs, and their rates do."""
    return re.fullmatch(r"(B|s|FLOPs?)(/s)?", unit) is not None


def raised(exponent: int | str) -> str:
    """Digits and signs as superscripts: ``raised(-14)`` is ``"⁻¹⁴"``."""
    return f"{exponent}".translate(_RAISED)


def plain(value: float) -> str:
    """A number to three significant digits, without a prefix: ``"0.25"``, ``"1,024"``, ``"3.14e23"``."""
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"
    return re.sub(r"e\+?(-?)0?", r"e\1", f"{value:.2e}") if math.isfinite(value) else str(value)


def counted(value: float) -> str:
    """A count to three significant digits, with words for large numbers: ``"70 billion"``, ``"1,024"``, ``"3e17"``."""
    if value >= 0.9995e15:
        return plain(value)
    for size, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if value >= 0.9995 * size:
            return f"{plain(value / size)} {word}"
    return plain(value)


def duration(days: float) -> str:
    """A time, given in days, in the largest unit of which it's at least two: ``duration(0.5)`` is ``"12 hours"``."""
    for unit, size in (("years", 365.25), ("days", 1.0), ("hours", 1 / 24), ("minutes", 1 / 1440)):
        if days >= 2 * size:
            return f"{plain(days / size)} {unit}"
    return f"{plain(days * 86_400)} seconds"


def readable(value: float, unit: str) -> str:
    """A number to three significant digits, with its unit: ``readable(2_415_919_104, "B")`` is ``"2.42 GB"``.

    Units that take no prefix follow the plain number: ``"0.25 FLOP/B"``. The same goes for counts of 1e21 and more,
    whose prefixes nobody knows (``"3.14e23 FLOPs"``), and for long times (``"1,234 s"``).
    """
    if takes_prefix(unit) and value and math.isfinite(value):
        for exponent, prefix in _PREFIXES.items():
            if abs(value) < 999.5 * 10.0**exponent and not (unit == "s" and exponent > 0):
                return f"{value / 10.0**exponent:.3g} {prefix}{unit}"
    return f"{plain(value)} {unit}".strip()


def ticks(values: Sequence[float], unit: str = "") -> list[str]:
    """The positive numbers along an axis in one notation: as :func:`readable` has them, or all as powers of ten.

    ``ticks([1, 100, 1e4])`` is ``["1", "100", "10,000"]``, but ``ticks([1, 1e-4, 2e-8])`` is
    ``["1", "10⁻⁴", "2 · 10⁻⁸"]``. The unit follows each number.
    """
    words = [readable(value, unit) for value in values]
    if not any(re.match(r"[\d.]+e", word) for word in words):
        return words
    return [f"{_power(value)} {unit}".strip() for value in values]


def _power(value: float) -> str:
    if 1 <= value < 99.95:
        return plain(value)
    digits, exponent = f"{value:.2e}".split("e")
    return ("" if float(digits) == 1 else f"{float(digits):g} · ") + "10" + raised(int(exponent))


def compared(what: str, guess: float | None, answer: float, unit: str) -> str:
    """The answer in one line, with the guess and how far off it was, if there is a guess.

    Counts below 100 are compared by their difference, other numbers by the factor between them.
    """
    line = f"{what}: {readable(answer, unit)}"
    if guess is None:
        return line
    said = readable(guess, unit if takes_prefix(unit) else "")  # other units already follow the answer
    line += f"; you said {said}"
    side = "high" if guess > answer else "low"
    if answer == int(answer) < 100 and not takes_prefix(unit) and guess != answer and not guess < 0 < answer:
        return f"{line}, {side} by {plain(abs(guess - answer))}"
    if guess == answer or (guess > 0 and answer > 0 and 0.95 < guess / answer < 1.05):
        return f"{line}: right"
    if guess > 0 and answer > 0:
        return f"{line}, {side} by a factor of {plain(max(guess, answer) / min(guess, answer))}"
    return f"{line}, but the answer is positive" if answer > 0 else line


def format_bytes(n: float) -> str:
    """Bytes in both families of units: ``format_bytes(2415919104)`` is ``"2.42 GB = 2.25 GiB"``.

    Data sheets use GB = 10⁹ bytes; tools such as nvidia-smi use GiB = 2³⁰ bytes. Below 1024 bytes there's
    only one unit: "128 B".

    Raises:
        ValueError: n is not a finite number.
    """
    if not math.isfinite(n):
        raise ValueError(f"format_bytes was given {n}; expected a finite number of bytes.")
    if abs(n) < 1024:
        return f"{n:g} B"
    size, binary, rank = n / 1000, n / 1024, 0
    while abs(size) >= 999.5 and rank < 5:
        size, binary, rank = size / 1000, binary / 1024, rank + 1
    return f"{size:.3g} {'kMGTPE'[rank]}B = {binary:.3g} {'KMGTPE'[rank]}iB"

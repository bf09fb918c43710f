"""Predict, then measure: sets a reader's number beside the measured one."""

from __future__ import annotations

import math

from course_utils.units import readable, takes_prefix


def reconcile(what: str, guess: float | None, measured: float, unit: str) -> None:
    """Print what was measured beside what was guessed, with the factor between them (the difference, for small counts).

    ``guess`` is None where the reader has not written one; then only the measurement is shown, with a nudge.
    Raises ValueError for a guess that is not a number.
    """
    if guess is None:
        print(f"{what}: {readable(measured, unit)}   (write your own guess above next time, before you run this)")
        return
    if isinstance(guess, bool) or not isinstance(guess, (int, float)) or math.isnan(guess):
        raise ValueError(f"a guess is a number in {unit}, such as {measured:.0e}; got {guess!r}")
    line = f"{what}: {readable(measured, unit)}, and you guessed {readable(guess, unit)}"
    counted = measured == int(measured) < 100 and not takes_prefix(unit)
    if counted and guess != measured:
        print(f"{line}: too {'high' if guess > measured else 'low'} by {abs(guess - measured):g}.")
    elif guess <= 0 or measured <= 0:
        print(line)
    elif 0.95 < guess / measured < 1.05:
        print(f"{line}: right.")
    else:
        factor = max(guess, measured) / min(guess, measured)
        print(f"{line}: too {'high' if guess > measured else 'low'} by a factor {factor:.3g}.")

"""Predict, then see: show a reader's guess beside the answer, save it, and plot all guesses at the end of the course.

The first guess at each answer is saved in ``predictions.json`` beside the lectures' folders (the environment
variable COURSE_PREDICTIONS names another file). It stays on this machine; delete it to start over.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from course_utils import keeping, plots
from course_utils.units import compared, plain

FILE_VARIABLE = "COURSE_PREDICTIONS"
MEASUREMENTS_VARIABLE = "COURSE_MEASUREMENTS"
_asked: dict[str, tuple[float | None, float, str]] = {}  # what `reconcile` last compared in this kernel


@dataclass(frozen=True)
class Prediction:
    """One guess and the number that it was compared with, calculated or measured, both in ``unit``.

    ``lecture`` is the notebook's folder, or "" elsewhere.
    """

    lecture: str
    what: str
    guess: float
    measured: float
    unit: str


def record(what: str, measured: float, unit: str) -> None:
    """Append a number to the file named by COURSE_MEASUREMENTS; do nothing if the variable isn't set.

    Raises:
        OSError: the file cannot be written.
    """
    if path := os.environ.get(MEASUREMENTS_VARIABLE):
        line = {"lecture": keeping.lecture(), "what": what, "measured": float(measured), "unit": unit}
        with open(path, "a", encoding="utf-8") as stream:
            stream.write(json.dumps(line, ensure_ascii=False) + "\n")


def reconcile(what: str, guess: float | None, measured: float, unit: str) -> None:
    """Print the answer in one line, with the guess and how far off it was, and save the guess for `calibration`.

    If the reader made no guess, ``guess`` is None; then the line is only the answer, and nothing is saved. A second
    guess is shown in the line, but the file keeps the first one.

    Raises:
        ValueError: the guess is not a number.
    """
    record(what, measured, unit)
    said = isinstance(guess, (int, float)) and not isinstance(guess, bool) and math.isfinite(guess)
    if guess is not None and not said:
        raise ValueError(f"a guess is a number in {unit}, such as {measured:.0e}; got {guess!r}")
    _asked[what] = (guess, float(measured), unit)
    print(compared(what, guess, measured, unit))
    if guess is not None:
        _keep(Prediction(keeping.lecture(), what, float(guess), float(measured), unit))


def asked(what: str) -> tuple[float | None, float, str] | None:
    """The guess at ``what``, the answer, and their unit; None if this lecture hasn't compared them yet.

    The guess is the first one, which the file keeps; it's None if the reader made none.
    """
    kept = []
    with contextlib.suppress(ValueError):
        kept = [p for p in predictions() if (p.lecture, p.what) == (keeping.lecture(), what)]
    return (kept[0].guess, kept[0].measured, kept[0].unit) if kept else _asked.get(what)


def predictions(path: Path | None = None) -> list[Prediction]:
    """The guesses saved so far, in the order in which they were made; [] if the file doesn't exist.

    Raises:
        ValueError: the file cannot be read; the message explains what to do.
    """
    path = path or _file()
    try:
        return [Prediction(**entry) for entry in json.loads(path.read_text(encoding="utf-8"))]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(
            f"{path} should hold your guesses but cannot be read ({error}). Move it away to start again."
        ) from error


def calibration(path: Path | None = None) -> None:
    """Plot every saved guess divided by its answer, lecture by lecture, to show how well calibrated you've become.

    With fewer than five positive guesses it only prints how many there are.

    Raises:
        ValueError: the file with the guesses cannot be read.
    """
    # A logarithmic axis has no place for 0.
    kept = [p for p in predictions(path) if p.guess > 0 and p.measured > 0]
    if len(kept) < 5:
        print(f"Guesses saved so far: {len(kept)}. Once there are five, this cell plots how close they came.")
        return
    kept.sort(key=lambda p: p.lecture)  # stable: within a lecture they stay in order
    factors = [max(p.guess, p.measured) / min(p.guess, p.measured) for p in kept]
    good = sum(factor < 2 for factor in factors)
    finding = (
        f"{good} of your {len(kept)} guesses are within a factor of 2; the median factor is {plain(median(factors))}"
    )
    half = len(kept) // 2
    if half >= 5:
        first, others = (plain(median(some)) for some in (factors[:half], factors[half:]))
        finding += f" ({first} in the first {half} and {others} in the others)"
    rows = [(p.lecture[:2] or "other", p.guess / p.measured) for p in kept]
    plots.show(plots.calibration(rows, title=finding), alt=finding + ".")


def _file() -> Path:
    return keeping.file(FILE_VARIABLE, "predictions.json")


def _keep(new: Prediction) -> None:
    """Add a guess to the file. If that fails, tell the reader and let the lecture continue."""
    path = _file()
    try:
        kept = predictions(path)
        if any((p.lecture, p.what) == (new.lecture, new.what) for p in kept):
            return
        keeping.write(path, [asdict(p) for p in [*kept, new]])
    except (OSError, ValueError) as error:
        print(f"Your guess could not be saved: {error}")

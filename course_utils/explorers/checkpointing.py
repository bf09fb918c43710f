"""How often to save a training run: what saving costs, and what a failure loses."""

from __future__ import annotations

import math
from functools import partial

from course_utils.explorers.drawing import Axis, Drawing, axes, curve
from course_utils.explorers.explorer import Explorer, Panel, Picture

INTERVALS = [60 * m for m in (1, 1.5, 2, 3, 4, 5, 7, 10, 15, 20, 30, 45)]
INTERVALS += [3_600 * h for h in (1, 1.5, 2, 3, 4, 6, 8, 12, 18, 24)]
SAVING = [1, 2, 5, 10, 20, 30, 60, 120, 180, 300, 600]
CARDS = [2**k for k in range(3, 18)]
_HEIGHT = 310.0


def best_interval(saving: float, between_failures: float) -> float:
    """Seconds between saves that lose the least time, √(2 · saving · between_failures). Source: Young 1974."""
    return math.sqrt(2 * saving * between_failures)


def lost(interval: float, saving: float, between_failures: float) -> tuple[float, float]:
    """The fractions of time lost to saving, and to computing again after failures (half an interval for each)."""
    return saving / interval, interval / (2 * between_failures)


def explore(cards: int = 16_384, *, years: float = 5.78, saving: float = 60) -> Explorer:
    """Controls for the interval between saves, the seconds of a save, and the cards, above the fraction of time lost.

    Args:
        cards: a power of two from 8 to 131,072.
        years: that one card runs before it fails, on average; by default as in Llama 3's run: 419 failures in 54
            days on 16,384 cards.
        saving: seconds that training stops for each save.
    """
    arguments = {"cards": cards, "years": years, "saving": saving}
    return Explorer("checkpointing", partial(show, first=arguments), arguments)


def show(panel: Panel, *, first: dict[str, float]) -> Picture:
    """The two losses and their sum against the interval, on logarithmic axes."""
    cards = panel.slider("cards", CARDS, int(first["cards"]), "{:,}".format)
    saving = panel.slider("saving", SAVING, first["saving"], _time, label="a save takes")
    panel.row()
    interval = panel.slider("interval", INTERVALS, 3_600, _time, label="save every")
    place = panel.dragged("point")
    left, right = 52.0, panel.width - 16.0
    x = Axis(INTERVALS[0], INTERVALS[-1], left, right, log=True)
    y = Axis(0.001, 10, _HEIGHT - 44, 22, log=True)
    if place:
        interval = x.nearest(INTERVALS, place[0])
        panel.put("interval", _time(interval))

    between = first["years"] * 365.25 * 86_400 / cards
    best = best_interval(saving, between)
    parts = lost(interval, saving, between)
    total, least = sum(parts), sum(lost(best, saving, between))

    drawing = Drawing(panel.width, _HEIGHT)
    axes(
        drawing, x, y, xlabel="time between saves", ylabel="fraction of time lost",
        xwords=_time, ywords=lambda v: f"{100 * v:,.3g}%" if v < 1 else f"{v:,.0%}",
        xticks=[60, 600, 3_600, 21_600, 86_400],
    )  # fmt: skip
    grid = [x.value(left + (right - left) * i / 60) for i in range(61)]
    for number, (label, dashes) in enumerate({"saving": "7 4", "computed again": "2 4"}.items()):
        line = curve(x, y, [(s, lost(s, saving, between)[number]) for s in grid])
        if line:
            drawing.line(line, "data", dashes=dashes, width=2, key=label)
    drawing.line(curve(x, y, [(s, sum(lost(s, saving, between))) for s in grid]), "compute", width=3, key="sum")
    drawing.line([(x(best), y(least)), (x(best), y.start)], "context", dashes="3 4", key="best")
    drawing.line([(x(interval), y(total)), (x(interval), y.start)], "highlight", width=1, key="drop")
    for number, label in enumerate(("saving", "computed again")):
        # The label goes where the line leaves room: above a falling line, below a rising one.
        above = [(s, y(lost(s, saving, between)[number]) + (18 if number else -6)) for s in grid]
        free = [(s, level) for s, level in above[2 if number else 38 :] if y.end + 12 < level < y.start - 20]
        if free:
            drawing.text(x(free[0][0]), free[0][1], label, look="quiet clear", key=f"{label} text")
    late = x(best) > (left + right) / 2
    at = x(best) - 5 if late else x(best) + 5
    drawing.text(
        at, y.start - 6, f"best: {_time(best)}", anchor="end" if late else "start", look="ink clear", key="best text"
    )
    drawing.handle(
        x(interval), y(total), sets="point", within=(left, 0, right, _HEIGHT), label="drag to another interval"
    )

    waste = _share(total)
    title = f"Saving every {_time(interval)} loses {waste}; every {_time(best)} loses {_share(least)}"
    if total < 1.02 * least:
        title = f"Saving every {_time(interval)} loses {waste}: no interval loses less"
    finding = (
        f"With {cards:,} cards, one fails every {_time(between)}. Saving takes {_share(parts[0])}, and repeating work "
        f"after failures {_share(parts[1])}. The two are equal at the best interval, √(2 · {_time(saving)} · "
        f"{_time(between)}) = {_time(best)}."
    )
    if best > saving * 2 and interval <= saving:
        finding += " When an interval is shorter than a save, most of the time goes into saving."
    return Picture(title, drawing, finding)


def _share(lost: float) -> str:
    return f"{lost:.2g} times the useful time" if lost >= 1 else f"{100 * lost:.2g}% of the time"


def _time(seconds: float) -> str:
    for size, unit in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= size * 0.9995:
            said = f"{seconds / size:.3g}"
            return f"{said} {'day' if unit == 'days' and said == '1' else unit}"
    return f"{seconds:.3g} s"

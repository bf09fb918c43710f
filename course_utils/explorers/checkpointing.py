"""How often to save a training run: what saving costs, and what a failure loses."""

from __future__ import annotations

import math
from functools import partial

from course_utils.explorers.drawing import Axis, Drawing, axes, wide
from course_utils.explorers.explorer import Explorer, Panel, Picture

INTERVALS = [60 * m for m in (1, 1.5, 2, 3, 4, 5, 7, 10, 15, 20, 30, 45)]
INTERVALS += [3_600 * h for h in (1, 1.5, 2, 3, 4, 6, 8, 12, 18, 24)]
SAVING = [1, 2, 5, 10, 20, 30, 60, 120, 180, 300, 600]
CARDS = [2**k for k in range(3, 18)]
_HEIGHT = 310.0
_MOST = 1e4  # a fraction: what costs more takes forever, and has no number


def best_interval(saving: float, between_failures: float) -> float:
    """Seconds between saves that lose the least time: where the derivative of `lost`'s sum is 0, found by halving."""
    low, high = 0.0, 1.0  # in units of between_failures
    for _ in range(60):
        middle = (low + high) / 2
        too_low = middle + math.expm1(-middle - saving / between_failures) < 0
        low, high = (middle, high) if too_low else (low, middle)
    return high * between_failures


def young(saving: float, between_failures: float) -> float:
    """Its approximation in seconds, where failures are far apart compared with a save. Source: Young 1974."""
    return math.sqrt(2 * saving * between_failures)


def lost(interval: float, saving: float, between_failures: float) -> tuple[float, float]:
    """The time lost to saving, and to failures, as fractions of the useful time.

    Failures are independent of each other, and restarting takes no time: then an interval and its save take M (e^((τ +
    δ) / M) − 1) seconds on average, because a failure in them repeats them from the last save on. Source: Daly 2006.
    """
    exponent = min((interval + saving) / between_failures, 700.0)  # the largest that a float holds, about
    return saving / interval, (between_failures * math.expm1(exponent) - interval - saving) / interval


def explore(cards: int = 16_384, *, years: float = 5.78, saving: float = 60) -> Explorer:
    """Controls for the interval between saves, the seconds of a save, and the cards, above the time lost.

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
    y = Axis(1e-4, 10, _HEIGHT - 44, 22, log=True)
    if place:
        interval = x.nearest(INTERVALS, place[0])
        panel.put("interval", _time(interval))

    between = first["years"] * 365.25 * 86_400 / cards
    best = best_interval(saving, between)
    parts = lost(interval, saving, between)
    total, least = sum(parts), sum(lost(best, saving, between))

    drawing = Drawing(panel.width, _HEIGHT + 16 * panel.narrow)
    axes(
        drawing, x, y, xlabel="time between saves", ylabel="time lost, on top of the useful time",
        xwords=_time, ywords=lambda v: f"{100 * v:,.3g}%" if v < 1 else f"{v:,.0%}",
        xticks=[60, 600, 3_600, 21_600, 86_400],
    )  # fmt: skip
    grid = [x.value(left + (right - left) * i / 60) for i in range(61)]
    for number, (label, dashes) in enumerate({"saving": "7 4", "computed again": "2 4"}.items()):
        line = [(s, lost(s, saving, between)[number]) for s in grid]
        drawing.curve(x, y, line, "data now", dashes=dashes, width=2, key=label)
    drawing.curve(x, y, [(s, sum(lost(s, saving, between))) for s in grid], "compute past", width=3, key="sum")
    shown = x.low <= best <= x.high
    if shown:
        drawing.line([(x(best), y(least)), (x(best), y.start)], "context now", dashes="3 4", key="best")
    if total >= y.low:
        drawing.line([(x(interval), y(total)), (x(interval), y.start)], "highlight past", width=1, key="drop")
    for number, label in enumerate(("saving", "computed again")):
        # The label goes where the line leaves room: above a falling line, below a rising one.
        above = [(s, y(lost(s, saving, between)[number]) + (18 if number else -6)) for s in grid]
        free = [(s, level) for s, level in above[2 if number else 38 :] if y.end + 12 < level < y.start - 20]
        if free and x(free[0][0]) + wide(label) <= panel.width:
            drawing.text(x(free[0][0]), free[0][1], label, look="quiet clear", key=f"{label} text")
    said = f"best: {_time(best)}"
    late, length = x(best) > (left + right) / 2, wide(said) + 10
    if late and x(best) - length < x(interval) < x(best) < right - length:
        late = False  # the line of this interval would cross the label
    at = x(best) - 5 if late else x(best) + 5
    if not shown:  # an arrow to the end of the axis, and the label beside it
        tail = x(best) - 24 if late else x(best) + 24
        drawing.line([(tail, y.start - 10), (x(best), y.start - 10)], "context now", arrow=True, key="best off")
        at = tail - 5 if late else tail + 5
    drawing.text(at, y.start - 6, said, anchor="end" if late else "start", look="ink clear", key="best text")
    drawing.before(right, _HEIGHT + 8 if panel.narrow else 12)
    drawing.point(
        x(interval), y, total, _share(total), sets="point", within=(left, 0, right, _HEIGHT),
        label="drag to another interval",
    )  # fmt: skip

    title = f"Saving every {_time(interval)} costs {_share(total)} on top of the useful time"
    if total < 1.02 * least:
        title += ": no interval costs noticeably less"
    elif total <= _MOST:
        title += f"; every {_time(best)} costs {_share(least)}"
    finding = (
        f"With {cards:,} cards, one fails every {_time(between)}. Saving takes {_share(parts[0])} of the useful time, "
        f"and computing lost work again takes {_share(parts[1])}. The best interval is {_time(best)}; "
        f"Young's approximation is √(2 · {_time(saving)} · {_time(between)}) = {_time(young(saving, between))}."
    )
    if parts[0] > 1 + parts[1]:
        finding += " A save takes longer than the work before it: most of the time goes into saving."
    return Picture(title, drawing, finding)


def _share(lost: float) -> str:
    if lost > _MOST:
        return "over 1,000,000%"
    return f"{float(f'{100 * lost:.2g}'):,g}%"


def _time(seconds: float) -> str:
    for size, unit in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= size * 0.9995:
            said = f"{seconds / size:.3g}"
            return f"{said} {'day' if unit == 'days' and said == '1' else unit}"
    return f"{seconds:.3g} s"

"""Numbers side by side: curves over a common x, and predictions beside measurements."""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from course_utils.plots.axes import (
    add_title,
    chart,
    label_ends,
    legend,
    log_ticks,
    mark,
    note,
    positive,
    ratio,
    wrap_title,
)
from course_utils.plots.style import CONTEXT, INK, MARKERS, styled
from course_utils.units import plain, readable, takes_prefix


def curves(
    x: Sequence[float],
    measured: Mapping[str, Sequence[float]],
    predicted: Mapping[str, Sequence[float]] = {},
    *,
    xlabel: str,
    ylabel: str,
    xunit: str = "",
    yunit: str = "",
    shares: bool = False,
    against: str = "measured",
    title: str,
) -> Figure:
    """Draw curves over a common x on two logarithmic axes; measurements are filled, predictions hollow.

    Args:
        x: The common x values, ascending.
        measured: For each label the values at each x.
        predicted: The same for computed values; a label that's also in ``measured`` gets the same marker.
        xlabel, ylabel: What the axes show.
        xunit, yunit: Their units: B, s, FLOP and units made of them get decimal prefixes.
        shares: The values are fractions of a whole; the y axis is linear, from 0 to 100%.
        against: What the legend calls the filled marks, where nobody measured them, such as "counted".
        title: The finding.

    Raises:
        TypeError: Something that should be a number isn't.
        ValueError: There's nothing to draw, lengths differ, x isn't ascending, or a number isn't positive and finite.
    """
    kinds = ((True, measured), (False, predicted))
    drawn = [(label, is_measured, values) for is_measured, kind in kinds for label, values in kind.items()]
    if not x or not drawn:
        raise ValueError("nothing to draw: give at least one x and one curve")
    if any(b <= a for a, b in itertools.pairwise(x)):
        raise ValueError(f"x must be ascending, got {list(x)}: sort the points")
    for value in x:
        positive(value, "an x")
    for label, _, values in drawn:
        if len(values) != len(x):
            raise ValueError(f"{label!r} has {len(values)} values for {len(x)} x: give one for each")
        for value in values:
            if shares and value == 0:
                continue
            if positive(value, f"a value of {label!r}") > 1 and shares:
                raise ValueError(f"a value of {label!r} is {value}: expected a fraction from 0 to 1")
    markers = dict(zip(dict.fromkeys(label for label, _, _ in drawn), itertools.cycle(MARKERS)))
    low, high = (f(v for _, _, values in drawn for v in values) for f in (min, max))
    with styled():
        fig, ax = chart(8.9, 4.8, title, left=1.1, right=0.4 + 0.085 * max(map(len, markers)))
        ax.set(xscale="log", xlim=(x[0] / 1.4, x[-1] * 1.4), xlabel=xlabel, ylabel=ylabel)
        log_ticks(ax.xaxis, *ax.get_xlim(), xunit, most=8)
        if shares:
            ax.set(ylim=(-0.04, 1.04), yticks=(0, 0.25, 0.5, 0.75, 1))
            ax.yaxis.set_major_formatter(PercentFormatter(1))
        else:
            ax.set(yscale="log", ylim=(low / 2, high * 2))
            log_ticks(ax.yaxis, *ax.get_ylim(), yunit, most=8)
        ax.grid(True)
        for label, is_measured, values in drawn:
            ax.plot(x, values, color=INK, linewidth=1.2, alpha=0.7, zorder=2, linestyle="-" if is_measured else "--")
            for place, value in zip(x, values, strict=True):
                mark(ax, place, value, markers[label], measured=is_measured, gid=label)
        label_ends(ax, {label: (x[-1], values[-1]) for label, _, values in reversed(drawn)})
        legend(fig, measured=bool(measured), predicted=bool(predicted), names=(against, "predicted"))
    return fig


def predicted_vs_measured(
    rows: Sequence[tuple[str, float, float, str]],
    *,
    against: str = "measured",
    others: Mapping[str, str] = {},
    title: str | None = None,
) -> Figure:
    """Draw predictions beside measurements, on a log axis for each unit, with their ratio.

    With more than 20 rows, they're drawn closer together so that the figure fits on a screen.

    Args:
        rows: ``(label, predicted, measured, unit)``, such as ``("2·B·D·K", 1.4e10, 1.4e10, "FLOPs")``. Numbers in B, s,
            FLOP and units made of these get decimal prefixes (GB = 1e9 B); others don't.
        against: What the legend and the columns call the numbers that aren't predicted, such as "published".
        others: By unit, the name of what its measurements are compared with, where that isn't a prediction.
        title: The finding; by default how far off the worst prediction was.

    Raises:
        TypeError: Something that should be a number isn't, such as a missing prediction.
        ValueError: There are no rows, or a number is not positive and finite.
    """
    if not rows:
        raise ValueError("nothing to draw: give at least one row (label, predicted, measured, unit)")
    for label, predicted, measured, _ in rows:
        positive(predicted, f"the prediction of {label!r}")
        positive(measured, f"the measurement of {label!r}")
    if title is None:
        worst, factor = max(((r[0], max(r[2] / r[1], r[1] / r[2])) for r in rows), key=lambda pair: pair[1])
        title = (
            f"Every prediction is within a factor of {math.ceil(factor * 10) / 10:.1f} of the measurement"
            if factor < 2
            else f"Farthest off: {worst}, by a factor of {plain(factor)}"
        )
    units = list(dict.fromkeys(unit for *_, unit in rows))
    panels = [[row for row in rows if row[3] == unit] for unit in units]
    # With many rows, labels have room for one line each; the 12-point marks limit how close rows can be.
    wrap, left, least, lead = (26, 2.15, 0.36, 0.12) if len(rows) <= 20 else (42, 3.25, 0.19, 0.02)
    names = {row[0]: textwrap.wrap(row[0], wrap) or [""] for row in rows}
    row_height = [[max(least, lead + 0.17 * len(names[row[0]])) for row in panel] for panel in panels]

    width, right, axis_room = 8.9, 3.35, 0.62
    title_lines = wrap_title(title, width)
    head = 0.2 + 0.24 * len(title_lines) + 0.36
    height = head + sum(sum(h) + axis_room for h in row_height) + 0.2
    edges = (1.15, 2.15, 3.2)  # the columns' right edges, in inches from the axes'

    with styled():
        fig = Figure(figsize=(width, height))
        add_title(fig, title_lines)
        down = head
        for number, (unit, panel, heights) in enumerate(zip(units, panels, row_height, strict=True)):
            ax = fig.add_axes(
                (left / width, 1 - (down + sum(heights)) / height, 1 - (left + right) / width, sum(heights) / height)
            )
            down += sum(heights) + axis_room
            low = min(min(row[1:3]) for row in panel)
            high = max(max(row[1:3]) for row in panel)
            ax.set(xscale="log", xlim=(low / 2, high * 2), ylim=(sum(heights), 0))
            shown = unit if takes_prefix(unit) else ""  # other units are written once, below the axis
            log_ticks(ax.xaxis, low / 2, high * 2, shown, most=4)
            ax.set_xlabel("" if shown else unit)
            ax.spines.left.set_visible(False)
            ax.tick_params(axis="y", length=0)
            ax.grid(True, axis="x")
            middles = [sum(heights[:i]) + h / 2 for i, h in enumerate(heights)]
            ax.set_yticks(middles, ["\n".join(names[row[0]]) for row in panel])
            for y, (label, predicted, measured, _) in zip(middles, panel, strict=True):
                ax.plot([predicted, measured], [y, y], color=INK, linewidth=1.2, alpha=0.7, zorder=1)
                color = CONTEXT if unit in others else ""
                mark(ax, predicted, y, "D", measured=False, gid=f"predicted {label}", color=color)
                mark(ax, measured, y, "o", measured=True, gid=f"measured {label}")
                texts = (readable(predicted, shown), readable(measured, shown), f"× {ratio(measured / predicted)}")
                for text, edge in zip(texts, edges, strict=True):
                    weight = "bold" if text.startswith("×") else "normal"
                    beside: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "size": 9.5, "weight": weight}
                    note(ax, text, (1, y), (edge * 72, 0), ha="right", va="center", **beside)
            if number == 0 or unit in others:
                other = others.get(unit, "predicted")
                for name, edge in zip((other, against, f"{against} ÷\n{other}"), edges, strict=True):
                    above: dict[str, Any] = {"xycoords": "axes fraction", "alpha": 0.75}
                    note(ax, name, (1, 1), (edge * 72, 3), ha="right", va="bottom", **above)
        legend(fig, measured=True, predicted=True, markers=("o", "D"), names=(against, "predicted"))
    return fig


_CALIBRATION_EDGE = 100.0


def calibration(rows: Sequence[tuple[str, float]], *, title: str) -> Figure:
    """Draw guesses divided by the answers, in groups, on a log axis around 1, with the band of a factor of 2.

    Guesses that are off by more than a factor of 100 are drawn at the edge, labeled with their factor.

    Args:
        rows: ``(group, guess ÷ answer)`` in the order in which they were made, group by group.
        title: The finding.

    Raises:
        TypeError: Something that should be a number isn't.
        ValueError: There are no rows, or a ratio is not positive and finite.
    """
    if not rows:
        raise ValueError("nothing to draw: give at least one row (group, guess ÷ answer)")
    ratios = [positive(value, f"a ratio of {group!r}") for group, value in rows]
    furthest = max(4.0, *ratios, *(1 / value for value in ratios))
    reach = 1.5 * min(furthest, _CALIBRATION_EDGE)
    with styled():
        fig, ax = chart(8.9, 3.9, title, left=1.1, right=1.75)
        ax.set(yscale="log", ylim=(1 / reach, reach), xlim=(-0.8, len(rows) - 0.2), ylabel="guess ÷ answer")
        log_ticks(ax.yaxis, 1 / reach, reach, "", most=7)
        ax.axhspan(0.5, 2, color=CONTEXT, alpha=0.25, linewidth=0)
        ax.axhline(1, color=INK, linewidth=1.2)
        for place, value in enumerate(ratios):
            shown = min(max(value, 1 / _CALIBRATION_EDGE), _CALIBRATION_EDGE)
            marker = "D" if shown == value else "^" if value > 1 else "v"
            mark(ax, place, shown, marker, measured=False, gid=f"guess {place}")
            if shown != value:
                side = -1 if value > 1 else 1
                about: dict[str, Any] = {"ha": "center", "va": "center", "size": 8.5}
                note(ax, f"× {plain(value)}", (place, shown), (0, 13 * side), **about)
        starts = [i for i, (group, _) in enumerate(rows) if i == 0 or group != rows[i - 1][0]]
        middles = [(start + end - 1) / 2 for start, end in itertools.pairwise([*starts, len(rows)])]
        for start in starts[1:]:
            ax.axvline(start - 0.5, color=CONTEXT, linewidth=0.8)
        ax.set_xticks(middles, [rows[start][0] for start in starts])
        ax.tick_params(axis="x", length=0)
        ax.set_xlabel("lecture")
        for value, text in ((1.0, "right"), (2.0, "high by a factor of 2"), (0.5, "low by a factor of 2")):
            note(ax, text, (1, value), (6, 0), xycoords=("axes fraction", "data"), va="center", annotation_clip=False)
    return fig

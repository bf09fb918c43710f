"""Shared by all figures: titles, marks, label placement, logarithmic ticks."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.text import Annotation, Text
from matplotlib.transforms import Bbox
from numpy.typing import NDArray

from course_utils import units
from course_utils.plots.style import INK, MEASURED, PREDICTED
from course_utils.units import plain


def positive(value: float, what: str) -> float:
    """Return ``value`` as a float. Raise an error if it can't be a divisor or be drawn on a logarithmic axis."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{what} is {value!r}: it must be a number") from None
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{what} is {value}: it must be positive and finite to be drawn")
    return number


def ratio(value: float) -> str:
    return f"{value:.2f}" if 0.1 <= value < 10 else plain(value)


def chart(width: float, height: float, title: str, *, left: float, right: float) -> tuple[Figure, Axes]:
    """A figure with one axes and fixed margins in inches, so that positions are final before labels are placed."""
    fig = Figure(figsize=(width, height))
    lines = wrap_title(title, width)
    add_title(fig, lines)
    top = 0.28 + 0.24 * len(lines)
    return fig, fig.add_axes((left / width, 0.62 / height, 1 - (left + right) / width, 1 - (0.62 + top) / height))


def wrap_title(title: str, width: float) -> list[str]:
    return textwrap.wrap(title, int(width * 96 / 9.8))  # a bold 12 pt letter is about 9.5 px wide


def add_title(fig: Figure, lines: Sequence[str]) -> None:
    width, height = fig.get_size_inches()
    for i, line in enumerate(lines):
        fig.text(0.12 / width, 1 - (0.12 + 0.24 * i) / height, line, size=12, weight="bold", va="top")


def mark(ax: Axes, x: float, y: float, marker: str, *, measured: bool, gid: str, color: str = "") -> None:
    """A filled mark for a measurement, a larger hollow one for a prediction, so that both are visible where they meet.

    ``color`` replaces the usual color of its kind.
    """
    ax.plot(
        [x],
        [y],
        marker=marker,
        linestyle="none",
        markersize=8 if measured else 12,
        markerfacecolor=(color or MEASURED) if measured else "none",
        markeredgecolor=INK if measured else color or PREDICTED,
        markeredgewidth=0.8 if measured else 2,
        zorder=4 if measured else 3,
        clip_on=False,
        gid=gid,
    )


def legend(
    fig: Figure,
    *,
    measured: bool,
    predicted: bool,
    markers: tuple[Sequence[str], Sequence[str]] = ("o", "o"),
    names: tuple[str, str] = ("measured", "predicted"),
    colors: Mapping[str, str] = {},
) -> None:
    """A legend at the lower right: what filled and hollow marks mean, with every marker in use.

    If all marks are filled, there's nothing to tell apart and no legend.

    ``colors`` has the color of each filled marker that doesn't have the usual one.
    """
    filled: dict[str, Any] = {"markerfacecolor": MEASURED, "markeredgecolor": INK}
    hollow: dict[str, Any] = {"markerfacecolor": "none", "markeredgecolor": PREDICTED, "markeredgewidth": 2}
    every = zip((filled, hollow), markers, names, (measured, predicted), strict=True)
    kinds = [(look, which, name) for look, which, name, shown in every if shown]
    if not predicted:
        return

    def recolored(look: dict[str, Any], marker: str) -> dict[str, Any]:
        return {"markerfacecolor": colors[marker]} if look is filled and marker in colors else {}

    handles = [
        tuple(
            Line2D([], [], linestyle="none", marker=marker, markersize=8, **look | recolored(look, marker))
            for marker in dict.fromkeys(which)
        )
        for look, which, _ in kinds
    ]
    fig.legend(
        handles=handles,
        labels=[name for _, _, name in kinds],
        handler_map={tuple: HandlerTuple(ndivide=None, pad=0.6)},
        handlelength=max(1.4 * len(each) for each in handles),
        loc="lower right",
        ncols=2,
        frameon=False,
        fontsize=9,
        handletextpad=0.6,
    )


def note(ax: Axes, text: str, xy: tuple[float, float], offset: tuple[float, float], **look: Any) -> Annotation:
    """Write text ``offset`` points from ``xy``."""
    return ax.annotate(text, xy, xytext=offset, textcoords="offset points", **{"size": 9, **look})


def text_renderer(fig: Figure) -> Any:
    """A renderer, which can measure text before the figure is drawn."""
    return FigureCanvasAgg(fig).get_renderer()  # type: ignore[no-untyped-call]


def around(point: NDArray[np.float64], reach: float) -> Bbox:
    return Bbox.from_bounds(point[0] - reach, point[1] - reach, 2 * reach, 2 * reach)


def place_labels(
    ax: Axes, labels: Sequence[tuple[str, float, float]], marks: Sequence[tuple[float, float]], avoid: Sequence[Bbox]
) -> None:
    """Write each label beside its mark, where it covers no mark, no other label and nothing in ``avoid`` (pixels).

    Tries places farther and farther out; a label that isn't next to its mark gets a thin line to it.
    """
    fig = ax.figure
    renderer, per_point = text_renderer(fig.get_figure(root=True)), fig.dpi / 72
    taken = [*avoid, *(around(ax.transData.transform(mark), 7 * per_point) for mark in marks)]
    directions = [(1, 0), (0.7, -0.7), (0.7, 0.7), (0, -1), (-1, 0), (-0.7, -0.7), (-0.7, 0.7), (0, 1)]
    for text, x, y in labels:
        artist = note(ax, text, (x, y), (0, 0), size=9.5, ha="center", va="center", zorder=5)
        extent = Text.get_window_extent(artist, renderer)
        mark_x, mark_y = ax.transData.transform((x, y))
        best: tuple[int, float, float, Bbox, float] | None = None
        for reach in (9.0, 24.0, 42.0, 64.0, 90.0):
            for dx, dy in directions:
                center_x = mark_x + dx * reach * per_point + np.sign(dx) * extent.width / 2
                center_y = mark_y + dy * reach * per_point + np.sign(dy) * extent.height / 2
                left, bottom = center_x - extent.width / 2 - 3, center_y - extent.height / 2 - 2
                box = Bbox.from_bounds(left, bottom, extent.width + 6, extent.height + 4)
                inside = ax.bbox.x0 <= box.x0 and box.x1 <= ax.bbox.x1 and ax.bbox.y0 <= box.y0 and box.y1 <= ax.bbox.y1
                cost = sum(box.overlaps(other) for other in taken) + (0 if inside else 100)
                if best is None or cost < best[0]:
                    best = (cost, center_x, center_y, box, reach)
            if best is not None and best[0] == 0:
                break
        assert best is not None
        _, center_x, center_y, box, reach = best
        offset = ((center_x - mark_x) / per_point, (center_y - mark_y) / per_point)
        artist.set_position(offset)
        if reach > 9:
            near = (min(max(mark_x, box.x0), box.x1) - mark_x, min(max(mark_y, box.y0), box.y1) - mark_y)
            line = {"arrowstyle": "-", "alpha": 0.6, "linewidth": 0.8, "shrinkA": 0, "shrinkB": 5}
            note(ax, "", (x, y), (near[0] / per_point, near[1] / per_point), arrowprops=line)
        taken.append(box)


def label_ends(ax: Axes, ends: Mapping[str, tuple[float, float]]) -> None:
    """Write each curve's name to the right of its last point; names whose points are close are pushed apart."""
    per_point = ax.figure.dpi / 72
    order = sorted(ends, key=lambda label: ends[label][1])
    marks = [ax.transData.transform(ends[label])[1] / per_point for label in order]
    at = list(marks)
    for _ in range(100):
        for i in range(len(at) - 1):
            overlap = max(0.0, at[i] + 14 - at[i + 1])
            at[i] -= overlap / 2
            at[i + 1] += overlap / 2
    for label, mark, height in zip(order, marks, at, strict=True):
        offset = (9, height - mark)
        note(ax, label, ends[label], offset, size=9.5, weight="bold", va="center", annotation_clip=False)


def log_ticks(axis: Axis, low: float, high: float, unit: str, most: int) -> None:
    """At most ``most`` ticks on a log axis: 1, 2, 5, 10, … if they fit (1 to 9 if few), otherwise powers of ten."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [m * 10.0**k for k in decades for m in (1, 2, 5) if low <= m * 10.0**k <= high]
    if len(ticks) < 3:
        ticks = [m * 10.0**k for k in decades for m in range(1, 10) if low <= m * 10.0**k <= high]
    if len(ticks) > most:
        ticks = [10.0**k for k in decades if low <= 10.0**k <= high] or ticks
        ticks = ticks[:: math.ceil(len(ticks) / most)]
    axis.set_ticks(ticks, units.ticks(ticks, unit))
    axis.set_ticks([], minor=True)

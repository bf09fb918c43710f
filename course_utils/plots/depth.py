"""What happens to numbers as they pass through many layers: their scale and their distribution, layer by layer."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator
from torch import Tensor

from course_utils import units
from course_utils.plots.axes import add_title, chart, label_ends, legend, mark, note, positive, wrap_title
from course_utils.plots.style import COMPUTE_BOUND, INK, MARKERS, MEASURED, styled
from course_utils.units import plain

_MARKS = 11  # about as many along a curve; more would cover each other


def through_depth(
    measured: Mapping[str, Sequence[float]],
    predicted: Mapping[str, Sequence[float]] = {},
    *,
    ylabel: str,
    title: str,
    limits: Mapping[str, float] = {},
    backward: bool = False,
) -> Figure:
    """Draw one number per layer on a logarithmic axis, where a constant factor per layer is a straight line.

    Measured curves have filled marks and predicted ones hollow marks, at some of the layers, always including the
    first and the last.

    Args:
        measured: For each label the values at layers 1, 2, …
        predicted: The same for computed values; a label that's also in ``measured`` gets the same marker.
        ylabel: What the values are.
        title: The finding.
        limits: Horizontal lines with their names, such as the largest number of a dtype.
        backward: The last layer is on the left and the first on the right, in the order of the backward pass.

    Raises:
        TypeError: Something that should be a number isn't.
        ValueError: There's nothing to draw, lengths differ, or a number isn't positive and finite.
    """
    kinds = ((True, measured), (False, predicted))
    drawn = [(label, is_measured, values) for is_measured, kind in kinds for label, values in kind.items()]
    if not drawn or not drawn[0][2]:
        raise ValueError("nothing to draw: give at least one curve with a value for each layer")
    depth = len(drawn[0][2])
    for label, _, values in drawn:
        if len(values) != depth:
            raise ValueError(f"{label!r} has {len(values)} values, {drawn[0][0]!r} {depth}: give one for each layer")
        for value in values:
            positive(value, f"a value of {label!r}")
    for name, limit in limits.items():
        positive(limit, f"the limit {name!r}")
    markers = dict(zip(dict.fromkeys(label for label, _, _ in drawn), itertools.cycle(MARKERS)))
    everything = [v for _, _, values in drawn for v in values] + list(limits.values())
    low, high = math.log10(min(everything)), math.log10(max(everything))
    room = max(0.15, 0.06 * (high - low))
    step = next(m * 10**k for k in itertools.count() for m in (1, 2, 5) if depth / (m * 10**k) < _MARKS)
    ticks = sorted({1, depth, *range(step, depth - step // 2, step)})
    with styled():
        fig, ax = chart(8.9, 4.8, title, left=0.9, right=0.5 + 0.085 * max(map(len, markers)))
        ax.set(yscale="log", xlabel="layer", ylabel=ylabel)
        ax.set(xlim=(1 - 0.02 * depth, depth + 0.02 * depth), ylim=(10 ** (low - room), 10 ** (high + room)))
        if backward:
            ax.invert_xaxis()
        ax.set_xticks(ticks)
        ax.set_yticks([], minor=True)
        if high - low > 4:
            exponents = range(math.ceil(low - room), math.floor(high + room) + 1)
            levels = [10.0**e for e in exponents if e % math.ceil(len(exponents) / 8) == 0]
        else:
            locator = LogLocator(subs=(1, 2, 5)) if high - low > 0.7 else MaxNLocator(6)
            levels = [v for v in locator.tick_values(*ax.get_ylim()) if 10 ** (low - room) < v < 10 ** (high + room)]
        ax.set_yticks(levels, units.ticks(levels))
        ax.grid(True)
        for name, limit in limits.items():
            ax.axhline(limit, color=COMPUTE_BOUND, linewidth=2, linestyle=(0, (6, 3)))
            note(ax, name, (0, limit), (4, 3), va="bottom", xycoords=("axes fraction", "data"))
        layers = range(1, depth + 1)
        for label, is_measured, values in drawn:
            style = "-" if is_measured else "--"
            ax.plot(layers, values, color=INK, linewidth=1.2, alpha=0.7, zorder=2, linestyle=style)
            for layer in ticks:
                mark(ax, layer, values[layer - 1], markers[label], measured=is_measured, gid=label)
        end, last = (1, 0) if backward else (depth, -1)
        label_ends(ax, {label: (end, values[last]) for label, _, values in reversed(drawn)})
        legend(fig, measured=bool(measured), predicted=bool(predicted))
    return fig


def distributions(rows: Mapping[str, Mapping[str, Tensor]], *, reach: float, title: str) -> Figure:
    """Draw histograms in a grid, all over the same range: a row for each kind of number, a column for each place.

    Each panel is scaled to its own height, so that shapes can be compared, and says how large the numbers are. Numbers
    outside the range aren't drawn; if they're more than 1%, the panel says how many, and its bars are lower.

    Args:
        rows: For each row's label its panels, ``{"layer 1": numbers, …}``; the same columns in every row.
        reach: The range is −reach to +reach.
        title: The finding.

    Raises:
        ValueError: There's nothing to draw, columns differ, or a tensor is empty or has a non-finite element.
    """
    if not rows or not next(iter(rows.values())):
        raise ValueError("nothing to draw: give at least one row of at least one tensor")
    positive(reach, "reach")
    columns = list(next(iter(rows.values())))
    panels: dict[tuple[str, str], np.ndarray] = {}
    for label, row in rows.items():
        if list(row) != columns:
            raise ValueError(f"{label!r} has the columns {list(row)}, the first row {columns}: give each the same")
        for column, numbers in row.items():
            values = numbers.detach().double().flatten().cpu().numpy()
            if not values.size or not np.isfinite(values).all():
                raise ValueError(f"{label!r}, {column!r} is empty or not finite, so it has no histogram")
            panels[label, column] = values
    width, left, right, bottom, gap, below = 8.9, 1.75, 0.2, 0.38, 0.14, 0.3
    lines = wrap_title(title, width)
    top = 0.3 + 0.24 * len(lines)
    panel_height = 0.62
    height = top + bottom + len(rows) * (panel_height + below)
    panel_width = (width - left - right - gap * (len(columns) - 1)) / len(columns)
    with styled():
        fig = Figure(figsize=(width, height))
        add_title(fig, lines)
        for (r, label), (c, column) in itertools.product(enumerate(rows), enumerate(columns)):
            x0, y0 = left + c * (panel_width + gap), height - top - (r + 1) * (panel_height + below)
            ax = fig.add_axes((x0 / width, y0 / height, panel_width / width, panel_height / height))
            values = panels[label, column]
            inside = values[np.abs(values) <= reach]
            counts, edges = np.histogram(inside, bins=61, range=(-reach, reach))
            heights = counts / max(counts.max(), 1) * inside.size / values.size
            ax.stairs(heights, edges, fill=True, color=MEASURED, gid=f"{label} {column}")
            ax.stairs(heights, edges, color=INK, linewidth=0.8)
            ax.set(xlim=(-reach, reach), ylim=(0, 1.08))
            ax.set_yticks([])
            ax.spines.left.set_visible(False)
            ax.set_xticks([-reach, 0, reach])
            if r < len(rows) - 1:
                ax.set_xticklabels([])
            else:
                ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}".replace("-", "−")))
                first, _, last = ax.get_xticklabels()
                first.set_horizontalalignment("left")
                last.set_horizontalalignment("right")
            outside = 1 - inside.size / values.size
            caption = f"std {plain(float(values.std()))}" + (f", {outside:.0%} outside" if outside > 0.01 else "")
            note(ax, caption, (0.5, 1), (0, 2), size=8.5, ha="center", va="bottom", xycoords="axes fraction")
            if r == 0:
                x = (x0 + panel_width / 2) / width
                fig.text(
                    x, (y0 + panel_height + 0.24) / height, column, size=10, weight="bold", ha="center", va="bottom"
                )
            if c == 0:
                y = (y0 + panel_height / 2) / height
                wrapped = "\n".join(wrap_title(label, 1.9))
                fig.text((left - 0.12) / width, y, wrapped, size=9.5, weight="bold", ha="right", va="center")
    return fig

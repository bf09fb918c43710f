"""Numbers of very different sizes on one axis."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Collection, Mapping

from matplotlib.figure import Figure

from course_utils.plots.axes import add_title, note, positive, wrap_title
from course_utils.plots.style import COMPUTE_BOUND, CONTEXT, HIGHLIGHT, INK, styled
from course_utils.units import ticks


def magnitudes(
    values: Mapping[str, float],
    *,
    unit: str,
    lines: Mapping[str, float] = {},
    highlight: Collection[str] = (),
    title: str,
) -> Figure:
    """Draw numbers as marks on a log axis, one per row, smallest first, with lines for limits.

    Args:
        values: The numbers by name.
        unit: The unit of all values.
        lines: Limits by name, drawn as dashed lines through all rows.
        highlight: Names in ``values`` to emphasize.
        title: The finding.

    Raises:
        ValueError: There's nothing to draw, a number isn't positive and finite, or a highlighted name isn't in
            ``values``.
    """
    if not values:
        raise ValueError("nothing to draw: give at least one number")
    for name, value in [*values.items(), *lines.items()]:
        positive(value, f"the value of {name!r}")
    if unknown := set(highlight) - set(values):
        raise ValueError(f"cannot highlight {', '.join(sorted(unknown))}: the names are {', '.join(values)}")
    rows = sorted(values.items(), key=lambda row: row[1])
    names = [textwrap.fill(name, 30) for name, _ in rows]
    said = ticks([value for _, value in rows], unit)
    numbers = [*values.values(), *lines.values()]
    low, high = math.floor(math.log10(min(numbers)) - 0.2), math.ceil(math.log10(max(numbers)) + 0.2)

    width, left, right, row_height = 8.9, 2.35, 1.6, 0.36
    title_lines = wrap_title(title, width)
    head = 0.24 + 0.24 * len(title_lines) + 0.22 * len(lines)
    body = row_height * len(rows)
    height = head + body + 0.62
    with styled():
        fig = Figure(figsize=(width, height))
        add_title(fig, title_lines)
        ax = fig.add_axes((left / width, 0.62 / height, 1 - (left + right) / width, body / height))
        ax.set(xscale="log", xlim=(10.0**low, 10.0**high), ylim=(-0.5, len(rows) - 0.5), xlabel=unit)
        step = math.ceil((high - low) / 8)
        powers = [10.0**k for k in range(low, high + 1, step)]
        ax.set_xticks(powers, ticks(powers))
        ax.set_xticks([], minor=True)
        ax.set_yticks(range(len(rows)), names)
        ax.tick_params(axis="y", length=0)
        ax.spines.left.set_visible(False)
        ax.grid(True, axis="x")
        for row, ((name, value), number) in enumerate(zip(rows, said, strict=True)):
            look = HIGHLIGHT if name in highlight else COMPUTE_BOUND
            ax.hlines(row, 10.0**low, value, color=CONTEXT, linewidth=1.2, alpha=0.6, zorder=1)
            marker = "D" if name in highlight else "o"
            ax.plot([value], [row], marker, color=look, markeredgecolor=INK, markeredgewidth=0.8, zorder=3, gid=name)
            beside = {"xycoords": ("axes fraction", "data"), "size": 9.5, "annotation_clip": False}
            note(ax, number, (1, row), (right * 72 - 10, 0), ha="right", va="center", **beside)
        for level, (name, value) in enumerate(sorted(lines.items(), key=lambda line: line[1])):
            top = len(rows) - 0.5 + (0.22 * level + 0.08) / row_height
            ax.plot([value, value], [-0.5, top], "--", color=INK, linewidth=1.2, alpha=0.7, clip_on=False, gid=name)
            over_left = math.log10(value) - low > (high - low) / 2
            side = {"ha": "right" if over_left else "left", "va": "center", "annotation_clip": False}
            note(ax, name, (value, top), (-5 if over_left else 5, 2), **side)
    return fig

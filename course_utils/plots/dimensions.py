"""Named axes of tensors: what an operation splits, moves, merges, sums or adds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course_utils.plots.axes import add_title, wrap_title
from course_utils.plots.style import CONTEXT, DATA, HIGHLIGHT, INK, PREDICTED, styled

MAX_AXES = 12  # axis_flow draws this many side by side


class Axis(NamedTuple):
    """One name of a pattern. Two with the same ``key`` are the same axis."""

    key: str
    name: str
    size: int


Dims = Sequence[Sequence[Axis]]  # for each dimension of a tensor the axes that it consists of; none: its size is 1


class _Cell(NamedTuple):
    axis: Axis
    x: float  # center, inches


def axis_flow(inputs: Sequence[Dims], output: Dims, *, labels: Sequence[str], how: str, title: str) -> Figure:
    """Draw the inputs above the output, with a line for each axis that goes from one to the other.

    A frame is a dimension; each cell in it is an axis with its size. A cross ends an axis that isn't in the output, and
    a plus begins one that isn't in the inputs.

    Args:
        labels: A line of text for each input and, at the end, for the output: name, shape, elements.
        how: What happens to an axis that's left out, such as ``"sum"``.
        title: The finding.
    """
    width = 8.9
    lines = wrap_title(title, width)
    top = 0.12 + 0.24 * len(lines) + 0.55
    bottom = top + 0.55 + 1.75
    widest = max(sum(_count(dims) for dims in inputs), _count(output))
    dims_drawn = max(sum(len(dims) for dims in inputs), len(output))
    cell = min(0.72, (width - 0.6 - 0.22 * dims_drawn - 0.5 * (len(inputs) - 1)) / max(widest, 1))
    with styled():
        fig = Figure(figsize=(width, bottom + 1.1))
        add_title(fig, lines)
        ax = fig.add_axes((0, 0, 1, 1))
        ax.set(xlim=(0, width), ylim=(bottom + 1.1, 0))
        ax.axis("off")
        left, above = 0.3, []
        for dims, label in zip(inputs, labels, strict=False):
            ax.text(left, top - 0.3, label, size=9.5, va="bottom")
            drawn, right = _draw_tensor(ax, dims, left, top, cell, top - 0.12)
            above += drawn
            left = max(right, left + 0.075 * len(label)) + 0.5
        below, _ = _draw_tensor(ax, output, 0.3, bottom, cell, bottom + 0.67)
        ax.text(0.3, bottom + 0.85, labels[-1], size=9.5, va="top")
        for upper in above:
            for lower in below:
                if upper.axis.key == lower.axis.key:
                    ends = [upper.x, lower.x], [top + 0.55, bottom - 0.02]
                    ax.plot(*ends, color=DATA, linewidth=2, gid=f"line {upper.axis.key}")
                    ax.plot([lower.x], [bottom - 0.06], "v", color=DATA, markersize=7)
        _draw_ends(ax, above, below, top + 0.55, bottom, how)
    return fig


def _count(dims: Dims) -> int:
    return sum(max(len(axes), 1) for axes in dims)


def _draw_tensor(
    ax: Axes, dims: Dims, left: float, top: float, cell: float, beside: float
) -> tuple[list[_Cell], float]:
    """The dimensions of a tensor, side by side, sizes of composed ones at ``beside``: its axes, and where it ends."""
    cells = []
    text: dict[str, Any] = {"ha": "center", "va": "center"}
    if not dims:
        ax.text(left, top + 0.27, "one number, without dimensions", size=9.5, va="center")
        return [], left + 2.2
    for axes in dims:
        wide = max(len(axes), 1) * cell
        if not axes:
            look: dict[str, Any] = {"facecolor": "none", "edgecolor": CONTEXT, "linestyle": (0, (3, 2))}
            ax.add_artist(Rectangle((left, top), cell, 0.55, **look))
            ax.text(left + cell / 2, top + 0.27, "1", size=11, **text)
        for number, axis in enumerate(axes):
            x = left + (number + 0.5) * cell
            ax.add_artist(Rectangle((x - cell / 2, top), cell, 0.55, facecolor=(DATA, 0.25), edgecolor=CONTEXT))
            name = axis.name if len(axis.name) < 10 else f"{axis.name[:8]}…"
            ax.text(x, top + 0.17, name, size=min(10, 110 * cell / max(len(name), 6)), **text)
            size = f"{axis.size:,}"
            ax.text(x, top + 0.39, size, size=min(11, 100 * cell / max(len(size), 6)), weight="bold", **text)
            cells.append(_Cell(axis, x))
        if axes:
            frame = Rectangle((left, top), wide, 0.55, fill=False, edgecolor=INK, linewidth=2, gid="dimension")
            ax.add_artist(frame)
        if len(axes) > 1:
            ax.text(
                left + wide / 2, beside, f"{math.prod(axis.size for axis in axes):,}", size=11, weight="bold", **text
            )
        left += wide + 0.22
    return cells, left - 0.22


def _draw_ends(ax: Axes, above: list[_Cell], below: list[_Cell], top: float, bottom: float, how: str) -> None:
    """Axes that end or begin between the tensors."""
    middle = top + 0.38
    share = (middle - top) / (bottom - top)
    taken = [up.x + share * (low.x - up.x) for up in above for low in below if up.axis.key == low.axis.key]
    kept, given = {cell.axis.key for cell in below}, {cell.axis.key for cell in above}
    for key in dict.fromkeys(cell.axis.key for cell in above if cell.axis.key not in kept):
        ending = [cell for cell in above if cell.axis.key == key]
        places = [sum(cell.x for cell in ending) / len(ending), *(cell.x for cell in ending)]
        center = max(places, key=lambda x: min((abs(x - other) for other in taken), default=0.0))  # most room
        taken.append(center)
        for cell in ending:
            ax.plot([cell.x, center], [top, middle], color=HIGHLIGHT, linewidth=2, gid=f"end {key}")
        ax.plot([center], [middle], "X", color=HIGHLIGHT, markeredgecolor=INK, markersize=11)
        ax.text(center + 0.14, middle, how, size=9.5, va="center")
    for cell in below:
        if cell.axis.key not in given:
            ax.plot(
                [cell.x] * 2, [bottom - 0.45, bottom - 0.02], color=PREDICTED, linewidth=2, gid=f"new {cell.axis.key}"
            )
            ax.plot([cell.x], [bottom - 0.45], "P", color=PREDICTED, markeredgecolor=INK, markersize=11)
            ax.text(cell.x, bottom - 0.6, f"{cell.axis.size:,} times", size=9.5, ha="center", va="bottom")

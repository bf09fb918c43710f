"""Paths of optimizers over a loss of two parameters."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from course_utils.plots.axes import add_title, wrap_title
from course_utils.plots.style import CONTEXT, HIGHLIGHT, INK, MARKERS, MEASURED, styled

Surface = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]


def descent(
    rows: Mapping[str, tuple[Surface, Mapping[str, Sequence[tuple[float, float]]]]], *, reach: float, title: str
) -> Figure:
    """Draw one panel for each path, over the contours of its surface, with a mark at each step.

    Args:
        rows: For each row of panels its label, its surface (a function of two arrays) and its paths by name: the
            first point of a path is its start. The paths in a column have the same marker.
        reach: Both axes go from -reach to reach.
        title: The finding.

    Raises:
        ValueError: There are no rows or paths, rows have different numbers of paths, or a path has no finite points.
    """
    counts = {len(paths) for _, paths in rows.values()}
    if not counts or 0 in counts or len(counts) > 1:
        raise ValueError(f"rows have {sorted(counts)} paths: give one row or more, each with the same number of paths")
    for name, path in itertools.chain(*(paths.items() for _, paths in rows.values())):
        if not path or not all(math.isfinite(value) for point in path for value in point):
            raise ValueError(f"the path of {name!r} is empty or not finite: it cannot be drawn")
    (columns,) = counts
    width, left, gap, right = 8.9, 0.75, 0.22, 0.15
    side = (width - left - right - gap * (columns - 1)) / columns
    lines = wrap_title(title, width)
    head, above, below = 0.12 + 0.24 * len(lines), 0.42, 0.42
    height = head + len(rows) * (above + side) + below
    grid = np.linspace(-reach, reach, 161)
    x, y = np.meshgrid(grid, grid)
    with styled():
        fig = Figure(figsize=(width, height))
        add_title(fig, lines)
        for row, (label, (surface, paths)) in enumerate(rows.items()):
            bottom = height - head - (row + 1) * (above + side)
            heights = surface(x, y)
            for column, (name, path) in enumerate(paths.items()):
                place = (left + column * (side + gap), bottom, side, side)
                ax = fig.add_axes((place[0] / width, place[1] / height, side / width, side / height))
                ax.set(xlim=(-reach, reach), ylim=(-reach, reach), xticks=[], yticks=[])
                start = float(surface(*(np.array([[value]], dtype=float) for value in path[0])).item())
                levels = [start * share for share in (0.002, 0.02, 0.1, 0.3, 1.0)]
                ax.contour(x, y, heights, levels=levels, colors=CONTEXT, linewidths=1, zorder=1)
                look: dict[str, Any] = {"markersize": 4, "markerfacecolor": MEASURED, "markeredgecolor": INK}
                across, up = zip(*path, strict=True)
                marker = MARKERS[column % len(MARKERS)]
                ax.plot(
                    across, up, color=INK, linewidth=0.8, marker=marker, markeredgewidth=0.4, gid=name, zorder=2, **look
                )
                ax.plot([0], [0], "+", color=HIGHLIGHT, markersize=11, markeredgewidth=2, gid="minimum", zorder=3)
                ax.text(0.5, 1.03, name, transform=ax.transAxes, ha="center", va="bottom", size=9.5, weight="bold")
                if column == 0:
                    ax.set_ylabel(label, size=10)
        fig.text(0.5, 0.1 / height, "each mark is one step;  + is the minimum", ha="center", va="bottom", size=9)
    return fig

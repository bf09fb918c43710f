"""Figures for the lectures: one palette, alt text, readable in JupyterLab's light and dark theme.

Each builder returns a :class:`matplotlib.figure.Figure` of its own (nothing is registered with pyplot, so your plots
aren't affected); :func:`show` displays any figure as inline SVG:

    fig = plots.storage_layout(torch.arange(12).reshape(3, 4).T)
    plots.show(fig, alt="The transpose walks the same twelve slots in steps of 4.")

A color says what kind of thing a mark is; a marker says which one. Text always has the page's own color.
"""

from course_utils.plots.comparisons import calibration, curves, predicted_vs_measured
from course_utils.plots.depth import distributions, through_depth
from course_utils.plots.formats import bit_layouts, gap_curves, number_lines
from course_utils.plots.magnitudes import magnitudes
from course_utils.plots.memory import memory_bar, memory_stacks
from course_utils.plots.precision import loss_scale, range_histograms
from course_utils.plots.rates import mfu_curve, mfu_ladder, roofline, timeline
from course_utils.plots.storage import MAX_DIM, MAX_SLOTS, storage_layout
from course_utils.plots.style import (
    COMPUTE_BOUND,
    CONTEXT,
    DATA,
    HIGHLIGHT,
    INK,
    MARKERS,
    MEASURED,
    MEMORY_BOUND,
    PETROFF6,
    PREDICTED,
    show,
    styled,
    to_html,
)
from course_utils.plots.surface import descent
from course_utils.plots.training import loss_curves

# fmt: off
__all__ = [
    "COMPUTE_BOUND", "CONTEXT", "DATA", "HIGHLIGHT", "INK", "MARKERS", "MAX_DIM", "MAX_SLOTS",
    "MEASURED", "MEMORY_BOUND", "PETROFF6", "PREDICTED", "bit_layouts",
    "calibration", "curves", "descent", "distributions", "gap_curves", "loss_curves", "loss_scale", "magnitudes",
    "memory_bar", "memory_stacks", "mfu_curve", "mfu_ladder", "number_lines", "predicted_vs_measured",
    "range_histograms", "roofline", "show", "storage_layout", "styled", "through_depth", "timeline", "to_html",
]
# fmt: on

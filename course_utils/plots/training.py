"""What happens during a training run."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from course_utils.plots.axes import chart, label_ends, legend, log_ticks, mark, note, positive
from course_utils.plots.style import CONTEXT, HIGHLIGHT, MARKERS, MEASURED, PREDICTED, styled

_MARKS = 12  # along one curve


def loss_curves(
    measured: Mapping[str, Mapping[int, float]],
    predicted: Mapping[str, Mapping[int, float]] = {},
    *,
    events: Mapping[str, int] = {},
    spans: Mapping[str, tuple[int, int]] = {},
    names: tuple[str, str] = ("measured", "predicted"),
    highlight: Collection[str] = (),
    xlabel: str = "step",
    ylabel: str = "loss",
    log: bool = True,
    title: str,
) -> Figure:
    """Draw losses over steps: measurements as filled markers on a line, predictions as hollow ones, dashed.

    Args:
        measured: For each label the loss at each step, ``{"lr 0.1": dict(enumerate(losses))}``.
        predicted: The same for what was expected; a label that's also in ``measured`` gets the same marker.
        events: Events by the step before which they happened, each a vertical line with its name above.
        spans: Ranges of steps, each a shaded band with its name at the bottom.
        names: What filled and hollow marks mean, if not measured and predicted.
        highlight: Labels in ``measured`` whose curves get the color that says "look here".
        xlabel, ylabel: What the axes show.
        log: Whether the vertical axis is logarithmic; if not, it begins at 0.
        title: The finding.

    Raises:
        TypeError: Something that should be a number isn't.
        ValueError: There's nothing to draw, or a loss isn't positive and finite.
    """
    kinds = ((True, measured), (False, predicted))
    drawn = [(label, is_measured, points) for is_measured, kind in kinds for label, points in kind.items()]
    if not drawn or not all(points for _, _, points in drawn):
        raise ValueError("nothing to draw: give at least one curve, and each at least one step")
    for label, _, points in drawn:
        for step, loss in points.items():
            positive(loss, f"the loss of {label!r} at step {step}")
    markers = dict(zip(dict.fromkeys(label for label, _, _ in drawn), itertools.cycle(MARKERS)))
    steps = [step for _, _, points in drawn for step in points] + list(events.values())
    losses = [loss for _, _, points in drawn for loss in points.values()]
    first, last = min(steps), max(steps)
    room = max(last - first, 1) * 0.02
    with styled():
        fig, ax = chart(8.9, 4.8, title, left=1.0, right=0.4 + 0.085 * max(map(len, markers)))
        factor = (max(losses) / min(losses)) ** 0.06 * 1.1
        low = min(losses) / factor if log else 0.0
        ax.set(yscale="log" if log else "linear", xlabel=xlabel, ylabel=ylabel)
        ax.set(xlim=(first - room, last + room), ylim=(low, max(losses) * factor))
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        if log:
            log_ticks(ax.yaxis, *ax.get_ylim(), "", most=8)
        ax.grid(True)
        every = max(1, round((last - first) / _MARKS))
        for label, is_measured, points in drawn:
            at = sorted(points)
            special = HIGHLIGHT if is_measured and label in highlight else ""
            ax.plot(
                at,
                [points[step] for step in at],
                color=special or (MEASURED if is_measured else PREDICTED),
                linewidth=1.6,
                zorder=2,
                linestyle="-" if is_measured else "--",
            )
            few = len(at) <= _MARKS  # otherwise at the same steps, so that marks of two curves meet
            for step in (step for step in at if few or (step - first) % every == 0):
                mark(ax, step, points[step], markers[label], measured=is_measured, gid=label, color=special)
        for name, (start, stop) in spans.items():
            ax.axvspan(start, stop, color=HIGHLIGHT, alpha=0.12, linewidth=0, zorder=0, gid=f"span {name}")
            note(ax, name, (start, low), (4, 6), annotation_clip=False)
        order = sorted(events.items(), key=lambda event: event[1])
        for number, (name, step) in enumerate(order):
            ax.axvline(step, color=CONTEXT, linewidth=1.5, linestyle=":", zorder=1, gid=f"event {name}")
            # To its left, if the next event's line would cross the name.
            close = number + 1 < len(order) and order[number + 1][1] - step < 0.2 * (last - first)
            look = {"ha": "right"} if close else {}
            at_top = (step, max(losses) * factor)
            note(ax, name, at_top, (-4 if close else 4, -12 - 14 * number), annotation_clip=False, **look)
        label_ends(ax, {label: (max(points), points[max(points)]) for label, _, points in reversed(drawn)})
        if measured and predicted:
            shown = ("".join(markers[label] for label in measured), "".join(markers[label] for label in predicted))
            colors = {markers[label]: HIGHLIGHT for label in highlight if label in measured}
            legend(fig, measured=True, predicted=True, markers=shown, names=names, colors=colors)
    return fig

"""FLOP/s: the roofline, utilization by matrix size and by optimization; timelines."""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter
from matplotlib.transforms import Bbox

from course_utils.plots.axes import chart, label_ends, legend, log_ticks, mark, note, place_labels, positive
from course_utils.plots.style import COMPUTE_BOUND, DATA, INK, MARKERS, MEASURED, MEMORY_BOUND, styled
from course_utils.timing import Span
from course_utils.units import readable


def roofline(
    peak: float | None,
    bandwidth: float,
    points: Sequence[tuple[str, float, float]],
    *,
    predicted: Sequence[tuple[str, float, float]] = (),
    ceiling: float | None = None,
    peak_label: str = "peak",
    bandwidth_label: str = "bandwidth",
    title: str | None = None,
) -> Figure:
    """Draw the roofline: the FLOP/s that a device allows at each arithmetic intensity, and what was achieved.

    The roof is ``min(peak, bandwidth * intensity)``. Left of the ridge point ``peak / bandwidth`` memory is the
    limit, right of it arithmetic. Source: Williams, Waterman and Patterson, "Roofline: an insightful visual
    performance model for multicore architectures", CACM 52(4), 2009.

    Args:
        peak: FLOP/s of the device, or None if unknown; then ``ceiling`` takes its place, and the label says so.
        bandwidth: B/s to and from memory.
        points: Measured ``(label, intensity in FLOP/B, achieved FLOP/s)``; filled marks.
        predicted: The same, calculated beforehand; hollow marks. A label that's also in ``points`` gets the same
            marker.
        ceiling: The highest FLOP/s measured on the device, used if ``peak`` is None.
        peak_label: The name of the flat part of the roof, such as "bf16 peak, dense".
        bandwidth_label: The name of the slanted part.
        title: The finding; by default which side of the ridge point the measured points are on.

    Raises:
        TypeError: Something that should be a number isn't.
        ValueError: A number isn't positive and finite, or both ``peak`` and ``ceiling`` are None.
    """
    if peak is None:
        if ceiling is None:
            raise ValueError(
                "peak is None and so is ceiling: where the peak of a device is unknown, measure the FLOP/s of its best "
                "matmul and pass that as ceiling="
            )
        roof, roof_name = positive(ceiling, "ceiling"), "measured ceiling (peak unknown)"
    else:
        roof, roof_name = positive(peak, "peak"), peak_label
    positive(bandwidth, "bandwidth")
    marks = [(*point, True) for point in points] + [(*point, False) for point in predicted]
    for label, intensity, rate, _ in marks:
        positive(intensity, f"the intensity of {label!r}")
        positive(rate, f"the FLOP/s of {label!r}")
    ridge = roof / bandwidth
    labels = list(dict.fromkeys(label for label, *_ in marks))
    markers = dict(zip(labels, itertools.cycle(MARKERS)))
    if title is None:
        title = _roofline_title(points, ridge)

    intensities, rates = [m[1] for m in marks], [m[2] for m in marks]
    x_low = min([ridge / 30, *(i / 4 for i in intensities)])
    x_high = max([ridge * 50, *(i * 4 for i in intensities)])
    y_low = min([bandwidth * x_low, *(r / 3 for r in rates)])
    highest = max([roof, *rates])
    y_high = highest * (highest / y_low) ** 0.34  # room for the names above the roof

    with styled():
        fig, ax = chart(8.9, 5.4, title, left=1.25, right=0.25)
        ax.set(xscale="log", yscale="log", xlim=(x_low, x_high), ylim=(y_low, y_high))
        ax.set(xlabel="arithmetic intensity (FLOP/B)", ylabel="FLOP/s")
        ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.10g}"))
        ax.yaxis.set_major_formatter(EngFormatter(unit="FLOP/s"))
        ax.set_xticks([], minor=True)
        ax.set_yticks([], minor=True)
        ax.grid(True)
        ax.axvspan(x_low, ridge, color=MEMORY_BOUND, alpha=0.09, linewidth=0)
        ax.axvspan(ridge, x_high, color=COMPUTE_BOUND, alpha=0.09, linewidth=0)
        ax.plot([x_low, ridge], [bandwidth * x_low, roof], color=MEMORY_BOUND, linewidth=3)
        ax.plot([ridge, x_high], [roof, roof], color=COMPUTE_BOUND, linewidth=3)
        ax.plot([ridge, ridge], [y_low, roof], color=INK, linewidth=1, linestyle=(0, (2, 3)))
        ax.plot([ridge], [roof], marker="D", markersize=7, color=INK, markerfacecolor="none", gid="ridge point")

        for region, start, stop in (("memory-bound", x_low, ridge), ("compute-bound", ridge, x_high)):
            middle = math.sqrt(start * stop)
            ax.text(
                middle, 0.975, region, size=11, weight="bold", ha="center", va="top", transform=ax.get_xaxis_transform()
            )
        room = (ax.bbox.x1 - ax.transData.transform((ridge, roof))[0]) * 72 / fig.dpi
        height_text = readable(roof, "FLOP/s").replace(" ", "\N{NO-BREAK SPACE}")
        flat = textwrap.wrap(f"{roof_name}: {height_text}", max(20, int(room / 5.4)))
        note(ax, "\n".join(flat).replace("\N{NO-BREAK SPACE}", " "), (x_high, roof), (-4, 9), ha="right", va="bottom")
        to_text = {"arrowstyle": "-", "linestyle": (0, (2, 3)), "relpos": (0, 0), "shrinkA": 0, "shrinkB": 4}
        ridge_text = f"ridge point: {readable(ridge, 'FLOP/B')}"
        note(ax, ridge_text, (ridge, roof), (0, 14 + 11 * len(flat)), va="bottom", arrowprops=to_text)
        # The slope's name goes where marks leave the most room.
        stops = sorted([x_low, ridge, *(i for i in intensities if i < ridge)])
        left, right = max(itertools.pairwise(stops), key=lambda gap: gap[1] / gap[0])
        at = math.sqrt(left * right)
        (x0, y0), (x1, y1) = ax.transData.transform([(x_low, bandwidth * x_low), (ridge, roof)])
        angle = math.atan2(y1 - y0, x1 - x0)
        note(
            ax,
            f"{bandwidth_label}: {readable(bandwidth, 'B/s')}",
            (at, bandwidth * at),
            (-5 * math.sin(angle), 5 * math.cos(angle)),
            ha="center",
            va="bottom",
            rotation=math.degrees(angle),
            rotation_mode="anchor",
            size=8.5,
        )

        for label, intensity, rate, is_measured in marks:
            mark(ax, intensity, rate, markers[label], measured=is_measured, gid=label)
        anchors = {label: [(i, r) for name, i, r, _ in marks if name == label] for label in labels}
        for where in anchors.values():
            ax.plot(*zip(*where, strict=True), color=INK, linewidth=1, linestyle=":", zorder=1)

        # Labels stay below the roof and off the ridge's line.
        sky = ax.bbox.y1 - y1
        width = (x1 - x0) / 80
        avoid = [Bbox.from_bounds(x0 + t * width, y0 + (y1 - y0) * t / 80 - 5, width, 2 * sky) for t in range(80)]
        avoid.append(Bbox([[x1 - 5, y1 - 5], [ax.bbox.x1, ax.bbox.y1]]))
        avoid.append(Bbox([[x1 - 3, ax.bbox.y0], [x1 + 3, y1]]))
        place_labels(ax, [(label, *where[0]) for label, where in anchors.items()], [m[1:3] for m in marks], avoid)
        legend(fig, measured=bool(points), predicted=bool(predicted))
    return fig


def mfu_curve(
    sizes: Sequence[int],
    rates_by_dtype: Mapping[str, Sequence[float]],
    peaks: Mapping[str, float | None],
    *,
    title: str | None = None,
) -> Figure:
    """Draw how much of the peak an n × n matmul reaches, against n, with a curve per dtype.

    If the peak of a dtype is unknown, the figure shows FLOP/s for all dtypes, with a line at each known peak. A
    utilization above 100% is drawn, and the title says that something is wrong: the peak is another dtype's or
    device's, or the clock was read too early.

    Args:
        sizes: The n of each measurement, ascending.
        rates_by_dtype: For each label, such as "bf16", the achieved FLOP/s at each size.
        peaks: For each of these labels the dense peak in FLOP/s, or None if unknown.
        title: The finding; by default the best value of each dtype.

    Raises:
        TypeError: Something that should be a number isn't.
        ValueError: Lengths differ, a label has no entry in ``peaks``, or a number isn't positive and finite.
    """
    if not sizes or not rates_by_dtype:
        raise ValueError("nothing to draw: give at least one size and one dtype")
    if any(b <= a for a, b in itertools.pairwise(sizes)):
        raise ValueError(f"sizes must be ascending, got {list(sizes)}: sort the measurements by size")
    for n in sizes:
        positive(n, "a size")
    for label, rates in rates_by_dtype.items():
        if len(rates) != len(sizes):
            raise ValueError(f"{label!r} has {len(rates)} rates for {len(sizes)} sizes: give one rate per size")
        if label not in peaks:
            raise ValueError(f"peaks has no entry for {label!r}: give its dense peak in FLOP/s, or None if unknown")
        for rate in rates:
            positive(rate, f"a rate of {label!r}")
    known: dict[str, float] = {}
    for label in rates_by_dtype:
        peak = peaks[label]
        if peak is not None:
            known[label] = positive(peak, f"the peak of {label!r}")
    unknown = [label for label in rates_by_dtype if label not in known]
    curves = {
        label: [rate if unknown else rate / known[label] for rate in rates] for label, rates in rates_by_dtype.items()
    }
    best = {label: max(values) for label, values in curves.items()}
    if title is None:
        reached = [f"{label} {readable(v, 'FLOP/s') if unknown else f'{v:.0%}'}" for label, v in best.items()]
        title = f"The best matmul reaches {', '.join(reached)}" + ("" if unknown else " of peak")
        too_high = [label for label, v in best.items() if not unknown and v > 1]
        if too_high:
            title += f" — above 100%: check the peak and the timing of {', '.join(too_high)}"

    with styled():
        right = 0.3 + 0.085 * max(map(len, rates_by_dtype))
        fig, ax = chart(8.9, 5.0, title, left=1.25, right=right)
        ax.set(xscale="log", xlabel="matrix size n (n × n times n × n)")
        ticks = [sizes[0]]
        for n in sizes[1:]:  # only where a label has room
            if math.log(n / ticks[-1]) >= 0.09 * math.log(sizes[-1] / sizes[0]):
                ticks.append(n)
        ax.set_xticks(ticks)
        ax.set_xticks([], minor=True)
        ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.0f}"))
        ax.set_xlim(sizes[0] / 1.15, sizes[-1] * 1.15)
        lines: list[tuple[str, float]] = []
        if unknown:
            everything = [v for values in curves.values() for v in values] + list(known.values())
            ax.set(yscale="log", ylim=(min(everything) / 2, max(everything) * 2))
            ax.set_ylabel(f"FLOP/s (peak of {', '.join(unknown)} unknown)")
            log_ticks(ax.yaxis, *ax.get_ylim(), "FLOP/s", most=8)
            lines = [(f"{label} peak: {readable(peak, 'FLOP/s')}", peak) for label, peak in known.items()]
        else:
            ax.set(ylim=(0, 1.12 * max(1.0, *best.values())))
            ax.set_ylabel("utilization: achieved ÷ peak FLOP/s")
            ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:.0%}"))
            lines = [("peak", 1.0)]
        ax.grid(True)
        for text, height in lines:
            ax.axhline(height, color=COMPUTE_BOUND, linewidth=2, linestyle=(0, (6, 3)))
            note(ax, text, (0, height), (4, 3), va="bottom", xycoords=("axes fraction", "data"))
        for (label, values), marker in zip(curves.items(), itertools.cycle(MARKERS)):
            ax.plot(sizes, values, color=INK, linewidth=1.2, alpha=0.7, zorder=2)
            for n, value in zip(sizes, values, strict=True):
                mark(ax, n, value, marker, measured=True, gid=label)
        label_ends(ax, {label: (sizes[-1], values[-1]) for label, values in curves.items()})
    return fig


def mfu_ladder(rungs: Mapping[str, float], *, title: str, of: str = "peak") -> Figure:
    """Draw the MFU of one training step after each of several changes, the first at the top.

    Args:
        rungs: For each change, such as "bfloat16", the MFU with it and all earlier changes, relative to one peak.
        title: The finding.
        of: What the FLOP/s were divided by, such as "bfloat16 peak" or, if that's unknown, "measured ceiling".

    Raises:
        ValueError: There's no rung, or an MFU isn't positive and finite.
    """
    if not rungs:
        raise ValueError("nothing to draw: give at least one rung")
    for name, share in rungs.items():
        positive(share, f"the MFU of {name!r}")
    with styled():
        left = 0.3 + 0.075 * max(map(len, rungs))
        fig, ax = chart(8.9, 1.4 + 0.42 * len(rungs), title, left=left, right=0.7)
        places = range(len(rungs))
        ax.barh(places, list(rungs.values()), height=0.62, color=MEASURED)
        ax.set_yticks(places, list(rungs))
        ax.invert_yaxis()
        ax.tick_params(axis="y", length=0)
        ax.set(xlim=(0, max(1.0, *rungs.values())), xlabel=f"model FLOP/s ÷ {of}")
        ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:.0%}"))
        ax.grid(True, axis="x")
        for place, share in zip(places, rungs.values(), strict=True):
            note(ax, f"{share:.1%}", (share, place), (5, 0), va="center")
    return fig


def timeline(spans: Sequence[Span], *, title: str) -> Figure:
    """Draw when pieces of work ran, with a row per stream, so that overlapping work is drawn one above the other.

    Args:
        spans: As `timing.Timeline` measures them.
        title: The finding.

    Raises:
        ValueError: There's no span, or one ends before it starts.
    """
    if not spans:
        raise ValueError("nothing to draw: give at least one span")
    if wrong := [span for span in spans if not span.start <= span.end]:
        raise ValueError(f"a span ends before it starts: {wrong[0]}")
    rows = list(dict.fromkeys(span.stream for span in spans))
    began, ended = min(span.start for span in spans), max(span.end for span in spans)
    with styled():
        left = 0.3 + 0.085 * max(map(len, rows))
        fig, ax = chart(8.9, 1.3 + 0.55 * len(rows), title, left=left, right=0.3)
        for span in spans:
            start, width = span.start - began, span.end - span.start
            row = rows.index(span.stream)
            color = (DATA, COMPUTE_BOUND)[row % 2]
            ax.barh(row, width, left=start, height=0.7, color=color, alpha=0.6, edgecolor=INK)
            if width > 0.012 * len(span.name) * (ended - began):
                ax.text(start + width / 2, row, span.name, ha="center", va="center", size=9)
        ax.set_yticks(range(len(rows)), rows)
        ax.invert_yaxis()
        ax.tick_params(axis="y", length=0)
        ax.set(xlim=(0, ended - began or 1.0), xlabel="time")
        ax.xaxis.set_major_formatter(EngFormatter("s"))
        ax.grid(True, axis="x")
    return fig


def _roofline_title(points: Sequence[tuple[str, float, float]], ridge: float) -> str:
    memory = [label for label, intensity, _ in points if intensity < ridge]
    if not points:
        return f"Memory-bound below {readable(ridge, 'FLOP/B')}, compute-bound above"
    if len(memory) == len(points):
        return f"Memory-bound: all measured points lie below the ridge point of {readable(ridge, 'FLOP/B')}"
    if not memory:
        return f"Compute-bound: all measured points lie above the ridge point of {readable(ridge, 'FLOP/B')}"
    return f"{len(memory)} of {len(points)} measured points are memory-bound, the others compute-bound"

"""Number formats: their bits, the gaps between neighboring numbers, and all their numbers on a line."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from course_utils.plots.axes import add_title, chart, note, wrap_title
from course_utils.plots.style import CONTEXT, DATA, HIGHLIGHT, INK, MARKERS, styled
from course_utils.units import raised


def bit_layouts(layouts: Mapping[str, tuple[int, int]], *, title: str) -> Figure:
    """Draw the bits of formats, one format per row, aligned where exponent and mantissa meet.

    Args:
        layouts: ``{name: (exponent bits, mantissa bits)}``; plus one sign bit each.
        title: The finding.

    Raises:
        ValueError: There are no formats.
    """
    if not layouts:
        raise ValueError("nothing to draw: give at least one format with its bits")
    left = max(exponent for exponent, _ in layouts.values()) + 1
    right = max(mantissa for _, mantissa in layouts.values())
    names = 0.75 * max(map(len, layouts)) + 2  # in bits, which are about as wide as a letter
    width, row_height, head = 8.9, 0.37, 0.62 + 0.24 * len(wrap_title(title, 8.9))
    height = head + row_height * len(layouts) + 0.15
    with styled():
        fig = Figure(figsize=(width, height))
        add_title(fig, wrap_title(title, width))
        ax = fig.add_axes((0.01, 0.15 / height, 0.98, row_height * len(layouts) / height))
        ax.set(xlim=(-left - names, right + 11), ylim=(len(layouts) - 0.5, -0.5))
        ax.axis("off")
        for row, (name, (exponent, mantissa)) in enumerate(layouts.items()):
            ax.text(-left - names, row, name, va="center", family="monospace")
            ax.text(mantissa + 1, row, f"1 + {exponent} + {mantissa}", va="center", weight="bold")
            shades = [1.0] + exponent * [0.65] + mantissa * [0.25]
            for bit, shade in enumerate(shades, start=-exponent - 1):
                ax.barh(row, 1, left=bit, height=0.62, color=(DATA, shade), edgecolor=INK, linewidth=0.5)
        ax.plot([0, 0], [-0.7, len(layouts) - 0.5], color=INK, linewidth=2, clip_on=False)
        note(ax, "sign, exponent: range", (0, -0.5), (-5, 5), ha="right", va="bottom", annotation_clip=False)
        note(ax, "mantissa: precision", (0, -0.5), (5, 5), ha="left", va="bottom", annotation_clip=False)
    return fig


def gap_curves(gaps: Mapping[str, Mapping[int, float]], *, reach: int, title: str) -> Figure:
    """Draw the gap between neighboring numbers against their magnitude, both in powers of two.

    Args:
        gaps: For each format ``{power: gap after 2**power}``, powers ascending. The ends of a curve are marked if they
            lie inside the figure; a curve that continues beyond it has one mark at its right.
        reach: The figure shows magnitudes from 2⁻ʳᵉᵃᶜʰ to 2ʳᵉᵃᶜʰ.
        title: The finding.

    Raises:
        ValueError: There are no formats, or one has no gaps.
    """
    if not gaps or not all(gaps.values()):
        raise ValueError("nothing to draw: give at least one format, each with its gaps")
    with styled():
        fig, ax = chart(8.9, 4.8, title, left=1.1, right=0.4)
        ax.set_xscale("log", base=2)
        ax.set_yscale("log", base=2)
        ax.set(xlim=(2.0**-reach, 2.0**reach), xlabel="magnitude of the number", ylabel="gap to the next number")
        for (name, curve), marker in zip(gaps.items(), MARKERS, strict=False):
            powers = list(curve)
            ax.step([2.0**p for p in powers], list(curve.values()), where="post", color=DATA, alpha=0.7)
            ends = [p for p in (powers[0], powers[-1]) if abs(p) < reach] or [3 * reach // 4]
            marked = [2.0**p for p in ends]
            ax.plot(marked, [curve[p] for p in ends], marker, color=DATA, markeredgecolor=INK, gid=name)
            # Curves rise to the right, so there is room to the left of a curve's first mark and above its last one.
            place = (-9, 0) if ends[0] == powers[0] else (-5, 7)
            look = {"ha": "right", "va": "center" if ends[0] == powers[0] else "bottom"}
            note(ax, name, (marked[0], curve[ends[0]]), place, weight="bold", **look)
        every = 2 ** max(round(math.log2(reach / 4)), 0)
        for axis, step in ((ax.xaxis, every), (ax.yaxis, 2 * every)):
            low, high = (math.log2(limit) / step for limit in axis.get_view_interval())
            axis.set_ticks([2.0 ** (i * step) for i in range(math.ceil(low), math.floor(high) + 1)])
            axis.set_ticks([], minor=True)
            axis.set_major_formatter(FuncFormatter(_power_of_two))
        ax.grid(True)
    return fig


def number_lines(numbers: Mapping[str, tuple[torch.Tensor, float]], *, title: str) -> Figure:
    """Draw every number of small formats as a tick, on a linear axis around zero and on a logarithmic one.

    Args:
        numbers: For each format its finite values and its smallest normal value; smaller magnitudes are highlighted.
        title: The finding.

    Raises:
        ValueError: There are no formats.
    """
    if not numbers:
        raise ValueError("nothing to draw: give at least one format with its numbers")
    positive = torch.cat([values[values > 0].double() for values, _ in numbers.values()])
    low, high = positive.min().item(), positive.max().item()
    width, panel = 8.9, 0.45 * len(numbers) + 0.1
    head = 0.55 + 0.24 * len(wrap_title(title, width))
    height = head + 2 * panel + 1.15 + 0.35
    panels: Sequence[tuple[str, bool, tuple[float, float]]] = (
        ("each number from −4 to 4", False, (-4.1, 4.1)),
        ("the positive numbers, every doubling equally wide", True, (low / 2, high * 2)),
    )
    with styled():
        fig = Figure(figsize=(width, height))
        add_title(fig, wrap_title(title, width))
        for number, (caption, logarithmic, limits) in enumerate(panels):
            down = head + number * (panel + 0.8) + panel
            ax = fig.add_axes((0.1, 1 - down / height, 0.88, panel / height))
            if logarithmic:
                ax.set_xscale("log", base=2)
                ax.xaxis.set_major_formatter(FuncFormatter(_power_of_two))
            ax.set(xlim=limits, ylim=(-0.6, len(numbers) - 0.4))
            note(ax, caption, (0, 1), (0, 4), xycoords="axes fraction", va="bottom", size=10)
            for row, (values, normal_from) in enumerate(numbers.values()):
                shown = values[(values > 0) if logarithmic else (values.abs() <= 4)].double()
                subnormal = shown.abs() < normal_from
                for chosen, color, thick in ((~subnormal, DATA, 1.1), (subnormal, HIGHLIGHT, 1.4)):
                    ax.vlines(shown[chosen].tolist(), row - 0.36, row + 0.36, color=color, lw=thick)
            ax.set_yticks(range(len(numbers)), list(numbers))
            ax.tick_params(axis="y", length=0)
            ax.spines.left.set_visible(False)
            ax.spines.bottom.set_color(CONTEXT)
        fig.text(0.1, 0.1 / height, "Red: subnormal numbers, and zero", size=9.5)
    return fig


def _power_of_two(value: float, _: object = None) -> str:
    return "2" + raised(f"{math.log2(value):.0f}")

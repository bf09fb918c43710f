"""Number formats: their bits, the gaps between neighboring numbers, and all their numbers on a line."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter

from course_utils.plots.axes import add_title, chart, note, wrap_title
from course_utils.plots.style import CONTEXT, DATA, HIGHLIGHT, INK, MARKERS, PREDICTED, styled
from course_utils.units import readable

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


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
            # A curve rises to the right: left of the mark where it begins there is room, and above a mark farther on.
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
        ("the positive numbers, each doubling as wide as the next", True, (low / 2, high * 2)),
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


def bit_pattern(
    fields: Mapping[str, str],
    formula: str,
    *,
    near: tuple[float | None, float, float | None],
    limits: tuple[float, float, float],
    asked: tuple[str, float] | None = None,
    title: str,
) -> Figure:
    """Draw one number of a format: its bits, its two neighbors to scale, and its place in the format's range.

    Args:
        fields: The bits of sign, exponent and mantissa, such as ``{"sign": "0", "exponent": "01111", …}``.
        formula: How to calculate the number from its fields.
        near: The next number below, the number, and the next one above; None if there's none.
        limits: The smallest positive number, the smallest normal one, and the largest finite one.
        asked: A number that was rounded to this one, as text and as value; it's marked between the neighbors.
        title: The finding.
    """
    width, margin = 8.9, 0.3
    lines = wrap_title(title, width)
    bits_top = 0.12 + 0.24 * len(lines) + 0.34
    side = min(0.36, (width - 2 * margin - 0.3) / sum(map(len, fields.values())))
    formula_top, line, bar = bits_top + side + 0.3, bits_top + side + 1.25, bits_top + side + 2.25
    height = bar + 0.65
    with styled():
        fig = Figure(figsize=(width, height))
        add_title(fig, lines)
        ax = fig.add_axes((0, 0, 1, 1))
        ax.set(xlim=(0, width), ylim=(height, 0))
        ax.axis("off")
        left = margin
        for (name, bits), shade in zip(fields.items(), (1.0, 0.65, 0.25), strict=True):
            label = name if name == "sign" else f"{name} {int(bits, 2):,}"
            ax.text(left, bits_top - 0.06, label, size=9, va="bottom")
            for bit in bits:
                look: dict[str, Any] = {"facecolor": (DATA, shade), "edgecolor": INK, "linewidth": 0.6, "gid": name}
                ax.add_artist(Rectangle((left, bits_top), side, side, **look))
                ax.text(left + side / 2, bits_top + side / 2, bit, weight="bold", ha="center", va="center")
                left += side
            left += 0.15
        ax.text(margin, formula_top, formula, size=11, va="center", gid="formula")
        _draw_neighbors(ax, near, asked, line)
        _draw_range(ax, near[1], limits, (margin, width - margin), bar)
    return fig


def _draw_neighbors(
    ax: Axes, near: tuple[float | None, float, float | None], asked: tuple[str, float] | None, line: float
) -> None:
    below, here, above = near
    center, reach = 4.45, 2.9  # inches
    text: dict[str, Any] = {"size": 9, "ha": "center", "va": "center"}
    if math.isnan(here):
        ax.text(0.3, line, "NaN has no neighbors: it is not smaller, larger or equal, not even to itself", size=10)
        return
    gaps = [abs(here - other) for other in (below, above) if other is not None and math.isfinite(here - other)]
    largest = max(gaps, default=1.0)
    ax.plot([center - 1.25 * reach, center + 1.25 * reach], [line, line], color=CONTEXT, linewidth=1.5)
    for other, way in ((below, -1), (above, 1)):
        if other is None:
            ax.text(center + way * reach, line - 0.17, "nothing further", **text)
            continue
        gap = abs(here - other)
        scale = gap / largest if math.isfinite(gap) else 1.0
        at = center + way * scale * reach
        ax.plot([at, at], [line - 0.09, line + 0.09], color=INK, linewidth=1.5)
        ax.text(at, line + 0.22, f"{other:.9g}".replace("inf", "∞").replace("-", "−"), **text)
        words = f"gap {_power_of_two(gap)}" if math.isfinite(gap) else "infinitely far"
        # A number is at most half a gap from what was asked for: beyond that the words are alone.
        ax.text(center + 0.75 * (at - center), line - 0.13, words, **text)
    ax.plot([center], [line], "o", color=DATA, markeredgecolor=INK, markersize=10, gid="here")
    ax.text(center, line + 0.22, f"{here:.9g}".replace("inf", "∞").replace("-", "−"), weight="bold", **text)
    if asked is not None and math.isfinite(asked[1] - here) and abs(asked[1] - here) <= largest:
        at = center + (asked[1] - here) / largest * reach
        ax.plot([at, at], [line - 0.32, line], color=PREDICTED, linewidth=1)
        ax.plot([at], [line], "D", markerfacecolor="none", markeredgecolor=PREDICTED, markeredgewidth=2, gid="asked")
        ax.text(at, line - 0.4, f"asked for: {asked[0]}", **text)


def _draw_range(
    ax: Axes, here: float, limits: tuple[float, float, float], ends: tuple[float, float], top: float
) -> None:
    smallest, normal, largest = limits
    low, high = math.log2(smallest), math.log2(largest)
    left, right = ends[0] + 0.6, ends[1] - 0.6  # zero and infinity lie beyond the scale

    def at(value: float) -> float:
        return left + (math.log2(value) - low) / (high - low) * (right - left)

    for start, stop, color in ((left, at(normal), HIGHLIGHT), (at(normal), right, DATA)):
        look: dict[str, Any] = {"facecolor": (color, 0.45), "edgecolor": INK, "linewidth": 0.6}
        ax.add_artist(Rectangle((start, top - 0.09), stop - start, 0.18, **look))
    small: dict[str, Any] = {"size": 9, "va": "center"}
    for value, name, way, row in (
        (smallest, f"{_power_of_two(smallest)} smallest of all (red: subnormal)", "left", 2),
        (normal, f"{_power_of_two(normal)} smallest normal", "left", 1),
        (largest, f"{readable(largest, '')} largest", "right", 1),
    ):
        ax.plot([at(value)] * 2, [top + 0.09, top + 0.14 + 0.2 * (row - 1)], color=INK, linewidth=0.8)
        ax.text(at(value), top + 0.04 + 0.2 * row, name, ha=way, **small)
    if not math.isnan(here):
        place = left - 0.3 if here == 0 else right + 0.3 if math.isinf(here) else at(abs(here))
        if here == 0 or math.isinf(here):
            ax.text(place, top, "0" if here == 0 else "∞", ha="center", va="center")
        ax.plot([place], [top - 0.2], "v", color=DATA, markeredgecolor=INK, markersize=10, gid="place")
        side = "left" if place < (left + right) / 2 else "right"
        words = "this number’s magnitude, each doubling as wide as the next"
        ax.text(place + (0.12 if side == "left" else -0.12), top - 0.24, words, ha=side, **small)


def superscript(number: int | str) -> str:
    return str(number).translate(_SUPERSCRIPT)


def _power_of_two(value: float, _: object = None) -> str:
    return "2" + superscript(f"{math.log2(value):.0f}")

"""Bytes as bars."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import EngFormatter

from course_utils.plots.axes import chart, note, positive, wrap_title
from course_utils.plots.style import CONTEXT, DATA, HIGHLIGHT, INK, styled
from course_utils.units import readable

MAX_CARDS = 64  # memory_bar draws one box for each


# From dark to light, far enough apart to be told from each other in a legend.
_BLUES = ("#172b57", "#3763c4", DATA, "#a9c6fe", "#e6efff")


def _steps(count: int) -> list[str]:
    """Colors of a bar's parts, from dark to light, as different as that many can be."""
    last = len(_BLUES) - 1
    return [_BLUES[round(i * last / max(count - 1, 1))] for i in range(min(count, len(_BLUES)))]


def memory_bar(parts: Mapping[str, float], *, capacity: float, capacity_label: str, title: str | None = None) -> Figure:
    """Draw bytes as one bar of consecutive parts, above the cards needed to hold them.

    Args:
        parts: Bytes by purpose, in order: ``{"parameters": 2e9, "gradients": 2e9}``.
        capacity: Bytes that one card holds.
        capacity_label: What to call it, such as ``"80 GB card"``.
        title: The finding; by default how many cards are needed.

    Raises:
        ValueError: There are no parts, a number isn't positive and finite, or more than 64 cards are needed.
    """
    if not parts:
        raise ValueError("nothing to draw: give at least one part with its bytes")
    sizes = [positive(size, f"the size of {name!r}") for name, size in parts.items()]
    total, cards = sum(sizes), math.ceil(sum(sizes) / positive(capacity, "the capacity"))
    if cards > MAX_CARDS:
        raise ValueError(f"{readable(total, 'B')} needs {cards:,} cards of {readable(capacity, 'B')}: too many to draw")
    if title is None:
        title = f"{readable(total, 'B')} needs {cards} × {capacity_label}"
    with styled():
        width = 8.9
        fig, ax = chart(width, 2.55 + 0.24 * len(wrap_title(title, width)), title, left=0.3, right=0.3)
        end = max(total, cards * capacity)
        ax.set(xlim=(0, end), ylim=(0, 2.5))
        ax.spines.left.set_visible(False)
        ax.set_yticks([])
        ax.xaxis.set_major_formatter(EngFormatter(unit="B"))
        start = 0.0
        for number, (name, size) in enumerate(zip(parts, sizes, strict=True)):
            shade = 0.85 - 0.6 * number / max(len(sizes) - 1, 1)
            ax.add_artist(Rectangle((start, 1.1), size, 0.8, facecolor=to_rgba(DATA, shade), edgecolor=INK, gid=name))
            text = f"{name}\n{readable(size, 'B')} · {size / total:.1%}"
            middle = start + size / 2
            if size / end > 0.2:
                ax.text(middle, 1.5, text, ha="center", va="center")
            else:
                # Too narrow to be written on: beside it, above the bar.
                right = middle > end / 2
                look: dict[str, Any] = {"ha": "right" if right else "left", "va": "bottom"}
                ax.text(start + size if right else start, 1.98, text.replace("\n", ": "), **look)
            start += size
        for card in range(cards):
            box = Rectangle((card * capacity, 0.25), capacity, 0.6, fill=False, edgecolor=CONTEXT, linewidth=1.5)
            ax.add_artist(box)
            first = card == 0 and capacity / end > 0.12
            ax.text((card + 0.5) * capacity, 0.55, capacity_label if first else f"{card + 1}", ha="center", va="center")
    return fig


def memory_stacks(
    bars: Mapping[str, Mapping[str, float]], *, limits: Mapping[str, float] | None = None, title: str
) -> Figure:
    """Draw bytes as horizontal bars of stacked parts, with lines at memory limits.

    Args:
        bars: For each bar its bytes by purpose, 0 or more: ``{"SGD": {"parameters": 2e9, "gradients": 2e9}, …}``.
        limits: Bytes at which to draw a line, by label, such as ``{"H100: 80 GB": 80e9}``.
        title: The finding.

    Raises:
        ValueError: There are no bars, a part is negative, or a bar or limit isn't positive and finite.
    """
    if not bars:
        raise ValueError("nothing to draw: give at least one bar with its parts")
    totals = {}
    for name, parts in bars.items():
        if any(size < 0 for size in parts.values()):
            raise ValueError(f"a part of {name!r} is negative: {dict(parts)}")
        totals[name] = positive(sum(parts.values()), f"the sum of {name!r}")
    ends = {label: positive(at, f"the limit {label!r}") for label, at in (limits or {}).items()}
    kinds = list(dict.fromkeys(part for parts in bars.values() for part in parts))
    colors = dict(zip(kinds, itertools.cycle(_steps(len(kinds)))))
    with styled():
        width, row = 8.9, 0.42
        room = 1.35 + 0.24 * len(wrap_title(title, width)) + row * len(bars)
        fig, ax = chart(width, room, title, left=0.3 + 0.085 * max(map(len, bars)), right=0.9)
        end = 1.05 * max([*totals.values(), *ends.values()])
        ax.set(xlim=(0, end), ylim=(len(bars) - 0.5, -1.0 if ends else -0.5))
        ax.set_yticks(range(len(bars)), list(bars))
        ax.tick_params(axis="y", length=0)
        ax.spines.left.set_visible(False)
        ax.xaxis.set_major_formatter(EngFormatter(unit="B"))
        for place, (name, parts) in enumerate(bars.items()):
            start = 0.0
            for kind, size in parts.items():
                look: dict[str, Any] = {"facecolor": colors[kind], "edgecolor": INK, "linewidth": 0.8}
                ax.add_artist(Rectangle((start, place - 0.3), size, 0.6, gid=f"{name}: {kind}", **look))
                start += size
            at_end: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "ha": "left", "va": "center"}
            note(ax, readable(totals[name], "B"), (1, place), (6, 0), **at_end)
        for label, at in ends.items():
            ax.plot([at, at], [-0.55, len(bars) - 0.5], color=HIGHLIGHT, linewidth=1.8, linestyle="--", gid=label)
            ax.text(at, -0.6, label, ha="center", va="bottom", size=9)
        handles = [Patch(facecolor=colors[kind], edgecolor=INK, label=kind) for kind in kinds]
        fig.legend(handles=handles, loc="lower center", ncols=len(kinds), frameon=False, fontsize=9)
    return fig

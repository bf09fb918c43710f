"""Bytes as bars."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import EngFormatter

from course_utils.plots.axes import chart, positive, wrap_title
from course_utils.plots.style import CONTEXT, DATA, INK, styled
from course_utils.units import readable

MAX_CARDS = 64  # memory_bar draws one box for each


def memory_bar(parts: Mapping[str, float], *, capacity: float, capacity_label: str, title: str | None = None) -> Figure:
    """Draw bytes as one bar, part after part, above as many cards as it takes to hold them.

    Args:
        parts: What the bytes are for, in order, with how many: ``{"parameters": 2e9, "gradients": 2e9}``.
        capacity: Bytes that one card holds.
        capacity_label: What to call it, such as ``"80 GB card"``.
        title: The finding; by default how many cards it takes.

    Raises:
        ValueError: There are no parts, a number is not positive and finite, or it takes more than 64 cards.
    """
    if not parts:
        raise ValueError("nothing to draw: give at least one part with its bytes")
    sizes = [positive(size, f"the size of {name!r}") for name, size in parts.items()]
    total, cards = sum(sizes), math.ceil(sum(sizes) / positive(capacity, "the capacity"))
    if cards > MAX_CARDS:
        raise ValueError(f"{readable(total, 'B')} take {cards:,} cards of {readable(capacity, 'B')}: too many to draw")
    if title is None:
        title = f"{readable(total, 'B')} take {cards} × {capacity_label}"
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
            ax.add_patch(Rectangle((start, 1.1), size, 0.8, facecolor=to_rgba(DATA, shade), edgecolor=INK, gid=name))
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
            ax.add_patch(box)
            first = card == 0 and capacity / end > 0.12
            ax.text((card + 0.5) * capacity, 0.55, capacity_label if first else f"{card + 1}", ha="center", va="center")
    return fig

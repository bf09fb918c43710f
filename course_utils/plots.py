"""Figures for the lectures: one palette, alt text, readable in JupyterLab's light and dark theme.

Each builder returns a :class:`matplotlib.figure.Figure` of its own (nothing is registered with pyplot, so your plots
are left alone); :func:`show` displays any figure as inline SVG:

    fig = plots.storage_layout(torch.arange(12).reshape(3, 4).T)
    plots.show(fig, alt="The transpose walks the same twelve slots in steps of 4.")

A colour says what kind of thing a mark is, a marker says which one. Text is never coloured: it takes the page's colour.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import re
import sys
import textwrap
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import StringIO
from typing import Any, cast

import matplotlib
import matplotlib.style
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, Rectangle
from matplotlib.path import Path
from matplotlib.text import Annotation, Text
from matplotlib.ticker import EngFormatter, FuncFormatter, NullFormatter
from matplotlib.transforms import Bbox
from numpy.typing import NDArray

from course_utils.units import plain, readable, takes_prefix

# "petroff6": Matthew A. Petroff, "Accessible Color Sequences for Data Visualization", arXiv:2107.02270 (2021).
PETROFF6 = ("#5790fc", "#f89c20", "#e42536", "#964a8b", "#9c9ca1", "#7a21dd")

# One meaning per colour, in every figure of the course.
DATA = MEMORY_BOUND = PETROFF6[0]  # bytes: what a tensor holds, and being limited by moving it
MEASURED = PETROFF6[1]  # a number that was measured; always a filled mark
HIGHLIGHT = PETROFF6[2]  # look here
PREDICTED = PETROFF6[3]  # a number that was computed beforehand; always a hollow mark
CONTEXT = PETROFF6[4]  # grids, reference lines, what is not in use
COMPUTE_BOUND = PETROFF6[5]  # FLOPs, and being limited by them

INK = "#000000"  # text, axes, ticks: `to_html` turns it into the page's own text colour
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")
MAX_SLOTS = 64  # storage_layout draws one cell per slot
MAX_DIM = 16  # ... and at most this many in a row or column

_STYLE: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": CONTEXT,
    "grid.alpha": 0.35,
    "grid.linewidth": 0.8,
    "lines.markersize": 8,
    "text.parse_math": False,  # a label may hold a dollar sign
}
_SVG: dict[str, Any] = {
    "svg.fonttype": "path",  # outlines look the same on every machine; the alt text serves screen readers
    "svg.hashsalt": "every-byte-every-flop",
    "savefig.bbox": "standard",
    "path.simplify": True,
}


@contextmanager
def _style() -> Iterator[None]:
    """Matplotlib's defaults and the course's style inside, whatever the caller has set; restored outside."""
    with matplotlib.style.context(["default", _STYLE]):
        yield


# --- showing a figure ---------------------------------------------------------------------------------------------


def to_html(fig: Figure, *, alt: str) -> str:
    """Return ``fig`` as one inline ``<svg>`` element: black becomes the page's text colour, white nothing.

    The same figure gives the same bytes. Ids are made from the content, so several figures can share a page. The
    width is the figure's own (96 CSS pixels per inch), less where the page is narrower.

    Args:
        alt: What the figure shows, as a sentence with its finding; read out by screen readers.

    Raises:
        ValueError: ``alt`` is empty.
    """
    alt = " ".join(alt.split())
    if not alt:
        raise ValueError(
            "alt is empty: say in a sentence what the figure shows and what follows from it, "
            "for those who do not see it"
        )
    buffer = StringIO()
    no_metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with matplotlib.style.context(_SVG):
        fig.savefig(buffer, format="svg", transparent=True, metadata=no_metadata)
    root = ET.fromstring(buffer.getvalue())

    prefix = "fig-" + hashlib.sha256((alt + buffer.getvalue()).encode()).hexdigest()[:10] + "-"
    referenced = set(re.findall(r'(?:href="|url\()#([^")]+)', buffer.getvalue()))
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.endswith("}style"):  # a style element would reach the whole page
                parent.remove(child)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        for name, value in list(element.attrib.items()):
            del element.attrib[name]
            name = name.rpartition("}")[2]  # xlink:href is written as href
            if name == "id":
                if value in referenced:
                    element.set(name, prefix + value)
                continue
            if name == "href" and value.startswith("#"):  # an image's href holds its data
                value = "#" + prefix + value[1:]
            value = value.replace("url(#", "url(#" + prefix).replace(INK, "currentColor")
            value = value.replace("fill: #ffffff", "fill: none")  # white means paper: a legend's box
            element.set(name, value)

    width, height = fig.get_size_inches() * 96
    view_box = root.attrib["viewBox"]
    root.attrib.clear()
    root.attrib.update(
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": view_box,
            "width": f"{width:.0f}",
            "height": f"{height:.0f}",
            "role": "img",
            "aria-label": alt,
            "fill": "currentColor",  # matplotlib writes no fill where it is black
            "style": "max-width:100%;height:auto;stroke-linejoin:round;stroke-linecap:butt",
        }
    )
    title = ET.Element("title")
    title.text = alt
    root.insert(0, title)
    return ET.tostring(root, encoding="unicode")


def show(fig: Figure, *, alt: str) -> None:
    """Display ``fig`` in the notebook as inline SVG and close it; a terminal prints ``alt``.

    Works for any matplotlib figure, also one made with pyplot.

    Args:
        alt: What the figure shows, as a sentence with its finding.

    Raises:
        ValueError: ``alt`` is empty.
    """
    from IPython.display import display

    html = to_html(fig, alt=alt)
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close(fig)
    display({"text/html": html, "text/plain": " ".join(alt.split())}, raw=True)  # type: ignore[no-untyped-call]


# --- the layout of a tensor in storage ----------------------------------------------------------------------------

_CELL = 0.46  # inches; also the unit of everything below
_LEFT = 1.42
_RIGHT = 0.32
_STEP_WORDS = {1: ["element"], 2: ["row", "column"], 3: ["slice", "row", "column"]}


def storage_layout(
    x: torch.Tensor, *, title: str | None = None, highlight: Sequence[int] | Sequence[Sequence[int]] | None = None
) -> Figure:
    """Draw a tensor and, below it, the storage it looks at.

    The same shade and the same small number mean the same slot: element ``[i, j]`` lies in slot
    ``storage_offset + i * stride(0) + j * stride(1)``. Arrows show the steps that the strides take, in elements. Slots
    the tensor does not touch are hollow; ``×3`` marks a slot that three elements share. Slots are counted in elements
    of ``x``, not in bytes.

    Args:
        x: Strided, of 0 to 3 dims, at most 16 in each of them (64 if there is only one), at most 64 elements on
            at most 64 slots. Any dtype and device; a meta tensor is drawn without values.
        title: What the figure shows; by default what can be seen from the strides.
        highlight: The index of an element, such as ``(1, 2)``, or a list of them: outlined here and in the storage.

    Raises:
        TypeError: ``x`` is not a tensor.
        ValueError: ``x`` is sparse, empty or too large to draw, or ``highlight`` is outside of it.
    """
    _check_drawable(x)
    shape, strides, offset = tuple(x.shape), x.stride(), int(x.storage_offset())
    slots = x.untyped_storage().nbytes() // x.element_size()
    slot_of = {
        index: offset + sum(i * s for i, s in zip(index, strides, strict=True))
        for index in itertools.product(*map(range, shape))
    }
    elements_in: dict[int, int] = {}
    for slot in slot_of.values():
        elements_in[slot] = elements_in.get(slot, 0) + 1
    marked = _normalise_highlight(highlight, shape)
    marked_slots = {slot_of[index] for index in marked}
    values = _slot_values(x, slots)

    # Everything is laid out in inches from the top left corner, so that nothing depends on a solver.
    per_line = math.ceil(slots / math.ceil(slots / MAX_DIM))
    grids = _grids(shape)
    across = max((g[1] + g[2] * _CELL for g in grids), default=_CELL)
    width = max(7.0, _LEFT + max(across, per_line * _CELL) + _RIGHT)
    if title is None:
        title = _storage_title(x, slots, len(elements_in))
    title_lines = _wrap_title(title, width)
    facts = (
        f"shape {_tuple(shape)}   strides {_tuple(strides)}   storage_offset {offset}   "
        f"{str(x.dtype).removeprefix('torch.')}, {x.element_size()} B per element"
    )

    top = 0.12 + 0.24 * len(title_lines) + 0.36  # title and facts
    words = _STEP_WORDS.get(len(shape), [])
    steps = {word: stride for word, stride, size in zip(words, strides, shape, strict=True) if size > 1}
    grid_top = top + (0.2 if shape else 0) + 0.24 * (len(shape) == 3) + 0.22 * ("slice" in steps)
    grid_bottom = grid_top + max(g[0] + g[3] * _CELL for g in grids)

    first_line = offset // per_line
    in_line = sorted({s for s in steps.values() if s > 0 and (offset + s) // per_line == first_line}, reverse=True)
    across_lines = sorted({s for s in steps.values() if s > 0} - set(in_line))
    line_tops: list[float] = []
    y = grid_bottom + (0.5 if {"element", "column"} & steps.keys() else 0.25)
    for line in range(math.ceil(slots / per_line)):
        y += 0.28 * len(in_line) + 0.1 if line == first_line else 0
        y += 0.3 if line - 1 > first_line and any((offset + s) // per_line == line for s in across_lines) else 0
        line_tops.append(y)
        y += _CELL + 0.12 + (0.26 + 0.32 * bool(across_lines) if line == first_line else 0)
    legend_top = y + 0.12
    height = legend_top + 0.34

    with _style():
        fig = Figure(figsize=(width, height))
        ax = fig.add_axes((0, 0, 1, 1))
        ax.set(xlim=(0, width), ylim=(height, 0))
        ax.axis("off")
        for i, line_text in enumerate(title_lines):
            ax.text(0.12, 0.12 + 0.24 * i, line_text, size=12, weight="bold", va="top")
        ax.text(0.12, 0.16 + 0.24 * len(title_lines), facts, size=10, va="top")

        def cell(left: float, top: float, slot: int, gid: str, *, used: bool, mark: bool, badge: int = 1) -> None:
            _square(ax, left, top, _CELL, 0.12 + 0.58 * slot / max(slots - 1, 1) if used else None, gid=gid)
            if mark:
                inner, side = (left + 0.02, top + 0.02), _CELL - 0.04
                frame: dict[str, Any] = {"edgecolor": HIGHLIGHT, "linewidth": 3, "zorder": 3, "gid": f"highlight {gid}"}
                ax.add_patch(Rectangle(inner, side, side, fill=False, **frame))
            text = values[slot] if values is not None else ""
            size = min(10.0, 50 / max(len(text), 1))
            alpha = 1.0 if used else 0.6
            ax.text(left + _CELL / 2, top + 0.19, text, size=size, ha="center", va="center", alpha=alpha)
            small: dict[str, Any] = {"size": 7.5, "va": "center", "alpha": 0.75}
            if badge > 1:
                ax.text(left + 0.05, top + 0.375, str(slot), ha="left", **small)
                ax.text(left + _CELL - 0.04, top + 0.375, f"×{badge}", ha="right", gid=f"shared {slot}", **small)
            else:
                ax.text(left + _CELL / 2, top + 0.375, str(slot), ha="center", **small)

        _draw_grids(ax, shape, grids, grid_top, slot_of, marked, cell)
        _draw_steps(ax, steps, grids, grid_top, grid_bottom)

        ax.text(_LEFT - 0.14, line_tops[0] + 0.03, "storage", size=10, weight="bold", ha="right", va="top")
        size_text = f"{_slots(slots)} × {x.element_size()} B\n= {slots * x.element_size():,} B"
        ax.text(_LEFT - 0.14, line_tops[0] + 0.22, size_text, size=8, ha="right", va="top", linespacing=1.15)
        for slot in range(slots):
            used = slot in elements_in
            left = _LEFT + slot % per_line * _CELL
            top = line_tops[slot // per_line]
            badge = elements_in.get(slot, 0)
            cell(left, top, slot, f"slot {slot}", used=used, mark=slot in marked_slots, badge=badge)

        def centre(slot: int) -> float:
            return _LEFT + (slot % per_line + 0.5) * _CELL

        line_top = line_tops[first_line]
        for level, stride in enumerate(reversed(in_line)):
            up = line_top - 0.14 - 0.28 * level
            end = centre(offset + stride)
            _arrow(ax, [(centre(offset), line_top), (centre(offset), up), (end, up), (end, line_top - 0.01)])
            middle = (centre(offset) + end) / 2
            ax.text(middle, up - 0.025, f"+{stride}", size=9, weight="bold", ha="center", va="bottom")
        for stride in across_lines:
            target = offset + stride
            target_top = line_tops[target // per_line]
            start_x, end_x, lane = centre(offset) + 0.1, centre(target) + 0.1, line_top + _CELL + 0.42
            route = [(start_x, line_top + _CELL), (start_x, lane)]
            if target // per_line > first_line + 1:
                side = _LEFT + per_line * _CELL + 0.14
                route += [(side, lane), (side, target_top - 0.2), (end_x, target_top - 0.2)]
            else:
                route += [(end_x, lane)]
            _arrow(ax, [*route, (end_x, target_top - 0.01)])
            ax.text(end_x + 0.06, target_top - 0.04, f"+{stride}", size=9, weight="bold", ha="left", va="bottom")
        pointer = centre(offset) - (0.1 if across_lines else 0)
        _arrow(ax, [(pointer, line_top + _CELL + 0.24), (pointer, line_top + _CELL + 0.02)])
        ax.text(pointer - 0.08, line_top + _CELL + 0.17, f"storage_offset {offset}", size=9, ha="right", va="center")

        at = _LEFT
        legend: list[tuple[float | None, str]] = [(0.4, "same shade and small number: same slot")]
        if len(elements_in) < slots:
            legend.append((None, "slot not in this tensor"))
        for shade, text in legend:
            _square(ax, at, legend_top + 0.03, 0.16, shade)
            ax.text(at + 0.24, legend_top + 0.11, text, size=9, va="center")
            at += 0.5 + 0.072 * len(text)
        if max(elements_in.values()) > 1:
            ax.text(at, legend_top + 0.11, "×n: n elements share the slot", size=9, va="center")
    return fig


def _square(ax: Axes, left: float, top: float, side: float, shade: float | None, gid: str | None = None) -> None:
    """A cell: filled by its shade, or hollow where that is None."""
    if shade is None:
        look: dict[str, Any] = {"facecolor": "none", "edgecolor": CONTEXT, "linestyle": (0, (3, 2))}
    else:
        look = {"facecolor": to_rgba(DATA, shade), "edgecolor": to_rgba(INK, 0.75)}
    ax.add_patch(Rectangle((left, top), side, side, linewidth=0.8, gid=gid, **look))


def _check_drawable(x: object) -> None:
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"storage_layout draws a torch.Tensor, got {type(x).__name__}")
    if x.layout != torch.strided:
        raise ValueError(f"got a tensor of layout {x.layout}: only a strided tensor has strides; use x.to_dense()")
    given = f"got shape {_tuple(x.shape)}"
    if x.ndim > 3:
        raise ValueError(f"{given}: at most 3 dims can be drawn; take a slice, such as x[0]")
    if x.numel() == 0:
        raise ValueError(f"{given}: an empty tensor has no elements to draw")
    slots = x.untyped_storage().nbytes() // x.element_size()
    if slots > MAX_SLOTS or x.numel() > MAX_SLOTS:
        raise ValueError(
            f"{given} on a storage of {slots} slots: at most {MAX_SLOTS} elements and {MAX_SLOTS} slots can be drawn; "
            "take a smaller tensor (a slice keeps the whole storage: add .clone())"
        )
    if x.ndim > 1 and max(x.shape) > MAX_DIM:
        raise ValueError(f"{given}: at most {MAX_DIM} in a dim can be drawn; take a slice, such as x[:, :{MAX_DIM}]")


def _normalise_highlight(
    highlight: Sequence[int] | Sequence[Sequence[int]] | None, shape: tuple[int, ...]
) -> set[tuple[int, ...]]:
    marked = set()
    one = highlight is not None and len(highlight) > 0 and isinstance(highlight[0], int)
    for index in cast(Sequence[Sequence[int]], [highlight] if one else highlight or []):
        if len(index) != len(shape) or not all(-n <= i < n for i, n in zip(index, shape, strict=True)):
            raise ValueError(
                f"highlight {_tuple(index)} is no element of a tensor of shape {_tuple(shape)}: "
                f"give {len(shape)} indices, each within its dim"
            )
        marked.add(tuple(i % n for i, n in zip(index, shape, strict=True)))
    return marked


def _slot_values(x: torch.Tensor, slots: int) -> list[str] | None:
    """What each slot of the storage holds, as short text; None where there is no data (meta)."""
    if x.is_meta:
        return None
    everything = x.detach().as_strided((slots,), (1,), 0).cpu()
    if everything.dtype == torch.bool:
        return ["T" if v else "F" for v in everything.tolist()]
    if everything.dtype.is_floating_point:
        everything = everything.float() if everything.element_size() < 4 else everything
        short = [f"{v:.3g}" if 1e-3 <= abs(v) < 1e6 or v == 0 else f"{v:.2g}" for v in everything.tolist()]
        return [re.sub(r"e\+?(-?)0?", r"e\1", text) for text in short]
    if everything.dtype.is_complex:
        return [f"{v:.2g}" for v in everything.tolist()]
    return [str(v) if abs(v) < 1e6 else f"{v:.2g}" for v in everything.tolist()]


def _storage_title(x: torch.Tensor, slots: int, touched: int) -> str:
    if x.numel() > touched:
        return f"{x.numel()} elements in {_slots(touched)}: elements share memory"
    if x.is_contiguous():
        if touched < slots:
            return f"A contiguous view of {touched} of {_slots(slots)} in storage"
        if x.ndim > 1:
            return "Contiguous: row by row through the tensor is slot by slot"
        return "Contiguous: the elements lie side by side in storage"
    if touched < slots:
        return f"A view that steps over storage: it touches {touched} of {_slots(slots)}"
    return "Not contiguous: the same storage, read in another order"


def _slots(count: int) -> str:
    return f"{count} slot" if count == 1 else f"{count} slots"


def _grids(shape: tuple[int, ...]) -> list[tuple[float, float, int, int]]:
    """Where the tensor's grids lie: (down, across, columns, rows) each, in inches from the first one's corner."""
    if len(shape) < 2:
        count = shape[0] if shape else 1
        lines = math.ceil(count / MAX_DIM)
        per_line = math.ceil(count / lines)
        return [(line * (_CELL + 0.3), 0.0, min(per_line, count - line * per_line), 1) for line in range(lines)]
    if len(shape) == 2:
        return [(0.0, 0.0, shape[1], shape[0])]
    gap = 0.36
    pitch = shape[2] * _CELL + gap
    fit = max(1, int((MAX_DIM * _CELL + gap) / pitch))
    per_line = math.ceil(shape[0] / math.ceil(shape[0] / fit))
    return [
        (i // per_line * (shape[1] * _CELL + 0.62), i % per_line * pitch, shape[2], shape[1]) for i in range(shape[0])
    ]


def _draw_grids(
    ax: Axes,
    shape: tuple[int, ...],
    grids: list[tuple[float, float, int, int]],
    grid_top: float,
    slot_of: dict[tuple[int, ...], int],
    marked: set[tuple[int, ...]],
    cell: Any,
) -> None:
    """The tensor's cells with their index labels; a gid names each cell for tests."""
    label: dict[str, Any] = {"size": 9, "alpha": 0.75}
    seen = 0
    for number, (down, across, columns, rows) in enumerate(grids):
        top, left = grid_top + down, _LEFT + across
        if len(shape) == 3:
            ax.text(left, top - 0.24, f"x[{number}]", size=9.5, weight="bold", ha="left", va="bottom")
        for column in range(columns):
            if shape:
                name = str(seen + column if len(shape) == 1 else column)
                ax.text(left + (column + 0.5) * _CELL, top - 0.05, name, ha="center", va="bottom", **label)
            for row in range(rows):
                if len(shape) < 2:
                    index: tuple[int, ...] = (seen + column,) if shape else ()
                else:
                    index = (row, column) if len(shape) == 2 else (number, row, column)
                cell(
                    left + column * _CELL,
                    top + row * _CELL,
                    slot_of[index],
                    f"element {_tuple(index)} in slot {slot_of[index]}",
                    used=True,
                    mark=index in marked,
                )
        if len(shape) > 1 and across == 0:
            for row in range(rows):
                ax.text(left - 0.1, top + (row + 0.5) * _CELL, str(row), ha="right", va="center", **label)
        seen += columns


def _draw_steps(
    ax: Axes, steps: dict[str, int], grids: list[tuple[float, float, int, int]], grid_top: float, grid_bottom: float
) -> None:
    """Arrows beside the grid that say what a step along each dim adds to the slot number."""
    half = _CELL / 2
    for word, stride in steps.items():
        text = f"+{stride} to the next {word}"
        if word == "row":
            x = _LEFT - 0.3
            _arrow(ax, [(x, grid_top + half), (x, grid_top + half + _CELL)])
            ax.text(x - 0.08, grid_top + _CELL, text.replace(" to", "\nto"), size=9, ha="right", va="center")
        elif word == "slice":
            lane, start = grid_top - 0.33, _LEFT + 0.42
            if grids[1][0] == 0:  # the next slice is to the right
                _arrow(ax, [(start, lane), (_LEFT + grids[1][1] - 0.04, lane)])
                ax.text(start, lane - 0.06, text, size=9, va="bottom")
            else:
                ax.text(start, lane, f"{text} (below)", size=9, va="center")
        else:
            lane = grid_bottom + 0.16
            _arrow(ax, [(_LEFT + half, lane), (_LEFT + half + _CELL, lane)])
            ax.text(_LEFT + half + _CELL + 0.08, lane, text, size=9, va="center")


def _arrow(ax: Axes, points: Sequence[tuple[float, float]]) -> None:
    """A thin arrow along straight lines."""
    path = Path([*points])
    style = "-|>,head_length=4,head_width=2"
    ax.add_patch(
        FancyArrowPatch(path=path, arrowstyle=style, color=INK, linewidth=1.1, joinstyle="round", capstyle="butt")
    )


def _tuple(values: Iterable[int]) -> str:
    """(4,) rather than torch.Size([4])."""
    return str(tuple(values))


# --- charts -------------------------------------------------------------------------------------------------------


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

    The roof is ``min(peak, bandwidth * intensity)``. Left of the ridge point ``peak / bandwidth`` it is the memory that
    limits, right of it the arithmetic. Source: Williams, Waterman and Patterson, "Roofline: an insightful visual
    performance model for multicore architectures", CACM 52(4), 2009.

    Args:
        peak: FLOP/s of the device, or None where it is unknown: ``ceiling`` takes its place, and the label says so.
        bandwidth: B/s to and from memory.
        points: Measured ``(label, intensity in FLOP/B, achieved FLOP/s)``; filled marks.
        predicted: The same, computed beforehand; hollow marks. A label that is also in ``points`` takes its marker.
        ceiling: The highest FLOP/s measured on the device, for where ``peak`` is None.
        peak_label: The name of the flat part of the roof, such as "bf16 peak, dense".
        bandwidth_label: The name of the slanted part.
        title: The finding; by default which side of the ridge point the measured points are on.

    Raises:
        TypeError: What should be a number is none.
        ValueError: A number is not positive and finite, or both ``peak`` and ``ceiling`` are None.
    """
    if peak is None:
        if ceiling is None:
            raise ValueError(
                "peak is None and so is ceiling: where the peak of a device is unknown, measure the FLOP/s of its best "
                "matmul and pass that as ceiling="
            )
        roof, roof_name = _positive(ceiling, "ceiling"), "measured ceiling (peak unknown)"
    else:
        roof, roof_name = _positive(peak, "peak"), peak_label
    _positive(bandwidth, "bandwidth")
    marks = [(*point, True) for point in points] + [(*point, False) for point in predicted]
    for label, intensity, rate, _ in marks:
        _positive(intensity, f"the intensity of {label!r}")
        _positive(rate, f"the FLOP/s of {label!r}")
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

    with _style():
        fig, ax = _chart(8.9, 5.4, title, left=1.25, right=0.25)
        ax.set(xscale="log", yscale="log", xlim=(x_low, x_high), ylim=(y_low, y_high))
        ax.set(xlabel="arithmetic intensity (FLOP/B)", ylabel="FLOP/s")
        ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.10g}"))
        ax.yaxis.set_major_formatter(EngFormatter(unit="FLOP/s"))
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_minor_formatter(NullFormatter())
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
        _note(ax, "\n".join(flat).replace("\N{NO-BREAK SPACE}", " "), (x_high, roof), (-4, 9), ha="right", va="bottom")
        to_text = {"arrowstyle": "-", "linestyle": (0, (2, 3)), "relpos": (0, 0), "shrinkA": 0, "shrinkB": 4}
        ridge_text = f"ridge point: {readable(ridge, 'FLOP/B')}"
        _note(ax, ridge_text, (ridge, roof), (0, 14 + 11 * len(flat)), va="bottom", arrowprops=to_text)
        # The slope's name goes where marks leave the most room.
        stops = sorted([x_low, ridge, *(i for i in intensities if i < ridge)])
        left, right = max(itertools.pairwise(stops), key=lambda gap: gap[1] / gap[0])
        at = math.sqrt(left * right)
        (x0, y0), (x1, y1) = ax.transData.transform([(x_low, bandwidth * x_low), (ridge, roof)])
        angle = math.atan2(y1 - y0, x1 - x0)
        _note(
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
            _mark(ax, intensity, rate, markers[label], measured=is_measured, gid=label)
        anchors = {label: [(i, r) for name, i, r, _ in marks if name == label] for label in labels}
        for where in anchors.values():
            ax.plot(*zip(*where, strict=True), color=INK, linewidth=1, linestyle=":", zorder=1)

        # Labels stay below the roof and off the ridge's line.
        sky = ax.bbox.y1 - y1
        width = (x1 - x0) / 80
        avoid = [Bbox.from_bounds(x0 + t * width, y0 + (y1 - y0) * t / 80 - 5, width, 2 * sky) for t in range(80)]
        avoid.append(Bbox([[x1 - 5, y1 - 5], [ax.bbox.x1, ax.bbox.y1]]))
        avoid.append(Bbox([[x1 - 3, ax.bbox.y0], [x1 + 3, y1]]))
        _place_labels(ax, [(label, *where[0]) for label, where in anchors.items()], [m[1:3] for m in marks], avoid)
        _legend(fig, measured=bool(points), predicted=bool(predicted))
    return fig


def mfu_curve(
    sizes: Sequence[int],
    rates_by_dtype: Mapping[str, Sequence[float]],
    peaks: Mapping[str, float | None],
    *,
    title: str | None = None,
) -> Figure:
    """Draw how much of the peak a matmul of n × n matrices reaches, against n, a curve per dtype.

    Where the peak of a dtype is unknown there is nothing to divide by: then the figure shows FLOP/s for all of them,
    with a line at each peak that is known. A utilisation above 100 % is drawn, and the title says that something is
    wrong: the peak is another dtype's or device's, or the clock was read too early.

    Args:
        sizes: The n of each measurement, rising.
        rates_by_dtype: For each label, such as "bf16", the achieved FLOP/s at each size.
        peaks: For each of these labels the dense peak in FLOP/s, or None where it is unknown.
        title: The finding; by default the best that each dtype reached.

    Raises:
        TypeError: What should be a number is none.
        ValueError: Lengths differ, a label has no entry in ``peaks``, or a number is not positive and finite.
    """
    if not sizes or not rates_by_dtype:
        raise ValueError("nothing to draw: give at least one size and one dtype")
    if any(b <= a for a, b in itertools.pairwise(sizes)):
        raise ValueError(f"sizes must rise, got {list(sizes)}: sort the measurements by size")
    for n in sizes:
        _positive(n, "a size")
    for label, rates in rates_by_dtype.items():
        if len(rates) != len(sizes):
            raise ValueError(f"{label!r} has {len(rates)} rates for {len(sizes)} sizes: give one rate per size")
        if label not in peaks:
            raise ValueError(f"peaks has no entry for {label!r}: give its dense peak in FLOP/s, or None if unknown")
        for rate in rates:
            _positive(rate, f"a rate of {label!r}")
    known: dict[str, float] = {}
    for label in rates_by_dtype:
        peak = peaks[label]
        if peak is not None:
            known[label] = _positive(peak, f"the peak of {label!r}")
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
            title += f" — above 100 %: check the peak and the timing of {', '.join(too_high)}"

    with _style():
        right = 0.3 + 0.085 * max(map(len, rates_by_dtype))
        fig, ax = _chart(8.9, 5.0, title, left=1.25, right=right)
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
            _log_ticks(ax.yaxis, *ax.get_ylim(), "FLOP/s", most=8)
            lines = [(f"{label} peak: {readable(peak, 'FLOP/s')}", peak) for label, peak in known.items()]
        else:
            ax.set(ylim=(0, 1.12 * max(1.0, *best.values())))
            ax.set_ylabel("utilisation: achieved ÷ peak FLOP/s")
            ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:.0%}"))
            lines = [("peak", 1.0)]
        ax.grid(True)
        for text, height in lines:
            ax.axhline(height, color=COMPUTE_BOUND, linewidth=2, linestyle=(0, (6, 3)))
            _note(ax, text, (0, height), (4, 3), va="bottom", xycoords=("axes fraction", "data"))
        for (label, values), marker in zip(curves.items(), itertools.cycle(MARKERS)):
            ax.plot(sizes, values, color=INK, linewidth=1.2, alpha=0.7, zorder=2)
            for n, value in zip(sizes, values, strict=True):
                _mark(ax, n, value, marker, measured=True, gid=label)
        _label_ends(ax, {label: (sizes[-1], values[-1]) for label, values in curves.items()})
    return fig


def curves(
    x: Sequence[float],
    measured: Mapping[str, Sequence[float]],
    predicted: Mapping[str, Sequence[float]] = {},
    *,
    xlabel: str,
    ylabel: str,
    xunit: str = "",
    yunit: str = "",
    title: str,
) -> Figure:
    """Draw curves over a common x, both axes logarithmic: what was measured filled, what was predicted hollow.

    Args:
        x: The common abscissae, rising.
        measured: For each label the values at each x.
        predicted: The same for computed values; a label that is also measured has the same marker.
        xlabel, ylabel: What the axes show.
        xunit, yunit: Their units: those of B, s, FLOP and what is made of them are written with prefixes of ten.
        title: The finding.

    Raises:
        TypeError: What should be a number is none.
        ValueError: There is nothing to draw, lengths differ, x does not rise, or a number is not positive and finite.
    """
    kinds = ((True, measured), (False, predicted))
    drawn = [(label, is_measured, values) for is_measured, kind in kinds for label, values in kind.items()]
    if not x or not drawn:
        raise ValueError("nothing to draw: give at least one x and one curve")
    if any(b <= a for a, b in itertools.pairwise(x)):
        raise ValueError(f"x must rise, got {list(x)}: sort the points")
    for value in x:
        _positive(value, "an x")
    for label, _, values in drawn:
        if len(values) != len(x):
            raise ValueError(f"{label!r} has {len(values)} values for {len(x)} x: give one for each")
        for value in values:
            _positive(value, f"a value of {label!r}")
    markers = dict(zip(dict.fromkeys(label for label, _, _ in drawn), itertools.cycle(MARKERS)))
    low, high = (f(v for _, _, values in drawn for v in values) for f in (min, max))
    with _style():
        fig, ax = _chart(8.9, 4.8, title, left=1.1, right=0.4 + 0.085 * max(map(len, markers)))
        ax.set(xscale="log", yscale="log", xlabel=xlabel, ylabel=ylabel)
        ax.set(xlim=(x[0] / 1.4, x[-1] * 1.4), ylim=(low / 2, high * 2))
        _log_ticks(ax.xaxis, *ax.get_xlim(), xunit, most=8)
        _log_ticks(ax.yaxis, *ax.get_ylim(), yunit, most=8)
        ax.grid(True)
        for label, is_measured, values in drawn:
            ax.plot(x, values, color=INK, linewidth=1.2, alpha=0.7, zorder=2, linestyle="-" if is_measured else "--")
            for place, value in zip(x, values, strict=True):
                _mark(ax, place, value, markers[label], measured=is_measured, gid=label)
        _label_ends(ax, {label: (x[-1], values[-1]) for label, _, values in reversed(drawn)})
        _legend(fig, measured=bool(measured), predicted=bool(predicted))
    return fig


def predicted_vs_measured(rows: Sequence[tuple[str, float, float, str]], *, title: str | None = None) -> Figure:
    """Draw predictions beside the measurements, on a log axis for each unit, with the ratio of the two.

    Args:
        rows: ``(label, predicted, measured, unit)``, such as ``("2·B·D·K", 1.4e10, 1.4e10, "FLOPs")``. Numbers in B, s,
            FLOP and what is made of these are written with prefixes of ten (GB = 1e9 B), any other unit as it is.
        title: The finding; by default how far off the worst prediction is.

    Raises:
        TypeError: What should be a number is none, such as a prediction that has not been made yet.
        ValueError: There are no rows, or a number is not positive and finite.
    """
    if not rows:
        raise ValueError("nothing to draw: give at least one row (label, predicted, measured, unit)")
    for label, predicted, measured, _ in rows:
        _positive(predicted, f"the prediction of {label!r}")
        _positive(measured, f"the measurement of {label!r}")
    if title is None:
        worst, factor = max(((r[0], max(r[2] / r[1], r[1] / r[2])) for r in rows), key=lambda pair: pair[1])
        title = (
            f"Every prediction is within a factor of {math.ceil(factor * 10) / 10:.1f} of the measurement"
            if factor < 2
            else f"Furthest off: {worst}, by a factor of {plain(factor)}"
        )
    units = list(dict.fromkeys(unit for *_, unit in rows))
    panels = [[row for row in rows if row[3] == unit] for unit in units]
    names = {row[0]: textwrap.wrap(row[0], 26) or [""] for row in rows}
    row_height = [[max(0.36, 0.12 + 0.17 * len(names[row[0]])) for row in panel] for panel in panels]

    width, left, right, axis_room = 8.9, 2.15, 3.35, 0.62
    title_lines = _wrap_title(title, width)
    head = 0.2 + 0.24 * len(title_lines) + 0.36
    height = head + sum(sum(h) + axis_room for h in row_height) + 0.2
    columns = {"predicted": 1.15, "measured": 2.15, "measured ÷\npredicted": 3.2}  # right edges, from the axes'

    with _style():
        fig = Figure(figsize=(width, height))
        _title(fig, title_lines)
        down = head
        for number, (unit, panel, heights) in enumerate(zip(units, panels, row_height, strict=True)):
            ax = fig.add_axes(
                (left / width, 1 - (down + sum(heights)) / height, 1 - (left + right) / width, sum(heights) / height)
            )
            down += sum(heights) + axis_room
            low = min(min(row[1:3]) for row in panel)
            high = max(max(row[1:3]) for row in panel)
            ax.set(xscale="log", xlim=(low / 2, high * 2), ylim=(sum(heights), 0))
            shown = unit if takes_prefix(unit) else ""  # other units are written once, below the axis
            _log_ticks(ax.xaxis, low / 2, high * 2, shown, most=4)
            ax.set_xlabel("" if shown else unit)
            ax.spines.left.set_visible(False)
            ax.tick_params(axis="y", length=0)
            ax.grid(True, axis="x")
            middles = [sum(heights[:i]) + h / 2 for i, h in enumerate(heights)]
            ax.set_yticks(middles, ["\n".join(names[row[0]]) for row in panel])
            for y, (label, predicted, measured, _) in zip(middles, panel, strict=True):
                ax.plot([predicted, measured], [y, y], color=INK, linewidth=1.2, alpha=0.7, zorder=1)
                _mark(ax, predicted, y, "D", measured=False, gid=f"predicted {label}")
                _mark(ax, measured, y, "o", measured=True, gid=f"measured {label}")
                texts = (readable(predicted, shown), readable(measured, shown), f"× {_ratio(measured / predicted)}")
                for text, edge in zip(texts, columns.values(), strict=True):
                    weight = "bold" if text.startswith("×") else "normal"
                    beside: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "size": 9.5, "weight": weight}
                    _note(ax, text, (1, y), (edge * 72, 0), ha="right", va="center", **beside)
            if number == 0:
                for name, edge in columns.items():
                    above: dict[str, Any] = {"xycoords": "axes fraction", "alpha": 0.75}
                    _note(ax, name, (1, 1), (edge * 72, 3), ha="right", va="bottom", **above)
        _legend(fig, measured=True, predicted=True, markers=("o", "D"))
    return fig


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
    sizes = [_positive(size, f"the size of {name!r}") for name, size in parts.items()]
    total, cards = sum(sizes), math.ceil(sum(sizes) / _positive(capacity, "the capacity"))
    if cards > MAX_SLOTS:
        raise ValueError(f"{readable(total, 'B')} take {cards:,} cards of {readable(capacity, 'B')}: too many to draw")
    if title is None:
        title = f"{readable(total, 'B')} take {cards} × {capacity_label}"
    with _style():
        width = 8.9
        fig, ax = _chart(width, 2.55 + 0.24 * len(_wrap_title(title, width)), title, left=0.3, right=0.3)
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


def _positive(value: float, what: str) -> float:
    """Return ``value`` as a float, or say what is wrong with it: these are divided by, or go on a log axis."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{what} is {value!r}: it must be a number") from None
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{what} is {value}: it must be positive and finite to be drawn")
    return number


def _roofline_title(points: Sequence[tuple[str, float, float]], ridge: float) -> str:
    memory = [label for label, intensity, _ in points if intensity < ridge]
    if not points:
        return f"Below {readable(ridge, 'FLOP/B')} it is the memory that limits, above it the arithmetic"
    if len(memory) == len(points):
        return f"Memory-bound: all measured points lie below the ridge point of {readable(ridge, 'FLOP/B')}"
    if not memory:
        return f"Compute-bound: all measured points lie above the ridge point of {readable(ridge, 'FLOP/B')}"
    return f"{len(memory)} of {len(points)} measured points are memory-bound, the others compute-bound"


def _ratio(value: float) -> str:
    return f"{value:.2f}" if 0.1 <= value < 10 else plain(value)


def _chart(width: float, height: float, title: str, *, left: float, right: float) -> tuple[Figure, Axes]:
    """A figure of one axes with fixed margins in inches, so that label placement knows the final positions."""
    fig = Figure(figsize=(width, height))
    lines = _wrap_title(title, width)
    _title(fig, lines)
    top = 0.28 + 0.24 * len(lines)
    return fig, fig.add_axes((left / width, 0.62 / height, 1 - (left + right) / width, 1 - (0.62 + top) / height))


def _wrap_title(title: str, width: float) -> list[str]:
    return textwrap.wrap(title, int(width * 96 / 9.8))  # a bold 12 pt letter is about 9.5 px wide


def _title(fig: Figure, lines: Sequence[str]) -> None:
    width, height = fig.get_size_inches()
    for i, line in enumerate(lines):
        fig.text(0.12 / width, 1 - (0.12 + 0.24 * i) / height, line, size=12, weight="bold", va="top")


def _mark(ax: Axes, x: float, y: float, marker: str, *, measured: bool, gid: str) -> None:
    """A filled mark for what was measured, a larger hollow one for what was predicted: both show where they meet."""
    ax.plot(
        [x],
        [y],
        marker=marker,
        linestyle="none",
        markersize=8 if measured else 12,
        markerfacecolor=MEASURED if measured else "none",
        markeredgecolor=INK if measured else PREDICTED,
        markeredgewidth=0.8 if measured else 2,
        zorder=4 if measured else 3,
        clip_on=False,
        gid=gid,
    )


def _legend(fig: Figure, *, measured: bool, predicted: bool, markers: tuple[str, str] = ("o", "o")) -> None:
    """What filled and hollow mean, at the lower right."""
    filled = {"markerfacecolor": MEASURED, "markeredgecolor": INK, "label": "measured"}
    hollow = {"markerfacecolor": "none", "markeredgecolor": PREDICTED, "markeredgewidth": 2, "label": "predicted"}
    looks: list[dict[str, Any]] = [filled] * measured + [hollow] * predicted
    handles = [Line2D([], [], linestyle="none", marker=markers[look is hollow], markersize=8, **look) for look in looks]
    fig.legend(handles=handles, loc="lower right", ncols=2, frameon=False, fontsize=9, handletextpad=0.2)


def _note(ax: Axes, text: str, xy: tuple[float, float], offset: tuple[float, float], **look: Any) -> Annotation:
    """A text that lies ``offset`` points from ``xy``."""
    return ax.annotate(text, xy, xytext=offset, textcoords="offset points", **{"size": 9, **look})


def _renderer(fig: Figure) -> Any:
    """Something that measures text before the figure is drawn."""
    return FigureCanvasAgg(fig).get_renderer()  # type: ignore[no-untyped-call]


def _around(point: NDArray[np.float64], reach: float) -> Bbox:
    return Bbox.from_bounds(point[0] - reach, point[1] - reach, 2 * reach, 2 * reach)


def _place_labels(
    ax: Axes, labels: Sequence[tuple[str, float, float]], marks: Sequence[tuple[float, float]], avoid: Sequence[Bbox]
) -> None:
    """Write each label beside its mark, where it covers no mark, no other label and nothing in ``avoid`` (pixels).

    Tries places ever further out; a label that is not next to its mark gets a thin line to it.
    """
    fig = ax.figure
    renderer, per_point = _renderer(fig.get_figure(root=True)), fig.dpi / 72
    taken = [*avoid, *(_around(ax.transData.transform(mark), 7 * per_point) for mark in marks)]
    directions = [(1, 0), (0.7, -0.7), (0.7, 0.7), (0, -1), (-1, 0), (-0.7, -0.7), (-0.7, 0.7), (0, 1)]
    for text, x, y in labels:
        artist = _note(ax, text, (x, y), (0, 0), size=9.5, ha="center", va="center", zorder=5)
        extent = Text.get_window_extent(artist, renderer)
        mark_x, mark_y = ax.transData.transform((x, y))
        best: tuple[int, float, float, Bbox, float] | None = None
        for reach in (9.0, 24.0, 42.0, 64.0, 90.0):
            for dx, dy in directions:
                centre_x = mark_x + dx * reach * per_point + np.sign(dx) * extent.width / 2
                centre_y = mark_y + dy * reach * per_point + np.sign(dy) * extent.height / 2
                left, bottom = centre_x - extent.width / 2 - 3, centre_y - extent.height / 2 - 2
                box = Bbox.from_bounds(left, bottom, extent.width + 6, extent.height + 4)
                inside = ax.bbox.x0 <= box.x0 and box.x1 <= ax.bbox.x1 and ax.bbox.y0 <= box.y0 and box.y1 <= ax.bbox.y1
                cost = sum(box.overlaps(other) for other in taken) + (0 if inside else 100)
                if best is None or cost < best[0]:
                    best = (cost, centre_x, centre_y, box, reach)
            if best is not None and best[0] == 0:
                break
        assert best is not None
        _, centre_x, centre_y, box, reach = best
        offset = ((centre_x - mark_x) / per_point, (centre_y - mark_y) / per_point)
        artist.set_position(offset)
        if reach > 9:
            near = (min(max(mark_x, box.x0), box.x1) - mark_x, min(max(mark_y, box.y0), box.y1) - mark_y)
            line = {"arrowstyle": "-", "alpha": 0.6, "linewidth": 0.8, "shrinkA": 0, "shrinkB": 5}
            _note(ax, "", (x, y), (near[0] / per_point, near[1] / per_point), arrowprops=line)
        taken.append(box)


def _label_ends(ax: Axes, ends: Mapping[str, tuple[float, float]]) -> None:
    """Write each curve's name to the right of its last point, pushed apart where ends lie close together."""
    per_point = ax.figure.dpi / 72
    order = sorted(ends, key=lambda label: ends[label][1])
    marks = [ax.transData.transform(ends[label])[1] / per_point for label in order]
    at = list(marks)
    for _ in range(100):
        for i in range(len(at) - 1):
            overlap = max(0.0, at[i] + 14 - at[i + 1])
            at[i] -= overlap / 2
            at[i + 1] += overlap / 2
    for label, mark, height in zip(order, marks, at, strict=True):
        offset = (9, height - mark)
        _note(ax, label, ends[label], offset, size=9.5, weight="bold", va="center", annotation_clip=False)


def _log_ticks(axis: Axis, low: float, high: float, unit: str, most: int) -> None:
    """At most ``most`` ticks on a log axis: steps of 1-2-5 where there is room for them, else powers of ten."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [m * 10.0**k for k in decades for m in (1, 2, 5) if low <= m * 10.0**k <= high]
    if len(ticks) > most:
        ticks = [10.0**k for k in decades if low <= 10.0**k <= high]
        ticks = ticks[:: math.ceil(len(ticks) / most)]
    axis.set_ticks(ticks)
    axis.set_ticks([], minor=True)
    axis.set_major_formatter(FuncFormatter(lambda v, _: readable(v, unit)))

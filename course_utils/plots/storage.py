"""The layout of a tensor in its storage."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, cast

import torch
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle
from matplotlib.path import Path

from course_utils.plots.axes import wrap_title
from course_utils.plots.style import CONTEXT, DATA, HIGHLIGHT, INK, styled

MAX_SLOTS = 64  # storage_layout draws one cell per slot
MAX_DIM = 16  # ... and at most this many in a row or column
_CELL = 0.46  # inches; also the unit of everything below
_LEFT = 1.42
_RIGHT = 0.32
_STEP_WORDS = {1: ["element"], 2: ["row", "column"], 3: ["slice", "row", "column"]}


def storage_layout(
    x: torch.Tensor, *, title: str | None = None, highlight: Sequence[int] | Sequence[Sequence[int]] | None = None
) -> Figure:
    """Draw a tensor and, below it, its storage.

    The same shade and the same small number mean the same slot: element ``[i, j]`` lies in slot
    ``storage_offset + i * stride(0) + j * stride(1)``. Arrows show the strides, in elements. Slots that the
    tensor doesn't use are hollow; ``×3`` marks a slot that three elements share. Slots are counted in elements
    of ``x``, not in bytes.

    Args:
        x: Strided, of 0 to 3 dims, at most 16 in each of them (64 if there is only one), at most 64 elements on
            at most 64 slots. Any dtype and device; a meta tensor is drawn without values.
        title: The title; by default what the strides show.
        highlight: The index of an element, such as ``(1, 2)``, or a list of them, outlined in the tensor and in its
            storage.

    Raises:
        TypeError: ``x`` is not a tensor.
        ValueError: ``x`` is sparse, empty or too large to draw, or ``highlight`` is outside it.
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
    marked = _normalize_highlight(highlight, shape)
    marked_slots = {slot_of[index] for index in marked}
    values = _slot_values(x, slots)

    # Everything is laid out in inches from the top left corner, so that nothing depends on a solver.
    per_line = math.ceil(slots / math.ceil(slots / MAX_DIM))
    grids = _grids(shape)
    across = max((g[1] + g[2] * _CELL for g in grids), default=_CELL)
    width = max(7.0, _LEFT + max(across, per_line * _CELL) + _RIGHT)
    if title is None:
        title = _storage_title(x, slots, len(elements_in))
    title_lines = wrap_title(title, width)
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

    with styled():
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
                ax.add_artist(Rectangle(inner, side, side, fill=False, **frame))
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

        def center(slot: int) -> float:
            return _LEFT + (slot % per_line + 0.5) * _CELL

        line_top = line_tops[first_line]
        for level, stride in enumerate(reversed(in_line)):
            up = line_top - 0.14 - 0.28 * level
            end = center(offset + stride)
            _arrow(ax, [(center(offset), line_top), (center(offset), up), (end, up), (end, line_top - 0.01)])
            middle = (center(offset) + end) / 2
            ax.text(middle, up - 0.025, f"+{stride}", size=9, weight="bold", ha="center", va="bottom")
        for stride in across_lines:
            target = offset + stride
            target_top = line_tops[target // per_line]
            start_x, end_x, lane = center(offset) + 0.1, center(target) + 0.1, line_top + _CELL + 0.42
            route = [(start_x, line_top + _CELL), (start_x, lane)]
            if target // per_line > first_line + 1:
                side = _LEFT + per_line * _CELL + 0.14
                route += [(side, lane), (side, target_top - 0.2), (end_x, target_top - 0.2)]
            else:
                route += [(end_x, lane)]
            _arrow(ax, [*route, (end_x, target_top - 0.01)])
            ax.text(end_x + 0.06, target_top - 0.04, f"+{stride}", size=9, weight="bold", ha="left", va="bottom")
        pointer = center(offset) - (0.1 if across_lines else 0)
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
    ax.add_artist(Rectangle((left, top), side, side, linewidth=0.8, gid=gid, **look))


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


def _normalize_highlight(
    highlight: Sequence[int] | Sequence[Sequence[int]] | None, shape: tuple[int, ...]
) -> set[tuple[int, ...]]:
    marked = set()
    one = highlight is not None and len(highlight) > 0 and isinstance(highlight[0], int)
    for index in cast(Sequence[Sequence[int]], [highlight] if one else highlight or []):
        if len(index) != len(shape) or not all(-n <= i < n for i, n in zip(index, shape, strict=True)):
            raise ValueError(
                f"highlight {_tuple(index)} is not an element of a tensor of shape {_tuple(shape)}: "
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
            return "Contiguous: reading row by row goes through storage slot by slot"
        return "Contiguous: the elements lie side by side in storage"
    if touched < slots:
        return f"A view that steps over storage: it touches {touched} of {_slots(slots)}"
    return "Not contiguous: the same storage, read in another order"


def _slots(count: int) -> str:
    return f"{count} slot" if count == 1 else f"{count} slots"


def _grids(shape: tuple[int, ...]) -> list[tuple[float, float, int, int]]:
    """The tensor's grids, each as (down, across, columns, rows), in inches from the first one's corner."""
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
    ax.add_artist(
        FancyArrowPatch(path=path, arrowstyle=style, color=INK, linewidth=1.1, joinstyle="round", capstyle="butt")
    )


def _tuple(values: Iterable[int]) -> str:
    """(4,) rather than torch.Size([4])."""
    return str(tuple(values))

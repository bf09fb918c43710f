"""A walk over a view of twelve slots: element after element, and the slot that each one is in."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

from course_utils.explorers.drawing import Drawing, wide
from course_utils.explorers.explorer import Explorer, Impossible, Panel, Picture

SLOTS, BYTES = 12, 4  # float32, each holding its own number
MOST = 18  # elements, one in each row of the path
FREE = "your own sizes and strides"
View = tuple[tuple[int, ...], tuple[int, ...], int]
# What they make of x, float32[3, 4]: shape, strides, offset.
OPERATIONS: dict[str, View] = {
    "x": ((3, 4), (4, 1), 0),
    "x.T": ((4, 3), (1, 4), 0),
    "x[1]": ((4,), (1,), 4),
    "x[:, 1]": ((3,), (4,), 1),
    "x[1, 2]": ((), (), 6),
    "x[1:, 2:]": ((2, 2), (4, 1), 6),
    "x[::2]": ((2, 4), (8, 1), 0),
    "x[:, ::2]": ((3, 2), (4, 2), 0),
    "x[:, :3]": ((3, 3), (4, 1), 0),
    "x[1:2].expand(3, 4)": ((3, 4), (0, 1), 4),
    "x[:, 1:2].expand(3, 5)": ((3, 5), (4, 0), 1),
    "x.diagonal()": ((3,), (5,), 0),
    "x[:2, 1:].T": ((3, 2), (1, 4), 1),
    "x.view(2, 6)": ((2, 6), (6, 1), 0),
    "x.view(3, 2, 2)": ((3, 2, 2), (4, 2, 1), 0),
    "x.view(3, 2, 2).transpose(0, 1)": ((2, 3, 2), (2, 4, 1), 0),
    "x.view(3, 2, 2).transpose(1, 2)": ((3, 2, 2), (4, 1, 2), 0),
    "x.T.view(2, 2, 3)": ((2, 2, 3), (2, 1, 4), 0),
}


def explore(operation: str = "x[:2, 1:].T") -> Explorer:
    """The elements of one of ``OPERATIONS`` in row-major order, and sliders for sizes, strides and offset."""
    arguments: dict[str, Any] = {"operation": operation}
    return Explorer("stride_walk", partial(show, **arguments), arguments)


def show(panel: Panel, *, operation: str) -> Picture:
    """The view as a grid, the storage, and the path through it up to the last element read.

    Of an earlier setting only the path stays behind: what has the look "now" doesn't.
    """
    chosen = panel.choice("operation", [*OPERATIONS, FREE], operation)
    base = panel.memory("base", operation)  # the operation that sizes and strides of your own began with
    base = chosen if chosen != FREE else base if base in OPERATIONS else operation
    panel.put("base", base)
    moved = panel.moved if panel.moved.split()[0:1] in (["size"], ["stride"], ["offset"]) else ""
    mine = chosen == FREE or bool(moved)
    if mine:
        panel.put("operation", FREE)
    panel.row()
    shape, strides, offset = OPERATIONS[base]

    def number(name: str, low: int, high: int, default: int) -> int:
        value = panel.slider(name, range(low, high + 1), default)
        if not mine:
            panel.put(name, f"{default}")
        return value if mine else default

    pairs = [
        (number(f"size {dim}", 1, 6, size), number(f"stride {dim}", 0, SLOTS - 1, stride))
        for dim, (size, stride) in enumerate(zip(shape, strides, strict=True))
    ]
    offset = number("offset", 0, SLOTS - 1, offset)
    shape, strides = tuple(size for size, _ in pairs), tuple(stride for _, stride in pairs)
    indexes = list(itertools.product(*map(range, shape)))
    slots = [offset + sum(i * s for i, s in zip(index, strides, strict=True)) for index in indexes]
    if max(slots) >= SLOTS:
        raise Impossible(
            f"the last element would be in slot {max(slots)}, but the storage ends with slot {SLOTS - 1}: "
            "make a size, a stride or the offset smaller",
            moved or "operation",
        )
    if len(slots) > MOST:
        raise Impossible(f"{len(slots)} elements are too many to draw: make a size smaller", moved or "operation")
    panel.row()
    every = len(slots)
    read = panel.slider(
        "elements read", range(1, every + 1), every, lambda k: "all" if k == every else f"{k}", play=450
    )
    if panel.moved == "operation":  # another walk is shown whole, whatever had been read of the one before
        read = every
        panel.put("elements read", "all")

    jumps = list(dict.fromkeys(b - a for a, b in itertools.pairwise(slots)))
    contiguous, flat = jumps in ([], [1]), len(jumps) <= 1  # one straight path is one dim with one stride
    order = "contiguous" if contiguous else "not contiguous"
    words = list(map(_signed, jumps))
    steps = " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
    cost = "flattening is a view" if flat else f"flattening copies {BYTES * len(slots)} B"
    title = f"{order.capitalize()}: "
    title += f"{'every step is' if flat else 'steps of'} {steps}, so {cost}" if jumps else "a single element"
    index = indexes[read - 1]
    where = "".join(f" + {i}·{s}" for i, s in zip(index, strides, strict=True))
    total = f" = {slots[read - 1]}" if index else ""
    touched, shared = len(set(slots)), ", so elements share slots" if len(set(slots)) < len(slots) else ""
    finding = (
        f"Shape {shape} with strides {strides} and offset {offset} is {order}: {_count(len(slots), 'element')} in "
        f"{touched} of {SLOTS} slots{shared}. "
        f"In row-major order, element {read} of {len(slots)} is [{', '.join(map(str, index))}], in slot "
        f"{offset}{where}{total}, at byte {BYTES * slots[read - 1]}."
    )
    return Picture(title, _draw(panel, shape, slots, read, f"slot {offset}{where}{total}"), finding)


def _signed(jump: int) -> str:
    return f"{jump:+}".replace("-", "−") if jump else "0"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _draw(panel: Panel, shape: tuple[int, ...], slots: list[int], read: int, sum_: str) -> Drawing:
    narrow = panel.narrow
    drawing = Drawing(panel.width, 548 if narrow else 322)
    room, wide_, high = (364.0, 30.0, 26.0) if narrow else (250.0, 34.0, 30.0)
    operation, sizes = f"{panel.controls['operation'].value}", f": [{', '.join(map(str, shape))}]"
    drawing.text(8, 12, operation + sizes * (wide(operation + sizes) < room), key="view")
    places = [(8 + x, 24 + y) for x, y in _grid(shape, room, wide_, high)]
    for k, ((x, y), slot) in enumerate(zip(places, slots, strict=True)):
        drawing.rect(x, y, wide_, high, f"{'data soft' if k < read else 'paper'} edged now", key=f"element {k}")
        drawing.text(x + wide_ / 2, y + high / 2 + 4, f"{slot}", anchor="middle", key=f"number {k}")
    _ring(drawing, *places[read - 1], wide_, high, "now")
    index = ", ".join(map(str, _index(shape, read - 1)))
    drawing.text(8, 214 if narrow else 250, f"[{index}] is in", key="where")
    drawing.text(8, 232 if narrow else 268, sum_, bold=True, key="sum")

    drawing.text(8, 249 if narrow else 290, "dashed: the walk before", size=11, look="quiet before", key="before")

    left, top, cell, pitch = (24.0, 270.0, 28.0, 12.0) if narrow else (312.0, 24.0, 36.0, 13.0)
    first, here = top + 52, slots[read - 1]
    drawing.text(left, top - 8, "the slots of the storage, and the path so far", behind=True)
    for slot in range(SLOTS):
        x = left + slot * cell
        look = f"{'data soft' if slot in slots[:read] else 'paper'} edged now"
        drawing.rect(x, top, cell, 24, look, key=f"slot {slot}")
        drawing.text(x + cell / 2, top + 16, f"{slot}", anchor="middle", key=f"name {slot}")
        drawing.text(x + cell / 2, top + 37, f"{BYTES * slot}", anchor="middle", size=11, look="quiet", behind=True)
    names = ("B", "") if narrow else ("byte", "element ")
    drawing.text(left - 5, top + 37, names[0], anchor="end", size=11, look="quiet", behind=True)
    for k in (1, 6, 12, 18):
        y = first + (k - 1) * pitch
        drawing.text(
            left - 5, y + 4, f"{names[1] * (k == 1)}{k}", anchor="end", size=11, look="quiet", behind=True
        )  # fmt: skip
        drawing.line([(left, y), (left + SLOTS * cell, y)], "grid", width=1, behind=True)
    path = [(left + (slot + 0.5) * cell, first + k * pitch) for k, slot in enumerate(slots[:read])]
    x, y = path[-1]
    drawing.line([(x, top + 42), (x, y)], "highlight now", width=1, key="drop")
    drawing.line(path, "data past", width=2, key="path")
    for k, place in enumerate(path):
        drawing.circle(*place, 3.5, "data now", key=f"step {k}")
    drawing.circle(x, y, 5.5, "highlight edged now", key="step now")
    if read > 1:
        drawing.text(x, y + 19, _signed(here - slots[read - 2]), anchor="middle", bold=True, key="jump")
    _ring(drawing, left + here * cell, top, cell, 24, "slot now")
    return drawing


def _ring(drawing: Drawing, x: float, y: float, width: float, height: float, key: str) -> None:
    drawing.shape(
        "rect", x=x, y=y, width=width, height=height, class_="f-none f-now l-highlight", stroke_width=3, data_key=key
    )  # fmt: skip


def _index(shape: tuple[int, ...], place: int) -> tuple[int, ...]:
    found = []
    for size in reversed(shape):
        place, i = divmod(place, size)
        found.append(i)
    return tuple(reversed(found))


def _grid(shape: tuple[int, ...], room: float, width: float, height: float) -> list[tuple[float, float]]:
    """The upper left corners of cells: the last dim goes across, the one before it down, and the first makes blocks."""
    blocks, rows, columns = (1,) * (3 - len(shape)) + shape
    across = max(1, int((room + 12) // (columns * width + 12)))
    return [
        (
            block % across * (columns * width + 12) + column * width,
            block // across * (rows * height + 10) + row * height,
        )
        for block, row, column in itertools.product(range(blocks), range(rows), range(columns))
    ]

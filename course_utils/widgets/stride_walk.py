"""A view of a storage of twelve elements: its shape, strides and offset, and what follows from them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import ipywidgets
import torch

from course_utils.plots import storage_layout
from course_utils.widgets.explorer import Explorer, Impossible, Picture
from course_utils.widgets.group import Group

SLOTS = 12  # float32, each holding its own number
MAX_ELEMENTS = 24  # a figure of more takes too long to follow a slider
FREE = "as_strided, by the sliders"
OPERATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "x": lambda x: x,
    "x.T": lambda x: x.T,
    "x[1]": lambda x: x[1],
    "x[:, 1]": lambda x: x[:, 1],
    "x[1, 2]": lambda x: x[1, 2],
    "x[1:, 2:]": lambda x: x[1:, 2:],
    "x[::2]": lambda x: x[::2],
    "x[:, ::2]": lambda x: x[:, ::2],
    "x[:, :3]": lambda x: x[:, :3],
    "x[1:2].expand(3, 4)": lambda x: x[1:2].expand(3, 4),
    "x[:, 1:2].expand(3, 5)": lambda x: x[:, 1:2].expand(3, 5),
    "x.diagonal()": lambda x: x.diagonal(),
    "x.view(2, 6)": lambda x: x.view(2, 6),
    "x.view(3, 2, 2)": lambda x: x.view(3, 2, 2),
    "x.view(3, 2, 2).transpose(0, 1)": lambda x: x.view(3, 2, 2).transpose(0, 1),
    "x.view(3, 2, 2).transpose(1, 2)": lambda x: x.view(3, 2, 2).transpose(1, 2),
    "x.T.view(2, 2, 3)": lambda x: x.T.view(2, 2, 3),
}

View = tuple[tuple[int, ...], tuple[int, ...], int, tuple[int, ...], int]


def matrix() -> torch.Tensor:
    """The x of ``OPERATIONS``: float32[3, 4], each element is its storage index."""
    return torch.arange(float(SLOTS)).view(3, 4)


def draw(view: View) -> Picture:
    """The picture for ``(shape, strides, offset, new shape, elements read)``."""
    shape, strides, offset, new, read = view
    if math.prod(shape) > MAX_ELEMENTS:
        raise Impossible(f"{math.prod(shape)} elements are too many to draw, → make a size smaller")
    try:
        x = matrix().as_strided(shape, strides, offset)
    except RuntimeError:
        raise Impossible(
            f"as_strided refuses: the last element would lie beyond slot {SLOTS - 1}, where the storage ends, "
            "→ make a size, a stride or the offset smaller"
        ) from None
    try:
        reshaped = f"is a view with strides {x.view(new).stride()}"
    except RuntimeError:
        reshaped = f"has to copy {x.numel() * x.element_size()} B"
    order = "contiguous" if x.is_contiguous() else "not contiguous"
    slots, size = len(set(x.flatten().tolist())), x.element_size()
    shared = "elements share slots" if slots < x.numel() else "no two share one"
    index = list(itertools.product(*map(range, shape)))[:read]
    last = index[-1]
    terms = "".join(f" + {i}·{s}" for i, s in zip(last, strides, strict=True))
    where = f"[{', '.join(map(str, last))}], in slot {offset}{terms} = {int(x[last])}" if last else f"in slot {offset}"
    finding = (
        f"Shape {shape} with strides {strides} is {order}: {_count(x.numel(), 'element')} on "
        f"{_count(slots, 'slot')} ({slots * size} of {SLOTS * size} B), {shared}; reshape{_call(new)} {reshaped}. "
        f"In reading order, element {read} of {x.numel()} is {where}."
    )
    title = f"{order.capitalize()}; reshape{_call(new)} {reshaped}"
    return Picture(storage_layout(x, highlight=index if last else [()], title=title), finding)


def _call(numbers: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, numbers))})"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def reshapes(elements: int) -> list[tuple[int, ...]]:
    """The shapes of one and two dimensions with this many elements."""
    return [(elements,), *((rows, elements // rows) for rows in range(1, elements + 1) if elements % rows == 0)]


class Walk(Group):
    """An operation and the sliders that it sets. Its value is what :func:`draw` takes."""

    def __init__(self, operation: str) -> None:
        def slider(name: str, low: int, high: int) -> ipywidgets.IntSlider:
            return ipywidgets.IntSlider(low, low, high, description=name, continuous_update=True)

        self.sizes = [slider(f"size {dim}", 1, 6) for dim in range(3)]
        self.strides = [slider(f"stride {dim}", 0, SLOTS - 1) for dim in range(3)]
        self.dims, self.offset, self.read = (
            slider("dims", 0, 3),
            slider("offset", 0, SLOTS - 1),
            slider("elements read", 1, SLOTS),
        )
        self.read.style.description_width = "initial"
        self.operation = ipywidgets.Dropdown(options=[*OPERATIONS, FREE], value=operation, description="operation")
        self.operation.layout.width = "26rem"
        self.reshape = ipywidgets.Dropdown(description="then reshape", style={"description_width": "initial"})
        geometry = [self.dims, self.offset, *self.sizes, *self.strides]
        members = {control.description: control for control in (self.operation, self.reshape, self.read, *geometry)}
        rows = [
            [self.operation, self.reshape, self.read],
            [self.dims, self.offset],
            *map(list, zip(self.sizes, self.strides, strict=True)),
        ]
        super().__init__(members, rows)

    def settle(self, moved: str) -> View:
        if self.operation.value != FREE and moved in ("", "operation"):
            x = OPERATIONS[self.operation.value](matrix())
            self.dims.value, self.offset.value = x.dim(), int(x.storage_offset())
            for dim, (size, stride) in enumerate(zip(x.shape, x.stride(), strict=True)):
                self.sizes[dim].value, self.strides[dim].value = size, stride
        elif moved not in ("operation", "then reshape", "elements read"):
            self.operation.value = FREE
        dims = self.dims.value
        for dim, pair in enumerate(zip(self.sizes, self.strides, strict=True)):
            for control in pair:
                control.disabled = dim >= dims
        shape = tuple(size.value for size in self.sizes[:dims])
        elements, before = math.prod(shape), self.reshape.value
        options = reshapes(elements)
        if [new for _, new in self.reshape.options] != options:
            self.reshape.options = [(_call(new), new) for new in options]
            self.reshape.value = before if before in options else options[0]
        self.read.max = elements
        strides = tuple(stride.value for stride in self.strides[:dims])
        return shape, strides, self.offset.value, self.reshape.value, self.read.value


def explore(operation: str = "x.T") -> Explorer:
    """An explorer of views of a 3 × 4 matrix that starts with one of ``OPERATIONS``."""
    return Explorer(draw, {"view": Walk(operation)})

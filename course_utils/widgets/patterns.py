"""An einops pattern: where each axis comes from and where it goes."""

from __future__ import annotations

import math
import re
from itertools import chain, count

import einops
import ipywidgets
import torch
from einops import EinopsError
from einops.parsing import AnonymousAxis, ParsedExpression

from course_utils.plots import MAX_AXES, Axis, axis_flow
from course_utils.widgets.explorer import Explorer, Impossible, Picture
from course_utils.widgets.group import Group

REDUCTIONS = ("sum", "mean", "max", "min")
OPERATIONS = ("rearrange", *(f"reduce, {how}" for how in REDUCTIONS), "repeat", "einsum")
# operation, pattern, shapes of the arguments, sizes by name
EXAMPLES = {
    "split: what a head is": ("rearrange", "b t (h e) -> b t h e", "2 5 8", "h=2"),
    "split and move": ("rearrange", "b t (h e) -> b h t e", "2 5 8", "h=2"),
    "move and merge": ("rearrange", "b h t e -> b t (h e)", "2 2 5 4", ""),
    "transpose": ("rearrange", "b t d -> b d t", "2 3 4", ""),
    "merge": ("rearrange", "b t d -> (b t) d", "2 3 4", ""),
    "a new dimension of 1": ("rearrange", "b t d -> b 1 t d", "2 3 4", ""),
    "two tokens in one vector": ("rearrange", "b (t two) d -> b t (two d)", "2 6 4", "two=2"),
    "mean over numbers": ("reduce, mean", "b t d -> b t", "2 3 4", ""),
    "mean, any dimensions in front": ("reduce, mean", "... d -> ...", "2 3 4", ""),
    "max pooling": ("reduce, max", "b c (y 2) (x 2) -> b c y x", "8 3 32 48", ""),
    "repeat": ("repeat", "t -> t copies", "2", "copies=3"),
    "pixels four times as large": ("repeat", "y x -> (y 2) (x 2)", "3 5", ""),
    "attention scores": ("einsum", "batch t e, batch s e -> batch t s", "2 3 4, 2 5 4", ""),
    "matrix product": ("einsum", "a b, b c -> a c", "3 4, 4 6", ""),
    "every pair": ("einsum", "i, j -> i j", "3, 4", ""),
    "the diagonal, summed": ("einsum", "i i ->", "4 4", ""),
    "a layer, any dimensions in front": ("einsum", "... d, d k -> ... k", "2 7 5 4, 4 6", ""),
}
OWN = "your own"
_ADVICE = {
    "dims": "name each dimension of the shape once on the left; parentheses count as one",
    "one side": "write each name on both sides; only reduce leaves names out, and only repeat adds them",
    "divide": "choose a size that divides the dimension",
    "infer": "under sizes, give all names but one of each pair of parentheses",
    "duplicate": "a name is one loop: use two names for two",
    "ellipsis": "write ... on both sides, and once on each",
    "Ellipsis": "write ... on both sides, and once on each",
    "broadcast": "give the same size to a name wherever it stands",
    "operands": "write one shape for each tensor of the pattern, with commas between",
    "not used": "clear that name under sizes, or use it in the pattern",
    " != ": "give the size that the shape has",
    "unpack": "write one arrow and moderate sizes",
}

Pattern = tuple[str, str, str, str]


def shapes_of(text: str) -> list[tuple[int, ...]]:
    """``"2 3 4, 4 6"`` as the shapes of two tensors."""
    if not re.fullmatch(r"[\d ,]*", text) or any(not 1 <= int(n) <= 10**6 for n in re.findall(r"\d+", text)):
        raise Impossible(
            f"“{text[:40]}” is not a shape, → write sizes from 1 to 1000000 with spaces between, "
            "a comma between tensors: 2 3 4, 4 6"
        )
    shapes = [tuple(map(int, part.split())) for part in text.split(",")]
    if len(shapes) > 3 or sum(map(len, shapes)) > MAX_AXES:
        raise Impossible(f"“{text[:40]}” is too much for one picture, → at most 3 tensors and {MAX_AXES} dimensions")
    return shapes


def sizes_of(text: str) -> dict[str, int]:
    """``"h=2, e=4"`` as a dictionary."""
    pairs = [pair.strip() for pair in text.split(",") if pair.strip()]
    found = [re.fullmatch(r"([^\W\d]\w*)\s*=\s*(\d{1,6})", pair) for pair in pairs]
    if not all(found):
        raise Impossible(f"“{text[:40]}” names no sizes, → write them like h=2, e=4")
    return {match[1]: int(match[2]) for match in found if match}


def applied(operation: str, pattern: str, shapes: list[tuple[int, ...]], sizes: dict[str, int]) -> tuple[int, ...]:
    """The shape of einops' result, computed without data.

    Raises:
        Impossible: einops refuses.
    """
    if "->" not in pattern:
        raise Impossible(f"“{pattern}” has no arrow, → write names -> names, such as b t d -> b d t")
    if operation != "einsum" and len(shapes) > 1:
        raise Impossible(f"{operation} takes one tensor, → write one shape, or choose einsum")
    if operation == "einsum" and sizes:
        raise Impossible("einsum takes no sizes, → clear them: the shapes say them all")
    try:
        tensors = [torch.empty(shape, device="meta") for shape in shapes]
        if operation == "einsum":
            return tuple(einops.einsum(*tensors, pattern).shape)  # type: ignore[call-overload]
        if operation.startswith("reduce, "):
            # The shape is the same for all of them, and sum is the one that PyTorch answers at once without numbers.
            return tuple(einops.reduce(tensors[0], pattern, "sum", **sizes).shape)
        function = einops.repeat if operation == "repeat" else einops.rearrange
        return tuple(function(tensors[0], pattern, **sizes).shape)
    except (EinopsError, ValueError, RuntimeError, TypeError, OverflowError) as error:
        lines = f"{error}".strip().splitlines()
        message = lines[-1 if isinstance(error, EinopsError) else 0].strip().rstrip(".")[:150]
        advice = next((text for word, text in _ADVICE.items() if word in message), "begin with one of the examples")
        raise Impossible(f"einops refuses “{pattern}”: {message}, → {advice}") from None


def named(
    side: str, shape: tuple[int, ...], sizes: dict[str, int], known: dict[str, int], unnamed: count[int]
) -> list[list[Axis]]:
    """The axes of each dimension of a tensor whose pattern einops has accepted; adds their sizes to ``known``."""
    parsed = ParsedExpression(side, allow_underscore=True, allow_duplicates=True)
    groups = [["…"] if group == "…" else group for group in parsed.composition]
    many = len(shape) - len(groups) + 1  # dimensions that ... stands for, where it stands alone
    dims: list[list[Axis]] = []
    for group in groups:
        if group == ["…"] and parsed.has_ellipsis_parenthesized is False:
            for place in range(many, 0, -1):  # counted from the last, as broadcasting does
                key, size = f"… {place}", shape[len(dims)]
                known[key] = max(size, known.get(key, 1))
                dims.append([Axis(key, "…", size)])
            continue
        names = [name for name in group if name != "…"]
        labels = [f"{name.value} #{next(unnamed)}" if isinstance(name, AnonymousAxis) else name for name in names]
        for name, label in zip(names, labels, strict=True):
            if isinstance(name, AnonymousAxis):
                known[label] = name.value
            elif label in sizes:
                known[label] = sizes[label]
        if "…" in group:  # merged into one dimension, on the right
            inside = sorted((key for key in known if key.startswith("… ")), reverse=True, key=_place)
            at = group.index("…")
            labels[at:at] = inside
        size = shape[len(dims)]
        open_ = [label for label in labels if label not in known]
        if open_:
            rest = math.prod(known[label] for label in labels if label in known)
            known[open_[0]] = size // rest
        elif len(labels) == 1:
            known[labels[0]] = max(known[labels[0]], size)  # einsum broadcasts a size of 1
        several = len(labels) != 1
        dims.append([Axis(x, x.split(" ")[0], known[x] if several else size) for x in labels])
    return dims


def named_sides(
    operation: str, pattern: str, shapes: list[tuple[int, ...]], sizes: dict[str, int]
) -> tuple[list[list[list[Axis]]], list[list[Axis]]]:
    """The axes of the arguments and of the result, for a pattern that einops has accepted."""
    left, right = pattern.split("->")
    known: dict[str, int] = {}
    unnamed = count()
    sides = left.split(",") if operation == "einsum" else [left]
    inputs = [named(side, shape, sizes, known, unnamed) for side, shape in zip(sides, shapes, strict=True)]
    return inputs, named(right, applied(operation, pattern, shapes, sizes), sizes, known, unnamed)


def _place(key: str) -> int:
    return int(key.removeprefix("… "))


def draw(pattern: Pattern) -> Picture:
    """The picture for ``(operation, pattern, shapes, sizes)``, as written in the controls."""
    operation, text, shapes_text, sizes_text = pattern
    if len(text) > 100:
        raise Impossible("the pattern is too long for a picture, → at most 100 letters")
    shapes, sizes = shapes_of(shapes_text), sizes_of(sizes_text)
    result = applied(operation, text, shapes, sizes)
    inputs, output = named_sides(operation, text, shapes, sizes)
    if max(sum(map(len, (axes for dims in inputs for axes in dims))), sum(map(len, output))) > MAX_AXES:
        raise Impossible(f"more than {MAX_AXES} names side by side do not fit, → leave some out")
    labels = [f"{name} {_shape(shape)}: {_elements(shape)}" for name, shape in zip("xyz", shapes, strict=False)]
    labels.append(f"result {_shape(result)}: {_elements(result)}")
    how = operation.removeprefix("reduce, ") if operation != "einsum" else "sum"
    what = f"{' and '.join(map(_shape, shapes))} → {_shape(result)}"
    fig = axis_flow(inputs, output, labels=labels, how=how, title=f"{operation}: {what}")
    moves = _moves(inputs, output)
    finding = f"{operation} “{text.strip()}”: {what}{f'; {moves}' if moves else ''}."
    return Picture(fig, f"{finding} {_count(operation, inputs, output, result)}")


def _shape(shape: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _elements(shape: tuple[int, ...]) -> str:
    number = math.prod(shape)
    return f"{number:,} element" if number == 1 else f"{number:,} elements"


def _moves(inputs: list[list[list[Axis]]], output: list[list[Axis]]) -> str:
    """What is split and merged, and whether the order changes."""
    said: list[str] = []
    for dims, verb in ((list(chain(*inputs)), "splits into"), (output, "is merged from")):
        for axes in dims:
            if len(axes) > 1:
                parts = " · ".join(
                    f"{axis.name} {axis.size}" if axis.name != str(axis.size) else axis.name for axis in axes
                )
                said.append(f"{math.prod(axis.size for axis in axes)} {verb} {parts}")
    if len(inputs) == 1:
        before, after = ([axis.key for axes in dims for axis in axes] for dims in (inputs[0], output))
        kept = [key for key in before if key in after]
        if kept != [key for key in after if key in before]:
            said.append("the order of the names changes")
    return ", ".join(said)


def _count(operation: str, inputs: list[list[list[Axis]]], output: list[list[Axis]], result: tuple[int, ...]) -> str:
    """The number of elements before and after, and how many of the former make one of the latter."""
    sizes: dict[str, int] = {}
    for axis in (axis for dims in inputs for axes in dims for axis in axes):
        sizes[axis.key] = max(axis.size, sizes.get(axis.key, 1))
    kept = {axis.key for axes in output for axis in axes}
    loops, gone = math.prod(sizes.values()), math.prod(size for key, size in sizes.items() if key not in kept)
    each = "The result" if math.prod(result) == 1 else f"Each of the {math.prod(result):,} results"
    if operation == "einsum":
        part = "element" if len(inputs) == 1 else "product"
        return f"{each} is one {part}." if gone == 1 else f"{each} is the sum of {gone:,} {part}s."
    if operation == "rearrange":
        return f"{_elements(result).capitalize()} before and after: nothing is computed."
    if operation == "repeat":
        times = math.prod(result) // loops
        return f"{loops:,} elements become {math.prod(result):,}: each stands there {times:,} time{'s' * (times != 1)}."
    how = operation.removeprefix("reduce, ")
    return f"{each} is the {how} of {gone:,} {'element' if gone == 1 else 'elements'}."


class Controls(Group):
    """An example whose parts can be edited. Its value is what :func:`draw` takes."""

    def __init__(self, example: str) -> None:
        self.example = ipywidgets.Dropdown(options=[*EXAMPLES, OWN], value=example, description="example")
        self.parts = [
            ipywidgets.Dropdown(options=OPERATIONS, description="operation"),
            *(ipywidgets.Text(description=name, continuous_update=False) for name in ("pattern", "shapes", "sizes")),
        ]
        self.parts[1].layout.width = "26rem"
        members = {control.description: control for control in (self.example, *self.parts)}
        super().__init__(members, [[self.example, self.parts[0]], [self.parts[1]], self.parts[2:]])

    def settle(self, moved: str) -> Pattern:
        if moved not in ("", "example"):
            self.example.value = OWN
        elif self.example.value != OWN:
            for part, value in zip(self.parts, EXAMPLES[self.example.value], strict=True):
                part.value = value
        operation, pattern, shapes, sizes = (part.value for part in self.parts)
        return operation, pattern, shapes, sizes


def explore(example: str = "split and move") -> Explorer:
    """An explorer of einops patterns that starts with one of ``EXAMPLES``."""
    for operation, pattern, shapes, sizes in EXAMPLES.values():  # PyTorch loads code at the first of a kind: a second
        applied(operation, pattern, shapes_of(shapes), sizes_of(sizes))
    return Explorer(draw, {"pattern": Controls(example)})

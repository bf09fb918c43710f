"""An einops pattern: where each element comes from and where it goes."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from course_utils.explorers.drawing import Drawing, wide
from course_utils.explorers.explorer import Explorer, Impossible, Panel, Picture

REDUCTIONS = ("sum", "mean", "max", "min")
OPERATIONS = ("rearrange", *(f"reduce, {how}" for how in REDUCTIONS), "repeat", "einsum")
# operation, pattern, shapes of the arguments, sizes by name
EXAMPLES = {
    "split into heads": ("rearrange", "b t (h e) -> b t h e", "2 3 6", "h=2"),
    "split and move": ("rearrange", "b t (h e) -> b h t e", "2 3 6", "h=2"),
    "move and merge": ("rearrange", "b h t e -> b t (h e)", "2 2 3 3", ""),
    "transpose": ("rearrange", "b t d -> b d t", "2 3 4", ""),
    "merge": ("rearrange", "b t d -> (b t) d", "2 3 4", ""),
    "a new dimension of 1": ("rearrange", "b t d -> b 1 t d", "2 3 4", ""),
    "two tokens in one vector": ("rearrange", "b (t two) d -> b t (two d)", "2 4 3", "two=2"),
    "mean over the last dimension": ("reduce, mean", "b t d -> b t", "2 3 4", ""),
    "mean, any leading dimensions": ("reduce, mean", "... d -> ...", "2 3 4", ""),
    "max pooling": ("reduce, max", "(y 2) (x 2) -> y x", "4 8", ""),
    "repeat": ("repeat", "t -> t copies", "4", "copies=3"),
    "pixels four times as large": ("repeat", "y x -> (y 2) (x 2)", "2 4", ""),
    "attention scores": ("einsum", "b t e, b s e -> b t s", "2 3 4, 2 4 4", ""),
    "matrix product": ("einsum", "a b, b c -> a c", "3 4, 4 5", ""),
    "every pair": ("einsum", "i, j -> i j", "3, 4", ""),
    "the diagonal, summed": ("einsum", "i i ->", "4 4", ""),
    "a layer, any leading dimensions": ("einsum", "... d, d k -> ... k", "2 2 3, 3 4", ""),
}
OWN = "your own"
MOST, ALL, LOOPS = 48, 112, 400  # elements of one tensor, of all, and products that go into all results
LOOKS = ("data", "measured", "compute", "context")
Group = list[str]


def sides(operation: str, pattern: str) -> tuple[list[list[Group]], list[Group]]:
    """The dimensions of the arguments and of the result, each with its names: what a pattern says without its sizes.

    "…" stands for three dots, and a number's name is the number with "#" and a count, since no two of them are equal.
    """
    halves = pattern.split("->")
    if len(halves) != 2:
        raise _Wrong("write one arrow with names on both sides, such as b t d -> b d t")
    numbers = itertools.count()
    inputs = [_side(side, operation, numbers, left=True) for side in halves[0].split(",")]
    output = _side(halves[1], operation, numbers, left=False)
    if operation != "einsum" and len(inputs) > 1:
        raise _Wrong("only einsum takes several tensors, with a comma between them")
    before, after = ({name for dims in part for group in dims for name in group} for part in (inputs, [output]))
    if operation != "einsum" and "…" in after and "…" not in before:
        raise _Wrong("write ... on the left, too")
    if any(len(group) > 1 and "…" in group for dims in inputs for group in dims):
        raise _Wrong("... can't be in parentheses on the left")
    gone, new = sorted(before - after), sorted(after - before - {"…"})
    if operation == "rearrange" and any("#" in name for name in before | after):
        raise _Wrong("rearrange takes names; the only number allowed is 1")
    if gone and operation in ("rearrange", "repeat"):
        raise _Wrong(f"write {_name(gone[0])} on the right, too: {operation} leaves nothing out")
    if new and operation != "repeat":
        raise _Wrong(f"write {_name(new[0])} on the left, too: only repeat adds a dimension")
    return inputs, output


def _side(text: str, operation: str, numbers: Iterator[int], *, left: bool) -> list[Group]:
    """The dimensions of a tensor, each with its names; parentheses with dots alone get a second name, ""."""
    dims: list[Group] = []
    group: Group | None = None
    seen: set[str] = set()
    for word in text.replace("(", " ( ").replace(")", " ) ").split(" "):
        if operation == "einsum" and word in ("(", "1"):
            raise _Wrong("einsum takes neither parentheses nor 1")
        if not word:
            continue
        if word in "()":
            if (group is None) != (word == "("):
                raise _Wrong("each ( needs its ), and parentheses cannot be nested")
            if group is not None:
                dims.append([*group, ""] if group == ["…"] and left else group)
            group = [] if word == "(" else None
            continue
        name = _named(word, operation, numbers)
        if name and name in seen and not (operation == "einsum" and left and name != "…"):
            raise _Wrong(f"{word} appears twice on one side: each name is one loop, so use two names")
        seen.add(name)
        if group is None:
            dims.append([name] if name else [])
        elif name:
            group.append(name)
    if group is not None:
        raise _Wrong("a ( has no )")
    return dims


def _named(word: str, operation: str, numbers: Iterator[int]) -> str:
    """The name of a word of a pattern; 1 has none."""
    if word == "...":
        return "…"
    if re.fullmatch("[0-9]+", word):
        if int(word) > 1 and operation != "einsum":
            return f"{int(word)}#{next(numbers)}"
        if int(word) == 1:
            return ""
        raise _Wrong(f"{word} can't be the size of a dimension: write a name")
    if not word.isidentifier() or (word.strip("_") != word and (operation, word) != ("einsum", "_")):
        raise _Wrong(f"“{word[:20]}” isn't a name: use letters, such as b t d")
    return word


def _name(key: str) -> str:
    return "..." if key.startswith("…") else key.split("#")[0]


class _Wrong(Impossible):
    """The pattern itself is wrong."""

    def __init__(self, problem: str, control: str = "pattern") -> None:
        super().__init__(problem, control)


@dataclass(frozen=True)
class Moves:
    """What an operation does to each element.

    ``inputs`` and ``output`` have the names of each dimension, and ``size`` their sizes. ``sources`` are, for each
    element of the result in row-major order, the elements that make it: for each product, a place in every argument.
    """

    operation: str
    shapes: list[tuple[int, ...]]
    inputs: list[list[Group]]
    output: list[Group]
    size: dict[str, int]
    sources: list[list[tuple[int, ...]]]

    @property
    def shape(self) -> tuple[int, ...]:
        """The result's."""
        return tuple(math.prod(self.size[name] for name in group) for group in self.output)

    @cached_property
    def values(self) -> list[float]:
        """The result, if each element of an argument is its place in it."""
        return [self._combined([math.prod(places) for places in found]) for found in self.sources]

    @cached_property
    def view(self) -> bool:
        """Whether strides alone can say where each element of a rearrangement is in its contiguous argument."""
        after, at = math.prod(self.shape), [source[0][0] for source in self.sources]
        strides = []
        for extent in self.shape:
            after //= extent
            strides.append(at[after] - at[0] if extent > 1 else 0)
        indexes = itertools.product(*map(range, self.shape))
        return at == [sum(i * stride for i, stride in zip(index, strides, strict=True)) for index in indexes]

    def _combined(self, found: list[int]) -> float:
        if self.operation == "reduce, mean":
            return sum(found) / len(found)
        return {"reduce, max": max, "reduce, min": min}.get(self.operation, sum)(found)


def moves(operation: str, pattern: str, shapes: list[tuple[int, ...]], given: dict[str, int]) -> Moves:
    """What einops does with tensors of these shapes.

    Raises:
        Impossible: einops refuses, or there's too much to draw.
    """
    written, right = sides(operation, pattern)
    if len(written) != len(shapes):
        raise Impossible(
            f"the pattern has {_count(len(written), 'tensor')}: write one shape for each, with commas between", "shapes"
        )
    size: dict[str, int] = {}
    inputs = []
    for dims, shape in zip(written, shapes, strict=True):
        dots = len(shape) - len(dims) + 1 if ["…"] in dims else 0
        if dots < 0 or len(shape) != len(dims) - (["…"] in dims) + dots:
            raise Impossible(
                f"{_shape(shape)} has {_count(len(shape), 'dimension')}, and the pattern says {len(dims)}: "
                "parentheses count as one",
                "shapes",
            )
        # Dots are counted from the last, as broadcasting does.
        inputs.append([g for dim in dims for g in ([[f"…{k}"] for k in range(dots, 0, -1)] if dim == ["…"] else [dim])])
    if operation == "einsum" and given:
        raise Impossible("clear the sizes: einsum takes them from the shapes", "sizes")
    names = {name for dims in inputs for group in dims for name in group}
    unused = sorted(set(given) - names - {name for group in right for name in group})
    if unused:
        raise Impossible(f"{unused[0]} isn't in the pattern: clear it, or use it there", "sizes")
    for dims, shape in zip(inputs, shapes, strict=True):
        seen: dict[str, int] = {}
        for group, extent in zip(dims, shape, strict=True):
            _solve(group, extent, given, size, seen, broadcast=operation == "einsum")
    every = [key for key in sorted(names, key=_dots) if key.startswith("…")]
    output = []
    for group in right:
        if group == ["…"] and "(...)" not in re.sub(" ", "", pattern.split("->")[1]):
            output += [[key] for key in every]
        else:
            output.append([key for name in group for key in (every if name == "…" else [name])])
    for name in (name for group in output for name in group if name not in size):
        if name not in given and "#" not in name:
            raise Impossible(f"give the size of {name}, such as {name}=2", "sizes")
        size[name] = given.get(name) or int(name.split("#")[0])
    return Moves(operation, shapes, inputs, output, size, _sources(inputs, shapes, output, size))


def _dots(key: str) -> int:
    return -int(key[1:]) if key.startswith("…") else 0


def _solve(
    group: Group, extent: int, given: dict[str, int], size: dict[str, int], seen: dict[str, int], *, broadcast: bool
) -> None:
    """Enter the sizes of a dimension's names. ``seen`` has those of the same tensor."""
    if broadcast:
        (name,) = group
        if seen.setdefault(name, extent) != extent or (1 not in (extent, size.get(name, 1)) and size[name] != extent):
            raise Impossible(f"{_name(name)} is {size[name]} in one place and {extent} in another", "shapes")
        size[name] = max(extent, size.get(name, 1))
        return
    known = {name: given[name] for name in group if name in given}
    known |= {name: int(name.split("#")[0]) for name in group if "#" in name}
    unknown, product = [name for name in group if name not in known], math.prod(known.values())
    if len(unknown) > 1:
        raise Impossible(f"give the size of {unknown[0]}, such as {unknown[0]}=2", "sizes")
    if extent % product or (not unknown and extent != product):
        said = " · ".join(_name(name) + f"={known[name]}" * ("#" not in name) for name in known) or "1"
        raise Impossible(
            f"a dimension of size {extent} doesn't match {said}", "sizes" if set(known) & set(given) else "shapes"
        )
    size.update(known | {name: extent // product for name in unknown})


def _sources(
    inputs: list[list[Group]], shapes: list[tuple[int, ...]], output: list[Group], size: dict[str, int]
) -> list[list[tuple[int, ...]]]:
    kept = [name for group in output for name in group]
    gone = list(dict.fromkeys(name for dims in inputs for group in dims for name in group if name not in kept))
    elements = [*map(math.prod, shapes), math.prod(size[name] for name in kept)]
    for most, many in ((MOST, max(elements)), (ALL, sum(elements))):
        if many > most:
            raise Impossible(f"more than {most} elements are too many to draw: make a size smaller", "shapes")
    if math.prod(size[name] for name in (*kept, *gone)) > LOOPS:
        raise Impossible(f"more than {LOOPS:,} products are too many: make a size smaller", "shapes")
    strides: list[dict[str, int]] = []  # of each argument, by name
    for dims, shape in zip(inputs, shapes, strict=True):
        stride, found = 1, dict[str, int]()
        for group, extent in reversed(list(zip(dims, shape, strict=True))):
            for name in reversed(group):
                if extent > 1 or len(group) > 1:  # a dimension of 1 is read again and again
                    found[name] = found.get(name, 0) + stride
                stride *= size[name] if len(group) > 1 else extent
        strides.append(found)

    def places(names: list[str]) -> list[tuple[int, ...]]:
        """For each combination of their values, the offset into every argument."""
        found = [(0,) * len(strides)]
        for name in names:
            steps = [stride.get(name, 0) for stride in strides]
            found = [
                tuple(at + i * step for at, step in zip(place, steps, strict=True))
                for place in found
                for i in range(size[name])
            ]
        return found

    inside = places(gone)
    return [[tuple(map(sum, zip(start, each, strict=True))) for each in inside] for start in places(kept)]


def shapes_of(text: str) -> list[tuple[int, ...]]:
    """``"2 3 4, 4 6"`` as the shapes of two tensors."""
    parts = text.split(",")
    if not re.fullmatch("[0-9 ,]*", text) or any(not 1 <= int(n) <= MOST for n in re.findall("[0-9]+", text)):
        raise Impossible(f"write sizes from 1 to {MOST}, with a comma between tensors: 2 3 4, 4 6", "shapes")
    if len(parts) > 3:
        raise Impossible("write at most 3 shapes", "shapes")
    return [tuple(map(int, part.split())) for part in parts]


def sizes_of(text: str) -> dict[str, int]:
    """``"h=2, e=4"`` as a dictionary."""
    pairs = [pair.strip() for pair in text.split(",") if pair.strip()]
    found = [re.fullmatch(r"([^\W\d]\w*)\s*=\s*([1-9][0-9]?)", pair) for pair in pairs]
    if not all(found):
        raise Impossible("write sizes like h=2, e=4", "sizes")
    return {match[1]: int(match[2]) for match in found if match}


def explore(example: str = "split and move") -> Explorer:
    """An einops pattern, written by the reader, that moves the elements of small tensors. Begins with an example."""
    arguments: dict[str, Any] = {"example": example}
    return Explorer("patterns", partial(show, **arguments), arguments)


def show(panel: Panel, *, example: str) -> Picture:
    """The arguments at one side, the result at the other, and each element on its way between them."""
    chosen = panel.choice("example", [*EXAMPLES, OWN], example)
    parts = EXAMPLES.get(chosen, EXAMPLES[example])
    operation: str = panel.choice("operation", OPERATIONS, parts[0])
    panel.row()
    texts = [panel.text(name, default) for name, default in zip(("pattern", "shapes", "sizes"), parts[1:], strict=True)]
    if panel.moved == "example" and chosen != OWN:
        for name, value in zip(("operation", "pattern", "shapes", "sizes"), parts, strict=True):
            panel.put(name, value)
        operation, *texts = parts
    elif (operation, *texts) != parts:
        panel.put("example", OWN)
    panel.row()
    found = moves(operation, texts[0], shapes_of(texts[1]), sizes_of(texts[2]))
    count = len(found.sources)
    placed = panel.slider("elements placed", range(count + 1), count, play=350)
    if panel.moved in ("example", "operation", "pattern", "shapes", "sizes"):  # the number was about another tensor
        placed = count
        panel.put("elements placed", f"{count}")
    names = {_name(key): key for key in found.size if not key.startswith("…")} or {"none": ""}
    color = panel.choice("colors", names, _name(_telling(found)), label="colors show")

    shape = _shape(found.shape)
    what = f"{' and '.join(map(_shape, found.shapes))} → {shape}"
    title = f"{operation}: {what}, {_told(found)}"
    said = [f"{operation} “{texts[0].strip()}” makes {what}.", _order(found)]
    if placed:
        said.append(f"{_made(found, placed - 1, 6)}.")
    return Picture(title, _draw(panel, found, texts[0], placed, color), " ".join(filter(None, said)))


def _telling(found: Moves) -> str:
    """The name to follow at first: the first of a group, or the last one that stays."""
    dims = [*itertools.chain(*found.inputs), *found.output]
    groups = [group[0] for group in dims if len(group) > 1]
    stay = [name for group in found.output for name in group]
    left = [name for dims in found.inputs for group in dims for name in group]
    names = [*groups, *reversed(stay if found.operation != "rearrange" else left), *left]
    return next((name for name in names if not name.startswith("…")), "none")


def _told(found: Moves) -> str:
    """What happens to the elements, in numbers."""
    count, many = len(found.sources), len(found.sources[0])
    if found.operation == "rearrange":
        how = "a view: nothing is copied" if found.view else "a copy"
        return f"{_count(count, 'element')} ({how})"
    if found.operation == "repeat":
        return f"each element {_count(count // math.prod(found.shapes[0]), 'time')}"
    each, what = "each " * (count > 1), "product" if len(found.shapes) > 1 else "element"
    if found.operation == "einsum":
        return f"{each}the sum of {_count(many, what)}" if many > 1 else f"{each}one {what}"
    return f"{each}the {found.operation[8:]} of {_count(many, what)}"


def _order(found: Moves) -> str:
    """What is split and merged, and whether the order of the names changes."""
    said = []
    for dims, verb in ((list(itertools.chain(*found.inputs)), "is split into"), (found.output, "is merged from")):
        for group in dims:
            if len(group) > 1:
                sizes = [found.size[name] for name in group]
                parts = " · ".join(
                    f"{_name(name)} {size}" if _name(name) != f"{size}" else f"{size}"
                    for name, size in zip(group, sizes, strict=True)
                )
                said.append(f"{math.prod(sizes)} {verb} {parts}")
    if len(found.inputs) == 1:
        before, after = ([name for group in dims for name in group] for dims in (found.inputs[0], found.output))
        if [name for name in before if name in after] != [name for name in after if name in before]:
            said.append("the order of the names changes")
    text = ", and ".join([", ".join(said[:-1]), said[-1]] if len(said) > 1 else said)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _made(found: Moves, place: int, most: int) -> str:
    """One element of the result and what it's made of, at most so many terms."""
    terms = []
    for places in found.sources[place][:most]:
        terms.append(
            "·".join(f"{tensor}{_at(shape, i)}" for tensor, shape, i in zip("xyz", found.shapes, places, strict=False))
        )
    more = len(found.sources[place]) > most
    how = found.operation[8:] if found.operation.startswith("reduce") else ""
    if how in ("", "sum"):
        right = " + ".join([*terms, "…"] if more else terms)
    else:
        right = f"{how}({', '.join([*terms, '…'] if more else terms)})"
    return f"result{_at(found.shape, place)} = {right} = {_value(found.values[place])}"


def _at(shape: tuple[int, ...], place: int) -> str:
    index: list[int] = []
    for size in reversed(shape):
        place, i = divmod(place, size)
        index.insert(0, i)
    return f"[{', '.join(map(str, index))}]"


def _value(value: float) -> str:
    return f"{value:.3g}" if value != int(value) else f"{int(value)}"


def _shape(shape: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


@dataclass(frozen=True)
class _Grid:
    """A tensor's cells: the last dim goes across, the one before down, the one before that across again, and so on."""

    width: float
    height: float
    places: list[tuple[float, float]]


def _grid(shape: tuple[int, ...], width: float, height: float, room: float) -> _Grid:
    if len(shape) == 1 and shape[0] * width > room:  # a long line is broken
        per = max(1, int(room // width))
        lines = -(-shape[0] // per)
        places = [(i % per * width, i // per * (height + 6)) for i in range(shape[0])]
        return _Grid(per * width, lines * (height + 6) - 6, places)
    extent, places = [width, height], [(0.0, 0.0)]
    for level, size in enumerate(reversed(shape)):
        gap, way = (0, 0, 8, 8, 14, 14)[min(level, 5)], level % 2
        step = extent[way] + gap
        across, down = (step, 0.0) if way == 0 else (0.0, step)
        places = [(x + i * across, y + i * down) for i in range(size) for x, y in places]
        extent[way] = size * step - gap
    return _Grid(extent[0], extent[1], places)


def _layout(
    found: Moves, names: list[str], digits: int, room: float, high: float
) -> tuple[float, float, list[_Grid], list[tuple[float, float]], float]:
    """Size of a cell, the tensors' grids and where they are, and the height of all: as large as there's room."""
    shapes = [*found.shapes, found.shape]
    head, between, least = 18.0, 28.0, 6.4 * digits + 2.6
    cells = [(width, min(max(width, 18.0), 24.0)) for width in (34.0, 30.0, 27.0, 24.0, 21.0, 18.0) if width > least]
    for width, height in (*cells, (max(least, 15.4), 18.0)):
        for way in ("beside", "below", "stacked"):
            half = (room - between) / 2
            grids = [_grid(shape, width, height, half if way == "beside" else room) for shape in shapes]
            widths = [max(g.width, wide(name) * 0.95) for g, name in zip(grids, names, strict=True)]
            spots, across, down = [], 0.0, head
            for grid, extent in zip(grids[:-1], widths, strict=False):
                spots.append((across, down))
                if way == "below":
                    across += extent + between
                else:
                    down += grid.height + head + 6
            if way == "beside":  # the result to the right of the arguments
                spots.append((max(max(widths[:-1]) + between, half + between), head))
            elif way == "below":
                spots.append((0.0, 2 * head + max(grid.height for grid in grids[:-1]) + 6))
            else:
                spots.append((0.0, down))
            tall = max(y + grid.height for grid, (_, y) in zip(grids, spots, strict=True))
            if tall <= high and all(x + extent <= room for extent, (x, _) in zip(widths, spots, strict=True)):
                return width, height, grids, spots, tall
    raise Impossible("these tensors are too large to draw: make a size smaller", "shapes")


def _draw(panel: Panel, found: Moves, pattern: str, placed: int, color: str) -> Drawing:
    halves = pattern.split("->")
    written = [*halves[0].split(","), halves[1]]
    names = [
        f"{tensor}: {' '.join(text.split()) or 'one number'}"
        for tensor, text in zip([*"xyz"[: len(found.shapes)], "result"], written, strict=True)
    ]
    values = found.values
    digits = max(len(_value(value)) for value in (*values, *(math.prod(shape) - 1 for shape in found.shapes)))
    room, high = (364.0, 480.0) if panel.narrow else (744.0, 330.0)
    width, height, grids, spots, tall = _layout(found, names, digits, room, high)
    drawing = Drawing(panel.width, tall + 4)
    *places, slots = [
        [(8 + left + x, top + y) for x, y in grid.places] for grid, (left, top) in zip(grids, spots, strict=True)
    ]
    for name, (x, y) in zip(names, spots, strict=True):
        drawing.text(8 + x, y - 6, name, behind=True)
    looks = [_looks(found, dims, shape, color) for dims, shape in zip(found.inputs, found.shapes, strict=True)]
    made_looks = _looks(found, found.output, found.shape, color)
    for cells, theirs in zip(places, looks, strict=True):
        for look in dict.fromkeys(theirs):
            chosen = [cell for cell, its in zip(cells, theirs, strict=True) if its == look]
            _boxes(drawing, chosen, width, height, look)
        middles = ((x + width / 2, y + height / 2 + 4, f"{k}") for k, (x, y) in enumerate(cells))
        drawing.numbers(middles, behind=True)
    _boxes(drawing, slots, width, height, "paper")

    if found.operation in ("rearrange", "repeat"):
        for k, ((source,),) in enumerate(found.sources):
            place, look = (slots[k], made_looks[k]) if k < placed else (places[0][source], looks[0][source])
            key = f"{source}" if found.operation == "rearrange" else f"{k} of {source}"
            drawing.glider(*place, width, height, f"{source}", look, key=key)
    else:
        # Only what goes into the last result, where it has arrived, and what will go into the next one.
        for k in range(max(placed - 1, 0), min(placed + 1, len(slots))):
            for tensor, i in _used(found, k)[:MOST]:
                place = slots[k] if k < placed else places[tensor][i]
                drawing.glider(*place, width, height, f"{i}", looks[tensor][i], key=f"{k}: {tensor} {i}")
        for k in range(placed):
            drawing.glider(*slots[k], width, height, _value(values[k]), made_looks[k], key=f"result {k}")
    if placed:
        _boxes(drawing, [places[tensor][i] for tensor, i in _used(found, placed - 1)], width, height, "")
        x, y = slots[placed - 1]
        drawing.shape(
            "rect", x=x, y=y, width=width, height=height, class_="f-none l-highlight", stroke_width=3, data_key="now"
        )  # fmt: skip
    return drawing


def _used(found: Moves, place: int) -> list[tuple[int, int]]:
    """The elements that one of the result is made of: tensor and place."""
    return list(dict.fromkeys((tensor, i) for each in found.sources[place] for tensor, i in enumerate(each)))


def _boxes(drawing: Drawing, places: Sequence[tuple[float, float]], width: float, height: float, look: str) -> None:
    """Boxes of one look as a single shape; without a look, a frame around each."""
    path = "".join(f"M{x:g} {y:g}h{width:g}v{height:g}h{-width:g}z" for x, y in places)
    if look:
        classes = " ".join(f"f-{each}" for each in (*look.split(), "edged"))
        drawing.shape("path", d=path, class_=classes, behind=True)
    else:
        drawing.shape("path", d=path, class_="f-none l-highlight", stroke_width=2, data_key="sources")


def _looks(found: Moves, dims: list[Group], shape: tuple[int, ...], color: str) -> list[str]:
    """The look of each element of a tensor: it says the value of one name."""
    flat = [name for group in dims for name in group]
    if color not in flat:
        return ["paper"] * math.prod(shape)
    after = math.prod(found.size[name] for name in flat[flat.index(color) + 1 :])
    return [
        f"{LOOKS[value % len(LOOKS)]} {'soft' if value // len(LOOKS) % 2 == 0 else 'half'}"
        for value in (place // after % found.size[color] for place in range(math.prod(shape)))
    ]

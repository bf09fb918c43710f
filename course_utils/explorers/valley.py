"""The valley: steps of an optimizer on a loss of two parameters, whose shape, start and rate can be changed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial

from course_utils.explorers.drawing import Axis, Drawing
from course_utils.explorers.explorer import Explorer, Panel, Picture
from course_utils.units import plain

Point = tuple[float, float]
Update = Callable[[int, list[float], list[list[float]], float], list[float]]
STEPS = list(range(0, 101))
RATES = [float(f"{digit}e{power}") for power in (-3, -2, -1) for digit in (1, 1.5, 2, 3, 5, 7)] + [1.0, 1.5, 2.0]
TURNS = list(range(0, 91, 3))
RATIOS = [1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100]
PLACES = [round(-2.4 + 0.1 * i, 1) for i in range(49)]
HEIGHTS = [round(-0.9 + 0.1 * i, 1) for i in range(19)]  # all of them on the wide drawing, too
CLOSE = 1e-3
_HEIGHT = 310.0
_EPSILON = 1e-8


def _sgd(step: int, g: list[float], kept: list[list[float]], rate: float) -> list[float]:
    return [-rate * each for each in g]


def _momentum(step: int, g: list[float], kept: list[list[float]], rate: float) -> list[float]:
    kept[0] = [0.9 * v + each for v, each in zip(kept[0], g, strict=True)]
    return [-rate * v for v in kept[0]]


def _adagrad(step: int, g: list[float], kept: list[list[float]], rate: float) -> list[float]:
    kept[0] = [v + each * each for v, each in zip(kept[0], g, strict=True)]
    return [-rate * each / (math.sqrt(v) + _EPSILON) for each, v in zip(g, kept[0], strict=True)]


def _rmsprop(step: int, g: list[float], kept: list[list[float]], rate: float) -> list[float]:
    kept[0] = [0.99 * v + 0.01 * each * each for v, each in zip(kept[0], g, strict=True)]
    return [-rate * each / (math.sqrt(v) + _EPSILON) for each, v in zip(g, kept[0], strict=True)]


def _adam(step: int, g: list[float], kept: list[list[float]], rate: float) -> list[float]:
    kept[0] = [0.9 * m + 0.1 * each for m, each in zip(kept[0], g, strict=True)]
    kept[1] = [0.999 * v + 0.001 * each * each for v, each in zip(kept[1], g, strict=True)]
    first, second = 1 - 0.9**step, 1 - 0.999**step
    return [-rate * (m / first) / (math.sqrt(v / second) + _EPSILON) for m, v in zip(*kept, strict=True)]


# As torch.optim has them, with its default settings and momentum 0.9.
OPTIMIZERS: dict[str, Update] = {
    "SGD": _sgd, "SGD with momentum": _momentum, "AdaGrad": _adagrad, "RMSProp": _rmsprop, "Adam": _adam,
}  # fmt: skip


def curvature(ratio: float, turn: float) -> tuple[float, float, float]:
    """The second derivatives ``[[a, b], [b, c]]``: 1 along the valley and ``ratio`` across it, turned by degrees."""
    cos, sin = math.cos(math.radians(turn)), math.sin(math.radians(turn))
    return cos * cos + ratio * sin * sin, (1 - ratio) * sin * cos, sin * sin + ratio * cos * cos


def walk(optimizer: str, start: Point, rate: float, ratio: float, turn: float, steps: int) -> list[Point]:
    """The points from ``start`` on; ends early where a number would leave the range of floats."""
    a, b, c = curvature(ratio, turn)
    kept, path = [[0.0, 0.0], [0.0, 0.0]], [start]
    for step in range(1, steps + 1):
        x, y = path[-1]
        dx, dy = OPTIMIZERS[optimizer](step, [a * x + b * y, b * x + c * y], kept, rate)
        if not (abs(x + dx) < 1e100 and abs(y + dy) < 1e100):
            break
        path.append((x + dx, y + dy))
    return path


def loss(point: Point, ratio: float, turn: float) -> float:
    """Half the quadratic form of the curvature, 0 at the bottom."""
    a, b, c = curvature(ratio, turn)
    x, y = point
    return (a * x * x + 2 * b * x * y + c * y * y) / 2


def within(point: Point, edges: Point) -> bool:
    """Whether both coordinates are at most ``edges`` from 0."""
    return abs(point[0]) <= edges[0] and abs(point[1]) <= edges[1]


def parts(path: list[Point], edges: Point) -> list[list[Point]]:
    """The parts of a path that are inside; each ends at the edge where the path leaves, and begins where it returns."""
    found: list[list[Point]] = []
    for here, there in itertools.pairwise(path):
        first, last = 0.0, 1.0  # the part of the step that is inside
        for a, b, edge in zip(here, there, edges, strict=True):
            if a == b:
                first, last = (first, last) if abs(a) <= edge else (1.0, 0.0)
            else:
                shares = sorted(((edge - a) / (b - a), (-edge - a) / (b - a)))
                first, last = max(first, shares[0]), min(last, shares[1])
        if first >= last:
            continue
        (x, y), (dx, dy) = here, (there[0] - here[0], there[1] - here[1])
        start = x + first * dx, y + first * dy
        end = there if last == 1 else (x + last * dx, y + last * dy)
        if not found or first > 0 or found[-1][-1] != start:
            found.append([start])
        found[-1].append(end)
    return found


def explore(optimizer: str = "SGD", *, rate: float = 0.1, ratio: int = 15, turn: int = 0) -> Explorer:
    """Controls for an optimizer, its rate and the valley, above its path; the start can be dragged.

    Args:
        optimizer: a key of `OPTIMIZERS`.
        rate: one of `RATES`.
        ratio: how many times as steep across the valley as along it, one of `RATIOS`.
        turn: of the valley, in degrees, one of `TURNS`.
    """
    arguments = {"optimizer": optimizer, "rate": rate, "ratio": ratio, "turn": turn}
    return Explorer("valley", partial(show, **arguments), arguments)  # type: ignore[arg-type]


def show(panel: Panel, *, optimizer: str, rate: float, ratio: int, turn: int) -> Picture:
    """Contours of the loss, and the optimizer's path so far."""
    name = panel.choice("optimizer", tuple(OPTIMIZERS), optimizer)
    rate = panel.slider("rate", RATES, rate, plain, label="learning rate")
    steps = panel.slider("steps", STEPS, STEPS[-1], play=80)
    panel.row()
    ratio = panel.slider("ratio", RATIOS, ratio, label="steepness ratio")
    turn = panel.slider("turn", TURNS, turn, "{}°".format)
    panel.row()
    x0 = panel.slider("x", PLACES, -2.2, label="start, x")
    y0 = panel.slider("y", HEIGHTS, 0.8, label="start, y")
    place = panel.dragged("start")

    scale = (panel.width - 20) / 5  # pixels for a unit, the same in both directions
    height = _HEIGHT if not panel.narrow else 3.2 * scale + 20
    middle = panel.width / 2, height / 2
    px = Axis(-2.5, 2.5, middle[0] - 2.5 * scale, middle[0] + 2.5 * scale)
    high = (height / 2 - 10) / scale
    py = Axis(-high, high, height - 10, 10)
    if place:
        x0, y0 = px.nearest(PLACES, place[0]), py.nearest(HEIGHTS, place[1])
        panel.put("x", f"{x0}")
        panel.put("y", f"{y0}")

    drawing = Drawing(panel.width, height)
    _axes(drawing, px, py, high)
    cos, sin = math.cos(math.radians(turn)), math.sin(math.radians(turn))
    edges = 2.5, high
    for level in (0.02, 0.1, 0.4, 1, 2, 4):
        along, across = math.sqrt(2 * level), math.sqrt(2 * level / ratio)
        ring = []
        for i in range(49):
            u, v = along * math.cos(math.tau * i / 48), across * math.sin(math.tau * i / 48)
            ring.append((u * cos - v * sin, u * sin + v * cos))
        for piece in parts(ring, edges):
            drawing.line([(px(x), py(y)) for x, y in piece], "context", width=1, behind=True)
    drawing.circle(*middle, 3, "ink", tip="the bottom")
    path = walk(name, (x0, y0), rate, ratio, turn, steps)
    seen = [number for number, point in enumerate(path) if within(point, edges)]
    returns, gone = len(seen) < seen[-1] + 1, seen[-1] + 1 < len(path)
    # Once a path is outside for good, only the step that leaves is drawn, in its direction, as far as the edge.
    for number, piece in enumerate(parts(path[: seen[-1] + 2], edges)):
        drawing.line(
            [(px(x), py(y)) for x, y in piece], "compute past", width=2, key=f"path {number}" if number else "path",
            arrow=piece[-1] not in path,
        )  # fmt: skip
    for number in seen[1:]:
        drawing.circle(px(path[number][0]), py(path[number][1]), 2.5, "compute now", key=f"step {number}")
    drawing.before(panel.width - 6, height - 6)
    drawing.handle(
        px(x0),
        py(y0),
        sets="start",
        within=(px(PLACES[0]), py(HEIGHTS[-1]), px(PLACES[-1]), py(HEIGHTS[0])),
        label="drag the start",
    )

    losses = [loss(point, ratio, turn) for point in path]
    limit = 2 / ratio
    arrived = next((number for number, value in enumerate(losses) if value < CLOSE), None)
    if losses[-1] > 10 * losses[0] or len(path) <= steps:
        title = (
            f"{name} at a rate of {plain(rate)} diverges: after {len(path) - 1} steps the loss is {plain(losses[-1])}"
        )
    elif arrived is not None:
        title = f"{name} at a rate of {plain(rate)} gets below a loss of {CLOSE} in {arrived} steps"
        title += ", and above it again" * (losses[-1] > CLOSE)
    else:
        title = f"{name} at a rate of {plain(rate)}: after {steps} steps the loss is {plain(losses[-1])}"
    finding = f"The loss went from {plain(losses[0])} to {plain(losses[-1])} in {len(path) - 1} steps. "
    if returns or gone:
        fate = "and returns" if not gone else "and ends outside" if not returns else "returns, and ends outside"
        finding += f"Its path leaves the picture{',' * (returns and gone)} {fate}. "
    if name == "SGD":
        way = f"each step leaves {plain(abs(1 - rate))} of the distance" if rate != 1 else "one step is enough"
        finding += (
            f"SGD converges only at rates below 2 / {ratio} = {plain(limit)}, a limit set by the steep direction; "
            f"along the valley, {way}."
        )
    elif name == "SGD with momentum":
        finding += "Momentum adds up what the steps have in common: their component along the valley."
    else:
        if ratio == 1:
            here = "and here they are equally steep"
        elif turn in (0, 90):
            here = "as long as the valley runs along an axis"
        else:
            here = "but here the valley follows neither axis"
        finding += (
            f"{name} divides each coordinate by the size of its own gradients: steep and flat coordinates move alike, "
            f"{here}."
        )
    return Picture(title, drawing, finding)


def _axes(drawing: Drawing, px: Axis, py: Axis, high: float) -> None:
    """A frame with the two parameters' values."""
    corners = [(px.start, py.start), (px.end, py.start), (px.end, py.end), (px.start, py.end), (px.start, py.start)]
    drawing.line(corners, "grid", width=1, behind=True)
    for x in (-2, -1, 0, 1, 2):
        drawing.line([(px(x), py.start), (px(x), py.start - 4)], "ink", width=1, behind=True)
        words, look = f"{x}" if x else "x = 0", "quiet clear"
        drawing.text(px(x), py.start - 7, words, anchor="middle", size=11, look=look, behind=True)
    for y in (-1, -0.5, 0, 0.5, 1):
        if abs(y) < high - 0.1:
            drawing.line([(px.start, py(y)), (px.start + 4, py(y))], "ink", width=1, behind=True)
            words = f"{y:g}" if y else "y = 0"
            drawing.text(px.start + 7, py(y) + 4, words, size=11, look="quiet clear", behind=True)

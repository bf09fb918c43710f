"""How an initialization changes outputs and gradients through fifty layers, predicted and measured.

The predicted lines are computed here. The measured points come from a table, initialization.json, which

    python -m course_utils.explorers.initialization

makes again; this needs PyTorch, and takes some minutes.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course_utils.explorers.drawing import Axis, Drawing, power
from course_utils.explorers.explorer import Explorer, Panel, Picture
from course_utils.units import plain

if TYPE_CHECKING:
    from torch import Tensor

# The variance of a weight, times the width of the layer, which here is fan-in and fan-out alike.
INITIALIZERS: dict[str, Callable[[int], float]] = {
    "Kaiming": lambda width: 2.0,
    "LeCun = Glorot": lambda width: 1.0,
    "nn.Linear": lambda width: 1 / 3,
    "torch.randn": lambda width: float(width),
    "std 0.02, as GPT-2": lambda width: 0.02**2 * width,
}
NONLINEARITIES = ("ReLU", "tanh", "GELU", "none")
# ReLU and the identity scale with their input, so that without residual connections one measurement is enough.
HOMOGENEOUS = ("ReLU", "none")
WIDTHS = (32, 128, 512)
GAINS = tuple(2.0**power for power in (-1, -1 / 2, -1 / 4, -1 / 8, -1 / 16, 0.0, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1))
DEPTH = 50
SHOWN = (1, 10, 20, 30, 40, 50)  # layers whose measurements are in the table
KEEPS = (0.1, 10.0)  # between these factors, a scale counts as kept
FLOAT32 = (2.0**-149, (2 - 2.0**-23) * 2.0**127)
_TABLE = "initialization.json"
_ROWS = 32


def explore(initializer: str = "LeCun = Glorot", nonlinearity: str = "ReLU", *, width: int = 128) -> Explorer:
    """Controls for a network of `DEPTH` layers and its initialization, above the scale at each layer.

    Args:
        initializer: a key of `INITIALIZERS`.
        nonlinearity: one of `NONLINEARITIES`, between the layers.
        width: one of `WIDTHS`.
    """
    arguments: dict[str, Any] = {"initializer": initializer, "nonlinearity": nonlinearity, "width": width}
    return Explorer("initialization", partial(show, **arguments), arguments)


def predict(factor: float, nonlinearity: str, residual: bool) -> tuple[list[float], list[float]]:
    """Root mean squares by layer, from the first: of the outputs, and of the loss's gradient with respect to them.

    For z = x W in the first layer, then z = [z +] φ(z) W, as a mean over many wide networks; ``factor`` is width · std²
    of the weights. The data have a std of 1, and so does the gradient at the last outputs. Where z is normal with mean
    0 and variance q, the next layer's is factor · E[φ(z)²], and the square of a gradient is multiplied by factor ·
    E[φ′(z)²] on its way back; a residual connection adds the 1 that passes by. Source: Poole et al. 2016,
    arXiv:1606.05340, and Schoenholz et al. 2017, arXiv:1611.01232.
    """
    squares, slopes = [factor], []
    for _ in range(DEPTH - 1):
        square, slope = _moments(nonlinearity, squares[-1])
        squares.append(factor * square + residual * squares[-1])
        slopes.append(factor * slope + residual)
    back = [1.0]
    for slope in reversed(slopes):
        back.append(back[-1] * slope)
    return [math.sqrt(q) for q in squares], [math.sqrt(g) for g in reversed(back)]


def _moments(nonlinearity: str, q: float) -> tuple[float, float]:
    """E[φ(z)²] and E[φ′(z)²] for a normal z with variance q.

    By the trapezoidal rule, which for smooth functions that vanish at both ends has an error far below the last digit
    drawn. So both functions of z are made even, to be summed from 0, and reduced by what doesn't vanish.
    """
    if nonlinearity == "none":
        return q, 1.0
    if nonlinearity == "ReLU":
        return q / 2, 0.5
    step, end = min(0.25, math.sqrt(q) / 1.5), min(8 * math.sqrt(q), 12.0)
    last = 1 if nonlinearity == "tanh" and q >= 1 else 0  # what stays of tanh² for large z
    square = slope = 0.0
    for i in range(int(end / step) + 1):
        z = i * step
        weight = math.exp(-z * z / (2 * q)) * (1 if i else 0.5)
        even = _even(nonlinearity, z)
        square += weight * (even[0] - last)
        slope += weight * even[1]
    scale = 2 * step / math.sqrt(2 * math.pi * q)
    if nonlinearity == "tanh":
        return scale * square + last, scale * slope
    return q / 2 - scale * square, 0.5 - scale * slope


@lru_cache(4096)
def _even(nonlinearity: str, z: float) -> tuple[float, float]:
    """What `_moments` sums: for tanh, its square and its slope's; for GELU, how far these are below ReLU's.

    GELU is z Φ(z). Its squares at z and -z add up to z² - 2 z² Φ (1 - Φ). If its slope at z is a, that at -z is 1 - a,
    and the squares of both add up to 1 - 2 a (1 - a).
    """
    if nonlinearity == "tanh":
        t = math.tanh(z)
        return t * t, (1 - t * t) ** 2
    phi = (1 + math.erf(z / math.sqrt(2))) / 2
    a = phi + z * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return z * z * phi * (1 - phi), a * (1 - a)


@cache
def _table() -> dict[str, dict[str, dict[str, list[list[int]]]]]:
    """By nonlinearity, connections and width: rows of 1,000 · log₁₀ of stds in the layers `SHOWN`.

    First of all outputs, then of the gradients; the last one's is 0, and left out.
    """
    table: dict[str, dict[str, dict[str, list[list[int]]]]] = json.loads(
        files("course_utils.explorers").joinpath(_TABLE).read_text(encoding="utf-8")
    )
    return table


def measured(
    initializer: str, gain: float, nonlinearity: str, width: int, residual: bool
) -> tuple[list[float], list[float]]:
    """The numbers of `predict` for the layers `SHOWN`, measured in one network; from the table."""
    rows = _table()[nonlinearity]["residual" if residual else "plain"][f"{width}"]
    if nonlinearity in HOMOGENEOUS and not residual:
        scale = math.log10(_factor(initializer, gain, width)) / 2  # of the factor of one layer
        powers = [layer * scale for layer in SHOWN] + [(DEPTH - layer) * scale for layer in SHOWN]
        row = rows[0]
    else:
        powers = [0.0] * (2 * len(SHOWN))
        row = rows[list(INITIALIZERS).index(initializer) * len(GAINS) + GAINS.index(gain)]
    stds = [10 ** (value / 1_000 + power) for value, power in zip([*row, 0], powers, strict=True)]
    return stds[: len(SHOWN)], stds[len(SHOWN) :]


def _factor(initializer: str, gain: float, width: int) -> float:
    return gain**2 * INITIALIZERS[initializer](width)


def measure(factor: float, nonlinearity: str, width: int, residual: bool) -> tuple[list[float], list[float]]:
    """Measure the numbers of `predict` for the layers `SHOWN` in one network with normal weights, the same each time.

    Computes in float64, because some of these networks leave float32's range. Needs PyTorch.
    """
    import torch

    phi: dict[str, Callable[[Tensor], Tensor]] = {
        "ReLU": torch.relu,
        "tanh": torch.tanh,
        "GELU": torch.nn.functional.gelu,
        "none": torch.nn.Identity(),
    }
    data, weights, last = _numbers(width)
    std = math.sqrt(factor / width)
    outputs = [data @ weights[0] * std]
    for weight in weights[1:]:
        z = phi[nonlinearity](outputs[-1]) @ weight * std
        outputs.append(outputs[-1] + z if residual else z)
    gradients = torch.autograd.grad(outputs[-1], outputs, last)

    def rms(layers: Sequence[Tensor]) -> list[float]:
        return [layers[layer - 1].detach().square().mean().sqrt().item() for layer in SHOWN]

    back = rms(gradients)
    return rms(outputs), [each / back[-1] for each in back]


@lru_cache(1)
def _numbers(width: int) -> tuple[Tensor, Tensor, Tensor]:
    """The data, all layers' weights and the last gradient, all with a std of 1. Only the data require a gradient."""
    import torch

    generator = torch.Generator().manual_seed(0)
    shapes = ((_ROWS, width), (DEPTH, width, width), (_ROWS, width))
    data, weights, last = (torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in shapes)
    return data.requires_grad_(), weights, last


def make_table() -> str:
    """The table's text; a row for each initializer and gain, or one, for a factor of 1, where that is enough."""
    table: dict[str, dict[str, dict[str, list[list[int]]]]] = {}
    for width, name, residual in itertools.product(WIDTHS, NONLINEARITIES, (False, True)):
        factors = [_factor(initializer, gain, width) for initializer in INITIALIZERS for gain in GAINS]
        if name in HOMOGENEOUS and not residual:
            factors = [1.0]
        found = [measure(factor, name, width, residual) for factor in factors]
        rows = [[round(1_000 * math.log10(std)) for std in [*outputs, *back[:-1]]] for outputs, back in found]
        table.setdefault(name, {}).setdefault("residual" if residual else "plain", {})[f"{width}"] = rows
    return json.dumps(table, separators=(",", ":")).replace('":{"', '":{\n"').replace("]]", "]]\n") + "\n"


def show(panel: Panel, *, initializer: str, nonlinearity: str, width: int) -> Picture:
    """The outputs' scale from the first layer on, and the gradients' from the last one back, on the same axis."""
    chosen = panel.choice("initializer", list(INITIALIZERS), initializer)
    gain = panel.slider("gain", GAINS, 1.0, "{:.2f}".format)
    panel.row()
    phi = panel.choice("nonlinearity", NONLINEARITIES, nonlinearity)
    size = panel.slider("width", WIDTHS, width)
    residual = panel.switch("residual", label="residual connections")

    factor = _factor(chosen, gain, size)
    lines = predict(factor, phi, residual)
    points = measured(chosen, gain, phi, size, residual)

    narrow = panel.narrow
    drawing = Drawing(panel.width, 330 if not narrow else 418)
    places = [(48, 366, 34), (428, 746, 34)] if not narrow else [(44, 366, 34), (44, 366, 238)]
    # Outputs relative to layer 1, measured ones to the measured and predicted ones to the predicted.
    outputs = [[value / values[0] for value in values] for values in (lines[0], points[0])]
    for (left, right, top), name, (line, marks) in zip(
        places, ("outputs", "gradients"), (outputs, (lines[1], points[1])), strict=True
    ):
        x, y = Axis(1, DEPTH, left, right), Axis(1e-10, 1e10, top + (236 if not narrow else 124), top, log=True)
        _panel(drawing, name, x, y, line, marks)
    drawing.before(panel.width - 4, drawing.height - 6)

    out, back = outputs[1][-1], points[1][0]
    fates = [_fate(out), _fate(back)]
    changes = [f"× {_said(out)}", f"× {_said(back)}"]
    if fates[0] == fates[1]:
        title = f"Outputs ({changes[0]}) and gradients ({changes[1]}) {fates[0]} over {DEPTH} layers"
    else:
        title = f"Outputs {fates[0]} ({changes[0]}), gradients {fates[1]} ({changes[1]})"
    finding = (
        f"From layer 1, where it is {plain(points[0][0])}, to layer {DEPTH}, the outputs' measured std changes by a "
        f"factor of {_said(out)} (predicted: {_said(outputs[0][-1])}), {plain(out ** (1 / (DEPTH - 1)))} per layer. "
        "A gradient "
        f"with a std of 1 in the last layer has a std of {_said(back)} in layer 1 (predicted: {_said(lines[1][0])})."
    )
    finding += _apart(points, lines, size, phi in HOMOGENEOUS)
    return Picture(title, drawing, finding + _limits(points, lines))


def _panel(drawing: Drawing, name: str, x: Axis, y: Axis, line: list[float], marks: list[float]) -> None:
    """One axis of layers: the predicted line, up to where it leaves the axis, and the measured points on it."""
    drawing.rect(x.start, y(KEEPS[1]), x.end - x.start, y(KEEPS[0]) - y(KEEPS[1]), "context soft", behind=True)
    for layer in SHOWN:
        drawing.line([(x(layer), y.start), (x(layer), y.end)], "grid", width=1, behind=True)
        drawing.text(x(layer), y.start + 16, f"{layer}", anchor="middle", size=11, behind=True)
    for value in (1e-10, 1e-5, 1, 1e5, 1e10):
        drawing.line([(x.start, y(value)), (x.end, y(value))], "grid", width=1, behind=True)
        drawing.text(x.start - 6, y(value) + 4, power(value), anchor="end", size=11, behind=True)
    drawing.line([(x.start, y.end), (x.start, y.start), (x.end, y.start)], "ink", width=1, behind=True)
    drawing.text(
        (x.start + x.end) / 2, y.start + 33, "layer (line: predicted, dots: measured)", anchor="middle", behind=True
    )
    heads = {"outputs": "Outputs' std, relative to layer 1", "gradients": "Gradients' std, from the last layer back"}
    drawing.text(x.start - 40, y.end - 14, heads[name], bold=True, behind=True)
    back = name == "gradients"  # reads from right to left
    side, anchor = (x.start + 4, "start") if back else (x.end - 4, "end")  # where the line is far from the band
    for word, place in (("explode", y(KEEPS[1]) - 5), ("vanish", y(KEEPS[0]) + 13)):
        drawing.text(side, place, word, anchor=anchor, size=11, look="quiet clear", behind=True)

    path = [(x(layer), math.log10(value)) for layer, value in enumerate(line, 1)]
    if back:
        path.reverse()
    low, high = math.log10(y.low), math.log10(y.high)
    inside, gone = [path[0]], 0.0
    for (x0, v0), (x1, v1) in itertools.pairwise(path):
        if not low <= v1 <= high:
            gone = high if v1 > high else low
            inside.append((x0 + (x1 - x0) * (gone - v0) / (v1 - v0), gone))
            break
        inside.append((x1, v1))
    drawn = [(place, y(10**value)) for place, value in inside]
    drawing.line(drawn, "predicted past", width=2.5, key=f"line {name}", arrow=bool(gone))
    if gone:
        place, end = drawn[-1]
        said = f"predicted: {_said(line[0] if back else line[-1])}"
        down = 12 if gone > 0 else -6
        drawing.beside(place, end + down, said, within=(x.start, x.end), before=back, key=f"to {name}")
    for layer, value in zip(SHOWN, marks, strict=True):
        if y.low <= value <= y.high:
            tip = f"layer {layer}: {_said(value)}, measured"
            drawing.circle(x(layer), y(value), 4, "measured edged now", key=f"{name} {layer}", tip=tip)


def _fate(ratio: float) -> str:
    return "explode" if ratio > KEEPS[1] else "vanish" if ratio < KEEPS[0] else "keep their scale"


def _apart(points: Sequence[list[float]], lines: Sequence[list[float]], width: int, scale_free: bool) -> str:
    """Why the points are far from the line, if they are: a factor of three."""
    pairs = [(point, line[layer - 1]) for each, line in zip(points, lines, strict=True)
             for point, layer in zip(each, SHOWN, strict=True)]  # fmt: skip
    if all(1 / 3 < point / line < 3 for point, line in pairs if line):
        return ""
    said = (
        f" The line is for very wide networks; with {width} numbers per layer, each layer deviates a little from it, "
    )
    return said + (
        f"and over {DEPTH} layers that adds up."
        if scale_free
        else "and each deviation changes the factors of all layers after it."
    )


def _limits(points: Sequence[list[float]], lines: Sequence[list[float]]) -> str:
    """What would become of these numbers in float32, if it can't hold them."""
    values = [*points[0], *points[1], *lines[0], *lines[1]]
    said = " In float32 the largest would overflow." if max(values) > FLOAT32[1] else ""
    return said + (" In float32 the smallest would become 0." if min(values) < FLOAT32[0] else "")


def _said(value: float) -> str:
    """A number with two digits, about as many as in another network would be the same: "3.5e-8"."""
    return plain(float(f"{value:.2g}")) if 1e-3 <= value < 1e5 else re.sub(r"e\+?(-?)0?", r"e\1", f"{value:.1e}")


if __name__ == "__main__":
    Path(__file__).with_name(_TABLE).write_text(make_table(), encoding="utf-8")

"""How an initialization changes outputs and gradients through many layers, measured and predicted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import ipywidgets
import torch
from torch import Tensor, nn

from course_utils import plots
from course_utils.units import plain
from course_utils.widgets.explorer import Explorer, Picture

# The variance of a weight, times the width of the layer, which here is fan-in and fan-out alike.
INITIALIZERS: dict[str, Callable[[int], float]] = {
    "Kaiming": lambda width: 2.0,
    "LeCun = Glorot": lambda width: 1.0,
    "nn.Linear": lambda width: 1 / 3,
    "torch.randn": lambda width: float(width),
    "std 0.02, as GPT-2": lambda width: 0.02**2 * width,
}
NONLINEARITIES: dict[str, Callable[[Tensor], Tensor]] = {
    "ReLU": torch.relu,
    "tanh": torch.tanh,
    "GELU": nn.functional.gelu,
    "none": nn.Identity(),
}
WIDTHS = (32, 64, 128, 256)
GAINS = tuple(2 ** (k / 16) for k in range(-32, 33))
MOST_LAYERS = 50
_ROWS = 32


@dataclass(frozen=True)
class Depth:
    """Root mean squares by layer, from the first: of its outputs, and of the loss's gradient with respect to these."""

    outputs: list[float]
    gradients: list[float]


def explore(
    initializer: str = "LeCun = Glorot", nonlinearity: str = "ReLU", *, depth: int = 50, width: int = 128
) -> Explorer:
    """Controls for a network's initialization and architecture, above the scale at each layer.

    Args:
        initializer: a key of `INITIALIZERS`.
        nonlinearity: a key of `NONLINEARITIES`, between the layers.
        depth: 2 to `MOST_LAYERS` layers.
        width: one of `WIDTHS`.
    """
    controls = {
        "initializer": ipywidgets.Dropdown(options=list(INITIALIZERS), value=initializer, description="initializer"),
        "gain": ipywidgets.SelectionSlider(
            options=[(f"{gain:.2f}", gain) for gain in GAINS], value=1.0, description="gain"
        ),
        "nonlinearity": ipywidgets.Dropdown(
            options=list(NONLINEARITIES), value=nonlinearity, description="nonlinearity"
        ),
        "depth": ipywidgets.IntSlider(depth, 2, MOST_LAYERS, description="layers"),
        "width": ipywidgets.SelectionSlider(options=WIDTHS, value=width, description="width"),
        "residual": ipywidgets.Checkbox(False, description="residual connections", indent=False),
    }
    rows = [["initializer", "gain", "nonlinearity"], ["depth", "width", "residual"]]
    return Explorer(draw, controls, rows=rows)


def measure(depth: int, width: int, std: float, nonlinearity: str, residual: bool) -> Depth:
    """Of one network with normally distributed weights, the same each time: z₁ = x W₁, then z = [z +] φ(z) W.

    The data have std 1, and so has the gradient at the last outputs. In float64, because some of these networks leave
    float32's range.
    """
    phi = NONLINEARITIES[nonlinearity]
    data, weights, last = _numbers(width)
    with _one_thread():
        outputs = [data @ weights[0] * std]
        for weight in weights[1:depth]:
            z = phi(outputs[-1]) @ weight * std
            outputs.append(outputs[-1] + z if residual else z)
        gradients = torch.autograd.grad(outputs[-1], outputs, last)
    return Depth(*([z.detach().square().mean().sqrt().item() for z in layers] for layers in (outputs, gradients)))


def predict(depth: int, width: int, std: float, nonlinearity: str, residual: bool) -> Depth:
    """The same as a mean over many wide networks, layer by layer, from the scale of the inputs alone.

    Where z is normal with mean 0 and variance q, the next layer's is width · std² · E[φ(z)²], and the square of a
    gradient is multiplied by width · std² · E[φ′(z)²] on its way back; a residual connection adds the 1 that passes
    by. Source: Poole et al. 2016, arXiv:1606.05340, and Schoenholz et al. 2017, arXiv:1611.01232.
    """
    factor = width * std**2
    grid = torch.linspace(-8, 8, 2_000, dtype=torch.float64)  # an even number: without 0, where ReLU has its kink
    density = torch.exp(-(grid**2) / 2)
    density /= density.sum()
    squares, slopes = [factor], []
    for _ in range(depth - 1):
        z = (math.sqrt(squares[-1]) * grid).requires_grad_()
        y = NONLINEARITIES[nonlinearity](z)
        (slope,) = torch.autograd.grad(y.sum(), z)
        squares.append(factor * float(density @ y.detach() ** 2) + residual * squares[-1])
        slopes.append(factor * float(density @ slope**2) + residual)
    back = [1.0]
    for slope_square in reversed(slopes):
        back.append(back[-1] * slope_square)
    return Depth([math.sqrt(q) for q in squares], [math.sqrt(g) for g in reversed(back)])


def draw(*, initializer: str, gain: float, nonlinearity: str, depth: int, width: int, residual: bool) -> Picture:
    """Outputs and gradients by layer, measured in one network beside the prediction."""
    std = gain * math.sqrt(INITIALIZERS[initializer](width) / width)
    network = (depth, width, std, nonlinearity, residual)
    measured, predicted = measure(*network), predict(*network)
    first, last, back = measured.outputs[0], measured.outputs[-1], measured.gradients[0]
    outputs, gradients = _fate(last / first), _fate(back)
    same = outputs == gradients
    title = f"Outputs and gradients {outputs}" if same else f"Outputs {outputs}, gradients {gradients}"
    largest = torch.finfo(torch.float32).max
    out_of_range = max(measured.outputs + measured.gradients) > largest
    figure = plots.through_depth(
        {"outputs": measured.outputs, "gradients": measured.gradients},
        {"outputs": predicted.outputs, "gradients": predicted.gradients},
        ylabel="std by layer (gradient: 1 at the last)",
        title=title,
        limits={"largest float32": largest} if out_of_range else {},
    )
    finding = (
        f"The outputs' std goes from {plain(first)} in layer 1 to {plain(last)} in layer {depth} "
        f"(predicted {plain(predicted.outputs[-1])}): they {outputs}. On the way back to layer 1 a gradient of 1 "
        f"becomes {plain(back)} (predicted {plain(predicted.gradients[0])}): gradients {gradients}."
    )
    return Picture(figure, finding + (" In float32 the numbers would overflow." if out_of_range else ""))


def _fate(ratio: float) -> str:
    return "explode" if ratio > 10 else "die out" if ratio < 0.1 else "arrive"


@contextmanager
def _one_thread() -> Iterator[None]:
    """Matrices this small are done before a second thread has started; on a busy machine they would wait for it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@cache
def _numbers(width: int) -> tuple[Tensor, Tensor, Tensor]:
    """Data, weights of all layers and the last gradient; all of std 1. Data require a gradient, hence all do."""
    generator = torch.Generator().manual_seed(0)
    shapes = ((_ROWS, width), (MOST_LAYERS, width, width), (_ROWS, width))
    data, weights, last = (torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in shapes)
    return data.requires_grad_(), weights, last

"""Where gradients lie in a format's range, and how a loss scale moves them."""

from __future__ import annotations

import math
from functools import cache, partial

import ipywidgets
import torch
from torch import Tensor, nn

from course_utils import plots
from course_utils.widgets.explorer import Explorer, Picture

FORMATS = {
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float8, E5M2": torch.float8_e5m2,
    "float8, E4M3": torch.float8_e4m3fn,
}
EXPONENTS = range(-8, 41)
_DIGITS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def explore(gradients: Tensor | None = None, *, exponent: int = 0, form: str = "float16") -> Explorer:
    """Controls for a format and the power of two that multiplies the loss, above the gradients in the format's range.

    Args:
        gradients: numbers of any shape; zeros and non-finite numbers are left out. By default those of `example`.
        exponent: the initial scale's exponent, one of `EXPONENTS`.
        form: a key of `FORMATS`.

    Raises:
        ValueError: no gradient is finite and nonzero.
    """
    flat = (example() if gradients is None else gradients).detach().cpu().float().flatten()
    flat = flat[flat.isfinite() & (flat != 0)]
    if not flat.numel():
        raise ValueError("no gradient is finite and not zero: there is nothing to scale")
    controls = {
        "form": ipywidgets.Dropdown(options=list(FORMATS), value=form, description="format"),
        "exponent": ipywidgets.IntSlider(exponent, EXPONENTS[0], EXPONENTS[-1], description="log₂ of scale"),
    }
    return Explorer(partial(draw, flat), controls)


def shares(gradients: Tensor, dtype: torch.dtype) -> dict[str, float]:
    """The shares of these nonzero numbers that become zero, subnormal, normal and too large in a format."""
    info, stored = torch.finfo(dtype), gradients.to(dtype).float().abs()
    gap = 2.0 ** math.floor(math.log2(info.max)) * info.eps
    # Some formats, or releases of PyTorch, cut what is too large; up to half a gap above it is no more than rounding.
    over = ~stored.isfinite() | (gradients.abs() > info.max + gap / 2)
    lost = stored == 0
    subnormal = ~lost & (stored < info.smallest_normal)
    parts = {"zero": lost, "subnormal": subnormal, "too large": over, "normal": ~(lost | subnormal | over)}
    return {name: part.double().mean().item() for name, part in parts.items()}


def draw(gradients: Tensor, *, form: str, exponent: int) -> Picture:
    """Histograms of the gradients as they are and times 2 to the exponent, against the format's range."""
    dtype = FORMATS[form]
    scaled, scale = gradients * 2.0**exponent, "2" + f"{exponent}".translate(_DIGITS)
    share = shares(scaled, dtype)
    beyond = torch.tensor(torch.inf).to(dtype).float()
    end = f"are cut to {beyond:g}" if beyond.isfinite() else f"become {'NaN' if beyond.isnan() else 'infinite'}"
    normal = _percent(share["normal"])
    figure = plots.range_histograms(
        {"as they are": gradients, f"times {scale}": scaled},
        dtype,
        title=f"Times {scale}, {normal} of the gradients are normal numbers in {form}",
    )
    verdict = _verdict(share, cut=bool(beyond.isfinite()))
    return Picture(
        figure,
        f"Of the gradients times {scale}, {_percent(share['zero'])} become 0 in {form}, "
        f"{_percent(share['subnormal'])} are subnormal, {_percent(share['too large'])} {end} and {normal} are normal. "
        f"{verdict}",
    )


def _verdict(share: dict[str, float], *, cut: bool) -> str:
    if share["too large"] and cut:
        return "Too large: what is cut is wrong, and nothing says so."
    if share["too large"]:
        return "Too large: with a single number that is not finite the step has to be skipped."
    if share["zero"] > 0.01:
        return "Too small: what became 0 is lost to the step."
    if share["subnormal"] > 0.01:
        return "Hardly any is lost, but the subnormal ones have fewer digits: a larger scale is better."
    return "A good scale: nearly all keep all their digits, and none overflows."


def _percent(share: float) -> str:
    """A share in percent, never rounded to 0% or 100%."""
    if share in (0.0, 1.0):
        return f"{share:.0%}"
    if share < 0.001 or share > 0.999:
        return "less than 0.1%" if share < 0.5 else "more than 99.9%"
    return f"{share:.1%}"


@cache
def example() -> Tensor:
    """Gradients of a small network, from the loss of one of 4,096 microbatches; float32[16448]."""
    generator = torch.Generator().manual_seed(0)
    x = 2 * torch.rand(64, 2, generator=generator) - 1
    height = torch.sin(3 * x[:, :1]) * torch.cos(2 * x[:, 1:])
    between: list[Tensor] = []
    for fan_in, fan_out in ((2, 64), (64, 64), (64, 1)):
        weight = (torch.randn(fan_in, fan_out, generator=generator) / fan_in**0.5).requires_grad_()
        x = x @ weight
        between.append(x)
        if fan_out > 1:
            x = torch.tanh(x)
            between.append(x)
    loss = nn.functional.mse_loss(x, height) / 4_096
    return torch.cat([gradient.flatten() for gradient in torch.autograd.grad(loss, between)])

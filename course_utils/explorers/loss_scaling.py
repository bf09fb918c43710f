"""Where gradients lie in a format's range, and how a loss scale moves them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import comb
from typing import TYPE_CHECKING, Any, cast

from course_utils.explorers.drawing import Axis, Drawing, wide
from course_utils.explorers.explorer import Explorer, Panel, Picture
from course_utils.units import raised

if TYPE_CHECKING:
    from torch import Tensor

# Gradients are counted by their exponent and by the interval of their significand, from 1 to 2; each interval begins at
# one of these. A power of two changes only exponents, so the counts say exactly what scaled gradients become.
_NEXT = 2.0**-23  # from 1 to the next number in float32
EDGES = (1.0, 1.0 + _NEXT, 1.75, 1.8125 + _NEXT, 1.875, 2 - 2**-7, 2 - 2**-8, 2 - 2**-10, 2 - 2**-11)
Bins = Sequence[tuple[int, Sequence[int]]]  # exponent, and a count for each of EDGES


@dataclass(frozen=True)
class Format:
    """A format of floating-point numbers.

    Attributes:
        bits: of the mantissa.
        low, high: the smallest and the largest exponent of normal numbers.
        over: the index in `EDGES` from which numbers with the highest exponent are rounded to one that's too large.
        largest: the largest number.
    """

    bits: int
    low: int
    high: int
    over: int
    largest: str

    def kind(self, exponent: int, place: int) -> str:
        """What a number becomes by rounding to nearest, ties to even; one of `KINDS`."""
        if exponent > self.high or (exponent == self.high and place >= self.over):
            return "too large"
        if exponent >= self.low or (exponent == self.low - 1 and place >= EDGES.index(2 - 2**-self.bits)):
            return "normal"
        # Half of the smallest number, 2 to the power of low - bits, is halfway to 0, which is even.
        half = self.low - self.bits - 1
        return "zero" if exponent < half or (exponent == half and place == 0) else "subnormal"


FORMATS = {
    "float16": Format(10, -14, 15, EDGES.index(2 - 2**-11), "65,504"),
    "bfloat16": Format(7, -126, 127, EDGES.index(2 - 2**-8), "3.39e38"),
    "float8, E5M2": Format(2, -14, 15, EDGES.index(1.875), "57,344"),
    "float8, E4M3": Format(3, -6, 8, EDGES.index(1.8125 + _NEXT), "448"),
}
KINDS = {"zero": "become 0", "subnormal": "subnormal", "normal": "normal", "too large": "too large"}
_LOOKS = {"zero": "none edged", "subnormal": "data soft edged", "normal": "data edged", "too large": "highlight edged"}
_LIMITS = {"too large": 0.0, "zero": 0.01, "subnormal": 0.01}  # fractions that do no harm
_PATTERNS = {"zero": "2 2", "too large": "6 2"}  # of their edges
SCALES = list(range(-8, 41))
_LEFT, _RIGHT = -52, 24  # exponents on the axis


def explore(
    gradients: Tensor | Bins | None = None, *, exponent: int = 0, form: str = "float16", cut: bool | None = None
) -> Explorer:
    """Controls for a format and the power of two that multiplies the loss, above the gradients in the format's range.

    Args:
        gradients: numbers of any shape, taken as float32; zeros and non-finite numbers are left out. Or `counts` of
            them. By default, made-up gradients with a bell-shaped histogram.
        exponent: the initial scale's exponent, one of `SCALES`.
        form: a key of `FORMATS`.
        cut: whether conversion to E4M3, which has no infinity, replaces larger numbers by its largest one; otherwise
            they become NaN. None does as the installed PyTorch does (releases differ) if the gradients are a tensor.

    Raises:
        ValueError: no gradient is finite and nonzero.
    """
    if gradients is None:
        gradients = _bell()
    elif hasattr(gradients, "detach"):
        import torch

        if cut is None:
            cut = bool(torch.tensor(torch.inf).to(torch.float8_e4m3fn).float().isfinite())
        gradients = counts(cast("Tensor", gradients))
    if not gradients:
        raise ValueError("no gradient is finite and not zero: there is nothing to scale")
    rows = [[e, list(row)] for e, row in gradients]
    arguments: dict[str, Any] = {"gradients": rows, "exponent": exponent, "form": form, "cut": cut is not False}
    return Explorer("loss_scaling", partial(show, **arguments), arguments)


def counts(gradients: Tensor) -> list[tuple[int, list[int]]]:
    """The finite nonzero numbers, counted by exponent and by the interval between `EDGES`."""
    import torch

    flat = gradients.detach().cpu().float().flatten().abs()
    mantissas, exponents = torch.frexp(flat[flat.isfinite() & (flat != 0)])
    places = torch.bucketize(2 * mantissas, torch.tensor(EDGES), right=True) - 1
    found: dict[int, list[int]] = {}
    keys, numbers = torch.unique(len(EDGES) * (exponents.long() - 1) + places, return_counts=True)
    for key, number in zip(keys.tolist(), numbers.tolist(), strict=True):
        found.setdefault(key // len(EDGES), [0] * len(EDGES))[key % len(EDGES)] = number
    return sorted(found.items())


def _bell() -> list[tuple[int, list[int]]]:
    """Exponents like those of a small network's gradients, and significands spread evenly."""
    spread = [0, 1536, 128, 128, 240, 8, 6, 1, 1]
    return [(i - 36, [comb(16, i) * share for share in spread]) for i in range(17)]


def by_kind(gradients: Bins, form: str, scale: int) -> dict[int, dict[str, int]]:
    """What the gradients times 2 to the power ``scale`` become in a format: their numbers, by exponent and by kind."""
    found: dict[int, dict[str, int]] = {}
    for exponent, row in gradients:
        kinds = found.setdefault(exponent + scale, dict.fromkeys(KINDS, 0))
        for place, number in enumerate(row):
            if number:
                kinds[FORMATS[form].kind(exponent + scale, place)] += number
    return found


def shares(gradients: Bins, form: str, scale: int) -> dict[str, float]:
    """The fractions of the gradients that become zero, subnormal, normal and too large."""
    bins, total = by_kind(gradients, form, scale), sum(sum(row) for _, row in gradients)
    return {kind: sum(kinds[kind] for kinds in bins.values()) / total for kind in KINDS}


def show(panel: Panel, *, gradients: Bins, exponent: int, form: str, cut: bool) -> Picture:
    """A histogram by powers of two: the gradients as they are, and scaled, against the format's range."""
    chosen = panel.choice("form", list(FORMATS), form, label="format")
    scale = panel.slider("scale", SCALES, exponent, _two, label="loss times", play=300)
    place = panel.dragged("shift")

    narrow, width = panel.narrow, panel.width
    x = Axis(_LEFT, _RIGHT, 44, width - 16)
    total = sum(sum(row) for _, row in gradients)
    tallest, mode = max((sum(row) / total, e) for e, row in gradients)
    y = Axis(0, 1.2 * tallest, 272 if not narrow else 284, 72 if not narrow else 86)
    if place:
        scale = min(SCALES, key=lambda each: abs(mode + 0.5 + each - x.value(place[0])))
        panel.put("scale", _two(scale))

    drawing = Drawing(width, y.start + 42)
    _frame(drawing, x, y, chosen, narrow)
    drawing.line(_outline(gradients, x, y, total), "ink", width=1, behind=True)
    beyond = {"left": 0, "right": 0}
    for e, kinds in by_kind(gradients, chosen, scale).items():
        if not _LEFT <= e < _RIGHT:
            beyond["left" if e < _LEFT else "right"] += sum(kinds.values())
            continue
        below = 0
        for kind, number in kinds.items():
            if number:
                top, foot = y((below + number) / total), y(below / total)
                tip = f"{number:,} between {_two(e)} and {_two(e + 1)}: {kind}"
                bar = (x(e) + 0.5, top, x(e + 1) - x(e) - 1, foot - top)
                drawing.rect(*bar, _LOOKS[kind], key=f"{e - scale} {kind}", tip=tip, pattern=_PATTERNS.get(kind, ""))
                below += number

    share = shares(gradients, chosen, scale)
    _legend(drawing, share, narrow)
    if scale and _LEFT <= mode < _RIGHT:
        _label(drawing, x, x(mode + 0.5), y(tallest) - 6, "unscaled", "quiet")
    if _LEFT <= mode + scale < _RIGHT:
        _label(drawing, x, x(mode + scale + 0.5), y(tallest) - 20, f"times {_two(scale)}", "ink", bold=True)
    if beyond["left"]:
        drawing.line([(x.start + 14, y.start - 10), (x.start + 2, y.start - 10)], arrow=True, key="to the left")
        drawing.text(x.start + 18, y.start - 6, _percent(beyond["left"] / total), size=11, key="left")
    if beyond["right"]:
        drawing.line([(x.end - 14, y.start - 10), (x.end - 2, y.start - 10)], arrow=True, key="to the right")
        drawing.text(x.end - 18, y.start - 6, _percent(beyond["right"] / total), anchor="end", size=11, key="right")
    drawing.handle(
        x(mode + scale + 0.5), y.start, sets="shift", within=(x.start, y.end, x.end, y.start), label="drag: the scale"
    )

    said = {kind: _percent(each) for kind, each in share.items()}
    worst = next((kind for kind in ("too large", "zero", "subnormal") if share[kind] > _LIMITS[kind]), "normal")
    words = {"too large": "are too large for", "zero": "become 0 in", "subnormal": "are subnormal in"}
    title = f"At {_two(scale)}, {_short(share[worst])} of the gradients {words.get(worst, 'are normal in')} {chosen}"
    end = "become infinite"
    if chosen == "float8, E4M3":
        end = f"become {FORMATS[chosen].largest}" if cut else "become NaN"
    finding = (
        f"Of the gradients times {_two(scale)}, {said['zero']} become 0 in {chosen}, {said['subnormal']} are "
        f"subnormal, {said['too large']} {end} and {said['normal']} are normal. "
    )
    return Picture(title, drawing, finding + _verdict(share, cut=cut and chosen == "float8, E4M3"))


def _frame(drawing: Drawing, x: Axis, y: Axis, name: str, narrow: bool) -> None:
    """Both axes, and above them the format's range: where its numbers are subnormal and normal."""
    every, form = 8 if not narrow else 16, FORMATS[name]
    for e in range(-(-_LEFT // every) * every, _RIGHT + 1, every):
        drawing.line([(x(e), y.start), (x(e), y.start + 4)], "ink", width=1, behind=True)
        drawing.text(x(e), y.start + 20, _two(e), anchor="middle", size=11, behind=True)
    for value in y.ticks(5):
        drawing.line([(x.start, y(value)), (x.end, y(value))], "grid", width=1, behind=True)
        drawing.text(x.start - 6, y(value) + 4, f"{100 * value:.3g}%", anchor="end", size=11, behind=True)
    drawing.line([(x.start, y.start), (x.end, y.start)], "ink", width=1, behind=True)
    drawing.text((x.start + x.end) / 2, y.start + 38, "size of a gradient", anchor="middle", behind=True)
    strip = y.end - 22
    drawing.text(
        x.start, strip - 6, f"{name}: normal numbers from {_two(form.low)} to {form.largest}", size=11, behind=True
    )
    half = form.low - form.bits - 1
    ends = [_LEFT, half, form.low, form.high + 1, _RIGHT]
    for kind, low, high in zip(KINDS, ends, ends[1:], strict=False):
        low, high = max(low, _LEFT), min(high, _RIGHT)
        if low < high:
            drawing.rect(
                x(low), strip, x(high) - x(low), 12, _LOOKS[kind], behind=True, pattern=_PATTERNS.get(kind, "")
            )
            if low > _LEFT:
                drawing.line([(x(low), strip + 12), (x(low), y.start)], "ink", width=1, dashes="4 3", behind=True)


def _legend(drawing: Drawing, share: dict[str, float], narrow: bool) -> None:
    """A legend of the four kinds, with the fraction of each, at fixed places."""
    for place, (kind, words) in enumerate(KINDS.items()):
        left, top = (44 + 176 * place, 4) if not narrow else (4 + 188 * (place % 2), 4 + 18 * (place // 2))
        drawing.rect(left, top, 12, 12, _LOOKS[kind], behind=True, pattern=_PATTERNS.get(kind, ""))
        drawing.text(left + 18, top + 10, f"{words}: {_short(share[kind])}", bold=True, key=f"share {kind}")


def _label(drawing: Drawing, x: Axis, place: float, top: float, text: str, look: str, *, bold: bool = False) -> None:
    """Text above a place, moved inward if it would stick out."""
    half = wide(text) / 2
    place = min(max(place, x.start + half), x.end - half)
    drawing.rect(place - half - 2, top - 11, 2 * half + 4, 14, "paper", key=f"under {text.split()[0]}")
    drawing.text(place, top, text, anchor="middle", look=look, bold=bold, key=text.split()[0])


def _outline(gradients: Bins, x: Axis, y: Axis, total: int) -> list[tuple[float, float]]:
    """The histogram of the gradients as they are, as a line."""
    heights = {e: sum(row) / total for e, row in gradients}
    line, last = [(x(_LEFT), y(0))], 0.0
    for e in range(_LEFT, _RIGHT + 1):
        height = heights.get(e, 0.0) if e < _RIGHT else 0.0
        if height != last:
            line += [(x(e), y(last)), (x(e), y(height))]
        last = height
    return line


def _verdict(share: dict[str, float], *, cut: bool) -> str:
    if share["too large"] and cut:
        return "Too large: the clipped gradients are wrong, and nothing warns you."
    if share["too large"]:
        return "Too large: a single non-finite gradient means that this step has to be skipped."
    if share["zero"] > _LIMITS["zero"]:
        return "Too small: gradients that became 0 contribute nothing to the step."
    if share["subnormal"] > _LIMITS["subnormal"]:
        return "Hardly any gradients are lost, but subnormal ones have fewer digits: a larger scale is better."
    return "A good scale: nearly all gradients keep all their digits, and none overflow."


def _percent(share: float) -> str:
    """A fraction in percent, never rounded to 0% or 100%."""
    if share in (0.0, 1.0):
        return f"{share:.0%}"
    if share < 0.001 or share > 0.999:
        return "less than 0.1%" if share < 0.5 else "more than 99.9%"
    return f"{share:.1%}"


def _short(share: float) -> str:
    return _percent(share).replace("less than ", "<").replace("more than ", ">")


def _two(exponent: int) -> str:
    return f"2{raised(exponent)}"

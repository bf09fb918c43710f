"""One matrix multiplication under a card's roofline: what limits it, and the least time it takes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from course_utils.explorers.drawing import Axis, Drawing, axes, power, wide
from course_utils.explorers.explorer import Explorer, Panel, Picture
from course_utils.flops import arithmetic_intensity, attainable_flops
from course_utils.hardware import ACCELERATORS, Accelerator, dtype_bytes
from course_utils.units import readable

SIZES: list[int] = [2**k for k in range(16)]
_NAMES = {"tf32": "float32 on tensor cores (tf32)"}


def explore(
    measured: Sequence[tuple[str, float, float]] = (),
    *,
    card: str | Accelerator | Mapping[str, Any] = "H100 SXM",
    m: int = 64,
    k: int = 8_192,
    n: int = 8_192,
) -> Explorer:
    """Controls for card, dtype and the sizes of ``[m, k] @ [k, n]``, above the roofline with this product on it.

    Args:
        measured: ``(label, intensity in FLOP/B, FLOP/s)``, measured on the initial card; under another card's roof they
            are faint and have no labels.
        card: the initial card: a key of `hardware.ACCELERATORS`, or your own card, which then heads the list; also as
            a mapping with its ``name``, its ``peak`` FLOP/s by dtype, and its ``bandwidth`` in B/s.
        m, k, n: the initial sizes, powers of two up to 32,768.
    """
    if isinstance(card, Accelerator):
        peak = {f"{dtype}".removeprefix("torch."): rate for dtype, rate in card.peak.items()}
        card = {"name": card.name, "peak": peak, "bandwidth": card.bandwidth}
    arguments: dict[str, Any] = {"measured": [list(each) for each in measured], "card": card, "m": m, "k": k, "n": n}
    return Explorer("roofline", partial(show, **arguments), arguments)


def show(
    panel: Panel, *, measured: list[tuple[str, float, float]], card: str | Mapping[str, Any], m: int, k: int, n: int
) -> Picture:
    """The card's roofline, with ``[m, k] @ [k, n]`` on it if each matrix is moved once."""
    cards: dict[str, tuple[Mapping[Any, float], float]]
    cards = {name: (known.peak, known.bandwidth) for name, known in ACCELERATORS.items()}
    if isinstance(card, str):
        first = card
    else:
        first = card["name"]
        cards = {first: (card["peak"], card["bandwidth"])} | cards
    sizes = []
    for name, value in {"m": m, "k": k, "n": n}.items():
        sizes.append(panel.slider(name, SIZES, value, "{:,}".format))
    panel.row()
    chosen = panel.choice("card", list(cards), first)
    peaks, bandwidth = cards[chosen]
    dtype = panel.choice("dtype", {_NAMES.get(d, d): d for d in map(str, peaks)}, "bfloat16")
    place = panel.dragged("point")

    left, right, width = 58.0, panel.width - 16.0, panel.width
    height = 320.0 if not panel.narrow else 300.0
    x = Axis(0.01, 1e5, left, right, log=True)
    # As low as a slow machine's memory and measurements: what's drawn at the edge instead would be untrue.
    least = min(
        [1e9, *(reached for *_, reached in measured if reached > 0), *(x.low * rate for _, rate in cards.values())]
    )
    y = Axis(10.0 ** math.floor(math.log10(least)), 1e16, height - 44, 22, log=True)
    if place:
        # k and n stay as they are: m follows from the intensity to which the point was dragged.
        sizes[0] = _rows(x.value(place[0]), sizes[1], sizes[2], dtype_bytes(dtype))
        panel.put("m", f"{sizes[0]:,}")
    rows, inner, columns = sizes
    elements = rows * inner + inner * columns + rows * columns
    work, moved = 2 * rows * inner * columns, dtype_bytes(dtype) * elements
    intensity, peak = arithmetic_intensity(work, moved), peaks[dtype]
    rate = attainable_flops(intensity, peak, bandwidth)
    ridge = peak / bandwidth

    drawing = Drawing(width, height)
    axes(
        drawing, x, y, xlabel="arithmetic intensity, FLOP/B", ylabel="FLOP/s",
        xwords=power, ywords=power,
    )  # fmt: skip
    drawing.before(right, y.end + 11, words="faint: before")
    dots = [(x(at), y(reached)) for _, at, reached in measured]
    here = "measured edged" if chosen == first else "context soft"
    zones = {}
    for low, high, look, label in ((x.low, ridge, "data", "memory-bound"), (ridge, x.high, "compute", "compute-bound")):
        drawing.line([(x(v), y(min(peak, v * bandwidth))) for v in (low, high)], look, width=3, key=f"roof {label}")
        room = x(high) - x(low) - wide(label) - 10
        if room > 0:
            covered = [across for across, down in dots if down > y.start - 24]
            spots = [(x(low) + x(high) + side * room) / 2 for side in (0, 1, -1)]
            free = (spot for spot in spots if all(abs(spot - each) > wide(label) / 2 + 6 for each in covered))
            if (spot := next(free, None)) is not None:
                zones[label] = spot
    drawing.line([(x(ridge), y(peak)), (x(ridge), y.start)], "context", width=1, dashes="3 4", key="ridge")
    drawing.line([(x(intensity), y(rate)), (x(intensity), y.start)], "highlight", width=1, key="drop")
    for label, spot in zones.items():
        drawing.text(spot, y.start - 6, label, anchor="middle", look="quiet clear", key=f"zone {label}")
    drawing.text(x(ridge) + 4, y(peak) - 8, f"{readable(peak, 'FLOP/s')}", anchor="end", key="peak")
    for (label, _, reached), (across, down) in zip(measured, dots, strict=True):
        drawing.circle(across, down, 5, here, tip=f"{label}: {readable(reached, 'FLOP/s')} measured")
    grid = [left + (right - left) * i / 80 for i in range(81)]
    roof = [(across, y(min(peak, x.value(across) * bandwidth))) for across in grid]
    avoid = [(px - r, py - r, px + r, py + r) for places, r in ((dots, 8), (roof, 9)) for px, py in places]
    if chosen == first:
        for (label, *_), (across, down) in zip(measured, dots, strict=True):
            drawing.label(across, down, label, within=(left + 3, y.end, right, y.start - 2), avoid=avoid)
    if measured:
        said = f"dots: measured on {first}" + ", not on this card" * (chosen != first)
        drawing.text(right, 12, said, anchor="end", size=11, key="measured")
    drawing.handle(
        x(intensity), y(rate), sets="point", within=(left, 0, right, height), label="drag along the roof: m follows"
    )

    promised = chosen in ACCELERATORS  # your own card's promised peak isn't known here
    flat = "the peak" if promised else "what the flat roof allows"
    bound = intensity < ridge
    share = f"{rate / peak:.2g}" if rate < 0.01 * peak else f"{rate / peak:.0%}"
    product = f"[{rows:,}, {inner:,}] @ [{inner:,}, {columns:,}]"
    limited = "memory-bound" if bound else "compute-bound"
    reach = f"{share} of {flat}" if bound else flat
    title = f"{limited.capitalize()} on {chosen}: at best {readable(rate, 'FLOP/s')}, and {readable(work / rate, 's')}"
    finding = (
        f"{product} in {_NAMES.get(dtype, dtype)} has an intensity of {readable(intensity, 'FLOP/B')}, and the ridge "
        f"point is at {readable(ridge, 'FLOP/B')}: {limited} on {chosen}. At best it reaches "
        f"{readable(rate, 'FLOP/s')} ({reach}) and takes {readable(work / rate, 's')}."
    )
    return Picture(title, drawing, finding)


def _rows(intensity: float, k: int, n: int, size: float) -> int:
    """The m of `SIZES` whose product ``[m, k] @ [k, n]`` comes closest to an intensity."""

    def away(m: int) -> float:
        return abs(math.log(arithmetic_intensity(2 * m * k * n, size * (m * k + k * n + m * n)) / intensity))

    return min(SIZES, key=away)

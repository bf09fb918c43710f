"""One matrix multiplication under a card's roofline: what limits it, and the least time it takes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import ipywidgets

from course_utils import plots
from course_utils.flops import arithmetic_intensity, attainable_flops
from course_utils.hardware import ACCELERATORS, Accelerator, dtype_bytes
from course_utils.units import readable
from course_utils.widgets.explorer import Explorer, Picture

SIZES = [2**k for k in range(16)]
_NAMES = {"tf32": "float32 on tensor cores (tf32)"}


def explore(
    measured: Sequence[tuple[str, float, float]] = (),
    *,
    card: str | Accelerator = "H100 SXM",
    m: int = 64,
    k: int = 8_192,
    n: int = 8_192,
) -> Explorer:
    """Controls for card, dtype and the sizes of ``[m, k] @ [k, n]``, above the roofline with this product on it.

    Args:
        measured: ``(label, intensity in FLOP/B, FLOP/s)``, always drawn, whatever the controls say.
        card: the initial card: a key of `hardware.ACCELERATORS`, or your own card, which then heads the list.
        m, k, n: the initial sizes, powers of two up to 32,768.
    """
    cards = dict(ACCELERATORS)
    if isinstance(card, Accelerator):
        cards = {card.name: card} | cards
        card = card.name
    chosen = ipywidgets.Dropdown(options=list(cards), value=card, description="card")
    dtype = ipywidgets.Dropdown(options=_dtypes(cards[card]), description="dtype")
    dtype.value = "bfloat16" if "bfloat16" in cards[card].peak else dtype.value

    def offer(_: object) -> None:
        """Offer only the dtypes for which the card promises a rate."""
        before = dtype.value
        dtype.options = _dtypes(cards[chosen.value])
        if before in cards[chosen.value].peak:
            dtype.value = before

    chosen.observe(offer, "value")
    sizes = {
        name: ipywidgets.SelectionSlider(options=[(f"{s:,}", s) for s in SIZES], value=size, description=name)
        for name, size in {"m": m, "k": k, "n": n}.items()
    }
    rows = [["m", "k", "n"], ["card", "dtype"]]
    return Explorer(partial(draw, cards, list(measured)), {"card": chosen, "dtype": dtype, **sizes}, rows=rows)


def draw(
    cards: dict[str, Accelerator],
    measured: Sequence[tuple[str, float, float]],
    *,
    card: str,
    dtype: str,
    m: int,
    k: int,
    n: int,
) -> Picture:
    """The card's roofline, with ``[m, k] @ [k, n]`` on it if each matrix is moved once."""
    name = _name(dtype)
    size = dtype_bytes(dtype)
    x, w, y = m * k, k * n, m * n  # elements
    work, moved = 2 * x * n, size * (x + w + y)
    intensity = arithmetic_intensity(work, moved)
    peak, bandwidth = cards[card].peak[dtype], cards[card].bandwidth
    rate = attainable_flops(intensity, peak, bandwidth)
    promised = card in ACCELERATORS  # what is promised of a card of your own is not known here
    memory_bound = intensity * bandwidth < peak
    limited = "memory-bound" if memory_bound else "compute-bound"
    product = f"[{m:,}, {k:,}] @ [{k:,}, {n:,}]"
    figure = plots.roofline(
        peak,
        bandwidth,
        measured,
        predicted=[("this product", intensity, rate)],
        peak_label=f"{name} peak, dense" if promised else f"{name} roof",
        title=f"{product} is {limited} on {card}",
    )
    share = f"{rate / peak:.2g}" if rate < 0.01 * peak else f"{rate / peak:.0%}"
    ridge = f"the ridge point is at {readable(peak / bandwidth, 'FLOP/B')}"
    flat = "the peak" if promised else "the roof"
    limit = f"{share} of {flat}" if memory_bound else flat
    return Picture(
        figure,
        f"{product} in {name} does {readable(intensity, 'FLOP/B')}, and {ridge}: {limited} on {card}. "
        f"At best it reaches {readable(rate, 'FLOP/s')}, {limit}, and takes {readable(work / rate, 's')}.",
    )


def _name(dtype: str) -> str:
    return _NAMES.get(dtype, dtype)


def _dtypes(card: Accelerator) -> list[tuple[str, str]]:
    return [(_name(str(dtype)), str(dtype)) for dtype in card.peak]

"""Decode throughput against the batch: what a second sequence costs, and where memory or FLOPs end the gain."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from course_utils.cards import ACCELERATORS
from course_utils.explorers.drawing import Axis, Drawing, axes, curve, power, wide
from course_utils.explorers.explorer import Explorer, Impossible, Panel, Picture
from course_utils.napkin.inference import FORMATS, Serving, decode_seconds, largest_batch
from course_utils.napkin.models import PUBLISHED
from course_utils.units import counted, readable

BATCHES = [2**k for k in range(13)]
CONTEXTS = [2**k for k in range(8, 18)]
_CARDS = [1, 2, 4, 8]
_HEIGHT = 320.0


def explore(model: str = "Llama 3.1 8B", card: str = "H100 SXM", *, batch: int = 8, context: int = 2_048) -> Explorer:
    """Controls for a model, a card, batch and context, above tokens per second against the batch.

    Args:
        model: a key of `napkin.PUBLISHED`.
        card: a key of `hardware.ACCELERATORS`.
        batch: sequences that are generated together, a power of two up to 4,096.
        context: tokens that each has, a power of two from 256 to 131,072.
    """
    arguments = {"model": model, "card": card, "batch": batch, "context": context}
    return Explorer("decoding", partial(show, first=arguments), arguments)


def show(panel: Panel, *, first: Mapping[str, Any]) -> Picture:
    """Tokens per second of all sequences together, and what limits them."""
    name = panel.choice("model", tuple(PUBLISHED), str(first["model"]))
    card = panel.choice("card", tuple(ACCELERATORS), str(first["card"]))
    cards = panel.slider("cards", _CARDS, 1)
    panel.row()
    batch = panel.slider("batch", BATCHES, int(first["batch"]), "{:,}".format)
    context = panel.slider("context", CONTEXTS, int(first["context"]), "{:,}".format)
    panel.row()
    weights = panel.choice("weights", tuple(FORMATS), "bfloat16")
    cache = panel.choice("cache", tuple(FORMATS), "bfloat16")
    place = panel.dragged("point")

    left, right = 46.0, panel.width - 16.0
    x = Axis(1, BATCHES[-1], left, right, log=True)
    y = Axis(1, 1e7, _HEIGHT - 44, 22, log=True)
    if place:
        batch = x.nearest(BATCHES, place[0])
        panel.put("batch", f"{batch:,}")

    model, accelerator = PUBLISHED[name].reaching(context), ACCELERATORS[card]
    number, of_cache = FORMATS[weights], FORMATS[cache]

    def seconds(sequences: int) -> float:
        found = decode_seconds(model, accelerator, context, sequences, number=number, cache=of_cache, cards=cards)
        return float(found)

    serving = Serving(batch, context, 1, weights, cache, cards)
    most = largest_batch(model, serving, accelerator.memory_bytes or 0)
    try:
        step, alone = seconds(batch), seconds(1)
    except ValueError as error:
        raise Impossible(f"{error}: choose fewer cards, or another kind of card", "cards") from None
    rate = batch / step

    drawing = Drawing(panel.width, _HEIGHT)
    axes(
        drawing, x, y, xlabel="sequences generated together (batch)", ylabel="tokens/s, all sequences together",
        xwords="{:,.0f}".format, ywords=power, xticks=BATCHES[:: 4 if panel.narrow else 2],
    )  # fmt: skip
    if most < BATCHES[-1]:
        edge = x(max(most, 1))
        drawing.rect(edge, y.end, right - edge, y.start - y.end, "context soft", key="no room")
        said = "no room for weights and caches"
        said = said if right - edge > wide(said) + 8 else "no room"
        if right - edge > wide(said) + 8:
            drawing.text((edge + right) / 2, y.start - 8, said, anchor="middle", look="quiet", key="no room text")
    free = curve(x, y, [(b, b / alone) for b in (1, BATCHES[-1])])
    if free:
        drawing.line(free, "context", width=1.5, dashes="3 4", key="free")
    label = BATCHES[-3] if panel.narrow else BATCHES[-2]
    drawing.text(
        x(label), max(y(label / alone) - 8, y.end + 12), "if more sequences cost nothing", anchor="end",
        look="quiet clear", key="free text",
    )  # fmt: skip
    reached = curve(x, y, [(b, b / seconds(b)) for b in BATCHES])
    if reached:
        drawing.line(reached, "data", width=3, key="rate")
    drawing.line([(x(batch), y(rate)), (x(batch), y.start)], "highlight", width=1, key="drop")
    if not y.low <= rate <= y.high:  # off the axis, and which way
        tip = y(rate) + (14 if rate < y.low else -18)
        drawing.line([(x(batch), y(rate)), (x(batch), tip)], "highlight", arrow=True, key="off")
    drawing.handle(x(batch), y(rate), sets="point", within=(left, 0, right, _HEIGHT), label="drag to another batch")

    fits = batch <= most
    title = f"{counted(rate)} tokens/s in all, {counted(1 / step)} for each sequence"
    title = title if fits else f"{batch:,} sequences don't fit: memory has room for {most:,}"
    gain = f"{batch:,} sequences get {rate * alone:.3g} times the tokens/s of one"
    finding = (
        f"{name} on {cards} × {card}: a token takes {readable(step, 's')}, or {readable(alone, 's')} with one "
        f"sequence; {gain}. Memory has room for {most:,} sequences of {context:,} tokens."
    )
    if not fits:
        finding += " Narrower weights or caches, a shorter context or more cards would make room."
    return Picture(title, drawing, finding)

"""ZeRO's stages: what each card holds of parameters, gradients and optimizer state, for any number of cards."""

from __future__ import annotations

from functools import partial
from typing import Any

from course_utils import napkin
from course_utils.cards import ACCELERATORS
from course_utils.explorers.drawing import Axis, Drawing, axes, wide
from course_utils.explorers.explorer import Explorer, Panel, Picture
from course_utils.units import readable

CARDS = [2**k for k in range(11)]
MODELS = [name for name, model in napkin.PUBLISHED.items() if model.parameters > 5e9]  # smaller ones fit on any card
# Each with its look, and with the first stage that divides it.
KINDS = {"optimizer state": ("measured", 1), "gradients": ("compute", 2), "parameters": ("data soft", 3)}


def explore(model: str = "Llama 3.1 8B", card: str = "H100 SXM", cards: int = 8) -> Explorer:
    """Controls for the model, the card and the number of cards, above what each card holds at the four stages.

    Args:
        model: the initial model, a key of `napkin.PUBLISHED`.
        card: the initial card, a key of `cards.ACCELERATORS`.
        cards: the initial number of cards, a power of two up to 1,024.
    """
    arguments: dict[str, Any] = {"model": model, "card": card, "cards": cards}
    return Explorer("sharding", partial(show, **arguments), arguments)


def held(model: str, cards: int, stage: int) -> dict[str, int]:
    """Bytes on each card by kind, without activations; the float32 master copy is part of the optimizer state."""
    found = napkin.memory(napkin.PUBLISHED[model], napkin.Step(batch=1, context=1, cards=cards, zero=stage))
    found["optimizer state"] += found["master copy"]
    return {kind: found[kind] for kind in KINDS}


def show(panel: Panel, *, model: str, card: str, cards: int) -> Picture:
    """A stack for each stage against the card's memory, and the same numbers below it."""
    cards = panel.slider("cards", CARDS, cards, "{:,}".format)
    panel.row()
    model = panel.choice("model", MODELS, model)
    memories = {name: known.memory_bytes for name, known in ACCELERATORS.items() if known.memory_bytes}
    card = panel.choice("card", list(memories), card)
    memory = memories[card]
    zoomed = panel.switch("zoom", label="zoom to the card's memory")
    stages = {stage: held(model, cards, stage) for stage in napkin.SHARDED}
    totals = {stage: sum(kinds.values()) for stage, kinds in stages.items()}

    narrow = panel.narrow
    left, right, slot = (78.0, 378.0, 75.0) if narrow else (130.0, 750.0, 155.0)
    drawing = Drawing(panel.width, 328)
    # The same for any number of cards: stage 0 divides nothing.
    y = Axis(0, 1.5 * memory if zoomed else 1.06 * max(totals[0], memory), 212, 30)
    axes(
        drawing, Axis(0, 1, left, right), y, xlabel="", xwords=str, xticks=[],
        ylabel="bytes on each card" if narrow else "bytes on each card, without activations",
        ywords=lambda value: readable(value, "B"), yticks=y.ticks(6),
    )  # fmt: skip
    rows = {kind: 250 + 18.0 * row for row, kind in enumerate(KINDS)}
    for kind, (look, _) in KINDS.items():
        drawing.rect(4, rows[kind] - 10, 11, 11, f"{look} edged", behind=True)
        drawing.text(20, rows[kind], kind.split()[-1] if narrow else kind, size=11, behind=True)
    drawing.text(20, 306, "together", bold=True, size=11, behind=True)
    for stage, kinds in stages.items():
        middle, broad = left + slot * (stage + 0.5), 0.44 * slot
        drawing.text(middle, 231, f"ZeRO {stage}" if stage else "no ZeRO", anchor="middle", bold=True, behind=True)
        base = 0.0
        for kind, (look, first) in reversed(KINDS.items()):
            top, words = base + kinds[kind], readable(kinds[kind], "B")
            drawing.rect(
                middle - broad / 2, y(top), broad, y(base) - y(top), f"{look} edged", key=f"{kind} {stage}",
                tip=f"{kind}: {words}",
            )  # fmt: skip
            divided = f" (÷ {cards:,})" if stage >= first and cards > 1 and not narrow else ""
            drawing.text(middle, rows[kind], words + divided, anchor="middle", size=11)
            base = top
        if base > y.high:  # the top of what's cut off is torn
            start, end = middle - broad / 2 - 1, middle + broad / 2 + 1
            edge = [(start + (end - start) * step / 8, y.end + 7 - 4 * (-1) ** step) for step in range(9)]
            drawing.area([(start, y.end - 2), *edge, (end, y.end - 2)], "paper")
            drawing.line(edge, width=1)
        sign = "✓" if base <= memory else "✗"
        drawing.text(middle, 306, f"{readable(base, 'B')} {sign}", anchor="middle", size=11, bold=True)
    drawing.line([(left, y(memory)), (right, y(memory))], "highlight", width=2, dashes="6 3", key="memory")
    said = f"memory of {card}: {readable(memory, 'B')}"
    said = said.removeprefix("memory of ") if narrow else said
    drawing.text(right, 16, said, anchor="end", size=11, behind=True)
    x = right - 1.08 * wide(said, 11) - 8
    drawing.line([(x - 24, 12), (x, 12)], "highlight", width=2, dashes="6 3", behind=True)

    drawing.before(right, 326, words="faint: before")

    fitting = [stage for stage, total in totals.items() if total <= memory]
    of_cards = f"{f'each of {cards:,} cards' if cards > 1 else 'a card'} of {readable(memory, 'B')}"
    if not fitting:
        title = f"{model} doesn't fit at any stage: at best {readable(totals[3], 'B')} on {of_cards}"
    else:
        how = {0: "without ZeRO", 3: "only with ZeRO 3"}.get(fitting[0], f"with ZeRO {fitting[0]} or higher")
        title = f"{model} fits {how}: {readable(totals[fitting[0]], 'B')} on {of_cards}"
    gradients, parameters = stages[0]["gradients"], stages[0]["parameters"]
    each = f": {cards:,} cards hold {readable(totals[3], 'B')} each" if cards > 1 else ""
    finding = (
        f"However many cards there are, ZeRO 1 leaves at least {readable(parameters + gradients, 'B')} on each, and "
        f"ZeRO 2 at least {readable(parameters, 'B')}. Only ZeRO 3 divides everything{each}. "
        "Activations aren't counted."
    )
    return Picture(title, drawing, finding)

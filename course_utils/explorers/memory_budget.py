"""What a card has to hold in a training step, against its memory, and beside other settings that were pinned."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from course_utils import napkin
from course_utils.cards import ACCELERATORS
from course_utils.explorers.drawing import Axis, Drawing
from course_utils.explorers.explorer import Explorer, Panel, Picture
from course_utils.units import readable

OWN = "one of your own"
CARDS = {name: card.memory_bytes for name, card in ACCELERATORS.items() if card.memory_bytes is not None}
BATCHES = [2**k for k in range(11)]
CONTEXTS = [2**k for k in range(7, 18)]
COUNTS = [2**k for k in range(15)]
SHARDING = {"none": 0, "ZeRO 1: optimizer state": 1, "ZeRO 2: and gradients": 2, "ZeRO 3: and parameters": 3}
RECIPES = {key.replace("float32 master copy", "master copy"): key for key in napkin.RECIPES}
# Tints from dark to light and back, so that neighbors in the stack differ without color, too.
LOOKS = {
    "parameters": "data",
    "gradients": "data half",
    "master copy": "data soft",
    "optimizer state": "context soft",
    "activations": "context",
}
REACH = 3  # the axis ends at this multiple of the card's memory, whatever the bars need
_HEAD_WIDTH = 128
_SEPARATOR = "; "
_OWN_NAMES = ("layers", "width", "vocabulary")
_NAMES = (
    "model", "card", "cards", *_OWN_NAMES, "batch", "context", "checkpointing", "zero", "recipe", "optimizer",
    "fused_attention",
)  # fmt: skip


def explore(
    model: str = "Llama 3.1 8B", card: str = "H100 SXM", *, batch: int = 1, context: int = 8_192, cards: int = 8
) -> Explorer:
    """Controls for model, step and card, above the bytes on each card by purpose.

    Args:
        model: a key of `napkin.PUBLISHED`, or `OWN`, which has additional controls for the shape.
        card: a key of `CARDS`.
        batch, context, cards: powers of two; see `napkin.Step`.
    """
    arguments: dict[str, Any] = {"model": model, "card": card, "batch": batch, "context": context, "cards": cards}
    return Explorer("memory_budget", partial(show, **arguments), arguments)


def show(panel: Panel, *, model: str, card: str, batch: int, context: int, cards: int) -> Picture:
    """Each purpose's bytes and their sum on one card, from 0 to `REACH` times the card's memory."""
    chosen = panel.choice("model", [*napkin.PUBLISHED, OWN], model)
    panel.choice("card", list(CARDS), card)
    panel.slider("cards", COUNTS, cards, "{:,}".format)
    panel.row()
    if chosen == OWN:
        panel.slider("layers", list(range(1, 129)), 32)
        panel.slider("width", [2**k for k in range(7, 15)], 4_096, "{:,}".format)
        panel.slider("vocabulary", [2**k for k in range(9, 18)], 32_768, "{:,}".format)
        panel.row()
    panel.slider("batch", BATCHES, batch, "{:,}".format)
    panel.slider("context", CONTEXTS, context, "{:,}".format)
    panel.switch("checkpointing", label="recompute layers")
    panel.row()
    panel.choice("zero", list(SHARDING), "none", label="sharding")
    panel.choice("recipe", list(RECIPES), "bfloat16, master copy")
    panel.row()
    panel.choice("optimizer", list(napkin.OPTIMIZERS), "AdamW")
    panel.switch("fused_attention", True, label="fused attention")
    pin = panel.switch("pin", label="pin these settings")
    pinned = panel.memory("pinned", "")

    now = {name: panel.controls[name].value for name in _NAMES if name in panel.controls}
    if panel.moved == "pin":
        pinned = _written(now) if pin else ""
        panel.put("pinned", pinned)
    before = _read(pinned) if pin else None
    if before is None and pin:  # a state that no hand has made
        panel.put("pin", False)
    return _picture(panel, now, before)


def budget(settings: Mapping[str, Any]) -> tuple[napkin.Transformer, napkin.Step]:
    """The model and the step that the controls' words describe.

    Raises:
        KeyError, ValueError: a word isn't among those that the controls offer.
    """

    def number(name: str) -> int:
        return int(settings[name].replace(",", ""))

    context = number("context")
    if settings["model"] == OWN:
        width = number("width")
        shape = napkin.Transformer(
            number("layers"), width, width // _HEAD_WIDTH, number("vocabulary"), positions=context
        )
    else:
        shape = napkin.PUBLISHED[settings["model"]].reaching(context)
    step = napkin.Step(
        number("batch"), context, RECIPES[settings["recipe"]], settings["optimizer"], number("cards"),
        SHARDING[settings["zero"]], settings["checkpointing"], settings["fused_attention"],
    )  # fmt: skip
    return shape, step


def _written(settings: Mapping[str, str | bool]) -> str:
    """The settings' values, in the order of the controls, in fewer than the 200 characters that a setting can have."""
    return _SEPARATOR.join(f"{value}" for value in settings.values())


def _read(text: str) -> dict[str, Any] | None:
    """The settings that `_written` wrote; None if this is something else."""
    values = [word == "True" if word in ("True", "False") else word for word in text.split(_SEPARATOR)]
    names = [name for name in _NAMES if name not in _OWN_NAMES or values[0] == OWN]
    settings = dict(zip(names, values, strict=False))
    try:
        budget(settings)
        return settings if settings["card"] in CARDS else None
    except (KeyError, ValueError, AttributeError):
        return None


def _picture(panel: Panel, now: Mapping[str, Any], before: Mapping[str, Any] | None) -> Picture:
    shape, step = budget(now)
    kinds, memory = napkin.memory(shape, step), CARDS[now["card"]]
    old = napkin.memory(*budget(before)) if before else {}
    total, old_total = sum(kinds.values()), sum(old.values())

    width, left = panel.width, 106.0 if not panel.narrow else 92.0
    x = Axis(0, REACH * memory, left, width - 76)
    drawing = Drawing(width, 328)
    top, first, pitch, bottom = 52.0, 106.0, 37.0, 292.0
    for multiple in range(2 * REACH + 1) if not panel.narrow else range(REACH + 1):
        value = multiple * memory / (2 if not panel.narrow else 1)
        drawing.line([(x(value), top - 8), (x(value), bottom)], "grid", width=1, behind=True)
        drawing.text(x(value), bottom + 15, f"{value / 1e9:g}", anchor="middle", size=11, behind=True)
    drawing.line([(left, bottom), (x.end, bottom)], "ink", width=1, behind=True)
    drawing.text((left + x.end) / 2, bottom + 32, "GB on one card", anchor="middle", behind=True)
    if not before:  # pinned settings take the place of the ones just before
        drawing.before(width - 4, bottom + 32, words="faint: before")
    holds = f"{now['card']}: {readable(memory, 'B')}"
    drawing.text(x(memory), top - 20, holds, anchor="middle", bold=True, behind=True)

    if total > memory:
        look = f"highlight soft{' now' * bool(before)}"
        drawing.rect(x(memory), top - 8, x(total) - x(memory), 52, look, key="too much")
    size = 12.0 if not panel.narrow else 11.0
    _row(drawing, x, top, 24.0, kinds, old, "in all", size, bold=True)
    for place, (kind, each) in enumerate(kinds.items()):
        _row(drawing, x, first + pitch * place, 16.0, {kind: each}, {kind: old[kind]} if before else {}, kind, size)
    drawing.line([(x(memory), top - 14), (x(memory), bottom)], "ink", width=2.5, key="memory")
    if before:
        drawing.text(width - 4, top - 20, "dashed: pinned", anchor="end", size=11, key="pinned")
        had = CARDS[before["card"]]
        if had != memory and had < x.high:
            drawing.line([(x(had), top - 14), (x(had), bottom)], "ink", dashes="2 3", key="pinned memory")
            drawing.text(x(had), top - 39, f"pinned: {before['card']}", anchor="middle", size=11, key="pinned card")

    holder = f"one {now['card']}" if step.cards == 1 else f"each of {step.cards:,} {now['card']} cards"
    if total <= memory:
        title = f"{readable(memory - total, 'B')} left on {holder}"
    else:
        title = f"{readable(total - memory, 'B')} too much on {holder}"
    largest = max(kinds, key=lambda kind: kinds[kind])
    parts = napkin.activations(shape, step)
    source = max(parts, key=lambda part: parts[part])
    finding = (
        f"{_named(now['model'])} needs {readable(total, 'B')} per card, and {now['card']} has "
        f"{readable(memory, 'B')}. The largest part is {largest} ({kinds[largest] / total:.0%}); "
        f"the largest part of the activations is {_PARTS[source]} ({parts[source] / kinds['activations']:.0%})."
    )
    if now["model"] != OWN and 0 < (positions := napkin.PUBLISHED[now["model"]].positions) < step.context:
        finding += f" {now['model']} takes at most {positions:,} tokens: here it has {step.context:,} positions."
    if before:
        finding += f" {_compared(now, before, total - old_total)}"
    return Picture(title, drawing, finding)


_PARTS = {
    "layers": "what the layers save",
    "attention weights": "the attention weights",
    "statistics of norms": "the norms' statistics",
    "last norm and head": "the input of the last norm and of the output layer",
    "loss": "what the loss saves",
    "recomputed layer": "the layer that is recomputed",
}


def _named(model: str) -> str:
    return "Your model" if model == OWN else model


def _row(
    drawing: Drawing, x: Axis, top: float, height: float, now: Mapping[str, int], old: Mapping[str, int],
    label: str, size: float, *, bold: bool = False,
) -> None:  # fmt: skip
    """Bars one after the other, with their sum at the right; pinned ones below, dashed and hollow."""
    drawing.text(x.start - 8, top + height - 5, label, anchor="end", size=size, bold=bold, behind=True)
    for kinds, y, high, which in ((now, top, height, "now"), (old, top + height + 2, 10.0, "pinned")):
        start, total = 0, sum(kinds.values())
        for kind, each in kinds.items():
            end = start + each
            place = x(start)
            if which == "now":
                tip = f"{kind}: {readable(each, 'B')}"
                look = f"{LOOKS[kind]} edged{' now' * bool(old)}"
                drawing.rect(place, y, x(end) - place, high, look, key=f"{label} {kind}", tip=tip)
            else:
                look = "none edged now"
                drawing.rect(place, y, x(end) - place, high, look, key=f"{label} {kind} pinned", pattern="3 2")
            start = end
        if total > x.high:  # the bar continues: a gap, and an arrowhead
            middle = y + high / 2
            gap = [(x.end - 15, y + high + 2), (x.end - 9, y - 2), (x.end - 5, y - 2), (x.end - 11, y + high + 2)]
            drawing.area(gap, "paper", key=f"{label} gap {which}")
            drawing.line([(x.end, middle), (x.end + 8, middle)], arrow=True, key=f"{label} on {which}")
        if kinds:
            look, size, up = ("ink", 12, 5) if which == "now" else ("quiet", 11, 0)
            drawing.text(
                drawing.width - 4, y + high - up, readable(total, "B"), anchor="end", look=look, size=size,
                bold=bold and which == "now", key=f"{label} number {which}",
            )  # fmt: skip


def _compared(now: Mapping[str, Any], before: Mapping[str, Any], more: float) -> str:
    """What differs from the pinned settings, and by how many bytes."""

    def said(name: str, value: str | bool) -> str:
        name = {"zero": "sharding", "checkpointing": "recompute", "fused_attention": "fused attention"}.get(name, name)
        return f"{name} {('off', 'on')[value] if isinstance(value, bool) else value}"

    changed = [said(name, before[name]) for name in before if name in now and before[name] != now[name]]
    if not changed:
        return "These settings are pinned: change one and compare."
    than = f"{readable(abs(more), 'B')} {'more' if more > 0 else 'less'} than" if more else "The same as"
    return f"{than[0].upper() + than[1:]} with {', '.join(changed)}."

"""What a card has to hold in a training step, compared with its memory."""

from __future__ import annotations

import ipywidgets

from course_utils import napkin, plots
from course_utils.hardware import ACCELERATORS
from course_utils.units import counted, readable
from course_utils.widgets.explorer import Explorer, Picture

OWN = "one of your own"
CARDS = {name: card.memory_bytes for name, card in ACCELERATORS.items() if card.memory_bytes is not None}
CONTEXTS = [2**k for k in range(7, 18)]
SHARDING = {
    0: "every card keeps all",
    1: "ZeRO 1: optimizer's",
    2: "ZeRO 2: and gradients",
    3: "ZeRO 3: and parameters",
}
_HEAD_WIDTH = 128


def explore(
    model: str = "Llama 3.1 8B", card: str = "H100 SXM", *, batch: int = 1, context: int = 8_192, cards: int = 8
) -> Explorer:
    """Controls for model, step and card, above a bar of bytes by purpose.

    Args:
        model: a key of `napkin.PUBLISHED`, or `OWN`, which has additional controls for the shape.
        card: a key of `CARDS`.
        batch, context, cards: powers of two; see `napkin.Step`.
    """
    controls: dict[str, ipywidgets.Widget] = {
        "model": ipywidgets.Dropdown(options=[*napkin.PUBLISHED, OWN], value=model, description="model"),
        "layers": ipywidgets.IntSlider(32, 1, 128, description="layers"),
        "width": _powers(range(7, 15), 4_096, "width"),
        "vocabulary": _powers(range(9, 18), 32_768, "vocabulary"),
        "card": ipywidgets.Dropdown(options=list(CARDS), value=card, description="card"),
        "cards": _powers(range(15), cards, "cards"),
        "zero": ipywidgets.Dropdown(
            options=[(text, stage) for stage, text in SHARDING.items()], value=0, description="sharding"
        ),
        "batch": _powers(range(11), batch, "batch"),
        "context": ipywidgets.SelectionSlider(
            options=[(f"{n:,}", n) for n in CONTEXTS], value=context, description="context"
        ),
        "recipe": ipywidgets.Dropdown(
            options=list(napkin.RECIPES),
            value="bfloat16, float32 master copy",
            description="numbers",
            layout={"width": "28rem"},
        ),
        "optimizer": ipywidgets.Dropdown(options=list(napkin.OPTIMIZERS), value="AdamW", description="optimizer"),
        "checkpointing": ipywidgets.Checkbox(False, description="recompute each layer", indent=False),
        "fused_attention": ipywidgets.Checkbox(True, description="fused attention", indent=False),
    }
    chosen, shape = controls["model"], [controls[name] for name in ("layers", "width", "vocabulary")]

    def show(_: object = None) -> None:
        for control in shape:
            control.layout.display = None if chosen.value == OWN else "none"

    chosen.observe(show, "value")
    show()
    rows = [
        ["model", "layers", "width", "vocabulary"],
        ["card", "cards", "zero"],
        ["batch", "context", "checkpointing", "fused_attention"],
        ["recipe", "optimizer"],
    ]
    return Explorer(draw, controls, rows=rows)


def draw(
    *,
    model: str,
    layers: int,
    width: int,
    vocabulary: int,
    card: str,
    cards: int,
    zero: int,
    batch: int,
    context: int,
    recipe: str,
    optimizer: str,
    checkpointing: bool,
    fused_attention: bool,
) -> Picture:
    """The bytes that each card holds, by purpose, compared with its memory."""
    if model == OWN:
        shape = napkin.Transformer(layers, width, width // _HEAD_WIDTH, vocabulary, positions=context)
    else:
        shape = napkin.PUBLISHED[model].reaching(context)
    step = napkin.Step(batch, context, recipe, optimizer, cards, zero, checkpointing, fused_attention)
    kinds, memory = napkin.memory(shape, step), CARDS[card]
    total = sum(kinds.values())
    bars = {"in all": kinds} | {kind: {kind: size} for kind, size in kinds.items() if size}
    holder = "one card" if cards == 1 else f"each of {cards:,} cards"
    if total <= memory:
        verdict = f"fits: {readable(total, 'B')} of {readable(memory, 'B')}, {readable(memory - total, 'B')} left"
    else:
        verdict = f"does not fit: {readable(total, 'B')} for {readable(memory, 'B')}"
        verdict += f", {readable(total - memory, 'B')} too much"
    largest = max(kinds, key=lambda kind: kinds[kind])
    parts = napkin.activations(shape, step)
    source = max(parts, key=lambda part: parts[part])
    most = f"The largest part: {largest}, {kinds[largest] / total:.0%}; of the activations: {source}, "
    most += f"{parts[source] / kinds['activations']:.0%}"
    title = f"{'Fits' if total <= memory else 'Does not fit'}: {counted(shape.parameters)} parameters on {card}"
    figure = plots.memory_stacks(bars, limits={f"{card}: {readable(memory, 'B')}": memory}, title=title)
    return Picture(figure, f"On {holder} ({card}) this {verdict}. {most}.")


def _powers(exponents: range, value: int, name: str) -> ipywidgets.SelectionSlider:
    return ipywidgets.SelectionSlider(options=[(f"{2**k:,}", 2**k) for k in exponents], value=value, description=name)

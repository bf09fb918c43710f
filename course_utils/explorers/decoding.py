"""Decode throughput against the batch: what a second sequence costs, and where memory or FLOPs end the gain."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from course_utils.cards import ACCELERATORS
from course_utils.explorers.drawing import Axis, Drawing, axes, power, wide
from course_utils.explorers.explorer import Explorer, Impossible, Panel, Picture
from course_utils.napkin.inference import FORMATS, Serving, decode_seconds, held, largest_batch
from course_utils.napkin.models import PUBLISHED
from course_utils.napkin.shapes import Transformer
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
    model = PUBLISHED[name]
    reach = [context for context in CONTEXTS if context <= (model.positions or CONTEXTS[-1])]
    context = panel.slider("context", reach, min(int(first["context"]), reach[-1]), "{:,}".format)
    context = _context(panel, reach, context)
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

    drawing = Drawing(panel.width, _HEIGHT)
    axes(
        drawing, x, y, xlabel="sequences generated together (batch)", ylabel="tokens/s, all sequences together",
        xwords="{:,.0f}".format, ywords=power, xticks=BATCHES[:: 4 if panel.narrow else 2],
    )  # fmt: skip
    drawing.before(right, 12, words="faint: before")
    accelerator = ACCELERATORS[card]
    serving = Serving(batch, context, 1, weights, cache, cards)
    memory, needed = accelerator.memory_bytes, model.parameters * FORMATS[weights]
    if memory is not None and needed > cards * memory:
        _no_room(drawing, x, y, 1, "no room for the weights", "no room")
        fewest = math.ceil(needed / memory)
        title = f"The weights alone need {readable(needed, 'B')}: at least {_count(fewest, 'card')}"
        return Picture(title, drawing, _too_large(name, card, serving, memory))

    def seconds(sequences: int) -> float:
        numbers = {"number": FORMATS[weights], "cache": FORMATS[cache]}
        return float(decode_seconds(model, accelerator, context, sequences, cards=cards, **numbers))

    most = BATCHES[-1] if memory is None else largest_batch(model, serving, memory)
    try:
        step, alone = seconds(batch), seconds(1)
    except ValueError as error:
        raise Impossible(f"{error}: choose fewer cards, or another kind of card", "cards") from None

    if most < BATCHES[-1]:
        _no_room(drawing, x, y, max(most, 1), "no room for weights and caches", "no room")
    drawing.curve(x, y, [(b, b / alone) for b in (1, BATCHES[-1])], "context", dashes="3 4", key="free")
    label = BATCHES[-3] if panel.narrow else BATCHES[-2]
    drawing.text(
        x(label), max(y(label / alone) - 8, y.end + 12), "if more sequences cost nothing", anchor="end",
        look="quiet clear", key="free text",
    )  # fmt: skip
    # As far as the memory goes; what more of it would give is dashed.
    room = [b for b in BATCHES if b < most] + [most] * (most >= 1)
    drawing.curve(x, y, [(b, b / seconds(b)) for b in room], "data", width=3, key="rate")
    more = [max(most, 1)] + [b for b in BATCHES if b > most]
    drawing.curve(x, y, [(b, b / seconds(b)) for b in more], "data now", width=2, dashes="2 4", key="rate with more")
    rate = batch / step
    drawing.line([(x(batch), y(rate)), (x(batch), y.start)], "highlight", width=1, key="drop")
    drawing.point(
        x(batch), y, rate, f"{counted(rate)} tokens/s", sets="point", within=(left, 0, right, _HEIGHT),
        label="drag to another batch",
    )  # fmt: skip

    where, sequences = f"{name} on {cards} × {card}", _count(batch, "sequence")
    if batch > most:
        title = f"{sequences} {'does' if batch == 1 else 'do'}n't fit: memory has room for {most or 'none'}"
        assert memory is not None
        return Picture(title, drawing, f"{where}: {_crowded(model, serving, memory, most)}")
    title = f"{counted(rate)} tokens/s in all, {counted(1 / step)} for each sequence"
    finding = f"{where}: a token takes {readable(step, 's')}"
    if batch > 1:
        gain = f"{rate * alone:.3g} times the tokens/s of one"
        finding += f", or {readable(alone, 's')} with one sequence; {sequences} get {gain}"
    if memory is None:
        return Picture(title, drawing, f"{finding}. {card} comes with different amounts of memory: check what fits.")
    finding += f". Memory has room for {_count(most, 'sequence')} of {context:,} tokens."
    if model.positions:
        finding += f" {name} takes at most {model.positions:,} tokens."
    return Picture(title, drawing, finding)


def _context(panel: Panel, reach: list[int], chosen: int) -> int:
    """The context: a model with fewer positions makes it shorter, and the next model has the one before again."""
    every = {f"{context:,}": context for context in CONTEXTS}
    wanted = every.get(panel.memory("wanted", f"{chosen:,}"), chosen)
    if panel.moved == "model":
        chosen = min(wanted, reach[-1])
        panel.put("context", f"{chosen:,}")
    elif panel.moved == "context" or chosen != min(wanted, reach[-1]):
        wanted = chosen
    panel.put("wanted", f"{wanted:,}")
    return chosen


def _no_room(drawing: Drawing, x: Axis, y: Axis, most: int, *words: str) -> None:
    """Shade the batches above ``most``, and say why in the first words for which there is room."""
    edge = x(most)
    drawing.rect(edge, y.end, x.end - edge, y.start - y.end, "context soft", key="no room")
    for said in words:
        if x.end - edge > wide(said) + 8:
            drawing.text((edge + x.end) / 2, y.start - 8, said, anchor="middle", look="quiet", key="no room text")
            return


def _too_large(name: str, card: str, serving: Serving, memory: int) -> str:
    """Why the weights don't fit, and with which format they would, or would need the fewest cards."""
    numbers = PUBLISHED[name].parameters
    have = f"{serving.cards} × {card} {'has' if serving.cards == 1 else 'have'} {readable(serving.cards * memory, 'B')}"
    said = f"{name} has {counted(numbers)} parameters, {readable(numbers * FORMATS[serving.weights], 'B')} in "
    said += f"{serving.weights}, and {have}."
    narrow = min(FORMATS, key=lambda each: FORMATS[each])
    if FORMATS[narrow] == FORMATS[serving.weights]:
        return said
    least = numbers * FORMATS[narrow]
    return f"{said} In {narrow} they take {readable(least, 'B')}: at least {_count(math.ceil(least / memory), 'card')}."


def _crowded(model: Transformer, serving: Serving, memory: int, most: int) -> str:
    """What doesn't fit beside the weights, and which changes, each alone, would make room."""
    kinds = held(model, serving)
    weights, caches = (readable(kinds[kind], "B") for kind in ("weights", "KV cache"))
    said = (
        f"{'the' if serving.cards == 1 else 'each'} card holds {weights} of weights, and {caches} of caches don't fit "
        f"into the rest of {readable(memory, 'B')}. Memory has room for "
        f"{_count(most, 'sequence') if most else 'not even one sequence'} of {serving.prompt:,} tokens."
    )
    narrower = sorted(FORMATS, key=lambda each: -FORMATS[each])
    # Of each kind, the smallest change that's enough.
    changes: list[tuple[str, str, list[Any]]] = [
        ("weights in {}", "weights", [each for each in narrower if FORMATS[each] < FORMATS[serving.weights]]),
        ("caches in {}", "cache", [each for each in narrower if FORMATS[each] < FORMATS[serving.cache]]),
        ("{:,} tokens each", "prompt", [each for each in reversed(CONTEXTS) if each < serving.prompt]),
        ("{} cards", "cards", [each for each in _CARDS if each > serving.cards]),
    ]
    enough = []
    for words, name, values in changes:
        for value in values:
            if largest_batch(model, replace(serving, **{name: value}), memory) >= serving.batch:
                enough.append(words.format(value))
                break
    listed = " or ".join(filter(None, [", ".join(enough[:-1]), *enough[-1:]]))
    return f"{said} {listed[0].upper()}{listed[1:]} would make room." if enough else said


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"

"""Serving a model on one page: memory, time to the first token and between tokens, throughput, cost, energy."""

from __future__ import annotations

from collections.abc import Iterator

from course_utils.cards import Accelerator
from course_utils.facts import FACTS
from course_utils.napkin.inference import (
    FORMATS,
    Serving,
    decode_bytes,
    decode_flops,
    decode_seconds,
    generation_seconds,
    held,
    kv_cache,
    largest_batch,
    prefill_flops,
    prefill_seconds,
    sharing_cache,
)
from course_utils.napkin.lines import ABOVE, GIVEN, Line, Plan
from course_utils.napkin.planner import find_card, named
from course_utils.napkin.shapes import Transformer
from course_utils.napkin.step import positive
from course_utils.papers import POPE
from course_utils.sources import Source, Sourced
from course_utils.units import plain, readable

_BYTES = "bytes on each card"
_USUAL_MFU = 0.5  # of prefill: between PaLM's with one prompt and with 512


def serve(
    model: Transformer,
    serving: Serving,
    *,
    card: str | Accelerator = "H100 SXM",
    mfu: float | None = None,
    price: float | None = None,
    name: str = "",
) -> Plan:
    """Plan the generation of text: prompts are processed (prefill), then tokens are generated one by one (decode).

    Args:
        model: the model's shape.
        serving: batch, lengths, formats and cards.
        card: its name in `cards.ACCELERATORS`, or your own Accelerator.
        mfu: the fraction of the peak that prefill reaches, by default 0.5. Decode is assumed to reach the full
            bandwidth or the full peak.
        price: USD per GPU-hour; by default the card's in `facts.FACTS`, if it has one.
        name: the model's name, for the title.

    Raises:
        ValueError: the card isn't in the table, no link connects so many of them, or a number is impossible.
    """
    accelerator = find_card(card) if isinstance(card, str) else card
    if model.heads % serving.cards:
        raise ValueError(f"{model.heads} heads cannot be divided among {serving.cards} cards evenly")
    kinds, sharing = held(model, serving), sharing_cache(model, serving.cards)
    total, limit = sum(kinds.values()), accelerator.memory_bytes
    number, cache = FORMATS[serving.weights], FORMATS[serving.cache]
    middle = serving.prompt + serving.output // 2
    prompts = (serving.prompt, serving.batch)
    share = _USUAL_MFU if mfu is None else mfu
    first = prefill_seconds(model, accelerator, *prompts, mfu=share, number=number, cards=serving.cards)
    one = decode_seconds(model, accelerator, middle, serving.batch, number=number, cache=cache, cards=serving.cards)
    whole = first + generation_seconds(model, serving, accelerator)
    throughput = serving.batch * serving.output / whole
    step_bytes = decode_bytes(model, middle, serving.batch, number=number, cache=cache, cards=serving.cards)
    step_flops = serving.batch * decode_flops(model, middle)
    per_token = kv_cache(model, serving.prompt + serving.output, 1, cache) / (serving.prompt + serving.output)
    crew = f"{serving.cards:,} card{'s' if serving.cards > 1 else ''}"
    lines = [
        Line("parameters", "in all", model.parameters, "parameters", f"{model.parameters:,}", "the model's shape"),
        Line("parameters", "active", model.active, "parameters", "that one token uses", "the model's shape"),
        Line(_BYTES, "weights", kinds["weights"], "B", f"{number:g} · parameters / {crew}", POPE),
        Line(
            _BYTES,
            "KV cache",
            kinds["KV cache"],
            "B",
            f"{serving.batch:,} · {serving.prompt + serving.output:,} tokens · {plain(per_token)} bytes / {sharing}",
            POPE,
        ),
        Line(_BYTES, "in all", total, "B", "the sum", ABOVE),
        *_room(model, serving, limit),
        Line("time", "MFU of prefill", share, "share", *_mfu_from(mfu)),
        Line(
            "time",
            "to the first token",
            first,
            "s",
            f"{plain(serving.batch * prefill_flops(model, serving.prompt))} FLOPs / ({crew} · peak · MFU), "
            "or the time to read the weights or to send, if longer",
            POPE,
        ),
        Line(
            "time",
            "a token",
            one,
            "s",
            f"the longest of {plain(step_bytes)} bytes / bandwidth, {plain(step_flops)} FLOPs / ({crew} · peak), and "
            "sending",
            POPE,
        ),
        Line("time", "a request", whole, "s", f"to the first token + {serving.output:,} · a token", ABOVE),
        Line(
            "throughput",
            "while generating",
            serving.batch / one,
            "tokens/s",
            f"{serving.batch:,} sequences / a token",
            ABOVE,
        ),
        Line("throughput", "of requests", throughput, "tokens/s", "batch · output / a request", ABOVE),
        *_cost(serving, throughput, accelerator, price),
    ]
    formats = f"weights in {serving.weights}, cache in {serving.cache}"
    title = f"{named(model, name)} served on {serving.cards:,} × {accelerator.name}, {formats}"
    return Plan(title, tuple(lines), total, limit, True, tuple(_advice(model, serving, limit, total)))


def _mfu_from(mfu: float | None) -> tuple[str, Source | str]:
    """Where the MFU of prefill comes from, in words, and its source."""
    if mfu is not None:
        return "assumed", GIVEN
    one, many = (FACTS[f"PaLM 540B prefill of {prompts}, MFU"] for prompts in ("one prompt", "512 prompts"))
    return f"between PaLM 540B's {one} with one prompt and {many} with 512", one.source


def _room(model: Transformer, serving: Serving, limit: int | None) -> Iterator[Line]:
    if limit is not None:
        batch = largest_batch(model, serving, limit)
        yield Line(_BYTES, "largest batch", batch, "sequences", "(memory - weights) / KV cache of one", ABOVE)


def _cost(serving: Serving, throughput: float, card: Accelerator, price: float | None) -> Iterator[Line]:
    rent = FACTS.get(f"{card.name} rent")
    if price is not None or rent is not None:
        each = Sourced(price) if price is not None else FACTS[f"{card.name} rent"].number
        positive(price=each)
        dollars = serving.cards * each / 3600 * 1e6 / throughput
        yield Line("cost", "a million tokens", dollars, "USD", f"{serving.cards:,} · {each:.2f} USD / 3,600 s", GIVEN)
    if card.power is not None:
        joules = serving.cards * Sourced(card.power, *card.sources) / throughput
        formula = f"{serving.cards:,} · {card.power:,.0f} W / tokens per second, at most"
        yield Line("energy", "a million tokens", joules * 1e6 / 3.6e6, "kWh", formula, GIVEN)


def _advice(model: Transformer, serving: Serving, limit: int | None, total: int) -> Iterator[str]:
    if limit is None or total <= limit:
        return
    batch = largest_batch(model, serving, limit)
    if batch:
        yield f"a batch of {batch:,}"
    cards = serving.cards
    while cards < model.heads and total * serving.cards / cards > limit:
        cards *= 2
    if total * serving.cards / cards <= limit and model.heads % cards == 0:
        yield f"{cards:,} cards: {readable(total * serving.cards / cards, 'B')} on each"
    for name, number in FORMATS.items():
        weights = model.parameters * number / serving.cards
        if number < FORMATS[serving.weights] and weights + held(model, serving)["KV cache"] <= limit:
            yield f"weights in {name}: {readable(weights, 'B')} on each card"
            break

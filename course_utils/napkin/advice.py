"""Advice on a plan: what would make it fit, and what makes it impractical."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from course_utils.cards import ACCELERATORS, Accelerator
from course_utils.facts import FACTS
from course_utils.napkin.collectives import Transfer, bubble
from course_utils.napkin.footprint import activations, memory, per_parameter, states
from course_utils.napkin.modules import Traced
from course_utils.napkin.shapes import Transformer
from course_utils.napkin.step import SHARDED, Step
from course_utils.units import counted, readable

_Change = tuple[str, dict[str, Any]]  # its description, and the fields of a Step that it sets
_MANY_CARDS = 2**16


def held(model: Transformer | Traced, step: Step) -> int:
    """Bytes that one card holds: the sum of a plan's "bytes on each card"."""
    if isinstance(model, Transformer):
        return sum(memory(model, step).values())
    still = int(model.frozen * per_parameter(step)["parameters"] + model.buffers)
    return sum(states(model.weights(step), step).values()) + still + (model.activations or 0)


def advice(model: Transformer | Traced, step: Step, limit: int) -> Iterator[str]:
    """What would make it fit: single changes that suffice, otherwise several together; and a larger card."""

    def says(what: str, changed: Step) -> str | None:
        size = held(model, changed)
        return f"{what}: {readable(size, 'B')} on each card" if size <= limit else None

    crew = step.cards if step.cards > 1 else 8
    here = _on_one_card(model, step, limit)
    stages = [_sharded(stage, crew) for stage in SHARDED]
    alone = [text for what, how in here if (text := says(what, replace(step, **how)))]
    alone += itertools.islice((text for what, how in stages if (text := says(what, replace(step, **how)))), 1)
    yield from alone
    if not alone:
        together, names = step, list[str]()
        more = itertools.takewhile(lambda cards: cards <= max(crew, _MANY_CARDS), (crew * 2**k for k in range(17)))
        for what, how in [*here, *(_sharded(3, cards) for cards in more)]:
            together, names = replace(together, **how), [*names[: len(here)], what]
            if text := says(", ".join(names), together):
                yield text
                break
        else:
            kept = sum(activations(model, together).values()) if isinstance(model, Transformer) else model.activations
            what = "shorter context" if isinstance(model, Transformer) else "smaller input"
            size = readable(kept or 0, "B")
            yield f"a {what}: activations take {size} on each card, no matter how many cards divide the rest"
    needed = held(model, step)
    larger = [(card.memory_bytes, card.name) for card in ACCELERATORS.values() if (card.memory_bytes or 0) >= needed]
    if larger:
        yield f"a card with more memory: {min(larger)[1]}, {readable(min(larger)[0] or 0, 'B')}"


def _sharded(stage: int, cards: int) -> _Change:
    return f"ZeRO {stage} on {cards:,} cards", {"zero": stage, "cards": cards}


def _on_one_card(model: Transformer | Traced, step: Step, limit: int) -> list[_Change]:
    if isinstance(model, Traced):
        return []
    found: list[_Change] = []
    if not step.fused_attention:
        found.append(("fused attention", {"fused_attention": True}))
    if not step.checkpointing:
        found.append(("checkpointing", {"checkpointing": True}))
    if step.batch > 1:
        # Bytes grow with the batch, so a binary search finds the largest that fits.
        sizes = range(1, step.batch)
        index = bisect_left(sizes, True, key=lambda size: held(model, replace(step, batch=size)) > limit)
        found.append((f"a batch of {max(1, index):,}", {"batch": max(1, index)}))
    return found


def warnings(
    step: Step,
    card: Accelerator,
    items: int,
    steps: float,
    mfu: float,
    sending: Mapping[str, Transfer],
    unknown: str,
    item: str,
) -> Iterator[str]:
    """What makes a plan impractical, one sentence each.

    Args:
        step, card: as planned.
        items: tokens (or samples) in a step.
        steps: the number of steps of the training run.
        mfu: the assumed MFU.
        sending: what cards send one another, by purpose.
        unknown: why ``sending`` isn't known; empty if it is.
        item: "token" or "sample".
    """
    most, best = FACTS["DeepSeek-V3 tokens in a step"], FACTS["MaxText 32B MFU on TPU v5e"]
    if item == "token" and items > most.value:
        yield (
            f"{counted(items)} tokens in a step; the most in the table of facts is DeepSeek-V3's "
            f"{counted(most.value)}. Beyond a critical batch size, more tokens in a step save hardly any steps: use "
            "fewer groups, a smaller batch, or tensor and pipeline parallelism."
        )
    if steps < 1000:
        yield f"only {counted(steps)} steps: few optimizers get far in so few updates."
    if mfu > best.value:
        yield f"an MFU of {mfu:.2g} is above the best in the table of facts, {best.value:.2g} ({best.source})."
    if unknown:
        yield f"communication isn't counted: {unknown}."
    fast = card.links[0].cards if card.links else None
    if fast is not None and step.tensor > fast:
        yield f"tensor parallelism over {step.tensor} cards goes beyond {card.links[0].name}, which connects {fast}."
    if bubble(step) > 0.2:
        yield f"the pipeline's stages are idle for {bubble(step):.0%} of a step: accumulate over more batches."
    if card.peak.get("bfloat16") is None and "float16" in card.peak and "bfloat16" in step.recipe:
        yield f"{card.name} has no bfloat16; this plan uses float16, which needs loss scaling (lecture 10)."

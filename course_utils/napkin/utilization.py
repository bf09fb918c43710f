"""MFU from the tokens per second that any training log prints."""

from __future__ import annotations

import re

from course_utils.cards import Accelerator, dtype_name
from course_utils.facts import near
from course_utils.napkin.lines import ABOVE, GIVEN, Line, Plan
from course_utils.napkin.modules import Traced
from course_utils.napkin.planner import PALM_B, find_card, flops_of_a_token, named
from course_utils.napkin.shapes import Transformer
from course_utils.napkin.step import Step, positive
from course_utils.sources import Sourced
from course_utils.units import parse

_PER_SECOND = r"tok(?:en)?s?\s*(?:/|_per_| per )\s*s(?:ec(?:ond)?)?\b"
_RATE = re.compile(
    rf"{_PER_SECOND}\s*[:=]?\s*([\d.,]*\d)\s*([kM]?)\b|([\d.,]*\d)\s*([kM]?)\s*{_PER_SECOND}", re.IGNORECASE
)


def rates_in(log: str) -> list[float]:
    """Every rate that a log prints, in tokens per second, such as "tok/sec: 1,234" or "178k tokens/s"."""
    found = []
    for before, size, after, other in _RATE.findall(log):
        found.append(parse((before or after) + (size or other).replace("K", "k").replace("m", "M")))
    return found


class Impossible(ValueError):
    """More FLOP/s than the cards can do."""


def mfu(
    model: Transformer | Traced | float,
    tokens_per_second: float,
    *,
    context: int = 0,
    card: str | Accelerator = "H100 SXM",
    dtype: str = "bfloat16",
    cards: int = 1,
    name: str = "",
) -> Plan:
    """Model FLOPs utilization: the model's FLOPs per second over what the cards promise in this dtype.

    Args:
        model: a shape, a traced module, or a number of parameters (then 6 FLOPs count for each, without attention).
        tokens_per_second: for all cards together, as a log prints it.
        context: the length of a sequence, for attention; required for a shape.
        card: its name in `cards.ACCELERATORS`, or your own Accelerator.
        dtype: of the matrix products: "bfloat16", "float16", "float8_e4m3fn", "tf32" or "float32"; its dense peak
            is used.
        cards: the number of cards that train together.
        name: the model's name, for the title.

    Raises:
        Impossible: an MFU above 1. The tokens come from more cards than you gave, the peak is another dtype's, or the
            FLOPs are counted twice.
        ValueError: an unknown card, a dtype that it has no rate for, or an impossible number.
    """
    positive(tokens_per_second=tokens_per_second, cards=cards)
    accelerator = find_card(card) if isinstance(card, str) else card
    if dtype not in accelerator.peak:
        known = [dtype_name(key) for key in accelerator.peak]
        similar = near(dtype, known) or known
        raise ValueError(f"{accelerator.name} has no rate for {dtype!r} in the table. It has {', '.join(similar)}")
    if isinstance(model, (int, float)):
        positive(parameters=model)
        each: list[Line] = [Line("FLOPs", "a token", 6 * model, "FLOPs", f"6 · {model:,.0f} parameters", PALM_B)]
    else:
        if isinstance(model, Transformer):
            positive(context=context)
        step = Step(1, max(1, context)) if isinstance(model, Transformer) else model.step()
        each = list(flops_of_a_token(model, step))
    a_token = sum(line.value for line in each)
    peak = Sourced(accelerator.peak[dtype], *accelerator.sources)
    rate = a_token * tokens_per_second
    share = rate / (cards * peak)
    if share > 1:
        raise Impossible(
            f"an MFU of {share:.3g} is more than {cards:,} × {accelerator.name} can do in {dtype} (dense). Usual "
            "causes: the tokens come from more cards, the products ran in a narrower dtype, or the peak is another "
            "card's"
        )
    crew = f"{cards:,} × {accelerator.name}"
    lines = (
        *each,
        Line("time", "tokens per second", tokens_per_second, "tokens/s", "of all cards", GIVEN),
        Line("time", "reached", rate, "FLOP/s", "FLOPs of a token · tokens per second", ABOVE),
        Line("time", "peak", cards * peak, "FLOP/s", f"{crew}, dense {dtype}", GIVEN),
        Line("time", "MFU", share, "share", "reached / peak", PALM_B),
    )
    title = (
        named(model, name) if not isinstance(model, (int, float)) else f"{name or 'a model'}: {model:,.0f} parameters"
    )
    return Plan(f"{title} on {crew}, {dtype}: MFU {share:.1%}", lines, None, None, True, ())

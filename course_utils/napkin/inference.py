"""Generating text: the KV cache, the seconds of prefill and of each token, throughput and cost.

    from course_utils import napkin
    from course_utils.cards import ACCELERATORS

    llama, card = napkin.PUBLISHED["Llama 3.1 8B"], ACCELERATORS["H100 SXM"]
    napkin.kv_cache(llama, context=2_048)  # 268_435_456 bytes
    napkin.decode_seconds(llama, card, context=2_048)  # 0.0049 s: bytes over bandwidth
    napkin.prefill_seconds(llama, card, tokens=2_048, mfu=0.5)
    napkin.serve(llama, napkin.Serving(batch=8, prompt=2_048, output=256), card="H100 SXM")  # a table

All times are lower bounds: the larger of FLOPs over peak and bytes over bandwidth. What a framework adds (starting
kernels, sampling, scheduling) is left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

from course_utils.cards import Accelerator
from course_utils.napkin.collectives import collective
from course_utils.napkin.shapes import Transformer
from course_utils.napkin.step import positive
from course_utils.sources import Sourced, longest

# Bytes of a number in weights or cache, scales of blocks included: MXFP8 has one byte for 32 numbers, NVFP4 for 16,
# int4 (GPTQ, AWQ) two for 128.
FORMATS = MappingProxyType(
    {
        "float32": 4.0,
        "bfloat16": 2.0,
        "float8": 1.0,
        "MXFP8": 1 + 1 / 32,
        "int8": 1.0,
        "NVFP4": 0.5625,
        "int4": 0.515625,
    }
)


def kv_cache(model: Transformer, context: int, batch: int = 1, number: float = 2.0) -> int:
    """Bytes of the keys and values of ``batch`` sequences of ``context`` tokens.

    2 · layers · key-value heads · head width · tokens numbers; with latent attention layers · (rank + rope width) ·
    tokens; with sliding windows no more tokens than a window has.

    Args:
        model: its shape.
        context: tokens of each sequence so far.
        batch: sequences.
        number: bytes of one number, see `FORMATS`.
    """
    return math.ceil(batch * model.attended(context) * model.cache_width * number)


def sharing_cache(model: Transformer, cards: int) -> int:
    """Among how many of ``cards`` a cache is divided: no more than there are key-value heads.

    Latent attention's cache belongs to all heads, so each card has a copy. (Servers therefore often give each card
    sequences of its own in attention; that isn't counted here.)
    """
    return 1 if model.latent else min(cards, model.kv_heads or model.heads)


def touched_experts(model: Transformer, tokens: int) -> float:
    """How many routed experts of a layer a step of so many tokens is expected to read, if the router has no favorites.

    routed · (1 − (1 − active / routed)^tokens)
    """
    if model.experts is None:
        return 0.0
    routed, active = model.experts.routed, model.experts.active
    return routed * (1 - (1 - active / routed) ** tokens)


def weights_read(model: Transformer, tokens: int, number: float = 2.0) -> float:
    """Bytes of weights that one step of so many tokens reads: all but those of experts to which no token goes.

    All parameters count, as the rule "weights over bandwidth" has it, although a step only looks up a few rows of the
    token embedding: for Llama 3.1 8B that makes it 7 % too many.
    """
    return number * (model.parameters - model.routed + model.moe_layers * touched_experts(model, tokens) * model.expert)


def forward_flops(model: Transformer, context: int) -> int:
    """FLOPs to run one token whose queries meet ``context`` positions: a third of those of training."""
    return 2 * model.multiplied + 2 * model.attended_width * model.attended(context)


def decode_flops(model: Transformer, context: int) -> int:
    """FLOPs to generate one token after ``context`` others.

    With latent attention, queries and values are carried into the narrow space instead of unpacking the cache
    (DeepSeek-AI 2024, arXiv:2405.04434, section 2.1.2), so that a head multiplies 2 · rank + rope elements a position.
    """
    width = model.attended_width
    if model.latent:
        width = model.heads * (2 * model.latent.kv_rank + model.latent.rope)
    return 2 * model.multiplied + 2 * width * model.attended(context)


def _peak(card: Accelerator, number: float) -> Sourced:
    """FLOP/s with weights of so many bytes a number; where the card multiplies nothing so narrow, with the next."""
    names = ["float4_e2m1fn_x2"] if number < 1 else []
    names += ["float8_e4m3fn", "float8_e4m3fnuz"] if number < 2 else []
    for name in [*names, "bfloat16", "float16", "float32"] if number < 4 else ["float32"]:
        if name in card.peak:
            return Sourced(card.peak[name], *card.sources)
    raise ValueError(f"{card.name} promises no rate for numbers of {number:g} bytes")


def prefill_seconds(
    model: Transformer,
    card: Accelerator,
    tokens: int,
    batch: int = 1,
    *,
    mfu: float = 0.5,
    number: float = 2.0,
    cards: int = 1,
    attention: bool = True,
) -> Sourced:
    """Seconds until ``batch`` prompts of ``tokens`` tokens are read and the first token of each can be chosen.

    Their FLOPs over ``cards`` · peak · mfu, and no less than the weights' bytes over bandwidth. Only the last token of
    a prompt goes through the output layer.

    Args:
        model, card: the shape, and which card.
        tokens: of each prompt.
        batch: prompts.
        mfu: the fraction of the peak that is reached, at most 1.
        number: bytes of one weight, see `FORMATS`.
        cards: that divide the matrices (tensor parallelism).
        attention: count the products of queries with keys and of weights with values, too.
    """
    positive(tokens=tokens, batch=batch, mfu=mfu, number=number, cards=cards)
    if mfu > 1:
        raise ValueError(f"mfu is {mfu}: give it as a share of the peak, such as 0.5")
    work = batch * prefill_flops(model, tokens, attention=attention)
    computing = work / (cards * _peak(card, number) * mfu)
    reading = weights_read(model, batch * tokens, number) / (cards * Sourced(card.bandwidth, *card.sources))
    return longest(computing, reading, _sending(model, card, batch * tokens, cards))


def prefill_flops(model: Transformer, tokens: int, *, attention: bool = True) -> int:
    """FLOPs to read one prompt; only its last token goes through the output layer. All pairs of tokens count."""
    head = model.vocabulary * model.width
    matrices = 2 * (tokens * (model.multiplied - head) + head)
    return matrices + (tokens * 2 * model.attended_width * model.attended(tokens) if attention else 0)


def prefill_rule(model: Transformer, card: Accelerator, tokens: int, *, mfu: float, number: float = 2.0) -> Sourced:
    """The rule of thumb for prefill: 2 · parameters · tokens FLOPs over peak · mfu, with no attention."""
    positive(tokens=tokens, mfu=mfu)
    return 2 * model.active * tokens / (_peak(card, number) * mfu)


def decode_bytes(
    model: Transformer, context: int, batch: int = 1, *, number: float = 2.0, cache: float = 2.0, cards: int = 1
) -> float:
    """Bytes of weights and cache that each card reads for one token of each sequence; see `decode_seconds`."""
    return weights_read(model, batch, number) / cards + kv_cache(model, context, batch, cache) / sharing_cache(
        model, cards
    )


def decode_seconds(
    model: Transformer,
    card: Accelerator,
    context: int,
    batch: int = 1,
    *,
    number: float = 2.0,
    cache: float = 2.0,
    cards: int = 1,
) -> Sourced:
    """Seconds to generate one token for each of ``batch`` sequences that have ``context`` tokens already.

    The bytes of weights and cache over bandwidth, or FLOPs over peak if that takes longer. Weights are read once for
    all sequences; each sequence has its own cache.

    Args:
        model, card: the shape, and which card.
        context: tokens of each sequence so far.
        batch: sequences that are generated together.
        number, cache: bytes of a number in weights and in the cache, see `FORMATS`.
        cards: that divide the matrices (tensor parallelism), and the cache as in `sharing_cache`.
    """
    positive(context=context, batch=batch, number=number, cache=cache, cards=cards)
    reading = decode_bytes(model, context, batch, number=number, cache=cache, cards=cards) / Sourced(
        card.bandwidth, *card.sources
    )
    computing = batch * decode_flops(model, context) / (cards * _peak(card, number))
    return longest(reading, computing, _sending(model, card, batch, cards))


def _sending(model: Transformer, card: Accelerator, tokens: int, cards: int) -> Sourced:
    """Two all-reduces of activations in each layer, forward."""
    if cards == 1:
        return Sourced(0.0)
    one = collective("all_reduce", 2 * tokens * model.width, cards, card)
    return Sourced(2 * model.layers * float(one), *one.sources)


@dataclass(frozen=True)
class Serving:
    """How a model is served.

    Attributes:
        batch: sequences that are generated together.
        prompt, output: tokens that each reads and generates.
        weights, cache: keys of `FORMATS`.
        cards: that divide the model (tensor parallelism).
    """

    batch: int = 1
    prompt: int = 2_048
    output: int = 256
    weights: str = "bfloat16"
    cache: str = "bfloat16"
    cards: int = 1

    def __post_init__(self) -> None:
        for name in ("batch", "prompt", "output", "cards"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}: it must be at least 1")
        for name in ("weights", "cache"):
            if getattr(self, name) not in FORMATS:
                raise ValueError(f"{name} is {getattr(self, name)!r}: expected one of {', '.join(FORMATS)}")


def held(model: Transformer, serving: Serving) -> dict[str, int]:
    """Bytes that one card holds at the end of the output: its share of weights and cache."""
    weights = model.parameters * FORMATS[serving.weights] / serving.cards
    cache = kv_cache(model, serving.prompt + serving.output, serving.batch, FORMATS[serving.cache])
    return {"weights": math.ceil(weights), "KV cache": math.ceil(cache / sharing_cache(model, serving.cards))}


def largest_batch(model: Transformer, serving: Serving, memory: int) -> int:
    """How many sequences fit into ``memory`` bytes of each card; 0 if not even the weights do."""
    room = memory - held(model, serving)["weights"]
    numbers = model.attended(serving.prompt + serving.output) * model.cache_width
    one = numbers * Fraction(FORMATS[serving.cache]) / sharing_cache(model, serving.cards)
    return max(0, math.floor(room / one))


def generation_seconds(model: Transformer, serving: Serving, card: Accelerator) -> Sourced:
    """Seconds to generate the output after the prompt: ``output`` steps with a context that grows.

    The middle context stands for all: what is read grows linearly with the context (within windows, less).
    """
    middle = serving.prompt + serving.output // 2
    how = {"number": FORMATS[serving.weights], "cache": FORMATS[serving.cache]}
    one = decode_seconds(model, card, middle, serving.batch, cards=serving.cards, **how)
    return Sourced(float(one) * serving.output, *one.sources)

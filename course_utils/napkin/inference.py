"""Generating text: the KV cache, the seconds of prefill and of each token, throughput and cost.

    from course_utils import napkin
    from course_utils.cards import ACCELERATORS

    llama, card = napkin.PUBLISHED["Llama 3.1 8B"], ACCELERATORS["H100 SXM"]
    napkin.kv_cache(llama, context=2_048)  # 268_435_456 bytes
    napkin.decode_seconds(llama, card, context=2_048)  # 0.0046 s: bytes over bandwidth
    napkin.prefill_seconds(llama, card, tokens=2_048, mfu=0.5)
    napkin.serve(llama, napkin.Serving(batch=8, prompt=2_048, output=256), card="H100 SXM")  # a table

All times are lower bounds: the larger of FLOPs over peak and bytes over bandwidth. A framework's overhead (kernel
launches, sampling, scheduling) is left out.
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

# Bytes of a number in weights or cache, including block scales: one byte for 32 numbers in MXFP8 and for 16 in NVFP4,
# two bytes for 128 numbers in int4 (GPTQ, AWQ).
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

    That's 2 · layers · key-value heads · head width · tokens numbers; with latent attention, layers · (rank + rope
    width) · tokens; with sliding windows, no more tokens than a window has.

    Args:
        model: the model's shape.
        context: the length of each sequence so far, in tokens.
        batch: the number of sequences.
        number: bytes of one number, see `FORMATS`.
    """
    return math.ceil(batch * model.attended(context) * model.cache_width * number)


def sharing_cache(model: Transformer, cards: int) -> int:
    """How many of ``cards`` divide a cache among themselves: no more than there are key-value heads.

    Latent attention's cache serves all heads, so each card has a copy. (Servers therefore often give each card
    its own sequences in attention; that isn't modeled here.)
    """
    return 1 if model.latent else min(cards, model.kv_heads or model.heads)


def touched_experts(model: Transformer, tokens: int) -> float:
    """The expected number of a layer's routed experts that a step of ``tokens`` tokens reads, with uniform routing.

    It's routed · (1 − (1 − active / routed)^tokens).
    """
    if model.experts is None:
        return 0.0
    routed, active = model.experts.routed, model.experts.active
    return routed * (1 - (1 - active / routed) ** tokens)


def weights_read(model: Transformer, tokens: int, number: float = 2.0) -> float:
    """Bytes of weights that one step of ``tokens`` tokens reads.

    Not read are experts to which no token goes, and tables of which only a few rows are looked up, such as a token
    embedding that isn't also the output layer (7% of Llama 3.1 8B).
    """
    always = model.parameters - model.routed - model.looked_up
    return number * (always + model.moe_layers * touched_experts(model, tokens) * model.expert)


def forward_flops(model: Transformer, context: int) -> int:
    """FLOPs of the forward pass for one token whose queries attend to ``context`` positions: a third of training's."""
    return 2 * model.multiplied + 2 * model.attended_width * model.attended(context)


def decode_flops(model: Transformer, context: int) -> int:
    """FLOPs to generate one token after ``context`` others.

    With latent attention, queries and values are projected into the latent space instead of decompressing the cache
    (DeepSeek-AI 2024, arXiv:2405.04434, section 2.1.2), so a head multiplies 2 · rank + rope elements per position.
    """
    width = model.attended_width
    if model.latent:
        width = model.heads * (2 * model.latent.kv_rank + model.latent.rope)
    return 2 * model.multiplied + 2 * width * model.attended(context)


def _peak(card: Accelerator, number: float) -> Sourced:
    """Peak FLOP/s with weights of ``number`` bytes each, or in the next wider format that the card multiplies."""
    names = ["float4_e2m1fn_x2"] if number < 1 else []
    names += ["float8_e4m3fn", "float8_e4m3fnuz"] if number < 2 else []
    for name in [*names, "bfloat16", "float16", "float32"] if number < 4 else ["float32"]:
        if name in card.peak:
            return Sourced(card.peak[name], *card.sources)
    raise ValueError(f"weights take {number:g} bytes each: the table has no peak of {card.name} for such numbers")


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
    """Seconds until ``batch`` prompts of ``tokens`` tokens are processed and the first token of each can be sampled.

    That's their FLOPs over ``cards`` · peak · mfu, but at least the weights' bytes over bandwidth. Only the last token
    of a prompt goes through the output layer.

    Args:
        model, card: the model's shape, and the card.
        tokens: the length of each prompt.
        batch: the number of prompts.
        mfu: the fraction of the peak that is reached, at most 1.
        number: bytes of one weight, see `FORMATS`.
        cards: the number of cards that divide the matrices (tensor parallelism).
        attention: whether to count attention's products (queries with keys, attention weights with values).
    """
    positive(tokens=tokens, batch=batch, mfu=mfu, number=number, cards=cards)
    if mfu > 1:
        raise ValueError(f"the MFU is {mfu}: give it as a fraction of the peak, such as 0.5")
    work = batch * prefill_flops(model, tokens, attention=attention)
    computing = work / (cards * _peak(card, number) * mfu)
    reading = weights_read(model, batch * tokens, number) / (cards * Sourced(card.bandwidth, *card.sources))
    return longest(computing, reading, _sending(model, card, batch * tokens, cards))


def prefill_flops(model: Transformer, tokens: int, *, attention: bool = True) -> int:
    """FLOPs to process one prompt; only its last token goes through the output layer. All pairs of tokens count."""
    head = model.vocabulary * model.width
    matrices = 2 * (tokens * (model.multiplied - head) + head)
    return matrices + (tokens * 2 * model.attended_width * model.attended(tokens) if attention else 0)


def prefill_rule(model: Transformer, card: Accelerator, tokens: int, *, mfu: float, number: float = 2.0) -> Sourced:
    """Seconds of prefill by the rule of thumb: 2 · parameters · tokens FLOPs over peak · mfu, without attention."""
    positive(tokens=tokens, mfu=mfu)
    return 2 * model.active * tokens / (_peak(card, number) * mfu)


def decode_bytes(
    model: Transformer,
    context: int,
    batch: int = 1,
    *,
    number: float = 2.0,
    cache: float = 2.0,
    cards: int = 1,
) -> float:
    """Bytes of weights and cache that each card reads for one token of each sequence; see `decode_seconds`."""
    weights = weights_read(model, batch, number)
    return weights / cards + kv_cache(model, context, batch, cache) / sharing_cache(model, cards)


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

    That's the bytes of weights and cache over bandwidth, or FLOPs over peak if that takes longer. Weights are read once
    for all sequences; each sequence has its own cache.

    Args:
        model, card: the model's shape, and the card.
        context: the length of each sequence so far, in tokens.
        batch: the number of sequences generated together.
        number, cache: bytes of a number in weights and in the cache, see `FORMATS`.
        cards: the number of cards that divide the matrices (tensor parallelism), and the cache as in `sharing_cache`.
    """
    positive(context=context, batch=batch, number=number, cache=cache, cards=cards)
    moved = decode_bytes(model, context, batch, number=number, cache=cache, cards=cards)
    reading = moved / Sourced(card.bandwidth, *card.sources)
    computing = batch * decode_flops(model, context) / (cards * _peak(card, number))
    return longest(reading, computing, _sending(model, card, batch, cards))


def _sending(model: Transformer, card: Accelerator, tokens: int, cards: int) -> Sourced:
    """Seconds for two all-reduces of activations in each layer of the forward pass."""
    if cards == 1:
        return Sourced(0.0)
    one = collective("all_reduce", 2 * tokens * model.width, cards, card)
    return Sourced(2 * model.layers * float(one), *one.sources)


@dataclass(frozen=True)
class Serving:
    """How a model is served.

    Attributes:
        batch: the number of sequences generated together.
        prompt, output: tokens in each prompt, and tokens generated for it.
        weights, cache: their formats, keys of `FORMATS`.
        cards: the number of cards that divide the model (tensor parallelism).
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
    """Bytes that one card holds at the end of the output: its part of weights and cache."""
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
    """Seconds to generate the output after the prompt: ``output`` steps with a growing context.

    All steps are counted at the middle context, because the bytes read grow linearly with it (less with windows).
    """
    middle = serving.prompt + serving.output // 2
    number, cache = FORMATS[serving.weights], FORMATS[serving.cache]
    one = decode_seconds(model, card, middle, serving.batch, number=number, cache=cache, cards=serving.cards)
    return Sourced(float(one) * serving.output, *one.sources)

"""The shapes of published models, made from the table of facts."""

from __future__ import annotations

from types import MappingProxyType

from course_utils.facts import FACTS
from course_utils.napkin.shapes import Experts, Latent, Transformer


def _number(name: str) -> int:
    return int(FACTS[name].value)


def _sizes(name: str) -> tuple[int, int, int]:
    layers, width, heads = (_number(f"{name} {what}") for what in ("layers", "width", "heads"))
    return layers, width, heads


def _gpt(name: str) -> Transformer:
    """A learned positional embedding, a tied head, biases, LayerNorm, GELU."""
    vocabulary, positions = _number(f"{name} vocabulary"), _number(f"{name} context")
    return Transformer(*_sizes(name), vocabulary, positions=positions, tied=True, biases=True)


def _llama(name: str, vocabulary: str = "", experts: Experts | None = None) -> Transformer:
    """Rotary embeddings, grouped-query attention, RMSNorm, a gated feed-forward block or experts of that kind."""
    return Transformer(
        *_sizes(name),
        _number(vocabulary or f"{name.rpartition(' ')[0]} vocabulary"),
        kv_heads=_number(f"{name} key and value heads"),
        feed_forward=_number(f"{name} feed forward width"),
        gated=True,
        norm_vectors=1,
        experts=experts,
    )


def _palm() -> Transformer:
    name = "PaLM 540B"
    return Transformer(
        *_sizes(name),
        _number(f"{name} vocabulary"),
        kv_heads=1,
        feed_forward=_number(f"{name} feed forward width"),
        gated=True,
        tied=True,
        norm_vectors=1,
        head_width=_number(f"{name} head width"),
    )


def _deepseek() -> Transformer:
    name = "DeepSeek-V3"
    ranks = [_number(f"{name} {what}") for what in ("kv rank", "rope width", "head width", "head width", "query rank")]
    counts = ("routed experts", "experts per token", "expert width", "shared experts", "dense layers")
    return Transformer(
        *_sizes(name),
        _number(f"{name} vocabulary"),
        feed_forward=_number(f"{name} feed forward width"),
        gated=True,
        norm_vectors=1,
        experts=Experts(*(_number(f"{name} {what}") for what in counts)),
        latent=Latent(*ranks),
    )


def _nanochat() -> Transformer:
    """Every second layer adds a value embedding, weighted by a gate that has 32 numbers for each head."""
    name = "nanochat d24"
    layers, width, heads = _sizes(name)
    vocabulary, context = _number(f"{name} vocabulary"), _number(f"{name} context")
    short = context // 2
    return Transformer(
        layers,
        width,
        heads,
        vocabulary,
        norm_vectors=0,
        windows=(short, short, short, 0),
        gates=layers // 2 * heads * 32,
        lookups=layers // 2 * vocabulary * width,
    )


_MIXTRAL = Experts(
    *(_number(f"Mixtral 8x7B {what}") for what in ("experts", "experts per token", "feed forward width"))
)

PUBLISHED = MappingProxyType(
    {
        "GPT-2 small": _gpt("GPT-2 small"),
        "GPT-2 XL": _gpt("GPT-2 XL"),
        "GPT-3": _gpt("GPT-3"),
        "PaLM 540B": _palm(),
        "Llama 2 7B": _llama("Llama 2 7B"),
        "Llama 2 13B": _llama("Llama 2 13B"),
        "Llama 2 70B": _llama("Llama 2 70B"),
        "Mistral 7B": _llama("Mistral 7B", "Mistral vocabulary"),
        "Mixtral 8x7B": _llama("Mixtral 8x7B", "Mistral vocabulary", _MIXTRAL),
        "Llama 3.1 8B": _llama("Llama 3.1 8B"),
        "Llama 3.1 70B": _llama("Llama 3.1 70B"),
        "Llama 3.1 405B": _llama("Llama 3.1 405B"),
        "DeepSeek-V3": _deepseek(),
        "nanochat d24": _nanochat(),
    }
)

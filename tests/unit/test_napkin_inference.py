"""Generating text: caches to the byte against a model that keeps one, times, batches, quantized weights, experts."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from small_models import LLAMA_LIKE, SHAPES, Llama
from torch import Tensor

from course_utils import napkin
from course_utils.cards import ACCELERATORS
from course_utils.facts import FACTS
from course_utils.flops import count_flops

H100 = ACCELERATORS["H100 SXM"]
EIGHT, SEVENTY = napkin.PUBLISHED["Llama 3.1 8B"], napkin.PUBLISHED["Llama 3.1 70B"]
DEEPSEEK = napkin.PUBLISHED["DeepSeek-V3"]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_cache_takes_the_bytes_of_the_keys_and_values_that_a_model_makes(shape: napkin.Transformer) -> None:
    model, ids, kept = Llama(shape), torch.randint(shape.vocabulary, (3, 7)), []
    for layer in model.layers:
        for part in (layer.k, layer.v):
            part.register_forward_hook(lambda _module, _inputs, output: kept.append(output))
    model(ids)
    assert napkin.kv_cache(shape, 7, 3, number=4.0) == sum(tensor.nbytes for tensor in kept)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_forward_pass_takes_the_flops_that_torch_counts(shape: napkin.Transformer) -> None:
    with torch.device("meta"):
        model, ids = Llama(shape), torch.empty(2, 24, dtype=torch.int64)
    assert count_flops(lambda: model(ids)) == 2 * 24 * napkin.forward_flops(shape, 24)

    def last_only() -> Tensor:
        return model.head(model.layers(model.tokens(ids))[:, -1])

    assert count_flops(last_only) == 2 * napkin.prefill_flops(shape, 24)
    assert napkin.forward_flops(shape, 24) * 3 == sum(napkin.training_flops(shape, 24).values())


def test_decoding_and_prefill_of_llama_3_8b_on_an_h100_take_what_the_formulas_give_by_hand() -> None:
    """Bytes read, cache included, over bandwidth: 4.56 ms; 2 · parameters · 2,048 at half the peak: 66.5 ms."""
    assert napkin.decode_seconds(EIGHT, H100, 2_048) == pytest.approx(4.56e-3, abs=5e-6)
    assert napkin.prefill_rule(EIGHT, H100, 2_048, mfu=0.5) == pytest.approx(66.5e-3, abs=5e-5)
    exactly = napkin.prefill_seconds(EIGHT, H100, 2_048, mfu=0.5, attention=False)
    assert exactly < napkin.prefill_seconds(EIGHT, H100, 2_048, mfu=0.5) < 66.5e-3  # the head for one token only


def test_weights_are_read_once_for_a_batch_and_caches_are_not() -> None:
    one, eight = (napkin.decode_seconds(EIGHT, H100, 2_048, batch) for batch in (1, 8))
    assert eight - one == pytest.approx(7 * napkin.kv_cache(EIGHT, 2_048) / H100.bandwidth)
    assert eight < 1.2 * one
    # With enough sequences the tensor cores are the limit, not the memory.
    many = napkin.decode_seconds(EIGHT, H100, 1, 4_096)
    assert many == pytest.approx(4_096 * napkin.decode_flops(EIGHT, 1) / H100.peak["bfloat16"])


def test_narrow_weights_are_read_faster_and_take_less() -> None:
    times = [napkin.decode_seconds(EIGHT, H100, 1, number=napkin.FORMATS[f]) for f in ("bfloat16", "int8", "int4")]
    assert times[0] / times[1] == pytest.approx(2, rel=1e-4) and times[1] / times[2] == pytest.approx(1.94, rel=1e-2)
    halved = napkin.serve(EIGHT, napkin.Serving(weights="float8", cache="float8"))
    full = napkin.serve(EIGHT, napkin.Serving())
    for kind in ("weights", "KV cache"):
        assert halved["bytes on each card", kind] * 2 == full["bytes on each card", kind]
    with pytest.raises(ValueError, match=r"take . bytes each: .* no peak of (T4|Apple M1)"):
        napkin.decode_seconds(EIGHT, replace(H100, name="T4", peak={"float16": 1.0}), 1, number=4.0)


def test_windows_and_latent_attention_keep_less() -> None:
    windowed = replace(LLAMA_LIKE, windows=(8, 0))  # three layers: 8, all, 8
    assert napkin.kv_cache(windowed, 100, number=1) == (8 + 100 + 8) * 2 * 64
    assert napkin.kv_cache(windowed, 5, number=1) == napkin.kv_cache(LLAMA_LIKE, 5, number=1)
    as_if = replace(DEEPSEEK, latent=None, head_width=128)  # the same heads with keys and values of their own
    assert napkin.kv_cache(as_if, 1) / napkin.kv_cache(DEEPSEEK, 1) == pytest.approx(56.9, abs=0.05)


def test_experts_are_read_as_tokens_need_them() -> None:
    assert napkin.touched_experts(DEEPSEEK, 1) == pytest.approx(8)
    assert napkin.touched_experts(DEEPSEEK, 10_000) == pytest.approx(256)
    assert 8 * 30 < napkin.touched_experts(DEEPSEEK, 100) + 8 < 256
    assert napkin.weights_read(DEEPSEEK, 1, 1.0) == pytest.approx(DEEPSEEK.active - DEEPSEEK.looked_up)
    assert napkin.weights_read(DEEPSEEK, 10**6, 1.0) == pytest.approx(DEEPSEEK.parameters - DEEPSEEK.looked_up)
    assert napkin.touched_experts(EIGHT, 5) == 0 and napkin.weights_read(EIGHT, 5) == 2 * (
        EIGHT.parameters - EIGHT.looked_up
    )


def test_tables_of_which_only_rows_are_read_do_not_count() -> None:
    """The token embedding, unless it's the output layer too, learned positions, and what nanochat looks up."""
    for name in ("Llama 3.1 8B", "GPT-2 small", "nanochat d24"):
        model = napkin.PUBLISHED[name]
        tables = (0 if model.tied else model.vocabulary * model.width) + model.positions * model.width + model.lookups
        assert tables == {"Llama 3.1 8B": 525_336_576, "GPT-2 small": 786_432}.get(name, tables) > 0
        assert napkin.weights_read(model, 1) == 2 * (model.parameters - tables)


def test_cards_share_weights_but_a_cache_only_among_its_heads() -> None:
    planned = {cards: napkin.serve(SEVENTY, napkin.Serving(batch=4, cards=cards)) for cards in (1, 8, 16)}
    cache = [p["bytes on each card", "KV cache"] for p in planned.values()]
    assert cache[0] == 8 * cache[1] == 8 * cache[2]  # there are eight key-value heads
    latent = [napkin.serve(DEEPSEEK, napkin.Serving(cards=c))["bytes on each card", "KV cache"] for c in (1, 8)]
    assert latent[0] == latent[1]
    assert planned[8]["time", "a token"] < planned[1]["time", "a token"] / 7
    assert planned[16]["time", "a token"] > planned[8]["time", "a token"] / 2  # InfiniBand, and no less of the cache


def test_what_does_not_fit_is_advised_and_the_advice_fits() -> None:
    planned = napkin.serve(SEVENTY, napkin.Serving(batch=8))
    assert planned.fits is False and planned["bytes on each card", "largest batch"] == 0
    assert planned.advice[0].startswith("2 cards: ") and planned.advice[1].startswith("weights in float8: ")
    assert napkin.serve(SEVENTY, napkin.Serving(batch=8, cards=2)).fits
    assert napkin.serve(SEVENTY, napkin.Serving(batch=8, weights="float8")).fits
    crowded = napkin.serve(EIGHT, napkin.Serving(batch=1_000))
    (batch,) = [int(text.removeprefix("a batch of ").replace(",", "")) for text in crowded.advice if "batch" in text]
    assert napkin.serve(EIGHT, napkin.Serving(batch=batch)).fits
    assert not napkin.serve(EIGHT, napkin.Serving(batch=batch + 1)).fits


def test_throughput_and_cost_follow_from_the_times() -> None:
    serving = napkin.Serving(batch=8, prompt=1_000, output=100)
    planned = napkin.serve(EIGHT, serving, price=3.6)
    whole = planned["time", "to the first token"] + 100 * planned["time", "a token"]
    assert planned["time", "a request"] == pytest.approx(whole)
    assert planned["throughput", "of requests"] == pytest.approx(800 / whole)
    assert planned["cost", "a million tokens"] == pytest.approx(1e6 / (800 / whole) * 3.6 / 3600)
    assert planned["energy", "a million tokens"] == pytest.approx(1e6 / (800 / whole) * 0.7 / 3600)
    assert {line.group for line in planned.lines} >= {"parameters", "time", "throughput", "cost", "energy"}


def test_the_mfu_of_prefill_says_where_it_comes_from() -> None:
    (usual,), (given,) = (
        [line for line in napkin.serve(EIGHT, napkin.Serving(), mfu=mfu).lines if line.what == "MFU of prefill"]
        for mfu in (None, 0.6)
    )
    one, many = (FACTS[f"PaLM 540B prefill of {prompts}, MFU"] for prompts in ("one prompt", "512 prompts"))
    assert one.value < usual.value < many.value and usual.source == one.source
    assert str(one) in usual.formula and str(many) in usual.formula
    assert (given.value, given.formula, given.source) == (0.6, "assumed", "given")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: napkin.Serving(batch=0), "batch is 0"),
        (lambda: napkin.Serving(weights="int3"), "weights is 'int3': expected one of float32, bfloat16"),
        (lambda: napkin.prefill_seconds(EIGHT, H100, 10, mfu=50), "give it as a fraction of the peak"),
        (lambda: napkin.decode_seconds(EIGHT, H100, 0), "context is 0"),
        (lambda: napkin.serve(EIGHT, napkin.Serving(), card="abacus"), "no card called 'abacus'"),
    ],
)
def test_impossible_servings_are_refused(make, says) -> None:
    with pytest.raises(ValueError, match=says):
        make()

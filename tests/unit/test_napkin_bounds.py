"""No plan is faster than FLOPs over peak, bytes over bandwidth, or bytes sent over the link."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from course_utils import napkin
from course_utils.cards import ACCELERATORS, Accelerator, Link
from course_utils.napkin.inference import FORMATS, held
from course_utils.napkin.step import RECIPES

powers = st.integers(0, 5).map(lambda k: 2**k)
latents = st.builds(
    napkin.Latent, st.integers(1, 64), st.integers(1, 8), st.integers(1, 16), st.integers(1, 16), st.integers(0, 64)
)


@st.composite
def shapes(draw: st.DrawFn) -> napkin.Transformer:
    layers = 2 ** draw(st.integers(0, 6))
    heads, head = 2 ** draw(st.integers(0, 6)), 2 ** draw(st.integers(2, 7))
    experts = None
    if draw(st.booleans()):
        routed = 2 ** draw(st.integers(0, 6))
        active, dense = draw(st.integers(1, routed)), draw(st.integers(0, layers))
        experts = napkin.Experts(routed, active, draw(st.integers(1, 512)), draw(st.integers(0, 2)), dense)
    return napkin.Transformer(
        layers,
        heads * head,
        heads,
        draw(st.integers(1, 200_000)),
        kv_heads=heads // 2 ** draw(st.integers(0, heads.bit_length() - 1)),
        feed_forward=draw(st.integers(1, 30_000)),
        gated=draw(st.booleans()),
        norm_vectors=draw(st.sampled_from([0, 1, 2])),
        tied=draw(st.booleans()),
        experts=experts,
        latent=draw(st.none() | latents),
        windows=tuple(draw(st.lists(st.integers(0, 4_096), max_size=4))),
    )


@st.composite
def steps(draw: st.DrawFn, model: napkin.Transformer) -> napkin.Step:
    tensor = 2 ** draw(st.integers(0, min(3, model.heads.bit_length() - 1)))
    pipeline = 2 ** draw(st.integers(0, min(3, model.layers.bit_length() - 1)))
    routed = model.experts.routed if model.experts else 1
    expert = 2 ** draw(st.integers(0, min(3, routed.bit_length() - 1)))
    groups = expert * draw(powers)
    return napkin.Step(
        draw(st.integers(1, 1_000)),
        draw(st.integers(1, 100_000)),
        draw(st.sampled_from(list(RECIPES))),
        draw(st.sampled_from(list(napkin.OPTIMIZERS))),
        groups * tensor * pipeline,
        draw(st.integers(0, 3)),
        draw(st.booleans()),
        draw(st.booleans()),
        tensor,
        pipeline,
        expert,
        draw(st.integers(1, 100)),
        draw(st.sampled_from([0, 0, 1, 16])),
    )


LINKED = [card for card in ACCELERATORS.values() if card.links and card.links[-1].cards is None]


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.data())
def test_no_training_is_faster_than_its_flops_its_bytes_and_its_messages(data: st.DataObject) -> None:
    model = data.draw(shapes())
    step, card = data.draw(steps(model)), data.draw(st.sampled_from(LINKED))
    recipe = RECIPES[step.recipe]
    assume(all(any(d in card.peak for d in dtypes) for dtypes in (recipe.layers, recipe.others)))
    mfu = data.draw(st.floats(1e-3, 1))
    planned = napkin.plan(model, step, card=card, tokens=1e12, mfu=mfu)
    seconds = planned["time", "a step"] * (1 + 1e-9)
    tokens = step.batch * step.context * step.accumulation * step.groups

    # No product is faster than the fastest that the recipe uses; what is recomputed is computed.
    fastest = max(card.peak.get(d, 0) for d in (*recipe.layers, *recipe.others))
    flops = sum(napkin.training_flops(model, step.context, step).values())
    again = napkin.recomputed_flops(model, step.context) if step.checkpointing else 0
    assert seconds >= tokens * (flops + again) / (step.cards * fastest)
    assert planned["time", "peak"] <= fastest * (1 + 1e-9)
    assert all(math.isfinite(line.value) and line.value >= 0 for line in planned.lines) and str(planned)
    reached = tokens * flops / (step.cards * planned["time", "peak"]) / seconds
    assert reached <= mfu * (1 + 1e-9)

    # Every weight is read forward and backward, and the update writes weights and optimizer state.
    held_bytes = napkin.memory(model, step)
    weights = held_bytes["parameters"] + held_bytes.get("frozen parameters", 0)
    written = held_bytes["parameters"] + held_bytes["master copy"] + held_bytes["optimizer state"]
    assert seconds >= (2 * step.accumulation * weights + written) / card.bandwidth

    # A message takes at least its bytes over the fastest link.
    for transfer in napkin.communication(model, step, card).values():
        assert seconds >= transfer.seconds
        assert transfer.nbytes >= 0 and transfer.seconds >= 0
        fast = max(link.bandwidth for link in card.links)
        slow = min(link.bandwidth for link in card.links)
        assert transfer.seconds <= transfer.nbytes / slow * (1 + 1e-9)
        assert transfer.seconds >= transfer.nbytes / fast / 2  # over two levels, the longer of which counts

    days = planned["time", "training"]
    assert days == pytest.approx(1e12 / tokens * planned["time", "a step"] / 86_400)
    assert planned["time", "of one card"] == pytest.approx(days * 24 * step.cards)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.data())
def test_no_generation_is_faster_than_its_bytes_and_its_flops(data: st.DataObject) -> None:
    model = data.draw(shapes())
    cards = 2 ** data.draw(st.integers(0, min(3, model.heads.bit_length() - 1)))
    card = data.draw(st.sampled_from([c for c in LINKED if "bfloat16" in c.peak]))
    formats = st.sampled_from([name for name in FORMATS if name != "float32"])
    serving = napkin.Serving(
        data.draw(st.integers(1, 1_000)),
        data.draw(st.integers(1, 100_000)),
        data.draw(st.integers(1, 10_000)),
        data.draw(formats),
        data.draw(formats),
        cards,
    )
    mfu = data.draw(st.floats(1e-3, 1))
    planned = napkin.serve(model, serving, card=card, mfu=mfu, price=1)
    fastest, number, cache = max(card.peak.values()), FORMATS[serving.weights], FORMATS[serving.cache]
    slack = 1 + 1e-9
    prompts = serving.batch * napkin.prefill_flops(model, serving.prompt)
    assert planned["time", "to the first token"] * slack >= prompts / (cards * fastest * mfu)
    middle = serving.prompt + serving.output // 2
    moved = napkin.weights_read(model, serving.batch, number) + napkin.kv_cache(model, middle, serving.batch, cache)
    assert planned["time", "a token"] * slack >= moved / (cards * card.bandwidth)
    flops = serving.batch * napkin.decode_flops(model, middle)
    assert planned["time", "a token"] * slack >= flops / (cards * fastest)
    assert planned["time", "a request"] * slack >= serving.output * moved / (cards * card.bandwidth)
    assert planned["throughput", "of requests"] <= planned["throughput", "while generating"] * slack

    # No more weights are read than there are, and no fewer than those that one token is multiplied by.
    read = napkin.weights_read(model, serving.batch, number)
    assert number * (model.active - model.looked_up) <= read * slack and read <= number * model.parameters * slack
    batch, limit = planned[("bytes on each card", "largest batch")], card.memory_bytes
    if batch:
        assert sum(held(model, replace(serving, batch=int(batch))).values()) <= limit
    assert sum(held(model, replace(serving, batch=int(batch) + 1)).values()) > limit
    assert planned.fits == (serving.batch <= batch)


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 4_096), st.integers(1, 64), st.sampled_from(LINKED), st.floats(1, 1e12))
def test_no_collective_is_faster_than_its_bytes_over_the_link(
    ranks: int, stride: int, card: Accelerator, nbytes: float
) -> None:
    for what in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send"):
        seconds = napkin.collective(what, nbytes, ranks, card, stride=stride)
        moved = napkin.sent(what, nbytes, ranks)
        rates = [link.bandwidth for link in card.links]
        assert seconds == 0 if ranks == 1 else moved / max(rates) / 2 <= seconds <= moved / min(rates) * (1 + 1e-9)


def test_a_card_without_a_network_says_that_communication_is_not_counted() -> None:
    model, step = napkin.PUBLISHED["Llama 2 7B"], napkin.Step(1, 2_048, cards=64, zero=3)
    planned = napkin.plan(model, step, card="RTX 4090")
    assert any("communication isn't counted: RTX 4090 has no link" in warning for warning in planned.warnings)
    linked = replace(ACCELERATORS["RTX 4090"], links=(Link("PCIe", 32e9, 8), Link("Ethernet", 1e9, None)))
    slower = napkin.plan(model, step, card=linked)
    assert not any("communication" in warning for warning in slower.warnings)
    assert slower["time", "a step"] > planned["time", "a step"]

"""The planner against published training runs.

A prediction has to agree with a published number to every digit that was printed: the number stands for the whole range
of values that round to it.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from course_utils import napkin
from course_utils.facts import FACTS

Range = tuple[float, float]


def printed(text: str) -> Range:
    """The numbers that are printed like this: ``"1.4e12"`` is 1.35e12 to 1.45e12."""
    number = Decimal(text)
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    half = Decimal(5).scaleb(exponent - 1)
    return float(number - half), float(number + half)


def fact(name: str, text: str) -> Range:
    """The range of a fact, given as it is printed in its source."""
    assert FACTS[name].value == pytest.approx(float(text), rel=1e-12)
    return printed(text)


def exact(value: float) -> Range:
    return value, value


def agree(first: Range, second: Range) -> bool:
    """Whether there are numbers that are in both ranges."""
    return first[0] <= second[1] and second[0] <= first[1]


@pytest.mark.parametrize(
    ("run", "flops", "parameters", "data", "tokens"),
    [
        ("GPT-3", "3.14e23", None, "GPT-3", "300e9"),
        ("Chinchilla", "5.76e23", "70e9", "Chinchilla", "1.4e12"),
        ("Llama 2 13B", "1.6e23", None, "Llama 2", "2.0e12"),
        ("Llama 3.1 8B", "7.2e23", None, "Llama 3.1", "15e12"),
        ("Llama 3.1 405B", "3.8e25", None, "Llama 3.1 405B", "15.6e12"),
        ("OLMo 2 7B", "1.8e23", "7298617344", "OLMo 2 7B", "4.05e12"),
        ("OLMo 2 13B", "4.6e23", "13716198400", "OLMo 2 13B", "5.6e12"),
        ("Falcon 40B", "28e2", "40e9", "Falcon 40B", "1.00e12"),
        ("Falcon 180B", "435e2", "180e9", "Falcon 180B", "3.5e12"),
    ],
)
def test_predicted_training_flops_agree_with_published_ones(
    run: str, flops: str, parameters: str | None, data: str, tokens: str
) -> None:
    n = fact(f"{run} parameters", parameters) if parameters else exact(napkin.PUBLISHED[run].parameters)
    d = fact(f"{data} tokens", tokens)
    low, high = (napkin.training(n[i], d[i], peak=1, mfu=1).flops for i in range(2))
    name = f"{run} training FLOPs"
    if run.startswith("Falcon"):  # in petaFLOP/s-days
        want = tuple(1e15 * 86_400 * end for end in printed(flops))
        assert FACTS[name].value == 1e15 * 86_400 * float(flops)
    else:
        want = fact(name, flops)
    assert agree((low, high), (want[0], want[1]))
    assert high / low < 1.1 and want[1] / want[0] < 1.07  # two digits say no less


def shape_of(run: str, vocabulary: str, **more: Any) -> napkin.Transformer:
    layers, width, heads = (int(FACTS[f"{run} {what}"].value) for what in ("layers", "width", "heads"))
    return napkin.Transformer(layers, width, heads, int(FACTS[vocabulary].value), **more)


def test_palms_training_flops_agree_if_attention_counts() -> None:
    context, width = (
        FACTS["PaLM 540B context"].value,
        FACTS["PaLM 540B head width"].value * FACTS["PaLM 540B heads"].value,
    )
    attention = 12 * FACTS["PaLM 540B layers"].value * width * context
    tokens = FACTS["PaLM 540B tokens"].value
    low, high = ((6 * n + attention) * tokens for n in fact("PaLM 540B parameters", "540.35e9"))
    assert agree((low, high), fact("PaLM 540B training FLOPs", "2.56e24"))
    assert not agree(exact(low - attention * tokens), fact("PaLM 540B training FLOPs", "2.56e24"))


def gpt_of(run: str, vocabulary: str) -> napkin.Transformer:
    positions = int(FACTS[f"{run} context"].value)
    return shape_of(run, vocabulary, positions=positions, tied=True, biases=True)


@pytest.mark.parametrize(
    ("run", "mfu", "throughput"),
    [
        ("MosaicML 1B, long context", "0.2634", "44050"),
        ("MosaicML 7B", "0.4644", "85144"),
        ("MosaicML 13B", "0.3979", "38336"),
        ("MosaicML 70B", "0.4257", "66523"),
        ("MT-NLG 530B", "0.302", "65.43e3"),
        ("PaLM 540B", "0.462", "238.3e3"),
    ],
)
def test_published_mfu_and_throughput_agree_with_the_planned_time(run: str, mfu: str, throughput: str) -> None:
    """All of these count 6 for each parameter, whether it multiplies or not, and attention."""
    if run.startswith("MosaicML"):
        shape, peak = gpt_of(run, "MosaicML vocabulary"), FACTS["H100 SXM sparse peak, as printed"].value / 2
        assert shape.parameters == FACTS[f"{run} parameters"].value
    elif run == "PaLM 540B":
        head, hidden = (int(FACTS[f"{run} {what} width"].value) for what in ("head", "feed forward"))
        ways = {"kv_heads": 1, "gated": True, "tied": True, "norm_vectors": 1}
        shape = shape_of(run, f"{run} vocabulary", feed_forward=hidden, head_width=head, **ways)
        peak = FACTS["TPU v4 bfloat16 peak"].value
        # Of the last digit printed our norms are a half too many.
        assert shape.parameters == pytest.approx(FACTS[f"{run} parameters"].value, abs=0.01e9)
    else:
        shape, peak = gpt_of(run, "Megatron vocabulary"), FACTS["A100 SXM 80GB bfloat16 peak"].value
        assert agree(exact(shape.parameters), fact(f"{run} parameters", "530e9"))
    context = int(FACTS[f"{run} context"].value)
    flops = 6 * shape.parameters + napkin.training_flops(shape, context)["attention"]
    speed, reached = fact(f"{run} throughput", throughput), fact(f"{run} MFU", mfu)
    # In hours for each token of a single card: the time that is planned, against the time that was measured.
    planned = [napkin.run(flops, peak=peak, mfu=share).gpu_hours for share in reversed(reached)]
    measured = [FACTS[f"{run} devices"].value / rate / 3600 for rate in reversed(speed)]
    assert agree((planned[0], planned[1]), (measured[0], measured[1]))
    assert planned[1] / planned[0] < 1.004


@pytest.mark.parametrize(
    ("cards", "seconds", "rate"), [(2_240, "60.1", "126e12"), (2_800, "50.2", "121e12"), (3_360, "44.4", "113e12")]
)
def test_steps_with_checkpointing_agree_with_published_seconds_and_rates(cards: int, seconds: str, rate: str) -> None:
    """Megatron-Turing's rates count what is computed again."""
    shape = gpt_of("MT-NLG 530B", "Megatron vocabulary")
    flops = sum(napkin.training_flops(shape, 2_048).values()) + napkin.recomputed_flops(shape, 2_048)
    work = flops * FACTS["MT-NLG 530B tokens in a step"].value
    low, high = (work / cards / end for end in reversed(fact(f"MT-NLG 530B rate on {cards:,} GPUs", rate)))
    assert agree((low, high), fact(f"MT-NLG 530B step on {cards:,} GPUs", seconds))
    assert high / low < 1.01


def test_published_gpu_hours_lie_between_planned_ones() -> None:
    """Llama 3.1 405B was trained at an MFU of 38 to 43 %, for more than 90 % of the time."""
    reached = [FACTS[f"Llama 3.1 405B MFU, {when}"].value for when in ("8,192 GPUs", "long context")]
    run = {"tokens": FACTS["Llama 3.1 405B tokens"].value, "card": "H100 SXM"}
    step = napkin.Step(1, int(FACTS["Llama 3.1 405B context"].value), cards=8_192, zero=3)
    fast, slow = (
        napkin.plan(napkin.PUBLISHED["Llama 3.1 405B"], step, mfu=mfu, **run)["time", "of one card"] for mfu in reached
    )
    share = FACTS["Llama 3.1 405B effective training time"].value
    assert fast < FACTS["Llama 3.1 405B GPU-hours"].value < slow / share
    assert slow / share < 1.3 * fast

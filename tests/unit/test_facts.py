"""course_utils.facts: every number says where it comes from; what can be recomputed agrees with what was published."""

import re
import subprocess
import sys

import pytest

from course_utils import facts, hardware
from course_utils.facts import FACTS, UNITS, Fact, UnknownFact


def value(name: str) -> float:
    return FACTS[name].value


@pytest.mark.parametrize("name", FACTS)
def test_a_fact_is_complete(name):
    fact = FACTS[name]
    assert fact.value > 0
    assert fact.unit in UNITS
    assert len(fact.source) > 8 and fact.source.strip() == fact.source
    assert re.fullmatch(r"20[12]\d-(0[1-9]|1[0-2])", fact.date)
    assert fact.date <= hardware.TABLE_DATE, "a source from the future"
    assert fact.unit != "share" or fact.value < 1
    assert all(
        isinstance(fact.value, int) or float(fact.value).is_integer()
        for unit in ("layers", "heads", "devices")
        if unit == fact.unit
    )


def test_every_card_is_in_the_table_with_the_numbers_of_the_hardware_table():
    for card in hardware.ACCELERATORS.values():
        for dtype, rate in card.peak.items():
            fact = FACTS[f"{card.name} {str(dtype).removeprefix('torch.')} peak"]
            assert (fact.value, fact.unit, fact.source) == (rate, "FLOP/s", card.source)
        assert value(f"{card.name} bandwidth") == card.bandwidth
        if card.memory_bytes is not None:
            assert value(f"{card.name} memory") == card.memory_bytes
    assert value("H100 SXM sparse peak, as printed") / 2 == pytest.approx(value("H100 SXM bfloat16 peak"), rel=2e-4)


def test_no_name_is_given_twice():
    assert len(list(FACTS)) == len(set(FACTS)) == len(FACTS)


def test_looking_up_what_is_no_card_does_not_load_torch():
    code = "import sys\nfrom course_utils.facts import FACTS\nFACTS['GPT-3 tokens']\nassert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("GPT3 training FLOPs", "GPT-3 training FLOPs"),
        ("h100 sxm memory", "H100 SXM memory"),
        ("llama 405b parameters", "Llama 3.1 405B parameters"),
        ("MFU PaLM", "PaLM 540B MFU"),
    ],
)
def test_an_unknown_name_names_its_neighbours(asked, near):
    with pytest.raises(UnknownFact) as caught:
        FACTS[asked]
    assert near in caught.value.near
    assert repr(asked) in str(caught.value) and repr(near) in str(caught.value)


def test_an_unknown_name_without_neighbours_names_the_table():
    with pytest.raises(KeyError, match=r"facts.table\(\) shows them all"):
        FACTS["the price of tea"]
    assert "the price of tea" not in FACTS and FACTS.get("the price of tea") is None


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("GPT-3 parameters", "175 billion parameters"),
        ("Llama 3.1 405B tokens", "15.6 trillion tokens"),
        ("DeepSeek-V3 cost", "5.576 million USD"),
        ("GPT-3 training FLOPs", "3.14e23 FLOPs"),
        ("H100 SXM memory", "80 GB"),
        ("A100 SXM 80GB bfloat16 peak", "312 TFLOP/s"),
        ("PaLM 540B MFU", "46.2 %"),
        ("GPT-3 width", "12,288 elements"),
        ("H100 SXM rent", "3.99 USD/GPU-hour"),
        ("GPT-3 on A100s duration", "34 days"),
    ],
)
def test_a_fact_is_readable(name, shown):
    assert str(FACTS[name]) == shown


def test_the_table_shows_value_source_date_and_note():
    shown = facts.table("US reporting threshold", "GPT-3 tokens")
    html = shown._repr_html_()
    assert re.findall("<tr><td[^>]*>([^<]+)<", html) == ["US reporting threshold", "GPT-3 tokens"]
    for text in ("1e26 FLOPs", "Executive Order 14110, section 4.2(b), 2023-10", "revoked in January 2025"):
        assert text.replace("1e26", "1.00e26") in html
    assert str(shown).splitlines()[1].startswith("GPT-3 tokens            300 billion tokens  Brown et al.")
    assert str(facts.table()).count("\n") == len(FACTS) - 1
    with pytest.raises(UnknownFact):
        facts.table("GPT-3 tokens", "GPT-5 tokens")


def test_the_table_escapes_html():
    row = facts.Table({"a < b": Fact(1, "days", "<b>who</b>", "2024-01", "<i>")})._repr_html_()
    assert "a &lt; b" in row and "&lt;b&gt;who" in row and "&lt;i&gt;" in row


# ------------------------------------------------------------------- published numbers against each other

SIX_N_D = {  # published count, model, tokens, how far 6·N·D may be off
    "GPT-3 training FLOPs": ("GPT-3 parameters", "GPT-3 tokens", 0.01),
    "Chinchilla training FLOPs": ("Chinchilla parameters", "Chinchilla tokens", 0.03),
    "Gopher training FLOPs": ("Gopher parameters", "Gopher tokens", 0.13),  # they counted attention and more
    "Llama 3.1 405B training FLOPs": ("Llama 3.1 405B parameters", "Llama 3.1 405B tokens", 0.01),
}


@pytest.mark.parametrize("name", SIX_N_D)
def test_six_n_d_gives_the_published_training_flops(name):
    parameters, tokens, spread = SIX_N_D[name]
    assert 6 * value(parameters) * value(tokens) == pytest.approx(value(name), rel=spread)


def mfu(run: str, attention_width: float, peak: str, *, attention: bool) -> float:
    per_token = 6 * value(f"{run} parameters")
    if attention:
        per_token += 12 * value(f"{run} layers") * attention_width * value(f"{run} context")
    return per_token * value(f"{run} throughput") / (value(f"{run} devices") * value(peak))


@pytest.mark.parametrize(
    ("run", "peak", "attention"),
    [
        ("PaLM 540B", "TPU v4 bfloat16 peak", True),
        ("PaLM 540B", "TPU v4 bfloat16 peak", False),
        ("MT-NLG 530B", "A100 SXM 80GB bfloat16 peak", True),
        ("MT-NLG 530B", "A100 SXM 80GB bfloat16 peak", False),
        ("MosaicML 7B", "H100 SXM bfloat16 peak", True),
    ],
)
def test_published_throughput_gives_the_published_mfu(run, peak, attention):
    name = f"{run} MFU" if attention else f"{run} MFU without attention"
    head = f"{run} head width"
    width = value(head) * value(f"{run} heads") if head in FACTS else value(f"{run} width")
    digits = 0.00005 if run == "MosaicML 7B" else 0.001  # as many as were printed
    assert mfu(run, width, peak, attention=attention) == pytest.approx(value(name), abs=digits)


@pytest.mark.parametrize("run", ["8,192 GPUs", "16,384 GPUs", "long context"])
def test_llama_3s_rates_give_its_utilisation(run):
    share = value(f"Llama 3.1 405B rate, {run}") / value("H100 SXM bfloat16 peak")
    assert share == pytest.approx(value(f"Llama 3.1 405B MFU, {run}"), abs=0.01)


@pytest.mark.parametrize(("run", "model"), [("GPT-3 on A100s", "GPT-3"), ("1T model on A100s", "1T model on A100s")])
def test_megatrons_formula_gives_its_days(run, model):
    work = 8 * value(f"{model} parameters") * value(f"{model} tokens")  # 8, not 6: activations are recomputed
    days = work / (value(f"{run} devices") * value(f"{run} rate")) / 86_400
    assert days == pytest.approx(value(f"{run} duration"), abs=1)


@pytest.mark.parametrize(
    ("run", "card", "low", "high"),
    [
        ("Llama 2 7B", "A100 SXM 80GB", 0.39, 0.40),
        ("Llama 2 13B", "A100 SXM 80GB", 0.37, 0.38),
        ("Llama 2 70B", "A100 SXM 80GB", 0.42, 0.43),
        ("Llama 3.1 8B", "H100 SXM", 0.13, 0.14),
        ("Llama 3.1 70B", "H100 SXM", 0.25, 0.26),
        ("Llama 3.1 405B", "H100 SXM", 0.34, 0.36),
    ],
)
def test_gpu_hours_give_a_believable_utilisation(run, card, low, high):
    tokens = (
        value("Llama 2 tokens") if "Llama 2" in run else FACTS.get(f"{run} tokens", FACTS["Llama 3.1 tokens"]).value
    )
    work = 6 * value(f"{run} parameters") * tokens
    assert low < work / (value(f"{run} GPU-hours") * 3600 * value(f"{card} bfloat16 peak")) < high


def test_deepseeks_cost_is_its_hours_times_its_price():
    assert value("DeepSeek-V3 GPU-hours") * value("H800 rent, DeepSeek's assumption") == value("DeepSeek-V3 cost")


def test_model_sizes_follow_from_their_shapes():
    vocabulary = value("Llama 3.1 vocabulary")
    for size in ("8B", "70B", "405B"):
        layers, d, heads, kv, hidden = (
            value(f"Llama 3.1 {size} {what}")
            for what in ("layers", "width", "heads", "key and value heads", "feed forward width")
        )
        layer = 2 * d * d + 2 * d * d * kv / heads + 3 * d * hidden + 2 * d
        assert layers * layer + 2 * vocabulary * d + d == value(f"Llama 3.1 {size} parameters")
    d, layers = value("GPT-3 width"), value("GPT-3 layers")
    matrices = layers * (4 * d * d + 2 * d * value("GPT-3 feed forward width"))
    embeddings = (value("GPT-3 vocabulary") + value("GPT-3 context")) * d
    assert matrices + embeddings == pytest.approx(value("GPT-3 parameters"), rel=0.005)

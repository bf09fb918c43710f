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


def test_looking_up_a_fact_that_is_not_about_a_card_does_not_load_torch():
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
def test_an_unknown_name_names_its_neighbors(asked, near):
    with pytest.raises(UnknownFact) as caught:
        FACTS[asked]
    assert near in caught.value.near
    assert repr(asked) in str(caught.value) and repr(near) in str(caught.value)


def test_an_unknown_name_without_neighbors_names_the_table():
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
def test_a_fact_prints_as_a_readable_number_with_its_unit(name, shown):
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

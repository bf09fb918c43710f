"""course_utils.facts: every number says where it comes from; what can be recomputed agrees with what was published."""

import json
import re
from dataclasses import replace

import pytest

from course_utils import facts, hardware
from course_utils.facts import FACTS, UNITS, Fact, UnknownFact
from course_utils.napkin import PUBLISHED, Step, plan
from course_utils.sources import KINDS, Source, Sourced, longest, sources_of, total


def value(name: str) -> float:
    return FACTS[name].value


def check_source(source: Source) -> None:
    """A source can be opened, and it's known what it is and when somebody last looked."""
    assert len(source.title) > 8 and source.title.strip() == source.title
    assert "by way of" not in source.title and "secondary" not in source.title, "name what was read"
    assert re.fullmatch(r"https://[a-z0-9.-]+\.[a-z]{2,}(/[^\s]*)?", source.url)
    assert source.kind in KINDS
    for month in (source.date, source.verified):
        assert re.fullmatch(r"20[12]\d-(0[1-9]|1[0-2])", month)
    assert source.date <= source.verified <= hardware.TABLE_DATE, "verified before it was published, or in the future"
    assert source.verified[:4] == hardware.TABLE_DATE[:4], "compare the number with its source again"


@pytest.mark.parametrize("card", hardware.ACCELERATORS)
def test_a_card_has_a_source(card):
    (source,) = hardware.ACCELERATORS[card].sources
    check_source(source)


@pytest.mark.parametrize("name", FACTS)
def test_a_fact_is_complete(name):
    fact = FACTS[name]
    assert fact.value > 0
    assert fact.unit in UNITS
    check_source(fact.source)
    assert fact.unit != "share" or fact.value < 1
    assert all(
        isinstance(fact.value, int) or float(fact.value).is_integer()
        for unit in ("layers", "heads", "devices")
        if unit == fact.unit
    )


@pytest.mark.parametrize("without", ["title", "url", "kind", "date", "verified"])
def test_a_source_without_one_of_its_parts_is_noticed(without):
    source = FACTS["GPT-3 tokens"].source
    check_source(source)
    with pytest.raises(AssertionError):
        check_source(replace(source, **{without: ""}))
    with pytest.raises(AssertionError):
        check_source(Source(source.title, source.url, source.kind, source.date))  # nobody compared it


def test_every_card_is_in_the_table_with_the_numbers_of_the_hardware_table():
    for card in hardware.ACCELERATORS.values():
        for dtype, rate in card.peak.items():
            fact = FACTS[f"{card.name} {dtype} peak"]
            assert (fact.value, fact.unit, fact.source) == (rate, "FLOP/s", card.source)
        assert value(f"{card.name} bandwidth") == card.bandwidth
        if card.memory_bytes is not None:
            assert value(f"{card.name} memory") == card.memory_bytes
    assert value("H100 SXM sparse peak, as printed") / 2 == pytest.approx(value("H100 SXM bfloat16 peak"), rel=2e-4)


def test_no_name_is_given_twice():
    assert len(list(FACTS)) == len(set(FACTS)) == len(FACTS)


SOURCES = [Source(f"somebody, page {page}", "https://example.org", "measured", "2024-01") for page in range(3)]


def test_sources_survive_arithmetic():
    a, b = Sourced(6.0, SOURCES[0]), Sourced(4.0, SOURCES[1], SOURCES[0])
    results = {"+": (a + b, 10), "-": (a - b, 2), "*": (a * b, 24), "/": (a / b, 1.5)}
    for result, value in results.values():
        assert result == value and set(result.sources) == {SOURCES[0], SOURCES[1]}
    alone = {"r+": (1 + a, 7), "r-": (1 - a, -5), "r*": (2 * a, 12), "r/": (3 / a, 0.5), "-": (-a, -6), "i": (a / 3, 2)}
    for result, value in alone.values():
        assert result == value and result.sources == (SOURCES[0],)
    assert total([a, 1, b]) == 11 and set(sources_of(total([a, 1, b]))) == {SOURCES[0], SOURCES[1]}
    assert longest(b, a, 5) == 6 and longest(b, a, 5).sources == (SOURCES[0],)
    assert sources_of(1, a) == (SOURCES[0],) and json.dumps(a) == "6.0"
    with pytest.raises(TypeError):
        a + "b"
    assert FACTS["GPT-3 tokens"].number.sources == (FACTS["GPT-3 tokens"].source,)


def test_a_facts_source_reaches_the_printed_line():
    planned = plan(PUBLISHED["GPT-3"], Step(1, 2_048))
    rent, mfu = FACTS["H100 SXM rent"].source, FACTS["Llama 3.1 405B MFU, 16,384 GPUs"].source
    (card,) = hardware.ACCELERATORS["H100 SXM"].sources
    (line,) = [line for line in planned.lines if line.group == "cost"]
    assert {str(rent), str(mfu), str(card)} <= set(line.sources)
    shown = str(planned)
    (row,) = [row for row in shown.splitlines() if row.startswith("  rent ")]
    marks = {int(mark) for mark in re.search(r"\[([\d, ]+)\]$", row)[1].split(", ")}
    titles = {int(mark): title for mark, title in re.findall(r"^\[(\d+)\] (.*)$", shown, re.M)}
    printed = " ".join(titles[mark] for mark in marks)
    for source in (rent, mfu, card):
        assert str(source) in printed and source.url in printed


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
        ("PaLM 540B MFU", "46.2%"),
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
    for text in ("1e26 FLOPs", "Executive Order 14110, section 4.2(b)</a>, 2023-10", "revoked in January 2025"):
        assert text.replace("1e26", "1.00e26") in html
    assert str(shown).splitlines()[1].startswith("GPT-3 tokens            300 billion tokens  Brown et al.")
    assert str(facts.table()).count("\n") == len(FACTS) - 1
    with pytest.raises(UnknownFact):
        facts.table("GPT-3 tokens", "GPT-5 tokens")


def test_the_table_escapes_html():
    source = Source("<b>who</b>", 'https://example.org/"', "paper", "2024-01")
    row = facts.Table({"a < b": Fact(1, "days", source, "<i>")})._repr_html_()
    assert "a &lt; b" in row and "&lt;b&gt;who" in row and "&lt;i&gt;" in row


def test_similar_names_are_looked_for_only_where_they_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """An explorer asks in every drawing for a rent that few accelerators have."""

    def never(*_: object) -> list[str]:
        raise AssertionError("it looked for similar names")

    monkeypatch.setattr(facts, "near", never)
    assert FACTS.get("B200 SXM rent in 1999") is None
    assert "B200 SXM rent in 1999" not in FACTS

"""docs/published.md: every prediction is as close to what was published as its row claims, and the page is current."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from course_utils.facts import FACTS
from course_utils.napkin import published

ROWS = published.rows()
PAGE = Path(__file__).parents[2] / "docs" / "published.md"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.group}: {row.what}")
def test_a_prediction_is_as_close_as_its_row_claims(row: published.Row) -> None:
    assert row.agrees, f"{row.predict():g} for {row.published}, {row.difference:+.2%}"
    assert row.formula and row.published.source.url


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.group}: {row.what}")
def test_a_tolerance_is_no_wider_than_it_has_to_be(row: published.Row) -> None:
    """One that is far off would be noticed: bounds lie within a factor of two, the rest within a few percent."""
    loose = {"nanochat d24, at the default MFU", "Llama 3.1 405B, GPU-hours"}
    assert row.tolerance <= (1.0 if row.relation != "equal" else 0.25 if row.what in loose else 0.05)
    wrong = replace(row, predict=lambda: row.predict() * 2.5)
    assert not wrong.agrees
    if row.relation == "equal":
        assert not replace(row, predict=lambda: row.predict() * (1 + 2.01 * row.tolerance + 1e-6)).agrees


def test_a_bound_on_the_wrong_side_is_noticed() -> None:
    for row in (row for row in ROWS if row.relation != "equal"):
        beyond = 1.01 if row.relation == "at least" else 0.99
        wrong = replace(row, predict=lambda row=row, beyond=beyond: row.published.value * beyond)  # type: ignore[misc]
        assert not wrong.agrees


def test_there_are_enough_numbers_and_none_is_fitted() -> None:
    assert len(ROWS) >= 30 and len({(row.group, row.what) for row in ROWS}) == len(ROWS)
    assert len({row.fact for row in ROWS}) >= 30
    assert not any(row.fitted for row in ROWS)
    groups = {row.group for row in ROWS}
    assert {"Parameters", "Training FLOPs", "MFU and FLOP/s", "Bytes", "Generating text"} <= groups


def test_nanochats_run_is_counted_to_the_last_digit() -> None:
    (row,) = [row for row in ROWS if row.fact == "nanochat d24 training FLOPs"]
    assert row.predict() == FACTS["nanochat d24 training FLOPs"].value == 4.330784131228946e19


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == published.page(), (
        "docs/published.md is stale: run `course published` and commit the result"
    )

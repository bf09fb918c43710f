"""Explorers of a best choice: model or data, the interval between saves, the batch; the best is found, and said."""

from __future__ import annotations

import re

import pytest

from course_utils.cards import ACCELERATORS
from course_utils.explorers import checkpointing, decoding, model_or_data, planner
from course_utils.napkin.inference import Serving, decode_seconds, largest_batch
from course_utils.napkin.models import PUBLISHED
from course_utils.units import counted


@pytest.mark.parametrize("budget", [1e19, 5.76e23, 5e26])
def test_no_ratio_beats_the_best_one(budget: float) -> None:
    best = model_or_data.best_ratio(budget)
    least = model_or_data.loss(*model_or_data.divided(budget, best))
    for factor in (0.01, 0.9, 1.1, 30):
        assert model_or_data.loss(*model_or_data.divided(budget, factor * best)) > least
    parameters, tokens = model_or_data.divided(budget, 7)
    assert 6 * parameters * tokens == pytest.approx(budget) and tokens == pytest.approx(7 * parameters)


def test_the_smaller_budget_gives_the_same_loss_at_its_best_ratio() -> None:
    here = model_or_data.loss(*model_or_data.divided(1e24, 2_000))
    smaller = 1e24 * model_or_data.enough(1e24, 2_000)
    best = model_or_data.divided(smaller, model_or_data.best_ratio(smaller))
    assert model_or_data.loss(*best) == pytest.approx(here)
    assert smaller < 0.3 * 1e24


def test_chinchilla_is_near_its_own_best() -> None:
    assert 10 < model_or_data.best_ratio(5.76e23) < 30


def test_no_interval_loses_less_than_the_best_one() -> None:
    for saving, between in ((60, 10_800), (1, 1e7), (600, 3_600)):
        best = checkpointing.best_interval(saving, between)
        least = sum(checkpointing.lost(best, saving, between))
        assert all(sum(checkpointing.lost(best * f, saving, between)) > least for f in (0.5, 0.98, 1.02, 2))
        first, second = checkpointing.lost(best, saving, between)
        assert first == pytest.approx(second)


def test_dragging_chooses_the_interval_below_the_hand() -> None:
    explorer = checkpointing.explore()
    frame = explorer.frame({**explorer.frame()["state"], "point": "52.0 100.0"}, "point")
    assert frame["state"]["interval"] == "1 min"


def test_a_line_that_leaves_the_axis_of_tokens_keeps_its_slope() -> None:
    """Tokens that cost nothing would double with the batch: on the logarithmic axes that's the same slope anywhere."""
    slopes = []
    for model in ("GPT-2 small", "Llama 3.1 70B"):
        svg = decoding.explore().frame({"model": model, "card": "GB300", "cards": "8"})["svg"]
        path = re.search(r'd="M([^"]+)"[^>]*data-key="free"', svg)
        assert path
        (x0, y0), (x1, y1) = ([float(each) for each in pair.split()] for pair in path[1].split(" L"))
        slopes.append((y1 - y0) / (x1 - x0))
    assert slopes[0] == pytest.approx(slopes[1], rel=0.01)


def test_throughput_is_the_planners() -> None:
    frame = decoding.explore().frame({"batch": "64", "context": "8,192"})
    model, card = PUBLISHED["Llama 3.1 8B"].reaching(8_192), ACCELERATORS["H100 SXM"]
    rate = 64 / float(decode_seconds(model, card, 8_192, 64))
    most = largest_batch(model, Serving(64, 8_192, 1), card.memory_bytes or 0)
    assert counted(rate) in frame["title"] if most >= 64 else f"{most:,}" in frame["title"]
    assert f"room for {most:,} sequences" in frame["finding"]


def test_a_plan_has_all_lines_of_the_command_with_their_sources() -> None:
    frame = planner.explore().frame({"model": "Llama 3.1 70B", "tokens": "15T"})
    assert "16.8 million" in frame["title"] or "million USD" in frame["title"]
    assert frame["lines"].count("<tr>") > 25 and 'href="https://arxiv.org/abs/1910.02054"' in frame["lines"]


def test_who_turns_to_serving_begins_with_a_plan_that_is_possible() -> None:
    explorer = planner.explore()
    trained = explorer.frame({"cards": "2048"})["state"]
    served = explorer.frame({**trained, "task": "serve"}, "task")
    assert not served["problem"] and served["state"]["cards"] == "1"
    kept = explorer.frame({**served["state"], "cards": "4"}, "cards")["state"]
    assert explorer.frame(kept)["state"]["cards"] == "4", "an address that was sent says the same"


@pytest.mark.parametrize(
    ("state", "at"),
    [
        ({"cards": "many"}, "cards"), ({"cards": "63", "tensor": "2"}, "cards"), ({"mfu": "1.4"}, "mfu"),
        ({"context": "0"}, "context"), ({"tokens": "-1"}, "tokens"), ({"model": planner.OWN, "width": "½"}, "width"),
    ],
)  # fmt: skip
def test_a_plan_that_is_none_says_at_which_control(state: dict[str, str], at: str) -> None:
    frame = planner.explore().frame(state)
    assert frame["problem"] and frame["at"] == at, (frame["problem"], frame["at"])
    assert frame["state"] | state == frame["state"]

"""Explorers of a best choice: model or data, the interval between saves, the batch; the best is found, and said."""

from __future__ import annotations

import itertools
import random
import re

import pytest
from bs4 import BeautifulSoup

from course_utils.cards import ACCELERATORS
from course_utils.explorers import checkpointing, decoding, model_or_data
from course_utils.napkin.inference import FORMATS, Serving, largest_batch
from course_utils.napkin.models import PUBLISHED
from course_utils.units import counted, readable


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


def test_far_from_failures_the_time_lost_is_youngs() -> None:
    saving, between = 1.0, 1e7
    best = checkpointing.young(saving, between)
    assert checkpointing.best_interval(saving, between) == pytest.approx(best, rel=1e-3)
    first, second = checkpointing.lost(best, saving, between)
    assert first == pytest.approx(saving / best) and second == pytest.approx(best / (2 * between), rel=2e-3)


@pytest.mark.parametrize(("interval", "saving", "between"), [(3_600, 60, 1_392), (1_140, 60, 11_133), (60, 600, 1_392)])
def test_the_time_lost_is_what_random_failures_cost(interval: float, saving: float, between: float) -> None:
    draw, pieces, passed = random.Random(0), 20_000, 0.0
    for _ in range(pieces):
        while (survives := draw.expovariate(1 / between)) < interval + saving:
            passed += survives
        passed += interval + saving
    lost = sum(checkpointing.lost(interval, saving, between))
    assert passed / (pieces * interval) - 1 == pytest.approx(lost, rel=0.03)


def test_an_interval_far_longer_than_the_time_between_failures_costs_what_it_would() -> None:
    explorer = checkpointing.explore()
    for state, cost in (
        ({"cards": "131,072", "interval": "1 h"}, "400%"),
        ({"cards": "16,384", "interval": "1 day"}, "30,000%"),
        ({"cards": "131,072", "interval": "1 day"}, "over 1,000,000%"),
    ):
        assert f" costs {cost} on top of the useful time" in explorer.frame(state)["title"]


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


def test_every_cost_of_the_interval_has_its_place_and_the_largest_an_arrow_with_its_value() -> None:
    explorer = checkpointing.explore()
    for cards, saving, interval in itertools.product(("8", "131,072"), ("1 s", "10 min"), ("1 min", "1 h", "1 day")):
        frame = explorer.frame({"cards": cards, "saving": saving, "interval": interval})
        drawn = BeautifulSoup(frame["svg"], "html.parser")
        said = re.match(r"Saving every .+? costs ((?:over )?[\d.,]+)% on top of the useful time", frame["title"])
        assert said, frame["title"]
        cost, words = (
            float(said[1].removeprefix("over ").replace(",", "")),
            [text.text for text in drawn.select("text[data-key='off text']")],
        )
        assert words == ([f"{said[1]}%"] if cost > 1_000 else []) or cost == 1_000
        best = re.search(r"The best interval is ([\d.]+) (s|min|h|days?);", frame["finding"])
        assert best
        seconds = float(best[1]) * {"s": 1, "min": 60, "h": 3_600}.get(best[2], 86_400)
        assert bool(drawn.select("[data-key='best off']")) == (not 60 <= seconds <= 86_400)
        edges = [float(str(line["d"]).split(" L")[0].split()[1]) for line in drawn.select(".course-back .l-ink")]
        for key in ("sum", "saving", "computed again"):
            for line in drawn.select(f"path[data-key='{key}']"):
                for piece in str(line["d"]).split("M"):
                    heights = [float(height) for height in re.findall(r"[\d.]+ ([\d.]+)", piece)]
                    assert not any(a == b in (22.0, 266.0) for a, b in itertools.pairwise(heights)), (edges, heights)
    drawn = BeautifulSoup(explorer.frame({"cards": "131,072", "interval": "1 day"})["svg"], "html.parser")
    assert [text.text for text in drawn.select("text[data-key='off text']")] == ["over 1,000,000%"]


def test_throughput_is_the_lectures_in_which_no_table_is_read() -> None:
    """Lecture 13: the bytes of weights that multiply, and of caches, over the bandwidth."""
    layers, width, vocabulary, token = 32, 4_096, 128_256, 2 * 2 * 32 * 8 * 128
    read = PUBLISHED["Llama 3.1 8B"].parameters - vocabulary * width
    card = ACCELERATORS["H100 SXM"]

    def seconds(batch: int) -> float:
        flops = batch * (2 * read + 4 * layers * width * 2_048)
        return max(flops / card.peak["bfloat16"], (2 * read + batch * 2_048 * token) / card.bandwidth)

    frame = decoding.explore().frame({"batch": "64"})
    assert frame["title"].startswith(f"{counted(64 / seconds(64))} tokens/s in all")
    assert f"64 sequences get {64 * seconds(1) / seconds(64):.3g} times" in frame["finding"]
    assert "get 30.4 times" in frame["finding"], "as the lecture's prediction"
    one = decoding.explore().frame({"batch": "1"})["finding"]
    assert "a token takes 4.56 ms. Memory has room for 238 sequences" in one and "times" not in one


def test_room_is_the_planners() -> None:
    frame = decoding.explore().frame({"batch": "64", "context": "8,192"})
    model, card = PUBLISHED["Llama 3.1 8B"], ACCELERATORS["H100 SXM"]
    most = largest_batch(model, Serving(64, 8_192, 1), card.memory_bytes or 0)
    assert frame["title"] == f"64 sequences don't fit: memory has room for {most:,}" and 1 < most < 64
    assert f"room for {most:,} sequences of 8,192 tokens" in frame["finding"] and " ms" not in frame["finding"]
    formats = sorted(FORMATS, key=lambda each: -FORMATS[each])
    formats = [each for each in formats if FORMATS[each] < FORMATS["bfloat16"]]
    changes = {  # from the smallest to the largest
        "weights": ("weights in {}", formats),
        "cache": ("caches in {}", formats),
        "context": ("{} tokens each", ["4,096", "2,048", "1,024", "512", "256"]),
        "cards": ("{} cards", ["2", "4", "8"]),
    }
    for batch, ways in (("64", 4), ("512", 2)):
        state = {"batch": batch, "context": "8,192"}
        said = re.search(r"tokens\. (.+) would make room", decoding.explore().frame(state)["finding"])
        assert said
        for name, (words, values) in changes.items():
            fits = [v for v in values if "tokens/s" in decoding.explore().frame(state | {name: v})["title"]]
            named = [v for v in values if words.format(v).lower() in re.split(", | or ", said[1].lower())]
            assert named == fits[:1], (batch, name)
            ways -= bool(fits)
        assert ways == 0


def test_weights_that_do_not_fit_get_a_number_of_cards_and_no_times() -> None:
    explorer, possible = decoding.explore(), set()
    for model, card, cards in itertools.product(PUBLISHED, ("A100 SXM 80GB", "V100 SXM2 16GB"), ("1", "8")):
        frame = explorer.frame({"model": model, "card": card, "cards": cards, "batch": "1", "context": "256"})
        weights, memory = 2 * PUBLISHED[model].parameters, ACCELERATORS[card].memory_bytes
        assert memory
        possible.add(weights <= int(cards) * memory)
        if weights <= int(cards) * memory:
            assert "weights alone" not in frame["title"]
            continue
        least = -(-weights // memory)
        assert frame["title"] == f"The weights alone need {readable(weights, 'B')}: at least {least} cards"
        assert not re.search(r"\d ([mµn]?s\b|tokens/s)", frame["finding"]), frame["finding"]
        assert 'data-key="rate"' not in frame["svg"] and "course-handle" not in frame["svg"]
    assert possible == {True, False}
    frame = explorer.frame({"model": "Llama 3.1 405B", "card": "A100 SXM 80GB"})
    assert frame["title"] == "The weights alone need 812 GB: at least 11 cards"


def test_no_context_is_offered_that_a_model_has_no_positions_for() -> None:
    for model, longest in {"GPT-2 small": "1,024", "GPT-3": "2,048", "Llama 3.1 8B": "131,072"}.items():
        frame = decoding.explore().frame({"model": model, "context": "131,072", "cards": "8"})
        (control,) = (each for each in frame["controls"] if each["name"] == "context")
        assert control["options"][-1] == longest
        if longest != "131,072":
            assert control["value"] == longest and f"takes at most {longest} tokens" in frame["finding"]


def test_a_model_with_few_positions_leaves_the_context_for_the_next_one() -> None:
    explorer = decoding.explore()
    state = explorer.frame()["state"]
    for change, context in (
        ({"model": "GPT-2 small"}, "1,024"), ({"batch": "16"}, "1,024"), ({"model": "Llama 3.1 8B"}, "2,048"),
        ({"context": "16,384"}, "16,384"), ({"model": "GPT-3"}, "2,048"), ({"model": "GPT-2 small"}, "1,024"),
        ({"model": "Llama 3.1 70B"}, "16,384"), ({"model": "GPT-2 small"}, "1,024"), ({"context": "512"}, "512"),
        ({"model": "Llama 3.1 8B"}, "512"),
    ):  # fmt: skip
        state = explorer.frame({**state, **change}, next(iter(change)))["state"]
        assert state["context"] == context, change
    sent = explorer.frame({"context": "65,536"})["state"]  # an address has no more than this
    assert explorer.frame({**sent, "model": "Llama 3.1 70B"}, "model")["state"]["context"] == "65,536"


def test_a_card_whose_memory_is_not_known_is_not_said_to_be_full() -> None:
    frame = decoding.explore().frame({"card": "Apple M4 Max", "batch": "4,096"})
    assert "tokens/s" in frame["title"] and "fit:" not in frame["title"] and "no room" not in frame["svg"]
    assert "check what fits" in frame["finding"]

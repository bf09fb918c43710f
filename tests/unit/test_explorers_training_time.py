"""Days and bill are those of lecture 00's formula, and only the number of cards moves one without the other."""

from __future__ import annotations

import random
import re

import pytest
from bs4 import BeautifulSoup

from course_utils.cards import ACCELERATORS
from course_utils.explorers import training_time
from course_utils.facts import FACTS

WORDS = {"million": 1e6, "billion": 1e9, "trillion": 1e12, None: 1.0}
UNITS = {"seconds": 1 / 86_400, "minutes": 1 / 1_440, "hours": 1 / 24, "days": 1.0, "years": 365.25}
EXPLORER = training_time.explore(70e9, 15e12, cards=1_024, mfu=0.4)


def number(text: str, word: str | None = None) -> float:
    return float(text.replace(",", "")) * WORDS[word]


def keyed(svg: str) -> dict[str, str]:
    """Each shape that has a key, as text."""
    return {str(shape["data-key"]): str(shape) for shape in BeautifulSoup(svg, "html.parser").select("[data-key]")}


def test_title_and_point_are_the_days_and_the_bill_at_every_setting() -> None:
    chance, frame, units = random.Random(0), EXPLORER.frame(), set()
    for _ in range(120):
        state, control = dict(frame["state"]), chance.choice(frame["controls"])
        state[control["name"]] = chance.choice(control["options"])
        frame = EXPLORER.frame(state, control["name"])
        now = frame["state"]
        if now["run"] == training_time.OWN:
            n, d = (number(*now[name].split(" ")) for name in ("parameters", "tokens"))
        else:
            n, d = (FACTS[name].value for name in training_time.RUNS[now["run"]])
        cards, peak = number(now["cards"]), ACCELERATORS[now["card"]].peak["bfloat16"]
        hours = 6 * n * d / (peak * float(now["mfu"])) / 3600
        said = re.match(r"([\d.,e-]+) (\w+) and ([\d.,e-]+)(?: (\w+llion))? (USD|[GT]PU-hours) on ", frame["title"])
        assert said, frame["title"]
        assert number(said[1]) * UNITS[said[2].lower()] == pytest.approx(hours / 24 / cards, rel=6e-3)
        rent = FACTS.get(f"{now['card']} rent")
        assert (said[5] == "USD") == (rent is not None)
        assert number(said[3], said[4]) == pytest.approx(hours * (rent.value if rent else 1), rel=6e-3)
        units.add(said[2].lower())
        point = BeautifulSoup(frame["svg"], "html.parser").select_one(".course-handle")
        assert point is not None
        assert float(str(point["cx"])) == pytest.approx(
            62 + 218 * training_time.COUNTS.index(int(cards)) / 16, abs=0.06
        )
    assert len(units) > 3


def test_more_cards_move_the_days_and_nothing_of_the_bill() -> None:
    first = keyed(EXPLORER.frame()["svg"])
    moved = {}
    for name, value in {"cards": "2,048", "mfu": "0.50", "tokens": "2 trillion", "card": "B200"}.items():
        other = keyed(EXPLORER.frame({name: value}, name)["svg"])
        moved[name] = {key for key in other if other[key] != first.get(key)}
    assert moved["cards"] == {"to axes", "days", "handle point"}
    for name in ("mfu", "tokens", "card"):
        assert moved[name] >= {"bill", "hours", "number this run", "line yours", "days"}, name


def test_the_questions_of_lecture_00() -> None:
    assert EXPLORER.frame()["title"] == "180 days and 17.6 million USD on 1,024 × H100 SXM"
    assert EXPLORER.frame({"cards": "2,048"})["title"] == "90 days and 17.6 million USD on 2,048 × H100 SXM"
    frame = EXPLORER.frame({"run": "Llama 3.1 8B", "mfu": "0.14"})
    assert frame["finding"].endswith("The published figure is 1.46 million (H100 80GB): 1.01 times that.")
    dots = {key: shape for key, shape in keyed(frame["svg"]).items() if key.startswith("bill")}
    assert set(dots) == {"bill", *(f"bill {name}" for name in training_time.RUNS)}


def test_what_is_off_an_axis_has_an_arrow_and_its_value_there() -> None:
    small = {"parameters": "1 million", "tokens": "100 million", "cards": "1"}
    large = {"parameters": "7 trillion", "tokens": "70 trillion", "cards": "1"}
    for state, days, bill, edge in ((small, "1.52 seconds", "4.21e-4", 264), (large, "235,403 years", "2.06 b", 34)):
        svg = EXPLORER.frame(state)["svg"]
        shapes, drawn = keyed(svg), BeautifulSoup(svg, "html.parser")
        assert days in shapes["off text"] and bill in shapes["bill off text"] and "GPU-hours" in shapes["bill off text"]
        assert not {"bill", "hours", "to axes", "days"} & set(shapes)
        point = drawn.select_one(".course-handle")
        assert point is not None and abs(float(str(point["cy"])) - edge) == 30
    assert not {"off", "bill off"} & set(keyed(EXPLORER.frame()["svg"]))


def test_the_point_follows_the_hand() -> None:
    frame = EXPLORER.frame({**EXPLORER.frame()["state"], "point": "280.0 100.0"}, "point")
    assert frame["state"]["cards"] == "65,536" and frame["state"]["point"] == ""

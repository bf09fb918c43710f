"""The roofline's explorer says what torch counts, for every card and dtype, and follows the hand."""

from __future__ import annotations

import itertools
import math
import re

import pytest
import torch

from course_utils.explorers import roofline
from course_utils.flops import count_flops
from course_utils.hardware import ACCELERATORS, Accelerator

MINE = Accelerator("this machine", {torch.float32: 1e11}, 2e10, None, None, "measured")
SIZES = [("1", "1", "1"), ("64", "8,192", "8,192"), ("4,096", "4,096", "16"), ("32,768", "32,768", "32,768")]


@pytest.mark.parametrize("card", ["this machine", *ACCELERATORS])
def test_it_says_how_long_a_product_takes_and_what_bounds_it(card: str) -> None:
    explorer = roofline.explore([("a", 0.1, 1e9)], card=MINE if card == "this machine" else card)
    found = MINE if card == "this machine" else ACCELERATORS[card]
    (options,) = [c["options"] for c in explorer.frame()["controls"] if c["name"] == "dtype"]
    names = [next((d for d, words in roofline._NAMES.items() if words == text), text) for text in options]
    for (text, name), sizes in itertools.product(zip(options, names, strict=True), SIZES):
        frame = explorer.frame(dict(zip(("m", "k", "n"), sizes, strict=True)) | {"card": card, "dtype": text})
        dtype = torch.float32 if name == "tf32" else getattr(torch, name)
        m, k, n = (int(size.replace(",", "")) for size in sizes)
        left, right, result = (torch.empty(s, dtype=dtype, device="meta") for s in [(m, k), (k, n), (m, n)])
        packed = 2 if dtype == torch.float4_e2m1fn_x2 else 1  # numbers in an element
        moving = (left.nbytes + right.nbytes + result.nbytes) / packed / found.bandwidth
        computing = (
            count_flops(torch.mm, left.float(), right.float()) / found.peak[dtype if card == "this machine" else name]
        )
        side = "memory-bound" if moving > computing else "compute-bound"
        if not math.isclose(moving, computing):
            assert f": {side} on {card}." in frame["finding"] and side in frame["title"].lower()
        assert ("the flat roof" in frame["finding"]) == (card == "this machine")  # no maker has promised it
        said = re.search(r"takes ([\d.,]+) (\w*)s\.$", frame["finding"])
        assert said, frame["finding"]
        seconds = float(said[1].replace(",", "")) * {"n": 1e-9, "µ": 1e-6, "m": 1e-3, "": 1.0}[said[2]]
        assert seconds == pytest.approx(max(moving, computing), rel=6e-3)


def test_it_offers_the_dtypes_that_a_card_has_and_keeps_the_one_chosen() -> None:
    explorer = roofline.explore()
    frame = explorer.frame({"dtype": "float8_e5m2", "card": "T4"}, "card")
    (dtype,) = [control for control in frame["controls"] if control["name"] == "dtype"]
    assert dtype["options"] == ["float32", "float16"] and dtype["value"] in dtype["options"]
    assert explorer.frame({"dtype": "float16", "card": "A100 SXM 80GB"}, "card")["state"]["dtype"] == "float16"


def test_dots_say_where_they_were_measured_under_every_roof() -> None:
    explorer = roofline.explore([("a", 0.1, 1e9)], card=MINE)
    for card, more in (("this machine", ""), ("H100 SXM", ", not on this card")):
        assert f">dots: measured on this machine{more}</text>" in explorer.frame({"card": card})["svg"]
    assert "measured on" not in roofline.explore().frame()["svg"]


def test_the_point_follows_the_hand_by_its_rows() -> None:
    explorer = roofline.explore()
    first = explorer.frame()["state"]
    taken = [explorer.frame({**first, "point": f"{x}.0 100.0"}, "point")["state"] for x in range(300, 700, 40)]
    rows = [int(state["m"].replace(",", "")) for state in taken]
    assert rows == sorted(rows) and len(set(rows)) > 3
    assert all(state["k"] == first["k"] and state["point"] == "" for state in taken)

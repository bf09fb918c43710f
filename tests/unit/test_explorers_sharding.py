"""ZeRO's stages: bytes as the paper counts them, bars to scale, and a title that says from which stage on it fits."""

from __future__ import annotations

import re

import pytest

from course_utils import napkin
from course_utils.cards import ACCELERATORS
from course_utils.explorers import sharding
from course_utils.units import readable


def test_each_stage_divides_one_kind_more() -> None:
    n = napkin.PUBLISHED["Llama 3.1 8B"].parameters
    for cards in (1, 8, 1024):
        for stage in range(4):
            divided = {"optimizer state": 12, "gradients": 2, "parameters": 2}
            for (kind, size), first in zip(divided.items(), (1, 2, 3), strict=True):
                expected = size * n / (cards if stage >= first else 1)
                assert sharding.held("Llama 3.1 8B", cards, stage)[kind] == pytest.approx(expected, abs=2)


def test_the_title_says_where_it_fits() -> None:
    explorer = sharding.explore()
    for model in sharding.MODELS:
        for card in ("H100 SXM", "V100 SXM2 16GB", "MI355X"):
            for cards in ("1", "16", "1,024"):
                memory = ACCELERATORS[card].memory_bytes
                assert memory
                totals = [sum(sharding.held(model, int(cards.replace(",", "")), z).values()) for z in range(4)]
                title = explorer.frame({"model": model, "card": card, "cards": cards})["title"]
                fits = [z for z, total in enumerate(totals) if total <= memory]
                words = {
                    0: "without ZeRO",
                    1: "with ZeRO 1 or higher",
                    2: "with ZeRO 2 or higher",
                    3: "only with ZeRO 3",
                }
                where = f"fits {words[fits[0]]}" if fits else "doesn't fit at any stage"
                assert title.startswith(f"{model} {where}: ")
                assert readable(totals[fits[0] if fits else 3], "B") in title and readable(memory, "B") in title
    many, few = (explorer.frame({"model": "Llama 3.1 70B", "cards": cards})["title"] for cards in ("16", "8"))
    assert "only with ZeRO 3: 70.6 GB on each of 16" in many and "doesn't fit at any stage" in few


def test_bars_are_to_scale_and_the_axis_stays_for_any_number_of_cards() -> None:
    explorer = sharding.explore()
    backs = set()
    for cards in ("1", "2", "64", "1,024"):
        svg = explorer.frame({"cards": cards}, "cards")["svg"]
        backs.add(svg.split('class="course-front"')[0].split("course-back")[1])
        heights = {key: float(h) for h, key in re.findall(r'height="([\d.]+)"[^>]*data-key="([a-z ]+ \d)"', svg)}
        whole = sum(sharding.held("Llama 3.1 8B", 1, 0).values())
        scale = sum(heights.get(f"{kind} 0", 0) for kind in sharding.KINDS) / whole
        for stage in range(4):
            for kind, held in sharding.held("Llama 3.1 8B", int(cards.replace(",", "")), stage).items():
                assert heights.get(f"{kind} {stage}", 0) == pytest.approx(held * scale, abs=0.2)
    assert len(backs) == 1


def test_zoomed_the_memory_has_its_place_whatever_the_model() -> None:
    places = set()
    for model in sharding.MODELS:
        svg = sharding.explore(model).frame({"zoom": True, "cards": "256"})["svg"]
        places |= set(re.findall(r'd="([^"]+)"[^>]*data-key="memory"', svg))
    assert len(places) == 1

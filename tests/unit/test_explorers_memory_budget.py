"""Bars and title are the planner's bytes, and what is pinned stays while other settings move."""

from __future__ import annotations

import itertools
import random
import re
from typing import Any

import pytest
from bs4 import BeautifulSoup

from course_utils import napkin
from course_utils.explorers import memory_budget
from course_utils.units import readable

EXPLORER = memory_budget.explore("Llama 3.1 8B", "H100 SXM", batch=1, context=8_192, cards=8)


def bars(svg: str) -> dict[str, dict[str, float]]:
    """Each bar's place and width, by key."""
    rects = BeautifulSoup(svg, "html.parser").select(".course-front rect[data-key]")
    return {str(r["data-key"]): {k: float(str(r[k])) for k in ("x", "width")} for r in rects}


def walk(steps: int) -> list[dict[str, Any]]:
    """Frames of random moves, one control at a time."""
    chance, frames = random.Random(0), [EXPLORER.frame()]
    for _ in range(steps):
        state, control = dict(frames[-1]["state"]), chance.choice(frames[-1]["controls"])
        state[control["name"]] = chance.choice(control["options"]) if control["options"] else not control["value"]
        frames.append(EXPLORER.frame(state, control["name"]))
    return frames


def test_bars_and_title_are_the_planners_bytes_at_every_setting() -> None:
    sides, largest = set(), set()
    for frame in walk(150):
        state = frame["state"]
        shape, step = memory_budget.budget(state)
        kinds, memory = napkin.memory(shape, step), memory_budget.CARDS[state["card"]]
        total = sum(kinds.values())
        fits = total <= memory
        holder = f"each of {step.cards:,} {state['card']} cards" if step.cards > 1 else f"one {state['card']}"
        said = f"{readable(abs(total - memory), 'B')} {'left' if fits else 'too much'}"
        assert frame["title"] == f"{said} on {holder}"
        drawn = bars(frame["svg"])
        pixels = (760 - 76 - 106) / (memory_budget.REACH * memory)
        for kind, size in kinds.items():
            assert drawn[f"{kind} {kind}"]["width"] == pytest.approx(min(size * pixels, 578), abs=0.06)
        starts = itertools.accumulate([0, *kinds.values()])
        for kind, start in zip(kinds, starts, strict=False):
            assert drawn[f"in all {kind}"]["x"] == pytest.approx(106 + min(start * pixels, 578), abs=0.06)
        assert ("too much" in drawn) != fits
        found = re.search(r"The largest part is ([a-z ]+) \((\d+)%\)", frame["finding"])
        assert found and kinds[found[1]] == max(kinds.values())
        assert int(found[2]) == round(100 * kinds[found[1]] / total)
        sides.add(fits)
        largest.add(found[1])
    assert sides == {True, False} and len(largest) > 2


def test_the_explorer_answers_what_lectures_08_and_12_ask() -> None:
    """Which control makes it fit, where activations come from with recomputation, and the longest context that fits."""
    first = EXPLORER.frame()
    assert first["title"] == "96.9 GB too much on each of 8 H100 SXM cards"
    fitting = {
        (control["name"], value)
        for control in first["controls"]
        for value in control["options"] or (True, False)
        if control["name"] not in ("model", "card", "cards", "pin")
        and "left on" in EXPLORER.frame({control["name"]: value})["title"]
    }
    assert fitting == {("zero", "ZeRO 2: and gradients"), ("zero", "ZeRO 3: and parameters")}
    both = {"zero": "ZeRO 3: and parameters", "checkpointing": True}
    assert "the largest part of the activations is what the loss saves (54%)" in EXPLORER.frame(both)["finding"]
    titles = {n: EXPLORER.frame({**both, "context": f"{n:,}"}) for n in memory_budget.CONTEXTS}
    longest = max(n for n, frame in titles.items() if "left on" in frame["title"])
    assert longest == 65_536 and "The largest part is activations" in titles[longest]["finding"]


def test_a_context_beyond_a_models_positions_is_said() -> None:
    explorer = memory_budget.explore()
    for model, context, said in (("GPT-2 small", "8,192", True), ("GPT-2 small", "1,024", False),
                                 ("Llama 3.1 8B", "131,072", False)):  # fmt: skip
        finding = explorer.frame({"model": model, "context": context})["finding"]
        assert (f"{model} takes at most 1,024 tokens: here it has {context} positions." in finding) == said
        assert ("at most" in finding) == said


def test_a_pin_keeps_a_row_of_the_settings_at_which_it_was_set() -> None:
    pinned = EXPLORER.frame({"pin": True}, "pin")
    assert "These settings are pinned" in pinned["finding"] and len(pinned["state"]["pinned"]) < 200
    state = {**pinned["state"], "zero": "ZeRO 3: and parameters", "checkpointing": True}
    frame = EXPLORER.frame(state, "zero")
    assert frame["finding"].endswith("153 GB less than with recompute off, sharding none.")
    now, before = bars(frame["svg"]), bars(EXPLORER.frame()["svg"])
    for kind in memory_budget.LOOKS:
        assert (
            now[f"{kind} {kind} pinned"]["width"] == before[f"{kind} {kind}"]["width"] > now[f"{kind} {kind}"]["width"]
        )
    off = EXPLORER.frame({**frame["state"], "pin": False}, "pin")
    assert off["state"]["pinned"] == "" and not any("pinned" in key for key in bars(off["svg"]))
    for odd in ("", "x", "Llama 3.1 8B; x", pinned["state"]["pinned"].replace("H100 SXM", "Apple M1")):
        assert EXPLORER.frame({"pin": True, "pinned": odd})["state"]["pin"] is False

"""A pipeline's timetable: the two schedules as they are printed elsewhere, and the explorer that draws them."""

from __future__ import annotations

import math
import re

import pytest

from course_utils import napkin
from course_utils.explorers import timetable

FORWARD_FIRST = """
F0 F1 F2 F3 F4 F5  .  .  .  .  .  . B0 B1 B2 B3 B4 B5
 . F0 F1 F2 F3 F4 F5  .  .  .  . B0 B1 B2 B3 B4 B5  .
 .  . F0 F1 F2 F3 F4 F5  .  . B0 B1 B2 B3 B4 B5  .  .
 .  .  . F0 F1 F2 F3 F4 F5 B0 B1 B2 B3 B4 B5  .  .  .
"""
ONE_FORWARD_ONE_BACKWARD = """
F0 F1 F2 F3  .  .  . B0 F4 B1 F5 B2  . B3  . B4  . B5
 . F0 F1 F2  .  . B0 F3 B1 F4 B2 F5 B3  . B4  . B5  .
 .  . F0 F1  . B0 F2 B1 F3 B2 F4 B3 F5 B4  . B5  .  .
 .  .  . F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5  .  .  .
"""


@pytest.mark.parametrize(("early", "text"), [(False, FORWARD_FIRST), (True, ONE_FORWARD_ONE_BACKWARD)])
def test_the_schedules_are_those_of_the_papers(early: bool, text: str) -> None:
    assert napkin.schedule(4, 6, early) == [line.split() for line in text.strip().splitlines()]


@pytest.mark.parametrize("stages", timetable.STAGES)
@pytest.mark.parametrize("early", [False, True])
def test_a_schedule_waits_as_long_as_the_formula_says(stages: int, early: bool) -> None:
    for microbatches in (1, 2, 5, 10, 40):
        lines = napkin.schedule(stages, microbatches, early)
        step = napkin.Step(1, 1, cards=stages, pipeline=stages, accumulation=microbatches)
        assert math.isclose(sum(line.count(".") for line in lines) / sum(map(len, lines)), napkin.bubble(step))
        most = [min(stages - stage, microbatches) if early else microbatches for stage in range(stages)]
        assert [max(napkin.kept(line)) for line in lines] == most
        assert {napkin.kept(line)[-1] for line in lines} == {0}


def test_the_title_and_the_finding_are_true() -> None:
    for stages in timetable.STAGES:
        for microbatches in timetable.MICROBATCHES:
            frame = timetable.explore(stages, microbatches).frame()
            line = napkin.schedule(stages, microbatches, early=True)[0]
            if stages > 1:
                said = re.findall(r"(\d+) of (\d+) ticks, a bubble of (\d+)%", frame["title"])[0]
                waits, ticks, share = map(int, said)
                assert (waits, ticks, share) == (line.count("."), len(line), round(100 * waits / ticks))
                assert f"stage 0 keeps those of up to {max(napkin.kept(line))}," in frame["finding"]
            else:
                assert "no bubble" in frame["title"] and "." not in line
    frame = timetable.explore().frame({"ticks": "9"})
    assert "keeps the activations of 6 microbatches with all forward passes first, and of 4 with" in frame["finding"]


def test_time_adds_passes_and_moves_nothing() -> None:
    explorer = timetable.explore(6, 10)
    backs, done = set(), []
    for time in [*map(str, range(30)), "all"]:
        svg = explorer.frame({"ticks": time}, "ticks")["svg"]
        backs.add(svg.split('class="course-front"')[0].split("course-back")[1])
        done.append(len("".join(re.findall(r">([FB0-9]+)</text>", svg))))
    assert len(backs) == 1 and done == sorted(done)
    assert svg.count(">F0F1F2F3F4F5F6F7F8F9</text>") == 12, "both schedules, all stages"


def test_the_end_stays_the_end_and_the_axes_stay_where_they_are() -> None:
    explorer = timetable.explore()
    few, many = (explorer.frame({"microbatches": m, "ticks": "all"}, "microbatches") for m in ("2", "10"))
    assert few["state"]["ticks"] == many["state"]["ticks"] == "all"
    backs = {frame["svg"].split('class="course-front"')[0].split("course-back")[1] for frame in (few, many)}
    assert len(backs) == 1

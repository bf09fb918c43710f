"""The explorer of the roofline: every setting makes a picture, and says what torch says."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from course_utils.flops import count_flops
from course_utils.hardware import ACCELERATORS, Accelerator
from course_utils.widgets import explorer as explorers
from course_utils.widgets import roofline
from course_utils.widgets.explorer import Explorer, Picture


def values(control: Any) -> list[Any]:
    """All that a control can be set to."""
    if hasattr(control, "options"):
        return [option[1] if isinstance(option, tuple) else option for option in control.options]
    if hasattr(control, "min"):
        steps = round((control.max - control.min) / control.step)
        return [type(control.value)(control.min + i * control.step) for i in range(steps + 1)]
    return [False, True]


def some(control: Any, chance: random.Random) -> list[Any]:
    """All that a control can be set to; of a long scale its ends, its middle and a few more."""
    found = values(control)
    if len(found) <= 17:
        return found
    inside = chance.sample(range(1, len(found) - 1), 7)
    return [found[i] for i in (0, len(found) // 2, len(found) - 1, *inside)]


def settings(explorer: Explorer, steps: int) -> Iterator[Picture]:
    """Moves one control after the other, to some of its values each, in random order, then all to their extremes.

    The others stay where they are, so that the values of all controls meet. ``steps`` random moves go on from there.
    """

    def put(name: str, value: Any) -> Picture:
        explorer.controls[name].value = value
        assert explorer.problem == ""
        return explorer.picture

    chance = random.Random(0)
    moves = [(name, value) for name, control in explorer.controls.items() for value in some(control, chance)]
    chance.shuffle(moves)
    for name, value in moves:
        possible = values(explorer.controls[name])  # another control may have changed them
        yield put(name, value if value in possible else chance.choice(possible))
    for end in (0, -1):
        yield from (put(name, values(control)[end]) for name, control in explorer.controls.items())
    for _ in range(steps):
        name = chance.choice(list(explorer.controls))
        yield put(name, chance.choice(values(explorer.controls[name])))


EXPLORERS: dict[str, Callable[[], Explorer]] = {
    "roofline": roofline.explore,
    "roofline with points": lambda: roofline.explore([("a", 0.1, 1e9), ("b", 30.0, 2e12)], card="T4"),
}


@pytest.mark.parametrize("name", EXPLORERS)
def test_an_explorer_draws_the_same_picture_each_time_and_names_every_control(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = EXPLORERS[name](), EXPLORERS[name]()
    assert first.png() == second.png() and first.picture.finding == second.picture.finding
    assert all(control.description for control in first.controls.values())
    monkeypatch.setattr(explorers, "to_html", lambda figure, alt: "")  # only the last picture is compared
    for explorer in (first, second):
        for control in explorer.controls.values():
            control.value = values(control)[-1]
    assert first.png() == second.png()


@pytest.fixture
def unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves out the SVG, which is not what is tested here."""
    monkeypatch.setattr(explorers, "to_html", lambda figure, alt: "")


def marks(picture: Picture, name: str) -> list[tuple[float, float]]:
    """Where the marks of that name are."""
    lines = [line for ax in picture.figure.axes for line in ax.lines if line.get_gid() == name]
    return [(line.get_xdata()[0], line.get_ydata()[0]) for line in lines]


def number(text: str) -> float:
    """``"1,234"`` and ``"3.14e23"`` as numbers."""
    return float(text.replace(",", ""))


@pytest.mark.usefixtures("unseen")
@pytest.mark.parametrize("own", [False, True])
def test_roofline_says_how_long_a_product_takes_and_what_bounds_it(own: bool) -> None:
    points = [("a", 0.1, 1e9), ("b", 30.0, 2e12)]
    mine = Accelerator("this machine", {torch.float32: 1e11}, 2e10, None, None, "measured")
    explorer = roofline.explore(points, card=mine if own else "H100 SXM")
    sides = set()
    for picture in settings(explorer, 30):
        now = explorer.values
        card = mine if now["card"] == "this machine" else ACCELERATORS[now["card"]]
        dtype = torch.float32 if now["dtype"] == "tf32" else getattr(torch, now["dtype"])
        m, k, n = now["m"], now["k"], now["n"]
        left, right, result = (torch.empty(s, dtype=dtype, device="meta") for s in [(m, k), (k, n), (m, n)])
        packed = 2 if dtype == torch.float4_e2m1fn_x2 else 1  # numbers in an element
        moving = (left.nbytes + right.nbytes + result.nbytes) / packed / card.bandwidth
        computing = count_flops(torch.mm, left.float(), right.float()) / card.peak[now["dtype"]]
        seconds = max(moving, computing)
        ((intensity, rate),) = marks(picture, "this product")
        assert rate == pytest.approx(computing * card.peak[now["dtype"]] / seconds)
        assert intensity == pytest.approx(computing * card.peak[now["dtype"]] / (moving * card.bandwidth))
        side = "memory-bound" if moving > computing else "compute-bound"
        sides.add(side)
        if not math.isclose(moving, computing):
            assert f": {side} on {now['card']}." in picture.finding
            assert side in picture.figure.texts[0].get_text()
        labels = " ".join(text.get_text() for text in picture.figure.axes[0].texts)
        own_roof = now["card"] == "this machine"  # it may be measured, and no maker has promised it
        assert (" roof" in labels, "peak, dense" in labels) == (own_roof, not own_roof), labels
        assert ("the roof" in picture.finding, "the peak" in picture.finding) == (own_roof, not own_roof)
        said = re.search(r"takes ([\d.,]+) (\w*)s\.$", picture.finding)
        assert said, picture.finding
        prefix = {"n": 1e-9, "µ": 1e-6, "m": 1e-3, "": 1.0}[said[2]]
        assert number(said[1]) * prefix == pytest.approx(seconds, rel=6e-3)
        assert [marks(picture, name) for name, *_ in points] == [[(x, y)] for _, x, y in points]
    assert sides == {"memory-bound", "compute-bound"}


def test_roofline_offers_the_dtypes_that_a_card_has() -> None:
    explorer = roofline.explore(card="H100 SXM")
    explorer.controls["dtype"].value = "float8_e5m2"
    explorer.controls["card"].value = "T4"
    assert [dtype for _, dtype in explorer.controls["dtype"].options] == ["float32", "float16"]
    assert explorer.problem == "" and explorer.values["dtype"] in ACCELERATORS["T4"].peak
    explorer.controls["dtype"].value = "float16"
    explorer.controls["card"].value = "A100 SXM 80GB"
    assert explorer.values["dtype"] == "float16"  # stays where the new card has it

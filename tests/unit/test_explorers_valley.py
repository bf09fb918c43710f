"""The valley's optimizers are PyTorch's, and what the title says happened."""

from __future__ import annotations

import math
import re

import pytest
import torch
from bs4 import BeautifulSoup

from course_utils.explorers import valley
from course_utils.explorers.explorer import NARROW, WIDE

TORCH = {
    "SGD": lambda p, rate: torch.optim.SGD(p, lr=rate),
    "SGD with momentum": lambda p, rate: torch.optim.SGD(p, lr=rate, momentum=0.9),
    "AdaGrad": lambda p, rate: torch.optim.Adagrad(p, lr=rate, eps=1e-8),
    "RMSProp": lambda p, rate: torch.optim.RMSprop(p, lr=rate),
    "Adam": lambda p, rate: torch.optim.Adam(p, lr=rate),
}


@pytest.mark.parametrize("name", valley.OPTIMIZERS)
@pytest.mark.parametrize(("ratio", "turn"), [(15, 0), (30, 45), (1, 90)])
def test_a_path_is_that_of_torch(name: str, ratio: int, turn: int) -> None:
    a, b, c = valley.curvature(ratio, turn)
    point = torch.tensor([-2.2, 0.8], dtype=torch.float64, requires_grad=True)
    optimizer = TORCH[name]([point], 0.05)
    path = valley.walk(name, (-2.2, 0.8), 0.05, ratio, turn, 30)
    assert len(path) == 31
    for mine in path[1:]:
        optimizer.zero_grad()
        loss = (a * point[0] ** 2 + 2 * b * point[0] * point[1] + c * point[1] ** 2) / 2
        loss.backward()
        optimizer.step()
        assert mine == pytest.approx(point.tolist(), abs=1e-9)


def test_sgd_converges_below_two_over_the_curvature_and_not_above() -> None:
    for ratio in (2, 10, 50):
        start = valley.loss((-2.2, 0.8), ratio, 20)
        below, above = (valley.walk("SGD", (-2.2, 0.8), rate / ratio, ratio, 20, 300)[-1] for rate in (1.9, 2.1))
        assert valley.loss(below, ratio, 20) < start < valley.loss(above, ratio, 20)


def test_the_title_says_when_the_walk_arrives_or_how_large_the_loss_is_after_it_diverges() -> None:
    explorer = valley.explore()
    title = explorer.frame({"rate": "0.2", "steps": "40"})["title"]
    assert title.startswith("SGD at a rate of 0.2 diverges: after ") and title.endswith(" steps the loss is 5.80e24")
    frame = explorer.frame({"steps": "100"})
    (steps,) = [int(word) for word in frame["title"].split() if word.isdigit()]
    path = valley.walk("SGD", (-2.2, 0.8), 0.1, 15, 0, 100)
    losses = [valley.loss(point, 15, 0) for point in path]
    assert losses[steps] < valley.CLOSE <= losses[steps - 1]


def test_the_start_follows_the_hand() -> None:
    explorer = valley.explore()
    frame = explorer.frame({**explorer.frame()["state"], "start": "380.0 155.0"}, "start")
    assert (frame["state"]["x"], frame["state"]["y"], frame["state"]["start"]) == ("0.0", "0.0", "")


def test_only_what_is_inside_is_left_of_a_path_and_it_is_cut_at_the_edges() -> None:
    path = [(0.0, 0.0), (2.0, 0.0), (2.0, 4.0), (-1.0, 1.0), (-1.0, 0.0), (-3.0, -2.0)]
    assert valley.parts(path, (1.0, 1.0)) == [[(0, 0), (1, 0)], [(-1, 1), (-1, 0)]]
    assert valley.parts([(-2.0, -2.0), (2.0, 2.0), (2.0, 0.0), (3.0, 0.0)], (1.0, 0.5)) == [[(-0.5, -0.5), (0.5, 0.5)]]


@pytest.mark.parametrize(
    ("name", "rate", "steps", "width"),
    [("AdaGrad", "2", 6, WIDE), ("RMSProp", "1", 5, WIDE), ("RMSProp", "1", 5, NARROW)],
)
def test_a_path_that_leaves_the_picture_is_drawn_again_when_it_returns(
    name: str, rate: str, steps: int, width: int
) -> None:
    frame = valley.explore().frame({"optimizer": name, "rate": rate}, "", width)
    assert frame["title"].endswith(f"gets below a loss of 0.001 in {steps} steps")
    assert "Its path leaves the picture and returns." in frame["finding"]
    drawn = BeautifulSoup(frame["svg"], "html.parser")
    pieces = [str(piece["d"]).split(" M")[0] for piece in drawn.select("[data-key^='path']")]
    assert len(pieces) > 1
    (bottom,) = drawn.select("circle.f-ink")
    last = [float(n) for n in pieces[-1].split(" L")[-1].split()]
    assert last == pytest.approx([float(str(bottom[side])) for side in ("cx", "cy")], abs=0.2)
    high = float(str(drawn.svg["viewbox"]).split()[3]) if drawn.svg else 0
    for x, y in re.findall(r"[ML]([\d.-]+) ([\d.-]+)", " ".join(pieces)):
        assert 9.9 <= float(x) <= width - 9.9 and 9.9 <= float(y) <= high - 9.9
    gone = valley.explore().frame({"rate": "0.2"}, "", width)
    assert "Its path leaves the picture and ends outside." in gone["finding"]
    assert "the picture" not in valley.explore().frame({"steps": "100"}, "", WIDE)["finding"]


@pytest.mark.parametrize("width", [NARROW, WIDE])
@pytest.mark.parametrize("y", ["-0.9", "0.9"])
@pytest.mark.parametrize("rate", ["0.1", "2"])
def test_the_first_step_is_drawn_in_its_direction_wherever_it_starts_and_ends(rate: str, y: str, width: int) -> None:
    svg = valley.explore().frame({"rate": rate, "x": "2.4", "y": y}, "", width)["svg"]
    found = re.search(r'd="M([^"]+)"[^>]*data-key="path"', svg)
    assert found
    x0, y0, x1, y1 = map(float, re.findall(r"-?[\d.]+", found[1])[:4])
    _, (x, height) = valley.walk("SGD", (2.4, float(y)), float(rate), 15, 0, 1)
    assert math.atan2(y1 - y0, x1 - x0) == pytest.approx(math.atan2(float(y) - height, x - 2.4), abs=0.01)

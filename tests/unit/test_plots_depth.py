"""Figures of what happens to numbers on their way through many layers."""

from __future__ import annotations

import itertools

import pytest
import torch
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch

from course_utils import plots


def marks(fig: Figure, gid: str) -> dict[float, float]:
    return {float(ln.get_xdata()[0]): float(ln.get_ydata()[0]) for ln in fig.axes[0].lines if ln.get_gid() == gid}


def test_every_layer_is_on_the_curve_and_some_are_marked() -> None:
    values = [2.0**i for i in range(50)]
    fig = plots.through_depth({"a": values}, {"b": values[::-1]}, ylabel="y", title="A title", limits={"the end": 1e9})
    (ax,) = fig.axes
    curve = next(ln for ln in ax.lines if len(ln.get_xdata()) == 50)
    assert list(curve.get_xdata()) == list(range(1, 51)) and list(curve.get_ydata()) == values
    assert sorted(marks(fig, "a")) == [1, *range(5, 51, 5)]
    assert all(value == values[int(layer) - 1] for layer, value in marks(fig, "a").items())
    assert marks(fig, "b")[1] == values[-1]
    filled = {ln.get_gid(): ln.get_markerfacecolor() for ln in ax.lines if ln.get_gid()}
    assert filled == {"a": plots.MEASURED, "b": "none"}
    assert "the end" in [text.get_text() for text in ax.texts]


@pytest.mark.parametrize("depth", [1, 2, 7, 11, 12, 52, 99, 1_000])
def test_marks_stand_apart_at_every_depth(depth: int) -> None:
    fig = plots.through_depth({"a": [1.0] * depth}, ylabel="y", title="A title")
    layers = sorted(marks(fig, "a"))
    assert layers[0] == 1 and layers[-1] == depth and len(layers) <= 12
    assert all(b - a >= depth // 25 for a, b in itertools.pairwise(layers))


def test_backward_names_the_curves_at_the_first_layer() -> None:
    fig = plots.through_depth({"a": [3.0, 2.0, 1.0]}, ylabel="y", title="A title", backward=True)
    (ax,) = fig.axes
    assert ax.get_xlim()[0] > ax.get_xlim()[1]
    (name,) = [text for text in ax.texts if text.get_text() == "a"]
    assert name.xy == (1, 3.0)


@pytest.mark.parametrize(
    ("measured", "limits", "problem"),
    [
        ({}, {}, "nothing to draw"),
        ({"a": []}, {}, "nothing to draw"),
        ({"a": [1], "b": [1, 2]}, {}, "'b' has 2 values, 'a' 1"),
        ({"a": [1, 0]}, {}, "a value of 'a' is 0"),
        ({"a": [1, float("inf")]}, {}, "a value of 'a' is inf"),
        ({"a": [1]}, {"end": -1}, "the limit 'end'"),
    ],
)
def test_through_depth_refuses_bad_input(measured: dict, limits: dict, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        plots.through_depth(measured, ylabel="", title="", limits=limits)


def test_distributions_count_what_lies_outside() -> None:
    x = torch.cat([torch.zeros(60), torch.full((40,), 9.0)])
    fig = plots.distributions({"row": {"here": x, "there": torch.zeros(5)}}, reach=5, title="A title")
    words = [text.get_text() for ax in fig.axes for text in ax.texts]
    assert words == ["std 4.41, 40% outside", "std 0"]
    here, there = (next(p for p in ax.patches if isinstance(p, StepPatch)).get_data().values for ax in fig.axes)
    assert max(here) == pytest.approx(0.6) and max(there) == 1
    assert sum(here > 0) == 1


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ({}, "nothing to draw"),
        ({"a": {}}, "nothing to draw"),
        ({"a": {"x": torch.ones(1)}, "b": {"y": torch.ones(1)}}, "'b' has the columns"),
        ({"a": {"x": torch.ones(0)}}, "is empty or not finite"),
        ({"a": {"x": torch.tensor([float("nan")])}}, "is empty or not finite"),
    ],
)
def test_distributions_refuse_bad_input(rows: dict, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        plots.distributions(rows, reach=5, title="")

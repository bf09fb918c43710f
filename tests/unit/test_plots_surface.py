"""Paths over a surface, and bytes in stacked bars: what is drawn where, and errors for bad input."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from course_utils import plots


def bowl(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x**2 + 4 * y**2


def lines(fig: Figure, gid: str) -> list[Line2D]:
    return [line for line in fig.findobj(Line2D) if line.get_gid() == gid]


def test_descent_draws_every_step_of_each_path_and_the_minimum() -> None:
    path = [(-3.0, 1.0), (2.0, -0.5), (0.5, 0.25)]
    fig = plots.descent(
        {"top": (bowl, {"a": path, "b": path[:1]}), "low": (bowl, {"c": path, "d": path})}, reach=4, title="T"
    )
    assert len(fig.axes) == 4 and len(lines(fig, "minimum")) == 4
    for name, points in {"a": path, "b": path[:1], "c": path, "d": path}.items():
        (line,) = lines(fig, name)
        assert line.get_xydata().tolist() == [list(point) for point in points]
    markers = {name: lines(fig, name)[0].get_marker() for name in "abcd"}
    assert markers["a"] == markers["c"] != markers["b"] == markers["d"]
    assert [ax.get_ylabel() for ax in fig.axes] == ["top", "", "low", ""]


def test_the_outermost_contour_goes_through_the_start() -> None:
    fig = plots.descent({"": (bowl, {"a": [(-3.0, 1.0), (0.0, 0.0)]})}, reach=4, title="T")
    (contours,) = [c for c in fig.axes[0].collections if hasattr(c, "levels")]
    assert max(contours.levels) == bowl(np.array(-3.0), np.array(1.0)) == 13


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ({}, "one row or more"),
        ({"a": (bowl, {})}, "one row or more"),
        ({"a": (bowl, {"x": [(1, 1)]}), "b": (bowl, {"x": [(1, 1)], "y": [(1, 1)]})}, "the same number of paths"),
        ({"a": (bowl, {"x": []})}, "the path of 'x' is empty"),
        ({"a": (bowl, {"x": [(1, 1), (float("nan"), 0)]})}, "not finite"),
    ],
)
def test_descent_refuses_bad_input(rows: dict, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        plots.descent(rows, reach=2, title="T")


def test_memory_stacks_are_to_scale_and_end_at_their_total() -> None:
    bars = {"a": {"p": 2e9, "s": 0}, "b": {"p": 2e9, "s": 3e9}}
    fig = plots.memory_stacks(bars, limits={"card": 4e9}, title="T")
    (ax,) = fig.axes
    drawn = {p.get_gid(): (p.get_x(), p.get_width()) for p in ax.patches}
    assert drawn == {"a: p": (0, 2e9), "a: s": (2e9, 0), "b: p": (0, 2e9), "b: s": (2e9, 3e9)}
    assert set(lines(fig, "card")[0].get_xdata()) == {4e9}
    assert {"2 GB", "5 GB", "card"} <= {text.get_text() for text in ax.texts}
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b"]


@pytest.mark.parametrize(
    ("bars", "limits", "problem"),
    [
        ({}, {}, "at least one bar"),
        ({"a": {"p": -1}}, {}, "a part of 'a' is negative"),
        ({"a": {"p": 0}}, {}, "the sum of 'a'"),
        ({"a": {"p": 1}}, {"card": 0}, "the limit 'card'"),
    ],
)
def test_memory_stacks_refuse_bad_input(bars: dict, limits: dict, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        plots.memory_stacks(bars, limits=limits, title="T")

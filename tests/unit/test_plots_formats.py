"""Figures of number formats draw what they are given, to scale."""

import pytest
import torch
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex

from course_utils import plots


def test_each_bit_is_drawn_where_it_belongs() -> None:
    fig = plots.bit_layouts({"float32": (8, 23), "E4M3": (4, 3)}, title="Bits")
    (ax,) = fig.axes
    bits = {
        row: sorted(b.get_x() for b in ax.patches if round(b.get_y() + b.get_height() / 2) == row) for row in (0, 1)
    }
    assert bits == {0: list(range(-9, 23)), 1: list(range(-5, 3))}
    assert {t.get_text() for t in ax.texts} >= {"1 + 8 + 23", "1 + 4 + 3", "float32", "E4M3"}


def test_ends_of_a_gap_curve_are_marked_inside_the_figure() -> None:
    curves = {"through": {p: 2.0**p for p in range(-9, 10)}, "short": {p: 0.5 for p in range(-2, 3)}}
    (ax,) = plots.gap_curves(curves, reach=8, title="Gaps").axes
    marked = {line.get_gid(): list(line.get_xdata()) for line in ax.lines if line.get_gid()}
    assert marked == {"through": [2.0**6], "short": [0.25, 4.0]}


def test_subnormal_numbers_are_highlighted() -> None:
    fig = plots.number_lines({"f": (torch.tensor([-8.0, -1, 0, 0.5, 1, 2, 64]), 1.0)}, title="Numbers")
    drawn = [
        {to_hex(c.get_color()[0]): sorted(path.vertices[0][0] for path in c.get_paths()) for c in ax.collections
         if isinstance(c, LineCollection) and c.get_paths()}
        for ax in fig.axes
    ]  # fmt: skip
    assert drawn == [
        {plots.DATA: [-1, 1, 2], plots.HIGHLIGHT: [0, 0.5]},
        {plots.DATA: [1, 2, 64], plots.HIGHLIGHT: [0.5]},
    ]


def test_nothing_to_draw_is_an_error() -> None:
    for build in (plots.bit_layouts, plots.number_lines):
        with pytest.raises(ValueError, match="nothing to draw"):
            build({}, title="x")  # type: ignore[operator]
    with pytest.raises(ValueError, match="nothing to draw"):
        plots.gap_curves({"a": {}}, reach=8, title="x")


@pytest.mark.parametrize(("value", "message"), [(1.5, "from 0 to 1"), (-0.5, "positive"), (None, "must be a number")])
def test_a_share_that_is_not_between_0_and_1_is_refused(value: object, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        plots.curves([1], {"a": [value]}, xlabel="x", ylabel="y", shares=True, title="t")  # type: ignore[list-item]

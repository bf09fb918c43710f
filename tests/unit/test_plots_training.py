"""Loss curves: what is drawn where. The tests of every figure are in test_plots.py."""

from __future__ import annotations

import pytest
from matplotlib.lines import Line2D

from course_utils import plots


def test_losses_are_marked_at_common_steps_and_events_are_named() -> None:
    losses = {step: 5.0 - step / 50 for step in range(100)}
    later = {step: losses[step] for step in range(40, 100)}
    fig = plots.loss_curves({"resumed": later}, {"whole": losses}, events={"checkpoint": 40}, title="A title")
    (ax,) = fig.axes
    places = {}
    for line in ax.lines:
        if line.get_gid() in ("resumed", "whole"):
            places.setdefault(line.get_gid(), []).append((float(line.get_xdata()[0]), float(line.get_ydata()[0])))
    assert set(places["resumed"]) < set(places["whole"]) and len(places["resumed"]) > 3
    assert all(losses[int(step)] == loss for step, loss in places["whole"])
    assert [line.get_xdata()[0] for line in ax.lines if line.get_gid() == "event checkpoint"] == [40]
    words = [text.get_text() for text in ax.texts]
    assert sorted(words) == ["checkpoint", "resumed", "whole"]
    assert ax.get_yscale() == "log" and ax.get_xscale() == "linear"
    assert ax.get_yticks().tolist() == [3, 4, 5]  # 1-2-5 alone would leave one


def test_a_legend_names_filled_and_hollow_marks_where_there_are_both() -> None:
    fig = plots.loss_curves({"run": {0: 1.0}}, {"run": {0: 1.0}}, names=("resumed", "whole"), title="")
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["resumed", "whole"]
    fig = plots.loss_curves({"run": {0: 1.0}}, title="")
    assert fig.legends == []


def test_a_highlighted_curve_has_another_color_in_the_figure_and_in_its_legend() -> None:
    measured = {"training": {0: 3.0, 1: 2.0}, "validation": {0: 3.5, 1: 2.5}}
    fig = plots.loss_curves(measured, {"table": {0: 2.2}}, highlight=["validation"], title="")
    filled = {line.get_gid(): line.get_markerfacecolor() for line in fig.axes[0].lines if line.get_gid()}
    assert filled == {"training": plots.MEASURED, "validation": plots.HIGHLIGHT, "table": "none"}
    explained = [line.get_markerfacecolor() for line in fig.legends[0].findobj(Line2D) if line.get_marker() in "os^"]
    assert explained == [plots.MEASURED, plots.HIGHLIGHT, "none"]


@pytest.mark.parametrize(
    ("measured", "problem"),
    [
        ({}, "nothing to draw"),
        ({"a": {}}, "nothing to draw"),
        ({"a": {0: 1.0, 3: float("inf")}}, "the loss of 'a' at step 3 is inf"),
        ({"a": {0: 0.0}}, "the loss of 'a' at step 0 is 0"),
    ],
)
def test_loss_curves_refuse_bad_input(measured: dict[str, dict[int, float]], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        plots.loss_curves(measured, title="")

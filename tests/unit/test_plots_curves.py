"""Curves of measurements: what is drawn where, and errors for bad input."""

from __future__ import annotations

import pytest

from course_utils import plots


def test_curves_mark_every_value_and_name_each_curve_once() -> None:
    fig = plots.curves(
        [1, 10, 100],
        {"copy": [1e-6, 2e-6, 3e-6]},
        {"copy": [1e-6, 1e-6, 4e-6], "view": [1e-7, 1e-7, 1e-7]},
        xlabel="size",
        ylabel="time",
        xunit="B",
        yunit="s",
        title="A title",
    )
    (ax,) = fig.axes
    marks = [(line.get_gid(), line.get_markerfacecolor() == plots.MEASURED) for line in ax.lines if line.get_gid()]
    assert marks.count(("copy", True)) == marks.count(("copy", False)) == marks.count(("view", False)) == 3
    assert sorted(text.get_text() for text in ax.texts) == ["copy", "view"]
    assert any(label.get_text() == "1 µs" for label in ax.get_yticklabels())


def test_a_legend_says_which_marks_are_hollow_if_some_are() -> None:
    def entries(predicted: dict[str, list[float]]) -> list[str]:
        fig = plots.curves([1, 2], {"a": [1, 2]}, predicted, xlabel="", ylabel="", title="A title", against="counted")
        return [text.get_text() for legend in fig.legends for text in legend.get_texts()]

    assert entries({"a": [1, 3]}) == ["counted", "predicted"]
    assert entries({}) == []


@pytest.mark.parametrize(
    ("x", "measured", "problem"),
    [
        ([], {"a": []}, "nothing to draw"),
        ([1], {}, "nothing to draw"),
        ([2, 1], {"a": [1, 1]}, "must be ascending"),
        ([1, 2], {"a": [1]}, "1 values for 2 x"),
        ([1, 2], {"a": [1, 0]}, "a value of 'a'"),
        ([-1, 2], {"a": [1, 1]}, "an x"),
    ],
)
def test_curves_refuse_bad_input(x: list[float], measured: dict[str, list[float]], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        plots.curves(x, measured, xlabel="", ylabel="", title="")

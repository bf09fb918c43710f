"""plots.magnitudes: marks where the numbers are, smallest at the bottom, limits as lines; errors for bad input."""

import pytest
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D

from course_utils import plots

VALUES = {"small": 2e21, "large": 5e25, "middle": 3e23}


def lines(fig, name):
    return [line for line in fig.findobj(Line2D) if line.get_gid() == name]


def test_marks_lie_at_their_numbers_in_order_and_lines_run_through_all_rows():
    fig = plots.magnitudes(VALUES, unit="FLOPs", lines={"limit": 1e24}, highlight=["middle"], title="t")
    (ax,) = fig.axes
    assert [label.get_text() for label in ax.get_yticklabels()] == ["small", "middle", "large"]
    for row, name in enumerate(["small", "middle", "large"]):
        (mark,) = lines(fig, name)
        assert (*mark.get_xdata(), *mark.get_ydata()) == (VALUES[name], row)
        assert to_hex(mark.get_color()) == (plots.HIGHLIGHT if name == "middle" else plots.COMPUTE_BOUND)
        assert mark.get_marker() == ("D" if name == "middle" else "o")
    (limit,) = lines(fig, "limit")
    assert set(limit.get_xdata()) == {1e24}
    assert min(limit.get_ydata()) <= -0.5 and max(limit.get_ydata()) > 2.5
    low, high = ax.get_xlim()
    assert low < 2e21 and high > 5e25


@pytest.mark.parametrize(
    ("values", "rest", "message"),
    [
        ({}, {}, "give at least one number"),
        ({"a": 0}, {}, "the value of 'a' is 0: it must be positive"),
        ({"a": 1}, {"lines": {"b": float("inf")}}, "the value of 'b' is inf"),
        ({"a": 1}, {"highlight": ["b"]}, "cannot highlight b: the names are a"),
    ],
)
def test_bad_input_is_an_error(values, rest, message):
    with pytest.raises(ValueError, match=message):
        plots.magnitudes(values, unit="B", title="t", **rest)

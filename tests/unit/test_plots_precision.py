"""Histograms of magnitudes against a format, and the loss scale over steps."""

from __future__ import annotations

import pytest
import torch
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from course_utils import plots


def bars(fig: Figure) -> dict[str, tuple[float, str]]:
    """Height and color of each bar, by its gid."""
    found = {patch.get_gid(): patch for ax in fig.axes for patch in ax.patches if patch.get_gid()}
    return {gid: (patch.get_height(), to_hex(patch.get_facecolor())) for gid, patch in found.items()}


def test_a_bar_is_hatched_exactly_where_float16_loses_the_number() -> None:
    exponents = range(-30, 20)
    x = torch.tensor([1.5 * 2.0**e for e in exponents])
    drawn = bars(plots.range_histograms({"x": x}, torch.float16, title="T"))
    assert len(drawn) == len(exponents)
    for e, number in zip(exponents, x, strict=True):
        half = number.half()
        height, color = drawn[f"x: {e}"]
        assert height == pytest.approx(100 / len(exponents))
        assert (color == plots.HIGHLIGHT) == bool(half == 0 or half.isinf()), e


def test_a_format_without_infinity_is_drawn_as_torch_converts() -> None:
    x = torch.tensor([1.5 * 2.0**e for e in range(-12, 14)])
    fig = plots.range_histograms({"x": x}, torch.float8_e4m3fn, title="T")
    drawn = bars(fig)
    for e in range(9, 14):
        lost = not torch.tensor(1.5 * 2.0**e).to(torch.float8_e4m3fn).float().isfinite()
        assert (drawn[f"x: {e}"][1] == plots.HIGHLIGHT) == lost
    assert not any("inf" in text.get_text() for text in fig.axes[0].texts)


def test_the_share_that_is_lost_is_written_and_zeros_do_not_count() -> None:
    x = torch.tensor([0.0, 1e-9, -1e-9, 1.0, -2.0, 3.0, 1e6, 1.0, 1.0])
    fig = plots.range_histograms({"x": x}, torch.float16, title="T")
    words = [text.get_text() for ax in fig.axes for text in ax.texts]
    assert {"25.0% become 0", "12.5% become infinite"} <= set(words)
    assert not any("become 0" in text.get_text() for text in bfloat16_axes(x).texts)


def bfloat16_axes(x: torch.Tensor):
    return plots.range_histograms({"x": x}, torch.bfloat16, title="T").axes[0]


@pytest.mark.parametrize(
    ("rows", "dtype", "error", "says"),
    [
        ({}, torch.float16, ValueError, "nothing to draw"),
        ({"x": torch.zeros(3)}, torch.float16, ValueError, "'x' has no finite number that is not zero"),
        ({"x": [1.0]}, torch.float16, TypeError, "'x' is a list: give a tensor"),
        ({"x": torch.ones(1)}, torch.int8, TypeError, "give a floating-point dtype"),
        ({"x": torch.ones(1)}, "float16", TypeError, "give a floating-point dtype"),
    ],
)
def test_range_histograms_refuse_bad_input(rows, dtype, error, says) -> None:
    with pytest.raises(error, match=says):
        plots.range_histograms(rows, dtype, title="T")


def test_skipped_steps_are_marked_on_the_scale_they_were_tried_with() -> None:
    fig = plots.loss_scale([16.0, 8.0, 8.0, 16.0], [True, False, False, True], limit=[9, 9, 9, 9], title="T")
    (skipped,) = [line for line in fig.axes[0].lines if line.get_gid() == "skipped"]
    assert list(skipped.get_xdata()) == [0, 3] and list(skipped.get_ydata()) == [16, 16]
    (limit,) = [line for line in fig.axes[0].lines if line.get_color() == plots.PREDICTED]
    assert list(limit.get_ydata()) == [9, 9, 9, 9]


@pytest.mark.parametrize(
    ("scales", "skipped", "limit", "says"),
    [
        ([], [], None, "nothing to draw"),
        ([1.0], [], None, "skipped has 0 values for 1 steps"),
        ([1.0], [False], [1.0, 2.0], "limit has 2 values for 1 steps"),
        ([0.0], [False], None, "a scale is 0.0"),
        ([1.0], [False], [float("inf")], "a scale is inf"),
    ],
)
def test_loss_scale_refuses_bad_input(scales, skipped, limit, says) -> None:
    with pytest.raises(ValueError, match=says):
        plots.loss_scale(scales, skipped, limit=limit, title="T")

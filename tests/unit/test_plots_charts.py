"""Rooflines, utilizations, timelines and predictions: what is drawn where, and errors for bad input."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from figures import CHARTS, SPANS, labeled, texts
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from course_utils import plots
from course_utils.timing import Span


def marks(fig: Figure, gid: str) -> list[tuple[float, float, str]]:
    """(x, y, filled or hollow) of the marks of that name."""
    found = [a for a in labeled(fig, gid) if isinstance(a, Line2D)]
    kinds = ["hollow" if m.get_markerfacecolor() == "none" else "filled" for m in found]
    return [(float(m.get_xdata()[0]), float(m.get_ydata()[0]), kind) for m, kind in zip(found, kinds, strict=True)]


def test_roofline_draws_the_roof_the_ridge_and_the_points() -> None:
    fig = plots.roofline(
        1e12, 2e10, [("add", 0.25, 4e9), ("matmul", 400, 9e11)], predicted=[("add", 0.25, 5e9)], peak_label="fp32 peak"
    )
    assert marks(fig, "ridge point")[0][:2] == (50.0, 1e12)
    assert marks(fig, "add") == [(0.25, 4e9, "filled"), (0.25, 5e9, "hollow")]
    assert marks(fig, "matmul") == [(400, 9e11, "filled")]
    words = texts(fig)
    for text in ("memory-bound", "compute-bound", "ridge point: 50 FLOP/B", "fp32 peak: 1 TFLOP/s"):
        assert text in words
    assert "bandwidth: 20 GB/s" in words
    assert "1 of 2 measured points are memory-bound, the others compute-bound" in words
    (slanted,) = [ln for ln in fig.axes[0].lines if ln.get_color() == plots.MEMORY_BOUND]
    for intensity, rate in slanted.get_xydata():
        assert rate == pytest.approx(2e10 * intensity)
    (flat,) = [ln for ln in fig.axes[0].lines if ln.get_color() == plots.COMPUTE_BOUND]
    assert set(flat.get_ydata()) == {1e12}
    assert len({a.get_marker() for a in labeled(fig, "add") + labeled(fig, "matmul")}) == 2


def test_an_unknown_peak_is_replaced_by_the_measured_ceiling_and_says_so() -> None:
    fig = plots.roofline(None, 1e10, [("add", 0.25, 1e9)], ceiling=2e11, peak_label="never shown")
    assert "measured ceiling (peak unknown): 200 GFLOP/s" in " ".join(" ".join(texts(fig)).split())
    assert marks(fig, "ridge point")[0][:2] == (20.0, 2e11)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"peak": None}, "ceiling: where the peak of a device is unknown, measure"),
        ({"peak": 0}, "peak is 0: it must be positive"),
        ({"bandwidth": float("inf")}, "bandwidth is inf"),
        ({"points": [("add", 0, 1e9)]}, "the intensity of 'add' is 0"),
        ({"points": [("add", 1, float("nan"))]}, "the FLOP/s of 'add' is nan"),
        ({"predicted": [("add", 1, -1)]}, "the FLOP/s of 'add' is -1"),
    ],
)
def test_roofline_refuses_bad_input(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plots.roofline(**({"peak": 1e12, "bandwidth": 1e10, "points": []} | arguments))


def test_mfu_curve_divides_by_the_peak_of_each_dtype() -> None:
    fig = plots.mfu_curve([64, 128], {"fp32": [1e12, 3e12], "bf16": [2e12, 5e12]}, {"fp32": 4e12, "bf16": 1e13})
    assert marks(fig, "fp32") == [(64, 0.25, "filled"), (128, 0.75, "filled")]
    assert marks(fig, "bf16") == [(64, 0.2, "filled"), (128, 0.5, "filled")]
    assert "The best matmul reaches fp32 75%, bf16 50% of peak" in texts(fig)


def test_mfu_curve_shows_rates_where_a_peak_is_unknown() -> None:
    fig = plots.mfu_curve([64, 128], {"fp32": [1e12, 3e12], "bf16": [2e12, 5e12]}, {"fp32": 4e12, "bf16": None})
    assert marks(fig, "bf16") == [(64, 2e12, "filled"), (128, 5e12, "filled")]
    words = texts(fig)
    assert "FLOP/s (peak of bf16 unknown)" in words and "fp32 peak: 4 TFLOP/s" in words
    assert not any("%" in word for word in words)


def test_mfu_curve_names_a_utilization_above_one() -> None:
    words = " ".join(texts(plots.mfu_curve([64], {"fp32": [2e12]}, {"fp32": 1e12})))
    assert "above 100%: check the peak and the timing of fp32" in words


@pytest.mark.parametrize(
    "sizes, rates, peaks, message",
    [
        ([], {"fp32": []}, {"fp32": 1.0}, "nothing to draw"),
        ([64], {}, {}, "nothing to draw"),
        ([64, 64], {"fp32": [1.0, 1.0]}, {"fp32": 1.0}, "sizes must be ascending"),
        ([64], {"fp32": [1.0, 1.0]}, {"fp32": 1.0}, "'fp32' has 2 rates for 1 sizes"),
        ([64], {"fp32": [1.0]}, {}, "no entry for 'fp32'"),
        ([64], {"fp32": [0.0]}, {"fp32": 1.0}, "a rate of 'fp32' is 0.0"),
        ([64], {"fp32": [1.0]}, {"fp32": -1.0}, "the peak of 'fp32' is -1.0"),
        ([0], {"fp32": [1.0]}, {"fp32": 1.0}, "a size is 0"),
    ],
)
def test_mfu_curve_refuses_bad_input(sizes: list, rates: dict, peaks: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plots.mfu_curve(sizes, rates, peaks)


def test_mfu_ladder_draws_every_rung_to_scale_and_writes_its_share() -> None:
    fig = plots.mfu_ladder({"float32": 0.04, "compiled": 0.525}, title="Up", of="bfloat16 peak")
    [ax] = fig.axes
    assert [patch.get_width() for patch in ax.patches] == [0.04, 0.525] and ax.yaxis_inverted()
    words = texts(fig)
    assert {"float32", "compiled", "4.0%", "52.5%", "model FLOP/s ÷ bfloat16 peak"} <= set(words)


def test_timeline_draws_each_stream_in_a_row_of_its_own() -> None:
    [ax] = plots.timeline(SPANS, title="Both").axes
    boxes = [(p.get_x(), p.get_width(), round(p.get_y() + p.get_height() / 2)) for p in ax.patches]
    assert boxes == [(0.0, 2.0, 0), (2.0, 0.015625, 0), (1.0, 2.0, 1)]  # from the first start on
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["copies", "products"]
    assert [text.get_text() for text in ax.texts] == ["batch 0", "step 0"]  # one has no room for its name


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: plots.mfu_ladder({}, title="x"), "at least one rung"),
        (lambda: plots.mfu_ladder({"float32": 0.0}, title="x"), "the MFU of 'float32' is 0.0"),
        (lambda: plots.timeline([], title="x"), "at least one span"),
        (lambda: plots.timeline([Span("copies", "a", 2, 1)], title="x"), "ends before it starts"),
    ],
)
def test_ladder_and_timeline_refuse_bad_input(draw: Callable[[], Figure], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw()


def test_predicted_vs_measured_has_an_axis_per_unit_and_writes_the_ratio() -> None:
    fig = plots.predicted_vs_measured(
        [("x", 4e9, 6e9, "B"), ("t", 0.002, 0.0005, "s"), ("w", 999.9e9, 1e12, "B"), ("d", 3, 30, "days")]
    )
    assert len(fig.axes) == 3
    assert marks(fig, "predicted x")[0][::2] == (4e9, "hollow")
    assert marks(fig, "measured x")[0][::2] == (6e9, "filled")
    words = texts(fig)
    for text in ("4 GB", "6 GB", "× 1.50", "2 ms", "500 µs", "× 0.25", "1 TB", "× 1.00", "days", "× 10"):
        assert text in words
    assert "Farthest off: d, by a factor of 10" in words


def test_numbers_that_nobody_measured_are_not_called_measured() -> None:
    words = texts(plots.predicted_vs_measured([("x", 4e9, 6e9, "B")], against="published", title="Close"))
    assert {"predicted", "published", "published ÷\npredicted"} <= set(words)
    assert not any("measured" in text for text in words)
    curve = {"a training step": [6.0, 8.0]}
    for against in ("measured", "counted"):
        fig = plots.curves([1, 2], curve, curve, xlabel="x", ylabel="FLOPs", against=against, title="Close")
        assert [text.get_text() for text in fig.legends[0].get_texts()] == [against, "predicted"]


def test_what_is_no_prediction_has_its_own_name_and_color() -> None:
    rows = [("time", 1.0, 2.0, "s"), ("loss", 2.4, 2.1, "nats per byte")]
    fig = plots.predicted_vs_measured(rows, others={"nats per byte": "baseline"}, title="A title")
    assert {"predicted", "measured ÷\npredicted", "baseline", "measured ÷\nbaseline"} <= set(texts(fig))
    (predicted,), (baseline,) = labeled(fig, "predicted time"), labeled(fig, "predicted loss")
    assert (predicted.get_markeredgecolor(), baseline.get_markeredgecolor()) == (plots.PREDICTED, plots.CONTEXT)


def test_many_predictions_stay_on_one_screen() -> None:
    assert CHARTS["predicted, many rows"]().get_figheight() < 9.5  # inches; loosely set, 40 rows take 16


def test_an_axis_between_two_powers_of_ten_has_ticks() -> None:
    fig = plots.predicted_vs_measured([("loss", 3.07, 2.42, "nats per byte")])
    assert {"2", "4"} <= set(texts(fig))


def test_the_title_says_within_which_factor_all_predictions_are() -> None:
    rows = [("x", 100, 110, "B"), ("y", 100, 62, "B")]
    assert "Every prediction is within a factor of 1.7 of the measurement" in texts(plots.predicted_vs_measured(rows))


@pytest.mark.parametrize(
    "rows, message",
    [
        ([], "nothing to draw"),
        ([("x", 0, 1, "B")], "the prediction of 'x' is 0"),
        ([("x", 1, float("nan"), "B")], "the measurement of 'x' is nan"),
    ],
)
def test_predicted_vs_measured_refuses_bad_input(rows: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plots.predicted_vs_measured(rows)


@pytest.mark.parametrize("value", [None, ..., "two"])
def test_a_prediction_that_is_not_a_number_is_refused_by_name(value: object) -> None:
    with pytest.raises(TypeError, match=r"the prediction of 'x' is .*: it must be a number"):
        plots.predicted_vs_measured([("x", value, 1.0, "B")])  # type: ignore[list-item]

"""Bars of bytes and cards: what is drawn where, and errors for bad input."""

from __future__ import annotations

import pytest

from course_utils import plots


def test_memory_bar_draws_parts_to_scale_and_enough_cards() -> None:
    fig = plots.memory_bar({"a": 100e9, "b": 50e9, "c": 11e9}, capacity=80e9, capacity_label="80 GB card")
    (ax,) = fig.axes
    boxes = {p.get_gid(): (p.get_x(), p.get_width()) for p in ax.patches if p.get_gid()}
    assert boxes == {"a": (0, 100e9), "b": (100e9, 50e9), "c": (150e9, 11e9)}
    assert [p.get_x() for p in ax.patches if not p.get_gid()] == [0, 80e9, 160e9]
    assert "161 GB needs 3 × 80 GB card" in [text.get_text() for text in fig.texts]


@pytest.mark.parametrize(
    ("parts", "capacity", "problem"),
    [
        ({}, 1, "at least one part"),
        ({"a": 0}, 1, "size of 'a'"),
        ({"a": 1}, -1, "the capacity"),
        ({"a": 1e12}, 1, "too many"),
    ],
)
def test_memory_bar_refuses_bad_input(parts: dict[str, float], capacity: float, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        plots.memory_bar(parts, capacity=capacity, capacity_label="card")

"""expect: what agrees, what differs, and what a student is told."""

import math
import tracemalloc

import pytest
import torch
from mismatches import told

from course_utils.testing import Mismatch, Opaque, expect, observe
from course_utils.testing.describing import describe


@pytest.mark.parametrize(
    ("got", "want"),
    [
        (128, 128), (128.0, 128), (1e9 + 0.1, 1e9), (float("nan"), float("nan")), ((4, 1), [4, 1]), ([4, 1], (4, 1)),
        (True, True), (None, None), ("a", "a"), ({"a": [1]}, {"a": (1,)}), (torch.float16, torch.float16),
        (torch.tensor([1.0, float("nan")]), torch.tensor([1.0, float("nan")])), (1 + 2j, 1 + 2j),
        (torch.tensor(True), True), (torch.zeros(0, 3), torch.zeros(0, 3)),
        (torch.ones(2, dtype=torch.float8_e4m3fn), torch.ones(2, dtype=torch.float8_e4m3fn)),
    ],
)  # fmt: skip
def test_values_that_agree_are_accepted(got: object, want: object) -> None:
    expect(got, want)


@pytest.mark.parametrize(
    ("got", "want"),
    [
        (127, 128), (1, True), (True, 1), (0, None), (None, 0), ("128", 128), (1.001, 1.0), ((4,), (4, 1)), (4, (4,)),
        ({"a": 1}, {"b": 1}), ({"a": 1, "b": 2}, {"a": 1}), (float("nan"), 1.0), (1.0, float("nan")), (math.inf, 1e308),
        (torch.ones(3), torch.ones(3, 1)), (torch.ones(3), torch.ones(3).double()), (torch.ones(3), [1.0, 1.0, 1.0]),
        ([1.0], torch.ones(1)), (torch.tensor([1, 2]), torch.tensor([1, 3])), (Opaque("x"), Opaque("x")),
        (torch.tensor([1.0, 1.01]), torch.ones(2)), (128.5, 128), (b"a", "a"), (torch.float16, torch.bfloat16),
    ],
)  # fmt: skip
def test_values_that_differ_are_a_mismatch(got: object, want: object) -> None:
    told(got, want)


def test_an_int_in_place_of_a_bool_is_explained() -> None:
    assert "Wanted is True or False" in told(1, True)


def test_a_message_has_call_value_expected_value_and_mistake() -> None:
    def area(x: torch.Tensor) -> int:
        return x.numel()

    seen = observe(area, torch.zeros(4, 8))
    with pytest.raises(Mismatch) as caught:
        expect(seen.value, 128, mistakes={32: "That counts elements."}, hint="not this")
    assert str(caught.value).splitlines() == [
        "✗ area(float32[4, 8])", "    got       32", "    expected  128", "  That counts elements.",
    ]  # fmt: skip
    assert caught.value.mistake == "That counts elements."
    assert caught.value._render_traceback_() == str(caught.value).splitlines()


def test_a_message_says_where_tensors_differ_or_that_shape_or_dtype_do() -> None:
    got, want = torch.zeros(2, 3), torch.zeros(2, 3)
    want[1, 2] = 5
    assert "at [1, 2]: got 0.0, expected 5.0 (1 of 6 elements differ)" in told(got, want)
    assert "shape: got [2, 3], expected [3, 2]" in told(got, torch.zeros(3, 2))
    assert "dtype: got float32, expected float64" in told(got, got.double())


def test_mistakes_may_be_tensors_and_the_first_match_counts() -> None:
    mistakes = [(torch.ones(2), "ones"), (torch.ones(2), "later")]
    with pytest.raises(Mismatch) as caught:
        expect(torch.ones(2), torch.zeros(2), mistakes=mistakes)
    assert caught.value.mistake == "ones"


def test_a_hint_is_said_when_no_mistake_matches() -> None:
    assert told(1, 2, mistakes={3: "no"}, hint="think of two").endswith("think of two")


def test_tolerance_is_relative() -> None:
    expect(1.01, 1.0, tolerance=0.02)
    told(1.03, 1.0, tolerance=0.02)
    expect(torch.tensor([100.0, 1.0]), torch.tensor([100.0, 0.0]), tolerance=0.02)
    expect(101, 100, tolerance=0.02)


def test_long_values_are_cut_in_messages() -> None:
    assert len(told(list(range(10**5)), [1])) < 300
    assert len(told("x" * 10**6, "y")) < 500


@pytest.mark.parametrize(
    "value", [{bytes(2**24)}, frozenset({(bytes(2**24),) * 100}), [["x" * 2**24] * 8] * 8, {1: {"y" * 2**24}}]
)
def test_a_large_value_is_cut_before_it_is_spelled_out(value: object) -> None:
    tracemalloc.start()
    try:
        assert len(describe(value)) < 70 * 1000
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_a_set_shows_its_first_items() -> None:
    assert describe({3}) == "{3}" and describe(set()) == "set()" and describe(set(range(9))).endswith(", …}")

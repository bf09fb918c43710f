"""Outcomes are compared by rules that are data: what agrees, what differs, and where."""

import math
from typing import Any

import pytest
import torch

from course_utils.testing.comparing import AT_MOST, BETWEEN, IGNORED, Comparison, alike, compare
from course_utils.testing.plain import Opaque, Raised

NAN, INF = float("nan"), float("inf")
ONES = torch.ones(3)


@pytest.mark.parametrize(
    ("got", "want"),
    [
        (128.0, 128), (128, 128.0), (NAN, NAN), (INF, INF), (1 / 3, 0.333333333333), (torch.tensor(4), 4),
        ((1, 2), [1, 2]), ([1.6666667461395264], [1.6666666269302368]),
        (ONES * (1 + 1e-6), ONES), (torch.tensor([NAN, INF]), torch.tensor([NAN, INF])), ({"a": 1.0}, {"a": 1}),
        (torch.empty(2, 0), torch.empty(2, 0)), (torch.empty(3, device="meta"), torch.empty(3, device="meta")),
        (Raised("Odd", "", "", ("Odd", "ValueError", "Exception")), Raised("ValueError", "")), (None, None),
        (torch.ones(2, dtype=torch.bfloat16) * 1.005, torch.ones(2, dtype=torch.bfloat16)), ({1, 2}, {2, 1}),
        (torch.tensor([1.0, -1.0]).to(torch.float8_e4m3fn),) * 2, (torch.ones(2, dtype=torch.complex64),) * 2,
    ],
)  # fmt: skip
def test_values_that_differ_only_by_rounding_count_as_equal(got: Any, want: Any) -> None:
    assert compare(got, want) is None


@pytest.mark.parametrize(
    ("got", "want"),
    [
        (128.5, 128), (True, 1), (1, True), (1.0000001, 1.0), (1 / 3, 0.3333333432674408),
        (2.0**24 + 1, 2.0**24), (16777217.5, 16777218.0), (None, 0), (0, None), ("1", 1), ([1], [1, 2]), ([], [1]),
        ({"a": 1}, {"b": 1}), (NAN, 1.0), (1.0, NAN), (INF, 1e308), (-INF, INF), (10**400, 1.5),
        (ONES, [1.0, 1.0, 1.0]), (ONES.double(), ONES), (ONES[:2], ONES), (ONES * (1 + 1e-4), ONES),
        (ONES.long(), ONES), (ONES.to("meta"), ONES),
        (torch.tensor([1.0, NAN]), torch.tensor([1.0, 2.0])), (torch.tensor([1.0, INF]), torch.tensor([1.0, 2.0])),
        (ONES.double() * (1 + 1e-7), ONES.double()),
        (torch.tensor([1e-9, 1.0]).double(), torch.tensor([0.0, 1.0]).double()),
        (3, Raised("ValueError", "")), (Raised("RuntimeError", "", "", ("RuntimeError",)), Raised("ValueError", "")),
        (Raised("ValueError", "no"), 3), (Opaque("a list"), Opaque("a list")), ((ONES + 1j).conj(), ONES + 1j),
        (torch.tensor([1.0]).to(torch.float8_e4m3fn), torch.tensor([1.125]).to(torch.float8_e4m3fn)),
    ],
)  # fmt: skip
def test_values_that_differ_by_more_than_rounding_are_told_apart(got: Any, want: Any) -> None:
    assert compare(got, want) is not None


def test_a_tolerance_replaces_that_of_the_dtype_and_zero_allows_none() -> None:
    assert compare(1.001, 1.0, 1e-2) is None and compare(100, 101, 1e-1) is None
    assert compare(1 + 2**-52, 1.0, 0.0) is not None
    assert compare(ONES * (1 + 2**-23), ONES, 0.0) is not None and compare(ONES.clone(), ONES, 0.0) is None


def test_a_difference_says_where_it_is_and_what_came_and_was_wanted_there() -> None:
    found = compare({"a": [1, 2, 3, 4, 5, 6], "b": 0}, {"a": [1, 2, 3, 4, 5, 7], "b": 0})
    assert found is not None and (found.where, found.got, found.want) == ("a, item 6", 6, 7)
    big = torch.zeros(4, 5)
    big[2, 3] = 7
    found = compare(big, torch.zeros(4, 5))
    assert found is not None and found.where == "1 of 20 elements differ, the first at [2, 3]" and found.got == 7
    found = compare(ONES.double(), ONES)
    assert found is not None and found.words == "torch.float64 instead of torch.float32"


def outcome(value: Any, **parts: Any) -> dict[str, Any]:
    return {"value": value, "mutated": [], **parts}


def test_rules_by_key_ignore_bound_and_relate() -> None:
    how = Comparison(rules={"bytes": AT_MOST, "std": BETWEEN, "noise": IGNORED, "after": "as before", "loose": 0.1})
    want = outcome({"bytes": 100, "std": (0.9, 1.1), "noise": 1, "before": 1, "after": 1, "loose": 1.0, "exact": 3})
    fine = {"bytes": 64, "std": 1.05, "noise": None, "before": 7, "after": 7, "loose": 1.05, "exact": 3}
    assert how.difference(outcome(fine | {"before": 1, "after": 1}), want) is None
    for key, bad in (
        ("bytes", 101), ("bytes", NAN), ("bytes", True), ("bytes", None), ("std", 1.2), ("std", "1"), ("after", 2),
        ("loose", 1.2), ("exact", 4),
    ):  # fmt: skip
        found = how.difference(outcome(fine | {"before": 1, "after": 1} | {key: bad}), want)
        assert found is not None and found.where.startswith(key), key
    assert how.difference(outcome({"bytes": 64}), want) is not None and how.difference(outcome(None), want) is not None


def test_bands_of_lists_and_dicts_need_every_item() -> None:
    how = Comparison(rules={"": BETWEEN})
    want = outcome({"a": [(0.0, 1.0), (1.0, 2.0)]})
    assert how.difference(outcome({"a": [0.5, 1.5]}), want) is None
    for value in ({"a": [0.5]}, {"a": [0.5, 2.5]}, {}, {"a": [0.5, math.nan]}, [0.5, 1.5]):
        assert how.difference(outcome(value), want) is not None


def test_a_part_beside_the_value_counts_only_where_it_is_asked_for() -> None:
    want, got = outcome(1, shares=[0]), outcome(1, shares=[])
    assert Comparison().difference(got, want) is None
    assert Comparison(parts=("value", "shares")).difference(got, want) is not None
    assert Comparison(parts=("value",)).difference(outcome(1) | {"mutated": [0]}, want) is None
    assert Comparison().difference(outcome(1) | {"mutated": [0]}, want) is not None


def test_where_only_the_error_counts_no_value_does() -> None:
    how = Comparison(parts=("error",))
    error = Raised("ValueError", "x", "", ("ValueError",))
    raises, returns = {"value": error, "error": error}, {"value": 3, "error": None}
    assert how.difference({"value": 4, "error": None}, returns) is None
    found = how.difference(returns, raises)
    assert found is not None and found.got == 3, "what came in place of the error is shown"
    assert how.difference(raises, returns) is not None


def test_a_mistakes_error_is_known_by_its_text_but_for_numbers() -> None:
    def raised(kind: str, message: str) -> dict[str, Any]:
        return outcome(Raised(kind, message))

    how = Comparison()
    assert alike(raised("IndexError", "index 3 of 2"), raised("IndexError", "index 14 of 9"), how)
    assert not alike(raised("IndexError", "index 3"), raised("IndexError", "another"), how)
    assert not alike(raised("IndexError", "index 3"), raised("KeyError", "index 3"), how)
    assert alike(outcome(60), outcome(60.0), how) and not alike(outcome(60), outcome(61), how)


def test_a_mistake_is_known_by_numbers_that_vary_from_run_to_run() -> None:
    how = Comparison(rules={"mean": BETWEEN})
    want = {"mean": (0.9, 1.1), "count": 3}
    found = outcome({"mean": 5.2, "count": 3})
    assert not alike(found, outcome({"mean": 5.0, "count": 3}), how), "as they are"
    assert alike(found, outcome({"mean": 5.0, "count": 3}), how, want), "five times as large, and five times as wide"
    assert not alike(found, outcome({"mean": 5.0, "count": 4}), how, want)
    assert not alike(found, outcome({"mean": 7.0, "count": 3}), how, want)
    assert not alike(found, outcome({"mean": None, "count": 3}), how, want)
    nested = {"mean": {"a": [(0.9, 1.1)]}}
    assert alike(outcome({"mean": {"a": [2.1]}}), outcome({"mean": {"a": [2.0]}}), how, nested)
    assert not alike(outcome({"mean": {"a": [2.1]}}), outcome({"mean": {"a": [9.0]}}), how, nested)


def test_a_mistake_that_rounds_to_float32_is_known_on_a_machine_that_rounds_otherwise() -> None:
    how = Comparison()
    here, there = (torch.tensor([x, 3.0]).double() for x in (15.6, 15.600001))
    assert how.difference(outcome(here), outcome(there)) is not None, "as an answer, it is too far off"
    assert alike(outcome(here), outcome(there), how) and alike(outcome({"a": [here]}), outcome({"a": [there]}), how)
    assert not alike(outcome(here), outcome(torch.tensor([15.6, 3.0], dtype=torch.float64)), how)
    whole = (torch.tensor([x], dtype=torch.float64) for x in (16777216.0, 16777215.0))
    assert not alike(*map(outcome, whole), how), "counts are right or wrong"

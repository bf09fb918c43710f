"""Plain data: what becomes of the objects that a student's function returns."""

import functools

import numpy as np
import pytest
import torch

from course_utils.testing import freeze, observe
from course_utils.testing.comparing import compare
from course_utils.testing.describing import describe


class AlwaysEqual:
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


@pytest.mark.parametrize("value", [AlwaysEqual(), [AlwaysEqual()], {"a": AlwaysEqual()}])
def test_an_object_that_claims_to_equal_everything_matches_nothing(value: object) -> None:
    seen = observe(lambda: value)
    for want in (128, "x", None, [128], {"a": 1}, torch.ones(1)):
        assert compare(seen.value, want) is not None
    assert "AlwaysEqual" in describe(seen.value)


def test_numpy_scalars_and_tensors_without_dimensions_count_as_numbers() -> None:
    assert type(observe(lambda: np.float32(1.5)).value) is float
    assert type(observe(lambda: np.int64(3)).value) is int
    assert compare(observe(lambda: torch.tensor(128)).value, 128) is None


def test_a_parameter_is_observed_as_a_plain_tensor() -> None:
    seen = observe(lambda: torch.nn.Parameter(torch.ones(2)))
    assert type(seen.value) is torch.Tensor and seen.requires_grad is True


def test_a_lazy_conjugate_or_negative_is_observed_as_its_numbers() -> None:
    x = torch.complex(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[5.0, 6.0], [7.0, 8.0]]))
    for lazy in (x.conj(), x.T.conj(), x.conj().imag, x[:, 0].conj().imag, x[0, 0].conj().imag.expand(10**9)):
        assert lazy.is_conj() or lazy.is_neg()
        seen = observe(lambda lazy=lazy: lazy).value
        assert not seen.is_conj() and not seen.is_neg() and seen.stride() == lazy.stride()
        assert seen.untyped_storage().nbytes() < 100 and torch.equal(seen.flatten()[:9], lazy.flatten()[:9].clone())
    assert torch.equal(x, x.conj().conj()), "and what it's a view of stays as it is"


def test_a_meta_tensor_is_observed_by_shape_and_device() -> None:
    seen = observe(lambda x: x.T, torch.empty(3, 5, device="meta"))
    assert seen.shape == (5, 3) and seen.device == "meta"


def test_a_function_returned_uncalled_is_named_in_the_message() -> None:
    assert "not called" in describe(observe(lambda x: x.numel, torch.ones(3)).value)
    assert "not called" in describe(observe(lambda: functools.partial(max, 3)).value)
    assert describe(observe(lambda: torch.nn.Linear(1, 1)).value) == "an object of type Linear"


def test_of_a_view_only_what_it_spans_is_copied() -> None:
    workspace = torch.arange(1_000_000.0)
    for view in (workspace[5:15], workspace[7::2][:4].expand(3, 4), workspace.view(1000, 1000).t()[2:4, 3:5]):
        frozen = freeze(view)
        assert torch.equal(frozen, view) and frozen.stride() == view.stride()
        assert frozen.untyped_storage().nbytes() <= 4 * 1500
    assert freeze(workspace[:0]).shape == (0,)


def test_a_tensor_whose_memory_was_freed_is_said_to_be_one() -> None:
    freed = torch.zeros(3)
    freed.untyped_storage().resize_(0)
    assert str(freeze(freed)) == "a tensor whose memory was freed"
    assert freed.untyped_storage().nbytes() == 0

"""What the probes of several exercises use, on functions of which the gradient is known to be right or wrong."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from autograder.authoring.probing import alike, with_gradient


def test_minus_zero_is_not_alike_to_zero() -> None:
    x = torch.tensor([0.0, 1.0])
    assert alike(x, x.clone())
    assert not alike(x, torch.tensor([-0.0, 1.0]))
    assert not alike(x, torch.tensor([0.0, 2.0]))


def product(x: Tensor, y: Tensor) -> Tensor:
    return x * y


def only_y(x: Tensor, y: Tensor) -> Tensor:
    return x.detach() * y


def too_large_in_x(x: Tensor, y: Tensor) -> Tensor:
    return x * y + x - x.detach()


def only_in_float64(x: Tensor, y: Tensor) -> Tensor:
    return x * (y if y.dtype == torch.float64 else y.detach())


def only_contiguous(x: Tensor, y: Tensor) -> Tensor:
    return (x if x.is_contiguous() else x.detach()) * y


def nan_in_the_gradient(x: Tensor, y: Tensor) -> Tensor:
    return x * y + 0 * (x - x).sqrt()


def a_number(x: Tensor, y: Tensor) -> float:
    return (x * y).sum().item()


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (product, ["x", "y"]),
        (only_y, ["y"]),
        (too_large_in_x, ["y"]),
        (only_in_float64, ["x"]),
        (only_contiguous, ["y"]),
        (nan_in_the_gradient, ["y"]),
        (a_number, []),
        (torch.add, ["x", "y"]),
        (lambda x, y: x + y.detach(), ["x"]),
    ],
)
def test_an_argument_whose_gradient_does_not_suit_the_result_is_left_out(
    call: Callable[..., object], expected: list[str]
) -> None:
    x, y = torch.arange(6.0).reshape(3, 2).T + 1, torch.arange(6.0).reshape(2, 3) - 2.5
    assert with_gradient(call, ["x", "y"], [x, y]) == expected


def test_the_arguments_are_left_as_they_are() -> None:
    x = torch.ones(2, dtype=torch.float64)
    assert with_gradient(lambda x: x.mul_(3), "x", [x]) == ["x"]
    assert x.tolist() == [1, 1] and not x.requires_grad


def test_a_function_that_computes_in_float32_needs_a_longer_step() -> None:
    x = torch.arange(1.0, 7.0, dtype=torch.float64) / 7

    def rounded(x: Tensor) -> Tensor:
        return (3 * x.float() + 1000).to(x.dtype)

    assert with_gradient(rounded, "x", [x]) == []
    assert with_gradient(rounded, "x", [x], step=1e-3) == ["x"]

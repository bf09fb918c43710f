"""draws: random inputs that one seed repeats."""

import pytest
import torch

from course_utils.testing import draws


def test_draws_depend_on_the_seed_alone_and_leave_torchs_generator_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    first, second = draws(7), draws(7)
    assert first.sizes(3) == second.sizes(3)
    assert torch.equal(first.tensor(3, 4), second.tensor(3, 4))
    assert torch.equal(torch.random.get_rng_state(), before)
    monkeypatch.setenv("COURSE_SEED", "8")
    assert draws().integer(0, 10**9) == draws(8).integer(0, 10**9) != draws(7).integer(0, 10**9)


@pytest.mark.parametrize("seed", range(20))
def test_a_drawn_view_has_the_shape_asked_for_and_is_not_contiguous(seed: int) -> None:
    draw = draws(seed)
    shape = draw.sizes(3)
    assert len(set(shape)) == 3
    x = draw.tensor(*shape, contiguous=False)
    assert x.shape == shape and not x.is_contiguous()
    assert x.untyped_storage().nbytes() > x.numel() * 4


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.bfloat16, torch.complex64])
def test_a_drawn_tensor_has_the_dtype_asked_for(dtype: torch.dtype) -> None:
    assert draws(0).tensor(3, dtype=dtype).dtype == dtype

"""What this card reaches of what it promises."""

from __future__ import annotations

import pytest
import torch

from course_utils import device as devices
from course_utils import hardware
from course_utils.predict import record


def test_the_card_is_described(device: torch.device) -> None:
    assert torch.cuda.get_device_name(device) in devices.describe(device)
    devices.synchronize(device)


def test_a_known_card_reaches_more_than_half_of_its_promised_memory_bandwidth(device: torch.device) -> None:
    bandwidth = hardware.measured_bandwidth(device)
    record("memory bandwidth", bandwidth, "B/s")
    if card := hardware.find_device(device):
        record("memory bandwidth, of what is promised", bandwidth / card.bandwidth, "times")
        assert 0.5 < bandwidth / card.bandwidth < 1.05


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_best_matmul_stays_below_the_peak_and_a_data_centers_card_reaches_three_quarters_of_it(
    device: torch.device, dtype: torch.dtype
) -> None:
    card, peak = hardware.find_device(device), hardware.peak_flops(device, dtype)
    best = hardware.measured_ceiling(device, dtype)
    name = str(dtype).removeprefix("torch.")
    record(f"best {name} matmul", best.flops_per_second, "FLOP/s")
    if card is None or peak is None:
        pytest.skip(hardware.describe_peak(device, dtype))
    share = best.flops_per_second / peak
    record(f"best {name} matmul", share, "MFU")
    assert share < 1.05
    # Other cards may not draw the power that their peak would take.
    if dtype == torch.bfloat16 and card.name.startswith(("A100 SXM", "H100 SXM", "H200")):
        assert share > 0.75

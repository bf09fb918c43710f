"""Tests that need an NVIDIA GPU. `make gpu` runs them, and keeps what they measure."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from course_utils import device as devices


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not torch.cuda.is_available():
        skip = pytest.mark.skip(reason="needs an NVIDIA GPU; on a machine that has one: make gpu")
        for item in items:
            if item.path.parent == Path(__file__).parent:
                item.add_marker(skip)


@pytest.fixture
def device() -> torch.device:
    """The GPU, with nothing under way on it."""
    device = devices.pick_device("cuda")
    devices.synchronize(device)
    return device

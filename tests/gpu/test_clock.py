"""`timing.benchmark` on a GPU, against a loop between two CUDA events and against PyTorch's Timer."""

from __future__ import annotations

import pytest
import torch
from torch.utils.benchmark import Timer

from course_utils.predict import record
from course_utils.timing import benchmark


@pytest.mark.parametrize("n", [2_048, 4_096])
def test_agreement_with_cuda_events(device: torch.device, n: int) -> None:
    """The best of several, taking turns: the clock of a GPU rises and falls."""
    x, y = torch.randn(n, n, device=device), torch.empty(n, n, device=device)
    calls = 50
    ours, theirs = [], []
    for _ in range(5):
        ours.append(benchmark(lambda: torch.mm(x, x, out=y), device=device).median)
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(calls):
            torch.mm(x, x, out=y)
        end.record()
        torch.cuda.synchronize()
        theirs.append(start.elapsed_time(end) / 1e3 / calls)
    ratio = min(ours) / min(theirs)
    record(f"benchmark against CUDA events, {n} × {n}", ratio, "times")
    assert 0.9 < ratio < 1.1


def test_agreement_with_torch_utils_benchmark(device: torch.device) -> None:
    x = torch.randn(4096, 4096, device=device)
    y = torch.empty_like(x)
    timer = Timer("torch.mm(x, x, out=y)", globals={"torch": torch, "x": x, "y": y})
    events = benchmark(lambda: torch.mm(x, x, out=y), device=device)
    no_device = benchmark(lambda: torch.mm(x, x, out=y))
    theirs = timer.blocked_autorange(min_run_time=0.5).median
    record("benchmark against torch.utils.benchmark", events.median / theirs, "times")
    assert 0.8 < events.median / theirs < 1.2
    assert 0.8 < no_device.median / theirs < 1.2

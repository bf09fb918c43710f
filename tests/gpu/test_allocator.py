"""The allocator's own numbers are the predicted ones, to the byte."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest
import torch
from torch import nn

from course_utils.memory import blocks, held_at_peak, saved_bytes, track
from course_utils.predict import record

BLOCK = 512  # bytes: the allocator rounds every tensor up to a multiple


def rounded(size: int) -> int:
    return -(-size // BLOCK) * BLOCK


def grown(device: torch.device) -> Callable[[str], int]:
    """A function that says by how many bytes "requested" or "allocated" memory has grown since now."""

    def now(kind: str) -> int:
        return torch.cuda.memory_stats(device).get(f"{kind}_bytes.all.current", 0)

    gc.collect()
    before = {kind: now(kind) for kind in ("requested", "allocated")}
    return lambda kind: now(kind) - before[kind]


@pytest.fixture
def model(device: torch.device) -> nn.Module:
    """Of sizes that are no multiples of anything; it has run once, so that cuBLAS has its workspace."""
    model = nn.Sequential(nn.Linear(37, 101, bias=False), nn.ReLU(), nn.Linear(101, 53, bias=False)).to(device)
    model(torch.randn(19, 37, device=device)).square().mean().backward()
    for p in model.parameters():
        p.grad = None
    return model


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.int64])
@pytest.mark.parametrize("count", [1, 128, 129, 10_007])
def test_a_tensor_takes_its_bytes_rounded_up_to_a_block_and_gives_them_back(
    device: torch.device, dtype: torch.dtype, count: int
) -> None:
    since = grown(device)
    x = torch.empty(count, dtype=dtype, device=device)
    assert since("requested") == count * dtype.itemsize == x.nbytes
    assert since("allocated") == rounded(x.nbytes)
    del x
    assert since("requested") == since("allocated") == 0


def test_track_counts_bytes_of_tensors_and_of_blocks_on_a_gpu(device: torch.device) -> None:
    with track(device) as memory:
        x = torch.zeros(25, device=device)
        y = torch.zeros(25, device=device).double()
        del y
    assert (memory.live, memory.peak) == (100, 400)
    assert (memory.allocated_live, memory.allocated_peak) == (512, 1536)
    del x


def test_what_autograd_keeps(device: torch.device, model: nn.Module) -> None:
    x = torch.randn(19, 37, device=device)
    batch, hidden, out = 19, 101, 53
    predicted = 4 * batch * (hidden + out)  # ReLU's output is the second layer's input; the square keeps its own
    assert saved_bytes(lambda: model(x).square().mean(), exclude=[model, x]) == predicted
    since = grown(device)
    loss = model(x).square().mean()
    assert since("requested") == predicted + 4  # the loss itself
    loss.backward()


def test_gradients_and_adamws_state_take_the_predicted_bytes(device: torch.device, model: nn.Module) -> None:
    count, tensors = sum(p.numel() for p in model.parameters()), len(list(model.parameters()))
    since = grown(device)
    model(torch.randn(19, 37, device=device)).square().mean().backward()
    assert since("requested") == 4 * count  # activations are gone, gradients are there
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    optimizer.step()
    predicted = 4 * count + 8 * count + 4 * tensors  # two averages, and a counter of steps for each tensor
    record("gradients and AdamW's state, measured against predicted", since("requested") / predicted, "times")
    assert since("requested") == predicted


def test_a_recorded_history_has_every_block_with_its_line(device: torch.device) -> None:
    since = grown(device)
    torch.cuda.memory._record_memory_history(stacks="python", clear_history=True)
    kept = torch.empty(1_000, device=device)
    passing = torch.empty(3_000, device=device)
    del passing
    later = torch.empty(500, device=device)
    snapshot = torch.cuda.memory._snapshot()
    torch.cuda.memory._record_memory_history(enabled=None)
    found = blocks(snapshot["device_traces"][device.index])
    assert [block.nbytes for block in found] == [4_000, 12_000, 2_000]
    assert [block.where.split(" = ")[0] for block in found] == ["kept", "passing", "later"]
    assert [block.until is None for block in found] == [True, False, True]
    assert [block.nbytes for block in held_at_peak(found)] == [4_000, 12_000]
    assert since("requested") == 6_000 == sum(block.nbytes for block in found if block.until is None)
    del kept, later

"""Copies between the CPU's memory and the GPU's, as lecture 01 tells of them."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import torch

from course_utils.predict import record
from course_utils.timing import Span, Timeline, benchmark, overlap

SIZE = 2**28  # bytes


def batches_and_steps(device: torch.device, copies: torch.cuda.Stream, products: torch.cuda.Stream) -> list[Span]:
    """Four copies from pinned memory and four products, each on the stream given for them."""
    pinned = torch.ones(SIZE // 4, dtype=torch.uint8).pin_memory()
    target = torch.empty_like(pinned, device=device)
    factor = torch.randn(8_192, 8_192, device=device, dtype=torch.bfloat16)
    out = torch.empty_like(factor)
    for _ in range(2):  # the first time warms up
        line = Timeline()
        for i in range(4):
            line.run("copies", f"batch {i}", copies, lambda: target.copy_(pinned, non_blocking=True))
            line.run("products", f"step {i}", products, lambda: torch.mm(factor, factor, out=out))
        spans = line.spans()
    return spans


def busy(spans: list[Span], stream: str) -> float:
    return sum(span.end - span.start for span in spans if span.stream == stream)


def test_a_copy_overlaps_with_what_another_stream_computes(device: torch.device) -> None:
    spans = batches_and_steps(device, torch.cuda.Stream(), torch.cuda.Stream())
    both = overlap(spans, "copies", "products")
    share = both / min(busy(spans, "copies"), busy(spans, "products"))
    record("copies and products on two streams: overlap, of the shorter", share, "times")
    assert share > 0.7


def test_one_stream_does_one_thing_after_the_other(device: torch.device) -> None:
    stream = torch.cuda.Stream()
    spans = batches_and_steps(device, stream, stream)
    assert overlap(spans, "copies", "products") < 0.02 * busy(spans, "copies")
    assert [span.start for span in spans] == sorted(span.start for span in spans)


@pytest.mark.parametrize(("pin", "returns_at_once"), [(True, True), (False, False)])
def test_only_a_copy_from_pinned_memory_returns_at_once(device: torch.device, pin: bool, returns_at_once: bool) -> None:
    source = torch.ones(SIZE, dtype=torch.uint8)
    source = source.pin_memory() if pin else source
    target = torch.empty_like(source, device=device)

    def seconds(wait: Callable[[], None]) -> float:
        torch.cuda.synchronize()
        began = time.perf_counter()
        target.copy_(source, non_blocking=True)
        wait()
        return time.perf_counter() - began

    seconds(torch.cuda.synchronize)  # warm up
    ordered = min(seconds(lambda: None) for _ in range(5))
    done = min(seconds(torch.cuda.synchronize) for _ in range(5))
    assert (ordered < 0.2 * done) == returns_at_once


def test_pinned_memory_is_faster(device: torch.device) -> None:
    ordinary = torch.ones(SIZE, dtype=torch.uint8)
    pinned, target = ordinary.pin_memory(), torch.empty(SIZE, dtype=torch.uint8, device=device)
    slow = benchmark(lambda: target.copy_(ordinary), device=device).minimum
    fast = benchmark(lambda: target.copy_(pinned, non_blocking=True), device=device).minimum
    record("copy to the GPU from ordinary memory", SIZE / slow, "B/s")
    record("copy to the GPU from pinned memory", SIZE / fast, "B/s")
    assert fast < slow
    assert torch.equal(target.cpu(), ordinary)

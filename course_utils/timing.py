"""Time a function properly (warm up, synchronize, repeat, report a distribution), and record a GPU's timeline."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from course_utils import device as devices
from course_utils.units import readable

SHORTEST_BLOCK = 1e-3  # seconds; shorter calls are timed in blocks, so that reading the clock costs next to nothing
FLUSH_BYTES = 256 * 2**20  # more than the last-level cache of the CPUs and GPUs that the course runs on


@dataclass(frozen=True)
class Timing:
    """Seconds per call, measured several times. Quote the median; the spread shows how far to trust it.

    Attributes:
        samples: seconds per call, one value for each measurement, in the order measured.
        calls: the total number of calls timed; if calls are short, a sample is the mean of several.
    """

    samples: tuple[float, ...]
    calls: int

    @property
    def median(self) -> float:
        """Half of the samples took at most this long (seconds)."""
        return float(np.median(self.samples))

    @property
    def minimum(self) -> float:
        """The fastest sample (seconds): the one least disturbed by other work on the machine."""
        return min(self.samples)

    @property
    def p20(self) -> float:
        """20% of the samples took at most this long (seconds)."""
        return float(np.quantile(self.samples, 0.2))

    @property
    def p80(self) -> float:
        """80% of the samples took at most this long (seconds)."""
        return float(np.quantile(self.samples, 0.8))

    @property
    def spread(self) -> float:
        """(p80 - p20) / median, without unit. If it's above 0.1 or so, something else was running: measure again."""
        return (self.p80 - self.p20) / self.median if self.median else 0.0

    def __str__(self) -> str:
        median, low, high = (readable(seconds, "s") for seconds in (self.median, self.p20, self.p80))
        return f"{median} ({low} to {high}, {self.calls} call{'s' * (self.calls != 1)})"


def benchmark(
    fn: Callable[[], Any],
    *,
    device: torch.device | str | None = None,
    warmup_seconds: float = 0.04,
    min_seconds: float = 0.15,
    min_samples: int = 4,
    flush_cache: bool = False,
    clock: Callable[[], float] = time.perf_counter,
    synchronize: Callable[[], None] | None = None,
) -> Timing:
    """Seconds that one call of `fn` takes, as a distribution.

    The first call is never timed (it may compile, allocate, load); then calls are repeated for
    `warmup_seconds`. Python's garbage collector is off throughout. Allocation counts as part of the time; to
    measure the computation alone, write into an existing tensor (`out=`).

    On a CPU each sample is a block of calls of 1 ms or more between two readings of the clock, with a
    synchronization before each reading. On CUDA each call is a sample, timed on the GPU by a pair of events,
    with one synchronization at the end; a kernel much shorter than its launch (about 10 µs) then shows the
    launch instead, unless `flush_cache` keeps the GPU busy while the launch happens.

    Args:
        fn: called without arguments, e.g. `lambda: torch.mm(x, w, out=y)`.
        device: where `fn` computes. None uses the CPU's method and also waits for the current GPU,
            which is right for any function but less precise on a GPU.
        warmup_seconds: how long to run before measuring.
        min_seconds: measure for at least this long …
        min_samples: … and take at least this many samples. If `fn` is slow, lower this to save time.
        flush_cache: overwrite 256 MiB before each call (not timed), so that `fn` starts with cold caches.
        clock: returns seconds, for tests on a simulated device; giving it or `synchronize` turns off CUDA events.
        synchronize: waits until all work is done, for tests on a simulated device.

    Raises:
        TypeError: `fn` cannot be called.
        ValueError: a limit is negative or not a number, or the clock doesn't advance.
        Any error that `fn` raises.

    Source: the method of torch.utils.benchmark.Timer (blocks) on a CPU and of triton.testing.do_bench
    (events, flush) on CUDA.
    """
    if not callable(fn):
        raise TypeError(f"benchmark was given a {type(fn).__name__}; expected a function: benchmark(lambda: x @ w).")
    for name, value in (("warmup_seconds", warmup_seconds), ("min_seconds", min_seconds)):
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(f"benchmark was given {name}={value}; expected a number of seconds, 0 or more.")
    if min_samples < 1:
        raise ValueError(f"benchmark was given min_samples={min_samples}; expected 1 or more.")

    place = None if device is None else torch.device(device)
    use_events = place is not None and place.type == "cuda" and clock is time.perf_counter and synchronize is None
    if synchronize is None:
        synchronize = _synchronize_all if place is None else lambda: devices.synchronize(place)
    flush = _cache_flusher(place or torch.device("cpu")) if flush_cache else None

    collector_was_on = gc.isenabled()
    gc.disable()
    try:
        fn()
        synchronize()
        if use_events:
            assert place is not None
            with torch.cuda.device(place):
                return _time_with_events(fn, warmup_seconds, min_seconds, min_samples, flush)
        return _time_with_clock(fn, warmup_seconds, min_seconds, min_samples, flush, clock, synchronize)
    finally:
        if collector_was_on:
            gc.enable()


def conclusion(finding: str, must_hold: Mapping[str, bool]) -> str:
    """What timings show, as a figure's title: ``finding`` if they can be trusted, else that they were disturbed.

    Args:
        finding: the conclusion to draw from the timings.
        must_hold: conditions that hold on any otherwise idle machine (an order, a bound, a spread). Each key is a
            phrase that can follow "expected:", and its value is whether the condition holds for these timings.

    Example:
        >>> conclusion("Twice the work takes 0.4 times as long", {"more work takes more time": False})
        'Timings disturbed, probably by another program: measure again (expected: more work takes more time)'
    """
    broken = [what for what, holds in must_hold.items() if not holds]
    if not broken:
        return finding
    return f"Timings disturbed, probably by another program: measure again (expected: {'; '.join(broken)})"


def _time_with_clock(
    fn: Callable[[], Any],
    warmup_seconds: float,
    min_seconds: float,
    min_samples: int,
    flush: Callable[[], None] | None,
    clock: Callable[[], float],
    synchronize: Callable[[], None],
) -> Timing:
    def seconds_of(calls: int) -> float:
        if flush:
            flush()
        synchronize()  # don't time work that was already queued
        start = clock()
        for _ in range(calls):
            fn()
        synchronize()  # until here the work may only have been queued
        return clock() - start

    # Warm up, and meanwhile find how many calls make a block. A flushed cache is cold for one call only.
    block, began = 1, clock()
    while True:
        took = seconds_of(block)
        if took <= 0 and (flush or block >= 2**20):
            raise ValueError(f"the clock did not advance during {block:,} call(s): has it stopped?")
        if took < SHORTEST_BLOCK and not flush:
            block *= 2
        elif clock() - began >= warmup_seconds:
            break

    samples: list[float] = []
    began = clock()
    while len(samples) < min_samples or clock() - began < min_seconds:
        samples.append(seconds_of(block) / block)
    return Timing(tuple(samples), calls=block * len(samples))


def _time_with_events(
    fn: Callable[[], Any],
    warmup_seconds: float,
    min_seconds: float,
    min_samples: int,
    flush: Callable[[], None] | None,
) -> Timing:
    def seconds_of(calls: int) -> list[float]:
        starts = [_event() for _ in range(calls)]
        ends = [_event() for _ in range(calls)]
        for start, end in zip(starts, ends, strict=True):
            if flush:
                flush()
            start.record()  # the GPU records the time when it gets here, not when Python does
            fn()
            end.record()
        torch.cuda.synchronize()
        return [start.elapsed_time(end) / 1e3 for start, end in zip(starts, ends, strict=True)]

    began = time.perf_counter()
    while True:
        typical = float(np.median(seconds_of(5)))
        if time.perf_counter() - began >= warmup_seconds:
            break
    calls = max(min_samples, min(10_000, math.ceil(min_seconds / max(typical, 1e-7))))
    return Timing(tuple(seconds_of(calls)), calls)


@dataclass(frozen=True)
class Span:
    """When one piece of work ran on a stream: ``start`` and ``end`` in seconds since the timeline began."""

    stream: str
    name: str
    start: float
    end: float


class Timeline:
    """When pieces of work ran on a GPU's streams, from a pair of events around each of them.

    A stream is a queue: the GPU works through each one in order, and can work on several at the same time. Creating the
    timeline waits until the GPU is idle, then starts the clock.

    Example:
        >>> line = Timeline()  # doctest: +SKIP
        >>> line.run("copies", "batch 1", torch.cuda.Stream(), lambda: x.copy_(pinned, non_blocking=True))
        >>> line.spans()
        [Span(stream='copies', name='batch 1', start=2.1e-05, end=0.00128)]
    """

    def __init__(self) -> None:
        torch.cuda.synchronize()
        self._begin = _event()
        self._begin.record()
        self._noted: list[tuple[str, str, torch.cuda.Event, torch.cuda.Event]] = []

    def run(self, name: str, what: str, stream: torch.cuda.Stream, fn: Callable[[], Any]) -> None:
        """Queue the work of `fn` on `stream`, under the given names, without waiting for it."""
        start, end = _event(), _event()
        with torch.cuda.stream(stream):
            start.record()
            fn()
            end.record()
        self._noted.append((name, what, start, end))

    def spans(self) -> list[Span]:
        """Wait until all work is done, and return when each piece ran, in the order in which they were queued."""
        torch.cuda.synchronize()
        since = self._begin.elapsed_time
        return [Span(name, what, since(start) / 1e3, since(end) / 1e3) for name, what, start, end in self._noted]


def overlap(spans: Sequence[Span], first: str, second: str) -> float:
    """Seconds during which both of these streams were working."""
    pairs = [(a, b) for a in spans for b in spans if (a.stream, b.stream) == (first, second)]
    return sum(max(0.0, min(a.end, b.end) - max(a.start, b.start)) for a, b in pairs)


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def _cache_flusher(device: torch.device) -> Callable[[], None]:
    buffer = torch.empty(FLUSH_BYTES, dtype=torch.int8, device=device)

    def flush() -> None:
        buffer.zero_()

    return flush


def _synchronize_all() -> None:
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.synchronize()
    if torch.backends.mps.is_available():
        torch.mps.synchronize()

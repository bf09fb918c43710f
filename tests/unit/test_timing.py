"""course_utils.timing: exact on a pretend device, and in agreement with torch.utils.benchmark on real work."""

import contextlib
import gc
import time

import pytest
import torch
from torch.utils.benchmark import Timer

from course_utils.timing import SHORTEST_BLOCK, Span, Timeline, Timing, benchmark, conclusion, overlap
from course_utils.units import readable

LAUNCH = 2.0**-18  # seconds until a call returns; powers of two keep every sum below exact
WORK = 2.0**-9  # seconds that the device then works
COMPILE = 1.0  # seconds more on the first call


class PretendDevice:
    """Works through a queue, like a GPU: a call returns when it is queued, `synchronize` waits for the work."""

    def __init__(self, work: float = WORK) -> None:
        self.work, self.now, self.busy_until, self.calls = work, 0.0, 0.0, 0

    def clock(self) -> float:
        return self.now

    def call(self) -> None:
        self.calls += 1
        self.now += LAUNCH
        work = self.work + (COMPILE if self.calls == 1 else 0)
        self.busy_until = max(self.busy_until, self.now) + work

    def synchronize(self) -> None:
        self.now = max(self.now, self.busy_until)

    def benchmark(self, **options) -> Timing:
        return benchmark(self.call, clock=self.clock, synchronize=self.synchronize, **options)


def test_every_sample_is_the_true_time():
    timing = PretendDevice().benchmark()
    assert set(timing.samples) == {LAUNCH + WORK}
    assert timing.median == timing.minimum == timing.p20 == timing.p80 == LAUNCH + WORK
    assert timing.spread == 0


def test_the_naive_ways_are_wrong_on_the_same_device():
    device = PretendDevice()
    start = device.clock()
    device.call()
    assert device.clock() - start == LAUNCH  # the clock read before the work was done
    device = PretendDevice()
    start = device.clock()
    device.call()
    device.synchronize()
    assert device.clock() - start == LAUNCH + WORK + COMPILE  # the first call timed


def test_work_queued_before_is_not_counted():
    device = PretendDevice()

    def leave_work_behind() -> None:
        device.call()
        device.synchronize()
        device.busy_until += 100  # somebody else's kernel, after ours

    timing = benchmark(
        leave_work_behind, clock=device.clock, synchronize=device.synchronize, min_samples=3, min_seconds=0
    )
    assert timing.samples == (LAUNCH + WORK + 100,) * 3  # each sample pays for its own, never for two


def test_short_calls_are_timed_in_blocks():
    short = 2.0**-16
    device = PretendDevice(work=short)
    timing = device.benchmark(min_samples=3, min_seconds=0)
    block = 128  # 64 calls last 0.98 ms
    assert 64 * short + LAUNCH < SHORTEST_BLOCK <= 128 * short + LAUNCH
    assert timing.samples == ((LAUNCH + block * short) / block,) * 3
    assert timing.calls == 3 * block


def test_benchmark_takes_as_many_samples_and_seconds_as_asked():
    per_call = LAUNCH + WORK
    assert len(PretendDevice().benchmark(min_samples=11, min_seconds=0).samples) == 11
    timing = PretendDevice().benchmark(min_samples=1, min_seconds=100 * per_call)
    assert len(timing.samples) == timing.calls == 100


def test_benchmark_warms_up_for_as_long_as_asked():
    per_call = LAUNCH + WORK
    device = PretendDevice()
    timing = device.benchmark(warmup_seconds=50 * per_call, min_samples=5, min_seconds=0)
    assert device.calls - timing.calls == 1 + 50  # the first call, then the warm-up
    device = PretendDevice()
    timing = device.benchmark(warmup_seconds=0, min_samples=5, min_seconds=0)
    assert device.calls - timing.calls >= 1
    assert timing.median == per_call


def test_the_median_is_not_moved_by_a_disturbance():
    device = PretendDevice()
    calls = 0

    def disturbed() -> None:
        nonlocal calls
        calls += 1
        device.call()
        if calls % 5 == 0:
            device.busy_until += 0.5

    timing = benchmark(disturbed, clock=device.clock, synchronize=device.synchronize, min_samples=50, min_seconds=0)
    assert timing.median == timing.minimum == LAUNCH + WORK < max(timing.samples)


def test_a_failing_function_raises_its_own_error_and_the_collector_is_back_on():
    def fail() -> None:
        raise KeyError("mine")

    assert gc.isenabled()
    with pytest.raises(KeyError, match="mine"):
        benchmark(fail)
    assert gc.isenabled()


def test_the_garbage_collector_rests_during_timing_and_stays_off_if_it_was():
    seen = set()
    benchmark(lambda: seen.add(gc.isenabled()), warmup_seconds=0, min_seconds=0, min_samples=1)
    assert seen == {False} and gc.isenabled()
    gc.disable()
    try:
        benchmark(lambda: None, warmup_seconds=0, min_seconds=0, min_samples=1)
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"warmup_seconds": -1}, "warmup_seconds=-1"),
        ({"min_seconds": float("nan")}, "min_seconds=nan"),
        ({"min_seconds": float("inf")}, "min_seconds=inf"),
        ({"min_samples": 0}, "min_samples=0"),
    ],
)
def test_bad_limits_are_clear_errors(options, says):
    with pytest.raises(ValueError, match=says):
        benchmark(lambda: None, **options)


def test_a_result_instead_of_a_function_is_a_clear_error():
    with pytest.raises(TypeError, match=r"was given a Tensor; expected a function: benchmark\(lambda: x @ w\)"):
        benchmark(torch.ones(2, 2) @ torch.ones(2, 2))


@pytest.mark.parametrize("flush_cache", [False, True])
def test_a_clock_that_stands_still_is_an_error_and_not_a_hang(flush_cache):
    with pytest.raises(ValueError, match="did not advance"):
        benchmark(lambda: None, clock=lambda: 1.0, synchronize=lambda: None, flush_cache=flush_cache)


def test_the_cache_is_flushed_before_each_call_and_not_timed(monkeypatch):
    device = PretendDevice(work=2.0**-16)
    log = []

    def flusher(place):
        def flush() -> None:
            log.append("flush")
            device.busy_until = max(device.busy_until, device.now) + 0.25

        return flush

    monkeypatch.setattr("course_utils.timing._cache_flusher", flusher)

    def fn() -> None:
        log.append("call")
        device.call()

    timing = benchmark(
        fn, clock=device.clock, synchronize=device.synchronize, flush_cache=True, min_samples=4, min_seconds=0
    )
    assert timing.samples == (LAUNCH + 2.0**-16,) * 4 and timing.calls == 4
    assert log[1:] == ["flush", "call"] * (len(log) // 2)


def test_the_cache_can_be_flushed_on_the_cpu():
    x = torch.ones(1000)
    timing = benchmark(lambda: x.add_(1), flush_cache=True, warmup_seconds=0, min_seconds=0, min_samples=2)
    assert timing.calls == 2 and timing.minimum > 0


class PretendCuda(PretendDevice):
    """The part of torch.cuda that times with events: a recorded event holds the time when the GPU gets there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, work: float = WORK) -> None:
        super().__init__(work)
        self.synchronizations = 0
        device = self

        class Event:
            def __init__(self, enable_timing: bool = False) -> None:
                assert enable_timing

            def record(self) -> None:
                self.at = max(device.busy_until, device.now)

            def elapsed_time(self, end: "Event") -> float:
                assert device.now >= end.at, "read before synchronize"
                return (end.at - self.at) * 1e3

        def synchronize(place=None) -> None:
            self.synchronizations += 1
            self.synchronize()

        monkeypatch.setattr(torch.cuda, "Event", Event)
        monkeypatch.setattr(torch.cuda, "synchronize", synchronize)
        monkeypatch.setattr(torch.cuda, "device", lambda place: contextlib.nullcontext())


def test_cuda_is_timed_by_events_with_one_synchronization_at_the_end(monkeypatch):
    cuda = PretendCuda(monkeypatch)
    timing = benchmark(cuda.call, device="cuda", warmup_seconds=0, min_seconds=0.5)
    assert timing.calls == len(timing.samples) == 256  # 0.5 s of 2⁻⁹ s each
    assert timing.median == timing.minimum == pytest.approx(WORK, rel=1e-12)
    assert max(timing.samples) == pytest.approx(WORK + LAUNCH, rel=1e-12)  # the GPU idled before the first
    assert cuda.synchronizations == 3  # first call, estimate, measurement


def test_cuda_flush_is_outside_the_events(monkeypatch):
    cuda = PretendCuda(monkeypatch, work=2.0**-20)  # a quarter of its launch
    flushed = []

    def flusher(place):
        def flush() -> None:
            flushed.append(str(place))
            cuda.busy_until = max(cuda.busy_until, cuda.now) + 0.001

        return flush

    monkeypatch.setattr("course_utils.timing._cache_flusher", flusher)
    options = {"device": "cuda:0", "warmup_seconds": 0, "min_seconds": 0, "min_samples": 9}
    cold = benchmark(cuda.call, flush_cache=True, **options)
    assert len(flushed) == 5 + 9 and set(flushed) == {"cuda:0"}
    assert cold.median == pytest.approx(2.0**-20)
    # Without it the GPU waits for each launch, which the documentation says.
    assert benchmark(cuda.call, **options).median == pytest.approx(LAUNCH)


def test_a_timeline_tells_when_each_stream_was_at_work(monkeypatch):
    """Two streams of a GPU at work together; the current stream decides which one an event is of."""
    cuda = PretendCuda(monkeypatch)
    busy_until = {"copies": 0.0, "products": 0.0}
    current = ["copies"]

    @contextlib.contextmanager
    def stream(name):
        current.append(name)
        cuda.busy_until = busy_until[name]
        yield
        busy_until[name] = cuda.busy_until
        cuda.busy_until = max(busy_until.values())
        current.pop()

    def work(seconds):
        def fn() -> None:
            cuda.busy_until = max(cuda.busy_until, cuda.now) + seconds

        return fn

    monkeypatch.setattr(torch.cuda, "stream", stream)
    cuda.now = 8.0
    line = Timeline()
    for name, what, seconds in [("copies", "0", 1.0), ("copies", "1", 1.0), ("products", "0", 1.5)]:
        line.run(name, what, name, work(seconds))
    spans = line.spans()
    assert spans == [
        Span("copies", "0", 0.0, 1.0), Span("copies", "1", 1.0, 2.0), Span("products", "0", 0.0, 1.5)
    ]  # fmt: skip
    assert overlap(spans, "copies", "products") == overlap(spans, "products", "copies") == 1.5
    assert overlap(spans, "copies", "nothing") == overlap([], "copies", "products") == 0
    apart = [Span("copies", "0", 0.0, 1.0), Span("products", "0", 1.0, 2.0)]
    assert overlap(apart, "copies", "products") == 0


def test_a_timing_has_percentiles_and_prints_as_one_line():
    timing = Timing(samples=(0.015, 0.0147, 0.0149, 0.0154, 0.0146, 0.0199), calls=42)
    assert timing.minimum == 0.0146 and timing.p20 == 0.0147 and timing.p80 == 0.0154
    assert timing.median == pytest.approx(0.01495)
    assert timing.spread == pytest.approx(0.0007 / 0.01495)
    assert str(timing) == "14.9 ms (14.7 ms to 15.4 ms, 42 calls)"
    assert str(Timing(samples=(2e-6,), calls=1)) == "2 µs (2 µs to 2 µs, 1 call)"


def test_a_conclusion_stands_only_if_all_holds_that_must():
    assert conclusion("Size decides", {}) == "Size decides"
    assert conclusion("Size decides", {"large beats small": True, "no more than the peak": True}) == "Size decides"
    said = conclusion("Size decides", {"large beats small": False, "it ends": True, "no more than the peak": False})
    assert said.startswith("Timings disturbed") and "measure again" in said and "Size decides" not in said
    assert "large beats small; no more than the peak" in said and "it ends" not in said


def test_a_known_duration_is_measured_to_within_ten_percent():
    def spin() -> None:
        end = time.perf_counter() + 5e-4
        while time.perf_counter() < end:
            pass

    minima = [benchmark(spin, warmup_seconds=0.01, min_seconds=0.03).minimum for _ in range(6)]
    assert 5e-4 <= min(minima) < 1.1 * 5e-4


@pytest.mark.slow
def test_timings_agree_with_torch_utils_benchmark():
    """The minimum of the best of several, on one thread, taking turns: single medians differ on a busy machine."""
    x = torch.randn(256, 256)
    y = torch.empty_like(x)
    timer = Timer("torch.mm(x, x, out=y)", globals={"torch": torch, "x": x, "y": y})
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as Timer does
    try:
        for _ in range(4):
            ours, theirs = [], []
            for _ in range(6):
                ours.append(benchmark(lambda: torch.mm(x, x, out=y), warmup_seconds=0.02).minimum)
                theirs.append(min(timer.blocked_autorange(min_run_time=0.2).times))
            if 0.8 < (ratio := min(ours) / min(theirs)) < 1.2:
                return
        pytest.fail(f"ours / Timer = {ratio:.3f} ({readable(min(ours), 's')}, {readable(min(theirs), 's')})")
    finally:
        torch.set_num_threads(threads)

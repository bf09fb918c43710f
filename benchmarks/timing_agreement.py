"""Compare course_utils.timing.benchmark with torch.utils.benchmark.Timer on the same work.

Both use one thread (Timer's default) and take turns. There are two ratios for each kind of work: of the best minimum
over all rounds, which other programs hardly affect, and of the medians round by round, which they do affect. Timer's
samples are means of longer blocks, so its minimum is a little higher. A third ratio compares the seconds that the two
measurements themselves take, called in the usual way: `benchmark(f)` and `Timer(…).blocked_autorange()`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from matplotlib.figure import Figure
from record import dots, ratios, spread, times
from torch.utils.benchmark import Timer

from course_utils.timing import benchmark
from course_utils.units import readable

TITLE = "Timing"


def works(device: torch.device) -> dict[str, tuple[str, dict[str, object]]]:
    """Name → statement and the names that it uses."""
    tensors = {n: torch.randn(n, n, device=device) for n in (64, 256, 1024)}
    out = {n: torch.empty_like(x) for n, x in tensors.items()}
    names: dict[str, object] = {"torch": torch}
    found = {f"matmul {n} × {n}": ("torch.mm(x, x, out=y)", names | {"x": x, "y": out[n]}) for n, x in tensors.items()}
    large = torch.randn(2**23, device=device)
    found["add, 32 MiB"] = ("torch.add(x, 1, out=y)", names | {"x": large, "y": torch.empty_like(large)})
    found["add, 10 numbers"] = (
        "torch.add(x, 1, out=y)",
        names | {"x": large[:10], "y": large[10:20].clone()},
    )
    found["gelu, allocating"] = ("torch.nn.functional.gelu(x)", names | {"x": large[: 2**20]})
    return found


def measure(say: Callable[[str], None], rounds: int = 20) -> Iterator[dict[str, Any]]:
    """For each kind of work: minima, and the ratios of minima, of medians, and of the time that measuring takes."""
    place = torch.device("cpu")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    found: dict[str, Any] = {}
    try:
        for name, (statement, names) in works(place).items():
            timer = Timer(statement, globals=names)
            call = eval(f"lambda: {statement}", dict(names))
            ours, theirs, spent = [], [], ([], [])  # type: ignore[var-annotated]
            for _ in range(rounds):
                began = time.perf_counter()
                ours.append(benchmark(call, device=place))
                between = time.perf_counter()
                theirs.append(timer.blocked_autorange())
                spent[0].append(between - began)
                spent[1].append(time.perf_counter() - between)
            best = min(timing.minimum for timing in ours), min(min(measured.times) for measured in theirs)
            found[name] = {
                "benchmark": best[0],
                "Timer": best[1],
                "minima": best[0] / best[1],
                "medians": ratios([timing.median for timing in ours], [measured.median for measured in theirs]),
                "time spent": ratios(*spent),
                "seconds spent": spread(spent[0]),
            }
            say(f"{name}: {readable(best[0], 's')}, Timer {readable(best[1], 's')}, {times(found[name]['medians'])}")
    finally:
        torch.set_num_threads(threads)
    yield found


def rows(found: dict[str, Any]) -> list[list[str]]:
    table = [["work, one thread", "benchmark", "Timer", "minima", "medians", "time spent"]]
    for name, one in found.items():
        minima = [readable(one[key], "s") for key in ("benchmark", "Timer")]
        table.append([name, *minima, f"{one['minima']:.3f} ×", times(one["medians"]), times(one["time spent"], 2)])
    return table


def draw(found: dict[str, Any]) -> Figure:
    long = [abs(one["medians"]["median"] - 1) for one in found.values() if one["Timer"] >= 1e-3]
    return dots(
        {name: one["medians"] for name, one in found.items()},
        unit="",
        xlabel="median of course_utils.timing.benchmark / median of torch.utils.benchmark.Timer",
        title=f"Work of 1 ms and more takes the same by both clocks, within {max(long):.1%}",
        line=("equal", 1.0),
    )

"""course_utils.timing.benchmark beside torch.utils.benchmark.Timer on the same work.

Run: python benchmarks/timing_agreement.py

Both use one thread (Timer's default) and take turns. Two ratios are printed for each work: of the best minimum over
all rounds, which other programs on the machine hardly move, and of the medians round by round with their range,
which they do move. Timer's samples are means of longer blocks: its minimum is therefore a little higher.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
import torch
from torch.utils.benchmark import Timer

from course_utils.device import describe, pick_device
from course_utils.timing import benchmark
from course_utils.units import readable


def works(device: torch.device) -> dict[str, tuple[str, dict[str, object]]]:
    """Name → statement and the names that it uses."""
    tensors = {n: torch.randn(n, n, device=device) for n in (64, 256, 1024)}
    out = {n: torch.empty_like(x) for n, x in tensors.items()}
    names: dict[str, object] = {"torch": torch}
    found = {f"matmul {n} × {n}": ("torch.mm(x, x, out=y)", names | {"x": x, "y": out[n]}) for n, x in tensors.items()}
    large = torch.randn(2**22, device=device)
    found["add, 16 MiB"] = ("torch.add(x, 1, out=y)", names | {"x": large, "y": torch.empty_like(large)})
    found["add, 10 numbers"] = (
        "torch.add(x, 1, out=y)",
        names | {"x": large[:10], "y": large[10:20].clone()},
    )
    found["gelu, allocating"] = ("torch.nn.functional.gelu(x)", names | {"x": large[: 2**20]})
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="cpu, cuda, … (default: the fastest here)")
    parser.add_argument("--rounds", type=int, default=6, help="measurements of each kind (default 6)")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error(f"--rounds was given {options.rounds}; wanted 1 or more")
    device = pick_device(options.device)
    torch.set_num_threads(1)
    print(describe(device))
    print(f"{'work':20}{'ours, min':>12}{'Timer, min':>12}{'ratio':>8}{'ratio of medians':>24}")
    for name, (statement, names) in works(device).items():
        timer = Timer(statement, globals=names)
        call = eval(f"lambda: {statement}", dict(names))
        ours, theirs = [], []
        for _ in range(options.rounds):
            ours.append(benchmark(call, device=device))
            theirs.append(timer.blocked_autorange(min_run_time=0.2))
        our_best = min(timing.minimum for timing in ours)
        their_best = min(min(measured.times) for measured in theirs)
        ratios = [a.median / b.median for a, b in zip(ours, theirs, strict=True)]
        print(
            f"{name:20}{readable(our_best, 's'):>12}{readable(their_best, 's'):>12}{our_best / their_best:8.3f}"
            f"{np.median(ratios):12.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())

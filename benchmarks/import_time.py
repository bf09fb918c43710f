"""What importing all of course_utils adds to importing torch. Run: python benchmarks/import_time.py

Fresh processes take turns importing the libraries alone and with every module of course_utils, so that whatever else
the machine does meets both alike. Each process times itself. The target is under 50 ms. Only `plots` needs
matplotlib, whose own import is shown in a line of its own and is not ours to shorten.
"""

from __future__ import annotations

import argparse
import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import numpy as np

import course_utils

TARGET = 0.050  # seconds
LIBRARIES = {
    "torch": ["torch"],
    "matplotlib (for plots)": ["matplotlib.backends.backend_agg", "matplotlib.figure", "matplotlib.style"],
}
PROGRAM = """
import json, sys, time
marks = [time.perf_counter()]
for names in sys.argv[1:]:
    for name in names.split():
        __import__(name)
    marks.append(time.perf_counter())
print(json.dumps([later - earlier for earlier, later in zip(marks, marks[1:])]))
"""


def run(modules: list[str]) -> list[float]:
    """Seconds to import each of the libraries and then each of `modules`, in a fresh process."""
    libraries = [" ".join(names) for names in LIBRARIES.values()]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *libraries, *modules],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    return [float(seconds) for seconds in json.loads(done.stdout)]


def row(name: str, seconds: list[float]) -> str:
    median, low, high = (1e3 * np.quantile(seconds, q) for q in (0.5, 0.2, 0.8))
    return f"{name:34}{median:8.1f}{low:8.1f}{high:8.1f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="processes of each kind (default 15)")
    rounds = parser.parse_args().rounds
    if rounds < 1:
        parser.error(f"--rounds was given {rounds}; wanted 1 or more")
    modules = [f"course_utils.{module.name}" for module in pkgutil.iter_modules(course_utils.__path__)]
    run(modules)  # writes bytecode and fills the disk cache, which is not what is compared
    alone, both = [], []
    for _ in range(rounds):
        alone.append(run([]))
        both.append(run(modules))

    libraries_alone = [sum(seconds) for seconds in alone]
    everything = [sum(seconds) for seconds in both]
    ours = [sum(seconds[len(LIBRARIES) :]) for seconds in both]
    print(f"{f'ms, {rounds} processes of each kind':34}{'median':>8}{'p20':>8}{'p80':>8}")
    for place, library in enumerate(LIBRARIES):
        print(row(library, [seconds[place] for seconds in alone]))
    print(row("both and course_utils", everything))
    print(row("  of which course_utils", ours))
    for place, module in enumerate(modules, start=len(LIBRARIES)):
        print(row(f"    {module.removeprefix('course_utils.')}", [seconds[place] for seconds in both]))
    added = float(np.median(ours))
    difference = float(np.median(everything) - np.median(libraries_alone))
    print(f"course_utils adds {1e3 * added:.1f} ms (difference of the medians above: {1e3 * difference:.1f} ms)")
    print(f"target {1e3 * TARGET:.0f} ms: {'met' if added < TARGET else 'missed'}")
    return 0 if added < TARGET else 1


if __name__ == "__main__":
    sys.exit(main())

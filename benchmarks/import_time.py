"""What importing all of course_utils adds to importing torch.

Fresh processes take turns importing the libraries alone and with every module of course_utils, so that whatever else
the machine does affects both. Each process times itself. The target is under 50 ms. Only `plots` needs matplotlib,
whose import is shown in a separate line because we can't shorten it; the same is true of anywidget and `explorers`.
"""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from record import dots, ratios, spread, times

import course_utils

TITLE = "Import"
TARGET = 0.050  # seconds
LIBRARIES = {
    "torch": ["torch"],
    "matplotlib, for plots": ["matplotlib.backends.backend_agg", "matplotlib.figure", "matplotlib.style"],
    "anywidget, for explorers": ["anywidget"],
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


def measure(say: Callable[[str], None], rounds: int = 15) -> Iterator[dict[str, Any]]:
    """Seconds of each import, and the seconds that all of course_utils adds."""
    modules = [f"course_utils.{module.name}" for module in pkgutil.iter_modules(course_utils.__path__)]
    run(modules)  # writes bytecode and fills the disk cache, which is not what is compared
    alone, both = [], []
    for _ in range(rounds):
        alone.append(run([]))
        both.append(run(modules))
    count = len(LIBRARIES)
    ours = spread([sum(seconds[count:]) for seconds in both])
    say(f"course_utils adds {1e3 * ours['median']:.1f} ms; the target of {1e3 * TARGET:.0f} ms is "
        f"{'met' if ours['median'] < TARGET else 'missed'}")  # fmt: skip
    yield {
        "libraries": {name: spread([one[place] for one in alone]) for place, name in enumerate(LIBRARIES)},
        "course_utils": ours,
        "all / libraries alone": ratios([sum(one) for one in both], [sum(one) for one in alone]),
        "modules": {name: spread([one[place] for one in both]) for place, name in enumerate(modules, start=count)},
        "target": TARGET,
    }


def _parts(found: dict[str, Any]) -> dict[str, dict[str, float]]:
    return {**found["libraries"], "all of course_utils": found["course_utils"]}


def rows(found: dict[str, Any]) -> list[list[str]]:
    table = [["import", "ms", "lowest to highest"]]
    slowest = sorted(found["modules"].items(), key=lambda item: -item[1]["median"])[:5]
    for name, one in [*_parts(found).items(), *slowest]:
        middle, low, high = (f"{1e3 * one[key]:.1f}" for key in ("median", "low", "high"))
        table.append([name, middle, f"{low} to {high}"])
    table.append(["all / libraries alone", times(found["all / libraries alone"]), ""])
    return table


def draw(found: dict[str, Any]) -> Figure:
    return dots(
        _parts(found),
        unit="s",
        xlabel="seconds to import, in a fresh process",
        title=f"The course's own modules add {1e3 * found['course_utils']['median']:.0f} ms to what torch takes",
    )

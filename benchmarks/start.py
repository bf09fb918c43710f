"""How soon `course grade` has its first result, compared with importing PyTorch.

Fresh processes take turns: `python -c "import torch"`, and `course grade` on a class of four, with one worker and with
two, each from the command's start to its first result file. Until then a worker and its sandbox both have to import
PyTorch. The target is three times the import.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from grading import make_class
from matplotlib.figure import Figure
from record import dots, ratios, spread, times

from autograder import project
from autograder.authoring import build

TITLE = "Start"
TARGET = 3.0  # times what importing PyTorch takes
STUDENTS, WORKERS = 4, (1, 2)
IMPORT = "import torch"


def imported() -> float:
    """Seconds that a fresh Python takes to import PyTorch."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", IMPORT], check=True)
    return time.perf_counter() - start


def first_result(course: Path, lecture_name: str, workers: int) -> tuple[float, float]:
    """Seconds until `course grade` has written its first result, and until it ends."""
    results = course / "results"
    shutil.rmtree(results, ignore_errors=True)
    (course / "gradebook.db").unlink(missing_ok=True)
    command = [sys.executable, "-m", "autograder.cli", "grade", str(course), lecture_name, "--workers", str(workers)]
    start, first = time.perf_counter(), 0.0
    running = subprocess.Popen(command, cwd=project.ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while running.poll() is None:
        if not first and any((results / lecture_name).glob("*.json")):
            first = time.perf_counter() - start
        time.sleep(0.005)
    if running.returncode or not first:
        sys.exit(f"{command} failed:\n{running.communicate()[0][-3000:]}")
    return first, time.perf_counter() - start


def measure(
    say: Callable[[str], None], rounds: int = 5, lecture_name: str = "00_napkin_math"
) -> Iterator[dict[str, Any]]:
    """Seconds of the import and of each first result, and their ratios."""
    with tempfile.TemporaryDirectory() as scratch:
        course = Path(scratch, "course")
        (lecture,) = build.course_directory(course, [project.source_path(lecture_name)])
        make_class(course, lecture, STUDENTS)
        alone: list[float] = []
        first: dict[int, list[float]] = {count: [] for count in WORKERS}
        ended: dict[int, list[float]] = {count: [] for count in WORKERS}
        imported()  # fills the disk cache, which is not what is compared
        for _ in range(rounds):
            alone.append(imported())
            for count in WORKERS:
                seconds, end = first_result(course, lecture_name, count)
                first[count].append(seconds)
                ended[count].append(end)
            say(f"import torch {alone[-1]:.2f} s; first result " + ", ".join(
                f"{times_[-1]:.2f} s with {count} worker{'s' * (count > 1)}" for count, times_ in first.items()
            ))  # fmt: skip
            yield {
                "import": spread(alone),
                "first": {str(count): spread(found) for count, found in first.items()},
                "end": {str(count): spread(found) for count, found in ended.items()},
                "first / import": {str(count): ratios(found, alone) for count, found in first.items()},
                "target": TARGET,
            }


def _names(found: dict[str, Any], kind: str) -> dict[str, dict[str, float]]:
    return {f"{count} worker{'s' * (count != '1')}": one for count, one in found[kind].items()}


def rows(found: dict[str, Any]) -> list[list[str]]:
    table = [["", "seconds", "lowest to highest", "of import torch"]]

    def row(name: str, one: dict[str, float], ratio: str) -> None:
        table.append([name, f"{one['median']:.2f}", f"{one['low']:.2f} to {one['high']:.2f}", ratio])

    row("import torch", found["import"], "1")
    for name, one in _names(found, "first").items():
        row(f"first result, {name}", one, times(_names(found, "first / import")[name]))
    for name, one in _names(found, "end").items():
        row(f"all {STUDENTS} graded, and the gradebook, {name}", one, "")
    return table


def draw(found: dict[str, Any]) -> Figure:
    first = {f"first result, {name}": one for name, one in _names(found, "first").items()}
    ratio = found["first / import"]["1"]["median"]
    return dots(
        {"import torch": found["import"], **first},
        unit="s",
        xlabel="seconds, from the command's start",
        title=f"With one worker the first result comes after {ratio:.1f} times what importing PyTorch takes",
    )

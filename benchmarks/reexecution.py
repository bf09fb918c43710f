"""All solved notebooks re-executed by stock nbval, and by nbval on kernels that start warm, side by side in one run.

Every lecture is executed once, which gives the outputs to compare with. Then the same command, `pytest --nbval` over
all of them, takes turns on stock kernels and on warm ones (autograder.authoring.kernel), one notebook after another
and two at a time (pytest-xdist). Nothing else differs: all run every cell and compare every output. A warm run includes
its servers. Waiting OpenMP threads sleep in all runs (OMP_WAIT_POLICY=passive), because on a busy machine they would
take most of the time.

Elapsed seconds say how long you wait; processor seconds say how much work was done. The floor is the time in the cells
themselves on warm kernels, as if kernels started and imported instantly.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
from matplotlib.figure import Figure
from nbclient import NotebookClient
from record import dots, ranged, ratios, spread, times

from autograder import project
from autograder.grading import source

TITLE = "Re-executing the lectures"
SIDES = {  # the name of the kernels' provisioner, and notebooks at a time
    "stock": ("local-provisioner", 1),
    "warm": ("warm", 1),
    "stock, two at a time": ("local-provisioner", 2),
    "warm, two at a time": ("warm", 2),
}
TAKEN = ("seconds", "CPU seconds", "seconds in cells")  # from request to last output, summed up
ENVIRONMENT = {"COURSE_PRESET": "small", "OMP_WAIT_POLICY": "passive"}


def execute(paths: list[Path], folder: Path) -> None:
    """Run the lectures once and save the notebooks with their outputs; outputs of timings aren't compared."""
    for path in paths:
        lecture = source.read(path)
        for index in lecture.timed:
            lecture.notebook.cells[index].metadata["tags"] = ["nbval-ignore-output"]
        NotebookClient(lecture.notebook, timeout=300, resources={"metadata": {"path": folder}}).execute()
        nbformat.write(lecture.notebook, folder / f"{lecture.name}.ipynb")


def nbval(folder: Path, provisioner: str, at_a_time: int) -> tuple[float, float, float]:
    """Run `pytest --nbval` on a folder; return elapsed seconds, processor seconds, and seconds in cells."""
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "--nbval-cell-timeout=300"]
    command += ["-p", "no:cacheprovider", "-q", "-vv", "--durations=0", str(folder)]
    if at_a_time > 1:
        command += ["-n", str(at_a_time), "--dist", "loadscope"]  # a worker has the whole of a notebook
    environment = {**os.environ, **ENVIRONMENT, "JUPYTER_DEFAULT_PROVISIONER_NAME": provisioner}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if ran.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{ran.stdout[-3000:]}{ran.stderr[-1000:]}")
    processors = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, processors, sum(map(float, re.findall(r"^ *([\d.]+)s call ", ran.stdout, re.MULTILINE)))


def measure(say: Callable[[str], None], rounds: int = 3) -> Iterator[dict[str, Any]]:
    """Take turns over all lectures; return seconds, and the ratio of stock to each variant in each round."""
    paths = source.lectures(project.SOLUTIONS)
    taken: dict[str, list[tuple[float, ...]]] = {side: [] for side in SIDES}
    os.environ.update(ENVIRONMENT)
    with tempfile.TemporaryDirectory() as scratch:
        execute(paths, Path(scratch))
        for number in range(rounds):
            for side in list(SIDES)[:: 1 if number % 2 else -1]:
                taken[side].append(nbval(Path(scratch), *SIDES[side]))
                values = (f"{value:.1f} {what}" for value, what in zip(taken[side][-1], TAKEN, strict=True))
                say(f"{side}: {', '.join(values)}")
            columns = {side: dict(zip(TAKEN, zip(*lists, strict=True), strict=True)) for side, lists in taken.items()}
            yield {
                "notebooks": len(paths),
                **{side: {what: spread(values) for what, values in found.items()} for side, found in columns.items()},
                "times as fast as stock": {
                    side: ratios(columns["stock"]["seconds"], columns[side]["seconds"]) for side in list(SIDES)[1:]
                },
            }


def rows(found: dict[str, Any]) -> list[list[str]]:
    table = [[f"{found['notebooks']} notebooks", *TAKEN, "times as fast as stock"]]
    for side in SIDES:
        values = [ranged(one, ".0f") for one in found[side].values()]
        ratio = found["times as fast as stock"].get(side)
        table.append([side, *values, times(ratio) if ratio else "1"])
    return table


def draw(found: dict[str, Any]) -> Figure:
    one, two = (found["times as fast as stock"][side]["median"] for side in ("warm", "warm, two at a time"))
    return dots(
        {side: found[side]["seconds"] for side in SIDES},
        unit="s",
        xlabel="seconds to re-execute all lectures and compare what they show",
        title=f"On warm kernels {one:.2f} times as fast, and two at a time {two:.2f} times",
        line=("cells alone, one after another", found["warm"]["seconds in cells"]["median"]),
    )

"""Shared by the benchmarks: spreads over rounds, the machine, the results file, and the figures."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import torch
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from course_utils import keeping
from course_utils.device import describe, pick_device
from course_utils.plots.axes import chart, log_ticks, mark
from course_utils.plots.style import CONTEXT, INK, styled
from course_utils.units import readable

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "cpu.json"

Spread = dict[str, float]


def spread(values: Sequence[float]) -> Spread:
    """The median, lowest and highest of several rounds."""
    return {"median": statistics.median(values), "low": min(values), "high": max(values), "rounds": len(values)}


def ratios(above: Sequence[float], below: Sequence[float]) -> Spread:
    """The spread of quotients, each of two numbers from the same round."""
    return spread([a / b for a, b in zip(above, below, strict=True)])


def ranged(found: Spread, form: str, unit: str = "") -> str:
    """A spread as text: the median, and lowest to highest if there are several rounds."""
    low, middle, high = (format(found[key], form).rstrip(".") for key in ("low", "median", "high"))
    return f"{middle}{unit}" + (f" ({low} to {high})" if found["rounds"] > 1 else "")


def times(ratio: Spread, digits: int = 3) -> str:
    """A ratio as text with this many digits."""
    return ranged(ratio, f"#.{digits}g", " ×")


def machine() -> dict[str, Any]:
    """The machine that the numbers come from."""
    return {
        "device": describe(pick_device("cpu")),
        "system": platform.system(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cores": os.cpu_count(),
        "memory": psutil.virtual_memory().total,
    }


def load(path: Path = RESULTS) -> dict[str, Any]:
    """The results file; {} if there's none yet."""
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return found


def save(found: Mapping[str, Any], path: Path = RESULTS) -> None:
    """Write the results file completely or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    keeping.write(path, found)


def show(rows: Sequence[Sequence[str]]) -> None:
    """Print a table; the first row is the header."""
    table = Table(*rows[0])
    for row in rows[1:]:
        table.add_row(*row)
    Console(highlight=False).print(table)


def dots(
    rows: Mapping[str, Spread], *, unit: str, xlabel: str, title: str, line: tuple[str, float] | None = None
) -> Figure:
    """A dot for each median on a logarithmic axis, a whisker from the lowest to the highest round, a dashed line."""
    values = [row[key] for row in rows.values() for key in ("low", "high")] + ([line[1]] if line else [])
    with styled():
        fig, ax = chart(8.9, 1.5 + 0.4 * len(rows), title, left=0.5 + 0.075 * max(map(len, rows)), right=0.9)
        around = (max(values) / min(values)) ** 0.08
        ax.set(xscale="log", xlim=(min(values) / around, max(values) * around), xlabel=xlabel)
        ax.set_ylim(len(rows) - 0.4, -0.6)
        log_ticks(ax.xaxis, *ax.get_xlim(), unit, most=7)
        ax.set_yticks(range(len(rows)), list(rows))
        ax.tick_params(axis="y", length=0)
        ax.grid(True, axis="x")
        for place, row in enumerate(rows.values()):
            ax.plot([row["low"], row["high"]], [place, place], color=INK, linewidth=1.2, marker="|", markersize=7)
            mark(ax, row["median"], place, "o", measured=True, gid=f"row {place}")
            text = readable(row["median"], unit) if unit else f"{row['median']:.3f}"
            ax.annotate(text, (row["high"], place), xytext=(9, 0), textcoords="offset points", va="center")
        if line:
            ax.axvline(line[1], color=CONTEXT, linestyle="--")
            ax.annotate(line[0], (line[1], -0.55), xytext=(4, 0), textcoords="offset points", va="top", color=INK)
    return fig

"""Run everything that needs a GPU and save the results: every lecture with its solutions, then tests/gpu.

Run: make gpu

Continues after a failure. Writes gpu-CARD-DATE.json into benchmarks/results (docs/gpu-runner.md describes it) after
each part, so that an interrupted run leaves what it has, and beside it the figures: rooflines, the timeline of copies
and multiplications, the capstone's path to its MFU. The executed notebooks stay in build/gpu. The exit status is 0 if
every lecture and every test passed. `--device cpu` does the same at a CPU's small sizes, to try the program out.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import nbformat
import torch
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from autograder.authoring.kernel import execution
from autograder.grading import source
from course_utils import device as devices
from course_utils import keeping, predict, progress
from course_utils.units import readable

ROOT = Path(__file__).resolve().parent.parent
SOLUTIONS = ROOT / "solutions"
TESTS = ROOT / "tests" / "gpu"
WORK = ROOT / "build" / "gpu"
RESULTS = ROOT / "benchmarks" / "results"
CELL_SECONDS = 1_200  # that one cell may take
TESTS_SECONDS = 1_200
DRAWN = ("roofline", "mfu_curve", "timeline", "mfu_ladder")  # figures of course_utils.plots that are kept
# What a card should reach: (unit, measurement, at least). Reported; to miss one is no failure of the course.
TARGETS = (
    ("MFU", "best bfloat16 matmul", 0.75),
    ("MFU", "training step of the capstone, at its best", 0.50),
)


def first_line(*command: str) -> str | None:
    """A command's first line of output, or None if it's missing or fails."""
    try:
        ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ran.stdout.partition("\n")[0].strip() or None if ran.returncode == 0 else None


def machine(device: torch.device) -> dict[str, Any]:
    driver = "--query-gpu=driver_version", "--format=csv,noheader"
    return {
        "card": devices.device_name(device),
        "description": devices.describe(device),
        "memory_bytes": devices.total_memory(device),
        "driver": first_line("nvidia-smi", *driver) if device.type == "cuda" else None,
        "cuda": torch.version.cuda if device.type == "cuda" else None,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "commit": first_line("git", "rev-parse", "HEAD"),
    }


def run_lecture(path: Path, environ: dict[str, str], bars: Progress) -> tuple[dict[str, Any], nbformat.NotebookNode]:
    """Execute a lecture with its solutions in a new kernel; return name, seconds, what went wrong, and the notebook."""
    began = time.perf_counter()
    notebook = nbformat.v4.new_notebook()
    error = None
    bar = bars.add_task(path.stem, total=None)
    try:
        notebook = source.read(path).notebook
        bars.update(bar, total=len(notebook.cells))
        folder = WORK / path.stem
        folder.mkdir(parents=True, exist_ok=True)
        execution.run_cells(
            notebook,
            folder,
            CELL_SECONDS,
            environ=environ,
            on_cell_start=lambda cell, cell_index: bars.update(bar, completed=cell_index),
        )
        bars.update(bar, completed=len(notebook.cells))
    except Exception as problem:  # a cell that fails or takes too long, a kernel that dies, a source that is not sound
        error = re.sub(r"\x1b\[[0-9;]*m", "", str(problem)).strip()[-4_000:] or type(problem).__name__
    finally:
        bars.remove_task(bar)
    nbformat.write(notebook, WORK / f"{path.stem}.ipynb")
    seconds = round(time.perf_counter() - began, 1)
    return {"name": path.stem, "passed": error is None, "seconds": seconds, "error": error}, notebook


def pictures(notebook: nbformat.NotebookNode) -> dict[str, str]:
    """The SVGs that a notebook's cells drew with the functions in DRAWN, by function."""
    found = {}
    for cell in notebook.cells:
        for function in DRAWN:
            for output in cell.get("outputs", []) if f"plots.{function}(" in cell.source else []:
                if (html := output.get("data", {}).get("text/html", "")).startswith("<svg"):
                    found[function] = html
    return found


def run_tests(environ: dict[str, str]) -> list[dict[str, Any]]:
    """Run the tests that need a GPU; return names, outcomes, seconds, and why a test didn't pass."""
    report = WORK / "tests.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", str(TESTS)]
    try:
        ran = subprocess.run(
            command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", timeout=TESTS_SECONDS,
        )  # fmt: skip
        said, code = ran.stdout, ran.returncode
    except subprocess.TimeoutExpired:
        said, code = f"the tests had not ended after {TESTS_SECONDS} seconds", -1
    tests = []
    for case in ET.parse(report).iter("testcase") if report.exists() else []:
        about = next((part for part in case if part.tag in ("failure", "error", "skipped")), None)
        outcome = "passed" if about is None else "skipped" if about.tag == "skipped" else "failed"
        error = None if about is None else (about.get("message", "") if outcome == "skipped" else about.text or "")
        name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
        tests.append({"name": name, "outcome": outcome, "seconds": float(case.get("time", 0)), "error": error})
    if code != 0 and not any(test["outcome"] == "failed" for test in tests):
        tests.append({"name": TESTS.name, "outcome": "failed", "seconds": 0.0, "error": said[-4_000:]})
    return tests


def measurements() -> list[dict[str, Any]]:
    try:
        lines = (WORK / "measurements.jsonl").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in lines]


def targets(measured: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The targets for which something was measured, with the best measurement."""
    found = []
    for unit, what, least in TARGETS:
        values = [row["measured"] for row in measured if (row["unit"], row["what"]) == (unit, what)]
        if values:
            best = max(values)
            found.append({"what": what, "unit": unit, "at_least": least, "measured": best, "met": best >= least})
    return found


def show(console: Console, results: dict[str, Any]) -> None:
    """Print the most important results: utilizations, targets, and what failed."""
    table = Table("MFU", "", title=results["machine"]["description"])
    for row in results["measurements"]:
        if row["unit"] == "MFU":
            table.add_row(f"{row['lecture'][:2]} {row['what']}".strip(), f"{row['measured']:.1%}")
    if table.row_count:
        console.print(table)
    for target in results["targets"]:
        word = "reached" if target["met"] else "missed"
        console.print(f"{target['what']}: {target['measured']:.1%}, wanted {target['at_least']:.0%}: {word}")
    for part in [*results["lectures"], *results["tests"]]:
        if not part.get("passed", part.get("outcome") != "failed"):
            console.print(f"[red]✗ {escape(part['name'])}[/]\n{escape(part['error'] or '')}", highlight=False)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", help="where to run: cuda, cuda:1, … or cpu")
    parser.add_argument("--only", nargs="*", metavar="NN", help="these lectures, such as 05 12; no number: only tests")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for what came out")
    options = parser.parse_args(arguments)
    console = Console()
    try:
        device = devices.pick_device(options.device)
        paths = source.lectures(SOLUTIONS)
        if unknown := sorted({*(options.only or [])} - {path.stem[:2] for path in paths}):
            raise ValueError(f"there is no lecture {' '.join(unknown)}; name them by their two digits")
        WORK.mkdir(parents=True, exist_ok=True)
        options.results.mkdir(parents=True, exist_ok=True)
    except (RuntimeError, ValueError, OSError) as problem:
        print(f"Nothing was run: {problem}", file=sys.stderr)
        return 2
    if options.only is not None:
        paths = [path for path in paths if path.stem[:2] in options.only]

    began = time.perf_counter()
    now = datetime.datetime.now(datetime.UTC)
    card = re.sub(r"[^a-z0-9]+", "-", devices.device_name(device).lower().removeprefix("nvidia ")).strip("-")
    stem = f"gpu-{card}-{now:%Y-%m-%d}"
    file = options.results / f"{stem}.json"
    results: dict[str, Any] = {
        "schema": 1,
        "began": now.isoformat(timespec="seconds"),
        "machine": machine(device),
        "finished": False,
        "passed": False,
        "seconds": 0.0,
        "lectures": [],
        "tests": [],
        "targets": [],
        "pictures": [],
        "measurements": [],
    }

    def save() -> None:
        results["measurements"] = measurements()
        results["targets"] = targets(results["measurements"])
        results["seconds"] = round(time.perf_counter() - began, 1)
        lectures_passed = all(lecture["passed"] for lecture in results["lectures"])
        tests_passed = all(test["outcome"] != "failed" for test in results["tests"])
        results["passed"] = results["finished"] and lectures_passed and tests_passed
        keeping.write(file, results)

    (WORK / "measurements.jsonl").unlink(missing_ok=True)
    environ = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
        "COURSE_DEVICE": str(device),
        predict.MEASUREMENTS_VARIABLE: str(WORK / "measurements.jsonl"),
        predict.FILE_VARIABLE: str(WORK / "predictions.json"),
        progress.FILE_VARIABLE: "off",
    }
    if device.type == "cpu":
        environ["COURSE_PRESET"] = "small"
    console.print(results["machine"]["description"])
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    try:
        with Progress(*columns, console=console, transient=True) as bars:
            whole = bars.add_task("lectures", total=len(paths))
            for path in paths:
                lecture, notebook = run_lecture(path, environ, bars)
                results["lectures"].append(lecture)
                for function, svg in pictures(notebook).items():
                    picture = options.results / f"{stem}-{path.stem[:2]}-{function}.svg"
                    picture.write_text(svg, encoding="utf-8")
                    results["pictures"].append(picture.name)
                save()
                bars.advance(whole)
                sign = "[green]✓[/]" if lecture["passed"] else "[red]✗[/]"
                bars.console.print(f"{sign} {path.stem} {readable(lecture['seconds'], 's')}", highlight=False)
            bars.add_task("tests", total=None)
            results["tests"] = run_tests(environ)
        results["finished"] = True
    except KeyboardInterrupt:
        print("Interrupted: what was done is kept.", file=sys.stderr)
    finally:
        save()
    outcomes = [test["outcome"] for test in results["tests"]]
    console.print(", ".join(f"{outcomes.count(each)} tests {each}" for each in dict.fromkeys(outcomes)) or "no tests")
    show(console, results)
    console.print(str(file), soft_wrap=True, highlight=False)
    return 0 if results["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())

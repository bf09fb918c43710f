"""From a clone to the end of the first cell: each step's seconds, and the bytes downloaded and installed.

The steps are a student's: `git clone`, `make lab` up to the address that answers (first with pip's cache empty, then
again in a fresh clone with the cache filled), then a kernel and the first cell of the first lecture, and everything
once more as on the next day, with nothing left to install. For comparison, uv installs the same versions, with an
empty cache and with a filled one.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from matplotlib.figure import Figure
from record import ROOT, dots, spread

from course_utils.units import readable

TITLE = "The first cell"
_ADDRESS = re.compile(rb"(http://(?:127\.0\.0\.1|localhost):\d+/lab\?token=\w+)")
_CELL = """
import sys, time, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
first = next(i for i, cell in enumerate(notebook.cells) if cell.cell_type == "code")
notebook.cells = notebook.cells[: first + 1]
began = time.perf_counter()
NotebookClient(notebook, timeout=300).execute()
print(time.perf_counter() - began)
"""


def clone(folder: Path) -> float:
    """Seconds to clone this project."""
    began = time.perf_counter()
    subprocess.run(["git", "clone", "--quiet", f"file://{ROOT}", folder], check=True)
    return time.perf_counter() - began


def lab(folder: Path, environment: dict[str, str]) -> tuple[float, float]:
    """Seconds of `bootstrap.py lab` until setup ends, and from there until JupyterLab's address answers."""
    command = [sys._base_executable, "bootstrap.py", "lab", "--no-browser", "--port=0"]  # type: ignore[attr-defined]
    began, ready, said = time.perf_counter(), 0.0, b""
    running = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    assert running.stdout
    try:
        for line in running.stdout:
            said += line
            if b"JupyterLab opens" in line:
                ready = time.perf_counter()
            if ready and (found := _ADDRESS.search(line)):
                while not _answers(found[1].decode()):
                    time.sleep(0.05)
                return ready - began, time.perf_counter() - ready
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGTERM)
        running.wait()
    sys.exit(f"no JupyterLab:\n{said.decode(errors='replace')[-3000:]}")


def _answers(address: str) -> bool:
    try:
        return bool(urlopen(address).status == 200)
    except OSError:
        return False


def cell(folder: Path) -> float:
    """Seconds from the start of a kernel to the end of the first cell of the first lecture."""
    notebook = min((folder / "notebooks").glob("*/*.ipynb"))
    python = folder / ".venv" / "bin" / "python"
    ran = subprocess.run([python, "-c", _CELL, notebook], cwd=notebook.parent, check=True, capture_output=True)
    return float(ran.stdout.split()[-1])


def downloaded(log: Path) -> int:
    """Bytes of the files that pip took, from its log: fetched over the network or read from a local index."""
    text = log.read_text(encoding="utf-8", errors="replace")
    units = {"bytes": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}
    fetched = re.findall(r"Downloading \S+ \(([\d.]+) (bytes|kB|MB|GB)\)", text)
    local = {Path(path) for path in re.findall(r"Processing (/\S+\.whl)", text)}
    return int(sum(float(n) * units[unit] for n, unit in fetched) + sum(p.stat().st_size for p in local if p.is_file()))


def measure(say: Callable[[str], None], rounds: int = 2) -> Iterator[dict[str, Any]]:
    """Seconds of each step, bytes downloaded and installed."""
    seconds: dict[str, list[float]] = {}

    def keep(step: str, value: float) -> None:
        seconds.setdefault(step, []).append(value)
        say(f"{step}: {value:.1f} s")

    first = ("git clone", "setup, everything downloaded", "JupyterLab answers, first time")
    first += ("kernel and first cell, first time",)
    later = ("setup, nothing to do", "JupyterLab answers, later", "kernel and first cell, later")
    hidden = {"COURSE_VENV", "VIRTUAL_ENV", "PYTHONPATH"}
    for number in range(rounds):
        say(f"round {number + 1} of {rounds}")
        with tempfile.TemporaryDirectory() as scratch:
            here, cache, log = Path(scratch, "course"), Path(scratch, "cache"), Path(scratch, "pip.log")
            environment = {name: value for name, value in os.environ.items() if name not in hidden}
            environment |= {"PIP_CACHE_DIR": str(cache), "PIP_LOG": str(log), "UV_CACHE_DIR": str(Path(scratch, "uv"))}
            keep("git clone", clone(here))
            install, start = lab(here, environment)
            keep("setup, everything downloaded", install)
            keep("JupyterLab answers, first time", start)
            keep("kernel and first cell, first time", cell(here))
            nothing, start = lab(here, environment)
            keep("setup, nothing to do", nothing)
            keep("JupyterLab answers, later", start)
            keep("kernel and first cell, later", cell(here))
            size = downloaded(log)
            disk = sum(path.lstat().st_size for path in (here / ".venv").rglob("*") if not path.is_dir())
            checkout = sum(p.stat().st_size for p in here.rglob("*") if p.is_file() and ".venv" not in p.parts)
            shutil.rmtree(here / ".venv")
            install, _ = lab(here, environment)
            keep("setup, from pip's cache", install)
            for name in ("uv, everything downloaded", "uv, from its cache"):
                target = Path(scratch, "uv-venv")
                uv = [sys.executable, "-m", "uv", "--quiet"]
                began = time.perf_counter()
                python = sys._base_executable  # type: ignore[attr-defined]
                subprocess.run([*uv, "venv", "--clear", "--python", python, target], env=environment, check=True)
                wanted = ["--python", target / "bin" / "python", "-c", here / "requirements.lock", "-e", here]
                subprocess.run([*uv, "pip", "install", *wanted], env=environment, check=True, cwd=here)
                keep(name, time.perf_counter() - began)
        yield {
            "seconds": {step: spread(values) for step, values in seconds.items()},
            "clone to first cell": spread([sum(seconds[step][n] for step in first) for n in range(number + 1)]),
            "next day": spread([sum(seconds[step][n] for step in later) for n in range(number + 1)]),
            "downloaded": size,
            "environment": disk,
            "clone": checkout,
        }


def rows(found: dict[str, Any]) -> list[list[str]]:
    table = [["step", "seconds", "lowest to highest"]]
    steps = {**found["seconds"], "clone to first cell, in all": found["clone to first cell"]}
    steps["next day, in all"] = found["next day"]
    for step, one in steps.items():
        table.append([step, f"{one['median']:.1f}", f"{one['low']:.1f} to {one['high']:.1f}"])
    for name in ("clone", "downloaded", "environment"):
        table.append([f"{name}, on disk" if name != "downloaded" else name, readable(found[name], "B"), ""])
    return table


def draw(found: dict[str, Any]) -> Figure:
    all_, later = found["clone to first cell"]["median"], found["next day"]["median"]
    return dots(
        {**found["seconds"], "clone to first cell": found["clone to first cell"], "next day": found["next day"]},
        unit="s",
        xlabel="seconds",
        title=f"From clone to the first cell in {all_:.0f} s, {readable(found['downloaded'], 'B')} downloaded; "
        f"on the next day in {later:.1f} s",
    )

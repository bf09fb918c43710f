"""Real ranks: starts a process for each, waits for them, and says what became of them."""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from course_utils.ranks.group import RanksError
from course_utils.ranks.rank import START_SECONDS, is_job

_GRACE = 20.0  # seconds for the other ranks to end by themselves once one has failed
_STOPPED = "Timeout ("  # how faulthandler's output begins


def launch(fn: Callable[..., Any], size: int, *args: Any, seconds: float = 120.0) -> list[Any]:
    """Run `fn(group, *args)` in `size` new processes on this machine, and return what each returned, by rank.

    They communicate through torch.distributed: NCCL with a GPU for each rank where there are enough, gloo on CPUs where
    there are not. `fn` may be defined in a notebook: cloudpickle sends it with all that it uses from there. Each
    process computes with one thread. What a rank prints is shown only if it dies.

    Args:
        fn: a function whose results can be pickled; tensors come back on the CPU.
        size: how many ranks.
        args: given to every rank.
        seconds: the time that a rank has once it has started, before it is stopped.

    Raises:
        ValueError: size is less than 1.
        RanksError: a rank raised, died or ran out of time. All are stopped before this is raised.
    """
    import cloudpickle  # type: ignore[import-untyped, unused-ignore]

    if size < 1:
        raise ValueError(f"launch was given size={size}; wanted 1 or more.")
    with tempfile.TemporaryDirectory(prefix="ranks-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "job").write_bytes(cloudpickle.dumps((fn, args)))
        processes = []
        try:
            for rank in range(size):
                processes.append(_start(folder, rank, size, seconds))
            # The ranks stop themselves `seconds` after their start and say where they were. This deadline is for those
            # that cannot.
            _wait(processes, time.monotonic() + START_SECONDS + seconds)
        finally:
            ended = [process.poll() for process in processes]
            for process in processes:
                if hasattr(os, "killpg"):  # with all processes that the rank has started
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                process.kill()
                if process.stdin:
                    process.stdin.close()
                process.wait()
        return _results(folder, ended, seconds)


def _start(folder: Path, rank: int, size: int, seconds: float) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
    with open(folder / f"log-{rank}", "wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "course_utils.ranks", str(folder), str(rank), str(size), str(seconds)],
            env=environment,
            stdin=subprocess.PIPE,  # closed when this process ends, which tells the rank to end too
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _wait(processes: list[subprocess.Popen[bytes]], end: float) -> None:
    """Wait until all have ended, but not for long once one has failed."""
    while time.monotonic() < end:
        codes = [process.poll() for process in processes]
        if None not in codes:
            return
        if any(codes):
            # Usually the others notice within a second that their connection is gone, and say where they were.
            end = min(end, time.monotonic() + _GRACE)
        time.sleep(0.02)


def _results(folder: Path, ended: list[int | None], seconds: float) -> list[Any]:
    """What the ranks returned. Raises the error of a rank that failed by itself, rather than of one it left waiting."""
    values: list[Any] = []
    died: list[str] = []
    raised: list[str] = []
    abandoned: list[str] = []
    for rank, code in enumerate(ended):
        who = f"rank {rank} of {len(ended)}"
        log = (folder / f"log-{rank}").read_text(encoding="utf-8", errors="replace")
        try:
            kind, value = pickle.loads((folder / f"result-{rank}").read_bytes())
        except (OSError, EOFError, pickle.UnpicklingError):
            kind, value = "", None
        if kind == "returned" and code == 0:
            values.append(value)
        elif kind == "raised":
            raised.append(f"{who} raised {value}")
        elif kind == "abandoned":
            abandoned.append(f"{who} waited for another one, which has ended{value}")
        elif _STOPPED in log:
            places = re.findall(r'File "(.+)", line (\d+) in (\S+)', log.partition(_STOPPED)[2])
            where = next((f"in {name}, line {line}" for file, line, name in places if is_job(file)), "in its start")
            abandoned.append(f"{who} had not ended after {seconds:g} seconds: it was {where}")
        elif code is None:
            abandoned.append(f"{who} had not ended, and was stopped")
        else:
            how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            died.append(f"{who} died ({how}) and said\n{log[-1500:].strip() or 'nothing'}")
    if len(values) == len(ended):
        return values
    raise RanksError("\n".join(died or raised or abandoned))

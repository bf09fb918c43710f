"""Real ranks: start a process for each, wait for them, and report how each one ended."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from course_utils.ranks import rank
from course_utils.ranks.group import RanksError

_GRACE = 20.0  # seconds for the other ranks to end by themselves once one has failed
_STOPPED = "Timeout ("  # how faulthandler's output begins


def launch(fn: Callable[..., Any], size: int, *args: Any, seconds: float = 120.0) -> list[Any]:
    """Run `fn(group, *args)` in `size` new processes on this machine, and return what each returned, by rank.

    They communicate through torch.distributed: NCCL if there's a GPU for each rank, otherwise gloo on CPUs. `fn` may be
    defined in a notebook: cloudpickle sends it along with everything it uses from there. Each process computes with one
    thread. A rank's output is shown only if it dies.

    The first launch takes a few seconds because it starts a process that imports PyTorch. That process stays, and ranks
    are forked from it, so later launches take only tenths of a second. (Windows cannot fork, so every rank imports
    PyTorch there.) In a script, as always with `multiprocessing`, call this under ``if __name__ == "__main__":``.

    Args:
        fn: a function with picklable results; tensors come back on the CPU.
        size: the number of ranks.
        args: arguments passed to `fn` on every rank.
        seconds: how long a rank may run, once it has started, before it's stopped.

    Raises:
        ValueError: size is less than 1.
        RanksError: a rank raised an error, died or ran out of time. All ranks are stopped before this is raised.
    """
    import cloudpickle  # type: ignore[import-untyped, unused-ignore]

    if size < 1:
        raise ValueError(f"launch was given size={size}; expected 1 or more.")
    start = _way_to_start()
    with tempfile.TemporaryDirectory(prefix="ranks-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "job").write_bytes(cloudpickle.dumps((fn, args)))
        # What a new process would inherit from this one. A fork inherited it when the fork server was started.
        here = rank.Surroundings(os.getcwd(), os.environ | {"OMP_NUM_THREADS": "1"}, tuple(sys.path))
        processes: list[BaseProcess] = [
            start.Process(target=rank.main, args=(folder, here, number, size, seconds)) for number in range(size)
        ]
        try:
            try:
                for process in processes:
                    process.start()
            except PermissionError:  # as where submissions are graded: processes can't send each other descriptors
                _stop_servers()
                raise
            # The ranks stop themselves `seconds` after their start and report where they were. This deadline is for
            # those that cannot.
            _wait(processes, time.monotonic() + rank.START_SECONDS + seconds)
        finally:
            started = [(process, process.pid) for process in processes if process.pid is not None]
            ended = [process.exitcode for process, _ in started]
            for process, pid in started:
                if hasattr(os, "killpg"):  # with all processes that the rank has started
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(pid, signal.SIGKILL)
                process.kill()
                process.join()
                process.close()
        return _results(folder, ended, seconds)


def _way_to_start() -> Any:
    """The `multiprocessing` context that forks ranks from one process that has imported what each of them needs.

    Ranks are never forked from this process: its PyTorch may have threads, which a fork lacks but waits for, and a CUDA
    context, which a fork can't use. The process that they're forked from only imports, so it has neither.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    from multiprocessing import forkserver  # unavailable on Windows

    context = multiprocessing.get_context("forkserver")
    # The first step of an optimizer imports torch._dynamo, which takes a second.
    context.set_forkserver_preload([rank.__name__, "torch.distributed", "torch._dynamo", "cloudpickle"])
    # OpenMP and similar libraries read their number of threads when PyTorch is imported.
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        forkserver.ensure_running()
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before
    return context


def _stop_servers() -> None:
    """Stop the processes that `multiprocessing` has started for a first launch, where no rank can be started."""
    with contextlib.suppress(ImportError, AttributeError, OSError):
        from multiprocessing import forkserver, resource_tracker

        for server in (forkserver._forkserver, resource_tracker._resource_tracker):
            server._stop()  # type: ignore[attr-defined, union-attr, unused-ignore]


def _wait(processes: list[BaseProcess], end: float) -> None:
    """Wait until all processes have ended or `end` has passed; after one fails, wait only a little longer."""
    while time.monotonic() < end:
        codes = [process.exitcode for process in processes]
        if None not in codes:
            return
        if any(codes):
            # Usually the others notice within a second that their connection is gone, and say where they were.
            end = min(end, time.monotonic() + _GRACE)
        time.sleep(0.02)


def _results(folder: Path, ended: list[int | None], seconds: float) -> list[Any]:
    """What the ranks returned. Raises the error of a rank that failed on its own, not of those that waited for it."""
    values: list[Any] = []
    died: list[str] = []
    raised: list[str] = []
    abandoned: list[str] = []
    for number, code in enumerate(ended):
        who = f"rank {number} of {len(ended)}"
        log = (folder / f"log-{number}").read_text(encoding="utf-8", errors="replace")
        try:
            kind, value = pickle.loads((folder / f"result-{number}").read_bytes())
        except (OSError, EOFError, pickle.UnpicklingError):
            kind, value = "", None
        if kind == "returned" and code == 0:
            values.append(value)
        elif kind == "raised":
            raised.append(f"{who} raised {value}")
        elif kind == "abandoned":
            abandoned.append(f"{who} waited for another rank, which has ended{value}")
        elif _STOPPED in log:
            places = re.findall(r'File "(.+)", line (\d+) in (\S+)', log.partition(_STOPPED)[2])
            where = next(
                (f"in {name}, line {line}" for file, line, name in places if rank.is_job(file)), "still starting"
            )
            abandoned.append(f"{who} had not ended after {seconds:g} seconds: it was {where}")
        elif code is None:
            abandoned.append(f"{who} had not ended, and was stopped")
        else:
            how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            died.append(f"{who} died ({how}) and printed\n{log[-1500:].strip() or 'nothing'}")
    if len(values) == len(ended):
        return values
    raise RanksError("\n".join(died or raised or abandoned))

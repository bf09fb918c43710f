"""course_utils.ranks where something goes wrong: the rank that hangs or dies is named, and nothing is left of it."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil
import pytest
import torch

from course_utils.ranks import Group, RanksError, launch, simulate


def raises(group: Group) -> None:
    group.all_reduce(torch.ones(1))
    if group.rank == 1:
        raise ZeroDivisionError("a bad day")
    group.all_reduce(torch.ones(1))


def returns_early(group: Group) -> None:
    if group.rank == 0:
        group.all_reduce(torch.ones(3))


def other_collective(group: Group) -> None:
    (group.all_reduce if group.rank else group.all_gather)(torch.ones(3))


def other_shape(group: Group) -> None:
    group.all_reduce(torch.ones(3 + group.rank))


def uneven(group: Group) -> None:
    group.reduce_scatter(torch.ones(3))


SIMULATED = {
    raises: (ZeroDivisionError, "a bad day"),
    returns_early: (RanksError, r"rank 0 waits in all_reduce of \[3\], and rank 1 has ended: all ranks must call"),
    other_collective: (RanksError, r"rank 0 waits in all_gather of \[3\], rank 1 waits in all_reduce of \[3\]: all"),
    other_shape: (RanksError, r"rank 0 waits in all_reduce of \[3\], rank 1 waits in all_reduce of \[4\]: all"),
    uneven: (ValueError, r"\[3\] cannot be divided into 2 equal parts; pad it"),
}


@pytest.mark.parametrize("fn", SIMULATED, ids=lambda fn: fn.__name__)
def test_a_simulation_that_goes_wrong_says_what_happened_and_leaves_no_thread(fn: object) -> None:
    kind, message = SIMULATED[fn]  # type: ignore[index]
    before = threading.active_count()
    with pytest.raises(kind, match=message):
        simulate(fn, 2)  # type: ignore[arg-type]
    assert threading.active_count() == before


def test_an_interrupted_simulation_leaves_no_thread() -> None:
    def spins(group: Group) -> None:
        while group.rank == 1:
            pass
        group.all_reduce(torch.ones(1))

    def interrupt(*_: object) -> None:
        raise TimeoutError

    before, previous = threading.active_count(), signal.signal(signal.SIGVTALRM, interrupt)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.3)
    try:
        with pytest.raises(TimeoutError):
            simulate(spins, 2)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)
    end = time.monotonic() + 60
    while threading.active_count() > before and time.monotonic() < end:
        time.sleep(0.01)
    assert threading.active_count() == before


def answers(group: Group) -> int:
    return group.rank


def dies(group: Group) -> None:
    if group.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    group.all_reduce(torch.ones(1))


def exits(group: Group) -> None:
    print("nothing left to do")
    if group.rank == 1:
        sys.stdout.flush()
        os._exit(7)
    group.all_reduce(torch.ones(1))


def hangs(group: Group) -> None:
    if group.rank == 1:
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])  # ends with it
        time.sleep(600)
    group.all_reduce(torch.ones(1))


def computes_for_ever(group: Group) -> None:
    while group.rank == 0:
        pass
    group.all_reduce(torch.ones(1))


REAL = {
    raises: r"^rank 1 of 2 raised ZeroDivisionError: a bad day\n    in raises, line \d+: raise ZeroDivisionError",
    dies: r"^rank 1 of 2 died \(SIGKILL\) and printed\nnothing$",
    exits: r"^rank 1 of 2 died \(exit code 7\) and printed\nnothing left to do$",
    returns_early: r"^rank 0 of 2 waited for another rank, which has ended\n    in returns_early, line \d+: group.all",
    hangs: r"rank 1 of 2 had not ended after 4 seconds: it was in hangs, line \d+",
    computes_for_ever: r"rank 0 of 2 had not ended after 4 seconds: it was in computes_for_ever, line \d+",
}


@pytest.mark.parametrize("fn", REAL, ids=lambda fn: fn.__name__)
def test_a_launch_that_goes_wrong_names_the_rank_and_leaves_nothing(
    fn: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch(answers, 1)  # what the first launch starts stays: it starts the ranks
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    me = psutil.Process()
    before = {child.pid for child in me.children(recursive=True)}
    with pytest.raises(RanksError, match=REAL[fn]):  # type: ignore[index]
        launch(fn, 2, seconds=4 if fn in (hangs, computes_for_ever) else 60)  # type: ignore[arg-type]
    assert {child.pid for child in me.children(recursive=True)} <= before
    assert list(tmp_path.iterdir()) == []


def runs(pid: int) -> bool:
    """Whether there is such a process, and not only what a careless init has left of it."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_ranks_end_with_the_process_that_launched_them(tmp_path: Path) -> None:
    """A kernel that is killed cannot clean up: the ranks see that it is gone."""
    code = f"""
import os, time
from pathlib import Path
from course_utils.ranks import launch
def job(group):
    Path({str(tmp_path)!r}, f"{{os.getpid()}}").touch()
    time.sleep(600)
launch(job, 2)
"""
    parent = subprocess.Popen([sys.executable, "-c", code])
    end = time.monotonic() + 180
    while len(list(tmp_path.iterdir())) < 2:
        assert parent.poll() is None and time.monotonic() < end
        time.sleep(0.05)
    parent.kill()
    parent.wait()
    pids = [int(path.name) for path in tmp_path.iterdir()]
    while any(map(runs, pids)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(map(runs, pids))

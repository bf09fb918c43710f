"""Where a submission gets a control group for its memory, and what becomes of one that takes too much."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from autograder import project
from autograder.grading import cgroup
from autograder.grading.conversation import Gone
from autograder.grading.sandbox import Sandbox
from autograder.inside import forkserver
from autograder.inside.limits import Limits
from autograder.inside.messages import Ran, Run

SYSTEMD = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n"


@pytest.mark.parametrize(
    "own, mounts, expected",
    {
        "a desktop with systemd": (
            "0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-7.scope\n",
            SYSTEMD,
            ["/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice"],
        ),
        "a container with a namespace of its own: there is nothing beside it": ("0::/\n", SYSTEMD, []),
        "a container that sees a part of version 1": (
            "5:cpu,cpuacct:/docker/7f\n4:memory:/docker/7f\n0::/\n",
            "40 30 0:31 /docker/7f /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu,cpuacct\n"
            "41 30 0:32 /docker/7f /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
            ["/sys/fs/cgroup/memory"],
        ),
        "both versions, memory in the first": (
            "4:memory:/jobs/3\n0::/jobs/3\n",
            "41 30 0:32 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n" + SYSTEMD,
            ["/sys/fs/cgroup/memory/jobs/3", "/sys/fs/cgroup/jobs"],
        ),
        "a group that is not below what is mounted": (
            "4:memory:/other\n",
            "41 30 0:32 /docker/7f /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
            [],
        ),
        "none": ("", "24 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n", []),
    }.values(),
)
def test_a_group_is_looked_for_where_this_process_may_make_one(own: str, mounts: str, expected: list[str]) -> None:
    assert [str(place) for place, _ in cgroup._places(own, mounts)] == expected


@pytest.fixture
def place() -> Path:
    """Where this machine lets us make a group."""
    group = cgroup.memory_group(2**30)
    if group is None:
        pytest.skip("this machine offers no control group for memory to this user")
    group.close()
    return group.folder.parent


def test_a_group_that_cannot_be_used_is_none(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(join: int) -> None:
        raise PermissionError

    ours = f"{cgroup._NAME}{os.getpid()}-*"  # other graders' come and go meanwhile
    before = set(place.glob(ours))
    monkeypatch.setattr(cgroup, "_try", refused)
    assert cgroup.memory_group(2**30) is None
    assert set(place.glob(ours)) == before


def test_what_a_killed_grader_left_is_removed(place: Path) -> None:
    left, new = place / f"{cgroup._NAME}1-1", place / f"{cgroup._NAME}1-{time.monotonic_ns()}"
    left.mkdir()
    new.mkdir()
    try:
        group = cgroup.memory_group(2**30)
        assert group is not None and not left.exists()
        assert new.exists(), "its maker may be about to lock it"
        group.close()
    finally:
        new.rmdir()
    assert not group.folder.exists()


@pytest.mark.sandboxed
def test_a_group_in_use_stays_whoever_looks(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A grader in another container shares the kernel's groups and does not see our processes."""
    group = cgroup.memory_group(2**30)
    assert group is not None
    monkeypatch.setattr(cgroup, "_NEW", 0)
    bwrap = ["bwrap", "--dev-bind", "/", "/", "--unshare-pid", "--proc", "/proc"]
    sweep = "import pathlib, sys; from autograder.grading import cgroup; cgroup._NEW = 0; "
    sweep += "cgroup._sweep(pathlib.Path(sys.argv[1]))"
    cgroup._sweep(place)
    subprocess.run([*bwrap, sys.executable, "-c", sweep, place], cwd=project.ROOT, check=True)
    assert group.folder.exists()
    group.close()
    assert not group.folder.exists()


FOUR_PROCESSES = """
import os
import time

hold = bytearray(b"x") * (300 * 2**20)
for _ in range(4):
    if os.fork() == 0:
        for place in range(0, len(hold), 4096):
            hold[place] = 1
        time.sleep(1000)
time.sleep(1000)
"""


@pytest.mark.sandboxed
def test_in_a_group_the_kernel_ends_what_takes_too_much(place: Path) -> None:
    """Whichever of its processes that hits. The next submission has the whole group again."""
    with Sandbox(Limits(memory=2**30)) as box:
        assert box.group is not None
        with box.conversation() as talk, pytest.raises(Gone):
            talk.ask(Run(FOUR_PROCESSES))
        assert talk.ended == "it used more than 1,024 MiB of memory"
        with box.conversation() as talk:
            assert talk.ask(Run("hold = bytearray(b'x') * (600 * 2**20)")) == Ran("", "")
        assert talk.ended == ""
    assert not box.group.folder.exists()


@pytest.mark.sandboxed
def test_a_submission_cannot_leave_its_group(place: Path) -> None:
    """Of the group's files it has none: neither among its descriptors nor in a folder."""
    looks = "import os; raise RuntimeError([name for name in ('/sys', '/proc/self') if os.path.exists(name)])"
    with Sandbox() as box, box.conversation() as talk:
        inside = talk.ask(Run(looks))
        assert box.group is not None
        (process,) = (box.group.folder / "cgroup.procs").read_text().split()
        targets = [os.readlink(link) for link in Path("/proc", process, "fd").iterdir()]
    assert not any("cgroup" in target or "memory." in target for target in targets), targets
    assert inside == Ran("RuntimeError: []", "")


def about(monkeypatch: pytest.MonkeyPatch, files: dict[str, str], threads: list[list[str]]) -> None:
    """Let /proc have these files. Each time that a process's threads are listed, they're the next in the list."""
    listed = iter(threads)

    def lines(process: str, file: str) -> list[str]:
        if f"{process}/{file}" not in files:
            raise FileNotFoundError
        return files[f"{process}/{file}"].splitlines()

    monkeypatch.setattr(forkserver, "_lines", lines)
    monkeypatch.setattr(os, "listdir", lambda place: next(listed))


def test_memory_counts_that_is_swapped_out(monkeypatch: pytest.MonkeyPatch) -> None:
    rollup = "5500-7fff ---p 00000000 00:00 0 [rollup]\nRss:  90 kB\nPss_Anon:  3 kB\nSwap:   80 kB\nSwapPss:   40 kB"
    status = "Name:\tRssAnon: 7 kB\nVmSize:\t  99 kB\nRssAnon:\t   5 kB\nVmSwap:\t   80 kB\nThreads:\t2"
    about(monkeypatch, {"7/smaps_rollup": rollup, "7/status": status, "8/smaps_rollup": "", "8/status": status}, [])
    assert forkserver._anonymous("7") == 43 * 1024
    assert forkserver._status("7") == forkserver._status("8") == (85 * 1024, 2)
    assert forkserver._anonymous("8") == 85 * 1024, "all that an older kernel tells"


def test_a_process_counts_as_long_as_one_of_its_threads_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    ended, alive = "State:\tZ (zombie)\nThreads:\t{}", "VmSize:\t 9 kB\nRssAnon:\t 5 kB\nThreads:\t3"
    exiting = "State:\tR (running)\nThreads:\t2"
    files = {"7/status": alive, "8/status": ended.format(1), "9/status": ended.format(2), "6/status": ended.format(2)}
    files |= {"8/task/8/status": ended.format(1), "9/task/9/status": ended.format(2), "9/task/12/status": alive}
    files |= {"6/task/6/status": ended.format(2), "6/task/10/status": exiting}
    about(monkeypatch, files, [["8"], ["9", "11"], ["9", "12"], ["6", "10"]])
    assert forkserver._shown("7", str) == "7"
    for process, where in (("8", None), ("9", "9/task/12"), ("6", None), ("5", None)):
        found = None
        with contextlib.suppress(*forkserver._GONE):
            found = forkserver._shown(process, str)
        assert found == where, process
    about(monkeypatch, files, [["9", str(number)] for number in range(100, 1000)])
    with pytest.raises(RuntimeError, match="come and go"):
        forkserver._shown("9", str)

"""A kernel control group for a submission's memory, if this machine lets us create one.

The kernel then counts every page once, including those that it holds for a process (pipes, sockets, page tables), and
immediately kills what exceeds the limit. Without a group, the fork server counts pages itself, twenty times a second.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_NAME = "course-grading-"  # followed by the process that made it, and when (in nanoseconds since the machine started)
_NEW = 60_000_000_000  # nanoseconds in which a group is locked after it was made, or never will be


@dataclass(frozen=True)
class _Files:
    """The names of the files in one version of the kernel's interface."""

    limit: str
    swap: str
    kills: str
    reached: str


_VERSIONS = {
    "cgroup": _Files("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.oom_control", "memory.failcnt"),
    "cgroup2": _Files("memory.max", "memory.swap.max", "memory.events", "memory.events"),
}


class MemoryGroup:
    """A control group limited to ``limit`` bytes, including swap. Submissions join it one after another."""

    def __init__(self, folder: Path, files: _Files, limit: int) -> None:
        self.folder = folder
        folder.mkdir()
        self.descriptors: list[int] = []
        self._lock: int | None = None
        try:
            # While this process lives, it has the lock, and nobody sweeps the group. Every container that shares the
            # kernel's groups sees a lock; a process's number means nothing there.
            self._lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
            fcntl.flock(self._lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            (folder / files.limit).write_text(str(limit))
            with contextlib.suppress(FileNotFoundError, PermissionError):  # where the kernel doesn't count swap
                # Version 2 limits swap by itself, version 1 together with memory: a page more, so that it is memory
                # that counts as full.
                (folder / files.swap).write_text(str(0 if files is _VERSIONS["cgroup2"] else limit + mmap.PAGESIZE))
            self.descriptors.append(os.open(folder / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC))
            for name in (files.kills, files.reached):
                self.descriptors.append(os.open(folder / name, os.O_RDONLY | os.O_CLOEXEC))
            _try(self.descriptors[0])
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Remove the group; its processes must have ended."""
        for descriptor in self.descriptors:
            os.close(descriptor)
        if self._lock is not None:
            os.close(self._lock)
        self.descriptors, self._lock = [], None
        for _ in range(20):  # what has just ended may still be counted
            try:
                return self.folder.rmdir()
            except FileNotFoundError:
                return None
            except OSError:
                time.sleep(0.05)


def memory_group(limit: int) -> MemoryGroup | None:
    """A new group for a sandbox, or None if this machine doesn't offer one to this user."""
    try:
        own, mounts = (Path("/proc/self", name).read_text() for name in ("cgroup", "mountinfo"))
    except OSError:  # not Linux
        return None
    for place, files in _places(own, mounts):
        with contextlib.suppress(OSError):
            _sweep(place)
            return MemoryGroup(place / f"{_NAME}{os.getpid()}-{time.monotonic_ns()}", files, limit)
    return None


def _places(own: str, mounts: str) -> Iterator[tuple[Path, _Files]]:
    """Where a process might create a memory control group, given its /proc/self/cgroup and /proc/self/mountinfo."""
    groups = dict(line.split(":", 2)[1:] for line in own.splitlines())
    for line in mounts.splitlines():
        mount, _, about = line.partition(" - ")
        root, place = mount.split()[3:5]
        kind, *_, options = about.split()
        if kind == "cgroup" and "memory" in options.split(","):
            path = next((path for names, path in groups.items() if "memory" in names.split(",")), None)
        else:
            path = groups.get("") if kind == "cgroup2" else None
        if path is None:
            continue
        folder = Path(os.path.normpath(os.path.join(place, os.path.relpath(path, root))))
        if kind == "cgroup2":
            # In version 2 a group that hands memory on to groups below it may hold no process. Ours holds this one, so
            # the new one goes beside it; systemd gives a user's processes such a place.
            folder = folder.parent
        if folder.is_relative_to(place):
            yield folder, _VERSIONS[kind]


def _try(join: int) -> None:
    """Raise OSError if our processes can't be moved there."""
    # It ends by itself when its input closes, also if this process is killed meanwhile.
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as process:
        try:
            os.write(join, str(process.pid).encode())
        finally:
            process.kill()


def _sweep(place: Path) -> None:
    """Remove the groups of killed graders, which nobody has locked."""
    for folder in place.glob(f"{_NAME}*"):
        with contextlib.suppress(OSError, ValueError):
            if time.monotonic_ns() - int(folder.name.rpartition("-")[2]) < _NEW:
                continue  # perhaps its maker is about to lock it
            lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                folder.rmdir()
            finally:
                os.close(lock)

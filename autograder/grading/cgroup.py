"""A kernel control group for a submission's memory, if this machine lets us create one.

The kernel then counts every page once, including those that it holds on a process's behalf (pipes, sockets, page
tables), and kills as soon as the limit is exceeded. Without a group, the fork server counts pages itself, 20 times a
second.
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

_NAME = "course-grading-"  # followed by the creating process's id and the time (nanoseconds since boot)
_NEW = 60_000_000_000  # nanoseconds: a group older than this that isn't locked has been abandoned


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
            # This process holds the lock while it lives, so that nobody sweeps the group. All containers that share the
            # kernel's groups see the lock, whereas a process id would mean nothing in another container.
            self._lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
            fcntl.flock(self._lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            (folder / files.limit).write_text(str(limit))
            with contextlib.suppress(FileNotFoundError, PermissionError):  # if the kernel doesn't count swap
                # Version 2 limits swap separately, version 1 together with memory: there, one page more, so that the
                # memory limit is reached first.
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
        for _ in range(20):  # processes that have just ended may still be counted
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
            # In version 2, a group that delegates memory to subgroups can't have processes. Ours has this process, so
            # the new group becomes its sibling; systemd lets a user's processes do that.
            folder = folder.parent
        if folder.is_relative_to(place):
            yield folder, _VERSIONS[kind]


def _try(join: int) -> None:
    """Raise OSError if our processes can't be moved there."""
    # cat ends by itself when its input closes, even if this process is killed in the meantime.
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as process:
        try:
            os.write(join, str(process.pid).encode())
        finally:
            process.kill()


def _sweep(place: Path) -> None:
    """Remove the groups that killed graders have left, which nobody has locked."""
    for folder in place.glob(f"{_NAME}*"):
        with contextlib.suppress(OSError, ValueError):
            if time.monotonic_ns() - int(folder.name.rpartition("-")[2]) < _NEW:
                continue  # its creator may be about to lock it
            lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                folder.rmdir()
            finally:
                os.close(lock)

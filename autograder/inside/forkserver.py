"""The fork server: imports the lectures' libraries once, then forks a process for each submission.

The sandbox starts it as ``python -c … SOCKET nobody [GROUP …]``. Each message on the socket is one submission's
`Limits`, with three file descriptors: one from which its process reads requests, one to which it writes answers, and
memory that it shares with the judge. Between messages the server watches the submission's resource use; at "end" it
reports how the submission ended. GROUP are open files of a control group (autograder.grading.cgroup), if the machine
has one to offer.

The server must stay safe to fork, so it only imports. In a fork, a thread would be missing, an OpenMP pool would hang,
and an open file would be shared with every submission.
"""

from __future__ import annotations

import asyncio
import asyncio.selector_events
import contextlib
import gc
import os
import select
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from . import isolation
from .limits import Limits
from .messages import READY
from .preload import preload
from .shell import ZMQInteractiveShell
from .student import converse

_T = TypeVar("_T")
_GONE = (FileNotFoundError, ProcessLookupError)  # the process ended while we were reading about it
_COUNTING = 0.5  # seconds of processor time that one measurement may take; it usually takes a thousandth of that
_FREE_SOCKETS = 100  # honest code has a handful, and where socket buffers are large, each one counts for a lot
_LOOKS = 100  # attempts to find a live thread of a process whose first thread has ended
_TICK = 0.05  # seconds between two measurements of a submission's processes


def main() -> None:
    """Import, report readiness, and fork a process for each message."""
    preload()
    import torch

    # The system call filter refuses epoll, and sendmsg because it can send descriptors (isolation). So every event loop
    # in this process and its forks has to do without them.
    selectors.DefaultSelector = selectors.PollSelector  # type: ignore[misc, assignment]
    asyncio.selector_events._HAS_SENDMSG = False  # type: ignore[attr-defined]  # in Python 3.12 and later
    shell = ZMQInteractiveShell.instance()  # the one that `IPython.get_ipython()` and `display` know
    asyncio.run(shell.run("pass"))  # the first cell fills caches; filled here, every fork has them
    torch.set_num_threads(1)  # before the first fork: a submission gets one processor's worth of time
    if os.getuid() == 0 and sys.argv[2:3] == ["nobody"]:
        isolation.become_nobody()
    # Blocked here, so that they are blocked in a submission's waiting process (isolation._wait_outside) from its start.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})
    control = socket.socket(fileno=int(sys.argv[1]))
    gc.collect()
    gc.freeze()  # otherwise a collection in a fork would write to every imported page, and so copy it
    gc.enable()
    group = _Group.joined(list(map(int, sys.argv[3:])))
    alone = _anonymous("self")
    control.send(b"ready")
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 4096, 3)
        if not message:
            return
        limits = Limits.from_json(message)
        child = os.fork()
        if child == 0:
            control.close()
            code = 1
            try:
                _child(limits, shell, group, *descriptors)
                code = 0
            except OSError as error:
                print(f"sandbox: {error}", file=sys.stderr, flush=True)
            finally:
                os._exit(code)  # whatever happens, never return to this loop
        *pipes, shared = descriptors
        for descriptor in pipes:
            os.close(descriptor)
        control.send(_follow(control, limits, child, alone, shared, group))
        os.close(shared)


class _Group:
    """The control group that submissions join: descriptors of its process list and its memory events."""

    def __init__(self, join: int, kills: int, reached: int) -> None:
        self.join = join
        self._kills = kills
        self._reached = reached
        self.seen = self.events()

    @classmethod
    def joined(cls, descriptors: list[int]) -> _Group | None:
        """The group, if an isolated process can join it. (Some kernels refuse one that has left our user namespace.)"""
        if not descriptors:
            return None
        joined, told = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                isolation.isolate(Limits(), descriptors[0])
                os.write(told, b"joined")
            finally:
                os._exit(0)  # as in main
        os.close(told)
        os.waitpid(child, 0)
        with open(joined, "rb") as answer:
            if answer.read() == b"joined":
                return cls(*descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        return None

    def events(self) -> tuple[int, int]:
        """How many of the group's processes the kernel's OOM killer has killed, and how often the group was full."""
        return _number(self._kills, b"oom_kill"), _number(self._reached, b"oom")

    def exceeded(self) -> bool:
        """Whether, since ``seen``, the kernel has killed a process because the group was full, not just the machine."""
        kills, reached = self.events()
        return kills > self.seen[0] and reached > self.seen[1]

    def close(self) -> None:
        """Close the descriptors in a submission's process, which mustn't find them."""
        for descriptor in (self.join, self._kills, self._reached):
            os.close(descriptor)


def _number(descriptor: int, name: bytes) -> int:
    """The number after a name in an open file, or the last one if there's no such name (as in memory.failcnt)."""
    words = os.pread(descriptor, 4096, 0).split()
    return int(words[words.index(name) + 1] if name in words else words[-1])


def _child(
    limits: Limits, shell: ZMQInteractiveShell, group: _Group | None, requests: int, answers: int, shared: int
) -> None:
    """Become a student's process, report readiness, and answer requests until the judge closes the pipes."""
    import torch.multiprocessing

    os.setsid()
    if limits.isolate:
        isolation.isolate(limits, group.join if group is not None else None)
        if group is not None:
            group.close()
        # DataLoader workers must pass tensors by file name, because descriptors can't be sent. For that, torch starts a
        # program that looks for its libraries next to itself; without /proc, the loader has to be told where that is.
        torch.multiprocessing.set_sharing_strategy("file_system")  # type: ignore[no-untyped-call]
        os.environ["LD_ORIGIN_PATH"] = str(Path(torch.__file__).parent / "bin")
        sys.path.insert(0, "")  # as in a kernel, so that a notebook can import modules it writes; /tmp is its own
    else:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGCHLD})
        isolation.set_limits(limits)
    os.chdir("/tmp")
    nowhere = os.open(os.devnull, os.O_RDWR)
    with open(requests, "rb") as incoming, open(answers, "wb") as outgoing, asyncio.Runner() as runner:
        runner.get_loop()  # makes the event loop, which opens sockets
        # A failure before this point is the machine's; a failure after it is the submission's.
        os.write(answers, READY)
        # Discard what the student prints, unless a cell or an observation captures it.
        for number in (0, 1, 2):
            os.dup2(nowhere, number)
        runner.run(converse(incoming, outgoing, shared, shell))


def _follow(control: socket.socket, limits: Limits, child: int, alone: int, shared: int, group: _Group | None) -> bytes:
    """Watch a submission until the judge says "end", end it, and return how it ended: "ended REASON" or "killed"."""
    if group is not None:
        group.seen = group.events()
    reason = _watch(control, limits, child, alone, shared, group)
    if limits.isolate:
        os.kill(child, signal.SIGTERM)
    else:  # at least its process group; a process that has left it survives
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not reason and group is not None and group.exceeded():
        reason = _too_much(limits)
    # An isolated child is the waiting process, which dies of a signal only if the kernel killed the submission.
    return b"killed" if limits.isolate and os.WIFSIGNALED(status) and not reason else b"ended " + reason.encode()


def _too_much(limits: Limits) -> str:
    return f"it used more than {limits.memory / 2**20:,.0f} MiB of memory"


def _watch(control: socket.socket, limits: Limits, child: int, alone: int, shared: int, group: _Group | None) -> str:
    """Wait for the judge's "end". Until then, end a submission that exceeds its memory or processes, and return why.

    The kernel's own limits (`isolation.set_limits`) count each process separately, and root's processes not at all.
    With a control group, the kernel counts memory for us.
    """
    reason = ""
    while not select.select([control], [], [], _TICK)[0]:
        if reason or not limits.isolate:
            continue
        began = time.process_time()
        try:
            at_most, threads = _at_most()
            if group is not None:
                too_much = group.exceeded()
            else:
                at_most += _stored(shared)
                too_much = at_most > limits.memory and _takes(alone) + _stored(shared) > limits.memory
            if too_much:
                reason = _too_much(limits)
            elif threads > limits.processes:
                reason = f"it had more than {limits.processes} processes and threads"
            elif time.process_time() - began > _COUNTING:
                reason = "its memory is in too many pieces to be counted"
        except PermissionError:  # a process can hide its memory, but has no honest reason to
            reason = "one of its processes hides how much memory it uses"
        except Exception as error:  # a process can choose names that break parsing; that must not stop this server
            reason = f"its memory use cannot be measured ({type(error).__name__})"
        if reason:
            os.kill(child, signal.SIGTERM)
    control.recv(16)  # "end", or nothing if the judge has exited
    return reason


def _at_most() -> tuple[int, int]:
    """A quick upper bound on the bytes of a submission's processes, and the number of their threads."""
    taken = threads = 0
    for process in _processes():
        resident, count = 0, 1  # a zombie has one thread and no memory
        with contextlib.suppress(*_GONE):
            resident, count = _shown(process, _status)
        taken += resident
        threads += count
    return taken, threads


def _takes(alone: int) -> int:
    """Bytes of anonymous memory that belong to a submission. (Shared memory is in files, which `_stored` counts.)

    A fork shares the server's pages until it writes to them, so a process's size says little about its own memory. But
    the kernel also reports each page divided by the number of processes that have it (PSS). Summed over all processes,
    that counts every page once; whatever exceeds the memory of the server alone is the submission's.
    """
    held = _anonymous("self") - alone
    for process in _processes():
        with contextlib.suppress(*_GONE):
            held += _shown(process, _anonymous)
    return held


def _stored(shared: int) -> int:
    """Bytes that a submission stores in its in-memory folders, its sockets, and the memory shared with the judge."""
    used = {}
    for process in _processes():
        for folder in ("tmp", "dev/shm"):
            with contextlib.suppress(OSError):  # the next process sees the same folder
                found = _shown(process, lambda thread: os.statvfs(f"/proc/{thread}/root/{folder}"))  # noqa: B023
                used[found.f_fsid] = (found.f_blocks - found.f_bfree) * found.f_frsize
    return 512 * os.fstat(shared).st_blocks + sum(used.values()) + _in_sockets()


def _in_sockets() -> int:
    """Bytes that a submission's sockets can hold. The kernel reports how many sockets its network namespace has; a
    closed one counts until its messages have been read."""
    with socket.socket(socket.AF_UNIX) as one:
        room = one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
    for process in _processes():
        with contextlib.suppress(*_GONE):
            for line in _shown(process, lambda thread: _lines(thread, "net/sockstat")):
                if line.startswith("sockets: used "):
                    # Twice, because the kernel accepts a message, up to the buffer's size, if there is any room left.
                    return 2 * room * max(0, int(line.split()[2]) - _FREE_SOCKETS)
    return 0


def _processes() -> list[str]:
    """A submission's processes: all in /proc except the sandbox's first process, this server and its parent.

    A sandbox runs one submission at a time, so all the others belong to it.
    """
    own = {os.getpid(), os.getppid(), 1}
    return [name for name in os.listdir("/proc") if name.isdecimal() and int(name) not in own]


def _shown(process: str, read: Callable[[str], _T]) -> _T:
    """What ``read`` finds in /proc about a process, given the path of one of its live threads.

    Usually that is the first thread. Once it has ended, /proc reports nothing under the process's own number, although
    other threads may be running. Raises one of `_GONE` if all threads have ended, and RuntimeError if they come and go
    too fast to be read.
    """
    for _ in range(_LOOKS):
        first = _fields(process)
        alive = "VmSize" in first
        threads = [process] if alive else [f"{process}/task/{each}" for each in os.listdir(f"/proc/{process}/task")]
        seen = 0
        for thread in threads:
            with contextlib.suppress(*_GONE):
                if alive or "VmSize" in _fields(thread):
                    return read(thread)
                seen += 1
        if seen == int(first.get("Threads", 0)):  # every thread was checked, and none has any memory
            raise ProcessLookupError
    raise RuntimeError("its threads come and go")


def _anonymous(process: str) -> int:
    """Bytes of a process's anonymous memory, including swap, with each page divided by the number of processes that
    have it (PSS)."""
    found = {name: int(value.split()[0]) for name, value in _pairs(process, "smaps_rollup") if value.endswith("kB")}
    if "Pss_Anon" not in found:  # a kernel before 5.4
        return _status(process)[0]
    return 1024 * (found["Pss_Anon"] + found.get("SwapPss", 0))


def _status(process: str) -> tuple[int, int]:
    """Bytes of a process's anonymous memory, including swap, and its number of threads."""
    found = _fields(process)
    return 1024 * (int(found.get("RssAnon", 0)) + int(found.get("VmSwap", 0))), int(found.get("Threads", 0))


def _fields(process: str) -> dict[str, str]:
    """The first word of each field of a process's or a thread's status."""
    return {name: value.split()[0] for name, value in _pairs(process, "status") if value.split()}


def _pairs(process: str, file: str) -> list[tuple[str, str]]:
    return [(name, value) for name, _, value in (line.partition(":") for line in _lines(process, file))]


def _lines(process: str, file: str) -> list[str]:
    """The lines of a file in /proc about a process. A process chooses its own name and those of the files it maps, but
    the kernel escapes line breaks in them."""
    return Path("/proc", process, file).read_bytes().decode(errors="replace").split("\n")[:-1]

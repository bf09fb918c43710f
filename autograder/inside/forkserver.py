"""The fork server: imports what the lectures use once, then forks a process for each submission.

The sandbox starts it as ``python -c … SOCKET nobody [GROUP …]``. Each message on the socket is one submission's
`Limits`, with three file descriptors: one from which its process reads requests, one to which it writes answers, and
memory that it shares with the judge. Between two messages the server watches what the submission uses, and at "end" it
reports how it ended. GROUP are open files of a control group (autograder.grading.cgroup), if the machine offers one.

The server must stay safe to fork, so it only imports. A thread, an OpenMP pool or an open file of its own would be
missing, stuck or shared in every submission.
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
_GONE = (FileNotFoundError, ProcessLookupError)  # of a process that ended between two looks
_COUNTING = 0.5  # seconds of the processor's time that one look may take; usually it takes a thousandth
_FREE_SOCKETS = 100  # honest code has a handful; on a machine that gives them a lot of room, each would count for much
_LOOKS = 100  # at the threads of a process whose first one has ended
_TICK = 0.05  # seconds between two looks at what a submission's processes take


def main() -> None:
    """Import, report that, and fork a process for each message."""
    preload()
    import torch

    # For every event loop here, and what the student's code asks for: a submission can't have epoll (isolation), and
    # can't send a descriptor, or anything in the way that could.
    selectors.DefaultSelector = selectors.PollSelector  # type: ignore[misc, assignment]
    asyncio.selector_events._HAS_SENDMSG = False  # type: ignore[attr-defined]  # of Python 3.12 and later
    shell = ZMQInteractiveShell.instance()  # the one that `IPython.get_ipython()` and `display` know
    asyncio.run(shell.run("pass"))  # what a first cell looks up and keeps, no fork has to
    torch.set_num_threads(1)  # before the first fork: a submission has one processor's worth of time
    if os.getuid() == 0 and sys.argv[2:3] == ["nobody"]:
        isolation.become_nobody()
    # Blocked here, so that a submission's waiting process (isolation._wait_outside) has them blocked from its start.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})
    control = socket.socket(fileno=int(sys.argv[1]))
    gc.collect()
    gc.freeze()  # a collection in a fork would write to every page of what was imported, and so copy it
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
                os._exit(code)  # never back into this loop, whatever happens
        *pipes, shared = descriptors
        for descriptor in pipes:
            os.close(descriptor)
        control.send(_follow(control, limits, child, alone, shared, group))
        os.close(shared)


class _Group:
    """The control group that submissions join: descriptors of its list of processes and of its memory events."""

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
        """How many processes in the group the kernel has killed for lack of memory, and how often it was full."""
        return _number(self._kills, b"oom_kill"), _number(self._reached, b"oom")

    def exceeded(self) -> bool:
        """Whether the kernel has killed since ``seen`` because the group was full. (It also does if the machine is.)"""
        kills, reached = self.events()
        return kills > self.seen[0] and reached > self.seen[1]

    def close(self) -> None:
        """Close the descriptors in a submission's process, which mustn't find them."""
        for descriptor in (self.join, self._kills, self._reached):
            os.close(descriptor)


def _number(descriptor: int, name: bytes) -> int:
    """The number after a name in an open file; if the name isn't in it (memory.failcnt), the only number."""
    words = os.pread(descriptor, 4096, 0).split()
    return int(words[words.index(name) + 1] if name in words else words[-1])


def _child(
    limits: Limits, shell: ZMQInteractiveShell, group: _Group | None, requests: int, answers: int, shared: int
) -> None:
    """Become a student's process, report that, and answer until the judge closes the pipes."""
    import torch.multiprocessing

    os.setsid()
    if limits.isolate:
        isolation.isolate(limits, group.join if group is not None else None)
        if group is not None:
            group.close()
        # A DataLoader's workers hand tensors over by the names of files, and not as descriptors. For that torch starts
        # a program that looks for its libraries beside itself; without /proc, the loader has to be told where that is.
        torch.multiprocessing.set_sharing_strategy("file_system")  # type: ignore[no-untyped-call]
        os.environ["LD_ORIGIN_PATH"] = str(Path(torch.__file__).parent / "bin")
        sys.path.insert(0, "")  # as in a kernel: modules that a notebook writes. /tmp is the submission's own
    else:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGCHLD})
        isolation.set_limits(limits)
    os.chdir("/tmp")
    nowhere = os.open(os.devnull, os.O_RDWR)
    with open(requests, "rb") as incoming, open(answers, "wb") as outgoing, asyncio.Runner() as runner:
        runner.get_loop()  # makes the event loop, which opens sockets
        # What goes wrong until here is a fault of the machine, and after it of whoever wrote the cells.
        os.write(answers, READY)
        # What the student prints goes nowhere unless a cell or an observation keeps it.
        for number in (0, 1, 2):
            os.dup2(nowhere, number)
        runner.run(converse(incoming, outgoing, shared, shell))


def _follow(control: socket.socket, limits: Limits, child: int, alone: int, shared: int, group: _Group | None) -> bytes:
    """Watch a submission until the judge says "end", end it, and say how it ended: "ended REASON" or "killed"."""
    if group is not None:
        group.seen = group.events()
    reason = _watch(control, limits, child, alone, shared, group)
    if limits.isolate:
        os.kill(child, signal.SIGTERM)
    else:  # at least its group; a process that left the group lives on
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not reason and group is not None and group.exceeded():
        reason = _too_much(limits)
    # An isolated child is the waiting process, which a signal ends only where the kernel killed the submission.
    return b"killed" if limits.isolate and os.WIFSIGNALED(status) and not reason else b"ended " + reason.encode()


def _too_much(limits: Limits) -> str:
    return f"it took more than {limits.memory / 2**20:,.0f} MiB of memory"


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
        except PermissionError:  # a process can hide what it has, and none has a reason to
            reason = "one of its processes does not show what memory it takes"
        except Exception as error:  # whatever a process made of its names: it is that submission's, not this server's
            reason = f"what it takes cannot be counted ({type(error).__name__})"
        if reason:
            os.kill(child, signal.SIGTERM)
    control.recv(16)  # "end", or nothing where the judge is gone
    return reason


def _at_most() -> tuple[int, int]:
    """A quick upper bound on the bytes of a submission's processes, and the number of their threads."""
    taken = threads = 0
    for process in _processes():
        resident, count = 0, 1  # of one that has ended and waits for its parent to notice
        with contextlib.suppress(*_GONE):
            resident, count = _shown(process, _status)
        taken += resident
        threads += count
    return taken, threads


def _takes(alone: int) -> int:
    """Bytes of memory that a submission's processes hold. (What they share is in files: `_stored` counts it.)

    A fork shares what this server has imported until it writes to it, so a process's size doesn't tell its own memory.
    But the kernel also reports each page divided by the number of processes that have it. The sum over all processes is
    the number of existing pages; whatever exceeds what the server alone had is the submission's.
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
    """Bytes that a submission's sockets can hold. The kernel tells how many there are in its network; one that has been
    closed counts until its messages are read."""
    with socket.socket(socket.AF_UNIX) as one:
        room = one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
    for process in _processes():
        with contextlib.suppress(*_GONE):
            for line in _shown(process, lambda thread: _lines(thread, "net/sockstat")):
                if line.startswith("sockets: used "):
                    # The kernel takes a message if there's any room, so the last one may be of that size again.
                    return 2 * room * max(0, int(line.split()[2]) - _FREE_SOCKETS)
    return 0


def _processes() -> list[str]:
    """A submission's processes: all except the sandbox's first, this server's parent and the server itself.

    This sandbox has one submission at a time, so all others in /proc belong to it.
    """
    own = {os.getpid(), os.getppid(), 1}
    return [name for name in os.listdir("/proc") if name.isdecimal() and int(name) not in own]


def _shown(process: str, read: Callable[[str], _T]) -> _T:
    """What ``read`` finds below /proc about a process, under the name of a thread that is alive.

    Usually that's the first one. If it ends before the others, /proc shows nothing more of the process under its own
    name. Raises one of `_GONE` if all threads have ended, and RuntimeError if they come and go too fast for a look.
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
        if seen == int(first.get("Threads", 0)):  # all of them were seen, and none has any memory
            raise ProcessLookupError
    raise RuntimeError("its threads come and go")


def _anonymous(process: str) -> int:
    """Bytes of a process's anonymous memory, also if swapped out; each page divided by the number of processes that
    have it."""
    found = {name: int(value.split()[0]) for name, value in _pairs(process, "smaps_rollup") if value.endswith("kB")}
    if "Pss_Anon" not in found:  # a kernel before 5.4
        return _status(process)[0]
    return 1024 * (found["Pss_Anon"] + found.get("SwapPss", 0))


def _status(process: str) -> tuple[int, int]:
    """Bytes of a process's anonymous memory, also if swapped out, and its number of threads."""
    found = _fields(process)
    return 1024 * (int(found.get("RssAnon", 0)) + int(found.get("VmSwap", 0))), int(found.get("Threads", 0))


def _fields(process: str) -> dict[str, str]:
    """The first word of each field of a process's or a thread's status."""
    return {name: value.split()[0] for name, value in _pairs(process, "status") if value.split()}


def _pairs(process: str, file: str) -> list[tuple[str, str]]:
    return [(name, value) for name, _, value in (line.partition(":") for line in _lines(process, file))]


def _lines(process: str, file: str) -> list[str]:
    """The lines of a file about a process. A process chooses its name and those of what it maps; the kernel spells out
    line ends in them."""
    return Path("/proc", process, file).read_bytes().decode(errors="replace").split("\n")[:-1]

"""The student's side of grading: runs the cells of a submission and answers observations. Knows no test.

Runs inside the sandbox, started once by :mod:`autograder.sandbox` as ``python -m autograder.warm SOCKET``: it imports
what the lectures use, and then forks a child for each message on the socket, with namespaces of its own where the
kernel allows it. The child talks over the two pipes that came with the message, in the encoding of
:mod:`autograder.wire`, until the judge closes them.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import io
import json
import linecache
import mmap
import os
import pkgutil
import platform
import resource
import select
import signal
import socket
import struct
import symtable
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from . import wire

LENGTH = struct.Struct("<Q")
_PRINTED = 20_000  # characters of a cell's output that are kept
_NAMESPACES = 0x10000000 | 0x00020000 | 0x20000000 | 0x40000000 | 0x08000000 | 0x04000000  # user mnt pid net ipc uts
_NOBODY = 65534
_TICK = 0.05  # seconds between two looks at what a submission's processes take
_MOUNT_PRIVATE, _MOUNT_FLAGS = 0x4000 | 0x40000, 0x2 | 0x4  # MS_REC | MS_PRIVATE; nosuid, nodev


def send(stream: BinaryIO, value: Any) -> None:
    """Write one message."""
    message = wire.pack(value)
    stream.write(LENGTH.pack(len(message)) + message)
    stream.flush()


def receive(stream: BinaryIO, find: Callable[[int, int], Any]) -> Any:
    """Read one message; ``find`` as in `wire.unpack`. Raises EOFError at the end, WireError for what is no message."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError
    (size,) = LENGTH.unpack(head)
    if size > wire.LIMIT:
        raise wire.WireError(f"a message of {size:,} bytes")
    message = stream.read(size)
    if len(message) < size:
        raise EOFError
    return wire.unpack(message, find)


class Student:
    """A notebook's names, and what may be asked of them."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"__name__": "__main__"}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer one request.

        ``{"run": source, "title": …}`` runs a cell, ``{"call": name, "args": …, "kwargs": …}`` observes a call (of a
        probe, whose source comes under ``"probe"``), ``{"names": source}`` reads a cell without running it.
        """
        if "names" in request:
            return {"defined": sorted(defined(request["names"])), "used": sorted(used(request["names"]))}
        if "run" in request:
            return self._run(request["run"], request["title"])
        from course_utils.testing import Mismatch, probe, witness

        if "probe" in request:
            self.names["probe"] = probe
            self._exec(request["probe"], "<probe>")
        try:
            target = self.names[request["call"]]
        except KeyError:
            return {"missing": request["call"]}
        try:
            return {"seen": witness(target, request["args"], request["kwargs"])}
        except Mismatch as mismatch:
            return {"mismatch": str(mismatch)}

    def _run(self, source: str, title: str) -> dict[str, Any]:
        printed = io.StringIO()
        error = None
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            try:
                self._exec(source, f"<{title}>")
            except BaseException as raised:  # SystemExit and the like end no notebook either
                error = f"{type(raised).__name__}: {raised}"[:2000]
        return {"error": error, "printed": printed.getvalue()[:_PRINTED]}

    def _exec(self, source: str, filename: str) -> None:
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        exec(compile(source, filename, "exec"), self.names)


def defined(text: str) -> set[str]:
    """Names that a cell defines at its top level; none where it cannot be read."""
    found: set[str] = set()
    for scope in _scopes(text):
        there = [name for name in scope.get_symbols() if scope.get_type() == "module" or name.is_declared_global()]
        found |= {name.get_name() for name in there if name.is_assigned() or name.is_imported()}
    return found


def used(text: str) -> set[str]:
    """Names that a cell, or a function in it, looks up at the top level; none where it cannot be read."""
    found: set[str] = set()
    for scope in _scopes(text):
        there = [name for name in scope.get_symbols() if scope.get_type() == "module" or name.is_global()]
        found |= {name.get_name() for name in there if name.is_referenced()}
    return found


def _scopes(text: str) -> list[symtable.SymbolTable]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = [symtable.symtable(text, "<cell>", "exec")]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    for scope in found:  # grows on the way
        found += scope.get_children()
    return found


def converse(requests: BinaryIO, answers: BinaryIO, shared: int) -> None:
    """Answer requests until they end. The tensors in them lie in the memory that ``shared`` describes."""
    memory = memoryview(mmap.mmap(shared, wire.LIMIT))
    os.close(shared)
    student = Student()
    while True:
        try:
            request = receive(requests, lambda place, size: memory[place : place + size])
        except EOFError:
            return
        try:
            answer = student.answer(request)
            message = wire.pack(answer)
        except wire.WireError as error:  # the student returned what cannot be sent
            message = wire.pack({"unsendable": str(error)})
        answers.write(LENGTH.pack(len(message)) + message)
        answers.flush()


def _isolate(settings: dict[str, Any]) -> None:
    """In the child: namespaces of its own, nothing to write but a small /tmp and /dev/shm, no way out of them.

    The child stays outside, waits for the first process inside, and ends it when told to (SIGTERM). Raises OSError
    where the kernel refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)

    def check(result: int, what: str) -> None:
        if result != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"{what}: {os.strerror(number)}")

    user, group = os.getuid(), os.getgid()
    check(libc.unshare(_NAMESPACES), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{_NOBODY} {user} 1"), ("gid_map", f"{_NOBODY} {group} 1")):
        with open(f"/proc/self/{name}", "w") as mapping:
            mapping.write(text)
    if (child := os.fork()) != 0:  # the first process of the new pid namespace; all others end with it
        # Both signals are blocked since before the fork: none is missed. PR_SET_PDEATHSIG alone would not do, because
        # a process can take it back.
        told = signal.sigwait({signal.SIGTERM, signal.SIGCHLD}) == signal.SIGTERM
        if told:
            os.kill(child, signal.SIGKILL)
        _, status, used = os.wait4(child, 0)
        # The kernel drops a SIGKILL from inside its namespace, and sends one itself when the time is used up. Any other
        # came from the machine: the student is not to blame, and the warm process learns it from how this one ends.
        own_fault = used.ru_utime + used.ru_stime > settings["cpu_seconds"] - 1
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL and not told and not own_fault:
            os.kill(os.getpid(), signal.SIGKILL)
        os._exit(0)
    os.setsid()  # a process can signal its group, also the members that it does not see
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG, for the case that the warm process is killed
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGCHLD})
    check(libc.mount(b"none", b"/", None, _MOUNT_PRIVATE, None), "mount --make-private /")
    processor = Path("/proc/cpuinfo").read_bytes()  # torch reads it
    for place, size in ((b"/tmp", settings["scratch"]), (b"/dev/shm", settings["scratch"]), (b"/proc", 2**20)):
        options = f"size={size},nr_inodes=10000,mode=1777".encode()
        check(libc.mount(b"tmpfs", place, b"tmpfs", _MOUNT_FLAGS, options), f"mount {place.decode()}")
    Path("/proc/cpuinfo").write_bytes(processor)
    check(libc.prctl(38, 1, 0, 0, 0), "no new privileges")  # PR_SET_NO_NEW_PRIVS
    # The namespaces' creator has every capability in them, and could unmount what hides the rest.
    for number in range(64):
        libc.prctl(24, number, 0, 0, 0)  # PR_CAPBSET_DROP; refused beyond the last
    check(libc.capset((ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()), "capset")
    steps = _filter()
    program = (ctypes.c_uint64 * len(steps))(*steps)
    about = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(program))
    check(libc.prctl(22, 2, about, 0, 0), "seccomp")  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER


# System calls that no lecture needs: new namespaces and mounts (with a tmpfs as large as memory), tracing, keys that
# outlive a process, memory that belongs to no process, and the youngest parts of the kernel. x86_64, aarch64.
_REFUSED = {
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "open_tree": (428, 428), "move_mount": (429, 429), "mount_setattr": (442, 442), "ptrace": (101, 117),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "pidfd_getfd": (438, 438), "kcmp": (312, 272),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "open_by_handle_at": (304, 265),
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194), "msgget": (68, 186),
    "semget": (64, 190), "mq_open": (240, 180),
}  # fmt: skip
_MACHINES = {"x86_64": (0xC000003E, 56), "aarch64": (0xC00000B7, 220)}  # audit's name, the number of clone


def _filter() -> list[int]:
    """A seccomp program that refuses those calls; each instruction as a number."""
    if platform.machine() not in _MACHINES:
        raise OSError(f"no list of system calls for {platform.machine()}: grade on x86_64 or aarch64")
    audit, clone = _MACHINES[platform.machine()]
    column = list(_MACHINES).index(platform.machine())
    load, equal, at_least, any_bit, give = 0x20, 0x15, 0x35, 0x45, 0x06
    allow, no_permission, not_there = 0x7FFF0000, 0x00050001, 0x00050026  # SECCOMP_RET_ALLOW, _ERRNO

    def step(code: int, value: int, then: int = 0, otherwise: int = 0) -> int:
        return code | then << 16 | otherwise << 24 | value << 32

    steps = [step(load, 4), step(equal, audit, 1), step(give, no_permission), step(load, 0)]
    steps += [step(at_least, 0x40000000, 0, 1), step(give, no_permission)]  # x86_64's second set of numbers
    for numbers in _REFUSED.values():
        steps += [step(equal, numbers[column], 0, 1), step(give, no_permission)]
    steps += [step(equal, 435, 0, 1), step(give, not_there)]  # clone3, whose flags cannot be seen: clone is used then
    steps += [step(equal, clone, 0, 3), step(load, 16), step(any_bit, 0x7E020000, 0, 1), step(give, no_permission)]
    return [*steps, step(give, allow)]


def _limit(settings: dict[str, Any]) -> None:
    for kind, value in (
        (resource.RLIMIT_AS, settings["address_space"]),
        (resource.RLIMIT_DATA, settings["memory"]),
        (resource.RLIMIT_CPU, settings["cpu_seconds"]),
        (resource.RLIMIT_NPROC, settings["processes"]),
        (resource.RLIMIT_FSIZE, settings["scratch"]),
        (resource.RLIMIT_NOFILE, 256),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (value, value))


def _takes() -> tuple[int, int]:
    """What the processes of the sandbox take, this one and its parent left out: bytes beyond ours, threads."""
    own = {os.getpid(), os.getppid(), 1}
    ours, _ = _status("self")  # a fork has it too, without taking memory for it
    taken = threads = 0
    for name in os.listdir("/proc"):
        if name.isdecimal() and int(name) not in own:
            with contextlib.suppress(OSError):
                its, count = _status(name)
                taken += max(0, its - ours)
                threads += count
    return taken, threads


def _status(process: str) -> tuple[int, int]:
    """Bytes of memory of a process's own (no files), and its threads."""
    lines = Path("/proc", process, "status").read_text().splitlines()
    found = {name: value.split()[0] for name, _, value in (line.partition(":") for line in lines) if value.split()}
    return 1024 * (int(found.get("RssAnon", 0)) + int(found.get("RssShmem", 0))), int(found.get("Threads", 0))


def _watch(control: socket.socket, settings: dict[str, Any], child: int) -> str:
    """Wait for the judge's "end". What goes beyond memory or processes until then is killed, and the answer says so.

    The kernel's own limits count each process alone, and root's processes not at all.
    """
    reason = ""
    while not select.select([control], [], [], _TICK)[0]:
        if reason or not settings["isolate"]:
            continue
        taken, threads = _takes()
        if taken > settings["memory"]:
            reason = f"it took more than {settings['memory'] / 2**20:,.0f} MiB of memory"
        elif threads > settings["processes"]:
            reason = f"it had more than {settings['processes']} processes and threads"
        if reason:
            os.kill(child, signal.SIGTERM)
    control.recv(16)  # "end", or nothing where the judge is gone
    return reason


def _child(settings: dict[str, Any], requests: int, answers: int, shared: int) -> None:
    os.setsid()
    if settings["isolate"]:
        _isolate(settings)
    else:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGCHLD})
    _limit(settings)
    os.chdir("/tmp")
    # What the student prints goes nowhere unless a cell or an observation keeps it.
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    with open(requests, "rb") as incoming, open(answers, "wb") as outgoing:
        converse(incoming, outgoing, shared)


def preload() -> None:
    """Import what the lectures use. Only imports: an operation would start threads, and they do not survive a fork."""
    import beartype  # noqa: F401
    import einops  # noqa: F401
    import jaxtyping  # noqa: F401
    import matplotlib.figure  # noqa: F401
    import numpy  # noqa: F401
    import torch._dynamo  # the first dispatch mode and the first optimizer import it, in a second
    import torch.utils.flop_counter  # noqa: F401

    import course_utils

    for module in pkgutil.iter_modules(course_utils.__path__):
        importlib.import_module(f"course_utils.{module.name}")


def main() -> None:
    """Import, say so, and fork a child for each message: a JSON of settings, with two file descriptors."""
    preload()
    import torch

    torch.set_num_threads(1)
    if os.getuid() == 0 and sys.argv[2:] == ["nobody"]:
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)
        ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE, or /proc/self would still be root's
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})
    control = socket.socket(fileno=int(sys.argv[1]))
    gc.collect()
    gc.freeze()  # a collection in a fork would write to, and so copy, every page of what was imported
    control.send(b"ready")
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 4096, 3)
        if not message:
            return
        child = os.fork()
        if child == 0:
            control.close()
            code = 1
            try:
                _child(json.loads(message), *descriptors)
                code = 0
            except OSError as error:
                print(f"sandbox: {error}", file=sys.stderr, flush=True)
            finally:
                os._exit(code)
        for descriptor in descriptors:
            os.close(descriptor)
        settings = json.loads(message)
        reason = _watch(control, settings, child)
        if settings["isolate"]:
            os.kill(child, signal.SIGTERM)
        else:  # its group at least; what left that lives on
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        killed = settings["isolate"] and os.WIFSIGNALED(status)
        control.send(b"killed" if killed else b"ended " + reason.encode())


if __name__ == "__main__":
    main()

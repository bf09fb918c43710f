"""The student's side of grading: runs the cells of a submission and answers observations. Knows no test.

Runs inside the sandbox, started once by :mod:`autograder.sandbox` as ``python -m autograder.warm SOCKET``: it imports
what the lectures use, and then forks a child for each message on the socket, with namespaces of its own where the
kernel allows it. The child talks over the two pipes that came with the message, in the encoding of
:mod:`autograder.wire`, until the judge closes them.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import json
import linecache
import os
import resource
import signal
import socket
import struct
import sys
from pathlib import Path
from typing import Any, BinaryIO

from . import wire

LENGTH = struct.Struct("<Q")
_PRINTED = 20_000  # characters of a cell's output that are kept
_NAMESPACES = 0x10000000 | 0x00020000 | 0x20000000 | 0x40000000 | 0x08000000 | 0x04000000  # user mnt pid net ipc uts
_MOUNT_PRIVATE, _MOUNT_FLAGS = 0x4000 | 0x40000, 0x2 | 0x4  # MS_REC | MS_PRIVATE; nosuid, nodev


def send(stream: BinaryIO, value: Any) -> None:
    """Write one message."""
    message = wire.pack(value)
    stream.write(LENGTH.pack(len(message)) + message)
    stream.flush()


def receive(stream: BinaryIO) -> Any:
    """Read one message. Raises EOFError at the end of the stream, WireError for anything that is no message."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError
    (size,) = LENGTH.unpack(head)
    if size > wire.LIMIT:
        raise wire.WireError(f"a message of {size:,} bytes")
    message = stream.read(size)
    if len(message) < size:
        raise EOFError
    return wire.unpack(message)


class Student:
    """A notebook's names, and what may be asked of them."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"__name__": "__main__"}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run a cell (``{"run": source, "title": …}``) or observe a call (``{"call": name or "probe": source, …}``)."""
        if "run" in request:
            return self._run(request["run"], request["title"])
        from course_utils.testing import Mismatch, observe, probe

        if "probe" in request:
            self.names["probe"] = probe
            self._exec(request["probe"], "<probe>")
        try:
            target = self.names[request["call"]]
        except KeyError:
            return {"missing": request["call"]}
        try:
            return {"seen": observe(target, *request["args"], **request["kwargs"])}
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


def converse(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until they end."""
    student = Student()
    while True:
        try:
            request = receive(requests)
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
    """In the child: namespaces of its own, nothing to write but a small /tmp, limits. Raises OSError where refused."""
    libc = ctypes.CDLL(None, use_errno=True)

    def check(result: int, what: str) -> None:
        if result != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"{what}: {os.strerror(number)}")

    user, group = os.getuid(), os.getgid()
    check(libc.unshare(_NAMESPACES), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"65534 {user} 1"), ("gid_map", f"65534 {group} 1")):
        with open(f"/proc/self/{name}", "w") as mapping:
            mapping.write(text)
    if (child := os.fork()) != 0:  # the first process of the new pid namespace; all others end with it
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    check(libc.mount(b"none", b"/", None, _MOUNT_PRIVATE, None), "mount --make-private /")
    processor = Path("/proc/cpuinfo").read_bytes()  # torch reads it
    for place, size in ((b"/tmp", settings["scratch"]), (b"/proc", 2**20)):
        options = f"size={size},mode=1777".encode()
        check(libc.mount(b"tmpfs", place, b"tmpfs", _MOUNT_FLAGS, options), f"mount {place.decode()}")
    Path("/proc/cpuinfo").write_bytes(processor)
    check(libc.prctl(38, 1, 0, 0, 0), "no new privileges")  # PR_SET_NO_NEW_PRIVS


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


def _child(settings: dict[str, Any], requests: int, answers: int) -> None:
    if settings["isolate"]:
        _isolate(settings)
    _limit(settings)
    os.chdir("/tmp")
    # What the student prints goes nowhere unless a cell or an observation keeps it.
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    with open(requests, "rb") as incoming, open(answers, "wb") as outgoing:
        converse(incoming, outgoing)


def main() -> None:
    """Import, say so, and fork a child for each message: a JSON of settings, with two file descriptors."""
    # Only imports: an operation would start threads, and threads do not survive a fork.
    import beartype  # noqa: F401
    import einops  # noqa: F401
    import jaxtyping  # noqa: F401
    import matplotlib.figure  # noqa: F401
    import numpy  # noqa: F401
    import torch

    import course_utils.plots
    import course_utils.testing  # noqa: F401

    torch.set_num_threads(1)
    control = socket.socket(fileno=int(sys.argv[1]))
    control.send(b"ready")
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 4096, 2)
        if not message:
            return
        requests, answers = descriptors
        child = os.fork()
        if child == 0:
            control.close()
            code = 1
            try:
                _child(json.loads(message), requests, answers)
                code = 0
            except OSError as error:
                print(f"sandbox: {error}", file=sys.stderr, flush=True)
            finally:
                os._exit(code)
        os.close(requests)
        os.close(answers)
        control.recv(16)  # "end", or nothing where the judge is gone
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        control.send(b"ended")


if __name__ == "__main__":
    main()

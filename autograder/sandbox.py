"""Where a submission's code runs: a warm process in a bubblewrap sandbox, and a fork of it for each conversation.

The sandbox sees, read-only, the system's libraries, this Python with its packages, and the parts of this project that
students have too; no source, no test, no other submission, no network. A fork of the warm process gets namespaces, a
scratch folder and limits of its own, and is gone when the conversation ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from . import CourseError, warm, wire
from .build import ROOT

_MODULES = ("__init__.py", "warm.py", "wire.py")  # of autograder: what the student's side needs, and no more


class SandboxError(CourseError):
    """There is no isolation to be had here, or the sandbox broke: says why, and what to do."""


class Killed(SandboxError):
    """Something on this machine killed the student's process; the sandbox is whole."""


class Gone(BaseException):
    """The student's process ended, ran out of time, or said what is no message. The argument says which.

    No Exception, so that a test cell which tries something cannot take it for the student's.
    """


@dataclass(frozen=True)
class Limits:
    """What a submission may use: bytes, seconds, processes and threads.

    ``seconds`` is wall time for one request, up to six times as long while its processes wait for a processor;
    ``seconds_in_all`` is for the whole submission, and ``memory`` for all its processes together.
    """

    isolate: bool = True
    memory: int = 2 * 2**30
    address_space: int = 16 * 2**30
    scratch: int = 64 * 2**20
    processes: int = 64
    cpu_seconds: int = 300
    seconds: float = 5.0
    seconds_in_all: float = 300.0


_STRETCH = 6  # times its seconds a request gets, at most, on a machine that is too busy


class _Deadline:
    """When a request is over: after its seconds, unless processes of the sandbox were kept waiting for a processor."""

    def __init__(self, seconds: float, end: float, sandbox: int) -> None:
        self._seconds, self._end, self._sandbox = seconds, end, sandbox
        now = time.monotonic()
        self._last = now + _STRETCH * seconds
        self._next = now + seconds / 2
        self._before: tuple[float, float] | None = None  # when it was looked at last, and the processor time until then

    def left(self) -> float:
        """Seconds until it is time to look again."""
        return max(0.0, min(self._next, self._end) - time.monotonic())

    def check(self) -> None:
        """Raise Gone where the time is over."""
        now = time.monotonic()
        if now >= self._end:
            raise Gone("the submission took longer than it may in all")
        if now < self._next:
            return
        used, waiting = self._load()
        if self._before is not None:
            since, before = self._before
            starved = waiting and 0 <= used - before < 0.7 * (now - since)
            if not starved or now >= self._last:
                raise Gone(f"it took longer than {self._seconds:g} seconds")
        self._before, self._next = (now, used), now + self._seconds / 2

    def _load(self) -> tuple[float, bool]:
        """Seconds of processor time that the sandbox's processes had; whether any could run, or waits for a disk."""
        used, waiting = 0.0, False
        with contextlib.suppress(psutil.Error):
            for process in psutil.Process(self._sandbox).children(recursive=True):
                with contextlib.suppress(psutil.Error), process.oneshot():
                    used += sum(process.cpu_times()[:4])  # its own, and that of the children it has waited for
                    waiting |= process.status() in (psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP)
        return used, waiting


class _Shared:
    """Memory that a student's process has too: the tensors among a call's arguments lie in it, for us to look at."""

    def __init__(self) -> None:
        if hasattr(os, "memfd_create"):
            self.descriptor = os.memfd_create("arguments", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            os.ftruncate(self.descriptor, wire.LIMIT)  # only what is written takes memory
            seals = fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
            fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, seals)
        else:  # not Linux, where there is no isolation either
            with tempfile.TemporaryFile() as file:
                self.descriptor = os.dup(file.fileno())
            os.ftruncate(self.descriptor, wire.LIMIT)
        self._next = 0

    def begin(self) -> None:
        """Make room for a call's arguments. What earlier calls got stays as it is while at least half is free."""
        if self._next > wire.LIMIT // 2:
            self._next = 0

    def place(self, content: bytes) -> int:
        """Where a copy of the content lies from now on. Raises WireError where there is no room left."""
        start = self._next
        if start + len(content) > wire.LIMIT:
            raise wire.WireError(f"the arguments of a call take more than {wire.LIMIT // 2:,} bytes")
        for done in range(0, len(content), 2**20):
            os.pwrite(self.descriptor, content[done : done + 2**20], start + done)
        self._next = (start + len(content)) // 64 * 64 + 64  # no two at one place, not even empty ones
        return start

    def find(self, place: int, size: int) -> bytearray:
        """A copy of what lies there now."""
        return bytearray(os.pread(self.descriptor, size, place))


class Conversation:
    """Requests to one student's process, each with an answer. Raises :class:`Gone` where there is none.

    ``ended`` says, once it is over, why the sandbox ended it; it is empty where the sandbox did not. ``sandbox`` is the
    id of the process that all of the sandbox's come from.
    """

    def __init__(self, requests: int, answers: int, shared: _Shared, limits: Limits, end: float, sandbox: int) -> None:
        self._requests, self._answers, self._shared, self._limits, self._end = requests, answers, shared, limits, end
        self._sandbox, self._asked = sandbox, b""
        self.ended = ""
        os.set_blocking(requests, False)
        os.set_blocking(answers, False)

    def ask(self, request: dict[str, Any], seconds: float | None = None) -> Any:
        """The answer to one request, within ``seconds`` (the limit of a cell, if left out)."""
        self._shared.begin()
        self._asked = message = wire.pack(request, self._shared.place)
        seconds = self._limits.seconds if seconds is None else seconds
        deadline = _Deadline(seconds, self._end, self._sandbox)
        self._write(warm.LENGTH.pack(len(message)) + message, deadline)
        (size,) = warm.LENGTH.unpack(self._read(warm.LENGTH.size, deadline))
        if size > wire.LIMIT:
            raise Gone(f"the answer would take {size:,} bytes")
        try:
            return wire.unpack(self._read(size, deadline))
        except wire.WireError as error:
            raise Gone(f"the answer is damaged: {error}") from None

    def asked(self) -> Any:
        """The last request as it is now: the process may have changed the tensors in it."""
        try:
            return wire.unpack(self._asked, self._shared.find)
        except wire.WireError as error:
            raise Gone(f"it damaged its arguments: {error}") from None

    def _write(self, data: bytes, deadline: _Deadline) -> None:
        view = memoryview(data)
        while view:
            self._wait([], [self._requests], deadline)
            try:
                view = view[os.write(self._requests, view[:65536]) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                raise Gone("the process ended") from None

    def _read(self, size: int, deadline: _Deadline) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            self._wait([self._answers], [], deadline)
            try:
                part = os.read(self._answers, min(size - len(parts), 2**20))
            except BlockingIOError:
                continue
            if not part:
                raise Gone("the process ended")
            parts += part
        return bytes(parts)

    def _wait(self, reading: list[int], writing: list[int], deadline: _Deadline) -> None:
        while not any(select.select(reading, writing, [], deadline.left())):
            deadline.check()

    def close(self) -> None:
        """Let the other side see the end."""
        os.close(self._requests)
        os.close(self._answers)
        os.close(self._shared.descriptor)


class Sandbox:
    """A warm process, isolated unless ``unsafe``; a context manager. Conversations with it come one after another."""

    def __init__(self, limits: Limits = Limits(), *, unsafe: bool = False) -> None:
        self.limits = limits if not unsafe else Limits(**{**asdict(limits), "isolate": False})
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control = ours
        # As it was typed it may lead through folders that the sandbox does not show: ../.venv/bin/python.
        python = [os.path.abspath(sys.executable), "-I", "-c", _START, str(theirs.fileno())]
        environment = dict(_ENVIRONMENT)
        if unsafe:
            command, environment["COURSE_GRADING_PATH"] = python, str(ROOT)
        else:
            command, environment["COURSE_GRADING_PATH"] = [*_bubblewrap(os.geteuid() == 0), *python, "nobody"], _INSIDE
        self._process = subprocess.Popen(
            command,
            env=environment,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            process_group=0,
        )
        theirs.close()
        if self._receive() != b"ready":
            self.close()
            remedy = "bubblewrap needs user namespaces (sysctl kernel.unprivileged_userns_clone=1)"
            if os.geteuid() == 0:
                # A user namespace would do here too, but the kernel would not count this root's processes in it.
                remedy = (
                    "root needs CAP_SYS_ADMIN for it, which containers mostly lack: grade as an ordinary user "
                    "(`runuser -u NAME -- course grade …`), or start the container with `--cap-add SYS_ADMIN`"
                )
            raise SandboxError(
                f"the sandbox did not start: {self.complaint}\n  → {remedy}; `--unsafe` grades without isolation"
            )

    @contextlib.contextmanager
    def conversation(self, end: float | None = None) -> Iterator[Conversation]:
        """A fresh student's process; afterwards nothing of it is left. ``end`` is when its time is over (monotonic)."""
        request_end, requests = os.pipe()
        answers, answer_end = os.pipe()
        shared = _Shared()
        try:
            settings = json.dumps(asdict(self.limits)).encode()
            socket.send_fds(self._control, [settings], [request_end, answer_end, shared.descriptor])
        except OSError as error:
            raise SandboxError(f"the sandbox is gone ({error}): {self.complaint}") from error
        finally:
            os.close(request_end)
            os.close(answer_end)
        talk = Conversation(
            requests,
            answers,
            shared,
            self.limits,
            time.monotonic() + self.limits.seconds_in_all if end is None else end,
            self._process.pid,
        )
        try:
            yield talk
        finally:
            talk.close()
            with contextlib.suppress(OSError):
                self._control.send(b"end")
            ended, _, talk.ended = self._receive().decode(errors="replace").partition(" ")
            if ended == "killed":
                raise Killed("something on this machine killed the student's process (for want of memory?)")
            if ended != "ended":
                raise SandboxError(f"the sandbox is gone: {self.complaint}")

    @property
    def complaint(self) -> str:
        """What the sandbox wrote to its log, once it has ended."""
        if self._process.poll() is None or self._process.stderr is None:
            return "no reason given"
        return self._process.stderr.read().decode(errors="replace")[-2000:].strip() or "no reason given"

    def close(self) -> None:
        """End the warm process and all that came from it."""
        self._control.close()
        # The group: a bubblewrap that is killed while it starts leaves a child that waits for it for ever.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _receive(self) -> bytes:
        """A message of the warm process; nothing where there is none in two minutes, or its sandbox has ended."""
        end = time.monotonic() + 120
        while not select.select([self._control], [], [], 0.5)[0]:
            if self._process.poll() is not None or time.monotonic() > end:
                return b""
        try:
            return self._control.recv(200)
        except OSError:
            return b""


_SYSTEM = ("/bin", "/sbin", "/lib", "/lib64", "/lib32")
_HIDING = ("/tmp", "/dev", "/proc")  # the sandbox has its own
_INSIDE = "/course"  # where this project's part lies in the sandbox
_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/tmp",
    "OMP_NUM_THREADS": "1",
    "MPLCONFIGDIR": "/tmp",
    "LANG": "C.UTF-8",
    "COURSE_PRESET": "small",  # an answer that calls for the capstone's training must not wait minutes for it
}
_START = (
    "import os, sys; sys.path.insert(0, os.environ.pop('COURSE_GRADING_PATH')); "
    "from autograder import warm; warm.main()"
)


def require() -> str:
    """The path of bubblewrap. Raises :class:`SandboxError` where it is not installed."""
    program = shutil.which("bwrap")
    if program is None:
        raise SandboxError(
            "grading runs students' code in a sandbox, and bubblewrap is not installed\n"
            "  → apt install bubblewrap (Debian, Ubuntu), dnf install bubblewrap (Fedora); "
            "`--unsafe` grades without isolation"
        )
    return program


def require_hidden(folder: Path) -> None:
    """Raises :class:`SandboxError` where submissions could read a folder: it lies in what the sandbox shows them."""
    for place in (*_readable(), *_SYSTEM, str(ROOT / "course_utils")):
        if folder.resolve().is_relative_to(Path(place).resolve()):
            raise SandboxError(
                f"{folder} lies in {place}, which every submission may read\n"
                "  → move it out of there: a home folder is a good place"
            )


def _readable() -> dict[str, None]:
    places = (
        "/usr",
        "/etc/ld.so.cache",
        "/etc/alternatives",
        sys.prefix,
        sys.base_prefix,
        sysconfig.get_path("stdlib"),
    )
    return dict.fromkeys(places)


def _bubblewrap(root: bool) -> list[str]:
    for place in (sys.prefix, sys.base_prefix):
        if hidden := next((each for each in _HIDING if Path(place).is_relative_to(each)), None):
            raise SandboxError(
                f"{place} lies in {hidden}, which each submission gets anew\n  → move the project elsewhere"
            )
    require_hidden(ROOT)
    command = [require(), "--die-with-parent", "--new-session", "--clearenv"]
    if root:
        # Without a user namespace of bubblewrap's, the warm process can become nobody. The kernel counts nobody's
        # processes, and never root's, not even of a root that is called otherwise in a namespace.
        command += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
        command += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        command += ["--unshare-all"]
    for place in _readable():
        if os.path.exists(place):
            if not place.startswith("/usr/"):
                command += _folders(Path(place).parent)
            command += ["--ro-bind", place, place]
    for place in _SYSTEM:
        if os.path.islink(place):
            command += ["--symlink", os.readlink(place), place]
        elif os.path.isdir(place):
            command += ["--ro-bind", place, place]
    command += _folders(Path(_INSIDE, "autograder"))
    command += ["--ro-bind", str(ROOT / "course_utils"), f"{_INSIDE}/course_utils"]
    for name in _MODULES:
        command += ["--ro-bind", str(Path(__file__).parent / name), f"{_INSIDE}/autograder/{name}"]
    command += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--chdir", "/tmp"]
    # What a submission could write would be there for the next one: a module in /course, say.
    command += ["--remount-ro", "/dev", "--remount-ro", "/"]
    for name, value in _ENVIRONMENT.items():
        command += ["--setenv", name, value]
    return [*command, "--setenv", "COURSE_GRADING_PATH", _INSIDE]


def _folders(place: Path) -> list[str]:
    """Make a folder and those above it, for everybody to pass through; bubblewrap's own are for their maker alone."""
    wanted = [folder for folder in reversed([place, *place.parents]) if folder != Path("/")]
    return [word for folder in wanted for word in ("--perms", "0755", "--dir", str(folder))]

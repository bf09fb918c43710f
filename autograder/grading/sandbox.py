"""Where a submission's code runs: in forks of a fork server in a bubblewrap sandbox, one for each conversation.

The sandbox sees, read-only, the system's libraries, this Python with its packages, and the parts of this project that
students also have; no sources, no tests, no other submission, no network. Each fork of the server gets its own
namespaces, scratch folder and limits, and is gone when the conversation ends.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from autograder import CourseError
from autograder.inside.limits import Limits

from .cgroup import memory_group

if TYPE_CHECKING:
    from .conversation import Conversation

ROOT = Path(__file__).resolve().parents[2]  # of this project
_SHOWN = ("autograder/inside", "course_utils")  # of this project: what submissions can read


class SandboxError(CourseError):
    """Isolation isn't available here, or the sandbox broke; the message says why and what to do."""


class Sandbox:
    """A fork server, isolated unless ``unsafe``; a context manager. Conversations with it come one after another.

    If the machine offers a control group for memory, submissions are in one, unless ``group`` is False.
    """

    def __init__(self, limits: Limits = Limits(), *, unsafe: bool = False, group: bool = True) -> None:
        self.limits = limits if not unsafe else replace(limits, isolate=False)
        wall = [] if unsafe else _bubblewrap(os.geteuid() == 0)
        self.group = memory_group(limits.memory) if group and not unsafe else None
        held = self.group.descriptors if self.group else []
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control = ours
        # As it was typed it may lead through folders that the sandbox does not show: ../.venv/bin/python.
        python = [os.path.abspath(sys.executable), "-I", "-c", _START, str(theirs.fileno())]
        self._log = b""
        self._process = subprocess.Popen(
            [*wall, *python] if unsafe else [*wall, *python, "nobody", *map(str, held)],
            env={**_ENVIRONMENT, "COURSE_GRADING_PATH": str(ROOT) if unsafe else _INSIDE},
            pass_fds=[theirs.fileno(), *held],
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
        """A fresh student's process; nothing of it is left afterwards. ``end`` is when its time is up (monotonic)."""
        from .conversation import Conversation, Shared  # needs PyTorch

        request_end, requests = os.pipe()
        answers, answer_end = os.pipe()
        shared = Shared()
        try:
            socket.send_fds(self._control, [self.limits.to_json()], [request_end, answer_end, shared.descriptor])
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
            if not talk.begun():
                raise SandboxError(f"a submission's process could not be isolated: {self.complaint}")
            yield talk
        finally:
            talk.close()
            with contextlib.suppress(OSError):
                self._control.send(b"end")
            ended, _, talk.ended = self._receive().decode(errors="replace").partition(" ")
            if ended == "killed":
                raise SandboxError("something on this machine killed the student's process (for want of memory?)")
            if ended != "ended":
                raise SandboxError(f"the sandbox is gone: {self.complaint}")

    @property
    def complaint(self) -> str:
        """What the sandbox has written to its log."""
        self._read_log()
        return self._log.decode(errors="replace")[-2000:].strip() or "no reason given"

    def close(self) -> None:
        """End the fork server and everything that came from it."""
        self._control.close()
        # The group: a bubblewrap that is killed while it starts leaves a child that waits for it for ever.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._read_log()
        if self._process.stderr is not None:
            self._process.stderr.close()
        if self.group is not None:
            self.group.close()

    def _read_log(self) -> None:
        log = self._process.stderr
        if log is not None and not log.closed:
            os.set_blocking(log.fileno(), False)  # it may go on, or a process that is about to end hold the other end
            self._log = (self._log + (log.read() or b""))[-10_000:]

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _receive(self) -> bytes:
        """A message from the fork server; empty if none arrives in two minutes, or its sandbox has ended."""
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
    "USER": "nobody",  # for who asks by this name: there is no list of users
    "COURSE_PRESET": "small",  # an answer that calls for the capstone's training must not wait minutes for it
}
_START = (
    "import os, sys; sys.path.insert(0, os.environ.pop('COURSE_GRADING_PATH')); "
    "from autograder.inside import forkserver; forkserver.main()"
)


def require() -> str:
    """The path of bubblewrap. Raises :class:`SandboxError` if it isn't installed."""
    program = shutil.which("bwrap")
    if program is None:
        raise SandboxError(
            "grading runs students' code in a sandbox, and bubblewrap is not installed\n"
            "  → apt install bubblewrap (Debian, Ubuntu), dnf install bubblewrap (Fedora); "
            "`--unsafe` grades without isolation"
        )
    return program


def require_hidden(folder: Path) -> None:
    """Raise :class:`SandboxError` if submissions could read a folder because the sandbox shows it to them."""
    for place in (*_readable(), *_SYSTEM, *(str(ROOT / shown) for shown in _SHOWN)):
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
        # Without a user namespace of bubblewrap's, the fork server can become nobody. The kernel counts nobody's
        # processes, and never root's, not even of a root that is called otherwise in a namespace.
        command += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
        command += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        command += ["--unshare-all"]
    command += ["--hostname", "sandbox"]
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
    for shown in _SHOWN:
        command += [*_folders(Path(_INSIDE, shown).parent), "--ro-bind", str(ROOT / shown), f"{_INSIDE}/{shown}"]
    command += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--chdir", "/tmp"]
    # What a submission could write would be there for the next one: a module in /course, say.
    command += ["--remount-ro", "/dev", "--remount-ro", "/"]
    for name, value in _ENVIRONMENT.items():
        command += ["--setenv", name, value]
    return [*command, "--setenv", "COURSE_GRADING_PATH", _INSIDE]


def _folders(place: Path) -> list[str]:
    """Create a folder and its parents so that everybody may pass through; only the creator may in bubblewrap's."""
    wanted = [folder for folder in reversed([place, *place.parents]) if folder != Path("/")]
    return [word for folder in wanted for word in ("--perms", "0755", "--dir", str(folder))]

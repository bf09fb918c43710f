"""Where a submission's code runs: in forks of a fork server in a bubblewrap sandbox, one for each conversation.

The sandbox contains, read-only, the system's libraries, this Python with its packages, and the parts of this project
that students also have, but no sources, tests, other submissions, or network. Each fork of the server gets its own
namespaces, scratch folder and limits, and ends with its conversation.
"""

from __future__ import annotations

import compileall
import contextlib
import importlib.util
import os
import py_compile
import select
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from autograder import CourseError
from autograder.inside.limits import Limits

from .cgroup import memory_group

if TYPE_CHECKING:
    from .conversation import Conversation

ROOT = Path(__file__).resolve().parents[2]  # this project's
_SHOWN = ("autograder/inside", "course_utils")  # the parts of this project that submissions can read


class SandboxError(CourseError):
    """Isolation isn't available here, or the sandbox broke; the message says why and what to do."""


def unavailable(reason: str) -> SandboxError:
    """The error that ends a run, since no sandbox can be had: with what to do, if the reason doesn't say that."""
    return SandboxError(reason if "→" in reason else f"{reason}\n  → no results were lost: run the same command again")


class Sandbox:
    """A fork server, isolated unless ``unsafe``; a context manager. It has one conversation at a time.

    If the machine offers a control group for memory, submissions run in one, unless ``group`` is False. The server
    takes seconds to start; in that time, this process calls ``meanwhile``. Raises :class:`SandboxError` if it can't
    start.
    """

    def __init__(
        self,
        limits: Limits = Limits(),
        *,
        unsafe: bool = False,
        group: bool = True,
        meanwhile: Callable[[], object] = lambda: None,
    ) -> None:
        self.limits = limits if not unsafe else replace(limits, isolate=False)
        wall = None if unsafe else Wall(os.geteuid() == 0)
        self.group = memory_group(limits.memory) if group and not unsafe else None
        held = self.group.descriptors if self.group else []
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control = ours
        start = ["-I", "-c", _START, str(theirs.fileno())]
        command = [*wall.command, wall.python, *start, "nobody", *map(str, held)] if wall else [sys.executable, *start]
        self._log = b""
        self._process = subprocess.Popen(
            command,
            env={**_ENVIRONMENT, "COURSE_GRADING_PATH": _INSIDE if wall else str(ROOT)},
            pass_fds=[theirs.fileno(), *held, *(wall.descriptors if wall else [])],
            stdin=subprocess.DEVNULL,
            # bubblewrap would show a terminal to submissions as /dev/console.
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            process_group=0,
        )
        theirs.close()
        if wall:
            wall.close()
        try:
            meanwhile()
        except BaseException:
            self.close()
            raise
        if self._receive() != b"ready":
            self.close()
            remedy = "bubblewrap needs user namespaces (sysctl kernel.unprivileged_userns_clone=1)"
            if os.geteuid() == 0:
                # A user namespace would work here, too, but the kernel would not count root's processes in it.
                remedy = (
                    "root needs CAP_SYS_ADMIN for it, which most containers lack: grade as an ordinary user "
                    "(`runuser -u NAME -- course grade …`), or start the container with `--cap-add SYS_ADMIN`"
                )
            raise SandboxError(
                f"the sandbox did not start: {self.complaint}\n  → {remedy}; `--unsafe` grades without isolation"
            )

    @contextlib.contextmanager
    def conversation(self, end: float | None = None) -> Iterator[Conversation]:
        """A fresh student's process, removed without a trace on exit. ``end`` is when its time is up (monotonic).

        Raises :class:`SandboxError` if the process can't be isolated, or ends through no fault of the student's.
        """
        from .conversation import Conversation, Shared  # needs PyTorch

        request_end, requests = os.pipe()
        answers, answer_end = os.pipe()
        shared = Shared()
        try:
            socket.send_fds(self._control, [self.limits.to_json()], [request_end, answer_end, shared.descriptor])
        except OSError as error:
            raise SandboxError(f"the sandbox has ended ({error}): {self.complaint}") from error
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
                raise SandboxError("something on this machine killed the student's process (out of memory?)")
            if ended != "ended":
                raise SandboxError(f"the sandbox has ended: {self.complaint}")

    @property
    def complaint(self) -> str:
        """The last part of the sandbox's log."""
        self._read_log()
        return self._log.decode(errors="replace")[-2000:].strip() or "no reason given"

    def close(self) -> None:
        """End the fork server and all its descendants."""
        self._control.close()
        # Kill its whole process group: if bubblewrap is killed while starting, its child waits for it forever.
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
            os.set_blocking(log.fileno(), False)  # more may come, or an ending process may hold the other end
            self._log = (self._log + (log.read() or b""))[-10_000:]

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _receive(self) -> bytes:
        """A message from the fork server; empty if none arrives in two minutes or the sandbox has ended."""
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
# Where this project's files, Python and its environment are in the sandbox.
_INSIDE, _PYTHON, _ENVIRONS = "/course", "/python", "/environment"
_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/tmp",
    "OMP_NUM_THREADS": "1",
    "MPLCONFIGDIR": "/tmp",
    "LANG": "C.UTF-8",
    "USER": "nobody",  # there is no /etc/passwd to look it up in
    "PIP_NO_INDEX": "1",  # `%pip install` gives up at once, and the rest of its cell still has its five seconds
    "COURSE_PRESET": "small",  # an answer that runs the capstone's training must not take minutes
}
# Without garbage collection, which takes a fifth of the time for imports and finds nothing; main() enables it again.
_START = (
    "import gc, os, sys; gc.disable(); sys.path.insert(0, os.environ.pop('COURSE_GRADING_PATH')); "
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
    """Raise :class:`SandboxError` if submissions could read a folder because it is in one that the sandbox shows."""
    real = Path(os.path.realpath(folder))  # unlike resolve(), no error if a link leads to itself
    for place in (*_readable(), *_SYSTEM, *(str(ROOT / shown) for shown in _SHOWN)):
        if real.is_relative_to(Path(place).resolve()):
            raise SandboxError(
                f"{folder} is in {place}, which every submission can read\n"
                "  → move it elsewhere, for instance into your home folder"
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


class Wall:
    """bubblewrap's ``command`` line that starts a sandbox, and the path of ``python`` in there.

    Nothing in the sandbox reveals where Python's environment and this project are on this machine, since a path may
    contain a user's name. So the environment is at `/environment`, a Python that isn't the system's at `/python`, and
    files in which an installation records its location are replaced by empty ones.
    """

    def __init__(self, root: bool) -> None:
        for place in (sys.prefix, sys.base_prefix):
            if hidden := next((each for each in _HIDING if Path(place).is_relative_to(each)), None):
                raise SandboxError(
                    f"{place} is in {hidden}, which is private to each submission\n  → move the project elsewhere"
                )
        require_hidden(ROOT)
        self.descriptors: list[int] = []
        self.command = [require(), "--die-with-parent", "--new-session", "--clearenv"]
        if root:
            # Without a user namespace made by bubblewrap, the fork server can become the user nobody. The kernel limits
            # that user's processes, but never root's, not even under another user id in a namespace.
            self.command += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
            self.command += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
        else:
            self.command += ["--unshare-all"]
        self.command += ["--hostname", "sandbox"]
        for place in ("/usr", "/etc/ld.so.cache", "/etc/alternatives"):
            if os.path.exists(place):
                self._show(place, place)
        for place in _SYSTEM:
            if os.path.islink(place):
                self.command += ["--symlink", os.readlink(place), place]
            elif os.path.isdir(place):
                self._show(place, place)
        for name, value in _ENVIRONMENT.items():
            self.command += ["--setenv", name, value]
        self.python = self._show_python()
        self.command += ["--setenv", "PATH", f"{Path(self.python).parent}:{_ENVIRONMENT['PATH']}"]  # for `!python`
        for shown in _SHOWN:
            _forget_places(ROOT / shown)
            self._show(str(ROOT / shown), f"{_INSIDE}/{shown}")
        self.command += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--chdir", "/tmp"]
        # Otherwise a submission could leave something for the next one, such as a module in /course.
        self.command += ["--remount-ro", "/dev", "--remount-ro", "/", "--setenv", "COURSE_GRADING_PATH", _INSIDE]

    def close(self) -> None:
        """Close the descriptors that were kept open for bubblewrap."""
        for descriptor in self.descriptors:
            os.close(descriptor)

    def _show(self, place: str, there: str) -> None:
        """Mount a folder or a file of this machine, read-only."""
        if not there.startswith("/usr/"):
            self.command += _folders(Path(there).parent)
        self.command += ["--ro-bind", place, there]

    def _write(self, text: str, there: str) -> None:
        """Mount a file with this text, read-only."""
        ours, theirs = os.pipe()
        os.write(theirs, text.encode())  # small enough for a pipe's buffer
        os.close(theirs)
        self.descriptors.append(ours)
        self.command += ["--perms", "0444", "--ro-bind-data", str(ours), there]

    def _show_python(self) -> str:
        """Mount this Python and its packages; returns its path in the sandbox."""
        # sys.executable may lead through links and folders that aren't in the sandbox, such as ../.venv/bin/python.
        program = self._in_python(Path(os.path.realpath(sys.executable)))
        if not program.is_relative_to("/usr"):
            self._show(sys.base_prefix, _PYTHON)
            if sysconfig.get_config_var("Py_ENABLE_SHARED"):  # else it would look for libpython where it was installed
                self.command += ["--setenv", "LD_LIBRARY_PATH", f"{_PYTHON}/lib"]
        packages = [Path(place) for place in dict.fromkeys(map(sysconfig.get_path, ("purelib", "platlib")))]
        if sys.prefix == sys.base_prefix:
            shown = {place: self._in_python(place) for place in packages}
        else:
            # A virtual environment is a folder of packages and a pyvenv.cfg that names the Python that it belongs to.
            shown = {place: Path(_ENVIRONS, place.relative_to(sys.prefix)) for place in packages}
            self.command += _folders(Path(_ENVIRONS, "bin"))
            for name in ("python", "python3"):
                self.command += ["--symlink", str(program), f"{_ENVIRONS}/bin/{name}"]
            self._write(f"home = {program.parent}\ninclude-system-site-packages = false\n", f"{_ENVIRONS}/pyvenv.cfg")
            for place, there in shown.items():
                self._show(str(place), str(there))
            program = Path(_ENVIRONS, "bin", "python")
        for place, there in shown.items():
            for noted in (*place.glob("*.pth"), *place.glob("*.dist-info/direct_url.json")):
                self._write("", str(there / noted.relative_to(place)))
        return str(program)

    @staticmethod
    def _in_python(place: Path) -> Path:
        """Where a file of this Python's installation is in the sandbox."""
        base = Path(sys.base_prefix).resolve()
        return place if place.is_relative_to("/usr") else Path(_PYTHON, place.resolve().relative_to(base))


def _forget_places(folder: Path) -> None:
    """Recompile modules whose compiled files contain this machine's paths, which Python doesn't need."""
    # First compile the others, or whoever imports one next would, with paths, perhaps while a submission runs.
    compileall.compile_dir(folder, quiet=2, stripdir=str(ROOT))
    for compiled in folder.rglob("__pycache__/*.pyc"):
        with contextlib.suppress(OSError, py_compile.PyCompileError):  # we may not write there
            if str(ROOT).encode() in compiled.read_bytes():
                module = importlib.util.source_from_cache(str(compiled))
                py_compile.compile(module, str(compiled), str(Path(module).relative_to(ROOT)), doraise=True)


def _folders(place: Path) -> list[str]:
    """bubblewrap's options to create a folder and its parents, open to all users, unlike the ones it makes itself."""
    wanted = [folder for folder in reversed([place, *place.parents]) if folder != Path("/")]
    return [word for folder in wanted for word in ("--perms", "0755", "--dir", str(folder))]

"""Where a submission's code runs: in forks of a fork server in a bubblewrap sandbox, one for each conversation.

The sandbox sees, read-only, the system's libraries, this Python with its packages, and the parts of this project that
students also have; no sources, no tests, no other submission, no network. Each fork of the server gets its own
namespaces, scratch folder and limits, and is gone when the conversation ends.
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

ROOT = Path(__file__).resolve().parents[2]  # of this project
_SHOWN = ("autograder/inside", "course_utils")  # of this project: what submissions can read


class SandboxError(CourseError):
    """Isolation isn't available here, or the sandbox broke; the message says why and what to do."""


class Sandbox:
    """A fork server, isolated unless ``unsafe``; a context manager. Conversations with it come one after another.

    If the machine offers a control group for memory, submissions are in one, unless ``group`` is False. The server
    takes seconds to start, and this process does ``meanwhile`` in that time.
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
            # If this is a terminal, bubblewrap shows it to the submissions as /dev/console.
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
# Where this project's part, Python and its environment lie in the sandbox.
_INSIDE, _PYTHON, _ENVIRONS = "/course", "/python", "/environment"
_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/tmp",
    "OMP_NUM_THREADS": "1",
    "MPLCONFIGDIR": "/tmp",
    "LANG": "C.UTF-8",
    "USER": "nobody",  # for who asks by this name: there is no list of users
    "COURSE_PRESET": "small",  # an answer that calls for the capstone's training must not wait minutes for it
}
# Imports make objects that stay, and looking for others among them takes a fifth of the time; main() enables it again.
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


class Wall:
    """bubblewrap's ``command`` that starts a sandbox, and the path of ``python`` in there.

    Nothing in the sandbox says where on this machine Python's environment and this project are: the name of a home
    folder is nobody's business. So the environment lies at `/environment`, a Python that isn't the system's at
    `/python`, and what an installation notes of its own place is left out.
    """

    def __init__(self, root: bool) -> None:
        for place in (sys.prefix, sys.base_prefix):
            if hidden := next((each for each in _HIDING if Path(place).is_relative_to(each)), None):
                raise SandboxError(
                    f"{place} lies in {hidden}, which each submission gets anew\n  → move the project elsewhere"
                )
        require_hidden(ROOT)
        self.descriptors: list[int] = []
        self.command = [require(), "--die-with-parent", "--new-session", "--clearenv"]
        if root:
            # Without a user namespace of bubblewrap's, the fork server can become nobody. The kernel counts nobody's
            # processes, and never root's, not even of a root that is called otherwise in a namespace.
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
        for shown in _SHOWN:
            _forget_places(ROOT / shown)
            self._show(str(ROOT / shown), f"{_INSIDE}/{shown}")
        self.command += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--chdir", "/tmp"]
        # What a submission could write would be there for the next one: a module in /course, say.
        self.command += ["--remount-ro", "/dev", "--remount-ro", "/", "--setenv", "COURSE_GRADING_PATH", _INSIDE]

    def close(self) -> None:
        """Close what was kept open for bubblewrap."""
        for descriptor in self.descriptors:
            os.close(descriptor)

    def _show(self, place: str, there: str) -> None:
        """Show a folder or a file of this machine, read-only."""
        if not there.startswith("/usr/"):
            self.command += _folders(Path(there).parent)
        self.command += ["--ro-bind", place, there]

    def _write(self, text: str, there: str) -> None:
        """Show a file with this text."""
        ours, theirs = os.pipe()
        os.write(theirs, text.encode())  # little enough for a pipe
        os.close(theirs)
        self.descriptors.append(ours)
        self.command += ["--perms", "0444", "--ro-bind-data", str(ours), there]

    def _show_python(self) -> str:
        """Show this Python and its packages; returns its path in the sandbox."""
        # As it was typed it may lead through folders that the sandbox doesn't show, ../.venv/bin/python, and links.
        program = self._in_python(Path(os.path.realpath(sys.executable)))
        if not program.is_relative_to("/usr"):
            self._show(sys.base_prefix, _PYTHON)
            if sysconfig.get_config_var("Py_ENABLE_SHARED"):  # the program looks for it where it was installed
                self.command += ["--setenv", "LD_LIBRARY_PATH", f"{_PYTHON}/lib"]
        packages = [Path(place) for place in dict.fromkeys(map(sysconfig.get_path, ("purelib", "platlib")))]
        if sys.prefix == sys.base_prefix:
            shown = {place: self._in_python(place) for place in packages}
        else:
            # A virtual environment is a folder of packages, and a pyvenv.cfg that says which Python it belongs to.
            shown = {place: Path(_ENVIRONS, place.relative_to(sys.prefix)) for place in packages}
            self.command += [*_folders(Path(_ENVIRONS, "bin")), "--symlink", str(program), f"{_ENVIRONS}/bin/python"]
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
        """Where a part of this Python's own folder is in the sandbox."""
        base = Path(sys.base_prefix).resolve()
        return place if place.is_relative_to("/usr") else Path(_PYTHON, place.resolve().relative_to(base))


def _forget_places(folder: Path) -> None:
    """Compile modules again whose compiled form says where it was made; Python itself doesn't need to know."""
    # What isn't compiled yet would be by whoever imports it next, perhaps while a submission looks.
    compileall.compile_dir(folder, quiet=2, stripdir=str(ROOT))
    for compiled in folder.rglob("__pycache__/*.pyc"):
        with contextlib.suppress(OSError, py_compile.PyCompileError):  # a folder that isn't ours to write to
            if str(ROOT).encode() in compiled.read_bytes():
                module = importlib.util.source_from_cache(str(compiled))
                py_compile.compile(module, str(compiled), str(Path(module).relative_to(ROOT)), doraise=True)


def _folders(place: Path) -> list[str]:
    """Create a folder and its parents so that everybody may pass through; only the creator may in bubblewrap's."""
    wanted = [folder for folder in reversed([place, *place.parents]) if folder != Path("/")]
    return [word for folder in wanted for word in ("--perms", "0755", "--dir", str(folder))]

"""Jupyter kernels that start warm: forks of a process that has already imported PyTorch. Linux only.

    JUPYTER_DEFAULT_PROVISIONER_NAME=warm python -m pytest --nbval --nbval-current-env build/source/02_dtypes

The name is an entry point of the package, so everything that starts kernels through jupyter_client can use it: nbval,
nbclient, nbgrader, JupyterLab. The first kernel starts a server, which only imports the lectures' libraries; each
kernel is a fork of it. Each set of environment variables has its own server, because imports read variables such as
``OMP_NUM_THREADS``. If forking isn't safe (macOS) or possible (Windows), or the kernel isn't this environment's Python,
the kernel starts in the usual way and a warning says why.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import warnings
from dataclasses import asdict, dataclass
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

_NUMBER = struct.Struct("<i")
_MESSAGE = 2**20  # most bytes of a request, which is mostly the environment
_OWN = ("JPY_", "PYTEST_CURRENT_TEST")  # variables that differ between kernels and that no import reads
_INLINE = "module://matplotlib_inline.backend_inline"
_PRELOAD = ("ipykernel.kernelapp", "anywidget")


@dataclass(frozen=True)
class Request:
    """A kernel to start: ``ipykernel_launcher``'s arguments, and where and in which environment it runs."""

    arguments: list[str]
    environment: dict[str, str]
    folder: str


class Forked:
    """A kernel's process, with the parts of `subprocess.Popen` that LocalProvisioner uses."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int, status: int) -> None:
        self.pid, self._status = pid, status
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit status, negative for a signal; None while the process runs."""
        return self.wait(0)

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait at most `timeout` seconds for the process to end, and return its exit status, or None."""
        if self.returncode is None and select.select([self._status], [], [], timeout)[0]:
            said = os.read(self._status, _NUMBER.size)
            # There is no status if the server has ended. Its kernels notice within a second, and end, too.
            self.returncode = _NUMBER.unpack(said)[0] if said else -signal.SIGKILL
            os.close(self._status)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


class Server:
    """The warm process of one environment. It ends with the process that started it, and its kernels with it."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"from autograder.authoring import kernel; kernel.main({theirs.fileno()})"],
                env={"MPLBACKEND": _INLINE} | environment,  # as ipykernel does, before matplotlib is imported
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # so that Ctrl-C doesn't end it
            )
        atexit.register(self.close)

    def fork(self, request: Request, stdout: int, stderr: int) -> Forked:
        """Start a kernel. Raises OSError if the server has ended."""
        ours, theirs = os.pipe()
        try:
            socket.send_fds(self._control, [json.dumps(asdict(request)).encode()], [stdout, stderr, theirs])
        finally:
            os.close(theirs)
        said = os.read(ours, _NUMBER.size)
        if not said:
            os.close(ours)
            raise OSError("it has ended")
        return Forked(_NUMBER.unpack(said)[0], ours)

    @property
    def ended(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def close(self) -> None:
        """End the server and, within a second, its remaining kernels."""
        self._control.close()
        self._process.wait()


_servers: dict[str, Server] = {}


class WarmProvisioner(LocalProvisioner):
    """Starts a kernel as a fork of a warm process or, if that's impossible, as the default provisioner does."""

    process: Any = None

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Start the kernel that `cmd` would start; the arguments are those of `subprocess.Popen`."""
        environment = dict(kwargs.get("env") or os.environ)
        request = Request(cmd[2:], environment, str(kwargs.get("cwd") or os.getcwd()))
        outputs = [_descriptor(kwargs.get(name), number) for name, number in (("stdout", 1), ("stderr", 2))]
        if problem := _problem(cmd, kwargs, outputs):
            return await self._stock(problem, cmd, kwargs)
        # Each environment has its own server, because imports read variables.
        known = json.dumps(sorted(item for item in environment.items() if not item[0].startswith(_OWN)))
        try:
            if known not in _servers or _servers[known].ended:
                _servers[known] = Server(environment)
            # In a thread, because the first answer only comes once everything has been imported.
            self.process = await asyncio.to_thread(_servers[known].fork, request, *outputs)
        except OSError as error:
            problem = f"the process that imports PyTorch for it did not fork ({error}); its output is above"
            return await self._stock(problem, cmd, kwargs)
        # It becomes its own group's leader with setsid; until it does, signals to the group fail harmlessly.
        self.pid = self.pgid = self.process.pid
        self.cwd = request.folder
        return self.connection_info

    async def _stock(self, problem: str, cmd: list[str], kwargs: dict[str, Any]) -> KernelConnectionInfo:
        warnings.warn(f"This kernel starts cold: {problem}.", RuntimeWarning, stacklevel=2)
        return await super().launch_kernel(cmd, **kwargs)


def _descriptor(stream: Any, inherited: int) -> int:
    """The file descriptor of a stream as `subprocess.Popen` accepts it; -1 for those that Popen would create."""
    if stream is None:
        return inherited
    return int(stream if isinstance(stream, int) else stream.fileno())


def _problem(cmd: list[str], kwargs: dict[str, Any], outputs: list[int]) -> str:
    """Why this kernel can't be a fork; empty if it can."""
    if sys.platform != "linux":
        return "forking a process that has imported PyTorch is safe only on Linux"
    if cmd[0] != sys.executable or cmd[1:3] != ["-m", "ipykernel_launcher"]:
        return f"a fork can only run ipykernel_launcher with this Python, not {cmd}"
    if kwargs.get("independent") or kwargs.get("stdin") is not None or min(outputs) < 0:
        return "a fork can't be independent, read from stdin, or write to pipes"
    return ""


def main(control: int) -> None:
    """Run the server: import, then fork a kernel for each request until the requesting process has ended."""
    from autograder.inside.preload import preload

    with contextlib.suppress(ValueError):
        sys.path.remove("")  # this process's folder isn't the notebook's
    preload()
    for name in _PRELOAD:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # otherwise a collection in a fork would write to every imported page, and so copy it
    if request := _serve(socket.socket(fileno=control)):
        _run(request)


def _serve(control: socket.socket) -> Request | None:
    """Fork kernels and report how they end. Returns the request in each fork, and None in the server at its end."""
    running: dict[int, tuple[int, int]] = {}  # by pidfd: the process, and the pipe for its exit status
    while True:
        ready = set(select.select([control.fileno(), *running], [], [])[0])
        for watched in running.keys() & ready:
            pid, status = running.pop(watched)
            os.close(watched)
            with open(status, "wb") as answer, contextlib.suppress(BrokenPipeError):
                answer.write(_NUMBER.pack(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))
        if control.fileno() not in ready:
            continue
        message, descriptors, _, _ = socket.recv_fds(control, _MESSAGE, 3)
        if not message:
            return None
        stdout, stderr, status = descriptors
        if (pid := os.fork()) == 0:
            os.setsid()
            os.dup2(stdout, 1)
            os.dup2(stderr, 2)
            control.close()
            for descriptor in (*descriptors, *running, *(other for _, other in running.values())):
                os.close(descriptor)
            return Request(**json.loads(message))
        os.close(stdout)
        os.close(stderr)
        os.write(status, _NUMBER.pack(pid))
        running[os.pidfd_open(pid)] = pid, status


def _run(request: Request) -> None:
    """In the fork: run ``python -m ipykernel_launcher`` in the request's folder and environment."""
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(request.environment)
    if "numpy" in sys.modules:  # seeded at import, so equal in all forks; Python itself reseeds `random`
        sys.modules["numpy"].random.seed()
    sys.path.insert(0, "")
    # ipykernel ends when its parent, the server, does. The option is needed, too: the variable was read at import.
    os.environ["JPY_PARENT_PID"] = str(os.getppid())
    sys.argv = [*request.arguments, f"--IPKernelApp.parent_handle={os.getppid()}"]
    runpy.run_module("ipykernel_launcher", run_name="__main__", alter_sys=True)

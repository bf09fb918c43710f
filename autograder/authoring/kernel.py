"""Jupyter kernels that start warm: forks of a process in which PyTorch is already imported. Linux.

    JUPYTER_DEFAULT_PROVISIONER_NAME=warm python -m pytest --nbval --nbval-current-env build/source/02_dtypes

The name is an entry point of the package, so everything that starts kernels through jupyter_client can use it: nbval,
nbclient, nbgrader, JupyterLab. The first kernel starts a server, which only imports what lectures use; each
kernel is a fork of it. Each environment has its own server, because imports read variables such as
``OMP_NUM_THREADS``. If forking isn't safe (macOS) or possible (Windows), or the kernel isn't this environment's
Python, the stock kernel starts and a warning says why.
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
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

_NUMBER = struct.Struct("<i")
_MESSAGE = 2**20  # bytes of a request, most of them the environment
_OWN = ("JPY_", "PYTEST_CURRENT_TEST")  # variables that differ from kernel to kernel, and that no import reads
_INLINE = "module://matplotlib_inline.backend_inline"
_PRELOAD = ("ipykernel.kernelapp", "anywidget")


class Forked:
    """A kernel's process, with those parts of `subprocess.Popen` that LocalProvisioner uses."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int, status: int) -> None:
        self.pid, self._status = pid, status
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit status, negative for a signal; None while the process runs."""
        return self.wait(0)

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait for the end for at most `timeout` seconds, and return the exit status."""
        if self.returncode is None and select.select([self._status], [], [], timeout)[0]:
            said = os.read(self._status, _NUMBER.size)
            # Nothing is said where the server is gone. Its kernels notice within a second, and end.
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
                env={"MPLBACKEND": _INLINE} | environment,  # ipykernel sets it, before a notebook imports matplotlib
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is for whoever started it
            )
        atexit.register(self.close)

    def fork(self, request: dict[str, Any], stdout: int, stderr: int) -> Forked:
        """Start a kernel. Raises OSError if the server is gone."""
        ours, theirs = os.pipe()
        try:
            socket.send_fds(self._control, [json.dumps(request).encode()], [stdout, stderr, theirs])
        finally:
            os.close(theirs)
        said = os.read(ours, _NUMBER.size)
        if not said:
            os.close(ours)
            raise OSError("it has ended")
        return Forked(_NUMBER.unpack(said)[0], ours)

    @property
    def ended(self) -> bool:
        """Whether the process is gone."""
        return self._process.poll() is not None

    def close(self) -> None:
        """End the server and, within a second, its remaining kernels."""
        self._control.close()
        self._process.wait()


_servers: dict[str, Server] = {}


class WarmProvisioner(LocalProvisioner):
    """Starts a kernel as a fork of a warm process or, if that's impossible, as the stock provisioner does."""

    process: Any = None

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Start the kernel that `cmd` would start; the arguments are those of `subprocess.Popen`."""
        environment = dict(kwargs.get("env") or os.environ)
        request = {"argv": cmd[2:], "environment": environment, "cwd": str(kwargs.get("cwd") or os.getcwd())}
        outputs = [_descriptor(kwargs.get(name), number) for name, number in (("stdout", 1), ("stderr", 2))]
        if problem := _problem(cmd, kwargs, outputs):
            return await self._stock(problem, cmd, kwargs)
        # Imports read variables: each environment has a server of its own.
        known = json.dumps(sorted(item for item in environment.items() if not item[0].startswith(_OWN)))
        try:
            if known not in _servers or _servers[known].ended:
                _servers[known] = Server(environment)
            # In a thread, because the first answer comes when everything has been imported.
            self.process = await asyncio.to_thread(_servers[known].fork, request, *outputs)
        except OSError as error:
            problem = f"the process that imports PyTorch for it did not fork ({error}); what it said is above"
            return await self._stock(problem, cmd, kwargs)
        # Its group, too: it calls setsid, maybe in a moment, and until then a signal to the group finds nobody.
        self.pid = self.pgid = self.process.pid
        self.cwd = request["cwd"]
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
        return "only on Linux is it safe to fork a process that has imported PyTorch"
    if cmd[0] != sys.executable or cmd[1:3] != ["-m", "ipykernel_launcher"]:
        return f"a fork is this Python with ipykernel_launcher, and {cmd} is not"
    if kwargs.get("independent") or kwargs.get("stdin") is not None or min(outputs) < 0:
        return "a fork is not independent, reads nothing, and writes to files"
    return ""


def main(control: int) -> None:
    """The server: import, then fork a kernel for each request until the requesting process is gone."""
    from autograder.inside.preload import preload

    with contextlib.suppress(ValueError):
        sys.path.remove("")  # this folder is not the notebook's
    preload()
    for name in _PRELOAD:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # a collection in a fork would write to, and so copy, every page of what was imported
    if request := _serve(socket.socket(fileno=control)):
        _run(request)


def _serve(control: socket.socket) -> dict[str, Any] | None:
    """Fork kernels and report how they end. Returns None in the server, and in each fork what it should run."""
    running: dict[int, tuple[int, int]] = {}  # the descriptor that tells of the end: the process, where to say so
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
            return dict(json.loads(message))
        os.close(stdout)
        os.close(stderr)
        os.write(status, _NUMBER.pack(pid))
        running[os.pidfd_open(pid)] = pid, status


def _run(request: dict[str, Any]) -> None:
    """In the fork: become what ``python -m ipykernel_launcher`` is in that folder and environment."""
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    if "numpy" in sys.modules:  # its generator was seeded by the import; Python itself seeds `random` in a fork
        sys.modules["numpy"].random.seed()
    sys.path.insert(0, "")
    # ipykernel ends when its parent does, the server. From the environment it has read too early who that is.
    os.environ["JPY_PARENT_PID"] = str(os.getppid())
    sys.argv = [*request["argv"], f"--IPKernelApp.parent_handle={os.getppid()}"]
    runpy.run_module("ipykernel_launcher", run_name="__main__", alter_sys=True)

"""Kernels that start warm behave as stock ones do: environment, signals, restarts, ends, and nothing is left behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import KernelManager
from jupyter_client.provisioning import KernelProvisionerFactory

from autograder.authoring import kernel

linux = pytest.mark.skipif(sys.platform != "linux", reason="kernels are forked on Linux only")
pytestmark = pytest.mark.xdist_group("kernel")  # one server for all of them
FACTS = """
import gc, json, os, signal, sys
import matplotlib
state = {
    "argv": sys.argv[1], "path": sys.path, "flags": repr(sys.flags), "main": sys.modules["__main__"] is not None,
    "name": __name__, "handler": str(signal.getsignal(signal.SIGINT)), "folder": os.getcwd(),
    "backend": matplotlib.get_backend(), "environment": sorted(os.environ), "stdin": os.path.samefile(0, os.devnull),
    "session": os.getsid(0) == os.getpid(), "collecting": gc.isenabled(), "said": os.environ.get("COURSE_SAID"),
}
print(json.dumps(state))
"""


class Running:
    """A kernel and its client."""

    def __init__(self, name: str, **arguments: Any) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(KernelProvisionerFactory.instance(), "default_provisioner_name", name)
            self.manager = KernelManager(kernel_name="python3")
            self.manager.start_kernel(**arguments)
        self.client: BlockingKernelClient = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    def run(self, code: str) -> str:
        """What a cell prints, or its error's name and message."""
        said: list[str] = []

        def keep(message: dict[str, Any]) -> None:
            content = message["content"]
            said.append(f"{content['ename']}: {content['evalue']}" if "ename" in content else content.get("text", ""))

        self.client.execute_interactive(code, timeout=60, output_hook=keep, store_history=False)
        return "".join(said).strip()

    def number(self, expression: str) -> int:
        return int(self.run(f"print({expression})"))

    def end(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture
def start() -> Iterator[Callable[..., Running]]:
    with contextlib.ExitStack() as stack:

        def started(name: str = "warm", **arguments: Any) -> Running:
            running = Running(name, **arguments)
            stack.callback(running.end)
            return running

        yield started


def gone(pid: int, seconds: float = 60.0) -> bool:
    """Whether no process has this number any more, not even as a zombie."""
    end = time.monotonic() + seconds
    while Path(f"/proc/{pid}").exists():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def ended(running: Running, seconds: float = 60.0) -> int | None:
    """How a kernel's process ended."""
    end = time.monotonic() + seconds
    while running.manager.is_alive() and time.monotonic() < end:
        time.sleep(0.05)
    process = running.manager.provisioner.process
    return process.returncode if process else None


@linux
def test_a_notebook_finds_what_it_finds_in_a_stock_kernel(start: Callable[..., Running], tmp_path: Path) -> None:
    env = {**os.environ, "COURSE_SAID": "here"}
    stock, warm = (start(name, cwd=str(tmp_path), env=dict(env)) for name in ("local-provisioner", "warm"))
    loaded = "import sys; print('torch' in sys.modules, 'torch._dynamo' in sys.modules)"
    assert (stock.run(loaded), warm.run(loaded)) == ("False False", "True True")
    theirs, ours = (json.loads(running.run(FACTS)) for running in (stock, warm))
    theirs.pop("stdin"), ours.pop("stdin")
    assert ours == theirs
    assert (ours["folder"], ours["said"]) == (str(tmp_path), "here")


@linux
def test_two_kernels_at_once_share_a_server_and_nothing_else(start: Callable[..., Running]) -> None:
    one, two = start(), start()
    one.run("word = 'mine'")
    assert two.run("word").startswith("NameError")
    assert one.run("import os") == two.run("import os") == ""
    server = one.number("os.getppid()")
    assert two.number("os.getppid()") == server
    assert one.number("os.getpid()") != two.number("os.getpid()")
    for draw in ("random.random()", "np.random.rand()"):
        assert len({each.run(f"import random, numpy as np; print({draw})") for each in (one, two)}) == 2
    # Threads do not survive a fork: whatever the server imports must start none.
    assert "Threads:\t1\n" in Path(f"/proc/{server}/status").read_text()


@linux
def test_another_environment_gets_another_server(start: Callable[..., Running]) -> None:
    backend = "import os, matplotlib; print(matplotlib.rcParams['backend'])"  # read by matplotlib's import
    svg, pdf = (start(env={**os.environ, "MPLBACKEND": name}) for name in ("svg", "pdf"))
    assert (svg.run(backend), pdf.run(backend)) == ("svg", "pdf")
    assert svg.number("os.getppid()") != pdf.number("os.getppid()")


@linux
def test_an_interrupt_ends_the_cell_and_not_the_kernel(start: Callable[..., Running]) -> None:
    running = start()
    running.run("import time; word = 'kept'")
    said: list[str] = []
    request = running.client.execute("print('begun', flush=True)\ntime.sleep(120)")
    while True:
        message = running.client.get_iopub_msg(timeout=30)
        if message["parent_header"].get("msg_id") != request:
            continue
        if message["msg_type"] == "stream":
            running.manager.interrupt_kernel()
        if message["msg_type"] == "error":
            said.append(message["content"]["ename"])
        if message["content"].get("execution_state") == "idle":
            break
    assert said == ["KeyboardInterrupt"]
    assert running.run("print(word)") == "kept"


@linux
def test_a_restart_is_a_new_process_without_the_names_of_the_old(start: Callable[..., Running]) -> None:
    running = start()
    running.run("import os; word = 'old'")
    before = running.number("os.getpid()")
    running.manager.restart_kernel(now=True)
    running.client.wait_for_ready(timeout=60)
    assert running.run("word").startswith("NameError")
    assert running.number("__import__('os').getpid()") != before
    assert gone(before)


@linux
@pytest.mark.parametrize(
    ("code", "status"),
    [("os._exit(7)", 7), ("os.kill(os.getpid(), signal.SIGKILL)", -9), ("os.kill(os.getpid(), signal.SIGSEGV)", -11)],
)
def test_how_a_kernel_ended_is_known(start: Callable[..., Running], code: str, status: int) -> None:
    running = start()
    pid = running.number("__import__('os').getpid()")
    running.client.execute(f"import os, signal; {code}")
    assert ended(running) == status
    assert gone(pid)


@linux
def test_a_shutdown_runs_what_was_registered_for_the_end(start: Callable[..., Running], tmp_path: Path) -> None:
    running = start(cwd=str(tmp_path))
    running.run("import atexit, pathlib; atexit.register(pathlib.Path('end').write_text, 'reached')")
    running.manager.shutdown_kernel()
    assert (tmp_path / "end").read_text() == "reached"


@linux
def test_what_is_written_goes_where_it_was_told(start: Callable[..., Running], tmp_path: Path) -> None:
    with open(tmp_path / "out", "w") as out, open(tmp_path / "err", "w") as err:
        running = start(stdout=out, stderr=err)
    running.run("import os; os.system('echo to out; echo to err >&2')")
    running.end()
    assert "to out\n" in (tmp_path / "out").read_text()
    assert "to err\n" in (tmp_path / "err").read_text()


@linux
def test_kernels_end_with_their_server_and_the_next_gets_a_new_one(start: Callable[..., Running]) -> None:
    env = {**os.environ, "COURSE_SAID": "a server of its own"}
    running = start(env=dict(env))
    running.run("import os")
    pid, server = running.number("os.getpid()"), running.number("os.getppid()")
    os.kill(server, signal.SIGKILL)
    assert ended(running) == -signal.SIGKILL
    assert gone(pid)
    assert start(env=dict(env)).run("import sys; print('torch' in sys.modules)") == "True"


@linux
def test_where_an_import_fails_the_notebook_says_so_itself(start: Callable[..., Running], tmp_path: Path) -> None:
    (tmp_path / "einops.py").write_text("raise RuntimeError('not today')")
    with pytest.warns(RuntimeWarning, match="starts cold: .* did not fork"):
        running = start(env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert running.run("import einops") == "RuntimeError: not today"


@linux
@pytest.mark.parametrize("last", ["", "os.kill(os.getpid(), 9)"], ids=["exits", "killed"])
def test_nothing_outlives_the_process_that_asked_for_it(last: str) -> None:
    program = f"""
import os
from jupyter_client.manager import start_new_kernel
manager, client = start_new_kernel(kernel_name="python3")
pid = manager.provisioner.pid
print(pid, open(f"/proc/{{pid}}/stat").read().split()[3], flush=True)
{last}
"""
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "JUPYTER_DEFAULT_PROVISIONER_NAME": "warm"},
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
    )
    assert ran.returncode == (-9 if last else 0)
    for pid in map(int, ran.stdout.split()):
        assert gone(pid)


def test_where_a_kernel_cannot_be_forked_the_stock_one_starts_and_a_warning_says_why(
    start: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.warns(RuntimeWarning, match="starts cold: "):
        running = start(independent=True)
    assert running.run("import sys; print('torch' in sys.modules)") == "False"

    cmd = [sys.executable, "-m", "ipykernel_launcher", "-f", "connection.json"]
    if sys.platform == "linux":
        assert kernel._problem(cmd, {}, [1, 2]) == ""
    assert "not" in kernel._problem(["R", "--slave"], {}, [1, 2]) or sys.platform != "linux"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert "only on Linux" in kernel._problem(cmd, {}, [1, 2])

"""One function on several ranks: on real processes with `launch`, in turns within this one with `simulate`.

    def mean(group, numbers):
        return group.all_reduce(numbers[group.rank]) / group.size

    launch(mean, 2, torch.tensor([1.0, 3.0]))     # [tensor(2.), tensor(2.)], from two processes
    simulate(mean, 2, torch.tensor([1.0, 3.0]))   # the same numbers, without processes or a network

`launch` is what the lecture measures. `simulate` is what tests use: it takes no time to start, needs no network (a
sandbox has none), and knows at once when ranks wait for one another for ever.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch

_START = 180.0  # seconds that processes get to start: on a busy machine the import of torch alone takes many
_GRACE = 20.0  # seconds for the others to end by themselves, once one has failed
_STOPPED = "Timeout ("  # how faulthandler begins


class RanksError(RuntimeError):
    """A rank raised, died, or had not ended in time: says which, and where. No process of the launch is left."""


class Group:
    """The ranks that compute together, seen from one of them. Every rank must call the same collectives in one order.

    Attributes:
        rank: which one this is, from 0.
        size: how many there are.
        device: where this rank computes, and where what it gives to the others lies.
    """

    def __init__(self, rank: int, size: int, device: torch.device) -> None:
        self.rank, self.size, self.device = rank, size, device

    def all_reduce(self, x: torch.Tensor) -> torch.Tensor:
        """The sum of all ranks' `x`, on every rank: a new tensor of its shape."""
        parts = self._exchange("all_reduce", [x.detach()] * self.size)
        return torch.stack(parts).sum(dim=0)

    def all_gather(self, x: torch.Tensor) -> torch.Tensor:
        """All ranks' `x` behind one another, on every rank: [n, …] on each becomes [size · n, …]."""
        return torch.cat(self._exchange("all_gather", [x.detach()] * self.size))

    def reduce_scatter(self, x: torch.Tensor) -> torch.Tensor:
        """This rank's part of the sum of all ranks' `x`: [size · n, …] on each becomes [n, …].

        Raises:
            ValueError: the first dimension cannot be divided among the ranks.
        """
        if x.dim() == 0 or len(x) % self.size:
            raise ValueError(f"reduce_scatter: {list(x.shape)} cannot be divided into {self.size} equal parts; pad it")
        return torch.stack(self._exchange("reduce_scatter", list(x.detach().chunk(self.size)))).sum(dim=0)

    def _exchange(self, what: str, parts: list[torch.Tensor]) -> list[torch.Tensor]:
        """Give part i to rank i, and return what the ranks have given to this one, in their order."""
        raise NotImplementedError


# ---------------------------------------------------------------------------------------------- real processes


def launch(fn: Callable[..., Any], size: int, *args: Any, seconds: float = 120.0) -> list[Any]:
    """Run `fn(group, *args)` on `size` new processes of this machine, and return what each returned, by rank.

    They talk through torch.distributed: NCCL, each on a GPU of its own, where there are as many; gloo on CPUs where
    there are not. `fn` may be defined in a notebook: it is sent with all that it uses from there, by cloudpickle.
    Each process computes with one thread. What one prints is not shown unless it fails.

    Args:
        fn: a function; what it returns must be picklable, tensors come back on the CPU.
        size: how many ranks.
        args: given to every rank.
        seconds: after which a rank that has started is stopped.

    Raises:
        ValueError: size is less than 1.
        RanksError: a rank raised, died or ran out of time. All are stopped before this is raised.
    """
    import cloudpickle  # type: ignore[import-untyped, unused-ignore]

    if size < 1:
        raise ValueError(f"launch was given size={size}; wanted 1 or more.")
    with tempfile.TemporaryDirectory(prefix="ranks-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "job").write_bytes(cloudpickle.dumps((fn, args)))
        processes = []
        try:
            for rank in range(size):
                processes.append(_start(folder, rank, size, seconds))
            _wait(processes, time.monotonic() + _START + seconds)
        finally:
            ended = [process.poll() for process in processes]
            for process in processes:
                if hasattr(os, "killpg"):  # with all that it has started
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                process.kill()
                if process.stdin:
                    process.stdin.close()
                process.wait()
        return _results(folder, ended, seconds)


def wire_bytes() -> int | None:
    """Bytes that the network connections of this process have carried away so far, as the kernel counted them.

    The difference before and after a collective is what it really sent, a few hundred bytes of headers included. None
    where the system does not tell (only Linux does) or where NCCL has ways of its own.
    """
    if not sys.platform.startswith("linux") or torch.distributed.get_backend() != "gloo":
        return None
    torch.distributed.barrier()  # what was given away before has been received
    total = 0
    for entry in os.scandir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if os.readlink(entry.path).startswith("socket:"):
                with socket.socket(fileno=os.dup(int(entry.name))) as connection:
                    about = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 128)
                    total += struct.unpack_from("=Q", about, 120)[0]  # tcpi_bytes_acked, linux/tcp.h
    torch.distributed.barrier()  # a rank that has ended takes its connections along: none ends before all have counted
    return total


class _RealGroup(Group):
    def _exchange(self, what: str, parts: list[torch.Tensor]) -> list[torch.Tensor]:
        import torch.distributed as dist

        parts = [part.contiguous() for part in parts]
        got = [torch.empty_like(part) for part in parts]
        if what == "all_gather":
            dist.all_gather(got, parts[0])
        elif what == "reduce_scatter":  # gloo's own sends as much as its all_reduce
            received = torch.empty_like(torch.cat(parts))
            dist.all_to_all_single(received, torch.cat(parts))
            got = list(received.chunk(self.size))
        else:
            whole = parts[0].clone()
            dist.all_reduce(whole)
            got = [whole]
        return got


def _start(folder: Path, rank: int, size: int, seconds: float) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
    with open(folder / f"log-{rank}", "wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "course_utils.ranks", str(folder), str(rank), str(size), str(seconds)],
            env=environment,
            stdin=subprocess.PIPE,  # its end tells a rank that this process is no more
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _wait(processes: list[subprocess.Popen[bytes]], end: float) -> None:
    """Wait until all have ended; not long, once one has failed."""
    while time.monotonic() < end:
        codes = [process.poll() for process in processes]
        if None not in codes:
            return
        if any(codes):
            end = min(end, time.monotonic() + _GRACE)
        time.sleep(0.02)


def _results(folder: Path, ended: list[int | None], seconds: float) -> list[Any]:
    """What the ranks returned; or the error of the one that failed for a reason of its own."""
    values: list[Any] = []
    died: list[str] = []
    raised: list[str] = []
    abandoned: list[str] = []
    for rank, code in enumerate(ended):
        who = f"rank {rank} of {len(ended)}"
        log = (folder / f"log-{rank}").read_text(encoding="utf-8", errors="replace")
        try:
            kind, value = pickle.loads((folder / f"result-{rank}").read_bytes())
        except (OSError, EOFError, pickle.UnpicklingError):
            kind, value = "", None
        if kind == "returned" and code == 0:
            values.append(value)
        elif kind == "raised":
            raised.append(f"{who} raised {value}")
        elif kind == "abandoned":
            abandoned.append(f"{who} waited for another one, which has ended{value}")
        elif _STOPPED in log:
            places = re.findall(r'File "(.+)", line (\d+) in (\S+)', log.partition(_STOPPED)[2])
            where = next((f"in {name}, line {line}" for file, line, name in places if _is_job(file)), "in its start")
            abandoned.append(f"{who} had not ended after {seconds:g} seconds: it was {where}")
        elif code is None:
            abandoned.append(f"{who} had not ended, and was stopped")
        else:
            how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            died.append(f"{who} died ({how}) and said\n{log[-1500:].strip() or 'nothing'}")
    if len(values) == len(ended):
        return values
    raise RanksError("\n".join(died or raised or abandoned))


def _rank_main(folder: Path, rank: int, size: int, seconds: float) -> None:
    """What each process of a launch does."""
    import faulthandler

    import torch.distributed as dist

    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    loopback = [name for _, name in socket.if_nameindex() if name.startswith("lo")]
    if loopback:  # a machine's own name need not lead to itself
        os.environ.setdefault("GLOO_SOCKET_IFNAME", loopback[0])
    nccl = torch.cuda.is_available() and torch.cuda.device_count() >= size
    device = torch.device("cuda", rank) if nccl else torch.device("cpu")
    if nccl:
        torch.cuda.set_device(device)
    store = dist.FileStore(str(folder / "store"), size)  # type: ignore[attr-defined]
    dist.init_process_group(
        "nccl" if nccl else "gloo",
        store=store,
        rank=rank,
        world_size=size,
        timeout=timedelta(seconds=_START + seconds),
    )
    faulthandler.dump_traceback_later(seconds, exit=True)
    result: tuple[str, Any]
    try:
        fn, args = pickle.loads((folder / "job").read_bytes())
        result = ("returned", _on_cpu(fn(_RealGroup(rank, size, device), *args)))
    except BaseException as error:
        # Another one is gone. gloo says so in errors that have no class of their own.
        lost = isinstance(error, dist.DistError) or (isinstance(error, RuntimeError) and "gloo" in str(error))
        places = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_job(frame.filename)]
        where = f"\n    in {places[-1].name}, line {places[-1].lineno}: {places[-1].line}" if places else ""
        result = ("abandoned", where) if lost else ("raised", f"{type(error).__name__}: {error}{where}")
    with open(folder / f"part-{rank}", "wb") as file:
        import cloudpickle

        cloudpickle.dump(result, file)
    os.replace(folder / f"part-{rank}", folder / f"result-{rank}")
    faulthandler.cancel_dump_traceback_later()
    sys.stdout.flush()
    # Without destroy_process_group, which waits for ranks that may be gone.
    os._exit(0 if result[0] == "returned" else 1)


def _is_job(file: str) -> bool:
    """Whether a line of a traceback is of the function that was launched: not of a library, nor of this file."""
    return file != __file__ and not re.search(r"site-packages|lib/python|<frozen", file)


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


def _on_cpu(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().cpu()
    if isinstance(value, dict):
        return {key: _on_cpu(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_on_cpu(item) for item in value)
    return value


# ------------------------------------------------------------------------------------------------- simulated


def simulate(fn: Callable[..., Any], size: int, *args: Any) -> list[Any]:
    """Run `fn(group, *args)` for each rank in a thread of this process, on the CPU, and return what each returned.

    Nothing is waited for in vain: as soon as every rank has ended or waits, and what they wait for does not fit
    together, they are told so.

    Raises:
        ValueError: size is less than 1.
        RanksError: ranks called different collectives, or one ended while others waited for it.
        Any error that `fn` raises on one of the ranks: that of the lowest.
    """
    if size < 1:
        raise ValueError(f"simulate was given size={size}; wanted 1 or more.")
    world = _World(size)
    threads = [threading.Thread(target=world.run, args=(fn, rank, args), daemon=True) for rank in range(size)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(0.1)  # in pieces, so that an interrupt gets through
    finally:
        world.stop("the run was stopped")
        for thread in threads:
            if thread.is_alive() and thread.ident is not None:  # it computes on; end it between two lines of Python
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))
    errors = [world.errors[rank] for rank in sorted(world.errors)]
    own = [error for error in errors if not isinstance(error, RanksError)]
    if errors:
        raise (own or errors)[0]
    return [world.results[rank] for rank in range(size)]


class _World:
    """Where the threads of a simulation meet."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.results: dict[int, Any] = {}
        self.errors: dict[int, BaseException] = {}
        self._meeting = threading.Condition()
        self._given: dict[int, tuple[str, list[torch.Tensor]]] = {}  # by the ranks that wait
        self._taken: list[list[torch.Tensor]] = []  # what was given at the last meeting, by rank
        self._meetings = 0
        self._ended: set[int] = set()
        self._problem = ""

    def run(self, fn: Callable[..., Any], rank: int, args: tuple[Any, ...]) -> None:
        try:
            self.results[rank] = fn(_SimulatedGroup(self, rank), *args)
        except BaseException as error:
            self.errors[rank] = error
        with self._meeting:
            self._ended.add(rank)
            self._look()

    def stop(self, why: str) -> None:
        with self._meeting:
            self._problem = self._problem or why
            self._meeting.notify_all()

    def meet(self, rank: int, what: str, parts: list[torch.Tensor]) -> list[torch.Tensor]:
        with self._meeting:
            self._given[rank] = (what, parts)
            meeting = self._meetings
            self._look()
            while self._meetings == meeting and not self._problem:
                self._meeting.wait()
            if self._meetings == meeting:
                raise RanksError(self._problem)
            return [given[rank] for given in self._taken]

    def _look(self) -> None:
        """Hand over if all have come; say so if they cannot."""
        if self._problem or not self._given or len(self._given) + len(self._ended) < self.size:
            return
        calls = {rank: f"{what} of {list(parts[0].shape)}" for rank, (what, parts) in sorted(self._given.items())}
        waits = ", ".join(f"rank {rank} waits in {call}" for rank, call in calls.items())
        if self._ended:
            gone = ", ".join(f"rank {rank}" for rank in sorted(self._ended))
            self._problem = f"{waits}, and {gone} has ended: all ranks must call the same collectives"
        elif len(set(calls.values())) > 1:
            self._problem = f"{waits}: all ranks must call the same collectives, with tensors of one shape"
        else:
            self._taken = [self._given[rank][1] for rank in range(self.size)]
            self._given = {}
            self._meetings += 1
        self._meeting.notify_all()


class _SimulatedGroup(Group):
    def __init__(self, world: _World, rank: int) -> None:
        super().__init__(rank, world.size, torch.device("cpu"))
        self._world = world

    def _exchange(self, what: str, parts: list[torch.Tensor]) -> list[torch.Tensor]:
        # Copies: the giver may go on and change what it gave.
        return self._world.meet(self.rank, what, [part.clone() for part in parts])


if __name__ == "__main__":
    from course_utils import ranks  # pickles know the classes by that name, not by __main__

    ranks._rank_main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))

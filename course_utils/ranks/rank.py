"""What runs in each process of a launch: connect to the others, run the job, and write its result to a file."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import re
import socket
import struct
import sys
import threading
import traceback
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import torch

from course_utils.ranks.group import Group

START_SECONDS = 180.0  # for a process to start: on a busy machine, importing torch alone can take a minute
_THIS_PACKAGE = os.path.dirname(__file__)


class Surroundings(NamedTuple):
    """What a new process would inherit from the launching one. (A fork inherits it from the fork server instead.)"""

    directory: str
    environment: dict[str, str]
    path: tuple[str, ...]  # where modules are imported from


def main(folder: Path, here: Surroundings, rank: int, size: int, seconds: float) -> None:
    """Run the job in `folder` as one of `size` ranks, write its result or error there, and end the process.

    There are two deadlines. Once the ranks are connected, the job has `seconds`; after that, faulthandler prints where
    every thread is and ends the process, even if it's stuck in C++. Connecting, or waiting in a collective, may take
    as long as the launch itself waits, so that a slow start isn't mistaken for a hanging job.
    """
    import faulthandler

    import torch.distributed as dist

    if hasattr(os, "setsid"):
        os.setsid()  # its own process group, which can be killed as a whole
    threading.Thread(target=_end_with_launcher, daemon=True).start()
    with open(folder / f"log-{rank}", "wb") as log:
        for stream in (1, 2):
            os.dup2(log.fileno(), stream)
    os.chdir(here.directory)
    os.environ.clear()
    os.environ.update(here.environment)
    sys.path[:] = here.path
    torch.set_num_threads(1)
    loopback = [name for _, name in socket.if_nameindex() if name.startswith("lo")]
    if loopback:  # the machine's host name may not resolve to an address that reaches it
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
        timeout=timedelta(seconds=START_SECONDS + seconds),
    )
    # A rank that sends nothing may finish before the others have connected to it, and they would report it as lost.
    store.set(f"connected-{rank}", "1")
    store.wait([f"connected-{each}" for each in range(size)], timedelta(seconds=START_SECONDS + seconds))
    faulthandler.dump_traceback_later(seconds, exit=True)
    result: tuple[str, Any]
    try:
        fn, args = pickle.loads((folder / "job").read_bytes())
        result = ("returned", _on_cpu(fn(_RealGroup(rank, size, device), *args)))
    except BaseException as error:
        # A lost connection means that another rank is gone. gloo's errors for that have no class of their own.
        lost = isinstance(error, dist.DistError) or (isinstance(error, RuntimeError) and "gloo" in str(error))
        places = [frame for frame in traceback.extract_tb(error.__traceback__) if is_job(frame.filename)]
        where = f"\n    in {places[-1].name}, line {places[-1].lineno}: {places[-1].line}" if places else ""
        result = ("abandoned", where) if lost else ("raised", f"{type(error).__name__}: {error}{where}")
    # Written under another name first, so that a result that exists is complete.
    with open(folder / f"part-{rank}", "wb") as file:
        import cloudpickle  # type: ignore[import-untyped, unused-ignore]

        cloudpickle.dump(result, file)
    os.replace(folder / f"part-{rank}", folder / f"result-{rank}")
    faulthandler.cancel_dump_traceback_later()
    sys.stdout.flush()
    # Without destroy_process_group, which waits for ranks that may be gone.
    os._exit(0 if result[0] == "returned" else 1)


def is_job(file: str) -> bool:
    """Whether a traceback's line belongs to the launched function rather than to a library or to this package."""
    return os.path.dirname(file) != _THIS_PACKAGE and not re.search(r"site-packages|lib/python|<frozen", file)


def wire_bytes() -> int | None:
    """Bytes that this process's network connections have delivered so far, as the kernel counts them.

    The difference before and after a collective is what it actually sent, including a few hundred bytes of headers.
    None on systems other than Linux, which don't report it, and with NCCL, which doesn't rely on the network alone.
    """
    if not sys.platform.startswith("linux") or torch.distributed.get_backend() != "gloo":
        return None
    torch.distributed.barrier()  # everything sent before has arrived
    total = 0
    for entry in os.scandir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if os.readlink(entry.path).startswith("socket:"):
                with socket.socket(fileno=os.dup(int(entry.name))) as connection:
                    about = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 128)
                    total += struct.unpack_from("=Q", about, 120)[0]  # tcpi_bytes_acked, linux/tcp.h
    torch.distributed.barrier()  # a rank closes its connections when it ends, so all must have counted first
    return total


class _RealGroup(Group):
    def _exchange(self, what: str, parts: list[torch.Tensor]) -> list[torch.Tensor]:
        import torch.distributed as dist

        parts = [part.contiguous() for part in parts]
        got = [torch.empty_like(part) for part in parts]
        if what == "all_gather":
            dist.all_gather(got, parts[0])
        elif what == "reduce_scatter":  # not gloo's own, which sends as much as its all_reduce
            received = torch.empty_like(torch.cat(parts))
            dist.all_to_all_single(received, torch.cat(parts))
            got = list(received.chunk(self.size))
        elif what == "all_to_all":
            lengths = torch.tensor([len(part) for part in parts], device=self.device)
            theirs = torch.empty_like(lengths)
            dist.all_to_all_single(theirs, lengths)  # how much to expect from each rank
            received = parts[0].new_empty(int(theirs.sum()), *parts[0].shape[1:])
            dist.all_to_all_single(received, torch.cat(parts), theirs.tolist(), lengths.tolist())
            got = list(torch.split(received, theirs.tolist()))
        else:
            whole = parts[0].clone()
            dist.all_reduce(whole)
            got = [whole]
        return got


def _end_with_launcher() -> None:
    # End this process when the launcher ends, however it ends. The fork server, its parent, doesn't pass that on.
    launcher = multiprocessing.parent_process()
    assert launcher is not None
    launcher.join()
    os._exit(1)


def _on_cpu(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().cpu()
    if isinstance(value, dict):
        return {key: _on_cpu(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_on_cpu(item) for item in value)
    return value

"""Workers on this machine: processes that grade one submission at a time and are replaced when they die.

A worker is ``python -m autograder.grading.pool``, with a socket as its only way to talk. The standard library's pools
won't do for two reasons: they give up all their tasks when one worker dies, and they import the calling program again
in each worker, which takes most of the time until the first result.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import math
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait

from autograder.inside.limits import Limits

from .sandbox import ROOT, SandboxError
from .worker import ATTEMPTS, EngineError, Failed, Outcome, Task, grade_one, prepare, unfinished

_READY = "ready"
# Seconds that the first worker has the machine to itself for the first result, once it is ready.
_HEAD_START = 1.0
# Seconds that a task may take beyond all that its limits allow, before its worker is killed: more than the worker's own
# watchdog gives it, which is enough as long as Python runs there.
_GRACE = 60.0


class _Worker:
    """A worker process and its current task."""

    def __init__(self, limits: Limits, unsafe: bool) -> None:
        ours, theirs = socket.socketpair()
        # With -P nothing is imported from the folder that the command was called in, which may be the class's. The
        # command's own course comes first, since another one may be installed.
        paths = filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "autograder.grading.pool", str(theirs.fileno())],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                # Ctrl-C is for the command, which then ends its workers.
                start_new_session=True,
            )
        self.connection = Connection(ours.detach())
        with contextlib.suppress(OSError):  # one that has died already is noticed when it is waited for
            self.connection.send((limits, unsafe))
        self.ready = False
        self.task: Task | None = None
        self.attempt = 0
        self.over = math.inf  # when its task has taken too long (monotonic)

    def begin(self, task: Task, attempt: int) -> None:
        """Send a task. If the worker has died in the meantime, that's noticed while waiting for it."""
        self.task, self.attempt = task, attempt
        self.over = time.monotonic() + ATTEMPTS * task.limits.seconds_in_all + _GRACE
        with contextlib.suppress(OSError):
            self.connection.send(task)

    def end(self) -> None:
        """Kill the worker; its sandbox ends with it."""
        self.connection.close()
        self.process.kill()
        self.process.wait()


def grade_in_pool(tasks: Iterator[Task], count: int, limits: Limits, unsafe: bool) -> Iterator[tuple[Task, Outcome]]:
    """Grade tasks with at most ``count`` workers.

    Another worker starts only when the last one is ready and there's a task for it; the second only when there's a
    result or the first has worked for a second. Each start imports PyTorch twice, so workers that all started at once
    would slow each other down and delay the first result.
    """
    pool = _Pool(tasks, limits, unsafe)
    try:
        while pool.more() or pool.busy:
            if pool.more() and len(pool.workers) < count and pool.may_grow():
                pool.workers.append(_Worker(limits, unsafe))
            yield from pool.step()
    finally:
        for worker in pool.workers:
            worker.end()


class _Pool:
    """Workers, waiting tasks, and tasks whose worker died."""

    def __init__(self, tasks: Iterator[Task], limits: Limits, unsafe: bool) -> None:
        self.workers: list[_Worker] = []
        self._tasks, self._next = tasks, next(tasks, None)
        self._again: list[tuple[Task, int]] = []  # with the number of the attempt that comes
        self._stillborn = 0  # workers that died one after another before they were ready
        self._alone_until = math.inf  # no second worker before (monotonic)

    @property
    def busy(self) -> list[_Worker]:
        """The workers with a task."""
        return [worker for worker in self.workers if worker.task is not None]

    def more(self) -> bool:
        """Whether a task is waiting for a worker."""
        return self._next is not None or bool(self._again)

    def may_grow(self) -> bool:
        """Whether another worker can start without disturbing the existing ones."""
        if not self.workers:
            return True
        if self._stillborn >= ATTEMPTS:  # those that are there have to do
            return False
        return all(worker.ready for worker in self.workers) and time.monotonic() >= self._alone_until

    def step(self) -> Iterator[tuple[Task, Outcome]]:
        """Wait until a worker sends something, dies or takes too long, or the first one's head start is over.

        Yields finished tasks.
        """
        now = time.monotonic()
        until = min([self._alone_until if self._alone_until > now else math.inf, *(each.over for each in self.busy)])
        said = wait([worker.connection for worker in self.workers], None if until == math.inf else max(0, until - now))
        for worker in [each for each in self.busy if each.connection not in said and each.over <= time.monotonic()]:
            assert worker.task is not None
            worker.end()
            self.workers.remove(worker)
            yield worker.task, unfinished(worker.task.problems)
        for worker in [worker for worker in self.workers if worker.connection in said]:
            task = worker.task
            try:
                message = worker.connection.recv()
            except (EOFError, OSError, pickle.UnpicklingError):
                yield from self._bury(worker)
                continue
            if not worker.ready:
                if message != _READY and len(self.workers) == 1:
                    raise SandboxError(message)
                if message != _READY:  # what the others grade may be why
                    yield from self._bury(worker)
                    continue
                worker.ready, self._stillborn = True, 0
                self._alone_until = min(self._alone_until, time.monotonic() + _HEAD_START)
            if task is not None:
                self._alone_until = 0.0
            worker.task = None
            again = isinstance(message, Failed) and message.perhaps_by_others and worker.attempt < ATTEMPTS
            if task is not None and again:
                self._again.append((task, worker.attempt + 1))
            self._hand_out()  # before what is done is written: nobody waits for a disk
            if task is not None and not again:
                yield task, message
        self._hand_out()

    def _bury(self, worker: _Worker) -> Iterator[tuple[Task, Outcome]]:
        worker.end()
        self.workers.remove(worker)
        if worker.task is None:
            self._stillborn += not worker.ready
            if self._stillborn >= ATTEMPTS and not self.workers:
                raise EngineError(
                    f"{ATTEMPTS} workers died while they started\n"
                    "  → nothing is lost: run the same command again; if this comes again, try --workers 0"
                )
        elif worker.attempt < ATTEMPTS:
            self._again.append((worker.task, worker.attempt + 1))
        else:
            yield worker.task, Failed(f"the worker died {ATTEMPTS} times while it was graded")

    def _hand_out(self) -> None:
        """Give each idle worker a task, first those that were started before. A last attempt is made alone."""
        self._again.sort(key=lambda item: item[1])
        for worker in self.workers:
            if not worker.ready or worker.task is not None or any(busy.attempt == ATTEMPTS for busy in self.busy):
                continue
            if self._again and (self._again[0][1] < ATTEMPTS or (not self.busy and self._next is None)):
                worker.begin(*self._again.pop(0))
            elif self._next is not None:
                worker.begin(self._next, 1)
                self._next = next(self._tasks, None)


def main() -> None:
    """A worker: warm up, then grade what arrives until the other side is gone."""
    # If the command is killed while this process grades, nobody would wait for what comes out.
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    with Connection(int(sys.argv[1])) as connection, contextlib.suppress(EOFError, OSError):
        limits, unsafe = connection.recv()
        gc.disable()  # while PyTorch is imported, as in the sandbox's server
        said = prepare(limits, unsafe)
        gc.freeze()
        gc.enable()
        connection.send(said or _READY)
        while True:
            connection.send(grade_one(connection.recv()))
    os._exit(0)  # the command is gone, and has no use for an orderly end


if __name__ == "__main__":
    main()

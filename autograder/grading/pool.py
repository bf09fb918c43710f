"""Workers on this machine: processes that grade one submission at a time and are replaced when they die.

A worker is ``python -m autograder.grading.pool``, and communicates only over a socket. The standard library's pools are
unsuitable for two reasons: they give up all their tasks when one worker dies, and they import the calling program again
in each worker, which would take most of the time until the first result.
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

from .sandbox import ROOT, unavailable
from .worker import ATTEMPTS, Done, EngineError, Failed, Task, grade_one, prepare, unfinished

_READY = "ready"
# Seconds that the first worker, once ready, has the machine to itself at least, for a quick first result.
_HEAD_START = 1.0
# Seconds beyond a task's limits after which its worker is killed. That's later than the worker's own watchdog, which
# stops a task as long as the worker executes Python code.
_GRACE = 60.0


class _Worker:
    """A worker process and its current task."""

    def __init__(self, limits: Limits, unsafe: bool) -> None:
        ours, theirs = socket.socketpair()
        # -P keeps Python from importing from the current folder, which may be the class's. This copy of the project
        # comes first, since another one may be installed.
        paths = filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "autograder.grading.pool", str(theirs.fileno())],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                # Ctrl-C must reach only the command, which then ends its workers.
                start_new_session=True,
            )
        self.connection = Connection(ours.detach())
        with contextlib.suppress(OSError):  # if it has died already, step() notices
            self.connection.send((limits, unsafe))
        self.started = time.monotonic()
        self.ready = False
        self.task: Task | None = None
        self.attempt = 0
        self.over = math.inf  # when its task will have taken too long (monotonic)

    def begin(self, task: Task, attempt: int) -> None:
        """Send a task. If the worker has died in the meantime, `_Pool.step` notices."""
        self.task, self.attempt = task, attempt
        self.over = time.monotonic() + ATTEMPTS * task.limits.seconds_in_all + _GRACE
        with contextlib.suppress(OSError):
            self.connection.send(task)

    def end(self) -> None:
        """Kill the worker; its sandbox ends with it."""
        self.connection.close()
        self.process.kill()
        self.process.wait()


def grade_in_pool(tasks: Iterator[Task], count: int, limits: Limits, unsafe: bool) -> Iterator[tuple[Task, Done]]:
    """Grade tasks with at most ``count`` workers.

    Another worker starts only when the previous one is ready and a task is waiting. Each start imports PyTorch twice,
    so workers that all started at once would slow each other down and delay the first result. The second one also
    waits until the first has graded for as long as it took to start: a class that's graded by then needs no other.
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
        self._again: list[tuple[Task, int]] = []  # with the number of the next attempt
        self._stillborn = 0  # workers in a row that died before they were ready
        self._alone_until = math.inf  # no second worker starts before this time (monotonic)

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
        if self._stillborn >= ATTEMPTS:  # make do with the existing ones
            return False
        return all(worker.ready for worker in self.workers) and time.monotonic() >= self._alone_until

    def step(self) -> Iterator[tuple[Task, Done]]:
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
                    raise unavailable(message)
                if message != _READY:  # what the other workers are grading may be the cause
                    yield from self._bury(worker)
                    continue
                worker.ready, self._stillborn = True, 0
                now = time.monotonic()
                self._alone_until = min(self._alone_until, now + max(_HEAD_START, now - worker.started))
            worker.task = None
            again = isinstance(message, Failed) and message.perhaps_by_others and worker.attempt < ATTEMPTS
            if task is not None and again:
                self._again.append((task, worker.attempt + 1))
            self._hand_out()  # before the caller writes the result to disk, so that no worker has to wait
            if task is not None and not again:
                yield task, message
        self._hand_out()

    def _bury(self, worker: _Worker) -> Iterator[tuple[Task, Done]]:
        worker.end()
        self.workers.remove(worker)
        if worker.task is None:
            self._stillborn += not worker.ready
            if self._stillborn >= ATTEMPTS and not self.workers:
                raise EngineError(
                    f"{ATTEMPTS} workers died while starting\n"
                    "  → no results were lost: run the same command again; if this happens again, try --workers 0"
                )
        elif worker.attempt < ATTEMPTS:
            self._again.append((worker.task, worker.attempt + 1))
        else:
            yield worker.task, Failed(f"the worker died {ATTEMPTS} times while grading it")

    def _hand_out(self) -> None:
        """Give each idle worker a task, retries first. A last attempt waits until it can run alone."""
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
    """Run a worker: warm up, then grade tasks until the command closes the socket."""
    # If the command is killed while this process is grading, nobody will want the result.
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    with Connection(int(sys.argv[1])) as connection, contextlib.suppress(EOFError, OSError):
        limits, unsafe = connection.recv()
        gc.disable()  # faster while PyTorch is imported, as in the fork server
        said = prepare(limits, unsafe)
        gc.freeze()
        gc.enable()
        connection.send(said or _READY)
        while True:
            connection.send(grade_one(connection.recv()))
    os._exit(0)  # the command has ended, so skip the slow orderly exit


if __name__ == "__main__":
    main()

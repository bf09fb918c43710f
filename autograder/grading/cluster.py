"""Workers on other machines: those of a Dask scheduler. They need this course installed, and share no files with us."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Iterator
from typing import Any

import dask
from distributed import CancelledError, Client, Future, wait
from distributed.scheduler import KilledWorker

from autograder.inside.limits import Limits

from . import worker
from .sandbox import SandboxError
from .worker import ATTEMPTS, Done, EngineError, Failed, Task

_PATIENCE = 120.0  # seconds without any worker


def grade_on_cluster(
    tasks: Iterator[Task], scheduler: str, limits: Limits, unsafe: bool
) -> Iterator[tuple[Task, Done]]:
    """Grade tasks on the workers of the scheduler at that address. Raises :class:`EngineError` or `SandboxError`."""
    try:
        # Dask keeps the last thousand messages for debugging, and each has a submission in it.
        with dask.config.set({"distributed.admin.low-level-log-length": 1}):
            client = Client(scheduler, timeout=20)
        client.wait_for_workers(1, timeout=60)
    except (OSError, TimeoutError, ValueError) as error:
        raise EngineError(
            f"there is no scheduler with workers at {scheduler} ({type(error).__name__}: {error})\n"
            "  → start `dask scheduler`, and `dask worker ADDRESS --nthreads 1` on machines with this course"
        ) from error
    with client:
        _prepare(client, limits, unsafe)
        yield from _spread(client, tasks)


def _prepare(client: Client, limits: Limits, unsafe: bool) -> None:
    """Warm up every worker and check that it can grade. Raises :class:`EngineError` or `SandboxError` otherwise."""
    checks = {
        address: client.submit(worker.prepare, limits, unsafe, workers=[address], allow_other_workers=True, pure=False)
        for address in client.nthreads()
    }
    died = []
    for address, check in checks.items():
        try:
            problem = check.result(timeout=180)
        except (KilledWorker, CancelledError):
            died.append(address)  # its supervisor (nanny) starts another
            continue
        except Exception as error:
            raise EngineError(
                f"the worker {address} cannot grade ({type(error).__name__}: {error})\n"
                "  → install the same version of this course, with its extra `instructor`, on every machine"
            ) from error
        if problem:
            raise SandboxError(problem)
    if checks and len(died) == len(checks):
        raise EngineError("every worker died while starting\n  → run the same command again")


def _spread(client: Client, tasks: Iterator[Task]) -> Iterator[tuple[Task, Done]]:
    """Grade tasks on the workers; a task whose worker dies is retried, the last time alone.

    Each worker has one task waiting in addition to its current one, so that it isn't idle while a result is in transit.
    (More would be lost if the worker died.) ``flying`` has the tasks at the workers, each with its attempt number;
    ``again`` has those whose worker died. A task that has failed twice waits until nothing else is left, because it may
    be what kills workers, and others' work with them. Workers may come and go, so they are counted again every two
    seconds.
    """
    flying: dict[Future[Any], tuple[Task, int]] = {}
    again: list[tuple[Task, int]] = []
    last_seen = time.monotonic()
    room = 1

    def launch(task: Task, attempt: int) -> None:
        future = client.submit(worker.grade_one, task, key=f"grade-{uuid.uuid4().hex}", retries=0)
        flying[future] = task, attempt

    while True:
        if time.monotonic() >= last_seen:
            if threads := sum(client.nthreads().values()):
                room, last_seen = 2 * threads, time.monotonic() + 2
            elif time.monotonic() > last_seen + _PATIENCE:
                raise EngineError(
                    f"no worker for {_PATIENCE:g} seconds\n  → start some, and run the same command again"
                )
        alone = any(attempt == ATTEMPTS for _, attempt in flying.values())
        while len(flying) < room and not alone:
            if again and again[0][1] < ATTEMPTS:
                launch(*again.pop(0))
            elif (task := next(tasks, None)) is not None:
                launch(task, 1)
            else:
                break
        if not flying and again:
            launch(*again.pop(0))
        if not flying:
            return
        with contextlib.suppress(TimeoutError, CancelledError):
            wait(list(flying), timeout=2, return_when="FIRST_COMPLETED")
        for future in [future for future in flying if future.done()]:
            task, attempt = flying.pop(future)
            reason = ""
            try:
                outcome = future.result()
                if attempt == ATTEMPTS or not (isinstance(outcome, Failed) and outcome.perhaps_by_others):
                    yield task, outcome
                    continue
            except KilledWorker:
                reason = "the worker died"
            except CancelledError:
                if client.status != "running":
                    raise EngineError(
                        "the connection to the scheduler was lost\n  → finished results are kept; start the scheduler "
                        "and run the same command again"
                    ) from None
                reason = "the scheduler dropped it"
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"
            if attempt < ATTEMPTS:
                again.append((task, attempt + 1))
                again.sort(key=lambda item: item[1])
            else:
                yield task, worker.failed(f"{reason} {ATTEMPTS} times while grading it")

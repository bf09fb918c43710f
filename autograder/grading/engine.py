"""Distributes submissions: to this process, to workers on this machine, or to those of a Dask scheduler.

Each of these takes tasks from an iterator as needed and yields each with its outcome, in the order in which they
finish. If a worker dies or has no sandbox, its task is retried. The third and last attempt runs alone, because another
submission's load on the machine may have been the cause.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator

from autograder.inside.limits import Limits

from . import sandbox, worker
from .sandbox import unavailable
from .worker import Done, Failed, Task


def grade_all(
    tasks: Iterator[Task], limits: Limits, *, unsafe: bool = False, workers: int | None = None, scheduler: str = ""
) -> Generator[tuple[Task, Done]]:
    """Grade every task; ``limits`` and ``unsafe`` apply to all of them.

    ``workers``: processes on this machine, one per processor if None; 0 grades in this process. ``scheduler``: the
    address of a Dask scheduler, whose workers are used instead. Raises :class:`~autograder.grading.worker.EngineError`,
    and :class:`~autograder.grading.sandbox.SandboxError` if no sandbox is available.
    """
    for task, outcome in _spread(tasks, limits, unsafe, workers, scheduler):
        if isinstance(outcome, Failed) and outcome.refused:
            raise unavailable(outcome.reason)  # the next task would have no sandbox, either
        yield task, outcome


def _spread(
    tasks: Iterator[Task], limits: Limits, unsafe: bool, workers: int | None, scheduler: str
) -> Iterator[tuple[Task, Done]]:
    if scheduler:
        from .cluster import grade_on_cluster  # with Dask, which takes a second to import

        return grade_on_cluster(tasks, scheduler, limits, unsafe)
    if workers == 0:
        return _grade_here(tasks)
    from .pool import grade_in_pool

    if not unsafe:
        sandbox.require()
    return grade_in_pool(tasks, workers or processors(), limits, unsafe)


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _grade_here(tasks: Iterator[Task]) -> Iterator[tuple[Task, Done]]:
    with worker.kept_box():
        for task in tasks:
            yield task, worker.grade_one(task)

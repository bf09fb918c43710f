"""Spreads submissions over processes: in this one, in workers on this machine, or in those of a Dask scheduler.

Each way takes tasks from an iterator as it needs them and yields each with its outcome, in the order in which they are
done. No task is given up because a worker died: it is tried again, and the third time alone, since what another
submission did to the machine may be what killed it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from autograder import CourseError
from autograder.inside.limits import Limits

from . import sandbox, worker
from .sandbox import SandboxError
from .worker import Failed, Outcome, Task


class EngineError(CourseError):
    """Grading cannot begin, or cannot go on: says why and what to do. What was graded is kept."""


def grade_all(
    tasks: Iterator[Task], limits: Limits, *, unsafe: bool = False, workers: int | None = None, scheduler: str = ""
) -> Iterator[tuple[Task, Outcome]]:
    """Grade every task; ``limits`` and ``unsafe`` are those of all of them.

    ``workers``: processes on this machine, one for each processor if None; 0 grades in this process. ``scheduler``: the
    address of a Dask scheduler, whose workers are used instead. Raises :class:`EngineError`, and
    :class:`~autograder.grading.sandbox.SandboxError` where there is no sandbox to be had.
    """
    if scheduler:
        from .cluster import grade_on_cluster  # with Dask, which takes a second to import

        yield from grade_on_cluster(tasks, scheduler, limits, unsafe)
    elif workers == 0:
        yield from _grade_here(tasks)
    else:
        from .pool import grade_in_pool

        if not unsafe:
            sandbox.require()
        yield from grade_in_pool(tasks, workers or processors(), limits, unsafe)


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _grade_here(tasks: Iterator[Task]) -> Iterator[tuple[Task, Outcome]]:
    try:
        for task in tasks:
            yield task, accepted(worker.grade_one(task))
    finally:
        worker.close_box()


def accepted(outcome: Outcome) -> Outcome:
    """An outcome as it is. Raises SandboxError where there was no sandbox: the next task would have none either."""
    if isinstance(outcome, Failed) and outcome.refused:
        raise SandboxError(outcome.reason)
    return outcome

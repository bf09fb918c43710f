"""Grades a class: spreads the submissions over Dask workers, and writes each result as it comes.

What crosses to a worker is plain data (the lecture's text, the submission's bytes, the limits), and so is what comes
back. The results are files (:mod:`autograder.results`), written here alone: whatever dies, and whenever, running again
goes on where it stopped.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import dask
from distributed import CancelledError, Client, Future, LocalCluster, wait
from distributed.scheduler import KilledWorker

from . import CourseError, build, gradebook, results, sandbox, source, submission, worker
from . import roster as rosters
from .results import Mark, Result, State
from .worker import ATTEMPTS, Outcome, Task, clean, nothing

_PATIENCE = 120.0  # seconds without any worker
_LIMITS = sandbox.Limits()
Progress = Callable[[int, int, Result | None], None]


class EngineError(CourseError):
    """Grading cannot begin, or cannot go on: says why and what to do. What was graded is kept."""


@dataclass
class Plan:
    """Everybody; who of them wants grading, has a result for the same work, or handed in nothing."""

    students: dict[str, rosters.Student]
    wanted: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Summary:
    """How a run ended: a result for everybody on the roster, and who of them was graded in this run."""

    results: dict[str, Result]
    graded: tuple[str, ...]
    remarks: tuple[str, ...] = ()
    gradebook_problem: str = ""

    @property
    def complete(self) -> bool:
        """Whether nothing failed here and the gradebook is up to date."""
        left = (State.FAILED_HERE, State.QUEUED)
        return not self.gradebook_problem and not any(result.state in left for result in self.results.values())


def grade_class(
    course: Path,
    lecture: str,
    *,
    workers: int | None = None,
    scheduler: str = "",
    unsafe: bool = False,
    again: bool = False,
    roster: Path | None = None,
    limits: sandbox.Limits = _LIMITS,
    database: str | None = "",
    progress: Progress = lambda done, total, latest: None,
    say: Callable[[str], None] = lambda message: None,
) -> Summary:
    """Grade what is not graded yet of one lecture, and derive the gradebook. Safe to repeat and to interrupt.

    ``workers`` on this machine: one for each processor unless given; 0 grades in this process, without Dask.
    ``scheduler``: the address of a Dask scheduler whose workers are used instead. ``database``: a SQLAlchemy URL, ""
    for the course directory's own, None for no gradebook. ``progress`` is told how many are done, of how many, and
    the latest result. Raises :class:`EngineError` or :class:`sandbox.SandboxError` where grading cannot go on.
    """
    path = build.SOLUTIONS / f"{lecture}.py"
    read = source.read(path)
    text = path.read_text(encoding="utf-8")
    _require_submitted(course, lecture)
    if not unsafe:
        sandbox.require_hidden(course)
    with _alone(course, lecture):
        todo = plan(course, lecture, again=again, roster=roster)
        graded: list[str] = []
        progress(0, len(todo.wanted), None)

        def finish(result: Result, answers: dict[str, str] | None, seconds: float | None) -> None:
            before = _existing(course, lecture, result.student)
            spoiled = result.state is State.FAILED_HERE and before is not None and before.key == result.key
            if spoiled and before is not None and before.points is not None:
                result = before  # graded once, and failed when graded again: what was found stands
            else:
                try:
                    if answers is not None:
                        gradebook.write_autograded(course, read, result, answers)
                    results.write(course, result)
                except OSError as error:
                    raise EngineError(
                        f"the result of {result.student} cannot be written: {error}\n"
                        f"  → {len(graded)} results of this run are safe; make room on the disk (or mend the folder's "
                        "permissions) and run the same command again: it goes on from there"
                    ) from error
            if seconds is not None:
                results.note_time(course, lecture, result.student, seconds)
            graded.append(result.student)
            progress(len(graded), len(todo.wanted), result)

        if todo.wanted:
            _grade_all(course, todo.wanted, read, text, workers, scheduler, unsafe, limits, finish)
        found = _states(course, lecture, todo)
        problem = ""
        if database is not None:
            try:
                gradebook.derive(course, read, found, database, students=todo.students, say=say)
            except gradebook.GradebookError as error:
                problem = str(error)
    return Summary(found, tuple(graded), tuple(todo.remarks), problem)


def plan(course: Path, lecture: str, *, again: bool = False, roster: Path | None = None) -> Plan:
    """Who is to be graded. ``again``: those too who have a result for the same work."""
    text = (build.SOLUTIONS / f"{lecture}.py").read_bytes()
    _require_submitted(course, lecture)
    students = rosters.of(course, lecture, roster)
    made = Plan(students)
    if any(student.listed for student in students.values()):
        strangers = [name for name, student in students.items() if not student.listed]
        made.remarks = [f"{name} is not on the roster, and counted" for name in strangers]
    for student in students:
        data = _work(course, lecture, student)
        before = _existing(course, lecture, student)
        if data is None:
            made.absent.append(student)
            if before is not None:
                made.remarks.append(f"{student}'s {lecture}.ipynb is gone from submitted/; the earlier result stands")
            folder = course / "submitted" / student / lecture
            if folder.is_dir() and (there := sorted(path.name for path in folder.iterdir())):
                made.remarks.append(f"{student} handed in {clean(', '.join(there[:5]))}, and no {lecture}.ipynb")
            continue
        done = before is not None and before.points is not None and before.key == _key(data, text)
        (made.kept if done and not again else made.wanted).append(student)
    return made


def _require_submitted(course: Path, lecture: str) -> None:
    submitted = course / "submitted"
    if not submitted.is_dir():
        raise EngineError(f"{submitted} is missing\n  → put submissions into {submitted}/STUDENT/{lecture}/")


def _grade_all(
    course: Path,
    wanted: list[str],
    lecture: source.Lecture,
    text: str,
    workers: int | None,
    scheduler: str,
    unsafe: bool,
    limits: sandbox.Limits,
    finish: Callable[[Result, dict[str, str] | None, float | None], None],
) -> None:
    def tasks() -> Iterator[Task]:
        for student in wanted:
            data = _work(course, lecture.name, student)
            about = {"student": student, "lecture": lecture.name}
            if data is None:
                continue  # taken away since
            if isinstance(data, bytes):
                settings = {"source": text, "submission": data, "limits": asdict(limits), "unsafe": unsafe}
                yield {**about, **settings, "key": _key(data, text.encode())}
                continue
            key = _key(data, text.encode())
            if isinstance(data, OSError):
                note = f"{_notebook(course, lecture.name, student)} cannot be read: {data.strerror}"
                finish(Result(student, lecture.name, State.FAILED_HERE, key, (), (clean(note),)), None, None)
            else:
                note = f"{data.problem}: {data.remedy}"
                state = State.NEEDS_REVIEW
                finish(Result(student, lecture.name, state, key, nothing(lecture, note), (clean(note),)), {}, None)

    if workers == 0 and not scheduler:
        spread: Iterable[tuple[Task, Outcome]] = ((task, worker.grade_one(task)) for task in tasks())
        try:
            for task, outcome in spread:
                if "refused" in outcome:
                    raise sandbox.SandboxError(outcome["refused"])
                finish(*_result(task, outcome))
        finally:
            worker.close_box()
        return
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    count = min(workers or processors, len(wanted))
    if not unsafe and not scheduler:
        sandbox.require()
    with _client(count, scheduler) as (client, replace_lost):
        _prepare(client, asdict(limits), unsafe)
        for task, outcome in _spread(client, tasks(), replace_lost):
            finish(*_result(task, outcome))


def _result(task: Task, outcome: Outcome) -> tuple[Result, dict[str, str] | None, float | None]:
    about = task["student"], task["lecture"]
    if (reason := outcome.get("failed") or outcome.get("refused")) is not None:
        return Result(*about, State.FAILED_HERE, task["key"], (), (reason,)), None, None
    notes = tuple(outcome["notes"])
    state = State.NEEDS_REVIEW if notes else State.GRADED
    result = Result(*about, state, task["key"], tuple(Mark(**m) for m in outcome["marks"]), notes)
    return result, outcome["answers"], outcome.get("seconds")


def _notebook(course: Path, lecture: str, student: str) -> Path:
    return build.notebook_path(course / "submitted" / student, lecture)


def _work(course: Path, lecture: str, student: str) -> bytes | submission.Finding | OSError | None:
    """What a student handed in, or why it is not read; None if nothing."""
    path = _notebook(course, lecture, student)
    try:
        return submission.load(path)
    except FileNotFoundError:
        return None
    except submission.NotReadable as error:
        return error.finding
    except OSError as error:
        return error


def _key(data: bytes | submission.Finding | OSError, text: bytes) -> str:
    if isinstance(data, submission.Finding):
        data = data.problem.encode()
    return results.key(data if isinstance(data, bytes) else b"", text)


def _existing(course: Path, lecture: str, student: str) -> Result | None:
    try:
        return results.read(course, lecture, student)
    except results.ResultError:
        return None  # damaged: graded again


def _states(course: Path, lecture: str, todo: Plan) -> dict[str, Result]:
    """A result for everybody; what was handed in and has none is queued."""
    found: dict[str, Result] = {}
    for student in todo.students:
        state = State.NOT_SUBMITTED if student in todo.absent else State.QUEUED
        found[student] = _existing(course, lecture, student) or Result(student, lecture, state, "")
    return found


@contextlib.contextmanager
def _alone(course: Path, lecture: str) -> Iterator[None]:
    """One command at a time grades a lecture; the lock goes with the process, however it ends."""
    folder = course / "results" / lecture
    try:
        folder.mkdir(parents=True, exist_ok=True)
        opened = open(folder / ".lock", "w")  # noqa: SIM115 (the with below closes it)
    except OSError as error:
        raise EngineError(
            f"{folder} cannot be written: {error}\n"
            "  → make room on the disk (or mend the folder's permissions) and run the same command again"
        ) from error
    with opened as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise EngineError(
                f"another command is grading {lecture} in {course}\n  → wait until it ends; this one changed nothing"
            ) from None
        for partial in folder.glob(".*.partial"):  # of a run that was killed while it wrote
            partial.unlink(missing_ok=True)
        yield


# --------------------------------------------------------------------------------------------------- Dask

_QUIET = {
    # A worker that dies is our affair: Dask gives up at once, and `_spread` tries again.
    "distributed.scheduler.allowed-failures": 0,
    "distributed.admin.low-level-log-length": 10,  # it holds the tasks, submissions and all; 1,000 unless set
    "distributed.scheduler.http.routes": [],  # no pages
    "distributed.worker.http.routes": [],
}


@contextlib.contextmanager
def _client(workers: int, scheduler: str) -> Iterator[tuple[Client, Callable[[], None]]]:
    """A client, and what to call now and then so that lost workers are replaced."""
    if scheduler:
        try:
            client = Client(scheduler, timeout=20)
            client.wait_for_workers(1, timeout=60)
        except (OSError, TimeoutError, ValueError) as error:
            raise EngineError(
                f"there is no scheduler with workers at {scheduler} ({type(error).__name__}: {error})\n"
                "  → start `dask scheduler`, and `dask worker ADDRESS --nthreads 1` on machines with this course"
            ) from error
        with client:
            yield client, lambda: None
        return
    with contextlib.ExitStack() as stack:
        stack.enter_context(dask.config.set(_QUIET))
        for attempt in range(1, ATTEMPTS + 1):
            try:
                cluster = stack.enter_context(
                    LocalCluster(
                        n_workers=workers,
                        threads_per_worker=1,
                        processes=True,
                        host="127.0.0.1",
                        dashboard_address="127.0.0.1:0",
                        memory_limit=None,
                        silence_logs=logging.CRITICAL,
                    )
                )
                client = stack.enter_context(Client(cluster))
                break
            except (RuntimeError, OSError, TimeoutError) as error:  # a worker died while it started, say
                if attempt == ATTEMPTS:
                    raise EngineError(
                        f"the workers did not start ({type(error).__name__}: {error})\n"
                        "  → nothing is lost: run the same command again (--workers 0 grades without workers)"
                    ) from error
        # Dask restarts a worker that dies, but not one that dies while it starts.
        yield client, lambda: cluster.scale(workers)


def _prepare(client: Client, limits: dict[str, Any], unsafe: bool) -> None:
    """Warm every worker up, and learn whether it can grade at all."""
    checks = {
        address: client.submit(worker.prepare, limits, unsafe, workers=[address], allow_other_workers=True, pure=False)
        for address in client.nthreads()
    }
    died = []
    for address, check in checks.items():
        try:
            problem = check.result(timeout=180)
        except (KilledWorker, CancelledError):
            died.append(address)  # another takes its place
            continue
        except Exception as error:
            raise EngineError(
                f"the worker {address} cannot grade ({type(error).__name__}: {error})\n"
                "  → install the same version of this course, with `instructor`, on every machine"
            ) from error
        if problem:
            raise sandbox.SandboxError(problem)
    if checks and len(died) == len(checks):
        raise EngineError(
            "every worker died while it started\n  → run the same command again; if this comes again, try --workers 0"
        )


def _spread(client: Client, tasks: Iterator[Task], replace_lost: Callable[[], None]) -> Iterator[tuple[Task, Outcome]]:
    """Grade tasks on the workers, a few ahead of each; a task whose worker dies is tried again, at last alone."""
    flying: dict[Future[Any], tuple[Task, int]] = {}
    again: list[tuple[Task, int]] = []
    last_seen = time.monotonic()
    room = 1

    def launch(task: Task, attempt: int) -> None:
        future = client.submit(worker.grade_one, task, key=f"grade-{uuid.uuid4().hex}", retries=0)
        flying[future] = task, attempt

    while True:
        if time.monotonic() >= last_seen:  # workers may come and go
            replace_lost()
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
            try:
                yield task, future.result()
                continue
            except KilledWorker:
                reason = "the worker died"
            except CancelledError:
                if client.status != "running":
                    raise EngineError(
                        "the connection to the scheduler is lost\n  → what was graded is kept; start the scheduler and "
                        "run the same command again"
                    ) from None
                reason = "the scheduler dropped it"
            except EngineError:
                raise
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"
            if attempt < ATTEMPTS:
                again.append((task, attempt + 1))
                again.sort(key=lambda item: item[1])
            else:
                yield task, {"failed": clean(f"{reason} {ATTEMPTS} times while it was graded")}

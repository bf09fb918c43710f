"""Workers on this machine die, do not start and are no longer wanted: no task is lost, and no worker stays.

What a worker grades here is made up, so that it starts at once and does what its task is called.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from autograder import project
from autograder.grading import engine, pool
from autograder.grading.exercises import Exercise, ProblemSet
from autograder.grading.sandbox import SandboxError
from autograder.grading.worker import ATTEMPTS, Done, EngineError, Failed, Graded, Task
from autograder.inside.limits import Limits

PROBLEMS = ProblemSet("01_test", (Exercise("f", 1.0, "", "", "", 1),))
LIMITS = Limits()
# Every Python that finds this in a folder of PYTHONPATH imports it as it starts; -P does not keep workers from it.
HOOK = """
import os
import signal
import sys
import time
from pathlib import Path

if "autograder.grading.pool" in sys.orig_argv:
    from autograder.grading import worker

    log = Path(os.environ["POOL_LOG"])

    def note(*words):
        with log.open("a") as file:
            print(*words, file=file)

    def prepare(limits, unsafe):
        note("start", os.getpid(), worker.__file__)
        if os.environ["POOL_START"] == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if os.environ["POOL_START"] == "first":
            return "" if log.read_text().count("start ") == 1 else "no sandbox"
        return "" if os.environ["POOL_START"] == "well" else os.environ["POOL_START"]

    def grade_one(task):
        note("begin", task.student, os.getpid())
        attempts = log.read_text().count(f"begin {task.student} ")
        what, _, times = task.student.partition(" ")
        if what == "dies" and attempts <= int(times):
            os.kill(os.getpid(), signal.SIGKILL)
        if what == "waits":
            time.sleep(float(times))
        if what == "refused" and attempts <= int(times or 9):
            return worker.Failed("no sandbox", refused=True)
        if what == "lost" and attempts <= int(times):
            return worker.Failed("the sandbox broke", lost=True)
        note("end", task.student, os.getpid())
        return worker.Graded((), notes=(task.student,))

    worker.prepare, worker.grade_one = prepare, grade_one
"""
Log = Callable[[], list[str]]


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Log:
    """What the workers have noted so far, a line for each start, and for each beginning and end of a task."""
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks" / "sitecustomize.py").write_text(HOOK)
    (tmp_path / "log").touch()
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'hooks'}{os.pathsep}{project.ROOT}")
    monkeypatch.setenv("POOL_LOG", str(tmp_path / "log"))
    monkeypatch.setenv("POOL_START", "well")
    return lambda: (tmp_path / "log").read_text().splitlines()


def tasks(*students: str) -> Iterator[Task]:
    return (Task(student, PROBLEMS, b"", "", LIMITS, unsafe=True) for student in students)


def graded(*students: str, workers: int = 2) -> list[tuple[str, Done]]:
    outcomes = engine.grade_all(tasks(*students), LIMITS, unsafe=True, workers=workers)
    return [(task.student, outcome) for task, outcome in outcomes]


def begun(log: Log, student: str) -> int:
    return sum(line.startswith(f"begin {student} ") for line in log())


def living(log: Log) -> set[int]:
    """The workers that have started and are still there."""
    found = set()
    for line in log():
        if line.startswith("start "):
            process = int(line.split()[1])
            with contextlib.suppress(OSError):
                # One that has ended and that nobody has waited for is still listed, as a zombie.
                if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                    found.add(process)
    return found


def test_each_task_is_graded_once_by_at_most_as_many_workers_as_asked_for(log: Log) -> None:
    names = [f"s{number}" for number in range(20)]
    found = graded(*names)
    assert sorted(student for student, _ in found) == sorted(names)
    assert all(outcome == Graded((), notes=(student,)) for student, outcome in found)
    assert sum(line.startswith("begin") for line in log()) == 20
    assert 1 <= sum(line.startswith("start") for line in log()) <= 2 and living(log) == set()


def test_no_worker_is_started_for_no_task(log: Log) -> None:
    assert graded(workers=4) == [] and log() == []
    assert [student for student, _ in graded("s", workers=4)] == ["s"]
    assert sum(line.startswith("start") for line in log()) == 1


def test_a_second_worker_starts_beside_tasks_that_take_longer_than_its_start(log: Log) -> None:
    assert len(graded("a", "b", "c")) == 3
    assert [line.split()[0] for line in log()].count("start") == 1
    assert [student for student, _ in graded("waits 4", "d")] == ["d", "waits 4"]
    assert [line.split()[0] for line in log()].count("start") == 1 + 2


@pytest.mark.parametrize("workers", [1, 2])
def test_a_task_whose_worker_is_killed_is_tried_again_and_no_other_is_lost(log: Log, workers: int) -> None:
    names = ["a", "b", f"dies {ATTEMPTS - 1}", "c", "d", "e", "f"]
    found = dict(graded(*names, workers=workers))
    assert found == {student: Graded((), notes=(student,)) for student in names}
    assert begun(log, names[2]) == ATTEMPTS
    assert all(begun(log, student) == 1 for student in names if student != names[2])
    assert living(log) == set()


def test_a_task_that_kills_every_worker_fails_after_three_attempts_the_last_of_them_alone(log: Log) -> None:
    names = ["dies 9", *(f"waits 0.{number}" for number in range(1, 6)), "after"]
    found = dict(graded(*names, workers=2))
    failed = found.pop("dies 9")
    assert failed == Failed(f"the worker died {ATTEMPTS} times while grading it")
    assert found == {student: Graded((), notes=(student,)) for student in names[1:]}
    assert begun(log, "dies 9") == ATTEMPTS
    lines = log()
    last = max(place for place, line in enumerate(lines) if line.startswith("begin dies"))
    ended = {line.split(" ", 1)[1] for line in lines[:last] if line.startswith("end ")}
    assert {line.split(" ", 1)[1] for line in lines[:last] if line.startswith("begin ") and "dies" not in line} == ended
    assert len(ended) == 6


def test_a_task_beyond_its_time_ends_like_any_that_does_and_the_others_go_on(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "_GRACE", 1.0)
    limits = Limits(seconds_in_all=0.5)
    named = ["a", "waits 300", "b", "c"]
    given = (Task(student, PROBLEMS, b"", "", limits, unsafe=True) for student in named)
    found = {task.student: outcome for task, outcome in engine.grade_all(given, limits, unsafe=True, workers=2)}
    assert found.keys() == set(named) and begun(log, "waits 300") == 1
    late = found.pop("waits 300")
    assert isinstance(late, Graded) and [mark.points for mark in late.marks] == [0.0]
    assert "did not finish" in late.marks[0].message and "exceeded its total time limit" in late.notes[0]
    assert all(isinstance(outcome, Graded) and outcome.marks == () for outcome in found.values())


def test_two_tasks_that_kill_their_workers_both_come_to_an_end(log: Log) -> None:
    found = dict(graded("dies 9", "dies 8", f"dies {ATTEMPTS - 1}", "s", workers=2))
    assert [type(found[name]) for name in ("dies 9", "dies 8", f"dies {ATTEMPTS - 1}", "s")] == [
        Failed, Failed, Graded, Graded
    ]  # fmt: skip
    assert begun(log, "dies 9") == begun(log, "dies 8") == ATTEMPTS


def test_a_worker_that_is_killed_from_outside_is_replaced_busy_or_idle(log: Log) -> None:
    killed = []
    outcomes = engine.grade_all(tasks("a", "waits 0.3", "b", "c"), LIMITS, unsafe=True, workers=1)
    found = []
    for task, outcome in outcomes:
        found.append((task.student, outcome))
        if len(killed) < 2:
            killed += living(log)
            os.kill(killed[-1], signal.SIGKILL)
    assert sorted(found) == [(name, Graded((), notes=(name,))) for name in ("a", "b", "c", "waits 0.3")]
    assert len(killed) == 2 and sum(line.startswith("start") for line in log()) == 3


def test_workers_that_die_while_they_start_end_the_run_with_a_remedy(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POOL_START", "die")
    with pytest.raises(EngineError, match=rf"{ATTEMPTS} workers died while starting\n  → .*run the same command"):
        graded("a", "b", "c")
    assert sum(line.startswith("start") for line in log()) == ATTEMPTS and living(log) == set()


def test_a_python_that_cannot_run_the_worker_ends_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "python").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(EngineError, match="died while starting"):
        graded("a")


def test_a_worker_without_a_sandbox_ends_the_run_with_its_reason(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POOL_START", "the sandbox did not start: no user namespaces\n  → enable them")
    with pytest.raises(SandboxError, match="no user namespaces\n  → enable them"):
        graded("a", "b")
    assert begun(log, "a") == 0 and living(log) == set()


def test_a_worker_without_a_sandbox_beside_others_ends_nothing(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """The submission that another worker grades may be the cause."""
    monkeypatch.setenv("POOL_START", "first")
    names = ["waits 5", "a", "b"]
    assert graded(*names) == [(student, Graded((), notes=(student,))) for student in names]
    assert sum(line.startswith("start") for line in log()) == 1 + ATTEMPTS


def test_a_task_without_a_sandbox_is_tried_again_the_last_time_alone_and_then_ends_the_run(log: Log) -> None:
    names = ["refused 2", "lost 2", "waits 1", "lost 9", "a"]
    found = dict(graded(*names))
    assert found.pop("lost 9") == Failed("the sandbox broke", lost=True)
    assert found == {student: Graded((), notes=(student,)) for student in names if student != "lost 9"}
    assert begun(log, "refused 2") == begun(log, "lost 2") == begun(log, "lost 9") == ATTEMPTS
    with pytest.raises(SandboxError, match="no sandbox\n  → no results were lost: run the same command again"):
        graded("a", "refused", "waits 1")
    assert living(log) == set()


def test_closing_the_generator_ends_all_workers(log: Log) -> None:
    outcomes = engine.grade_all(tasks("a", "waits 60", "b", "waits 61"), LIMITS, unsafe=True, workers=2)
    assert [next(outcomes)[0].student for _ in "ab"] == ["a", "b"] and len(living(log)) == 2
    started = time.monotonic()
    outcomes.close()
    assert living(log) == set() and time.monotonic() - started < 20


def test_an_error_while_tasks_are_read_ends_all_workers(log: Log) -> None:
    def broken() -> Iterator[Task]:
        yield from tasks("a", "waits 60")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        list(engine.grade_all(broken(), LIMITS, unsafe=True, workers=2))
    assert living(log) == set()


def test_killing_the_command_ends_its_workers(log: Log) -> None:
    code = "from test_pool import *; list(engine.grade_all(tasks('a', 'waits 60'), LIMITS, unsafe=True, workers=1))"
    path = f"{os.environ['PYTHONPATH']}{os.pathsep}{Path(__file__).parent}"
    command = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path})
    end = time.monotonic() + 60
    try:
        while begun(log, "waits 60") == 0:
            assert command.poll() is None and time.monotonic() < end, "the command did not come to its second task"
            time.sleep(0.05)
        assert living(log)
    finally:
        command.kill()
        command.wait()
    while living(log):
        assert time.monotonic() < end, "a worker outlives the command"
        time.sleep(0.05)


def test_a_worker_imports_nothing_from_the_folder_that_the_command_is_called_in(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be the class's, and hold what somebody handed in."""
    (tmp_path / "class").mkdir()
    for name in ("json.py", "autograder.py", "torch.py"):
        (tmp_path / "class" / name).write_text("raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path / "class")
    assert graded("a") == [("a", Graded((), notes=("a",)))]


def test_workers_run_the_course_that_the_command_runs_not_one_that_is_installed(log: Log, tmp_path: Path) -> None:
    """As in a second checkout, where `python -m autograder.cli` runs what is in the working directory."""
    for package in ("autograder", "course_utils"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(project.ROOT / package, tmp_path / "checkout" / package, ignore=ignored)
    tests = Path(__file__).parent
    code = f"import autograder, sys; sys.path.append({str(tests)!r}); from test_pool import graded; print(graded('a'))"
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path / "checkout", capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "hooks")},
    )  # fmt: skip
    assert "Graded" in ran.stdout, ran.stderr
    (started,) = (line for line in log() if line.startswith("start "))
    assert started.endswith(f" {tmp_path / 'checkout' / 'autograder' / 'grading' / 'worker.py'}")


def test_the_command_line_of_a_worker_names_the_pool(log: Log) -> None:
    assert pool.__name__ == "autograder.grading.pool"
    outcomes = engine.grade_all(tasks("a", "waits 60"), LIMITS, unsafe=True, workers=1)
    next(outcomes)
    (process,) = living(log)
    assert b"\0autograder.grading.pool\0" in Path(f"/proc/{process}/cmdline").read_bytes()
    outcomes.close()

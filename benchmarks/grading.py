"""`course grade` beside `nbgrader autograde`: the same honest class of a real lecture, on this machine, in one run.

Run: python benchmarks/grading.py            (some ten minutes; --students and --many make it shorter)

Everything is timed as a command, from its start to a finished gradebook. nbgrader grades a few submissions, one after
another and in several processes at once, each with a course directory of its own so that none waits for another's
database; every submission costs it the same. `course grade` grades those few, and a large class with one worker and
with several, since its start (two imports of torch, a cluster, a sandbox) is paid once. The same class with one hostile
submission in ten, and the memory of all its processes, second by second, come last. Every student's points must be the
same both ways.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from nbgrader.api import Gradebook
from rich.console import Console
from rich.table import Table

from autograder import bank, build, demo, source

console = Console()


@dataclass
class Run:
    """One command, or several side by side: submissions, seconds to the end, and when each result was written."""

    submissions: int
    seconds: float
    written: list[float] = field(default_factory=list)  # seconds since the start of the first
    memory: list[tuple[float, float]] = field(default_factory=list)  # seconds, bytes of all processes

    @property
    def rate(self) -> float:
        """Submissions a second, the start and the gradebook included."""
        return self.submissions / self.seconds

    @property
    def steady(self) -> float:
        """Submissions a second between the first result and the last."""
        return (len(self.written) - 1) / (self.written[-1] - self.written[0])


def make_class(course: Path, lecture: source.Lecture, students: int, hostile: float = 0.0) -> None:
    """Hand in the reference, with an unusual right answer or a common mistake in some exercises; a share attacks."""
    attacks = demo.attacks(lecture)
    every = round(1 / hostile) if hostile else students + 1
    for student in range(students):
        answers = {}
        for number, exercise in enumerate(lecture.exercises):
            kept = bank.read_bank(bank.bank_path(build.ANSWERS, lecture.name, exercise.name))
            others = [answer.code for answer in kept if answer.kind in ("right", "wrong")]
            text = exercise.solution if (student + number) % 3 else others[(student + number) % len(others)]
            answers[exercise.name] = text
        if student % every == every - 1:
            answers |= attacks[student // every % len(attacks)]
        path = build.notebook_path(course / "submitted" / f"student{student:04d}", lecture.name)
        path.parent.mkdir(parents=True)
        demo.hand_in(path, lecture, answers)


def run(commands: Sequence[tuple[Path, tuple[str, ...]]], name: str) -> Run:
    """Run commands side by side, each in its course directory, to their end."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(build.ROOT)}
    began, start = time.time(), time.perf_counter()
    with contextlib.ExitStack() as stack:
        logs = [stack.enter_context(tempfile.TemporaryFile()) for _ in commands]
        running = [
            subprocess.Popen([sys.executable, "-m", *command], cwd=course, env=environment, stdout=log, stderr=log)
            for (course, command), log in zip(commands, logs, strict=True)
        ]
        memory = []
        while any(process.poll() is None for process in running):
            memory.append((time.perf_counter() - start, sum(map(_memory, running))))
            time.sleep(1)
        seconds = time.perf_counter() - start
        for process, log in zip(running, logs, strict=True):
            log.seek(0)
            if process.returncode:
                sys.exit(f"{process.args} failed:\n{log.read().decode(errors='replace')[-3000:]}")
    graded = sum(len(list((course / "submitted").iterdir())) for course, _ in commands)
    written = [p.stat().st_mtime - began for course, _ in commands for p in (course / "results" / name).glob("*.json")]
    return Run(graded, seconds, sorted(written), memory)


def _memory(process: subprocess.Popen[bytes]) -> float:
    """Bytes of a command and of all that came from it, what they share counted once."""
    found = 0.0
    with contextlib.suppress(psutil.Error):
        tree = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        for each in tree:
            with contextlib.suppress(psutil.Error):
                found += each.memory_full_info().pss
    return found


def points(course: Path, lecture: str) -> dict[str, float]:
    """Each student's points, from the gradebook."""
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as book:
        return {one.student.id: one.score for one in book.assignment_submissions(lecture)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lecture", default="01_tensors", help="default 01_tensors")
    parser.add_argument("--students", type=int, default=6, help="graded by both (default 6)")
    parser.add_argument("--many", type=int, default=1000, help="graded by `course grade` besides (default 1,000)")
    parser.add_argument("--workers", type=int, default=2, help="side by side, of both (default 2)")
    options = parser.parse_args()
    if min(options.students, options.workers) < 1 or options.many < 20:
        parser.error("numbers of students and workers are 1 or more, and many is 20 or more")
    name, few, many, workers = options.lecture, options.students, options.many, options.workers
    stock = ("nbgrader", "autograde", name)

    def ours(count: int) -> tuple[str, ...]:
        return ("autograder.cli", "grade", ".", name, "--workers", str(count))

    table = Table("", "submissions", "seconds", "a second", "a second, once running")

    def show(title: str, found: Run) -> Run:
        steady = f"{found.steady:.2f}" if len(found.written) > few else ""
        table.add_row(title, f"{found.submissions:,}", f"{found.seconds:.1f}", f"{found.rate:.3f}", steady)
        console.print(f"{title}: {found.submissions:,} in {found.seconds:.1f} s", highlight=False)
        return found

    with tempfile.TemporaryDirectory() as scratch:

        def make(title: str, students: int, hostile: float = 0.0) -> Path:
            course = Path(scratch, title)
            (read,) = build.course_directory(course, [build.SOLUTIONS / f"{name}.py"])
            build.release(course, name)
            make_class(course, read, students, hostile)
            return course

        def make_stock(title: str) -> Path:
            course = make(title, few)
            shutil.rmtree(course / "release")
            run([(course, ("nbgrader", "generate_assignment", name))], name)
            return course

        theirs = make_stock("stock")
        one_by_one = show("nbgrader autograde", run([(theirs, stock)], name))
        side = [make_stock(f"stock{number}") for number in range(workers)]
        together = show(f"{workers} × nbgrader autograde", run([(course, stock) for course in side], name))
        small = make("small", few)
        show("course grade, 1 worker", run([(small, ours(1))], name))
        if (wanted := points(theirs, name)) != (got := points(small, name)):
            sys.exit(f"the points differ: {wanted} and {got}")
        one = show("course grade, 1 worker", run([(make("one", many), ours(1))], name))
        several = show(f"course grade, {workers} workers", run([(make("several", many), ours(workers))], name))
        shutil.rmtree(Path(scratch, "one"))
        mixed = show("the same, 1 in 10 hostile", run([(make("mixed", many, 0.1), ours(workers))], name))
    console.print(table)
    grading = [size for at, size in one.memory if one.written[0] < at < one.written[-1]]
    early, late = grading[len(grading) // 10 : len(grading) // 3], grading[-len(grading) // 3 :]
    for title, value in (
        ("course grade with 1 worker / nbgrader", f"{one.rate / one_by_one.rate:.1f} ×"),
        (f"course grade with {workers} workers / {workers} nbgrader", f"{several.rate / together.rate:.1f} ×"),
        (f"{workers} workers / 1 worker, once running", f"{several.steady / one.steady:.2f} ×"),
        (f"{workers} workers / 1 worker, from start to end", f"{several.rate / one.rate:.2f} ×"),
        ("wall time with 1 in 10 hostile / all honest", f"{mixed.seconds / several.seconds:.2f} ×"),
        (
            "memory of all processes with 1 worker, last third / early",
            f"{statistics.median(late) / statistics.median(early):.3f} × {statistics.median(early) / 2**20:.0f} MiB",
        ),
    ):
        console.print(f"{title:60}{value}", highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())

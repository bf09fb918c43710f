"""`course grade` beside `nbgrader autograde` and `otter run`: the same honest class of a real lecture, in one run.

Each tool is timed as a command, from its start to its last grade. nbgrader and Otter-Grader grade a few submissions,
since each takes them the same time: nbgrader one after another and in several processes at once, each with its own
course directory so that none waits for another's database; Otter without a container for each submission.
`course grade` grades a whole class, with one worker and with several, since its start (two imports of torch, a cluster,
a sandbox) is paid once; then a class with one hostile submission in ten. The tools take turns, round by round. Every
student's points must be the same in all tools.

The floor is the answers and tests alone, in one process that has imported everything.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
import psutil
from matplotlib.figure import Figure
from nbgrader.api import Gradebook
from record import ROOT, dots, ranged, ratios, spread, times

from autograder import demo, project
from autograder.authoring import build, checks
from autograder.grading import source

TITLE = "Grading"
OTTER = "otter-grader==7.0.0"
_OTTER_TEST = """\
import os

from otter.test_files import test_case

OK_FORMAT = False
name = {name!r}
points = None


def requirement(env, number):
    if number == 0:
        os.chdir({course!r})  # whose own cases count
        exec("rubric = check({name!r}, hidden=True)", env)
    assert env["rubric"].lines[number].earned
"""
_OTTER_CASE = """

@test_case(points={points}, hidden=True)
def requirement_{number}(env):
    requirement(env, {number})
"""


@dataclass
class Run:
    """One command, or several side by side: submissions, seconds to the end, and when each result was written."""

    submissions: int
    seconds: float
    written: list[float] = field(default_factory=list)  # seconds since the start of the first
    memory: list[tuple[float, float]] = field(default_factory=list)  # seconds, bytes of all processes

    @property
    def each(self) -> float:
        """Seconds per submission, including start-up and the gradebook."""
        return self.seconds / self.submissions

    @property
    def steady(self) -> float:
        """Submissions per second between the first result and the last."""
        return (len(self.written) - 1) / (self.written[-1] - self.written[0])


def make_class(course: Path, lecture: source.Lecture, students: int, hostile: float = 0.0) -> None:
    """Hand in the reference, with an unusual right answer or a common mistake in some exercises; some attack."""
    attacks = demo.attacks(lecture)
    every = round(1 / hostile) if hostile else students + 1
    for student in range(students):
        answers = answers_of(lecture, student)
        if student % every == every - 1:
            answers |= attacks[student // every % len(attacks)]
        path = project.notebook_path(course / "submitted" / f"student{student:05d}", lecture.name)
        path.parent.mkdir(parents=True)
        demo.hand_in(path, lecture, answers)


def answers_of(lecture: source.Lecture, student: int) -> dict[str, str]:
    """What an honest student hands in."""
    answers = {}
    for number, exercise in enumerate(lecture.exercises):
        others = [program.code for program in checks.programs(lecture.name, exercise)]
        text = exercise.solution if (student + number) % 3 else others[(student + number) % len(others)]
        answers[exercise.name] = text
    return answers


def run(commands: Sequence[tuple[Path, tuple[str, ...]]], name: str) -> Run:
    """Run commands side by side, each in its course directory, to their end."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(project.ROOT)}
    began, start = time.time(), time.perf_counter()
    with contextlib.ExitStack() as stack:
        logs = [stack.enter_context(tempfile.TemporaryFile()) for _ in commands]
        running = [
            subprocess.Popen([sys.executable, "-m", *command], cwd=course, env=environment, stdout=log, stderr=log)
            for (course, command), log in zip(commands, logs, strict=True)
        ]
        memory = []
        while waiting := [process for process in running if process.poll() is None]:
            memory.append((time.perf_counter() - start, sum(map(_memory, running))))
            with contextlib.suppress(subprocess.TimeoutExpired):
                waiting[0].wait(1)
        seconds = time.perf_counter() - start
        for process, log in zip(running, logs, strict=True):
            log.seek(0)
            if process.returncode:
                sys.exit(f"{process.args} failed:\n{log.read().decode(errors='replace')[-3000:]}")
    graded = sum(len(list((course / "submitted").iterdir())) for course, _ in commands)
    written = [p.stat().st_mtime - began for course, _ in commands for p in (course / "results" / name).glob("*.json")]
    return Run(graded, seconds, sorted(written), memory)


def _memory(process: subprocess.Popen[bytes]) -> float:
    """Bytes of a command and all its descendants, with shared memory counted once."""
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


def otter_command(say: Callable[[str], None]) -> Path:
    """Otter-Grader in its own environment, created once in build/, because it needs other versions than we do."""
    folder = project.BUILD / "otter"
    command = folder / "bin" / "otter"
    if not (folder / "ready").exists():
        say(f"installing {OTTER} into {folder.relative_to(ROOT)}, once")
        venv.create(folder, clear=True, with_pip=True)
        wanted = ["-c", str(ROOT / "requirements.lock"), "-e", str(ROOT), OTTER]
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *wanted]
        installed = subprocess.run(pip, capture_output=True, text=True)
        if installed.returncode:
            sys.exit(f"{OTTER} could not be installed:\n{installed.stderr[-2000:]}")
        (folder / "ready").touch()
    return command


def otter(command: Path, course: Path, lecture: source.Lecture, folder: Path) -> tuple[float, dict[str, float]]:
    """Seconds to grade a class with Otter-Grader, one command for each submission, and each student's points."""
    tests = folder / "tests"
    tests.mkdir(parents=True)
    for exercise in lecture.exercises:
        text = _OTTER_TEST.format(name=exercise.name, course=str(course))
        for number, requirement in enumerate(exercise.check.requirements):
            text += _OTTER_CASE.format(number=number, points=requirement.points)
        (tests / f"{exercise.name}.py").write_text(text, encoding="utf-8")
    archive = folder / "autograder.zip"
    # Its kernel is the `python3` of its own environment.
    environment = {**os.environ, "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}"}
    make = [command, "generate", "--tests-dir", tests, "--output-path", archive, "--no-environment"]
    subprocess.run(make, cwd=folder, env=environment, check=True, capture_output=True)
    checks = {f"test_{exercise.name}": exercise.name for exercise in lecture.exercises}
    seconds, found = 0.0, {}
    for student in sorted((course / "submitted").iterdir()):
        notebook = nbformat.read(project.notebook_path(student, lecture.name), as_version=4)
        for cell in notebook.cells:
            if cell.id in checks:  # Otter runs the check itself, here
                cell.source, cell.metadata["otter"] = "", {"tests": [checks[cell.id]]}
        path = folder / f"{student.name}.ipynb"
        build.write_notebook(notebook, path)
        grade = [command, "run", path, "--autograder", archive, "--output-dir", folder, "--no-logo"]
        began = time.perf_counter()
        ran = subprocess.run(grade, cwd=folder, env=environment, capture_output=True, text=True)
        seconds += time.perf_counter() - began
        if ran.returncode:
            sys.exit(f"otter run failed:\n{ran.stderr[-3000:]}")
        result = json.loads((folder / "results.json").read_text(encoding="utf-8"))
        found[student.name] = float(sum(test.get("score", 0) for test in result["tests"]))
    return seconds, found


def floor(lecture: source.Lecture, students: int) -> float:
    """Seconds that one submission's answers and tests alone take in this process; the first isn't timed."""
    seconds = []
    for student in range(students + 1):
        began = time.perf_counter()
        names: dict[str, Any] = {"__name__": "__main__"}
        for exercise in lecture.exercises:
            for text in (exercise.setup, answers_of(lecture, student)[exercise.name], exercise.tests):
                with contextlib.suppress(Exception), contextlib.redirect_stdout(None):
                    exec(compile(text, exercise.name, "exec"), names)
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds[1:])


def measure(
    say: Callable[[str], None],
    rounds: int = 3,
    students: int = 3,
    many: int = 100,
    workers: int = 2,
    lecture: str = "01_tensors",
) -> Iterator[dict[str, Any]]:
    """Seconds per submission for each tool, round by round, and their ratios."""
    command = otter_command(say)
    read = source.read(project.SOLUTIONS / f"{lecture}.py")
    least = floor(read, 10)
    stock = ("nbgrader", "autograde", lecture)
    side = f"{workers} × nbgrader autograde"
    one, several = "course grade, 1 worker", f"course grade, {workers} workers"
    tools: dict[str, list[float]] = {}
    steady: dict[str, list[float]] = {one: [], several: []}
    mixed: list[float] = []
    memory: list[float] = []

    def grade(count: int) -> tuple[str, ...]:
        return ("autograder.cli", "grade", ".", lecture, "--workers", str(count))

    def keep(tool: str, seconds: float) -> None:
        tools.setdefault(tool, []).append(seconds)
        say(f"{tool}: {seconds:.3f} s a submission")

    for number in range(rounds):
        say(f"round {number + 1} of {rounds}")
        with tempfile.TemporaryDirectory() as scratch:

            def make(title: str, students: int, hostile: float = 0.0, scratch: str = scratch) -> Path:
                course = Path(scratch, title)
                (found,) = build.course_directory(course, [project.SOLUTIONS / f"{lecture}.py"])
                build.release(course, lecture)
                make_class(course, found, students, hostile)
                return course

            def make_stock(title: str, make: Callable[[str, int], Path] = make) -> Path:
                course = make(title, students)
                shutil.rmtree(course / "release")
                run([(course, ("nbgrader", "generate_assignment", lecture))], lecture)
                return course

            theirs = make_stock("stock")
            keep("nbgrader autograde", run([(theirs, stock)], lecture).each)
            wanted = points(theirs, lecture)
            copies = [make_stock(f"stock{copy}") for copy in range(workers)]
            keep(side, run([(course, stock) for course in copies], lecture).each)
            seconds, got = otter(command, theirs, read, Path(scratch, "otter"))
            keep("otter run", seconds / students)
            if got != wanted:
                sys.exit(f"Otter's points differ from nbgrader's: {got} and {wanted}")
            for title, count in ((one, 1), (several, workers)):
                course = make(title, many)
                ran = run([(course, grade(count))], lecture)
                keep(title, ran.each)
                steady[title].append(ran.steady)
                found = points(course, lecture)
                if {student: found[student] for student in wanted} != wanted:
                    sys.exit(f"the points differ: {found} and {wanted}")
                if title == one:
                    sizes = [size for at, size in ran.memory if ran.written[0] < at < ran.written[-1]]
                    memory.append(statistics.median(sizes))
            mixed.append(run([(make("mixed", many, 0.1), grade(workers))], lecture).each)
        yield {
            "lecture": lecture,
            "exercises": len(read.exercises),
            "students": students,
            "many": many,
            "workers": workers,
            "seconds a submission": {tool: spread(seconds) for tool, seconds in tools.items()},
            "floor": least,
            "ratios": {
                f"{one} / nbgrader": ratios(tools["nbgrader autograde"], tools[one]),
                f"{one} / Otter": ratios(tools["otter run"], tools[one]),
                f"{several} / {workers} nbgraders": ratios(tools[side], tools[several]),
                f"{workers} workers / 1, once running": ratios(steady[several], steady[one]),
                "time with 1 in 10 hostile / all honest": ratios(mixed, tools[several]),
            },
            "a second, once running": {title: spread(rates) for title, rates in steady.items()},
            "memory": statistics.median(memory),
        }


def rows(found: dict[str, Any]) -> list[list[str]]:
    least = found["floor"]
    table = [["", "seconds per submission", "relative to the floor", "submissions per second, once running"]]
    for tool, seconds in found["seconds a submission"].items():
        steady = found["a second, once running"].get(tool)
        rate = f"{steady['median']:.2f}" if steady else ""
        table.append([tool, ranged(seconds, ".3f"), f"{seconds['median'] / least:.1f} ×", rate])
    table.append(["floor: answers and tests alone", f"{least:.3f}", "1", ""])
    table += [[name, times(ratio), "", ""] for name, ratio in found["ratios"].items()]
    return table


def draw(found: dict[str, Any]) -> Figure:
    ratio = found["ratios"]["course grade, 1 worker / nbgrader"]
    return dots(
        found["seconds a submission"],
        unit="s",
        xlabel="seconds a submission, from the start of the command to the last grade",
        title=f"A class of {found['many']} costs {times(ratio, 2).split(' (')[0].removesuffix(' ×')} times less than "
        "with nbgrader, and is graded in sandboxes",
        line=("floor", found["floor"]),
    )

"""`course grade` beside `nbgrader autograde`: the same honest class of a real lecture, on this machine, in one run.

Run: python benchmarks/grading.py

Both grade copies of the same course directory, as commands, from their start to a finished gradebook, and take turns;
`course grade` also grades a larger class, since its start (importing torch twice, a cluster, a sandbox) is paid
once. Prints submissions a second, and the ratios. Every student's points must be the same both ways.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from nbgrader.api import Gradebook

from autograder import bank, build, source


def make_class(course: Path, lecture: source.Lecture, students: int) -> None:
    """Hand in the reference, with an unusual right answer or a common mistake in some exercises."""
    for student in range(students):
        notebook = nbformat.read(build.notebook_path(course / "release", lecture.name), as_version=4)
        for number, exercise in enumerate(lecture.exercises):
            answers = bank.read_bank(bank.bank_path(build.ANSWERS, lecture.name, exercise.name))
            others = [answer.code for answer in answers if answer.kind in ("right", "wrong")]
            text = exercise.solution if (student + number) % 3 else others[(student + number) % len(others)]
            for cell in notebook.cells:
                if cell.id == exercise.name:
                    cell.source = text
        path = build.notebook_path(course / "submitted" / f"student{student:04d}", lecture.name)
        path.parent.mkdir(parents=True)
        nbformat.write(notebook, path)


def timed(course: Path, *command: str) -> float:
    """Seconds that a command takes, to its end."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    start = time.perf_counter()
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(build.ROOT)}
    ran = subprocess.run([sys.executable, "-m", *command], cwd=course, env=environment, capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}")
    return time.perf_counter() - start


def points(course: Path, lecture: str) -> dict[str, float]:
    """Each student's points, from the gradebook."""
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as book:
        return {one.student.id: one.score for one in book.assignment_submissions(lecture)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lecture", default="01_tensors", help="default 01_tensors")
    parser.add_argument("--students", type=int, default=4, help="graded by both (default 4)")
    parser.add_argument("--many", type=int, default=100, help="graded by `course grade` besides (default 100)")
    parser.add_argument("--workers", type=int, default=1, help="of `course grade` (default 1, as nbgrader has)")
    options = parser.parse_args()
    if min(options.students, options.many, options.workers) < 1:
        parser.error("numbers of students and workers are 1 or more")
    name = options.lecture
    ours = ("autograder.cli", "grade", ".", name, "--workers", str(options.workers))
    with tempfile.TemporaryDirectory() as scratch:
        stock, small, large = (Path(scratch, part) for part in ("stock", "small", "large"))
        for course, students in ((stock, options.students), (small, options.students), (large, options.many)):
            (lecture,) = build.course_directory(course, [build.SOLUTIONS / f"{name}.py"])
            build.release(course, name)
            make_class(course, lecture, students)
        shutil.rmtree(stock / "release")
        timed(stock, "nbgrader", "generate_assignment", name)
        rates = {}
        for label, course, students, command in (
            ("nbgrader autograde", stock, options.students, ("nbgrader", "autograde", name)),
            ("course grade", small, options.students, ours),
            ("course grade", large, options.many, ours),
        ):
            seconds = timed(course, *command)
            rates[course] = students / seconds
            print(f"{label:20}{students:6} submissions{seconds:9.1f} s{rates[course]:9.3f} a second", flush=True)
        if (theirs := points(stock, name)) != (same := points(small, name)):
            sys.exit(f"the points differ: {theirs} and {same}")
    print(f"course grade / nbgrader autograde: {rates[small] / rates[stock]:.1f} × on the same {options.students}, "
          f"{rates[large] / rates[stock]:.1f} × with {options.many}")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())

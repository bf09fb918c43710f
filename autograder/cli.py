"""The instructor's command: ``course --help``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from . import bank, build, mutants, source, submission
from . import coverage as coverage_table

app = typer.Typer(
    help="Build the course's notebooks, check its exercises, and prepare releases and classes.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
console = Console()


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Turn the errors that a person can mend into a message; leave the others as they are."""
    try:
        yield
    except (source.SourceError, bank.BankError, build.BuildError, FileNotFoundError, OSError) as error:
        print(f"course: {error}", file=sys.stderr)
        raise typer.Exit(1) from None


@app.command()
def notebooks() -> None:
    """Build instructor notebooks (build/source/) and students' notebooks (notebooks/) from solutions/."""
    with _plain_errors():
        for path in build.students_notebooks(progress=lambda name: console.print(f"building {name}")):
            console.print(f"  {path.relative_to(build.ROOT)}")


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="The class's own folder; submissions and grades will live in it.")],
) -> None:
    """Make an nbgrader course directory for a class. Safe to repeat: only source/ is written again."""
    with _plain_errors():
        for lecture in build.course_directory(folder):
            console.print(f"{folder}/source/{lecture.name}")
    console.print(
        f"Next, in {folder}:\n  nbgrader generate_assignment 01_tensors     (once per assignment)\n"
        "  put submissions into submitted/STUDENT/01_tensors/01_tensors.ipynb\n"
        "  nbgrader autograde 01_tensors\n  nbgrader generate_feedback 01_tensors\n  nbgrader export"
    )


@app.command()
def check(
    lecture: Annotated[str, typer.Argument(help="A lecture's name, as 01_tensors; all of them if left out.")] = "",
    exercise: Annotated[str, typer.Argument(help="One exercise of it; all of them if left out.")] = "",
) -> None:
    """Check exercises: reference, stub, answer bank and mutants. Exit 1 if a test lets a wrong answer through."""
    with _plain_errors():
        paths = [build.SOLUTIONS / f"{lecture}.py"] if lecture else source.lectures(build.SOLUTIONS)
        chosen = [
            (path.stem, found)
            for path in paths
            for found in source.read(path).exercises
            if exercise in ("", found.name)
        ]
        if not chosen:
            raise FileNotFoundError(f"no exercise {exercise!r} in {lecture or 'solutions/'}")
        table = Table("lecture", "exercise", "points", "wrong", "right", "mutants rejected", "problems")
        found_problems: list[str] = []
        for name, found in track(chosen, "checking", console=console, transient=True):
            answers = bank.read_bank(bank.bank_path(build.ANSWERS, name, found.name))
            problems = bank.problems(found, answers)
            report = mutants.run_mutants(found, answers)
            problems += report.problems
            found_problems += [f"{name} {found.name}: {problem}" for problem in problems]
            counts = [str(sum(a.kind == kind for a in answers)) for kind in ("wrong", "right")]
            share = f"{report.rejected:.0%} of {report.total - report.equivalent}"
            table.add_row(name, found.name, f"{found.points:g}", *counts, share, str(len(problems)))
        console.print(table)
        for problem in found_problems:
            console.print(f"• {problem}", markup=False, highlight=False)
    if found_problems:
        raise typer.Exit(1)


@app.command()
def coverage() -> None:
    """Write docs/coverage.md: which cell proves which item of the course. Exit 1 where an item is shown nowhere."""
    with _plain_errors():
        items = coverage_table.wanted(build.ITEMS)
        lectures = [source.read(path) for path in source.lectures(build.SOLUTIONS)]
        build.COVERAGE.write_text(coverage_table.page(items, lectures), encoding="utf-8")
    for problem in (found := coverage_table.problems(items, lectures)):
        console.print(f"• {problem}", markup=False, highlight=False)
    console.print(f"{build.COVERAGE.relative_to(build.ROOT)}: {len(found)} problems")
    if found:
        raise typer.Exit(1)


@app.command()
def verify(
    folder: Annotated[Path, typer.Argument(help="The course directory that holds submitted/.")],
    lecture: Annotated[str, typer.Argument(help="The assignment, as 01_tensors.")],
) -> None:
    """Look through submissions before `nbgrader autograde`: which are broken, how, and what to do. Changes nothing."""
    with _plain_errors():
        read = submission.submissions(folder, source.read(build.SOLUTIONS / f"{lecture}.py"))
    findings = [finding for one in read for finding in one.findings]
    for finding in findings:
        console.print(f"{finding}", markup=False, highlight=False)
    console.print(f"{len(read)} submissions, {len({f.path for f in findings})} of them want a look")
    if findings:
        raise typer.Exit(1)


@app.command()
def release(
    folder: Annotated[
        Path | None, typer.Argument(help="Where to put the folder and its zip; build/ if left out.")
    ] = None,
) -> None:
    """Make what students get: a folder and a zip with notebooks, helpers and environment, and no solution."""
    from .release import make_release

    with _plain_errors():
        console.print(f"{make_release(folder or build.BUILD)}")


if __name__ == "__main__":
    app()

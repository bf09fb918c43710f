"""The instructor's command: ``course --help``."""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from . import bank, build, mutants, results, roster, sandbox, source, submission
from . import coverage as coverage_table
from .export import Format

if TYPE_CHECKING:
    from . import engine

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
    except (
        source.SourceError, bank.BankError, build.BuildError, roster.RosterError, sandbox.SandboxError, OSError
    ) as error:  # fmt: skip
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
        "  course grade . 01_tensors"
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


_Course = Annotated[Path, typer.Argument(help="The course directory that holds submitted/ and results/.")]
_Assignment = Annotated[str, typer.Argument(help="The assignment, as 01_tensors.")]
_Roster = Annotated[
    Path | None,
    typer.Option(
        "--roster", help="A CSV file with a column id, for who should hand in; FOLDER/roster.csv if left out."
    ),
]


def _class(
    folder: Path, lecture: str, file: Path | None
) -> tuple[source.Lecture, dict[str, results.Result], dict[str, roster.Student]]:
    students = roster.of(folder, lecture, file)
    return source.read(build.SOLUTIONS / f"{lecture}.py"), results.table(folder, lecture, students), students


def _say_counts(found: dict[str, results.Result]) -> None:
    parts = [f"{count} {state}" for state, count in results.counts(found).items() if count]
    console.print(f"{len(found)} students" + (f": {', '.join(parts)}" if parts else ""), highlight=False)


def _show(path: Path) -> None:
    """Open a page, where there is a screen to see it on."""
    if sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        webbrowser.open(path.resolve().as_uri())


@app.command()
def feedback(folder: _Course, lecture: _Assignment, roster_file: _Roster = None) -> None:
    """Write each student's page, feedback/STUDENT/LECTURE.html: points, own code, what went wrong, a hint.

    Nothing of a hidden test, and nothing of a submission but text. Safe to repeat.
    """
    from . import feedback as pages_of_feedback

    with _plain_errors():
        read, found, _ = _class(folder, lecture, roster_file)
        written = list(
            track(pages_of_feedback.write(folder, read, found), "writing", len(found), console=console, transient=True)
        )
    _say_counts(found)
    console.print(f"{len(written)} pages: {folder}/feedback/STUDENT/{lecture}.html", highlight=False)
    if changed := sum(not page.current for page in written):
        console.print(
            f"{changed} of them are older than the submission, the lecture or the grader: "
            f"`course grade {folder} {lecture}` grades those again, then repeat this",
            highlight=False,
        )


@app.command()
def report(
    folder: _Course,
    lecture: _Assignment,
    roster_file: _Roster = None,
    show: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
) -> None:
    """Write reports/LECTURE.html on how the class did: pictures, who wants a look, everybody. Safe to repeat."""
    from . import report as page_of_report

    with _plain_errors():
        read, found, _ = _class(folder, lecture, roster_file)
        path = page_of_report.write(folder, read, found)
    _say_counts(found)
    console.print(f"{path}", highlight=False, soft_wrap=True)
    if show:
        _show(path)


@app.command()
def export(
    folder: _Course,
    lecture: _Assignment,
    formats: Annotated[
        list[Format] | None,
        typer.Option("--format", help="csv: points; questions: points by exercise; canvas, moodle: what they import."),
    ] = None,
    roster_file: _Roster = None,
) -> None:
    """Write grades into exports/ (all formats unless some are named). Who has no points has an empty grade, never 0."""
    from . import export as exports

    with _plain_errors():
        read, found, students = _class(folder, lecture, roster_file)
        written = exports.write(folder, read, found, students, formats or list(Format))
    _say_counts(found)
    for path in written:
        console.print(f"{path}", highlight=False, soft_wrap=True)


@app.command()
def demo(
    folder: Annotated[
        Path | None, typer.Argument(help="An empty folder or a demo's own; build/demo if left out.")
    ] = None,
    lecture: Annotated[str, typer.Option(help="The lecture that the class handed in.")] = "01_tensors",
    students: Annotated[int, typer.Option(min=1, max=1000, help="How many there are in the class.")] = 24,
    seed: Annotated[int, typer.Option(help="Another number makes another class.")] = 0,
    unsafe: Annotated[
        bool, typer.Option("--unsafe", help="Grade without isolation, where bubblewrap is not to be had.")
    ] = False,
) -> None:
    """Show it all on a made-up class: grade it, write feedback and exports, open the report. Safe to repeat."""
    from . import demo as made_up
    from . import export as exports
    from . import feedback as pages_of_feedback
    from . import report as page_of_report

    folder = folder or build.BUILD / "demo"
    with _plain_errors():
        made_up.make_class(folder, build.SOLUTIONS / f"{lecture}.py", students, seed)
        read, _, known = _class(folder, lecture, None)
        total = made_up.handed_in(folder, read)
        for _ in track(made_up.grade(folder, read, unsafe=unsafe), "grading", total, console=console):
            pass
        found = results.table(folder, lecture, known)
        written = list(pages_of_feedback.write(folder, read, found))
        exports.write(folder, read, found, known)
        path = page_of_report.write(folder, read, found)
    _say_counts(found)
    console.print(f"feedback  {written[0].path} and {len(written) - 1} more", highlight=False, soft_wrap=True)
    console.print(f"exports   {folder / 'exports'}", highlight=False, soft_wrap=True)
    console.print(f"report    {path}", highlight=False, soft_wrap=True)
    _show(path)


@app.command()
def grade(
    folder: Annotated[Path, typer.Argument(help="The course directory that holds submitted/.")],
    lecture: Annotated[str, typer.Argument(help="The assignment, as 01_tensors.")],
    workers: Annotated[
        int | None,
        typer.Option(min=0, help="Processes on this machine; one for each processor if left out, 0 for no Dask."),
    ] = None,
    scheduler: Annotated[
        str, typer.Option(help="A Dask scheduler's address: its workers grade, not this machine.")
    ] = "",
    roster: Annotated[
        Path | None, typer.Option(help="A CSV file with a column id; FOLDER/roster.csv if there is one.")
    ] = None,
    database: Annotated[
        str, typer.Option("--db", help="The gradebook's SQLAlchemy URL; FOLDER/gradebook.db if left out.")
    ] = "",
    again: Annotated[
        bool, typer.Option("--again", help="Grade those too who have a result for the same work.")
    ] = False,
    unsafe: Annotated[
        bool,
        typer.Option("--unsafe", help="No sandbox: students' code runs as you and may do all that you may."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be graded, and change nothing.")] = False,
) -> None:
    """Grade what is not graded yet, each submission isolated, and bring nbgrader's gradebook up to date.

    Results are files, results/LECTURE/STUDENT.json; stopping this command loses none of them, and running it again
    goes on. Exit 0 if all are graded, 1 if something failed here.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from . import engine, gradebook, sandbox

    columns = (
        TextColumn("grading"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    try:
        if dry_run:
            todo = engine.plan(folder, lecture, again=again, roster=roster)
            for student in todo.wanted:
                console.print(f"would grade {student}", markup=False, highlight=False)
            console.print(
                f"{len(todo.wanted)} to grade, {len(todo.kept)} graded before, {len(todo.absent)} not submitted"
            )
            return
        with _plain_errors(), Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task("starting the workers", total=None)

            def progress(done: int, total: int, latest: results.Result | None) -> None:
                bar.update(task, completed=done, total=total, description=latest.student if latest else "starting")

            summary = engine.grade_class(
                folder, lecture, workers=workers, scheduler=scheduler, unsafe=unsafe, again=again, roster=roster,
                database=database, progress=progress, say=bar.console.print,
            )  # fmt: skip
    except (engine.EngineError, sandbox.SandboxError, gradebook.GradebookError) as error:
        print(f"course: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        print("course: stopped; what was graded is kept, and the same command goes on from there", file=sys.stderr)
        raise typer.Exit(130) from None
    _print_summary(summary)
    if not summary.complete:
        raise typer.Exit(1)


def _print_summary(summary: engine.Summary) -> None:
    from . import results

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    for remark in summary.remarks:
        say(f"• {remark}")
    for result in summary.results.values():
        if result.state in (results.State.NEEDS_REVIEW, results.State.FAILED_HERE):
            say(f"• {result.student}, {result.state}:")
            for note in result.notes:
                say("    " + note.replace("\n", "\n    "))
    table = Table("state", "students")
    for state, count in results.counts(summary.results).items():
        table.add_row(str(state), str(count))
    table.add_section()
    table.add_row("all", str(len(summary.results)))
    console.print(table)
    say(f"{len(summary.graded)} graded now, the others before")
    if summary.gradebook_problem:
        print(f"course: {summary.gradebook_problem}", file=sys.stderr)


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

"""The instructor's command: ``course --help``."""

from __future__ import annotations

import difflib
import os
import re
import secrets
import shlex
import sys
import webbrowser
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.progress import Progress, track
from rich.table import Table
from rich.text import Text

# No module that grades may be imported here: those need Linux, which the other commands don't. Nor may PyTorch, which
# takes seconds.
from autograder import CourseError, project
from autograder.authoring import build
from autograder.authoring import coverage as coverage_table
from autograder.grading import source, submission
from autograder.grading.exercises import ProblemSet
from autograder.grading.marks import Result, State, counts
from autograder.grading.text import NOTES_LIMIT, clean, counted, folded, one_line
from autograder.inside.limits import Limits
from autograder.inside.names import defined
from autograder.locks import locked
from autograder.project import source_path
from autograder.records import attempts, decisions, due, results, roster
from autograder.records.export import Format
from autograder.records.folder import CLASS, CONFIG, SETTINGS, ClassFolder, listed, some

if TYPE_CHECKING:
    from autograder.records.grade import Summary

app = typer.Typer(
    help="Grade a class, and build, check and hand out the lectures. Every command is safe to repeat.",
    epilog="A class: course init, collect, grade, decide, feedback, report, export. Try it: course demo.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
console = Console(emoji=False)  # print ":smile:" in a name or a note as it is


def _say(text: str) -> None:
    """Print text that a submission may have influenced, without interpreting markup in it.

    A terminal wraps long lines, and a wrapped part could pass for a message of ours. So continuation rows are indented,
    and no row is longer than the terminal is wide.
    """
    if not console.is_terminal:
        console.print(text, markup=False, highlight=False, soft_wrap=True)
        return
    for line in clean(text, keep="\n\t").split("\n"):
        indent = min(len(line) - len(line.lstrip()) + 4, console.width // 2)
        for number, row in enumerate(folded(line, console.width - indent)):
            console.print(Text(" " * indent if number else "") + row, soft_wrap=True)


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Print errors that a person can fix as a message; let others through."""
    try:
        yield
    except (CourseError, OSError) as error:
        print(f"course: {error}", file=sys.stderr)
        raise typer.Exit(1) from None


def _known(context: typer.Context, lecture_name: str | None) -> str | None:
    """The name of a lecture of this course or of the class in question, or a usage error that lists them."""
    folder = context.params.get("class_folder") or context.params.get("folder")
    return _one_of(folder, lecture_name, may_have_class="class_folder" in context.params)


def _one_of(folder: Path | None, lecture_name: str | None, *, may_have_class: bool = False) -> str | None:
    """The name of a lecture of this course or of the class in ``folder``, or a usage error that lists them."""
    with _plain_errors():
        paths = source.lectures(project.SOLUTIONS) if folder is None else ClassFolder(folder).lectures
    if lecture_name is not None and lecture_name not in (names := [path.stem for path in paths]):
        more = "; for one of a class's own lectures, add --class FOLDER" if may_have_class and folder is None else ""
        near = difflib.get_close_matches(lecture_name, names, 1, 0.7)
        meant = f"perhaps {near[0]}" if near else f"there are {', '.join(names)}"
        raise typer.BadParameter(f"there is no lecture {lecture_name!r}; {meant}{more}")
    return lecture_name


def _with_settings(folder: Path) -> Path:
    """The folder of a class, or an error if its settings are damaged: every command says so before anything else."""
    with _plain_errors():
        due.read(ClassFolder(folder), "")
    return folder


def _a_class(folder: Path | None) -> Path | None:
    """The folder of a class that exists, or None if none was given."""
    if folder is not None:
        with _plain_errors():
            ClassFolder(folder).require()
        _with_settings(folder)
    return folder


_Folder = Annotated[
    Path,
    typer.Argument(metavar="FOLDER", callback=_with_settings, help="The class's folder, as `course init` makes it."),
]
_Assignment = Annotated[str, typer.Argument(metavar="LECTURE", callback=_known, help="Such as 01_tensors.")]
_Roster = Annotated[
    Path | None,
    typer.Option(
        "--roster", metavar="FILE", help="A CSV file with a column id. Default: FOLDER/roster.csv, if it exists."
    ),
]
_Class = Annotated[
    Path | None,
    typer.Option(
        "--class",
        metavar="FOLDER",
        is_eager=True,
        callback=_a_class,
        help="A class that has lectures of its own (see its class.toml).",
    ),
]
_Unsafe = Annotated[
    bool, typer.Option("--unsafe", help="Use no sandbox: students' code runs as you and can do whatever you can.")
]


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The class's folder, outside this repository.")],
    course_id: Annotated[
        str, typer.Option("--course-id", metavar="NAME", help="nbgrader's name for a new class, such as cs336-2026.")
    ] = build.COURSE_ID,
) -> None:
    """Make a folder for a class: an nbgrader course directory.

    Submissions and grades go there. Safe to repeat: source/ is rewritten, and hidden cases are drawn for exercises that
    have changed.
    """
    with _plain_errors():
        _require_room(course := ClassFolder(_with_settings(folder)))
        if course.roster.exists():
            roster.read(course.roster)  # raises if it's damaged
        paths = course.lectures
        build.require_current(map(source.read, paths))
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / ".init.lock", lambda: _say(f"waiting until another command has made {folder}")):
            lectures = build.course_directory(folder, paths, seed=None, course_id=course_id)
            for lecture in lectures:
                console.print(f"{folder}/source/{lecture.name}", highlight=False)
            _draw_inputs(course, lectures)
    around, here = folder.resolve().parents, project.ROOT.resolve()
    if here in around and here / "build" not in around:
        _say("• this folder is inside the course's repository: never commit it, since it has grades and hidden inputs")
    if not (course.roster.exists() and (folder / SETTINGS).exists()):
        console.print(
            f"Next, in {folder}:\n  write roster.csv and class.toml             (the students and the due dates; "
            "docs/semester.md shows both)\n"
            "  nbgrader generate_assignment 01_tensors     (if you hand out or grade with nbgrader)\n"
            "  course collect . 01_tensors SOURCE          (or put submissions into "
            "submitted/STUDENT/01_tensors/01_tensors.ipynb)\n"
            "  course grade . 01_tensors"
        )


def _require_room(course: ClassFolder) -> None:
    """Raise :class:`CourseError` if a class can't be made in this folder, because something else is there."""
    if course.root.is_dir():
        if there := course.strange:
            raise CourseError(
                f"{course.root} is not a class's folder, and has other things in it: {listed(there)}\n"
                "  → name a new folder, or an empty one"
            )
    elif course.root.exists():
        raise CourseError(f"{course.root} is not a folder\n  → name a new one for the class")


def _draw_inputs(course: ClassFolder, lectures: list[source.Lecture]) -> None:
    """Draw a class's own hidden inputs: all of them for a new class, those of changed exercises otherwise."""
    if new := not (course.root / CLASS).exists() and not course.results.exists():
        course.draw(secrets.randbits(63))
        console.print(f"{course.root / CLASS}: the seed of this class's hidden inputs; keep it from students")
    total = sum(len(lecture.exercises) for lecture in lectures)
    drawn: list[str] = []
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("Drawing this class's hidden inputs", total=total)
        for lecture in lectures:
            for name in build.draw_hidden(course.root, lecture, course.seed):
                drawn.append(f"{lecture.name} {name}")
                bar.advance(task)
    if not new:
        _say(f"Hidden inputs drawn: {', '.join(drawn) or 'none, since no exercise has changed'}")


@app.command()
def verify(folder: _Folder, lecture_name: _Assignment, roster_file: _Roster = None) -> None:
    """List broken submissions and what's wrong with them.

    Run this before `nbgrader autograde`; `course grade` reports the same, except for submissions that answer nothing.
    Changes nothing and runs no code, so it can't tell whether an answer is right. Exits with 1 if a submission needs
    attention: it's damaged, or answers nothing.
    """
    with _plain_errors():
        course = ClassFolder(folder)
        problems = source.read(course.source(lecture_name)).problems
        students = roster.of(course, lecture_name, roster_file)
        course.require_submissions(lecture_name)
        handed_in = {name: course.read(name, lecture_name) for name in students}
        read, misplaced = [], list[str]()
        for name, each in handed_in.items():
            if not each.nothing:
                read.append(submission.parse(each, problems))
            elif there := course.instead(name, lecture_name):  # a notebook under another name
                problem = f"there is no such notebook; what was handed in is {listed(there)}"
                remedy = f"if the notebook is among it, put it there as {lecture_name}.ipynb; otherwise ask for it"
                finding = submission.Finding(each.path, problem, remedy)
                read.append(submission.Submission(each.path, (), (finding,)))
            elif remark := course.misplaced(name, lecture_name):
                misplaced.append(remark)
        left_out = roster.left_out(course, lecture_name) + misplaced
    remarks: list[str] = []
    wanted = unfinished = 0
    for one in read:
        where, open_ = one_line(str(one.path)), _unanswered(one, problems)
        remarks += map(str, one.findings[:NOTES_LIMIT])  # a notebook may cause a hundred thousand
        if more := len(one.findings[NOTES_LIMIT:]):
            remarks.append(f"{where}: and {more:,} more problems")
        nothing = len(open_) == len(problems.exercises) + len(problems.questions)
        if nothing and one.cells:  # a file that can't be read has been reported above
            remarks.append(f"{where}: it has no answer at all\n  → ask whether it's the right file")
        elif open_ and one.cells:
            remarks.append(f"{where}: no answer to {', '.join(open_)}")
        wanted += bool(one.findings or nothing)
        unfinished += bool(open_)
    for remark in [*remarks, *left_out]:
        _say(remark)
    _say(
        f"{counted(len(read), 'submission')}: {wanted} to look at, {unfinished} with unanswered exercises. No code "
        "was run, so none of the answers is known to be right: `course grade` says what they earn"
    )
    if wanted or left_out:
        raise typer.Exit(1)


def _unanswered(one: submission.Submission, problems: ProblemSet) -> list[str]:
    """The exercises that no cell can answer, and the questions whose cells are unchanged or missing.

    A cell can answer an exercise if it was changed and mentions a name that the solution defines, other than in a call.
    Only its text is searched, because parsing a student's code could keep this process busy or crash it.
    """
    ours = {cell.plain.strip() for cell in problems.cells}
    texts = [cell.text for cell in one.cells if cell.plain.strip() not in ours and not cell.name.startswith("test_")]
    answers = one.answers(problems)
    open_ = []
    for exercise in problems.exercises:
        names = "|".join(sorted(defined(exercise.solution)))
        pattern = re.compile(rf"\b(?:def|class)\s+(?:{names})\b|\b(?:{names})\b(?!\s*\()")
        if not any(map(pattern.search, texts)):
            open_.append(exercise.name)
    for each in problems.questions:  # a task can be answered in any cell
        if not each.task and answers.get(each.name, each.text).strip() == each.text.strip():
            open_.append(each.name)
    return open_


@app.command()
def collect(
    folder: _Folder,
    lecture_name: _Assignment,
    source_of: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE",
            help="A zip from Canvas or Moodle, a folder of repositories, or nbgrader's exchange (its inbound folder).",
        ),
    ],
    roster_file: _Roster = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be collected; change nothing.")] = False,
) -> None:
    """Take submissions from Canvas, Moodle, GitHub or nbgrader's exchange.

    Keeps every attempt in attempts/ and puts each student's last one into submitted/. Safe to repeat. Exits with 1 if
    something can't be matched to a student, can't be collected, or is another lecture's; everything else is still
    collected.
    """
    from autograder.records import collect as collecting

    with _plain_errors():
        lectures = [path.stem for path in ClassFolder(folder).lectures]
    with _plain_errors(), Progress(console=console, transient=True) as bar:
        task = bar.add_task("collecting", total=None)
        found = collecting.collect(
            ClassFolder(folder), lecture_name, source_of, lectures, file=roster_file, dry_run=dry_run,
            progress=lambda done, total: bar.update(task, completed=done, total=total), say=_say,
        )  # fmt: skip
    if dry_run:
        for student, attempt in found.new:
            late = ", late" if attempt.late else ""
            what = "would collect" if attempt.notebook else "would store the names of what was handed in by"
            _say(f"{what} {student}, attempt {attempt.number}: {attempt.name}{late}")
    for remark in found.remarks:
        _say(f"• {remark}")
    for failed in (*found.failed, *found.elsewhere):
        _say(f"• not collected: {failed}")
    for unmatched in found.unmatched:
        _say(f"• not matched: {unmatched}")
    students = counted(len({student for student, _ in found.new}), "student")
    _say(
        f"{counted(len(found.new), 'new attempt')} of {students}, "
        f"{found.known} collected before, {len(found.unmatched)} not matched; "
        f"nothing found for {counted(len(found.missing), 'student')}"
    )
    for other in sorted(found.others):
        _say(f"  → `course collect {folder} {other} {shlex.quote(str(source_of))}` collects what is for {other}")
    for sentence in collecting.advice(found.strangers, roster_file or folder / "roster.csv"):
        _say(sentence)
    if found.unmatched or found.failed or found.elsewhere:
        raise typer.Exit(1)


def _class(
    folder: ClassFolder, lecture_name: str, file: Path | None
) -> tuple[source.Lecture, dict[str, Result], dict[str, roster.Student]]:
    """The lecture, each student's result after decisions and due dates, and the students themselves."""
    folder.require()
    students = roster.of(folder, lecture_name, file)
    lecture = source.read(folder.source(lecture_name))
    _take_over(folder, lecture)
    for remark in roster.left_out(folder, lecture_name):
        _say(f"• {remark}")
    rules = due.read(folder, lecture_name)
    found = due.table(folder, lecture_name, decisions.table(folder, lecture_name, students), students, rules)
    if rules.best:
        with suppress(ImportError):  # on Windows, where nothing can be graded
            from autograder.records import best

            if more := best.waiting(folder, folder.problems(lecture), students):
                several = "1 attempt isn't" if more == 1 else f"{more} attempts aren't"
                _say(f"• {several} graded yet, but the best one counts: run `course grade {folder} {lecture_name}`")
    elif early := [name for name, one in found.items() if one.number != one.last and not one.unread]:
        _say(
            f"• these points are of an earlier attempt, not the last one: {some(early)}: "
            f"`course grade {folder} {lecture_name}` says how to change that"
        )
    if not found:
        _say(
            f"• nobody is on the roster, and nobody has handed in or been graded, so there is nothing of {lecture_name}"
        )
    worth = {part.name: part.points for part in lecture.parts}
    if old := [n for n, one in found.items() if one.marks and {m.exercise: m.worth for m in one.marks} != worth]:
        _say(f"• graded before {lecture_name} changed: {some(old)}: run `course grade {folder} {lecture_name}`")
    return lecture, found, students


def _take_over(folder: ClassFolder, lecture: source.Lecture) -> None:
    """Record what people have decided in Formgrader."""
    if folder.has_gradebook:
        from autograder.records import gradebook  # with nbgrader, which takes seconds

        if count := gradebook.take_over(folder, lecture):
            console.print(f"{counted(count, 'decision')} recorded from Formgrader", highlight=False)


def _say_counts(found: dict[str, Result]) -> None:
    parts = [f"{count} {state}" for state, count in counts(found).items() if count]
    console.print(counted(len(found), "student") + (f": {', '.join(parts)}" if parts else ""), highlight=False)


def _show(path: Path) -> None:
    """Open a page in a browser if there's a screen."""
    if sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        webbrowser.open(path.resolve().as_uri())


@app.command()
def grade(
    folder: _Folder,
    lecture_name: _Assignment,
    workers: Annotated[
        int | None,
        typer.Option(
            min=0, help="Worker processes on this machine. Default: one per processor. 0: grade in this process."
        ),
    ] = None,
    scheduler: Annotated[
        str, typer.Option(metavar="ADDRESS", help="A Dask scheduler whose workers grade instead of this machine.")
    ] = "",
    roster_file: _Roster = None,
    database: Annotated[
        str, typer.Option("--db", metavar="URL", help="The gradebook's SQLAlchemy URL. Default: FOLDER/gradebook.db.")
    ] = "",
    again: Annotated[
        bool, typer.Option("--again", help="Also grade students who already have a result for the same work.")
    ] = False,
    seconds: Annotated[
        float,
        typer.Option(
            min=0.1, help="How long one call to a student's code may take; longer if it has to wait for a processor."
        ),
    ] = 5.0,
    unsafe: _Unsafe = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be graded; change nothing.")] = False,
) -> None:
    """Grade what isn't graded yet, each submission in isolation.

    Writes results/LECTURE/STUDENT.json for each submission and updates nbgrader's gradebook. You can stop the command
    at any time and run it again to continue. Exits with 1 if something failed on this machine, or if a folder's name
    can't be a student's.
    """
    with _plain_errors():
        _require_linux()
        roster.of(ClassFolder(folder), lecture_name, roster_file)  # say first if it's damaged, even if nobody handed in
        if dry_run:
            from autograder.records.grade import plan

            todo = plan(ClassFolder(folder), lecture_name, again=again, roster=roster_file)
            for student in todo.wanted:
                _say(f"would grade {student}")
            for remark in todo.remarks:
                _say(f"• {remark}")
            console.print(
                f"{len(todo.wanted)} to grade, {len(todo.kept)} graded before, {len(todo.absent)} not submitted"
            )
            return
        summary = _grade(
            ClassFolder(folder), lecture_name, workers=workers, scheduler=scheduler, unsafe=unsafe, again=again,
            roster=roster_file, database=database, limits=Limits(seconds=seconds),
        )  # fmt: skip
    _print_summary(summary)
    _say_stale(ClassFolder(folder), lecture_name)
    _end(summary)


def _say_stale(course: ClassFolder, lecture_name: str) -> None:
    """Say if an exercise's check was corrected but not built: then grading goes on with the old one."""
    from autograder.authoring import build

    try:
        build.require_current([source.read(course.source(lecture_name))])
    except CourseError as error:
        _say(f"• {error}")


def _require_linux() -> None:
    try:
        import fcntl  # noqa: F401
        import resource  # noqa: F401
    except ImportError as error:
        raise CourseError(
            f"grading needs Linux for its sandbox, and this Python has no module {error.name}\n"
            "  → on Windows, run it in WSL 2; the other commands, and `nbgrader autograde`, work here too"
        ) from None


def _grade(folder: ClassFolder, lecture_name: str, **options: Any) -> Summary:
    """Grade with a progress bar; ``options`` are the engine's."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

    from autograder.records.grade import grade_class

    columns = (
        TextColumn("grading"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
    )
    try:
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task("starting the workers", total=None)

            def progress(done: int, total: int, latest: Result | None) -> None:
                description = folded(one_line(latest.student), 24)[0] if latest else "starting the workers"
                bar.update(task, completed=done, total=total, description=description)

            return grade_class(folder, lecture_name, progress=progress, say=_say, **options)
    except KeyboardInterrupt:
        print("course: stopped; finished results are kept, and the same command continues from there", file=sys.stderr)
        raise typer.Exit(130) from None


def _end(summary: Summary) -> None:
    """Exit with 1 if something is left to do, after saying what."""
    if summary.gradebook_problem:
        print(f"course: {summary.gradebook_problem}", file=sys.stderr)
    if not summary.complete:
        raise typer.Exit(1)


def _print_summary(summary: Summary) -> None:
    for remark in summary.remarks:
        _say(f"• {remark}")
    for result in summary.results.values():
        if result.state in (State.NEEDS_REVIEW, State.FAILED_HERE):
            _say(f"• {result.student}, {result.state}:")
            for note in result.notes:
                _say("    " + note.replace("\n", "\n    "))
        if result.unread:
            _say(f"• {result.student}: {result.unread}: ask for it again")
    table = Table("state", "students")
    for state, count in counts(summary.results).items():
        table.add_row(str(state), str(count))
    table.add_section()
    table.add_row("all", str(len(summary.results)))
    console.print(table)
    _say(f"{len(summary.graded)} graded now")
    if summary.changed:
        names = [f"{one_line(student)} {before:g} → {after:g}" for student, before, after in summary.changed]
        _say(f"The tests changed, and give other points for the same work: {some(names)}")


def _follow(folder: ClassFolder, lecture: source.Lecture, student: str, students: Mapping[str, roster.Student]) -> str:
    """Write a student's decisions into the gradebook, if there is one. Returns why that failed, or ""."""
    if not folder.has_gradebook:
        return ""
    from autograder.records import gradebook

    try:
        gradebook.derive(folder, lecture, results.table(folder, lecture.name, [student]), students=students)
    except gradebook.GradebookError as error:
        return str(error)
    return ""


@app.command()
def decide(
    folder: _Folder,
    lecture_name: _Assignment,
    student: Annotated[
        str, typer.Argument(metavar="STUDENT", help="The name of the student's folder. Several: ada,bob,cy.")
    ],
    exercise: Annotated[
        str, typer.Argument(metavar="EXERCISE", help="Its name in the results. Default: the whole submission.")
    ] = "",
    points: Annotated[
        float | None, typer.Option("--points", metavar="POINTS", help="Points that replace those from the tests.")
    ] = None,
    comment: Annotated[
        str | None, typer.Option("--comment", metavar="TEXT", help='A comment for the student; "" removes it.')
    ] = None,
    reviewed: Annotated[
        bool, typer.Option("--reviewed", help="Finish the review: you've checked what the notes say.")
    ] = False,
    until: Annotated[
        str,
        typer.Option(
            "--until", metavar="DAY", help="The last day on which the student may hand in, such as 2026-11-30."
        ),
    ] = "",
    withdraw: Annotated[
        bool,
        typer.Option(
            "--withdraw", help="Drop the points and the comment; without EXERCISE, a review and an extension, too."
        ),
    ] = False,
    by: Annotated[str, typer.Option("--by", metavar="NAME", help="Who decides. Default: you.")] = "",
    roster_file: _Roster = None,
) -> None:
    """Give points by hand, comment, finish a review, extend.

    Each decision is a record in decisions/LECTURE/STUDENT/ that is never overwritten; grading, feedback, report and
    exports follow it. Points and comments given in Formgrader become such records, too.
    """
    from autograder.records import pages
    from autograder.records import show as show_names

    course = ClassFolder(folder)
    with _plain_errors():
        course.require()
        lecture = source.read(course.source(lecture_name))
        exercise = pages.exercise_named(lecture, exercise)
        worth = {part.name: part.points for part in lecture.parts}
        _take_over(course, lecture)
        students = roster.of(course, lecture_name, roster_file)
        several = {
            given: show_names.named(course, lecture_name, given, students)
            for given in ([student] if student in students else map(str.strip, student.split(",")))
        }
        # Otherwise it's one name with a comma in it: Lovelace, Ada.
        names = several if {*several.values()} & {*students} else {student: student}
        for name in names.values():  # before anything is stored
            if len(names) > 1 and name not in students:
                raise CourseError(roster.unknown(course, lecture_name, name, students.values()))
        until = decisions.day(until)
        rules = due.read(course, lecture_name)
    problems = []
    for given, name in names.items():
        with _plain_errors():
            limit = rules.limit(students[name]) if until and name in students else None
            if limit and limit == rules.limit(students[name], until):
                last = f"{limit - timedelta(seconds=1):%Y-%m-%d}"  # a day's end is the beginning of the next
                raise CourseError(f"{until} is no extension: it is due on {last} anyway\n  → give a later day")
            before, _ = decisions.read(course, lecture_name, name) if name in students else ([], [])
            decisions.decide(
                course, lecture_name, name, exercise, points=points, comment=comment, withdraw=withdraw,
                reviewed=reviewed, until=until, by=by, roster=roster_file,
            )  # fmt: skip
            stands = decisions.apply(course, results.standing(course, lecture_name, name))
            stands = due.table(course, lecture_name, {name: stands}, students, rules)[name]
            problems.append(_follow(course, lecture, name, students))
            other_attempts = (
                (until or points is not None)
                and rules.best
                and (sum(each.notebook for each in attempts.read(course, lecture_name, name)) > 1)
            )
        about = f" for {one_line(exercise)}" if exercise else ""
        stored = [] if points is None else [counted(points, "point")]
        stored += [] if comment is None else ["a comment" if comment else "no comment"]
        said = [f"{', '.join(stored)}{about}"] if stored else []
        said += ["the review is finished"] if reviewed else []
        said = [f"recorded: {'; '.join(said)}"] if said else []
        gave = next((mark.tests for mark in stands.marks if mark.exercise == exercise), None)
        if points is not None and gave not in (None, points):
            said[0] += f", in place of the {gave:g} that the tests gave"
        if points is not None and points > worth.get(exercise, points):
            said.append(f"that's more than {one_line(exercise)} is worth, {counted(worth[exercise], 'point')}")
        if until:
            said.append(f"may hand in until the end of {until}")
        if other_attempts:
            said.append(f"another attempt may count now: run `course grade {folder} {lecture_name}` to find out")
        if withdraw:
            review = not exercise and bool(decisions.finished(before))
            what = _withdrawn(decisions.latest(before).get(exercise), review) or "there was nothing to withdraw"
            said.append(f"{what}{about}")
        for each in said:
            _say(f"• {each}")
        total = "" if stands.points is None else f", {stands.points:g} of {lecture.points:g} points"
        _say(f"{given}: {stands.state}{total}")
        for note in stands.notes if given == name else ():  # notes may contain the name behind the alias
            _say(f"• {note}")
        if stands.notes and stands.points is not None and not (until or withdraw or reviewed):
            done = f"course decide {folder} {lecture_name} {given} --reviewed"
            _say(f"  → once you have checked what the notes say: `{done}`")
    for problem in filter(None, problems):
        print(f"course: recorded, but {problem}", file=sys.stderr)
    if any(problems):
        raise typer.Exit(1)


def _withdrawn(last: decisions.Decision | None, review: bool) -> str:
    """What is withdrawn with this decision, and perhaps a finished review; "" for nothing."""
    if last is None:
        return ""
    what = [counted(last.points, "point")] if last.points is not None else []
    what += ["the comment"] if last.comment else []
    what += ["the review"] if review else []
    what += [f"the extension to {last.until}"] if last.until and not last.exercise else []
    return f"withdrawn: {', '.join(what)}" if what else ""


@app.command()
def show(
    folder: _Folder,
    lecture_name: _Assignment,
    student: Annotated[str, typer.Option("--student", metavar="STUDENT", help="One student, with all answers.")] = "",
    exercise: Annotated[
        str, typer.Option("--exercise", metavar="EXERCISE", help="One exercise, with everybody's answers.")
    ] = "",
    anonymous: Annotated[
        bool, typer.Option("--anonymous", help="Show aliases instead of names; `course decide` accepts them, too.")
    ] = False,
    roster_file: _Roster = None,
) -> None:
    """Print one student's work, or one exercise across the class.

    Without an option, prints everybody's state and points. Changes nothing, except that it records decisions made in
    Formgrader.
    """
    from autograder.records import pages
    from autograder.records import show as shown

    course = ClassFolder(folder)
    with _plain_errors():
        read, found, students = _class(course, lecture_name, roster_file)
        exercise = pages.exercise_named(read, exercise)
        texts = shown.text(course, read, found, students, student=student, exercise=exercise, anonymous=anonymous)
        for text in filter(None, texts):
            _say(text)


@app.command()
def feedback(
    folder: _Folder,
    lecture_name: _Assignment,
    student: Annotated[str, typer.Option("--student", metavar="STUDENT", help="Only this student's page.")] = "",
    roster_file: _Roster = None,
) -> None:
    """Write each student's page: points, code, and what went wrong.

    feedback/STUDENT/LECTURE/LECTURE.html reveals nothing about hidden tests and shows a submission only as text;
    `nbgrader release_feedback` returns it. Safe to repeat. Exits with 1 if a page can't be written; all others still
    are.
    """
    from autograder.records import feedback as pages_of_feedback

    course = ClassFolder(folder)
    with _plain_errors():
        read, found, students = _class(course, lecture_name, roster_file)
        if student:
            if student not in found:
                raise CourseError(roster.unknown(course, lecture_name, student, students.values()))
            found = {student: found[student]}
        written = list(
            track(
                pages_of_feedback.write(course, read, found, students),
                "writing",
                len(found),
                console=console,
                transient=True,
            )
        )
    _say_counts(found)
    problems = [page.problem for page in written if page.problem]
    for problem in problems:
        _say(f"• {problem}")
    count = len(written) - len(problems)
    _say(f"{counted(count, 'page')}: {course.feedback('STUDENT', lecture_name)}")
    if changed := sum(not page.current for page in written):
        console.print(
            f"{changed} of them show results older than the submission, the lecture or the grader: "
            f"run `course grade {folder} {lecture_name}`, then this command again",
            highlight=False,
        )
    if problems:
        raise typer.Exit(1)


@app.command()
def interview(
    folder: _Folder,
    lecture_name: _Assignment,
    student: Annotated[str, typer.Option("--student", metavar="STUDENT", help="Only this student.")] = "",
    roster_file: _Roster = None,
) -> None:
    """Write three questions about each student's own work.

    interviews/LECTURE.html (LECTURE.STUDENT.html for one student) has questions for a two-minute conversation, about
    mistakes, code and predictions, and lists identical answers and files that deserve a look. Safe to repeat; the same
    work gets the same questions.
    """
    from autograder.records import interview as interviews

    course = ClassFolder(folder)
    with _plain_errors():
        read, found, students = _class(course, lecture_name, roster_file)
        if student and student not in found:
            raise CourseError(roster.unknown(course, lecture_name, student, students.values()))
        if student and found[student].points is None:
            raise CourseError(
                f"{one_line(student)} has no points in {lecture_name} to talk about: {found[student].state}\n"
                f"  → `course show {course} {lecture_name} --student {one_line(student)}` says why"
            )
        path, count, equal = interviews.write(course, read, found, student, students)
    console.print(
        f"{path}: questions for {counted(count, 'student')}; {counted(len(equal), 'group')} of identical answers or "
        f"files {'deserves' if len(equal) == 1 else 'deserve'} a look",
        highlight=False,
        soft_wrap=True,
    )


@app.command()
def report(
    folder: _Folder,
    lecture_name: _Assignment,
    roster_file: _Roster = None,
    show: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
) -> None:
    """Write a report on how the class did.

    reports/LECTURE.html has figures, the submissions that need attention, and all students. Safe to repeat.
    """
    from autograder.records import report as page_of_report

    course = ClassFolder(folder)
    with _plain_errors():
        read, found, students = _class(course, lecture_name, roster_file)
        path = page_of_report.write(course, read, found, students)
    _say_counts(found)
    console.print(f"{path}", highlight=False, soft_wrap=True)
    if show:
        _show(path)


@app.command()
def export(
    folder: _Folder,
    lecture_name: _Assignment,
    formats: Annotated[
        list[Format] | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="csv, json, questions (points by exercise), canvas or moodle; may be repeated.",
        ),
    ] = None,
    title: Annotated[
        str,
        typer.Option(
            "--title",
            metavar="TITLE",
            help="The assignment's title in Canvas or Moodle, such as 'Tensors (4711)'. Default: LECTURE.",
        ),
    ] = "",
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            metavar="FILE",
            help="A gradebook downloaded from Canvas or Moodle: say what an import would change; write nothing.",
        ),
    ] = None,
    roster_file: _Roster = None,
) -> None:
    """Write grades as CSV, JSON, for Canvas and for Moodle.

    Writes all formats, or those you name, into exports/. Students without points get an empty grade, never 0; the files
    for Canvas and Moodle contain only final grades of students on the roster. Safe to repeat. With --against, exits
    with 1 if an import would not do what you expect.
    """
    from autograder.records import export as exports
    from autograder.records import lms

    course, wanted = ClassFolder(folder), formats or list(Format)
    systems = [each.capitalize() for each in (Format.CANVAS, Format.MOODLE) if each in wanted]
    with _plain_errors():
        read, found, students = _class(course, lecture_name, roster_file)
        if against is not None:
            compared = lms.compare(against, read, found, students, title)
            systems = [compared.system]
        else:
            written = exports.write(course, read, found, students, wanted, title)
    _say_counts(found)
    if against is None:
        for path in written:
            console.print(f"{path}", markup=False, highlight=False, soft_wrap=True)
    else:
        for student, before, after in compared.changes:
            _say(f"{one_line(student)}: {one_line(before)} → {after}")
        for problem in compared.problems:
            _say(f"• {problem}")
        changes = counted(len(compared.changes), "grade")
        _say(f"{compared.system} would change {changes} and keep {compared.same}; no changes made")
    if systems:
        left_out = lms.left_out(found, students)
        reasons = ", ".join(f"{len(names)} {reason} ({some(names)})" for reason, names in left_out.items())
        final = counted(len(lms.final(found, students)), "student")
        _say(f"{' and '.join(systems)}: {final}" + (reasons and f"; left out: {reasons}"))
    if against is not None and compared.problems:
        raise typer.Exit(1)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def formgrader(folder: _Folder, arguments: typer.Context) -> None:
    """Give points by hand, in nbgrader's Formgrader.

    Starts JupyterLab in FOLDER with the Formgrader extension, which is disabled for students, and opens it in a
    browser. Options after FOLDER are passed to JupyterLab, for instance --no-browser or --port 8890.
    """
    with _plain_errors():
        ClassFolder(folder).require()
        if not (folder / CONFIG).is_file():  # nbgrader takes the folder that it is started in as the class
            raise CourseError(f"{folder} is not a class folder\n  → `course init {folder}` makes it one")
        from jupyterlab.labapp import LabApp

        settings = [str(Path(__file__).with_name("jupyter")), os.environ.get("JUPYTER_CONFIG_PATH", "")]
        os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(filter(None, settings))
        os.chdir(folder)
    LabApp.launch_instance(["--ServerApp.root_dir=.", "--LabApp.default_url=/formgrader", *arguments.args])


@app.command()
def hub(
    folder: _Folder,
    place: Annotated[Path, typer.Argument(metavar="PLACE", help="The hub's own folder, such as /srv/hub.")],
    environment: Annotated[
        Path | None,
        typer.Option("--environment", metavar="ENV", help="The students' environment, such as /opt/course-env."),
    ] = None,
    graders: Annotated[
        list[str] | None, typer.Option("--grader", metavar="USER", help="Who may grade; may be repeated.")
    ] = None,
    exchange: Annotated[
        Path, typer.Option("--exchange", metavar="FOLDER", help="Where nbgrader exchanges assignments.")
    ] = Path("/srv/nbgrader/exchange"),
    memory: Annotated[str, typer.Option("--memory", help="The most memory that one student's server may use.")] = "4G",
    cpus: Annotated[float, typer.Option("--cpus", min=0.1, help="The most processors that it may use.")] = 2.0,
    kubernetes: Annotated[
        bool, typer.Option("--kubernetes", help="Write only PLACE/values.yaml, for Zero to JupyterHub.")
    ] = False,
) -> None:
    """Write the settings of a JupyterHub for a class.

    PLACE/jupyterhub_config.py is written once and then yours to edit; everything else is rewritten. Opens nbgrader's
    exchange and tests, as two students, what they can read. Run it as root, and again when the roster changes. Exits
    with 1 if something has to be fixed first.
    """
    from autograder.records import hub as hubs

    if environment is None and not kubernetes:
        raise typer.BadParameter("name the students' environment with --environment ENV")
    with _plain_errors():
        made = hubs.of(
            ClassFolder(folder), place, account="grader" if kubernetes else "", graders=graders or [],
            environment=environment or Path(sys.prefix), exchange=exchange, memory=memory, cpus=cpus,
        )  # fmt: skip
        for path in [hubs.write_values(made)] if kubernetes else hubs.write(made):
            console.print(f"{path}", highlight=False, soft_wrap=True)
        problems = [] if kubernetes else list(hubs.problems(made))
    for problem in problems:
        console.print(f"• {problem}", markup=False, highlight=False, soft_wrap=True)
    console.print(
        f"{made.course_id}: {len(made.students)} students, and {len(made.graders)} graders who work as "
        f"{made.account}: {len(problems)} problems",
        highlight=False,
        soft_wrap=True,
    )
    if problems:
        raise typer.Exit(1)


@app.command()
def demo(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="FOLDER", help="An empty folder, or an earlier demo's. Default: build/demo."),
    ] = None,
    lecture_name: Annotated[
        str, typer.Option("--lecture", metavar="LECTURE", callback=_known, help="The lecture that the class handed in.")
    ] = "01_tensors",
    students: Annotated[int, typer.Option(min=1, max=1000, help="The size of the class.")] = 24,
    seed: Annotated[int, typer.Option(help="A different number makes a different class.")] = 0,
    semester: Annotated[
        bool,
        typer.Option("--semester", help="Make a semester of five lectures instead. Default folder: build/semester."),
    ] = False,
    unsafe: _Unsafe = False,
) -> None:
    """Show everything with a made-up class.

    Creates the class, grades it, writes feedback and exports, and opens the report. Safe to repeat. With --semester,
    exits with 1 if any student's points differ from the plan.
    """
    folder = folder or project.BUILD / ("semester" if semester else "demo")
    if semester:
        _semester(folder, students, seed, unsafe)
        return
    with _plain_errors():
        _require_linux()
        from autograder import demo as made_up
        from autograder.records import export as exports
        from autograder.records import feedback as pages_of_feedback
        from autograder.records import report as page_of_report

        course = ClassFolder(folder)
        read = made_up.make_class(folder, source_path(lecture_name), students, seed)
        summary = _grade(course, lecture_name, limits=made_up.LIMITS, unsafe=unsafe)
        known = roster.of(course, lecture_name)
        written = list(pages_of_feedback.write(course, read, summary.results, known))
        exports.write(course, read, summary.results, known)
        path = page_of_report.write(course, read, summary.results, known)
    _say_counts(summary.results)
    console.print(f"feedback  {written[0].path} and {len(written) - 1} more", highlight=False, soft_wrap=True)
    console.print(f"exports   {course.exports}", highlight=False, soft_wrap=True)
    console.print(f"report    {path}", highlight=False, soft_wrap=True)
    console.print(f"gradebook course formgrader {folder}", highlight=False, soft_wrap=True)
    _end(summary)
    _show(path)


def _semester(folder: Path, students: int, seed: int, unsafe: bool) -> None:
    """A made-up semester, with all exports and reports, and a comparison with what was planned."""
    with _plain_errors():
        _require_linux()
        from autograder import demo as made_up
        from autograder import semester
        from autograder.grading import worker
        from autograder.records import export as exports
        from autograder.records import report as page_of_report

        def say(text: str) -> None:
            console.print(text, highlight=False, soft_wrap=True)

        made_up.clear(folder)
        made = semester.make(folder, students, seed)
        # A small class is graded a dozen times here, and before other workers have started.
        options: dict[str, Any] = {"limits": made_up.LIMITS, "unsafe": unsafe, "workers": 0 if students <= 50 else None}
        with worker.kept_box():
            semester.run(made, folder / "handed-in", lambda name: _grade(made.folder, name, **options), say)
        wrong = 0
        for week, lecture in enumerate(made.lectures):
            read, found, known = _class(made.folder, lecture.name, None)
            exports.write(made.folder, read, found, known)
            say(f"{page_of_report.write(made.folder, read, found, known)}")
            for name in made.students:
                points, planned = found[name].points if name in found else None, made.expected(week, name)
                if points != planned and (points is None or planned is None or abs(points - planned) > 1e-6):
                    wrong += 1
                    say(f"• {lecture.name}, {name}: {points} points instead of {planned}")
    say(f"{students} students, {len(made.lectures)} lectures: {wrong} results differ from the plan")
    if wrong:
        raise typer.Exit(1)


def _own(class_folder: Path) -> Path:
    """The folder of a class's own lectures."""
    if (own := ClassFolder(class_folder).own) is not None:
        return own
    settings = class_folder / SETTINGS
    if not settings.exists():
        raise CourseError(f'{settings} is missing\n  → write it, with a line such as exercises = "../our-exercises"')
    raise CourseError(
        f"{settings} names no folder with the class's own lectures\n"
        '  → add a line such as exercises = "../our-exercises"'
    )


@app.command()
def notebooks(class_folder: _Class = None) -> None:
    """Build notebooks, checks, docs/coverage.md and docs/teaching.md from solutions/.

    Writes the instructors' notebooks into build/source/, the students' into notebooks/ and course_utils/checks/. The
    same sources give the same bytes. With --class, builds only the checks of that class's own lectures, next to them.
    """
    with _plain_errors():
        if class_folder:
            own = _own(class_folder)
            build.students_checks(lambda name: console.print(f"trying the reference and the mistakes of {name}"), own)
            console.print(f"{project.checks_of(own)}", highlight=False, soft_wrap=True)
            return
        build.students_checks(progress=lambda name: console.print(f"trying the reference and the mistakes of {name}"))
        lectures = [source.read(path) for path in source.lectures(project.SOLUTIONS)]
        page = coverage_table.page(coverage_table.wanted(project.ITEMS), lectures)
        project.COVERAGE.write_text(page, encoding="utf-8")
        if _write_teaching(lectures):
            console.print("docs/teaching.md was not updated: `course teaching` says why")
        for path in build.students_notebooks(progress=lambda name: console.print(f"building {name}")):
            console.print(f"  {os.path.relpath(path)}", highlight=False, soft_wrap=True)


@app.command()
def check(
    lecture_name: Annotated[
        str | None, typer.Argument(metavar="LECTURE", callback=_known, help="Such as 01_tensors. Default: all of them.")
    ] = None,
    exercise: Annotated[
        str, typer.Argument(metavar="EXERCISE", help="One of its exercises. Default: all of them.")
    ] = "",
    draws: Annotated[int, typer.Option(min=1, help="Inputs drawn for each exercise.")] = 200,
    pairs: Annotated[
        int, typer.Option(min=0, help="Pairs of mistakes, combined in one program, to try for each exercise.")
    ] = 60,
    class_folder: _Class = None,
) -> None:
    """Test the checks with right, wrong and degenerate answers, and mutants.

    Changes nothing. Exits with 1 if a check passes a wrong answer, fails a right one, or names the wrong mistake. With
    more draws than the default, the lectures are also run with other right answers, which no cell may refuse.
    """
    from autograder.authoring import checks, proving
    from autograder.authoring.kernel import execution

    with _plain_errors():
        among = source.lectures(_own(class_folder)) if class_folder else source.lectures(project.SOLUTIONS)
        paths = [path for path in among if lecture_name in (None, path.stem)]
        chosen = [
            (path.stem, cells)
            for path in paths
            for cells in source.read(path, built=False).exercises
            if exercise in ("", cells.name)
        ]
        if not chosen:
            found = [cells.name for path in paths for cells in source.read(path, built=False).exercises]
            named = f" {one_line(exercise)!r}" if exercise else "s"
            remedy = "CONTRIBUTING.md has one to start from"
            if not paths:
                remedy = "for one of the course's own lectures, leave out --class"
            elif found:
                remedy = f"it has {', '.join(found)}"
            raise CourseError(f"no exercise{named} in {lecture_name or 'the lectures'}\n  → {remedy}")
        # Narrow enough for a terminal of 80 columns.
        table = Table(
            "lecture",
            "exercise",
            "pts",
            "rules",
            "programs",
            "mutants",
            "inputs",
            "problems",
            box=SIMPLE,
            padding=(0, 1),
            pad_edge=False,
        )
        problems: list[str] = []
        stale = False
        for name, cells in track(chosen, "checking", console=console, transient=True):
            spec = checks.spec_of(name, cells)
            report = proving.prove(spec, draws, pairs=pairs)
            problems += [f"{name} {cells.name}: {problem}" for problem in report.problems]
            stale |= checks.stale(spec.path, cells)
            counts = [len(spec.promises), report.programs, report.mutants, report.inputs, len(report.problems)]
            table.add_row(name.partition("_")[0], cells.name, f"{spec.points:g}", *map(str, counts))
        console.print(table)
        if draws > proving.DRAWS and not exercise:
            for path in track(paths, "running lectures with other right answers", console=console, transient=True):
                lecture = source.read(path)
                answers = {spec.cells.name: spec.of("right") for spec in checks.specs(lecture)}
                problems += execution.too_strict(lecture, answers)
        for problem in problems:
            console.print(f"• {problem}", markup=False, highlight=False)
        if stale:
            remedy = f"`course notebooks --class {class_folder}`" if class_folder else "`course notebooks`"
            console.print(
                f"The students' files are out of date: run {remedy} and commit what it changes.", soft_wrap=True
            )
    if problems:
        raise typer.Exit(1)


@app.command()
def published() -> None:
    """Write docs/published.md: the planner against published numbers.

    Exits with 1 if a prediction is farther off than its row allows.
    """
    from course_utils.napkin import published as rows

    with _plain_errors():
        project.PUBLISHED.write_text(rows.page(), encoding="utf-8")
    wrong = [row for row in rows.rows() if not row.agrees]
    for row in wrong:
        console.print(
            f"• {row.what}: predicted {row.predict():g}, published {row.published}", markup=False, highlight=False
        )
    console.print(f"{project.PUBLISHED.relative_to(project.ROOT)}: {len(wrong)} problems")
    if wrong:
        raise typer.Exit(1)


@app.command()
def coverage() -> None:
    """Write docs/coverage.md: which cell proves which item.

    Exits with 1 if there is an item that no cell proves.
    """
    with _plain_errors():
        items = coverage_table.wanted(project.ITEMS)
        lectures = _current_lectures()
        project.COVERAGE.write_text(coverage_table.page(items, lectures), encoding="utf-8")
    for problem in (found := coverage_table.problems(items, lectures)):
        console.print(f"• {problem}", markup=False, highlight=False)
    console.print(f"{project.COVERAGE.relative_to(project.ROOT)}: {len(found)} problems")
    if found:
        raise typer.Exit(1)


@app.command()
def teaching() -> None:
    """Write docs/teaching.md: syllabi, mistakes to explain, questions to discuss.

    Exits with 1 if solutions/teaching.toml and the lectures contradict each other.
    """
    with _plain_errors():
        found = _write_teaching(_current_lectures())
    for problem in found:
        console.print(f"• {problem}", markup=False, highlight=False)
    console.print(f"{project.TEACHING.relative_to(project.ROOT)}: {len(found)} problems")
    if found:
        raise typer.Exit(1)


def _current_lectures() -> list[source.Lecture]:
    """The course's lectures. Raises BuildError if a reference isn't the one that its check was made from."""
    lectures = [source.read(path) for path in source.lectures(project.SOLUTIONS)]
    build.require_current(lectures)
    return lectures


def _write_teaching(lectures: Sequence[source.Lecture]) -> list[str]:
    """Write the page, unless something is wrong; return what that is."""
    from autograder.authoring import teaching as kit  # with PyTorch

    topics, by_hand = kit.topics(lectures), kit.read(project.KIT)
    if not (found := kit.problems(by_hand, topics)):
        project.TEACHING.write_text(kit.page(by_hand, topics), encoding="utf-8")
    return found


@app.command()
def release(
    folder: Annotated[Path | None, typer.Argument(metavar="FOLDER", help="Where to put it. Default: build/.")] = None,
    lectures: Annotated[
        list[str] | None,
        typer.Option("--lecture", metavar="LECTURE", help="Only this lecture's notebook; may be repeated."),
    ] = None,
    no_notebooks: Annotated[
        bool, typer.Option("--no-notebooks", help="Leave the notebooks out: a hub hands out lectures separately.")
    ] = False,
    class_folder: _Class = None,
) -> None:
    """Make the students' release, as a folder and a zip.

    It contains notebooks, helper code and environment, but no solutions. The same sources give the same bytes. Replaces
    the release that FOLDER has.
    """
    from autograder.authoring import release as releases

    if no_notebooks and lectures:
        raise typer.BadParameter("--lecture and --no-notebooks contradict each other")
    known = ClassFolder(class_folder or Path())
    names = sorted({*(lectures or ())})
    chosen = [known.source(name) for name in names if _one_of(class_folder, name, may_have_class=True)]
    with _plain_errors():
        own = known.own if class_folder else None
        target = folder or project.BUILD
        before = releases.notebooks(releases.place(target))
        made = releases.make_release(target, chosen if lectures or no_notebooks else None, own)
        inside = releases.notebooks(made)
        console.print(f"{made}", highlight=False, soft_wrap=True)
        console.print(
            f"{made.parent / made.name}.zip: for students, with {_lectures(inside)}", highlight=False, soft_wrap=True
        )
        if before and before != inside:
            _say(f"It replaced the release with {_lectures(before)}; to keep both, name another FOLDER for one of them")
        if class_folder and own is None:
            _say(f"Only the course's lectures are included: {class_folder / SETTINGS} names no folder with others")


def _lectures(names: Sequence[str]) -> str:
    """How many lectures there are, with their names if they're few."""
    return counted(len(names), "lecture") + (f" ({', '.join(names)})" if 0 < len(names) <= 3 else "")


@app.command()
def colab(
    folder: Annotated[
        Path | None, typer.Argument(metavar="FOLDER", help="Where to put them. Default: build/colab.")
    ] = None,
    repository: Annotated[
        str, typer.Option(metavar="OWNER/NAME", envvar="GITHUB_REPOSITORY", help="The public repository on GitHub.")
    ] = "",
    commit: Annotated[
        str, typer.Option(envvar="GITHUB_SHA", help="The commit that Colab fetches. Default: the one checked out here.")
    ] = "",
    archive: Annotated[
        str, typer.Option(metavar="URL", help="A zip to fetch instead of the commit, such as `course release` makes.")
    ] = "",
    lectures: Annotated[
        list[str] | None, typer.Option("--lecture", metavar="LECTURE", help="Only this lecture; may be repeated.")
    ] = None,
) -> None:
    """Make the lectures for Google Colab, and a page with a badge for each.

    They belong on the branch `colab` of the repository, where the badges look for them; a workflow puts them there.
    """
    from autograder.authoring.colab import make_colab

    chosen = [source_path(name) for name in sorted({*(lectures or ())}) if _one_of(None, name)]
    with _plain_errors():
        show = lambda name: console.print(f"building {name}")  # noqa: E731
        page = make_colab(folder or project.BUILD / "colab", repository, commit, archive, chosen, show)
        console.print(f"{page}", highlight=False, soft_wrap=True)


@app.command()
def book(
    folder: Annotated[Path | None, typer.Argument(help="Where to put the site. Default: build/book.")] = None,
    draft: Annotated[
        bool, typer.Option("--draft", help="Also accept measurements that other programs disturbed, and say so.")
    ] = False,
) -> None:
    """Make a web book of the lectures and the project's pages.

    Its timings are measured on this machine, so nothing else should be running; if something is, the command stops and
    says so.
    """
    from autograder.authoring.book import make_book

    with _plain_errors():
        show = lambda name: console.print(f"building {name}")  # noqa: E731
        page = make_book(folder or project.BUILD / "book", progress=show, draft=draft)
        console.print(f"{page}")


if __name__ == "__main__":
    app()

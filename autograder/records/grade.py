"""Grades a class: reads submissions, has them graded if needed, and writes each result as soon as it's known.

Results are files, written only here. If a run is interrupted, the next one continues where it stopped.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from autograder.grading import engine, sandbox, source, worker
from autograder.grading.marks import Result, State
from autograder.grading.submission import HandedIn, digest
from autograder.grading.text import MESSAGE_LIMIT, clean, counted, one_line
from autograder.grading.worker import Done, EngineError, Failed, Graded, Task, unreadable
from autograder.inside.limits import Limits
from autograder.locks import locked
from course_utils.files import remove_partials

from . import autograded, best, decisions, due, results
from . import roster as rosters
from .folder import ClassFolder, concerns_one

Progress = Callable[[int, int, Result | None], None]


@dataclass
class Plan:
    """All students: ``wanted`` need grading, ``kept`` have a result for the same work, ``absent`` handed in nothing."""

    students: dict[str, rosters.Student]
    left_out: list[str] = field(default_factory=list)
    wanted: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Summary:
    """How a run ended: every student's result after decisions and due dates, and who was graded in this run.

    ``changed``: the students to whose unchanged work the tests now give other points, with the old and the new.
    """

    results: dict[str, Result]
    graded: tuple[str, ...]
    remarks: tuple[str, ...] = ()
    gradebook_problem: str = ""
    left_out: tuple[str, ...] = ()
    changed: tuple[tuple[str, float, float], ...] = ()

    @property
    def complete(self) -> bool:
        """Whether nothing failed here, nobody was left out, and the gradebook is up to date."""
        left = (State.FAILED_HERE, State.QUEUED)
        failed = any(result.state in left for result in self.results.values())
        return not (self.gradebook_problem or self.left_out or failed)


def grade_class(
    folder: ClassFolder,
    lecture_name: str,
    *,
    workers: int | None = None,
    scheduler: str = "",
    unsafe: bool = False,
    again: bool = False,
    roster: Path | None = None,
    limits: Limits = Limits(),
    database: str | None = "",
    progress: Progress = lambda done, total, latest: None,
    say: Callable[[str], None] = lambda message: None,
) -> Summary:
    """Grade what isn't graded yet in one lecture, and update the gradebook. Safe to repeat and to interrupt.

    ``workers`` and ``scheduler`` are passed to :func:`autograder.grading.engine.grade_all`; ``again`` also grades
    students who have a result for the same work. ``database``: a SQLAlchemy URL, "" for the folder's own, None for no
    gradebook. ``progress`` gets the number graded in this run, the most there can be, and the latest result; ``say``
    gets what this waits for. Raises :class:`EngineError` or :class:`sandbox.SandboxError` if grading can't continue.
    """
    if not unsafe:
        for place in folder.places(database or ""):
            sandbox.require_hidden(place)
    lecture, rules = _ready(folder, lecture_name)
    with _alone(folder, lecture_name, say), worker.kept_box():
        remarks: list[str] = []
        if rules.best:
            remarks = best.settle(
                folder, folder.problems(lecture), rules, rosters.of(folder, lecture_name, roster), limits,
                again=again, unsafe=unsafe, workers=workers, scheduler=scheduler, progress=progress, say=say,
            )  # fmt: skip
        run = _Run(folder, lecture, roster, again, limits, unsafe, progress)
        run.plan.remarks += remarks
        outcomes = engine.grade_all(run.tasks(), limits, unsafe=unsafe, workers=workers, scheduler=scheduler)
        with contextlib.closing(outcomes):  # end the workers, even if an error stops this
            for task, outcome in outcomes:
                run.finish(*_result(task, outcome))
        problem = ""
        if database is not None:
            from . import gradebook  # imports nbgrader, which takes longer than everything else

            try:
                gradebook.derive(
                    folder, lecture, run.standing, database, students=run.plan.students, rules=rules, say=say
                )
            except gradebook.GradebookError as error:
                problem = str(error)
    plan = run.plan
    standing = {name: decisions.apply(folder, result) for name, result in run.standing.items()}
    standing = due.table(folder, lecture_name, standing, plan.students, rules)
    for name, result in standing.items():
        if not rules.best and result.number != result.last and not result.unread:
            place = folder.attempts(name, lecture_name) / f"{result.last}" / f"{lecture_name}.ipynb"
            there = folder.submission(name, lecture_name)
            which = f"{result.attempt} is graded, not the last one"
            plan.remarks.append(f"{name}: {which}; if you want that graded, copy {place} to {there}")
        if said := due.unclear(folder, lecture_name, name):
            plan.remarks.append(f"{name}: {said}")
    return Summary(standing, tuple(run.graded), tuple(plan.remarks), problem, tuple(plan.left_out), tuple(run.changed))


def plan(folder: ClassFolder, lecture_name: str, *, again: bool = False, roster: Path | None = None) -> Plan:
    """Who would be graded now, without changing anything."""
    lecture, rules = _ready(folder, lecture_name)
    run = _Run(folder, lecture, roster, again)
    for student in run.plan.students:
        run.look(student)
    problems = folder.problems(lecture)
    if rules.best and (more := best.waiting(folder, problems, run.plan.students, again=again)):
        run.plan.remarks.append(
            f"{counted(more, 'attempt')} will be graded first, because the best one counts; if another one is the best "
            "then, it is graded as the student's submission, too"
        )
    return run.plan


def _ready(folder: ClassFolder, lecture_name: str) -> tuple[source.Lecture, due.Rules]:
    """The lecture and the class's rules for it.

    Raises :class:`CourseError` if it can't be graded: no submissions, hidden cases, or valid rules.
    """
    lecture = source.read(folder.source(lecture_name))
    folder.require_submissions(lecture_name)
    folder.require_cases(lecture)
    return lecture, due.read(folder, lecture_name)  # finds invalid rules before hours of grading


def _without_digits(name: str) -> str:
    return "".join(letter for letter in name if not letter.isdecimal())


class _Run:
    """One run over a class. Each submission is read only when its turn comes, once, and its key is computed once."""

    def __init__(
        self,
        folder: ClassFolder,
        lecture: source.Lecture,
        roster: Path | None,
        again: bool,
        limits: Limits = Limits(),
        unsafe: bool = False,
        progress: Progress = lambda done, total, latest: None,
    ) -> None:
        self._folder, self._lecture, self._again = folder, lecture, again
        self._limits, self._unsafe, self._progress = limits, unsafe, progress
        self._problems = folder.problems(lecture)
        self.standing: dict[str, Result] = {}
        self.graded: list[str] = []
        self.changed: list[tuple[str, float, float]] = []
        students = rosters.of(folder, lecture.name, roster)
        self.plan = Plan(students, left_out=rosters.left_out(folder, lecture.name))
        self.plan.remarks += self.plan.left_out
        if any(student.listed for student in students.values()):
            strangers = [name for name, student in students.items() if not student.listed]
            directory = rosters.Directory(student for student in students.values() if student.listed)
            for name in strangers:
                # Ids that differ in digits only are different students, as a rule.
                near = [each for each in directory.near(name, 0.8) if _without_digits(each) != _without_digits(name)]
                meant = f"; if it's {near[0]}'s, move it there" if near else ""
                self.plan.remarks.append(
                    f"{name} is not on the roster, but has work in {lecture.name}, so it counts{meant}"
                )
        self.plan.remarks += [
            f"{folder.decisions / lecture.name} has decisions about {one_line(name)}, who has no work and isn't on the "
            "roster; if this student's folders have been renamed, give them this name again"
            for name in decisions.students(folder, lecture.name)
            if name not in students
        ]

    def look(self, student: str) -> tuple[HandedIn, str] | None:
        """A student's submission and its key if it must be graded, otherwise None. Adds the student to the plan."""
        name = self._lecture.name
        handed_in = self._folder.read(student, name)
        stands = self.standing[student] = results.standing(self._folder, name, student, handed_in)
        if not stands.key:  # no result, or a damaged one
            self.plan.remarks += [note.splitlines()[0] for note in stands.notes]
        if handed_in.nothing:
            self.plan.absent.append(student)
            if stands.state is not State.NOT_SUBMITTED:
                self.plan.remarks.append(
                    f"{student}'s {name}.ipynb is no longer in submitted/, but its result still counts: put the file "
                    f"back, or delete {self._folder.result(student, name)} if it isn't to count"
                )
                self.plan.remarks += filter(None, [self._folder.remark(student, name)])
            return None
        key = handed_in.key(self._problems)
        if stands.points is not None and stands.key == key and not self._again:
            self.plan.kept.append(student)
            return None
        self.plan.wanted.append(student)
        return handed_in, key

    def tasks(self) -> Iterator[Task]:
        """The submissions that a worker must grade. Unreadable ones get their result right here."""
        self._tell(None)
        for student in self.plan.students:
            if (found := self.look(student)) is None:
                self._tell(None)
                continue
            handed_in, key = found
            if handed_in.data is not None:
                yield Task(student, self._problems, handed_in.data, key, self._limits, self._unsafe)
            elif (error := handed_in.error) is not None:
                note = clean(f"{handed_in.path} cannot be read: {error.strerror}", limit=MESSAGE_LIMIT)
                stands = self.standing[student]
                if stands.points is not None:  # it may be unchanged, so the result is kept
                    self.plan.remarks.append(f"{note}; the earlier result still counts")
                    key = stands.key
                failed = Result(student, self._lecture.name, State.FAILED_HERE, key, (), (note,), stands.submission)
                self.finish(failed, None)
            elif (finding := handed_in.finding) is not None:
                graded = unreadable(self._problems, finding)
                about = student, self._lecture.name, State.NEEDS_REVIEW, key
                self.finish(Result(*about, graded.marks, graded.notes, handed_in.digest), graded)

    def finish(self, result: Result, graded: Graded | None) -> None:
        """Write a submission's result, and the notebook for Formgrader. Our own failure never replaces a grade.

        Raises :class:`EngineError` if the disk or the folder can't be written to.
        """
        before = self.standing[result.student]
        if not (result.state is State.FAILED_HERE and before.key == result.key and before.points is not None):
            try:
                if graded is not None:
                    autograded.write(self._folder, self._lecture, result, graded.cells)
                results.write(self._folder, result)
            except OSError as error:
                if concerns_one(error):
                    self._keep_apart(result, error)
                    return
                raise EngineError(
                    f"the result of {result.student} cannot be written: {error}\n"
                    f"  → {len(self.graded)} results of this run are safe; free some disk space (or fix the folder's "
                    "permissions) and run the same command again: it continues from there"
                ) from error
            self.standing[result.student] = result
            same = before.submission == result.submission
            if same and before.points is not None and result.points not in (None, before.points):
                self.changed.append((result.student, before.points, result.points or 0.0))
        if graded is not None and graded.seconds:
            results.note_time(self._folder, self._lecture.name, result.student, graded.seconds)
        self.graded.append(result.student)
        self._tell(result)

    def _keep_apart(self, result: Result, error: OSError) -> None:
        """Go on without the one student whose result can't be written: the state is "failed here", with a remark."""
        note = clean(
            f"the result of {result.student} cannot be written ({error.strerror}): rename the student's folder, or "
            f"move {error.filename} away",
            limit=MESSAGE_LIMIT,
        )
        failed = Result(result.student, result.lecture_name, State.FAILED_HERE, result.key, (), (note,))
        self.standing[result.student] = failed
        self.plan.remarks.append(note)
        self._tell(failed)

    def _tell(self, latest: Result | None) -> None:
        most = len(self.plan.students) - len(self.plan.kept) - len(self.plan.absent)
        self._progress(len(self.graded), most, latest)


def _result(task: Task, outcome: Done) -> tuple[Result, Graded | None]:
    about, work = (task.student, task.problems.lecture_name), digest(task.submission)
    if isinstance(outcome, Failed):
        return Result(*about, State.FAILED_HERE, task.key, (), (outcome.reason,), work), None
    state = State.NEEDS_REVIEW if outcome.notes else State.GRADED
    return Result(*about, state, task.key, outcome.marks, outcome.notes, work), outcome


@contextlib.contextmanager
def _alone(folder: ClassFolder, lecture_name: str, say: Callable[[str], None] = lambda message: None) -> Iterator[None]:
    """Hold a lecture's lock, so that only one command grades it."""
    place = folder.results / lecture_name
    waiting = f"waiting until another command has graded {lecture_name} in {folder}"
    with contextlib.ExitStack() as held:
        try:
            place.mkdir(parents=True, exist_ok=True)
            held.enter_context(locked(place / ".lock", lambda: say(waiting)))
        except OSError as error:
            raise EngineError(
                f"{place} cannot be written: {error}\n"
                "  → free some disk space (or fix the folder's permissions) and run the same command again"
            ) from error
        remove_partials(place)
        yield

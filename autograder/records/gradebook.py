"""Derives nbgrader's gradebook from results and decisions, and records what people decide in Formgrader.

The gradebook is derived from files, so nothing is lost if it's deleted, locked or out of date. Ungraded states
("queued", "failed here", "not submitted") are never written to it. Formgrader stores points and comments only there
(:mod:`autograder.records.formgrader` records them at once). So our table `_WRITTEN` keeps what we wrote: whatever
differs from that was changed by a person, and becomes a decision before anything is written again.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import json
import math
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import sqlalchemy
from nbgrader import api, dbutil, utils
from nbgrader.preprocessors import ClearMarkScheme, ClearSolutions, ComputeChecksums, LockCells, SaveCells

from autograder import CourseError
from autograder.grading.marks import Result, State
from autograder.grading.source import Lecture
from autograder.locks import locked

from . import decisions, due, results
from .decisions import Decision
from .exchange import TIMESTAMP
from .folder import ClassFolder
from .roster import Student

_TIME = re.compile(r"[0-9T:.+ -]+Z?( [A-Za-z]+([/_+-][A-Za-z0-9]+)*)?")  # 2026-11-22 12:00:00.000000 Europe/Berlin
TRIES, PAUSE = 5, 2.0  # for a locked database (seconds); SQLite itself waits another five seconds each time
# What nbgrader shows next to an answer that a person should look at. `nbgrader autograde` removes it together with the
# flag; so if only the flag has been removed, a person did that.
LOOK = "A person looks at this."
_WRITTEN = sqlalchemy.Table(
    "course_written",
    sqlalchemy.MetaData(),
    sqlalchemy.Column("notebook_id", sqlalchemy.String(32), primary_key=True),
    sqlalchemy.Column("content", sqlalchemy.Text, nullable=False),
)


class GradebookError(CourseError):
    """The gradebook can't be read or updated; the message says why and what to do. Results are safe in their files."""


def derive(
    folder: ClassFolder,
    lecture: Lecture,
    found: Mapping[str, Result],
    database: str = "",
    *,
    students: Mapping[str, Student] = MappingProxyType({}),
    rules: due.Rules | None = None,
    say: Callable[[str], None] = lambda message: None,
) -> int:
    """Write one lecture's grades into the gradebook, one transaction each, and return their number. Safe to repeat.

    ``found`` has results as graded; decisions are applied here, after those made in Formgrader have been recorded.
    ``database`` is a SQLAlchemy URL, or "" for the course directory's own. The names and addresses in ``students`` are
    written, too; whatever else the gradebook has is kept. ``rules`` are read unless given. Raises
    :class:`GradebookError`.
    """
    return _tried(
        folder,
        database,
        lambda url: _derive(folder, lecture, found, students, rules or due.read(folder, lecture.name), url),
        "written",
        f"all results are safe in {folder.results / lecture.name}; close whatever uses the gradebook (or correct its "
        "URL) and run the same command again: nothing is graded twice",
        say,
    )


def take_over(folder: ClassFolder, lecture: Lecture, database: str = "") -> int:
    """Record what people have decided in Formgrader since the gradebook was last written; return how many decisions.

    Raises :class:`GradebookError` if there's a gradebook that can't be read.
    """
    if not (database or folder.has_gradebook):
        return 0

    def work(url: str) -> int:
        with api.Gradebook(url, folder.settings.course_id) as book:
            _complete(book)
            try:
                notebook = book.find_notebook(lecture.name, lecture.name)
            except api.MissingEntry:
                return 0
            return _take_over_all(folder, lecture, book, list(notebook.submissions))

    return _tried(
        folder,
        database,
        work,
        "read",
        "it may have points that were given in Formgrader: close whatever uses it (or correct its URL) and run the "
        "same command again",
    )


def _tried(
    folder: ClassFolder,
    database: str,
    work: Callable[[str], int],
    verb: str,
    remedy: str,
    say: Callable[[str], None] = lambda message: None,
) -> int:
    """Do something with the gradebook, retrying while it's locked. Raises :class:`GradebookError`."""
    url = database or folder.gradebook_url
    for attempt in range(1, TRIES + 1):
        try:
            with _one_at_a_time(folder), without_alembics_command():
                return work(url)
        except sqlalchemy.exc.OperationalError as error:
            reason = str(error.orig)
            if "locked" not in reason:
                break
            if attempt < TRIES:
                say(f"the gradebook is locked by another program; trying again ({attempt} of {TRIES - 1})")
                time.sleep(PAUSE)
        except sqlalchemy.exc.SQLAlchemyError as error:
            reason = str(error).splitlines()[0]
            break
        except ImportError as error:
            reason = (
                f"this database's driver is not installed ({error}); for PostgreSQL, pip install 'psycopg[binary]' and "
                "use a URL that begins with postgresql+psycopg://"
            )
            break
        except (OSError, api.InvalidEntry) as error:
            reason = f"{error}"
            break
    raise GradebookError(f"the gradebook {_shown(url)} cannot be {verb}: {reason}\n  → {remedy}")


def _shown(url: str) -> str:
    """A database's URL without its password."""
    try:
        return sqlalchemy.make_url(url).render_as_string(hide_password=True)
    except sqlalchemy.exc.SQLAlchemyError:
        return "(not a valid SQLAlchemy URL)"


def _derive(
    folder: ClassFolder,
    lecture: Lecture,
    found: Mapping[str, Result],
    students: Mapping[str, Student],
    rules: due.Rules,
    url: str,
) -> int:
    name = lecture.name
    with api.Gradebook(url, folder.settings.course_id) as book:
        _complete(book)
        dates = {"duedate": rules.due.astimezone(UTC).replace(tzinfo=None)} if rules.due else {}
        book.update_or_create_assignment(name, **dates)
        _save_cells(lecture, url)
        notebook = book.find_notebook(name, name)
        graded = [result for result in found.values() if result.points is not None]
        names = {result.student for result in graded}
        _take_over_all(folder, lecture, book, [one for one in notebook.submissions if one.student.id not in names])
        for result in graded:
            try:
                who = students.get(result.student) or Student(result.student)
                timestamp = _timestamp(folder.assignment(result.student, name) / TIMESTAMP)
                handed_in = _handed_in(book, notebook, result.student, who, timestamp)
                _take_over(folder, lecture, book, handed_in)
                stands = decisions.apply(folder, result)
                _write(book, handed_in, result, stands, lecture)
                # Formgrader shows the penalty, and nbgrader's export subtracts it.
                handed_in.late_submission_penalty = due.apply(folder, rules, stands, who).off
                book.db.commit()
            except BaseException:
                book.db.rollback()
                raise
    return len(graded)


def _complete(book: Any) -> None:
    """Record the schema's version, in case nbgrader was killed while creating the tables, and add our own table."""
    _WRITTEN.create(book.engine, checkfirst=True)
    with book.engine.begin() as connection:
        versions = sqlalchemy.Table(
            "alembic_version",
            sqlalchemy.MetaData(),
            sqlalchemy.Column("version_num", sqlalchemy.String(32), nullable=False),
        )
        versions.create(connection, checkfirst=True)
        if connection.execute(versions.select()).first() is None:
            connection.execute(versions.insert().values(version_num=schema_version()))


def _save_cells(lecture: Lecture, url: str) -> None:
    """Write what `nbgrader generate_assignment` would write about a notebook: its cells and their points."""
    resources = {"nbgrader": {"notebook": lecture.name, "assignment": lecture.name, "db_url": url}}
    notebook = copy.deepcopy(lecture.notebook)
    for step in (ClearMarkScheme(), LockCells(), ClearSolutions(), ComputeChecksums(), SaveCells()):
        try:
            notebook, _ = step.preprocess(notebook, resources)
        except RuntimeError as error:
            raise GradebookError(
                f"the exercises of {lecture.name} differ from those in this gradebook ({error})\n"
                "  → grade with the version of the course that the class started with. If the change is intended, "
                "delete the gradebook (or name an empty database with --db) and repeat the command: it's made again "
                "from the results and the decisions, and nothing is lost"
            ) from error


def _handed_in(book: Any, notebook: Any, name: str, who: Student, timestamp: Any) -> Any:
    """One student's submitted notebook in the gradebook, created if it isn't there; the caller commits."""
    student = book.db.get(api.Student, name)
    if student is None:
        student = api.Student(id=name)
        book.db.add(student)
    for column, value in _known(who).items():
        setattr(student, column, value)
    handed_in = (
        book.db.query(api.SubmittedAssignment)
        .filter_by(assignment_id=notebook.assignment_id, student_id=name)
        .one_or_none()
    )
    if handed_in is None:
        handed_in = api.SubmittedAssignment(assignment=notebook.assignment, student=student)
        book.db.add(handed_in)
    if handed_in.timestamp != timestamp:
        handed_in.timestamp = timestamp
    copy_of = next((one for one in handed_in.notebooks if one.notebook_id == notebook.id), None)
    if copy_of is None:
        copy_of = api.SubmittedNotebook(notebook=notebook, assignment=handed_in)
        book.db.add(copy_of)
    book.db.flush()  # assigns its id
    return copy_of


def _write(book: Any, copy_of: Any, result: Result, stands: Result, lecture: Lecture) -> None:
    """Write one submission as nbgrader's own autograder does, with the decisions in ``stands``; the caller commits."""
    tests = {mark.exercise: mark for mark in result.marks}
    marks = {mark.exercise: mark for mark in stands.marks}
    flagged = _flagged(stands)
    cells: dict[str, dict[str, Any]] = {}
    grades = {grade.cell_id: grade for grade in copy_of.grades}
    for cell in (*copy_of.notebook.grade_cells, *copy_of.notebook.task_cells):
        name = _exercise(cell.name, lecture)
        if (mark := marks.get(name)) is None:  # an old result that was kept because the submission is missing
            continue
        if (grade := grades.get(cell.id)) is None:
            grade = api.Grade(cell_id=cell.id, notebook=copy_of)
            book.db.add(grade)
        grade.auto_score = None if tests[name].open else tests[name].points
        if mark.tests is None:
            grade.manual_score = grade.extra_credit = None
        elif _score(grade) != mark.points or (grade.manual_score, grade.extra_credit) == (None, None):
            grade.manual_score, grade.extra_credit = mark.points, None
        grade.needs_manual_grade = name in flagged
        cells[name] = {
            "points": [grade.manual_score, grade.extra_credit],
            "tests": tests[name].points,
            "flagged": name in flagged,
            "asked": mark.open and mark.tests is not None,
        }
    comments = {comment.cell_id: comment for comment in copy_of.comments}
    for cell in (*copy_of.notebook.solution_cells, *copy_of.notebook.task_cells):
        if (comment := comments.get(cell.id)) is None:
            comment = api.Comment(cell_id=cell.id, notebook=copy_of)
            book.db.add(comment)
        text = marks[cell.name].comment if cell.name in marks else ""
        if (comment.manual_comment or "") != text:
            comment.manual_comment = text or None
        if cell.name in flagged:
            comment.auto_comment = LOOK
        elif comment.auto_comment == LOOK:
            comment.auto_comment = None
        if cell.name in cells:
            cells[cell.name]["comment"] = text
    about = {"key": result.key, "submission": result.submission, "notes": stands.notes, "cells": cells}
    _remember(book, copy_of, about)


def _flagged(stands: Result) -> set[str]:
    """The exercises that Formgrader marks for manual grading: those that a person is most likely to change."""
    if stands.state is not State.NEEDS_REVIEW:
        return set()
    likely = {mark.exercise for mark in stands.marks if mark.open or (mark.tests is None and mark.points < mark.worth)}
    return likely or {mark.exercise for mark in stands.marks[:1]}


def _exercise(cell: str, lecture: Lecture) -> str:
    """The exercise that a cell with points is about."""
    name = cell.removeprefix("test_")
    return name if name in {exercise.name for exercise in lecture.exercises} else cell


def _score(grade: Any) -> float:
    """The points that nbgrader will count; it computes them in the database."""
    given = grade.auto_score if grade.manual_score is None else grade.manual_score
    return float((given or 0.0) + (grade.extra_credit or 0.0))


def _rows(book: Any, lecture: Lecture, copies: Any, *, locked: bool = False) -> tuple[list[_Grade], list[_Comment]]:
    """The gradebook's rows about submitted notebooks: only the columns we need, which is faster than whole objects."""
    found = []
    for table, columns in ((api.Grade, _Grade._fields[2:]), (api.Comment, _Comment._fields[2:])):
        query = (
            sqlalchemy.select(table.notebook_id, api.BaseCell.name, *(getattr(table, name) for name in columns))
            .join(api.BaseCell, table.cell_id == api.BaseCell.id)
            .where(table.notebook_id.in_(copies))
        )
        found.append(book.db.execute(query.with_for_update(of=table) if locked else query).all())
    grades, comments = found
    return [_Grade(n, _exercise(cell, lecture), *row) for n, cell, *row in grades], [_Comment(*row) for row in comments]


class _Grade(NamedTuple):
    notebook: str
    exercise: str
    manual_score: float | None
    extra_credit: float | None
    auto_score: float | None
    needs_manual_grade: bool

    @property
    def by_hand(self) -> list[float | None]:
        return [self.manual_score, self.extra_credit]


class _Comment(NamedTuple):
    notebook: str
    exercise: str
    manual_comment: str | None
    auto_comment: str | None


def _changed(cells: Mapping[str, Mapping[str, Any]], grades: Iterable[_Grade], comments: Iterable[_Comment]) -> bool:
    """Whether a submission's rows differ from what we wrote."""
    empty: Mapping[str, Any] = {}
    for grade in grades:
        cell = cells.get(grade.exercise, empty)
        if grade.by_hand != cell.get("points", [None, None]):
            return True
        if cell.get("flagged") and not grade.needs_manual_grade:
            return True
    return any((one.manual_comment or "") != cells.get(one.exercise, empty).get("comment", "") for one in comments)


def _take_over_all(folder: ClassFolder, lecture: Lecture, book: Any, copies: list[Any]) -> int:
    """Call `_take_over` for all submissions in which somebody has changed something."""
    ids = [copy_of.id for copy_of in copies]
    written = {
        row.notebook_id: json.loads(row.content)["cells"]
        for row in book.db.execute(sqlalchemy.select(_WRITTEN).where(_WRITTEN.c.notebook_id.in_(ids)))
    }
    grades: dict[str, list[_Grade]] = defaultdict(list)
    comments: dict[str, list[_Comment]] = defaultdict(list)
    all_grades, all_comments = _rows(book, lecture, ids)
    for grade in all_grades:
        grades[grade.notebook].append(grade)
    for comment in all_comments:
        comments[comment.notebook].append(comment)
    book.db.rollback()  # end the read transaction, so that nobody has to wait for us
    count = 0
    for copy_of, number in zip(copies, ids, strict=True):
        if not _changed(written.get(number, {}), grades[number], comments[number]):
            continue
        try:
            count += _take_over(folder, lecture, book, copy_of)
            book.db.commit()
        except BaseException:
            book.db.rollback()
            raise
    return count


def _take_over(folder: ClassFolder, lecture: Lecture, book: Any, copy_of: Any) -> int:
    """Record what a person has changed in one submission since we wrote it; the caller commits.

    A decision isn't recorded twice, even if the first command was killed between recording it and committing.
    """
    mine = _WRITTEN.c.notebook_id == copy_of.id
    # Start with a write, although it changes nothing: from here on, no other program can write.
    book.db.execute(_WRITTEN.delete().where(_WRITTEN.c.notebook_id == ""))
    row = book.db.execute(sqlalchemy.select(_WRITTEN.c.content).where(mine)).scalar_one_or_none()
    before: dict[str, Any] = json.loads(row) if row else {}
    cells: dict[str, dict[str, Any]] = before.setdefault("cells", {})
    grades, comments = _rows(book, lecture, [copy_of.id], locked=True)
    if not _changed(cells, grades, comments):
        return 0
    if "/" in (student := copy_of.student.id):
        return 0  # nobody in this class, since it can't be a folder's name
    known, _ = decisions.read(folder, lecture.name, student)
    based = _based_on(folder, lecture.name, student, before, grades)
    new: dict[str, Decision] = {}

    def change(name: str, **what: Any) -> None:
        new[name] = replace(new.get(name) or _as_before(based(name), known), **what)

    asked = {comment.exercise for comment in comments if comment.auto_comment == LOOK}
    for grade in grades:
        name = grade.exercise
        cell = cells.setdefault(name, {})
        confirmed = cell.get("asked") and cell["flagged"] and not grade.needs_manual_grade and name in asked
        if (grade.by_hand != cell.get("points", [None, None]) or confirmed) and math.isfinite(_score(grade)):
            change(name, points=None if grade.by_hand == [None, None] else _score(grade))
        cell["points"] = grade.by_hand
    for comment in comments:
        cell = cells.setdefault(comment.exercise, {})
        if (text := comment.manual_comment or "") != cell.get("comment", ""):
            change(comment.exercise, comment=decisions.cleaned(text))
        cell["comment"] = text
    flagged = {grade.exercise: grade.needs_manual_grade for grade in grades}
    to_look = {name for name, cell in cells.items() if cell.get("flagged")}
    if to_look and to_look <= asked and not any(flagged.get(name) for name in to_look):
        change("", reviewed=True, notes=tuple(before["notes"]))
    for name in to_look:
        if not flagged.get(name):
            cells[name] |= {"flagged": False, "asked": False}
    last = decisions.latest(known)
    made = [each for name, each in new.items() if name not in last or replace(last[name], when=each.when) != each]
    for each in made:
        decisions.write(folder, each)
    _remember(book, copy_of, before)
    return len(made)


def _as_before(based: Decision, known: list[Decision]) -> Decision:
    """The latest decision, but based on the result in ``based``."""
    old = decisions.latest(known).get(based.exercise)
    if old is None:
        return based
    return replace(based, points=old.points, comment=decisions.kept_comment(old, based), until=old.until)


def _based_on(
    folder: ClassFolder, lecture_name: str, student: str, before: Mapping[str, Any], grades: list[_Grade]
) -> Callable[[str], Decision]:
    """Makes empty decisions based on what a person saw in Formgrader when deciding: the result that we last wrote."""
    stored = None
    with contextlib.suppress(results.ResultError):
        stored = results.read(folder, lecture_name, student)
    result = stored or Result(student, lecture_name, State.QUEUED, "")
    if "key" in before and before["key"] != result.key:
        cells = before["cells"]
        marks = tuple(
            replace(mark, points=cells[mark.exercise]["tests"]) if "tests" in cells.get(mark.exercise, {}) else mark
            for mark in result.marks
        )
        result = replace(result, key=before["key"], submission=before["submission"], marks=marks)
    elif "key" not in before:  # written by an older version of this course, or by nbgrader
        seen = {grade.exercise: grade.auto_score for grade in grades}
        if any(seen.get(mark.exercise) not in (None, mark.points) for mark in result.marks):
            result = replace(result, key="", submission="")
    return lambda name: replace(decisions.about(result, name), who=decisions.FORMGRADER)


def _remember(book: Any, copy_of: Any, about: Mapping[str, Any]) -> None:
    """Store what the gradebook now says about a submission."""
    content, mine = json.dumps(about), _WRITTEN.c.notebook_id == copy_of.id
    book.db.flush()
    if book.db.execute(sqlalchemy.select(_WRITTEN.c.content).where(mine)).scalar_one_or_none() == content:
        return  # avoid a needless write
    book.db.execute(_WRITTEN.delete().where(mine))
    book.db.execute(_WRITTEN.insert().values(notebook_id=copy_of.id, content=content))


def _known(who: Student) -> dict[str, str]:
    """The columns about this student that the gradebook can store."""
    known = {"email": who.email, "lms_user_id": who.canvas_id}
    if who.first_name and who.last_name:  # Formgrader would show a missing one as "None"
        known |= {"first_name": who.first_name, "last_name": who.last_name}
    longest = api.Student.first_name.type.length
    return {column: "".join(filter(str.isprintable, value))[:longest] for column, value in known.items() if value}


def _timestamp(path: Path) -> Any:
    """When it was handed in, according to the `timestamp.txt` that nbgrader's exchange writes; None if that's unusable.

    A student can write that file, too. dateutil opens a file named after the time zone, which could be any file on the
    machine, so only text that looks like a time zone's name is passed on.
    """
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > 200:
            return None
        text = path.read_text(encoding="utf-8").strip()
        return utils.parse_utc(text) if _TIME.fullmatch(text) else None
    except Exception:  # dateutil may raise many kinds of errors, and warnings
        return None


@contextlib.contextmanager
def _one_at_a_time(folder: ClassFolder) -> Iterator[None]:
    """Wait for other commands that use this class's gradebook, because only one may create nbgrader's tables."""
    folder.results.mkdir(parents=True, exist_ok=True)
    with locked(folder.results / ".gradebook.lock"):
        yield


@contextlib.contextmanager
def without_alembics_command() -> Iterator[None]:
    """Let nbgrader's API, in this process, create a gradebook without running the command `alembic`.

    It runs that to learn the schema's version. Alembic's library tells us sooner, and isn't missing from PATH.
    """
    before, api.get_alembic_version = api.get_alembic_version, schema_version
    try:
        yield
    finally:
        api.get_alembic_version = before


@functools.cache
def schema_version() -> str:
    """The version of nbgrader's tables, as the command `alembic heads` prints it."""
    from alembic.script import ScriptDirectory  # only a new gradebook needs it

    return str(ScriptDirectory(dbutil.ALEMBIC_DIR).get_current_head())

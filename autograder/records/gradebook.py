"""Derives nbgrader's gradebook from the result files.

The results are authoritative and the gradebook is made from them, so nothing is lost if it's deleted, locked or late.
Ungraded states ("queued", "failed here", "not submitted") are never written to it.
"""

from __future__ import annotations

import contextlib
import copy
import fcntl
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import sqlalchemy
from nbgrader import api, utils
from nbgrader.preprocessors import ClearSolutions, ComputeChecksums, LockCells, SaveCells

from autograder import CourseError
from autograder.grading.marks import Result, State
from autograder.grading.source import Lecture

from .folder import ClassFolder
from .roster import Student

_TIME = re.compile(r"[0-9T:.+ -]+Z?( [A-Za-z]+([/_+-][A-Za-z0-9]+)*)?")  # 2026-11-22 12:00:00.000000 Europe/Berlin
TRIES, PAUSE = 5, 2.0  # at a locked database; SQLite itself waits five seconds each time


class GradebookError(CourseError):
    """The gradebook can't be updated; the message says why and what to do. The results are safe in their files."""


def derive(
    folder: ClassFolder,
    lecture: Lecture,
    found: Mapping[str, Result],
    database: str = "",
    *,
    students: Mapping[str, Student] = MappingProxyType({}),
    say: Callable[[str], None] = lambda message: None,
) -> int:
    """Write one lecture's grades into the gradebook, one transaction each, and return their number. Safe to repeat.

    ``database`` is a SQLAlchemy URL, or "" for the course directory's own. Points given by a person stay. The
    gradebook shows what ``students`` (by name) says about somebody; anything else there stays.
    """
    url = database or folder.gradebook_url
    for attempt in range(1, TRIES + 1):
        try:
            with _one_at_a_time(folder), _alembic_on_path():
                return _derive(folder, lecture, found, students, url)
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
                "begin the address with postgresql+psycopg://"
            )
            break
        except (OSError, subprocess.CalledProcessError, api.InvalidEntry) as error:
            reason = f"{error}"
            break
    raise GradebookError(
        f"the gradebook {_shown(url)} cannot be written: {reason}\n"
        f"  → all results are safe in {folder.results / lecture.name}; close what uses the gradebook (or mend its "
        "address) and run the same command again: nothing is graded twice"
    )


def _shown(url: str) -> str:
    """A database's address without its password."""
    try:
        return sqlalchemy.make_url(url).render_as_string(hide_password=True)
    except sqlalchemy.exc.SQLAlchemyError:
        return "(not a valid SQLAlchemy URL)"


def _derive(
    folder: ClassFolder,
    lecture: Lecture,
    found: Mapping[str, Result],
    students: Mapping[str, Student],
    url: str,
) -> int:
    name = lecture.name
    with api.Gradebook(url, folder.settings.course_id) as book:
        _complete(book)
        book.update_or_create_assignment(name)
        _save_cells(lecture, url)
        notebook = book.find_notebook(name, name)
        graded = [result for result in found.values() if result.points is not None]
        for result in graded:
            try:
                who = students.get(result.student) or Student(result.student)
                _write(
                    book, notebook, result, who, _timestamp(folder.assignment(result.student, name) / "timestamp.txt")
                )
                book.db.commit()
            except BaseException:
                book.db.rollback()
                raise
    return len(graded)


def _complete(book: Any) -> None:
    """Record the tables' version, which nbgrader never does if it's killed while creating them."""
    with book.engine.begin() as connection:
        versions = sqlalchemy.Table(
            "alembic_version",
            sqlalchemy.MetaData(),
            sqlalchemy.Column("version_num", sqlalchemy.String(32), nullable=False),
        )
        versions.create(connection, checkfirst=True)
        if connection.execute(versions.select()).first() is None:
            connection.execute(versions.insert().values(version_num=api.get_alembic_version()))


def _save_cells(lecture: Lecture, url: str) -> None:
    """Write what `nbgrader generate_assignment` writes about a notebook: its cells and their points."""
    resources = {"nbgrader": {"notebook": lecture.name, "assignment": lecture.name, "db_url": url}}
    notebook = copy.deepcopy(lecture.notebook)
    for step in (LockCells(), ClearSolutions(), ComputeChecksums(), SaveCells()):
        try:
            notebook, _ = step.preprocess(notebook, resources)
        except RuntimeError as error:
            raise GradebookError(
                f"the exercises of {lecture.name} are not those that this gradebook was begun with ({error})\n"
                "  → grade with the course's version that the class began with, or begin a new gradebook (--db)"
            ) from error


def _write(book: Any, notebook: Any, result: Result, who: Student, timestamp: Any) -> None:
    """Write one submission as nbgrader's own autograder does; the caller commits."""
    student = book.db.get(api.Student, result.student)
    if student is None:
        student = api.Student(id=result.student)
        book.db.add(student)
    for column, value in _known(who).items():
        setattr(student, column, value)
    handed_in = (
        book.db.query(api.SubmittedAssignment)
        .filter_by(assignment_id=notebook.assignment_id, student_id=result.student)
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
    marks = {f"test_{mark.exercise}": mark for mark in result.marks}
    grades = {grade.cell_id: grade for grade in copy_of.grades}
    for cell in notebook.grade_cells:
        if (grade := grades.get(cell.id)) is None:
            grade = api.Grade(cell_id=cell.id, notebook=copy_of)
            book.db.add(grade)
        grade.auto_score = marks[cell.name].points
        grade.needs_manual_grade = grade.manual_score is not None or result.state is State.NEEDS_REVIEW
    comments = {comment.cell_id for comment in copy_of.comments}
    for cell in notebook.solution_cells:
        if cell.id not in comments:
            book.db.add(api.Comment(cell_id=cell.id, notebook=copy_of))


def _known(who: Student) -> dict[str, str]:
    """What a gradebook's table of students can store about this one."""
    known = {"email": who.email, "lms_user_id": who.canvas_id}
    if who.first_name and who.last_name:  # Formgrader shows one without the other as "None, …"
        known |= {"first_name": who.first_name, "last_name": who.last_name}
    longest = api.Student.first_name.type.length
    return {column: "".join(filter(str.isprintable, value))[:longest] for column, value in known.items() if value}


def _timestamp(path: Path) -> Any:
    """When it was handed in, according to the `timestamp.txt` that nbgrader's exchange writes; None without one.

    A student can write that file, too. dateutil looks up a time zone as a file, which could be any file on the machine,
    so a zone must look like the name of one.
    """
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > 200:
            return None
        text = path.read_text(encoding="utf-8").strip()
        return utils.parse_utc(text) if _TIME.fullmatch(text) else None
    except Exception:  # dateutil raises warnings as errors, among others
        return None


@contextlib.contextmanager
def _one_at_a_time(folder: ClassFolder) -> Iterator[None]:
    """Wait for other commands that write this class's gradebook, because only one may create nbgrader's tables."""
    folder.results.mkdir(parents=True, exist_ok=True)
    with (folder.results / ".gradebook.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _alembic_on_path() -> Iterator[None]:
    # nbgrader asks the command `alembic` for its version when it makes the tables.
    before = os.environ.get("PATH", os.defpath)
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{before}"
    try:
        yield
    finally:
        os.environ["PATH"] = before

"""A class's folder: where everything about a class is, and what each student handed in.

Every command asks this object, so that all of them agree on the directories that nbgrader's configuration names, and on
who handed in what.
"""

from __future__ import annotations

import contextlib
import difflib
import errno
import glob
import json
import os
import re
import stat
import tomllib
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from autograder import CourseError, project
from autograder.grading import source, submission
from autograder.grading.exercises import ProblemSet, hidden_path, made_from
from autograder.grading.source import Lecture
from autograder.grading.submission import HandedIn
from autograder.grading.text import clean, one_line
from course_utils.files import replacing

CONFIG = "nbgrader_config.py"
NAMED = 5  # most of a student's file names in one message
INSTEAD = "handed in instead.txt"  # in submitted/STUDENT/LECTURE/, if there was no notebook to collect
SETTINGS = "class.toml"  # the class's rules, written by a person
CLASS = "class.json"  # the seed that `course init` draws; never part of a release or a page
_OF_A_CLASS = {CONFIG, SETTINGS, CLASS, "roster.csv", "gradebook.db", "hidden", "source", "submitted", "attempts"}
_OF_A_CLASS |= {"results", "decisions", "autograded", "feedback", "reports", "exports"}


# Errors that concern a single path: its name is too long, or something else is in its place.
_OF_ONE = {errno.ENAMETOOLONG, errno.EISDIR, errno.ENOTDIR, errno.ENOTEMPTY, errno.EEXIST, errno.ELOOP, errno.EILSEQ}


def concerns_one(error: OSError) -> bool:
    """Whether an error in writing a file concerns only that file, rather than the disk or the whole folder."""
    return error.errno in _OF_ONE


def few(names: Sequence[str]) -> list[str]:
    """The first few of a student's files, and how many more there are."""
    return [*names[:NAMED], *([f"and {len(names) - NAMED:,} more files"] if len(names) > NAMED else [])]


def some(names: Sequence[str]) -> str:
    """The first few of these names, of students for instance, and how many more there are."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(map(one_line, names[:NAMED])) + more


def listed(names: Sequence[str]) -> str:
    """The first few of a student's files, and how many more there are, for a sentence."""
    return clean(", ".join(few(names)), limit=500)


def _is_folder(path: Path) -> bool:
    """Whether there's a folder, or something that stat fails on, such as a link to an overlong name.

    `Path.is_dir` and `Path.exists` raise an error for these, so one student's link would stop grading for everybody.
    """
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


class FolderError(CourseError):
    """A class's folder or its configuration can't be used; the message says why and what to do."""


@dataclass(frozen=True)
class Settings:
    """The settings from the folder's nbgrader configuration, or nbgrader's defaults."""

    submitted: str = "submitted"
    autograded: str = "autograded"
    feedback: str = "feedback"
    structure: str = "{nbgrader_step}/{student_id}/{assignment_id}"
    db_url: str = ""
    course_id: str = "default_course"


class ClassFolder:
    """The folder of a class, as created by `course init`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def __str__(self) -> str:
        return str(self.root)

    @property
    def strange(self) -> list[str]:
        """What is in the folder, if that's something but nothing of a class's."""
        there = {path.name for path in self.root.iterdir() if not path.name.startswith(".")}
        return [] if there & _OF_A_CLASS else sorted(there)

    @cached_property
    def settings(self) -> Settings:
        """The settings in ``nbgrader_config.py``. Raises :class:`FolderError` if it can't be read."""
        if not (self.root / CONFIG).is_file():
            return Settings()
        from traitlets.config.loader import PyFileConfigLoader

        try:
            config = PyFileConfigLoader(CONFIG, path=str(self.root)).load_config()
        except Exception as error:  # the configuration is Python code, which may raise anything
            raise FolderError(
                f"{self.root / CONFIG} cannot be read ({type(error).__name__}: {error})\n  → correct it"
            ) from error
        section: dict[str, Any] = config.get("CourseDirectory", {})
        names = {"submitted": "submitted_directory", "autograded": "autograded_directory"}
        names |= {"feedback": "feedback_directory", "structure": "directory_structure"}
        names |= {"db_url": "db_url", "course_id": "course_id"}
        return Settings(**{ours: str(section[theirs]) for ours, theirs in names.items() if theirs in section})

    @cached_property
    def own(self) -> Path | None:
        """The folder of the class's own lectures, which ``exercises`` in ``class.toml`` names, or None.

        Raises :class:`FolderError` if it isn't there, or if a lecture in it has the name of one of ours.
        """
        try:
            named = tomllib.loads((self.root / SETTINGS).read_text(encoding="utf-8-sig")).get("exercises")
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
            return None  # due.read reports it
        if named is None:
            return None
        if not isinstance(named, str) or not (folder := (self.root / Path(named).expanduser()).resolve()).is_dir():
            raise FolderError(
                f"{self.root / SETTINGS}: exercises is {named!r:.200}, which is not a folder\n  → name the folder "
                "with the class's own lectures, relative to the class's folder"
            )
        ours = {path.stem for path in source.lectures(project.SOLUTIONS)}
        if twice := sorted(path.stem for path in folder.glob("[0-9][0-9]_*.py") if path.stem in ours):
            raise FolderError(f"{folder}: the course has a lecture {twice[0]}, too\n  → give yours another name")
        return folder

    @property
    def lectures(self) -> list[Path]:
        """The sources of all lectures of this class: the course's, then its own."""
        return [*source.lectures(project.SOLUTIONS), *(source.lectures(self.own) if self.own else ())]

    def source(self, lecture_name: str) -> Path:
        """Where the source of a lecture is, or would be."""
        return next((path for path in self.lectures if path.stem == lecture_name), project.source_path(lecture_name))

    @cached_property
    def seed(self) -> int:
        """The seed of this class's hidden inputs, or 0 if `course init` hasn't drawn one."""
        path = self.root / CLASS
        try:
            seed = json.loads(path.read_bytes())["seed"]
            if type(seed) is not int or not 0 <= seed < 2**63:
                raise ValueError(f"its seed is {seed!r:.50}")
            return seed
        except FileNotFoundError:
            return 0
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FolderError(
                f"{path} cannot be read ({type(error).__name__}: {error})\n  → restore it from a backup: with another "
                "seed, the class is graded again on other inputs. If you delete the file, the seed is 0"
            ) from error

    def draw(self, seed: int) -> None:
        """Store the class's seed."""
        with replacing(self.root / CLASS) as file:
            os.chmod(file.name, 0o600)
            file.write(json.dumps({"seed": seed}).encode() + b"\n")
        self.__dict__.pop("seed", None)

    def problems(self, lecture: Lecture) -> ProblemSet:
        """A lecture's exercises, with this class's hidden cases."""
        paths = {e.name: hidden_path(self.root, e.name) for e in lecture.exercises}
        hidden = {name: path.read_bytes() for name, path in paths.items() if path.is_file()}
        return replace(lecture.problems, hidden=hidden)

    def require_cases(self, lecture: Lecture) -> None:
        """Raise :class:`FolderError` if hidden cases are missing or belong to an older version of an exercise."""
        for exercise in lecture.exercises:
            path = hidden_path(self.root, exercise.name)
            if made_from(path) != exercise.made_from:
                raise FolderError(
                    f"{path} is missing, or older than the exercise\n  → `course init {self.root}` draws the missing "
                    "hidden cases and keeps submissions and grades"
                )

    @property
    def results(self) -> Path:
        """The folder with the results."""
        return self.root / "results"

    @property
    def decisions(self) -> Path:
        """The folder with people's decisions. Nothing in it can be derived from other files."""
        return self.root / "decisions"

    @property
    def roster(self) -> Path:
        """Where the list of students is, if there is one."""
        return self.root / "roster.csv"

    @property
    def exports(self) -> Path:
        """The folder of files for other systems to import."""
        return self.root / "exports"

    def assignment(self, student: str, lecture_name: str) -> Path:
        """The folder of one student's submission."""
        return self._step(self.settings.submitted, student, lecture_name)

    def submission(self, student: str, lecture_name: str) -> Path:
        """Where one student's notebook is."""
        return self.assignment(student, lecture_name) / f"{lecture_name}.ipynb"

    def attempts(self, student: str, lecture_name: str) -> Path:
        """The folder of everything that `course collect` has collected of one student's work on a lecture."""
        return self._step("attempts", student, lecture_name)

    def autograded(self, student: str, lecture_name: str) -> Path:
        """Where the notebook that Formgrader shows is."""
        return self._step(self.settings.autograded, student, lecture_name) / f"{lecture_name}.ipynb"

    def feedback(self, student: str, lecture_name: str) -> Path:
        """Where one student's page is: where nbgrader's own page would be, so that nbgrader can return ours."""
        return self._step(self.settings.feedback, student, lecture_name) / f"{lecture_name}.html"

    def result(self, student: str, lecture_name: str) -> Path:
        """Where one student's result is."""
        return self.results / lecture_name / f"{student}.json"

    def report(self, lecture_name: str) -> Path:
        """Where the report on the class is."""
        return self.root / "reports" / f"{lecture_name}.html"

    def places(self, database: str = "") -> list[Path]:
        """Where anything of the class is, wherever links or nbgrader's configuration put it: its folders, what its root
        contains, the links in place of one student's folders, the class's own lectures, and the gradebook's folder.

        ``database``: the gradebook's SQLAlchemy URL; "" for the folder's own.
        """
        named = (self.settings.submitted, self.settings.autograded, self.settings.feedback, "attempts")
        steps = [self.root / step for step in named]
        found = [  # unlike Path.glob, this passes over whatever can't be looked at
            step / each
            for step in steps
            for deep in ("*", "*/*")
            for each in glob.glob(deep, root_dir=step, include_hidden=True)
        ]
        links = [path for path in found if os.path.islink(path)]
        url = database or self.gradebook_url
        book = url.removeprefix("sqlite:///")
        books = [] if book == url else [Path(book), Path(book).parent]
        return [self.root, *self.root.glob("*"), *steps, *links, *books, *([self.own] if self.own else [])]

    @property
    def gradebook_url(self) -> str:
        """The SQLAlchemy URL of nbgrader's gradebook."""
        url = self.settings.db_url or "sqlite:///gradebook.db"
        file = url.removeprefix("sqlite:///")
        # nbgrader's commands run in the class's folder, so a relative path starts there.
        relative = file not in (url, "") and not file.startswith(("/", ":memory:", "file:"))
        return f"sqlite:///{self.root.resolve() / file}" if relative else url

    @property
    def has_gradebook(self) -> bool:
        """Whether there's a gradebook; one that isn't a file is assumed to exist."""
        url = self.gradebook_url
        file = url.removeprefix("sqlite:///")
        return file == url or Path(file).is_file()

    def _step(self, step: str, student: str, lecture_name: str) -> Path:
        return self.root / self._filled(step, student, lecture_name)

    def _filled(self, step: str, student: str, lecture_name: str) -> str:
        try:
            return self.settings.structure.format(nbgrader_step=step, student_id=student, assignment_id=lecture_name)
        except (KeyError, IndexError, ValueError) as error:
            raise FolderError(
                f"{self.root / CONFIG}: directory_structure is {self.settings.structure!r}, which cannot be filled in "
                f"({type(error).__name__}: {error})\n  → use {{nbgrader_step}}, {{student_id}} and {{assignment_id}}"
            ) from error

    def require(self) -> None:
        """Raise :class:`FolderError` if there's no class here."""
        if not self.root.is_dir():
            raise FolderError(f"{self.root} is missing\n  → `course init {self.root}` creates it")
        if there := self.strange:
            raise FolderError(
                f"{self.root} is not a class's folder: it has {listed(there)}\n"
                "  → name the folder that `course init` made, or use `course init FOLDER` to make one"
            )

    def require_submissions(self, lecture_name: str) -> None:
        """Raise :class:`FolderError` if there's no class here, or no folder for submissions."""
        self.require()
        students, _ = self._students(lecture_name)
        if not students.is_dir():
            place = self.submission("STUDENT", lecture_name)
            raise FolderError(
                f"{students} is missing\n  → put submissions into {place}, or let `course collect` do it; "
                "`course init` makes a new class"
            )

    def present(self, lecture_name: str) -> set[str]:
        """The names of all students who have handed something in, for any lecture, or have a result for this one."""
        found = {path.stem for path in (self.results / lecture_name).glob("*.json")}
        students, below = self._students(lecture_name)
        with contextlib.suppress(FileNotFoundError):
            for path in students.iterdir():
                dangling = path.is_symlink() and not os.path.exists(path)  # somebody put it there, so report it
                if dangling or _is_folder(path / below):
                    found.add(path.name)
        # Skip folders that programs create, such as .ipynb_checkpoints, unless they have this lecture in them.
        return {name for name in found if not name.startswith(".") or _is_folder(self.assignment(name, lecture_name))}

    def _students(self, lecture_name: str) -> tuple[Path, Path]:
        """The folder with a folder for each student, and the path that must exist below a student's folder.

        The latter is empty unless ``directory_structure`` puts the student before the step.
        """
        student, step = "\0", "\1"  # no folder has such a name
        parts = Path(self._filled(step, student, lecture_name)).parts
        if student not in parts:
            raise FolderError(
                f"{self.root / CONFIG}: directory_structure, {self.settings.structure!r}, has no folder per student\n"
                "  → make {student_id} a folder of its own"
            )

        def path(some: tuple[str, ...]) -> Path:
            return Path(*(part.replace(step, self.settings.submitted) for part in some))

        at = parts.index(student)
        steps = [place for place, part in enumerate(parts) if place > at and step in part]
        return self.root / path(parts[:at]), path(parts[at + 1 : steps[-1] + 1] if steps else ())

    def read(self, student: str, lecture_name: str) -> HandedIn:
        """Read what a student handed in."""
        return submission.read(self.submission(student, lecture_name))

    def has_work(self, student: str, lecture_name: str) -> bool:
        """Whether a student handed something in for this lecture, a notebook or not, or has a result for it."""
        if os.path.exists(self.result(student, lecture_name)) or not self.read(student, lecture_name).nothing:
            return True
        return bool(self.instead(student, lecture_name))

    def instead(self, student: str, lecture_name: str) -> list[str]:
        """The names of files that a student handed in instead of a notebook; none if the folder is unreadable.

        Files that `course collect` didn't copy are listed in the file :data:`INSTEAD`.
        """
        there: set[str] = set()
        with contextlib.suppress(OSError):
            there |= {one_line(path.name) for path in self.assignment(student, lecture_name).iterdir()}
        if INSTEAD in there:
            data = submission.read(self.assignment(student, lecture_name) / INSTEAD).data or b""
            there |= {one_line(line) for line in data.decode("utf-8", "replace").splitlines()[:20] if line}
            there.discard(INSTEAD)
        return sorted(there)

    def stray(self, lecture_name: str) -> list[str]:
        """The names of notebooks in the folder of all students itself, where they belong to nobody."""
        with contextlib.suppress(OSError):
            found = {path.name for path in self._students(lecture_name)[0].glob("*.ipynb") if path.is_file()}
            return self._of_this(found, lecture_name)
        return []

    def _of_this(self, names: Set[str], lecture_name: str) -> list[str]:
        """Those of the names of files and folders that aren't called after another lecture: ``01_tensors (1).ipynb``.

        Looking up the lectures reads files, so nothing is looked up for no names.
        """
        if not names:
            return []
        others = [re.escape(path.stem) for path in self.lectures if path.stem != lecture_name]
        return sorted(name for name in names if not any(re.match(rf"{other}(?!\w)", name) for other in others))

    def misplaced(self, student: str, lecture_name: str) -> str:
        """A remark on what looks like a student's notebook in the wrong place beside this lecture's folder; or ""."""
        beside = self.assignment(student, lecture_name).parent
        if beside.name != student:  # nbgrader's settings put something else there
            return ""
        with contextlib.suppress(OSError):
            names = [path.name for path in beside.iterdir() if path.name != lecture_name]
            near = difflib.get_close_matches(lecture_name, names, 3, 0.8)
            looks = {name for name in names if name.endswith(".ipynb") or name in near}
            if found := self._of_this(looks, lecture_name):
                here, there = one_line(str(beside)), one_line(str(self.submission(student, lecture_name)))
                said = f"{student} has {listed(found)} in {here}, where nothing is graded"
                return f"{said}; if it's the notebook, move it to {there}"
        return ""

    def remark(self, student: str, lecture_name: str) -> str:
        """A remark that names what a student handed in instead of the notebook, or beside its folder; or ""."""
        if there := self.instead(student, lecture_name):
            return f"{student} handed in {listed(there)}, but no {lecture_name}.ipynb"
        return self.misplaced(student, lecture_name)

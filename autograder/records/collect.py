"""Collects what students handed in with Canvas, Moodle, GitHub or nbgrader's exchange into a class's folder.

Every attempt is kept in ``attempts/`` and never overwritten; the last one with a notebook is copied to ``submitted/``.
Problems with one student's files, or with matching them to a student, are reported and don't affect anybody else. Safe
to repeat: what was collected before isn't collected again.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autograder import CourseError
from autograder.grading import submission
from autograder.grading.text import counted, one_line

from . import attempts, due, roster, sources
from .attempts import Attempt
from .folder import NAMED, ClassFolder, concerns_one, few
from .sources import Delivery, Kind


@dataclass
class Summary:
    """What was collected, or would be.

    ``new`` has pairs of a student and an attempt; ``known`` counts those that were collected before. ``unmatched`` says
    what couldn't be matched to one student, ``failed`` whose submission couldn't be stored, and ``remarks`` what else
    an instructor should know. ``missing`` has the students on the roster who have handed in nothing so far.
    """

    new: list[tuple[str, Attempt]] = field(default_factory=list)
    known: int = 0
    unmatched: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def collect(
    folder: ClassFolder,
    lecture_name: str,
    source: Path,
    lectures: Sequence[str],
    *,
    file: Path | None = None,
    dry_run: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
    say: Callable[[str], None] = lambda message: None,
) -> Summary:
    """Collect what a source has for one lecture. ``lectures`` names all lectures; ``file`` is a roster to use instead.

    With ``dry_run``, nothing is written. ``say`` gets what this waits for. Raises :class:`sources.CollectError` for a
    source that can't be read, :class:`CourseError` if there are no students, and OSError if the disk fails; what was
    collected by then is kept.
    """
    folder.require()
    students = roster.of(folder, lecture_name, file)
    if not students:
        raise CourseError(
            f"there are no students to match submissions to: {file or folder.roster} is missing or empty\n"
            "  → make it a CSV file with a column id and, if you can, name, login and email"
        )
    summary, rules = Summary(), due.read(folder, lecture_name)
    directory = roster.Directory(students.values())
    found = sources.deliveries(source, lecture_name, lectures, directory.logins)
    theirs = _matched(found, directory, students, summary)
    total = sum(map(len, theirs.values()))
    done = 0
    with contextlib.nullcontext() if dry_run else attempts.alone(folder, lecture_name, say):
        for student, each in theirs.items():
            try:
                _Student(folder, lecture_name, student, source, rules, dry_run, summary).take(each)
            except attempts.AttemptError as error:
                summary.failed.append(f"{student}: {error}")
            except OSError as error:
                if not concerns_one(error):
                    raise
                summary.failed.append(f"{student}: {one_line(str(error))}: move that away and repeat the command")
            done += len(each)
            progress(done, total)
    unknown = sum(not attempt.when and not attempt.late for _, attempt in summary.new)
    if rules.due is not None and unknown:
        summary.remarks.append(
            f"{source.name} doesn't say when {counted(unknown, 'attempt')} came in, so nothing is taken off for "
            f"{'it' if unknown == 1 else 'them'}"
        )
    summary.missing = [
        name
        for name, student in students.items()
        if student.listed and name not in theirs and not _anything(folder, lecture_name, name)
    ]
    return summary


def _anything(folder: ClassFolder, lecture_name: str, student: str) -> bool:
    return not folder.read(student, lecture_name).nothing or bool(folder.instead(student, lecture_name))


def _matched(
    found: list[Delivery], directory: roster.Directory, students: dict[str, roster.Student], summary: Summary
) -> dict[str, list[Delivery]]:
    """The deliveries of each student. Those that don't clearly belong to one student are reported and left out."""
    theirs: dict[str, list[Delivery]] = defaultdict(list)
    for one in found:
        if one.kind is Kind.CANVAS:
            whose = directory.by_canvas(one.number, one.called)
        elif one.kind is Kind.MOODLE:
            whose = directory.by_name(one.called)
        else:
            whose = directory.by_login(one.called)
        what = one_line(f"{one.item} ({one.kind}: {one.called}{one.number and f', number {one.number}'})")
        others = directory.by_login(one.owner) - whose if one.owner else set()
        if others:
            summary.unmatched.append(f"{what} belongs to the user {one.owner}: somebody else's work, or a forgery")
        elif len(whose) == 1:
            theirs[whose.pop()].append(one)
        elif whose:
            summary.unmatched.append(f"{what} may belong to {' or '.join(sorted(whose))}")
        else:
            summary.unmatched.append(f"{what} matches nobody on the roster")
    for student, each in list(theirs.items()):
        if len(different := {(one.kind, one.number or one.called.casefold()) for one in each}) > 1:
            items = ", ".join(one_line(one.item) for one in each[:NAMED])
            summary.unmatched.append(f"{items} come from {len(different)} people, and all match {student}")
            del theirs[student]
    return {name: theirs[name] for name in students if name in theirs}


class _Student:
    """Takes one student's deliveries."""

    def __init__(
        self,
        folder: ClassFolder,
        lecture_name: str,
        student: str,
        source: Path,
        rules: due.Rules,
        dry_run: bool,
        summary: Summary,
    ) -> None:
        self._rules = rules
        self._folder, self._lecture_name, self._student, self._source = folder, lecture_name, student, source
        self._dry_run, self._summary = dry_run, summary
        if not dry_run:
            attempts.remove_partials(folder, lecture_name, student)
        self._attempts = attempts.read(folder, lecture_name, student)
        self._contents: dict[int, bytes] = {}

    def take(self, deliveries: list[Delivery]) -> None:
        """Store what's new, and make the last attempt with a notebook the one that's graded."""
        for one in sorted(deliveries, key=lambda one: one.order):
            notebook, content, name = self._content(one)
            digest = submission.digest(content)
            if self._known(one, digest):
                self._summary.known += 1
                continue
            number = max((attempt.number for attempt in self._attempts), default=0) + 1
            when = one.when.isoformat() if one.when else ""
            attempt = Attempt(
                number,
                digest,
                notebook,
                str(one.kind),
                self._source.resolve().name,
                name,
                one.order,
                when,
                one.late,
                one.secret,
            )
            if not self._dry_run:
                attempts.add(self._folder, self._lecture_name, self._student, attempt, content)
            self._contents[number] = content
            self._attempts = attempts.in_order([*self._attempts, attempt])
            self._summary.new.append((self._student, attempt))
        self._install()

    def _content(self, one: Delivery) -> tuple[bool, bytes, str]:
        """Whether it's a notebook; its content, or else a list of what was handed in instead; and its name."""
        if one.chosen.notebook:
            [(name, file)] = one.chosen.files
            try:
                return True, file.read(), one_line(name)
            except sources.Unusable as error:
                said = [f"{one_line(name)} ({error})"]
        else:
            said = few([one_line(name) for name, _ in one.chosen.files]) or ["an empty folder"]
        self._summary.remarks.append(f"{self._student} handed in {', '.join(said)}, but no {self._lecture_name}.ipynb")
        return False, "".join(f"{each}\n" for each in said).encode("utf-8", "backslashreplace"), ", ".join(said)

    def _known(self, one: Delivery, digest: str) -> bool:
        """Whether this was collected before, or is older than what was collected, as in an older copy of the source."""
        before = [attempt for attempt in self._attempts if attempt.kind == one.kind]
        same = [attempt for attempt in before if attempt.sha256 == digest]
        if one.marked:
            return any(attempt.order == one.order for attempt in same)
        return bool(same) and (before[-1].sha256 == digest or one.order <= before[-1].order)

    def _install(self) -> None:
        last = next((each for each in reversed(self._attempts) if each.notebook), self._attempts[-1])
        if last is not self._attempts[-1]:
            self._summary.remarks.append(
                f"{self._student}: attempt {last.number} counts, because the last one has no notebook"
            )
        there = self._folder.read(self._student, self._lecture_name)
        if self._rules.best and not self._contents and there.data is not None:
            return  # `course grade` chose what's there
        known = {attempt.sha256 for attempt in self._attempts}
        if not there.nothing and (there.data is None or submission.digest(there.data) not in known):
            self._summary.remarks.append(
                f"{self._folder.submission(self._student, self._lecture_name)} isn't what was collected, so it was "
                f"kept; to have attempt {last.number} graded instead, move that file away and repeat the command"
            )
        elif not self._dry_run:
            content = self._contents.get(last.number)
            if content is None:
                content = attempts.content_of(self._folder, self._lecture_name, self._student, last)
            attempts.install(self._folder, self._lecture_name, self._student, last, content)

"""Collects what students handed in with Canvas, Moodle, GitHub or nbgrader's exchange into a class's folder.

Every attempt is kept in ``attempts/`` and never overwritten; the last one with a notebook is copied to ``submitted/``.
Problems with one student's files, or with matching them to a student, are reported and don't affect anybody else. Safe
to repeat: what was collected before isn't collected again.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from autograder import CourseError, project
from autograder.grading import submission
from autograder.grading.exercises import ProblemSet
from autograder.grading.submission import HandedIn
from autograder.grading.text import counted, one_line
from course_utils import validating

from . import attempts, due, roster, sources
from .attempts import Attempt
from .folder import NAMED, ClassFolder, concerns_one, few, listed, some
from .sources import Delivery, Kind

_NOTEBOOKS = 50  # of one delivery that are named after other lectures and looked into


@dataclass
class Summary:
    """What was collected, or would be.

    ``new`` has pairs of a student and an attempt; ``known`` counts those that were collected before. ``unmatched`` says
    what couldn't be matched to one student, and ``strangers`` has what matches nobody. ``failed`` says whose submission
    couldn't be stored, and ``remarks`` what else an instructor should know. ``elsewhere`` says whose notebook is
    another lecture's, of which only the name is stored, and ``others`` has those lectures. ``missing`` has the students
    on the roster who have handed in nothing so far.
    """

    new: list[tuple[str, Attempt]] = field(default_factory=list)
    known: int = 0
    unmatched: list[str] = field(default_factory=list)
    strangers: list[Delivery] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    others: set[str] = field(default_factory=set)
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
    # A repository may be one for the whole semester, and has no notebook of this lecture yet.
    if early := [one.item for one in found if one.kind is Kind.REPOSITORY and one.chosen.others]:
        they = f"{len(early)} repositories have" if len(early) > 1 else "1 repository has"
        summary.remarks.append(f"{they} no {lecture_name}.ipynb, but other lectures' notebooks: {some(early)}")
    found = [one for one in found if not (one.kind is Kind.REPOSITORY and one.chosen.others)]
    # Canvas' own, which every teacher's "student view" makes.
    found = [
        one for one in found
        if one.kind is not Kind.CANVAS or one.called.casefold() != "studenttest"
        or directory.by_canvas(one.number, one.called)
    ]  # fmt: skip
    theirs = _matched(found, directory, students, summary, lambda name: folder.submission(name, lecture_name))
    total = sum(map(len, theirs.values()))
    done, lecture_of = 0, _lecture_of(folder)
    theirs = {name: [_by_content(one, lecture_name, lecture_of) for one in each] for name, each in theirs.items()}
    here = [one.chosen for each in theirs.values() for one in each]
    of_others = sorted({other for one in here for other in one.others})
    own_only = sum(bool(one.others) for one in here) > sum(one.notebook for one in here)
    if own_only:
        summary.remarks.append(
            f"most notebooks in {source.name} belong to {', '.join(of_others)}, so nothing but those of {lecture_name} "
            "is collected from it"
        )
    with contextlib.nullcontext() if dry_run else attempts.alone(folder, lecture_name, say):
        for student, each in theirs.items():
            try:
                _Student(folder, lecture_name, student, source, rules, dry_run, summary).take(each, own_only=own_only)
            except attempts.AttemptError as error:
                summary.failed.append(f"{student}: {error}")
            except OSError as error:
                if not concerns_one(error):
                    raise
                summary.failed.append(f"{student}: {one_line(str(error))}: move that away and repeat the command")
            done += len(each)
            progress(done, total)
    unknown = sum(not attempt.when for _, attempt in summary.new)
    if rules.due is not None and unknown:
        summary.remarks.append(
            f"{source.name} doesn't say when {counted(unknown, 'attempt')} came in, so nothing is taken off for "
            f"{'it' if unknown == 1 else 'them'}"
        )
    if late := [f"{student} (attempt {attempt.number})" for student, attempt in summary.new if attempt.late]:
        summary.remarks.append(f"Canvas calls {counted(len(late), 'attempt')} LATE: {', '.join(late)}")
    summary.missing = [
        name
        for name, student in students.items()
        if student.listed and name not in theirs and not _anything(folder, lecture_name, name)
    ]
    return summary


def _lecture_of(folder: ClassFolder) -> dict[str, str]:
    """The lecture of each exercise, the class's own included, as far as their checks have been built."""
    found: dict[str, str] = {}
    for place in (project.CHECKS, *([project.checks_of(folder.own)] if folder.own else [])):
        with contextlib.suppress(OSError, ValueError):
            lectures = json.loads((place / validating.FILE).read_bytes())
            found |= {name: lecture for lecture, names in lectures.items() for name in names}
    return found


def _anything(folder: ClassFolder, lecture_name: str, student: str) -> bool:
    return not folder.read(student, lecture_name).nothing or bool(folder.instead(student, lecture_name))


def advice(strangers: Sequence[Delivery], file: Path) -> list[str]:
    """What to write into the roster in ``file`` for students whose work matches nobody: a sentence for each system."""
    examples = {one.kind: one for one in reversed(strangers)}
    said = (
        [f"There is no {file}: write it first, with a line for each student"] if strangers and not file.exists() else []
    )
    for kind, one in sorted(examples.items()):
        called = one_line(one.called)
        if kind is Kind.CANVAS:
            what, column = f"Canvas' number, such as {one.number} for {called},", "lms_user_id"
        else:
            login = kind is Kind.EXCHANGE or (kind is Kind.REPOSITORY and one.called != one.item)
            what, column = f"that {'login' if login else 'name'}, such as {called},", "also"
        instead = ", in place of any number there" if kind is Kind.CANVAS else ""
        said.append(
            f"If one of those who match nobody is your student, write {what} into the student's column `{column}` in "
            f"{file}{instead}"
        )
    return said


def _matched(
    found: list[Delivery],
    directory: roster.Directory,
    students: dict[str, roster.Student],
    summary: Summary,
    place: Callable[[str], Path],
) -> dict[str, list[Delivery]]:
    """The deliveries of each student. Those that don't clearly belong to one student are reported and left out.

    ``place`` returns where a student's notebook belongs.
    """
    theirs: dict[str, list[Delivery]] = defaultdict(list)
    renumbered = {
        student: one
        for one in found
        if one.kind is Kind.CANVAS and not directory.by_number(one.number)
        for student in directory.numbered(one.called)
    }
    for one in found:
        if one.kind is Kind.CANVAS:
            whose = directory.by_canvas(one.number, one.called)
        elif one.kind is Kind.MOODLE:
            whose = directory.by_name(one.called)
        else:
            whose = directory.by_login(one.called)
        number = f", number {one.number}" if one.kind is Kind.CANVAS else ""
        what = one_line(f"{one.item} ({one.kind}: {one.called}{number})")
        others = directory.by_login(one.owner) - whose if one.owner else set()
        if others:
            summary.unmatched.append(f"{what} belongs to the user {one.owner}: somebody else's work, or a forgery")
        elif len(whose) == 1:
            [student] = whose
            if doubt := _doubt(one, student, directory, renumbered):
                summary.unmatched.append(f"{what} {doubt}")
            else:
                theirs[student].append(one)
        elif whose:
            names = " or ".join(sorted(whose))
            summary.unmatched.append(f"{what} may belong to {names}: {_which(one, sorted(whose), directory, place)}")
        else:
            why = _in_the_way(one, directory)
            summary.unmatched.append(f"{what} {why or 'matches nobody on the roster'}")
            summary.strangers += [] if why else [one]
    for student, each in list(theirs.items()):
        if len(different := {(one.kind, one.number or one.called.casefold()) for one in each}) > 1:
            items = ", ".join(one_line(one.item) for one in each[:NAMED])
            if {one.kind for one in each} == {Kind.CANVAS}:
                numbers = sorted({one.number for one in each})
                what_to_do = (
                    f"write the number of the right one, {' or '.join(numbers)}, into the column lms_user_id of "
                    f"{student}"
                )
                if any(student in directory.by_number(number) for number in numbers):
                    what_to_do += ", and leave no other in the column also"
            else:
                what_to_do = f"copy the right notebook to {place(student)}"
            summary.unmatched.append(
                f"{items} come from {len(different)} people, and all match {student}: {what_to_do}"
            )
            del theirs[student]
    return {name: theirs[name] for name in students if name in theirs}


def _doubt(one: Delivery, student: str, directory: roster.Directory, renumbered: Mapping[str, Delivery]) -> str:
    """Why a delivery with a student's Canvas ID may be somebody else's, and what to do; "" if nothing says so.

    ``renumbered`` has the deliveries with a student's name and a number that isn't on the roster.
    """
    if one.kind is not Kind.CANVAS or student not in directory.by_number(one.number):
        return ""
    called = one_line(one.called)
    same_name = directory.by_name(one.called)
    if student in same_name:
        return ""
    if same_name:
        other = " or ".join(sorted(same_name))
        return (
            f"has the number of {student} in the roster, but the name of {other}: if it's the work of {other}, remove "
            f"{one.number} from the line of {student} and write it into the column lms_user_id of {other}; if it's "
            f"the work of {student}, add {called} to the column also of {student}"
        )
    if student in renumbered:
        theirs = renumbered[student]
        return (
            f"has the number of {student} in the roster, but {one_line(theirs.item)} has the name of {student}: if "
            f"that one is the work of {student}, change {one.number} in the line of {student} to {theirs.number}, in "
            f"the column lms_user_id; if this one is, add {called} to the column also of {student}"
        )
    return ""


def _which(one: Delivery, whose: Sequence[str], directory: roster.Directory, place: Callable[[str], Path]) -> str:
    """What to do about a delivery that may belong to any of these students."""
    if one.kind is Kind.CANVAS:
        if directory.by_number(one.number):
            return f"remove {one.number} from the columns lms_user_id and also of everybody else"
        return f"write {one.number} into the column lms_user_id of the right one"
    if one.kind is Kind.MOODLE:
        called = one_line(one.called)
        names = {directory.name(student) for student in whose}
        if len(names) > 1:
            return f"write {called}, exactly so, into the column also of the right one"
        return (
            "their names are equal, and Moodle's zip says nothing else: in Moodle, open the submission to see whose it "
            f"is, and copy the notebook to {' or '.join(str(place(student)) for student in whose)}"
        )
    return f"remove {one_line(one.called)} from the columns login, email and also of everybody else"


def _in_the_way(one: Delivery, directory: roster.Directory) -> str:
    """Why a delivery is nobody's although it could be, and what to do; "" if it matches nobody."""
    if one.kind is Kind.REPOSITORY and len(one.chosen.files[0][1].parts) == 1:
        if one.item.lower().endswith(".zip"):
            return "is a zip inside this source: collect from that zip"
        return "doesn't say whose it is: collect from a zip, or from a folder with a folder for each student"
    if one.kind is Kind.CANVAS and (same := directory.numbered(one.called)):
        who = ", or of ".join(f"{name}, whose lms_user_id is {number}" for name, number in same.items())
        return (
            f"has the name of {who}: if it's the work of {' or '.join(same)}, change that number in the roster to "
            f"{one.number}; if not, add a line for this student, with {one.number} as lms_user_id"
        )
    return ""


def _by_content(one: Delivery, lecture_name: str, lecture_of: Mapping[str, str]) -> Delivery:
    """A delivery whose notebook belongs to the lecture that its exercises are from, whatever its name says.

    ``lecture_of``: the lecture of each exercise. If a notebook has none, or can't be read, its name decides.
    """

    def inside(file: sources.File) -> list[str]:
        try:
            cells = submission.parse(HandedIn(Path(), data=file.read()), ProblemSet(lecture_name, ())).cells
        except sources.Unusable:
            return []
        names = [cell.name.removeprefix("test_") for cell in cells]
        found = Counter(lecture_of[name] for name in names if name in lecture_of)
        return [name for name, _ in found.most_common()]

    if not (one.chosen.notebook or one.chosen.others):
        return one
    found = [(each, inside(each[1])) for each in one.chosen.files[:_NOTEBOOKS]]
    own = [each for each, lectures in found if lecture_name in lectures]
    if own:
        return replace(one, chosen=sources.Chosen(True, (own[0],), besides=one.chosen.besides))
    if one.chosen.notebook and found[0][1]:
        return replace(one, chosen=replace(one.chosen, notebook=False, others=(found[0][1][0],)))
    return one


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

    def take(self, deliveries: list[Delivery], *, own_only: bool = False) -> None:
        """Store what's new, and make the last attempt with a notebook the one that's graded.

        Of another lecture's notebook, only the name is stored, so that nobody is told that nothing was handed in. With
        ``own_only``, nothing but this lecture's notebooks is: the source belongs to another lecture.
        """
        for one in sorted(deliveries, key=lambda one: one.order):
            if own_only and not one.chosen.notebook:
                self._summary.others.update(one.chosen.others)
                continue
            notebook, content, name = self._refused(one) if one.chosen.others else self._content(one)
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
            self._passed_over(one, content, name)
            if not self._dry_run:
                attempts.add(self._folder, self._lecture_name, self._student, attempt, content)
            self._contents[number] = content
            self._attempts = attempts.in_order([*self._attempts, attempt])
            self._summary.new.append((self._student, attempt))
        if self._attempts:
            self._install()

    def _passed_over(self, one: Delivery, content: bytes, name: str) -> None:
        """Say which other notebooks of the lecture a student handed in together with the one that's collected."""
        if one.kind is not Kind.MOODLE or not one.chosen.notebook:
            return
        others = []
        for called, file in one.chosen.besides:
            with contextlib.suppress(sources.Unusable):
                if file.read() != content:
                    others.append(one_line(called))
        if others:
            place = self._folder.submission(self._student, self._lecture_name)
            self._summary.remarks.append(
                f"{self._student} handed in {name} and {listed(others)} together: {name} is collected; if another one "
                f"counts, copy it from {self._source} to {place}"
            )

    def _refused(self, one: Delivery) -> tuple[bool, bytes, str]:
        """What `_content` returns for other lectures' notebooks, after reporting them."""
        others = one.chosen.others
        files = listed([one_line(name) for name, _ in one.chosen.files])
        what = "the notebook" if len(one.chosen.files) == 1 else "notebooks"
        self._summary.elsewhere.append(
            f"{self._student} handed in {files}: {what} of {', '.join(others)}, not of {self._lecture_name}"
        )
        self._summary.others.update(others)
        return False, f"{files} ({what} of {', '.join(others)})\n".encode("utf-8", "backslashreplace"), files

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
        place = self._folder.submission(self._student, self._lecture_name)
        self._summary.remarks.append(
            f"{self._student} handed in {', '.join(said)}, but no {place.name}: if one of these is the notebook, copy "
            f"it from {self._source} to {place}"
        )
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
        if there.data is not None:
            kept = self._keep_time(submission.digest(there.data), last)
            if kept is None:
                return
            last = kept
        known = {attempt.sha256 for attempt in self._attempts}
        if not there.nothing and (there.data is None or submission.digest(there.data) not in known):
            self._summary.remarks.append(
                f"{self._folder.submission(self._student, self._lecture_name)} isn't what was collected, so it was "
                f"kept; to have attempt {last.number} graded instead, move that file away and repeat the command"
            )
        elif not self._dry_run:
            if there.data is not None and not self._contents and submission.digest(there.data) != last.sha256:
                self._summary.remarks.append(f"{self._student}: attempt {last.number} is in submitted/ again")
            content = self._contents.get(last.number)
            if content is None:
                content = attempts.content_of(self._folder, self._lecture_name, self._student, last)
            attempts.install(self._folder, self._lecture_name, self._student, last, content)

    def _keep_time(self, digest: str, last: Attempt) -> Attempt | None:
        """The last attempt, after a time that a person wrote beside what's graded has been stored with its attempt.

        None, after a remark, if that time can't be read and would be replaced.
        """
        shown = next((each for each in reversed(self._attempts) if each.sha256 == digest), None)
        if shown is None:
            return last
        if unclear := due.unclear(self._folder, self._lecture_name, self._student):
            self._summary.remarks.append(f"{self._student}: {unclear}")
            return None if shown is last else last
        when = due.by_hand(self._folder, self._lecture_name, self._student, self._attempts)
        if when is None:
            return last
        if self._dry_run:
            timed = replace(shown, when=when.isoformat())
        else:
            timed = attempts.set_time(self._folder, self._lecture_name, self._student, shown, when)
        self._attempts = [timed if each is shown else each for each in self._attempts]
        return timed if shown is last else last

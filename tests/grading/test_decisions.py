"""What people decide is kept, counts everywhere, and is asked about again where it is about other work."""

from __future__ import annotations

import asyncio
import copy
import csv
import io
import json
import logging
import shlex
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import nbformat
import pytest
from nbgrader.api import Gradebook
from typer.testing import CliRunner

from autograder import cli, project
from autograder.authoring import checks
from autograder.grading import source, text
from autograder.grading.marks import Mark, Result, State
from autograder.records import decisions, due, formgrader, gradebook, results, show
from autograder.records.folder import ClassFolder

NAME = "00_napkin_math"
LECTURE = source.read(project.SOLUTIONS / f"{NAME}.py")
FIRST, SECOND = LECTURE.exercises[:2]
WHOLE = LECTURE.points


def graded(student: str, work: str, *failed: str, notes: tuple[str, ...] = (), grader: str = "") -> Result:
    """A result for some work: what failed has no points."""
    marks = tuple(Mark(e.name, 0.0 if e.name in failed else e.points, e.points) for e in LECTURE.exercises)
    state = State.NEEDS_REVIEW if notes else State.GRADED
    return Result(student, NAME, state, f"key of {work}{grader}", marks, notes, work)


class Class:
    """A class whose results are written by hand, for the commands to find."""

    def __init__(self, root: Path) -> None:
        self.root, self.folder = root, ClassFolder(root)
        (root / "submitted").mkdir()

    def has(self, *found: Result) -> None:
        for one in found:
            results.write(self.folder, one)

    def run(self, command: str, *arguments: str, fails: bool = False) -> str:
        ran = CliRunner().invoke(cli.app, [command, str(self.root), NAME, *arguments])
        assert ran.exit_code == (1 if fails else 0), ran.output
        return " ".join(ran.output.split())

    def decide(self, *arguments: str, fails: bool = False) -> str:
        return self.run("decide", *arguments, fails=fails)

    def stands(self, student: str) -> Result:
        return decisions.table(self.folder, NAME, [student])[student]

    def mark(self, student: str) -> Mark:
        """Their mark in the first exercise."""
        return self.stands(student).marks[0]

    def records(self, student: str) -> list[decisions.Decision]:
        found, problems = decisions.read(self.folder, NAME, student)
        assert not problems
        return found

    def exported(self, student: str) -> dict[str, Any]:
        self.run("export", "--format", "json")
        content = json.loads((self.root / "exports" / f"{NAME}.json").read_text())
        [found] = [one for one in content["students"] if one["student"] == student]
        return dict(found)

    def in_formgrader(self, student: str, work: Callable[[Any, Any], None]) -> None:
        """Change the first exercise's grade and comment as Formgrader does."""
        with Gradebook(self.folder.gradebook_url) as book:
            grade = book.find_grade(f"test_{FIRST.name}", NAME, NAME, student)
            work(grade, book.find_comment(FIRST.name, NAME, NAME, student))
            book.db.commit()

    def gives(self, student: str, points: float | None, comment: str = "") -> None:
        def work(grade: Any, its_comment: Any) -> None:
            grade.manual_score, grade.needs_manual_grade = points, False
            its_comment.manual_comment = comment or its_comment.manual_comment

        self.in_formgrader(student, work)

    def nbgraders(self, student: str) -> tuple[float, float | None, bool]:
        """What nbgrader exports, the points by hand in the first exercise, and whether it waits for somebody."""
        with Gradebook(self.folder.gradebook_url) as book:
            handed_in = book.find_submission(NAME, student)
            by_hand = book.find_grade(f"test_{FIRST.name}", NAME, NAME, student).manual_score
            return handed_in.score, by_hand, handed_in.needs_manual_grade


@pytest.fixture(autouse=True, scope="module")
def version() -> Iterator[None]:
    """nbgrader asks another program for it whenever it makes a gradebook, which takes a second."""
    with gradebook.without_alembics_command():
        yield


@pytest.fixture
def course(tmp_path: Path) -> Class:
    return Class(tmp_path)


def test_points_and_comments_reach_every_page_and_export(course: Class) -> None:
    course.has(graded("ada", "a", FIRST.name), graded("bob", "b"))
    said = course.decide("ada", FIRST.name, "--points", "0.5", "--comment", "half <of> it\nis there", "--by", "Tess")
    assert f"ada: graded, {WHOLE - FIRST.points + 0.5:g} of {WHOLE:g} points" in said
    course.decide("ada", "--comment", "Well done.", "--by", "Tess")
    [points, whole] = course.records("ada")
    assert (points.who, points.points, points.found, points.key) == ("Tess", 0.5, 0.0, "key of a")
    assert points.when <= whole.when and whole.exercise == ""

    for command in ("grade", "feedback", "report", "export"):
        course.run(command)
    page = course.folder.feedback("ada", NAME).read_text()
    assert f"{WHOLE - FIRST.points + 0.5:g} of {WHOLE:g} points" in page and "Well done." in page
    assert "half &lt;of&gt; it\nis there" in page and "A person gave these points; the tests gave 0." in page
    assert "✗*" in course.folder.report(NAME).read_text()
    rows = list(csv.DictReader(io.StringIO((course.root / "exports" / f"{NAME}.questions.csv").read_text())))
    [row] = [row for row in rows if (row["student"], row["exercise"]) == ("ada", FIRST.name)]
    assert (row["points"], row["points by tests"], row["comment"]) == ("0.5", "0", "half <of> it\\nis there")
    for ending in ("csv", "canvas.csv", "moodle.csv"):
        rows = (course.root / "exports" / f"{NAME}.{ending}").read_text().splitlines()
        assert f'"{WHOLE - FIRST.points + 0.5:g}"' in rows[-2].split(","), (ending, rows)
    assert course.exported("ada")["comment"] == "Well done."
    assert course.nbgraders("ada") == (WHOLE - FIRST.points + 0.5, 0.5, False)
    assert course.nbgraders("bob") == (WHOLE, None, False)
    assert len(course.records("ada")) == 2

    course.decide("ada", FIRST.name, "--withdraw")
    assert course.mark("ada") == graded("ada", "a", FIRST.name).marks[0]
    assert course.nbgraders("ada") == (WHOLE - FIRST.points, None, False)
    assert len(course.records("ada")) == 3


def test_what_is_given_in_formgrader_becomes_a_record_before_anything_else_happens(course: Class) -> None:
    course.has(graded("ada", "a", FIRST.name), graded("bob", "b", FIRST.name))
    course.run("grade")
    course.gives("ada", 0.5, "nearly")
    assert "1 decision recorded from Formgrader" in course.run("export")
    [record] = course.records("ada")
    assert (record.who, record.points, record.comment, record.key) == ("Formgrader", 0.5, "nearly", "key of a")
    assert course.exported("ada")["points"] == WHOLE - FIRST.points + 0.5
    for command in ("feedback", "report", "export", "grade"):
        course.run(command)
    assert len(course.records("ada")) == 1 and course.nbgraders("ada")[1] == 0.5

    course.has(graded("bob", "b2", FIRST.name, grader="later"))  # while somebody still looks at the earlier work
    course.gives("bob", 0.25)
    course.run("grade")
    [record] = course.records("bob")
    assert (record.points, record.key, record.submission) == (0.25, "key of b", "b")
    assert course.stands("bob").state is State.NEEDS_REVIEW

    course.gives("ada", None)  # taken back in Formgrader
    course.run("grade")
    assert course.mark("ada").points == 0.0 and course.mark("ada").comment == "nearly"

    def extra(grade: Any, comment: Any) -> None:
        grade.extra_credit = 0.25

    course.in_formgrader("ada", extra)
    course.run("feedback")
    assert course.mark("ada").points == 0.25


def test_whoever_decides_last_counts_wherever_they_do_it(course: Class) -> None:
    course.has(graded("ada", "a", FIRST.name))
    course.run("grade")
    for given, command in ((0.5, 1.0), (0.5, 0.75)):  # the same points again are another decision
        course.gives("ada", given)
        course.run("report")
        assert course.mark("ada").points == given
        course.decide("ada", FIRST.name, "--points", str(command))
        assert course.mark("ada").points == command == course.nbgraders("ada")[1]
        course.run("grade")
        assert course.mark("ada").points == command
    assert [each.points for each in course.records("ada")] == [0.5, 1.0, 0.5, 0.75]


def test_a_gradebook_that_is_deleted_takes_nothing_with_it(course: Class) -> None:
    course.has(graded("ada", "a", FIRST.name, notes=("look",)), graded("bob", "b"))
    course.run("grade")
    course.gives("ada", 0.5, "nearly")
    course.decide("ada", "--reviewed")
    before = course.stands("ada"), course.nbgraders("ada")
    for path in (course.root / "gradebook.db", course.folder.results / NAME / "ada.json"):
        path.unlink()
    course.has(graded("ada", "a", FIRST.name, notes=("look",)))
    course.run("grade")
    assert (course.stands("ada"), course.nbgraders("ada")) == before
    assert before[1] == (WHOLE - FIRST.points + 0.5, 0.5, False)
    with Gradebook(course.folder.gradebook_url) as book:
        assert book.find_comment(FIRST.name, NAME, NAME, "ada").manual_comment == "nearly"


def test_a_gradebook_that_knows_of_no_records_is_taken_over(course: Class) -> None:
    """As versions before this one wrote it, or nbgrader itself."""
    course.has(graded("ada", "a", FIRST.name), graded("bob", "b", FIRST.name))
    course.run("grade")
    course.gives("ada", 0.5)
    course.gives("bob", 0.5)
    with Gradebook(course.folder.gradebook_url) as book:
        gradebook._WRITTEN.drop(book.engine)
        book.find_grade(f"test_{FIRST.name}", NAME, NAME, "bob").auto_score = 1.0  # not what the result says now
        book.db.commit()
    course.run("grade")
    assert course.stands("ada").state is State.GRADED and course.mark("ada").points == 0.5
    assert course.stands("bob").state is State.NEEDS_REVIEW
    assert [len(course.records(name)) for name in ("ada", "bob")] == [1, 1]


@pytest.mark.parametrize(
    ("given", "then", "now", "counts", "asked"),
    [
        (0.5, 0.0, 1.0, 1.0, True),  # a better answer isn't hidden by the old points
        (0.75, 0.0, 0.5, 0.75, True),  # nor are those lost to a worse one
        (0.0, 1.0, 1.0, 0.0, True),  # what was taken away doesn't come back by handing in again
        (1.0, 0.0, 1.0, 1.0, False),  # the tests now agree
    ],
)
def test_a_decision_about_other_work_is_asked_about_with_both_values(
    course: Class, given: float, then: float, now: float, counts: float, asked: bool
) -> None:
    def handed_in(work: str, points: float) -> Result:
        made = graded("ada", work)
        return replace(made, marks=(replace(made.marks[0], points=points), *made.marks[1:]))

    course.has(handed_in("first", then))
    course.decide("ada", FIRST.name, "--points", str(given), "--by", "Tess")
    course.has(handed_in("second", now))
    said = course.run("grade")
    assert course.mark("ada").points == counts
    assert course.nbgraders("ada")[0] == WHOLE - FIRST.points + counts == course.exported("ada")["points"]
    assert course.nbgraders("ada")[2] is asked and (course.stands("ada").state is State.NEEDS_REVIEW) is asked
    if not asked:
        return
    assert f"Tess gave {text.counted(given, 'point')}" in said, said
    assert f"the tests gave {then:g} of {FIRST.points:g}" in said, said
    assert f"now the tests give {now:g} of {FIRST.points:g}" in said
    assert f"{text.counted(counts, 'point')} count{'s' if counts == 1 else ''}" in said
    course.decide("ada", FIRST.name, "--points", "0.6")
    assert course.stands("ada").state is State.GRADED and course.mark("ada").points == 0.6
    assert course.nbgraders("ada")[2] is False


@pytest.mark.parametrize(("given", "points", "worth"), [(1.0, 1.0, 2.0), (0.5, 0.0, 2.0), (1.0, 0.5, 1.0)])
def test_a_decision_from_before_a_check_was_corrected_is_asked_about_with_both_values(
    course: Class, given: float, points: float, worth: float
) -> None:
    made = graded("ada", "same work", FIRST.name)
    course.has(made)
    course.decide("ada", FIRST.name, "--points", str(given), "--by", "Tess")
    assert course.stands("ada").state is State.GRADED
    now = replace(made.marks[0], points=points, worth=worth)
    course.has(replace(made, key="corrected", marks=(now, *made.marks[1:])))
    [note] = course.stands("ada").notes
    assert f"Tess gave {text.counted(given, 'point')}" in note and "when the tests gave 0 of 1" in note
    assert f"now the tests give {points:g} of {worth:g}" in note and course.mark("ada").open


def test_a_comment_on_other_work_is_asked_about(course: Class) -> None:
    (course.root / "roster.csv").write_text("id\nada\nbob\nlater\n", encoding="utf-8")
    course.decide("later", "--comment", "Get well soon.")  # on nothing that was handed in
    course.has(graded("ada", "a"), graded("bob", "b"), graded("later", "l"))
    for about in ([], [FIRST.name]):
        course.decide("ada", *about, "--comment", "Elegant!", "--by", "Tess")
    course.decide("bob", FIRST.name, "--points", f"{FIRST.points:g}", "--comment", "Elegant!", "--by", "Tess")
    course.has(*(graded(name, name[0], grader="new") for name in ("ada", "bob", "later")))
    assert {course.stands(name).state for name in ("ada", "bob", "later")} == {State.GRADED}

    course.has(graded("ada", "a2"), graded("bob", "b2"))  # the tests give bob what Tess gave
    course.decide("ada", "--until", "2026-11-30")  # says nothing about the comment
    said = course.run("grade")
    old = "was written for another submission; it stays on the student's page until somebody decides again"
    whole, first = f"the comment on the whole work {old}", f"{FIRST.name}: the comment {old}"
    for name, notes in (("ada", (whole, first)), ("bob", (first,))):
        assert course.stands(name).notes == notes and course.nbgraders(name)[2]
        assert all(note in said for note in notes)
    course.run("feedback")
    assert course.folder.feedback("ada", NAME).read_text().count("Elegant!") == 2

    course.gives("ada", None)  # somebody finishes the review in Formgrader
    course.decide("bob", FIRST.name, "--comment", "Still elegant.")
    course.run("grade")
    for name, comment in (("ada", "Elegant!"), ("bob", "Still elegant.")):
        assert (course.stands(name).state, course.mark(name).comment) == (State.GRADED, comment)
    assert course.stands("ada").until == "2026-11-30"

    course.has(graded("ada", "a3"), graded("bob", "b3"))
    course.decide("ada", "--reviewed")
    course.decide("bob", FIRST.name, "--withdraw")
    assert course.stands("ada").state is course.stands("bob").state is State.GRADED
    assert (course.mark("ada").comment, course.mark("bob").comment) == ("Elegant!", "")


def test_a_comment_whose_mistake_is_gone_leaves_the_page_and_is_mentioned(course: Class) -> None:
    """After a review nobody notices it any more, so it may not stay on a page with all points."""
    gone = "was written for another submission, which didn't get all the points; this one does"
    for student in ("ada", "bob", "cy"):
        course.has(graded(student, student, FIRST.name, SECOND.name))
    course.decide("ada", FIRST.name, "--comment", "Please don't import scipy.")
    course.decide("ada", "--comment", "Start earlier next time.")
    course.decide("bob", FIRST.name, "--points", "0.5", "--comment", "half of it")
    course.decide("cy", FIRST.name, "--points", "0.5", "--comment", "half of it")
    course.run("grade")
    course.has(graded("ada", "a2"), graded("bob", "b2", SECOND.name), graded("cy", "c2", FIRST.name))
    said = course.run("grade")
    assert f"the comment on the whole work {gone}" in said and said.count(f"{FIRST.name}: the comment {gone}") == 2
    assert f"{FIRST.name}: the comment was written for another submission; it stays on the student's page" in said
    assert course.nbgraders("bob")[1] == FIRST.points  # the better points, as the note says, but not the comment
    with Gradebook(course.folder.gradebook_url) as book:
        assert book.find_comment(FIRST.name, NAME, NAME, "bob").manual_comment is None
    assert "comment:" not in course.run("show", "--student", "ada")
    assert "comment: half of it" in course.run("show", "--student", "cy")
    course.decide("ada", "--reviewed")
    course.decide("bob", "--reviewed")
    course.gives("cy", 0.75)  # which says nothing about the comment
    course.run("feedback")
    pages = {name: course.folder.feedback(name, NAME).read_text() for name in ("ada", "bob", "cy")}
    assert "scipy" not in pages["ada"] and "earlier" not in pages["ada"] and "half of it" not in pages["bob"]
    assert "half of it" in pages["cy"]
    assert course.stands("ada").state is course.stands("bob").state is State.GRADED

    # Deciding about the points alone, here or in Formgrader, doesn't bring it back; a comment on this work stays.
    course.decide("bob", FIRST.name, "--points", "0.75")
    assert (course.mark("bob").points, course.mark("bob").comment) == (0.75, "")
    course.has(graded("cy", "c3"))
    course.run("grade")
    course.gives("cy", 0.5)
    course.run("grade")
    assert (course.mark("cy").points, course.mark("cy").comment) == (0.5, "")
    course.decide("ada", FIRST.name, "--comment", "Elegant!")
    assert course.mark("ada").comment == "Elegant!" and course.stands("ada").state is State.GRADED
    assert len(course.records("ada")) == 4  # what was decided before is still on record


def test_a_finished_review_opens_again_only_for_what_has_changed(course: Class) -> None:
    """Another exercise's corrected check asks nobody about this one's points; its own does."""
    notes = (f"{FIRST.name}: it uses a package that isn't here",)
    third = LECTURE.exercises[2].name
    course.has(graded("eva", "first", FIRST.name, notes=notes), graded("bob", "b", FIRST.name, notes=notes))
    course.decide("eva", FIRST.name, "--points", "0.5", "--by", "Tess")
    course.decide("eva", "--comment", "Nearly.")
    course.has(graded("eva", "second", third, notes=notes))
    assert len(course.stands("eva").notes) == 3
    for name in ("eva", "bob"):
        course.decide(name, "--reviewed")
    before = course.mark("eva")
    assert not before.open
    # The checks of two other exercises are corrected: one gives eva more points, the other gives bob fewer.
    course.has(graded("eva", "second", notes=notes, grader="new"))
    course.has(graded("bob", "b", FIRST.name, SECOND.name, notes=notes, grader="new"))
    for name in ("eva", "bob"):
        assert (course.stands(name).state, course.stands(name).notes) == (State.GRADED, ()), name
    assert course.mark("eva") == before
    # Now this exercise's.
    course.has(graded("eva", "second", FIRST.name, notes=notes, grader="newer"))
    course.has(graded("bob", "b", notes=notes, grader="newer"))
    for name in ("eva", "bob"):
        assert course.stands(name).state is State.NEEDS_REVIEW and notes[0] in course.stands(name).notes
    # A note about one more exercise is asked about alone.
    more = (*notes, f"{SECOND.name}: it ended")
    course.has(graded("bob", "b", FIRST.name, SECOND.name, notes=more, grader="new"))
    assert course.stands("bob").notes == more[1:]
    course.decide("bob", "--reviewed")
    assert course.stands("bob").state is State.GRADED
    course.has(graded("bob", "other work", FIRST.name, SECOND.name, notes=more))
    assert course.stands("bob").notes == more


def test_a_new_grader_that_says_the_same_asks_nobody(course: Class) -> None:
    course.has(graded("ada", "a", FIRST.name, notes=("look",)))
    course.decide("ada", FIRST.name, "--points", "0.5", "--reviewed")
    for again in (
        graded("ada", "a", FIRST.name, notes=("look",), grader="new"),
        graded("ada", "a", FIRST.name, grader="newer"),
    ):
        course.has(again)
        assert (course.stands("ada").state, course.mark("ada").points) == (State.GRADED, 0.5)
    for other in (
        graded("ada", "a", FIRST.name, notes=("look", "and here"), grader="new"),
        graded("ada", "a2", FIRST.name, notes=("look",)),
        graded("ada", "a", FIRST.name, SECOND.name, notes=("look",), grader="new"),
    ):
        course.has(other)
        assert course.stands("ada").state is State.NEEDS_REVIEW


def test_a_review_can_be_finished_by_command_and_in_formgrader(course: Class) -> None:
    for student in ("ada", "bob", "cy"):
        course.has(graded(student, student, FIRST.name, notes=("look",)))
    course.run("grade")
    assert course.nbgraders("ada")[2]
    assert "ada: graded" in course.decide("ada", "--reviewed")

    def looked(grade: Any, comment: Any) -> None:
        grade.needs_manual_grade = False

    def autograded(grade: Any, comment: Any) -> None:  # as `nbgrader autograde` does
        grade.needs_manual_grade, comment.auto_comment = False, None

    course.in_formgrader("bob", looked)
    course.in_formgrader("cy", autograded)
    for _ in range(2):
        course.run("grade")
        assert [course.stands(each).state is State.GRADED for each in ("ada", "bob", "cy")] == [True, True, False]
        assert [course.nbgraders(each)[2] for each in ("ada", "bob", "cy")] == [False, False, True]
    assert course.records("bob")[0].reviewed and course.records("bob")[0].who == "Formgrader"
    assert results.read(course.folder, NAME, "ada") == graded("ada", "ada", FIRST.name, notes=("look",))


def test_a_command_that_is_stopped_after_recording_does_not_record_again(
    course: Class, monkeypatch: pytest.MonkeyPatch
) -> None:
    course.has(graded("ada", "a", FIRST.name))
    course.run("grade")
    course.gives("ada", 0.5)
    with monkeypatch.context() as patch:
        patch.setattr(gradebook, "_remember", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            gradebook.take_over(course.folder, LECTURE)
    assert [each.points for each in course.records("ada")] == [0.5]
    course.run("grade")
    assert [each.points for each in course.records("ada")] == [0.5] and course.mark("ada").points == 0.5


def test_an_old_value_is_confirmed_in_formgrader_by_saving_it_again(course: Class) -> None:
    course.has(graded("ada", "a", FIRST.name))
    course.decide("ada", FIRST.name, "--points", "0.5")
    course.has(graded("ada", "a2", FIRST.name))
    course.run("grade")
    assert course.nbgraders("ada") == (WHOLE - FIRST.points + 0.5, 0.5, True)
    course.gives("ada", 0.5)
    course.run("grade")
    assert course.stands("ada").state is State.GRADED and course.mark("ada").points == 0.5
    assert course.nbgraders("ada")[2] is False


def test_confirming_one_of_two_old_values_leaves_the_other_to_be_confirmed(course: Class) -> None:
    course.has(graded("ada", "a", FIRST.name, SECOND.name))
    for exercise in (FIRST, SECOND):
        course.decide("ada", exercise.name, "--points", "0.5")
    course.has(graded("ada", "a2", FIRST.name, SECOND.name))
    course.run("grade")
    for exercise, state in ((FIRST, State.NEEDS_REVIEW), (SECOND, State.GRADED)):
        with Gradebook(course.folder.gradebook_url) as book:
            grade = book.find_grade(f"test_{exercise.name}", NAME, NAME, "ada")
            assert (grade.manual_score, grade.needs_manual_grade) == (0.5, True)
            grade.needs_manual_grade = False
            book.db.commit()
        gradebook.take_over(course.folder, LECTURE)
        assert course.stands("ada").state is state
        last = [each for each in course.records("ada") if each.exercise == exercise.name][-1]
        assert (last.points, last.key) == (0.5, "key of a2")


class Handler:
    """What nbgrader's handlers use of Formgrader's server and of a request."""

    current_user, xsrf_token, settings = "tess", b"", MappingProxyType({"nbgrader_bad_setup": False})

    def __init__(self, course: Class, book: Any, body: dict[str, Any]) -> None:
        self.gradebook, self.body, self.answers = book, body, list[str]()
        self.coursedir = SimpleNamespace(root=str(course.root))
        self.log = logging.getLogger("formgrader")

    def get_json_body(self) -> dict[str, Any]:
        return self.body

    def write(self, text: str) -> None:
        self.answers.append(text)


@pytest.fixture
def saves(course: Class, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Save points and a comment for the first exercise, as requests to the server that records them."""
    for each in (formgrader.GradeHandler, formgrader.CommentHandler):
        monkeypatch.setattr(each, "put", each.put)  # as before, afterwards
    formgrader._load_jupyter_server_extension(None)

    def save(student: str, points: float, comment: str) -> list[str]:
        with Gradebook(course.folder.gradebook_url) as book:
            grade = Handler(course, book, {"manual_score": points})
            number = book.find_grade(f"test_{FIRST.name}", NAME, NAME, student).id
            asyncio.run(formgrader.GradeHandler.put(grade, number))
            commented = Handler(course, book, {"manual_comment": comment})
            number = book.find_comment(FIRST.name, NAME, NAME, student).id
            asyncio.run(formgrader.CommentHandler.put(commented, number))
        return grade.answers + commented.answers

    return save


def test_deleting_the_gradebook_right_after_formgrader_loses_nothing(
    course: Class, saves: Callable[..., list[str]]
) -> None:
    course.has(graded("ada", "a", FIRST.name), graded("bob", "b"))
    course.run("grade")
    answers = saves("ada", 0.5, "nearly")
    (course.root / "gradebook.db").unlink()
    assert [json.loads(each)["student"] for each in answers] == ["ada", "ada"]
    course.run("grade")
    assert (course.mark("ada").points, course.mark("ada").comment) == (0.5, "nearly")
    assert course.nbgraders("ada") == (WHOLE - FIRST.points + 0.5, 0.5, False)
    with Gradebook(course.folder.gradebook_url) as book:
        assert book.find_comment(FIRST.name, NAME, NAME, "ada").manual_comment == "nearly"
    assert {each.who for each in course.records("ada")} == {"Formgrader"} and not course.records("bob")


def test_what_formgrader_saves_is_answered_even_if_it_cannot_be_recorded_yet(
    course: Class, saves: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    course.has(graded("ada", "a", FIRST.name))
    course.run("grade")
    with monkeypatch.context() as patch:
        patch.setattr(decisions, "write", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        assert len(saves("ada", 0.5, "nearly")) == 2
    assert "No space left on device" in caplog.text and not course.records("ada")
    course.run("report")
    assert (course.mark("ada").points, course.mark("ada").comment) == (0.5, "nearly")


def test_an_extension_needs_no_submission_and_is_shown(course: Class) -> None:
    (course.root / "roster.csv").write_text("id\nada\n", encoding="utf-8")
    course.decide("ada", "--until", "2026-11-30")
    course.decide("ada", "--comment", "get well soon")  # changes nothing about it
    for command in ("feedback", "report"):
        course.run(command)
    assert "You may hand this in until 2026-11-30." in course.folder.feedback("ada", NAME).read_text()
    assert "not submitted, until 2026-11-30" in course.folder.report(NAME).read_text()
    assert course.exported("ada")["until"] == "2026-11-30" and course.exported("ada")["points"] is None
    course.decide("ada", "--withdraw")
    course.run("feedback")
    assert "until" not in course.folder.feedback("ada", NAME).read_text() and course.exported("ada")["until"] == ""


def test_an_extension_ends_after_the_due_date_and_is_said(course: Class) -> None:
    (course.root / "roster.csv").write_text("id,extra_days\nada,\nbob,3\n", encoding="utf-8")
    (course.root / due.SETTINGS).write_text(
        f'timezone = "Europe/Berlin"\n[due]\n{NAME} = 2026-11-30 20:00:00\n', encoding="utf-8"
    )
    assert "may hand in until the end of 2026-12-01" in course.decide("ada", "--until", "2026-12-01")
    assert "it is due on 2026-11-30 anyway" in course.decide("ada", "--until", "2025-12-01", fails=True)
    assert "it is due on 2026-12-03 anyway" in course.decide("bob", "--until", "2026-12-01", fails=True)
    assert course.stands("ada").until == "2026-12-01" and course.stands("bob").until == ""
    assert "07.12.2026 is not a date" in course.decide("ada", "--until", "07.12.2026", fails=True)
    (course.root / due.SETTINGS).write_text(f"[due]\n{NAME} = 2026-12-02\n", encoding="utf-8")
    assert "it is due on 2026-12-02 anyway" in course.decide("ada", "--until", "2026-12-02", fails=True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["ada"], "nothing is decided"),
        (["ada", "nothing", "--points", "1"], "has no exercise 'nothing'"),
        (["ada", "--points", "1"], "points can only be given for an exercise"),
        (["ada", FIRST.name, "--points", "nan"], "nan points cannot be given"),
        (["ada", FIRST.name, "--points", "-1"], "-1 points cannot be given"),
        (["ada", FIRST.name, "--withdraw", "--points", "1"], "leave out --points"),
        (["ada", FIRST.name, "--reviewed"], "a review is of the whole submission"),
        (["ada", FIRST.name, "--until", "2099-12-01"], "an extension is for the whole lecture"),
        (["ada", "--until", "tomorrow"], "tomorrow is not a date"),
        (["adda", FIRST.name, "--points", "1"], "there is no student 'adda'"),
        (["../ada", "--until", "2026-11-30"], "there is no student '../ada'"),
        (["absent", FIRST.name, "--points", "1"], "absent has handed in no notebook for 00_napkin_math"),
        (["absent", "--reviewed"], "has handed in no notebook"),
        (["Ada", "--reviewed"], "→ ada? `course show "),
        (["Lovelace, A.", "--reviewed"], "→ absent? `course show "),
    ],
)
def test_what_cannot_be_decided_is_refused_and_nothing_is_recorded(
    course: Class, arguments: list[str], says: str
) -> None:
    course.has(graded("ada", "a"))
    (course.root / "roster.csv").write_text('id,name\nabsent,"Lovelace, A."\n', encoding="utf-8")
    said = course.decide(*arguments, fails=True)
    assert says in said and "→" in said
    assert not course.folder.decisions.exists()


def test_the_command_says_what_it_has_stored_or_withdrawn(course: Class) -> None:
    course.has(graded("ada", "a", FIRST.name))
    (course.root / "roster.csv").write_text("id\nabsent\n", encoding="utf-8")
    assert f"recorded: 0.5 points, a comment for {FIRST.name}" in course.decide(
        "ada", FIRST.name, "--points", "0.5", "--comment", "nearly"
    )
    assert "recorded: a comment; the review is finished" in course.decide("ada", "--comment", "good", "--reviewed")
    assert "recorded: a comment • " not in (said := course.decide("absent", "--comment", "get well")), said
    assert "recorded: a comment absent: not submitted" in said
    course.decide("absent", "--until", "2026-11-30")
    assert "withdrawn: the comment, the extension to 2026-11-30" in course.decide("absent", "--withdraw")
    assert "there was nothing to withdraw" in course.decide("absent", "--withdraw")
    assert "there was nothing to withdraw" not in course.decide("ada", "--withdraw")
    assert f"in place of the {SECOND.points:g} that the tests gave" in course.decide(
        "ada", SECOND.name, "--points", "0"
    )
    withdrawn = course.decide("ada", FIRST.name, "--withdraw")
    assert f"withdrawn: 0.5 points, the comment for {FIRST.name}" in withdrawn


def test_a_review_can_be_withdrawn_and_finished_again(course: Class) -> None:
    course.has(graded("ada", "a", FIRST.name, notes=("read it",)))
    assert course.stands("ada").state is State.NEEDS_REVIEW
    course.decide("ada", "--reviewed")
    assert course.stands("ada").state is State.GRADED
    assert "withdrawn: the review" in course.decide("ada", "--withdraw")
    assert course.stands("ada").state is State.NEEDS_REVIEW and course.stands("ada").notes == ("read it",)
    course.decide("ada", "--until", "2099-11-30")
    assert course.stands("ada").state is State.NEEDS_REVIEW
    course.decide("ada", "--reviewed")
    assert course.stands("ada").state is State.GRADED


def test_more_points_than_an_exercise_is_worth_are_given_with_a_remark(course: Class) -> None:
    course.has(graded("ada", "a", FIRST.name))
    assert "more than" not in course.decide("ada", FIRST.name, "--points", f"{FIRST.points:g}")
    said = course.decide("ada", FIRST.name, "--points", "11")
    assert f"that's more than {FIRST.name} is worth, {FIRST.points:g} point" in said
    assert course.mark("ada").points == 11


def test_grading_says_if_a_corrected_check_has_not_been_built(course: Class, monkeypatch: pytest.MonkeyPatch) -> None:
    course.has(graded("ada", "a"))
    assert "since their check was made" not in course.run("grade")
    monkeypatch.setattr(checks, "made_from", lambda path: "an older file")
    assert f"{NAME} {FIRST.name}" in (said := course.run("grade")) and "→ run `course notebooks`" in said


@pytest.mark.parametrize("text", ["", "{", "5", "{}", "[]", '{"when": 1}', "null", "\x00"])
def test_a_record_that_cannot_be_read_is_asked_about_and_stops_nobody(course: Class, text: str) -> None:
    course.has(graded("ada", "a", FIRST.name), graded("bob", "b"))
    course.decide("ada", FIRST.name, "--points", "0.5", "--reviewed")
    (course.folder.decisions / NAME / "ada" / "20260101-x.json").write_text(text)
    said = course.run("grade")
    assert "20260101-x.json" in said and "2 graded" not in said
    assert course.stands("ada").state is State.NEEDS_REVIEW and course.mark("ada").points == 0.5
    assert course.stands("bob").state is State.GRADED


def test_a_record_of_another_student_does_not_count(course: Class) -> None:
    course.has(graded("ada", "a", FIRST.name), graded("bob", "b", FIRST.name))
    course.decide("ada", FIRST.name, "--points", "0.5")
    (course.folder.decisions / NAME / "ada").rename(course.folder.decisions / NAME / "bob")
    assert course.mark("bob").points == 0.0 and course.stands("bob").state is State.NEEDS_REVIEW


def test_any_text_survives_its_record(course: Class) -> None:
    odd = '\ud800 λ 𝟙 "\\'
    course.has(graded("λ 𝟙", "a"))
    decisions.decide(course.folder, NAME, "λ 𝟙", FIRST.name, comment=odd, points=2 * FIRST.points, by=odd)
    [record] = course.records("λ 𝟙")
    assert record.who == odd and record.comment == odd.replace("\ud800", "\\ud800")
    for command in ("grade", "feedback", "report", "export"):
        course.run(command)
    assert course.exported("λ 𝟙")["points"] == WHOLE + FIRST.points


def test_a_gradebook_that_cannot_be_read_stops_what_would_leave_its_points_out(course: Class) -> None:
    course.has(graded("ada", "a"))
    (course.root / "gradebook.db").write_text("not a database " * 100)
    for command, arguments in (("export", []), ("decide", ["ada", FIRST.name, "--points", "1"])):
        said = course.run(command, *arguments, fails=True)
        assert "cannot be read" in said and "points that were given in Formgrader" in said, said
    assert not course.folder.decisions.exists() and not course.folder.exports.exists()


def test_a_persons_points_for_an_open_question_stay_until_the_new_answer_is_looked_at() -> None:
    first, other = (
        Result("ada", NAME, State.GRADED, work, (Mark("why", 0.0, 3.0, open=True),), submission=work)
        for work in ("first", "other")
    )
    waits = decisions.decided(first, [])
    assert (waits.state, waits.points) == (State.NEEDS_REVIEW, 0.0) and "why has no tests" in waits.notes[0]
    for points in (0.0, 2.0):
        given = replace(decisions.about(first, "why"), who="Tess", points=points)
        assert decisions.decided(first, [given]).state is State.GRADED
        asked = decisions.decided(other, [given])
        assert (asked.state, asked.points) == (State.NEEDS_REVIEW, points)
        assert f"why: Tess gave {text.counted(points, 'point')}" in asked.notes[0]
        assert "for a different submission" in asked.notes[0]


def hand_in(course: Class, student: str, answer: str) -> None:
    notebook = copy.deepcopy(LECTURE.notebook)
    next(cell for cell in notebook.cells if cell.id == FIRST.name).source = answer
    path = course.folder.submission(student, NAME)
    path.parent.mkdir(parents=True)
    nbformat.write(notebook, path)


def test_one_student_one_exercise_and_nobodys_name(course: Class) -> None:
    for student in ("ada", "bob"):
        hand_in(course, student, f"x = {len(student)}  # \x1b[2J of {student[0]}")
        course.has(graded(student, student, FIRST.name, notes=("look",)))
    (course.root / "roster.csv").write_text("id\nabsent\n", encoding="utf-8")
    assert "ada: needs review" in (everybody := course.run("show")) and "absent: not submitted" in everybody
    ada = course.run("show", "--student", "ada")
    assert "• look" in ada and "x = 3 # \\x1b[2J of a" in ada and SECOND.name in ada and "bob" not in ada
    one = course.run("show", "--exercise", FIRST.name)
    assert "of a" in one and "of b" in one and SECOND.name not in one
    assert one == course.run("show", "--exercise", "0.1") == course.run("show", "--exercise", "Exercise 0.1")

    course.folder.draw(7)
    hidden = course.run("show", "--exercise", FIRST.name, "--anonymous")
    assert not any(name in hidden for name in ("ada", "bob", "absent"))
    alias = show.alias(ClassFolder(course.root), NAME, "ada")
    assert f"{alias}: needs review" in hidden
    assert alias in course.run("show", "--anonymous", "--student", alias)
    said = course.decide(alias, FIRST.name, "--points", "0.5")
    assert "ada" not in said and course.mark("ada").points == 0.5
    for option, name in (("--student", "adda"), ("--exercise", "nothing")):
        assert f"'{name}'" in course.run("show", option, name, fails=True)
    for command in ("show", "interview", "feedback"):
        remedy = f"→ ada? `course show {course.root} {NAME}` lists them all"
        assert remedy in course.run(command, "--student", "adda", fails=True)


def test_the_commands_of_the_instructors_page_work(course: Class) -> None:
    page = (project.ROOT / "docs" / "instructors.md").read_text(encoding="utf-8")
    block = page.partition("\n## Decide\n")[2].partition("```sh\n")[2].partition("```")[0]
    hand_in(course, "ada", "x = 3")
    course.has(graded("ada", "a", FIRST.name, notes=("look",)), graded("bob", "b"))
    seen, extended = [], []
    for line in block.splitlines():
        typed = line.replace("01_tensors", NAME).replace("tensor_bytes", FIRST.name)
        program, command, folder, name, *arguments = shlex.split(typed, comments=True)
        assert (program, folder, name) == ("course", ".", NAME), line
        course.run(command, *arguments)
        seen.append(course.stands("ada"))
        extended.append(course.stands("bob").until)
    assert "tensor_bytes" in block and "tensor_bytes" in {
        e.name for e in source.read(project.source_path("01_tensors")).exercises
    }
    assert seen[0].marks[0].points == 0.5 and seen[0].marks[0].comment == "The idea is right."
    assert seen[1].comment.startswith("See you") and seen[2].state is State.GRADED
    assert extended[3:5] == ["2026-12-07", ""] and seen[5].marks[0].tests is None


def test_a_decision_about_an_exercise_that_is_gone_is_asked_about(course: Class) -> None:
    course.has(graded("ada", "a"))
    course.decide("ada", FIRST.name, "--points", "0.5", "--by", "Tess")
    one = graded("ada", "a")
    course.has(replace(one, marks=one.marks[1:]))
    assert f"Tess decided about {FIRST.name}, which is no longer an exercise here" in course.stands("ada").notes


def test_several_students_are_decided_about_in_one_command_or_nobody_is(course: Class) -> None:
    notes = (f"{FIRST.name}: it uses a package that isn't here",)
    course.has(*(graded(name, name, FIRST.name, notes=notes) for name in ("ada", "bob", "eva")))
    said = course.decide("ada,nobody", "--reviewed", fails=True)
    assert "there is no student 'nobody'" in said and course.stands("ada").state is State.NEEDS_REVIEW
    said = course.decide("ada, bob", "--reviewed")
    assert "ada: graded" in said and "bob: graded" in said and said.count("the review is finished") == 2
    assert [course.stands(name).state for name in ("ada", "bob")] == [State.GRADED] * 2
    assert course.stands("eva").state is State.NEEDS_REVIEW

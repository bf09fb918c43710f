"""Who is late, and what it costs, is the same wherever points are shown; nobody pays for what isn't known."""

from __future__ import annotations

import csv
import json
import re
import shlex
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from classroom import give_cases
from nbgrader.api import Gradebook
from typer.testing import CliRunner

from autograder import cli, demo, project
from autograder.grading import engine, source, submission
from autograder.grading.marks import Mark, Result, State
from autograder.grading.submission import HandedIn
from autograder.grading.worker import Failed, Graded, Task
from autograder.inside.limits import Limits
from autograder.records import (
    attempts,
    best,
    collect,
    decisions,
    due,
    export,
    feedback,
    grade,
    gradebook,
    results,
    roster,
)
from autograder.records.folder import ClassFolder, FolderError
from autograder.records.roster import RosterError, Student

NAME = "00_napkin_math"
LECTURE = source.read(project.SOLUTIONS / f"{NAME}.py")
RULES = """
timezone = "Europe/Berlin"

[late]
per_day = 0.1
at_most = 0.5
grace_minutes = 15

[due]
00_napkin_math = 2026-11-30
01_tensors = 2026-12-07 18:00:00
"""
DUE = datetime(2026, 11, 30, 23, 0, tzinfo=UTC)  # midnight in Berlin


@pytest.fixture
def course(tmp_path: Path) -> ClassFolder:
    course = ClassFolder(tmp_path)
    (tmp_path / due.SETTINGS).write_text(RULES, encoding="utf-8")
    course.roster.write_text("id,extra_days\nada,\nbob,2\ncy,\n", encoding="utf-8")
    give_cases(tmp_path)
    return course


def hand_in(course: ClassFolder, student: str, when: datetime | None) -> Result:
    """A submission that was handed in then and has all points."""
    path = course.submission(student, NAME)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")
    if when is not None:
        (path.parent / "timestamp.txt").write_text(f"{when:%Y-%m-%d %H:%M:%S.%f} UTC")
    marks = tuple(Mark(each.name, each.points, each.points) for each in LECTURE.exercises)
    result = Result(student, NAME, State.GRADED, "key", marks)
    results.write(course, result)
    return result


def counts(course: ClassFolder, student: str) -> Result:
    students = roster.of(course, NAME)
    return due.table(course, NAME, decisions.table(course, NAME, students), students)[student]


@pytest.mark.parametrize(
    ("late", "share"),
    [
        (timedelta(days=-3), 0.0), (timedelta(seconds=-1), 0.0), (timedelta(minutes=14), 0.0),
        (timedelta(minutes=15), 0.1), (timedelta(hours=24), 0.1), (timedelta(hours=24, seconds=1), 0.2),
        (timedelta(days=5), 0.5), (timedelta(days=400), 0.5),
    ],
)  # fmt: skip
def test_each_day_begun_takes_off_a_share_of_the_points_earned(
    course: ClassFolder, late: timedelta, share: float
) -> None:
    hand_in(course, "ada", DUE + late)
    one = counts(course, "ada")
    assert one.points == pytest.approx(LECTURE.points * (1 - share)) and one.off == pytest.approx(
        LECTURE.points * share
    )
    assert bool(one.late) is bool(share)


def test_extra_days_and_extensions_move_the_due_date_for_one_student(course: ClassFolder) -> None:
    for student in ("ada", "bob", "cy"):
        hand_in(course, student, DUE + timedelta(days=1, hours=12))
    assert [counts(course, student).late[:11] for student in ("ada", "bob", "cy")] == ["2 days late", "", "2 days late"]
    decisions.decide(course, NAME, "cy", until="2026-12-02", by="me")
    decisions.decide(course, NAME, "bob", until="2026-11-01", by="me")  # which takes nothing from anybody
    assert [bool(counts(course, student).late) for student in ("ada", "bob", "cy")] == [True, False, False]


def test_who_handed_in_nothing_or_at_an_unknown_time_pays_nothing(course: ClassFolder) -> None:
    hand_in(course, "ada", None)
    assert counts(course, "ada") == results.standing(course, NAME, "ada")
    assert counts(course, "cy").state is State.NOT_SUBMITTED and not counts(course, "cy").late
    (course.assignment("ada", NAME) / "timestamp.txt").write_text("yesterday")
    assert counts(course, "ada").late == due.UNCLEAR and not counts(course, "ada").off
    assert "timestamp.txt has no time with a time zone" in due.unclear(course, NAME, "ada")
    assert due.unclear(course, NAME, "cy") == ""
    (course.root / due.SETTINGS).unlink()
    hand_in(course, "bob", DUE + timedelta(days=9))
    assert not counts(course, "bob").late


def test_late_according_to_canvas_is_said_and_costs_nothing(course: ClassFolder, tmp_path: Path) -> None:
    course.roster.write_text("id,name\nada,Ada Lovelace\n", encoding="utf-8")
    with zipfile.ZipFile(tmp_path / "s.zip", "w") as archive:
        archive.writestr(f"lovelaceada_LATE_1_2_{NAME}.ipynb", "{}")
    found = collect.collect(course, NAME, tmp_path / "s.zip", [NAME])
    assert [one.late for _, one in found.new] == [True]
    hand_in(course, "ada", None)
    one = counts(course, "ada")
    assert one.points == LECTURE.points and "according to Canvas" in one.late
    for command in ("feedback", "report"):
        assert CliRunner().invoke(cli.app, [command, str(course), NAME]).exit_code == 0
    page, report = course.feedback("ada", NAME).read_text(), course.report(NAME).read_text()
    assert feedback.LATE in page and "zip" not in page  # which is nothing that a student knows about
    assert "according to Canvas, whose zip" in report and feedback.LATE not in report
    course.submission("ada", NAME).write_text("another notebook, put there by hand")
    assert not counts(course, "ada").late


def test_late_according_to_canvas_does_not_contradict_an_extension(course: ClassFolder, tmp_path: Path) -> None:
    course.roster.write_text("id,name,extra_days\nada,Ada,\nbob,Bob,2\ncy,Cy,\n", encoding="utf-8")
    with zipfile.ZipFile(tmp_path / "s.zip", "w") as archive:
        for student in ("ada", "bob", "cy"):
            archive.writestr(f"{student}_LATE_1_2_{NAME}.ipynb", "{}")
    collect.collect(course, NAME, tmp_path / "s.zip", [NAME])
    for student in ("ada", "bob", "cy"):
        hand_in(course, student, None)
    decisions.decide(course, NAME, "ada", until="2026-12-07", by="me")
    for command in ("feedback", "report"):
        assert CliRunner().invoke(cli.app, [command, str(course), NAME]).exit_code == 0
    pages = {name: " ".join(course.feedback(name, NAME).read_text().split()) for name in ("ada", "bob", "cy")}
    for student, last in (("ada", "2026-12-07"), ("bob", "2026-12-02")):
        assert counts(course, student).late == due.BY_CANVAS + f"; on time if it came in by {last}"
        assert counts(course, student).points == LECTURE.points
        assert f"but it&#39;s on time if it came in by {last}. Nothing was taken off." in pages[student]
        assert "instructor decides" not in pages[student] and "zip" not in pages[student]
    assert "You may hand this in until 2026-12-07." in pages["ada"]
    assert feedback.LATE in pages["cy"] and counts(course, "cy").late == due.BY_CANVAS
    assert "on time if it came in by 2026-12-07" in course.report(NAME).read_text()


@pytest.mark.parametrize(
    ("rule", "days", "until", "last"),
    [
        ("2026-11-30", 0, "", ""), ("2026-11-30", 2, "", "2026-12-02"), ("2026-11-30", 0, "2026-12-07", "2026-12-07"),
        ("2026-11-30", 9, "2026-12-07", "2026-12-09"), ("2026-11-30", 0, "2026-11-01", ""),
        ("2026-11-30 18:00:00", 2, "", "2026-12-02 18:00"),
        ("2026-11-30 18:00:00", 0, "2026-12-02", "2026-12-02"),
        (None, 2, "", ""), (None, 0, "2026-12-07", "2026-12-07"),
    ],
)  # fmt: skip
def test_the_last_day_of_an_extension(course: ClassFolder, rule: str | None, days: int, until: str, last: str) -> None:
    text = 'timezone = "Europe/Berlin"\n' + (f"[due]\n{NAME} = {rule}\n" if rule else "")
    (course.root / due.SETTINGS).write_text(text, encoding="utf-8")
    assert due.read(course, NAME).extended(Student("ada", extra_days=days), until) == last


def test_points_are_the_same_wherever_they_are_shown(course: ClassFolder) -> None:
    result = hand_in(course, "ada", DUE + timedelta(days=1, hours=1))
    wanted, off = round(LECTURE.points * 0.8, 2), round(LECTURE.points * 0.2, 2)
    for command in ("export", "feedback", "report"):
        assert CliRunner().invoke(cli.app, [command, str(course), NAME]).exit_code == 0
    exported = {form: export.path_of(course, NAME, form).read_text().splitlines() for form in export.Format}
    rows = list(csv.DictReader(exported[export.Format.CSV]))
    assert float(rows[0]["points"]) == wanted and float(rows[0]["points taken off"]) == off
    assert rows[0]["late"].startswith("2 days late: 20%") and rows[2]["late"] == rows[2]["points taken off"] == ""
    (ada, *_) = json.loads("".join(exported[export.Format.JSON]))["students"]
    assert (ada["points"], ada["points taken off"]) == (wanted, off)
    canvas, moodle = (list(csv.reader(exported[form])) for form in (export.Format.CANVAS, export.Format.MOODLE))
    assert canvas[2][4] == moodle[1][-1] == f"{wanted:g}"
    page = course.feedback("ada", NAME).read_text()
    assert (
        f"{wanted:g} of {LECTURE.points:g} points" in page
        and f"2 days late: 20% of the points are taken off, {off:g}." in page
    )
    assert "2 days late" in course.report(NAME).read_text()
    said = CliRunner().invoke(
        cli.app, ["decide", str(course), NAME, "ada", "--comment", "next time, please", "--by", "me"]
    )
    assert f"{wanted:g} of {LECTURE.points:g} points" in said.output
    gradebook.derive(course, LECTURE, {"ada": result}, students=roster.of(course, NAME))
    with Gradebook(f"sqlite:///{course.root / 'gradebook.db'}", course.settings.course_id) as book:
        copy_of = book.find_submission_notebook(NAME, NAME, "ada")
        assert copy_of.score == LECTURE.points and copy_of.late_submission_penalty == pytest.approx(off)
        assert book.find_assignment(NAME).duedate == DUE.replace(tzinfo=None)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("dew = 1", "there is no setting 'dew'"), ("due = 2026-11-30", "due is not a table"),
        ("[due]\n1_tensors = 2026-11-30", "due has no '1_tensors'"),
        ('[due]\nattempt = "best"', "taken for a part of it: write it above [due]"),
        ("[due]\n00_napkin_math = 7", "is not a date or time"),
        ('[due]\n00_napkin_math = "30.11.2026"', "is not a date or time"),
        ('timezone = "Berlin/Europe"', "timezone is"),
        ("timezone = 1", "timezone is"), ('timezone = "/etc/passwd"', "timezone is"),
        ('attempt = "first"', "attempt is"),
        ("[late]\nper_day = 10", "late.per_day is 10"), ("[late]\nper_day = true", "late.per_day is True"),
        ("[late]\nper_day = nan", "late.per_day is nan"), ("[late]\nday = 1", "late has no 'day'"),
        ("[due", "class.toml"), ("\xff", "class.toml"),
    ],
)  # fmt: skip
def test_rules_that_are_unclear_are_refused_by_every_command_before_it_does_anything(
    course: ClassFolder, text: str, says: str
) -> None:
    (course.root / due.SETTINGS).write_bytes(text.encode("latin-1"))
    with pytest.raises(FolderError, match="→ correct it") as caught:
        due.read(course, NAME)
    assert says in str(caught.value)
    before = sorted(course.root.rglob("*"))
    for name, *more in (
        ["grade", NAME, "--dry-run"], ["grade", NAME], ["export", NAME], ["feedback", NAME], ["report", NAME],
        ["verify", NAME], ["collect", NAME, "x.zip"], ["decide", NAME, "ada", "--comment", "x"], ["show", NAME],
        ["interview", NAME], ["init"], ["hub", "place", "--kubernetes"], ["formgrader"],
    ):  # fmt: skip
        ran = CliRunner().invoke(cli.app, [name, str(course), *more])
        assert ran.exit_code == 1 and "class.toml" in ran.output, (name, ran.output)
    assert sorted(course.root.rglob("*")) == before


def test_a_damaged_roster_is_refused_before_anything_is_handed_in(course: ClassFolder) -> None:
    course.roster.write_text("name\nada\n", encoding="utf-8")
    for name, *more in (["grade", NAME, "--dry-run"], ["grade", NAME], ["verify", NAME], ["init"]):
        ran = CliRunner().invoke(cli.app, [name, str(course), *more])
        assert ran.exit_code == 1 and "roster.csv has no column `id`" in ran.output, (name, ran.output)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("2026-11-30", DUE), ('"2026-11-30"', DUE), ("2026-11-30 18:00:00", datetime(2026, 11, 30, 17, tzinfo=UTC)),
        ('"2026-11-30 18:00"', datetime(2026, 11, 30, 17, tzinfo=UTC)),
        ("2026-07-01", datetime(2026, 7, 1, 22, tzinfo=UTC)),  # summer
        ("2026-11-30T18:00:00Z", datetime(2026, 11, 30, 18, tzinfo=UTC)),
    ],
)  # fmt: skip
def test_days_and_times_are_the_classs(course: ClassFolder, value: str, wanted: datetime) -> None:
    (course.root / due.SETTINGS).write_text(f'timezone = "Europe/Berlin"\n[due]\n{NAME} = {value}\n')
    rules = due.read(course, NAME)
    assert rules.due == wanted and rules.per_day == 0
    assert rules.limit(Student("ada", extra_days=1)) == wanted + timedelta(days=1)


@pytest.mark.parametrize("days", ["two", "-1", "1.5", "1000", "１"])
def test_extra_days_are_a_number_of_days(course: ClassFolder, days: str) -> None:
    course.roster.write_text(f"id,extra_days\nada,{days}\n", encoding="utf-8")
    with pytest.raises(RosterError, match="extra_days of ada"):
        roster.of(course, NAME)


def test_rules_without_a_rate_only_say_who_is_late(course: ClassFolder) -> None:
    (course.root / due.SETTINGS).write_text(f"[due]\n{NAME} = 2026-11-30\n")
    hand_in(course, "ada", DUE + timedelta(days=2))
    one = counts(course, "ada")
    assert one.points == LECTURE.points and one.late == "2 days late"


def attempt(
    course: ClassFolder, number: int, answers: dict[str, str], when: datetime | None, content: bytes | None = None
) -> bytes:
    """One of ada's attempts: these answers, and stubs for the rest; or a file with this content."""
    if content is None:
        path = course.root / "made.ipynb"
        demo.hand_in(path, LECTURE, answers)
        content = path.read_bytes()
        path.unlink()
    order, said = (when.timestamp(), when.isoformat()) if when else (float(number), "")
    about = attempts.Attempt(number, submission.digest(content), True, "made", "", "", order, said, False)
    attempts.add(course, NAME, "ada", about, content)
    attempts.install(course, NAME, "ada", about, content)
    return content


def by_solution(tasks: Iterator[Task], *options: object, **more: object) -> Iterator[tuple[Task, Graded]]:
    """Grade without running anything: an exercise is right if its answer is the reference."""
    for task in tasks:
        answers = submission.parse(HandedIn(Path("x"), data=task.submission), task.problems).answers(task.problems)
        right = {each.name: answers.get(each.name) == each.solution for each in LECTURE.exercises}
        yield task, Graded(tuple(Mark(e.name, e.points * right[e.name], e.points) for e in LECTURE.exercises))


def graded(course: ClassFolder) -> grade.Summary:
    return grade.grade_class(course, NAME, workers=0, unsafe=True, database=None)


def test_grading_reads_the_rules_once(course: ClassFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "grade_all", by_solution)
    (course.root / due.SETTINGS).write_text('attempt = "best"\n' + RULES, encoding="utf-8")
    right = {each.name: each.solution for each in LECTURE.exercises}
    for number, answers in enumerate((right, {}), 1):
        attempt(course, number, answers, DUE + number * timedelta(days=1))
    reads: list[str] = []
    read_text, read_rules = Path.read_text, due.read
    monkeypatch.setattr(Path, "read_text", lambda path, **how: reads.append(path.name) or read_text(path, **how))
    monkeypatch.setattr(due, "read", lambda *which: reads.append("rules") or read_rules(*which))
    said = CliRunner().invoke(cli.app, ["grade", str(course.root), NAME, "--workers", "0", "--unsafe"])
    assert said.exit_code == 0, said.output
    assert reads.count("rules") == 2  # the second time by grading itself
    # Checking each of the command's two arguments, finding the lecture, and looking for checks that were corrected but
    # not built: each looks for the class's own lectures.
    assert reads.count(due.SETTINGS) == 2 + 4
    monkeypatch.undo()
    stands = counts(course, "ada")
    assert stands.attempt == "attempt 1 of 2" and stands.off > 0
    with Gradebook(f"sqlite:///{course.root / 'gradebook.db'}", course.settings.course_id) as book:
        copy_of = book.find_submission_notebook(NAME, NAME, "ada")
        assert copy_of.late_submission_penalty == pytest.approx(stands.off)


def test_the_best_attempt_counts_where_the_class_says_so(course: ClassFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "grade_all", by_solution)
    first, second = LECTURE.exercises[:2]
    right = {each.name: each.solution for each in (first, second)}
    contents = [
        attempt(course, 1, {first.name: right[first.name]}, DUE - timedelta(days=2)),
        attempt(course, 2, right, DUE - timedelta(days=1)),
        attempt(course, 3, {}, DUE - timedelta(hours=1)),
    ]
    assert graded(course).results["ada"].points == 0  # the last one
    assert counts(course, "ada").attempt == "attempt 3 of 3"
    (course.root / due.SETTINGS).write_text('attempt = "best"\n' + RULES, encoding="utf-8")
    shown = CliRunner().invoke(cli.app, ["show", str(course.root), NAME]).output
    assert "• 2 attempts aren't graded yet, but the best one counts: run `course grade" in shown
    summary = graded(course)
    assert summary.results["ada"].points == first.points + second.points and not summary.remarks
    assert "•" not in CliRunner().invoke(cli.app, ["show", str(course.root), NAME]).output
    (course.root / due.SETTINGS).write_text(RULES, encoding="utf-8")
    shown = CliRunner().invoke(cli.app, ["export", str(course.root), NAME]).output
    assert "these points are of an earlier attempt, not the last one: ada" in shown
    (course.root / due.SETTINGS).write_text('attempt = "best"\n' + RULES, encoding="utf-8")
    assert course.submission("ada", NAME).read_bytes() == contents[1]
    for command in ("feedback", "export", "report"):
        assert CliRunner().invoke(cli.app, [command, str(course.root), NAME]).exit_code == 0
    assert "These are the points of attempt 2 of 3." in course.feedback("ada", NAME).read_text()
    assert "attempt 2 of 3" in course.report(NAME).read_text()
    assert "attempt 2 of 3" in CliRunner().invoke(cli.app, ["show", str(course.root), NAME]).output
    rows = list(csv.DictReader((course.root / "exports" / f"{NAME}.csv").read_text().splitlines()))
    assert [row["attempt"] for row in rows if row["student"] == "ada"] == ["attempt 2 of 3"]
    before = results.read(course, NAME, "ada")
    assert graded(course).graded == () and results.read(course, NAME, "ada") == before
    # Collecting again what's known doesn't undo the choice, and a late attempt has to be better by what it costs.
    attempt(course, 4, right, DUE + timedelta(days=3))
    assert graded(course).results["ada"].late == "" and course.submission("ada", NAME).read_bytes() == contents[1]
    said = CliRunner().invoke(cli.app, ["decide", str(course.root), NAME, "ada", "--until", "2026-12-24"]).output
    assert "another attempt may count now" in said
    attempt(course, 5, right | {"more": ""}, DUE + timedelta(days=3))
    graded(course)
    stamp = (course.assignment("ada", NAME) / "timestamp.txt").read_text()
    assert stamp.startswith("2026-12-03")  # with the extension it isn't late, and the later one of equals
    # What a person put there stays.
    course.submission("ada", NAME).write_bytes(contents[2] + b"\n")
    assert graded(course).results["ada"].points == 0 and counts(course, "ada").attempt == ""


def test_points_that_a_person_gave_to_an_attempt_count_when_attempts_are_compared(
    course: ClassFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "grade_all", by_solution)
    (course.root / due.SETTINGS).write_text('attempt = "best"\n' + RULES, encoding="utf-8")
    first, second, third = LECTURE.exercises[:3]
    right = {each.name: each.solution for each in (first, second, third)}
    attempt(course, 1, {}, DUE - timedelta(days=4))
    one = attempt(course, 2, {first.name: right[first.name]}, DUE - timedelta(days=3))
    graded(course)
    give = ["decide", str(course.root), NAME, "ada", third.name, "--points", f"{third.points + second.points}"]
    said = CliRunner().invoke(cli.app, give)
    assert said.exit_code == 0 and "another attempt may count now" in said.output
    attempt(course, 3, {}, DUE - timedelta(days=2))
    graded(course)  # of the two, the one with points for the first exercise
    assert course.submission("ada", NAME).read_bytes() == one
    assert counts(course, "ada").points == first.points + second.points + third.points
    assert counts(course, "ada").state is State.GRADED
    more = attempt(course, 4, {each.name: right[each.name] for each in (first, second)}, DUE - timedelta(days=1))
    graded(course)  # as for any later work, what was given before counts until somebody decides again
    assert course.submission("ada", NAME).read_bytes() == more
    assert counts(course, "ada").state is State.NEEDS_REVIEW and "gave" in counts(course, "ada").notes[0]


def test_an_earlier_attempt_that_is_graded_although_the_last_should_be_is_pointed_out(
    course: ClassFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "grade_all", by_solution)
    (course.root / due.SETTINGS).write_text('attempt = "best"\n' + RULES, encoding="utf-8")
    attempt(course, 1, {LECTURE.exercises[0].name: LECTURE.exercises[0].solution}, DUE - timedelta(days=3))
    attempt(course, 2, {}, DUE - timedelta(days=2))
    [remark] = grade.plan(course, NAME).remarks
    assert remark.startswith("2 attempts will be graded first")
    assert not graded(course).remarks and not grade.plan(course, NAME).remarks
    (course.root / due.SETTINGS).write_text(RULES, encoding="utf-8")
    [remark] = graded(course).remarks
    assert remark.startswith("ada: attempt 1 of 2 is graded, not the last one; if you want that graded, copy ")
    assert Path(re.search(" copy (.*) to ", remark)[1]).is_file()  # type: ignore[index]


def test_an_attempt_that_a_review_could_make_the_best_counts_until_somebody_has_looked(
    course: ClassFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_a_note(tasks: Iterator[Task], *options: object, **more: object) -> Iterator[tuple[Task, Graded]]:
        for task, done in by_solution(tasks):
            yield task, replace(done, notes=(f"{first.name}: look",)) if b"not_here" in task.submission else done

    monkeypatch.setattr(engine, "grade_all", with_a_note)
    (course.root / due.SETTINGS).write_text('attempt = "best"\n' + RULES, encoding="utf-8")
    first, second = LECTURE.exercises[:2]
    better = attempt(course, 1, {second.name: second.solution}, DUE - timedelta(days=4))
    looked_at = attempt(course, 2, {first.name: "not_here", second.name: second.solution}, DUE - timedelta(days=3))
    attempt(course, 3, {first.name: "not_here"}, DUE - timedelta(days=2))  # even with all of its points, not the best
    graded(course)
    assert course.submission("ada", NAME).read_bytes() == looked_at
    assert counts(course, "ada").state is State.NEEDS_REVIEW
    decide = ["decide", str(course.root), NAME, "ada"]
    assert CliRunner().invoke(cli.app, [*decide, first.name, "--points", "0", "--reviewed"]).exit_code == 0
    assert graded(course).results["ada"].points == second.points
    assert course.submission("ada", NAME).read_bytes() == looked_at != better  # of equals, the later one


def test_a_later_attempt_that_cannot_be_read_is_mentioned_everywhere(
    course: ClassFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "grade_all", by_solution)
    (course.root / due.SETTINGS).write_text('attempt = "best"\n' + RULES, encoding="utf-8")
    first = LECTURE.exercises[0]
    whole = attempt(course, 1, {first.name: first.solution}, DUE - timedelta(days=3))
    attempt(course, 2, {}, DUE - timedelta(days=2), whole[: len(whole) // 2])

    def said(command: str, *options: str) -> str:
        ran = CliRunner().invoke(cli.app, [command, str(course), NAME, *options])
        assert ran.exit_code == 0, ran.output
        return " ".join(ran.output.split())

    assert "• ada: attempt 2 could not be read (it is not JSON" in said("grade", "--workers", "0", "--unsafe")
    assert counts(course, "ada").state is State.GRADED and counts(course, "ada").attempt == "attempt 1 of 2"
    assert "• attempt 2 could not be read" in said("show", "--student", "ada")
    said("feedback")
    said("report")
    page = course.feedback("ada", NAME).read_text()
    assert "Attempt 2 could not be read (it is not JSON" in page and "). Hand it in again." in page
    assert "<p>attempt 2 could not be read" in course.report(NAME).read_text()
    # Something other than a notebook. Once there's a later one that can be read, nobody has to do anything.
    about = attempts.Attempt(
        3, submission.digest(b"x"), False, "made", "", "notes.txt", (DUE - timedelta(hours=2)).timestamp()
    )
    attempts.add(course, NAME, "ada", about, b"x")
    assert counts(course, "ada").unread == "attempt 3 has no notebook that can be graded (notes.txt)"
    attempt(course, 4, {}, DUE + timedelta(hours=-1))
    assert graded(course).results["ada"].unread == "" == counts(course, "ada").unread
    assert counts(course, "ada").attempt == "attempt 1 of 4"


def test_a_damaged_result_of_an_attempt_is_graded_again_and_said(
    course: ClassFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if it says that the attempt has earned more than the one that counts."""
    monkeypatch.setattr(engine, "grade_all", by_solution)
    (course.root / due.SETTINGS).write_text('attempt = "best"\n' + RULES, encoding="utf-8")
    first = LECTURE.exercises[0]
    best_one = attempt(course, 1, {first.name: first.solution}, DUE - timedelta(days=2))
    attempt(course, 2, {}, DUE - timedelta(days=1))
    assert not graded(course).remarks
    kept = {path: path.read_bytes() for path in (course.results / NAME / ".attempts" / "ada").iterdir()}
    assert len(kept) == 2
    for path, written in kept.items():
        for damaged in (written[:200], written.replace(b'"points": 0.0', b'"points": 99.0')):
            path.write_bytes(damaged)
            summary = graded(course)
            # The result that counts has a file of its own, so nobody reads the attempt's.
            if results.read(course, NAME, "ada").key != path.stem:
                assert path.read_bytes() == written
                [remark] = summary.remarks
                assert remark.startswith(f"{path} is damaged (")
            assert summary.results["ada"].points == first.points
            assert course.submission("ada", NAME).read_bytes() == best_one
            path.write_bytes(written)


def failed(tasks: Iterator[Task], *options: object, **more: object) -> Iterator[tuple[Task, Failed | Graded]]:
    """Grade the first, and fail on the rest."""
    tasks = iter(tasks)
    yield from by_solution(iter([next(tasks)]))
    yield from ((task, Failed("no room")) for task in tasks)


def test_a_damaged_attempt_and_one_that_cannot_be_graded_leave_what_is_there(
    course: ClassFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    (course.root / due.SETTINGS).write_text('attempt = "best"\n' + RULES, encoding="utf-8")
    for number in (1, 2):
        content = attempt(course, number, {"x" * number: ""}, DUE - timedelta(days=3 - number))
    students = roster.of(course, NAME)
    arguments = course, course.problems(LECTURE), due.read(course, NAME), students, Limits()
    monkeypatch.setattr(engine, "grade_all", failed)
    (course.attempts("ada", NAME) / "1" / f"{NAME}.ipynb").write_bytes(content + b" ")
    assert "has been changed" in best.settle(*arguments)[0]
    about = json.loads((course.attempts("ada", NAME) / "1" / "attempt.json").read_text())
    about["sha256"] = submission.digest(content + b" ")
    (course.attempts("ada", NAME) / "1" / "attempt.json").write_text(json.dumps(about))
    said = best.settle(*arguments)
    assert len(said) == 1 and "could not be graded here: no room" in said[0]
    assert course.submission("ada", NAME).read_bytes() == content


def test_collecting_leaves_the_choice_to_grading_and_says_what_has_no_time(course: ClassFolder, tmp_path: Path) -> None:
    (course.root / due.SETTINGS).write_text('attempt = "best"\n' + RULES, encoding="utf-8")
    course.roster.write_text("id,name\nada,Ada Lovelace\n", encoding="utf-8")
    with zipfile.ZipFile(tmp_path / "s.zip", "w") as archive:
        archive.writestr(f"lovelaceada_1_2_{NAME}.ipynb", "first")
        archive.writestr(f"lovelaceada_LATE_1_3_{NAME}-1.ipynb", "second")
    found = collect.collect(course, NAME, tmp_path / "s.zip", [NAME])
    assert found.remarks == [
        "s.zip doesn't say when 2 attempts came in, so nothing is taken off for them",
        "Canvas calls 1 attempt LATE: ada (attempt 2)",
    ]
    assert course.submission("ada", NAME).read_text() == "second"
    course.submission("ada", NAME).write_text("first")
    assert not collect.collect(course, NAME, tmp_path / "s.zip", [NAME]).new
    assert course.submission("ada", NAME).read_text() == "first"


def test_the_settings_and_the_command_in_the_documentation_work(course: ClassFolder) -> None:
    page = (project.ROOT / "docs" / "instructors.md").read_text(encoding="utf-8")
    section = page[page.index("### Due dates") : page.index("### More processors")]
    (course.root / due.SETTINGS).write_text(section.split("```toml")[1].split("```")[0], encoding="utf-8")
    rules = due.read(course, "01_tensors")
    assert rules.due is not None and rules.best and 0 < rules.per_day < rules.at_most < 1
    [line] = [line for line in section.splitlines() if line.startswith("course ")]
    arguments = shlex.split(line, comments=True)
    ran = CliRunner().invoke(cli.app, [*arguments[1:2], str(course), *arguments[3:], "--by", "me"])
    assert ran.exit_code == 0, ran.output
    [until] = [one.until for one in decisions.read(course, "01_tensors", "ada")[0]]
    assert (limit := rules.limit(Student("ada"), until)) is not None and limit > rules.due


def test_the_time_of_an_attempt_goes_with_it_and_one_by_hand_stays(
    course: ClassFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "grade_all", by_solution)
    first = LECTURE.exercises[0]
    right = {first.name: first.solution}
    attempt(course, 1, right, DUE - timedelta(days=1))
    late = attempt(course, 2, {first.name: first.solution + "\n# later"}, DUE + timedelta(days=2))
    (course.root / due.SETTINGS).write_text('attempt = "best"\n' + RULES, encoding="utf-8")
    assert graded(course).results["ada"].off == 0 and counts(course, "ada").attempt == "attempt 1 of 2"
    stamp = course.assignment("ada", NAME) / "timestamp.txt"
    stamp.write_text("2026-12-03 10:00:00 UTC\n")  # a person knows better
    assert graded(course).results["ada"].off > 0 and stamp.read_text().startswith("2026-12-03 10")
    # Back to the last attempt: the advice is to copy its notebook.
    (course.root / due.SETTINGS).write_text(RULES, encoding="utf-8")
    course.submission("ada", NAME).write_bytes(late)
    said = graded(course).results["ada"].late
    assert said.startswith("2 days late"), "although the time beside it is still the first one's"


@pytest.mark.parametrize("place", ["submitted", "attempts"])
def test_the_best_attempt_is_chosen_by_times_that_a_person_has_written(
    course: ClassFolder, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a class with Canvas, whose zips have no times."""
    monkeypatch.setattr(engine, "grade_all", by_solution)
    first, second = LECTURE.exercises[:2]
    attempt(course, 1, {second.name: second.solution}, None)
    attempt(course, 2, {each.name: each.solution for each in (first, second)}, None)
    (course.root / due.SETTINGS).write_text('attempt = "best"\n' + RULES, encoding="utf-8")
    assert graded(course).results["ada"].points == first.points + second.points
    beside = course.assignment("ada", NAME) if place == "submitted" else course.attempts("ada", NAME) / "2"
    (beside / "timestamp.txt").write_text(f"{DUE + timedelta(days=30):%Y-%m-%d %H:%M:%S} UTC")
    for _ in range(2):  # half of the second's points are fewer than all of the first's
        assert graded(course).results["ada"].points == second.points
        assert counts(course, "ada").attempt == "attempt 1 of 2" and not counts(course, "ada").late
    [_, latest] = attempts.read(course, NAME, "ada")
    assert latest.time == DUE + timedelta(days=30)
    (course.attempts("ada", NAME) / "2" / "timestamp.txt").write_text("tomorrow")
    with pytest.raises(attempts.AttemptError, match="write 2026-11-30 18:00:00 UTC"):
        attempts.read(course, NAME, "ada")

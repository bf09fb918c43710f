"""A class of three hundred over five lectures ends with every student's points as planned, wherever they're shown.

Equal notebooks are graded once here, because what's tested is what a semester does to results, and not the judge.
"""

from __future__ import annotations

import csv
import io
import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from importers import Canvas, Moodle, Person
from nbgrader.api import Gradebook
from typer.testing import CliRunner

from autograder import cli, project, semester
from autograder.grading import text, worker
from autograder.grading.marks import Result, State
from autograder.grading.worker import Done, Task
from autograder.records import attempts, decisions, due, grade, roster

pytestmark = [pytest.mark.sandboxed, pytest.mark.xdist_group("semester")]
SIZE = 300
KILLED = semester.OWN[1]  # the lecture during whose grading the machine dies
# Another process, which knows what was graded so far, goes on, and is killed in the middle of it.
CHILD = """
import os, pickle, signal, sys
from pathlib import Path
from autograder.grading import worker
from autograder.records import grade
from autograder.records.folder import ClassFolder

worker.grade_one = lambda task, known=pickle.loads(Path(sys.argv[1]).read_bytes()): known[task.key]

def progress(done, total, latest):
    if done == 100:
        os.kill(os.getpid(), signal.SIGKILL)

grade.grade_class(ClassFolder(Path(sys.argv[2])), sys.argv[3], workers=0, database=None, progress=progress)
"""


class Stopped(Exception):
    pass


@pytest.fixture(scope="module")
def known() -> Iterator[dict[str, Done]]:
    """What was graded, by key: equal work under equal rules is graded once in this file."""
    found: dict[str, Done] = {}
    real = worker.grade_one

    def once(task: Task) -> Done:
        if task.key not in found:
            found[task.key] = real(task)
        return found[task.key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker, "grade_one", once)
        patch.setattr(os, "fsync", lambda handle: None)  # thousands of them take most of the time; no power fails here
        with worker.kept_box():
            yield found


def held(root: Path, size: int, known: dict[str, Done], kill: bool = False) -> semester.Semester:
    """A whole semester."""
    made = semester.make(root, size)

    def stop(done: int, total: int, latest: Result | None) -> None:
        if done == 100:
            raise Stopped

    def graded(name: str) -> None:
        if kill and name == KILLED:
            with pytest.raises(Stopped):
                grade.grade_class(made.folder, name, workers=0, database=None, progress=stop)
            (root / "known").write_bytes(pickle.dumps(known))
            command = [sys.executable, "-c", CHILD, str(root / "known"), str(made.folder), name]
            ran = subprocess.run(command, cwd=project.ROOT, capture_output=True, text=True)
            assert ran.returncode == -signal.SIGKILL, ran.stderr
            assert 100 <= len(list((made.folder.results / name).glob("[!.]*.json"))) < len(planned(made, name))
        grade.grade_class(made.folder, name, workers=0, database=None)

    semester.run(made, root / "handed-in", graded, say=lambda text: None)
    return made


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, known: dict[str, Done]) -> semester.Semester:
    return held(tmp_path_factory.mktemp("semester"), SIZE, known, kill=True)


def found(made: semester.Semester, name: str) -> dict[str, Result]:
    students = roster.of(made.folder, name)
    return due.table(made.folder, name, decisions.table(made.folder, name, students), students)


def run(*arguments: str) -> str:
    ran = CliRunner().invoke(cli.app, list(arguments))
    assert ran.exit_code == 0, ran.output
    return ran.output


def exported(made: semester.Semester, name: str) -> dict[str, str]:
    run("export", str(made.folder), name)
    return {path.name.partition(".")[2]: path.read_text("utf-8") for path in made.folder.exports.glob(f"{name}.*")}


def planned(made: semester.Semester, name: str) -> dict[str, float]:
    week = [each.name for each in made.lectures].index(name)
    points = {student: made.expected(week, student) for student in made.students}
    return {student: each for student, each in points.items() if each is not None}


NAMES = [*semester.LECTURES, *semester.OWN]


def test_it_has_what_a_semester_has(made: semester.Semester) -> None:
    """Otherwise the tests below would say little."""
    assert len(made.lectures) == 5 and len(made.students) == SIZE
    work = [(week, name, one) for week, each in enumerate(made.lectures)
            for name in made.students for one in [made.work.get((each.name, name), [])]]  # fmt: skip
    assert sum(len(one) == 2 for *_, one in work) > 100  # handed in twice
    late = [one for week, _, each in work for one in each if one.when > made.due(week)]
    assert len(late) > 30 and len(made.left) == 30 and len(made.renamed) == 15
    assert len(made.given) == 16 and {points for points in made.given.values()} > {0.0}
    assert len(attempts.read(made.folder, NAMES[2], next(n for w, n, o in work if w == 2 and len(o) == 2))) == 2


def test_of_two_decisions_at_the_same_moment_both_are_kept_and_the_later_one_counts(made: semester.Semester) -> None:
    first = made.lectures[0].exercises[0].name
    students = [student for _, student, exercise in made.given if exercise == first][:3]
    whens: dict[str, list[str]] = {"Tess": [], "Theo": []}
    for student in students:
        earlier, later, *_ = (
            each for each in decisions.read(made.folder, NAMES[0], student)[0] if each.exercise == first
        )
        assert {earlier.who, later.who} == whens.keys() and earlier.points != later.points
        assert decisions.latest([earlier, later])[first] is later
        for each in (earlier, later):
            whens[each.who].append(each.when)
    # They went through the students together: if one had finished before the other began, this would be no test.
    assert max(map(min, whens.values())) < min(map(max, whens.values()))


def test_what_two_tas_give_at_once_is_in_the_gradebook_too(tmp_path: Path, known: dict[str, Done]) -> None:
    made = semester.make(tmp_path, 12)
    semester.take(made, 0, semester.hand_in(made, 0, tmp_path / "handed-in"))
    grade.grade_class(made.folder, NAMES[0], workers=0)
    assert made.folder.has_gradebook
    semester.give_by_hand(made, 0)  # each command also writes into the gradebook
    with Gradebook(made.folder.gradebook_url) as book:
        scores = {one.student.id: one.score for one in book.assignment_submissions(NAMES[0])}
    assert len(made.given) == 6 and scores == pytest.approx(planned(made, NAMES[0]))


def test_work_that_comes_after_points_by_hand_is_asked_about_with_both_values(made: semester.Semester) -> None:
    assert {student for student, _ in made.again} == made.asked.keys() and len(made.asked) > 2
    results = found(made, NAMES[0])
    for (student, exercise), points in made.again.items():
        earlier = [each for each in decisions.read(made.folder, NAMES[0], student)[0] if each.exercise == exercise]
        [before, after] = earlier[-2:]
        [asked] = [note for note in made.asked[student] if note.startswith(f"{exercise}: ")]
        worth = next(mark.worth for mark in results[student].marks if mark.exercise == exercise)
        assert f"{before.who} gave {text.counted(before.points, 'point')}" in asked
        assert f"now the tests give {worth:g}" in asked and before.points != worth
        assert after.points == points != worth and after.submission != before.submission


@pytest.mark.parametrize("name", NAMES)
def test_every_export_has_the_planned_points(made: semester.Semester, name: str) -> None:
    files, wanted = exported(made, name), planned(made, name)
    rows = {row["student"]: row for row in csv.DictReader(io.StringIO(files["csv"]))}
    assert {student: float(row["points"]) for student, row in rows.items() if row["points"]} == pytest.approx(wanted)
    everybody = json.loads(files["json"])["students"]
    assert {each["student"]: each["points"] for each in everybody if each["points"] is not None} == pytest.approx(
        wanted
    )
    assert {row["state"] for row in rows.values()} == {"graded", "not submitted"}
    parts: dict[str, dict[str, float]] = {}
    for row in csv.DictReader(io.StringIO(files["questions.csv"])):
        if row["points"]:
            parts.setdefault(row["student"], {})[row["exercise"]] = float(row["points"])
    assert parts == {student: pytest.approx(made.marks(NAMES.index(name), student)) for student in wanted}
    # Those who have left are not in the files for other systems, and nobody else is missing there.
    there = {student: points for student, points in wanted.items() if student not in made.left}
    people = [Person(f"{1000 + place}", "x", f"u{student}", f"{student}@example.org")
              for place, student in enumerate(made.students)]  # fmt: skip
    canvas, moodle = Canvas(people, {"1": name}), Moodle(people, [name])
    canvas.upload(files["canvas.csv"])
    moodle.upload(files["moodle.csv"], "Username", "login", {name: name})
    student_of = {person.number: student for person, student in zip(people, made.students, strict=True)}
    assert canvas.asks_about == [] and len(canvas.titles) == 1
    assert {student_of[number]: float(grade) for (number, _), grade in canvas.grades.items()} == pytest.approx(
        there, abs=1e-3
    )
    assert {login[1:]: float(grade) for (login, _), grade in moodle.grades.items()} == pytest.approx(there, abs=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_the_gradebook_has_the_planned_points(made: semester.Semester, name: str) -> None:
    summary = grade.grade_class(made.folder, name, workers=0)
    assert not summary.gradebook_problem and summary.graded == ()
    with Gradebook(made.folder.gradebook_url) as book:
        handed_in = book.assignment_submissions(name)
        scores = {one.student.id: one.score - (one.late_submission_penalty or 0) for one in handed_in}
    assert scores == pytest.approx(planned(made, name))


def test_repeating_every_command_changes_nothing(made: semester.Semester) -> None:
    before = {name: exported(made, name) for name in NAMES}
    for week, name in enumerate(NAMES):
        source = next((made.folder.root.parent / "handed-in").glob(f"{name}-*"))
        assert semester.take(made, week, source).new == []
        assert grade.grade_class(made.folder, name, workers=0, database=None).graded == ()
    assert {name: exported(made, name) for name in NAMES} == before


def test_the_same_semester_ends_the_same_on_a_machine_that_never_dies(
    made: semester.Semester, tmp_path: Path, known: dict[str, Done]
) -> None:
    again = held(tmp_path, SIZE, known)
    for name in NAMES:
        results = found(again, name)
        points = {student: one.points for student, one in results.items() if one.points is not None}
        assert points == pytest.approx(planned(again, name))
        assert {one.state for one in results.values()} <= {State.GRADED, State.NOT_SUBMITTED}
    assert {name: exported(again, name) for name in NAMES} == {name: exported(made, name) for name in NAMES}


def test_correcting_the_wrong_test_gave_the_right_answer_its_points(made: semester.Semester) -> None:
    name, lecture = semester.OWN[-1], made.lectures[-1]
    right = [
        version
        for (n, version), answers in made.answers.items()
        if n == name and "-(-n // step) * step" in str(answers)
    ]
    theirs = [student for student in made.students
              if [one.version for one in made.work.get((name, student), [])] == [right[0]]]  # fmt: skip
    assert len(theirs) > 5
    results = found(made, name)
    assert all(sum(mark.points for mark in results[student].marks) == lecture.points for student in theirs)

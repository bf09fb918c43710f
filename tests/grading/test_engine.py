"""Grading a class: states, resuming, failures of the machine, and death at any moment."""

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbgrader.api import Gradebook
from typer.testing import CliRunner

from autograder import build, cli, engine, gradebook, results, roster, sandbox, source
from autograder.results import State

NAME = "00_napkin_math"
LECTURE = source.read(build.SOLUTIONS / f"{NAME}.py")
FIRST, SECOND = LECTURE.exercises[:2]
WHOLE = sum(exercise.points for exercise in LECTURE.exercises)
LIMITS = sandbox.Limits(seconds=5, seconds_in_all=20)
CRASH = "import os\nos._exit(3)"
HANG = "while True:\n    pass"

pytestmark = pytest.mark.sandboxed


def hand_in(course: Path, student: str, **answers: str) -> Path:
    """A notebook with the reference's answers, but for those given."""
    notebook = nbformat.from_dict(json.loads(json.dumps(LECTURE.notebook)))
    for cell in notebook.cells:
        cell.source = answers.get(cell.id, cell.source)
    path = build.notebook_path(course / "submitted" / student, NAME)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(nbformat.writes(notebook), encoding="utf-8")
    return path


def files(course: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (course / "results" / NAME).glob("[!.]*")}


def scores(course: Path, student: str) -> dict[str, float]:
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as book:
        return {grade.name: grade.score for grade in book.find_submission_notebook(NAME, NAME, student).grades}


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, engine.Summary]:
    """A class graded once by one Dask worker."""
    course = tmp_path_factory.mktemp("class")
    build.course_directory(course, [LECTURE.path])
    hand_in(course, "ada")
    hand_in(course, "blank", **{exercise.name: exercise.stub for exercise in LECTURE.exercises})
    hand_in(course, "crash", **{FIRST.name: CRASH})
    hand_in(course, "hang", **{SECOND.name: HANG})
    hand_in(course, "odd", **{FIRST.name: "raise ValueError('\\ud800 \\x1b[31m <script>')"})
    hand_in(course, "broken").write_bytes(b'{"cells": [')
    link = build.notebook_path(course / "submitted" / "link", NAME)
    link.parent.mkdir(parents=True)
    link.symlink_to(build.notebook_path(course / "submitted" / "ada", NAME))
    (course / "submitted" / "misnamed" / NAME).mkdir(parents=True)
    (course / "submitted" / "misnamed" / NAME / "my answers.ipynb").write_text("{}")
    (course / "roster.csv").write_text("id,first_name\nada,Ada\nabsent,Al\n")
    return course, engine.grade_class(course, NAME, workers=1, limits=LIMITS)


@pytest.fixture
def course(graded: tuple[Path, engine.Summary], tmp_path: Path) -> Path:
    """A copy of that class."""
    return Path(shutil.copytree(graded[0], tmp_path / "class", symlinks=True))


def test_states_add_up_and_say_why(graded: tuple[Path, engine.Summary]) -> None:
    _, summary = graded
    found = summary.results
    assert {student: result.state for student, result in found.items()} == {
        "absent": State.NOT_SUBMITTED, "ada": State.GRADED, "blank": State.GRADED, "broken": State.NEEDS_REVIEW,
        "crash": State.NEEDS_REVIEW, "hang": State.NEEDS_REVIEW, "link": State.NEEDS_REVIEW,
        "misnamed": State.NOT_SUBMITTED, "odd": State.GRADED,
    }  # fmt: skip
    assert sum(results.counts(found).values()) == len(found) == 9
    points = {student: result.points for student, result in found.items()}
    assert points == {
        "absent": None, "ada": WHOLE, "blank": 0, "broken": 0, "crash": WHOLE - FIRST.points,
        "hang": WHOLE - SECOND.points, "link": 0, "misnamed": None, "odd": WHOLE - FIRST.points,
    }  # fmt: skip
    assert "not JSON" in found["broken"].notes[0] and "symbolic link" in found["link"].notes[0]
    assert "the process ended" in "\n".join(found["crash"].notes)
    assert "longer than 5 seconds" in "\n".join(found["hang"].notes)
    assert "cannot be graded: it is not JSON" in found["broken"].marks[0].message
    assert "misnamed handed in my answers.ipynb" in "\n".join(summary.remarks)
    assert "ada is not on the roster" not in "\n".join(summary.remarks)
    assert "\x1b" not in (text := found["odd"].marks[0].message) and "ValueError" in text
    assert summary.complete


def test_the_gradebook_has_the_same_points(graded: tuple[Path, engine.Summary]) -> None:
    course, summary = graded
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as book:
        handed_in = {submission.student.id: submission for submission in book.assignment_submissions(NAME)}
        assert {student: submission.score for student, submission in handed_in.items()} == {
            student: result.points for student, result in summary.results.items() if result.points is not None
        }
        assert all(submission.max_score == WHOLE for submission in handed_in.values())
        assert handed_in["crash"].needs_manual_grade and not handed_in["ada"].needs_manual_grade
        assert {student.id for student in book.students} == set(handed_in)
    shown = nbformat.read(build.notebook_path(course / "autograded" / "crash", NAME), as_version=4)
    cells = {cell.id: cell for cell in shown.cells}
    assert cells[FIRST.name].source == CRASH
    assert "did not come to an end" in cells[f"test_{FIRST.name}"].outputs[0].text
    nbformat.validate(shown)


def test_again_grades_nothing_and_changes_nothing(course: Path) -> None:
    before = files(course)
    summary = engine.grade_class(course, NAME, workers=0, limits=LIMITS)
    assert summary.graded == () and files(course) == before


def test_regrading_gives_the_same_bytes_and_a_change_regrades_one(course: Path) -> None:
    for student in ("hang", "broken"):  # what takes its time
        shutil.rmtree(course / "submitted" / student)
        results.path_of(course, NAME, student).unlink()
    before = files(course)
    summary = engine.grade_class(course, NAME, workers=0, limits=LIMITS, again=True)
    assert len(summary.graded) == len(before) == 5 and files(course) == before
    assert results.times(course, NAME).keys() >= {"ada", "blank", "crash", "odd"}

    hand_in(course, "blank", **{FIRST.name: FIRST.stub})
    summary = engine.grade_class(course, NAME, workers=0, limits=LIMITS)
    assert summary.graded == ("blank",)
    assert summary.results["blank"].points == WHOLE - FIRST.points == sum(scores(course, "blank").values())
    after = files(course)
    assert {name for name in after if after[name] != before[name]} == {"blank.json"}


def test_a_full_disk_stops_with_a_message_and_loses_nothing(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = files(course)
    hand_in(course, "ada", **{FIRST.name: FIRST.stub})
    hand_in(course, "blank")
    real, written = results.write, []

    def write(*args: Any) -> None:
        if written:
            raise OSError(28, "No space left on device")
        written.append(args)
        real(*args)

    monkeypatch.setattr(results, "write", write)
    with pytest.raises(engine.EngineError, match=r"result of blank cannot be written: .*No space left(.|\n)*make room"):
        engine.grade_class(course, NAME, workers=0, limits=LIMITS)
    assert {name for name, content in files(course).items() if content != before[name]} == {"ada.json"}
    monkeypatch.undo()
    assert engine.grade_class(course, NAME, workers=0, limits=LIMITS).graded == ("blank",)


def test_a_locked_gradebook_is_tried_again_then_reported(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradebook, "PAUSE", 0.0)
    hand_in(course, "blank")
    said: list[str] = []
    url = f"sqlite:///{course / 'gradebook.db'}?timeout=0.1"
    lock = sqlite3.connect(course / "gradebook.db", isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    summary = engine.grade_class(course, NAME, workers=0, limits=LIMITS, database=url, say=said.append)
    assert len(said) == gradebook.TRIES - 1 and "locked" in said[0]
    assert "locked" in summary.gradebook_problem and "results are safe" in summary.gradebook_problem
    assert not summary.complete and summary.results["blank"].points == WHOLE
    lock.rollback()
    lock.close()
    again = engine.grade_class(course, NAME, workers=0, limits=LIMITS)
    assert again.graded == () and again.complete and sum(scores(course, "blank").values()) == WHOLE


@pytest.mark.hostile
def test_a_lost_sandbox_is_replaced_and_in_the_end_no_zero(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hand_in(course, "blank", **{FIRST.name: FIRST.stub})
    real, lost = engine.judge.grade, []

    def grade(lecture: Any, answers: Any, box: sandbox.Sandbox) -> Any:
        if len(lost) < times:
            lost.append(box)
            box._process.kill()
            box._process.wait()
        return real(lecture, answers, box)

    monkeypatch.setattr(engine.judge, "grade", grade)
    times = engine.ATTEMPTS
    summary = engine.grade_class(course, NAME, workers=0, limits=LIMITS)
    result = summary.results["blank"]
    assert result.state is State.FAILED_HERE and result.points is None and "3 times" in result.notes[0]
    assert len(set(map(id, lost))) == engine.ATTEMPTS and not summary.complete
    assert sum(scores(course, "blank").values()) == 0  # what was known before; a failure is not written
    lost.clear()
    times = 2
    summary = engine.grade_class(course, NAME, workers=0, limits=LIMITS)
    assert summary.graded == ("blank",) and summary.results["blank"].state is State.GRADED


def test_a_failed_regrading_keeps_the_grade(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = files(course)
    monkeypatch.setattr(engine, "grade_one", lambda task: {"failed": "the roof came down"})
    summary = engine.grade_class(course, NAME, workers=0, limits=LIMITS, again=True)
    assert len(summary.graded) == 7 and files(course) == before


def test_a_damaged_result_is_graded_again(course: Path) -> None:
    before = files(course)
    path = results.path_of(course, NAME, "ada")
    path.write_bytes(before["ada.json"][:100])
    assert engine.grade_class(course, NAME, workers=0, limits=LIMITS).graded == ("ada",)
    assert files(course) == before


def test_one_command_at_a_time(course: Path) -> None:
    with engine._alone(course, NAME), pytest.raises(engine.EngineError, match="another command is grading"):
        engine.grade_class(course, NAME, workers=0, limits=LIMITS)


def test_the_command_says_what_it_did(course: Path) -> None:
    runner = CliRunner()
    hand_in(course, "ada", **{SECOND.name: SECOND.stub})
    told = runner.invoke(cli.app, ["grade", str(course), NAME, "--dry-run"])
    assert told.exit_code == 0 and "would grade ada" in told.output
    assert "1 to grade, 6 graded before, 2 not submitted" in told.output
    told = runner.invoke(cli.app, ["grade", str(course), NAME, "--workers", "0"])
    assert told.exit_code == 0, told.output
    assert "1 graded now" in told.output and "hang, needs review" in told.output
    told = runner.invoke(cli.app, ["grade", str(course / "nowhere"), NAME])
    assert told.exit_code == 1 and "put submissions into" in told.output and not (course / "nowhere").exists()
    told = runner.invoke(cli.app, ["grade", str(course), "17_nothing"])
    assert told.exit_code == 2 and "there is no lecture '17_nothing'; there are 00_napkin_math," in told.output


def test_names_that_are_no_names(course: Path) -> None:
    (course / "submitted" / "new\nline" / NAME).mkdir(parents=True)
    with pytest.raises(roster.RosterError, match="no names for a student"):
        engine.plan(course, NAME)
    (course / "submitted" / "new\nline" / NAME).rmdir()
    (course / "submitted" / "new\nline").rmdir()
    (course / "other.csv").write_text("name\nada\n")
    with pytest.raises(roster.RosterError, match="no column `id`"):
        engine.plan(course, NAME, roster=course / "other.csv")


@pytest.mark.hostile
def test_a_killed_worker_is_replaced(tmp_path: Path, graded: tuple[Path, engine.Summary]) -> None:
    """The only worker dies with a submission in flight; all are graded in the end, as without that."""
    for student in ("ada", "crash"):
        path = build.notebook_path(graded[0] / "submitted" / student, NAME)
        target = build.notebook_path(tmp_path / "submitted" / student, NAME)
        target.parent.mkdir(parents=True)
        shutil.copyfile(path, target)
    killed: list[int] = []

    def kill(done: int, total: int, latest: Any) -> None:
        # At the first result the other submission is in flight, on the only worker.
        if done == 1 and not killed:
            children = " ".join(path.read_text() for path in Path("/proc/self/task").glob("*/children"))
            for child in map(int, children.split()):
                if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                    killed.append(child)
                    os.kill(child, signal.SIGKILL)

    summary = engine.grade_class(tmp_path, NAME, workers=1, limits=LIMITS, progress=kill)
    assert killed
    assert set(summary.graded) == {"ada", "crash"}
    for student in ("ada", "crash"):
        assert files(tmp_path)[f"{student}.json"] == files(graded[0])[f"{student}.json"]


@pytest.mark.hostile
def test_sigkill_at_any_moment(tmp_path: Path) -> None:
    """The command is killed again and again; what it ends with is what an uninterrupted run gives."""
    for number in range(6):
        hand_in(tmp_path, f"s{number}", **({FIRST.name: CRASH} if number % 2 else {}))
    undisturbed = Path(shutil.copytree(tmp_path, tmp_path.with_name("undisturbed")))
    engine.grade_class(undisturbed, NAME, workers=0, limits=LIMITS)
    wanted = files(undisturbed)
    command = [sys.executable, "-m", "autograder.cli", "grade", str(tmp_path), NAME, "--workers", "0"]
    chance = random.Random(int(os.environ.get("COURSE_KILL_SEED", "0")))
    rounds, killed = int(os.environ.get("COURSE_KILLS", "4")), 0
    took = 0.0
    while killed < rounds:
        started = time.monotonic()
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=build.ROOT)
        before = len(files(tmp_path)) if (tmp_path / "results").exists() else 0
        # From the first new result on, the moment is left to chance; now and then the start is hit too.
        if chance.random() < 0.75:
            while run.poll() is None and len(files(tmp_path)) <= before and time.monotonic() < started + 120:
                time.sleep(0.02)
        time.sleep(chance.random() * max(took, 0.3))
        if run.poll() is None:
            run.kill()
            killed += 1
        _, error = run.communicate()
        assert run.returncode in (0, -signal.SIGKILL), error.decode()
        took = 0.5
        left = {name: content for name, content in files(tmp_path).items() if content != wanted[name]}
        assert not left, "a result that is neither missing nor whole"
        if len(files(tmp_path)) == len(wanted):  # all done: begin again
            chosen = chance.choice(sorted(wanted))
            (tmp_path / "results" / NAME / chosen).unlink()
    done = subprocess.run(command, capture_output=True, text=True, cwd=build.ROOT)
    assert done.returncode == 0, done.stderr
    assert files(tmp_path) == wanted
    assert not list((tmp_path / "results" / NAME).glob(".*.partial"))
    for number in range(6):
        assert scores(tmp_path, f"s{number}") == scores(undisturbed, f"s{number}")

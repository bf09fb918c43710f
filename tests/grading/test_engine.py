"""Grading a class: states, resuming, failures of the machine, and death at any moment."""

import contextlib
import fcntl
import itertools
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import nbformat
import psutil
import pytest
from classroom import CRASH, FIRST, HANG, LECTURE, LIMITS, NAME, SECOND, WHOLE, files, hand_in, scores
from nbgrader.api import Gradebook
from typer.testing import CliRunner

from autograder import cli, project
from autograder.authoring import build
from autograder.grading import conversation, judge, marks, sandbox, source, worker
from autograder.grading.key import key
from autograder.grading.marks import State
from autograder.inside.limits import Limits
from autograder.inside.messages import Ran, Run
from autograder.records import grade, gradebook, results, roster
from autograder.records.folder import ClassFolder

# One worker has all of these: they share a class that takes a quarter of a minute to grade.
pytestmark = [pytest.mark.sandboxed, pytest.mark.xdist_group("engine")]


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, grade.Summary]:
    """A class graded once, by one worker."""
    course = tmp_path_factory.mktemp("class")
    build.course_directory(course, [LECTURE.path])
    hand_in(course, "ada")
    hand_in(course, "blank", **{exercise.name: exercise.stub for exercise in LECTURE.exercises})
    hand_in(course, "crash", **{FIRST.name: CRASH})
    hand_in(course, "hang", **{SECOND.name: HANG})
    hand_in(course, "odd", **{FIRST.name: "raise ValueError('\\ud800 \\x1b[31m <script>')"})
    hand_in(course, "broken").write_bytes(b'{"cells": [')
    link = project.notebook_path(course / "submitted" / "link", NAME)
    link.parent.mkdir(parents=True)
    link.symlink_to(project.notebook_path(course / "submitted" / "ada", NAME))
    (course / "submitted" / "misnamed" / NAME).mkdir(parents=True)
    (course / "submitted" / "misnamed" / NAME / "my answers.ipynb").write_text("{}")
    (course / "roster.csv").write_text("id,first_name\nada,Ada\nabsent,Al\n")
    return course, grade.grade_class(ClassFolder(course), NAME, workers=1, limits=LIMITS)


@pytest.fixture
def course(graded: tuple[Path, grade.Summary], tmp_path: Path) -> Path:
    """A copy of that class."""
    return Path(shutil.copytree(graded[0], tmp_path / "class", symlinks=True))


def test_states_add_up_to_the_class_and_notes_say_why(graded: tuple[Path, grade.Summary]) -> None:
    _, summary = graded
    found = summary.results
    assert {student: result.state for student, result in found.items()} == {
        "absent": State.NOT_SUBMITTED, "ada": State.GRADED, "blank": State.GRADED, "broken": State.NEEDS_REVIEW,
        "crash": State.NEEDS_REVIEW, "hang": State.NEEDS_REVIEW, "link": State.NEEDS_REVIEW,
        "misnamed": State.NOT_SUBMITTED, "odd": State.NEEDS_REVIEW,
    }  # fmt: skip
    assert sum(marks.counts(found).values()) == len(found) == 9
    points = {student: result.points for student, result in found.items()}
    assert points == {
        "absent": None, "ada": WHOLE, "blank": 0, "broken": 0, "crash": WHOLE - FIRST.points,
        "hang": WHOLE - SECOND.points, "link": 0, "misnamed": None, "odd": WHOLE - FIRST.points,
    }  # fmt: skip
    assert "not JSON" in found["broken"].notes[0] and "symbolic link" in found["link"].notes[0]
    assert "the process ended" in "\n".join(found["crash"].notes)
    assert "longer than 5 seconds" in "\n".join(found["hang"].notes)
    assert "stopped here with ValueError" in "\n".join(found["odd"].notes)
    assert "cannot be graded: it is not JSON" in found["broken"].marks[0].message
    assert "misnamed handed in my answers.ipynb" in "\n".join(summary.remarks)
    assert "ada is not on the roster" not in "\n".join(summary.remarks)
    text = found["odd"].marks[0].message
    assert "\x1b" not in text and "\ud800" not in text
    assert "Your cell stopped with ValueError: \\ud800 \\x1b[31m <script>" in text  # spelled out
    assert summary.complete


def test_the_gradebook_has_the_same_points(graded: tuple[Path, grade.Summary]) -> None:
    course, summary = graded
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as book:
        handed_in = {submission.student.id: submission for submission in book.assignment_submissions(NAME)}
        assert {student: submission.score for student, submission in handed_in.items()} == {
            student: result.points for student, result in summary.results.items() if result.points is not None
        }
        assert all(submission.max_score == WHOLE for submission in handed_in.values())
        assert handed_in["crash"].needs_manual_grade and not handed_in["ada"].needs_manual_grade
        assert {student.id for student in book.students} == set(handed_in)
    shown = nbformat.read(project.notebook_path(course / "autograded" / "crash", NAME), as_version=4)
    cells = {cell.id: cell for cell in shown.cells}
    assert cells[FIRST.name].source == CRASH
    assert "gave no result" in cells[f"test_{FIRST.name}"].outputs[0].text
    nbformat.validate(shown)


@pytest.mark.usefixtures("warm")
def test_the_same_class_again_grades_nothing_and_changes_nothing(course: Path) -> None:
    before = files(course)
    summary = grade.grade_class(ClassFolder(course), NAME, workers=0, limits=LIMITS)
    assert summary.graded == () and files(course) == before


@pytest.mark.usefixtures("warm")
def test_regrading_gives_the_same_bytes_and_a_change_regrades_one(course: Path) -> None:
    for student in ("hang", "broken"):  # what takes its time
        shutil.rmtree(course / "submitted" / student)
        ClassFolder(course).result(student, NAME).unlink()
    before = files(course)
    summary = grade.grade_class(ClassFolder(course), NAME, workers=0, limits=LIMITS, again=True)
    assert len(summary.graded) == len(before) == 5 and files(course) == before
    assert results.times(ClassFolder(course), NAME).keys() >= {"ada", "blank", "crash", "odd"}

    hand_in(course, "blank", **{FIRST.name: FIRST.stub})
    summary = grade.grade_class(ClassFolder(course), NAME, workers=0, limits=LIMITS)
    assert summary.graded == ("blank",)
    assert summary.results["blank"].points == WHOLE - FIRST.points == sum(scores(course, "blank").values())
    after = files(course)
    assert {name for name in after if after[name] != before[name]} == {"blank.json"}


@pytest.mark.usefixtures("warm")
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
    with pytest.raises(
        worker.EngineError, match=r"result of blank cannot be written: .*No space left(.|\n)*free some disk space"
    ):
        grade.grade_class(ClassFolder(course), NAME, workers=0, limits=LIMITS)
    assert {name for name, content in files(course).items() if content != before[name]} == {"ada.json"}
    monkeypatch.undo()
    assert grade.grade_class(ClassFolder(course), NAME, workers=0, limits=LIMITS).graded == ("blank",)


@pytest.mark.usefixtures("warm")
def test_a_locked_gradebook_is_tried_again_then_reported(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradebook, "PAUSE", 0.0)
    hand_in(course, "blank")
    said: list[str] = []
    url = f"sqlite:///{course / 'gradebook.db'}?timeout=0.1"
    lock = sqlite3.connect(course / "gradebook.db", isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    summary = grade.grade_class(ClassFolder(course), NAME, workers=0, limits=LIMITS, database=url, say=said.append)
    assert len(said) == gradebook.TRIES - 1 and "locked" in said[0]
    assert "locked" in summary.gradebook_problem and "results are safe" in summary.gradebook_problem
    assert not summary.complete and summary.results["blank"].points == WHOLE
    lock.rollback()
    lock.close()
    again = grade.grade_class(ClassFolder(course), NAME, workers=0, limits=LIMITS)
    assert again.graded == () and again.complete and sum(scores(course, "blank").values()) == WHOLE


@pytest.mark.hostile
def test_a_lost_sandbox_is_replaced_and_in_the_end_no_zero(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hand_in(course, "blank", **{FIRST.name: FIRST.stub})
    real, lost = judge.grade, []

    def lose(problems: Any, answers: Any, box: sandbox.Sandbox) -> Any:
        if len(lost) < times:
            lost.append(box)
            box._process.kill()
            box._process.wait()
        return real(problems, answers, box)

    monkeypatch.setattr(judge, "grade", lose)
    times = worker.ATTEMPTS
    summary = grade.grade_class(ClassFolder(course), NAME, workers=0, limits=LIMITS)
    result = summary.results["blank"]
    assert result.state is State.FAILED_HERE and result.points is None and "3 times" in result.notes[0]
    assert len(set(map(id, lost))) == worker.ATTEMPTS and not summary.complete
    assert sum(scores(course, "blank").values()) == 0  # what was known before; a failure is not written
    lost.clear()
    times = 2
    summary = grade.grade_class(ClassFolder(course), NAME, workers=0, limits=LIMITS)
    assert summary.graded == ("blank",) and summary.results["blank"].state is State.GRADED


def test_a_failed_regrading_keeps_the_grade(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = files(course)
    monkeypatch.setattr(worker, "grade_one", lambda task: worker.Failed("the roof came down"))
    summary = grade.grade_class(ClassFolder(course), NAME, workers=0, limits=LIMITS, again=True)
    assert len(summary.graded) == 7 and files(course) == before


@pytest.mark.usefixtures("warm")
def test_a_damaged_result_is_graded_again(course: Path) -> None:
    before = files(course)
    path = ClassFolder(course).result("ada", NAME)
    path.write_bytes(before["ada.json"][:100])
    assert grade.grade_class(ClassFolder(course), NAME, workers=0, limits=LIMITS).graded == ("ada",)
    assert files(course) == before


@pytest.mark.usefixtures("warm")
def test_a_second_command_on_the_same_lecture_waits_for_the_first(course: Path) -> None:
    """One is a process of its own, the other is called in this one, once the first has begun."""
    before = files(course)
    for student in ("ada", "odd"):
        ClassFolder(course).result(student, NAME).unlink()
    command = ["grade", str(course), NAME, "--workers"]
    first = subprocess.Popen(
        [Path(sys.executable).with_name("course"), *command, "1"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    with (course / "results" / NAME / ".lock").open() as lock, contextlib.suppress(BlockingIOError):
        while first.poll() is None:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(lock, fcntl.LOCK_UN)
            time.sleep(0.01)
    second = CliRunner().invoke(cli.app, [*command, "0"])
    said = [" ".join(text.split()) for text in (first.communicate(timeout=300)[0], second.output)]
    assert [first.returncode, second.exit_code] == [0, 0], said
    assert "2 graded now" in said[0] and "0 graded now" in said[1] and files(course) == before, said
    waiting = f"waiting until another command has graded {NAME} in {course}"
    assert [waiting in text for text in said] == [False, True], said


@pytest.mark.usefixtures("warm")
def test_two_lectures_of_one_class_are_graded_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two commands write into one class and one gradebook; neither fails, and each finds all of its points there.

    One is a process of its own, the other is called in this one. It begins with the gradebook when the first does.
    """
    other = source.read(project.SOLUTIONS / "01_tensors.py")
    lectures = (LECTURE, other)
    build.course_directory(tmp_path, [lecture.path for lecture in lectures])
    for student, lecture in itertools.product(("ada", "bob", "cem"), lectures):
        path = project.notebook_path(tmp_path / "submitted" / student, lecture.name)
        path.parent.mkdir(parents=True)
        path.write_text(nbformat.writes(lecture.notebook), encoding="utf-8")
    first = subprocess.Popen(
        [Path(sys.executable).with_name("course"), "grade", str(tmp_path), other.name, "--workers", "1"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    real = gradebook.derive

    def derive(*args: Any, **kwargs: Any) -> int:
        while len(list((tmp_path / "results" / other.name).glob("[!.]*.json"))) < 3 and first.poll() is None:
            time.sleep(0.01)
        return real(*args, **kwargs)

    monkeypatch.setattr(gradebook, "derive", derive)
    second = CliRunner().invoke(cli.app, ["grade", str(tmp_path), NAME, "--workers", "0"])
    said = [first.communicate(timeout=300)[0], second.output]
    assert [first.returncode, second.exit_code] == [0, 0], said
    assert all("3 graded now" in text for text in said), said
    with Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}") as book:
        for student, lecture in itertools.product(("ada", "bob", "cem"), lectures):
            assert book.find_submission(lecture.name, student).score == lecture.problems.points


@pytest.mark.usefixtures("warm")
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
    assert told.exit_code == 1 and "course init" in told.output and not (course / "nowhere").exists()
    (course / "empty").mkdir()
    told = runner.invoke(cli.app, ["grade", str(course / "empty"), NAME])
    assert told.exit_code == 1 and "put submissions into" in told.output and not list((course / "empty").iterdir())
    told = runner.invoke(cli.app, ["grade", str(course), "17_nothing"])
    assert told.exit_code == 2 and "there is no lecture '17_nothing'; there are 00_napkin_math," in told.output


def test_a_roster_without_names_is_refused(course: Path) -> None:
    (course / "other.csv").write_text("name\nada\n")
    with pytest.raises(roster.RosterError, match="no column `id`"):
        grade.plan(ClassFolder(course), NAME, roster=course / "other.csv")


@pytest.mark.hostile
def test_a_killed_worker_is_replaced(tmp_path: Path, graded: tuple[Path, grade.Summary]) -> None:
    """The only worker dies with a submission in flight; all are graded in the end, as without that."""
    for student in ("ada", "crash"):
        path = project.notebook_path(graded[0] / "submitted" / student, NAME)
        target = project.notebook_path(tmp_path / "submitted" / student, NAME)
        target.parent.mkdir(parents=True)
        shutil.copyfile(path, target)
    killed: list[int] = []

    def kill(done: int, total: int, latest: Any) -> None:
        # At the first result the other submission is in flight, on the only worker.
        if done == 1 and not killed:
            children = " ".join(path.read_text() for path in Path("/proc/self/task").glob("*/children"))
            for child in map(int, children.split()):
                if b"autograder.grading.pool" in Path(f"/proc/{child}/cmdline").read_bytes():
                    killed.append(child)
                    os.kill(child, signal.SIGKILL)

    summary = grade.grade_class(ClassFolder(tmp_path), NAME, workers=1, limits=LIMITS, progress=kill)
    assert len(killed) == 1
    assert set(summary.graded) == {"ada", "crash"}
    for student in ("ada", "crash"):
        assert files(tmp_path)[f"{student}.json"] == files(graded[0])[f"{student}.json"]


def test_a_process_that_the_machine_kills_is_no_zero(box: sandbox.Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """From outside: another try in the same sandbox. What ran out of processor time has itself to blame."""
    monkeypatch.setattr(box, "limits", Limits(seconds=20, cpu_seconds=2))

    def inner(process: int, depth: int) -> int:
        for _ in range(depth):
            process = int(Path(f"/proc/{process}/task/{process}/children").read_text().split()[0])
        return process

    for depth in (3, 4):  # bwrap, its first process, the warm process, its child; the student's process
        with pytest.raises(sandbox.SandboxError, match="killed the student's process"), box.conversation() as talk:
            assert talk.ask(Run("x = 1")) == Ran("", "")
            os.kill(inner(box._process.pid, depth), signal.SIGKILL)
            with pytest.raises(conversation.Gone, match="the process ended"):
                talk.ask(Run("x = 2"))
    for ends in (HANG, CRASH, "import os\nos._exit(247)", "import os, signal\nos.abort()"):
        with box.conversation() as talk, pytest.raises(conversation.Gone, match="the process ended"):
            talk.ask(Run(ends))


def test_what_a_killed_submission_leaves_ends_before_the_next_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not want to end with whoever waits for it, and that process is killed from outside."""
    stays = "import ctypes, time\nctypes.CDLL(None).prctl(1, 0)\nfor _ in range(600):\n    time.sleep(0.1)"
    worker.close_box()
    real, killed, left = judge.grade, [], []

    def grade_and_kill(problems: object, cells: object, box: sandbox.Sandbox) -> object:
        left.append(len(psutil.Process(box._process.pid).children(recursive=True)))
        if killed:
            return [], []
        with box.conversation() as talk:
            *_, waiting, inner = psutil.Process(box._process.pid).children(recursive=True)
            killed.append(inner)
            with contextlib.suppress(conversation.Gone):
                talk.ask(Run(stays), 0.3)
            waiting.kill()
        return real(problems, cells, box)  # type: ignore[arg-type]

    monkeypatch.setattr(judge, "grade", grade_and_kill)
    submission = nbformat.writes(LECTURE.notebook).encode()
    given = worker.Task("ada", LECTURE.problems, submission, key(submission, LECTURE.problems), LIMITS)
    assert isinstance(worker.grade_one(given), worker.Graded)
    worker.close_box()
    assert len(left) == 2 and left[0] == left[1] and not killed[0].is_running()


@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize("where", ["first", "later"])
def test_a_process_that_cannot_be_isolated_is_a_failure_here_and_no_zero(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sandbox has started, and namespaces run out."""
    begun = conversation.Conversation.begun
    calls = []

    def fails(talk: conversation.Conversation) -> bool:
        calls.append(talk)
        return begun(talk) and where == "later" and len(calls) == 1

    monkeypatch.setattr(conversation.Conversation, "begun", fails)
    worker.close_box()
    said = worker.prepare(LIMITS, False)
    assert ("could not be isolated" in said) is (where == "first")
    submission = nbformat.writes(LECTURE.notebook).encode()
    given = worker.Task("ada", LECTURE.problems, submission, key(submission, LECTURE.problems), LIMITS)
    found = worker.grade_one(given)
    worker.close_box()
    assert isinstance(found, worker.Failed) and "could not be isolated" in found.reason


@pytest.mark.parametrize("times", [worker.ATTEMPTS - 1, worker.ATTEMPTS])
def test_a_sandbox_that_dies_while_it_starts_is_started_again(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    real, lost = sandbox.Sandbox._receive, []

    def receive(box: sandbox.Sandbox) -> bytes:
        if len(lost) < times:
            lost.append(box._process.pid)
            box._process.kill()
        return real(box)

    monkeypatch.setattr(sandbox.Sandbox, "_receive", receive)
    worker.close_box()
    started = time.monotonic()
    said = worker.prepare(LIMITS, False)
    worker.close_box()
    assert ("the sandbox did not start" in said) == (times == worker.ATTEMPTS) and len(lost) == times
    assert time.monotonic() - started < 100, "it waited for what is dead"
    end = time.monotonic() + 20
    with pytest.raises(ProcessLookupError):  # nothing is left of the last
        while time.monotonic() < end:
            os.killpg(lost[-1], 0)
            time.sleep(0.1)

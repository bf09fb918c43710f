"""The gradebook is derived from results: in SQLite, and in a PostgreSQL server that is started for these tests."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy
from nbgrader.api import Gradebook
from typer.testing import CliRunner

from autograder import cli, project
from autograder.grading import source
from autograder.grading.marks import Mark, Result, State
from autograder.records import gradebook, results
from autograder.records.folder import ClassFolder
from autograder.records.roster import Student

NAME = "00_napkin_math"
LECTURE = source.read(project.SOLUTIONS / f"{NAME}.py")
FIRST, SECOND = LECTURE.exercises[:2]
WHOLE = sum(exercise.points for exercise in LECTURE.exercises)


def result(student: str, *failed: str, notes: tuple[str, ...] = ()) -> Result:
    marks = tuple(
        Mark(exercise.name, 0.0 if exercise.name in failed else exercise.points, exercise.points, "✗ λ 𝟙 <b>")
        for exercise in LECTURE.exercises
    )
    return Result(student, NAME, State.NEEDS_REVIEW if notes else State.GRADED, "", marks, notes)


def found(*graded: Result) -> dict[str, Result]:
    return {one.student: one for one in graded}


@pytest.fixture(scope="module")
def postgresql() -> Iterator[str]:
    """The URL of a server of our own: in a temporary folder, on a socket there, gone afterwards."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    initdb = str(programs[-1] / "initdb") if programs else shutil.which("initdb")
    if initdb is None:
        pytest.skip("PostgreSQL's server is not installed (apt install postgresql)")
    with tempfile.TemporaryDirectory(prefix="pg", dir="/tmp") as name:  # a socket's path may have 107 characters
        folder = Path(name)
        before: list[str] = []
        if os.geteuid() == 0:  # which the server refuses to run as
            if subprocess.run(["id", "postgres"], capture_output=True).returncode or not shutil.which("runuser"):
                pytest.skip("PostgreSQL does not run as root, and there is no user postgres to run it as")
            before = ["runuser", "-u", "postgres", "--"]
            shutil.chown(folder, "postgres")

        def server(program: str, *arguments: str) -> None:
            command = [*before, str(Path(initdb).with_name(program)), "-D", name + "/data", *arguments]
            ran = subprocess.run(command, cwd="/", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            assert ran.returncode == 0, ran.stdout

        server("initdb", "--auth=trust", "--username=course", "--encoding=UTF8", "--locale=C", "--no-sync")
        options = f"-k {folder} -c listen_addresses= -c fsync=off"
        server("pg_ctl", "-w", "-l", f"{folder}/log", "-o", options, "start")
        try:
            yield f"postgresql+psycopg://course@/postgres?host={folder}"
        finally:
            server("pg_ctl", "-w", "-m", "immediate", "stop")


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'book.db'}"
    server = sqlalchemy.make_url(request.getfixturevalue("postgresql"))
    name = f"class_{os.urandom(4).hex()}"
    engine = sqlalchemy.create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return server.set(database=name).render_as_string(hide_password=False)


def scores(url: str, student: str) -> dict[str, float]:
    with Gradebook(url) as book:
        return {grade.name: grade.score for grade in book.find_submission_notebook(NAME, NAME, student).grades}


def test_new_points_replace_old_ones_and_points_by_hand_stay(tmp_path: Path, url: str) -> None:
    (tmp_path / "submitted" / "ada" / NAME).mkdir(parents=True)
    (tmp_path / "submitted" / "ada" / NAME / "timestamp.txt").write_text("2026-02-03 04:05:06 UTC\n")
    lost = Result("lost", NAME, State.FAILED_HERE, "")
    class_ = found(result("ada"), result("böb 𝟙", FIRST.name, notes=("look at it",)), lost)
    assert gradebook.derive(ClassFolder(tmp_path), LECTURE, class_, url) == 2
    with Gradebook(url) as book:
        assert {student.id: student.score for student in book.students} == {
            "ada": WHOLE, "böb 𝟙": WHOLE - FIRST.points,
        }  # fmt: skip
        ada, bob = (book.find_submission(NAME, student) for student in ("ada", "böb 𝟙"))
        assert ada.timestamp.isoformat() == "2026-02-03T04:05:06" and ada.max_score == WHOLE
        assert bob.needs_manual_grade and not ada.needs_manual_grade
        # What Formgrader does when a person gives points.
        grade = book.find_grade(f"test_{FIRST.name}", NAME, NAME, "böb 𝟙")
        grade.manual_score, grade.extra_credit = 0.5, 0.25
        book.db.commit()
    for _ in range(2):
        assert gradebook.derive(ClassFolder(tmp_path), LECTURE, class_, url) == 2
        assert scores(url, "böb 𝟙")[f"test_{FIRST.name}"] == 0.75
    class_ |= found(result("ada", SECOND.name), result("lost", FIRST.name))
    assert gradebook.derive(ClassFolder(tmp_path), LECTURE, class_, url) == 3
    assert scores(url, "böb 𝟙")[f"test_{FIRST.name}"] == 0.75
    for student, failed in (("ada", SECOND), ("lost", FIRST)):
        assert scores(url, student) == {
            f"test_{exercise.name}": 0 if exercise is failed else exercise.points for exercise in LECTURE.exercises
        }


def test_names_come_from_the_roster_and_those_a_person_entered_stay(tmp_path: Path, url: str) -> None:
    class_ = found(result("ada"), result("bob"))
    roster = {
        "ada": Student("ada", email="ada@x.org", canvas_id="7", first_name="A\x00da 𝟙", last_name="L" * 200),
        "bob": Student("bob", first_name="Bob"),  # of whom Formgrader would say "None, Bob"
        "absent": Student("absent", first_name="Ann", last_name="Absent"),
    }

    def known() -> dict[str, tuple[str | None, ...]]:
        with Gradebook(url) as book:
            return {one.id: (one.first_name, one.last_name, one.email, one.lms_user_id) for one in book.students}

    gradebook.derive(ClassFolder(tmp_path), LECTURE, class_, url, students=roster)
    assert known() == {"ada": ("Ada 𝟙", "L" * 128, "ada@x.org", "7"), "bob": (None,) * 4}
    with Gradebook(url) as book:
        book.update_or_create_student("bob", first_name="Robert", last_name="Tables")
    corrected = {"ada": Student("ada", first_name="Ada", last_name="Lovelace")}
    for students in (corrected, {}):
        gradebook.derive(ClassFolder(tmp_path), LECTURE, class_, url, students=students)
        assert known() == {"ada": ("Ada", "Lovelace", "ada@x.org", "7"), "bob": ("Robert", "Tables", None, None)}


def test_the_command_writes_to_the_database_that_it_is_given(tmp_path: Path, url: str) -> None:
    (tmp_path / "submitted").mkdir()
    for one in (result("ada"), result("bob", FIRST.name)):
        results.write(ClassFolder(tmp_path), one)
    told = CliRunner().invoke(cli.app, ["grade", str(tmp_path), NAME, "--db", url])
    assert told.exit_code == 0, told.output
    assert sum(scores(url, "ada").values()) == WHOLE == sum(scores(url, "bob").values()) + FIRST.points
    assert not (tmp_path / "gradebook.db").exists()


def test_tables_that_nbgrader_left_unfinished_are_completed(tmp_path: Path, url: str) -> None:
    """nbgrader notes their version only where it finds no table at all."""
    engine = sqlalchemy.create_engine(url)
    for statement in ("DROP TABLE alembic_version", "DELETE FROM alembic_version", "SELECT 1"):
        gradebook.derive(ClassFolder(tmp_path), LECTURE, found(result("ada")), url)
        with engine.begin() as connection:
            (version,) = connection.execute(sqlalchemy.text("SELECT version_num FROM alembic_version")).scalars()
            assert version
            connection.execute(sqlalchemy.text(statement))
    engine.dispose()


@pytest.mark.parametrize(
    "address, says",
    [
        ("postgresql+psycopg://course:secret@/x?host=/nonexistent", r"/nonexistent.*failed"),
        ("postgresql+psycopg://course:secret@127.0.0.1:9/x", r"(?i)refused"),
        ("mysql+pymysql://course:secret@localhost/x", r"driver is not installed.*pymysql.*psycopg\[binary\]"),
        ("nodatabase://course:secret@localhost/x", r"nodatabase"),
        ("course:secret", r"SQLAlchemy"),
        ("sqlite:////nonexistent/book.db", r"unable to open"),
    ],
)
def test_a_gradebook_that_cannot_be_opened_keeps_its_password_secret(tmp_path: Path, address: str, says: str) -> None:
    with pytest.raises(gradebook.GradebookError, match=says) as caught:
        gradebook.derive(ClassFolder(tmp_path), LECTURE, found(result("ada")), address)
    assert "results are safe" in str(caught.value) and "secret" not in str(caught.value)


@pytest.mark.parametrize("text", ["5", "null", '"x"', "[]", "{}", '{"marks": 5}', "[" * 100_000, "", "\x00"])
def test_a_file_that_holds_no_result_is_damaged(tmp_path: Path, text: str) -> None:
    path = ClassFolder(tmp_path).result("ada", NAME)
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(results.ResultError, match=r"ada\.json is damaged"):
        results.read(ClassFolder(tmp_path), NAME, "ada")


def test_a_result_keeps_any_text_through_its_file(tmp_path: Path) -> None:
    odd = '\ud800 \udcff λ 𝟙 \\ud800 \x00 "'
    wanted = replace(result("\udcff λ"), notes=(odd,), marks=(Mark(odd, 1.0, 1.0, odd),))
    results.write(ClassFolder(tmp_path), wanted)
    assert results.read(ClassFolder(tmp_path), NAME, "\udcff λ") == wanted

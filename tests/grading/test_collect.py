"""Submissions come in by themselves: from zips, repositories and the exchange, to the right student; none is lost."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
import warnings
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from autograder import cli, project
from autograder.grading import source, submission
from autograder.grading.marks import State
from autograder.records import attempts, collect, feedback, gradebook, results, roster, sources
from autograder.records.exchange import SECRET
from autograder.records.folder import CONFIG, ClassFolder

NAME = "01_tensors"
LECTURES = [path.stem for path in source.lectures(project.SOLUTIONS)]
ROSTER = """id,first_name,last_name,login,email,lms_user_id,also
ada,Ada,Lovelace,al01,ada@example.org,101,adagit
bob,Bob,de Vries,bv02,bob@example.org,102,
anna,Anna,Müller,am03,anna@example.org,,a-mueller
"""
Entries = dict[str, bytes | str]


@pytest.fixture
def course(tmp_path: Path) -> ClassFolder:
    root = tmp_path / "class"
    root.mkdir()
    (root / "roster.csv").write_text(ROSTER, encoding="utf-8")
    return ClassFolder(root)


def zipped(path: Path, entries: Entries) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return path


def unpacked(folder: Path, entries: Entries) -> Path:
    for name, content in entries.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def take(course: ClassFolder, where: Path) -> collect.Summary:
    return collect.collect(course, NAME, where, LECTURES)


def command(course: ClassFolder, where: Path, *options: str) -> tuple[int, str]:
    ran = CliRunner().invoke(cli.app, ["collect", str(course), NAME, str(where), *options])
    return ran.exit_code, " ".join(ran.output.split())


def there(course: ClassFolder) -> dict[str, str]:
    """What would be graded, by student."""
    paths = (course.root / "submitted").glob(f"*/{NAME}/{NAME}.ipynb")
    return {path.parent.parent.name: path.read_text() for path in paths}


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


CANVAS: Entries = {
    "lovelaceada_101_5001_01_tensors.ipynb": "ada's",
    "devriesbob_LATE_102_5002_01_tensors-1.ipynb": "bob's",
    "mulleranna_103_5003_01_tensors (1).ipynb": "anna's",
}
MOODLE: Entries = {
    "Ada Lovelace_7001_assignsubmission_file_/01_tensors.ipynb": "ada's",
    "Ada Lovelace_7001_assignsubmission_onlinetext_/onlinetext.html": "<p>done</p>",
    "Bob de Vries_7002_assignsubmission_file/my work/01-Tensors (2).ipynb": "bob's",
    "Müller Anna_7003_assignsubmission_file_homework.ipynb": "anna's",
}
REPOSITORIES: Entries = {
    "tensors-adagit/01_tensors.ipynb": "ada's",
    "tensors-adagit/README.md": "read me",
    "tensors-BV02/notebooks/01_tensors/01_tensors.ipynb": "bob's",
    "tensors-BV02/notebooks/02_dtypes/02_dtypes.ipynb": "another lecture",
    "tensors-a-mueller/01_tensors.ipynb": "anna's",
    "tensors-a-mueller/.ipynb_checkpoints/01_tensors-checkpoint.ipynb": "old",
}
EXCHANGE: Entries = {
    "ada+01_tensors+2026-11-20 10:00:00.000000 UTC+abc": "",
    "ada+01_tensors+2026-11-22 12:00:00.000000 UTC+abd": "ada's",
    "bob+01_tensors+2026-11-21 23:30:00.000000 CET": "bob's",
    "anna+01_tensors+2026-11-22 12:00:00.000000 +0200+x": "anna's",
    "ada+02_dtypes+2026-11-22 12:00:00.000000 UTC+abc": "another lecture",
}
BY_ADDRESS: dict[str, Entries] = {
    "moodle": {"ada@example.org_7001_assignsubmission_file_/01_tensors.ipynb": "ada's"},
    "repositories": {"tensors-ada@example.org/01_tensors.ipynb": "ada's"},
    "exchange": {"Ada@example.org+01_tensors+2026-11-22 12:00:00.000000 UTC+abd/01_tensors.ipynb": "ada's"},
}


def exchange(entries: Entries) -> Entries:
    made: Entries = {}
    for name, content in entries.items():
        made |= {f"{name}/01_tensors.ipynb": content or "ada's first", f"{name}/timestamp.txt": "whatever"}
    return made


def test_a_second_command_on_the_same_lecture_waits_for_the_first(
    course: ClassFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It begins while the first one, which is called in this process, is about to store an attempt."""
    where = zipped(tmp_path / "s.zip", CANVAS)
    started: list[subprocess.Popen[str]] = []
    heard: list[str] = []
    real = attempts.add

    def add(*args: Any) -> None:
        if not started:
            words = [Path(sys.executable).with_name("course"), "collect", str(course), NAME, str(where)]
            started.append(subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
            assert started[0].stdout is not None
            heard.append(started[0].stdout.readline())
        real(*args)

    monkeypatch.setattr(attempts, "add", add)
    assert command(course, where)[0] == 0
    said, _ = started[0].communicate(timeout=60)
    assert heard == [f"waiting until another command has collected {NAME} in {course}\n"]
    assert started[0].returncode == 0 and "0 new attempts of 0 students, 3 collected before" in said
    assert there(course) == {"ada": "ada's", "bob": "bob's", "anna": "anna's"}
    kept = (course.root / "attempts").glob("*/*/*")
    assert sorted(str(path.relative_to(course.root / "attempts")) for path in kept) == [
        f"{student}/{NAME}/1" for student in ("ada", "anna", "bob")
    ]


@pytest.mark.parametrize(
    ("entries", "wrapped"),
    [(CANVAS, ""), (MOODLE, ""), (REPOSITORIES, ""), (exchange(EXCHANGE), ""), (CANVAS, "submissions/"),
     (MOODLE, "submissions/"), (REPOSITORIES, "tensors-submissions/"), (exchange(EXCHANGE), "cs336/inbound/")],
)  # fmt: skip
@pytest.mark.parametrize("packed", [True, False])
def test_what_other_systems_give_goes_to_the_right_students(
    course: ClassFolder, tmp_path: Path, entries: Entries, wrapped: str, packed: bool
) -> None:
    entries = {f"{wrapped}{name}": content for name, content in entries.items()}
    entries |= {"__MACOSX/._x": "", ".DS_Store": ""}
    where = zipped(tmp_path / "s.zip", entries) if packed else unpacked(tmp_path / "s", entries)
    found = take(course, where)
    assert not found.unmatched and not found.failed, (found.unmatched, found.failed)
    assert there(course) == {"ada": "ada's", "bob": "bob's", "anna": "anna's"}
    before = files(course.root)
    again = take(course, where)
    assert not again.new and again.known == len(found.new) and files(course.root) == before


@pytest.mark.parametrize("source", BY_ADDRESS)
def test_an_email_address_says_who_it_is(course: ClassFolder, tmp_path: Path, source: str) -> None:
    found = take(course, unpacked(tmp_path / "s", BY_ADDRESS[source]))
    assert not found.unmatched and there(course) == {"ada": "ada's"}


def test_the_exchange_keeps_all_attempts_with_their_times(course: ClassFolder, tmp_path: Path) -> None:
    where = unpacked(tmp_path / "inbound", exchange(EXCHANGE)).parent
    (where / "outbound" / "01_tensors").mkdir(parents=True)
    take(course, where)
    stored = attempts.read(course, NAME, "ada")
    assert [one.time for one in stored] == [
        datetime(2026, 11, 20, 10, tzinfo=UTC),
        datetime(2026, 11, 22, 12, tzinfo=UTC),
    ]
    assert [attempts.content_of(course, NAME, "ada", one) for one in stored] == [b"ada's first", b"ada's"]
    times = {
        name: gradebook._timestamp(course.assignment(name, NAME) / "timestamp.txt") for name in ("ada", "bob", "anna")
    }
    assert [f"{time}" for time in times.values()] == [
        "2026-11-22 12:00:00",
        "2026-11-21 22:30:00",
        "2026-11-22 10:00:00",
    ]
    # An earlier attempt that comes in later is kept, and isn't the one that counts.
    unpacked(tmp_path / "inbound", exchange({"bob+01_tensors+2026-11-01 08:00:00.000000 UTC+z": "bob's first"}))
    found = take(course, where)
    assert [(student, one.number) for student, one in found.new] == [("bob", 2)] and there(course)["bob"] == "bob's"
    assert [one.number for one in attempts.read(course, NAME, "bob")] == [2, 1]


def test_canvas_says_who_is_late_and_numbers_attempts(course: ClassFolder, tmp_path: Path) -> None:
    first = zipped(tmp_path / "first.zip", CANVAS)
    second = zipped(
        tmp_path / "second.zip",
        {
            "lovelaceada_LATE_101_6002_01_tensors-2.ipynb": "ada's third",
            "lovelaceada_101_6001_01_tensors-1.ipynb": "ada's second",
            "lovelaceada_101_text.html": "<p>see the file</p>",
        },
    )
    take(course, second)
    found = take(course, first)  # the older zip comes later
    assert there(course)["ada"] == "ada's third"
    assert [one.late for one in attempts.read(course, NAME, "ada")] == [False, False, True]
    assert {student for student, one in found.new if one.late} == {"bob"}
    assert not (course.assignment("ada", NAME) / "timestamp.txt").exists()  # Canvas' zip doesn't say when


def test_moodles_later_zip_counts_in_whatever_order_they_are_collected(course: ClassFolder, tmp_path: Path) -> None:
    def made(day: int, content: str) -> Path:
        path = tmp_path / f"{day}.zip"
        with zipfile.ZipFile(path, "w") as archive:
            entry = zipfile.ZipInfo(
                "Ada Lovelace_7001_assignsubmission_file_/01_tensors.ipynb", (2026, 11, day, 8, 0, 0)
            )
            archive.writestr(entry, content)
        return path

    days = [made(1, "A"), made(2, "B"), made(3, "A")]
    for path, counts, new in [
        (days[1], "B", 1),
        (days[0], "B", 1),
        (days[0], "B", 0),
        (days[2], "A", 1),
        (days[1], "A", 0),
    ]:
        found = take(course, path)
        assert (there(course)["ada"], len(found.new)) == (counts, new), path


def test_a_repository_says_when_the_last_commit_was_made(course: ClassFolder, tmp_path: Path) -> None:
    repository = unpacked(tmp_path / "repos", REPOSITORIES) / "tensors-adagit"
    when = {"GIT_AUTHOR_DATE": "2026-11-22T12:00:00+0200", "GIT_COMMITTER_DATE": "2026-11-22T12:00:00+0200"}
    about = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    for arguments in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"],
    ):
        subprocess.run(["git", *arguments], cwd=repository, env=os.environ | when | about, check=True)
    take(course, tmp_path / "repos")
    assert [one.time for one in attempts.read(course, NAME, "ada")] == [datetime(2026, 11, 22, 10, tzinfo=UTC)]
    assert attempts.read(course, NAME, "bob")[0].time is None
    # One repository alone is a student's folder too.
    (alone := tmp_path / "alone").mkdir()
    repository.rename(alone / repository.name)
    assert take(course, alone).known == 1


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("01_tensors.ipynb", True), ("01_tensors (1).ipynb", True), ("01_tensors(12).IPYNB", True),
        ("01_tensors-1.ipynb", True), ("01_tensors-Copy1.ipynb", True), ("01_tensors - Copy (2).ipynb", True),
        ("01 Tensors.ipynb", True), ("01_tensors 2.ipynb", True), ("01_tensors_1.ipynb", True),
        ("Untitled.ipynb", True), ("01_tensors_final_ada.ipynb", True),  # the only notebook in there
        ("01_tensors.py", False), ("01_tensors.zip", False),
        ("01_tensors.ipynb.txt", False), ("text.html", False),
    ],
)  # fmt: skip
def test_a_notebook_is_recognized_by_any_name_that_programs_make_of_it(
    course: ClassFolder, tmp_path: Path, name: str, taken: bool
) -> None:
    found = take(course, zipped(tmp_path / "s.zip", {f"lovelaceada_101_5001_{name}": "{}"}))
    assert (there(course) == {"ada": "{}"}) is taken and len(found.new) == 1
    assert taken or any(name in remark for remark in found.remarks)


def with_cells(*names: str) -> bytes:
    """A notebook with the cells of these exercises."""
    cells = [
        {"cell_type": "code", "source": "x = 1", "metadata": {"nbgrader": {"grade_id": each}}, "outputs": []}
        for name in names
        for each in (name, f"test_{name}")
    ]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}).encode()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("02_dtypes.ipynb", b"{}"),
        ("02_dtypes (1).ipynb", b"{}"),
        ("Untitled.ipynb", with_cells("limits", "survives")),
        ("01_tensors.ipynb", with_cells("limits", "an_exercise_of_mine")),
    ],
)
def test_another_lectures_notebook_is_refused_by_its_name_or_its_exercises(
    course: ClassFolder, tmp_path: Path, name: str, content: bytes
) -> None:
    where = zipped(
        tmp_path / "s.zip",
        {f"lovelaceada_101_5001_{name}": content, "devriesbob_102_5002_x.ipynb": with_cells("tensor_bytes", "limits")},
    )
    before = files(course.root)
    code, said = command(course, where, "--dry-run")
    assert files(course.root) == before and code == 1
    code, said = command(course, where)
    assert (
        code == 1 and there(course)["bob"] and not course.submission("ada", NAME).exists()
    )  # bob's has an exercise of this lecture, whatever else it has
    assert f"not collected: ada handed in {name}: the notebook of 02_dtypes, not of 01_tensors" in said
    assert f"→ `course collect {course} 02_dtypes {where}` collects what is for 02_dtypes" in said
    assert "2 new attempts of 2 students," in said
    [attempt] = attempts.read(course, NAME, "ada")
    assert not attempt.notebook and "the notebook of 02_dtypes" in course.remark("ada", NAME)
    ran = CliRunner().invoke(cli.app, ["collect", str(course), "02_dtypes", str(where)])
    assert course.submission("ada", "02_dtypes").exists(), ran


def test_a_source_of_another_lecture_stores_nothing(course: ClassFolder, tmp_path: Path) -> None:
    where = zipped(
        tmp_path / "dtypes.zip",
        {
            "lovelaceada_101_5001_02_dtypes.ipynb": with_cells("limits"),
            "devriesbob_102_5002_scan.pdf": b"%PDF",
        },
    )
    before = files(course.root)
    code, said = command(course, where)
    assert code == 0 and files(course.root).keys() - before.keys() <= {f".{NAME}.collect.lock"}
    wrong = "most notebooks in dtypes.zip belong to 02_dtypes, so nothing but those of 01_tensors is collected from it"
    assert wrong in said and "0 new attempts" in said and "collects what is for 02_dtypes" in said


def test_what_is_in_a_notebook_decides_not_its_name(course: ClassFolder, tmp_path: Path) -> None:
    """And of another lecture's zip, only what belongs to this one is collected."""
    where = zipped(
        tmp_path / "dtypes.zip",
        {
            "lovelaceada_101_5001_02_dtypes.ipynb": with_cells("tensor_bytes"),  # tensors, in spite of its name
            "devriesbob_102_5002_01_tensors.ipynb": with_cells("limits"),
            "mülleranna_103_5003_02_dtypes.ipynb": with_cells("limits"),
        },
    )
    _, said = command(course, where)
    assert set(there(course)) == {"ada"} and not course.attempts("bob", NAME).exists(), said
    assert not any("handed in" in line for line in said.splitlines())
    ran = CliRunner().invoke(cli.app, ["collect", str(course), "02_dtypes", str(where)])
    assert course.submission("bob", "02_dtypes").exists(), ran.output
    assert "the notebook of 01_tensors, not of 02_dtypes" in ran.output.replace("\n", " ")


def test_a_repository_with_other_lectures_only_is_none_of_this_ones(course: ClassFolder, tmp_path: Path) -> None:
    notebooks = {f"term-adagit/{name}/{name}.ipynb": "{}" for name in ("02_dtypes", "04_einops")}
    others = {"term-adagit/README.md": "read me", "term-bv02/01_tensors.ipynb": "bob's"}
    found = take(course, unpacked(tmp_path / "repos", notebooks | others))
    assert set(there(course)) == {"bob"} and not course.attempts("ada", NAME).exists()
    # A repository may be one for the whole semester, so that's nothing to mend.
    assert "ada" in found.missing and not found.elsewhere and not found.others
    assert found.remarks == ["1 repository has no 01_tensors.ipynb, but other lectures' notebooks: term-adagit"]
    # A notebook of no lecture may be the one.
    found = take(course, unpacked(tmp_path / "repos", {"term-adagit/mine.ipynb": "{}"}))
    assert [(student, one.notebook) for student, one in found.new] == [("ada", False)] and not found.elsewhere


def test_the_class_knows_its_own_lectures_notebooks(course: ClassFolder, tmp_path: Path) -> None:
    (checks := tmp_path / "own" / "checks").mkdir(parents=True)
    (checks.parent / "23_ours.py").touch()
    (checks / "exercises.json").write_text('{"23_ours": {"clamp": 1.0}}')
    (course.root / "class.toml").write_text('exercises = "../own"')
    where = zipped(tmp_path / "s.zip", {"lovelaceada_101_5001_x.ipynb": with_cells("clamp")})
    assert take(course, where).others == {"23_ours"} and not there(course)


def test_the_commands_that_undo_a_collection_leave_nothing_of_it(course: ClassFolder, tmp_path: Path) -> None:
    page = (project.ROOT / "docs" / "semester.md").read_text(encoding="utf-8")
    block = page.partition("```bash\n")[2].partition("```")[0]
    assert block.count("01_tensors") >= 5
    take(course, zipped(tmp_path / "s.zip", CANVAS))
    kept = unpacked(course.root, {f"{step}/ada/02_dtypes/x": "kept" for step in ("attempts", "submitted", "feedback")})
    unpacked(kept, {f"results/{name}/ada.json": "{}" for name in (NAME, "02_dtypes")})
    unpacked(kept, {f"decisions/{NAME}/ada/1.json": "{}", f"feedback/ada/{NAME}/page": ""})
    unpacked(kept, {f"exports/{NAME}{ending}": "" for ending in (".csv", ".json", ".canvas.csv")})
    unpacked(kept, {f"reports/{NAME}.html": "", f"interviews/{NAME}.html": "", f"interviews/{NAME}.ada.html": ""})
    subprocess.run(["bash", "-ec", block], cwd=course.root, check=True)
    left = [name for name in files(course.root) if NAME in name and "lock" not in name]
    assert left == [f"decisions/{NAME}/ada/1.json"] and len(files(course.root)) == 7
    right = zipped(tmp_path / "right.zip", {"lovelaceada_101_5001_01_tensors.ipynb": "the right one"})
    found = take(course, right)
    assert [one.number for _, one in found.new] == [1] and there(course) == {"ada": "the right one"}


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["01_tensors.ipynb", "01_tensors (1).ipynb"], 0),
        (["01_tensors (1).ipynb", "01_tensors (10).ipynb", "01_tensors (2).ipynb"], 1),
        (["a/01_tensors.ipynb", "01_tensors.ipynb", "b.ipynb"], 1),
        (["b.ipynb", "a.ipynb"], None),
        (["b.ipynb", "02_dtypes.ipynb"], None),
    ],
)
def test_among_several_notebooks_one_is_clearly_the_lectures_or_none_is(
    course: ClassFolder, tmp_path: Path, names: list[str], wanted: int | None
) -> None:
    folder = "Ada Lovelace_7001_assignsubmission_file_"
    take(course, zipped(tmp_path / "s.zip", {f"{folder}/{name}": str(place) for place, name in enumerate(names)}))
    assert there(course) == ({} if wanted is None else {"ada": str(wanted)})


def test_a_dry_run_changes_nothing_and_says_what_would_be(course: ClassFolder, tmp_path: Path) -> None:
    where = zipped(tmp_path / "s.zip", CANVAS | {"strangersam_999_5009_01_tensors.ipynb": "?"})
    before = files(course.root)
    code, said = command(course, where, "--dry-run")
    assert files(course.root) == before and code == 1
    assert "would collect bob, attempt 1: 01_tensors-1.ipynb, late" in said
    assert (
        "strangersam_999_5009_01_tensors.ipynb (Canvas: strangersam, number 999) matches nobody on the roster" in said
    )
    assert "3 new attempts of 3 students, 0 collected before, 1 not matched; nothing found for 0 students" in said
    assert "• Canvas calls 1 attempt LATE: bob (attempt 1)" in said
    assert command(course, where) == (1, said[said.index("• Canvas calls") :])
    assert "LATE:" not in command(course, where)[1]  # nothing is new
    assert len(there(course)) == 3


def test_who_cannot_be_told_apart_gets_nothing_until_the_roster_says_more(course: ClassFolder, tmp_path: Path) -> None:
    course.roster.write_text('id,name,also\nann1,Ann Lee,\nann2,"Lee, Ann",\nann3,Anna Le E,\n', encoding="utf-8")
    where = zipped(
        tmp_path / "s.zip",
        {
            "Ann Lee_1_assignsubmission_file_/01_tensors.ipynb": "1",
            "Lee Ann_2_assignsubmission_file_/01_tensors.ipynb": "2",
            "Anna Le E_3_assignsubmission_file_/01_tensors.ipynb": "3",
            "Anna LeE_4_assignsubmission_file_/01_tensors.ipynb": "4",
        },
    )  # fmt: skip
    found = take(course, where)
    assert there(course) == {} and len(found.unmatched) == 3
    assert "may belong to ann1 or ann2" in found.unmatched[0] and "all match ann3" in found.unmatched[2]
    assert found.missing == ["ann1", "ann2", "ann3"]


def test_a_login_at_the_end_of_a_repositorys_name_is_all_that_is_left_without_the_assignment(
    course: ClassFolder, tmp_path: Path
) -> None:
    """The repository of a stranger whose login ends as a student's does isn't the student's."""
    entries: Entries = {f"hw-{who}/01_tensors.ipynb": who for who in ("al01", "bv02", "x-am03", "x-bv02", "Someone")}
    found = take(course, unpacked(tmp_path / "repos", entries | {"starter/01_tensors.ipynb": ""}))
    assert there(course) == {"ada": "al01", "bob": "bv02"}
    assert len(found.unmatched) == 4


def test_a_folder_in_the_exchange_that_belongs_to_another_student_is_nobodys(
    course: ClassFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = unpacked(tmp_path / "inbound", exchange(EXCHANGE))
    owners = {"ada": "bob", "bob": "bob", "anna": "instructor"}
    monkeypatch.setattr(Path, "owner", lambda path: owners[path.name.partition("+")[0]])
    found = take(course, where)
    assert there(course) == {"bob": "bob's", "anna": "anna's"}
    assert len(found.unmatched) == 2 and "belongs to the user bob" in found.unmatched[0]


def test_the_secret_of_a_submission_stays_with_its_attempt(course: ClassFolder, tmp_path: Path) -> None:
    """Without it no feedback finds its way back; students can write the file, and nbgrader trusts it."""
    first, second = "a" * 128, "0123456789abcdef" * 8
    names = [f"ada+{NAME}+2026-11-2{day} 10:00:00.000000 UTC+x" for day in range(3)]
    entries = {name: content for name, content in zip(names, ("one", "two", "three"), strict=True)}
    inbound = unpacked(tmp_path / "inbound", exchange({**entries}))
    for name, secret in zip(names, (first, second, None), strict=True):
        if secret:
            (inbound / name / SECRET).write_text(secret)
    counts = course.assignment("ada", NAME) / SECRET
    for number, secret in enumerate((first, second, ""), 1):
        source = unpacked(tmp_path / str(number), {})
        for name in names[:number]:
            shutil.copytree(inbound / name, source / name)
        take(course, source)
        assert (counts.read_text() if counts.exists() else "") == secret
    assert [one.secret for one in attempts.read(course, NAME, "ada")] == [first, second, ""]
    for number, bad in enumerate((b"", b"\xff" * 128, b"A" * 128, b"a" * 127, b"a" * 128 + b"\n", b"../" * 40)):
        where = unpacked(
            tmp_path / f"bad-{number}", exchange({f"bob+{NAME}+2026-11-22 12:00:00.000000 UTC+x": "bob's"})
        )
        next(where.iterdir()).joinpath(SECRET).write_bytes(bad)
        take(course, where)
        [one] = attempts.read(course, NAME, "bob")
        assert one.secret == "" and not (course.assignment("bob", NAME) / SECRET).exists()
        assert [path for path in course.instead("bob", NAME) if "secret" in path] == []


def test_somebody_of_the_same_name_with_another_number_is_somebody_else(course: ClassFolder, tmp_path: Path) -> None:
    found = take(course, zipped(tmp_path / "s.zip", {"lovelaceada_999_1_01_tensors.ipynb": "another Ada's"}))
    assert not found.new and "if it's the work of ada" in found.unmatched[0]


@pytest.mark.parametrize(
    "also", ["Alan Turing", "Turing, Alan", "alan TURÍNG", "turingalan", "1099", "Turing Alan;someone else"]
)
def test_another_name_or_number_is_found_however_it_is_written(course: ClassFolder, tmp_path: Path, also: str) -> None:
    course.roster.write_text(f'id,name,also\nfay,Fay Wray,"{also}"\n', encoding="utf-8")
    found = take(course, zipped(tmp_path / "s.zip", {"turingalan_1099_5007_01_tensors.ipynb": "fay's"}))
    assert not found.unmatched and there(course) == {"fay": "fay's"}


HEAD = "id,name,login,lms_user_id,also\n"


def canvas_file(name: str, number: int) -> str:
    return f"{name}_{number}_5{number}_{NAME}.ipynb"


@pytest.mark.parametrize(
    ("before", "entry", "says", "after"),
    [
        (
            "ada,Ada Lovelace,,,", canvas_file("kingada", 1099),
            "write Canvas' number, such as 1099 for kingada, into the student's column `lms_user_id` in {roster}, in "
            "place of any number there",
            "ada,Ada Lovelace,,1099,",
        ),
        (
            "ada,Ada Lovelace,,101,", canvas_file("kingada", 1099),
            "such as 1099 for kingada, into the student's column `lms_user_id`",
            "ada,Ada Lovelace,,1099,",
        ),
        (
            "ada,Ada Lovelace,,101,", canvas_file("lovelaceada", 1099),
            "has the name of ada, whose lms_user_id is 101: if it's the work of ada, change that number in the roster "
            "to 1099; if not, add a line for this student, with 1099 as lms_user_id",
            "ada,Ada Lovelace,,1099,",
        ),
        (
            "bob,Ada Lovelace,,101,", canvas_file("lovelaceada", 1099), "add a line for this student, with 1099",
            "bob,Ada Lovelace,,101,\nada,Ada Lovelace,,1099,",
        ),
        (
            "ada,Ada Lovelace,,,\nbob,Lovelace Ada,,,", canvas_file("lovelaceada", 1099),
            "may belong to ada or bob: write 1099 into the column lms_user_id of the right one",
            "ada,Ada Lovelace,,1099,\nbob,Lovelace Ada,,,",
        ),
        (
            "ada,Ada Lovelace,,1099,\nbob,Bob B,,101,1099", canvas_file("lovelaceada", 1099),
            "may belong to ada or bob: remove 1099 from the columns lms_user_id and also of everybody else",
            "ada,Ada Lovelace,,1099,\nbob,Bob B,,101,",
        ),
        (
            "eve,Eve Hill,,1099,\nada,Ada Lovelace,,,", canvas_file("lovelaceada", 1099),
            "has the number of eve in the roster, but the name of ada: if it's the work of ada, remove 1099 from the "
            "line of eve and write it into the column lms_user_id of ada",
            "eve,Eve Hill,,,\nada,Ada Lovelace,,1099,",
        ),
        (
            "eve,Eve Hill,,,\nada,Ada King,,1099,\nbob,Ada Lovelace,,,", canvas_file("lovelaceada", 1099),
            "if it's the work of ada, add lovelaceada to the column also of ada",
            "eve,Eve Hill,,,\nada,Ada King,,1099,lovelaceada\nbob,Ada Lovelace,,,",
        ),
        (
            "ada,Ada Lovelace,,101,", f"Ada King_1099_assignsubmission_file_/{NAME}.ipynb",
            "write that name, such as Ada King, into the student's column `also` in {roster}",
            "ada,Ada Lovelace,,101,Ada King",
        ),
        (
            "ada,Ada Lovelace,al01,101,x\nbob,B,bob,,", f"tensors-kingada/{NAME}.ipynb",
            "write that login, such as kingada, into the student's column `also` in {roster}",
            "ada,Ada Lovelace,al01,101,x;kingada\nbob,B,bob,,",
        ),
        (
            "ada,Ada Lovelace,al01,101,x", f"kingada+{NAME}+2026-11-22 12:00:00 UTC+x/{NAME}.ipynb",
            "write that login, such as kingada, into the student's column `also` in {roster}",
            "ada,Ada Lovelace,al01,101,x;kingada",
        ),
        (
            "ada,Ada Lovelace,al01,,\nbob,B,AL01,,", f"al01+{NAME}+2026-11-22 12:00:00 UTC+x/{NAME}.ipynb",
            "may belong to ada or bob: remove al01 from the columns login, email and also of everybody else",
            "ada,Ada Lovelace,al01,,\nbob,B,,,",
        ),
    ],
)  # fmt: skip
def test_what_the_command_says_to_write_into_the_roster_works(
    course: ClassFolder, tmp_path: Path, before: str, entry: str, says: str, after: str
) -> None:
    entries: Entries = {entry: "ada's"}
    if entry.startswith("tensors-"):
        entries[f"tensors-bob/{NAME}.ipynb"] = "bob's"
    where = zipped(tmp_path / "s.zip", entries)
    course.roster.write_text(HEAD + before, encoding="utf-8")
    code, said = command(course, where)
    assert code == 1 and says.format(roster=course.roster) in said and "ada" not in there(course), said
    assert said.count("into the student's column") == ("matches nobody" in said)
    assert ("Canvas" in said) == ("_5" in entry)
    course.roster.write_text(HEAD + after, encoding="utf-8")
    code, said = command(course, where)
    assert code == 0 and there(course)["ada"] == "ada's", said


def test_a_number_that_is_another_students_in_the_zip_is_corrected_and_nobody_gets_anothers_work(
    course: ClassFolder, tmp_path: Path
) -> None:
    """The roster has the number of Jane Doe, who has left, for Eve Hill."""
    where = zipped(tmp_path / "s.zip", {canvas_file("doejane", 1021): "jane's", canvas_file("hilleve", 9921): "eve's"})
    course.roster.write_text(HEAD + "eve,Eve Hill,,1021,", encoding="utf-8")
    code, said = command(course, where)
    assert code == 1 and not there(course) and "2 not matched" in said
    assert f"has the number of eve in the roster, but {canvas_file('hilleve', 9921)} has the name of eve" in said
    assert "change 1021 in the line of eve to 9921, in the column lms_user_id" in said
    assert "has the name of eve, whose lms_user_id is 1021" in said and "to 9921; if not" in said
    course.roster.write_text(HEAD + "eve,Eve Hill,,9921,", encoding="utf-8")
    code, said = command(course, where)
    assert code == 1 and there(course) == {"eve": "eve's"} and "doejane, number 1021) matches nobody" in said
    # Or else she is called Jane Doe by now, and the other Eve Hill is new.
    shutil.rmtree(course.root / "submitted")
    shutil.rmtree(course.root / "attempts")
    course.roster.write_text(HEAD + "eve,Eve Hill,,1021,doejane\neve2,Eve Hill,,9921,", encoding="utf-8")
    assert command(course, where)[0] == 0 and there(course) == {"eve": "jane's", "eve2": "eve's"}


@pytest.mark.parametrize("also", ["", "2002"])
def test_two_accounts_that_match_one_student_are_told_apart_by_number(
    course: ClassFolder, tmp_path: Path, also: str
) -> None:
    where = zipped(tmp_path / "s.zip", {canvas_file("leeann", 2001): "one", canvas_file("leeann", 2002): "two"})
    course.roster.write_text(HEAD + f"ann,Ann Lee,,,{also}", encoding="utf-8")
    code, said = command(course, where)
    assert code == 1 and not there(course) and "come from 2 people, and all match ann" in said
    assert "write the number of the right one, 2001 or 2002, into the column lms_user_id of ann" in said
    assert ("leave no other in the column also" in said) is bool(also)
    course.roster.write_text(HEAD + "ann,Ann Lee,,2001,", encoding="utf-8")
    assert command(course, where)[0] == 1 and there(course) == {"ann": "one"}


def test_what_only_a_person_can_tell_apart_is_copied_by_hand(course: ClassFolder, tmp_path: Path) -> None:
    entry = f"Ann Lee_1_assignsubmission_file_/{NAME}.ipynb"
    where = unpacked(tmp_path / "s", {entry: "one", f"Bob_2_assignsubmission_file_/{NAME}.ipynb": "bob's"})
    course.roster.write_text(HEAD + 'ann1,Ann Lee,,,\nann2,"Lee, Ann",,,\nbob,Bob,,,', encoding="utf-8")
    code, said = command(course, where)
    both = f"{course.submission('ann1', NAME)} or {course.submission('ann2', NAME)}"
    assert code == 1 and "may belong to ann1 or ann2: write Ann Lee, exactly so, into the column also" in said
    course.roster.write_text(HEAD + "ann1,Ann Lee,,,\nann2,Ann Lee,,,\nbob,Bob,,,", encoding="utf-8")
    code, said = command(course, where)
    assert code == 1 and "in Moodle, open the submission to see whose it is" in said
    assert f"copy the notebook to {both}" in said
    course.submission("ann2", NAME).parent.mkdir(parents=True)
    shutil.copyfile(where / entry, course.submission("ann2", NAME))
    found = take(course, where)
    assert there(course) == {"ann2": "one", "bob": "bob's"} and found.missing == ["ann1"]


def test_a_folder_of_zips_or_of_files_is_not_a_source_and_says_so(course: ClassFolder, tmp_path: Path) -> None:
    where = unpacked(tmp_path / "Downloads", {"holiday.ipynb": "{}"})
    zipped(where / "submissions.zip", CANVAS)
    code, said = command(course, where)
    assert code == 1 and not there(course) and "`also`" not in said
    assert "submissions.zip (repository: submissions.zip) is a zip inside this source: collect from that zip" in said
    assert "holiday.ipynb (repository: holiday.ipynb) doesn't say whose it is" in said


def test_an_attempt_without_a_time_does_not_get_an_earlier_ones(course: ClassFolder, tmp_path: Path) -> None:
    take(course, unpacked(tmp_path / "inbound", exchange(EXCHANGE)))
    stamp = course.assignment("ada", NAME) / "timestamp.txt"
    assert stamp.is_file()
    take(course, zipped(tmp_path / "s.zip", {"lovelaceada_101_1_01_tensors.ipynb": "by Canvas"}))
    assert there(course)["ada"] == "by Canvas" and not stamp.exists()


def test_what_somebody_put_into_submitted_stays(course: ClassFolder, tmp_path: Path) -> None:
    mended = course.submission("ada", NAME)
    mended.parent.mkdir(parents=True)
    mended.write_text("mended by hand")
    where = zipped(tmp_path / "s.zip", CANVAS)
    found = take(course, where)
    assert there(course)["ada"] == "mended by hand" and "so it was kept" in "".join(found.remarks)
    assert [attempts.content_of(course, NAME, "ada", one) for one in attempts.read(course, NAME, "ada")] == [b"ada's"]
    mended.unlink()
    take(course, where)
    assert there(course)["ada"] == "ada's"


def test_who_handed_in_something_is_never_told_that_it_was_nothing(course: ClassFolder, tmp_path: Path) -> None:
    bomb = b"\0" * (submission.SIZE_LIMIT + 10)
    where = zipped(
        tmp_path / "s.zip", {"lovelaceada_101_text.html": "<p>", "devriesbob_102_5002_01_tensors.ipynb": bomb}
    )
    found = take(course, where)
    assert found.missing == ["anna"] and len(found.remarks) == 2
    assert course.instead("ada", NAME) == ["text.html"]
    assert course.instead("bob", NAME) == ["01_tensors.ipynb (it has more than 50,000,000 bytes)"]
    lecture = source.read(project.SOLUTIONS / f"{NAME}.py")
    list(feedback.write(course, lecture, results.table(course, NAME, roster.of(course, NAME))))
    pages = {name: course.feedback(name, NAME).read_text(encoding="utf-8") for name in ("ada", "bob", "anna")}
    assert all(feedback.NO_NOTEBOOK in pages[name] for name in ("ada", "bob")) and "text.html" in pages["ada"]
    assert feedback._HEADLINES[State.NOT_SUBMITTED] in pages["anna"] and "tell your instructor" in pages["anna"]
    # A notebook takes their place; a text that is handed in later doesn't take the notebook's.
    take(course, zipped(tmp_path / "t.zip", {"lovelaceada_101_5001_01_tensors.ipynb": "ada's"}))
    assert course.instead("ada", NAME) == [f"{NAME}.ipynb"]
    later = take(course, zipped(tmp_path / "u.zip", {"lovelaceada_101_5010_notes.txt": "see above"}))
    assert there(course)["ada"] == "ada's" and "attempt 2 counts" in "".join(later.remarks)


TROUBLES: dict[str, Callable[[zipfile.ZipFile, str], None]] = {}


def trouble(function: Callable[[zipfile.ZipFile, str], None]) -> Callable[[zipfile.ZipFile, str], None]:
    TROUBLES[function.__name__.replace("_", " ")] = function
    return function


@trouble
def a_bomb(archive: zipfile.ZipFile, folder: str) -> None:
    archive.writestr(f"{folder}/01_tensors.ipynb", b"\0" * 60_000_000)


@trouble
def paths_that_lead_out(archive: zipfile.ZipFile, folder: str) -> None:
    archive.writestr(f"{folder}/../../../01_tensors.ipynb", "out")
    archive.writestr("../outside.txt", "out")
    archive.writestr("/outside.txt", "out")


@trouble
def a_path_into_anothers_folder(archive: zipfile.ZipFile, folder: str) -> None:
    archive.writestr(f"{folder}/../Bob de Vries_7002_assignsubmission_file_/01_tensors.ipynb", "forged")


@trouble
def a_link(archive: zipfile.ZipFile, folder: str) -> None:
    entry = zipfile.ZipInfo(f"{folder}/01_tensors.ipynb")
    entry.external_attr = 0o120777 << 16
    archive.writestr(entry, "/etc/passwd")


@trouble
def a_huge_name(archive: zipfile.ZipFile, folder: str) -> None:
    archive.writestr(f"{folder}/{'x' * 60_000}.ipynb", "long")


@trouble
def a_huge_name_of_a_person(archive: zipfile.ZipFile, folder: str) -> None:
    archive.writestr(f"{'y_1' * 20_000}_7_assignsubmission_file_/01_tensors.ipynb", "long")


@trouble
def a_name_in_no_encoding(archive: zipfile.ZipFile, folder: str) -> None:
    archive.writestr(f"{folder}/\x1b[31m\u202e\ud7ff.ipynb", "odd")


@trouble
def twice_the_same_name(archive: zipfile.ZipFile, folder: str) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Duplicate name", UserWarning)  # zipfile says so, and does it
        archive.writestr(f"{folder}/01_tensors.ipynb", "one")
        archive.writestr(f"{folder}/01_tensors.ipynb", "two")


@trouble
def more_files_than_anybody_has(archive: zipfile.ZipFile, folder: str) -> None:
    for number in range(sources.FILES_LIMIT + 1):
        archive.writestr(zipfile.ZipInfo(f"{folder}/{number}"), "")


@trouble
def a_file_that_is_a_folder_too(archive: zipfile.ZipFile, folder: str) -> None:
    archive.writestr(folder, "file")
    archive.writestr(f"{folder}/01_tensors.ipynb", "in it")


@trouble
def nothing_but_a_folder(archive: zipfile.ZipFile, folder: str) -> None:
    archive.writestr(f"{folder}/", "")


@trouble
def a_date_that_never_was(archive: zipfile.ZipFile, folder: str) -> None:
    entry = zipfile.ZipInfo(f"{folder}/01_tensors.ipynb")
    entry.date_time = (1980, 0, 0, 0, 0, 0)
    archive.writestr(entry, "ada's")


@pytest.mark.parametrize("kind", TROUBLES)
def test_trouble_in_a_zip_is_one_students(course: ClassFolder, tmp_path: Path, kind: str) -> None:
    where = tmp_path / "s.zip"
    with zipfile.ZipFile(where, "w", zipfile.ZIP_DEFLATED) as archive:
        TROUBLES[kind](archive, "Ada Lovelace_7001_assignsubmission_file_")
        archive.writestr("Bob de Vries_7002_assignsubmission_file_/01_tensors.ipynb", "bob's")
    outside = {path for path in tmp_path.rglob("*") if course.root not in path.parents}
    code, said = command(course, where)
    assert code in (0, 1) and "new attempt" in said and said.isprintable(), said
    assert there(course)["bob"] == "bob's"
    assert {path for path in tmp_path.rglob("*") if course.root not in path.parents} == outside
    assert {path.name for path in course.root.iterdir()} == {
        "roster.csv",
        "submitted",
        "attempts",
        f".{NAME}.collect.lock",
    }
    again = take(course, where)
    assert not again.new


def test_damaged_encrypted_and_mislabeled_entries_are_one_students(course: ClassFolder, tmp_path: Path) -> None:
    where = zipped(tmp_path / "s.zip", {})
    with zipfile.ZipFile(where, "w") as archive:
        archive.writestr("lovelaceada_101_1_01_tensors.ipynb", "content-of-ada")
        archive.writestr("devriesbob_102_2_01_tensors.ipynb", "content-of-bob")
        archive.writestr("müller anna_103_3_Tensöre.ipynb", "anna's")
    data = where.read_bytes().replace(b"content-of-ada", b"damaged-of-ada")
    at = data.rindex(b"PK\x01\x02", 0, data.rindex(b"devriesbob"))
    data = data[: at + 8] + bytes([data[at + 8] | 1]) + data[at + 9 :]  # bob's is encrypted, it says
    at = data.rindex(b"PK\x01\x02")
    for flags in (at + 9, data.rindex(b"PK\x03\x04") + 7):
        data = data[:flags] + bytes([data[flags] & ~8]) + data[flags + 1 :]  # UTF-8 that doesn't say so
    where.write_bytes(data)
    found = take(course, where)
    assert there(course) == {"anna": "anna's"} and not found.unmatched
    assert "BadZipFile" in found.remarks[0] and "encrypted" in found.remarks[1]
    assert [one.name for _, one in found.new if one.notebook] == ["Tensöre.ipynb"]
    assert len(found.new) == 3  # that they handed in something is kept


def test_links_pipes_and_closed_folders_are_one_students(course: ClassFolder, tmp_path: Path) -> None:
    where = unpacked(tmp_path / "s", MOODLE)
    secret = tmp_path / "secret.ipynb"
    secret.write_text("secret")
    ada = where / "Ada Lovelace_7001_assignsubmission_file_" / "01_tensors.ipynb"
    ada.unlink()
    ada.symlink_to(secret)
    (where / "Bob de Vries_7002_assignsubmission_file" / "my work" / "01-Tensors (2).ipynb").unlink()
    os.mkfifo(where / "Bob de Vries_7002_assignsubmission_file" / "my work" / "01-Tensors (2).ipynb")
    (where / "tensors-am03").symlink_to(tmp_path)
    found = take(course, where)
    assert there(course) == {"anna": "anna's"} and "link" in found.remarks[0] and len(found.unmatched) == 1


def test_a_repository_runs_no_program_of_its_students(course: ClassFolder, tmp_path: Path) -> None:
    repository = unpacked(tmp_path / "repos", REPOSITORIES) / "tensors-adagit"
    for arguments in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"],
    ):
        subprocess.run(["git", *arguments], cwd=repository, check=True)
    command = ["git", "rev-parse", "HEAD^{tree}"]
    tree = subprocess.run(command, cwd=repository, check=True, capture_output=True, text=True).stdout.strip()
    (repository / ".git" / "objects" / tree[:2] / tree[2:]).unlink()  # so it has to be fetched
    ran = tmp_path / "ran"
    (repository / ".git" / "config").write_text(
        "[core]\nrepositoryformatversion = 1\n[extensions]\npartialClone = o\n"
        f'[remote "o"]\nurl = .\npromisor = true\nuploadpack = "id > {ran}; false"\n',
        encoding="utf-8",
    )
    take(course, tmp_path / "repos")
    assert there(course) == {"ada": "ada's", "bob": "bob's", "anna": "anna's"} and not ran.exists()


def test_a_folder_deeper_than_python_can_call_itself_is_looked_through(course: ClassFolder, tmp_path: Path) -> None:
    where = unpacked(tmp_path / "s", REPOSITORIES)
    at = os.open(where / "tensors-adagit", os.O_RDONLY)
    for _ in range(1_500):
        os.mkdir("d", dir_fd=at)
        deeper = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = deeper
    os.close(at)
    take(course, where)
    subprocess.run(["rm", "-rf", str(where)], check=True)  # pytest couldn't
    assert there(course) == {"ada": "ada's", "bob": "bob's", "anna": "anna's"}


def test_a_repository_whose_git_is_a_link_to_too_long_a_name_is_collected(course: ClassFolder, tmp_path: Path) -> None:
    where = unpacked(tmp_path / "s", REPOSITORIES)
    (where / "tensors-adagit" / ".git").symlink_to("a" * 300)
    take(course, where)
    assert there(course) == {"ada": "ada's", "bob": "bob's", "anna": "anna's"}


def test_a_disk_that_fails_leaves_whole_attempts_and_the_command_goes_on_from_there(
    course: ClassFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = zipped(tmp_path / "s.zip", CANVAS)
    replace, count = os.replace, 0

    def failing(*arguments: str) -> None:
        nonlocal count
        count += 1
        if count == 6:
            raise OSError(28, "No space left on device")
        replace(*arguments)

    monkeypatch.setattr(os, "replace", failing)
    code, said = command(course, where)
    assert code == 1 and "No space left" in said
    assert not [path for path in course.root.rglob("*") if "partial" in path.name]
    monkeypatch.undo()
    assert command(course, where)[0] == 0 and len(there(course)) == 3
    for student in there(course):
        assert [one.number for one in attempts.read(course, NAME, student)] == [1]


def test_something_in_a_students_place_or_a_damaged_attempt_stops_nobody_else(
    course: ClassFolder, tmp_path: Path
) -> None:
    where = zipped(tmp_path / "s.zip", CANVAS)
    (course.root / "submitted" / "ada").mkdir(parents=True)
    (course.root / "submitted" / "ada" / NAME).write_text("a file")
    take(course, where)
    about = course.attempts("bob", NAME) / "1" / "attempt.json"
    for text in ("{", "[]", json.dumps(json.loads(about.read_text()) | {"when": "2026-11-22T12:00:00"})):
        about.write_text(text)
        code, said = command(course, where)
        assert code == 1 and "not collected: ada" in said and "not collected: bob" in said and "attempt.json" in said
    assert there(course) == {"anna": "anna's", "bob": "bob's"}


def test_a_name_too_long_for_a_folder_is_one_students(course: ClassFolder, tmp_path: Path) -> None:
    course.roster.write_text(f"{ROSTER}{'x' * 300},Long,Name,,,104,\n", encoding="utf-8")
    entries = CANVAS | {"namelong_104_5004_01_tensors.ipynb": "long"}
    code, said = command(course, zipped(tmp_path / "s.zip", entries))
    assert code == 1 and "not collected: xxx" in said and "File name too long" in said
    assert len(there(course)) == 3
    for name in ("report", "export"):
        ran = CliRunner().invoke(cli.app, [name, str(course), NAME])
        assert ran.exit_code == 0, ran.output


def test_other_layouts_have_their_attempts_elsewhere(course: ClassFolder, tmp_path: Path) -> None:
    (course.root / CONFIG).write_text(
        'c = get_config()\nc.CourseDirectory.directory_structure = "{student_id}/{nbgrader_step}/{assignment_id}"\n'
    )
    take(course, zipped(tmp_path / "s.zip", CANVAS))
    assert (course.root / "ada" / "submitted" / NAME / f"{NAME}.ipynb").read_text() == "ada's"
    assert (course.root / "ada" / "attempts" / NAME / "1" / f"{NAME}.ipynb").read_text() == "ada's"
    assert set(roster.of(ClassFolder(course.root), NAME)) == {"ada", "bob", "anna"}


def test_what_is_no_source_or_no_class_is_an_error_that_says_what_to_do(course: ClassFolder, tmp_path: Path) -> None:
    (tmp_path / "s.zip").write_text("no zip")
    for where in (tmp_path / "s.zip", tmp_path / "nothing.zip"):
        code, said = command(course, where)
        assert code == 1 and "→" in said and where.name in said
    course.roster.unlink()
    code, said = command(course, zipped(tmp_path / "t.zip", CANVAS))
    assert code == 1 and "there are no students to match submissions to" in said
    empty = tmp_path / "empty"
    empty.mkdir()
    course.roster.write_text(ROSTER, encoding="utf-8")
    assert command(course, empty) == (
        0, "0 new attempts of 0 students, 0 collected before, 0 not matched; nothing found for 3 students"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2026-11-22 12:00:00.000000 UTC", 12), ("2026-11-22 12:00", None), ("2026-11-22T12:00:00+02:00", 10),
        ("2026-11-22 12:00:00 America/New_York", 17), ("2026-11-22 12:00:00Z", 12), ("yesterday", None),
        ("2026-11-22 12:00:00 ../../etc/passwd", None), ("2026-13-22 12:00:00", None),
        ("2026-11-22 12:00:00 Nowhere", None), ("2026-11-22 12:00:00 Europe/Berlin", 11),
        ("0001-01-01 00:00:00 +2359", None), ("", None),
    ],
)  # fmt: skip
def test_times_are_read_with_their_zones(text: str, wanted: int | None) -> None:
    when = sources.moment(text)
    assert (when and when.hour) == wanted and (when is None or when.tzinfo is UTC)


def test_names_and_times_made_to_keep_a_pattern_busy_take_no_time() -> None:
    began = time.process_time()
    assert sources.moment(f"2026-11-22 12:00:00 A{60 * '_a'}!") is None
    for name in (60_000 * "_", 60_000 * " ", f"{200 * '_'}copy", f"01_tensors{60 * '_copy'}", f"({60_000 * '1'})"):
        assert not sources._alike(f"{name}.ipynb", "01_tensors")
    assert time.process_time() - began < 5


def test_a_large_class_takes_seconds(course: ClassFolder, tmp_path: Path) -> None:
    lines = [f"s{number},Student{number},Number{number}" for number in range(100)]
    course.roster.write_text("id,first_name,last_name\n" + "\n".join(lines), encoding="utf-8")
    entries: Entries = {f"number{n}student{n}_{n}_{1000 + n}_01_tensors.ipynb": f"{n}" for n in range(100)}
    found = take(course, zipped(tmp_path / "s.zip", entries))
    assert len(found.new) == 100 and there(course) == {f"s{n}": f"{n}" for n in range(100)}
    digests = {one.sha256 for _, one in found.new}
    assert digests == {hashlib.sha256(f"{n}".encode()).hexdigest() for n in range(100)}


def test_the_commands_in_the_documentation_work(
    course: ClassFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (project.ROOT / "docs" / "instructors.md").read_text(encoding="utf-8")
    section = page[page.index("### Collect from") : page.index("### More processors")]
    for name, entries in (("submissions", CANVAS), ("CS336-tensors-4711", MOODLE)):
        (tmp_path / "Downloads").mkdir(exist_ok=True)
        zipped(tmp_path / "Downloads" / f"{name}.zip", entries)
    unpacked(tmp_path / "tensors-submissions", REPOSITORIES)
    unpacked(tmp_path / "srv/nbgrader/exchange/cs336/inbound", exchange(EXCHANGE))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(course.root)
    lines = [line for line in section.split("```")[1].splitlines() if line.startswith("course ")]
    assert len(lines) == 5
    for line in lines:
        arguments = shlex.split(line.replace("~", str(tmp_path)).replace(" /srv", f" {tmp_path}/srv"), comments=True)
        ran = CliRunner().invoke(cli.app, arguments[1:])
        assert ran.exit_code == 0, (line, ran.output)
        assert "0 not matched" in ran.output and "(0 new" not in ran.output
    assert there(course) == {"ada": "ada's", "bob": "bob's", "anna": "anna's"}
    assert {one.kind for one in attempts.read(course, NAME, "ada")} == {str(kind) for kind in sources.Kind}
    # And what the table shows is what is recognized.
    shown = [
        line.split("`")[1] for line in section.splitlines() if line.startswith(("| Canvas", "| Moodle", "| repos"))
    ]
    assert len(shown) == 3
    course.roster.write_text(
        "id,first_name,last_name,also\nada,Ada,Lovelace,countess-of-l;Ada King\n", encoding="utf-8"
    )
    for number, name in enumerate(shown):
        found = take(course, zipped(tmp_path / f"{number}.zip", {name: f"{number}"}))
        assert [student for student, _ in found.new] == ["ada"], name


def test_what_nbgraders_own_submit_makes_is_collected(
    course: ClassFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nbgrader.auth import Authenticator
    from nbgrader.coursedir import CourseDirectory
    from nbgrader.exchange.default import ExchangeSubmit
    from traitlets.config import Config

    monkeypatch.setenv("JUPYTERHUB_USER", "ada")
    home = unpacked(tmp_path / "home", {f"{NAME}/{NAME}.ipynb": "{}"})
    exchange_of = tmp_path / "exchange"
    for each in (exchange_of, exchange_of / "cs336", exchange_of / "cs336" / "inbound"):
        each.mkdir()
        each.chmod(0o777)
    (exchange_of / "cs336" / "outbound" / NAME).mkdir(parents=True)
    config = Config()
    config.CourseDirectory.course_id, config.CourseDirectory.assignment_id = "cs336", NAME
    config.CourseDirectory.student_id = "ada"
    config.Exchange.root, config.Exchange.assignment_dir = str(exchange_of), str(home)
    config.Exchange.cache = str(tmp_path / "cache")
    for content in ('{"first": 1}', '{"second": 2}'):
        (home / NAME / f"{NAME}.ipynb").write_text(content)
        theirs = CourseDirectory(config=config)
        ExchangeSubmit(coursedir=theirs, authenticator=Authenticator(config=config), config=config).start()
    before = datetime.now(UTC)
    found = take(course, exchange_of / "cs336")
    assert len(found.new) == 2 and not found.unmatched and there(course) == {"ada": '{"second": 2}'}
    times = [one.time for one in attempts.read(course, NAME, "ada")]
    assert all(time is not None and 0 <= (before - time).total_seconds() < 60 for time in times)


def test_a_time_that_a_person_wrote_stays_when_the_same_is_collected_again(course: ClassFolder, tmp_path: Path) -> None:
    where = zipped(tmp_path / "s.zip", MOODLE)
    take(course, where)
    stamp = course.assignment("ada", NAME) / "timestamp.txt"
    stamp.write_text("2026-11-30 12:00:00 +01:00")
    collect.collect(course, NAME, where, LECTURES, dry_run=True)
    assert stamp.read_text() == "2026-11-30 12:00:00 +01:00"
    take(course, where)
    assert sources.moment(stamp.read_text()) == datetime(2026, 11, 30, 11, tzinfo=UTC)
    [stored] = attempts.read(course, NAME, "ada")
    assert stored.time == datetime(2026, 11, 30, 11, tzinfo=UTC)
    stamp.write_text("yesterday")
    assert any("has no time with a time zone" in each for each in take(course, where).remarks)
    assert stamp.read_text() == "yesterday"


def test_a_second_notebook_in_one_submission_is_named(course: ClassFolder, tmp_path: Path) -> None:
    folder = "Ada Lovelace_7001_assignsubmission_file_"
    names = [f"{folder}/{NAME}.ipynb", f"{folder}/{NAME} (1).ipynb"]
    said = command(course, zipped(tmp_path / "same.zip", dict.fromkeys(names, "equal")))[1]
    assert "together" not in said
    said = command(course, zipped(tmp_path / "s.zip", dict(zip(names, ("one", "two"), strict=True))))[1]
    assert f"ada handed in {NAME}.ipynb and {NAME} (1).ipynb together: {NAME}.ipynb is collected" in said
    assert there(course) == {"ada": "one"}


def test_the_name_that_a_person_added_decides_between_two(course: ClassFolder, tmp_path: Path) -> None:
    course.roster.write_text(HEAD + "kim,Kim Nguyen,,,Kim Nguyen\nnguyen,Nguyen Kim,,,Nguyen Kim", encoding="utf-8")
    entries: Entries = {f"{name}_{n}_assignsubmission_file_/{NAME}.ipynb": name for n, name in
                        enumerate(("Kim Nguyen", "Nguyen Kim"))}  # fmt: skip
    assert not take(course, zipped(tmp_path / "s.zip", entries)).unmatched
    assert there(course) == {"kim": "Kim Nguyen", "nguyen": "Nguyen Kim"}

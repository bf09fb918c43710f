"""Every command of docs/semester.md, in the page's order, on a small made-up class."""

from __future__ import annotations

import csv
import shlex
import shutil
from pathlib import Path

import pytest
from importers import Canvas, Person
from typer.testing import CliRunner

from autograder import cli, project, semester
from autograder.authoring import build, release
from autograder.grading import source
from autograder.records import due
from autograder.records.folder import ClassFolder

PAGE = (project.ROOT / "docs" / "semester.md").read_text(encoding="utf-8")
NAME, OWN = "00_napkin_math", semester.OWN[-1]
FIRST = source.read(project.SOLUTIONS / f"{NAME}.py").exercises[0].name


def commands() -> list[str]:
    blocks = [block.partition("```")[0] for block in PAGE.split("```sh\n")[1:]]
    return [line for block in blocks for line in block.splitlines()]


def test_the_page_and_the_lectures_are_of_one_kind() -> None:
    assert "01_tensors" in PAGE and OWN in PAGE
    assert "tensor_bytes" in {e.name for e in source.read(project.source_path("01_tensors")).exercises}
    text = PAGE.partition("```toml\n")[2].partition("```")[0]
    assert due.tomllib.loads(text)["attempt"] == "best"


@pytest.mark.sandboxed
def test_every_command_works_in_this_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    solutions = tmp_path / "course" / "solutions"
    solutions.mkdir(parents=True)
    shutil.copyfile(project.source_path(NAME), solutions / f"{NAME}.py")
    made = semester.make(tmp_path, 10)
    shutil.rmtree(made.folder.root / "hidden")  # `course init` draws the class's own
    for module in (project, build, release):
        monkeypatch.setattr(module, "SOLUTIONS", solutions)
    monkeypatch.setattr(project, "BUILD", tmp_path / "build")
    monkeypatch.setenv("HOME", str(tmp_path))
    made.folder.root.rename(tmp_path / "my-class")
    made.folder = ClassFolder(tmp_path / "my-class")
    # The page's rules, with the test's lecture; and its two students, among others.
    rules = PAGE.partition("```toml\n")[2].partition("```")[0].replace("01_tensors", NAME)
    (made.folder.root / "class.toml").write_text(rules, encoding="utf-8")
    semester.correct(made)
    roster = PAGE.partition("```\nid,")[2].partition("```")[0].splitlines()[1:]
    lines = made.folder.roster.read_text(encoding="utf-8").splitlines()
    ids = dict(zip(made.students, ["ada", "bob"], strict=False))
    head = "id,first_name,last_name,email,login,lms_user_id,also"
    assert f"id,{PAGE.partition(chr(96) * 3 + chr(10) + 'id,')[2].splitlines()[0]}" == head
    rows = [",".join(row[c] for c in head.split(",")) for row in csv.DictReader(lines) if row["id"] not in ids]
    made.folder.roster.write_text("\n".join([head, *roster, *rows]) + "\n", encoding="utf-8")

    downloads = tmp_path / "Downloads"
    zipped = semester.hand_in(made, 0, tmp_path / "handed-in")
    downloads.mkdir()
    # The first two have the numbers of the page's roster in Canvas.
    renumbered(zipped, downloads / "submissions.zip", {"_1000_": "_1017_", "_1001_": "_1018_"})
    people = [Person(row["lms_user_id"], "x", row["login"]) for row in table(made.folder.roster)]
    worth = made.lectures[0].points
    gradebook = Canvas(people, {"1": NAME}, {NAME: f"{worth:g}"})
    (downloads / "Grades-CS336.csv").write_text(gradebook.download(), encoding="utf-8")
    own_work = made.folder.submission("ada", OWN)
    own_work.parent.mkdir(parents=True)
    own_work.write_bytes(semester._notebook(made.lectures[-1], made.answers[OWN, 0]))

    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    ran = []
    for line in commands():
        typed = line.replace("01_tensors", NAME).replace("tensor_bytes", FIRST).replace("~", str(tmp_path))
        program, *arguments = shlex.split(typed, comments=True)
        if program == "cd":
            monkeypatch.chdir(arguments[0])
            continue
        assert program == "course", line
        arguments += ["--workers", "0"] if arguments[0] == "grade" and "--dry-run" not in arguments else []
        result = CliRunner().invoke(cli.app, arguments)
        assert result.exit_code == 0, (line, result.output)
        ran.append(arguments[0])
    assert {"init", "release", "collect", "grade", "report", "show", "decide", "interview", "feedback", "export"} < {
        *ran
    }
    rows = table(made.folder.exports / f"{NAME}.csv")
    assert sum(row["state"] == "graded" for row in rows) > 5
    assert [row["points"] for row in table(made.folder.exports / f"{OWN}.csv") if row["student"] == "ada"]


def table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def renumbered(path: Path, target: Path, numbers: dict[str, str]) -> None:
    """A copy of a zip, with other names in it."""
    import zipfile

    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            other = name
            for before, after in numbers.items():
                other = other.replace(before, after)
            new.writestr(other, old.read(name))

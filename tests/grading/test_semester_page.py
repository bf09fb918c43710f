"""The commands of docs/semester.md, in the page's order, on a small made-up class that starts from nothing."""

from __future__ import annotations

import csv
import re
import shlex
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
from importers import Canvas, Person
from typer.testing import CliRunner

from autograder import cli, project, semester
from autograder.authoring import build, release
from autograder.grading import source
from autograder.records import due
from autograder.records.folder import SETTINGS, ClassFolder

PAGE = (project.ROOT / "docs" / "semester.md").read_text(encoding="utf-8")
NAME, OWN = "00_napkin_math", semester.OWN[-1]
FIRST = source.read(project.SOLUTIONS / f"{NAME}.py").exercises[0].name


def commands() -> list[list[str]]:
    """The page's commands in its order: the lines of each block, and each one in a sentence or the table."""
    found = re.finditer(r"```(\w*)\n(.*?)```|`(course [^`]*)`", PAGE, re.DOTALL)
    return [[one[3]] if one[3] else one[2].splitlines() for one in found if one[3] or one[1] == "sh"]


def test_the_page_and_the_lectures_are_of_one_kind() -> None:
    assert "01_tensors" in PAGE and OWN in PAGE
    assert "tensor_bytes" in {e.name for e in source.read(project.source_path("01_tensors")).exercises}
    text = PAGE.partition("```toml\n")[2].partition("```")[0]
    assert due.tomllib.loads(text)["attempt"] == "best"


@pytest.mark.sandboxed
@pytest.mark.usefixtures("one_box")
@pytest.mark.parametrize("has_own", [True, False], ids=["with exercises of its own", "without"])
def test_every_command_works_in_this_order(has_own: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    solutions = tmp_path / "course" / "solutions"
    solutions.mkdir(parents=True)
    shutil.copyfile(project.source_path(NAME), solutions / f"{NAME}.py")
    made = semester.make(tmp_path, 10)
    people = table(made.folder.roster)
    zipped = semester.hand_in(made, 0, tmp_path / "handed-in")
    own_work = semester._notebook(made.lectures[-1], made.answers[OWN, 0])
    # There is no class yet, and of its own exercises there is what people write.
    shutil.rmtree(made.folder.root)
    own = tmp_path / "our-exercises"
    shutil.rmtree(own / "checks" if has_own else own)
    for module in (project, build, release):
        monkeypatch.setattr(module, "SOLUTIONS", solutions)
    checks = shutil.copytree(project.CHECKS, tmp_path / "course" / "checks")
    for module in (project, build, source):
        monkeypatch.setattr(module, "CHECKS", checks)
    for name in ("BUILD", "COVERAGE", "TEACHING"):
        monkeypatch.setattr(project, name, tmp_path / name.lower())
    built = build.students_notebooks

    def elsewhere(*places: Path, **more: Any) -> list[Path]:
        return built(*(places or (tmp_path / "notebooks", project.BUILD)), **more)

    monkeypatch.setattr(build, "students_notebooks", elsewhere)
    monkeypatch.setenv("HOME", str(tmp_path))

    # The page's two students, among others, and its rules, with the test's lecture.
    head, *both = ("id," + PAGE.partition("```\nid,")[2].partition("```")[0]).splitlines()
    roster = "\n".join([head, *both, *(",".join(row[c] for c in head.split(",")) for row in people[2:])])
    rules = PAGE.partition("```toml\n")[2].partition("```")[0].replace("01_tensors", NAME)
    assert "\n# exercises = " in rules
    rules = rules.replace("\n# exercises", "\nexercises") if has_own else rules

    downloads = tmp_path / "Downloads"
    downloads.mkdir()
    # The first two have the numbers of the page's roster in Canvas.
    renumbered(zipped, downloads / "submissions.zip", {"_1000_": "_1017_", "_1001_": "_1018_"})
    known = [Person(row["lms_user_id"], "x", row["login"]) for row in csv.DictReader(roster.splitlines())]
    worth = made.lectures[0].points
    gradebook = Canvas(known, {"1": NAME}, {NAME: f"{worth:g}"})
    (downloads / "Grades-CS336.csv").write_text(gradebook.download(), encoding="utf-8")

    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    course = ClassFolder(tmp_path / "my-class")
    ran = []
    for block in commands():
        if not has_own and any("notebooks --class" in line for line in block):
            continue
        for line in block:
            typed = line.replace("01_tensors", NAME).replace("tensor_bytes", FIRST).replace("~", str(tmp_path))
            program, *arguments = shlex.split(typed, comments=True)
            if program == "cd":
                monkeypatch.chdir(arguments[0])
                course.roster.write_text(roster + "\n", encoding="utf-8")
                (course.root / SETTINGS).write_text(rules, encoding="utf-8")
                continue
            assert program == "course", line
            if OWN in arguments and not has_own:
                continue
            if arguments[:2] == ["check", OWN]:
                semester.write_lectures(own)  # its test was wrong until now
                course.submission("ada", OWN).parent.mkdir(parents=True)
                course.submission("ada", OWN).write_bytes(own_work)
            arguments += ["--workers", "0"] if arguments[0] == "grade" and "--dry-run" not in arguments else []
            result = CliRunner().invoke(cli.app, arguments)
            assert result.exit_code == 0, (line, result.output)
            ran.append(arguments[0])
    every = {"init", "release", "collect", "grade", "report", "show", "decide", "interview", "feedback", "export"}
    assert {*every, "check", "notebooks"} == {*ran}
    rows = table(course.exports / f"{NAME}.csv")
    assert sum(row["state"] == "graded" for row in rows) > 5
    [zipped] = (tmp_path / "build").glob("every-*.zip")
    with zipfile.ZipFile(zipped) as released:
        given_out = {Path(name).stem for name in released.namelist() if name.endswith(".ipynb")}
    assert given_out == {NAME, *(semester.OWN if has_own else ())}
    if has_own:
        assert [row["points"] for row in table(course.exports / f"{OWN}.csv") if row["student"] == "ada"] == ["3"]


def table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def renumbered(path: Path, target: Path, numbers: dict[str, str]) -> None:
    """A copy of a zip, with other names in it."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            other = name
            for before, after in numbers.items():
                other = other.replace(before, after)
            new.writestr(other, old.read(name))

"""The command line where there is no Linux, and its answers to what cannot be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from autograder import project
from autograder.cli import app

# What other systems lack. A module that is None in sys.modules cannot be imported.
ELSEWHERE = "import sys; sys.modules |= dict.fromkeys(['fcntl', 'resource']); from autograder.cli import app; app()"
COMMANDS = [command.name or command.callback.__name__ for command in app.registered_commands if command.callback]


def elsewhere(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", ELSEWHERE, *arguments]
    return subprocess.run(command, cwd=project.ROOT, capture_output=True, text=True)


def test_it_starts_without_what_takes_seconds_to_import() -> None:
    for module, absent in (
        ("cli", {"torch", "dask", "matplotlib", "nbgrader"}),
        ("grading.engine", {"torch"}),
        ("grading.worker", {"torch", "dask", "matplotlib", "nbgrader"}),
    ):
        code = f"import sys, autograder.{module}; assert not {absent} & set(sys.modules)"
        subprocess.run([sys.executable, "-c", code], cwd=project.ROOT, check=True)


def test_it_starts_where_there_is_no_linux() -> None:
    ran = elsewhere("--help")
    assert ran.returncode == 0, ran.stderr
    assert all(f"\n  {name} " in ran.stdout for name in COMMANDS), ran.stdout


def test_what_needs_no_linux_works_there(tmp_path: Path) -> None:
    (tmp_path / "submitted").mkdir()
    (tmp_path / "roster.csv").write_text("id\nada\n")
    for command in ("collect", "verify", "show", "feedback", "report", "export"):
        source = [str(tmp_path / "submitted")] if command == "collect" else []
        ran = elsewhere(command, str(tmp_path), "01_tensors", *source)
        assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "reports" / "01_tensors.html").is_file()


def test_grading_says_that_it_needs_linux(tmp_path: Path) -> None:
    for arguments in (["grade", str(tmp_path), "01_tensors"], ["demo", str(tmp_path / "demo")]):
        ran = elsewhere(*arguments)
        assert ran.returncode == 1
        assert ran.stderr.startswith("course: grading needs Linux") and "WSL 2" in ran.stderr, ran.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str) -> None:
    for option in ("-h", "--help"):
        ran = CliRunner().invoke(app, [name, option])
        assert ran.exit_code == 0 and f"{name} [OPTIONS]" in ran.output and "<bool>" not in ran.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["grade", "{}"], "Missing argument 'LECTURE'"),
        (["grade", "{}", "1_tensors"], "there is no lecture '1_tensors'; perhaps 01_tensors"),
        (["grade", "{}", "../solutions/01_tensors"], "there is no lecture"),
        (["grade", "{}", ""], "there is no lecture ''"),
        (["grade", "{}", "01_tensors", "--workers", "-1"], "Invalid value for '--workers'"),
        (["demo", "{}", "--lecture", "nothing"], "there is no lecture 'nothing'"),
        (["demo", "{}", "--students", "0"], "Invalid value for '--students'"),
        (["export", "{}", "01_tensors", "--format", "xls"], "'xls' is not one of"),
        (["check", "nothing"], "there is no lecture 'nothing'"),
        (["nothing"], "No such command"),
    ],
)
def test_what_was_typed_wrong_is_a_usage_error(arguments: list[str], says: str, tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, [each.format(tmp_path) for each in arguments])
    assert ran.exit_code == 2 and says in " ".join(ran.output.split()), ran.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["collect", "verify", "grade", "show", "feedback", "report", "export", "formgrader"])
def test_a_folder_that_is_not_there_is_not_made(name: str, tmp_path: Path) -> None:
    arguments = [name, str(tmp_path / "typo"), *(["01_tensors"] if name != "formgrader" else [])]
    arguments += [str(project.ROOT)] if name == "collect" else []
    ran = CliRunner().invoke(app, arguments)
    assert ran.exit_code == 1 and "course: " in ran.output and "→" in ran.output and "typo" in ran.output, ran.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name",
    ["init", "collect", "verify", "grade", "show", "feedback", "report", "export", "decide", "interview", "formgrader"],
)
def test_a_folder_full_of_other_things_does_not_become_a_class(name: str, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    arguments = [name, str(tmp_path), *(["01_tensors"] if name not in ("init", "formgrader") else [])]
    arguments += {"collect": [str(project.ROOT)], "decide": ["ada", "--comment", "x"]}.get(name, [])
    ran = CliRunner().invoke(app, arguments)
    assert ran.exit_code == 1 and "is not a class's folder" in ran.output and "photos" in ran.output, ran.output
    assert "\n  → name " in ran.output and [path.name for path in tmp_path.rglob("*")] == ["photos"]


def test_a_file_in_place_of_a_folder_and_an_exercise_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    course, missing = tmp_path / "class", str(tmp_path / "none.csv")
    (course / "submitted").mkdir(parents=True)
    for arguments, says in (
        (["init", str(tmp_path / "file")], "is not a folder"),
        (["grade", str(tmp_path / "file"), "01_tensors"], "is missing"),
        (["report", str(course), "01_tensors", "--roster", missing], "none.csv cannot be read (No such file"),
        (["export", str(course), "01_tensors", "--against", missing], "none.csv cannot be read (No such file"),
        (["check", "01_tensors", "nothing"], "no exercise 'nothing' in 01_tensors"),
    ):
        ran = CliRunner().invoke(app, arguments)
        assert ran.exit_code == 1 and "course: " in ran.output and says in ran.output, ran.output
        assert "\n  → " in ran.output
    assert [path.name for path in course.rglob("*")] == ["submitted"]

"""Exercises of a class's own, outside this repository: built, checked, handed out and graded like the course's."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from inspect import signature
from pathlib import Path

import nbformat
import pytest
from classroom import BREAKS
from classroom import LECTURE as OTHER
from typer.testing import CliRunner

from autograder import cli, project
from autograder.authoring import build, release, teaching
from autograder.authoring.kernel import execution
from autograder.grading import source
from autograder.records import results
from autograder.records.folder import ClassFolder, FolderError
from course_utils import home
from course_utils.testing.requirements import load

NAME = "20_ours"
GUIDE = (project.ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PAGE = (project.ROOT / "docs" / "instructors.md").read_text(encoding="utf-8")
# The skeleton in CONTRIBUTING.md: a lecture with one exercise, and the exercise's own file.
LECTURE, FILE = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with our-exercises and my-class in it, beside a course with a single lecture."""
    solutions = tmp_path / "course" / "solutions"
    solutions.mkdir(parents=True)
    shutil.copyfile(OTHER.path, solutions / OTHER.path.name)
    for module in (project, build, release):
        monkeypatch.setattr(module, "SOLUTIONS", solutions)
    monkeypatch.setattr(project, "BUILD", tmp_path / "build")
    own = tmp_path / "our-exercises"
    (own / "exercises" / NAME).mkdir(parents=True)
    (own / f"{NAME}.py").write_text(LECTURE, encoding="utf-8")
    (own / "exercises" / NAME / "clamp.py").write_text(FILE, encoding="utf-8")
    course = tmp_path / "my-class"
    course.mkdir()
    setting = PAGE.partition("\n## Exercises of your own\n")[2].partition("```toml\n")[2].partition("```")[0]
    (course / "class.toml").write_text(setting, encoding="utf-8")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


def run(*arguments: str, code: int = 0) -> str:
    ran = CliRunner().invoke(cli.app, list(arguments))
    assert ran.exit_code == code and (code == 0 or isinstance(ran.exception, SystemExit)), (ran.output, ran.exception)
    return ran.output


def hand_in(course: Path, student: str, answer: str) -> None:
    notebook = nbformat.read(project.notebook_path(course / "source", NAME), as_version=4)
    for cell in notebook.cells:
        cell.source = {"clamp": answer, "test_clamp": 'check("clamp")'}.get(cell.id, cell.source)
    path = ClassFolder(course).submission(student, NAME)
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(notebook), encoding="utf-8")


@pytest.mark.sandboxed
def test_the_commands_of_the_instructors_page_work(place: Path) -> None:
    block = PAGE.partition("\n## Exercises of your own\n")[2].partition("```sh\n")[2].partition("```")[0]
    course, own = place / "my-class", place / "our-exercises"
    lines = [shlex.split(line, comments=True)[1:] for line in block.splitlines()]
    assert [line[0] for line in lines] == ["notebooks", "check", "init", "grade", "release"]
    for line in lines:
        if line[0] == "grade":
            hand_in(course, "ada", source.read(own / f"{NAME}.py").exercises[0].solution)
            hand_in(course, "bob", "def clamp(x, low, high):\n    return min(max(x, low), high)")
            line += ["--workers", "0"]
        said = run(*line)
        if line[0] == "check":
            assert " clamp " in said and OTHER.exercises[0].name not in said
    points = {name: results.read(ClassFolder(course), NAME, name) for name in ("ada", "bob")}
    assert {name: one.points if one else None for name, one in points.items()} == {"ada": 2.0, "bob": 1.0}
    for command in ("show", "verify", "feedback", "report", "export", "interview"):
        run(command, str(course), NAME)
    assert "Ranges" in ClassFolder(course).feedback("bob", NAME).read_text(encoding="utf-8")
    run("decide", str(course), NAME, "bob", "clamp", "--points", "2")
    assert "bob: graded, 2 of 2" in run("show", str(course), NAME)

    [folder] = [path for path in (place / "build").iterdir() if path.is_dir() and path.name.startswith("every-")]
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*")}
    assert {f"notebooks/{NAME}/{NAME}.ipynb", "course_utils/checks/clamp.check"} <= names
    known = json.loads((folder / "course_utils" / "checks" / "exercises.json").read_bytes())
    assert known[NAME] == {"clamp": 2.0} and OTHER.name in known
    assert all(b"if low > high" not in (folder / name).read_bytes() for name in names if (folder / name).is_file())
    # Nothing of it is left in the course's own folders.
    assert not (project.CHECKS / "clamp.check").exists() and not project.source_path(NAME).exists()


WITH_CLASS = {"check": [NAME, "--draws", "20"], "notebooks": [], "release": []}


def test_these_are_the_commands_that_take_a_classs_own_lectures() -> None:
    commands = [each.callback for each in cli.app.registered_commands if each.callback]
    assert {each.__name__ for each in commands if "class_folder" in signature(each).parameters} == WITH_CLASS.keys()


@pytest.mark.parametrize("broken", BREAKS)
@pytest.mark.parametrize("command", WITH_CLASS)
def test_no_broken_lecture_of_a_class_is_built_or_found_to_be_right(command: str, broken: str, place: Path) -> None:
    course, own = place / "my-class", place / "our-exercises"
    if command != "notebooks":
        run("notebooks", "--class", str(course))
    changed = BREAKS[broken](LECTURE)
    assert changed != LECTURE
    (own / f"{NAME}.py").write_text(changed, encoding="utf-8")
    run(command, *WITH_CLASS[command], "--class", str(course), code=1)
    assert not [path for path in (place / "build").rglob("*") if path.is_file()]
    assert command != "notebooks" or not list(own.rglob("*.check"))


def test_nbgrader_hands_out_the_visible_cases_beside_the_notebook(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("notebooks", "--class", str(place / "my-class"))
    build.course_directory(place / "my-class", [place / "our-exercises" / f"{NAME}.py"], seed=None)
    folder = build.release(place / "my-class", NAME).parent
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} == {
        f"{NAME}.ipynb", "checks/clamp.check",
    }  # fmt: skip
    load.cache_clear()
    with pytest.raises(FileNotFoundError):
        load("clamp")
    monkeypatch.chdir(folder)
    assert load("clamp").points == 2.0
    load.cache_clear()
    # The course's own checks are never taken from there.
    mine = Path("checks", f"{OTHER.exercises[0].name}.check")
    mine.write_bytes(b"forged")
    assert load(OTHER.exercises[0].name).name == OTHER.exercises[0].name


@pytest.mark.parametrize("solved", [True, False])
def test_the_skeleton_of_a_lecture_runs_from_top_to_bottom(solved: bool, place: Path) -> None:
    run("notebooks", "--class", str(place / "my-class"))
    build.course_directory(place / "my-class", [place / "our-exercises" / f"{NAME}.py"], seed=None)
    path = project.notebook_path(place / "my-class" / "source", NAME)
    path = path if solved else build.release(place / "my-class", NAME)
    notebook = nbformat.read(path, as_version=4)
    execution.run_cells(notebook, path.parent, 60)
    shown = "".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", []))
    outputs = [output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", [])]
    texts = [data.get("text/plain", "") for data in outputs]
    assert "numbers outside: " in shown
    assert ("○ Skipped: this cell needs Exercise 20.1 · Clamp" in texts) is not solved
    assert (repr(2.0) in texts) is solved  # what the check returns to nbgrader
    # The home page and the teaching kit can read it.
    assert home.read_lecture(path).title == "20 · Ranges"
    [topic] = teaching.topics([source.read(place / "our-exercises" / f"{NAME}.py")])
    [exercise] = topic.exercises
    assert (exercise.name, exercise.importance, exercise.minutes) == ("clamp", "essential", 5)


@pytest.mark.parametrize(
    ("setting", "says"),
    [("exercises = 3", "not a folder"), ('exercises = "../nowhere"', "not a folder"), ("", "names no folder")],
)
def test_a_setting_that_names_no_folder_is_an_error(place: Path, setting: str, says: str) -> None:
    (place / "my-class" / "class.toml").write_text(setting)
    said = run("notebooks", "--class", str(place / "my-class"), code=1)
    assert says in said and "→" in said
    if setting:
        assert says in run("report", str(place / "my-class"), OTHER.name, code=1)


def test_names_that_the_course_has_are_refused(place: Path) -> None:
    own = place / "our-exercises"
    taken = OTHER.exercises[0].name
    (own / f"{NAME}.py").write_text(LECTURE.replace("clamp", taken), encoding="utf-8")
    os.rename(own / "exercises" / NAME / "clamp.py", own / "exercises" / NAME / f"{taken}.py")
    said = run("notebooks", "--class", str(place / "my-class"), code=1)
    assert f"the course has an exercise {taken}, too" in " ".join(said.split())
    (own / f"{OTHER.name}.py").write_text(LECTURE, encoding="utf-8")
    with pytest.raises(FolderError, match=f"the course has a lecture {OTHER.name}, too"):
        _ = ClassFolder(place / "my-class").lectures


def test_without_its_class_a_lecture_is_unknown_and_without_checks_it_says_what_to_do(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place / "my-class")
    said = " ".join(run("check", NAME, code=2).split())
    assert "there is no lecture '20_ours'" in said and "for one of a class's own lectures, add --class FOLDER" in said
    assert "add --class FOLDER" in " ".join(run("release", "--lecture", NAME, code=2).split())
    said = run("report", str(place / "my-class"), NAME, code=1)
    assert "course notebooks" in said and "--class FOLDER" in said
    assert place / "our-exercises" in ClassFolder(place / "my-class").places()  # no sandbox may see it


def test_an_exercise_is_looked_for_and_missed_in_the_classs_own_folder(place: Path) -> None:
    options = ("--class", str(place / "my-class"))
    said = run("check", NAME, "clmp", *options, code=1)
    assert f"no exercise 'clmp' in {NAME}\n  → it has clamp" in said
    assert "leave out --class" in run("check", OTHER.name, *options, code=1)
    file = place / "our-exercises" / "exercises" / NAME / "clamp.py"
    file.unlink()
    for command in ("notebooks", "check"):
        assert f"course: {file}: this exercise has no file" in run(command, *options, code=1)


def test_a_class_that_is_not_there_or_has_no_settings_is_told_apart(place: Path) -> None:
    for command in ("check", "notebooks"):
        assert f"{place / 'my-clas'} is missing" in run(command, "--class", str(place / "my-clas"), code=1)
    assert "my-clas is missing" in run("check", NAME, "--class", str(place / "my-clas"), code=1)
    (place / "my-class" / "class.toml").rename(place / "my-class" / "roster.csv")
    said = run("notebooks", "--class", str(place / "my-class"), code=1)
    assert f"{place / 'my-class' / 'class.toml'} is missing\n  → write it" in said


def test_the_skeleton_under_another_number_is_refused(place: Path) -> None:
    own, options = place / "our-exercises", ("--class", str(place / "my-class"))
    (own / f"{NAME}.py").rename(own / "23_ours.py")
    (own / "exercises" / NAME).rename(own / "exercises" / "23_ours")
    for command in ("notebooks", "check"):
        said = run(command, *options, code=1)
        assert "'20' does not fit the name 23_ours.py\n  → write 23 in the title and 23.1" in said
    text = LECTURE.replace("# 20 ·", "# 23 ·")
    (own / "23_ours.py").write_text(text, encoding="utf-8")
    assert "'Exercise 20.1' does not fit" in run("notebooks", *options, code=1)
    (own / "23_ours.py").write_text(text.replace("Exercise 20.1", "Exercise 23.1"), encoding="utf-8")
    run("notebooks", *options)


def test_preparing_a_class_again_names_the_exercises_whose_inputs_are_drawn_again(place: Path) -> None:
    course, file = place / "my-class", place / "our-exercises" / "exercises" / NAME / "clamp.py"
    run("notebooks", "--class", str(course))
    said = run("init", str(course))
    assert "Hidden inputs drawn" not in said and "roster.csv and class.toml" in said
    assert "Hidden inputs drawn: none" in run("init", str(course))
    file.write_text(FILE.replace("points=1", "points=2", 1), encoding="utf-8")
    run("notebooks", "--class", str(course))
    assert f"Hidden inputs drawn: {NAME} clamp\n" in run("init", str(course))


def test_a_class_without_exercises_of_its_own_is_released_and_told(place: Path) -> None:
    course = place / "my-class"
    (course / "class.toml").write_text('# exercises = "../our-exercises"\n')
    said = run("release", "--class", str(course), "--no-notebooks")
    assert "Only the course's lectures" in said
    (course / "class.toml").unlink()
    assert "Only the course's lectures" in run("release", "--class", str(course), "--no-notebooks")


@pytest.mark.parametrize("setting", ['exercises = "../our-exercises', 'exercise = "../our-exercises"'])
def test_a_release_does_not_leave_out_lectures_because_of_a_mistyped_setting(place: Path, setting: str) -> None:
    (place / "my-class" / "class.toml").write_text(setting)
    assert "class.toml" in run("release", "--class", str(place / "my-class"), "--no-notebooks", code=1)
    assert "class.toml" in run("init", str(place / "my-class"), code=1)
    assert not (place / "my-class" / "source").exists()
    assert "is missing" in run("release", "--class", str(place / "my-clas"), "--no-notebooks", code=1)
    assert not (place / "build").exists()

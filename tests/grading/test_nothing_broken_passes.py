"""No command that we document reports success for a stub, an empty notebook, an error, or deleted or forged checks."""

from __future__ import annotations

import copy
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
import pytest
from classroom import BREAKS, LECTURE, LIMITS, NAME, WHOLE, give_cases
from exercise_notebooks import exercises_only
from jupyter_client.provisioning.factory import KernelProvisionerFactory
from nbgrader.apps import (
    AutogradeApp,
    CollectApp,
    ExportApp,
    GenerateAssignmentApp,
    GenerateFeedbackApp,
    ReleaseAssignmentApp,
)
from nbgrader.validator import Validator
from traitlets.config.loader import PyFileConfigLoader
from typer.testing import CliRunner

from autograder import cli, project
from autograder.authoring import build, colab, release
from autograder.authoring.kernel import execution
from autograder.grading import source
from autograder.records import grade, gradebook
from autograder.records.folder import ClassFolder
from course_utils.progress import FILE_VARIABLE

pytestmark = [pytest.mark.sandboxed, pytest.mark.xdist_group("broken")]
EXERCISES = LECTURE.exercises
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # nbgrader starts alembic


@cache
def notebooks() -> dict[str, nbformat.NotebookNode]:
    """A right notebook, without which no test here could fail, and the broken ones, as nbgrader hands them out."""
    with tempfile.TemporaryDirectory() as folder:
        path = project.notebook_path(Path(folder, "source"), NAME)
        path.parent.mkdir(parents=True)
        build.write_notebook(exercises_only(LECTURE, [e.solution for e in EXERCISES]), path)
        stub = nbformat.read(build.release(Path(folder), NAME), as_version=4)
    answers = {e.name: e.solution for e in EXERCISES}
    right = changed(stub, lambda cell: cell | {"source": answers.get(cell.id, cell.source)})
    graded = {f"test_{e.name}" for e in EXERCISES}
    forged = {"source": "print('✓ everything passes')"}
    return {
        "right": right,
        "stub": stub,
        "empty": nbformat.v4.new_notebook(),
        "error": changed(right, lambda cell: cell | {"source": "1 / 0"} if cell.id in answers else cell),
        "no_checks": changed(stub, lambda cell: None if cell.id in graded else cell),
        "forged": changed(stub, lambda cell: cell | forged if cell.id in graded else cell),
        "plain": changed(stub, lambda cell: cell | {"metadata": {}}),  # another program has dropped all metadata
    }


def changed(notebook: nbformat.NotebookNode, change: Callable[[Any], Any]) -> nbformat.NotebookNode:
    made = copy.deepcopy(notebook)
    made.cells = [nbformat.from_dict(new) for cell in made.cells if (new := change(cell)) is not None]
    return made


BROKEN = sorted(notebooks().keys() - {"right"})


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A class of them, graded with `course grade`."""
    folder = tmp_path_factory.mktemp("class")
    build.course_directory(folder, [LECTURE.path])
    build.write_notebook(exercises_only(LECTURE, []), project.notebook_path(folder / "source", NAME))
    give_cases(folder)
    for name, notebook in notebooks().items():
        path = project.notebook_path(folder / "submitted" / name, NAME)
        path.parent.mkdir(parents=True)
        path.write_text(nbformat.writes(notebook), encoding="utf-8")
    (folder / "roster.csv").write_text("id\n" + "\n".join(notebooks()) + "\n")
    grade.grade_class(ClassFolder(folder), NAME, workers=0, limits=LIMITS)
    return folder


def run(*arguments: str) -> str:
    return CliRunner().invoke(cli.app, list(arguments)).output


def by_course_grade(course: Path) -> dict[str, float]:
    files = (course / "results" / NAME).glob("[!.]*.json")
    return {path.stem: sum(mark["points"] for mark in json.loads(path.read_bytes())["marks"]) for path in files}


def by_course_show(course: Path) -> dict[str, float]:
    said = run("show", str(course), NAME)
    return {name: float(points) for name, points in re.findall(r"^(\w+): .*?, ([\d.]+) of ", said, re.MULTILINE)}


def by_course_feedback(course: Path) -> dict[str, float]:
    run("feedback", str(course), NAME)
    pages = {name: ClassFolder(course).feedback(name, NAME).read_text(encoding="utf-8") for name in notebooks()}
    return {
        name: sum(map(float, re.findall(r"<p>\S+ ([\d.]+) of [\d.]+ points", page))) for name, page in pages.items()
    }


def by_course_report(course: Path) -> dict[str, float]:
    run("report", str(course), NAME)
    page = (course / "reports" / f"{NAME}.html").read_text(encoding="utf-8")
    rows = re.findall(r'class="name">(\w+)</th>\s*<td>[^<]*</td>\s*<td class="number">([\d.]+)', page)
    return {name: float(points) for name, points in rows}


def by_course_export(course: Path) -> dict[str, float]:
    run("export", str(course), NAME)
    with (course / "exports" / f"{NAME}.csv").open(encoding="utf-8") as file:
        return {row["student"]: float(row["points"]) for row in csv.DictReader(file)}


def by_course_export_to_others(course: Path) -> dict[str, float]:
    run("export", str(course), NAME)
    with (course / "exports" / f"{NAME}.moodle.csv").open(encoding="utf-8") as file:
        return dict.fromkeys(notebooks(), 0.0) | {row["Username"]: float(row[NAME]) for row in csv.DictReader(file)}


def by_course_verify(course: Path) -> dict[str, float]:
    """It runs nothing, and says so; a class in which nothing needs attention might pass."""
    found = {}
    for name in notebooks():
        alone = course.parent / f"{name} alone"
        shutil.copytree(course / "submitted" / name, alone / "submitted" / name)
        ran = CliRunner().invoke(cli.app, ["verify", str(alone), NAME])
        assert "No code was run, so none of the answers is known to be right" in ran.output
        found[name] = WHOLE * (ran.exit_code == 0)
    return found


def by_course_collect(course: Path) -> dict[str, float]:
    """Collected as everybody's repositories, then graded: a file arrives as it was handed in."""
    handed_in, collected = course.parent / "repositories", course.parent / "collected"
    for name in notebooks():
        folder = handed_in / f"lecture-{name}"
        folder.mkdir(parents=True)
        shutil.copy(project.notebook_path(course / "submitted" / name, NAME), folder)
    collected.mkdir()
    shutil.copy(course / "roster.csv", collected)
    shutil.copytree(course / "hidden", collected / "hidden")
    said = run("collect", str(collected), NAME, str(handed_in))
    assert f"{len(notebooks())} new attempts" in said and " 0 not matched" in " ".join(said.split()), said
    grade.grade_class(ClassFolder(collected), NAME, workers=0, limits=LIMITS, database=None)
    return by_course_grade(collected)


def by_course_interview(course: Path) -> dict[str, float]:
    """A talk that begins with what the answer does right is for those who have one."""
    run("interview", str(course), NAME)
    page = (course / "interviews" / f"{NAME}.html").read_text(encoding="utf-8")
    about = dict(re.findall(r'<h2 class="name">(\w+)</h2>(.*?)</section>', page, re.DOTALL))
    assert {"right", "stub", "error"} <= about.keys()
    return {name: WHOLE * (" does this: " in about.get(name, "")) for name in notebooks()}


def start(app: type[Any], *arguments: str) -> None:
    """Run one of nbgrader's commands in the current folder."""
    one = app()
    one.initialize(list(arguments))
    one.start()


def by_nbgrader_collect(course: Path) -> dict[str, float]:
    """Collected from the exchange, the files are those that were handed in, so what they were graded stands."""
    inbound = course / "exchange" / build.COURSE_ID / "inbound"
    inbound.mkdir(parents=True)
    for name in notebooks():
        handed_in = f"{name}+{NAME}+2026-11-22 12:00:00.000000 UTC+{name}"
        shutil.move(course / "submitted" / name / NAME, inbound / handed_in)
        (inbound / handed_in / "timestamp.txt").write_text("2026-11-22 12:00:00.000000 UTC")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(course)
        start(CollectApp, NAME, f"--Exchange.root={course / 'exchange'}")
    plan = grade.plan(ClassFolder(course), NAME)
    assert sorted(plan.kept) == sorted(notebooks()) and not plan.wanted
    return by_course_show(course)


def by_nbgrader(course: Path) -> dict[str, float]:
    """`nbgrader autograde`, `generate_feedback` and `export`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(course)
        patch.setenv("PATH", PATH)
        patch.setattr(KernelProvisionerFactory.instance(), "default_provisioner_name", "warm")
        start(AutogradeApp, NAME, "--force", "--Execute.shutdown_kernel=immediate")
        start(GenerateFeedbackApp, NAME, "--force")
        start(ExportApp, "--to", "grades.csv")
    with (course / "grades.csv").open() as file:
        points = {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}
    for name in points:
        page = (course / "feedback" / name / NAME / f"{NAME}.html").read_text(encoding="utf-8")
        [shown] = re.findall(r"\(Score: ([\d.]+) / ", page)[:1]
        assert float(shown) == points[name], name
    return points


def by_validate(course: Path) -> dict[str, float]:
    """The button Validate, with the settings that students have."""
    config = PyFileConfigLoader("nbgrader_config.py", path=str(project.ROOT / "jupyter")).load_config()
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KernelProvisionerFactory.instance(), "default_provisioner_name", "warm")
        for name in notebooks():
            path = project.notebook_path(course / "submitted" / name, NAME)
            found[name] = WHOLE * (not Validator(config=config).validate(str(path)))
    return found


def by_nbval(course: Path) -> dict[str, float]:
    """`pytest --nbval`, which compares outputs with those of the right notebook: one of them has to show an answer."""
    shown = nbformat.v4.new_code_cell("print(training_days(70e9, 15e12, 1024, 1e15, 0.4))")
    quiet = {**os.environ, FILE_VARIABLE: "off"}
    made = {name: changed(each, dict) for name, each in notebooks().items()}
    for name in made.keys() - {"empty"}:
        made[name].cells.append(copy.deepcopy(shown))
    (folder := course / "nbval").mkdir()
    with execution.warm_kernels():
        execution.run_cells(made["right"], folder, 120, environ=quiet)
    ran = {cell.id: cell for cell in made["right"].cells}
    for name, notebook in made.items():
        for cell in notebook.cells:
            if cell.cell_type == "code" and cell.id in ran:
                cell.outputs, cell.execution_count = ran[cell.id].outputs, ran[cell.id].execution_count
        nbformat.write(notebook, folder / f"{name}.ipynb")
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "-p", "no:cacheprovider"]
    command += ["-c", "/dev/null", "-q", "--tb=no", "-rpfE", str(folder)]
    environ = quiet | {"JUPYTER_DEFAULT_PROVISIONER_NAME": "warm"}
    said = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=300).stdout
    cells = re.findall(r"^(PASSED|FAILED|ERROR) \S*?(\w+)\.ipynb", said, re.MULTILINE)
    return {name: WHOLE * ({what for what, where in cells if where == name} == {"PASSED"}) for name in made}


COMMANDS = [
    by_course_grade, by_course_show, by_course_feedback, by_course_report, by_course_export,
    by_course_export_to_others, by_course_verify, by_course_collect, by_course_interview, by_validate, by_nbgrader,
    by_nbgrader_collect, by_nbval,
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.__name__)
def test_nothing_broken_passes(command: Callable[[Path], dict[str, float]], course: Path, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(course, tmp_path / "class"))
    points = command(copied)
    assert {name: points[name] for name in BROKEN} == dict.fromkeys(BROKEN, 0.0)
    assert points["right"] == WHOLE


def test_a_notebook_elsewhere_without_checks_is_not_valid(tmp_path: Path) -> None:
    config = PyFileConfigLoader("nbgrader_config.py", path=str(project.ROOT / "jupyter")).load_config()
    nbformat.write(nbformat.v4.new_notebook(), tmp_path / "notes.ipynb")
    [failed] = Validator(config=config).validate(str(tmp_path / "notes.ipynb"))["failed"]
    assert "no check cell" in failed["source"]


def test_validate_knows_every_exercise_of_every_lecture() -> None:
    from course_utils.validating import exercises

    lectures = [source.read(path) for path in source.lectures(project.SOLUTIONS)]
    assert exercises() == {one.name: {e.name: e.points for e in one.exercises} for one in lectures}


ARGUMENTS = {
    "check": [NAME, EXERCISES[0].name, "--draws", "20"],
    "notebooks": [],
    "init": ["FOLDER"],
    "release": ["FOLDER"],
    "colab": ["FOLDER", "--repository", "owner/name", "--commit", "0"],
    "book": ["FOLDER", "--draft"],
    "coverage": [],
    "teaching": [],
}
# What can't report success for a notebook, because it reads none.
READS_NONE = {
    "decide": "records what a person says about a submission that was graded",
    "formgrader": "starts JupyterLab; what Formgrader shows was written by `course grade` or nbgrader",
    "hub": "writes a JupyterHub's settings",
    "demo": "makes its own class, and takes none",
    "published": "compares the planner with published numbers",
}


# The same for other programs' commands that a page names.
TRIED = {
    "nbgrader autograde": by_nbgrader,
    "nbgrader generate_feedback": by_nbgrader,
    "nbgrader export": by_nbgrader,
    "nbgrader collect": by_nbgrader_collect,
    "nbgrader generate_assignment": "test_nbgrader_hands_out_no_broken_lecture",
    "nbgrader release_assignment": "test_nbgrader_hands_out_no_broken_lecture",
    "pytest --nbval": by_nbval,
}
OTHERS_READ_NONE = {
    "nbgrader list": "names what was handed in",
    "nbgrader release_feedback": "returns pages that `course feedback` or `nbgrader generate_feedback` has written",
    "jupyter lab": "opens JupyterLab, whose button is tried by `by_validate`",
}


def documented(pages: Iterable[str]) -> set[str]:
    """The commands of nbgrader, Jupyter and nbval in Markdown pages, in blocks of code and in a sentence's `code`."""
    found = set()
    for page in pages:
        blocks = re.findall(r"^```\w*\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
        code = [re.sub(r"(^| )#.*", "", line) for block in blocks for line in block.splitlines()]
        code += re.findall(r"`([^`]+)`", re.sub(r"^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE))
        for text in code:
            commands = re.findall(r"\b(?:(?:nbgrader|jupyter)\s+[a-z_]+|pytest --nbval)\b", text)
            found |= {" ".join(each.split()) for each in commands}
    return found


def test_every_documented_command_of_another_program_is_tried_here_or_reads_no_notebook() -> None:
    said = "Type `nbgrader\ndb x`, as nbgrader list says:\n```sh\nexport A=b; jupyter lab  # or jupyter run\n```\n"
    assert documented([said]) == {"nbgrader db", "jupyter lab"}
    pages = [project.ROOT / "README.md", project.ROOT / "CONTRIBUTING.md", *(project.ROOT / "docs").glob("*.md")]
    assert documented(page.read_text(encoding="utf-8") for page in pages) == TRIED.keys() | OTHERS_READ_NONE.keys()
    assert all(each in COMMANDS if callable(each) else each in globals() for each in TRIED.values())


def test_every_command_is_tried_here_or_reads_no_notebook() -> None:
    tried = {each.__name__.removeprefix("by_course_") for each in COMMANDS if each.__name__.startswith("by_course_")}
    tried = tried - {"export_to_others"} | ARGUMENTS.keys()
    assert not tried & READS_NONE.keys()
    commands = {each.name or each.callback.__name__ for each in cli.app.registered_commands if each.callback}
    assert commands == tried | READS_NONE.keys()


def copied_course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[str], str]) -> None:
    """Make the commands work on a copy of one lecture, changed, and of all checks."""
    solutions, made = tmp_path / "solutions", Path(shutil.copytree(project.CHECKS, tmp_path / "checks"))
    solutions.mkdir()
    text = LECTURE.path.read_text(encoding="utf-8")
    changed = change(text)
    assert changed != text
    (solutions / f"{NAME}.py").write_text(changed, encoding="utf-8")
    for module in (project, build, release, colab):
        monkeypatch.setattr(module, "SOLUTIONS", solutions)
    for module in (project, build, source):
        monkeypatch.setattr(module, "CHECKS", made)
    for page in ("COVERAGE", "TEACHING"):
        monkeypatch.setattr(project, page, tmp_path / page)


@pytest.mark.parametrize("broken", BREAKS)
@pytest.mark.parametrize("command", ARGUMENTS)
def test_no_broken_lecture_is_built_or_found_to_be_right(
    command: str, broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied_course(tmp_path, monkeypatch, BREAKS[broken])
    if command == "notebooks":  # it refuses before it writes notebooks into the project
        monkeypatch.setattr(build, "students_notebooks", lambda **_: pytest.fail("it built them"))
    arguments = [str(tmp_path / "x") if each == "FOLDER" else each for each in ARGUMENTS[command]]
    ran = CliRunner().invoke(cli.app, [command, *arguments])
    assert ran.exit_code == 1 and isinstance(ran.exception, SystemExit), (ran.output, ran.exception)
    # The pages miss what only other lectures have; that isn't what stops these commands.
    assert command not in ("coverage", "teaching") or "problems" not in ran.output


@pytest.mark.parametrize("broken", ["", *BREAKS])
def test_nbgrader_hands_out_no_broken_lecture(broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It hands out what is in the class's source/, where `course init` puts no broken lecture."""
    folder, exchange = tmp_path / "class", tmp_path / "exchange"
    if broken:
        copied_course(tmp_path, monkeypatch, BREAKS[broken])
        assert CliRunner().invoke(cli.app, ["init", str(folder)]).exit_code == 1
        folder.mkdir(exist_ok=True)
    else:
        build.course_directory(folder, [LECTURE.path], seed=None)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", PATH)
    exchange.mkdir(mode=0o777)
    for app in (GenerateAssignmentApp, ReleaseAssignmentApp):
        with gradebook.without_alembics_command(), pytest.raises(SystemExit, match="1") if broken else nullcontext():
            start(app, NAME, f"--Exchange.root={exchange}", f"--course={build.COURSE_ID}")
    handed_out = [path.name for path in tmp_path.rglob("*.ipynb") if not path.is_relative_to(folder / "source")]
    assert handed_out == ([] if broken else [f"{NAME}.ipynb"] * 2)


def test_a_class_that_has_its_hidden_cases_is_not_prepared_again_from_a_broken_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "class"
    give_cases(folder)
    copied_course(tmp_path, monkeypatch, BREAKS["error"])
    ran = CliRunner().invoke(cli.app, ["init", str(folder)])
    assert ran.exit_code == 1 and f"{NAME} {EXERCISES[0].name}" in " ".join(ran.output.split()), ran.output
    assert not (folder / "source").exists()


def test_a_reference_that_differs_from_what_its_check_was_made_from_is_not_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied_course(
        tmp_path, monkeypatch, lambda text: text.replace("### END SOLUTION", "# as before\n    ### END SOLUTION", 1)
    )
    ran = CliRunner().invoke(cli.app, ["release", str(tmp_path / "x")])
    said = " ".join(ran.output.split())
    assert ran.exit_code == 1 and f"{NAME} {EXERCISES[0].name}" in said and "course notebooks" in said, said
    assert EXERCISES[1].name not in said

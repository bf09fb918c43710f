"""Submissions as they come: each broken one is named, with what to do, and none stops the others."""

import json
from pathlib import Path

import nbformat
import pytest
from typer.testing import CliRunner

from autograder import project
from autograder.authoring import build
from autograder.cli import app
from autograder.grading import source
from autograder.grading.submission import HandedIn, Submission, parse, read

LECTURE = source.read(source.lectures(project.SOLUTIONS)[0])
PROBLEMS = LECTURE.problems


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("course")
    build.course_directory(folder, [LECTURE.path])
    build.release(folder, LECTURE.name)
    return folder


@pytest.fixture
def notebook(course: Path) -> dict:
    return json.loads(project.notebook_path(course / "release", LECTURE.name).read_text())


def submission(path: Path) -> Submission:
    return parse(read(path), PROBLEMS)


def findings(notebook: object, folder: Path) -> str:
    path = folder / "x.ipynb"
    path.write_text(notebook if isinstance(notebook, str) else json.dumps(notebook))
    found = submission(path).findings
    assert all(str(f).startswith(f"{path}: ") and "\n  → " in str(f) for f in found)
    return "\n".join(map(str, found))


def cell(notebook: dict, grade_id: str) -> dict:
    return next(c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") == grade_id)


def test_a_fresh_notebook_has_every_stub_and_no_finding(notebook: dict, tmp_path: Path) -> None:
    assert findings(notebook, tmp_path) == ""
    answers = submission(tmp_path / "x.ipynb").answers(PROBLEMS)
    assert answers == {e.name: e.stub for e in LECTURE.exercises}


def test_missing_copied_and_foreign_cells_are_reported_by_name(notebook: dict, tmp_path: Path) -> None:
    name = LECTURE.exercises[0].name
    copied = cell(notebook, LECTURE.exercises[1].name)
    foreign = json.loads(json.dumps(copied))
    foreign["metadata"]["nbgrader"]["grade_id"] = "elsewhere"
    notebook["cells"] = [c for c in notebook["cells"] if c["id"] not in (name, f"test_{name}")] + [copied, foreign]
    found = findings(notebook, tmp_path)
    assert f"the cell of exercise {name} is missing" in found
    assert f"the test cell of {name} is missing" in found
    assert f"the cell {LECTURE.exercises[1].name} occurs 2 times" in found
    assert f"the cell elsewhere does not belong to {LECTURE.name}" in found
    assert set(submission(tmp_path / "x.ipynb").answers(PROBLEMS)) == {e.name for e in LECTURE.exercises[1:]}


def test_an_answer_that_was_retyped_in_another_cell_is_the_answer(notebook: dict, tmp_path: Path) -> None:
    first, second = LECTURE.exercises[:2]
    for text in (f"{first.name} = None", first.solution, f"print({first.name})"):
        notebook["cells"].append(dict(nbformat.v4.new_code_cell(text)))
    cell(notebook, second.name)["source"] = "# mine"
    notebook["cells"].append(dict(nbformat.v4.new_code_cell(second.solution)))
    findings(notebook, tmp_path)
    answers = submission(tmp_path / "x.ipynb").answers(PROBLEMS)
    assert answers[first.name] == first.solution
    assert answers[second.name] == f"# mine\n\n# Another cell defines it again:\n\n{second.solution}"


def test_a_file_that_is_no_notebook_is_reported(notebook: dict, tmp_path: Path) -> None:
    whole = json.dumps(notebook)
    assert "it is not JSON" in findings(whole[: len(whole) // 2], tmp_path)
    assert "it is empty" in findings("", tmp_path)
    for text in (
        "[]",
        "{}",
        "3",
        '{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": 7}',
        '{"nbformat": "x"}',
    ):
        assert "it is JSON but not a notebook" in findings(text, tmp_path), text
    (tmp_path / "b.ipynb").write_bytes(bytes(range(256)))
    assert "it is not text" in str(submission(tmp_path / "b.ipynb").findings[0])
    (tmp_path / "l.ipynb").symlink_to(tmp_path / "x.ipynb")
    assert "symbolic link" in str(submission(tmp_path / "l.ipynb").findings[0])
    assert "no such notebook" in str(submission(tmp_path / "gone.ipynb").findings[0])


def test_verify_names_every_broken_submission(course: Path, notebook: dict) -> None:
    runner = CliRunner()
    missing = runner.invoke(app, ["verify", str(course), LECTURE.name])
    assert missing.exit_code == 1 and "submitted/STUDENT/" in missing.output
    for student, text in {"ada": json.dumps(notebook), "bob": "{"}.items():
        path = project.notebook_path(course / "submitted" / student, LECTURE.name)
        path.parent.mkdir(parents=True)
        path.write_text(text)
    result = runner.invoke(app, ["verify", str(course), LECTURE.name])
    assert result.exit_code == 1
    [of_ada] = [line for line in result.output.splitlines() if "/ada/" in line]
    assert "bob" in result.output and "it has no answer at all" in of_ada
    assert "2 submissions: 2 to look at, 2 with unanswered exercises" in result.output


@pytest.mark.parametrize("place", ["its own cell", "a cell of the student's", "a cell that lost its mark"])
def test_verify_names_what_has_no_answer_wherever_the_others_are(
    place: str, course: Path, notebook: dict, tmp_path: Path
) -> None:
    first, *others = LECTURE.exercises
    for exercise in LECTURE.exercises:
        cell(notebook, exercise.name)["source"] = f"1 / 0\n{exercise.name}()"
    own = cell(notebook, first.name)
    if place == "a cell of the student's":
        added = {"cell_type": "code", "id": "mine", "metadata": {}, "outputs": [], "execution_count": None}
        notebook["cells"].insert(notebook["cells"].index(own), added | {"source": first.solution})
    else:
        own["source"] = first.solution
    if place == "a cell that lost its mark":
        own["metadata"] = {}
    path = project.notebook_path(tmp_path / "submitted" / "cy", LECTURE.name)
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(notebook))
    result = CliRunner().invoke(app, ["verify", str(tmp_path), LECTURE.name])
    assert f"/{path.name}: no answer to {', '.join(e.name for e in others)}" in result.output.replace("\n", "")
    assert result.exit_code == (1 if place == "a cell that lost its mark" else 0)
    assert "none of the answers is known to be right" in result.output


def test_what_is_found_in_a_submission_can_be_printed_anywhere() -> None:
    """The names of cells are the student's: they move no cursor, add no line and stop no terminal."""
    name = "\x1b[2J\r\n0 to look at\u202e\ud800"
    cell = {"cell_type": "code", "source": "", "metadata": {"nbgrader": {"grade_id": name}}}
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]}
    handed_in = HandedIn(Path("a\x1b.ipynb"), data=json.dumps(notebook).encode())
    said = list(map(str, parse(handed_in, PROBLEMS).findings))
    assert any("to look at" in text for text in said)
    for text in said:
        assert text.encode() and text.count("\n") == 1 and text.replace("\n", "").isprintable()

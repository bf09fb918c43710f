"""Submissions as they come: each broken one is named, with what to do, and none stops the others."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from autograder import project
from autograder.authoring import build
from autograder.cli import app
from autograder.grading import source
from autograder.grading.submission import read_submission

LECTURE = source.read(source.lectures(project.SOLUTIONS)[0])


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("course")
    build.course_directory(folder, [LECTURE.path])
    build.release(folder, LECTURE.name)
    return folder


@pytest.fixture
def notebook(course: Path) -> dict:
    return json.loads(project.notebook_path(course / "release", LECTURE.name).read_text())


def problems(notebook: object, folder: Path) -> str:
    path = folder / "x.ipynb"
    path.write_text(notebook if isinstance(notebook, str) else json.dumps(notebook))
    found = read_submission(path, LECTURE).findings
    assert all(str(f).startswith(f"{path}: ") and "\n  → " in str(f) for f in found)
    return "\n".join(map(str, found))


def cell(notebook: dict, grade_id: str) -> dict:
    return next(c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") == grade_id)


def test_a_fresh_notebook_has_all_answers(notebook: dict, tmp_path: Path) -> None:
    assert problems(notebook, tmp_path) == ""
    answers = read_submission(tmp_path / "x.ipynb", LECTURE).answers
    assert answers == {e.name: e.stub for e in LECTURE.exercises}


def test_missing_and_copied_and_foreign_cells(notebook: dict, tmp_path: Path) -> None:
    name = LECTURE.exercises[0].name
    copied = cell(notebook, LECTURE.exercises[1].name)
    foreign = json.loads(json.dumps(copied))
    foreign["metadata"]["nbgrader"]["grade_id"] = "elsewhere"
    notebook["cells"] = [c for c in notebook["cells"] if c["id"] not in (name, f"test_{name}")] + [copied, foreign]
    found = problems(notebook, tmp_path)
    assert f"the cell of exercise {name} is missing" in found
    assert f"the test cell of {name} is missing" in found
    assert f"the cell {LECTURE.exercises[1].name} is there 2 times" in found
    assert f"the cell elsewhere is not one of {LECTURE.name}" in found
    assert set(read_submission(tmp_path / "x.ipynb", LECTURE).answers) == {e.name for e in LECTURE.exercises[2:]}


def test_broken_files(notebook: dict, tmp_path: Path) -> None:
    whole = json.dumps(notebook)
    assert "it is not JSON" in problems(whole[: len(whole) // 2], tmp_path)
    assert "it is not JSON" in problems("", tmp_path)
    for text in (
        "[]",
        "{}",
        "3",
        '{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": 7}',
        '{"nbformat": "x"}',
    ):
        assert "it is JSON but not a notebook" in problems(text, tmp_path), text
    (tmp_path / "b.ipynb").write_bytes(bytes(range(256)))
    assert "it is not text" in str(read_submission(tmp_path / "b.ipynb", LECTURE).findings[0])
    (tmp_path / "l.ipynb").symlink_to(tmp_path / "x.ipynb")
    assert "symbolic link" in str(read_submission(tmp_path / "l.ipynb", LECTURE).findings[0])
    assert "no such notebook" in str(read_submission(tmp_path / "gone.ipynb", LECTURE).findings[0])


def test_verify_names_them_all(course: Path, notebook: dict) -> None:
    runner = CliRunner()
    missing = runner.invoke(app, ["verify", str(course), LECTURE.name])
    assert missing.exit_code == 1 and "submitted/STUDENT/" in missing.output
    for student, text in {"ada": json.dumps(notebook), "bob": "{"}.items():
        path = project.notebook_path(course / "submitted" / student, LECTURE.name)
        path.parent.mkdir(parents=True)
        path.write_text(text)
    result = runner.invoke(app, ["verify", str(course), LECTURE.name])
    assert result.exit_code == 1
    assert "bob" in result.output and "ada/" not in result.output
    assert "2 submissions, 1 of them want a look" in result.output

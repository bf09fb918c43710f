"""The page that `make lab` opens: what it says of each lecture, and what it does when one cannot be read."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from autograder import project
from course_utils import home

TITLE = "# 11 · Demo\n\n> **How many bytes?**\n>\n> **And who holds them?**\n\n"
EXERCISE = "### Exercise 11.1 · Twice `n` &nbsp; ★☆☆ &nbsp; 5 minutes"


def lecture(folder: Path, name: str = "11_demo", words: int = 0, top: str = TITLE) -> Path:
    """A notebook with two exercises and that many words of text more."""
    cells = [new_markdown_cell(top + "word " * words)]
    for exercise in ("double", "halve"):
        cells.append(new_markdown_cell(EXERCISE))
        marks = {"grade": False, "grade_id": exercise, "locked": False, "points": None, "solution": True}
        cells.append(new_code_cell("1", metadata={"nbgrader": marks}))
        marks = {"grade": True, "grade_id": f"test_{exercise}", "locked": True, "points": 1, "solution": False}
        cells.append(new_code_cell("1", metadata={"nbgrader": marks}))
    path = folder / name / f"{name}.ipynb"
    path.parent.mkdir()
    nbformat.write(new_notebook(cells=cells), path)
    return path


def rows(folder: Path) -> list[str]:
    return [line for line in home.page(folder).splitlines() if line.startswith("|")][2:]


def test_a_row_has_the_link_the_questions_the_time_and_what_is_done(tmp_path: Path) -> None:
    lecture(tmp_path)
    (tmp_path / "progress.json").write_text(json.dumps({"11_demo": {"double": True, "gone": True}}))
    assert rows(tmp_path) == [
        "| **[11 · Demo](11_demo/11_demo.ipynb)** | How many bytes?<br>And who holds them? | 10\u00a0min | ●○ |"
    ]


@pytest.mark.parametrize(
    ("words", "time"), [(0, "10 min"), (180 * 20, "30 min"), (180 * 50, "1 h"), (180 * 65, "1 h 15")]
)
def test_the_time_is_for_reading_and_solving_to_five_minutes(words: int, time: str, tmp_path: Path) -> None:
    lecture(tmp_path, words=words)
    assert "| " + time.replace(" ", "\u00a0") + " |" in rows(tmp_path)[0]


def test_optional_sections_and_exercises_have_their_own_time(tmp_path: Path) -> None:
    marks = {"grade": False, "grade_id": "f", "locked": False, "points": None, "solution": True}
    tests = marks | {"grade": True, "grade_id": "test_f", "points": 1, "solution": False}
    half_a_minute = "word " * 90
    cells = [
        new_markdown_cell(f"{TITLE}\n\n## 1 · All\n\n{half_a_minute}\n\n**Predict.** How many?"),
        new_code_cell("x\n" * 30),
        new_code_cell("x\n" * 900, metadata={"jupyter": {"source_hidden": True}}),
        new_markdown_cell("### Exercise 11.1 · One (optional) &nbsp; ★☆☆ &nbsp; 20 minutes\n\n" + half_a_minute),
        new_code_cell("x\n" * 900, metadata={"nbgrader": marks}),
        new_code_cell("x", metadata={"nbgrader": tests}),
        new_markdown_cell("<details>help</details>" + half_a_minute),
        new_markdown_cell("What all read goes on here. " + half_a_minute),
        new_markdown_cell("## 2 · More (optional)\n\n" + half_a_minute),
        new_code_cell("x\n" * 15),
        new_markdown_cell("### Exercise 11.2 · Two &nbsp; ★☆☆ &nbsp; 5 minutes\n\n" + half_a_minute),
        new_markdown_cell("## 3 · Conclusion\n\n" + half_a_minute),
    ]
    path = tmp_path / "11_demo.ipynb"
    nbformat.write(new_notebook(cells=cells), path)
    found = home.read_lecture(path)
    assert (found.minutes, found.optional) == (5, 30)


def test_lectures_stand_in_their_order_and_nothing_else_does(tmp_path: Path) -> None:
    for name in ("10_b", "02_a"):
        lecture(tmp_path, name)
    (tmp_path / "02_a" / "03_copy.ipynb").write_text("{}")
    (tmp_path / "notes").mkdir()
    assert [path.stem for path in home.lectures(tmp_path)] == ["02_a", "10_b"]
    assert [row.split("](")[1][:4] for row in rows(tmp_path)] == ["02_a", "10_b"]


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"cells": []}'])
def test_a_lecture_that_cannot_be_read_has_its_row_with_the_reason(damage: str, tmp_path: Path) -> None:
    lecture(tmp_path, "02_a").write_text(damage)
    lecture(tmp_path)
    first, second = rows(tmp_path)
    assert first.startswith("| 02_a | cannot be read: ") and first.endswith(" | | |") and "11 · Demo" in second


def test_a_notebook_without_a_title_is_no_lecture(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no title"):
        home.read_lecture(lecture(tmp_path, top="no heading"))


def test_damaged_progress_is_moved_aside_and_the_page_says_so(tmp_path: Path) -> None:
    lecture(tmp_path)
    (tmp_path / "progress.json").write_text("{")
    text = home.page(tmp_path)
    assert "○○" in text and "progress.damaged-1.json" in text
    assert (tmp_path / "progress.damaged-1.json").read_text() == "{"


def run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["home", str(folder)])
    return home.main()


def test_it_is_written_where_there_are_lectures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(tmp_path, monkeypatch) == 1 and not list(tmp_path.iterdir())
    lecture(tmp_path)
    assert run(tmp_path, monkeypatch) == 0
    assert (tmp_path / home.PAGE).read_text(encoding="utf-8") == home.page(tmp_path)


def test_where_it_cannot_be_written_it_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lecture(tmp_path)
    (tmp_path / home.PAGE).mkdir()
    assert run(tmp_path, monkeypatch) == 1
    assert "The lectures' home page could not be written: " in capsys.readouterr().err


def test_every_lecture_of_the_course_has_a_question_a_time_and_exercises() -> None:
    for path in home.lectures(project.NOTEBOOKS):
        found = home.read_lecture(path)
        assert found.title.startswith(path.name[:2]) and found.questions, found
        minutes, _ = home.times(json.loads(path.read_text(encoding="utf-8"))["cells"])
        assert 5 <= minutes <= 120, found  # before they're rounded

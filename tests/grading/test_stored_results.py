"""A stored result is believed only if it is what was written: whatever was changed in it is graded again, and said."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from classroom import LECTURE, NAME
from typer.testing import CliRunner

from autograder import cli
from autograder.grading.marks import Mark, Result, State
from autograder.records import grade, results
from autograder.records.folder import ClassFolder

RESULT = Result(
    "ada",
    NAME,
    State.NEEDS_REVIEW,
    "key",
    tuple(Mark(e.name, 0.0, e.points, "✗ got 3\n  expected 4 \ud800", "a mistake") for e in LECTURE.exercises),
    ("a note", "another — one"),
)
Edit = Callable[[dict[str, Any]], object]
EDITS: dict[str, Edit] = {
    "more points": lambda r: r["marks"][0].update(points=100),
    "points of NaN": lambda r: r["marks"][0].update(points=float("nan")),
    "points of infinity": lambda r: r["marks"][0].update(points=float("inf")),
    "no points": lambda r: r["marks"][0].update(points=None),
    "points in words": lambda r: r["marks"][0].update(points="two"),
    "points of True": lambda r: r["marks"][0].update(points=True),
    "another student": lambda r: r.update(student="bob"),
    "another lecture": lambda r: r.update(lecture_name="01_tensors"),
    "a mark less": lambda r: r["marks"].pop(),
    "a mark twice": lambda r: r["marks"].append(r["marks"][0]),
    "an unknown exercise": lambda r: r["marks"][0].update(exercise="unknown"),
    "another state": lambda r: r.update(state="graded"),
    "an unknown state": lambda r: r.update(state="excellent"),
    "another key": lambda r: r.update(key="another"),
    "no key": lambda r: r.pop("key"),
    "no digest": lambda r: r.pop("sha256"),
    "a digest that is no text": lambda r: r.update(sha256=[1]),
    "a field more": lambda r: r.update(bonus=1),
    "marks that are no list": lambda r: r.update(marks=3),
    "notes that are no list": lambda r: r.update(notes=None),
    "a mark that is no object": lambda r: r["marks"].insert(0, 7),
}


@pytest.fixture
def course(tmp_path: Path) -> ClassFolder:
    course = ClassFolder(tmp_path)
    course.submission("ada", NAME).parent.mkdir(parents=True)
    course.submission("ada", NAME).write_text('{"cells": [')  # graded without running anything
    return course


def test_what_was_written_is_read_and_the_same_result_gives_the_same_bytes(course: ClassFolder) -> None:
    results.write(course, RESULT)
    assert results.read(course, NAME, "ada") == RESULT
    before = course.result("ada", NAME).read_bytes()
    results.write(course, RESULT)
    assert course.result("ada", NAME).read_bytes() == before


def test_thousands_of_random_edits_are_damage_or_make_no_difference(course: ClassFolder) -> None:
    """Bytes flipped, cut, doubled and exchanged; what changes only the layout of the file may be read as before."""
    results.write(course, RESULT)
    path = course.result("ada", NAME)
    written, chance, damaged = path.read_bytes(), random.Random(0), 0
    for _ in range(5_000):
        text = bytearray(written)
        for _ in range(chance.choice((1, 1, 1, 2, 5))):
            at, until = sorted(chance.randrange(len(text) + 1) for _ in range(2))
            until = min(until, at + chance.choice((1, 1, 2, 10, len(text))))
            piece = chance.choice((b"", bytes([chance.randrange(256)]), b"9", b'"', bytes(text[at:until]) * 2))
            text[at:until] = piece
        path.write_bytes(text)
        try:
            assert results.read(course, NAME, "ada") == RESULT
        except results.ResultError as error:
            damaged += 1
            assert "\n  → " in str(error) and len(str(error)) < 1_000
    assert damaged > 4_000


def test_edited_results_are_graded_again_and_said(tmp_path: Path) -> None:
    """A student for each edit."""
    course = ClassFolder(tmp_path)
    students = {f"s{number:02}": edit for number, edit in enumerate(EDITS)}
    for student in students:
        course.submission(student, NAME).parent.mkdir(parents=True)
        course.submission(student, NAME).write_text('{"cells": [')  # graded without running anything
    grade.grade_class(course, NAME, workers=0, unsafe=True, database=None)
    written = {}
    for student, edit in students.items():
        path = course.result(student, NAME)
        written[student] = path.read_bytes()
        content = json.loads(written[student])
        EDITS[edit](content)
        path.write_text(json.dumps(content), encoding="utf-8")
        with pytest.raises(results.ResultError, match="damaged"):
            results.read(course, NAME, student)
    for command in ("feedback", "export"):  # which never show a point of them
        ran = CliRunner().invoke(cli.app, [command, str(course), NAME])
        count = f"{len(students)} students: {len(students)} queued"
        assert ran.exit_code == 0 and count in ran.output, ran.output
    summary = grade.grade_class(course, NAME, workers=0, unsafe=True, database=None)
    assert set(summary.graded) == set(students)
    for student, edit in students.items():
        assert course.result(student, NAME).read_bytes() == written[student], edit
        assert any(f"{student}.json is damaged" in remark for remark in summary.remarks), edit


def test_a_result_under_another_students_name_is_damage(course: ClassFolder) -> None:
    results.write(course, RESULT)
    course.result("ada", NAME).rename(course.result("bob", NAME))
    with pytest.raises(results.ResultError, match="of another student"):
        results.read(course, NAME, "bob")

"""The made-up class: the same for a seed, graded and shown by one command, and never put over anything else."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from html_scan import harmless
from typer.testing import CliRunner

from autograder import demo, project
from autograder.cli import app
from autograder.grading import source, submission
from autograder.records.folder import ClassFolder

LECTURE = project.SOLUTIONS / "01_tensors.py"


def test_the_class_is_the_same_for_a_seed_and_holds_no_solution(tmp_path: Path) -> None:
    made = []
    for folder, seed in (("a", 0), ("b", 0), ("c", 1)):
        lecture = demo.make_class(tmp_path / folder, LECTURE, 12, seed)
        paths = sorted((tmp_path / folder / "submitted").rglob("*.ipynb"))
        made.append([path.read_bytes() for path in paths])
    assert made[0] == made[1] != made[2] and len(made[0]) == 11  # one did not hand in
    course = ClassFolder(tmp_path / "a")
    handed_in = [course.read(student, lecture.name) for student in course.present(lecture.name)]
    assert len(handed_in) == 11
    assert sum(bool(submission.parse(each, lecture.problems).findings) for each in handed_in) == 1  # one is broken
    assert all("BEGIN HIDDEN" not in text.decode() and "BEGIN SOLUTION" not in text.decode() for text in made[0])


def test_only_a_folder_that_a_demo_made_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "grades.csv").write_text("precious")
    ran = CliRunner().invoke(app, ["demo", str(tmp_path)])
    assert ran.exit_code == 1 and (tmp_path / "grades.csv").read_text() == "precious"
    assert [path.name for path in tmp_path.iterdir()] == ["grades.csv"]
    demo.make_class(tmp_path / "new", LECTURE, 2)
    (tmp_path / "new" / "left").write_text("from an earlier demo")
    demo.make_class(tmp_path / "new", LECTURE, 2)
    assert not (tmp_path / "new" / "left").exists()


def test_an_attack_is_taken_whole_and_only_for_its_lecture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one.py").write_text("# tries this\n# earns: 0\n# %% tensor_bytes\nimport os\n\nos._exit(0)\n")
    (tmp_path / "two.py").write_text("# tries that\n# %% einsum_of_another_lecture\nx = 1\n")
    monkeypatch.setattr(demo, "HOSTILE", tmp_path)
    assert demo.attacks(source.read(LECTURE)) == [{"tensor_bytes": "import os\n\nos._exit(0)"}]


@pytest.mark.sandboxed
def test_a_small_semester_ends_as_planned(tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, ["demo", str(tmp_path / "semester"), "--semester", "--students", "8"])
    assert ran.exit_code == 0, ran.output
    assert "8 students, 5 lectures: 0 results differ from the plan" in ran.output
    course = tmp_path / "semester" / "class"
    assert (
        len(list((course / "reports").glob("*.html"))) == 5
        and len(list((course / "exports").glob("*.canvas.csv"))) == 5
    )
    (tmp_path / "grades.csv").write_text("precious")
    ran = CliRunner().invoke(app, ["demo", str(tmp_path), "--semester"])
    assert ran.exit_code == 1 and (tmp_path / "grades.csv").read_text() == "precious"


@pytest.mark.sandboxed
def test_the_command_grades_the_class_and_writes_every_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "demo"
    ran = CliRunner().invoke(app, ["demo", str(folder), "--students", "8"])
    assert ran.exit_code == 0, ran.output
    assert "8 students: 1 not submitted" in ran.output
    rows = list(csv.DictReader((folder / "exports" / "01_tensors.csv").read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 8 and sum(row["points"] == "" for row in rows) == 1
    assert len({row["points"] for row in rows}) > 3, "a class in which all have the same teaches nothing"
    assert [row["state"] for row in rows].count("needs review") >= 1
    harmless((folder / "reports" / "01_tensors.html").read_text(encoding="utf-8"))
    pages = list((folder / "feedback").glob("*/01_tensors/01_tensors.html"))
    assert len(pages) == 8
    for page in pages:
        harmless(page.read_text(encoding="utf-8"))

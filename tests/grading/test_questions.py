"""nbgrader's manually graded cells in a lecture: answers in text and code, and tasks, from source to export."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path
from typing import Any

import nbformat
import pytest
from classroom import LECTURE as PLAIN
from classroom import NAME, give_cases
from nbgrader.api import Gradebook
from nbgrader.utils import compute_checksum
from typer.testing import CliRunner

from autograder import cli, project
from autograder.authoring import build
from autograder.grading import source
from autograder.grading.marks import State
from autograder.grading.source import SourceError
from autograder.grading.submission import read
from autograder.records import decisions
from autograder.records.folder import ClassFolder

QUESTIONS = """
# %% [markdown]
# ### Exercise 0.9 · Why?

# %% [markdown] nbgrader={"grade": true, "solution": true, "grade_id": "why", "points": 3}
# Because memory is far away.

# %% nbgrader={"grade": true, "solution": true, "grade_id": "draw", "points": 2}
print("a drawing")

# %% [markdown] nbgrader={"task": true, "grade_id": "explore", "points": 1.5}
# ### Exercise 0.10 · Explore
# Try something, and write what you saw.
#
# ### BEGIN MARK SCHEME
# One point for trying.
# ### END MARK SCHEME
"""
TEXT = PLAIN.path.read_text(encoding="utf-8") + QUESTIONS
LECTURE = source.parse(PLAIN.path, TEXT)
TESTED = PLAIN.points
EVIL = "<script>document.title = 1</script>\n\n<b>$x$</b>"


def test_a_source_has_questions_beside_its_exercises() -> None:
    assert [(each.name, each.points, each.task) for each in LECTURE.questions] == [
        ("why", 3.0, False), ("draw", 2.0, False), ("explore", 1.5, True)
    ]  # fmt: skip
    assert LECTURE.points == TESTED + 6.5 == sum(part.points for part in LECTURE.parts)
    assert [part.name for part in LECTURE.parts][-3:] == ["why", "draw", "explore"]
    assert LECTURE.exercises == PLAIN.exercises
    assert LECTURE.problems.digest != PLAIN.problems.digest
    texts = [cell.text for cell in LECTURE.problems.cells]
    assert not any("a drawing" in text for text in texts)


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ('[markdown] nbgrader={"grade": true, "solution": true, "grade_id": "why"}', "has no points"),
        ('[markdown] nbgrader={"grade": true, "solution": true, "grade_id": "why", "points": "3"}', "has no points"),
        ('[markdown] nbgrader={"grade": true, "solution": true, "points": 3}', "has no points or no name"),
        ('[markdown] nbgrader={"grade": true, "grade_id": "why", "points": 3}', "text cannot be a test"),
        ('nbgrader={"task": true, "grade_id": "why", "points": 3}', "a task must be a text cell"),
        (
            '[markdown] nbgrader={"task": true, "solution": true, "grade_id": "w", "points": 3}',
            "a task must be a text cell",
        ),
    ],
)
def test_a_question_that_nbgrader_could_not_use_is_an_error(cell: str, says: str) -> None:
    with pytest.raises(SourceError, match=says):
        source.parse(PLAIN.path, f"{PLAIN.path.read_text(encoding='utf-8')}\n# %% {cell}\n# x = 1\n")


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A class of the lecture with questions, whose source is in a folder of its own."""
    solutions = tmp_path / "solutions"
    shutil.copytree(project.SOLUTIONS / "exercises" / NAME, solutions / "exercises" / NAME)
    (solutions / f"{NAME}.py").write_text(TEXT, encoding="utf-8")
    for module in (project, source, build):
        if hasattr(module, "SOLUTIONS"):
            monkeypatch.setattr(module, "SOLUTIONS", solutions)
    root = tmp_path / "class"
    give_cases(root)
    return root


def released(course: Path) -> Any:
    build.course_directory(course, [project.SOLUTIONS / f"{NAME}.py"], seed=None)
    return nbformat.read(build.release(course, NAME), as_version=4)


def run(command: str, course: Path, *arguments: str) -> str:
    ran = CliRunner().invoke(cli.app, [command, str(course), NAME, *arguments])
    assert ran.exit_code == 0, ran.output
    return " ".join(ran.output.split())


def hand_in(course: Path, student: str, notebook: Any) -> None:
    path = ClassFolder(course).submission(student, NAME)
    path.parent.mkdir(parents=True)
    nbformat.write(notebook, path)


def test_from_the_source_to_the_exports(course: Path) -> None:
    blank = released(course)
    cells = {cell.id: cell for cell in blank.cells}
    assert cells["why"].source == "YOUR ANSWER HERE" and "NotImplementedError" in cells["draw"].source
    assert "BEGIN MARK SCHEME" not in cells["explore"].source and "a drawing" not in str(blank)
    hand_in(course, "blank", blank)

    answered = nbformat.from_dict(json.loads(json.dumps(blank)))
    solutions = {cell.id: cell.source for cell in LECTURE.notebook.cells}
    for cell in answered.cells:
        if cell.id in {exercise.name for exercise in LECTURE.exercises}:
            cell.source = solutions[cell.id]
        elif cell.id == "why":
            cell.source = EVIL
        elif cell.id == "draw":
            cell.source = "x = 1 / 0"
    answered.cells.append(nbformat.v4.new_markdown_cell("I tried <i>it</i>."))
    answered.cells.append(nbformat.v4.new_code_cell("tried = 17"))
    hand_in(course, "ada", answered)
    lost = nbformat.from_dict(json.loads(json.dumps(answered)))
    lost.cells = [cell for cell in lost.cells if cell.id not in ("why", "draw", "explore")]
    hand_in(course, "lost", lost)
    (course / "submitted" / "torn" / NAME).mkdir(parents=True)
    (course / "submitted" / "torn" / NAME / f"{NAME}.ipynb").write_text("{")

    said = run("grade", course, "--unsafe", "--workers", "0")
    assert "why has no tests: a person has yet to give points" in said
    folder = ClassFolder(course)
    stands = decisions.table(folder, NAME, ["ada", "blank", "lost", "torn"])
    waits = {name: [mark.exercise for mark in one.marks if mark.open] for name, one in stands.items()}
    # Nobody has to look at what is as it was handed out, but at every task: its answer may be anywhere.
    assert waits == {"ada": ["why", "draw", "explore"], "blank": ["explore"], "lost": waits["ada"], "torn": []}
    assert {one.state for one in stands.values()} == {State.NEEDS_REVIEW}
    assert stands["ada"].points == TESTED and stands["torn"].points == 0
    assert any("the cell of question why is missing" in note for note in stands["lost"].notes)
    run("decide", course, "ada", "--reviewed")  # which gives no points
    assert decisions.table(folder, NAME, ["ada"])["ada"].state is State.NEEDS_REVIEW

    shown = nbformat.read(folder.autograded("ada", NAME), as_version=4)
    nbformat.validate(shown)
    named = {cell.id: cell for cell in shown.cells}
    assert named["why"].source == "\n".join(f"    {line}" for line in EVIL.splitlines())
    assert named["draw"].source == "x = 1 / 0" and shown.cells[-2].source == "    I tried <i>it</i>."
    for name in ("why", "draw", "explore"):
        assert named[name].metadata.nbgrader.checksum == compute_checksum(named[name])

    said = run("show", course, "--student", "ada", "--exercise", "explore")
    assert "Try something" in said and "I tried <i>it</i>. tried = 17" in said

    # A person gives points, by command and in Formgrader.
    run("decide", course, "ada", "why", "--points", "2.5")
    with Gradebook(folder.gradebook_url) as book:
        for name, points in (("draw", 2), ("explore", 1)):
            grade = book.find_grade(name, NAME, NAME, "ada")
            assert grade.needs_manual_grade and grade.auto_score is None
            grade.manual_score, grade.needs_manual_grade = points, False
        book.find_comment("explore", NAME, NAME, "ada").manual_comment = "more, please"
        book.db.commit()
    run("grade", course, "--unsafe", "--workers", "0")
    ada = decisions.table(folder, NAME, ["ada"])["ada"]
    assert (ada.state, ada.points) == (State.GRADED, TESTED + 5.5)
    with Gradebook(folder.gradebook_url) as book:
        handed_in = book.find_submission(NAME, "ada")
        assert (handed_in.score, handed_in.max_score, handed_in.needs_manual_grade) == (TESTED + 5.5, LECTURE.points, 0)
        assert book.find_submission(NAME, "blank").needs_manual_grade
    for command in ("feedback", "report", "export"):
        run(command, course)
    page = folder.feedback("ada", NAME).read_text(encoding="utf-8")
    assert "I tried &lt;i&gt;it&lt;/i&gt;." in page and "the tests gave" not in run("show", course, "--student", "ada")
    assert f"{TESTED + 5.5:g} of {LECTURE.points:g} points" in page and "more, please" in page
    assert "&lt;script&gt;document" in page and "<script>" not in page and "Exercise 0.9 · Why?" in page
    assert "A person will give these points." in folder.feedback("lost", NAME).read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO((folder.exports / f"{NAME}.questions.csv").read_text())))
    given = {(row["student"], row["exercise"]): row["points"] for row in rows}
    assert [given["ada", name] for name in ("why", "draw", "explore")] == ["2.5", "2", "1"]
    assert [given["blank", name] for name in ("why", "draw", "explore")] == ["0", "0", ""]
    students = json.loads((folder.exports / f"{NAME}.json").read_text())["students"]
    exported = {(one["student"], m["exercise"]): m["points"] for one in students for m in one["exercises"]}
    assert [exported["ada", name] for name in ("why", "draw", "explore")] == [2.5, 2, 1]
    assert [exported["blank", name] for name in ("why", "draw", "explore")] == [0, 0, None]


def test_a_tasks_answer_ends_where_the_lecture_goes_on() -> None:
    from autograder.grading.exercises import Cell
    from autograder.grading.submission import Submission

    lecture = source.parse(PLAIN.path, TEXT + "\n# %% [markdown]\n# What comes next.\n")
    cells = [Cell("# Do it.", "explore", prose=True), Cell("Done.", prose=True), Cell("What comes next.\n", prose=True)]
    cells.append(Cell("A note on what comes next.", prose=True))
    read = Submission(PLAIN.path, (), (), tuple(cells))
    assert read.answers(lecture.problems) == {"explore": "# Do it.\n\nDone."}


def test_what_is_read_of_a_submission_without_questions_is_its_code(tmp_path: Path) -> None:
    from autograder.grading.submission import parse

    path = tmp_path / "x.ipynb"
    nbformat.write(LECTURE.notebook, path)
    assert all(not cell.prose for cell in parse(read(path), PLAIN.problems).everything)
    assert any(cell.prose for cell in parse(read(path), LECTURE.problems).everything)

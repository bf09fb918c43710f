"""nbgrader's Formgrader as `course formgrader` starts it: the same points as the result files, in a real browser."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import WAIT, Lab
from playwright.sync_api import Page
from typer.testing import CliRunner

from autograder import demo, project
from autograder.authoring import checks
from autograder.cli import app
from autograder.grading import source
from autograder.grading.marks import Result, State
from autograder.records import decisions, results
from autograder.records.folder import ClassFolder

NAME = "00_napkin_math"
LECTURE = source.read(project.SOLUTIONS / f"{NAME}.py")
FIRST, SECOND = LECTURE.exercises[:2]
WRONG = next(program for program in checks.programs(NAME, FIRST) if program.kind != "right")

pytestmark = pytest.mark.xdist_group("formgrader")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Result]]:
    """A class in a folder of its own, made and graded with the commands that an instructor types."""
    course = tmp_path_factory.mktemp("class")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "lectures", lambda _: [LECTURE.path])  # drawing the cases of all takes a minute
        assert CliRunner().invoke(app, ["init", str(course)]).exit_code == 0
    right = {exercise.name: exercise.solution for exercise in LECTURE.exercises}
    handed_in = {
        "ada": right,
        "blank": {},
        "wrong": right | {FIRST.name: WRONG.code},
        "markup": right | {SECOND.name: "x = '<script>document.title = 1</script>'"},
    }
    for student, answers in handed_in.items():
        path = project.notebook_path(course / "submitted" / student, NAME)
        path.parent.mkdir(parents=True)
        demo.hand_in(path, LECTURE, answers)
    (course / "roster.csv").write_text("id,first_name,last_name\nada,Ada,Example\nblank,,\n", encoding="utf-8")
    broken = project.notebook_path(course / "submitted" / "broken", NAME)
    broken.parent.mkdir(parents=True)
    broken.write_text("{")
    graded = CliRunner().invoke(app, ["grade", str(course), NAME, "--unsafe", "--workers", "0"])
    assert graded.exit_code == 0, graded.output
    return course, results.table(ClassFolder(course), NAME, [*handed_in, "broken"])


@pytest.fixture(scope="module")
def server(found: tuple[Path, dict[str, Result]], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    command = [sys.executable, "-m", "autograder.cli", "formgrader", str(found[0])]
    server = Lab(found[0], tmp_path_factory.mktemp("home"), command)
    yield server
    server.stop()


SHOWN = {"ada": "Example, Ada"}  # the others' names are not known: they are shown by what their folders are called


@pytest.fixture
def page(page: Page, server: Lab) -> Page:
    page.goto(f"{server.url}formgrader?token={server.token}")
    return page


def rows(page: Page, student: str) -> list[list[str]]:
    """The cells of the table's rows in which a student's name stands, once the table is there."""
    page.locator("tbody").get_by_text(student, exact=True).first.wait_for(timeout=WAIT)
    found = [row.locator("td").all_inner_texts() for row in page.locator("tbody tr").all()]
    return [[text.strip() for text in row] for row in found if student in (text.strip() for text in row)]


def show_names(server: Lab, page: Page) -> None:
    """Open the table of submissions, which hides who they are of until it is told otherwise."""
    page.goto(f"{server.url}formgrader/gradebook/{NAME}/{NAME}")
    page.get_by_text("Submission #1", exact=True).wait_for(timeout=WAIT)
    page.get_by_text("Show All Names").click()


def test_its_tables_show_the_points_of_the_result_files(
    found: tuple[Path, dict[str, Result]], server: Lab, page: Page
) -> None:
    worth = sum(exercise.points for exercise in LECTURE.exercises)
    points = {student: f"{result.points:g} / {worth:g}" for student, result in found[1].items()}
    assert len(set(points.values())) == 4  # all, none (twice), and two in between
    page.get_by_role("link", name=NAME).first.wait_for(timeout=WAIT)  # the page that the command opens
    page.goto(f"{server.url}formgrader/manage_submissions/{NAME}")
    for student, result in found[1].items():
        [row] = rows(page, SHOWN.get(student, student))
        status = "needs manual grading" if result.state is State.NEEDS_REVIEW else "graded"
        assert points[student] in row and status in row, row
    assert page.locator("tbody tr").count() == len(points)
    show_names(server, page)
    for student in points:
        [row] = rows(page, SHOWN.get(student, student))
        assert row[2:4] == [points[student]] * 2, row


def test_a_submissions_page_shows_code_message_and_points(
    found: tuple[Path, dict[str, Result]], server: Lab, page: Page
) -> None:
    for student in ("wrong", "markup"):
        show_names(server, page)
        page.get_by_role("link", name=student, exact=True).click()
        for mark in found[1][student].marks:
            score = page.locator(f"input.score[id='test_{mark.exercise}']")
            score.and_(page.locator(f"[placeholder='{mark.points:g}']")).wait_for(timeout=WAIT)
        text = page.locator("body").inner_text()
        if student == "wrong":
            assert WRONG.note in text and "expected" in text
            assert WRONG.code.strip().splitlines()[-1].strip() in text
        else:
            assert "<script>document.title = 1</script>" in text and page.title() != "1"


def test_jupyterlabs_menu_has_it(server: Lab, page: Page) -> None:
    page.goto(f"{server.url}lab?reset&token={server.token}")
    menu = page.locator(".lm-MenuBar-itemLabel").get_by_text("Nbgrader")
    menu.wait_for(timeout=WAIT)
    menu.click()
    page.locator(".lm-Menu-itemLabel").get_by_text("Formgrader", exact=True).wait_for()


def test_what_is_given_there_is_kept_as_decisions(
    found: tuple[Path, dict[str, Result]], server: Lab, page: Page
) -> None:
    show_names(server, page)
    page.get_by_role("link", name="broken", exact=True).click()  # it needs a review
    for exercise in LECTURE.exercises:
        score = page.locator(f"input.score[id='test_{exercise.name}'].needs_manual_grade")
        score.wait_for(timeout=WAIT)
        score.fill("0.5")
        with page.expect_response(lambda answer: "/api/grade/" in answer.url and answer.request.method == "PUT"):
            score.press("Tab")
    comment = page.locator(f"textarea[id='{FIRST.name}-comment']")
    comment.fill("Ask me how to save it.")
    with page.expect_response(lambda answer: "/api/comment/" in answer.url and answer.request.method == "PUT"):
        comment.press("Tab")
    course = ClassFolder(found[0])
    (course.root / "gradebook.db").unlink()  # before any command could take something over
    exported = CliRunner().invoke(app, ["export", str(course), NAME])
    assert exported.exit_code == 0, exported.output
    broken = decisions.table(course, NAME, ["broken"])["broken"]
    assert (broken.state, broken.points) == (State.GRADED, 0.5 * len(LECTURE.exercises))
    assert broken.marks[0].comment == "Ask me how to save it."
    with (course.exports / f"{NAME}.csv").open(encoding="utf-8", newline="") as lines:
        exported_row = {row["student"]: row for row in csv.DictReader(lines)}["broken"]
    assert (exported_row["state"], float(exported_row["points"])) == ("graded", broken.points)

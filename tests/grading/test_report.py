"""The class report: its numbers add up to the roster, and it is as harmless as a student's page."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from pathlib import Path

import pytest
from html_scan import NASTY, harmless
from typer.testing import CliRunner

from autograder import project
from autograder.cli import app
from autograder.grading import source
from autograder.grading.marks import Mark, Result, State
from autograder.grading.text import notes
from autograder.records import report, results
from autograder.records.folder import ClassFolder


@pytest.fixture(scope="module")
def lecture() -> source.Lecture:
    whole = source.read(project.SOLUTIONS / "01_tensors.py")
    return dataclasses.replace(whole, exercises=whole.exercises[:6])  # as many as a_class has students with points


def a_class(lecture: source.Lecture) -> dict[str, Result]:
    """Eleven students in all five states: student n of the six with points passes the first n exercises."""
    found = {}
    for number in range(6):
        given = tuple(
            Mark(e.name, e.points if place < number else 0.0, e.points,
                 "" if place < number else "✗ no", None if place < number else f"mistake in {e.name}")
            for place, e in enumerate(lecture.exercises)
        )  # fmt: skip
        state = State.NEEDS_REVIEW if number == 0 else State.GRADED
        notes = ("it hung",) if number == 0 else ()
        found[f"s{number}"] = Result(f"s{number}", lecture.name, state, "", given, notes)
    for name, state, notes in (
        ("q1", State.QUEUED, ()), ("f1", State.FAILED_HERE, ("the disk was full",)),
        ("n1", State.NOT_SUBMITTED, ()), ("n2", State.NOT_SUBMITTED, ()), ("n3", State.NOT_SUBMITTED, ()),
    ):  # fmt: skip
        found[name] = Result(name, lecture.name, state, "", (), notes)
    return dict(sorted(found.items()))


def test_the_numbers_add_up_to_the_roster(lecture: source.Lecture) -> None:
    found = a_class(lecture)
    html = report.page(lecture, found)
    page = harmless(html)
    sentence = page.text.split("students:")[1].split(".")[0]
    said = {name: int(count) for count, name in re.findall(r"(\d+) ([a-z ]+)", sentence)}
    want = Counter(str(result.state) for result in found.values())
    assert said == want and sum(said.values()) == len(found) == 11
    rows = re.findall(
        r'<th scope="row" class="name">(\w+)</th>\s*<td>([a-z ]+)</td><td class="number">([\d.]*)</td>', html
    )
    eye, rows = rows[: -len(found)], rows[-len(found) :]
    assert [(name, state) for name, state, _ in rows] == [(n, str(r.state)) for n, r in found.items()]
    assert {name for name, _, _ in eye} == {"s0", "f1"}
    assert "it hung" in page.text and "the disk was full" in page.text
    for name, _, points in rows:
        assert points == ("" if found[name].points is None else f"{found[name].points:g}")


def test_the_pictures_say_what_the_class_did(lecture: source.Lecture) -> None:
    found = a_class(lecture)
    html = report.page(lecture, found)
    alts = re.findall(r'<svg[^>]*aria-label="([^"]+)"', html)
    assert len(alts) == 4 and html.index("<svg") < html.index("<table")
    states, scores, passed, mistakes = alts
    assert "6 of 11 have points; 2 to look at" in states and "3 not submitted" in states
    worth = [e.points for e in lecture.exercises]
    totals = sorted(sum(worth[:n]) for n in range(6))
    assert f"{(totals[2] + totals[3]) / 2:g} of {sum(worth):g} points" in scores
    assert f"from {totals[0]:g} to {totals[-1]:g}, mean {sum(totals) / 6:.1f}" in scores
    # Exercise k is passed by the students 6 - 1 - k … of six: 5, 4, 3, 2, 1, 0.
    assert re.findall(r": (\d+)%", passed) == [f"{100 * n / 6:.0f}" for n in (5, 4, 3, 2, 1, 0)]
    assert "passed by 0%" in passed and "1.6" in passed.split(",")[0]
    assert "recognized mistake: 6 of 6" in mistakes and f"mistake in {lecture.exercises[-1].name}: 6" in mistakes
    assert f"mistake in {lecture.exercises[0].name}: 1" in mistakes
    table = html[html.index("All 6, with their exercises") :]
    assert re.findall(r'<td class="number">(\d)</td><td class="number">(\d+)%</td>', table)[:6] == [
        (f"{n}", f"{100 * n / 6:.0f}") for n in (6, 5, 4, 3, 2, 1)
    ]


def test_the_time_that_grading_took_is_drawn_and_the_slowest_named(lecture: source.Lecture) -> None:
    found = a_class(lecture)
    took = {"s0": 30.4, "s1": 0.2, "s2": 0.31, "s3": 0.2, "s4": 11.0, "f1": 99.0, "gone": 99.0}  # s5 was not noted
    html = report.page(lecture, found, times=took)
    time = re.findall(r'<svg[^>]*aria-label="([^"]+)"', html)[-1]
    assert "Half of the submissions took 0.31 s or less" in time
    assert "In all 42 s; the slowest is s0 with 30 s; " in time and "up to 30 s, the slowest: s4: 1, " in time
    assert "up to 100 s, the slowest: s0: 1" in time
    assert re.findall(r"up to ([\d.]+ s)(?:, the slowest: \w+)?: (\d)", time) == [
        ("0.3 s", "2"), ("1 s", "1"), ("3 s", "0"), ("10 s", "0"), ("30 s", "1"), ("100 s", "1"),
    ]  # fmt: skip
    everybody = html[html.index("<h2>Everybody") :]
    shown = re.findall(
        r'class="name">(\w+)</th>\s*<td>[^<]*</td><td[^>]*>[^<]*</td>\s*<td[^>]*>([^<]*)</td>', everybody
    )
    assert dict(shown) == {name: "" for name in found} | {
        "s0": "30 s", "s1": "0.2 s", "s2": "0.31 s", "s3": "0.2 s", "s4": "11 s",
    }  # fmt: skip
    harmless(html)
    assert "submissions took" not in report.page(lecture, found)


def test_times_are_the_latest_and_a_line_cut_off_costs_only_itself(lecture: source.Lecture, tmp_path: Path) -> None:
    folder = ClassFolder(tmp_path)
    assert results.times(folder, lecture.name) == {}
    results.note_time(folder, lecture.name, "nobody", 1.0)  # there is no folder yet: not noted, and no error
    results.write(folder, Result("ada", lecture.name, State.GRADED, ""))
    for student, seconds in (("ada", 9.0), ("bob\ud800", 2.0), ("ada", 1.23456)):
        results.note_time(folder, lecture.name, student, seconds)
    with (tmp_path / "results" / lecture.name / ".times.jsonl").open("a") as file:
        file.write('[1]\n{"student": "cut", "sec')
    assert results.times(folder, lecture.name) == {"ada": 1.235, "bob\ud800": 2.0}


@pytest.mark.parametrize("nasty", NASTY)
def test_everything_from_a_result_is_plain_text(lecture: source.Lecture, nasty: str) -> None:
    given = tuple(Mark(e.name, 0.0, e.points, nasty, nasty) for e in lecture.exercises)
    found = {nasty: Result(nasty, lecture.name, State.NEEDS_REVIEW, "", given, notes([nasty, "\x1b\u202e\ud800"]))}
    page = harmless(report.page(lecture, found, times={nasty: 1.0}))
    assert page.text.count(nasty) >= 4 and "\\x1b\\u202e\\ud800" in page.text


def test_a_picture_is_as_wide_as_it_is_whatever_a_name_is_made_of() -> None:
    """Twice as wide as others are letters of some scripts; three such names stand in one label."""
    for text in ("字" * 200, "e\u0301" * 200, "字 " * 100):
        rows = report._wrapped(text)
        assert all(sum(2 for _ in row if not _.isascii()) <= 44 for row in rows) and len(rows) > 1


def test_a_report_on_an_empty_class_and_on_one_where_nobody_is_graded(lecture: source.Lecture) -> None:
    assert "There are no students yet" in harmless(report.page(lecture, {})).text
    waiting = {name: r for name, r in a_class(lecture).items() if r.points is None}
    page = harmless(report.page(lecture, waiting))
    assert "Nobody is graded yet" in page.text and "5 students: 3 not submitted, 1 queued, 1 failed here" in page.text
    assert "Hardest" not in page.text and "%" not in page.text


@pytest.mark.parametrize("points", [0.0, 0.5, 2.0])
def test_a_report_on_one_student_with_fractions_of_points(lecture: source.Lecture, points: float) -> None:
    given = tuple(Mark(e.name, points * e.points / 2, e.points) for e in lecture.exercises)
    html = report.page(lecture, {"ada": Result("ada", lecture.name, State.GRADED, "", given)})
    assert "1 student: 1 graded" in harmless(html).text


def test_the_command_counts_everybody_and_is_safe_to_repeat(lecture: source.Lecture, tmp_path: Path) -> None:
    found = a_class(lecture)
    for result in found.values():
        if result.state not in (State.QUEUED, State.NOT_SUBMITTED):
            results.write(ClassFolder(tmp_path), result)
    queued = project.notebook_path(tmp_path / "submitted" / "q1", lecture.name)
    queued.parent.mkdir(parents=True)
    queued.write_text("{}", encoding="utf-8")
    (tmp_path / "roster.csv").write_text("id\nn1\nn2\nn3\ns1\n", encoding="utf-8")
    page = ClassFolder(tmp_path).feedback("s1", lecture.name)
    page.parent.mkdir(parents=True)
    page.write_text("")
    before = b""
    for _ in range(2):
        ran = CliRunner().invoke(app, ["report", str(tmp_path), lecture.name])
        assert ran.exit_code == 0, ran.output
        assert "11 students: 3 not submitted, 1 queued, 5 graded, 1 needs review, 1 failed here" in ran.output
        html = (tmp_path / "reports" / "01_tensors.html").read_bytes()
        assert before in (b"", html)
        before = html
    links = harmless(html.decode()).links
    assert [link for link in links if not link.startswith("#fig-")] == ["../feedback/s1/01_tensors/01_tensors.html"]


@pytest.mark.parametrize("handed_in", [False, True])
def test_a_damaged_result_counts_for_nothing_and_is_pointed_out(
    lecture: source.Lecture, tmp_path: Path, handed_in: bool
) -> None:
    folder = ClassFolder(tmp_path)
    paths = [folder.result("ada", lecture.name)] + ([folder.submission("ada", lecture.name)] if handed_in else [])
    for path in paths:
        path.parent.mkdir(parents=True)
        path.write_text("{", encoding="utf-8")
    found = results.table(folder, lecture.name, ["ada"])
    text = harmless(report.page(lecture, found)).text
    assert f"1 student: 1 {'queued' if handed_in else 'not submitted'}" in text and "is damaged" in text

"""What a worker makes of one task: time for all of it, and notes that a person can read."""

import dataclasses
import itertools
import json
import subprocess
import sys
import time
import unicodedata

import pytest
from classroom import LECTURE

from autograder.grading import judge, text, worker
from autograder.grading.key import key
from autograder.grading.text import NOTES_LIMIT
from autograder.grading.worker import Failed, Graded, Task
from autograder.inside.limits import Limits

LIMITS = Limits(seconds_in_all=0.2)


@pytest.fixture(autouse=True)
def no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge is replaced in all of these."""
    monkeypatch.setattr(worker, "_box", lambda *_: None)


def task(*names: str, limits: Limits = LIMITS) -> Task:
    """A notebook whose cells have these names, to be graded without a sandbox."""
    cells = [
        {"cell_type": "code", "source": "", "metadata": {"nbgrader": {"grade_id": name, "solution": True}}}
        for name in names or ["tensor_bytes"]
    ]
    submission = json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}).encode()
    return Task("ada", LECTURE.problems, submission, key(submission, LECTURE.problems), limits, unsafe=True)


def test_a_judge_that_goes_on_for_ever_is_a_time_out_also_where_no_pool_could_kill_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def judges_for_ever(*_: object) -> None:
        for _each in itertools.count():
            pass

    monkeypatch.setattr(worker, "_GRACE", 0.2)
    monkeypatch.setattr(judge, "grade", judges_for_ever)
    found = worker.grade_one(task())
    assert isinstance(found, Graded) and sum(mark.points for mark in found.marks) == 0
    assert "exceeded its total time limit" in found.notes[0]
    monkeypatch.setattr(judge, "grade", lambda *_: ([], []))
    assert isinstance(worker.grade_one(task()), Graded), "the next one is graded"


def test_a_task_of_another_version_of_the_course_is_refused_and_one_of_the_same_is_graded_whatever_its_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(judge, "grade", lambda *_: ([], []))
    assert isinstance(worker.grade_one(dataclasses.replace(task(), key="anything")), Graded)
    refused = worker.grade_one(dataclasses.replace(task(), grader=b"another"))
    assert isinstance(refused, Failed) and "another version of the course" in refused.reason
    monkeypatch.setattr(worker, "grader", lambda: b"another")  # the same on the worker's side
    assert isinstance(worker.grade_one(task()), Failed)


@pytest.mark.slow
def test_a_watchdog_that_comes_too_late_ends_nothing() -> None:
    ended = 0
    for number in range(2_000):
        try:
            with worker._watchdog(number % 20 * 1e-5):
                time.sleep(1e-4)
        except worker._Overdue:
            ended += 1
        assert sum(range(100)) == 4950  # a few instructions, for one that is still on its way
    assert 0 < ended < 2_000


@pytest.mark.slow
def test_of_very_many_notes_the_first_are_told_and_the_others_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "grade", lambda *_: ([], ["the last"]))
    found = worker.grade_one(task(*map(str, range(100_000))))
    assert isinstance(found, Graded)
    assert len(found.notes) == NOTES_LIMIT + 1 and found.notes[-1].startswith("and ")
    assert sum(map(len, found.notes)) < 10_000


def test_a_process_with_a_watchdog_can_still_be_profiled() -> None:
    """With an exception "on its way" for ever, CPython 3.11 hangs at the next profiled function."""
    program = """
import sys
import unicodedata
from autograder.grading import worker
for seconds in (60, 0, 1e-5):
    try:
        with worker._watchdog(seconds):
            pass
    except worker._Overdue:
        pass
sys.setprofile(lambda *_: None)
(lambda: None)()
sys.setprofile(None)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_note_that_quotes_line_ends_stays_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    forged = "double: here it ended with OSError: x\ntensor_bytes: checked by hand\r\n\u2028• zed"
    monkeypatch.setattr(judge, "grade", lambda *_: ([], [forged]))
    found = worker.grade_one(task())
    assert isinstance(found, Graded)
    assert any(r"x\ntensor_bytes: checked by hand\r\n\u2028• zed" in note for note in found.notes)
    assert all(note.isprintable() for note in found.notes)


def test_blanks_of_all_kinds_that_could_fill_a_row_become_one_space() -> None:
    blanks = [c for c in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(c) == "Zs"]
    blanks += ["\u115f", "\u1160", "\u2800", "\u3164", "\uffa0", " \ufe0f", "\xa0\u200d", "\u3000\u034f", " \U000e0100"]
    assert len(blanks) > 20
    for blank in [*blanks, "".join(blanks)]:
        assert text.notes([f"OSError:{blank * 90}• ada, failed here:"]) == ("OSError: • ada, failed here:",), ascii(
            blank
        )
    kept = "a b\xa0c\u3000d علی\u200cرضا 👩\u200d🔬 ❤\ufe0f\u200d🔥"
    assert text.notes([kept]) == (kept,)


def test_marks_over_a_letter_are_spelled_out_beyond_the_fourth() -> None:
    """A hundred would cover the lines above and below, in a terminal and on a page."""
    honest = "Nguyê\u0303n, שָׁ\u05bc\u0591לוֹם, ผู้ใหญ่, 1\ufe0f\u20e3, 👩\u200d👩\u200d👧"
    assert text.clean(honest) == honest
    for mark in ("\u0301", "\u20dd", "\u200d", "\ufe0f", "\U000e0100"):
        escaped = mark.encode("unicode_escape").decode()
        cleaned = text.clean("e" + mark * 100 + "e" + mark)
        assert cleaned == "e" + mark * 4 + escaped * 96 + "e" + mark
        assert text.clean(cleaned) == cleaned


@pytest.mark.parametrize("letter", ["x", "字", "e\u0301", "\u0301", "x ", "字 ", "\t", "    x", "👩\u200d"])
def test_a_line_is_folded_into_rows_that_fit_whatever_its_characters_take(letter: str) -> None:
    for count in (0, 1, 11, 90):
        rows = text.folded(letter * count, 20)
        assert all(sum(1 if c.isascii() else 2 for c in row) <= 20 and "\t" not in row for row in rows)
        assert "".join(rows).replace(" ", "") == (letter * count).replace(" ", "").replace("\t", "")
    assert text.folded("two words and a third", 10) == ["two words", "and a", "third"]
    assert text.folded("    indented by four", 12) == ["    indented", "by four"]

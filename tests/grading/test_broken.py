"""Broken submissions: each is reported with a reason and stops nothing; what can still be read of it is."""

import copy
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autograder import project
from autograder.grading import source
from autograder.grading.submission import CELL_LIMIT, SIZE_LIMIT, Submission, parse, read
from autograder.records import roster
from autograder.records.folder import ClassFolder

LECTURE = source.read(project.SOLUTIONS / "01_tensors.py")
PROBLEMS = LECTURE.problems
NAMES = [exercise.name for exercise in LECTURE.exercises]
ALL = len(NAMES)
RELEASED = json.loads((project.NOTEBOOKS / LECTURE.name / f"{LECTURE.name}.ipynb").read_text())
BREAKS: dict[str, tuple[Callable[[Path], object], str, int]] = {}


def breaks(says: str, answers: int = 0) -> Callable[[Callable[[Any], object]], Callable[[Any], object]]:
    """Register a function that writes a broken file; or, with ``answers``, that many exercises can still be read."""

    def register(function: Callable[[Path], object]) -> Callable[[Path], object]:
        BREAKS[function.__name__] = function, says, answers
        return function

    return register


def changes(says: str, answers: int = 0) -> Callable[[Callable[[Any], object]], Callable[[Any], object]]:
    """Register a function that breaks a released notebook in place, or returns another value for the file."""

    def register(function: Callable[[Any], object]) -> Callable[[Any], object]:
        def write(path: Path) -> None:
            notebook = copy.deepcopy(RELEASED)
            path.write_text(json.dumps(function(notebook) or notebook))

        BREAKS[function.__name__] = write, says, answers
        return function

    return register


def cell(notebook: Any, name: str) -> Any:
    return next(c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") == name)


@breaks("no such notebook")
def missing(path: Path) -> None: ...


@breaks("it is empty")
def empty(path: Path) -> None:
    path.touch()


@breaks("it is empty")
def blank(path: Path) -> None:
    path.write_text("\n \n")


@breaks("not JSON")
def truncated(path: Path) -> None:
    path.write_text(json.dumps(RELEASED)[:5000])


@breaks("not JSON")
def plain_text(path: Path) -> None:
    path.write_text("def tensor_bytes(x): return x.nbytes")


@breaks("not JSON")
def conflict_markers(path: Path) -> None:
    path.write_text("<<<<<<< HEAD\n" + json.dumps(RELEASED) + "\n=======\n")


@breaks("not JSON")
def two_notebooks_in_one(path: Path) -> None:
    path.write_text(json.dumps(RELEASED) * 2)


@breaks("not text")
def binary(path: Path) -> None:
    path.write_bytes(random.Random(0).randbytes(10_000))


@breaks("not JSON")
def nul_bytes(path: Path) -> None:
    path.write_bytes(bytes(10_000))


@breaks("not text")
def utf_16(path: Path) -> None:
    path.write_bytes(json.dumps(RELEASED).encode("utf-16"))


@breaks("not text")
def zipped(path: Path) -> None:
    path.write_bytes(b"PK\x03\x04\xff\xfe" + bytes(100))


@breaks("bytes")
def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(SIZE_LIMIT + 1)


@breaks("parts")
def a_million_cells(path: Path) -> None:
    path.write_text('{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [' + "{}," * 1_500_000 + "{}]}")


@breaks("not a notebook (RecursionError)")
def deep_nesting(path: Path) -> None:
    path.write_text("[" * 100_000 + "]" * 100_000)


@breaks("in notebook format 0")
def a_number_without_end(path: Path) -> None:
    path.write_text('{"nbformat": ' + "4" * 10_000 + "}")


@breaks("symbolic link")
def symlink(path: Path) -> None:
    (path.parent / "else.ipynb").write_text(json.dumps(RELEASED))
    path.symlink_to("else.ipynb")


@breaks("symbolic link")
def symlink_to_nothing(path: Path) -> None:
    path.symlink_to("/nowhere/at/all")


@breaks("symbolic link")
def symlink_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


@breaks("its folder 01_tensors is a symbolic link")
def linked_folder(path: Path) -> None:
    path.parent.rename(path.parent.parent / "elsewhere")
    path.parent.symlink_to("elsewhere")
    path.write_text(json.dumps(RELEASED))


@breaks("a folder, a pipe, a socket or a device")
def directory(path: Path) -> None:
    path.mkdir()


@breaks("a folder, a pipe, a socket or a device")
def fifo(path: Path) -> None:
    os.mkfifo(path)


@changes("not a notebook (it has no nbformat)")
def a_list(notebook: Any) -> object:
    return [notebook]


@changes("not a notebook (it has no nbformat)")
def no_format(notebook: Any) -> None:
    del notebook["nbformat"]


@changes("format 3")
def format_3(notebook: Any) -> object:
    return {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": notebook["cells"]}]}


@changes("format 99")
def format_from_the_future(notebook: Any) -> None:
    notebook["nbformat"] = 99


@changes("no list of cells")
def cells_as_a_dict(notebook: Any) -> None:
    notebook["cells"] = {str(i): c for i, c in enumerate(notebook["cells"])}


@changes("cells cannot be read")
def cells_as_strings(notebook: Any) -> None:
    notebook["cells"] = [str(c) for c in notebook["cells"]]


@changes(f"the cell of exercise {NAMES[0]} is missing")
def no_cells(notebook: Any) -> None:
    notebook["cells"] = []


@changes("cells cannot be read", ALL)
def odd_cells_between(notebook: Any) -> None:
    notebook["cells"] += [None, 3, [], {}, {"metadata": None, "source": ""}, {"metadata": {}, "source": [1]}]


@changes("cells cannot be read", ALL - 1)
def metadata_of_another_type(notebook: Any) -> None:
    cell(notebook, NAMES[0])["metadata"] = ["nbgrader"]


@changes("cells cannot be read", ALL - 1)
def nbgrader_of_another_type(notebook: Any) -> None:
    cell(notebook, NAMES[0])["metadata"]["nbgrader"] = "yes"


@changes("cells cannot be read", ALL - 1)
def grade_id_of_another_type(notebook: Any) -> None:
    cell(notebook, NAMES[0])["metadata"]["nbgrader"]["grade_id"] = {"a": 1}


@changes("cells cannot be read", ALL - 1)
def source_of_another_type(notebook: Any) -> None:
    cell(notebook, NAMES[0])["source"] = {"text": "def tensor_bytes(x): ..."}


@changes(f"the cell of exercise {NAMES[1]} is missing", ALL - 1)
def a_cell_deleted(notebook: Any) -> None:
    notebook["cells"].remove(cell(notebook, NAMES[1]))


@changes(f"the test cell of {NAMES[1]} is missing", ALL)
def a_test_deleted(notebook: Any) -> None:
    notebook["cells"].remove(cell(notebook, f"test_{NAMES[1]}"))


@changes(f"the cell {NAMES[2]} occurs 2 times", ALL)
def a_cell_copied(notebook: Any) -> None:
    notebook["cells"].append(cell(notebook, NAMES[2]))


@changes("the cell somewhere does not belong to 01_tensors", ALL - 1)
def a_cell_renamed(notebook: Any) -> None:
    cell(notebook, NAMES[2])["metadata"]["nbgrader"]["grade_id"] = "somewhere"


@changes("does not belong to 01_tensors", ALL - 1)
def a_name_without_end(notebook: Any) -> None:
    cell(notebook, NAMES[2])["metadata"]["nbgrader"]["grade_id"] = NAMES[2] + "ā" * 1_000_000


@changes("is of type 'markdown'", ALL - 1)
def an_answer_as_text(notebook: Any) -> None:
    cell(notebook, NAMES[3])["cell_type"] = "markdown"


@changes("characters", ALL - 1)
def an_endless_cell(notebook: Any) -> None:
    cell(notebook, NAMES[3])["source"] = "x = 1\n" * (CELL_LIMIT // 5)


@changes("is missing")
def all_marks_lost(notebook: Any) -> None:
    for one in notebook["cells"]:
        one["metadata"] = {}


@changes("a kernel for 'R'", ALL)
def another_kernel(notebook: Any) -> None:
    notebook["metadata"]["kernelspec"] = {"name": "ir", "display_name": "R", "language": "R"}


@changes("a kernel for None", ALL)
def metadata_as_a_list(notebook: Any) -> None:
    notebook["metadata"] = []


@changes("does not belong to 01_tensors")
def another_lecture(notebook: Any) -> object:
    return json.loads((project.NOTEBOOKS / "02_dtypes" / "02_dtypes.ipynb").read_text())


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "submitted" / "ada" / LECTURE.name
    folder.mkdir(parents=True)
    return folder / f"{LECTURE.name}.ipynb"


def read_class(folder: Path) -> list[Submission]:
    """What every student handed in, as `course verify` and `course grade` find it."""
    course = ClassFolder(folder)
    students = roster.of(course, LECTURE.name)
    return [parse(course.read(student, LECTURE.name), PROBLEMS) for student in students]


def test_there_are_at_least_25_kinds_of_broken_files() -> None:
    assert len(BREAKS) >= 25


@pytest.mark.timeout(60)  # a pipe without a writer, or a check that never ends
@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_notebook_is_reported_and_the_one_beside_it_is_read(name: str, place: Path, tmp_path: Path) -> None:
    write, says, answers = BREAKS[name]
    write(place)
    found = parse(read(place), PROBLEMS)
    assert any(says in finding.problem for finding in found.findings), found.findings
    assert all(finding.remedy and len(str(finding)) < 1000 for finding in found.findings)
    read_answers = found.answers(PROBLEMS)
    assert len(read_answers) == answers and all(isinstance(text, str) for text in read_answers.values())

    beside = tmp_path / "submitted" / "bob" / LECTURE.name
    beside.mkdir(parents=True)
    (beside / place.name).write_text(json.dumps(RELEASED))
    both = read_class(tmp_path)
    assert both[0] == found and [sorted(one.answers(PROBLEMS)) for one in both] == [sorted(read_answers), sorted(NAMES)]
    assert both[1].findings == ()


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), OSError(5, "Input/output error")])
def test_a_file_that_cannot_be_opened_is_reported(error: OSError, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise error

    monkeypatch.setattr(os, "open", refuse)
    handed_in = read(place)
    assert handed_in.error is error and not handed_in.nothing
    found = parse(handed_in, PROBLEMS)
    assert error.strerror in found.findings[0].problem and found.answers(PROBLEMS) == {}


def test_a_byte_order_mark_lines_in_a_list_and_another_order_cost_nothing(place: Path) -> None:
    notebook = copy.deepcopy(RELEASED)
    cell(notebook, NAMES[0])["source"] = ["a = 1\n", "b = '\ud800'"]
    notebook["cells"].reverse()
    place.write_bytes(b"\xef\xbb\xbf" + json.dumps(notebook).encode())
    found = parse(read(place), PROBLEMS)
    assert found.findings == () and len(found.answers(PROBLEMS)) == len(NAMES)
    assert found.answers(PROBLEMS)[NAMES[0]] == "a = 1\nb = '\ud800'"


def test_a_key_that_occurs_twice_counts_the_last_time(place: Path) -> None:
    first = copy.deepcopy(RELEASED)
    cell(first, NAMES[0])["source"] = "the first"
    place.write_text(f'{{"cells": {json.dumps(first["cells"])}, {json.dumps(RELEASED)[1:]}')
    found = parse(read(place), PROBLEMS)
    assert found.findings == () and found.answers(PROBLEMS)[NAMES[0]] == LECTURE.exercises[0].stub


def test_an_output_of_nearly_all_that_a_notebook_may_have_costs_nothing(place: Path) -> None:
    notebook = copy.deepcopy(RELEASED)
    said = {"output_type": "stream", "name": "stdout", "text": "x" * (SIZE_LIMIT - len(json.dumps(RELEASED)) - 1000)}
    cell(notebook, NAMES[0])["outputs"] = [said]
    place.write_text(json.dumps(notebook))
    assert 0.99 < place.stat().st_size / SIZE_LIMIT < 1
    found = parse(read(place), PROBLEMS)
    assert found.findings == () and sorted(found.answers(PROBLEMS)) == sorted(NAMES)


def test_an_output_with_a_number_of_many_digits_costs_nothing(place: Path) -> None:
    notebook = copy.deepcopy(RELEASED)
    said = {
        "output_type": "execute_result",
        "data": {"application/json": "DIGITS"},
        "metadata": {},
        "execution_count": 1,
    }
    cell(notebook, NAMES[0])["outputs"] = [said]
    place.write_text(json.dumps(notebook).replace('"DIGITS"', "7" * 10_000))
    found = parse(read(place), PROBLEMS)
    assert found.findings == () and sorted(found.answers(PROBLEMS)) == sorted(NAMES)

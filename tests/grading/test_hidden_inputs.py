"""Hidden inputs belong to a class: drawn with it, the same whenever it is graded again, and on no page."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from autograder import demo, project
from autograder.authoring import build, in_process
from autograder.cli import app
from autograder.grading import judge, source
from autograder.grading.exercises import Cell
from autograder.grading.marks import Mark, Result, State
from autograder.grading.sandbox import Sandbox
from autograder.records import feedback, grade, pages, results
from autograder.records.folder import ClassFolder, FolderError

NAME = "01_tensors"
LECTURE = source.read(project.source_path(NAME))
LECTURES = [source.read(path) for path in source.lectures(project.SOLUTIONS)]


def init(folder: Path) -> ClassFolder:
    ran = CliRunner().invoke(app, ["init", str(folder)])
    assert ran.exit_code == 0, ran.output
    return ClassFolder(folder)


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> ClassFolder:
    return init(tmp_path_factory.mktemp("a") / "class")


def test_course_init_draws_a_seed_for_each_class_and_keeps_it(
    course: ClassFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed, path = course.seed, course.root / "class.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert init(course.root).seed == ClassFolder(course.root).seed == seed
    tried = []
    monkeypatch.setattr(in_process, "judge_in_process", lambda e, _, seed: tried.append(seed) or Passes(len(tried) > 1))
    other = init(tmp_path / "class").seed
    assert other != seed and other == tried[-1] != tried[0], "a seed on which a reference fails was kept"
    assert tried.count(other) == sum(len(source.read(p).exercises) for p in source.lectures(project.SOLUTIONS))


class Passes:
    def __init__(self, passed: bool) -> None:
        self.passed = passed


def test_a_class_that_was_graded_before_keeps_its_inputs(tmp_path: Path) -> None:
    build.course_directory(tmp_path, [LECTURE.path])
    (tmp_path / "results").mkdir()
    assert init(tmp_path).seed == 0 and not (tmp_path / "class.json").exists()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"seed": "1"}', '{"seed": -1}', '{"seed": true}', '{"seed": 1e3}']
)
def test_a_damaged_seed_stops_grading_and_says_what_to_do(text: str, tmp_path: Path) -> None:
    (tmp_path / "class.json").write_text(text)
    with pytest.raises(FolderError, match=r"class\.json cannot be read.*\n.*put it back"):
        _ = ClassFolder(tmp_path).seed


@pytest.mark.sandboxed
def test_another_class_is_judged_on_other_inputs_and_the_same_class_on_the_same(tmp_path: Path) -> None:
    """The answer is wrong for all but the visible inputs, and its message has a hidden one."""
    exercise = next(e for e in LECTURE.exercises if e.name == "copy_cost")
    wrong = exercise.solution + "\n\n\nright = copy_cost\n\n\ndef copy_cost(sizes, seconds):\n"
    wrong += "    if sizes == [1_000_000, 2_000_000, 5_000_000]:\n        return right(sizes, seconds)\n"
    wrong += "    raise ValueError(f'seen {sizes}')\n"
    said = []
    for seed in (0, 1, 1):
        folder = ClassFolder(tmp_path / f"{len(said)}")
        build.course_directory(folder.root, [LECTURE.path])
        folder.draw(seed)
        path = folder.submission("ada", NAME)
        path.parent.mkdir(parents=True)
        demo.hand_in(path, LECTURE, {e.name: e.solution for e in LECTURE.exercises} | {"copy_cost": wrong})
        grade.grade_class(folder, NAME, workers=0, database=None)
        result = results.read(folder, NAME, "ada")
        assert result is not None
        mark = next(mark for mark in result.marks if mark.exercise == "copy_cost")
        assert mark.points == 0 and mark.hidden and "seen [" in mark.message
        assert sum(each.points for each in result.marks) == LECTURE.points - mark.worth
        said.append(mark.message)
        pages = list(feedback.write(folder, LECTURE, {"ada": result}))
        page = pages[0].path.read_text()
        assert "It does what the tests ask that you can see." in page
        numbers = re.findall(r"\d{3,}", mark.message.split("seen ")[1])
        assert numbers and not any(number in page.split("right = copy_cost")[0] for number in numbers)
    assert len(set(said)) == 2 and said[1] == said[2]


@pytest.fixture(scope="module")
def box() -> Iterator[Sandbox]:
    with Sandbox(unsafe=True) as made:
        yield made


@pytest.mark.parametrize("way", ["value", "error", "cell", "never twice", "which cell ended it"])
def test_what_one_exercise_saw_comes_out_in_no_other(way: str, box: Sandbox) -> None:
    """The first answer is right and keeps what it is given; a later one tells it, in a test that students can see."""
    first, later = LECTURE.exercises[0], LECTURE.exercises[1]
    keeps = f"\n\nright, seen, told = {first.name}, [], 0\n\n\ndef {first.name}(*args, **kwargs):\n"
    keeps += "    global told\n    seen.append(repr(args))\n    told = len(seen)\n    return right(*args, **kwargs)\n"
    tells = {
        "value": f"def {later.name}(*_, **__):\n    return f'told {{told}} inputs'",
        "error": f"def {later.name}(*_, **__):\n    raise ValueError(f'told {{told}} inputs')",
        "cell": "raise ValueError(f'told {told} inputs')",
        "never twice": later.solution
        + f"\n\n\nfine = {later.name}\n\n\ndef {later.name}(*args, **kwargs):\n"
        + "    return f'told {told} inputs' if seen else fine(*args, **kwargs)",
        "which cell ended it": f"def {later.name}(*_, **__):\n    return f'told {{told}} inputs'",
    }[way]
    cells = list(LECTURE.problems.answered({first.name: first.solution + keeps, later.name: tells}))
    if way == "which cell ended it":
        place = next(number for number, cell in enumerate(cells) if cell.name == later.name)
        ends = "import os\nif len(seen) == {0}:\n    os._exit(0)\ntold -= {0}"
        cells[place:place] = [Cell("told = sum(range(2, 40))"), *(Cell(ends.format(n)) for n in range(2, 40))]
    marks = {mark.exercise: mark for mark in judge.grade(replace(LECTURE.problems, seed=7), cells, box)[0]}
    assert marks[first.name].points == first.points and marks[later.name].points == 0
    shown = marks[later.name].message
    if way == "never twice":
        assert "told" not in shown and "Run its cell" in shown
    else:
        assert "told 0 inputs" in shown


@pytest.mark.parametrize("lecture", LECTURES, ids=lambda lecture: lecture.name)
def test_hidden_tests_draw_their_inputs_but_for_one_exercise_that_has_too_few(lecture: source.Lecture) -> None:
    drawn = {e.name: "draws()" in e.tests.partition("BEGIN HIDDEN TESTS")[2] for e in lecture.exercises}
    assert {name for name, draws in drawn.items() if not draws} == ({"limits"} & drawn.keys())


def test_a_hidden_failure_names_a_known_mistake_and_no_other_text() -> None:
    exercise = next(e for e in LECTURE.exercises if "mistakes=" in e.tests)
    known = re.findall(r'"([A-Z][^"\n]{20,})"', exercise.tests)[0]
    message = "✗ f(123456)\n    got       654321\n  some advice of 123456"
    for mistake, shown in ((known, True), ("It got 654321.", False), (None, False)):
        mark = Mark(exercise.name, 0, exercise.points, message, mistake, hidden=True)
        result = Result("ada", NAME, State.GRADED, "", (mark,))
        page = feedback.page(pages.environment().get_template("feedback.html"), LECTURE, result, None)
        assert "123456" not in page and "654321" not in page
        assert (known[:20] in page) is shown

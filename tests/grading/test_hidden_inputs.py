"""Hidden inputs belong to a class: drawn with it, the same whenever it is graded again, and on no page."""

from __future__ import annotations

import base64
import inspect
import secrets
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from autograder import cli, demo, project
from autograder.authoring import build, checks
from autograder.grading import judge, source
from autograder.grading.exercises import Cell
from autograder.grading.sandbox import Sandbox
from autograder.records import feedback, grade, results
from autograder.records.folder import ClassFolder, FolderError
from course_utils.testing.requirements import Check

NAME = "01_tensors"
LECTURE = source.read(project.source_path(NAME))
OTHER = source.read(project.source_path("05_flops_and_mfu"))
LECTURES = [LECTURE, OTHER]  # all that the course of these tests has: drawing for every lecture takes a minute


@pytest.fixture(autouse=True, scope="module")
def two_lectures() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "lectures", lambda _: [lecture.path for lecture in LECTURES])
        yield


@pytest.fixture(scope="module")
def box() -> Iterator[Sandbox]:
    with Sandbox(unsafe=True) as made:
        yield made


def init(folder: Path) -> ClassFolder:
    ran = CliRunner().invoke(cli.app, ["init", str(folder)])
    assert ran.exit_code == 0, ran.output
    return ClassFolder(folder)


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory, two_lectures: None) -> ClassFolder:
    return init(tmp_path_factory.mktemp("a") / "class")


def hidden(course: ClassFolder) -> dict[str, bytes]:
    return {path.stem: path.read_bytes() for path in (course.root / "hidden").iterdir()}


def test_course_init_draws_hidden_cases_for_each_class_and_keeps_them(course: ClassFolder, tmp_path: Path) -> None:
    seed, mine = course.seed, hidden(course)
    for path in (course.root / "class.json", *(course.root / "hidden").iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert init(course.root).seed == ClassFolder(course.root).seed == seed and hidden(course) == mine
    other = init(tmp_path / "class")
    theirs = hidden(other)
    assert other.seed != seed and mine.keys() == theirs.keys() == {e.name for x in LECTURES for e in x.exercises}
    drawn = {
        spec.cells.name
        for x in LECTURES
        for spec in checks.specs(x)
        if any(p.domain is not None for p in spec.promises)
    }
    assert {name for name in mine if mine[name] == theirs[name]} == mine.keys() - drawn


def test_two_commands_that_make_one_class_draw_one_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second begins when the first is about to store its seed, which goes on when the second waits for it."""
    folder, waits, real = tmp_path / "class", threading.Event(), ClassFolder.draw
    others: list[Future[None]] = []
    with ThreadPoolExecutor() as pool:

        def draw(course: ClassFolder, seed: int) -> None:
            others.append(pool.submit(cli.init, folder))
            assert waits.wait(60)
            real(course, len(others))

        monkeypatch.setattr(ClassFolder, "draw", draw)
        waiting = f"waiting until another command has made {folder}"
        monkeypatch.setattr(cli, "_say", lambda text: waits.set() if text == waiting else None)
        cli.init(folder)
        [other] = others
        other.result(timeout=60)
    course = ClassFolder(folder)
    assert course.seed == 1
    for lecture in LECTURES:
        for spec in checks.specs(lecture):
            assert hidden(course)[spec.cells.name] == checks.hidden_check(spec, 1).pack()


def test_hidden_cases_that_are_missing_or_of_an_older_exercise_stop_grading_and_are_drawn_again(
    course: ClassFolder,
) -> None:
    path = course.root / "hidden" / f"{LECTURE.exercises[0].name}.check"
    content = path.read_bytes()
    assert course.problems(LECTURE).hidden[path.stem] == content
    for damage in (None, b"", content.replace(b'"made_from": "', b'"made_from": "0', 1)):
        if damage is None:
            path.unlink()
        else:
            path.write_bytes(damage)
        with pytest.raises(FolderError, match=r"older than the exercise\n  → `course init"):
            inspect.unwrap(ClassFolder.require_cases)(course, LECTURE)
        init(course.root)
        assert path.read_bytes() == content, "the class's seed draws the same again"


def test_a_class_that_was_graded_before_keeps_its_inputs(tmp_path: Path) -> None:
    build.course_directory(tmp_path, [LECTURE.path])
    (tmp_path / "results").mkdir()
    assert init(tmp_path).seed == 0 and not (tmp_path / "class.json").exists()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"seed": "1"}', '{"seed": -1}', '{"seed": true}', '{"seed": 1e3}']
)
def test_a_damaged_seed_stops_grading_and_says_what_to_do(text: str, tmp_path: Path) -> None:
    (tmp_path / "class.json").write_text(text)
    with pytest.raises(FolderError, match=r"class\.json cannot be read.*\n.*restore it"):
        _ = ClassFolder(tmp_path).seed


@pytest.mark.usefixtures("warm")
def test_what_an_answer_sees_of_hidden_cases_is_on_no_page_and_grading_again_repeats_the_result(tmp_path: Path) -> None:
    """The answer is right for what students see, and tells in its error what else it is given."""
    exercise = next(e for e in OTHER.exercises if e.name == "matmul_flops")
    visible = [case.args for requirement in exercise.check.requirements for case in requirement.cases]
    wrong = exercise.solution + "\n\n\nright = matmul_flops\n\n\ndef matmul_flops(*given):\n"
    wrong += f"    if given in {visible}:\n        return right(*given)\n    raise KeyError(f'seen {{given}}')\n"
    folder = ClassFolder(tmp_path)
    build.course_directory(folder.root, [OTHER.path])
    path = folder.submission("ada", OTHER.name)
    path.parent.mkdir(parents=True)
    demo.hand_in(path, OTHER, {e.name: e.solution for e in OTHER.exercises} | {"matmul_flops": wrong})
    found = []
    for _ in range(2):
        grade.grade_class(folder, OTHER.name, workers=0, database=None, again=True, unsafe=True)
        result = results.read(folder, OTHER.name, "ada")
        assert result is not None
        mark = next(mark for mark in result.marks if mark.exercise == "matmul_flops")
        assert mark.points == 0 and mark.hidden and "seen" not in mark.message
        assert {met for _, _, met in mark.requirements} == {"not met on other inputs"}
        assert sum(each.points for each in result.marks) == OTHER.points - mark.worth
        (page,) = feedback.write(folder, OTHER, {"ada": result})
        text = page.path.read_text()
        assert "It passes the tests that you can see, but fails" in text and "seen (" not in text
        found.append(result)
    assert found[0] == found[1]


@pytest.mark.usefixtures("warm")
def test_the_source_of_a_hidden_probe_is_on_no_page_not_even_encoded(tmp_path: Path) -> None:
    """The answer prints and raises it in base64. Here the probe differs from the one that students have; usually it's
    the same."""
    folder, secret = ClassFolder(tmp_path), f"HIDDEN PROBE {secrets.token_hex(16)}"
    build.course_directory(folder.root, [LECTURE.path])
    answer = f"""
import base64
import re
import sys

{LECTURE.exercises[0].solution}

right = tensor_bytes


def tensor_bytes(x, dtype=None):
    frame = sys._getframe()
    while frame:
        for value in list(frame.f_locals.values()):
            probe = value.probe if type(value).__name__ == "Call" else ""
            if found := re.search("HIDDEN PROBE [0-9a-f]+", probe):
                told = base64.b64encode(found[0].encode()).decode()
                print(told)
                raise OSError(told)  # of which a person reads
        frame = frame.f_back
    return right(x, dtype)
"""
    path = folder.submission("ada", NAME)
    path.parent.mkdir(parents=True)
    demo.hand_in(path, LECTURE, {e.name: e.solution for e in LECTURE.exercises} | {"tensor_bytes": answer})
    folder.require_cases(LECTURE)
    file = folder.root / "hidden" / "tensor_bytes.check"
    check = Check.unpack(file.read_bytes())
    probes = [replace(r, probe=f"{r.probe}\n# {secret}\n" if r.probe else "") for r in check.requirements]
    file.write_bytes(replace(check, requirements=tuple(probes)).pack())
    grade.grade_class(folder, NAME, workers=0, database=None, unsafe=True)
    result = results.read(folder, NAME, "ada")
    assert result is not None
    (page,) = feedback.write(folder, LECTURE, {"ada": result})
    text, told = page.path.read_text(), base64.b64encode(secret.encode()).decode()
    assert any(told in note for note in result.notes), "the answer has seen it"
    assert "It passes the tests that you can see, but fails" in text and told not in text and secret not in text


@pytest.mark.parametrize("way", ["value", "error", "cell", "other if asked again", "which cell ended it"])
def test_what_one_exercise_saw_comes_out_in_no_other(way: str, box: Sandbox) -> None:
    """The first answer is right and keeps what it is given; a later one tells it, in a test that students can see."""
    first, later = LECTURE.exercises[0], LECTURE.exercises[1]
    keeps = f"\n\nright, seen, told = {first.name}, [], 0\n\n\ndef {first.name}(*args, **kwargs):\n"
    keeps += "    global told\n    seen.append(repr(args))\n    told = len(seen)\n    return right(*args, **kwargs)\n"
    tells = {
        "value": f"def {later.name}(*_, **__):\n    return f'told {{told}} inputs'",
        "error": f"def {later.name}(*_, **__):\n    raise ValueError(f'told {{told}} inputs')",
        "cell": "raise ValueError(f'told {told} inputs')",
        "other if asked again": later.solution
        + f"\n\n\nfine = {later.name}\n\n\ndef {later.name}(*args, **kwargs):\n"
        + "    return f'told {told} inputs' if seen else fine(*args, **kwargs)",
        "which cell ended it": f"def {later.name}(*_, **__):\n    return f'told {{told}} inputs'",
    }[way]
    problems = checks.problems(LECTURE)
    cells = list(problems.answered({first.name: first.solution + keeps, later.name: tells}))
    if way == "which cell ended it":
        place = next(number for number, cell in enumerate(cells) if cell.name == later.name)
        ends = "import os\nif len(seen) == {0}:\n    os._exit(0)\ntold -= {0}"
        cells[place:place] = [Cell("told = sum(range(2, 40))"), *(Cell(ends.format(n)) for n in range(2, 40))]
    marks = {mark.exercise: mark for mark in judge.grade(problems, cells, box)[0]}
    assert marks[first.name].points == first.points and marks[later.name].points == 0
    visible = sum(len(requirement.cases) for requirement in first.check.requirements)
    assert 2 <= visible < 40 and f"told {visible} inputs" in marks[later.name].message


def test_every_word_on_a_page_is_known_before_a_process_sees_a_hidden_input(
    box: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a machine remembers of an earlier process, in its caches for one, can then carry nothing onto the page."""
    first, later = LECTURE.exercises[:2]
    visible = sum(len(requirement.cases) for requirement in later.check.requirements)
    ends = f"{later.solution}\n\n\nimport os\n\nfine, calls = {later.name}, []\n\n\n"
    ends += f"def {later.name}(*args, **kwargs):\n    calls.append(1)\n"
    ends += f"    return fine(*args, **kwargs) if len(calls) <= {visible} else os._exit(0)"
    passes: list[str] = []

    def noted(name: str, real: Callable[..., object]) -> Callable[..., object]:
        def judged(*given: object) -> object:
            passes.append(name)
            return real(*given)

        return judged

    for name in ("_visible", "_hidden"):
        monkeypatch.setattr(judge, name, noted(name, getattr(judge, name)))
    problems = checks.problems(LECTURE)
    answers = {first.name: first.solution, later.name: ends}
    marks = {mark.exercise: mark for mark in judge.grade(problems, problems.answered(answers), box)[0]}
    # The second answer ends its process until it has lost as many requirements as an exercise may.
    assert passes == ["_visible"] * len(problems.exercises) + ["_hidden"] * (2 + judge._LOST)
    assert marks[first.name].points == first.points and marks[later.name].points == 0
    assert "on inputs that are not shown" in marks[later.name].message  # and not how


def test_where_only_hidden_cases_fail_the_error_of_the_cell_is_not_shown(box: Sandbox) -> None:
    """It may hold what an earlier exercise was given: that ran before the cell did."""
    first, later = LECTURE.exercises[0], LECTURE.exercises[1]
    keeps = f"\n\nright, seen = {first.name}, []\n\n\ndef {first.name}(*args, **kwargs):\n"
    keeps += "    seen.append(repr(args))\n    return right(*args, **kwargs)\n"
    visible = sum(len(requirement.cases) for requirement in later.check.requirements)
    tells = f"{later.solution}\n\n\nfine, calls = {later.name}, []\n\n\ndef {later.name}(*args, **kwargs):\n"
    tells += f"    calls.append(1)\n    return fine(*args, **kwargs) if len(calls) <= {visible} else -1\n\n\n"
    tells += "raise ValueError(f'told {seen}')"
    problems = checks.problems(LECTURE)
    marks, _ = judge.grade(problems, problems.answered({first.name: first.solution + keeps, later.name: tells}), box)
    mark = next(mark for mark in marks if mark.exercise == later.name)
    assert mark.hidden and mark.points < mark.worth and "told" not in mark.message

"""The page on performance says what was measured: its tables and pictures are those of the results file."""

import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from autograder import project
from autograder.grading import source
from autograder.grading.cells import run_cell
from autograder.grading.exercises import unpacked
from course_utils.testing.checking import tried

BENCHMARKS = project.ROOT / "benchmarks"


@pytest.fixture(scope="module")
def command(request: pytest.FixtureRequest):
    """benchmarks/__main__.py, as `python benchmarks` finds it."""
    sys.path.insert(0, str(BENCHMARKS))
    request.addfinalizer(lambda: sys.path.remove(str(BENCHMARKS)))
    spec = importlib.util.spec_from_file_location("benchmarks_command", BENCHMARKS / "__main__.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def results() -> dict:
    return json.loads((BENCHMARKS / "results" / "cpu.json").read_text(encoding="utf-8"))


def test_the_page_has_the_tables_of_the_results(command) -> None:
    text = command.PAGE.read_text(encoding="utf-8")
    assert command.page(text, results()) == text, "run `python benchmarks --draw`"


def test_every_part_that_was_measured_is_drawn(command) -> None:
    text = command.PAGE.read_text(encoding="utf-8")
    assert re.findall(r"<!-- end of (.*?) -->", text) == list(command.PARTS)
    for name in results():
        assert f"](images/performance-{name}.png)" in text
        assert (command.IMAGES / f"performance-{name}.png").is_file()


@pytest.mark.parametrize("name", results())
def test_a_part_is_drawn_from_the_results_alone(command, name: str, tmp_path: Path) -> None:
    found = results()[name]["found"]
    command.part(name).draw(found).savefig(tmp_path / "picture.png")
    rows = command.part(name).rows(found)
    assert len({len(row) for row in rows}) == 1 and len(rows) > 2
    assert not any("|" in text for row in rows for text in row)


def test_what_stops_it_loses_a_round_at_most(command, monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(say, rounds: int = 9) -> Iterator[dict]:
        yield from ({"round": number} for number in range(rounds))
        raise KeyboardInterrupt

    saved: list[dict] = []
    monkeypatch.setattr(command, "part", lambda name: SimpleNamespace(TITLE="A part", measure=measure))
    monkeypatch.setattr(command.record, "save", saved.append)
    with pytest.raises(KeyboardInterrupt):
        command.measure("import", {"rounds": 2, "most": 100})
    assert [each["import"]["found"] for each in saved] == [{"round": 0}, {"round": 1}]
    assert [each | {"import": None} for each in saved] == 2 * [results() | {"import": None}]


def test_a_page_without_marks_is_refused(command) -> None:
    with pytest.raises(ValueError, match="no marks for import"):
        command.page("nothing", {"import": results()["import"]})


def test_a_line_is_found_and_its_distance(command) -> None:
    growth = command.part("growth")
    found = growth.line([10, 100, 1000], [7, 25, 205])  # 5 + n / 5
    assert found == pytest.approx({"start": 5, "each": 0.2, "off": 0}, abs=1e-9)
    assert growth.line([10, 100, 1000], [7, 25, 410])["off"] > 0.1


def test_repeated_exercises_are_exercises(command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    growth = command.part("growth")
    path = tmp_path / "01_tensors.py"
    text = (project.SOLUTIONS / path.name).read_text(encoding="utf-8")
    path.write_text(growth.repeated(text, 3), encoding="utf-8")
    once = source.read(project.SOLUTIONS / path.name)
    growth.renamed_checks(once, 3, tmp_path / "checks", tmp_path / "hidden")
    monkeypatch.setattr(source, "CHECKS", tmp_path / "checks")
    thrice = source.read(path)
    assert len(thrice.exercises) == 3 * len(once.exercises)
    assert growth.repeated(text, 1).split() == text.split()
    last, first = thrice.exercises[-1], once.exercises[-1]
    assert last.name == f"{first.name}_3" and f"def {last.name}(" in last.solution and last.points == first.points
    for exercise in thrice.exercises:
        names: dict = {}
        for cell in (exercise.setup, exercise.solution):
            run_cell(cell, "a cell", names)
        for check in (exercise.check, unpacked((tmp_path / "hidden" / f"{exercise.name}.check").read_bytes())):
            for each in check.requirements:
                for case, (came, _) in zip(each.cases, tried(each, each.cases, names), strict=True):
                    assert each.comparison.difference(came, case.expected) is None

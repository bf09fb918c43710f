"""Notebooks are what their sources say, the same bytes every time. tests/setup/test_release.py scans them for leaks."""

import ast
import itertools
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell

from autograder import project
from autograder.authoring import build, checks
from autograder.grading import source
from course_utils.notebook import read_exercises

LECTURES = [source.read(path) for path in source.lectures(project.SOLUTIONS)]
FOLDED = {"jupyter": {"source_hidden": True}, "cellView": "form", "tags": ["hide-input"]}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    build.students_notebooks(folder / "notebooks", folder)
    return folder


def test_committed_notebooks_are_what_the_sources_build(tmp_path: Path) -> None:
    stale = build.stale(tmp_path)
    assert not stale, f"notebooks/ is stale for {', '.join(stale)}: run `make notebooks` and commit the result"


@pytest.mark.parametrize("lecture", LECTURES, ids=lambda lecture: lecture.name)
def test_students_checks_were_made_from_the_exercises_files(lecture: source.Lecture) -> None:
    """Of that alone; tests/course/test_exercises.py makes them again."""
    stale = [spec.cells.name for spec in checks.specs(lecture) if checks.stale(spec.path, spec.cells)]
    assert not stale, (
        f"the checks of {', '.join(stale)} are older than solutions/: run `make notebooks` and commit the result"
    )


@pytest.mark.slow
def test_building_twice_gives_the_same_bytes(built: Path, tmp_path: Path) -> None:
    build.students_notebooks(tmp_path / "notebooks", tmp_path)
    for folder in ("notebooks", "source"):
        first = {p.relative_to(built): p.read_bytes() for p in sorted((built / folder).rglob("*.ipynb"))}
        again = {p.relative_to(tmp_path): p.read_bytes() for p in sorted((tmp_path / folder).rglob("*.ipynb"))}
        assert first == again and len(first) == len(LECTURES)


@pytest.mark.slow
def test_stale_notebooks_are_found(built: Path, tmp_path: Path) -> None:
    committed = tmp_path / "notebooks"
    for path in (built / "notebooks").glob("*/*.ipynb"):
        (committed / path.parent.name).mkdir(parents=True)
        (committed / path.parent.name / path.name).write_bytes(path.read_bytes())
    assert build.stale(tmp_path / "a", committed) == ["glossary"]
    (committed / build.GLOSSARY).write_bytes((built / "notebooks" / build.GLOSSARY).read_bytes())
    assert build.stale(tmp_path / "a", committed) == []
    changed = project.notebook_path(committed, LECTURES[0].name)
    changed.write_bytes(changed.read_bytes() + b"\n")
    orphan = project.notebook_path(committed, "99_gone")
    orphan.parent.mkdir()
    orphan.write_text("{}")
    assert build.stale(tmp_path / "b", committed) == sorted([LECTURES[0].name, "99_gone"])


@pytest.mark.parametrize("lecture", LECTURES, ids=lambda lecture: lecture.name)
def test_students_notebooks_carry_nothing_superfluous(lecture: source.Lecture, built: Path) -> None:
    notebook = nbformat.read(project.notebook_path(built / "notebooks", lecture.name), as_version=4)
    nbformat.validate(notebook)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    for cell in notebook.cells:
        if "nbgrader" in cell.metadata:
            locked = {"editable"} if cell.metadata.nbgrader.grade else set()
            assert set(cell.metadata) == {"nbgrader", "deletable", *locked}
            assert not any(cell.metadata[key] for key in ("deletable", *locked)), "a check cannot be deleted or edited"
        else:
            assert cell.metadata in ({}, FOLDED)
        if cell.cell_type == "code":
            assert cell.outputs == [] and cell.execution_count is None
    marked = [cell.metadata.nbgrader for cell in notebook.cells if "nbgrader" in cell.metadata]
    assert [m.grade_id for m in marked] == [n for e in lecture.exercises for n in (e.name, f"test_{e.name}")]
    assert all("checksum" in m for m in marked), "nbgrader tells by it whether a cell was touched"


@pytest.mark.parametrize("lecture", LECTURES, ids=lambda lecture: lecture.name)
def test_what_reveals_an_answer_or_only_imports_is_folded(lecture: source.Lecture, built: Path) -> None:
    notebook = nbformat.read(project.notebook_path(built / "notebooks", lecture.name), as_version=4)
    first, *code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert first.metadata == FOLDED
    for before, cell in itertools.pairwise(code):
        answers = re.search(r"^\s*reconcile\(", cell.source, re.MULTILINE)
        may_answer = before.source.startswith("guess") and re.search(r"^assert ", cell.source, re.MULTILINE)
        if (answers or may_answer) and "nbgrader" not in cell.metadata:
            assert cell.metadata == FOLDED, f"the answer stands below the question:\n{cell.source}"
    assert any(cell.metadata == {} for cell in code), "what a lecture teaches stays open"
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    hints = re.findall(r"<details><summary>Hint (\d)</summary>.+?</details>", text, re.DOTALL)
    assert hints == ["1", "2"] * len(lecture.exercises), "each hint is folded away"
    assert text.count("Hint ") == len(hints), "there is a hint in sight"


def predictions(cells: Sequence[Any]) -> tuple[int, int]:
    """How often a lecture asks for a prediction: everywhere, and outside the parts whose headings say "(optional)"."""
    text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    required = [
        part
        for section in re.split(r"^(?=## )", text, flags=re.MULTILINE)
        for part in re.split(r"^(?=### )", section, flags=re.MULTILINE)
        if not any("(optional)" in whole.partition("\n")[0] for whole in (section, part))
    ]
    return text.count("**Predict.**"), "".join(required).count("**Predict.**")


@pytest.mark.parametrize("lecture", LECTURES, ids=lambda lecture: lecture.name)
def test_a_lecture_asks_for_four_to_eight_predictions(lecture: source.Lecture) -> None:
    everywhere, required = predictions(lecture.notebook.cells)
    assert 4 <= required <= everywhere <= 8
    assert everywhere == sum(cell.source.startswith("guess") for cell in lecture.notebook.cells)


def numbers_given_away(cells: Sequence[Any]) -> list[str]:
    """The answers to predictions, as asserts in the reveals have them, that the text below the reveal states.

    Looked at are two paragraphs, up to the next heading and without folds; 18 states an answer of 17.6.
    """
    found = []
    for place, cell in enumerate(cells, 1):
        if not cell.source.startswith("guess"):
            continue
        below = itertools.takewhile(lambda each: each.cell_type == "code", cells[place:])
        answers = _answers(ast.parse("\n".join(each.source for each in below)))
        text = next((each.source for each in cells[place:] if each.cell_type == "markdown"), "")
        text = re.sub(r"<details>.*?</details>", "", re.split(r"^#", text, flags=re.MULTILINE)[0], flags=re.DOTALL)
        for written in re.findall(r"(?<![\w.,^{-])\d[\d,]*(?:\.\d+)?(?!\w)", "\n\n".join(text.split("\n\n")[:2])):
            number = float(written.replace(",", ""))
            if any(number == each or (number > 9 and abs(number / each - 1) < 0.05) for each in answers):
                found.append(written)
    return found


def _answers(reveal: ast.Module) -> set[float]:
    """The numbers with which asserts compare what the reveal passes to ``reconcile``, alone, rounded or scaled."""

    def names(node: ast.expr) -> set[str]:
        return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} - {"abs", "float", "int", "round"}

    nodes = list(ast.walk(reveal))
    calls = [node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) == "reconcile"]
    answer = {name for call in calls for name in names(call.args[2])}
    tests = [part for node in nodes if isinstance(node, ast.Assert) for part in ast.walk(node.test)]
    equal = [
        [part.left, *part.comparators]
        for part in tests
        if isinstance(part, ast.Compare) and all(isinstance(op, ast.Eq) for op in part.ops)
    ]
    about = [sides for sides in equal if any(names(side) and names(side) <= answer for side in sides)]
    literals = [side.value for sides in about for side in sides if isinstance(side, ast.Constant)]
    return {float(value) for value in literals if isinstance(value, int | float) and value}


@pytest.mark.parametrize("lecture", LECTURES, ids=lambda lecture: lecture.name)
def test_the_text_below_a_prediction_does_not_state_its_answer(lecture: source.Lecture) -> None:
    assert numbers_given_away(lecture.notebook.cells) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("One run costs 18 million dollars.", ["18"]),
        ("It's 17.6, as expected.", ["17.6"]),
        ("Two paragraphs.\n\nDown here, too: 17.6.\n\nNot here: 17.6.", ["17.6"]),
        ("<details>17.6</details>\n\n## 18 · A heading", []),
        ("In 2018 it was less, and $10^{18}$ is another number.", []),
    ],
)
def test_an_answer_in_sight_is_noticed(text: str, found: list[str]) -> None:
    reveal = """\
        reconcile("the bill", guess, bill / 1e6, "million USD")
        assert round(bill / 1e6, 1) == 17.6 and hours == 2018
        """
    code = [new_code_cell(each) for each in ("guess = None  # million USD", textwrap.dedent(reveal))]
    assert numbers_given_away([*code, new_markdown_cell(text)]) == found


@pytest.mark.parametrize("lecture", LECTURES, ids=lambda lecture: lecture.name)
def test_the_panel_of_progress_knows_the_exercises(lecture: source.Lecture, built: Path) -> None:
    assert lecture.exercises[0].setup.endswith("\nshow_progress()")
    known = read_exercises(project.notebook_path(built / "notebooks", lecture.name))
    assert [(e.name, e.points) for e in known] == [(e.name, e.points) for e in lecture.exercises]
    assert all(e.title.startswith("Exercise ") and e.link for e in known)


def test_nothing_but_the_notebooks_is_released(built: Path) -> None:
    files = {path.name for path in (built / "release").rglob("*") if path.is_file()}
    assert files == {f"{lecture.name}.ipynb" for lecture in LECTURES}


def test_building_over_a_class_keeps_its_settings_and_submissions(tmp_path: Path) -> None:
    build.course_directory(tmp_path, seed=None)
    (tmp_path / "nbgrader_config.py").write_text("# mine\n")
    (tmp_path / "submitted" / "ada").mkdir(parents=True)
    build.course_directory(tmp_path, seed=None)
    assert (tmp_path / "nbgrader_config.py").read_text() == "# mine\n"
    assert (tmp_path / "submitted" / "ada").is_dir()

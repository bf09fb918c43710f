"""Notebooks are what their sources say, the same bytes every time. tests/setup/test_release.py scans them for leaks."""

import itertools
from pathlib import Path

import nbformat
import pytest

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
    stale = [spec.cells.name for spec in checks.specs(lecture) if checks.stale(spec)]
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
        if before.source.startswith("guess = None") and "nbgrader" not in cell.metadata:
            assert cell.metadata == FOLDED, f"the answer stands below the question:\n{cell.source}"
    assert any(cell.metadata == {} for cell in code), "what a lecture teaches stays open"


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

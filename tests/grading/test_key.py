"""What a result is a result of: everything that can change a point changes the key, and nothing else does."""

from __future__ import annotations

import dataclasses
import platform
import shutil
from collections.abc import Callable
from pathlib import Path

import hand_made
import pytest
from imports import imports, modules, reached

from autograder import project
from autograder.grading import key as keys
from autograder.grading import source
from autograder.grading.exercises import ProblemSet
from autograder.grading.key import DECIDING, code_digest, key

# What grades runs these, and all that they import sooner or later.
GRADERS = ("autograder.grading.judge", "autograder.grading.worker", "autograder.inside.forkserver")
EXCEPTED = {"autograder"}  # autograder/__init__.py: the class of errors that a person can mend


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the packages, to edit."""
    root = tmp_path_factory.mktemp("course")
    for package in ("autograder", "course_utils"):
        shutil.copytree(project.ROOT / package, root / package, ignore=shutil.ignore_patterns("__pycache__"))
    return root


def files(root: Path, *, deciding: bool) -> list[Path]:
    found = [path for path in sorted(root.rglob("*")) if path.is_file()]
    names = [path.relative_to(root).as_posix() for path in found]
    inside = tuple(f"{folder}/" for folder in DECIDING)
    # Students' checks are a part of their exercises: see the tests of the problems' digest.
    counts = [name.startswith(inside) and not name.startswith("course_utils/checks/") for name in names]
    return [path for path, one in zip(found, counts, strict=True) if one is deciding]


def edited(root: Path, path: Path) -> bytes:
    """The digest while one byte of a file is another one."""
    content = path.read_bytes()
    place = len(content) // 2
    path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :] if content else b"#")
    try:
        return code_digest(root)
    finally:
        path.write_bytes(content)


def test_a_byte_of_any_file_that_decides_changes_the_digest(copied: Path) -> None:
    before = code_digest(copied)
    found = files(copied, deciding=True)
    names = {path.relative_to(copied).as_posix() for path in found}
    assert len(names) > 50 and names >= {
        "autograder/inside/messages.py", "autograder/inside/isolation.py", "autograder/grading/judge.py",
        "autograder/grading/key.py", "course_utils/facts.py", "course_utils/napkin/planner.py",
    }  # fmt: skip
    assert [path for path in found if edited(copied, path) == before] == []
    assert code_digest(copied) == before


def test_a_byte_of_any_other_file_leaves_the_digest(copied: Path) -> None:
    before = code_digest(copied)
    found = files(copied, deciding=False)
    names = {path.relative_to(copied).as_posix() for path in found}
    assert names >= {
        "autograder/cli.py", "autograder/project.py", "autograder/records/report.py", "autograder/authoring/book.py",
        "autograder/records/templates/report.html", "course_utils/checks/matmul_flops.check",
    }  # fmt: skip
    assert [path for path in found if edited(copied, path) != before] == []


@pytest.mark.parametrize("folder", DECIDING)
def test_adding_renaming_or_removing_a_file_changes_the_digest(copied: Path, folder: str) -> None:
    seen = [code_digest(copied)]
    for name in ("added.py", "deeper/added.py", "table.csv"):
        path = copied / folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"")
        seen.append(code_digest(copied))
        path.rename(path.with_name(f"renamed{path.suffix}"))
        seen.append(code_digest(copied))
        path.with_name(f"renamed{path.suffix}").unlink()
        assert code_digest(copied) == seen[0]
    assert len(set(seen)) == 7
    shutil.rmtree(copied / folder / "deeper")


def test_two_files_that_change_places_change_the_digest(copied: Path) -> None:
    before = code_digest(copied)
    one, other = (copied / "autograder" / "grading" / name for name in ("pool.py", "cluster.py"))
    contents = one.read_bytes(), other.read_bytes()
    one.write_bytes(contents[1])
    other.write_bytes(contents[0])
    assert code_digest(copied) != before
    one.write_bytes(contents[0])
    other.write_bytes(contents[1])


def test_what_python_and_editors_leave_behind_does_not_change_the_digest(copied: Path) -> None:
    before = code_digest(copied)
    for name in ("__pycache__/judge.cpython-311.pyc", ".judge.py.swp", ".ipynb_checkpoints/judge.py"):
        path = copied / "autograder" / "grading" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"left")
        assert code_digest(copied) == before
        path.unlink()


def test_the_digest_is_the_same_in_another_folder(copied: Path, tmp_path: Path) -> None:
    assert code_digest(Path(shutil.copytree(copied, tmp_path / "elsewhere"))) == code_digest(copied)


def test_every_module_that_grading_imports_is_in_a_folder_that_decides() -> None:
    graph, places = imports(project.ROOT), modules(project.ROOT)
    grading = reached(GRADERS, graph)
    assert {"autograder.grading.cells", "autograder.inside.student", "course_utils.testing"} <= grading
    inside = tuple(project.ROOT / folder for folder in DECIDING)
    outside = {name for name in grading if not any(places[name].is_relative_to(folder) for folder in inside)}
    assert outside - EXCEPTED == set()


def test_the_key_is_made_of_the_submission_the_problems_the_code_and_the_versions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problems = source.read(project.SOLUTIONS / "00_napkin_math.py").problems
    more_points = dataclasses.replace(problems.exercises[0], points=problems.exercises[0].points + 1)
    changed = dataclasses.replace(problems, exercises=(more_points, *problems.exercises[1:]))
    made = [key(b"submission", problems), key(b"another", problems), key(b"submission", changed)]
    assert key(b"submission", dataclasses.replace(problems)) == made[0]

    def fresh() -> str:
        keys.grader.cache_clear()
        return key(b"submission", problems)

    try:
        assert fresh() == made[0]
        monkeypatch.setattr(keys, "version", lambda name: "9.9" if name == "torch" else "1.0")
        made.append(fresh())
        monkeypatch.setattr(keys, "version", lambda name: "9.9.1" if name == "torch" else "1.0")
        made.append(fresh())
        monkeypatch.setattr(platform, "python_version_tuple", lambda: ("3", "99", "1"))
        made.append(fresh())
        monkeypatch.setattr(platform, "python_version_tuple", lambda: ("3", "99", "2"))
        assert fresh() == made[-1], "a patch release of Python regrades nobody"
        monkeypatch.setattr(keys, "code_digest", lambda root: bytes(32))
        made.append(fresh())
    finally:
        monkeypatch.undo()
        keys.grader.cache_clear()
    assert len(set(made)) == len(made) and all(len(each) == 64 and int(each, 16) for each in made)


META = (
    '# %% nbgrader={{"grade": {}, "grade_id": "{}", "locked": {}, {}'
    '"schema_version": 3, "solution": {}, "task": false}}'
)
SOURCE = f"""\
# %% [markdown]
r\"\"\"
# A lecture

Its first sentence.
\"\"\"

# %%
import torch

# %%
shown = torch.ones(3)

# %% [markdown]
r\"\"\"
### Exercise 1 · Add one
\"\"\"

{META.format("false", "f", "false", "", "true")}
def f(x):
    ### BEGIN SOLUTION
    return x + 1
    ### END SOLUTION

{META.format("true", "test_f", "true", "", "false")}
check("f")

# %%
later = shown.sum()
"""


@pytest.fixture(autouse=True)
def checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exercise of SOURCE has a check beside the course's own, under the other name that it is given too."""
    folder = shutil.copytree(project.CHECKS, tmp_path / "checks")
    hand_made.write(folder, *(hand_made.check_of(name, 1, {1: 2}) for name in "fg"))
    monkeypatch.setattr(source, "CHECKS", folder)


def problems_of(text: str, name: str = "01_test") -> ProblemSet:
    return source.parse(Path(f"{name}.py"), text).problems


LEAVES: dict[str, Callable[[str], str]] = {
    "a letter of prose": lambda text: text.replace("first sentence", "last sentence"),
    "more prose": lambda text: text.replace("Its first sentence.", "Its first sentence.\n\nAnd a second one."),
    "a heading": lambda text: text.replace("Exercise 1 · Add one", "Exercise 2 · Add two"),
    "a cell of prose": lambda text: text.replace("# %%\nshown", '# %% [markdown]\n"""\nMore.\n"""\n\n# %%\nshown'),
    "a blank line between cells": lambda text: text.replace("# %%\nshown", "\n# %%\nshown"),
    "a tag": lambda text: text.replace("# %%\nlater", '# %% tags=["timed"]\nlater'),
}
CHANGES: dict[str, Callable[[str], str]] = {
    "the exercise's name": lambda text: text.replace('"f"', '"g"').replace('"test_f"', '"test_g"'),
    "the setup": lambda text: text.replace("import torch", "import torch, math"),
    "a comment in the setup": lambda text: text.replace("import torch", "import torch  # all of it"),
    "the solution": lambda text: text.replace("return x + 1", "return 1 + x"),
    "a demonstration": lambda text: text.replace("torch.ones(3)", "torch.ones(4)"),
    "a demonstration after the exercise": lambda text: text.replace("shown.sum()", "shown.mean()"),
    "one more demonstration": lambda text: text + "\n# %%\nlast = later\n",
    "the order of demonstrations": lambda text: (
        text.replace("shown = torch.ones(3)", "LATER").replace("later = shown.sum()", "shown = torch.ones(3)")
    ).replace("LATER", "later = shown.sum()"),
}


@pytest.mark.parametrize("what", LEAVES)
def test_prose_places_and_tags_leave_the_digest_of_the_problems(what: str) -> None:
    assert (text := LEAVES[what](SOURCE)) != SOURCE
    assert problems_of(text).digest == problems_of(SOURCE).digest


def test_an_exercise_that_moves_down_keeps_the_digest_although_its_line_changes() -> None:
    before, after = (problems_of(text) for text in (SOURCE, LEAVES["more prose"](SOURCE)))
    assert before.exercises[0].line != after.exercises[0].line and before.digest == after.digest


@pytest.mark.parametrize("what", CHANGES)
def test_every_part_of_an_exercise_or_demonstration_changes_the_digest_of_the_problems(what: str) -> None:
    assert (text := CHANGES[what](SOURCE)) != SOURCE
    assert problems_of(text).digest != problems_of(SOURCE).digest


def test_the_same_exercises_in_another_lecture_are_other_problems() -> None:
    assert problems_of(SOURCE).digest != problems_of(SOURCE, "02_test").digest


def test_every_field_of_an_exercise_but_its_place_is_in_the_digest() -> None:
    problems = problems_of(SOURCE)
    (exercise,) = problems.exercises
    other = {
        "name": "g",
        "points": 1.5,
        "setup": "pass",
        "solution": "pass",
        "line": 99,
        "packed": b"{}",
        "path": Path("elsewhere.py"),
    }
    assert other.keys() == {field.name for field in dataclasses.fields(exercise)}
    for field, value in other.items():
        changed = dataclasses.replace(problems, exercises=(dataclasses.replace(exercise, **{field: value}),))
        assert (changed.digest == problems.digest) is (field in ("line", "path")), field
    assert dataclasses.replace(problems, hidden={exercise.name: b"{}"}).digest != problems.digest


@pytest.mark.parametrize("path", source.lectures(project.SOLUTIONS), ids=lambda path: path.stem)
def test_a_letter_of_a_real_lectures_prose_leaves_its_digest_and_one_of_its_references_does_not(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    lecture = source.parse(path, text)
    prose = next(cell.source for cell in lecture.notebook.cells if cell.cell_type == "markdown").splitlines()[-1]
    changed = text.replace(prose, f"{prose} More.", 1)
    assert changed != text and source.parse(path, changed).problems.digest == lecture.problems.digest
    line = lecture.exercises[-1].solution.splitlines()[-2]
    changed = text.replace(line, f"{line}  # changed")
    assert changed != text and source.parse(path, changed).problems.digest != lecture.problems.digest

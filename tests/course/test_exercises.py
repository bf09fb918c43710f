"""Every exercise: its check against its reference, right and wrong programs, mutants and liars."""

import gc
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder import project
from autograder.authoring import checks, proving
from autograder.grading import source
from autograder.grading.exercises import Exercise
from autograder.inside.preload import preload

LECTURES = [source.read(path) for path in source.lectures(project.SOLUTIONS)]


EXERCISES = [
    pytest.param(lecture.name, exercise, id=f"{lecture.name}-{exercise.name}")
    for lecture in LECTURES
    for exercise in lecture.exercises
]


@pytest.fixture(autouse=True, scope="module")
def little_garbage() -> Iterator[None]:
    """Checks of memory collect garbage many thousands of times; spare them everything that was imported."""
    preload()
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.parametrize(("lecture", "exercise"), EXERCISES)
@pytest.mark.timeout(1200)
def test_the_check_fails_what_is_wrong_passes_what_is_right_and_names_the_mistake(
    lecture: str, exercise: Exercise
) -> None:
    """With 200 drawn inputs and the hidden cases of twenty seeds; `course check --draws 10000` tries more."""
    report = proving.prove(checks.spec_of(lecture, exercise))
    assert not report.problems, "\n".join(report.problems)
    assert report.mutants >= 3 and report.inputs >= 100
    assert checks.current(project.CHECKS / f"{exercise.name}.check", report.check), (
        f"students have an older check of {exercise.name}: run `course notebooks` and commit course_utils/checks/"
    )


def test_names_of_exercises_and_of_their_files_agree_and_are_unique() -> None:
    named = [(lecture.name, exercise.name) for lecture in LECTURES for exercise in lecture.exercises]
    files = {(path.parent.name, path.stem) for path in project.EXERCISES.glob("*/*.py")}
    assert set(named) == files
    assert len({name for _, name in named}) == len(named), "`check` knows an exercise by its name alone"
    assert {path.stem for path in project.CHECKS.glob("*.check")} == {name for _, name in named}


def test_what_requires_is_linted_where_programs_of_students_are_not(tmp_path: Path) -> None:
    """A program that does what students do may be as careless as they are."""
    for path in project.EXERCISES.glob("*/*.py"):
        text = re.split(r"^# %% ", path.read_text(encoding="utf-8"), maxsplit=1, flags=re.MULTILINE)[0]
        (tmp_path / f"{path.parent.name}_{path.name}").write_text(text.rstrip() + "\n", encoding="utf-8")
    rules = ["--isolated", "--target-version", "py311", "--select", "E,F,UP", "--ignore", "E501,E731"]
    command = [sys.executable, "-m", "ruff", "check", *rules, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout

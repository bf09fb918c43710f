"""Every exercise: its check against its reference, right and wrong programs, mutants and liars."""

import gc
import os
import random
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from autograder import project
from autograder.authoring import checks, proving
from autograder.grading import source
from autograder.grading.cells import run_cell
from autograder.grading.exercises import Exercise
from autograder.inside.preload import preload
from course_utils.testing import check
from course_utils.testing.rubric import Met

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


def surroundings() -> dict[str, Any]:
    """What the cells below a check share with it."""
    return {
        "gradient mode": torch.is_grad_enabled(),
        "inference mode": torch.is_inference_mode_enabled(),
        "default dtype": torch.get_default_dtype(),
        "default device": str(torch.get_default_device()),
        "threads": torch.get_num_threads(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "precision of products": torch.get_float32_matmul_precision(),
        "anomalies": torch.is_anomaly_enabled(),
        "autocast": torch.is_autocast_enabled("cpu"),
        "random numbers": (torch.get_rng_state().tolist(), str(np.random.get_state()), random.getstate()),
        "directory": os.getcwd(),
        "environment": dict(os.environ),
        "path": list(sys.path),
        "warnings": list(warnings.filters),
        "garbage": (gc.isenabled(), gc.get_threshold()),
        "streams": (sys.stdout, sys.stderr),
        "recursion limit": sys.getrecursionlimit(),
    }


@pytest.mark.parametrize("answer", ["stub", "solution"])
@pytest.mark.parametrize(("lecture", "exercise"), EXERCISES)
def test_a_check_leaves_torch_and_python_as_it_found_them(lecture: str, exercise: Exercise, answer: str) -> None:
    spec = checks.spec_of(lecture, exercise)
    names: dict[str, Any] = {}
    run_cell(spec.cells.setup, "setup", names)
    run_cell(getattr(exercise, answer), "answer", names)
    names["check"] = check
    before = surroundings()
    run_cell(f"rubric = check({exercise.name!r})", "check", names)
    after = surroundings()
    assert (names["rubric"].points > 0) is (answer == "solution")
    assert not {name: (value, after[name]) for name, value in before.items() if after[name] != value}


def test_names_of_exercises_and_of_their_files_agree_and_are_unique() -> None:
    named = [(lecture.name, exercise.name) for lecture in LECTURES for exercise in lecture.exercises]
    files = {(path.parent.name, path.stem) for path in project.EXERCISES.glob("*/*.py")}
    assert set(named) == files
    assert len({name for _, name in named}) == len(named), "`check` knows an exercise by its name alone"
    assert {path.stem for path in project.CHECKS.glob("*.check")} == {name for _, name in named}


def test_ignoring_one_of_two_properties_costs_no_requirement_about_the_other() -> None:
    [exercise] = [each.values[1] for each in EXERCISES if each.values[1].name == "bytes_copied"]
    same = "if x.device == device and x.dtype == dtype:"
    for ignores, unmet in (("dtype", ["another dtype", "0 if"]), ("device", ["another device"])):
        other = {"dtype": "device", "device": "dtype"}[ignores]
        code = exercise.solution.replace(same, f"if x.{other} == {other}:")
        assert code != exercise.solution
        rubric = checks.rubric("01_tensors", exercise, code)
        missed = [line.text for line in rubric.lines if line.met is not Met.YES]
        assert len(missed) == len(unmet) and all(map(str.startswith, missed, unmet)), missed
        assert rubric.points == 2 - 0.5 * len(unmet)

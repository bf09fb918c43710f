"""Every exercise with twenty seeds: its reference, its empty stub, its answer bank; and its mutants."""

import gc
from collections.abc import Iterator

import pytest

from autograder import project
from autograder.authoring import bank, mutants
from autograder.grading import source
from autograder.grading.exercises import Exercise
from autograder.inside.preload import preload

EXERCISES = [
    pytest.param(lecture.name, exercise, id=f"{lecture.name}-{exercise.name}")
    for lecture in (source.read(path) for path in source.lectures(project.SOLUTIONS))
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


def answers(lecture: str, exercise: Exercise) -> list[bank.Answer]:
    return bank.read_bank(bank.bank_path(project.ANSWERS, lecture, exercise.name))


@pytest.mark.parametrize(("lecture", "exercise"), EXERCISES)
@pytest.mark.timeout(1200)
def test_the_tests_judge_every_answer_of_the_bank_as_planned(lecture: str, exercise: Exercise) -> None:
    """For every seed: wrong answers and the stub are rejected, the former with the planned message, most of them as a
    known mistake; the reference and unusual right answers pass."""
    problems = bank.problems(exercise, answers(lecture, exercise), bank.SEEDS)
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(("lecture", "exercise"), EXERCISES)
@pytest.mark.timeout(1200)
def test_the_hidden_tests_reject_the_mutants(lecture: str, exercise: Exercise) -> None:
    """At least 95% of those that are not equivalent, and the bank explains the others."""
    report = mutants.run_mutants(exercise, answers(lecture, exercise))
    assert report.total >= 3
    assert not report.problems, "\n".join(report.problems)


def test_every_bank_belongs_to_an_exercise() -> None:
    known = {bank.bank_path(project.ANSWERS, *(p.values[0], p.values[1].name)) for p in EXERCISES}  # type: ignore[union-attr]
    strays = set(project.ANSWERS.glob("*/*.py")) - known
    assert not strays, f"no exercise of that name: {sorted(map(str, strays))}; rename or delete the file"

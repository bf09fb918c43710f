"""Every exercise: its reference, its empty stub, its answer bank, its mutants, and twenty seeds."""

import gc
from collections.abc import Iterator

import pytest

from autograder import project
from autograder.authoring import bank, mutants
from autograder.grading import in_process, source

EXERCISES = [
    pytest.param(lecture.name, exercise, id=f"{lecture.name}-{exercise.name}")
    for lecture in (source.read(path) for path in source.lectures(project.SOLUTIONS))
    for exercise in lecture.exercises
]
SEEDS = range(20)


@pytest.fixture(autouse=True, scope="module")
def little_garbage() -> Iterator[None]:
    """Checks of memory collect garbage, many thousand times: they need not look at all that was imported."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def answers(lecture: str, exercise: source.Exercise) -> list[bank.Answer]:
    return bank.read_bank(bank.bank_path(project.ANSWERS, lecture, exercise.name))


@pytest.mark.parametrize(("lecture", "exercise"), EXERCISES)
@pytest.mark.timeout(1200)
def test_bank(lecture: str, exercise: source.Exercise) -> None:
    """Wrong answers are rejected with the message that was planned, unusual right ones accepted, for every seed."""
    for seed in SEEDS:
        problems = bank.problems(exercise, answers(lecture, exercise), seed=seed)
        assert not problems, f"seed {seed}: " + "\n".join(problems)


@pytest.mark.parametrize(("lecture", "exercise"), EXERCISES)
@pytest.mark.timeout(1200)
def test_mutants(lecture: str, exercise: source.Exercise) -> None:
    """The hidden tests reject 95 % of the mutants that are not equivalent, and the bank explains the others."""
    report = mutants.run_mutants(exercise, answers(lecture, exercise))
    assert report.total >= 3
    assert not report.problems, "\n".join(report.problems)


@pytest.mark.parametrize(("lecture", "exercise"), EXERCISES)
def test_the_visible_tests_reject_the_stub(lecture: str, exercise: source.Exercise) -> None:
    verdict = in_process.judge_in_process(exercise, exercise.stub, hidden=False)
    assert not verdict.passed


def test_every_bank_belongs_to_an_exercise() -> None:
    known = {bank.bank_path(project.ANSWERS, *(p.values[0], p.values[1].name)) for p in EXERCISES}  # type: ignore[union-attr]
    strays = set(project.ANSWERS.glob("*/*.py")) - known
    assert not strays, f"no exercise of that name: {sorted(map(str, strays))}; rename or delete the file"


@pytest.mark.parametrize(("lecture", "exercise"), EXERCISES)
def test_most_wrong_answers_meet_named_mistakes(lecture: str, exercise: source.Exercise) -> None:
    """The student reads which mistake it is, not only that it is one."""
    wrong = [a for a in answers(lecture, exercise) if a.kind == "wrong"]
    named = [a for a in wrong if in_process.judge_in_process(exercise, a.code).mistake]
    assert len(named) >= len(wrong) / 2

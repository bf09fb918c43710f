"""docs/teaching.md is what the sources and solutions/teaching.toml give, and these don't contradict each other."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from autograder import project
from autograder.authoring import teaching
from autograder.grading import source

LECTURES = [source.read(path) for path in source.lectures(project.SOLUTIONS)]
TOPICS = teaching.topics(LECTURES)
KIT = teaching.read(project.KIT)
EXERCISES = {exercise.number: exercise for topic in TOPICS for exercise in topic.exercises}
SHORT, LONG = KIT.syllabi


def test_the_kit_and_the_lectures_agree() -> None:
    assert not (problems := teaching.problems(KIT, TOPICS)), "\n".join(problems)


def test_the_committed_page_is_what_they_give() -> None:
    assert project.TEACHING.read_text(encoding="utf-8") == teaching.page(KIT, TOPICS), (
        "docs/teaching.md is stale: run `course teaching` and commit the result"
    )


def test_every_exercise_is_in_and_about_half_are_essential() -> None:
    assert len(EXERCISES) == sum(len(lecture.exercises) for lecture in LECTURES)
    essential = [exercise for exercise in EXERCISES.values() if exercise.essential]
    assert 0.4 < len(essential) / len(EXERCISES) < 0.6
    assert all(any(exercise.essential for exercise in topic.exercises) for topic in TOPICS)


def test_what_an_exercise_needs_comes_from_its_statement() -> None:
    writing = EXERCISES["14.5"]
    assert writing.needs == ("13.2", "14.4") and writing.after == ("13_inference",)
    assert EXERCISES["13.2"].after == ("04_einops",)
    assert EXERCISES["5.7"].after == ()  # a lecture that comes later is a preview
    assert next(topic for topic in TOPICS if topic.name == "12_scale").after == (
        "06_gradients_and_6n", "08_optimizers", "10_mixed_precision", "11_memory",
    )  # fmt: skip


def test_every_exercise_says_on_which_lectures_it_builds_and_the_page_says_so_both_ways() -> None:
    lines = teaching.page(KIT, TOPICS).splitlines()
    rows = [line for line in lines if re.match(r"\| \[\d\d · .*\d\xa0min \|", line)]
    needed_by = {line[3:5]: line.removesuffix(" |").rpartition(" | ")[2] for line in rows}
    assert len(needed_by) == len(TOPICS)
    for each in EXERCISES.values():
        said = KIT.builds_on[each.lecture_name][each.name]
        assert said == sorted({*said}) and all(number < each.lecture_name for number in said)
        [row] = [line for line in lines if f"| `{each.name}` |" in line]
        assert re.findall(r"(?:\| |; )(\d\d)\b(?!\.)", row.rpartition(f"| {each.minutes} ")[2]) == said
    for number, users in needed_by.items():
        wanted = [each.number for each in EXERCISES.values() if number in KIT.builds_on[each.lecture_name][each.name]]
        assert users in (", ".join(wanted) or "–", f"{len(wanted)} exercises")


def test_the_page_has_no_line_of_a_solution() -> None:
    page = project.TEACHING.read_text(encoding="utf-8")
    lines = [line.strip() for lecture in LECTURES for each in lecture.exercises for line in each.solution.splitlines()]
    assert not [line for line in lines if len(line) > 30 and not line.startswith('"""') and line in page]


def test_short_of_time_only_essential_exercises_are_due_and_never_an_optional_one() -> None:
    assert {each.importance for each in EXERCISES.values() if SHORT.due(each)} == {"essential"}
    assert {each.importance for each in EXERCISES.values() if LONG.due(each)} == {"essential", ""}
    for topic in TOPICS:
        assert SHORT.minutes(topic) < LONG.minutes(topic) == topic.minutes


def with_exercise(number: str, **changes: object) -> list[teaching.Topic]:
    """The lectures with one exercise changed."""
    return [
        dataclasses.replace(
            topic,
            exercises=tuple(
                dataclasses.replace(each, **changes) if each.number == number else each  # type: ignore[arg-type]
                for each in topic.exercises
            ),
        )
        for topic in TOPICS
    ]


def with_syllabus(**changes: object) -> teaching.Kit:
    return dataclasses.replace(KIT, syllabi=(dataclasses.replace(SHORT, **changes),))  # type: ignore[arg-type]


def with_builds_on(lecture: str, **changes: list[str] | None) -> teaching.Kit:
    """The kit with what some exercises build on changed, or not said."""
    said = {name: each for name, each in (KIT.builds_on[lecture] | changes).items() if each is not None}
    return dataclasses.replace(KIT, builds_on={**KIT.builds_on, lecture: said})


def without_explanations(exercise: str) -> teaching.Kit:
    kept = {name: tuple(each for each in said if each.exercise != exercise) for name, said in KIT.explained.items()}
    return dataclasses.replace(KIT, explained=kept)


def swapped(first: str, second: str) -> tuple[tuple[str, ...], ...]:
    other = {first: second, second: first}
    return tuple(tuple(other.get(name, name) for name in week) for week in SHORT.weeks)


CONTRADICTIONS: dict[str, tuple[teaching.Kit, list[teaching.Topic], str]] = {
    "both": (KIT, with_exercise("1.1", optional=True), "exercise 1.1 is both essential and optional"),
    "essential, and what it needs isn't": (
        KIT, with_exercise("13.4", needs=("13.5",)), "exercise 13.4 is essential, but 13.5, which it needs, isn't",
    ),
    "required, and what it needs is optional": (
        KIT, with_exercise("2.2", needs=("2.5",)), "exercise 2.2 isn't optional, but 2.5, which it needs, is",
    ),
    "an exercise that doesn't exist": (
        KIT, with_exercise("2.2", needs=("2.9",)), "exercise 2.2 mentions exercise 2.9, which doesn't exist",
    ),
    "an essential exercise is left out": (
        with_syllabus(essential=False), with_exercise("0.1", optional=True), "exercise 0.1 is essential, but never due",
    ),
    "a lecture is left out": (
        with_syllabus(weeks=SHORT.weeks[:-1]), TOPICS, "Five weeks: it doesn't name every lecture once, in order",
    ),
    "lectures in another order": (
        with_syllabus(weeks=swapped("01_tensors", "02_dtypes")), TOPICS, "doesn't name every lecture once, in order",
    ),
    "due before what it builds on": (
        with_syllabus(weeks=swapped("13_inference", "04_einops")), TOPICS,
        "exercise 13.2 is due in week 2, before lecture 08_optimizers, which it builds on",
    ),
    "due before an exercise that it names": (
        KIT, with_exercise("1.1", needs=("14.1",)), "exercise 1.1 is due in week 1, before exercise 14.1, which it",
    ),
    "nothing said about what it builds on": (
        with_builds_on("08_optimizers", AdamW=None), TOPICS, "exercise 8.3 doesn't say which lectures it builds on",
    ),
    "a later lecture": (
        with_builds_on("02_dtypes", limits=["03"]), TOPICS, "exercise 2.2 says that it builds on lecture 03, which",
    ),
    "its own lecture": (
        with_builds_on("02_dtypes", limits=["02"]), TOPICS, "exercise 2.2 says that it builds on lecture 02, which",
    ),
    "a lecture that it names, and doesn't build on": (
        with_builds_on("14_capstone", generate=[]), TOPICS,
        "exercise 14.5 names lecture 13, which isn't among the lectures that it says it builds on: add 13",
    ),
    "a term, and no lecture": (
        with_builds_on("11_memory", chain_bytes=["01"]), TOPICS,
        "exercise 11.5 uses 'kernel', and the lecture that defines it isn't among the lectures that it says it builds "
        "on: add 05",
    ),
    "a week that is too full": (
        with_syllabus(hours=2), TOPICS, "minutes, but has only 120",
    ),
    "an unknown lecture": (
        dataclasses.replace(KIT, questions={**KIT.questions, "15_more": ()}), TOPICS, "there is no lecture 15_more",
    ),
    "too few questions": (
        dataclasses.replace(KIT, questions={**KIT.questions, "01_tensors": KIT.questions["01_tensors"][:2]}), TOPICS,
        "01_tensors has 2 questions to discuss, not 3 to 5",
    ),
    "an exercise without an explanation": (
        without_explanations("stochastic_round"), TOPICS, "none of the mistakes in exercise 2.6 is explained",
    ),
    "a sentence that no bank has": (
        KIT, with_exercise("2.4", mistakes=()), "02_dtypes: gap has no mistake 'Your result is eps, which is the gap",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_contradiction_is_named(name: str) -> None:
    kit, topics, says = CONTRADICTIONS[name]
    assert any(says in problem for problem in teaching.problems(kit, topics)), teaching.problems(kit, topics)


@pytest.mark.parametrize(
    "heading",
    [
        "### Exercise 1.1 · How many bytes?",
        "### Exercise 1.1 · How many bytes? &nbsp; essential &nbsp; ★☆☆ &nbsp; 5 minutes",
        "### How many bytes? &nbsp; ★☆☆ &nbsp; 5 minutes",
    ],
)
def test_a_heading_that_cannot_be_read_is_an_error_with_a_remedy(heading: str) -> None:
    path = source.lectures(project.SOLUTIONS)[1]
    text = re.sub(r"^### Exercise 1\.1 .*$", heading, path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    with pytest.raises(teaching.KitError, match=r"01_tensors.py: the heading of tensor_bytes can't be read\n  → write"):
        teaching.topics([source.parse(path, text)])


@pytest.mark.parametrize("damage", ["[", "", "[lecture]\n[[syllabus]]\nweeks = []"])
def test_a_damaged_file_is_an_error_that_names_it(damage: str, tmp_path: Path) -> None:
    (path := tmp_path / "teaching.toml").write_text(damage)
    with pytest.raises(teaching.KitError, match=r"teaching.toml: .*\n  → "):
        teaching.read(path)


def test_a_sentence_of_a_bank_shows_its_characters() -> None:
    plain = teaching._plain("a * b_c, `d * e_f`, *this* and 2**n < $5 [x]")
    assert plain == r"a \* b\_c, `d * e_f`, *this* and 2\*\*n \< \$5 \[x\]"

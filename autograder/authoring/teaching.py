"""The teaching kit: turns the sources and solutions/teaching.toml into docs/teaching.md.

The sources say how important and how hard each exercise is (its heading), which earlier exercises, lectures and terms
its statement names, and which mistakes its check recognizes. The file has what a person has to write: in which week
each lecture is due, which earlier lectures each exercise builds on, how to explain mistakes, and questions to discuss.
"""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder import CourseError
from autograder.grading.source import Lecture
from course_utils import home

from . import checks, glossary

QUESTIONS = (3, 5)  # the least and the most questions to discuss for each lecture
_HEADING = re.compile(
    r"^### Exercise (\d+\.\d+) · ((?:(?!&nbsp;).)+?)( \(optional\))? &nbsp; "
    r"(★[★☆]{2}) &nbsp; (essential &nbsp; )?(\d+) minutes$",
    re.MULTILINE,
)
_EXERCISE = re.compile(r"\bexercises?\s+(\d+\.\d+)(?:\s+and\s+(\d+\.\d+))?", re.IGNORECASE)
_LECTURE = re.compile(r"\blectures?\s+(\d\d)(?:\s+and\s+(\d\d))?", re.IGNORECASE)
_AS_IT_IS = re.compile(r"(`[^`]+`|(?<![\w*])\*\w[^*]*\*(?![\w*]))")
# Terms of the glossary that are everyday words too, or mean something else in another lecture.
_AMBIGUOUS = {"accumulate", "bia", "cache", "checkpoint", "decode", "dense", "key", "peak", "rank", "target",
              "value", "warm-up", "zero"}  # fmt: skip
_MANY = 12  # exercises; more of them aren't listed but counted
_YOURS = re.compile(r"\byour\s+`(\w+)`", re.IGNORECASE)


class KitError(CourseError):
    """The kit can't be read; the message says where and what to do."""


@dataclass(frozen=True)
class KitExercise:
    """An exercise, according to its lecture's text.

    ``needs`` are the numbers of the exercises that its statement mentions, ``after`` the names of earlier lectures, and
    ``terms`` the terms of those lectures that it uses, each with the lecture that defines it. ``mistakes`` are the
    sentences for the mistakes that its check recognizes.
    """

    name: str
    lecture_name: str
    number: str
    title: str
    stars: str
    essential: bool
    optional: bool
    minutes: int
    needs: tuple[str, ...]
    after: tuple[str, ...]
    terms: tuple[tuple[str, str], ...]
    mistakes: tuple[str, ...]

    @property
    def importance(self) -> str:
        """Its importance according to its heading: "essential", "optional", or "" if it's neither."""
        return "essential" if self.essential else "optional" if self.optional else ""


@dataclass(frozen=True)
class Topic:
    """A lecture: its minutes, required and optional, and the earlier lectures that its text refers to."""

    name: str
    title: str
    minutes: int
    optional: int
    after: tuple[str, ...]
    exercises: tuple[KitExercise, ...]


@dataclass(frozen=True)
class Syllabus:
    """The lectures of each week. ``essential``: only essential exercises are due. ``hours`` is the limit for a week."""

    title: str
    about: str
    hours: float
    essential: bool
    weeks: tuple[tuple[str, ...], ...]

    def due(self, exercise: KitExercise) -> bool:
        """Whether this course asks for the exercise."""
        return exercise.essential if self.essential else not exercise.optional

    def minutes(self, topic: Topic) -> int:
        """How long a lecture takes in this course: everything that isn't optional, except exercises that aren't due."""
        left_out = (each.minutes for each in topic.exercises if not each.optional and not self.due(each))
        return topic.minutes - sum(left_out)


@dataclass(frozen=True)
class Explained:
    """A mistake that an exercise's check recognizes (its sentence), and how to explain it."""

    exercise: str
    mistake: str
    explain: str


@dataclass(frozen=True)
class KitQuestion:
    """A question to discuss, and what a good answer says."""

    ask: str
    answer: str


@dataclass(frozen=True)
class Kit:
    """The content of teaching.toml. ``builds_on``: the numbers of earlier lectures, by lecture and exercise."""

    syllabi: tuple[Syllabus, ...]
    builds_on: dict[str, dict[str, list[str]]]
    explained: dict[str, tuple[Explained, ...]]
    questions: dict[str, tuple[KitQuestion, ...]]


def read(path: Path) -> Kit:
    """Read the kit's hand-written part. Raises KitError if it doesn't fit this module's classes."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
        lectures: dict[str, Any] = tables["lecture"]
        return Kit(
            tuple(Syllabus(**{**each, "weeks": tuple(map(tuple, each["weeks"]))}) for each in tables["syllabus"]),
            {name: about.get("builds_on", {}) for name, about in lectures.items()},
            {name: tuple(Explained(**each) for each in about["explain"]) for name, about in lectures.items()},
            {name: tuple(KitQuestion(**each) for each in about["discuss"]) for name, about in lectures.items()},
        )
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise KitError(f"{path}: {type(error).__name__}: {error}\n  → compare with its other entries") from None


def topics(lectures: Sequence[Lecture]) -> list[Topic]:
    """What the sources say about the lectures. Raises KitError for an exercise with a malformed heading."""
    numbers = {lecture.name.partition("_")[0]: lecture.name for lecture in lectures}
    found, defined = [], list[tuple[re.Pattern[str], str]]()
    for lecture in lectures:
        texts = [cell.source for cell in lecture.notebook.cells if cell.cell_type == "markdown"]
        title = texts[0].splitlines()[0].removeprefix("# ")
        minutes, optional = map(home.rounded, home.times(lecture.notebook.cells))
        after = _earlier("\n\n".join(texts), lecture.name, numbers)
        exercises = tuple(_exercises(lecture, numbers, defined))
        found.append(Topic(lecture.name, title, minutes, optional, after, exercises))
        for each in glossary.definitions(lecture):
            if (term := glossary.key(each.term)) not in _AMBIGUOUS:
                pattern = re.compile(rf"(?<![\w-]){re.escape(term)}s?(?![\w-])", re.IGNORECASE)
                defined.append((pattern, lecture.name))
    return found


def _exercises(
    lecture: Lecture, numbers: dict[str, str], defined: Sequence[tuple[re.Pattern[str], str]]
) -> Iterator[KitExercise]:
    cells = lecture.notebook.cells
    places = {cell.id: place for place, cell in enumerate(cells)}
    seen: dict[str, str] = {}  # name → number
    for spec in checks.specs(lecture):
        name = spec.cells.name
        texts = [cell.source for cell in cells[: places[name]] if cell.cell_type == "markdown"]
        text = "\n\n".join(texts)
        if not (heads := list(_HEADING.finditer(text))) or heads[-1][1] in seen.values():
            raise KitError(
                f"{lecture.path}: the heading of {name} can't be read\n"
                "  → write it as `### Exercise 1.2 · Title &nbsp; ★★☆ &nbsp; essential &nbsp; 10 minutes`; "
                "if it isn't essential, leave that out"
            )
        number, title, is_optional, stars, essential, minutes = heads[-1].groups()
        seen[name] = number
        statement = text[heads[-1].end() :]
        named = _named(_EXERCISE, statement) | {seen[each] for each in _YOURS.findall(statement) if each in seen}
        needs = tuple(sorted(named - {number}, key=_order))
        whole = f"{statement}\n{spec.cells.stub}"
        yield KitExercise(
            name, lecture.name, number, title, stars, bool(essential), bool(is_optional), int(minutes), needs,
            _earlier(statement, lecture.name, numbers),
            tuple((each, word[0]) for term, each in defined if (word := term.search(whole))),
            tuple(dict.fromkeys(program.note for program in spec.mistakes)),
        )  # fmt: skip


def _earlier(text: str, name: str, numbers: dict[str, str]) -> tuple[str, ...]:
    """The lectures before this one that a text mentions, directly or through an exercise. (Later ones are previews.)"""
    found = _named(_LECTURE, text)
    found |= {f"{int(each.partition('.')[0]):02}" for each in _named(_EXERCISE, text)}
    return tuple(numbers[each] for each in sorted(found) if each in numbers and numbers[each] < name)


def _named(what: re.Pattern[str], text: str) -> set[str]:
    """The numbers that a text mentions, alone or as two joined by "and"."""
    return {each for match in what.finditer(text) for each in match.groups() if each}


def _order(number: str) -> tuple[int, ...]:
    return tuple(map(int, number.split(".")))


def problems(kit: Kit, lectures: Sequence[Topic]) -> list[str]:
    """Messages about what is missing, contradictory, or refers to something nonexistent; empty if there's nothing."""
    found = []
    names = [topic.name for topic in lectures]
    exercises = {each.number: each for topic in lectures for each in topic.exercises}
    for each in exercises.values():
        if each.essential and each.optional:
            found.append(f"exercise {each.number} is both essential and optional")
        for number in each.needs:
            if (needed := exercises.get(number)) is None:
                found.append(f"exercise {each.number} mentions exercise {number}, which doesn't exist")
            elif each.essential and not needed.essential:
                found.append(f"exercise {each.number} is essential, but {number}, which it needs, isn't")
            elif needed.optional and not each.optional:
                found.append(f"exercise {each.number} isn't optional, but {number}, which it needs, is")
        found += [f"exercise {each.number} {problem}" for problem in _of_dependencies(kit, each, names)]
    for syllabus in kit.syllabi:
        found += [f"{syllabus.title}: {problem}" for problem in _of_syllabus(syllabus, lectures, exercises)]
    for unknown in sorted(kit.questions.keys() - set(names)):
        found.append(f"there is no lecture {unknown}")
    for topic in lectures:
        if not QUESTIONS[0] <= (count := len(kit.questions.get(topic.name, ()))) <= QUESTIONS[1]:
            found.append(f"{topic.name} has {count} questions to discuss, not {QUESTIONS[0]} to {QUESTIONS[1]}")
        banks = {each.name: each.mistakes for each in topic.exercises}
        explained = kit.explained.get(topic.name, ())
        for each in topic.exercises:
            if each.name not in {said.exercise for said in explained}:
                found.append(f"none of the mistakes in exercise {each.number} is explained")
        for said in explained:
            if said.mistake not in banks.get(said.exercise, ()):
                found.append(f"{topic.name}: {said.exercise} has no mistake {said.mistake!r}")
    return found


def _of_dependencies(kit: Kit, exercise: KitExercise, names: Sequence[str]) -> Iterator[str]:
    said = kit.builds_on.get(exercise.lecture_name, {}).get(exercise.name)
    if said is None:
        yield "doesn't say which lectures it builds on: if there are none, write an empty list"
        return
    earlier = [name[:2] for name in names if name < exercise.lecture_name]
    for number in (each for each in said if each not in earlier):
        yield f"says that it builds on lecture {number}, which isn't an earlier one"
    used = {name: f"uses {term!r}, and the lecture that defines it" for name, term in reversed(exercise.terms)}
    used |= {name: f"names lecture {name[:2]}, which" for name in exercise.after}
    for name, what in sorted(used.items()):
        if name[:2] not in said:
            yield f"{what} isn't among the lectures that it says it builds on: add {name[:2]}"


def _of_syllabus(syllabus: Syllabus, lectures: Sequence[Topic], exercises: dict[str, KitExercise]) -> Iterator[str]:
    if list(itertools.chain(*syllabus.weeks)) != [topic.name for topic in lectures]:
        yield "it doesn't name every lecture once, in order"
    topics = {topic.name: topic for topic in lectures}
    week_of = {name: number for number, names in enumerate(syllabus.weeks, 1) for name in names if name in topics}
    for number, names in enumerate(syllabus.weeks, 1):
        minutes = sum(syllabus.minutes(topics[name]) for name in names if name in topics)
        if minutes > 60 * syllabus.hours:
            yield f"week {number} takes {minutes} minutes, but has only {60 * syllabus.hours:g}"
    never = len(syllabus.weeks) + 1
    for each in exercises.values():
        week = week_of.get(each.lecture_name, never)
        if each.essential and (week == never or not syllabus.due(each)):
            yield f"exercise {each.number} is essential, but never due"
        if syllabus.due(each):
            known = (exercises[number] for number in each.needs if number in exercises)
            needed = {exercise.lecture_name: f"exercise {exercise.number}" for exercise in known}
            needed |= {name: f"lecture {name}" for name in (*topics[each.lecture_name].after, *each.after)}
            for name, what in sorted(needed.items()):
                if week_of.get(name, never) > week:
                    yield f"exercise {each.number} is due in week {week}, before {what}, which it builds on"


_INTRODUCTION = """\
# Teaching the course

For instructors and teaching assistants. `course teaching` writes this page from the lectures, the exercises' files and
`solutions/teaching.toml`, and fails if they contradict each other. It contains no solutions. What a check says about a
mistake appears here in the same words that students read. For one mistake in each exercise, this page adds how to
explain it; the other sentences, at the end of each lecture, have to speak for themselves.

## How important, and how hard

An exercise's heading says both. The stars say how hard it is, from ★☆☆ to ★★★. *Essential* means that you can't skip it
without missing one of the course's main ideas: the answer to the lecture's opening question rests on it, or another
essential exercise builds on it. *Optional* exercises, and sections whose headings say so, are for those who want to go
further. Of the {exercises} exercises, {essential} are essential and {optional} optional. The other {rest} are worth
doing if there's time.
"""

_GRADING = """\
## Grading only what is due

A lecture's points include all of its exercises, and so do the grades for Canvas and Moodle. If your course leaves
exercises out, compute its grades from `course export . 01_tensors --format csv --format questions`. The second file,
`exports/01_tensors.questions.csv`, has a line for each student and exercise. A student's grade, computed from the lines
of the exercises that are due, is

> sum of `points` ÷ sum of `worth`

The names in its column `exercise` are those in the tables below. Where the points are empty, the column `state` says
why: the student handed in nothing, for example, or somebody has to look at the work first. These points don't include
the late penalty. If your class has one, take off the percentage in the column `late` of `exports/01_tensors.csv`. With
`attempt = "best"`, the best attempt is still the one with the most points in all.
Enter these grades in Canvas or Moodle yourself, and tell students which exercises count, because their feedback pages
show the points for all of them.

"""

_DEPENDS = """\
## What builds on what

Exercises are graded independently, so a student who is stuck on one can go on to the next. Only 14.5 suggests using
code from another exercise, the `KVCache` of 13.2, and students can solve it without that. Lectures do build on each
other: an earlier lecture is listed if the text refers to it. *Needed by* lists the later exercises that build on a
lecture: if you leave it out, or a student has missed it, introduce its terms before these. The tables below say which
terms an exercise's statement uses.

| lecture | time | optional | builds on | needed by |
|---|--:|--:|---|---|"""


def page(kit: Kit, lectures: Sequence[Topic]) -> str:
    """docs/teaching.md as text."""
    exercises = {each.number: each for topic in lectures for each in topic.exercises}
    count = {kind: sum(each.importance == kind for each in exercises.values()) for kind in ("essential", "optional")}
    rest = len(exercises) - sum(count.values())
    lines = [_INTRODUCTION.format(exercises=len(exercises), rest=rest, **count)]
    for syllabus in kit.syllabi:
        lines += _syllabus(syllabus, {topic.name: topic for topic in lectures})
    lines += [_GRADING + _DEPENDS]
    for topic in lectures:
        after = ", ".join(name[:2] for name in topic.after)
        users = [each.number for each in exercises.values() if topic.name[:2] in _builds_on(kit, each)]
        needed = f"{len(users)} exercises" if len(users) > _MANY else ", ".join(users) or "–"
        minutes = f"{_minutes(topic.minutes)} | {_minutes(topic.optional)}"
        lines += [f"| {_link(topic)} | {minutes} | {after or '–'} | {needed} |"]
    for topic in lectures:
        lines += ["", f"## {topic.title}", ""]
        lines += ["| exercise | name | importance | difficulty | minutes | builds on |"]
        lines += ["|---|---|---|---|--:|---|"]
        lines += [_row(each, exercises, _builds_on(kit, each)) for each in topic.exercises]
        lines += ["", f"### Explaining mistakes in {topic.name[:2]}", ""]
        for said in kit.explained.get(topic.name, ()):
            lines += [f"- `{said.exercise}`: “{_plain(said.mistake)}” {said.explain.strip()}"]
        lines += ["", f"### Questions to discuss in {topic.name[:2]}", ""]
        for number, question in enumerate(kit.questions.get(topic.name, ()), 1):
            lines += [f"{number}. {question.ask.strip()}", "", f"   *A good answer:* {question.answer.strip()}", ""]
        lines += [f"### Everything that the checks in {topic.name[:2]} recognize"]
        for each in topic.exercises:
            lines += ["", f"<details><summary>{each.number} {each.name}: {len(each.mistakes)} sentences</summary>", ""]
            lines += [f"- {_plain(sentence)}" for sentence in each.mistakes]
            lines += ["", "</details>"]
    return "\n".join(lines) + "\n"


def _syllabus(syllabus: Syllabus, topics: dict[str, Topic]) -> Iterator[str]:
    yield from (f"## {syllabus.title}", "", syllabus.about.strip(), "")
    yield from ("| week | lectures | exercises due | time | optional |", "|--:|---|---|--:|--:|")
    for number, names in enumerate(syllabus.weeks, 1):
        lectures = [topics[name] for name in names]
        due = (", ".join(each.number for each in topic.exercises if syllabus.due(each)) for topic in lectures)
        minutes = home.rounded(sum(map(syllabus.minutes, lectures)))
        optional = _minutes(sum(topic.optional for topic in lectures))
        links = "<br>".join(map(_link, lectures))
        time = f"{minutes // 60}\u00a0h\u00a0{minutes % 60:02}"
        yield f"| {number} | {links} | {'<br>'.join(due)} | {time} | {optional} |"
    yield ""


def _builds_on(kit: Kit, exercise: KitExercise) -> list[str]:
    return kit.builds_on.get(exercise.lecture_name, {}).get(exercise.name, [])


def _row(exercise: KitExercise, exercises: dict[str, KitExercise], builds_on: Sequence[str]) -> str:
    place = f"../solutions/exercises/{exercise.lecture_name}/{exercise.name}.py"
    needs = [f"{number} `{exercises[number].name}`" for number in exercise.needs]
    for lecture in builds_on:
        terms = ", ".join(term for name, term in exercise.terms if name[:2] == lecture)
        needs.append(f"{lecture} ({terms})" if terms else lecture)
    return (
        f"| [{exercise.number} · {exercise.title}]({place}) | `{exercise.name}` | {exercise.importance} | "
        f"{exercise.stars} | {exercise.minutes} | {'; '.join(needs) or '–'} |"
    )


def _link(topic: Topic) -> str:
    return f"[{topic.title}](../notebooks/{topic.name}/{topic.name}.ipynb)"


def _minutes(minutes: int) -> str:
    return f"{minutes}\u00a0min" if minutes else ""


def _plain(sentence: str) -> str:
    """A mistake's sentence as Markdown that shows it literally, except for `code` and *emphasis*."""
    parts = _AS_IT_IS.split(sentence)
    return "".join(part if i % 2 else re.sub(r"([\\*_\[\]<>$#|~])", r"\\\1", part) for i, part in enumerate(parts))

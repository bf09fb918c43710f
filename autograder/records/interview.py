"""Three questions about each student's own work, for a two-minute conversation, on one page for the interviewer.

One is about a mistake (or, if there's none, about what the answer does right), one about a line of the student's code,
one about a prediction. Whoever wrote the work can answer them at once, and whoever didn't learns something by trying.
The same work always gets the same questions.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from autograder.grading import submission
from autograder.grading.exercises import Exercise
from autograder.grading.marks import Mark, Result
from autograder.grading.source import Lecture
from autograder.grading.text import clean, one_line
from course_utils.units import raised

from . import alike, pages
from .feedback import highlighted
from .folder import ClassFolder
from .roster import Student, called
from .syntax import parsed

QUESTIONS = 3
_CODE_LIMIT = 5_000  # characters of an answer that are shown
_GUESS = re.compile(r"guess = (.{1,200}?)(?:\s{1,99}#\s{0,9}(.{0,200}))?")
_PREDICT = "**Predict.**"
_PROSE = re.compile(r"(?:> ?)?[\w*`(“]")
_SECTION = re.compile(r"^#{1,3} (.+)$", re.MULTILINE)
_IN_MATH = {r"\cdot": "·", r"\times": "×", r"\varepsilon": "ε", r"\sqrt": "√", r"\sin": "sin", r"\cos": "cos"}


@dataclass(frozen=True)
class Question:
    """A question, the code that it's about, and what the interviewer should know."""

    text: str
    code: str = ""
    known: str = ""


def write(
    folder: ClassFolder,
    lecture: Lecture,
    found: Mapping[str, Result],
    student: str = "",
    students: Mapping[str, Student] = {},
) -> tuple[Path, int, list[alike.Alike]]:
    """Write the page, about one student or about everybody who has points, with the names that ``students`` have.

    Safe to repeat. Returns its path, how many students are on it, and the identical answers that it lists.
    """
    problems = folder.problems(lecture)
    asked: dict[str, list[Question]] = {}
    answers: dict[str, dict[str, str]] = {}
    files: dict[str, str] = {}
    for name, result in found.items():
        handed_in = folder.read(name, lecture.name)
        read = submission.parse(handed_in, problems)
        if result.points is None or not read.cells:
            continue
        answers[name], files[name] = read.answers(problems), handed_in.digest
        if student in ("", name):
            draw = random.Random(f"{lecture.name} {one_line(name)} {handed_in.digest}")
            asked[name] = questions(lecture, result, read, draw)
    equal = [each for each in alike.find(lecture, found, answers, files) if student in ("", *each.students)]
    titles = pages.exercise_titles(lecture)
    text = (
        pages.environment()
        .get_template("interview.html")
        .render(
            title=pages.title(lecture),
            students=[
                {
                    "name": called(name, students),
                    "questions": [
                        {"text": one_line(q.text), "code": highlighted(q.code[:_CODE_LIMIT]), "known": clean(q.known)}
                        for q in theirs
                    ],
                }
                for name, theirs in asked.items()
            ],
            alike=[
                {
                    "title": titles[each.exercise] if each.exercise else "The whole notebook",
                    "students": ", ".join(called(name, students) for name in each.students),
                    "what": f"{'right' if each.right else 'wrong'} answer" if each.exercise else "file, byte for byte",
                    "published": each.published,
                    "code": highlighted(each.code[:_CODE_LIMIT]),
                }
                for each in equal
            ],
        )
    )
    path = folder.root / "interviews" / (f"{lecture.name}.{student}.html" if student else f"{lecture.name}.html")
    pages.write(path, text)
    return path, len(asked), equal


def questions(lecture: Lecture, result: Result, read: submission.Submission, draw: random.Random) -> list[Question]:
    """Three questions about one student's work (none if the lecture has no exercises)."""
    answers = read.answers(lecture.problems)
    written = [e for e in lecture.exercises if answers.get(e.name, e.stub).strip() not in ("", e.stub.strip())]
    marks = {mark.exercise: mark for mark in result.marks}
    asked: list[Question] = []
    about = ""
    if first := _about_marks([e for e in written if e.name in marks], marks, answers, draw):
        about, question = first
        asked.append(question)
    others = [e for e in written if e.name != about] or written
    if line := _about_a_line(others, answers, draw):
        asked.append(line)
    predictions = list(_about_predictions(lecture, read))
    made = [question for question, there in predictions if there]
    if made or predictions:
        asked.append(draw.choice(made or [question for question, _ in predictions]))
    untouched = [e for e in lecture.exercises if e not in written]
    draw.shuffle(untouched)
    for exercise in untouched[: QUESTIONS - len(asked)]:
        wanted = exercise.check.requirements[0].text
        asked.append(
            Question(
                f"You haven't answered {exercise.name}. How would you start? The first thing it asks for is: {wanted}."
            )
        )
    # A lecture with a single exercise and no predictions leaves gaps.
    if len(asked) < QUESTIONS and (line := _about_a_line(written, answers, draw)) and line not in asked:
        asked.append(line)
    for exercise in lecture.exercises[:1]:
        code = answers.get(exercise.name, exercise.stub)
        asked += [
            Question(f"Besides the calls that the tests show: what would you try {exercise.name} with, and why?", code),
            Question(f"Explain {exercise.name} line by line. Which part was the hardest to get right?", code),
        ]
    return asked[:QUESTIONS]


def _about_marks(
    written: list[Exercise], marks: Mapping[str, Mark], answers: Mapping[str, str], draw: random.Random
) -> tuple[str, Question] | None:
    """A mistake if one was recognized, else a requirement that isn't met, else one that is."""
    if not written:
        return None
    tested = [e for e in written if marks[e.name].tests is None]  # where no person knew better than the tests
    recognized = [e for e in tested if marks[e.name].mistake]
    failed = [e for e in tested if any(met != "met" for _, _, met in marks[e.name].requirements)]
    exercise = draw.choice(recognized or failed or tested or written)
    mark, name = marks[exercise.name], exercise.name
    if mark.tests is not None:
        text = f"How does your {name} work? Which line was the hardest to get right?"
    elif mark.mistake:
        text = f"The tests say about your {name}: “{mark.mistake}” Which line is that about, and what would you change?"
    elif unmet := [text for text, _, met in mark.requirements if met != "met"]:
        text = f"Your {name} doesn't do this yet: {draw.choice(unmet)}. For which input does it fail, and why?"
    else:
        texts = [text for text, _, _ in mark.requirements] or [r.text for r in exercise.check.requirements]
        text = f"Your {name} does this: {draw.choice(texts)}. Which lines ensure that? What would happen without them?"
    return name, Question(text, answers[name], "" if mark.hidden else mark.message)


def _about_a_line(written: list[Exercise], answers: Mapping[str, str], draw: random.Random) -> Question | None:
    """A question about what a line of an answer is for, and what it does with an input that the student has seen."""
    lines = [(exercise, line) for exercise in written for line in parsed(answers[exercise.name]).lines]
    if not lines:
        return None
    exercise, (number, line) = draw.choice(lines)
    text = f"Line {number} of your {exercise.name} is `{line}`. What is it for?"
    known = ""
    cases = [case for r in exercise.check.requirements if not r.probe for case in r.cases if "value" in case.expected]
    if cases:
        from course_utils.testing.describing import describe  # with PyTorch

        case = draw.choice(cases)
        arguments = [*map(describe, case.args), *(f"{key}={describe(value)}" for key, value in case.kwargs.items())]
        text += f" What does it do in {exercise.name}({', '.join(arguments)})?"
        known = f"The whole call should give {describe(case.expected['value'])}."
    return Question(text, answers[exercise.name], known)


def _about_predictions(lecture: Lecture, read: submission.Submission) -> Iterator[tuple[Question, bool]]:
    """A question about each of the lecture's predictions, and whether the student has made that prediction."""
    prompts: list[tuple[str, str, str]] = []
    text = section = ""
    for cell in lecture.notebook.cells:
        if cell.cell_type == "markdown":
            text += "\n\n" + cell.source
            section = [section, *_SECTION.findall(cell.source)][-1]
        elif (match := _GUESS.fullmatch(cell.source.strip())) and _PREDICT in text:
            before, _, prompt = text.rpartition(_PREDICT)
            known = f"The question and its answer are in the lecture, in “{_as_text(section)}”."
            if prose := [each for each in before.split("\n\n") if _PROSE.match(each)]:
                known += f"\nBefore it, the lecture says: {_as_text(prose[-1])}"
            prompts.append((_as_text(prompt), match[2] or "", known))
            text = ""
    guesses = [match[1] for cell in read.cells if (match := _GUESS.fullmatch(cell.text.strip()))]
    if len(guesses) != len(prompts):  # a cell was deleted or added, so we can't tell which is which
        guesses = ["None"] * len(prompts)
    for (prompt, unit, known), guess in zip(prompts, guesses, strict=True):
        if guess == "None":
            yield Question(f"What would you predict, and how do you get there? {prompt}", known=known), False
        else:
            text = (
                f"You predicted {guess} {unit}: how did you get there, and how close was it? The question was: {prompt}"
            )
            yield Question(text, known=known), True


def _as_text(markdown: str) -> str:
    """A lecture's text as one line without its markup, apart from backticks."""
    bare = re.sub("^> ?", "", markdown, flags=re.MULTILINE).replace("&nbsp;", " ")
    parts = re.split(r"(`[^`]*`)", " ".join(bare.split()))
    for place in range(0, len(parts), 2):
        text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", parts[place])
        text = re.sub(r"(\*{1,2})(\S(?:.*?\S)?)\1", r"\2", text)
        parts[place] = re.sub(r"\$([^$]+)\$", lambda found: _math(found[1]), text)
    return "".join(parts)


def _math(latex: str) -> str:
    """A short formula as text: ``10^{-5}`` is 10⁻⁵."""
    text = re.sub(r"\^(?:\{(-?\d+)\}|(\d))", lambda power: raised(power[1] or power[2]), latex)
    for name, sign in _IN_MATH.items():
        text = text.replace(name, sign)
    return text.replace("{", "(").replace("}", ")")

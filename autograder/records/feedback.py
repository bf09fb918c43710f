"""A page for each student: points, their own code, and what its check reports and advises. Nothing else.

It's built from an allowlist. Everything from a submission is shown as text: HTML and characters that hide or reorder
text are escaped, and the page allows no scripts.
"""

from __future__ import annotations

import io
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2
from markupsafe import Markup, escape
from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
from pygments.lexers import PythonLexer  # type: ignore[import-untyped]

from autograder.grading import submission
from autograder.grading.exercises import Exercise, Question
from autograder.grading.marks import Mark, Result, State
from autograder.grading.source import Lecture
from autograder.grading.text import clean, one_line
from autograder.grading.text import notes as limited

from . import exchange, pages
from .due import BY_CANVAS, ON_TIME_BY, UNCLEAR
from .folder import ClassFolder, concerns_one, listed
from .roster import Student, called

_COLORING = 2.0  # seconds for highlighting one cell, which usually takes a hundredth of that

_HEADLINES = {
    State.NOT_SUBMITTED: "No submission of yours was found.",
    State.QUEUED: "Handed in, but not graded yet.",
    State.FAILED_HERE: "Not graded yet: something failed on the grading side.",
}
_NOTES = {
    State.NOT_SUBMITTED: "If you have handed something in, tell your instructor.",
    State.NEEDS_REVIEW: "A person will look at this submission; the points may change.",
    State.FAILED_HERE: "This is not your fault and costs no points. You do not need to hand in again.",
}
_SIGNS = {"met": "✓", "not tried yet": "○"}  # for values of course_utils.testing.rubric.Met; all others get ✗
ON_OTHER_INPUTS = "It passes the tests that you can see, but fails on an input that they don't try."
LATE = "Canvas says that this came in late. Nothing was taken off automatically; your instructor decides about it"
LATE_BUT = "Canvas says that this came in late, but it's on time if it came in by {}. Nothing was taken off"
NO_NOTEBOOK = "Something was handed in, but no notebook that can be graded."
CHANGED = "Your notebook, or the grading, has changed since these points were given: it will be graded again."


@dataclass(frozen=True)
class Page:
    """Where a student's page is, and whether its points are for the current submission.

    ``problem`` says why it couldn't be written, for instance because something else is in its place.
    """

    path: Path
    current: bool
    problem: str = ""


def write(
    folder: ClassFolder, lecture: Lecture, found: Mapping[str, Result], students: Mapping[str, Student] = {}
) -> Iterator[Page]:
    """Write everybody's page, with the names that ``students`` have; safe to repeat."""
    template = pages.environment().get_template("feedback.html")
    problems = folder.problems(lecture)
    for student, result in found.items():
        read = folder.read(student, lecture.name)
        handed_in = None if result.state is State.NOT_SUBMITTED else submission.parse(read, problems)
        current = True
        if handed_in is not None and handed_in.cells and result.points is not None:
            current = read.key(problems) == result.key
        target = folder.feedback(student, lecture.name)
        problem = ""
        try:
            absent = result.state is State.NOT_SUBMITTED and read.nothing
            instead = folder.instead(student, lecture.name) if absent else []
            name = called(student, students)
            pages.write(target, page(template, lecture, result, handed_in, name, current=current, instead=instead))
            exchange.pass_on(folder, student, lecture.name, target.parent)
        except OSError as error:
            if not concerns_one(error):
                raise
            problem = f"the page of {one_line(student)} cannot be written: {one_line(str(error))}"
        yield Page(target, current, problem)


def page(
    template: jinja2.Template,
    lecture: Lecture,
    result: Result,
    handed_in: submission.Submission | None,
    name: str,
    *,
    current: bool = True,
    instead: Sequence[str] = (),
) -> str:
    """One student's page, for somebody called ``name``.

    ``current`` is False if the result isn't for ``handed_in`` as it is now; ``instead`` names what was handed in
    instead of a notebook.
    """
    graded = result.points is not None
    marks = {mark.exercise: mark for mark in result.marks}
    titles = pages.exercise_titles(lecture)
    answers = handed_in.answers(lecture.problems) if handed_in else {}
    worth = lecture.points
    notes = [_NOTES[result.state]] if result.state in _NOTES else []
    headline = _HEADLINES.get(result.state) or f"{result.points:g} of {worth:g} points"
    if instead:
        headline = NO_NOTEBOOK
        notes = [one_line(f"It was: {listed(instead)}. Hand in {lecture.name}.ipynb itself.")]
    notes += [] if current else [CHANGED]
    notes += [f"You may hand this in until {result.until}."] if result.until else []
    notes += [f"These are the points of {result.attempt}."] if result.attempt and graded else []
    notes += [f"{_capitalized(result.unread)}. Hand it in again."] if result.unread else []
    late, _, last = result.late.partition(ON_TIME_BY)
    if late == BY_CANVAS:
        late = LATE_BUT.format(last) if last else LATE
    notes += [f"{_capitalized(late)}."] if late and late != UNCLEAR else []
    # Only what is wrong with the file: remedies, paths and the grader's notes are for the instructor.
    findings = [f"Your notebook: {finding.problem}." for finding in (handed_in.findings if handed_in else ())]
    notes += limited(findings)
    readable = handed_in is None or bool(handed_in.cells)  # otherwise the notes say it once, for all exercises
    notes += [] if readable or not findings else ["Nothing in it could be graded. Please hand it in again."]
    exercises = [
        _exercise(e, titles[e.name], marks.get(e.name) if graded else None, answers.get(e.name, ""))
        for e in lecture.parts
    ]
    for each in exercises:
        each["shown"] = bool((handed_in or graded) and (readable or not findings or each["given"] or each["comment"]))
    return template.render(
        title=pages.title(lecture),
        student=name,
        headline=headline,
        notes=notes,
        comment=result.comment,
        graded=graded,
        handed_in=handed_in is not None,
        exercises=exercises,
    )


def _capitalized(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _exercise(exercise: Exercise | Question, title: str, mark: Mark | None, code: str) -> dict[str, object]:
    full = mark is not None and mark.points >= exercise.points
    waits = mark is not None and mark.open and mark.tests is None
    by_hand = isinstance(exercise, Question)
    facts, advice = split(mark.message if mark else "")
    if mark is not None and mark.hidden:
        facts = ON_OTHER_INPUTS  # the advice is the requirement's own, so it reveals nothing about the input
    return {
        "title": title,
        "points": f"{mark.points:g}" if mark and not waits else "–",
        "worth": f"{exercise.points:g}",
        "given": "A person will give these points." if waits else "" if by_hand else _given(mark),
        "comment": mark.comment if mark else "",
        "verdict": "✓" if full else "✗" if mark and not by_hand else "",
        "word": "" if by_hand else ": right" if full else ": not yet right" if mark else "",
        "requirements": [
            {"sign": _SIGNS.get(met, "✗"), "word": met, "text": one_line(text), "points": f"{points:g}"}
            for text, points, met in (mark.requirements if mark else ())
        ],
        "facts": facts,
        "advice": advice,
        "code": clean(pages.shown(code, prose=True), keep="\n\t") if by_hand else highlighted(code),
        "written": by_hand,
        "shortened": pages.shortened(code, prose=by_hand),
    }


def _given(mark: Mark | None) -> str:
    """A sentence saying that a person gave these points, if the tests gave others; or ""."""
    if mark is None or mark.tests is None or mark.tests == mark.points:
        return ""
    return f"A person gave these points; the tests gave {mark.tests:g}."


def highlighted(code: str) -> Markup:
    """Python code as escaped HTML with Pygments' ``<span class=…>`` tags, or none if highlighting takes too long."""
    if not code.strip():
        return Markup()
    text = clean(pages.shown(code), keep="\n\t")
    end = time.process_time() + _COLORING
    tokens = []
    for token in PythonLexer(stripnl=False).get_tokens(text):
        if time.process_time() > end:
            return escape(text)
        tokens.append(token)
    written = io.StringIO()
    HtmlFormatter(nowrap=True).format(tokens, written)  # it escapes all text
    return Markup(written.getvalue())


def split(message: str) -> tuple[str, str]:
    """What a check reports (call, got, expected), and its advice, which is the lines indented by two spaces."""
    facts: list[str] = []
    advice: list[str] = []
    for text in message.splitlines():
        (advice if text.startswith("  ") and text[2:3].strip() else facts).append(text)
    return "\n".join(facts).strip("\n"), " ".join(text.strip() for text in advice)

"""The judge's side of grading: runs our test cells here, and asks the student's process what its code does.

A test cell runs unchanged. The names that the solution cell defines are stand-ins; `observe` sends the name (or a
probe's source) with the arguments to the student's process and judges the plain data that comes back.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from course_utils.testing import Mismatch, Observation, observing_elsewhere

from . import bank, sandbox, source


@dataclass(frozen=True)
class Mark:
    """What an exercise earned: ``points`` of ``worth``; ``message`` says why not, ``mistake`` which known one."""

    exercise: str
    points: float
    worth: float
    message: str = ""
    mistake: str | None = None


@dataclass
class Grading:
    """Marks of one submission, in the lecture's order; ``notes`` are for a person: what ended, hung, or was damaged."""

    marks: list[Mark] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class TestError(BaseException):
    """A test cell did what cannot be graded from another process: a fault of ours, never the student's."""


class _StandIn:
    """Stands for a function or class of the student's in a test cell. It can be observed, and nothing else."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, *_: object, **__: object) -> None:
        raise TestError(f"a test called {self.__name__} itself; it must observe it")


def grade(lecture: source.Lecture, answers: dict[str, str], box: sandbox.Sandbox) -> Grading:
    """Grade one submission: ``answers`` maps exercises to the text of their solution cells.

    The cells run in order in one process, each exercise's tests after its own cell, as in a notebook. If that process
    ends or hangs, the exercise at hand gets nothing, and the others go on in a fresh one without its cell.
    """
    grading = Grading()
    lost: set[str] = set()
    waiting = list(lecture.exercises)
    while waiting:
        with box.conversation() as talk:
            at: source.Exercise | None = None
            try:
                _run(talk, lecture.exercises[0].setup, "setup")
                for text in _demonstrations(lecture, answers):
                    _run(talk, text, "lecture")
                for exercise in lecture.exercises:
                    if exercise.name in lost:
                        continue
                    again = exercise not in waiting
                    if not again:
                        at = exercise
                    stopped = _run(talk, answers.get(exercise.name, ""), exercise.name)
                    if not again:
                        grading.marks.append(_mark(exercise, _judge(exercise, talk), stopped))
                        waiting.remove(exercise)
            except sandbox.Gone as reason:
                broken = at or waiting[0]
                lost.add(broken.name)
                if broken in waiting:
                    waiting.remove(broken)
                    message = f"✗ {broken.name}\n  Your code did not come to an end: {reason}."
                    grading.marks.append(Mark(broken.name, 0.0, broken.points, message))
                grading.notes.append(f"{broken.name}: {reason}")
    order = [exercise.name for exercise in lecture.exercises]
    grading.marks.sort(key=lambda mark: order.index(mark.exercise))
    return grading


def _run(talk: sandbox.Conversation, text: str, title: str) -> str:
    """Run a cell there; what stopped it, or nothing."""
    error = _answer(talk, {"run": text, "title": title}, {"error", "printed"}).get("error")
    return error[:500] if isinstance(error, str) else ""


def _answer(talk: sandbox.Conversation, request: dict[str, Any], fields: set[str]) -> dict[str, Any]:
    answer = talk.ask(request)
    if not isinstance(answer, dict) or not answer.keys() <= fields or not answer:
        raise sandbox.Gone("the answer is not of the kind that was asked for")
    return answer


def _judge(exercise: source.Exercise, talk: sandbox.Conversation) -> bank.Verdict:
    """Run the test cell here, with every observation made there."""

    def ask(target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Observation:
        request: dict[str, Any] = {"args": args, "kwargs": kwargs}
        if isinstance(target, _StandIn):
            request["call"] = target.__name__
        elif (probed := getattr(target, "__wrapped__", None)) is not None:
            request |= {"call": probed.__name__, "probe": textwrap.dedent(inspect.getsource(probed))}
        else:
            raise TestError(f"a test observed {target!r}, which is neither the student's nor a probe")
        answer = _answer(talk, request, {"seen", "mismatch", "missing", "unsendable"})
        match answer:
            case {"seen": Observation() as seen}:
                return seen
            case {"mismatch": str(text)}:
                raise Mismatch(text[:4000])
            case {"missing": str()}:
                raise NameError(f"name '{request['call']}' is not defined")
            case {"unsendable": str(text)}:
                raise Mismatch(f"✗ {request['call']}\n  What came back cannot be looked at: {text[:500]}.")
        raise sandbox.Gone("the answer is not of the kind that was asked for")

    names: dict[str, Any] = {}
    with bank.quietly(), observing_elsewhere(ask):
        bank.run_cell(exercise.setup, "setup", names)
        names |= {name: _StandIn(name) for name in defined(exercise.solution)}
        return bank.run_tests(exercise.tests, names)


def _mark(exercise: source.Exercise, verdict: bank.Verdict, stopped: str) -> Mark:
    if verdict.passed:
        return Mark(exercise.name, exercise.points, exercise.points)
    message = verdict.message + (f"\n  Your cell stopped with {stopped}" if stopped else "")
    return Mark(exercise.name, 0.0, exercise.points, message, verdict.mistake)


def defined(text: str) -> set[str]:
    """Names that a cell defines at its top level; none where it cannot be read."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        else:
            found |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return found


def _used(text: str) -> set[str]:
    try:
        return {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()


def _demonstrations(lecture: source.Lecture, answers: dict[str, str]) -> list[str]:
    """The lecture's own cells that define a name which the answers use and nothing else defines."""
    own = {exercise.name for exercise in lecture.exercises} | {f"test_{e.name}" for e in lecture.exercises}
    cells = [c.source for c in lecture.notebook.cells if c.cell_type == "code" and c.id not in own][1:]
    have = set(vars(builtins)) | defined(lecture.exercises[0].setup)
    for text in answers.values():
        have |= defined(text)
    wanted = {name for text in answers.values() for name in _used(text)} - have
    chosen: list[int] = []
    while True:
        found = [i for i, text in enumerate(cells) if i not in chosen and defined(text) & wanted]
        if not found:
            return [cells[i] for i in sorted(chosen)]
        chosen.append(found[-1])
        have |= defined(cells[found[-1]])
        wanted = (wanted | _used(cells[found[-1]])) - have

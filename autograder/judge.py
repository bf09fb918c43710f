"""The judge's side of grading: runs our test cells here, and asks the student's process what its code does.

A test cell runs unchanged. The names that the solution cell defines are stand-ins; `observe` sends the name (or a
probe's source) with the arguments to the student's process and judges the plain data that comes back.
"""

from __future__ import annotations

import builtins
import contextlib
import inspect
import re
import textwrap
import time
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from course_utils.testing import Mismatch, Observation, difference, freeze, observing_elsewhere, tensors

from . import bank, sandbox, source
from .conversation import Conversation
from .results import Mark
from .warm import defined, used

_OUR_SECONDS = 60.0  # for the lecture's own cells: a machine under load is no fault of the student's


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
    ends or hangs, the exercise at hand gets nothing, and the others go on in a fresh one without its cell. Raises
    :class:`sandbox.SandboxError` where it ends before any of the student's code has run.
    """
    work = _Work(lecture, answers, list(lecture.exercises))
    grading = Grading(notes=[f"{name}: {why}" for name, text in answers.items() if (why := _suspicious(text))])
    end = time.monotonic() + box.limits.seconds_in_all
    while work.waiting:
        reason: sandbox.Gone | None = None
        work.at = None
        with box.conversation(end) as talk:
            try:
                _converse(talk, work, grading)
            except sandbox.Gone as gone:
                reason = gone
        if reason is None:
            break
        why = talk.ended or str(reason)
        if work.at is not None:
            work.lost.add(work.at.name)
            grading.notes.append(f"{work.at.name}: {why}")
            if work.at in work.waiting:
                work.waiting.remove(work.at)
                message = f"✗ {work.at.name}\n  Your code did not come to an end: {why}."
                grading.marks.append(Mark(work.at.name, 0.0, work.at.points, message))
        elif time.monotonic() < end:
            raise sandbox.SandboxError(f"the sandbox failed before it came to the student's code: {why}")
        if time.monotonic() >= end:
            for exercise in work.waiting:
                message = f"✗ {exercise.name}\n  The exercises before it used up all the time that there was."
                grading.marks.append(Mark(exercise.name, 0.0, exercise.points, message))
                grading.notes.append(f"{exercise.name}: no time was left for it")
            break
    order = [exercise.name for exercise in lecture.exercises]
    grading.marks = sorted(map(_cleaned, grading.marks), key=lambda mark: order.index(mark.exercise))
    grading.notes = [clean(note) for note in grading.notes]
    return grading


@dataclass
class _Work:
    """A submission on its way: what waits for a mark, whose cell ended the process, the exercise at hand."""

    lecture: source.Lecture
    answers: dict[str, str]
    waiting: list[source.Exercise]
    lost: set[str] = field(default_factory=set)
    at: source.Exercise | None = None
    names: dict[str, tuple[set[str], set[str]]] = field(default_factory=dict)  # that each answer defines, and uses


def _converse(talk: Conversation, work: _Work, grading: Grading) -> None:
    """Run the cells in a fresh process and mark what waits. Raises Gone; then ``work.at`` is the exercise at hand."""
    for exercise in work.lecture.exercises:
        if exercise.name not in work.names and exercise.name not in work.lost:
            work.at = exercise  # already reading a cell may take a parser for ever, or to its end
            work.names[exercise.name] = _names(talk, work.answers.get(exercise.name, ""))
    work.at = None
    _run(talk, work.lecture.exercises[0].setup, "setup", _OUR_SECONDS)
    for text in _demonstrations(work.lecture, list(work.names.values())):
        _run(talk, text, "lecture", _OUR_SECONDS)
    for exercise in work.lecture.exercises:
        if exercise.name in work.lost:
            continue
        work.at = exercise
        stopped = _run(talk, work.answers.get(exercise.name, ""), exercise.name)
        if exercise in work.waiting:
            grading.marks.append(_mark(exercise, _judge(exercise, talk), stopped))
            work.waiting.remove(exercise)


def _names(talk: Conversation, text: str) -> tuple[set[str], set[str]]:
    answer = _answer(talk, {"names": text}, {"defined", "used"})
    found = [answer.get(kind) for kind in ("defined", "used")]
    if not all(isinstance(names, list) and all(isinstance(name, str) for name in names) for names in found):
        raise sandbox.Gone("the answer is not of the kind that was asked for")
    return set(found[0] or ()), set(found[1] or ())


def _run(talk: Conversation, text: str, title: str, seconds: float | None = None) -> str:
    """Run a cell there; what stopped it, or nothing."""
    error = _answer(talk, {"run": text, "title": title}, {"error", "printed"}, seconds).get("error")
    return error[:500] if isinstance(error, str) else ""


def _answer(
    talk: Conversation, request: dict[str, Any], fields: set[str], seconds: float | None = None
) -> dict[str, Any]:
    answer = talk.ask(request, seconds)
    if not isinstance(answer, dict) or not answer.keys() <= fields or not answer:
        raise sandbox.Gone("the answer is not of the kind that was asked for")
    return answer


def _judge(exercise: source.Exercise, talk: Conversation) -> bank.Verdict:
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
                now = talk.asked()
                before, after = ({**dict(enumerate(a)), **k} for a, k in ((args, kwargs), (now["args"], now["kwargs"])))
                return _checked(replace(seen, call=clean(seen.call, 1000)), before, after)
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


def _checked(seen: Observation, before: dict[Any, Any], after: dict[Any, Any]) -> Observation:
    """An observation with what the arguments' own memory says of it: what it changed, and whose view it is."""
    mutated = [
        label
        for label in before
        if label in seen.mutated or difference(freeze(after[label]), freeze(before[label]), exact=True)
    ]
    shares = [label for label in before if label in seen.shares and _shows(seen, after[label])]
    return replace(seen, mutated=mutated, shares=shares)


def _shows(seen: Observation, argument: Any) -> bool:
    """Whether the value is what its strides and offset show of an argument. True where it is no tensor."""
    value = seen.value
    if not isinstance(value, torch.Tensor):
        return True
    for tensor in tensors(argument):
        with contextlib.suppress(Exception):  # whatever a made-up shape leads to
            assert seen.offset is not None and seen.stride is not None
            view = torch.empty(0, dtype=value.dtype)
            view.set_(tensor.untyped_storage(), seen.offset, value.shape, seen.stride)
            if difference(view, value, exact=True) is None:
                return True
    return False


def _mark(exercise: source.Exercise, verdict: bank.Verdict, stopped: str) -> Mark:
    if verdict.passed:
        return Mark(exercise.name, exercise.points, exercise.points)
    message = verdict.message + (f"\n  Your cell stopped with {stopped}" if stopped else "")
    return Mark(exercise.name, 0.0, exercise.points, message, verdict.mistake)


_ODD = re.compile(
    r"ctypes|_getframe|__(?:globals|code|subclasses|builtins|closure|getattribute|bases|mro|loader|traceback)__|f_back|"
    r"/proc\b|\bcourse_utils\b[ .]+(?:import )?testing|sys\.(?:modules|meta_path|path|settrace|setprofile)|"
    r"\b(?:subprocess|multiprocessing|threading|socket|atexit|signal|resource|pickle|marshal|mmap|gc|autograder)\b|"
    r"\bos\.(?:write|read|open|kill\w*|fork\w*|_exit|dup2?|close\w*|pipe2?|exec\w+|environ|symlink|system|popen)\b|"
    r"\bbuiltins\b|__import__|\bimportlib\b"
)


def _suspicious(text: str) -> str:
    """What a person should look at in an answer, whatever it earned: it reaches for what no exercise needs."""
    found = sorted(set(_ODD.findall(text)))
    return f"its code uses {', '.join(found[:5])}, which no answer needs; read it" if found else ""


def clean(text: str, limit: int = 4000) -> str:
    """Text that anything can store and a terminal can print: no surrogates, no control or direction marks, not long."""
    text = text[:limit] + ("…" if len(text) > limit else "")
    if text.isascii() and text.isprintable():
        return text
    text = text.encode("utf-8", "replace").decode("utf-8")
    return "".join(
        c if c == "\n" or unicodedata.category(c) not in ("Cc", "Cf") else "\N{REPLACEMENT CHARACTER}" for c in text
    )


def _cleaned(mark: Mark) -> Mark:
    return replace(mark, message=clean(mark.message), mistake=None if mark.mistake is None else clean(mark.mistake))


def _demonstrations(lecture: source.Lecture, names: list[tuple[set[str], set[str]]]) -> list[str]:
    """The lecture's own cells that define a name which the answers use and nothing else defines."""
    own = {exercise.name for exercise in lecture.exercises} | {f"test_{e.name}" for e in lecture.exercises}
    cells = [c.source for c in lecture.notebook.cells if c.cell_type == "code" and c.id not in own][1:]
    have = set(vars(builtins)) | defined(lecture.exercises[0].setup)
    have |= set().union(*(defines for defines, _ in names))
    wanted = set().union(*(uses for _, uses in names)) - have
    chosen: list[int] = []
    while True:
        found = [i for i, text in enumerate(cells) if i not in chosen and defined(text) & wanted]
        if not found:
            return [cells[i] for i in sorted(chosen)]
        chosen.append(found[-1])
        have |= defined(cells[found[-1]])
        wanted = (wanted | used(cells[found[-1]])) - have

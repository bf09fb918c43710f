"""The judge's side of grading: runs our test cells here, and asks the student's process what its code does.

A test cell runs unchanged. The names that the solution cell defines are stand-ins; `observe` sends the name (or a
probe's source) with the arguments to the student's process and judges the plain data that comes back.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import inspect
import re
import textwrap
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import torch

from autograder.inside.messages import Call, Mismatched, Missing, Names, Ran, ReadNames, Request, Run, Seen, Unsendable
from autograder.inside.names import defined, used
from course_utils.testing import Mismatch, Observation, difference, freeze, observing_elsewhere, tensors

from .cells import quietly, run_cell, run_tests
from .conversation import Conversation, Gone
from .exercises import Exercise, ProblemSet
from .marks import Mark, Verdict
from .sandbox import Sandbox, SandboxError
from .text import MESSAGE_LIMIT, clean

_OUR_SECONDS = 60.0  # for the lecture's own cells: a machine under load is no fault of the student's
_A = TypeVar("_A", Ran, Names)


class TestError(BaseException):
    """A test cell did what cannot be graded from another process: a fault of ours, never the student's."""


class _StandIn:
    """Stands for a function or class of the student's in a test cell. It can be observed, and nothing else."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, *_: object, **__: object) -> None:
        raise TestError(f"a test called {self.__name__} itself; it must observe it")


@dataclass
class _Work:
    """A submission on its way through the judge.

    ``waiting`` are the exercises without a mark, ``at`` is the one at hand, and ``lost`` are those whose cell ended a
    process. ``names`` has, for each answer, the names that it defines and those that it uses.
    """

    problems: ProblemSet
    answers: Mapping[str, str]
    waiting: list[Exercise]
    marks: list[Mark] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)
    at: Exercise | None = None
    names: dict[str, Names] = field(default_factory=dict)


def grade(problems: ProblemSet, answers: Mapping[str, str], box: Sandbox) -> tuple[list[Mark], list[str]]:
    """Grade one submission: ``answers`` maps exercises to the text of their solution cells.

    Returns a mark for each exercise, in order, and notes for a person: what ended, hung, or should be looked at. All
    of it is clean text.

    The cells run in order in one process, each exercise's tests after its own cell, as in a notebook. If that process
    ends or hangs, the exercise at hand gets nothing, and the others go on in a fresh one without its cell. Raises
    :class:`SandboxError` where it ends before any of the student's code has run.
    """
    work = _Work(problems, answers, list(problems.exercises))
    work.notes += [f"{name}: {why}" for name, text in answers.items() if (why := _suspicious(text))]
    end = time.monotonic() + box.limits.seconds_in_all
    while work.waiting:
        gone: Gone | None = None
        work.at = None
        with box.conversation(end) as talk:
            try:
                _converse(talk, work)
            except Gone as error:
                gone = error
        if gone is None:
            break
        why = talk.ended or str(gone)
        if work.at is not None:
            work.lost.add(work.at.name)
            work.notes.append(f"{work.at.name}: {why}")
            if work.at in work.waiting:
                work.waiting.remove(work.at)
                message = f"✗ {work.at.name}\n  Your code did not come to an end: {why}."
                work.marks.append(Mark(work.at.name, 0.0, work.at.points, message))
        elif time.monotonic() < end:
            raise SandboxError(f"the sandbox failed before it came to the student's code: {why}")
        if time.monotonic() >= end:
            for exercise in work.waiting:
                message = f"✗ {exercise.name}\n  The exercises before it used up all the time that there was."
                work.marks.append(Mark(exercise.name, 0.0, exercise.points, message))
                work.notes.append(f"{exercise.name}: no time was left for it")
            break
    order = [exercise.name for exercise in problems.exercises]
    marks = sorted(map(_cleaned, work.marks), key=lambda mark: order.index(mark.exercise))
    return marks, [clean(note, limit=MESSAGE_LIMIT) for note in work.notes]


def _cleaned(mark: Mark) -> Mark:
    mistake = None if mark.mistake is None else clean(mark.mistake, limit=MESSAGE_LIMIT)
    return replace(mark, message=clean(mark.message, limit=MESSAGE_LIMIT), mistake=mistake)


def _converse(talk: Conversation, work: _Work) -> None:
    """Run the cells in a fresh process and mark what waits. Raises Gone; then ``work.at`` is the exercise at hand."""
    exercises = work.problems.exercises
    for exercise in exercises:
        if exercise.name not in work.names and exercise.name not in work.lost:
            work.at = exercise  # even reading a cell may keep a parser busy for ever, or crash it
            work.names[exercise.name] = _ask(talk, ReadNames(work.answers.get(exercise.name, "")), Names)
    work.at = None
    _ask(talk, Run(exercises[0].setup, "setup"), Ran, _OUR_SECONDS)
    for text in demonstrations(work.problems, list(work.names.values())):
        _ask(talk, Run(text, "lecture"), Ran, _OUR_SECONDS)
    for exercise in exercises:
        if exercise.name in work.lost:
            continue
        work.at = exercise
        ran = _ask(talk, Run(work.answers.get(exercise.name, ""), exercise.name), Ran)
        if exercise in work.waiting:
            work.marks.append(_mark(exercise, _judge(exercise, talk), ran.error[:500]))
            work.waiting.remove(exercise)


def _ask(talk: Conversation, request: Request, kind: type[_A], seconds: float | None = None) -> _A:
    """An answer of the kind that the request asks for; any other means that the process is not ours any more."""
    answer = talk.ask(request, seconds)
    if not isinstance(answer, kind):
        raise Gone("the answer is not of the kind that was asked for")
    return answer


def _judge(exercise: Exercise, talk: Conversation) -> Verdict:
    """Run the test cell here, with every observation made there."""

    def ask(target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Observation:
        if isinstance(target, _StandIn):
            call = Call(target.__name__, args, kwargs)
        elif (probed := getattr(target, "__wrapped__", None)) is not None:
            call = Call(probed.__name__, args, kwargs, textwrap.dedent(inspect.getsource(probed)))
        else:
            raise TestError(f"a test observed {target!r}, which is neither the student's nor a probe")
        match talk.ask(call):
            case Seen(seen):
                return _checked(replace(seen, call=clean(seen.call, limit=1000)), call, talk.asked())
            case Mismatched(text):
                raise Mismatch(text[:MESSAGE_LIMIT])
            case Missing():
                raise NameError(f"name '{call.name}' is not defined")
            case Unsendable(reason):
                raise Mismatch(f"✗ {call.name}\n  What came back cannot be looked at: {reason[:500]}.")
        raise Gone("the answer is not of the kind that was asked for")

    names: dict[str, Any] = {}
    with quietly(), observing_elsewhere(ask):
        run_cell(exercise.setup, "setup", names)
        names |= {name: _StandIn(name) for name in _defines(exercise.solution)}
        return run_tests(exercise.tests, names)


def _checked(seen: Observation, call: Call, now: Request) -> Observation:
    """An observation with what the arguments' own memory says of it: what the call changed, and whose view it is.

    ``now`` is the call as it is after it was made: the student's process had its tensors in shared memory, so they show
    what happened to them, whatever that process says. What it denies counts all the same, and a share that it claims
    counts only if the value is what that argument's memory holds there.
    """
    assert isinstance(now, Call)
    before, after = ({**dict(enumerate(one.args)), **one.kwargs} for one in (call, now))
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


def _mark(exercise: Exercise, verdict: Verdict, stopped: str) -> Mark:
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


@functools.lru_cache(maxsize=1024)
def _defines(text: str) -> frozenset[str]:
    """As `defined`, for cells of ours: the same ones come with every submission."""
    return frozenset(defined(text))


def demonstrations(problems: ProblemSet, names: list[Names]) -> list[str]:
    """The lecture's own cells that define a name which the answers use and nothing else defines.

    Such a cell may use a name that an earlier cell defines, so one may lead to another.
    """
    cells = problems.demonstrations
    have = set(vars(builtins)) | _defines(problems.exercises[0].setup)
    have |= set().union(*(each.defined for each in names))
    wanted = set().union(*(each.used for each in names)) - have
    chosen: list[int] = []
    while True:
        found = [i for i, text in enumerate(cells) if i not in chosen and _defines(text) & wanted]
        if not found:
            return [cells[i] for i in sorted(chosen)]
        chosen.append(found[-1])
        have |= _defines(cells[found[-1]])
        wanted = (wanted | used(cells[found[-1]])) - have

"""The judge's side of grading: asks the student's process what its code does, and compares the answers.

For each case of a check it sends a name, or a probe's source, with the arguments; plain data comes back. Expected
values and comparison rules never leave this process.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import torch

from autograder.inside.messages import Call, Missing, Names, Ran, ReadNames, Request, Run, Seen, Unsendable
from course_utils.testing import Observation, freeze, tensors
from course_utils.testing.comparing import compare
from course_utils.testing.plain import Opaque, Raised
from course_utils.testing.requirements import Case, Outcome, Requirement, outcome, summarized
from course_utils.testing.rubric import Met, Rubric, score

from .cells import quietly
from .conversation import Conversation, Gone
from .exercises import Cell, Exercise, ProblemSet, unpacked
from .marks import Mark
from .program import NOT_HERE, Kind, Program
from .sandbox import Sandbox, SandboxError
from .text import MESSAGE_LIMIT, clean

_OUR_SECONDS = 60.0  # for the lecture's own cells: a machine under load is no fault of the student's
# Bytes that a process's answers to one exercise's cases, which are kept until they are scored, and to the cells before
# it may take. Honest ones take up to 25 million. A text with one emoji takes four times its bytes here.
_ANSWERS_LIMIT = 2**28
_A = TypeVar("_A", Ran, Names)


@dataclass
class _Work:
    """A submission being judged, in two passes: first with the tests that students see, then with the hidden ones.

    ``waiting`` are the exercises that this pass hasn't come to yet, ``rubrics`` what the first pass found, ``marks``
    what is known so far, both by exercise. ``at`` is the current step, if an end there isn't our fault. ``counted``:
    the bytes that the current process had sent when the last exercise was judged.
    """

    program: Program
    hidden: bool = False
    waiting: list[Exercise] = field(default_factory=list)
    rubrics: dict[str, Rubric] = field(default_factory=dict)
    marks: dict[str, Mark] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    at: int | None = None
    counted: int = 0


def grade(problems: ProblemSet, cells: Sequence[Cell], box: Sandbox) -> tuple[list[Mark], list[str]]:
    """Grade one submission, given the code cells of its notebook.

    Returns a mark for each exercise, in order, and notes for a person: what ended, hung, wasn't available to an answer,
    or should be looked at. The marks are clean text; the notes are not.

    The cells run in order in one process, and each exercise is judged at its test cell (see
    :mod:`autograder.grading.program`); this happens twice. The first pass tries what students see, and every word that
    the submission has a say in (values, errors, calls) comes from it: no process of the submission has seen a hidden
    input by then. The second pass, in a process of its own, tries the hidden cases of requirements that are met so far,
    and adds nothing but verdicts. A single pass could not keep what one exercise is given out of what another returns.

    If a process ends or hangs, the current step is dropped and the others run again in a fresh process; an exercise
    whose answer or call it was gets nothing. Raises :class:`SandboxError` if a process ends before any of the student's
    code has run.
    """
    begin, seconds = time.monotonic(), box.limits.seconds_in_all
    work = _Work(Program(problems, cells), waiting=list(problems.exercises))
    work.notes += _suspicious(work.program)
    _work_off(work, box, begin + seconds / 2)  # what takes all of that must not cost what came before it
    work.hidden = True
    work.waiting = [
        each for each in problems.exercises if work.marks[each.name].points and problems.hidden.get(each.name)
    ]
    _work_off(work, box, begin + seconds)
    # What is wrong in both passes is said once.
    return [_cleaned(work.marks[exercise.name]) for exercise in problems.exercises], list(dict.fromkeys(work.notes))


def _work_off(work: _Work, box: Sandbox, end: float) -> None:
    """Judge what's waiting, in as many processes as it takes."""
    while work.waiting:
        gone: Gone | None = None
        work.at = None
        with box.conversation(end) as talk:
            try:
                _converse(talk, work)
            except Gone as error:
                gone = error
        if gone is None:
            return
        why = talk.ended or gone.why
        if work.at is not None:
            _drop(work, work.at, why, f"{why} ({gone.detail})" if gone.detail else why)
        elif time.monotonic() < end:
            raise SandboxError(f"the sandbox failed before it came to the student's code: {why} {gone.detail}")
        if time.monotonic() >= end:
            for exercise in work.waiting:
                _nothing(work, exercise, "The cells before it used up all the time that there was.")
                work.notes.append(f"{exercise.name}: no time was left for it")
            return


def _drop(work: _Work, number: int, why: str, in_full: str) -> None:
    """A process ended or hung at this step, so the step isn't run again.

    If that was in a call, the cell that defines the called function is dropped, too, since it may be the cause.
    """
    step = work.program.steps[number]
    for each, other in enumerate(work.program.steps):
        if each == number or (step.exercise is not None and other.exercise is step.exercise):
            work.program.dropped[each] = why
    if step.exercise is None:
        work.notes.append(f"{step.cell.title} was left out: {in_full}")
        return
    work.notes.append(f"{step.exercise.name}: {in_full}")
    if step.exercise in work.waiting:
        work.waiting.remove(step.exercise)
        _nothing(work, step.exercise, f"Your code did not come to an end: {why}.")


def _nothing(work: _Work, exercise: Exercise, why: str) -> None:
    """No points for an exercise, whatever it had earned. ``why`` is in our own words.

    Where hidden inputs are the cause, the words are always the same: a choice among them could tell about the inputs.
    """
    why = "It did not come to an end, or to a result, on inputs that are not shown." if work.hidden else why
    work.marks[exercise.name] = Mark(exercise.name, 0.0, exercise.points, f"✗ {exercise.name}\n  {why}")


def _cleaned(mark: Mark) -> Mark:
    mistake = None if mark.mistake is None else clean(mark.mistake, limit=MESSAGE_LIMIT)
    return replace(mark, message=clean(mark.message, limit=MESSAGE_LIMIT), mistake=mistake)


def _converse(talk: Conversation, work: _Work) -> None:
    """Run the cells in a fresh process and mark what's waiting. Raises Gone; then ``work.at`` is the current step."""
    program = work.program
    work.counted = 0
    for number in program.unread:
        work.at = number  # even reading a cell may keep a parser busy for ever, or crash it
        program.learn(number, _ask(talk, work, ReadNames(program.steps[number].cell.text), Names))
    program.stopped.clear()
    work.at, theirs = None, False
    for number in program.to_run():
        step = program.steps[number]
        if step.kind is Kind.OURS:
            # Before any code of the student's a process that ends is a fault of ours. After it, who knows.
            work.at = number if theirs else None
            _ask(talk, work, Run(step.cell.text), Ran, _OUR_SECONDS)
        elif step.kind is Kind.THEIRS:
            work.at, theirs = number, True
            if error := _ask(talk, work, Run(step.cell.text), Ran).error:
                program.stopped[number] = error
        elif step.exercise in work.waiting:
            work.at, theirs = number, True
            judged = _hidden if work.hidden else _visible
            reasons: list[str] = []
            try:
                mark = judged(step.exercise, work, talk, reasons)
            except _Puzzling as error:  # whoever it was that did not think of this, nobody else loses points by it
                _nothing(work, step.exercise, str(error))
                work.notes.append(f"{step.exercise.name}: {error} ({error.detail})")
            else:
                work.marks[step.exercise.name] = mark
            work.waiting.remove(step.exercise)
            work.counted = talk.received
            if (points := work.marks[step.exercise.name].points) < step.exercise.points:
                rubric = work.rubrics.get(step.exercise.name)
                excuses = program.excuses(number, rubric.points if rubric else points, reasons)
                work.notes += [f"{step.exercise.name}: {why}" for why in itertools.islice(excuses, 2)]
        if not work.waiting:
            return


def _stopped(program: Program, exercise: Exercise) -> list[str]:
    """The errors with which the cells of an answer stopped."""
    return [program.stopped[n] for n in program.stopped if program.steps[n].exercise is exercise]


def _ask(talk: Conversation, work: _Work, request: Request, kind: type[_A], seconds: float | None = None) -> _A:
    """An answer of the kind that the request asks for. Any other means that our code no longer controls the process."""
    answer = talk.ask(request, seconds)
    _within_limit(talk, work)
    if not isinstance(answer, kind):
        raise Gone("the answer is not of the kind that was asked for")
    return answer


def _within_limit(talk: Conversation, work: _Work) -> None:
    """Raise Gone if the process has sent too much since the last exercise was judged."""
    if talk.received - work.counted > _ANSWERS_LIMIT:
        raise Gone("its answers are too large")


def _visible(exercise: Exercise, work: _Work, talk: Conversation, reasons: list[str]) -> Mark:
    """Try the cases that students see. Why the answer may fail through no fault of its own is added to ``reasons``."""
    with quietly():
        outcomes = {
            n: [_observe(requirement, case, talk, work, reasons) for case in requirement.cases]
            for n, requirement in enumerate(exercise.check.requirements)
        }
        with _puzzling():
            rubric = work.rubrics[exercise.name] = score(exercise.check, outcomes)
    message = f"✗ {exercise.name}\n{rubric.failure or ''}".rstrip()
    if own := _stopped(work.program, exercise):
        message += f"\n  Your cell stopped with {own[-1][:500]}"
    return _mark(exercise, rubric, message)


def _hidden(exercise: Exercise, work: _Work, talk: Conversation, reasons: list[str]) -> Mark:
    """Try the hidden cases of the requirements that are met so far. Only the verdict comes from here.

    If a case that students see fails, its message stays; otherwise the words are the requirement's own.
    """
    rubric = work.rubrics[exercise.name]
    agree = []
    with quietly():
        for line, requirement in zip(
            rubric.lines, unpacked(work.program.problems.hidden[exercise.name]).requirements, strict=True
        ):
            tried = (
                _agrees(requirement, _observe(requirement, case, talk, work, reasons)[0], case)
                for case in requirement.cases
            )
            agree.append(line.met is Met.YES and all(tried))
    final = rubric.in_full(exercise.check, agree)
    message = f"✗ {exercise.name}\n{final.failure or ''}".rstrip() if rubric.failure is None else ""
    return _mark(exercise, final, message or work.marks[exercise.name].message)


def _mark(exercise: Exercise, rubric: Rubric, message: str) -> Mark:
    lines = tuple((line.text, line.points, line.met.value) for line in rubric.lines)
    if rubric.points == rubric.worth:
        return Mark(exercise.name, exercise.points, exercise.points, requirements=lines)
    hidden = all(line.met in (Met.YES, Met.HIDDEN) for line in rubric.lines)
    return Mark(exercise.name, rubric.points, exercise.points, message, rubric.mistake, hidden, lines)


class _Puzzling(Exception):
    """What came back passed the wire, and comparing or describing it raised an error all the same."""

    detail = ""


@contextlib.contextmanager
def _puzzling() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        puzzling = _Puzzling("What it returned cannot be compared with what is expected.")
        puzzling.detail = f"{type(error).__name__}: {error}"[:300]
        raise puzzling from error


def _agrees(requirement: Requirement, came: Outcome, case: Case) -> bool:
    with _puzzling():
        return requirement.comparison.difference(came, case.expected) is None


def _observe(
    requirement: Requirement, case: Case, talk: Conversation, work: _Work, reasons: list[str]
) -> tuple[Outcome, str]:
    """The result of one case, with the call in words. If it failed for a reason that may not be the student's code,
    that is added to ``reasons``.
    """
    _within_limit(talk, work)
    call = Call(requirement.target, case.args, case.kwargs, requirement.probe)
    blank = dict.fromkeys(requirement.comparison.parts)
    match talk.ask(call):
        case Seen(seen):
            if seen.error and NOT_HERE.match(error := f"{seen.error}: {seen.message}"):
                reasons.append(f"it may work on the student's machine; here it ended with {clean(error, limit=300)}")
            now = talk.asked()
            with _puzzling():
                seen = _checked(replace(seen, call=clean(seen.call, limit=1000)), call, now)
                seen = summarized(seen, requirement.probe, requirement.summary, case)
                return outcome(seen, requirement.comparison), seen.call
        case Missing(name):
            if where := work.program.should_define(name):
                reasons.append(f"{where} ran and defines `{name}`, which isn't there; on another machine it may be")
            return blank | {"value": Raised("NameError", f"name '{name}' is not defined")}, call.name
        case Unsendable(reason):
            reasons.append(f"what it returned cannot be sent to the judge: {clean(reason, limit=500)}")
            return blank | {"value": Opaque(f"what cannot be looked at: {reason[:500]}")}, call.name
    raise Gone("the answer is not of the kind that was asked for")


def _checked(seen: Observation, call: Call, now: Request) -> Observation:
    """An observation corrected by the arguments' own memory: what the call changed, and whose view the result is.

    ``now`` is the call after it was made. Its tensors were in shared memory, so they show what happened to them,
    whatever the student's process says. Changes that it denies still count, and a claim to share storage counts only if
    the value is what the argument's memory holds there.
    """
    assert isinstance(now, Call)
    before, after = ({**dict(enumerate(one.args)), **one.kwargs} for one in (call, now))
    mutated = [
        label for label in before if label in seen.mutated or compare(freeze(after[label]), freeze(before[label]), 0.0)
    ]
    shares = [label for label in before if label in seen.shares and _shows(seen, after[label])]
    return replace(seen, mutated=mutated, shares=shares)


def _shows(seen: Observation, argument: Any) -> bool:
    """Whether the value is what its strides and offset show of an argument's storage. True if it isn't a tensor."""
    value = seen.value
    if not isinstance(value, torch.Tensor):
        return True
    for tensor in tensors(argument):
        with contextlib.suppress(Exception):  # whatever a made-up shape leads to
            assert seen.offset is not None and seen.stride is not None
            # Within the storage: one without bytes would grow, and a claim is made up of numbers.
            last = seen.offset + sum((size - 1) * step for size, step in zip(value.shape, seen.stride, strict=True))
            if value.numel() and (last + 1) * value.dtype.itemsize > tensor.untyped_storage().nbytes():
                continue
            view = torch.empty(0, dtype=value.dtype)
            view.set_(tensor.untyped_storage(), seen.offset, value.shape, seen.stride)
            if compare(view, value, 0.0) is None:
                return True
    return False


_ODD = re.compile(
    r"ctypes|_getframe|_current_frames|currentframe|inspect\.(?:stack|trace)|tb_frame|f_(?:back|locals|globals|code)\b|"
    r"__(?:globals|code|subclasses|builtins|closure|getattribute|bases|mro|loader|traceback)__|"
    r"/proc\b|\bcourse_utils\b[ .]+(?:import )?testing|sys\.(?:modules|meta_path|path_hooks|settrace|setprofile)|"
    r"sys\.monitoring|\bgc\.(?!collect|enable|disable|isenabled|get_stats|get_count)\w+|\bautograder\b|"
    r"\bos\.(?:write|read|open|kill\w*|fork\w*|_exit|dup2?|close\w*|pipe2?|exec\w+|symlink)\b|"
    r"\bbuiltins\b|__import__|\bimportlib\.(?!reload\b)\w+|\bfrom[ \t]+importlib\b"
)
# Modules with which code can run while a probe does. As words they're names of tensors, too.
_ODD_MODULES = re.compile(r"^[ \t]{0,40}(?:import|from)[ \t]+([^\n#;]{0,200})", re.MULTILINE)
_ODD_NAMES = frozenset(["threading", "_thread", "atexit", "signal", "marshal", "mmap"])
# Bounded, since what a submission repeats a thousand times would otherwise be read a million times.
_READY_MADE = r"\b(?:checkpoint|data|flops|timing)\.{0}\b|(?<![\w.])napkin\.[\w.]{{1,60}}"
_FROM = re.compile(r"\bfrom[ \t]+(course_utils[\w.]{0,60})[ \t]+import[ \t]*(\([^)]{0,300}|[^\n;]{0,300})")
_IMPORT = re.compile(r"\bimport[ \t]+(course_utils[\w.]{0,60}(?:[ \t]+as[ \t]+\w{1,60})?)")
_COMPUTES = re.compile(r"course_utils\.(?:napkin|data|flops|checkpoint|memory|timing)\b")


def _library(text: str) -> set[str]:
    """What a text imports from those parts of the course's library that compute what exercises ask for."""
    found = set(_IMPORT.findall(text))
    for module, names in _FROM.findall(text):
        found |= {f"{module}.{' '.join(name.split())}" for name in re.sub("#.*", "", names).strip("( \t").split(",")}
    return {each for each in found if _COMPUTES.match(each)}


def _suspicious(program: Program) -> list[str]:
    """What a person should look at in the student's cells, whatever they earned: uses of things that no answer needs.

    Whatever is in the lecture itself may be in a student's copy of its cells. The course's own library has some of the
    functions that a lecture asks for (``data.get_batch``), or the formula behind them (``napkin.collectives.sent``): in
    an answer, using one or importing what the lecture doesn't is noted, too.
    """
    lecture = "\n".join(cell.text for cell in program.problems.cells)
    known = _library(lecture)
    notes = []
    for step in program.steps:
        if step.kind is Kind.THEIRS:
            imported = " ".join(_ODD_MODULES.findall(step.cell.text))
            odd = {*_ODD.findall(step.cell.text), *_ODD_NAMES.intersection(re.findall(r"\w+", imported))}
            found = sorted(odd)
            if step.exercise is None:
                found = [each for each in found if each not in lecture]
            else:
                found += sorted(set(re.findall(_READY_MADE.format(step.exercise.name), step.cell.text)))
                found += sorted(_library(step.cell.text) - known)
            who = step.exercise.name if step.exercise else step.cell.title
            if found:
                notes.append(f"{who}: its code uses {', '.join(found[:5])}, which no answer needs; read it")
    return notes

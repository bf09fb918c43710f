"""The judge's side of grading: asks the student's process what its code does, and compares the answers.

For each case of a check, it sends a name, or a probe's source, with the arguments, and gets plain data back. Expected
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
from course_utils.testing import Observation, freeze, tensors, wire
from course_utils.testing.comparing import compare
from course_utils.testing.describing import call_in_words
from course_utils.testing.plain import Opaque, Raised
from course_utils.testing.requirements import Case, Outcome, Requirement, outcome, summarized
from course_utils.testing.rubric import Met, Rubric, score

from . import suspicion
from .cells import quietly
from .conversation import Conversation, Gone
from .exercises import Cell, Exercise, ProblemSet, unpacked
from .marks import Mark
from .program import NOT_HERE, Kind, Program
from .sandbox import Sandbox, SandboxError
from .text import MESSAGE_LIMIT, clean

# What PyTorch says if code looks at the values of a tensor on the meta device, which has none. It stands for a GPU.
_NO_VALUES = re.compile("meta (?:device type )?tensor|register_meta", re.IGNORECASE)
# Errors that depend on more than a call's arguments. In a call with a hidden input, the student hasn't seen them.
_OF_THE_CODE = frozenset(["NameError", "UnboundLocalError", "ImportError", "ModuleNotFoundError", "SyntaxError"])
# Of libraries that enforce annotations. A hidden input may be a whole number where the annotation says float.
_OF_A_TYPE_CHECKER = re.compile(r"TypeCheckError|Beartype\w+Violation")
_OUR_SECONDS = 60.0  # for the lecture's own cells: if the machine is under load, the student is not to blame
# Bytes that a process may send in answer to one exercise's cases, which are kept until they are scored, and to the
# cells before it. Honest ones send up to 25 million. (A string with one emoji takes four times as many bytes here.)
_ANSWERS_LIMIT = 2**28
_SAVED_LIMIT = 2**22  # bytes of what one case saves; honest code saves some thousands
# Requirements of an exercise that may end a process or hang, and cost only their own points: each costs everybody the
# seconds of a hanging call and a new process, and a submission has only so much time.
_LOST = 2
_A = TypeVar("_A", Ran, Names)


@dataclass
class _Work:
    """A submission being judged, in two passes: first with the tests that students see, then with the hidden ones.

    ``waiting`` are the exercises still to be judged in this pass; ``rubrics`` are the first pass's results, ``marks``
    the marks so far, both by exercise. ``saved`` is what the first pass's process has saved, by exercise: a value for
    each case of each requirement that asks for it. ``at`` is the current step, or None if a process that ends there
    isn't the student's fault. ``counted`` is how many bytes the current process had sent when the last exercise was
    judged. ``company`` is the first of the student's cells that left a thread or a process running in it, or "";
    ``ours`` is how many of them the lecture's own cells have left. ``trying`` is the requirement that's being tested,
    with the number of the case, or None. ``lost`` are, by exercise, the requirements in whose tests a process ended in
    this pass, each with the case and the reason.
    """

    program: Program
    hidden: bool = False
    waiting: list[Exercise] = field(default_factory=list)
    rubrics: dict[str, Rubric] = field(default_factory=dict)
    marks: dict[str, Mark] = field(default_factory=dict)
    saved: dict[str, list[list[Any]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    at: int | None = None
    counted: int = 0
    company: str = ""
    ours: int = 0
    trying: tuple[int, int] | None = None
    lost: dict[str, dict[int, tuple[int, str]]] = field(default_factory=dict)


def grade(problems: ProblemSet, cells: Sequence[Cell], box: Sandbox) -> tuple[list[Mark], list[str]]:
    """Grade one submission, given the code cells of its notebook.

    Returns a mark for each exercise, in order, and notes for a reviewer: what ended, hung, wasn't available to an
    answer, or deserves a look. The marks' text is clean; the notes' is not.

    The cells run in order in one process, and each exercise is judged at its test cell (see
    :mod:`autograder.grading.program`); this happens twice. The first pass tries the cases that students see, and all
    text that the submission can influence (values, errors, calls) and that the student is shown comes from it: by then,
    no process of the submission has seen a hidden input. The second pass, in a new process, tries the hidden cases of
    the requirements that are met so far, and adds only verdicts and notes. In a single pass, one exercise's answer
    could reveal the hidden inputs that another was given.

    If a process ends or hangs, the others run again in a fresh process without the current step. A requirement of an
    exercise that did this earns nothing, and the others of the exercise are tried all the same; after `_LOST` of them,
    or if it was the answer's own cell, the exercise gets no points. Raises :class:`SandboxError` if a process ends
    before any of the student's code has run.
    """
    begin, seconds = time.monotonic(), box.limits.seconds_in_all
    work = _Work(Program(problems, cells), waiting=list(problems.exercises))
    _work_off(work, box, begin + seconds / 2)  # even if it takes that long, results so far are kept
    work.notes = suspicion.notes(work.program) + work.notes  # now that the names in all cells are known
    work.hidden, work.lost = True, {}
    work.waiting = [
        each for each in problems.exercises if work.marks[each.name].points and problems.hidden.get(each.name)
    ]
    for number, step in enumerate(work.program.steps):
        if step.exercise in work.waiting:  # it ended a process, though once it had run to its test: it may try again
            work.program.dropped.pop(number, None)
    _work_off(work, box, begin + seconds)
    if any(mark.points < mark.worth for mark in work.marks.values()):  # otherwise nothing needed these cells
        work.notes += work.left_out
    # A note from both passes is kept once.
    return [_cleaned(work.marks[exercise.name]) for exercise in problems.exercises], list(dict.fromkeys(work.notes))


def _work_off(work: _Work, box: Sandbox, end: float) -> None:
    """Judge the exercises that are waiting, in as many processes as it takes."""
    while work.waiting:
        gone: Gone | None = None
        work.at = work.trying = None
        with box.conversation(end) as talk:
            try:
                _converse(talk, work)
            except Gone as error:
                gone = error
        if gone is None:
            for exercise in work.waiting:  # never the case, but no exercise may keep points for which it wasn't judged
                _nothing(work, exercise, "It was not judged.")
                work.notes.append(f"{exercise.name}: it was not judged")
            return
        why = talk.ended or gone.why
        in_full = f"{why} ({gone.detail})" if gone.detail else why
        if work.trying is not None and time.monotonic() < end and _lose(work, why, in_full):
            continue
        if work.at is not None:
            _drop(work, work.at, why, in_full)
        elif time.monotonic() < end:
            raise SandboxError(f"the sandbox failed before any of the student's code ran: {why} {gone.detail}")
        if time.monotonic() >= end:
            for exercise in work.waiting:
                _nothing(work, exercise, "Earlier cells used up all of the notebook's time.")
                work.notes.append(f"{exercise.name}: no time was left for it")
            return


def _lose(work: _Work, why: str, in_full: str) -> bool:
    """Give up the requirement in whose test a process ended or hung, and try the exercise's others again.

    False if its exercise has lost `_LOST` of them before, or this one at another case.
    """
    assert work.at is not None and work.trying is not None
    exercise = work.program.steps[work.at].exercise
    assert exercise is not None
    lost, (number, case) = work.lost.setdefault(exercise.name, {}), work.trying
    if len(lost) >= _LOST or number in lost:
        return False
    lost[number] = case, why
    work.notes.append(f"{exercise.name}: {in_full} (tested: {exercise.check.requirements[number].text})")
    return True


def _drop(work: _Work, number: int, why: str, in_full: str) -> None:
    """Drop the step at which a process ended or hung, so that it doesn't run again.

    If it was an exercise's answer or a call of it, all steps of the exercise are dropped, since the cell that defines
    the called function may be the cause. But if the exercise has been judged, this is a cell below its test: then the
    test has to stay, or the second pass would skip it, and what the first has given would be all that it takes.
    """
    step = work.program.steps[number]
    work.program.dropped[number] = why
    if step.exercise is None or step.exercise not in work.waiting:
        work.left_out.append(f"{step.cell.title} was left out: {in_full}")
        return
    for each, other in enumerate(work.program.steps):
        if other.exercise is step.exercise:
            work.program.dropped[each] = why
    work.notes.append(f"{step.exercise.name}: {in_full}")
    work.waiting.remove(step.exercise)
    _nothing(work, step.exercise, f"Your code gave no result: {why}.")


def _nothing(work: _Work, exercise: Exercise, why: str) -> None:
    """Give no points for an exercise, whatever it had earned. No part of ``why`` may come from the submission.

    For hidden inputs the message is always the same: different messages could reveal something about the inputs.
    """
    why = "It did not finish, or returned nothing usable, on inputs that are not shown." if work.hidden else why
    work.marks[exercise.name] = Mark(exercise.name, 0.0, exercise.points, f"✗ {exercise.name}\n  {why}")


def _cleaned(mark: Mark) -> Mark:
    mistake = None if mark.mistake is None else clean(mark.mistake, limit=MESSAGE_LIMIT)
    return replace(mark, message=clean(mark.message, limit=MESSAGE_LIMIT), mistake=mistake)


def _converse(talk: Conversation, work: _Work) -> None:
    """Run the cells in a fresh process and mark what's waiting. Raises Gone; then ``work.at`` is the current step."""
    program = work.program
    work.counted, work.company, work.ours, running = 0, "", 0, 0
    for number in program.unread:
        work.at = number  # even parsing a cell can hang or crash
        program.learn(number, _ask(talk, work, ReadNames(program.steps[number].cell.text), Names))
    program.stopped.clear()
    work.at, theirs = None, False
    for number in program.to_run():
        step = program.steps[number]
        if step.kind is Kind.OURS:
            # Before any of the student's code has run, a process that ends is our fault. Later, it could be either's.
            work.at = number if theirs else None
            company = _ask(talk, work, Run(step.cell.text), Ran, _OUR_SECONDS).company
            work.ours, running = work.ours + max(0, company - running), company
        elif step.kind is Kind.THEIRS:
            work.at, theirs = number, True
            ran = _ask(talk, work, Run(step.cell.text), Ran)
            if ran.error:
                program.stopped[number] = ran.error
            if ran.company > running:
                work.company = work.company or step.cell.title
            running = ran.company
        elif step.exercise in work.waiting:
            work.at, theirs = number, True
            judged = _hidden if work.hidden else _visible
            reasons: list[str] = []
            try:
                mark = judged(step.exercise, work, talk, reasons)
            except _Puzzling as error:  # perhaps our own bug, which must not cost other exercises
                _nothing(work, step.exercise, str(error))
                work.notes.append(f"{step.exercise.name}: {error} ({error.detail})")
            else:
                work.marks[step.exercise.name] = mark
            work.waiting.remove(step.exercise)
            work.trying = None
            work.counted = talk.received
            if (points := work.marks[step.exercise.name].points) < step.exercise.points:
                rubric = work.rubrics.get(step.exercise.name)
                visible = rubric.points if rubric else points
                excuses = program.excuses(number, visible, reasons, hidden=work.hidden)
                work.notes += [f"{step.exercise.name}: {why}" for why in itertools.islice(excuses, 2)]
        if not work.waiting:
            return


def _stopped(program: Program, exercise: Exercise) -> list[str]:
    """The errors with which the cells of an answer stopped."""
    return [program.stopped[n] for n in program.stopped if program.steps[n].exercise is exercise]


def _ask(talk: Conversation, work: _Work, request: Request, kind: type[_A], seconds: float | None = None) -> _A:
    """The answer to a request, of this kind. Raises Gone for any other kind: then student's code runs the process."""
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
    """Try the cases that students see. Adds to ``reasons`` why a call may have failed through no fault of the code."""
    lost = work.lost.get(exercise.name, {})
    outcomes: dict[int, list[tuple[Outcome, str]]] = {}
    saved = work.saved[exercise.name] = []
    with quietly():
        for number, requirement in enumerate(exercise.check.requirements):
            outcomes[number], kept = [], []
            at, why = lost.get(number, (len(requirement.cases), ""))  # from there on, no case is tried again
            for place, case in enumerate(requirement.cases):
                work.trying = number, place
                if place < at:
                    outcomes[number].append(_observe(requirement, case, talk, work, reasons))
                else:
                    outcomes[number].append(_no_result(requirement, case, why))
            for place, case in enumerate(requirement.cases if requirement.saves and number not in lost else ()):
                work.trying = number, place
                kept.append(_saved(requirement, case, talk, work))
            saved.append(kept)
        with _puzzling():
            rubric = work.rubrics[exercise.name] = score(exercise.check, outcomes)
    message = f"✗ {exercise.name}\n{rubric.failure or ''}".rstrip()
    if own := _stopped(work.program, exercise):
        message += f"\n  Your cell stopped with {own[-1][:500]}"
    return _mark(exercise, rubric, message)


def _hidden(exercise: Exercise, work: _Work, talk: Conversation, reasons: list[str]) -> Mark:
    """Try the hidden cases of the requirements that are met so far, for the verdict only. Then load what the first
    pass's process has saved: the same has to come of it as there.

    If a case that students see has failed, its message is kept; otherwise the message is the requirement's own text.
    """
    rubric, lost = work.rubrics[exercise.name], work.lost.get(exercise.name, {})
    agree = []
    with quietly():
        for number, (line, requirement, seen, saved) in enumerate(
            zip(
                rubric.lines,
                unpacked(work.program.problems.hidden[exercise.name]).requirements,
                exercise.check.requirements,
                work.saved[exercise.name],
                strict=True,
            )
        ):
            work.trying = number, 0
            loaded = [
                replace(case, kwargs=case.kwargs | {"saved": value})
                for case, value in zip(seen.cases, saved, strict=bool(saved))
            ]
            tried = (
                _agrees(requirement, _observe(requirement, case, talk, work, reasons)[0], case)
                for case in [*requirement.cases, *loaded]
            )
            agree.append(line.met is Met.YES and number not in lost and all(tried))
    final = rubric.in_full(exercise.check, agree)
    message = f"✗ {exercise.name}\n{final.failure or ''}".rstrip() if rubric.failure is None else ""
    return _mark(exercise, final, message or work.marks[exercise.name].message)


def _no_result(requirement: Requirement, case: Case, why: str) -> tuple[Outcome, str]:
    """What stands for a case's outcome if a process ended or hung in a test of its requirement; it agrees with none."""
    nothing = Opaque(f"no result: {why}")
    outcome = dict.fromkeys(requirement.comparison.parts) | {"value": nothing}
    if "error" in outcome:
        outcome["error"] = nothing
    return outcome, call_in_words(requirement.target, dict(enumerate(case.args)) | case.kwargs)


def _saved(requirement: Requirement, case: Case, talk: Conversation, work: _Work) -> Any:
    """What a requirement's other probe returns for a case, or a stand-in that nothing can be loaded from."""
    value = _observe(replace(requirement, target=requirement.saves), case, talk, work, [])[0]["value"]
    try:
        if len(wire.pack(value)) <= _SAVED_LIMIT:
            return value
    except wire.WireError:
        pass
    return Opaque("more than can be sent")


def _mark(exercise: Exercise, rubric: Rubric, message: str) -> Mark:
    lines = tuple((line.text, line.points, line.met.value) for line in rubric.lines)
    if rubric.points == rubric.worth:
        return Mark(exercise.name, exercise.points, exercise.points, requirements=lines)
    hidden = all(line.met in (Met.YES, Met.HIDDEN) for line in rubric.lines)
    return Mark(exercise.name, rubric.points, exercise.points, message, rubric.mistake, hidden, lines)


class _Puzzling(Exception):
    """An answer was well-formed, yet comparing or describing it raised an error."""

    detail = ""


@contextlib.contextmanager
def _puzzling() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        puzzling = _Puzzling("What it returned cannot be compared with the expected value.")
        puzzling.detail = f"{type(error).__name__}: {error}"[:300]
        raise puzzling from error


def _agrees(requirement: Requirement, came: Outcome, case: Case) -> bool:
    with _puzzling():
        return requirement.comparison.difference(came, case.expected) is None


def _observe(
    requirement: Requirement, case: Case, talk: Conversation, work: _Work, reasons: list[str]
) -> tuple[Outcome, str]:
    """The outcome of one case, and the call as text. Adds to ``reasons`` why the call may have failed through no fault
    of the student's code.
    """
    _within_limit(talk, work)
    call = Call(requirement.target, case.args, case.kwargs, requirement.probe)
    blank = dict.fromkeys(requirement.comparison.parts)
    match talk.ask(call):
        case Seen(seen, company):
            if requirement.probe and company > work.ours:
                where = work.company or f"a test of `{requirement.target}`"
                work.notes.append(f"{where} left a thread or a process running, which can do an answer's work unseen")
            kinds = {seen.error, *seen.value.classes} if isinstance(seen.value, Raised) else {seen.error}
            unforeseen = "meta" not in requirement.text and _NO_VALUES.search(seen.message)
            if seen.error and (unforeseen or any(NOT_HERE.match(f"{kind}: {seen.message}") for kind in kinds)):
                error = clean(f"{seen.error}: {seen.message}", limit=300)
                reasons.append(f"it may work on the student's machine; here it ended with {error}")
            elif work.hidden and any(kind and _OF_A_TYPE_CHECKER.fullmatch(kind) for kind in kinds):
                reasons.append(f"a type checker ({seen.error}) refused a hidden input")
            elif seen.error in _OF_THE_CODE:
                name = re.match(r"name '(\w{1,100})' is not defined", seen.message)
                where = work.program.should_define(name[1]) if name else ""
                if where or work.hidden:
                    error = clean(f"{seen.error}: {seen.message}", limit=300)
                    reasons.append(f"here it ended with {error}" + (f", which {where} should define" if where else ""))
            now = talk.asked()
            with _puzzling():
                seen = _checked(replace(seen, call=clean(seen.call, limit=1000)), call, now)
                seen = summarized(seen, requirement.probe, requirement.summary, case)
                return outcome(seen, requirement.comparison), seen.call
        case Missing(name):
            if where := work.program.should_define(name):
                reasons.append(
                    f"{where} ran and should define `{name}`, which is missing; it may exist on another machine"
                )
            return blank | {"value": Raised("NameError", f"name '{name}' is not defined")}, call.name
        case Unsendable(reason):
            reasons.append(f"what it returned cannot be sent to the grader: {clean(reason, limit=500)}")
            return blank | {"value": Opaque(f"something that cannot be inspected: {reason[:500]}")}, call.name
    raise Gone("the answer is not of the kind that was asked for")


def _checked(seen: Observation, call: Call, now: Request) -> Observation:
    """An observation corrected by the arguments' memory: which arguments the call changed, and which ones the result
    shares storage with.

    ``now`` is the call after it was made. Its tensors were in shared memory, so they show what happened to them,
    whatever the student's process says. Changes that it denies still count, and a claim to share storage counts only if
    the value equals what the argument's memory holds there.
    """
    assert isinstance(now, Call)
    before, after = ({**dict(enumerate(one.args)), **one.kwargs} for one in (call, now))
    mutated = [
        label for label in before if label in seen.mutated or compare(freeze(after[label]), freeze(before[label]), 0.0)
    ]
    shares = [label for label in before if label in seen.shares and _shows(seen, after[label])]
    return replace(seen, mutated=mutated, shares=shares)


def _shows(seen: Observation, argument: Any) -> bool:
    """Whether the value equals an argument's storage viewed with its strides and offset. True if it isn't a tensor."""
    value = seen.value
    if not isinstance(value, torch.Tensor):
        return True
    for tensor in tensors(argument):
        with contextlib.suppress(Exception):  # whatever a forged shape leads to
            assert seen.offset is not None and seen.stride is not None
            # Stay within the storage, since set_ would grow it to fit a forged claim.
            last = seen.offset + sum((size - 1) * step for size, step in zip(value.shape, seen.stride, strict=True))
            if value.numel() and (last + 1) * value.dtype.itemsize > tensor.untyped_storage().nbytes():
                continue
            view = torch.empty(0, dtype=value.dtype)
            view.set_(tensor.untyped_storage(), seen.offset, value.shape, seen.stride)
            if compare(view, value, 0.0) is None:
                return True
    return False

"""Makes checks by running the reference, and every known mistake, on the cases in an exercise's file.

Students get the visible cases, in ``course_utils/checks/<name>.check``. A class gets its own hidden cases, which only
the grader sees: the edge cases, and inputs drawn from the domains.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import statistics
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.configuration

from autograder import CourseError
from autograder.grading.exercises import Exercise, ProblemSet, made_from, unpacked
from autograder.grading.source import Lecture
from autograder.project import BUILD, EXERCISES, SOLUTIONS, checks_of, exercises_of
from course_utils.files import replacing
from course_utils.testing import wire
from course_utils.testing.checking import SEED
from course_utils.testing.comparing import Comparison, alike
from course_utils.testing.plain import Raised, first_opaque
from course_utils.testing.requirements import Case, Check, Outcome, Requirement
from course_utils.testing.rubric import Met, Rubric, score

from . import probing
from .exercise import Given, KnownProgram, Promise, Spec, making, read
from .in_process import BRIEF, SECONDS, Trial

# Hypothesis caches Unicode tables and data about our modules on disk: keep these out of the current folder.
hypothesis.configuration.set_hypothesis_home_dir(BUILD / "hypothesis")

DRAWN = 40  # hidden cases for each requirement, in addition to the visible ones and the edge cases
SIZE_LIMIT = 64 * 1024  # bytes of one exercise's check for students
_ROUNDS = 4  # of drawing, if a domain repeats inputs
_RUNS = 20  # of the reference, if its values vary
_WIDTH = 8  # of the accepted band, in standard deviations on each side


class CheckError(CourseError):
    """A check can't be made; the message names the exercise and says what to do."""


def path_of(lecture_name: str, cells: Exercise) -> Path:
    """Where the file of an exercise is or belongs: next to its lecture's source, or in the course's own folder."""
    ours = EXERCISES / lecture_name / f"{cells.name}.py"
    beside = exercises_of(cells.path) / f"{cells.name}.py" if cells.path else ours
    return beside if beside.is_file() or not ours.is_file() else ours


def folder_of(cells: Exercise) -> Path:
    """The folder in which the students' check of an exercise is kept."""
    return checks_of(cells.path.parent if cells.path else SOLUTIONS)


def spec_of(lecture_name: str, cells: Exercise) -> Spec:
    """The file of an exercise, read."""
    return read(path_of(lecture_name, cells), cells)


def specs(lecture: Lecture) -> list[Spec]:
    """The files of a lecture's exercises, read."""
    return [spec_of(lecture.name, cells) for cells in lecture.exercises]


def problems(lecture: Lecture, seed: int = 0) -> ProblemSet:
    """What grading needs from a lecture, with hidden cases that aren't secret."""
    return replace(lecture.problems, hidden={spec.cells.name: hidden(spec, seed) for spec in specs(lecture)})


def programs(lecture_name: str, cells: Exercise) -> list[KnownProgram]:
    """The right and the wrong programs of an exercise."""
    return spec_of(lecture_name, cells).of("mistake", "wrong", "right")


def earned(lecture_name: str, cells: Exercise, code: str) -> float:
    """The points that a program gets, run in this process, with hidden cases that aren't secret."""
    return rubric(lecture_name, cells, code).points


def rubric(lecture_name: str, cells: Exercise, code: str) -> Rubric:
    """The rubric that a program gets, run in this process, with hidden cases that aren't secret.

    As in grading, the hidden cases of a requirement that fails a visible one aren't tried.
    """
    spec = spec_of(lecture_name, cells)
    ran = Trial(cells.setup, code)
    outcomes: dict[int, list[tuple[Outcome, str]]] = {}
    agree = []
    visible = unpacked(cells.packed)
    for number, promise in enumerate(spec.promises):
        came = ran.outcomes(cells.name, promise, promise.visible)
        outcomes[number] = [(one, "") for one in came]
    rubric = score(visible, outcomes)
    more = Check.unpack(hidden(spec)).requirements if rubric.points else ()
    for number, promise in enumerate(spec.promises):
        if rubric.lines[number].met is not Met.YES:
            agree.append(False)
            continue
        cases = [Given(case.args, case.kwargs) for case in more[number].cases]
        wanted = (case.expected for case in more[number].cases)
        pairs = zip(ran.outcomes(cells.name, promise, cases), wanted, strict=True)
        agree.append(all(promise.comparison.difference(got, want) is None for got, want in pairs))
    return rubric.in_full(visible, agree)


def digest(path: Path, cells: Exercise) -> str:
    """A hash of what a check is made from: the exercise's file without its test programs, its lecture's cells, and the
    functions that probes share, if it uses them.

    Test programs are left out so that adding a wrong answer doesn't regrade any class.
    """
    text = making(path.read_text(encoding="utf-8"))
    parts = [text, cells.setup, cells.solution]
    if probing.__name__ in text:
        parts.append(inspect.getsource(probing))
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def reference(spec: Spec) -> Trial:
    """The reference, loaded."""
    return Trial(spec.cells.setup, spec.cells.solution)


def trial(spec: Spec, program: KnownProgram) -> Trial:
    """A program from the exercise's file, loaded."""
    seconds = BRIEF if program.kind in ("mistake", "wrong") else SECONDS
    return Trial(spec.cells.setup, program.code, seconds=seconds)


def expected(spec: Spec, promise: Promise, cases: Iterable[Given], by: Trial | None = None) -> Iterator[Outcome]:
    """The expected outcome of each case: what the reference does, or the bounds in the exercise's file."""
    by = by or reference(spec)
    for case in cases:
        found = by.outcome(spec.cells.name, promise, case)
        value = found["value"]
        where = f"{spec.path}: {promise.text!r}, {case.says or case.args!r:.300}"
        if isinstance(value, Raised) and (value.not_begun or value.kind in ("OutOfTime", "NameError")):
            raise CheckError(f"{where}: the reference stops with {value}\n  → fix it, or the probe")
        if odd := first_opaque(value):
            raise CheckError(f"{where}: the value contains {odd}\n  → return plain data from a probe")
        if isinstance(value, dict) and not isinstance(value, Raised):
            found["value"] = value | promise.bounds
        if promise.band:
            runs = [by.outcome(spec.cells.name, promise, case, SEED + 1 + n)["value"] for n in range(_RUNS)]
            found["value"] |= {key: _band([run[key] for run in runs]) for key in promise.band}
        yield found


def _band(runs: list[Any]) -> Any:
    if isinstance(runs[0], dict):
        return {key: _band([run[key] for run in runs]) for key in runs[0]}
    if isinstance(runs[0], (list, tuple)):
        return [_band(list(column)) for column in zip(*runs, strict=True)]
    mean, spread = statistics.fmean(runs), max(statistics.stdev(runs), 1e-6 * max(map(abs, runs)))
    assert math.isfinite(spread), runs
    return mean - _WIDTH * spread, mean + _WIDTH * spread


def visible_check(spec: Spec) -> Check:
    """The check that students get. Raises :class:`CheckError` if it would be too large."""
    right = reference(spec)
    wrong = [trial(spec, program) for program in spec.mistakes]
    requirements = []
    for promise in spec.promises:
        cases = []
        for case, want in zip(promise.visible, expected(spec, promise, promise.visible, right), strict=True):
            if promise.probe and not case.says:
                raise CheckError(f"{spec.path}: {promise.text!r}: a visible case of a probe does not say what it does\n"
                                 '  → given(…, says="two steps with lr = 0.1")')  # fmt: skip
            mistakes: dict[int, Outcome] = {}
            for number, each in enumerate(wrong):
                does = each.outcome(spec.cells.name, promise, case)
                if promise.comparison.difference(does, want) is not None:
                    mistakes[number] = _storable(does)
            cases.append(Case(case.args, case.kwargs, want, case.says, mistakes))
        requirements.append(_requirement(spec, promise, cases))
    together = sum(program.together for program in spec.mistakes)
    check = _check(spec, requirements, tuple(program.note for program in spec.mistakes), together)
    if (size := len(check.pack())) > SIZE_LIMIT:
        raise CheckError(f"{spec.path}: the students' check has {size:,} bytes, but the limit is {SIZE_LIMIT:,}\n"
                         "  → make the visible cases smaller")  # fmt: skip
    return check


def _check(spec: Spec, requirements: list[Requirement], mistakes: tuple[str, ...] = (), together: int = 0) -> Check:
    """A check of these requirements. Raises :class:`CheckError` if the reference never returns anything."""
    values = [case.expected["value"] for requirement in requirements for case in requirement.cases]
    if values and all(isinstance(value, Raised) for value in values):
        raise CheckError(f"{spec.path}: the reference raises an error in every case ({values[0]})\n  → fix it")
    return Check(spec.cells.name, tuple(requirements), mistakes, digest(spec.path, spec.cells), together)


def _storable(does: Outcome) -> Outcome:
    """A mistake's outcome, without an error's line of code, which would be from our program."""
    value = does["value"]
    if not isinstance(value, Raised):
        return does
    short = Raised(value.kind, value.message[:200])
    return {part: short if held is value else held for part, held in does.items()}


def _requirement(spec: Spec, promise: Promise, cases: Iterable[Case]) -> Requirement:
    target = promise.target or spec.cells.name
    kept = []
    for case in cases:
        value = case.expected["value"]
        short = Raised(value.kind, "") if isinstance(value, Raised) else value
        want = {part: short if held is value else held for part, held in case.expected.items()}
        kept.append(Case(case.args, case.kwargs, want, case.says, case.mistakes))
    return Requirement(
        promise.text,
        promise.points,
        target,
        promise.probe,
        promise.comparison,
        promise.hint,
        tuple(kept),
        promise.summary,
        promise.saves,
    )


def hidden_check(spec: Spec, seed: int, drawn: int = DRAWN) -> Check:
    """The hidden cases of a class: edge cases, and what ``seed`` draws from each domain, without the visible ones."""
    right = reference(spec)
    requirements = []
    for promise in spec.promises:
        cases = without_twins([*promise.edges.values(), *draw(promise, drawn, seed)], promise.visible)
        wanted = expected(spec, promise, cases, right)
        made = [Case(case.args, case.kwargs, want, case.says) for case, want in zip(cases, wanted, strict=True)]
        requirements.append(_requirement(spec, promise, made))
    return _check(spec, requirements)


def hidden(spec: Spec, seed: int = 0) -> bytes:
    """The hidden cases that ``seed`` draws, packed. They're stored in build/, so never use this with a secret seed."""
    path = BUILD / "hidden" / f"{spec.cells.name}-{digest(spec.path, spec.cells)}-{seed}.check"
    if not path.is_file():
        content = hidden_check(spec, seed).pack()
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(content)
    return path.read_bytes()


def without_twins(cases: Iterable[Given], known: Iterable[Given] = ()) -> list[Given]:
    """The cases without duplicates and without the known ones."""
    seen = {_digest(case) for case in known}
    return [case for case in cases if not ((digest := _digest(case)) in seen or seen.add(digest))]  # type: ignore[func-returns-value]


def _digest(case: Given) -> bytes:
    return wire.pack([case.args, case.kwargs])


def draw(promise: Promise, count: int, seed: int) -> list[Given]:
    """``count`` different inputs from a promise's domain, or as many as exist; the same seed draws the same inputs."""
    if promise.domain is None:
        return []
    found: dict[bytes, Given] = {}
    for attempt in range(_ROUNDS):

        def collect(case: Given) -> None:
            found.setdefault(_digest(case), case)

        settings = hypothesis.settings(
            max_examples=count, database=None, deadline=None, derandomize=False,
            phases=[hypothesis.Phase.generate], suppress_health_check=list(hypothesis.HealthCheck),
        )  # fmt: skip
        test = hypothesis.seed(seed + 1_000_003 * attempt)(settings(hypothesis.given(promise.domain)(collect)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            test()
        if len(found) >= count:
            break
    return list(found.values())[:count]


def stale(path: Path, cells: Exercise) -> bool:
    """Whether the exercise's file at ``path`` or these cells have changed since the students' check was made."""
    return made_from(folder_of(cells) / f"{cells.name}.check") != digest(path, cells)


def write(folder: Path, check: Check) -> Path:
    """Write a check, unless the existing one differs only in rounding, as when it was made on another machine."""
    path = folder / f"{check.name}.check"
    if not (path.is_file() and current(path, check)):
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(check.pack())
    return path


def current(path: Path, check: Check) -> bool:
    """Whether a file has this check, except for the rounding of expected values."""
    try:
        have = Check.unpack(path.read_bytes())
    except (OSError, wire.WireError):
        return False
    return _same_checks(have, check)


def _same_checks(a: Check, b: Check) -> bool:
    def about(check: Check) -> list[Any]:
        rows = [
            [r.text, r.points, r.target, r.probe, r.summary, r.saves, vars(r.comparison), r.hint]
            for r in check.requirements
        ]
        cases = [[(c.args, c.kwargs, c.says, sorted(c.mistakes)) for c in r.cases] for r in check.requirements]
        return [check.name, check.mistakes, check.together, check.made_from, rows, cases]

    if wire.pack(about(a)) != wire.pack(about(b)):
        return False
    for mine, theirs in zip(a.requirements, b.requirements, strict=True):
        plain = Comparison(parts=mine.comparison.parts)
        for one, other in zip(mine.cases, theirs.cases, strict=True):
            if plain.difference(one.expected, other.expected) is not None:
                return False
            if not all(alike(one.mistakes[m], other.mistakes[m], plain) for m in one.mistakes):
                return False
    return True

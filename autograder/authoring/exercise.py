"""Reads an exercise's file, ``solutions/exercises/NN_topic/<name>.py``, from which its check is made.

The file begins with Python code that lists what the statement promises, one requirement per promise::

    from hypothesis import strategies as st

    from autograder.authoring.exercise import Exercise, given

    exercise = Exercise("Find the shape of the product first.")
    exercise.requirement(
        "batch dimensions broadcast",
        points=1,
        visible=[given((2, 3, 4), (4, 5))],
        edges={"a size of 0": given((1, 3, 4), (0, 4, 5))},
        domain=st.builds(given, ...),
    )
    exercise.mistake("A multiply-add is two FLOPs.", "return 2 * batch → return batch")

It has no expected values: those come from the reference, which is in the lecture's solution cell. A mistake is an edit
of the reference (``old → new``, where ``old`` occurs exactly once) with a sentence for students who make it. Programs
that aren't edits follow as cells::

    # %% mistake: counts elements
    # says: Each element takes several bytes.
    def tensor_bytes(x): ...

    # %% wrong: only for float32 (from the statement)
    def tensor_bytes(x): ...

    # %% right: adds up the elements one by one
    def tensor_bytes(x): ...

    # %% equivalent: x.numel() * 4 → 4 * x.numel()
    # why: a product does not depend on the order

A mistake or a ``wrong`` program that passes all visible cases explains why below its title, in a line ``# unseen: …``.
A ``wrong`` program has no sentence; if its title ends in ``(from the statement)``, it was written by somebody who had
read only the statement. ``equivalent`` names a mutant of the reference (:mod:`autograder.authoring.mutants`) that
behaves like the reference on everything that the statement allows.
"""

from __future__ import annotations

import builtins
import dis
import inspect
import re
import sys
import textwrap
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hypothesis.strategies import SearchStrategy

from autograder import CourseError
from autograder.grading import exercises
from course_utils.testing.comparing import BETWEEN, Comparison

from . import probing

FROM_THE_STATEMENT = "(from the statement)"
_CELL = re.compile(r"^# %% (\w+): (.+)$", re.MULTILINE)
_MARKS = re.compile(r"^ *### (?:BEGIN|END) SOLUTION\n?", re.MULTILINE)  # students' answers don't have them
_NOTE = {"mistake": "says", "equivalent": "why"}
_KINDS = ("mistake", "wrong", "right", "equivalent")


class ExerciseError(CourseError):
    """An exercise's file is missing or malformed; the message says where and what to do."""


@dataclass(frozen=True)
class Given:
    """One input. ``says`` describes the call, for a probe whose arguments would mean nothing to a student."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    says: str = ""


def given(*args: Any, says: str = "", **kwargs: Any) -> Given:
    """An input: the arguments of the student's function, or of the probe."""
    return Given(args, kwargs, says)


@dataclass(frozen=True)
class Promise:
    """A requirement as its author writes it; see :meth:`Exercise.requirement`."""

    text: str
    points: float
    visible: tuple[Given, ...]
    edges: dict[str, Given]
    domain: SearchStrategy[Given] | None
    target: str
    probe: str
    comparison: Comparison
    hint: str
    bounds: dict[str, Any]
    band: tuple[str, ...]
    summary: str = ""
    saves: str = ""


@dataclass(frozen=True)
class KnownProgram:
    """A program other than the reference: ``kind`` is mistake, wrong, right or equivalent.

    ``note``: the sentence of a mistake, or why a mutant is equivalent. ``unseen``: why no visible case rejects it.
    ``edits``: how it was made from the reference, or empty if it was written as a whole. ``together``: it is two
    mistakes, with the sentence of the first.
    """

    kind: str
    title: str
    code: str
    note: str = ""
    unseen: str = ""
    edits: tuple[str, ...] = ()
    line: int = 0
    together: bool = False


@dataclass(frozen=True)
class Edits:
    """A mistake as its author writes it; see :meth:`Exercise.mistake`."""

    sentence: str
    edits: tuple[str, ...]
    unseen: str
    together_with: tuple[str, ...]
    line: int

    @property
    def title(self) -> str:
        """The edits."""
        return "; ".join(self.edits)


@dataclass
class Exercise:
    """What an exercise's file builds. ``hint``: the advice for a failure that has no better one."""

    hint: str
    promises: list[Promise] = field(default_factory=list)
    edits: list[Edits] = field(default_factory=list)

    def requirement(
        self,
        text: str,
        *,
        points: float,
        visible: Sequence[Given],
        domain: SearchStrategy[Given] | None = None,
        edges: Mapping[str, Given] | None = None,
        probe: Callable[..., Any] | None = None,
        summary: Callable[..., Any] | None = None,
        saves: Callable[..., Any] | None = None,
        tolerance: float | None = None,
        parts: Sequence[str] = ("value", "mutated"),
        rules: Mapping[str, float | str] | None = None,
        bounds: Mapping[str, Any] | None = None,
        band: Sequence[str] = (),
        hint: str = "",
    ) -> None:
        """Add a promise of the statement, in the statement's own words.

        ``visible``: the cases that students have. ``edges``: one case for each rare situation that the statement
        includes, by name, because random draws rarely find those. ``domain``: a Hypothesis strategy for everything that
        the statement allows. ``probe``: a function in this file whose first parameter has the notebook's names; without
        one, the student's function is called. ``summary``: a function in this file that is called with the probe's
        result and the arguments, and whose own result is compared. A probe runs in the student's process, where its
        result can be forged; a summary is computed by the judge, from numbers that are hard to forge. ``saves``: for
        code that saves something, a probe whose result for the same arguments is passed, as ``saved``, to ``probe`` in
        another process, where whatever the code only remembers is missing. ``tolerance``, ``parts`` and ``rules`` are
        those of :class:`course_utils.testing.comparing.Comparison`. ``bounds``: for a key of a probe's dict, the pair
        (low, high) that the statement allows, instead of the reference's value. ``band``: keys whose values vary from
        run to run; they must be within eight standard deviations of the mean over twenty runs of the reference.
        """
        rules = dict(rules or {}) | dict.fromkeys([*(bounds or {}), *band], BETWEEN)
        rules = dict(sorted(rules.items()))  # a set's order differs between processes
        used = [each for each in (summary, saves) if each]
        self.promises.append(
            Promise(
                text, points, tuple(visible), dict(edges or {}), domain,
                probe.__name__ if probe else "", _source(probe, *used) if probe else "",
                Comparison(tolerance, tuple(parts), rules), hint or self.hint, dict(bounds or {}), tuple(band),
                summary.__name__ if summary else "", saves.__name__ if saves else "",
            )
        )  # fmt: skip

    def mistake(self, sentence: str, *edits: str, unseen: str = "", together_with: Sequence[str] = ()) -> None:
        """Add a mistake: edits of the reference, ``old → new`` each, and the sentence that explains it.

        The sentence says what's wrong without giving the solution. ``unseen``: why no visible case shows the mistake.
        ``together_with``: for each other mistake that, made together with this one, looks like a third, an edit that
        only it has, or all of its edits with ``; `` between them. Whoever makes both is told this mistake's sentence.
        """
        self.edits.append(Edits(sentence, edits, unseen, tuple(together_with), sys._getframe(1).f_lineno))


@dataclass(frozen=True)
class Spec:
    """An exercise's file, read, along with its cells in the lecture."""

    path: Path
    cells: exercises.Exercise
    hint: str
    promises: tuple[Promise, ...]
    programs: tuple[KnownProgram, ...]

    def of(self, *kinds: str) -> list[KnownProgram]:
        """The programs of these kinds, in order."""
        return [program for program in self.programs if program.kind in kinds]

    @property
    def mistakes(self) -> list[KnownProgram]:
        """The mistakes that have a sentence."""
        return self.of("mistake")

    @property
    def points(self) -> float:
        """The exercise's total points."""
        return sum(promise.points for promise in self.promises)


def edited(reference: str, edits: Sequence[str]) -> str:
    """The reference with these edits. Raises ValueError if one doesn't match exactly once."""
    for edit in edits:
        old, arrow, new = (part.strip() for part in edit.partition("→"))
        if not arrow or not old:
            raise ValueError(f"{edit!r} is not an edit: write `old → new`")
        if (count := reference.count(old)) != 1:
            raise ValueError(f"`{old}` occurs {count} times in the reference, and an edit has to match once")
        reference = reference.replace(old, new)
    return reference


def making(text: str) -> str:
    """The text of an exercise's file without its wrong, right and equivalent programs, which don't affect its check."""
    heads = list(_CELL.finditer(text))
    ends = [*(head.start() for head in heads), len(text)][1:]
    kept = [
        text[head.start() : end].strip() for head, end in zip(heads, ends, strict=bool(heads)) if head[1] == "mistake"
    ]
    return "\n\n".join([text[: heads[0].start()].strip() if heads else text.strip(), *kept])


def read(path: Path, cells: exercises.Exercise) -> Spec:
    """Read an exercise's file. Raises :class:`ExerciseError` if it's missing or malformed."""
    if not path.is_file():
        raise ExerciseError(f"{path}: this exercise has no file\n  → CONTRIBUTING.md has one to start from")
    text = path.read_text(encoding="utf-8")
    heads = list(_CELL.finditer(text))
    names: dict[str, Any] = {"__name__": f"check of {cells.name}", "__file__": str(path)}
    begin = text[: heads[0].start()] if heads else text
    _remember(path, text)
    try:
        exec(compile(begin, str(path), "exec"), names)
    except Exception as error:
        line = next((f.lineno for f in reversed(inspect.trace()) if f.filename == str(path)), 1)
        raise ExerciseError(f"{path}:{line}: {type(error).__name__}: {error}") from error
    exercise = names.get("exercise")
    if not isinstance(exercise, Exercise):
        raise ExerciseError(f'{path}:1: it builds no exercise\n  → write `exercise = Exercise("a hint")`')
    programs = [_mistake(path, cells.solution, one) for one in exercise.edits]
    for head, end in zip(heads, [*(m.start() for m in heads), len(text)][1:], strict=bool(heads)):
        programs.append(_program(path, head, text[head.end() : end], text.count("\n", 0, head.start()) + 1))
    for one in exercise.edits:
        for other in _made_with(path, one, exercise.edits):
            first, second = sorted((one, other), key=exercise.edits.index)
            both = Edits(one.sentence, (*first.edits, *second.edits), "", (), one.line)
            programs.append(replace(_mistake(path, cells.solution, both), together=True))
    return Spec(path, cells, exercise.hint, tuple(exercise.promises), tuple(programs))


def _mistake(path: Path, reference: str, mistake: Edits) -> KnownProgram:
    try:
        code = _MARKS.sub("", edited(reference, mistake.edits))
    except ValueError as error:
        raise ExerciseError(f"{path}:{mistake.line}: {error}") from None
    return KnownProgram("mistake", mistake.title, code, mistake.sentence, mistake.unseen, mistake.edits, mistake.line)


def _made_with(path: Path, one: Edits, mistakes: Sequence[Edits]) -> Iterator[Edits]:
    """The mistakes that ``one`` names in ``together_with``."""
    for edit in one.together_with:
        others = [each for each in mistakes if edit == each.title] or [each for each in mistakes if edit in each.edits]
        if len(others) != 1 or others == [one]:
            raise ExerciseError(
                f"{path}:{one.line}: together_with: {len(others)} mistakes have {edit!r}\n"
                "  → write an edit that a single other mistake has, or all of its edits, with `; ` between them"
            )
        yield others[0]


def _program(path: Path, head: re.Match[str], body: str, line: int) -> KnownProgram:
    kind, title = head.group(1), head.group(2).strip()
    if kind not in _KINDS:
        raise ExerciseError(f"{path}:{line}: {kind!r} is not a kind of program\n  → use {', '.join(_KINDS)}")
    notes: dict[str, str] = {}
    body = body.strip("\n")
    while match := re.match(r"# (says|why|unseen): (.+)\n?", body):
        notes[match[1]] = match[2].strip()
        body = body[match.end() :]
    wanted = _NOTE.get(kind)
    if wanted and wanted not in notes:
        raise ExerciseError(f"{path}:{line}: {title!r} has no note\n  → begin the cell with `# {wanted}: …`")
    if kind != "equivalent" and not body.strip():
        raise ExerciseError(f"{path}:{line}: {title!r} is empty\n  → write the answer below the header")
    return KnownProgram(kind, title, body.strip("\n"), notes.get(wanted or "", ""), notes.get("unseen", ""), (), line)


def _source(probe: Callable[..., Any], *others: Callable[..., Any]) -> str:
    """The source of a probe and other functions, with that of the functions they use, from their file or `probing`."""
    found: dict[str, str] = {}
    homes = (probe.__globals__, vars(probing))

    def add(function: Callable[..., Any]) -> None:
        found[function.__name__] = ""  # before recursing, since functions may use each other
        for name in sorted(_outside_names(function.__code__)):
            used = function.__globals__.get(name)
            if not inspect.isfunction(used) or all(used.__globals__ is not home for home in homes):
                raise TypeError(f"probe {probe.__name__} uses {name} from outside; import inside it, or pass it")
            if name not in found:
                add(used)
        found[function.__name__] = textwrap.dedent(inspect.getsource(function))

    if probe.__code__.co_argcount < 1:
        raise TypeError(f"probe {probe.__name__} has no first parameter `student`")
    for function in (probe, *others):
        add(function)
    return "\n\n".join(found.values())


def _remember(path: Path, text: str) -> None:
    # So that inspect finds the source of probes, even if the file was changed and read again.
    import linecache

    linecache.cache[str(path)] = (len(text), None, text.splitlines(keepends=True), str(path))


def _outside_names(code: types.CodeType) -> frozenset[str]:
    """The names that a function, or one nested in it, takes from its surroundings, except built-in names."""
    names = {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    names |= set(code.co_freevars)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            # A free variable of the nested function may be local to this one.
            names |= _outside_names(constant) - set(code.co_varnames) - set(code.co_cellvars)
    return frozenset(name for name in names if not hasattr(builtins, name))

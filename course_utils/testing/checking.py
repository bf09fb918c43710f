"""The line below an exercise: ``check("matmul_flops")`` tests what the student wrote and shows the rubric."""

from __future__ import annotations

import ast
import contextlib
import os
import random
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from course_utils.notebook import find_notebook, read_exercises
from course_utils.testing.observing import observe
from course_utils.testing.probes import from_source
from course_utils.testing.requirements import Case, Check, Outcome, Requirement, load, outcome, summarized
from course_utils.testing.rubric import Failure, Line, Met, Rubric, score

HIDDEN = "hidden"  # the folder with a class's own cases, one file for each exercise
_OF_STUDENT = re.compile(r"\bstudent\.(\w+)")  # the names that a probe takes from the notebook
SEED = 2_718_281  # seeds the global generators before each case, in a kernel as in the judge's sandbox


def check(name: str, *, hidden: bool = False) -> Rubric:
    """Test the exercise ``name`` and return its rubric, which a notebook displays.

    The student's names are looked up in the caller's namespace. Nothing is defined there, and the random generators'
    states and torch's settings are restored. With ``hidden``, which `nbgrader autograde` uses, the class's hidden cases
    count too. They're in a folder ``hidden`` in the working directory or above it; without them, only the visible cases
    count.

    Raises:
        FileNotFoundError: there's no such exercise.
    """
    rubric = _rubric(name, hidden, sys._getframe(1).f_globals)
    if os.environ.get("NBGRADER_EXECUTION") == "validate" and rubric.points < rubric.worth:
        # Validate shows only what a cell writes to stderr.
        print(f"{_title(name)}\n\n{rubric}", file=sys.stderr)
    return rubric


def _title(name: str) -> str:
    """The heading of an exercise in the current notebook, or its name."""
    path = find_notebook()
    with contextlib.suppress(OSError, ValueError):
        exercises = read_exercises(path) if path else ()
        return next((exercise.title for exercise in exercises if exercise.name == name), name)
    return name


def _rubric(name: str, hidden: bool, names: Mapping[str, Any]) -> Rubric:
    try:
        visible = load(name)
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no exercise {name!r} in this copy of course_utils: update it") from None
    if problem := _not_there(visible, names):
        lines = tuple(Line(r.text, r.points, Met.NOT_TRIED) for r in visible.requirements)
        return Rubric(name, lines, Failure("", advice=problem))
    with generators_left_alone():
        outcomes = {n: list(tried(r, r.cases, names)) for n, r in enumerate(visible.requirements)}
        rubric = score(visible, outcomes)
        if hidden and (more := _hidden(name)) is not None:
            agree = [
                all(r.comparison.difference(got, case.expected) is None for case, (got, _) in _pairs(r, names))
                for r in more.requirements
            ]
            rubric = rubric.in_full(visible, agree)
    return rubric


def _pairs(requirement: Requirement, names: Mapping[str, Any]) -> Iterator[tuple[Case, tuple[Outcome, str]]]:
    return zip(requirement.cases, tried(requirement, requirement.cases, names), strict=True)


def tried(requirement: Requirement, cases: Sequence[Case], names: Mapping[str, Any]) -> Iterator[tuple[Outcome, str]]:
    """The outcome of each of these cases of a requirement, with the call in words. ``names`` are the notebook's."""
    target = from_source(requirement.probe, requirement.target, names) if requirement.probe else None
    for case in cases:
        with settings_left_alone():
            seed_all(SEED)
            seen = observe(target or names[requirement.target], *case.args, **case.kwargs)
            seen = summarized(seen, requirement.probe, requirement.summary, case)
        yield outcome(seen, requirement.comparison), seen.call


def _not_there(check: Check, names: Mapping[str, Any]) -> str:
    """Why there is nothing to test yet, or "" if there is."""
    wanted: list[str] = []
    for requirement in check.requirements:
        wanted += _OF_STUDENT.findall(requirement.probe) if requirement.probe else [requirement.target]
    missing = [name for name in wanted if not callable(names.get(name))]
    if error := _syntax_error(wanted, names):
        return error
    if missing:
        return f"`{missing[0]}` is not defined yet: run the cell above, then this one again."
    return ""


def _syntax_error(wanted: Sequence[str], names: Mapping[str, Any]) -> str:
    """A message if the latest cell that defines one of these names has a syntax error; otherwise "".

    The kernel still holds the previous version then, and the rubric would be about that one.
    """
    history = names.get("In")
    if not isinstance(history, list):
        return ""
    defines = re.compile(rf"^\s*(?:def|class)\s+(?:{'|'.join(map(re.escape, wanted))})\b", re.MULTILINE)
    cell = next((text for text in reversed(history) if isinstance(text, str) and defines.search(text)), "")
    try:
        compile(cell, "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)  # as IPython does
    except (SyntaxError, ValueError) as error:
        line = f" in line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        return f"Python cannot read the cell above ({error.args[0]}{line}), so nothing in it was tested."
    return ""


def _hidden(name: str) -> Check | None:
    """The class's own cases of an exercise, or None if they aren't on this machine."""
    for folder in (here := Path.cwd(), *here.parents):
        path = folder / HIDDEN / f"{name}.check"
        if path.is_file():
            return Check.unpack(path.read_bytes())
    print("The class's hidden cases are not on this machine: the points are for the visible cases only.")
    return None


def seed_all(seed: int) -> None:
    """Seed the global generators of torch, NumPy and Python."""
    # Not torch.manual_seed: without a GPU it formats a traceback, which takes longer than most cases.
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed_all(seed)
    np.random.seed(seed % 2**32)
    random.seed(seed)


@contextlib.contextmanager
def generators_left_alone() -> Iterator[None]:
    """Restore the states of the global CPU generators afterwards."""
    states = torch.get_rng_state(), np.random.get_state(), random.getstate()
    try:
        yield
    finally:
        torch.set_rng_state(states[0])
        np.random.set_state(states[1])
        random.setstate(states[2])


@contextlib.contextmanager
def settings_left_alone() -> Iterator[None]:
    """Record gradients, even if an earlier cell has switched that off, and afterwards restore torch's gradient mode,
    default dtype and number of threads, since an answer may change them.
    """
    recording, dtype, threads = torch.is_grad_enabled(), torch.get_default_dtype(), torch.get_num_threads()
    torch.set_grad_enabled(True)
    try:
        yield
    finally:
        torch.set_grad_enabled(recording)
        if torch.get_default_dtype() != dtype:
            torch.set_default_dtype(dtype)
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)

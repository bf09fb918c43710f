"""A made-up class for those who don't have one yet: right and wrong answers, broken files and hostile ones."""

from __future__ import annotations

import copy
import random
import re
import shutil
from pathlib import Path

from autograder.authoring import build, checks
from autograder.authoring.exercise import KnownProgram
from autograder.grading import source
from autograder.grading.exercises import Exercise
from autograder.inside.limits import Limits
from autograder.project import ROOT
from autograder.records.folder import ClassFolder

HOSTILE = ROOT / "tests" / "hostile" / "attacks"
MARK = ".made-up-class"  # only a folder with this file in it is ever replaced
LIMITS = Limits(seconds_in_all=60)  # some of the class hangs on purpose, which should not keep you waiting
# fmt: off
_NAMES = [
    "ada", "alonzo", "annie", "barbara", "claude", "dennis", "donald", "dorothy", "edsger", "emmy", "ernst",
    "evelyn", "frances", "fred", "gladys", "grace", "hedy", "john", "joan", "kathleen", "katherine", "ken",
    "kurt", "leslie", "linus", "lise", "mary", "maurice", "niklaus", "radia", "rosalind", "sophie", "steve",
    "tim", "tony", "vera",
]
# fmt: on
_HANGS = "while True:\n    pass"
_CELL = re.compile(r"^# %% (\w+)\s*$", re.MULTILINE)


def make_class(folder: Path, source_of: Path, size: int = 24, seed: int = 0) -> source.Lecture:
    """Write a class into ``folder``, determined by the seed. Raises FileExistsError if something else is there."""
    clear(folder)
    (lecture,) = build.course_directory(folder, [source_of])
    course = ClassFolder(folder)
    chance = random.Random(seed)
    written = {exercise.name: checks.programs(lecture.name, exercise) for exercise in lecture.exercises}
    names = [f"{name}{n or ''}" for n in range(size // len(_NAMES) + 1) for name in _NAMES][:size]
    roster = ["id,first_name,last_name", *(f"{name},{name.title()},Example" for name in names)]
    course.roster.write_text("\n".join(roster) + "\n", encoding="utf-8")
    hostile, count = attacks(lecture), max(1, size // 8)
    hostile = hostile[:: max(1, len(hostile) // count)]
    last = lecture.exercises[-1].name
    for number, name in enumerate(names):
        skill = chance.uniform(0.25, 1.05)
        answers = {e.name: _answer(e, written[e.name], skill, chance) for e in lecture.exercises}
        if number % 12 == 5:
            continue  # did not hand in
        path = course.submission(name, lecture.name)
        path.parent.mkdir(parents=True)
        if number % 12 == 7:
            path.write_text('{"cells": [', encoding="utf-8")  # a file that was cut off
            continue
        if number % 12 == 9:
            answers[last] = _HANGS
        if number % 8 == 6 and hostile:
            answers |= hostile.pop()
        hand_in(path, lecture, answers)
    return lecture


def clear(folder: Path) -> None:
    """Make an empty folder for a demo; an earlier demo is replaced. Raises FileExistsError for any other content."""
    if folder.exists() and any(folder.iterdir()):
        if not (folder / MARK).is_file():
            raise FileExistsError(f"{folder} contains something else\n  → name an empty folder, or a new one")
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).write_text("made by `course demo`, which replaces this folder\n", encoding="utf-8")


def _answer(exercise: Exercise, programs: list[KnownProgram], skill: float, chance: random.Random) -> str:
    right = chance.random() < skill
    choices = [program.code for program in programs if (program.kind == "right") is right]
    # Some mistakes are made more often than others.
    weights = [1.0 / (1 + place) for place in range(len(choices))]
    return exercise.stub if chance.random() < 0.04 else chance.choices(choices, weights)[0]


def attacks(lecture: source.Lecture) -> list[dict[str, str]]:
    """The project's hostile submissions for this lecture: each one's code, by exercise."""
    known = {exercise.name for exercise in lecture.exercises}
    found = []
    for path in sorted(HOSTILE.glob("*.py")):
        cells = cells_of(path.read_text(encoding="utf-8"))
        if cells and cells.keys() <= known:
            found.append(cells)
    return found


def cells_of(text: str) -> dict[str, str]:
    """The cells of an attack's file, each below ``# %% exercise``: the code by exercise."""
    heads = list(_CELL.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return {head[1]: text[head.end() : end].strip("\n") for head, end in zip(heads, ends, strict=True)}


def hand_in(path: Path, lecture: source.Lecture, answers: dict[str, str]) -> None:
    """Write the students' notebook with these answers; an exercise without one keeps its stub."""
    notebook = copy.deepcopy(lecture.notebook)
    texts = {e.name: e.stub for e in lecture.exercises} | answers
    texts |= {f"test_{exercise.name}": exercise.tests for exercise in lecture.exercises}
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader") and cell.id in texts:
            cell.source = texts[cell.id]
    build.write_notebook(notebook, path)

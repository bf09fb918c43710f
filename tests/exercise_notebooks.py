"""Notebooks with all that a point can depend on and no more: executing a whole lecture takes three times as long."""

from __future__ import annotations

import copy
from collections.abc import Iterable

from nbformat import NotebookNode

from autograder.grading.exercises import Cell
from autograder.grading.program import Program
from autograder.grading.source import Lecture
from autograder.inside.messages import Names
from autograder.inside.names import defined, used


def exercises_only(lecture: Lecture, answers: Iterable[str]) -> NotebookNode:
    """A lecture's setup cell, its exercises, and those of its cells that one of the answers uses."""
    problems = lecture.problems
    program = Program(problems, [*problems.cells, *(Cell(text, "an answer") for text in answers)])
    for number in program.unread:
        text = program.steps[number].cell.text
        program.learn(number, Names(list(defined(text)), list(used(text))))
    needed = {program.steps[number].cell.text for number in program.to_run()}
    notebook = copy.deepcopy(lecture.notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    notebook.cells = [c for c in code if c is code[0] or "nbgrader" in c.metadata or c.source in needed]
    return notebook

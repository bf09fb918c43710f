"""Finds answers that are identical although that's unlikely: worth a look, but not proof of anything.

Two answers are identical if they're the same program apart from names, comments and layout. Identical short answers
mean nothing, nor do common mistakes; what's left are rare wrong answers, and long ones. Students who work together look
the same here as students who used the same source, so this only shows where a conversation may be worthwhile.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from autograder.grading.marks import Result
from autograder.grading.source import Lecture

# Sizes in nodes of the syntax tree, beyond those of the code that was handed out.
_SOME = 20  # at this size, two people who make the same mistake rarely write the same program
_LONG = 80  # at this size, two people who are right rarely do, either
_FEW = 0.05  # of the students who answered: if more of them share a wrong answer, it's a common mistake


@dataclass(frozen=True)
class Alike:
    """Students with identical answers to an exercise. ``published``: this project's own solution is identical, too."""

    exercise: str
    students: tuple[str, ...]
    right: bool
    published: bool
    code: str


def find(lecture: Lecture, found: Mapping[str, Result], answers: Mapping[str, Mapping[str, str]]) -> list[Alike]:
    """The identical answers among those graded; ``answers`` are the cells' texts, by student and exercise."""
    listed: list[Alike] = []
    for exercise in lecture.exercises:
        handed_out, published = normalized(exercise.stub), normalized(exercise.solution)
        groups: dict[str, list[str]] = defaultdict(list)
        sizes: dict[str, int] = {}
        right: dict[str, bool] = {}
        for student, theirs in answers.items():
            mark = next((mark for mark in found[student].marks if mark.exercise == exercise.name), None)
            key, size = normalized(theirs.get(exercise.name, ""))
            if mark is None or found[student].points is None or not size or key == handed_out[0]:
                continue
            groups[key].append(student)
            sizes[key] = size - handed_out[1]
            right[key] = (mark.points if mark.tests is None else mark.tests) >= mark.worth
        few = max(3, int(_FEW * sum(map(len, groups.values()))))
        for key, students in groups.items():
            of_ours = key == published[0]
            rare = not right[key] and sizes[key] >= _SOME and 2 <= len(students) <= few
            long = sizes[key] >= _LONG and (of_ours or len(students) >= 2)
            if rare or long:
                code = answers[students[0]][exercise.name]
                listed.append(Alike(exercise.name, tuple(students), right[key], of_ours, code))
    return listed


def normalized(code: str) -> tuple[str, int]:
    """A program without its own names, docstrings, annotations, comments and layout, and its size in nodes or words."""
    try:
        tree = ast.parse(code)
        own = {name: "" for node in ast.walk(tree) for name in _bound(node)}
        for node in ast.walk(tree):  # in an order that depends only on the program's structure
            for name in _bound(node):
                own[name] = own[name] or f"n{sum(map(bool, own.values()))}"
        return ast.dump(_Plain(own).visit(tree)), sum(1 for _ in ast.walk(tree))
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # magics, for instance
        words = re.findall(r"\w+|[^\w\s]", code)
        return " ".join(words), len(words)


def _bound(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Name):
        return [node.id] if isinstance(node.ctx, ast.Store) else []
    if isinstance(node, ast.arg):
        return [node.arg]
    return [node.name] if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)) else []


class _Plain(ast.NodeTransformer):
    def __init__(self, own: Mapping[str, str]) -> None:
        self.own = own

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(self.own.get(node.id, node.id), node.ctx)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(self.own.get(node.arg, node.arg))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        target = self.visit(node.target)
        return ast.Assign([target], self.visit(node.value)) if node.value else ast.Expr(target)

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)  # such as a docstring

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.name, node.returns = self.own.get(node.name, node.name), None
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self.generic_visit(node)
        node.name = self.own.get(node.name, node.name)
        return node

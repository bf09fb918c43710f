"""Mutants of a reference solution: small faults like those that students make, for testing the checks.

Every mutant has one change between ``### BEGIN SOLUTION`` and ``### END SOLUTION``: another operator, constant,
dimension, dtype or condition, a keyword or a statement dropped, two arguments swapped, or a function replaced with a
similar one. The hidden cases must reject each mutant, or the exercise's file must say why not.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from autograder.grading.exercises import Exercise

_OPERATORS: dict[type[ast.operator], list[type[ast.operator]]] = {
    ast.Add: [ast.Sub, ast.Mult],
    ast.Sub: [ast.Add],
    ast.Mult: [ast.Div, ast.Add],
    ast.Div: [ast.Mult, ast.FloorDiv],
    ast.FloorDiv: [ast.Div, ast.Mult],
    ast.Mod: [ast.FloorDiv, ast.Mult],
    ast.Pow: [ast.Mult],
    ast.MatMult: [ast.Mult],
    ast.LShift: [ast.RShift],
    ast.RShift: [ast.LShift],
    ast.BitAnd: [ast.BitOr],
    ast.BitOr: [ast.BitAnd],
    ast.BitXor: [ast.BitOr],
}
_COMPARISONS: dict[type[ast.cmpop], list[type[ast.cmpop]]] = {
    ast.Lt: [ast.LtE, ast.Gt],
    ast.LtE: [ast.Lt, ast.GtE],
    ast.Gt: [ast.GtE, ast.Lt],
    ast.GtE: [ast.Gt, ast.LtE],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
}
_NEIGHBORS: dict[str, list[str]] = {
    "triu": ["tril"],
    "tril": ["triu"],
    "zeros": ["ones"],
    "ones": ["zeros"],
    "sum": ["mean"],
    "mean": ["sum"],
    "max": ["min"],
    "min": ["max"],
    "amax": ["amin"],
    "amin": ["amax"],
    "any": ["all"],
    "all": ["any"],
    "sqrt": ["rsqrt"],
    "rsqrt": ["sqrt"],
    "numel": ["dim"],
    "stride": ["size"],
    "size": ["stride"],
    "shape": ["stride()"],
    "floor": ["ceil"],
    "ceil": ["floor"],
    "median": ["mean"],
    "float16": ["bfloat16"],
    "bfloat16": ["float16"],
    "float32": ["float64"],
    "float64": ["float32"],
    "int64": ["int32"],
    "int32": ["int64"],
    "bool": ["int64"],
    "storage_offset": ["dim"],
    "data_ptr": ["storage_offset"],
    "transpose": ["swapaxes", "view"],
    "contiguous": ["clone"],
    "sorted": ["list"],
    "reversed": ["list"],
    "prod": ["sum"],
}


@dataclass(frozen=True)
class Mutant:
    """A changed reference. ``title`` names the change: ``before → after``, numbered if it occurs more than once."""

    title: str
    code: str


def mutants(exercise: Exercise) -> list[Mutant]:
    """All mutants of an exercise's reference that differ from it and from each other."""
    tree = ast.parse(exercise.solution)
    marks = [n for n, s in enumerate(exercise.solution.splitlines(), 1) if s.strip().startswith("### ")]
    inside = [range(a, b) for a, b in zip(marks[::2], marks[1::2], strict=True)]
    original = ast.unparse(tree)
    found: dict[str, Mutant] = {}
    titles: dict[str, int] = {}
    nodes = list(_walk(tree))
    for place, node in enumerate(nodes):
        line = getattr(node, "lineno", None)
        if line is None or not any(line in region for region in inside):
            continue
        for change, dropped in _changes(node):
            changed = copy.deepcopy(tree)
            target = list(_walk(changed))[place]
            before = ast.unparse(target)
            replacement = change(target)
            if replacement is None:
                continue
            _replace(changed, target, replacement)
            try:
                code = ast.unparse(ast.fix_missing_locations(changed))
                compile(code, "<mutant>", "exec")
            except (SyntaxError, ValueError):
                continue
            if code == original or code in found:
                continue
            after = "(dropped)" if dropped else ast.unparse(replacement)
            title = f"{_line(before)} → {_line(after)}"
            titles[title] = titles.get(title, 0) + 1
            found[code] = Mutant(title if titles[title] == 1 else f"{title} #{titles[title]}", code)
    return list(found.values())


def _line(text: str) -> str:
    return " ".join(text.split())[:100]


def _walk(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes except annotations, decorators and docstrings, whose changes no test could detect."""
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                continue
            if isinstance(child, ast.AST):
                yield child
                yield from _walk(child)


def _replace(tree: ast.AST, old: ast.AST, new: ast.AST) -> None:
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, field, new)
                return
            if isinstance(value, list):
                for i, item in enumerate(value):
                    if item is old:
                        value[i] = new
                        return
    raise LookupError("the node is not in the tree")


_Change = Callable[[ast.AST], ast.AST | None]


def _changes(node: ast.AST) -> Iterator[tuple[_Change, bool]]:
    """Ways to change a node: a function from the node to its replacement, and whether that drops the node."""
    if isinstance(node, ast.BinOp):
        for operator in _OPERATORS.get(type(node.op), []):
            yield _set("op", operator()), False
        yield lambda n: n.left, False  # type: ignore[attr-defined]
        yield lambda n: n.right, False  # type: ignore[attr-defined]
        if isinstance(node.op, (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult)):
            yield _swap_operands, False
    elif isinstance(node, ast.AugAssign):
        for operator in _OPERATORS.get(type(node.op), []):
            yield _set("op", operator()), False
    elif isinstance(node, ast.Compare):
        for comparison in _COMPARISONS.get(type(node.ops[0]), []):
            yield _set("ops", [comparison(), *node.ops[1:]]), False
    elif isinstance(node, ast.BoolOp):
        yield _set("op", ast.Or() if isinstance(node.op, ast.And) else ast.And()), False
        yield lambda n: n.values[0], False  # type: ignore[attr-defined]
        yield lambda n: n.values[-1], False  # type: ignore[attr-defined]
    elif isinstance(node, ast.UnaryOp):
        yield lambda n: n.operand, False  # type: ignore[attr-defined]
    elif isinstance(node, ast.Constant):
        for value in _other_constants(node.value):
            yield _constant(value), False
    elif isinstance(node, ast.Attribute):
        for other in _NEIGHBORS.get(node.attr, []):
            yield _neighbor(other), False
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        for other in _NEIGHBORS.get(node.id, []):
            yield _neighbor(other), False
    elif isinstance(node, ast.Call):
        if len(node.args) >= 2 and not any(isinstance(a, ast.Starred) for a in node.args[:2]):
            yield _swap_arguments, False
        for i in range(len(node.keywords)):
            yield _drop_keyword(i), False
    elif isinstance(node, ast.Slice):
        for part in ("lower", "upper", "step"):
            if getattr(node, part) is not None:
                yield _set(part, None), False
    elif isinstance(node, ast.comprehension):
        if node.ifs:
            yield _set("ifs", []), False
    elif isinstance(node, (ast.If, ast.IfExp, ast.While)):
        yield _set("test", ast.Constant(True)), False
        yield _set("test", ast.Constant(False)), False
    if isinstance(node, ast.stmt) and not isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Pass, ast.Import)):
        yield lambda n: ast.Pass(), True


def _set(field: str, value: object) -> _Change:
    def change(node: ast.AST) -> ast.AST:
        result = copy.copy(node)
        setattr(result, field, value)
        return result

    return change


def _constant(value: object) -> _Change:
    return lambda node: ast.Constant(value)  # type: ignore[arg-type]


def _other_constants(value: object) -> list[object]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1] if value else [1]
    if isinstance(value, float):
        return [value * 2, 0.0]
    if isinstance(value, str) and "->" in value:
        left, right = value.split("->")
        axes = right.split()
        if len(axes) >= 2:
            axes[-1], axes[-2] = axes[-2], axes[-1]
            return [f"{left}-> {' '.join(axes)}"]
    return []


def _neighbor(other: str) -> _Change:
    def change(node: ast.AST) -> ast.AST:
        name, called = other.removesuffix("()"), other.endswith("()")
        result = copy.copy(node)
        if isinstance(result, ast.Attribute):
            result.attr = name
        elif isinstance(result, ast.Name):
            result.id = name
        assert isinstance(result, ast.expr)
        return ast.Call(result, [], []) if called else result

    return change


def _swap_operands(node: ast.AST) -> ast.AST:
    assert isinstance(node, ast.BinOp)
    return ast.BinOp(node.right, node.op, node.left)


def _swap_arguments(node: ast.AST) -> ast.AST:
    assert isinstance(node, ast.Call)
    return ast.Call(node.func, [node.args[1], node.args[0], *node.args[2:]], node.keywords)


def _drop_keyword(index: int) -> _Change:
    def change(node: ast.AST) -> ast.AST:
        assert isinstance(node, ast.Call)
        return ast.Call(node.func, node.args, node.keywords[:index] + node.keywords[index + 1 :])

    return change

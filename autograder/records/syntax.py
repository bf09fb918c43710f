"""What an answer looks like to Python's parser, which runs in a process of its own.

Nothing runs a student's code here, but text alone can keep a parser busy for hours or crash it. So this file is also a
program: it reads programs, each a line of JSON, and writes what it finds in each. It imports nothing of the project.
"""

from __future__ import annotations

import ast
import atexit
import functools
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass
from typing import Any

_SECONDS = 5.0  # for one program; honest ones take milliseconds
_TO_BEGIN = 60.0
_LONGEST = 100_000  # characters of a program of which the words are looked at, if it can't be parsed
_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError)


@dataclass(frozen=True)
class Parsed:
    """A program ``normalized``, without its own names, docstrings, annotations, comments and layout, and its size in
    nodes of the syntax tree. ``lines`` are those that decide or compute something, with their numbers.

    For a text that can't be parsed, such as one with magics, these are its words, their number, and no lines.
    """

    normalized: str
    size: int
    lines: tuple[tuple[int, str], ...] = ()


@functools.lru_cache(maxsize=4096)
def parsed(code: str) -> Parsed:
    """Parse a program, in another process and for at most a few seconds."""
    global _process
    if _process is None:
        _process = subprocess.Popen([sys.executable, "-I", __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        atexit.register(_end)
        _answer(_process, "", _TO_BEGIN)
    if (answer := _answer(_process, code, _SECONDS)) is None:
        _end()
    if not answer:
        words = re.findall(r"\w+|[^\w\s]", code[:_LONGEST])
        return Parsed(" ".join(words), len(words))
    normalized, size, lines = answer
    return Parsed(normalized, size, tuple((number, line) for number, line in lines))


_process: subprocess.Popen[bytes] | None = None


def _end() -> None:
    global _process
    if _process is not None:
        _process.kill()
        _process.communicate()
        _process = None


def _answer(process: subprocess.Popen[bytes], code: str, seconds: float) -> list[Any] | None:
    """What the process finds in a program, nothing if the program can't be parsed, or None if the process ended."""
    assert process.stdin is not None and process.stdout is not None
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    try:
        process.stdin.write(json.dumps(code).encode() + b"\n")
        process.stdin.flush()
        line = process.stdout.readline()
    except OSError:
        return None
    except BaseException:  # Ctrl-C, say, which a busy parser doesn't notice
        process.kill()
        raise
    finally:
        timer.cancel()
    return json.loads(line) if line.endswith(b"\n") else None


def _read(code: str) -> Parsed:
    """Parse a program. Raises SyntaxError, ValueError, RecursionError or MemoryError if that's impossible."""
    tree = ast.parse(code)
    lines = tuple(_interesting(tree, code.splitlines()))
    own = {name: "" for node in ast.walk(tree) for name in _bound(node)}
    for node in ast.walk(tree):  # in an order that depends only on the program's structure
        for name in _bound(node):
            own[name] = own[name] or f"n{sum(map(bool, own.values()))}"
    return Parsed(ast.dump(_Plain(own).visit(tree)), sum(1 for _ in ast.walk(tree)), lines)


def _interesting(tree: ast.AST, lines: list[str]) -> Iterator[tuple[int, str]]:
    seen = set()
    for node in ast.walk(tree):
        interesting = isinstance(node, (ast.If, ast.For, ast.While)) or (
            isinstance(node, (ast.Return, ast.Assign, ast.AugAssign))
            and isinstance(node.value, (ast.BinOp, ast.Call, ast.Compare, ast.IfExp, ast.ListComp, ast.GeneratorExp))
        )
        if interesting and isinstance(node, ast.stmt) and node.lineno not in seen and node.lineno <= len(lines):
            seen.add(node.lineno)
            yield node.lineno, lines[node.lineno - 1].strip()


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


def _main() -> None:
    for line in sys.stdin:
        try:
            found = astuple(_read(json.loads(line)))
        except _ERRORS:
            found = ()
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    _main()

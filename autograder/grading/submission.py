"""Reads what a student handed in, whatever state it is in, and reports what a person should know about it."""

from __future__ import annotations

import errno
import hashlib
import itertools
import json
import os
import re
import stat
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .exercises import Cell, ProblemSet
from .key import key
from .text import one_line

SIZE_LIMIT = 50_000_000  # bytes; a lecture with all its figures has well under one million
CELL_LIMIT = 200_000  # characters; the longest reference solution has some 2,000
NAME_LIMIT = 100  # characters of a cell's name, which messages quote; our longest has a third of that
CELLS_LIMIT = 1_000  # code cells; the longest lecture has about a hundred
PARTS_LIMIT = 2_000_000  # commas and brackets, whose number bounds the memory and time for parsing

_MADE = re.compile(r"^(?:(?:async[ ]+)?def|class)[ ]+(\w+)|^(\w+)[ ]*(?::[^=\n]{1,100})?=(?!=)", re.MULTILINE)
AGAIN = "ask the student to hand in again; no part of it can be graded"


@dataclass(frozen=True)
class Finding:
    """Something about a submission that a person should see, and what to do."""

    path: Path
    problem: str
    remedy: str

    def __str__(self) -> str:
        return f"{one_line(str(self.path))}: {one_line(self.problem)}\n  → {one_line(self.remedy)}"


@dataclass(frozen=True)
class Submission:
    """The readable code cells of a notebook, in order, and what was found while reading.

    ``everything`` also has the text cells, if the lecture has questions that may be answered in one.
    """

    path: Path
    cells: tuple[Cell, ...]
    findings: tuple[Finding, ...]
    everything: tuple[Cell, ...] = ()

    def answers(self, problems: ProblemSet) -> dict[str, str]:
        """The text of the solution cells by exercise or question; if there are copies, the last one.

        If an exercise's cell is missing or unchanged, it's that of the student's last cell with a function, class or
        variable of its name; if such a cell comes after the exercise's own, its text is added. To a task, and to a
        question whose cell is unchanged, belong the cells that the student added below it.
        """
        known = {each.name for each in problems.exercises} | {each.name for each in problems.questions}
        cells = self.everything or self.cells
        places = {cell.name: place for place, cell in enumerate(cells) if cell.name in known}
        found = {name: cells[place].text for name, place in places.items()}
        for name in found:
            parts = [cell.text for cell in cells if cell.name == name]
            if _split(parts):
                found[name] = "\n\n".join(parts)
        ours = {cell.plain for cell in problems.cells}
        own = [(n, cell.text) for n, cell in enumerate(cells) if not (cell.name or cell.prose or cell.plain in ours)]
        last = {name: (place, text) for place, text in own for name in made(text)}
        for exercise in problems.exercises:
            name = exercise.name
            if name not in last:
                continue
            place, text = last[name]
            if found.get(name, "").strip() in ("", exercise.stub.strip()):
                found[name] = text
            elif place > places[name]:
                found[name] += f"\n\n# Another cell defines it again:\n\n{text}"
        for each in problems.questions:
            if each.name in places and (each.task or found[each.name].strip() == each.text.strip()):
                after = Cell(each.after).plain
                below = cells[places[each.name] + 1 :]
                added = itertools.takewhile(lambda cell: not cell.name and cell.plain != after, below)  # noqa: B023
                found[each.name] = "\n\n".join([found[each.name], *(cell.text for cell in added)])
        return found


def made(text: str) -> set[str]:
    """The names of functions, classes and variables that code seems to have at its top level; imports don't count."""
    return {function or variable for function, variable in _MADE.findall(text)}


def _split(texts: Sequence[str]) -> bool:
    """Whether cells of one name are parts of a cell, as JupyterLab's *Split Cell* makes them, rather than copies."""
    names = [name for text in texts for name in made(text)]
    return len(texts) > 1 and len({*names}) == len(names) and len({*texts}) == len(texts)


@dataclass(frozen=True)
class HandedIn:
    """What one student handed in for one lecture, read once.

    Either ``data`` has the bytes of a file, or ``finding`` says why it can't be graded (it's a link or a folder, for
    instance), or ``error`` is this machine's failure to read it, or all are None and nothing was handed in.
    """

    path: Path
    data: bytes | None = None
    finding: Finding | None = None
    error: OSError | None = None

    @property
    def nothing(self) -> bool:
        """Whether nothing was handed in."""
        return self.data is None and self.finding is None and self.error is None

    @property
    def content(self) -> bytes:
        """What a result depends on: the bytes, or why there are none."""
        return self.finding.problem.encode() if self.finding else self.data or b""

    @property
    def digest(self) -> str:
        """The digest that tells whether two results are for the same work."""
        return digest(self.content)

    def key(self, problems: ProblemSet) -> str:
        """The key of a result for this submission."""
        return key(self.content, problems)


def digest(content: bytes) -> str:
    """The digest of a submission's bytes."""
    return hashlib.sha256(content).hexdigest()


def read(path: Path) -> HandedIn:
    """Read the file at ``path``. Never raises an error, whatever is there."""
    try:
        return HandedIn(path, data=_content(path))
    except _Broken as broken:
        return HandedIn(path, finding=Finding(path, broken.problem, broken.remedy))
    except FileNotFoundError:
        return HandedIn(path)
    except OSError as error:
        return HandedIn(path, error=error)


def parse(handed_in: HandedIn, problems: ProblemSet) -> Submission:
    """Find the cells in what was handed in. Never raises an error because of its content: what's wrong is a finding."""
    path = handed_in.path
    if handed_in.data is None:
        finding = handed_in.finding
        if handed_in.error is not None:
            problem = f"it cannot be read ({handed_in.error.strerror})"
            finding = Finding(path, problem, "check its permissions and the disk")
        elif finding is None:
            remedy = f"a submission is STUDENT/{problems.lecture_name}/{problems.lecture_name}.ipynb"
            finding = Finding(path, "there is no such notebook", remedy)
        return Submission(path, (), (finding,))
    try:
        found, findings = _cells(path, handed_in.data)
    except _Broken as broken:
        return Submission(path, (), (Finding(path, broken.problem, broken.remedy or AGAIN),))

    counts = Counter(cell.name for cell, _ in found if cell.name)
    known = {exercise.name for exercise in problems.exercises}
    wanted = {name for e in problems.exercises for name in (e.name, f"test_{e.name}")}
    for exercise in problems.exercises:
        if not counts[exercise.name]:
            problem = f"the cell of exercise {exercise.name} is missing or has lost its metadata"
            findings.append(Finding(path, problem, "an answer in another cell is graded, too; check for one"))
        if not counts[f"test_{exercise.name}"]:
            problem = f"the test cell of {exercise.name} is missing"
            remedy = "`nbgrader autograde` cannot give its points: paste the answers into a fresh notebook"
            findings.append(Finding(path, problem, remedy))
    questions = {question.name for question in problems.questions}
    wanted |= questions
    for name in sorted(questions - counts.keys()):
        problem = f"the cell of question {name} is missing or has lost its metadata"
        findings.append(Finding(path, problem, "check whether another cell has its answer"))
    for name, count in sorted(counts.items()):
        if count > 1 and not (name in known and _split([cell.text for cell, _ in found if cell.name == name])):
            problem = f"the cell {name} occurs {count} times"
            findings.append(Finding(path, problem, "all of them run, in order; nbgrader rejects copies: delete them"))
        if name not in wanted:
            problem = f"the cell {name} does not belong to {problems.lecture_name}"
            findings.append(Finding(path, problem, "check that this is the right assignment"))
    cells: list[Cell] = []
    everything: list[Cell] = []
    for cell, kind in found:
        if kind != "code":
            if questions and len(everything) < 2 * CELLS_LIMIT:
                everything.append(Cell(cell.text[:CELL_LIMIT], cell.name, prose=True))
            if cell.name in known:
                problem = f"the cell of exercise {cell.name} is of type {kind!r:.40}"
                findings.append(Finding(path, problem, "it is not run; it must be code"))
        elif len(cell.text) > CELL_LIMIT:
            problem = f"{cell.title} has {len(cell.text):,} characters"
            findings.append(Finding(path, problem, f"it is not run; the limit is {CELL_LIMIT:,}"))
        elif len(cells) == CELLS_LIMIT:
            problem = f"it has more than {CELLS_LIMIT:,} code cells"
            findings.append(
                Finding(path, problem, "only the first ones are run; ask for a notebook without the others")
            )
            break
        else:
            cells.append(cell)
            everything.append(cell)
    return Submission(path, tuple(cells), tuple(findings), tuple(everything))


class _Broken(Exception):
    def __init__(self, problem: str, remedy: str = "") -> None:
        self.problem, self.remedy = problem, remedy


def _content(path: Path) -> bytes:
    """The content of a regular file. Never follows a link, waits for a pipe, or reads more than the limit."""
    for part in (path.parent.parent, path.parent, path):  # stat fails below a link whose target's name is too long
        if part.is_symlink():
            where = "it" if part == path else f"its folder {part.name}"
            raise _Broken(f"{where} is a symbolic link, which is not followed", "ask for the file itself")
    no_file = _Broken("it is a folder, a pipe, a socket or a device, not a file", "ask for the notebook itself")
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except NotADirectoryError:
        raise FileNotFoundError(path) from None
    except OSError as error:
        if error.errno != errno.ENXIO:  # it's a socket
            raise
        raise no_file from None
    try:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode):
            raise no_file
        if about.st_size > SIZE_LIMIT:
            raise _Broken(f"it has {about.st_size:,} bytes", "ask for the notebook with its outputs cleared")
        with open(handle, "rb", closefd=False) as file:
            return file.read(SIZE_LIMIT + 1)
    finally:
        os.close(handle)


def _cells(path: Path, content: bytes) -> tuple[list[tuple[Cell, str]], list[Finding]]:
    """The cells, each with its type. Doesn't use nbformat, whose validation can take hours on a hostile file."""
    if not content.strip():
        raise _Broken("it is empty")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _Broken("it is not text, so it is not a notebook") from None
    if sum(map(text.count, ",[{")) > PARTS_LIMIT:
        raise _Broken(f"it has more than {PARTS_LIMIT:,} parts", "ask for the notebook with its outputs cleared")
    try:
        notebook = json.loads(text, parse_int=_whole)
    except json.JSONDecodeError as error:
        raise _Broken(f"it is not JSON: {error}"[:200]) from None
    except (RecursionError, ValueError) as error:
        raise _Broken(f"it is JSON but not a notebook ({type(error).__name__})") from None
    odd = "it is JSON but not a notebook"
    if not isinstance(notebook, dict) or not isinstance(notebook.get("nbformat"), int):
        raise _Broken(f"{odd} (it has no nbformat)")
    if notebook["nbformat"] != 4:
        raise _Broken(f"it is in notebook format {notebook['nbformat']!r:.20}", "ask for it in format 4")
    if not isinstance(cells := notebook.get("cells"), list):
        raise _Broken(f"{odd} (it has no list of cells)")
    found, findings, broken = [], [], 0
    for cell in cells:
        metadata = cell.get("metadata") if isinstance(cell, dict) else None
        # Some tools leave out what is empty, or write null.
        metadata = {} if metadata is None and isinstance(cell, dict) else metadata
        nbgrader = metadata.get("nbgrader") or {} if isinstance(metadata, dict) else None
        name = nbgrader.get("grade_id", "") if isinstance(nbgrader, dict) else None
        source = cell.get("source") if isinstance(cell, dict) else None
        if isinstance(source, list) and all(isinstance(line, str) for line in source):
            source = "".join(source)
        if not isinstance(name, str) or not isinstance(source, str):
            broken += 1
        else:
            found.append((Cell(source, name[:NAME_LIMIT], False, *_outputs(cell)), str(cell.get("cell_type"))))
    if broken:
        problem = f"{broken} of its {len(cells)} cells cannot be read"
        findings.append(Finding(path, problem, "the others are graded; check whether one of these has an answer"))
    kernel = notebook.get("metadata", {})
    kernel = kernel.get("kernelspec", {}) if isinstance(kernel, dict) else None
    language = kernel.get("language", "python") if isinstance(kernel, dict) else None
    if language != "python":
        problem = f"it was made with a kernel for {language!r:.40}"
        findings.append(Finding(path, problem, "it is graded as Python; check that this is the right notebook"))
    return found, findings


def _whole(digits: str) -> int:
    """A number in a notebook. Python refuses to read very many digits, which an output may have and nobody asks for."""
    return int(digits) if len(digits) <= 4_000 else 0


def _outputs(cell: dict[str, Any]) -> tuple[str | None, float | None]:
    """What a cell's outputs say: the error that stopped it, and the points that a check showed (see :class:`Cell`)."""
    outputs = cell.get("outputs")
    outputs = [each for each in outputs if isinstance(each, dict)] if isinstance(outputs, list) else []
    ended = "" if outputs or isinstance(cell.get("execution_count"), int) else None
    earned = None
    for output in outputs:
        if output.get("output_type") == "error" and isinstance(error := output.get("ename"), str):
            ended = error[:NAME_LIMIT]
        data = output.get("data")
        plain = data.get("text/plain") if isinstance(data, dict) else None
        plain = plain[0] if isinstance(plain, list) and len(plain) == 1 else plain
        if isinstance(plain, str) and re.fullmatch(r"\d{1,6}\.\d{1,6}", plain):
            earned = float(plain)
    return ended, earned

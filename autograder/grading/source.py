"""Reads a lecture's source (`solutions/NN_topic.py`, Jupytext's percent format) and checks its shape.

An exercise is two cells with nbgrader's metadata. The solution cell's ``grade_id`` is the exercise's name, and the cell
has the reference solution between ``### BEGIN SOLUTION`` and ``### END SOLUTION``. Right below it, the test cell, with
the ``grade_id`` ``test_<name>``, is the line ``check("<name>")``. What it tests, and the points, come from the
exercise's own file, ``solutions/exercises/NN_topic/<name>.py`` (:mod:`autograder.authoring.exercise`). The first code
cell has the imports; an exercise needs only that cell and its own.

nbgrader's manually graded cells are questions, with ``points`` in their metadata and no test: a solution cell (code or
text) that is also a ``grade`` cell, or a ``task``, which is a text cell that says what to do.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

from autograder import CourseError
from autograder.project import CHECKS, SOLUTIONS

from .exercises import SOLUTION, STUB, TEXT_STUB, Cell, Exercise, ProblemSet, Question, with_stub

_HEADER = re.compile(r"^# %%")
_NUMBER = re.compile(r"^(?:# (\d+) ·|### Exercise (\d+)\.\d+)", re.MULTILINE)  # a lecture's, in a heading
_TAG = re.compile(r"^(item|error)-(\d+)$")
_TIMED = "timed"
_FOLDED, _OPEN = "folded", "open"
_DRAWING = 15  # a cell that draws is folded if it has at least this many lines
# Metadata that folds a cell's code in JupyterLab and Notebook, in Colab and in the book. VS Code has none.
_AS_FOLDED = {"jupyter": {"source_hidden": True}, "cellView": "form", "tags": ["hide-input"]}
# The metadata that JupyterLab adds when it opens a notebook; with it, opening one changes nothing. The version is the
# one that `course_utils.kernel` reports, since the real one differs between computers.
_AS_SAVED = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {
        "codemirror_mode": {"name": "ipython", "version": 3},
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "nbconvert_exporter": "python",
        "pygments_lexer": "ipython3",
        "version": "3",
    },
}
# Defaults for nbgrader's cell metadata, which must be complete; a source may leave some out.
_METADATA = {"grade": False, "locked": False, "schema_version": 3, "solution": False, "task": False}


class SourceError(CourseError):
    """A source can't become a notebook; the message says which file and line, what's wrong, and what to do."""

    def __init__(self, path: Path, line: int, problem: str, remedy: str) -> None:
        super().__init__(f"{path}:{line}: {problem}\n  → {remedy}")


@dataclass(frozen=True)
class Proof:
    """A cell that proves an item of the course or teaches an error: its index, and the line where it starts."""

    kind: str
    number: int
    cell: int
    line: int


@dataclass(frozen=True)
class Lecture:
    """A lecture's source, read and checked.

    ``proofs`` are the cells tagged ``item-7`` or ``error-12``, ``timed`` the indices of those tagged ``timed``: they
    print or draw timings, which change from run to run. All other cells have the same outputs in every run.

    The notebook folds the code of the first cell, of cells that reveal an answer, and of long cells that draw. The tags
    ``folded`` and ``open`` override this.
    """

    name: str
    path: Path
    notebook: nbformat.NotebookNode
    exercises: tuple[Exercise, ...]
    proofs: tuple[Proof, ...]
    timed: tuple[int, ...]
    questions: tuple[Question, ...] = ()

    @property
    def parts(self) -> tuple[Exercise | Question, ...]:
        """Everything that has points, in the notebook's order."""
        places = {cell.id: place for place, cell in enumerate(self.notebook.cells)}
        return tuple(sorted((*self.exercises, *self.questions), key=lambda each: places[each.name]))

    @property
    def problems(self) -> ProblemSet:
        """What grading needs to know about the lecture."""
        texts = {e.name: e.stub for e in self.exercises} | {f"test_{e.name}": e.tests for e in self.exercises}
        texts |= {question.name: question.text for question in self.questions}
        code = [cell for cell in self.notebook.cells if cell.cell_type == "code"]
        cells = [Cell(texts[cell.id], cell.id) if cell.id in texts else Cell(cell.source) for cell in code]
        return ProblemSet(self.name, self.exercises, tuple(cells), questions=self.questions)

    @property
    def points(self) -> float:
        """The total points of all exercises and questions."""
        return self.problems.points


def lectures(folder: Path) -> list[Path]:
    """The lecture sources in a folder, in order.

    Raises FileNotFoundError if there are none, and :class:`SourceError` if a name begins with a single digit.
    """
    if short := sorted(folder.glob("[0-9]_*.py")):
        raise SourceError(
            short[0], 1, "the names of lectures begin with two digits", f"rename it, for instance to 2{short[0].name}"
        )
    found = sorted(folder.glob("[0-9][0-9]_*.py"))
    if not found:
        raise FileNotFoundError(
            f"there are no lectures in {folder}\n  → name their sources NN_topic.py, such as 23_ours.py; "
            "CONTRIBUTING.md has one to start from"
        )
    return found


def with_hidden(tests: str) -> str:
    """A test cell as instructors get it, so that `nbgrader autograde` also tests the class's hidden cases."""
    hidden = "from course_utils.testing import check\n\n" + tests.replace(")", ", hidden=True)")
    return f"{tests}\n### BEGIN HIDDEN TESTS\n{hidden}\n### END HIDDEN TESTS"


def read(path: Path, *, built: bool = True) -> Lecture:
    """Read and check one source. Raises :class:`SourceError` for anything that would make the notebook wrong.

    If ``built`` is False, its checks don't have to exist yet, because they're about to be built from it.
    """
    if not path.is_file():
        raise SourceError(path, 1, "there is no such source", "lectures are named solutions/NN_topic.py")
    return parse(path, path.read_text(encoding="utf-8"), built=built)


def parse(path: Path, text: str, *, built: bool = True) -> Lecture:
    """Like `read`, but from the text of a source; ``path`` is only its name."""
    lines = [number for number, line in enumerate(text.splitlines(), 1) if _HEADER.match(line)]
    if not lines or text[: text.index("# %%")].strip():
        raise SourceError(path, 1, "it does not begin with a cell", "write `# %%` or `# %% [markdown]` at the top")
    all_lines = text.splitlines()
    for start, end in zip(lines, [*lines[1:], len(all_lines) + 1], strict=True):
        body = "\n".join(all_lines[start : end - 1]).strip()
        if "[markdown]" in all_lines[start - 1] and body.startswith(('r"""', '"""')) and not body[4:].endswith('"""'):
            raise SourceError(path, start, 'the """ of this text is not closed', 'end the cell with a line `"""`')
    try:
        notebook = copy.deepcopy(_converted(text))  # ours to change
    except Exception as error:
        raise SourceError(path, 1, f"Jupytext cannot read it: {error}", "compare it with another source") from error
    cells = notebook.cells
    for cell in cells:
        if nbgrader := cell.metadata.get("nbgrader"):
            cell.metadata["nbgrader"] = {**_METADATA, **nbgrader}
    if len(cells) != len(lines):
        raise SourceError(path, 1, "its cells do not match its `# %%` lines", "look for a stray `# %%`")
    _check_numbers(path, cells, lines)
    proofs = _check_cells(path, cells, lines)
    timed = tuple(i for i, cell in enumerate(cells) if _TIMED in cell.metadata.get("tags", []))
    questions = _questions(path, cells, lines)
    exercises = _exercises(path, cells, lines, built)
    _finish(notebook)
    return Lecture(path.stem, path, notebook, exercises, proofs, timed, questions)


@functools.lru_cache(maxsize=32)
def _converted(text: str) -> nbformat.NotebookNode:
    import jupytext  # imports JupyterLab's server, which only commands that read sources should wait for

    notebook: nbformat.NotebookNode = jupytext.reads(text, fmt="py:percent")
    return notebook


def _check_numbers(path: Path, cells: list[Any], lines: list[int]) -> None:
    """Raise :class:`SourceError` if the number in the title or in an exercise's heading isn't the one of the file."""
    for cell, line in zip(cells, lines, strict=True):
        for heading in _NUMBER.finditer(cell.source) if cell.cell_type == "markdown" else ():
            if path.name[:2].isdecimal() and int(heading[1] or heading[2]) != (number := int(path.name[:2])):
                raise SourceError(
                    path, line, f"{heading[0].strip('# ·')!r} does not fit the name {path.name}",
                    f"write {number:02} in the title and {number}.1, {number}.2 and so on in the exercises' headings, "
                    "or rename the file",
                )  # fmt: skip


def _check_cells(path: Path, cells: list[Any], lines: list[int]) -> tuple[Proof, ...]:
    seen: dict[str, int] = {}
    proofs: list[Proof] = []
    for index, (cell, line) in enumerate(zip(cells, lines, strict=True)):
        if stray := cell.metadata.get("title") or cell.metadata.get("incorrectly_encoded_metadata"):
            raise SourceError(
                path, line, f"the header of this cell is malformed: {stray!r}",
                'metadata is key=JSON, as in `# %% nbgrader={"grade": false, …}` or `# %% tags=["item-7"]`',
            )  # fmt: skip
        marks = [s for part in cell.source.splitlines() if (s := part.strip()) in SOLUTION]
        if marks != list(SOLUTION) * (len(marks) // 2):
            raise SourceError(
                path, line, f"`{SOLUTION[0]}` and `{SOLUTION[1]}` do not come in pairs",
                "close each region in its own cell",
            )  # fmt: skip
        if cell.cell_type == "code" and not cell.source.strip():
            raise SourceError(path, line, "this code cell is empty", "fill it or remove it")
        for tag in (tag for tag in cell.metadata.get("tags", []) if tag not in (_TIMED, _FOLDED, _OPEN)):
            if not (match := _TAG.match(tag)):
                raise SourceError(
                    path, line, f"the tag {tag!r} has no meaning here", "use item-7, error-12, timed, folded or open"
                )
            if not re.search(r"\bassert\b", cell.source):
                raise SourceError(path, line, f"this cell is tagged {tag} and proves nothing", "add an assert")
            proofs.append(Proof(match[1], int(match[2]), index, line))
        if grade_id := cell.metadata.get("nbgrader", {}).get("grade_id"):
            if grade_id in seen:
                raise SourceError(
                    path, line, f"the grade_id {grade_id!r} is used twice, first on line {seen[grade_id]}",
                    "give each cell a grade_id of its own",
                )  # fmt: skip
            seen[grade_id] = line
    return tuple(proofs)


def _is_question(cell: Any) -> bool:
    about = cell.metadata.get("nbgrader", {})
    return bool(about.get("task") or (about.get("grade") and about.get("solution")))


def _questions(path: Path, cells: list[Any], lines: list[int]) -> tuple[Question, ...]:
    """The cells that a person grades; completes their metadata."""
    found: list[Question] = []
    for cell, line, after in zip(cells, lines, [*(each.source for each in cells[1:]), ""], strict=True):
        about = cell.metadata.get("nbgrader", {})
        if not _is_question(cell):
            if about.get("grade") and cell.cell_type != "code":
                raise SourceError(path, line, "text cannot be a test", 'make it an answer, too: "solution": true')
            continue
        name, points, task = about.get("grade_id"), about.get("points"), bool(about.get("task"))
        if not name or type(points) not in (int, float) or not 0 < points < 1e6:
            raise SourceError(path, line, "a person grades this cell, but it has no points or no name",
                'give it "points" (a number) and "grade_id"')  # fmt: skip
        if task and (cell.cell_type == "code" or about["solution"] or about["grade"]):
            raise SourceError(
                path, line, f"{name}: a task must be a text cell, and neither an answer nor a test",
                'make it a [markdown] cell with "task": true, or remove "task"',
            )  # fmt: skip
        about["points"], about["locked"] = float(points), task
        stub = STUB if cell.cell_type == "code" else TEXT_STUB
        found.append(Question(name, float(points), cell.source if task else with_stub(cell.source, stub), task, after))
    return tuple(found)


def _exercises(path: Path, cells: list[Any], lines: list[int], built: bool) -> tuple[Exercise, ...]:
    code = [(cell, line) for cell, line in zip(cells, lines, strict=True) if cell.cell_type == "code"]
    if not code:
        raise SourceError(path, lines[0], "there is no code cell", "begin with a cell of imports")
    setup = code[0][0].source
    found: list[Exercise] = []
    tests_seen: set[int] = set()
    for index, (cell, line) in enumerate(code):
        meta = cell.metadata.get("nbgrader", {})
        if not meta.get("solution") or _is_question(cell):
            continue
        name = meta["grade_id"]
        if SOLUTION[0] not in cell.source:
            raise SourceError(path, line, f"{name}: no `{SOLUTION[0]}`", "mark the lines that students write")
        test, test_line = code[index + 1] if index + 1 < len(code) else (None, line)
        test_meta = test.metadata.get("nbgrader", {}) if test is not None else {}
        if test is None or test_meta.get("grade_id") != f"test_{name}" or not test_meta.get("grade"):
            raise SourceError(
                path, test_line, f"{name}: its test cell does not follow it",
                f'put a cell with "grade": true and "grade_id": "test_{name}" right below the solution',
            )  # fmt: skip
        if not test_meta.get("locked"):
            raise SourceError(path, test_line, f"{name}: its test cell is not locked", 'give it "locked": true')
        packed, points = _check(path, test_line, name, built)
        exercise = Exercise(name, points, setup, cell.source, line, packed, path)
        if test.source.strip() != exercise.tests:
            raise SourceError(
                path, test_line, f"{name}: its test cell is not the line `{exercise.tests}`",
                f"its tests belong in solutions/exercises/{path.stem}/{name}.py",
            )  # fmt: skip
        test_meta["points"] = points
        test.source = with_hidden(exercise.tests)
        tests_seen.add(index + 1)
        found.append(exercise)
    for index, (cell, line) in enumerate(code):
        if cell.metadata.get("nbgrader", {}).get("grade") and index not in tests_seen and not _is_question(cell):
            raise SourceError(path, line, "this test cell does not follow a solution", "move it below its exercise")
    return tuple(found)


def _check(path: Path, line: int, name: str, built: bool) -> tuple[bytes, float]:
    """An exercise's check and its points."""
    own, ours = path.parent / "checks" / f"{name}.check", CHECKS / f"{name}.check"  # of a class's own lecture, or not
    file = own if own.is_file() or not (ours.is_file() or path.parent == SOLUTIONS) else ours
    try:
        content = file.read_bytes()
        return content, json.loads(content.partition(b"\n")[0])["points"]
    except (OSError, ValueError, KeyError) as error:
        if not built:
            return b"", 1.0
        raise SourceError(
            path,
            line,
            f"{name}: {file} cannot be read ({error})",
            "run `course notebooks` (with --class FOLDER for a class's own lecture)",
        ) from None


def states_answer(code: str) -> bool:
    """Whether a cell compares a prediction with its answer."""
    return re.search(r"^\s*reconcile\(", code, re.MULTILINE) is not None


def _is_folded(cell: Any, before: str) -> bool:
    """Whether a cell's code is folded, because it imports, reveals an answer, or draws."""
    tags = cell.metadata.get("tags", [])
    if cell.cell_type != "code" or _OPEN in tags or "nbgrader" in cell.metadata:
        return False
    draws = "plots.show(" in cell.source and len(cell.source.splitlines()) >= _DRAWING
    reveals = before.startswith("guess") or states_answer(cell.source)
    return _FOLDED in tags or not before or reveals or draws


def _finish(notebook: nbformat.NotebookNode) -> None:
    """Give cells stable ids and only the metadata that JupyterLab and nbgrader need, for reproducible builds."""
    used: set[str] = set()
    before = ""  # the code cell above
    for cell in notebook.cells:
        nbgrader = cell.metadata.get("nbgrader")
        folded = _is_folded(cell, before)
        before = cell.source if cell.cell_type == "code" else before
        cell.metadata.clear()
        if folded:
            cell.metadata.update(copy.deepcopy(_AS_FOLDED))
        base = hashlib.sha256(cell.source.encode()).hexdigest()[:12]
        if nbgrader:
            cell.metadata["nbgrader"] = dict(nbgrader)
            base = nbgrader["grade_id"]
        count = 1
        while (identity := base if count == 1 else f"{base}-{count}") in used:
            count += 1
        used.add(identity)
        cell["id"] = identity
    notebook.metadata.clear()
    notebook.metadata.update(copy.deepcopy(_AS_SAVED))
    notebook.nbformat, notebook.nbformat_minor = 4, 5

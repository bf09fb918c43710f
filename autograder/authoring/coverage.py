"""What the lectures cover: turn the tags of their cells into docs/coverage.md."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

from autograder.grading.source import Lecture, Proof

KINDS = {"item": "items", "error": "errors"}  # the tag's word, and its table in items.toml


def wanted(path: Path) -> dict[str, dict[int, str]]:
    """What must be covered: ``{"item": {1: "how long …", …}, "error": {…}}``, from solutions/items.toml."""
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    return {kind: {int(number): text for number, text in tables[name].items()} for kind, name in KINDS.items()}


def problems(items: dict[str, dict[int, str]], lectures: Iterable[Lecture]) -> list[str]:
    """Items and errors without a tagged cell, and unknown tags; empty if all is well."""
    found = []
    seen = {(proof.kind, proof.number): (lecture, proof) for lecture in lectures for proof in lecture.proofs}
    for kind, texts in items.items():
        for number, text in texts.items():
            if (kind, number) not in seen:
                found.append(f"{kind} {number} ({text}) is shown nowhere: tag the cell that proves it {kind}-{number}")
    for (kind, number), (lecture, proof) in seen.items():
        if number not in items[kind]:
            found.append(f"{lecture.path.name}:{proof.line}: there is no {kind} {number} in items.toml")
    return found


def page(items: dict[str, dict[int, str]], lectures: Iterable[Lecture]) -> str:
    """docs/coverage.md as text."""
    lectures = list(lectures)
    lines = [
        "# What the course covers, and where it is proved",
        "",
        "Made by `course coverage` from the tags of the lectures' cells; the list itself is `solutions/items.toml`.",
        "Every cell named here holds an assert, and `tests/course/test_notebooks.py` runs it again with its lecture.",
        "The exercises are those of the same section, each with the file that says what its answers must do.",
    ]
    for kind, texts in items.items():
        title = {"item": "Items", "error": "Errors to catch"}[kind]
        lines += [
            "",
            f"## {title}",
            "",
            f"| {kind} | what | where it is proved | exercises beside it |",
            "|---|---|---|---|",
        ]
        for number, text in texts.items():
            places = [
                (lecture, proof)
                for lecture in lectures
                for proof in lecture.proofs
                if (proof.kind, proof.number) == (kind, number)
            ]
            cells = "<br>".join(_place(lecture, proof) for lecture, proof in places) or "**nowhere**"
            names = dict.fromkeys(name for place in places for name in _exercises(*place))
            lines.append(f"| {number} | {text} | {cells} | {' '.join(names)} |")
    return "\n".join(lines) + "\n"


def _place(lecture: Lecture, proof: Proof) -> str:
    cell = lecture.notebook.cells[proof.cell]
    link = f"[{lecture.name}](../notebooks/{lecture.name}/{lecture.name}.ipynb)"
    return f"{link}, *{_sections(lecture)[proof.cell]}*, cell `{cell.id}`"


def _exercises(lecture: Lecture, proof: Proof) -> list[str]:
    sections, cells = _sections(lecture), lecture.notebook.cells
    names = {exercise.name for exercise in lecture.exercises}
    here = [cell.id for cell, section in zip(cells, sections, strict=True) if section == sections[proof.cell]]
    return [f"[`{name}`](../solutions/exercises/{lecture.name}/{name}.py)" for name in here if name in names]


def _sections(lecture: Lecture) -> list[str]:
    """The heading of each cell's section."""
    found, current = [], ""
    for cell in lecture.notebook.cells:
        if cell.cell_type == "markdown" and (heads := re.findall(r"^##? (.+)$", cell.source, re.MULTILINE)):
            current = heads[-1].split("&nbsp;")[0].strip()
        found.append(current)
    return found

"""What the lectures cover: turns the tags of their cells into docs/coverage.md."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from autograder.grading.source import Lecture, Proof

KINDS = {"item": "items", "error": "errors"}  # a tag's prefix, and its table in items.toml
EDITIONS = {  # of the original lecture
    2025: "https://github.com/stanford-cs336/spring2025-lectures/blob/main/lecture_02.py",
    2026: "https://github.com/stanford-cs336/lectures/blob/main/lecture_02.py",
}


@dataclass(frozen=True)
class Claim:
    """An item or an error: what it is, and which editions of the original lecture have it."""

    what: str
    editions: tuple[int, ...] = ()


Items = dict[str, dict[int, Claim]]


def wanted(path: Path) -> Items:
    """What must be covered: ``{"item": {1: Claim("how long …", (2025, 2026)), …}, "error": {…}}``, from items.toml."""
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    return {
        kind: {int(number): Claim(row["what"], tuple(row["in"])) for number, row in tables[name].items()}
        for kind, name in KINDS.items()
    }


def problems(items: Items, lectures: Iterable[Lecture]) -> list[str]:
    """Messages about items and errors without a tagged cell, and about unknown tags; empty if there are none."""
    found = []
    seen = {(proof.kind, proof.number): (lecture, proof) for lecture in lectures for proof in lecture.proofs}
    for kind, claims in items.items():
        for number, claim in claims.items():
            if (kind, number) not in seen:
                found.append(
                    f"no cell proves {kind} {number} ({claim.what}): tag the one that does with {kind}-{number}"
                )
    for (kind, number), (lecture, proof) in seen.items():
        if number not in items[kind]:
            found.append(f"{lecture.path.name}:{proof.line}: there is no {kind} {number} in items.toml")
    return found


def page(items: Items, lectures: Iterable[Lecture]) -> str:
    """docs/coverage.md as text."""
    lectures = list(lectures)
    editions = " and ".join(f"[{year}]({url})" for year, url in EDITIONS.items())
    lines = [
        "# What the course covers, and where it is proved",
        "",
        "`course coverage` makes this page from the tags of the lectures' cells and `solutions/items.toml`.",
        "Every cell named here contains an assert, and `tests/course/test_notebooks.py` runs it with its lecture.",
        "The exercises are those of the same section, each linked to the file that defines its requirements.",
        "",
        "The lecture is lecture 2 of Stanford's CS336, *PyTorch, resource accounting*, which has two editions:",
        f"{editions}. A ✓ means that the edition has the item, or makes the error or a part of it. Rows without ✓ come",
        "from what others wrote about the lecture.",
    ]
    for kind, claims in items.items():
        title = {"item": "Items", "error": "Errors to catch"}[kind]
        lines += [
            "",
            f"## {title}",
            "",
            f"| {kind} | what | {' | '.join(map(str, EDITIONS))} | where it is proved | exercises in that section |",
            f"|---|---|{':-:|' * len(EDITIONS)}---|---|",
        ]
        for number, claim in claims.items():
            places = [
                (lecture, proof)
                for lecture in lectures
                for proof in lecture.proofs
                if (proof.kind, proof.number) == (kind, number)
            ]
            cells = "<br>".join(_place(lecture, proof) for lecture, proof in places) or "**nowhere**"
            names = dict.fromkeys(name for place in places for name in _exercises(*place))
            marks = " | ".join("✓" if year in claim.editions else "" for year in EDITIONS)
            lines.append(f"| {number} | {claim.what} | {marks} | {cells} | {' '.join(names)} |")
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

"""The page that `make lab` opens: every lecture with its question, how long it takes, and how far you are.

``python -m course_utils.home FOLDER`` writes it to ``FOLDER/home.md``, from the lectures in that folder and the
progress saved beside them. It is rewritten each time JupyterLab starts; nothing else reads it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_utils import progress
from course_utils.notebook import read_exercises

PAGE = "home.md"
# How fast people read: words of text, and lines of code that aren't folded away. A prediction takes a minute.
_WORDS_PER_MINUTE = 180
_LINES_PER_MINUTE = 15
_MINUTES = re.compile(r"^### *Exercise .*?(\d+) minutes", re.MULTILINE)
_PREDICT = "**Predict.**"
_OPTIONAL = re.compile(r"^#+ .*\(optional\)", re.MULTILINE)


@dataclass(frozen=True)
class Lecture:
    """A lecture's notebook: its title, its questions, how long it takes to read and solve, and its exercises' names.

    ``optional`` is the minutes for sections and exercises whose headings say "(optional)"; ``minutes`` excludes them.
    """

    path: Path
    title: str
    questions: tuple[str, ...]
    minutes: int
    optional: int
    exercises: tuple[str, ...]


def read_lecture(path: Path) -> Lecture:
    """What the page says about one lecture.

    Raises:
        OSError: there is no such file, or it cannot be read.
        ValueError: it isn't a complete notebook, or isn't a lecture.
    """
    exercises = tuple(exercise.name for exercise in read_exercises(path))
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    title = re.search(r"^# (.+)$", texts[0], re.MULTILINE) if texts else None
    if title is None:
        raise ValueError("its first text cell has no title")
    minutes, optional = map(rounded, times(cells))
    questions = tuple(re.findall(r"^> \*\*(.+)\*\*$", texts[0], re.MULTILINE))
    return Lecture(path, title[1], questions, minutes, optional, exercises)


def times(cells: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """The minutes that cells take to read and solve: first those for everybody, then the optional ones.

    An optional section lasts until the next ``##``, an optional exercise until the text below its check cell.
    """
    found = [0.0, 0.0]
    section = exercise = tested = False
    for cell in cells:
        text, metadata = "".join(cell["source"]), cell["metadata"]
        marks = metadata.get("nbgrader", {})
        if cell["cell_type"] == "markdown":
            for part in re.split(r"^(?=##)", text, flags=re.MULTILINE):
                if part.startswith("#"):
                    exercise = _OPTIONAL.match(part) is not None
                    section = exercise if part.startswith("## ") else section
                    tested = False
                solving = sum(map(float, _MINUTES.findall(part))) + part.count(_PREDICT)
                found[section or exercise] += len(part.split()) / _WORDS_PER_MINUTE + solving
            exercise, tested = exercise and not tested, False
        elif marks.get("grade"):
            tested = True
        elif not (marks or metadata.get("jupyter", {}).get("source_hidden")):
            found[section or exercise] += sum(map(bool, map(str.strip, text.splitlines()))) / _LINES_PER_MINUTE
    return found[0], found[1]


def rounded(minutes: float) -> int:
    """Minutes rounded to a multiple of five, for a label."""
    return 5 * round(minutes / 5)


def lectures(folder: Path) -> list[Path]:
    """The notebooks of the lectures in a folder, in order."""
    found = sorted(folder.glob("[0-9][0-9]_*/[0-9][0-9]_*.ipynb"))
    return [path for path in found if path.stem == path.parent.name]


def page(folder: Path) -> str:
    """The page for the lectures in a folder, as Markdown. Names any lecture that can't be read, with the reason.

    Raises:
        OSError: the file with the reader's progress cannot be read.
    """
    kept, trouble = progress.load(folder / "progress.json")
    rows = []
    for path in lectures(folder):
        try:
            lecture = read_lecture(path)
        except (OSError, ValueError) as error:
            rows.append(f"| {path.stem} | cannot be read: {error} | | |")
            continue
        passed = kept.get(path.stem, {})
        done = sum(passed.get(name, False) for name in lecture.exercises)
        bar = "●" * done + "○" * (len(lecture.exercises) - done)
        link = f"[{lecture.title}]({path.parent.name}/{path.name})"
        rows.append(f"| **{link}** | {'<br>'.join(lecture.questions)} | {_duration(lecture)} | {bar} |")
    text = _TEXT.format(rows="\n".join(rows))
    return f"{text}\n{trouble}\n" if trouble else text


_TEXT = """\
# Every Byte, Every FLOP

How much memory does a model need? How long will it train? By the end of this course you'll be able to answer such
questions before the run starts, and you'll have written every part of a training run yourself. A cell next to each
number in the lectures proves it.

Take the lectures in order. Run the cells from the top with <kbd>Shift</kbd> + <kbd>Enter</kbd>, guess where the text
says *predict*, and solve the exercises as you meet them: each one shows right away what works and what doesn't.

| Lecture | Its question | Time | Your exercises |
|:--|:--|--:|:--|
{rows}

● marks an exercise that passes its check here. An exercise's heading says how hard it is, ★ to ★★★, and whether it's
*essential*: do those first if you're short of time, since they carry the main ideas. Times are for reading and solving;
no later lecture needs the optional parts. The [glossary](glossary.md) has every term that the lectures define. This
page is updated when JupyterLab starts; your progress and your guesses stay in files on this machine.
"""


def _duration(lecture: Lecture) -> str:
    hours, rest = divmod(lecture.minutes, 60)
    text = f"{rest} min" if not hours else f"{hours} h {rest:02d}" if rest else f"{hours} h"
    more = f"<br>+ {lecture.optional} min optional" if lecture.optional else ""
    return (text + more).replace(" ", "\u00a0")


def main() -> int:
    """Write the page if there are lectures. JupyterLab also opens without it."""
    folder = Path(sys.argv[1])
    if not lectures(folder):
        return 1
    try:
        (folder / PAGE).write_text(page(folder), encoding="utf-8")
    except OSError as error:
        print(f"The lectures' home page could not be written: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

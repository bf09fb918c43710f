"""What our HTML pages share: templates that escape everything, text made harmless, files written whole."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import unicodedata
from pathlib import Path

import jinja2

from . import source

_HEADING = re.compile(r"^#\s+(.+)$", re.MULTILINE)
_EXERCISE = re.compile(r"^###\s+(Exercise [^\n]+)$", re.MULTILINE)
# Characters that turn the direction of what follows, so that code reads as something else than it does.
_TURNING = {"\u061c", "\u200e", "\u200f", *map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A))}


def environment() -> jinja2.Environment:
    """Jinja with our templates: everything is escaped, and a name that is not there is an error."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["clean"] = clean
    return made


def clean(text: str) -> str:
    """Text with nothing in it that hides, turns or cannot be written: such characters are spelt out, as ``\\x1b``."""
    plain = text.replace("\r\n", "\n")
    return "".join(c if c in "\n\t" or not _odd(c) else c.encode("unicode_escape").decode() for c in plain)


def line(text: str) -> str:
    """The same for text of one line: its line ends are spelt out too."""
    return clean(text).replace("\n", "\\n").replace("\t", "\\t")


def _odd(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cs") or character in _TURNING or character in "\u2028\u2029\ufeff"


def title(lecture: source.Lecture) -> str:
    """A lecture's heading."""
    texts = (cell.source for cell in lecture.notebook.cells if cell.cell_type == "markdown")
    return next((found[1].strip() for text in texts if (found := _HEADING.search(text))), lecture.name)


def exercise_titles(lecture: source.Lecture) -> dict[str, str]:
    """The heading above each exercise, without its stars and minutes: ``Exercise 1.1 · How many bytes?``."""
    titles: dict[str, str] = {}
    heading = ""
    for cell in lecture.notebook.cells:
        if cell.cell_type == "markdown":
            if found := _EXERCISE.findall(cell.source):
                heading = found[-1].split("&nbsp;")[0].replace("`", "").strip()
        elif cell.metadata.get("nbgrader", {}).get("solution"):
            name = cell.metadata["nbgrader"]["grade_id"]
            titles[name] = heading or name
            heading = ""
    return titles


def write(path: Path, text: str) -> None:
    """Write a file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".partial")
    try:
        with open(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise

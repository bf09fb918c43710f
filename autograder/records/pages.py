"""What our HTML pages share: templates that escape everything, and files written completely or not at all."""

from __future__ import annotations

import os
import re
from pathlib import Path

import jinja2
from markupsafe import Markup

from autograder.grading.source import Lecture
from autograder.grading.text import clean
from course_utils.files import replacing
from course_utils.markup import as_html

CODE_LIMIT = 20_000  # most characters of a cell that are shown
LINE_LIMIT = 500  # most characters of a line of code that are shown
_BLANK = 20  # most consecutive blank lines that are shown
_LINE_END = re.compile(r"\r\n|\r|\n")
_HEADING = re.compile(r"^#\s+(.+)$", re.MULTILINE)
_EXERCISE = re.compile(r"^###\s+((?:Exercise|Question) [^\n]+)$", re.MULTILINE)


def environment() -> jinja2.Environment:
    """A Jinja environment with our templates: everything is escaped, and an undefined name is an error."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["clean"] = clean
    made.filters["with_code"] = lambda text: Markup(as_html(text))
    return made


def title(lecture: Lecture) -> str:
    """A lecture's heading."""
    texts = (cell.source for cell in lecture.notebook.cells if cell.cell_type == "markdown")
    return next((found[1].strip() for text in texts if (found := _HEADING.search(text))), lecture.name)


def exercise_titles(lecture: Lecture) -> dict[str, str]:
    """The heading above each exercise, without its stars and minutes: ``Exercise 1.1 · How many bytes?``."""
    titles: dict[str, str] = {}
    heading = ""
    for cell in lecture.notebook.cells:
        if cell.cell_type == "markdown" and (found := _EXERCISE.findall(cell.source)):
            heading = found[-1].split("&nbsp;")[0].replace("`", "").strip()
        about = cell.metadata.get("nbgrader", {})
        if about.get("solution") or about.get("task"):
            name = about["grade_id"]
            titles[name] = heading or name
            heading = ""
    return titles


def exercise_named(lecture: Lecture, name: str) -> str:
    """The name of the exercise or question with this name or number (``1.3``, ``Exercise 1.3``), or ``name`` itself."""
    titles = exercise_titles(lecture).items()
    titled = {title.partition(" ")[2].split(" ")[0]: each for each, title in titles if title != each}
    return titled.get(re.sub("^(Exercise|Question) ", "", name).strip(), name)


def shown(text: str, *, prose: bool = False) -> str:
    """What's shown of a cell: its beginning, with long lines and long runs of blank lines cut short.

    Both make Pygments, which highlights code here and in Formgrader, take quadratic time. In ``prose``, long lines are
    kept: a paragraph is one line, and it isn't highlighted.
    """
    lines, blank = [], 0
    for line in _LINE_END.split(text[:CODE_LIMIT]):
        blank = 0 if line.strip() else blank + 1
        if not prose and len(line) > LINE_LIMIT:
            line = f"{line[:LINE_LIMIT]}… ({len(line) - LINE_LIMIT:,} more characters)"
        if blank <= _BLANK:
            lines.append(line)
    return "\n".join(lines)


def shortened(text: str, *, prose: bool = False) -> bool:
    """Whether a part of a cell isn't shown, apart from blank lines."""
    return len(text) > CODE_LIMIT or (not prose and any(len(line) > LINE_LIMIT for line in _LINE_END.split(text)))


def write(path: Path, text: str) -> None:
    """Write a page completely or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, durable=False) as file:
        os.chmod(file.name, 0o644)  # pages may be served by a web server
        file.write(text.encode())

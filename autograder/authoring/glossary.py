"""The glossary: every term that a lecture defines, with the defining sentence and a link to it.

In a lecture's text, bold marks terms where they're defined (``The **stride** of a dimension is …``), and run-in
headings (``**Predict.** …``), which end in a punctuation mark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass

from autograder.grading.source import Lecture

_BOLD = re.compile(r"\*\*([^*]+)\*\*")
_HEADING = re.compile(r"[.?!:…]$")  # "Predict.", "Trap: not every parameter multiplies."
_END = r"""(?:(?<=[.?!])|(?<=[.?!][)”"])|(?<=[.?!]\*\*))(?<!e\.g\.)(?<!i\.e\.)(?<!vs\.)"""
_SENTENCE = re.compile(_END + r"""\s+(?=[A-Z0-9“"(*$`\\])""")
_MARKER = re.compile(r"^\s*(?:>\s*|[-*] +|\d+\. +)*")
_STARTS = re.compile(r"^\s*(?:[-*] |\d+\. )")


@dataclass(frozen=True)
class Definition:
    """A term, the sentence that defines it, and its place: a lecture and the heading of a section.

    A definition in an exercise is linked to the section, because JupyterLab, GitHub and the web book make different
    anchors from an exercise's heading, with its stars and minutes.
    """

    term: str
    sentence: str
    lecture: Lecture
    section: str


def definitions(lecture: Lecture) -> Iterator[Definition]:
    """The terms that a lecture defines, in order."""
    section = ""
    for cell in lecture.notebook.cells:
        if cell.cell_type != "markdown":
            continue
        for paragraph in _paragraphs(cell.source):
            if head := re.match(r"#+ (.+)$", paragraph):
                section = section if "&nbsp;" in head[1] else head[1].strip()
                continue
            for sentence in _SENTENCE.split(paragraph):
                for term in _BOLD.findall(sentence):
                    if not _HEADING.search(term) and ":" not in term and not term[0].isdigit():
                        yield Definition(term, _MARKER.sub("", sentence).strip(), lecture, section)


def _paragraphs(text: str) -> Iterator[str]:
    """Headings, paragraphs and list items, each on one line, without code blocks and displayed formulas."""
    text = re.sub(r"^```.*?^```|^\$\$.*?\$\$", "", text, flags=re.MULTILINE | re.DOTALL)
    lines: list[str] = []
    for line in [*text.splitlines(), ""]:
        bare = re.sub(r"^\s*(?:> ?)+", "", line)
        if lines and (not bare.strip() or bare.startswith(("#", "|")) or _STARTS.match(bare) or lines[-1][0] == "#"):
            yield " ".join(lines)
            lines = []
        if bare.strip() and not bare.startswith("|"):
            lines.append(bare.strip())


def problems(lectures: Iterable[Lecture]) -> list[str]:
    """Messages about terms that are defined twice; empty if there are none."""
    found, seen = [], dict[str, str]()
    for lecture in lectures:
        for definition in definitions(lecture):
            if (term := key(definition.term)) in seen:
                found.append(f"{lecture.path.name} defines {definition.term} (in bold), but {seen[term]} already does")
            seen.setdefault(term, lecture.path.name)
    return found


def page(lectures: Iterable[Lecture]) -> str:
    """glossary.md as text, with links relative to the lectures' folders."""
    lines = [
        "# Glossary",
        "",
        "Each term is defined once, by the sentence shown here; the link leads to its place in the lectures.",
    ]
    lectures = list(lectures)
    found = [definition for lecture in lectures for definition in definitions(lecture)]
    cells = (cell for lecture in lectures for cell in lecture.notebook.cells if cell.cell_type == "markdown")
    words = {word for cell in cells for word in re.findall(r"[\w-]+", re.sub(r"`[^`]*`", "", cell.source))}
    letter = ""
    for definition in sorted(found, key=lambda definition: key(definition.term)):
        if (first := key(definition.term)[0].upper()) != letter:
            letter = first
            lines += ["", f"## {letter}"]
        name = definition.lecture.name
        link = f"[{name.partition('_')[0]}]({name}/{name}.ipynb#{_anchor(definition.section)})"
        lines += ["", f"**{_within(definition, words)}** ({link}): {definition.sentence.replace('**', '')}"]
    return "\n".join(lines) + "\n"


def _within(definition: Definition, words: Set[str]) -> str:
    """A term as it's written within a sentence: if it begins one, in small letters, unless it always has a capital.

    ``words``: all words of the lectures' text.
    """
    term = definition.term
    small = term[0].lower() + term[1:]
    first = re.match(r"[\w-]*", small)
    begins = definition.sentence.startswith(f"**{term}")
    return small if begins and first is not None and first[0] in words else term


def _anchor(heading: str) -> str:
    """The anchor that the web book and GitHub give a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def key(term: str) -> str:
    """A term in the form used for comparing and sorting: without formatting, case or a plural s."""
    return re.sub(r"[`$\\]", "", term).lower().removesuffix("s")

"""Text from submissions, made safe to store, print and read."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

MESSAGE_LIMIT = 4_000  # characters of a message or a note
NOTES_LIMIT = 40  # on one submission: who made up a thousand names for cells is told of the first
# Control characters, those that only format (they hide, or turn the direction of what follows), lone surrogates, and
# Unicode's own line ends.
_ODD = ("Cc", "Cf", "Cs", "Zl", "Zp")
# These two join letters, or keep them apart: Persian, Hindi and many emoji are misspelled without them.
_JOINERS = "\u200c\u200d"
# Beside what Unicode calls spaces: fillers and blanks of other scripts, which are letters to it. And what can't be seen
# at all (joiners, marks that select a variant), which may stand between blanks.
_BLANK = r"\s\u115f\u1160\u2800\u3164\uffa0\U00016fe4\U0001d159"
_UNSEEN = rf"{_JOINERS}\u034f\u17b4\u17b5\u180b-\u180f\u2065\ufe00-\ufe0f\ufff0-\ufff8\U000e0000-\U000e0fff"
# Characters that are drawn over the one before them. Real words have at most four on a letter; a hundred cover the
# lines above and below.
_OVER, _MOST_OVER = ("Mn", "Me"), 4
_BLANKS = re.compile(rf"[{_BLANK}][{_BLANK}{_UNSEEN}]+")


def clean(text: str, *, limit: int | None = None, keep: str = "\n") -> str:
    """``text`` with characters that hide, reorder or can't be encoded spelled out.

    An escape character becomes ``\\x1b``, for instance. So do accents and the like beyond the fourth on one letter.
    Characters in ``keep`` stay. Text longer than ``limit`` characters is cut there and gets an ellipsis.
    """
    if limit is not None and len(text) > limit:
        text = text[:limit] + "…"
    if text.isascii() and text.isprintable():
        return text
    cleaned, over = [], 0
    for c in text:
        over = over + 1 if c in _JOINERS or unicodedata.category(c) in _OVER else 0
        stays = c in keep or (not _odd(c) and over <= _MOST_OVER)
        cleaned.append(c if stays else c.encode("unicode_escape").decode())
    return "".join(cleaned)


def notes(found: Sequence[str]) -> tuple[str, ...]:
    """Notes on a submission, cleaned, and no more than a person would read; the last one counts the rest.

    Each is one line, or an error that it quotes could look like a note of ours below it.
    """
    different = list(dict.fromkeys(found))
    more = [f"and {len(different) - NOTES_LIMIT:,} more"] if len(different) > NOTES_LIMIT else []
    return tuple(one_line(note, limit=MESSAGE_LIMIT) for note in [*different[:NOTES_LIMIT], *more])


def one_line(text: str, *, limit: int | None = None) -> str:
    """Like `clean`, with line ends spelled out, too: for names, in tables and in a terminal.

    Several blanks become one space: enough of them fill a terminal's row, and what's next looks like a line of its own.
    """
    return _BLANKS.sub(" ", clean(text, limit=limit, keep=""))


def folded(line: str, width: int) -> list[str]:
    """A line as rows that take no more than ``width`` columns, whatever a terminal or a font makes of its characters.

    That's two for each that isn't ASCII: programs disagree on what's wide, and on whether a combining mark takes any
    room. A row ends at a blank if it has one.
    """
    found = []
    line = line.expandtabs().rstrip()
    while line:
        taken, end = 0, 0
        while end < len(line) and (taken := taken + (1 if line[end].isascii() else 2)) <= width:
            end += 1
        cut = end = max(end, 1)
        if end < len(line) and line[end] != " ":
            cut = line.rfind(" ", 0, end) + 1
            if not line[:cut].strip():
                cut = end
        found.append(line[:cut].rstrip())
        line = line[cut:].lstrip(" ")
    return found or [""]


def _odd(character: str) -> bool:
    return unicodedata.category(character) in _ODD and character not in _JOINERS

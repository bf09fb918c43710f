"""Text from submissions, made safe to store, print and read."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

MESSAGE_LIMIT = 4_000  # characters of a message or a note
NOTES_LIMIT = 40  # notes on one submission; a hostile one can cause thousands
# Categories of control characters, format characters (which hide text or reverse its direction), lone surrogates, and
# Unicode's own line separators.
_ODD = ("Cc", "Cf", "Cs", "Zl", "Zp")
# These two join letters or keep them apart: without them, Persian, Hindi and many emoji are misspelled.
_JOINERS = "\u200c\u200d"
# Blank characters: Unicode's spaces, and the fillers and blanks of some scripts, which it calls letters. Then invisible
# characters (joiners, variation selectors), which may stand between blanks.
_BLANK = r"\s\u115f\u1160\u2800\u3164\uffa0\U00016fe4\U0001d159"
_UNSEEN = rf"{_JOINERS}\u034f\u17b4\u17b5\u180b-\u180f\u2065\ufe00-\ufe0f\ufff0-\ufff8\U000e0000-\U000e0fff"
# Combining marks, which are drawn over the previous character. Real words have at most four on a letter; a hundred
# would cover the lines above and below.
_OVER, _MOST_OVER = ("Mn", "Me"), 4
_BLANKS = re.compile(rf"[{_BLANK}][{_BLANK}{_UNSEEN}]+")


def clean(text: str, *, limit: int | None = None, keep: str = "\n") -> str:
    """``text`` with an escape sequence for each character that hides or reorders text or can't be encoded.

    An escape character becomes ``\\x1b``, for instance. Combining marks beyond the fourth on one letter are escaped,
    too. Characters in ``keep`` are kept. Text longer than ``limit`` characters is cut there and gets an ellipsis.
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
    """Notes on a submission, cleaned and without duplicates; beyond `NOTES_LIMIT`, a last note counts the rest.

    Each is one line; otherwise an error that it quotes could pass for another note of ours.
    """
    different = list(dict.fromkeys(found))
    more = [f"and {len(different) - NOTES_LIMIT:,} more"] if len(different) > NOTES_LIMIT else []
    return tuple(one_line(note, limit=MESSAGE_LIMIT) for note in [*different[:NOTES_LIMIT], *more])


def one_line(text: str, *, limit: int | None = None) -> str:
    """Like `clean`, with line breaks escaped, too: for names, in tables and in a terminal.

    Runs of blanks become one space; a long one would fill a terminal's row, and the rest would look like a new line.
    """
    return _BLANKS.sub(" ", clean(text, limit=limit, keep=""))


def counted(number: float, what: str) -> str:
    """A number of things in words: "1 point", "2.5 points"."""
    return f"{number:g} {what}{'' if number == 1 else 's'}"


def folded(line: str, width: int) -> list[str]:
    """A line wrapped to rows of at most ``width`` columns, however wide a terminal draws its characters.

    Every character that isn't ASCII counts as two columns, because programs disagree on which ones are wide, and on
    whether a combining mark takes any room. Rows are broken at blanks if possible.
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

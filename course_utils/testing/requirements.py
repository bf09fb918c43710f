"""The parts of a check: requirements, each with cases, and known mistakes. All of it is plain data.

The build makes a check from the exercise's own file and its reference (:mod:`autograder.authoring`). This module only
reads it; nothing here computes an answer.
"""

from __future__ import annotations

import functools
import json
import zlib
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

from course_utils.testing import wire
from course_utils.testing.comparing import Comparison
from course_utils.testing.observing import Observation
from course_utils.testing.plain import Raised, class_names, first_opaque, tensors
from course_utils.testing.probes import function

_VERSION = 1
_LIMIT = 2**24  # bytes of a decompressed check: a damaged file must not fill the memory
# Numbers that are summarized at most: an expanded view has billions in a single byte, and each step of a summary has
# them all in float64. The most that an exercise asks for are four million.
_NUMBERS = 2**22

Outcome = dict[str, Any]  # the parts of an observation that are compared


@dataclass(frozen=True)
class Case:
    """One input, and what the reference does with it.

    ``says``: the call in words, for a probe whose arguments would mean nothing to a student. ``mistakes``: by the
    number of each known mistake, what it does with the input, if that differs from the expected outcome.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    expected: Outcome
    says: str = ""
    mistakes: dict[int, Outcome] = field(default_factory=dict)


@dataclass(frozen=True)
class Requirement:
    """One requirement of the statement: its points, the cases that test it, and how outcomes are compared.

    ``probe``: the source of the function that makes the observation, ``target`` its name; without a probe the student's
    own function is called. ``hint``: the advice if no known mistake explains the outcome. ``summary``: the name of a
    function in the probe's source that makes the value to compare from what the probe returned and the arguments; it
    runs where outcomes are compared, so a student's process can't make up what it gives. ``saves``: the name of another
    probe in that source; what it returns for a case is the argument ``saved`` of the first one in another process.
    """

    text: str
    points: float
    target: str
    probe: str
    comparison: Comparison
    hint: str
    cases: tuple[Case, ...]
    summary: str = ""
    saves: str = ""


@dataclass(frozen=True)
class Check:
    """The check of one exercise. ``mistakes`` are sentences; cases refer to them by number. ``together``: how many of
    them, at the end, are two mistakes made together.

    ``made_from`` is a digest of the exercise's file and its reference; if the digest of the current ones differs, the
    check is out of date.
    """

    name: str
    requirements: tuple[Requirement, ...]
    mistakes: tuple[str, ...]
    made_from: str = ""
    together: int = 0

    @property
    def points(self) -> float:
        """The points that the exercise is worth."""
        return sum(requirement.points for requirement in self.requirements)

    def pack(self) -> bytes:
        """As bytes: a line of JSON with the points, then the rest."""
        head = {"name": self.name, "points": self.points, "made_from": self.made_from}
        return json.dumps(head).encode() + b"\n" + zlib.compress(wire.pack(_plain(self)), 9)

    @staticmethod
    def unpack(data: bytes) -> Check:
        """The check in bytes that `pack` made. Raises WireError for anything else."""
        try:
            head, _, rest = data.partition(b"\n")
            made_from = json.loads(head)["made_from"]
            unpacker = zlib.decompressobj()
            content = unpacker.decompress(rest, _LIMIT)
            if not unpacker.eof:
                raise ValueError("it was cut short, or is too large")
            version, name, mistakes, requirements, *together = wire.unpack(content)
            if version != _VERSION:
                raise ValueError(f"version {version!r}")
            return Check(name, tuple(map(_requirement, requirements)), tuple(mistakes), made_from, *together)
        except (zlib.error, ValueError, TypeError, KeyError, AttributeError) as error:
            raise wire.WireError(f"not a check: {error}") from None


def _plain(check: Check) -> tuple[Any, ...]:
    requirements = [
        [
            r.text, r.points, r.target, r.probe,
            [r.comparison.tolerance, r.comparison.parts, r.comparison.rules], r.hint,
            [[c.args, c.kwargs, c.expected, c.says, c.mistakes] for c in r.cases],
            *([r.summary, r.saves] if r.saves else [r.summary] if r.summary else []),
        ]
        for r in check.requirements
    ]  # fmt: skip
    return (_VERSION, check.name, list(check.mistakes), requirements, *([check.together] if check.together else []))


def _requirement(content: list[Any]) -> Requirement:
    text, points, target, probe, (tolerance, parts, rules), hint, cases, *names = content
    comparison = Comparison(tolerance, tuple(parts), rules)
    return Requirement(text, points, target, probe, comparison, hint, tuple(Case(*case) for case in cases), *names)


def summarized(seen: Observation, source: str, summary: str, case: Case) -> Observation:
    """An observation whose value is its requirement's summary of what the probe returned, if it has one.

    If what was returned is nothing to summarize, the error that this leads to is the observation.
    """
    if not summary or seen.error is not None or first_opaque(seen.value):
        return seen
    try:
        if (count := sum(each.numel() for each in tensors(seen.value))) > _NUMBERS:
            raise ValueError(f"{count:,} numbers are too many")
        return replace(seen, value=function(source, summary)(seen.value, *case.args, **case.kwargs))
    except Exception as error:
        classes = class_names(type(error))
        raised = Raised(classes[0], str(error)[:2000], "", classes)
        return replace(seen, value=raised, error=classes[0], message=raised.message)


def outcome(seen: Observation, comparison: Comparison) -> Outcome:
    """The parts of an observation that are compared. Its ``error`` is the error itself, or None."""
    found = {part: getattr(seen, part) for part in {*comparison.parts, "value"}}
    if "error" in found:
        # An answer that *returns* an error instead of raising it must not pass as having raised it.
        found["error"] = seen.value if seen.error is not None or isinstance(seen.value, Raised) else None
    return found


@functools.lru_cache(maxsize=64)
def load(name: str) -> Check:
    """The check of an exercise as students have it, with the visible cases.

    The check of a class's own exercise may be beside the notebook, in ``checks/``.

    Raises:
        FileNotFoundError: there is no such check.
        WireError: the file is damaged.
    """
    beside = Path("checks", f"{name}.check")
    packaged = resources.files("course_utils").joinpath("checks", f"{name}.check")
    if not packaged.is_file() and beside.is_file():
        return Check.unpack(beside.read_bytes())
    return Check.unpack(packaged.read_bytes())

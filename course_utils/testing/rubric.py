"""A check's result: each requirement with ✓, ✗ or "not tried yet", and for one ✗ the details and advice.

`score` is the only place where outcomes become points. A kernel, nbgrader and the isolated judge all use it.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from course_utils.markup import as_html
from course_utils.testing.comparing import BETWEEN, Difference, alike, compare
from course_utils.testing.describing import describe, written
from course_utils.testing.plain import Raised
from course_utils.testing.requirements import Case, Check, Outcome, Requirement


class Met(StrEnum):
    """Whether a requirement is met. ``HIDDEN``: it fails only on inputs that students don't see."""

    YES = "met"
    NO = "not met"
    HIDDEN = "not met on other inputs"
    NOT_TRIED = "not tried yet"


_SIGNS = {Met.YES: "✓", Met.NO: "✗", Met.HIDDEN: "✗", Met.NOT_TRIED: "○"}


@dataclass(frozen=True)
class Line:
    """One requirement in a rubric."""

    text: str
    points: float
    met: Met

    @property
    def earned(self) -> float:
        """Its points if it's met, otherwise 0."""
        return self.points if self.met is Met.YES else 0.0


@dataclass(frozen=True)
class Failure:
    """The one failing case that's shown: the call, the part that differs, both values in words, and advice."""

    call: str
    where: str = ""
    got: str = ""
    expected: str = ""
    advice: str = ""

    def __str__(self) -> str:
        # The values are indented by four spaces, advice by two, so that a page can tell them apart.
        lines = [self.call] if self.call else []
        if self.where:
            lines.append(f"    {self.where}")
        if self.got or self.expected:
            lines += [f"    got       {_indented(self.got)}", f"    expected  {_indented(self.expected)}"]
        return "\n".join([*lines, *([f"  {self.advice}"] if self.advice else [])])


def _indented(text: str) -> str:
    return text.replace("\n", "\n" + " " * 14)


@dataclass(frozen=True)
class Rubric:
    """A check's result. ``mistake``: the sentence for the known mistake that explains the outcomes, or None.

    ``with_hidden``: whether the hidden cases were tested as well.
    """

    name: str
    lines: tuple[Line, ...]
    failure: Failure | None = None
    mistake: str | None = None
    with_hidden: bool = False

    @property
    def points(self) -> float:
        """The total points of the requirements that are met."""
        return sum(line.earned for line in self.lines)

    @property
    def worth(self) -> float:
        """The total points of all requirements."""
        return sum(line.points for line in self.lines)

    def in_full(self, check: Check, agree: Sequence[bool]) -> Rubric:
        """This rubric after the hidden cases. ``agree``: for each requirement, whether its hidden cases pass."""
        lines = tuple(
            replace(line, met=Met.HIDDEN) if line.met is Met.YES and not all_agree else line
            for line, all_agree in zip(self.lines, agree, strict=True)
        )
        hints = [r.hint for r, line in zip(check.requirements, lines, strict=True) if line.met is Met.HIDDEN]
        failure = self.failure or (Failure("", advice=hints[0]) if hints else None)
        return replace(self, lines=lines, failure=failure, with_hidden=True)

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.points:g} of {self.worth:g} points"]
        for line in self.lines:
            lines.append(f"{_SIGNS[line.met]} {line.text}" + (f" ({_WORDS[line.met]})" if line.met in _WORDS else ""))
        return "\n".join([*lines, *(["", str(self.failure)] if self.failure else [])])

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        # nbgrader takes a test cell's last output as its points, so the plain text is a number and nothing else.
        return {"text/plain": repr(float(self.points)), "text/html": self._html()}

    def _html(self) -> str:
        title = f"{html.escape(self.name)}: {self.points:g} of {self.worth:g} points"
        if self.points == self.worth and not self.with_hidden:
            title += " on the cases that you can see. Grading tries others too."
        rows = [f'<div style="grid-column:1/4;opacity:.75;padding-bottom:4px">{title}</div>']
        for line in self.lines:
            color = _COLORS.get(line.met, "inherit")
            words = f' <em style="opacity:.75">{_WORDS[line.met]}</em>' if line.met in _WORDS else ""
            rows.append(
                f'<div style="color:{color}" role="img" aria-label="{line.met}"><b>{_SIGNS[line.met]}</b></div>'
                f"<div>{as_html(line.text)}{words}</div>"
                f'<div style="opacity:.75;text-align:right">{line.points:g}</div>'
            )
        grid = "display:grid;grid-template-columns:1.2em auto 3em;gap:2px 6px;max-width:60em"
        parts = [f'<div style="{grid}">{"".join(rows)}</div>']
        if self.failure:
            if shown := str(replace(self.failure, advice="")):
                parts.append(
                    '<pre style="margin:8px 0 4px;padding:0 0 0 8px;white-space:pre-wrap;overflow-wrap:anywhere;'
                    f'border-left:3px solid {_COLORS[Met.NO]}">{html.escape(shown)}</pre>'
                )
            if self.failure.advice:
                parts.append(f'<div style="padding:4px 0 0 11px;max-width:60em">{as_html(self.failure.advice)}</div>')
        return f'<div class="course-check">{"".join(parts)}</div>'


# The colors of JupyterLab's theme, if there is one, since they fit light and dark mode. The signs differ without color.
_COLORS = {
    Met.YES: "var(--jp-success-color1, #2a8f47)",
    Met.NO: "var(--jp-error-color1, #d1242f)",
    Met.HIDDEN: "var(--jp-error-color1, #d1242f)",
}
_WORDS = {Met.NOT_TRIED: "not tried yet", Met.HIDDEN: "not on hidden inputs"}
_STUB = Failure(
    "",
    advice="Write your code above, instead of `raise NotImplementedError()`; then run both cells. (If it's there, it "
    "calls what another exercise asks for, and that isn't written yet.)",
)
Tried = tuple[Requirement, Case, Outcome, str]  # the text is the call in words


def score(check: Check, outcomes: Mapping[int, Sequence[tuple[Outcome, str]]]) -> Rubric:
    """The rubric of a check.

    ``outcomes`` maps a requirement's number to the outcome of each of its cases, with the call in words.
    """
    tried: list[Tried] = []
    lines: list[Line] = []
    for number, requirement in enumerate(check.requirements):
        own = [
            (requirement, case, got, case.says or call)
            for case, (got, call) in zip(requirement.cases, outcomes[number], strict=True)
        ]
        tried += own
        lines.append(Line(requirement.text, requirement.points, _met(own)))
    failing = [each for each in tried if _difference(each) is not None]
    begun = [each for each in failing if not _not_begun(each)]
    if not begun:
        return Rubric(check.name, tuple(lines), _STUB if failing else None)
    mistake = name_mistake(check, tried)
    shown = begun[0]
    if mistake is not None:
        shown = next((t for t in begun if _shows(t, mistake, varied=True)), shown)
    sentence = None if mistake is None else check.mistakes[mistake]
    return Rubric(check.name, tuple(lines), _failure(shown, sentence), sentence)


def _met(own: Sequence[Tried]) -> Met:
    if any(_not_begun(each) for each in own):
        return Met.NOT_TRIED
    return Met.NO if any(_difference(each) for each in own) else Met.YES


def _difference(tried: Tried) -> Difference | None:
    requirement, case, got, _ = tried
    return requirement.comparison.difference(got, case.expected)


def _not_begun(tried: Tried) -> bool:
    value = tried[2]["value"]
    return isinstance(value, Raised) and value.not_begun


def _shows(tried: Tried, mistake: int, varied: bool = False) -> bool:
    requirement, case, got, _ = tried
    want = case.expected["value"] if varied else None
    return mistake in case.mistakes and alike(got, case.mistakes[mistake], requirement.comparison, want)


def name_mistake(check: Check, tried: Sequence[Tried]) -> int | None:
    """The number of the known mistake that explains the outcomes, judged over all cases together; or None.

    Preferably it's one that leads to the same outcome in every case, including those that pass: a single one, or two
    made together, unless two others together do the same. Otherwise, since there may be two, it's the single one that
    explains most of the failing cases, provided that it explains at least half of them and wouldn't fail any that
    passes. The first case alone would often name the wrong one, since two mistakes may agree there.

    Numbers that vary from run to run are first taken as they are, since a student's code may well draw the same ones.
    If they name no mistake, they may vary; then a mistake has to explain every case, and no other may.
    """
    failing = [each for each in tried if _difference(each) is not None]
    told_apart = [[each for each in tried if mistake in each[1].mistakes] for mistake in range(len(check.mistakes))]
    single = len(check.mistakes) - check.together
    counts = [sum(_shows(each, mistake) for each in failing) for mistake in range(len(check.mistakes))]
    whole = [m for m, cases in enumerate(told_apart) if counts[m] == len(failing) == len(cases)]
    if whole:
        return whole[0] if whole[0] < single or len({check.mistakes[m] for m in whole}) == 1 else None
    best, explained = None, 0
    for mistake, cases in enumerate(told_apart[:single]):
        contradicted = any(_difference(each) is None for each in cases)
        if counts[mistake] > explained and 2 * counts[mistake] >= len(failing) and not contradicted:
            best, explained = mistake, counts[mistake]
    varied = [
        mistake
        for mistake, cases in enumerate(told_apart)
        if len(cases) == len(failing) and all(_shows(each, mistake, varied=True) for each in failing)
    ]
    if len({check.mistakes[mistake] for mistake in varied}) == 1:
        return varied[0]
    return best


def _failure(tried: Tried, sentence: str | None) -> Failure:
    requirement, _, _, call = tried
    found = _difference(tried)
    assert found is not None
    advice = sentence or requirement.hint
    if isinstance(found.got, Raised):
        # The student's own error explains what is wrong better than a guess at its cause.
        wanted = "no error" if isinstance(found.want, dict) else expected(found)  # some of a probe's keys may not count
        return Failure(call, found.where, describe(found.got), wanted, sentence or "")
    if found.words:
        return Failure(call, f"{found.where}: {found.words}", advice=advice)
    if BETWEEN in found.where:
        low, high = found.want
        return Failure(call, found.where, written(found.got), f"{written(low)} to {written(high)}", advice)
    return Failure(call, found.where, *_unlike(found), advice)


def expected(found: Difference) -> str:
    """What was expected, in words; for an error, only its class."""
    return f"{found.want.kind}" if isinstance(found.want, Raised) else written(found.want)


def _unlike(found: Difference) -> tuple[str, str]:
    """Both values in words, written so that they differ."""
    got, want = written(found.got), expected(found)
    if isinstance(found.want, Raised):
        return f"no error, and {got}", want
    return (got, want) if got != want else _apart(found.got, found.want)


def _apart(got: Any, want: Any) -> tuple[str, str]:
    """Both values where they first differ, although `written` cuts both before that place or leaves out their types."""
    same_type = type(got) is type(want)
    if same_type and isinstance(want, (str, bytes)):
        place = next((n for n, pair in enumerate(zip(got, want, strict=False)) if pair[0] != pair[1]), None)
        place = min(len(got), len(want)) if place is None else place
        cut = slice(place, place + 50)
        return _both(got, want, lambda v: f"{len(v):,} characters; from character {place + 1:,}: {v[cut]!r}")
    if same_type and isinstance(want, (list, tuple)):
        if len(got) != len(want):
            return _both(got, want, lambda v: f"{written(v)}, {len(v):,} items")
        return _first_apart([(f"item {n}", *pair) for n, pair in enumerate(zip(got, want, strict=True), 1)])
    if same_type and isinstance(want, (dict, set)):
        if in_one := [item for one, other in ((want, got), (got, want)) for item in one if item not in other]:
            item = in_one[0]
            return _both(got, want, lambda v: f"{written(v)}, {'with' if item in v else 'without'} {written(item)}")
        if isinstance(want, dict):
            return _first_apart([(written(key), got[key], want[key]) for key in want])
    return _both(got, want, lambda v: f"{written(v)} ({type(v).__name__})")


def _both(got: Any, want: Any, in_words: Callable[[Any], str]) -> tuple[str, str]:
    return in_words(got), in_words(want)


def _first_apart(parts: Sequence[tuple[str, Any, Any]]) -> tuple[str, str]:
    """The first part in which two values differ, after its name."""
    name, got, want = next((part for part in parts if compare(part[1], part[2], 0.0)), parts[0])
    texts = _unlike(Difference(got, want))
    return f"{name}: {texts[0]}", f"{name}: {texts[1]}"

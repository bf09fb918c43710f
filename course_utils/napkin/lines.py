"""A plan and its lines, each a number with its formula and its sources, and how they are displayed."""

from __future__ import annotations

import html
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from course_utils.sources import Source, sources_of
from course_utils.units import counted, duration, readable, takes_prefix

GIVEN = "given"
ABOVE = "from the lines above"


@dataclass(frozen=True)
class Line:
    """One number of a plan.

    Attributes:
        group: "parameters", "FLOPs", "bytes on each card", "time", "cost", …
        what: what the number counts, within its group.
        value: in ``unit``, without prefix; a `Sourced` number includes its sources.
        unit: "parameters", "FLOPs", "FLOP/s", "B", "tokens", "samples", "tokens/s", "steps", "s", "days", "GPU-hours",
            "USD", "kWh", "sequences", or "share" (from 0 to 1).
        formula: how it's calculated, with numbers.
        source: where the formula comes from.
    """

    group: str
    what: str
    value: float
    unit: str
    formula: str
    source: Source | str

    @property
    def shown(self) -> str:
        """The value with its unit, in readable form."""
        if takes_prefix(self.unit):
            return readable(self.value, self.unit)
        if self.unit == "share":
            return f"{100 * self.value:.3g}%"
        if self.unit == "days":
            return duration(self.value)
        return counted(self.value) if self.unit == self.group else f"{counted(self.value)} {self.unit}"

    @property
    def sources(self) -> tuple[str, ...]:
        """The source of the formula, then those of every number in it that isn't the plan's own."""
        return tuple(dict.fromkeys(map(str, (self.source, *sources_of(self.value)))))

    def as_dict(self) -> dict[str, Any]:
        """The line as plain data for JSON."""
        return {
            "group": self.group,
            "what": self.what,
            "value": self.value,
            "unit": self.unit,
            "formula": self.formula,
            "sources": [_described(source) for source in (self.source, *sources_of(self.value))],
        }


def _described(source: Source | str) -> dict[str, str]:
    if isinstance(source, str):
        return {"title": source}
    about = {"title": source.title, "url": source.url, "kind": source.kind}
    return about | {"date": source.date, "verified": source.verified}


@dataclass(frozen=True)
class Plan:
    """A plan: print it, show it in a notebook, or use `as_dict`.

    Attributes:
        title: model and cards.
        lines: its numbers.
        held: bytes on each card; None for a plan that isn't about memory.
        limit: bytes of a card's memory; None if unknown.
        activations: whether ``held`` includes activations; it doesn't for a module traced without inputs.
        advice: what would make it fit, one sentence each; empty if it fits.
        warnings: what makes it impractical, one sentence each.
    """

    title: str
    lines: tuple[Line, ...]
    held: int | None
    limit: int | None
    activations: bool
    advice: tuple[str, ...]
    warnings: tuple[str, ...] = ()

    @property
    def fits(self) -> bool | None:
        """Whether what a card holds fits in its memory; None if that's unknown."""
        return None if self.limit is None or self.held is None else self.held <= self.limit

    @property
    def verdict(self) -> str:
        """Whether it fits, and by how much; empty for a plan that isn't about memory."""
        if self.held is None:
            return ""
        held = readable(self.held, "B") + ("" if self.activations else " without activations")
        if self.limit is None:
            return f"It needs {held}; this card's memory is unknown."
        limit, spare = readable(self.limit, "B"), self.limit - self.held
        if spare >= 0:
            return f"It fits: {held} of {limit}, {readable(spare, 'B')} left."
        return f"It does not fit: {held}, {readable(-spare, 'B')} more than the card's {limit}."

    def __getitem__(self, key: tuple[str, str]) -> float:
        """The value of a line, by its group and what it counts: ``plan["time", "training"]``.

        Raises:
            LookupError: there's no such line; the message lists all lines.
        """
        values = {(line.group, line.what): line.value for line in self.lines}
        if key not in values:
            raise LookupError(f"{key} is not a line of this plan; it has {', '.join(map(str, values))}")
        return values[key]

    def as_dict(self) -> dict[str, Any]:
        """The plan as plain data for JSON: title, lines (as in `Line.as_dict`), fits, verdict, advice, warnings."""
        return {
            "title": self.title,
            "lines": [line.as_dict() for line in self.lines],
            "fits": self.fits,
            "verdict": self.verdict,
            "advice": list(self.advice),
            "warnings": list(self.warnings),
        }

    def __str__(self) -> str:
        named = {str(source): source for x in self.lines for source in (x.source, *sources_of(x.value))}
        marks = {title: mark for mark, title in enumerate(named, 1)}
        widths = [
            max(len(text) for text in texts) for texts in zip(*((x.what, x.shown) for x in self.lines), strict=True)
        ]
        rows = [self.title]
        for group, lines in itertools.groupby(self.lines, key=lambda line: line.group):
            rows += ["", group]
            for line in lines:
                mark = ", ".join(str(marks[title]) for title in line.sources)
                rows.append(f"  {line.what:<{widths[0]}}  {line.shown:>{widths[1]}}  {line.formula} [{mark}]")
        rows += ["", self.verdict] if self.verdict else []
        rows += [f"  - {advice}" for advice in self.advice]
        rows += [f"Warning: {warning}" for warning in self.warnings]
        return "\n".join([*rows, "", *(f"[{marks[title]}] {_reference(source)}" for title, source in named.items())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Jupyter's hook."""
        advice = "".join(f"<li>{html.escape(text)}</li>" for text in self.advice)
        warned = "".join(f"<p>Warning: {html.escape(text)}</p>" for text in self.warnings)
        verdict = f"<p>{html.escape(self.verdict)}</p>"
        return f"{as_table(self.lines, self.title)}{verdict}<ul>{advice}</ul>{warned}"


def as_table(lines: Sequence[Line], title: str = "") -> str:
    """The lines as an HTML table whose sources are links; "" if there are no lines."""
    rows = [f"<caption>{html.escape(title)}</caption>"] if title else []
    for group, members in itertools.groupby(lines, key=lambda line: line.group):
        rows.append(f'<tr><th colspan="4" scope="rowgroup" style="text-align:left">{html.escape(group)}</th></tr>')
        for line in members:
            texts = [html.escape(text) for text in (line.what, line.shown, line.formula)]
            texts.append("; ".join(map(_link, dict.fromkeys((line.source, *sources_of(line.value))))))
            cells = "".join(f'<td style="text-align:left">{text}</td>' for text in texts)
            rows.append(f"<tr>{cells}</tr>")
    return f"<table>{''.join(rows)}</table>" if lines else ""


def _link(source: Source | str) -> str:
    if isinstance(source, str):
        return html.escape(source)
    return f'<a href="{html.escape(source.url)}">{html.escape(str(source))}</a> ({html.escape(source.kind)})'


def _reference(source: Source | str) -> str:
    if isinstance(source, str):
        return source
    checked = f", verified {source.verified}" if source.verified not in ("", source.date) else ""
    return f"{source} ({source.kind}{checked}), {source.url}"

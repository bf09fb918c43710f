"""SVG drawings: shapes that take their colors from the page, so that they suit its light and its dark theme.

Shapes have a *look*, a class of the style sheet (`explorer.css`), never a color: "data" (bytes), "compute" (FLOPs),
"measured", "predicted", "highlight", "context", "ink", "paper". Lengths are CSS pixels.
"""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from course_utils.units import raised

T = TypeVar("T", bound=float)
Box = tuple[float, float, float, float]  # left, top, right, bottom

SIZE = 12.0  # of text
_WIDTH = 0.56  # of a character, on average, in units of its size: sans-serif digits and small letters


def power(value: float) -> str:
    """A power of ten as text: 1, 10, 100, 1,000, 10,000, then 10ᵏ."""
    exponent = round(math.log10(value))
    return f"{10**exponent:,g}" if -3 <= exponent <= 4 else "10" + raised(exponent)


def wide(text: str, size: float = SIZE) -> float:
    """About how wide a text is."""
    return _WIDTH * size * len(text)


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _number(value: float) -> str:
    """A length rounded to a tenth of a pixel, so that every machine writes the same."""
    return f"{round(value * 10) / 10:g}" if abs(value) < 1e5 else f"{value:.0f}"


class Drawing:
    """Shapes on a sheet of ``width`` by ``height``, in the order in which they are drawn.

    Shapes drawn ``behind`` (axes, grids) aren't part of the faint copy that stays when a control moves. A shape keeps
    its ``key`` in the next drawing, and glides to its new place.
    """

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self._back: list[str] = []
        self._front: list[str] = []
        self._active = False
        self._texts: list[Box] = []

    def shape(self, tag: str, text: str = "", *, tip: str = "", behind: bool = False, **attributes: object) -> None:
        """Any SVG element with a text in it, or with a ``tip``, which is shown while the mouse is over it.

        Underscores in names of attributes become hyphens; a trailing one is dropped.
        """
        parts = [f"<{tag}"]
        for name, value in attributes.items():
            if value is None or value == "":
                continue
            name = name.rstrip("_").replace("_", "-")
            said = _number(value) if isinstance(value, float | int) and not isinstance(value, bool) else f"{value}"
            parts.append(f' {name}="{html.escape(said)}"')
        inside = html.escape(text, quote=False) + (f"<title>{html.escape(tip, quote=False)}</title>" if tip else "")
        parts.append(f">{inside}</{tag}>" if inside else "/>")
        (self._back if behind else self._front).append("".join(parts))

    def rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        look: str = "data",
        *,
        key: str = "",
        behind: bool = False,
        radius: float = 0,
        tip: str = "",
        pattern: str = "",
    ) -> None:
        """A box. ``look`` may name several classes."""
        self.shape(
            "rect", behind=behind, x=x, y=y, width=max(0.0, width), height=max(0.0, height), rx=radius or None,
            class_=_fills(look), data_key=key, stroke_dasharray=pattern, tip=tip,
        )  # fmt: skip

    def circle(self, x: float, y: float, r: float, look: str = "data", *, key: str = "", tip: str = "") -> None:
        self.shape("circle", cx=x, cy=y, r=r, class_=_fills(look), data_key=key, tip=tip)

    def line(
        self,
        points: Iterable[tuple[float, float]],
        look: str = "ink",
        *,
        width: float = 1.5,
        dashes: str = "",
        key: str = "",
        behind: bool = False,
        arrow: bool = False,
    ) -> None:
        """A line through points, with an arrowhead at its end if it's an ``arrow``."""
        points = list(points)
        path = "M" + " L".join(f"{_number(x)} {_number(y)}" for x, y in points)
        classes = _looks("l", look)
        if arrow and len(points) > 1:
            (x0, y0), (x1, y1) = points[-2:]
            turn = math.atan2(y1 - y0, x1 - x0)
            for side in (math.pi - 0.4, math.pi + 0.4):
                path += f" M{_number(x1)} {_number(y1)}"
                path += f" L{_number(x1 + 8 * math.cos(turn + side))} {_number(y1 + 8 * math.sin(turn + side))}"
        self.shape(
            "path", behind=behind, d=path, class_=classes, stroke_width=width, stroke_dasharray=dashes, data_key=key
        )

    def curve(
        self,
        x: Axis,
        y: Axis,
        points: Iterable[tuple[float, float]],
        look: str = "ink",
        *,
        width: float = 1.5,
        dashes: str = "",
        key: str = "",
    ) -> None:
        """A curve through values on two axes, as far as it's inside: see `curve`."""
        pieces = curve(x, y, points)
        if pieces:
            path = " ".join("M" + " L".join(f"{_number(x)} {_number(y)}" for x, y in piece) for piece in pieces)
            self.shape(
                "path", d=path, class_=_looks("l", look), stroke_width=width, stroke_dasharray=dashes, data_key=key
            )

    def area(self, points: Iterable[tuple[float, float]], look: str = "data", *, key: str = "") -> None:
        """A filled polygon."""
        path = "M" + " L".join(f"{_number(x)} {_number(y)}" for x, y in points) + " Z"
        self.shape("path", d=path, class_=_fills(look), data_key=key)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        anchor: str = "start",
        size: float = SIZE,
        look: str = "ink",
        bold: bool = False,
        turned: bool = False,
        key: str = "",
        behind: bool = False,
    ) -> None:
        """Text at its baseline; ``anchor`` is "start", "middle" or "end". ``turned`` reads from below to above.

        With the look "clear" beside another one, the letters keep away what was drawn earlier.
        """
        self.shape(
            "text", text, behind=behind, x=x, y=y, text_anchor=None if anchor == "start" else anchor,
            font_size=None if size == SIZE else size, class_=_looks("t", look), font_weight="bold" if bold else None,
            transform=f"rotate(-90 {_number(x)} {_number(y)})" if turned else None, data_key=key,
        )  # fmt: skip
        if not turned:
            left = x - wide(text, size) * {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor]
            self._texts.append((left, y - 0.8 * size, left + wide(text, size), y + 0.25 * size))

    def label(
        self, x: float, y: float, text: str, *, within: Box, avoid: Iterable[Box] = (), size: float = 11, key: str = ""
    ) -> None:
        """Text beside a point, at the nearest place ``within`` a box that's free of earlier texts and of ``avoid``.

        If no place is free, earlier texts matter most. A text that isn't next to its point gets a line to it.
        """
        length, marks = wide(text, size), tuple(avoid)
        best: tuple[int, float, float, Box] | None = None
        for away in range(9, 100, 15):
            for right, down in ((1, 1), (1, -1), (-1, 1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1)):
                left = x + right * away - (0.5 - 0.5 * right) * length
                middle = y + down * away
                box = (left, middle - 0.6 * size, left + length, middle + 0.6 * size)
                inside = within[0] <= box[0] and box[2] <= within[2] and within[1] <= box[1] and box[3] <= within[3]
                cost = 100 * (not inside) + 10 * sum(_overlap(box, each) for each in self._texts)
                cost += sum(_overlap(box, each) for each in marks)
                if best is None or cost < best[0]:
                    best = (cost, left, middle + 0.35 * size, box)
            if best is not None and best[0] == 0:
                break
        assert best is not None
        _, left, baseline, box = best
        near = min(max(x, box[0]), box[2]), min(max(y, box[1]), box[3])
        if math.dist(near, (x, y)) > 15:
            self.line([(x, y), near], "context", width=1, key=f"{key} line" if key else "")
        self.text(left, baseline, text, size=size, look="ink clear", key=key)

    def before(self, x: float, y: float, *, anchor: str = "end", words: str = "dashed: the setting before") -> None:
        """The caption of the copy of the setting before: it's there only while that is.

        The copy is faint; where the look "past" leaves something of it, that is dashed.
        """
        self.text(x, y, words, anchor=anchor, size=11, look="quiet before", key="before")

    def past(self, path: str, *, key: str) -> None:
        """Outlines that are seen only in the faint copy of the setting before, and dashed."""
        if path:
            self.shape("path", d=path, class_="l-past", data_key=key)

    def beside(
        self, x: float, y: float, text: str, *, within: tuple[float, float], before: bool = False, away: float = 8,
        size: float = 11, key: str = "",
    ) -> None:  # fmt: skip
        """A text at the right of a place, or at its left if only there it's ``within`` (left, right).

        With ``before`` the left is tried first.
        """
        length = wide(text, size)
        left = x - away - length >= within[0] if before else x + away + length > within[1]
        place, anchor = (x - away, "end") if left else (x + away, "start")
        self.text(place, y, text, anchor=anchor, size=size, look="ink clear", key=key)

    def glider(self, x: float, y: float, width: float, height: float, text: str, look: str, *, key: str) -> None:
        """A box and its text that move together, slowly enough for the eye to follow them to their new place."""
        size = f'width="{_number(width)}" height="{_number(height)}"'
        self._front.append(
            f'<g class="course-glide" data-key="{html.escape(key)}" '
            f'style="transform:translate({_number(x)}px,{_number(y)}px)"><rect {size} class="f-paper"/>'
            f'<rect {size} class="{_fills(look)} f-edged"/>'
            f'<text x="{_number(width / 2)}" y="{_number(height / 2 + 4)}">{html.escape(text)}</text></g>'
        )

    def numbers(self, places: Iterable[tuple[float, float, str]], *, behind: bool = False) -> None:
        """Many short texts, each centered in its place."""
        texts = "".join(f'<text x="{_number(x)}" y="{_number(y)}">{html.escape(text)}</text>' for x, y, text in places)
        (self._back if behind else self._front).append(f'<g class="course-numbers">{texts}</g>')

    def letters(
        self, places: Sequence[float], y: float, letters: str, *, size: float = 11, look: str = "ink", key: str = ""
    ) -> None:
        """Letters, each centered in its place: one shape, because a text for each would take far more bytes."""
        if letters:
            self.shape(
                "text", letters, x=" ".join(map(_number, places)), y=y, text_anchor="middle", font_size=size,
                class_=_looks("t", look), data_key=key,
            )  # fmt: skip

    def button(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        text: str,
        *,
        sets: tuple[str, str],
        label: str,
        look: str = "data",
        pressed: bool | None = None,
        key: str = "",
        size: float = SIZE,
    ) -> None:
        """A box to press, by mouse or keyboard, that sets a setting: ``sets`` is its name and value."""
        self._active = True
        state = "" if pressed is None else f' aria-pressed="{str(pressed).lower()}"'
        self._front.append(
            f'<g role="button" tabindex="0" data-lm-suppress-shortcuts="true" aria-label="{html.escape(label)}"{state} '
            f'data-name="{html.escape(sets[0])}" data-value="{html.escape(sets[1])}" '
            f'data-key="{html.escape(key or label)}">'
        )
        self.rect(x, y, width, height, look)
        self.text(x + width / 2, y + height / 2 + 0.36 * size, text, anchor="middle", size=size, bold=bool(pressed))
        self._front.append("</g>")

    def handle(self, x: float, y: float, *, sets: str, within: tuple[float, float, float, float], label: str) -> None:
        """A point that can be dragged within ``(left, top, right, bottom)``.

        It sets ``sets`` to "x y", in the drawing's own coordinates. Only a mouse can drag it, so a control
        must offer the same.
        """
        box = " ".join(_number(value) for value in within)
        self.shape(
            "circle", cx=x, cy=y, r=9.0, class_="course-handle", data_name=sets, data_within=box, tip=label,
            data_key=f"handle {sets}",
        )  # fmt: skip

    def point(
        self, x: float, axis: Axis, value: float, said: str, *, sets: str, within: Box, label: str
    ) -> float:  # fmt: skip
        """A `handle` at a value of the vertical ``axis``. Returns its y.

        A value off the scale has no place: its handle stands inside the axis' end, with an arrow to that end and the
        value, in the words ``said``, beside it.
        """
        y = axis(value)
        if not axis.low <= value <= axis.high:
            inside = math.copysign(1, axis.start - axis.end) * (1 if value > axis.high else -1)
            edge, y = y, y + 30 * inside
            self.line([(x, y), (x, edge + 2 * inside)], "highlight now", width=2, arrow=True, key="off")
            self.beside(x, y + 4, said, within=(within[0], within[2]), away=14, key="off text")
        self.handle(x, y, sets=sets, within=within, label=label)
        return y

    def svg(self, label: str) -> str:
        """The drawing as one ``<svg>`` element; ``label`` says for screen readers what it shows."""
        role, width, height = "group" if self._active else "img", _number(self.width), _number(self.height)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'role="{role}" aria-label="{html.escape(label)}">'
            f'<g class="course-back">{"".join(self._back)}</g><g class="course-front">{"".join(self._front)}</g></svg>'
        )


def _looks(kind: str, look: str) -> str:
    return " ".join(f"{kind}-{each}" for each in look.split())


def _fills(look: str) -> str:
    return _looks("f", look)


@dataclass(frozen=True)
class Axis:
    """A scale from values ``low`` to ``high`` to pixels ``start`` to ``end``; logarithmic if ``log``."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """The position of a value; a value off the scale is placed at the nearer end."""
        return self.beyond(min(max(value, min(self.low, self.high)), max(self.low, self.high)))

    def beyond(self, value: float) -> float:
        """The position of a value, also of one off the scale."""
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log10(low), math.log10(high), math.log10(value)
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    def value(self, place: float) -> float:
        """The value at a position."""
        share = min(max((place - self.start) / (self.end - self.start), 0.0), 1.0)
        if self.log:
            low, high = math.log10(self.low), math.log10(self.high)
            return float(10 ** (low + share * (high - low)))
        return self.low + share * (self.high - self.low)

    def nearest(self, values: Iterable[T], place: float) -> T:
        """The one of these values that is nearest to a position."""
        return min(values, key=lambda value: abs(self(value) - place))

    def ticks(self, most: int = 8) -> list[float]:
        """Round values on the scale: powers of ten, or multiples of 1, 2 or 5 times one."""
        if self.log:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            step = max(1, -(-(last - first + 1) // most))
            return [10.0**k for k in range(first, last + 1, step)]
        span = (self.high - self.low) / most
        power = 10.0 ** math.floor(math.log10(span))
        apart = next(power * n for n in (1, 2, 5, 10) if power * n >= span - 1e-12 * power)
        first, last = math.ceil(self.low / apart - 1e-9), math.floor(self.high / apart + 1e-9)
        return [k * apart for k in range(first, last + 1)]


def curve(x: Axis, y: Axis, points: Iterable[tuple[float, float]]) -> list[list[tuple[float, float]]]:
    """The places of a curve's points, in pieces: it's cut off where it leaves the scale of y.

    (A clipPath would need an id, and a page has several drawings, of which some are hidden.)
    """
    top, bottom = min(y.start, y.end), max(y.start, y.end)
    pieces: list[list[tuple[float, float]]] = []
    for (x0, y0), (x1, y1) in itertools.pairwise((x(at), y.beyond(value)) for at, value in points):
        shares = sorted((edge - y0) / (y1 - y0) for edge in (top, bottom)) if y0 != y1 else [0.0, 1.0]
        first, last = max(0.0, shares[0]), min(1.0, shares[1])
        if first > last or (y0 == y1 and not top <= y0 <= bottom):
            continue
        start, end = (
            (x1, y1) if share == 1 else (x0 + share * (x1 - x0), y0 + share * (y1 - y0)) for share in (first, last)
        )
        if not pieces or math.dist(pieces[-1][-1], start) > 1e-6:
            pieces.append([start])
        if math.dist(start, end) > 1e-6:
            pieces[-1].append(end)
    return [piece for piece in pieces if len(piece) > 1]


def axes(
    drawing: Drawing,
    x: Axis,
    y: Axis,
    *,
    xlabel: str,
    ylabel: str,
    xwords: Callable[[float], str],
    ywords: Callable[[float], str],
    xticks: Sequence[float] | None = None,
    yticks: Sequence[float] | None = None,
) -> None:
    """Both axes with their ticks and a grid. The label of y stands above its axis, upright."""
    for place, value in ((x(v), v) for v in (x.ticks() if xticks is None else xticks)):
        drawing.line([(place, y.start), (place, y.end)], "grid", width=1, behind=True)
        drawing.text(place, y.start + 16, xwords(value), anchor="middle", size=11, behind=True)
    for place, value in ((y(v), v) for v in (y.ticks() if yticks is None else yticks)):
        drawing.line([(x.start, place), (x.end, place)], "grid", width=1, behind=True)
        drawing.text(x.start - 6, place + 4, ywords(value), anchor="end", size=11, behind=True)
    drawing.line([(x.start, y.end), (x.start, y.start), (x.end, y.start)], "ink", width=1, behind=True)
    if xlabel:
        drawing.text((x.start + x.end) / 2, y.start + 34, xlabel, anchor="middle", behind=True)
    if ylabel:
        drawing.text(4, y.end - 10, ylabel, behind=True)

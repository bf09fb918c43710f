"""Contrast in the explorers' drawings, which axe doesn't judge.

WCAG 2.2 requires 4.5 for text (1.4.3) and 3 for shapes (1.4.11).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from test_explorers import NAMES, settings

from course_utils.explorers.drawing import wide
from course_utils.explorers.explorer import NARROW, WIDE, load

Color = tuple[float, float, float]
Box = tuple[float, float, float, float]  # left, top, right, bottom

CSS = (Path(__file__).parents[2] / "course_utils" / "explorers" / "explorer.css").read_text(encoding="utf-8")
BACKGROUNDS = {"light": "#ffffff", "dark": "#111111", "dark book": "#14181e"}  # JupyterLab's two, and the web book's
# Thin lines that only help to read a place, and what hasn't happened yet.
QUIET = {"l-grid"}
# What a class sets: {"f-data": {"fill": "--c-data"}}
RULES: dict[str, dict[str, str]] = {}
for selector, body in re.findall(r"\.course-explorer \.([a-z-]+) \{([^}]*)\}", CSS):
    RULES[selector] = {
        name: value.removeprefix("var(").removesuffix(")")
        for name, value in re.findall(r"(fill|stroke|fill-opacity): ([^;]+?) *(?:;|$)", body)
    }


def rgb(text: str) -> Color:
    red, green, blue = (int(text[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue


def colors(theme: str) -> dict[str, Color]:
    """The style sheet's colors in a theme."""
    light, dark = (
        {name: rgb(text) for name, text in re.findall(r"(--c-[a-z]+): (#[0-9a-f]{6})", body)}
        for body in re.findall(r"\{([^}]*--c-data:[^}]*)\}", CSS)
    )
    return light | (dark if theme != "light" else {})


def contrast(one: Color, other: Color) -> float:
    """https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio"""

    def luminance(color: Color) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def shapes(svg: str) -> Iterator[tuple[ElementTree.Element, list[str], float, float]]:
    """Every shape in the order of painting, its classes, and how far its group is moved."""

    def within(
        element: ElementTree.Element, dx: float, dy: float, inherited: str
    ) -> Iterator[tuple[ElementTree.Element, list[str], float, float]]:
        if moved := re.match(r"transform:translate\(([-\d.]+)px,([-\d.]+)px\)", element.get("style", "")):
            dx, dy = dx + float(moved[1]), dy + float(moved[2])
        kind = element.get("class", "")
        if kind in ("course-glide", "course-numbers"):
            inherited = "t-ink"  # as the style sheet says
        yield element, (kind or inherited).split(), dx, dy
        for child in element:
            yield from within(child, dx, dy, inherited)

    yield from within(ElementTree.fromstring(svg), 0.0, 0.0, "")


def boxes(element: ElementTree.Element) -> list[Box]:
    """The boxes that a shape fills: of a rect, and of a path of many."""
    if element.tag.endswith("rect"):
        x, y, width, height = (float(element.get(name, 0)) for name in ("x", "y", "width", "height"))
        return [(x, y, x + width, y + height)]
    found = re.findall(r"M([\d.]+) ([\d.]+)h([\d.]+)v([\d.]+)h-[\d.]+z", element.get("d", ""))
    return [(float(x), float(y), float(x) + float(w), float(y) + float(h)) for x, y, w, h in found]


def places(element: ElementTree.Element) -> list[tuple[float, float]]:
    """The middle of a text, or of each of its letters, a little above the baseline."""
    size, text = float(element.get("font-size", 12)), element.text or ""
    xs, y = [float(x) for x in element.get("x", "").split()], float(element.get("y", 0)) - 0.3 * size
    if len(xs) > 1:
        return [(x, y) for x in xs]
    shift = {"start": 0.5, "middle": 0.0, "end": -0.5}[element.get("text-anchor", "start")]
    return [(xs[0] + shift * wide(text, size), y)]


def found(svg: str, theme: str) -> Iterator[tuple[str, float, float]]:
    """What has too little contrast: a text or a class, its contrast, and the one that it should have."""
    known, paper = colors(theme), rgb(BACKGROUNDS[theme])
    painted: list[tuple[Box, Color, float]] = []

    def below(x: float, y: float) -> Color:
        """The color of what has been painted at a place."""
        here = paper
        for (left, top, right, bottom), color, opacity in painted:
            if left <= x <= right and top <= y <= bottom:
                red, green, blue = (opacity * c + (1 - opacity) * h for c, h in zip(color, here, strict=True))
                here = red, green, blue
        return here

    for element, classes, dx, dy in shapes(svg):
        style = {name: value for kind in classes for name, value in RULES.get(kind, {}).items()}
        if element.tag.endswith("text"):
            color = known[style.get("fill", "none")]
            for x, y in places(element) if element.text and not element.get("transform") else []:
                behind = known["--c-paper"] if "t-clear" in classes else below(x + dx, y + dy)
                if (reached := contrast(color, behind)) < 4.5:
                    yield f"{element.text!r}", reached, 4.5
            continue
        fill, stroke, opacity = (
            style.get("fill", "none"),
            style.get("stroke", "none"),
            float(style.get("fill-opacity", 1)),
        )
        if fill != "none":
            painted += [((a + dx, b + dy, c + dx, d + dy), known[fill], opacity) for a, b, c, d in boxes(element)]
        if QUIET & set(classes) or fill == "--c-paper":
            continue
        # An edge tells a shape from the page; a tint is a background of what stands on it.
        seen = stroke if stroke != "none" else fill if opacity == 1 else "none"
        if seen != "none" and (reached := contrast(known[seen], paper)) < 3:
            yield " ".join(classes), reached, 3


@pytest.mark.parametrize("name", NAMES)
def test_texts_and_lines_stand_out(name: str) -> None:
    explorer, problems = load(name, {}), {}
    for state, width in itertools.product(settings(explorer), (WIDE, NARROW)):
        if svg := explorer.frame(state, next(iter(state), ""), width)["svg"]:
            for theme in BACKGROUNDS:
                problems |= {(theme, what): (round(has, 2), least) for what, has, least in found(svg, theme)}
    assert not problems


@pytest.mark.parametrize("theme", BACKGROUNDS)
def test_texts_around_the_drawing_stand_out(theme: str) -> None:
    known = colors(theme)
    for name in ("--c-ink", "--c-quiet"):
        assert contrast(known[name], rgb(BACKGROUNDS[theme])) >= 4.5
    for name in ("--c-highlight", "--c-predicted", "--c-data"):  # focus, an error's edge, a guess's edge, a slider
        assert contrast(known[name], rgb(BACKGROUNDS[theme])) >= 3


def test_a_pale_line_and_a_text_on_its_own_color_are_found() -> None:
    pale = (
        '<svg><rect class="f-compute" x="0" y="0" width="99" height="20"/><text class="t-ink" x="9" y="14">dark</text>'
    )
    pale += '<path class="l-measured" d="M0 0 L9 9"/></svg>'
    assert [what for what, _, _ in found(pale, "light")] == ["'dark'", "l-measured"]
    assert contrast((0, 0, 0), (1, 1, 1)) == pytest.approx(21)

"""How a class did in one lecture: an HTML page for the instructor, made from the result files, figures first."""

from __future__ import annotations

import bisect
import os
import re
import statistics
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup
from matplotlib.figure import Figure

from autograder.grading.marks import Mark, Result, State, counts
from autograder.grading.source import Lecture
from autograder.grading.text import folded, one_line
from course_utils.plots import CONTEXT, DATA, HIGHLIGHT, INK, MEASURED, styled, to_html

from . import pages, results
from .due import BY_CANVAS, UNCLEAR
from .folder import ClassFolder
from .roster import Student, called

WANTS_EYE = (State.NEEDS_REVIEW, State.FAILED_HERE)
_WIDTH = 4.2  # inches, the width of a phone, so that figures don't shrink there
_MOST = 8  # mistakes in the figure; the table has all
_SLOWEST = 3  # submissions that are named next to their times
_NAME = 24  # most characters of a name in a figure
_COLORS = {State.GRADED: MEASURED, State.NEEDS_REVIEW: HIGHLIGHT, State.FAILED_HERE: HIGHLIGHT}


def write(
    folder: ClassFolder, lecture: Lecture, found: Mapping[str, Result], students: Mapping[str, Student] = {}
) -> Path:
    """Write the report, with the names that ``students`` have; safe to repeat."""
    path = folder.report(lecture.name)
    links = {}
    for student in found:
        if os.path.exists(
            page_of := folder.feedback(student, lecture.name)
        ):  # never raises an error, whatever is there
            link = Path(os.path.relpath(page_of, path.parent)).as_posix()
            links[student] = quote(link, errors="surrogateescape")
    pages.write(path, page(lecture, found, links, results.times(folder, lecture.name), students))
    return path


def page(
    lecture: Lecture,
    found: Mapping[str, Result],
    links: Mapping[str, str] = {},
    times: Mapping[str, float] = {},
    students: Mapping[str, Student] = {},
) -> str:
    """The report as HTML.

    ``links`` lead to students' feedback, ``times`` are the seconds that grading took, ``students`` have the names.
    """
    states = counts(found)
    scored = [result for result in found.values() if result.points is not None]
    titles = pages.exercise_titles(lecture)
    worth = {part.name: part.points for part in lecture.parts}
    passed = {
        name: sum(mark.exercise == name and mark.points >= worth[name] for result in scored for mark in result.marks)
        for name in worth
    }
    mistakes = Counter(
        (mark.mistake, mark.exercise) for result in scored for mark in result.marks if mark.mistake is not None
    ).most_common()
    took = {result.student: times[result.student] for result in scored if result.student in times}
    rows = [_row(result, list(worth), links, took, called(name, students)) for name, result in found.items()]
    figures = [_states(states, sum(bool(row["eye"]) for row in rows))] if found else []
    if scored:
        figures += [_scores(scored, sum(worth.values())), _passed(passed, titles, len(scored))]
    if mistakes:
        figures.append(_mistakes([(text, count) for (text, _), count in mistakes], len(scored)))
    if took:
        figures.append(_times(took))
    return (
        pages.environment()
        .get_template("report.html")
        .render(
            title=pages.title(lecture),
            lecture=lecture.name,
            total=len(found),
            graded=len(scored),
            counts=[(str(state), count) for state, count in states.items() if count],
            figures=figures,
            eye=[row for row in rows if row["eye"]],
            exercises=[
                {
                    "title": titles[name],
                    "short": _short(titles[name]),
                    "worth": f"{worth[name]:g}",
                    "passed": passed[name],
                    "share": f"{passed[name] / len(scored):.0%}" if scored else "",
                }
                for name in worth
            ],
            mistakes=[
                {
                    "text": one_line(text or ""),
                    "title": titles.get(name, one_line(name)),
                    "short": _short(titles.get(name, one_line(name))),
                    "count": count,
                    "share": f"{count / len(scored):.0%}",
                }
                for (text, name), count in mistakes
            ],
            rows=rows,
            timed=bool(took),
        )
    )


def _row(
    result: Result, exercises: Sequence[str], links: Mapping[str, str], took: Mapping[str, float], name: str
) -> dict[str, object]:
    marks = {mark.exercise: _sign(mark) for mark in result.marks}
    unknown = result.late if result.late.startswith((BY_CANVAS, UNCLEAR)) else ""  # when it came in
    notes = [*result.notes, *filter(None, [result.unread, unknown])]
    return {
        "student": name,
        "state": str(result.state)
        + (f", until {result.until}" if result.until else "")
        + (f", {result.attempt}" if result.attempt else "")
        + (", with a comment" if result.comment or any(mark.comment for mark in result.marks) else "")
        + (f", {re.split(', whose|, so', unknown)[0] or result.late}" if result.late else ""),
        "points": "" if result.points is None else f"{result.points:g}",
        "notes": notes,
        "eye": result.state in WANTS_EYE or bool(notes),
        "marks": [marks.get(name, "–") if result.points is not None else "–" for name in exercises],
        "link": links.get(result.student),
        "time": _seconds(took[result.student]) if result.student in took else "",
    }


def _sign(mark: Mark) -> str:
    passed = "?" if mark.open else "✓" if mark.points >= mark.worth else "✗"
    return passed if mark.tests is None else passed + "*"


def _short(title: str) -> str:
    number = re.search(r"\d+\.\d+", title)
    return number[0] if number else title[:12]


def _states(counts: Mapping[State, int], look: int) -> Markup:
    total, done = sum(counts.values()), counts[State.GRADED] + counts[State.NEEDS_REVIEW]
    heading = f"{done} of {total} have points; {look} to look at"
    rows = [(str(state), count, f"{count}", _COLORS.get(state, CONTEXT)) for state, count in counts.items()]
    return _bars(heading, rows, total, ", ".join(f"{count} {state}" for state, count in counts.items()))


def _scores(scored: Sequence[Result], worth: float) -> Markup:
    points = [result.points or 0.0 for result in scored]
    median = statistics.median(points)
    heading = f"Half of those graded have {median:g} of {worth:g} points or more"
    # One bar for each number of points if there are few, otherwise ten bars of equal width.
    bins = int(worth) + 1 if worth <= 24 and all(float(p).is_integer() for p in [*points, worth]) else 10
    single = bins == int(worth) + 1
    heights = [0] * bins
    for p in points:  # a person may have given more than the lecture is worth
        heights[min(round(p) if single else int(p / worth * bins), bins - 1)] += 1
    with styled():
        figure = Figure(figsize=(_WIDTH, 2.9))
        _heading(figure, heading)
        axes = figure.add_axes((0.115, 0.17, 0.865, 0.6))
        width = 1 if single else worth / bins
        left = [i * width if single else (i + 0.5) * width for i in range(bins)]
        axes.bar(left, heights, width=0.86 * width, color=MEASURED)
        axes.axvline(median, color=INK, linewidth=1.2, linestyle="--")
        at_left = median > 0.8 * worth
        axes.annotate(
            "median",
            (median, 1),
            xycoords=("data", "axes fraction"),
            xytext=(-4 if at_left else 4, 2),
            textcoords="offset points",
            ha="right" if at_left else "left",
            fontsize=9,
            annotation_clip=False,
        )
        axes.set(xlabel="points", ylabel="students", xlim=(-0.6 * width, worth + 0.6 * width))
        axes.locator_params(integer=True)
    spread = f"from {min(points):g} to {max(points):g}, mean {statistics.fmean(points):.1f}"
    return Markup(to_html(figure, alt=f"{heading}; {spread}."))


def _passed(passed: Mapping[str, int], titles: Mapping[str, str], graded: int) -> Markup:
    hardest = min(passed, key=lambda name: passed[name])
    heading = f"Hardest: {titles[hardest]}, passed by {passed[hardest] / graded:.0%}"
    rows = [(titles[name], count, f"{count / graded:.0%}", MEASURED) for name, count in passed.items()]
    told = ", ".join(f"{titles[name]}: {count / graded:.0%}" for name, count in passed.items())
    return _bars(heading, rows, graded, told)


def _mistakes(found: Sequence[tuple[str, int]], graded: int) -> Markup:
    shown = [(one_line(text), count, f"{count}", DATA) for text, count in found[:_MOST]]
    heading = f"Most common recognized mistake: {shown[0][1]} of {graded}"
    return _bars(heading, shown, max(count for _, count in found), "; ".join(f"{t}: {n}" for t, _, n, _ in shown))


def _times(took: Mapping[str, float]) -> Markup:
    ranked = sorted(took, key=lambda student: (took[student], student), reverse=True)
    slowest = one_line(ranked[0])[:_NAME]
    median = _seconds(statistics.median(took.values()))
    heading = f"Half of the submissions took {median} or less"
    # Steps by a factor of about three, since a submission that hangs takes a hundred times as long as others.
    edges = [10.0**power * step for power in range(-1, 5) for step in (1, 3)]
    places = {student: bisect.bisect_left(edges, took[student]) for student in ranked}
    rows = []
    for place in range(min(places.values()), max(places.values()) + 1):
        count = sum(each == place for each in places.values())
        label = f"up to {_seconds(edges[place])}" if place < len(edges) else f"more than {_seconds(edges[-1])}"
        if named := [one_line(student)[:_NAME] for student in ranked[:_SLOWEST] if places[student] == place]:
            label += f", the slowest: {', '.join(named)}"
        rows.append((label, count, f"{count}", MEASURED))
    told = f"In all {_seconds(sum(took.values()))}; the slowest is {slowest} with {_seconds(took[ranked[0]])}; "
    told += ", ".join(f"{label}: {count}" for label, count, *_ in rows)
    return _bars(heading, rows, len(took), told)


def _seconds(seconds: float) -> str:
    if seconds >= 120:
        return f"{seconds / 60:.0f} min"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"


def _heading(figure: Figure, text: str) -> None:
    height = figure.get_size_inches()[1]
    for number, each in enumerate(_wrapped(text)):
        figure.text(0.004, 1 - (0.1 + 0.2 * number) / height, each, size=11, weight="bold", va="top")


def _wrapped(heading: str) -> list[str]:
    return folded(heading, 44)


def _bars(heading: str, rows: Sequence[tuple[str, int, str, str]], most: int, told: str) -> Markup:
    """Bars below their labels, so that long ones fit: (label, value, text beside the bar, color)."""
    labels = [folded(label, 52)[:3] for label, *_ in rows]
    room = [0.17 * len(lines) + 0.33 for lines in labels]  # inches
    top = 0.2 + 0.2 * len(_wrapped(heading))
    height = top + sum(room) + 0.05
    with styled():
        figure = Figure(figsize=(_WIDTH, height))
        _heading(figure, heading)
        axes = figure.add_axes((0.004, 0, 0.87, 1))
        axes.set(xlim=(0, max(most, 1)), ylim=(height, 0))
        axes.set_axis_off()
        y = top
        for (_, value, written, color), lines, inches in zip(rows, labels, room, strict=True):
            for number, each in enumerate(lines):
                axes.text(0, y + 0.04 + 0.17 * number, each, va="top", fontsize=9)
            middle = y + 0.17 * len(lines) + 0.15
            axes.barh(middle, max(most, 1), height=0.16, color=CONTEXT, alpha=0.2)
            axes.barh(middle, value, height=0.16, color=color)
            axes.annotate(written, (1, middle), xycoords=("axes fraction", "data"), xytext=(5, 0),
                          textcoords="offset points", va="center", fontsize=9, annotation_clip=False)  # fmt: skip
            y += inches
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)  # no font may have a name's letters
        return Markup(to_html(figure, alt=f"{heading}. {told}."))

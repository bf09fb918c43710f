"""How the cost of grading grows: with submissions, with exercises in a notebook, with workers.

Classes of 10, 100, 1,000 … honest submissions of one lecture are graded by `course grade` from the command's start to
its finished gradebook. Large classes hand in the same work repeatedly; the engine doesn't know, and grades each one.
For the number of exercises, the lecture's are repeated under new names; there only the time between the first and last
result counts, as start-up is the same. A line through the points shows whether the cost is linear: seconds = start +
each · n.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from grading import make_class, run
from matplotlib.figure import Figure

from autograder import project
from autograder.authoring import build, checks
from autograder.grading import source
from autograder.grading.exercises import hidden_path
from autograder.records import grade
from autograder.records.folder import ClassFolder
from course_utils.plots.axes import add_title, log_ticks, mark, wrap_title
from course_utils.plots.style import CONTEXT, styled
from course_utils.testing.requirements import Check, Requirement

TITLE = "Growth"
_CELL = re.compile(r"^(?=# %%)", re.MULTILINE)
_ID = re.compile(r'"grade_id": "(?:test_)?(\w+?)"')


def line(x: Sequence[float], y: Sequence[float]) -> dict[str, float]:
    """The line with the smallest relative errors: its intercept, its slope, and the largest relative error."""
    weight = 1 / np.asarray(y)
    each, start = np.polyfit(x, y, 1, w=weight)
    off = np.abs((start + each * np.asarray(x)) / y - 1)
    return {"start": float(start), "each": float(each), "off": float(off.max())}


def repeated(text: str, times: int) -> str:
    """A lecture's source with its exercises repeated this many times, under new names."""
    cells = _CELL.split(text)
    names = sorted({found[1] for cell in cells if (found := _ID.search(cell))})
    again = []
    for copy in range(2, times + 1):
        for cell in cells:
            if _ID.search(cell):
                new = re.sub(rf"\b(test_)?({'|'.join(names)})\b", rf"\1\2_{copy}", cell)
                again.append(new)
    return "".join(cells).rstrip("\n") + "\n\n" + "".join(again)


def renamed(check: Check, copy: int, names: Iterable[str]) -> Check:
    """A check for an exercise's copy, in which names of the lecture's solutions refer to the copy's."""
    known = re.compile(rf"\bstudent\.({'|'.join(names)})\b")

    def of_copy(each: Requirement) -> Requirement:
        probe = known.sub(rf"student.\1_{copy}", each.probe)
        return replace(each, probe=probe, target=each.target if probe else f"{each.target}_{copy}")

    return replace(check, name=f"{check.name}_{copy}", requirements=tuple(map(of_copy, check.requirements)))


def renamed_checks(lecture: source.Lecture, times: int, visible: Path, hidden: Path) -> None:
    """Write the checks of a lecture's exercises and their copies, both the students' and a class's."""
    names = [exercise.name for exercise in lecture.exercises]
    for folder in (visible, hidden):
        folder.mkdir(parents=True, exist_ok=True)
    for spec in checks.specs(lecture):
        for folder, content in ((visible, spec.cells.packed), (hidden, checks.hidden(spec))):
            for copy in range(1, times + 1):
                check = Check.unpack(content)
                made = check if copy == 1 else renamed(check, copy, names)
                (folder / f"{made.name}.check").write_bytes(made.pack())


def submissions(size: int, lecture: str, workers: int, say: Callable[[str], None]) -> dict[str, float]:
    """Seconds of `course grade` for a class: to the first result, between first and last, in all."""
    with tempfile.TemporaryDirectory() as scratch:
        course = Path(scratch, "course")
        (read,) = build.course_directory(course, [project.SOLUTIONS / f"{lecture}.py"])
        build.release(course, lecture)
        make_class(course, read, size)
        ran = run([(course, ("autograder.cli", "grade", ".", lecture, "--workers", str(workers)))], lecture)
    first, last = ran.written[0], ran.written[-1]
    say(f"{size:,} submissions with {workers} workers: {ran.seconds:.1f} s, the first result after {first:.1f} s")
    return {"n": size, "seconds": ran.seconds, "first": first, "grading": last - first, "workers": workers}


def exercises(copies: Sequence[int], lecture: str, students: int, say: Callable[[str], None]) -> list[dict[str, float]]:
    """Seconds per submission for notebooks with the lecture's exercises repeated this many times."""
    text = (project.SOLUTIONS / f"{lecture}.py").read_text(encoding="utf-8")
    found = []
    kept = project.SOLUTIONS
    for times in copies:
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch, f"{lecture}.py")
            path.write_text(repeated(text, times), encoding="utf-8")
            course = Path(scratch, "course")
            original = source.read(kept / path.name)
            source.CHECKS = Path(scratch, "checks")
            renamed_checks(original, times, source.CHECKS, hidden_path(course, "").parent)
            (read,) = build.course_directory(course, [path], seed=None)
            build.release(course, lecture)
            for student in range(students):
                work = project.notebook_path(course / "submitted" / f"student{student:05d}", lecture)
                work.parent.mkdir(parents=True)
                build.write_notebook(read.notebook, work)
            project.SOLUTIONS = Path(scratch)
            try:
                summary = grade.grade_class(ClassFolder(course), lecture, workers=0, database=None)
            finally:
                project.SOLUTIONS, source.CHECKS = kept, project.CHECKS
            full = sum(exercise.points for exercise in read.exercises)
            if any(result.points != full for result in summary.results.values()):
                sys.exit("a reference did not get its points")
            written = sorted(p.stat().st_mtime for p in (course / "results" / lecture).glob("*.json"))
        each = (written[-1] - written[0]) / (len(written) - 1)
        found.append({"n": len(read.exercises), "seconds": each})
        say(f"{len(read.exercises)} exercises: {each:.3f} s a submission")
    return found


def measure(
    say: Callable[[str], None],
    most: int = 10_000,
    copies: Sequence[int] = (1, 2, 4, 8),
    workers: Sequence[int] = (1, 2, 4),
    lecture: str = "01_tensors",
) -> Iterator[dict[str, Any]]:
    """Seconds for each size up to ``most`` (100 or more), the smallest first, and the lines through them."""
    long = exercises(copies, lecture, 10, say)
    side = [submissions(200, lecture, count, say) for count in workers]
    many: list[dict[str, float]] = []
    for power in range(1, int(np.log10(most)) + 1):
        many.append(submissions(10**power, lecture, 2, say))
        if power > 1:  # a line needs two points
            yield {
                "lecture": lecture,
                "cores": len(os.sched_getaffinity(0)),
                "submissions": list(many),
                "line of submissions": line([one["n"] for one in many], [one["seconds"] for one in many]),
                "exercises": long,
                "line of exercises": line([one["n"] for one in long], [one["seconds"] for one in long]),
                "workers": side,
            }


def rows(found: dict[str, Any]) -> list[list[str]]:
    table = [["", "seconds in all", "to the first result", "gradebook, end", "submissions per second, once running"]]
    for one in [*found["submissions"], *found["workers"]]:
        name = f"{one['n']:,} submissions, {one['workers']} worker{'s' * (one['workers'] > 1)}"
        end, rate = one["seconds"] - one["first"] - one["grading"], (one["n"] - 1) / one["grading"]
        table.append([name, f"{one['seconds']:.1f}", f"{one['first']:.1f}", f"{end:.1f}", f"{rate:.2f}"])
    through = found["line of submissions"]
    name = f"{through['start']:.1f} s + {1e3 * through['each']:.0f} ms for each submission"
    table.append([name, f"within {through['off']:.0%}", "", "", ""])
    for one in found["exercises"]:
        table.append([f"{one['n']} exercises", f"{one['seconds']:.3f} a submission", "", "", ""])
    through = found["line of exercises"]
    name = f"{1e3 * through['start']:.0f} ms + {1e3 * through['each']:.1f} ms for each exercise"
    table.append([name, f"within {through['off']:.0%}", "", "", ""])
    return table


def draw(found: dict[str, Any]) -> Figure:
    """Submissions, exercises and workers side by side, each with the line for a constant additional cost."""
    many, long, side, cores = (found[key] for key in ("submissions", "exercises", "workers", "cores"))
    through, single = found["line of submissions"], found["line of exercises"]
    sizes = np.geomspace(many[0]["n"], many[-1]["n"])
    lengths = np.array([one["n"] for one in long])
    counts = np.arange(1, max(one["workers"] for one in side) + 1)
    rates = [(one["n"] - 1) / one["grading"] for one in side]
    panels = [
        ("submissions", "seconds, start to gradebook", sizes, through["start"] + through["each"] * sizes,
         [(one["n"], one["seconds"]) for one in many]),
        ("exercises in the notebook", "seconds a submission", lengths, single["start"] + single["each"] * lengths,
         [(one["n"], one["seconds"]) for one in long]),
        ("workers", "submissions a second", counts, rates[0] * np.minimum(counts, cores),
         [(one["workers"], rate) for one, rate in zip(side, rates, strict=True)]),
    ]  # fmt: skip
    title = (
        f"A class takes a start of {through['start']:.0f} s and {1e3 * through['each']:.0f} ms for each submission, "
        f"from {many[0]['n']:,} to {many[-1]['n']:,}; workers help up to the number of cores, {cores}"
    )
    width, height = 10.2, 3.6
    with styled():
        fig = Figure(figsize=(width, height))
        lines = wrap_title(title, width)
        add_title(fig, lines)
        top = 0.32 + 0.24 * len(lines)
        for number, (xlabel, ylabel, x, y, measured) in enumerate(panels):
            place = ((0.75 + 3.35 * number) / width, 0.62 / height, 2.45 / width, 1 - (0.62 + top) / height)
            ax = fig.add_axes(place, xlabel=xlabel, ylabel=ylabel)
            ax.plot(x, y, color=CONTEXT, linestyle="--", label="as cores" if number == 2 else "a line")
            for here in measured:
                mark(ax, *here, "o", measured=True, gid=f"panel {number} {here[0]}")
            if number == 0:
                ax.loglog()
                for axis, limits in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
                    log_ticks(axis, *limits, "", most=5)
            else:
                ax.set_ylim(0, 1.15 * max(*y, *(value for _, value in measured)))
                ax.set_xticks([value for value, _ in measured])
            ax.legend(loc="lower right" if number else "upper left", frameon=False)
    return fig

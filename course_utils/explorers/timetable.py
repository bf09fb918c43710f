"""The timetable of a pipeline: forward and backward passes of microbatches on stages, and what each stage keeps."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

from course_utils import napkin
from course_utils.explorers.drawing import Drawing, wide
from course_utils.explorers.explorer import Explorer, Panel, Picture
from course_utils.napkin.pipelines import IDLE

STAGES, MICROBATCHES = range(1, 7), range(1, 11)
TICKS = 2 * (MICROBATCHES[-1] + STAGES[-1] - 1)  # of the longest timetable: the axis of all
_ROW = 16.0
# With what "now" hides in the faint copy of the setting before: it keeps only outlines.
_LOOKS = {
    "later": "l-grid l-now", IDLE: "f-context f-soft f-now", "F": "f-data f-soft f-edged f-now", "B": "f-compute f-now",
}  # fmt: skip
SCHEDULES = {False: "all forward passes first (GPipe)", True: "1F1B: one forward, one backward"}


def explore(stages: int = 4, microbatches: int = 6) -> Explorer:
    """Controls for both numbers and for the time, above the timetables of the two schedules.

    Args:
        stages, microbatches: the initial numbers, up to 6 and up to 10.
    """
    arguments: dict[str, Any] = {"stages": stages, "microbatches": microbatches}
    return Explorer("timetable", partial(show, **arguments), arguments)


def show(panel: Panel, *, stages: int, microbatches: int) -> Picture:
    """Both timetables up to a tick, with the microbatches whose activations each stage keeps by then."""
    stages = panel.slider("stages", STAGES, stages)
    microbatches = panel.slider("microbatches", MICROBATCHES, microbatches)
    ticks = 2 * (microbatches + stages - 1)
    panel.row()
    time = panel.slider("ticks", range(ticks + 1), ticks, lambda t: "all" if t == ticks else f"{t}", play=400)

    tables = {early: napkin.schedule(stages, microbatches, early) for early in SCHEDULES}
    drawing = Drawing(panel.width, 2 * (18 + _ROW * STAGES[-1]) + 58)
    for early, lines in tables.items():
        _table(drawing, panel.narrow, lines, time, early, 12.0 + early * (24 + _ROW * STAGES[-1]))
    _legend(drawing, panel.narrow)
    drawing.before(panel.width - 10, drawing.height - 8)

    share = napkin.bubble(napkin.Step(1, 1, cards=stages, pipeline=stages, accumulation=microbatches))
    waits = ticks - 2 * microbatches
    idle = f"each stage is idle for {waits} of {ticks} ticks, a bubble of {share:.0%}"
    title = f"{stages} stages, {_several(microbatches)}: {idle}"
    if stages == 1:
        title = f"One stage, {_several(microbatches)}: it never waits, so there is no bubble"
    gpipe, f1b1 = (napkin.kept(lines[0]) for lines in tables.values())
    if 0 < time < ticks:
        finding = (
            f"After tick {time} of {ticks}, stage 0 keeps the activations of {_several(gpipe[time - 1])} with all "
            f"forward passes first, and of {f1b1[time - 1]} with 1F1B."
        )
    else:
        first = f"up to {max(f1b1)}, and the last stage those of 1" if stages > 1 else "1"
        finding = (
            f"Both schedules take {ticks} ticks. With all forward passes first, each stage keeps the activations of up "
            f"to {_several(microbatches)}; with 1F1B, stage 0 keeps those of {first}."
        )
    return Picture(title, drawing, finding)


def _several(microbatches: int) -> str:
    return f"{microbatches} microbatch{'' if microbatches == 1 else 'es'}"


def _table(drawing: Drawing, narrow: bool, lines: list[list[str]], time: int, early: bool, top: float) -> None:
    """One schedule's rows, and beside each what the stage keeps: now, and at most so far."""
    left, cell = (28.0, 9.0) if narrow else (54.0, 19.0)
    bars, unit, now, most = (304.0, 3.0, None, 374.0) if narrow else (636.0, 5.0, 712.0, 750.0)
    drawing.text(left, top, SCHEDULES[early], bold=True, size=11 if narrow else 12, behind=True)
    drawing.text(bars, top, "keeps", size=11, look="quiet", behind=True)
    for x, said in ((now, "now"), (most, "most")):
        if x:
            drawing.text(x, top, said, anchor="end", size=11, look="quiet", behind=True)
    top, bottom = top + 6, top + 6 + _ROW * len(STAGES)
    drawing.line([(left + cell * TICKS, bottom), (left - 2, bottom), (left - 2, top)], "ink", width=1, behind=True)
    if narrow:
        drawing.text(10, top + 40, "stage", anchor="middle", size=11, turned=True, behind=True)
    _boxes(drawing, lines, time, f"{early:d}", (left, top, cell))
    boxes = ""
    for stage, line in enumerate(lines):
        y = top + _ROW * stage
        drawing.text(left - 6, y + 12, f"{stage}" if narrow else f"stage {stage}", anchor="end", size=11)
        for kind, look in (("F", "ink"), ("B", "paper")):
            done = [(job, left + cell * (tick + 0.5)) for tick, job in enumerate(line[:time]) if job[0] == kind]
            words = "".join(job[1:] if narrow else job for job, _ in done)
            places = [x + shift for _, x in done for shift in ([-0.5] if narrow else [-4.5, 3.5])]
            drawing.letters(places, y + 12, words, look=look, key=f"{early:d}{stage}{kind}")
        keeps = [0, *napkin.kept(line)[:time]]
        drawing.rect(bars, y + 3, unit * keeps[-1], _ROW - 6, "data half now", key=f"{early:d}{stage}now")
        boxes += _box(bars, y + 3, unit * max(keeps), _ROW - 6)
        if now:
            drawing.text(now, y + 12, f"{keeps[-1]}", anchor="end", size=11)
        drawing.text(most, y + 12, f"{max(keeps)}", anchor="end", size=11)
    drawing.shape("path", d=boxes, class_="f-none f-edged l-past", data_key=f"{early:d}most")


def _boxes(drawing: Drawing, lines: list[list[str]], time: int, name: str, place: tuple[float, float, float]) -> None:
    """The boxes of all jobs and of all waiting, as one shape for each kind."""
    left, top, cell = place
    boxes: dict[str, str] = dict.fromkeys(_LOOKS, "")
    words, before = [], ""
    for stage, line in enumerate(lines):
        y = top + _ROW * stage + 1
        for works, each in itertools.groupby(enumerate(line[:time]), lambda each: each[1] != IDLE):
            ticks = [tick for tick, _ in each]
            if works:
                before += _box(left + cell * ticks[0], y, cell * len(ticks) - 1)
        for kind, run in itertools.groupby(enumerate(line), lambda each: each[1]):
            ticks = [tick for tick, _ in run if tick < time or kind != IDLE]
            if ticks:
                x, width = left + cell * ticks[0], cell * len(ticks) - 1
                at = kind[0] if ticks[0] < time else "later"
                boxes[at] += _box(x, y, width)
                if kind == IDLE and width > wide("waits", 11) + 4:
                    words.append((x + width / 2, y + 11))
    for kind, look in _LOOKS.items():
        if boxes[kind]:
            drawing.shape("path", d=boxes[kind], class_=look, data_key=f"{name}{kind}")
    drawing.past(before, key=f"{name}past")
    for x, y in words:
        drawing.text(x, y, "waits", anchor="middle", size=11)
    if 0 < time < len(lines[0]):
        x, height = left + cell * (time - 1) - 1.5, _ROW * len(lines)
        drawing.shape(
            "rect", x=x, y=top - 0.5, width=cell + 2, height=height + 1, class_="l-highlight l-now", stroke_width=2,
            data_key=f"{name}now",
        )  # fmt: skip


def _box(x: float, y: float, width: float, height: float = _ROW - 2) -> str:
    return f"M{x:g} {y:g}h{width:g}v{height:g}h-{width:g}z"


def _legend(drawing: Drawing, narrow: bool) -> None:
    x, y = 28.0 if narrow else 54.0, drawing.height - 24
    # On a phone a box has room for the microbatch's number only, dark on a forward pass and light on a backward one.
    passes = ("forward", "backward") if narrow else ("F: forward", "B: backward")
    for kind, words, look in (("F", passes[0], "ink"), ("B", passes[1], "paper"), (IDLE, "waits", "")):
        drawing.shape(
            "rect", behind=True, x=x, y=y - 10, width=12.0, height=12.0, class_=_LOOKS[kind],
        )  # fmt: skip
        if narrow and look:
            drawing.text(x + 6, y, "1", anchor="middle", size=11, look=look)
        drawing.text(x + 18, y, words, size=11, behind=True)
        x += 18 + wide(words, 11) + 14
    said = "one tick a pass →" if narrow else "time, one tick for each pass →"
    drawing.text(x, y, said, size=11, look="quiet", behind=True)
    said = "keeps: microbatches held" if narrow else "keeps: microbatches whose activations a stage holds"
    drawing.text(28.0 if narrow else 54.0, drawing.height - 8, said, size=11, look="quiet", behind=True)

"""Which device works on which microbatch, tick by tick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from course_utils.plots.axes import add_title, wrap_title
from course_utils.plots.style import COMPUTE_BOUND, CONTEXT, DATA, INK, styled

IDLE = "."
_FORWARD, _BACKWARD = DATA, COMPUTE_BOUND


def pipeline_schedule(schedules: Mapping[str, Sequence[Sequence[str]]], *, title: str) -> Figure:
    """Draw pipeline schedules one above the other, with a row per stage and a column per tick.

    Args:
        schedules: For each name the stages' lines, of equal length: ``"F2"`` where the stage runs the forward pass of
            microbatch 2, ``"B2"`` where it runs its backward pass, ``"."`` where it waits.
        title: The finding.

    Raises:
        ValueError: There's nothing to draw, lines differ in length, or an entry isn't one of the three.
    """
    lines = [line for stages in schedules.values() for line in stages]
    if not lines or not all(lines):
        raise ValueError("nothing to draw: give at least one schedule with one tick")
    if len({len(line) for line in lines}) > 1:
        raise ValueError("the lines differ in length: fill the shorter ones up with '.'")
    if wrong := [job for line in lines for job in line if job != IDLE and job[:1] not in ("F", "B")]:
        raise ValueError(f"{wrong[0]!r} is neither a forward pass (F…), nor a backward pass (B…), nor '.'")
    ticks, width = len(lines[0]), 8.9
    heads = wrap_title(title, width)
    with styled():
        height = 0.5 + 0.2 * len(heads) + sum(0.62 + 0.3 * len(stages) for stages in schedules.values())
        fig = Figure(figsize=(width, height))
        add_title(fig, heads)
        axes = fig.subplots(len(schedules), 1, squeeze=False, height_ratios=[len(s) for s in schedules.values()])[:, 0]
        for ax, (name, stages) in zip(axes, schedules.items(), strict=True):
            for stage, line in enumerate(stages):
                for tick, job in enumerate(line):
                    color = {"F": _FORWARD, "B": _BACKWARD}.get(job[0], "none")
                    edge = INK if job != IDLE else CONTEXT
                    ax.bar(tick, 0.9, 0.96, stage - 0.45, color=color, alpha=0.45, linewidth=0)
                    ax.bar(tick, 0.9, 0.96, stage - 0.45, color="none", edgecolor=edge, linewidth=0.6)
                    if job != IDLE and ticks <= 40:
                        ax.text(tick, stage, job, ha="center", va="center_baseline", size=8)
            ax.set_title(name, loc="left", size=10)
            ax.set_yticks(range(len(stages)), [f"stage {stage}" for stage in range(len(stages))])
            ax.set(xlim=(-0.6, ticks - 0.4), ylim=(len(stages) - 0.4, -0.6), xticks=[])
            ax.tick_params(axis="y", length=0)
            ax.spines[["left", "bottom"]].set_visible(False)
        axes[-1].set_xlabel("time, in ticks; F: forward pass, B: backward pass, empty: waiting")
        top = 1 - (0.25 + 0.2 * len(heads) + 0.25) / height
        fig.subplots_adjust(left=0.08, right=0.99, top=top, bottom=0.35 / height, hspace=0.45)
    return fig

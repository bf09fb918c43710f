"""The timetable of a pipeline: which stage works on which microbatch, tick by tick, and what it keeps meanwhile.

    for line in napkin.schedule(stages=4, microbatches=6, early=True):
        print(*line)  # F0 F1 F2 F3 . . . B0 F4 …

What a pipeline's idle stages cost in a step is `napkin.bubble`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

IDLE = "."


def schedule(stages: int, microbatches: int, early: bool = False) -> list[list[str]]:
    """A line per stage with an entry per tick: "F2" and "B2" (forward and backward of microbatch 2) or "." (waiting).

    Every pass takes one tick and starts as soon as its stage is free and what it needs is there: a forward pass the
    stage before, a backward pass the stage after.

    Args:
        stages: of the pipeline.
        microbatches: of a batch.
        early: one forward, one backward (1F1B): once a stage is full it takes a microbatch in only when one is done.
            Otherwise all forward passes come first (GPipe; Huang et al. 2018, arXiv:1811.06965).
    """
    firsts = [min(stages - stage, microbatches) if early else microbatches for stage in range(stages)]
    waiting = [_order(first, microbatches) for first in firsts]
    lines: list[list[str]] = [[] for _ in range(stages)]
    done: set[tuple[int, str]] = set()
    while any(waiting):
        now = []
        for stage, order in enumerate(waiting):
            needed = stage - 1 if order and order[0][0] == "F" else stage + 1
            if order and (needed not in range(stages) or (needed, order[0]) in done):
                now.append((stage, order[0]))
                lines[stage].append(order.pop(0))
            else:
                lines[stage].append(IDLE)
        done.update(now)
    return lines


def _order(first: int, microbatches: int) -> list[str]:
    """What a stage does, one after the other, if ``first`` forward passes come before its first backward pass."""
    order = [f"F{m}" for m in range(first)]
    for m in range(microbatches):
        order.append(f"B{m}")
        order += [f"F{first + m}"] if first + m < microbatches else []
    return order


def kept(line: Iterable[str]) -> list[int]:
    """How many microbatches' activations a stage keeps after each tick: from their forward to their backward pass."""
    return list(itertools.accumulate({"F": 1, "B": -1, IDLE: 0}[job[0]] for job in line))

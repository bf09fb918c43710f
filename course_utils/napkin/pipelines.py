"""The schedule of a pipeline: which stage works on which microbatch, tick by tick, and what it keeps meanwhile.

    for line in napkin.schedule(stages=4, microbatches=6, early=True):
        print(*line)  # F0 F1 F2 F3 . . . B0 F4 …

`napkin.bubble` is the fraction of a step that a pipeline's stages are idle.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

IDLE = "."


def schedule(stages: int, microbatches: int, early: bool = False) -> list[list[str]]:
    """A line per stage with an entry per tick: "F2" and "B2" (forward and backward of microbatch 2) or "." (waiting).

    Every pass takes one tick and starts as soon as its stage is free and its input is ready: a forward pass needs the
    previous stage's forward pass, a backward pass the next stage's backward pass.

    Args:
        stages: the number of stages in the pipeline.
        microbatches: the number of microbatches in a batch.
        early: one forward, one backward (1F1B): once a stage is full, it accepts a microbatch only after finishing one.
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
    """The order of a stage's passes, if ``first`` forward passes come before its first backward pass."""
    order = [f"F{m}" for m in range(first)]
    for m in range(microbatches):
        order.append(f"B{m}")
        order += [f"F{first + m}"] if first + m < microbatches else []
    return order


def kept(line: Iterable[str]) -> list[int]:
    """The number of microbatches whose activations a stage keeps after each tick, between their two passes."""
    return list(itertools.accumulate({"F": 1, "B": -1, IDLE: 0}[job[0]] for job in line))

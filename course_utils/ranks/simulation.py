"""Simulated ranks: threads of this process, which meet in every collective."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import torch

from course_utils.ranks.group import Group, RanksError


def simulate(fn: Callable[..., Any], size: int, *args: Any) -> list[Any]:
    """Run `fn(group, *args)` for each rank in a thread of this process, on the CPU, and return what each returned.

    No rank waits forever: once every rank has ended or is waiting, but they aren't all in the same collective, each
    waiting rank gets an error.

    Raises:
        ValueError: size is less than 1.
        RanksError: ranks called different collectives, or one ended while others waited for it.
        Any error that `fn` raises on one of the ranks; if several raise one, the lowest rank's.
    """
    if size < 1:
        raise ValueError(f"simulate was given size={size}; expected 1 or more.")
    world = _World(size)
    threads = [threading.Thread(target=world.run, args=(fn, rank, args), daemon=True) for rank in range(size)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(0.1)  # a little at a time, so that an interrupt gets through
    finally:
        world.stop("the run was stopped")
        for thread in threads:
            if thread.is_alive() and thread.ident is not None:  # still computing: raise an error in it
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))
    errors = [world.errors[rank] for rank in sorted(world.errors)]
    # A rank's own error explains the RanksErrors of those that waited for it.
    own = [error for error in errors if not isinstance(error, RanksError)]
    if errors:
        raise (own or errors)[0]
    return [world.results[rank] for rank in range(size)]


class _World:
    """Where the threads of a simulation meet."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.results: dict[int, Any] = {}
        self.errors: dict[int, BaseException] = {}
        self._meeting = threading.Condition()
        self._given: dict[int, tuple[str, list[torch.Tensor]]] = {}  # call and parts of each waiting rank
        self._taken: list[list[torch.Tensor]] = []  # the parts of the last complete collective, by rank
        self._meetings = 0
        self._ended: set[int] = set()
        self._problem = ""

    def run(self, fn: Callable[..., Any], rank: int, args: tuple[Any, ...]) -> None:
        try:
            self.results[rank] = fn(_SimulatedGroup(self, rank), *args)
        except BaseException as error:
            self.errors[rank] = error
        with self._meeting:
            self._ended.add(rank)
            self._look()

    def stop(self, why: str) -> None:
        with self._meeting:
            self._problem = self._problem or why
            self._meeting.notify_all()

    def meet(self, rank: int, what: str, parts: list[torch.Tensor]) -> list[torch.Tensor]:
        with self._meeting:
            self._given[rank] = (what, parts)
            meeting = self._meetings
            self._look()
            while self._meetings == meeting and not self._problem:
                self._meeting.wait()
            if self._meetings == meeting:
                raise RanksError(self._problem)
            # No later collective can have replaced `_taken`: it would need this rank.
            return [given[rank] for given in self._taken]

    def _look(self) -> None:
        """Hand over the parts if all ranks are here; set an error if they never will be or called different things."""
        if self._problem or not self._given or len(self._given) + len(self._ended) < self.size:
            return
        calls = {rank: _call(what, parts[0]) for rank, (what, parts) in sorted(self._given.items())}
        waits = ", ".join(f"rank {rank} waits in {call}" for rank, call in calls.items())
        if self._ended:
            gone = ", ".join(f"rank {rank}" for rank in sorted(self._ended))
            self._problem = f"{waits}, and {gone} has ended: all ranks must call the same collectives"
        elif len(set(calls.values())) > 1:
            self._problem = f"{waits}: all ranks must call the same collectives, with tensors of the same shape"
        else:
            self._taken = [self._given[rank][1] for rank in range(self.size)]
            self._given = {}
            self._meetings += 1
        self._meeting.notify_all()


def _call(what: str, part: torch.Tensor) -> str:
    """The collective that a rank called, with the shape on which all ranks must agree (except in an all_to_all)."""
    return what if what == "all_to_all" else f"{what} of {list(part.shape)}"


class _SimulatedGroup(Group):
    def __init__(self, world: _World, rank: int) -> None:
        super().__init__(rank, world.size, torch.device("cpu"))
        self._world = world

    def _exchange(self, what: str, parts: list[torch.Tensor]) -> list[torch.Tensor]:
        to_others = sum(part.nbytes for rank, part in enumerate(parts) if rank != self.rank)
        # Each part of an all_reduce is the whole vector; a ring sends on only 2/size of it.
        self.sent += to_others * 2 / self.size if what == "all_reduce" else to_others
        # Copies, because the rank may go on to change what it gave.
        return self._world.meet(self.rank, what, [part.clone() for part in parts])

"""The ranks that compute together, as one of them sees them. Real and simulated groups differ only in the exchange."""

from __future__ import annotations

import torch


class RanksError(RuntimeError):
    """A rank raised, died, or ran out of time: says which one, and where. No process of the launch is left."""


class Group:
    """The ranks that compute together, seen from one of them. All ranks must call the same collectives in one order.

    Attributes:
        rank: which one this is, from 0.
        size: how many there are.
        device: where this rank computes, and where the tensors that it sends must be.
    """

    def __init__(self, rank: int, size: int, device: torch.device) -> None:
        self.rank, self.size, self.device = rank, size, device

    def all_reduce(self, x: torch.Tensor) -> torch.Tensor:
        """The sum of all ranks' `x`, on every rank: a new tensor of the same shape."""
        parts = self._exchange("all_reduce", [x.detach()] * self.size)
        return torch.stack(parts).sum(dim=0)

    def all_gather(self, x: torch.Tensor) -> torch.Tensor:
        """All ranks' `x`, concatenated, on every rank: [n, …] on each becomes [size · n, …]."""
        return torch.cat(self._exchange("all_gather", [x.detach()] * self.size))

    def reduce_scatter(self, x: torch.Tensor) -> torch.Tensor:
        """This rank's part of the sum of all ranks' `x`: [size · n, …] on each becomes [n, …].

        Raises:
            ValueError: the first dimension cannot be divided among the ranks.
        """
        if x.dim() == 0 or len(x) % self.size:
            raise ValueError(f"reduce_scatter: {list(x.shape)} cannot be divided into {self.size} equal parts; pad it")
        return torch.stack(self._exchange("reduce_scatter", list(x.detach().chunk(self.size)))).sum(dim=0)

    def _exchange(self, what: str, parts: list[torch.Tensor]) -> list[torch.Tensor]:
        """Give part i to rank i, and return what the ranks gave to this one, in their order.

        Where a network can add on the way, the list may hold fewer parts, already summed.
        """
        raise NotImplementedError

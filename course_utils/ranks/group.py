"""A group of ranks and its collectives. Real and simulated groups differ only in how they exchange tensors."""

from __future__ import annotations

import torch


class RanksError(RuntimeError):
    """A rank raised an error, died or ran out of time; the message says which one and where. All have been stopped."""


class Group:
    """The ranks that compute together, seen from one of them. All must call the same collectives in the same order.

    Attributes:
        rank: this rank's number, from 0.
        size: the number of ranks.
        device: where this rank computes, and where the tensors that it sends must be.
        sent: bytes that this rank has sent so far, if the ranks are simulated. (For real ones, use `wire_bytes`.)
    """

    def __init__(self, rank: int, size: int, device: torch.device) -> None:
        self.rank, self.size, self.device = rank, size, device
        self.sent = 0.0

    def all_reduce(self, x: torch.Tensor) -> torch.Tensor:
        """The sum of all ranks' `x`, on every rank: a new tensor of the same shape."""
        parts = self._exchange("all_reduce", [x.detach()] * self.size)
        return torch.stack(parts).sum(dim=0)

    def all_gather(self, x: torch.Tensor) -> torch.Tensor:
        """All ranks' `x`, concatenated in the order of ranks, on every rank: [n, …] on each becomes [size · n, …]."""
        return torch.cat(self._exchange("all_gather", [x.detach()] * self.size))

    def reduce_scatter(self, x: torch.Tensor) -> torch.Tensor:
        """This rank's part of the sum of all ranks' `x`: [size · n, …] on each becomes [n, …].

        Raises:
            ValueError: the first dimension cannot be divided among the ranks.
        """
        if x.dim() == 0 or len(x) % self.size:
            raise ValueError(f"reduce_scatter: {list(x.shape)} cannot be divided into {self.size} equal parts; pad it")
        return torch.stack(self._exchange("reduce_scatter", list(x.detach().chunk(self.size)))).sum(dim=0)

    def all_to_all(self, parts: list[torch.Tensor]) -> list[torch.Tensor]:
        """Send part i to rank i, and return what each rank sent to this one. Parts may differ in the first dimension.

        Raises:
            ValueError: there isn't a part for each rank.
        """
        if len(parts) != self.size:
            raise ValueError(
                f"all_to_all was given {len(parts)} parts for {self.size} ranks; give one per rank, even if empty"
            )
        return self._exchange("all_to_all", [part.detach() for part in parts])

    def _exchange(self, what: str, parts: list[torch.Tensor]) -> list[torch.Tensor]:
        """Send part i to rank i, and return what each rank sent to this one, in order.

        If the network can sum along the way, the list may hold fewer parts, already summed.
        """
        raise NotImplementedError

"""What a submission may use. Both sides of the sandbox need it: one sets the limits, the other waits."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Limits:
    """Bytes, seconds, processes and threads that one submission may use.

    ``memory`` applies to all its processes together, ``address_space`` and ``cpu_seconds`` to each of them. ``scratch``
    is the size of its /tmp, and of its /dev/shm. ``seconds`` is wall time for one request; if the processes have to
    wait for a processor, only the processor time that they get counts, up to six times as much wall time.
    ``seconds_in_all`` is wall time for the whole submission, half of it for the tests that students see. ``isolate`` is
    False only under ``--unsafe``.
    """

    isolate: bool = True
    memory: int = 2 * 2**30
    address_space: int = 16 * 2**30
    scratch: int = 64 * 2**20
    processes: int = 64
    cpu_seconds: int = 300
    seconds: float = 5.0
    seconds_in_all: float = 600.0

    def to_json(self) -> bytes:
        """These limits as one message for the fork server."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_json(cls, message: bytes) -> Limits:
        """Read what `to_json` wrote."""
        return cls(**json.loads(message))

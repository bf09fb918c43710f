"""What accelerators promise and what they reach: dense FLOP/s per dtype, memory bandwidth, memory.

The promises are the table in `course_utils.cards`, whose names are also available here. Only the functions that look up
a device or measure one import PyTorch; the table doesn't need it.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from course_utils.cards import (
    ACCELERATORS,
    DTYPES,
    TABLE_DATE,
    Accelerator,
    Link,
    Peaks,
    dtype_bytes,
    dtype_name,
    find,
    words,
)
from course_utils.units import readable

if TYPE_CHECKING:
    import torch

__all__ = [
    "ACCELERATORS",
    "DTYPES",
    "TABLE_DATE",
    "Accelerator",
    "Ceiling",
    "Link",
    "Peaks",
    "describe_peak",
    "dtype_bytes",
    "dtype_name",
    "find",
    "find_device",
    "measured_bandwidth",
    "measured_ceiling",
    "peak_flops",
]


@dataclass(frozen=True)
class Ceiling:
    """The fastest matmul that `measured_ceiling` measured.

    Attributes:
        flops_per_second: 2·size³ / seconds.
        size: the matrices are size × size.
        dtype: of the matrices.
        device: the device that ran it.
        seconds: the time of the fastest call.
    """

    flops_per_second: float
    size: int
    dtype: torch.dtype
    device: torch.device
    seconds: float


def find_device(device: torch.device | str) -> Accelerator | None:
    """The table's entry for `device`; None for a CPU or a card that isn't in the table."""
    import torch

    from course_utils import device as devices

    device = torch.device(device)
    if device.type == "cuda" and torch.cuda.is_available():
        count = torch.cuda.get_device_properties(device).multi_processor_count
        return find(devices.device_name(device), count)
    if device.type == "mps":
        return find(devices.device_name(device))
    return None


def peak_flops(device_or_name: torch.device | str, dtype: torch.dtype | str) -> float | None:
    """Promised dense FLOP/s of a device or a named card for `dtype`, or None if unknown.

    Args:
        device_or_name: a torch device ("cuda", torch.device("cpu")) or a card's name ("H100 SXM").
        dtype: a torch dtype or its name ("bfloat16"), or "tf32" for float32 matmuls on tensor cores. torch.float32
            means the rate without tensor cores, which is PyTorch's default for matmuls.

    Raises:
        ValueError: dtype is neither a torch dtype nor such a name.
    """
    if dtype_name(dtype) not in DTYPES and not str(dtype).startswith("torch."):
        raise ValueError(
            f"peak_flops was given dtype={dtype!r}; expected a torch dtype such as torch.bfloat16, its name, or 'tf32'."
        )
    card = _card(device_or_name)
    return None if card is None else card.peak.get(dtype)


def describe_peak(device: torch.device | str, dtype: torch.dtype | str) -> str:
    """One readable line: the promised FLOP/s with its source, or "peak unknown" with the reason."""
    peak = peak_flops(device, dtype)
    what = dtype_name(dtype)
    card = _card(device)
    if card is not None and peak is not None:
        return f"{readable(peak, 'FLOP/s')} dense {what} ({card.name}; {card.source})"
    if card is not None:
        has = ", ".join(map(dtype_name, card.peak))
        return f"peak unknown: the table has no peak of {card.name} for {what} (it has {has})"
    if not _is_device(device):
        similar = [key for key in ACCELERATORS if words(key)[0] in words(str(device))]
        return f"peak unknown: {device} is not in the table" + (f" (it has {', '.join(similar)})" if similar else "")
    import torch

    from course_utils import device as devices

    if torch.device(device).type == "cuda" and not torch.cuda.is_available():
        return f"peak unknown: torch finds no usable {device} device here"
    name = devices.device_name(device)
    return f"peak unknown: {name} is not in the table; measured_ceiling measures what it reaches"


def _is_device(device_or_name: torch.device | str) -> bool:
    return bool(re.fullmatch(r"(cpu|cuda|mps|meta)(:\d+)?", str(device_or_name).strip().lower()))


def _card(device_or_name: torch.device | str) -> Accelerator | None:
    return find_device(device_or_name) if _is_device(device_or_name) else find(str(device_or_name))


def measured_ceiling(
    device: torch.device | str,
    dtype: torch.dtype | None = None,
    *,
    sizes: Sequence[int] | None = None,
    max_seconds: float = 3.0,
) -> Ceiling:
    """The highest FLOP/s that square matmuls reach on `device` now, for comparison when the peak is unknown.

    Multiplies random matrices (the power a GPU draws, and so its clock, depends on the data) of increasing size
    into an existing output and keeps the fastest call. A measured ceiling is below the promised peak, and depends on
    the number of threads (torch.get_num_threads) and on what else is running.

    Args:
        device: where to measure.
        dtype: float64, float32 (the default), bfloat16 or float16.
        sizes: of the square matrices, ascending. Default: 256 to 2048 on a CPU, 1024 to 16384 on a GPU.
        max_seconds: sizes that don't fit into this time, or into memory, are left out; the first is
            always measured (float16 on a CPU can be 100 times slower than float32).

    Raises:
        ValueError: dtype, sizes or max_seconds is unusable.
    """
    import torch

    from course_utils import device as devices
    from course_utils import timing

    device, dtype = torch.device(device), torch.float32 if dtype is None else dtype
    if dtype not in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        raise ValueError(
            f"measured_ceiling was given dtype={dtype}; expected torch.float64, float32, bfloat16 or float16."
        )
    if sizes is None:
        sizes = (1024, 2048, 4096, 8192, 16384) if devices.on_gpu(device) else (256, 512, 768, 1024, 1536, 2048)
    if not sizes or list(sizes) != sorted(set(sizes)) or sizes[0] < 1:
        raise ValueError(f"measured_ceiling was given sizes={sizes}; expected positive sizes in ascending order.")
    if not (math.isfinite(max_seconds) and max_seconds > 0):
        raise ValueError(f"measured_ceiling was given max_seconds={max_seconds}; expected a positive number.")

    deadline = time.perf_counter() + max_seconds
    best: Ceiling | None = None
    last_size, last_seconds = sizes[0], 0.0
    share = max_seconds / len(sizes)
    for size in sizes:
        expected = last_seconds * (size / last_size) ** 3
        # At most 6 calls to warm up and 3 to time; making the random matrices and the output costs less than one call.
        too_long = time.perf_counter() + 10 * expected > deadline
        too_large = 3 * size**2 * dtype.itemsize > (devices.total_memory(device) or math.inf) / 2
        if best is not None and (too_long or too_large):
            break
        a, b = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
        out = torch.empty_like(a)
        measured = timing.benchmark(
            partial(torch.mm, a, b, out=out),
            device=device,
            warmup_seconds=share / 4,
            min_seconds=share / 2,
            min_samples=3,
        )
        last_size, last_seconds = size, measured.minimum
        rate = 2 * size**3 / measured.minimum
        if best is None or rate > best.flops_per_second:
            best = Ceiling(rate, size, dtype, device, measured.minimum)
    assert best is not None  # the first size is always measured
    return best


def measured_bandwidth(device: torch.device | str, *, nbytes: int | None = None) -> float:
    """Bytes/s that a large copy within the memory of `device` reaches; each byte counts twice, as read and as written.

    Args:
        device: where to measure.
        nbytes: of the array copied. Default: 256 MiB on a CPU and 1 GiB on a GPU, larger than their caches.

    Raises:
        ValueError: nbytes is not positive.
    """
    import torch

    from course_utils import device as devices
    from course_utils import timing

    device = torch.device(device)
    if nbytes is None:
        nbytes = 2**30 if devices.on_gpu(device) else 2**28
    if nbytes < 1:
        raise ValueError(f"measured_bandwidth was given nbytes={nbytes}; expected 1 or more.")
    source = torch.ones(nbytes, dtype=torch.uint8, device=device)  # ones, so that its pages are really allocated
    target = torch.zeros_like(source)
    copy = timing.benchmark(lambda: target.copy_(source), device=device, min_seconds=0.3)
    return 2 * nbytes / copy.minimum

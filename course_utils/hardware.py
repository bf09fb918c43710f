"""What accelerators promise and what they reach: dense FLOP/s per dtype, memory bandwidth, memory.

The table below has every promised number, with its source; prose, plots and tests read it from here.
All peaks are dense. Since Ampere, data sheets print first the tensor-core rates for 2:4 sparse matrices, twice as high.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import torch

from course_utils import device as devices
from course_utils import timing
from course_utils.units import readable

TABLE_DATE = "2026-11"  # when the sources below were read


@dataclass(frozen=True)
class Accelerator:
    """One kind of card, as PyTorch sees it: each card is one torch device.

    Attributes:
        name: the key in `ACCELERATORS`.
        peak: promised dense FLOP/s by dtype. torch.float32 is the rate without tensor cores, "tf32" that of
            float32 matmuls after torch.set_float32_matmul_precision("high"); 16-bit and 8-bit types are
            tensor-core rates with fp32 accumulation. A missing dtype has no promised rate.
        bandwidth: bytes/s between the processors and their memory.
        memory_bytes: as advertised (GB = 10⁹ bytes); None if memory is shared with the CPU and varies.
        multiprocessors: SMs (compute units for AMD), as torch reports; None if it varies.
        source: where the numbers come from.
        note: what to know before using them.
    """

    name: str
    peak: Mapping[torch.dtype | str, float]
    bandwidth: float
    memory_bytes: int | None
    multiprocessors: int | None
    source: str
    note: str = ""


@dataclass(frozen=True)
class Ceiling:
    """The fastest matmul that `measured_ceiling` measured.

    Attributes:
        flops_per_second: 2·size³ / seconds.
        size: the square matrices are size × size.
        dtype: of the matrices.
        device: that ran it.
        seconds: of the fastest call.
    """

    flops_per_second: float
    size: int
    dtype: torch.dtype
    device: torch.device
    seconds: float


def _peaks(
    fp32: float,
    *,
    tf32: float | None = None,
    fp16: float | None = None,
    bf16: float | None = None,
    fp8: float | None = None,
    fp8_kind: Sequence[torch.dtype] = (torch.float8_e4m3fn, torch.float8_e5m2),
) -> Mapping[torch.dtype | str, float]:
    """Arguments in TFLOP/s, as data sheets print them."""
    rates: dict[torch.dtype | str, float | None] = {
        torch.float32: fp32,
        "tf32": tf32,
        torch.float16: fp16,
        torch.bfloat16: bf16,
    }
    rates |= dict.fromkeys(fp8_kind, fp8)
    return MappingProxyType({dtype: rate * 1e12 for dtype, rate in rates.items() if rate is not None})


def _apple(chip: str, fp32: float, terabytes_per_second: float) -> Accelerator:
    return Accelerator(
        f"Apple {chip}",
        _peaks(fp32),
        terabytes_per_second * 1e12,
        None,
        None,
        "community tables (huggingface.js hardware.ts and press reports); Apple publishes no FLOP/s",
        "largest GPU sold under this name; some machines have fewer GPU cores",
    )


_GB = 10**9
_V100 = "NVIDIA V100 data sheet"
_A100 = "NVIDIA A100 data sheet"
_H100 = "NVIDIA H100 product page, sparse rates halved"
_HALF_RATE = "tensor cores accumulate in fp32 at half the rate that fp16 accumulation reaches"
_V100_16BIT = "no bf16 tensor cores, no tf32"

_A100_PEAKS = _peaks(19.5, tf32=156, fp16=312, bf16=312)
_HOPPER_SXM_PEAKS = _peaks(67, tf32=494.5, fp16=989.4, bf16=989.4, fp8=1979)

_TABLE = (
    Accelerator("V100 SXM2 16GB", _peaks(15.7, fp16=125), 0.9e12, 16 * _GB, 80, _V100, _V100_16BIT),
    Accelerator("V100 SXM2 32GB", _peaks(15.7, fp16=125), 0.9e12, 32 * _GB, 80, _V100, _V100_16BIT),
    Accelerator("V100 PCIe 16GB", _peaks(14, fp16=112), 0.9e12, 16 * _GB, 80, _V100, _V100_16BIT),
    Accelerator("V100 PCIe 32GB", _peaks(14, fp16=112), 0.9e12, 32 * _GB, 80, _V100, _V100_16BIT),
    Accelerator("T4", _peaks(8.1, fp16=65), 0.32e12, 16 * _GB, 40, "NVIDIA T4 data sheet", _V100_16BIT),
    Accelerator("A100 SXM 40GB", _A100_PEAKS, 1.555e12, 40 * _GB, 108, _A100, "no fp8"),
    Accelerator("A100 SXM 80GB", _A100_PEAKS, 2.04e12, 80 * _GB, 108, _A100, "no fp8"),
    Accelerator("A100 PCIe 40GB", _A100_PEAKS, 1.555e12, 40 * _GB, 108, _A100, "no fp8"),
    Accelerator("A100 PCIe 80GB", _A100_PEAKS, 1.94e12, 80 * _GB, 108, _A100, "no fp8"),
    Accelerator("A10", _peaks(31.2, tf32=62.5, fp16=125, bf16=125), 0.6e12, 24 * _GB, 72, "NVIDIA A10 data sheet"),
    Accelerator(
        "A10G",
        _peaks(35, tf32=35, fp16=70, bf16=70),
        0.6e12,
        24 * _GB,
        80,
        "derived: 80 SMs × 256 multiply-adds × 1.71 GHz",
        f"not an A10; {_HALF_RATE}",
    ),
    Accelerator(
        "L4",
        _peaks(30.3, tf32=60, fp16=121, bf16=121, fp8=242),
        0.3e12,
        24 * _GB,
        58,
        "NVIDIA L4 data sheet, sparse rates halved",
    ),
    Accelerator(
        "L40S",
        _peaks(91.6, tf32=183, fp16=362.05, bf16=362.05, fp8=733),
        0.864e12,
        48 * _GB,
        142,
        "NVIDIA L40S data sheet",
    ),
    Accelerator(
        "RTX 3090",
        _peaks(35.6, tf32=35.6, fp16=71, bf16=71),
        0.936e12,
        24 * _GB,
        82,
        "NVIDIA GA102 white paper, by way of secondary sources",
        _HALF_RATE,
    ),
    Accelerator(
        "RTX 4090",
        _peaks(82.6, tf32=82.6, fp16=165.2, bf16=165.2, fp8=330),
        1.008e12,
        24 * _GB,
        128,
        "NVIDIA Ada white paper, by way of secondary sources",
        _HALF_RATE,
    ),
    Accelerator(
        "RTX 5090",
        _peaks(104.8, tf32=104.8, fp16=209.5, bf16=209.5, fp8=419),
        1.792e12,
        32 * _GB,
        170,
        "NVIDIA RTX Blackwell white paper, by way of secondary sources",
        _HALF_RATE,
    ),
    Accelerator("H100 SXM", _HOPPER_SXM_PEAKS, 3.35e12, 80 * _GB, 132, _H100),
    Accelerator("H100 PCIe", _peaks(51, tf32=378, fp16=756, bf16=756, fp8=1513), 2.0e12, 80 * _GB, 114, _H100),
    Accelerator(
        "H100 NVL",
        _peaks(60, tf32=417, fp16=835, bf16=835, fp8=1671),
        3.9e12,
        94 * _GB,
        132,
        "torchtitan utils.py (16 bit); other rates follow from it",
        "one of the two GPUs of a pair",
    ),
    Accelerator(
        "H200",
        _HOPPER_SXM_PEAKS,
        4.8e12,
        141 * _GB,
        132,
        "NVIDIA H200 product page, sparse rates halved",
        "the SXM card; H200 NVL is slower and not in the table",
    ),
    Accelerator(
        "B200",
        _peaks(80, tf32=1125, fp16=2250, bf16=2250, fp8=4500),
        8.0e12,
        180 * _GB,
        148,
        "NVIDIA DGX B200 data sheet, sparse rates halved",
    ),
    Accelerator(
        "GB200",
        _peaks(80, tf32=1250, fp16=2500, bf16=2500, fp8=5000),
        8.0e12,
        186 * _GB,
        152,
        "NVIDIA GB200 NVL72 product page, sparse rates halved",
        "one of the two GPUs of the superchip",
    ),
    Accelerator(
        "MI250X",
        _peaks(23.95, fp16=191.5, bf16=191.5),
        1.64e12,
        64 * _GB,
        110,
        "AMD MI250X data sheet, halved",
        "one of the two dies of the card: torch shows each as a device",
    ),
    Accelerator(
        "MI300X",
        _peaks(
            163.4,
            tf32=653.7,
            fp16=1307.4,
            bf16=1307.4,
            fp8=2614.9,
            fp8_kind=(torch.float8_e4m3fnuz, torch.float8_e5m2fnuz),
        ),
        5.3e12,
        192 * _GB,
        304,
        "AMD MI300X data sheet",
        "its fp8 types are the fnuz ones",
    ),
    _apple("M1", 2.6, 0.068),
    _apple("M1 Pro", 5.2, 0.2),
    _apple("M1 Max", 10.4, 0.4),
    _apple("M1 Ultra", 21, 0.8),
    _apple("M2", 3.6, 0.1),
    _apple("M2 Pro", 6.8, 0.2),
    _apple("M2 Max", 13.5, 0.4),
    _apple("M3", 4.1, 0.1),
    _apple("M4", 4.6, 0.12),
    _apple("M4 Pro", 9.2, 0.273),
    _apple("M4 Max", 18.4, 0.546),
)

ACCELERATORS: Mapping[str, Accelerator] = MappingProxyType({card.name: card for card in _TABLE})

# What torch reports where that is not the maker and the name above. A name has to match as a whole:
# a word more ("MIG 1g.10gb", "Laptop GPU", "D", "NVL", "Ti") is another, slower product.
_REPORTED_AS = {
    "A100 SXM 40GB": "NVIDIA A100-SXM4-40GB",
    "A100 SXM 80GB": "NVIDIA A100-SXM4-80GB",
    "A100 PCIe 80GB": "NVIDIA A100 80GB PCIe",
    "H100 SXM": "NVIDIA H100 80GB HBM3",
    "MI300X": "AMD Instinct MI300X OAM",
}
# Here the same name belongs to two products, and only the number of multiprocessors tells which.
_REPORTED_FOR_TWO = {"MI250X": "AMD Instinct MI250X / MI250"}

_MAKERS = {"nvidia", "amd", "geforce", "instinct", "tesla"}


def _words(name: str) -> tuple[str, ...]:
    return tuple(word for word in re.findall(r"[a-z0-9.]+", name.lower()) if word not in _MAKERS)


_BY_WORDS = {_words(card.name): card for card in _TABLE} | {
    _words(reported): ACCELERATORS[name] for name, reported in _REPORTED_AS.items()
}
_BY_WORDS_AND_COUNT = {_words(reported): ACCELERATORS[name] for name, reported in _REPORTED_FOR_TWO.items()}


def find(name: str, multiprocessors: int | None = None) -> Accelerator | None:
    """The card called `name`, or None if it isn't in the table; never a card that is merely similar.

    Args:
        name: as torch.cuda.get_device_name reports it ("NVIDIA H100 80GB HBM3") or a key of `ACCELERATORS`
            ("H100 SXM"). "H100" alone is None: the SXM, PCIe and NVL cards differ.
        multiprocessors: as torch reports it; a card with a different number is a different product (a MIG
            slice, a cut-down model), so the result is None.
    """
    words = _words(name)
    card = _BY_WORDS.get(words)
    if card is None and multiprocessors is not None:
        card = _BY_WORDS_AND_COUNT.get(words)
    if card is None or (multiprocessors and card.multiprocessors and multiprocessors != card.multiprocessors):
        return None
    return card


def find_device(device: torch.device | str) -> Accelerator | None:
    """The table's entry for `device`; None for a CPU or a card that isn't in the table."""
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
        dtype: a torch dtype, or "tf32" for float32 matmuls on tensor cores. torch.float32 means the rate
            without tensor cores, which is PyTorch's default for matmuls.

    Raises:
        ValueError: dtype is neither.
    """
    if not isinstance(dtype, torch.dtype) and dtype != "tf32":
        raise ValueError(
            f"peak_flops was given dtype={dtype!r}; expected a torch dtype such as torch.bfloat16, or 'tf32'."
        )
    card = _card(device_or_name)
    return None if card is None else card.peak.get(dtype)


def describe_peak(device: torch.device | str, dtype: torch.dtype | str) -> str:
    """One line for a person: the promised FLOP/s with its source, or "peak unknown" with the reason."""
    peak = peak_flops(device, dtype)
    what = str(dtype).removeprefix("torch.")
    card = _card(device)
    if card is not None and peak is not None:
        return f"{readable(peak, 'FLOP/s')} dense {what} ({card.name}; {card.source}, {TABLE_DATE})"
    if card is not None:
        has = ", ".join(str(d).removeprefix("torch.") for d in card.peak)
        return f"peak unknown: {card.name} has no promised rate for {what} in the table (it has {has})"
    if not _is_device(device):
        similar = [key for key in ACCELERATORS if _words(key)[0] in _words(str(device))]
        return f"peak unknown: {device} is not in the table" + (f" (it has {', '.join(similar)})" if similar else "")
    if torch.device(device).type == "cuda" and not torch.cuda.is_available():
        return f"peak unknown: torch finds no usable {device} device here"
    name = devices.device_name(device)
    return f"peak unknown: {name} is not in the table; measured_ceiling tells what it reaches"


def _is_device(device_or_name: torch.device | str) -> bool:
    return isinstance(device_or_name, torch.device) or bool(
        re.fullmatch(r"(cpu|cuda|mps|meta)(:\d+)?", device_or_name.strip().lower())
    )


def _card(device_or_name: torch.device | str) -> Accelerator | None:
    return find_device(device_or_name) if _is_device(device_or_name) else find(str(device_or_name))


def measured_ceiling(
    device: torch.device | str,
    dtype: torch.dtype = torch.float32,
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
        dtype: float64, float32, bfloat16 or float16.
        sizes: of the square matrices, ascending. Default: 256 to 2048 on a CPU, 1024 to 16384 on a GPU.
        max_seconds: sizes that no longer fit into this time, or into memory, are left out; the first is
            always measured (float16 on a CPU can be 100 times slower than float32).

    Raises:
        ValueError: an unusable dtype, sizes or time.
    """
    device = torch.device(device)
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
        # At most 6 calls to warm up and 3 to time; random numbers and the output cost less than one more.
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
    device = torch.device(device)
    if nbytes is None:
        nbytes = 2**30 if devices.on_gpu(device) else 2**28
    if nbytes < 1:
        raise ValueError(f"measured_bandwidth was given nbytes={nbytes}; expected 1 or more.")
    source = torch.ones(nbytes, dtype=torch.uint8, device=device)  # written, so that it has memory of its own
    target = torch.zeros_like(source)
    copy = timing.benchmark(lambda: target.copy_(source), device=device, min_seconds=0.3)
    return 2 * nbytes / copy.minimum

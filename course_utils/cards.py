"""What accelerators promise: dense FLOP/s by dtype, memory, bandwidth, links to other cards, power.

The table has every promised number, with its source; prose, plots, tests and the planner read it from here (lectures
through `course_utils.hardware`, which also measures). All peaks are dense: since Ampere, data sheets lead with the
tensor-core rates for 2:4 sparse matrices, which are twice as high.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from course_utils.sources import Source

if TYPE_CHECKING:
    import torch

TABLE_DATE = "2026-11"  # nothing in the table is newer
_READ = "2026-11"  # when the table was checked against the data sheets below; one reread later gets its own month

# Keys of `Accelerator.peak`: torch's names, and "tf32".
DTYPES = (
    "float32", "tf32", "float16", "bfloat16",
    "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float4_e2m1fn_x2",
)  # fmt: skip


def dtype_name(dtype: torch.dtype | str) -> str:
    """``"bfloat16"`` for torch.bfloat16 and for ``"bfloat16"``."""
    return str(dtype).removeprefix("torch.")


def dtype_bytes(dtype: torch.dtype | str) -> float:
    """Bytes of one number: 4 for float32 and tf32, 0.5 for float4 (of which torch packs two into one element)."""
    return int(re.findall(r"\d+", dtype_name(dtype).replace("tf32", "float32"))[0]) / 8


class Peaks(Mapping["torch.dtype | str", float]):
    """FLOP/s by dtype; a key may be a torch dtype or its name."""

    def __init__(self, rates: Mapping[torch.dtype | str, float] | Mapping[str, float]) -> None:
        self._rates = {dtype_name(dtype): rate for dtype, rate in rates.items()}

    def __getitem__(self, dtype: torch.dtype | str) -> float:
        return self._rates[dtype_name(dtype)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rates)

    def __len__(self) -> int:
        return len(self._rates)

    def __repr__(self) -> str:
        return f"Peaks({self._rates})"


@dataclass(frozen=True)
class Link:
    """A connection between cards, as one of them sees it.

    Attributes:
        name: "NVLink 4", "InfiniBand NDR", …
        bandwidth: bytes/s in one direction; a card can send and receive at this rate at the same time. (Data sheets for
            NVLink and PCIe often print the sum of both directions, which is twice this.)
        cards: how many it connects; None for a network, which connects any number.
    """

    name: str
    bandwidth: float
    cards: int | None


@dataclass(frozen=True)
class Accelerator:
    """One kind of card, as PyTorch sees it: each card is one torch device.

    Attributes:
        name: the key in `ACCELERATORS`.
        peak: promised dense FLOP/s by dtype or its name (`DTYPES`). float32 is the rate without tensor cores, "tf32"
            that of float32 matmuls after torch.set_float32_matmul_precision("high"); rates of narrower types are for
            tensor cores with fp32 accumulation. A missing dtype has no promised rate.
        bandwidth: bytes/s between the processors and their memory.
        memory_bytes: as advertised (GB = 10⁹ bytes); None if memory is shared with the CPU and varies.
        multiprocessors: SMs (compute units for AMD), as torch reports; None if it varies.
        source: where the numbers come from; a string if you make a card of your own.
        note: what to know before using them.
        links: to other cards, fastest first, each reaching more cards than the one before. The network is the one in
            the maker's own server.
        host: the link to the CPU's memory.
        power: the card's power limit in watts; None if unknown or shared with a CPU.
    """

    name: str
    peak: Mapping[torch.dtype | str, float]
    bandwidth: float
    memory_bytes: int | None
    multiprocessors: int | None
    source: Source | str
    note: str = ""
    links: tuple[Link, ...] = ()
    host: Link | None = None
    power: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.peak, Peaks):
            object.__setattr__(self, "peak", Peaks(self.peak))

    @property
    def sources(self) -> tuple[Source, ...]:
        """Its source, or none for a card of your own."""
        return (self.source,) if isinstance(self.source, Source) else ()


def _peaks(
    fp32: float | None = None,
    *,
    tf32: float | None = None,
    fp16: float | None = None,
    bf16: float | None = None,
    fp8: float | None = None,
    fp4: float | None = None,
    fp8_kind: Sequence[str] = ("float8_e4m3fn", "float8_e5m2"),
) -> Peaks:
    """Peaks from rates in TFLOP/s, as data sheets print them."""
    rates: dict[str, float | None] = {"float32": fp32, "tf32": tf32, "float16": fp16, "bfloat16": bf16}
    rates |= dict.fromkeys(fp8_kind, fp8) | {"float4_e2m1fn_x2": fp4}
    return Peaks({dtype: rate * 1e12 for dtype, rate in rates.items() if rate is not None})


def _sheet(title: str, url: str, published: str = _READ) -> Source:
    """A data sheet that this table was checked against. A page that changes has no date other than that check."""
    return Source(title, url, "data sheet", published, _READ)


_GB = 10**9
_NVIDIA = "https://www.nvidia.com/en-us/data-center"
_V100 = _sheet("NVIDIA V100 data sheet", f"{_NVIDIA}/v100/")
_T4 = _sheet("NVIDIA T4 data sheet", f"{_NVIDIA}/tesla-t4/")
_A100 = _sheet("NVIDIA A100 data sheet", f"{_NVIDIA}/a100/")
_A10 = _sheet("NVIDIA A10 data sheet", f"{_NVIDIA}/products/a10-gpu/")
_A10G = Source(
    "derived: 80 SMs × 256 multiply-adds × 1.71 GHz",
    "https://aws.amazon.com/ec2/instance-types/g5/",
    "estimate",
    _READ,
    _READ,
)
_L4 = _sheet("NVIDIA L4 data sheet, sparse rates halved", f"{_NVIDIA}/l4/")
_L40S = _sheet("NVIDIA L40S data sheet", f"{_NVIDIA}/l40s/")
_H100 = _sheet("NVIDIA H100 product page, sparse rates halved", f"{_NVIDIA}/h100/")
_H100_NVL = Source(
    "torchtitan utils.py (16 bit); other rates follow from it",
    "https://github.com/pytorch/torchtitan/blob/main/torchtitan/tools/utils.py",
    "estimate",
    _READ,
    _READ,
)
_H200 = _sheet("NVIDIA H200 product page, sparse rates halved", f"{_NVIDIA}/h200/")
_GH200 = _sheet("NVIDIA GH200 data sheet, sparse rates halved", f"{_NVIDIA}/grace-hopper-superchip/")
_B200 = _sheet("NVIDIA DGX B200 data sheet, sparse rates halved", f"{_NVIDIA}/dgx-b200/")
_GB200 = _sheet("NVIDIA GB200 NVL72 product page, sparse rates halved", f"{_NVIDIA}/gb200-nvl72/")
_BLACKWELL_ULTRA = _sheet(
    "NVIDIA Blackwell Ultra data sheet, sparse rates halved",
    "https://resources.nvidia.com/en-us-blackwell-architecture/blackwell-ultra-datasheet",
)
_GA102 = _sheet(
    "NVIDIA GA102 white paper",
    "https://www.nvidia.com/content/PDF/nvidia-ampere-ga-102-gpu-architecture-whitepaper-v2.pdf",
    "2020-09",
)
_ADA = _sheet(
    "NVIDIA Ada white paper",
    "https://images.nvidia.com/aem-dam/Solutions/geforce/ada/nvidia-ada-gpu-architecture.pdf",
    "2022-09",
)
_RTX_BLACKWELL = _sheet(
    "NVIDIA RTX Blackwell white paper",
    "https://images.nvidia.com/aem-dam/Solutions/geforce/blackwell/nvidia-rtx-blackwell-gpu-architecture.pdf",
    "2025-01",
)
_AMD = "https://www.amd.com/en/products/accelerators/instinct"
_MI250X = _sheet("AMD MI250X data sheet, halved", f"{_AMD}/mi200/mi250x.html")
_MI300X = _sheet("AMD MI300X data sheet", f"{_AMD}/mi300/mi300x.html")
_MI325X = _sheet("AMD MI325X data sheet", f"{_AMD}/mi300/mi325x.html")
_MI355X = _sheet("AMD MI355X data sheet", f"{_AMD}/mi350/mi355x.html")
_TPU = "https://docs.cloud.google.com/tpu/docs"
_APPLE = Source(
    "community tables (huggingface.js hardware.ts and press reports); Apple publishes no FLOP/s",
    "https://github.com/huggingface/huggingface.js/blob/main/packages/tasks/src/hardware.ts",
    "estimate",
    _READ,
    _READ,
)

_PCIE_3, _PCIE_4, _PCIE_5, _PCIE_6 = (
    Link(f"PCIe {generation}.0 x16", rate * 1e9, 8) for generation, rate in ((3, 16), (4, 32), (5, 64), (6, 128))
)
_C2C = Link("NVLink-C2C", 450e9, 1)
_HALF_RATE = "tensor cores accumulate in fp32 at half the rate that fp16 accumulation reaches"
_V100_16BIT = "no bf16 tensor cores, no tf32"
_HBM_FP4 = "fp4 is NVFP4 or MXFP4 with a scale for each block"

_A100_PEAKS = _peaks(19.5, tf32=156, fp16=312, bf16=312)
_HOPPER_SXM_PEAKS = _peaks(67, tf32=494.5, fp16=989.4, bf16=989.4, fp8=1979)
_V100_LINKS = (Link("NVLink 2", 150e9, 8), Link("InfiniBand EDR", 6.25e9, None))
_A100_LINKS = (Link("NVLink 3 with NVSwitch", 300e9, 8), Link("InfiniBand HDR", 25e9, None))
_NDR = Link("InfiniBand NDR", 50e9, None)
_XDR = Link("InfiniBand XDR", 100e9, None)
_HOPPER_LINKS = (Link("NVLink 4 with NVSwitch", 450e9, 8), _NDR)
_BRIDGE = Link("NVLink bridge", 300e9, 2)
_NVLINK_5 = Link("NVLink 5 with NVSwitch", 900e9, 8)
_NVL72 = Link("NVLink 5 with NVSwitch", 900e9, 72)
_MI300_LINKS = (Link("Infinity Fabric", 448e9, 8), _NDR)


def _geforce(
    name: str, fp32: float, tensor: float, terabytes: float, gigabytes: int, sms: int, watts: float, source: Source
) -> Accelerator:
    """A GeForce card: tf32 at the fp32 rate, 16 bits at ``tensor`` TFLOP/s; fp8 since Ada, fp4 since Blackwell."""
    newer, fp4 = source is not _GA102, source is _RTX_BLACKWELL
    peaks = _peaks(
        fp32,
        tf32=fp32,
        fp16=tensor,
        bf16=tensor,
        fp8=2 * tensor if newer else None,
        fp4=8 * tensor if fp4 else None,
    )
    link = _PCIE_5 if fp4 else _PCIE_4
    return Accelerator(name, peaks, terabytes * 1e12, gigabytes * _GB, sms, source, _HALF_RATE, (link,), link, watts)


def _apple(chip: str, fp32: float, terabytes_per_second: float) -> Accelerator:
    return Accelerator(
        f"Apple {chip}",
        _peaks(fp32),
        terabytes_per_second * 1e12,
        None,
        None,
        _APPLE,
        "largest GPU sold under this name; some machines have fewer GPU cores",
    )


def _tpu(
    version: str, bf16: float, gigabytes_per_second: float, memory: int, pod: int, link: float, dcn: float | None
) -> Accelerator:
    """``link`` and ``dcn``: GB/s that one chip sends, over all its ICI ports and over the data center's network."""
    network = () if dcn is None else (Link("data center network", dcn * 1e9, None),)
    return Accelerator(
        f"TPU {version}",
        _peaks(bf16=bf16),
        gigabytes_per_second * 1e9,
        memory * _GB,
        None,
        _sheet(f"Google Cloud, TPU {version}", f"{_TPU}/{version}"),
        "per chip; PyTorch reaches it through torch_xla, which isn't used here",
        (Link("ICI torus", link * 1e9, pod), *network),
    )


_TABLE = (
    Accelerator(
        "V100 SXM2 16GB", _peaks(15.7, fp16=125), 0.9e12, 16 * _GB, 80, _V100, _V100_16BIT, _V100_LINKS, _PCIE_3, 300
    ),
    Accelerator(
        "V100 SXM2 32GB", _peaks(15.7, fp16=125), 0.9e12, 32 * _GB, 80, _V100, _V100_16BIT, _V100_LINKS, _PCIE_3, 300
    ),
    Accelerator(
        "V100 PCIe 16GB", _peaks(14, fp16=112), 0.9e12, 16 * _GB, 80, _V100, _V100_16BIT, (_PCIE_3,), _PCIE_3, 250
    ),
    Accelerator(
        "V100 PCIe 32GB", _peaks(14, fp16=112), 0.9e12, 32 * _GB, 80, _V100, _V100_16BIT, (_PCIE_3,), _PCIE_3, 250
    ),
    Accelerator("T4", _peaks(8.1, fp16=65), 0.32e12, 16 * _GB, 40, _T4, _V100_16BIT, (_PCIE_3,), _PCIE_3, 70),
    Accelerator("A100 SXM 40GB", _A100_PEAKS, 1.555e12, 40 * _GB, 108, _A100, "no fp8", _A100_LINKS, _PCIE_4, 400),
    Accelerator("A100 SXM 80GB", _A100_PEAKS, 2.04e12, 80 * _GB, 108, _A100, "no fp8", _A100_LINKS, _PCIE_4, 400),
    Accelerator(
        "A100 PCIe 40GB", _A100_PEAKS, 1.555e12, 40 * _GB, 108, _A100, "no fp8", (_BRIDGE, _PCIE_4), _PCIE_4, 250
    ),
    Accelerator(
        "A100 PCIe 80GB", _A100_PEAKS, 1.94e12, 80 * _GB, 108, _A100, "no fp8", (_BRIDGE, _PCIE_4), _PCIE_4, 300
    ),
    Accelerator(
        "A10", _peaks(31.2, tf32=62.5, fp16=125, bf16=125), 0.6e12, 24 * _GB, 72, _A10, "", (_PCIE_4,), _PCIE_4, 150
    ),
    Accelerator(
        "A10G",
        _peaks(35, tf32=35, fp16=70, bf16=70),
        0.6e12,
        24 * _GB,
        80,
        _A10G,
        f"not an A10; {_HALF_RATE}",
        (_PCIE_4,),
        _PCIE_4,
    ),
    Accelerator(
        "L4", _peaks(30.3, tf32=60, fp16=121, bf16=121, fp8=242), 0.3e12, 24 * _GB, 58, _L4, "", (_PCIE_4,), _PCIE_4, 72
    ),
    Accelerator(
        "L40S",
        _peaks(91.6, tf32=183, fp16=362.05, bf16=362.05, fp8=733),
        0.864e12,
        48 * _GB,
        142,
        _L40S,
        "",
        (_PCIE_4,),
        _PCIE_4,
        350,
    ),
    _geforce("RTX 3080", 29.8, 59.5, 0.760, 10, 68, 320, _GA102),
    _geforce("RTX 3090", 35.6, 71, 0.936, 24, 82, 350, _GA102),
    _geforce("RTX 4080", 48.7, 97.5, 0.7168, 16, 76, 320, _ADA),
    _geforce("RTX 4090", 82.6, 165.2, 1.008, 24, 128, 450, _ADA),
    _geforce("RTX 5070 Ti", 43.9, 87.9, 0.896, 16, 70, 300, _RTX_BLACKWELL),
    _geforce("RTX 5080", 56.3, 112.6, 0.960, 16, 84, 360, _RTX_BLACKWELL),
    _geforce("RTX 5090", 104.8, 209.5, 1.792, 32, 170, 575, _RTX_BLACKWELL),
    Accelerator("H100 SXM", _HOPPER_SXM_PEAKS, 3.35e12, 80 * _GB, 132, _H100, "", _HOPPER_LINKS, _PCIE_5, 700),
    Accelerator(
        "H100 PCIe",
        _peaks(51, tf32=378, fp16=756, bf16=756, fp8=1513),
        2.0e12,
        80 * _GB,
        114,
        _H100,
        "",
        (_BRIDGE, _PCIE_5),
        _PCIE_5,
        350,
    ),
    Accelerator(
        "H100 NVL",
        _peaks(60, tf32=417, fp16=835, bf16=835, fp8=1671),
        3.9e12,
        94 * _GB,
        132,
        _H100_NVL,
        "one of the two GPUs of a pair",
        (_BRIDGE, _PCIE_5),
        _PCIE_5,
        400,
    ),
    Accelerator(
        "H200",
        _HOPPER_SXM_PEAKS,
        4.8e12,
        141 * _GB,
        132,
        _H200,
        "the SXM card; H200 NVL is slower and not in the table",
        _HOPPER_LINKS,
        _PCIE_5,
        700,
    ),
    Accelerator(
        "GH200 96GB",
        _HOPPER_SXM_PEAKS,
        4.0e12,
        96 * _GB,
        132,
        _GH200,
        "the GPU of the superchip, which shares 450 to 1,000 W with its CPU; another version has 144 GB and 4.9 TB/s",
        (_NDR,),
        _C2C,
    ),
    Accelerator(
        "B200",
        _peaks(75, tf32=1125, fp16=2250, bf16=2250, fp8=4500, fp4=9000),
        7.7e12,
        180 * _GB,
        148,
        _B200,
        f"{_HBM_FP4}; the first data sheets said 80 TFLOP/s in float32 and 8 TB/s",
        (_NVLINK_5, _NDR),
        _PCIE_5,
        1000,
    ),
    Accelerator(
        "GB200",
        _peaks(80, tf32=1250, fp16=2500, bf16=2500, fp8=5000, fp4=10_000),
        8.0e12,
        186 * _GB,
        152,
        _GB200,
        f"one of the two GPUs of the superchip; {_HBM_FP4}",
        (_NVL72, _NDR),
        _C2C,
        1200,
    ),
    Accelerator(
        "B300",
        _peaks(75, tf32=1125, fp16=2250, bf16=2250, fp8=4500, fp4=13_500),
        7.7e12,
        270 * _GB,
        148,
        _BLACKWELL_ULTRA,
        f"{_HBM_FP4}; the data sheet gives fp4 as 108 PFLOP/s for eight cards, rounded to 14 for one",
        (_NVLINK_5, _XDR),
        _PCIE_6,
        1100,
    ),
    Accelerator(
        "GB300",
        _peaks(80, tf32=1250, fp16=2500, bf16=2500, fp8=5000, fp4=15_000),
        8.0e12,
        279 * _GB,
        152,
        _BLACKWELL_ULTRA,
        f"one of the two GPUs of the superchip; {_HBM_FP4}",
        (_NVL72, _XDR),
        _C2C,
        1400,
    ),
    Accelerator(
        "MI250X",
        _peaks(23.95, fp16=191.5, bf16=191.5),
        1.64e12,
        64 * _GB,
        110,
        _MI250X,
        "one of the two dies of the card: torch shows each as a device",
        (),
        _PCIE_4,
        280,
    ),
    Accelerator(
        "MI300X",
        _peaks(
            163.4,
            tf32=653.7,
            fp16=1307.4,
            bf16=1307.4,
            fp8=2614.9,
            fp8_kind=("float8_e4m3fnuz", "float8_e5m2fnuz"),
        ),
        5.3e12,
        192 * _GB,
        304,
        _MI300X,
        "its fp8 types are the fnuz ones; its link rate is the sum of seven links, 64 GB/s to each neighbor",
        _MI300_LINKS,
        _PCIE_5,
        750,
    ),
    Accelerator(
        "MI325X",
        _peaks(
            163.4,
            tf32=653.7,
            fp16=1307.4,
            bf16=1307.4,
            fp8=2614.9,
            fp8_kind=("float8_e4m3fnuz", "float8_e5m2fnuz"),
        ),
        6.0e12,
        256 * _GB,
        304,
        _MI325X,
        "an MI300X with more and faster memory",
        _MI300_LINKS,
        _PCIE_5,
        1000,
    ),
    Accelerator(
        "MI355X",
        _peaks(157.3, fp16=2516.6, bf16=2516.6, fp8=5033.2, fp4=10_066.3),
        8.0e12,
        288 * _GB,
        256,
        _MI355X,
        "fp4 is MXFP4; its link rate is the sum of seven links, 77 GB/s to each neighbor",
        (Link("Infinity Fabric", 537.6e9, 8), _NDR),
        _PCIE_5,
        1400,
    ),
    _tpu("v5e", 197, 819, 16, 256, 200, 3.125),
    _tpu("v5p", 459, 2765, 95, 8_960, 600, 6.25),
    _tpu("v6e", 918, 1638, 32, 256, 400, None),
    _apple("M1", 2.6, 0.068),
    _apple("M1 Pro", 5.2, 0.2),
    _apple("M1 Max", 10.4, 0.4),
    _apple("M1 Ultra", 21, 0.8),
    _apple("M2", 3.6, 0.1),
    _apple("M2 Pro", 6.8, 0.2),
    _apple("M2 Max", 13.49, 0.4),
    _apple("M2 Ultra", 27.2, 0.8),
    _apple("M3", 4.1, 0.1),
    _apple("M3 Pro", 7.4, 0.15),
    _apple("M3 Max", 14.2, 0.4),
    _apple("M3 Ultra", 28.4, 0.819),
    _apple("M4", 4.6, 0.12),
    _apple("M4 Pro", 9.2, 0.273),
    _apple("M4 Max", 18.4, 0.546),
)

ACCELERATORS: Mapping[str, Accelerator] = MappingProxyType({card.name: card for card in _TABLE})

# What torch reports, where that isn't just the maker and the name above. A name has to match as a whole:
# one extra word ("MIG 1g.10gb", "Laptop GPU", "D", "NVL", "Ti") means a different, slower product.
_REPORTED_AS = {
    "A100 SXM 40GB": "NVIDIA A100-SXM4-40GB",
    "A100 SXM 80GB": "NVIDIA A100-SXM4-80GB",
    "A100 PCIe 80GB": "NVIDIA A100 80GB PCIe",
    "H100 SXM": "NVIDIA H100 80GB HBM3",
    "GH200 96GB": "NVIDIA GH200 480GB",  # the 480 GB are its CPU's
    "MI300X": "AMD Instinct MI300X OAM",
    "MI325X": "AMD Instinct MI325X OAM",
    "MI355X": "AMD Instinct MI355X OAM",
}
# Two products share this name, and only the number of multiprocessors distinguishes them.
_REPORTED_FOR_TWO = {"MI250X": "AMD Instinct MI250X / MI250"}

_MAKERS = {"nvidia", "amd", "geforce", "instinct", "tesla"}


def words(name: str) -> tuple[str, ...]:
    """The words of a card's name, in lower case, without those of maker and brand."""
    return tuple(word for word in re.findall(r"[a-z0-9.]+", name.lower()) if word not in _MAKERS)


_BY_WORDS = {words(card.name): card for card in _TABLE} | {
    words(reported): ACCELERATORS[name] for name, reported in _REPORTED_AS.items()
}
_BY_WORDS_AND_COUNT = {words(reported): ACCELERATORS[name] for name, reported in _REPORTED_FOR_TWO.items()}


def find(name: str, multiprocessors: int | None = None) -> Accelerator | None:
    """The card called `name`, or None if it isn't in the table; never a card that is merely similar.

    Args:
        name: as torch.cuda.get_device_name reports it ("NVIDIA H100 80GB HBM3") or a key of `ACCELERATORS`
            ("H100 SXM"). "H100" alone is None: the SXM, PCIe and NVL cards differ.
        multiprocessors: as torch reports it; a card with a different number is a different product (a MIG
            slice, a cut-down model), so the result is None.
    """
    card = _BY_WORDS.get(words(name))
    if card is None and multiprocessors is not None:
        card = _BY_WORDS_AND_COUNT.get(words(name))
    if card is None or (multiprocessors and card.multiprocessors and multiprocessors != card.multiprocessors):
        return None
    return card

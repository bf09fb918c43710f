"""course_utils.hardware: the table against the chips' own arithmetic, names as torch reports them, measured rates."""

from types import SimpleNamespace

import pytest
import torch

from course_utils import hardware, timing
from course_utils.hardware import ACCELERATORS, describe_peak, find, peak_flops

# 16-bit multiply-adds with fp32 accumulation that one multiprocessor's tensor cores finish per clock, and the boost
# clock (GHz) that the data sheet's tensor rate is for. Independent of the table.
TENSOR_CORES = {
    "V100 SXM2 16GB": (512, 1.53),
    "V100 SXM2 32GB": (512, 1.53),
    "V100 PCIe 16GB": (512, 1.38),
    "V100 PCIe 32GB": (512, 1.38),
    "T4": (512, 1.59),
    "A100 SXM 40GB": (1024, 1.41),
    "A100 SXM 80GB": (1024, 1.41),
    "A100 PCIe 40GB": (1024, 1.41),
    "A100 PCIe 80GB": (1024, 1.41),
    "A10": (512, 1.695),
    "A10G": (256, 1.71),
    "L4": (512, 2.04),
    "L40S": (512, 2.49),
    "RTX 3080": (256, 1.71),
    "RTX 3090": (256, 1.695),
    "RTX 4080": (256, 2.505),
    "RTX 4090": (256, 2.52),
    "RTX 5070 Ti": (256, 2.452),
    "RTX 5080": (256, 2.617),
    "RTX 5090": (256, 2.407),
    "H100 SXM": (2048, 1.83),
    "H100 PCIe": (2048, 1.62),
    "H100 NVL": (2048, 1.545),
    "H200": (2048, 1.83),
    "GH200 96GB": (2048, 1.83),
    "B200": (4096, 1.855),
    "GB200": (4096, 2.007),
    "B300": (4096, 1.855),
    "GB300": (4096, 2.007),
    "MI250X": (512, 1.7),
    "MI300X": (1024, 2.1),
    "MI325X": (1024, 2.1),
    "MI355X": (2048, 2.4),
}
# Multiply-adds of a TPU's matrix units per clock, over the chip, and their clock in GHz.
MATRIX_UNITS = {"TPU v5e": (4 * 128**2, 1.5), "TPU v5p": (2 * 4 * 128**2, 1.75), "TPU v6e": (2 * 256**2, 3.5)}
# fp32 multiply-adds per multiprocessor and clock, where the plain cores boost to a clock that is published.
FP32_CORES = {
    "V100 SXM2 16GB": (64, 1.53),
    "V100 PCIe 16GB": (64, 1.38),
    "T4": (64, 1.59),
    "A100 SXM 80GB": (64, 1.41),
    "A10": (128, 1.695),
    "A10G": (128, 1.71),
    "L4": (128, 2.04),
    "L40S": (128, 2.52),
    "RTX 3080": (128, 1.71),
    "RTX 3090": (128, 1.695),
    "RTX 4080": (128, 2.505),
    "RTX 4090": (128, 2.52),
    "RTX 5070 Ti": (128, 2.452),
    "RTX 5080": (128, 2.617),
    "RTX 5090": (128, 2.407),
    "H100 SXM": (128, 1.98),
    "H100 PCIe": (128, 1.755),
    "H200": (128, 1.98),
    "MI250X": (64, 1.7),
    "MI300X": (128, 2.1),
    "MI325X": (128, 2.1),
    "MI355X": (128, 2.4),
}
# Sparse 16-bit rates (TFLOP/s) as the makers print them.
SPARSE = {
    "A100 SXM 80GB": 624,
    "A10": 250,
    "L4": 242,
    "L40S": 733,
    "H100 SXM": 1979,
    "H100 PCIe": 1513,
    "H200": 1979,
    "B200": 4500,
    "GB200": 5000,
    "B300": 4500,
    "GB300": 5000,
    "GH200 96GB": 1979,
    "MI300X": 2614.9,
    "MI355X": 5033.2,
}
DISCRETE = [card for card in ACCELERATORS.values() if not card.name.startswith(("Apple", "TPU"))]


def test_every_discrete_card_is_checked_against_its_own_arithmetic():
    assert {card.name for card in DISCRETE} == set(TENSOR_CORES)
    assert {name for name in ACCELERATORS if name.startswith("TPU")} == set(MATRIX_UNITS)


@pytest.mark.parametrize("name", MATRIX_UNITS)
def test_a_tpus_peak_is_that_of_its_matrix_units(name):
    per_clock, gigahertz = MATRIX_UNITS[name]
    assert ACCELERATORS[name].peak["bfloat16"] == pytest.approx(per_clock * 2 * gigahertz * 1e9, rel=0.01)


@pytest.mark.parametrize("card", DISCRETE, ids=lambda card: card.name)
def test_tensor_peak_is_multiprocessors_times_multiply_adds_times_clock(card):
    per_clock, gigahertz = TENSOR_CORES[card.name]
    expected = card.multiprocessors * per_clock * 2 * gigahertz * 1e9
    assert card.peak[torch.float16] == pytest.approx(expected, rel=0.015)
    if torch.bfloat16 in card.peak:
        assert card.peak[torch.bfloat16] == card.peak[torch.float16]


@pytest.mark.parametrize("name", FP32_CORES)
def test_fp32_peak_is_that_of_the_plain_cores(name):
    per_clock, gigahertz = FP32_CORES[name]
    card = ACCELERATORS[name]
    # 2 %: AMD and NVIDIA round these rates to two or three digits.
    assert card.peak[torch.float32] == pytest.approx(card.multiprocessors * per_clock * 2 * gigahertz * 1e9, rel=0.02)


@pytest.mark.parametrize("card", DISCRETE, ids=lambda card: card.name)
def test_halving_the_bits_doubles_the_tensor_rate(card):
    half = card.peak[torch.float16]
    if "tf32" in card.peak:
        assert card.peak["tf32"] == pytest.approx(half / 2, rel=0.015)
        assert card.peak["tf32"] >= card.peak[torch.float32] * 0.99
    for fp8 in (torch.float8_e4m3fn, torch.float8_e4m3fnuz):
        if fp8 in card.peak:
            assert card.peak[fp8] == pytest.approx(2 * half, rel=0.015)
            if "float4_e2m1fn_x2" in card.peak:
                # Twice as fast as fp8; three times on Blackwell Ultra; GeForce cards halve the others' rates.
                assert card.peak["float4_e2m1fn_x2"] / card.peak[fp8] == pytest.approx(
                    {"B300": 3, "GB300": 3}.get(card.name, 4 if card.name.startswith("RTX") else 2), rel=0.01
                )


@pytest.mark.parametrize("name", SPARSE)
def test_no_peak_is_a_sparse_rate(name):
    assert ACCELERATORS[name].peak[torch.bfloat16] <= SPARSE[name] * 1e12 / 2 * 1.001


def test_types_that_a_card_lacks_have_no_peak():
    for name in ("V100 SXM2 16GB", "T4"):
        assert peak_flops(name, torch.bfloat16) is None and peak_flops(name, "tf32") is None
    assert peak_flops("A100 SXM 80GB", torch.float8_e4m3fn) is None
    assert peak_flops("MI300X", torch.float8_e4m3fn) is None
    assert peak_flops("Apple M2 Max", torch.float16) is None


def test_every_entry_is_complete():
    for key, card in ACCELERATORS.items():
        assert key == card.name
        assert torch.float32 in card.peak or key.startswith("TPU")
        assert all(dtype in hardware.DTYPES and rate > 1e12 for dtype, rate in card.peak.items())
        assert 5e10 < card.bandwidth < 1e13
        if card in DISCRETE:
            assert 10e9 <= card.memory_bytes < 3e11 and card.multiprocessors > 30


# What data sheets print for NVLink, Infinity Fabric and ICI: GB/s of one card, both directions added.
BOTH_WAYS = {
    "V100 SXM2 16GB": 300,
    "A100 SXM 80GB": 600,
    "A100 PCIe 80GB": 600,
    "H100 SXM": 900,
    "H100 NVL": 600,
    "H200": 900,
    "B200": 1800,
    "GB200": 1800,
    "B300": 1800,
    "GB300": 1800,
    "MI300X": 896,
    "MI355X": 7 * 153.6,
    "TPU v5e": 400,
    "TPU v5p": 1200,
    "TPU v6e": 800,
}


@pytest.mark.parametrize("name", BOTH_WAYS)
def test_a_link_carries_half_of_what_is_printed_each_way(name):
    assert ACCELERATORS[name].links[0].bandwidth == pytest.approx(BOTH_WAYS[name] * 1e9 / 2)


@pytest.mark.parametrize("card", ACCELERATORS.values(), ids=lambda card: card.name)
def test_links_reach_farther_the_slower_they_are_and_memory_is_faster_than_all(card):
    reach = [link.cards or 10**9 for link in card.links]
    rates = [link.bandwidth for link in card.links]
    assert reach == sorted(set(reach)) and rates == sorted(set(rates), reverse=True)
    assert all(rate < card.bandwidth for rate in [*rates, *([card.host.bandwidth] if card.host else [])])
    assert card.power is None or 50 < card.power < 2000


def test_b200_is_that_of_the_current_data_sheet():
    b200 = ACCELERATORS["B200"]
    assert (b200.peak["float32"], b200.bandwidth, b200.memory_bytes) == (75e12, 7.7e12, 180e9)


def test_a_peak_is_found_by_dtype_and_by_its_name():
    for dtype in (torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.float4_e2m1fn_x2):
        assert ACCELERATORS["B200"].peak[dtype] == ACCELERATORS["B200"].peak[hardware.dtype_name(dtype)]
        assert hardware.dtype_bytes(dtype) == dtype.itemsize / (2 if dtype == torch.float4_e2m1fn_x2 else 1)
    assert hardware.dtype_bytes("tf32") == 4
    assert torch.float64 not in ACCELERATORS["B200"].peak and ACCELERATORS["B200"].peak.get("tf64") is None


def test_the_table_cannot_be_changed_by_accident():
    with pytest.raises(TypeError):
        ACCELERATORS["H100 SXM"].peak[torch.float32] = 1.0
    with pytest.raises(TypeError):
        ACCELERATORS["mine"] = ACCELERATORS["T4"]


@pytest.mark.parametrize(
    ("reported", "multiprocessors", "name"),
    [
        ("Tesla V100-SXM2-16GB", 80, "V100 SXM2 16GB"),
        ("Tesla V100-PCIE-32GB", 80, "V100 PCIe 32GB"),
        ("Tesla T4", 40, "T4"),
        ("NVIDIA A10", 72, "A10"),
        ("NVIDIA A10G", 80, "A10G"),
        ("A100-SXM4-40GB", 108, "A100 SXM 40GB"),
        ("NVIDIA A100-SXM4-80GB", 108, "A100 SXM 80GB"),
        ("NVIDIA A100-PCIE-40GB", 108, "A100 PCIe 40GB"),
        ("NVIDIA A100 80GB PCIe", 108, "A100 PCIe 80GB"),
        ("NVIDIA L4", 58, "L4"),
        ("NVIDIA L40S", 142, "L40S"),
        ("NVIDIA GeForce RTX 3090", 82, "RTX 3090"),
        ("NVIDIA GeForce RTX 4090", 128, "RTX 4090"),
        ("NVIDIA GeForce RTX 5090", 170, "RTX 5090"),
        ("NVIDIA H100 80GB HBM3", 132, "H100 SXM"),
        ("NVIDIA H100 PCIe", 114, "H100 PCIe"),
        ("NVIDIA H100 NVL", 132, "H100 NVL"),
        ("NVIDIA H200", 132, "H200"),
        ("NVIDIA B200", 148, "B200"),
        ("NVIDIA GB200", 152, "GB200"),
        ("NVIDIA GB300", 152, "GB300"),
        ("NVIDIA GH200 480GB", 132, "GH200 96GB"),
        ("NVIDIA GeForce RTX 5080", 84, "RTX 5080"),
        ("AMD Instinct MI355X OAM", 256, "MI355X"),
        ("AMD Instinct MI250X", 110, "MI250X"),
        ("AMD Instinct MI250X/MI250", 110, "MI250X"),
        ("AMD Instinct MI250X / MI250", 110, "MI250X"),
        ("AMD Instinct MI300X", 304, "MI300X"),
        ("Apple M3", None, "Apple M3"),
        ("Apple M1 Max", None, "Apple M1 Max"),
        ("h100 sxm", None, "H100 SXM"),
    ],
)
def test_a_card_is_found_by_the_name_that_torch_reports(reported, multiprocessors, name):
    assert find(reported, multiprocessors) is ACCELERATORS[name]


@pytest.mark.parametrize(
    ("reported", "multiprocessors"),
    [
        ("NVIDIA A100 80GB PCIe MIG 1g.10gb", 14),
        ("NVIDIA H100 80GB HBM3 MIG 7g.80gb", 132),
        ("NVIDIA H200", 16),  # a slice that does not say so
        ("NVIDIA GeForce RTX 4090 Laptop GPU", 76),
        ("NVIDIA GeForce RTX 4090 D", 114),
        ("NVIDIA GeForce RTX 3090 Ti", 84),
        ("NVIDIA H200 NVL", 132),
        ("NVIDIA GH200 144G HBM3e", 132),
        ("NVIDIA H100 80GB HBM2e", 114),
        ("NVIDIA H800", 132),
        ("NVIDIA A100X", 108),
        ("GRID A100-10C", 108),
        ("NVIDIA L40", 142),
        ("NVIDIA L40S-24Q", 142),
        ("NVIDIA A1000", 16),
        ("NVIDIA T400", 6),
        ("Tesla V100S-PCIE-32GB", 80),
        ("AMD Instinct MI250X/MI250", 104),
        ("AMD Instinct MI250X/MI250", None),
        ("AMD Instinct MI300A", 228),
        ("NVIDIA Hypothetical X9000", 256),
        ("NVIDIA", None),
        ("H100", None),
        ("", None),
    ],
)
def test_another_product_is_unknown_however_similar_its_name(reported, multiprocessors):
    assert find(reported, multiprocessors) is None


def test_peak_flops_are_found_by_name():
    assert peak_flops("NVIDIA H100 80GB HBM3", torch.bfloat16) == 989.4e12
    assert peak_flops("H100 PCIe", torch.bfloat16) == 756e12
    assert peak_flops("H200", "tf32") == 494.5e12
    assert peak_flops("RTX 4090", torch.bfloat16) == 165.2e12
    assert peak_flops("L40S", torch.bfloat16) != peak_flops("L4", torch.bfloat16)
    assert peak_flops("NVIDIA Hypothetical X9000", torch.bfloat16) is None


@pytest.mark.parametrize("dtype", ["bf16", "float", None, 16])
def test_peak_flops_refuses_something_that_is_not_a_dtype(dtype):
    with pytest.raises(ValueError, match=r"expected a torch dtype such as torch\.bfloat16, its name, or 'tf32'"):
        peak_flops("H100 SXM", dtype)


@pytest.fixture
def gpu(monkeypatch):
    """Pretend that cuda:0 has the given name and number of multiprocessors."""

    def pretend(name: str, multiprocessors: int) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: name)
        properties = SimpleNamespace(multi_processor_count=multiprocessors)
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)

    return pretend


def test_peak_flops_recognizes_the_device_in_use(gpu):
    gpu("NVIDIA H200", 132)
    assert peak_flops("cuda", torch.bfloat16) == peak_flops(torch.device("cuda", 0), torch.bfloat16) == 989.4e12
    assert describe_peak("cuda:0", torch.bfloat16).startswith("989 TFLOP/s dense bfloat16 (H200; NVIDIA H200")


def test_a_slice_of_the_device_has_no_known_peak(gpu):
    gpu("NVIDIA A100 80GB PCIe MIG 1g.10gb", 14)
    assert peak_flops("cuda", torch.bfloat16) is None
    said = describe_peak("cuda", torch.bfloat16)
    assert said.startswith("peak unknown: NVIDIA A100 80GB PCIe MIG 1g.10gb") and "measured_ceiling" in said


def test_the_cpu_and_an_absent_gpu_have_no_known_peak(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert peak_flops("cpu", torch.float32) is None and peak_flops("cuda", torch.float32) is None
    assert describe_peak("cpu", torch.float32).startswith("peak unknown: ")
    assert "no usable cuda device" in describe_peak("cuda", torch.float32)


def test_describe_peak_of_a_name_that_is_too_short_lists_what_it_could_be():
    assert describe_peak("H100", torch.bfloat16) == (
        "peak unknown: H100 is not in the table (it has H100 SXM, H100 PCIe, H100 NVL)"
    )
    assert describe_peak("T4", torch.bfloat16) == (
        "peak unknown: the table has no peak of T4 for bfloat16 (it has float32, float16)"
    )


def test_measured_ceiling_is_the_rate_of_its_own_best_call():
    ceiling = hardware.measured_ceiling("cpu", torch.float32, sizes=(64, 128), max_seconds=0.2)
    assert ceiling.size in (64, 128) and ceiling.dtype == torch.float32 and ceiling.device.type == "cpu"
    assert ceiling.flops_per_second == 2 * ceiling.size**3 / ceiling.seconds
    assert 1e7 < ceiling.flops_per_second < 1e13


def test_measured_ceiling_keeps_the_fastest_size_and_stops_before_what_would_take_too_long(monkeypatch):
    seconds = {100: 0.01, 200: 0.02, 300: 0.06, 1000: 3.0, 2000: 1.0}
    now, ran = [0.0], []

    def benchmark(fn, **options):
        size = fn.args[0].shape[0]
        ran.append(size)
        now[0] += 5 * seconds[size]
        return SimpleNamespace(minimum=seconds[size])

    monkeypatch.setattr(timing, "benchmark", benchmark)
    monkeypatch.setattr(hardware.time, "perf_counter", lambda: now[0])
    ceiling = hardware.measured_ceiling("cpu", sizes=tuple(seconds), max_seconds=3.0)
    assert ran == [100, 200, 300]  # 1000 would take 0.06 s · (1000/300)³ = 2.2 s a call
    assert (ceiling.size, ceiling.flops_per_second) == (300, 2 * 300**3 / 0.06)
    ran.clear()
    assert hardware.measured_ceiling("cpu", sizes=(1000, 2000), max_seconds=0.1).size == 1000
    assert ran == [1000]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"dtype": torch.float8_e4m3fn}, "expected torch.float64"),
        ({"dtype": torch.int8}, "expected torch.float64"),
        ({"sizes": ()}, "ascending"),
        ({"sizes": (128, 64)}, "ascending"),
        ({"sizes": (0, 64)}, "positive"),
        ({"max_seconds": 0}, "positive"),
    ],
)
def test_measured_ceiling_refuses_what_it_cannot_measure(options, says):
    with pytest.raises(ValueError, match=says):
        hardware.measured_ceiling("cpu", **options)


def test_measured_bandwidth_counts_reading_and_writing(monkeypatch):
    copied = []

    def benchmark(fn, **options):
        target = fn()
        copied.append(target.nbytes)
        assert torch.equal(target, torch.ones_like(target))
        return SimpleNamespace(minimum=0.5)

    monkeypatch.setattr(timing, "benchmark", benchmark)
    assert hardware.measured_bandwidth("cpu", nbytes=1000) == 2 * 1000 / 0.5
    assert copied == [1000]
    with pytest.raises(ValueError, match="nbytes=0"):
        hardware.measured_bandwidth("cpu", nbytes=0)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_this_gpu_reaches_a_plausible_share_of_its_peak_rates():
    ceiling = hardware.measured_ceiling("cuda", torch.bfloat16)
    peak = peak_flops("cuda", torch.bfloat16)
    assert ceiling.flops_per_second > 0
    if peak is None:
        pytest.skip(describe_peak("cuda", torch.bfloat16))
    assert 0.3 < ceiling.flops_per_second / peak < 1.0
    assert 0.5 < hardware.measured_bandwidth("cuda") / hardware.find_device("cuda").bandwidth < 1.0

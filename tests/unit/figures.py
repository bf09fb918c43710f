"""The figures that the tests of plots draw, and what these tests look for in one."""

from __future__ import annotations

import functools

import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from course_utils import plots
from course_utils.timing import Span


def labeled(fig: Figure, prefix: str) -> list:
    return [a for a in fig.findobj() if (a.get_gid() or "").startswith(prefix)]


def texts(fig: Figure) -> list[str]:
    fig.draw_without_rendering()
    return [t.get_text() for t in fig.findobj(Text) if t.get_text()]


def boxes(fig: Figure) -> dict[Text, Bbox]:
    """The extents of every visible, horizontal text."""
    renderer = FigureCanvasAgg(fig).get_renderer()
    fig.draw_without_rendering()
    seen = {}
    for text in fig.findobj(Text):
        if text.get_text().strip() and text.get_visible() and text.get_rotation() % 90 == 0:
            box = Text.get_window_extent(text, renderer)
            if box.x1 > -1000:  # unused tick labels lie nowhere
                seen[text] = box
    return seen


def unused(fig: Figure) -> set[Text]:
    """A locator keeps tick labels that lie outside of the axes; they are not drawn."""
    labels: set[Text] = set()
    for axis in (axis for ax in fig.axes for axis in (ax.xaxis, ax.yaxis)):
        ticks = axis.get_major_ticks() + axis.get_minor_ticks()
        labels |= {label for t in ticks for label in (t.label1, t.label2)} - {t.label1 for t in axis._update_ticks()}
    return labels


STORAGE = {
    "contiguous": lambda: torch.arange(16).reshape(4, 4),
    "transpose": lambda: torch.arange(12).reshape(3, 4).T,
    "offset and steps": lambda: torch.arange(32).reshape(4, 8)[1:, 1::2],
    "expanded": lambda: torch.tensor([[1.5], [-2.25]]).expand(2, 5),
    "windows": lambda: torch.arange(7).unfold(0, 3, 1),
    "diagonal": lambda: torch.arange(25).reshape(5, 5).diagonal(),
    "3-D": lambda: torch.arange(24).reshape(2, 3, 4),
    "3-D permuted": lambda: torch.arange(24).reshape(2, 3, 4).permute(2, 0, 1),
    "3-D on two lines": lambda: torch.arange(64).reshape(4, 4, 4),
    "3-D, far strides": lambda: torch.arange(64).reshape(2, 2, 16),
    "3-D, slices below": lambda: torch.arange(64, dtype=torch.bfloat16).reshape(2, 4, 8),
    "1-D, long": lambda: torch.arange(64)[3::2],
    "column": lambda: torch.arange(40).reshape(8, 5)[:, 3:4],
    "scalar": lambda: torch.tensor(3.0),
    "scalar view": lambda: torch.arange(5.0)[3],
    "bool": lambda: torch.tensor([True, False]),
    "complex": lambda: torch.tensor([1 + 2j, -0.5j]),
    "other dtype": lambda: torch.arange(4, dtype=torch.int32).view(torch.int8)[5:],
    "needs grad": lambda: torch.ones(2, 3, requires_grad=True),
    "parameter": lambda: torch.nn.Parameter(torch.arange(6.0).reshape(2, 3)),
    "awkward values": lambda: torch.tensor([[-1.2345e-7, 1e30], [float("nan"), float("-inf")]]),
    "huge integers": lambda: torch.tensor([2**62, -(2**40)]),
    "float8": lambda: torch.tensor([448.0, 0.1]).to(torch.float8_e4m3fn),
    "random strides": lambda: torch.arange(60).as_strided((3, 4, 2), (17, 2, 7), 4),
}
CHARTS = {
    "roofline": lambda: plots.roofline(
        989.4e12,
        4.8e12,
        [("matmul 8192 bf16", 2730, 640e12), ("GELU", 0.75, 3.1e12), ("softmax", 1.0, 3.2e12), ("x + y", 1 / 6, 7e11)],
        predicted=[("matmul 8192 bf16", 2730, 989.4e12), ("GELU", 0.75, 3.6e12)],
        peak_label="bf16 peak, dense",
    ),
    "roofline, peak unknown": lambda: plots.roofline(
        None,
        20e9,
        [("matmul 1024", 170, 185e9), ("matmul 512", 85, 190e9), ("matmul 256", 42, 160e9), ("add", 1 / 12, 1.4e9)],
        ceiling=193e9,
    ),
    "roofline, crowded": lambda: plots.roofline(1e12, 1e11, [(f"point {i}", 9 + i / 10, 8e11) for i in range(6)]),
    "roofline, empty": lambda: plots.roofline(1e12, 1e11, []),
    "mfu": lambda: plots.mfu_curve(
        [256, 1024, 4096],
        {"fp32": [2e12, 30e12, 50e12], "bf16": [4e12, 200e12, 730e12]},
        {"fp32": 67e12, "bf16": 989e12},
    ),
    "mfu, one peak unknown": lambda: plots.mfu_curve(
        [64, 128, 256], {"fp32": [2e10, 8e10, 15e10], "bf16": [2e10, 9e10, 25e10]}, {"fp32": 4e11, "bf16": None}
    ),
    "mfu, dense sizes": lambda: plots.mfu_curve(
        range(512, 8193, 512), {"fp32": [1e12 + n for n in range(16)]}, {"fp32": 2e12}
    ),
    "mfu, one size": lambda: plots.mfu_curve([512], {"fp32": [1e12]}, {"fp32": 2e12}),
    "ladder": lambda: plots.mfu_ladder(
        {"float32, one operation at a time": 0.04, "bfloat16": 0.3, "compiled": 0.97}, title="From 4% to 97%"
    ),
    "timeline": lambda: plots.timeline(SPANS, title="Copies and products at the same time"),
    "magnitudes": lambda: plots.magnitudes(
        {
            "GPT-3 (2020)": 3.14e23,
            "GPT-4 (2023), an estimate": 2.1e25,
            "Llama 3.1 405B (2024)": 3.8e25,
            "eight H100s, two weeks, at their peak": 9.58e21,
        },
        unit="FLOPs",
        lines={"EU threshold, since 2025": 1e25, "US reporting threshold, 2023 to 2025": 1e26},
        highlight=["eight H100s, two weeks, at their peak"],
        title="GPT-3 took 33 times what eight H100s can do in two weeks",
    ),
    "magnitudes, one number": lambda: plots.magnitudes({"a byte": 1}, unit="B", title="One"),
    "magnitudes, far apart": lambda: plots.magnitudes(
        {"a bit": 0.125, "all text": 4e15}, unit="B", lines={"small": 3, "large": 1e14, "larger": 1.5e14}, title="Bytes"
    ),
    "calibration": lambda: plots.calibration(
        [("00", 1.0), ("00", 30.0), ("01", 0.004), ("05", 2.1), ("05", 0.9), ("10", 1.02)],
        title="4 of your 6 guesses are within a factor of 2; the median factor is 2.1",
    ),
    "calibration, one guess": lambda: plots.calibration([("00", 1.0)], title="Right"),
    "calibration, a whole course": lambda: plots.calibration(
        [(f"{i // 4:02d}", 1.5 ** (i % 7 - 3)) for i in range(44)], title="Every guess of the course"
    ),
    "bits": lambda: plots.bit_layouts(
        {"float32": (8, 23), "float8_e4m3fn": (4, 3)}, title="Bits buy range or precision"
    ),
    "gaps": lambda: plots.gap_curves(
        {"everywhere": {p: 2.0 ** (p - 7) for p in range(-16, 17)}, "short": {p: 2.0**-8 for p in range(-8, 4)}},
        reach=12,
        title="Gaps",
    ),
    "number lines": lambda: plots.number_lines(
        {"E5M2": (torch.tensor([-2.0, 0, 1, 2, 448]), 1.5), "E4M3": (torch.arange(20) / 4, 1.0)}, title="Numbers"
    ),
    "curves of shares": lambda: plots.curves(
        [1, 16, 256], {"a": [0.0, 0.5, 1.0], "b": [1, 1, 1]}, xlabel="x", ylabel="share", shares=True, title="Shares"
    ),
    "predicted": lambda: plots.predicted_vs_measured(
        [
            ("bytes of x", 128, 128, "B"),
            ("memory of the activations after the forward pass", 6.4e7, 8.1e7, "B"),
            ("FLOPs of x @ w", 1.37e11, 1.37e11, "FLOPs"),
            ("time of x @ w", 2e-3, 2.6e-2, "s"),
            ("tokens per second", 1200, 900, "tokens/s"),
            ("far off", 1, 1e9, "B"),
        ]
    ),
    "predicted, many rows": lambda: plots.predicted_vs_measured(
        [(f"tensor parallel: activations on rank {i:04}", 2.0**i, 2.0**i, "B") for i in range(39)]
        + [("a label that is long enough to be written on two lines, even here", 1, 1, "B")]
    ),
    "range histograms": lambda: plots.range_histograms(
        {"as they are": 2.0 ** torch.linspace(-40, -12, 99), "times 2¹⁶": 2.0 ** torch.linspace(-24, 18, 99)},
        torch.float16,
        title="Some become 0, some become infinite",
    ),
    "range histograms, all fine": lambda: plots.range_histograms(
        {"x": torch.ones(3)}, torch.bfloat16, title="All are kept"
    ),
    "loss scale": lambda: plots.loss_scale(
        [2.0**24, 2.0**23, 2.0**22, 2.0**22, 2.0**23], [True, True, False, False, True], limit=[3e6] * 5, title="Found"
    ),
    "loss scale, no limit": lambda: plots.loss_scale([8.0], [False], title="One step"),
    "through depth": lambda: plots.through_depth(
        {"explodes": [16.0**i for i in range(50)], "dies": [0.41**i for i in range(50)]},
        {"explodes": [16.0**i for i in range(50)], "stays": [1.4] * 50},
        ylabel="std of the layer's outputs",
        title="A factor for each layer is a straight line",
        limits={"largest float32": 3.4e38},
    ),
    "through depth, backward": lambda: plots.through_depth(
        {"a": [0.7, 0.9, 1.0]}, {"b": [1.4, 1.2, 1.0]}, ylabel="std", title="Three layers", backward=True
    ),
    "distributions": lambda: plots.distributions(
        {
            name: {f"layer {i}": size**i * torch.linspace(-2, 2, 99) for i in (1, 10, 30, 50)}
            for name, size in {"torch.randn": 5.0, "LeCun = Glorot": 0.5, "Kaiming": 1.0}.items()
        },
        reach=5,
        title="One explodes, one dies, one arrives",
    ),
    "descent": lambda: plots.descent(
        {
            "straight": (lambda x, y: x**2 + 9 * y**2, {"SGD: 2 steps": [(-3, 1), (2, -1), (1, 0)], "b": [(-3, 1)]}),
            "turned": (lambda x, y: x**2 + 9 * (x - y) ** 2, {"SGD: 1 step": [(-3, 1), (2, 1)], "b": [(-3, 1)]}),
        },
        reach=4,
        title="Turned, it takes a step less, says a title that goes on for so long that it needs two lines",
    ),
    "memory stacks": lambda: plots.memory_stacks(
        {
            "SGD": {"parameters": 32e9, "gradients": 32e9, "state": 0},
            "AdamW": {"parameters": 32e9, "gradients": 32e9, "state": 64e9},
        },
        limits={"H100: 80 GB": 80e9, "H200: 141 GB": 141e9},
        title="One of two fits",
    ),
    "memory stacks, one bar": lambda: plots.memory_stacks({"a": {"all of it": 3.0}}, title="Three bytes"),
    "losses": lambda: plots.loss_curves(
        {f"lr {lr}": {step: 255 * q**step for step in range(30)} for lr, q in ((0.01, 0.96), (0.25, 0.5), (0.6, 1.5))},
        {"lr 0.25": {step: 250 * 0.5**step for step in range(30)}},
        title="The best rate halves the loss in each step",
    ),
    "losses, resumed": lambda: plots.loss_curves(
        {"in two pieces": {step: 2 + 3.5 / (1 + step / 9) for step in range(120)}},
        {"never stopped": {step: 2 + 3.5 / (1 + step / 9) for step in range(120)}},
        events={"last checkpoint": 60, "power cut": 65},
        title="The run in two pieces lies on the other",
    ),
    "losses, one step": lambda: plots.loss_curves({"a": {7: 1.0}}, title="One step"),
}
SPANS = [
    Span("copies", "batch 0", 5.0, 7.0), Span("copies", "batch 1", 7.0, 7.015625), Span("products", "step 0", 6.0, 8.0)
]  # fmt: skip
FIGURES = {name: (lambda make=make: plots.storage_layout(make())) for name, make in STORAGE.items()} | CHARTS


ALT = 'A "quoted" <alt> & more'


@functools.cache
def figure_of(name: str) -> Figure:
    return FIGURES[name]()


@functools.cache
def html_of(name: str) -> str:
    return plots.to_html(figure_of(name), alt=ALT)

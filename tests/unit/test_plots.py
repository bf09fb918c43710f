"""Figures: what is drawn where, the SVG that a notebook shows, and errors for bad input."""

from __future__ import annotations

import functools
import itertools
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
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


# --- the layout in storage ---


@pytest.mark.parametrize("name", STORAGE)
def test_every_element_is_drawn_in_the_slot_that_torch_reads(name: str) -> None:
    x = STORAGE[name]()
    slots = x.untyped_storage().nbytes() // x.element_size()
    # torch's own answer: number the slots, and look at the numbers through the same strides.
    numbered = torch.arange(slots).as_strided(x.shape, x.stride(), x.storage_offset())
    expected = {
        f"element {index} in slot {numbered[index].item()}" for index in itertools.product(*map(range, x.shape))
    }
    named: dict[str, list] = {"element": [], "slot": [], "shared": []}
    for artist in figure_of(name).findobj(lambda artist: artist.get_gid()):
        named.setdefault(artist.get_gid().split()[0], []).append(artist)
    elements = named["element"]
    assert {cell.get_gid() for cell in elements} == expected
    assert len(elements) == x.numel()

    drawn = {int(cell.get_gid().split()[1]): cell for cell in named["slot"]}
    assert sorted(drawn) == list(range(slots))
    filled = {slot for slot, cell in drawn.items() if cell.get_facecolor()[3] > 0}
    assert filled == set(numbered.flatten().tolist())
    for cell in elements:  # the same shade here and there
        assert cell.get_facecolor() == drawn[int(cell.get_gid().split()[-1])].get_facecolor()

    times = {slot: int((numbered == slot).sum()) for slot in filled}
    badges = {int(t.get_gid().split()[1]): t.get_text() for t in named["shared"]}
    assert badges == {slot: f"×{count}" for slot, count in times.items() if count > 1}


def text_in(fig: Figure, cell: Rectangle) -> list[str]:
    (x, y), side = cell.get_xy(), cell.get_width()
    found = [t for t in fig.axes[0].texts if x < t.get_position()[0] < x + side and y < t.get_position()[1] < y + side]
    return [t.get_text() for t in found]


def test_cells_show_their_value_and_their_slot() -> None:
    x = (torch.arange(12) * 100).reshape(3, 4).T[1:]
    fig = plots.storage_layout(x)
    for cell in labeled(fig, "element "):
        i, j, slot = map(int, re.findall(r"\d+", cell.get_gid()))
        assert text_in(fig, cell) == [str(x[i, j].item()), str(slot)]
    for cell in labeled(fig, "slot "):  # the slots that the view does not touch show what they hold, too
        slot = int(cell.get_gid().split()[1])
        assert text_in(fig, cell) == [str(slot * 100), str(slot)]


@pytest.mark.parametrize(
    "x, words",
    [
        (torch.arange(12).reshape(3, 4).T, ["+1\nto the next row", "+4 to the next column"]),
        (torch.arange(24).reshape(2, 3, 4), ["+12 to the next slice", "+4\nto the next row", "+1 to the next column"]),
        (torch.zeros(3).expand(2, 3), ["+0\nto the next row", "+1 to the next column"]),
        (torch.arange(9)[2::3], ["+3 to the next element", "storage_offset 2"]),
    ],
)
def test_strides_and_offset_are_written(x: torch.Tensor, words: list[str]) -> None:
    assert set(words) <= set(texts(plots.storage_layout(x)))


def test_steps_in_storage_are_labeled_even_across_lines() -> None:
    assert {"+1", "+8", "+32"} <= set(texts(plots.storage_layout(torch.arange(64).reshape(2, 4, 8))))


def test_a_dim_of_size_one_has_no_step() -> None:
    words = " ".join(texts(plots.storage_layout(torch.arange(4).reshape(1, 4))))
    assert "next column" in words and "next row" not in words


@pytest.mark.parametrize("highlight", [(1, -1), [(1, 3)], [[1, 3], (-3, 3)], [(1, 3), (0, 3)]])
def test_highlight_marks_the_element_and_its_slot(highlight: object) -> None:
    x = torch.arange(12).reshape(3, 4)
    marked = {a.get_gid() for a in labeled(plots.storage_layout(x, highlight=highlight), "highlight ")}
    assert {"highlight element (1, 3) in slot 7", "highlight slot 7"} <= marked
    assert ("highlight slot 3" in marked) == (len(marked) == 4)


def test_a_meta_tensor_is_drawn_without_values() -> None:
    fig = plots.storage_layout(torch.empty(2, 3, device="meta"))
    assert all(set(text_in(fig, cell)) <= {"", cell.get_gid().split()[-1]} for cell in labeled(fig, "element "))


@pytest.mark.parametrize(
    "x, finding",
    [
        (torch.arange(6).reshape(2, 3), "Contiguous"),
        (torch.arange(6).reshape(2, 3).T, "Not contiguous"),
        (torch.arange(6).reshape(2, 3)[1], "contiguous view of 3 of 6"),
        (torch.arange(6).reshape(2, 3)[:, ::2], "touches 4 of 6"),
        (torch.zeros(1).expand(3), "3 elements in 1 slot:"),
    ],
)
def test_the_default_title_states_the_finding(x: torch.Tensor, finding: str) -> None:
    assert finding in texts(plots.storage_layout(x))[0]


@pytest.mark.parametrize(
    "x, error, message",
    [
        ([[1, 2]], TypeError, "draws a torch.Tensor, got list"),
        (torch.zeros(2, 2, 2, 2), ValueError, r"shape \(2, 2, 2, 2\): at most 3 dims.*slice"),
        (torch.zeros(0, 3), ValueError, r"shape \(0, 3\): an empty tensor"),
        (torch.zeros(65), ValueError, "storage of 65 slots: at most 64"),
        (torch.zeros(10, 10)[:2, :2], ValueError, r"storage of 100 slots.*\.clone\(\)"),
        (torch.zeros(1).expand(65), ValueError, "at most 64 elements"),
        (torch.zeros(2, 32), ValueError, "at most 16 in a dim"),
        (torch.eye(3).to_sparse(), ValueError, r"sparse.*to_dense"),
    ],
)
def test_a_tensor_that_cannot_be_drawn_is_refused_with_the_reason(
    x: object, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        plots.storage_layout(x)  # type: ignore[arg-type]


@pytest.mark.parametrize("highlight", [(1,), (3, 0), [(0, 0), (0, 4)], (0, -5)])
def test_a_highlight_outside_the_tensor_is_an_error(highlight: object) -> None:
    with pytest.raises(ValueError, match=r"not an element of a tensor of shape \(3, 4\)"):
        plots.storage_layout(torch.zeros(3, 4), highlight=highlight)  # type: ignore[arg-type]


# --- every figure ---


@pytest.mark.parametrize("name", FIGURES)
def test_svg_has_alt_text_and_takes_the_color_of_the_page(name: str) -> None:
    html = html_of(name)
    root = ET.fromstring(html)
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"] == root[0].text == ALT
    assert root[0].tag.endswith("title")
    assert root.attrib["fill"] == "currentColor" and "currentColor" in html
    assert plots.INK not in html and "#ffffff" not in html and "rgb(0" not in html
    assert "<style" not in html and "<metadata" not in html and "<script" not in html
    assert float(root.attrib["width"]) <= 900


@pytest.mark.parametrize("name", FIGURES)
def test_svg_is_deterministic_and_every_reference_has_its_target(name: str) -> None:
    html = html_of(name)
    assert html == plots.to_html(FIGURES[name](), alt=ALT)
    ids = re.findall(r'\bid="([^"]+)"', html)
    references = set(re.findall(r'(?:href="|url\()#([^")]+)', html))
    assert len(ids) == len(set(ids))
    assert references and references == set(ids)


def test_ids_of_several_figures_do_not_clash() -> None:
    ids = [set(re.findall(r'\bid="([^"]+)"', html_of(name))) for name in FIGURES]
    assert sum(map(len, ids)) == len(set().union(*ids))


@pytest.mark.parametrize("name", FIGURES)
def test_no_text_is_cut_off_or_covered(name: str) -> None:
    fig = figure_of(name)
    found, out_of_use = boxes(fig), unused(fig)
    drawn = [text for text in found if text not in out_of_use]
    assert len(drawn) > 3
    for text in drawn:
        box = found[text]
        inside = box.x0 >= 0 and box.y0 >= 0 and box.x1 <= fig.bbox.x1 and box.y1 <= fig.bbox.y1
        assert inside, f"cut off: {text.get_text()!r}"
        assert text.get_fontsize() >= 6, text.get_text()
    ends = np.array([found[text].extents for text in drawn])  # [texts, (x0, y0, x1, y1)]
    low, high = ends[:, None, :2], ends[:, None, 2:]
    common = np.minimum(high, high.swapaxes(0, 1)) - np.maximum(low, low.swapaxes(0, 1))  # width and height, each pair
    covered = np.argwhere(np.triu((common > 1).all(-1), k=1))
    assert not [f"{drawn[a].get_text()!r} covers {drawn[b].get_text()!r}" for a, b in covered]


@pytest.mark.parametrize("name", ["offset and steps", "roofline", "mfu, one peak unknown", "predicted"])
def test_the_callers_settings_neither_show_nor_change(name: str) -> None:
    plain = html_of(name)
    changed = {"font.size": 20, "text.color": "red", "axes.grid": True, "savefig.bbox": "tight", "figure.dpi": 200}
    with matplotlib.rc_context(changed), matplotlib.style.context("dark_background"):
        before = dict(matplotlib.rcParams)
        assert plots.to_html(FIGURES[name](), alt=ALT) == plain
        assert dict(matplotlib.rcParams) == before
    assert plt.get_fignums() == []


def test_show_displays_html_and_text_and_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    displayed = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw: displayed.append((data, raw)))
    fig, ax = plt.subplots()  # a student's own figure, with the defaults
    ax.plot([1, 10], [1, 2], label="mine")
    ax.set_xscale("log")
    ax.legend()
    plots.show(fig, alt="  Mine\n rises. ")
    ((data, raw),) = displayed
    assert raw and data["text/plain"] == "Mine rises." and data["text/html"].startswith("<svg")
    assert plots.INK not in data["text/html"] and "fill: #ffffff" not in data["text/html"]
    assert plt.get_fignums() == []


def test_an_image_keeps_its_data() -> None:
    fig = Figure()
    fig.subplots().imshow(torch.eye(3).numpy())
    assert 'href="data:image/png;base64,' in plots.to_html(fig, alt="x")


@pytest.mark.parametrize("alt", ["", "  \n"])
def test_an_empty_alt_is_an_error(alt: str) -> None:
    with pytest.raises(ValueError, match="alt is empty: say in a sentence"):
        plots.show(plots.storage_layout(torch.zeros(2)), alt=alt)


def test_importing_loads_no_pyplot_and_no_ipython() -> None:
    code = "import sys, course_utils.plots; print([m for m in ('matplotlib.pyplot', 'IPython') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_palette_is_petroff6() -> None:
    if "petroff6" not in matplotlib.color_sequences:
        pytest.skip("matplotlib knows petroff6 from 3.11 on")
    assert tuple(map(to_hex, matplotlib.color_sequences["petroff6"])) == plots.PETROFF6
    assert len({plots.DATA, plots.MEASURED, plots.HIGHLIGHT, plots.PREDICTED, plots.CONTEXT, plots.COMPUTE_BOUND}) == 6


# --- charts ---


def marks(fig: Figure, gid: str) -> list[tuple[float, float, str]]:
    """(x, y, filled or hollow) of the marks of that name."""
    found = [a for a in labeled(fig, gid) if isinstance(a, Line2D)]
    kinds = ["hollow" if m.get_markerfacecolor() == "none" else "filled" for m in found]
    return [(float(m.get_xdata()[0]), float(m.get_ydata()[0]), kind) for m, kind in zip(found, kinds, strict=True)]


def test_roofline_draws_the_roof_the_ridge_and_the_points() -> None:
    fig = plots.roofline(
        1e12, 2e10, [("add", 0.25, 4e9), ("matmul", 400, 9e11)], predicted=[("add", 0.25, 5e9)], peak_label="fp32 peak"
    )
    assert marks(fig, "ridge point")[0][:2] == (50.0, 1e12)
    assert marks(fig, "add") == [(0.25, 4e9, "filled"), (0.25, 5e9, "hollow")]
    assert marks(fig, "matmul") == [(400, 9e11, "filled")]
    words = texts(fig)
    for text in ("memory-bound", "compute-bound", "ridge point: 50 FLOP/B", "fp32 peak: 1 TFLOP/s"):
        assert text in words
    assert "bandwidth: 20 GB/s" in words
    assert "1 of 2 measured points are memory-bound, the others compute-bound" in words
    (slanted,) = [ln for ln in fig.axes[0].lines if ln.get_color() == plots.MEMORY_BOUND]
    for intensity, rate in slanted.get_xydata():
        assert rate == pytest.approx(2e10 * intensity)
    (flat,) = [ln for ln in fig.axes[0].lines if ln.get_color() == plots.COMPUTE_BOUND]
    assert set(flat.get_ydata()) == {1e12}
    assert len({a.get_marker() for a in labeled(fig, "add") + labeled(fig, "matmul")}) == 2


def test_an_unknown_peak_is_replaced_by_the_measured_ceiling_and_says_so() -> None:
    fig = plots.roofline(None, 1e10, [("add", 0.25, 1e9)], ceiling=2e11, peak_label="never shown")
    assert "measured ceiling (peak unknown): 200 GFLOP/s" in " ".join(" ".join(texts(fig)).split())
    assert marks(fig, "ridge point")[0][:2] == (20.0, 2e11)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"peak": None}, "ceiling: where the peak of a device is unknown, measure"),
        ({"peak": 0}, "peak is 0: it must be positive"),
        ({"bandwidth": float("inf")}, "bandwidth is inf"),
        ({"points": [("add", 0, 1e9)]}, "the intensity of 'add' is 0"),
        ({"points": [("add", 1, float("nan"))]}, "the FLOP/s of 'add' is nan"),
        ({"predicted": [("add", 1, -1)]}, "the FLOP/s of 'add' is -1"),
    ],
)
def test_roofline_refuses_bad_input(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plots.roofline(**({"peak": 1e12, "bandwidth": 1e10, "points": []} | arguments))


def test_mfu_curve_divides_by_the_peak_of_each_dtype() -> None:
    fig = plots.mfu_curve([64, 128], {"fp32": [1e12, 3e12], "bf16": [2e12, 5e12]}, {"fp32": 4e12, "bf16": 1e13})
    assert marks(fig, "fp32") == [(64, 0.25, "filled"), (128, 0.75, "filled")]
    assert marks(fig, "bf16") == [(64, 0.2, "filled"), (128, 0.5, "filled")]
    assert "The best matmul reaches fp32 75%, bf16 50% of peak" in texts(fig)


def test_mfu_curve_shows_rates_where_a_peak_is_unknown() -> None:
    fig = plots.mfu_curve([64, 128], {"fp32": [1e12, 3e12], "bf16": [2e12, 5e12]}, {"fp32": 4e12, "bf16": None})
    assert marks(fig, "bf16") == [(64, 2e12, "filled"), (128, 5e12, "filled")]
    words = texts(fig)
    assert "FLOP/s (peak of bf16 unknown)" in words and "fp32 peak: 4 TFLOP/s" in words
    assert not any("%" in word for word in words)


def test_mfu_curve_names_a_utilization_above_one() -> None:
    words = " ".join(texts(plots.mfu_curve([64], {"fp32": [2e12]}, {"fp32": 1e12})))
    assert "above 100%: check the peak and the timing of fp32" in words


@pytest.mark.parametrize(
    "sizes, rates, peaks, message",
    [
        ([], {"fp32": []}, {"fp32": 1.0}, "nothing to draw"),
        ([64], {}, {}, "nothing to draw"),
        ([64, 64], {"fp32": [1.0, 1.0]}, {"fp32": 1.0}, "sizes must be ascending"),
        ([64], {"fp32": [1.0, 1.0]}, {"fp32": 1.0}, "'fp32' has 2 rates for 1 sizes"),
        ([64], {"fp32": [1.0]}, {}, "no entry for 'fp32'"),
        ([64], {"fp32": [0.0]}, {"fp32": 1.0}, "a rate of 'fp32' is 0.0"),
        ([64], {"fp32": [1.0]}, {"fp32": -1.0}, "the peak of 'fp32' is -1.0"),
        ([0], {"fp32": [1.0]}, {"fp32": 1.0}, "a size is 0"),
    ],
)
def test_mfu_curve_refuses_bad_input(sizes: list, rates: dict, peaks: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plots.mfu_curve(sizes, rates, peaks)


def test_mfu_ladder_draws_every_rung_to_scale_and_writes_its_share() -> None:
    fig = plots.mfu_ladder({"float32": 0.04, "compiled": 0.525}, title="Up", of="bfloat16 peak")
    [ax] = fig.axes
    assert [patch.get_width() for patch in ax.patches] == [0.04, 0.525] and ax.yaxis_inverted()
    words = texts(fig)
    assert {"float32", "compiled", "4.0%", "52.5%", "model FLOP/s ÷ bfloat16 peak"} <= set(words)


def test_timeline_draws_each_stream_in_a_row_of_its_own() -> None:
    [ax] = plots.timeline(SPANS, title="Both").axes
    boxes = [(p.get_x(), p.get_width(), round(p.get_y() + p.get_height() / 2)) for p in ax.patches]
    assert boxes == [(0.0, 2.0, 0), (2.0, 0.015625, 0), (1.0, 2.0, 1)]  # from the first start on
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["copies", "products"]
    assert [text.get_text() for text in ax.texts] == ["batch 0", "step 0"]  # one has no room for its name


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: plots.mfu_ladder({}, title="x"), "at least one rung"),
        (lambda: plots.mfu_ladder({"float32": 0.0}, title="x"), "the MFU of 'float32' is 0.0"),
        (lambda: plots.timeline([], title="x"), "at least one span"),
        (lambda: plots.timeline([Span("copies", "a", 2, 1)], title="x"), "ends before it starts"),
    ],
)
def test_ladder_and_timeline_refuse_bad_input(draw: Callable[[], Figure], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw()


def test_predicted_vs_measured_has_an_axis_per_unit_and_writes_the_ratio() -> None:
    fig = plots.predicted_vs_measured(
        [("x", 4e9, 6e9, "B"), ("t", 0.002, 0.0005, "s"), ("w", 999.9e9, 1e12, "B"), ("d", 3, 30, "days")]
    )
    assert len(fig.axes) == 3
    assert marks(fig, "predicted x")[0][::2] == (4e9, "hollow")
    assert marks(fig, "measured x")[0][::2] == (6e9, "filled")
    words = texts(fig)
    for text in ("4 GB", "6 GB", "× 1.50", "2 ms", "500 µs", "× 0.25", "1 TB", "× 1.00", "days", "× 10"):
        assert text in words
    assert "Farthest off: d, by a factor of 10" in words


def test_numbers_that_nobody_measured_are_not_called_measured() -> None:
    words = texts(plots.predicted_vs_measured([("x", 4e9, 6e9, "B")], against="published", title="Close"))
    assert {"predicted", "published", "published ÷\npredicted"} <= set(words)
    assert not any("measured" in text for text in words)
    curve = {"a training step": [6.0, 8.0]}
    for against in ("measured", "counted"):
        fig = plots.curves([1, 2], curve, curve, xlabel="x", ylabel="FLOPs", against=against, title="Close")
        assert [text.get_text() for text in fig.legends[0].get_texts()] == [against, "predicted"]


def test_what_is_no_prediction_has_its_own_name_and_color() -> None:
    rows = [("time", 1.0, 2.0, "s"), ("loss", 2.4, 2.1, "nats per byte")]
    fig = plots.predicted_vs_measured(rows, others={"nats per byte": "baseline"}, title="A title")
    assert {"predicted", "measured ÷\npredicted", "baseline", "measured ÷\nbaseline"} <= set(texts(fig))
    (predicted,), (baseline,) = labeled(fig, "predicted time"), labeled(fig, "predicted loss")
    assert (predicted.get_markeredgecolor(), baseline.get_markeredgecolor()) == (plots.PREDICTED, plots.CONTEXT)


def test_many_predictions_stay_on_one_screen() -> None:
    assert CHARTS["predicted, many rows"]().get_figheight() < 9.5  # inches; loosely set, 40 rows take 16


def test_an_axis_between_two_powers_of_ten_has_ticks() -> None:
    fig = plots.predicted_vs_measured([("loss", 3.07, 2.42, "nats per byte")])
    assert {"2", "4"} <= set(texts(fig))


def test_the_title_says_within_which_factor_all_predictions_are() -> None:
    rows = [("x", 100, 110, "B"), ("y", 100, 62, "B")]
    assert "Every prediction is within a factor of 1.7 of the measurement" in texts(plots.predicted_vs_measured(rows))


@pytest.mark.parametrize(
    "rows, message",
    [
        ([], "nothing to draw"),
        ([("x", 0, 1, "B")], "the prediction of 'x' is 0"),
        ([("x", 1, float("nan"), "B")], "the measurement of 'x' is nan"),
    ],
)
def test_predicted_vs_measured_refuses_bad_input(rows: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plots.predicted_vs_measured(rows)


@pytest.mark.parametrize("value", [None, ..., "two"])
def test_a_prediction_that_is_not_a_number_is_refused_by_name(value: object) -> None:
    with pytest.raises(TypeError, match=r"the prediction of 'x' is .*: it must be a number"):
        plots.predicted_vs_measured([("x", value, 1.0, "B")])  # type: ignore[list-item]


# --- bytes and cards ------------------------------------------------------------------------------------------


def test_memory_bar_draws_parts_to_scale_and_enough_cards() -> None:
    fig = plots.memory_bar({"a": 100e9, "b": 50e9, "c": 11e9}, capacity=80e9, capacity_label="80 GB card")
    (ax,) = fig.axes
    boxes = {p.get_gid(): (p.get_x(), p.get_width()) for p in ax.patches if p.get_gid()}
    assert boxes == {"a": (0, 100e9), "b": (100e9, 50e9), "c": (150e9, 11e9)}
    assert [p.get_x() for p in ax.patches if not p.get_gid()] == [0, 80e9, 160e9]
    assert "161 GB needs 3 × 80 GB card" in [text.get_text() for text in fig.texts]


@pytest.mark.parametrize(
    ("parts", "capacity", "problem"),
    [
        ({}, 1, "at least one part"),
        ({"a": 0}, 1, "size of 'a'"),
        ({"a": 1}, -1, "the capacity"),
        ({"a": 1e12}, 1, "too many"),
    ],
)
def test_memory_bar_refuses_bad_input(parts: dict[str, float], capacity: float, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        plots.memory_bar(parts, capacity=capacity, capacity_label="card")


# --- curves ---------------------------------------------------------------------------------------------------


def test_curves_mark_every_value_and_name_each_curve_once() -> None:
    fig = plots.curves(
        [1, 10, 100],
        {"copy": [1e-6, 2e-6, 3e-6]},
        {"copy": [1e-6, 1e-6, 4e-6], "view": [1e-7, 1e-7, 1e-7]},
        xlabel="size",
        ylabel="time",
        xunit="B",
        yunit="s",
        title="A title",
    )
    (ax,) = fig.axes
    marks = [(line.get_gid(), line.get_markerfacecolor() == plots.MEASURED) for line in ax.lines if line.get_gid()]
    assert marks.count(("copy", True)) == marks.count(("copy", False)) == marks.count(("view", False)) == 3
    assert sorted(text.get_text() for text in ax.texts) == ["copy", "view"]
    assert any(label.get_text() == "1 µs" for label in ax.get_yticklabels())


@pytest.mark.parametrize(
    ("x", "measured", "problem"),
    [
        ([], {"a": []}, "nothing to draw"),
        ([1], {}, "nothing to draw"),
        ([2, 1], {"a": [1, 1]}, "must be ascending"),
        ([1, 2], {"a": [1]}, "1 values for 2 x"),
        ([1, 2], {"a": [1, 0]}, "a value of 'a'"),
        ([-1, 2], {"a": [1, 1]}, "an x"),
    ],
)
def test_curves_refuse_bad_input(x: list[float], measured: dict[str, list[float]], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        plots.curves(x, measured, xlabel="", ylabel="", title="")

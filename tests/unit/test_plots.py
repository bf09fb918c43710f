"""Every figure: the SVG that a notebook shows, and text that can be read."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from figures import ALT, FIGURES, boxes, figure_of, html_of, unused
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from course_utils import plots


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

"""The palette and style of all figures, and their display as inline SVG that follows the page's theme."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from typing import Any

import matplotlib
import matplotlib.style
from matplotlib.figure import Figure

# "petroff6": Matthew A. Petroff, "Accessible Color Sequences for Data Visualization", arXiv:2107.02270 (2021).
PETROFF6 = ("#5790fc", "#f89c20", "#e42536", "#964a8b", "#9c9ca1", "#7a21dd")

# One meaning per color, in every figure of the course.
DATA = MEMORY_BOUND = PETROFF6[0]  # bytes: what a tensor holds, and being limited by moving it
MEASURED = PETROFF6[1]  # a number that was measured; always a filled mark
HIGHLIGHT = PETROFF6[2]  # look here
PREDICTED = PETROFF6[3]  # a number that was computed beforehand; always a hollow mark
CONTEXT = PETROFF6[4]  # grids, reference lines, what is not in use
COMPUTE_BOUND = PETROFF6[5]  # FLOPs, and being limited by them

INK = "#000000"  # text, axes, ticks: `to_html` turns it into the page's own text color
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")

_STYLE: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": CONTEXT,
    "grid.alpha": 0.35,
    "grid.linewidth": 0.8,
    "lines.markersize": 8,
    "text.parse_math": False,  # a label may hold a dollar sign
}
_SVG: dict[str, Any] = {
    "svg.fonttype": "path",  # outlines look the same on every machine; the alt text serves screen readers
    "svg.hashsalt": "every-byte-every-flop",
    "savefig.bbox": "standard",
    "path.simplify": True,
}


@contextmanager
def styled() -> Iterator[None]:
    """Use Matplotlib's defaults plus the course's style in this context, then restore the caller's settings."""
    with matplotlib.style.context(["default", _STYLE]):
        yield


def to_html(fig: Figure, *, alt: str) -> str:
    """Return ``fig`` as one inline ``<svg>`` element: black becomes the page's text color, white becomes transparent.

    The same figure always gives the same bytes. Ids are made from the content, so several figures can share a page. The
    width is the figure's own (96 CSS pixels per inch), or less on a narrower page.

    Args:
        alt: What the figure shows, as a sentence with its finding, for screen readers.

    Raises:
        ValueError: ``alt`` is empty.
    """
    import xml.etree.ElementTree as ET  # a tenth of what importing all of course_utils takes

    alt = " ".join(alt.split())
    if not alt:
        raise ValueError(
            "alt is empty: say in a sentence what the figure shows and what follows from it, "
            "for readers who can't see it"
        )
    buffer = StringIO()
    no_metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with matplotlib.style.context(_SVG):
        fig.savefig(buffer, format="svg", transparent=True, metadata=no_metadata)
    root = ET.fromstring(buffer.getvalue())

    prefix = "fig-" + hashlib.sha256((alt + buffer.getvalue()).encode()).hexdigest()[:10] + "-"
    referenced = set(re.findall(r'(?:href="|url\()#([^")]+)', buffer.getvalue()))
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.endswith("}style"):  # a style element would reach the whole page
                parent.remove(child)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        for name, value in list(element.attrib.items()):
            del element.attrib[name]
            name = name.rpartition("}")[2]  # xlink:href is written as href
            if name == "id":
                if value in referenced:
                    element.set(name, prefix + value)
                continue
            if name == "href" and value.startswith("#"):  # an image's href holds its data
                value = "#" + prefix + value[1:]
            value = value.replace("url(#", "url(#" + prefix).replace(INK, "currentColor")
            value = value.replace("fill: #ffffff", "fill: none")  # white means paper: a legend's box
            for dark in (PREDICTED, COMPUTE_BOUND):  # on a dark page, these two alone could hardly be seen
                value = value.replace(dark, f"color-mix(in srgb, {dark} 70%, currentColor)")
            element.set(name, value)

    width, height = fig.get_size_inches() * 96
    view_box = root.attrib["viewBox"]
    root.attrib.clear()
    root.attrib.update(
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": view_box,
            "width": f"{width:.0f}",
            "height": f"{height:.0f}",
            "role": "img",
            "aria-label": alt,
            "fill": "currentColor",  # matplotlib writes no fill where it is black
            "style": "max-width:100%;height:auto;stroke-linejoin:round;stroke-linecap:butt",
        }
    )
    title = ET.Element("title")
    title.text = alt
    root.insert(0, title)
    return ET.tostring(root, encoding="unicode")


def show(fig: Figure, *, alt: str) -> None:
    """Display ``fig`` in the notebook as inline SVG and close it; a terminal prints ``alt``.

    Works for any matplotlib figure, including those made with pyplot.

    Args:
        alt: What the figure shows, as a sentence with its finding.

    Raises:
        ValueError: ``alt`` is empty.
    """
    from IPython.display import display

    html = to_html(fig, alt=alt)
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close(fig)
    display({"text/html": html, "text/plain": " ".join(alt.split())}, raw=True)  # type: ignore[no-untyped-call]

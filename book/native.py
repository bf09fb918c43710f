"""Formulas as MathML and Mermaid's diagrams as SVG: browsers draw both by themselves, without a script.

Images get a caption, as all figures of the book have.
"""

import html
import re
from typing import Any, Literal

import mmdr
from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


def mathml(formula: str, display: Literal["inline", "block"]) -> str:
    """A formula in LaTeX as MathML. Raises ValueError if it has something that latex2mathml doesn't know."""
    found = convert(formula, display=display).replace(r"\_", "_")  # latex2mathml leaves the backslash within \text
    unknown = re.search(r">(&|\\\w*)<", found)  # such as the & of `aligned`; that of `split` it knows
    if unknown:
        raise ValueError(f"The web book can't draw {unknown[1]} in this formula: {formula}")
    return found


def inline(self: Any, node: nodes.math) -> None:
    self.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def block(self: Any, node: nodes.math_block) -> None:
    self.body.append(f'<div class="formula">{mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def diagram(text: str) -> tuple[str, str]:
    """A Mermaid diagram as SVG, and what it says for those who don't see it. Raises ValueError if it can't be drawn."""
    described = re.search(r"^\s*accDescr: (.+)\n", text, re.MULTILINE)
    if not described:
        raise ValueError("This diagram has no line `accDescr: …`: say there what it shows.")
    try:
        return mmdr.render(re.sub(r"^\s*acc(Title|Descr): .+\n", "", text, flags=re.MULTILINE)).svg(), described[1]
    except ValueError as error:
        raise ValueError(f"Mermaid cannot draw this diagram: {error}") from None


class Mermaid(SphinxDirective):
    """A diagram; its description (accDescr) becomes its label."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        try:
            svg, label = diagram("\n".join(self.content))
        except ValueError as error:
            raise self.error(str(error)) from None
        # Its ids would otherwise be the same in every diagram.
        svg = svg.replace("merman", f"diagram-{self.env.new_serialno('diagram')}")
        svg = re.sub(r"max-width: ?([\d.]+px)", r"max-width: \1; min-width: min(40rem, \1)", svg, count=1)
        label = html.escape(label)
        drawn = f'<div class="diagram" role="img" aria-label="{label}">{svg}</div>'
        return [nodes.raw("", f'<figure class="course-figure">{drawn}{caption(label)}</figure>', format="html")]


def caption(label: str) -> str:
    """What a figure shows, for those who see it; screen readers have it as the figure's label already."""
    return f'<figcaption aria-hidden="true">{label}</figcaption>'


def captioned(app: Sphinx, page: nodes.document, name: str) -> None:
    """Make a figure of each image, with its alt text as the caption; an image within a sentence stays there."""
    for image in list(page.findall(nodes.image)):
        alone = isinstance(image.parent, nodes.paragraph) and len(image.parent.children) == 1
        if not image.get("alt") or (isinstance(image.parent, nodes.TextElement) and not alone):
            continue
        label = html.escape(image["alt"])
        start, end = '<figure class="course-figure"><div>', f"</div>{caption(label)}</figure>"
        figure = [nodes.raw("", start, format="html"), image.copy(), nodes.raw("", end, format="html")]
        (image.parent if alone else image).replace_self(figure)


def titled(app: Sphinx, page: nodes.document, name: str) -> None:
    """Set what an exercise's heading says besides its title (stars, how essential, minutes) apart, in small letters."""
    for title in page.findall(nodes.title):
        text, about = title.children[-1] if title.children else None, ""
        if isinstance(text, nodes.Text):
            said, _, about = text.astext().partition("\u00a0")
        if about:
            about = re.sub(r"(\d) minutes", "\\1\u00a0minutes", " ".join(about.replace("\u00a0", " ").split()))
            title.replace(text, [nodes.Text(said), nodes.inline("", about, classes=["course-about"])])


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("native", (inline, None), (block, None))
    app.add_directive("mermaid", Mermaid)
    app.connect("doctree-resolved", captioned)
    app.connect("doctree-resolved", titled)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

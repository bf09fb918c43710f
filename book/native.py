"""Formulas as MathML and Mermaid's diagrams as SVG: browsers draw both by themselves, without a script."""

import html
import re
from typing import Any, Literal

import mmdr
from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


def mathml(formula: str, display: Literal["inline", "block"]) -> str:
    return convert(formula, display=display).replace(r"\_", "_")  # latex2mathml leaves the backslash within \text


def inline(self: Any, node: nodes.math) -> None:
    self.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def block(self: Any, node: nodes.math_block) -> None:
    self.body.append(f'<div class="formula">{mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


class Mermaid(SphinxDirective):
    """A diagram; what it says for those who do not see it (accDescr) becomes its label."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        text = "\n".join(self.content)
        described = re.search(r"^\s*accDescr: (.+)\n", text, re.MULTILINE)
        if not described:
            raise self.error("This diagram has no line `accDescr: …`: say there what it shows.")
        try:
            svg = mmdr.render(re.sub(r"^\s*acc(Title|Descr): .+\n", "", text, flags=re.MULTILINE)).svg()
        except ValueError as error:
            raise self.error(f"Mermaid cannot draw this diagram: {error}") from None
        svg = svg.replace(
            "merman", f"diagram-{self.env.new_serialno('diagram')}"
        )  # its ids, else alike in every diagram
        label = html.escape(described[1])
        return [nodes.raw("", f'<div class="diagram" role="img" aria-label="{label}">{svg}</div>', format="html")]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("native", (inline, None), (block, None))
    app.add_directive("mermaid", Mermaid)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""Controls above a figure that follows them. Where widgets don't run, the figure alone is shown as a picture."""

from __future__ import annotations

import gc
import html
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ipywidgets
from matplotlib.figure import Figure

from course_utils.plots import DATA, styled, to_html

# The picture is the output before the widget; where the widget is there, it would show the same twice.
_STYLE = (
    "<style>.jp-OutputArea-child:has(+ .jp-OutputArea-child .course-explorer){display:none}"
    ".course-explorer{max-width:56rem}.course-controls{flex-flow:row wrap;gap:0.2rem 1.2rem}"
    ".course-stale{opacity:0.35}"
    # JupyterLab's handles are white on white in the light theme.
    f".course-explorer .noUi-handle{{background:{DATA};border:1px solid var(--jp-ui-font-color1)}}"
    ".course-explorer [disabled] .noUi-handle{opacity:0.35}</style>"
)

# JupyterLab takes arrows and letters for shortcuts of its own, also from a list that has the focus, unless that says no
# (https://github.com/jupyter-widgets/ipywidgets/issues/3912). The script runs before its element has a place.
_OWN_KEYS = """\
setTimeout(() => element.closest?.(".jp-OutputArea")?.addEventListener("focusin", (event) => {
  event.target.setAttribute("data-lm-suppress-shortcuts", "true");
}));
"""


@dataclass(frozen=True)
class Picture:
    """A figure and its ``finding``: what it shows and what follows from it, in a sentence or two."""

    figure: Figure
    finding: str


class Impossible(ValueError):
    """These settings have no picture; the message says which and what to do. The last picture stays, faded."""


class Explorer:
    """A figure that follows its controls. A cell shows it by ending with it.

    ``draw`` is called with the controls' values by name and returns a :class:`Picture`, or raises
    :class:`Impossible`. It depends on nothing else, so the same settings give the same picture. ``rows`` groups
    the controls' names into rows; without it, all are in one row that wraps.

    ``picture`` is the current picture, ``problem`` the reason why the settings have none ("" if they do).
    """

    def __init__(
        self,
        draw: Callable[..., Picture],
        controls: Mapping[str, ipywidgets.Widget],
        *,
        rows: Sequence[Sequence[str]] | None = None,
    ) -> None:
        self._draw, self.controls, self.problem = draw, dict(controls), ""
        self.picture = draw(**self.values)
        self._figure, self._finding = ipywidgets.HTML(), ipywidgets.HTML()
        boxes = []
        for names in rows or [list(self.controls)]:
            row = ipywidgets.HBox([self.controls[name] for name in names])
            row.add_class("course-controls")
            boxes.append(row)
        self.panel = ipywidgets.VBox([*boxes, self._figure, self._finding])
        self.panel.add_class("course-explorer")
        for control in self.controls.values():
            control.observe(self._follow, "value")
        self._show()

    @property
    def values(self) -> dict[str, Any]:
        """The controls' values by name."""
        return {name: control.value for name, control in self.controls.items()}

    def _follow(self, _: object) -> None:
        # A full collection of a kernel's objects takes longer than a picture: it can wait until the picture is sent.
        collecting = gc.isenabled()
        gc.disable()
        try:
            self._redraw()
        finally:
            if collecting:
                gc.enable()

    def _redraw(self) -> None:
        try:
            self.picture, self.problem = self._draw(**self.values), ""
        except Impossible as problem:
            self.problem = f"{problem}"
        except Exception as error:
            self.problem = f"{type(error).__name__}: {error}"
            self._show("course-explorer-error")
            raise
        self._show()

    def _show(self, mark: str = "") -> None:
        if self.problem:
            self._figure.add_class("course-stale")
            text = f"<p role='alert' class='{mark}'>✗ {html.escape(self.problem)}</p>"
        else:
            self._figure.remove_class("course-stale")
            self._figure.value = _STYLE + to_html(self.picture.figure, alt=self.picture.finding)
            text = f"<p role='status' aria-live='polite'>{html.escape(self.picture.finding)}</p>"
        self._finding.value = text

    def png(self) -> bytes:
        """The picture on white, for pages without widgets."""
        buffer = io.BytesIO()
        with styled():
            self.picture.figure.savefig(buffer, format="png", dpi=96, facecolor="white", metadata={"Software": None})
        return buffer.getvalue()

    def _ipython_display_(self) -> None:
        from IPython.display import display

        finding = self.picture.finding
        display({"application/javascript": _OWN_KEYS}, raw=True)  # type: ignore[no-untyped-call]
        display({"image/png": self.png(), "text/plain": finding}, metadata={"image/png": {"alt": finding}}, raw=True)  # type: ignore[no-untyped-call]
        display(self.panel)  # type: ignore[no-untyped-call]

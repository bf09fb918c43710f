"""An explorer in a notebook: the page asks, the kernel draws."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

Frames = Callable[..., dict[str, Any]]


# The picture is the output before the widget. Where the widget is alive, this hides the picture, which would show the
# same twice; where it isn't (after a restart of JupyterLab, or in an export), the widget shows nothing.
_ONE_OF_BOTH = (
    ".jp-OutputArea-child:has(.course-still):has(+ .jp-OutputArea-child .course-live){display:none}"
    ".jp-OutputArea-child:has(.course-still)+.jp-OutputArea-child:has(.jupyter-widgets,.jp-RenderedText)"
    ":not(:has(.course-live)){display:none}"
)


@cache
def text(name: str) -> str:
    """A file beside this one."""
    return files("course_utils.explorers").joinpath(name).read_text(encoding="utf-8")


@cache
def _widget() -> Any:
    import anywidget
    import traitlets

    class Live(anywidget.AnyWidget):
        """The page's half is `explorer.js`."""

        _esm = text("explorer.js")
        _css = text("explorer.css")
        frame = traitlets.Dict().tag(sync=True)

        def __repr__(self) -> str:
            return "an explorer"  # not where it is in memory: a second run of a notebook shows the same

    return Live


def widget(first: dict[str, Any], frame: Frames) -> Any:
    """An explorer as a Jupyter widget: its first frame, and the `Explorer.frame` that makes the others."""
    made = _widget()(frame=first)
    made.add_class("course-live")

    def answer(live: Any, message: dict[str, Any], buffers: object) -> None:
        # A full collection of a kernel's objects takes longer than a frame: it can wait until the frame is sent.
        collecting = gc.isenabled()
        gc.disable()
        try:
            asked = {name: message[name] for name in ("state", "moved", "width") if name in message}
            live.send({"number": message.get("number"), "frame": frame(**asked)})
        except Exception as error:
            live.send({"number": message.get("number"), "error": f"{type(error).__name__}: {error}"})
            raise
        finally:
            if collecting:
                gc.enable()

    made.on_msg(answer)
    return made


def display(still: str, frame: Frames) -> None:
    """Show an explorer's picture, and the explorer itself where widgets run."""
    import IPython.display as ipython

    first = frame()
    page = f"<style>{text('explorer.css')}{_ONE_OF_BOTH}</style>{still}"
    ipython.display({"text/html": page, "text/plain": first["finding"]}, raw=True)  # type: ignore[no-untyped-call]
    ipython.display(widget(first, frame))  # type: ignore[no-untyped-call]

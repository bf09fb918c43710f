"""How long the explorers take to respond: from moving a control to the new picture's text, in this process.

Run: python benchmarks/explorers.py

A seeded random walk over each explorer's controls. A browser adds the round trip and the
rendering of the SVG, a few hundredths of a second. The target is 0.3 s on two cores.
"""

from __future__ import annotations

import importlib
import pkgutil
import random
import statistics
import sys
import time

import ipywidgets
from rich.console import Console
from rich.table import Table

from course_utils import widgets
from course_utils.widgets.explorer import Explorer

MOVES = 200


def controls(widget: ipywidgets.Widget) -> list[ipywidgets.Widget]:
    """The controls in a widget that a reader can move."""
    if isinstance(widget, ipywidgets.Box):
        return [control for child in widget.children for control in controls(child)]
    toggles = (ipywidgets.Checkbox, ipywidgets.ToggleButton, ipywidgets.ToggleButtons)
    sliders = (ipywidgets.IntSlider, ipywidgets.FloatSlider, ipywidgets.FloatLogSlider, ipywidgets.SelectionSlider)
    return [widget] if isinstance(widget, (*toggles, *sliders, ipywidgets.Dropdown)) else []


def move(control: ipywidgets.Widget, chance: random.Random) -> None:
    """Give a control another value."""
    if isinstance(control, (ipywidgets.Checkbox, ipywidgets.ToggleButton)):
        control.value = not control.value
    elif isinstance(control, (ipywidgets.Dropdown, ipywidgets.SelectionSlider, ipywidgets.ToggleButtons)):
        control.index = chance.randrange(len(control.options))
    else:
        low, high = control.min, control.max
        if isinstance(control, ipywidgets.FloatLogSlider):
            low, high = control.base**low, control.base**high
        value = chance.uniform(low, high)
        control.value = round(value) if isinstance(control, ipywidgets.IntSlider) else value


def walk(explorer: Explorer, chance: random.Random) -> list[float]:
    """Seconds from each move to the picture or the words below it, whichever comes last."""
    took: list[float] = []
    shown = [0.0]
    for part in explorer.panel.children[-2:]:
        part.observe(lambda _: shown.append(time.perf_counter()), "value")
    while len(took) < MOVES:
        there = [c for c in controls(explorer.panel) if not c.disabled and c.layout.display != "none"]
        start = time.perf_counter()
        move(chance.choice(there), chance)
        if shown[-1] > start:
            took.append(shown[-1] - start)
    return took


def main() -> int:
    table = Table("explorer", "half within", "95 % within", "slowest")
    for module in pkgutil.iter_modules(widgets.__path__):
        found = importlib.import_module(f"{widgets.__name__}.{module.name}")
        if hasattr(found, "explore"):
            took = sorted(walk(found.explore(), random.Random(0)))
            low, high = statistics.median(took), took[int(0.95 * len(took))]
            table.add_row(module.name, f"{low:.3f} s", f"{high:.3f} s", f"{took[-1]:.3f} s")
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())

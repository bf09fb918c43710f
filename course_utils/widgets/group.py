"""Controls that set each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import ipywidgets
import traitlets


class Group(ipywidgets.VBox):  # type: ignore[misc]
    """Controls with one common value, which changes once whenever any of them is moved.

    A subclass says in ``settle`` what a move does to the other members, and what the value is afterwards.
    """

    value = traitlets.Any()

    def __init__(self, members: Mapping[str, ipywidgets.Widget], rows: Sequence[Sequence[ipywidgets.Widget]]) -> None:
        super().__init__()
        self.members, self._settling = dict(members), False
        boxes = [ipywidgets.HBox(row) for row in rows]
        for box in boxes:
            box.add_class("course-controls")
        self.children = boxes
        for name, member in self.members.items():
            member.observe(partial(self._moved, name), "value")
        self.move("")

    def settle(self, moved: str) -> Any:
        """Set the other members after ``moved`` (a name; "" at first), and return the value."""
        raise NotImplementedError

    def move(self, name: str) -> None:
        """Settle as if the member with this name had been moved by hand."""
        self._settling = True
        try:
            value = self.settle(name)
        finally:
            self._settling = False
        self.value = value

    def _moved(self, name: str, _: object) -> None:
        if not self._settling:
            self.move(name)

"""An explorer's settings, its controls, and the frame made from them: plain data, the same wherever it is computed."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, TypeVar

from course_utils.explorers.drawing import Drawing
from course_utils.napkin.lines import Line, as_table
from course_utils.units import compared, parse, takes_prefix

T = TypeVar("T")

WIDE, NARROW = 760, 380  # CSS pixels; a page narrower than `WIDE` shows the narrow drawing
_LINES = '<details class="course-lines"><summary>Every number, with its formula and its sources</summary>'
ASLEEP = "This is a picture of the initial settings. Run this cell to use the controls."


class Impossible(ValueError):
    """These settings can't be drawn. The last picture stays, faded.

    ``str(error)`` says what is wrong and what to do; ``control`` names the control that is marked.
    """

    def __init__(self, problem: str, control: str = "") -> None:
        super().__init__(problem)
        self.control = control


@dataclass(frozen=True)
class Picture:
    """A drawing, the ``title`` that states its result in numbers, and the ``finding``: what follows, in a sentence.

    ``lines`` of a plan are shown below it, each with its formula and its sources.
    """

    title: str
    drawing: Drawing
    finding: str
    lines: tuple[Line, ...] = ()


@dataclass(frozen=True)
class Control:
    """A control as the page shows it. ``value`` is the chosen option's words, the text, or whether a switch is on."""

    kind: str  # "slider", "choice", "switch", "text"
    name: str
    label: str
    value: str | bool
    options: tuple[str, ...] = ()
    row: int = 0
    play: int = 0  # of a slider that can play: milliseconds per value
    hint: str = ""
    default: str | bool = ""
    entered: bool = False  # of a text: it counts once it's entered, not at each letter


class Panel:
    """Gives an explorer the settings that it asks for, and remembers them: these are the controls.

    Which controls there are, and what they offer, can depend on what was answered before:

        card = panel.choice("card", CARDS, "H100 SXM")
        dtype = panel.choice("dtype", DTYPES[card], "bfloat16")

    A setting that isn't offered (any more) becomes the default; ``replaced`` says so where nothing was moved, so that
    it came with the page's address. ``width`` is the drawing's, in CSS pixels; ``moved`` names the control that
    was moved last ("" at first).
    """

    def __init__(self, state: Mapping[str, Any], moved: str = "", width: int = WIDE) -> None:
        self._state, self.moved, self.width = state, moved, width
        self.controls: dict[str, Control] = {}
        self.replaced: dict[str, str] = {}
        self.kept: dict[str, str | bool] = {}
        self._row = 0

    @property
    def narrow(self) -> bool:
        return self.width < WIDE

    def row(self) -> None:
        """Continue in a new row of controls."""
        self._row += 1

    def choice(
        self, name: str, options: Mapping[str, Any] | Sequence[str], default: str, *, label: str = "", hint: str = ""
    ) -> Any:
        """One of ``options``: their words, or what these stand for in a mapping. ``default`` is given in words."""
        words = tuple(options)
        default = default if default in words else words[0]
        chosen = self._chosen(name, words, default)
        self._add(Control("choice", name, label or name, chosen, words, self._row, hint=hint, default=default))
        return options[chosen] if isinstance(options, Mapping) else chosen

    def slider(
        self,
        name: str,
        values: Sequence[T],
        default: T,
        words: Callable[[T], str] = str,
        *,
        label: str = "",
        play: int = 0,
        hint: str = "",
    ) -> T:
        """One of ``values``, which are in order and each differ in their ``words``. A missing default is the first."""
        said = {words(value): value for value in values}
        if len(said) < len(values):
            raise ValueError(f"two values of {name!r} have the same words")
        first = words(default) if words(default) in said else next(iter(said))
        chosen = self._chosen(name, tuple(said), first)
        self._add(Control("slider", name, label or name, chosen, tuple(said), self._row, play, hint, first))
        return said[chosen]

    def switch(self, name: str, default: bool = False, *, label: str = "", hint: str = "") -> bool:
        """Whether it is on."""
        on = self._state.get(name, default)
        if not isinstance(on, bool):
            self._replace(name, on, "on" if default else "off")
            on = default
        self._add(Control("switch", name, label or name, on, (), self._row, hint=hint, default=default))
        return on

    def text(self, name: str, default: str, *, label: str = "", hint: str = "", entered: bool = False) -> str:
        """What was written, at most 200 characters of it: at each letter, or only once it is ``entered``."""
        text = self._written(name, default)
        self._add(
            Control("text", name, label or name, text, (), self._row, hint=hint, default=default, entered=entered)
        )
        return text

    def memory(self, name: str, default: str) -> str:
        """A setting without a control of its own, which only `put` sets."""
        text = self._written(name, default)
        self._add(Control("memory", name, name, text))
        return text

    def keep(self, besides: Sequence[str] = ()) -> None:
        """Remember settings that aren't asked for now, so that they come back with their controls."""
        self.kept = {
            name: value for name, value in self._state.items() if isinstance(value, str | bool) and name not in besides
        }

    def pressed(self, name: str) -> str:
        """What a button in the drawing that sets ``name`` has just set, or ""; it's forgotten at once."""
        text = self._written(name, "") if self.moved == name else ""
        self._add(Control("memory", name, name, ""))
        return text

    def dragged(self, name: str) -> tuple[float, float] | None:
        """Where the handle that sets ``name`` has just been dragged, in the drawing's coordinates, or None."""
        place = self.pressed(name)
        if not place:
            return None
        x, y = map(float, place.split())
        return x, y

    def put(self, name: str, value: str | bool) -> None:
        """Set a control that has been asked for already, as if by hand."""
        self.controls[name] = replace(self.controls[name], value=value)

    def _written(self, name: str, default: str) -> str:
        text = self._state.get(name, default)
        return text[:200] if isinstance(text, str) else default

    def _chosen(self, name: str, words: tuple[str, ...], default: str) -> str:
        chosen = self._state.get(name, default)
        if isinstance(chosen, str) and chosen in words:
            return chosen
        self._replace(name, chosen, default)
        return default

    def _replace(self, name: str, unknown: object, default: str) -> None:
        if not self.moved:
            self.replaced[name] = f"{str(unknown)[:40]!r} isn't offered; shown: {default}"

    def _add(self, control: Control) -> None:
        if control.name in self.controls:
            raise ValueError(f"{control.name!r} is asked for twice")
        self.controls[control.name] = control


@dataclass(frozen=True)
class Question:
    """A prediction that belongs to an explorer: ``what`` it is about, the ``answer``, and the reader's ``guess``.

    ``asks`` is the whole question, which can be understood without the lecture's text.
    """

    what: str
    answer: float
    unit: str
    guess: float | None = None
    asks: str = ""

    def put(self, panel: Panel) -> float | None:
        """The reader's guess. A reader who has made none yet is asked for one, above everything; then it's None.

        Raises:
            Impossible: what the reader entered isn't a number.
        """
        if self.guess is not None:
            return self.guess
        text = panel.text(
            "guess",
            "",
            label=f"Guess first: {self.asks or self.what}",
            hint=f"{self.unit} (optional)",
            entered=True,
        )
        panel.row()
        if not text.strip():
            return None
        try:
            guess = parse(text, self.unit) if takes_prefix(self.unit) else parse(text.strip().removesuffix(self.unit))
            if not math.isfinite(guess):
                raise ValueError(f"{text!r} is not finite; expected a number such as 0.4 or 15e12")
        except ValueError as problem:
            raise Impossible(f"{problem}", "guess") from None
        return guess

    def reply(self, guess: float | None) -> str:
        """The answer, and how the guess compares with it."""
        return compared(self.what[:1].upper() + self.what[1:], guess, self.answer, self.unit)


@dataclass(frozen=True)
class Explorer:
    """``show`` asks a `Panel` for its settings and returns a `Picture`. A cell displays the explorer by ending with it.

    ``name`` is the module below ``course_utils.explorers`` whose function ``explore`` makes the same explorer from
    ``arguments``, which are plain data: that's how the web book makes it again in the reader's page.
    """

    name: str
    show: Callable[[Panel], Picture]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    question: Question | None = None

    def predicted(self, what: str, asks: str) -> Explorer:
        """This explorer, which says how the reader's guess compares; ``what`` as for `predict.reconcile`.

        A reader who made no guess is asked for one, with the whole question ``asks``, before the picture shows. The
        explorer should begin with the question's settings, so that this picture has the answer. If `reconcile` hasn't
        run, the explorer is as before, so its cell also runs alone.
        """
        from course_utils import predict  # not in the reader's page, which gets the question with the arguments

        found = predict.asked(what)
        if found is None:
            return self
        guess, answer, unit = found
        return replace(self, question=Question(what, answer, unit, guess, asks))

    def frame(self, state: Mapping[str, Any] | None = None, moved: str = "", width: int = WIDE) -> dict[str, Any]:
        """What the page shows for ``state``, a value for each control's name: plain data that JSON can hold.

        The frame holds ``controls`` and their ``state``; ``title``, ``svg`` and ``finding``; the answer to a question
        and how the ``guess`` compares, and whether it's still ``asking`` for one; what to say where a setting was
        ``replaced``; and, if these settings can't be drawn, the ``problem`` and the control ``at`` which it arose.
        """
        panel = Panel(state or {}, moved, NARROW if width < WIDE else WIDE)
        frame: dict[str, Any] = {
            "title": "",
            "svg": "",
            "finding": "",
            "guess": "",
            "lines": "",
            "problem": "",
            "at": "",
        }
        guess = None
        try:
            guess = self.question.put(panel) if self.question else None
            picture = self.show(panel)
        except Impossible as problem:
            frame |= {"problem": f"{problem}", "at": problem.control}
        else:
            frame |= {"title": picture.title, "finding": picture.finding, "svg": picture.drawing.svg(picture.finding)}
            frame["lines"] = as_table(picture.lines)
        frame["guess"] = self.question.reply(guess) if self.question else ""
        frame["asking"] = self.question is not None and guess is None
        frame["replaced"] = panel.replaced
        shown = [dict(vars(control)) for control in panel.controls.values() if control.kind != "memory"]
        for control in shown:
            control["options"] = list(control["options"])
        if frame["problem"]:  # settings that weren't asked for stay as they were
            panel.keep()
        found = {name: control.value for name, control in panel.controls.items()}
        return frame | {"controls": shown, "state": panel.kept | found}

    def described(self) -> dict[str, Any]:
        """Plain data from which `load` makes the same explorer."""
        question = self.question and dict(vars(self.question))
        return {"name": self.name, "arguments": dict(self.arguments), "question": question}

    def still(self) -> str:
        """The first picture as HTML, complete without a script. The book's script adds the controls in place."""
        wide, narrow = self.frame(), self.frame(width=NARROW)
        described = html.escape(json.dumps(self.described()))
        first = html.escape(json.dumps({**wide, "svg": "", "lines": ""}))  # the page has both
        return (
            f'<figure class="course-explorer course-still" data-explorer="{described}" data-frame="{first}">'
            '<div class="course-panel"></div>'
            + (f'<p class="course-guess">{html.escape(wide["guess"])}</p>' if wide["guess"] else "")
            + f'<p class="course-title">{html.escape(wide["title"])}</p>'
            f'<div class="course-drawing course-wide">{wide["svg"]}</div>'
            f'<div class="course-drawing course-narrow">{narrow["svg"]}</div>'
            f'<p class="course-finding">{html.escape(wide["finding"])}</p>'
            + (f"{_LINES}<div>{wide['lines']}</div></details>" if wide["lines"] else "")
            + f'<p class="course-wake">{ASLEEP}</p></figure>'
        )

    def _ipython_display_(self) -> None:
        from course_utils.explorers import live

        live.display(self.still(), self.frame)


def load(name: str, arguments: Mapping[str, Any], question: Mapping[str, Any] | None = None) -> Explorer:
    """The explorer that `Explorer.described` describes."""
    explorer: Explorer = import_module(f"course_utils.explorers.{name}").explore(**arguments)
    return replace(explorer, question=Question(**question)) if question else explorer

"""Move an explorer's controls in a browser, in JupyterLab or in the book."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from course_utils.explorers.explorer import Explorer, load

if TYPE_CHECKING:  # unit tests use what needs no browser
    from playwright.sync_api import Locator, Page

WAIT = 60_000  # ms for one answer: the first in a page loads Python
# From here on, every answer is kept with what was asked. An explorer that waits for a guess is asked to go on.
LISTEN = """root => {
  root.heard = [];
  root.addEventListener("course-frame", (event) => root.heard.push(event.detail));
  root.querySelector(".course-tell")?.click();
}"""
# The latest answer, once there are more than `before`, and once `name` (if any) was asked with this value: the page may
# ask before all of a text is typed. The page says when an answer comes: asking it sixty times a second, as Playwright
# would, takes a processor from whoever computes the answer.
ANSWER = """(root, [before, patience, name, value]) => new Promise((resolve, reject) => {
  const found = () => {
    const last = root.heard.at(-1);
    if (root.heard.length > before && (!name || last.asked.state[name] === value)) resolve(last);
  };
  root.addEventListener("course-frame", found);
  setTimeout(() => reject(new Error("no answer: " + root.innerText)), patience);
  found();
})"""
VALUE = "control => control.type === 'checkbox' ? control.checked : control.value"
# Sets a control as if by hand.
PUT = """(control, value) => {
  control[control.type === "checkbox" ? "checked" : "value"] = value;
  for (const kind of ["input", "change"]) control.dispatchEvent(new Event(kind)); // it listens to one of them
}"""
# How the page differs from its frame: the drawing, which is changed piece by piece, the texts, and the words that say a
# slider's value. "" if not at all.
SHOWN = """root => {
  for (const name of ["title", "finding", "guess"]) {
    const said = root.querySelector(`.course-${name}`).textContent;
    if (said !== root.frame[name]) return `${name}: ${said}\\n instead of \\n${root.frame[name]}`;
  }
  for (const { name, options } of root.frame.controls.filter(({ kind }) => kind === "slider")) {
    const input = root.querySelector(`input[name="${name}"]`);
    const said = [input.getAttribute("aria-valuetext"), input.parentElement.querySelector("output").textContent];
    const wanted = options[input.value];
    if (said.some((each) => each !== wanted)) return `${name}: ${said} instead of ${wanted}`;
  }
  const made = new DOMParser().parseFromString(root.frame.svg, "image/svg+xml").documentElement;
  const here = root.querySelector(".course-drawing svg").cloneNode(true);
  here.querySelector(".course-ghost")?.remove();
  const text = svg => new XMLSerializer().serializeToString(svg);
  const same = document.importNode(made, true);
  return same.isEqualNode(here) ? "" : text(here).slice(0, 2000) + "\\n instead of \\n" + text(same).slice(0, 2000);
}"""
# In JupyterLab, the picture that comes before an explorer says which one it is.
DESCRIBED = """root => (root.matches("[data-explorer]") ? root :
  root.closest(".jp-OutputArea").querySelector("[data-explorer]")).dataset.explorer"""

Move = tuple[str, dict[str, Any], dict[str, Any]]


def shown(root: Locator) -> Explorer:
    """The explorer that a page shows, made again here."""
    return load(**json.loads(root.evaluate(DESCRIBED)))


def reached(explorer: Explorer) -> dict[str, dict[str, str | bool]]:
    """Every control that can be moved, with the choices and switches that have to be set before it is there."""
    found: dict[str, dict[str, str | bool]] = {}

    def look(choices: dict[str, str | bool]) -> list[dict[str, Any]]:
        """Note the new controls; returns all of them if there are any."""
        frame = explorer.frame(choices)
        names = [c["name"] for c in frame["controls"] if len(c["options"]) != 1]
        if frame["problem"] or found.keys() >= set(names):
            return []
        for name in names:
            found.setdefault(name, choices)
        controls: list[dict[str, Any]] = frame["controls"]
        return controls

    waiting: list[dict[str, str | bool]] = [{}]
    for choices in waiting:
        for control in look(choices):
            options = [not control["value"]] if control["kind"] == "switch" else control["options"]
            if control["kind"] in ("choice", "switch"):
                waiting += [choices | {control["name"]: option} for option in options]
    return found


def moves(root: Locator, page: Page) -> Iterator[Move]:
    """Move every control by keyboard and by mouse; yields what was moved, what the page asked, and the answer to it.

    An answer that never comes fails. Each control is put back before the next one is moved. Buttons in the drawing are
    pressed both ways, a handle is dragged.
    """
    explorer = shown(root)
    root.scroll_into_view_if_needed()
    root.evaluate(LISTEN)

    def answer(what: str, act: Callable[[], object], name: str = "", value: str = "") -> Move:
        before = root.evaluate("root => root.heard.length")
        act()
        heard = root.evaluate(ANSWER, [before, WAIT, name, value])
        return what, heard["asked"], heard["answer"]

    def put(name: str, value: str | bool) -> Iterator[Move]:
        """Set a control as if by hand, unless it is set to this already."""
        control = root.locator(f":is(input, select)[name='{name}']")
        if control.evaluate(VALUE) != value:
            yield answer(f"{name} as before", lambda: control.evaluate(PUT, value))

    for name, choices in reached(explorer).items():
        before = []
        for each, option in choices.items():  # one may bring the next
            before.append((each, root.evaluate("(root, name) => root.frame.state[name]", each)))
            yield from put(each, option)
        control = root.locator(f":is(input, select)[name='{name}']")
        kind, first = control.evaluate("e => e.type"), control.evaluate(VALUE)
        control.focus()
        if kind == "range":
            end = int(control.get_attribute("max") or 0)
            step = "ArrowLeft" if int(control.input_value()) == end else "ArrowRight"
            yield answer(f"{name} by keyboard", lambda step=step: page.keyboard.press(step))
            for key in ("End", "Home"):
                goal = "0" if key == "Home" else str(end)
                if control.input_value() != goal:
                    yield answer(f"{name} by {key}", lambda key=key: page.keyboard.press(key))
            box = control.bounding_box()
            assert box is not None
            middle = {"x": 0.6 * box["width"], "y": box["height"] / 2}
            yield answer(f"{name} by mouse", lambda c=control, at=middle: c.click(position=at))
        elif kind == "select-one":
            here, count = control.evaluate("e => [e.selectedIndex, e.options.length]")
            up = "ArrowUp" if here else "ArrowDown"
            yield answer(f"{name} by keyboard", lambda key=up: page.keyboard.press(key))
            for index in {0, count - 1} - {int(control.evaluate("e => e.selectedIndex"))}:
                yield answer(f"{name} by mouse", lambda c=control, i=index: c.select_option(index=i))
        elif kind == "checkbox":
            yield answer(f"{name} by keyboard", lambda: page.keyboard.press("Space"))
            yield answer(f"{name} by mouse", lambda c=control: c.click())
        else:
            text = another(explorer, root.evaluate("root => root.frame"), name)
            control.select_text()
            yield answer(
                f"{name} by keyboard", lambda t=text: (page.keyboard.type(t), page.keyboard.press("Enter")), name, text
            )
            yield answer(f"{name}: nonsense", lambda c=control: (c.fill("½ of it"), page.keyboard.press("Enter")))
        yield from put(name, first)
        for each, value in reversed(before):
            yield from put(each, value)
    buttons = root.locator(".course-front [role=button]")
    for key in buttons.evaluate_all("all => all.map(each => each.dataset.key)"):
        button = root.locator(f".course-front [role=button][data-key='{key}']")
        yield answer(f"{key} by mouse", lambda b=button: b.click())
        yield answer(f"{key} by keyboard", lambda b=button: (b.focus(), page.keyboard.press("Enter")))
    for play in root.locator(".course-play").all():
        yield answer("play", lambda b=play: b.click())
        if "pause" in (play.get_attribute("aria-label") or ""):
            play.click()
    handle = root.locator(".course-front .course-handle")
    if handle.count():
        box = handle.bounding_box()
        assert box is not None
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

        def drag() -> None:
            page.mouse.move(x, y)
            page.mouse.down()
            page.mouse.move(x - 40, y + 20, steps=2)
            page.mouse.up()

        yield answer("a handle", drag)


def another(explorer: Explorer, frame: dict[str, Any], name: str) -> str:
    """A text that can stand in a field in place of what is there, and says something else."""
    text = frame["state"][name]
    numbers = [text[: n.start()] + f"{k}" + text[n.end() :] for n in re.finditer(r"\d+", text) for k in range(1, 10)]
    for other in ("2", f"2{text}", *numbers, text.replace(")", " 1)"), f"{2**22}", "queries"):
        answered = explorer.frame({**frame["state"], name: other}, name)
        shows = [[each[part] for part in ("svg", "finding", "guess", "lines")] for each in (frame, answered)]
        if not answered["problem"] and shows[0] != shows[1]:
            return other
    raise AssertionError(f"{explorer.name}: no text is known that {name!r} takes in place of {text!r}")

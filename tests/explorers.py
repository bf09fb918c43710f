"""Move an explorer's controls in a browser, in JupyterLab or in the book."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from playwright.sync_api import Locator, Page

WAIT = 60_000  # ms for one answer: the first in a page loads Python
# From here on, every answer is kept with what was asked; `moves` is how often the explorer was moved.
LISTEN = """root => {
  root.heard = [];
  root.addEventListener("course-frame", (event) => root.heard.push(event.detail));
}"""
# The latest answer, once there are more than `before`. The page says when one comes: asking it sixty times a second, as
# Playwright would, takes a processor from whoever computes the answer.
ANSWER = """(root, [before, patience]) => new Promise((resolve, reject) => {
  const found = () => root.heard.length > before && resolve(root.heard.at(-1));
  root.addEventListener("course-frame", found);
  setTimeout(() => reject(new Error("no answer: " + root.innerText)), patience);
  found();
})"""
# Sets a control as if by hand.
PUT = "(control, value) => { control.value = value; control.dispatchEvent(new Event('input')); }"
# How the drawing in the page differs from the one in the frame: a page is changed piece by piece. "" if not at all.
SHOWN = """root => {
  const made = new DOMParser().parseFromString(root.frame.svg, "image/svg+xml").documentElement;
  const here = root.querySelector(".course-drawing svg").cloneNode(true);
  here.querySelector(".course-ghost")?.remove();
  const text = svg => new XMLSerializer().serializeToString(svg);
  const same = document.importNode(made, true);
  return same.isEqualNode(here) ? "" : text(here).slice(0, 2000) + "\\n instead of \\n" + text(same).slice(0, 2000);
}"""


def moves(root: Locator, page: Page) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Move every control by keyboard and by mouse; yields what was moved, what the page asked, and the answer to it.

    An answer that never comes fails. Buttons in the drawing are pressed both ways, a handle is dragged.
    """
    root.scroll_into_view_if_needed()
    root.evaluate(LISTEN)
    last: dict[str, Any] = {}

    def answer(what: str, act: Any) -> tuple[str, dict[str, Any], dict[str, Any]]:
        nonlocal last
        before = root.evaluate("root => root.heard.length")
        act()
        heard = root.evaluate(ANSWER, [before, WAIT])
        last = heard["answer"]
        return what, heard["asked"], heard["answer"]

    names = root.locator(".course-control :is(input, select)").evaluate_all("all => all.map(each => each.name)")
    for name in names:
        control = root.locator(f":is(input, select)[name='{name}']")
        if not control.count():  # another control's move has taken it away
            continue
        kind, first = control.evaluate("e => e.type"), control.evaluate("e => e.value")
        control.focus()
        if kind == "range":
            end = int(control.get_attribute("max") or 0)
            if not end:
                continue
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
            count = control.locator("option").count()
            if count == 1:
                continue
            here = int(control.evaluate("e => e.selectedIndex"))
            yield answer(
                f"{name} by keyboard", lambda up=here > 0: page.keyboard.press("ArrowUp" if up else "ArrowDown")
            )
            for index in {0, count - 1} - {int(control.evaluate("e => e.selectedIndex"))}:
                yield answer(f"{name} by mouse", lambda c=control, i=index: c.select_option(index=i))
        elif kind == "checkbox":
            yield answer(f"{name} by keyboard", lambda: page.keyboard.press("Space"))
            yield answer(f"{name} by mouse", lambda c=control: c.click())
        else:
            before = control.input_value()
            yield answer(f"{name}: nonsense", lambda c=control: c.fill("½ of it"))
            yield answer(f"{name} as before", lambda c=control, text=before: c.fill(text))
        if last["problem"]:  # the next control moves from where there is a picture
            back = PUT if kind != "select-one" else PUT.replace("input", "change")
            yield answer(f"{name} as before", lambda c=control, v=first, put=back: c.evaluate(put, v))
    buttons = root.locator(".course-front [role=button]")
    for button in buttons.all()[:3]:
        yield answer("a button by mouse", lambda b=button: b.click())
        yield answer("a button by keyboard", lambda b=button: (b.focus(), page.keyboard.press("Enter")))
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

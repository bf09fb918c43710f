"""Firefox without a screen, driven through WebDriver BiDi: JSON over the websocket that Firefox itself opens.

Playwright drives only a Firefox of its own, and selenium needs a geckodriver; this needs the system's Firefox and
Jupyter's websocket-client. The protocol: https://w3c.github.io/webdriver-bidi
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import explorers
import websocket

from course_utils.explorers.explorer import Explorer

PROGRAM = shutil.which("firefox-esr") or shutil.which("firefox")
KEYS = {"ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014", "ArrowDown": "\ue015"}
KEYS |= {"End": "\ue010", "Home": "\ue011", "Enter": "\ue007", "Backspace": "\ue003"}
# No updates, no telemetry, no first page: nothing that asks another host.
PREFERENCES = {
    "app.normandy.enabled": False,
    "app.update.disabledForTesting": True,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage": "about:blank",
    "browser.startup.page": 0,
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "services.settings.server": "data:,#remote-settings-dummy/v1",
    "toolkit.telemetry.server": "data:,",
}


class Firefox:
    """One Firefox with one page. ``requests`` has the address of everything that the page asked for."""

    def __init__(self, home: Path) -> None:
        profile, log = home / "profile", home / "firefox.log"
        profile.mkdir()
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in PREFERENCES.items()]
        (profile / "user.js").write_text("".join(lines))
        assert PROGRAM is not None
        command = [PROGRAM, "--headless", "--no-remote", "--profile", str(profile), "--remote-debugging-port=0"]
        with log.open("w") as written:
            self._process = subprocess.Popen(
                command, env=os.environ | {"HOME": str(home)}, stdout=written, stderr=subprocess.STDOUT
            )
        self.requests: list[str] = []
        self._socket: websocket.WebSocket | None = None
        self._numbers = itertools.count(1)
        try:
            self._socket = websocket.create_connection(
                f"{self._address(log)}/session", timeout=2 * explorers.WAIT / 1000, suppress_origin=True
            )
            self.send("session.new", capabilities={})
            self.send("session.subscribe", events=["network.beforeRequestSent"])
            # The first page never has the focus, and its buttons take no keys.
            self._page = self.send("browsingContext.create", type="tab")["context"]
        except BaseException:
            self.stop()
            raise

    def _address(self, log: Path) -> str:
        for _ in range(600):
            for line in log.read_text().splitlines():
                if "WebDriver BiDi listening on" in line:
                    return line.split()[-1]
            assert self._process.poll() is None, f"Firefox did not start:\n{log.read_text()}"
            time.sleep(0.1)
        raise AssertionError(f"Firefox opened no websocket in 60 s:\n{log.read_text()}")

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result; what Firefox reports meanwhile is noted."""
        assert self._socket is not None
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            said = json.loads(self._socket.recv())
            if said.get("method") == "network.beforeRequestSent":
                self.requests.append(said["params"]["request"]["url"])
            if said.get("id") == number:
                assert said["type"] == "success", f"{method}: {said.get('message')}"
                result: dict[str, Any] = said["result"]
                return result

    def open(self, address: str) -> None:
        self.send("browsingContext.navigate", context=self._page, url=address, wait="complete")

    def call(self, function: str, *arguments: str | int) -> Any:
        """What a JavaScript function answers, or its promise, as JSON can say it."""
        said = self.send(
            "script.callFunction",
            functionDeclaration=f"async (...all) => JSON.stringify(await ({function})(...all)) ?? 'null'",
            arguments=[{"type": "string" if isinstance(each, str) else "number", "value": each} for each in arguments],
            target={"context": self._page},
            awaitPromise=True,
        )
        assert said["type"] == "success", said["exceptionDetails"]["text"]
        return json.loads(said["result"]["value"])

    def press(self, key: str) -> None:
        """Press a key and let go: one of `KEYS`, or a character."""
        value = KEYS.get(key, key)
        presses = [{"type": kind, "value": value} for kind in ("keyDown", "keyUp")]
        actions = [{"type": "key", "id": "keyboard", "actions": presses}]
        self.send("input.performActions", context=self._page, actions=actions)

    def click(self, x: int, y: int) -> None:
        """Press the left button of the mouse at a place in the window, and let go."""
        clicks: list[dict[str, Any]] = [{"type": "pointerMove", "x": x, "y": y}]
        clicks += [{"type": kind, "button": 0} for kind in ("pointerDown", "pointerUp")]
        actions = [{"type": "pointer", "id": "mouse", "actions": clicks}]
        self.send("input.performActions", context=self._page, actions=actions)

    def stop(self) -> None:
        if self._socket:
            self._socket.close()
        self._process.terminate()
        self._process.wait(timeout=30)


# All of these take an explorer's number in the page, and a selector of one of its parts.
_FIND = """const root = document.querySelectorAll('figure.course-explorer')[n];
  const part = root.querySelector(s);"""
_FOCUS = f"""(n, s) => {{
  {_FIND}
  part.scrollIntoView({{block: "center"}});
  part.focus();
  const {{left, top, width, height}} = part.getBoundingClientRect();
  return {{focused: document.activeElement === part, kind: part.type, value: ({explorers.VALUE})(part),
    place: part.selectedIndex, last: Number(part.max), across: Math.round(left + 0.6 * width),
    down: Math.round(top + height / 2)}};
}}"""
_ANSWER = f"""async (n, s, before) => {{
  {_FIND}
  const answer = await ({explorers.ANSWER})(root, [before, {explorers.WAIT}]);
  return [answer, ({explorers.SHOWN})(root)];
}}"""
Move = tuple[str, dict[str, Any], dict[str, Any], str]


def moves(firefox: Firefox, number: int, explorer: Explorer) -> Iterator[Move]:
    """Move every control of ``explorer``, the page's one with this ``number``, by keyboard and by mouse.

    Yields what was moved, what the page asked, the answer to it, and how the drawing in the page differs from it. Each
    control is put back before the next one is moved. A list is opened by the system, so it is moved by keyboard alone.
    """
    awake = "while (!root.querySelector('input, select')) await new Promise(done => setTimeout(done, 20));"
    firefox.call(f"async (n, s) => {{ {_FIND} {awake} ({explorers.LISTEN})(root); }}", number, "figure")

    def answer(what: str, act: Callable[[], object]) -> Move:
        before = firefox.call(f"(n, s) => {{ {_FIND} return root.heard.length; }}", number, "figure")
        act()
        heard, shown = firefox.call(_ANSWER, number, "figure", before)
        return what, heard["asked"], heard["answer"], shown

    def focus(selector: str) -> dict[str, Any]:
        found: dict[str, Any] = firefox.call(_FOCUS, number, selector)
        assert found["focused"], f"{selector} does not take the focus"
        return found

    def click(selector: str) -> None:
        here = focus(selector)
        firefox.click(here["across"], here["down"])

    def put(name: str, value: str | bool) -> Iterator[Move]:
        """Set a control as if by hand, unless it is set to this already."""
        selector = f":is(input, select)[name='{name}']"
        if focus(selector)["value"] != value:
            code = f"(n, s, value) => {{ {_FIND} ({explorers.PUT})(part, JSON.parse(value)); }}"
            yield answer(f"{name} as before", lambda: firefox.call(code, number, selector, json.dumps(value)))

    for name, choices in explorers.reached(explorer).items():
        before = []
        for each, option in choices.items():  # one may bring the next
            before.append((each, firefox.call(f"(n, s) => {{ {_FIND} return root.frame.state[s]; }}", number, each)))
            yield from put(each, option)
        selector = f":is(input, select)[name='{name}']"
        first = focus(selector)
        if first["kind"] == "range":
            step = "ArrowLeft" if int(first["value"]) == first["last"] else "ArrowRight"
            for key, goal in ((step, None), ("End", first["last"]), ("Home", 0)):
                if int(focus(selector)["value"]) != goal:
                    yield answer(f"{name} by {key}", partial(firefox.press, key))
            yield answer(f"{name} by mouse", partial(click, selector))
        elif first["kind"] == "select-one":
            key = "ArrowUp" if first["place"] else "ArrowDown"
            yield answer(f"{name} by {key}", partial(firefox.press, key))
        elif first["kind"] == "checkbox":
            yield answer(f"{name} by space", lambda: firefox.press(" "))
            yield answer(f"{name} by mouse", partial(click, selector))
        else:
            firefox.press("End")
            yield answer(f"{name} by 0", lambda: (firefox.press("0"), firefox.press("Enter")))
            yield answer(f"{name} by Backspace", lambda: (firefox.press("Backspace"), firefox.press("Enter")))
        yield from put(name, first["value"])
        for each, value in reversed(before):
            yield from put(each, value)
    for selector in (".course-front [role=button]", ".course-play"):
        if firefox.call(f"(n, s) => {{ {_FIND} return part !== null; }}", number, selector):
            focus(selector)
            yield answer(f"{selector} by Enter", partial(firefox.press, "Enter"))

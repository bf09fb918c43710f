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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import explorers
import websocket

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
                f"{self._address(log)}/session", timeout=60, suppress_origin=True
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

    def stop(self) -> None:
        if self._socket:
            self._socket.close()
        self._process.terminate()
        self._process.wait(timeout=30)


# All of these take an explorer's number in the page, and a selector of one of its parts, and which of those it is.
_FIND = "const root = document.querySelectorAll('figure.course-explorer')[n]; const part = root.querySelectorAll(s)[k];"
_FOCUS = f"""(n, s, k) => {{
  {_FIND}
  part.scrollIntoView({{block: "center"}});
  part.focus();
  return {{focused: document.activeElement === part, kind: part.type, value: part.value, place: part.selectedIndex,
    last: Number(part.max), options: part.length}};
}}"""
_ANSWER = f"""async (n, before) => {{
  const [s, k] = ["figure", 0];
  {_FIND}
  for (let tick = 0; root.heard.length <= before; tick += 1) {{
    if (tick * 20 > {explorers.WAIT}) throw new Error("no answer: " + root.innerText);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }}
  return [root.heard.at(-1), ({explorers.SHOWN})(root)];
}}"""


def moves(firefox: Firefox, number: int) -> Iterator[tuple[str, dict[str, Any], dict[str, Any], str]]:
    """Move every control of the page's explorer ``number`` by keyboard, also what is drawn.

    Yields what was moved, what the page asked, the answer to it, and how the drawing in the page differs from it.
    """
    awake = "while (!root.querySelector('input, select')) await new Promise(done => setTimeout(done, 20));"
    firefox.call(f"async (n, s, k) => {{ {_FIND} {awake} ({explorers.LISTEN})(root); }}", number, "figure", 0)

    def pressed(what: str, key: str) -> tuple[str, dict[str, Any], dict[str, Any], str]:
        before = firefox.call(f"(n, s, k) => {{ {_FIND} return root.heard.length; }}", number, "figure", 0)
        firefox.press(key)
        heard, shown = firefox.call(_ANSWER, number, before)
        return f"{what} by {key}", heard["asked"], heard["answer"], shown

    names = firefox.call(f"(n, s, k) => {{ {_FIND} return [...root.querySelectorAll(s)].map(e => e.name); }}", number,
                         ".course-control :is(input, select)", 0)  # fmt: skip
    for name in names:
        selector = f":is(input, select)[name='{name}']"
        control = firefox.call(_FOCUS, number, selector, 0)
        assert control["focused"], f"{name} does not take the focus"
        if control["kind"] == "range":
            at_end = int(control["value"]) == control["last"]
            yield pressed(name, "ArrowLeft" if at_end else "ArrowRight")
            for key, goal in (("End", control["last"]), ("Home", 0)):
                if int(firefox.call(_FOCUS, number, selector, 0)["value"]) != goal:
                    yield pressed(name, key)
        elif control["kind"] == "select-one":
            if control["options"] > 1:  # there and back: what is there may not go with the other settings
                for key in ("ArrowUp", "ArrowDown") if control["place"] else ("ArrowDown", "ArrowUp"):
                    yield pressed(name, key)
        elif control["kind"] == "checkbox":
            yield pressed(name, " ")
            yield pressed(name, " ")
        else:
            firefox.press("End")
            yield pressed(name, "0")
            yield pressed(name, "Backspace")
    for selector in (".course-front [role=button]", ".course-play"):
        if firefox.call(f"(n, s, k) => {{ {_FIND} return part !== undefined; }}", number, selector, 0):
            assert firefox.call(_FOCUS, number, selector, 0)["focused"], f"{selector} does not take the focus"
            yield pressed(selector, "Enter")

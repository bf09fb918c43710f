"""A JupyterLab server for tests, as a student or an instructor starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Page

WAIT = 120_000  # ms


class Lab:
    """A running JupyterLab with no configuration but the environment's: on `folder`, or as `command` starts it.

    With ``warm`` its kernels are forks of a process that has PyTorch imported, where the system allows it.
    """

    def __init__(self, folder: Path, home: Path, command: Sequence[str] = (), *, warm: bool = False) -> None:
        self.log = home / "server.log"
        environ = {name: text for name, text in os.environ.items() if not name.startswith("JUPYTER")}
        if warm and sys.platform == "linux":
            environ["JUPYTER_DEFAULT_PROVISIONER_NAME"] = "warm"
        self.runtime = tempfile.TemporaryDirectory(prefix="lab-")  # a short path: the kernels' sockets lie there
        environ |= {"JUPYTER_CONFIG_DIR": str(home / "config"), "JUPYTER_DATA_DIR": str(home / "data")}
        environ |= {"JUPYTER_RUNTIME_DIR": self.runtime.name, "JUPYTERLAB_SETTINGS_DIR": str(home / "settings")}
        environ |= {"JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces")}
        command = command or [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={folder}"]
        command = [*command, "--no-browser", "--allow-root", "--port=0", "--LabApp.expose_app_in_browser=True"]
        command += ["--KernelManager.transport=ipc"]  # another process can take a port that a kernel was promised
        with self.log.open("w") as log:
            self.process = subprocess.Popen(command, env=environ, stdout=log, stderr=subprocess.STDOUT)
        self.url, self.token = self._address(Path(self.runtime.name) / f"jpserver-{self.process.pid}.json")

    def _address(self, written: Path) -> tuple[str, str]:
        for _ in range(600):
            assert self.process.poll() is None, f"JupyterLab did not start:\n{self.log.read_text()}"
            if written.exists() and (text := written.read_text()).endswith("}"):
                info = json.loads(text)
                return info["url"], info["token"]
            time.sleep(0.1)
        self.stop()
        raise AssertionError(f"JupyterLab wrote no address in 60 s:\n{self.log.read_text()}")

    def status(self, path: str) -> int:
        """HTTP status of a page of the server."""
        request = urllib.request.Request(self.url + path, headers={"Authorization": f"token {self.token}"})
        try:
            with urllib.request.urlopen(request) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    def open(self, page: Page, notebook: str) -> None:
        """Open `notebook` alone in `page` and wait until its kernel is ready."""
        page.goto(f"{self.url}lab/tree/{notebook}?reset&token={self.token}")
        self._wait(page)

    def open_next(self, page: Page, notebook: str) -> None:
        """The same in a page that has JupyterLab loaded, which takes a second in place of six; what is open closes."""
        page.evaluate("for (const widget of [...jupyterapp.shell.widgets('main')]) widget.dispose()")
        page.evaluate("async path => void await jupyterapp.commands.execute('docmanager:open', {path})", notebook)
        self._wait(page)

    def _wait(self, page: Page) -> None:
        page.locator(".jp-Notebook").wait_for(timeout=WAIT)
        page.locator("#jp-bottom-panel, .jp-StatusBar-Widget").get_by_text("| Idle").wait_for(timeout=WAIT)

    def validate(self, page: Page) -> str:
        """Press the notebook's Validate button; the text of the answer."""
        page.get_by_role("button", name="Validate").click()
        dialog = page.locator(".jp-Dialog").filter(has_text="Validation Results")
        dialog.wait_for(timeout=WAIT)
        text = dialog.inner_text()
        dialog.get_by_role("button").last.click()
        dialog.wait_for(state="detached")
        return text

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=30)
        self.runtime.cleanup()

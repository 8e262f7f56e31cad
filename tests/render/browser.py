"""A real browser for tests: Chromium over the DevTools protocol, on a pipe.

A pipe needs nothing but the browser: no driver, no port, no WebSocket library.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--remote-debugging-pipe",
)  # fmt: skip
_PATIENCE = 60  # seconds for one answer, on a machine that is busy
_TROUBLE = {"Runtime.exceptionThrown", "Log.entryAdded"}


def chromium() -> str:
    """Find the browser, or skip the test that wants it."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("chromium is not installed")
    return found


@contextmanager
def browser(folder: Path) -> Iterator[Page]:
    """Start a browser with an empty profile and give its one page."""
    hear, tell = os.pipe(), os.pipe()
    # The browser reads commands from descriptor 3 and writes to 4, whatever ours are called.
    start = f'exec "$@" 3<&{tell[0]} 4>&{hear[1]}'
    command = [chromium(), *_FLAGS, f"--user-data-dir={folder / 'profile'}", "about:blank"]
    child = subprocess.Popen(
        ["bash", "-c", start, "bash", *command],
        pass_fds=(tell[0], hear[1]),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(tell[0])
    os.close(hear[1])
    page = Page(hear[0], tell[1])
    try:
        page.attach()
        yield page
    finally:
        os.close(tell[1])
        os.close(hear[0])
        child.terminate()
        child.wait(_PATIENCE)


class Page:
    """One page: show a file, ask it in JavaScript, type and click as a person does."""

    def __init__(self, hear: int, tell: int) -> None:
        self._hear, self._tell = hear, tell
        self._rest = b""
        self._last = 0
        self._session: dict[str, str] = {}
        self.events: list[dict[str, Any]] = []

    def attach(self) -> None:
        """Take the page that is open, and listen to what goes wrong in it."""
        targets = self.send("Target.getTargets")["targetInfos"]
        target = next(each["targetId"] for each in targets if each["type"] == "page")
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = {"sessionId": attached["sessionId"]}
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return a command and wait for its answer."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters, **self._session}
        os.write(self._tell, json.dumps(message).encode() + b"\0")
        while True:
            heard = self._next()
            if heard.get("id") == self._last:
                assert "error" not in heard, heard
                return heard["result"]
            self.events.append(heard)

    def _next(self) -> dict[str, Any]:
        ends = monotonic() + _PATIENCE
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._hear], [], [], max(0, ends - monotonic()))
            assert ready, "the browser does not answer"
            piece = os.read(self._hear, 1 << 20)
            assert piece, "the browser has gone"
            self._rest += piece
        first, _, self._rest = self._rest.partition(b"\0")
        return json.loads(first)

    def show(self, path: Path, *, width: int = 1200, scheme: str = "light") -> None:
        """Open a file at that width, in that colour scheme, and wait until it is loaded."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        self.send("Emulation.setDeviceMetricsOverride", **size)
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.send("Emulation.setEmulatedMedia", features=[feature])
        self.events.clear()
        self.send("Page.navigate", url=path.as_uri())
        while not any(each.get("method") == "Page.loadEventFired" for each in self.events):
            self.events.append(self._next())

    def ask(self, script: str) -> Any:
        """Evaluate JavaScript and give its value."""
        answer = self.send(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self.send("Input.insertText", text=text)

    def press(self, key: str, code: int) -> None:
        """Press a key."""
        known = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        text = {"text": "\r"} if key == "Enter" else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", **known, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", **known)

    def trouble(self) -> list[dict[str, Any]]:
        """List errors, refused scripts and console messages since the page was opened."""
        return [
            each
            for each in self.events
            if each.get("method") in _TROUBLE or each.get("method") == "Runtime.consoleAPICalled"
        ]

    def requests(self) -> list[str]:
        """List what was asked for since the page was opened; a `data:` address holds its answer."""
        asked = [each for each in self.events if each.get("method") == "Network.requestWillBeSent"]
        addresses = [each["params"]["request"]["url"] for each in asked]
        return [address for address in addresses if not address.startswith("data:")]

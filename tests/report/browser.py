"""A headless Chromium, driven over the pipe of its debugging protocol: nothing but the standard library."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WAIT = 60.0  # seconds for an answer; a busy machine starts slowly
# The protocol's pipe is file descriptor 3 for what the browser reads, 4 for what it writes.
_START = (
    "import fcntl, os, sys; r, w = (fcntl.fcntl(int(n), fcntl.F_DUPFD, 10) for n in sys.argv[1:3]); "
    "os.dup2(r, 3); os.dup2(w, 4); os.execvp(sys.argv[3], sys.argv[3:])"
)


def find_browser() -> str | None:
    """A browser that runs here: some distributions install a stub that only names a package."""
    for name in NAMES:
        if path := shutil.which(name):
            done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=WAIT)
            if done.returncode == 0 and "Chrom" in done.stdout:
                return path
    return None


class Browser:
    def __init__(self, path: str, profile: Path) -> None:
        read, their_write = os.pipe()
        their_read, write = os.pipe()
        options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            f"--user-data-dir={profile}",
            "--remote-debugging-pipe",
        ]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, str(their_read), str(their_write), path, *options],
            pass_fds=(their_read, their_write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(their_read)
        os.close(their_write)
        self._read, self._write = read, write
        self._buffer = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def close(self) -> None:
        try:
            self.call("Browser.close")
            self._process.wait(timeout=10)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._read)
        os.close(self._write)

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        answer = self.wait_for(lambda m: m.get("id") == self._number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return dict(answer["result"])

    def wait_for(self, fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        end = time.monotonic() + WAIT
        while True:
            for message in self._messages(end):
                if "method" in message:
                    self.events.append(message)
                if fits(message):
                    return message

    def _messages(self, end: float) -> list[dict[str, Any]]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(end - time.monotonic(), 0))
            if not ready:
                raise RuntimeError("the browser does not answer")
            more = os.read(self._read, 1 << 20)
            if not more:
                raise RuntimeError(f"the browser ended ({self._process.poll()})")
            self._buffer += more
        first, _, self._buffer = self._buffer.partition(b"\0")
        return [json.loads(first)]

    def page(self, path: Path, *, dark: bool = False, width: int = 1100, height: int = 900) -> Page:
        return Page(self, path, dark, width, height)


class Page:
    """One file, opened in a tab of its own."""

    def __init__(self, browser: Browser, path: Path, dark: bool, width: int, height: int) -> None:
        self.browser = browser
        self.url = path.as_uri()
        self.target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        attached = browser.call("Target.attachToTarget", targetId=self.target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)
        self.scheme("dark" if dark else "light")
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        browser.call(
            "Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"]
        )
        self.open()

    def open(self) -> None:
        self.call("Page.navigate", url=self.url)
        self.browser.wait_for(
            lambda m: m.get("method") == "Page.loadEventFired" and m.get("sessionId") == self.session
        )

    def close(self) -> None:
        self.browser.call("Target.closeTarget", targetId=self.target)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self.browser.call(method, self.session, **parameters)

    def scheme(self, value: str) -> None:
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": value}])

    def run(self, script: str) -> Any:
        """The value of an expression (awaited), as by a person's click."""
        done = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True, userGesture=True
        )
        if "exceptionDetails" in done:
            raise RuntimeError(f"{script}: {done['exceptionDetails']}")
        return done["result"].get("value")

    def press(self, key: str, text: str = "") -> None:
        code = {"Tab": 9, "Enter": 13, "Escape": 27, "/": 191}.get(key, 0)
        common = {"key": key, "windowsVirtualKeyCode": code}
        if key == "Enter":
            text = "\r"
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def until(self, script: str) -> None:
        """Waits for the expression to be true."""
        end = time.monotonic() + WAIT
        while not self.run(script):
            assert time.monotonic() < end, f"never true: {script}"
            time.sleep(0.02)

    def of(self, method: str) -> list[dict[str, Any]]:
        mine = (e for e in self.browser.events if e.get("sessionId") == self.session)
        return [e["params"] for e in mine if e["method"] == method]

    def complaints(self) -> list[str]:
        """Everything the console would show in red: exceptions, errors, refusals of the page's policy."""
        out = [str(e["exceptionDetails"]) for e in self.of("Runtime.exceptionThrown")]
        out += [
            str(e["args"]) for e in self.of("Runtime.consoleAPICalled") if e["type"] in ("error", "assert")
        ]
        out += [e["entry"]["text"] for e in self.of("Log.entryAdded") if e["entry"]["level"] == "error"]
        return out

    def requests(self) -> list[str]:
        return [e["request"]["url"].partition("#")[0] for e in self.of("Network.requestWillBeSent")]

    def picture(self, path: Path, *, height: int | None = None) -> None:
        import base64

        clip = {}
        if height is not None:
            width = self.run("innerWidth")
            clip = {"clip": {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}}
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, **clip)
        path.write_bytes(base64.b64decode(shot["data"]))

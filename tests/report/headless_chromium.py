"""A headless Chromium, driven through its debugging pipe with nothing but the standard library."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

BINARY = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


class Chromium:
    """One page. ``events`` collects what the browser reported: console, exceptions, log entries, requests."""

    def __init__(self, width: int = 1280, height: int = 900) -> None:
        assert BINARY is not None
        self.profile = tempfile.mkdtemp(prefix="trainwreck-chromium-")
        to_read, self.to_write = os.pipe()
        self.to_read, from_write = os.pipe()

        def wire() -> None:
            # Chromium reads commands from 3 and writes answers to 4.
            one, two = os.dup(to_read), os.dup(from_write)
            os.dup2(one, 3)
            os.dup2(two, 4)

        self.process = subprocess.Popen(
            [BINARY, *FLAGS, f"--user-data-dir={self.profile}", f"--window-size={width},{height}", "about:blank"],
            preexec_fn=wire,
            close_fds=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(from_write)
        self.pending = b""
        self.number = 0
        self.events: list[dict[str, Any]] = []
        self.session: str | None = None
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(t["targetId"] for t in targets if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Chromium:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.to_write)
        os.close(self.to_read)
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and return its result; events that come meanwhile are kept."""
        self.number += 1
        message: dict[str, Any] = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next(60)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def open(
        self, path: Path, *, dark: bool = False, width: int = 1280, height: int = 900, script: bool = True
    ) -> None:
        """Open a file and wait until it has loaded."""
        self.events.clear()
        self.call("Emulation.setScriptExecutionDisabled", value=not script)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Page.navigate", url=path.resolve().as_uri())
        end = time.monotonic() + 30
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self._next(max(0.1, end - time.monotonic())))
        self.settle()

    def settle(self, seconds: float = 0.3) -> None:
        """Collect events for a little while."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            try:
                self.events.append(self._next(left))
            except TimeoutError:
                return

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression (this also works where the page's own scripts are off)."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))

    def complaints(self) -> list[str]:
        """Everything on the console, uncaught exceptions and refused loads."""
        wanted = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [json.dumps(e["params"])[:400] for e in self.events if e.get("method") in wanted]

    def requests(self) -> list[str]:
        """The addresses that were asked for, other than the page itself."""
        asked = [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return [url for url in asked[1:] if not url.startswith("data:")]

    def _next(self, seconds: float) -> dict[str, Any]:
        end = time.monotonic() + seconds
        while b"\0" not in self.pending:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.to_read], [], [], left)[0]:
                raise TimeoutError("chromium gave no answer")
            data = os.read(self.to_read, 1 << 20)
            if not data:
                raise RuntimeError("chromium ended")
            self.pending += data
        message, _, self.pending = self.pending.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer

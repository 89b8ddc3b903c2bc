"""A browser that a test drives over a pipe (the Chrome DevTools Protocol): it goes to pages, clicks, and measures."""

import json
import os
import select
import subprocess
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.checks.browser import OPTIONS, browser, environment
from tests.harness.wait import LIMIT_SECONDS, until

__all__ = ["BrowserSession", "browsing"]

_ANSWER_SECONDS = 60.0
_PHONE = 600  # screens that are narrower are phones


class BrowserSession:
    """One page of a browser. ``asked`` are the URLs that it has asked for, ``console`` what it has complained about."""

    def __init__(self, to_browser: Any, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._received = b""
        self._number = 0
        self._session = ""
        self.asked: list[str] = []
        self.console: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._call(f"{domain}.enable")

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._to.write(json.dumps(message).encode() + b"\0")
        self._to.flush()
        while (answer := self._next()).get("id") != self._number:
            pass
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._received:
            assert select.select([self._from], [], [], _ANSWER_SECONDS)[0], "the browser does not answer"
            part = os.read(self._from, 1_000_000)
            assert part, "the browser has ended"
            self._received += part
        text, _, self._received = self._received.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, method: str, params: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.asked.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.console.append(json.dumps(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.console.append(json.dumps(params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.console.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")

    def screen(self, width: int, height: int = 900, *, dark: bool = False) -> None:
        """Sets the size of the screen in pixels, and whether the user likes pages dark."""
        phone = width < _PHONE
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])

    def go(self, url: str) -> None:
        """Loads a page."""
        self._call("Page.navigate", url=url)
        self.loaded(url)

    def loaded(self, url: str) -> None:
        """Waits until the page at an address that begins with ``url`` is there."""
        here = f"document.readyState === 'complete' && location.href.startsWith({json.dumps(url)})"
        until(lambda: self.value(here), what=url)

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression on the page; None while the page is replaced by another."""
        answer = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        return answer["result"].get("value")

    def click(self, selector: str) -> None:
        """Clicks an element that must be there, as a user who sees it does."""
        found = f"document.querySelector({json.dumps(selector)})"
        assert self.value(f"{found}?.checkVisibility() ?? false"), f"nothing to click on: {selector}"
        self.value(f"{found}.click()")

    def press(self, key: str) -> None:
        """Presses a key of the keyboard."""
        code = {"Tab": 9, "Enter": 13}[key]
        for kind in ("rawKeyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "rawKeyDown" else {}
            self._call(
                "Input.dispatchKeyEvent", type="keyDown" if text else kind, key=key, code=key,
                windowsVirtualKeyCode=code, **text,
            )  # fmt: skip

    def picture(self, path: Path) -> None:
        """Writes the whole page into a PNG file, for people to look at."""
        size = self._call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 6000), "scale": 1}
        shot = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        path.write_bytes(b64decode(shot["data"]))


@contextmanager
def browsing(folder: Path) -> Iterator[BrowserSession]:
    """A browser with an empty profile in ``folder``, which is made if it is not there."""
    of = browser()
    folder.mkdir(exist_ok=True)
    read_end, to_browser = os.pipe()
    from_browser, write_end = os.pipe()

    def as_3_and_4() -> None:
        # First both above 4: one of them may be 3 or 4 itself.
        high = [os.dup2(end, 100 + number) for number, end in enumerate((read_end, write_end))]
        os.dup2(high[0], 3)
        os.dup2(high[1], 4)

    command = [of.program, *OPTIONS, f"--user-data-dir={folder / 'home'}", "--remote-debugging-pipe"]
    process = subprocess.Popen(
        command, preexec_fn=as_3_and_4, close_fds=False, env=environment(of, folder), stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(read_end)
    os.close(write_end)
    with os.fdopen(to_browser, "wb") as to:
        try:
            yield BrowserSession(to, from_browser)
        finally:
            os.close(from_browser)
            process.terminate()
            process.wait(LIMIT_SECONDS)

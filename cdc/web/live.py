"""Sends the changed parts of the first page to the browsers that show it, as server-sent events."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator

from cdc.web.overview.page import stream_page
from cdc.web.rendering import event_text, render
from cdc.web.watched import Watched

__all__ = ["Live"]

_SECONDS = 1.0
_ALIVE_SECONDS = 15.0  # the longest silence, since proxies close silent connections
_PARTS = ("path", "waits", "plots", "copies", "followers")


class Live:
    """Renders the first page's parts at most once per second, for all browsers together."""

    def __init__(self, watched: Watched, stop: threading.Event) -> None:
        self._watched = watched
        self._stop = stop
        self._parts: dict[str, str] = {}
        self._rendered_at = float("-inf")

    def parts(self) -> dict[str, str]:
        """Returns the present HTML of each part, by the id of its HTML element."""
        if time.monotonic() - self._rendered_at >= _SECONDS:
            self._parts, self._rendered_at = self._rendered(), time.monotonic()
        return self._parts

    def _rendered(self) -> dict[str, str]:
        now = time.time()
        parts = {}
        for number, stream in enumerate(self._watched.streams, 1):
            page = stream_page(stream.answers(), number=number, now=now)
            for part in _PARTS:
                parts[f"{part}-{number}"] = render(f"{part}.html", page=page)
        if self._watched.audit:
            parts["audit"] = render("audit.html", answer=self._watched.audit.answer)
        return parts

    async def events(self) -> AsyncIterator[str]:
        """Yields the events for one browser until the program ends."""
        sent: dict[str, str] = {}
        sent_at = time.monotonic()
        with self._watched.watchers:
            while not self._stop.is_set():
                parts = self.parts()
                changed = {name: html for name, html in parts.items() if sent.get(name) != html}
                if changed:
                    yield event_text("parts", changed)
                    sent, sent_at = parts, time.monotonic()
                elif time.monotonic() - sent_at > _ALIVE_SECONDS:
                    yield ": alive\n\n"
                    sent_at = time.monotonic()
                await asyncio.sleep(_SECONDS)

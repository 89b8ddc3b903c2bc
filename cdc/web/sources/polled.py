"""Queries a source repeatedly in a daemon thread, and keeps its newest answer."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar

from cdc.errors import CdcError
from cdc.service.logs import event

__all__ = ["Answer", "NoAnswer", "Polled", "Watchers"]

_log = partial(event, logging.getLogger("cdc.web"))
_UNWATCHED_SECONDS = 10.0  # the pause while no browser shows the page; the plots are still updated
_SHARE = 10  # the pause is at least this multiple of the time of the query, so that slow sources are not kept busy

T = TypeVar("T")


class NoAnswer(Exception):
    """A source does not answer; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """The newest answer of a source: the ``value``, None before the first answer, and its time (``time.time()``).

    ``error`` is the reason why the newest query failed; it is empty if the query succeeded.
    """

    value: T | None = None
    at: float = 0.0
    error: str = ""


class Watchers:
    """Counts the browsers that show the page at the moment."""

    def __init__(self) -> None:
        self._count = 0
        self._changed = threading.Condition()

    def __enter__(self) -> None:
        with self._changed:
            self._count += 1
            self._changed.notify_all()

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._count -= 1

    def pause(self, seconds: float, *, stop: threading.Event) -> None:
        """Waits for ``seconds`` while a browser shows the page, otherwise longer; returns early if ``stop`` is set."""
        begun = time.monotonic()
        with self._changed:
            while not stop.is_set():
                wanted = seconds if self._count else max(seconds, _UNWATCHED_SECONDS)
                left = begun + wanted - time.monotonic()
                if left <= 0:
                    return
                self._changed.wait(min(left, 1.0))


class Polled(Generic[T]):
    """Calls ``ask`` every ``seconds`` after ``start``. Errors become texts, since the page shows which server does not
    answer.
    """

    def __init__(self, name: str, ask: Callable[[], T], *, seconds: float) -> None:
        self.name = name
        self._ask = ask
        self._seconds = seconds
        self.answer: Answer[T] = Answer()

    def start(self, watchers: Watchers, stop: threading.Event) -> None:
        """Starts the thread."""
        threading.Thread(target=self._run, args=(watchers, stop), name=f"poll {self.name}", daemon=True).start()

    def _run(self, watchers: Watchers, stop: threading.Event) -> None:
        while not stop.is_set():
            took = self.look()
            watchers.pause(max(self._seconds, _SHARE * took), stop=stop)

    def look(self) -> float:
        """Queries the source once; returns how long the query took, in seconds."""
        begun = time.monotonic()
        before = self.answer
        try:
            self.answer = Answer(self._ask(), time.time())
        except (CdcError, NoAnswer) as error:
            self.answer = replace(before, error=str(error))
        except Exception as error:  # noqa: BLE001 - a defect in one part must not end the page
            self.answer = replace(before, error=f"{type(error).__name__}: {error}")
        if self.answer.error and self.answer.error != before.error:
            _log("no answer", source=self.name, reason=self.answer.error)
        return time.monotonic() - begun

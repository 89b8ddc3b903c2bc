"""Shows the progress of a program over HTTP, in a line on a terminal, and once a minute in the log."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Protocol

from prometheus_client.core import Metric

from cdc.config.profile import Metrics
from cdc.service.http_endpoint import Check, Endpoint
from cdc.service.logs import LastLine

__all__ = ["Activity", "shown"]

_DRAW_SECONDS = 0.5
_LOG_SECONDS = 60.0
_RATE_SAMPLES = 5  # the rate on the terminal is computed from these samples, which cover two seconds


class Activity(Protocol):
    """The progress figures of a program, which other threads may read at any moment."""

    @property
    def records(self) -> int: ...

    def metrics(self) -> Iterator[Metric]: ...

    def checks(self) -> Iterator[Check]: ...

    def seconds_behind(self) -> float | None:
        """An upper bound of the delay in seconds; None if nothing is known about the delay yet (``Behind``)."""

    def line(self, *, rate: float) -> str:
        """The progress line for a terminal; ``rate`` is in records per second."""

    def totals(self) -> dict[str, object]:
        """The fields of the periodic log message; empty until the program has done something."""


@contextmanager
def shown(activity: Activity, *, metrics: Metrics, line: LastLine | None, log: Callable[..., None]) -> Iterator[None]:
    """Shows ``activity`` while the ``with`` block runs, and logs its totals at the end of the block.

    Raises UserError if the address in ``metrics`` cannot be used.
    """
    with ExitStack() as open_things:
        if metrics.port:
            endpoint = Endpoint.open(metrics.host, metrics.port, metrics=activity.metrics, checks=activity.checks)
            open_things.callback(endpoint.close)
            log("listening", host=metrics.host, port=metrics.port)
        reporter = Reporter(activity, line=line, log=log)
        open_things.callback(_log_totals, activity, log)
        open_things.callback(reporter.close)
        yield


def _log_totals(activity: Activity, log: Callable[..., None]) -> None:
    if totals := activity.totals():
        log("stopped", **totals)


class Reporter:
    """A thread that draws the progress line on the terminal twice a second, and logs the totals once a minute."""

    def __init__(
        self,
        activity: Activity,
        *,
        line: LastLine | None,
        log: Callable[..., None],
        say_seconds: float = _LOG_SECONDS,
    ) -> None:
        self._activity = activity
        self._line = line
        self._log = log
        self._say_seconds = say_seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reporter", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stops the thread, and removes the progress line from the terminal."""
        self._stop.set()
        self._thread.join()
        if self._line:
            self._line.show("")

    def _run(self) -> None:
        samples: deque[tuple[float, int]] = deque(maxlen=_RATE_SAMPLES)
        logged_at, logged_records = time.monotonic(), self._activity.records
        while not self._stop.wait(_DRAW_SECONDS if self._line else self._say_seconds):
            now, records = time.monotonic(), self._activity.records
            samples.append((now, records))
            if self._line:
                self._line.show(self._activity.line(rate=_rate(samples[0], (now, records))))
            if now - logged_at > self._say_seconds - _DRAW_SECONDS and (totals := self._activity.totals()):
                rate = _rate((logged_at, logged_records), (now, records))
                behind = self._activity.seconds_behind()
                known = {} if behind is None else {"seconds_behind": round(behind, 1)}
                self._log("at work", **totals, records_per_second=round(rate), **known)
                logged_at, logged_records = now, records


def _rate(start: tuple[float, int], end: tuple[float, int]) -> float:
    seconds = end[0] - start[0]
    return (end[1] - start[1]) / seconds if seconds > 0 else 0.0

"""Shows a program's progress over HTTP, as a line on a terminal, to systemd, and once a minute in the log."""

import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Protocol, Self

from prometheus_client.core import Metric

from cdc.config.profile import Profile
from cdc.model.values import visible
from cdc.service.commands import Command, Commands
from cdc.service.http_endpoint import Check, Endpoint
from cdc.service.logs import LastLine

__all__ = ["Activity", "Systemd", "info", "shown"]

# Reports a program's start, state and end to systemd, if systemd started it (``sd_notify``).


class Systemd:
    """The socket of systemd at ``address``, the value of NOTIFY_SOCKET."""

    def __init__(self, address: str) -> None:
        self._address = "\0" + address[1:] if address.startswith("@") else address  # an abstract socket
        self._ready, self._status = False, ""

    @classmethod
    def from_environment(cls) -> Self | None:
        """Returns systemd's socket; None if systemd did not start this process, or if the unit is not of
        ``Type=notify``.
        """
        # The variable is removed, so that no child of this process reports to systemd in its place.
        address = os.environ.pop("NOTIFY_SOCKET", "")
        return cls(address) if address else None

    def report(self, *, ready: bool, status: str) -> None:
        """Reports READY once, and ``status`` each time that it changes."""
        lines = [f"STATUS={visible(status)}"] if status != self._status else []  # a table's name may have line breaks
        if ready and not self._ready:
            lines.insert(0, "READY=1")
        if self._send(lines):
            self._ready, self._status = self._ready or ready, status

    def stopping(self) -> None:
        """Reports that the program is ending."""
        self._send(["STOPPING=1"])

    def _send(self, lines: list[str]) -> bool:
        """Sends a report; returns whether systemd has received it. A report that can't be delivered is dropped, since a
        program works without systemd as well; the next report contains its content again.
        """
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as notify:
            if lines:
                notify.setblocking(False)
                notify.sendto("\n".join(lines).encode(), self._address)
            return True
        return False


_DRAW_SECONDS = 0.5
_LOG_SECONDS = 60.0
_REPORT_SECONDS = 1.0  # to systemd
_RATE_SAMPLES = 5  # the rate on the terminal covers the last two seconds


class Activity(Protocol):
    """The progress figures of a program, which other threads may read at any moment."""

    @property
    def records(self) -> int: ...

    def metrics(self) -> Iterator[Metric]: ...

    def checks(self) -> Iterator[Check]: ...

    def seconds_behind(self) -> float | None:
        """Returns an upper bound of the delay in seconds; None if nothing is known about the delay yet (``Behind``)."""

    def line(self, *, rate: float) -> str:
        """Returns the progress line for a terminal; ``rate`` is in records per second."""

    def totals(self) -> dict[str, object]:
        """Returns the fields of the periodic log message; empty until the program has done something."""


def info(program: str, profile: Profile) -> dict[str, str]:
    """Returns the labels of ``cdc_info``, which distinguish the programs of several leaders and followers."""
    database = profile.database
    return {
        "program": program,
        "leader": profile.mysql_resource_name,
        "topic": profile.kafka.topic,
        "server": f"{database.ip_or_host}:{database.port}",
    }


@contextmanager
def shown(
    activity: Activity,
    *,
    program: str,
    profile: Profile,
    line: LastLine | None,
    log: Callable[..., None],
    commands: Mapping[str, Command] | None = None,
) -> Iterator[None]:
    """Shows the ``activity`` of ``program`` inside the context, and logs its totals at its end. Meanwhile the program
    takes the ``commands``, which have these names.

    Raises UserError if the address in the profile's ``metrics`` cannot be used.
    """
    host, port = profile.metrics.host, profile.metrics.port
    with ExitStack() as open_things:
        if port:
            labels = info(program, profile)
            taken = Commands(commands or {}, token=profile.metrics.token, log=log)
            endpoint = Endpoint.open(
                host, port, metrics=activity.metrics, checks=activity.checks, info=labels, commands=taken
            )
            open_things.callback(endpoint.close)
            log("listening", host=host, port=port)
        reporter = Reporter(activity, line=line, log=log, systemd=Systemd.from_environment())
        open_things.callback(_log_totals, activity, log)
        open_things.callback(reporter.close)
        yield


def _log_totals(activity: Activity, log: Callable[..., None]) -> None:
    if totals := activity.totals():
        log("stopped", **totals)


class Reporter:
    """A thread that draws the terminal's line twice a second, logs the totals once a minute, and reports to systemd.

    The program counts as started once its servers have answered; from then on it has totals.
    """

    def __init__(
        self,
        activity: Activity,
        *,
        line: LastLine | None,
        log: Callable[..., None],
        say_seconds: float = _LOG_SECONDS,
        systemd: Systemd | None = None,
    ) -> None:
        self._activity = activity
        self._line = line
        self._systemd = systemd
        self._log = log
        self._say_seconds = say_seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reporter", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stops the thread, removes the line from the terminal, and reports the end to systemd."""
        self._stop.set()
        self._thread.join()
        if self._systemd:
            # A short run may end before the thread's first report, so systemd perhaps does not know yet that the
            # program was ready.
            self._systemd.report(ready=bool(self._activity.totals()), status=self._activity.line(rate=0))
            self._systemd.stopping()
        if self._line:
            self._line.show("")

    def _run(self) -> None:
        samples: deque[tuple[float, int]] = deque(maxlen=_RATE_SAMPLES)
        logged_at, logged_records = time.monotonic(), self._activity.records
        while not self._stop.wait(self._interval()):
            now, records = time.monotonic(), self._activity.records
            samples.append((now, records))
            self._draw(_rate(samples[0], (now, records)))
            if now - logged_at > self._say_seconds - _DRAW_SECONDS and (totals := self._activity.totals()):
                rate = _rate((logged_at, logged_records), (now, records))
                behind = self._activity.seconds_behind()
                known = {} if behind is None else {"seconds_behind": round(behind, 1)}
                self._log("at work", **totals, records_per_second=round(rate), **known)
                logged_at, logged_records = now, records

    def _interval(self) -> float:
        if self._line:
            return _DRAW_SECONDS
        return _REPORT_SECONDS if self._systemd else self._say_seconds

    def _draw(self, rate: float) -> None:
        """Shows the line on the terminal and to systemd."""
        if self._line:
            self._line.show(self._activity.line(rate=rate))
        if self._systemd:
            self._systemd.report(ready=bool(self._activity.totals()), status=self._activity.line(rate=rate))


def _rate(start: tuple[float, int], end: tuple[float, int]) -> float:
    seconds = end[0] - start[0]
    return (end[1] - start[1]) / seconds if seconds > 0 else 0.0

"""Reconnecting: how long a program waits for a server that went away, and when it gives up."""

import threading
import time
from collections.abc import Callable

from cdc.errors import Disconnected, ServerGone

__all__ = ["Retry"]

_NEVER = "it has not answered since the start, so the address in the profile may be wrong"
_FIRST_WAIT = 0.1
_LONGEST_WAIT = 5.0
_HELD = 30.0  # a connection that stands for so long has ended the trouble before it
_ATTEMPTS = 3  # fail at least before the one that gives up: one alone may take longer than all the seconds


class Retry:
    """Waits with backoff between attempts: ``seconds`` in all since the last success, and for three of them at least.

    ``log(event, **fields)`` is told of each wait; ``stop`` ends a wait early. ``waits`` counts them, and ``trouble``
    says what the newest is about until an attempt succeeds.
    """

    def __init__(self, *, seconds: float, log: Callable[..., None], stop: threading.Event) -> None:
        self._seconds = seconds
        self._log = log
        self._stop = stop
        self._wait = _FIRST_WAIT
        self._failing_since: float | None = None
        self._failed = 0
        self._connected_at: float | None = None
        self._answered = False
        self.succeeded = False
        self.waits = 0
        self.trouble = ""

    def answered(self) -> None:
        """The servers are there, so the addresses are right."""
        self._answered = True

    def connected(self) -> None:
        """The servers were there; only where that holds for a while it ends the count, or ``success``."""
        self.answered()
        self.succeeded = True
        self._connected_at = time.monotonic()
        if self.trouble:
            self._log("no longer waiting", trouble=self.trouble)
        self.trouble = ""

    def success(self) -> None:
        """The servers did their work: the next failure starts a new count."""
        self.connected()
        self._count_anew()

    def _count_anew(self) -> None:
        self._failing_since = None
        self._failed = 0
        self._wait = _FIRST_WAIT

    def wait(self, error: Disconnected) -> None:
        """Wait before the next attempt after ``error``. Raises ServerGone when the seconds are used up.

        At the start too: a server may be the last to start of many, and only then is the address worth a doubt.
        """
        now = time.monotonic()
        if self._connected_at is not None and now - self._connected_at > _HELD:
            self._count_anew()
        self._connected_at = None
        self._failing_since = self._failing_since or now
        self._failed += 1
        if now - self._failing_since > self._seconds and self._failed > _ATTEMPTS:
            hint = error.hint if self._answered else "; ".join(filter(None, (error.hint, _NEVER)))
            raise ServerGone(f"gave up after {self._seconds:.0f} s: {error.what}", where=error.where, hint=hint)
        self.waits += 1
        self.trouble = str(error)
        self._log("waiting for a server", error=error, seconds=self._wait)
        self._stop.wait(self._wait)
        self._wait = min(2 * self._wait, _LONGEST_WAIT)

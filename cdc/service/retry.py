"""Waits between attempts to reach a server, with backoff, and gives up after a number of seconds."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from cdc.errors import Disconnected, ServerGone, Unreachable

__all__ = ["RetriedCalls", "Retry"]

Answer = TypeVar("Answer")

_NEVER = "it has not answered since the start, so the address in the profile may be wrong"
_FIRST_WAIT = 0.1
_LONGEST_WAIT = 5.0
_HELD = 30.0  # seconds; if the last connection lasted longer, the next failure counts as the first
# The program gives up only if more than this number of attempts have failed, since a single attempt may take longer
# than the time limit.
_ATTEMPTS = 3


class Retry:
    """Waits between attempts, each time longer. Gives up ``seconds`` after the first failure since the last success,
    but not before the fourth failure.

    ``log(event, **fields)`` is called for each wait; setting ``stop`` ends a wait early. ``waits`` counts the waits;
    ``trouble`` is the error of the newest wait until an attempt succeeds.
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
        self._without_hint = ""  # ``trouble`` without its hint, for the log message that the trouble is over

    def answered(self) -> None:
        """Notes that the servers have answered, which shows that their addresses are right."""
        self._answered = True

    def connected(self) -> None:
        """Notes that a connection was made. The limit of ``seconds`` starts again only if the connection lasts for a
        while, or after ``success``.
        """
        self.answered()
        self.succeeded = True
        self._connected_at = time.monotonic()
        if self.trouble:
            self._log("no longer waiting", trouble=self._without_hint)
        self.trouble = ""

    def success(self) -> None:
        """Notes that the servers have done their work: the ``seconds`` count from the next failure on."""
        self.connected()
        self._reset()

    def _reset(self) -> None:
        self._failing_since = None
        self._failed = 0
        self._wait = _FIRST_WAIT

    def wait(self, error: Disconnected, *, last: bool = False) -> None:
        """Waits before the next attempt, after ``error``. Raises ServerGone if it is time to give up.

        Waits even if no attempt has ever succeeded, since servers may start later than this program; the hint of
        ServerGone then adds that the address may be wrong. ``last`` is true if this attempt alone has lasted for the
        whole time limit, so that no further attempt is made.
        """
        now = time.monotonic()
        if self._connected_at is not None and now - self._connected_at > _HELD:
            self._reset()
        self._connected_at = None
        self._failing_since = self._failing_since or now
        self._failed += 1
        if last or (now - self._failing_since > self._seconds and self._failed > _ATTEMPTS):
            hint = error.hint if self._answered else "; ".join(filter(None, (error.hint, _NEVER)))
            raise ServerGone(
                f"gave up after {self._seconds:.0f} s: {error.what}", code="CDC-GAVE-UP", where=error.where, hint=hint
            )
        self.waits += 1
        self.trouble = str(error)
        self._without_hint = str(Disconnected(error.what, code=error.code, where=error.where))
        self._log("waiting for a server", error=error, seconds=self._wait)
        self._stop.wait(self._wait)
        self._wait = min(2 * self._wait, _LONGEST_WAIT)


@dataclass(frozen=True, slots=True)
class RetriedCalls:
    """Repeats a call that raises Unreachable until it succeeds, and waits between the attempts with ``retry``.

    ``keep_alive`` is called before each wait, so that another connection does not time out; setting ``stop`` ends the
    waits.
    """

    retry: Retry
    keep_alive: Callable[[], object]
    stop: threading.Event

    def call(self, function: Callable[[], Answer]) -> Answer | None:
        """Returns the result of ``function`` once the server is reachable; None if ``stop`` is set before. Raises
        ServerGone."""
        waited = False
        while not self.stop.is_set():
            try:
                answer = function()
            except Unreachable as error:
                self.keep_alive()
                self.retry.wait(Disconnected(error.what, code=error.code, where=error.where, hint=error.hint))
                waited = True
            else:
                if waited:
                    self.retry.connected()
                return answer
        return None

    def pause(self, seconds: float) -> None:
        """Waits ``seconds`` until the caller's next query. This is no retry, since the last query was answered."""
        self.retry.answered()
        self.keep_alive()
        self.stop.wait(seconds)

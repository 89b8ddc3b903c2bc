"""Holds transactions back for a delay, a pause, or a limit of rows per second.

``Delay`` holds a transaction back until ``consumer.delay_seconds`` after its commit on the leader. ``Pause`` holds all
transactions back from SIGUSR1 or the command "pause" until SIGUSR2 or the command "resume"; the consumer keeps its
place, its lock and its connections. ``RateLimit`` applies at most ``consumer.rows_per_second``, or the number of rows
that the command "rate" names, so that other clients can use the follower, too.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator

from cdc.consumer.source.assembler import Transaction
from cdc.service.logs import event

__all__ = ["Delay", "Pause", "RateLimit"]

# Seconds. A transaction is held back only if the rows so far are ahead of the limit by more than this time. A wait
# after each transaction would also cause a commit for each transaction.
_AHEAD_SECONDS = 0.5
_RATE_LOOK_SECONDS = 0.5


class RateLimit:
    """Limits the number of rows per second. ``holding`` is true while a transaction is held back; ``held_seconds`` is
    the total time for which transactions were held back.

    A statement and a transaction without rows count as one row. The limit of 0 ``rows`` is no limit.
    """

    def __init__(self, rows: int = 0, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rows = rows
        self._changed = False
        self._clock = clock
        self.holding = False
        self.held_seconds = 0.0

    def change(self, rows: int) -> None:
        """Limits to ``rows`` per second from now on; another thread may call it. A transaction that is held back at
        this moment is released.
        """
        self._rows, self._changed = rows, True

    def paced(
        self, transactions: Iterable[Transaction | None], *, stop: threading.Event
    ) -> Iterator[Transaction | None]:
        """Yields ``transactions``. While a transaction is held back, also yields None from time to time, so that
        earlier batches commit.

        Ends if ``stop`` is set while a transaction is held back.
        """
        # If the records are read again, a former generator may have ended while it held a transaction back.
        self.holding = False
        free_at = 0.0  # the time at which all rows so far would be applied if the rate were exactly the limit
        for item in transactions:
            if item is not None and self._rows:
                if free_at > self._clock() + _AHEAD_SECONDS:
                    yield from self._hold(free_at, stop)
                    if self.holding:
                        return
                if self._changed:  # the rows so far were counted by the former limit
                    self._changed, free_at = False, 0.0
                if rows := self._rows:  # another thread may have removed the limit meanwhile
                    free_at = max(free_at, self._clock()) + max(item.rows, 1) / rows
            yield item

    def _hold(self, free_at: float, stop: threading.Event) -> Iterator[None]:
        since = self._clock()
        self.holding = True
        while (left := free_at - self._clock()) > 0 and not self._changed:
            yield None
            if stop.wait(min(left, _RATE_LOOK_SECONDS)):
                return
        self.holding = False
        self.held_seconds += self._clock() - since


_LOOK_SECONDS = 0.2


class Pause:
    """Pauses the consumer while ``wanted`` is true; a signal handler or another thread may set it at any time.

    ``holding`` is true while nothing more is applied.

    ``committed_at`` is the leader's commit time of the held transaction (``time.time()``); None while no transaction is
    held.
    """

    def __init__(self) -> None:
        self.wanted = False
        self.holding = False
        self.committed_at: float | None = None

    def between(
        self, transactions: Iterable[Transaction | None], *, stop: threading.Event, tell: Callable[[bool], object]
    ) -> Iterator[Transaction | None]:
        """Yields ``transactions``. During a pause, yields None from time to time instead, so that earlier batches
        commit.

        ``tell(True)`` is called from time to time during a pause, and ``tell(False)`` at its end. Ends if ``stop`` is
        set during a pause.
        """
        # If the records are read again, a former generator may have ended while it held a transaction back.
        self.holding, self.committed_at = False, None
        inside = False  # true between the parts of a large transaction, since a pause must not begin there
        for item in transactions:
            if self.wanted and not inside:
                yield from self._hold(item, stop, tell)
                if stop.is_set():
                    return
            if item is not None:
                inside = not item.ends
            yield item

    def _hold(self, item: Transaction | None, stop: threading.Event, tell: Callable[[bool], object]) -> Iterator[None]:
        self.committed_at = item.records[0].ts_us / 1e6 if item is not None else None
        self.holding = True
        yield None  # the batches before the pause commit now
        tell(True)
        following = item.records[0].sequence if item else "not here yet"
        event(_LOG, "paused until SIGUSR2 or cdc-consumer --resume", next=following)
        while self.wanted and not stop.wait(_LOOK_SECONDS):
            yield None
            tell(True)  # called again, because a new connection does not show the pause yet
        tell(False)
        self.holding, self.committed_at = False, None
        if not stop.is_set():
            event(_LOG, "resumed after the pause")


_LOG = logging.getLogger("cdc.consumer")
# The shortest and the longest wait, in seconds. Because of the shortest wait, transactions that are due shortly after
# one another become one batch.
_LEAST, _MOST = 0.1, 0.5


class Delay:
    """Delays transactions. ``due_at`` (``time.time()``) is the time at which the held transaction will be due; None
    while no transaction is held.

    Commit times of the leader are compared with ``clock``, the clock of this machine. ``stop`` ends a wait at once.
    """

    def __init__(
        self,
        seconds: int,
        *,
        stop: threading.Event,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._seconds = seconds
        self._stop = stop
        self._clock = clock
        self._told = False
        self.due_at: float | None = None

    @property
    def committed_at(self) -> float | None:
        """The leader's commit time of the held transaction (``time.time()``); None while no transaction is held."""
        due_at = self.due_at  # read only once, because another thread may change it
        return None if due_at is None else due_at - self._seconds

    def due(self, transactions: Iterable[Transaction | None]) -> Iterator[Transaction | None]:
        """Yields each transaction once it is due. While a transaction is held, yields None from time to time, so that
        earlier batches commit.

        Ends if ``stop`` is set while a transaction is held.
        """
        for item in transactions:
            if item is not None and item.begins and self._seconds:
                yield from self._hold(item.records[0].ts_us / 1e6 + self._seconds)
                if self.due_at is not None:
                    return
            yield item

    def _hold(self, due_at: float) -> Iterator[None]:
        while self._clock() < due_at:
            self.due_at = due_at
            self._tell(due_at)
            yield None
            if self._stop.wait(min(max(due_at - self._clock(), _LEAST), _MOST)):
                return
        self.due_at = None

    def _tell(self, due_at: float) -> None:
        """Logs the first wait only, because with a steady load nearly every transaction waits."""
        if not self._told:
            seconds = round(due_at - self._clock(), 1)
            event(_LOG, "transactions are held (consumer.delay_seconds)", delay=self._seconds, first=seconds)
        self._told = True

"""Holds transactions back, in three ways.

``Delay``: until ``consumer.delay_seconds`` after their commit on the leader. ``Pause``: from SIGUSR1 on, until SIGUSR2,
while the consumer keeps its place, its lock and its connections. ``RateLimit``: at most ``consumer.rows_per_second``
are applied, so that other clients get their share of the follower.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator

from cdc.consumer.source.assembler import Transaction
from cdc.service.logs import event

__all__ = ["Delay", "Pause", "RateLimit"]

# the rows of so many seconds are applied without a wait: a wait after each transaction would mean a commit for each
_AHEAD_SECONDS = 0.5
_RATE_LOOK_SECONDS = 0.5


class RateLimit:
    """Limits the rows a second. ``holding``: a transaction is held back; ``held_seconds`` is the total time of that.

    A statement and a transaction without rows count as one row. ``stop`` ends a wait at once.
    """

    def __init__(self, rows: int, *, stop: threading.Event, clock: Callable[[], float] = time.monotonic) -> None:
        self._rows = rows
        self._stop = stop
        self._clock = clock
        self.holding = False
        self.held_seconds = 0.0

    def paced(self, transactions: Iterable[Transaction | None]) -> Iterator[Transaction | None]:
        """Passes on ``transactions``; gives a None now and then while one is held back, so that the batches before it
        commit.

        Ends if ``stop`` is set meanwhile. Without a limit (0) nothing is held back.
        """
        # If the records are read again, the former generator may have ended while it held one.
        self.holding = False
        free_at = 0.0  # when all rows so far would be applied at exactly the limit
        for item in transactions:
            if item is not None and self._rows:
                if free_at > self._clock() + _AHEAD_SECONDS:
                    yield from self._hold(free_at)
                    if self.holding:
                        return
                free_at = max(free_at, self._clock()) + max(item.rows, 1) / self._rows
            yield item

    def _hold(self, free_at: float) -> Iterator[None]:
        since = self._clock()
        self.holding = True
        while (left := free_at - self._clock()) > 0:
            yield None
            if self._stop.wait(min(left, _RATE_LOOK_SECONDS)):
                return
        self.holding = False
        self.held_seconds += self._clock() - since


_LOOK_SECONDS = 0.2


class Pause:
    """Pauses the consumer while ``wanted`` is true; a signal handler sets it at any time.

    ``holding``: nothing more is applied.

    ``committed_at`` is the leader's commit time of the held transaction (``time.time()``); None while none is held.
    """

    def __init__(self) -> None:
        self.wanted = False
        self.holding = False
        self.committed_at: float | None = None

    def between(
        self, transactions: Iterable[Transaction | None], *, stop: threading.Event, tell: Callable[[bool], object]
    ) -> Iterator[Transaction | None]:
        """Passes on ``transactions``; during a pause gives a None now and then instead, so that the batches before it
        commit.

        ``tell`` is called with whether there is a pause, now and then and at its end. Ends if ``stop`` is set
        meanwhile.
        """
        # If the records are read again, the former generator may have ended while it held one.
        self.holding, self.committed_at = False, None
        inside = False  # inside of a large transaction, which is not left half applied
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
        yield None  # the batches before commit
        tell(True)
        event(_LOG, "paused until SIGUSR2", next=item.records[0].sequence if item else "not here yet")
        while self.wanted and not stop.wait(_LOOK_SECONDS):
            yield None
            tell(True)  # again, since the connection may be another one
        tell(False)
        self.holding, self.committed_at = False, None
        if not stop.is_set():
            event(_LOG, "resumed after the pause")


_LOG = logging.getLogger("cdc.consumer")
_LEAST, _MOST = 0.1, 0.5  # seconds of a wait: what is due soon after one another makes one batch


class Delay:
    """Delays transactions. ``due_at`` (``time.time()``) is when the held transaction is due; None while none is held.

    The leader's clock is compared with ``clock``, this machine's. ``stop`` ends a wait at once.
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
        """The leader's commit time of the held transaction (``time.time()``); None while none is held."""
        due_at = self.due_at  # which another thread sets
        return None if due_at is None else due_at - self._seconds

    def due(self, transactions: Iterable[Transaction | None]) -> Iterator[Transaction | None]:
        """Gives each transaction once it is due; a None now and then while one is held, so that the batches before it
        commit.

        Ends if ``stop`` is set while one is held.
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
        """Logs the first wait: with a steady load nearly every transaction waits."""
        if not self._told:
            seconds = round(due_at - self._clock(), 1)
            event(_LOG, "transactions are held (consumer.delay_seconds)", delay=self._seconds, first=seconds)
        self._told = True

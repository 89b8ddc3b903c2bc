"""Limits how many rows a second are applied (``consumer.rows_per_second``), so that others get their share of the
follower.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator

from cdc.consumer.source.assembler import Transaction

__all__ = ["RateLimit"]

_AHEAD_SECONDS = 0.5  # so many seconds' rows may go at once: a limit for each transaction would be a commit for each
_LOOK_SECONDS = 0.5


class RateLimit:
    """``holding`` says that a transaction is held back, ``held_seconds`` for how long transactions were, in all.

    A statement and a transaction without rows count as one row. ``stop`` ends a wait at once.
    """

    def __init__(self, rows: int, *, stop: threading.Event, clock: Callable[[], float] = time.monotonic) -> None:
        self._rows = rows
        self._stop = stop
        self._clock = clock
        self.holding = False
        self.held_seconds = 0.0

    def paced(self, transactions: Iterable[Transaction | None]) -> Iterator[Transaction | None]:
        """``transactions``; a None now and then while one is held back, so that those before commit.

        Ends where ``stop`` is set meanwhile. Without a limit (0) nothing is held back.
        """
        # Where the records are read again, the generator of before has ended while it held one.
        self.holding = False
        free_at = 0.0  # when the rows so far have had their time
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
            if self._stop.wait(min(left, _LOOK_SECONDS)):
                return
        self.holding = False
        self.held_seconds += self._clock() - since

"""Holds each transaction until ``consumer.delay_seconds`` after its commit on the leader."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator

from cdc.consumer.source.assembler import Transaction
from cdc.service.logs import event

__all__ = ["Delay"]

_LOG = logging.getLogger("cdc.consumer")
_LEAST, _MOST = 0.1, 0.5  # seconds of a wait: what is due soon after one another makes one batch


class Delay:
    """``due_at`` (``time.time()``) is when the transaction that is held is due; None while none is held.

    Records up to ``again_upto`` were applied before (``--rewind``): until they are applied again the follower is in no
    state that the leader had, so they are not held. The leader's clock is compared with ``clock``, this machine's.
    ``stop`` ends a wait at once.
    """

    def __init__(
        self,
        seconds: int,
        *,
        stop: threading.Event,
        again_upto: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._seconds = seconds
        self._again_upto = -1 if again_upto is None else again_upto
        self._stop = stop
        self._clock = clock
        self._told = False
        self.due_at: float | None = None

    @property
    def committed_at(self) -> float | None:
        """When the leader committed the transaction that is held (``time.time()``); None while none is held."""
        due_at = self.due_at  # which another thread sets
        return None if due_at is None else due_at - self._seconds

    def due(self, transactions: Iterable[Transaction | None]) -> Iterator[Transaction | None]:
        """``transactions``, each once it is due; a None now and then while one is held, so that those before commit.

        Ends where ``stop`` is set while one is held.
        """
        for item in transactions:
            if item is not None and item.begins and self._seconds and item.records[0].sequence > self._again_upto:
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
        """Log the first wait: with a steady load nearly every transaction waits."""
        if not self._told:
            seconds = round(due_at - self._clock(), 1)
            event(_LOG, "transactions are held (consumer.delay_seconds)", delay=self._seconds, first=seconds)
        self._told = True

"""Holds all transactions from SIGUSR1 on, until SIGUSR2: the consumer keeps its place, its lock and its connections."""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator

from cdc.consumer.source.assembler import Transaction
from cdc.service.logs import event

__all__ = ["Pause"]

_LOG = logging.getLogger("cdc.consumer")
_LOOK_SECONDS = 0.2


class Pause:
    """``wanted`` is set by a signal handler, at any moment; ``holding`` says that nothing more is applied.

    ``committed_at`` is when the leader committed the transaction that is held (``time.time()``); None while none is.
    """

    def __init__(self) -> None:
        self.wanted = False
        self.holding = False
        self.committed_at: float | None = None

    def between(
        self, transactions: Iterable[Transaction | None], *, stop: threading.Event, tell: Callable[[bool], object]
    ) -> Iterator[Transaction | None]:
        """``transactions``; while a pause is wanted, a None now and then instead, so that those before commit.

        ``tell`` is called with whether there is a pause, now and then and at its end. Ends where ``stop`` is set
        meanwhile.
        """
        # Where the records are read again, the generator of before has ended while it held one.
        self.holding, self.committed_at = False, None
        inside = False  # of a large transaction, which is not left half applied
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
        yield None  # what came before commits
        tell(True)
        event(_LOG, "paused until SIGUSR2", next=item.records[0].sequence if item else "not here yet")
        while self.wanted and not stop.wait(_LOOK_SECONDS):
            yield None
            tell(True)  # again, since the connection may be another one
        tell(False)
        self.holding, self.committed_at = False, None
        if not stop.is_set():
            event(_LOG, "going on after the pause")

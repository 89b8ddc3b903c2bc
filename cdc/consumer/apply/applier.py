"""Applies batches. The rows of a batch and its checkpoint are in one transaction on the follower; the transaction is
repeated until it commits.
"""

import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from cdc.consumer.apply.committed import Committed, lost, refuses
from cdc.consumer.apply.execution import Execution
from cdc.consumer.apply.parallel import RunFailed
from cdc.consumer.apply.planned_batch import PlannedBatch, State
from cdc.consumer.apply.preparation import Preparation
from cdc.consumer.errors import Interrupted, Refused, Unapplicable, WaitedOut
from cdc.consumer.follower.session import Session
from cdc.consumer.plan.chunk_plan import ChunkPlan
from cdc.consumer.source.assembler import Batch
from cdc.consumer.source.parked_tables import LeftOutLate
from cdc.consumer.state.checkpoint import Checkpoint, TopicIdPartition
from cdc.errors import CdcError, PromiseError
from cdc.model.record import Record
from cdc.service.retry import Retry

__all__ = ["Applied", "Applier", "Reread"]


class Reread(Exception):
    """The records after the checkpoint must be read again, since they are no longer in memory. This happens if the
    follower has rolled back parts of a large transaction, or if a lagging replica has taken the follower's place.
    """


class Applied(NamedTuple):
    """A commit on the follower. ``last`` is the last record that the commit applied, and ``seconds`` is the time from
    the beginning of the batch's preparation to the commit.

    ``rows`` is the number of rows in the commit, and ``filtered`` is the number of these rows that the filters left
    out. ``chunk`` is set if the batch was a chunk of a table copy.
    """

    last: Record
    offsets: Mapping[TopicIdPartition, int]
    rows: int
    filtered: int
    seconds: float
    chunk: ChunkPlan | None = None


class Applier:
    """Applies batches, beginning after the ``committed`` checkpoint. ``session`` must be connected and hold the
    consumer's lock.

    ``retry`` limits how long the applier waits without progress while the follower is unreachable; setting ``stop``
    ends the wait early.
    """

    def __init__(
        self,
        session: Session,
        preparation: Preparation,
        execution: Execution,
        *,
        committed: Committed,
        retry: Retry,
        stop: threading.Event,
    ) -> None:
        self._session = session
        self._preparation = preparation
        self._execution = execution
        self._committed = committed
        preparation.restart(committed.checkpoint)  # the first batch begins there
        self._retry = retry
        self._stop = stop
        # The batches that are not known to be committed, in order. The batches in ``_under_way`` were passed to the
        # executors, the batches in ``_waiting`` were not. If a large transaction has several executed parts, only the
        # last of them is kept.
        self._under_way: deque[PlannedBatch] = deque()
        self._waiting: deque[Batch] = deque()
        self._applied: list[Applied] = []

    @property
    def checkpoint(self) -> Checkpoint:
        """The newest checkpoint that is known to be committed."""
        return self._committed.checkpoint

    @property
    def conflicts(self) -> int:
        """The number of committed conflicts that were resolved in the leader's favour."""
        return self._execution.conflicts

    def applied(self, batches: Iterable[Batch | None]) -> Iterator[Applied | None]:
        """Applies each batch exactly once. A None among the batches means that there are no more batches for now; the
        method yields None once all earlier batches have committed.

        Ends early if ``stop`` is set while the follower is unreachable. Raises Reread, PromiseError for a row or
        statement that can't be applied, and ServerGone if the follower stays unreachable.
        """
        for batch in batches:
            if batch is not None:
                self._waiting.append(batch)
            try:
                if not self._persist(wait=batch is None):
                    return
            except CdcError:
                # The statements before the failed statement have committed. Their commits are yielded before the error
                # is raised.
                yield from self._take_applied()
                raise
            yield from self._take_applied()
            if batch is None:
                yield None
        self._persist(wait=True)
        yield from self._take_applied()

    def _persist(self, *, wait: bool) -> bool:
        """Sends the waiting batches until the follower has accepted them and, with ``wait``, committed them; repeats
        this after errors. Returns False if ``stop`` is set earlier.
        """
        while True:
            try:
                self._try_persist(wait=wait)
            except RunFailed:
                self._execution.prefer_serial()
            except (Unapplicable, LeftOutLate) as error:
                if isinstance(error, Unapplicable) and not self._preparation.parks(error):
                    raise
                # The new connection has nothing of the transaction; its batch is prepared again, without it.
                self._session.close()
                self._preparation.forget_tables()
            except Interrupted as error:
                # The new connection will have neither the open transaction nor the session variables of the old
                # connection.
                self._session.close()
                self._preparation.forget_tables()
                if not self._stop.is_set():
                    gone = lost(error, after=self.checkpoint.sequence)
                    self._retry.wait(gone, last=isinstance(error, WaitedOut))
                if self._stop.is_set():
                    return False
            except Refused as error:
                raise refuses(error, after=self.checkpoint.sequence) from None
            else:
                return True

    def _try_persist(self, *, wait: bool) -> None:
        if not self._session.connected or self._execution.failed:
            self._recover()
        self._session.address.require_writable()
        while self._waiting:
            self._send(self._waiting[0])
        if wait:
            self._commit()
            self._session.keep()
            self._preparation.rest()
            self._execution.rest()
            if not self._under_way:
                # After a reconnection, the retries count as successful only when nothing is left to do.
                self._retry.success()

    def _send(self, batch: Batch) -> None:
        if self._execution.running:
            self._preparation.learn(batch)
        beside = self._execution.admits(self._preparation.covers(batch)) and self._preparation.looks_beside()
        if self._preparation.needs_commit(batch, beside=beside):
            self._commit()
        elif self._preparation.runs(batch):
            self._execution.settle()
        try:
            planned = self._preparation.prepare(batch, self._execution.commit, beside=beside)
        except (CdcError, Refused):
            # The earlier batches are committed now. If the connection is lost during the commit, all of them are
            # executed again.
            self._commit()
            raise
        self._take_committed()
        self._waiting.popleft()
        _, rest = batch.cut(len(planned.batch.statements))
        if rest is not None:
            self._waiting.appendleft(rest)
        self._under_way.append(planned)
        self._execution.put(planned)
        self._take_committed()

    def _commit(self) -> None:
        self._execution.commit()
        self._take_committed()

    def _recover(self) -> None:
        """Connects again, or ends a parallel run that failed, and moves all uncommitted batches back to the waiting
        batches.

        Raises Reread if some uncommitted records are no longer in memory.
        """
        # Committed batches are removed before the program connects again: they have committed on the present server,
        # and another server may answer afterwards.
        self._take_committed()
        self._committed.connect()
        try:
            self._execution.recover(self.checkpoint)
        except PromiseError:
            if not self._committed.switched:
                raise
            raise Interrupted("the server that took the follower's place still executes its relay log") from None
        self._take_committed()
        self._waiting.extendleft(planned.batch for planned in reversed(self._under_way))
        self._under_way.clear()
        self._preparation.restart(self.checkpoint)
        if self._committed.incomplete or (self._waiting and not self._waiting[0].begins):
            self._committed.incomplete = False
            self._waiting.clear()
            raise Reread

    def _take_committed(self) -> None:
        """Removes the batches that are no longer needed: committed batches, and executed parts of a large transaction
        except the last such part."""
        while self._under_way and self._is_done(self._under_way[0]):
            planned = self._under_way.popleft()
            if planned.state is State.COMMITTED:
                self._has_committed(planned)

    def _is_done(self, first: PlannedBatch) -> bool:
        # A part that was sent but is not executed yet must be kept, so that it can be sent again.
        is_part = first.state is State.EXECUTED and not first.batch.ends
        return first.state is State.COMMITTED or (is_part and len(self._under_way) > 1)

    def _has_committed(self, planned: PlannedBatch) -> None:
        self._retry.success()
        self._committed.advance(planned.target)
        seconds, batch = time.monotonic() - planned.started, planned.batch
        self._applied.append(Applied(batch.last, batch.offsets, planned.rows, planned.filtered, seconds, planned.chunk))

    def _take_applied(self) -> list[Applied]:
        applied, self._applied = self._applied, []
        return applied

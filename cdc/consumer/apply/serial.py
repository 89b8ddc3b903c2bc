"""Executes batches one after another on one connection. While the server executes a batch, the SQL of the next batch is
built.

Up to two batches are in flight, because the COMMIT of a batch is sent together with the statements of the next batch.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain

from cdc.consumer.apply.chunks import Chunks
from cdc.consumer.apply.committed import moved, resolve_commit, sequence_in
from cdc.consumer.apply.planned_batch import PlannedBatch, State
from cdc.consumer.apply.prefetch import Prefetch
from cdc.consumer.apply.row_by_row import RowByRow
from cdc.consumer.apply.row_errors import refusal
from cdc.consumer.errors import Refused, Unapplicable
from cdc.consumer.follower.session import Session
from cdc.consumer.plan.packets import FRONT_BYTES, Mismatch, Statement, check_counts, loads, packets
from cdc.consumer.plan.planner import in_order
from cdc.consumer.state.checkpoint import Checkpoint
from cdc.service.logs import event

__all__ = ["SerialExecutor"]

_LOG = logging.getLogger("cdc.consumer")
_PART = "part"
_SAVEPOINT = f"SAVEPOINT {_PART}".encode()


class SerialExecutor:
    """An ``Executor`` that repeats a failed batch row by row (``row_by_row``), or with ``chunks`` if the batch is a
    chunk of a table copy.

    ``conflicts`` counts the conflicts in committed batches that were resolved in the leader's favour.
    """

    def __init__(self, session: Session, row_by_row: RowByRow, chunks: Chunks, *, prefetch: Prefetch) -> None:
        self._session = session
        self._row_by_row = row_by_row
        self._chunks = chunks
        self._prefetch = prefetch
        self._last: PlannedBatch | None = None  # the newest sent batch, if its COMMIT has not been sent yet
        self._committing: PlannedBatch | None = None  # the batch before ``_last``, if its COMMIT has been sent
        self._conflicts = 0  # the number of conflicts in the open transaction
        self.conflicts = 0

    def put(self, batch: PlannedBatch) -> None:
        """Sends the statements of a batch, and then its ``tail``, the statements that set the checkpoint. Before that,
        waits until the previous batch is executed.

        Raises Interrupted, and PromiseError for a row or statement that can't be applied.
        """
        limit = self._session.max_packet - FRONT_BYTES
        found = packets(chain(batch.statements, batch.tail), limit=limit)
        try:
            first = next(found, None)  # this builds the packet while the server executes the previous batch
        except Unapplicable as error:
            # The failure does not affect the previous batch, so that batch is committed first.
            self.commit()
            self._session.run([_SAVEPOINT])
            self._retry_row_by_row(batch, error)
            return
        if first is None:
            # No row of this part of a large transaction passes the filters, so no packet of this part can carry the
            # COMMIT of the previous batch. That COMMIT is sent now: it must neither wait for the next part nor be
            # rolled back with this transaction.
            self.commit()
            self._is_executed(batch)
            return
        self.settle()
        self._send_all(batch, first, found)

    def settle(self) -> None:
        """Waits until the last batch is executed, and checks its row counts; its COMMIT may be sent later.

        Raises PromiseError, Interrupted.
        """
        batch = self._last
        if batch is None or batch.state is not State.SENT:
            return
        try:
            self._check(batch.outstanding)
        except (Mismatch, Refused) as error:
            self._retry_row_by_row(batch, error)
        else:
            self._is_executed(batch)

    def commit(self, also: Sequence[bytes] = ()) -> None:
        """Commits all batches, and waits for the commits. The last batch is committed in one transaction with the
        statements ``also``.

        Raises PromiseError, Interrupted, Refused.
        """
        self.settle()
        if self._last is not None:
            self._session.send([*also, b"COMMIT"])
            self._is_committing(self._last)
            self._check([])
        elif also:
            self._session.run([*also, b"COMMIT"])

    def recover(self, checkpoint: Checkpoint) -> None:
        """Forgets the batches that were not committed over the lost connection. A batch whose COMMIT the server has
        executed counts as committed.

        ``checkpoint`` is the last checkpoint that is known to be committed. Raises PromiseError if the follower has
        neither this checkpoint nor the checkpoint of the batch whose COMMIT was sent.
        """
        resolve_commit(self._session, self._committing, checkpoint)
        if self._committing is not None and self._committing.state is State.COMMITTED:
            self._has_committed()
        self._last = self._committing = None
        self._conflicts = 0

    def _send_all(self, batch: PlannedBatch, first: list[Statement], rest: Iterator[list[Statement]]) -> None:
        try:
            self._send(first, savepoint=not batch.batch.begins)
            self._last = batch
            batch.sent(first)
            for packet in rest:
                self._check(batch.outstanding)
                self._send(packet)
                batch.sent(packet)
        except (Mismatch, Refused) as error:
            self._retry_row_by_row(batch, error)
        except Unapplicable as error:
            # The next packet can't be built, so the row counts of the previous packet no longer matter.
            with suppress(Mismatch, Refused):
                self._check(batch.outstanding)
            self._retry_row_by_row(batch, error)

    def _is_executed(self, batch: PlannedBatch) -> None:
        batch.executed()
        self._last = batch if batch.batch.ends else None

    def _is_committing(self, batch: PlannedBatch) -> None:
        batch.committing()
        self._committing, self._last = batch, None

    def _has_committed(self) -> None:
        self._committing = None
        self.conflicts += self._conflicts
        self._conflicts = 0

    def _send(self, packet: list[Statement], *, savepoint: bool = False) -> None:
        before = self._last if self._last is not None and self._last.state is State.EXECUTED else None
        front = [b"COMMIT"] if before else []
        front += [_SAVEPOINT] if savepoint else []
        data = loads(packet, front=len(front))
        self._prefetch.send(self._session, front + [statement.sql for statement in packet], data)
        if before is not None:
            self._is_committing(before)

    def _check(self, packet: Sequence[Statement]) -> None:
        """Receives the row counts of the packet that was sent last, and checks them. Raises Mismatch and Refused, and
        PromiseError for a refused COMMIT."""
        committing = self._committing
        try:
            counts = self._prefetch.receive(self._session)
        except Refused as error:
            if committing is not None:
                self._session.reset()
                if sequence_in(self._session, committing.target.resource) != committing.target.sequence:
                    raise refusal(error, Statement(b"COMMIT")) from None
                committing.committed()
                self._has_committed()
            raise
        if committing is not None:
            committing.committed()
            self._has_committed()
        check_counts(packet, counts)

    def _retry_row_by_row(self, batch: PlannedBatch, reason: Exception) -> None:
        """Rolls a batch back, and executes it again row by row to find the row with a conflict.

        The batch may also have failed without a conflict. The follower may refuse a statement that changes rows with
        foreign keys to one another, and a table that is being copied may still contain any rows. So this retry is
        logged only at the level DEBUG, while each conflict is logged with its row.
        """
        until = batch.batch.last.sequence
        event(_LOG, "batch failed, retrying row by row", level=logging.DEBUG, until=until, reason=reason)
        self._session.reset(savepoint="" if batch.batch.begins else _PART)
        if batch.chunk is not None:
            self._chunks.apply(batch.chunk)
        else:
            self._conflicts += self._row_by_row.apply(in_order(batch.records))
        for statement in batch.tail:
            try:
                self._send([statement])
                self._check([statement])
            except Refused as error:
                raise refusal(error, statement) from None
            except Mismatch:
                raise moved(batch.target) from None
        self._is_executed(batch)

"""Executes batches one after the other on one connection; while the server executes one, the next one is made.

Up to two batches are pending: one whose COMMIT was sent together with the statements of the next one.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain

from cdc.consumer.apply.chunks import Chunks
from cdc.consumer.apply.committed import FRONT_BYTES, Mismatch, PendingBatch, check, loads, moved, sequence_in
from cdc.consumer.apply.prefetch import Prefetch
from cdc.consumer.apply.refusals import refusal
from cdc.consumer.apply.row_by_row import RowByRow
from cdc.consumer.errors import Refused, Unapplicable
from cdc.consumer.follower.session import Session
from cdc.consumer.plan.packets import Statement, packets
from cdc.consumer.plan.planner import in_order
from cdc.consumer.state.checkpoint import Checkpoint
from cdc.service.logs import event

__all__ = ["SerialExecutor"]

_LOG = logging.getLogger("cdc.consumer")
_PART = "part"
_SAVEPOINT = f"SAVEPOINT {_PART}".encode()


class SerialExecutor:
    """An ``Executor`` that executes a batch row by row (``row_by_row``) where it fails as a whole, and a chunk of
    a table as ``chunks`` does.

    ``conflicts`` counts the conflicts in committed batches that were resolved in the leader's favour, ``parts`` the
    parts of a large transaction that are executed and not committed.
    """

    def __init__(self, session: Session, row_by_row: RowByRow, chunks: Chunks, *, prefetch: Prefetch) -> None:
        self._session = session
        self._row_by_row = row_by_row
        self._chunks = chunks
        self._prefetch = prefetch
        self._executing: tuple[PendingBatch, list[Statement]] | None = None  # the last packet's counts are outstanding
        self._executed: PendingBatch | None = None  # its counts are right, its COMMIT goes with the next packet
        self._committing: PendingBatch | None = None  # its COMMIT was sent
        self._conflicts = 0  # in the open transaction
        self.committed: list[PendingBatch] = []
        self.conflicts = 0
        self.parts = 0

    def put(self, pending: PendingBatch, statements: Iterator[Statement]) -> None:
        """Send the statements and the tail of a batch, after the batch before it has been executed.

        Raises PromiseError for what can't be applied, Interrupted.
        """
        limit = self._session.max_packet - FRONT_BYTES
        found = packets(chain(statements, pending.tail), limit=limit)
        try:
            first = next(found, None)  # made while the server executes the batch before
        except Unapplicable as error:
            # The batch before it is not affected.
            self.commit()
            self._session.run([_SAVEPOINT])
            self._retry_row_by_row(pending, error)
            return
        if first is None:
            # A part of a large transaction of which nothing passes the filters. No packet carries the COMMIT of the
            # batch before it, which must not wait for the next part, nor be rolled back with this transaction.
            self.commit()
            self._is_executed(pending)
            return
        self.settle()
        self._send_all(pending, first, found)

    def settle(self) -> None:
        """Wait until the last batch is executed, and check its counts; it may be left to be committed.

        Raises PromiseError, Interrupted.
        """
        if self._executing is None:
            return
        pending, sent = self._executing
        try:
            self._check(sent)
        except (Mismatch, Refused) as error:
            self._retry_row_by_row(pending, error)
        else:
            self._is_executed(pending)

    def commit(self, also: Sequence[bytes] = ()) -> None:
        """Commit all batches and, in one transaction with the last of them, these statements; and wait for it.

        Raises PromiseError, Interrupted, Refused.
        """
        self.settle()
        if self._executed is not None:
            self._session.send([*also, b"COMMIT"])
            self._committing, self._executed = self._executed, None
            self._check([])
        elif also:
            self._session.run([*also, b"COMMIT"])

    def recover(self, checkpoint: Checkpoint) -> None:
        """Forget what was lost with the former connection, unless its COMMIT has reached the server.

        ``checkpoint`` is the one known to be committed. Raises PromiseError where the follower has another one.
        """
        sequence = sequence_in(self._session, checkpoint.resource)
        if self._committing is not None and sequence == self._committing.target.sequence:
            self._has_committed(self._committing)
        elif sequence != checkpoint.sequence:
            raise moved(checkpoint)
        self._executing = self._executed = self._committing = None
        self._conflicts = 0

    def _send_all(self, pending: PendingBatch, sent: list[Statement], rest: Iterator[list[Statement]]) -> None:
        try:
            self._send(sent, savepoint=not pending.batch.begins)
            for packet in rest:
                self._check(sent)
                self._send(packet)
                sent = packet
        except (Mismatch, Refused) as error:
            self._retry_row_by_row(pending, error)
        except Unapplicable as error:
            # The next packet could not be made, so the counts of the one before it no longer matter.
            with suppress(Mismatch, Refused):
                self._check(sent)
            self._retry_row_by_row(pending, error)
        else:
            self._executing = pending, sent

    def _is_executed(self, pending: PendingBatch) -> None:
        self._executing = None
        if pending.batch.ends:
            self._executed = pending
        else:
            self.parts += 1

    def _has_committed(self, pending: PendingBatch) -> None:
        self.committed.append(pending)
        self._committing = None
        self.parts = 0
        self.conflicts += self._conflicts
        self._conflicts = 0

    def _send(self, packet: list[Statement], *, savepoint: bool = False) -> None:
        # The checkpoint commits with the rows: a crash leaves both or neither.
        front = [b"COMMIT"] if self._executed else []
        front += [_SAVEPOINT] if savepoint else []
        data = loads(packet, front=len(front))
        self._prefetch.send(self._session, front + [statement.sql for statement in packet], data)
        self._committing, self._executed = self._executed, None

    def _check(self, packet: list[Statement]) -> None:
        """Receive the counts of the packet sent last. Raises Mismatch or Refused, PromiseError for a refused COMMIT."""
        committing = self._committing
        try:
            counts = self._prefetch.receive(self._session)
        except Refused as error:
            if committing is not None:
                self._session.reset()
                if sequence_in(self._session, committing.target.resource) != committing.target.sequence:
                    raise refusal(error, Statement(b"COMMIT")) from None
                self._has_committed(committing)
            raise
        if committing is not None:
            self._has_committed(committing)
        check(packet, counts)

    def _retry_row_by_row(self, pending: PendingBatch, reason: Exception) -> None:
        """Roll a batch back and execute it again row by row.

        That identifies the row with a conflict. There may be none: where rows refer to one another, joining their
        changes into one statement can fail by itself, and a table that is being copied may have any rows yet. So this
        is no news by itself: a conflict is logged with its row.
        """
        until = pending.batch.last.sequence
        event(_LOG, "batch failed, retrying row by row", level=logging.DEBUG, until=until, reason=reason)
        self._session.reset(savepoint="" if pending.batch.begins else _PART)
        if pending.chunk is not None:
            self._chunks.apply(pending.chunk)
        else:
            self._conflicts += self._row_by_row.apply(in_order(pending.records))
        for statement in pending.tail:
            try:
                self._send([statement])
                self._check([statement])
            except Refused as error:
                raise refusal(error, statement) from None
            except Mismatch:
                raise moved(pending.target) from None
        self._is_executed(pending)

"""Batches to the follower: one follower transaction holds a batch's rows and its checkpoint, again until it commits."""

import threading
from collections.abc import Callable, Iterable
from itertools import chain

from cdc.consumer.assembler import Batch
from cdc.consumer.checkpoint import Checkpoint
from cdc.consumer.ledger import Ledger
from cdc.consumer.planner import plan
from cdc.consumer.refusals import Unapplicable
from cdc.consumer.replay import Replay, refusal
from cdc.consumer.session import Interrupted, Refused, Session
from cdc.consumer.statements import PACKET_BYTES, Statement, packets, statements
from cdc.consumer.tables import Tables
from cdc.errors import Disconnected, PromiseError
from cdc.record import Uri
from cdc.retry import Retry

__all__ = ["Applier"]


class _Mismatch(Exception):
    """A statement matched another number of rows than the leader changed."""


class Applier:
    """Applies batches from ``checkpoint`` on, over a connected session that holds the lock.

    ``passes(uri)`` says whose tables are replicated; ``retry`` says how long to go on without progress while the
    follower is away, ``stop`` ends that early. ``filtered`` counts the rows of tables that do not pass.
    """

    def __init__(
        self,
        session: Session,
        ledger: Ledger,
        *,
        checkpoint: Checkpoint,
        passes: Callable[[Uri], bool],
        on_conflict: str,
        retry: Retry,
        stop: threading.Event,
    ) -> None:
        self._session = session
        self._ledger = ledger
        self._tables = Tables(session)
        self._replay = Replay(session, self._tables, on_conflict=on_conflict, skips=ledger.skips, note=ledger.skip)
        self._passes = passes
        self._retry = retry
        self._stop = stop
        self.checkpoint = checkpoint
        self.filtered = 0

    @property
    def conflicts(self) -> int:
        """How many conflicts were settled in the leader's favour."""
        return self._replay.conflicts

    def apply(self, batch: Batch) -> bool:
        """Apply a batch exactly once. False where ``stop`` was set before the follower took it.

        Raises PromiseError for a row or statement that can't be applied, ServerGone where the follower stays away.
        """
        target = self.checkpoint.advanced(last=batch.last, offsets=batch.offsets)
        while True:
            try:
                if self._session.connected or not self._resume(target):
                    self._attempt(batch, target)
            except Interrupted as error:
                # A new connection has no half transaction and no session variable of the old one.
                self._session.close()
                self._tables.forget()
                self._retry.wait(_lost(error, before=batch.last.sequence))
                if self._stop.is_set():
                    return False
            except Refused as error:
                raise PromiseError(
                    f"the follower refuses: {error}",
                    where=f"the batch that ends at sequence {batch.last.sequence}",
                    hint="nothing of the batch was applied; mend the account, its grants or the schema cdc",
                ) from None
            else:
                self._retry.success()
                self.checkpoint = target
                return True

    def _resume(self, target: Checkpoint) -> bool:
        """Connect anew; whether the batch's commit came through although we did not hear of it."""
        # With the lock taken again the former connection has ended at the server, and its commit is decided.
        self._session.connect()
        rows = self._session.rows(Checkpoint.select(self.checkpoint.resource))
        self._session.commit()
        sequence = Checkpoint.from_rows(rows[0]).sequence if rows else None
        if sequence == target.sequence:
            return True
        if sequence != self.checkpoint.sequence:
            raise self._moved()
        return False

    def _attempt(self, batch: Batch, target: Checkpoint) -> None:
        tail = []
        if batch.statement is not None:
            tail.append(self._ledger.settle(batch.statement))
            self._tables.forget()
        tail.append(Statement(self.checkpoint.advance(target, last=batch.last).encode(), 1))
        moved = target.move(batch.offsets)
        if moved:
            tail.append(Statement(moved.encode()))
        steps = plan(batch.records, passes=self._passes)
        rows = statements(steps, generated=self._tables.generated, size=min(self._session.max_packet, PACKET_BYTES))
        try:
            self._run(chain(rows, tail))
        except (_Mismatch, Refused, Unapplicable):
            # Row by row it shows whether it is a conflict, and which row; or there is none, where only the joining of
            # neighbours was at fault (rows that refer to one another).
            self._session.reset()
            self._tables.forget()
            self._replay.apply(steps)
            self._run_tail(tail)
        # The checkpoint commits with the rows: a crash leaves both or neither.
        self._session.commit()
        self.filtered += batch.rows - sum(len(step.changes) for step in steps)

    def _run(self, source: Iterable[Statement]) -> None:
        """Raises _Mismatch or Refused at the first statement that does not do what it did on the leader."""
        for packet in packets(source, limit=self._session.max_packet):
            counts = self._session.run([statement.sql for statement in packet])
            for statement, count in zip(packet, counts, strict=True):
                if statement.rows is not None and statement.rows != count:
                    raise _Mismatch if statement.changes else self._moved()

    def _run_tail(self, tail: list[Statement]) -> None:
        for statement in tail:
            try:
                self._run([statement])
            except Refused as error:
                raise refusal(error, statement) from None

    def _moved(self) -> PromiseError:
        return PromiseError(
            "the checkpoint in the follower has been moved by something else",
            where=f"cdc.checkpoint of {self.checkpoint.resource!r}, expected sequence {self.checkpoint.sequence}",
            hint="nothing was applied; run one consumer only, and leave the schema cdc to it",
        )


def _lost(error: Interrupted, *, before: int) -> Disconnected:
    return Disconnected(
        f"the follower does not take the changes: {error}",
        where=f"the batch that ends at sequence {before}",
        hint="start again when the server is up; consumer.retry_seconds says how long to wait for it",
    )

"""Batches on their way into the follower: statements sent, counts checked, the COMMIT of one sent with the next.

The server is never waited for while there is something to make: it executes one batch while the statements of the next
one are made. So up to two batches are under way: one whose COMMIT was sent, and one whose last statements were.
"""

import logging
from collections.abc import Iterator
from contextlib import suppress

from cdc.consumer.apply.pending_batch import Mismatch, Work, check, moved, reached
from cdc.consumer.apply.row_by_row import Replay, refusal
from cdc.consumer.errors import Unapplicable
from cdc.consumer.follower.session import Refused, Session
from cdc.consumer.plan.packets import Statement
from cdc.consumer.plan.planner import in_order
from cdc.consumer.state.checkpoint import Checkpoint
from cdc.service.process import event

__all__ = ["Execution"]

_LOG = logging.getLogger("cdc.consumer")
_PART = "part"
_SAVEPOINT = f"SAVEPOINT {_PART}".encode()


class Execution:
    """Executes the work of one connection of ``session``, change by change (``replay``) where it fails as a whole.

    ``committed`` collects the work whose commit has come through, ``conflicts`` counts what was settled in it in the
    leader's favour, ``parts`` counts the parts of a large transaction that are executed and not committed.
    """

    def __init__(self, session: Session, replay: Replay) -> None:
        self._session = session
        self._replay = replay
        self._executing: tuple[Work, list[Statement]] | None = None  # the last packet's counts are to come
        self._executed: Work | None = None  # as it should be, so that it may commit
        self._committing: Work | None = None  # its COMMIT was sent
        self._settled = 0  # conflicts of the transaction that is open
        self.committed: list[Work] = []
        self.conflicts = 0
        self.parts = 0

    def put(self, work: Work, packets: Iterator[list[Statement]]) -> None:
        """Send the packets of statements; what was put before is executed then.

        Raises PromiseError for what can't be applied, Interrupted.
        """
        try:
            sent = next(packets, None)  # made while the server is at work on the batch before
        except Unapplicable as error:
            # What was put before does not suffer from it.
            self.commit()
            self._session.run([_SAVEPOINT])
            self._one_by_one(work, error)
            return
        if sent is None:
            # A part of a large transaction of which nothing passes the filters. What is before it must not wait for a
            # packet to go with: it may be long in coming, and must not be rolled back with it.
            self.commit()
            self._is_executed(work)
            return
        self.settle()
        try:
            self._send(sent, savepoint=not work.batch.begins)
            for packet in packets:
                self._check(sent)
                self._send(packet)
                sent = packet
        except (Mismatch, Refused) as error:
            self._one_by_one(work, error)
        except Unapplicable as error:
            # The next packet could not be made; the counts of the one before it do not matter any more.
            with suppress(Mismatch, Refused):
                self._check(sent)
            self._one_by_one(work, error)
        else:
            self._executing = work, sent

    def settle(self) -> None:
        """Wait until what was put is executed as it should be. Raises PromiseError, Interrupted."""
        if self._executing is None:
            return
        work, sent = self._executing
        try:
            self._check(sent)
        except (Mismatch, Refused) as error:
            self._one_by_one(work, error)
        else:
            self._is_executed(work)

    def commit(self) -> None:
        """Commit what was put, and wait for it. Raises PromiseError, Interrupted."""
        self.settle()
        if self._executed is not None:
            self._send([])
            self._check([])

    def reconnected(self, checkpoint: Checkpoint) -> None:
        """What is under way was lost with the connection, but for a COMMIT that came through nevertheless.

        ``checkpoint`` is the one known to be committed. Raises PromiseError where the follower has another one.
        """
        sequence = reached(self._session, checkpoint.resource)
        if self._committing is not None and sequence == self._committing.target.sequence:
            self._has_committed(self._committing)
        elif sequence != checkpoint.sequence:
            raise moved(checkpoint)
        self._executing = self._executed = self._committing = None
        self._settled = 0

    def _is_executed(self, work: Work) -> None:
        self._executing = None
        if work.batch.ends:
            self._executed = work
        else:
            self.parts += 1

    def _has_committed(self, work: Work) -> None:
        self.committed.append(work)
        self._committing = None
        self.parts = 0
        self.conflicts += self._settled
        self._settled = 0

    def _send(self, packet: list[Statement], *, savepoint: bool = False) -> None:
        # The checkpoint commits with the rows: a crash leaves both or neither.
        first = [b"COMMIT"] if self._executed else []
        first += [_SAVEPOINT] if savepoint else []
        self._session.send(first + [statement.sql for statement in packet])
        self._committing, self._executed = self._executed, None

    def _check(self, packet: list[Statement]) -> None:
        """Raises Mismatch or Refused where a statement of the packet did not do what it did on the leader."""
        committing = self._committing
        try:
            counts = self._session.receive()
        except Refused as error:
            if committing is not None:
                self._session.reset()
                if reached(self._session, committing.target.resource) != committing.target.sequence:
                    raise refusal(error, Statement(b"COMMIT")) from None
                self._has_committed(committing)
            raise
        if committing is not None:
            self._has_committed(committing)
        check(packet, counts)

    def _one_by_one(self, work: Work, reason: Exception) -> None:
        """Execute a batch anew, change by change.

        So it shows whether there is a conflict, and which row has it; or there is none, where only the joining of
        changes was at fault (rows that refer to one another).
        """
        event(_LOG, "a batch change by change", until=work.batch.last.sequence, reason=reason)
        self._session.reset(savepoint="" if work.batch.begins else _PART)
        self._settled += self._replay.apply(in_order(work.records))
        for statement in work.tail:
            try:
                self._send([statement])
                self._check([statement])
            except Refused as error:
                raise refusal(error, statement) from None
            except Mismatch:
                raise moved(work.target) from None
        self._is_executed(work)

"""Executes independent batches at the same time, each on a connection of its own, and commits them in order.

With large batches most time is spent by the server on one connection. Here the rows of a batch are sent on one
connection while the batches before it are still executed on others. All other promises stay: each batch moves the
checkpoint, in the transaction of its rows, from where the batch before it has set it, and that statement matches no row
until the batch before it has committed. So the follower commits the batches in the leader's order, each completely or
not at all, and at most one COMMIT is outstanding.

Any failure aborts the run: everything that is not committed is rolled back and executed again serially, which
identifies the cause, if there is one.
"""

import logging
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from cdc.consumer.apply.committed import FRONT_BYTES, Mismatch, PendingBatch, check, loads, moved, sequence_in
from cdc.consumer.apply.prefetch import Prefetch
from cdc.consumer.errors import LOCK_CONFLICT, Interrupted, Refused, Stopped, Unapplicable
from cdc.consumer.follower.session import LOCK_WAIT_SECONDS, Session
from cdc.consumer.plan.packets import Statement, packets
from cdc.consumer.state.checkpoint import Checkpoint
from cdc.service.logs import event

__all__ = ["ParallelExecutor", "RunFailed"]

_LOG = logging.getLogger("cdc.consumer")
# Independent batches do not wait for each other's row locks. If they do, the server cannot detect the deadlock, because
# the holder of the lock waits for this program. The checkpoint's row lock is held until the COMMIT of the batch before,
# which may be slow and waits for nothing in this program.
_SHORT_WAIT = b"SET SESSION innodb_lock_wait_timeout=1"
_USUAL_WAIT = f"SET SESSION innodb_lock_wait_timeout={LOCK_WAIT_SECONDS}".encode()


class RunFailed(Exception):
    """The batches that are not committed must be executed serially, after ``ParallelExecutor.recover``."""


@dataclass(slots=True)
class _Execution:
    """A batch on its connection, and the packet whose counts are outstanding."""

    session: Session
    pending: PendingBatch
    sent: list[Statement] = field(default_factory=list)


class ParallelExecutor:
    """An ``Executor`` over up to ``connections`` connections; the additional ones are open only during a run.

    After a failure ``failed`` is true, and nothing else may be done before ``recover``.
    """

    def __init__(self, session: Session, *, connections: int, prefetch: Prefetch) -> None:
        self._sessions = [session, *(session.additional(number) for number in range(1, connections))]
        self._prefetch = prefetch
        self._executions: deque[_Execution] = deque()  # the oldest first
        self._committing: PendingBatch | None = None  # its COMMIT was sent, or is about to be
        self.committed: list[PendingBatch] = []
        self.failed = False

    @property
    def usable(self) -> bool:
        """Whether there is more than one connection."""
        return len(self._sessions) > 1

    @property
    def running(self) -> bool:
        """Whether there is a run, or one that failed, which occupies the first connection too."""
        return bool(self._executions) or self.failed

    def put(self, pending: PendingBatch, statements: Iterator[Statement]) -> None:
        """Send the statements of a batch that is independent of all others in the run.

        Raises RunFailed, Interrupted.
        """
        try:
            self._put(pending, statements)
        except (Mismatch, Refused, Unapplicable, Interrupted) as error:
            raise self._failure(error) from None

    def commit(self) -> None:
        """Commit all batches of the run, if there is one, and end it. Raises RunFailed, Interrupted."""
        if not self._executions:
            return
        try:
            while self._executions:
                self._settle(self._executions[0])
                self._run(self._executions[0].session, [b"COMMIT"])
                self._has_committed()
                self._executions.popleft()
        except (Mismatch, Refused, Interrupted) as error:
            raise self._failure(error) from None
        self._close_additional()

    def recover(self, checkpoint: Checkpoint) -> None:
        """Roll back what is not committed, after a failure or on a new first connection.

        ``checkpoint`` is the target of the last element of ``committed``. Raises PromiseError where the follower has
        another one, Interrupted, Refused.
        """
        # Idle connections first: a busy one may wait for a lock that an idle one holds.
        for execution in sorted(self._executions, key=lambda execution: execution.session.busy):
            if execution.session.connected:
                with suppress(Refused):
                    _drain(execution.session)
                execution.session.reset()
        self._close_additional()
        sequence = sequence_in(self._sessions[0], checkpoint.resource)
        if self._committing is not None and sequence == self._committing.target.sequence:
            self._has_committed()
        elif sequence != checkpoint.sequence:
            raise moved(checkpoint)
        self._executions.clear()
        self._committing = None
        self.failed = False

    def _close_additional(self) -> None:
        for session in self._sessions[1:]:
            session.close()

    def _put(self, pending: PendingBatch, statements: Iterator[Statement]) -> None:
        found = packets(statements, limit=self._sessions[0].max_packet - FRONT_BYTES)
        sent = next(found)  # made while the server executes the batches before it
        if len(self._executions) < len(self._sessions):
            session, front = self._opened(), [_SHORT_WAIT]
        else:
            session, front = self._executions[0].session, [b"COMMIT", _SHORT_WAIT]
            self._settle(self._executions[0])
            self._executions.popleft()
        execution = _Execution(session, pending, sent)
        self._executions.append(execution)
        self._send(execution, front)
        for packet in found:
            check(execution.sent, self._prefetch.receive(session))
            execution.sent = packet
            self._send(execution, [])

    def _send(self, execution: _Execution, front: Sequence[bytes]) -> None:
        data = loads(execution.sent, front=len(front))
        self._prefetch.send(execution.session, [*front, *(each.sql for each in execution.sent)], data)

    def _opened(self) -> Session:
        session = self._sessions[len(self._executions)]
        if not session.connected:
            try:
                session.connect()
            except Stopped:
                raise
            except Interrupted as error:
                # For example too many connections: the first one is enough to go on serially.
                raise Refused(error.code, str(error)) from None
        return session

    def _settle(self, execution: _Execution) -> None:
        """Wait until the batch is executed and all before it have committed, and execute its tail."""
        session = execution.session
        check(execution.sent, self._prefetch.receive(session))
        execution.sent = []
        for packet in packets(execution.pending.tail, limit=session.max_packet - FRONT_BYTES):
            check(packet, self._run(session, [_USUAL_WAIT, *(statement.sql for statement in packet)]))
        self._has_committed()
        self._committing = execution.pending

    def _run(self, session: Session, packet: Sequence[bytes]) -> list[int]:
        session.send(packet)
        return self._prefetch.receive(session)

    def _has_committed(self) -> None:
        if self._committing is not None:
            self.committed.append(self._committing)
        self._committing = None

    def _failure(self, error: Exception) -> Exception:
        """The exception to raise: RunFailed, or the error itself for a lost connection."""
        self.failed = True
        if isinstance(error, Interrupted) and error.code not in LOCK_CONFLICT:
            return error
        event(_LOG, "parallel batches failed, retrying serially", reason=error)
        return RunFailed()


def _drain(session: Session) -> None:
    try:
        session.receive()
    except Interrupted as error:
        if error.code not in LOCK_CONFLICT:
            raise

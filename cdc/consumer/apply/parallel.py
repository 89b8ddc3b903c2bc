"""Executes independent batches in parallel, each on its own connection, and commits them in order.

With large batches, most of the time passes while the server executes the statements of one connection. So the rows of a
batch are sent over one connection while other connections still execute earlier batches. All promises of serial
execution stay valid. Each batch updates the checkpoint in the transaction of its rows, and that UPDATE matches no row
until the previous batch has committed its checkpoint. So the follower commits the batches in the leader's order, each
completely or not at all, and at most one COMMIT is outstanding.

Any failure ends the run: all uncommitted batches are rolled back and executed again serially. If a row caused the
failure, the serial execution finds the row.
"""

import logging
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from cdc.consumer.apply.committed import resolve_commit
from cdc.consumer.apply.planned_batch import PlannedBatch
from cdc.consumer.apply.prefetch import Prefetch
from cdc.consumer.errors import LOCK_CONFLICT, Interrupted, Refused, Stopped, Unapplicable
from cdc.consumer.follower.session import LOCK_WAIT_SECONDS, Session
from cdc.consumer.plan.footprint import Footprint
from cdc.consumer.plan.packets import FRONT_BYTES, Mismatch, Statement, check_counts, loads, packets
from cdc.consumer.state.checkpoint import Checkpoint
from cdc.service.logs import event

__all__ = ["ParallelExecutor", "RunFailed"]

_LOG = logging.getLogger("cdc.consumer")
# Independent batches should never wait for each other's row locks. If a batch does wait, the server cannot detect the
# deadlock, because the connection that holds the lock waits for this program. So this wait is short. Only the wait for
# the checkpoint's row lock may be long: the COMMIT of the previous batch holds that lock. That COMMIT may be slow, but
# it waits for nothing in this program.
_SHORT_WAIT = b"SET SESSION innodb_lock_wait_timeout=1"
_IDLE_SECONDS = 10.0  # seconds after which an idle additional connection is closed
_USUAL_WAIT = f"SET SESSION innodb_lock_wait_timeout={LOCK_WAIT_SECONDS}".encode()


class RunFailed(Exception):
    """A parallel run failed: the uncommitted batches must be executed serially, after ``ParallelExecutor.recover``."""


class ParallelExecutor:
    """An ``Executor`` that uses up to ``connections`` connections.

    A run is a series of batches that are executed in parallel, until all of them are committed. The additional
    connections stay open for a while after a run. After a failure ``failed`` is true, and only ``recover`` may be
    called.
    """

    def __init__(self, session: Session, *, connections: int, prefetch: Prefetch) -> None:
        self._sessions = [session, *(session.additional(number) for number in range(1, connections))]
        self._prefetch = prefetch
        self._run: deque[tuple[Session, PlannedBatch]] = deque()  # each batch with its connection, oldest first
        self._committing: PlannedBatch | None = None
        self.failed = False

    @property
    def usable(self) -> bool:
        """Whether there is more than one connection."""
        return len(self._sessions) > 1

    @property
    def running(self) -> bool:
        """Whether a run has begun and not ended yet, or has failed; it occupies the first connection, too."""
        return bool(self._run) or self.failed

    @property
    def under_way(self) -> list[Footprint]:
        """The rows of the batches that are perhaps not committed yet, oldest first."""
        batches = [batch for _, batch in self._run]
        return [_footprint(batch) for batch in ([self._committing] if self._committing else []) + batches]

    def put(self, batch: PlannedBatch) -> None:
        """Sends the statements of a batch. The batch must be independent of all batches ``under_way``.

        Raises RunFailed, Interrupted.
        """
        _footprint(batch)
        try:
            self._put(batch)
        except (Mismatch, Refused, Unapplicable, Interrupted) as error:
            raise self._failure(error) from None

    def commit(self) -> None:
        """Commits all batches of the run, and ends the run; has no effect without a run. Raises RunFailed,
        Interrupted."""
        if not self._run:
            return
        try:
            while self._run:
                session, batch = self._run[0]
                self._execute(session, batch)
                self._ask(session, [b"COMMIT"])
                self._has_committed()
                self._run.popleft()
        except (Mismatch, Refused, Interrupted) as error:
            raise self._failure(error) from None

    def rest(self) -> None:
        """Closes the additional connections if they are idle for a while. Must be called from time to time."""
        if not self._run:
            for session in self._sessions[1:]:
                if session.silent_seconds > _IDLE_SECONDS:
                    session.close()

    def recover(self, checkpoint: Checkpoint) -> None:
        """Rolls back the uncommitted batches after a failure, or after the program has connected to the follower again.

        ``checkpoint`` is the checkpoint of the last batch that is known to be committed. Raises Interrupted and
        Refused, and PromiseError if the checkpoint on the follower belongs to no batch.
        """
        # The transactions of idle connections are rolled back first, because a busy connection may wait for a lock that
        # an idle connection holds.
        for session in sorted((session for session, _ in self._run), key=lambda session: session.busy):
            if session.connected:
                with suppress(Refused):
                    _drain(session)
                session.reset()
        self._close_additional()
        resolve_commit(self._sessions[0], self._committing, checkpoint)
        self._run.clear()
        self._committing = None
        self.failed = False

    def _close_additional(self) -> None:
        for session in self._sessions[1:]:
            session.close()

    def _put(self, batch: PlannedBatch) -> None:
        found = packets(batch.statements, limit=self._sessions[0].max_packet - FRONT_BYTES)
        # Builds the packet while the server still executes earlier batches. There is none if all rows are left out.
        first = next(found, [])
        if len(self._run) < len(self._sessions):
            session, front = self._opened(), [_SHORT_WAIT]
        else:
            session, oldest = self._run[0]
            front = [b"COMMIT", _SHORT_WAIT]
            self._execute(session, oldest)
            self._run.popleft()
        self._run.append((session, batch))
        self._send(session, batch, first, front)
        for packet in found:
            check_counts(batch.outstanding, self._prefetch.receive(session))
            self._send(session, batch, packet, [])

    def _send(self, session: Session, batch: PlannedBatch, packet: Sequence[Statement], front: Sequence[bytes]) -> None:
        batch.sent(packet)
        self._prefetch.send(session, [*front, *(each.sql for each in packet)], loads(packet, front=len(front)))

    def _opened(self) -> Session:
        session = self._sessions[len(self._run)]
        if self._run and session.silent_seconds > _IDLE_SECONDS:
            session.close()  # the server closes a connection that is idle for longer
        if not session.connected:
            try:
                session.connect()
            except Stopped:
                raise
            except Interrupted as error:
                # The server may refuse the connection because it has too many connections. One connection is enough to
                # continue serially.
                raise Refused(error.code, str(error)) from None
        return session

    def _execute(self, session: Session, batch: PlannedBatch) -> None:
        """Waits until the rows of the batch are executed and all earlier batches have committed, then executes the
        statements that end its transaction (``batch.tail``).

        The caller must then send the COMMIT of the batch.
        """
        check_counts(batch.outstanding, self._prefetch.receive(session))
        for packet in packets(batch.tail, limit=session.max_packet - FRONT_BYTES):
            check_counts(packet, self._ask(session, [_USUAL_WAIT, *(statement.sql for statement in packet)]))
        self._has_committed()
        batch.executed()
        batch.committing()
        self._committing = batch

    def _ask(self, session: Session, packet: Sequence[bytes]) -> list[int]:
        session.send(packet)
        return self._prefetch.receive(session)

    def _has_committed(self) -> None:
        if self._committing is not None:
            self._committing.committed()
        self._committing = None

    def _failure(self, error: Exception) -> Exception:
        """Returns the exception to raise: RunFailed, or ``error`` itself if the connection is lost."""
        self.failed = True
        if isinstance(error, Interrupted) and error.code not in LOCK_CONFLICT:
            return error
        event(_LOG, "parallel batches failed, retrying serially", reason=error)
        return RunFailed()


def _footprint(batch: PlannedBatch) -> Footprint:
    if batch.footprint is None:
        raise RuntimeError("a batch whose rows are unknown is executed in parallel")
    return batch.footprint


def _drain(session: Session) -> None:
    try:
        session.receive()
    except Interrupted as error:
        if error.code not in LOCK_CONFLICT:
            raise

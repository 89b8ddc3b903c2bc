"""A run of batches that do not depend on one another: executed at once, each on a connection, committed in order.

What takes longest of large batches is the server's work on one connection. Here the rows of a batch are sent on one
connection while those before it are still executed on others. Nothing else is relaxed. A batch moves the checkpoint, as
always in its rows' own transaction, from where the batch before it has put it: the statement matches no row before that
one has committed. So the follower commits the batches in the leader's order, whole or not at all, and at most one
COMMIT is ever without an answer.

Whatever fails here fails the run: all is rolled back but what has committed, to be done again on the one connection,
where is found out what the trouble is, if there is any.
"""

import logging
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from cdc.consumer.apply.pending_batch import FRONT_BYTES, Mismatch, Work, check, moved, reached
from cdc.consumer.errors import Unapplicable
from cdc.consumer.follower.session import LOCK_WAIT_SECONDS, Interrupted, Refused, Session, Stopped
from cdc.consumer.plan.packets import Statement
from cdc.consumer.plan.packets import packets as joined
from cdc.consumer.state.checkpoint import Checkpoint
from cdc.service.process import event

__all__ = ["Lanes", "RunFailed"]

_LOG = logging.getLogger("cdc.consumer")
_LOCKED = frozenset({1205, 1213})
# The rows of independent batches wait for no lock of one another. If they do, the server can't see that the holder
# waits for us. The checkpoint waits for the COMMIT before it, which may be a slow one and waits for nothing of ours.
_SHORT_WAIT = b"SET SESSION innodb_lock_wait_timeout=1"
_USUAL_WAIT = f"SET SESSION innodb_lock_wait_timeout={LOCK_WAIT_SECONDS}".encode()


class RunFailed(Exception):
    """What has not committed is to be put again, not here, after ``Lanes.clear``."""


@dataclass(slots=True)
class _Lane:
    """A connection, what is executed there, and the packet whose counts are to come."""

    session: Session
    work: Work
    sent: list[Statement] = field(default_factory=list)


class Lanes:
    """Up to ``connections`` connections, ``session`` the first; the others are there only during a run.

    ``committed`` collects the work whose commit has come through; ``failed`` asks for ``clear`` before anything else.
    """

    def __init__(self, session: Session, *, connections: int) -> None:
        self._sessions = [session, *(session.beside(number) for number in range(1, connections))]
        self._lanes: deque[_Lane] = deque()  # the oldest work first
        self._committing: Work | None = None  # its COMMIT was sent, or is about to be
        self.committed: list[Work] = []
        self.failed = False

    @property
    def many(self) -> bool:
        """Whether there can be runs at all."""
        return len(self._sessions) > 1

    @property
    def running(self) -> bool:
        """Whether there is a run, or one that failed, so that nothing else may be done on the first connection."""
        return bool(self._lanes) or self.failed

    def put(self, work: Work, packets: Iterator[list[Statement]]) -> None:
        """Send the packets of work that is independent of all that the run has had, its tail apart.

        Raises RunFailed, Interrupted.
        """
        try:
            self._put(work, packets)
        except (Mismatch, Refused, Unapplicable, Interrupted) as error:
            raise self._failure(error) from None

    def finish(self) -> None:
        """End the run, if there is one: all of it commits. Raises RunFailed, Interrupted."""
        if not self._lanes:
            return
        try:
            while self._lanes:
                self._settle(self._lanes[0])
                self._lanes[0].session.run([b"COMMIT"])
                self._has_committed()
                self._lanes.popleft()
        except (Mismatch, Refused, Interrupted) as error:
            raise self._failure(error) from None
        self.close()

    def close(self) -> None:
        """End the connections beside the first one."""
        for session in self._sessions[1:]:
            session.close()

    def clear(self, checkpoint: Checkpoint) -> None:
        """After a failure, or with the first connection made anew: roll back what has not committed.

        ``checkpoint`` is the one that all of ``committed`` has led to. Raises PromiseError where the follower has
        another one, Interrupted, Refused.
        """
        # What waits for a lock of a connection that waits for us hears of it first.
        for lane in sorted(self._lanes, key=lambda lane: lane.session.busy):
            if lane.session.connected:
                with suppress(Refused):
                    _drain(lane.session)
                lane.session.reset()
        self.close()
        sequence = reached(self._sessions[0], checkpoint.resource)
        if self._committing is not None and sequence == self._committing.target.sequence:
            self._has_committed()
        elif sequence != checkpoint.sequence:
            raise moved(checkpoint)
        self._lanes.clear()
        self._committing = None
        self.failed = False

    def _put(self, work: Work, packets: Iterator[list[Statement]]) -> None:
        sent = next(packets)  # made while the server is at work on those before it
        if len(self._lanes) < len(self._sessions):
            session, front = self._opened(), []
        else:
            session, front = self._lanes[0].session, [b"COMMIT"]
            self._settle(self._lanes[0])
            self._lanes.popleft()
        lane = _Lane(session, work, sent)
        self._lanes.append(lane)
        session.send([*front, _SHORT_WAIT, *(statement.sql for statement in sent)])
        for packet in packets:
            check(lane.sent, session.receive())
            session.send([statement.sql for statement in packet])
            lane.sent = packet

    def _opened(self) -> Session:
        session = self._sessions[len(self._lanes)]
        if not session.connected:
            try:
                session.connect()
            except Stopped:
                raise
            except Interrupted as error:
                # Too many connections, say: there is one to go on with.
                raise Refused(error.code, str(error)) from None
        return session

    def _settle(self, lane: _Lane) -> None:
        """Have the lane's work executed whole, so that it may commit; then all before it has."""
        check(lane.sent, lane.session.receive())
        lane.sent = []
        for packet in joined(lane.work.tail, limit=lane.session.max_packet - FRONT_BYTES):
            check(packet, lane.session.run([_USUAL_WAIT, *(statement.sql for statement in packet)]))
        self._has_committed()
        self._committing = lane.work

    def _has_committed(self) -> None:
        if self._committing is not None:
            self.committed.append(self._committing)
        self._committing = None

    def _failure(self, error: Exception) -> Exception:
        """What to raise: a connection that is lost is no matter of the run."""
        self.failed = True
        if isinstance(error, Interrupted) and error.code not in _LOCKED:
            return error
        event(_LOG, "batches one after the other", reason=error)
        return RunFailed()


def _drain(session: Session) -> None:
    try:
        session.receive()
    except Interrupted as error:
        if error.code not in _LOCKED:
            raise

"""Tracks the checkpoint that the follower is known to have committed. After a connection was lost, reads the checkpoint
from the server."""

import logging

from cdc.consumer.apply.planned_batch import PlannedBatch
from cdc.consumer.errors import HINTS, Interrupted, Refused
from cdc.consumer.follower.session import Session
from cdc.consumer.state import base_copy
from cdc.consumer.state.checkpoint import Checkpoint
from cdc.errors import Disconnected, PromiseError
from cdc.service.logs import event

__all__ = ["Committed", "lost", "moved", "refuses", "resolve_commit", "sequence_in"]

_LOG = logging.getLogger("cdc.consumer")
_AWAY = "start again when the server is up; consumer.retry_seconds says how long to wait for it"


class Committed:
    """Keeps the newest ``checkpoint`` that is known to be committed.

    After a failover another server answers at the follower's address. It may be a replica that lags behind and still
    executes its relay log. ``switched`` is true until a transaction commits on that server. Until then, each new
    connection reads the checkpoint from that server. ``incomplete`` is true if the server lacks records that are no
    longer in memory.
    """

    def __init__(self, session: Session, checkpoint: Checkpoint) -> None:
        self._session = session
        self._server = session.server  # the server on which the last commit happened
        self._highest = checkpoint.sequence  # the highest sequence that was ever committed
        self.checkpoint = checkpoint
        self.switched = False
        self.incomplete = False
        session.address.committed()

    def advance(self, target: Checkpoint) -> None:
        """Notes that the follower has committed ``target``."""
        self.checkpoint = target
        self._server, self._highest = self._session.server, max(self._highest, target.sequence)
        self.switched = False
        self._session.address.committed()

    def connect(self) -> None:
        """Connects if there is no connection. If another server answers, uses the checkpoint of that server.

        Raises Interrupted or Refused, and PromiseError if the other server is not a replica of the former server.
        """
        if not self._session.connected:
            # Connecting acquires the consumer's lock, so the old connections have ended on the server. Each of their
            # commits has either happened or never will.
            self._session.connect()
        self.switched = self.switched or self._session.server != self._server
        if self.switched:
            there = _of_other_server(self._session, self.checkpoint, highest=self._highest)
            event(
                _LOG, "another server took the follower's place", level=logging.WARNING, server=self._session.server,
                before=self._server, sequence=there.sequence, lost=self._highest - there.sequence,
            )  # fmt: skip
            # The records in memory were parsed for the former server, so they are also useless if this server needs
            # other literals for doubles in JSON.
            other = there.sequence != self.checkpoint.sequence or self._session.changes_doubles
            self.incomplete = self.incomplete or other
            self.checkpoint = there


def sequence_in(session: Session, resource: str) -> int | None:
    """Reads the sequence in the follower's checkpoint; None if the follower has no checkpoint. Raises Interrupted or
    Refused."""
    rows = session.rows(Checkpoint.select(resource, schema=session.schema))
    session.run([b"COMMIT"])
    return Checkpoint.from_rows(rows[0], schema=session.schema).sequence if rows else None


def _of_other_server(session: Session, checkpoint: Checkpoint, *, highest: int) -> Checkpoint:
    """Returns the checkpoint of the server that answers now. If its sequence is above ``highest``, returns
    ``checkpoint``: the server then has a commit whose answer was lost, which ``resolve_commit`` takes into account, or
    a commit of another consumer.

    The records that this server lacks are still in the topics or in its relay log. Raises Interrupted, Refused,
    PromiseError if the server was not a replica of the former server, and UserError for an unfinished rewind
    (``state.base_copy``).
    """
    rows = session.rows(Checkpoint.select(checkpoint.resource, schema=checkpoint.schema))
    # With layout "single" all offsets are in the checkpoint's row, and the table of offsets may be missing.
    select_others = Checkpoint.select_offsets(checkpoint.resource, schema=checkpoint.schema)
    others = session.rows(select_others) if checkpoint.others else []
    there = Checkpoint.from_rows(rows[0], others, schema=checkpoint.schema) if rows else None
    if there is not None:
        base_copy.require_no_rewind(session, there)
    session.run([b"COMMIT"])
    if there is None or (there.topic, there.topic_id) != (checkpoint.topic, checkpoint.topic_id):
        raise PromiseError(
            "another server answers at the follower's address, which has no checkpoint of this stream",
            code="CDC-CHECKPOINT-MISSING",
            where=f"{checkpoint.schema}.checkpoint of {checkpoint.resource!r}, after sequence {checkpoint.sequence}",
            hint="let a replica of the follower take its place, or start the consumer again",
        )
    return there if there.sequence <= highest else checkpoint


def resolve_commit(session: Session, committing: PlannedBatch | None, checkpoint: Checkpoint) -> None:
    """Marks the batch ``committing`` as committed if the server has executed its COMMIT. Called after the connection
    was lost over which the COMMIT was sent.

    ``checkpoint`` is the last checkpoint that is known to be committed. Raises Interrupted, Refused, or PromiseError if
    the follower has neither this checkpoint nor the batch's checkpoint.
    """
    sequence = sequence_in(session, checkpoint.resource)
    if committing is not None and sequence == committing.target.sequence:
        committing.committed()
    elif sequence != checkpoint.sequence:
        raise moved(checkpoint)


def moved(checkpoint: Checkpoint) -> PromiseError:
    """Returns the error for a follower whose checkpoint differs from the checkpoint that this program wrote last."""
    return PromiseError(
        "the checkpoint in the follower has been moved by something else",
        code="CDC-CHECKPOINT-MOVED",
        where=f"{checkpoint.schema}.checkpoint of {checkpoint.resource!r}, up to sequence {checkpoint.sequence}",
        hint=f"nothing was applied; run one consumer only, and leave the schema {checkpoint.schema} to it",
    )


def lost(error: Interrupted, *, after: int) -> Disconnected:
    """Returns the error for a follower that stays unreachable; the records after the sequence ``after`` are not
    applied.
    """
    return Disconnected(
        f"the follower does not accept the changes: {error}",
        code="CDC-FOLLOWER-GONE",
        where=f"the batch after sequence {after}",
        hint=HINTS.get(error.code, _AWAY),
    )


def refuses(error: Refused, *, after: int) -> PromiseError:
    """Returns the error for a statement of the consumer's own that the follower refuses; the records after the sequence
    ``after`` are not applied.
    """
    return PromiseError(
        f"the follower refuses: {error}",
        code="CDC-FOLLOWER-REFUSES",
        where=f"the batch after sequence {after}",
        hint="nothing of the batch was applied; fix the account, its grants or the schema cdc",
    )

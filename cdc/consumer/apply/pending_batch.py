"""A batch on its way into the follower, and whether its statements did what they should."""

from collections.abc import Sequence
from dataclasses import dataclass

from cdc.consumer.follower.session import Session
from cdc.consumer.plan.packets import Statement
from cdc.consumer.server_errors import HINTS, Interrupted
from cdc.consumer.source.assembler import Batch
from cdc.consumer.state.checkpoint import Checkpoint
from cdc.errors import Disconnected, PromiseError
from cdc.model.record import Record

__all__ = ["FRONT_BYTES", "Mismatch", "Work", "check", "elsewhere", "lost", "moved", "reached"]

_AWAY = "start again when the server is up; consumer.retry_seconds says how long to wait for it"

FRONT_BYTES = 64  # at most so many are sent in front of a packet: a COMMIT, a savepoint, a setting


class Mismatch(Exception):
    """A statement matched another number of rows than the leader changed."""


@dataclass(frozen=True, slots=True)
class Work:
    """A batch under way: its records that pass, what commits with them, and the checkpoint that this sets.

    ``rows`` counts those of its follower transaction so far, ``passed`` those of them that passed.
    """

    batch: Batch
    records: Sequence[Record]
    tail: Sequence[Statement]
    target: Checkpoint
    rows: int
    passed: int
    begun: float


def check(packet: Sequence[Statement], counts: Sequence[int]) -> None:
    """Raises Mismatch where a statement did not do what it did on the leader.

    What was sent in front of the packet has counts, too, which say nothing.
    """
    for statement, count in zip(packet, counts[len(counts) - len(packet) :], strict=True):
        if statement.rows is not None and statement.rows != count:
            table = statement.changes[0].record.uri if statement.changes else "the checkpoint"
            raise Mismatch(f"{count} rows counted in {table} where {statement.rows} were due")


def reached(session: Session, resource: str) -> int | None:
    """The sequence of the checkpoint in the follower, if there is one. Raises Interrupted or Refused."""
    rows = session.rows(Checkpoint.select(resource, schema=session.schema))
    session.run([b"COMMIT"])
    return Checkpoint.from_rows(rows[0], schema=session.schema).sequence if rows else None


def elsewhere(session: Session, checkpoint: Checkpoint, *, most: int) -> Checkpoint:
    """The checkpoint of a server that took the follower's place, where it is at most at ``most``; else ``checkpoint``.

    What it lacks may have gone with the other server, and is in the topics; or it comes yet, from its relay log. Raises
    Interrupted or Refused, PromiseError where it was no replica of the other one.
    """
    rows = session.rows(Checkpoint.select(checkpoint.resource, schema=checkpoint.schema))
    # Without the table, which layout "single" has no need of, there are no offsets of other topics.
    select_others = Checkpoint.select_offsets(checkpoint.resource, schema=checkpoint.schema)
    others = session.rows(select_others) if checkpoint.others else []
    session.run([b"COMMIT"])
    there = Checkpoint.from_rows(rows[0], others, schema=checkpoint.schema) if rows else None
    if there is None or (there.topic, there.topic_id) != (checkpoint.topic, checkpoint.topic_id):
        raise PromiseError(
            "another server answers at the follower's address, which has no checkpoint of this stream",
            where=f"{checkpoint.schema}.checkpoint of {checkpoint.resource!r}, after sequence {checkpoint.sequence}",
            hint="let a replica of the follower take its place, or start the consumer again",
        )
    return there if there.sequence <= most else checkpoint


def moved(checkpoint: Checkpoint) -> PromiseError:
    """The error for a checkpoint in the follower that is not where we left it."""
    return PromiseError(
        "the checkpoint in the follower has been moved by something else",
        where=f"{checkpoint.schema}.checkpoint of {checkpoint.resource!r}, up to sequence {checkpoint.sequence}",
        hint=f"nothing was applied; run one consumer only, and leave the schema {checkpoint.schema} to it",
    )


def lost(error: Interrupted, *, after: int) -> Disconnected:
    """The error for a follower that did not take what comes after a sequence."""
    return Disconnected(
        f"the follower does not take the changes: {error}",
        where=f"the batch after sequence {after}",
        hint=HINTS.get(error.code, _AWAY),
    )

"""A batch on its way into the follower, and whether its statements did what they should."""

from collections.abc import Sequence
from dataclasses import dataclass

from cdc.consumer.assembler import Batch
from cdc.consumer.checkpoint import Checkpoint
from cdc.consumer.packets import Statement
from cdc.consumer.session import Session
from cdc.errors import PromiseError
from cdc.record import Record

__all__ = ["FRONT_BYTES", "Mismatch", "Work", "check", "moved", "reached"]

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
            table = statement.changes[0].record.uri if statement.changes else "cdc.checkpoint"
            raise Mismatch(f"{count} rows counted in {table} where {statement.rows} were due")


def reached(session: Session, resource: str) -> int | None:
    """The sequence of the checkpoint in the follower, if there is one. Raises Interrupted or Refused."""
    rows = session.rows(Checkpoint.select(resource))
    session.run([b"COMMIT"])
    return Checkpoint.from_rows(rows[0]).sequence if rows else None


def moved(checkpoint: Checkpoint) -> PromiseError:
    """The error for a checkpoint in the follower that is not where we left it."""
    return PromiseError(
        "the checkpoint in the follower has been moved by something else",
        where=f"cdc.checkpoint of {checkpoint.resource!r}, up to sequence {checkpoint.sequence}",
        hint="nothing was applied; run one consumer only, and leave the schema cdc to it",
    )

"""A batch that was sent to the follower and is not committed yet, and the check of its statements' row counts."""

from collections.abc import Sequence
from dataclasses import dataclass

from cdc.consumer.plan.covering import Covering
from cdc.consumer.plan.packets import Statement
from cdc.consumer.source.batches import Batch
from cdc.consumer.state.checkpoint import Checkpoint
from cdc.model.record import Record

__all__ = ["FRONT_BYTES", "Mismatch", "PendingBatch", "check", "loads"]

FRONT_BYTES = 64  # at most so many are sent in front of a packet: a COMMIT, a savepoint, a setting


class Mismatch(Exception):
    """A statement matched another number of rows than the leader changed."""


@dataclass(frozen=True, slots=True)
class PendingBatch:
    """``records`` are those that the filters let pass, ``tail`` commits with them and sets the checkpoint ``target``.

    ``rows`` counts the rows of its follower transaction up to here, ``filtered`` those of them that the filters left
    out. ``started`` is the monotonic time at which its preparation began. ``again``: it is applied once more. ``chunk``
    is what it does if it is a chunk of a table.
    """

    batch: Batch
    records: Sequence[Record]
    tail: Sequence[Statement]
    target: Checkpoint
    rows: int
    filtered: int
    started: float
    again: bool = False
    chunk: Covering | None = None


def loads(packet: Sequence[Statement], *, front: int = 0) -> dict[int, bytes]:
    """The data of the statements that load rows, by their index behind ``front`` other statements."""
    return {index: each.data for index, each in enumerate(packet, front) if each.data is not None}


def check(packet: Sequence[Statement], counts: Sequence[int]) -> None:
    """Raises Mismatch where a statement matched another number of rows than it must.

    ``counts`` begins with those of the statements that were sent in front of the packet; they are ignored.
    """
    for statement, count in zip(packet, counts[len(counts) - len(packet) :], strict=True):
        if statement.rows is not None and statement.rows != count:
            table = statement.changes[0].record.uri if statement.changes else "the checkpoint"
            raise Mismatch(f"{count} rows counted in {table} where {statement.rows} were due")

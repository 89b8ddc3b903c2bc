"""Tracks the state of a batch on its way to the follower. On the follower, the rows of the batch and the checkpoint are
one transaction. Pure.

So no change is lost, and no change is applied twice. The statements that end the transaction of a batch (``ending``)
contain an UPDATE that moves the checkpoint to the last record of the batch. If a batch fails before its COMMIT, neither
its rows nor the new checkpoint are stored. If the connection is lost before the answer to a COMMIT arrives, the
server's checkpoint shows whether the COMMIT has succeeded (``committed.resolve_commit``). The UPDATE matches no row if
another program has moved the checkpoint, or if the previous batch has not committed.

    PLANNED ──► SENT ──► EXECUTED ──► COMMITTING ──► COMMITTED
                 │  ▲
                 └──┘ rolled back and executed row by row

The executors change the state of a batch. A batch that is not COMMITTED when a connection is lost is planned again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from cdc.consumer.plan.chunk_plan import ChunkPlan
from cdc.consumer.plan.footprint import Footprint
from cdc.consumer.plan.packets import Statement
from cdc.consumer.plan.planner import Step
from cdc.consumer.plan.table_schema import TableSchema
from cdc.consumer.source.assembler import Batch
from cdc.consumer.state.checkpoint import Checkpoint
from cdc.model.record import Record, Uri

__all__ = ["PlannedBatch", "State", "ending", "ending_behind"]


class State(IntEnum):
    """The state of a batch on its way to the follower."""

    PLANNED = 1  # the batch has not been sent yet
    SENT = 2  # the last packet was sent, but its row counts have not been checked yet
    EXECUTED = 3  # all row counts are right; the rows and the new checkpoint are in the open transaction
    COMMITTING = 4  # the COMMIT has been sent, or is about to be sent
    COMMITTED = 5


@dataclass(slots=True)
class PlannedBatch:
    """A batch with its plan. ``batch`` contains the leader's changes, and ``records`` are the records of the batch that
    pass the filters.

    ``steps`` are the plan, and ``statements`` yields the plan's SQL; each statement is built when it is sent.
    ``shapes`` are the schemas of the tables in the plan. The statements ``tail`` end the transaction and set the
    checkpoint ``target``. A part of a large transaction has a tail only if it is the last part; the other parts stay
    EXECUTED until the last part commits. ``chunk`` is the plan of a chunk of a table copy. ``footprint`` are the rows
    that the batch changes, None if they are unknown.

    ``rows`` is the number of rows in the follower's transaction so far, and ``filtered`` is the number of these rows
    that the filters left out. ``started`` is the ``time.monotonic()`` at which the preparation of the batch began.
    """

    batch: Batch
    records: Sequence[Record]
    tail: Sequence[Statement]
    target: Checkpoint
    rows: int = 0
    filtered: int = 0
    started: float = 0.0
    chunk: ChunkPlan | None = None
    steps: Sequence[Step] = ()
    statements: Iterator[Statement] = field(default_factory=lambda: iter(()))
    shapes: Mapping[Uri, TableSchema] = field(default_factory=dict)
    footprint: Footprint | None = None
    state: State = State.PLANNED
    outstanding: Sequence[Statement] = ()  # the packet whose row counts are not checked yet

    def sent(self, packet: Sequence[Statement]) -> None:
        """Moves the batch to SENT when ``packet`` is sent. The row counts of the previous packet must have been
        checked.
        """
        self._move(State.SENT, since=(State.PLANNED, State.SENT))
        self.outstanding = packet

    def executed(self) -> None:
        """Moves the batch to EXECUTED. All its statements must have been executed with the right row counts."""
        self._move(State.EXECUTED, since=(State.PLANNED, State.SENT))
        self.outstanding = ()

    def committing(self) -> None:
        """Moves the batch to COMMITTING, just before its COMMIT is sent."""
        if not self.batch.ends:
            raise RuntimeError("a part of a transaction does not commit")
        self._move(State.COMMITTING, since=(State.EXECUTED,))

    def committed(self) -> None:
        """Moves the batch to COMMITTED, when its COMMIT is confirmed, or when the server's checkpoint shows that the
        COMMIT has succeeded."""
        self._move(State.COMMITTED, since=(State.COMMITTING,))

    def _move(self, to: State, *, since: Sequence[State]) -> None:
        if self.state not in since:
            raise RuntimeError(f"a batch that is {self.state.name} can't become {to.name}")
        self.state = to


def ending(batch: Batch, before: Checkpoint, notes: Sequence[Statement]) -> tuple[Sequence[Statement], Checkpoint]:
    """Returns the statements that end a batch's transaction on the follower, and the checkpoint that they set;
    ``before`` is the follower's checkpoint before the batch.

    The statements ``notes`` update the ledger for the batch's DDL statements and skipped events. The checkpoint commits
    in the same transaction as the rows, so that after a crash both are stored or neither is.
    """
    if not batch.ends:
        return [], before
    target = before.advanced(last=batch.last, offsets=batch.offsets)
    tail = [*notes, Statement(before.advance(target, last=batch.last).encode(), 1)]
    also = [text for text in (target.move(batch.offsets), target.note_chunk(last=batch.last)) if text]
    return [*tail, *(Statement(text.encode()) for text in also)], target


def ending_behind(
    batch: Batch, before: Checkpoint, notes: Sequence[Statement]
) -> tuple[Sequence[Statement], Checkpoint]:
    """Returns the statements that end the transaction of a batch behind the checkpoint ``before``, and ``before``: the
    checkpoint stays where it is.

    The statements ``notes`` note the batch on the follower, and fail if they find another state there than the one
    before the batch.
    """
    return ([*notes, Statement(before.stay().encode(), 1)] if batch.ends else []), before

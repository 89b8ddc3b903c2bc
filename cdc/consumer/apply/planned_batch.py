"""Tracks a batch on its way to the follower, where its rows and the checkpoint are one transaction. Pure.

So no change is lost and none is applied twice. The statements that end the transaction of a batch (``ending``) move the
checkpoint from the place to which the batch before moved it to the batch's last record. A batch that fails before its
COMMIT leaves neither its rows nor the move. If the connection is lost before the answer to a COMMIT arrives, the
server's checkpoint shows whether the COMMIT was successful (``committed.resolve_commit``). The move matches no row if
another program has moved the checkpoint, or if the batch before has not committed.

    PLANNED ──► SENT ──► EXECUTED ──► COMMITTING ──► COMMITTED
                 │  ▲
                 └──┘ rolled back and executed row by row

The executors change the state of a batch. A batch that is not COMMITTED when a connection is lost is planned again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from cdc.consumer.plan.chunk_plan import ChunkPlan
from cdc.consumer.plan.packets import Statement
from cdc.consumer.plan.planner import Step
from cdc.consumer.plan.table_schema import TableSchema
from cdc.consumer.source.assembler import Batch
from cdc.consumer.state.checkpoint import Checkpoint
from cdc.model.record import Record, Uri

__all__ = ["PlannedBatch", "State", "ending"]


class State(IntEnum):
    """The state of a batch on its way to the follower."""

    PLANNED = 1  # its SQL is known, or is built when it is sent
    SENT = 2  # the row counts of its last packet are outstanding
    EXECUTED = 3  # all row counts are right: its rows and the checkpoint's move are in the open transaction
    COMMITTING = 4  # its COMMIT was sent, or is about to be
    COMMITTED = 5


@dataclass(slots=True)
class PlannedBatch:
    """A batch with its plan: ``batch`` contains the leader's changes, ``records`` are its records that pass the
    filters.

    ``steps`` are the plan, and ``statements`` are the SQL of the plan, which is built when it is sent; ``shapes`` are
    the schemas of the planned tables. ``tail`` ends the transaction and sets the checkpoint ``target``; a part of a
    large transaction has no tail unless it is the last, and stays executed until the last part commits. ``chunk`` is
    the plan if the batch is a chunk of a table copy.

    ``rows`` counts the rows of the follower's transaction so far, and ``filtered`` counts the rows among them that the
    filters left out. ``started`` is the monotonic time at which the preparation began.
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
    state: State = State.PLANNED
    outstanding: Sequence[Statement] = ()  # the packet whose row counts are outstanding

    def sent(self, packet: Sequence[Statement]) -> None:
        """Moves the batch to SENT; the row counts of ``packet`` are outstanding. The row counts of the packet before
        must be checked by then.
        """
        self._move(State.SENT, since=(State.PLANNED, State.SENT))
        self.outstanding = packet

    def executed(self) -> None:
        """Moves the batch to EXECUTED, once all its statements are executed with the right row counts."""
        self._move(State.EXECUTED, since=(State.PLANNED, State.SENT))
        self.outstanding = ()

    def committing(self) -> None:
        """Moves the batch to COMMITTING, when its COMMIT is about to be sent."""
        if not self.batch.ends:
            raise RuntimeError("a part of a transaction does not commit")
        self._move(State.COMMITTING, since=(State.EXECUTED,))

    def committed(self) -> None:
        """Moves the batch to COMMITTED, once its COMMIT is confirmed or the server's checkpoint shows that it was
        successful."""
        self._move(State.COMMITTED, since=(State.COMMITTING,))

    def _move(self, to: State, *, since: Sequence[State]) -> None:
        if self.state not in since:
            raise RuntimeError(f"a batch that is {self.state.name} can't become {to.name}")
        self.state = to


def ending(batch: Batch, before: Checkpoint, notes: Sequence[Statement]) -> tuple[Sequence[Statement], Checkpoint]:
    """The statements that end a batch's transaction on the follower, and the checkpoint that they set; ``before`` is
    the checkpoint to move.

    ``notes`` write rows about the batch's DDL statements and left out events to the ledger. The checkpoint commits with
    the rows: a crash leaves both or neither.
    """
    if not batch.ends:
        return [], before
    target = before.advanced(last=batch.last, offsets=batch.offsets)
    tail = [*notes, Statement(before.advance(target, last=batch.last).encode(), 1)]
    moved = target.move(batch.offsets)
    return [*tail, Statement(moved.encode())] if moved else tail, target

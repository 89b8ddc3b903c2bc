"""A batch goes from planned to committed, in that order, and its checkpoint commits with its rows."""

from collections.abc import Callable
from itertools import product
from typing import Any, cast

import pytest

from cdc.consumer.apply.planned_batch import PlannedBatch, State, ending
from cdc.consumer.plan.packets import Statement
from cdc.consumer.source.assembler import Batch
from cdc.consumer.state.checkpoint import Checkpoint, TopicIdPartition
from tests.unit.consumer.plan.test_planner import record

BEFORE = Checkpoint("srv", "topic", "id", 4)
AT = TopicIdPartition("topic", 0, "id")
NOTE = Statement(b"a note of the ledger", 1)


def planned(*, ends: bool = True) -> PlannedBatch:
    batch = Batch([], record(7, "Add"), {AT: 8}, ends=ends)
    tail, target = ending(batch, BEFORE, [NOTE])
    return PlannedBatch(batch, [], tail, target)


MOVES: dict[State, Callable[[PlannedBatch], None]] = {
    State.SENT: lambda batch: batch.sent([NOTE]),
    State.EXECUTED: PlannedBatch.executed,
    State.COMMITTING: PlannedBatch.committing,
    State.COMMITTED: PlannedBatch.committed,
}
ALLOWED = {
    (State.PLANNED, State.SENT),
    (State.PLANNED, State.EXECUTED),  # nothing passes the filters, or row by row at once
    (State.SENT, State.SENT),
    (State.SENT, State.EXECUTED),
    (State.EXECUTED, State.COMMITTING),
    (State.COMMITTING, State.COMMITTED),
}


@pytest.mark.parametrize(("now", "then"), [*product(State, MOVES)])
def test_a_batch_goes_only_forward(now: State, then: State) -> None:
    """Nothing commits that is not executed, and what has committed is never sent again."""
    batch = planned()
    batch.state = now
    if (now, then) in ALLOWED:
        MOVES[then](batch)
        assert batch.state is then
        assert bool(batch.outstanding) == (then is State.SENT)
    else:
        with pytest.raises(RuntimeError, match=f"a batch that is {now.name} can't become {then.name}"):
            MOVES[then](batch)


def test_a_part_of_a_transaction_never_commits_by_itself() -> None:
    part = planned(ends=False)
    assert (part.tail, part.target) == ([], BEFORE)
    part.executed()
    with pytest.raises(RuntimeError, match="a part"):
        part.committing()


def test_the_checkpoint_is_in_the_transaction_of_the_rows() -> None:
    batch = planned()
    note, move = batch.tail
    assert note == NOTE
    assert (batch.target.sequence, batch.target.offsets) == (7, {AT: 8})
    # It counts a row, or else another program, or a batch that has not committed, is in between.
    assert move.rows == 1
    assert b"SET sequence=7" in move.sql and b"AND sequence=4" in move.sql


def test_offsets_of_other_topics_commit_with_them() -> None:
    batch = Batch([], record(7, "Add"), {TopicIdPartition("other", 1, "id"): 3})
    tail, target = ending(batch, BEFORE, [])
    assert len(tail) == 2 and b"'other', 1" in tail[1].sql
    assert cast("Any", target).others

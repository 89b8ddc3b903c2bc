"""After a failover the checkpoint of the server that answers now counts, if it is a replica of the former one."""

import logging
from typing import Any, cast

import pytest

from cdc.config.profile import Database
from cdc.consumer.apply.committed import Committed, lost, resolve_commit, sequence_in
from cdc.consumer.apply.planned_batch import PlannedBatch, State, ending
from cdc.consumer.errors import HINTS, Interrupted
from cdc.consumer.follower.address import FollowerAddress
from cdc.consumer.source.assembler import Batch
from cdc.consumer.state.checkpoint import Checkpoint, TopicIdPartition
from cdc.errors import PromiseError
from tests.unit.consumer.plan.test_planner import record


class Follower:
    """A session; ``sequences`` are the checkpoints that the servers have, and the last server answers."""

    def __init__(self, **sequences: int | None) -> None:
        self.sequences = sequences
        self.schema = "cdc"
        self.offsets: list[tuple[Any, ...]] = []
        self.server = next(iter(sequences))
        self.connected = True
        self.changes_doubles = False
        self.address = FollowerAddress(Database())

    def fail_over(self) -> None:
        self.connected = False

    def connect(self) -> None:
        self.server = list(self.sequences)[-1]
        self.connected = True

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        assert f"`{self.schema}`" in sql or f"'{self.schema}'" in sql
        if "`offsets`" in sql:
            assert self.offsets, "a follower of one topic may lack the table"
            return self.offsets
        if "`checkpoint`" not in sql:
            return []  # there is no other table
        sequence = self.sequences[self.server]
        return [] if sequence is None else [("srv", "topic", "id", sequence, "{}", None, None, None)]

    def run(self, packet: list[bytes]) -> None:
        assert packet == [b"COMMIT"]


def committed(follower: Follower, sequence: int) -> Committed:
    return Committed(cast("Any", follower), Checkpoint("srv", "topic", "id", sequence))


def test_the_same_server_changes_nothing() -> None:
    follower = Follower(a=7)
    state = committed(follower, 5)
    follower.fail_over()
    state.connect()
    assert (state.checkpoint.sequence, state.switched, state.incomplete) == (5, False, False)
    assert sequence_in(cast("Any", follower), "srv") == 7


@pytest.mark.parametrize(("there", "incomplete"), [(7, False), (4, True)])
def test_a_replica_counts_from_its_own_checkpoint_on(there: int, incomplete: bool) -> None:
    follower = Follower(a=7, b=there)
    state = committed(follower, 7)
    follower.fail_over()
    state.connect()
    assert (state.checkpoint.sequence, state.switched, state.incomplete) == (there, True, incomplete)
    state.advance(Checkpoint("srv", "topic", "id", there + 1))
    assert (state.checkpoint.sequence, state.switched) == (there + 1, False)


def test_records_are_read_again_for_a_server_with_another_parser() -> None:
    follower = Follower(a=7, b=7)
    state = committed(follower, 7)
    follower.fail_over()
    follower.changes_doubles = True
    state.connect()
    assert (state.checkpoint.sequence, state.incomplete) == (7, True)


def test_a_replica_that_executes_its_relay_log_is_asked_again() -> None:
    follower = Follower(a=7, b=4)
    state = committed(follower, 7)
    follower.fail_over()
    state.connect()
    follower.sequences["b"] = 6
    state.connect()
    assert (state.checkpoint.sequence, state.switched, state.incomplete) == (6, True, True)


def test_a_checkpoint_above_all_commits_is_not_taken_over() -> None:
    """Something else has moved it, which the executor reports."""
    follower = Follower(a=7, b=9)
    state = committed(follower, 7)
    follower.fail_over()
    state.connect()
    assert (state.checkpoint.sequence, state.incomplete) == (7, False)


def test_a_server_without_the_checkpoint_is_refused() -> None:
    follower = Follower(a=7, b=None)
    state = committed(follower, 7)
    follower.fail_over()
    with pytest.raises(PromiseError, match="another server answers at the follower's address") as raised:
        state.connect()
    assert raised.value.where == "cdc.checkpoint of 'srv', after sequence 7"
    assert raised.value.hint and raised.value.code == "CDC-CHECKPOINT-MISSING"


def test_offsets_in_other_topics_are_those_of_the_server() -> None:
    follower = Follower(a=7, b=4)
    follower.offsets = [("other", 1, "id2", 30)]
    before = Checkpoint("srv", "topic", "id", 7, {TopicIdPartition("other", 1, "id2"): 50})
    state = Committed(cast("Any", follower), before)
    follower.fail_over()
    state.connect()
    assert state.checkpoint.offsets == {TopicIdPartition("other", 1, "id2"): 30}


def test_a_failover_is_logged_with_what_the_other_server_lacks(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="cdc.consumer")
    state = committed(follower := Follower(a=7, b=4), 7)
    state.connect()
    assert not caplog.records
    follower.fail_over()
    state.connect()
    (logged,) = caplog.records
    assert (logged.levelno, logged.getMessage()) == (logging.WARNING, "another server took the follower's place")
    assert vars(logged)["fields"] == {"server": "b", "before": "a", "sequence": 4, "lost": 3}


def committing(sequence: int) -> PlannedBatch:
    """A batch whose COMMIT was sent, and whose answer is missing."""
    batch = Batch([], record(sequence, "Add"), {TopicIdPartition("topic", 0, "id"): sequence + 1})
    tail, target = ending(batch, Checkpoint("srv", "topic", "id", sequence - 1), [])
    return PlannedBatch(batch, [], tail, target, state=State.COMMITTING)


def test_the_follower_knows_whether_a_commit_without_an_answer_was_successful() -> None:
    for there, state in ((7, State.COMMITTED), (6, State.COMMITTING)):
        batch = committing(7)
        resolve_commit(cast("Any", Follower(a=there)), batch, Checkpoint("srv", "topic", "id", 6))
        assert batch.state is state
    resolve_commit(cast("Any", Follower(a=6)), None, Checkpoint("srv", "topic", "id", 6))


@pytest.mark.parametrize("there", [None, 5, 8])
def test_a_checkpoint_that_something_else_has_moved_is_refused(there: int | None) -> None:
    follower = cast("Any", Follower(a=there))
    for batch in (committing(7), None):
        with pytest.raises(PromiseError, match="the checkpoint in the follower has been moved") as raised:
            resolve_commit(follower, batch, Checkpoint("srv", "topic", "id", 6))
        assert raised.value.code == "CDC-CHECKPOINT-MOVED"
        assert raised.value.where == "cdc.checkpoint of 'srv', up to sequence 6"
        assert "leave the schema cdc to it" in str(raised.value.hint)


def test_a_follower_that_stays_away_is_named_with_what_it_lacks() -> None:
    error = lost(Interrupted("no route to host"), after=6)
    assert str(error).startswith("the follower does not accept the changes: no route to host")
    assert (error.code, error.where) == ("CDC-FOLLOWER-GONE", "the batch after sequence 6")
    assert "consumer.retry_seconds" in str(error.hint)
    known = next(iter(HINTS))
    assert lost(Interrupted("a reason of its own", code=known), after=6).hint == HINTS[known]

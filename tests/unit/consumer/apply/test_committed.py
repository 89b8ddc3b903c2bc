"""After a failover the checkpoint of the server that answers now counts, if it is a replica of the former one."""

from typing import Any, cast

import pytest

from cdc.consumer.apply.committed import Committed, sequence_in
from cdc.consumer.state.checkpoint import Checkpoint, TopicIdPartition
from cdc.errors import PromiseError


class Follower:
    """A session; ``sequences`` are the checkpoints that the servers have, and the last server answers."""

    def __init__(self, **sequences: int | None) -> None:
        self.sequences = sequences
        self.schema = "cdc"
        self.offsets: list[tuple[Any, ...]] = []
        self.server = next(iter(sequences))
        self.connected = True
        self.changes_doubles = False

    def fail_over(self) -> None:
        self.connected = False

    def connect(self) -> None:
        self.server = list(self.sequences)[-1]
        self.connected = True

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        assert f"`{self.schema}`" in sql or f"'{self.schema}'" in sql
        if "`offsets`" in sql:
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
    assert raised.value.hint


def test_offsets_in_other_topics_are_those_of_the_server() -> None:
    follower = Follower(a=7, b=4)
    follower.offsets = [("other", 1, "id2", 30)]
    before = Checkpoint("srv", "topic", "id", 7, {TopicIdPartition("other", 1, "id2"): 50})
    state = Committed(cast("Any", follower), before)
    follower.fail_over()
    state.connect()
    assert state.checkpoint.offsets == {TopicIdPartition("other", 1, "id2"): 30}

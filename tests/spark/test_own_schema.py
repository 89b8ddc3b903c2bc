"""A database of the leader that is called as the consumer's own: never left out of a verdict in silence."""

import pytest

from cdc.config.filters import Filters
from cdc.config.profile import Consumer, Profile
from tests.generators.streams import Stream, Table, tutorial
from tests.spark.conftest import Judge

pytestmark = pytest.mark.spark

OWN = Profile(consumer=Consumer(schema="own"))


def renamed(stream: Stream, **names: str) -> Stream:
    """The same stream with other databases."""
    for old, new in names.items():
        stream.messages[:] = [message.replace(f"/{old}", f"/{new}") for message in stream.messages]
    return stream


def of_cdc() -> tuple[Stream, Stream]:
    """The tutorial in a database ``cdc``, on a follower where the consumer's own is ``own``."""
    leader, follower = tutorial()
    return renamed(leader, flvDb="cdc"), renamed(follower, cdc="own", flvDb="cdc")


def test_it_is_no_verdict_until_the_filters_leave_it_out(judged: Judge) -> None:
    leader, follower = tutorial()
    leader.transaction(Table("cdc/t", ["i"], ["i"]).add((1,)))
    audit = judged(leader, follower)
    assert audit.exit_status == 2
    (reason,) = audit.reasons
    assert "the leader has a database cdc" in reason
    assert "consumer.schema" in reason
    without = Profile(filters=Filters(exclude_dbs=("cdc",)))
    assert judged(leader, follower, consumer=without).verdict == "no drift"


def test_it_is_compared_where_the_consumers_own_has_another_name(judged: Judge) -> None:
    leader, follower = of_cdc()
    only = Filters(include_dbs=("cdc",))
    some = Profile(consumer=OWN.consumer, filters=only)
    audit = judged(leader, follower, consumer=some, filters=Filters(include_dbs=("cdc", "own")))
    assert (audit.verdict, audit.reasons) == ("no drift", [])
    assert [(t.database, t.table, t.leader_rows) for t in audit.tables] == [("cdc of the leader", "pet", 2)]
    # The capture must have both.
    (reason,) = judged(leader, follower, consumer=some, filters=only).reasons[:1]
    assert "leave out database own" in reason
    named_alike = renamed(tutorial()[0], flvDb="own")
    assert "the leader has a database own" in judged(named_alike, follower, consumer=OWN).reasons[0]
    follower.transaction(Table("cdc/pet", ["name", "owner"]).add(("Spot", "Jane")))
    drifted = judged(leader, follower, consumer=OWN)
    assert (drifted.verdict, drifted.reasons, drifted.foreign_writes, drifted.drifted_rows) == ("drift", [], 1, 1)
    assert [(t.database, t.table, t.leader_rows) for t in drifted.tables] == [("cdc of the leader", "pet", 2)]

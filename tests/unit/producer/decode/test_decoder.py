"""Events that are part of no record, as changes."""

from collections.abc import Sequence

import pytest

from cdc.errors import PromiseError
from cdc.producer.binlog import event_types as et
from cdc.producer.binlog.events import RawEvent
from cdc.producer.decode.changes import Change, Idle, OtherEvent
from tests.generators.binlog_events import event
from tests.harness.decoding import Leader

STOP, GTID, ROWS_QUERY = (event(kind, bytes(66)) for kind in (et.STOP, et.ANONYMOUS_GTID, et.ROWS_QUERY))


def decoded(*chunks: Sequence[RawEvent], other_events: bool = True) -> list[Change]:
    leader = Leader(other_events=other_events)
    changes = leader.decode(*chunks)
    assert (leader.logged, leader.read) == ([], [])
    return changes


def test_other_events_are_changes_only_where_they_are_wanted() -> None:
    assert decoded([STOP, ROWS_QUERY]) == [OtherEvent(STOP), OtherEvent(ROWS_QUERY)]
    assert decoded([STOP, ROWS_QUERY], other_events=False) == []


def test_an_event_that_waits_for_the_rest_of_its_transaction_is_a_change_once() -> None:
    assert decoded([GTID], [], [STOP]) == [OtherEvent(GTID), Idle(inside=True), OtherEvent(STOP)]


def test_events_whose_content_is_in_records_are_no_other_events() -> None:
    assert et.IN_RECORDS.isdisjoint(et.HARMLESS)
    rows = event(next(iter(et.IN_RECORDS - {et.QUERY, et.TABLE_MAP})), bytes(66))
    with pytest.raises(PromiseError, match="came without a table map"):
        decoded([rows])

"""Events that are part of no record, as changes."""

from collections.abc import Sequence

import pytest

from cdc.errors import PromiseError
from cdc.producer.binlog import event_types as et
from cdc.producer.binlog.events import RawEvent
from cdc.producer.decode.changes import Change, Idle, OtherEvent
from cdc.producer.decode.decoder import Decoder
from cdc.producer.decode.table_cache import TableCache
from cdc.producer.decode.xa import XaTransactions


def event(kind: int) -> RawEvent:
    return RawEvent(kind, bytes(4) + bytes([kind]) + bytes(80), "binlog.000001", 400, 489)


STOP, GTID, ROWS_QUERY = event(et.STOP), event(et.ANONYMOUS_GTID), event(et.ROWS_QUERY)


def decoded(*chunks: Sequence[RawEvent], other_events: bool = True) -> list[Change]:
    xa = XaTransactions({}, read_again=lambda place: pytest.fail("nothing was prepared"))
    decoder = Decoder(
        TableCache(
            wants_table=lambda database, table: True,
            collations={},
            allow_differences=pytest.fail,
            equal_members=pytest.fail,
        ),
        xa=xa,
        log=pytest.fail,
        other_events=other_events,
    )
    return [*decoder.decode(chunks)]


def test_other_events_are_changes_only_where_they_are_wanted() -> None:
    assert decoded([STOP, ROWS_QUERY]) == [OtherEvent(STOP), OtherEvent(ROWS_QUERY)]
    assert decoded([STOP, ROWS_QUERY], other_events=False) == []


def test_an_event_that_waits_for_the_rest_of_its_transaction_is_a_change_once() -> None:
    assert decoded([GTID], [], [STOP]) == [OtherEvent(GTID), Idle(inside=True), OtherEvent(STOP)]


def test_events_whose_content_is_in_records_are_no_other_events() -> None:
    assert et.IN_RECORDS.isdisjoint(et.HARMLESS)
    rows = event(next(iter(et.IN_RECORDS - {et.QUERY, et.TABLE_MAP})))
    with pytest.raises(PromiseError, match="came without a table map"):
        decoded([rows])

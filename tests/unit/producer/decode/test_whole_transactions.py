"""Transactions that are read at once: those of rows alone, cut in one go or compressed."""

import pytest

from cdc.producer.binlog.events import RawEvent
from cdc.producer.binlog.packets import SimpleTransaction
from cdc.producer.decode.changes import Begin, Damaged, RowsTransaction
from cdc.producer.decode.decoder import WholeTransactions, end_of_rows_only, start_of_incomplete
from cdc.sql.effects import Effect
from tests.generators.binlog_events import FILE, NO_ZEROS_AND_TRUNCATED, Log
from tests.harness.decoding import Leader, added, begin, commit, content, decoded, kinds, plain, refusal, tables


def test_a_compressed_transaction_is_one_change() -> None:
    inner = Log().transaction(1, 2)
    log = Log()
    log.gtid()
    outer = log.compressed(inner)
    (whole,) = decoded(log.events)
    assert isinstance(whole, RowsTransaction)
    assert (whole.begin, whole.file, whole.end) == (begin(), FILE, outer.end)
    assert [content(rows) for rows in whole.rows] == [added(1, 2)]
    assert whole.rows[0].event.name == f"{FILE}:{outer.offset}/3"


def test_a_large_compressed_transaction_is_decoded_event_by_event() -> None:
    inner = Log().transaction(1, 2)
    log = Log()
    log.gtid()
    outer = log.compressed(inner, size=1_000_000)
    found = decoded(log.events)
    assert kinds(found) == ["Begin", "Rows", "Commit"]
    assert plain(found) == [begin(), added(1, 2), commit(outer)]


def test_what_cannot_be_read_in_a_compressed_transaction_is_refused_alone() -> None:
    inner = Log()
    inner.begin()
    inner.add(99)
    inner.table_map()
    inner.rows(1)
    inner.xid()
    for size in (1, 1_000_000):
        log = Log()
        log.gtid()
        log.compressed(inner, size=size)
        assert kinds(decoded(log.events)) == ["Begin", "Refused", "Rows", "Commit"]


def test_a_compressed_transaction_that_cannot_be_read_is_refused() -> None:
    log = Log()
    log.gtid()
    event = log.compressed(Log().transaction(1))
    log.events[-1] = event._replace(data=event.data[:-9])
    found = decoded(log.events)
    assert kinds(found) == ["Begin", "Refused", "Commit"]
    refused = refusal(found)
    assert "a compressed transaction cannot be read" in refused.error.what


def test_the_fast_path_decodes_what_it_can_and_nothing_else() -> None:
    fast = WholeTransactions(tables())
    log = Log().transaction(1, mode=NO_ZEROS_AND_TRUNCATED)
    simple = log.simple()
    assert fast.of_simple(simple) is None  # its table map is new
    five = simple.events()
    whole = fast.of_events(five)
    assert whole is not None
    again = fast.of_simple(simple)
    assert again is not None
    assert (again, type(again), type(again.begin)) == (whole, RowsTransaction, Begin)
    assert fast.of_simple(simple._replace(begin=simple.begin + b"X")) is None
    assert fast.of_simple(simple._replace(gtid=simple.gtid[:-9])) is None
    assert fast.of_simple(simple._replace(rows=simple.rows[:-1])) is None
    assert fast.of_events([five[0], five[1]._replace(data=five[1].data + b"X"), *five[2:]]) is None
    assert fast.of_events([five[0]._replace(data=five[0].data[:-9]), *five[1:]]) is None


def test_transactions_of_rows_are_known_by_the_types_of_their_events() -> None:
    rows_only = bytes([33, 2, 19, 30, 19, 19, 31, 32, 16])
    assert end_of_rows_only(b"\x10" + rows_only + b"\x10", 1) == 10
    assert end_of_rows_only(b"\x10" + rows_only, 0) is None
    for end in range(1, 9):
        assert end_of_rows_only(rows_only[:end], 0) is None
    for other in ([33, 2, 16], [33, 2, 19, 16], [33, 2, 30, 16], [33, 2, 19, 30, 2, 16], [33, 19, 30, 16]):
        assert end_of_rows_only(bytes(other), 0) is None
    assert [end_of_rows_only(bytes([kind, 2, 19, 30, 16]), 0) for kind in (33, 34, 42, 35)] == [5, 5, 5, None]


def test_the_start_of_a_transaction_at_the_end_of_a_chunk_waits() -> None:
    log = Log().transaction(1).transaction(2)
    types = bytes([event.type for event in log.events])
    for count in range(11):
        start = {6: 5, 8: 5, 9: 5, 1: 0, 3: 0, 4: 0}.get(count, count)
        assert start_of_incomplete(log.events[:count], types[:count]) == start
    log.transaction(3)
    simple = [log.simple(), Log(at=log.at).gtid()]
    assert start_of_incomplete(simple, bytes([0, 33])) == 1
    large = [RawEvent(kind, bytes(333_333), FILE, 4, 5) for kind in (33, 2, 19)]
    assert start_of_incomplete(large, bytes([33, 2, 19])) == 0
    large[0] = RawEvent(33, bytes(333_334), FILE, 4, 5)
    assert start_of_incomplete(large, bytes([33, 2, 19])) == 3


def test_a_transaction_of_a_known_table_takes_the_fast_path(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log().transaction(1)
    log.simple()
    leader = Leader()
    leader.decode(log.events)
    monkeypatch.setattr(SimpleTransaction, "events", lambda self: pytest.fail("it is decoded event by event"))
    assert plain(leader.decode(log.events))[1] == added(1)


def test_a_simple_transaction_is_read_at_once_where_its_table_is_known() -> None:
    log = Log()
    for number in range(3):
        log.transaction(number, mode=NO_ZEROS_AND_TRUNCATED).simple()
    log.transaction(3, number=8, table="left_out").simple()
    log.transaction(4, number=8, table="left_out").simple()
    leader = Leader()
    found = leader.decode(log.events)
    assert kinds(found) == ["RowsTransaction"] * 5
    assert all(isinstance(each, RowsTransaction) and type(each.begin) is Begin for each in found)
    flat = Log()
    for number in range(3):
        flat.transaction(number, mode=NO_ZEROS_AND_TRUNCATED)
    flat.transaction(3, number=8, table="left_out").transaction(4, number=8, table="left_out")
    assert str(plain(found)) == str(plain(decoded(flat.events)))
    assert leader.decoder.filtered == 2


def test_a_simple_transaction_within_another_is_reported_at_its_own_position() -> None:
    log = Log().transaction(1)
    log.gtid()
    log.begin()
    known = len(log.events)
    log.transaction(2).simple()
    with pytest.raises(Damaged, match="begins before the previous one has ended") as caught:
        decoded(log.events[:known], log.events[known:])
    (simple,) = [event for event in log.events if isinstance(event, SimpleTransaction)]
    assert caught.value.where == str(simple.events()[0].position)


def test_a_simple_transaction_that_is_not_as_it_must_be_is_decoded_event_by_event() -> None:
    log = Log().transaction(1)
    log.transaction(2).simple()
    (simple,) = [event for event in log.events if isinstance(event, SimpleTransaction)]
    other = simple._replace(begin=simple.begin.replace(b"BEGIN", b"begin"))
    assert plain(decoded([*log.events[:5], other]))[-2] == added(2)
    broken = simple._replace(rows=simple.rows[:-1])
    found = decoded([*log.events[:5], broken])
    assert kinds(found) == ["RowsTransaction", "Begin", "Refused", "Commit"]
    assert refusal(found).effects == (Effect("SkipTable", "db", "t"),)

"""Events of a leader's binlog become changes: the same ones however they arrive."""

import struct
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.errors import PromiseError
from cdc.model.position import Position
from cdc.producer.binlog import event_types as et
from cdc.producer.binlog.events import ROWS_FLAGS_AT, RawEvent
from cdc.producer.decode.changes import (
    Begin,
    Change,
    Damaged,
    Idle,
    PositionAdvanced,
    RowsTransaction,
)
from cdc.producer.decode.table_map import JSON
from cdc.sql.effects import ANY_DATABASE, Effect
from tests.generators.binlog_events import COMMIT_US, FILE, NO_ZEROS_AND_TRUNCATED, SIGNED, Log, opened
from tests.harness.decoding import Chunk, Leader, added, begin, commit, content, decoded, kinds, plain, refusal


def test_a_transaction_of_rows_is_one_change() -> None:
    log = Log().transaction(1, 2, mode=NO_ZEROS_AND_TRUNCATED)
    (whole,) = decoded(log.events)
    assert isinstance(whole, RowsTransaction)
    mode = "NO_ZERO_IN_DATE,NO_ZERO_DATE,TIME_TRUNCATE_FRACTIONAL"
    assert (whole.begin, whole.file, whole.end) == (begin(mode=mode), FILE, log.at)
    assert [content(rows) for rows in whole.rows] == [added(1, 2)]
    assert whole.rows[0].event == log.events[3]


def test_without_gtids_a_transaction_has_the_name_of_its_position() -> None:
    for simple in (False, True):
        log = Log(at=1000)
        log.gtid(kind=et.ANONYMOUS_GTID)
        log.begin()
        log.table_map()
        log.rows(1)
        log.xid()
        unnamed = Begin(f"{FILE}:1000", None, COMMIT_US, "")
        if simple:
            log.simple()
        assert plain(decoded(log.events))[0] == unnamed
        one_by_one = [[event] for event in log.events]
        leader = Leader()
        assert plain(leader.decode(*one_by_one))[0] == unnamed
        # Its table is known now.
        assert plain(leader.decode(log.events))[0] == unnamed


def test_partial_updates_are_read_at_once_as_other_rows_are() -> None:
    log = Log()
    for number in (1, 2):
        log.gtid(number)
        log.begin()
        log.table_map()
        log.rows(6, 7, kind=et.PARTIAL_UPDATE_ROWS)
        log.xid()
    log.simple()
    found = decoded(log.events)
    assert kinds(found) == ["RowsTransaction", "RowsTransaction"]
    # Where it has not arrived completely, the start waits for the rest.
    (pause, whole) = decoded(log.events[:4], [], [])[:1], decoded(log.events[:4], [], log.events[4:])
    assert kinds([*pause, *whole]) == ["Idle", "Idle", "RowsTransaction", "RowsTransaction"]


def partial(options: bytes) -> Log:
    """A transaction with a partial update of a table with one JSON column, null before and after."""
    log = opened()
    log.table_map(types=bytes([JSON]), names="j", meta=b"\4", nullable=1, optional=b"")
    document = struct.pack("<I", 2) + b"\4\0"
    after = b"\1" if options == b"\1\1" else b"\0" + document
    log.images(b"\0" + document, options + after, kind=et.PARTIAL_UPDATE_ROWS)
    log.xid()
    return log


@pytest.mark.parametrize(("options", "asked"), [(b"\0", 0), (b"\1\0", 0), (b"\1\1", 1)])
def test_before_differences_are_applied_it_is_asked_whether_they_may_be(options: bytes, asked: int) -> None:
    calls: list[tuple[str, str, Sequence[str]]] = []
    leader = Leader(allow_differences=lambda *call: calls.append(call))
    events = partial(options).events
    assert kinds(leader.decode(events, events)) == ["RowsTransaction", "RowsTransaction"]
    assert calls == [("db", "t", ["j"])] * asked
    # A savepoint changes no trigger, other statements may.
    log = partial(options)
    log.gtid(2)
    log.query("CREATE TRIGGER x BEFORE UPDATE ON t FOR EACH ROW SET NEW.j = NULL")
    leader.decode(log.events, events)
    assert len(calls) == 2 * asked


def test_differences_that_may_not_be_applied_are_refused_at_their_position() -> None:
    def refuse(*_: object) -> None:
        raise PromiseError("no", hint="go")

    found = Leader(allow_differences=refuse).decode(partial(b"\1\1").events)
    assert kinds(found) == ["Begin", "Refused", "Commit"]
    error = refusal(found).error
    assert (error.what, error.hint) == ("no", "go")
    assert error.where.startswith("binlog.000001:")


def several() -> Log:
    """Transactions of many kinds."""
    log = Log().transaction(1, 2).transaction(3, number=8, table="left_out")
    log.gtid(2)
    log.begin()
    log.table_map(7)
    log.rows(4)
    log.rows(5, kind=et.DELETE_ROWS)
    log.table_map(9, table="other")
    log.rows(6, 7, number=9, kind=et.UPDATE_ROWS)
    log.rows(6, 7, number=9, kind=et.PARTIAL_UPDATE_ROWS)
    log.xid()
    log.gtid(3)
    log.query("CREATE TABLE db.t (i INT)")
    log.gtid(4)
    log.begin()
    log.query("COMMIT")
    return log.transaction(8)


@given(st.sets(st.integers(1, 30)), st.sets(st.integers(0, 30)))
def test_any_chunks_give_the_same_changes(cuts: set[int], pauses: set[int]) -> None:
    events = several().events
    bounds = [0, *sorted(cut for cut in cuts if cut < len(events)), len(events)]
    chunks: list[Chunk] = []
    for number, (start, end) in enumerate(pairwise(bounds)):
        chunks += [[]] * (number in pauses) + [events[start:end]]
    assert str(plain(decoded(*chunks))) == str(plain(decoded(events)))


def test_several_transactions_are_these_changes() -> None:
    log = several()
    leader = Leader()
    found = plain(leader.decode(log.events))
    update = '{"before_cols":[{"SignedInteger":6}],"after_cols":[{"SignedInteger":7}]}'
    assert [each if type(each) is tuple else type(each).__name__ for each in found] == [
        "Begin", added(1, 2), "Commit",
        "Begin", "Commit",
        "Begin", added(4), ("t", "Delete", added(5)[2], 0), *[("other", "Update", (update,), 0)] * 2, "Commit",
        "Begin", "Statement", "Commit",
        "Begin", "Commit",
        "Begin", added(8), "Commit",
    ]  # fmt: skip
    assert leader.decoder.filtered == 1


def test_idle_tells_whether_a_transaction_is_under_way() -> None:
    log = Log().transaction(1)
    for count, inside in ((0, False), (1, True), (2, True), (3, True), (4, True), (5, False)):
        assert decoded(log.events[:count], [])[-1] == Idle(inside)
        # Also where the events came one by one.
        assert decoded(*[[event] for event in log.events[:count]], [], [])[-2:] == [Idle(inside)] * 2
    ddl = Log()
    ddl.gtid()
    ddl.add(et.IGNORABLE)
    assert decoded(ddl.events, [])[-1] == Idle(True)


def test_events_that_wait_for_their_transaction_are_few() -> None:
    log = opened()
    log.table_map()
    for _ in range(10):
        log.rows(*[1] * 19_000)
    # Less than a megabyte waits.
    assert decoded(log.events) == []
    log.rows(*[1] * 19_000)
    assert kinds(decoded(log.events)) == ["Begin"] + ["Rows"] * 11


def test_positions_between_transactions_are_progress() -> None:
    log = Log().transaction(1)
    beat = log.heartbeat()
    moved = PositionAdvanced(Position(FILE, beat.end))
    assert decoded([beat]) == [moved]
    rotate = Log().add(et.ROTATE, (4).to_bytes(8, "little") + b"binlog.000002")
    assert decoded([rotate]) == [PositionAdvanced(Position("binlog.000002", 4))]
    second = Log().add(et.HEARTBEAT_V2, b"\1\x0dbinlog.000009\2\1\x64\0\0")
    assert decoded([second]) == [PositionAdvanced(Position("binlog.000009", 100))]
    # Not inside of a transaction, nor after its name, nor at the start of a file.
    assert decoded(*[[event] for event in log.events[:2]], [beat])[-1] == Begin(*begin())
    assert decoded([log.events[0]], [], [beat]) == [Idle(True)]
    start = Log().add(et.ROTATE, bytes(8) + b"binlog.000002")
    assert decoded([start]) == []


def test_table_ids_are_of_one_transaction() -> None:
    log = Log().transaction(1)
    log.add(et.FORMAT_DESCRIPTION)
    log.gtid()
    log.begin()
    log.rows(2)
    log.xid()
    refused = refusal(decoded(log.events))
    assert refused.error.what == "rows of table id 7 came without a table map"
    assert refused.effects == (ANY_DATABASE,)


@pytest.mark.parametrize("kind", sorted(et.HARMLESS))
def test_harmless_events_are_no_changes(kind: int) -> None:
    log = Log()
    log.add(kind)
    assert decoded(log.events) == []


def alone(kind: int) -> tuple[list[Change], RawEvent]:
    """What comes of a transaction with an event of this type among its rows."""
    log = opened()
    event = log.add(kind, struct.pack("<IHH", 7, 0, 0))
    log.table_map()
    log.rows(1)
    log.xid()
    return decoded(log.events), event


@pytest.mark.parametrize("kind", [1, 20, 26, 99])
def test_an_unknown_event_in_a_transaction_is_refused_and_the_rest_goes_on(kind: int) -> None:
    found, event = alone(kind)
    assert kinds(found) == ["Begin", "Refused", "Rows", "Commit"]
    refused = refusal(found)
    assert refused.error.what.endswith("is not supported, and ignoring it would lose a change")
    where = f"{FILE}:{event.offset}"
    assert (refused.error.where, refused.event, refused.effects) == (where, event, (ANY_DATABASE,))


def test_an_unknown_event_is_refused_with_the_transaction_that_it_would_have_begun() -> None:
    log = Log()
    log.gtid()
    event = log.add(99)
    log.transaction(1)
    found = decoded(log.events[:1], [], log.events[1:])
    assert found[1:4] == [begin(mode=None), found[2], commit(event)]
    assert found[2] == refusal(found)
    assert plain(found[4:]) == plain(decoded(log.events[2:]))


def test_an_unknown_event_outside_of_any_transaction_stops_the_stream() -> None:
    log = Log()
    log.add(99)
    with pytest.raises(PromiseError, match=r"^event 99 \(unknown\) is not supported"):
        decoded(log.events)


@pytest.mark.parametrize("kind", sorted(et.OTHER_ROWS))
def test_rows_in_other_layouts_are_refused_unless_their_table_is_left_out(kind: int) -> None:
    for table, wanted in (("t", ["Begin", "Refused", "Commit"]), ("left_out", ["Begin", "Commit"])):
        log = opened()
        log.table_map(table=table)
        log.rows(1, kind=kind)
        log.xid()
        leader = Leader()
        found = leader.decode(log.events)
        assert kinds(found) == wanted
        assert leader.decoder.filtered == (table != "t")
        assert table != "t" or refusal(found).effects == (Effect("SkipTable", "db", "t"),)


def test_rows_of_a_table_that_cannot_be_read_are_left_out_with_its_table_map() -> None:
    log = opened()
    log.table_map(types=b"\x63")
    log.rows(1)
    log.xid()
    found = decoded(log.events)
    assert kinds(found) == ["Begin", "Refused", "Commit"]
    refused = refusal(found)
    assert refused.error.what == "column 1 has the unknown type 99"
    assert refused.effects == (Effect("SkipTable", "db", "t"),)


@pytest.mark.parametrize("unknown", ["field", "flags"])
def test_what_a_newer_server_says_of_rows_and_columns_is_refused_by_name(unknown: str) -> None:
    log = opened()
    log.table_map(optional=SIGNED + b"\x0e\1\0" if unknown == "field" else SIGNED)
    event = log.rows(1)
    if unknown == "flags":
        flagged = event.data[:ROWS_FLAGS_AT] + b"\x21\0" + event.data[ROWS_FLAGS_AT + 2 :]
        log.events[-1] = event._replace(data=flagged)
    log.xid()
    found = decoded(log.events)
    assert kinds(found) == ["Begin", "Refused", "Commit"]
    wanted = {"field": "unknown field 14 of a table map", "flags": "unknown flags 0x20 of a rows event of db.t"}
    assert (refusal(found).error.what, refusal(found).error.code) == (wanted[unknown], "CDC-EVENT-UNKNOWN")


def test_a_rows_event_without_rows_is_refused() -> None:
    found = decoded(Log().transaction().events)
    assert kinds(found) == ["Begin", "Refused", "Commit"]
    refused = refusal(found)
    assert refused.error.what.startswith("a row of db.t cannot be read: the event has none")


def test_broken_bytes_are_refused_at_their_position() -> None:
    log = opened()
    event = log.add(et.TABLE_MAP, bytes(8))
    log.xid()
    refused = refusal(decoded(log.events))
    assert refused.error.what.startswith("event 19 (TableMap) cannot be read: IndexError(")
    assert refused.error.where == f"{FILE}:{event.offset}"


def test_what_no_binlog_can_have_stops_the_stream() -> None:
    outside = Log()
    outside.table_map()
    rows = outside.rows(1)
    with pytest.raises(Damaged) as caught:
        decoded(outside.events)
    assert str(caught.value) == f"rows came outside of a transaction; at {FILE}:{rows.offset}"
    left_out = Log()
    left_out.table_map(table="left_out")
    left_out.rows(1)
    assert decoded(left_out.events) == []
    for text in ("BEGIN", "START TRANSACTION", "DROP TABLE t"):
        nameless = Log()
        event = nameless.query(text)
        with pytest.raises(Damaged, match="a transaction has no GTID event") as caught:
            decoded(nameless.events)
        assert caught.value.where == f"{FILE}:{event.offset}"
    twice = opened()
    twice.gtid()
    twice.add(et.IGNORABLE)
    with pytest.raises(Damaged, match="a transaction begins before the previous one has ended"):
        decoded(twice.events)
    again = opened()
    again.begin()
    with pytest.raises(Damaged, match="has no GTID event"):
        decoded(again.events)


def test_texts_are_read_in_the_character_set_of_their_column() -> None:
    log = opened()
    varchar, latin1 = b"\x0f", b"\2\1\x08"
    log.table_map(types=varchar, names="a", meta=b"\x64\0", nullable=1, optional=latin1)
    log.images(b"\0\2\xe9!")
    log.xid()
    leader = Leader(collations={8: ("latin1", "latin1_swedish_ci"), 45: ("utf8mb4", "utf8mb4_general_ci")})
    assert plain(leader.decode(log.events))[1] == ("t", "Add", ('{"cols":[{"String":"é!"}]}',), 0)

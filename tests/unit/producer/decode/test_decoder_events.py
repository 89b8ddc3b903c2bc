"""Events of a leader's binlog become changes: the same ones however they arrive, compressed or not."""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from cdc.errors import PromiseError
from cdc.model.commit_entry import PreparedXa
from cdc.model.position import Position
from cdc.producer.binlog import event_types as et
from cdc.producer.binlog.events import RawEvent
from cdc.producer.binlog.fast_path import SIMPLE_TRANSACTION, SimpleTransaction
from cdc.producer.decode.changes import (
    Begin,
    Change,
    Commit,
    Idle,
    Moved,
    Prepared,
    Refused,
    Rows,
    Statement,
    Whole,
)
from cdc.producer.decode.decoder import Decoder
from cdc.producer.decode.table_cache import TableCache
from cdc.producer.decode.unsupported import Damaged
from cdc.producer.decode.whole_transactions import WholeTransactions, end_of_rows_only, start_of_incomplete
from cdc.producer.decode.xa import XaTransactions
from cdc.sql.effects import ANY_DATABASE, Effect

FILE = "binlog.000001"
SOURCE = bytes.fromhex("3e11fa4771ca11e19e33c80aa9429562")
UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
COMMIT_US = 1_700_000_000_000_005
CHECKSUM = 4
NO_ZEROS_AND_TRUNCATED = 1 << 23 | 1 << 24 | 1 << 32
Chunk = Sequence[RawEvent | SimpleTransaction]


@dataclass
class Log:
    """Makes events one after the other, as a leader writes them."""

    at: int = 4
    events: list[RawEvent | SimpleTransaction] = field(default_factory=list)

    def add(self, kind: int, body: bytes = b"") -> RawEvent:
        end = self.at + 19 + len(body) + CHECKSUM
        data = struct.pack("<IBIIIH", 1_700_000_000, kind, 1, end - self.at, end, 0) + body
        self.events.append(event := RawEvent(kind, data, FILE, self.at, end))
        self.at = end
        return event

    def gtid(self, number: int = 1, *, kind: int = et.GTID) -> RawEvent:
        return self.add(kind, b"\1" + SOURCE + struct.pack("<q17xQ", number, COMMIT_US))

    def query(self, text: str, *, database: str = "db", mode: int = 0, error: int = 0, more: bytes = b"") -> RawEvent:
        """``more`` are further status variables."""
        variables = struct.pack("<BIBQ", 0, 0, 1, mode) + more
        name = database.encode()
        head = struct.pack("<IIBHH", 1, 0, len(name), error, len(variables))
        return self.add(et.QUERY, head + variables + name + b"\0" + text.encode("utf-8", "surrogateescape"))

    def begin(self, mode: int = 0) -> RawEvent:
        return self.query("BEGIN", mode=mode)

    def table_map(self, number: int = 7, *, table: str = "t", kind: int = 3) -> RawEvent:
        names = b"\2db\0" + bytes([len(table)]) + table.encode() + b"\0"
        columns = b"\1" + bytes([kind]) + b"\0\0"
        metadata = b"\1\1\0" + b"\4\3\2id" + b"\x08\1\0"
        return self.add(et.TABLE_MAP, struct.pack("<IHH", number, 0, 1) + names + columns + metadata)

    def rows(self, *values: int, number: int = 7, kind: int = et.WRITE_ROWS) -> RawEvent:
        bitmaps = b"\1" * (2 if kind in et.UPDATES else 1)
        images = [b"\0" + struct.pack("<i", value) for value in values]
        if kind == et.PARTIAL_UPDATE_ROWS:
            images[1::2] = [b"\0" + after for after in images[1::2]]  # value options
        return self.add(kind, struct.pack("<IHHH", number, 0, 1, 2) + b"\1" + bitmaps + b"".join(images))

    def xid(self) -> RawEvent:
        return self.add(et.XID, bytes(8))

    def transaction(self, *values: int, mode: int = 0, number: int = 7, table: str = "t") -> "Log":
        self.gtid()
        self.begin(mode)
        self.table_map(number, table=table)
        self.rows(*values, number=number)
        self.xid()
        return self

    def prepare(self, *, one_phase: int = 0) -> RawEvent:
        return self.add(et.XA_PREPARE, struct.pack("<BIII", one_phase, 1, 1, 1) + b"ab")

    def simple(self) -> SimpleTransaction:
        """The last five events as one value."""
        five = [event for event in self.events[-5:] if isinstance(event, RawEvent)]
        parts = [event.data for event in five]
        found = SimpleTransaction(SIMPLE_TRANSACTION, parts[0], parts[1], parts[2], parts[3], parts[4], FILE, self.at)
        self.events[-5:] = [found]
        return found

    def compressed(self, inner: "Log", *, size: int | None = None) -> RawEvent:
        """The events of ``inner`` but their GTIDs, in one event; they have no checksums there."""
        parts = [struct.pack("<IBIIIH", 1, event.type, 1, len(event.data), 0, 0) + event.data[19:] for event in
                 inner.events if isinstance(event, RawEvent) and event.type != et.GTID]  # fmt: skip
        content = zstandard.ZstdCompressor().compress(b"".join(parts))
        size = len(b"".join(parts)) if size is None else size
        fields = b"\2\1\0" + b"\3\4" + b"\xfd" + size.to_bytes(3, "little") + b"\0"
        return self.add(et.TRANSACTION_PAYLOAD, fields + content)


XID = "X'61',X'62',1"


class Leader:
    """A decoder with what it logs, and what it may read again."""

    def __init__(self, again: Iterable[RawEvent] = (), **options: Any) -> None:
        self.logged: list[tuple[str, dict[str, Any]]] = []
        self.read: list[PreparedXa] = []
        self.decoder = Decoder(
            TableCache(
                wants_table=lambda database, table: not table.startswith("left_out"),
                collations={},
                **{"allow_differences": pytest.fail, "equal_members": lambda *_: False} | options,
            ),
            xa=XaTransactions({}, read_again=lambda place: self.read.append(place) or again),
            log=lambda event, **fields: self.logged.append((event, fields)),
        )

    def decode(self, *chunks: Chunk) -> list[Change]:
        return list(self.decoder.decode(chunks))


def decoded(*chunks: Chunk) -> list[Change]:
    return Leader().decode(*chunks)


def plain(changes: Iterable[Change]) -> list[Any]:
    """The changes without those that only mark time, whole transactions by their parts, rows by their content."""
    found: list[Any] = []
    for change in changes:
        if isinstance(change, Whole):
            found += [change.begin, *map(content, change.rows), Commit(Position(change.file, change.end))]
        elif isinstance(change, Rows):
            found.append(content(change))
        elif not isinstance(change, Idle):
            found.append(change)
    return found


def content(rows: Rows) -> tuple[str, str, tuple[str, ...], int]:
    return rows.table.name, rows.operation, tuple(row.decode() for row in rows.rows), rows.flags


def added(*values: int, table: str = "t") -> tuple[str, str, tuple[str, ...], int]:
    return table, "Add", tuple(f'{{"cols":[{{"SignedInteger":{value}}}]}}' for value in values), 0


def begin(number: int = 1, mode: str | None = "") -> Begin:
    return Begin(f"{UUID}:{number}", f"{UUID}:{number}", COMMIT_US, mode)


def commit(event: RawEvent, xid: str | None = None) -> Commit:
    return Commit(Position(FILE, event.end), xid)


def test_a_transaction_of_rows_is_one_change() -> None:
    log = Log().transaction(1, 2, mode=NO_ZEROS_AND_TRUNCATED)
    (whole,) = decoded(log.events)
    assert isinstance(whole, Whole)
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
    assert [type(each) for each in found] == [Whole, Whole]
    # Where it has not arrived completely, the start waits for the rest.
    (pause, whole) = decoded(log.events[:4], [], [])[:1], decoded(log.events[:4], [], log.events[4:])
    assert [type(each) for each in (*pause, *whole)] == [Idle, Idle, Whole, Whole]


def partial(options: bytes) -> Log:
    """A transaction with a partial update of a table with one JSON column, null before and after."""
    log = Log()
    log.gtid(1)
    log.begin()
    body = struct.pack("<IHH", 7, 0, 1) + b"\2db\0\1t\0" + b"\1\xf5\1\4\1" + b"\4\2\1j"
    log.add(et.TABLE_MAP, body)
    document = struct.pack("<I", 2) + b"\4\0"
    after = b"\1" if options == b"\1\1" else b"\0" + document
    log.add(et.PARTIAL_UPDATE_ROWS, struct.pack("<IHHH", 7, 0, 1, 2) + b"\1\1\1" + b"\0" + document + options + after)
    log.xid()
    return log


@pytest.mark.parametrize(("options", "asked"), [(b"\0", 0), (b"\1\0", 0), (b"\1\1", 1)])
def test_before_differences_are_applied_it_is_asked_whether_they_may_be(options: bytes, asked: int) -> None:
    calls: list[tuple[str, str, Sequence[str]]] = []
    leader = Leader(allow_differences=lambda *call: calls.append(call))
    events = partial(options).events
    assert [type(each) for each in leader.decode(events, events)] == [Whole, Whole]
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
    assert [type(each) for each in found] == [Begin, Refused, Commit]
    error = found[1].error  # type: ignore[union-attr]
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


def test_a_simple_transaction_is_read_at_once_where_its_table_is_known() -> None:
    log = Log()
    for number in range(3):
        log.transaction(number, mode=NO_ZEROS_AND_TRUNCATED).simple()
    log.transaction(3, number=8, table="left_out").simple()
    log.transaction(4, number=8, table="left_out").simple()
    leader = Leader()
    found = leader.decode(log.events)
    assert [type(each).__name__ for each in found] == ["Whole"] * 5
    assert all(isinstance(each, Whole) and type(each.begin) is Begin for each in found)
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
    assert [type(each).__name__ for each in found] == ["Whole", "Begin", "Refused", "Commit"]
    (refused,) = [each for each in found if isinstance(each, Refused)]
    assert refused.effects == (Effect("SkipTable", "db", "t"),)


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
    log = Log()
    log.gtid()
    log.begin()
    log.table_map()
    for _ in range(10):
        log.rows(*[1] * 19_000)
    # Less than a megabyte waits.
    assert decoded(log.events) == []
    log.rows(*[1] * 19_000)
    assert [type(each).__name__ for each in decoded(log.events)] == ["Begin"] + ["Rows"] * 11


def heartbeat(log: Log) -> RawEvent:
    return log.add(et.HEARTBEAT, FILE.encode())


def test_positions_between_transactions_are_progress() -> None:
    log = Log().transaction(1)
    beat = heartbeat(log)
    moved = Moved(Position(FILE, beat.end))
    assert decoded([beat]) == [moved]
    rotate = Log().add(et.ROTATE, (4).to_bytes(8, "little") + b"binlog.000002")
    assert decoded([rotate]) == [Moved(Position("binlog.000002", 4))]
    second = Log().add(et.HEARTBEAT_V2, b"\1\x0dbinlog.000009\2\1\x64\0\0")
    assert decoded([second]) == [Moved(Position("binlog.000009", 100))]
    # Not inside of a transaction, nor after its name, nor at the start of a file.
    opened = log.events[:2]
    assert decoded(*[[event] for event in opened], [beat])[-1] == Begin(*begin())
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
    (*_, refused, _) = decoded(log.events)
    assert isinstance(refused, Refused)
    assert refused.error.what == "rows of table id 7 came without a table map"
    assert refused.effects == (ANY_DATABASE,)


@pytest.mark.parametrize("kind", sorted(et.HARMLESS))
def test_harmless_events_are_no_changes(kind: int) -> None:
    log = Log()
    log.add(kind)
    assert decoded(log.events) == []


def alone(kind: int) -> tuple[list[Change], RawEvent]:
    """What comes of a transaction with an event of this type among its rows."""
    log = Log()
    log.gtid()
    log.begin()
    event = log.add(kind, struct.pack("<IHH", 7, 0, 0))
    log.table_map()
    log.rows(1)
    log.xid()
    return decoded(log.events), event


@pytest.mark.parametrize("kind", [1, 20, 26, 99])
def test_an_unknown_event_in_a_transaction_is_refused_and_the_rest_goes_on(kind: int) -> None:
    found, event = alone(kind)
    assert [type(each).__name__ for each in found] == ["Begin", "Refused", "Rows", "Commit"]
    refused = found[1]
    assert isinstance(refused, Refused)
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
    assert isinstance(found[2], Refused)
    assert plain(found[4:]) == plain(decoded(log.events[2:]))


def test_an_unknown_event_outside_of_any_transaction_stops_the_stream() -> None:
    log = Log()
    log.add(99)
    with pytest.raises(PromiseError, match=r"^event 99 \(unknown\) is not supported"):
        decoded(log.events)


@pytest.mark.parametrize("kind", sorted(et.OTHER_ROWS))
def test_rows_in_other_layouts_are_refused_unless_their_table_is_left_out(kind: int) -> None:
    for table, wanted in (("t", ["Begin", "Refused", "Commit"]), ("left_out", ["Begin", "Commit"])):
        log = Log()
        log.gtid()
        log.begin()
        log.table_map(table=table)
        log.rows(1, kind=kind)
        log.xid()
        leader = Leader()
        found = leader.decode(log.events)
        assert [type(each).__name__ for each in found] == wanted
        assert leader.decoder.filtered == (table != "t")
        assert table != "t" or (isinstance(found[1], Refused) and found[1].effects == (Effect("SkipTable", "db", "t"),))


def test_rows_of_a_table_that_cannot_be_read_are_left_out_with_its_table_map() -> None:
    log = Log()
    log.gtid()
    log.begin()
    log.table_map(kind=99)
    log.rows(1)
    log.xid()
    found = decoded(log.events)
    assert [type(each).__name__ for each in found] == ["Begin", "Refused", "Commit"]
    assert isinstance(found[1], Refused)
    assert found[1].error.what == "column 1 has the unknown type 99"
    assert found[1].effects == (Effect("SkipTable", "db", "t"),)


def test_a_rows_event_without_rows_is_refused() -> None:
    found = decoded(Log().transaction().events)
    assert [type(each).__name__ for each in found] == ["Begin", "Refused", "Commit"]
    assert isinstance(found[1], Refused)
    assert found[1].error.what.startswith("a row of db.t cannot be read: the event has none")


def test_broken_bytes_are_refused_at_their_position() -> None:
    log = Log()
    log.gtid()
    log.begin()
    event = log.add(et.TABLE_MAP, bytes(8))
    log.xid()
    refused = decoded(log.events)[1]
    assert isinstance(refused, Refused)
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
    twice = Log()
    twice.gtid()
    twice.begin()
    twice.gtid()
    twice.add(et.IGNORABLE)
    with pytest.raises(Damaged, match="a transaction begins before the previous one has ended"):
        decoded(twice.events)
    again = Log()
    again.gtid()
    again.begin()
    again.begin()
    with pytest.raises(Damaged, match="has no GTID event"):
        decoded(again.events)


def statements(*texts: str, rows: bool = False, inside: bool = False, **options: Any) -> tuple[list[Change], Leader]:
    log = Log()
    log.gtid()
    if inside or rows:
        log.begin()
    if rows:
        log.table_map()
        log.rows(1)
    for text in texts:
        log.query(text, **options)
    leader = Leader()
    return leader.decode(log.events), leader


def test_a_statement_that_changes_objects_is_a_transaction_of_its_own() -> None:
    found, leader = statements("CREATE TABLE t (i INT)", mode=NO_ZEROS_AND_TRUNCATED)
    first, statement, last = found
    assert first == begin(mode="NO_ZERO_IN_DATE,NO_ZERO_DATE,TIME_TRUNCATE_FRACTIONAL")
    assert isinstance(statement, Statement)
    assert (statement.database, statement.text, statement.unreadable) == ("db", "CREATE TABLE t (i INT)", "")
    assert statement.effects == (Effect("CreateTable", "db", "t"),)
    assert statement.context["database"] == "db"
    assert last == commit(statement.event)
    assert leader.logged == []


def test_a_statement_that_ends_with_begin_is_none_that_begins_a_transaction() -> None:
    (_, statement, _), _ = statements("DROP TABLE xBEGIN")
    assert isinstance(statement, Statement)
    assert statement.effects == (Effect("DropTable", "db", "xBEGIN"),)


def test_bytes_that_are_no_letters() -> None:
    (_, statement, _), _ = statements("CREATE TABLE `\udc80` (i INT)")
    assert isinstance(statement, Statement)
    # What the server has made of the name is known.
    assert (statement.effects, statement.unreadable) == ((Effect("CreateTable", "db", "?"),), "")
    (_, statement, _), _ = statements("CREATE TABLE t (i INT COMMENT '\udcff')")
    assert isinstance(statement, Statement)
    assert not statement.unreadable
    assert statement.text == "CREATE TABLE t (i INT COMMENT '?')"
    assert statement.exact == b"CREATE TABLE t (i INT COMMENT '\xff')"


def test_a_statement_in_a_transaction_is_one_of_its_changes() -> None:
    found, _ = statements("CREATE TABLE t (i INT)", "COMMIT", inside=True)
    assert [type(each).__name__ for each in found] == ["Begin", "Statement", "Commit"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [("CREATE USER a IDENTIFIED BY 'secret'", "account"), ("FLUSH TABLES", "admin"),
     ("DROP TEMPORARY TABLE t", "temporary")],
)  # fmt: skip
def test_statements_that_are_not_replicated_are_logged_and_empty(text: str, kind: str) -> None:
    found, leader = statements(text)
    event = found[1]
    assert [type(each).__name__ for each in found] == ["Begin", "Commit"]
    ((what, fields),) = leader.logged
    assert isinstance(event, Commit)
    assert (what, fields["kind"]) == ("statement not replicated", kind)
    assert fields["position"] == Position(FILE, Log().gtid().end)
    assert "secret" not in fields["statement"]
    assert fields["statement"].split()[0] == text.split()[0]


@pytest.mark.parametrize(
    ("text", "what", "effects", "fires"),
    [
        ("GIBBERISH 1", "the statement is not known", (ANY_DATABASE,), False),
        ("INSERT INTO t VALUES (1)", "logged as a statement, not as rows", (ANY_DATABASE,), True),
    ],
)
def test_a_statement_that_is_not_known_is_refused(
    text: str, what: str, effects: tuple[Effect, ...], fires: bool
) -> None:
    first, refused, _ = statements(text)[0]
    assert first == begin()
    assert isinstance(refused, Refused)
    assert what in refused.error.what
    assert (refused.effects, refused.fires, refused.event.type) == (effects, fires, et.QUERY)
    assert refused.text.split()[0] == text.split()[0]


def test_a_statement_that_failed_in_part_is_refused() -> None:
    found, _ = statements("DROP TABLE t, u", error=1051)
    assert [type(each).__name__ for each in found] == ["Begin", "Refused", "Commit"]
    assert isinstance(found[1], Refused)
    assert "a statement failed on the leader in part (error 1051)" in found[1].error.what


def test_the_ends_of_transactions() -> None:
    for end, rows, wanted in (
        ("COMMIT", True, ["Begin", "Rows", "Commit"]),
        ("ROLLBACK", False, ["Begin", "Commit"]),
        ("ROLLBACK", True, ["Begin", "Rows", "Refused", "Commit"]),
        ("ROLLBACK TO `a`", True, ["Begin", "Rows", "Refused"]),
        ("SAVEPOINT `a`", True, ["Begin", "Rows"]),
    ):
        found, _ = statements(end, rows=rows, inside=True)
        assert [type(each).__name__ for each in found] == wanted, end
    # Rows of an earlier transaction are none of this one's.
    log = Log().transaction(1)
    log.gtid()
    log.begin()
    log.query("ROLLBACK")
    assert [type(each).__name__ for each in decoded(*[[event] for event in log.events])][-2:] == ["Begin", "Commit"]


def test_a_begin_in_other_words_begins_a_transaction_too() -> None:
    for text in ("BEGIN", "begin", "START TRANSACTION"):
        log = Log()
        log.gtid()
        log.query(text, mode=NO_ZEROS_AND_TRUNCATED)
        log.table_map()
        log.rows(1)
        log.xid()
        assert plain(decoded(log.events))[0] == begin(mode="NO_ZERO_IN_DATE,NO_ZERO_DATE,TIME_TRUNCATE_FRACTIONAL")


@pytest.mark.parametrize("kind", sorted(et.OF_A_STATEMENT - {17}))
def test_a_statement_with_values_of_its_own_is_not_repeated(kind: int) -> None:
    log = Log()
    log.gtid()
    log.add(kind, bytes(20))
    log.query("CREATE TABLE t (i INT)")
    log.gtid(2)
    log.query("CREATE TABLE u (i INT)")
    doubts = [
        each.effects[0].unfaithful
        for each in decoded(*[[event] for event in log.events])
        if isinstance(each, Statement)
    ]
    assert doubts[0]
    assert doubts[1:] == [""]


INNODB, STEPS = struct.pack("<BQ", 17, 5), struct.pack("<BHH", 3, 2, 1)


@pytest.mark.parametrize(("logged", "certain"), [(INNODB, True), (b"", False), (STEPS + INNODB, False)])
def test_rows_are_numbered_in_a_certain_order_by_innodb_in_steps_of_one(logged: bytes, *, certain: bool) -> None:
    log = Log()
    log.gtid()
    log.query("ALTER TABLE t DROP PRIMARY KEY, ADD n INT AUTO_INCREMENT PRIMARY KEY", more=logged)
    ((effect,),) = [each.effects for each in decoded(log.events) if isinstance(each, Statement)]
    assert (not effect.unfaithful) is certain


def test_a_load_of_a_file_is_refused_as_a_statement() -> None:
    log = Log()
    log.gtid()
    log.begin()
    query = log.query("LOAD DATA INFILE 'f' INTO TABLE t")
    log.events.pop()
    body = query.data[19:32] + bytes(13) + query.data[32:]
    log.add(et.EXECUTE_LOAD_QUERY, body)
    (_, refused) = decoded(log.events)
    assert isinstance(refused, Refused)
    assert "logged as a statement, not as rows" in refused.error.what
    ddl = Log()
    ddl.gtid()
    text = ddl.query("CREATE TABLE t (i INT)", mode=NO_ZEROS_AND_TRUNCATED)
    ddl.events.pop()
    ddl.add(et.EXECUTE_LOAD_QUERY, text.data[19:32] + b"\xff" * 13 + text.data[32:])
    found = decoded(ddl.events)
    assert found[0] == begin(mode=None)
    assert [type(each).__name__ for each in found] == ["Begin", "Statement", "Commit"]


def xa(*values: int, end: bool = True) -> Log:
    log = Log(at=200)
    log.gtid(5)
    log.query(f"XA START {XID}", mode=NO_ZEROS_AND_TRUNCATED)
    log.table_map()
    log.rows(*values)
    if end:
        log.query(f"XA END {XID}")
    return log


PLACE = PreparedXa(f"{UUID}:5", FILE, 200, "NO_ZERO_IN_DATE,NO_ZERO_DATE,TIME_TRUNCATE_FRACTIONAL")


@pytest.mark.parametrize("one_by_one", [False, True])
def test_an_xa_transaction_comes_with_its_commit(one_by_one: bool) -> None:
    log = xa(1, 2)
    prepared = log.prepare()
    log.transaction(3)
    log.gtid(6)
    last = log.query(f"XA COMMIT {XID}")
    leader = Leader()
    found = plain(leader.decode(*([event] for event in log.events)) if one_by_one else leader.decode(log.events))
    assert found[0] == Prepared(XID, PLACE, Position(FILE, prepared.end))
    assert found[1:4] == [begin(), added(3), found[3]]
    assert found[4:] == [begin(6, PLACE.sql_mode), added(1, 2), commit(last, XID)]
    assert leader.read == []


def test_an_xa_transaction_keeps_its_table_maps_for_a_commit_in_another_file() -> None:
    log = xa(1)
    log.prepare()
    log.add(et.FORMAT_DESCRIPTION)
    log.gtid(6)
    last = log.query(f"XA COMMIT {XID}")
    assert plain(decoded(log.events))[1:] == [begin(6, PLACE.sql_mode), added(1), commit(last, XID)]


def test_an_xa_transaction_may_commit_in_one_phase() -> None:
    log = xa(1)
    last = log.prepare(one_phase=1)
    assert plain(decoded(log.events)) == [begin(5, PLACE.sql_mode), added(1), commit(last, XID)]


def test_an_xa_transaction_that_is_rolled_back_is_empty() -> None:
    log = xa(1)
    log.prepare()
    log.gtid(6)
    last = log.query(f"XA ROLLBACK {XID}")
    assert plain(decoded(log.events))[1:] == [begin(6, None), commit(last, XID)]
    log.gtid(7)
    log.query(f"XA COMMIT {XID}")
    (*_, refused, _) = decoded(log.events)
    assert isinstance(refused, Refused)
    assert "it was prepared before the producer's start" in refused.error.what


def test_the_xid_of_an_end_is_of_that_end_alone() -> None:
    log = xa(1)
    log.prepare()
    log.gtid(6)
    log.query(f"XA ROLLBACK {XID}")
    log.transaction(1)
    assert plain(decoded(*[[event] for event in log.events]))[-1].xid is None


def test_transactions_do_not_interrupt_an_xa_transaction() -> None:
    for start in (Log.gtid, Log.begin):
        log = xa(1)
        start(log)
        log.add(et.IGNORABLE)
        with pytest.raises(Damaged):
            decoded(log.events)
    log = xa(1)
    log.query("CREATE TABLE t (i INT)")
    with pytest.raises(Damaged):
        decoded(log.events)


def test_a_statement_of_an_xa_transaction_is_held_and_refused_at_its_end() -> None:
    log = xa(1, end=False)
    log.query("INSERT INTO t VALUES (2)")
    log.query(f"XA END {XID}")
    log.prepare()
    log.gtid(6)
    log.query(f"XA COMMIT {XID}")
    found = plain(decoded(log.events))
    assert [type(each).__name__ for each in found] == ["Prepared", "Begin", "tuple", "Refused", "Commit"]


def test_rows_in_other_layouts_are_held_by_an_xa_transaction_too() -> None:
    log = xa(1, end=False)
    log.rows(1, kind=39)
    log.prepare()
    log.gtid(6)
    log.query(f"XA COMMIT {XID}")
    found = plain(decoded(log.events))
    assert [type(each).__name__ for each in found] == ["Prepared", "Begin", "tuple", "Refused", "Commit"]


@pytest.mark.parametrize("verb", ["START", "COMMIT", "ROLLBACK"])
def test_an_xa_statement_needs_a_gtid(verb: str) -> None:
    log = xa(1)
    log.prepare()
    event = log.query(f"XA {verb} {XID}")
    with pytest.raises(Damaged, match="has no GTID event") as caught:
        decoded(log.events)
    assert caught.value.where == f"{FILE}:{event.offset}"


def test_the_verb_of_an_xa_statement_is_its_second_word() -> None:
    log = xa(1)
    log.prepare()
    log.gtid(6)
    last = log.query(f"XA COMMIT {XID} ONE PHASE")
    assert plain(decoded(log.events))[1:] == [begin(6, PLACE.sql_mode), added(1), commit(last, XID)]


def test_an_xa_statement_without_an_xid_is_refused() -> None:
    log = Log()
    log.gtid()
    log.query("XA COMMIT 'a'")
    found = decoded(log.events)
    assert [type(each).__name__ for each in found] == ["Begin", "Refused", "Commit"]
    assert isinstance(found[1], Refused)
    assert found[1].error.what.startswith("event 2 (Query) cannot be read: ValueError(")


def test_an_xa_statement_of_another_kind_is_refused() -> None:
    other = Log()
    other.gtid()
    other.query(f"XA JOIN {XID}")
    found = decoded(other.events)
    assert [type(each).__name__ for each in found] == ["Begin", "Refused", "Commit"]
    assert isinstance(found[1], Refused)
    assert "the statement is not known" in found[1].error.what


def test_a_compressed_transaction_is_one_change() -> None:
    inner = Log().transaction(1, 2)
    log = Log()
    log.gtid()
    outer = log.compressed(inner)
    (whole,) = decoded(log.events)
    assert isinstance(whole, Whole)
    assert (whole.begin, whole.file, whole.end) == (begin(), FILE, outer.end)
    assert [content(rows) for rows in whole.rows] == [added(1, 2)]
    assert whole.rows[0].event.name == f"{FILE}:{outer.offset}/3"


def test_a_large_compressed_transaction_is_decoded_event_by_event() -> None:
    inner = Log().transaction(1, 2)
    log = Log()
    log.gtid()
    outer = log.compressed(inner, size=1_000_000)
    found = decoded(log.events)
    assert [type(each).__name__ for each in found] == ["Begin", "Rows", "Commit"]
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
        assert [type(each).__name__ for each in decoded(log.events)] == ["Begin", "Refused", "Rows", "Commit"]


def test_a_compressed_transaction_that_cannot_be_read_is_refused() -> None:
    log = Log()
    log.gtid()
    event = log.compressed(Log().transaction(1))
    log.events[-1] = event._replace(data=event.data[:-9])
    found = decoded(log.events)
    assert [type(each).__name__ for each in found] == ["Begin", "Refused", "Commit"]
    assert isinstance(found[1], Refused)
    assert "a compressed transaction cannot be read" in found[1].error.what


def test_the_fast_path_decodes_what_it_can_and_nothing_else() -> None:
    tables = TableCache(
        wants_table=lambda database, table: True,
        collations={},
        allow_differences=pytest.fail,
        equal_members=pytest.fail,
    )
    fast = WholeTransactions(tables)
    log = Log().transaction(1, mode=NO_ZEROS_AND_TRUNCATED)
    simple = log.simple()
    assert fast.of_simple(simple) is None  # its table map is new
    five = simple.events()
    whole = fast.of_events(five)
    assert whole is not None
    again = fast.of_simple(simple)
    assert again is not None
    assert (again, type(again), type(again.begin)) == (whole, Whole, Begin)
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


def test_after_a_prepared_transaction_nothing_is_under_way() -> None:
    log = xa(1)
    log.prepare()
    beat = heartbeat(log)
    assert decoded(log.events, [])[-2:] == [Moved(Position(FILE, beat.end)), Idle(False)]


def test_texts_are_read_in_the_character_set_of_their_column() -> None:
    log = Log()
    log.gtid()
    log.begin()
    metadata = b"\2\1\x08" + b"\4\2\1a"
    body = struct.pack("<IHH", 7, 0, 1) + b"\2db\0\1t\0" + b"\1\x0f\2\x64\0\1" + metadata
    log.add(et.TABLE_MAP, body)
    log.add(et.WRITE_ROWS, struct.pack("<IHHH", 7, 0, 1, 2) + b"\1\1" + b"\0\2\xe9!")
    log.xid()
    leader = Leader()
    leader.decoder = Decoder(
        TableCache(
            wants_table=lambda database, table: True,
            collations={8: ("latin1", "latin1_swedish_ci"), 45: ("utf8mb4", "utf8mb4_general_ci")},
            allow_differences=pytest.fail,
            equal_members=pytest.fail,
        ),
        xa=XaTransactions({}, read_again=lambda place: ()),
        log=lambda event, **fields: None,
    )
    assert plain(leader.decode(log.events))[1] == ("t", "Add", ('{"cols":[{"String":"é!"}]}',), 0)


@pytest.mark.parametrize("atomic", [True, False])
@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("ALTER TABLE t ADD FOREIGN KEY (i) references p (i)", True),
        ("ALTER TABLE t ADD i INT", False),
        ("CREATE TABLE t (i INT REFERENCES p (i))", False),
    ],
)
def test_an_added_foreign_key_comes_with_its_engine_where_the_log_shows_it(text: str, may: bool, atomic: bool) -> None:
    log = Log()
    log.gtid()
    log.query(text, more=INNODB if atomic else b"")
    (found,) = [each for each in decoded(log.events) if isinstance(each, Statement)]
    assert found.context.get("engine") == ("InnoDB" if may and atomic else None)

"""Tables whose numbers are given again, that change, or are forgotten: their rows are never read as another table's."""

import struct
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.errors import PromiseError
from cdc.producer.binlog import event_types as et
from cdc.producer.binlog.packets import SimpleTransaction
from cdc.producer.decode import row_codegen, table_cache
from cdc.producer.decode.changes import RowsTransaction, ShapeCache, TableShape
from cdc.producer.decode.decoder import UNREADABLE
from cdc.producer.decode.row_codegen import FIRST_ROWS, row_decoder, row_decoders
from cdc.producer.decode.table_map import ENUM, JSON, SET, Column, Table
from tests.generators.binlog_events import SIGNED, Log
from tests.harness.decoding import Leader, content, refusal, tables

# The names of the tables, and what their columns may be: four bytes are read by each, as another value.
NAMES = ("t", "u", "left_out")
INT, UNSIGNED, TIMESTAMP, TWO = "int", "unsigned", "timestamp", "two smallints"
TYPES = {INT: b"\3", UNSIGNED: b"\3", TIMESTAMP: b"\x11", TWO: b"\2\2"}
READ: dict[str, Callable[[int], str]] = {
    INT: lambda value: f'{{"SignedInteger":{value}}}',
    UNSIGNED: lambda value: f'{{"UnsignedInteger":{value % 2**32}}}',
    TIMESTAMP: lambda value: f'{{"Timestamp":{{"unix_time":{int.from_bytes(four(value), "big")},"subsecond":0}}}}',
    TWO: lambda value: ",".join(f'{{"SignedInteger":{part}}}' for part in struct.unpack("<hh", four(value))),
}


def four(value: int) -> bytes:
    return struct.pack("<i", value)


class Tables(Log):
    """Makes transactions of one table map and one rows event."""

    def change(self, number: int, name: str, columns: str, value: int, *, simple: bool) -> None:
        self.gtid()
        self.begin()
        self.describe(number, name, columns)
        self.images(b"\0" + four(value), number=number, width=len(TYPES[columns]))
        self.xid()
        if simple:
            self.simple()

    def describe(self, number: int, name: str, columns: str) -> None:
        types = TYPES[columns]
        meta = b"\0" if columns == TIMESTAMP else b""
        signs = b"" if columns == TIMESTAMP else b"\1\1\x80" if columns == UNSIGNED else SIGNED
        self.table_map(number, table=name, types=types, names="ab"[: len(types)], meta=meta, optional=signs)


changes = st.tuples(
    st.integers(1, 3), st.sampled_from(NAMES), st.sampled_from(sorted(TYPES)), st.integers(-(2**31), 2**31 - 1),
    st.booleans(),
)  # fmt: skip


@given(
    st.lists(changes, min_size=1, max_size=40),
    st.sampled_from([0, 3_000, 8_000, 10**6]),
    st.sampled_from([0, 1, 2, 400]),
)
def test_rows_are_those_of_the_table_map_before_them(
    wanted: list[tuple[int, str, str, int, bool]], limit: int, first: int
) -> None:
    """Whatever numbers tables get, however they are altered, and however little of them is kept."""
    log = Tables()
    for number, name, columns, value, simple in wanted:
        log.change(number, name, columns, value, simple=simple)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(table_cache, "_SHAPES_BYTES", limit)
        patched.setattr(row_codegen, "FIRST_ROWS", first)
        found = Leader().decode(log.events)
    assert all(isinstance(each, RowsTransaction) for each in found)
    expected = [
        [] if name == "left_out" else [(name, "Add", (f'{{"cols":[{READ[columns](value)}]}}',), 0)]
        for _, name, columns, value, _ in wanted
    ]
    assert [[content(rows) for rows in each.rows] for each in found if isinstance(each, RowsTransaction)] == expected


def test_rows_of_another_number_than_their_table_map_are_refused() -> None:
    log = Tables()
    log.change(7, "t", INT, 1, simple=False)
    log.change(7, "t", INT, 1, simple=True)
    simple = log.events[-1]
    assert isinstance(simple, SimpleTransaction)
    log.events[-1] = simple._replace(rows=simple.rows[:19] + b"\x08" + simple.rows[20:])
    assert refusal(Leader().decode(log.events)).error.what == "rows of table id 8 came without a table map"


def test_only_tables_with_many_rows_get_a_compiled_decoder(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    monkeypatch.setattr(table_cache, "row_decoder", lambda *of, **more: made.append(of[1]) or row_decoder(*of, **more))
    log = Tables()
    for number in range(FIRST_ROWS):
        log.change(number, "t", INT, 1, simple=number % 2 == 0)
    leader = Leader()
    leader.decode(log.events)
    assert made == []
    log = Tables()
    for number in range(10):
        log.change(number, "t", INT, 1, simple=number % 2 == 0)
    leader.decode(log.events)
    assert made == [et.WRITE_ROWS]


def test_tables_take_no_more_memory_than_they_may() -> None:
    cache = ShapeCache(100_000)
    for number in range(1_000):
        shape = TableShape("db", str(number), "", {}, 1)
        shape.size = 5_000
        cache.add(str(number).encode(), shape)
        assert cache[b"0"] is not None  # in use all the time
        cache[str(max(0, number - 3)).encode()]
        assert (len(cache) + len(cache._old)) * 5_000 <= 110_000
    with pytest.raises(KeyError):
        cache[b"900"]
    cache.grow(100_000)
    assert (len(cache), b"0" in cache._old) == (0, True)
    assert cache[b"0"] is not None
    cache.grow(100_000)
    cache.grow(100_000)
    with pytest.raises(KeyError):
        cache[b"0"]


# Every kind of column, with values of it.
DOCUMENTS = [b"", bytes.fromhex("0c0161"), bytes.fromhex("000100") + b"\x0c\0\x0b\0\1\0\5\1\0a"]
MEMBERS = (b"a", b"b", b"c")


def _lengths(prefix: int, values: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return values.map(lambda value: len(value).to_bytes(prefix, "little") + value)


_TEXT = st.text(st.characters(codec="utf-8"), max_size=4).map(str.encode)
COLUMNS: list[tuple[Column, st.SearchStrategy[bytes]]] = [
    *[
        (Column("", kind, 0, unsigned), st.binary(min_size=size, max_size=size))
        for kind, size in ((1, 1), (2, 2), (9, 3), (3, 4), (8, 8))
        for unsigned in (False, True)
    ],
    (Column("", 4, 4), st.floats(width=32).map(lambda value: struct.pack("<f", value))),
    (Column("", 5, 8), st.floats().map(lambda value: struct.pack("<d", value))),
    (Column("", 246, 10 << 8 | 3), st.binary(min_size=6, max_size=6)),
    (Column("", 10, 0), st.binary(min_size=3, max_size=3)),
    (Column("", 13, 0), st.binary(min_size=1, max_size=1)),
    *[
        (Column("", kind, digits), st.binary(min_size=(size := whole + (digits + 1) // 2), max_size=size))
        for kind, whole in ((17, 4), (18, 5), (19, 3))
        for digits in (0, 3, 6)
    ],
    (Column("", 16, 1 << 8 | 3), st.binary(min_size=2, max_size=2)),
    (Column("", 15, 40, charset="utf8mb4"), _lengths(1, _TEXT)),
    (Column("", 15, 400, charset="latin1"), _lengths(2, st.binary(max_size=4))),
    (Column("", 254, 4), _lengths(1, st.binary(max_size=4))),
    (Column("", 252, 2), _lengths(2, st.binary(max_size=4))),
    (Column("", 252, 2, charset="tis620x"), _lengths(2, st.binary(max_size=4))),
    (Column("", JSON, 4), _lengths(4, st.sampled_from(DOCUMENTS))),
    (Column("", 255, 4), _lengths(4, st.binary(max_size=4))),
    (Column("", ENUM, 1, charset="utf8mb4", members=MEMBERS), st.sampled_from([b"\0", b"\1", b"\3", b"\4"])),
    (Column("", ENUM, 1, charset="utf8mb4", members=(b"x",)), st.sampled_from([b"\0", b"\1"])),
    (Column("", SET, 1, charset="utf8mb4", members=MEMBERS), st.binary(min_size=1, max_size=1)),
]


@st.composite
def images(draw: st.DrawFn) -> tuple[list[Column], bytes]:
    """Columns, and the bytes of some images of rows; some of the bytes are broken."""
    chosen = draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=12))
    data = b""
    for _ in range(draw(st.integers(1, 4))):
        nulls = draw(st.one_of(st.just(0), st.integers(0, 2 ** len(chosen) - 1)))
        data += nulls.to_bytes((len(chosen) + 7) // 8, "little")
        data += b"".join(draw(of) for index, (_, of) in enumerate(chosen) if not nulls >> index & 1)
    if draw(st.integers(0, 3)) == 0:
        data = data[: draw(st.integers(0, len(data)))] + draw(st.binary(max_size=3))
    return [column._replace(name=f"c{index}") for index, (column, _) in enumerate(chosen)], data


@given(images(), st.sampled_from([et.WRITE_ROWS, et.UPDATE_ROWS, et.DELETE_ROWS]))
def test_a_tables_first_rows_are_read_as_all_others(made: tuple[list[Column], bytes], kind: int) -> None:
    columns, data = made
    table = Table("db", "t", tuple(columns), None)
    first = row_decoders(table, compile_for=pytest.fail)[kind]
    compiled = row_decoder(table, kind, allow_differences=pytest.fail)
    assert outcome(first, data) == outcome(compiled, data)


def outcome(decode: Callable[[bytes, int], list[bytes]], data: bytes) -> Sequence[Any]:
    """The rows, or that they can't be read."""
    try:
        return decode(b"head" + data, 4)
    except (PromiseError, *UNREADABLE):
        return "unreadable"


def test_columns_share_a_reader_where_all_but_their_names_is_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Column] = []
    read = row_codegen.column_reader
    monkeypatch.setattr(row_codegen, "column_reader", lambda column: made.append(column) or read(column))
    row_codegen._reader.cache_clear()
    one = Column("one", ENUM, 1, charset="utf8mb4", members=(b"a",), collation="utf8mb4_bin")
    others = [one._replace(name="two"), one._replace(members=(b"b",)), one._replace(collation="utf8mb4_0900_ai_ci")]
    for column in (one, *others):
        row_decoders(Table("db", column.name, (column,), None), compile_for=pytest.fail)
    assert made == [column._replace(name="") for column in (one, *others[1:])]


def test_a_cache_knows_the_tables_of_the_fast_path() -> None:
    cache = tables()
    log = Tables()
    log.change(7, "t", INT, 1, simple=True)
    log.change(8, "t", INT, 2, simple=True)
    first, second = (event for event in log.events if isinstance(event, SimpleTransaction))
    assert cache.rows_of(first) is None
    cache.map(first.events()[2])
    assert [content(rows)[2] for each in (first, second) for rows in cache.rows_of(each) or ()] == [
        ('{"cols":[{"SignedInteger":1}]}',), ('{"cols":[{"SignedInteger":2}]}',),
    ]  # fmt: skip


@pytest.mark.parametrize("wanted_first", [True, False])
def test_other_filters_hold_for_tables_that_are_known(wanted_first: bool) -> None:
    cache = tables(wants_table=lambda *_: wanted_first)
    log = Tables()
    log.change(7, "t", INT, 1, simple=True)
    (change,) = (event for event in log.events if isinstance(event, SimpleTransaction))

    def rows() -> int:
        cache.map(change.events()[2])
        return len(cache.rows_of(change) or ())

    assert rows() == wanted_first
    cache.filter_by(lambda *_: not wanted_first)
    assert rows() == (not wanted_first)

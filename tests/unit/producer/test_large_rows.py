"""Rows of an event on disk: their text is what the decoder in memory makes of the same bytes, and so are its sums."""

import struct
from base64 import b64encode
from collections.abc import Iterator
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc.producer import large_rows as module
from cdc.producer.binlog import event_types as et
from cdc.producer.binlog.events import RawEvent
from cdc.producer.binlog.spool import Spool
from cdc.producer.decode.changes import TableShape
from cdc.producer.decode.row_codegen import large_column, row_decoder
from cdc.producer.decode.table_map import JSON, Column, Table
from cdc.producer.large_rows import LargeText, checksum, large_rows
from cdc.producer.sink import router
from cdc.producer.sink.record_parts import encoded, joined, rows_body
from cdc.producer.sink.recovery import without_types
from cdc.producer.sink.router import row_sum

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
BYTES = st.binary(max_size=40)


def sized(prefix: int, data: bytes) -> bytes:
    return len(data).to_bytes(prefix, "little") + data


COLUMNS = {
    "int": (Column("", 3, 0), st.binary(min_size=4, max_size=4)),
    "varchar": (Column("", 15, 400, charset="utf8mb4"), TEXT.map(lambda text: sized(2, text.encode()))),
    "binary": (Column("", 254, 50), BYTES.map(lambda data: sized(1, data))),
    "longblob": (Column("", 252, 4), BYTES.map(lambda data: sized(4, data))),
    "mediumblob": (Column("", 252, 3), BYTES.map(lambda data: sized(3, data))),
    "longtext": (Column("", 252, 4, charset="utf8mb4"), TEXT.map(lambda text: sized(4, text.encode()))),
    "latin1": (Column("", 252, 4, charset="latin1"), BYTES.map(lambda data: sized(4, data))),
    "json": (Column("", JSON, 4), st.sampled_from([sized(4, b"\4\0"), sized(4, b"")])),
    "geometry": (Column("", 255, 4), BYTES.map(lambda data: sized(4, data))),
}


@pytest.fixture(autouse=True, scope="module")
def few_bytes_are_many() -> Iterator[None]:
    """A value of ten bytes stays on disk and is read in blocks of six, of a row's ends 20 characters are summed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_LARGE", 10)
        patch.setattr(module, "_BLOCK", 6)
        patch.setattr(router, "_SUMMED", 20)
        yield


def on_disk(kind: int, data: bytes) -> RawEvent:
    spool = Spool(data[:30])
    spool.write(data)
    return RawEvent(kind, data[:30], "f", 4, 4 + len(data), spool)


@st.composite
def events(draw: st.DrawFn) -> tuple[Table, int, bytes]:
    """A table, the type of a rows event, and its rows."""
    names = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=10))
    kind = draw(st.sampled_from([et.WRITE_ROWS, et.UPDATE_ROWS, et.DELETE_ROWS]))
    images = draw(st.integers(1, 2)) * (2 if kind == et.UPDATE_ROWS else 1)
    data = b""
    for _ in range(images):
        nulls = draw(st.integers(0, (1 << len(names)) - 1))
        data += nulls.to_bytes((len(names) + 7) // 8, "little")
        data += b"".join(draw(COLUMNS[name][1]) for index, name in enumerate(names) if not nulls >> index & 1)
    return Table("db", "t", tuple(COLUMNS[name][0] for name in names), None), kind, data


@given(events())
@settings(max_examples=400)
def test_rows_on_disk_are_those_in_memory(made: tuple[Table, int, bytes]) -> None:
    table, kind, data = made
    expected = row_decoder(table, kind, allow_differences=pytest.fail)(bytes(50) + data, 50)
    rows = large_rows(on_disk(kind, bytes(50) + data), list(map(large_column, table.columns)), 50)
    assert [bytes(row) for row in rows] == expected
    assert [len(row) for row in rows] == list(map(len, expected))
    assert [row.characters for row in rows] == [len(row.decode()) for row in expected]
    assert [row_sum("u", row) for row in rows] == [row_sum("u", row) for row in expected]
    told = '"columns":["a"],"types":["varchar(3)"]'
    whole, known = (encoded(rows_body(told, 0, None, "Add", joined(list(of)))) for of in (rows, expected))
    assert isinstance(whole, LargeText)
    assert (
        bytes(without_types(whole))
        == without_types(bytes(known))
        == bytes(known).replace(b',"types":["varchar(3)"]', b"", 1)
    )
    assert (bytes(whole), checksum(whole)) == (known, crc32(bytes(known)))
    for size in (1, 80, 1000):
        assert whole.head(size)[:size] == bytes(known)[:size]
        assert whole.tail(size)[-size:] == bytes(known)[-size:]


@given(st.binary(min_size=1, max_size=100), st.integers(1, 120))
def test_the_ends_of_a_value_on_disk(data: bytes, size: int) -> None:
    """Of which no more is read than they need."""
    event = on_disk(et.WRITE_ROWS, data)
    assert event.spool is not None
    text = LargeText([b"<", module.stored_base64(event.spool, 0, len(data))])
    known = b"<" + b64encode(data)
    assert text.head(size)[:size] == known[:size]
    assert text.tail(size)[-size:] == known[-size:]
    assert max(len(text.head(size)), len(text.tail(size))) <= size + 4 * module._BLOCK


@given(events(), st.data())
def test_a_row_that_is_cut_off_is_never_read(made: tuple[Table, int, bytes], data: st.DataObject) -> None:
    table, kind, rows = made
    end = data.draw(st.integers(1, len(rows)))
    columns = list(map(large_column, table.columns))
    try:
        expected = row_decoder(table, kind, allow_differences=pytest.fail)(rows[:end], 0)
    except (ValueError, LookupError, OverflowError, RuntimeError, struct.error):
        with pytest.raises((ValueError, LookupError, OverflowError, RuntimeError, struct.error)):
            large_rows(on_disk(kind, rows[:end]), columns, 0)
    else:
        assert [bytes(row) for row in large_rows(on_disk(kind, rows[:end]), columns, 0)] == expected


@pytest.mark.parametrize("text", [b"a" * 20 + b"\xff", b"a" * 5 + b"\xe2\x82", "€".encode() * 4 + b"\xe2"])
def test_a_text_that_is_not_in_utf8_is_refused(text: bytes) -> None:
    column = large_column(Column("", 252, 4, charset="utf8mb4"))
    with pytest.raises(UnicodeDecodeError):
        large_rows(on_disk(et.WRITE_ROWS, b"\0" + sized(4, text)), [column], 0)


def test_a_table_says_how_its_columns_are_read_only_when_asked() -> None:
    assert list(TableShape("db", "t", "", {}, 1).large_columns()) == []

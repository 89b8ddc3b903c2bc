"""Generates row decoders: for a table, a function without branches per type that writes its rows as JSON text.

This is the hot path. Types, metadata, signedness and charsets are known from the table map, so each column becomes a
few lines over ``d`` (the event's bytes) and ``p`` (the offset in it) with all constants inlined: no loop over columns,
no dispatch, no value objects. Adjacent columns of fixed width are unpacked by one call, and a row without NULL, as most
are, takes one formatting. Row layout: MySQL source, class Rows_event (null bitmap, then the values that are not NULL).
The lines of one column are made by module column_code.

The first rows of a table are read column by column instead. To compile a decoder takes as long as it saves in some
hundred rows, and then it takes a kB or more of memory for each column: a leader with thousands of tables, most of them
quiet, would cost far more than its rows. A reader of a column is shared by all columns of its type in all tables. Even
where each table is forgotten before it has paid for its decoder, all take at most twice the time of the better choice.
"""

import itertools
from collections.abc import Callable, Iterator
from functools import lru_cache
from struct import Struct
from typing import Any, cast

from cdc.producer.binlog import event_types as et
from cdc.producer.binlog.events import packed_integer
from cdc.producer.decode.changes import RowDecoder
from cdc.producer.decode.column_code import UTF8, ColumnCode, column_code, require_known
from cdc.producer.decode.column_code import constants as new_constants
from cdc.producer.decode.json_differences import json_after
from cdc.producer.decode.table_map import JSON, Column, Table
from cdc.producer.large_rows.row_images import BLOB, TEXT, LargeColumn
from cdc.producer.large_rows.utf8_text import quote_long, require_utf8

__all__ = ["FIRST_ROWS", "column_reader", "large_column", "row_decoder", "row_decoders"]

ColumnReader = Callable[[bytes, int], tuple[str, int]]
FIRST_ROWS = 400  # one takes 1.7 times as long as one of the rows after them
_BLOB_TYPE = 252
_LONG_TYPES = frozenset({242, JSON, _BLOB_TYPE, 255})  # up to 4 GB, after their length
_ROW_TEXT, _UPDATE_TEXT = '{"cols":[%s]}', '{"before_cols":[%s],"after_cols":[%s]}'

Compile = Callable[[int], RowDecoder]


def row_decoder(table: Table, kind: int, *, allow_differences: Callable[[], None]) -> RowDecoder:
    """Generate the decoder of ``table``'s rows events of the type ``kind``; its columns are of known types.

    The function takes the event's bytes and the offset of the first row, and returns each row's JSON text, in UTF-8: an
    object with ``cols``, or for updates with ``before_cols`` and ``after_cols``. It raises ValueError, LookupError or
    struct.error on broken data. ``allow_differences`` is called for each row that has differences, and raises where
    they may not be applied.
    """
    constants = new_constants() | {
        "json_after": json_after, "packed_integer": packed_integer, "require_utf8": require_utf8,
    }  # fmt: skip
    codes = [column_code(column, f"x{index}", constants) for index, column in enumerate(table.columns)]
    if kind == et.PARTIAL_UPDATE_ROWS:
        row = _partial_update(table, allow_differences, codes, constants)
    elif kind == et.UPDATE_ROWS:
        row = [*_image(codes, constants, "before"), *_image(codes, constants, "after"), _UPDATE]
    else:
        row = [*_image(codes, constants, "image"), _ROW]
    body = ["def decode(d, p):", " out = []", " end = len(d)", " while p < end:", *row]
    body += [
        " if p != end:",
        "  raise ValueError('the last row ends %d bytes after the event' % (p - end))",
        " return out",
    ]
    return cast(RowDecoder, _function(body, constants))


def column_reader(column: Column) -> ColumnReader:
    """Generate a function that reads one value of ``column``, not NULL, from the event's bytes and the value's offset.

    It returns the JSON text, which is that of the table's decoder, since the lines are the same, and the offset after
    the value. It raises as such a decoder.
    """
    constants = new_constants()
    code = column_code(column, "x0", constants)
    lines = [f" {line}" for line in _straight([code], constants)]
    body = ["def decode(d, p):", *lines, f" return {code.text!r} % ({code.values},), p"]
    return cast(ColumnReader, _function(body, constants))


def _function(body: list[str], constants: dict[str, Any]) -> object:
    exec("\n".join(body), constants)
    # Not among its own globals, so that it is freed with its last use.
    return constants.pop("decode")


_APPEND = "  row = ({}).encode('latin-1')\n  row.isascii() or require_utf8(row)\n  out.append(row)"
_ROW = _APPEND.format("'{\"cols\":[' + image + ']}'")
_UPDATE = _APPEND.format("'{\"before_cols\":[' + before + '],\"after_cols\":[' + after + ']}'")


def _partial_update(
    table: Table, allow: Callable[[], None], codes: list[ColumnCode], constants: dict[str, Any]
) -> list[str]:
    """The lines for a row of a partial update. Layout: MySQL source, sql/rpl_record.cc.

    Before the after-image come the value options; where they are 1, a bitmap ``m`` follows with a bit for each JSON
    column, set where the image has the length (4 bytes) and the differences of the document instead of the document.
    """
    before, after = list(codes), list(codes)
    constants["allow"] = allow
    documents = [index for index, column in enumerate(table.columns) if column.type == JSON]
    for bit, index in enumerate(documents):
        x, old, read = f"x{index}", f"b{index}", codes[index].lines
        constants[f"name_{x}"] = table.columns[index].name
        before[index] = ColumnCode("", (*read, f"{x} = {old} = json_value({x})"), "%s", f"in_utf8({x})")
        lines = (
            f"if m & {1 << bit}:",
            " s = p + 4 + int.from_bytes(d[p:p+4], 'little')",
            f" {x} = json_after({old}, d[p+4:s], name_{x})",
            " p = s",
            "else:",
            *(f" {line}" for line in read),
            f" {x} = json_value({x})",
        )
        after[index] = ColumnCode("", lines, "%s", f"in_utf8({x})")
    width = (len(documents) + 7) // 8
    return [
        *(f"  b{index} = None" for index in documents),
        *_image(before, constants, "before"),
        "  options, p = packed_integer(d, p)",
        "  if options > 1:",
        "   raise ValueError('it has the unknown value options %d' % options)",
        "  m = 0",
        "  if options:",
        f"   m, p = int.from_bytes(d[p:p+{width}], 'little'), p + {width}",
        "   if m:",
        "    allow()",
        *_image(after, constants, "after"),
        _UPDATE,
    ]


def _image(codes: list[ColumnCode], constants: dict[str, Any], target: str) -> Iterator[str]:
    width = (len(codes) + 7) // 8
    bits = "d[p]" if width == 1 else f"int.from_bytes(d[p:p+{width}], 'little')"
    # The bits after the last column mean nothing.
    yield f"  n = {bits} & {(1 << len(codes)) - 1}"
    yield f"  p += {width}"
    yield "  if not n:"
    yield from (f"   {line}" for line in _straight(codes, constants))
    values = "".join(f"{code.values}, " for code in codes)
    yield f"   {target} = {','.join(code.text for code in codes)!r} % ({values})"
    yield "  else:"
    for index, code in enumerate(codes):
        yield f"   if n & {1 << index}:"
        yield f"    t{index} = '\"Null\"'"
        yield "   else:"
        yield from (f"    {line}" for line in _straight([code], constants, first=index))
        yield f"    t{index} = {code.text!r} % ({code.values},)"
    texts = ", ".join(f"t{index}" for index in range(len(codes)))
    yield f"   {target} = ','.join(({texts},))"


def _straight(codes: list[ColumnCode], constants: dict[str, Any], *, first: int = 0) -> Iterator[str]:
    """The lines that read ``codes`` in turn, none of them NULL; ``first`` is the number of the first."""
    numbered = enumerate(codes, first)
    for fixed, group in itertools.groupby(numbered, key=lambda item: bool(item[1].packed)):
        columns = list(group)
        if fixed:
            run = Struct("<" + "".join(code.packed for _, code in columns))
            name = f"run_{run.format.strip('<')}"
            constants[name] = run.unpack_from
            names = ", ".join(f"x{index}" for index, _ in columns)
            yield f"{names}, = {name}(d, p)"
            yield f"p += {run.size}"
        for _, code in columns:
            yield from code.lines


def row_decoders(table: Table, *, compile_for: Compile) -> dict[int, RowDecoder]:
    """The first decoders of ``table``'s rows events, by the type of the event.

    They do what those of ``row_decoder`` do. After ``FIRST_ROWS`` rows, each calls ``compile_for(kind)`` for each
    event, and leaves it to the decoder that this returns. Raises PromiseError for a column that can't be replicated
    exactly.
    """
    require_known(table)
    # All of a column but its name, on which no value depends.
    readers = tuple([_reader(column[1:]) for column in table.columns])
    rows = _FirstRows(readers, et.WRITE_ROWS, FIRST_ROWS, compile_for)
    return {
        et.WRITE_ROWS: rows,
        et.DELETE_ROWS: rows,
        et.UPDATE_ROWS: _FirstRows(readers, et.UPDATE_ROWS, FIRST_ROWS, compile_for),
        # Few leaders log them, and there is no other way to read them.
        et.PARTIAL_UPDATE_ROWS: _FirstRows(readers, et.PARTIAL_UPDATE_ROWS, 0, compile_for),
    }


def large_column(column: Column) -> LargeColumn:
    """How ``column`` is read from an event on disk."""
    read = _reader(column[1:])
    if column.type not in _LONG_TYPES:
        return LargeColumn(read)
    is_blob = column.type == _BLOB_TYPE
    tag = BLOB if is_blob and column.charset == "binary" else TEXT if is_blob and column.charset in UTF8 else ""
    return LargeColumn(read, column.meta, tag, quote_long)


@lru_cache(maxsize=2_000)  # one takes some 2 kB
def _reader(described: tuple[Any, ...]) -> ColumnReader:
    return column_reader(Column("", *described))


class _FirstRows:
    """Decodes at least ``left`` rows of a table; the event with the last of them still belongs to them."""

    __slots__ = ("_compile_for", "_kind", "_left", "_readers")

    def __init__(self, readers: tuple[ColumnReader, ...], kind: int, left: int, compile_for: Compile) -> None:
        self._readers = readers
        self._kind = kind
        self._left = left
        self._compile_for = compile_for

    def __call__(self, data: bytes, at: int) -> list[bytes]:
        if self._left <= 0:
            return self._compile_for(self._kind)(data, at)
        rows, end = [], len(data)
        is_update = self._kind in et.UPDATES
        while at < end:
            image, at = self._image(data, at)
            if is_update:
                after, at = self._image(data, at)
                row = (_UPDATE_TEXT % (image, after)).encode("latin-1")
            else:
                row = (_ROW_TEXT % image).encode("latin-1")
            if not row.isascii():
                require_utf8(row)
            rows.append(row)
        if at != end:
            raise ValueError(f"the last row ends {at - end} bytes after the event")
        self._left -= len(rows)
        return rows

    def _image(self, data: bytes, at: int) -> tuple[str, int]:
        width = (len(self._readers) + 7) // 8
        nulls = int.from_bytes(data[at : at + width], "little")
        at += width
        texts = []
        for read in self._readers:
            if nulls & 1:
                texts.append('"Null"')
            else:
                text, at = read(data, at)
                texts.append(text)
            nulls >>= 1
        return ",".join(texts), at

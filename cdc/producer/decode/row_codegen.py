"""Generates a row decoder for each table map: a function without branches per type that writes rows as JSON text.

This is the hot path. Types, metadata, signedness and charsets are known when a table map arrives, so each column
becomes a few lines over ``d`` (the event's bytes) and ``p`` (the offset in it) with all constants inlined: no loop over
columns, no dispatch, no value objects. Adjacent columns of fixed width are unpacked by one call, and a row without
NULL, as most are, takes one formatting. Row layout: MySQL source, class Rows_event (null bitmap, then the
values that are not NULL). The lines of one column are made by module column_code.
"""

import functools
import itertools
from collections.abc import Callable, Iterator
from struct import Struct
from typing import Any, cast

from cdc.producer.binlog import event_types as et
from cdc.producer.binlog.events import packed_integer
from cdc.producer.decode.changes import RowDecoder
from cdc.producer.decode.column_code import ColumnCode, column_code
from cdc.producer.decode.column_code import constants as new_constants
from cdc.producer.decode.json_differences import json_after
from cdc.producer.decode.table_map import JSON, Table

__all__ = ["row_decoders"]


def row_decoders(table: Table, *, allow_differences: Callable[[], None]) -> dict[int, RowDecoder]:
    """Generate the decoders of ``table``'s rows events, by the type of the event.

    Raises PromiseError for a column that can't be replicated exactly. The functions take the event's bytes and the
    offset of the first row, and return each row's JSON text: an object with ``cols``, or for updates with
    ``before_cols`` and ``after_cols``. They raise ValueError, LookupError or struct.error on broken data.
    ``allow_differences`` is called for each row that has differences, and raises where they may not be applied.
    """
    rows = _decoder(table, lambda codes, constants: [*_image(codes, constants, "image"), _ROW])
    updates = _decoder(
        table,
        lambda codes, constants: [*_image(codes, constants, "before"), *_image(codes, constants, "after"), _UPDATE],
    )
    # Few leaders log partial updates, and to compile a decoder costs as much as to decode a hundred rows.
    partial = functools.cache(lambda: _decoder(table, functools.partial(_partial_update, table, allow_differences)))
    return {
        et.WRITE_ROWS: rows,
        et.DELETE_ROWS: rows,
        et.UPDATE_ROWS: updates,
        et.PARTIAL_UPDATE_ROWS: lambda data, at: partial()(data, at),
    }


_ROW = "  out.append('{\"cols\":[' + image + ']}')"
_UPDATE = "  out.append('{\"before_cols\":[' + before + '],\"after_cols\":[' + after + ']}')"


def _decoder(table: Table, row: Callable[[list[ColumnCode], dict[str, Any]], list[str]]) -> RowDecoder:
    """The decoder that executes the lines ``row(codes, constants)`` for each row."""
    constants = new_constants() | {"json_after": json_after, "packed_integer": packed_integer}
    codes = [column_code(column, f"x{index}", constants, table) for index, column in enumerate(table.columns)]
    body = ["def decode(d, p):", " out = []", " end = len(d)", " while p < end:", *row(codes, constants)]
    body += [
        " if p != end:",
        "  raise ValueError('the last row ends %d bytes after the event' % (p - end))",
        " return out",
    ]
    exec("\n".join(body), constants)
    return cast(RowDecoder, constants["decode"])


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
        before[index] = ColumnCode("", (*read, f"{x} = {old} = json_value({x})"), "%s", x)
        lines = (
            f"if m & {1 << bit}:",
            " s = p + 4 + int.from_bytes(d[p:p+4], 'little')",
            f" {x} = json_after({old}, d[p+4:s], name_{x})",
            " p = s",
            "else:",
            *(f" {line}" for line in read),
            f" {x} = json_value({x})",
        )
        after[index] = ColumnCode("", lines, "%s", x)
    width = (len(documents) + 7) // 8
    return [
        *(f"  b{index} = None" for index in documents),
        *_image(before, constants, "before"),
        "  options, p = packed_integer(d, p)",
        "  if options > 1:",
        "   raise ValueError('it has the unknown value options %d' % options)",
        "  m = 0",
        "  if options:",
        f"   m = int.from_bytes(d[p:p+{width}], 'little')",
        f"   p += {width}",
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

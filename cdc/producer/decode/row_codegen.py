"""Generates a row decoder for each table map: a function without branches per type that writes rows as JSON text.

This is the hot path. Types, metadata, signedness and charsets are known when a table map arrives, so each column
becomes a few lines over ``d`` (the event's bytes) and ``p`` (the offset in it) with all constants inlined: no loop over
columns, no dispatch, no value objects. Adjacent columns of fixed width are unpacked by one call, and a row without
NULL, as most are, takes one formatting. Row layout: MySQL source, class Rows_event (null bitmap, then the
values that are not NULL). Value layouts: MySQL source, libs/mysql/binlog/event/binary_log_funcs and strings/decimal.
"""

import itertools
from binascii import b2a_base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from json.encoder import encode_basestring
from struct import Struct
from typing import Any, cast

from cdc.errors import PromiseError
from cdc.model.charset import text_decoder
from cdc.producer.decode.changes import RowDecoder
from cdc.producer.decode.decimals import decimal_reader
from cdc.producer.decode.json_binary import json_value
from cdc.producer.decode.table_map import ENUM, SET, Column, Table
from cdc.producer.decode.temporal import CLOCKS, DATES, DAYS

__all__ = ["row_decoder"]


@dataclass(frozen=True, slots=True)
class _Code:
    """How a column's value ``x`` is read and formatted.

    ``packed`` is its struct format, empty where its width varies. ``lines`` then read it and advance ``p``; otherwise
    they convert the unpacked value. ``text`` is the JSON text, a %-format of ``values``.
    """

    packed: str
    lines: tuple[str, ...]
    text: str
    values: str


def row_decoder(table: Table, *, update: bool) -> RowDecoder:
    """Generate the decoder of ``table``'s rows events.

    Raises PromiseError for a column that can't be replicated exactly. The function takes the event's bytes and the
    offset of the first row, and returns each row's JSON text: an object with ``cols``, or for updates with
    ``before_cols`` and ``after_cols``. It raises ValueError, LookupError or struct.error on broken data.
    """
    constants: dict[str, Any] = {
        "b64": b2a_base64, "quote": encode_basestring, "json_value": json_value,
        "clocks": CLOCKS, "dates": DATES, "days": DAYS,
    }  # fmt: skip
    codes = [_column(column, f"x{index}", constants, table) for index, column in enumerate(table.columns)]
    body = ["def decode(d, p):", " out = []", " end = len(d)", " while p < end:"]
    if update:
        body += [*_image(codes, constants, "before"), *_image(codes, constants, "after")]
        body.append("  out.append('{\"before_cols\":[' + before + '],\"after_cols\":[' + after + ']}')")
    else:
        body += _image(codes, constants, "image")
        body.append("  out.append('{\"cols\":[' + image + ']}')")
    body += [
        " if p != end:",
        "  raise ValueError('the last row ends %d bytes after the event' % (p - end))",
        " return out",
    ]
    exec("\n".join(body), constants)
    return cast(RowDecoder, constants["decode"])


def _image(codes: list[_Code], constants: dict[str, Any], target: str) -> Iterator[str]:
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


def _straight(codes: list[_Code], constants: dict[str, Any], *, first: int = 0) -> Iterator[str]:
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


def _column(column: Column, x: str, constants: dict[str, Any], table: Table) -> _Code:
    if column.type in _INTEGERS:
        return _integer(column, x)
    if column.type in (ENUM, SET):
        return _members(column, x, constants)
    if column.type in _TYPES:
        return _TYPES[column.type](column, x, constants)
    raise PromiseError(
        f"column {column.name} has a type that is not replicated yet: {_REFUSED.get(column.type, column.type)}",
        where=f"table {table.database}.{table.name}",
        hint="leave the table out with filters.exclude_tables",
    )


_REFUSED = {
    7: "TIMESTAMP of MySQL before 5.6", 11: "TIME of MySQL before 5.6", 12: "DATETIME of MySQL before 5.6",
}  # fmt: skip
_INTEGERS = {1: "b", 2: "h", 9: "3s", 3: "i", 8: "q"}


def _integer(column: Column, x: str) -> _Code:
    text = '{"UnsignedInteger":%d}' if column.unsigned else '{"SignedInteger":%d}'
    packed = _INTEGERS[column.type]
    if packed == "3s":
        return _Code(packed, (f"{x} = int.from_bytes({x}, 'little', signed={not column.unsigned})",), text, x)
    return _Code(packed.upper() if column.unsigned else packed, (), text, x)


def _float(column: Column, x: str, constants: dict[str, Any]) -> _Code:
    return _Code("d", (), '{"Double":%r}', x) if column.type == 5 else _Code("f", (), '{"Float":%r}', x)


def _decimal(column: Column, x: str, constants: dict[str, Any]) -> _Code:
    precision, scale = column.meta >> 8, column.meta & 0xFF
    width, convert = decimal_reader(precision, scale)
    constants[f"decimal_{precision}_{scale}"] = convert
    return _Code(f"{width}s", (), '{"Decimal":"%s"}', f"decimal_{precision}_{scale}({x})")


def _sized(column: Column, x: str, prefix: int) -> tuple[str, ...]:
    length = "d[p]" if prefix == 1 else f"int.from_bytes(d[p:p+{prefix}], 'little')"
    # A slice past the end is shorter without an error: the end is checked once, after the last row.
    return f"s = p + {prefix} + {length}", f"{x} = d[p+{prefix}:s]", "p = s"


def _text(column: Column, x: str, prefix: int, constants: dict[str, Any]) -> _Code:
    """A character or binary column with its length in ``prefix`` bytes before it."""
    lines = _sized(column, x, prefix)
    if column.charset == "binary":
        # The server strips trailing zero bytes of BINARY(n) in the log; the stored value has n bytes.
        padded = f"{x}.ljust({column.meta}, b'\\0')" if column.type == 254 else x
        return _Code("", lines, '{"Blob":"%s"}', f"b64({padded}, newline=False).decode()")
    if column.charset in ("utf8mb4", "utf8mb3"):
        return _Code("", lines, '{"String":%s}', f"quote({x}.decode())")
    decode = text_decoder(column.charset)
    if decode is None:
        text = f'{{"Text":{{"charset":"{column.charset}","base64":"%s"}}}}'
        return _Code("", lines, text, f"b64({x}, newline=False).decode()")
    constants[f"text_{column.charset}"] = decode
    return _Code("", lines, '{"String":%s}', f"quote(text_{column.charset}({x}))")


def _string(column: Column, x: str, constants: dict[str, Any]) -> _Code:
    return _text(column, x, 2 if column.meta > 255 else 1, constants)


def _blob(column: Column, x: str, constants: dict[str, Any]) -> _Code:
    return _text(column, x, column.meta, constants)


def _json(column: Column, x: str, constants: dict[str, Any]) -> _Code:
    return _Code("", _sized(column, x, column.meta), "%s", f"json_value({x})")


def _bytes(tag: str) -> Callable[[Column, str, dict[str, Any]], _Code]:
    """A type whose stored bytes are sent unchanged."""

    def code(column: Column, x: str, constants: dict[str, Any]) -> _Code:
        text = f'{{"{tag}":"%s"}}'
        return _Code("", _sized(column, x, column.meta), text, f"b64({x}, newline=False).decode()")

    return code


def _bit(column: Column, x: str, constants: dict[str, Any]) -> _Code:
    width = (column.meta >> 8) + (1 if column.meta & 0xFF else 0)
    return _Code(f"{width}s", (), '{"Bit":%d}', f"int.from_bytes({x}, 'big')")


def _year(column: Column, x: str, constants: dict[str, Any]) -> _Code:
    return _Code("B", (), '{"Year":%d}', f"{x} + 1900 if {x} else 0")


def _date(column: Column, x: str, constants: dict[str, Any]) -> _Code:
    return _Code("3s", (), "%s", f"dates[int.from_bytes({x}, 'little')]")


def _fraction(column: Column) -> tuple[int, int]:
    """Bytes of the fraction of a second, and microseconds per unit of it."""
    width = (column.meta + 1) // 2
    return width, 10 ** (6 - 2 * width)


def _time(column: Column, x: str, constants: dict[str, Any]) -> _Code:
    width, unit = _fraction(column)
    lines = (
        f"{x} = int.from_bytes({x}, 'big') - {0x800000 << 8 * width}",
        f"s{x} = 'true' if {x} < 0 else 'false'",
        f"{x} = abs({x}); f{x} = ({x} & {(1 << 8 * width) - 1}) * {unit}; {x} >>= {8 * width}",
    )
    text = '{"Time":{"negative":%s,"hour":%d,"minute":%d,"second":%d,"subsecond":%d}}'
    return _Code(f"{3 + width}s", lines, text, f"s{x}, {x} >> 12 & 1023, {x} >> 6 & 63, {x} & 63, f{x}")


def _datetime(column: Column, x: str, constants: dict[str, Any]) -> _Code:
    width, unit = _fraction(column)
    lines = (f"{x} = int.from_bytes({x}, 'big') - {0x8000000000 << 8 * width}",)
    values = (
        f"days[{x} >> {17 + 8 * width}], clocks[{x} >> {8 * width} & 0x1FFFF], ({x} & {(1 << 8 * width) - 1}) * {unit}"
    )
    return _Code(f"{5 + width}s", lines, '{"DateTime":{%s,%s,"subsecond":%d}}', values)


def _timestamp(column: Column, x: str, constants: dict[str, Any]) -> _Code:
    width, unit = _fraction(column)
    lines = (f"{x} = int.from_bytes({x}, 'big')",)
    values = f"{x} >> {8 * width}, ({x} & {(1 << 8 * width) - 1}) * {unit}"
    return _Code(f"{4 + width}s", lines, '{"Timestamp":{"unix_time":%d,"subsecond":%d}}', values)


def _members(column: Column, x: str, constants: dict[str, Any]) -> _Code:
    """ENUM by a table of prepared JSON texts; SET by joining those of its bits."""
    packed, lines = f"{column.meta}s", (f"{x} = int.from_bytes({x}, 'little')",)
    decode = text_decoder(column.charset)
    if decode is None or (column.type == SET and b"" in column.members):
        # As text, a SET with only the member '' would look like the empty set.
        return _Code(packed, lines, '{"Enum":%d}' if column.type == ENUM else '{"Set":%d}', x)
    texts = [encode_basestring(decode(member)) for member in column.members]
    if column.type == ENUM:
        constants[f"enum_{x}"] = ["0", *texts]
        return _Code(packed, lines, '{"Enum":%s}', f"enum_{x}[{x}]")
    constants[f"set_{x}"] = [(1 << bit, text) for bit, text in enumerate(texts)]
    return _Code(packed, lines, '{"Set":[%s]}', f"','.join([t for b, t in set_{x} if {x} & b])")


_TYPES: dict[int, Callable[[Column, str, dict[str, Any]], _Code]] = {
    4: _float, 5: _float, 10: _date, 13: _year, 15: _string, 16: _bit, 17: _timestamp, 18: _datetime, 19: _time,
    242: _bytes("Vector"), 245: _json, 246: _decimal, 252: _blob, 253: _string, 254: _string, 255: _bytes("Geometry"),
}  # fmt: skip

"""Row decoders, generated: one function a table map, straight-line code that writes each row's JSON text.

This is the hot path. Types, metadata, signedness and charsets are known when a table map arrives, so each column
becomes two or three lines over ``d`` (the event's bytes) and ``p`` (the place in it), with every constant folded in; no
loop over columns, no dispatch, no value objects. Row layout: MySQL source, class Rows_event (null bitmap, then the
values that are not NULL). Value layouts: MySQL source, libs/mysql/binlog/event/binary_log_funcs and strings/decimal.
"""

from binascii import b2a_base64
from collections.abc import Callable
from json.encoder import encode_basestring
from struct import Struct
from typing import Any, cast

from cdc.codec import text_decoder
from cdc.errors import PromiseError
from cdc.producer.changes import RowDecoder
from cdc.producer.decimals import decimal_reader
from cdc.producer.json_binary import json_value
from cdc.producer.table_map import ENUM, SET, Column, Table

__all__ = ["row_decoder"]

_INTEGER_WIDTHS = {1: 1, 2: 2, 9: 3, 3: 4, 8: 8}

_Code = tuple[list[str], str]  # lines that read the value and move p, and the expression of its JSON text


def row_decoder(table: Table, *, update: bool) -> RowDecoder:
    """Generate the decoder of ``table``'s rows events. Raises PromiseError for a column it can't carry exactly.

    The function takes the event's bytes and the offset of the first row, and returns each row's JSON text: an object
    with ``cols``, or for updates with ``before_cols`` and ``after_cols``. It raises ValueError, IndexError or
    struct.error on broken data.
    """
    constants: dict[str, Any] = {"b64": b2a_base64, "quote": encode_basestring, "json_value": json_value}
    body = ["def decode(d, p):", " out = []", " end = len(d)", " while p < end:"]
    if update:
        body += _image(table, constants, "before")
        body += _image(table, constants, "after")
        body.append("  out.append('{\"before_cols\":[' + before + '],\"after_cols\":[' + after + ']}')")
    else:
        body += _image(table, constants, "image")
        body.append("  out.append('{\"cols\":[' + image + ']}')")
    body += [
        " if p != end:",
        "  raise ValueError('the last row ends %d bytes after the event' % (p - end))",
        " return out",
    ]
    exec("\n".join(body), constants)
    return cast(RowDecoder, constants["decode"])


def _image(table: Table, constants: dict[str, Any], target: str) -> list[str]:
    width = (len(table.columns) + 7) // 8
    lines = [f"  n = int.from_bytes(d[p:p+{width}], 'little')", f"  p += {width}"]
    for index, column in enumerate(table.columns):
        code, expression = _column(column, index, constants, table)
        lines += [f"  if n & {1 << index}:", f"   v{index} = '\"Null\"'", "  else:"]
        lines += [f"   {line}" for line in code]
        lines.append(f"   v{index} = {expression}")
    images = ", ".join(f"v{index}" for index in range(len(table.columns)))
    lines.append(f"  {target} = ','.join(({images},))")
    return lines


def _column(column: Column, index: int, constants: dict[str, Any], table: Table) -> _Code:
    if column.type in _INTEGER_WIDTHS:
        return _integer(column)
    if column.type in (ENUM, SET):
        return _members(column, index, constants)
    if column.type in _TYPES:
        return _TYPES[column.type](column, index, constants)
    raise PromiseError(
        f"column {column.name} has a type that is not replicated yet: {_REFUSED.get(column.type, column.type)}",
        where=f"table {table.database}.{table.name}",
        hint="leave the table out with filters.exclude_tables",
    )


_REFUSED = {
    7: "TIMESTAMP of MySQL before 5.6", 11: "TIME of MySQL before 5.6", 12: "DATETIME of MySQL before 5.6",
}  # fmt: skip


def _integer(column: Column) -> _Code:
    width = _INTEGER_WIDTHS[column.type]
    tag = "UnsignedInteger" if column.unsigned else "SignedInteger"
    read = "d[p]" if width == 1 and column.unsigned else f"int.from_bytes(d[p:p+{width}], 'little'"
    if not read.endswith("]"):
        read += ")" if column.unsigned else ", signed=True)"
    # A slice past the end would read a short number in silence, so the row's end is checked once, after the last row.
    return [f"x = {read}", f"p += {width}"], f"'{{\"{tag}\":%d}}' % x"


def _float(column: Column, index: int, constants: dict[str, Any]) -> _Code:
    double = column.type == 5
    constants["double" if double else "float"] = Struct("<d" if double else "<f").unpack_from
    name, tag, width = ("double", "Double", 8) if double else ("float", "Float", 4)
    return [f"x, = {name}(d, p)", f"p += {width}"], f"'{{\"{tag}\":%r}}' % x"


def _decimal(column: Column, index: int, constants: dict[str, Any]) -> _Code:
    precision, scale = column.meta >> 8, column.meta & 0xFF
    width, convert = decimal_reader(precision, scale)
    constants[f"decimal{index}"] = convert
    return [f"x = decimal{index}(d[p:p+{width}])", f"p += {width}"], "'{\"Decimal\":\"' + x + '\"}'"


def _string_value(column: Column, constants: dict[str, Any]) -> str:
    """The JSON text of the bytes ``x`` of a character or binary column."""
    if column.charset == "binary":
        # The server strips trailing zero bytes of BINARY(n) in the log; the stored value has n bytes.
        padded = f"x.ljust({column.meta}, b'\\0')" if column.type == 254 else "x"
        return f"'{{\"Blob\":\"' + b64({padded}, newline=False).decode() + '\"}}'"
    decode = text_decoder(column.charset)
    if decode is None:
        head = f'{{"Text":{{"charset":"{column.charset}","base64":"'
        return f"'{head}' + b64(x, newline=False).decode() + '\"}}}}'"
    constants[f"text_{column.charset}"] = decode
    return f"'{{\"String\":' + quote(text_{column.charset}(x)) + '}}'"


def _sized(prefix: int) -> list[str]:
    read = "s = d[p]" if prefix == 1 else f"s = int.from_bytes(d[p:p+{prefix}], 'little')"
    # The end is checked by the caller's p != end; a slice past the end would otherwise be short in silence.
    return [read, f"x = d[p+{prefix}:p+{prefix}+s]", f"p += {prefix} + s"]


def _string(column: Column, index: int, constants: dict[str, Any]) -> _Code:
    return _sized(2 if column.meta > 255 else 1), _string_value(column, constants)


def _blob(column: Column, index: int, constants: dict[str, Any]) -> _Code:
    return _sized(column.meta), _string_value(column, constants)


def _json(column: Column, index: int, constants: dict[str, Any]) -> _Code:
    return _sized(column.meta), "json_value(x)"


def _bytes(tag: str) -> Callable[[Column, int, dict[str, Any]], _Code]:
    """A type of which the stored bytes travel as they are."""

    def code(column: Column, index: int, constants: dict[str, Any]) -> _Code:
        return _sized(column.meta), f"'{{\"{tag}\":\"' + b64(x, newline=False).decode() + '\"}}'"

    return code


def _bit(column: Column, index: int, constants: dict[str, Any]) -> _Code:
    width = (column.meta >> 8) + (1 if column.meta & 0xFF else 0)
    return [f"x = int.from_bytes(d[p:p+{width}], 'big')", f"p += {width}"], "'{\"Bit\":%d}' % x"


def _year(column: Column, index: int, constants: dict[str, Any]) -> _Code:
    return ["x = d[p]", "p += 1"], "'{\"Year\":%d}' % (x + 1900 if x else 0)"


def _date(column: Column, index: int, constants: dict[str, Any]) -> _Code:
    lines = ["x = int.from_bytes(d[p:p+3], 'little')", "p += 3"]
    return lines, '\'{"Date":{"year":%d,"month":%d,"day":%d}}\' % (x >> 9, x >> 5 & 15, x & 31)'


def _fraction(column: Column) -> tuple[int, int]:
    """Bytes of the fraction for this many digits, and microseconds in one of its units."""
    width = (column.meta + 1) // 2
    return width, 10 ** (6 - 2 * width)


def _time(column: Column, index: int, constants: dict[str, Any]) -> _Code:
    width, unit = _fraction(column)
    lines = [
        f"x = int.from_bytes(d[p:p+{3 + width}], 'big') - {0x800000 << 8 * width}",
        f"p += {3 + width}",
        "s = 'true' if x < 0 else 'false'",
        f"x = abs(x); f = (x & {(1 << 8 * width) - 1}) * {unit}; x >>= {8 * width}",
    ]
    head = '{"Time":{"negative":%s,"hour":%d,"minute":%d,"second":%d,"subsecond":%d}}'
    return lines, f"'{head}' % (s, x >> 12 & 1023, x >> 6 & 63, x & 63, f)"


def _datetime(column: Column, index: int, constants: dict[str, Any]) -> _Code:
    width, unit = _fraction(column)
    lines = [
        f"x = int.from_bytes(d[p:p+{5 + width}], 'big') - {0x8000000000 << 8 * width}",
        f"p += {5 + width}",
        f"f = (x & {(1 << 8 * width) - 1}) * {unit}; x >>= {8 * width}; m = x >> 22",
    ]
    head = '{"DateTime":{"year":%d,"month":%d,"day":%d,"hour":%d,"minute":%d,"second":%d,"subsecond":%d}}'
    return lines, f"'{head}' % (m // 13, m % 13, x >> 17 & 31, x >> 12 & 31, x >> 6 & 63, x & 63, f)"


def _timestamp(column: Column, index: int, constants: dict[str, Any]) -> _Code:
    width, unit = _fraction(column)
    lines = [
        "x = int.from_bytes(d[p:p+4], 'big')",
        f"f = int.from_bytes(d[p+4:p+{4 + width}], 'big') * {unit}",
        f"p += {4 + width}",
    ]
    return lines, '\'{"Timestamp":{"unix_time":%d,"subsecond":%d}}\' % (x, f)'


def _members(column: Column, index: int, constants: dict[str, Any]) -> _Code:
    """ENUM by a table of ready JSON texts; SET by joining those of its bits."""
    width = column.meta
    lines = [f"x = int.from_bytes(d[p:p+{width}], 'little')", f"p += {width}"]
    decode = text_decoder(column.charset)
    tag = "Enum" if column.type == ENUM else "Set"
    if decode is None or (column.type == SET and b"" in column.members):
        # As text, a SET of the member '' alone would read like the empty set.
        return lines, f"'{{\"{tag}\":%d}}' % x"
    texts = [encode_basestring(decode(member)) for member in column.members]
    if column.type == ENUM:
        constants[f"enum{index}"] = ['{"Enum":0}', *(f'{{"Enum":{text}}}' for text in texts)]
        return lines, f"enum{index}[x]"
    constants[f"set{index}"] = [(1 << bit, text) for bit, text in enumerate(texts)]
    return lines, f"'{{\"Set\":[' + ','.join([t for b, t in set{index} if x & b]) + ']}}'"


_TYPES: dict[int, Callable[[Column, int, dict[str, Any]], _Code]] = {
    4: _float, 5: _float, 10: _date, 13: _year, 15: _string, 16: _bit, 17: _timestamp, 18: _datetime, 19: _time,
    242: _bytes("Vector"), 245: _json, 246: _decimal, 252: _blob, 253: _string, 254: _string, 255: _bytes("Geometry"),
}  # fmt: skip

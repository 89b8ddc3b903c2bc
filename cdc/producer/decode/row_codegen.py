"""Generates row decoders: for a table, a function without branches per type that writes its rows as JSON text.

This is the hot path. Types, metadata, signedness and charsets are known from the table map, so each column becomes a
few lines over ``d`` (the event's bytes) and ``p`` (the offset in it) with all constants inlined: no loop over columns,
no dispatch, no value objects. Adjacent columns of fixed width are unpacked by one call, and a row without NULL (most
rows) is formatted by one call. Row layout: MySQL source, class Rows_event (null bitmap, then the values that are not
NULL). Value layouts: MySQL source, libs/mysql/binlog/event/binary_log_funcs and strings/decimal.

The first rows of a table are read column by column instead. Compiling a decoder takes as long as the decoder saves in
some hundred rows. A compiled decoder also takes a kB or more of memory for each column. For a leader with thousands of
tables, most of them idle, the decoders would cost far more than the rows. A reader of a column is shared by all columns
of its type in all tables. Even if each table is dropped from the cache before its decoder has paid off, the total time
is at most twice the time without decoders.

The code keeps the JSON text, which is in UTF-8, undecoded in a str: each character stands for one byte, and its code is
the byte's value. Nearly all text arrives and leaves in UTF-8, and decoding and encoding it would take several times as
long as all other work on a long text. Code that encodes such a str as latin-1 must check whether the result is UTF-8
(``large_rows.require_utf8``).
"""

import itertools
from binascii import b2a_base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from json.encoder import encode_basestring
from struct import Struct
from typing import Any, TypeVar, cast

from cdc.config.filters import NULL, Mask
from cdc.errors import PromiseError
from cdc.model.charset import member_texts, text_decoder
from cdc.producer.binlog import event_types as et
from cdc.producer.binlog.events import packed_integer
from cdc.producer.decode.changes import RowDecoder
from cdc.producer.decode.json_binary import decimal_reader, json_value
from cdc.producer.decode.json_differences import json_after
from cdc.producer.decode.mariadb_values import inet4_text, inet6_text, inflated, uuid_text
from cdc.producer.decode.table_map import (
    BLOB_COMPRESSED,
    ENUM,
    INET4,
    INET6,
    JSON,
    SET,
    UUID,
    VARCHAR_COMPRESSED,
    Column,
    Table,
    column_type,
)
from cdc.producer.large_rows import BLOB, TEXT, LargeColumn, quote_long, require_utf8
from cdc.sql.column_types import read_type

__all__ = [
    "FIRST_ROWS",
    "UTF8",
    "ColumnCode",
    "KeptTexts",
    "column_code",
    "column_reader",
    "large_column",
    "not_ascii",
    "require_known",
    "row_decoder",
    "row_decoders",
    "shared_constants",
]

UTF8 = ("utf8mb4", "utf8mb3")


@dataclass(frozen=True, slots=True)
class ColumnCode:
    """The generated code that reads and formats the value ``x`` of a column.

    ``packed`` is the value's struct format, empty if its width varies. Without a format, ``lines`` read the value and
    advance ``p``; with a format, they convert the unpacked value. ``text`` is the format of the JSON
    text for the operator ``%``, and ``values`` are the expressions that it formats. A column that is left out has no
    ``text``.
    """

    packed: str
    lines: tuple[str, ...]
    text: str
    values: str


def shared_constants() -> dict[str, Any]:
    """Returns a new namespace with the names that the generated lines use."""
    return dict(_CONSTANTS)


def require_known(table: Table) -> None:
    """Raises PromiseError if a column has a type that can't be replicated exactly."""
    for column in table.columns:
        if column.type not in _INTEGERS and column.type not in (ENUM, SET) and column.type not in _TYPES:
            raise PromiseError(
                f"column {column.name} has a type that is not replicated yet: {_REFUSED.get(column.type, column.type)}",
                code="CDC-EVENT-TYPE",
                where=f"table {table.database}.{table.name}",
                hint="leave the table out with filters.exclude_tables",
            )


def column_code(column: Column, x: str, constants: dict[str, Any]) -> ColumnCode:
    """Generates the code that reads a value of ``column`` (of a known type) into the variable ``x`` and formats it;
    adds the names that the code needs to ``constants``.

    The code does not depend on the column's name, so that columns may share it.
    """
    if column.type in _INTEGERS:
        code = _integer(column, x)
    elif column.type in (ENUM, SET):
        code = _members(column, x, constants)
    else:
        code = _TYPES[column.type](column, x, constants)
    return code if column.mask is None else _masked(code, column, column.mask, x, constants)


def _masked(code: ColumnCode, column: Column, mask: Mask, x: str, constants: dict[str, Any]) -> ColumnCode:
    """Generates the code of a masked column from the ``code`` that would show its values."""
    if mask.is_gone:
        return ColumnCode(code.packed, code.lines, "", "")
    if mask.mode == NULL:
        return ColumnCode(code.packed, code.lines, "%s", "'\"Null\"'")
    known = read_type(column_type(column))
    size = known.numbers[0] if known.numbers else None
    constants[f"masked_{x}"] = lambda text: mask.hashed(text.encode("latin-1"), known.name, size)
    return ColumnCode(code.packed, code.lines, "%s", f"masked_{x}({code.text!r} % ({code.values},))")


_REFUSED = {
    7: "TIMESTAMP of MySQL before 5.6", 11: "TIME of MySQL before 5.6", 12: "DATETIME of MySQL before 5.6",
}  # fmt: skip
_INTEGERS = {1: "b", 2: "h", 9: "3s", 3: "i", 8: "q"}


def _integer(column: Column, x: str) -> ColumnCode:
    text = '{"UnsignedInteger":%d}' if column.unsigned else '{"SignedInteger":%d}'
    packed = _INTEGERS[column.type]
    if packed == "3s":
        return ColumnCode(packed, (f"{x} = int.from_bytes({x}, 'little', signed={not column.unsigned})",), text, x)
    return ColumnCode(packed.upper() if column.unsigned else packed, (), text, x)


def _float(column: Column, x: str, constants: dict[str, Any]) -> ColumnCode:
    return ColumnCode("d", (), '{"Double":%r}', x) if column.type == 5 else ColumnCode("f", (), '{"Float":%r}', x)


def _decimal(column: Column, x: str, constants: dict[str, Any]) -> ColumnCode:
    precision, scale = column.meta >> 8, column.meta & 0xFF
    width, convert = decimal_reader(precision, scale)
    constants[f"decimal_{precision}_{scale}"] = convert
    return ColumnCode(f"{width}s", (), '{"Decimal":"%s"}', f"decimal_{precision}_{scale}({x})")


def _sized(column: Column, x: str, prefix: int) -> tuple[str, ...]:
    length = "d[p]" if prefix == 1 else f"int.from_bytes(d[p:p+{prefix}], 'little')"
    # A slice beyond the end of ``d`` is shorter and raises no error: the generated code checks the end once, after the
    # last row.
    return f"s = p + {prefix} + {length}", f"{x} = d[p+{prefix}:s]", "p = s"


def _text(column: Column, x: str, prefix: int, constants: dict[str, Any]) -> ColumnCode:
    """Generates the code of a character or binary column: the length of a value, in ``prefix`` bytes, precedes the
    value.
    """
    lines = _sized(column, x, prefix)
    if column.charset == "binary":
        if prefix > 2:
            # A large value is not copied before it is encoded.
            lines = (lines[0], f"{x} = d[p+{prefix}:s] if s - p < {_LARGE} else view(d)[p+{prefix}:s]", lines[2])
        # The server strips trailing zero bytes of BINARY(n) in the log; the stored value has n bytes.
        padded = f"{x}.ljust({column.meta}, b'\\0')" if column.type == 254 else x
        return ColumnCode("", lines, '{"Blob":"%s"}', f"b64({padded}, newline=False).decode()")
    if column.charset in UTF8:
        short = f"quote({x}.decode('latin-1'))"
        text = short if prefix == 1 else f"quote_long({x}) if {_LONG} < len({x}) < {_LARGE} else {short}"
        return ColumnCode("", lines, '{"String":%s}', text)
    decode = text_decoder(column.charset)
    if decode is None:
        text = f'{{"Text":{{"charset":"{column.charset}","base64":"%s"}}}}'
        return ColumnCode("", lines, text, f"b64({x}, newline=False).decode()")
    if column.charset == "ascii":
        # Old servers accept any byte in an ascii column; bytes above 127 are not characters.
        short = f"'{{\"String\":%s}}' % quote({x}.decode('latin-1'))"
        return ColumnCode("", lines, "%s", f"({short} if {x}.isascii() else not_ascii({x}))")
    constants[f"text_{column.charset}"] = decode
    return ColumnCode(
        "",
        lines,
        '{"String":%s}',
        f"quote({x}.decode('latin-1') if {x}.isascii() else in_utf8(text_{column.charset}({x})))",
    )


def _string(column: Column, x: str, constants: dict[str, Any]) -> ColumnCode:
    return _text(column, x, 2 if column.meta > 255 else 1, constants)


def _blob(column: Column, x: str, constants: dict[str, Any]) -> ColumnCode:
    return _text(column, x, column.meta, constants)


def _compressed(column: Column, x: str, constants: dict[str, Any]) -> ColumnCode:
    """Generates the code of a COMPRESSED column of MariaDB, whose values become those of a plain column."""
    prefix = column.meta if column.type == BLOB_COMPRESSED else 2 if column.meta > 255 else 1
    plain = _text(column, x, prefix, constants)
    return replace(plain, lines=(*_sized(column, x, prefix), f"{x} = inflated({x})"))


def _own_text(show: str) -> Callable[[Column, str, dict[str, Any]], ColumnCode]:
    """Returns a function that generates the code of a type of MariaDB whose values ``show`` converts to text."""

    def code(column: Column, x: str, constants: dict[str, Any]) -> ColumnCode:
        return ColumnCode("", _sized(column, x, 1), '{"String":"%s"}', f"{show}({x})")

    return code


def _json(column: Column, x: str, constants: dict[str, Any]) -> ColumnCode:
    return ColumnCode("", _sized(column, x, column.meta), "%s", f"in_utf8(json_value({x}))")


def _bytes(tag: str) -> Callable[[Column, str, dict[str, Any]], ColumnCode]:
    """Returns a function that generates the code of a type whose stored bytes are sent unchanged."""

    def code(column: Column, x: str, constants: dict[str, Any]) -> ColumnCode:
        text = f'{{"{tag}":"%s"}}'
        return ColumnCode("", _sized(column, x, column.meta), text, f"b64({x}, newline=False).decode()")

    return code


def _bit(column: Column, x: str, constants: dict[str, Any]) -> ColumnCode:
    width = (column.meta >> 8) + (1 if column.meta & 0xFF else 0)
    return ColumnCode(f"{width}s", (), '{"Bit":%d}', f"int.from_bytes({x}, 'big')")


def _year(column: Column, x: str, constants: dict[str, Any]) -> ColumnCode:
    return ColumnCode("B", (), '{"Year":%d}', f"{x} + 1900 if {x} else 0")


def _date(column: Column, x: str, constants: dict[str, Any]) -> ColumnCode:
    return ColumnCode("3s", (), "%s", f"dates[int.from_bytes({x}, 'little')]")


def _fraction(column: Column) -> tuple[int, int]:
    """Returns the number of bytes that store the fraction of a second, and how many microseconds one unit stands
    for.
    """
    width = (column.meta + 1) // 2
    return width, 10 ** (6 - 2 * width)


def _time(column: Column, x: str, constants: dict[str, Any]) -> ColumnCode:
    width, unit = _fraction(column)
    lines = (
        f"{x} = int.from_bytes({x}, 'big') - {0x800000 << 8 * width}",
        f"s{x} = 'true' if {x} < 0 else 'false'",
        f"{x} = abs({x}); f{x} = ({x} & {(1 << 8 * width) - 1}) * {unit}; {x} >>= {8 * width}",
    )
    text = '{"Time":{"negative":%s,"hour":%d,"minute":%d,"second":%d,"subsecond":%d}}'
    return ColumnCode(f"{3 + width}s", lines, text, f"s{x}, {x} >> 12 & 1023, {x} >> 6 & 63, {x} & 63, f{x}")


def _datetime(column: Column, x: str, constants: dict[str, Any]) -> ColumnCode:
    width, unit = _fraction(column)
    lines = (f"{x} = int.from_bytes({x}, 'big') - {0x8000000000 << 8 * width}",)
    values = (
        f"days[{x} >> {17 + 8 * width}], clocks[{x} >> {8 * width} & 0x1FFFF], ({x} & {(1 << 8 * width) - 1}) * {unit}"
    )
    return ColumnCode(f"{5 + width}s", lines, '{"DateTime":{%s,%s,"subsecond":%d}}', values)


def _timestamp(column: Column, x: str, constants: dict[str, Any]) -> ColumnCode:
    width, unit = _fraction(column)
    lines = (f"{x} = int.from_bytes({x}, 'big')",)
    values = f"{x} >> {8 * width}, ({x} & {(1 << 8 * width) - 1}) * {unit}"
    return ColumnCode(f"{4 + width}s", lines, '{"Timestamp":{"unix_time":%d,"subsecond":%d}}', values)


def _members(column: Column, x: str, constants: dict[str, Any]) -> ColumnCode:
    """Generates the code for an ENUM or a SET. The code for an ENUM looks up a prepared JSON text; the code for a SET
    joins the texts of the members whose bits are set.
    """
    packed, lines = f"{column.meta}s", (f"{x} = int.from_bytes({x}, 'little')",)
    members = member_texts(column.members, column.charset)
    if members is None or (column.type == SET and b"" in column.members) or column.equal_members:
        # The record contains numbers, not texts: in texts, a SET with only the member '' would look like the empty set,
        # and the second of two equal members would look like the first.
        return ColumnCode(packed, lines, '{"Enum":%d}' if column.type == ENUM else '{"Set":%d}', x)
    texts = [_in_utf8(encode_basestring(member)) for member in members]
    if column.type == ENUM:
        constants[f"enum_{x}"] = ["0", *texts]
        return ColumnCode(packed, lines, '{"Enum":%s}', f"enum_{x}[{x}]")
    constants[f"set_{x}"] = [(1 << bit, text) for bit, text in enumerate(texts)]
    return ColumnCode(packed, lines, '{"Set":[%s]}', f"','.join([t for b, t in set_{x} if {x} & b])")


_TYPES: dict[int, Callable[[Column, str, dict[str, Any]], ColumnCode]] = {
    4: _float, 5: _float, 10: _date, 13: _year, 15: _string, 16: _bit, 17: _timestamp, 18: _datetime, 19: _time,
    242: _bytes("Vector"), JSON: _json, 246: _decimal, 252: _blob, 253: _string, 254: _string, 255: _bytes("Geometry"),
    BLOB_COMPRESSED: _compressed, VARCHAR_COMPRESSED: _compressed,
    UUID: _own_text("uuid_text"), INET4: _own_text("inet4_text"), INET6: _own_text("inet6_text"),
}  # fmt: skip

_LONG = 100  # bytes


def not_ascii(data: bytes) -> str:
    """Returns the JSON text of a value in an ascii column that contains bytes above 127."""
    return f'{{"Text":{{"charset":"ascii","base64":"{b2a_base64(data, newline=False).decode()}"}}}}'


def _in_utf8(text: str) -> str:
    """Encodes ``text`` in UTF-8, as a str with one character for each byte."""
    return text if text.isascii() else text.encode().decode("latin-1")


_MOST_TEXTS = 50_000
Value = TypeVar("Value")


class KeptTexts(dict[Value, str]):
    """Caches the JSON texts of dates and times of day by value: real columns contain few different values."""

    def __init__(self, make: Callable[[Value], str]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, value: Value) -> str:
        if len(self) >= _MOST_TEXTS:
            self.clear()
        text = self[value] = self._make(value)
        return text


def _day_text(packed: int) -> str:
    month = packed >> 5
    return f'"year":{month // 13},"month":{month % 13},"day":{packed & 31}'


def _clock_text(packed: int) -> str:
    return f'"hour":{packed >> 12},"minute":{packed >> 6 & 63},"second":{packed & 63}'


def _date_text(packed: int) -> str:
    return f'{{"Date":{{"year":{packed >> 9},"month":{packed >> 5 & 15},"day":{packed & 31}}}}}'


_DATES = KeptTexts(_date_text)  # the value of DATE: year, month (4 bits), day (5 bits)
_DAYS = KeptTexts(_day_text)  # the day of DATETIME: year * 13 + month, day (5 bits)
_CLOCKS = KeptTexts(_clock_text)  # the time of day of DATETIME: hour, minute (6 bits), second (6 bits)
_LARGE = 1_000_000  # bytes
_CONSTANTS = {
    "b64": b2a_base64, "view": memoryview, "quote": encode_basestring, "quote_long": quote_long, "in_utf8": _in_utf8,
    "not_ascii": not_ascii, "inflated": inflated,
    "uuid_text": uuid_text, "inet4_text": inet4_text, "inet6_text": inet6_text,
    "json_value": json_value, "clocks": _CLOCKS, "dates": _DATES, "days": _DAYS,
}  # fmt: skip


ColumnReader = Callable[[bytes, int], tuple[str, int]]
FIRST_ROWS = 400  # rows that are read before a decoder is compiled; each takes 1.7 times as long as with a decoder
_BLOB_TYPE = 252
_LONG_TYPES = frozenset(
    {BLOB_COMPRESSED, 242, JSON, _BLOB_TYPE, 255}
)  # types with values of up to 4 GB; the length precedes the value
_ROW_TEXT, _UPDATE_TEXT = '{"cols":[%s]}', '{"before_cols":[%s],"after_cols":[%s]}'

Compile = Callable[[int], RowDecoder]


def row_decoder(table: Table, kind: int, *, allow_differences: Callable[[], None]) -> RowDecoder:
    """Generates the decoder of rows events of the type ``kind`` of ``table``, whose columns must have known types.

    The function accepts the event's bytes and the offset of the first row, and returns each row's JSON text, in UTF-8:
    an object with ``cols``, or for updates with ``before_cols`` and ``after_cols``. It raises ValueError, LookupError
    or struct.error on broken data. ``allow_differences`` is called for each row that has differences, and raises an
    error if they must not be applied.
    """
    names = shared_constants() | {
        "json_after": json_after, "packed_integer": packed_integer, "require_utf8": require_utf8,
    }  # fmt: skip
    codes = [column_code(column, f"x{index}", names) for index, column in enumerate(table.columns)]
    if kind == et.PARTIAL_UPDATE_ROWS:
        row = _partial_update(table, allow_differences, codes, names)
    elif kind == et.UPDATE_ROWS:
        row = [*_image(codes, names, "before"), *_image(codes, names, "after"), _UPDATE]
    else:
        row = [*_image(codes, names, "image"), _ROW]
    body = ["def decode(d, p):", " out = []", " end = len(d)", " while p < end:", *row]
    body += [
        " if p != end:",
        "  raise ValueError('the last row ends %d bytes after the event' % (p - end))",
        " return out",
    ]
    return cast(RowDecoder, _function(body, names))


def column_reader(column: Column) -> ColumnReader:
    """Generates a function that reads one value of ``column`` that is not NULL. The function's arguments are the
    event's bytes and the value's offset.

    The function returns the value's JSON text and the offset after the value. The table's decoder returns the same
    text, since it is generated from the same lines. The function raises the errors of a table's decoder.
    """
    names = shared_constants()
    code = column_code(column, "x0", names)
    lines = [f" {line}" for line in _straight([code], names)]
    body = ["def decode(d, p):", *lines, f" return {_shown(code)}, p"]
    return cast(ColumnReader, _function(body, names))


def _function(body: list[str], constants: dict[str, Any]) -> object:
    exec("\n".join(body), constants)
    # The function is removed from its own globals, so that it is freed after its last use.
    return constants.pop("decode")


def _shown(code: ColumnCode) -> str:
    return f"{code.text!r} % ({code.values},)" if code.text else "''"


_APPEND = "  row = ({}).encode('latin-1')\n  row.isascii() or require_utf8(row)\n  out.append(row)"
_ROW = _APPEND.format("'{\"cols\":[' + image + ']}'")
_UPDATE = _APPEND.format("'{\"before_cols\":[' + before + '],\"after_cols\":[' + after + ']}'")


def _document(index: int, bit: int, read: tuple[str, ...]) -> tuple[ColumnCode, ColumnCode]:
    """Generates the code that reads a JSON column from the before-image and from the after-image of a partial update.
    If ``bit`` is set in the row's bitmap, the after-image contains differences instead of the document.
    """
    x, old = f"x{index}", f"b{index}"
    before = (*read, f"{x} = {old} = json_value({x})")
    after = (
        f"if m & {bit}:",
        " s = p + 4 + int.from_bytes(d[p:p+4], 'little')",
        f" {x} = json_after({old}, d[p+4:s], name_{x})",
        " p = s",
        "else:",
        *(f" {line}" for line in read),
        f" {x} = json_value({x})",
    )
    return ColumnCode("", before, "%s", f"in_utf8({x})"), ColumnCode("", after, "%s", f"in_utf8({x})")


def _partial_update(
    table: Table, allow: Callable[[], None], codes: list[ColumnCode], constants: dict[str, Any]
) -> list[str]:
    """Generates the lines that read a row of a partial update. Layout: MySQL source, sql/rpl_record.cc.

    The value options precede the after-image. If they are 1, a bitmap ``m`` follows with a bit for each JSON column.
    The bit is set if the image contains, instead of the document, the length (4 bytes) and the differences of the
    document.
    """
    before, after = list(codes), list(codes)
    constants["allow"] = allow
    documents = [index for index, column in enumerate(table.columns) if column.type == JSON]
    for bit, index in enumerate(documents):
        if table.columns[index].mask is not None:
            # Differences, too, follow their length in 4 bytes.
            skip = ("p += 4 + int.from_bytes(d[p:p+4], 'little')",)
            before[index] = after[index] = replace(codes[index], lines=skip)
            continue
        constants[f"name_x{index}"] = table.columns[index].name
        before[index], after[index] = _document(index, 1 << bit, codes[index].lines)
    width = (len(documents) + 7) // 8
    return [
        *(f"  b{index} = None" for index in documents if table.columns[index].mask is None),
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
    # The bits after the last column have no meaning.
    yield f"  n = {bits} & {(1 << len(codes)) - 1}"
    yield f"  p += {width}"
    yield "  if not n:"
    yield from (f"   {line}" for line in _straight(codes, constants))
    shown = [code for code in codes if code.text]
    values = "".join(f"{code.values}, " for code in shown)
    yield f"   {target} = {','.join(code.text for code in shown)!r} % ({values})"
    yield "  else:"
    for index, code in enumerate(codes):
        yield f"   if n & {1 << index}:"
        yield f"    t{index} = '\"Null\"'"
        yield "   else:"
        yield from (f"    {line}" for line in _straight([code], constants, first=index))
        yield f"    t{index} = {_shown(code)}"
    texts = ", ".join(f"t{index}" for index, code in enumerate(codes) if code.text)
    yield f"   {target} = ','.join(({texts},))"


def _straight(codes: list[ColumnCode], constants: dict[str, Any], *, first: int = 0) -> Iterator[str]:
    """Generates the Python lines that read the columns ``codes`` one after the other. The lines are only for rows in
    which none of these columns is NULL. ``first`` is the number of the first column.
    """
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
    """Maps each type of rows event to a decoder that reads the first rows of ``table`` column by column.

    These decoders return the same texts as the decoders of ``row_decoder``. After ``FIRST_ROWS`` rows, each decoder
    calls ``compile_for(kind)`` for each event, and passes the event to the decoder that this call returns. Raises
    PromiseError for a column that can't be replicated exactly.
    """
    require_known(table)
    # ``_reader`` is cached and gets all attributes of a column except its name, so that equal columns share a reader.
    readers = tuple([_reader(column[1:]) for column in table.columns])
    shown = tuple([not column.is_gone for column in table.columns])
    rows = _FirstRows((readers, shown), et.WRITE_ROWS, FIRST_ROWS, compile_for)
    return {
        et.WRITE_ROWS: rows,
        et.DELETE_ROWS: rows,
        et.UPDATE_ROWS: _FirstRows((readers, shown), et.UPDATE_ROWS, FIRST_ROWS, compile_for),
        # The decoder of partial updates is compiled at once: few leaders log partial updates, and their rows can't be
        # read column by column.
        et.PARTIAL_UPDATE_ROWS: _FirstRows((readers, shown), et.PARTIAL_UPDATE_ROWS, 0, compile_for),
    }


def large_column(column: Column) -> LargeColumn:
    """Returns the reader of ``column`` for an event on disk."""
    read = _reader(column[1:])
    if column.is_gone:
        return LargeColumn(read, column.meta if column.type in _LONG_TYPES else 0, is_gone=True)
    if column.type not in _LONG_TYPES:
        return LargeColumn(read)
    is_blob = column.type == _BLOB_TYPE
    if column.mask is not None:
        return LargeColumn(read, column.meta)
    tag = BLOB if is_blob and column.charset == "binary" else TEXT if is_blob and column.charset in UTF8 else ""
    return LargeColumn(read, column.meta, tag, quote_long)


@lru_cache(maxsize=2_000)  # each reader takes some 2 kB
def _reader(described: tuple[Any, ...]) -> ColumnReader:
    return column_reader(Column("", *described))


_Columns = tuple[tuple[ColumnReader, ...], tuple[bool, ...]]  # their readers, and which of them records contain


class _FirstRows:
    """Decodes the rows of a table's first events without a compiled decoder, until at least ``left`` rows
    are decoded.
    """

    __slots__ = ("_compile_for", "_kind", "_left", "_readers", "_shown")

    def __init__(self, columns: _Columns, kind: int, left: int, compile_for: Compile) -> None:
        self._readers, self._shown = columns
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
        for read, is_shown in zip(self._readers, self._shown, strict=True):
            text = '"Null"'
            if not nulls & 1:
                text, at = read(data, at)
            if is_shown:
                texts.append(text)
            nulls >>= 1
        return ",".join(texts), at

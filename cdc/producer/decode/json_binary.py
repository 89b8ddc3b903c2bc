"""Converts MySQL's binary JSON to JSON text, in time linear in the document even if its bytes are broken.

Format: MySQL source, sql-common/json_binary.h. The follower's parser turns the text into the same document: doubles
have a point or an exponent, integers have none. A document with members of SQL types (from JSON_OBJECT, JSON_ARRAY and
CAST), which JSON text can't express, is written as a tree with a tag for each such member.
"""

import functools
from binascii import b2a_base64
from collections.abc import Callable
from json.encoder import encode_basestring
from math import isfinite
from struct import Struct
from typing import Any, cast

__all__ = ["LARGEST_SIGNED", "decimal_reader", "json_value", "sql_member"]

# Reads MySQL's packed DECIMAL as text: four bytes contain nine digits, the top bit is the sign (MySQL source,
# strings/decimal).

_DIGIT_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)  # number of bytes for 0 to 9 decimal digits
_FORMATS = {1: "B", 2: "H", 3: "BH", 4: "I"}
_COMPLEMENT = bytes(255 - byte for byte in range(256))


@functools.cache
def decimal_reader(precision: int, scale: int) -> tuple[int, Callable[[bytes], str]]:
    """Returns the width of DECIMAL(precision, scale) in bytes, and its reader, which returns text with ``scale``
    decimals.

    The reader is generated code: it unpacks all groups of digits with one call, and formats them with one call.
    """
    whole = precision - scale
    integral = [*([whole % 9] if whole % 9 else []), *[9] * (whole // 9)]
    fraction = [*[9] * (scale // 9), *([scale % 9] if scale % 9 else [])]
    sizes = [_DIGIT_BYTES[count] for count in integral + fraction]
    names = [f"g{index}" for index in range(len(sizes))]
    halves = [f"h{name},{name}" if size == 3 else name for name, size in zip(names, sizes, strict=True)]
    number = "0"
    for name in names[: len(integral)]:
        number = f"({number}) * 1000000000 + {name}" if number != "0" else name
    text = "%s%d" + ("." + "".join(f"%0{count}d" for count in fraction) if scale else "")
    values = ", ".join(["sign", number, *names[len(integral) :]])
    code = [
        "def convert(data):",
        " sign = ''",
        " if data[0] < 128:",
        "  data = data.translate(complement)",
        "  sign = '-'",
        f" {','.join(halves)}, = unpack(data)",
        *(f" {name} += h{name} << 16" for name, size in zip(names, sizes, strict=True) if size == 3),
        f" {names[0]} -= {0x80 << 8 * (sizes[0] - 1)}",
        f" return {text!r} % ({values})",
    ]
    packed = Struct(">" + "".join(_FORMATS[size] for size in sizes))
    constants: dict[str, Any] = {"unpack": packed.unpack, "complement": _COMPLEMENT}
    exec("\n".join(code), constants)
    return packed.size, cast(Callable[[bytes], str], constants["convert"])


_LARGE_OBJECT, _LARGE_ARRAY, _LITERAL, _INT16, _UINT16, _INT32, _UINT32, _INT64, _UINT64 = 1, 3, 4, 5, 6, 7, 8, 9, 10
_DOUBLE, _STRING, _OPAQUE = 11, 12, 15
_LITERALS = {0: "null", 1: "true", 2: "false"}
# A container starts with the number of its members and its size. Then an object has an offset and a length for each
# key. Then each value has a type and an offset; a value that fits stands in place of its offset. Numbers have two
# bytes, or four bytes in large containers. But a type always has one byte, and the length of a key always has two.
_SMALL = Struct("<HH"), Struct("<HH"), Struct("<BH"), frozenset({_LITERAL, _INT16, _UINT16})
_LARGE = Struct("<II"), Struct("<IH"), Struct("<BI"), frozenset({_LITERAL, _INT16, _UINT16, _INT32, _UINT32})
_SIGNED = {_INT16: Struct("<h"), _INT32: Struct("<i"), _INT64: Struct("<q")}
_UNSIGNED = {_UINT16: Struct("<H"), _UINT32: Struct("<I"), _UINT64: Struct("<Q")}
_DOUBLE_NUMBER = Struct("<d")
_MAX_DEPTH = 100  # the server's limit for nested containers
LARGEST_SIGNED = (1 << 32) - 1  # the server's parser makes integers up to this value signed, larger integers unsigned

_DECIMAL, _DATE, _TIME, _TIMESTAMP, _DATETIME, _BINARY = 246, 10, 11, 7, 12, 254
# Field types whose values are bytes: BIT, VARBINARY, TINYBLOB, MEDIUMBLOB, LONGBLOB, BLOB; 253 is a text in utf16,
# utf16le, ucs2 or utf32, which is stored as bytes.
_BYTES = frozenset({16, 15, 249, 250, 251, 252, 253, _BINARY})
_LONGEST_BINARY = 255  # bytes of the longest BINARY that a follower can declare
_TEMPORAL_BYTES = 8


class _SqlMember(Exception):
    """Raised for a document with a member of an SQL type, which JSON text can't express. The document is then written
    with type tags (``JsonTyped``).
    """


def json_value(data: bytes) -> str:
    """Converts the value of a JSON column to JSON text, ``{"Json":…}`` or ``{"JsonTyped":…}``.

    Raises ValueError for a member of a type that can't be replicated exactly, and for bytes that are not a document.
    """
    if not data:
        # MySQL reads an empty value, which INSERT IGNORE may store, as the document null.
        return '{"Json":null}'
    try:
        return f'{{"Json":{_Document(data, typed=False).text()}}}'
    except _SqlMember:
        return f'{{"JsonTyped":{_Document(data, typed=True).text()}}}'


class _Document:
    """Reads one document from its bytes. If ``typed`` is true, the document is written as a tree with tags for members
    of SQL types."""

    __slots__ = ("_array", "_data", "_left", "_object", "_typed")

    def __init__(self, data: bytes, *, typed: bool) -> None:
        self._data = data
        self._typed = typed
        self._array, self._object = ('{"array":[', "]}") if typed else ("[", "]"), ("{", "}")
        if typed:
            self._object = '{"object":{', "}}"
        # The number of bytes that may still be read. Each byte belongs to one value only: broken offsets that lead to
        # the same bytes again and again use up this number.
        self._left = len(data)

    def text(self) -> str:
        return self._value(self._data[0], 1, 0)

    def _take(self, at: int, length: int) -> bytes:
        self._left -= length
        data = self._data[at : at + length]
        if self._left < 0 or len(data) != length:
            raise ValueError("broken JSON document: a value overlaps another one or the document's end")
        return data

    def _value(self, kind: int, at: int, depth: int) -> str:
        if kind == _STRING:
            return encode_basestring(self._take(*self._sized(at)).decode())
        if kind <= _LARGE_ARRAY:
            return self._container(kind, at, depth + 1)
        if kind == _DOUBLE:
            (number,) = _DOUBLE_NUMBER.unpack(self._take(at, 8))
            if not isfinite(number):
                raise ValueError(f"broken JSON document: it has the number {number}")
            return repr(number)
        if kind in _SIGNED:
            (number,) = _SIGNED[kind].unpack(self._take(at, _SIGNED[kind].size))
            return str(number) if number <= LARGEST_SIGNED else self._sql_integer("SignedInteger", number)
        if kind in _UNSIGNED:
            (number,) = _UNSIGNED[kind].unpack(self._take(at, _UNSIGNED[kind].size))
            return self._unsigned(number)
        if kind == _OPAQUE:
            if not self._typed:
                raise _SqlMember
            (sql_type,) = self._take(at, 1)
            return sql_member(sql_type, self._take(*self._sized(at + 1)))
        return self._inlined(kind, self._data[at])  # the whole document is a literal

    def _inlined(self, kind: int, value: int) -> str:
        """Returns the text of a value that is stored in the container's entry itself, in place of an offset."""
        if kind == _LITERAL:
            if value in _LITERALS:
                return _LITERALS[value]
        elif kind == _INT16:
            return str(((value & 0xFFFF) ^ 0x8000) - 0x8000)
        elif kind == _INT32:
            return str((value ^ 0x80000000) - 0x80000000)
        elif kind in (_UINT16, _UINT32):
            return self._unsigned(value & 0xFFFF if kind == _UINT16 else value)
        raise ValueError(f"broken JSON document: unknown type {kind} with value {value}")

    def _unsigned(self, number: int) -> str:
        return str(number) if number > LARGEST_SIGNED else self._sql_integer("UnsignedInteger", number)

    def _sql_integer(self, tag: str, number: int) -> str:
        if not self._typed:
            raise _SqlMember
        return f'{{"{tag}":{number}}}'

    def _sized(self, at: int) -> tuple[int, int]:
        """Reads the length that is stored at ``at``, seven bits per byte; returns the offset after the length, and the
        length.
        """
        length = 0
        for shift in range(0, 35, 7):
            byte = self._data[at]
            at += 1
            length |= (byte & 0x7F) << shift
            if byte < 0x80:
                return at, length
        raise ValueError("broken JSON document: a length of more than five bytes")

    def _container(self, kind: int, base: int, depth: int) -> str:
        if depth > _MAX_DEPTH:
            raise ValueError(f"broken JSON document: nested more than {_MAX_DEPTH} deep")
        head, key_entry, value_entry, inlined = _LARGE if kind & 1 else _SMALL
        count, _ = head.unpack(self._take(base, head.size))
        at = base + head.size
        keys = []
        if kind <= _LARGE_OBJECT:
            for start, length in key_entry.iter_unpack(self._take(at, count * key_entry.size)):
                keys.append(encode_basestring(self._take(base + start, length).decode()))
            at += count * key_entry.size
        values = [
            self._inlined(type_, value) if type_ in inlined else self._value(type_, base + value, depth)
            for type_, value in value_entry.iter_unpack(self._take(at, count * value_entry.size))
        ]
        if kind <= _LARGE_OBJECT:
            opening, closing = self._object
            values = [f"{key}:{value}" for key, value in zip(keys, values, strict=True)]
        else:
            opening, closing = self._array
        return opening + ",".join(values) + closing


def sql_member(kind: int, data: bytes) -> str:
    """Returns the JSON text of a member of MySQL's field type ``kind``, with its tag; temporal values are packed as in
    Json_datetime.
    """
    if kind == _DECIMAL:
        return f'{{"Decimal":"{_decimal(data)}"}}'
    if kind in _BYTES:
        if kind == _BINARY and len(data) > _LONGEST_BINARY:
            raise ValueError("the JSON document has a member of an ENUM or SET of CHARACTER SET binary")
        return f'{{"Opaque":{{"type":{kind},"base64":"{b2a_base64(data, newline=False).decode()}"}}}}'
    if kind not in (_DATE, _TIME, _DATETIME, _TIMESTAMP):
        raise ValueError(f"the JSON document has a member of the unknown SQL type {kind}")
    if len(data) != _TEMPORAL_BYTES:
        raise ValueError(f"broken JSON document: a temporal value of {len(data)} bytes")
    packed = int.from_bytes(data, "little", signed=True)
    micros, x = abs(packed) & 0xFFFFFF, abs(packed) >> 24
    clock = f'"minute":{x >> 6 & 63},"second":{x & 63},"subsecond":{micros}'
    if kind == _TIME:
        negative = "true" if packed < 0 else "false"
        return f'{{"Time":{{"negative":{negative},"hour":{x >> 12 & 1023},{clock}}}}}'
    month = x >> 22
    day = f'"year":{month // 13},"month":{month % 13},"day":{x >> 17 & 31}'
    if kind == _DATE:
        return f'{{"Date":{{{day}}}}}'
    # A TIMESTAMP member is in the time zone of the leader's session, which the document does not contain.
    tag = "LocalTimestamp" if kind == _TIMESTAMP else "DateTime"
    return f'{{"{tag}":{{{day},"hour":{x >> 12 & 31},{clock}}}}}'


def _decimal(data: bytes) -> str:
    precision, scale = data[0], data[1]
    if scale > precision or not precision:
        raise ValueError(f"broken JSON document: a DECIMAL of {precision} digits, {scale} after the point")
    width, convert = decimal_reader(precision, scale)
    if len(data) != 2 + width:
        raise ValueError(f"broken JSON document: a DECIMAL({precision},{scale}) of {len(data) - 2} bytes")
    return convert(data[2:])

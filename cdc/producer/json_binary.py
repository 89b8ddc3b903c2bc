"""MySQL's binary JSON to a value's JSON text, in one pass over offsets, so that the time is linear in the document.

Format: MySQL source, sql-common/json_binary.h. The text is what the follower's parser turns into the same document:
doubles keep a point or an exponent, whole numbers have none. A document with members that JSON has no form for (DECIMAL
and temporal values, from JSON_OBJECT and CAST) is written as a tree in which each of them has its tag.
"""

from json.encoder import encode_basestring
from struct import Struct
from typing import NamedTuple

from cdc.producer.decimals import decimal_reader

__all__ = ["json_value"]

_DOUBLE = Struct("<d")
_LITERALS = {0: "null", 1: "true", 2: "false"}
_INTEGERS = {5: (2, True), 6: (2, False), 7: (4, True), 8: (4, False), 9: (8, True), 10: (8, False)}
_OPAQUE = 15


class _Form(NamedTuple):
    """How arrays and objects open and close; ``typed`` is the form of documents with members of SQL types."""

    typed: bool
    array: tuple[str, str]
    object: tuple[str, str]


_PLAIN = _Form(False, ("[", "]"), ("{", "}"))
_TYPED = _Form(True, ('{"array":[', "]}"), ('{"object":{', "}}"))


class _SqlMember(Exception):
    """The document has a member of an SQL type."""


def json_value(data: bytes) -> str:
    """The value of a JSON column as JSON text, ``{"Json":…}`` or ``{"JsonTyped":…}``.

    Raises ValueError for a member of a type that can't be carried exactly.
    """
    if not data:
        # An empty value stands for the document null (MySQL reads a truncated INSERT IGNORE value so).
        return '{"Json":null}'
    try:
        return f'{{"Json":{_document(data, _PLAIN)}}}'
    except _SqlMember:
        return f'{{"JsonTyped":{_document(data, _TYPED)}}}'


def _document(data: bytes, form: _Form) -> str:
    parts: list[str] = []
    _value(data, data[0], 1, parts, form)
    return "".join(parts)


def _value(data: bytes, kind: int, at: int, parts: list[str], form: _Form) -> None:
    if kind in (0, 1):
        _object(data, at, 4 if kind else 2, parts, form)
    elif kind in (2, 3):
        _array(data, at, 4 if kind == 3 else 2, parts, form)
    elif kind == 4:
        parts.append(_LITERALS[data[at]])
    elif kind in _INTEGERS:
        width, signed = _INTEGERS[kind]
        parts.append(str(int.from_bytes(data[at : at + width], "little", signed=signed)))
    elif kind == 11:
        parts.append(repr(_DOUBLE.unpack_from(data, at)[0]))
    elif kind == 12:
        length, at = _length(data, at)
        parts.append(encode_basestring(data[at : at + length].decode("utf-8")))
    elif kind == _OPAQUE:
        if not form.typed:
            raise _SqlMember
        length, start = _length(data, at + 1)
        parts.append(_sql_value(data[at], data[start : start + length]))
    else:
        raise ValueError(f"unknown JSON type {kind}")


def _sql_value(kind: int, data: bytes) -> str:
    """A member of an SQL type, tagged as a column's value is; temporal ones are packed as in Json_datetime."""
    if kind == 246:
        precision, scale = data[0], data[1]
        return f'{{"Decimal":"{decimal_reader(precision, scale)[1](data[2:])}"}}'
    if kind not in (10, 11, 12):
        name = {7: "TIMESTAMP", 13: "YEAR", 16: "BIT", 252: "BLOB"}.get(kind, f"number {kind}")
        raise ValueError(f"the JSON document has a member of SQL type {name}, which JSON text cannot carry exactly")
    packed = int.from_bytes(data, "little", signed=True)
    micros, x = abs(packed) & 0xFFFFFF, abs(packed) >> 24
    clock = f'"minute":{x >> 6 & 63},"second":{x & 63},"subsecond":{micros}'
    if kind == 11:
        negative = "true" if packed < 0 else "false"
        return f'{{"Time":{{"negative":{negative},"hour":{x >> 12 & 1023},{clock}}}}}'
    month = x >> 22
    day = f'"year":{month // 13},"month":{month % 13},"day":{x >> 17 & 31}'
    return f'{{"Date":{{{day}}}}}' if kind == 10 else f'{{"DateTime":{{{day},"hour":{x >> 12 & 31},{clock}}}}}'


def _length(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _member(data: bytes, base: int, entry: int, width: int, parts: list[str], form: _Form) -> None:
    """A value entry: its type, then the value itself where it fits into ``width`` bytes, else its offset."""
    kind = data[entry]
    inline = kind in (4, 5, 6) or (width == 4 and kind in (7, 8))
    at = entry + 1 if inline else base + int.from_bytes(data[entry + 1 : entry + 1 + width], "little")
    _value(data, kind, at, parts, form)


def _object(data: bytes, base: int, width: int, parts: list[str], form: _Form) -> None:
    count = int.from_bytes(data[base : base + width], "little")
    key_entry = base + 2 * width
    entry = key_entry + count * (width + 2)
    parts.append(form.object[0])
    for index in range(count):
        if index:
            parts.append(",")
        start = base + int.from_bytes(data[key_entry : key_entry + width], "little")
        length = int.from_bytes(data[key_entry + width : key_entry + width + 2], "little")
        parts.append(encode_basestring(data[start : start + length].decode("utf-8")))
        parts.append(":")
        _member(data, base, entry, width, parts, form)
        key_entry += width + 2
        entry += width + 1
    parts.append(form.object[1])


def _array(data: bytes, base: int, width: int, parts: list[str], form: _Form) -> None:
    count = int.from_bytes(data[base : base + width], "little")
    entry = base + 2 * width
    parts.append(form.array[0])
    for index in range(count):
        if index:
            parts.append(",")
        _member(data, base, entry, width, parts, form)
        entry += width + 1
    parts.append(form.array[1])

"""MySQL's binary JSON to JSON text, in one pass over offsets, so that the time is linear in the document.

Format: MySQL source, sql-common/json_binary.h. The text is what the follower's parser turns into the same document:
doubles keep a point or an exponent, whole numbers have none.
"""

from json.encoder import encode_basestring
from struct import Struct

__all__ = ["json_text"]

_DOUBLE = Struct("<d")
_LITERALS = {0: "null", 1: "true", 2: "false"}
_INTEGERS = {5: (2, True), 6: (2, False), 7: (4, True), 8: (4, False), 9: (8, True), 10: (8, False)}
_OPAQUE_NAMES = {246: "DECIMAL", 10: "DATE", 11: "TIME", 12: "DATETIME", 7: "TIMESTAMP", 16: "BIT", 252: "BLOB"}


def json_text(data: bytes) -> str:
    """The document's text. Raises ValueError for an opaque member, which JSON text can't carry exactly."""
    if not data:
        # An empty value stands for the document null (MySQL reads a truncated INSERT IGNORE value so).
        return "null"
    parts: list[str] = []
    _value(data, data[0], 1, parts)
    return "".join(parts)


def _value(data: bytes, kind: int, at: int, parts: list[str]) -> None:
    if kind in (0, 1):
        _object(data, at, 4 if kind else 2, parts)
    elif kind in (2, 3):
        _array(data, at, 4 if kind == 3 else 2, parts)
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
    elif kind == 15:
        name = _OPAQUE_NAMES.get(data[at], f"type {data[at]}")
        raise ValueError(f"the JSON document has a member of SQL type {name}, which JSON text cannot carry exactly")
    else:
        raise ValueError(f"unknown JSON type {kind}")


def _length(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _member(data: bytes, base: int, entry: int, width: int, parts: list[str]) -> None:
    """A value entry: its type, then the value itself where it fits into ``width`` bytes, else its offset."""
    kind = data[entry]
    inline = kind in (4, 5, 6) or (width == 4 and kind in (7, 8))
    at = entry + 1 if inline else base + int.from_bytes(data[entry + 1 : entry + 1 + width], "little")
    _value(data, kind, at, parts)


def _object(data: bytes, base: int, width: int, parts: list[str]) -> None:
    count = int.from_bytes(data[base : base + width], "little")
    key_entry = base + 2 * width
    entry = key_entry + count * (width + 2)
    parts.append("{")
    for index in range(count):
        if index:
            parts.append(",")
        start = base + int.from_bytes(data[key_entry : key_entry + width], "little")
        length = int.from_bytes(data[key_entry + width : key_entry + width + 2], "little")
        parts.append(encode_basestring(data[start : start + length].decode("utf-8")))
        parts.append(":")
        _member(data, base, entry, width, parts)
        key_entry += width + 2
        entry += width + 1
    parts.append("}")


def _array(data: bytes, base: int, width: int, parts: list[str]) -> None:
    count = int.from_bytes(data[base : base + width], "little")
    entry = base + 2 * width
    parts.append("[")
    for index in range(count):
        if index:
            parts.append(",")
        _member(data, base, entry, width, parts)
        entry += width + 1
    parts.append("]")

"""The value that rows get in an added column, as records have it, where the statement says it. Pure."""

import json
import re
import struct
from base64 import b64encode
from decimal import Decimal

from cdc.model.charset import text_decoder
from cdc.spark.frames.column_sql import UNKNOWN_CHARSET, ColumnSql
from cdc.sql.column_types import ColumnType, read_type
from cdc.sql.tokens import Token

__all__ = ["NULL", "added_value"]

NULL = "Null"
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)")
_DAY = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_CLOCK = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?")
_INTEGERS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_BINARY = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})


def added_value(column: ColumnSql) -> str | None:
    """The JSON text of the value that rows have in ``column`` once it is added; None where that is not certain."""
    if column.computed:
        return None
    kind = read_type(column.type)
    if column.default is None:
        return NULL if column.nullable is not False else _implicit(kind)
    literal = _literal(column.default)
    if literal is None:
        return _bits(kind, column.default) if kind.name == "bit" else None
    if literal.word() == "NULL":
        return NULL if column.nullable is not False else None
    text = {"TRUE": "1", "FALSE": "0"}.get(literal.word(), literal.text)
    try:
        return _value(kind, text, quoted=literal.kind == "string")
    except (ValueError, ArithmeticError, OverflowError):
        return None


def _literal(tokens: list[Token]) -> Token | None:
    """The one literal, in brackets or not; a number as one word with its sign. None for anything else."""
    inner = tokens[1:-1] if tokens[:1] == [Token("mark", "(")] else tokens
    if len(inner) == 1 and inner[0].kind == "string":
        return None if "\\" in inner[0].text else inner[0]
    text = "".join(each.text for each in inner if each.kind in ("word", "mark"))
    if len(inner) == 1 and text.upper() in ("NULL", "TRUE", "FALSE"):
        return inner[0]
    return Token("word", text) if _NUMBER.fullmatch(text) else None


def _bits(kind: ColumnType, tokens: list[Token]) -> str | None:
    """The value of b'101'."""
    if [each.word() for each in tokens] != ["B", ""] or not re.fullmatch("[01]+", tokens[1].text):
        return None
    return _value(kind, str(int(tokens[1].text, 2)), quoted=False)


def _value(kind: ColumnType, text: str, *, quoted: bool) -> str | None:
    name = kind.name
    if name in _INTEGERS:
        return _integer(kind, int(text))
    if name == "bit" and not quoted:
        return f'{{"Bit":{int(text)}}}' if 0 <= int(text) < 1 << kind.numbers[0] else None
    if name == "decimal":
        exact = Decimal(text).quantize(Decimal(1).scaleb(-kind.numbers[1]))
        is_same = exact == Decimal(text) and len(exact.as_tuple().digits) <= kind.numbers[0]
        return f'{{"Decimal":"{exact if exact else abs(exact)}"}}' if is_same else None
    if name == "double":
        return f'{{"Double":{float(text)!r}}}'
    if name == "float":
        return f'{{"Float":{struct.unpack("<f", struct.pack("<f", float(text)))[0]!r}}}'
    if not quoted:
        return None
    if name in ("char", "varchar") or name.endswith("text"):
        return _text(kind, text)
    if name in ("enum", "set"):
        return _members(kind, text)
    if name in _BINARY and text.isascii() and (not kind.numbers or len(text) <= kind.numbers[0]):
        return _blob(kind, text.encode())
    if name == "date":
        day = _DAY.fullmatch(text)
        return f'{{"Date":{{{_parts(("year", "month", "day"), day.groups())}}}}}' if day else None
    if name == "datetime":
        return _datetime(text, kind.numbers)
    return None


def _integer(kind: ColumnType, number: int) -> str | None:
    bits = _INTEGERS[kind.name]
    low, high = (0, 1 << bits) if kind.unsigned else (-1 << bits - 1, 1 << bits - 1)
    tag = "UnsignedInteger" if kind.unsigned else "SignedInteger"
    return f'{{"{tag}":{number}}}' if low <= number < high else None


def _text(kind: ColumnType, text: str) -> str | None:
    known = kind.charset == UNKNOWN_CHARSET or text_decoder(kind.charset or "") is not None
    if not known or (kind.numbers and len(text) > kind.numbers[0]) or not text.isascii():
        return None
    stored = text.rstrip(" ") if kind.name == "char" else text
    return f'{{"String":{json.dumps(stored, ensure_ascii=False)}}}'


def _members(kind: ColumnType, text: str) -> str | None:
    members = kind.members or ()
    if len({each.casefold() for each in members}) < len(members) or not "".join(members).isascii():
        return None
    if kind.charset != UNKNOWN_CHARSET and text_decoder(kind.charset or "") is None:
        return None
    if kind.name == "enum":
        return f'{{"Enum":{json.dumps(text, ensure_ascii=False)}}}' if text in members else None
    chosen = text.split(",") if text else []
    in_order = [each for each in members if each in chosen]
    return (
        f'{{"Set":{json.dumps(chosen, separators=(",", ":"))}}}' if in_order == chosen and "" not in members else None
    )


def _blob(kind: ColumnType, data: bytes) -> str:
    padded = data.ljust(kind.numbers[0], b"\0") if kind.name == "binary" else data
    return f'{{"Blob":"{b64encode(padded).decode()}"}}'


def _datetime(text: str, digits: tuple[int, ...]) -> str | None:
    day, _, time = text.partition(" ")
    found, clock = _DAY.fullmatch(day), _CLOCK.fullmatch(time or "00:00:00")
    if found is None or clock is None or len(clock[4] or "") > (digits[0] if digits else 0):
        return None
    parts = (
        _parts(("year", "month", "day"), found.groups()) + "," + _parts(("hour", "minute", "second"), clock.groups())
    )
    return f'{{"DateTime":{{{parts},"subsecond":{int((clock[4] or "").ljust(6, "0"))}}}}}'


def _parts(names: tuple[str, ...], found: tuple[str, ...]) -> str:
    return ",".join(f'"{name}":{int(each)}' for name, each in zip(names, found, strict=False))


def _implicit(kind: ColumnType) -> str | None:
    """The value of a column that is NOT NULL and has no DEFAULT."""
    name = kind.name
    if name in _INTEGERS or name in ("decimal", "float", "double"):
        return _value(kind, "0", quoted=False)
    if name in ("char", "varchar") or name.endswith("text"):
        return _text(kind, "")
    if name in _BINARY:
        return _blob(kind, b"")
    if name == "enum" and kind.members:
        return _members(kind, kind.members[0])
    simple = {"bit": '{"Bit":0}', "year": '{"Year":0}'}
    return simple.get(name)

"""Parses the definition of a column in SQL: the column's type, as records contain it, and the value that existing rows
get in an added column, if the statement determines this value. Pure.

Values that a server computes are not certain. Unknown words raise ValueError.
"""

import json
import re
import struct
from base64 import b64encode
from dataclasses import dataclass
from decimal import Decimal

from cdc.model.charset import text_decoder
from cdc.sql.column_types import ColumnType, character_type, members_type, read_type
from cdc.sql.tokens import SqlReader, Token

__all__ = ["NULL", "UNKNOWN_CHARSET", "ColumnSql", "added_value", "read_column"]

UNKNOWN_CHARSET = "default"
"""Stands for the table's default character set in a type that was parsed from SQL and names no character set."""

_SAME = {
    "INTEGER": "int", "INT4": "int", "INT1": "tinyint", "INT2": "smallint", "INT3": "mediumint",
    "MIDDLEINT": "mediumint", "INT8": "bigint", "BOOL": "tinyint", "BOOLEAN": "tinyint", "DEC": "decimal",
    "NUMERIC": "decimal", "FIXED": "decimal", "CHARACTER": "char", "REAL": "double", "FLOAT8": "double",
    "FLOAT4": "float",
}  # fmt: skip
_INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
_SIZED = frozenset({"char", "varchar", "binary", "varbinary", "bit", "datetime", "timestamp", "time"})
_TEXTS = frozenset({"tinytext", "text", "mediumtext", "longtext"})
_PLAIN = frozenset({"tinyblob", "blob", "mediumblob", "longblob", "date", "year", "json"})
_GEOMETRY = frozenset({
    "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geomcollection",
    "geometrycollection",
})  # fmt: skip
_EXPONENT = re.compile("[0-9]+[eE]")
_DIGITS = frozenset({"FLOAT", "DOUBLE"})
_OF_BYTES = {"char": "binary", "varchar": "varbinary"} | {name: name.replace("text", "blob") for name in _TEXTS}


@dataclass(slots=True)
class ColumnSql:
    """A column as a statement defines it.

    ``default`` are the tokens of its DEFAULT clause, None if it has none; ``computed`` is the reason why the server
    computes the values of the column, else empty. ``nullable`` is None if the definition contains neither NULL nor NOT
    NULL. ``place`` is "" for FIRST, the name of the preceding column for AFTER, else None.
    """

    name: str
    type: str
    nullable: bool | None = None
    default: list[Token] | None = None
    computed: str = ""
    place: str | None = None
    is_key: bool = False


def read_column(reader: SqlReader, name: str | None = None) -> ColumnSql:
    """Parses the column definition that comes next. Raises ValueError if the definition contains unknown words."""
    name = reader.identifier() if name is None else name
    kind = reader.identifier()
    words = _Type(kind.upper())
    words.brackets(reader)
    column = ColumnSql(name, "")
    while reader.at < len(reader.items):
        if not (words.attribute(reader) or _attribute(reader, column)):
            raise ValueError(f"unknown words in the definition of {name}")
    column.type, column.computed = words.text(), column.computed or words.rounds
    return column


class _Type:
    """The type of a column, which is parsed word by word."""

    def __init__(self, word: str) -> None:
        self.name = _SAME.get(word, word.lower())
        self.numbers: list[int] = []
        self.members: list[str] = []
        self.unsigned = False
        self.charset = ""
        self.rounds = ""

    def brackets(self, reader: SqlReader) -> None:
        """Parses the brackets after the type's name, if there are any: they contain numbers, or the members of an ENUM
        or SET.
        """
        reader.take("PRECISION") if self.name == "double" else None
        if not reader.mark("("):
            return
        while True:
            item = reader.items[reader.at]
            reader.at += 1
            if item.kind == "string" and self.name in ("enum", "set") and "\\" not in item.text:
                self.members.append(item.text.rstrip(" "))
            elif item.kind == "word" and item.text.isdecimal():
                self.numbers.append(int(item.text))
            else:
                raise ValueError("unknown words in a type")
            if reader.mark(")"):
                return
            reader.require_mark(",")

    def attribute(self, reader: SqlReader) -> bool:
        """Parses an attribute of the type. Returns False if the next words are not such an attribute."""
        if reader.take("UNSIGNED") or reader.take("ZEROFILL"):
            self.unsigned = True
        elif reader.take("CHARACTER", "SET") or reader.take("CHARSET"):
            self.charset = reader.identifier().lower()
        elif reader.take("COLLATE"):
            of_collation = reader.identifier().lower().partition("_")[0]
            self.charset = self.charset or of_collation
        else:
            return reader.take("SIGNED")
        return True

    def text(self) -> str:
        """Returns the type as records contain it. Raises ValueError for an unknown type."""
        name, numbers, sign = self.name, self.numbers, " unsigned" if self.unsigned else ""
        charset = {"utf8": "utf8mb3"}.get(self.charset, self.charset) or UNKNOWN_CHARSET
        if name in _INTEGERS:
            return name + sign
        if name == "decimal":
            return "decimal({},{}){}".format(*(*numbers, *(10, 0)[len(numbers) :]), sign)
        if name in ("float", "double"):
            self.rounds = "values are rounded to its digits" if len(numbers) > 1 else ""
            return ("double" if numbers[:1] > [24] and len(numbers) == 1 else name) + sign
        if name in ("enum", "set"):
            return members_type(name, self.members, charset)
        if name in _SIZED or (name in _TEXTS and not numbers):
            return self._sized(charset)
        if name in _GEOMETRY or name == "vector":
            return "vector" if name == "vector" else "geometry"
        if name in _PLAIN and (not numbers or name == "year"):
            return name
        raise ValueError(f"unknown type {name}")

    def _sized(self, charset: str) -> str:
        name = _OF_BYTES.get(self.name, self.name) if charset == "binary" else self.name
        numbers = self.numbers or ([1] if name in ("char", "binary", "bit") else [])
        if name in ("datetime", "timestamp", "time"):
            numbers = [each for each in numbers if each]
        sized = f"{name}({numbers[0]})" if numbers else name
        return character_type(sized, charset) if name in _TEXTS or name in ("char", "varchar") else sized


def _attribute(reader: SqlReader, column: ColumnSql) -> bool:
    """Parses an attribute of the column. Returns False if the next words are not such an attribute."""
    if reader.take("NOT", "NULL"):
        column.nullable = False
    elif reader.take("NULL"):
        column.nullable = True
    elif reader.take("DEFAULT"):
        column.default = _default(reader)
    elif reader.take("AUTO_INCREMENT"):
        column.computed, column.nullable = "the server numbers its rows", False
    elif reader.take("GENERATED", "ALWAYS", "AS") or reader.take("AS"):
        column.computed = "the server computes its values"
        _brackets(reader)
        reader.take("STORED") or reader.take("VIRTUAL")
    elif reader.take("PRIMARY", "KEY"):
        column.nullable, column.is_key = False, True
    elif reader.take("UNIQUE"):
        reader.take("KEY")
        column.is_key = True
    elif reader.take("KEY"):
        column.nullable, column.is_key = False, True
    elif reader.take("ON", "UPDATE"):
        _call(reader)
    elif reader.take("FIRST"):
        column.place = ""
    elif reader.take("AFTER"):
        column.place = reader.identifier()
    else:
        return _ignored(reader)
    return True


def _ignored(reader: SqlReader) -> bool:
    """Skips an attribute that changes no value. Returns False if the next words are not such an attribute."""
    if reader.take("COMMENT") or reader.take("ENGINE_ATTRIBUTE"):
        reader.mark("=")
        reader.at += 1
    elif reader.take("COLUMN_FORMAT") or reader.take("STORAGE"):
        reader.identifier()
    elif reader.take("SRID"):
        reader.at += 1
    elif reader.take("CHECK"):
        _brackets(reader)
        reader.take("NOT", "ENFORCED") or reader.take("ENFORCED")
    else:
        return reader.take("VISIBLE") or reader.take("INVISIBLE")
    return True


def _default(reader: SqlReader) -> list[Token]:
    start = reader.at
    if reader.items[start : start + 1] == [Token("mark", "(")]:
        _brackets(reader)
    elif reader.peek() in ("CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"):
        _call(reader)
    else:
        if not reader.mark("-"):
            reader.mark("+")
        reader.mark(".")
        reader.at += 1
        if reader.mark("."):
            reader.at += 1
        if _EXPONENT.fullmatch(reader.items[reader.at - 1].text) and (reader.mark("-") or reader.mark("+")):
            reader.at += 1
        # Several tokens may form one literal: b'101' is one literal, and so are _latin1 'a' and 'a' 'b'.
        while reader.at < len(reader.items) and reader.items[reader.at].kind == "string":
            reader.at += 1
    return reader.items[start : reader.at]


def _call(reader: SqlReader) -> None:
    reader.identifier()
    if reader.items[reader.at : reader.at + 1] == [Token("mark", "(")]:
        _brackets(reader)


def _brackets(reader: SqlReader) -> None:
    """Skips brackets and everything in them."""
    depth = 0
    while reader.at < len(reader.items):
        item = reader.items[reader.at]
        reader.at += 1
        depth += (item == Token("mark", "(")) - (item == Token("mark", ")"))
        if not depth:
            return
    raise ValueError("a bracket is open")


NULL = "Null"
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)")
_DAY = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_CLOCK = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?")
_INTEGER_TYPES = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_BINARY = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})


def added_value(column: ColumnSql) -> str | None:
    """Returns the JSON text of the value that existing rows get in the added ``column``; None if the value is not
    certain."""
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
    """Returns the literal that ``tokens`` form, with or without brackets; a number and its sign become one token.
    Returns None for all other tokens.
    """
    inner = tokens[1:-1] if tokens[:1] == [Token("mark", "(")] else tokens
    if len(inner) == 1 and inner[0].kind == "string":
        return None if "\\" in inner[0].text else inner[0]
    text = "".join(each.text for each in inner if each.kind in ("word", "mark"))
    if len(inner) == 1 and text.upper() in ("NULL", "TRUE", "FALSE"):
        return inner[0]
    return Token("word", text) if _NUMBER.fullmatch(text) else None


def _bits(kind: ColumnType, tokens: list[Token]) -> str | None:
    """Returns the JSON text of a BIT literal such as b'101'; None for other tokens."""
    if [each.word() for each in tokens] != ["B", ""] or not re.fullmatch("[01]+", tokens[1].text):
        return None
    return _value(kind, str(int(tokens[1].text, 2)), quoted=False)


def _value(kind: ColumnType, text: str, *, quoted: bool) -> str | None:
    name = kind.name
    if name in _INTEGER_TYPES:
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
    bits = _INTEGER_TYPES[kind.name]
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
    """Returns the JSON text of MySQL's implicit default value for a column that is NOT NULL and has no DEFAULT. Returns
    None if the value is not certain."""
    name = kind.name
    if name in _INTEGER_TYPES or name in ("decimal", "float", "double"):
        return _value(kind, "0", quoted=False)
    if name in ("char", "varchar") or name.endswith("text"):
        return _text(kind, "")
    if name in _BINARY:
        return _blob(kind, b"")
    if name == "enum" and kind.members:
        return _members(kind, kind.members[0])
    simple = {"bit": '{"Bit":0}', "year": '{"Year":0}'}
    return simple.get(name)

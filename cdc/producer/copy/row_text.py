"""Generates the SQL expressions and the lines of code that turn a selected column into the JSON text of binlog rows.

The server sends text, and it is parsed as little as possible: most numbers go into the JSON unchanged. The lines work
on ``d``, the received bytes, and on ``t``, the same bytes as latin1 text. ``X`` stands for the column's variable, in
the lines and in ``text``, the source of the f-string for the JSON text. The JSON texts of dates and times of day are
cached: real columns contain few different values.

The text of a JSON document does not distinguish a DECIMAL from a double, a date from a string, or signed integers from
unsigned ones. So the SELECT returns, besides the text, the types of such members, each with the member's number in the
document: ``$**.*`` numbers the members of all objects, and ``$**[*]`` numbers the elements of all arrays. The server
lists objects and arrays from the outside in and in the order of the text, each with all its members. The result is the
same as the result of module ``decode.json_binary`` for this document in the binlog.
"""

import json
from base64 import b64decode
from binascii import b2a_base64
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from json.encoder import encode_basestring
from typing import Any

from cdc.config.filters import NULL, Mask
from cdc.model.charset import text_decoder
from cdc.producer.copy.definition import CopiedColumn
from cdc.producer.decode.json_binary import LARGEST_SIGNED, sql_member
from cdc.producer.decode.row_codegen import KeptTexts, not_ascii
from cdc.sql.column_types import read_type

__all__ = [
    "CLOCKS",
    "DATES",
    "DATETIME_DAYS",
    "TIMES",
    "ColumnText",
    "column_text",
    "constants",
    "document_json",
    "document_sql",
]


def _day_text(shown: str) -> str:
    year, month, day = shown.split("-")
    return f'"year":{int(year)},"month":{int(month)},"day":{int(day)}'


def _clock_text(shown: str) -> str:
    hour, minute, second = shown.split(":")
    return f'"hour":{int(hour)},"minute":{int(minute)},"second":{int(second)}'


def _time_text(shown: str) -> str:
    negative = "true" if shown.startswith("-") else "false"
    return f'"negative":{negative},{_clock_text(shown.lstrip("-"))}'


DATES: KeptTexts[str] = KeptTexts(lambda shown: f'{{"Date":{{{_day_text(shown)}}}}}')
DATETIME_DAYS = KeptTexts(_day_text)
CLOCKS = KeptTexts(_clock_text)  # the time of day in a DATETIME
TIMES = KeptTexts(_time_text)  # a TIME without its fraction


@dataclass(frozen=True, slots=True)
class ColumnText:
    """The code that selects and formats a column.

    ``selected`` are its SQL expressions; the first expression is NULL if the value is NULL. ``X`` is a part of the
    variable ``source``, ``d`` or ``t``. With several expressions, ``X`` is the list of their bytes.
    """

    selected: tuple[str, ...]
    source: str
    lines: tuple[str, ...]
    text: str


def constants() -> dict[str, Any]:
    """Returns a new namespace with the functions and tables that the lines use."""
    return {
        "b64": b2a_base64, "quote": encode_basestring, "clocks": CLOCKS, "dates": DATES, "days": DATETIME_DAYS,
        "times": TIMES,
    }  # fmt: skip


def column_text(column: CopiedColumn, name: str, x: str, constants: dict[str, Any]) -> ColumnText:
    """Generates the code that selects ``column``, whose quoted name is ``name``, and formats its value in the variable
    ``x``. Adds the functions that the code needs to ``constants``."""
    code = _TYPES[column.type](column, name, x, constants)
    return code if column.mask is None else _masked(code, column, column.mask, x, constants)


def _masked(code: ColumnText, column: CopiedColumn, mask: Mask, x: str, constants: dict[str, Any]) -> ColumnText:
    """Generates the code of a masked column from the ``code`` that would show its values."""
    if mask.mode == NULL:
        return ColumnText(("NULL",), "t", (), '"Null"')
    known = read_type(column.sql_type)
    size = known.numbers[0] if known.numbers else None
    constants[f"masked_{x}"] = lambda text: mask.hashed(text.encode(), known.name, size)
    # X stands for the column's variable, as in ``ColumnText.text``.
    return ColumnText(code.selected, code.source, (*code.lines, f"X = masked_{x}(f{code.text!r})"), "{X}")


def _integer(column: CopiedColumn, name: str, x: str, constants: dict[str, Any]) -> ColumnText:
    # Without the CAST, the server would show leading zeros for ZEROFILL.
    selected = f"CAST({name} AS UNSIGNED)" if column.zerofill else name
    tag = "UnsignedInteger" if column.unsigned else "SignedInteger"
    return ColumnText((selected,), "t", (), f'{{{{"{tag}":{{X}}}}}}')


def _float(column: CopiedColumn, name: str, x: str, constants: dict[str, Any]) -> ColumnText:
    # For a FLOAT, and for rounded and zero-filled columns, the leader does not show all digits of the stored double.
    plain = column.type == "double" and not column.rounded and not column.zerofill
    tag = "Double" if column.type == "double" else "Float"
    return ColumnText((name if plain else f"{name} * 1e0",), "t", ("X = float(X)",), f'{{{{"{tag}":{{X!r}}}}}}')


def _decimal(column: CopiedColumn, name: str, x: str, constants: dict[str, Any]) -> ColumnText:
    selected = f"CAST({name} AS DECIMAL({column.precision},{column.digits}))" if column.zerofill else name
    return ColumnText((selected,), "t", (), '{{"Decimal":"{X}"}}')


def _bit(column: CopiedColumn, name: str, x: str, constants: dict[str, Any]) -> ColumnText:
    return ColumnText((name,), "d", ("X = int.from_bytes(X, 'big')",), '{{"Bit":{X}}}')


def _year(column: CopiedColumn, name: str, x: str, constants: dict[str, Any]) -> ColumnText:
    return ColumnText((name,), "t", ("X = int(X)",), '{{"Year":{X}}}')


def _date(column: CopiedColumn, name: str, x: str, constants: dict[str, Any]) -> ColumnText:
    return ColumnText((name,), "t", (), "{dates[X]}")


def _fraction(column: CopiedColumn, start: str) -> str:
    """Generates the expression for the microseconds, whose digits begin at ``start``."""
    return f"{{int(X[{start}:]) * {10 ** (6 - column.digits)}}}" if column.digits else "0"


def _time(column: CopiedColumn, name: str, x: str, constants: dict[str, Any]) -> ColumnText:
    whole = f"X[:-{column.digits + 1}]" if column.digits else "X"
    fraction = _fraction(column, f"-{column.digits}")
    return ColumnText((name,), "t", (), f'{{{{"Time":{{{{{{times[{whole}]}},"subsecond":{fraction}}}}}}}}}')


def _datetime(column: CopiedColumn, name: str, x: str, constants: dict[str, Any]) -> ColumnText:
    text = f'{{{{"DateTime":{{{{{{days[X[:10]]}},{{clocks[X[11:19]]}},"subsecond":{_fraction(column, "20")}}}}}}}}}'
    return ColumnText((name,), "t", (), text)


def _timestamp(column: CopiedColumn, name: str, x: str, constants: dict[str, Any]) -> ColumnText:
    # The UNIX_TIMESTAMP of a TIMESTAMP is the stored number, whatever the time zone is.
    whole = f"X[:-{column.digits + 1}]" if column.digits else "X"
    fraction = _fraction(column, f"-{column.digits}")
    text = f'{{{{"Timestamp":{{{{"unix_time":{{{whole}}},"subsecond":{fraction}}}}}}}}}'
    lines = (f"if X == '0': X = '0.{'0' * column.digits}'",) if column.digits else ()
    return ColumnText((f"UNIX_TIMESTAMP({name})",), "t", lines, text)


def _text(column: CopiedColumn, name: str, x: str, constants: dict[str, Any]) -> ColumnText:
    if column.charset in ("utf8mb4", "utf8mb3"):
        return ColumnText((name,), "d", ("X = quote(X.decode())",), '{{"String":{X}}}')
    decode = text_decoder(column.charset)
    if decode is None:
        text = f'{{{{"Text":{{{{"charset":"{column.charset}","base64":"{{X}}"}}}}}}}}'
        return ColumnText((name,), "d", ("X = b64(X, newline=False).decode()",), text)
    if column.charset == "ascii":
        constants["not_ascii"] = not_ascii
        line = "X = '{\"String\":%s}' % quote(X.decode()) if X.isascii() else not_ascii(X)"
        return ColumnText((name,), "d", (line,), "{X}")
    constants[f"text_{column.charset}"] = decode
    return ColumnText((name,), "d", (f"X = quote(text_{column.charset}(X))",), '{{"String":{X}}}')


def _own(column: CopiedColumn, name: str, x: str, constants: dict[str, Any]) -> ColumnText:
    return ColumnText((name,), "t", (), '{{"String":"{X}"}}')


def _bytes(tag: str) -> Callable[[CopiedColumn, str, str, dict[str, Any]], ColumnText]:
    def code(column: CopiedColumn, name: str, x: str, constants: dict[str, Any]) -> ColumnText:
        text = f'{{{{"{tag}":"{{X}}"}}}}'
        return ColumnText((name,), "d", ("X = b64(X, newline=False).decode()",), text)

    return code


def _members(column: CopiedColumn, name: str, x: str, constants: dict[str, Any]) -> ColumnText:
    selected, lines = f"CAST({name} AS UNSIGNED)", ("X = int(X)",)
    texts = [encode_basestring(member) for member in column.members]
    if column.type == "enum":
        constants[f"enum_{x}"] = ["0", *texts]
        return ColumnText((selected,), "t", lines, f'{{{{"Enum":{{enum_{x}[X]}}}}}}' if texts else '{{"Enum":{X}}}')
    if not texts:
        return ColumnText((selected,), "t", lines, '{{"Set":{X}}}')
    constants[f"set_{x}"] = [(1 << bit, text) for bit, text in enumerate(texts)]
    join = f"X = ','.join([m for b, m in set_{x} if X & b])"
    return ColumnText((selected,), "t", (*lines, join), '{{"Set":[{X}]}}')


def _json(column: CopiedColumn, name: str, x: str, constants: dict[str, Any]) -> ColumnText:
    constants[f"document_{x}"] = partial(_document, column.name)
    return ColumnText(document_sql(name), "d", (f"X = document_{x}(*X)",), "{X}")


def _document(name: str, *selected: bytes) -> str:
    try:
        return document_json(*selected)
    except ValueError as error:
        raise ValueError(f"column {name}: {error}") from None


_SAME: dict[Callable[[CopiedColumn, str, str, dict[str, Any]], ColumnText], str] = {
    _integer: "tinyint smallint mediumint int bigint",
    _float: "float double",
    _text: "char varchar tinytext text mediumtext longtext",
    _own: "uuid inet4 inet6",
    _bytes("Blob"): "binary varbinary tinyblob blob mediumblob longblob",
    _bytes("Geometry"): "geometry point linestring polygon multipoint multilinestring multipolygon geomcollection "
    "geometrycollection",
    _bytes("Vector"): "vector",
    _members: "enum set",
    _decimal: "decimal", _bit: "bit", _year: "year", _date: "date", _time: "time", _datetime: "datetime",
    _timestamp: "timestamp", _json: "json",
}  # fmt: skip
_TYPES = {name: code for code, names in _SAME.items() for name in names.split()}


_TOLD = "'NULL','OBJECT','ARRAY','STRING','BOOLEAN','DOUBLE','INTEGER','UNSIGNED INTEGER'"
_NOT_TOLD = (
    f"JSON_TYPE(v) NOT IN ({_TOLD}) OR JSON_TYPE(v) = 'INTEGER' AND v > {LARGEST_SIGNED} "
    f"OR JSON_TYPE(v) = 'UNSIGNED INTEGER' AND v <= {LARGEST_SIGNED}"
)
# The number of types comes first: otherwise a list that the server cut off would go unnoticed.
_DOCUMENT_TYPES = (
    "(SELECT CONCAT(COUNT(*), ';', COALESCE(GROUP_CONCAT(CONCAT(n, ' ', JSON_TYPE(v)) SEPARATOR ';'), '')) "
    "FROM JSON_TABLE(%s, '%s' COLUMNS (n FOR ORDINALITY, v JSON PATH '$' ERROR ON EMPTY ERROR ON ERROR)) AS m "
    f"WHERE {_NOT_TOLD})"
)
_INTEGER_TAGS = {"INTEGER": "SignedInteger", "UNSIGNED INTEGER": "UnsignedInteger"}
_OPAQUE = "base64:type"
_WIDE_TEXT = 253  # the only type of bytes that the server does not show in base64
Types = dict[int, str]


class _Number(str):
    """A number in a JSON document, kept as the text that the server showed."""

    __slots__ = ()


class _Object(list[tuple[str, Any]]):
    """Keeps an object's members in their order."""

    __slots__ = ()


def document_sql(column: str) -> tuple[str, ...]:
    """Returns the SQL expressions that a SELECT needs so that ``document_json`` can format a JSON column: the type of
    the document, the types of its members and elements, and its text.
    """
    members, elements = _DOCUMENT_TYPES % (column, "$**.*"), _DOCUMENT_TYPES % (column, "$**[*]")
    return f"JSON_TYPE({column})", members, elements, column


def document_json(kind: bytes, members: bytes | None, elements: bytes | None, text: bytes | None) -> str:
    """Builds the value of a JSON column, ``{"Json":…}`` or ``{"JsonTyped":…}``, from the results of ``document_sql``.

    Raises ValueError if the leader's text is incomplete, or the document contains something that can't be replicated
    exactly.
    """
    if text is None or members is None or elements is None:
        raise ValueError("the leader does not show a JSON document completely")
    kind_text = kind.decode()
    if members == b"0;" and elements == b"0;" and _is_told(kind_text, text):
        return f'{{"Json":{json.dumps(json.loads(text.decode()), ensure_ascii=False, separators=(",", ":"))}}}'
    # The text is decoded as latin1, which keeps every byte: a document may contain text that is not UTF-8, such as
    # utf16, and the server returns its bytes unchanged.
    tree = json.loads(text.decode("latin1"), object_pairs_hook=_Object, parse_int=_Number, parse_float=_Number)
    return f'{{"JsonTyped":{_Typed(_types(members), _types(elements)).text(tree, kind_text)}}}'


def _is_told(kind: str, text: bytes) -> bool:
    if kind in _INTEGER_TAGS:
        return (int(text) > LARGEST_SIGNED) == (kind != "INTEGER")
    return f"'{kind}'" in _TOLD


def _types(listed: bytes) -> Types:
    count, *entries = listed.decode().split(";")
    found = {int(number): kind for number, kind in (entry.split(" ", 1) for entry in entries if entry)}
    if len(found) != int(count):
        raise ValueError("the leader does not show the types in a JSON document completely")
    return found


class _Typed:
    """Writes a document as a tree; ``members`` and ``elements`` map the numbers of members and elements to their
    types."""

    def __init__(self, members: Types, elements: Types) -> None:
        self._members, self._elements = members, elements
        self._next_member = self._next_element = 1

    def text(self, node: Any, kind: str | None) -> str:
        """Writes a node. ``kind`` is the node's type; it may be None if the text shows the type."""
        if isinstance(node, _Object):
            first, self._next_member = self._next_member, self._next_member + len(node)
            parts = [
                f"{_quoted(key)}:{self.text(value, self._members.get(number))}"
                for number, (key, value) in enumerate(node, first)
            ]
            return '{"object":{' + ",".join(parts) + "}}"
        if isinstance(node, list):
            first, self._next_element = self._next_element, self._next_element + len(node)
            parts = [self.text(each, self._elements.get(number)) for number, each in enumerate(node, first)]
            return '{"array":[' + ",".join(parts) + "]}"
        return _scalar(node, kind)


def _scalar(node: Any, kind: str | None) -> str:
    if kind is None or (f"'{kind}'" in _TOLD and kind not in _INTEGER_TAGS):
        if isinstance(node, _Number):
            return repr(float(node)) if not node.lstrip("-").isdecimal() else node
        return _quoted(node) if isinstance(node, str) else json.dumps(node)
    if kind in _INTEGER_TAGS:
        return f'{{"{_INTEGER_TAGS[kind]}":{node}}}'
    if kind == "DECIMAL":
        return f'{{"Decimal":"{node}"}}'
    if node.startswith(_OPAQUE):
        number, data = node.removeprefix(_OPAQUE).split(":", 1)
        return sql_member(int(number), b64decode(data))
    if kind == "BLOB":
        return sql_member(_WIDE_TEXT, node.encode("latin1"))
    return _temporal(node, kind)


def _quoted(latin1: str) -> str:
    return encode_basestring(latin1.encode("latin1").decode())


def _temporal(node: str, kind: str) -> str:
    if kind == "DATE":
        return DATES[node]
    clock, _, micros = node.partition(".")
    if kind == "TIME":
        return f'{{"Time":{{{TIMES[clock]},"subsecond":{int(micros or 0)}}}}}'
    if kind not in ("DATETIME", "TIMESTAMP"):
        raise ValueError(f"the JSON document has a member of the unknown SQL type {kind}")
    # A TIMESTAMP member is in the time zone of the leader's session, which the document does not contain.
    tag = "LocalTimestamp" if kind == "TIMESTAMP" else "DateTime"
    return f'{{"{tag}":{{{DATETIME_DAYS[clock[:10]]},{CLOCKS[clock[11:]]},"subsecond":{int(micros or 0)}}}}}'
